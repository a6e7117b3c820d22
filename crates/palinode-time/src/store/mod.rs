//! Where snapshots are kept: in memory, on disk, in fewer bytes.
//!
//! | store | keeps | gives back |
//! |---|---|---|
//! | [`MemoryStore`] | words, slots of the same size side by side | every bit |
//! | [`DiskStore`] | a file for each slot, written and fetched on another thread | every bit, or an error that names the step |
//! | [`CompressedStore`] | fewer bytes, in any other store | every bit |
//! | [`LossyStore`] | numbers as `f32` or `bf16`, in any other store | nearby numbers; it says so |
//!
//! Invariants: what `heap_bytes` tells is what the allocator gave, and never more than `heap_bytes_for` told
//! before. A failed `put` or `get` changes nothing of the caller's but the snapshot that was to be filled.

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
