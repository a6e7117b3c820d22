//! How long a search for a plan may take: some milliseconds, or about as long as the run that it plans.
//!
//! It counts instructions that were walked through, not time: the same program and budget give the same plan
//! on every machine.

use std::cell::Cell;

use super::walk::EFFORT;

/// So many walks as long as may be.
const WALKS: u64 = 1;
/// To differentiate and simplify a program takes as long as to walk so often through what comes of it.
const MAKING: u64 = 10;
/// A run does about so much work (`Ledger::work`) while a search walks through one instruction.
const WORK_PER_INST: f64 = 60.0;
/// In a search, a walk that is longer than this part of one is made for a bound instead.
const PART: u64 = 8;

/// What a search has taken, and may take.
pub(super) struct Effort {
    spent: Cell<u64>,
    most: f64,
    /// The part of it that may be taken for now.
    part: Cell<f64>,
    /// By how much the limit of a single walk is divided.
    walk: u64,
}

impl Effort {
    pub(super) fn unlimited() -> Effort {
        Effort { spent: Cell::new(0), most: f64::INFINITY, part: Cell::new(1.0), walk: 1 }
    }

    /// As much as a few walks take, or as a run that does so much work.
    pub(super) fn for_a_run(work: f64) -> Effort {
        let most = (WALKS * EFFORT) as f64 + work / WORK_PER_INST;
        Effort { spent: Cell::new(0), most, part: Cell::new(1.0), walk: PART }
    }

    /// From here on, only up to this part of all.
    pub(super) fn limit_to(&self, part: f64) {
        self.part.set(part);
    }

    /// By how much the limit of a single walk is divided.
    pub(super) fn of_a_walk(&self) -> u64 {
        self.walk
    }

    pub(super) fn spend(&self, walked: u64) {
        self.spent.set(self.spent.get().saturating_add(walked));
    }

    /// A program of so many instructions was made.
    pub(super) fn spend_making(&self, instructions: usize) {
        self.spend(MAKING.saturating_mul(instructions as u64));
    }

    pub(super) fn is_over(&self) -> bool {
        self.spent.get() as f64 > self.most * self.part.get()
    }
}
