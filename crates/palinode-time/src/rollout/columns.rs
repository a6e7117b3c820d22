//! Narrow steps: the partials of a step by forward numbers, a direction for each group of inputs, instead of
//! a recording.
//!
//! Input: the groups found on one recording of the step. Output: for each number after the step its partials,
//! [`N`](Lanes) of them; then cotangents before the step from those after it.
//!
//! A step whose numbers each depend on few numbers before (three unknowns of an equation, the neighbours of a
//! stencil) costs less this way than through a tape: its operations write nothing, and the sweep back is a
//! sum over known places.
//!
//! Why the groups of the first step are those of every step: the recording took no decision by a number that
//! is differentiated by, looked at none ([`Decisions::looks`](palinode_core::decision::Decisions::looks)),
//! and left the words of the state as they were. So the step is one and the same formula each time.
//! [`ByTape`](super::backend::ByTape) makes sure of that, for the whole loop or not at all; what it chooses
//! does not depend on schedule or budget, and so neither do the bits.

use super::Inner;
use super::backend::{Cotangents, Unit};
use super::flat::{Flat, reading, refill, reloaded, same_bits, same_words};
use super::taking::taken_well;
use crate::error::Error;
use crate::step::Step;
use palinode_core::{DualN, InputGroups, Passive, Reals, Sink};

/// What is known of a narrow step.
pub(super) struct Narrow {
    pub(super) groups: InputGroups,
    /// How many numbers the state has.
    pub(super) state: usize,
    /// How many the parameters have.
    pub(super) params: usize,
    /// The words of the state, which no step changes.
    pub(super) words: Vec<u64>,
}

/// Differentiates a narrow step by as many directions as it needs.
pub(super) enum Columns<St: Step, T: Inner> {
    Four(Lanes<St, T, 4>),
    Eight(Lanes<St, T, 8>),
}

/// Does the same whatever the number of directions.
macro_rules! with_lanes {
    ($columns:expr, $lanes:ident => $body:expr) => {
        match $columns {
            Columns::Four($lanes) => $body,
            Columns::Eight($lanes) => $body,
        }
    };
}
pub(super) use with_lanes;

impl<St: Step, T: Inner> Columns<St, T> {
    pub(super) fn new(narrow: Narrow) -> Self {
        if narrow.groups.count() <= 4 {
            Columns::Four(Lanes::new(narrow))
        } else {
            Columns::Eight(Lanes::new(narrow))
        }
    }
}

/// Differentiates a narrow step by `N` directions.
pub(super) struct Lanes<St: Step, T: Inner, const N: usize> {
    narrow: Narrow,
    /// The directions: looked up, because one store of all lanes can be read back at once.
    units: [[T; N]; N],
    state: Option<St::State<DualN<T, N>>>,
    params: Option<St::Params<DualN<T, N>>>,
    input: Option<St::Input<DualN<T, N>>>,
    kept: Vec<Kept<T, N>>,
    /// The numbers of state, parameters and inputs.
    numbers: Flat<T>,
    /// Cotangents before a step while they are summed.
    sums: Vec<T>,
}

/// What is kept of recorded steps.
#[derive(Default)]
struct Kept<T, const N: usize> {
    /// The partials of each number after each step.
    tangents: Vec<[T; N]>,
    /// The numbers after the last.
    after: Vec<T>,
}

impl<T: Inner, const N: usize> Kept<T, N> {
    /// Reserves memory for the partials of so many numbers, and so many numbers after.
    fn reserve(&mut self, rows: usize, after: usize) {
        if self.tangents.len() < rows {
            self.tangents.reserve_exact(rows - self.tangents.len());
            self.tangents.resize(rows, [T::zero(); N]);
        }
        if self.after.len() != after {
            self.after.clear();
            self.after.reserve_exact(after);
            self.after.resize(after, T::zero());
        }
    }

    fn heap_bytes(&self) -> usize {
        self.tangents.capacity() * size_of::<[T; N]>() + self.after.capacity() * size_of::<T>()
    }
}

/// Takes the numbers and their tangents apart.
struct Apart<'a, T, const N: usize> {
    values: &'a mut [T],
    rows: &'a mut [[T; N]],
    /// How many there were.
    seen: usize,
    /// The words that are still to come, and whether others came.
    words: &'a [u64],
    other_words: bool,
}

impl<T: Inner, const N: usize> Sink<DualN<T, N>> for Apart<'_, T, N> {
    #[inline(always)]
    fn real(&mut self, number: DualN<T, N>) {
        // Were there more than before, the shape would be found to have changed.
        if let (Some(value), Some(row)) = (self.values.get_mut(self.seen), self.rows.get_mut(self.seen)) {
            (*value, *row) = (number.value, number.tangents.0);
        }
        self.seen += 1;
    }
    #[inline(always)]
    fn reals(&mut self, numbers: &[DualN<T, N>]) {
        let from = self.seen.min(self.values.len());
        let places = self.values[from..].iter_mut().zip(&mut self.rows[from..]);
        places.zip(numbers).for_each(|((value, row), number)| {
            (*value, *row) = (number.value, number.tangents.0);
        });
        self.seen += numbers.len();
    }
    #[inline(always)]
    fn word(&mut self, word: u64) {
        match self.words.split_first() {
            Some((&expected, rest)) if expected == word => self.words = rest,
            Some(_) | None => self.other_words = true,
        }
    }
}

