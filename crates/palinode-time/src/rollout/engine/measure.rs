//! How the sizes of everything that a sweep needs are found before it starts: by recording the first steps,
//! or, where steps differ, all of them.
//!
//! Input: the first state, a loss. Output: an engine whose lists have the size that they need, with nothing
//! recorded; or an error of a step.
//!
//! Invariant: what is allocated here is what a sweep allocates: the same code records, with the same lists.

use super::{Backend, Engine, Error, Inner, Live, Loss, Reals, Step, Unit, When};
use crate::rollout::flat::{Shape, count};
use crate::rollout::setting::GoesOn;
use crate::rollout::taking::taken_well;
use palinode_core::{Snapshot, decision};

impl<St: Step, T: Inner, B: Backend<St, T>> Engine<'_, St, T, B> {
    /// Records the first unit and the loss of the state after it, once, so that all lists have their size,
    /// and forgets them.
    pub(in crate::rollout) fn warm_up(
        &mut self,
        initial: &Snapshot,
        steps: u64,
        loss: &mut Loss<'_, St, T>,
    ) -> Result<(), Error> {
        self.or_by_recording(|engine| engine.warm_up_once(initial, steps, loss))
    }

    /// Does it again, and advances by recording, where a library is found to compute something else with
    /// recorded numbers.
    fn or_by_recording<R>(&mut self, mut run: impl FnMut(&mut Self) -> Result<R, Error>) -> Result<R, Error> {
        match run(self) {
            Err(error) if self.should_record(&error) => {
                self.advance_by_recording_from_now();
                run(self)
            }
            other => other,
        }
    }

    fn warm_up_once(
        &mut self,
        initial: &Snapshot,
        steps: u64,
        loss: &mut Loss<'_, St, T>,
    ) -> Result<(), Error> {
        self.forget_recordings();
        self.make_places(1, usize::MAX);
        self.plan.holds = false;
        self.restart(initial, steps)?;
        self.snapshot.take(&self.live);
        self.see_sizes();
        let has_lists = self.live.heap_bytes() > 0;
        if steps > 0 && has_lists {
            // Lists that a step makes longer and shorter again keep their capacity. (Hashes would use the
            // snapshot that restores the state.)
            let (hashes, heap) = (self.watch.hashes.take(), self.live.heap_bytes());
            let advanced = self.advance(0, self.end_of(0));
            self.watch.hashes = hashes;
            advanced?;
            self.plan.moves_lists |= self.live.heap_bytes() > heap;
            self.see_sizes();
        }
        if has_lists {
            self.plan.moves_when_restored |= self.is_moved_by_restoring();
            self.at = Live::Before(0);
        }
        if steps > 0 {
            self.release_cotangent();
            self.cotangents.state.clear();
            // As if the units after it had been recorded, so that all lists are used; there is nothing to
            // compare with.
            self.ends.expected_before = B::RECORDS.then(|| self.end_of(0));
            let trusts = core::mem::replace(&mut self.trusts_snapshots, false);
            let recorded = self.record(0);
            self.trusts_snapshots = trusts;
            recorded?;
            let when = core::mem::replace(&mut self.loss.when, When::Each);
            let reversed = self.reverse(0, loss);
            self.loss.when = when;
            self.see_sizes();
            finite_or_not(reversed)?;
        }
        if steps == 0 {
            let taken = self.no_steps(loss);
            taken.or_else(|error| if error.is_excess() { Err(error) } else { Ok(()) })?;
        }
        self.restart(initial, steps)
    }

    /// Looks for a cheaper way to the partials of the steps from this state on, and keeps how many bytes were
    /// held meanwhile, with so many for results. Tells whether there is one; `None` if looking would take
    /// more than the budget.
    pub(in crate::rollout) fn narrow(
        &mut self,
        initial: &Snapshot,
        results: usize,
        budget: usize,
    ) -> Result<Option<bool>, Error> {
        self.restart(initial, self.steps)?;
        let (alike, to_compare) = self.inputs.are_alike()?;
        let held = self.heap_bytes() + initial.heap_bytes() + results;
        if !alike {
            self.plan.held_to_look = held + to_compare;
            return Ok(Some(false));
        }
        let Engine { step: body, params, inputs, live, backend, .. } = self;
        let unit = Unit { kept: 0, step: *body, params, inputs: inputs.of(0, 1)?, steps: 1 };
        let found = backend.narrow(&unit, live, budget.saturating_sub(held))?;
        Ok(found.map(|(found, bytes)| {
            self.plan.held_to_look = held + bytes.max(to_compare);
            found
        }))
    }

    /// Whether the steps from this state on are one and the same formula, so that all take the same memory:
    /// the first one decides nothing by numbers, looks at none, and leaves the words of the state as they
    /// are, and all inputs are alike.
    pub(in crate::rollout) fn is_uniform(&mut self, initial: &Snapshot) -> Result<bool, Error> {
        if self.backend.directions().is_some() {
            return Ok(true);
        }
        self.restart(initial, self.steps)?;
        if !self.inputs.are_alike()?.0 {
            return Ok(false);
        }
        let Engine { step: body, params, inputs, live, numbers, .. } = self;
        let input = inputs.at(0)?;
        let ((), decisions) = decision::watch(|| body.step(live, params, input));
        taken_well(*body, 0)?;
        Shape::of(&*live, &mut numbers.plain);
        let uniform = decisions.count() + decisions.looks == 0 && numbers.plain == initial.plain();
        self.restart(initial, self.steps)?;
        Ok(uniform)
    }

    /// Takes every step once; those for which `records` holds are recorded and reversed, and forgotten.
    pub(in crate::rollout) fn measure(
        &mut self,
        initial: &Snapshot,
        goes_on: &GoesOn<'_, St, T>,
        records: &dyn Fn(u64) -> bool,
        loss: &mut Loss<'_, St, T>,
    ) -> Result<(), Error> {
        self.or_by_recording(|engine| {
            engine.make_places(1, usize::MAX);
            engine.plan.holds = false;
            // All inputs, and nothing to compare with.
            engine.restart(initial, u64::MAX)?;
            let trusts = core::mem::replace(&mut engine.trusts_snapshots, false);
            let taken = engine.record_some(goes_on, records, loss);
            engine.trusts_snapshots = trusts;
            engine.restart(initial, taken?)
        })
    }

    fn record_some(
        &mut self,
        goes_on: &GoesOn<'_, St, T>,
        records: &dyn Fn(u64) -> bool,
        loss: &mut Loss<'_, St, T>,
    ) -> Result<u64, Error> {
        let mut taken = 0;
        self.steps = 0;
        while goes_on(&self.live, taken)? {
            let heap = self.live.heap_bytes();
            self.steps = taken + 1;
            if !records(taken) {
                self.advance(taken, taken + 1)?;
                self.plan.moves_lists |= self.live.heap_bytes() > heap;
                self.see_sizes();
                taken += 1;
                continue;
            }
            self.ends.expected_before = None;
            self.snapshot.take(&self.live);
            self.see_sizes();
            self.record(taken)?;
            self.see_needed();
            self.settle()?;
            self.plan.moves_lists |= self.live.heap_bytes() > heap;
            self.see_sizes();
            self.release_cotangent();
            self.cotangents.state.clear();
            self.cotangents.state.resize(count(&self.live), T::zero());
            // The loss is that of the last state or of each.
            let taken_at = (self.loss.when == When::Last).then_some(taken + 1);
            let before = core::mem::replace(&mut self.loss.taken_at, taken_at);
            let reversed = self.reverse(taken, loss);
            self.loss.taken_at = before;
            self.see_sizes();
            finite_or_not(reversed)?;
            for list in [&mut self.numbers, &mut self.ends.expected] {
                list.clear();
                self.live.save(list);
            }
            taken += 1;
        }
        if self.loss.when == When::Last {
            self.cotangents.state.clear();
            finite_or_not(self.loss_of_live(taken, loss))?;
        }
        self.snapshot.take(&self.live);
        self.see_sizes();
        Ok(taken)
    }
}

/// What is infinite here need not be on the way.
fn finite_or_not(result: Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(Error::NonFiniteCotangent { .. } | Error::NonFiniteLoss { .. }) => Ok(()),
        other => other,
    }
}
