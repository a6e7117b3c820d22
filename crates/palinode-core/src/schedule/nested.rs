//! Loops inside loops: each level has its own schedule and its own snapshots.
//!
//! A step of an outer loop is a whole inner loop. To advance over it costs its inner steps; to record and
//! reverse it is to run the inner schedule. So with lengths `n1, n2, ...` and binomial schedules, each
//! innermost step is run once to be recorded, and level `k` adds `advances(nk, sk) / nk` runs of it: a sum of
//! parts, each of which depends on the snapshots of one level only. The best division of a total is found
//! exactly, level by level, keeping what no other division beats.
//!
//! Input: lengths and sizes of snapshots, outermost first, and a total. Output: snapshots for each level,
//! cost of the whole.

use super::binomial::{Binomial, advances, binomial};
use super::{Cost, PerTier};
use crate::Error;

/// A loop of a nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Level {
    /// How many steps it has, each time it is run.
    pub steps: u64,
    /// How many bytes a snapshot of its state takes; 1 to count snapshots.
    pub snapshot: u64,
}

/// Schedules for a nest of loops.
///
/// ```
/// use palinode_core::schedule::{Level, nested};
///
/// // 100 outer steps of 100 inner steps each, ten snapshots in all.
/// let loops = [Level { steps: 100, snapshot: 1 }; 2];
/// let nest = nested(&loops, 10)?;
/// assert_eq!(nest.snapshots(), [5, 5]);
/// assert_eq!(nest.cost().forward, 73_200); // 7.3 evaluations a step
/// # Ok::<(), palinode_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nested {
    levels: Vec<Level>,
    snapshots: Vec<u32>,
    bytes: u64,
}

/// The best schedules for loops inside each other, outermost first, whose snapshots together take at most
/// `bytes` bytes (or snapshots, if each takes 1).
pub fn nested(levels: &[Level], bytes: u64) -> Result<Nested, Error> {
    /// A division of bytes among the levels so far.
    #[derive(Clone)]
    struct Part {
        bytes: u64,
        repeats: f64,
        snapshots: Vec<u32>,
    }
    let mut parts = vec![Part { bytes: 0, repeats: 0.0, snapshots: Vec::new() }];
    for (done, level) in levels.iter().enumerate() {
        // What the levels after this one need at least.
        let reserved = levels[done + 1..].iter().map(least_bytes).fold(0, u64::saturating_add);
        let mut longer = Vec::new();
        for part in &parts {
            let budget = bytes.saturating_sub(part.bytes).saturating_sub(reserved);
            for snapshots in candidates(level, budget) {
                let runs = advances(level.steps, snapshots.into()) as f64 / level.steps.max(1) as f64;
                let mut all = part.snapshots.clone();
                all.push(snapshots);
                let taken = part.bytes + u64::from(snapshots) * level.snapshot;
                longer.push(Part { bytes: taken, repeats: part.repeats + runs, snapshots: all });
            }
        }
        longer.sort_by(|a, b| a.bytes.cmp(&b.bytes).then(a.repeats.total_cmp(&b.repeats)));
        let mut best = f64::INFINITY;
        longer.retain(|part| {
            part.repeats < best && {
                best = part.repeats;
                true
            }
        });
        parts = longer;
    }
    let Some(part) = parts.pop() else {
        let smallest = levels.iter().map(least_bytes).fold(0, u64::saturating_add);
        return Err(Error::ScheduleBudget { bytes, smallest });
    };
    Ok(Nested { levels: levels.to_vec(), snapshots: part.snapshots, bytes: part.bytes })
}

fn least_bytes(level: &Level) -> u64 {
    if level.steps > 1 { level.snapshot } else { 0 }
}

/// Numbers of snapshots that fit and of which none does what a smaller one does.
fn candidates(level: &Level, budget: u64) -> impl Iterator<Item = u32> + use<> {
    let useful = level.steps.saturating_sub(1);
    let most = budget.checked_div(level.snapshot).unwrap_or(u64::MAX).min(useful).min(u32::MAX.into()) as u32;
    let least = u32::from(useful > 0);
    least..=most
}

impl Nested {
    /// How many snapshots each level has, outermost first.
    pub fn snapshots(&self) -> &[u32] {
        &self.snapshots
    }

    /// Bytes of all snapshots that are kept at once.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The schedule of one level, 0 being the outermost. A driver runs the inner schedule where the outer one
    /// says `Record` and `Reverse`, which follow each other.
    pub fn schedule(&self, level: usize) -> Result<Binomial, Error> {
        binomial(self.levels[level].steps, self.snapshots[level])
    }

    /// What the nest costs, in innermost steps; writes, reads and peaks are those of all levels.
    pub fn cost(&self) -> Cost {
        let product = |levels: &[Level]| levels.iter().map(|level| level.steps).fold(1, u64::saturating_mul);
        let mut cost = Cost { recorded: product(&self.levels), ..Cost::default() };
        for (at, (level, &snapshots)) in self.levels.iter().zip(&self.snapshots).enumerate() {
            let (times, inner) = (product(&self.levels[..at]), product(&self.levels[at + 1..]));
            let one = super::binomial::known(level.steps, snapshots.into());
            let over = |count: u64| PerTier { memory: count.saturating_mul(times), disk: 0 };
            cost.advanced =
                cost.advanced.saturating_add(one.advanced.saturating_mul(times).saturating_mul(inner));
            cost.writes = cost.writes.plus(over(one.writes.memory));
            cost.reads = cost.reads.plus(over(one.reads.memory));
            cost.peak_snapshots = cost.peak_snapshots.plus(one.peak_snapshots);
        }
        cost.peak_residuals = cost.recorded.min(1);
        cost.forward = cost.advanced.saturating_add(cost.recorded);
        cost
    }
}
