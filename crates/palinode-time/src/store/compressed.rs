//! Snapshots in fewer bytes, without a loss.
//!
//! Input: snapshots. Output: the same, kept in another store as fewer words. Words come in blocks of 4096.
//! Each number of a block is replaced by its difference from the one before it, as an integer; the same is
//! done with the differences, up to seven times, as long as they get smaller, so that a smooth field becomes
//! small numbers. Their signs move to the lowest bit, and their bytes are sorted (all first bytes, all second
//! ones, ...), so that the zeros lie together and LZ4 finds them.
//!
//! Invariants: every bit comes back. A block that would not become smaller is kept as it is, so that nothing
//! takes more than one word per block and two in all beyond its size.
//!
//! Limits: a neighbour is the number before it in the state. Fields whose values alternate (`[x, v, x, v]`)
//! gain less than those that lie apart (`[x, x, v, v]`).

use super::slack_of_changing_sizes;
use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size};
use palinode_core::{Snapshot, SnapshotError, SnapshotStore};

const WORD: usize = size_of::<u64>();
const BLOCK: usize = 4096;
const MAX_ORDER: u64 = 7;
/// In place of an order: the words as they are.
const AS_IT_IS: u64 = 255;
/// The hash table of LZ4 for blocks of this size.
const TABLE_BYTES: usize = 4096 * size_of::<u16>();

/// Another store, in which snapshots take fewer bytes.
///
/// ```
/// use palinode_core::{Snapshot, SnapshotStore};
/// use palinode_time::{CompressedStore, MemoryStore};
///
/// let smooth: Vec<f64> = (0..1000).map(|i| (0.01 * i as f64).sin()).collect();
/// let mut store = CompressedStore::new(MemoryStore::new());
/// store.put(0, 0, &Snapshot::of(&smooth))?;
/// assert!(store.ratio().unwrap() > 1.5);
/// let mut kept = Snapshot::new();
/// store.get(0, 0, &mut kept)?;
/// assert_eq!(kept, Snapshot::of(&smooth)); // every bit
/// # Ok::<(), palinode_core::SnapshotError>(())
/// ```
#[derive(Debug)]
pub struct CompressedStore<T> {
    store: T,
    packed: Snapshot,
    scratch: Scratch,
    /// The bytes that were put, and what became of them.
    given: u64,
    kept: u64,
}

#[derive(Debug, Default)]
struct Scratch {
    words: Vec<u64>,
    /// The words' bytes, sorted by their place in the word.
    planes: Vec<u8>,
    small: Vec<u8>,
    table: Table,
}

/// Made when first needed.
#[derive(Default)]
struct Table(Option<CompressTable>);

impl core::fmt::Debug for Table {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Table")
    }
}

impl<T: SnapshotStore> CompressedStore<T> {
    /// Snapshots go to this store, compressed.
    pub fn new(store: T) -> Self {
        CompressedStore { store, packed: Snapshot::new(), scratch: Scratch::default(), given: 0, kept: 0 }
    }

    /// The store inside.
    pub fn store(&self) -> &T {
        &self.store
    }

    /// The store inside, as one's own.
    pub fn into_store(self) -> T {
        self.store
    }

    /// How many times smaller the snapshots became that were put so far.
    pub fn ratio(&self) -> Option<f64> {
        (self.kept > 0).then(|| self.given as f64 / self.kept as f64)
    }
}

/// The words that a snapshot becomes at most.
fn packed_words(reals: usize, plain: usize) -> usize {
    2 + reals + plain + (reals + plain).div_ceil(BLOCK)
}

