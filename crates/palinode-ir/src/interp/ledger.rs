//! The account of a run: how many bytes its arrays take, how many they may take, and what was allocated when.
//!
//! Input: every allocation and release of a [`super::store::Buffer`], and the workspace of kernels. Output:
//! [`Stats`], an error before the first byte beyond the budget, and the [`Event`]s of a recorded run.
//!
//! Invariants: a buffer is charged before it is allocated and credited when it is dropped, on every path,
//! errors included; `live` is the sum of all buffers and of the workspace charged at that moment. Bookkeeping
//! (registers, lengths of axes, lists of chunks) is charged by the rules of `bookkeeping.rs`, and is in the
//! budget, too.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use palinode_core::Budget;

use super::Stats;
use super::error::RunErrorKind;
use super::store_rule::Event;
use crate::fast::FastMap;

/// Bytes of a run.
#[derive(Debug)]
pub(super) struct Ledger {
    budget: Budget,
    live: Cell<usize>,
    peak: Cell<usize>,
    /// What is taken besides elements and workspace (`bookkeeping.rs`), and the most of all.
    beside: Cell<usize>,
    most: Cell<usize>,
    allocations: Cell<u64>,
    record: RefCell<Record>,
}

/// What is written down of a run.
#[derive(Debug)]
pub(super) enum Record {
    Nothing,
    Events(Vec<Event>),
    /// Of each function and each place in it where a run goes on or leaves it: how often it went on.
    Rounds(Box<FastMap<(usize, usize), Counted>>),
}

/// How often a run went on at some place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    now: u64,
    pub(super) least: u64,
    pub(super) most: u64,
}

impl Ledger {
    pub(super) fn new(budget: Budget, record: Record) -> Rc<Ledger> {
        Rc::new(Ledger {
            budget,
            live: Cell::new(0),
            peak: Cell::new(0),
            beside: Cell::new(0),
            most: Cell::new(0),
            allocations: Cell::new(0),
            record: RefCell::new(record),
        })
    }

    /// Counts bytes that are about to be allocated, or refuses.
    fn charge(&self, bytes: usize, op: &'static str) -> Result<(), RunErrorKind> {
        self.allow(bytes, op)?;
        let live = self.live.get() + bytes;
        self.live.set(live);
        self.peak.set(self.peak.get().max(live));
        Ok(())
    }

    /// Counts bookkeeping that is about to be allocated, or refuses.
    pub(super) fn charge_beside(&self, bytes: u64, op: &'static str) -> Result<(), RunErrorKind> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.allow(bytes, op)?;
        self.beside.set(self.beside.get() + bytes);
        Ok(())
    }

    pub(super) fn credit_beside(&self, bytes: u64) {
        self.beside.set(self.beside.get() - usize::try_from(bytes).unwrap_or(usize::MAX));
    }

    /// Whether the budget allows so many bytes more.
    fn allow(&self, bytes: usize, op: &'static str) -> Result<(), RunErrorKind> {
        let taken = self.live.get() + self.beside.get();
        match taken.checked_add(bytes) {
            Some(after) if self.budget.allows(after) => {
                self.most.set(self.most.get().max(after));
                Ok(())
            }
            Some(_) | None => {
                Err(RunErrorKind::OverBudget { budget: self.budget.bytes(), live: taken, needed: bytes, op })
            }
        }
    }

    /// Charges a buffer that is about to be allocated.
    pub(super) fn charge_buffer(&self, bytes: usize, op: &'static str) -> Result<(), RunErrorKind> {
        self.charge(bytes, op)?;
        self.allocations.set(self.allocations.get() + u64::from(bytes > 0));
        Ok(())
    }

    pub(super) fn credit(&self, bytes: usize) {
        self.live.set(self.live.get() - bytes);
    }

    /// Writes an event down if the run is recorded.
    pub(super) fn note(&self, event: Event) {
        if let Record::Events(events) = &mut *self.record.borrow_mut() {
            events.push(event);
        }
    }

    /// Writes down which way a run went at some place of a function.
    pub(super) fn note_decision(&self, function: usize, at: usize, holds: bool) {
        match &mut *self.record.borrow_mut() {
            Record::Nothing => {}
            Record::Events(events) => events.push(Event::Holds(holds)),
            Record::Rounds(all) => {
                let none = Counted { now: 0, least: u64::MAX, most: 0 };
                let counted = all.entry((function, at)).or_insert(none);
                if holds {
                    counted.now += 1;
                } else {
                    let now = core::mem::take(&mut counted.now);
                    (counted.least, counted.most) = (counted.least.min(now), counted.most.max(now));
                }
            }
        }
    }

    pub(super) fn take_record(&self) -> Record {
        self.record.replace(Record::Nothing)
    }
}

/// What kernels need to make arrays and to say what that cost.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) stats: Stats,
    pub(super) ledger: Rc<Ledger>,
}

impl Memory {
    pub(super) fn new(budget: Budget, record: Record) -> Memory {
        Memory { stats: Stats::default(), ledger: Ledger::new(budget, record) }
    }

    /// Charges the workspace of a kernel for as long as the guard lives.
    pub(super) fn workspace(&self, bytes: usize, op: &'static str) -> Result<Workspace, RunErrorKind> {
        self.ledger.charge(bytes, op)?;
        Ok(Workspace { bytes, ledger: Rc::clone(&self.ledger) })
    }

    /// The counters so far.
    pub(super) fn stats(&self) -> Stats {
        Stats {
            peak_bytes: self.ledger.peak.get(),
            result_bytes: self.ledger.live.get(),
            heap_bytes: self.ledger.most.get(),
            by_machine: false,
            allocations: self.ledger.allocations.get(),
            ..self.stats
        }
    }
}

/// Workspace that is charged.
#[derive(Debug)]
pub(super) struct Workspace {
    bytes: usize,
    ledger: Rc<Ledger>,
}

impl Drop for Workspace {
    fn drop(&mut self) {
        self.ledger.credit(self.bytes);
    }
}
