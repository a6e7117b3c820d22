//! Exponential functions.
//!
//! Method: `x = n ln 2 + r` with `|r| <= ln(2) / 2` (Cody and Waite), `e^r` from the even and the odd part of
//! its series, `2^n` by the exponent. What rounding leaves over of `r` and of `1 + r` is added at the end, so
//! that the error is little more than that of one rounding. Every function that is made of exponentials shares
//! this text, and is written in such a way that nothing cancels and nothing overflows before the result does.

use super::constants::{COSH, LN_2_HALF, LN_2_HIGH, LN_2_LOW, LN_2_REST, LOG2_E, SINH};
use super::double::{Double, EXPONENT_AT, ONE, ROUNDER, Word, power_of_two, rounded};
use super::pair::{Pair, polynomial, quotient, square, times_constant};

/// Beyond these, `e^x` is 0 or infinite.
pub(super) const LEAST: f64 = -746.0;
pub(super) const LARGEST: f64 = 710.0;

/// `n ln 2 + r + rest`.
pub(super) struct Reduced<D: Double> {
    /// `n`.
    pub(super) n: D,
    /// A word with the low bits of `n`.
    pub(super) word: D::Word,
    pub(super) r: D,
    pub(super) rest: D,
}

impl<D: Double> Reduced<D> {
    /// `r + rest = high - low`.
    #[inline(always)]
    fn new((n, word): (D, D::Word), high: D, low: D) -> Self {
        let r = high - low;
        Self { n, word, r, rest: (high - r) - low }
    }
}

/// Of a number from [`LEAST`] to [`LARGEST`].
#[inline(always)]
pub(super) fn reduce<D: Double>(x: D) -> Reduced<D> {
    let (n, word) = rounded(x * LOG2_E);
    Reduced::new((n, word), x - n * LN_2_HIGH, n * LN_2_LOW)
}

/// Of a pair from [`LEAST`] to [`LARGEST`], tidy or not.
#[inline(always)]
pub(super) fn reduce_pair<D: Double>(x: Pair<D>) -> Reduced<D> {
    let (n, word) = rounded(x.value() * LOG2_E);
    Reduced::new((n, word), x.hi - n * LN_2_HIGH, n * LN_2_LOW - x.lo)
}

/// `cosh(r) - 1 - r^2 / 2` and `sinh(r) - r`.
#[inline(always)]
fn even_and_odd<D: Double>(r: D, z: D) -> (D, D) {
    (z * z * polynomial(z, &COSH), r * z * polynomial(z, &SINH))
}

/// `cosh(r) - 1` and `sinh(r) - r`.
#[inline(always)]
fn whole_even_and_odd<D: Double>(r: D) -> (D, D) {
    let z = r * r;
    let (even, odd) = even_and_odd(r, z);
    (z * 0.5 + even, odd)
}

impl<D: Double> Reduced<D> {
    /// `e^(r + rest)`. Not tidy.
    #[inline(always)]
    pub(super) fn fraction(&self) -> Pair<D> {
        let (even, odd) = whole_even_and_odd(self.r);
        let one_and_r = Pair::quick_sum(D::of(1.0), self.r);
        one_and_r.plus((even + odd) + self.rest * one_and_r.hi)
    }
    /// Two powers of two whose product is `2^n`, which may be too large or too small for one.
    #[inline(always)]
    pub(super) fn scales(&self) -> (D, D) {
        let (_, half) = rounded(self.n * 0.5);
        (power_of_two(half), power_of_two(self.word - half))
    }
    /// Times `2^n`, rounded once.
    #[inline(always)]
    pub(super) fn scaled(&self, number: D) -> D {
        let (one, other) = self.scales();
        number * one * other
    }
    /// Times `2^n`, where that is a normal number, or where `n` is 0.
    #[inline(always)]
    pub(super) fn moved(&self, number: D) -> D {
        D::from_word(number.to_word() + self.word.up(EXPONENT_AT))
    }
    /// `2^(times n)`, or what stands for it where it is below `2^-limit`: something that small.
    #[inline(always)]
    fn inverse_power(&self, doubled: u32, limit: f64) -> D {
        let n = self.n.at_most(limit);
        D::from_word(D::Word::of(ONE) - (n + ROUNDER).to_word().up(EXPONENT_AT + doubled))
    }
}

#[inline(always)]
pub(super) fn exp<D: Double>(x: D) -> D {
    let reduced = reduce(x.at_least(LEAST).at_most(LARGEST));
    reduced.scaled(reduced.fraction().value())
}

