//! How many numbers are added up: naive, compensated or exact, behind one trait and one choice.
//!
//! Input: terms or products, one by one, by slices, or as partial sums to merge. Output: a total.
//! [`Accumulate`] is for code that keeps sums of its own (a gradient's entries over a batch); [`Accumulator`]
//! is the choice as a value, with `sum`, `dot` and `matmul`.
//!
//! | | error of a sum of n terms | depends on the order | ns a term, naive = 1 |
//! |---|---|---|---|
//! | [`Naive`] | n u times the sum of sizes | yes | 1 |
//! | [`Compensated`] | u times the total, and (n u)^2 times the sum of sizes | yes | 2 |
//! | [`ExactSum`], [`ExactDot`] | half a unit in the last place of the total | no | about 1, products 3; over 512 binades 3 and 6 |
//!
//! (u is 2^-53 for `f64`.) Papers: Neumaier (1974) and Ogita, Rump and Oishi, "Accurate sum and dot product"
//! (2005), for the compensated ones.
//!
//! Known limits: a compensated sum that overflows on the way stays infinite.

use crate::error_free;
use crate::exact::{Exact, ExactDot, ExactSum};
use crate::products::{MatrixView, add_product};
use crate::scalar::{Accumulator, Scalar};
use core::fmt::Debug;

/// A sum under way.
pub trait Accumulate<T>: Clone + Debug + Default + Send + Sync {
    /// Adds a term.
    fn add(&mut self, term: T);
    /// Adds all that another sum holds.
    fn merge(&mut self, other: &Self);
    /// The sum so far.
    fn total(&self) -> T;
    /// Adds all terms of a slice.
    fn add_slice(&mut self, terms: &[T])
    where
        T: Copy,
    {
        terms.iter().for_each(|&term| self.add(term));
    }
}

/// A sum under way that takes products too.
pub trait AccumulateProducts<T>: Accumulate<T> {
    /// Adds a product.
    fn add_product(&mut self, a: T, b: T);
    /// Adds the products of two slices, which have one length.
    fn add_products(&mut self, a: &[T], b: &[T])
    where
        T: Copy,
    {
        a.iter().zip(b).for_each(|(&a, &b)| self.add_product(a, b));
    }
}

/// A number that can be added up in every way.
pub trait Summand: Scalar + Send + Sync {
    /// Its exact sum.
    type ExactSum: Accumulate<Self>;
    /// Its exact sum of products.
    type ExactDot: AccumulateProducts<Self>;
    /// A product and its rounding error.
    fn product_and_error(self, other: Self) -> (Self, Self);
}

/// One addition after the other. (Slices as a whole are added in the order of [`sums`](crate::sums), which a
/// sum that may be read at any time cannot follow.)
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Naive<T>(T);

impl<T: Scalar> Default for Naive<T> {
    fn default() -> Self {
        Naive(T::zero())
    }
}

impl<T: Scalar + Send + Sync> Accumulate<T> for Naive<T> {
    #[inline(always)]
    fn add(&mut self, term: T) {
        self.0 = self.0 + term;
    }
    fn merge(&mut self, other: &Self) {
        self.add(other.0);
    }
    fn total(&self) -> T {
        self.0
    }
}

impl<T: Scalar + Send + Sync> AccumulateProducts<T> for Naive<T> {
    #[inline(always)]
    fn add_product(&mut self, a: T, b: T) {
        self.add(a * b);
    }
}

/// Additions with their rounding errors summed beside them: as accurate as twice the precision, rounded at
/// the end.
///
/// ```
/// use palinode_num::{Accumulate, Compensated};
///
/// let mut sum = Compensated::default();
/// sum.add_slice(&[1e16, 1.0, 1.0, -1e16]);
/// assert_eq!(sum.total(), 2.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compensated<T> {
    sum: T,
    errors: T,
}

impl<T: Scalar> Default for Compensated<T> {
    fn default() -> Self {
        Compensated { sum: T::zero(), errors: T::zero() }
    }
}

