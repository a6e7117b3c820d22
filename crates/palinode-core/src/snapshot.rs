//! A state as words, and where such words are kept.
//!
//! Input: a value with numbers inside ([`Reals`]). Output: its numbers and its other data, each as a list of words, bit for bit; a hash
//! of them; the value again, over any number made of the same words.
//!
//! Invariants: a snapshot that is filled again with a state of the same size allocates nothing. A store gives back what was put, or an
//! error that names the step. This file knows no files: stores on disk are in `palinode-time`.

use crate::reals::{Bits, Reals, Sink, Source};
use core::time::Duration;
use thiserror::Error;

/// The words of a state: one or more per number, and those of everything else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    reals: Vec<u64>,
    plain: Vec<u64>,
}

impl Snapshot {
    /// An empty one, to be filled.
    pub fn new() -> Self {
        Snapshot::default()
    }

    /// The snapshot of a value.
    pub fn of<S: Bits>(value: &impl Reals<S>) -> Self {
        let mut snapshot = Snapshot::new();
        snapshot.take(value);
        snapshot.reals.shrink_to_fit();
        snapshot.plain.shrink_to_fit();
        snapshot
    }

    /// One with these words.
    pub fn from_words(reals: Vec<u64>, plain: Vec<u64>) -> Self {
        Snapshot { reals, plain }
    }

    /// Becomes the snapshot of this value.
    #[inline]
    pub fn take<S: Bits>(&mut self, value: &impl Reals<S>) {
        self.reals.clear();
        self.plain.clear();
        value.save(self);
    }

    /// Becomes a copy of the other.
    #[inline]
    pub fn copy_from(&mut self, other: &Snapshot) {
        self.reals.clear();
        self.reals.extend_from_slice(&other.reals);
        self.plain.clear();
        self.plain.extend_from_slice(&other.plain);
    }

    /// Becomes these words.
    pub fn copy_from_words(&mut self, reals: &[u64], plain: &[u64]) {
        self.reals.clear();
        self.reals.extend_from_slice(reals);
        self.plain.clear();
        self.plain.extend_from_slice(plain);
    }

    /// The words of the numbers, in order.
    pub fn reals(&self) -> &[u64] {
        &self.reals
    }

    /// The words of everything else: lengths, variants, integers.
    pub fn plain(&self) -> &[u64] {
        &self.plain
    }

    /// The words of the numbers and those of everything else, to be filled by a store.
    pub fn words_mut(&mut self) -> (&mut Vec<u64>, &mut Vec<u64>) {
        (&mut self.reals, &mut self.plain)
    }

    /// The words of the numbers, to be changed (by a store that keeps fewer bits).
    pub fn reals_mut(&mut self) -> &mut [u64] {
        &mut self.reals
    }

    /// The value, over numbers made of words `S`.
    ///
    /// # Panics
    /// If the snapshot is of another kind of value.
    pub fn loaded<S: Bits, R: Reals<S>>(&self) -> R {
        let mut words = Words::of(&self.reals, &self.plain);
        let value = R::load(&mut words);
        assert!(words.fitted(), "{OTHER_KIND}");
        value
    }

    /// The value becomes what was kept.
    ///
    /// # Panics
    /// If the snapshot is of another kind of value.
    #[inline]
    pub fn restore<S: Bits>(&self, value: &mut impl Reals<S>) {
        Snapshot::restore_words(&self.reals, &self.plain, value);
    }

    /// [`Snapshot::restore`] for words that are kept elsewhere; see [`SnapshotStore::view`].
    ///
    /// # Panics
    /// If the words are of another kind of value.
    #[inline]
    pub fn restore_words<S: Bits>(reals: &[u64], plain: &[u64], value: &mut impl Reals<S>) {
        assert!(Words::reload(reals, plain, value), "{OTHER_KIND}");
    }

