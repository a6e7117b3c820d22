//! What a machine can do with doubles: the vocabulary in which the elementary functions are written.
//!
//! Input -> output: [`Double`] is `f64` here. Other instances can be symbols, from which code is printed; so
//! there is no `bool` and no branch, only masks and selections, and words of 64 bits beside the numbers.
//!
//! Invariant: each operation is exact or rounds once, to nearest, as IEEE 754 says. There is no fused
//! multiply-add, and nothing whose rounding a platform may choose: the same text gives the same bits on every
//! machine. (Targets whose compiler keeps excess precision, such as x87, are not among them.)

use core::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub};

/// 64 bits. Sums and differences wrap around.
pub trait Word:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
{
    /// These bits.
    fn of(bits: u64) -> Self;
    /// Shifted up by so many places; zeros come in from below.
    fn up(self, places: u32) -> Self;
    /// Shifted down by so many places; zeros come in from above.
    fn down(self, places: u32) -> Self;
}

/// What a comparison of two [`Double`]s gives.
pub trait Mask: Copy + BitAnd<Output = Self> + BitOr<Output = Self> + Not<Output = Self> {}

/// A double, as the elementary functions see it.
pub trait Double:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + Add<f64, Output = Self>
    + Sub<f64, Output = Self>
    + Mul<f64, Output = Self>
{
    /// Its bits.
    type Word: Word;
    /// What a comparison gives.
    type Mask: Mask;

    /// This number.
    fn of(number: f64) -> Self;
    /// Its bits.
    fn to_word(self) -> Self::Word;
    /// The number with these bits.
    fn from_word(word: Self::Word) -> Self;
    /// The square root, rounded correctly.
    fn sqrt(self) -> Self;
    /// `self < other`; false for NaN.
    fn less(self, other: Self) -> Self::Mask;
    /// `self <= other`; false for NaN.
    fn less_eq(self, other: Self) -> Self::Mask;
    /// `self == other`; false for NaN.
    fn equal(self, other: Self) -> Self::Mask;
    /// `if_true` where the mask is true, otherwise `if_false`. Both are evaluated.
    fn select(mask: Self::Mask, if_true: Self, if_false: Self) -> Self;
    /// The entry of a table of 64 that the lowest six bits of the word select.
    fn element(table: &'static [f64; 64], index: Self::Word) -> Self;

    /// Without its sign.
    #[inline(always)]
    fn abs(self) -> Self {
        Self::from_word(self.to_word() & Self::Word::of(!SIGN))
    }
    /// Its sign bit alone.
    #[inline(always)]
    fn sign(self) -> Self::Word {
        self.to_word() & Self::Word::of(SIGN)
    }
    /// With the sign flipped where that bit is set; the other bits of the word must be zero.
    #[inline(always)]
    fn flipped(self, sign: Self::Word) -> Self {
        Self::from_word(self.to_word() ^ sign)
    }
    /// With the sign bit set where that bit is set; the other bits of the word must be zero.
    #[inline(always)]
    fn with_sign(self, sign: Self::Word) -> Self {
        Self::from_word(self.to_word() | sign)
    }
    /// Its first 26 bits: the product of two such numbers is exact.
    #[inline(always)]
    fn high(self) -> Self {
        Self::from_word(self.to_word() & Self::Word::of(!0x7ff_ffff))
    }
    /// Whether it is NaN.
    #[inline(always)]
    fn is_nan(self) -> Self::Mask {
        !self.equal(self)
    }
    /// The smaller one; `self` if that is NaN.
    #[inline(always)]
    fn at_most(self, limit: f64) -> Self {
        Self::select(Self::of(limit).less(self), Self::of(limit), self)
    }
    /// The larger one; `self` if that is NaN.
    #[inline(always)]
    fn at_least(self, limit: f64) -> Self {
        Self::select(self.less(Self::of(limit)), Self::of(limit), self)
    }
    /// `if_odd` where the lowest bit of the word is set, otherwise `if_even`. The other bits do not matter.
    #[inline(always)]
    fn by_parity(word: Self::Word, if_even: Self, if_odd: Self) -> Self {
        let all = Self::Word::of(0) - (word & Self::Word::of(1));
        let (even, odd) = (if_even.to_word(), if_odd.to_word());
        Self::from_word(even ^ ((even ^ odd) & all))
    }
}

/// The sign bit.
pub(super) const SIGN: u64 = 1 << 63;

/// Adding and subtracting it rounds a number below 2^51 to an integer, whose low bits are those of the sum.
pub(super) const ROUNDER: f64 = 6755399441055744.0; // 1.5 * 2^52

/// The place of the exponent among the bits.
pub(super) const EXPONENT_AT: u32 = 52;

/// The bits of 1.
pub(super) const ONE: u64 = 1.0f64.to_bits();

/// An integer next to a number below 2^51, as a number and as a word whose low 51 bits are right.
#[inline(always)]
pub(super) fn rounded<D: Double>(x: D) -> (D, D::Word) {
    let sum = x + ROUNDER;
    (sum - ROUNDER, sum.to_word())
}

/// `2^n` for an integer from -1022 to 1023; only the low bits of its word count.
#[inline(always)]
pub(super) fn power_of_two<D: Double>(n: D::Word) -> D {
    D::from_word((n.up(EXPONENT_AT)) + D::Word::of(ONE))
}

/// The bits of an `f64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits(u64);

macro_rules! operators_of_bits {
    ($($trait:ident $method:ident = $operation:expr;)*) => {
        $(impl $trait for Bits {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self($operation(self.0, other.0))
            }
        })*
    };
}
operators_of_bits! {
    Add add = u64::wrapping_add;
    Sub sub = u64::wrapping_sub;
    BitAnd bitand = |a, b| a & b;
    BitOr bitor = |a, b| a | b;
    BitXor bitxor = |a, b| a ^ b;
}

impl Word for Bits {
    #[inline(always)]
    fn of(bits: u64) -> Self {
        Self(bits)
    }
    #[inline(always)]
    fn up(self, places: u32) -> Self {
        Self(self.0 << places)
    }
    #[inline(always)]
    fn down(self, places: u32) -> Self {
        Self(self.0 >> places)
    }
}

impl Mask for bool {}

impl Double for f64 {
    type Word = Bits;
    type Mask = bool;

    #[inline(always)]
    fn of(number: f64) -> Self {
        number
    }
    #[inline(always)]
    fn to_word(self) -> Bits {
        Bits(self.to_bits())
    }
    #[inline(always)]
    fn from_word(word: Bits) -> Self {
        Self::from_bits(word.0)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        self.sqrt()
    }
    #[inline(always)]
    fn less(self, other: Self) -> bool {
        self < other
    }
    #[inline(always)]
    fn less_eq(self, other: Self) -> bool {
        self <= other
    }
    #[inline(always)]
    fn equal(self, other: Self) -> bool {
        self == other
    }
    #[inline(always)]
    fn select(mask: bool, if_true: Self, if_false: Self) -> Self {
        if mask { if_true } else { if_false }
    }
    #[inline(always)]
    fn element(table: &'static [f64; 64], index: Bits) -> Self {
        table[(index.0 & 63) as usize]
    }
}
