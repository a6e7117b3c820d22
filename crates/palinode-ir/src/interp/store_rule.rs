//! The rules by which a run takes memory, stated once for the interpreter and for the planner.

use crate::op::Op;
use crate::types::Elem;

/// What a recorded run did, in order, as far as memory depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A `for` starts and will run so many rounds.
    Trips(u64),
    /// The condition of an `if`, or of a round of a `while`.
    Holds(bool),
    /// A fresh array of so many elements.
    Elements(u64),
}

const FIRST_CHUNK: u64 = 32;
const LARGEST_CHUNK: u64 = 4096;

/// How many elements there is room for once an array with this room has grown to this length by `push`.
pub(crate) fn room_after_push(room: u64, length: u64) -> u64 {
    let mut room = room;
    while room < length {
        room += room.clamp(FIRST_CHUNK, LARGEST_CHUNK);
    }
    room
}

/// How many elements there is room for after `resize` to `new`.
pub(crate) fn room_after_resize(room: u64, old: u64, new: u64) -> u64 {
    let _ = old;
    room.max(new)
}

/// The operand whose memory an operation uses for its result. Of each operand `free` says what kind it has, if it is an array
/// that nothing else holds.
pub(crate) fn reuses(op: &Op, result: Elem, free: &[Option<Elem>]) -> Option<usize> {
    let is_real = |elem: &Option<Elem>| matches!(elem, Some(Elem::F64 | Elem::F32));
    let fits = matches!(op, Op::Map(_)) && matches!(result, Elem::F64 | Elem::F32) && free.len() <= 2;
    free.iter().position(is_real).filter(|_| fits)
}
