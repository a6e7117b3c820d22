//! The elements of an array: one buffer of exactly its size, or a log that grows by chunks.
//!
//! An array has one buffer, whose capacity is the number of its elements. `push` and a `resize` to more
//! elements append; where there is no room they add a chunk instead of moving what is there. The chunks after
//! the first buffer have fixed capacities ([`chunk_capacity`]), so that an element is found by its number. A
//! `resize` to fewer elements frees the chunks that hold none any more. What an array takes is therefore a
//! function of two numbers, [`super::store_rule::elements_held`].
//!
//! Invariants: every chunk but the last is full; the last one holds an element (or there is only one); arrays
//! of other ranks than 1 have one buffer. Buffers are aligned to cache lines, and so that an allocator can
//! tell them from bookkeeping.

use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use aligned_vec::{AVec, ConstAlign};

use super::bookkeeping;
use super::error::RunErrorKind;
use super::ledger::{Ledger, Memory};
use super::places::{Steps, walk};
use super::store_rule::{Event, chunk_capacity, chunk_of, elements_held};

/// The alignment of every buffer, in bytes.
const ALIGNMENT: usize = 64;
/// No buffer can be larger. `aligned-vec` 0.6.4 forgets that sizes are rounded up to the alignment, so this
/// is checked here.
const MOST_BYTES: usize = isize::MAX as usize - 4096;
/// So many elements at once are worth the question whether there is memory for them.
const MANY: usize = 1 << 20;
/// How many elements an array of this shape has, if it can exist.
pub(super) fn elements_of(op: &'static str, shape: &[usize]) -> Result<usize, RunErrorKind> {
    counted(shape).ok_or_else(|| too_large(op, shape))
}

/// How many elements a shape has. None if they are too many to be counted; axes of length 0 are left out of
/// that, so that what is counted along some of the axes (a stride, a lane) never overflows either.
pub(super) fn counted(shape: &[usize]) -> Option<usize> {
    let full = shape.iter().filter(|&&length| length != 0);
    let product = full.copied().try_fold(1_usize, |product, length| product.checked_mul(length))?;
    Some(if shape.contains(&0) { 0 } else { product })
}

fn too_large(op: &'static str, shape: &[usize]) -> RunErrorKind {
    RunErrorKind::TooLarge { op, shape: shape.into() }
}

/// Memory for elements, charged to the run. Its capacity never changes.
#[derive(Debug)]
pub(super) struct Buffer<T> {
    data: AVec<T, ConstAlign<ALIGNMENT>>,
    ledger: Rc<Ledger>,
}

impl<T> Buffer<T> {
    /// Room for exactly the elements of this shape.
    fn new(op: &'static str, shape: &[usize], memory: &Memory) -> Result<Buffer<T>, RunErrorKind> {
        let elements = elements_of(op, shape)?;
        let bytes = elements.checked_mul(size_of::<T>()).filter(|&bytes| bytes <= MOST_BYTES);
        let Some(bytes) = bytes else { return Err(too_large(op, shape)) };
        memory.ledger.charge_buffer(bytes, op)?;
        let mut buffer = Buffer::nothing(memory);
        if buffer.data.try_reserve_exact(elements).is_err() {
            memory.ledger.credit(bytes);
            return Err(too_large(op, shape));
        }
        Ok(buffer)
    }

    /// Room for a kernel to work in.
    pub(super) fn workspace(
        op: &'static str,
        elements: usize,
        memory: &Memory,
    ) -> Result<Buffer<T>, RunErrorKind> {
        Buffer::new(op, &[elements], memory)
    }

    fn nothing(memory: &Memory) -> Buffer<T> {
        Buffer { data: AVec::new(ALIGNMENT), ledger: Rc::clone(&memory.ledger) }
    }

    #[inline(always)]
    pub(super) fn left(&self) -> usize {
        self.data.capacity() - self.data.len()
    }
}

impl<T: Copy> Buffer<T> {
    /// Appends an element; there must be room.
    #[inline(always)]
    pub(super) fn push(&mut self, value: T) {
        debug_assert!(self.left() > 0, "a buffer does not grow");
        self.data.push(value);
    }

