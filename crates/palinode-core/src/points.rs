//! Paths that exist only at a point ([0028](../../../docs/adr/0028-points.md)).
//!
//! Input: a derivative as a function of the point, its parts as plain numbers. Output: the derivative, or an error that names the decision.
//!
//! Code takes short cuts: `if x == 0`, `if |off| <= epsilon`. A branch that is taken only there is not the function's, and its
//! derivative is not the function's either. So where the hook noted a suspicious comparison (`decision.rs`), and only there, the derivative is computed
//! again to both sides along a pseudo-random direction, at two distances. Extrapolated to the point, these are the one-sided derivatives.
//! What is found at the point must lie between them, where it lies at a kink; and if a comparison went as it goes on neither side, it must be one of
//! the two (unless it is a partial derivative, and the comparison does not change along its input).
//!
//! Invariants: nothing suspicious costs nothing and allocates nothing; the last run is the one at the point, so that whatever a closure leaves behind is what it
//! left there; runs to the sides are seen by no other scope, and nothing in them is verified in turn. A side on which the derivative does not exist says nothing.
//!
//! Known limits: a gap below a millionth of a part, or a ten-millionth of the largest one, is not seen; after paths diverged with different numbers of decisions, later ones cannot
//! be told apart and count as kinks.

use crate::decision::{self, Log, Outcome, Suspect, apart};
use crate::error::Error;
use core::cmp::Ordering;
use palinode_num::{Key, Scalar};

/// How far the far run of a side is, in distances of the near one.
const FAR: f64 = 16.0;

/// Of the change between near and far run, what the extrapolated derivative may be wrong by: enough for curvature of any kind down to a square root.
const OF_CHANGE: f64 = 0.3;

/// The least gap that counts, relative to the part: what converged loops leave over is below.
const LEAST_GAP: f64 = 1e-6;

/// How much of that counts relative to the largest part: rounding of what should be zero, where a division by the distance has made it large.
const OF_LARGEST: f64 = 0.1;

const DIRECTION: Key = Key::from_seed(0x9a11_0de0);

/// What the parts of a derivative are.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// Row after row, each with a part for every input.
    ByInput,
    /// In directions, or by order.
    Along,
}

/// A derivative as a function of the point, which adds its parts to a list if it is given one.
type Run<'a, S, R, E> = dyn FnMut(&[S], Option<&mut Vec<f64>>) -> Result<R, E> + 'a;

/// Runs at `x`, and looks to the sides if a comparison there was suspicious. The order is that of the highest derivative.
#[doc(hidden)]
#[inline]
pub fn verified<S: Scalar, R, E: From<Error>>(
    x: &[S],
    (parts, order): (Parts, usize),
    mut run: impl FnMut(&[S], Option<&mut Vec<f64>>) -> Result<R, E>,
) -> Result<R, E> {
    // One copy of the user's code is enough.
    let run: &mut Run<'_, S, R, E> = &mut run;
    let (result, suspicion) = decision::suspecting(|| run(x, None));
    match suspicion {
        None => result,
        Some(threshold) => {
            drop(result?);
            examine(x, (parts, order), threshold, run)
        }
    }
}

/// Runs `f`, and says whether something in it is to be [`verified`]. That is for long runs, which are then taken again in parts.
#[doc(hidden)]
pub fn suspicious<R>(f: impl FnOnce() -> R) -> (R, bool) {
    let (result, suspicion) = decision::suspecting(f);
    (result, suspicion.is_some())
}

/// Runs what has been run before, to verify it: its decisions are not counted again.
#[doc(hidden)]
pub fn again<R>(f: impl FnOnce() -> R) -> R {
    decision::uncounted(f)
}

/// Runs code that was made of the program that is looked at, such as its derivative: its comparisons are not the program's.
#[doc(hidden)]
pub fn unseen<R>(f: impl FnOnce() -> R) -> R {
    decision::unseen(f)
}

/// The bytes that a look to the sides of a point of so many numbers keeps while a derivative by all of them is computed: what is added up of that, and some for logs.
#[doc(hidden)]
pub fn kept_bytes(numbers: usize) -> usize {
    // The point, one beside it and what is made of it, the parts of the point and of four others beside it; what is known of each input.
    let each = 8 * size_of::<f64>() + size_of::<Option<bool>>();
    numbers.saturating_mul(each).saturating_add(decision::LEAST_LOGS + 512)
}

/// Runs `f`, in which a look to the sides takes so many bytes for logs beyond those of [`kept_bytes`].
#[doc(hidden)]
pub fn logging_with<R>(more: usize, f: impl FnOnce() -> R) -> R {
    decision::logging_within(decision::LEAST_LOGS.saturating_add(more), f)
}

