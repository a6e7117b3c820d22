//! Zeros, infinities, NaN, subnormals, overflow and poles.

use crate::apply::{BINARY, UNARY, apply};
use palinode_num::{DoubleDouble, Real, Scalar};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;
const MAX: f64 = f64::MAX;
const TINY: f64 = f64::MIN_POSITIVE;
/// More bits than an `f64` has for it, and where `acosh` of libm loses its sign and gives a number.
const ODD: [f64; 2] = [9007199254740993.0, -66e6];
const SPECIAL: &[f64] = &[
    0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 2.0, -2.0, 3.0, 0.5, -0.5, 1.5, -2.5, MAX, -MAX, TINY, 5e-324,
    -5e-324, 1e308, 1e-308, -1e16, 800.0, -800.0, ODD[0], ODD[1],
];

/// Same kind of number, same sign of zero, and equal to a few ulp of `f64`.
fn agrees(double_double: DoubleDouble, plain: f64) -> bool {
    let hi = double_double.hi();
    if !hi.is_finite() || hi == 0.0 {
        assert_eq!(double_double.lo(), 0.0, "{double_double:?} is not normalised");
    }
    if plain.is_nan() || plain.is_infinite() || plain == 0.0 {
        return hi.to_bits() == plain.to_bits() || hi.is_nan() && plain.is_nan();
    }
    (hi - plain).abs() <= 4.0 * f64::EPSILON * plain.abs() + 5e-324
}

#[test]
fn functions_of_one_argument_follow_f64() {
    for op in UNARY {
        for &x in SPECIAL {
            let (found, plain) = (apply(op, None, &[DoubleDouble::from(x)]), apply(op, None, &[x]));
            // lgamma is steep between poles, where f64's own error is larger.
            let steep = *op == "lgamma" && (found.hi() - plain).abs() < 1e-14;
            assert!(steep || agrees(found, plain), "{op}({x:e}) is {found:?}, not {plain:?}");
        }
    }
}

#[test]
fn functions_of_two_arguments_follow_f64() {
    for op in BINARY {
        for &x in SPECIAL {
            for &y in SPECIAL {
                let found = apply(op, None, &[x, y].map(DoubleDouble::from));
                let plain = apply(op, None, &[x, y]);
                // Which of two equal zeros min and max give is not specified.
                let zeros = ["min", "max"].contains(op) && found.hi() == 0.0 && plain == 0.0;
                // A sum or product that f64 rounds may be wider here; its nearest f64 is the same.
                assert!(zeros || agrees(found, plain), "{op}({x:e}, {y:e}) is {found:?}, not {plain:?}");
            }
        }
    }
}

#[test]
fn integer_powers_follow_f64() {
    for &x in SPECIAL {
        for n in [0, 1, 2, 3, 4, 5, -1, -2, -3, 1001, -1000, i32::MAX, i32::MIN] {
            let (found, plain) = (DoubleDouble::from(x).powi(n), Scalar::powi(x, n));
            assert!(agrees(found, plain), "powi({x:e}, {n}) is {found:?}, not {plain:?}");
        }
    }
}

#[test]
fn polygamma_at_poles_and_ends() {
    fn check<S: Real>() {
        let at = |x: f64, order| S::from_f64(x).polygamma(order).to_f64();
        let infinity = f64::INFINITY;
        assert_eq!((at(0.0, 0), at(-0.0, 0)), (-infinity, infinity));
        assert_eq!((at(0.0, 1), at(-0.0, 1)), (infinity, infinity));
        assert_eq!((at(0.0, 2), at(-0.0, 2)), (-infinity, infinity));
        for pole in [-1.0, -2.0, -1e9, f64::MIN] {
            assert!(at(pole, 0).is_nan() && at(pole, 2).is_nan() && at(pole, 22).is_nan());
            assert_eq!((at(pole, 1), at(pole, 21)), (infinity, infinity));
        }
        assert_eq!(at(infinity, 0), infinity);
        assert_eq!((at(infinity, 1), at(infinity, 2)), (0.0, 0.0));
        assert!(at(infinity, 1).is_sign_positive() && at(infinity, 2).is_sign_negative());
        for order in [0, 1, 2, 30] {
            assert!(at(f64::NAN, order).is_nan() && at(-infinity, order).is_nan());
        }
        // Neither factor of m!/x^m may overflow before the product does.
        assert_eq!(at(1e300, 1), 1e-300);
        let relative = at(50.0, 300) / -1.2501246564155922e103 - 1.0;
        assert!(relative.abs() < 1e-13, "{relative:e}");
    }
    check::<f64>();
    check::<DoubleDouble>();
    assert!(Scalar::polygamma(-3.0f32, 0).is_nan());
    assert_eq!(Scalar::polygamma(-3.0f32, 1), f32::INFINITY);
}

#[test]
fn a_zero_factor_wins_in_the_strong_product() {
    fn check<S: Real>() {
        let zero = S::zero();
        for other in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 5.0] {
            let other = S::from_f64(other);
            assert_eq!(zero.strong_mul(other).to_f64(), 0.0);
            assert_eq!(other.strong_mul(zero).to_f64(), 0.0);
            assert_eq!((-zero).strong_mul(other).to_f64(), 0.0);
        }
        let nan = S::from_f64(f64::NAN);
        assert!(nan.strong_mul(S::one()).is_nan());
        assert!(nan.strong_mul(S::from_f64(f64::INFINITY)).is_nan());
        assert_eq!(S::from_int(6).strong_mul(S::from_int(7)), S::from_int(42));
    }
    check::<f64>();
    check::<DoubleDouble>();
    assert_eq!(0f32.strong_mul(f32::INFINITY), 0.0);
    assert!(1f32.strong_mul(f32::NAN).is_nan());
}

