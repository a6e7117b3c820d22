//! Values with numbers inside: any state, as a stream of numbers and words.
//!
//! Input: a value such as `Pendulum<f64>`. Output: its numbers in a fixed order, and words for the rest:
//! lengths, variants of enums, integers. The same stream read with another number type gives the same value
//! over it, so one trait serves snapshots, hashes, files and the way from `State<f64>` to `State<Var<f64>>`
//! and back.
//!
//! Invariants: what [`Reals::save`] writes, [`Reals::load`] reads, in the same order, whatever the number
//! type; a value that is loaded into one of the same shape allocates nothing.
//!
//! `#[derive(Reals)]` (package `palinode-macros`) writes the implementation: a field whose type names the
//! type parameter holds numbers, any other field is [`Plain`].

mod containers;
#[cfg(feature = "nalgebra")]
mod matrices;
mod numbers;
mod plain;

use palinode_num::Scalar;

/// Where a value is saved to.
pub trait Sink<S> {
    /// Takes the next number.
    fn real(&mut self, number: S);
    /// Takes the next numbers; overridden where many go faster than one by one.
    #[inline]
    fn reals(&mut self, numbers: &[S])
    where
        S: Copy,
    {
        numbers.iter().for_each(|&number| self.real(number));
    }
    /// Takes the next word of what is not a number.
    fn word(&mut self, word: u64);
}

/// Where a value is loaded from, in the order in which it was saved.
pub trait Source<S> {
    /// The next number.
    fn real(&mut self) -> S;
    /// The next numbers; overridden where many go faster than one by one.
    #[inline]
    fn reals(&mut self, numbers: &mut [S]) {
        numbers.iter_mut().for_each(|number| *number = self.real());
    }
    /// The next word of what is not a number.
    fn word(&mut self) -> u64;
    /// Whether more was asked for than there is. What comes then is zeros, and whoever reads many can stop.
    #[inline(always)]
    fn is_short(&self) -> bool {
        false
    }
    /// How many words there are still to be read, if that is known: a list that says it is longer is damaged.
    #[inline(always)]
    fn words_left(&self) -> Option<usize> {
        None
    }
}

/// Items may have no words at all, as `()` has none; a list of more of them is damaged.
const MOST_WITHOUT_WORDS: usize = 1 << 24;

/// Reads how many items come next. If that cannot be, the source is read to its end and beyond, and there are
/// none.
#[inline]
fn read_len<S>(from: &mut impl Source<S>) -> usize {
    let len = from.word() as usize;
    if from.words_left().is_none_or(|left| len <= left.max(MOST_WITHOUT_WORDS)) {
        return len;
    }
    while !from.is_short() {
        from.word();
    }
    0
}

/// Reads items until there are so many, or no more come. What says how many there are may be damaged, so no
/// memory is asked for that cannot be had.
fn read_until<S, R: Reals<S>>(items: &mut Vec<R>, len: usize, from: &mut impl Source<S>) {
    let _ = items.try_reserve_exact(len.saturating_sub(items.len()));
    while items.len() < len && !from.is_short() {
        items.push(R::load(from));
    }
}

/// A value with numbers of type `S` inside.
///
/// ```
/// use palinode_core::{Reals, Snapshot};
///
/// let state = vec![(1.0, 2.0), (3.0, 4.0)];
/// let kept = Snapshot::of(&state);
/// assert_eq!(kept.reals().len(), 4);
/// let mut other = vec![(0.0, 0.0)];
/// kept.restore(&mut other); // also one of another length
/// assert_eq!(other, state);
/// ```
pub trait Reals<S>: Sized {
    /// Writes the value.
    fn save(&self, to: &mut impl Sink<S>);
    /// A value as it was saved.
    fn load(from: &mut impl Source<S>) -> Self;
    /// Becomes what was saved; overridden where memory can be used again.
    #[inline]
    fn reload(&mut self, from: &mut impl Source<S>) {
        *self = Self::load(from);
    }
    /// The heap bytes that the value holds.
    #[inline]
    fn heap_bytes(&self) -> usize {
        0
    }
    /// Writes many values; numbers do it at once.
    #[inline]
    fn save_slice(values: &[Self], to: &mut impl Sink<S>) {
        values.iter().for_each(|value| value.save(to));
    }
    /// Many values become what was saved; numbers do it at once.
    #[inline]
    fn reload_slice(values: &mut [Self], from: &mut impl Source<S>) {
        values.iter_mut().for_each(|value| value.reload(from));
    }
}

