//! Bugs planted into arrays; the random programs must find each.
//!
//! Input: a bug. Output: how many programs notice it.

use super::random::check;
use std::cell::Cell;

/// What can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A write of an element, met backwards, leaves its cell's cotangent where it is.
    CellNotTaken,
    /// So does a write of a whole array.
    RegionNotTaken,
    /// A write goes into memory that a rule still needs.
    ResidualNotCopied,
    /// A copy of an array and the array keep one storage.
    StorageNotForked,
    /// An operation in place keeps its operands after it has overwritten them.
    KeptTooLate,
}

thread_local! {
    static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
}

impl Bug {
    pub(crate) fn is_planted(self) -> bool {
        PLANTED.get() == Some(self)
    }
}

#[test]
fn planted_bugs_are_found() {
    for bug in [
        Bug::CellNotTaken,
        Bug::RegionNotTaken,
        Bug::ResidualNotCopied,
        Bug::StorageNotForked,
        Bug::KeptTooLate,
    ] {
        PLANTED.set(Some(bug));
        let found = (0..200).filter(|&seed| check(seed).is_err()).count();
        PLANTED.set(None);
        assert!(found >= 3, "{bug:?} was found by {found} of 200 programs");
    }
    assert!((0..200).all(|seed| check(seed).is_ok()));
}