    /// [`Snapshot::restore_words`] for what a store has given back as the state before `step`.
    ///
    /// # Errors
    /// If these are too few or too many words for such a value. What the value is then says nothing.
    #[inline]
    pub fn restore_kept<S: Bits>(
        step: u64,
        (reals, plain): (&[u64], &[u64]),
        value: &mut impl Reals<S>,
    ) -> Result<(), SnapshotError> {
        if Words::reload(reals, plain, value) { Ok(()) } else { Err(misfit(step, reals.len(), plain.len())) }
    }

    /// How many words the snapshot of this value has: those of its numbers, and those of everything else.
    #[inline]
    pub fn lengths<S: Bits>(value: &impl Reals<S>) -> (usize, usize) {
        let mut lengths = Lengths { reals: 0, plain: 0 };
        value.save(&mut lengths);
        (lengths.reals, lengths.plain)
    }

    /// The heap bytes held.
    pub fn heap_bytes(&self) -> usize {
        (self.reals.capacity() + self.plain.capacity()) * size_of::<u64>()
    }

    /// The bytes of the words themselves.
    pub fn bytes(&self) -> usize {
        (self.reals.len() + self.plain.len()) * size_of::<u64>()
    }

    /// A hash of every bit: equal states have equal hashes, and states that differ in any one word have different ones.
    #[inline]
    pub fn hash(&self) -> u64 {
        let start = mix((self.reals.len() as u64) << 32 ^ self.plain.len() as u64);
        self.reals.iter().chain(&self.plain).fold(start, |hash, &word| mix(hash ^ word))
    }
}

/// A bijection of words in which every bit of the input changes about half of the output (the finisher of splitmix64), moved so
/// that zero is not its own image.
#[inline(always)]
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

impl<S: Bits> Sink<S> for Snapshot {
    #[inline(always)]
    fn real(&mut self, number: S) {
        number.save_bits(&mut |word| self.reals.push(word));
    }
    #[inline]
    fn reals(&mut self, numbers: &[S]) {
        if S::ONE_WORD {
            self.reals.extend(numbers.iter().map(|number| number.to_word()));
        } else {
            numbers.iter().for_each(|&number| self.real(number));
        }
    }
    #[inline(always)]
    fn word(&mut self, word: u64) {
        self.plain.push(word);
    }
}

/// Counts words.
struct Lengths {
    reals: usize,
    plain: usize,
}

impl<S: Bits> Sink<S> for Lengths {
    #[inline(always)]
    fn real(&mut self, number: S) {
        number.save_bits(&mut |_| self.reals += 1);
    }
    #[inline]
    fn reals(&mut self, numbers: &[S]) {
        if S::ONE_WORD {
            self.reals += numbers.len();
        } else {
            numbers.iter().for_each(|&number| self.real(number));
        }
    }
    #[inline(always)]
    fn word(&mut self, _word: u64) {
        self.plain += 1;
    }
}

const OTHER_LENGTH: &str = "a value is saved with the same words each time";

/// Words of a snapshot that are still to be written; see [`SnapshotStore::put_with`].
#[derive(Debug)]
pub struct Room<'a> {
    /// Those of the numbers.
    pub reals: &'a mut [u64],
    /// Those of everything else.
    pub plain: &'a mut [u64],
}

impl Room<'_> {
    /// Writes the snapshot of this value.
    ///
    /// # Panics
    /// If it has not as many words as there is room for; see [`Snapshot::lengths`].
    #[inline]
    pub fn fill<S: Bits>(mut self, value: &impl Reals<S>) {
        value.save(&mut self);
        assert!(self.reals.is_empty() && self.plain.is_empty(), "{OTHER_LENGTH}");
    }
}

#[inline(always)]
fn write(words: &mut &mut [u64], word: u64) {
    *words.split_off_first_mut().expect(OTHER_LENGTH) = word;
}

impl<S: Bits> Sink<S> for Room<'_> {
    #[inline(always)]
    fn real(&mut self, number: S) {
        number.save_bits(&mut |word| write(&mut self.reals, word));
    }
    #[inline]
    fn reals(&mut self, numbers: &[S]) {
        if S::ONE_WORD {
            let words = self.reals.split_off_mut(..numbers.len()).expect(OTHER_LENGTH);
            words.iter_mut().zip(numbers).for_each(|(word, number)| *word = number.to_word());
        } else {
            numbers.iter().for_each(|&number| self.real(number));
        }
    }
    #[inline(always)]
    fn word(&mut self, word: u64) {
        write(&mut self.plain, word);
    }
}