/// Makes forward numbers out of plain ones, each with the direction of its group.
#[inline(always)]
fn seeded<'g, T: Inner, const N: usize>(
    units: &'g [[T; N]; N],
    groups: &'g [u8],
) -> impl FnMut(T) -> DualN<T, N> + 'g {
    let mut groups = groups.iter();
    // As many numbers are asked for as there are groups; were there more, the shape would be found to have
    // changed.
    move |value| DualN::new(value, units[groups.next().copied().map_or(0, usize::from) % N])
}

impl<St: Step, T: Inner, const N: usize> Lanes<St, T, N> {
    fn new(narrow: Narrow) -> Self {
        Lanes {
            narrow,
            units: units(),
            state: None,
            params: None,
            input: None,
            kept: Vec::new(),
            numbers: Flat::default(),
            sums: Vec::new(),
        }
    }

    /// See [`Backend::record`](super::backend::Backend::record).
    #[inline]
    pub(super) fn record(
        &mut self,
        unit: &Unit<'_, St, T>,
        before: &St::State<Passive<T>>,
        expected: Option<&Flat<T>>,
    ) -> Result<bool, Error> {
        let &Unit { kept, step: body, params: fixed, inputs, steps } = unit;
        while self.kept.len() <= kept {
            self.kept.push(Kept::default());
        }
        let Lanes { narrow, units, state: spare, params, input, numbers, .. } = self;
        let kept = &mut self.kept[kept];
        let of_state = narrow.state;
        let (of_params, of_inputs) = narrow.groups.group()[of_state..].split_at(narrow.params);
        numbers.clear();
        before.save(numbers);
        if numbers.reals.len() != of_state || !same_words(&numbers.plain, &narrow.words) {
            // No formula leads here: the step depends on something that nobody counts.
            return Ok(false);
        }
        let words_before = numbers.plain.len();
        fixed.save(numbers);
        let words_of_params = numbers.plain.len();
        for input in inputs {
            input.save(numbers);
        }
        let (state_numbers, others) = numbers.reals.split_at(of_state);
        let (param_numbers, mut input_numbers) = others.split_at(narrow.params);
        let param_words = &numbers.plain[words_before..words_of_params];
        // The words of all inputs are those of the first.
        let input_words = &numbers.plain[words_of_params..];
        kept.reserve(of_state * steps as usize, of_state);
        let Kept { tangents, after } = kept;
        let mut rows = tangents.chunks_exact_mut(of_state.max(1));
        let mut taken = 0;
        let mut take_step = |state: &mut _, params: &_, input: &_, values: &mut [T]| {
            body.step(state, params, input);
            taken_well(body, taken)?;
            taken += 1;
            let rows = rows.next().unwrap_or_default();
            let mut apart = Apart { values, rows, seen: 0, words: &narrow.words, other_words: false };
            state.save(&mut apart);
            Ok::<_, Error>(apart.seen == of_state && apart.words.is_empty() && !apart.other_words)
        };
        let groups = narrow.groups.group();
        let params = refill(params, &mut reading(param_numbers, param_words, seeded(units, of_params)));
        let mut input = refill(input, &mut reading(input_numbers, input_words, seeded(units, of_inputs)));
        // A variable of its own, not a place behind a reference: the compiler keeps a small state in
        // registers.
        let mut source = reading(state_numbers, &narrow.words, seeded(units, groups));
        let mut state = match spare.take() {
            Some(mut state) => {
                state.reload(&mut source);
                state
            }
            None => St::State::load(&mut source),
        };
        for step in 1..=steps {
            if !take_step(&mut state, params, input, after)? {
                return Ok(false);
            }
            if step < steps {
                state.reload(&mut reading(after, &narrow.words, seeded(units, groups)));
                if inputs.len() > 1 {
                    input_numbers = &input_numbers[of_inputs.len()..];
                    let mut source = reading(input_numbers, input_words, seeded(units, of_inputs));
                    input = reloaded(input, &mut source);
                }
            }
        }
        *spare = Some(state);
        Ok(expected.is_none_or(|expected| {
            same_words(&expected.plain, &narrow.words) && same_bits(after, &expected.reals)
        }))
    }

    /// See [`Backend::after`](super::backend::Backend::after).
    pub(super) fn after(&self, kept: usize, state: &mut St::State<Passive<T>>) {
        state.reload(&mut reading(&self.kept[kept].after, &self.narrow.words, Passive::lift));
    }

