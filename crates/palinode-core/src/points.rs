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
//! What looking takes besides the runs themselves (points, parts, logs) is charged to an [`Account`] before it is allocated; where that has a limit, more is an error.
//!
//! Known limits: a gap below a millionth of a part, or a ten-millionth of the largest one, is not seen; after paths diverged with different numbers of decisions, later ones cannot
//! be told apart and count as kinks.

use crate::decision::{self, Log, Outcome, Suspect, apart};
use crate::error::Error;
use core::cell::{Cell, RefCell};
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

/// The bytes of looking to the sides: how many there may be, and the most that there were.
#[doc(hidden)]
#[derive(Debug)]
pub struct Account {
    limit: usize,
    held: Cell<usize>,
    most: Cell<usize>,
    /// Why looking stopped, if it did: nothing more is looked at.
    refusal: RefCell<Option<Error>>,
}

impl Default for Account {
    fn default() -> Self {
        Account::within(usize::MAX)
    }
}

impl Account {
    /// At most so many.
    pub const fn within(limit: usize) -> Self {
        Account { limit, held: Cell::new(0), most: Cell::new(0), refusal: RefCell::new(None) }
    }

    /// At most so many from now on.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Forgets how many there were.
    pub fn forget(&mut self) {
        self.most.set(0);
    }

    /// The most that there were at once.
    pub fn most(&self) -> usize {
        self.most.get()
    }

    /// Takes so many bytes until what it gives is dropped; `None`, and looking stops, if there are not so many left.
    pub fn charge(&self, bytes: usize) -> Option<Charge<'_>> {
        let held = self.held.get().saturating_add(bytes);
        if self.has_refused() {
            return None;
        }
        if held > self.limit {
            self.refuse(Error::ByteLimit { limit: self.limit, needed: held, node: 0 });
            return None;
        }
        self.held.set(held);
        self.most.set(self.most.get().max(held));
        Some(Charge { account: self, bytes })
    }

    /// Looking stops for this reason; a run to a side that has no room for itself is no side without a derivative.
    pub fn refuse(&self, error: Error) {
        self.refusal.borrow_mut().get_or_insert(error);
    }

    fn refuse_beyond_limit(&self) {
        self.refuse(Error::ByteLimit { limit: self.limit, needed: self.limit.saturating_add(1), node: 0 });
    }

    fn has_refused(&self) -> bool {
        self.refusal.borrow().is_some()
    }

    /// Why looking stopped, if it did; from now on it goes on.
    pub fn refused(&self) -> Option<Error> {
        self.refusal.take()
    }

    fn left(&self) -> usize {
        self.limit - self.held.get().min(self.limit)
    }
}

/// Bytes that are held.
#[doc(hidden)]
#[derive(Debug)]
pub struct Charge<'a> {
    account: &'a Account,
    bytes: usize,
}

impl Charge<'_> {
    /// So many more, which were asked for before.
    fn add(&mut self, bytes: usize) {
        let held = self.account.held.get() + bytes;
        self.account.held.set(held);
        self.account.most.set(self.account.most.get().max(held));
        self.bytes += bytes;
    }
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        self.account.held.set(self.account.held.get() - self.bytes);
    }
}

/// The lists of at most four entries that [`examine`] makes, all together.
const FEW: usize = 256;

/// A derivative as a function of the point, which adds its parts to a list if it is given one.
type Run<'a, S, R, E> = dyn FnMut(&[S], Option<&mut Vec<f64>>) -> Result<R, E> + 'a;

/// Runs at `x`, and looks to the sides if a comparison there was suspicious. The order is that of the highest derivative.
#[doc(hidden)]
#[inline]
pub fn verified<S: Scalar, R, E: From<Error>>(
    x: &[S],
    of: (Parts, usize),
    run: impl FnMut(&[S], Option<&mut Vec<f64>>) -> Result<R, E>,
) -> Result<R, E> {
    verified_within(&Account::default(), x, of, run)
}

