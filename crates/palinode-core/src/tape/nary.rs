//! Sums, dot products, chains of products and affine combinations as one node, however many terms they have.
//!
//! Input: `Var`s by their places, or iterators of them. Output: one `Var`, one node with an edge per pending
//! parent; no node if there are at most two parents, which a pending form can hold. The value is what
//! `palinode_num::sums` says; an iterator's terms are added left to right.
//!
//! An iterator can be walked only once, and may record nodes of its own on the way. So its sum is a node that
//! stays open at the end of the tape; if something else is recorded in between, the sum goes on in a new
//! node. Because products are pending pairs, a plain `a.iter().zip(b).map(|(x, y)| x * y).sum()` costs no
//! more than a dot product.

use super::Var;
use super::arena::{OpenNode, SINK};
use super::custom::{CustomNode, CustomRule};
use super::recorder::{Entry, Recorder};
use super::scope::with_recorder;
use super::stamp::Stamp;
use super::var::traced;
use palinode_num::Scalar;

impl<S: Scalar> Var<S> {
    pub(crate) fn add_up(count: usize, term: impl Fn(usize) -> Self) -> Self {
        let value = S::sum_over(count, |place| term(place).primal());
        linear("sum", value, Stamp::NONE, (0..count).map(|place| (term(place), S::one())))
    }

    pub(crate) fn dot_product(count: usize, pair: impl Fn(usize) -> (Self, Self)) -> Self {
        let value = S::dot_over(count, |place| primals(pair(place)));
        linear("dot", value, Stamp::NONE, (0..count).flat_map(|place| factors(pair(place))))
    }

    pub(crate) fn chain_of_products(start: Self, count: usize, pair: impl Fn(usize) -> (Self, Self)) -> Self {
        let value = S::chain_over(start.primal(), count, |place| primals(pair(place)));
        let both = (0..count).flat_map(|place| factors(pair(place)));
        linear("chain", value, Stamp::NONE, core::iter::once((start, S::one())).chain(both))
    }

    pub(crate) fn affine_combination(offset: Self, coefficients: &[f64], x: &[Self]) -> Self {
        let (n, m) = (coefficients.len(), x.len());
        assert_eq!(n, m, "affine: {n} coefficients for {m} numbers");
        let coefficient = |place: usize| S::from_f64(coefficients[place]);
        let value = offset.primal() + S::sum_over(n, |place| coefficient(place) * x[place].primal());
        // A coefficient of zero is no dependence, but its number must belong to this tape too.
        let stamp = x.iter().fold(Stamp::NONE, |stamp, x| stamp.join(x.stamp()));
        let weighted = (0..n).map(|place| (x[place], coefficient(place)));
        let depends = weighted.filter(|(_, c)| !c.vanishes());
        linear("affine", value, stamp, core::iter::once((offset, S::one())).chain(depends))
    }
}

fn primals<S: Scalar>((x, y): (Var<S>, Var<S>)) -> (S, S) {
    (x.primal(), y.primal())
}

/// The factors of a product and their partials.
fn factors<S: Scalar>((x, y): (Var<S>, Var<S>)) -> [(Var<S>, S); 2] {
    [(x, y.primal()), (y, x.primal())]
}

impl<S: Scalar> core::iter::Sum for Var<S> {
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
        // Asked before the loop, so that the loop need not count.
        let is_short = terms.size_hint().1.is_some_and(|most| most <= 2);
        for term in terms {
            sum.add(term);
        }
        sum.finish(is_short)
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

impl<S: Scalar> OpenSum<S> {
    #[cfg_attr(not(debug_assertions), inline(always))]
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

    /// The sum; what it wrote is taken back if it is so short that a pending form holds it.
    #[inline]
    fn finish(self, is_short: bool) -> Var<S> {
        self.stamp.check();
        if !self.traced.is_empty() {
            let node = traced(self.stamp, "sum", self.value, &self.traced);
            return Var::of_node(self.value, node, self.stamp);
        }
        if self.node == OpenNode::NONE {
            return Var::lift(self.value);
        }
        if is_short && let Some([first, second]) = self.stamp.open().take_back(self.node, S::zero()) {
            return Var::of_form(self.value, first, second, self.stamp);
        }
        Var::of_node(self.value, self.node.number(), self.stamp)
    }
}

/// The value whose derivative is the sum of `partial * d term`, on the tape of `stamp` and of the terms.
#[inline]
fn linear<S, I>(name: &'static str, value: S, mut stamp: Stamp, terms: I) -> Var<S>
where
    S: Scalar,
    I: Iterator<Item = (Var<S>, S)> + Clone,
{
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
    if stamp.is_traced() {
        return Var::of_node(value, traced(stamp, name, value, &pending.collect::<Vec<_>>()), stamp);
    }
    if let Some([first, second]) = two_parents(pending.clone()) {
        return Var::of_form(value, first, second, stamp);
    }
    Var::of_node(value, with_recorder(stamp, |recorder| recorder.arena.push_many(edges, pending)), stamp)
}

/// The edges by parent, if there are no more than two.
fn two_parents<S: Scalar>(edges: impl Iterator<Item = (u32, S)>) -> Option<[(u32, S); 2]> {
    let mut form = [(SINK, S::zero()); 2];
    for (parent, partial) in edges {
        let place = form.iter_mut().find(|(taken, _)| *taken == SINK || *taken == parent)?;
        *place = (parent, if place.0 == SINK { partial } else { place.1 + partial });
    }
    Some(form)
}

/// Records an operation whose outputs have these values and whose derivative is given by `rule`.
///
/// Nothing is recorded if no input is active: the outputs are constants then.
///
/// # Panics
/// If the inputs belong to different tapes, or to one that is not open on this thread.
pub fn custom<S: Scalar>(inputs: &[Var<S>], output_values: &[S], rule: impl CustomRule<S>) -> Vec<Var<S>> {
    let stamp = inputs.iter().fold(Stamp::NONE, |stamp, input| stamp.join(input.stamp()));
    stamp.check();
    if !inputs.iter().any(|input| input.is_active()) {
        return output_values.iter().map(|&value| Var::lift(value)).collect();
    }
    let nodes: Vec<u32> = inputs.iter().map(|input| input.node()).collect();
    let (name, zero) = (rule.name(), S::zero());
    let first_output = with_recorder(stamp, |recorder: &mut Recorder<S>| {
        let first_output = recorder.arena.next_node();
        for &value in output_values {
            let node = recorder.arena.push([SINK], [zero]);
            if stamp.is_traced() {
                let inputs = nodes.iter().map(|&node| (node, None)).collect();
                recorder.trace.push(Entry { node, op: name, inputs, value });
            }
        }
        if recorder.arena.failure().is_none() {
            let outputs = output_values.len() as u32;
            recorder.custom.push(CustomNode { inputs: nodes, first_output, outputs, rule: Box::new(rule) });
        }
        first_output
    });
    (first_output..).zip(output_values).map(|(node, &value)| Var::of_node(value, node, stamp)).collect()
}
