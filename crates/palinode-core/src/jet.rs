//! Higher derivatives of functions of one variable: truncated Taylor series.
//!
//! Input: the Taylor coefficients of the arguments. Output: those of the result, to the same order.
//!
//! With `z = f(x)` the rule table gives `z' = f'(x) x'`; comparing coefficients,
//! `k z_k = sum_j j x_j p_(k-j)` where `p` are the coefficients of the rule's own partial, evaluated on jets.
//! A partial that looks at the result is evaluated anew for each order, because each needs the coefficients
//! of `z` below it; any other is evaluated once. Products and quotients use their direct recurrences
//! (Griewank and Walther, *Evaluating Derivatives*, ch. 13).
//!
//! Invariant: coefficients above `known` are zero and mean nothing; they appear only while a result is being
//! built.

use crate::number::{Show, derivative_number, forward_number, show_parts};
use crate::rules::{Binary, Differentiable, Ternary, Unary};
use core::fmt::{self, Formatter};
use palinode_num::Scalar;

/// A number with its Taylor coefficients up to order `K`.
///
/// ```
/// use palinode_core::Jet;
///
/// let x = Jet::<f64, 3>::variable(0.0);
/// assert_eq!(x.exp().derivatives(), [1.0, 1.0, 1.0, 1.0]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Jet<S, const K: usize> {
    value: S,
    /// Coefficients of order 1, 2, ..., `K`.
    higher: [S; K],
    /// Up to which order the coefficients have been computed.
    pub(crate) known: usize,
}

impl<S: Scalar, const K: usize> Jet<S, K> {
    /// A constant: all its higher coefficients are zero.
    #[inline(always)]
    pub fn lift(value: S) -> Self {
        Jet { value, higher: [S::zero(); K], known: K }
    }
    /// The independent variable at this point: its first derivative is one.
    pub fn variable(value: S) -> Self {
        let mut x = Jet::lift(value);
        if K > 0 {
            x.higher[0] = S::one();
        }
        x
    }
    /// A curve with these Taylor coefficients of order 1, 2, ... (derivatives divided by factorials).
    pub fn new(value: S, higher: [S; K]) -> Self {
        Jet { value, higher, known: K }
    }
    /// The primal.
    #[inline(always)]
    pub fn primal(self) -> S {
        self.value
    }
    /// The Taylor coefficient of order `k`.
    ///
    /// # Panics
    /// If `k` is larger than `K`.
    #[inline(always)]
    pub fn coefficient(&self, k: usize) -> S {
        if k == 0 { self.value } else { self.higher[k - 1] }
    }
    /// The value and the derivatives of order 1 to `K`.
    pub fn derivatives(&self) -> Vec<S> {
        let mut factorial = S::one();
        let mut all = vec![self.value];
        for (k, &coefficient) in self.higher.iter().enumerate() {
            factorial = factorial * S::from_int(k as i32 + 1);
            all.push(coefficient * factorial);
        }
        all
    }
    /// Whether any higher coefficient can be anything but zero.
    #[inline(always)]
    pub fn is_active(self) -> bool {
        self.higher.iter().any(|c| !c.vanishes())
    }
    /// The same of any sample: nothing is decided by it.
    #[inline(always)]
    fn moves(self) -> bool {
        self.higher.iter().any(|c| !c.vanishes_everywhere())
    }
    #[inline(always)]
    fn resting(self) -> S::Bool {
        let none = S::zero().equal(S::zero());
        self.higher.iter().fold(none, |rest, c| rest & c.vanishing())
    }
    #[inline(always)]
    fn pick(condition: S::Bool, a: Self, b: Self) -> Self {
        Jet {
            value: S::select(condition, a.value, b.value),
            higher: core::array::from_fn(|i| S::select(condition, a.higher[i], b.higher[i])),
            known: a.known.min(b.known),
        }
    }
    fn show(&self, f: &mut Formatter<'_>, show: Show<S>) -> fmt::Result {
        show_parts(f, show, &self.value, &self.higher, |f, k| write!(f, "t^{k}"))
    }

    /// The same curve, known only up to order `k`.
    pub(crate) fn up_to(mut self, k: usize) -> Self {
        self.known = self.known.min(k);
        for coefficient in &mut self.higher[self.known..] {
            *coefficient = S::zero();
        }
        self
    }

    /// `sum_j j x_j p_(k-j)`: what the argument `x` with partial `p` contributes to `k z_k`.
    fn contribution(x: &Self, p: &Self, k: usize) -> S {
        (1..=k).fold(S::zero(), |sum, j| {
            let (slope, partial) = (x.coefficient(j), p.coefficient(k - j));
            let more = || sum + S::from_int(j as i32) * slope.strong_mul(partial);
            // Not by `where_it_vanishes`, which here is slower for plain numbers.
            match const { S::LANES > 1 } {
                true => slope.where_it_vanishes(|| sum, more),
                false if slope.vanishes() => sum,
                false => more(),
            }
        })
    }
}