#[inline(always)]
pub(super) fn exp2<D: Double>(x: D) -> D {
    let x = x.at_least(-1080.0).at_most(1025.0);
    let (n, word) = rounded(x);
    let product = times_constant(x - n, LN_2_HALF, LN_2_REST).tidy();
    let reduced = Reduced { n, word, r: product.hi, rest: product.lo };
    reduced.scaled(reduced.fraction().value())
}

/// `2^n (e^r - 2^-n)`, where what is below may cancel all but the square of `r`.
#[inline(always)]
pub(super) fn exp_m1<D: Double>(x: D) -> D {
    let reduced = reduce(x.at_least(-40.0).at_most(LARGEST));
    let squared = square(reduced.r);
    let (even, odd) = even_and_odd(reduced.r, squared.value());
    let one_less = Pair::sum(D::of(1.0), -reduced.inverse_power(0, 200.0));
    let and_r = Pair::quick_sum(one_less.hi, reduced.r);
    let and_half = Pair::quick_sum(and_r.hi, squared.hi * 0.5);
    let small = (even + odd) + (reduced.rest * (reduced.r + 1.0) + squared.lo * 0.5);
    let small = small + (one_less.lo + and_r.lo);
    reduced.scaled(and_half.plus(small).value()).with_sign(x.sign())
}

/// What hyperbolic functions of `|x|` are made of: with `w = 2^-2n`, `2^(1 - n)` times the sine is
/// `e^r - w e^-r`, and the cosine is that with a plus.
struct Hyperbolic<D: Double> {
    reduced: Reduced<D>,
    even: D,
    odd: D,
    w: D,
}

#[inline(always)]
fn hyperbolic<D: Double>(x: D) -> Hyperbolic<D> {
    let reduced = reduce(x.abs().at_most(712.0));
    let (even, odd) = whole_even_and_odd(reduced.r);
    let w = reduced.inverse_power(1, 100.0);
    Hyperbolic { even, odd: odd + reduced.rest, w, reduced }
}

impl<D: Double> Hyperbolic<D> {
    /// `(1 + s w) + (1 - s w) (r + odd) + (1 + s w) even`, times `2^(n - 1)`, where `s` is the sign of `w`.
    #[inline(always)]
    fn combined(&self, w: D) -> D {
        let Self { reduced, even, odd, .. } = self;
        let outer = Pair::quick_sum(D::of(1.0), w);
        let inner = D::of(1.0) - w;
        let line = Pair::quick_sum(reduced.r, -(reduced.r * w));
        let sum = Pair::quick_sum(outer.hi, line.hi);
        let curved = inner * *odd + outer.hi * (*even + reduced.rest * reduced.r);
        let small = sum.lo + (line.lo + outer.lo + curved);
        reduced.scaled((sum.hi + small) * 0.5)
    }
}

#[inline(always)]
pub(super) fn sinh<D: Double>(x: D) -> D {
    let parts = hyperbolic(x);
    parts.combined(-parts.w).with_sign(x.sign())
}

#[inline(always)]
pub(super) fn cosh<D: Double>(x: D) -> D {
    let parts = hyperbolic(x);
    parts.combined(parts.w)
}

/// `(e^r - w) / (e^r + w)` with `2|x| = n ln 2 + r` and `w = 2^-n`.
#[inline(always)]
pub(super) fn tanh<D: Double>(x: D) -> D {
    let size = x.abs();
    let reduced = reduce((size + size).at_most(44.0));
    let (even, odd) = whole_even_and_odd(reduced.r);
    let small = (even + odd) + reduced.rest * (reduced.r + 1.0);
    let w = reduced.inverse_power(0, 100.0);
    let with = |w: D| {
        let one = Pair::quick_sum(D::of(1.0), w);
        Pair::quick_sum(one.hi, reduced.r).plus(one.lo + small).tidy()
    };
    quotient(with(-w), with(w)).value().with_sign(x.sign())
}

/// `1 / (1 + e)` or `e / (1 + e)` with `e = e^-|x|`.
#[inline(always)]
pub(super) fn logistic<D: Double>(x: D) -> D {
    let reduced = reduce((-x.abs()).at_least(LEAST));
    let fraction = reduced.fraction().tidy();
    let (one, other) = reduced.scales();
    let e = fraction.times(one).times(other);
    let divisor = Pair::quick_sum(D::of(1.0), e.hi).plus(e.lo).tidy();
    let negative = x.less(D::of(0.0));
    let result = quotient(Pair::select(negative, fraction, Pair::of(D::of(1.0))), divisor).value();
    D::select(negative, result * one * other, result)
}
