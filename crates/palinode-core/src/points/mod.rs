//! Paths that exist only at a point ([0028](../../../../docs/adr/0028-points.md),
//! [0037](../../../../docs/adr/0037-points-again.md)).
//!
//! Input: a derivative as a function of the point, its parts as plain numbers. Output: the derivative, or an
//! error that names the decision.
//!
//! Code takes short cuts: `if x == 0`, `if |off| <= epsilon`, `if q.is_nan()`. A branch that is taken only
//! there is not the function's, and its derivative is not the function's either. So where the hook noted a
//! suspicious comparison (`decision/`), and only there, the derivative is computed again to both sides along
//! a pseudo-random direction, at two distances at least. Extrapolated to the point, these are the one-sided
//! derivatives. What is found at the point must lie between them, where it lies at a kink; and if a
//! comparison went as it goes on neither side, all its parts together must be those of one of the two, or on
//! the way from one to the other. Before anything is refused, other directions are looked along.
//!
//! | file | |
//! |---|---|
//! | `mod.rs` | what drivers call |
//! | `account.rs` | the bytes that looking takes, and may take |
//! | `look.rs` | where is looked: directions, distances, what to do if the closure fails there |
//! | `side.rs` | the derivative on one side, extrapolated, and how wrong that may be |
//! | `verdict.rs` | whether what was found agrees with the sides |
//! | `undefined.rs` | what is infinite or NaN at the point, because of a comparison |
//!
//! Invariants: nothing suspicious costs nothing and allocates nothing; the last run is the one at the point,
//! so that whatever a closure leaves behind is what it left there; runs on both sides are seen by no other
//! scope. Drivers inside the closure verify their own level in all of these runs, and one that refuses near
//! the point makes the outer one refuse. If nothing can be computed near the point, that is refused, too.
//!
//! Known limits: a gap below a millionth of a part is not seen, nor what is chosen by `Scalar::select` (rules
//! do so too) or `Scalar::peek`, or read from the text of a number; after paths diverged with different
//! numbers of decisions, later ones cannot be told apart, and orders among them count as kinks; rows of more
//! than 32 outputs of a recording are added up in groups, and those of a step with a large state in one.

mod account;
mod look;
mod side;
mod undefined;
mod verdict;

pub use crate::decision::Suspicion;
use crate::decision::{self, TINY};
use crate::error::Error;
pub use account::{Account, Charge};
use palinode_num::{Key, Scalar, lanes};

const DIRECTION: Key = Key::from_seed(0x9a11_0de0);

/// Rows of a recording are looked at one by one, or in so many groups.
const MOST_ROWS: usize = 32;

/// What the parts of a derivative are.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// Row after row, each with a part for every input. If the order is two, the first row is the gradient.
    ByInput,
    /// In directions, each of the highest order.
    Along,
    /// By order, from the first.
    ByOrder,
}

/// What the parts of a derivative are, and the highest order among them.
#[doc(hidden)]
pub type Kind = (Parts, usize);

/// A derivative as a function of the point, which adds its parts to a list if it is given one.
type Run<'a, S, R, E> = dyn FnMut(&[S], Option<&mut Vec<f64>>) -> Result<R, E> + 'a;

/// Runs at `x`, and looks at both sides if a comparison there was suspicious.
#[doc(hidden)]
#[inline]
pub fn verified<S: Scalar, R, E: From<Error>>(
    x: &[S],
    of: Kind,
    run: impl FnMut(&[S], Option<&mut Vec<f64>>) -> Result<R, E>,
) -> Result<R, E> {
    verified_within(&Account::default(), x, of, run)
}

