//! A state as a flat list of numbers, and back: what tapes and cotangents work on.
//!
//! Input: a value with numbers inside. Output: the list of its numbers, and the words of the rest. Lists are
//! filled again and again and allocate only when a value is larger than any before.

use super::Inner;
use crate::error::Error;
use palinode_core::{Bits, Dual, Outputs, Passive, Real, Reals, Scalar, Sink, Source, Var};

/// Numbers and words of one or more values, one after the other.
#[derive(Clone, Debug)]
pub struct Flat<T> {
    pub(super) reals: Vec<T>,
    pub(super) plain: Vec<u64>,
}

impl<T> Default for Flat<T> {
    fn default() -> Self {
        Flat { reals: Vec::new(), plain: Vec::new() }
    }
}

impl<T> Flat<T> {
    /// The capacity for so many numbers and words.
    pub(super) fn with_capacity(reals: usize, plain: usize) -> Self {
        Flat { reals: Vec::with_capacity(reals), plain: Vec::with_capacity(plain) }
    }

    pub(super) fn clear(&mut self) {
        self.reals.clear();
        self.plain.clear();
    }

    /// Becomes a copy, in no more memory than that takes.
    pub(super) fn copy_from(&mut self, other: &Flat<T>)
    where
        T: Copy,
    {
        self.clear();
        self.reals.reserve_exact(other.reals.len());
        self.reals.extend_from_slice(&other.reals);
        self.plain.reserve_exact(other.plain.len());
        self.plain.extend_from_slice(&other.plain);
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.reals.capacity() * size_of::<T>() + self.plain.capacity() * size_of::<u64>()
    }

    /// Reads values over another number, made of these numbers one by one.
    pub(super) fn read<'a, S>(&'a self, number: impl FnMut(T) -> S + 'a) -> Reading<'a, T, impl FnMut(T) -> S>
    where
        T: Copy,
    {
        reading(&self.reals, &self.plain, number)
    }
}

/// A source that makes numbers out of the given ones.
pub(super) fn reading<'a, T, F>(reals: &'a [T], plain: &'a [u64], number: F) -> Reading<'a, T, F> {
    Reading { reals, plain, number }
}

/// Whether two lists have the same bits.
#[inline]
pub(super) fn same_bits<T: Bits>(a: &[T], b: &[T]) -> bool {
    // One word for most numbers; several are folded into one, whose coincidence is as unlikely as that of a
    // hash.
    let folded = |number: T| {
        let mut fold = 0_u64;
        number.save_bits(&mut |word| fold = fold.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ word);
        fold
    };
    a.len() == b.len() && a.iter().zip(b).all(|(&x, &y)| folded(x) == folded(y))
}

/// Whether two lists have the same words.
#[inline]
pub(super) fn same_words(a: &[u64], b: &[u64]) -> bool {
    // Most states have none, and the library's comparison of nothing with nothing takes as long as a step: it
    // touches memory at a list's address, which for an empty list is none.
    a.len() == b.len() && (a.is_empty() || a == b)
}

/// Whether a value has these numbers and words, to the bit.
pub(super) fn is_same<T: Inner>(value: &impl Reals<Passive<T>>, flat: &Flat<T>) -> bool {
    struct Compared<'a, T> {
        reals: &'a [T],
        plain: &'a [u64],
        same: bool,
    }
    impl<T: Inner> Sink<Passive<T>> for Compared<'_, T> {
        fn real(&mut self, number: Passive<T>) {
            self.reals(&[number]);
        }
        fn reals(&mut self, numbers: &[Passive<T>]) {
            let Some((expected, rest)) = self.reals.split_at_checked(numbers.len()) else {
                self.same = false;
                return;
            };
            self.reals = rest;
            // Without an early end, so that many are compared at once.
            let pairs = numbers.iter().zip(expected);
            self.same &= pairs
                .fold(true, |same, (number, &expected)| same & same_bits(&[number.primal()], &[expected]));
        }
        fn word(&mut self, word: u64) {
            self.same &= self.plain.split_first().is_some_and(|(&expected, rest)| {
                self.plain = rest;
                expected == word
            });
        }
    }
    let mut compared = Compared { reals: &flat.reals, plain: &flat.plain, same: true };
    value.save(&mut compared);
    compared.same && compared.reals.is_empty() && compared.plain.is_empty()
}

/// Takes primals of passive numbers.
impl<T: Scalar> Sink<Passive<T>> for Flat<T> {
    #[inline(always)]
    fn real(&mut self, number: Passive<T>) {
        self.reals.push(number.primal());
    }
    #[inline]
    fn reals(&mut self, numbers: &[Passive<T>]) {
        self.reals.extend(numbers.iter().map(|number| number.primal()));
    }
    #[inline(always)]
    fn word(&mut self, word: u64) {
        self.plain.push(word);
    }
}

/// Takes the numbers as they are.
pub(super) struct Verbatim<'a, T>(pub(super) &'a mut Flat<T>);

impl<T> Sink<T> for Verbatim<'_, T> {
    #[inline(always)]
    fn real(&mut self, number: T) {
        self.0.reals.push(number);
    }
    #[inline]
    fn reals(&mut self, numbers: &[T])
    where
        T: Copy,
    {
        self.0.reals.extend_from_slice(numbers);
    }
    #[inline(always)]
    fn word(&mut self, word: u64) {
        self.0.plain.push(word);
    }
}

/// See [`reading`].
pub(super) struct Reading<'a, T, F> {
    reals: &'a [T],
    plain: &'a [u64],
    number: F,
}

