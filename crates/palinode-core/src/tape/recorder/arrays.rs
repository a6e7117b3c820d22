//! How arrays write to a recording: storages, steps on single elements, operations on whole arrays, each
//! counted towards the limits of the tape before it is there.

use super::Recorder;
use crate::tape::arena::SINK;
use crate::tape::arrays::{ArrayTape, Kind, Step, Whole};
use palinode_num::Scalar;

impl<S: Scalar> Recorder<S> {
    /// A new storage with so many cells.
    pub(crate) fn new_storage(&mut self, len: usize) -> u32 {
        assert!(len <= u32::MAX as usize, "palinode: an array on a tape has at most 2^32 - 1 elements");
        if self.reserve(|arrays| &mut arrays.storages) {
            self.arrays.storages.push(len);
            self.grow_cells(len);
        }
        (self.arrays.storages.len() as u32).saturating_sub(1)
    }

    /// A storage has at least so many cells.
    pub(crate) fn storage_reaches(&mut self, storage: u32, len: usize) {
        // There is none after a failure.
        if let Some(length) = self.arrays.storages.get_mut(storage as usize) {
            let more = len.saturating_sub(*length);
            *length += more;
            self.grow_cells(more);
        }
    }

    fn grow_cells(&mut self, more: usize) {
        self.arrays.cells += more;
        self.arena.set_aside(more * self.arena.cotangent_bytes());
    }

    /// Records a step on one element.
    #[inline]
    pub(crate) fn push_step(&mut self, kind: Kind, storage: u32, cell: usize, node: u32) {
        if let Some(bytes) = self.arrays.steps.needs() {
            // While the list of chunks moves, both are there.
            let lists = self.arrays.steps.chunks.capacity() * size_of::<Vec<Step>>();
            self.charge(bytes + lists + size_of::<Vec<Step>>());
            self.arena.put_back(lists);
        }
        if self.arena.failure().is_some() {
            return;
        }
        let at = self.arena.next_node();
        self.arrays.steps.push(Step { at, storage, cell: cell as u32, node, kind });
        self.arrays.counts.elements += usize::from(kind != Kind::Whole);
    }

    /// Reads an element into a new node.
    #[inline]
    pub(crate) fn push_read(&mut self, storage: u32, cell: usize, zero: S) -> u32 {
        let node = self.arena.push([SINK], [zero]);
        self.push_step(Kind::Get, storage, cell, node);
        node
    }

    /// Records an operation on whole arrays.
    pub(crate) fn push_whole(&mut self, whole: Whole<S>) {
        if self.arena.failure().is_some() {
            return;
        }
        let (output, replaces) = whole.output();
        self.arrays.counts.added += whole.arguments().map(|region| region.places.len()).sum::<usize>();
        self.arrays.counts.filled += if replaces { output.places.len() } else { 0 };
        self.arrays.counts.operations += 1;
        let scratch = whole.scratch() * size_of::<S>();
        let more_scratch = scratch.saturating_sub(self.arrays.scratch);
        self.arrays.scratch += more_scratch;
        self.charge(whole.bytes(None) + more_scratch);
        if self.reserve(|arrays| &mut arrays.whole) {
            self.push_step(Kind::Whole, self.arrays.whole.len() as u32, 0, SINK);
            self.arrays.whole.push(whole);
        }
    }

    /// Reserves memory for one more in a list; false if there may be none.
    fn reserve<T>(&mut self, list: impl Fn(&mut ArrayTape<S>) -> &mut Vec<T>) -> bool {
        let (len, capacity) = (list(&mut self.arrays).len(), list(&mut self.arrays).capacity());
        if len == capacity {
            let more = capacity / 2 + 16;
            // While a list moves, both are there.
            self.charge((capacity + more) * size_of::<T>());
            if self.arena.failure().is_some() {
                return false;
            }
            list(&mut self.arrays).reserve_exact(more);
            self.arena.put_back(capacity * size_of::<T>());
        }
        true
    }

    /// Counts bytes towards the limit; the recording fails if they are too many.
    pub(crate) fn charge(&mut self, bytes: usize) {
        self.arena.set_aside(bytes);
        if let Err(error) = self.arena.check_limits() {
            self.arena.refuse(error);
        }
    }
}
