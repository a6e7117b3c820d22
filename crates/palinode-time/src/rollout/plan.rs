//! From a budget to a schedule: how many snapshots fit besides what is always there.
//!
//! Input: the number of units, the size of a state, the bytes that are taken anyway, the budget. Output: a
//! stream of actions, what it costs, and the optimum; or a refusal that names the smallest budget that works.
//!
//! Everything counts: snapshots, the residuals of as many units as are kept at once, the schedule's own stack
//! and tables, and what making them takes.

use super::setting::AHEAD;
use super::stores::Stores;
use crate::error::Error;
use crate::store::slack_of_changing_sizes;
use palinode_core::Budget;
use palinode_core::schedule::{self, Action, Cost, PlanBytes};

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
    /// So many places, each of which holds a snapshot or the residuals of a step.
    Mixed {
        /// How many.
        places: u32,
    },
}

/// What the engine needs besides snapshots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    /// Bytes of states, cotangents, parameters and results.
    pub(super) states: usize,
    /// Bytes of the residuals of one unit, with its place in the lists.
    pub(super) residuals: usize,
    /// Bytes that are needed when the sweep is over and its snapshots are gone.
    pub(super) afterwards: usize,
    /// Words of a snapshot.
    pub(super) reals: usize,
    pub(super) plain: usize,
    /// Whether they differ in size.
    pub(super) varies: bool,
    /// The most bytes that were held in all before the sweep: while a cheaper way to the partials was looked
    /// for, more steps were recorded at once than fit, or a step moved lists of its state.
    pub(super) least: usize,
}

/// How a reverse sweep gets its states back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By a schedule for a known length; with so many snapshots in a second store.
    Scheduled(Schedule, u32),
    /// By a schedule for an unknown length.
    Online,
    /// By undoing steps.
    Undoing,
}

/// What a schedule keeps at most, and its own bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keeps {
    /// How many snapshots are in memory at once, at most.
    pub(super) snapshots: u64,
    disk_snapshots: u32,
    residuals: u64,
    /// Its own bytes, while it is made and afterwards.
    pub(super) bytes: PlanBytes,
}

/// The bytes of a sweep, in parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    states: usize,
    residuals: usize,
    snapshots: usize,
}

impl Parts {
    pub(super) fn total(&self) -> usize {
        self.states.saturating_add(self.residuals).saturating_add(self.snapshots)
    }

    /// A refusal, unless the budget is enough.
    pub(super) fn within(&self, budget: Budget) -> Result<(), Error> {
        // Not even an unlimited budget is so much, and no budget is enough that a refusal could name.
        if self.total() == usize::MAX {
            let what = if self.residuals == usize::MAX { "residuals" } else { "snapshots" };
            return Err(Error::BeyondMemory { what });
        }
        if budget.allows(self.total()) {
            return Ok(());
        }
        let Parts { states, residuals, snapshots } = *self;
        Err(Error::BudgetTooSmall { budget, smallest: self.total().into(), states, residuals, snapshots })
    }
}

impl Needs {
    /// The bytes of a sweep that keeps these. The schedule is made when one unit has been recorded and no
    /// snapshot taken; it is followed when there are all of them.
    pub(super) fn with(&self, keeps: Keeps, stores: &Stores<'_, '_>) -> Parts {
        let in_stores = stores
            .heap_bytes_for(keeps.snapshots as usize, keeps.disk_snapshots, self.reals, self.plain)
            .saturating_add(self.slack(keeps.snapshots, stores))
            .saturating_add(if self.varies && stores.disk.is_some() {
                slack_of_changing_sizes(keeps.disk_snapshots as usize)
            } else {
                0
            });
        self.with_stored(keeps, in_stores)
    }

