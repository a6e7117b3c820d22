//! [`ExactDot`]: the sum of products of floats without rounding.

use super::block::{self, BLOCK, LANES, Pace};
use super::digits::Digits;
use super::float::{Beyond, DOT_UNIT, Parts, SUM_UNIT, round_to_f32, round_to_f64};
use crate::bytes::{self, SumBytesError};

/// From the square of the smallest subnormal to 2^92 times the square of the largest number.
const DIGITS: usize = 134;
/// What its bytes say it is.
const KIND: u8 = 2;
/// Where the unit of a number lies among the units of products.
const NUMBER: usize = (SUM_UNIT - DOT_UNIT) as usize;

/// A sum of products of `f64`s that is rounded once, when it is read.
///
/// Products are exact, also where they underflow or overflow: factors are multiplied as integers. The result
/// does not depend on order or grouping. 1088 bytes. (Products of `f32`s fit [`ExactSum`](crate::ExactSum).)
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
/// Infinities, NaN and zeros follow [`ExactSum`](crate::ExactSum#infinities-and-nan).
#[derive(Clone, Debug)]
pub struct ExactDot {
    digits: Digits<DIGITS>,
    beyond: Beyond,
}

impl ExactDot {
    /// The sum of nothing, 0.
    pub fn new() -> Self {
        Self { digits: Digits::ZERO, beyond: Beyond::default() }
    }

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

    /// Adds a number.
    #[inline(always)]
    pub fn add(&mut self, x: f64) {
        match Parts::of(x) {
            Some(Parts { integer, position, sign }) => self.digits.add(integer, position + NUMBER, sign),
            None => self.beyond.add(x),
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
                None => self.add_each(a, b),
            }
            self.add_each(a_rest, b_rest);
        }
    }

    /// Adds all numbers of a slice.
    pub fn add_slice(&mut self, terms: &[f64]) {
        let mut pace = Pace::default();
        for block in terms.chunks(BLOCK) {
            let (whole, rest) = block.split_at(block.len() / LANES * LANES);
            match pace.attempt(whole.len() >= 8 * LANES, || block::condense(whole)) {
                Some(condensed) => condensed.as_flattened().iter().for_each(|&x| self.add(x)),
                None => whole.iter().for_each(|&x| self.add(x)),
            }
            rest.iter().for_each(|&x| self.add(x));
        }
    }

    #[inline(never)]
    fn add_each(&mut self, a: &[f64], b: &[f64]) {
        a.iter().zip(b).for_each(|(&a, &b)| self.add_product(a, b));
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
        round_to_f64(&self.digits, DOT_UNIT, self.beyond)
    }

    /// The nearest `f32`, rounded once.
    pub fn to_f32(&self) -> f32 {
        round_to_f32(&self.digits, DOT_UNIT, self.beyond)
    }

    /// The sum as 547 bytes, the same for every order and grouping in which it came about, on every platform.
    /// Equal sums have equal bytes.
    ///
    /// The format is that of [`ExactSum::to_bytes`](crate::ExactSum::to_bytes), with 2 for the kind and an
    /// integer of 540 bytes in units of 2^-2148.
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

impl Default for ExactDot {
    fn default() -> Self {
        Self::new()
    }
}

/// Equal if the real sums are, and infinities and NaN were met alike; so no rounding hides a difference.
impl PartialEq for ExactDot {
    fn eq(&self, other: &Self) -> bool {
        self.beyond == other.beyond && self.digits.settled() == other.digits.settled()
    }
}