/// The same, and what looking takes is charged. A run that makes its list of parts exactly as long as it has
/// to be, and asks for the bytes of it before, stays within the account.
#[doc(hidden)]
#[inline]
pub fn verified_within<S: Scalar, R, E: From<Error>>(
    account: &Account,
    x: &[S],
    of: Kind,
    mut run: impl FnMut(&[S], Option<&mut Vec<f64>>) -> Result<R, E>,
) -> Result<R, E> {
    // One copy of the user's code is enough.
    let run: &mut Run<'_, S, R, E> = &mut run;
    if const { S::LANES > 1 } && lanes::are_apart() {
        let (result, left) = lanes::together(S::LANES, || examined(account, x, of, run));
        return match left.first() {
            Some(&(lane, _)) => Err(Error::LanesApart { lane }.into()),
            None => result,
        };
    }
    examined(account, x, of, run)
}

#[inline]
fn examined<S: Scalar, R, E: From<Error>>(
    account: &Account,
    x: &[S],
    of: Kind,
    run: &mut Run<'_, S, R, E>,
) -> Result<R, E> {
    let (ran, noted) = decision::suspecting(|| decision::attempt(|| run(x, None)));
    let result = match ran {
        Err(_) if noted.has_denied => return undefined::plainly(account, x, of, run),
        Err(panic) => std::panic::resume_unwind(panic),
        Ok(_) if noted.is_in_vain() => return undefined::plainly(account, x, of, run),
        Ok(result) => result,
    };
    if !matters(noted.suspicion, || has_small(x)) {
        return result;
    }
    if noted.is_undefined {
        return undefined::explained(account, x, run);
    }
    drop(result?);
    look::examine(account, x, of, run)
}

/// Whether an entry is small beside the thresholds that are suspicious, and not zero.
#[cold]
fn has_small<S: Scalar>(x: &[S]) -> bool {
    x.iter().filter_map(|x| x.glance()).any(is_small)
}

fn is_small(x: f64) -> bool {
    x != 0.0 && x.abs() <= TINY
}

/// Whether something so suspicious is to be looked at, at a point that has small entries or not.
#[inline]
fn matters(suspicion: Suspicion, has_small: impl FnOnce() -> bool) -> bool {
    suspicion == Suspicion::Exact || (suspicion == Suspicion::Small && has_small())
}

/// Runs `f` on a point, and says whether something in it is to be [`verified`]. That is for long runs, which
/// are then taken again in parts. The point is asked for afterwards, if at all.
#[doc(hidden)]
pub fn suspicious<R>(point: impl IntoIterator<Item = f64>, f: impl FnOnce() -> R) -> (R, bool) {
    let (result, suspicion) = suspicion_of(f);
    (result, is_suspicious(suspicion, point))
}

/// Runs `f`, and says how suspicious its comparisons were: whether that matters depends on the points of its
/// parts. What plain numbers may do better is to be verified in any case.
#[doc(hidden)]
pub fn suspicion_of<R>(f: impl FnOnce() -> R) -> (R, Suspicion) {
    let (result, noted) = decision::suspecting(f);
    (result, if noted.is_in_vain() { Suspicion::Exact } else { noted.suspicion })
}

/// A run came to numbers that nobody refuses for being infinite or NaN. If they are, and a zero with a
/// derivative was said to be none on the way, that is noted.
#[doc(hidden)]
#[inline]
pub fn note(are_finite: impl FnOnce() -> bool) {
    if decision::has_denied() && !are_finite() {
        decision::note_undefined();
    }
}

/// Whether something so suspicious is to be [`verified`] at this point.
#[doc(hidden)]
pub fn is_suspicious(suspicion: Suspicion, point: impl IntoIterator<Item = f64>) -> bool {
    matters(suspicion, || point.into_iter().any(is_small))
}

/// Whether the run that is going on has met something suspicious.
#[doc(hidden)]
#[inline(always)]
pub fn has_suspected() -> bool {
    decision::has_suspected()
}

/// Runs what has been run before, to verify it: its decisions are not counted again.
#[doc(hidden)]
pub fn again<R>(f: impl FnOnce() -> R) -> R {
    decision::uncounted(f)
}