    /// The same where stores hold so many bytes.
    pub(super) fn with_stored(&self, keeps: Keeps, in_stores: usize) -> Parts {
        let units = usize::try_from(keeps.residuals).unwrap_or(usize::MAX);
        let further = self.residuals.saturating_mul(units.saturating_sub(1));
        // Of several units that are recorded one after the other, the state before the first is kept; and the
        // place of the first is moved once.
        let block = (self.reals + self.plain) * size_of::<u64>() + self.residuals.min(1024);
        let block = if units > 1 { block } else { 0 };
        let kept =
            further.saturating_add(block).saturating_add(in_stores).saturating_add(keeps.bytes.following);
        let looking = self.least.saturating_sub(self.states.saturating_add(self.residuals));
        let residuals = further.saturating_add(block);
        // What residuals were in is still there when snapshots are not.
        let rest = kept.max(keeps.bytes.planning).max(residuals.saturating_add(self.afterwards)).max(looking);
        Parts {
            states: self.states,
            residuals: self.residuals.saturating_add(residuals),
            snapshots: rest.saturating_sub(residuals),
        }
    }

    /// The bytes that the store in memory holds of a sweep that keeps these.
    pub(super) fn in_memory(&self, keeps: Keeps, stores: &Stores<'_, '_>) -> usize {
        let bytes = stores.memory().heap_bytes_for(keeps.snapshots as usize, self.reals, self.plain);
        bytes.saturating_add(self.slack(keeps.snapshots, stores))
    }

    /// The bytes that a store in memory of the caller's takes for sizes that change; ours knows the largest.
    fn slack(&self, snapshots: u64, stores: &Stores<'_, '_>) -> usize {
        if self.varies && !stores.has_the_budget() { slack_of_changing_sizes(snapshots as usize) } else { 0 }
    }
}

/// The bytes of actions in a box, and of those that a slow store learns ahead.
fn boxed<A>(bytes: PlanBytes, tells_ahead: bool) -> PlanBytes {
    let more = size_of::<A>() + if tells_ahead { AHEAD * size_of::<Action>() } else { 0 };
    PlanBytes {
        planning: bytes.planning.saturating_add(more),
        following: bytes.following.saturating_add(more),
    }
}

fn held(bytes: usize) -> PlanBytes {
    PlanBytes { planning: bytes, following: bytes }
}

/// As few places to divide a loop between two tiers at as can be planned with.
const FEWEST_BLOCKS: u64 = 16;

impl Way {
    /// What it keeps with so many snapshots in memory, if it may choose; the tables of two tiers may be so
    /// large.
    fn keeps(self, units: u64, snapshots: u32, blocks: u64) -> Result<Keeps, Error> {
        let useful = u64::from(snapshots).min(units.saturating_sub(1));
        let one = units.min(1);
        let keeps = |snapshots, residuals, bytes| Keeps { snapshots, disk_snapshots: 0, residuals, bytes };
        let in_steps = |snapshots: u64| held(schedule::binomial_bytes(snapshots as u32));
        let binomial =
            |snapshots| keeps(snapshots, one, boxed::<schedule::Binomial>(in_steps(snapshots), false));
        Ok(match self {
            // The state that is undone, to compare with.
            Way::Undoing => keeps(1, 1, held(0)),
            Way::Online => keeps(snapshots.into(), 1, held(schedule::Online::bytes_for(snapshots))),
            Way::Scheduled(Schedule::Best, disk_snapshots @ 1..) => {
                let bytes = schedule::two_tier_bytes(units, useful as u32, disk_snapshots, blocks);
                Keeps { disk_snapshots, ..keeps(useful, one, boxed::<schedule::TwoTier>(bytes, true)) }
            }
            Way::Scheduled(Schedule::Best, 0) => binomial(useful),
            Way::Scheduled(Schedule::Binomial { snapshots }, _) => {
                binomial(schedule::binomial_cost(units, snapshots)?.peak_snapshots.memory)
            }
            Way::Scheduled(Schedule::StoreAll, _) => {
                keeps(0, units, boxed::<schedule::StoreAll>(held(0), false))
            }
            Way::Scheduled(Schedule::Periodic { every }, _) => {
                let cost = schedule::periodic_cost(units, every)?;
                let snapshots = cost.peak_snapshots.memory;
                let bytes = boxed::<schedule::Periodic>(in_steps(snapshots), false);
                keeps(snapshots, cost.peak_residuals, bytes)
            }
            Way::Scheduled(Schedule::Mixed { places }, _) => {
                let (bytes, snapshots, residuals) = schedule::Mixed::bytes_for(units, places);
                keeps(snapshots, residuals, boxed::<schedule::Mixed>(bytes, false))
            }
        })
    }

