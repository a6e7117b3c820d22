//! Numbers themselves, and their words.

use super::{Bits, Plain, Reals, Sink, Source};
use crate::{Dual, DualN, Jet, Passive, Var};
use palinode_num::{DoubleDouble, Lanes, Posit, PositWidth, Scalar};

macro_rules! floats {
    ($($float:ident)*) => {$(
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
    [] f32;
    [] f64;
    [] DoubleDouble;
    [const N: usize] Lanes<N>;
    [W: PositWidth] Posit<W>;
    [S: Scalar] Dual<S>;
    [S: Scalar, const N: usize] DualN<S, N>;
    [S: Scalar, const K: usize] Jet<S, K>;
    [S: Scalar] Passive<S>;
    [S: Scalar] Var<S>;
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

impl<const N: usize> Bits for Lanes<N> {
    #[inline]
    fn save_bits(self, to: &mut impl FnMut(u64)) {
        self.0.into_iter().for_each(|number| to(number.to_bits()));
    }
    #[inline]
    fn load_bits(from: &mut impl FnMut() -> u64) -> Self {
        Lanes::from_fn(|_| f64::from_bits(from()))
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
