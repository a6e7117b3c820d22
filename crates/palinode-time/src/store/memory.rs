//! Snapshots in memory.
//!
//! Input: snapshots. Output: the same. Slots lie side by side in segments of about 4 KiB, each with two words
//! for step and lengths, because a state may be three numbers and there may be thousands of slots. Where a
//! state is larger, each slot has a segment of its own. A snapshot that is larger than the first one makes
//! all slots segments of their own.
//!
//! Invariants: a slot that is put to again with no larger a snapshot allocates nothing. Segments are never
//! moved, so growing takes no more than what is added (but for the table of segments, 16 bytes each).

use palinode_core::{Budget, Snapshot, SnapshotError, SnapshotStore, SnapshotWords};

/// The words of a segment that holds several slots, at most.
const SEGMENT: usize = 512;
/// The words before a snapshot's: its step, its lengths.
const HEADER: usize = 2;
/// The lengths of a slot that holds nothing.
const EMPTY: u64 = u64::MAX;
/// A place in the table of segments.
const ENTRY: usize = size_of::<Box<[u64]>>();

/// Snapshots in memory.
///
/// ```
/// use palinode_core::{Snapshot, SnapshotStore};
/// use palinode_time::MemoryStore;
///
/// let mut store = MemoryStore::new();
/// store.put(0, 17, &Snapshot::of(&[1.0, 2.0, 3.0]))?;
/// let mut kept = Snapshot::new();
/// store.get(0, 17, &mut kept)?;
/// assert_eq!(kept.loaded::<f64, [f64; 3]>(), [1.0, 2.0, 3.0]);
/// assert_eq!(store.get(0, 18, &mut kept).unwrap_err().code(), "PAL0510"); // that is not what the slot holds
/// # Ok::<(), palinode_core::SnapshotError>(())
/// ```
#[derive(Debug)]
pub struct MemoryStore {
    segments: Vec<Box<[u64]>>,
    /// A segment holds `1 << shift` slots.
    shift: u32,
    /// The words of a slot, where a segment holds several; 0 as long as nothing was put.
    stride: usize,
    /// What `heap_bytes` tells.
    held: usize,
    limit: Budget,
}

impl Default for MemoryStore {
    fn default() -> Self {
        MemoryStore::within(Budget::UNLIMITED)
    }
}

impl MemoryStore {
    /// An empty one, which takes what it needs.
    pub fn new() -> Self {
        MemoryStore::default()
    }

    /// An empty one that refuses what would take it beyond the budget (PAL0512), before it allocates. For
    /// states whose size changes, and around which a plan cannot be made.
    pub fn within(budget: Budget) -> Self {
        MemoryStore { segments: Vec::new(), shift: 0, stride: 0, held: 0, limit: budget }
    }

    /// The same for states of which the largest has so many words: no slot is ever moved.
    pub(crate) fn for_states(budget: Budget, words: usize) -> Self {
        let mut store = MemoryStore::within(budget);
        store.lay_out(HEADER + words);
        store
    }

    /// The first snapshot is still to come, of at most so many slots: each is to have a segment of its own,
    /// so that no slot and no table is ever moved, whatever the sizes of the states are. Later calls change
    /// nothing.
    #[inline]
    pub(crate) fn keep_apart(&mut self, slots: usize) {
        if self.stride == 0 {
            self.lay_out(SEGMENT);
            self.segments.reserve_exact(slots);
            self.held = self.segments.capacity() * ENTRY;
        }
    }

    /// Slots of so many words each.
    fn lay_out(&mut self, words: usize) {
        self.stride = words;
        self.shift = slots_in_segment(words).ilog2();
    }

    /// Refuses what would take it beyond this from now on.
    pub(crate) fn set_limit(&mut self, budget: Budget) {
        self.limit = budget;
    }

