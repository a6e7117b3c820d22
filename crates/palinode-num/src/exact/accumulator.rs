//! [`ExactSum`] and [`ExactDot`]: sums of floats and of products of floats without rounding.

use super::block::{self, BLOCK, LANES, Pace};
use super::digits::Digits;
use super::float::{Beyond, Parts, UNIT, round_to_f32, round_to_f64};
use crate::bytes::{self, SumBytesError};
use core::fmt;

/// An exact sum of terms with one factor ([`ExactSum`]) or two ([`ExactDot`]), by how many digits hold it.
///
/// There are these two; another number of digits does not compile:
///
/// ```
/// use palinode_num::Exact;
///
/// assert_eq!(Exact::<68>::new(), Exact::<68>::default());
/// assert_eq!(Exact::<134>::from_iter([1e300]).to_f64(), 1e300);
/// assert!(Exact::<68>::from_bytes(&[]).is_err());
/// ```
///
/// ```compile_fail
/// palinode_num::Exact::<5>::new();
/// ```
///
/// ```compile_fail
/// palinode_num::Exact::<5>::default();
/// ```
///
/// ```compile_fail
/// palinode_num::Exact::<5>::from_iter([1e300]);
/// ```
///
/// ```compile_fail
/// let _ = palinode_num::Exact::<5>::from_bytes(&[]);
/// ```
#[derive(Clone)]
pub struct Exact<const DIGITS: usize> {
    digits: Digits<DIGITS>,
    beyond: Beyond,
}

/// A sum of `f64`s and `f32`s that is rounded once, when it is read.
///
/// The result depends only on what was added, not on the order or the grouping, so partial sums of threads
/// can be merged as they come. 560 bytes.
///
/// ```
/// use palinode_num::ExactSum;
///
/// let mut sum = ExactSum::new();
/// for x in [1.0, 1e100, -1e100] {
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
pub type ExactSum = Exact<SUM_DIGITS>;

/// A sum of products of `f64`s that is rounded once, when it is read.
///
/// Products are exact, also where they underflow or overflow: factors are multiplied as integers. The result
/// does not depend on order or grouping. 1088 bytes. (Products of `f32`s fit [`ExactSum`].)
///
/// ```
/// use palinode_num::ExactDot;
///
/// let mut dot = ExactDot::new();
/// dot.add_product(1e200, 1e200);
/// dot.add_product(1e-200, 1e-200); // 1e-400 is no f64
/// dot.add_product(-1e200, 1e200);
/// dot.add_product(1e-200, -1e-200);
/// dot.add(0.5);
/// assert_eq!(dot.to_f64(), 0.5);
/// ```
///
/// Infinities, NaN and zeros follow [`ExactSum`](ExactSum#infinities-and-nan).
pub type ExactDot = Exact<DOT_DIGITS>;

/// From the smallest subnormal to 2^78 times the largest number.
const SUM_DIGITS: usize = 68;
/// From the square of the smallest subnormal to 2^92 times the square of the largest number.
const DOT_DIGITS: usize = 134;

impl<const DIGITS: usize> Exact<DIGITS> {
    /// Factors of a term; so say its bytes what it is.
    const FACTORS: i32 = match DIGITS {
        SUM_DIGITS => 1,
        DOT_DIGITS => 2,
        _ => panic!("an exact sum is an `ExactSum` or an `ExactDot`"),
    };
    /// What a digit's last bit weighs, as a power of two.
    const UNIT: i32 = Self::FACTORS * UNIT;
    /// Where the unit of a number lies among the units of terms.
    const NUMBER: usize = (UNIT - Self::UNIT) as usize;

    /// The sum of nothing, 0.
    pub fn new() -> Self {
        const { assert!(Self::FACTORS > 0) };
        Self { digits: Digits::ZERO, beyond: Beyond::default() }
    }

