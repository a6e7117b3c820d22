//! num-traits: `Float`, `FloatCore` and `FloatConst` of every derivative number.
//!
//! Input: generic numerical code. Output: rows of the rule table. FormatLimits and special values are those
//! of the inner number; classification looks at the primal only.

use super::num_traits::is_negative;
use super::{FormatLimits, rows};
use ::num_traits::{Float, FloatConst, float::FloatCore};
use core::num::FpCategory;
use palinode_num::{Constant, Scalar};

/// The kind of a number of the format `N`.
fn classify<N: FormatLimits>(x: f64) -> FpCategory {
    let size = x.abs();
    match size.classify() {
        FpCategory::Normal if size < N::smallest().peek().unwrap_or(0.0) => FpCategory::Subnormal,
        other => other,
    }
}

macro_rules! constants {
    ($($name:ident = $value:expr;)*) => {$(
        #[inline]
        fn $name() -> Self {
            Self::lift($value)
        }
    )*};
}

/// The same functions for both traits: `Float` asks for all of them, `FloatCore` has slower defaults for
/// some.
macro_rules! shared {
    ($Number:ty) => {
        constants! {
            nan = S::from_f64(f64::NAN);
            infinity = S::from_f64(f64::INFINITY);
            neg_infinity = S::from_f64(f64::NEG_INFINITY);
            neg_zero = S::from_f64(-0.0);
            min_value = -S::largest();
            min_positive_value = S::smallest();
            epsilon = S::epsilon();
            max_value = S::largest();
        }
        #[inline]
        fn is_nan(self) -> bool {
            <$Number>::is_nan(self)
        }
        #[inline]
        fn is_infinite(self) -> bool {
            self.kind_of(f64::is_infinite) == Some(true)
        }
        #[inline]
        fn is_finite(self) -> bool {
            <$Number>::is_finite(self)
        }
        #[inline]
        fn is_normal(self) -> bool {
            Float::classify(self) == FpCategory::Normal
        }
        #[inline]
        fn is_subnormal(self) -> bool {
            Float::classify(self) == FpCategory::Subnormal
        }
        #[inline]
        fn classify(self) -> FpCategory {
            // Zero and subnormal numbers are kinds as well.
            crate::decision::made_plain(self, || self.may_matter());
            classify::<Self>(self.peek().unwrap_or(f64::NAN))
        }
        #[inline]
        fn is_sign_positive(self) -> bool {
            !is_negative(self, self.is_active())
        }
        #[inline]
        fn is_sign_negative(self) -> bool {
            is_negative(self, self.is_active())
        }
        #[inline]
        fn to_degrees(self) -> Self {
            self * Self::lift(S::from_int(180) / S::constant(Constant::Pi))
        }
        #[inline]
        fn to_radians(self) -> Self {
            self * Self::lift(S::constant(Constant::Pi) / S::from_int(180))
        }
        /// Of the primal as an `f64`, and of an active value a decision.
        #[inline]
        fn integer_decode(self) -> (u64, i16, i8) {
            if !self.carries_nothing() {
                crate::decision::converted();
            }
            crate::decision::made_plain(self, || self.may_matter());
            Float::integer_decode(self.glance().unwrap_or(f64::NAN))
        }
        rows! { [$Number] floor() ceil() round() trunc() fract() abs() signum() recip()
            powi(n: i32) min(other: Self) max(other: Self) clamp(low: Self, high: Self)
        }
    };
}

macro_rules! float {
    ([$($generics:tt)*] $Number:ty) => {
        impl<$($generics)*> Float for $Number {
            shared! { $Number }
            rows! { [$Number]
                mul_add(a: Self, b: Self) powf(n: Self) sqrt() exp() exp2() ln() log2() log10()
                cbrt() hypot(other: Self) sin() cos() tan() asin() acos() atan() atan2(other: Self)
                exp_m1() ln_1p() sinh() cosh() tanh() asinh() acosh() atanh() copysign(sign: Self)
            }
            #[inline]
            fn log(self, base: Self) -> Self {
                self.ln() / base.ln()
            }
            #[inline]
            fn abs_sub(self, other: Self) -> Self {
                (self - other).relu()
            }
            #[inline]
            fn sin_cos(self) -> (Self, Self) {
                (self.sin(), self.cos())
            }
        }

        impl<$($generics)*> FloatCore for $Number {
            shared! { $Number }
        }

        impl<$($generics)*> FloatConst for $Number {
            constants! {
                E = S::constant(Constant::E);
                PI = S::constant(Constant::Pi);
                TAU = S::constant(Constant::Pi) * S::from_int(2);
                FRAC_1_PI = S::constant(Constant::Pi).recip();
                FRAC_2_PI = S::from_int(2) / S::constant(Constant::Pi);
                FRAC_PI_2 = S::constant(Constant::Pi) / S::from_int(2);
                FRAC_PI_3 = S::constant(Constant::Pi) / S::from_int(3);
                FRAC_PI_4 = S::constant(Constant::Pi) / S::from_int(4);
                FRAC_PI_6 = S::constant(Constant::Pi) / S::from_int(6);
                FRAC_PI_8 = S::constant(Constant::Pi) / S::from_int(8);
                FRAC_2_SQRT_PI = S::constant(Constant::TwoOverSqrtPi);
                SQRT_2 = S::from_int(2).sqrt();
                FRAC_1_SQRT_2 = S::half().sqrt();
                LN_2 = S::constant(Constant::Ln2);
                LN_10 = S::constant(Constant::Ln10);
                LOG2_E = S::constant(Constant::Ln2).recip();
                LOG10_E = S::constant(Constant::Ln10).recip();
                LOG10_2 = S::constant(Constant::Ln2) / S::constant(Constant::Ln10);
                LOG2_10 = S::constant(Constant::Ln10) / S::constant(Constant::Ln2);
            }
        }
    };
}

