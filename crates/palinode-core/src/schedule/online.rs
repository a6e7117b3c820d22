//! Snapshots for a loop whose length is not known until it stops.
//!
//! Before a step, the live state may be kept: in a free slot, or in place of the snapshot whose loss costs
//! least if the loop stops after this step. Nothing depends on data, and most steps need no decision:
//! [`Online::next_action_at`] says when the next one is due. The first state is always kept.
//!
//! Input: how far the loop has come. Output: actions before a step, then the reverse sweep. A decision costs
//! O(snapshots), and with ten snapshots there is one in 8 steps at first and in 26 after ten million.
//! Measured (tests hold it): at most 1.08 times the evaluations of a schedule that knows the length for 3
//! snapshots or more, 1.05 for 8 or more.

use super::betas::Betas;
use super::binomial::{Snapshots, advances, at_least_one, known, least};
use super::sweep::{Kept, Sweep, actions};
use super::{Action, Cost, PerTier, Slot, Tier};
use crate::Error;

/// A schedule for a loop of unknown length.
///
/// ```
/// use palinode_core::schedule::{self, Action, Online, PerTier};
///
/// // A loop that will stop after 1000 steps, which nobody knows yet.
/// let mut online = Online::new(10)?;
/// let mut actions = Vec::new();
/// while online.steps() < 1000 {
///     let from = online.steps();
///     actions.extend(online.before_step());
///     online.skip(online.next_action_at().min(1000) - online.steps());
///     actions.push(Action::Advance { from, to: online.steps() });
/// }
/// actions.extend(online.reverse());
/// let cost = schedule::check(actions, 1000, PerTier { memory: 10, disk: 0 }).unwrap();
/// assert!(cost.forward as f64 <= 1.05 * 4636.0); // 4636 if the length is known
/// # Ok::<(), palinode_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Online {
    snapshots: u32,
    /// Steps run, or about to be.
    steps: u64,
    /// The step before which something is to be done.
    next: u64,
    /// Snapshots, by step.
    kept: Vec<Kept>,
    gaps: Vec<Gap>,
    /// The least loss among snapshots before the last, with its place, if all snapshots are in use.
    least: Option<(i64, usize)>,
    /// How many steps lay between the last snapshot and the one before.
    distance: u64,
    writes: u64,
    /// Made when all snapshots are in use.
    betas: Option<Betas>,
}

/// What it costs to reverse the steps between two snapshots.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// At its place.
    here: u64,
    /// One place to the left, where it has a slot more.
    shifted: u64,
    /// Together with the gap before it, in that one's place.
    merged: u64,
    /// How often its steps are repeated, about.
    repeats: usize,
}

/// Lists have the capacity for all snapshots from the start, if there are no more than these.
const AT_ONCE: u32 = 4096;
/// The capacity that they have otherwise.
const AT_FIRST: u32 = 64;

/// A number of advances, for differences. What is clipped belongs to loops that nobody runs.
fn signed(advances: u64) -> i64 {
    advances.min(1 << 60) as i64
}

/// What to do before a step: nothing, a snapshot, or a slot freed and a snapshot taken.
#[derive(Clone, Debug, Default)]
#[must_use = "the reverse sweep relies on these actions"]
pub struct Due([Option<Action>; 2]);

impl Iterator for Due {
    type Item = Action;
    fn next(&mut self) -> Option<Action> {
        let [first, second] = &mut self.0;
        first.take().or_else(|| second.take())
    }
}

impl Online {
    /// A schedule with at most `snapshots` snapshots in memory, the first state among them.
    pub fn new(snapshots: u32) -> Result<Online, Error> {
        at_least_one(snapshots)?;
        // All at once, unless there are so many snapshots that most loops would not fill them.
        let capacity = if snapshots > AT_ONCE { AT_FIRST } else { snapshots } as usize;
        let (kept, gaps) = (Vec::with_capacity(capacity), Vec::with_capacity(capacity));
        Ok(Online {
            snapshots,
            steps: 0,
            next: 0,
            kept,
            gaps,
            least: None,
            distance: 1,
            writes: 0,
            betas: None,
        })
    }

    /// The heap bytes that a schedule with so many snapshots and its reverse sweep hold at most, however long
    /// the loop is.
    pub fn bytes_for(snapshots: u32) -> usize {
        let of_snapshot = size_of::<Kept>() + size_of::<Gap>();
        // Longer lists are moved when they grow.
        let lists = (snapshots as usize).saturating_mul(if snapshots > AT_ONCE {
            2 * of_snapshot
        } else {
            of_snapshot
        });
        lists.saturating_add(Betas::bytes_for(snapshots))
    }

