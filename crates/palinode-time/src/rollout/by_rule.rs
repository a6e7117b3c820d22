//! A step that goes by its own rule: what is kept of it is the state before it.

use super::Inner;
use super::backend::{Backend, Cotangents, Memory, Unit};
use super::before::Before;
use super::flat::{Flat, Shape, for_each_number, reading, refill, words_per_number};
use super::sides;
use super::taking::taken_well;
use crate::error::Error;
use crate::step::{Step, StepRule};
use core::iter::once_with;
use palinode_core::points::{self, Account, Suspicion};
use palinode_core::{Budget, Passive, Reals, Sink, Snapshot};

/// Differentiates a step by the rule that comes with it; see [`StepRule`].
pub struct ByRule<St: Step, T: Inner = f64> {
    before: Before<St::State<Passive<T>>>,
    numbers: Flat<T>,
    state: Option<St::State<Passive<T>>>,
    params: Option<St::Params<Passive<T>>>,
    input: Option<St::Input<Passive<T>>>,
    /// Whether `state` is the cotangent, and the list is not: a large one is not copied at every step.
    holds_cotangent: bool,
    /// What steps decided by: each one to which that matters is looked at from both sides before it is
    /// reversed.
    looks: Suspicion,
    looking: Account,
}

impl<St: Step, T: Inner> Default for ByRule<St, T> {
    fn default() -> Self {
        ByRule {
            before: Before::default(),
            numbers: Flat::default(),
            state: None,
            params: None,
            input: None,
            holds_cotangent: false,
            looks: Suspicion::None,
            looking: Account::default(),
        }
    }
}

impl<St: Step, T: Inner> Memory for ByRule<St, T> {
    fn heap_bytes(&self) -> usize {
        self.before.heap_bytes()
            + self.numbers.heap_bytes()
            + self.state.as_ref().map_or(0, Reals::heap_bytes)
            + self.params.as_ref().map_or(0, Reals::heap_bytes)
            + self.input.as_ref().map_or(0, Reals::heap_bytes)
            // It may be looked at any time again.
            + self.looking.most()
    }

    fn limit(&mut self, budget: Budget) {
        self.looking.set_limit(budget.bytes());
    }

    fn looked_bytes(&self) -> usize {
        self.looking.most()
    }

    fn limit_growth(&mut self, spare: usize) {
        self.looking.set_limit(self.looking.most().saturating_add(spare));
    }

    fn heap_of_state(&self) -> usize {
        self.state.as_ref().map_or(0, Reals::heap_bytes)
    }

    fn reserve(&mut self, places: usize) {
        self.before.reserve(places);
    }

    fn forget(&mut self) {
        let mut looking = core::mem::take(&mut self.looking);
        looking.forget();
        *self = ByRule { looks: self.looks, looking, ..ByRule::default() };
    }

    fn residual_bytes(&self) -> usize {
        self.before.bytes_of_one()
    }

    fn needed_bytes(&mut self) -> usize {
        self.residual_bytes()
    }
}

impl<St: StepRule, T: Inner> Backend<St, T> for ByRule<St, T> {
    const RECORDS: bool = false;
    const LOOKS_BACK: bool = false;

    fn record(
        &mut self,
        unit: &Unit<'_, St, T>,
        before: &mut St::State<Passive<T>>,
        _expected: Option<&Flat<T>>,
    ) -> Result<bool, Error> {
        self.before.keep(unit.kept, before, &mut self.numbers);
        Ok(true)
    }

    fn after(&mut self, unit: &Unit<'_, St, T>, state: &mut St::State<Passive<T>>) -> Result<(), Error> {
        self.before.give_back(unit.kept, state, &mut self.numbers);
        unit.step.step(state, unit.params, &unit.inputs[0]);
        Ok(())
    }

    fn reverse(
        &mut self,
        unit: &Unit<'_, St, T>,
        _expected: Option<&Flat<T>>,
        cotangents: &mut Cotangents<T>,
    ) -> Result<(), Error> {
        let &Unit { kept, step, params, inputs, .. } = unit;
        let input = &inputs[0];
        let before = self.before.get(kept).expect("a step is recorded before it is reversed");
        // The smallest numbers of what the step starts from.
        let of_params = || once_with(|| sides::least(params)).chain(once_with(|| sides::least(input)));
        let point = || once_with(|| sides::least(before)).chain(of_params());
        if points::is_suspicious(self.looks, point()) {
            look(&self.looking, unit, before).map_err(|error| sides::in_step(error, 0))?;
        }
        // Cotangents take the shape of what they are of, which the words tell.
        let words = &mut self.numbers.plain;
        let numbers_after = match &self.state {
            Some(of_state) if self.holds_cotangent => Shape::of(of_state, words),
            _ => cotangents.state.len(),
        };
        let numbers_before = Shape::of(before, words);
        if numbers_before != numbers_after {
            return Err(Error::ShapeChanged { before: numbers_before, after: numbers_after });
        }
        if !self.holds_cotangent {
            refill(&mut self.state, &mut reading(&cotangents.state, words, Passive::lift));
            self.holds_cotangent = true;
        }
        let Some(of_state) = &mut self.state else { unreachable!("filled above") };
        Shape::of(params, words);
        let of_params = refill(&mut self.params, &mut reading(&cotangents.params, words, Passive::lift));
        Shape::of(input, words);
        let of_input = refill(&mut self.input, &mut reading(&cotangents.input, words, Passive::lift));
        let reverse = || step.reverse(before, params, input, of_state, of_params, of_input);
        let ((), suspicion) = points::suspicion_of(reverse);
        if suspicion > self.looks && points::is_suspicious(suspicion, point()) {
            look(&self.looking, unit, before).map_err(|error| sides::in_step(error, 0))?;
        }
        numbers_of(of_params, &mut cotangents.params);
        numbers_of(of_input, &mut cotangents.input);
        Ok(())
    }

