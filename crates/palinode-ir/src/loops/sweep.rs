//! What a [`Stmt::Sweep`](super::Stmt::Sweep) does next.
//!
//! Input: a number of rounds, and of snapshots for which there is room. Output: steps, those of the schedule
//! that the interpreter follows, without those that mean nothing here.

use palinode_core::schedule::Action;

use crate::schedule::{Schedule, schedule, schedule_bytes};

/// What is done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepStep {
    /// The rounds from the first number up to, without, the second, forwards. There is one at least.
    Advance(u64, u64),
    /// The state is kept as the snapshot of this number.
    Keep(u64),
    /// The snapshot of this number is the state.
    Restore(u64),
    /// The round of this number, backwards.
    Back(u64),
}

/// A sweep on its way.
#[derive(Clone, Debug)]
pub struct Sweep(Schedule);

impl Sweep {
    /// A sweep through so many rounds; less than none are none. With room for no snapshot the state is not
    /// gone back to.
    pub fn new(rounds: i64, room: u64) -> Sweep {
        let rounds = u64::try_from(rounds).unwrap_or(0);
        Sweep(schedule(rounds, room.min(rounds)))
    }

    /// The most bytes that one with so much room holds, besides itself.
    pub fn bytes(room: u64) -> usize {
        schedule_bytes(u64::MAX, room) as usize
    }
}

impl Iterator for Sweep {
    type Item = SweepStep;

    fn next(&mut self) -> Option<SweepStep> {
        loop {
            return Some(match self.0.next()? {
                Action::Advance { from, to } if from < to => SweepStep::Advance(from, to),
                Action::Snapshot { slot, .. } => SweepStep::Keep(u64::from(slot.index)),
                Action::Restore { slot, .. } => SweepStep::Restore(u64::from(slot.index)),
                Action::Reverse { step } => SweepStep::Back(step),
                Action::Advance { .. } | Action::Record { .. } | Action::Free { .. } => continue,
            });
        }
    }
}
