//! Hyperbolic functions, and `e^x - 1`.
//!
//! Method: `x = n ln 2 + r` with `|r| <= ln(2) / 2` (Cody and Waite), `e^r` and `e^-r` from the even and the
//! odd part of one series, with the rounding error of `r`. Sums begin with their large terms, whose errors
//! are kept, and `2^n` comes last: nothing cancels, and nothing overflows before the result does.

use super::constants::{COSH, LN_2_HIGH, LN_2_LOW, LOG2_E, SINH};
use super::double::{Double, EXPONENT_AT, ONE, ROUNDER, Word, power_of_two, rounded};
use super::pair::{Pair, polynomial, quotient, square};

/// `n ln 2 + r + rest`.
struct Reduced<D: Double> {
    /// `n`.
    n: D,
    /// A word with the low bits of `n`.
    word: D::Word,
    r: D,
    rest: D,
}

/// For a number from -746 to 712.
#[inline(always)]
fn reduce<D: Double>(x: D) -> Reduced<D> {
    let (n, word) = rounded(x * LOG2_E);
    let high = x - n * LN_2_HIGH;
    let low = n * LN_2_LOW;
    let r = high - low;
    Reduced { n, word, r, rest: (high - r) - low }
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
    /// Times `2^n`, which may be too large for one number, rounded once.
    #[inline(always)]
    fn scaled(&self, number: D) -> D {
        let (_, half) = rounded(self.n * 0.5);
        number * power_of_two::<D>(half) * power_of_two::<D>(self.word - half)
    }
    /// `2^-n`, or `2^-2n` if `doubled` is 1; above the limit, `n` counts as the limit.
    #[inline(always)]
    fn inverse_power(&self, doubled: u32, limit: f64) -> D {
        let n = self.n.at_most(limit);
        D::from_word(D::Word::of(ONE) - (n + ROUNDER).to_word().up(EXPONENT_AT + doubled))
    }
}

/// `2^n (e^r - 2^-n)`, where the subtraction may cancel all but the square of `r`.
#[inline(always)]
pub(super) fn exp_m1<D: Double>(x: D) -> D {
    let reduced = reduce(x.at_least(-40.0).at_most(710.0));
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
