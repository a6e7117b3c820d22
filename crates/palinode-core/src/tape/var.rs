//! `Var`: the number that records.
//!
//! Input: ordinary arithmetic. Output: nodes on the tape, as few as possible.
//!
//! A handle carries its value and a *pending* linear form in at most two tape nodes:
//! `d value = p0 d node0 + p1 d node1`. An operation multiplies partials into that form and writes nothing,
//! until a result would depend on three or more nodes; then the result becomes a node with those edges, and
//! its handle points to it. So a chain of unary operations costs no memory, `x = sin(x) * a + b` costs one
//! node, and a loop that depends on two nodes only costs none. This is preaccumulation (Griewank and Walther,
//! *Evaluating Derivatives*, ch. 10), done while recording; it needs no knowledge of how often a `Copy`
//! handle is used, because every copy carries the whole form.
//!
//! Invariants: `parents[0] == SINK` exactly if nothing is pending (a constant), then `parents[1] == SINK` and
//! the partials are zero; `parents[0] > parents[1]` otherwise. On a traced tape every operation is a node.

use super::arena::SINK;
use super::recorder::Entry;
use super::scope::{Invariant, Open, with_recorder};
use super::stamp::Stamp;
use crate::number::{Show, derivative_number};
use crate::rules::{Binary, Differentiable, Ternary, Unary};
use core::fmt::{self, Formatter};
use palinode_num::{Logic, Scalar};

/// A number whose operations are recorded on a [`Tape`](crate::Tape).
///
/// It behaves like an `f64`: `Copy`, literals on either side, `+=`, comparisons, every function of the rule
/// table. It is also `Send` and `Sync`, because generic libraries ask for that; using one outside the closure
/// that records it, on another thread or together with a `Var` of another tape panics with both names.
///
/// ```
/// use palinode_core::value_and_grad;
///
/// let (y, g) = value_and_grad(|x| 2.0 * x[0].sin() + x[0] * x[1], &[0.0, 3.0]).unwrap();
/// assert_eq!((y, g), (0.0, vec![5.0, 0.0]));
/// ```
#[derive(Clone, Copy)]
pub struct Var<S> {
    value: S,
    partials: [S; 2],
    parents: [u32; 2],
    stamp: Stamp,
    number: Invariant<S>,
}

impl<S: Scalar> Var<S> {
    /// A constant of this level: nothing is recorded for it.
    #[inline(always)]
    pub fn lift(value: S) -> Self {
        Var::made(value, [S::zero(); 2], [SINK; 2], Stamp::NONE)
    }
    /// The primal.
    #[inline(always)]
    pub fn primal(self) -> S {
        self.value
    }
    /// The primal; the same as [`Var::primal`].
    #[inline(always)]
    pub fn value(self) -> S {
        self.value
    }
    /// Whether it depends on an input of its tape.
    #[inline(always)]
    pub fn is_active(self) -> bool {
        self.parents[0] != SINK
    }
    /// It is active or a constant.
    const MAY_REST: bool = false;
    /// Panics unless both belong to one tape that is open here.
    #[inline(always)]
    fn check_use(self, other: Self) {
        self.stamp.join(other.stamp).check();
    }
    /// Someone asked whether it depends on anything, which forward numbers answer by their values.
    #[inline(always)]
    fn note_asked(self) {
        crate::decision::looked(|| self.is_active());
    }
    /// No input moves it.
    #[inline(always)]
    fn resting(self) -> S::Bool {
        if self.is_active() { S::zero().less(S::zero()) } else { S::zero().equal(S::zero()) }
    }
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pick(condition: S::Bool, a: Self, b: Self) -> Self {
        match condition.known() {
            Some(true) => a,
            Some(false) => b,
            None => Var::pick_by_lane(condition, a, b),
        }
    }
    /// Lanes pick differently. Where both depend on the same nodes, so does what they pick; otherwise a
    /// recording of one lane would have other edges than that of another, and they decide.
    #[cold]
    fn pick_by_lane(condition: S::Bool, a: Self, b: Self) -> Self {
        let stamp = a.stamp.join(b.stamp);
        stamp.check();
        if a.parents == b.parents {
            let partial = |which: usize| S::select(condition, a.partials[which], b.partials[which]);
            let value = S::select(condition, a.value, b.value);
            return Var::made(value, [partial(0), partial(1)], a.parents, stamp);
        }
        if condition.decided().expect("numbers on a tape are no symbols") { a } else { b }
    }
    fn show(&self, f: &mut Formatter<'_>, show: Show<S>) -> fmt::Result {
        show(&self.value, f)
    }

