//! Steps differentiated by recording each on a dynamic tape of its own; narrow ones by forward numbers
//! (`columns.rs`).

use super::Inner;
use super::backend::{Backend, Cotangents, Memory, Recording, Unit};
use super::columns::{Columns, Narrow, with_lanes};
use super::flat::{Flat, Recorded, Shape, Verbatim, reading, refill, reloaded, same_bits, same_words};
use super::sides;
use super::taking::taken_well;
use crate::error::Error;
use crate::step::Step;
use palinode_core::points::Account;
use palinode_core::{Boundary, Budget, Looked, Passive, Reals, Tape, Var, decision};

fn bytes_of_lists(lists: &Vec<Vec<u64>>) -> usize {
    lists.iter().map(|words| words.capacity() * size_of::<u64>()).sum::<usize>()
        + lists.capacity() * size_of::<Vec<u64>>()
}

/// Differentiates a step by recording it on a dynamic tape of its own.
pub struct ByTape<St: Step, T: Inner = f64> {
    tapes: Vec<Tape<T>>,
    limit: Budget,
    numbers: Flat<T>,
    state: Option<St::State<Var<T>>>,
    params: Option<St::Params<Var<T>>>,
    input: Option<St::Input<Var<T>>>,
    /// The words of the state after the step recorded last.
    words_after: Vec<Vec<u64>>,
    inputs: Vec<T>,
    /// What goes from one step of a recording to the next.
    crossing: Flat<Var<T>>,
    boundary: Boundary<T>,
    /// For looking at both sides of a decision.
    looking: Account,
    /// Instead of all that, if the step is narrow.
    columns: Option<Columns<St, T>>,
}

impl<St: Step, T: Inner> Default for ByTape<St, T> {
    fn default() -> Self {
        ByTape {
            tapes: Vec::new(),
            limit: Budget::UNLIMITED,
            numbers: Flat::default(),
            state: None,
            params: None,
            input: None,
            words_after: Vec::new(),
            inputs: Vec::new(),
            crossing: Flat::default(),
            boundary: Boundary::new(),
            looking: Account::default(),
            columns: None,
        }
    }
}

impl<St: Step, T: Inner> Memory for ByTape<St, T> {
    fn heap_bytes(&self) -> usize {
        self.tapes.iter().map(Tape::heap_bytes).sum::<usize>()
            + self.tapes.capacity() * size_of::<Tape<T>>()
            + self.numbers.heap_bytes()
            + self.state.as_ref().map_or(0, Reals::heap_bytes)
            + self.params.as_ref().map_or(0, Reals::heap_bytes)
            + self.input.as_ref().map_or(0, Reals::heap_bytes)
            + bytes_of_lists(&self.words_after)
            + self.inputs.capacity() * size_of::<T>()
            + self.crossing.heap_bytes()
            + self.boundary.heap_bytes()
            // It may be looked at any time again.
            + self.looking.most()
            + self.columns.as_ref().map_or(0, |columns| with_lanes!(columns, lanes => lanes.heap_bytes()))
    }

    fn heap_of_state(&self) -> usize {
        match &self.columns {
            Some(columns) => with_lanes!(columns, lanes => lanes.heap_of_state()),
            None => self.state.as_ref().map_or(0, Reals::heap_bytes),
        }
    }

    fn limit(&mut self, budget: Budget) {
        self.limit = budget;
        self.looking.set_limit(budget.bytes());
        for tape in &mut self.tapes {
            tape.set_budget(budget);
        }
    }

    fn recording(&self) -> Recording {
        // Partials by forward numbers have one size.
        let tape = if self.columns.is_some() { None } else { self.tapes.first() };
        Recording { tape: tape.map_or(0, Tape::heap_bytes), store: 0 }
    }

    fn looked_bytes(&self) -> usize {
        self.looking.most()
    }

    fn limit_growth(&mut self, spare: usize) {
        self.limit(self.recording().planned().tape.saturating_add(spare / 2).into());
        self.looking.set_limit(self.looking.most().saturating_add(spare / 2));
    }

    fn reserve(&mut self, places: usize) {
        if let Some(columns) = &mut self.columns {
            return with_lanes!(columns, lanes => lanes.reserve(places));
        }
        self.tapes.reserve_exact(places.saturating_sub(self.tapes.len()));
        self.words_after.reserve_exact(places.saturating_sub(self.words_after.len()));
    }

    fn forget(&mut self) {
        let mut columns = self.columns.take();
        if let Some(columns) = &mut columns {
            with_lanes!(columns, lanes => lanes.forget());
        }
        let mut looking = core::mem::take(&mut self.looking);
        looking.forget();
        *self = ByTape { limit: self.limit, looking, columns, ..ByTape::default() };
    }

    fn residual_bytes(&self) -> usize {
        if let Some(columns) = &self.columns {
            return with_lanes!(columns, lanes => lanes.residual_bytes());
        }
        size_of::<Tape<T>>()
            + size_of::<Vec<u64>>()
            + self.tapes.first().map_or(0, Tape::heap_bytes)
            + self.words_after.first().map_or(0, |words| words.capacity() * size_of::<u64>())
    }

    fn needed_bytes(&mut self) -> usize {
        if self.columns.is_some() {
            return self.residual_bytes();
        }
        self.tapes.first_mut().and_then(Tape::recorded).map_or(0, |record| record.size().bytes)
    }
}

impl<St: Step, T: Inner> Backend<St, T> for ByTape<St, T> {
    const RECORDS: bool = true;
    const LOOKS_BACK: bool = false;

