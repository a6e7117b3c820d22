//! What differs between posits of 8, 16, 32 and 64 bits: the integer that holds them, and the size of their
//! quire.

use core::fmt::Debug;
use core::hash::Hash;

mod sealed {
    pub trait Sealed {}
    impl Sealed for i8 {}
    impl Sealed for i16 {}
    impl Sealed for i32 {}
    impl Sealed for i64 {}
}

/// The integer that holds a posit: `i8`, `i16`, `i32` or `i64`.
pub trait PositWidth: sealed::Sealed + Copy + Debug + Default + Ord + Hash + Send + Sync + 'static {
    /// How many bits it has.
    const BITS: u32;
    /// The encoding of 0.
    const ZERO: Self;
    /// The encoding of 1.
    const ONE: Self;
    /// The encoding of NaR.
    const NAR: Self;
    /// The encoding of the largest number.
    const MAX: Self;
    /// The encoding of the smallest positive number.
    const SMALLEST: Self;
    /// The digits of a quire (see `quire.rs`).
    type Digits: Copy + Debug + AsRef<[i128]> + AsMut<[i128]> + Send + Sync;
    /// A quire of zero.
    const NO_DIGITS: Self::Digits;

    /// Aligned at the sign bit of 64 bits.
    fn to_pattern(self) -> u64;
    /// The upper bits of an aligned pattern.
    fn from_pattern(pattern: u64) -> Self;
    /// The next integer, the smallest after the largest.
    fn next(self) -> Self;
    /// Two's complement; NaR stays.
    fn negated(self) -> Self;
}

macro_rules! widths {
    ($($Int:ident holds $digits:literal digits;)*) => {$(
        impl PositWidth for $Int {
            const BITS: u32 = $Int::BITS;
            const ZERO: Self = 0;
            const ONE: Self = 1 << ($Int::BITS - 2);
            const NAR: Self = $Int::MIN;
            const MAX: Self = $Int::MAX;
            const SMALLEST: Self = 1;
            type Digits = [i128; $digits];
            const NO_DIGITS: Self::Digits = [0; $digits];

            #[inline(always)]
            fn to_pattern(self) -> u64 {
                (i64::from(self) as u64) << (64 - $Int::BITS)
            }
            #[inline(always)]
            fn from_pattern(pattern: u64) -> Self {
                (pattern >> (64 - $Int::BITS)) as Self
            }
            #[inline(always)]
            fn next(self) -> Self {
                self.wrapping_add(1)
            }
            #[inline(always)]
            fn negated(self) -> Self {
                self.wrapping_neg()
            }
        }
    )*};
}

// The largest product of two posits is 2^(16 BITS - 32) quire units: digit `(16 BITS - 32) / 32` is the last
// one where a product begins. Products of 64-bit posits take two digits more.
widths! {
    i8 holds 4 digits;
    i16 holds 8 digits;
    i32 holds 16 digits;
    i64 holds 34 digits;
}
