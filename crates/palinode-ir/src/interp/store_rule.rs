//! The rules by which a run takes memory, stated once for the interpreter and for the planner.
//!
//! 1. An array has a buffer of exactly its elements; without elements, none. Elements take the size of the
//!    run's real number, 8 bytes (integers) or 1 (truth values).
//! 2. Inputs are copied into buffers of the run when it starts; results count until the run ends, and are
//!    then copied out.
//! 3. A result is allocated before the operands that die are released, unless [`reuses`] (for a fused loop,
//!    [`fused_reuses`]) says that it is in the memory of an operand that is *free*: it dies there and nothing
//!    else holds it, no other register and no other operand of the same instruction. `write`, `add_at`,
//!    `push`, `resize` and `reshape` change operand 0 if it is free, else a copy of it.
//! 4. An array grows by chunks, and has room for [`elements_held`]. A copy is in one buffer again, of exactly
//!    its elements.
//! 5. Operands in chunks are brought into one buffer first, in the order of the operands: a fresh array takes
//!    the place of the log in its register. Not where [`takes_chunks`] says so.
//! 6. A sweep has a buffer for the scalars of its snapshots, one for each kind, as long as it runs:
//!    [`snapshots_of`] times what the state has. A snapshot holds the arrays of the state, as a register
//!    does; against a limit an array that grew counts as [`most_held`]. If a snapshot would take all of them
//!    over a limit in bytes, because states have become longer, all but the first are given up, the rounds
//!    that are left are run once for the size of the largest state, and the sweep goes on from the first
//!    state with [`snapshots_of_growing`] and buffers for them.
//! 7. While a kernel runs, its [`super::workspace`] is charged.
//! 8. What is needed besides elements is charged by the rules of [`super::bookkeeping`], and results once
//!    more when they are copied out, one after the other.

use crate::op::{Keep, Kind, Op};
use crate::types::Elem;

/// What a recorded run did, in order, as far as memory depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A `for` starts and will run so many rounds.
    Rounds(u64),
    /// The condition of an `if`, or of a round of a `while`.
    Holds(bool),
    /// A fresh array of so many elements: an input, a result, a copy. Chunks that an array grows by have
    /// none.
    Elements(u64),
}

/// The capacity of the first chunk by which an array grows.
pub(super) const SHORTEST: usize = 32;
/// The capacity of the chunks of a long log.
pub(super) const LONGEST: usize = 4096;
/// How many chunks there are before those of [`LONGEST`] elements begin; together they have room for as many.
const GROWING: usize = (LONGEST / SHORTEST).ilog2() as usize + 1;

/// The capacity of a chunk by its number: 32, 32, 64, 128, ... elements up to [`LONGEST`], then [`LONGEST`]
/// each.
pub(super) const fn chunk_capacity(number: usize) -> usize {
    match number {
        0 => SHORTEST,
        _ if number < GROWING => SHORTEST << (number - 1),
        _ => LONGEST,
    }
}

/// In which chunk the appended element `at` is, and where there.
#[inline(always)]
pub(super) const fn chunk_of(at: usize) -> (usize, usize) {
    if at >= LONGEST {
        (GROWING - 1 + at / LONGEST, at % LONGEST)
    } else if at < SHORTEST {
        (0, at)
    } else {
        let top = at.ilog2();
        ((top - SHORTEST.ilog2() + 1) as usize, at - (1 << top))
    }
}

/// How many chunks an array has after its first buffer.
pub(crate) fn chunks_held(made: u64, length: u64) -> u64 {
    match length.saturating_sub(made) {
        0 => 0,
        more => chunk_of(usize::try_from(more - 1).unwrap_or(usize::MAX)).0 as u64 + 1,
    }
}

/// How many elements an array has room for that was made (or copied, or brought into one buffer) with `made`
/// elements and has `length` now: its first buffer, and the chunks that the elements after it need. Cut to
/// nothing it has no room, and counts as made with 0 elements.
pub(crate) fn elements_held(made: u64, length: u64) -> u64 {
    const LARGE: u64 = LONGEST as u64;
    if length == 0 {
        return 0;
    }
    // A plan may ask for more than any run can have.
    made.saturating_add(match length.saturating_sub(made) {
        0 => 0,
        more if more <= LARGE => more.next_power_of_two().max(SHORTEST as u64),
        more => more.checked_next_multiple_of(LARGE).unwrap_or(u64::MAX),
    })
}

/// No array that was made (or copied) with `made` elements or more and has `length` now has room for more, if
/// it grew: a state that is run to again may have been copied elsewhere on the way.
pub(crate) fn most_held(made: u64, length: u64) -> u64 {
    if length <= made { made } else { length.saturating_add(length.max(SHORTEST as u64)) }
}

