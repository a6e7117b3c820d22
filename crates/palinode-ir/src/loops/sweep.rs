//! What a [`Stmt::Sweep`](super::Stmt::Sweep) does next.
//!
//! Input: how many rounds there are, and how many snapshots there is memory for. Output: the steps of the
//! schedule that the interpreter follows, without those that mean nothing here.

use palinode_core::schedule::Action;

use crate::schedule::{Schedule, schedule, schedule_bytes};

/// What is done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepStep {
    /// The rounds from the first number up to, but not including, the second, forwards; at least one.
    Advance(u64, u64),
    /// The state is kept as the snapshot of this number.
    Keep(u64),
    /// The snapshot of this number is the state.
    Restore(u64),
    /// The turn.
    Turn,
    /// The round of this number, backwards.
    Back(u64),
}

/// A sweep in progress.
#[derive(Clone, Debug)]
pub struct Sweep {
    schedule: Schedule,
    /// The number of the step that is the turn; no other step has it.
    rounds: u64,
}

/// How many rounds a sweep has, and how many steps its schedule: a negative number of rounds counts as none.
fn steps(rounds: i64, turns: bool) -> (u64, u64) {
    let rounds = u64::try_from(rounds).unwrap_or(0);
    (rounds, rounds + u64::from(turns))
}

impl Sweep {
    /// A sweep through so many rounds, with memory for so many snapshots, which turns or does not. A negative
    /// number of rounds counts as none. Without snapshots, no state is restored.
    pub fn new(rounds: i64, snapshots: u64, turns: bool) -> Sweep {
        let (rounds, steps) = steps(rounds, turns);
        Sweep { schedule: schedule(steps, snapshots.min(steps)), rounds }
    }

    /// Whether it has memory of its own, for snapshots.
    pub fn has_memory(&self) -> bool {
        matches!(self.schedule, Schedule::Binomial(_))
    }

    /// The same as [`Sweep::new`], in the memory of this one.
    #[must_use]
    pub fn again(self, rounds: i64, snapshots: u64, turns: bool) -> Sweep {
        let (rounds, steps) = steps(rounds, turns);
        Sweep { schedule: self.schedule.again(steps, snapshots.min(steps)), rounds }
    }

    /// The most bytes that a sweep with so many snapshots holds, besides itself.
    pub fn bytes(snapshots: u64) -> usize {
        schedule_bytes(u64::MAX, snapshots) as usize
    }
}

impl Iterator for Sweep {
    type Item = SweepStep;

    fn next(&mut self) -> Option<SweepStep> {
        loop {
            return Some(match self.schedule.next()? {
                Action::Advance { from, to } if from < to => SweepStep::Advance(from, to),
                Action::Snapshot { slot, .. } => SweepStep::Keep(u64::from(slot.index)),
                Action::Restore { slot, .. } => SweepStep::Restore(u64::from(slot.index)),
                Action::Reverse { step } if step == self.rounds => SweepStep::Turn,
                Action::Reverse { step } => SweepStep::Back(step),
                Action::Advance { .. } | Action::Record { .. } | Action::Free { .. } => continue,
            });
        }
    }
}
