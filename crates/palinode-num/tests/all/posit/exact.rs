//! The reference for posits: exact fractions of big integers, the standard's formula, and what "nearest"
//! means.
//!
//! Nothing here is how the library does it: encodings are read by the formula of the standard, without
//! negating them, and a rounding is judged by the borders between encodings, which are the posits of one bit
//! more.

use num_bigint::BigInt;
use num_traits::{Signed, Zero};
use palinode_num::{Draws, Posit, PositWidth};
use std::cmp::Ordering;

/// `numerator / denominator`, not reduced, the denominator positive.
#[derive(Clone, Debug)]
pub(crate) struct Fraction {
    pub(crate) numerator: BigInt,
    pub(crate) denominator: BigInt,
}

impl Fraction {
    pub(crate) fn zero() -> Self {
        Self { numerator: BigInt::ZERO, denominator: BigInt::from(1) }
    }

    /// `n * 2^power`.
    pub(crate) fn scaled(n: impl Into<BigInt>, power: i64) -> Self {
        let (n, one) = (n.into(), BigInt::from(1));
        if power >= 0 {
            Self { numerator: n << power, denominator: one }
        } else {
            Self { numerator: n, denominator: one << -power }
        }
    }

    pub(crate) fn from_f64(v: f64) -> Self {
        let bits = v.to_bits();
        let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i64, (bits & ((1 << 52) - 1)) as i64);
        let (m, power) =
            if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
        Self::scaled(if v < 0.0 { -m } else { m }, power)
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        let numerator = &self.numerator * &other.denominator + &other.numerator * &self.denominator;
        Self { numerator, denominator: &self.denominator * &other.denominator }
    }

    pub(crate) fn negated(&self) -> Self {
        Self { numerator: -&self.numerator, denominator: self.denominator.clone() }
    }

    pub(crate) fn times(&self, other: &Self) -> Self {
        let numerator = &self.numerator * &other.numerator;
        Self { numerator, denominator: &self.denominator * &other.denominator }
    }

    /// The divisor is not zero.
    pub(crate) fn over(&self, other: &Self) -> Self {
        let sign = if other.numerator.is_negative() { -1 } else { 1 };
        Self {
            numerator: &self.numerator * &other.denominator * sign,
            denominator: &self.denominator * other.numerator.abs(),
        }
    }

    /// Towards zero.
    pub(crate) fn truncated(&self) -> BigInt {
        &self.numerator / &self.denominator
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.numerator.is_zero()
    }

    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        (&self.numerator * &other.denominator).cmp(&(&other.numerator * &self.denominator))
    }

    pub(crate) fn abs(&self) -> Self {
        Self { numerator: self.numerator.abs(), denominator: self.denominator.clone() }
    }
}

/// The standard's formula, `((1 - 3s) + f) * 2^((1 - 2s)(4r + e + s))`, for an encoding in the low `width`
/// bits.
pub(crate) fn standard(bits: u128, width: u32) -> Option<Fraction> {
    let bits = bits & ((1 << width) - 1);
    if bits == 0 {
        return Some(Fraction::zero());
    }
    if bits == 1 << (width - 1) {
        return None;
    }
    let bit = |index: u32| bits >> (width - 1 - index) & 1;
    let s = bit(0) as i64;
    let first = bit(1);
    let run = (1..width).take_while(|&index| bit(index) == first).count() as u32;
    let r = if first == 1 { i64::from(run) - 1 } else { -i64::from(run) };
    // Bits beyond the end are 0.
    let at = |index: u32| if index < width { bit(index) as i64 } else { 0 };
    let e = 2 * at(run + 2) + at(run + 3);
    let fraction_bits = width.saturating_sub(run + 4);
    let f = (bits & ((1 << fraction_bits) - 1)) as i128;
    let significand = (i128::from(1 - 3 * s) << fraction_bits) + f;
    Some(Fraction::scaled(significand, (1 - 2 * s) * (4 * r + e + s) - i64::from(fraction_bits)))
}

/// The encoding of a posit in the low bits.
pub(crate) fn bits_of<W: PositWidth>(x: Posit<W>) -> u128 {
    u128::from(x.to_bits().to_pattern() >> (64 - W::BITS))
}

pub(crate) fn from_bits<W: PositWidth>(bits: u64) -> Posit<W> {
    Posit::from_bits(W::from_pattern(bits << (64 - W::BITS)))
}

/// The exact value; `None` for NaR.
pub(crate) fn value<W: PositWidth>(x: Posit<W>) -> Option<Fraction> {
    standard(bits_of(x), W::BITS)
}

/// Whether `found` is what `exact` rounds to: `None` is NaR.
pub(crate) fn is_nearest<W: PositWidth>(exact: Option<&Fraction>, found: Posit<W>) -> bool {
    let Some(exact) = exact else { return found.is_nar() };
    if found.is_nar() || exact.is_zero() || found.is_zero() {
        return exact.is_zero() && found.is_zero();
    }
    if exact.numerator.is_negative() != found.is_negative() {
        return false;
    }
    let code = bits_of(if found.is_negative() { -found } else { found });
    let size = exact.abs();
    let largest = (1u128 << (W::BITS - 1)) - 1;
    // A border itself belongs to the even one of its neighbours.
    let border = |below: u128| {
        let border = standard(2 * below + 1, W::BITS + 1).expect("a border is a number");
        size.compare(&border)
    };
    let inwards = if code % 2 == 0 { Ordering::Greater } else { Ordering::Less };
    let is_above_lower = code == 1 || border(code - 1).then(inwards).is_gt();
    is_above_lower && (code == largest || border(code).then(inwards.reverse()).is_lt())
}

/// Any encoding; long regimes, few bits and the ends come often.
pub(crate) fn any_posit<W: PositWidth>(draws: &mut Draws) -> Posit<W> {
    let bits = draws.u64() as i64;
    let bits = match draws.below(8) {
        // Long regimes: the sign and the regime bit repeated.
        0 | 1 => bits >> draws.below(W::BITS as usize),
        // Few bits of fraction.
        2 => bits & (-1i64).wrapping_shl(64 - draws.below(W::BITS as usize) as u32),
        // Next to the special encodings.
        3 => {
            let corner = [0, i64::MIN, i64::MAX, 1 << 62, -(1 << 62), 3 << 61][draws.below(6)];
            let step = draws.below(5) as i64 - 2;
            corner.wrapping_add(step << (64 - W::BITS))
        }
        _ => bits,
    };
    Posit::from_bits(W::from_pattern(bits as u64))
}

/// How many random cases to try: this many in CI, `PALINODE_POSIT_CASES` in the long run.
pub(crate) fn cases(in_ci: usize) -> usize {
    std::env::var("PALINODE_POSIT_CASES")
        .map_or(in_ci, |n| n.parse().expect("PALINODE_POSIT_CASES is a number"))
}

#[test]
fn the_formula_gives_the_standards_examples() {
    let is = |bits: u128, width: u32, v: f64| {
        let found = standard(bits, width).expect("a number");
        assert_eq!(found.compare(&Fraction::from_f64(v)), Ordering::Equal, "{bits:b}");
    };
    is(0b0100_0000, 8, 1.0);
    is(0b1100_0000, 8, -1.0);
    is(0b0111_1111, 8, 2f64.powi(24));
    is(0b0000_0001, 8, 2f64.powi(-24));
    is(0b0101_0011, 8, 5.5);
    is(0b1000_0001, 8, -(2f64.powi(24)));
    is(0x7fff, 16, 2f64.powi(56));
    is(0x7fff_ffff, 32, 2f64.powi(120));
    assert!(standard(0x80, 8).is_none());
}