/// Data without numbers to differentiate by: integers, flags, constants.
pub trait Plain: Sized {
    /// Writes the value as words.
    fn save(&self, to: &mut impl FnMut(u64));
    /// A value as it was saved.
    fn load(from: &mut impl FnMut() -> u64) -> Self;
    /// Becomes what was saved; overridden where memory can be used again.
    #[inline]
    fn reload(&mut self, from: &mut impl FnMut() -> u64) {
        *self = Self::load(from);
    }
    /// The heap bytes that the value holds.
    #[inline]
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// A number that can be kept as words, bit for bit.
pub trait Bits: Scalar {
    /// Whether it is one word, given by [`Bits::to_word`].
    const ONE_WORD: bool = false;
    /// Its word, if it has one.
    #[inline(always)]
    fn to_word(self) -> u64 {
        let mut word = 0;
        self.save_bits(&mut |only| word = only);
        word
    }
    /// Shows its words.
    fn save_bits(self, to: &mut impl FnMut(u64));
    /// The number that these words are of.
    fn load_bits(from: &mut impl FnMut() -> u64) -> Self;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Passive, Snapshot};
    use palinode_num::{Posit, PositWidth};
    use std::collections::{BTreeMap, VecDeque};

    fn round_trip<R: Reals<f64> + PartialEq + core::fmt::Debug>(value: R, mut other: R) {
        let kept = Snapshot::of(&value);
        assert_eq!(kept.loaded::<f64, R>(), value);
        kept.restore(&mut other);
        assert_eq!(other, value);
        assert_eq!(Snapshot::of(&other), kept);
    }

    #[test]
    fn every_container_comes_back_as_it_was() {
        round_trip([1.0, f64::MIN_POSITIVE], [0.0; 2]);
        round_trip(vec![vec![1.0], vec![], vec![2.0, -0.0]], vec![vec![9.0; 7]]);
        round_trip((1.0, Some(vec![2.0]), Box::new([3.0])), (0.0, None, Box::new([0.0])));
        round_trip((Some(1.0), ()), (Some(4.0), ()));
        round_trip(VecDeque::from([1.0, 2.0, 3.0]), VecDeque::from([1.0]));
        round_trip(BTreeMap::from([(-3_i16, 1.0), (7, 2.0)]), BTreeMap::new());
    }

    #[test]
    fn plain_data_comes_back_as_it_was() {
        fn round_trip<P: Plain + PartialEq + core::fmt::Debug>(value: P, mut other: P) {
            let mut kept = Vec::new();
            value.save(&mut |word| kept.push(word));
            let mut words = kept.iter().copied();
            assert_eq!(P::load(&mut || words.next().expect("as many words as were saved")), value);
            assert_eq!(words.next(), None);
            let mut words = kept.iter().copied();
            other.reload(&mut || words.next().expect("as many words as were saved"));
            assert_eq!(other, value);
            assert_eq!(words.next(), None);
        }
        round_trip(-5_i8, 3);
        round_trip(i64::MIN, 0);
        round_trip(-7_i128 << 70, 1);
        round_trip(u128::MAX - 3, 0);
        round_trip('ß', 'a');
        round_trip(palinode_num::Key::from_seed(7).split(3), palinode_num::Key::from_seed(0));
        round_trip(String::from("Γ and ß"), String::from("longer than the other"));
        round_trip(vec![Some(true), None, Some(false)], vec![None; 7]);
        round_trip(vec![Some(true), None, Some(false)], vec![Some(false)]);
        round_trip([0.1_f32, -0.0], [0.0; 2]);
        round_trip((1_u8, Some(vec!['a']), Box::new(2.5), ()), (0, None, Box::new(0.0), ()));
    }

    #[test]
    fn posits_come_back_bit_for_bit() {
        fn round_trip<W: PositWidth>() {
            let numbers =
                [Posit::<W>::NAR, Posit::MIN_POSITIVE, -Posit::MAX, Posit::ZERO, Posit::ONE.next_up()];
            let kept = Snapshot::of::<Posit<W>>(&numbers);
            assert_eq!(kept.loaded::<Posit<W>, [Posit<W>; 5]>(), numbers);
            for x in numbers {
                assert_eq!(Posit::<W>::load_bits(&mut || x.to_word()), x);
            }
        }
        round_trip::<i8>();
        round_trip::<i16>();
        round_trip::<i32>();
        round_trip::<i64>();
    }

    #[test]
    fn a_value_can_be_read_over_another_number() {
        let kept = Snapshot::of(&vec![1.5, 2.5]);
        let passive: Vec<Passive<f64>> = kept.loaded();
        assert_eq!(passive[1].primal(), 2.5);
    }
}
