//! The limits of a number's format, which `Scalar` does not know because rules do not need them.

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

macro_rules! limits {
    ([$($generics:tt)*] $Number:ty { $($(#[$doc:meta])* $limit:ident: $value:expr),+ $(,)? }) => {
        impl<$($generics)*> FormatLimits for $Number {$(
            $(#[$doc])*
            #[inline]
            fn $limit() -> Self {
                $value
            }
        )+}
    };
    ([$($generics:tt)*] $Number:ty) => {
        limits! { [$($generics)*] $Number {
            epsilon: Self::lift(S::epsilon()),
            largest: Self::lift(S::largest()),
            smallest: Self::lift(S::smallest()),
        }}
    };
}
limits! { [] f32 { epsilon: f32::EPSILON, largest: f32::MAX, smallest: f32::MIN_POSITIVE } }
limits! { [] f64 { epsilon: f64::EPSILON, largest: f64::MAX, smallest: f64::MIN_POSITIVE } }
limits! { [] DoubleDouble {
    /// 2^-104, which every operation and function keeps to; `1 + x` can be held for far smaller `x`.
    epsilon: DoubleDouble::from(f64::EPSILON * f64::EPSILON),
    largest: DoubleDouble::from_sum(f64::MAX, f64::MAX * (f64::EPSILON / 8.0)),
    /// 2^-969: below it the low part is subnormal.
    smallest: DoubleDouble::from(f64::MIN_POSITIVE / f64::EPSILON * 2.0),
}}
limits! { [W: PositWidth] Posit<W> {
    /// `2^(5 - BITS)`. Precision is that high from 1/16 to 16, and falls from there on both sides.
    epsilon: Posit::ONE.next_up() - Posit::ONE,
    largest: Posit::MAX,
    /// The smallest of all: precision tapers, and there is no other border to name.
    smallest: Posit::MIN_POSITIVE,
}}
super::for_each_number! { limits! { FormatLimits } }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dual, DualN, Jet, Var};
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