    #[inline(always)]
    fn made(value: S, partials: [S; 2], parents: [u32; 2], stamp: Stamp) -> Self {
        Var { value, partials, parents, stamp, number: core::marker::PhantomData }
    }

    /// The handle of a node.
    #[inline(always)]
    pub(crate) fn of_node(value: S, node: u32, stamp: Stamp) -> Self {
        Var::made(value, [S::one(), S::zero()], [node, SINK], stamp)
    }

    /// A pending form of one or two parents and their partials, in any order.
    pub(crate) fn of_form(value: S, first: (u32, S), second: (u32, S), stamp: Stamp) -> Self {
        let ((i, p), (j, q)) = if first.0 >= second.0 { (first, second) } else { (second, first) };
        if i == j {
            return Var::made(value, [p + q, S::zero()], [i, SINK], stamp);
        }
        Var::made(value, [p, q], [i, j], stamp)
    }

    #[inline(always)]
    pub(crate) fn stamp(self) -> Stamp {
        self.stamp
    }

    #[inline(always)]
    pub(crate) fn parents(self) -> [u32; 2] {
        self.parents
    }

    #[inline(always)]
    pub(crate) fn partials(self) -> [S; 2] {
        self.partials
    }

    /// How many nodes the pending form has.
    #[inline(always)]
    pub(crate) fn pending_count(self) -> usize {
        usize::from(self.parents[0] != SINK) + usize::from(self.parents[1] != SINK)
    }

    /// A node whose value this is; writes one if there is none yet. [`SINK`] for a constant.
    pub(crate) fn node(self) -> u32 {
        if !self.is_active() {
            return SINK;
        }
        if self.parents[1] == SINK && (self.partials[0] - S::one()).vanishes() {
            return self.parents[0];
        }
        with_recorder(self.stamp, |recorder| match self.parents[1] {
            SINK => recorder.arena.push([self.parents[0]], [self.partials[0]]),
            _ => recorder.arena.push(self.parents, self.partials),
        })
    }

    /// The result `z` of a function of this one argument with derivative `dz`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn chain(self, stamp: Stamp, z: S, dz: S) -> Self {
        if const { S::LANES > 1 } && self.parents[1] == SINK {
            // Of a number of several samples, half of the products is worth a branch.
            return Var::made(z, [self.partials[0].strong_mul(dz), self.partials[1]], self.parents, stamp);
        }
        Var::made(z, scaled(self.partials, dz), self.parents, stamp)
    }
}

#[cfg_attr(not(debug_assertions), inline(always))]
fn scaled<S: Scalar>([p, q]: [S; 2], factor: S) -> [S; 2] {
    S::strong_mul_pair(p, factor, q, factor).into()
}

