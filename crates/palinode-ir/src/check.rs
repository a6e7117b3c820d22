//! A gradient of a program against differences, argument by argument.
//!
//! Input: a program, its arguments, a gradient. Output: for each argument the worst [`Comparison`] of its
//! entries.
//!
//! Of a large array a few entries are compared one by one, and all of them at once along a direction. Entries
//! of an array are measured against its largest one: where the others are tiny, differences cannot see their
//! digits.
//!
//! A program that decides anything is run on numbers that pass the hook of decisions, which
//! separates the steps that change a decision from those that do not. Where differences cannot tell, forward
//! mode is asked near the point.

use std::cell::Cell;

use palinode_core::check::{Comparison, Line, Sample, Verdict, compare};
use palinode_core::decision::{self, Decisions};
use palinode_core::{Dual, Key, Passive, Real};

use crate::interp::{Code, Datum, Engine, Limits, RunErrorKind, Tensor};
use crate::transform::{self, TransformError};
use crate::{Program, passes, plan};

/// Arrays up to this length are compared entry by entry.
const ALL_UP_TO: usize = 24;
/// Of longer ones this many entries are.
const SOME: usize = 6;

/// What the comparison found.
#[derive(Clone, Debug)]
pub struct Checked {
    /// For each argument, in the order of `wrt`.
    pub parts: Vec<Part>,
    /// What the model decided by values that depend on the arguments; none if finding out takes more than the
    /// budget.
    pub decisions: Option<Decisions>,
    /// Whether forward mode, where it was needed, was within the budget.
    pub forward_fits: bool,
}

/// The comparison for one argument: the worst.
#[derive(Clone, Debug)]
pub struct Part {
    /// What it found.
    pub found: Comparison,
    /// Which entry that is, of an array; none if it is the direction.
    pub place: Option<usize>,
    /// How many entries there are.
    pub elements: usize,
    /// How many entries were compared one by one.
    pub tested: usize,
}

impl Checked {
    /// Whether differences say that the gradient is wrong.
    pub fn disagrees(&self) -> bool {
        self.parts.iter().any(|part| part.found.verdict == Verdict::Disagrees)
    }
}

/// A program that is to be checked, as it is run: made ready before the first run, so that it can be held
/// beside a budget.
pub struct Checker<'a> {
    value: Code,
    /// The same with tangents of the arguments at `wrt`.
    forward: Code,
    wrt: &'a [usize],
}

impl<'a> Checker<'a> {
    /// Of a program of one result, and of the same with nothing computed again, whose tangents
    /// [`least_bytes`] counts; who runs them.
    ///
    /// # Errors
    /// If the program has no derivative by these arguments.
    pub fn new(
        program: &Program,
        plain: &Program,
        wrt: &'a [usize],
        engine: &Engine,
    ) -> Result<Self, TransformError> {
        let forward = with_tangents(plain, wrt)?;
        Ok(Checker { value: Code::on(engine, program), forward: Code::on(engine, &forward), wrt })
    }
}

fn with_tangents(program: &Program, wrt: &[usize]) -> Result<Program, TransformError> {
    Ok(passes::simplify(&transform::jvp(program, wrt)?))
}

/// What a check takes beside its runs, whatever the model: its table of differences.
const FEW: usize = 4096;
/// And for each argument: what is found of it, and the descriptions of its copies.
const OF_ARGUMENT: usize = 512;

/// The bytes that a check holds beside each run of the values: the gradient, and of the longest argument that
/// is moved as a whole its start and its direction.
pub fn held_bytes(inputs: &[Datum<f64>], wrt: &[usize]) -> usize {
    let lengths = || wrt.iter().map(|&at| inputs[at].elements());
    let longest = lengths().filter(|&length| length > ALL_UP_TO).max().unwrap_or(0);
    let along = longest * (size_of::<f64>() + size_of::<bool>());
    lengths().sum::<usize>() * size_of::<f64>() + along + FEW + OF_ARGUMENT * inputs.len()
}

