//! The loss of a state: its value, and the cotangent that a sweep starts with or takes up on its way.

use super::{Backend, Engine, Error, Inner, Loss, Step, When};
use crate::rollout::flat::{Flat, Verbatim, count, reading, refill};
use crate::rollout::sides;
use palinode_core::points::Account;
use palinode_core::{Dual, Reals, Tape, Var};

/// The loss, as far as it has been taken.
pub(in crate::rollout) struct LossSoFar<St: Step, T: Inner> {
    pub(in crate::rollout) when: When,
    pub(in crate::rollout) value: T,
    /// The loss after so many steps has been taken already.
    pub(in crate::rollout) taken_at: Option<u64>,
    pub(super) tape: Tape<T>,
    /// The memory of looking at both sides of its decisions.
    pub(super) looking: Account,
    /// The state that it is taken of.
    pub(super) state: Option<St::State<Var<T>>>,
}

impl<St: Step, T: Inner> LossSoFar<St, T> {
    pub(super) fn new(when: When) -> Self {
        let (tape, looking) = (Tape::new(), Account::default());
        LossSoFar { when, value: T::zero(), taken_at: None, tape, looking, state: None }
    }
}

impl<St: Step, T: Inner, B: Backend<St, T>> Engine<'_, St, T, B> {
    /// Adds the loss of the state after a recorded unit, and its cotangent.
    pub(super) fn loss_after(
        &mut self,
        place: usize,
        from: u64,
        to: u64,
        loss: &mut Loss<'_, St, T>,
    ) -> Result<(), Error> {
        self.state_after(place, from, to)?;
        self.numbers.clear();
        self.after.iter().for_each(|after| after.save(&mut self.numbers));
        self.loss_of_numbers(to, loss)
    }

    /// A loop of no steps: its last state is the first, and there is none along the way.
    pub(in crate::rollout) fn no_steps(&mut self, loss: &mut Loss<'_, St, T>) -> Result<(), Error> {
        if self.loss.when == When::Last {
            return self.loss_of_live(0, loss);
        }
        self.cotangents.state.resize(count(&self.live), T::zero());
        Ok(())
    }

    /// Adds the loss of the live state, and its cotangent.
    pub(in crate::rollout) fn loss_of_live(
        &mut self,
        steps: u64,
        loss: &mut Loss<'_, St, T>,
    ) -> Result<(), Error> {
        self.numbers.clear();
        self.live.save(&mut self.numbers);
        self.loss_of_numbers(steps, loss)
    }

    fn loss_of_numbers(&mut self, steps: u64, loss: &mut Loss<'_, St, T>) -> Result<(), Error> {
        self.release_cotangent();
        let numbers = core::mem::take(&mut self.numbers);
        let recorded = self.record_loss(&numbers, steps, loss);
        self.numbers = numbers;
        recorded?;
        let Engine { loss: LossSoFar { tape: loss_tape, .. }, numbers, cotangents, .. } = self;
        let mut record = loss_tape.recorded().expect("it was recorded just now");
        let value = record.values()[0];
        self.loss.value += value;
        if cotangents.state.is_empty() {
            cotangents.state.resize(numbers.reals.len(), T::zero());
        }
        record.go_on_onto(&[T::one()], &mut cotangents.state)?;
        Ok(())
    }

    /// Records the loss of the state with these numbers, and looks to its sides where that is needed.
    fn record_loss(
        &mut self,
        numbers: &Flat<T>,
        steps: u64,
        loss: &mut Loss<'_, St, T>,
    ) -> Result<(), Error> {
        let LossSoFar { tape: loss_tape, state: loss_state, looking: looking_at_loss, .. } = &mut self.loss;
        sides::verified(looking_at_loss, &numbers.reals, |reals, parts| {
            let mut record = loss_tape.record_once(reals, |vars| {
                loss(steps, refill(loss_state, &mut reading(vars, &numbers.plain, |var: Var<T>| var)))
            })?;
            sides::note(record.values());
            sides::add_parts(looking_at_loss, &mut record, parts);
            Ok(())
        })
    }

    /// The derivative of the loss of a state in the direction of its tangent.
    pub(in crate::rollout) fn derivative_of_loss(
        &mut self,
        state: &St::State<Dual<T>>,
        steps: u64,
        loss: &mut Loss<'_, St, T>,
    ) -> Result<T, Error> {
        let mut duals = Flat::default();
        state.save(&mut Verbatim(&mut duals));
        let values = Flat { reals: values_of(&duals.reals), plain: core::mem::take(&mut duals.plain) };
        self.record_loss(&values, steps, loss)?;
        let mut record = self.loss.tape.recorded().expect("it was recorded just now");
        Ok(along(record.reverse(&[T::one()])?, &duals.reals))
    }
}

fn values_of<T: Inner>(duals: &[Dual<T>]) -> Vec<T> {
    duals.iter().map(|dual| dual.value).collect()
}

/// What cotangents say of tangents.
fn along<T: Inner>(cotangents: &[T], duals: &[Dual<T>]) -> T {
    cotangents.iter().zip(duals).fold(T::zero(), |sum, (&c, dual)| sum + c * dual.tangent)
}
