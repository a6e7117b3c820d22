//! The limits of a number's format, which `Scalar` does not know because rules do not need them.

use crate::{Dual, DualN, Jet, Passive, Var};
use core::fmt::LowerExp;
use palinode_num::{DoubleDouble, Posit, PositWidth, Scalar};

/// A number with the limits of a floating-point format.
///
/// A derivative number has the limits of its inner number. Implement this for an own leaf number, and
/// `Var` and the forward numbers over it get num-traits' `Float` and nalgebra's `RealField`.
///
/// ```
/// use palinode_core::{DoubleDouble, Dual, FormatLimits, Real};
///
/// assert_eq!(Dual::<f32>::epsilon().value, f32::EPSILON);
/// assert_eq!(DoubleDouble::epsilon().to_f64(), 2f64.powi(-104));
/// ```
pub trait FormatLimits: Scalar<Bool = bool> + PartialOrd {
    /// The relative spacing of numbers next to 1.
    fn epsilon() -> Self;
    /// The largest finite number.
    fn largest() -> Self;
    /// The smallest positive number of full precision.
    fn smallest() -> Self;
}

macro_rules! primitive_limits {
    ($($float:ident)*) => {$(
        impl FormatLimits for $float {
            #[inline(always)]
            fn epsilon() -> Self {
                $float::EPSILON
            }
            #[inline(always)]
            fn largest() -> Self {
                $float::MAX
            }
            #[inline(always)]
            fn smallest() -> Self {
                $float::MIN_POSITIVE
            }
        }
    )*};
}
primitive_limits!(f32 f64);

impl FormatLimits for DoubleDouble {
    /// 2^-104, which every operation and function keeps to; `1 + x` can be held for far smaller `x`.
    fn epsilon() -> Self {
        DoubleDouble::from(f64::EPSILON * f64::EPSILON)
    }
    fn largest() -> Self {
        DoubleDouble::from_sum(f64::MAX, f64::MAX * (f64::EPSILON / 8.0))
    }
    /// 2^-969: below it the low part is subnormal.
    fn smallest() -> Self {
        DoubleDouble::from(f64::MIN_POSITIVE / f64::EPSILON * 2.0)
    }
}

impl<W: PositWidth> FormatLimits for Posit<W> {
    /// `2^(5 - BITS)`. Precision is that high from 1/16 to 16, and falls from there on both sides.
    fn epsilon() -> Self {
        Posit::ONE.next_up() - Posit::ONE
    }
    fn largest() -> Self {
        Posit::MAX
    }
    /// The smallest of all: precision tapers, and there is no other border to name.
    fn smallest() -> Self {
        Posit::MIN_POSITIVE
    }
}

macro_rules! inherited_limits {
    ([$($generics:tt)*] $Number:ty) => {
        impl<$($generics)*> FormatLimits for $Number {
            #[inline(always)]
            fn epsilon() -> Self {
                Self::lift(S::epsilon())
            }
            #[inline(always)]
            fn largest() -> Self {
                Self::lift(S::largest())
            }
            #[inline(always)]
            fn smallest() -> Self {
                Self::lift(S::smallest())
            }
        }
    };
}
super::for_each_number! { inherited_limits! { FormatLimits } }

// Solvers print their progress as `{:e}`. The parts are those of `Display`.

impl<S: Scalar + LowerExp> LowerExp for Dual<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        crate::decision::looked(|| self.is_active());
        LowerExp::fmt(&self.value, f)?;
        f.write_str(" + ")?;
        LowerExp::fmt(&self.tangent, f)?;
        f.write_str("ε")
    }
}

impl<S: Scalar + LowerExp, const N: usize> LowerExp for DualN<S, N> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        crate::decision::looked(|| self.is_active());
        LowerExp::fmt(&self.value, f)?;
        for (i, tangent) in self.tangents.iter().enumerate() {
            f.write_str(" + ")?;
            LowerExp::fmt(tangent, f)?;
            write!(f, "ε{}", i + 1)?;
        }
        Ok(())
    }
}

impl<S: Scalar + LowerExp, const K: usize> LowerExp for Jet<S, K> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        crate::decision::looked(|| self.is_active());
        LowerExp::fmt(&self.primal(), f)?;
        for k in 1..=K {
            f.write_str(" + ")?;
            LowerExp::fmt(&self.coefficient(k), f)?;
            write!(f, "t^{k}")?;
        }
        Ok(())
    }
}

impl<S: Scalar<Bool = bool> + LowerExp> LowerExp for Var<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        crate::decision::looked(|| self.is_active());
        LowerExp::fmt(&self.primal(), f)
    }
}

impl<S: Scalar + LowerExp> LowerExp for Passive<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        crate::decision::looked(|| self.is_active());
        LowerExp::fmt(&self.primal(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palinode_num::Real;

    #[test]
    fn the_limits_of_a_double_double_are_its_own() {
        let one = DoubleDouble::one();
        assert_eq!(((one + DoubleDouble::epsilon()) - one).to_f64(), 2f64.powi(-104));
        let largest = DoubleDouble::largest();
        assert!(largest.is_finite() && largest.lo() > 0.0);
        assert!(!(largest * 1.000_000_1).is_finite());
        assert_eq!(DoubleDouble::smallest().to_f64(), 2f64.powi(-969));
    }

    #[test]
    fn derivative_numbers_inherit_limits_and_exponents() {
        assert_eq!(Var::<f32>::epsilon().primal(), f32::EPSILON);
        assert_eq!(DualN::<DoubleDouble, 2>::largest().value, DoubleDouble::largest());
        assert_eq!(Jet::<Dual<f64>, 2>::smallest().primal().value, f64::MIN_POSITIVE);
        assert_eq!(format!("{:.1e}", Dual::new(1500.0, -2.0)), "1.5e3 + -2.0e0ε");
        assert_eq!(format!("{:e}", DualN::new(1500.0, [2.0, 0.5])), "1.5e3 + 2e0ε1 + 5e-1ε2");
        assert_eq!(format!("{:e}", Jet::new(1500.0, [2.0])), "1.5e3 + 2e0t^1");
        assert_eq!(format!("{:e}", Var::lift(1500.0)), "1.5e3");
    }
}
