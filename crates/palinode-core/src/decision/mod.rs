//! The one hook for decisions: comparisons, roundings and conversions of *active* values.
//!
//! Input: every `<`, `==`, `floor`, `to_f64`, ... that a program applies to a value which carries a
//! derivative. Output: how many there were and how close the closest one came to going the other way.
//!
//! A gradient follows the path that was taken. Where a decision depends on what is differentiated, that
//! gradient is right only while the decision stays the same; this is where a caller finds out.
//!
//! It also notes whether a comparison was *suspicious*: an exact tie, an exact zero or something very small
//! against a tiny threshold, or an active value that is infinite or NaN. Such an outcome may exist only at
//! this point, and then its branch is not the function's; `points` looks at both sides, with the log that is
//! kept here.
//!
//! | file | |
//! |---|---|
//! | `mod.rs` | what is counted, and the hook itself |
//! | `log.rs` | how the comparisons of a run went, in their order |
//! | `noted.rs` | what is noted of a run without being asked, and scopes |
//! | `by_lane.rs` | the hook for numbers of several samples |
//!
//! Invariants: comparisons inside derivative rules are not counted (their conventions are in the rule table);
//! nothing is counted outside [`watch`]; the counts belong to one thread and one scope; what is run again to
//! look at both sides (`logged`, `beside`) is seen by no scope but its own.

mod by_lane;
mod log;
mod noted;

use crate::rules::{Binary, Unary};
use core::cell::{Cell, RefCell};
pub use log::Suspicion;
pub(crate) use log::{Log, Outcome, Suspect};
pub(crate) use noted::{
    Noted, admits, are_kept, attempt, beside, has_denied, has_suspected, is_looked_for, logged, logged_of,
    note_undefined, plainly, suspecting, uncounted, unseen,
};
use palinode_num::{Scalar, lanes};

/// What a program decided by active values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decisions {
    /// Comparisons: `<`, `==`, `max` by hand and so on.
    pub comparisons: u64,
    /// Values that were rounded or whose sign was taken: `floor`, `signum`, `%`.
    pub roundings: u64,
    /// Values that left the differentiated world as plain numbers, such as by `to_f64`.
    pub conversions: u64,
    /// The smallest distance between the two sides of a decision; infinite if there was none.
    pub smallest_margin: f64,
    /// Comparisons with NaN, and NaN turned into a plain number: what was decided by them means nothing.
    pub undefined: u64,
    /// Active values that were looked at by what is no decision of the program's own, or is one without a
    /// margin: [`Scalar::less`], `is_finite`, [`Scalar::peek`],
    /// `vanishes`, text made of it, a gradient that was stopped. Where there are none of these and no
    /// decisions, what is computed is one formula, whatever the numbers.
    pub looks: u64,
    /// A fingerprint of what was decided, in order: how each comparison came out, between which jumps each
    /// rounded value lay, the whole part of each conversion. Two runs of a program with the same fingerprint
    /// went the same way, so a difference of their results crosses no decision (up to a chance of about
    /// 2^-64).
    pub path: u64,
}

impl Decisions {
    const NONE: Decisions = Decisions {
        comparisons: 0,
        roundings: 0,
        conversions: 0,
        smallest_margin: f64::INFINITY,
        undefined: 0,
        looks: 0,
        path: 0,
    };

    /// Their number, of every kind.
    pub fn count(&self) -> u64 {
        self.comparisons + self.roundings + self.conversions
    }

    fn went(&mut self, outcome: u64) {
        self.path = mixed(self.path, outcome);
    }

    fn merge(self, other: Decisions) -> Decisions {
        Decisions {
            comparisons: self.comparisons + other.comparisons,
            roundings: self.roundings + other.roundings,
            conversions: self.conversions + other.conversions,
            smallest_margin: self.smallest_margin.min(other.smallest_margin),
            undefined: self.undefined + other.undefined,
            looks: self.looks + other.looks,
            path: mixed(self.path, other.path),
        }
    }
}

