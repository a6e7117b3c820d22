//! simba and approx: conversions, comparisons and lanes of every derivative number, for nalgebra.
//!
//! Input: nalgebra's generic algorithms. Output: the same algorithms, differentiated. `RealField` and
//! `ComplexField` themselves are in `nalgebra_field.rs`.
//!
//! A conversion from a primitive makes a constant. One to a primitive takes the primal; of an active value it
//! is a decision and goes through the hook. `==`, `abs_diff_eq` and their relatives compare primals.
//!
//! # What nalgebra's algorithms do to derivatives
//!
//! A decomposition is a program with branches: pivots are compared, small numbers are set to zero, iterations
//! stop when a test passes. The derivative follows the path that was taken. Where the *result* is smooth and
//! the path is not, part of a derivative can be lost. Two places are worth knowing:
//!
//! - **A column of zeros in a Householder step** (`symmetric_eigen`, `svd`, `hessenberg` of a matrix that
//!   already has zeros below the diagonal). The norm of the column has a corner there, so the first-order
//!   motion of the zeros is lost: it never moves a single eigenvalue or singular value, but it does turn
//!   eigenvectors, and it splits eigenvalues that coincide.
//! - **Deflation**: an off-diagonal entry below `epsilon` counts as zero, with its derivative. For distinct
//!   eigenvalues what is dropped is of second order. For coinciding ones it is all there is: the eigenvalues
//!   of `I + t sigma_x` at `t = 0` move by +1 and -1, and nalgebra's algorithm on any derivative number gives
//!   0 and 0.
//!
//! That 0 is not silent. The algorithm looks at the sign of the entry that it then drops (`to_exp`), or
//! compares it with `epsilon`; both are decisions by an active value, with a margin of zero or of rounding
//! size, and [`decision::watch`](crate::decision::watch) reports them:
//!
//! ```
//! use nalgebra::Matrix2;
//! use palinode_core::{Dual, decision};
//!
//! let (one, t) = (Dual::lift(1.0), Dual::new(0.0, 1.0));
//! let (values, seen) = decision::watch(|| Matrix2::new(one, t, t, one).symmetric_eigenvalues());
//! assert_eq!((values[0].tangent, values[1].tangent), (0.0, 0.0)); // should be -1 and 1, and
//! assert_eq!(seen.smallest_margin, 0.0); // this says that it is not to be trusted
//! ```
//!
//! A margin of exactly zero means that some decision stood on its edge. A margin of rounding size alone does
//! not: every iteration that converges ends with such a test. Symmetric functions of coinciding eigenvalues
//! (trace, determinant, `ln det` by Cholesky) are right in any case.
//!
//! A forward number reports a decision only while its tangent is not zero, and the square of a moving zero
//! has none: a guard on `v.norm_squared()` at `v = 0` (a rotation by a zero vector is one: nalgebra answers
//! with the constant identity) is seen on a `Var` and not on a `Dual`.
//!
//! Where a library asks `is_zero` of a zero that carries a derivative, the answer is no, so that it is not
//! skipped. A pivot that is zero only by accident then gives infinities or NaN; the drivers run again with
//! the answers of plain numbers, look at that from both sides, and give the derivative or name the decision
//! (PAL0119).

use super::FormatLimits;
use approx::{AbsDiffEq, RelativeEq, UlpsEq};
use simba::scalar::{Field, SubsetOf};
use simba::simd::{PrimitiveSimdValue, SimdValue};

macro_rules! subset_of_number {
    ($generics:tt [$Number:ty] each $($primitive:ident)*) => {
        $(subset_of_number! { $generics [$Number] $primitive })*
    };
    ([$($generics:tt)*] [$Number:ty] $primitive:ident) => {
        /// The inclusion makes a constant; the conversion back is a decision if the number is active.
        impl<$($generics)*> SubsetOf<$Number> for $primitive {
            #[inline]
            fn to_superset(&self) -> $Number {
                <$Number>::lift(S::from_f64(*self as f64))
            }
            #[inline]
            fn from_superset_unchecked(element: &$Number) -> Self {
                ::num_traits::AsPrimitive::as_(*element)
            }
            #[inline]
            fn is_in_subset(_: &$Number) -> bool {
                true
            }
        }
    };
}

macro_rules! nalgebra_support {
    ([$($generics:tt)*] $Number:ty) => {
        subset_of_number! { [$($generics)*] [$Number] each f32 f64 i8 i16 i32 i64 isize u8 u16 u32 u64 usize }

        impl<$($generics)*> SubsetOf<$Number> for $Number {
            #[inline(always)]
            fn to_superset(&self) -> Self {
                *self
            }
            #[inline(always)]
            fn from_superset_unchecked(element: &Self) -> Self {
                *element
            }
            #[inline(always)]
            fn is_in_subset(_: &Self) -> bool {
                true
            }
        }

        impl<$($generics)*> PrimitiveSimdValue for $Number {}

        impl<$($generics)*> Field for $Number {}

        impl<$($generics)*> SimdValue for $Number {
            const LANES: usize = 1;
            type Element = Self;
            type SimdBool = bool;

            #[inline(always)]
            fn splat(val: Self) -> Self {
                val
            }
            #[inline(always)]
            fn extract(&self, _: usize) -> Self {
                *self
            }
            #[inline(always)]
            #[allow(unsafe_code)] // simba declares it so; nothing unsafe happens
            unsafe fn extract_unchecked(&self, _: usize) -> Self {
                *self
            }
            #[inline(always)]
            fn replace(&mut self, _: usize, val: Self) {
                *self = val;
            }
            #[inline(always)]
            #[allow(unsafe_code)] // simba declares it so; nothing unsafe happens
            unsafe fn replace_unchecked(&mut self, _: usize, val: Self) {
                *self = val;
            }
            #[inline(always)]
            fn select(self, cond: bool, other: Self) -> Self {
                if cond { self } else { other }
            }
        }

        impl<$($generics)*> AbsDiffEq for $Number {
            type Epsilon = Self;
            #[inline]
            fn default_epsilon() -> Self {
                Self::lift(S::epsilon())
            }
            #[inline]
            fn abs_diff_eq(&self, other: &Self, epsilon: Self) -> bool {
                (*self - *other).abs() <= epsilon
            }
        }

        impl<$($generics)*> RelativeEq for $Number {
            #[inline]
            fn default_max_relative() -> Self {
                Self::lift(S::epsilon())
            }
            #[inline]
            fn relative_eq(&self, other: &Self, epsilon: Self, max_relative: Self) -> bool {
                if self == other {
                    return true; // also infinities
                }
                if !self.primal().is_so(f64::is_finite) || !other.primal().is_so(f64::is_finite) {
                    return false;
                }
                let difference = (*self - *other).abs();
                difference <= epsilon || difference <= self.abs().max(other.abs()) * max_relative
            }
        }

        impl<$($generics)*> UlpsEq for $Number {
            #[inline]
            fn default_max_ulps() -> u32 {
                4
            }
            /// Units in the last place of the larger number, taken as `epsilon` times it.
            #[inline]
            fn ulps_eq(&self, other: &Self, epsilon: Self, max_ulps: u32) -> bool {
                let ulps = Self::lift(S::epsilon() * S::from_f64(f64::from(max_ulps)));
                self.relative_eq(other, epsilon, ulps)
            }
        }
    };
}
super::for_each_number! { nalgebra_support! { FormatLimits } }
