//! Follows a stream of actions: advances, keeps and restores states, records steps and carries cotangents
//! back over them.
//!
//! Input: a step, a state, parameters, inputs, a loss, snapshot stores, and actions from a schedule. Output:
//! the value of the loss and the cotangents of the initial state, the parameters and the inputs. `follow.rs`:
//! what it does for each action; `bytes.rs`: its memory; `measure.rs`: how that is found; `sizes.rs`: how
//! large states are; `cotangent.rs`: what becomes of the cotangent; `decisions.rs`: what steps decided;
//! `loss.rs`: where it begins; `divergence.rs`: whether steps that are run again end where they did.
//!
//! Invariants: every recorded step must end in the bits from which the next one was recorded, so the states
//! are those of one trajectory, whatever the schedule; cotangents are added in one order. After the first
//! step nothing is allocated unless a state has grown.

mod bytes;
mod cotangent;
mod decisions;
mod divergence;
mod follow;
mod loss;
mod measure;
mod sizes;

use super::Inner;
use super::backend::{Backend, Cotangents, Unit};
use super::flat::{Flat, count, refill};
use super::hashes::Hashes;
use super::report::{RolloutReport, StepDecisions};
use super::setting::{AHEAD, Loss, When};
use super::stores::Stores;
use super::taking::{begin, take_steps, taken_well};
use crate::error::Error;
use crate::health::Health;
use crate::rollout::inputs::{CotangentsOfInputs, Inputs};
use crate::step::{Notes, Step};
pub(super) use cotangent::Cuts;
use divergence::Ends;
use loss::LossSoFar;
use palinode_core::{Passive, Reals, Snapshot, decision};
use sizes::{PlannedFor, outgrown};

/// What a reverse sweep ends with.
pub(in crate::rollout) struct Swept<'a, St: Step, T: Inner, B> {
    pub(in crate::rollout) engine: Engine<'a, St, T, B>,
    pub(in crate::rollout) report: RolloutReport,
}

/// Where the live state stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Live {
    /// It is the state before this step.
    Before(u64),
    /// The steps from this one on were recorded from it; the state after them is with the backend.
    Recorded(u64),
}

/// How states are advanced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advance {
    /// With numbers that only compute.
    Passively,
    /// By recording and forgetting: where a library computes something else with recorded numbers.
    ByRecording,
}

/// A sweep: what it takes steps with, and one part for each thing that it is about.
pub(super) struct Engine<'a, St: Step, T: Inner, B> {
    step: &'a St,
    params: St::Params<Passive<T>>,
    pub(super) inputs: Inputs<'a, St, Passive<T>>,
    pub(super) live: St::State<Passive<T>>,
    at: Live,
    pub(super) backend: B,
    pub(super) advance_by: Advance,
    pub(super) cotangents: Cotangents<T>,
    of_inputs: CotangentsOfInputs<T>,
    pub(super) units: Units,
    ends: Ends<T>,
    snapshot: Snapshot,
    pub(super) loss: LossSoFar<St, T>,
    /// The state after a recorded step, for the loss.
    after: Option<St::State<Passive<T>>>,
    numbers: Flat<T>,
    /// The number of steps, once it is known.
    pub(super) steps: u64,
    pub(super) clip: Option<f64>,
    pub(super) watch: Watch,
    /// Whether a restored state has the bits that it had when it was kept.
    pub(super) trusts_snapshots: bool,
    /// Where the cotangent is cut, and what that left out.
    pub(super) cuts: Cuts,
    pub(super) plan: PlannedFor,
}

/// The units that are recorded and not yet reversed. Schedules count in units.
pub(super) struct Units {
    /// By the place where their residuals are: the first step of each.
    recorded: Vec<Option<u64>>,
    /// How many steps are recorded at once.
    pub(super) stride: u64,
    /// The step at which the first unit begins.
    pub(super) offset: u64,
}

/// What is seen on the way: for the report, and to compare runs with.
#[derive(Default)]
pub(super) struct Watch {
    pub(super) health: Health,
    /// What steps decided.
    pub(super) decisions: StepDecisions,
    /// How many steps have been watched for decisions.
    watched: u64,
    pub(super) hashes: Option<Hashes>,
    /// Evaluations of a step, recorded ones included.
    pub(super) forward: u64,
}

