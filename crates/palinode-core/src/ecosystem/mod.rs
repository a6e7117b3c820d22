//! The traits that the rest of the ecosystem writes generic code in, for every derivative number.
//!
//! Input: third-party code, generic over num-traits' `Float` or nalgebra's `RealField`. Output: the same
//! code, unmodified, on [`Dual`](crate::Dual), [`DualN`](crate::DualN), [`Jet`](crate::Jet) and
//! [`Var`](crate::Var), hence differentiated, and on [`Passive`](crate::Passive).
//!
//! | file | holds |
//! |---|---|
//! | `limits.rs` | [`FormatLimits`]: what a format's epsilon and largest number are |
//! | `num_traits.rs`, `num_float.rs` | num-traits: identities and conversions, `Float` and its constants |
//! | `nalgebra.rs`, `nalgebra_field.rs` | simba and approx: conversions and comparisons, `RealField` (feature `nalgebra`) |
//!
//! Invariants: there is no derivative formula here, every function is a row of the rule table; every
//! comparison, rounding and conversion of an active value passes the hook in [`decision`](crate::decision).
//!
//! Where a library decides by `is_zero`, a zero that carries a derivative is *not* zero: an algorithm that
//! skips zeros may not skip it.

mod limits;
mod num_float;
mod num_traits;

#[cfg(feature = "nalgebra")]
mod nalgebra;
#[cfg(feature = "nalgebra")]
mod nalgebra_field;

pub use limits::FormatLimits;

/// Hands each derivative number to the macro `$then`, with the bounds on its inner number `S`.
macro_rules! for_each_number {
    ($then:ident! { $($bounds:tt)* }) => {
        $then! { [S: $($bounds)*] crate::Dual<S> }
        $then! { [S: $($bounds)*, const N: usize] crate::DualN<S, N> }
        $then! { [S: $($bounds)*, const K: usize] crate::Jet<S, K> }
        $then! { [S: $($bounds)*] crate::Var<S> }
        $then! { [S: $($bounds)*] crate::Passive<S> }
    };
}
use for_each_number;

/// Methods that are rows of the rule table under the same name.
macro_rules! rows {
    ([$Number:ty] $($function:ident($($argument:ident: $kind:ty),*))*) => {$(
        #[inline]
        fn $function(self, $($argument: $kind),*) -> Self {
            <$Number>::$function(self, $($argument),*)
        }
    )*};
}
use rows;