    /// The heap bytes held now.
    pub fn heap_bytes(&self) -> usize {
        self.kept.capacity() * size_of::<Kept>()
            + self.gaps.capacity() * size_of::<Gap>()
            + self.betas.as_ref().map_or(0, Betas::heap_bytes)
    }

    /// How many steps the loop has run, as far as it was said.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Before which step something is to be done; `u64::MAX` if never again.
    pub fn next_action_at(&self) -> u64 {
        self.next
    }

    /// To be called before the next step is run, once it is certain that it will be: what to do with the live
    /// state.
    #[inline]
    pub fn before_step(&mut self) -> Due {
        let step = self.steps;
        self.steps += 1;
        if step < self.next { Due::default() } else { self.act(step) }
    }

    /// So many further steps are run without asking. Up to [`next_action_at`](Self::next_action_at) nothing
    /// would have been done; beyond it the schedule is right but not as good.
    pub fn skip(&mut self, steps: u64) {
        self.steps += steps;
    }

    /// What it costs in all if the loop has stopped now.
    pub fn cost(&self) -> Cost {
        let mut cost = Cost {
            advanced: self.steps,
            recorded: self.steps,
            writes: PerTier { memory: self.writes, disk: 0 },
            reads: PerTier { memory: self.steps, disk: 0 },
            peak_snapshots: PerTier { memory: self.kept.len() as u64, disk: 0 },
            peak_residuals: self.steps.min(1),
            ..Cost::default()
        };
        let ends = self.kept.iter().skip(1).map(|kept| kept.step).chain([self.steps]);
        for ((free, kept), end) in (1..=u64::from(self.snapshots)).rev().zip(&self.kept).zip(ends) {
            let part = known(end - kept.step, free);
            cost.advanced = cost.advanced.saturating_add(part.advanced);
            // The first state of the part is kept already.
            cost.writes.memory += part.writes.memory.saturating_sub(1);
            let held = u64::from(self.snapshots) - free + part.peak_snapshots.memory;
            cost.peak_snapshots.memory = cost.peak_snapshots.memory.max(held);
        }
        cost.forward = cost.advanced.saturating_add(cost.recorded);
        cost
    }

    /// The loop has stopped: its reverse sweep.
    pub fn reverse(self) -> OnlineReverse {
        let Online { snapshots, steps, mut kept, gaps, betas, .. } = self;
        // What follows takes no more than these did.
        drop((gaps, betas));
        // Snapshots are taken one by one, so those beyond the used ones were never taken.
        let unused = kept.len() as u32..snapshots.min(u32::try_from(steps).unwrap_or(u32::MAX));
        let mut order = Vec::with_capacity(kept.len() + unused.len());
        order.extend(kept.iter().map(|kept| kept.slot.index));
        order.extend(unused);
        kept.reserve_exact(order.len() - kept.len());
        OnlineReverse { sweep: Sweep::back(Snapshots(snapshots), steps, kept, order.into()) }
    }

    #[cold]
    fn act(&mut self, step: u64) -> Due {
        let mut given_up = None;
        let (free, index) = if self.kept.len() < self.snapshots as usize {
            (None, self.kept.len() as u32)
        } else {
            let place = self.cheapest(step);
            given_up = Some(place);
            let slot = self.kept.remove(place).slot;
            (Some(Action::Free { slot }), slot.index)
        };
        let slot = Slot { tier: Tier::Memory, index };
        if self.kept.len() == self.kept.capacity() {
            let more =
                (self.kept.len() / 2).max(AT_FIRST as usize).min(self.snapshots as usize - self.kept.len());
            self.kept.reserve_exact(more);
            self.gaps.reserve_exact(self.kept.capacity() - self.gaps.len());
        }
        self.kept.push(Kept { step, slot });
        self.writes += 1;
        self.next =
            if self.kept.len() < self.snapshots as usize { step + 1 } else { self.next_decision(given_up) };
        Due([free, Some(Action::Snapshot { step, slot })])
    }

    /// The steps from a snapshot to the next.
    fn gap(&self, place: usize) -> u64 {
        self.kept[place + 1].step - self.kept[place].step
    }

    /// How many snapshots the reverse sweep has at a place, that of the snapshot there among them.
    fn free(&self, place: usize) -> u64 {
        u64::from(self.snapshots) - place as u64
    }

