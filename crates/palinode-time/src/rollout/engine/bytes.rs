//! The engine's memory: what it holds, what it may hold, and how its size is found before a sweep starts.

use super::{
    Backend, Engine, Error, Fixed, Flat, Hashes, Inner, Inputs, Live, Loss, Notes, Passive, Reals, Step, When,
};
use crate::rollout::backend::slack_of;
use crate::rollout::flat::count;
use palinode_core::{Budget, Snapshot};

impl<St: Step, T: Inner, B: Backend<St, T>> Engine<'_, St, T, B> {
    /// Forgets recordings, with the memory of everything that is larger the more steps are recorded at once.
    pub(in crate::rollout) fn forget_recordings(&mut self) {
        self.backend.forget();
        self.recorded = Vec::new();
        self.numbers = Flat::default();
        self.expected = Flat::default();
        self.cotangents.input = Vec::new();
        if let Inputs::Made(made) = &mut self.inputs {
            made.forget();
        }
    }

    /// Neither the recording of a unit nor that of the loss may take more than this from now on.
    pub(in crate::rollout) fn limit(&mut self, bytes: usize) {
        self.backend.limit(bytes.into());
        self.loss_tape.set_budget(bytes.into());
    }

    /// So many units will be recorded at once. All recordings together may grow beyond what they take now by so many bytes.
    pub(in crate::rollout) fn make_places(&mut self, places: usize, spare: usize) {
        self.backend.reserve(places);
        self.recorded.reserve_exact(places.saturating_sub(self.recorded.len()));
        if spare < usize::MAX {
            self.backend.limit_growth(spare / 2 / places.max(1));
            let held = self.loss_tape.heap_bytes();
            self.loss_tape.set_budget(Budget::from((held + slack_of(held)).saturating_add(spare / 2)));
        }
    }

    /// The bytes of what is kept of one recorded unit now.
    pub(in crate::rollout) fn residual_bytes(&self) -> usize {
        self.backend.residual_bytes() + size_of::<Option<u64>>()
    }

    /// The same with room for a unit that is recorded otherwise than the first.
    pub(in crate::rollout) fn planned_residual_bytes(&self) -> usize {
        self.residual_bytes() + if B::RECORDS { self.backend.slack() } else { 0 }
    }

    /// Room for other recordings that are not like the first: of inner steps, of the loss.
    pub(in crate::rollout) fn slack(&self) -> usize {
        slack_of(self.loss_tape.heap_bytes()) + if B::RECORDS { 0 } else { self.backend.slack() }
    }

    /// Makes room for the cotangents of all inputs that there are.
    pub(in crate::rollout) fn reserve_inputs(&mut self) {
        if let Inputs::Each(inputs) = &self.inputs {
            self.of_inputs.reserve_exact(inputs.iter().map(count).sum());
        }
    }

    /// About the bytes of lists for each step more that is recorded at once and has an input of its own: its numbers and their cotangents, in lists that grow, and
    /// itself if it is made.
    pub(in crate::rollout) fn bytes_per_input(&self) -> usize {
        let (first, own) = match &self.inputs {
            Inputs::Same(_) => return 0,
            Inputs::Each(inputs) => (inputs.first(), 0),
            Inputs::Made(made) => (made.first(), size_of::<St::Input<Passive<T>>>()),
        };
        first.map_or(0, |input| {
            let (reals, plain) = Snapshot::lengths(input);
            let heap = if own > 0 { input.heap_bytes() } else { 0 };
            own + heap + 4 * (reals + plain) * size_of::<u64>()
        })
    }

    /// Records the unit that begins at a step, and the loss of the state after it, once, so that all lists have their size, and forgets them.
    pub(in crate::rollout) fn warm_up(
        &mut self,
        initial: &Snapshot,
        at: u64,
        steps: u64,
        loss: &mut Loss<'_, St, T>,
    ) -> Result<(), Error> {
        self.forget_recordings();
        self.make_places(1, usize::MAX);
        self.holds_to_sizes = false;
        self.restart(initial, steps)?;
        self.advance(0, at)?;
        self.snapshot.take(&self.live);
        self.see_sizes();
        if steps > 0 && self.live.heap_bytes() > 0 {
            // Lists that a step makes longer and shorter again keep their room. (Hashes would use the snapshot that it goes back by.)
            let (hashes, heap) = (self.hashes.take(), self.live.heap_bytes());
            let advanced = self.advance(at, self.end_of(at));
            self.hashes = hashes;
            advanced?;
            self.moves_lists |= self.live.heap_bytes() > heap;
            self.see_sizes();
            self.snapshot.restore(&mut self.live);
            self.at = Live::Before(at);
        }
        if steps > 0 {
            self.release_cotangent();
            self.cotangents.state.clear();
            // As if the units after it had been recorded, so that all lists are used; there is nothing to compare with.
            self.expected_before = Some(self.end_of(at));
            let trusts = core::mem::replace(&mut self.trusts_snapshots, false);
            let recorded = self.record(at);
            self.trusts_snapshots = trusts;
            recorded?;
            let when = core::mem::replace(&mut self.when, When::Each);
            let reversed = self.reverse(at, loss);
            self.when = when;
            self.see_sizes();
            // What is infinite here need not be on the way.
            if let Err(error) = reversed
                && !matches!(error, Error::NonFiniteCotangent { .. } | Error::NonFiniteLoss { .. })
            {
                return Err(error);
            }
        }
        if steps == 0 {
            let taken = self.no_steps(loss);
            taken.or_else(|error| if error.is_excess() { Err(error) } else { Ok(()) })?;
        }
        self.restart(initial, steps)
    }

    /// Looks for a cheaper way to the partials of the steps from this state on, and keeps how many bytes were held meanwhile, with so many for results.
    /// Tells whether there is one; `None` if looking would take more than the budget.
    pub(in crate::rollout) fn narrow(
        &mut self,
        initial: &Snapshot,
        results: usize,
        budget: usize,
    ) -> Result<Option<bool>, Error> {
        self.restart(initial, self.steps)?;
        let alike = match &mut self.inputs {
            Inputs::Made(made) => made.are_alike()?,
            Inputs::Same(_) | Inputs::Each(_) => true,
        };
        let held = self.heap_bytes() + initial.heap_bytes() + results;
        if !alike {
            self.held_to_look = held;
            return Ok(Some(false));
        }
        let Engine { step: body, params, inputs, live, backend, .. } = self;
        let inputs = match inputs {
            Inputs::Same(input) => core::slice::from_ref(input),
            Inputs::Each(inputs) => inputs,
            Inputs::Made(made) => made.of(0, 1)?,
        };
        let found =
            backend.narrow(&Fixed { step: *body, params }, live, inputs, budget.saturating_sub(held))?;
        Ok(found.map(|(found, bytes)| {
            self.held_to_look = held + bytes;
            found
        }))
    }

    /// The heap bytes held, stores not included.
    pub(in crate::rollout) fn heap_bytes(&self) -> usize {
        self.params.heap_bytes()
            + self.inputs.heap_bytes()
            + self.live.heap_bytes()
            + self.step.notes().map_or(0, Notes::bytes)
            + self.backend.heap_bytes()
            + self.cotangents.heap_bytes()
            + self.of_inputs.capacity() * size_of::<T>()
            + self.recorded.capacity() * size_of::<Option<u64>>()
            + self.expected.heap_bytes()
            + self.block.heap_bytes()
            + self.snapshot.heap_bytes()
            + self.loss_tape.heap_bytes()
            + self.loss_state.as_ref().map_or(0, Reals::heap_bytes)
            + self.after.as_ref().map_or(0, Reals::heap_bytes)
            + self.numbers.heap_bytes()
            + self.health.heap_bytes()
            + self.hashes.as_ref().map_or(0, Hashes::heap_bytes)
    }
}
