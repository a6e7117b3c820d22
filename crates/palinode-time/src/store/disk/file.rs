//! A snapshot as the bytes of a file.
//!
//! Input: a label and a snapshot. Output: 64 bytes of header (magic, run, slot, number of the put, step, both
//! lengths, checksum), then the words, all as little-endian words of 8 bytes. And back, or what is wrong with
//! it.
//!
//! Invariant: a file is taken for a snapshot only if every byte is what was written for this label.

use palinode_core::Snapshot;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

const MAGIC: u64 = u64::from_le_bytes(*b"PALSNAP1");
const WORD: usize = size_of::<u64>();
const HEADER: usize = 8 * WORD;
const CHECKSUM: core::ops::Range<usize> = 7 * WORD..HEADER;

/// What a file must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label {
    /// The run that wrote it, a random number.
    pub(super) run: u64,
    pub(super) slot: u32,
    /// The how many-th put of the run it is: a slot that is put to again has another number.
    pub(super) number: u64,
    pub(super) step: u64,
    pub(super) reals: usize,
    pub(super) plain: usize,
}

impl Label {
    /// The bytes of the file.
    pub(super) fn bytes(&self) -> usize {
        bytes(self.reals, self.plain)
    }

    fn words(&self) -> [u64; 7] {
        let (reals, plain) = (self.reals as u64, self.plain as u64);
        [MAGIC, self.run, u64::from(self.slot), self.number, self.step, reals, plain]
    }
}

/// The bytes of the file of a snapshot of this size.
pub(super) fn bytes(reals: usize, plain: usize) -> usize {
    HEADER + (reals + plain) * WORD
}

/// Writes everything but the checksum; the buffer is large enough.
pub(super) fn encode(label: &Label, snapshot: &Snapshot, buffer: &mut Vec<u8>) {
    buffer.clear();
    for word in label.words().into_iter().chain([0]) {
        buffer.extend_from_slice(&word.to_le_bytes());
    }
    for words in [snapshot.reals(), snapshot.plain()] {
        let start = buffer.len();
        buffer.resize(start + words.len() * WORD, 0);
        for (bytes, word) in buffer[start..].chunks_exact_mut(WORD).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }
}

/// Writes the checksum.
pub(super) fn seal(buffer: &mut [u8]) {
    let sum = checksum(buffer);
    buffer[CHECKSUM].copy_from_slice(&sum.to_le_bytes());
}

/// A hash of 64 bits of header and words, by XXH3: ten times as fast as the hash of a snapshot, which is made
/// one word after the other.
fn checksum(buffer: &[u8]) -> u64 {
    xxh3_64_with_seed(&buffer[HEADER..], xxh3_64(&buffer[..CHECKSUM.start]))
}

fn word(buffer: &[u8], at: usize) -> u64 {
    buffer[at * WORD..].first_chunk().map_or(0, |&bytes| u64::from_le_bytes(bytes))
}

/// What is wrong with a file of so many bytes, of which the buffer holds at most those that it should have.
pub(super) fn check(label: &Label, buffer: &[u8], length: u64) -> Result<(), String> {
    if length < HEADER as u64 || buffer.len() < HEADER {
        return Err(format!("it is truncated to {length} of {} bytes", label.bytes()));
    }
    let is = |at| word(buffer, at) == label.words()[at];
    if !is(0) {
        return Err("it does not begin like a snapshot".into());
    }
    if !is(1) {
        return Err("it belongs to another run".into());
    }
    if !is(2) || !is(4) {
        return Err(format!("it belongs to step {} in slot {}", word(buffer, 4), word(buffer, 2)));
    }
    if !is(3) {
        return Err("it is an older one of the same step".into());
    }
    if length < label.bytes() as u64 || buffer.len() < label.bytes() {
        return Err(format!("it is truncated to {length} of {} bytes", label.bytes()));
    }
    if length > label.bytes() as u64 {
        return Err(format!("it has {length} bytes instead of {}", label.bytes()));
    }
    if !is(5) || !is(6) || word(buffer, 7) != checksum(buffer) {
        return Err("its checksum differs".into());
    }
    Ok(())
}

/// The snapshot in a buffer that passed the check.
pub(super) fn decode(label: &Label, buffer: &[u8], into: &mut Snapshot) {
    let (reals, plain) = into.words_mut();
    let (real_bytes, plain_bytes) = buffer[HEADER..].split_at(label.reals * WORD);
    for (words, bytes) in [(reals, real_bytes), (plain, plain_bytes)] {
        words.clear();
        words.reserve_exact(bytes.len() / WORD);
        words.extend(bytes.as_chunks::<WORD>().0.iter().map(|&bytes| u64::from_le_bytes(bytes)));
    }
}
