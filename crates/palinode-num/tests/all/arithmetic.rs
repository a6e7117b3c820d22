//! Laws of double-double arithmetic on random numbers.

use palinode_num::{DoubleDouble, Real, Scalar};
use proptest::prelude::*;

/// 2^-106: the unit that error bounds of the arithmetic are counted in.
pub(crate) const UNIT: f64 = f64::EPSILON * f64::EPSILON / 4.0;

/// Random numbers of 106 bits with exponents up to `powers`; now and then with a gap between the parts.
pub(crate) fn number(powers: i32) -> impl Strategy<Value = DoubleDouble> {
    let parts = (any::<bool>(), 1u64 << 52..1 << 53, -powers..=powers, -1.0..1.0f64, 0..8i32);
    parts.prop_map(|(negative, mantissa, power, low, gap)| {
        let hi = mantissa as f64 / (1u64 << 52) as f64 * f64::from(power).exp2();
        let gap = if gap == 0 { 2f64.powi(-40) } else { 1.0 };
        let number = DoubleDouble::from_sum(hi, low * hi * f64::EPSILON / 4.0 * gap);
        if negative { -number } else { number }
    })
}

pub(crate) fn positive(powers: i32) -> impl Strategy<Value = DoubleDouble> {
    number(powers).prop_map(Scalar::abs)
}

/// `|found - expected| <= units * 2^-106 * size`.
pub(crate) fn near(found: DoubleDouble, expected: DoubleDouble, units: f64, size: f64) -> bool {
    (found - expected).abs().hi() <= units * UNIT * size.abs()
}

fn is_normalised(v: DoubleDouble) -> bool {
    v.hi() + v.lo() == v.hi()
}

proptest! {
    #[test]
    fn adding_and_subtracting_returns(a in number(60), b in number(60)) {
        let size = a.hi().abs() + b.hi().abs();
        prop_assert!(near((a + b) - b, a, 4.0, size));
        prop_assert_eq!(a + b, b + a);
        prop_assert_eq!(a - b, -(b - a));
        prop_assert_eq!(a - a, DoubleDouble::from(0));
    }

    #[test]
    fn multiplying_and_dividing_returns(a in number(400), b in number(400)) {
        prop_assert!(near(a * b / b, a, 4.0, a.hi()));
        prop_assert_eq!(a * b, b * a);
        prop_assert!(near(a.recip() * a, DoubleDouble::from(1), 4.0, 1.0));
        prop_assert!(near(a / a, DoubleDouble::from(1), 0.0, 1.0));
    }

    #[test]
    fn results_are_normalised(a in number(500), b in number(500)) {
        for result in [a + b, a - b, a * b, a / b, a % b, a.abs().sqrt(), a.floor(), a.round(), a.cbrt(), a.sin()] {
            prop_assert!(is_normalised(result), "{result:?}");
        }
    }

    #[test]
    fn products_distribute(a in number(50), b in number(50), c in number(50)) {
        let size = (a.hi() * b.hi()).abs() + (a.hi() * c.hi()).abs();
        prop_assert!(near(a * (b + c), a * b + a * c, 16.0, size));
    }

    #[test]
    fn order_is_the_sign_of_the_difference(a in number(3), b in number(3), low in -1.0..1.0f64) {
        for b in [b, DoubleDouble::from_sum(a.hi(), a.lo() * low)] {
            let difference = a - b;
            prop_assert_eq!(a < b, difference.hi() < 0.0);
            prop_assert_eq!(a > b, difference.hi() > 0.0);
            prop_assert_eq!(a == b, difference.hi() == 0.0);
            prop_assert_eq!(a.max(b) + a.min(b), a + b);
        }
    }

    #[test]
    fn remainders_are_what_whole_multiples_leave(a in number(40), b in number(40)) {
        let rest = a % b;
        prop_assert!(rest.abs() < b.abs());
        prop_assert!(rest == DoubleDouble::from(0) || rest.signum() == a.signum());
        let quotient = (a - rest) / b;
        prop_assert!(near(quotient, quotient.round(), 4.0, quotient.hi()));
        prop_assert_eq!(a % -b, rest);
        prop_assert_eq!(-a % b, -rest);
    }

    #[test]
    fn roundings_surround_the_number(a in number(110)) {
        let one = DoubleDouble::from(1);
        prop_assert!(a.floor() <= a && a < a.floor() + one || a.hi().abs() > 1e30);
        prop_assert_eq!(a.ceil(), -(-a).floor());
        prop_assert!(a.trunc().abs() <= a.abs());
        prop_assert!(near(a.trunc() + a.fract(), a, 2.0, a.hi()));
        prop_assert!((a - a.round()).abs() <= DoubleDouble::half());
        prop_assert_eq!(a.floor().floor(), a.floor());
    }

    #[test]
    fn roots_return(a in positive(1000), b in number(300)) {
        let root = a.sqrt();
        prop_assert!(near(root * root, a, 8.0, a.hi()));
        prop_assert!(near((b * b).sqrt(), b.abs(), 4.0, b.hi()));
        prop_assert!(near(b.cbrt().powi(3), b, 4.0, b.hi()));
    }

    #[test]
    fn operators_with_f64_are_those_with_its_double_double(a in number(50), b in -1e3..1e3f64) {
        let wide = DoubleDouble::from(b);
        prop_assert_eq!([a + b, a - b, a * b, a / b, a % b], [a + wide, a - wide, a * wide, a / wide, a % wide]);
        prop_assert_eq!([b + a, b - a, b * a, b / a, b % a], [wide + a, wide - a, wide * a, wide / a, wide % a]);
        let mut c = a;
        c += b;
        c -= wide;
        c *= b;
        c /= wide;
        c %= b;
        prop_assert_eq!(c, (a + b - b) * b / b % b);
    }

    #[test]
    fn integers_and_f64s_are_kept(n in any::<i32>(), v in any::<f64>()) {
        prop_assert_eq!(DoubleDouble::from_int(n).to_f64(), f64::from(n));
        prop_assert_eq!(f64::from(DoubleDouble::from(v)).to_bits(), v.to_bits());
    }
}

#[test]
fn sums_and_products_of_iterators() {
    let numbers = || (1..=25).map(DoubleDouble::from);
    assert_eq!(numbers().sum::<DoubleDouble>(), DoubleDouble::from(325));
    // 25! has 84 bits: exact here, not in f64.
    assert_eq!(numbers().product::<DoubleDouble>().to_string(), "15511210043330985984000000");
}

#[test]
fn products_at_both_ends_of_the_exponent_range_keep_their_precision() {
    let third = DoubleDouble::from(1) / 3.0;
    for power in [2f64.powi(1020), 2f64.powi(-960)] {
        // Powers of two commute with everything that does not overflow or underflow.
        assert_eq!((third * power) * third / power, third * third);
        assert_eq!((third * power) / third, DoubleDouble::from(power));
        assert!(near((third * power).sqrt() * (third * power).sqrt() / power, third, 8.0, 1.0));
    }
}
