//! The memory of an array, and when it may be written to.
//!
//! Input: reads and writes of cells. Output: values, and a copy exactly when somebody still needs the old
//! ones.
//!
//! A [`Buffer`] is what all views of one array share. It has values, and a storage (a run of cotangents) once
//! something active has been written to it. Copies of an array share values and storage until one of them is
//! written to. Who is who is decided by reference counts and by what the tape keeps, never by guessing:
//!
//! | who else has the values | a write |
//! |---|---|
//! | nobody | goes into the memory |
//! | a copy of the array | goes into a copy; the storage forks |
//! | a rule on the tape | as the tape's [`WhenOverwritten`] says |
//!
//! Invariants: values that a rule keeps are never changed; a storage belongs to one buffer when it is written
//! to.

use super::charge;
#[cfg(test)]
use super::tests::planted::Bug;
use crate::error::Error;
use crate::tape::arrays::{Kept, Linear, Need, Recipe, Region, WhenOverwritten, Whole, kept_bytes};
use crate::tape::{Recorder, Stamp, with_recorder};
use core::cell::{Cell, Ref, RefCell, RefMut};
use core::panic::Location;
use palinode_num::Scalar;
use std::rc::Rc;
use std::sync::Arc;

pub(super) struct Buffer<S> {
    stamp: Cell<Stamp>,
    policy: Cell<WhenOverwritten>,
    /// None while nothing active has been written.
    storage: RefCell<Option<Rc<u32>>>,
    memory: RefCell<Memory<S>>,
    /// How the values were computed, on a tape that recomputes.
    recipe: RefCell<Option<Recipe<S>>>,
    /// How many cells count; the memory may hold more.
    len: Cell<usize>,
    /// What a planted bug has left uncopied.
    #[cfg(test)]
    uncopied: RefCell<Vec<Uncopied<S>>>,
}

enum Memory<S> {
    Owned(Vec<S>),
    Shared(Shared<S>),
}

struct Shared<S> {
    values: Arc<Vec<S>>,
    kept: Arc<Kept<S>>,
    /// As many as there are buffers that share it.
    buffers: Rc<()>,
}

/// How much of a buffer a write replaces.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Every cell.
    Whole,
    Part,
}

/// The operation that writes.
#[derive(Clone, Copy)]
pub(super) struct Write {
    pub(super) by: &'static str,
    pub(super) at: &'static Location<'static>,
}

impl<S: Scalar> Buffer<S> {
    pub(super) fn new(values: Vec<S>) -> Self {
        Buffer {
            stamp: Cell::new(Stamp::NONE),
            policy: Cell::new(WhenOverwritten::Copy),
            storage: RefCell::new(None),
            len: Cell::new(values.len()),
            memory: RefCell::new(Memory::Owned(values)),
            recipe: RefCell::new(None),
            #[cfg(test)]
            uncopied: RefCell::default(),
        }
    }

    pub(super) fn stamp(&self) -> Stamp {
        self.stamp.get()
    }

    pub(super) fn len(&self) -> usize {
        self.len.get()
    }

    pub(super) fn set_len(&self, len: usize) {
        self.len.set(len);
    }

    /// The number of its storage, if it is active.
    #[inline]
    pub(super) fn storage(&self) -> Option<u32> {
        self.storage.borrow().as_deref().copied()
    }

    /// Gives it a storage on this tape, unless it has one.
    pub(super) fn activate(&self, stamp: Stamp) {
        if self.storage.borrow().is_some() {
            return;
        }
        let len = self.len();
        let (storage, policy) = with_recorder(stamp, |recorder: &mut Recorder<S>| {
            (recorder.new_storage(len), recorder.arrays.policy)
        });
        self.stamp.set(stamp);
        self.policy.set(policy);
        self.storage.replace(Some(Rc::new(storage)));
    }