impl<T: SnapshotStore> SnapshotStore for CompressedStore<T> {
    fn put(&mut self, slot: u32, step: u64, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let (reals, plain) = (snapshot.reals(), snapshot.plain());
        let (none, packed) = self.packed.words_mut();
        none.clear();
        packed.clear();
        packed.reserve_exact(packed_words(reals.len(), plain.len()));
        packed.extend([reals.len() as u64, plain.len() as u64]);
        let mut words = reals.iter().chain(plain).copied();
        for start in (0..reals.len() + plain.len()).step_by(BLOCK) {
            let block = BLOCK.min(reals.len() + plain.len() - start);
            self.scratch.words.clear();
            self.scratch.words.reserve_exact(block);
            self.scratch.words.extend(words.by_ref().take(block));
            self.scratch.pack(packed);
        }
        self.given += snapshot.bytes() as u64;
        self.kept += self.packed.bytes() as u64;
        self.store.put(slot, step, &self.packed)
    }

    fn get(&mut self, slot: u32, step: u64, into: &mut Snapshot) -> Result<(), SnapshotError> {
        self.store.get(slot, step, &mut self.packed)?;
        let damaged =
            || SnapshotError::Damaged { step, place: String::new(), how: "it cannot be decompressed".into() };
        let Some((&[reals, plain], mut packed)) = self.packed.plain().split_first_chunk() else {
            return Err(damaged());
        };
        let lengths = (usize::try_from(reals), usize::try_from(plain));
        let (Ok(reals), Ok(plain)) = lengths else { return Err(damaged()) };
        let length = reals.checked_add(plain).ok_or_else(damaged)?;
        // Not even zeros become that small: a length beyond is not one that was kept, and not to be
        // allocated.
        if length > packed.len().saturating_mul(BLOCK) {
            return Err(damaged());
        }
        let (real_words, plain_words) = into.words_mut();
        real_words.clear();
        real_words.reserve_exact(reals);
        plain_words.clear();
        plain_words.reserve_exact(plain);
        for start in (0..length).step_by(BLOCK) {
            let block = BLOCK.min(length - start);
            packed = self.scratch.unpack(packed, block).ok_or_else(damaged)?;
            let (first, rest) = self.scratch.words.split_at(reals.saturating_sub(start).min(block));
            real_words.extend_from_slice(first);
            plain_words.extend_from_slice(rest);
        }
        if packed.is_empty() { Ok(()) } else { Err(damaged()) }
    }

    leaves_the_rest_to_the_inner_store!();

    fn heap_bytes(&self) -> usize {
        self.store.heap_bytes() + self.packed.heap_bytes() + self.scratch.heap_bytes()
    }

    fn heap_bytes_for(&self, slots: usize, reals: usize, plain: usize) -> usize {
        let packed = packed_words(reals, plain);
        let block = BLOCK.min(reals + plain) * WORD;
        let scratch = 2 * block + get_maximum_output_size(block) + TABLE_BYTES;
        let kept = self.store.heap_bytes_for(slots, 0, packed) + slack_of_changing_sizes(slots);
        kept + packed * WORD + scratch
    }

    fn is_lossy(&self) -> bool {
        self.store.is_lossy()
    }
}

impl Scratch {
    /// Appends the words of the scratch, packed: a word with order and bytes, then the bytes.
    fn pack(&mut self, packed: &mut Vec<u64>) {
        let count = self.words.len();
        // A few words cannot become fewer by more than they cost.
        if count >= 4 {
            let most = get_maximum_output_size(count * WORD);
            self.small.clear();
            self.small.reserve_exact(most);
            self.small.resize(most, 0);
            let table = self.table.0.get_or_insert_with(CompressTable::small);
            let order = difference(&mut self.words);
            sort_bytes(&self.words, &mut self.planes);
            // There is always enough space: the output has the size that is asked for.
            let bytes = compress_into_with_table(&self.planes, &mut self.small, table).unwrap_or(usize::MAX);
            if bytes.div_ceil(WORD) < count {
                packed.push(order | (bytes as u64) << 8);
                let words = self.small[..bytes].chunks(WORD);
                packed.extend(words.map(|bytes| {
                    let mut word = [0; WORD];
                    word[..bytes.len()].copy_from_slice(bytes);
                    u64::from_le_bytes(word)
                }));
                return;
            }
            integrate(&mut self.words, order);
        }
        packed.push(AS_IT_IS);
        packed.extend_from_slice(&self.words);
    }