const OTHER_KIND: &str = "a snapshot is read as the kind of value that it was taken of";

#[cold]
fn misfit(step: u64, reals: usize, plain: usize) -> SnapshotError {
    let how = format!("its {reals} and {plain} words are not those of such a state");
    SnapshotError::Damaged { step, place: String::new(), how }
}

/// The words of a snapshot that are still to be read.
struct Words<'a> {
    reals: &'a [u64],
    plain: &'a [u64],
    /// How many words were asked for that are not there.
    missing: u64,
}

/// Whoever asks for so many words that are not there does not stop by himself.
const MOST_MISSING: u64 = 1 << 32;

#[inline(always)]
fn next(words: &mut &[u64], missing: &mut u64) -> u64 {
    match words.split_first() {
        Some((&first, rest)) => {
            *words = rest;
            first
        }
        None => {
            *missing += 1;
            assert!(*missing < MOST_MISSING, "{OTHER_KIND}");
            0
        }
    }
}

impl<'a> Words<'a> {
    #[inline(always)]
    fn of(reals: &'a [u64], plain: &'a [u64]) -> Self {
        Words { reals, plain, missing: 0 }
    }

    /// The value becomes what these words say; false if they are too few or too many.
    #[inline(always)]
    fn reload<S: Bits>(reals: &'a [u64], plain: &'a [u64], value: &mut impl Reals<S>) -> bool {
        let mut words = Words::of(reals, plain);
        value.reload(&mut words);
        words.fitted()
    }

    /// Whether exactly these words were asked for.
    #[inline(always)]
    fn fitted(&self) -> bool {
        self.missing == 0 && self.reals.is_empty() && self.plain.is_empty()
    }
}

impl<S: Bits> Source<S> for Words<'_> {
    #[inline(always)]
    fn real(&mut self) -> S {
        S::load_bits(&mut || next(&mut self.reals, &mut self.missing))
    }
    #[inline]
    fn reals(&mut self, numbers: &mut [S]) {
        if S::ONE_WORD
            && let Some((words, rest)) = self.reals.split_at_checked(numbers.len())
        {
            self.reals = rest;
            numbers.iter_mut().zip(words).for_each(|(number, &word)| *number = S::load_bits(&mut || word));
        } else {
            numbers.iter_mut().for_each(|number| *number = self.real());
        }
    }
    #[inline(always)]
    fn word(&mut self) -> u64 {
        next(&mut self.plain, &mut self.missing)
    }
    #[inline(always)]
    fn is_short(&self) -> bool {
        self.missing > 0
    }
    #[inline(always)]
    fn words_left(&self) -> Option<usize> {
        Some(self.reals.len() + self.plain.len())
    }
}

