//! The one hook for decisions: comparisons, roundings and conversions of *active* values.
//!
//! Input: every `<`, `==`, `floor`, `to_f64`, ... that a program applies to a value which carries a
//! derivative. Output: how many there were and how close the closest one came to going the other way.
//!
//! A gradient follows the path that was taken. Where a decision depends on what is differentiated, that
//! gradient is right only while the decision stays the same; this is where a caller finds out.
//!
//! Invariants: comparisons inside derivative rules are not counted (their conventions are in the rule table);
//! nothing is counted outside [`watch`]; the counts belong to one thread and one scope.

use core::cell::Cell;

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
    /// Active values that were looked at by what is no decision of the program's own, or is one without a margin: [`Scalar::less`](crate::Scalar::less),
    /// `is_finite`, [`Scalar::peek`](crate::Scalar::peek), `vanishes`, text made of it, a gradient that was stopped. Where there are none of these and no decisions, what is computed is one formula, whatever the numbers.
    pub looks: u64,
}

impl Decisions {
    const NONE: Decisions = Decisions {
        comparisons: 0,
        roundings: 0,
        conversions: 0,
        smallest_margin: f64::INFINITY,
        undefined: 0,
        looks: 0,
    };

    /// Their number, of every kind.
    pub fn count(&self) -> u64 {
        self.comparisons + self.roundings + self.conversions
    }

    fn merge(self, other: Decisions) -> Decisions {
        Decisions {
            comparisons: self.comparisons + other.comparisons,
            roundings: self.roundings + other.roundings,
            conversions: self.conversions + other.conversions,
            smallest_margin: self.smallest_margin.min(other.smallest_margin),
            undefined: self.undefined + other.undefined,
            looks: self.looks + other.looks,
        }
    }
}

thread_local! {
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    static SEEN: Cell<Decisions> = const { Cell::new(Decisions::NONE) };
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
        outer_watched: bool,
        outer_seen: Decisions,
    }
    impl Drop for Scope {
        fn drop(&mut self) {
            let inner = SEEN.get();
            SEEN.set(if self.outer_watched { self.outer_seen.merge(inner) } else { Decisions::NONE });
            WATCHED.set(self.outer_watched);
        }
    }
    let scope = Scope { outer_watched: WATCHED.replace(true), outer_seen: SEEN.replace(Decisions::NONE) };
    let result = f();
    let seen = SEEN.get();
    drop(scope);
    (result, seen)
}

#[inline(always)]
fn note(margin: impl FnOnce() -> f64, count: impl FnOnce(&mut Decisions)) {
    if WATCHED.get() {
        let mut seen = SEEN.get();
        count(&mut seen);
        let margin = margin();
        if margin < seen.smallest_margin {
            seen.smallest_margin = margin;
        }
        SEEN.set(seen);
    }
}

/// An active value was compared.
#[inline(always)]
pub(crate) fn compared(a: Option<f64>, b: Option<f64>) {
    let distance = || a.zip(b).map_or(f64::NAN, |(a, b)| (a - b).abs());
    note(distance, |seen| {
        seen.comparisons += 1;
        seen.undefined += u64::from(is_nan(a) || is_nan(b));
    });
}

fn is_nan(number: Option<f64>) -> bool {
    number.is_some_and(f64::is_nan)
}

/// An active value went through a rule whose value jumps at this distance; infinite if it does not jump.
#[inline(always)]
pub(crate) fn rounded(distance: Option<f64>) {
    if let Some(distance) = distance.filter(|d| *d != f64::INFINITY) {
        note(|| distance, |seen| seen.roundings += 1);
    }
}

/// An active value was turned into a plain number that nobody looked at.
#[inline(always)]
pub(crate) fn converted() {
    note(|| f64::INFINITY, |seen| seen.conversions += 1);
}

/// An active value was turned into a plain number.
#[inline(always)]
pub(crate) fn converted_to(number: f64) {
    note(
        || f64::INFINITY,
        |seen| {
            seen.conversions += 1;
            seen.undefined += u64::from(number.is_nan());
        },
    );
}

/// A value was looked at; see [`Decisions::looks`].
#[doc(hidden)]
#[inline(always)]
pub fn looked(is_active: impl FnOnce() -> bool) {
    if WATCHED.get() && is_active() {
        let mut seen = SEEN.get();
        seen.looks += 1;
        SEEN.set(seen);
    }
}