/// Adds the primals of numbers to the parts; symbols say nothing.
#[doc(hidden)]
pub fn add_parts<S: Scalar>(parts: Option<&mut Vec<f64>>, numbers: &[S]) {
    if let Some(parts) = parts {
        parts.extend(numbers.iter().map(|&number| number.glance().unwrap_or(f64::NAN)));
    }
}

/// Pseudo-random weights of either sign, each between a half and one and a half.
#[doc(hidden)]
pub fn weight(i: usize) -> f64 {
    let i = 2 * i as u64;
    DIRECTION.rademacher(i) * (0.5 + DIRECTION.uniform(i + 1))
}

/// `x` moved by about so much of its entries, and so far at least, along a direction in which every entry moves.
pub(crate) fn moved<S: Scalar>(x: &[S], relative: f64, least: f64, sign: impl Fn(f64) -> f64) -> Vec<S> {
    let size = |x: S| x.glance().map_or(0.0, f64::abs);
    let largest = x.iter().fold(0.0, |largest: f64, &x| largest.max(size(x)));
    // A zero has no scale of its own.
    let scale_of_zero = if largest == 0.0 { 1.0 } else { largest.min(1.0) };
    let moved = x.iter().enumerate().map(|(i, &x)| {
        let scale = if size(x) == 0.0 { scale_of_zero } else { size(x) };
        x + S::from_f64(sign(weight(i)) * (relative * scale).max(least))
    });
    moved.collect()
}

/// What a run to one side found, near and far.
#[derive(Default)]
struct Side {
    near: Vec<f64>,
    far: Vec<f64>,
    near_log: Log,
    far_log: Log,
}

impl Side {
    /// Part `i` of the one-sided derivative, and how wrong it may be.
    fn part(&self, i: usize) -> (f64, f64) {
        let (near, far) = (self.near[i], self.far[i]);
        ((FAR * near - far) / (FAR - 1.0), OF_CHANGE * (near - far).abs())
    }

    /// How the comparison went on this side, if it can be told which one it is there: up to where the paths diverge, or to the end if both
    /// runs made as many.
    fn outcome(&self, here: &Log, number: usize) -> Option<Outcome> {
        let there = &self.far_log;
        let same_until = || here.outcomes.iter().take(number).zip(&there.outcomes).all(|(a, b)| a == b);
        (here.count == there.count || same_until()).then(|| there.outcomes.get(number).copied()).flatten()
    }

    /// Whether a suspicious comparison goes as at the point next to it, and otherwise farther away: the near run was not beyond its threshold.
    fn is_too_near(&self, here: &Log) -> bool {
        let (near, far) = (&self.near_log.outcomes, &self.far_log.outcomes);
        here.suspects.iter().any(|suspect| {
            let n = suspect.number;
            near.get(n) == here.outcomes.get(n) && far.get(n).is_some() && far.get(n) != here.outcomes.get(n)
        })
    }
}

#[cold]
#[inline(never)]
fn examine<S: Scalar, R, E: From<Error>>(
    x: &[S],
    (kind, order): (Parts, usize),
    threshold: f64,
    run: &mut Run<'_, S, R, E>,
) -> Result<R, E> {
    let epsilon = epsilon::<S>();
    let order = order.max(1) as i32;
    let mut relative = epsilon.powf(1.0 / f64::from(order + 2));
    let mut least = 64.0 * threshold;
    let run_at = |run: &mut Run<'_, S, R, E>, point: &[S]| {
        let mut parts = Vec::new();
        let (_, log) =
            apart(|| run(point, Some(&mut parts)).ok()).and_then(|(ran, log)| Some((ran?, log)))?;
        parts.iter().all(|part| part.is_finite()).then_some((parts, log))
    };
    let Some((here, log)) = run_at(run, x) else {
        // It has parts that cannot be compared.
        return once_more(x, run);
    };
    let mut sides: [Option<Side>; 2] = [None, None];
    // Also upwards only, for what is defined for positive numbers, and all alike, for what must stay symmetric; and farther, if a threshold is on something that grows slowly.
    let turns: [fn(f64) -> f64; 3] = [|weight| weight, f64::abs, |_| 1.0];
    for turn in turns {
        for _ in 0..3 {
            sides = [1.0, -1.0].map(|sign| {
                let way = |weight: f64| sign * turn(weight);
                let (near, near_log) = run_at(run, &moved(x, relative, least, way))?;
                let (far, far_log) = run_at(run, &moved(x, FAR * relative, FAR * least, way))?;
                let same_parts = near.len() == here.len() && far.len() == here.len();
                same_parts.then_some(Side { near, far, near_log, far_log })
            });
            if !sides.iter().flatten().any(|side| side.is_too_near(&log)) {
                break;
            }
            (relative, least) = (FAR * relative, FAR * least);
        }
        if sides.iter().any(Option::is_some) {
            break;
        }
    }
    let noise = LEAST_GAP.max(32.0 * epsilon / relative.powi(order));
    let mut is_apart = |input: usize| {
        let beside = [1.0, -1.0].map(|sign| {
            let mut point = x.to_vec();
            point[input] = moved(x, FAR * relative, FAR * least, |weight| sign * weight)[input];
            run_at(run, &point).map(|(_, far_log)| Side { far_log, ..Side::default() })
        });
        let known: Vec<&Side> = beside.iter().flatten().collect();
        known.len() == 2 && !log.suspects.iter().any(|suspect| is_of_point(suspect, &log, &known))
    };
    // A partial derivative is right if no comparison is of the point along its own input: then it is that of the branch.
    let mut apart_from = vec![None; x.len()];
    let mut is_excused = |part: usize| {
        kind == Parts::ByInput && {
            let input = part % x.len().max(1);
            *apart_from[input].get_or_insert_with(|| is_apart(input))
        }
    };
    if let Some(refusal) = refusal(&here, &log, &sides, noise, &mut is_excused) {
        return Err(refusal.into());
    }
    once_more(x, run)
}

