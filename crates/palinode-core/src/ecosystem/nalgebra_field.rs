//! nalgebra's `ComplexField` and `RealField` for every derivative number.
//!
//! Input: nalgebra's generic algorithms. Output: rows of the rule table; branches as they are for `f64`, by
//! `<` and so through the decision hook. What this means for decompositions is described in `nalgebra.rs`.

use super::num_traits::is_negative;
use super::{FormatLimits, rows};
use ::num_traits::FloatConst;
use core::fmt::Display;
use palinode_num::Scalar;
use simba::scalar::{ComplexField, RealField};

/// `1 + c x^2/3! + x^4/5! + c x^6/7! ...` with `c` the sign of the square: `sin(x)/x` and `sinh(x)/x` for
/// `|x| < 1`, and the quotient beyond.
///
/// The quotient itself loses its derivatives next to 0 and is NaN there. 14 terms are below 2^-106 at 1, and
/// carry the Taylor coefficients of a jet at 0 up to order 27.
fn cardinal<N: Scalar<Bool = bool>>(x: N, signed_square: fn(N) -> N, function: fn(N) -> N) -> N {
    if !x.abs().less(N::one()) {
        return function(x) / x;
    }
    let square = signed_square(x);
    (1..=14).rev().fold(N::one(), |sum, k| N::one() + square * sum / N::from_int(2 * k * (2 * k + 1)))
}

macro_rules! constants {
    ($($name:ident = $constant:ident;)*) => {$(
        #[inline]
        fn $name() -> Self {
            <Self as FloatConst>::$constant()
        }
    )*};
}

