//! The buffers of an imagined run: how many bytes each has, who holds it, and how many are live at once.
//!
//! Input: what a run would allocate, share and release, in order. Output: live and peak bytes. Mirrors the memory model that
//! `interp` states; no element is ever computed, except integers and truth values that lengths and loops depend on.

use crate::interp::store_rule;
use crate::op::FuncId;
use crate::plan::known::Ints;
use crate::program::Value;
use crate::types::Elem;

/// The number of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Id(u32);

/// An array of the imagined run.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    pub(super) elem: Elem,
    /// Lengths, as far as they are known.
    pub(super) shape: Vec<Option<u64>>,
    /// Whether the lengths are bounds: a branch on data decides them.
    pub(super) at_most: bool,
    /// Integers and truth values of a vector, as far as they are known.
    pub(super) ints: Option<Ints>,
    /// With how many elements it was made: beyond them it grows by chunks.
    pub(super) made: u64,
    pub(super) bytes: u64,
    pub(super) holders: u32,
    /// Which allocation made it, counted from 0.
    pub(super) born: u64,
    /// The value that it holds: the latest that was defined in it.
    pub(super) value: Option<(FuncId, Value)>,
}

impl Buffer {
    /// How many elements it has, if that is known.
    pub(super) fn elements(&self) -> Option<u64> {
        elements(&self.shape)
    }

    /// Whether it has grown beyond the buffer that it was made with.
    pub(super) fn in_chunks(&self) -> bool {
        self.elements().is_some_and(|elements| elements > self.made)
    }
}

/// More elements than can be counted are as many as can be.
pub(super) fn elements(shape: &[Option<u64>]) -> Option<u64> {
    shape.iter().try_fold(1u64, |product, &length| Some(product.saturating_mul(length?)))
}

/// A number that tells sequences of numbers apart, with one more of them.
pub(super) fn mixed(sequence: u64, next: u64) -> u64 {
    (sequence ^ next).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_add(1)
}

/// What an imagined run has cost so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    buffers: Vec<Option<Buffer>>,
    free: Vec<u32>,
    pub(super) live: u64,
    pub(super) peak: u64,
    pub(super) allocations: u64,
    /// About how much work has been done, in additions.
    pub(super) work: f64,
    /// Sums up the sizes of fresh arrays, so that two rounds of a loop can be compared.
    pub(super) trace: u64,
    real_bytes: usize,
}

impl Ledger {
    pub(super) fn new(real_bytes: usize) -> Ledger {
        Ledger { real_bytes, ..Ledger::default() }
    }

    pub(super) fn element_bytes(&self, elem: Elem) -> u64 {
        elem.bytes(self.real_bytes) as u64
    }

    /// Takes memory for so many elements, held once.
    pub(super) fn allocate(&mut self, elem: Elem, shape: Vec<Option<u64>>, room: u64) -> Id {
        let bytes = room.saturating_mul(self.element_bytes(elem));
        self.trace = mixed(self.trace, bytes);
        let born = self.allocations;
        self.allocations += 1;
        let (at_most, ints, value) = (false, None, None);
        let buffer = Buffer { elem, shape, at_most, ints, made: room, bytes, holders: 1, born, value };
        self.charge(bytes);
        self.place(buffer)
    }

    fn place(&mut self, buffer: Buffer) -> Id {
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                self.buffers.push(None);
                self.buffers.len() as u32 - 1
            }
        };
        self.buffers[id as usize] = Some(buffer);
        Id(id)
    }

    /// Counts bytes as live.
    pub(super) fn charge(&mut self, bytes: u64) {
        self.live = self.live.saturating_add(bytes);
        self.peak = self.peak.max(self.live);
    }

    pub(super) fn get(&self, id: Id) -> &Buffer {
        self.buffers[id.0 as usize].as_ref().expect("a buffer that someone holds")
    }

    pub(super) fn get_mut(&mut self, id: Id) -> &mut Buffer {
        self.buffers[id.0 as usize].as_mut().expect("a buffer that someone holds")
    }

    pub(super) fn hold(&mut self, id: Id) {
        self.get_mut(id).holders += 1;
    }

    pub(super) fn is_held_once(&self, id: Id) -> bool {
        self.is_held(id, 1)
    }

    /// Whether it has exactly so many holders.
    pub(super) fn is_held(&self, id: Id, holders: usize) -> bool {
        self.get(id).holders as usize == holders
    }

    pub(super) fn release(&mut self, id: Id) {
        let buffer = self.get_mut(id);
        buffer.holders -= 1;
        if buffer.holders == 0 {
            let bytes = buffer.bytes;
            self.discharge(bytes);
            self.buffers[id.0 as usize] = None;
            self.free.push(id.0);
        }
    }

    /// Makes a vector longer by so many elements, as `push` does.
    pub(super) fn grow(&mut self, id: Id, more: u64) {
        if let Some(length) = self.get(id).shape[0] {
            self.set_length(id, length.saturating_add(more));
        }
    }

    /// Changes the length of a vector, as `resize` does.
    pub(super) fn resize(&mut self, id: Id, length: u64) {
        self.get_mut(id).ints = None;
        self.set_length(id, length);
    }

    fn set_length(&mut self, id: Id, length: u64) {
        let size = self.element_bytes(self.get(id).elem);
        let buffer = self.get_mut(id);
        buffer.shape[0] = Some(length);
        if length == 0 {
            buffer.made = 0;
        }
        let held = store_rule::elements_held(buffer.made, length);
        let (before, after) = (buffer.bytes, held.saturating_mul(size));
        buffer.bytes = after;
        self.charge(after.saturating_sub(before));
        self.discharge(before.saturating_sub(after));
    }

    /// Counts bytes as live no more.
    pub(super) fn discharge(&mut self, bytes: u64) {
        self.live = self.live.saturating_sub(bytes);
    }

    /// Starts anew, with no array.
    pub(super) fn without_arrays(&self) -> Ledger {
        Ledger { buffers: Vec::new(), free: Vec::new(), live: 0, ..self.clone() }
    }

    /// Counts an array that was made elsewhere as live, held by nothing yet.
    pub(super) fn adopt(&mut self, mut buffer: Buffer) -> Id {
        buffer.holders = 0;
        self.charge(buffer.bytes);
        self.place(buffer)
    }

    /// The buffers that are live, by age.
    pub(super) fn survivors(&self) -> Vec<&Buffer> {
        let mut found: Vec<&Buffer> = self.buffers.iter().flatten().collect();
        found.sort_by_key(|buffer| buffer.born);
        found
    }
}