    /// See [`Backend::reverse`](super::backend::Backend::reverse).
    #[inline]
    pub(super) fn reverse(&mut self, kept: usize, steps: u64, cotangents: &mut Cotangents<T>) {
        let tangents = &self.kept[kept].tangents[..self.narrow.state * steps as usize];
        if self.narrow.groups.group().len() <= N {
            reverse_few(&self.narrow, tangents, cotangents);
        } else {
            reverse_many(&self.narrow, tangents, cotangents, &mut self.sums);
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.narrow.groups.heap_bytes()
            + self.narrow.words.capacity() * size_of::<u64>()
            + self.state.as_ref().map_or(0, Reals::heap_bytes)
            + self.params.as_ref().map_or(0, Reals::heap_bytes)
            + self.input.as_ref().map_or(0, Reals::heap_bytes)
            + bytes_of(&self.kept)
            + self.numbers.heap_bytes()
            + self.sums.capacity() * size_of::<T>()
    }

    pub(super) fn heap_of_state(&self) -> usize {
        self.state.as_ref().map_or(0, Reals::heap_bytes)
    }

    pub(super) fn directions(&self) -> usize {
        self.narrow.groups.count()
    }

    /// Gives all memory back but what is known of the step.
    pub(super) fn forget(&mut self) {
        self.kept = Vec::new();
        self.numbers = Flat::default();
        self.sums = Vec::new();
        (self.state, self.params, self.input) = (None, None, None);
    }

    pub(super) fn reserve(&mut self, places: usize) {
        self.kept.reserve_exact(places.saturating_sub(self.kept.len()));
    }

    pub(super) fn residual_bytes(&self) -> usize {
        size_of::<Kept<T, N>>() + self.kept.first().map_or(0, Kept::heap_bytes)
    }
}

/// A direction for each group.
fn units<T: Inner, const N: usize>() -> [[T; N]; N] {
    core::array::from_fn(|i| core::array::from_fn(|j| if i == j { T::one() } else { T::zero() }))
}

fn bytes_of<T: Inner, const N: usize>(kept: &Vec<Kept<T, N>>) -> usize {
    kept.iter().map(Kept::heap_bytes).sum::<usize>() + kept.capacity() * size_of::<Kept<T, N>>()
}

/// Where the cotangents of one step's input are: one input for all steps has one cotangent, too.
fn part_of_step<T>(inputs: &mut [T], each: usize, step: usize) -> &mut [T] {
    let at = if inputs.len() > each { step * each } else { 0 };
    &mut inputs[at..at + each]
}

/// Carries cotangents back over steps that have no more inputs than there are directions: all sums at once,
/// in lanes.
#[inline(always)]
fn reverse_few<T: Inner, const N: usize>(
    narrow: &Narrow,
    tangents: &[[T; N]],
    Cotangents { state, params, input }: &mut Cotangents<T>,
) {
    let (n, p) = (narrow.state, narrow.params);
    let of_input = narrow.groups.group().len() - n - p;
    let mut lanes = [T::zero(); N];
    lanes[n..n + p].copy_from_slice(params);
    let mut of_state = [T::zero(); N];
    of_state[..n].copy_from_slice(state);
    for (step, tangents) in tangents.chunks_exact(n.max(1)).enumerate().rev() {
        if of_input > 0 {
            lanes[n + p..n + p + of_input].copy_from_slice(part_of_step(input, of_input, step));
        }
        for (&c, &tangents) in of_state.iter().zip(tangents).rev() {
            lanes = T::strong_combine(c, tangents, T::one(), lanes);
        }
        if of_input > 0 {
            part_of_step(input, of_input, step).copy_from_slice(&lanes[n + p..n + p + of_input]);
        }
        of_state = lanes;
        lanes = core::array::from_fn(|lane| if lane < n { T::zero() } else { lanes[lane] });
    }
    state.copy_from_slice(&of_state[..n]);
    params.copy_from_slice(&lanes[n..n + p]);
}

/// Carries cotangents back over steps of many numbers: each sum gathers what belongs to it.
#[inline(always)]
fn reverse_many<T: Inner, const N: usize>(
    narrow: &Narrow,
    tangents: &[[T; N]],
    Cotangents { state, params, input }: &mut Cotangents<T>,
    sums: &mut Vec<T>,
) {
    let groups = &narrow.groups;
    let of_input = groups.group().len() - narrow.state - narrow.params;
    for (step, tangents) in tangents.chunks_exact(narrow.state.max(1)).enumerate().rev() {
        sums.clear();
        sums.resize(narrow.state, T::zero());
        let input = part_of_step(input, of_input, step);
        let targets = sums.iter_mut().chain(params.iter_mut()).chain(input);
        for (j, target) in targets.enumerate() {
            let group = usize::from(groups.group()[j]) % N;
            *target = groups.outputs_of(j).iter().rev().fold(*target, |sum, &output| {
                let output = output as usize;
                let [sum] = T::strong_add([sum], tangents[output][group], [state[output]]);
                sum
            });
        }
        core::mem::swap(state, sums);
    }
}
