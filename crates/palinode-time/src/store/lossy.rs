//! Snapshots in fewer bits, with a loss that is asked for.
//!
//! Input: snapshots whose numbers are `f64`. Output: nearby numbers, kept in another store as `f32` (24
//! binary digits, half the bytes) or `bf16` (8 digits, a quarter). Everything that is not a number is kept
//! exactly.
//!
//! Invariants: a number that is out of the range of `f32` is kept exactly; if more than a sixteenth are, the
//! snapshot is refused (PAL0514), so that what is kept never takes more than was planned. Zeros, their signs
//! and infinities come back as they were; NaN as some NaN.
//!
//! Limits: the state that comes back is not the one of the run, so gradients differ: on a chaotic system by
//! orders of magnitude. Whoever uses it must say by how much.

use super::slack_of_changing_sizes;
use palinode_core::{Snapshot, SnapshotError, SnapshotStore};

/// Another store, in which the numbers of snapshots are kept in fewer bits.
///
/// ```
/// use palinode_core::{Snapshot, SnapshotStore};
/// use palinode_time::{LossyStore, MemoryStore};
///
/// let mut store = LossyStore::f32(MemoryStore::new());
/// assert!(store.is_lossy());
/// let mut state = vec![0.1; 100];
/// state[3] = 1e300; // out of range: kept exactly
/// store.put(0, 0, &Snapshot::of(&state))?;
/// let mut kept = Snapshot::new();
/// store.get(0, 0, &mut kept)?;
/// let kept: Vec<f64> = kept.loaded();
/// assert_eq!((kept[0], kept[3]), (f64::from(0.1_f32), 1e300));
/// # Ok::<(), palinode_core::SnapshotError>(())
/// ```
#[derive(Debug)]
pub struct LossyStore<T> {
    store: T,
    format: Format,
    tiny_to_zero: bool,
    packed: Snapshot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    F32,
    Bf16,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Format::F32 => "f32",
            Format::Bf16 => "bf16",
        }
    }

    /// The bits of a number.
    fn width(self) -> usize {
        match self {
            Format::F32 => 32,
            Format::Bf16 => 16,
        }
    }

    fn per_word(self) -> usize {
        64 / self.width()
    }

    /// The nearest, and of two equally near the even one; `None` if it is out of range.
    fn narrow(self, number: f64, tiny_to_zero: bool) -> Option<u64> {
        let mut single = number as f32;
        let is_tiny = single.abs() < f32::MIN_POSITIVE && number != 0.0;
        if is_tiny && tiny_to_zero {
            single = 0.0_f32.copysign(single);
        } else if is_tiny {
            return None;
        }
        let bits = single.to_bits();
        let bits = match self {
            Format::F32 => bits,
            Format::Bf16 if single.is_nan() => bits >> 16 | 0x40,
            // Half a unit of the upper half, less a bit if that is even; a carry runs into the exponent as it
            // should.
            Format::Bf16 => (bits + 0x7fff + (bits >> 16 & 1)) >> 16,
        };
        let bits = u64::from(bits);
        let is_too_large = self.wide(bits).is_infinite() && number.is_finite();
        (!is_too_large).then_some(bits)
    }

    fn wide(self, bits: u64) -> f64 {
        let bits = match self {
            Format::F32 => bits as u32,
            Format::Bf16 => (bits as u32) << 16,
        };
        f64::from(f32::from_bits(bits))
    }
}

/// How many numbers of so many may be kept exactly.
fn exact_of(numbers: usize) -> usize {
    numbers / 16
}

impl<T: SnapshotStore> LossyStore<T> {
    /// Numbers go to this store as `f32`.
    pub fn f32(store: T) -> Self {
        LossyStore { store, format: Format::F32, tiny_to_zero: false, packed: Snapshot::new() }
    }

    /// Numbers go to this store as `bf16`.
    pub fn bf16(store: T) -> Self {
        LossyStore { store, format: Format::Bf16, tiny_to_zero: false, packed: Snapshot::new() }
    }

    /// Numbers nearer to zero than 1.2e-38, where `f32` has fewer digits, become zero. For fields with long
    /// tails.
    #[must_use]
    pub fn tiny_to_zero(mut self) -> Self {
        self.tiny_to_zero = true;
        self
    }

