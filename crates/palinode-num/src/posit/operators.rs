//! Operators and comparisons of posits, with posits and with `f64`s.
//!
//! An `f64` beside a posit is data: it is rounded to the posit's width first, as a literal would be. So
//! `x == 0.1` holds for the posit nearest to 0.1, and derivative numbers over posits decide as the posits
//! themselves do.
//!
//! Order: by the standard, a total one. NaR equals itself and is below every number. An `f64` that is
//! infinite or NaN has no posit, and is compared as floats are: infinity is above every number, minus
//! infinity below, and NaN is unordered, as NaR is beside each of the three.
//!
//! An iterator's `sum` rounds after each term; a [`Quire`](crate::Quire) rounds once.

use super::arithmetic::{Term, product, quotient, remainder, sum};
use super::{Posit, PositWidth};
use core::ops::{Add, Div, Mul, Neg, Rem, Sub};

impl<W: PositWidth> Neg for Posit<W> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self(self.0.negated())
    }
}

impl<W: PositWidth> Add for Posit<W> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let (Some(a), Some(b)) = (self.unpack(), other.unpack()) else {
            // At least one is zero or NaR.
            return if self.is_nar() || other.is_zero() { self } else { other };
        };
        Self::nearest_or_zero(sum(a.into(), b.into()))
    }
}

impl<W: PositWidth> Sub for Posit<W> {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl<W: PositWidth> Mul for Posit<W> {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let (Some(a), Some(b)) = (self.unpack(), other.unpack()) else {
            return if self.is_nar() || other.is_nar() { Self::NAR } else { Self::ZERO };
        };
        Self::nearest_or_zero(product(a, b).unpacked())
    }
}

impl<W: PositWidth> Div for Posit<W> {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let (Some(a), Some(b)) = (self.unpack(), other.unpack()) else {
            let undefined = self.is_nar() || other.is_nar() || other.is_zero();
            return if undefined { Self::NAR } else { Self::ZERO };
        };
        Self::nearest(quotient(a, b, W::BITS <= 32))
    }
}

impl<W: PositWidth> Rem for Posit<W> {
    type Output = Self;
    /// The remainder of the truncated division, exact before its rounding; `x % 0` is NaR.
    fn rem(self, other: Self) -> Self {
        let (Some(a), Some(b)) = (self.unpack(), other.unpack()) else {
            let undefined = self.is_nar() || other.is_nar() || other.is_zero();
            return if undefined { Self::NAR } else { Self::ZERO };
        };
        Self::nearest_or_zero(remainder(a, b))
    }
}

impl<W: PositWidth> Posit<W> {
    /// The smaller of the two; a NaR is ignored.
    #[must_use]
    #[inline]
    pub fn min(self, other: Self) -> Self {
        if other.is_nar() || self < other && !self.is_nar() { self } else { other }
    }

    /// The larger of the two; a NaR is ignored.
    #[must_use]
    #[inline]
    pub fn max(self, other: Self) -> Self {
        // NaR is below everything.
        if self > other { self } else { other }
    }

    /// Held between `low` and `high`; NaR stays, and if `low > high`, `high` wins.
    #[must_use]
    #[inline]
    pub fn clamp(self, low: Self, high: Self) -> Self {
        if self.is_nar() { self } else { self.max(low).min(high) }
    }

    /// `self * factor + addend` with one rounding.
    ///
    /// ```
    /// use palinode_num::Posit16;
    ///
    /// let x = Posit16::from_f64(1.0 + 1.0 / 1024.0);
    /// assert_eq!((x * x - x * x).to_f64(), 0.0);
    /// // What the product lost in rounding, found by the fused operation.
    /// assert_eq!(x.fused_mul_add(x, -(x * x)).to_f64(), 2f64.powi(-20));
    /// ```
    #[must_use]
    pub fn fused_mul_add(self, factor: Self, addend: Self) -> Self {
        if self.is_nar() || factor.is_nar() || addend.is_nar() {
            return Self::NAR;
        }
        let (Some(a), Some(b)) = (self.unpack(), factor.unpack()) else { return addend };
        let term: Term = product(a, b);
        match addend.unpack() {
            None => Self::nearest_or_zero(term.unpacked()),
            Some(c) => Self::nearest_or_zero(sum(term, c.into())),
        }
    }
}

crate::operators::operators_with_f64!([W: PositWidth] Posit<W>);
