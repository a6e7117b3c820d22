//! Quires as the exact accumulators of posits, so that [`Accumulator::Exact`](crate::Accumulator) works on
//! posits too.

use super::Quire;
use crate::accumulate::{Accumulate, AccumulateProducts, Summand};
use crate::posit::{Posit, PositWidth};

impl<W: PositWidth> Accumulate<Posit<W>> for Quire<W> {
    #[inline]
    fn add(&mut self, term: Posit<W>) {
        *self += term;
    }
    fn merge(&mut self, other: &Self) {
        Quire::merge(self, other);
    }
    fn total(&self) -> Posit<W> {
        self.to_posit()
    }
}

impl<W: PositWidth> AccumulateProducts<Posit<W>> for Quire<W> {
    #[inline]
    fn add_product(&mut self, a: Posit<W>, b: Posit<W>) {
        Quire::add_product(self, a, b);
    }
    fn add_products(&mut self, a: &[Posit<W>], b: &[Posit<W>]) {
        Quire::add_products(self, a, b);
    }
}

impl<W: PositWidth> Summand for Posit<W> {
    type ExactSum = Quire<W>;
    type ExactDot = Quire<W>;
    /// The error is rounded where precision tapers: compensated sums of posits are better than naive ones,
    /// not exact to twice the bits.
    fn product_and_error(self, other: Self) -> (Self, Self) {
        let product = self * other;
        (product, self.fused_mul_add(other, -product))
    }
}
