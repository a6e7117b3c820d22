//! The derivative on one side of a point.
//!
//! Input: the parts of a derivative and the log of its comparisons, at growing distances. Output: each part
//! extrapolated to the point, with a bound of its error.

use super::Charge;
use crate::decision::{Log, Outcome, Suspect, Suspicion};

/// The least gap that counts, relative to the part: what converged loops leave over is below.
const LEAST_GAP: f64 = 1e-6;

/// What should be zero is rounding, which a division by the distance may have made this large, relative to
/// the largest part of the row. That is believed up to so many times what is left of the part's change with
/// the distance once a line is taken off: so small parts beside large ones are seen, curved or not.
const OF_LARGEST: f64 = 1e-7;
const CHANGES: f64 = 32.0;

/// An extrapolation that takes a square root for a line, at 16 times the distance, is wrong by 0.27 of the
/// change.
const OF_CHANGE: f64 = 0.3;

/// If a part may be wrong by more than this much of itself, one run more is made, nearer: a power of the
/// distance with a large factor may hide a wrong slope.
const UNSURE: f64 = 1e-3;

/// What changes by a power of the distance changes from run to run, towards the point, by at most so much of
/// its change before; and that ratio is the same each time, up to this much of it.
const SLOWEST: f64 = 0.6;
const ALIKE: f64 = 0.2;

/// What was found at one distance.
#[derive(Debug)]
pub(super) struct Found<'a> {
    pub(super) parts: Vec<f64>,
    pub(super) log: Log,
    /// For the bytes of these.
    pub(super) _charge: Option<Charge<'a>>,
}

/// A run on one side.
#[derive(Debug)]
pub(super) struct Beside<'a> {
    pub(super) relative: f64,
    pub(super) found: Found<'a>,
    /// How many times as far the next run is, if it is farther by the same factor in all entries.
    pub(super) to_next: Option<f64>,
    /// Whether it was made because the point is small, and nearer runs did not leave it.
    pub(super) is_farther: bool,
}

impl Found<'_> {
    /// Whether comparison `n` went as at the point.
    pub(super) fn goes_as(&self, here: &Log, n: usize) -> bool {
        self.log.outcomes.get(n) == here.outcomes.get(n)
    }

    /// How many comparisons of its own are suspicious.
    pub(super) fn exact_suspects(&self) -> usize {
        self.log.suspects.iter().filter(|suspect| suspect.suspicion == Suspicion::Exact).count()
    }
}

/// What runs to one side found, from near to far.
#[derive(Debug, Default)]
pub(super) struct Side<'a> {
    pub(super) runs: Vec<Beside<'a>>,
    /// The runs from which is extrapolated, each with the next one: those beyond the thresholds.
    pairs: Vec<usize>,
    /// How many comparisons go as at the point before the first that does not, in the run whose comparisons
    /// are looked at.
    same_until: usize,
    /// A run before the first, nearer by the factor by which the first is nearer than the second, if a part
    /// was unsure without.
    nearer: Option<Found<'a>>,
}

/// A part of a one-sided derivative, and how wrong it may be: by its change between two runs, or between two
/// extrapolations, whichever is less. That is enough for curvature of any kind down to a square root, by
/// lines; or for lower powers of the distance, which four runs show. What grows without end towards the point
/// is farther away.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) at: f64,
    pub(super) error: f64,
}

impl End {
    pub(super) fn is(&self, part: f64) -> bool {
        (part - self.at).abs() <= self.error
    }

    /// Whether it may be wrong by so much that what lies within says little.
    pub(super) fn is_vague(&self, scale: &Scale) -> bool {
        self.error > UNSURE * scale.found.abs().max(self.at.abs())
            && self.error > LEAST_GAP * scale.largest_of_row
    }
}

/// What is known of a part beside its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub(super) order: i32,
    pub(super) found: f64,
    pub(super) largest_of_row: f64,
    pub(super) epsilon: f64,
}

impl Scale {
    /// What rounding and converged loops leave over of a part that is this much at the point, and this much
    /// so near to it.
    fn rounding(&self, at: f64, near: f64, relative: f64) -> f64 {
        let found = self.found.abs();
        let by_distance = 32.0 * self.epsilon / relative.powi(self.order);
        LEAST_GAP * found.max(at.abs())
            + by_distance * found.max(near.abs())
            + 64.0 * self.epsilon * self.largest_of_row
    }
}