impl<T: Copy, S, F: FnMut(T) -> S> Source<S> for Reading<'_, T, F> {
    #[inline(always)]
    fn real(&mut self) -> S {
        let (&first, rest) = self.reals.split_first().expect("as many numbers as were saved");
        self.reals = rest;
        (self.number)(first)
    }
    #[inline]
    fn reals(&mut self, numbers: &mut [S]) {
        let (first, rest) =
            self.reals.split_at_checked(numbers.len()).expect("as many numbers as were saved");
        self.reals = rest;
        numbers.iter_mut().zip(first).for_each(|(number, &value)| *number = (self.number)(value));
    }
    #[inline(always)]
    fn word(&mut self) -> u64 {
        let (&first, rest) = self.plain.split_first().expect("as many words as were saved");
        self.plain = rest;
        first
    }
}

/// A value that is loaded the first time and reloaded from then on.
#[inline]
pub(super) fn refill<'v, S: Real, R: Reals<S>>(
    value: &'v mut Option<R>,
    from: &mut impl Source<S>,
) -> &'v mut R {
    match value {
        Some(value) => reloaded(value, from),
        empty => empty.insert(R::load(from)),
    }
}

/// The value, after it has become what was saved.
#[inline]
pub(super) fn reloaded<'v, S: Real, R: Reals<S>>(value: &'v mut R, from: &mut impl Source<S>) -> &'v mut R {
    value.reload(from);
    value
}

/// The numbers of a recorded state, as the outputs of a recording.
pub(super) struct Recorded<'a, R>(pub(super) &'a R);

impl<T: Scalar, R: Reals<Var<T>>> Outputs<T> for Recorded<'_, R> {
    fn for_each(&self, see: &mut dyn FnMut(Var<T>)) {
        for_each_number(self.0, see);
    }
}

/// Shows the numbers of a value, one by one.
#[inline]
pub(super) fn for_each_number<S>(value: &impl Reals<S>, see: impl FnMut(S)) {
    struct Seen<F>(F);
    impl<S, F: FnMut(S)> Sink<S> for Seen<F> {
        fn real(&mut self, number: S) {
            (self.0)(number);
        }
        fn word(&mut self, _word: u64) {}
    }
    value.save(&mut Seen(see));
}

/// A source of nothing, which notes when it is asked for something.
#[derive(Default)]
pub(super) struct Nothing {
    pub(super) asked: bool,
}

impl<S: Scalar> Source<S> for Nothing {
    fn real(&mut self) -> S {
        self.asked = true;
        S::zero()
    }
    fn word(&mut self) -> u64 {
        self.asked = true;
        0
    }
}

/// How many words a number is kept in.
pub(super) fn words_per_number<T: Inner>() -> usize {
    let mut words = 0;
    T::zero().save_bits(&mut |_| words += 1);
    words
}

/// How many numbers a value has.
pub(super) fn count<S>(value: &impl Reals<S>) -> usize {
    struct Count(usize);
    impl<S> Sink<S> for Count {
        #[inline(always)]
        fn real(&mut self, _number: S) {
            self.0 += 1;
        }
        #[inline(always)]
        fn reals(&mut self, numbers: &[S])
        where
            S: Copy,
        {
            self.0 += numbers.len();
        }
        #[inline(always)]
        fn word(&mut self, _word: u64) {}
    }
    let mut count = Count(0);
    value.save(&mut count);
    count.0
}

/// Takes the words of a value and counts its numbers.
pub(super) struct Shape<'a> {
    numbers: usize,
    words: &'a mut Vec<u64>,
}

impl Shape<'_> {
    /// The list becomes the words of the value; tells how many numbers it has.
    pub(super) fn of<S: Copy>(value: &impl Reals<S>, words: &mut Vec<u64>) -> usize {
        words.clear();
        let mut shape = Shape { numbers: 0, words };
        value.save(&mut shape);
        shape.numbers
    }
}

impl<S: Copy> Sink<S> for Shape<'_> {
    #[inline(always)]
    fn real(&mut self, _number: S) {
        self.numbers += 1;
    }
    #[inline(always)]
    fn reals(&mut self, numbers: &[S]) {
        self.numbers += numbers.len();
    }
    #[inline(always)]
    fn word(&mut self, word: u64) {
        self.words.push(word);
    }
}

/// A value of the shape of another, with these numbers. The words are for it to use.
pub(super) fn reshaped<R: Reals<f64>>(like: &R, numbers: &[f64], words: &mut Vec<u64>) -> R {
    Shape::of(like, words);
    R::load(&mut reading(numbers, words, |number| number))
}

/// A value over duals of which one part is the primal and the other the tangent.
pub(super) fn with_tangents<A: Reals<f64>, S, B: Reals<S>>(
    value: &A,
    tangent: &A,
    number: impl Fn(Dual<f64>) -> S,
) -> Result<B, Error> {
    let (mut values, mut tangents) = (Flat::<f64>::default(), Flat::<f64>::default());
    value.save(&mut Verbatim(&mut values));
    tangent.save(&mut Verbatim(&mut tangents));
    if values.reals.len() != tangents.reals.len() {
        return Err(Error::Core(palinode_core::Error::Length {
            what: "the direction",
            expected: values.reals.len(),
            found: tangents.reals.len(),
        }));
    }
    if let Some(position) = tangents.reals.iter().position(|t| !t.is_finite()) {
        let value = tangents.reals[position];
        return Err(palinode_core::Error::NonFiniteInput { what: "direction", position, value }.into());
    }
    let pairs = values.reals.iter().zip(&tangents.reals);
    let duals: Vec<Dual<f64>> = pairs.map(|(&x, &t)| Dual::new(x, t)).collect();
    Ok(B::load(&mut reading(&duals, &values.plain, number)))
}
