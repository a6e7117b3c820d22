//! From a budget to a schedule: how many snapshots fit besides what is always there.
//!
//! Input: the number of steps, the size of a state, the bytes that are taken anyway, the budget. Output: a stream of actions, what it
//! costs, and the optimum; or a refusal that names the smallest budget that works.

use super::engine::Stores;
use crate::error::Error;
use palinode_core::schedule::{self, Action, Cost};
use palinode_core::{Budget, SnapshotStore};

/// Which snapshots are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Schedule {
    /// Binomial, with as many snapshots as the budget allows; over two tiers if there is a second store.
    #[default]
    Best,
    /// The residuals of every step: nothing is computed twice.
    StoreAll,
    /// A snapshot every so many steps, and the residuals of the steps in between.
    Periodic {
        /// How many steps lie between two snapshots.
        every: u64,
    },
    /// The fewest forward steps for so many snapshots.
    Binomial {
        /// How many, the first state among them.
        snapshots: u32,
    },
    /// So many slots, each of which holds a snapshot or the residuals of a step.
    Mixed {
        /// How many.
        slots: u32,
    },
}

/// Bytes of a schedule's own bookkeeping, per snapshot; checked against what it says.
pub(super) const BOOKKEEPING: usize = 64;

/// What the engine needs besides snapshots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    /// Bytes of states, cotangents, parameters and results.
    pub(super) states: usize,
    /// Bytes of residuals: tapes.
    pub(super) residuals: usize,
    /// Bytes of the results alone.
    pub(super) results: usize,
    /// Words of a snapshot.
    pub(super) reals: usize,
    pub(super) plain: usize,
    /// Bytes that were held in all while a cheaper way to the partials was looked for.
    pub(super) least: usize,
}

/// A stream of actions with what is known of it.
pub(super) struct Planned {
    pub(super) actions: Box<dyn Iterator<Item = Action>>,
    pub(super) cost: Cost,
    /// The fewest forward steps for as many snapshots.
    pub(super) optimum: u64,
    pub(super) heap_bytes: usize,
}

/// How many snapshots of this size fit into the budget besides the rest; at least one, or a refusal.
pub(super) fn slots_within(
    budget: Budget,
    needs: Needs,
    store: &dyn SnapshotStore,
    bookkeeping: usize,
    most: u64,
) -> Result<u32, Error> {
    let most = u32::try_from(most).unwrap_or(u32::MAX).max(1);
    if budget.is_unlimited() {
        return Ok(most);
    }
    let fixed = needs.states + needs.residuals;
    let bytes = |slots: u32| {
        fixed
            .saturating_add(store.heap_bytes_for(slots as usize, needs.reals, needs.plain))
            .saturating_add(bookkeeping.saturating_mul(slots as usize))
    };
    let least = bytes(1).max(needs.least);
    if !budget.allows(least) {
        return Err(Error::BudgetTooSmall {
            budget,
            smallest: least.into(),
            states: needs.states,
            residuals: needs.residuals,
            snapshot: bytes(1) - fixed,
        });
    }
    let (mut fits, mut too_many) = (1, most);
    if budget.allows(bytes(most)) {
        return Ok(most);
    }
    while too_many - fits > 1 {
        let middle = fits + (too_many - fits) / 2;
        if budget.allows(bytes(middle)) { fits = middle } else { too_many = middle }
    }
    Ok(fits)
}

