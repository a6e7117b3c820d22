//! Follows a stream of actions: advances, keeps and restores states, records steps and carries cotangents back over them.
//!
//! Input: a step, a state, parameters, inputs, a loss, snapshot stores, and actions from a schedule. Output: the value of the loss and the
//! cotangents of the initial state, the parameters and the inputs. `follow.rs`: what it does for each action; `inputs.rs`: what enters;
//! `bytes.rs`: its memory; `measure.rs`: how that is found; `sizes.rs`: how large states are; `cotangent.rs`: what becomes of the cotangent; `decisions.rs`: what steps decided; `loss.rs`: where it begins;
//! `divergence.rs`: whether steps that are run again end where they did.
//!
//! Invariants: every recorded step must end in the bits from which the next one was recorded, so the states are those of one trajectory,
//! whatever the schedule; cotangents are added in one order. After the first step nothing is allocated unless a state has grown.

mod bytes;
mod cotangent;
mod decisions;
mod divergence;
mod follow;
mod inputs;
mod loss;
mod measure;
mod sizes;

use super::Inner;
use super::backend::{Backend, Cotangents, Fixed};
use super::flat::{Flat, count, refill};
use super::forward::{begin, take_steps, taken_well};
use super::hashes::Hashes;
use super::report::StepDecisions;
use super::stores::Stores;
use crate::error::Error;
use crate::health::Health;
use crate::step::{Notes, Step};
pub(super) use cotangent::Cuts;
pub(super) use inputs::Inputs;
use palinode_core::points::Account;
use palinode_core::{Passive, Reals, Snapshot, Tape, Var, decision};
use sizes::outgrown;
pub(super) use sizes::{Heaviest, Sizes};

/// How many actions a slow store is told ahead.
pub(super) const AHEAD: usize = 16;

/// When the loss is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// Of the last state.
    Last,
    /// Of the state after each step, summed.
    Each,
}

/// A loss: of the state after so many steps.
pub(super) type Loss<'a, St, T> = dyn FnMut(u64, &<St as Step>::State<Var<T>>) -> Var<T> + 'a;

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

/// What was counted on the way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) advanced: u64,
    pub(super) recorded: u64,
    pub(super) snapshots: u64,
    pub(super) restores: u64,
}

pub(super) struct Engine<'a, St: Step, T: Inner, B> {
    step: &'a St,
    params: St::Params<Passive<T>>,
    pub(super) inputs: Inputs<'a, St, Passive<T>>,
    pub(super) live: St::State<Passive<T>>,
    at: Live,
    pub(super) backend: B,
    pub(super) advance_by: Advance,
    pub(super) cotangents: Cotangents<T>,
    /// The cotangents of all inputs, one after the other; empty if there is one input for all.
    pub(super) of_inputs: Vec<T>,
    /// How many of these are final, from the end.
    reversed_inputs: usize,
    /// Which units are recorded and not yet reversed, by the place where their residuals are: the first step of each.
    recorded: Vec<Option<u64>>,
    /// How many steps are recorded at once: a unit. Schedules count in units.
    pub(super) stride: u64,
    /// The step at which the first unit begins.
    pub(super) offset: u64,
    /// The state before the units that were recorded last, one after the other: what the unit before them must end in.
    expected: Flat<T>,
    expected_before: Option<u64>,
    /// The state before the units that are being recorded, if there are several; and the step that it is before.
    block: Flat<T>,
    block_from: u64,
    snapshot: Snapshot,
    loss_tape: Tape<T>,
    looking_at_loss: Account,
    loss_state: Option<St::State<Var<T>>>,
    /// The state after a recorded step, for the loss.
    after: Option<St::State<Passive<T>>>,
    numbers: Flat<T>,
    pub(super) value: T,
    pub(super) when: When,
    /// The number of steps, once it is known.
    pub(super) steps: u64,
    pub(super) clip: Option<f64>,
    pub(super) health: Health,
    /// What steps decided, and how many of them have been watched.
    pub(super) decisions: StepDecisions,
    watched: u64,
    pub(super) hashes: Option<Hashes>,
    pub(super) counts: Counts,
    /// Whether a restored state has the bits that it had when it was kept.
    pub(super) trusts_snapshots: bool,
    /// Where the cotangent is cut, and what that left out.
    pub(super) cuts: Cuts,
    /// The loss after so many steps has been taken already.
    pub(super) loss_taken_at: Option<u64>,
    /// The bytes that were held in all while a cheaper way to the partials was looked for; see `narrow`.
    pub(super) held_to_look: usize,
    /// What the first plan is for.
    pub(super) planned: Heaviest,
    /// The largest states that were seen; see `sizes.rs`.
    pub(super) largest: Sizes,
    holds_to_sizes: bool,
    /// Whether a step makes lists of its state longer, if only until it ends: they are then held twice for a moment.
    moves_lists: bool,
    /// Whether a state that is restored has its lists elsewhere than before: they are then held twice for a moment, too.
    moves_when_restored: bool,
    /// The bytes that states which grow may take beyond the largest one.
    room: usize,
    /// Whether a step that diverged was seen to compute something else with recorded numbers.
    otherwise: bool,
    /// How many steps were run again only to look where they end.
    run_to_look: u64,
}

