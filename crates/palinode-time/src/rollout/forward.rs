//! Loops run forward: without derivatives, or with the derivative in one direction, streaming.

use super::backend::Cotangents;
use super::engine::Swept;
use super::flat::{reshaped, with_tangents};
use super::setting::{Loss, When, finite_value};
use super::sides;
use super::taking::{begin, check_inputs, judged, take_steps, taken_well};
use super::{Backend, Differentiate, Direction, Known, Rollout, StopMargin};
use crate::error::Error;
use crate::step::Step;
use core::iter::once_with;
use palinode_core::dense::norm_of;
use palinode_core::points::Account;
use palinode_core::{Dual, Passive, Seeded, Snapshot, points};

/// How many steps a loop takes, and how close its condition came to another number, if it has one.
pub(super) type Taken = (u64, Option<StopMargin>);

impl<St: Step, How: Differentiate<St>> Rollout<'_, St, How> {
    pub(super) fn run_plain(
        &self,
        initial: &St::State<f64>,
        params: &St::Params<f64>,
    ) -> Result<St::State<f64>, Error> {
        let (state, _) = self.run_passively(initial, params)?;
        Ok(Snapshot::of(&state).loaded())
    }

    /// How many steps it takes; it is run for that if it has a condition.
    pub(super) fn count_steps(
        &self,
        initial: &St::State<f64>,
        params: &St::Params<f64>,
    ) -> Result<Taken, Error> {
        match self.length()? {
            Known::Steps(steps) => Ok((steps, None)),
            Known::Until(_) => self.run_passively(initial, params).map(|(_, taken)| taken),
        }
    }

    fn run_passively(
        &self,
        initial: &St::State<f64>,
        params: &St::Params<f64>,
    ) -> Result<(St::State<Passive<f64>>, Taken), Error> {
        begin(&self.step);
        let mut state: St::State<Passive<f64>> = Snapshot::of(initial).loaded();
        let params: St::Params<Passive<f64>> = Snapshot::of(params).loaded();
        let mut inputs = self.inputs_over()?;
        let condition = match self.length()? {
            Known::Until(condition) => condition,
            Known::Steps(steps) => {
                check_inputs(inputs.count(), steps)?;
                take_steps(&self.step, &mut state, &params, &mut inputs, 0, steps, |_, _| Ok(()))?;
                return Ok((state, (steps, None)));
            }
        };
        let (mut taken, mut before_stop) = (0, f64::INFINITY);
        loop {
            let (holds, margin) = judged(condition, &state, taken)?;
            if holds {
                return Ok((state, (taken, Some(StopMargin { at_stop: margin, before_stop }))));
            }
            before_stop = margin;
            self.may_take(inputs.count(), taken)?;
            self.step.step(&mut state, &params, inputs.at(taken)?);
            taken_well(&self.step, taken)?;
            taken += 1;
        }
    }

    /// An error with the step that made a state not finite, if it is about that.
    pub(super) fn located(&self, error: Error, initial: &St::State<f64>, params: &St::Params<f64>) -> Error {
        match error {
            Error::NonFiniteLoss { value, .. } => {
                Error::NonFiniteLoss { value, step: self.first_not_finite(initial, params) }
            }
            error => error,
        }
    }

    /// The first step after which a number of the state is not finite, if they were before. For errors: it
    /// runs the loop again.
    pub(super) fn first_not_finite(&self, initial: &St::State<f64>, params: &St::Params<f64>) -> Option<u64> {
        begin(&self.step);
        let mut state: St::State<Passive<f64>> = Snapshot::of(initial).loaded();
        let params: St::Params<Passive<f64>> = Snapshot::of(params).loaded();
        let mut inputs = self.inputs_over().ok()?;
        let mut kept = Snapshot::of(initial);
        let mut taken = 0;
        while is_finite(&kept) {
            let goes_on = match self.length().ok()? {
                Known::Steps(steps) => taken < steps,
                Known::Until(condition) => !judged(condition, &state, taken).ok()?.0,
            };
            if !goes_on || check_inputs(inputs.count(), taken + 1).is_err() {
                return None;
            }
            self.step.step(&mut state, &params, inputs.at(taken).ok()?);
            taken_well(&self.step, taken).ok()?;
            kept.take(&state);
            taken += 1;
        }
        taken.checked_sub(1)
    }

    /// Whether step `taken` may be taken: it is not one too many, and has an input.
    pub(super) fn may_take(&self, inputs: Option<usize>, taken: u64) -> Result<(), Error> {
        if let Some(limit) = self.options.at_most
            && taken >= limit
        {
            return Err(Error::TooLong { limit });
        }
        check_inputs(inputs, taken + 1)
    }

    pub(super) fn forward(
        &self,
        initial: &St::State<f64>,
        params: &St::Params<f64>,
        direction: Direction<'_, St>,
        loss: impl Fn(&St::State<Dual<f64>>) -> Dual<f64>,
    ) -> Result<(f64, f64), Error> {
        let seeded = Seeded::new();
        let state = self.forward_state(initial, params, direction, &Account::default(), |_, _| Ok(()))?;
        let loss = sides::loss_of::<St>(&state, &seeded, loss)?;
        Ok((finite_value(loss.value)?, loss.tangent))
    }

    /// The last state and its tangent in a direction; those after each step are shown on the way. What
    /// looking at both sides takes is charged.
    fn forward_state(
        &self,
        initial: &St::State<f64>,
        params: &St::Params<f64>,
        direction: Direction<'_, St>,
        account: &Account,
        mut show: impl FnMut(&St::State<Dual<f64>>, u64) -> Result<(), Error>,
    ) -> Result<St::State<Dual<f64>>, Error> {
        begin(&self.step);
        let (steps, _) = self.count_steps(initial, params)?;
        let mut inputs = self.inputs_over()?;
        check_inputs(inputs.count(), steps)?;
        let mut state: St::State<Dual<f64>> = with_tangents(initial, direction.0, |x| x)?;
        let params: St::Params<Dual<f64>> = with_tangents(params, direction.1, |x| x)?;
        let mut smallest = sides::Smallest::of(sides::least(initial));
        let (taken, suspicion) = points::suspicion_of(|| {
            take_steps(&self.step, &mut state, &params, &mut inputs, 0, steps, |state, at| {
                smallest.see(state, at);
                show(state, at)
            })?;
            sides::note_state(&state);
            Ok::<(), Error>(())
        });
        taken?;
        let of_params = once_with(|| sides::least(&params));
        if points::is_suspicious(suspicion, of_params.chain([smallest.found])) {
            begin(&self.step);
            let start = with_tangents(initial, direction.0, |x| x)?;
            let mut inputs = self.inputs_over()?;
            let look = || sides::take_steps(account, &self.step, start, &params, &mut inputs, steps);
            state = points::again(look)?;
        }
        Ok(state)
    }

    /// The exact derivative in the direction of a gradient by initial state and parameters that may not be
    /// exact, which a streaming forward sweep gives, as a part of what that gradient says it is: 1 if it is
    /// right there. `None` if the gradient is zero, its square is no number, or a step decides by a tie and
    /// there are too few bytes to look at it from both sides.
    pub(super) fn exact_part_in_own_direction<B: Backend<St, f64>>(
        &self,
        initial: &St::State<f64>,
        params: &St::Params<f64>,
        swept: &mut Swept<'_, St, f64, B>,
        budget: usize,
        loss: &mut Loss<'_, St, f64>,
    ) -> Result<Option<f64>, Error> {
        let engine = &mut swept.engine;
        let Some((length, of_state, of_params)) = to_length_one(&engine.cotangents) else {
            return Ok(None);
        };
        let words = &mut Vec::new();
        let by_state = reshaped(initial, &of_state, words);
        let by_params = reshaped(params, &of_params, words);
        let mut along = 0.0;
        let each = engine.loss.when == When::Each;
        let account = Account::within(budget);
        let last = self.forward_state(initial, params, (&by_state, &by_params), &account, |state, at| {
            if each {
                along += engine.derivative_of_loss(state, at + 1, loss)?;
            }
            Ok(())
        })?;
        let exact = if each { along } else { engine.derivative_of_loss(&last, swept.report.steps, loss)? };
        Ok(Some(exact / length).filter(|part| part.is_finite()))
    }
}

/// The length of a gradient by state and parameters, and the gradient to length one, so that nothing
/// overflows; nothing if there is no such length.
fn to_length_one(Cotangents { state, params, .. }: &Cotangents<f64>) -> Option<(f64, Vec<f64>, Vec<f64>)> {
    let length = norm_of(state.iter().chain(params).copied());
    let unit = |list: &[f64]| list.iter().map(|c| c / length).collect::<Vec<f64>>();
    length.is_normal().then(|| (length, unit(state), unit(params)))
}

fn is_finite(snapshot: &Snapshot) -> bool {
    snapshot.reals().iter().all(|&bits| f64::from_bits(bits).is_finite())
}