/// The actions for a loop of known length.
pub(super) fn plan(
    method: Schedule,
    steps: u64,
    budget: Budget,
    needs: Needs,
    stores: &Stores<'_>,
    disk_slots: u32,
) -> Result<Planned, Error> {
    let within = |most: u64| slots_within(budget, needs, &*stores.memory, BOOKKEEPING, most);
    let planned = |actions: Box<dyn Iterator<Item = Action>>, cost: Cost, optimum, heap_bytes| {
        Ok(Planned { actions, cost, optimum, heap_bytes })
    };
    let refuse_beyond = |cost: Cost| {
        let snapshots = within(cost.peak_slots.memory.max(1))?;
        let residuals = (cost.peak_residuals as usize).saturating_mul(needs.residuals);
        let others = needs.states + residuals;
        let bytes = stores.memory.heap_bytes_for(cost.peak_slots.memory as usize, needs.reals, needs.plain);
        if u64::from(snapshots) < cost.peak_slots.memory || !budget.allows(others.saturating_add(bytes)) {
            return Err(Error::BudgetTooSmall {
                budget,
                smallest: others.saturating_add(bytes).into(),
                states: needs.states,
                residuals,
                snapshot: bytes,
            });
        }
        Ok(())
    };
    match method {
        Schedule::Best if stores.disk.is_some() && disk_slots > 0 => {
            // The buffers of the second store count, too.
            let buffers = stores
                .disk
                .as_ref()
                .map_or(0, |disk| disk.heap_bytes_for(disk_slots as usize, needs.reals, needs.plain));
            let needs = Needs { states: needs.states + buffers, ..needs };
            let memory = slots_within(budget, needs, &*stores.memory, BOOKKEEPING, steps)?;
            let actions = schedule::two_tier(steps, memory, disk_slots, WRITE_COST, READ_COST)?;
            let (cost, optimum, bytes) = (actions.cost(), actions.bound(), actions.heap_bytes());
            planned(Box::new(actions), cost, optimum, bytes)
        }
        Schedule::Best => {
            let slots = within(steps)?;
            binomial(steps, worthwhile(steps, slots, (needs.reals + needs.plain) * size_of::<u64>())?)
        }
        Schedule::Binomial { snapshots } => {
            let cost = schedule::binomial_cost(steps, snapshots)?;
            refuse_beyond(cost)?;
            binomial(steps, snapshots)
        }
        Schedule::StoreAll => {
            let cost = schedule::store_all_cost(steps);
            refuse_beyond(cost)?;
            planned(Box::new(schedule::store_all(steps)), cost, cost.forward, 0)
        }
        Schedule::Periodic { every } => {
            let cost = schedule::periodic_cost(steps, every)?;
            refuse_beyond(cost)?;
            let slots = u32::try_from(cost.peak_slots.memory).unwrap_or(u32::MAX).max(1);
            let optimum = schedule::binomial_cost(steps, slots)?.forward;
            let actions = schedule::periodic(steps, every)?;
            let bytes = actions.heap_bytes();
            planned(Box::new(actions), cost, optimum, bytes)
        }
        Schedule::Mixed { slots } => {
            let actions = schedule::Mixed::new(steps, slots)?;
            let cost = actions.cost();
            refuse_beyond(cost)?;
            let (optimum, bytes) = (actions.bound(), actions.heap_bytes());
            planned(Box::new(actions), cost, optimum, bytes)
        }
    }
}

/// Snapshots beyond what a processor's cache holds take longer to write and read than the few steps that they save: of as many as the
/// budget allows, so many are taken that the forward steps are less than 8 % more.
fn worthwhile(steps: u64, slots: u32, bytes: usize) -> Result<u32, Error> {
    if (slots as usize).saturating_mul(bytes) <= CACHE {
        return Ok(slots);
    }
    let enough = schedule::binomial_cost(steps, slots)?.forward as f64 * 1.08;
    let is_enough =
        |slots: u32| schedule::binomial_cost(steps, slots).is_ok_and(|cost| cost.forward as f64 <= enough);
    let (mut too_few, mut enough) = (0, slots);
    while enough - too_few > 1 {
        let middle = too_few + (enough - too_few) / 2;
        if is_enough(middle) { enough = middle } else { too_few = middle }
    }
    let in_cache = u32::try_from(CACHE / bytes.max(1)).unwrap_or(u32::MAX);
    Ok(enough.max(in_cache).min(slots))
}

/// The bytes that a second-level cache is about to hold.
const CACHE: usize = 1 << 20;

/// What a write to the second store and a read from it cost, in forward steps, for lack of a measurement.
const WRITE_COST: f64 = 2.0;
const READ_COST: f64 = 2.0;

fn binomial(steps: u64, slots: u32) -> Result<Planned, Error> {
    let cost = schedule::binomial_cost(steps, slots)?;
    let actions = schedule::binomial(steps, slots)?;
    let heap_bytes = actions.heap_bytes();
    Ok(Planned { actions: Box::new(actions), cost, optimum: cost.forward, heap_bytes })
}
