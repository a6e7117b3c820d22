//! Decisions that exist only at a point, and numbers of an outer driver, in rollouts.
//!
//! Input: a unit of steps, or a loss, as a function of the numbers it starts from. Output: the same, looked
//! at from both sides where a comparison was suspicious (`palinode_core::points`).
//!
//! Invariants: steps are moved to both sides one unit at a time, each from its own state: what a loop does
//! with a small change is not asked for. A rollout without suspicious comparisons does nothing here.

use super::flat::{Flat, Verbatim, for_each_number, reading, words_per_number};
use super::inputs::Inputs;
use super::setting::Loss;
use super::taking::taken_well;
use super::{Differentiate, Inner, Rollout};
use crate::error::Error;
use crate::step::Step;
use core::iter::once_with;
use palinode_core::{Dual, Error as CoreError, Reals, Record, Scalar, Seeded, Tape, Var, points};
use points::{Account, Parts};

/// Records a unit of steps, or a loss, from these numbers. What looking at both sides takes is charged to the
/// account; a side beyond the budget is an error, not a side without a derivative.
#[inline]
pub(super) fn verified<T: Inner>(
    account: &Account,
    numbers: &[T],
    mut run: impl FnMut(&[T], Option<&mut Vec<f64>>) -> Result<(), Error>,
) -> Result<(), Error> {
    // Duals have second derivatives, which are looked at as well: several parts by each input.
    let parts = if T::DEPTH == 0 { Parts::ByInput } else { Parts::Along };
    points::verified_within(account, numbers, (parts, 1 + T::DEPTH as usize), |numbers, parts| {
        let is_looking = parts.is_some();
        run(numbers, parts).inspect_err(|error| {
            if let Error::Core(excess @ CoreError::ByteLimit { .. }) = error
                && is_looking
            {
                account.refuse(excess.clone());
            }
        })
    })
}

/// An error of a step that is looked at.
pub(super) fn in_step(error: Error, step: u64) -> Error {
    match error {
        Error::Core(
            error @ (CoreError::OfPoint { .. }
            | CoreError::OfPointAlone { .. }
            | CoreError::UndefinedAtPoint { .. }),
        ) => Error::OfPoint { step, error },
        error => error,
    }
}

/// In so many groups the outputs of a recording are added up to be compared, each group in its own scale;
/// more than so many outputs in one, because of the memory.
const GROUPS: usize = 8;
const MOST_OUTPUTS: usize = 64;

/// Notes what a unit of steps, or a loss, came to: numbers that are none may be numbers on another way.
#[inline]
pub(super) fn note<T: Inner>(values: &[T]) {
    points::note(|| {
        let mut are_finite = true;
        let mut see = |word: u64| are_finite &= f64::from_bits(word).is_finite();
        values.iter().for_each(|value| value.save_bits(&mut see));
        are_finite
    });
}

/// The same of a state.
pub(super) fn note_state(state: &impl Reals<Dual<f64>>) {
    let mut flat = Flat::default();
    points::note(|| {
        state.save(&mut Verbatim(&mut flat));
        flat.reals.iter().all(|dual| dual.value.is_finite() && dual.tangent.is_finite())
    });
}

/// What is compared of a recording: weighted sums of its outputs, differentiated, with all parts of their
/// numbers.
pub(super) fn add_parts<T: Inner>(
    account: &Account,
    record: &mut Record<'_, T>,
    parts: Option<&mut Vec<f64>>,
) {
    let Some(parts) = parts else { return };
    let (rows, words) = (record.output_count(), words_per_number::<T>());
    let groups = if rows <= MOST_OUTPUTS { rows.min(GROUPS) } else { 1 };
    let numbers = groups * record.input_count() * words;
    // The caller is charged with the parts as soon as they are there.
    let Some(_charge) = account.charge(rows * size_of::<T>() + numbers * size_of::<f64>()) else { return };
    parts.reserve_exact(numbers);
    for weights in points::weights_of_groups(rows, groups) {
        if let Ok(sums) = record.reverse(&weights) {
            sums.iter().for_each(|sum| sum.save_bits(&mut |word| parts.push(f64::from_bits(word))));
        }
    }
}

/// Takes the steps of a forward rollout one by one, each from its own state and on both sides of it
/// where that is needed. What that takes is charged.
pub(super) fn take_steps<St: Step>(
    account: &Account,
    step: &St,
    mut state: St::State<Dual<f64>>,
    params: &St::Params<Dual<f64>>,
    inputs: &mut Inputs<'_, St, Dual<f64>>,
    steps: u64,
) -> Result<St::State<Dual<f64>>, Error> {
    let (mut before, mut fixed, mut after) = (Flat::default(), Flat::default(), Flat::default());
    params.save(&mut Verbatim(&mut fixed));
    for at in 0..steps {
        let input = inputs.at(at)?;
        before.clear();
        state.save(&mut Verbatim(&mut before));
        let of_state = before.reals.len();
        // Numbers before and after, all together, moved, and their parts; and what is made of them.
        let numbers = 6 * (of_state + fixed.reals.len()) * size_of::<Dual<f64>>();
        let words = 2 * (before.plain.len() + fixed.plain.len()) * size_of::<u64>();
        let _charge = account.charged(numbers + words + state.heap_bytes() + params.heap_bytes())?;
        let all: Vec<Dual<f64>> = before.reals.iter().chain(&fixed.reals).copied().collect();
        let taken = points::verified_within(account, &primals(&all), (Parts::Along, 1), |x, parts| {
            let moved = with_tangents_of(&all, x);
            state = Reals::load(&mut reading(&moved[..of_state], &before.plain, |dual| dual));
            let params: St::Params<Dual<f64>> =
                Reals::load(&mut reading(&moved[of_state..], &fixed.plain, |dual| dual));
            step.step(&mut state, &params, input);
            taken_well(step, at)?;
            after.clear();
            state.save(&mut Verbatim(&mut after));
            note(&after.reals);
            points::add_parts(parts, &tangents(&after.reals));
            Ok(())
        });
        taken.map_err(|error| in_step(error, at))?;
    }
    Ok(state)
}