    pub(super) fn append(&mut self, values: &[T]) {
        debug_assert!(self.left() >= values.len(), "a buffer does not grow");
        self.data.extend_from_slice(values);
    }

    /// Appends the elements at these places.
    pub(super) fn pick(&mut self, data: &[T], axes: &[Steps<'_>]) {
        walk(axes, 0, &mut |row| match row.neighbours() {
            Some(places) => self.append(&data[places]),
            None if row.step == 0 && row.count > 0 => self.repeat(row.count, data[row.first]),
            None => row.places().for_each(|at| self.push(data[at])),
        });
    }

    fn repeat(&mut self, count: usize, value: T) {
        debug_assert!(self.left() >= count, "a buffer does not grow");
        // Runs are copied faster than elements are pushed.
        let run = [value; 64];
        let mut left = count;
        while left > 0 {
            let part = left.min(run.len());
            self.data.extend_from_slice(&run[..part]);
            left -= part;
        }
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.data
    }
}

impl<T> DerefMut for Buffer<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.data
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        self.ledger.credit(self.data.capacity() * size_of::<T>());
    }
}

/// The elements of an array and its lengths.
#[derive(Debug)]
pub(super) struct Store<T> {
    pub(super) shape: Vec<usize>,
    /// All elements, or the last chunk.
    tail: Buffer<T>,
    /// How many elements there are before `tail`.
    start: usize,
    /// The buffer that the array was made with and the chunks between it and `tail`; empty as long as there
    /// is one buffer.
    earlier: Vec<Buffer<T>>,
    /// How many elements the first of them has.
    made: usize,
}

impl<T: Copy> Store<T> {
    /// An array without its elements, to be pushed.
    pub(super) fn with_capacity(
        op: &'static str,
        shape: Vec<usize>,
        memory: &Memory,
    ) -> Result<Store<T>, RunErrorKind> {
        let tail: Buffer<T> = Buffer::new(op, &shape, memory)?;
        memory.ledger.charge_beside(bookkeeping::ARRAY, op)?;
        memory.ledger.note(Event::Elements(tail.left() as u64));
        Ok(Store { shape, tail, start: 0, earlier: Vec::new(), made: 0 })
    }

    /// An array full of one element.
    pub(super) fn filled(
        op: &'static str,
        shape: Vec<usize>,
        value: T,
        memory: &Memory,
    ) -> Result<Store<T>, RunErrorKind> {
        let mut store = Store::with_capacity(op, shape, memory)?;
        let room = store.tail.left();
        store.tail.repeat(room, value);
        Ok(store)
    }

    /// An array with these elements.
    pub(super) fn from_slice(
        op: &'static str,
        shape: Vec<usize>,
        values: &[T],
        memory: &Memory,
    ) -> Result<Store<T>, RunErrorKind> {
        let mut store = Store::with_capacity(op, shape, memory)?;
        store.tail.append(values);
        Ok(store)
    }

    /// A copy in one buffer.
    pub(super) fn copied(&self, op: &'static str, memory: &Memory) -> Result<Store<T>, RunErrorKind> {
        let mut copy = Store::with_capacity(op, self.shape.clone(), memory)?;
        self.chunks().for_each(|chunk| copy.tail.append(chunk));
        Ok(copy)
    }

    /// The elements, one chunk after the other.
    pub(super) fn chunks(&self) -> impl Iterator<Item = &[T]> + Clone {
        self.earlier.iter().chain([&self.tail]).map(|chunk| &**chunk)
    }

    pub(super) fn rank(&self) -> usize {
        self.shape.len()
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.start + self.tail.len()
    }

    #[inline(always)]
    pub(super) fn in_chunks(&self) -> bool {
        !self.earlier.is_empty()
    }

    /// The elements of an array in one buffer.
    #[inline(always)]
    pub(super) fn data(&self) -> &[T] {
        assert!(!self.in_chunks(), "kernels get arrays in one buffer");
        &self.tail
    }