super::for_each_number! { float! { FormatLimits } }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dual, DualN, Jet, Var, decision};
    use ::num_traits::{NumCast, One, Signed, ToPrimitive, Zero};
    use palinode_num::DoubleDouble;

    fn x(value: f64) -> Dual<f64> {
        Dual::new(value, 1.0)
    }

    #[test]
    fn constants_are_within_an_ulp_of_the_standard_ones() {
        macro_rules! check {
            ($($name:ident)*) => {$(
                let (ours, std) = (Dual::<f64>::$name().value, <f64 as FloatConst>::$name());
                assert!((ours - std).abs() <= std * f64::EPSILON, stringify!($name));
                let ours = Jet::<f32, 2>::$name().primal();
                let std = <f32 as FloatConst>::$name();
                assert!((ours - std).abs() <= std * f32::EPSILON, stringify!($name));
                let precise = Var::<DoubleDouble>::$name().primal();
                assert!((precise.hi() - <f64 as FloatConst>::$name()).abs() <= f64::EPSILON * precise.hi());
            )*};
        }
        check! { E PI TAU FRAC_1_PI FRAC_2_PI FRAC_PI_2 FRAC_PI_3 FRAC_PI_4 FRAC_PI_6 FRAC_PI_8 FRAC_2_SQRT_PI
        SQRT_2 FRAC_1_SQRT_2 LN_2 LN_10 LOG2_E LOG10_E LOG10_2 LOG2_10 }
    }

    #[test]
    fn float_functions_are_the_table_rows() {
        let y = Float::log(x(8.0), Dual::lift(2.0));
        assert!((y.value - 3.0).abs() < 1e-15 && (y.tangent - 1.0 / (8.0 * 2f64.ln())).abs() < 1e-16);
        assert_eq!(Float::abs_sub(x(3.0), Dual::lift(1.0)).tangent, 1.0);
        assert_eq!(Float::abs_sub(x(1.0), Dual::lift(3.0)).tangent, 0.0);
        assert_eq!(Float::to_degrees(x(1.0)).tangent, 1f64.to_degrees());
        let (s, c) = Float::sin_cos(x(1.0));
        assert_eq!((s.tangent, c.tangent), (1f64.cos(), -1f64.sin()));
        assert_eq!(Float::integer_decode(Dual::lift(-3.0)), Float::integer_decode(-3.0));
        assert!(FloatCore::is_sign_negative(Dual::lift(-0.0)));
    }

    #[test]
    fn classification_knows_the_inner_format() {
        let tiny = f32::MIN_POSITIVE / 2.0;
        assert_eq!(Float::classify(Dual::lift(tiny)), FpCategory::Subnormal);
        assert_eq!(Float::classify(Dual::lift(tiny as f64)), FpCategory::Normal);
        assert!(Float::is_subnormal(Var::lift(DoubleDouble::from(1e-300))));
        assert!(Float::is_nan(<DualN<f64, 2> as Float>::nan()));
        assert!(FloatCore::is_infinite(-<Jet<f64, 1> as FloatCore>::infinity()));
    }

    #[test]
    fn a_zero_that_carries_a_derivative_is_not_zero() {
        assert!(Dual::lift(0.0).is_zero() && !x(0.0).is_zero());
        assert!((x(0.0) * x(0.0)).is_zero());
        assert!(!(Jet::<f64, 2>::variable(0.0) * Jet::variable(0.0)).is_zero());
        let nested = Dual::lift(x(0.0));
        assert!(!nested.is_zero());
        assert!(Dual::lift(1.0).is_one() && !x(1.0).is_one());
    }

    #[test]
    fn conversions_are_decisions_and_give_constants() {
        let (numbers, seen) = decision::watch(|| {
            let y = x(2.75);
            (
                ToPrimitive::to_i32(&y),
                y.to_f32(),
                <Dual<f64> as NumCast>::from(y).unwrap(),
                Float::integer_decode(y).2,
            )
        });
        assert_eq!((numbers.0, numbers.1, numbers.2.tangent), (Some(2), Some(2.75), 0.0));
        assert_eq!(seen.conversions, 4);
        let (_, seen) = decision::watch(|| Dual::lift(2.75).to_i32());
        assert_eq!(seen.count(), 0);
        let (_, seen) = decision::watch(|| (x(0.25).is_positive(), x(0.5).is_zero(), x(1.25).is_one()));
        assert_eq!((seen.comparisons, seen.smallest_margin), (3, 0.25));
    }

    #[test]
    fn wide_integers_reach_wide_numbers_exactly() {
        use ::num_traits::FromPrimitive;
        let n = (1_i64 << 60) + 1;
        let exact = Dual::<DoubleDouble>::from_i64(n).unwrap().value;
        assert_eq!((exact.hi(), exact.lo()), ((1_i64 << 60) as f64, 1.0));
        assert_eq!(Dual::<f64>::from_u64(u64::MAX).unwrap().value, u64::MAX as f64);
        assert_eq!(Dual::<f64>::from_u128(u128::MAX).unwrap().value, u128::MAX as f64);
        assert_eq!(Dual::<f32>::from_i32(-7).unwrap().value, -7.0);
    }
}