impl<'a, St: Step, T: Inner, B: Backend<St, T>> Engine<'a, St, T, B> {
    pub(super) fn new(
        step: &'a St,
        live: St::State<Passive<T>>,
        params: St::Params<Passive<T>>,
        inputs: Inputs<'a, St, Passive<T>>,
        when: When,
        clip: Option<f64>,
    ) -> Self
    where
        B: Default,
    {
        begin(step);
        Engine {
            step,
            params,
            inputs,
            live,
            at: Live::Before(0),
            backend: B::default(),
            advance_by: Advance::Passively,
            cotangents: Cotangents::default(),
            of_inputs: CotangentsOfInputs::default(),
            units: Units { recorded: Vec::new(), stride: 1, offset: 0 },
            ends: Ends::default(),
            snapshot: Snapshot::new(),
            loss: LossSoFar::new(when),
            after: None,
            numbers: Flat::default(),
            steps: 0,
            clip,
            // With its memory, which is planned for.
            watch: Watch { health: Health::new(), ..Watch::default() },
            trusts_snapshots: true,
            cuts: Cuts::default(),
            plan: PlannedFor::default(),
        }
    }

    /// Advances by recording from now on.
    pub(super) fn advance_by_recording_from_now(&mut self) {
        self.advance_by = Advance::ByRecording;
        self.backend.advance_by_recording();
    }

    /// Starts from this state again, with nothing reversed yet. Memory is kept.
    pub(super) fn restart(&mut self, initial: &Snapshot, steps: u64) -> Result<(), Error> {
        initial.restore(&mut self.live);
        self.at = Live::Before(0);
        self.steps = steps;
        self.units.recorded.fill(None);
        self.ends.expected_before = None;
        self.loss.value = T::zero();
        self.watch.health.clear();
        (self.watch.decisions, self.watch.watched) = (StepDecisions::default(), 0);
        self.watch.forward = 0;
        (self.ends.otherwise, self.ends.run_to_look) = (false, 0);
        self.cotangents.params.clear();
        self.cotangents.params.resize(count(&self.params), T::zero());
        self.release_cotangent();
        self.cotangents.state.clear();
        self.cotangents.input.clear();
        self.of_inputs.all.clear();
        self.of_inputs.reversed = 0;
        if let Inputs::Same(input) = &self.inputs {
            self.cotangents.input.resize(count(input), T::zero());
        }
        let all = self.inputs.numbers(steps);
        self.of_inputs.all.reserve_exact(all);
        self.of_inputs.all.resize(all, T::zero());
        self.cuts.clear();
        if let Some(hashes) = &mut self.watch.hashes {
            hashes.clear();
            hashes.see(0, &self.live, &mut self.snapshot)?;
        }
        Ok(())
    }

    /// Runs the whole loop once to hash its states, if they are to be compared, and restarts from its
    /// beginning: every step is then run at least twice, and the first that differs is the first to be
    /// noticed.
    pub(super) fn rehearse(&mut self, initial: &Snapshot, steps: u64) -> Result<(), Error> {
        if self.watch.hashes.is_none() {
            return Ok(());
        }
        self.advance(0, steps)?;
        self.back_to(initial, steps);
        Ok(())
    }

    /// The live state, that after all steps, becomes the first one; hashes and counts are kept.
    pub(super) fn back_to(&mut self, initial: &Snapshot, steps: u64) {
        if let Some(hashes) = &mut self.watch.hashes {
            hashes.see_last(steps, &self.live, &mut self.snapshot);
        }
        initial.restore(&mut self.live);
        self.at = Live::Before(0);
    }

    /// The live state moves from that before `from` to that before `to`.
    pub(super) fn advance(&mut self, from: u64, to: u64) -> Result<(), Error> {
        self.settle()?;
        // Steps that are recorded by running them are watched then.
        if B::RECORDS {
            return self.take(from, to);
        }
        self.watching(from, to, |engine| engine.take(from, to))
    }

    fn take(&mut self, from: u64, to: u64) -> Result<(), Error> {
        debug_assert_eq!(self.at, Live::Before(from));
        self.watch.forward += to - from;
        self.at = Live::Before(to);
        if self.advance_by == Advance::ByRecording {
            for step in from..to {
                self.advance_by_recording(step)?;
            }
            return Ok(());
        }
        let (most, most_noted) = self.most_heap();
        let Engine { step, params, inputs, live, watch: Watch { hashes, .. }, snapshot, .. } = self;
        let is_planned = |live: &St::State<Passive<T>>, at| {
            let is_noted = || step.notes().is_none_or(|notes| notes.bytes() <= most_noted);
            if most == usize::MAX || live.heap_bytes() <= most && is_noted() {
                Ok(())
            } else {
                Err(outgrown(at))
            }
        };
        let Some(hashes) = hashes else {
            return take_steps(*step, live, params, inputs, from, to, is_planned);
        };
        take_steps(*step, live, params, inputs, from, to, |live, at| {
            is_planned(live, at)?;
            hashes.see(at + 1, live, snapshot)
        })
    }