/// The smallest budget for all that a check does, where that is known: values, which take `values`, forward
/// mode, and the count of decisions.
pub fn least_bytes(program: &Program, wrt: &[usize], inputs: &[Datum<f64>], values: u64) -> u64 {
    let program = plan::simplified(program);
    let tangents = wrt.iter().map(|&at| &inputs[at]);
    let with_tangents = || {
        let all: Vec<Datum<f64>> = inputs.iter().chain(tangents.clone()).cloned().collect();
        let found = plan::predict(&with_tangents(&program, wrt).ok()?, &all, size_of::<f64>()).ok()?;
        Some(found.heap.saturating_add(copied_bytes(&all, size_of::<f64>()) as u64))
    };
    let decided = || {
        let found = plan::predict(&program, inputs, size_of::<Dual<f64>>()).ok()?;
        Some(found.heap.saturating_add(copied_bytes(inputs, size_of::<Dual<f64>>()) as u64))
    };
    let most = values.max(with_tangents().unwrap_or(0)).max(decided().unwrap_or(0));
    most.saturating_add(held_bytes(inputs, wrt) as u64)
}

/// The bytes of a copy of data, whose numbers take so many.
fn copied_bytes<'a, R: 'a>(data: impl IntoIterator<Item = &'a Datum<R>>, each: usize) -> usize {
    data.into_iter().map(|datum| datum.elements() * each).sum()
}

impl Checker<'_> {
    /// Compares a gradient with differences. The inputs are moved, and put back. The budget of `limits` is
    /// for what is there beside inputs and what the check holds ([`held_bytes`]). `progress` is called after
    /// each of its [`comparisons`].
    pub fn check(
        &self,
        inputs: &mut Vec<Datum<f64>>,
        limits: &Limits,
        gradient: &[Tensor<f64>],
        progress: &mut dyn FnMut(),
    ) -> Checked {
        let limits = Limits { trap_nonfinite: false, ..*limits };
        let decisions = decisions(&self.value, inputs, self.wrt, &limits);
        let watched = std::mem::take(inputs).into_iter().map(|datum| converted(datum, Passive::new));
        let forward_fits = Cell::new(true);
        let mut tester =
            Tester { checker: self, inputs: watched.collect(), limits, forward_fits: &forward_fits };
        // A program without decisions is run on plain numbers, which is faster. What is decided by values at
        // rest (`abs` at 0) may be decided otherwise near the point.
        let (_, seen) = decision::watch(|| self.value.run(&tester.inputs, &limits));
        let of_watched = (seen.count() > 0).then(|| tester.parts(gradient, progress));
        *inputs = tester.inputs.into_iter().map(|datum| converted(datum, Passive::primal)).collect();
        let parts = of_watched.unwrap_or_else(|| {
            let inputs_of = std::mem::take(inputs);
            let mut tester = Tester { checker: self, inputs: inputs_of, limits, forward_fits: &forward_fits };
            let parts = tester.parts(gradient, progress);
            *inputs = tester.inputs;
            parts
        });
        Checked { parts, decisions, forward_fits: forward_fits.get() }
    }
}

/// How many comparisons a check of such a gradient makes.
pub fn comparisons(gradient: &[Tensor<f64>]) -> usize {
    let of = |length: usize| if length <= ALL_UP_TO { length } else { SOME + 1 };
    gradient.iter().map(|part| of(part.data.len())).sum()
}

/// Every entry of a short array; of a long one some, the first and the last included.
fn chosen(length: usize) -> Vec<usize> {
    if length <= ALL_UP_TO {
        return (0..length).collect();
    }
    (0..SOME).map(|k| k * (length - 1) / (SOME - 1)).collect()
}

/// Directions that do not follow a pattern, the same on every run.
const DIRECTIONS: Key = Key::from_seed(0x9e37_79b9_7f4a_7c15);

/// The order in which verdicts matter.
fn badness(verdict: Verdict) -> u32 {
    match verdict {
        Verdict::Within { digits: None } => 0,
        Verdict::Agrees { digits } => 20 - digits.min(19),
        Verdict::Within { digits: Some(digits) } => 40 - digits.min(19),
        Verdict::Unknown => 50,
        Verdict::Crossed => 55,
        Verdict::Kink { .. } => 60,
        Verdict::Jump { .. } => 65,
        Verdict::Disagrees => 70,
    }
}

/// The program as a function of one argument.
struct Tester<'a, R> {
    checker: &'a Checker<'a>,
    inputs: Vec<Datum<R>>,
    limits: Limits,
    /// Whether every run by forward mode was within the budget.
    forward_fits: &'a Cell<bool>,
}