    /// The store inside.
    pub fn store(&self) -> &T {
        &self.store
    }

    /// The store inside, as one's own.
    pub fn into_store(self) -> T {
        self.store
    }

    /// The words that a snapshot becomes at most: lengths, narrow numbers, exact numbers with their places,
    /// everything else.
    fn packed_words(&self, reals: usize, plain: usize) -> usize {
        2 + reals.div_ceil(self.format.per_word()) + 2 * exact_of(reals) + plain
    }
}

impl<T: SnapshotStore> SnapshotStore for LossyStore<T> {
    fn put(&mut self, slot: u32, step: u64, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let (reals, plain) = (snapshot.reals(), snapshot.plain());
        let narrow = |word: &u64| self.format.narrow(f64::from_bits(*word), self.tiny_to_zero);
        let mut exact = reals.iter().enumerate().filter(|(_, word)| narrow(word).is_none());
        let count = exact.clone().count();
        if count > exact_of(reals.len()) {
            let (index, word) = exact.next().expect("there is at least one");
            return Err(SnapshotError::OutOfRange {
                step,
                format: self.format.name(),
                count,
                of: reals.len(),
                index,
                value: format!("{:e}", f64::from_bits(*word)),
            });
        }
        let words = self.packed_words(reals.len(), plain.len());
        let (none, packed) = self.packed.words_mut();
        none.clear();
        packed.clear();
        packed.reserve_exact(words);
        packed.extend([reals.len() as u64, count as u64]);
        packed.extend(reals.chunks(self.format.per_word()).map(|numbers| {
            // The first number is lowest.
            let join = |word, number| word << self.format.width() | narrow(number).unwrap_or(0);
            numbers.iter().rev().fold(0, join)
        }));
        for (at, &word) in exact {
            packed.extend([at as u64, word]);
        }
        packed.extend_from_slice(plain);
        self.store.put(slot, step, &self.packed)
    }

    fn get(&mut self, slot: u32, step: u64, into: &mut Snapshot) -> Result<(), SnapshotError> {
        self.store.get(slot, step, &mut self.packed)?;
        self.unpack(into).ok_or_else(|| SnapshotError::Damaged {
            step,
            place: String::new(),
            how: "it is not what was kept".into(),
        })
    }

    leaves_the_rest_to_the_inner_store!();

    fn heap_bytes(&self) -> usize {
        self.store.heap_bytes() + self.packed.heap_bytes()
    }

    fn heap_bytes_for(&self, slots: usize, reals: usize, plain: usize) -> usize {
        let words = self.packed_words(reals, plain);
        // Sizes differ by what is kept exactly.
        let slack = if exact_of(reals) == 0 { 0 } else { slack_of_changing_sizes(slots) };
        self.store.heap_bytes_for(slots, 0, words) + slack + words * size_of::<u64>()
    }

    fn is_lossy(&self) -> bool {
        true
    }
}

impl<T: SnapshotStore> LossyStore<T> {
    /// `None` if the words are not those of a packed snapshot.
    fn unpack(&self, into: &mut Snapshot) -> Option<()> {
        let (&[count, exact], packed) = self.packed.plain().split_first_chunk()?;
        let (count, exact) = (usize::try_from(count).ok()?, usize::try_from(exact).ok()?);
        let (narrow, packed) = packed.split_at_checked(count.div_ceil(self.format.per_word()))?;
        let (exact, rest) = packed.split_at_checked(exact.checked_mul(2)?)?;
        let (reals, plain) = into.words_mut();
        reals.clear();
        reals.reserve_exact(count);
        let mask = u64::MAX >> (64 - self.format.width());
        for (word, first) in narrow.iter().zip((0..count).step_by(self.format.per_word())) {
            for at in 0..self.format.per_word().min(count - first) {
                let bits = word >> (at * self.format.width()) & mask;
                reals.push(self.format.wide(bits).to_bits());
            }
        }
        for &[at, word] in exact.as_chunks().0 {
            *reals.get_mut(usize::try_from(at).ok()?)? = word;
        }
        plain.clear();
        plain.extend_from_slice(rest);
        Some(())
    }
}
