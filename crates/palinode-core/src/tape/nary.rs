//! Sums, dot products and affine combinations as one node, however many terms they have.
//!
//! Input: slices or iterators of `Var`s. Output: one `Var`, one node with an edge per pending parent. The value is
//! computed left to right, with the same bits as the loop it replaces.
//!
//! An iterator can be walked only once, and may record nodes of its own on the way; so its edges are staged on the
//! stack and written as a node whenever the stage is full. Because products are pending pairs, a plain
//! `a.iter().zip(b).map(|(x, y)| x * y).sum()` costs no more than a dot product.

use super::Var;
use super::arena::SINK;
use super::stamp::{Stamp, with_recorder};
use super::trace::Entry;
use palinode_num::Scalar;

impl<S: Scalar<Bool = bool>> Var<S> {
    pub(crate) fn add_up(terms: &[Self]) -> Self {
        let value = terms.iter().fold(S::zero(), |sum, term| sum + term.primal());
        linear("sum", value, terms.iter().map(|&term| (term, S::one())))
    }

    pub(crate) fn dot_product(a: &[Self], b: &[Self]) -> Self {
        assert_eq!(a.len(), b.len(), "dot: the slices have {} and {} elements", a.len(), b.len());
        let value = a.iter().zip(b).fold(S::zero(), |sum, (x, y)| sum + x.primal() * y.primal());
        let both = a.iter().zip(b).flat_map(|(&x, &y)| [(x, y.primal()), (y, x.primal())]);
        linear("dot", value, both)
    }

    pub(crate) fn affine_combination(offset: Self, coefficients: &[f64], x: &[Self]) -> Self {
        let (n, m) = (coefficients.len(), x.len());
        assert_eq!(n, m, "affine: {n} coefficients for {m} numbers");
        let weighted = coefficients.iter().zip(x).map(|(&c, &x)| (x, S::from_f64(c)));
        let value = weighted.clone().fold(offset.primal(), |sum, (x, c)| sum + c * x.primal());
        linear("affine", value, core::iter::once((offset, S::one())).chain(weighted))
    }
}

/// How many edges an iterator's sum stages before it writes a node.
const STAGE: usize = 32;

impl<S: Scalar<Bool = bool>> core::iter::Sum for Var<S> {
    #[inline]
    fn sum<I: Iterator<Item = Self>>(mut terms: I) -> Self {
        // Short sums fit into a pending form.
        let Some(first) = terms.next() else { return Var::lift(S::zero()) };
        let Some(second) = terms.next() else { return first };
        let Some(third) = terms.next() else { return first + second };
        let mut stage = Stage::new(first);
        stage.add(second);
        stage.add(third);
        terms.for_each(|term| stage.add(term));
        stage.finish()
    }
}

impl<'a, S: Scalar<Bool = bool>> core::iter::Sum<&'a Var<S>> for Var<S> {
    #[inline]
    fn sum<I: Iterator<Item = &'a Var<S>>>(terms: I) -> Self {
        terms.copied().sum()
    }
}

/// A sum in the making.
struct Stage<S> {
    value: S,
    stamp: Stamp,
    len: usize,
    parents: [u32; STAGE],
    partials: [S; STAGE],
}

impl<S: Scalar<Bool = bool>> Stage<S> {
    #[inline(always)]
    fn new(first: Var<S>) -> Self {
        let mut stage = Stage {
            value: first.primal(),
            stamp: first.stamp(),
            len: 0,
            parents: [SINK; STAGE],
            partials: [S::zero(); STAGE],
        };
        stage.put(first);
        stage
    }

    #[inline(always)]
    fn add(&mut self, term: Var<S>) {
        self.stamp = self.stamp.join(term.stamp());
        self.value = self.value + term.primal();
        if self.len > STAGE - 2 {
            self.write();
        }
        self.put(term);
    }

    /// Stages the pending form; there is room for two edges.
    #[inline(always)]
    fn put(&mut self, term: Var<S>) {
        // A parent that is SINK is written too and then overwritten, which is cheaper than asking.
        let [i, j] = term.parents();
        let [p, q] = term.partials();
        self.parents[self.len] = i;
        self.partials[self.len] = p;
        self.len += usize::from(i != SINK);
        self.parents[self.len] = j;
        self.partials[self.len] = q;
        self.len += usize::from(j != SINK);
    }

    /// Turns what is staged into a node, and stages that node.
    #[cold]
    #[inline(never)]
    fn write(&mut self) {
        let staged = self.parents[..self.len].iter().copied().zip(self.partials[..self.len].iter().copied());
        let node = with_recorder(self.stamp, |recorder| recorder.arena.push_many(STAGE, staged));
        self.parents[0] = node;
        self.partials[0] = S::one();
        self.len = 1;
    }

    #[inline]
    fn finish(self) -> Var<S> {
        self.stamp.check();
        if self.len == 0 {
            return Var::lift(self.value);
        }
        let edges =
            || self.parents[..self.len].iter().copied().zip(self.partials[..self.len].iter().copied());
        let node = with_recorder(self.stamp, |recorder| {
            let node = recorder.arena.push_many(self.len, edges());
            if self.stamp.is_traced() {
                let inputs = edges().map(|(parent, partial)| (parent, Some(partial))).collect();
                recorder.trace.push(Entry { node, op: "sum", inputs, value: self.value });
            }
            node
        });
        Var::of_node(self.value, node, self.stamp)
    }
}

/// The node of a value whose derivative is the sum of `partial * d term`.
#[inline]
fn linear<S, I>(name: &'static str, value: S, terms: I) -> Var<S>
where
    S: Scalar<Bool = bool>,
    I: Iterator<Item = (Var<S>, S)> + Clone,
{
    let mut stamp = Stamp::NONE;
    let mut edges = 0;
    for (term, _) in terms.clone() {
        stamp = stamp.join(term.stamp());
        edges += term.pending_count();
    }
    stamp.check();
    if edges == 0 {
        return Var::lift(value);
    }
    let pending = terms.flat_map(|(term, partial)| {
        let [p, q] = S::strong_scale(partial, term.partials());
        let [i, j] = term.parents();
        [(i, p), (j, q)].into_iter().filter(|&(parent, _)| parent != SINK)
    });
    let node = with_recorder(stamp, |recorder| {
        let node = recorder.arena.push_many(edges, pending.clone());
        if stamp.is_traced() {
            let inputs = pending.map(|(parent, partial)| (parent, Some(partial))).collect();
            recorder.trace.push(Entry { node, op: name, inputs, value });
        }
        node
    });
    Var::of_node(value, node, stamp)
}
