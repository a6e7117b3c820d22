//! Values with numbers inside: any state, as a stream of numbers and words.
//!
//! Input: a value such as `Pendulum<f64>`. Output: its numbers in a fixed order, and words for the rest: lengths, variants of enums,
//! integers. The same stream read with another number type gives the same value over it, so one trait serves snapshots,
//! hashes, files and the way from `State<f64>` to `State<Var<f64>>` and back.
//!
//! Invariants: what [`Reals::save`] writes, [`Reals::load`] reads, in the same order, whatever the number type; a value that is
//! loaded into one of the same shape allocates nothing.
//!
//! `#[derive(Reals)]` (package `palinode-macros`) writes the implementation: a field whose type names the type parameter holds numbers,
//! any other field is [`Plain`].

use crate::{Dual, DualN, Jet, Passive, Var};
use palinode_num::{DoubleDouble, Posit, PositWidth, Scalar};
use std::collections::{BTreeMap, VecDeque};
use std::marker::PhantomData;

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

macro_rules! floats {
    ($($float:ident)*) => {$(
        impl Reals<$float> for $float {
            #[inline(always)]
            fn save(&self, to: &mut impl Sink<$float>) {
                to.real(*self);
            }
            #[inline(always)]
            fn load(from: &mut impl Source<$float>) -> Self {
                from.real()
            }
            #[inline(always)]
            fn save_slice(values: &[Self], to: &mut impl Sink<Self>) {
                to.reals(values);
            }
            #[inline(always)]
            fn reload_slice(values: &mut [Self], from: &mut impl Source<Self>) {
                from.reals(values);
            }
        }
        impl Bits for $float {
            const ONE_WORD: bool = true;
            #[inline(always)]
            fn save_bits(self, to: &mut impl FnMut(u64)) {
                to(u64::from(self.to_bits()));
            }
            #[inline(always)]
            fn load_bits(from: &mut impl FnMut() -> u64) -> Self {
                $float::from_bits(from() as _)
            }
        }
        impl Plain for $float {
            #[inline(always)]
            fn save(&self, to: &mut impl FnMut(u64)) {
                self.save_bits(to);
            }
            #[inline(always)]
            fn load(from: &mut impl FnMut() -> u64) -> Self {
                $float::load_bits(from)
            }
        }
    )*};
}
floats!(f32 f64);

macro_rules! leaves {
    ($([$($generics:tt)*] $Number:ty;)*) => {$(
        impl<$($generics)*> Reals<$Number> for $Number {
            #[inline(always)]
            fn save(&self, to: &mut impl Sink<$Number>) {
                to.real(*self);
            }
            #[inline(always)]
            fn load(from: &mut impl Source<$Number>) -> Self {
                from.real()
            }
            #[inline(always)]
            fn save_slice(values: &[Self], to: &mut impl Sink<Self>) {
                to.reals(values);
            }
            #[inline(always)]
            fn reload_slice(values: &mut [Self], from: &mut impl Source<Self>) {
                from.reals(values);
            }
        }
    )*};
}
leaves! {
    [] DoubleDouble;
    [W: PositWidth] Posit<W>;
    [S: Scalar] Dual<S>;
    [S: Scalar, const N: usize] DualN<S, N>;
    [S: Scalar, const K: usize] Jet<S, K>;
    [S: Scalar] Passive<S>;
    [S: Scalar<Bool = bool>] Var<S>;
}

impl Bits for DoubleDouble {
    #[inline]
    fn save_bits(self, to: &mut impl FnMut(u64)) {
        self.hi().save_bits(to);
        self.lo().save_bits(to);
    }
    #[inline]
    fn load_bits(from: &mut impl FnMut() -> u64) -> Self {
        let (hi, lo) = (f64::load_bits(from), f64::load_bits(from));
        DoubleDouble::from_sum(hi, lo)
    }
}

