//! Sums, products, quotients, remainders and square roots of double-doubles.
//!
//! Input -> output: two numbers in, the result with a relative error of at most 3 units of 2^-106 (sums), 5
//! (products) or 4 (quotients and square roots, as measured) out; remainders are exact but for one rounding.
//!
//! Paper: Joldes, Muller and Popescu, "Tight and rigorous error bounds for basic building blocks of
//! double-word arithmetic" (2017).
//!
//! Invariants: a result that overflows is infinite, never NaN; zeros are signed as in `f64`. Near the ends of
//! the exponent range, where the error terms of the fast path would overflow or underflow, the work is done
//! in [`Wide`].

use super::DoubleDouble;
use crate::error_free::{quick_two_sum, two_product, two_sum};
use crate::scalar::Scalar;
use crate::wide::Wide;
use core::ops::{Add, Div, Mul, Neg, Rem, Sub};

/// Factors, quotients and products with exponents inside these bounds leave room for all error terms.
const LARGEST: f64 = f64::from_bits((1023 + 900) << 52);
const SMALLEST: f64 = f64::from_bits((1023 - 900) << 52);

fn comfortable(v: f64) -> bool {
    (SMALLEST..LARGEST).contains(&v.abs())
}

impl Neg for DoubleDouble {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        Self { hi: -self.hi, lo: -self.lo }
    }
}

impl Add for DoubleDouble {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        let (sum, error) = two_sum(self.hi, other.hi);
        if !sum.is_finite() {
            return Self::from(sum);
        }
        let (low_sum, low_error) = two_sum(self.lo, other.lo);
        let (sum, error) = quick_two_sum(sum, error + low_sum);
        if sum == 0.0 {
            // Everything cancelled but perhaps the last error; adding zeros themselves keeps the sign of -0 +
            // -0.
            let highs = self.hi + other.hi;
            return Self::from(if highs == 0.0 && low_error == 0.0 { highs } else { low_error });
        }
        Self::normalised(sum, error + low_error)
    }
}

impl Sub for DoubleDouble {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for DoubleDouble {
    type Output = Self;
    #[inline]
    fn mul(self, other: Self) -> Self {
        let product = self.hi * other.hi;
        if !(comfortable(product) && comfortable(self.hi) && comfortable(other.hi)) {
            return multiply_at_the_ends(self, other, product);
        }
        let (product, error) = two_product(self.hi, other.hi);
        let cross = self.hi * other.lo + self.lo * other.hi;
        Self::normalised(product, error + cross)
    }
}

#[cold]
fn multiply_at_the_ends(a: DoubleDouble, b: DoubleDouble, product: f64) -> DoubleDouble {
    if a.is_ordinary() && b.is_ordinary() {
        (a.to_wide() * b.to_wide()).into()
    } else {
        DoubleDouble::from(product)
    }
}

impl Div for DoubleDouble {
    type Output = Self;
    #[inline]
    fn div(self, other: Self) -> Self {
        let quotient = self.hi / other.hi;
        if !(comfortable(quotient) && comfortable(self.hi) && comfortable(other.hi)) {
            return divide_at_the_ends(self, other, quotient);
        }
        // Long division, 53 bits at a time.
        let rest = self - other * Self::from(quotient);
        let second = rest.hi / other.hi;
        let rest = rest - other * Self::from(second);
        let third = rest.hi / other.hi;
        let (high, low) = quick_two_sum(quotient, second);
        Self::normalised(high, low + third)
    }
}

#[cold]
fn divide_at_the_ends(a: DoubleDouble, b: DoubleDouble, quotient: f64) -> DoubleDouble {
    if a.is_ordinary() && b.is_ordinary() {
        a.to_wide().over(b.to_wide()).into()
    } else {
        DoubleDouble::from(quotient)
    }
}

impl Rem for DoubleDouble {
    type Output = Self;
    fn rem(self, other: Self) -> Self {
        if !self.is_ordinary() || !other.is_ordinary() {
            return if self.hi.is_finite() && other.hi.is_infinite() {
                self
            } else {
                Self::from(self.hi % other.hi)
            };
        }
        let divisor = other.to_wide();
        // Part by part, so that a low part far below the high one is not lost.
        let size = divisor.abs();
        let mut rest = Wide::from_f64(self.hi).remainder(size) + Wide::from_f64(self.lo).remainder(size);
        // The parts may have opposite signs: bring the sum back to the dividend's side.
        let negative = self.hi < 0.0;
        let signed_size = if negative { -size } else { size };
        if !rest.is_zero() && rest.negative != negative {
            rest = rest + signed_size;
        } else if rest.compare_magnitude(size).is_ge() {
            rest = rest - signed_size;
        }
        // A zero remainder has the dividend's sign too.
        Self::from(rest).abs_value().copysign(self)
    }
}

impl DoubleDouble {
    pub(super) fn square_root(self) -> Self {
        if !self.is_ordinary() || self.hi < 0.0 {
            return Self::from(self.hi.sqrt());
        }
        if !comfortable(self.hi) {
            return self.to_wide().sqrt().into();
        }
        // One Newton step from 53 bits: s + (a - s^2) / (2 s).
        let root = self.hi.sqrt();
        let (square, error) = two_product(root, root);
        let rest = self - Self { hi: square, lo: error };
        let (high, low) = quick_two_sum(root, rest.hi / (2.0 * root));
        Self::normalised(high, low)
    }

    pub(super) fn abs_value(self) -> Self {
        if self.hi.is_sign_negative() { -self } else { self }
    }

    /// Finite and not zero: what [`Wide`] can work on.
    pub(super) fn is_ordinary(self) -> bool {
        self.hi.is_finite() && self.hi != 0.0
    }
}

crate::operators::operators_with_f64!([] DoubleDouble);

#[cfg(test)]
mod tests {
    use crate::DoubleDouble;
    use crate::wide::Wide;
    use proptest::prelude::*;

    fn number() -> impl Strategy<Value = DoubleDouble> {
        (any::<i64>(), -1.0..1.0f64, -40..40i32).prop_map(|(n, low, power)| {
            let hi = n as f64 * f64::from(power).exp2();
            DoubleDouble::from_sum(hi, low * hi * f64::EPSILON / 2.0)
        })
    }

    /// The error against the 192-bit result, in units of 2^-106.
    fn units(found: DoubleDouble, exact: Wide) -> f64 {
        if exact.is_zero() {
            return found.hi;
        }
        (found.to_wide() - exact).over(exact).scaled(106).to_f64().abs()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn errors_stay_within_the_documented_units(a in number(), b in number()) {
            prop_assume!(a.hi != 0.0 && b.hi != 0.0);
            let (x, y) = (a.to_wide(), b.to_wide());
            let errors = [
                (units(a + b, x + y), 3.0),
                (units(a * b, x * y), 5.0),
                (units(a / b, x.over(y)), 4.0),
                (units(a.abs_value().square_root(), x.abs().sqrt()), 4.0),
            ];
            for (index, (error, allowed)) in errors.into_iter().enumerate() {
                prop_assert!(error <= allowed, "operation {index}: {error}");
            }
        }
    }
}
