//! Forward mode in one direction: a primal with its tangent.
//!
//! Input: a primal and a tangent. Output: the same computation with both. Follows the rule table; a tangent
//! of zero times any partial is zero (strong zero). `Dual<Dual<S>>` and `Dual<Var<S>>` nest: each level is a
//! type of its own, so two perturbations cannot be taken for one another.

use crate::number::{Show, derivative_number, forward_number, show_parts};
use crate::rules::{Binary, Differentiable, Ternary, Unary};
use core::fmt::{self, Formatter};
use palinode_num::Scalar;

/// A number and its derivative in one direction.
///
/// ```
/// use palinode_core::Dual;
///
/// let x = Dual::new(3.0, 1.0);
/// let y = x * x + 2.0 * x;
/// assert_eq!((y.value, y.tangent), (15.0, 8.0));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Dual<S> {
    /// The primal.
    pub value: S,
    /// The derivative of the primal in the chosen direction.
    pub tangent: S,
}

impl<S: Scalar> Dual<S> {
    /// A number with its tangent.
    #[inline(always)]
    pub fn new(value: S, tangent: S) -> Self {
        Dual { value, tangent }
    }
    /// A constant of this level: its tangent is zero.
    #[inline(always)]
    pub fn lift(value: S) -> Self {
        Dual { value, tangent: S::zero() }
    }
    /// The primal.
    #[inline(always)]
    pub fn primal(self) -> S {
        self.value
    }
    /// Whether the tangent can be anything but zero.
    #[inline(always)]
    pub fn is_active(self) -> bool {
        !self.tangent.vanishes()
    }
    /// The same of any sample: nothing is decided by it.
    #[inline(always)]
    fn moves(self) -> bool {
        !self.tangent.vanishes_everywhere()
    }
    #[inline(always)]
    fn resting(self) -> S::Bool {
        self.tangent.vanishing()
    }
    #[inline(always)]
    fn pick(condition: S::Bool, a: Self, b: Self) -> Self {
        Dual {
            value: S::select(condition, a.value, b.value),
            tangent: S::select(condition, a.tangent, b.tangent),
        }
    }
    fn show(&self, f: &mut Formatter<'_>, show: Show<S>) -> fmt::Result {
        show_parts(f, show, &self.value, core::slice::from_ref(&self.tangent), |f, _| f.write_str("ε"))
    }
}

impl<S: Scalar> Differentiable for Dual<S> {
    #[inline(always)]
    fn unary<R: Unary>(rule: R, x: Self) -> Self {
        if !x.moves() {
            return Self::lift(rule.value(x.value));
        }
        crate::decision::rounded_by(rule, x);
        let (z, dz) = rule.value_and_dx(x.value);
        Dual { value: z, tangent: x.tangent.carried(dz) }
    }

    #[inline(always)]
    fn binary<R: Binary>(rule: R, x: Self, y: Self) -> Self {
        let z = rule.value(x.value, y.value);
        if x.moves() || y.moves() {
            crate::decision::rounded_by_two(rule, x, y);
        }
        let mut tangent = S::zero();
        if x.moves() {
            tangent = x.tangent.carried(rule.dx(x.value, y.value, z));
        }
        if y.moves() {
            tangent = y.tangent.carried_onto(rule.dy(x.value, y.value, z), tangent);
        }
        Dual { value: z, tangent }
    }

    #[inline(always)]
    fn ternary<R: Ternary>(rule: R, x: Self, y: Self, w: Self) -> Self {
        let z = rule.value(x.value, y.value, w.value);
        let mut tangent = S::zero();
        if x.moves() {
            tangent = x.tangent.carried(rule.dx(x.value, y.value, w.value, z));
        }
        if y.moves() {
            tangent = y.tangent.carried_onto(rule.dy(x.value, y.value, w.value, z), tangent);
        }
        if w.moves() {
            tangent = w.tangent.carried_onto(rule.dw(x.value, y.value, w.value, z), tangent);
        }
        Dual { value: z, tangent }
    }
}

derivative_number! { [S: Scalar] Dual<S>, scalar {
    fn chain_over(start: Self, count: usize, pair: impl Fn(usize) -> (Self, Self)) -> Self {
        let primals = |(a, b): (Self, Self)| (a.value, b.value);
        let value = S::chain_over(start.value, count, |place| primals(pair(place)));
        let tangent = (0..count).map(pair).fold(start.tangent, |sum, (a, b)| sum + (a * b).tangent);
        Dual { value, tangent }
    }
} }
forward_number! { [S: Scalar] Dual<S> }