/// One argument of a rule while the result is being built: the curve, and its partial if that is known
/// already.
struct Argument<'a, S, const K: usize> {
    x: &'a Jet<S, K>,
    partial: Option<Jet<S, K>>,
    compute: &'a dyn Fn(usize, Jet<S, K>) -> Jet<S, K>,
}

impl<'a, S: Scalar, const K: usize> Argument<'a, S, K> {
    /// `compute(k, z)` evaluates the partial up to order `k`, given `z` up to there.
    fn new(
        x: &'a Jet<S, K>,
        uses_z: bool,
        order: usize,
        compute: &'a dyn Fn(usize, Jet<S, K>) -> Jet<S, K>,
    ) -> Option<Self> {
        let partial = || compute(order.saturating_sub(1), Jet::lift(S::zero()));
        x.moves().then(|| Argument { x, partial: (!uses_z).then(partial), compute })
    }
}

/// Builds the result order by order from its arguments.
fn compose<S: Scalar, const K: usize, const N: usize>(
    value: S,
    order: usize,
    mut arguments: [Option<Argument<'_, S, K>>; N],
) -> Jet<S, K> {
    let mut z = Jet { value, higher: [S::zero(); K], known: 0 };
    for k in 1..=order {
        let mut sum = S::zero();
        for argument in arguments.iter_mut().flatten() {
            let partial = argument.partial.unwrap_or_else(|| (argument.compute)(k - 1, z));
            sum = sum + Jet::contribution(argument.x, &partial, k);
        }
        z.higher[k - 1] = sum / S::from_int(k as i32);
        z.known = k;
    }
    z
}

impl<S: Scalar, const K: usize> Differentiable for Jet<S, K> {
    fn unary<R: Unary>(rule: R, x: Self) -> Self {
        if x.moves() {
            crate::decision::rounded_by(rule, x);
        }
        let dx = |k: usize, z: Self| rule.dx(x.up_to(k), z);
        compose(rule.value(x.value), x.known, [Argument::new(&x, R::DX_USES_Z, x.known, &dx)])
    }

    fn binary<R: Binary>(rule: R, x: Self, y: Self) -> Self {
        if x.moves() || y.moves() {
            crate::decision::rounded_by_two(rule, x, y);
        }
        let order = x.known.min(y.known);
        let dx = |k: usize, z: Self| rule.dx(x.up_to(k), y.up_to(k), z);
        let dy = |k: usize, z: Self| rule.dy(x.up_to(k), y.up_to(k), z);
        let x_part = Argument::new(&x, R::DX_USES_Z, order, &dx);
        let y_part = Argument::new(&y, R::DY_USES_Z, order, &dy);
        compose(rule.value(x.value, y.value), order, [x_part, y_part])
    }

    fn ternary<R: Ternary>(rule: R, x: Self, y: Self, w: Self) -> Self {
        let order = x.known.min(y.known).min(w.known);
        let dx = |k: usize, z: Self| rule.dx(x.up_to(k), y.up_to(k), w.up_to(k), z);
        let dy = |k: usize, z: Self| rule.dy(x.up_to(k), y.up_to(k), w.up_to(k), z);
        let dw = |k: usize, z: Self| rule.dw(x.up_to(k), y.up_to(k), w.up_to(k), z);
        let x_part = Argument::new(&x, true, order, &dx);
        let y_part = Argument::new(&y, true, order, &dy);
        let w_part = Argument::new(&w, true, order, &dw);
        compose(rule.value(x.value, y.value, w.value), order, [x_part, y_part, w_part])
    }

    fn product(x: Self, y: Self) -> Self {
        let known = x.known.min(y.known);
        let mut z = Jet { value: x.value * y.value, higher: [S::zero(); K], known };
        for k in 1..=known {
            z.higher[k - 1] =
                (0..=k).fold(S::zero(), |sum, j| x.coefficient(j).strong_add_to(y.coefficient(k - j), sum));
        }
        z
    }

    fn quotient(x: Self, y: Self) -> Self {
        let known = x.known.min(y.known);
        let mut z = Jet { value: x.value / y.value, higher: [S::zero(); K], known };
        for k in 1..=known {
            // x = z y, so z_k y_0 = x_k - sum over j >= 1 of y_j z_(k-j).
            let rest = (1..=k).fold(x.coefficient(k), |sum, j| {
                (-y.coefficient(j)).strong_add_to(z.coefficient(k - j), sum)
            });
            z.higher[k - 1] = rest.where_it_vanishes(|| rest, || rest / y.value);
        }
        z
    }
}

derivative_number! { [S: Scalar, const K: usize] Jet<S, K> }
forward_number! { [S: Scalar, const K: usize] Jet<S, K> }
