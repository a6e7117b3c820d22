//! Whether steps that are run again end where they did, and if not, why.
//!
//! Input: the state that a unit ends in when it is run again, and that from which the unit after it was
//! recorded. Output: an error if they differ, and whether that is because a library computes something else
//! with recorded numbers: then, and only then, is another attempt worth while, in which steps are advanced by
//! recording.
//!
//! Invariant: every reverse sweep compares what it runs again anyway. A rule runs nothing again, so now and
//! then a step is, to look: at least one of a loop, and a sixty-fourth of all evaluations.

use super::{Advance, Backend, Engine, Error, Flat, Inner, Passive, Reals, Step, Unit};
use crate::rollout::backend::{Alike, records_otherwise};
use crate::rollout::flat::is_same;
use crate::rollout::taking::taken_well;
use palinode_core::Snapshot;

/// One step in so many is run again only to look where it ends.
const ONE_IN: u64 = 64;

/// The states that units have to end in.
#[derive(Default)]
pub(super) struct Ends<T> {
    /// The state before the units that were recorded last, one after the other: what the unit before them
    /// must end in.
    pub(super) expected: Flat<T>,
    /// The step that it is before.
    pub(super) expected_before: Option<u64>,
    /// The state before the units that are being recorded, if there are several; and the step that it is
    /// before.
    pub(super) block: Flat<T>,
    pub(super) block_from: u64,
    /// Whether a step that diverged was seen to compute something else with recorded numbers.
    pub(super) otherwise: bool,
    /// How many steps were run again only to look where they end.
    pub(super) run_to_look: u64,
}

impl<St: Step, T: Inner, B: Backend<St, T>> Engine<'_, St, T, B> {
    /// Whether to start again and advance by recording, after an error.
    pub(in crate::rollout) fn should_record(&self, error: &Error) -> bool {
        error.is_divergence()
            && self.advance_by == Advance::Passively
            && (self.ends.otherwise || self.backend.computes_otherwise())
    }

    /// The error of a recorded unit that does not end where it should. The steps since the last known state
    /// are taken again, one by one, to see why.
    #[cold]
    pub(super) fn diverged(&mut self, place: usize, to: u64, begins: bool) -> Error {
        if self.advance_by == Advance::ByRecording {
            return Error::Diverged { step: to - 1 };
        }
        match self.first_otherwise(place, to, begins) {
            Ok((step, Alike::Never)) => Error::Diverged { step },
            Ok((step, alike)) => {
                self.ends.otherwise = alike == Alike::ByKind;
                Error::Diverged { step }
            }
            Err(error) => error,
        }
    }

    /// The first step since the last known state that does not always end alike; the last one if all do.
    fn first_otherwise(&mut self, place: usize, to: u64, begins: bool) -> Result<(u64, Alike), Error> {
        let Engine { step: body, params, inputs, live, backend, ends, numbers, .. } = self;
        let Ends { expected, block, block_from, .. } = ends;
        let before = if begins { numbers } else { block };
        for step in *block_from..to {
            live.reload(&mut before.read(Passive::lift));
            body.step(live, params, inputs.at(step)?);
            taken_well(*body, step)?;
            expected.clear();
            live.save(expected);
            // A function may give another input the next time.
            inputs.ask_again();
            let inputs = inputs.of(step, step + 1)?;
            let unit = Unit { kept: place, step: *body, params, inputs, steps: 1 };
            let alike = records_otherwise(backend, &unit, (before, expected), live);
            let alike = alike.map_err(|error| error.counted_from(step))?;
            if alike != Alike::Always {
                return Ok((step, alike));
            }
            core::mem::swap(before, expected);
        }
        Ok((to - 1, Alike::Always))
    }

    /// Compares the state after a unit that keeps only the state before it, if what it should be is known,
    /// with what it is when it is run again: for the loss, or to look.
    pub(super) fn look_at_end(
        &mut self,
        place: usize,
        from: u64,
        to: u64,
        took_loss: bool,
    ) -> Result<(), Error> {
        let is_known = self.ends.expected_before == Some(to) && self.trusts_snapshots;
        if !took_loss && (B::LOOKS_BACK || !is_known || !self.should_look()) {
            return Ok(());
        }
        if !took_loss {
            self.state_after(place, from, to)?;
            self.ends.run_to_look += to - from;
        } else if !is_known {
            // The loss was taken of it.
            self.ends.expected.copy_from(&self.numbers);
            self.ends.expected_before = Some(to);
            return Ok(());
        }
        let is_same = self.after.as_ref().is_some_and(|after| is_same(after, &self.ends.expected));
        if is_same { Ok(()) } else { Err(Error::Diverged { step: to - 1 }) }
    }

    /// The state after a recorded step, for a moment: always where recording it took it there, else now and
    /// then.
    pub(in crate::rollout) fn end_to_look_at(&mut self, step: u64) -> Result<Option<&Snapshot>, Error> {
        if !B::RECORDS {
            if !self.should_look() {
                return Ok(None);
            }
            self.ends.run_to_look += 1;
        }
        self.state_after(self.place_of(step), step, step + 1)?;
        let Engine { snapshot, after, .. } = self;
        Ok(after.as_ref().map(|after| {
            snapshot.take(after);
            &*snapshot
        }))
    }

    /// What the unit before the one that was just reversed must end in, if anybody will look.
    pub(super) fn expect_before(&mut self, place: usize, from: u64) {
        self.ends.expected_before = None;
        if (B::LOOKS_BACK || self.should_look())
            && let Some(before) = self.backend.state_before(place)
        {
            self.ends.expected.clear();
            before.save(&mut self.ends.expected);
            self.ends.expected_before = Some(from);
        }
    }

    /// Whether it is time to run a step again only to look where it ends.
    fn should_look(&self) -> bool {
        self.ends.run_to_look * ONE_IN <= self.watch.forward
    }
}
