//! Where the snapshots of a sweep are: in memory, and in a second store if there is one.
//!
//! Input: what makes stores, the sizes of states, a limit. Output: bytes that they will take, before there is
//! a snapshot; then the stores.
//!
//! Invariant: the stores that are asked how much they will take are those that are used; they are made again
//! only after an attempt that failed.

use super::{Rollout, StoreMaker};
use crate::error::Error;
use crate::step::Step;
use crate::store::MemoryStore;
use palinode_core::schedule::{Slot, Tier};
use palinode_core::{Budget, SnapshotStore};

/// See the module's documentation.
pub(super) struct Stores<'r, 'a> {
    memory: Memory,
    pub(super) disk: Option<Box<dyn SnapshotStore>>,
    /// What made them.
    makers: Makers<'r, 'a>,
}

type Makers<'r, 'a> = (Option<&'r StoreMaker<'a>>, Option<&'r StoreMaker<'a>>);

enum Memory {
    /// It has a part of the budget.
    Ours(MemoryStore),
    /// It has the caller's limits.
    Theirs(Box<dyn SnapshotStore>),
}

fn made((memory, disk): Makers<'_, '_>) -> Result<(Memory, Option<Box<dyn SnapshotStore>>), Error> {
    let memory = match memory {
        Some(make) => Memory::Theirs(make()?),
        None => Memory::Ours(MemoryStore::new()),
    };
    Ok((memory, disk.map(|make| make()).transpose()?))
}

impl<'a, St: Step, How> Rollout<'a, St, How> {
    /// The stores of a sweep.
    pub(super) fn stores(&self) -> Result<Stores<'_, 'a>, Error> {
        let makers = (self.memory.as_ref(), self.disk.as_ref());
        let (memory, disk) = made(makers)?;
        Ok(Stores { memory, disk, makers })
    }
}

impl Stores<'_, '_> {
    /// Empty ones, after an attempt that failed.
    pub(super) fn renew(&mut self) -> Result<(), Error> {
        // The old ones go first, so that both are never held.
        (self.memory, self.disk) = (Memory::Ours(MemoryStore::new()), None);
        (self.memory, self.disk) = made(self.makers)?;
        Ok(())
    }

    /// Ours takes no more bytes than this from now on, and is made for the largest state, of so many words.
    pub(super) fn limit(&mut self, words: usize, bytes: usize) {
        if let Memory::Ours(store) = &mut self.memory {
            let limit = Budget::from(bytes);
            // The first that is kept need not be the largest.
            *store = MemoryStore::for_states(limit, words);
        }
    }

    /// Whether the store in memory has a part of the budget, and no limits of the caller's.
    pub(super) fn has_the_budget(&self) -> bool {
        matches!(self.memory, Memory::Ours(_))
    }

    /// Whether a slot is in that store.
    #[inline]
    pub(super) fn is_ours(&self, slot: Slot) -> bool {
        self.has_the_budget() && (slot.tier == Tier::Memory || self.disk.is_none())
    }

    /// Whether what comes back may differ from what was kept.
    pub(super) fn are_lossy(&self) -> bool {
        self.memory().is_lossy() || self.disk.as_ref().is_some_and(|disk| disk.is_lossy())
    }

    pub(super) fn memory(&self) -> &dyn SnapshotStore {
        match &self.memory {
            Memory::Ours(store) => store,
            Memory::Theirs(store) => &**store,
        }
    }

    #[inline]
    pub(super) fn of(&mut self, slot: Slot) -> &mut dyn SnapshotStore {
        match (slot.tier, &mut self.disk, &mut self.memory) {
            (Tier::Disk, Some(disk), _) => &mut **disk,
            (Tier::Disk, None, Memory::Ours(store)) | (Tier::Memory, _, Memory::Ours(store)) => store,
            (Tier::Disk, None, Memory::Theirs(store)) | (Tier::Memory, _, Memory::Theirs(store)) => {
                &mut **store
            }
        }
    }

    /// The bytes that both hold at most for so many snapshots of this size, the stores themselves included.
    pub(super) fn heap_bytes_for(
        &self,
        snapshots: usize,
        disk_snapshots: u32,
        reals: usize,
        plain: usize,
    ) -> usize {
        let of = |store: &dyn SnapshotStore, snapshots: usize| {
            size_of_val(store).saturating_add(store.heap_bytes_for(snapshots, reals, plain))
        };
        let on_disk = self.disk.as_ref().map_or(0, |disk| of(&**disk, disk_snapshots as usize));
        of(self.memory(), snapshots).saturating_add(on_disk)
    }

    /// The bytes that both hold, the stores themselves included.
    pub(super) fn heap_bytes(&self) -> usize {
        let of = |store: &dyn SnapshotStore| size_of_val(store) + store.heap_bytes();
        of(self.memory()) + self.disk.as_ref().map_or(0, |disk| of(&**disk))
    }
}
