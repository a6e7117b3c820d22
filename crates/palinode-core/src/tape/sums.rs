//! Cotangents that are compensated or exact sums, for the sweeps in `summed.rs`.

use super::filled;
use crate::error::Error;
use core::marker::PhantomData;
use palinode_num::{AccumulateProducts, Scalar};

/// Cotangents under way: a sum for each node or cell that something has arrived at.
pub(crate) struct Sums<S, A> {
    sums: Vec<Option<Box<A>>>,
    numbers: PhantomData<S>,
}

impl<S: Scalar, A: AccumulateProducts<S>> Sums<S, A> {
    /// The bytes of so many, at most.
    pub(crate) fn bytes(places: usize) -> usize {
        places * (size_of::<Option<Box<A>>>() + size_of::<A>())
    }

    pub(crate) fn new(places: usize) -> Result<Self, Error> {
        Ok(Sums { sums: filled(places, None)?, numbers: PhantomData })
    }

    fn sum(&mut self, place: usize) -> &mut A {
        self.sums[place].get_or_insert_default()
    }

    /// What has arrived, rounded.
    pub(crate) fn total(&self, place: usize) -> S {
        self.sums[place].as_ref().map_or(S::zero(), |sum| sum.total())
    }

    /// Forgets what has arrived.
    pub(crate) fn clear(&mut self, place: usize) {
        self.sums[place] = None;
    }

    /// Adds what is passed on as it is.
    pub(crate) fn add(&mut self, place: usize, term: S) {
        if !term.vanishes() {
            self.sum(place).add(term);
        }
    }

    /// Adds a product in which a zero wins.
    pub(crate) fn add_product(&mut self, place: usize, a: S, b: S) {
        if !a.vanishes() && !b.vanishes() {
            self.sum(place).add_product(a, b);
        }
    }
}
