//! [`ExactSum`]: the sum of floats without rounding.

use super::block::{self, BLOCK, LANES, Pace};
use super::digits::Digits;
use super::float::{Beyond, Parts, SUM_UNIT, round_to_f32, round_to_f64};
use crate::bytes::{self, SumBytesError};

/// From the smallest subnormal to 2^78 times the largest number.
const DIGITS: usize = 68;
/// What its bytes say it is.
const KIND: u8 = 1;

/// A sum of `f64`s and `f32`s that is rounded once, when it is read.
///
/// The result depends only on what was added, not on the order or the grouping, so partial sums of threads
/// can be merged as they come. 560 bytes.
///
/// ```
/// use palinode_num::ExactSum;
///
/// let mut sum = ExactSum::new();
/// for x in [1e100, 1.0, -1e100] {
///     sum.add(x);
/// }
/// assert_eq!(sum.to_f64(), 1.0);
///
/// let mut other: ExactSum = [0.1; 10].into_iter().collect();
/// assert_eq!(other.to_f64(), 1.0); // adding one by one gives 0.9999999999999999
/// other.merge(&sum);
/// assert_eq!(other.to_f64(), 2.0);
/// ```
///
/// # Infinities and NaN
/// If a NaN was added, or infinities of both signs, or a product of zero and infinity, the result is NaN.
/// Otherwise, if an infinity was added, it is that infinity. Otherwise all was finite and the result is the
/// float nearest to the real sum, even where partial sums lie far outside the range of `f64`; it is infinite
/// from half a unit above the largest number on. An exact zero is +0, as is the sum of nothing and of
/// negative zeros.
#[derive(Clone, Debug)]
pub struct ExactSum {
    digits: Digits<DIGITS>,
    beyond: Beyond,
}

impl ExactSum {
    /// The sum of nothing, 0.
    pub fn new() -> Self {
        Self { digits: Digits::ZERO, beyond: Beyond::default() }
    }

    /// Adds a number. An `f32` is added exactly by `add(x.into())`.
    #[inline(always)]
    pub fn add(&mut self, x: f64) {
        match Parts::of(x) {
            Some(Parts { integer, position, sign }) => self.digits.add(integer, position, sign),
            None => self.beyond.add(x),
        }
    }

    /// Adds all numbers of a slice; faster than one by one.
    pub fn add_slice(&mut self, terms: &[f64]) {
        let mut pace = Pace::default();
        for block in terms.chunks(BLOCK) {
            let (whole, rest) = block.split_at(block.len() / LANES * LANES);
            // A short block is hardly longer than its sixteen condensed numbers.
            match pace.attempt(whole.len() >= 8 * LANES, || block::condense(whole)) {
                Some(condensed) => condensed.as_flattened().iter().for_each(|&x| self.add(x)),
                None => self.add_each(whole),
            }
            rest.iter().for_each(|&x| self.add(x));
        }
    }

    /// Adds all numbers of a slice of `f32`s.
    pub fn add_f32_slice(&mut self, terms: &[f32]) {
        let mut wide = [0.0; BLOCK];
        for block in terms.chunks(BLOCK) {
            for (wide, &x) in wide.iter_mut().zip(block) {
                *wide = f64::from(x);
            }
            self.add_slice(&wide[..block.len()]);
        }
    }

    /// Adds all products of two slices of `f32`s, which `f64` holds exactly.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn add_f32_products(&mut self, a: &[f32], b: &[f32]) {
        assert_eq!(a.len(), b.len(), "the slices have {} and {} elements", a.len(), b.len());
        let mut wide = [0.0; BLOCK];
        for (a, b) in a.chunks(BLOCK).zip(b.chunks(BLOCK)) {
            for (wide, (&a, &b)) in wide.iter_mut().zip(a.iter().zip(b)) {
                *wide = f64::from(a) * f64::from(b);
            }
            self.add_slice(&wide[..a.len()]);
        }
    }

    #[inline(never)]
    fn add_each(&mut self, terms: &[f64]) {
        terms.iter().for_each(|&x| self.add(x));
    }

    /// Adds all that another sum holds.
    pub fn merge(&mut self, other: &Self) {
        self.digits.merge(&other.digits);
        self.beyond.merge(other.beyond);
    }

    /// Changes the sign of the sum so far.
    pub fn negate(&mut self) {
        self.digits.negate();
        self.beyond.negate();
    }

    /// The nearest `f64`, ties to even.
    pub fn to_f64(&self) -> f64 {
        round_to_f64(&self.digits, SUM_UNIT, self.beyond)
    }

    /// The nearest `f32`, rounded once.
    pub fn to_f32(&self) -> f32 {
        round_to_f32(&self.digits, SUM_UNIT, self.beyond)
    }

    /// The sum as 283 bytes, the same for every order and grouping in which it came about, on every platform.
    /// Equal sums have equal bytes.
    ///
    /// ```
    /// use palinode_num::ExactSum;
    ///
    /// let (mut first, second): (ExactSum, ExactSum) = ([1e100, 0.1].into_iter().collect(), [-1e100].into_iter().collect());
    /// let sent = first.to_bytes();
    /// let mut received = ExactSum::from_bytes(&sent)?;
    /// received.merge(&second);
    /// first.add(-1e100);
    /// assert_eq!(received.to_bytes(), first.to_bytes());
    /// assert!(ExactSum::from_bytes(&sent[1..]).is_err());
    /// # Ok::<(), palinode_num::SumBytesError>(())
    /// ```
    ///
    /// The format: a byte for its version (1), one for the kind of sum (1), one for what was added besides
    /// finite numbers (1 for infinity, 2 for minus infinity, 4 for NaN, added up); the sum in units of
    /// 2^-1074 as a two's complement integer of 276 bytes, lowest first; a CRC-32 of all this in 4 bytes,
    /// lowest first.
    pub fn to_bytes(&self) -> Vec<u8> {
        bytes::write(KIND, self.beyond.to_byte(), self.digits.to_bytes())
    }

    /// The sum that was written by [`to_bytes`](Self::to_bytes): it goes on as if it had never been bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SumBytesError> {
        let (beyond, integer) = bytes::read(KIND, Digits::<DIGITS>::BYTES, bytes)?;
        let digits = Digits::from_bytes(integer).ok_or(SumBytesError::Damaged)?;
        Ok(Self { digits, beyond: Beyond::from_byte(beyond) })
    }
}

impl Default for ExactSum {
    fn default() -> Self {
        Self::new()
    }
}

/// Equal if the real sums are, and infinities and NaN were met alike; so no rounding hides a difference.
impl PartialEq for ExactSum {
    fn eq(&self, other: &Self) -> bool {
        self.beyond == other.beyond && self.digits.settled() == other.digits.settled()
    }
}

impl Extend<f64> for ExactSum {
    fn extend<I: IntoIterator<Item = f64>>(&mut self, terms: I) {
        terms.into_iter().for_each(|x| self.add(x));
    }
}

impl FromIterator<f64> for ExactSum {
    fn from_iter<I: IntoIterator<Item = f64>>(terms: I) -> Self {
        let mut sum = Self::new();
        sum.extend(terms);
        sum
    }
}