    /// The words of a slot, none if it has none yet.
    #[inline]
    fn words(&self, slot: u32) -> &[u64] {
        let (segment, range) = self.place(slot);
        self.segments.get(segment).and_then(|words| words.get(range)).unwrap_or(&[])
    }

    #[inline]
    fn words_mut(&mut self, slot: u32) -> &mut [u64] {
        let (segment, range) = self.place(slot);
        self.segments.get_mut(segment).and_then(|words| words.get_mut(range)).unwrap_or(&mut [])
    }

    /// The segment of a slot, and where in it.
    #[inline]
    fn place(&self, slot: u32) -> (usize, core::ops::Range<usize>) {
        let segment = slot as usize >> self.shift;
        if self.shift == 0 {
            return (segment, 0..self.segments.get(segment).map_or(0, |words| words.len()));
        }
        let at = (slot as usize & ((1 << self.shift) - 1)) * self.stride;
        (segment, at..at + self.stride)
    }

    /// Makes a slot's words at least so many. What the slot held is gone.
    #[cold]
    fn make_space(&mut self, slot: u32, step: u64, words: usize) -> Result<(), SnapshotError> {
        if self.stride == 0 {
            self.lay_out(words);
        }
        if words > self.stride && self.shift > 0 {
            self.separate(step)?;
        }
        let segment = slot as usize >> self.shift;
        let size = if self.shift == 0 { words } else { self.stride << self.shift };
        if segment >= self.segments.len() {
            let grown = table_for(segment + 1);
            if segment >= self.segments.capacity() {
                let old = self.segments.capacity() * ENTRY;
                self.charge(step, grown * ENTRY, 0)?;
                self.segments.reserve_exact(grown - self.segments.len());
                self.held -= old;
            }
            self.segments.resize_with(segment + 1, Box::default);
        }
        let old = size_of_val(&*self.segments[segment]);
        self.charge(step, size * size_of::<u64>(), old)?;
        // The old one goes first, so that both are never held.
        self.segments[segment] = Box::default();
        self.segments[segment] = vec![0; size].into_boxed_slice();
        for slot in self.segments[segment].chunks_exact_mut(if self.shift == 0 { size } else { self.stride })
        {
            slot[1] = EMPTY;
        }
        Ok(())
    }

    /// Gives every slot that holds something a segment of its own, segment by segment.
    fn separate(&mut self, step: u64) -> Result<(), SnapshotError> {
        let slots = self.segments.len() << self.shift;
        let a_segment = (self.stride << self.shift) * size_of::<u64>();
        self.charge(step, table_for(slots) * ENTRY + a_segment, 0)?;
        self.held -= a_segment;
        let old = core::mem::take(&mut self.segments);
        let old_table = old.capacity() * ENTRY;
        self.segments.reserve_exact(table_for(slots));
        for segment in old {
            for slot in 0..1 << self.shift {
                let words = segment.get(slot * self.stride..).unwrap_or(&[]);
                let own: Box<[u64]> = match words.first_chunk::<HEADER>() {
                    Some(&[_, lengths]) if lengths != EMPTY => {
                        let (reals, plain) = unpack(lengths);
                        words[..HEADER + reals + plain].into()
                    }
                    _ => Box::default(),
                };
                self.held += size_of_val(&*own);
                self.segments.push(own);
            }
            self.held -= size_of_val(&*segment);
        }
        self.held -= old_table;
        self.shift = 0;
        Ok(())
    }

    /// Takes so many bytes to account in place of others, if the budget allows.
    fn charge(&mut self, step: u64, more: usize, less: usize) -> Result<(), SnapshotError> {
        let held = self.held - less + more;
        if held > self.limit.bytes() {
            return Err(SnapshotError::NoSpace {
                step,
                place: " (in memory)".into(),
                why: format!("snapshots would take {held} bytes of a budget of {}", self.limit),
            });
        }
        self.held = held;
        Ok(())
    }
}