impl<R: Real> Tester<'_, R> {
    fn parts(&mut self, gradient: &[Tensor<f64>], progress: &mut dyn FnMut()) -> Vec<Part> {
        let mut parts = Vec::new();
        for (at, part) in gradient.iter().enumerate() {
            let (elements, places) = (part.data.len(), chosen(part.data.len()));
            let largest = part.data.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
            let nothing = Comparison {
                verdict: Verdict::Within { digits: None },
                differences: 0.0,
                error: 0.0,
                across: None,
            };
            let mut worst = Part { found: nothing, place: None, elements, tested: places.len() };
            let mut keep = |found: Comparison, place: Option<usize>, is_first: bool| {
                if is_first || badness(found.verdict) > badness(worst.found.verdict) {
                    (worst.found, worst.place) = (found, place);
                }
                progress();
            };
            for &place in &places {
                keep(self.along_entry(at, place, part.data[place], largest), Some(place), place == 0);
            }
            if places.len() < elements {
                keep(self.along(at, &part.data, largest), None, false);
            }
            parts.push(worst);
        }
        parts
    }

    /// The value, and the decisions on the way to it.
    fn sample(&self) -> Option<Sample> {
        let (outputs, seen) = decision::watch(|| self.checker.value.run(&self.inputs, &self.limits));
        let value = outputs.ok()?[0].as_real()?.to_f64();
        Some(Sample { value, path: seen.path }).filter(|_| value.is_finite())
    }

    /// The slope along a direction of the argument `at` of those that are differentiated by, by forward mode;
    /// none if that fails or takes more than the budget.
    fn slope(&self, at: usize, direction: impl Fn(usize) -> f64) -> Option<f64> {
        let wrt = self.checker.wrt;
        let copied = self.inputs.iter().chain(wrt.iter().map(|&at| &self.inputs[at]));
        let Some(budget) = self.limits.budget.checked_sub(copied_bytes(copied, size_of::<f64>())) else {
            self.forward_fits.set(false);
            return None;
        };
        // What ends without tangents ends with them.
        let limits = Limits { budget, steps: u64::MAX, ..self.limits };
        let mut inputs: Vec<Datum<f64>> = Vec::with_capacity(self.inputs.len() + wrt.len());
        inputs.extend(self.inputs.iter().map(|input| input.map(|x| x.to_f64())));
        for (other, &argument) in wrt.iter().enumerate() {
            let mut element = 0..;
            let tangent = self.inputs[argument].map(|_| {
                let element = element.next().expect("it does not end");
                if other == at { direction(element) } else { 0.0 }
            });
            inputs.push(tangent);
        }
        match self.checker.forward.run(&inputs, &limits) {
            Ok(outputs) => outputs[1].as_real().filter(|slope| slope.is_finite()),
            Err(error) => {
                let is_over = matches!(error.kind, RunErrorKind::OverBudget { .. });
                self.forward_fits.set(self.forward_fits.get() && !is_over);
                None
            }
        }
    }

    fn numbers(&mut self, argument: usize) -> &mut [R] {
        match &mut self.inputs[argument] {
            Datum::Real(tensor) => &mut tensor.data,
            Datum::Int(_) | Datum::Bool(_) => unreachable!("only reals are moved"),
        }
    }

    /// Along one entry of the argument `at` of those that are differentiated by.
    fn along_entry(&mut self, at: usize, place: usize, exact: f64, largest: f64) -> Comparison {
        let data = self.numbers(self.checker.wrt[at]);
        let x = data[place].to_f64();
        let reach = reach(x.abs(), size(data));
        self.compared(at, &[x], Way::Entry(place), (exact, largest), reach)
    }

    /// Along a direction through all entries of an argument.
    fn along(&mut self, at: usize, gradient: &[f64], largest: f64) -> Comparison {
        let start: Vec<f64> = self.numbers(self.checker.wrt[at]).iter().map(|x| x.to_f64()).collect();
        let signs: Vec<bool> = (0..start.len()).map(|at| DIRECTIONS.rademacher(at as u64) > 0.0).collect();
        let exact: f64 = gradient.iter().zip(&signs).map(|(g, &is_up)| if is_up { *g } else { -g }).sum();
        let size = start.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
        let reach = reach(size, size) / (start.len() as f64).sqrt();
        self.compared(at, &start, Way::All(&signs), (exact, largest), reach)
    }

    fn compared(
        &mut self,
        at: usize,
        start: &[f64],
        way: Way<'_>,
        (exact, largest): (f64, f64),
        reach: f64,
    ) -> Comparison {
        let found = compare(exact, &mut Along { tester: self, at, start, way }, reach, largest);
        let numbers = self.numbers(self.checker.wrt[at]);
        let moved = match way {
            Way::Entry(place) => &mut numbers[place..=place],
            Way::All(_) => numbers,
        };
        moved.iter_mut().zip(start).for_each(|(entry, &x)| *entry = R::from_f64(x));
        found
    }
}

