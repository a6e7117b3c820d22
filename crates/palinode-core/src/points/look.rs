//! Where is looked: directions and distances.
//!
//! Input: a derivative as a function of the point, which had something suspicious there. Output: the
//! derivative, or an error.
//!
//! Distances begin at the cube root of the number's precision, which is best for first derivatives, and grow
//! by 16, two times at least, up to what is best for the highest order. They are beyond the thresholds that
//! were compared with. If a comparison goes everywhere as at the point, and the point has small entries, it
//! is looked farther: a rotation by 1e-9 is as none for code that computes its cosine.
//!
//! Where the closure fails to one side, the other one speaks; where it fails on both, other directions and
//! smaller distances do.

use super::side::{Beside, Found, Side};
use super::verdict::{Here, Sides, Vague, Verdict, known, named};
use super::{Account, Charge, Distance, FEW, Kind, Parts, Run, moved, of_input, scales, weight};
use crate::decision::{self, Log, Suspicion};
use crate::error::Error;
use core::cell::RefCell;
use palinode_num::Scalar;

/// How far the far run of a side is, in distances of the near one.
const FAR: f64 = 16.0;

/// Nothing is moved by more of its size: beyond, it is another point.
const FARTHEST: f64 = 0.5;

/// If a comparison goes as at the point up to this distance, relative to 1, it is looked farther.
const CLOSE: f64 = 1e-7;

/// How much farther, at a time.
const STRIDE: f64 = 256.0;

/// How often, at most.
pub(super) const MOST_STRIDES: usize = 8;

/// So many distances more, if a threshold is on something that grows slowly.
pub(super) const MORE_LEVELS: usize = 2;

/// Where the closure fails near the point, how much closer it is tried.
const CLOSER: f64 = 1.0 / 4096.0;

/// Up to so many inputs the signs are looked for with which the closure does not fail.
const MOST_SIGNS: usize = 64;

/// So many groups of inputs are tried, at most, whether they are ordinary.
const MOST_TRIALS: usize = 1000;

thread_local! {
    /// What the last driver refused that was looked at from both sides, until the run around it is over.
    static REFUSED: RefCell<Option<Error>> = const { RefCell::new(None) };
}

/// Runs `f`, and says what a driver inside it refused.
fn with_refusals<T>(f: impl FnOnce() -> T) -> (T, Option<Error>) {
    struct Outer(Option<Error>);
    impl Drop for Outer {
        fn drop(&mut self) {
            let _ = REFUSED.try_with(|refused| refused.replace(self.0.take()));
        }
    }
    let take = || REFUSED.try_with(RefCell::take).ok().flatten();
    let _outer = Outer(take());
    let result = f();
    (result, take())
}

/// A derivative that is looked at.
struct Look<'a, 'r, S, R, E> {
    account: &'a Account,
    x: &'a [S],
    run: &'a mut Run<'r, S, R, E>,
    here: Here<'a>,
    /// Parts that are not finite at the point, and not looked at.
    infinite: Vec<usize>,
    /// Of each input, whether no comparison is of the point along it alone, once that was tried.
    tried_alone: Vec<Option<bool>>,
    /// How many groups of inputs may still be tried.
    trials: usize,
    /// Whether a driver inside the closure refuses at the point; then it may do so beside it.
    refuses_inside: bool,
    /// What a driver inside the closure refused near the point.
    refused: Option<Error>,
    nearest: Distance,
    levels: usize,
}

#[cold]
#[inline(never)]
pub(super) fn examine<S: Scalar, R, E: From<Error>>(
    account: &Account,
    x: &[S],
    of: Kind,
    run: &mut Run<'_, S, R, E>,
) -> Result<R, E> {
    account.refused();
    let _lists = account.charge(FEW + x.len() * of_input::<S>());
    let mut parts = Vec::new();
    let budget = account.of_log();
    let (ran, refused) = with_refusals(|| decision::logged(budget, || run(x, Some(&mut parts)).map(drop)));
    account.run_is_over();
    let Some((ran, mut log)) = ran else { return once_more(x, run) };
    let charge = charge_of(account, &parts, &log, budget);
    if let Some(refusal) = account.refused() {
        return Err(refusal.into());
    }
    ran?;
    let Some(charge) = charge else { return once_more(x, run) };
    if !parts.iter().any(|part| part.is_finite()) {
        // There is nothing that can be compared.
        return once_more(x, run);
    }
    // Of parts that are not finite nothing can be said; they hide no other.
    let infinite: Vec<usize> = (0..parts.len()).filter(|&part| !parts[part].is_finite()).collect();
    let Some(_of_infinite) = account.charge(infinite.capacity() * size_of::<usize>()) else {
        return Err(account.refused().map_or_else(|| unreachable!("it has refused"), Into::into));
    };
    infinite.iter().for_each(|&part| parts[part] = 0.0);
    if !super::has_small(x) {
        log.suspects.retain(|suspect| suspect.suspicion == Suspicion::Exact);
    }
    let epsilon = epsilon::<S>();
    let nearest = nearest::<S>(&log);
    let levels = levels(epsilon, of.1);
    let here = Here { parts, log, _charge: charge, of, inputs: x.len(), epsilon };
    let mut look = Look {
        account,
        x,
        run,
        here,
        infinite,
        tried_alone: vec![None; x.len()],
        trials: MOST_TRIALS,
        refuses_inside: refused.is_some(),
        refused: None,
        nearest,
        levels,
    };
    let refusal = look.refusal();
    if let Some(excess) = account.refused() {
        return Err(excess.into());
    }
    match refusal {
        Some(error) => {
            let _ = REFUSED.try_with(|refused| refused.replace(Some(error.clone())));
            Err(error.into())
        }
        None => once_more(x, look.run),
    }
}

