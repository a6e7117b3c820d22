//! `Wide`: a binary floating-point number of 192 bits, the workshop in which double-double functions are
//! made.
//!
//! Input -> output: exact numbers of up to 192 bits in, results with a relative error of a few units of
//! 2^-190 (arithmetic) or better than 2^-170 (functions) out, so that rounding them to 106 bits is right but
//! for inputs nobody meets.
//!
//! Invariants: the top bit of a nonzero mantissa is set; the exponent is never exhausted (`i64`), so nothing
//! overflows or underflows on the way; there is no infinity and no NaN, callers deal with those.
//!
//! Known limits: arithmetic truncates. An integer unit does this about as fast as double-double arithmetic
//! does without a hardware fused multiply-add, and there are no special cases to get wrong.

pub(crate) mod angle;
pub(crate) mod constants;
pub(crate) mod elementary;
pub(crate) mod special;

use core::cmp::Ordering;
use core::ops::{Add, Mul, Neg, Sub};

const BITS: i64 = 192;

/// `mantissa * 2^(exponent - 192)`, with a sign. Limbs are stored lowest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wide {
    pub(crate) negative: bool,
    pub(crate) exponent: i64,
    pub(crate) mantissa: [u64; 3],
}

impl Wide {
    pub(crate) const ZERO: Self = Self { negative: false, exponent: 0, mantissa: [0; 3] };
    pub(crate) const ONE: Self = Self { negative: false, exponent: 1, mantissa: [0, 0, 1 << 63] };

    /// A positive table entry; limbs highest first, as a person reads them.
    pub(crate) const fn table(exponent: i64, limbs: [u64; 3]) -> Self {
        Self { negative: false, exponent, mantissa: [limbs[2], limbs[1], limbs[0]] }
    }

    /// The number `limbs * 2^-point` (lowest limb first), cut to 192 bits.
    pub(crate) fn from_fixed(negative: bool, limbs: &[u64], point: i64) -> Self {
        let Some(top) = limbs.iter().rposition(|&limb| limb != 0) else { return Self::ZERO };
        let limb = |back: usize| if back <= top { limbs[top - back] } else { 0 };
        let shift = limbs[top].leading_zeros();
        let mut mantissa = [0; 3];
        for (back, digit) in mantissa.iter_mut().rev().enumerate() {
            let pair = u128::from(limb(back)) << 64 | u128::from(limb(back + 1));
            *digit = (pair << shift >> 64) as u64;
        }
        let exponent = 64 * (top as i64 + 1) - i64::from(shift) - point;
        Self { negative, exponent, mantissa }
    }

    /// A finite `f64`, exactly.
    pub(crate) fn from_f64(v: f64) -> Self {
        let (fraction, power) = decode(v);
        Self::from_fixed(v.is_sign_negative(), &[fraction], -power)
    }

    pub(crate) fn from_int(n: i64) -> Self {
        Self::from_fixed(n < 0, &[n.unsigned_abs()], 0)
    }

    /// The nearest `f64`, ties to even; infinite if too large.
    pub(crate) fn to_f64(self) -> f64 {
        const LARGEST_EXPONENT: i64 = f64::MAX_EXP as i64;
        const SMALLEST_EXPONENT: i64 = f64::MIN_EXP as i64;
        let sign = if self.negative { -1.0 } else { 1.0 };
        if self.is_zero() {
            return 0.0;
        }
        if self.exponent > LARGEST_EXPONENT {
            return sign * f64::INFINITY;
        }
        // A subnormal result keeps fewer bits; rounding once at the right place avoids double rounding.
        let kept = 53 - (SMALLEST_EXPONENT - self.exponent).max(0);
        if kept < 0 {
            return sign * 0.0;
        }
        let [low, middle, high] = self.mantissa;
        let dropped = 64 - kept as u32;
        let whole = (u128::from(high) >> dropped) as u64;
        let rest = (u128::from(high) << 64 >> dropped) as u64;
        let up = rest > 1 << 63 || rest == 1 << 63 && (low | middle != 0 || whole & 1 == 1);
        sign * (whole + u64::from(up)) as f64 * power_of_two(self.exponent - kept)
    }

    /// The number as an unevaluated sum of two `f64`s.
    ///
    /// It is rounded to 160 bits first: that removes the noise of truncated arithmetic, so that results which
    /// are exact (`sqrt(4)`, `log2(8)`) come out exact.
    pub(crate) fn to_pair(self) -> (f64, f64) {
        let cleaned = self.rounded_to_160_bits();
        let high = cleaned.to_f64();
        if high.is_infinite() {
            return (high, 0.0);
        }
        (high, (cleaned - Self::from_f64(high)).to_f64())
    }