    fn look_from_now(&mut self, suspicion: Suspicion) {
        self.looks = self.looks.max(suspicion);
    }

    fn state_before(&self, kept: usize) -> Option<&St::State<Passive<T>>> {
        self.before.get(kept)
    }

    fn release_cotangent(&mut self, state: &mut Vec<T>) {
        if self.holds_cotangent {
            self.state.iter().for_each(|of_state| numbers_of(of_state, state));
            self.holds_cotangent = false;
        }
    }
}

/// Looks at a step and its rule from both sides, where one of them decides by a tie. A cotangent that tells
/// the entries apart is carried back over the step; that what a step decides is no decision of its rule, or
/// the other way round, is for the derivatives to show.
#[cold]
fn look<St: StepRule, T: Inner>(
    account: &Account,
    &Unit { step, params: fixed, inputs, .. }: &Unit<'_, St, T>,
    before: &St::State<Passive<T>>,
) -> Result<(), Error> {
    let input = &inputs[0];
    let lengths = [Snapshot::lengths(before), Snapshot::lengths(fixed), Snapshot::lengths(input)];
    let (reals, plain) = lengths.iter().fold((0, 0), |sum, lengths| (sum.0 + lengths.0, sum.1 + lengths.1));
    let heap = before.heap_bytes() + fixed.heap_bytes() + input.heap_bytes();
    // Words of numbers, and of a cotangent for each; and all of that once more, in the shapes that the step
    // takes.
    let _charge = account.charged((2 * reals + plain) * size_of::<u64>() + 2 * heap)?;
    let mut numbers = Flat::with_capacity(reals * size_of::<u64>() / size_of::<T>(), plain);
    before.save(&mut numbers);
    let of_state = numbers.reals.len();
    fixed.save(&mut numbers);
    input.save(&mut numbers);
    let weight = |i| if i < of_state { T::from_f64(points::weight(i)) } else { T::zero() };
    let weights: Vec<T> = (0..numbers.reals.len()).map(weight).collect();
    points::again(|| {
        sides::verified(account, &numbers.reals, |reals, parts| {
            let at = &mut reading(reals, &numbers.plain, Passive::lift);
            let (mut state, params, input) = (St::State::load(at), St::Params::load(at), St::Input::load(at));
            step.step(&mut state, &params, &input);
            taken_well(step, 0)?;
            state.reload(&mut reading(reals, &numbers.plain, Passive::lift));
            let of = &mut reading(&weights, &numbers.plain, Passive::lift);
            let (mut of_state, mut of_params, mut of_input) =
                (St::State::load(of), St::Params::load(of), St::Input::load(of));
            step.reverse(&state, &params, &input, &mut of_state, &mut of_params, &mut of_input);
            taken_well(step, 0)?;
            if let Some(parts) = parts {
                // The caller is charged with them as soon as they are there.
                let words = numbers.reals.len() * words_per_number::<T>();
                let _charge = account.charged(words * size_of::<f64>())?;
                parts.reserve_exact(words);
                let mut see =
                    |c: Passive<T>| c.primal().save_bits(&mut |word| parts.push(f64::from_bits(word)));
                for_each_number(&of_state, &mut see);
                for_each_number(&of_params, &mut see);
                for_each_number(&of_input, &mut see);
            }
            Ok(())
        })
    })
}

/// The list becomes the numbers of a value.
fn numbers_of<T: Inner>(value: &impl Reals<Passive<T>>, list: &mut Vec<T>) {
    struct Numbers<'a, T>(&'a mut Vec<T>);
    impl<T: Inner> Sink<Passive<T>> for Numbers<'_, T> {
        #[inline(always)]
        fn real(&mut self, number: Passive<T>) {
            self.0.push(number.primal());
        }
        #[inline]
        fn reals(&mut self, numbers: &[Passive<T>]) {
            self.0.extend(numbers.iter().map(|number| number.primal()));
        }
        fn word(&mut self, _word: u64) {}
    }
    list.clear();
    value.save(&mut Numbers(list));
}