/// The result `z` of a function of two active arguments with partials `da` and `db`.
#[cfg_attr(not(debug_assertions), inline(always))]
fn merge<S: Scalar>(stamp: Stamp, open: Open<S>, z: S, a: Var<S>, da: S, b: Var<S>, db: S) -> Var<S> {
    let pending = |parents, partials| Var::made(z, partials, parents, stamp);
    let [i0, i1] = a.parents;
    let [j0, j1] = b.parents;
    if i1 | j1 == SINK {
        let (p, q) = S::strong_mul_pair(a.partials[0], da, b.partials[0], db);
        return if i0 > j0 {
            pending([i0, j0], [p, q])
        } else if i0 < j0 {
            pending([j0, i0], [q, p])
        } else {
            pending([i0, SINK], [p + q, S::zero()])
        };
    }
    if a.parents == b.parents {
        let ([p0, p1], [q0, q1]) = (scaled(a.partials, da), scaled(b.partials, db));
        return pending(a.parents, [p0 + q0, p1 + q1]);
    }
    let node = if j1 == SINK {
        let q = b.partials[0].strong_mul(db);
        let [p0, p1] = scaled(a.partials, da);
        if j0 == i0 {
            return pending(a.parents, [p0 + q, p1]);
        }
        if j0 == i1 {
            return pending(a.parents, [p0, p1 + q]);
        }
        // Not rare where it happens, but it takes longer than what comes before, and waits for nothing.
        core::hint::cold_path();
        write3(open, i0, i1, j0, p0, p1, q)
    } else if i1 == SINK {
        let p = a.partials[0].strong_mul(da);
        let [q0, q1] = scaled(b.partials, db);
        if i0 == j0 {
            return pending(b.parents, [p + q0, q1]);
        }
        if i0 == j1 {
            return pending(b.parents, [q0, p + q1]);
        }
        core::hint::cold_path();
        write3(open, i0, j0, j1, p, q0, q1)
    } else {
        let ([p0, p1], [q0, q1]) = (scaled(a.partials, da), scaled(b.partials, db));
        write_merged(open, a.parents, b.parents, p0, p1, q0, q1)
    };
    Var::of_node(z, node, stamp)
}

/// A node with three parents. Inlined: a call, even one that is not made, would have a loop keep what it
/// carries in memory.
#[cfg_attr(not(debug_assertions), inline(always))]
fn write3<S: Scalar>(open: Open<S>, i: u32, j: u32, k: u32, p: S, q: S, r: S) -> u32 {
    open.push([i, j, k], [p, q, r])
}

/// A node with the parents of two pairs that are not the same pair, so at most one parent is common.
#[cfg_attr(not(debug_assertions), inline(always))]
fn write_merged<S: Scalar>(
    open: Open<S>,
    [i0, i1]: [u32; 2],
    [j0, j1]: [u32; 2],
    p0: S,
    p1: S,
    q0: S,
    q1: S,
) -> u32 {
    if i0 == j0 {
        write3(open, i0, i1, j1, p0 + q0, p1, q1)
    } else if i0 == j1 {
        write3(open, i0, i1, j0, p0 + q1, p1, q0)
    } else if i1 == j0 {
        write3(open, i0, i1, j1, p0, p1 + q0, q1)
    } else if i1 == j1 {
        write3(open, i0, i1, j0, p0, p1 + q1, q0)
    } else {
        open.push([i0, i1, j0, j1], [p0, p1, q0, q1])
    }
}

/// On a traced tape every operation is a node, with its name and value. `SINK` stands for an inactive
/// argument.
#[cold]
#[inline(never)]
pub(super) fn traced<S: Scalar>(stamp: Stamp, op: &'static str, z: S, edges: &[(u32, S)]) -> u32 {
    let active = edges.iter().copied().filter(|&(parent, _)| parent != SINK);
    with_recorder(stamp, |recorder| {
        let node = recorder.arena.push_many(edges.len(), active.clone());
        let inputs = active.map(|(parent, partial)| (parent, Some(partial))).collect();
        recorder.trace.push(Entry { node, op, inputs, value: z });
        node
    })
}

/// [`traced`] for one or two arguments that travel in registers, so that the hot path keeps nothing in memory
/// for it. `extern "C"`, because such a function does not unwind: with a call that might, logistic takes half
/// as long again.
#[cold]
#[inline(never)]
#[allow(improper_ctypes_definitions)] // a name, and never called from C
extern "C" fn traced_pair<S: Scalar>(
    stamp: Stamp,
    op: &'static str,
    z: S,
    i: u32,
    p: S,
    j: u32,
    q: S,
) -> u32 {
    traced(stamp, op, z, &[(i, p), (j, q)])
}