#[test]
fn strong_products_of_lanes_are_those_of_their_elements() {
    // Partials may be anything; lanes are tangents or cotangents, whose zeros must win.
    fn check<S: Scalar<Bool = bool>>() {
        let partials = [0.0, 1.5, -2.0, f64::INFINITY, f64::NAN].map(S::from_f64);
        let lanes = [0.0, 1.0, -2.5, 1e30, 0.0].map(S::from_f64);
        let others = [0.0, 0.0, 3.0, 1.0, -7.0].map(S::from_f64);
        let same = |found: S, expected: S| {
            let (found, expected) = (found.peek().expect("a number"), expected.peek().expect("a number"));
            assert!(
                found == expected || found.is_nan() && expected.is_nan(),
                "{found} instead of {expected}"
            );
        };
        for p in partials {
            for q in partials {
                let (scaled, added) = (S::strong_scale(p, lanes), S::strong_add(others, p, lanes));
                let combined = S::strong_combine(p, lanes, q, others);
                for lane in 0..lanes.len() {
                    let (a, b) = (lanes[lane], others[lane]);
                    same(scaled[lane], p.strong_mul(a));
                    same(added[lane], b + p.strong_mul(a));
                    same(combined[lane], p.strong_mul(a) + q.strong_mul(b));
                }
            }
        }
    }
    check::<f32>();
    check::<f64>();
    check::<DoubleDouble>();
}

#[test]
fn clamp_lets_the_upper_bound_win_and_keeps_nan() {
    fn check<S: Real>() {
        let clamp = |x: f64, low: f64, high: f64| {
            let [x, low, high] = [x, low, high].map(S::from_f64);
            x.clamp(low, high).to_f64()
        };
        assert_eq!(clamp(0.0, 2.0, 1.0), 1.0);
        assert_eq!(clamp(9.0, 2.0, 1.0), 1.0);
        assert!(clamp(f64::NAN, 0.0, 1.0).is_nan());
    }
    check::<f64>();
    check::<DoubleDouble>();
}

#[test]
fn results_that_are_exact_come_out_exact() {
    let n = DoubleDouble::from;
    let cases = [
        (n(4).sqrt(), 2),
        (n(27).cbrt(), 3),
        (n(-125).cbrt(), -5),
        (n(8).log2(), 3),
        (n(1000).log10(), 3),
        (n(10).exp2(), 1024),
        (n(4).powf(DoubleDouble::half()), 2),
        (n(3).powf(n(5)), 243),
        (n(-3).powi(5), -243),
        (n(3).hypot(n(4)), 5),
        (n(0).exp(), 1),
        (n(0).cos(), 1),
        (n(1).ln(), 0),
        (n(1).acosh(), 0),
        (n(1).acos(), 0),
        (n(1).lgamma(), 0),
        (n(2).lgamma(), 0),
        (n(17) % n(5), 2),
        (n(-17) % n(5), -2),
    ];
    for (index, (found, expected)) in cases.into_iter().enumerate() {
        assert_eq!(found, n(expected), "case {index}");
    }
}

#[test]
fn the_low_part_decides_where_the_high_part_cannot() {
    let above_one = DoubleDouble::from_sum(1.0, 1e-300);
    let below_one = DoubleDouble::from_sum(1.0, -1e-300);
    assert_eq!(above_one.ln().hi(), 1e-300);
    assert_eq!(below_one.ln_1p(), DoubleDouble::constant(palinode_num::Constant::Ln2));
    assert!(above_one.asin().is_nan() && above_one.acos().is_nan() && above_one.atanh().is_nan());
    assert!(below_one.acosh().is_nan());
    assert!((above_one.acosh().hi() / 2f64.sqrt() - 1e-150).abs() < 1e-165);
    let infinity = DoubleDouble::from(f64::INFINITY);
    assert_eq!((above_one.powf(infinity).hi(), below_one.powf(infinity).hi()), (f64::INFINITY, 0.0));
    assert_eq!((above_one.floor().hi(), below_one.floor().hi()), (1.0, 0.0));
    assert_eq!((above_one.ceil().hi(), below_one.ceil().hi()), (2.0, 1.0));
    assert_eq!((below_one.trunc().hi(), below_one.round().hi()), (0.0, 1.0));
    let almost_half = DoubleDouble::from_sum(0.5, -1e-30);
    assert_eq!((almost_half.round().hi(), DoubleDouble::half().round().hi()), (0.0, 1.0));
    // 2^53 + 1 is odd, though its nearest f64 is even.
    let odd = DoubleDouble::from_sum(9007199254740992.0, 1.0);
    assert_eq!(DoubleDouble::from(-1).powf(odd), DoubleDouble::from(-1));
    assert!(below_one < DoubleDouble::from(1) && DoubleDouble::from(1) < above_one);
    assert_eq!(above_one.max(below_one), above_one);
}

#[test]
fn finite_overflow_is_infinite_and_never_nan() {
    let largest = DoubleDouble::from_sum(f64::MAX, 9e291);
    let tiny = DoubleDouble::from(1e-300);
    let results = [
        largest + largest,
        largest * largest,
        largest / tiny,
        -(largest * 2.0),
        largest.exp(),
        largest.sinh(),
    ];
    for result in results {
        assert!(result.hi().is_infinite() && result.lo() == 0.0, "{result:?}");
    }
    assert_eq!((largest / largest).hi(), 1.0);
    assert_eq!(largest - largest, DoubleDouble::from(0));
    assert!((largest.sqrt().hi() / f64::MAX.sqrt() - 1.0).abs() < 1e-15);
    assert_eq!(largest * DoubleDouble::half() * 2.0, largest);
}