/// No array of `length` elements has room for more, with however many elements it was made.
pub(crate) fn held_at_most(length: u64) -> u64 {
    if length == 0 {
        return 0;
    }
    length.saturating_add(length.clamp(SHORTEST as u64, LONGEST as u64) - 1)
}

/// What a sweep keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    /// How many steps its schedule has: its rounds, and behind the last one the turn.
    pub(crate) steps: u64,
    pub(crate) snapshots: u64,
    /// Their limit.
    pub(crate) keep: Keep,
}

/// What a sweep of so many rounds keeps, which turns or does not, if a state of so many values takes `each`
/// bytes; if not even one fits, the bytes that there are. One step needs no snapshot, nor does a state of
/// nothing. The first state of a single round is there in any case until that is reversed.
pub(crate) fn snapshots_of(
    keep: Keep,
    rounds: u64,
    turns: bool,
    values: usize,
    each: u64,
) -> Result<Kept, u64> {
    let keep = if turns && rounds <= 1 { Keep::Snapshots(1) } else { keep };
    let steps = rounds.saturating_add(u64::from(turns));
    let snapshots = match keep {
        _ if steps <= 1 || values == 0 => 0,
        // Arrays that are empty, for now.
        _ if each == 0 => rounds,
        Keep::Snapshots(snapshots) => snapshots.max(1),
        Keep::Bytes(bytes) if bytes < each => return Err(bytes),
        Keep::Bytes(bytes) => bytes / each,
    };
    Ok(Kept { steps, snapshots: snapshots.min(rounds), keep })
}

/// How many snapshots fit into `bytes`, if the first state takes `first` of them and no other one more
/// than `largest`.
pub(crate) fn snapshots_of_growing(bytes: u64, first: u64, largest: u64) -> u64 {
    1 + bytes.saturating_sub(first) / largest.max(1)
}

fn is_kind(elem: Elem, wanted: Elem) -> bool {
    elem == wanted || (elem.is_real() && wanted.is_real())
}

/// The operand whose memory an operation uses for its result. Of each operand `free` says what kind it has,
/// if it is an array that dies here and that nothing else holds.
///
/// Elementwise operations use the first one of the kind of the result (the condition of a `select` does not
/// count).
pub(crate) fn reuses(op: &Op, result: Elem, free: &[Option<Elem>]) -> Option<usize> {
    let first = |from: usize| {
        let fits = |elem: &Option<Elem>| elem.is_some_and(|elem| is_kind(elem, result));
        free[from..].iter().position(fits).map(|at| from + at)
    };
    match op {
        Op::Select => first(1),
        Op::Permute(axes) if is_identity(axes) => first(0),
        Op::Settled(_) => free[0].map(|_| 0),
        _ => match op.facts().kind {
            Kind::Elementwise => first(0),
            Kind::Reshapes | Kind::Updates => free[0].map(|_| 0),
            Kind::Literal | Kind::Measures | Kind::Reads | Kind::Makes => None,
            // It has a rule of its own.
            Kind::Fuses => None,
            Kind::Repeats(_) | Kind::Branches | Kind::Calls => None,
        },
    }
}

pub(super) fn is_identity(axes: &[u8]) -> bool {
    axes.windows(2).all(|pair| pair[0] < pair[1])
}

/// For each result of a fused loop the operand in whose memory it is if that is free; if it is held
/// elsewhere, or if there is none, the result has a new buffer. `operands` are the array operands, each with
/// its kind and whether it dies there (of several uses of one array, the last).
///
/// The choice is made before the program runs, among the operands that die: in order, the first of the kind
/// of the result that is not taken yet.
pub(crate) fn fused_reuses(operands: &[(Elem, bool)], results: &[Elem]) -> Vec<Option<usize>> {
    let mut taken = vec![false; operands.len()];
    let mut choose = |elem: Elem| {
        let fits = |at: &usize| !taken[*at] && operands[*at].1 && is_kind(operands[*at].0, elem);
        let at = (0..operands.len()).find(fits)?;
        taken[at] = true;
        Some(at)
    };
    results.iter().map(|&elem| choose(elem)).collect()
}

/// Whether an operand may be in chunks.
pub(crate) fn takes_chunks(op: &Op, operand: usize) -> bool {
    match op.facts().kind {
        Kind::Reads | Kind::Updates => operand == 0,
        // Values pass through these as they are.
        Kind::Measures | Kind::Repeats(_) | Kind::Branches | Kind::Calls => true,
        Kind::Literal | Kind::Elementwise | Kind::Makes | Kind::Reshapes | Kind::Fuses => false,
    }
}