/// Runs code that was made of the program that is looked at, such as its derivative: its comparisons are not
/// the program's.
#[doc(hidden)]
pub fn unseen<R>(f: impl FnOnce() -> R) -> R {
    decision::unseen(f)
}

/// The lists of a few entries each, all together: two of runs, with a capacity of twice what they hold at
/// most, and some of less.
const FEW: usize = 2 * 8 * size_of::<side::Beside<'static>>() + 256;

/// Enough for the log of a few comparisons.
const LEAST_LOG: usize = 256;

/// What is known of each input.
const fn of_input<S>() -> usize {
    // A point beside this one, whether the input is looked at alone, and its sign; later, its number in a
    // list of those that are.
    size_of::<S>() + size_of::<Option<bool>>() + size_of::<f64>()
}

/// How many runs are kept at once, at most: that at the point, those to both sides with a nearer one each,
/// and the next one.
fn most_runs(point: &[f64], order: usize) -> usize {
    let farther = if has_small(point) { 2 * look::MOST_STRIDES } else { 0 };
    2 + 2 * (1 + look::levels(f64::EPSILON, order) + look::MORE_LEVELS + farther)
}

/// The bytes that a look at both sides of a point keeps while a derivative of this order by all its numbers
/// is computed: the point itself and what is made of it, what is found in all runs, and short logs.
#[doc(hidden)]
pub fn kept_bytes(point: &[f64], order: usize) -> usize {
    let (numbers, runs) = (point.len(), most_runs(point, order));
    let each = (2 + runs) * size_of::<f64>() + of_input::<f64>() + verdict::OF_PART;
    numbers.saturating_mul(each).saturating_add(FEW + runs * LEAST_LOG)
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

/// Which of so many groups a row belongs to: neighbours are together, which often are of one scale.
pub(crate) fn group_of(row: usize, rows: usize, groups: usize) -> usize {
    row * groups / rows.max(1)
}

/// In how many groups so many rows are looked at.
pub(crate) fn group_count(rows: usize) -> usize {
    rows.min(MOST_ROWS)
}

/// Weights that add up the rows of each group, a list per group, one after the other.
#[doc(hidden)]
pub fn weights_of_groups<S: Scalar>(rows: usize, groups: usize) -> impl Iterator<Item = Vec<S>> {
    let weight_in = move |group: usize, row: usize| match group_of(row, rows, groups) == group {
        true => S::from_f64(weight(row)),
        false => S::zero(),
    };
    (0..groups).map(move |group| (0..rows).map(|row| weight_in(group, row)).collect())
}

/// How far from the point is looked: relative to its entries, and so far at least.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Distance {
    pub(crate) relative: f64,
    pub(crate) least: f64,
}

impl Distance {
    fn times(self, factor: f64) -> Self {
        Distance { relative: factor * self.relative, least: factor * self.least }
    }
}

fn size<S: Scalar>(x: S) -> f64 {
    x.glance().map_or(0.0, f64::abs)
}

/// How large the entries are, each in its own scale. A zero has none, and takes that of the others, up to 1.
pub(crate) fn scales<S: Scalar>(x: &[S]) -> impl Iterator<Item = f64> {
    let largest = x.iter().fold(0.0, |largest: f64, &x| largest.max(size(x)));
    let of_zero = if largest == 0.0 { 1.0 } else { largest.min(1.0) };
    x.iter().map(move |&x| if size(x) == 0.0 { of_zero } else { size(x) })
}

/// `x` moved by about so much, each entry by its weight.
pub(crate) fn moved<S: Scalar>(x: &[S], by: Distance, way: impl Fn(usize) -> f64) -> Vec<S> {
    let moved = x
        .iter()
        .zip(scales(x))
        .enumerate()
        .map(|(i, (&x, scale))| x + S::from_f64(way(i) * (by.relative * scale).max(by.least)));
    moved.collect()
}