    /// The values, those beyond the length included.
    pub(super) fn values(&self) -> Ref<'_, Vec<S>> {
        Ref::map(self.memory.borrow(), |memory| match memory {
            Memory::Owned(values) => values,
            Memory::Shared(shared) => &*shared.values,
        })
    }

    /// The memory to write to; [`Buffer::prepare_write`] has made it this buffer's own.
    pub(super) fn memory(&self) -> RefMut<'_, Vec<S>> {
        RefMut::map(self.memory.borrow_mut(), |memory| match memory {
            Memory::Owned(values) => values,
            Memory::Shared(_) => unreachable!("memory is owned when it is written to"),
        })
    }

    /// Replaces all values.
    pub(super) fn install(&self, values: Vec<S>) {
        self.recipe.replace(None);
        self.len.set(values.len());
        self.memory.replace(Memory::Owned(values));
    }

    /// Another buffer with the same values and cotangents, until one of both is written to.
    pub(super) fn fork_later(&self) -> Buffer<S> {
        let shared = self.share();
        Buffer {
            stamp: self.stamp.clone(),
            policy: self.policy.clone(),
            storage: self.storage.clone(),
            memory: RefCell::new(Memory::Shared(shared)),
            recipe: RefCell::new(None),
            len: self.len.clone(),
            #[cfg(test)]
            uncopied: RefCell::default(),
        }
    }

    /// The values for a rule to keep.
    pub(super) fn keep(&self, need: Need) -> Arc<Kept<S>> {
        let kept = self.kept();
        charge::<S>(need, kept.needed_by(need));
        kept
    }

    /// The values as something that can be kept, without anybody who needs it yet.
    pub(super) fn kept(&self) -> Arc<Kept<S>> {
        self.share().kept
    }

    pub(super) fn set_recipe(&self, recipe: Recipe<S>) {
        self.recipe.replace(Some(recipe));
    }

    fn share(&self) -> Shared<S> {
        let mut memory = self.memory.borrow_mut();
        if let Memory::Owned(values) = &mut *memory {
            let values = Arc::new(core::mem::take(values));
            let kept = Kept::new(values.clone(), self.recipe.take());
            *memory = Memory::Shared(Shared { values, kept, buffers: Rc::new(()) });
        }
        match &*memory {
            Memory::Shared(Shared { values, kept, buffers }) => {
                Shared { values: values.clone(), kept: kept.clone(), buffers: buffers.clone() }
            }
            Memory::Owned(_) => unreachable!("it has just been shared"),
        }
    }

    /// Whether something can be added to its cells with their cotangents left where they are: it is active,
    /// and the storage is its own.
    pub(super) fn accumulates(&self) -> bool {
        self.policy.get() != WhenOverwritten::AlwaysCopy
            && self.storage.borrow().as_ref().is_some_and(|storage| Rc::strong_count(storage) == 1)
    }

    /// Makes storage and memory this buffer's own, for a write of a part.
    #[inline]
    pub(super) fn prepare_write(&self, write: Write) {
        if self.owns_storage() && matches!(&*self.memory.borrow(), Memory::Owned(_)) {
            self.recipe.replace(None);
            return;
        }
        self.prepare_slowly(write);
    }

    #[inline(never)]
    fn prepare_slowly(&self, write: Write) {
        self.stamp().check();
        self.fork_storage(Extent::Part);
        self.prepare_memory(write);
    }

    /// Makes the memory this buffer's own, for a write of a part.
    pub(super) fn prepare_memory(&self, write: Write) {
        self.own_memory(write);
        self.recipe.replace(None);
    }

    fn owns_storage(&self) -> bool {
        let alone = self.storage.borrow().as_ref().is_none_or(|storage| Rc::strong_count(storage) == 1);
        #[cfg(test)]
        let alone = alone || Bug::StorageNotForked.is_planted();
        alone && self.policy.get() != WhenOverwritten::AlwaysCopy
    }

    /// Makes the storage this buffer's own. Where only a part is written the new one begins as a copy of the
    /// old one, and what the write itself reads of this array it must read from there: so that cotangents are
    /// added up in the order in which they are in a storage that nobody shares.
    pub(super) fn fork_storage(&self, extent: Extent) {
        if !self.owns_storage()
            && let Some(old) = self.storage()
        {
            let len = self.len();
            let new = with_recorder(self.stamp(), |recorder: &mut Recorder<S>| {
                let new = recorder.new_storage(len);
                if extent == Extent::Part {
                    let (from, to) = (Region::all_of(old, &[len]), Region::all_of(new, &[len]));
                    recorder.push_whole(Whole::Linear(Linear::moving("copy", to, true, Some(from))));
                }
                new
            });
            self.storage.replace(Some(Rc::new(new)));
        }
    }

    /// Whether the memory is this buffer's own, or can be without a copy.
    pub(super) fn owns_memory(&self) -> bool {
        if self.policy.get() == WhenOverwritten::AlwaysCopy {
            return false;
        }
        match &*self.memory.borrow() {
            Memory::Owned(_) => true,
            Memory::Shared(shared) => Rc::strong_count(&shared.buffers) == 1 && shared.kept.need().is_none(),
        }
    }

    /// Takes the memory back, or copies it.
    fn own_memory(&self, write: Write) {
        let memory = self.memory.replace(Memory::Owned(Vec::new()));
        let shared = match memory {
            Memory::Owned(values) if self.policy.get() == WhenOverwritten::AlwaysCopy => {
                self.count_copy(self.stamp());
                self.memory.replace(Memory::Owned(values.clone()));
                return;
            }
            Memory::Owned(values) => {
                self.memory.replace(Memory::Owned(values));
                return;
            }
            Memory::Shared(shared) => shared,
        };
        let alone = Rc::strong_count(&shared.buffers) == 1;
        let need = shared.kept.need().copied();
        let taken = match need {
            None => alone,
            Some(need) => match need.policy {
                WhenOverwritten::Copy | WhenOverwritten::AlwaysCopy => false,
                WhenOverwritten::Forbid => {
                    refuse::<S>(need, write);
                    false
                }
                WhenOverwritten::Recompute => alone && self.recomputes(&shared, need),
            },
        };
        #[cfg(test)]
        if need.is_some() && Bug::ResidualNotCopied.is_planted() {
            self.uncopied.borrow_mut().push((shared.kept.clone(), Kept::overwrite));
        }
        let Shared { values, kept, buffers } = shared;
        let values = match taken {
            true => {
                drop((kept, buffers));
                Arc::try_unwrap(values)
            }
            false => Err(values),
        };
        let values = values.unwrap_or_else(|values| {
            self.count_copy(need.map_or(self.stamp(), |need| need.stamp));
            (*values).clone()
        });
        self.memory.replace(Memory::Owned(values));
    }

    /// Leaves the recipe to the rules that need the values, if it can be followed.
    fn recomputes(&self, shared: &Shared<S>, need: Need) -> bool {
        let Some(newly_kept) = shared.kept.give_up(need) else { return false };
        if need.stamp.is_open() {
            with_recorder(need.stamp, |recorder: &mut Recorder<S>| {
                recorder.arrays.counts.recomputed += 1;
                recorder.arena.put_back(kept_bytes::<S>(shared.values.capacity()));
                recorder.charge(newly_kept);
            });
        }
        true
    }

    fn count_copy(&self, stamp: Stamp) {
        let len = self.len();
        if stamp != Stamp::NONE && stamp.is_open() {
            with_recorder(stamp, |recorder: &mut Recorder<S>| {
                recorder.arrays.counts.copies += 1;
                recorder.arrays.counts.copied += len;
            });
        }
    }
}

/// Memory that was not copied, and how to overwrite it: `drop` does not know that `S` is a number.
#[cfg(test)]
type Uncopied<S> = (Arc<Kept<S>>, fn(&Kept<S>, &[S]));

/// A rule that reads memory which was not copied finds what was written to it last.
#[cfg(test)]
impl<S> Drop for Buffer<S> {
    fn drop(&mut self) {
        let (uncopied, memory) = (self.uncopied.get_mut(), self.memory.get_mut());
        if let Memory::Owned(values) = memory {
            uncopied.iter().for_each(|(kept, overwrite)| overwrite(kept, values));
        }
    }
}

/// Ends the recording with an error. If it is closed already, its record keeps the old values and this write
/// copies them.
fn refuse<S: Scalar>(need: Need, write: Write) {
    if !need.stamp.is_open() {
        return;
    }
    with_recorder(need.stamp, |recorder: &mut Recorder<S>| {
        if recorder.arena.failure().is_none() {
            recorder.arena.refuse(Error::Overwritten {
                needed_by: need.by,
                needed_at: need.at,
                written_by: write.by,
                written_at: write.at,
            });
        }
    });
}