/// The encoding, aligned at the sign bit.
impl<W: PositWidth> Bits for Posit<W> {
    const ONE_WORD: bool = true;
    #[inline]
    fn save_bits(self, to: &mut impl FnMut(u64)) {
        to(self.to_bits().to_pattern());
    }
    #[inline]
    fn load_bits(from: &mut impl FnMut() -> u64) -> Self {
        Posit::from_bits(W::from_pattern(from()))
    }
}

/// The words of its primal.
impl<S: Bits> Bits for Passive<S> {
    const ONE_WORD: bool = S::ONE_WORD;
    #[inline(always)]
    fn save_bits(self, to: &mut impl FnMut(u64)) {
        self.primal().save_bits(to);
    }
    #[inline(always)]
    fn load_bits(from: &mut impl FnMut() -> u64) -> Self {
        Passive::lift(S::load_bits(from))
    }
}

impl<S: Bits> Bits for Dual<S> {
    #[inline]
    fn save_bits(self, to: &mut impl FnMut(u64)) {
        self.value.save_bits(to);
        self.tangent.save_bits(to);
    }
    #[inline]
    fn load_bits(from: &mut impl FnMut() -> u64) -> Self {
        let (value, tangent) = (S::load_bits(from), S::load_bits(from));
        Dual { value, tangent }
    }
}

impl<S: Bits, const N: usize> Bits for DualN<S, N> {
    #[inline]
    fn save_bits(self, to: &mut impl FnMut(u64)) {
        self.value.save_bits(to);
        self.tangents.iter().for_each(|tangent| tangent.save_bits(to));
    }
    #[inline]
    fn load_bits(from: &mut impl FnMut() -> u64) -> Self {
        let value = S::load_bits(from);
        DualN::new(value, core::array::from_fn(|_| S::load_bits(from)))
    }
}

macro_rules! plain_integers {
    ($($integer:ident)*) => {$(
        impl Plain for $integer {
            #[inline(always)]
            fn save(&self, to: &mut impl FnMut(u64)) {
                to(*self as u64);
            }
            #[inline(always)]
            fn load(from: &mut impl FnMut() -> u64) -> Self {
                from() as $integer
            }
        }
    )*};
}
plain_integers!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize);

macro_rules! plain_halves {
    ($($integer:ident)*) => {$(
        impl Plain for $integer {
            fn save(&self, to: &mut impl FnMut(u64)) {
                to(*self as u64);
                to((*self >> 64) as u64);
            }
            fn load(from: &mut impl FnMut() -> u64) -> Self {
                let low = from();
                $integer::from(low) | ((from() as $integer) << 64)
            }
        }
    )*};
}
plain_halves!(u128 i128);

impl Plain for bool {
    fn save(&self, to: &mut impl FnMut(u64)) {
        to(u64::from(*self));
    }
    fn load(from: &mut impl FnMut() -> u64) -> Self {
        from() != 0
    }
}

impl Plain for char {
    fn save(&self, to: &mut impl FnMut(u64)) {
        to(u64::from(u32::from(*self)));
    }
    fn load(from: &mut impl FnMut() -> u64) -> Self {
        char::from_u32(from() as u32).expect("a char was saved here")
    }
}

impl Plain for String {
    fn save(&self, to: &mut impl FnMut(u64)) {
        self.len().save(to);
        self.bytes().for_each(|byte| byte.save(to));
    }
    fn load(from: &mut impl FnMut() -> u64) -> Self {
        let bytes = Vec::<u8>::load(from);
        String::from_utf8(bytes).expect("a string was saved here")
    }
    fn reload(&mut self, from: &mut impl FnMut() -> u64) {
        let mut bytes = core::mem::take(self).into_bytes();
        bytes.reload(from);
        *self = String::from_utf8(bytes).expect("a string was saved here");
    }
    fn heap_bytes(&self) -> usize {
        self.capacity()
    }
}