/// Where snapshots are kept between the time they are taken and the time they are needed: slots, numbered from 0.
///
/// A store must give back every bit, unless it says that it is lossy. It may be asked for a slot as often as one likes until the slot is
/// freed or put to again.
pub trait SnapshotStore {
    /// Keeps a copy of the state before `step` in a slot, in place of what was there.
    fn put(&mut self, slot: u32, step: u64, snapshot: &Snapshot) -> Result<(), SnapshotError>;
    /// Fills the snapshot with what the slot holds, which must be the state before `step`.
    fn get(&mut self, slot: u32, step: u64, into: &mut Snapshot) -> Result<(), SnapshotError>;
    /// The words of what the slot holds, if it is the state before `step` and lies in memory as it was put: for reading without a copy.
    #[inline]
    fn view(&self, _slot: u32, _step: u64) -> Option<(&[u64], &[u64])> {
        None
    }
    /// Like `put`, without a copy: `fill` writes the words of the state before `step` where they are kept, so many for its numbers and so many
    /// for everything else. False if the store keeps words otherwise; then nothing has happened.
    #[inline]
    fn put_with(
        &mut self,
        _slot: u32,
        _step: u64,
        _lengths: (usize, usize),
        _fill: &mut dyn FnMut(Room<'_>),
    ) -> Result<bool, SnapshotError> {
        Ok(false)
    }
    /// The slot is not needed any more.
    fn free(&mut self, slot: u32);
    /// The slot will be asked for soon: a store that is slow may begin to fetch it.
    fn prefetch(&mut self, _slot: u32, _step: u64) {}
    /// The heap bytes held now.
    fn heap_bytes(&self) -> usize;
    /// The heap bytes that it will hold at most for so many slots of snapshots of this size.
    fn heap_bytes_for(&self, slots: usize, reals: usize, plain: usize) -> usize;
    /// Waits until everything that was put is where it belongs. A store that writes in the background tells of a failure at its next call;
    /// this is the call for those who have no other to make.
    fn flush(&mut self) -> Result<(), SnapshotError> {
        Ok(())
    }
    /// What reading and writing has cost so far; nothing for a store that does neither.
    fn stats(&self) -> StoreStats {
        StoreStats::default()
    }
    /// Whether what comes back may differ from what was put.
    fn is_lossy(&self) -> bool {
        false
    }
}

macro_rules! delegate {
    ($($Pointer:ty),*) => {$(
        impl<T: SnapshotStore + ?Sized> SnapshotStore for $Pointer {
            #[inline]
            fn put(&mut self, slot: u32, step: u64, snapshot: &Snapshot) -> Result<(), SnapshotError> {
                (**self).put(slot, step, snapshot)
            }
            #[inline]
            fn get(&mut self, slot: u32, step: u64, into: &mut Snapshot) -> Result<(), SnapshotError> {
                (**self).get(slot, step, into)
            }
            #[inline]
            fn view(&self, slot: u32, step: u64) -> Option<(&[u64], &[u64])> {
                (**self).view(slot, step)
            }
            #[inline]
            fn put_with(
                &mut self,
                slot: u32,
                step: u64,
                lengths: (usize, usize),
                fill: &mut dyn FnMut(Room<'_>),
            ) -> Result<bool, SnapshotError> {
                (**self).put_with(slot, step, lengths, fill)
            }
            #[inline]
            fn free(&mut self, slot: u32) {
                (**self).free(slot);
            }
            #[inline]
            fn prefetch(&mut self, slot: u32, step: u64) {
                (**self).prefetch(slot, step);
            }
            fn heap_bytes(&self) -> usize {
                (**self).heap_bytes()
            }
            fn heap_bytes_for(&self, slots: usize, reals: usize, plain: usize) -> usize {
                (**self).heap_bytes_for(slots, reals, plain)
            }
            fn flush(&mut self) -> Result<(), SnapshotError> {
                (**self).flush()
            }
            fn stats(&self) -> StoreStats {
                (**self).stats()
            }
            fn is_lossy(&self) -> bool {
                (**self).is_lossy()
            }
        }
    )*};
}
delegate!(&mut T, Box<T>);

/// What the reading and writing of a store has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// How long reading, writing, removing and checking took, on whatever thread.
    pub io_time: Duration,
    /// How long callers stood still for it.
    pub waited: Duration,
    /// The bytes written.
    pub written: u64,
    /// The bytes read.
    pub read: u64,
}

impl StoreStats {
    /// The part of the time of reading and writing that went by while the caller computed: 1 if it never waited. `None` if nothing
    /// was read or written.
    pub fn hidden(&self) -> Option<f64> {
        let io = self.io_time.as_secs_f64();
        (io > 0.0).then(|| (1.0 - self.waited.as_secs_f64() / io).max(0.0))
    }
}

/// What can go wrong with a kept snapshot.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The slot holds nothing, or the state of another step.
    #[error(
        "PAL0510: the snapshot of step {step} is missing{place}; nothing but this run may touch its files"
    )]
    Missing {
        /// The step.
        step: u64,
        /// Where it should be, as ` (path)`, or nothing.
        place: String,
    },
    /// What is there is not what was put.
    #[error(
        "PAL0511: the snapshot of step {step} is damaged{place}: {how}; check what keeps it (the disk, the memory, the store's own code), then run again"
    )]
    Damaged {
        /// The step.
        step: u64,
        /// Where it is, as ` (path)`, or nothing.
        place: String,
        /// What is wrong: "it is cut short", "its checksum differs" and so on.
        how: String,
    },
    /// There is no room for it.
    #[error(
        "PAL0512: there is no room for the snapshot of step {step}{place}: {why}; free some, keep fewer snapshots on disk, or \
         name another directory"
    )]
    NoRoom {
        /// The step.
        step: u64,
        /// Where it should go, as ` (path)`, or nothing.
        place: String,
        /// What the system said.
        why: String,
    },
    /// Reading or writing failed in another way.
    #[error("PAL0513: the snapshot of step {step} could not be {doing}{place}: {why}")]
    Failed {
        /// The step.
        step: u64,
        /// "written", "read" or "removed".
        doing: &'static str,
        /// Where, as ` (path)`, or nothing.
        place: String,
        /// What the system said.
        why: String,
    },
    /// Too many of its numbers cannot be kept in fewer bits.
    #[error(
        "PAL0514: the snapshot of step {step} cannot be kept as {format}: {count} of its {of} numbers are out of range, first number \
         {index} ({value}); keep snapshots exactly, or let tiny numbers become zero"
    )]
    OutOfRange {
        /// The step.
        step: u64,
        /// "f32" or "bf16".
        format: &'static str,
        /// How many numbers are out of range.
        count: usize,
        /// How many numbers there are.
        of: usize,
        /// The first that is out of range, counted from 0.
        index: usize,
        /// What it is.
        value: String,
    },
}

