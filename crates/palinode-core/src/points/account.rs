//! What looking to the sides takes, besides the runs themselves: points, parts, logs ([0038](../../../../docs/adr/0038-the-bytes-of-looking.md)).
//!
//! Input: bytes, before they are allocated. Output: a charge that holds them until it is dropped, or that there are not so many.
//!
//! Invariant: once something was refused, nothing more is charged until the refusal was taken: a look ends with the first one.

use crate::decision;
use crate::error::Error;
use core::cell::{Cell, RefCell};

/// The bytes of looking to the sides: how many there may be, and the most that there were.
#[doc(hidden)]
#[derive(Debug)]
pub struct Account {
    limit: usize,
    held: Cell<usize>,
    most: Cell<usize>,
    /// What the log of a run was given that is going on: what it has taken of that is not held yet.
    of_log: Cell<Option<usize>>,
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
        let (held, most) = (Cell::new(0), Cell::new(0));
        Account { limit, held, most, of_log: Cell::new(None), refusal: RefCell::new(None) }
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
        if self.has_refused() {
            return None;
        }
        let held = self.held.get().saturating_add(bytes);
        let in_all = held.saturating_add(self.of_log.get().map_or(0, decision::logged_of));
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

    /// Looking stops for this reason; a run to a side that has no room for itself is no side without a derivative.
    pub fn refuse(&self, error: Error) {
        self.refusal.borrow_mut().get_or_insert(error);
    }

    /// Runs something whose log has what is left, and tells how much that is.
    pub(super) fn run<R>(&self, run: impl FnOnce(usize) -> R) -> (R, usize) {
        let room = self.limit - self.held.get().min(self.limit);
        let outer = self.of_log.replace(Some(room));
        let result = run(room);
        self.of_log.set(outer);
        (result, room)
    }

    pub(super) fn refuse_beyond_limit(&self) {
        self.refuse(Error::ByteLimit { limit: self.limit, needed: self.limit.saturating_add(1), node: 0 });
    }

    pub(super) fn has_refused(&self) -> bool {
        self.refusal.borrow().is_some()
    }

    /// Why looking stopped, if it did; from now on it goes on.
    pub(super) fn refused(&self) -> Option<Error> {
        self.refusal.take()
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
    pub(super) fn add(&mut self, bytes: usize) {
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
