//! [`Posit`]: numbers of 8, 16, 32 and 64 bits by the Posit Standard (2022), written by ourselves.
//!
//! Input -> output: integers, floats, decimal text or encodings in; a [`Scalar`](crate::Scalar) and
//! [`Real`](crate::Real) out, so that every rule, derivative number, tape and program runs on posits.
//!
//! | file | holds |
//! |---|---|
//! | `width.rs` | what differs between the four widths |
//! | `pattern.rs` | encoding <-> sign, scale and significand; the one rounding |
//! | `arithmetic.rs` | exact sums, products, quotients, remainders, roots, integers |
//! | `operators.rs` | `+ - * / %`, order, comparisons with `f64` |
//! | `convert.rs` | floats, integers, other widths |
//! | `functions.rs` | elementary functions: what each guarantees is in its header |
//! | `text.rs`, `big.rs` | decimal text that reads back |
//!
//! Invariants
//! - Every operation computes the exact real result, or enough of it to know where it lies, and rounds once:
//!   to the nearest encoding, ties to the even encoding, numbers beyond the ends to the ends. What is not
//!   zero never becomes zero, and nothing that is a real number becomes NaR.
//! - es = 2 for every width, so a narrow posit is a wide one whose last bits are zero. All the work is done
//!   on 64-bit patterns that are aligned at the sign bit, once for all widths.
//! - There is one zero and one NaR ("not a real"). NaR is what has no real value: `0/0`, `1/0`, `sqrt(-1)`,
//!   and any operation on NaR.
//!
//! Known limits: precision tapers. Next to 1 a posit of `n` bits has `n - 5` bits of fraction, and one less
//! for every factor of 16 away from there; the last numbers before the ends are powers of 4 and 16. A sum
//! that should be exact belongs into a [`Quire`](crate::Quire).

mod arithmetic;
mod big;
mod convert;
mod functions;
mod operators;
mod pattern;
mod text;
mod width;

pub use convert::PositInteger;
pub(crate) use pattern::Unpacked;
pub use text::ParsePositError;
pub use width::PositWidth;

/// A posit that is stored in the integer `W`; use the names [`Posit8`], [`Posit16`], [`Posit32`] and
/// [`Posit64`].
///
/// ```
/// use palinode_num::{Posit16, Posit32, Scalar};
///
/// let third = Posit32::ONE / Posit32::from_f64(3.0);
/// assert_eq!(third.to_string(), "0.333333334");
/// assert_eq!(Posit32::MAX * Posit32::MAX, Posit32::MAX);
/// assert_eq!(Posit32::ONE / Posit32::ZERO, Posit32::NAR);
/// assert_eq!(third.convert::<i16>(), Posit16::from_f64(1.0 / 3.0));
/// assert_eq!(Scalar::sqrt(Posit32::from_f64(2.0)).to_string(), "1.41421356");
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Posit<W>(W);

/// 8 bits: 3 bits of fraction next to 1, from 2^-24 to 2^24.
pub type Posit8 = Posit<i8>;
/// 16 bits: 11 bits of fraction next to 1, from 2^-56 to 2^56.
pub type Posit16 = Posit<i16>;
/// 32 bits: 27 bits of fraction next to 1, from 2^-120 to 2^120.
pub type Posit32 = Posit<i32>;
/// 64 bits: 59 bits of fraction next to 1, from 2^-248 to 2^248.
pub type Posit64 = Posit<i64>;

impl<W: PositWidth> Posit<W> {
    /// How many bits an encoding has.
    pub const BITS: u32 = W::BITS;
    /// Zero.
    pub const ZERO: Self = Self(W::ZERO);
    /// One.
    pub const ONE: Self = Self(W::ONE);
    /// Not a real.
    pub const NAR: Self = Self(W::NAR);
    /// The largest number, `2^(4 BITS - 8)`.
    pub const MAX: Self = Self(W::MAX);
    /// The smallest positive number, `1 / MAX`.
    pub const MIN_POSITIVE: Self = Self(W::SMALLEST);

    /// The number with this encoding, as a two's complement integer.
    #[must_use]
    #[inline]
    pub const fn from_bits(bits: W) -> Self {
        Self(bits)
    }

    /// The encoding. Encodings are ordered as the numbers are, NaR below all.
    #[must_use]
    #[inline]
    pub const fn to_bits(self) -> W {
        self.0
    }

    /// Whether it is not a real.
    #[must_use]
    #[inline]
    pub fn is_nar(self) -> bool {
        self.0 == W::NAR
    }

    /// Whether it is zero.
    #[must_use]
    #[inline]
    pub fn is_zero(self) -> bool {
        self.0 == W::ZERO
    }

    /// Whether it is below zero (NaR is not).
    #[must_use]
    #[inline]
    pub fn is_negative(self) -> bool {
        self.0 < W::ZERO && !self.is_nar()
    }

    /// The next larger number; NaR follows the largest.
    #[must_use]
    #[inline]
    pub fn next_up(self) -> Self {
        Self(self.0.next())
    }

    /// The encoding, aligned at the sign bit of 64.
    #[inline(always)]
    pub(crate) fn pattern(self) -> u64 {
        self.0.to_pattern()
    }

    #[inline(always)]
    pub(crate) fn from_pattern(pattern: u64) -> Self {
        Self(W::from_pattern(pattern))
    }

    /// Sign, scale and significand, unless it is zero or NaR.
    #[inline(always)]
    pub(crate) fn unpack(self) -> Option<Unpacked> {
        // Zero and NaR are what is left of nothing when the sign is shifted out.
        (self.pattern() << 1 != 0).then(|| Unpacked::of(self.pattern()))
    }

    /// The nearest posit.
    #[inline(always)]
    pub(crate) fn nearest(exact: Unpacked) -> Self {
        Self::from_pattern(exact.pack::<W>())
    }

    /// The nearest posit, where `None` stands for zero.
    #[inline(always)]
    fn nearest_or_zero(exact: Option<Unpacked>) -> Self {
        exact.map_or(Self::ZERO, Self::nearest)
    }
}
