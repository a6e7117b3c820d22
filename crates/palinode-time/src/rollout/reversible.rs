//! Reverse sweeps of steps that can be undone: no snapshots, the states come back by undoing the steps.

use super::backend::Backend;
use super::engine::Engine;
use super::needs::Task;
use super::plan::Way;
use super::setting::{Length, Loss, When, finite_value};
use super::taking::check_inputs;
use super::{Differentiate, Gradient, Rollout, Schedule};
use crate::error::Error;
use crate::step::ReversibleStep;
use palinode_core::{Passive, Snapshot, Var};

impl<St: ReversibleStep, How: Differentiate<St>> Rollout<'_, St, How> {
    /// [`Rollout::value_and_grad`] without snapshots: states are got back by undoing steps. The report says
    /// how far that drifted; on integers it does not.
    pub fn value_and_grad_by_undoing(
        &self,
        initial: &St::State<f64>,
        params: &St::Params<f64>,
        loss: impl Fn(&St::State<Var<f64>>) -> Var<f64>,
    ) -> Result<Gradient<St>, Error> {
        let loss = &mut |_: u64, state: &St::State<Var<f64>>| loss(state);
        self.check()?;
        if self.options.window.is_some() {
            return Err(Error::NotTogether { what: "a window (.truncate)", with: "undoing" });
        }
        if self.memory.is_some() || self.disk.is_some() || self.options.schedule != Schedule::Best {
            return Err(Error::NotTogether {
                what: "a place or a schedule for snapshots (.store, .disk, .schedule)",
                with: "undoing, which keeps none",
            });
        }
        let start = Snapshot::of(initial);
        let mut stores = self.stores()?;
        let setting = self.setting(initial, params, &start, false, stores.are_lossy())?;
        let mut engine = self.engine(start.loaded(), Snapshot::of(params).loaded(), When::Last)?;
        let (steps, stop) = self.count_steps(initial, params)?;
        check_inputs(engine.inputs.count(), steps)?;
        let goes_on = |_: &St::State<Passive<f64>>, taken| Ok(taken < steps);
        let length = Length { certain: steps.min(1), most: steps, swept: steps, goes_on: &goes_on };
        let task = Task { setting, way: Way::Undoing, length, singly: false };
        let tried = self.attempt(&mut engine, &mut stores, task, loss, |engine, _, _, loss| {
            there_and_back(engine, &start, steps, loss)
        });
        let tried = tried.map_err(|error| self.located(error, initial, params))?;
        let drift = drift(&start, engine.live_as_snapshot(), SMALL);
        if drift > OF_ALL_STEPS {
            return Err(Error::DriftedTooFar { steps, drift });
        }
        let held = engine.heap_bytes() + start.heap_bytes() + setting.results;
        let peak_bytes = tried.charged(tried.keeps, start.heap_bytes(), held);
        let mut report = self.report(&mut engine, setting, steps, peak_bytes);
        report.optimum = report.forward;
        report.drift = Some(drift);
        report.stop = stop;
        let value = finite_value(engine.loss.value).map_err(|error| self.located(error, initial, params))?;
        let lists = [&engine.cotangents.state[..], &engine.cotangents.params[..], engine.of_all_inputs()];
        self.shaped(initial, params, value, lists, report)
    }
}

/// Takes all steps, undoes them, and carries the cotangents back meanwhile.
fn there_and_back<St: ReversibleStep, B: Backend<St, f64>>(
    engine: &mut Engine<'_, St, f64, B>,
    start: &Snapshot,
    steps: u64,
    loss: &mut Loss<'_, St, f64>,
) -> Result<(), Error> {
    engine.loss.taken_at = None;
    engine.restart(start, steps)?;
    if steps > 0 {
        engine.advance(0, 1)?;
        let after = engine.live_as_snapshot().hash();
        engine.undo(0, |body, state, params, input| body.step_back(state, params, input))?;
        let drift = drift(start, engine.live_as_snapshot(), SMALL);
        if drift > OF_ONE_STEP {
            engine.restart(start, steps)?;
            engine.advance(0, 1)?;
            if engine.live_as_snapshot().hash() != after {
                return Err(Error::Diverged { step: 0 });
            }
            return Err(Error::DoesNotUndo { step: 0, drift });
        }
        engine.restart(start, steps)?;
    }
    // A state that comes back need not have its bits.
    engine.trusts_snapshots = false;
    engine.rehearse(start, steps)?;
    engine.advance(0, steps)?;
    engine.loss_of_live(steps, loss)?;
    engine.loss.taken_at = Some(steps);
    let mut after = engine.live_as_snapshot().clone();
    for step in (0..steps).rev() {
        after.copy_from(engine.live_as_snapshot());
        engine.undo(step, |body, state, params, input| body.step_back(state, params, input))?;
        engine.record_and_stay(step)?;
        // The step that is differentiated leads to where the undone one came from, or one of them is another.
        let drift = engine.end_to_look_at(step)?.map_or(0.0, |end| drift(&after, end, NOT_SMALL));
        if drift > OF_ONE_STEP {
            return Err(Error::DoesNotUndo { step, drift });
        }
        engine.reverse(step, loss)?;
    }
    Ok(())
}

/// So far may rounding take a number of a state that was undone by one step: a third of its digits.
const OF_ONE_STEP: f64 = 1e-5;
/// And by all of them: beyond, the gradient is that of another loop.
const OF_ALL_STEPS: f64 = 1e-2;
/// Numbers that are smaller than the largest by more than this are as good as zero, which has no digits.
const SMALL: f64 = 1e-6;
/// The same on the way, where a number may pass zero.
const NOT_SMALL: f64 = 1e-3;

/// The largest difference between numbers of two states, relative to the number, or to this part of the
/// largest if it is smaller; infinite if there is one that is no number in one of them only.
fn drift(start: &Snapshot, back: &Snapshot, small: f64) -> f64 {
    if start == back {
        return 0.0;
    }
    if start.plain() != back.plain() || start.reals().len() != back.reals().len() {
        return f64::INFINITY;
    }
    let numbers =
        || start.reals().iter().zip(back.reals()).map(|(&a, &b)| (f64::from_bits(a), f64::from_bits(b)));
    let largest = numbers().map(|(a, _)| a.abs()).filter(|a| a.is_finite()).fold(0.0, f64::max);
    let relative = |(a, b): (f64, f64)| {
        if a.to_bits() == b.to_bits() {
            return 0.0;
        }
        let size = if largest > 0.0 { a.abs().max(b.abs()).max(small * largest) } else { 1.0 };
        let difference = (a - b).abs() / size;
        if difference.is_nan() { f64::INFINITY } else { difference }
    };
    numbers().map(relative).fold(0.0, f64::max)
}