impl<P: Plain> Plain for Vec<P> {
    fn save(&self, to: &mut impl FnMut(u64)) {
        self.len().save(to);
        self.iter().for_each(|item| item.save(to));
    }
    fn load(from: &mut impl FnMut() -> u64) -> Self {
        let len = usize::load(from);
        (0..len).map(|_| P::load(from)).collect()
    }
    fn reload(&mut self, from: &mut impl FnMut() -> u64) {
        let len = usize::load(from);
        self.truncate(len);
        self.iter_mut().for_each(|item| item.reload(from));
        let more = len - self.len();
        self.reserve_exact(more);
        self.extend((0..more).map(|_| P::load(from)));
    }
    fn heap_bytes(&self) -> usize {
        self.capacity() * size_of::<P>() + self.iter().map(P::heap_bytes).sum::<usize>()
    }
}

impl<P: Plain> Plain for Option<P> {
    fn save(&self, to: &mut impl FnMut(u64)) {
        self.is_some().save(to);
        self.iter().for_each(|item| item.save(to));
    }
    fn load(from: &mut impl FnMut() -> u64) -> Self {
        bool::load(from).then(|| P::load(from))
    }
    fn reload(&mut self, from: &mut impl FnMut() -> u64) {
        match (bool::load(from), self) {
            (true, Some(item)) => item.reload(from),
            (true, empty) => *empty = Some(P::load(from)),
            (false, item) => *item = None,
        }
    }
    fn heap_bytes(&self) -> usize {
        self.as_ref().map_or(0, P::heap_bytes)
    }
}

impl<P: Plain, const N: usize> Plain for [P; N] {
    fn save(&self, to: &mut impl FnMut(u64)) {
        self.iter().for_each(|item| item.save(to));
    }
    fn load(from: &mut impl FnMut() -> u64) -> Self {
        core::array::from_fn(|_| P::load(from))
    }
    fn reload(&mut self, from: &mut impl FnMut() -> u64) {
        self.iter_mut().for_each(|item| item.reload(from));
    }
    fn heap_bytes(&self) -> usize {
        self.iter().map(P::heap_bytes).sum()
    }
}

impl<P: Plain> Plain for Box<P> {
    fn save(&self, to: &mut impl FnMut(u64)) {
        (**self).save(to);
    }
    fn load(from: &mut impl FnMut() -> u64) -> Self {
        Box::new(P::load(from))
    }
    fn reload(&mut self, from: &mut impl FnMut() -> u64) {
        (**self).reload(from);
    }
    fn heap_bytes(&self) -> usize {
        size_of::<P>() + (**self).heap_bytes()
    }
}

impl Plain for () {
    fn save(&self, _to: &mut impl FnMut(u64)) {}
    fn load(_from: &mut impl FnMut() -> u64) -> Self {}
}

impl<T> Plain for PhantomData<T> {
    fn save(&self, _to: &mut impl FnMut(u64)) {}
    fn load(_from: &mut impl FnMut() -> u64) -> Self {
        PhantomData
    }
}

impl<S, T> Reals<S> for PhantomData<T> {
    fn save(&self, _to: &mut impl Sink<S>) {}
    fn load(_from: &mut impl Source<S>) -> Self {
        PhantomData
    }
}

/// So few items are saved and loaded one by one, without a loop: the compiler can then keep them in registers.
const FEW: usize = 8;

impl<S, R: Reals<S>, const N: usize> Reals<S> for [R; N] {
    #[inline]
    fn save(&self, to: &mut impl Sink<S>) {
        if N <= FEW {
            self.iter().for_each(|item| item.save(to));
        } else {
            R::save_slice(self, to);
        }
    }
    #[inline]
    fn load(from: &mut impl Source<S>) -> Self {
        core::array::from_fn(|_| R::load(from))
    }
    #[inline]
    fn reload(&mut self, from: &mut impl Source<S>) {
        if N <= FEW {
            self.iter_mut().for_each(|item| item.reload(from));
        } else {
            R::reload_slice(self, from);
        }
    }
    fn heap_bytes(&self) -> usize {
        self.iter().map(R::heap_bytes).sum()
    }
}