impl SnapshotStore for MemoryStore {
    #[inline]
    fn put(&mut self, slot: u32, step: u64, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.put_with(slot, step, (snapshot.reals().len(), snapshot.plain().len()), &mut |words| {
            words.reals.copy_from_slice(snapshot.reals());
            words.plain.copy_from_slice(snapshot.plain());
        })?;
        Ok(())
    }

    #[inline]
    fn put_with(
        &mut self,
        slot: u32,
        step: u64,
        (reals, plain): (usize, usize),
        fill: &mut dyn FnMut(SnapshotWords<'_>),
    ) -> Result<bool, SnapshotError> {
        let lengths = pack(reals, plain).ok_or_else(|| too_large(step))?;
        let needed = HEADER + reals + plain;
        if self.words(slot).len() < needed {
            self.make_space(slot, step, needed)?;
        }
        let (header, words) = self.words_mut(slot).split_at_mut(HEADER);
        // Whoever fills it may panic: until it is full it holds nothing.
        header[1] = EMPTY;
        let (reals, plain) = words[..reals + plain].split_at_mut(reals);
        fill(SnapshotWords { reals, plain });
        header.copy_from_slice(&[step, lengths]);
        Ok(true)
    }

    #[inline]
    fn get(&mut self, slot: u32, step: u64, into: &mut Snapshot) -> Result<(), SnapshotError> {
        let (reals, plain) =
            self.view(slot, step).ok_or(SnapshotError::Missing { step, place: String::new() })?;
        into.copy_from_words(reals, plain);
        Ok(())
    }

    #[inline]
    fn view(&self, slot: u32, step: u64) -> Option<(&[u64], &[u64])> {
        match self.words(slot) {
            [at, lengths, words @ ..] if *at == step && *lengths != EMPTY => {
                let (reals, plain) = unpack(*lengths);
                Some((&words[..reals], &words[reals..reals + plain]))
            }
            _ => None,
        }
    }

    #[inline]
    fn free(&mut self, slot: u32) {
        if let Some(lengths) = self.words_mut(slot).get_mut(1) {
            *lengths = EMPTY;
        }
    }

    fn heap_bytes(&self) -> usize {
        self.held
    }

    fn heap_bytes_for(&self, slots: usize, reals: usize, plain: usize) -> usize {
        let words = HEADER + reals + plain;
        let per_segment = slots_in_segment(words);
        let segments = slots.div_ceil(per_segment);
        // The table is copied when it grows, so that two are held for a moment.
        segments * per_segment * words * size_of::<u64>() + 2 * table_for(segments) * ENTRY
    }
}

/// The bytes that slots of their own may need beyond slots side by side: tables, and a segment that is being
/// taken apart.
pub(super) fn slack(slots: usize) -> usize {
    3 * table_for(slots + SEGMENT) * ENTRY + SEGMENT * size_of::<u64>()
}

/// How many slots of so many words are in a segment: a power of two.
fn slots_in_segment(words: usize) -> usize {
    1 << (SEGMENT / words).max(1).ilog2()
}

/// The places of a table that must hold so many: an eighth more, so that it is seldom moved.
fn table_for(segments: usize) -> usize {
    if segments == 0 { 0 } else { segments + segments / 8 + 3 }
}

/// Both lengths in a word.
#[inline]
fn pack(reals: usize, plain: usize) -> Option<u64> {
    let reals = u32::try_from(reals).ok().filter(|&reals| reals < u32::MAX)?;
    Some(u64::from(reals) << 32 | u64::from(u32::try_from(plain).ok()?))
}

#[inline]
fn unpack(lengths: u64) -> (usize, usize) {
    ((lengths >> 32) as usize, lengths as u32 as usize)
}

#[cold]
fn too_large(step: u64) -> SnapshotError {
    SnapshotError::NoSpace {
        step,
        place: " (in memory)".into(),
        why: "a slot holds less than 2^32 numbers".into(),
    }
}