/// The loss of the last state of a forward rollout.
pub(super) fn loss_of<St: Step>(
    state: &St::State<Dual<f64>>,
    seeded: &Seeded<Dual<f64>>,
    loss: impl Fn(&St::State<Dual<f64>>) -> Dual<f64>,
) -> Result<Dual<f64>, Error> {
    let noted = |answer: Dual<f64>| {
        note(&[answer]);
        answer
    };
    let (answer, is_suspicious) = points::suspicious(once_with(|| least(state)), || noted(loss(state)));
    if !is_suspicious && !seeded.is_nested() {
        return Ok(answer);
    }
    let mut flat = Flat::default();
    state.save(&mut Verbatim(&mut flat));
    let of = |duals: &[Dual<f64>]| loss(&Reals::load(&mut reading(duals, &flat.plain, |dual| dual)));
    let x = primals(&flat.reals);
    seeded.check("Rollout::jvp", &x, |x| {
        let at_rest: Vec<Dual<f64>> = x.iter().map(|&x| Dual::lift(x)).collect();
        vec![of(&at_rest).tangent]
    })?;
    points::again(|| {
        points::verified(&x, (Parts::Along, 1), |x, parts| {
            let answer = noted(of(&with_tangents_of(&flat.reals, x)));
            points::add_parts(parts, &[answer.tangent]);
            Ok(answer)
        })
    })
}

impl<St: Step, How: Differentiate<St>> Rollout<'_, St, How> {
    /// Whether the loss of a second derivative uses numbers of a driver around it; any state will do to see
    /// that.
    pub(super) fn check_loss(
        &self,
        initial: &St::State<f64>,
        seeded: &Seeded<Dual<f64>>,
        loss: &mut Loss<'_, St, Dual<f64>>,
    ) -> Result<(), Error> {
        if !seeded.is_nested() {
            return Ok(());
        }
        let mut flat = Flat::default();
        initial.save(&mut Verbatim(&mut flat));
        let mut tape = Tape::new();
        seeded.check("Rollout::hvp", &flat.reals, |x| {
            let at_rest: Vec<Dual<f64>> = x.iter().map(|&x| Dual::lift(x)).collect();
            let recorded = tape.record_once(&at_rest, |vars| {
                loss(0, &Reals::load(&mut reading(vars, &flat.plain, |var: Var<Dual<f64>>| var)))
            });
            let Ok(mut record) = recorded else { return Vec::new() };
            let value = record.values()[0].tangent;
            let gradient = record.reverse(&[Dual::lift(1.0)]).map_or_else(|_| Vec::new(), tangents);
            gradient.into_iter().chain([value]).collect()
        })?;
        Ok(())
    }
}

/// The smallest number that is not zero: that is what makes a point small.
pub(super) fn least<S: Scalar>(value: &impl Reals<S>) -> f64 {
    let mut least = f64::INFINITY;
    for_each_number(value, |number| {
        let size = number.glance().map_or(0.0, f64::abs);
        if size > 0.0 {
            least = least.min(size);
        }
    });
    least
}

/// How small the states are from which suspicious steps of a loop are taken.
pub(super) struct Smallest {
    of_initial: f64,
    has_suspected: bool,
    pub(super) found: f64,
}

impl Smallest {
    pub(super) fn of(of_initial: f64) -> Self {
        Smallest { of_initial, has_suspected: false, found: f64::INFINITY }
    }

    /// Step `at` led to this state.
    #[inline(always)]
    pub(super) fn see<S: Scalar>(&mut self, state: &impl Reals<S>, at: u64) {
        if points::has_suspected() {
            self.see_closely(state, at);
        }
    }

    #[cold]
    fn see_closely<S: Scalar>(&mut self, state: &impl Reals<S>, at: u64) {
        if !self.has_suspected {
            // The state before this step is gone, unless it was the first: it may have been small.
            self.found = if at == 0 { self.of_initial } else { f64::MIN_POSITIVE };
        }
        self.has_suspected = true;
        self.found = self.found.min(least(state));
    }
}

fn primals(duals: &[Dual<f64>]) -> Vec<f64> {
    duals.iter().map(|dual| dual.value).collect()
}

fn tangents(duals: &[Dual<f64>]) -> Vec<f64> {
    duals.iter().map(|dual| dual.tangent).collect()
}

/// Numbers with these primals and the tangents of others.
fn with_tangents_of(duals: &[Dual<f64>], primals: &[f64]) -> Vec<Dual<f64>> {
    primals.iter().zip(duals).map(|(&x, dual)| Dual::new(x, dual.tangent)).collect()
}
