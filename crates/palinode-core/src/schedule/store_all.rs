//! Keep the residuals of every step: no snapshot, nothing computed twice.

use super::Cost;
use super::Tier;
use super::sweep::{Choice, Held, Plan, Sweep, actions};

/// The actions of [`store_all`].
#[derive(Clone, Debug)]
pub struct StoreAll {
    sweep: Sweep<Everything>,
}

#[derive(Clone, Copy, Debug)]
struct Everything;

impl Plan for Everything {
    fn choose(&self, _: u64, _: Held, _: Option<Tier>) -> Choice {
        Choice::Record
    }
}

actions!(StoreAll);

/// Records every step, then reverses them. Memory: the residuals of all steps.
pub fn store_all(steps: u64) -> StoreAll {
    StoreAll { sweep: Sweep::new(Everything, steps, 0) }
}

/// What [`store_all`] costs.
pub fn store_all_cost(steps: u64) -> Cost {
    Cost { forward: steps, recorded: steps, peak_residuals: steps, ..Cost::default() }
}