/// Last, so that a closure leaves behind what it left at the point. Not apart: drivers inside the closure verify what they answer, as they did in the first run.
fn once_more<S: Scalar, R, E>(x: &[S], run: &mut Run<'_, S, R, E>) -> Result<R, E> {
    decision::uncounted(|| run(x, None))
}

/// The relative spacing of numbers next to 1, measured.
fn epsilon<S: Scalar>() -> f64 {
    let mut epsilon = 1.0;
    while epsilon > 1e-32
        && ((S::one() + S::from_f64(epsilon / 2.0)) - S::one()).glance().is_some_and(|e| e != 0.0)
    {
        epsilon /= 2.0;
    }
    epsilon
}

/// What is wrong with the derivative that was found at the point. A part that lies between the sides may be excused.
fn refusal(
    here: &[f64],
    log: &Log,
    sides: &[Option<Side>; 2],
    noise: f64,
    is_excused: &mut dyn FnMut(usize) -> bool,
) -> Option<Error> {
    let known: Vec<&Side> = sides.iter().flatten().collect();
    if known.is_empty() {
        return None;
    }
    let of_point = log.suspects.iter().find(|suspect| is_of_point(suspect, log, &known));
    let largest = here.iter().fold(0.0, |largest: f64, part| largest.max(part.abs()));
    here.iter().enumerate().find_map(|(part, &found)| {
        let sizes = known.iter().map(|side| side.near[part].abs());
        let scale = sizes.fold(found.abs(), f64::max);
        let least = noise * (scale + OF_LARGEST * largest);
        let ends: Vec<(f64, f64)> =
            known.iter().map(|side| side.part(part)).map(|(end, error)| (end, error + least)).collect();
        let matches_one = ends.iter().any(|(end, error)| (found - end).abs() <= *error);
        let low = ends.iter().fold(f64::INFINITY, |low, (end, error)| low.min(end - error));
        let high = ends.iter().fold(f64::NEG_INFINITY, |high, (end, error)| high.max(end + error));
        let is_between = ends.len() < 2 || (low..=high).contains(&found);
        if matches_one || (is_between && (of_point.is_none() || is_excused(part))) {
            return None;
        }
        let suspect = of_point.or_else(|| log.suspects.iter().find(|s| s.is_equality || !s.is_tie()));
        let suspect = suspect.or(log.suspects.first())?;
        Some(Error::OfPoint {
            decision: suspect.number + 1,
            left: suspect.left,
            right: suspect.right,
            part,
            here: found,
            sides: [ends[0].0, ends[ends.len() - 1].0],
        })
    })
}

/// Whether a comparison went as it goes on neither side.
fn is_of_point(suspect: &Suspect, here: &Log, sides: &[&Side]) -> bool {
    let outcomes: Option<Vec<Outcome>> =
        sides.iter().map(|side| side.outcome(here, suspect.number)).collect();
    let Some(outcomes) = outcomes else { return false };
    if suspect.is_equality || !suspect.is_tie() {
        return outcomes.iter().all(|outcome| Some(outcome) != here.outcomes.get(suspect.number));
    }
    // Of an order it is not known which of `<`, `<=` was asked: each of them goes as on one of two different sides.
    let differs = |outcome: &Outcome| *outcome != Outcome::Order(Some(Ordering::Equal));
    outcomes.len() == 2 && outcomes[0] == outcomes[1] && outcomes.iter().all(differs)
}
