//! Sums, dot products and affine combinations as one node, however many terms they have.
//!
//! Input: slices or iterators of `Var`s. Output: one `Var`, one node with an edge per pending parent. The value is
//! computed left to right.
//!
//! An iterator can be walked only once, and may record nodes of its own on the way. So its sum is a node that stays open
//! at the end of the tape; if something else is recorded in between, the sum goes on in a new node. Because products are pending pairs, a plain
//! `a.iter().zip(b).map(|(x, y)| x * y).sum()` costs no more than a dot product.

use super::Var;
use super::arena::{OpenNode, SINK};
use super::stamp::{Stamp, with_recorder};
use super::var::traced;
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

impl<S: Scalar<Bool = bool>> core::iter::Sum for Var<S> {
    #[inline]
    fn sum<I: Iterator<Item = Self>>(terms: I) -> Self {
        // One place that asks for the next term, so that what computes it is inlined there.
        let mut sum = OpenSum {
            // Minus zero is the zero that changes no bit of what is added to it.
            value: -S::zero(),
            stamp: Stamp::NONE,
            node: OpenNode::NONE,
            traced: Vec::new(),
        };
        for term in terms {
            sum.add(term);
        }
        sum.finish()
    }
}

impl<'a, S: Scalar<Bool = bool>> core::iter::Sum<&'a Var<S>> for Var<S> {
    #[inline]
    fn sum<I: Iterator<Item = &'a Var<S>>>(terms: I) -> Self {
        terms.copied().sum()
    }
}

/// A sum whose node is still open: its edges are the last on the tape, and more can follow.
struct OpenSum<S> {
    value: S,
    stamp: Stamp,
    /// [`OpenNode::NONE`] while nothing active has been added.
    node: OpenNode,
    /// On a traced tape the edges wait here instead, so that the sum is one row of the table.
    traced: Vec<(u32, S)>,
}

impl<S: Scalar<Bool = bool>> OpenSum<S> {
    #[inline(always)]
    fn add(&mut self, term: Var<S>) {
        self.stamp = self.stamp.join(term.stamp());
        self.value = self.value + term.primal();
        if !term.is_active() {
            return;
        }
        let ([i, j], [p, q]) = (term.parents(), term.partials());
        if self.stamp.is_traced() {
            self.traced.push((i, p));
            return;
        }
        self.node = self.stamp.open().extend(self.node, S::one(), (i, p), (j, q));
    }

    #[inline]
    fn finish(self) -> Var<S> {
        self.stamp.check();
        if !self.traced.is_empty() {
            let node = traced(self.stamp, "sum", self.value, &self.traced);
            return Var::of_node(self.value, node, self.stamp);
        }
        if self.node == OpenNode::NONE {
            return Var::lift(self.value);
        }
        Var::of_node(self.value, self.node.number(), self.stamp)
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
    let node = if stamp.is_traced() {
        traced(stamp, name, value, &pending.collect::<Vec<_>>())
    } else {
        with_recorder(stamp, |recorder| recorder.arena.push_many(edges, pending))
    };
    Var::of_node(value, node, stamp)
}