/// The parts of an engine that a caller sets.
pub(super) struct Setup<'a, St: Step, T: Inner, B> {
    pub(super) step: &'a St,
    pub(super) state: St::State<Passive<T>>,
    pub(super) params: St::Params<Passive<T>>,
    pub(super) inputs: Inputs<'a, St, Passive<T>>,
    pub(super) backend: B,
    pub(super) when: When,
    pub(super) clip: Option<f64>,
}

impl<'a, St: Step, T: Inner, B: Backend<St, T>> Engine<'a, St, T, B> {
    pub(super) fn new(setup: Setup<'a, St, T, B>) -> Self {
        let Setup { step, state, params, inputs, backend, when, clip } = setup;
        begin(step);
        Engine {
            step,
            params,
            inputs,
            live: state,
            at: Live::Before(0),
            backend,
            advance_by: Advance::Passively,
            cotangents: Cotangents { state: Vec::new(), params: Vec::new(), input: Vec::new() },
            of_inputs: Vec::new(),
            reversed_inputs: 0,
            recorded: Vec::new(),
            stride: 1,
            offset: 0,
            expected: Flat::default(),
            expected_before: None,
            block: Flat::default(),
            block_from: 0,
            snapshot: Snapshot::new(),
            loss_tape: Tape::new(),
            looking_at_loss: Account::default(),
            loss_state: None,
            after: None,
            numbers: Flat::default(),
            value: T::zero(),
            when,
            steps: 0,
            clip,
            health: Health::new(),
            decisions: StepDecisions::default(),
            watched: 0,
            hashes: None,
            counts: Counts::default(),
            trusts_snapshots: true,
            cuts: Cuts::default(),
            loss_taken_at: None,
            held_to_look: 0,
            planned: Heaviest::default(),
            largest: Sizes::default(),
            holds_to_sizes: false,
            moves_lists: false,
            moves_when_restored: false,
            room: 0,
            otherwise: false,
            run_to_look: 0,
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
        self.recorded.iter_mut().for_each(|place| *place = None);
        self.expected_before = None;
        self.value = T::zero();
        self.health.clear();
        (self.decisions, self.watched) = (StepDecisions::default(), 0);
        self.counts = Counts::default();
        (self.otherwise, self.run_to_look) = (false, 0);
        self.cotangents.params.clear();
        self.cotangents.params.resize(count(&self.params), T::zero());
        self.release_cotangent();
        self.cotangents.state.clear();
        self.cotangents.input.clear();
        self.of_inputs.clear();
        self.reversed_inputs = 0;
        if let Inputs::Same(input) = &self.inputs {
            self.cotangents.input.resize(count(input), T::zero());
        }
        let all = self.inputs.numbers(steps);
        self.of_inputs.reserve_exact(all);
        self.of_inputs.resize(all, T::zero());
        self.cuts.clear();
        if let Some(hashes) = &mut self.hashes {
            hashes.clear();
            hashes.see(0, &self.live, &mut self.snapshot)?;
        }
        Ok(())
    }

    /// Runs the whole loop once to hash its states, if they are to be compared, and goes back to its start: every step is then run at least twice, and
    /// the first that differs is the first to be noticed.
    pub(super) fn rehearse(&mut self, initial: &Snapshot, steps: u64) -> Result<(), Error> {
        if self.hashes.is_none() {
            return Ok(());
        }
        self.advance(0, steps)?;
        self.back_to(initial, steps);
        Ok(())
    }

    /// The live state, that after all steps, becomes the first one; hashes and counts are kept.
    pub(super) fn back_to(&mut self, initial: &Snapshot, steps: u64) {
        if let Some(hashes) = &mut self.hashes {
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
        self.counts.advanced += to - from;
        self.at = Live::Before(to);
        if self.advance_by == Advance::ByRecording {
            return (from..to).try_for_each(|step| self.advance_by_recording(step));
        }
        let (most, most_noted) = self.most_heap();
        let Engine { step, params, inputs, live, hashes, snapshot, .. } = self;
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
        let fixed = &Fixed { step: *body, params };
        let inputs = inputs.of(step, step + 1)?;
        let recorded = backend.record(place, fixed, live, inputs, 1, None);
        let advanced = recorded.and_then(|alike| match alike {
            true => backend.after(place, fixed, inputs, 1, live),
            false => Err(Error::Diverged { step }),
        });
        if let Err(error) = advanced {
            return Err(self.of_recording(step, error));
        }
        taken_well(*body, step)?;
        self.check_sizes(step)?;
        match &mut self.hashes {
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
                let fixed = &Fixed { step: *body, params };
                let settled = backend.after(place, fixed, inputs.of(from, to)?, to - from, live);
                settled.map_err(|error| error.counted_from(from))?;
                taken_well(*body, from)
            })?;
            self.at = Live::Before(to);
        }
        Ok(())
    }

    /// The first step of a unit; one past the last step for one past the last unit.
    #[inline(always)]
    fn first(&self, unit: u64) -> u64 {
        (self.offset + unit * self.stride).min(self.steps)
    }

