//! The order in which a sweep keeps snapshots, computes states again, and reverses rounds.
//!
//! Input: the number of rounds, and of states that may be kept. Output: actions; of
//! [`palinode_core::schedule`], the binomial schedule, which advances least. Here a round is recorded and
//! reversed in one go, so that `Record` means nothing. Where there is no state, nothing has to be kept.

use palinode_core::schedule::{Action, Binomial, binomial, binomial_bytes, binomial_cost};

/// What a sweep does.
#[derive(Clone, Debug)]
pub(crate) enum Schedule {
    /// There is a state.
    Binomial(Binomial),
    /// There is none; so many rounds are left.
    Stateless(u64),
}

fn number(snapshots: u64) -> u32 {
    u32::try_from(snapshots).unwrap_or(u32::MAX)
}

/// The schedule for so many rounds; with no snapshot, it has no state to go through.
pub(crate) fn schedule(rounds: u64, snapshots: u64) -> Schedule {
    match binomial(rounds, number(snapshots)) {
        Ok(actions) => Schedule::Binomial(actions),
        Err(_) => Schedule::Stateless(rounds),
    }
}

impl Schedule {
    /// The same as [`schedule`], in the memory of this one.
    pub(crate) fn again(self, rounds: u64, snapshots: u64) -> Schedule {
        match self {
            Schedule::Stateless(_) => schedule(rounds, snapshots),
            Schedule::Binomial(actions) => match actions.again(rounds, number(snapshots)) {
                Ok(actions) => Schedule::Binomial(actions),
                Err(_) => Schedule::Stateless(rounds),
            },
        }
    }
}

/// The bytes that a schedule for so many rounds holds.
pub(crate) fn schedule_bytes(rounds: u64, snapshots: u64) -> u64 {
    binomial_bytes(number(snapshots.min(rounds.saturating_sub(1)))) as u64
}

/// How many rounds are advanced through.
pub(crate) fn advances(rounds: u64, snapshots: u64) -> u64 {
    binomial_cost(rounds, number(snapshots)).map_or(0, |cost| cost.advanced)
}

impl Iterator for Schedule {
    type Item = Action;

    #[inline]
    fn next(&mut self) -> Option<Action> {
        match self {
            Schedule::Binomial(actions) => actions.next(),
            Schedule::Stateless(left) => {
                let step = left.checked_sub(1)?;
                *left = step;
                Some(Action::Reverse { step })
            }
        }
    }
}
