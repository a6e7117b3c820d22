//! How large states are: what was planned for, and whether a state has outgrown that.
//!
//! Input: the live state and the backend's own copy of it. Output: the largest sizes that were seen, and an error once a state is larger.
//!
//! Invariant: where there is a budget, no step is recorded and no snapshot taken of a state that was not planned for. Steps that are advanced passively are held to the bytes of the
//! live state, not to its numbers; how much memory a step gives its state is seen only after it.

use super::{Backend, Engine, Error, Inner, Passive, Reals, Step};
use palinode_core::{Budget, Snapshot};

/// The largest states that were seen.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::rollout) struct Sizes {
    /// Words of a snapshot.
    pub(in crate::rollout) reals: usize,
    pub(in crate::rollout) plain: usize,
    /// Bytes of the live state: lists have more room than they use.
    pub(in crate::rollout) heap: usize,
    /// The same for the copy that the backend records with.
    pub(in crate::rollout) in_backend: usize,
}

impl Sizes {
    fn of<T: Inner>(state: &impl Reals<Passive<T>>, in_backend: usize) -> Sizes {
        let (reals, plain) = Snapshot::lengths(state);
        Sizes { reals, plain, heap: state.heap_bytes(), in_backend }
    }

    fn each(&self) -> [usize; 4] {
        [self.reals, self.plain, self.heap, self.in_backend]
    }

    fn fit(&self, others: &Sizes) -> bool {
        self.each().iter().zip(others.each()).all(|(&own, other)| own <= other)
    }

    fn or(&self, other: &Sizes) -> Sizes {
        Sizes {
            reals: self.reals.max(other.reals),
            plain: self.plain.max(other.plain),
            heap: self.heap.max(other.heap),
            in_backend: self.in_backend.max(other.in_backend),
        }
    }
}

impl<St: Step, T: Inner, B: Backend<St, T>> Engine<'_, St, T, B> {
    /// Plans for states like the live one, too, and like that after the unit recorded last.
    pub(in crate::rollout) fn see_sizes(&mut self) {
        let in_backend = self.backend.heap_of_state();
        let live = Sizes::of(&self.live, in_backend);
        let after = self.after.as_ref().map_or(live, |after| Sizes::of(after, in_backend));
        self.largest = self.largest.or(&live).or(&after);
    }

    /// The bytes that a step may hold for a moment while it makes lists of its state longer.
    pub(in crate::rollout) fn moved_bytes(&self) -> usize {
        if self.moves_lists { self.largest.heap.max(self.largest.in_backend) } else { 0 }
    }

    /// Plans for states that hold twice as much from now on: lists that grew one by one have more room than those that were loaded.
    pub(in crate::rollout) fn leave_room_to_grow(&mut self) {
        let Sizes { heap, in_backend, .. } = &mut self.largest;
        // Where the first steps showed no growth there may be nothing on the heap yet, but what is here varies.
        self.room = (*heap + *in_backend).max(1);
        *heap *= 2;
        *in_backend *= 2;
    }

    /// The bytes that were added for that; none as long as states have one size.
    pub(in crate::rollout) fn room_to_grow(&self) -> usize {
        self.room
    }

    /// Forgets what states were seen, and gives back the room that they were given.
    pub(in crate::rollout) fn forget_states(&mut self, first: &Snapshot) {
        self.largest = Sizes::default();
        self.moves_lists = false;
        self.live = first.loaded();
        (self.after, self.loss_state) = (None, None);
    }

    /// Whether a state was seen that is larger than this one.
    pub(in crate::rollout) fn has_grown_from(&self, first: &Snapshot) -> bool {
        self.largest.reals > first.reals().len() || self.largest.plain > first.plain().len()
    }

    /// From now on a state that is larger than those seen so far is an error, if the budget is one.
    pub(in crate::rollout) fn hold_to_sizes(&mut self, budget: Budget) {
        self.holds_to_sizes = !budget.is_unlimited();
    }

    /// The error of a recording of the unit that begins at a step: one that took more than was planned for names it.
    pub(super) fn of_recording(&self, from: u64, error: Error) -> Error {
        match error {
            Error::Core(palinode_core::Error::ByteLimit { needed, limit, .. }) if self.holds_to_sizes => {
                let more = needed.saturating_sub(limit);
                Error::OverBudget { step: from, needed: more, budget: Budget::UNLIMITED }
            }
            error if error.is_excess() && self.holds_to_sizes => outgrown(from),
            error => error.counted_from(from),
        }
    }

    /// The most bytes that the live state may hold.
    #[inline]
    pub(super) fn most_heap(&self) -> usize {
        if self.holds_to_sizes { self.largest.heap } else { usize::MAX }
    }

    /// An error if the live state or the backend's was not planned for.
    #[inline]
    pub(in crate::rollout) fn check_sizes(&self, step: u64) -> Result<(), Error> {
        if !self.holds_to_sizes || self.has_its_sizes() {
            return Ok(());
        }
        Err(outgrown(step))
    }

    /// Whether the states are as large as those that were planned for, or smaller.
    #[inline]
    pub(in crate::rollout) fn has_its_sizes(&self) -> bool {
        Sizes::of(&self.live, self.backend.heap_of_state()).fit(&self.largest)
    }

    /// What is held with so many bytes elsewhere, and was while the state grew: a list is then held twice.
    fn held_with(&self, others: usize) -> usize {
        self.heap_bytes() + others + self.largest.heap.max(self.largest.in_backend)
    }

    /// Whether that is more than the budget.
    pub(in crate::rollout) fn is_beyond(&self, budget: Budget, others: usize) -> bool {
        !budget.allows(self.held_with(others))
    }

    /// An error of something that took more than was planned for, with what is held in all and so many bytes elsewhere.
    pub(in crate::rollout) fn exceeding(&self, error: Error, budget: Budget, others: usize) -> Error {
        match error {
            Error::OverBudget { step, needed: more, .. } => {
                let needed = (self.held_with(others) + more).max(budget.bytes().saturating_add(1));
                Error::OverBudget { step, needed, budget }
            }
            error => error,
        }
    }
}

/// A step takes more than was planned for. How many bytes that makes in all is for the caller to tell, who has the stores.
#[cold]
pub(super) fn outgrown(step: u64) -> Error {
    Error::OverBudget { step, needed: 0, budget: Budget::UNLIMITED }
}