impl<'a> Side<'a> {
    /// A side of which only the comparisons are looked at.
    pub(super) fn of(found: Found<'a>, relative: f64, here: &Log) -> Self {
        let run = Beside { relative, found, to_next: None, is_farther: false };
        let mut side = Side { runs: vec![run], ..Side::default() };
        side.settle(here);
        side
    }

    /// Looks which runs are beyond the thresholds. Within one a suspicious comparison goes as at the point,
    /// and from some distance on it does not; or, at a small point, the run has more suspicious comparisons
    /// of its own than one farther away. If there is none beyond, the farthest is taken.
    pub(super) fn settle(&mut self, here: &Log) {
        let goes_as = |run: &Beside<'_>, n: usize| run.found.goes_as(here, n);
        let is_left_later = |i: usize, n: usize| {
            let within = self.runs[i..].iter().take_while(|run| goes_as(run, n)).count();
            let beyond = &self.runs[i + within..];
            within > 0 && !beyond.is_empty() && !beyond.iter().any(|run| goes_as(run, n))
        };
        let is_beyond = |i: usize| {
            let own = self.runs[i].found.exact_suspects();
            !here.suspects.iter().any(|suspect| is_left_later(i, suspect.number))
                && !self.runs[i + 1..].iter().any(|run| run.is_farther && run.found.exact_suspects() < own)
        };
        let runs = &self.runs;
        let pairs = || (0..runs.len()).filter(move |&i| runs[i].to_next.is_some());
        let beyond: Vec<usize> = pairs().filter(|&i| is_beyond(i)).collect();
        self.pairs = if beyond.is_empty() { pairs().next_back().into_iter().collect() } else { beyond };
        let there = self.log().outcomes.iter();
        self.same_until = here.outcomes.iter().zip(there).take_while(|(a, b)| a == b).count();
    }

    /// Whether there is something to extrapolate from.
    pub(super) fn is_known(&self) -> bool {
        !self.pairs.is_empty()
    }

    /// Whether a suspicious comparison went as at the point up to the last run but one.
    pub(super) fn is_too_near(&self, here: &Log) -> bool {
        let Some((last, nearer)) = self.runs.split_last() else { return false };
        here.suspects.iter().any(|suspect| {
            let goes_as = |run: &Beside<'_>| run.found.goes_as(here, suspect.number);
            !goes_as(last) && nearer.iter().all(goes_as)
        })
    }

    /// Whether a comparison goes as at the point in all runs.
    pub(super) fn goes_as(&self, here: &Log, suspect: &Suspect) -> bool {
        self.runs.iter().all(|run| run.found.goes_as(here, suspect.number))
    }

    /// Part `i` of the one-sided derivative, from the distances that give it best.
    pub(super) fn end(&self, i: usize, scale: Scale) -> Option<End> {
        let ends =
            self.pairs.iter().map(|&pair| self.end_of(pair, i, scale)).chain(self.end_of_power(i, scale));
        let narrowest = |a: &End, b: &End| a.error.total_cmp(&b.error);
        let end = ends.min_by(narrowest)?;
        if !end.is_vague(&scale) {
            return Some(end);
        }
        // Where paths diverge, a run may only seem to be within a threshold: another comparison has the
        // number of that at the point. So runs that are nearer may speak against what was found, not for it.
        let is_left_out = |&pair: &usize| self.runs[pair].to_next.is_some() && !self.pairs.contains(&pair);
        let nearer = (0..self.runs.len()).filter(is_left_out).map(|pair| self.end_of(pair, i, scale));
        let against = nearer.filter(|end| !end.is_vague(&scale) && !end.is(scale.found));
        Some(against.min_by(narrowest).unwrap_or(end))
    }

    fn end_of(&self, pair: usize, i: usize, scale: Scale) -> End {
        let at = self.extrapolated(pair, i);
        let (near, far) = (self.runs[pair].found.parts[i], self.runs[pair + 1].found.parts[i]);
        let mut change = (near - far).abs();
        let mut error = OF_CHANGE * change;
        if self.pairs.contains(&(pair + 1)) {
            let of_lines = (at - self.extrapolated(pair + 1, i)).abs();
            error = error.min(of_lines);
            change = change.min(of_lines);
        }
        let of_largest = (OF_LARGEST * scale.largest_of_row).min(CHANGES * change);
        let rounding = scale.rounding(at, near, self.runs[pair].relative);
        End { at, error: error + rounding + of_largest }
    }

