//! A number that only computes, the way an active number would.
//!
//! Input: a primal. Output: the same computation, bit for bit what the primal of a `Var` or a `Dual` is, and
//! nothing else.
//!
//! Why not the inner number itself: generic libraries take other paths for `f64` than for a wrapper
//! (nalgebra's matrix product does), so a loop that is advanced in `f64` and recorded with `Var`s can differ
//! in the last bit. A `Passive<f64>` takes the wrapper's path at the speed of `f64`, and its decisions pass
//! the hook as those of an active number do.

use crate::number::{Show, derivative_number};
use crate::rules::{Binary, Differentiable, Ternary, Unary};
use core::fmt::{self, Formatter};
use palinode_num::Scalar;

/// A number without a derivative that behaves like one with: for advancing a loop whose steps are recorded
/// elsewhere.
///
/// ```
/// use palinode_core::{Passive, decision};
///
/// let x = Passive::new(3.0);
/// let (above, seen) = decision::watch(|| x * 2.0 > 5.0);
/// assert!(above);
/// assert_eq!((seen.comparisons, seen.smallest_margin), (1, 1.0));
/// ```
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Passive<S>(S);

impl<S: Scalar> Passive<S> {
    /// The number with this primal.
    #[inline(always)]
    pub fn new(value: S) -> Self {
        Passive(value)
    }
    /// The same as [`Passive::new`]: there is nothing but the primal.
    #[inline(always)]
    pub fn lift(value: S) -> Self {
        Passive(value)
    }
    /// The primal.
    #[inline(always)]
    pub fn primal(self) -> S {
        self.0
    }
    /// Always: it stands for an active number, so its decisions count and its zeros are not skipped.
    #[inline(always)]
    pub fn is_active(self) -> bool {
        true
    }
    #[inline(always)]
    fn resting(self) -> S::Bool {
        S::zero().less(S::zero())
    }
    /// It is active or a constant.
    const MAY_REST: bool = false;
    #[inline(always)]
    fn check_use(self, _other: Self) {}
    #[inline(always)]
    fn note_asked(self) {}
    #[inline(always)]
    fn pick(condition: S::Bool, a: Self, b: Self) -> Self {
        Passive(S::select(condition, a.0, b.0))
    }
    /// It has none to lose. (And nalgebra tells by `is_zero` that memory need not be read: a zero must be
    /// one.)
    fn carries_derivative(self) -> bool {
        false
    }
    fn show(&self, f: &mut Formatter<'_>, show: Show<S>) -> fmt::Result {
        show(&self.0, f)
    }
}

impl<S: Scalar> Differentiable for Passive<S> {
    #[inline(always)]
    fn unary<R: Unary>(rule: R, x: Self) -> Self {
        crate::decision::rounded_by(rule, x);
        Passive(rule.value(x.0))
    }

    #[inline(always)]
    fn binary<R: Binary>(rule: R, x: Self, y: Self) -> Self {
        crate::decision::rounded_by_two(rule, x, y);
        Passive(rule.value(x.0, y.0))
    }

    #[inline(always)]
    fn ternary<R: Ternary>(rule: R, x: Self, y: Self, w: Self) -> Self {
        Passive(rule.value(x.0, y.0, w.0))
    }
}

derivative_number! { [S: Scalar] Passive<S>, scalar {
    fn sum_over(count: usize, term: impl Fn(usize) -> Self) -> Self {
        Passive(S::sum_over(count, |place| term(place).0))
    }
    fn dot_over(count: usize, pair: impl Fn(usize) -> (Self, Self)) -> Self {
        Passive(S::dot_over(count, |place| primals(pair(place))))
    }
    fn chain_over(start: Self, count: usize, pair: impl Fn(usize) -> (Self, Self)) -> Self {
        Passive(S::chain_over(start.0, count, |place| primals(pair(place))))
    }
} }

fn primals<S>((a, b): (Passive<S>, Passive<S>)) -> (S, S) {
    (a.0, b.0)
}

/// From minus zero, like the sum of `Var`s.
impl<S: Scalar> core::iter::Sum for Passive<S> {
    #[inline]
    fn sum<I: Iterator<Item = Self>>(terms: I) -> Self {
        Passive(terms.fold(-S::zero(), |sum, term| sum + term.0))
    }
}
