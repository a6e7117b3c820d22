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

use crate::rules::{Binary, Unary};
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
    /// A fingerprint of what was decided, in order: how each comparison came out, between which jumps each rounded value lay, the whole part of each conversion. Two runs of a
    /// program with the same fingerprint went the same way, so a difference of their results crosses no decision (up to a chance of about 2^-64).
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
        let order = a.zip(b).and_then(|(a, b)| a.partial_cmp(&b));
        seen.went(order.map_or(3, |order| (order as i8 + 1) as u64));
    });
}

fn is_nan(number: Option<f64>) -> bool {
    number.is_some_and(f64::is_nan)
}

/// An active value goes through a rule, which may be one that jumps.
#[inline(always)]
pub(crate) fn rounded_by<R: Unary>(rule: R, x: Option<f64>) {
    if R::JUMPS
        && WATCHED.get()
        && let Some(x) = x
    {
        rounded(rule.jump_distance(x), rule.jump_cell(x));
    }
}

/// The same of two values.
#[inline(always)]
pub(crate) fn rounded_by_two<R: Binary>(rule: R, x: Option<f64>, y: Option<f64>) {
    if R::JUMPS
        && WATCHED.get()
        && let (Some(x), Some(y)) = (x, y)
    {
        rounded(rule.jump_distance(x, y), rule.jump_cell(x, y));
    }
}

/// The nearest jump is at this distance, infinite if there is none near; the value lies in this cell between jumps.
fn rounded(distance: f64, cell: f64) {
    note(
        || distance,
        |seen| {
            seen.roundings += u64::from(distance != f64::INFINITY);
            seen.went(cell.to_bits());
        },
    );
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
            seen.went(number.trunc().to_bits());
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