impl<S, R: Reals<S>> Reals<S> for Vec<R> {
    #[inline]
    fn save(&self, to: &mut impl Sink<S>) {
        to.word(self.len() as u64);
        R::save_slice(self, to);
    }
    #[inline]
    fn load(from: &mut impl Source<S>) -> Self {
        let len = from.word() as usize;
        let mut items = Vec::with_capacity(len);
        items.extend((0..len).map(|_| R::load(from)));
        items
    }
    #[inline]
    fn reload(&mut self, from: &mut impl Source<S>) {
        let len = from.word() as usize;
        self.truncate(len);
        R::reload_slice(self, from);
        let more = len - self.len();
        self.reserve_exact(more);
        self.extend((0..more).map(|_| R::load(from)));
    }
    fn heap_bytes(&self) -> usize {
        self.capacity() * size_of::<R>() + self.iter().map(R::heap_bytes).sum::<usize>()
    }
}

impl<S, R: Reals<S>> Reals<S> for VecDeque<R> {
    fn save(&self, to: &mut impl Sink<S>) {
        to.word(self.len() as u64);
        self.iter().for_each(|item| item.save(to));
    }
    fn load(from: &mut impl Source<S>) -> Self {
        Vec::<R>::load(from).into()
    }
    fn reload(&mut self, from: &mut impl Source<S>) {
        let len = from.word() as usize;
        self.truncate(len);
        self.iter_mut().for_each(|item| item.reload(from));
        self.extend((self.len()..len).map(|_| R::load(from)));
    }
    fn heap_bytes(&self) -> usize {
        self.capacity() * size_of::<R>() + self.iter().map(R::heap_bytes).sum::<usize>()
    }
}

impl<S, R: Reals<S>> Reals<S> for Option<R> {
    fn save(&self, to: &mut impl Sink<S>) {
        to.word(u64::from(self.is_some()));
        self.iter().for_each(|item| item.save(to));
    }
    fn load(from: &mut impl Source<S>) -> Self {
        (from.word() != 0).then(|| R::load(from))
    }
    fn reload(&mut self, from: &mut impl Source<S>) {
        match (from.word() != 0, self) {
            (true, Some(item)) => item.reload(from),
            (true, empty) => *empty = Some(R::load(from)),
            (false, item) => *item = None,
        }
    }
    fn heap_bytes(&self) -> usize {
        self.as_ref().map_or(0, R::heap_bytes)
    }
}

impl<S, R: Reals<S>> Reals<S> for Box<R> {
    fn save(&self, to: &mut impl Sink<S>) {
        (**self).save(to);
    }
    fn load(from: &mut impl Source<S>) -> Self {
        Box::new(R::load(from))
    }
    fn reload(&mut self, from: &mut impl Source<S>) {
        (**self).reload(from);
    }
    fn heap_bytes(&self) -> usize {
        size_of::<R>() + (**self).heap_bytes()
    }
}

impl<S, K: Plain + Ord, R: Reals<S>> Reals<S> for BTreeMap<K, R> {
    fn save(&self, to: &mut impl Sink<S>) {
        to.word(self.len() as u64);
        for (key, item) in self {
            key.save(&mut |word| to.word(word));
            item.save(to);
        }
    }
    fn load(from: &mut impl Source<S>) -> Self {
        let len = from.word();
        let entry = |_| (K::load(&mut || from.word()), R::load(from));
        (0..len).map(entry).collect()
    }
    /// A bound for what the tree holds: its nodes are not told.
    fn heap_bytes(&self) -> usize {
        let nodes = self.len() * (2 * (size_of::<K>() + size_of::<R>()) + 32);
        nodes + self.iter().map(|(key, item)| key.heap_bytes() + item.heap_bytes()).sum::<usize>()
    }
}

impl<S> Reals<S> for () {
    #[inline(always)]
    fn save(&self, _to: &mut impl Sink<S>) {}
    #[inline(always)]
    fn load(_from: &mut impl Source<S>) -> Self {}
}