    /// Adds a number. An `f32` is added exactly by `add(x.into())`.
    #[inline(always)]
    pub fn add(&mut self, x: f64) {
        match Parts::of(x) {
            Some(Parts { integer, position, sign }) => {
                self.digits.add(integer, position + Self::NUMBER, sign);
            }
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
        round_to_f64(&self.digits, Self::UNIT, self.beyond)
    }

    /// The nearest `f32`, rounded once.
    pub fn to_f32(&self) -> f32 {
        round_to_f32(&self.digits, Self::UNIT, self.beyond)
    }

    /// The sum as 283 bytes (of an [`ExactDot`] 547), the same for every order and grouping in which it came
    /// about, on every platform. Equal sums have equal bytes.
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
    /// The format: a byte for its version (1), one for the kind of sum (1, of products 2), one for what was
    /// added besides finite numbers (1 for infinity, 2 for minus infinity, 4 for NaN, added up); the sum in
    /// units of 2^-1074 (2^-2148) as a two's complement integer of 276 (540) bytes, lowest first; a CRC-32 of
    /// all this in 4 bytes, lowest first.
    pub fn to_bytes(&self) -> Vec<u8> {
        bytes::write(Self::FACTORS as u8, self.beyond.to_byte(), self.digits.to_bytes())
    }

    /// The sum that was written by [`to_bytes`](Self::to_bytes): it goes on as if it had never been bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SumBytesError> {
        let (beyond, integer) = bytes::read(Self::FACTORS as u8, Digits::<DIGITS>::BYTES, bytes)?;
        let digits = Digits::from_bytes(integer).ok_or(SumBytesError::Damaged)?;
        Ok(Self { digits, beyond: Beyond::from_byte(beyond) })
    }
}

impl ExactSum {
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
}

impl ExactDot {
    /// Adds a product.
    #[inline(always)]
    pub fn add_product(&mut self, a: f64, b: f64) {
        match (Parts::of(a), Parts::of(b)) {
            (Some(x), Some(y)) => {
                let product = u128::from(x.integer) * u128::from(y.integer);
                self.digits.add_wide(product, x.position + y.position, x.sign ^ y.sign);
            }
            (Some(_), None) | (None, Some(_)) | (None, None) => self.beyond.add(a * b),
        }
    }

    /// Adds all products of two slices; faster than one by one.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn add_products(&mut self, a: &[f64], b: &[f64]) {
        assert_eq!(a.len(), b.len(), "the slices have {} and {} elements", a.len(), b.len());
        let mut pace = Pace::default();
        for (a, b) in a.chunks(BLOCK).zip(b.chunks(BLOCK)) {
            let whole = a.len() / LANES * LANES;
            let ((a, a_rest), (b, b_rest)) = (a.split_at(whole), b.split_at(whole));
            // A short block is hardly longer than its 32 condensed numbers.
            match pace.attempt(whole >= 8 * LANES, || block::condense_products(a, b)) {
                Some(condensed) => {
                    condensed.as_flattened().as_flattened().iter().for_each(|&x| self.add(x));
                }
                None => self.add_each_product(a, b),
            }
            self.add_each_product(a_rest, b_rest);
        }
    }

    #[inline(never)]
    fn add_each_product(&mut self, a: &[f64], b: &[f64]) {
        a.iter().zip(b).for_each(|(&a, &b)| self.add_product(a, b));
    }
}

impl<const DIGITS: usize> fmt::Debug for Exact<DIGITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if Self::FACTORS == 1 { "ExactSum" } else { "ExactDot" };
        f.debug_struct(name).field("digits", &self.digits).field("beyond", &self.beyond).finish()
    }
}

impl<const DIGITS: usize> Default for Exact<DIGITS> {
    fn default() -> Self {
        Self::new()
    }
}

/// Equal if the real sums are, and infinities and NaN were met alike; so no rounding hides a difference.
impl<const DIGITS: usize> PartialEq for Exact<DIGITS> {
    fn eq(&self, other: &Self) -> bool {
        self.beyond == other.beyond && self.digits.settled() == other.digits.settled()
    }
}

impl<const DIGITS: usize> Extend<f64> for Exact<DIGITS> {
    fn extend<I: IntoIterator<Item = f64>>(&mut self, terms: I) {
        terms.into_iter().for_each(|x| self.add(x));
    }
}

impl<const DIGITS: usize> FromIterator<f64> for Exact<DIGITS> {
    fn from_iter<I: IntoIterator<Item = f64>>(terms: I) -> Self {
        let mut sum = Self::new();
        sum.extend(terms);
        sum
    }
}
