//! The words of a schedule: where something is kept, and what a driver does next.

/// Where a snapshot is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tier {
    /// In memory.
    Memory,
    /// On disk: more space, but a write and a read take time.
    Disk,
}

/// A place for one snapshot. Indices count from 0 in each tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot {
    /// Where the slot is.
    pub tier: Tier,
    /// Which of its tier's snapshots it is.
    pub index: u32,
}

/// What to do next. A driver follows a stream of actions and needs no judgement of its own.
///
/// It has one *live state*, at first the one before step 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Action {
    /// Run steps `from..to` and keep nothing. The live state goes from that before `from` to that before
    /// `to`.
    Advance { from: u64, to: u64 },
    /// Keep the live state, which is that before `step`, in a slot.
    Snapshot { step: u64, slot: Slot },
    /// The live state becomes what the slot holds. The slot stays in use until it is freed.
    Restore { step: u64, slot: Slot },
    /// Run `step` from the live state and keep its residuals until it is reversed. The live state moves to
    /// `step + 1`.
    Record { step: u64 },
    /// Carry the cotangent back over `step`, then forget its residuals.
    Reverse { step: u64 },
    /// The slot is free again. Right after a `Restore` of the same slot, a driver may move instead of copy.
    Free { slot: Slot },
}