macro_rules! tuples {
    ($(($($item:ident . $index:tt),+);)*) => {$(
        impl<S, $($item: Reals<S>),+> Reals<S> for ($($item,)+) {
            #[inline]
            fn save(&self, to: &mut impl Sink<S>) {
                $(self.$index.save(to);)+
            }
            #[inline]
            fn load(from: &mut impl Source<S>) -> Self {
                ($($item::load(from),)+)
            }
            #[inline]
            fn reload(&mut self, from: &mut impl Source<S>) {
                $(self.$index.reload(from);)+
            }
            fn heap_bytes(&self) -> usize {
                0 $(+ self.$index.heap_bytes())+
            }
        }
        impl<$($item: Plain),+> Plain for ($($item,)+) {
            fn save(&self, to: &mut impl FnMut(u64)) {
                $(self.$index.save(to);)+
            }
            fn load(from: &mut impl FnMut() -> u64) -> Self {
                ($($item::load(from),)+)
            }
            fn reload(&mut self, from: &mut impl FnMut() -> u64) {
                $(self.$index.reload(from);)+
            }
            fn heap_bytes(&self) -> usize {
                0 $(+ self.$index.heap_bytes())+
            }
        }
    )*};
}
tuples! {
    (A.0);
    (A.0, B.1);
    (A.0, B.1, C.2);
    (A.0, B.1, C.2, D.3);
    (A.0, B.1, C.2, D.3, E.4);
    (A.0, B.1, C.2, D.3, E.4, F.5);
}

#[cfg(feature = "nalgebra")]
mod matrices {
    //! nalgebra's matrices, of fixed and of dynamic size.

    use super::{Reals, Sink, Source};
    use nalgebra::{ArrayStorage, Const, Dim, Dyn, Matrix, OMatrix, Scalar, VecStorage};

    impl<S: Scalar + Reals<S>, const R: usize, const C: usize> Reals<S>
        for Matrix<S, Const<R>, Const<C>, ArrayStorage<S, R, C>>
    {
        #[inline]
        fn save(&self, to: &mut impl Sink<S>) {
            S::save_slice(self.as_slice(), to);
        }
        #[inline]
        fn load(from: &mut impl Source<S>) -> Self {
            Matrix::from_array_storage(ArrayStorage(core::array::from_fn(|_| {
                core::array::from_fn(|_| S::load(from))
            })))
        }
        #[inline]
        fn reload(&mut self, from: &mut impl Source<S>) {
            S::reload_slice(self.as_mut_slice(), from);
        }
    }

    macro_rules! dynamic {
        ($($Rows:ty, $Columns:ty, |$rows:ident, $columns:ident| ($r:expr, $c:expr);)*) => {$(
            impl<S: Scalar + Reals<S>> Reals<S> for Matrix<S, $Rows, $Columns, VecStorage<S, $Rows, $Columns>> {
                fn save(&self, to: &mut impl Sink<S>) {
                    to.word(self.nrows() as u64);
                    to.word(self.ncols() as u64);
                    S::save_slice(self.as_slice(), to);
                }
                fn load(from: &mut impl Source<S>) -> Self {
                    let ($rows, $columns) = (from.word() as usize, from.word() as usize);
                    OMatrix::from_iterator_generic($r, $c, (0..$rows * $columns).map(|_| S::load(from)))
                }
                fn reload(&mut self, from: &mut impl Source<S>) {
                    let ($rows, $columns) = (from.word() as usize, from.word() as usize);
                    if self.shape() == ($rows, $columns) {
                        S::reload_slice(self.as_mut_slice(), from);
                    } else {
                        *self = OMatrix::from_iterator_generic($r, $c, (0..$rows * $columns).map(|_| S::load(from)));
                    }
                }
                fn heap_bytes(&self) -> usize {
                    self.len() * size_of::<S>()
                }
            }
        )*};
    }
    dynamic! {
        Dyn, Dyn, |rows, columns| (Dyn(rows), Dyn(columns));
        Dyn, Const<1>, |rows, columns| (Dyn(rows), Const::<1>::from_usize(columns));
        Const<1>, Dyn, |rows, columns| (Const::<1>::from_usize(rows), Dyn(columns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Snapshot;

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
