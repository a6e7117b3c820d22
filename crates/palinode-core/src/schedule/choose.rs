//! From bytes to a method: which schedule takes the fewest forward evaluations within a budget.
//!
//! Input: steps, sizes, bytes. Output: a [`Method`] with its cost and bytes, or the smallest budget that
//! works. The bytes are those of snapshots and residuals beside the live state and the residuals of one step,
//! and those of the plan itself: a table that is larger than what it saves is not worth it.

use super::binomial::{least, useful};
use super::{Action, Binomial, binomial};
use super::{
    Cost, Mixed, Periodic, Sizes, StoreAll, binomial_cost, periodic, periodic_cost, store_all, store_all_cost,
};
use crate::Error;

/// A method and its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Method {
    /// [`store_all`].
    StoreAll,
    /// [`periodic`], with so many steps from a snapshot to the next.
    Periodic { every: u64 },
    /// [`binomial`], with so many snapshots at most.
    Binomial { snapshots: u32 },
    /// [`Mixed::near`], with so many bytes for snapshots and residuals.
    Mixed { bytes: u64 },
}

/// What [`choose`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The method.
    pub method: Method,
    /// What it costs.
    pub cost: Cost,
    /// The most bytes of snapshots and residuals at once, beside the live state and the residuals of one
    /// step.
    pub kept_bytes: u64,
    /// Bytes of the schedule itself.
    pub plan_bytes: u64,
    steps: u64,
    sizes: Sizes,
}

/// The method with the fewest forward evaluations whose snapshots, residuals and plan take at most `bytes`
/// bytes.
///
/// ```
/// use palinode_core::schedule::{Method, Sizes, choose};
///
/// let sizes = Sizes { snapshot: 24, residual: 500 };
/// assert_eq!(choose(1000, sizes, 1 << 20)?.method, Method::StoreAll);
/// let chosen = choose(1_000_000, sizes, 4096)?;
/// assert!(matches!(chosen.method, Method::Binomial { .. }) && chosen.kept_bytes + chosen.plan_bytes <= 4096);
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn choose(steps: u64, sizes: Sizes, bytes: u64) -> Result<Chosen, Error> {
    let all = steps.saturating_sub(1).saturating_mul(sizes.residual);
    let found = |method, cost: Cost, plan_bytes: usize| {
        let residuals = cost.peak_residuals.saturating_sub(1).saturating_mul(sizes.residual);
        let kept_bytes = cost.peak_snapshots.memory.saturating_mul(sizes.snapshot).saturating_add(residuals);
        Chosen { method, cost, kept_bytes, plan_bytes: plan_bytes as u64, steps, sizes }
    };
    if all <= bytes {
        return Ok(found(Method::StoreAll, store_all_cost(steps), 0));
    }
    let per_snapshot = sizes.snapshot.saturating_add(size_of::<super::sweep::Kept>() as u64);
    let snapshots = u32::try_from(bytes / per_snapshot).unwrap_or(u32::MAX);
    if snapshots == 0 {
        return Err(Error::ScheduleBudget { bytes, smallest: per_snapshot.min(all) });
    }
    let snapshots = useful(steps, snapshots)?;
    let plan_bytes = snapshots as usize * size_of::<super::sweep::Kept>();
    let mut best = found(Method::Binomial { snapshots }, binomial_cost(steps, snapshots)?, plan_bytes);
    for other in [best_period(steps, sizes, per_snapshot, bytes), best_mixed(steps, sizes, bytes)] {
        let Some((method, cost, plan_bytes)) = other else { continue };
        let other = found(method, cost, plan_bytes);
        let fits = other.kept_bytes.saturating_add(other.plan_bytes) <= bytes;
        if fits && other.cost.forward < best.cost.forward {
            best = other;
        }
    }
    Ok(best)
}

/// Blocks recorded as a whole, as long as fits: the longer the last one, the fewer advances.
fn best_period(steps: u64, sizes: Sizes, per_snapshot: u64, bytes: u64) -> Option<(Method, Cost, usize)> {
    // Bytes of a period fall and then rise with it.
    let need = |every: u64| {
        let snapshots = steps.div_ceil(every) - 1;
        snapshots.saturating_mul(per_snapshot).saturating_add((every - 1).saturating_mul(sizes.residual))
    };
    let even = ((steps as f64) * per_snapshot as f64 / sizes.residual.max(1) as f64).sqrt();
    let every = (even as u64).clamp(1, steps);
    if need(every) > bytes {
        return None;
    }
    // From where they are fewest, longer periods as long as they fit.
    let every = least(every, steps, |every| need(every + 1) > bytes);
    let cost = periodic_cost(steps, every).ok()?;
    let plan = cost.peak_snapshots.memory as usize * size_of::<super::sweep::Kept>();
    Some((Method::Periodic { every }, cost, plan))
}

/// A mixed schedule whose own table is within the budget, too.
fn best_mixed(steps: u64, sizes: Sizes, bytes: u64) -> Option<(Method, Cost, usize)> {
    let first = Mixed::near(steps, sizes, bytes).ok()?;
    let budget = bytes.checked_sub(first.heap_bytes() as u64)?;
    let mixed = Mixed::near(steps, sizes, budget).ok()?;
    Some((Method::Mixed { bytes: budget }, mixed.cost(), mixed.heap_bytes()))
}

impl Chosen {
    /// The actions.
    pub fn schedule(&self) -> Result<ChosenActions, Error> {
        Ok(match self.method {
            Method::StoreAll => ChosenActions::StoreAll(store_all(self.steps)),
            Method::Periodic { every } => ChosenActions::Periodic(periodic(self.steps, every)?),
            Method::Binomial { snapshots } => ChosenActions::Binomial(binomial(self.steps, snapshots)?),
            Method::Mixed { bytes } => ChosenActions::Mixed(Mixed::near(self.steps, self.sizes, bytes)?),
        })
    }
}

/// The actions of any method.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ChosenActions {
    /// Of [`store_all`].
    StoreAll(StoreAll),
    /// Of [`periodic`].
    Periodic(Periodic),
    /// Of [`binomial`].
    Binomial(Binomial),
    /// Of [`Mixed`].
    Mixed(Mixed),
}

impl Iterator for ChosenActions {
    type Item = Action;
    #[inline]
    fn next(&mut self) -> Option<Action> {
        match self {
            ChosenActions::StoreAll(actions) => actions.next(),
            ChosenActions::Periodic(actions) => actions.next(),
            ChosenActions::Binomial(actions) => actions.next(),
            ChosenActions::Mixed(actions) => actions.next(),
        }
    }
}
