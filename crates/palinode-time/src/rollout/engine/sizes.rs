//! How large states are: what was planned for, and whether a state has outgrown that.
//!
//! Input: the live state and the backend's own copy of it. Output: the largest sizes that were seen, and an
//! error once a state is larger.
//!
//! Invariant: where there is a budget, no step is recorded and no snapshot taken of a state that was not
//! planned for. Steps that are advanced passively are held to the bytes of the live state, not to its
//! numbers; how much memory a step gives its state is seen only after it.

use super::{Backend, Engine, Error, Inner, Notes, Passive, Reals, Step, When};
use crate::rollout::backend::{Recording, slack_of};
use palinode_core::{Budget, Sink, Snapshot};

/// The largest states that were seen.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::rollout) struct Sizes {
    /// Words of a snapshot.
    pub(in crate::rollout) reals: usize,
    pub(in crate::rollout) plain: usize,
    /// Bytes of the live state: lists have more capacity than they use.
    pub(in crate::rollout) heap: usize,
    /// The same for the copy that the backend records with.
    pub(in crate::rollout) in_backend: usize,
    /// The same for the copy that the loss is taken of.
    of_loss: usize,
    /// What steps noted that they took.
    noted: usize,
    /// Lists that the backend holds twice for a moment.
    moved: usize,
}

impl Sizes {
    fn of<T: Inner>(state: &impl Reals<Passive<T>>) -> Sizes {
        let (reals, plain) = Snapshot::lengths(state);
        Sizes { reals, plain, heap: state.heap_bytes(), ..Sizes::default() }
    }

    fn each(&self) -> [usize; 7] {
        [self.reals, self.plain, self.heap, self.in_backend, self.of_loss, self.noted, self.moved]
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
            of_loss: self.of_loss.max(other.of_loss),
            noted: self.noted.max(other.noted),
            moved: self.moved.max(other.moved),
        }
    }
}

/// The largest states, recordings and losses that a plan is for.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::rollout) struct Heaviest {
    states: Sizes,
    recording: Recording,
    loss: usize,
    /// The bytes of looking at both sides of steps and of the loss.
    looked: [usize; 2],
    /// Whether snapshots differ in size.
    varies: bool,
}

impl Heaviest {
    /// Whether a plan for this one holds for the other.
    pub(in crate::rollout) fn holds_for(&self, other: &Heaviest) -> bool {
        other.states.fit(&self.states)
            && other.recording.fits(&self.recording.planned())
            && (self.varies || !other.varies)
            && other.loss <= self.loss + slack_of(self.loss)
            && other.looked.iter().zip(self.looked).all(|(&other, own)| other <= own)
    }
}

/// What a plan is for, and what makes it hold.
#[derive(Default)]
pub(in crate::rollout) struct PlannedFor {
    /// What the first plan is for.
    pub(in crate::rollout) planned: Heaviest,
    /// The largest states that were seen.
    pub(in crate::rollout) largest: Sizes,
    /// The words of the first one, numbers and others.
    lengths: Option<(usize, usize)>,
    /// Whether another had other words.
    pub(in crate::rollout) varies: bool,
    /// The least and the most bytes that steps needed which were measured.
    needed: Option<(usize, usize)>,
    /// Whether a larger one is an error.
    pub(super) holds: bool,
    /// Whether a step makes lists of its state longer, if only until it ends: they are then held twice for a
    /// moment.
    pub(super) moves_lists: bool,
    /// Whether a state that is restored has its lists elsewhere than before: they are then held twice for a
    /// moment, too.
    pub(super) moves_when_restored: bool,
    /// The bytes that states which grow may take beyond the largest one.
    spare: usize,
    /// The bytes that were held in all while a cheaper way to the partials was looked for; see `narrow`.
    pub(in crate::rollout) held_to_look: usize,
}