    #[cold]
    fn advance_by_recording(&mut self, step: u64) -> Result<(), Error> {
        // The memory of a unit that is not recorded now: no schedule advances while all are.
        let place = self.free_place();
        let Engine { step: body, params, inputs, live, backend, .. } = self;
        let unit = Unit { kept: place, step: *body, params, inputs: inputs.of(step, step + 1)?, steps: 1 };
        let advanced = backend.record(&unit, live, None).and_then(|alike| match alike {
            true => backend.after(&unit, live),
            false => Err(Error::Diverged { step }),
        });
        if let Err(error) = advanced {
            return Err(self.of_recording(step, error));
        }
        taken_well(*body, step)?;
        self.check_sizes(step)?;
        match &mut self.watch.hashes {
            Some(hashes) => hashes.see(step + 1, &self.live, &mut self.snapshot),
            None => Ok(()),
        }
    }

    /// The live state becomes that after the steps that were recorded from it.
    fn settle(&mut self) -> Result<(), Error> {
        if let Live::Recorded(from) = self.at {
            let (place, to) = (self.place_of(from), self.end_of(from));
            self.watching(from, to, |engine| {
                let Engine { step: body, params, inputs, live, backend, .. } = engine;
                let inputs = inputs.of(from, to)?;
                let unit = Unit { kept: place, step: *body, params, inputs, steps: to - from };
                backend.after(&unit, live).map_err(|error| error.counted_from(from))?;
                taken_well(*body, from)
            })?;
            self.at = Live::Before(to);
        }
        Ok(())
    }

    /// The first step of a unit; one past the last step for one past the last unit.
    #[inline(always)]
    fn first(&self, unit: u64) -> u64 {
        (self.units.offset + unit * self.units.stride).min(self.steps)
    }

    /// One past the last step of the unit that begins at a step.
    #[inline(always)]
    fn end_of(&self, from: u64) -> u64 {
        (from + self.units.stride).min(self.steps)
    }

    /// A place for the residuals of a unit.
    fn free_place(&mut self) -> usize {
        match place_of(&self.units.recorded, None) {
            Some(place) => place,
            None => {
                self.units.recorded.push(None);
                self.units.recorded.len() - 1
            }
        }
    }

    fn place_of(&self, step: u64) -> usize {
        place_of(&self.units.recorded, Some(step)).expect("a step is recorded before it is reversed")
    }

    /// Records the unit that begins at a step.
    pub(super) fn record(&mut self, from: u64) -> Result<(), Error> {
        // One that goes on where another ended begins with its bits.
        let begins = matches!(self.at, Live::Before(_));
        self.settle()?;
        self.check_sizes(from)?;
        debug_assert_eq!(self.at, Live::Before(from));
        let to = self.end_of(from);
        self.watch.forward += to - from;
        let place = self.free_place();
        self.units.recorded[place] = Some(from);
        // What this unit must end in is known if the units after it were recorded last.
        let ends = to == self.steps || self.ends.expected_before == Some(to);
        let is_known = B::RECORDS && self.ends.expected_before == Some(to) && self.trusts_snapshots;
        if begins {
            self.ends.block_from = from;
        }
        if B::RECORDS && begins {
            self.numbers.clear();
            self.live.save(&mut self.numbers);
            if !ends {
                self.ends.block.copy_from(&self.numbers);
            }
        }
        let Engine { step: body, params, inputs, live, backend, ends: Ends { expected, .. }, .. } = self;
        let expected = is_known.then_some(&*expected);
        let inputs = inputs.of(from, to)?;
        let unit = &Unit { kept: place, step: *body, params, inputs, steps: to - from };
        let mut record = || backend.record(unit, live, expected);
        let recorded = if B::RECORDS {
            let (recorded, seen) = decision::watch(record);
            if seen.count() > 0 {
                self.decided(from, to, seen);
            }
            recorded
        } else {
            record()
        };
        if !recorded.map_err(|error| self.of_recording(from, error))? {
            return Err(self.diverged(place, to, begins));
        }
        self.check_sizes(from)?;
        if self.watch.hashes.is_some() && self.trusts_snapshots {
            self.state_after(place, from, to)?;
            if !B::RECORDS {
                self.watch.forward += to - from;
            }
            let (Some(hashes), Some(after)) = (&mut self.watch.hashes, &self.after) else { return Ok(()) };
            if let Err(error) = hashes.see(to, after, &mut self.snapshot) {
                return Err(if B::RECORDS { self.diverged(place, to, begins) } else { error });
            }
        }
        if B::RECORDS && ends {
            let first = if begins { &mut self.numbers } else { &mut self.ends.block };
            core::mem::swap(first, &mut self.ends.expected);
            self.ends.expected_before = Some(self.ends.block_from);
        }
        self.at = Live::Recorded(from);
        Ok(())
    }

