//! A state as words; where such words are kept is in `store.rs`.
//!
//! Input: a value with numbers inside ([`Reals`]). Output: its numbers and its other data, each as a list of
//! words, bit for bit; a hash of them; the value again, over any number made of the same words.
//!
//! Invariant: a snapshot that is filled again with a state of the same size allocates nothing.

mod store;

use crate::reals::{Bits, Reals, Sink, Source};
pub use store::{SnapshotError, SnapshotStore, StoreStats};

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
        self.copy_from_words(&other.reals, &other.plain);
    }

    /// Becomes these words.
    #[inline]
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

    /// A hash of every bit: equal states have equal hashes, and states that differ in any one word have
    /// different ones.
    #[inline]
    pub fn hash(&self) -> u64 {
        let start = mix((self.reals.len() as u64) << 32 ^ self.plain.len() as u64);
        self.reals.iter().chain(&self.plain).fold(start, |hash, &word| mix(hash ^ word))
    }
}

/// A bijection of words in which every bit of the input changes about half of the output (the finisher of
/// splitmix64), moved so that zero is not its own image.
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
pub struct SnapshotWords<'a> {
    /// Those of the numbers.
    pub reals: &'a mut [u64],
    /// Those of everything else.
    pub plain: &'a mut [u64],
}

impl SnapshotWords<'_> {
    /// Writes the snapshot of this value.
    ///
    /// # Panics
    /// If it has not as many words as are to be written; see [`Snapshot::lengths`].
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

impl<S: Bits> Sink<S> for SnapshotWords<'_> {
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

    /// Lengths that no value has, and words that are missing or too many, for every container that reads a
    /// length: never an abort, never a value.
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
