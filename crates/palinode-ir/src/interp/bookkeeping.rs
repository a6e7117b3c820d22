//! What a run takes besides the elements of its arrays: the rules, also for the planner.
//!
//! Registers, what describes an array (its lengths, its list of chunks), the schedules and lists of sweeps,
//! and the copies in which results are handed over. A budget is about all of it: the allocator sees no more
//! than elements and this (`tests/all/peak.rs`). Each is an upper bound that depends only on the program, on
//! lengths, and on how many arrays, snapshots and calls there are, so that a plan says the same as a run.

use crate::op::{Literal, Op};
use crate::program::Function;
use crate::schedule::schedule_bytes;
use crate::types::Elem;

/// Whatever the program: the machine itself, the small lists of a kernel, the least room of the stacks of
/// registers.
pub(crate) const RUN: u64 = 512;
/// An array of however many elements: lengths of axes, buffers, counts of holders.
pub(crate) const ARRAY: u64 = 208;
/// A sweep, without what it keeps.
const SWEEP: u64 = 640;
/// A result of however many elements.
const RESULT: u64 = 160;
/// An entry in the list of chunks; while a list grows there are three times as many.
const CHUNK: u64 = 3 * 40;
/// A register of an array.
const REGISTER: u64 = 16;
/// A caller in the list of callers, as for chunks.
const CALLER: u64 = 3 * 48;

/// What describes an array in so many chunks.
pub(crate) fn array(chunks: u64) -> u64 {
    ARRAY.saturating_add(chunk_list(chunks))
}

/// The list of so many chunks: a list has room for four at least.
pub(crate) fn chunk_list(chunks: u64) -> u64 {
    if chunks == 0 { 0 } else { (chunks + 1).saturating_mul(CHUNK) }
}

/// A sweep of so many rounds that keeps so many states with so many arrays each.
pub(crate) fn sweep(rounds: u64, snapshots: u64, arrays: u64) -> u64 {
    let lists = if arrays == 0 { 0 } else { arrays.saturating_mul(REGISTER).saturating_add(8) };
    let lists = snapshots.saturating_mul(lists);
    SWEEP.saturating_add(schedule_bytes(rounds, snapshots)).saturating_add(lists)
}

/// What a snapshot takes besides the elements of the state, so that a limit in bytes is kept by all of it.
pub(crate) fn snapshot(arrays: u64) -> u64 {
    schedule_bytes(u64::MAX, 1) + if arrays == 0 { 0 } else { 8 + arrays * (REGISTER + ARRAY) }
}

/// The copy of a result with elements of so many bytes in all.
pub(crate) fn result(bytes: u64) -> u64 {
    RESULT.saturating_add(bytes)
}

/// What a call of a function needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Registers {
    reals: u64,
    ints: u64,
    bools: u64,
    arrays: u64,
    /// Operands and results of its widest operation.
    widest: u64,
    /// Real constants, in a list that is made when the run starts.
    constants: u64,
}

impl Registers {
    /// At most one register for each value, and some for loops.
    pub(crate) fn of(function: &Function) -> Registers {
        let mut found = Registers { reals: 1, ints: 1, bools: 1, arrays: 1, ..Registers::default() };
        for value in &function.values {
            match value.ty {
                ty if !ty.is_scalar() => found.arrays += 1,
                ty if ty.is_real() => found.reals += 1,
                ty if ty.elem == Elem::Int => found.ints += 1,
                _ => found.bools += 1,
            }
        }
        function.body.for_each_inst(&mut |inst| {
            // Operands of loops, branches, fused operations and calls go from register to register.
            if inst.blocks.is_empty() && !matches!(inst.op, Op::Call(_)) {
                found.widest = found.widest.max((inst.args.len() + inst.results.len()) as u64);
            }
            found.ints += u64::from(inst.op.repeats()) + 2 * u64::from(matches!(inst.op, Op::Fused));
            let is_constant = matches!(inst.op, Op::Const(Literal::Real(_) | Literal::Named(_)));
            found.constants += u64::from(is_constant);
        });
        found
    }

    /// The bytes of the registers, with real numbers of so many.
    pub(crate) fn bytes(&self, real: u64) -> u64 {
        let operands = 3 * self.widest * (real.max(16) + 8);
        self.reals * real + self.ints * 8 + self.bools + self.arrays * REGISTER + operands
    }

    /// The bytes of the list of its constants.
    pub(crate) fn list_bytes(&self, real: u64) -> u64 {
        size_of::<Vec<u8>>() as u64 + self.constants * real
    }

    /// Whether so many registers of each kind are covered.
    pub(crate) fn covers(&self, [reals, ints, bools, arrays]: [usize; 4]) -> bool {
        let enough = |bound: u64, used: usize| used as u64 <= bound;
        enough(self.reals, reals)
            && enough(self.ints, ints)
            && enough(self.bools, bools)
            && enough(self.arrays, arrays)
    }
}

/// The registers of so many calls that are running, of so many bytes in all. A stack that grows is there
/// twice for a moment, and then has room to spare.
pub(crate) fn frames(calls: usize, bytes: u64) -> u64 {
    if calls <= 1 {
        return bytes;
    }
    bytes.saturating_mul(3).saturating_add(calls as u64 * CALLER)
}