    fn rounded_to_160_bits(self) -> Self {
        let [low, middle, high] = self.mantissa;
        let (low, carry) = low.overflowing_add(1 << 31);
        let (middle, carry) = middle.overflowing_add(u64::from(carry));
        let (high, carry) = high.overflowing_add(u64::from(carry));
        if carry {
            return Self { exponent: self.exponent + 1, mantissa: [0, 0, 1 << 63], ..self };
        }
        Self { mantissa: [low >> 32 << 32, middle, high], ..self }
    }

    pub(crate) fn is_zero(self) -> bool {
        self.mantissa[2] == 0
    }

    pub(crate) fn abs(self) -> Self {
        Self { negative: false, ..self }
    }

    /// `self * 2^power`.
    pub(crate) fn scaled(self, power: i64) -> Self {
        if self.is_zero() { self } else { Self { exponent: self.exponent + power, ..self } }
    }

    pub(crate) fn compare_magnitude(self, other: Self) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => {
                let reversed = |m: [u64; 3]| [m[2], m[1], m[0]];
                let key = |w: Self| (w.exponent, reversed(w.mantissa));
                key(self).cmp(&key(other))
            }
        }
    }

    pub(crate) fn square(self) -> Self {
        self * self
    }

    /// `1 / self`; `self` is not zero.
    pub(crate) fn recip(self) -> Self {
        let unit = Self { negative: false, exponent: 0, ..self };
        // Each Newton step doubles the 53 correct bits of the first guess.
        let mut inverse = Self::from_f64(1.0 / unit.to_f64());
        for _ in 0..2 {
            inverse = inverse + inverse * (Self::ONE - unit * inverse);
        }
        Self { negative: self.negative, exponent: inverse.exponent - self.exponent, ..inverse }
    }

    /// `self / divisor`; `divisor` is not zero.
    pub(crate) fn over(self, divisor: Self) -> Self {
        self * divisor.recip()
    }

    /// The remainder of the truncated division of the magnitudes, exactly, with the sign of `self`.
    pub(crate) fn remainder(self, divisor: Self) -> Self {
        if self.compare_magnitude(divisor) == Ordering::Less {
            return self;
        }
        let mut rest = Self { negative: false, exponent: 0, ..self };
        let unit = Self { negative: false, exponent: 0, ..divisor };
        // Schoolbook division in base 2: `rest < 2 unit` holds before each subtraction, so it is exact.
        for step in 0..=self.exponent - divisor.exponent {
            if step > 0 {
                rest = rest.scaled(1);
            }
            if rest.compare_magnitude(unit) != Ordering::Less {
                rest = rest - unit;
            }
        }
        Self { negative: self.negative, ..rest }.scaled(divisor.exponent)
    }

    /// `self` to an integer power.
    pub(crate) fn power(self, n: u32) -> Self {
        let (mut result, mut factor, mut left) = (Self::ONE, self, n);
        while left > 0 {
            if left & 1 == 1 {
                result = result * factor;
            }
            factor = factor.square();
            left >>= 1;
        }
        result
    }
}

/// `(fraction, power)` with `|v| = fraction * 2^power`.
pub(crate) fn decode(v: f64) -> (u64, i64) {
    let bits = v.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    match (bits >> 52) as i64 & 0x7ff {
        0 => (fraction, -1074),
        biased => (fraction | 1 << 52, biased - 1075),
    }
}

/// `2^power` for a power that a normal or subnormal `f64` can hold.
fn power_of_two(power: i64) -> f64 {
    if power >= -1022 {
        f64::from_bits(((power + 1023) as u64) << 52)
    } else {
        f64::from_bits(1 << (power + 1074))
    }
}

fn shifted_right(m: [u64; 3], by: u32) -> [u64; 3] {
    let (limbs, bits) = ((by / 64) as usize, by % 64);
    let limb = |index: usize| if index < 3 { m[index] } else { 0 };
    core::array::from_fn(|index| {
        let pair = u128::from(limb(index + limbs + 1)) << 64 | u128::from(limb(index + limbs));
        (pair >> bits) as u64
    })
}

impl Neg for Wide {
    type Output = Self;
    fn neg(self) -> Self {
        Self { negative: !self.negative, ..self }
    }
}