/// The same, and what looking takes is charged. Parts by input are planned to be as large as the inputs.
#[doc(hidden)]
#[inline]
pub fn verified_within<S: Scalar, R, E: From<Error>>(
    account: &Account,
    x: &[S],
    of: (Parts, usize),
    mut run: impl FnMut(&[S], Option<&mut Vec<f64>>) -> Result<R, E>,
) -> Result<R, E> {
    // One copy of the user's code is enough.
    let run: &mut Run<'_, S, R, E> = &mut run;
    let (result, suspicion) = decision::suspecting(|| run(x, None));
    match suspicion {
        None => result,
        Some(threshold) => {
            drop(result?);
            examine(account, x, of, threshold, run)
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
struct Side<'a> {
    near: Vec<f64>,
    far: Vec<f64>,
    near_log: Log,
    far_log: Log,
    /// For the bytes of these.
    _charges: [Option<Charge<'a>>; 2],
}

impl Side<'_> {
    /// Part `i` of the one-sided derivative, and how wrong it may be.
    fn part(&self, i: usize) -> (f64, f64) {
        let (near, far) = (self.near[i], self.far[i]);
        ((FAR * near - far) / (FAR - 1.0), OF_CHANGE * (near - far).abs())
    }

    /// How the comparison went on this side, if it can be told which one it is there: up to where the paths diverge, or to the end if both
    /// runs made as many.
    fn outcome(&self, here: &Log, number: usize) -> Option<Outcome> {
        let (here, there) = (&here.outcomes, &self.far_log.outcomes);
        let same_until = || here[..number].iter().zip(there).all(|(a, b)| a == b);
        (here.len() == there.len() || same_until()).then(|| there.get(number).copied()).flatten()
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
    account: &Account,
    x: &[S],
    (kind, order): (Parts, usize),
    threshold: f64,
    run: &mut Run<'_, S, R, E>,
) -> Result<R, E> {
    let epsilon = epsilon::<S>();
    let order = order.max(1) as i32;
    let mut relative = epsilon.powf(1.0 / f64::from(order + 2));
    let mut least = 64.0 * threshold;
    account.refusal.take();
    let _lists = account.charge(FEW + x.len() * size_of::<Option<bool>>());
    // For the point, if it is not this one.
    let of_point = || account.charge(size_of_val(x));
    let run_at = |run: &mut Run<'_, S, R, E>, point: &[S]| {
        let parts = x.len() * (size_of::<S>() / size_of::<f64>()).max(1);
        let mut charge = account.charge(parts * size_of::<f64>())?;
        let mut parts = Vec::with_capacity(parts);
        let room = account.left();
        let (ran, log) = apart(room, || run(point, Some(&mut parts)).ok())?;
        charge.add(log.taken_of(room));
        if log.is_cut {
            account.refuse_beyond_limit();
        }
        (!account.has_refused() && parts.iter().all(|part| part.is_finite())).then_some(())?;
        ran.map(|_| (parts, log, charge))
    };
    let Some((here, log, _here)) = run_at(run, x) else {
        // It has parts that cannot be compared.
        return account.refused().map_or_else(|| once_more(x, run), |refusal| Err(refusal.into()));
    };
    let mut sides: [Option<Side<'_>>; 2] = [None, None];
    // Also upwards only, for what is defined for positive numbers, and all alike, for what must stay symmetric; and farther, if a threshold is on something that grows slowly.
    let turns: [fn(f64) -> f64; 3] = [|weight| weight, f64::abs, |_| 1.0];
    for turn in turns {
        for _ in 0..3 {
            sides = [1.0, -1.0].map(|sign| {
                let way = |weight: f64| sign * turn(weight);
                let _point = of_point()?;
                let (near, near_log, of_near) = run_at(run, &moved(x, relative, least, way))?;
                let (far, far_log, of_far) = run_at(run, &moved(x, FAR * relative, FAR * least, way))?;
                let same_parts = near.len() == here.len() && far.len() == here.len();
                let _charges = [Some(of_near), Some(of_far)];
                same_parts.then_some(Side { near, far, near_log, far_log, _charges })
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
            let _points = (of_point()?, of_point()?);
            let mut point = x.to_vec();
            point[input] = moved(x, FAR * relative, FAR * least, |weight| sign * weight)[input];
            let (far, far_log, of_far) = run_at(run, &point)?;
            Some(Side { far, far_log, _charges: [Some(of_far), None], ..Side::default() })
        });
        let known: Vec<&Side<'_>> = beside.iter().flatten().collect();
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
    let refusal = refusal(&here, &log, &sides, noise, &mut is_excused);
    if let Some(refusal) = account.refused().or(refusal) {
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
    sides: &[Option<Side<'_>>; 2],
    noise: f64,
    is_excused: &mut dyn FnMut(usize) -> bool,
) -> Option<Error> {
    let known: Vec<&Side<'_>> = sides.iter().flatten().collect();
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
fn is_of_point(suspect: &Suspect, here: &Log, sides: &[&Side<'_>]) -> bool {
    let outcomes: Option<Vec<Outcome>> =
        sides.iter().map(|side| side.outcome(here, suspect.number)).collect();
    let Some(outcomes) = outcomes else { return false };
    if suspect.is_equality || !suspect.is_tie() {
        return outcomes.iter().all(|&outcome| outcome != here.outcomes[suspect.number]);
    }
    // Of an order it is not known which of `<`, `<=` was asked: each of them goes as on one of two different sides.
    let differs = |outcome: &Outcome| *outcome != Outcome::Order(Some(Ordering::Equal));
    outcomes.len() == 2 && outcomes[0] == outcomes[1] && outcomes.iter().all(differs)
}
