//! A step that goes by its own rule: what is kept of it is the state before it.

use super::Inner;
use super::backend::{Backend, Cotangents, Fixed, Flat, Memory, exchange};
use super::flat::{Shape, reading, refill};
use crate::error::Error;
use crate::step::{Step, StepRule};
use palinode_core::{Passive, Reals};

/// Differentiates a step by the rule that comes with it; see [`StepRule`].
pub struct ByRule<St: Step, T: Inner = f64> {
    before: Vec<Option<St::State<Passive<T>>>>,
    numbers: Flat<T>,
    state: Option<St::State<Passive<T>>>,
    params: Option<St::Params<Passive<T>>>,
    input: Option<St::Input<Passive<T>>>,
    /// Whether `state` is the cotangent, and the list is not: a large one is not copied at every step.
    holds_cotangent: bool,
}

impl<St: Step, T: Inner> Default for ByRule<St, T> {
    fn default() -> Self {
        ByRule {
            before: Vec::new(),
            numbers: Flat::default(),
            state: None,
            params: None,
            input: None,
            holds_cotangent: false,
        }
    }
}

impl<St: Step, T: Inner> Memory for ByRule<St, T> {
    fn heap_bytes(&self) -> usize {
        self.before.iter().flatten().map(Reals::heap_bytes).sum::<usize>()
            + self.before.capacity() * size_of::<Option<St::State<Passive<T>>>>()
            + self.numbers.heap_bytes()
            + self.state.as_ref().map_or(0, Reals::heap_bytes)
            + self.params.as_ref().map_or(0, Reals::heap_bytes)
            + self.input.as_ref().map_or(0, Reals::heap_bytes)
    }

    fn heap_of_state(&self) -> usize {
        self.state.as_ref().map_or(0, Reals::heap_bytes)
    }

    fn reserve(&mut self, places: usize) {
        self.before.reserve_exact(places.saturating_sub(self.before.len()));
    }

    fn forget(&mut self) {
        *self = ByRule::default();
    }

    fn residual_bytes(&self) -> usize {
        size_of::<Option<St::State<Passive<T>>>>()
            + self.before.first().and_then(Option::as_ref).map_or(0, Reals::heap_bytes)
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
        kept: usize,
        _fixed: &Fixed<'_, St, T>,
        before: &mut St::State<Passive<T>>,
        _inputs: &[St::Input<Passive<T>>],
        _steps: u64,
        _expected: Option<&Flat<T>>,
    ) -> Result<bool, Error> {
        exchange(&mut self.before, kept, before, &mut self.numbers);
        Ok(true)
    }

    fn after(
        &mut self,
        kept: usize,
        fixed: &Fixed<'_, St, T>,
        inputs: &[St::Input<Passive<T>>],
        _steps: u64,
        state: &mut St::State<Passive<T>>,
    ) -> Result<(), Error> {
        self.numbers.clear();
        self.before[kept].iter().for_each(|before| before.save(&mut self.numbers));
        state.reload(&mut self.numbers.read(Passive::lift));
        fixed.step.step(state, fixed.params, &inputs[0]);
        Ok(())
    }

    fn reverse(
        &mut self,
        kept: usize,
        fixed: &Fixed<'_, St, T>,
        inputs: &[St::Input<Passive<T>>],
        _steps: u64,
        _expected: Option<&Flat<T>>,
        cotangents: &mut Cotangents<T>,
    ) -> Result<(), Error> {
        let input = &inputs[0];
        let before = self.before[kept].as_ref().expect("a step is recorded before it is reversed");
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
        Shape::of(fixed.params, words);
        let of_params = refill(&mut self.params, &mut reading(&cotangents.params, words, Passive::lift));
        Shape::of(input, words);
        let of_input = refill(&mut self.input, &mut reading(&cotangents.input, words, Passive::lift));
        fixed.step.reverse(before, fixed.params, input, of_state, of_params, of_input);
        numbers_of(of_params, &mut cotangents.params);
        numbers_of(of_input, &mut cotangents.input);
        Ok(())
    }

    fn state_before(&self, kept: usize) -> Option<&St::State<Passive<T>>> {
        self.before[kept].as_ref()
    }

    fn release_cotangent(&mut self, state: &mut Vec<T>) {
        if self.holds_cotangent {
            self.state.iter().for_each(|of_state| numbers_of(of_state, state));
            self.holds_cotangent = false;
        }
    }
}

/// The list becomes the numbers of a value.
fn numbers_of<T: Inner>(value: &impl Reals<Passive<T>>, list: &mut Vec<T>) {
    struct Numbers<'a, T>(&'a mut Vec<T>);
    impl<T: Inner> palinode_core::Sink<Passive<T>> for Numbers<'_, T> {
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