/// One more outcome of a path (the finalizer of SplitMix64).
fn mixed(path: u64, outcome: u64) -> u64 {
    let mut z = (path ^ outcome.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Bits of what is kept of decisions beside the note of suspicious ones.
const WATCHED: u8 = 1;
const LOGGED: u8 = 2;

/// An exact zero that is compared with at most this much is suspicious: thresholds of rounding, whatever the
/// scale of a problem within reason. Wider ones are dead zones that somebody wanted.
#[doc(hidden)]
pub const TINY: f64 = 1e-6;

/// What is small beside a threshold is at most this much of it: larger numbers may be of the threshold's own
/// scale.
#[doc(hidden)]
pub const SMALL: f64 = 0.1;

/// So many runs to the side may be inside one another, each verified: beyond, drivers take what they find. It
/// bounds the runs that nested drivers make.
const MOST_BESIDE: u8 = 2;

thread_local! {
    static KEPT: Cell<u8> = const { Cell::new(0) };
    static SEEN: Cell<Decisions> = const { Cell::new(Decisions::NONE) };
    static NOTED: Cell<Noted> = const { Cell::new(Noted::NOTHING) };
    static LOG: RefCell<Log> = const { RefCell::new(Log::within(usize::MAX)) };
    /// How many runs to the side this is inside of.
    static BESIDE: Cell<u8> = const { Cell::new(0) };
    static ACCEPTED: Cell<bool> = const { Cell::new(false) };
}

/// Puts a cell back when it goes, also on a panic.
struct Restore<T: Copy + 'static>(&'static std::thread::LocalKey<Cell<T>>, T);

impl<T: Copy + 'static> Drop for Restore<T> {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}

fn with<T: Copy + 'static>(cell: &'static std::thread::LocalKey<Cell<T>>, value: T) -> Restore<T> {
    Restore(cell, cell.replace(value))
}

/// Runs `f` and reports the decisions that it took by active values on this thread.
///
/// ```
/// use palinode_core::{decision, jvp};
///
/// let (_, seen) = decision::watch(|| jvp(|x| vec![if x[0] > 2.0 { x[0] } else { -x[0] }], &[2.5], &[1.0]));
/// assert_eq!((seen.comparisons, seen.smallest_margin), (1, 0.5));
/// ```
pub fn watch<R>(f: impl FnOnce() -> R) -> (R, Decisions) {
    /// Gives the surrounding scope its own state back, with what was seen inside, also on a panic.
    struct Scope {
        outer_kept: u8,
        outer_seen: Decisions,
    }
    impl Drop for Scope {
        fn drop(&mut self) {
            let inner = SEEN.get();
            let outer_watched = self.outer_kept & WATCHED != 0;
            SEEN.set(if outer_watched { self.outer_seen.merge(inner) } else { Decisions::NONE });
            KEPT.set(self.outer_kept);
        }
    }
    let outer_kept = KEPT.get();
    let scope = Scope { outer_kept, outer_seen: SEEN.replace(Decisions::NONE) };
    KEPT.set(outer_kept | WATCHED);
    let result = f();
    let seen = SEEN.get();
    drop(scope);
    (result, seen)
}

/// Runs `f` and takes every derivative in it as its path gives it, also where that path exists only at this
/// point (PAL0119).
///
/// ```
/// use palinode_core::{decision, grad, Var};
///
/// // At 0 the short cut has the slope 0; beside it the function is `3 x`.
/// let skips_zero = |x: &[Var<f64>]| if x[0] == 0.0 { Var::lift(0.0) } else { 3.0 * x[0] };
/// assert_eq!(grad(skips_zero, &[0.0]).unwrap_err().code(), "PAL0119");
/// assert_eq!(decision::accept_points(|| grad(skips_zero, &[0.0]))?, [0.0]);
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn accept_points<R>(f: impl FnOnce() -> R) -> R {
    let _outer = with(&ACCEPTED, true);
    f()
}

/// Whether a path that exists only at a point, or a number from an outer level, is to be looked for.
pub(crate) fn is_verified() -> bool {
    BESIDE.get() < MOST_BESIDE
}

