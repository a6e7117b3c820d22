//! Where snapshots are kept: in memory, on disk, in fewer bytes.
//!
//! | store | keeps | gives back |
//! |---|---|---|
//! | [`MemoryStore`] | words, slots of the same size side by side | every bit |
//! | [`DiskStore`] | a file for each slot, written and fetched on another thread | every bit, or an error that names the step |
//! | [`CompressedStore`] | fewer bytes, in any other store | every bit |
//! | [`LossyStore`] | numbers as `f32` or `bf16`, in any other store | nearby numbers; it says so |
//!
//! Invariants: `heap_bytes` is what the allocator gave, and never more than `heap_bytes_for` announced
//! before. A failed `put` or `get` changes nothing of the caller's but the snapshot that was to be filled.

/// What a store around another does not do itself.
macro_rules! leaves_the_rest_to_the_inner_store {
    () => {
        fn free(&mut self, slot: u32) {
            self.store.free(slot);
        }
        fn prefetch(&mut self, slot: u32, step: u64) {
            self.store.prefetch(slot, step);
        }
        fn flush(&mut self) -> Result<(), SnapshotError> {
            self.store.flush()
        }
        fn stats(&self) -> palinode_core::StoreStats {
            self.store.stats()
        }
    };
}

mod checked;
mod compressed;
mod disk;
mod lossy;
mod memory;

pub(crate) use checked::Checked;
pub use compressed::CompressedStore;
pub use disk::DiskStore;
pub use lossy::LossyStore;
pub use memory::MemoryStore;

/// The bytes beyond those of snapshots of one size that a store may need for snapshots which differ in size,
/// but not beyond that one: a memory store keeps these one by one.
pub(crate) fn slack_of_changing_sizes(slots: usize) -> usize {
    memory::slack(slots)
}