    /// What a loop of unknown length keeps with so many snapshots.
    pub(super) fn with_snapshots(self, snapshots: u32) -> Result<Keeps, Error> {
        self.keeps(u64::MAX, snapshots, 0)
    }

    /// What it keeps at least.
    pub(super) fn least(self, units: u64) -> Result<Keeps, Error> {
        self.keeps(units, 1, FEWEST_BLOCKS)
    }

    /// Whether it takes as many snapshots as the budget allows.
    pub(super) fn chooses(self) -> bool {
        matches!(self, Way::Online | Way::Scheduled(Schedule::Best, _))
    }
}

/// What there is to do, and to keep meanwhile.
pub(super) struct Planned {
    pub(super) actions: Actions,
    pub(super) keeps: Keeps,
}

/// What there is to do.
pub(super) enum Actions {
    /// These, of this cost; the fewest forward steps for as many snapshots.
    Known { actions: Box<dyn Iterator<Item = Action>>, optimum: u64, cost: Cost },
    /// What comes up on the way, with so many snapshots.
    Online { snapshots: u32 },
    /// Undoing.
    Undo,
}

impl Keeps {
    /// How many units are recorded at once, at most.
    pub(super) fn units(&self) -> usize {
        usize::try_from(self.residuals).unwrap_or(usize::MAX)
    }

    /// The same, with so many bytes of its own.
    pub(super) fn followed_in(self, bytes: usize) -> Keeps {
        Keeps { bytes: held(bytes), ..self }
    }
}

/// The budget, what there is to plan for, and at most how many snapshots in memory are to be taken.
#[derive(Clone, Copy)]
pub(super) struct Frame<'f, 'r, 'a> {
    pub(super) way: Way,
    pub(super) budget: Budget,
    pub(super) needs: Needs,
    pub(super) stores: &'f Stores<'r, 'a>,
    pub(super) most: u64,
}