    /// One past the last step of the unit that begins at a step.
    #[inline(always)]
    fn end_of(&self, from: u64) -> u64 {
        (from + self.stride).min(self.steps)
    }

    /// A place for the residuals of a unit.
    fn free_place(&mut self) -> usize {
        match self.recorded.iter().position(Option::is_none) {
            Some(place) => place,
            None => {
                self.recorded.push(None);
                self.recorded.len() - 1
            }
        }
    }

    fn place_of(&self, step: u64) -> usize {
        self.recorded
            .iter()
            .position(|&recorded| recorded == Some(step))
            .expect("a step is recorded before it is reversed")
    }

    /// Records the unit that begins at a step.
    pub(super) fn record(&mut self, from: u64) -> Result<(), Error> {
        // One that goes on where another ended begins with its bits.
        let begins = matches!(self.at, Live::Before(_));
        self.settle()?;
        self.check_sizes(from)?;
        debug_assert_eq!(self.at, Live::Before(from));
        let to = self.end_of(from);
        self.counts.recorded += to - from;
        let place = self.free_place();
        self.recorded[place] = Some(from);
        // What this unit must end in is known if the units after it were recorded last.
        let ends = to == self.steps || self.expected_before == Some(to);
        let is_known = B::RECORDS && self.expected_before == Some(to) && self.trusts_snapshots;
        if begins {
            self.block_from = from;
        }
        if B::RECORDS && begins {
            self.numbers.clear();
            self.live.save(&mut self.numbers);
            if !ends {
                self.block.copy_from(&self.numbers);
            }
        }
        let Engine { step: body, params, inputs, live, backend, expected, .. } = self;
        let expected = is_known.then_some(&*expected);
        let fixed = &Fixed { step: *body, params };
        let of_steps = inputs.of(from, to)?;
        let mut record = || backend.record(place, fixed, live, of_steps, to - from, expected);
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
        if self.hashes.is_some() && self.trusts_snapshots {
            self.state_after(place, from, to)?;
            if !B::RECORDS {
                self.counts.advanced += to - from;
            }
            let (Some(hashes), Some(after)) = (&mut self.hashes, &self.after) else { return Ok(()) };
            if let Err(error) = hashes.see(to, after, &mut self.snapshot) {
                return Err(if B::RECORDS { self.diverged(place, to, begins) } else { error });
            }
        }
        if B::RECORDS && ends {
            let first = if begins { &mut self.numbers } else { &mut self.block };
            core::mem::swap(first, &mut self.expected);
            self.expected_before = Some(self.block_from);
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
            self.cut();
        }
        let takes_loss = (to == self.steps || self.when == When::Each) && self.loss_taken_at != Some(to);
        if takes_loss {
            self.loss_after(place, from, to, loss)?;
        }
        if !B::RECORDS {
            self.look_at_end(place, from, to, takes_loss)?;
        }
        let knows_end = !B::RECORDS && self.expected_before == Some(to) && self.trusts_snapshots;
        let Engine { step: body, params, inputs, backend, cotangents, of_inputs, reversed_inputs, .. } = self;
        let expected = knows_end.then_some(&self.expected);
        let (keeps_each, keeps_sum) = (inputs.list().is_some(), matches!(inputs, Inputs::Same(_)));
        let of_steps = inputs.of(from, to)?;
        if !keeps_sum {
            cotangents.input.clear();
            cotangents.input.resize(of_steps.iter().map(count).sum(), T::zero());
        }
        let reversed =
            backend.reverse(place, &Fixed { step: *body, params }, of_steps, to - from, expected, cotangents);
        if let Err(error) = reversed {
            return Err(self.of_recording(from, error));
        }
        taken_well(*body, from)?;
        if keeps_each {
            // From the end, because inputs need not have the same size.
            let end = of_inputs.len() - *reversed_inputs;
            of_inputs[end - cotangents.input.len()..end].copy_from_slice(&cotangents.input);
            *reversed_inputs += cotangents.input.len();
        }
        self.recorded[place] = None;
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
            let fixed = &Fixed { step: *body, params };
            if after.is_none() {
                numbers.clear();
                live.save(numbers);
                refill(after, &mut numbers.read(Passive::lift));
            }
            let Some(state) = after else { unreachable!("filled above") };
            backend
                .after(place, fixed, inputs.of(from, to)?, to - from, state)
                .map_err(|error| error.counted_from(from))?;
            taken_well(*body, from)
        })
    }

    /// There are at least so many steps.
    pub(super) fn set_steps(&mut self, steps: u64) {
        self.steps = steps;
    }

    /// There are so many steps, now that it is known: makes the list of the cotangents of their inputs.
    pub(super) fn all_inputs(&mut self, steps: u64) {
        self.steps = steps;
        self.of_inputs.clear();
        self.of_inputs.resize(self.inputs.numbers(steps), T::zero());
    }

    /// The cotangents of the inputs, all in one list.
    pub(super) fn of_all_inputs(&self) -> &[T] {
        // What a function makes has no cotangents.
        if let Inputs::Same(_) = self.inputs { &self.cotangents.input } else { &self.of_inputs }
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
