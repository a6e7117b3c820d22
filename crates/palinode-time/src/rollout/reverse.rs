//! Reverse sweeps of loops whose length is known, and what all reverse sweeps share: setting up, planning,
//! running, reporting.

use super::backend::{Backend, Cotangents};
use super::engine::{Advance, Cuts, Engine, Swept};
use super::flat::{Flat, Nothing, Shape, Verbatim, reading, reshaped, with_tangents, words_per_number};
use super::inputs::Inputs;
use super::needs::Task;
use super::plan::{Actions, Way};
use super::setting::{Length, Loss, Setting, When, finite_value};
use super::stores::Stores;
use super::taking::check_inputs;
use super::{Differentiate, Direction, Given, Gradient, Inner, Known, Rollout, RolloutReport, Truncation};
use crate::error::Error;
use crate::health::Health;
use crate::step::Step;
use palinode_core::{Dual, Passive, Reals, Scalar, Snapshot};

impl<'a, St: Step, How: Differentiate<St>> Rollout<'a, St, How> {
    pub(super) fn gradient(
        &self,
        initial: &St::State<f64>,
        params: &St::Params<f64>,
        when: When,
        loss: &mut Loss<'_, St, f64>,
    ) -> Result<Gradient<St>, Error> {
        self.check()?;
        self.swept_gradient(initial, params, when, loss).map_err(|error| self.located(error, initial, params))
    }

    fn swept_gradient(
        &self,
        initial: &St::State<f64>,
        params: &St::Params<f64>,
        when: When,
        loss: &mut Loss<'_, St, f64>,
    ) -> Result<Gradient<St>, Error> {
        let start = Snapshot::of(initial);
        let stores = self.stores()?;
        let setting = self.setting(initial, params, &start, When::Last == when, stores.are_lossy())?;
        let engine = self.engine(start.loaded(), Snapshot::of(params).loaded(), when)?;
        let mut swept = match self.length()? {
            Known::Steps(steps) => self.sweep(engine, stores, setting, steps, loss)?,
            Known::Until(condition) => self.sweep_until(engine, stores, setting, condition, loss)?,
        };
        if setting.compares && (self.options.window.is_none() || swept.report.truncation.is_some()) {
            let held = swept.engine.heap_bytes() + start.heap_bytes() + setting.results + setting.afterwards;
            let left = setting.budget.bytes().saturating_sub(held);
            let part = match self.exact_part_in_own_direction(initial, params, &mut swept, left, loss) {
                Err(error) if error.is_excess() => None,
                part => part?,
            };
            match &mut swept.report.truncation {
                Some(truncation) => truncation.exact_part = part,
                None => swept.report.lossy = part.map(|part| (1.0 / part - 1.0).abs()),
            }
        }
        let Swept { engine, report } = swept;
        let value = finite_value(engine.loss.value)?;
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
        let seeded = palinode_core::Seeded::new();
        self.check_loss(initial, &seeded, loss)?;
        let state: St::State<Passive<Dual<f64>>> = with_tangents(initial, direction.0, Passive::lift)?;
        let start = Snapshot::of(&state);
        let stores = self.stores()?;
        let one = self.setting(initial, params, &start, false, stores.are_lossy())?;
        // A second gradient and report, and the lists that both are made of.
        let lists = one.numbers * size_of::<f64>();
        let setting = Setting { results: 2 * one.results + lists + Health::new().heap_bytes(), ..one };
        let params_along = with_tangents(params, direction.1, Passive::lift)?;
        let engine = self.engine::<Dual<f64>>(state, params_along, When::Last)?;
        let (steps, stop) = self.count_steps(initial, params)?;
        let Swept { engine, mut report } = self.sweep(engine, stores, setting, steps, loss)?;
        report.stop = stop;
        finite_value(engine.loss.value.value)?;
        let part = |of: fn(&Dual<f64>) -> f64, report: RolloutReport| {
            let Cotangents { state, params: of_params, .. } = &engine.cotangents;
            let [by_state, by_params, by_inputs] = [&state[..], of_params, engine.of_all_inputs()]
                .map(|numbers| numbers.iter().map(of).collect::<Vec<f64>>());
            self.shaped(initial, params, of(&engine.loss.value), [&by_state, &by_params, &by_inputs], report)
        };
        Ok((part(|c| c.value, report.clone())?, part(|c| c.tangent, report)?))
    }

