//! Reverse sweeps of loops whose length is known, and what all reverse sweeps share: setting up, planning, running, reporting.

use super::backend::Backend;
use super::engine::{Advance, Engine, Inputs, Loss, Setup, Stores, When};
use super::flat::{Flat, Nothing, Verbatim, reading};
use super::hashes::Hashes;
use super::plan::{self, Needs};
use super::{
    Differentiate, Direction, Given, Gradient, Inner, Known, Length, Report, Rollout, Schedule, Truncation,
};
use crate::error::Error;
use crate::step::Step;
use crate::store::MemoryStore;
use palinode_core::{Budget, Dual, Passive, Reals, Snapshot, SnapshotStore};

/// The most states that are hashed at once.
const HASHES: usize = 1 << 16;
/// The same inside a budget, whose smallest must not depend on itself.
const FEW_HASHES: usize = 1 << 10;

/// The bytes of residuals that a first-level cache is about to hold.
const CACHE: usize = 1 << 15;
/// Partials by forward numbers are written once and read once, in order: a second-level cache is near enough.
const CACHE_FOR_LANES: usize = 1 << 19;
/// Beyond so many steps, starting a recording costs nothing more.
pub(super) const MOST_AT_ONCE: usize = 64;

/// What a reverse sweep ends with.
pub(super) struct Swept<'a, St: Step, T: Inner, B> {
    pub(super) engine: Engine<'a, St, T, B>,
    pub(super) report: Report,
}

impl<'a, St: Step, How: Differentiate<St>> Rollout<'a, St, How> {
    pub(super) fn gradient(
        &self,
        initial: &St::State<f64>,
        params: &St::Params<f64>,
        when: When,
        loss: &mut Loss<'_, St, f64>,
    ) -> Result<Gradient<St>, Error> {
        let budget = self.budget.clone()?;
        let start = Snapshot::of(initial);
        let engine = Engine::new(Setup {
            step: &self.step,
            state: start.loaded(),
            params: Snapshot::of(params).loaded(),
            inputs: self.inputs_over(Passive::lift)?,
            backend: How::By::<f64>::default(),
            when,
            clip: self.clip,
        });
        let mut swept = match self.length()? {
            Known::Steps(steps) => self.sweep(engine, &start, steps, budget, loss)?,
            Known::Until(condition) => self.sweep_until(engine, &start, condition, budget, loss)?,
        };
        if when == When::Last && self.window.is_none() && self.clip.is_none() && self.is_lossy()? {
            swept.report.lossy = Some(self.error_in_own_direction(initial, params, &mut swept, loss)?);
        }
        let Swept { engine, report } = swept;
        let value = finite_value(engine.value)?;
        let lists = [&engine.cotangents.state[..], &engine.cotangents.params[..], engine.of_all_inputs()];
        self.shaped(initial, params, value, lists, report)
    }

    pub(super) fn second_order(
        &self,
        initial: &St::State<f64>,
        params: &St::Params<f64>,
        direction: Direction<'_, St>,
        loss: &mut Loss<'_, St, Dual<f64>>,
    ) -> Result<(Gradient<St>, Gradient<St>), Error> {
        let budget = self.budget.clone()?;
        let state: St::State<Passive<Dual<f64>>> = with_tangents(initial, direction.0, Passive::lift)?;
        let start = Snapshot::of(&state);
        let engine = Engine::new(Setup {
            step: &self.step,
            state,
            params: with_tangents(params, direction.1, Passive::lift)?,
            inputs: self.inputs_over(|x| Passive::lift(Dual::lift(x)))?,
            backend: How::By::<Dual<f64>>::default(),
            when: When::Last,
            clip: self.clip,
        });
        let steps = match self.length()? {
            Known::Steps(steps) => steps,
            Known::Until(_) => self.count_steps(initial, params)?,
        };
        let Swept { engine, report } = self.sweep(engine, &start, steps, budget, loss)?;
        finite_value(engine.value.value)?;
        let part = |of: fn(&Dual<f64>) -> f64| {
            let list = |numbers: &[Dual<f64>]| numbers.iter().map(of).collect::<Vec<f64>>();
            let (by_state, by_params) = (list(&engine.cotangents.state), list(&engine.cotangents.params));
            let by_inputs = list(engine.of_all_inputs());
            self.shaped(
                initial,
                params,
                of(&engine.value),
                [&by_state, &by_params, &by_inputs],
                report.clone(),
            )
        };
        Ok((part(|c| c.value)?, part(|c| c.tangent)?))
    }