// As in all of the tape's hot path: in debug builds, where nothing becomes faster by it, code of hundreds of
// lines is not copied to each operation.
#[cfg_attr(not(debug_assertions), inline(always))]
fn note(margin: impl FnOnce() -> f64, count: impl FnOnce(&mut Decisions)) {
    if KEPT.get() & WATCHED != 0 {
        let mut seen = SEEN.get();
        count(&mut seen);
        let margin = margin();
        if margin < seen.smallest_margin {
            seen.smallest_margin = margin;
        }
        SEEN.set(seen);
    }
}

/// What a comparison asks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Order,
    Equality,
    /// Whether it is that number and nothing more, which it is not.
    Sameness,
}

/// An active value was compared by order. Which of the two are active is asked only where it matters.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn compared<N: Scalar>(a: N, b: N, active: impl FnOnce() -> [bool; 2]) {
    if const { N::LANES > 1 } && lanes::is_grouped() {
        return by_lane::compared(a, b, Asked::Order, active());
    }
    saw(a.glance_at(0), b.glance_at(0), Asked::Order, active);
}

/// An active value was compared by order with this number.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn compared_with<N: Scalar>(a: N, b: f64, active: impl FnOnce() -> [bool; 2]) {
    if const { N::LANES > 1 } && lanes::is_grouped() {
        return by_lane::compared(a, N::from_f64(b), Asked::Order, active());
    }
    saw(a.glance_at(0), Some(b), Asked::Order, active);
}

/// An active value was compared by `==`.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn equated<N: Scalar>(a: N, b: N, active: impl FnOnce() -> [bool; 2]) {
    if const { N::LANES > 1 } && lanes::is_grouped() {
        return by_lane::compared(a, b, Asked::Equality, active());
    }
    saw(a.glance_at(0), b.glance_at(0), Asked::Equality, active);
}

#[cfg_attr(not(debug_assertions), inline(always))]
fn saw(a: Option<f64>, b: Option<f64>, asked: Asked, active: impl FnOnce() -> [bool; 2]) {
    let suspicion = suspect(a, b, active);
    if KEPT.get() != 0 {
        keep(a, b, asked, suspicion);
    }
}

/// Two values were compared by order that have no derivative here: constants, or, if they `may_rest`, values
/// whose derivative is zero just at this point. No decision of an active value, but one that may be of the
/// point.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn compared_at_rest<N: Scalar>(may_rest: bool, a: N, b: N) {
    if may_rest {
        rested(a, b, Asked::Order);
    }
}

/// The same by `==`.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn equated_at_rest<N: Scalar>(may_rest: bool, a: N, b: N) {
    if may_rest {
        rested(a, b, Asked::Equality);
    }
}

#[cfg_attr(not(debug_assertions), inline(always))]
fn rested<N: Scalar>(a: N, b: N, asked: Asked) {
    if const { N::LANES > 1 } && lanes::is_grouped() {
        by_lane::compared(a, b, asked, [false; 2]);
    } else {
        at_rest((a.glance_at(0), b.glance_at(0)), asked);
    }
}

#[cfg_attr(not(debug_assertions), inline(always))]
fn at_rest((a, b): (Option<f64>, Option<f64>), asked: Asked) {
    let suspicion = suspect(a, b, || [false; 2]);
    if KEPT.get() & LOGGED != 0 {
        log(a, b, asked, suspicion);
    }
}

/// Two plain numbers were compared by code that does not know which of them matter (an interpreter):
/// suspicious or not, never counted.
#[doc(hidden)]
#[inline(always)]
pub fn compared_plainly(a: Option<f64>, b: Option<f64>, is_equality: bool) {
    at_rest((a, b), if is_equality { Asked::Equality } else { Asked::Order });
}

/// The most suspicious of many such comparisons, of a run that [is not shown one by
/// one](are_shown_one_by_one).
#[doc(hidden)]
pub fn compared_many(most: Suspicion) {
    noted::suspected(most);
}

/// Whether it matters to this thread how often comparisons are made, and in which order: they are logged, or
/// those with NaN are counted.
#[doc(hidden)]
pub fn are_shown_one_by_one() -> bool {
    is_logged() || noted::counts_nan()
}

