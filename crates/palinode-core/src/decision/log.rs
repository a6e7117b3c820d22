//! How the comparisons of a run went, in their order, and which of them are suspicious. `points` compares the
//! logs of several runs.
//!
//! Invariant: a log takes no more bytes than it was given; what is beyond is missing, and it says so.

use super::TINY;
use core::cmp::Ordering;

/// How suspicious a comparison is.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Suspicion {
    /// Not at all.
    None,
    /// Something small beside a tiny threshold. Loops end so; it says something only at points that are small
    /// themselves.
    Small,
    /// A tie, an exact zero beside a tiny threshold, or a value that is infinite or NaN.
    Exact,
}

/// A comparison that may have gone as it did only because of where it was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspect {
    /// How many decisions were logged before it.
    pub(crate) number: usize,
    pub(crate) left: f64,
    /// NaN for a value that was not compared but looked at.
    pub(crate) right: f64,
    /// Whether it was asked for equality or a kind of number, not for an order.
    pub(crate) is_equality: bool,
    pub(crate) suspicion: Suspicion,
}

impl Suspect {
    pub(crate) fn is_tie(&self) -> bool {
        self.left == self.right
    }

    /// Whether it may be of the point though no side can tell. An order at a tie is not: that is how kinks
    /// are written, and numbers sorted.
    pub(crate) fn may_be_of_point(&self) -> bool {
        self.is_equality || !self.is_tie()
    }

    /// How much it says: least if it is small, most if it is exact and no kink.
    fn rank(&self) -> u8 {
        u8::from(self.suspicion == Suspicion::Exact) * (1 + u8::from(self.may_be_of_point()))
    }

    /// Whether the same was asked of the same numbers.
    pub(crate) fn is_like(&self, other: &Suspect) -> bool {
        let is_same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
        self.is_equality == other.is_equality
            && is_same(self.left, other.left)
            && is_same(self.right, other.right)
    }

    /// The threshold that something small was compared with, else 0.
    pub(crate) fn threshold(&self) -> f64 {
        let most = self.left.abs().max(self.right.abs());
        if self.is_tie() || most > TINY { 0.0 } else { most }
    }
}

/// How the comparisons of a run went, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    /// The first ones, as many as the budget allows.
    pub(crate) outcomes: Vec<Outcome>,
    /// How many there were.
    pub(crate) count: usize,
    pub(crate) suspects: Vec<Suspect>,
    /// The bytes that it may still take.
    budget: usize,
    /// Whether that was too little: the rest is missing.
    pub(crate) is_cut: bool,
}

impl Log {
    /// A log of at most so many bytes.
    pub(crate) const fn within(budget: usize) -> Log {
        Log { outcomes: Vec::new(), count: 0, suspects: Vec::new(), budget, is_cut: false }
    }

    /// The bytes that it took of those it was given: while a list is moved, it is there twice.
    pub(crate) fn taken_of(&self, budget: usize) -> usize {
        budget.saturating_sub(self.budget)
    }

    /// Adds to a list, and takes the bytes that the list needs before it grows.
    fn push<T>(list: &mut Vec<T>, item: T, budget: &mut usize) -> bool {
        if list.len() == list.capacity() {
            let capacity = (2 * list.capacity()).max(4);
            let bytes = capacity * size_of::<T>();
            if bytes > *budget {
                return false;
            }
            *budget -= bytes;
            list.reserve_exact(capacity - list.len());
        }
        list.push(item);
        true
    }

    /// Where it ends.
    pub(super) fn end(&self) -> End {
        End {
            outcomes: self.outcomes.len(),
            count: self.count,
            suspects: self.suspects.len(),
            is_cut: self.is_cut,
        }
    }

    /// Forgets what came after. (Of a full list of suspects, some may have been replaced by what says more.)
    pub(super) fn cut_back(&mut self, end: End) {
        self.outcomes.truncate(end.outcomes);
        self.suspects.truncate(end.suspects);
        (self.count, self.is_cut) = (end.count, end.is_cut);
    }

    pub(super) fn add(&mut self, outcome: Outcome, suspect: Option<Suspect>) {
        let Log { outcomes, count, suspects, budget, is_cut } = self;
        *count += 1;
        // One that says more is never lost for many that say less: it takes the place of the last of them.
        if let Some(suspect) = suspect {
            let fits = !*is_cut && suspects.len() < MOST_SUSPECTS && Log::push(suspects, suspect, budget);
            *is_cut |= !fits && suspects.len() < MOST_SUSPECTS;
            let rank = suspect.rank();
            if !fits
                && rank > 0
                && let Some(less) = suspects.iter_mut().rfind(|other| other.rank() < rank)
            {
                *less = suspect;
            }
        }
        if !*is_cut {
            *is_cut |= !Log::push(outcomes, outcome, budget);
        }
    }
}

/// The end of a log at some time.
#[derive(Clone, Copy)]
pub(super) struct End {
    outcomes: usize,
    count: usize,
    suspects: usize,
    is_cut: bool,
}

/// Of more suspicious comparisons than this the rest is not looked at one by one.
const MOST_SUSPECTS: usize = 1024;

/// How a comparison went, in a byte: there may be many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Equal,
    Unequal,
    Order(Option<Ordering>),
    // Of what was not compared, but looked at.
    Usual,
    Zero,
    Infinite,
    NotANumber,
}