    /// The same, to change them.
    #[inline(always)]
    pub(super) fn data_mut(&mut self) -> &mut [T] {
        assert!(!self.in_chunks(), "kernels get arrays in one buffer");
        &mut self.tail
    }

    /// The buffer of an array that is being made.
    #[inline(always)]
    pub(super) fn buffer(&mut self) -> &mut Buffer<T> {
        &mut self.tail
    }

    /// An element by its number.
    #[inline(always)]
    pub(super) fn get(&self, at: usize) -> Option<T> {
        // An element before the last chunk becomes a huge offset.
        match self.tail.get(at.wrapping_sub(self.start)) {
            Some(&value) => Some(value),
            None => {
                let (chunk, offset) = self.place(at)?;
                Some(self.earlier[chunk][offset])
            }
        }
    }

    /// The place of an element, to change it.
    #[inline(always)]
    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        let offset = at.wrapping_sub(self.start);
        if offset < self.tail.len() {
            return self.tail.get_mut(offset);
        }
        let (chunk, offset) = self.place(at)?;
        self.earlier[chunk].get_mut(offset)
    }

    /// Where an element before the last chunk is.
    #[inline(always)]
    fn place(&self, at: usize) -> Option<(usize, usize)> {
        if at >= self.start {
            return None;
        }
        if at < self.made {
            return Some((0, at));
        }
        let (chunk, offset) = chunk_of(at - self.made);
        Some((chunk + 1, offset))
    }

    /// Appends an element to a log.
    #[inline(always)]
    pub(super) fn push(&mut self, value: T, memory: &Memory) -> Result<(), RunErrorKind> {
        if self.tail.left() == 0 {
            self.add_chunk("push", memory)?;
        }
        self.tail.push(value);
        self.shape[0] += 1;
        Ok(())
    }

    /// Appends many elements to a log.
    pub(super) fn append(&mut self, mut values: &[T], memory: &Memory) -> Result<(), RunErrorKind> {
        while !values.is_empty() {
            if self.tail.left() == 0 {
                self.add_chunk("push", memory)?;
            }
            let (now, later) = values.split_at(values.len().min(self.tail.left()));
            self.tail.append(now);
            values = later;
        }
        self.shape[0] = self.len();
        self.check();
        Ok(())
    }

    /// Cuts a log, or appends to it, until it has `length` elements.
    pub(super) fn resize(&mut self, length: usize, value: T, memory: &Memory) -> Result<(), RunErrorKind> {
        let more = length.saturating_sub(self.len());
        // Chunk by chunk an absurd length would take all memory before it fails: ask for it at once.
        if more > MANY && Vec::<T>::new().try_reserve_exact(more).is_err() {
            return Err(too_large("resize", &[length]));
        }
        while self.len() < length {
            if self.tail.left() == 0 {
                self.add_chunk("resize", memory)?;
            }
            let more = (length - self.len()).min(self.tail.left());
            self.tail.repeat(more, value);
        }
        let chunks = self.earlier.len();
        while self.start >= length
            && let Some(before) = self.earlier.pop()
        {
            self.start -= before.len();
            self.tail = before;
        }
        if self.earlier.len() < chunks {
            self.earlier.shrink_to_fit();
            let list = |chunks: usize| bookkeeping::chunk_list(chunks as u64);
            memory.ledger.credit_beside(list(chunks) - list(self.earlier.len()));
        }
        if length == 0 {
            self.tail = Buffer::nothing(memory);
        } else {
            self.tail.data.truncate(length - self.start);
        }
        self.shape[0] = length;
        self.check();
        Ok(())
    }

    /// The capacity of the buffer that it was made with.
    pub(super) fn made(&self) -> usize {
        self.earlier.first().unwrap_or(&self.tail).data.capacity()
    }

    /// The memory is what the rule says.
    fn check(&self) {
        let made = self.made();
        let held: usize = self.earlier.iter().chain([&self.tail]).map(|chunk| chunk.data.capacity()).sum();
        let rule = elements_held(made as u64, self.len() as u64);
        debug_assert_eq!(held as u64, rule, "made with {made}, now {} elements", self.len());
    }

    #[cold]
    #[inline(never)]
    fn add_chunk(&mut self, op: &'static str, memory: &Memory) -> Result<(), RunErrorKind> {
        let list = |chunks: usize| bookkeeping::chunk_list(chunks as u64);
        let chunks = self.earlier.len();
        let chunk = Buffer::new(op, &[chunk_capacity(chunks)], memory)?;
        memory.ledger.charge_beside(list(chunks + 1) - list(chunks), op)?;
        let full = core::mem::replace(&mut self.tail, chunk);
        if self.earlier.is_empty() {
            self.made = full.len();
        }
        self.start += full.len();
        self.earlier.push(full);
        Ok(())
    }
}