/// Whether every comparison of this thread is to be shown to [`compared_plainly`], not only those that may be
/// suspicious.
#[doc(hidden)]
pub fn is_logged() -> bool {
    KEPT.get() & LOGGED != 0
}

/// Runs `f`. If it gives nothing, what it showed is forgotten: somebody else will make these comparisons
/// again.
#[doc(hidden)]
pub fn or_forgotten<R>(f: impl FnOnce() -> Option<R>) -> Option<R> {
    let noted = NOTED.get();
    let logged = is_logged().then(|| LOG.with_borrow(Log::end));
    let result = f();
    if result.is_none() {
        NOTED.set(noted);
        if let Some(end) = logged {
            LOG.with_borrow_mut(|log| log.cut_back(end));
        }
    }
    result
}

/// Values of a decomposition were looked at whether some coincide, in which case its vectors are arbitrary:
/// suspicious, never counted. It is logged as NaN compared with NaN.
#[doc(hidden)]
pub fn coincided(do_they: bool) {
    let suspicion = if do_they { Suspicion::Exact } else { Suspicion::None };
    noted::suspected(suspicion);
    if KEPT.get() & LOGGED != 0 {
        let outcome = if do_they { Outcome::Equal } else { Outcome::Unequal };
        let (left, right) = (f64::NAN, f64::NAN);
        push(outcome, Suspect { number: 0, left, right, is_equality: true, suspicion });
    }
}

/// An active value was asked whether it is this number with no derivative (`is_zero`, `is_one`); [`admits`]
/// says what it answers to a tie.
#[inline]
pub(crate) fn is_same<N: Scalar>(a: N, b: N, answer: bool) -> bool {
    if answer {
        equated(a, b, || [true, false]);
    } else if KEPT.get() != 0 {
        // A tie that is answered as near the point is not of the point.
        keep(a.glance_at(0), b.glance_at(0), Asked::Sameness, Suspicion::None);
    }
    answer
}

/// A value that is active, or may be at rest, was asked what kind of number it is (`is_nan`, `classify`).
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn classified<N: Scalar>(value: N, may_matter: impl FnOnce() -> bool) {
    if const { N::LANES > 1 } && lanes::is_grouped() {
        return by_lane::looked_at(value, |value| !value.is_finite());
    }
    if let Some(value) = value.glance_at(0)
        && (!value.is_finite() || KEPT.get() & LOGGED != 0)
        && may_matter()
    {
        looked_closely(value, !value.is_finite());
    }
}

/// Such a value was turned into a plain number, and nobody sees what that is compared with: with zero, if
/// anything.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn made_plain<N: Scalar>(value: N, may_matter: impl FnOnce() -> bool) {
    if const { N::LANES > 1 } && lanes::is_grouped() {
        return by_lane::looked_at(value, |value| !value.is_finite() || value == 0.0);
    }
    if let Some(value) = value.glance_at(0)
        && (!value.is_finite() || value == 0.0 || KEPT.get() & LOGGED != 0)
        && may_matter()
    {
        looked_closely(value, !value.is_finite() || value == 0.0);
    }
}

#[cold]
#[inline(never)]
fn looked_closely(value: f64, is_suspicious: bool) {
    let suspicion = if is_suspicious { Suspicion::Exact } else { Suspicion::None };
    noted::suspected(suspicion);
    if KEPT.get() & LOGGED != 0 {
        let outcome = match value {
            _ if value.is_nan() => Outcome::NotANumber,
            _ if value.is_infinite() => Outcome::Infinite,
            _ if is_suspicious => Outcome::Zero,
            _ => Outcome::Usual,
        };
        push(outcome, Suspect { number: 0, left: value, right: f64::NAN, is_equality: true, suspicion });
    }
}