/// Where is looked first: best for first derivatives, and beyond the thresholds that were compared with.
pub(super) fn nearest<S: Scalar>(log: &Log) -> Distance {
    let threshold = log.suspects.iter().fold(0.0, |most: f64, suspect| most.max(suspect.threshold()));
    Distance { relative: epsilon::<S>().powf(1.0 / 3.0), least: 64.0 * threshold }
}

/// At how many distances a derivative of this order is computed to each side, if thresholds do not ask for
/// more.
pub(super) fn levels(epsilon: f64, order: usize) -> usize {
    let best = epsilon.powf(1.0 / (order.max(1) + 2) as f64);
    3 + (1..).take_while(|&k| epsilon.powf(1.0 / 3.0) * FAR.powi(k) < 0.5 * best).count()
}

/// For the bytes of what a run found; `None` if there were too few.
pub(super) fn charge_of<'a>(
    account: &'a Account,
    parts: &Vec<f64>,
    log: &Log,
    budget: usize,
) -> Option<Charge<'a>> {
    if log.is_cut {
        account.log_was_cut();
    }
    account.charge(parts.capacity() * size_of::<f64>() + log.taken_of(budget))
}

/// What a run near the point found, if it did not fail and there are bytes for it.
pub(super) fn found_beside<'a>(
    account: &'a Account,
    run: impl FnOnce(&mut Vec<f64>) -> bool,
) -> Option<Found<'a>> {
    let (budget, mut parts) = (account.of_log(), Vec::new());
    let ran = decision::beside(budget, || run(&mut parts));
    account.run_is_over();
    let (is_ok, log) = ran?;
    let _charge = Some(charge_of(account, &parts, &log, budget)?);
    is_ok.then_some(Found { parts, log, _charge })
}