impl<T> Drop for Store<T> {
    fn drop(&mut self) {
        self.tail.ledger.credit_beside(bookkeeping::array(self.earlier.len() as u64));
    }
}

#[cfg(test)]
mod tests {
    use palinode_core::Budget;

    use super::*;
    use crate::interp::ledger::Record;

    fn memory() -> Memory {
        Memory::new(Budget::UNLIMITED, Record::Nothing)
    }

    /// Logs against lists: elements, lengths, bytes.
    #[test]
    fn logs_are_lists_and_take_what_the_rule_says() {
        for made in [0, 1, 31, 32, 100, 5000] {
            let memory = memory();
            let mut list: Vec<usize> = (0..made).collect();
            let mut log = Store::from_slice("test", vec![made], &list, &memory).unwrap();
            let mut held = made;
            for (round, target) in [1, 2, 33, 20_000, 63, 64, 65, 4096, 4095, 9000, 8192, 17, 40, 0, 3, 0, 5]
                .into_iter()
                .enumerate()
            {
                let more = made + target;
                match round % 3 {
                    0 => log.resize(more, round, &memory).unwrap(),
                    1 => {
                        let values = vec![round; more.saturating_sub(log.len())];
                        log.append(&values, &memory).unwrap();
                        log.resize(more, 0, &memory).unwrap();
                    }
                    _ => {
                        (log.len()..more).for_each(|_| log.push(round, &memory).unwrap());
                        log.resize(more, 0, &memory).unwrap();
                    }
                }
                list.resize(more, round);
                if more == 0 {
                    held = 0;
                }
                assert_eq!((log.len(), log.shape[0]), (more, more));
                assert_eq!(memory.stats().result_bytes as u64, 8 * elements_held(held as u64, more as u64));
                let found: Vec<usize> = (0..more).map(|at| log.get(at).unwrap()).collect();
                assert_eq!(found, list);
                assert_eq!(log.chunks().flatten().copied().collect::<Vec<_>>(), list);
                assert!(log.get(more).is_none() && log.get(usize::MAX).is_none());
                if let Some(last) = more.checked_sub(1) {
                    for at in [0, more / 2, last] {
                        *log.get_mut(at).unwrap() += 1;
                        list[at] += 1;
                    }
                }
                let copy = log.copied("test", &memory).unwrap();
                assert_eq!(copy.data(), list);
            }
            drop(log);
            assert_eq!(memory.stats().result_bytes, 0);
        }
    }

    #[test]
    fn nothing_is_allocated_beyond_the_budget() {
        let beside = bookkeeping::array(2) as usize;
        let memory = Memory::new(Budget::from(1000 + beside), Record::Nothing);
        let mut log: Store<f64> = Store::with_capacity("test", vec![0], &memory).unwrap();
        // 32 elements are 256 bytes, 64 are 512, 128 are 1024.
        for _ in 0..64 {
            log.push(1.0, &memory).unwrap();
        }
        let refused = log.push(1.0, &memory).unwrap_err();
        let (budget, live) = (1000 + beside, 512 + beside);
        assert_eq!(refused, RunErrorKind::OverBudget { budget, live, needed: 512, op: "push" });
        assert_eq!((log.len(), memory.stats().peak_bytes), (64, 512));
    }
}