    /// Sets a reverse sweep over so many steps up, plans it within the budget, and runs it.
    pub(super) fn sweep<'e, T: Inner, B: Backend<St, T>>(
        &self,
        mut engine: Engine<'e, St, T, B>,
        start: &Snapshot,
        steps: u64,
        budget: Budget,
        loss: &mut Loss<'_, St, T>,
    ) -> Result<Swept<'e, St, T, B>, Error> {
        self.check_inputs(&engine.inputs, steps)?;
        let needs = self.needs(&mut engine, start, (steps, steps), (budget, plan::BOOKKEEPING), loss)?;
        let limit = budget.bytes().saturating_sub(needs.states + needs.residuals);
        let (mut memory, mut disk) = self.stores(limit)?;
        let mut stores = Stores {
            limit,
            memory: memory.as_mut(),
            disk: disk.as_mut().map(|disk| disk.as_mut() as &mut dyn SnapshotStore),
        };
        engine.trusts_snapshots =
            !stores.memory.is_lossy() && !stores.disk.as_ref().is_some_and(|disk| disk.is_lossy());
        // A window at the end needs no snapshots before it.
        let skipped = match self.window {
            Some(window) if engine.when == When::Last => steps.saturating_sub(window),
            _ => 0,
        };
        engine.window = self.window.filter(|_| engine.when == When::Each);
        let disk_slots = self.disk.as_ref().map_or(0, |(_, slots)| *slots);
        let mut go = |engine: &mut Engine<'e, St, T, B>, stores: &mut Stores<'_>| {
            let units = (steps - skipped).div_ceil(engine.stride);
            let planned = plan::plan(self.schedule, units, budget, needs, stores, disk_slots)?;
            let kept = stores.memory.heap_bytes_for(
                planned.cost.peak_slots.memory as usize,
                needs.reals,
                needs.plain,
            );
            if !budget.is_unlimited() && planned.cost.peak_residuals <= 1 {
                engine.limit_growth(stores.limit.saturating_sub(kept + planned.heap_bytes));
            }
            engine.restart(start, steps)?;
            if steps == 0 {
                engine.no_steps(loss)?;
            }
            engine.offset = skipped;
            engine.advance(0, skipped)?;
            engine.follow(planned.actions, stores, loss)?;
            Ok::<_, Error>((planned.cost, planned.optimum, planned.heap_bytes))
        };
        let (cost, optimum, bookkeeping) = match go(&mut engine, &mut stores) {
            Err(Error::Diverged { .. }) if B::RECORDS && engine.advance_by == Advance::Passively => {
                engine.advance_by = Advance::ByRecording;
                go(&mut engine, &mut stores)?
            }
            other => other?,
        };
        let mut io = None;
        if let Some(disk) = &mut stores.disk {
            disk.flush()?;
            io = Some(disk.stats());
        }
        let peak_bytes =
            engine.heap_bytes() + stores.heap_bytes() + bookkeeping + start.heap_bytes() + needs.results;
        if skipped > 0 {
            let norm = engine.squared_norm().sqrt();
            engine.note_cut(norm, skipped);
            engine.cut_all(start.reals().len() / words_per_number::<T>());
        }
        let truncation = self.window.filter(|_| engine.cuts > 0).map(|window| Truncation {
            window,
            cuts: engine.cuts,
            bias: engine.missing(),
        });
        let mut report = self.report(&mut engine, steps, budget, peak_bytes);
        report.truncation = truncation;
        // What is recorded is counted in steps, what is advanced in units.
        report.optimum = steps + (optimum - optimum.min(cost.recorded)) * engine.stride;
        report.snapshots = cost.peak_slots.memory;
        report.second_snapshots = cost.peak_slots.disk;
        report.io = io;
        Ok(Swept { engine, report })
    }

    /// What is always there, found by recording the first steps and the loss once; and how many steps are recorded at once. At
    /// least `steps` steps can be taken, at most `most_steps`.
    pub(super) fn needs<T: Inner, B: Backend<St, T>>(
        &self,
        engine: &mut Engine<'_, St, T, B>,
        start: &Snapshot,
        (steps, most_steps): (u64, u64),
        (budget, bookkeeping): (Budget, usize),
        loss: &mut Loss<'_, St, T>,
    ) -> Result<Needs, Error> {
        if self.verify {
            let most = if budget.is_unlimited() { HASHES } else { FEW_HASHES };
            engine.hashes = Some(Hashes::new(most.min(most_steps.saturating_add(2) as usize)));
        }
        engine.limit(budget);
        engine.stride = 1;
        engine.reserve_inputs();
        let mut over = match engine.warm_up(start, steps, loss) {
            Err(Error::Core(palinode_core::Error::ByteLimit { .. })) => {
                // To name what is enough, the step is recorded once without a limit.
                engine.limit(Budget::UNLIMITED);
                engine.warm_up(start, steps, loss)?;
                true
            }
            other => {
                other?;
                false
            }
        };
        let mut needs = needs_of(engine, start);
        let memory = self.memory_store(usize::MAX)?;
        if steps > 0 && !self.tape_only {
            let within = if over { Budget::UNLIMITED } else { budget };
            let (narrow, held) = match engine.narrow(start, within)? {
                Some(found) => found,
                None => {
                    over = true;
                    engine.limit(Budget::UNLIMITED);
                    engine.narrow(start, Budget::UNLIMITED)?.unwrap_or_default()
                }
            };
            if narrow {
                engine.warm_up(start, steps, loss)?;
                needs = needs_of(engine, start);
            }
            needs.least = held;
        }
        plan::slots_within(budget, needs, memory.as_ref(), bookkeeping, 1)?;
        if over {
            // It fits after all: the limit counted what a recording needs on the way.
            engine.limit(budget);
            engine.warm_up(start, steps, loss)?;
        }
        let at_once = self.steps_at_once(engine, budget, needs).min(steps);
        if at_once > 1 {
            engine.stride = at_once;
            engine.warm_up(start, steps, loss)?;
            let larger = Needs { least: needs.least, ..needs_of(engine, start) };
            if plan::slots_within(budget, larger, memory.as_ref(), bookkeeping, 1).is_ok() {
                return Ok(larger);
            }
            engine.stride = 1;
            engine.forget_recordings();
            engine.warm_up(start, steps, loss)?;
            needs = Needs { least: needs.least, ..needs_of(engine, start) };
        }
        Ok(needs)
    }

    /// How many steps are recorded on one tape.
    fn steps_at_once<T: Inner, B: Backend<St, T>>(
        &self,
        engine: &mut Engine<'_, St, T, B>,
        budget: Budget,
        needs: Needs,
    ) -> u64 {
        let in_steps = matches!(self.schedule, Schedule::Periodic { .. } | Schedule::Mixed { .. });
        if !B::RECORDS
            || engine.when == When::Each
            || in_steps
            || self.window.is_some()
            || self.clip.is_some()
        {
            return 1;
        }
        if let Some(at_once) = self.at_once {
            return at_once;
        }
        let left = budget.bytes().saturating_sub(needs.states + needs.residuals);
        let cache = if engine.backend.directions().is_some() { CACHE_FOR_LANES } else { CACHE };
        let bytes = cache.min(left / 8);
        (bytes / engine.backend.needed_bytes().max(1)).clamp(1, MOST_AT_ONCE) as u64
    }

    /// A report of a finished sweep; what only the caller knows is still missing.
    pub(super) fn report<T: Inner, B: Backend<St, T>>(
        &self,
        engine: &mut Engine<'_, St, T, B>,
        steps: u64,
        budget: Budget,
        peak_bytes: usize,
    ) -> Report {
        engine.release_cotangent();
        Report {
            steps,
            forward: engine.counts.advanced + engine.counts.recorded,
            optimum: 0,
            snapshots: 0,
            second_snapshots: 0,
            peak_bytes,
            budget,
            health: core::mem::take(&mut engine.health),
            stop: None,
            truncation: None,
            drift: None,
            advanced_by_recording: engine.advance_by == Advance::ByRecording,
            directions: engine.backend.directions(),
            lossy: None,
            io: None,
        }
    }

    /// How long the loop is: as was said, or as many steps as there are inputs.
    pub(super) fn length(&self) -> Result<Known<'_, 'a, St>, Error> {
        match (&self.length, &self.inputs) {
            (Some(Length::Steps(steps)), _) => Ok(Known::Steps(*steps)),
            (Some(Length::Until(condition)), _) => Ok(Known::Until(condition)),
            (None, Some(Given::Each(inputs))) => Ok(Known::Steps(inputs.len() as u64)),
            (None, Some(Given::Same(_)) | None) => Err(Error::NoLength),
        }
    }

    #[allow(clippy::type_complexity)] // two stores, the second of which may be missing
    pub(super) fn stores(
        &self,
        limit: usize,
    ) -> Result<(Box<dyn SnapshotStore>, Option<Box<dyn SnapshotStore>>), Error> {
        let disk = self.disk.as_ref().map(|(make, _)| make()).transpose()?;
        Ok((self.memory_store(limit)?, disk))
    }

    fn memory_store(&self, limit: usize) -> Result<Box<dyn SnapshotStore>, Error> {
        Ok(match &self.memory {
            Some(make) => make()?,
            None => Box::new(MemoryStore::within(limit.into())),
        })
    }

    fn is_lossy(&self) -> Result<bool, Error> {
        let lossy = |maker: Option<&super::StoreMaker<'_>>| {
            Ok::<_, Error>(maker.map(|make| make()).transpose()?.is_some_and(|store| store.is_lossy()))
        };
        Ok(lossy(self.memory.as_ref())? || lossy(self.disk.as_ref().map(|(make, _)| make))?)
    }

    /// The inputs over another number.
    pub(super) fn inputs_over<S: crate::Number>(
        &self,
        mut number: impl FnMut(f64) -> S,
    ) -> Result<Inputs<St::Input<S>>, Error> {
        let mut over = |input: &St::Input<f64>| {
            let mut flat = Flat::default();
            input.save(&mut Verbatim(&mut flat));
            St::Input::<S>::load(&mut reading(&flat.reals, &flat.plain, &mut number))
        };
        match &self.inputs {
            Some(Given::Same(input)) => Ok(Inputs::Same(over(input))),
            Some(Given::Each(inputs)) => Ok(Inputs::Each(inputs.iter().map(over).collect())),
            None => {
                let mut nothing = Nothing::default();
                let input = St::Input::<S>::load(&mut nothing);
                if nothing.asked { Err(Error::NoInput) } else { Ok(Inputs::Same(input)) }
            }
        }
    }

    pub(super) fn check_inputs<I>(&self, inputs: &Inputs<I>, steps: u64) -> Result<(), Error> {
        match inputs {
            Inputs::Each(inputs) if (inputs.len() as u64) < steps => {
                Err(Error::TooFewInputs { inputs: inputs.len(), steps })
            }
            Inputs::Each(_) | Inputs::Same(_) => Ok(()),
        }
    }

    /// The lists of cotangents, by state, parameters and inputs, in the shapes of what they are of.
    pub(super) fn shaped(
        &self,
        initial: &St::State<f64>,
        params: &St::Params<f64>,
        value: f64,
        [by_state, by_params, by_inputs]: [&[f64]; 3],
        report: Report,
    ) -> Result<Gradient<St>, Error> {
        for (what, list) in [
            ("cotangent of state number", by_state),
            ("cotangent of parameter", by_params),
            ("cotangent of input number", by_inputs),
        ] {
            if let Some(position) = list.iter().position(|c| !c.is_finite()) {
                let value = list[position];
                return Err(palinode_core::Error::NonFiniteDerivativeOf { what, position, value }.into());
            }
        }
        let mut rest = by_inputs;
        let mut by_input = |input: &St::Input<f64>| {
            let count = numbers_in(input);
            let (first, others) = rest.split_at(count.min(rest.len()));
            rest = others;
            reshaped(input, first)
        };
        let inputs = match &self.inputs {
            Some(Given::Same(input)) => vec![by_input(input)],
            Some(Given::Each(inputs)) => inputs[..report.steps as usize].iter().map(by_input).collect(),
            None => Vec::new(),
        };
        Ok(Gradient {
            value,
            initial: reshaped(initial, by_state),
            params: reshaped(params, by_params),
            inputs,
            report,
        })
    }
}