    #[inline]
    fn record(
        &mut self,
        unit: &Unit<'_, St, T>,
        before: &mut St::State<Passive<T>>,
        expected: Option<&Flat<T>>,
    ) -> Result<bool, Error> {
        if let Some(columns) = &mut self.columns {
            return with_lanes!(columns, lanes => lanes.record(unit, before, expected));
        }
        let &Unit { kept, step, params: fixed, inputs, steps } = unit;
        while self.tapes.len() <= kept {
            self.tapes.push(Tape::with_budget(self.limit));
            // As large as the first, so that it is not moved when it grows.
            self.words_after.push(Vec::with_capacity(self.words_after.first().map_or(0, Vec::capacity)));
        }
        let ByTape { tapes, numbers, state, params, input, words_after, crossing, boundary, looking, .. } =
            self;
        numbers.clear();
        before.save(numbers);
        fixed.save(numbers);
        for input in inputs {
            input.save(numbers);
        }
        let words = &mut words_after[kept];
        let mut taken = Ok(());
        // A decision of this point only is looked for in this unit, on both sides of its state.
        let verified = sides::verified(looking, &numbers.reals, |reals, parts| {
            let mut record = tapes[kept].record_once(reals, |vars| {
                let mut source = reading(vars, &numbers.plain, |var: Var<T>| var);
                let state = refill(state, &mut source);
                let params = refill(params, &mut source);
                let mut input = refill(input, &mut source);
                boundary.begin(vars);
                for done in 1..=steps {
                    step.step(state, params, input);
                    taken = taken_well(step, done - 1);
                    if taken.is_err() {
                        break;
                    }
                    if done < steps {
                        crossing.clear();
                        state.save(&mut Verbatim(crossing));
                        boundary.cross(&mut crossing.reals);
                        state.reload(&mut crossing.read(|var| var));
                        if inputs.len() > 1 {
                            input = reloaded(input, &mut source);
                        }
                    }
                }
                Shape::of(&*state, words);
                Recorded(&*state)
            })?;
            // A side on which a step fails says nothing.
            if parts.is_some() {
                core::mem::replace(&mut taken, Ok(()))?;
            }
            sides::note(record.values());
            sides::add_parts(looking, &mut record, parts);
            Ok(())
        });
        verified.map_err(|error| sides::in_step(error, 0))?;
        taken?;
        let record = tapes[kept].recorded().expect("it was recorded just now");
        Ok(expected.is_none_or(|expected| {
            same_words(&expected.plain, words) && same_bits(record.values(), &expected.reals)
        }))
    }

    fn after(&mut self, unit: &Unit<'_, St, T>, state: &mut St::State<Passive<T>>) -> Result<(), Error> {
        let kept = unit.kept;
        if let Some(columns) = &self.columns {
            with_lanes!(columns, lanes => lanes.after(kept, state));
            return Ok(());
        }
        let record =
            self.tapes[kept].recorded().expect("a step is recorded before the state after it is asked for");
        state.reload(&mut reading(record.values(), &self.words_after[kept], Passive::lift));
        Ok(())
    }

    #[inline]
    fn reverse(
        &mut self,
        unit: &Unit<'_, St, T>,
        _expected: Option<&Flat<T>>,
        cotangents: &mut Cotangents<T>,
    ) -> Result<(), Error> {
        if let Some(columns) = &mut self.columns {
            with_lanes!(columns, lanes => lanes.reverse(unit.kept, unit.steps, cotangents));
            return Ok(());
        }
        let mut record = self.tapes[unit.kept].recorded().expect("a step is recorded before it is reversed");
        let Cotangents { state, params, input } = cotangents;
        let before = record.input_count() - params.len() - input.len();
        self.inputs.clear();
        self.inputs.resize(before, T::zero());
        self.inputs.extend_from_slice(params);
        self.inputs.extend_from_slice(input);
        record.go_on_onto(state, &mut self.inputs)?;
        let (of_state, rest) = self.inputs.split_at(before);
        let (of_params, of_input) = rest.split_at(params.len());
        state.clear();
        state.extend_from_slice(of_state);
        params.copy_from_slice(of_params);
        input.copy_from_slice(of_input);
        Ok(())
    }

    fn narrow(
        &mut self,
        unit: &Unit<'_, St, T>,
        first: &mut St::State<Passive<T>>,
        spare: usize,
    ) -> Result<Option<(bool, usize)>, Error> {
        let mut words = Vec::new();
        let state = Shape::of(&*first, &mut words);
        let (recorded, decisions) = decision::watch(|| self.record(unit, first, None));
        recorded?;
        let beside = words.capacity() * size_of::<u64>();
        if decisions.count() + decisions.looks > 0 || words != self.words_after[0] {
            return Ok(Some((false, beside)));
        }
        let params = Shape::of(unit.params, &mut Vec::new());
        let record = self.tapes[0].recorded().expect("a step was recorded");
        if record.output_count() != state {
            return Ok(Some((false, beside)));
        }
        let looked = record.look_for_groups(spare.saturating_sub(beside));
        let Some(Looked { groups, bytes }) = looked else { return Ok(None) };
        let bytes = beside + bytes;
        let Some(groups) = groups else { return Ok(Some((false, bytes))) };
        let columns = Columns::new(Narrow { groups, state, params, words });
        *self = ByTape { limit: self.limit, columns: Some(columns), ..ByTape::default() };
        Ok(Some((true, bytes)))
    }

    fn directions(&self) -> Option<usize> {
        self.columns.as_ref().map(|columns| with_lanes!(columns, lanes => lanes.directions()))
    }
}