impl<T: Scalar + Send + Sync> Accumulate<T> for Compensated<T> {
    #[inline(always)]
    fn add(&mut self, term: T) {
        let sum = self.sum + term;
        let term_used = sum - self.sum;
        let sum_used = sum - term_used;
        self.errors = self.errors + ((self.sum - sum_used) + (term - term_used));
        self.sum = sum;
    }
    fn merge(&mut self, other: &Self) {
        self.add(other.sum);
        self.errors = self.errors + other.errors;
    }
    fn total(&self) -> T {
        // The errors of an infinite sum are NaN and mean nothing.
        T::select(self.errors.equal(self.errors), self.sum + self.errors, self.sum)
    }
}

impl<T: Summand> AccumulateProducts<T> for Compensated<T> {
    #[inline(always)]
    fn add_product(&mut self, a: T, b: T) {
        let (product, error) = a.product_and_error(b);
        self.add(product);
        self.errors = self.errors + error;
    }
}

impl<const DIGITS: usize> Accumulate<f64> for Exact<DIGITS> {
    #[inline(always)]
    fn add(&mut self, term: f64) {
        Exact::add(self, term);
    }
    fn merge(&mut self, other: &Self) {
        Exact::merge(self, other);
    }
    fn total(&self) -> f64 {
        self.to_f64()
    }
    fn add_slice(&mut self, terms: &[f64]) {
        Exact::add_slice(self, terms);
    }
}

impl AccumulateProducts<f64> for ExactDot {
    #[inline(always)]
    fn add_product(&mut self, a: f64, b: f64) {
        ExactDot::add_product(self, a, b);
    }
    fn add_products(&mut self, a: &[f64], b: &[f64]) {
        ExactDot::add_products(self, a, b);
    }
}

impl Accumulate<f32> for ExactSum {
    #[inline(always)]
    fn add(&mut self, term: f32) {
        ExactSum::add(self, f64::from(term));
    }
    fn merge(&mut self, other: &Self) {
        ExactSum::merge(self, other);
    }
    fn total(&self) -> f32 {
        self.to_f32()
    }
    fn add_slice(&mut self, terms: &[f32]) {
        self.add_f32_slice(terms);
    }
}

impl AccumulateProducts<f32> for ExactSum {
    #[inline(always)]
    fn add_product(&mut self, a: f32, b: f32) {
        ExactSum::add(self, f64::from(a) * f64::from(b));
    }
    fn add_products(&mut self, a: &[f32], b: &[f32]) {
        self.add_f32_products(a, b);
    }
}

impl Summand for f64 {
    type ExactSum = ExactSum;
    type ExactDot = ExactDot;
    #[inline(always)]
    fn product_and_error(self, other: Self) -> (Self, Self) {
        error_free::two_product_of_any(self, other)
    }
}

impl Summand for f32 {
    type ExactSum = ExactSum;
    type ExactDot = ExactSum;
    #[inline(always)]
    fn product_and_error(self, other: Self) -> (Self, Self) {
        let (exact, product) = (f64::from(self) * f64::from(other), self * other);
        (product, (exact - f64::from(product)) as f32)
    }
}

/// So many terms are gathered at a time, on the stack: as many as an exact sum takes at once.
const SOME: usize = 512;

impl Accumulator {
    /// The sum of a slice.
    pub fn sum<T: Summand>(self, terms: &[T]) -> T {
        fn sum<T: Copy, A: Accumulate<T>>(terms: &[T]) -> T {
            let mut sum = A::default();
            sum.add_slice(terms);
            sum.total()
        }
        match self {
            Accumulator::Naive => T::sum_of(terms),
            Accumulator::Compensated => sum::<T, Compensated<T>>(terms),
            Accumulator::Exact => sum::<T, T::ExactSum>(terms),
        }
    }