/// Last, so that a closure leaves behind what it left at the point. Drivers inside the closure verify what
/// they answer, as they did in the first run.
pub(super) fn once_more<S: Scalar, R, E>(x: &[S], run: &mut Run<'_, S, R, E>) -> Result<R, E> {
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

impl<'a, S: Scalar, R, E: From<Error>> Look<'a, '_, S, R, E> {
    /// What is wrong with the derivative at the point.
    fn refusal(&mut self) -> Option<Error> {
        let Some(first) = self.first_sides() else {
            let (decision, left, right) = named(self.here.log.suspects.first());
            return self.refused.take().or(Some(Error::OfPointAlone { decision, left, right }));
        };
        let _of_verdict = self.account.charge(Verdict::bytes(&self.here))?;
        let mut verdict = Verdict::new(&self.here);
        verdict.see(&self.here, &first);
        drop(first);
        if self.refused.is_none() {
            self.refusal_of(&verdict, Vague::Never)?;
            // Where many kinks meet (equal numbers that are sorted) a single direction passes by most of
            // them; and what is rounding is another number each time.
            let n = self.x.len();
            // Not evenly: a matrix of equal entries would stay one of low rank.
            let in_order = |i: usize| 0.5 + (i as f64 + 0.5 * weight(i).abs()) / n as f64;
            let other = |k: usize| move |i: usize| weight(i + k * 1_000_003);
            let upwards = |k: usize| move |i: usize| weight(i + k * 1_000_003).abs();
            let mut look = |way: &dyn Fn(usize) -> f64| {
                let sides = self.sides(way, self.nearest);
                verdict.see(&self.here, &sides);
            };
            look(&in_order);
            for k in 1..4 {
                look(&other(k));
                look(&upwards(k));
            }
        }
        self.refused.take().or_else(|| self.refusal_of(&verdict, Vague::AtKinks))
    }

    fn refusal_of(&mut self, verdict: &Verdict, vague: Vague) -> Option<Error> {
        // A partial derivative is right if no comparison is of the point along its own input: then it is that
        // of the branch.
        let (account, here, x, run) = (self.account, &self.here, self.x, &mut *self.run);
        let (tried, trials, at) = (&mut self.tried_alone, &mut self.trials, self.nearest.times(FAR));
        let mut is_ordinary = |group: Group<'_>| {
            let beside = [1.0, -1.0].map(|sign| {
                let way = |i: usize| if group.contains(i) { sign * weight(i) } else { 0.0 };
                let found = found_beside(account, |_| run(&moved(x, at, way), None).is_ok())?;
                Some(Side::of(found, at.relative, &here.log))
            });
            here.is_ordinary(&beside)
        };
        let mut are_excused = |mut inputs: Vec<usize>| {
            inputs.retain(|&input| tried[input] != Some(true));
            let is_known_not = inputs.iter().any(|&input| tried[input] == Some(false));
            let mut is_ordinary = |group: Group<'_>| {
                *trials > 0 && {
                    *trials -= 1;
                    is_ordinary(group)
                }
            };
            here.of.0 == Parts::ByInput
                && !is_known_not
                && Group::of(&inputs).are_all(true, tried, &mut is_ordinary)
        };
        verdict.refusal(here, vague, &mut are_excused)
    }

    /// The first direction along which something can be computed.
    fn first_sides(&mut self) -> Option<Sides<'a>> {
        let at = self.nearest;
        // Also upwards only, for what is defined for positive numbers, and all alike, for what must stay
        // symmetric.
        let ways: [fn(usize) -> f64; 3] = [weight, |i| weight(i).abs(), |_| 1.0];
        for way in ways {
            let sides = self.sides(&way, at);
            if !known(&sides).is_empty() {
                return Some(sides);
            }
        }
        for at in [at, closer(at), closer(closer(at))] {
            let signs = self.signs(at);
            if signs.iter().all(|&sign| sign == 0.0) {
                continue;
            }
            let signed = |i: usize| signs[i] * weight(i).abs();
            let ways: [&dyn Fn(usize) -> f64; 2] = [&signed, &weight];
            for way in ways {
                let sides = self.sides(way, at);
                if !known(&sides).is_empty() {
                    return Some(sides);
                }
            }
        }
        None
    }

    /// For each input a sign with which it can be moved alone, 0 if there is none.
    fn signs(&mut self, at: Distance) -> Vec<f64> {
        let inputs = self.x.len();
        if inputs > MOST_SIGNS {
            return vec![1.0; inputs];
        }
        let sign = |input: usize| {
            let can = |&sign: &f64| {
                let way = |i: usize| if i == input { sign * weight(i).abs() } else { 0.0 };
                self.run_at(at.times(FAR), &way).is_some()
            };
            [1.0, -1.0].into_iter().find(can).unwrap_or(0.0)
        };
        (0..inputs).map(sign).collect()
    }

    /// Both ways along a direction, from this distance on.
    fn sides(&mut self, way: &dyn Fn(usize) -> f64, nearest: Distance) -> Sides<'a> {
        let mut sides = [1.0, -1.0].map(|sign| self.side(&|i| sign * way(i), nearest));
        self.look_farther(&mut sides, way);
        for (side, sign) in sides.iter_mut().zip([1.0, -1.0]) {
            let Some(side) = side else { continue };
            side.settle(&self.here.log);
            if self.here.is_unsure(side)
                && let Some(nearer) = self.run_at(nearest.times(1.0 / FAR), &|i| sign * way(i))
            {
                side.take_nearer(nearer);
            }
        }
        sides
    }

    fn side(&mut self, way: &dyn Fn(usize) -> f64, nearest: Distance) -> Option<Side<'a>> {
        let mut side = Side::default();
        let mut at = nearest;
        for count in 1.. {
            let Some(found) = self.run_at(at, way) else { break };
            side.runs.push(Beside { relative: at.relative, found, to_next: None, is_farther: false });
            let factor = FAR.min(FARTHEST / at.relative);
            if factor < 1.5 {
                break;
            }
            // Farther, if a threshold is on something that grows slowly.
            if count >= self.levels + MORE_LEVELS
                || (count >= self.levels && !side.is_too_near(&self.here.log))
            {
                break;
            }
            side.runs[count - 1].to_next = Some(factor);
            at = at.times(factor);
        }
        side.runs.last_mut()?.to_next = None;
        (side.runs.len() > 1).then_some(side)
    }

    /// If a comparison goes everywhere as at the point, and entries of the point are small: up to what is
    /// next to 1.
    fn look_farther(&mut self, sides: &mut Sides<'a>, way: &dyn Fn(usize) -> f64) {
        let nearest = self.nearest;
        if !super::has_small(self.x) {
            return;
        }
        let smallest = scales(self.x).fold(f64::INFINITY, f64::min) * nearest.relative;
        let least = smallest.max(nearest.least).max(f64::MIN_POSITIVE);
        if FAR * least >= CLOSE || self.here.log.suspects.is_empty() {
            return;
        }
        // From the farthest down to what was looked at.
        let mut all = vec![nearest.relative];
        while all[all.len() - 1] > STRIDE * FAR * least && all.len() < MOST_STRIDES {
            all.push(all[all.len() - 1] / STRIDE);
        }
        while let Some(least) = all.pop() {
            let log = &self.here.log;
            let stays = |n: &usize| sides.iter().flatten().all(|side| side.goes_as(log, &log.suspects[*n]));
            let unmoved: Vec<usize> = (0..log.suspects.len()).filter(stays).collect();
            let own = |side: &Side<'_>| side.runs.last().map_or(0, |run| run.found.exact_suspects());
            if unmoved.is_empty() && sides.iter().flatten().all(|side| own(side) == 0) {
                return;
            }
            let at = Distance { relative: nearest.relative, least };
            for (side, sign) in sides.iter_mut().zip([1.0, -1.0]) {
                let Some(side) = side else { continue };
                let way = |i: usize| sign * way(i);
                let Some(near) = self.run_at(at, &way) else { continue };
                let log = &self.here.log;
                let moves = |n: &usize| !near.goes_as(log, log.suspects[*n].number);
                // Beyond one threshold there may be another one.
                if !unmoved.iter().any(moves) && near.exact_suspects() >= own(side) {
                    continue;
                }
                let Some(far) = self.run_at(at.times(FAR), &way) else { continue };
                let run = |found, to_next| Beside { relative: at.relative, found, to_next, is_farther: true };
                side.runs.push(run(near, Some(FAR)));
                side.runs.push(run(far, None));
            }
        }
    }

    /// The derivative near the point, if there is one that can be compared.
    fn run_at(&mut self, at: Distance, way: &dyn Fn(usize) -> f64) -> Option<Found<'a>> {
        if self.account.has_refused() {
            return None;
        }
        let (account, run, point) = (self.account, &mut *self.run, moved(self.x, at, way));
        let (found, refused) =
            with_refusals(|| found_beside(account, |parts| run(&point, Some(parts)).is_ok()));
        if !self.refuses_inside {
            self.refused = self.refused.take().or(refused);
        }
        let mut found = found.filter(|found| found.parts.len() == self.here.parts.len())?;
        self.infinite.iter().for_each(|&part| found.parts[part] = 0.0);
        found.parts.iter().all(|part| part.is_finite()).then_some(found)
    }
}