#[cfg_attr(not(debug_assertions), inline(always))]
fn suspect(a: Option<f64>, b: Option<f64>, active: impl FnOnce() -> [bool; 2]) -> Suspicion {
    let (Some(a), Some(b)) = (a, b) else { return Suspicion::None };
    let distance = (a - b).abs();
    // This is the way of nearly all comparisons.
    if distance > 2.0 * TINY && distance < f64::INFINITY {
        return Suspicion::None;
    }
    let suspicion = suspicion(a, b, active());
    noted::suspected(suspicion);
    suspicion
}

/// Of two numbers that are next to each other, or not both finite.
fn suspicion(a: f64, b: f64, active: [bool; 2]) -> Suspicion {
    let (least, most) = (a.abs().min(b.abs()), a.abs().max(b.abs()));
    // A constant may be infinite: loops that look for the least begin with it.
    let is_infinite = (a.is_infinite() && active[0]) || (b.is_infinite() && active[1]);
    if a.is_nan() || b.is_nan() {
        noted::compared_with_nan();
    }
    // A threshold is a constant, if one of the two is: what is larger than it is beyond it.
    let is_within = active[0] == active[1] || active[0] == (a.abs() < b.abs());
    if a == b || a.is_nan() || b.is_nan() || is_infinite || (least == 0.0 && most <= TINY) {
        Suspicion::Exact
    } else if most <= TINY && least <= SMALL * most && is_within {
        Suspicion::Small
    } else {
        Suspicion::None
    }
}

/// Counts or logs a comparison.
#[cold]
#[inline(never)]
fn keep(a: Option<f64>, b: Option<f64>, asked: Asked, suspicion: Suspicion) {
    note(
        || a.zip(b).map_or(f64::NAN, |(a, b)| (a - b).abs()),
        |seen| {
            seen.comparisons += 1;
            seen.undefined += u64::from(is_nan(a) || is_nan(b));
            let order = a.zip(b).and_then(|(a, b)| a.partial_cmp(&b));
            seen.went(order.map_or(3, |order| (order as i8 + 1) as u64));
        },
    );
    if KEPT.get() & LOGGED != 0 {
        log(a, b, asked, suspicion);
    }
}

#[cold]
#[inline(never)]
fn log(a: Option<f64>, b: Option<f64>, asked: Asked, suspicion: Suspicion) {
    let (left, right) = (a.unwrap_or(f64::NAN), b.unwrap_or(f64::NAN));
    let outcome = match asked {
        Asked::Order => Outcome::Order(left.partial_cmp(&right)),
        Asked::Equality if left == right => Outcome::Equal,
        Asked::Equality | Asked::Sameness => Outcome::Unequal,
    };
    push(outcome, Suspect { number: 0, left, right, is_equality: asked == Asked::Equality, suspicion });
}

fn push(outcome: Outcome, suspect: Suspect) {
    LOG.with_borrow_mut(|log| {
        let number = log.count;
        let is_suspicious = suspect.suspicion != Suspicion::None;
        log.add(outcome, is_suspicious.then_some(Suspect { number, ..suspect }));
    });
}

fn is_nan(number: Option<f64>) -> bool {
    number.is_some_and(f64::is_nan)
}

/// An active value goes through a rule, which may be one that jumps.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn rounded_by<R: Unary>(rule: R, x: impl Scalar) {
    if R::JUMPS
        && KEPT.get() & WATCHED != 0
        && let Some(x) = x.glance_at(0)
    {
        rounded(rule.jump_distance(x), rule.jump_cell(x));
    }
}

/// The same of two values.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn rounded_by_two<R: Binary, N: Scalar>(rule: R, x: N, y: N) {
    if R::JUMPS
        && KEPT.get() & WATCHED != 0
        && let (Some(x), Some(y)) = (x.glance_at(0), y.glance_at(0))
    {
        rounded(rule.jump_distance(x, y), rule.jump_cell(x, y));
    }
}

/// The nearest jump is at this distance, infinite if there is none near; the value lies in this cell between
/// jumps.
fn rounded(distance: f64, cell: f64) {
    note(
        || distance,
        |seen| {
            seen.roundings += u64::from(distance != f64::INFINITY);
            // Both zeros are one cell.
            seen.went((cell + 0.0).to_bits());
        },
    );
}

