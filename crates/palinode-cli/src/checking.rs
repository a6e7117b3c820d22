//! `--check`: a gradient against central differences, argument by argument.
//!
//! Of a large array a few entries are compared one by one, and all of them at once along a direction. Entries of an
//! array are measured against its largest one: where the others are tiny, differences cannot see their digits.

use palinode_core::Dual;
use palinode_core::decision::{self, Decisions};
use palinode_ir::interp::{Code, Datum, Limits, Tensor};
use palinode_ir::{Program, passes};
use serde_json::{Value, json};

use crate::differences::{Estimate, Verdict, compare, estimate};
use crate::gradient::entry;
use crate::progress::Progress;
use crate::value;

/// Arrays up to this length are compared entry by entry.
const ALL_UP_TO: usize = 24;
/// Of longer ones this many entries are.
const SOME: usize = 6;

/// What the comparison found.
pub(crate) struct Checked {
    /// For each argument, in the order of `wrt`.
    pub(crate) parts: Vec<Part>,
    /// What the model decided by values that depend on the arguments.
    pub(crate) decisions: Decisions,
}

/// The comparison for one argument.
pub(crate) struct Part {
    /// The worst.
    pub(crate) verdict: Verdict,
    /// What differences give where it is worst.
    pub(crate) differences: f64,
    /// Their own error there.
    error: f64,
    /// Which entry that is, of an array; none if it is the direction.
    pub(crate) place: Option<usize>,
    pub(crate) elements: usize,
    /// How many entries were compared one by one.
    pub(crate) tested: usize,
}

impl Checked {
    pub(crate) fn disagrees(&self) -> bool {
        self.parts.iter().any(|part| part.verdict == Verdict::Disagrees)
    }
}

impl Part {
    /// The same in other units.
    pub(crate) fn scale(&mut self, factor: f64) {
        self.differences *= factor;
        self.error *= factor.abs();
        if let Verdict::Kink { left, right } = &mut self.verdict {
            *left *= factor;
            *right *= factor;
        }
    }

    pub(crate) fn json(&self) -> Value {
        let (status, digits) = match self.verdict {
            Verdict::Agrees { digits } => ("agrees", Some(digits)),
            Verdict::Within { digits } => ("within", digits),
            Verdict::Kink { .. } => ("kink", None),
            Verdict::Disagrees => ("disagrees", None),
            Verdict::Unknown => ("unknown", None),
        };
        let mut fields = json!({ "status": status, "digits": digits });
        if self.verdict != Verdict::Unknown {
            fields["differences"] = value::number(self.differences);
            fields["error"] = value::number(self.error);
        }
        if let Verdict::Kink { left, right } = self.verdict {
            fields["left"] = value::number(left);
            fields["right"] = value::number(right);
        }
        if let Some(at) = self.place.filter(|_| self.elements > 1) {
            fields["entry"] = json!(at);
        }
        fields["tested"] = json!(self.tested);
        fields
    }
}

/// Compares `gradient` of the only result of `program` with differences.
pub(crate) fn check(
    program: &Program,
    wrt: &[usize],
    inputs: &[Datum<f64>],
    limits: &Limits,
    gradient: &[Tensor<f64>],
) -> Checked {
    let limits = Limits { trap_nonfinite: false, ..*limits };
    let mut tester = Tester { code: Code::new(&passes::simplify(program)), inputs: inputs.to_vec(), limits };
    let places: Vec<Vec<usize>> = gradient.iter().map(|part| chosen(part.data.len())).collect();
    let work: usize = gradient
        .iter()
        .zip(&places)
        .map(|(part, places)| places.len() + usize::from(places.len() < part.data.len()))
        .sum();
    let progress = Progress::start("taking differences", work as u64);
    let mut parts = Vec::new();
    for ((&argument, part), places) in wrt.iter().zip(gradient).zip(&places) {
        let largest = part.data.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
        let mut worst: Option<Part> = None;
        let mut keep = |verdict: Verdict, estimate: Option<Estimate>, place: Option<usize>| {
            let (differences, error) =
                estimate.map_or((f64::NAN, f64::NAN), |found| (found.value, found.error));
            if worst.as_ref().is_none_or(|worst| badness(verdict) > badness(worst.verdict)) {
                let (elements, tested) = (part.data.len(), places.len());
                worst = Some(Part { verdict, differences, error, place, elements, tested });
            }
        };
        for &place in places {
            let found = tester.along_entry(argument, place);
            keep(compare(part.data[place], found, largest), found, Some(place));
            progress.advance();
        }
        if places.len() < part.data.len() {
            let direction = signs(part.data.len());
            let exact: f64 = part.data.iter().zip(&direction).map(|(g, d)| g * d).sum();
            let found = tester.along(argument, &direction);
            keep(compare(exact, found, largest), found, None);
            progress.advance();
        }
        parts.push(worst.unwrap_or(Part {
            verdict: Verdict::Within { digits: None },
            differences: 0.0,
            error: 0.0,
            place: None,
            elements: 0,
            tested: 0,
        }));
    }
    drop(progress);
    Checked { parts, decisions: tester.decisions(wrt) }
}

