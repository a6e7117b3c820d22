//! What is noted of a run without being asked, and the scopes in which runs are looked at.
//!
//! Input: a run. Output: how suspicious its comparisons were; whether a zero with a derivative said that it
//! is none, and what came of that.
//!
//! `is_zero` and `is_one` say no to a number that carries a derivative, so that nobody skips it. For plain
//! numbers they say yes, and some code relies on that: it divides by what is not zero. If numbers come out
//! that are infinite or NaN, the same run is made once more with the answers of plain numbers ([`plainly`]),
//! and those are suspicious as every tie is.

use super::log::{Log, Suspicion};
use super::{ACCEPTED, BESIDE, KEPT, LOG, LOGGED, NOTED, is_verified, with};
use core::cell::Cell;
use palinode_num::lanes;

/// What is noted of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noted {
    /// The most suspicious comparison; none if that is not to be verified.
    pub(crate) suspicion: Suspicion,
    /// Whether a zero or one that carries a derivative was said to be none.
    pub(crate) has_denied: bool,
    /// Whether what is asked for is infinite or NaN.
    pub(crate) is_undefined: bool,
    /// How many comparisons with NaN were made after that zero.
    in_vain: u32,
}

impl Noted {
    pub(super) const NOTHING: Noted =
        Noted { suspicion: Suspicion::None, has_denied: false, is_undefined: false, in_vain: 0 };

    /// Whether another way, that of plain numbers, may lead to numbers.
    pub(crate) fn is_in_vain(&self) -> bool {
        self.has_denied && self.is_undefined
    }
}

/// A comparison was so suspicious.
#[inline]
pub(super) fn suspected(suspicion: Suspicion) {
    if suspicion != Suspicion::None && lanes::is_grouped() {
        lanes::leave_if(|_| true);
        return;
    }
    let noted = NOTED.get();
    NOTED.set(Noted { suspicion: noted.suspicion.max(suspicion), ..noted });
}

/// What is asked for is infinite or NaN.
#[cold]
pub(crate) fn note_undefined() {
    NOTED.set(Noted { is_undefined: true, ..NOTED.get() });
}

/// Whether a zero with a derivative was said to be none in the scope of [`suspecting`] that is open.
#[inline]
pub(crate) fn has_denied() -> bool {
    NOTED.get().has_denied
}

/// A number that carries a derivative was asked whether it is a constant that it ties with. No, unless the
/// answers are those of plain numbers.
#[inline]
pub(crate) fn admits() -> bool {
    let answers_plainly = PLAINLY.get();
    if lanes::is_grouped() {
        lanes::leave_if(|_| true);
    } else if !answers_plainly {
        NOTED.set(Noted { has_denied: true, ..NOTED.get() });
    }
    answers_plainly
}

/// After so many comparisons with NaN a run is given up.
const MOST_IN_VAIN: u32 = 1000;

thread_local! {
    static PLAINLY: Cell<bool> = const { Cell::new(false) };
    /// Whether a panic is caught by [`attempt`].
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Whether comparisons with NaN are counted.
pub(super) fn counts_nan() -> bool {
    NOTED.get().has_denied && CAUGHT.get() && cfg!(panic = "unwind")
}

/// Something was compared with NaN. Loops that wait for a number to become small never end then: a run that a
/// zero with a derivative has led there is given up.
#[cold]
pub(super) fn compared_with_nan() {
    let noted = NOTED.get();
    if counts_nan() {
        NOTED.set(Noted { in_vain: noted.in_vain + 1, ..noted });
        if noted.in_vain >= MOST_IN_VAIN {
            // Nobody prints this: it is no panic of the program's.
            std::panic::resume_unwind(Box::new("a run that compares NaN without end"));
        }
    }
}

/// Runs `f`, and catches a panic: a closure may panic at numbers that are none (sorting, `unwrap`), or be
/// given up.
#[inline]
pub(crate) fn attempt<R>(f: impl FnOnce() -> R) -> std::thread::Result<R> {
    let _outer = with(&CAUGHT, true);
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f))
}

/// Whether decisions of this thread are counted or logged.
pub(crate) fn are_kept() -> bool {
    KEPT.get() != 0
}

/// Whether paths that exist only at a point are looked for.
pub(crate) fn is_looked_for() -> bool {
    is_verified() && !ACCEPTED.get()
}

/// Runs `f` with the answers of plain numbers: a zero says that it is zero, whatever its derivative.
pub(crate) fn plainly<R>(f: impl FnOnce() -> R) -> R {
    let _outer = with(&PLAINLY, true);
    f()
}

/// Runs `f`, and says what was noted. The scope around sees that too, but for what is undefined: that is for
/// the driver inside to tell.
#[inline]
pub(crate) fn suspecting<R>(f: impl FnOnce() -> R) -> (R, Noted) {
    /// Gives the scope around what it knew, with what was found inside, also on a panic.
    struct Outer(Noted);
    impl Drop for Outer {
        fn drop(&mut self) {
            let (inner, outer) = (NOTED.get(), self.0);
            NOTED.set(Noted {
                suspicion: inner.suspicion.max(outer.suspicion),
                has_denied: inner.has_denied | outer.has_denied,
                ..outer
            });
        }
    }
    let _outer = Outer(NOTED.replace(Noted::NOTHING));
    let result = f();
    let found = NOTED.get();
    (result, if is_looked_for() { found } else { Noted { suspicion: Suspicion::None, ..found } })
}

/// Whether something suspicious was met in the scope of [`suspecting`] that is open.
#[inline(always)]
pub(crate) fn has_suspected() -> bool {
    NOTED.get().suspicion != Suspicion::None
}

/// Runs `f` without counting or logging its decisions, which are counted and logged already.
pub(crate) fn uncounted<R>(f: impl FnOnce() -> R) -> R {
    let _outer = with(&KEPT, 0);
    f()
}

/// Runs `f` whose comparisons are no decisions of the program that is looked at: they are neither counted nor
/// logged nor suspicious.
pub(crate) fn unseen<R>(f: impl FnOnce() -> R) -> R {
    let _outer = (with(&KEPT, 0), with(&NOTED, NOTED.get()));
    f()
}

/// Runs `f` with no effect on any scope around it, and logs its comparisons in at most so many bytes. No log
/// where the thread is coming down: then there is nothing to be seen.
pub(crate) fn logged<R>(budget: usize, f: impl FnOnce() -> R) -> Option<(R, Log)> {
    /// The log of a run around this one, put back when it is over.
    struct OuterLog(Log);
    impl Drop for OuterLog {
        fn drop(&mut self) {
            let _ = LOG.try_with(|log| log.replace(core::mem::take(&mut self.0)));
        }
    }
    let _outer_log = OuterLog(LOG.try_with(|log| log.replace(Log::within(budget))).ok()?);
    let _outer = (with(&KEPT, LOGGED), with(&NOTED, Noted::NOTHING));
    let result = f();
    Some((result, LOG.take()))
}

/// The same of a run near the point; no result if it panics.
pub(crate) fn beside<R>(budget: usize, f: impl FnOnce() -> R) -> Option<(R, Log)> {
    let _outer = with(&BESIDE, BESIDE.get().saturating_add(1));
    // What a closure refuses to do near the point (an assertion about its domain, say) is no failure at the
    // point.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| logged(budget, f))).ok().flatten()
}

/// The bytes that the log of the run that is going on took of those it was given.
pub(crate) fn logged_of(budget: usize) -> usize {
    LOG.try_with(|log| log.borrow().taken_of(budget)).unwrap_or(0)
}
