//! Where snapshots are kept, and what can go wrong there.
//!
//! Invariants: a store gives back what was put, or an error that names the step. This file knows no files:
//! stores on disk are in `palinode-time`.

use super::{Snapshot, SnapshotWords};
use core::time::Duration;
use thiserror::Error;

/// Where snapshots are kept between the time they are taken and the time they are needed: slots, numbered
/// from 0.
///
/// A store must give back every bit, unless it says that it is lossy. It may be asked for a slot as often as
/// one likes until the slot is freed or put to again.
pub trait SnapshotStore {
    /// Keeps a copy of the state before `step` in a slot, in place of what was there.
    fn put(&mut self, slot: u32, step: u64, snapshot: &Snapshot) -> Result<(), SnapshotError>;
    /// Fills the snapshot with what the slot holds, which must be the state before `step`.
    fn get(&mut self, slot: u32, step: u64, into: &mut Snapshot) -> Result<(), SnapshotError>;
    /// The words of what the slot holds, if it is the state before `step` and lies in memory as it was put:
    /// for reading without a copy.
    #[inline]
    fn view(&self, _slot: u32, _step: u64) -> Option<(&[u64], &[u64])> {
        None
    }
    /// Like `put`, without a copy: `fill` writes the words of the state before `step` where they are kept, so
    /// many for its numbers and so many for everything else. False if the store keeps words otherwise; then
    /// nothing has happened.
    #[inline]
    fn put_with(
        &mut self,
        _slot: u32,
        _step: u64,
        _lengths: (usize, usize),
        _fill: &mut dyn FnMut(SnapshotWords<'_>),
    ) -> Result<bool, SnapshotError> {
        Ok(false)
    }
    /// The slot is not needed any more.
    fn free(&mut self, slot: u32);
    /// The slot will be asked for soon: a store that is slow may begin to fetch it.
    fn prefetch(&mut self, _slot: u32, _step: u64) {}
    /// The heap bytes held now.
    fn heap_bytes(&self) -> usize;
    /// The heap bytes that it will hold at most for so many snapshots of this size.
    fn heap_bytes_for(&self, snapshots: usize, reals: usize, plain: usize) -> usize;
    /// Waits until everything that was put is where it belongs. A store that writes in the background tells
    /// of a failure at its next call; this is the call for those who have no other to make.
    fn flush(&mut self) -> Result<(), SnapshotError> {
        Ok(())
    }
    /// What reading and writing has cost so far; nothing for a store that does neither.
    fn stats(&self) -> StoreStats {
        StoreStats::default()
    }
    /// Whether what comes back may differ from what was put.
    fn is_lossy(&self) -> bool {
        false
    }
}

macro_rules! delegate {
    ($($Pointer:ty),*) => {$(
        impl<T: SnapshotStore + ?Sized> SnapshotStore for $Pointer {
            #[inline]
            fn put(&mut self, slot: u32, step: u64, snapshot: &Snapshot) -> Result<(), SnapshotError> {
                (**self).put(slot, step, snapshot)
            }
            #[inline]
            fn get(&mut self, slot: u32, step: u64, into: &mut Snapshot) -> Result<(), SnapshotError> {
                (**self).get(slot, step, into)
            }
            #[inline]
            fn view(&self, slot: u32, step: u64) -> Option<(&[u64], &[u64])> {
                (**self).view(slot, step)
            }
            #[inline]
            fn put_with(
                &mut self,
                slot: u32,
                step: u64,
                lengths: (usize, usize),
                fill: &mut dyn FnMut(SnapshotWords<'_>),
            ) -> Result<bool, SnapshotError> {
                (**self).put_with(slot, step, lengths, fill)
            }
            #[inline]
            fn free(&mut self, slot: u32) {
                (**self).free(slot);
            }
            #[inline]
            fn prefetch(&mut self, slot: u32, step: u64) {
                (**self).prefetch(slot, step);
            }
            fn heap_bytes(&self) -> usize {
                (**self).heap_bytes()
            }
            fn heap_bytes_for(&self, snapshots: usize, reals: usize, plain: usize) -> usize {
                (**self).heap_bytes_for(snapshots, reals, plain)
            }
            fn flush(&mut self) -> Result<(), SnapshotError> {
                (**self).flush()
            }
            fn stats(&self) -> StoreStats {
                (**self).stats()
            }
            fn is_lossy(&self) -> bool {
                (**self).is_lossy()
            }
        }
    )*};
}
delegate!(&mut T, Box<T>);

/// What the reading and writing of a store has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// How long reading, writing, removing and checking took, on whatever thread.
    pub io_time: Duration,
    /// How long callers stood still for it.
    pub waited: Duration,
    /// The bytes written.
    pub written: u64,
    /// The bytes read.
    pub read: u64,
}

impl StoreStats {
    /// The part of the time of reading and writing that went by while the caller computed: 1 if it never
    /// waited. `None` if nothing was read or written.
    pub fn hidden(&self) -> Option<f64> {
        let io = self.io_time.as_secs_f64();
        (io > 0.0).then(|| (1.0 - self.waited.as_secs_f64() / io).max(0.0))
    }
}

/// What can go wrong with a kept snapshot.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The slot holds nothing, or the state of another step.
    #[error("PAL0510: the snapshot before step {step} is missing{place}; only this run may use its files")]
    Missing {
        /// The step that it is before.
        step: u64,
        /// Where it should be, as ` (path)`, or nothing.
        place: String,
    },
    /// What is there is not what was put.
    #[error(
        "PAL0511: the snapshot before step {step} is damaged{place}: {how}; check what keeps it (the disk, the memory, the store's own code), then run again"
    )]
    Damaged {
        /// The step that it is before.
        step: u64,
        /// Where it is, as ` (path)`, or nothing.
        place: String,
        /// What is wrong: "it is cut short", "its checksum differs" and so on.
        how: String,
    },
    /// There is no space for it.
    #[error(
        "PAL0512: there is no space for the snapshot before step {step}{place}: {why}; free some, keep fewer snapshots on disk, or \
         name another directory"
    )]
    NoSpace {
        /// The step that it is before.
        step: u64,
        /// Where it should go, as ` (path)`, or nothing.
        place: String,
        /// What the system said.
        why: String,
    },
    /// Reading or writing failed in another way.
    #[error("PAL0513: the snapshot before step {step} could not be {doing}{place}: {why}")]
    Failed {
        /// The step that it is before.
        step: u64,
        /// "written", "read" or "removed".
        doing: &'static str,
        /// Where, as ` (path)`, or nothing.
        place: String,
        /// What the system said.
        why: String,
    },
    /// Too many of its numbers cannot be kept in fewer bits.
    #[error(
        "PAL0514: the snapshot before step {step} cannot be kept as {format}: {count} of its {of} numbers are out of range, first number \
         {index} ({value}); keep snapshots exactly, or let tiny numbers become zero"
    )]
    OutOfRange {
        /// The step that it is before.
        step: u64,
        /// "f32" or "bf16".
        format: &'static str,
        /// How many numbers are out of range.
        count: usize,
        /// How many numbers there are.
        of: usize,
        /// The first that is out of range, counted from 0.
        index: usize,
        /// What it is.
        value: String,
    },
}

impl SnapshotError {
    /// The code, such as `PAL0511`.
    pub fn code(&self) -> &'static str {
        match self {
            SnapshotError::Missing { .. } => "PAL0510",
            SnapshotError::Damaged { .. } => "PAL0511",
            SnapshotError::NoSpace { .. } => "PAL0512",
            SnapshotError::Failed { .. } => "PAL0513",
            SnapshotError::OutOfRange { .. } => "PAL0514",
        }
    }

    /// The step whose snapshot it is.
    pub fn step(&self) -> u64 {
        match self {
            SnapshotError::Missing { step, .. }
            | SnapshotError::Damaged { step, .. }
            | SnapshotError::NoSpace { step, .. }
            | SnapshotError::Failed { step, .. }
            | SnapshotError::OutOfRange { step, .. } => *step,
        }
    }
}