/// Which entries of an argument move.
#[derive(Clone, Copy)]
enum Way<'a> {
    /// This one.
    Entry(usize),
    /// All of them, up or down.
    All(&'a [bool]),
}

/// The line on which entries are moved away from `start`.
struct Along<'a, 'b, R> {
    tester: &'a mut Tester<'b, R>,
    at: usize,
    start: &'a [f64],
    way: Way<'a>,
}

impl<R: Real> Along<'_, '_, R> {
    fn go(&mut self, distance: f64) {
        let numbers = self.tester.numbers(self.tester.checker.wrt[self.at]);
        match self.way {
            Way::Entry(place) => numbers[place] = R::from_f64(self.start[0] + distance),
            Way::All(signs) => {
                for (entry, (x, &is_up)) in numbers.iter_mut().zip(self.start.iter().zip(signs)) {
                    *entry = R::from_f64(if is_up { x + distance } else { x - distance });
                }
            }
        }
    }
}

impl<R: Real> Line for Along<'_, '_, R> {
    fn sample(&mut self, distance: f64) -> Option<Sample> {
        self.go(distance);
        self.tester.sample()
    }

    fn slope(&mut self, distance: f64) -> Option<f64> {
        self.go(distance);
        self.tester.slope(self.at, |element| match self.way {
            Way::Entry(place) => f64::from(u8::from(element == place)),
            Way::All(signs) if signs[element] => 1.0,
            Way::All(_) => -1.0,
        })
    }
}

/// What a program decides by values that depend on these arguments: tangents along a direction like no other
/// show which do. None if that takes more than the budget.
fn decisions(code: &Code, inputs: &[Datum<f64>], wrt: &[usize], limits: &Limits) -> Option<Decisions> {
    let bytes = copied_bytes(inputs, size_of::<Dual<f64>>());
    let limits = Limits { budget: limits.budget.checked_sub(bytes)?, ..*limits };
    // Neither zero nor like another.
    let mut counter = 0_u64..;
    let mut slope = || {
        let at = counter.next().expect("it does not end");
        DIRECTIONS.rademacher(at) * (0.5 + DIRECTIONS.split(1).uniform(at))
    };
    let inputs: Vec<Datum<Dual<f64>>> = inputs
        .iter()
        .enumerate()
        .map(|(at, input)| {
            let moves = wrt.contains(&at);
            input.map(|x| Dual::new(x, if moves { slope() } else { 0.0 }))
        })
        .collect();
    let (ran, seen) = decision::watch(|| code.run(&inputs, &limits));
    ran.ok().map(|_| seen)
}

/// The same data as other numbers, in the same memory if they are as large.
fn converted<A, B>(datum: Datum<A>, each: impl Fn(A) -> B) -> Datum<B> {
    match datum {
        Datum::Real(Tensor { shape, data }) => {
            Datum::Real(Tensor { shape, data: data.into_iter().map(each).collect() })
        }
        Datum::Int(tensor) => Datum::Int(tensor),
        Datum::Bool(tensor) => Datum::Bool(tensor),
    }
}

fn size<R: Real>(data: &[R]) -> f64 {
    data.iter().fold(0.0_f64, |largest, x| largest.max(x.to_f64().abs()))
}

/// How far one may reasonably move numbers of this size, which are some of an array with entries of that
/// size.
fn reach(moved: f64, all: f64) -> f64 {
    let scale = moved.max(0.1 * all);
    if scale > 0.0 && scale.is_finite() { scale } else { 1.0 }
}