    /// The same of what grows by a power of the distance, as four runs show it (Aitken's extrapolation, two
    /// times).
    fn end_of_power(&self, i: usize, scale: Scale) -> Option<End> {
        let parts = |run: usize| self.runs[run].found.parts[i];
        let (nearest, near, far, farther) = (self.nearer.as_ref()?.parts[i], parts(0), parts(1), parts(2));
        let steps = [near - nearest, far - near, farther - far];
        let [ratio, next] = [steps[0] / steps[1], steps[1] / steps[2]];
        let is_power = ratio > 0.0 && ratio < SLOWEST && (next - ratio).abs() <= ALIKE * ratio;
        if !is_power {
            return None;
        }
        let end = |from: f64, step: f64, ratio: f64| from - step * ratio / (1.0 - ratio);
        let (at, farther) = (end(nearest, steps[0], ratio), end(near, steps[1], next));
        let relative = self.runs[0].relative / self.runs[0].to_next.unwrap_or(1.0);
        let rounding = scale.rounding(at, nearest, relative);
        Some(End { at, error: (at - farther).abs() + rounding })
    }

    /// Whether parts may be wrong by much of themselves, and a nearer run may tell.
    pub(super) fn is_unsure(&self, mut scales: impl Iterator<Item = Scale>) -> bool {
        let in_line = |run: &Beside<'_>| run.to_next == self.runs[0].to_next;
        let is_regular = self.pairs.starts_with(&[0, 1]) && self.runs[..2].iter().all(in_line);
        let is_unsure = |(i, scale): (usize, Scale)| {
            let near = self.runs[0].found.parts[i];
            self.end(i, scale).is_some_and(|end| end.error > UNSURE * scale.found.abs().max(near.abs()))
        };
        is_regular && scales.by_ref().enumerate().any(is_unsure)
    }

    /// Takes a nearer run, if it went the way of the first one.
    pub(super) fn take_nearer(&mut self, nearer: Found<'a>) {
        let went = |found: &Found<'_>| (found.log.count, found.log.outcomes.len());
        let first = &self.runs[0].found;
        if went(first) == went(&nearer) && first.log.outcomes == nearer.log.outcomes {
            self.nearer = Some(nearer);
        }
    }

    /// A part at the point, from a run and the next one.
    fn extrapolated(&self, pair: usize, i: usize) -> f64 {
        let factor = self.runs[pair].to_next.unwrap_or(2.0);
        let (near, far) = (self.runs[pair].found.parts[i], self.runs[pair + 1].found.parts[i]);
        (factor * near - far) / (factor - 1.0)
    }

    /// The largest of these parts where it was looked first.
    pub(super) fn largest(&self, parts: core::ops::Range<usize>) -> f64 {
        let first = self.pairs.first().map(|&pair| &self.runs[pair].found.parts[parts]);
        first.into_iter().flatten().fold(0.0, |largest: f64, part| largest.max(part.abs()))
    }

    /// How the comparison went on this side, if it can be identified there: up to where the paths
    /// diverge, or to the end if both runs made as many.
    fn outcome(&self, here: &Log, number: usize) -> Option<Outcome> {
        let there = self.log();
        let is_known = here.count == there.count || number <= self.same_until;
        there.outcomes.get(number).copied().filter(|_| is_known)
    }

    /// Whether comparisons of the same numbers as this one are made as often as at the point.
    pub(super) fn still_makes(&self, suspect: &Suspect, here: &Log) -> bool {
        let count = |log: &Log| log.suspects.iter().filter(|other| other.is_like(suspect)).count();
        count(self.log()) >= count(here)
    }

    /// How the comparisons went beyond the thresholds.
    fn log(&self) -> &Log {
        let far = self.pairs.first().map_or(self.runs.len() - 1, |pair| pair + 1);
        &self.runs[far].found.log
    }
}

/// Whether a comparison went as it goes on neither side; `None` if these sides cannot tell.
pub(super) fn is_of_point(suspect: &Suspect, here: &Log, sides: &[&Side<'_>]) -> Option<bool> {
    let outcomes = || sides.iter().map(|side| side.outcome(here, suspect.number));
    let at_point = here.outcomes.get(suspect.number).copied();
    if outcomes().any(|outcome| outcome.is_some() && outcome == at_point) {
        return Some(false);
    }
    if suspect.may_be_of_point() {
        // What is left to one side is left to the other, too, if that is not known.
        return outcomes().flatten().next().map(|_| true);
    }
    // Of an order it is not known which of `<`, `<=` was asked: each of them goes as on one of two different
    // sides.
    let [one, other] = sides else { return None };
    let outcome = |side: &Side<'_>| side.outcome(here, suspect.number);
    outcome(one).zip(outcome(other)).map(|(one, other)| one == other)
}