impl<S: Scalar> Differentiable for Var<S> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn unary<R: Unary>(rule: R, x: Self) -> Self {
        x.stamp.check();
        if !x.is_active() {
            return Var::lift(rule.value(x.value));
        }
        crate::decision::rounded_by(rule, x);
        let (z, dz) = rule.value_and_dx(x.value);
        if x.stamp.is_traced() {
            let node = traced_pair(x.stamp, R::NAME, z, x.parents[0], dz, SINK, S::zero());
            return Var::of_node(z, node, x.stamp);
        }
        x.chain(x.stamp, z, dz)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn binary<R: Binary>(rule: R, x: Self, y: Self) -> Self {
        let stamp = x.stamp.join(y.stamp);
        let open = stamp.open();
        let z = rule.value(x.value, y.value);
        if x.is_active() || y.is_active() {
            crate::decision::rounded_by_two(rule, x, y);
        }
        if stamp.is_traced() {
            let dx = if x.is_active() { rule.dx(x.value, y.value, z) } else { S::zero() };
            let dy = if y.is_active() { rule.dy(x.value, y.value, z) } else { S::zero() };
            let node = traced_pair(stamp, R::NAME, z, x.parents[0], dx, y.parents[0], dy);
            return Var::of_node(z, node, stamp);
        }
        if !y.is_active() {
            if !x.is_active() {
                return Var::lift(z);
            }
            return x.chain(stamp, z, rule.dx(x.value, y.value, z));
        }
        if !x.is_active() {
            return y.chain(stamp, z, rule.dy(x.value, y.value, z));
        }
        merge(stamp, open, z, x, rule.dx(x.value, y.value, z), y, rule.dy(x.value, y.value, z))
    }

    #[inline]
    fn ternary<R: Ternary>(rule: R, x: Self, y: Self, w: Self) -> Self {
        let stamp = x.stamp.join(y.stamp).join(w.stamp);
        let open = stamp.open();
        let z = rule.value(x.value, y.value, w.value);
        let zero = S::zero();
        let dx = if x.is_active() { rule.dx(x.value, y.value, w.value, z) } else { zero };
        let dy = if y.is_active() { rule.dy(x.value, y.value, w.value, z) } else { zero };
        let dw = if w.is_active() { rule.dw(x.value, y.value, w.value, z) } else { zero };
        if stamp.is_traced() {
            let edges = [(x.parents[0], dx), (y.parents[0], dy), (w.parents[0], dw)];
            return Var::of_node(z, traced(stamp, R::NAME, z, &edges), stamp);
        }
        let add = |sum: Var<S>, arg: Var<S>, partial: S| match (sum.is_active(), arg.is_active()) {
            (true, true) => merge(stamp, open, z, sum, S::one(), arg, partial),
            (false, true) => arg.chain(stamp, z, partial),
            (_, false) => sum,
        };
        add(add(add(Var::lift(z), x, dx), y, dy), w, dw)
    }
}

derivative_number! { [S: Scalar] Var<S>, scalar {
    #[inline]
    fn sum_over(count: usize, term: impl Fn(usize) -> Self) -> Self {
        Self::add_up(count, term)
    }
    #[inline]
    fn dot_over(count: usize, pair: impl Fn(usize) -> (Self, Self)) -> Self {
        Self::dot_product(count, pair)
    }
    #[inline]
    fn chain_over(start: Self, count: usize, pair: impl Fn(usize) -> (Self, Self)) -> Self {
        Self::chain_of_products(start, count, pair)
    }
    #[inline]
    fn affine(offset: Self, coefficients: &[f64], x: &[Self]) -> Self {
        Self::affine_combination(offset, coefficients, x)
    }
} }

impl<S: fmt::Debug> fmt::Debug for Var<S> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        crate::decision::looked(|| self.parents[0] != SINK);
        write!(f, "Var({:?})", self.value)
    }
}