impl Frame<'_, '_, '_> {
    /// How many snapshots fit; at least one, or a refusal.
    pub(super) fn snapshots(&self, units: u64, blocks: u64) -> Result<u32, Error> {
        let most = self.most.min(units).clamp(1, u32::MAX.into()) as u32;
        if self.budget.is_unlimited() {
            return Ok(most);
        }
        let bytes = |snapshots: u32| {
            Ok::<_, Error>(self.needs.with(self.way.keeps(units, snapshots, blocks)?, self.stores))
        };
        bytes(1)?.within(self.budget)?;
        if self.budget.allows(bytes(most)?.total()) {
            return Ok(most);
        }
        let (mut fits, mut too_many) = (1, most);
        while too_many - fits > 1 {
            let middle = fits + (too_many - fits) / 2;
            if self.budget.allows(bytes(middle)?.total()) { fits = middle } else { too_many = middle }
        }
        Ok(fits)
    }

    /// How many places a loop is divided at between two tiers: a quarter of what is left may hold their
    /// tables.
    fn blocks(&self, units: u64, disk_snapshots: u32) -> Result<u64, Error> {
        let most = schedule::TwoTier::EXACT_STEPS;
        if self.budget.is_unlimited() {
            return Ok(most);
        }
        let least = self.needs.with(self.way.least(units)?, self.stores);
        least.within(self.budget)?;
        let tables = (self.budget.bytes() - least.total()) / 4;
        let bytes = |blocks| schedule::two_tier_bytes(units, 1, disk_snapshots, blocks).planning;
        let (mut fits, mut too_many) = (FEWEST_BLOCKS, most + 1);
        while too_many - fits > 1 {
            let middle = fits + (too_many - fits) / 2;
            if bytes(middle) <= bytes(FEWEST_BLOCKS) + tables { fits = middle } else { too_many = middle }
        }
        Ok(fits)
    }

    /// What there is to do and to keep.
    pub(super) fn plan(&self, units: u64) -> Result<Planned, Error> {
        if !self.way.chooses() {
            self.needs.with(self.way.least(units)?, self.stores).within(self.budget)?;
        }
        let least = self.way.least(units)?;
        let planned = |actions: Box<dyn Iterator<Item = Action>>, cost: Cost, optimum, keeps| {
            Ok(Planned { actions: Actions::Known { actions, optimum, cost }, keeps })
        };
        let (method, disk_snapshots) = match self.way {
            Way::Scheduled(method, disk_snapshots) => (method, disk_snapshots),
            Way::Online => {
                let snapshots = self.snapshots(units, 0)?;
                let keeps = self.way.with_snapshots(snapshots)?;
                return Ok(Planned { actions: Actions::Online { snapshots }, keeps });
            }
            Way::Undoing => return Ok(Planned { actions: Actions::Undo, keeps: least }),
        };
        let binomial = |snapshots: u32, keeps| {
            let cost = schedule::binomial_cost(units, snapshots)?;
            planned(Box::new(schedule::binomial(units, snapshots)?), cost, cost.forward, keeps)
        };
        match method {
            Schedule::Best if disk_snapshots > 0 => {
                let blocks = self.blocks(units, disk_snapshots)?;
                let snapshots = self.snapshots(units, blocks)?;
                let costs = (WRITE_COST, READ_COST);
                let actions = schedule::two_tier_walked(units, snapshots, disk_snapshots, costs, blocks)?;
                // Steps are compared with steps: as if the disk were memory.
                let in_all = snapshots.saturating_add(disk_snapshots);
                let optimum = schedule::binomial_cost(units, in_all)?.forward;
                let cost = actions.cost();
                planned(Box::new(actions), cost, optimum, self.way.keeps(units, snapshots, blocks)?)
            }
            Schedule::Best => {
                let words = self.needs.reals + self.needs.plain;
                let snapshots = worthwhile(units, self.snapshots(units, 0)?, words * size_of::<u64>())?;
                binomial(snapshots, self.way.keeps(units, snapshots, 0)?)
            }
            Schedule::Binomial { snapshots } => binomial(snapshots, least),
            Schedule::StoreAll => {
                let cost = schedule::store_all_cost(units);
                planned(Box::new(schedule::store_all(units)), cost, cost.forward, least)
            }
            Schedule::Periodic { every } => {
                let cost = schedule::periodic_cost(units, every)?;
                let snapshots = u32::try_from(cost.peak_snapshots.memory).unwrap_or(u32::MAX).max(1);
                let optimum = schedule::binomial_cost(units, snapshots)?.forward;
                planned(Box::new(schedule::periodic(units, every)?), cost, optimum, least)
            }
            Schedule::Mixed { places } => {
                let actions = schedule::Mixed::walked(units, places)?;
                let (cost, optimum) = (actions.cost(), actions.bound());
                planned(Box::new(actions), cost, optimum, least)
            }
        }
    }
}

/// Snapshots beyond what a processor's cache holds take longer to write and read than the few steps that they
/// save: of as many as the budget allows, so many are taken that the forward steps are less than 8 % more.
fn worthwhile(steps: u64, snapshots: u32, bytes: usize) -> Result<u32, Error> {
    if (snapshots as usize).saturating_mul(bytes) <= CACHE {
        return Ok(snapshots);
    }
    let enough = schedule::binomial_cost(steps, snapshots)?.forward as f64 * 1.08;
    let is_enough = |snapshots: u32| {
        schedule::binomial_cost(steps, snapshots).is_ok_and(|cost| cost.forward as f64 <= enough)
    };
    let (mut too_few, mut enough) = (0, snapshots);
    while enough - too_few > 1 {
        let middle = too_few + (enough - too_few) / 2;
        if is_enough(middle) { enough = middle } else { too_few = middle }
    }
    let in_cache = u32::try_from(CACHE / bytes.max(1)).unwrap_or(u32::MAX);
    Ok(enough.max(in_cache).min(snapshots))
}

/// The bytes that a second-level cache is about to hold.
const CACHE: usize = 1 << 20;

/// What a write to the second store and a read from it cost, in forward steps, for lack of a measurement.
const WRITE_COST: f64 = 2.0;
const READ_COST: f64 = 2.0;
