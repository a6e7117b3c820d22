//! What a reverse sweep is given: a loss, a length, a first state, a budget.

use super::Inner;
use crate::error::Error;
use crate::step::Step;
use palinode_core::{Budget, Passive, Snapshot, Var};

/// How many actions ahead a slow store learns what it will be asked for.
pub(super) const AHEAD: usize = 16;

/// When the loss is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// Of the last state.
    Last,
    /// Of the state after each step, summed.
    Each,
}

/// A loss: of the state after so many steps.
pub(super) type Loss<'a, St, T> = dyn FnMut(u64, &<St as Step>::State<Var<T>>) -> Var<T> + 'a;

/// What a reverse sweep starts with: the first state, the budget, and what its results take.
#[derive(Clone, Copy)]
pub(super) struct Setting<'s> {
    pub(super) start: &'s Snapshot,
    pub(super) budget: Budget,
    /// Bytes of the gradient, and of what it is made with.
    pub(super) results: usize,
    /// The numbers in it.
    pub(super) numbers: usize,
    /// Whether a restored state may have other bits than it had when it was kept.
    pub(super) is_lossy: bool,
    /// Whether it is compared with a forward sweep, because of that or because it is cut and that was asked
    /// for.
    pub(super) compares: bool,
    /// Bytes that this takes.
    pub(super) afterwards: usize,
}

/// Whether a loop goes on from a state after so many steps.
pub(super) type GoesOn<'l, St, T> = dyn Fn(&<St as Step>::State<Passive<T>>, u64) -> Result<bool, Error> + 'l;

/// How long a loop is: so many steps can be taken for certain, at most so many; how many the schedule is for;
/// and what ends it.
pub(super) struct Length<'l, St: Step, T: Inner> {
    pub(super) certain: u64,
    pub(super) most: u64,
    pub(super) swept: u64,
    pub(super) goes_on: &'l GoesOn<'l, St, T>,
}

impl<St: Step, T: Inner> Clone for Length<'_, St, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<St: Step, T: Inner> Copy for Length<'_, St, T> {}

pub(super) fn finite_value(value: f64) -> Result<f64, Error> {
    if value.is_finite() { Ok(value) } else { Err(Error::NonFiniteLoss { value, step: None }) }
}