/// Some of a sorted list of inputs: from one place to before another, by this stride.
#[derive(Clone, Copy)]
struct Group<'i> {
    inputs: &'i [usize],
    places: (usize, usize),
    stride: usize,
}

impl<'i> Group<'i> {
    fn of(inputs: &'i [usize]) -> Self {
        Group { inputs, places: (0, inputs.len()), stride: 1 }
    }

    fn contains(&self, input: usize) -> bool {
        let (from, to) = self.places;
        self.inputs
            .binary_search(&input)
            .is_ok_and(|place| (from..to).contains(&place) && (place - from).is_multiple_of(self.stride))
    }

    fn each(&self) -> impl Iterator<Item = usize> + use<'i> {
        let (from, to) = self.places;
        self.inputs[from..to].iter().step_by(self.stride).copied()
    }

    /// Every other one, or those before the middle; and the others. What is compared together is often next
    /// to each other.
    fn halves(self, by_turns: bool) -> [Self; 2] {
        let (Group { places: (from, to), stride, .. }, count) = (self, self.each().count());
        if by_turns {
            let every_other = |from| Group { places: (from, to), stride: 2 * stride, ..self };
            [every_other(from), every_other(from + stride)]
        } else {
            let middle = from + stride * (count / 2);
            [Group { places: (from, middle), ..self }, Group { places: (middle, to), ..self }]
        }
    }

    /// Whether all inputs are ordinary: all together, or each half, which is made by turns or not, and then
    /// the other way. It ends with the first one that is not.
    fn are_all(
        self,
        by_turns: bool,
        tried: &mut [Option<bool>],
        is_ordinary: &mut dyn FnMut(Group<'_>) -> bool,
    ) -> bool {
        let count = self.each().count();
        let is_ordinary_now = count == 0 || is_ordinary(self);
        if is_ordinary_now || count == 1 {
            self.each().for_each(|input| tried[input] = Some(is_ordinary_now));
            return is_ordinary_now;
        }
        let halves = self.halves(by_turns);
        halves.into_iter().all(|half| half.are_all(!by_turns, tried, is_ordinary))
    }
}

/// Closer than what is best, and maybe within thresholds.
fn closer(at: Distance) -> Distance {
    Distance { relative: CLOSER * at.relative, least: 0.0 }
}
