//! A store of the caller's, whose snapshots are compared with what was put: by a hash of what goes in and of
//! what comes out.
//!
//! Without it, a store that gives back something else makes the step that goes on from there look as if it
//! depended on something hidden. Stores that say that they are lossy are not asked for the same words.
//! [`DiskStore`](super::DiskStore) has a checksum in every file, and our own store in memory keeps words as
//! they are.

use palinode_core::{Snapshot, SnapshotError, SnapshotStore};

pub(crate) struct Checked<S> {
    store: S,
    /// By slot, the hash of what was put last.
    hashes: Vec<u64>,
}

impl<S: SnapshotStore> Checked<S> {
    pub(crate) fn new(store: S) -> Self {
        Checked { store, hashes: Vec::new() }
    }
}

impl<S: SnapshotStore> SnapshotStore for Checked<S> {
    fn put(&mut self, slot: u32, step: u64, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.store.put(slot, step, snapshot)?;
        if !self.store.is_lossy() {
            let at = slot as usize;
            if self.hashes.len() <= at {
                self.hashes.resize(at + 1, 0);
            }
            self.hashes[at] = snapshot.hash();
        }
        Ok(())
    }

    fn get(&mut self, slot: u32, step: u64, into: &mut Snapshot) -> Result<(), SnapshotError> {
        self.store.get(slot, step, into)?;
        if self.store.is_lossy() || self.hashes.get(slot as usize) == Some(&into.hash()) {
            return Ok(());
        }
        let how = "the store gave back other words than it was given".into();
        Err(SnapshotError::Damaged { step, place: String::new(), how })
    }

    leaves_the_rest_to_the_inner_store!();

    fn heap_bytes(&self) -> usize {
        self.store.heap_bytes() + self.hashes.capacity() * size_of::<u64>()
    }

    fn heap_bytes_for(&self, slots: usize, reals: usize, plain: usize) -> usize {
        // A list that grows to twice its size is held twice for a moment.
        let hashes = slots.max(4).saturating_mul(3 * size_of::<u64>());
        self.store.heap_bytes_for(slots, reals, plain).saturating_add(hashes)
    }

    fn is_lossy(&self) -> bool {
        self.store.is_lossy()
    }
}
