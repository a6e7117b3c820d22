//! Compensated and exact sums of numbers with derivatives.
//!
//! Input: numbers, and an [`Accumulator`] that is not naive. Output: the sum or the dot product, whose value
//! and whose every tangent are accumulated that way, each by the inner number: with [`Accumulator::Exact`]
//! each is rounded once. `number.rs` calls it for `Scalar::sum_with` and `Scalar::dot_with`; naive sums do
//! not come here.
//!
//! Invariants: no derivative formula: the partials of a product are those of its row in the rule table (power
//! series multiply by convolution, as in `jet.rs`). A tangent of zero adds nothing, whatever its partial is.

use crate::array::Array;
use crate::number::Accumulated;
use crate::rules::{Binary, Multiply};
use crate::{Dual, DualN, Jet, Passive, Var};
use palinode_num::{Accumulator, Scalar};

/// One part of every number.
fn parts<N: Copy, S>(numbers: &[N], part: impl Fn(N) -> S) -> Vec<S> {
    numbers.iter().map(|&x| part(x)).collect()
}

/// The sum of one part of every number.
fn sum_of_part<N: Copy, S: Scalar>(numbers: &[N], how: Accumulator, part: impl Fn(N) -> S) -> S {
    S::sum_with(&parts(numbers, part), how)
}

/// A sum of products that leaves out those with a factor of zero.
struct Products<S>(Vec<S>, Vec<S>);

impl<S: Scalar> Products<S> {
    fn with_capacity(products: usize) -> Self {
        Products(Vec::with_capacity(products), Vec::with_capacity(products))
    }

    fn add(&mut self, a: S, b: S) {
        if !a.vanishes() && !b.vanishes() {
            self.0.push(a);
            self.1.push(b);
        }
    }

    /// Strong, as products of tangents and partials are: an inner number may be a zero that still has
    /// derivatives.
    fn total(&self, how: Accumulator) -> S {
        S::strong_dot_with(&self.0, &self.1, how)
    }
}

/// The tangent of a dot product: all tangents times their partials, as one sum.
fn tangent_of_dot<N: Copy, S: Scalar>(
    a: &[N],
    b: &[N],
    how: Accumulator,
    value: impl Fn(N) -> S,
    tangent: impl Fn(N) -> S,
) -> S {
    let mut sum = Products::with_capacity(2 * a.len());
    for (&x, &y) in a.iter().zip(b) {
        let (u, v) = (value(x), value(y));
        let z = Multiply {}.value(u, v);
        sum.add(tangent(x), Multiply {}.dx(u, v, z));
        sum.add(tangent(y), Multiply {}.dy(u, v, z));
    }
    sum.total(how)
}

impl<S: Scalar> Accumulated for Dual<S> {
    fn accumulated_sum(terms: &[Self], how: Accumulator) -> Self {
        Dual::new(sum_of_part(terms, how, |x| x.value), sum_of_part(terms, how, |x| x.tangent))
    }

    fn accumulated_dot(a: &[Self], b: &[Self], how: Accumulator) -> Self {
        let value = S::dot_with(&parts(a, |x| x.value), &parts(b, |x| x.value), how);
        Dual::new(value, tangent_of_dot(a, b, how, |x| x.value, |x| x.tangent))
    }
}

impl<S: Scalar, const N: usize> Accumulated for DualN<S, N> {
    fn accumulated_sum(terms: &[Self], how: Accumulator) -> Self {
        let tangents = core::array::from_fn(|lane| sum_of_part(terms, how, |x| x.tangents[lane]));
        DualN::new(sum_of_part(terms, how, |x| x.value), tangents)
    }

    fn accumulated_dot(a: &[Self], b: &[Self], how: Accumulator) -> Self {
        let value = S::dot_with(&parts(a, |x| x.value), &parts(b, |x| x.value), how);
        let tangent = |lane: usize| tangent_of_dot(a, b, how, |x| x.value, |x| x.tangents[lane]);
        DualN::new(value, core::array::from_fn(tangent))
    }
}

impl<S: Scalar, const K: usize> Accumulated for Jet<S, K> {
    fn accumulated_sum(terms: &[Self], how: Accumulator) -> Self {
        let known = terms.iter().map(|x| x.known).min().unwrap_or(K);
        let higher = core::array::from_fn(|k| sum_of_part(terms, how, |x| x.coefficient(k + 1)));
        Jet::new(sum_of_part(terms, how, |x| x.primal()), higher).up_to(known)
    }

    fn accumulated_dot(a: &[Self], b: &[Self], how: Accumulator) -> Self {
        let known = a.iter().chain(b).map(|x| x.known).min().unwrap_or(K);
        let value = S::dot_with(&parts(a, |x| x.primal()), &parts(b, |x| x.primal()), how);
        let coefficient = |order: usize| {
            let mut sum = Products::with_capacity((order + 1) * a.len());
            for (x, y) in a.iter().zip(b) {
                (0..=order).for_each(|j| sum.add(x.coefficient(j), y.coefficient(order - j)));
            }
            sum.total(how)
        };
        Jet::new(value, core::array::from_fn(|k| coefficient(k + 1))).up_to(known)
    }
}

impl<S: Scalar> Accumulated for Passive<S> {
    fn accumulated_sum(terms: &[Self], how: Accumulator) -> Self {
        Passive::new(sum_of_part(terms, how, |x| x.primal()))
    }

    fn accumulated_dot(a: &[Self], b: &[Self], how: Accumulator) -> Self {
        Passive::new(S::dot_with(&parts(a, |x| x.primal()), &parts(b, |x| x.primal()), how))
    }
}

/// On a tape: an operation on whole arrays.
impl<S: Scalar> Accumulated for Var<S> {
    fn accumulated_sum(terms: &[Self], how: Accumulator) -> Self {
        Array::from_vars(terms).sum_with(how)
    }

    fn accumulated_dot(a: &[Self], b: &[Self], how: Accumulator) -> Self {
        assert_eq!(a.len(), b.len(), "dot: the slices have {} and {} elements", a.len(), b.len());
        Array::from_vars(a).dot_with(&Array::from_vars(b), how)
    }
}