impl<St: Step, T: Inner, B: Backend<St, T>> Engine<'_, St, T, B> {
    /// The largest of what was seen so far.
    pub(in crate::rollout) fn heaviest(&self) -> Heaviest {
        Heaviest {
            states: self.plan.largest,
            recording: self.backend.recording(),
            loss: self.loss.tape.heap_bytes(),
            looked: [self.backend.looked_bytes(), self.loss.looking.most()],
            varies: self.plan.varies,
        }
    }

    /// Plans for states like the live one, too, and like that after the unit recorded last.
    pub(in crate::rollout) fn see_sizes(&mut self) {
        let live = self.sizes();
        let after = self.after.as_ref().map_or(live, Sizes::of);
        self.plan.largest = self.plan.largest.or(&live).or(&after);
        for Sizes { reals, plain, .. } in [live, after] {
            self.plan.varies |= *self.plan.lengths.get_or_insert((reals, plain)) != (reals, plain);
        }
    }

    /// Sees what the step recorded last needs.
    pub(super) fn see_needed(&mut self) {
        let needed = self.backend.needed_bytes();
        let (least, most) = self.plan.needed.unwrap_or((needed, needed));
        self.plan.needed = Some((least.min(needed), most.max(needed)));
    }

    /// Whether all steps that were measured need the same, so that units of several do, too.
    pub(in crate::rollout) fn has_steps_alike(&self) -> bool {
        !self.plan.varies && self.plan.needed.is_none_or(|(least, most)| least == most)
    }

    /// The sizes of the live state and its copies now.
    fn sizes(&self) -> Sizes {
        Sizes {
            in_backend: self.backend.heap_of_state(),
            of_loss: self.loss.state.as_ref().map_or(0, Reals::heap_bytes),
            noted: self.step.notes().map_or(0, Notes::bytes),
            moved: self.backend.moved_bytes(),
            ..Sizes::of(&self.live)
        }
    }

    /// The bytes that states may take beyond what they take now, because the largest may be there again: a
    /// state that becomes one of another kind gives its memory back.
    pub(in crate::rollout) fn not_held_now(&self) -> usize {
        let (largest, now) = (&self.plan.largest, self.sizes());
        let after = self.after.as_ref().map_or(0, Reals::heap_bytes);
        largest.heap.saturating_sub(now.heap)
            + largest.heap.saturating_sub(after)
            + largest.in_backend.saturating_sub(now.in_backend)
            + largest.of_loss.saturating_sub(now.of_loss)
    }

    /// Restores the live state; tells whether its lists are elsewhere now.
    pub(super) fn is_moved_by_restoring(&mut self) -> bool {
        let before = places(&self.live);
        self.snapshot.restore(&mut self.live);
        places(&self.live) != before
    }

    /// The bytes that a step may hold for a moment while it makes lists of its state longer.
    pub(in crate::rollout) fn moved_bytes(&self) -> usize {
        if self.plan.moves_lists { self.largest_list() } else { 0 }
    }

    fn largest_list(&self) -> usize {
        let Sizes { heap, in_backend, of_loss, .. } = self.plan.largest;
        heap.max(in_backend).max(of_loss)
    }

    /// Plans for states that hold twice as much from now on: lists that grew one by one have more capacity
    /// than those that were loaded. And for one that is moved meanwhile.
    pub(in crate::rollout) fn plan_for_growth(&mut self) {
        self.plan.spare = self.largest_list();
        let Sizes { heap, in_backend, of_loss, .. } = &mut self.plan.largest;
        *heap *= 2;
        *in_backend *= 2;
        // The loss of one state is taken of the same one each time.
        if self.loss.when == When::Each {
            *of_loss *= 2;
        }
    }

    /// The bytes of a list that is moved while it grows, or when a state is restored, or inside a step.
    pub(in crate::rollout) fn growth_bytes(&self) -> usize {
        let restored = if self.plan.moves_when_restored { self.largest_list() } else { 0 };
        self.plan.spare.max(restored).max(self.plan.largest.moved)
    }

    /// Forgets what states were seen, and gives back the bytes that they were given.
    pub(in crate::rollout) fn forget_states(&mut self, first: &Snapshot) {
        self.plan.largest = Sizes::default();
        (self.plan.lengths, self.plan.varies) = (Some((first.reals().len(), first.plain().len())), false);
        (self.plan.moves_lists, self.plan.spare, self.plan.needed) = (false, 0, None);
        self.live = first.loaded();
        (self.after, self.loss.state) = (None, None);
    }

    /// Whether a state was seen that is larger than this one.
    pub(in crate::rollout) fn has_grown_from(&self, first: &Snapshot) -> bool {
        self.plan.largest.reals > first.reals().len() || self.plan.largest.plain > first.plain().len()
    }

    /// From now on a state that is larger than those seen so far is an error, if the budget is one.
    pub(in crate::rollout) fn hold_to_sizes(&mut self, budget: Budget) {
        self.plan.holds = !budget.is_unlimited();
    }

    /// The error of a recording of the unit that begins at a step: one that took more than was planned for
    /// names it.
    pub(super) fn of_recording(&self, from: u64, error: Error) -> Error {
        match error {
            Error::Core(palinode_core::Error::ByteLimit { needed, limit, .. }) if self.plan.holds => {
                let more = needed.saturating_sub(limit);
                Error::OverBudget { step: from, needed: more, budget: Budget::UNLIMITED }
            }
            error if error.is_excess() && self.plan.holds => outgrown(from),
            error => error.counted_from(from),
        }
    }

    /// The most bytes that the live state may hold, and that steps may note.
    #[inline]
    pub(super) fn most_heap(&self) -> (usize, usize) {
        if self.plan.holds {
            (self.plan.largest.heap, self.plan.largest.noted)
        } else {
            (usize::MAX, usize::MAX)
        }
    }

    /// An error if the live state or the backend's was not planned for.
    #[inline]
    pub(in crate::rollout) fn check_sizes(&self, step: u64) -> Result<(), Error> {
        let fits = !self.plan.holds || self.sizes().fit(&self.plan.largest);
        if fits { Ok(()) } else { Err(outgrown(step)) }
    }

    /// The same for a snapshot of so many words, in a store that needs more for snapshots which differ in
    /// size.
    pub(super) fn check_lengths(&self, step: u64, lengths: (usize, usize)) -> Result<(), Error> {
        let PlannedFor { holds, varies, lengths: planned, .. } = self.plan;
        let fits = !holds || varies || planned.is_none_or(|planned| planned == lengths);
        if fits { Ok(()) } else { Err(outgrown(step)) }
    }

    /// An error of something that took more than was planned for, with what is held in all and so many bytes
    /// elsewhere.
    pub(in crate::rollout) fn exceeding(&self, error: Error, budget: Budget, others: usize) -> Error {
        match error {
            Error::OverBudget { step, needed: more, .. } => {
                // While a state grew, a list was held twice.
                let held = self.heap_bytes() + others + self.largest_list();
                let needed = (held + more).max(budget.bytes().saturating_add(1));
                Error::OverBudget { step, needed, budget }
            }
            error => error,
        }
    }
}

/// Where the lists of numbers of a value are, all in one word.
fn places<T: Inner>(value: &impl Reals<Passive<T>>) -> usize {
    struct Places(usize);
    impl<S> Sink<S> for Places {
        fn real(&mut self, _number: S) {}
        fn reals(&mut self, numbers: &[S]) {
            self.0 = self.0.wrapping_mul(31).wrapping_add(numbers.as_ptr().addr());
        }
        fn word(&mut self, _word: u64) {}
    }
    let mut places = Places(0);
    value.save(&mut places);
    places.0
}

/// A step takes more than was planned for. How many bytes that makes in all is for the caller to tell, who
/// has the stores.
#[cold]
pub(super) fn outgrown(step: u64) -> Error {
    Error::OverBudget { step, needed: 0, budget: Budget::UNLIMITED }
}