    /// Fills the words of the scratch with the next block, of so many words; what remains to be read, `None`
    /// if this was not packed.
    fn unpack<'a>(&mut self, packed: &'a [u64], count: usize) -> Option<&'a [u64]> {
        let (&head, packed) = packed.split_first()?;
        let (order, bytes) = (head & 0xff, usize::try_from(head >> 8).ok()?);
        self.words.clear();
        self.words.reserve_exact(count);
        if order == AS_IT_IS {
            let (words, rest) = packed.split_at_checked(count)?;
            self.words.extend_from_slice(words);
            return Some(rest);
        }
        let (words, rest) = packed.split_at_checked(bytes.div_ceil(WORD))?;
        if order > MAX_ORDER || bytes > get_maximum_output_size(count * WORD) {
            return None;
        }
        self.small.clear();
        self.small.reserve_exact(words.len() * WORD);
        self.small.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        self.planes.clear();
        self.planes.reserve_exact(count * WORD);
        self.planes.resize(count * WORD, 0);
        let length = decompress_into(&self.small[..bytes], &mut self.planes).ok()?;
        if length != count * WORD {
            return None;
        }
        merge_bytes(&self.planes, count, &mut self.words);
        integrate(&mut self.words, order);
        Some(rest)
    }

    fn heap_bytes(&self) -> usize {
        let table = if self.table.0.is_some() { TABLE_BYTES } else { 0 };
        self.words.capacity() * WORD + self.planes.capacity() + self.small.capacity() + table
    }
}

/// Differences of the order that makes them smallest, signs lowest; the order.
fn difference(words: &mut [u64]) -> u64 {
    let size = |words: &[u64]| -> u32 { words.iter().map(|&word| 64 - fold(word).leading_zeros()).sum() };
    let mut smallest = size(words);
    let mut order = 0;
    while order < MAX_ORDER {
        once(words, order);
        let now = size(words);
        if now >= smallest {
            undo(words, order);
            break;
        }
        smallest = now;
        order += 1;
    }
    words.iter_mut().for_each(|word| *word = fold(*word));
    order
}

/// Undoes [`difference`].
fn integrate(words: &mut [u64], order: u64) {
    words.iter_mut().for_each(|word| *word = unfold(*word));
    (0..order).rev().for_each(|below| undo(words, below));
}

/// Differences once more, after so many times. The first ones have no neighbour and stay.
fn once(words: &mut [u64], below: u64) {
    for at in (below as usize + 1..words.len()).rev() {
        words[at] = words[at].wrapping_sub(words[at - 1]);
    }
}

fn undo(words: &mut [u64], below: u64) {
    for at in below as usize + 1..words.len() {
        words[at] = words[at].wrapping_add(words[at - 1]);
    }
}

/// The sign goes to the lowest bit, so that small numbers of either sign have zeros in front.
fn fold(word: u64) -> u64 {
    word << 1 ^ ((word as i64) >> 63) as u64
}

fn unfold(word: u64) -> u64 {
    word >> 1 ^ (word & 1).wrapping_neg()
}

/// All first bytes, then all second ones, and so on.
fn sort_bytes(words: &[u64], planes: &mut Vec<u8>) {
    planes.clear();
    planes.reserve_exact(words.len() * WORD);
    for place in 0..WORD {
        planes.extend(words.iter().map(|word| (word >> (8 * place)) as u8));
    }
}

fn merge_bytes(planes: &[u8], count: usize, words: &mut Vec<u64>) {
    words.resize(count, 0);
    for (place, plane) in planes.chunks_exact(count).enumerate() {
        for (word, &byte) in words.iter_mut().zip(plane) {
            *word |= u64::from(byte) << (8 * place);
        }
    }
}