macro_rules! fields {
    ([$($generics:tt)*] $Number:ty) => {
        impl<$($generics)*> ComplexField for $Number {
            type RealField = Self;

            #[inline(always)]
            fn from_real(re: Self) -> Self {
                re
            }
            #[inline(always)]
            fn real(self) -> Self {
                self
            }
            #[inline(always)]
            fn imaginary(self) -> Self {
                Self::lift(S::zero())
            }
            #[inline(always)]
            fn conjugate(self) -> Self {
                self
            }
            #[inline]
            fn modulus(self) -> Self {
                <$Number>::abs(self)
            }
            #[inline]
            fn modulus_squared(self) -> Self {
                self * self
            }
            #[inline]
            fn norm1(self) -> Self {
                <$Number>::abs(self)
            }
            #[inline]
            fn argument(self) -> Self {
                if self >= Self::lift(S::zero()) { Self::lift(S::zero()) } else { <Self as FloatConst>::PI() }
            }
            #[inline]
            fn to_exp(self) -> (Self, Self) {
                let one = Self::lift(S::one());
                if self >= Self::lift(S::zero()) { (self, one) } else { (-self, -one) }
            }
            #[inline]
            fn scale(self, factor: Self) -> Self {
                self * factor
            }
            #[inline]
            fn unscale(self, factor: Self) -> Self {
                self / factor
            }
            #[inline]
            fn sin_cos(self) -> (Self, Self) {
                (self.sin(), self.cos())
            }
            /// Smooth at 0, with all derivatives.
            #[inline]
            fn sinc(self) -> Self {
                cardinal(self, |x| -(x * x), Scalar::sin)
            }
            /// Smooth at 0, with all derivatives.
            #[inline]
            fn sinhc(self) -> Self {
                cardinal(self, |x| x * x, Scalar::sinh)
            }
            #[inline]
            fn log(self, base: Self) -> Self {
                self.ln() / base.ln()
            }
            #[inline]
            fn powc(self, n: Self) -> Self {
                <$Number>::powf(self, n)
            }
            /// Whether the primal is finite.
            #[inline]
            fn is_finite(&self) -> bool {
                <$Number>::is_finite(*self)
            }
            #[inline]
            fn try_sqrt(self) -> Option<Self> {
                if self >= Self::lift(S::zero()) { Some(<$Number>::sqrt(self)) } else { None }
            }
            rows! { [$Number]
                floor() ceil() round() trunc() fract() abs() signum() recip()
                mul_add(a: Self, b: Self) hypot(other: Self) powi(n: i32) powf(n: Self) sqrt() cbrt()
                exp() exp2() exp_m1() ln() ln_1p() log2() log10()
                sin() cos() tan() asin() acos() atan() sinh() cosh() tanh() asinh() acosh() atanh()
            }
        }

        impl<$($generics)*> RealField for $Number {
            #[inline]
            fn is_sign_positive(&self) -> bool {
                !is_negative(*self, self.is_active())
            }
            #[inline]
            fn is_sign_negative(&self) -> bool {
                is_negative(*self, self.is_active())
            }
            #[inline]
            fn min_value() -> Option<Self> {
                Some(Self::lift(-S::largest()))
            }
            #[inline]
            fn max_value() -> Option<Self> {
                Some(Self::lift(S::largest()))
            }
            rows! { [$Number]
                copysign(sign: Self) max(other: Self) min(other: Self) clamp(low: Self, high: Self) atan2(other: Self)
            }
            constants! {
                pi = PI; two_pi = TAU; frac_pi_2 = FRAC_PI_2; frac_pi_3 = FRAC_PI_3; frac_pi_4 = FRAC_PI_4;
                frac_pi_6 = FRAC_PI_6; frac_pi_8 = FRAC_PI_8; frac_1_pi = FRAC_1_PI; frac_2_pi = FRAC_2_PI;
                frac_2_sqrt_pi = FRAC_2_SQRT_PI; e = E; log2_e = LOG2_E; log10_e = LOG10_E; ln_2 = LN_2; ln_10 = LN_10;
            }
        }
    };
}
super::for_each_number! { fields! { FormatLimits + Display + Send + Sync } }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dual, Jet, decision};
    use approx::{abs_diff_eq, relative_eq, ulps_eq};
    use simba::scalar::{SubsetOf, SupersetOf};

    fn x(value: f64) -> Dual<f64> {
        Dual::new(value, 1.0)
    }

    #[test]
    fn sinc_has_its_derivatives_everywhere() {
        // sin(t)/t = 1 - t^2/6 + t^4/120 - ...
        let series = ComplexField::sinc(Jet::<f64, 4>::variable(0.0));
        assert_eq!(series.derivatives(), [1.0, 0.0, -1.0 / 3.0, 0.0, 0.2]);
        let series = ComplexField::sinhc(Jet::<f64, 4>::variable(0.0));
        assert_eq!(series.derivatives(), [1.0, 0.0, 1.0 / 3.0, 0.0, 0.2]);
        for t in [1e-8, 1e-3, 0.7, 0.999_999, 1.0, 1.5, -2.0] {
            let y = ComplexField::sinc(x(t));
            // d sinc = -t/3 + t^3/30 - t^5/840 + ... where the quotient would cancel.
            let small = |t: f64| -t / 3.0 + t.powi(3) / 30.0 - t.powi(5) / 840.0;
            let slope = if t.abs() < 0.5 { small(t) } else { (t.cos() - t.sin() / t) / t };
            assert!((y.value - t.sin() / t).abs() < 3e-16, "{t}");
            assert!((y.tangent - slope).abs() <= 1e-15 * slope.abs().max(t), "{t}: {} {slope}", y.tangent);
        }
        for t in [0.5, 2.0] {
            let y = ComplexField::sinhc(x(t));
            assert!((y.value - t.sinh() / t).abs() < 1e-15);
            assert!((y.tangent - (t.cosh() - t.sinh() / t) / t).abs() < 1e-15);
        }
    }

    #[test]
    fn conversions_from_primitives_are_constants_and_back_are_decisions() {
        let three: Dual<f64> = nalgebra_convert(3.0_f32);
        assert_eq!((three.value, three.tangent), (3.0, 0.0));
        let (plain, seen) = decision::watch(|| {
            let a: Option<f64> = SupersetOf::<f64>::to_subset(&x(2.5));
            let b: f64 = SupersetOf::<f64>::to_subset_unchecked(&x(2.5));
            let c: Option<f64> = SupersetOf::<f64>::to_subset(&Dual::lift(2.5));
            (a, b, c)
        });
        assert_eq!((plain, seen.conversions), ((Some(2.5), 2.5, Some(2.5)), 2));
        let same: Dual<f64> = x(2.0).to_superset();
        assert_eq!(same.tangent, 1.0);
    }

    fn nalgebra_convert<From, To: SupersetOf<From>>(from: From) -> To {
        To::from_subset(&from)
    }

    #[test]
    fn branches_of_active_values_are_counted() {
        let (_, seen) = decision::watch(|| {
            assert!(x(-2.0).try_sqrt().is_none());
            assert_eq!(x(-2.0).to_exp().0.tangent, -1.0);
            assert_eq!(x(3.0).argument().value, 0.0);
            assert!(RealField::is_sign_negative(&x(-0.5)));
        });
        assert_eq!((seen.comparisons, seen.smallest_margin), (4, 0.5));
        assert_eq!(ComplexField::to_polar(x(-2.0)).1.value, core::f64::consts::PI);
    }

    #[test]
    fn approximate_equality_is_that_of_the_primals() {
        let (a, b) = (x(1.0), Dual::new(1.0 + f64::EPSILON, 7.0));
        assert!(abs_diff_eq!(a, b) && relative_eq!(a, b) && ulps_eq!(a, b));
        assert!(!abs_diff_eq!(a, x(1.1)) && !relative_eq!(a, x(1.1)) && !ulps_eq!(a, x(1.1)));
        let infinite = x(f64::INFINITY);
        assert!(relative_eq!(infinite, infinite) && !relative_eq!(infinite, x(1.0)));
        assert!(!relative_eq!(x(f64::NAN), x(f64::NAN)));
        // The default epsilon is that of the inner number.
        assert!(relative_eq!(Dual::lift(1.0_f32), Dual::lift(1.0_f32 + f32::EPSILON)));
    }
}
