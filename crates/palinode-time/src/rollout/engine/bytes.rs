//! The engine's memory: what it holds, and what it may hold.

use super::{Backend, Engine, Flat, Hashes, Inner, Notes, Passive, Reals, Step};
use crate::rollout::backend::slack_of;
use palinode_core::{Budget, Tape};

impl<St: Step, T: Inner, B: Backend<St, T>> Engine<'_, St, T, B> {
    /// Forgets recordings, with the memory of everything that is larger the more steps are recorded at once.
    pub(in crate::rollout) fn forget_recordings(&mut self) {
        self.backend.forget();
        self.units.recorded = Vec::new();
        self.numbers = Flat::default();
        self.ends.expected = Flat::default();
        self.ends.block = Flat::default();
        self.cotangents.input = Vec::new();
        self.inputs.forget();
    }

    /// Forgets the recording of the loss, with its memory.
    pub(in crate::rollout) fn forget_loss(&mut self) {
        self.loss.tape = Tape::new();
        self.loss.looking.forget();
    }

    /// Neither the recording of a unit nor that of the loss may take more than this from now on.
    pub(in crate::rollout) fn limit(&mut self, bytes: usize) {
        self.backend.limit(bytes.into());
        self.loss.tape.set_budget(bytes.into());
        self.loss.looking.set_limit(bytes);
    }

    /// So many units will be recorded at once. All recordings together may grow beyond what they take now by
    /// so many bytes.
    pub(in crate::rollout) fn make_places(&mut self, places: usize, spare: usize) {
        self.backend.reserve(places);
        self.units.recorded.reserve_exact(places.saturating_sub(self.units.recorded.len()));
        if spare < usize::MAX {
            self.backend.limit_growth(spare / 2 / places.max(1));
            let held = self.loss.tape.heap_bytes();
            self.loss.tape.set_budget(Budget::from((held + slack_of(held)).saturating_add(spare / 4)));
            self.loss.looking.set_limit(self.loss.looking.most().saturating_add(spare / 4));
        }
    }

    /// The bytes of what is kept of one recorded unit now.
    pub(in crate::rollout) fn residual_bytes(&self) -> usize {
        self.backend.residual_bytes() + size_of::<Option<u64>>()
    }

    /// The same with spare bytes for a unit that is recorded otherwise than the first.
    pub(in crate::rollout) fn planned_residual_bytes(&self) -> usize {
        if B::RECORDS {
            return self.residual_bytes() + self.backend.recording().slack();
        }
        let of_largest = size_of::<Option<St::State<Passive<T>>>>() + self.plan.largest.heap;
        self.backend.residual_bytes().max(of_largest) + size_of::<Option<u64>>()
    }

    /// Spare bytes for other recordings that are not like the first: of inner steps, of the loss.
    pub(in crate::rollout) fn slack(&self) -> usize {
        slack_of(self.loss.tape.heap_bytes()) + if B::RECORDS { 0 } else { self.backend.recording().slack() }
    }

    /// The bytes of lists of a recording that are held twice for a moment, where recordings that differ make
    /// them longer.
    pub(in crate::rollout) fn moved_by_recording(&self) -> usize {
        (self.backend.recording().bytes() + self.loss.tape.heap_bytes()) / 8
    }

    /// Reserves memory for the cotangents of all inputs that there are.
    pub(in crate::rollout) fn reserve_inputs(&mut self) {
        self.of_inputs.all.reserve_exact(self.inputs.numbers(u64::MAX));
    }

    /// The heap bytes held, stores not included.
    pub(in crate::rollout) fn heap_bytes(&self) -> usize {
        self.params.heap_bytes()
            + self.inputs.heap_bytes()
            + self.live.heap_bytes()
            + self.step.notes().map_or(0, Notes::bytes)
            + self.backend.heap_bytes()
            + self.cotangents.heap_bytes()
            + self.of_inputs.all.capacity() * size_of::<T>()
            + self.units.recorded.capacity() * size_of::<Option<u64>>()
            + self.ends.expected.heap_bytes()
            + self.ends.block.heap_bytes()
            + self.snapshot.heap_bytes()
            + self.loss.tape.heap_bytes()
            + self.loss.looking.most()
            + self.loss.state.as_ref().map_or(0, Reals::heap_bytes)
            + self.after.as_ref().map_or(0, Reals::heap_bytes)
            + self.numbers.heap_bytes()
            + self.watch.health.heap_bytes()
            + self.watch.hashes.as_ref().map_or(0, Hashes::heap_bytes)
    }
}
