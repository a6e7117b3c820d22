//! What a stream of actions costs, found by walking it.
//!
//! Input: actions. Output: [`Cost`]. The closed forms of the methods give the same numbers without a walk;
//! tests hold the two to each other. Nothing is checked here: that is [`check`](super::check()).

use super::{Action, Tier};

/// One number for each tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PerTier<T = u64> {
    /// That of memory.
    pub memory: T,
    /// That of the disk.
    pub disk: T,
}

impl<T> PerTier<T> {
    pub(super) fn of(&mut self, tier: Tier) -> &mut T {
        match tier {
            Tier::Memory => &mut self.memory,
            Tier::Disk => &mut self.disk,
        }
    }
}

impl PerTier {
    pub(super) fn plus(self, other: PerTier) -> PerTier {
        PerTier {
            memory: self.memory.saturating_add(other.memory),
            disk: self.disk.saturating_add(other.disk),
        }
    }

    pub(super) fn max(self, other: PerTier) -> PerTier {
        PerTier { memory: self.memory.max(other.memory), disk: self.disk.max(other.disk) }
    }
}

/// What a schedule costs. A count that no `u64` can hold is `u64::MAX`: such a schedule is not run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cost {
    /// Every evaluation of a step: `advanced + recorded`.
    pub forward: u64,
    /// Steps run without recording.
    pub advanced: u64,
    /// Steps run with recording.
    pub recorded: u64,
    /// Snapshots taken.
    pub writes: PerTier,
    /// Snapshots restored.
    pub reads: PerTier,
    /// The most snapshots in use at once.
    pub peak_snapshots: PerTier,
    /// The most steps whose residuals are kept at once.
    pub peak_residuals: u64,
}

impl Cost {
    /// The total in forward steps if a write to disk costs `write` steps and a read `read` steps.
    pub fn with_disk(&self, write: f64, read: f64) -> f64 {
        self.forward as f64 + write * self.writes.disk as f64 + read * self.reads.disk as f64
    }

    /// Forward steps per step of the loop: 1 means that nothing is computed twice.
    pub fn factor(&self, steps: u64) -> f64 {
        if steps == 0 { 1.0 } else { self.forward as f64 / steps as f64 }
    }
}

/// How many bytes the two things that a schedule keeps take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sizes {
    /// Bytes of one snapshot.
    pub snapshot: u64,
    /// Bytes of the residuals of one step.
    pub residual: u64,
}

/// Walks a stream of actions and counts.
///
/// ```
/// use palinode_core::schedule::{self, binomial, binomial_cost};
///
/// let walked = schedule::cost(binomial(100, 5)?);
/// assert_eq!(walked.forward, 416);
/// assert_eq!(walked, binomial_cost(100, 5)?); // the same, by a formula
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn cost(actions: impl IntoIterator<Item = Action>) -> Cost {
    let mut counter = Counter::default();
    actions.into_iter().for_each(|action| counter.count(action));
    counter.cost()
}

/// The most bytes of snapshots in memory and residuals that a stream keeps at once, the live step's residuals
/// included, the live state not.
pub fn peak_bytes(actions: impl IntoIterator<Item = Action>, sizes: Sizes) -> u64 {
    let mut counter = Counter::default();
    let mut peak = 0;
    for action in actions {
        counter.count(action);
        let snapshots = counter.held.memory.saturating_mul(sizes.snapshot);
        let residuals = counter.residuals.saturating_mul(sizes.residual);
        peak = peak.max(snapshots.saturating_add(residuals));
    }
    peak
}

/// Counts one action after another.
#[derive(Default)]
pub(super) struct Counter {
    cost: Cost,
    held: PerTier,
    residuals: u64,
}

impl Counter {
    pub(super) fn count(&mut self, action: Action) {
        let cost = &mut self.cost;
        match action {
            Action::Advance { from, to } => {
                cost.advanced = cost.advanced.saturating_add(to.saturating_sub(from));
            }
            Action::Snapshot { slot, .. } => {
                *cost.writes.of(slot.tier) += 1;
                *self.held.of(slot.tier) += 1;
                cost.peak_snapshots = cost.peak_snapshots.max(self.held);
            }
            Action::Restore { slot, .. } => *cost.reads.of(slot.tier) += 1,
            Action::Record { .. } => {
                cost.recorded += 1;
                self.residuals += 1;
                cost.peak_residuals = cost.peak_residuals.max(self.residuals);
            }
            Action::Reverse { .. } => self.residuals = self.residuals.saturating_sub(1),
            Action::Free { slot } => {
                let held = self.held.of(slot.tier);
                *held = held.saturating_sub(1);
            }
        }
    }

    pub(super) fn cost(&self) -> Cost {
        Cost { forward: self.cost.advanced.saturating_add(self.cost.recorded), ..self.cost }
    }
}
