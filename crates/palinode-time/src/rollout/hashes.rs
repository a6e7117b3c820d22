//! Hashes of the states of a loop, to notice when a step that is run again computes something else.
//!
//! Input: states by step. Output: nothing, or the step at which a state differs from what it was the first
//! time.
//!
//! Invariant: the memory is fixed: when the list is full, every second hash is dropped and from then on only
//! every second step is hashed. While every step is hashed, the step named is the first that differs.

use super::Inner;
use crate::error::Error;
use palinode_core::{Passive, Reals, Snapshot};

/// See the module's documentation.
pub(super) struct Hashes {
    /// The hash of the state before step `position * stride`.
    hashes: Vec<u64>,
    stride: u64,
    capacity: usize,
    /// The last step, and the hash of the state after it.
    last: Option<(u64, u64)>,
}

impl Hashes {
    pub(super) fn new(capacity: usize) -> Self {
        Hashes {
            hashes: Vec::with_capacity(capacity.max(2)),
            stride: 1,
            capacity: capacity.max(2),
            last: None,
        }
    }

    /// Notes the state before `step`, or compares it with what was noted.
    pub(super) fn see<T: Inner>(
        &mut self,
        step: u64,
        state: &impl Reals<Passive<T>>,
        scratch: &mut Snapshot,
    ) -> Result<(), Error> {
        let last = self.last.filter(|&(last, _)| last == step);
        let is_noted = step.is_multiple_of(self.stride);
        if !is_noted && last.is_none() {
            return Ok(());
        }
        scratch.take(state);
        let (hash, position) = (scratch.hash(), (step / self.stride) as usize);
        let noted = self.hashes.get(position).filter(|_| is_noted);
        if last.is_some_and(|(_, last)| last != hash) || noted.is_some_and(|&noted| noted != hash) {
            return Err(Error::Diverged { step: step.saturating_sub(1) });
        }
        if !is_noted || noted.is_some() {
            return Ok(());
        }
        if position == self.capacity {
            let mut index = 0;
            self.hashes.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.stride *= 2;
            return if step.is_multiple_of(self.stride) { self.see(step, state, scratch) } else { Ok(()) };
        }
        if position == self.hashes.len() {
            self.hashes.push(hash);
        }
        Ok(())
    }

    /// Notes the state after the last step, whatever the stride: every difference that counts ends up there.
    pub(super) fn see_last<T: Inner>(
        &mut self,
        steps: u64,
        state: &impl Reals<Passive<T>>,
        scratch: &mut Snapshot,
    ) {
        scratch.take(state);
        self.last = Some((steps, scratch.hash()));
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.hashes.clear();
        self.stride = 1;
        self.last = None;
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.hashes.capacity() * size_of::<u64>()
    }
}