/// Every entry of a short array; of a long one some, the first and the last included.
fn chosen(length: usize) -> Vec<usize> {
    if length <= ALL_UP_TO {
        return (0..length).collect();
    }
    (0..SOME).map(|k| k * (length - 1) / (SOME - 1)).collect()
}

/// Plus and minus ones that do not follow a pattern, the same on every run.
fn signs(length: usize) -> Vec<f64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if state >> 63 == 0 { 1.0 } else { -1.0 }
    };
    (0..length).map(|_| next()).collect()
}

/// The order in which verdicts matter.
fn badness(verdict: Verdict) -> u32 {
    match verdict {
        Verdict::Within { digits: None } => 0,
        Verdict::Agrees { digits } => 20 - digits.min(19),
        Verdict::Within { digits: Some(digits) } => 40 - digits.min(19),
        Verdict::Unknown => 50,
        Verdict::Kink { .. } => 60,
        Verdict::Disagrees => 70,
    }
}

/// The program as a function of one argument.
struct Tester {
    code: Code,
    inputs: Vec<Datum<f64>>,
    limits: Limits,
}

impl Tester {
    fn value(&self) -> Option<f64> {
        let outputs = self.code.run(&self.inputs, &self.limits).ok()?;
        outputs[0].as_real().filter(|x| x.is_finite())
    }

    fn along_entry(&mut self, argument: usize, place: usize) -> Option<Estimate> {
        let data = self.inputs[argument].as_vector()?;
        let (x, scale) = (data[place], reach(&data[place..=place], data));
        let found = estimate(
            &mut |h| {
                *entry(&mut self.inputs[argument], place) = x + h;
                self.value()
            },
            scale,
        );
        *entry(&mut self.inputs[argument], place) = x;
        found
    }

    fn along(&mut self, argument: usize, direction: &[f64]) -> Option<Estimate> {
        let start = self.inputs[argument].as_vector()?.to_vec();
        let scale = reach(&start, &start) / (start.len() as f64).sqrt();
        let found = estimate(
            &mut |h| {
                for (place, (x, d)) in start.iter().zip(direction).enumerate() {
                    *entry(&mut self.inputs[argument], place) = x + h * d;
                }
                self.value()
            },
            scale,
        );
        for (place, &x) in start.iter().enumerate() {
            *entry(&mut self.inputs[argument], place) = x;
        }
        found
    }

    /// What the program decides by values that depend on these arguments.
    fn decisions(&self, wrt: &[usize]) -> Decisions {
        let inputs: Vec<Datum<Dual<f64>>> = self
            .inputs
            .iter()
            .enumerate()
            .map(|(at, input)| {
                let tangent = if wrt.contains(&at) { 1.0 } else { 0.0 };
                input.map(|x| Dual::new(x, tangent))
            })
            .collect();
        decision::watch(|| self.code.run(&inputs, &self.limits)).1
    }
}

/// How far one may reasonably move these numbers, which are some of an array.
fn reach(moved: &[f64], all: &[f64]) -> f64 {
    let largest = |data: &[f64]| data.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
    let scale = largest(moved).max(0.1 * largest(all));
    if scale > 0.0 && scale.is_finite() { scale } else { 1.0 }
}