impl SnapshotError {
    /// The code, such as `PAL0511`.
    pub fn code(&self) -> &'static str {
        match self {
            SnapshotError::Missing { .. } => "PAL0510",
            SnapshotError::Damaged { .. } => "PAL0511",
            SnapshotError::NoRoom { .. } => "PAL0512",
            SnapshotError::Failed { .. } => "PAL0513",
            SnapshotError::OutOfRange { .. } => "PAL0514",
        }
    }

    /// The step whose snapshot it is.
    pub fn step(&self) -> u64 {
        match self {
            SnapshotError::Missing { step, .. }
            | SnapshotError::Damaged { step, .. }
            | SnapshotError::NoRoom { step, .. }
            | SnapshotError::Failed { step, .. }
            | SnapshotError::OutOfRange { step, .. } => *step,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_tells_every_bit() {
        let base = Snapshot::of(&vec![1.0, 2.0, -0.0]);
        let mut hashes = vec![base.hash()];
        for word in 0..3 {
            for bit in 0..64 {
                let mut other = base.clone();
                other.reals_mut()[word] ^= 1 << bit;
                hashes.push(other.hash());
            }
        }
        hashes.push(Snapshot::of(&vec![2.0, 1.0, -0.0]).hash());
        hashes.push(Snapshot::of(&vec![1.0, 2.0, -0.0, 0.0]).hash());
        let count = hashes.len();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), count);
    }

    #[test]
    #[should_panic(expected = "as the kind of value")]
    fn a_snapshot_of_another_kind_is_noticed() {
        let _: [f64; 2] = Snapshot::of(&[1.0, 2.0, 3.0]).loaded::<f64, _>();
    }

    /// Lengths that no value has, and words that are missing or too many, for every container that reads a length: never an abort, never a value.
    #[test]
    fn words_that_do_not_fit_are_an_error() {
        fn check<R: Reals<f64> + Clone>(value: R) {
            let kept = Snapshot::of(&value);
            let refused = |reals: &[u64], plain: &[u64]| {
                let read = |mut into: R| Snapshot::restore_kept(7, (reals, plain), &mut into);
                let error = read(value.clone()).unwrap_err();
                assert!(error.code() == "PAL0511" && error.step() == 7, "{error}");
                let snapshot = Snapshot::from_words(reals.to_vec(), plain.to_vec());
                let panic = std::panic::catch_unwind(|| drop(snapshot.loaded::<f64, R>())).unwrap_err();
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).expect("a text");
                assert!(text.contains("as the kind of value"), "{text}");
            };
            let (reals, plain) = (kept.reals(), kept.plain());
            assert_eq!(Snapshot::restore_kept(7, (reals, plain), &mut value.clone()), Ok(()));
            refused(&reals[1..], plain);
            refused(&[reals, &[0]].concat(), plain);
            refused(reals, &[plain, &[0]].concat());
            refused(&[], plain);
            for at in 0..plain.len() {
                for length in [1 << 40, u64::MAX, 1 << 60] {
                    let mut absurd = plain.to_vec();
                    absurd[at] = length;
                    refused(reals, &absurd);
                }
            }
        }
        use std::collections::{BTreeMap, VecDeque};
        check(vec![1.0, 2.0, 3.0]);
        check(vec![vec![1.0], vec![2.0, 3.0]]);
        check(VecDeque::from([1.0, 2.0]));
        check([1.0, 2.0]);
        #[cfg(feature = "nalgebra")]
        {
            check(nalgebra::DVector::from_vec(vec![1.0, 2.0]));
            check(nalgebra::DMatrix::from_vec(1, 2, vec![1.0, 2.0]));
        }
        // Items without words: only how many there are can be absurd.
        let absurd = Snapshot::from_words(Vec::new(), vec![1 << 40]);
        for read in [
            || drop(Snapshot::from_words(Vec::new(), vec![1 << 40]).loaded::<f64, Vec<()>>()),
            || drop(Snapshot::from_words(Vec::new(), vec![1 << 40]).loaded::<f64, VecDeque<[f64; 0]>>()),
            || drop(Snapshot::from_words(Vec::new(), vec![1 << 40]).loaded::<f64, BTreeMap<(), ()>>()),
            || drop(<Vec<()> as crate::Plain>::load(&mut || 1 << 40)),
        ] {
            assert!(std::panic::catch_unwind(read).is_err());
        }
        let found = Snapshot::restore_kept::<f64>(1, (absurd.reals(), absurd.plain()), &mut vec![(); 3]);
        assert_eq!(found.map_err(|error| error.code()), Err("PAL0511"));
        let many = vec![(); 1 << 20];
        assert_eq!(Snapshot::of::<f64>(&many).loaded::<f64, Vec<()>>().len(), many.len());
        // Keys are plain data: only how many there are can be absurd.
        let tree = BTreeMap::from([(3_u8, 1.0), (4, 2.0)]);
        let kept = Snapshot::of(&tree);
        for length in [0, 1, 3, 1 << 40] {
            let mut plain = kept.plain().to_vec();
            plain[0] = length;
            let found = Snapshot::restore_kept(1, (kept.reals(), &plain), &mut tree.clone());
            assert_eq!(found.map_err(|error| error.code()), Err("PAL0511"), "{length}");
        }
    }

    #[test]
    fn an_absurd_list_of_plain_data_is_a_panic_that_can_be_caught() {
        #[derive(Clone)]
        struct Noted(String, f64);
        impl Reals<f64> for Noted {
            fn save(&self, to: &mut impl Sink<f64>) {
                crate::Plain::save(&self.0, &mut |word| to.word(word));
                to.real(self.1);
            }
            fn load(from: &mut impl Source<f64>) -> Self {
                Noted(crate::Plain::load(&mut || from.word()), from.real())
            }
        }
        let kept = Snapshot::of(&Noted("ab".into(), 1.0));
        assert_eq!(kept.loaded::<f64, Noted>().0, "ab");
        for length in [3_u64, 1 << 50, u64::MAX] {
            let mut plain = kept.plain().to_vec();
            plain[0] = length;
            let absurd = Snapshot::from_words(kept.reals().to_vec(), plain);
            assert!(std::panic::catch_unwind(|| absurd.loaded::<f64, Noted>().1).is_err(), "{length}");
        }
    }
}
