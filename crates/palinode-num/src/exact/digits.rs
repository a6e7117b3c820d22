//! A long fixed-point number that is cheap to add to.
//!
//! Input -> output: signed integers at bit positions in, the nearest float out. Digit `i` weighs 2^(32 i)
//! units and lies in an `i64`, so that about a thousand additions fit before carries must move (Neal, "Fast
//! exact summation using small and large superaccumulators", 2015).
//!
//! Invariants: `room` additions of less than 2^53 a digit still fit every digit. After `carry` every digit
//! but the last lies in `0..2^32`, and the last has the sign: equal numbers then have equal digits.

/// Additions between two carries: 2^10 of at most 2^52 + 2^32, over a digit below 2^32, stay below 2^63.
const ROOM: u32 = 1 << 10;
const LOW: i64 = 0xffff_ffff;

/// A fixed-point number of `N` digits of 32 bits.
#[derive(Clone, Debug)]
pub(super) struct Digits<const N: usize> {
    digits: [i64; N],
    room: u32,
}

/// A binary floating-point format, as rounding sees it.
pub(super) struct Format {
    /// Bits of the significand, the hidden one included.
    pub(super) precision: u32,
    /// The exponent of the smallest subnormal.
    pub(super) lowest: i32,
    /// The bits of infinity.
    pub(super) infinity: u64,
}

impl<const N: usize> Digits<N> {
    pub(super) const ZERO: Self = Self { digits: [0; N], room: ROOM };

    /// Adds `integer * 2^position`, negated if `sign` is -1 (else it is 0). `integer` is below 2^53.
    #[inline(always)]
    pub(super) fn add(&mut self, integer: u64, position: usize, sign: i64) {
        if self.room == 0 {
            self.carry();
        }
        self.room -= 1;
        let (digit, shift) = (position / 32, position as u32 % 32);
        let low = (integer << shift) as i64 & LOW;
        let high = (integer >> (32 - shift)) as i64;
        self.digits[digit] += (low ^ sign) - sign;
        self.digits[digit + 1] += (high ^ sign) - sign;
    }

    /// [`add`](Self::add) of a product below 2^106: four digits, found by one test of the bounds.
    #[inline(always)]
    pub(super) fn add_wide(&mut self, product: u128, position: usize, sign: i64) {
        if self.room == 0 {
            self.carry();
        }
        self.room -= 1;
        let (digit, shift) = (position / 32, position as u32 % 32);
        let (low, high) = (product as u64, (product >> 64) as u64);
        let parts = [
            low << shift & LOW as u64,
            low >> (32 - shift) & LOW as u64,
            (low >> 32 >> (32 - shift) | high << shift) & LOW as u64,
            high >> (32 - shift),
        ];
        for (digit, part) in self.digits[digit..digit + 4].iter_mut().zip(parts) {
            *digit += (part as i64 ^ sign) - sign;
        }
    }

    /// Adds another number of the same units.
    pub(super) fn merge(&mut self, other: &Self) {
        // With carries moved, both have digits below 2^32, or a last digit that no sum of f64s fills.
        self.carry();
        let mut other = other.clone();
        other.carry();
        for (digit, more) in self.digits.iter_mut().zip(other.digits) {
            *digit += more;
        }
        self.room -= 1;
    }

    /// Changes the sign.
    pub(super) fn negate(&mut self) {
        self.carry();
        self.digits.iter_mut().for_each(|digit| *digit = -*digit);
        self.carry();
    }

    #[cold]
    #[inline(never)]
    fn carry(&mut self) {
        let mut carry = 0;
        let (last, digits) = self.digits.split_last_mut().expect("there are digits");
        for digit in digits {
            let sum = *digit + carry;
            *digit = sum & LOW;
            carry = sum >> 32;
        }
        *last += carry;
        self.room = ROOM;
    }

    /// The same number with carries moved: equal for equal numbers.
    pub(super) fn settled(&self) -> [i64; N] {
        let mut settled = self.clone();
        settled.carry();
        settled.digits
    }

    /// How many bytes [`to_bytes`](Self::to_bytes) gives: the last digit has two words.
    pub(super) const BYTES: usize = 4 * (N + 1);

    /// The number in two's complement, lowest byte first: equal for equal numbers.
    pub(super) fn to_bytes(&self) -> impl Iterator<Item = u8> {
        let settled = self.settled();
        let words = settled.into_iter().map(|digit| digit as u32);
        words.chain([(settled[N - 1] >> 32) as u32]).flat_map(u32::to_le_bytes)
    }

    /// The number of these bytes, as many as [`BYTES`](Self::BYTES); `None` if no sum of as many terms as
    /// there may be is so large.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut words = bytes.as_chunks().0.iter().map(|&word| i64::from(u32::from_le_bytes(word)));
        let mut digits = Self::ZERO;
        digits.digits.iter_mut().zip(words.clone()).for_each(|(digit, word)| *digit = word);
        digits.digits[N - 1] |= words.next_back()? << 32;
        let is_possible = i32::try_from(digits.digits[N - 1]).is_ok();
        is_possible.then_some(digits)
    }

    /// The bits of the nearest number of a format, ties to even, where a unit of this number is 2^`unit`.
    pub(super) fn round(&self, unit: i32, format: &Format) -> (bool, u64) {
        let mut magnitude = self.clone();
        magnitude.carry();
        let negative = magnitude.digits[N - 1] < 0;
        if negative {
            magnitude.negate();
        }
        (negative, magnitude.round_magnitude((format.lowest - unit) as usize, format))
    }

    /// [`round`](Self::round) of a settled number that is not negative; the smallest subnormal is at bit
    /// `lowest`.
    fn round_magnitude(&self, lowest: usize, format: &Format) -> u64 {
        let Some(top) = self.digits.iter().rposition(|&digit| digit != 0) else { return 0 };
        let length = 32 * top + (64 - self.digits[top].leading_zeros() as usize);
        // Where the last bit of the result lies: never below the smallest subnormal.
        let last = length.saturating_sub(format.precision as usize).max(lowest);
        let exponent = (last - lowest) as u64;
        if exponent >= format.infinity >> (format.precision - 1) {
            return format.infinity;
        }
        let kept = self.bits_from(last);
        let up = last > 0 && {
            let half = self.bits_from(last - 1) & 1 == 1;
            half && (kept & 1 == 1 || self.any_below(last - 1))
        };
        // A significand that rounds up to a power of two carries into the exponent, and from the largest
        // number to infinity.
        ((exponent << (format.precision - 1)) + kept + u64::from(up)).min(format.infinity)
    }

    /// The bits from `position` up; at most 64 of them are set.
    fn bits_from(&self, position: usize) -> u64 {
        let (digit, shift) = (position / 32, position % 32);
        let at = |i: usize| self.digits.get(i).map_or(0, |&digit| digit as u128);
        ((at(digit) | at(digit + 1) << 32 | at(digit + 2) << 64) >> shift) as u64
    }

    /// Whether any bit below `position` is set.
    fn any_below(&self, position: usize) -> bool {
        let (digit, shift) = (position / 32, position % 32);
        self.digits[..digit].iter().any(|&digit| digit != 0) || self.digits[digit] & ((1 << shift) - 1) != 0
    }
}
