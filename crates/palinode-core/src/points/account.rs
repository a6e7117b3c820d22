//! The bytes of looking at both sides.
//!
//! Input: what is about to be allocated. Output: leave to do so, or the error with which looking stops.
//!
//! Invariant: what looking takes besides the runs themselves (points, parts, logs, the verdict) is charged
//! before it is allocated.

use crate::decision;
use crate::error::Error;
use core::cell::{Cell, RefCell};

/// The bytes of looking at both sides: how many there may be, and the most that there were.
#[doc(hidden)]
#[derive(Debug)]
pub struct Account {
    limit: usize,
    /// What a log of comparisons may take; a longer one is cut. Without it, a log beyond the budget is
    /// refused.
    of_log: Option<usize>,
    held: Cell<usize>,
    most: Cell<usize>,
    /// What the log of the run that is going on was given: what it has taken of that is not held yet.
    running: Cell<Option<usize>>,
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
        Account {
            limit,
            of_log: None,
            held: Cell::new(0),
            most: Cell::new(0),
            running: Cell::new(None),
            refusal: RefCell::new(None),
        }
    }

    /// What [`kept_bytes`](super::kept_bytes) says, and so many bytes more for logs of comparisons, which are
    /// cut where they are beyond: what lies beyond cannot be told apart.
    pub fn for_kept(point: &[f64], order: usize, more: usize) -> Self {
        let of_log = super::LEAST_LOG.saturating_add(more / super::most_runs(point, order));
        let limit = super::kept_bytes(point, order).saturating_add(more);
        Account { of_log: Some(of_log), ..Account::within(limit) }
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

    /// Takes so many bytes until what it gives is dropped; `None`, and looking stops, if there are not so
    /// many left.
    pub fn charge(&self, bytes: usize) -> Option<Charge<'_>> {
        if self.has_refused() {
            return None;
        }
        let held = self.held.get().saturating_add(bytes);
        let in_all = held.saturating_add(self.running.get().map_or(0, decision::logged_of));
        if in_all > self.limit {
            self.refuse(Error::ByteLimit { limit: self.limit, needed: in_all, node: 0 });
            return None;
        }
        self.held.set(held);
        self.most.set(self.most.get().max(in_all));
        Some(Charge { account: self, bytes })
    }

    /// The same, with the reason.
    pub fn charged(&self, bytes: usize) -> Result<Charge<'_>, Error> {
        self.charge(bytes).ok_or_else(|| {
            let beyond = Error::ByteLimit { limit: self.limit, needed: bytes, node: 0 };
            self.refused().unwrap_or(beyond)
        })
    }

    /// Looking stops for this reason; a run to a side beyond the budget is no side without a derivative.
    pub fn refuse(&self, error: Error) {
        self.refusal.borrow_mut().get_or_insert(error);
    }

    pub(super) fn has_refused(&self) -> bool {
        self.refusal.borrow().is_some()
    }

    /// Why looking stopped, if it did; from now on it goes on.
    pub fn refused(&self) -> Option<Error> {
        self.refusal.take()
    }

    /// What the log of the run that begins now may take.
    pub(super) fn of_log(&self) -> usize {
        let budget = self.of_log.unwrap_or(usize::MAX).min(self.limit - self.held.get().min(self.limit));
        self.running.set(Some(budget));
        budget
    }

    /// The run is over: what its log took is charged next.
    pub(super) fn run_is_over(&self) {
        self.running.set(None);
    }

    /// A log was cut.
    pub(super) fn log_was_cut(&self) {
        if self.of_log.is_none() {
            self.refuse(Error::ByteLimit {
                limit: self.limit,
                needed: self.limit.saturating_add(1),
                node: 0,
            });
        }
    }
}

/// Bytes that are held.
#[doc(hidden)]
#[derive(Debug)]
pub struct Charge<'a> {
    account: &'a Account,
    bytes: usize,
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        self.account.held.set(self.account.held.get() - self.bytes);
    }
}
