//! The long form of a quire: its digits with room above them, where carries are moved, the range is checked
//! and values are read.
//!
//! Input -> output: the lazy digits of a quire in; settled digits, words or a number to round out.
//!
//! A unit here is finer than the standard's: `2^guard` of them make one. The significands of a product reach
//! that far below its scale; where they would be below the standard's unit their last bits are zero.

use crate::posit::Unpacked;

/// The weight of a digit is `2^(DIGIT_BITS * index)` units.
pub(super) const DIGIT_BITS: usize = 32;

/// How many products any quire holds, whatever they are.
pub(super) const PRODUCTS: u32 = (1 << 31) - 1;

/// The digits of the largest quire and room for `2^64` products above.
const LENGTH: usize = 34 + 6;

/// Where things are in the digits of a quire.
pub(super) struct Layout {
    /// Bits of fraction that a factor is taken with.
    fraction: usize,
    /// How many units finer than the standard's: two fractions, and two bits because a
    /// magnitude may come as 2 at a scale of one less.
    guard: usize,
    /// The position of a product of scale 0 is `point`, that of scale `s` is `point + s`.
    pub(super) point: i64,
    /// The magnitude of a value stays below `2^limit` units.
    limit: usize,
}

impl Layout {
    pub(super) const fn of(bits: u32) -> Self {
        let fraction = if bits <= 32 { 30 } else { 59 };
        let guard = 2 * fraction + 2;
        Self { fraction, guard, point: 8 * bits as i64 - 14, limit: 16 * bits as usize - 1 + guard }
    }
}

/// A value in digits: `0 <= digit < 2^32` after [`Long::carry`], but for the last, which has the sign.
pub(super) struct Long {
    digits: [i128; LENGTH],
}

impl Long {
    pub(super) fn of(digits: &[i128]) -> Self {
        let mut long = Self { digits: [0; LENGTH] };
        long.digits[..digits.len()].copy_from_slice(digits);
        long
    }

    pub(super) fn carry(&mut self) {
        for index in 0..LENGTH - 1 {
            let digit = self.digits[index];
            self.digits[index] = digit & ((1 << DIGIT_BITS) - 1);
            self.digits[index + 1] += digit >> DIGIT_BITS;
        }
    }

    /// Adds another value; both must have been carried.
    pub(super) fn add(&mut self, other: &Self, subtract: bool) {
        for (digit, &more) in self.digits.iter_mut().zip(&other.digits) {
            *digit += if subtract { -more } else { more };
        }
    }

    /// Adds `times` products.
    pub(super) fn add_product(
        &mut self,
        layout: &Layout,
        x: Unpacked,
        y: Unpacked,
        negative: bool,
        times: u64,
    ) {
        self.carry();
        // Significands of 31 or 60 bits, as in the fast path: their product is below 2^120.
        let shift = 63 - layout.fraction;
        let product = u128::from(x.significand >> shift) * u128::from(y.significand >> shift);
        let low = u128::from(product as u64) * u128::from(times);
        let high = (product >> 64) * u128::from(times) + (low >> 64);
        let position = (i64::from(x.scale + y.scale) + layout.point) as usize;
        let (first, shift) = (position / DIGIT_BITS, position % DIGIT_BITS);
        for (index, word) in [low as u64, high as u64, (high >> 64) as u64].into_iter().enumerate() {
            let term = i128::from(word) << shift;
            self.digits[first + 2 * index] += if negative { -term } else { term };
        }
    }

    fn is_negative(&self) -> bool {
        self.digits[LENGTH - 1] < 0
    }

    /// The magnitude of a carried value, all digits below `2^32`.
    fn magnitude(&self) -> [u32; LENGTH] {
        let mut carry = i128::from(self.is_negative());
        self.digits.map(|digit| {
            let digit = if self.is_negative() { !digit & ((1 << DIGIT_BITS) - 1) } else { digit } + carry;
            carry = digit >> DIGIT_BITS;
            digit as u32
        })
    }

    /// Moves carries; how many more products surely fit, or `None` if the range is left.
    pub(super) fn settle(&mut self, layout: &Layout) -> Option<u32> {
        self.carry();
        let magnitude = self.magnitude();
        let top_bit = (0..LENGTH)
            .rev()
            .find(|&index| magnitude[index] != 0)
            .map_or(0, |index| DIGIT_BITS * (index + 1) - magnitude[index].leading_zeros() as usize);
        if top_bit > layout.limit {
            return None;
        }
        // The largest product is 2^(limit - 31) units: count how many of them the magnitude has begun.
        let begun = bits_from(&magnitude, layout.limit - 31) as u32 + u32::from(top_bit > 0);
        Some(PRODUCTS.saturating_sub(begun))
    }

    /// Back into the digits of a quire: the last one takes what is above.
    pub(super) fn copy_to(&self, digits: &mut [i128]) {
        let last = digits.len() - 1;
        digits.copy_from_slice(&self.digits[..=last]);
        // At most 120 bits are left, sign included, as the value is within the range.
        let above = self.digits[last + 1..].iter().rev();
        digits[last] += above.fold(0, |above, &digit| (above << DIGIT_BITS) + digit) << DIGIT_BITS;
    }

    /// The number that a carried value is; `None` is zero.
    pub(super) fn unpacked(&self, layout: &Layout) -> Option<Unpacked> {
        let magnitude = self.magnitude();
        let top = magnitude.iter().rposition(|&digit| digit != 0)?;
        let begin = top.saturating_sub(3);
        let mantissa = magnitude[begin..=top].iter().rev().fold(0, |m, &digit| m << 32 | u128::from(digit));
        let more = magnitude[..begin].iter().any(|&digit| digit != 0);
        let unit = (DIGIT_BITS * begin) as i64 - 2 * layout.fraction as i64 - layout.point;
        Unpacked::from_wide(self.is_negative(), unit as i32 + 127, mantissa, more)
    }

    /// A two's complement number in the standard's units.
    pub(super) fn of_words(words: &[u64], layout: &Layout) -> Self {
        let mut long = Self { digits: [0; LENGTH] };
        let (first, shift) = (layout.guard / DIGIT_BITS, layout.guard % DIGIT_BITS);
        let last = words.len() - 1;
        for (index, &word) in words.iter().enumerate() {
            let word = if index == last { i128::from(word as i64) } else { i128::from(word) };
            long.digits[first + 2 * index] = word << shift;
        }
        long
    }

    /// A carried value in the standard's units, as a two's complement number.
    pub(super) fn words(&self, layout: &Layout, count: usize) -> Vec<u64> {
        let digits = self.digits.map(|digit| digit as u32);
        (0..count).map(|index| bits_from(&digits, layout.guard + 64 * index)).collect()
    }
}

/// 64 bits from a position on.
fn bits_from(digits: &[u32; LENGTH], position: usize) -> u64 {
    let (first, shift) = (position / DIGIT_BITS, position % DIGIT_BITS);
    let digit = |index: usize| u128::from(digits.get(index).copied().unwrap_or(0));
    let window = digit(first) | digit(first + 1) << 32 | digit(first + 2) << 64;
    (window >> shift) as u64
}