    /// What follows actions, from a state.
    pub(super) fn engine<T: Inner>(
        &self,
        state: St::State<Passive<T>>,
        params: St::Params<Passive<T>>,
        when: When,
    ) -> Result<Engine<'_, St, T, How::By<T>>, Error> {
        Ok(Engine::new(&self.step, state, params, self.inputs_over()?, when, self.options.clip))
    }

    /// Sets a reverse sweep over so many steps up, plans it within the budget, and runs it.
    pub(super) fn sweep<'e, T: Inner, B: Backend<St, T>>(
        &self,
        mut engine: Engine<'e, St, T, B>,
        mut stores: Stores<'_, '_>,
        setting: Setting<'_>,
        steps: u64,
        loss: &mut Loss<'_, St, T>,
    ) -> Result<Swept<'e, St, T, B>, Error> {
        check_inputs(engine.inputs.count(), steps)?;
        let Setting { start, .. } = setting;
        // A window at the end needs no snapshots before it.
        let skipped = match self.options.window {
            Some(window) if engine.loss.when == When::Last => steps.saturating_sub(window),
            _ => 0,
        };
        let window = self.options.window.filter(|_| engine.loss.when == When::Each);
        if self.options.window.is_some() {
            engine.cuts = Cuts::after_each(window);
        }
        let way = Way::Scheduled(self.options.schedule, self.options.disk_snapshots.unwrap_or(0));
        let goes_on = |_: &St::State<Passive<T>>, taken| Ok(taken < steps);
        let length = Length { certain: steps, most: steps, swept: steps - skipped, goes_on: &goes_on };
        engine.trusts_snapshots = !setting.is_lossy;
        let run = |engine: &mut Engine<'e, St, T, B>,
                   stores: &mut Stores<'_, '_>,
                   actions: Actions,
                   loss: &mut Loss<'_, St, T>| {
            let Actions::Known { actions, optimum, cost } = actions else {
                unreachable!("a loop of known length has known actions")
            };
            engine.restart(start, steps)?;
            if steps == 0 {
                engine.no_steps(loss)?;
            }
            engine.rehearse(start, steps)?;
            engine.units.offset = skipped;
            engine.advance(0, skipped)?;
            engine.follow(actions, stores, loss)?;
            Ok::<_, Error>((optimum, cost))
        };
        let tried =
            self.attempt(&mut engine, &mut stores, Task { setting, way, length, singly: false }, loss, run)?;
        let (optimum, cost) = tried.result;
        let mut io = None;
        if let Some(disk) = &mut stores.disk {
            disk.flush()?;
            io = Some(disk.stats());
        }
        let held = engine.heap_bytes() + start.heap_bytes() + setting.results;
        let peak_bytes = tried.charged(tried.keeps, stores.heap_bytes(), held);
        if skipped > 0 {
            let norm = engine.cotangent_norm();
            engine.cuts.note(norm);
            engine.cut_all(start.reals().len() / words_per_number::<T>());
        }
        let truncation = self.options.window.filter(|_| engine.cuts.count > 0).map(|window| Truncation {
            window,
            cuts: engine.cuts.count,
            largest_cut: engine.cuts.largest,
            exact_part: None,
        });
        let mut report = self.report(&mut engine, setting, steps, peak_bytes);
        report.truncation = truncation;
        // What is recorded is counted in steps, what is advanced in units.
        report.optimum = steps + (optimum - optimum.min(cost.recorded)) * engine.units.stride;
        report.snapshots = cost.peak_snapshots.memory;
        report.second_snapshots = cost.peak_snapshots.disk;
        report.io = io;
        Ok(Swept { engine, report })
    }

    /// A report of a finished sweep; what only the caller knows is still missing.
    pub(super) fn report<T: Inner, B: Backend<St, T>>(
        &self,
        engine: &mut Engine<'_, St, T, B>,
        Setting { start, budget, .. }: Setting<'_>,
        steps: u64,
        peak_bytes: usize,
    ) -> RolloutReport {
        engine.release_cotangent();
        engine.locate_closest(start);
        RolloutReport {
            steps,
            forward: engine.watch.forward,
            optimum: 0,
            snapshots: 0,
            second_snapshots: 0,
            peak_bytes,
            budget,
            health: core::mem::take(&mut engine.watch.health),
            decisions: engine.watch.decisions,
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
        match (&self.until, self.options.steps, &self.inputs) {
            (Some(condition), ..) => Ok(Known::Until(condition)),
            (None, Some(steps), _) => Ok(Known::Steps(steps)),
            (None, None, Some(Given::Each(inputs))) => Ok(Known::Steps(inputs.len() as u64)),
            (None, None, Some(Given::Same(_) | Given::By(_)) | None) => Err(Error::NoLength),
        }
    }

    /// What a gradient by these takes, and whether it is to be compared with a forward sweep.
    pub(super) fn setting<'s>(
        &self,
        initial: &St::State<f64>,
        params: &St::Params<f64>,
        start: &'s Snapshot,
        comparable: bool,
        is_lossy: bool,
    ) -> Result<Setting<'s>, Error> {
        if self.options.verify && is_lossy {
            return Err(Error::NotTogether { what: "a lossy store", with: "verification (.verify)" });
        }
        let inputs = match &self.inputs {
            Some(Given::Same(input)) => core::slice::from_ref(input),
            Some(Given::Each(inputs)) => &inputs[..],
            // What a function makes has no place in the gradient.
            Some(Given::By(_)) | None => &[],
        };
        let lengths = [Snapshot::lengths(initial), Snapshot::lengths(params)];
        let lengths = lengths.into_iter().chain(inputs.iter().map(Snapshot::lengths));
        let (numbers, most_words) =
            lengths.fold((0, 0), |(sum, most), (reals, plain)| (sum + reals, plain.max(most)));
        let heap =
            initial.heap_bytes() + params.heap_bytes() + inputs.iter().map(Reals::heap_bytes).sum::<usize>();
        let bytes = heap + size_of_val(inputs);
        let compares = match self.options.window {
            None => comparable && is_lossy,
            Some(_) => self.options.verify,
        } && self.options.clip.is_none();
        Ok(Setting {
            start,
            budget: self.options.budget.clone()?,
            // A list of words that grows is held twice for a moment.
            results: bytes + 4 * most_words * size_of::<u64>(),
            numbers,
            is_lossy,
            compares,
            // The gradient in its shape, the same with tangents, and lists of all of that.
            afterwards: if compares { 3 * bytes + 13 * numbers * size_of::<f64>() } else { 0 },
        })
    }

    /// The inputs over another number.
    pub(super) fn inputs_over<S: crate::Number>(&self) -> Result<Inputs<'_, St, S>, Error> {
        match &self.inputs {
            Some(Given::Same(input)) => {
                let mut flat = Flat::default();
                input.save(&mut Verbatim(&mut flat));
                Ok(Inputs::Same(St::Input::load(&mut flat.read(<S as Scalar>::from_f64))))
            }
            Some(Given::Each(inputs)) => Ok(Inputs::of_list(inputs)),
            Some(Given::By(function)) => Ok(Inputs::by(function)),
            None => {
                let mut nothing = Nothing::default();
                let input = St::Input::<S>::load(&mut nothing);
                if nothing.asked { Err(Error::NoInput) } else { Ok(Inputs::Same(input)) }
            }
        }
    }

    /// The lists of cotangents, by state, parameters and inputs, in the shapes of what they are of.
    pub(super) fn shaped(
        &self,
        initial: &St::State<f64>,
        params: &St::Params<f64>,
        value: f64,
        lists: [&[f64]; 3],
        report: RolloutReport,
    ) -> Result<Gradient<St>, Error> {
        check_finite(lists)?;
        let [by_state, by_params, by_inputs] = lists;
        let mut rest = by_inputs;
        let words = &mut Vec::new();
        let initial = reshaped(initial, by_state, words);
        let params = reshaped(params, by_params, words);
        let mut by_input = |input: &St::Input<f64>| {
            let count = Shape::of(input, words);
            let (first, others) = rest.split_at(count.min(rest.len()));
            rest = others;
            St::Input::<f64>::load(&mut reading(first, words, |number| number))
        };
        let inputs = match &self.inputs {
            Some(Given::Same(input)) => vec![by_input(input)],
            Some(Given::Each(inputs)) => inputs[..report.steps as usize].iter().map(by_input).collect(),
            Some(Given::By(_)) | None => Vec::new(),
        };
        Ok(Gradient { value, initial, params, inputs, report })
    }
}

/// An error if a cotangent is not finite.
fn check_finite([by_state, by_params, by_inputs]: [&[f64]; 3]) -> Result<(), Error> {
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
    Ok(())
}