    /// Which snapshot, neither the first nor the last, costs least if it is given up for one at the end: how
    /// much more it then costs to reverse the loop, but for what lies between the last one and the end.
    fn least_loss(&self) -> Option<(i64, usize)> {
        let mut best: Option<(i64, usize)> = None;
        // What the gaps after `place` gain by a slot more.
        let mut gain = 0;
        for place in (1..self.gaps.len()).rev() {
            let Gap { here, shifted, merged, .. } = self.gaps[place];
            let loss = signed(merged) - signed(self.gaps[place - 1].here) - signed(here) - gain;
            // The leftmost of equals.
            if best.is_none_or(|(least, _)| loss <= least) {
                best = Some((loss, place));
            }
            gain += signed(here) - signed(shifted);
        }
        best
    }

    /// Which snapshot to give up for the state before `step`.
    fn cheapest(&self, step: u64) -> usize {
        let last = self.kept.len() - 1;
        let beyond = step - self.kept[last].step;
        let (gap, here) = (self.gap(last - 1), self.gaps[last - 1].here);
        let of_last = signed(advances(gap + beyond, 2)) - signed(here);
        match self.least {
            Some((loss, place)) if loss + signed(advances(beyond, 2)) <= of_last => place,
            _ => last,
        }
    }

    /// Costs of the gaps, after the snapshot at `given_up` made way for the last one. Those to its right
    /// moved one place to the left; what they cost there is known already.
    fn update_gaps(&mut self, given_up: Option<usize>) {
        let last = self.kept.len() - 1;
        let first = match given_up {
            None => {
                self.gaps.clear();
                0
            }
            Some(place) if place == last => {
                self.gaps.pop();
                last - 1
            }
            Some(place) => {
                self.gaps[place - 1].here = self.gaps[place].merged;
                self.gaps.remove(place);
                self.gaps[place..].iter_mut().for_each(|gap| gap.here = gap.shifted);
                place - 1
            }
        };
        let mut betas = self.betas.take().unwrap_or_else(|| Betas::new(self.snapshots));
        for place in first..last {
            let (gap, free) = (self.gap(place), self.free(place));
            if place == self.gaps.len() {
                let mut repeats = self.gaps.last().map_or(2, |gap| gap.repeats);
                let here = betas.advances(gap, free, &mut repeats);
                self.gaps.push(Gap { here, shifted: 0, merged: 0, repeats });
            }
            let mut repeats = self.gaps[place].repeats;
            if place > 0 {
                let both = self.gap(place - 1) + gap;
                self.gaps[place].merged = betas.advances(both, free + 1, &mut repeats);
            }
            self.gaps[place].shifted = betas.advances(gap, free + 1, &mut repeats);
            self.gaps[place].repeats = repeats;
        }
        self.betas = Some(betas);
    }

    /// The step before which giving up a snapshot first makes the reverse sweep cheaper, all snapshots being
    /// in use. The snapshot at `given_up` was given up for the last one.
    fn next_decision(&mut self, given_up: Option<usize>) -> u64 {
        let last = self.kept.len() - 1;
        if last == 0 {
            return u64::MAX;
        }
        self.update_gaps(given_up);
        self.least = self.least_loss();
        let loss = self.least.map(|(loss, _)| loss);
        let (gap, here) = (self.gap(last - 1), self.gaps[last - 1].here);
        // `beyond` steps after the last snapshot, and the one that is about to be run, with one slot: or with
        // two.
        let pays = |beyond: u64| {
            let kept = signed(advances(beyond + 1, 1));
            let by_other = loss.is_some_and(|loss| loss + signed(advances(beyond, 2)) < kept);
            by_other || signed(advances(gap + beyond, 2)) - signed(here) < kept
        };
        // Once it pays, it pays: look around where it did last time.
        let (mut low, mut high);
        if pays(self.distance) {
            high = self.distance;
            let mut width = 1;
            while width < high && pays(high - width) {
                (high, width) = (high - width, width * 2);
            }
            low = (high.saturating_sub(width) + 1).max(1);
        } else {
            let mut width = 1;
            low = self.distance + 1;
            while !pays(low - 1 + width) {
                (low, width) = (low + width, width * 2);
            }
            high = low - 1 + width;
        }
        self.distance = least(low, high, pays);
        self.kept[last].step + self.distance
    }
}

/// The reverse sweep of a loop that was run with [`Online`].
#[derive(Clone, Debug)]
pub struct OnlineReverse {
    sweep: Sweep<Snapshots>,
}

actions!(OnlineReverse);

/// What [`Online`] costs for a loop that stops after `steps` steps.
pub fn online_cost(steps: u64, snapshots: u32) -> Result<Cost, Error> {
    let mut online = Online::new(snapshots)?;
    while online.steps < steps {
        let _ = online.before_step();
        online.skip(online.next.min(steps).saturating_sub(online.steps));
    }
    Ok(online.cost())
}
