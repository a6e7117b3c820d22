//! Roots, exponentials, logarithms and angles of 192-bit numbers.
//!
//! Input -> output: finite numbers inside the function's domain in, a result with a relative error below
//! 2^-170 out; also where the result is tiny (`exp_m1`, `ln_1p`, `sin` and `atan` near 0).
//!
//! Method: Taylor series after argument reduction for the direct functions; one Newton-like step of third
//! order or better from the `f64` function for the inverse ones.

use super::Wide;
use super::constants::{INVERSE_FACTORIALS, LN_2, ONE_THIRD, PI};
use crate::elementary as plain;

/// Below this exponent a function with slope 1 at 0 equals its argument to all bits.
const NEGLIGIBLE: i64 = -200;

/// Halvings of the exponential's argument, undone by as many squarings.
const HALVINGS: i64 = 8;

impl Wide {
    /// Square root of a number that is not negative.
    pub(crate) fn sqrt(self) -> Self {
        if self.is_zero() {
            return self;
        }
        let half_exponent = self.exponent.div_euclid(2);
        let unit = self.scaled(-2 * half_exponent);
        // Newton for 1/sqrt, which needs no division.
        let mut inverse = Self::from_f64(1.0 / unit.to_f64().sqrt());
        for _ in 0..2 {
            inverse = inverse + (inverse * (Self::ONE - unit * inverse.square())).scaled(-1);
        }
        (unit * inverse).scaled(half_exponent)
    }

    /// Cube root, any sign.
    pub(crate) fn cbrt(self) -> Self {
        if self.is_zero() {
            return self;
        }
        let third_exponent = self.exponent.div_euclid(3);
        let unit = self.scaled(-3 * third_exponent);
        // Two Newton steps: 53 -> 105 -> more than 192 bits.
        let mut root = Self::from_f64(plain::cbrt(unit.to_f64()));
        for _ in 0..2 {
            let square = root.square();
            root = root - (square * root - unit).over(square) * ONE_THIRD;
        }
        root.scaled(third_exponent)
    }

    /// `e^self - 1` for `|self| < 1`.
    fn exp_m1_reduced(self) -> Self {
        const LAST_TERM: usize = 17;
        let x = self.scaled(-HALVINGS);
        let series = (1..LAST_TERM)
            .rev()
            .fold(INVERSE_FACTORIALS[LAST_TERM], |sum, n| sum * x + INVERSE_FACTORIALS[n]);
        // e^2x - 1 = (e^x - 1)(e^x + 1) keeps the relative accuracy of small results.
        (0..HALVINGS).fold(series * x, |m, _| m * (m + Self::ONE.scaled(1)))
    }

    /// `(k, e^(self - k ln 2) - 1)`; the argument's magnitude must be below 2^40.
    fn exp_parts(self) -> (i64, Self) {
        let k = (self.to_f64() / core::f64::consts::LN_2).round() as i64;
        let reduced = if k == 0 { self } else { self - LN_2 * Self::from_int(k) };
        (k, reduced.exp_m1_reduced())
    }

    /// `e^self` for `|self| < 2^40`.
    pub(crate) fn exp(self) -> Self {
        let (k, m) = self.exp_parts();
        (m + Self::ONE).scaled(k)
    }

    /// `e^self - 1` for `|self| < 2^40`.
    pub(crate) fn exp_m1(self) -> Self {
        let (k, m) = self.exp_parts();
        if k == 0 { m } else { m.scaled(k) + (Self::ONE.scaled(k) - Self::ONE) }
    }

    /// `ln(1 + self)` for `self > -1`.
    pub(crate) fn ln_1p(self) -> Self {
        if self.exponent < NEGLIGIBLE || self.is_zero() {
            return self;
        }
        if self.exponent >= 0 {
            return (self + Self::ONE).ln();
        }
        let guess = Self::from_f64(plain::ln_1p(self.to_f64()));
        // ln((1 + x) / e^guess) = 2 atanh(z) with z about 2^-53: two terms leave z^5.
        let m = guess.exp_m1();
        let z = (self - m).over(self + m + Self::ONE.scaled(1));
        guess + (z + z.square() * z * ONE_THIRD).scaled(1)
    }

    /// Natural logarithm of a positive number.
    pub(crate) fn ln(self) -> Self {
        const SEVEN_TENTHS: u64 = 0xb333_3333_3333_3333;
        let mut k = self.exponent;
        if self.mantissa[2] < SEVEN_TENTHS {
            k -= 1;
        }
        // The power of two leaves a number between 0.7 and 1.4.
        let near_one = (self.scaled(-k) - Self::ONE).ln_1p();
        if k == 0 { near_one } else { near_one + LN_2 * Self::from_int(k) }
    }

    /// Sine and cosine for `|self| <= 1`.
    pub(crate) fn sin_cos_reduced(self) -> (Self, Self) {
        let square = self.square();
        let series = |first: usize| {
            let terms = INVERSE_FACTORIALS[first..].iter().step_by(2).rev();
            terms.fold(Self::ZERO, |sum, &coefficient| coefficient - sum * square)
        };
        (series(1) * self, series(0))
    }

    /// The angle of the point `(x, self)` in `(-pi, pi]`; not both zero.
    pub(crate) fn atan2(self, x: Self) -> Self {
        let (a, b) = (self.abs(), x.abs());
        let steep = a.compare_magnitude(b).is_gt();
        let mut angle = if steep { acute_angle(b, a) } else { acute_angle(a, b) };
        if steep {
            angle = PI.scaled(-1) - angle;
        }
        if x.negative {
            angle = PI - angle;
        }
        if self.negative { -angle } else { angle }
    }
}

/// `atan(opposite / adjacent)` for `0 <= opposite <= adjacent`.
fn acute_angle(opposite: Wide, adjacent: Wide) -> Wide {
    let ratio = opposite.over(adjacent);
    if ratio.exponent < NEGLIGIBLE || ratio.is_zero() {
        return ratio;
    }
    let guess = Wide::from_f64(plain::atan(ratio.to_f64()));
    let (sin, cos) = guess.sin_cos_reduced();
    // The tangent of what the guess lacks is about 2^-53: two terms of its series leave z^5.
    let z = (ratio * cos - sin).over(cos + ratio * sin);
    guess + (z - z.square() * z * ONE_THIRD)
}