    /// The dot product of two slices.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn dot<T: Summand>(self, a: &[T], b: &[T]) -> T {
        assert_eq!(a.len(), b.len(), "dot: the slices have {} and {} elements", a.len(), b.len());
        match self {
            Accumulator::Naive => T::dot(a, b),
            Accumulator::Compensated => dot::<T, Compensated<T>>(a, b),
            Accumulator::Exact => dot::<T, T::ExactDot>(a, b),
        }
    }

    /// The sum of the terms at the places 0 to `count`.
    pub(crate) fn sum_over<T: Summand>(self, count: usize, term: impl Fn(usize) -> T) -> T {
        fn sum<T: Summand, A: Accumulate<T>>(count: usize, term: impl Fn(usize) -> T) -> T {
            let (mut sum, mut some) = (A::default(), [T::zero(); SOME]);
            for start in (0..count).step_by(SOME) {
                let some = &mut some[..SOME.min(count - start)];
                some.iter_mut().zip(start..).for_each(|(x, place)| *x = term(place));
                sum.add_slice(some);
            }
            sum.total()
        }
        match self {
            Accumulator::Naive => T::sum_over(count, term),
            Accumulator::Compensated => sum::<T, Compensated<T>>(count, term),
            Accumulator::Exact => sum::<T, T::ExactSum>(count, term),
        }
    }

    /// The dot product of the pairs at the places 0 to `count`.
    pub(crate) fn dot_over<T: Summand>(self, count: usize, pair: impl Fn(usize) -> (T, T)) -> T {
        fn dot<T: Summand, A: AccumulateProducts<T>>(count: usize, pair: impl Fn(usize) -> (T, T)) -> T {
            let (mut sum, mut some, mut others) = (A::default(), [T::zero(); SOME], [T::zero(); SOME]);
            for start in (0..count).step_by(SOME) {
                let end = SOME.min(count - start);
                for (place, (a, b)) in some[..end].iter_mut().zip(&mut others).enumerate() {
                    (*a, *b) = pair(start + place);
                }
                sum.add_products(&some[..end], &others[..end]);
            }
            sum.total()
        }
        match self {
            Accumulator::Naive => T::dot_over(count, pair),
            Accumulator::Compensated => dot::<T, Compensated<T>>(count, pair),
            Accumulator::Exact => dot::<T, T::ExactDot>(count, pair),
        }
    }

    /// The product of two matrices, stored row by row: `a` is `rows` by `inner`, `b` is `inner` by `columns`.
    /// Every entry is a [`dot`](Self::dot), or a naive one a chain of products ([`sums`](crate::sums)).
    ///
    /// ```
    /// use palinode_num::Accumulator;
    ///
    /// let (a, b) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0]);
    /// assert_eq!(Accumulator::Exact.matmul(&a, &b, 2, 2, 1), [17.0, 39.0]);
    /// ```
    ///
    /// # Panics
    /// If a slice has not as many elements as its matrix.
    pub fn matmul<T: Summand>(self, a: &[T], b: &[T], rows: usize, inner: usize, columns: usize) -> Vec<T> {
        assert_eq!(a.len(), rows * inner, "matmul: {} elements for {rows} by {inner}", a.len());
        assert_eq!(b.len(), inner * columns, "matmul: {} elements for {inner} by {columns}", b.len());
        let mut product = vec![T::zero(); rows * columns];
        if self == Accumulator::Naive {
            let (a, b) = (MatrixView::by_rows(a, rows, inner), MatrixView::by_rows(b, inner, columns));
            add_product(&mut product, a, b, false);
            return product;
        }
        let mut column = vec![T::zero(); inner];
        for j in 0..columns {
            for (i, entry) in column.iter_mut().enumerate() {
                *entry = b[i * columns + j];
            }
            for i in 0..rows {
                product[i * columns + j] = self.dot(&a[i * inner..(i + 1) * inner], &column);
            }
        }
        product
    }
}

fn dot<T: Copy, A: AccumulateProducts<T>>(a: &[T], b: &[T]) -> T {
    let mut sum = A::default();
    sum.add_products(a, b);
    sum.total()
}