/// An active value was turned into a plain number that nobody looked at.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn converted() {
    note(|| f64::INFINITY, |seen| seen.conversions += 1);
}

/// An active value was turned into a plain number.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn converted_to(number: f64) {
    note(
        || f64::INFINITY,
        |seen| {
            seen.conversions += 1;
            seen.undefined += u64::from(number.is_nan());
            seen.went((number.trunc() + 0.0).to_bits());
        },
    );
}

/// A value was looked at; see [`Decisions::looks`].
#[doc(hidden)]
#[cfg_attr(not(debug_assertions), inline(always))]
pub fn looked(is_active: impl FnOnce() -> bool) {
    if KEPT.get() & WATCHED != 0 && is_active() {
        let mut seen = SEEN.get();
        seen.looks += 1;
        SEEN.set(seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Passive;

    type Number = Passive<f64>;
    /// A function, points that no jump divides, and one beyond a jump.
    type Case = (fn(Number, Number) -> Number, &'static [(f64, f64)], (f64, f64));

    #[test]
    fn paths_change_across_jumps_and_nowhere_else() {
        let cases: &[Case] = &[
            (|x, _| x.floor(), &[(2.0, 0.0), (2.3, 0.0), (2.999, 0.0)], (3.0, 0.0)),
            (|x, _| x.ceil(), &[(3.0, 0.0), (2.3, 0.0), (2.001, 0.0)], (2.0, 0.0)),
            (|x, _| x.round(), &[(2.5, 0.0), (3.0, 0.0), (3.499, 0.0)], (2.499, 0.0)),
            (|x, _| x.trunc(), &[(-0.9, 0.0), (0.0, 0.0), (0.2, 0.0), (0.9, 0.0)], (1.0, 0.0)),
            (|x, _| x.fract(), &[(-0.9, 0.0), (0.1, 0.0), (0.9, 0.0)], (-1.0, 0.0)),
            (|x, _| x.signum(), &[(0.0, 0.0), (1e-300, 0.0), (5.0, 0.0)], (-1e-300, 0.0)),
            (|x, y| x % y, &[(4.5, 1.5), (5.0, 1.5), (5.999, 1.5), (4.5, 1.2)], (6.0, 1.5)),
            (|x, y| x % y, &[(-1.4, 1.5), (0.3, 1.5), (1.4, 1.5)], (-1.5, 1.5)),
            (|x, y| x.copysign(y), &[(1.0, 2.0), (-3.0, 0.1), (2.0, 0.0)], (1.0, -2.0)),
            (
                |x, y| x.atan2(y),
                &[(1e-3, -1.0), (1.0, 0.0), (0.0, 1.0), (-1.0, 0.5), (-1.0, -0.1)],
                (-1e-3, -1.0),
            ),
            (|x, y| if x < y { x } else { y }, &[(1.0, 2.0), (-5.0, 1.9)], (2.0, 1.0)),
            (|x, y| x.max(y) * x.abs() + x.relu(), &[(1.0, 2.0), (2.0, 1.0), (-1.0, 0.0)], (f64::NAN, 0.0)),
        ];
        for (at, (f, same, beyond)) in cases.iter().enumerate() {
            let path = |&(x, y): &(f64, f64)| watch(|| f(Passive::new(x), Passive::new(y))).1.path;
            let first = path(&same[0]);
            assert!(same.iter().all(|point| path(point) == first), "{at}");
            // The last has no decisions at all.
            assert_eq!(path(beyond) == first, beyond.0.is_nan(), "{at}");
        }
    }

    #[test]
    fn the_order_of_decisions_counts() {
        let path = |x: f64, y: f64| watch(|| (Passive::new(x) < 0.0, Passive::new(y) < 0.0)).1.path;
        let all = [path(1.0, 1.0), path(1.0, -1.0), path(-1.0, 1.0), path(-1.0, -1.0)];
        assert!((0..4).all(|a| (0..a).all(|b| all[a] != all[b])));
        let nested = watch(|| watch(|| Passive::new(1.0) < 0.0).1.path).1.path;
        assert_ne!(nested, 0);
    }
}