/// How many words a number is kept in.
fn words_per_number<T: Inner>() -> usize {
    let mut words = 0;
    T::zero().save_bits(&mut |_| words += 1);
    words
}

/// What the engine holds now that it has recorded.
fn needs_of<St: Step, T: Inner, B: Backend<St, T>>(
    engine: &mut Engine<'_, St, T, B>,
    start: &Snapshot,
) -> Needs {
    let residuals = engine.backend.residual_bytes();
    let results = engine.result_bytes();
    Needs {
        states: engine.heap_bytes() - residuals + start.heap_bytes() + results,
        residuals,
        results,
        reals: start.reals().len(),
        plain: start.plain().len(),
        least: 0,
    }
}

/// A value of the shape of another, with these numbers.
pub(super) fn reshaped<R: Reals<f64>>(like: &R, numbers: &[f64]) -> R {
    let mut flat = Flat::default();
    like.save(&mut Verbatim(&mut flat));
    R::load(&mut reading(numbers, &flat.plain, |number| number))
}

fn numbers_in<R: Reals<f64>>(value: &R) -> usize {
    let mut flat = Flat::default();
    value.save(&mut Verbatim(&mut flat));
    flat.reals.len()
}

/// A value over duals of which one part is the primal and the other the tangent.
pub(super) fn with_tangents<A: Reals<f64>, S, B: Reals<S>>(
    value: &A,
    tangent: &A,
    number: impl Fn(Dual<f64>) -> S,
) -> Result<B, Error> {
    let (mut values, mut tangents) = (Flat::default(), Flat::default());
    value.save(&mut Verbatim(&mut values));
    tangent.save(&mut Verbatim(&mut tangents));
    if values.reals.len() != tangents.reals.len() {
        return Err(Error::Core(palinode_core::Error::Length {
            what: "the direction",
            expected: values.reals.len(),
            found: tangents.reals.len(),
        }));
    }
    let duals: Vec<Dual<f64>> =
        values.reals.iter().zip(&tangents.reals).map(|(&x, &t)| Dual::new(x, t)).collect();
    Ok(B::load(&mut reading(&duals, &values.plain, number)))
}

pub(super) fn finite_value(value: f64) -> Result<f64, Error> {
    if value.is_finite() {
        Ok(value)
    } else {
        Err(Error::Core(palinode_core::Error::NonFiniteOutput { position: 0, value }))
    }
}