    /// Records a step and leaves the live state before it.
    pub(super) fn record_and_stay(&mut self, step: u64) -> Result<(), Error> {
        self.snapshot.take(&self.live);
        self.record(step)?;
        self.snapshot.restore(&mut self.live);
        Ok(())
    }

    /// Carries the cotangents back over the unit that begins at a step.
    pub(super) fn reverse(&mut self, from: u64, loss: &mut Loss<'_, St, T>) -> Result<(), Error> {
        let (place, to) = (self.place_of(from), self.end_of(from));
        if let Some(window) = self.cuts.window
            && to < self.steps
            && (self.steps - to).is_multiple_of(window)
        {
            let norm = self.cotangent_norm();
            self.cuts.note(norm);
            self.cotangents.state.fill(T::zero());
        }
        let takes_loss = (to == self.steps || self.loss.when == When::Each) && self.loss.taken_at != Some(to);
        if takes_loss {
            self.loss_after(place, from, to, loss)?;
        }
        if !B::RECORDS {
            self.look_at_end(place, from, to, takes_loss)?;
        }
        let knows_end = !B::RECORDS && self.ends.expected_before == Some(to) && self.trusts_snapshots;
        let Engine { step: body, params, inputs, backend, cotangents, of_inputs, .. } = self;
        let expected = knows_end.then_some(&self.ends.expected);
        let (keeps_each, keeps_sum) = (inputs.list().is_some(), matches!(inputs, Inputs::Same(_)));
        let inputs = inputs.of(from, to)?;
        if !keeps_sum {
            cotangents.input.clear();
            cotangents.input.resize(inputs.iter().map(count).sum(), T::zero());
        }
        let unit = Unit { kept: place, step: *body, params, inputs, steps: to - from };
        if let Err(error) = backend.reverse(&unit, expected, cotangents) {
            return Err(self.of_recording(from, error));
        }
        taken_well(*body, from)?;
        if keeps_each {
            of_inputs.take_from_the_end(&cotangents.input);
        }
        self.units.recorded[place] = None;
        if !B::RECORDS {
            self.expect_before(place, from);
        }
        self.look_at_cotangent(from, to - from)
    }

    /// The list of cotangents of the state is what it says.
    #[inline]
    pub(super) fn release_cotangent(&mut self) {
        self.backend.release_cotangent(&mut self.cotangents.state);
    }

    /// `after` becomes the state after a recorded unit.
    fn state_after(&mut self, place: usize, from: u64, to: u64) -> Result<(), Error> {
        self.watching(from, to, |engine| {
            let Engine { step: body, params, inputs, backend, after, live, numbers, .. } = engine;
            if after.is_none() {
                numbers.clear();
                live.save(numbers);
                refill(after, &mut numbers.read(Passive::lift));
            }
            let Some(state) = after else { unreachable!("filled above") };
            let inputs = inputs.of(from, to)?;
            let unit = Unit { kept: place, step: *body, params, inputs, steps: to - from };
            backend.after(&unit, state).map_err(|error| error.counted_from(from))?;
            taken_well(*body, from)
        })
    }

    /// There are so many steps, now that it is known: makes the list of the cotangents of their inputs.
    pub(super) fn all_inputs(&mut self, steps: u64) {
        self.steps = steps;
        self.of_inputs.all.clear();
        self.of_inputs.all.resize(self.inputs.numbers(steps), T::zero());
    }

    /// The cotangents of the inputs, all in one list.
    pub(super) fn of_all_inputs(&self) -> &[T] {
        // What a function makes has no cotangents.
        if let Inputs::Same(_) = self.inputs { &self.cotangents.input } else { &self.of_inputs.all }
    }

    /// The live state as a snapshot, for a moment.
    pub(super) fn live_as_snapshot(&mut self) -> &Snapshot {
        self.snapshot.take(&self.live);
        &self.snapshot
    }

    /// The live state, that after `step`, becomes that before it by what the caller does to it.
    pub(super) fn undo(
        &mut self,
        step: u64,
        undo: impl FnOnce(&St, &mut St::State<Passive<T>>, &St::Params<Passive<T>>, &St::Input<Passive<T>>),
    ) -> Result<(), Error> {
        undo(self.step, &mut self.live, &self.params, self.inputs.at(step)?);
        self.at = Live::Before(step);
        Ok(())
    }
}

/// Where the unit is that begins at a step; or where there is none.
#[inline]
fn place_of(recorded: &[Option<u64>], unit: Option<u64>) -> Option<usize> {
    recorded.iter().position(|&recorded| recorded == unit)
}
