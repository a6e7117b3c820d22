//! Whether a number still carries a derivative: what `is_zero` and `is_one` ask before they say yes.
//!
//! Forward numbers know: a tangent vanishes or not. A `Var` knows its pending partials and has to look at the
//! tape for the rest: it carries nothing if every path to an input crosses a partial of zero.

use crate::{Dual, DualN, Jet, Passive, Var};
use palinode_num::Scalar;

/// See the module's documentation.
pub(super) trait Carry {
    /// Whether leaving this number's derivative out could change a derivative. May say yes without need.
    fn carries(&self) -> bool;
}

impl<S: Scalar> Carry for Dual<S> {
    fn carries(&self) -> bool {
        self.is_active()
    }
}

impl<S: Scalar, const N: usize> Carry for DualN<S, N> {
    fn carries(&self) -> bool {
        self.is_active()
    }
}

impl<S: Scalar, const K: usize> Carry for Jet<S, K> {
    fn carries(&self) -> bool {
        self.is_active()
    }
}

impl<S: Scalar<Bool = bool>> Carry for Var<S> {
    fn carries(&self) -> bool {
        self.carries_derivative()
    }
}

/// It has no derivative to lose. (And nalgebra tells by `is_zero` that memory need not be read: a zero must
/// be one.)
impl<S: Scalar> Carry for Passive<S> {
    fn carries(&self) -> bool {
        false
    }
}