impl Add for Wide {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let (large, small) = match self.compare_magnitude(other) {
            Ordering::Less => (other, self),
            _ => (self, other),
        };
        if small.is_zero() {
            return large;
        }
        let distance = large.exponent - small.exponent;
        if distance >= BITS {
            return large;
        }
        let aligned = shifted_right(small.mantissa, distance as u32);
        let mut limbs = [0; 4];
        let mut carry = false;
        if large.negative == small.negative {
            for index in 0..3 {
                (limbs[index], carry) = large.mantissa[index].carrying_add(aligned[index], carry);
            }
            limbs[3] = u64::from(carry);
        } else {
            for index in 0..3 {
                (limbs[index], carry) = large.mantissa[index].borrowing_sub(aligned[index], carry);
            }
        }
        Self::from_fixed(large.negative, &limbs, BITS - large.exponent)
    }
}

impl Sub for Wide {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Wide {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        if self.is_zero() || other.is_zero() {
            return Self::ZERO;
        }
        let mut limbs = [0; 6];
        for (i, &a) in self.mantissa.iter().enumerate() {
            let mut carry = 0;
            for (j, &b) in other.mantissa.iter().enumerate() {
                (limbs[i + j], carry) = a.carrying_mul_add(b, limbs[i + j], carry);
            }
            limbs[i + 3] = carry;
        }
        // The top bits of both factors are set, so at most one bit is missing at the top of the product.
        let missing = limbs[5].leading_zeros();
        let mantissa = core::array::from_fn(|index| {
            (limbs[index + 3] << missing) | ((limbs[index + 2] >> 63) * u64::from(missing))
        });
        let exponent = self.exponent + other.exponent - i64::from(missing);
        Self { negative: self.negative != other.negative, exponent, mantissa }
    }
}

#[cfg(test)]
mod tests {
    use super::Wide;
    use proptest::prelude::*;

    /// Numbers that use all 192 bits.
    fn number(exponents: core::ops::Range<i64>) -> impl Strategy<Value = Wide> {
        (any::<bool>(), exponents, any::<[u64; 3]>()).prop_map(|(negative, exponent, mut mantissa)| {
            mantissa[2] |= 1 << 63;
            Wide { negative, exponent, mantissa }
        })
    }

    /// `|found - expected| <= 2^-bits |expected|`.
    fn near(found: Wide, expected: Wide, bits: i64) -> bool {
        let difference = found - expected;
        difference.is_zero() || difference.exponent <= expected.exponent - bits
    }

    fn finite() -> impl Strategy<Value = f64> {
        prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL
    }

    proptest! {
        #[test]
        fn arithmetic_returns(a in number(-300..300), b in number(-300..300)) {
            prop_assert!(near(a * b.recip() * b, a, 186));
            prop_assert!((a - a).is_zero());
            let large = if a.compare_magnitude(b).is_lt() { b } else { a };
            prop_assert!(near(a + b - b + large, a + large, 186));
            prop_assert!(near((a + b) * (a - b), a.square() - b.square(), 180) || a.exponent - b.exponent < 6);
        }

        #[test]
        fn roots_return(a in number(-300..300)) {
            prop_assert!(near(a.abs().sqrt().square(), a.abs(), 184));
            prop_assert!(near(a.cbrt().power(3), a, 184));
        }

        #[test]
        fn inverse_functions_return_at_170_bits(a in number(-40..4)) {
            prop_assert!(near(a.exp().ln(), a, 170 + a.exponent.min(0)));
            prop_assert!(near(a.exp_m1().ln_1p(), a, 170) || a.negative && a.exponent > 0);
            let a = a.scaled(-a.exponent.max(0));
            let (sin, cos) = a.sin_cos_reduced();
            prop_assert!(near(sin.square() + cos.square(), Wide::ONE, 170));
            prop_assert!(near(sin.atan2(cos), a, 170));
        }

        #[test]
        fn f64s_are_kept_and_results_are_those_of_f64(a in finite(), b in finite()) {
            prop_assert_eq!(Wide::from_f64(a).to_f64(), a);
            prop_assert_eq!(Wide::from_f64(a).remainder(Wide::from_f64(b)).to_f64(), a % b);
            prop_assert_eq!((Wide::from_f64(a) * Wide::from_f64(b)).to_f64(), a * b);
            prop_assert_eq!((Wide::from_f64(a) + Wide::from_f64(b)).to_f64(), a + b);
        }
    }
}
