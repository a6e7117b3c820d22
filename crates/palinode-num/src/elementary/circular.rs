//! Sine, cosine and tangent.
//!
//! Method: the angle is `n` quarter turns and `r + rest` with `|r| <= pi / 4`; then come series of sine and
//! cosine in `r^2`, whose large terms are kept exactly. Up to [`FAR`] the quarter turns are taken off by Cody
//! and Waite with `pi / 2` in four parts, so that all bits are right even next to a multiple of it; beyond,
//! `x` is multiplied by the digits of `2 / pi` that matter (Payne and Hanek), in products that are exact.

use super::constants::{
    COS, HALF_PI_1, HALF_PI_2, HALF_PI_3, HALF_PI_4, HALF_PI_HALF, HALF_PI_REST, SIN, TWO_OVER_PI,
    TWO_OVER_PI_DIGITS,
};
use super::double::{Double, EXPONENT_AT, ONE, ROUNDER, Word, rounded};
use super::pair::{Pair, polynomial, quotient, square, times_constant};

/// Up to here, `n` times a part of `pi / 2` is exact.
const FAR: f64 = 262144.0; // 2^18

/// `n` quarter turns, of which only the low bits count, and `r + rest`.
pub(super) struct Reduced<D: Double> {
    n: D::Word,
    r: D,
    rest: D,
}

/// Whether the angle is too large for [`reduce`]; true of infinity, false of NaN.
#[inline(always)]
pub(super) fn is_far<D: Double>(x: D) -> D::Mask {
    D::of(FAR).less(x.abs())
}

#[inline(always)]
pub(super) fn reduce<D: Double>(x: D) -> Reduced<D> {
    let (n, word) = rounded(x * TWO_OVER_PI);
    // A difference that is not exact is so large that its error does not matter.
    let first = x - n * HALF_PI_1;
    let second = Pair::quick_sum(first, -(n * HALF_PI_2));
    let third = Pair::quick_sum(second.hi, -(n * HALF_PI_3));
    Reduced { n: word, r: third.hi, rest: (second.lo + third.lo) - n * HALF_PI_4 }
}

/// A number of at most 51 bits modulo 4, exactly: from -2 to 2.
#[inline(always)]
fn modulo_four<D: Double>(x: D) -> D {
    /// From here on the last of 51 bits is worth 8 or more.
    const ALL_FOURS: f64 = 9007199254740992.0; // 2^53
    let (quarter, _) = rounded(x * 0.25);
    D::select(D::of(ALL_FOURS).less_eq(x.abs()), D::of(0.0), x - quarter * 4.0)
}

/// Of numbers from 2^17 on.
#[inline(always)]
pub(super) fn reduce_far<D: Double>(x: D) -> Reduced<D> {
    /// So many digits are enough: 2^-138 of a quarter turn is left out.
    const CHUNKS: u64 = 9;
    const CHUNK: u32 = 24;
    // The digits before chunk `first` give multiples of 4: floor((exponent - 54) / 24).
    let biased = x.to_word().down(EXPONENT_AT) & D::Word::of(0x7ff);
    let two_52 = D::Word::of(4503599627370496.0f64.to_bits());
    let exponent = D::from_word(biased | two_52) - (4503599627370496.0 + 1023.0);
    let (first, index) = rounded(((exponent - 54.0) * (1.0 / 24.0) - (0.5 - 1.0 / 48.0)).at_least(0.0));
    // x moved down by 24 bits for each chunk that is left out: 24 = 16 + 8.
    let moved = (first * 24.0 + ROUNDER).to_word().up(EXPONENT_AT);
    let x = x * D::from_word(D::Word::of(ONE) - moved);
    let high = x.high();
    let low = x - high;
    let (mut sum, mut error, mut least) = (D::of(0.0), D::of(0.0), D::of(0.0));
    for chunk in 0..CHUNKS {
        let place = f64::from_bits(ONE - ((u64::from(CHUNK) * (chunk + 1)) << EXPONENT_AT));
        let digits = D::element(&TWO_OVER_PI_DIGITS, index + D::Word::of(chunk)) * place;
        for part in [high, low] {
            let more = Pair::sum(sum, modulo_four(part * digits));
            let errors = Pair::sum(error, more.lo);
            (sum, error, least) = (more.hi, errors.hi, least + errors.lo);
        }
    }
    let (turns, n) = rounded(sum);
    let fraction = Pair::sum(sum - turns, error);
    let fraction = fraction.plus(least).tidy();
    let r = times_constant(fraction.hi, HALF_PI_HALF, HALF_PI_REST);
    let r = r.plus(fraction.lo * (HALF_PI_HALF + HALF_PI_REST)).tidy();
    Reduced { n, r: r.hi, rest: r.lo }
}

impl<D: Double> Reduced<D> {
    /// Sine and cosine of `r + rest`. Not tidy.
    #[inline(always)]
    fn sine_and_cosine(&self) -> (Pair<D>, Pair<D>) {
        let Self { r, rest, .. } = *self;
        let z = r * r;
        let squared = square(r);
        let cosine = Pair::quick_sum(D::of(1.0), squared.hi * -0.5);
        let curved = z * z * polynomial(z, &COS) - (squared.lo * 0.5 + r * rest);
        let sine = Pair::new(r, r * z * polynomial(z, &SIN) + rest * cosine.hi);
        (sine, cosine.plus(curved))
    }

    #[inline(always)]
    pub(super) fn sin(&self) -> D {
        let (sine, cosine) = self.sine_and_cosine();
        let sign = (self.n & D::Word::of(2)).up(62);
        D::by_parity(self.n, sine.value(), cosine.value()).flipped(sign)
    }

    #[inline(always)]
    pub(super) fn cos(&self) -> D {
        let (sine, cosine) = self.sine_and_cosine();
        let sign = ((self.n + D::Word::of(1)) & D::Word::of(2)).up(62);
        D::by_parity(self.n, cosine.value(), sine.value()).flipped(sign)
    }

    #[inline(always)]
    pub(super) fn tan(&self) -> D {
        let (sine, cosine) = self.sine_and_cosine();
        let (sine, cosine) = (sine.tidy(), cosine.tidy());
        let by_parity = |even: Pair<D>, odd: Pair<D>| {
            Pair::new(D::by_parity(self.n, even.hi, odd.hi), D::by_parity(self.n, even.lo, odd.lo))
        };
        let sign = (self.n & D::Word::of(1)).up(63);
        quotient(by_parity(sine, cosine), by_parity(cosine, sine)).value().flipped(sign)
    }
}

/// For odd functions: zeros keep their sign.
#[inline(always)]
fn odd<D: Double>(x: D, result: D) -> D {
    D::select(x.equal(D::of(0.0)), x, result)
}

#[inline(always)]
pub(super) fn sin<D: Double>(x: D) -> D {
    odd(x, reduce(x).sin())
}

/// Whether there is no quarter turn to be taken off: `r` is the angle, and the rest is 0.
#[inline(always)]
pub(super) fn is_near(x: f64) -> bool {
    x.abs() < 0.78
}

#[inline(always)]
pub(super) fn sin_near(x: f64) -> f64 {
    let z = x * x;
    odd(x, x + x * z * polynomial(z, &SIN))
}

#[inline(always)]
pub(super) fn cos_near(x: f64) -> f64 {
    let z = x * x;
    let squared = square(x);
    let cosine = Pair::quick_sum(1.0, squared.hi * -0.5);
    cosine.plus(z * z * polynomial(z, &COS) - squared.lo * 0.5).value()
}

#[inline(always)]
pub(super) fn sin_far<D: Double>(x: D) -> D {
    reduce_far(x).sin()
}

#[inline(always)]
pub(super) fn cos<D: Double>(x: D) -> D {
    reduce(x).cos()
}

#[inline(always)]
pub(super) fn cos_far<D: Double>(x: D) -> D {
    reduce_far(x).cos()
}

#[inline(always)]
pub(super) fn tan<D: Double>(x: D) -> D {
    odd(x, reduce(x).tan())
}

#[inline(always)]
pub(super) fn tan_far<D: Double>(x: D) -> D {
    reduce_far(x).tan()
}

/// Both at once, with the bits of each.
#[inline(always)]
pub(super) fn sin_cos(x: f64) -> (f64, f64) {
    if is_near(x) {
        return (sin_near(x), cos_near(x));
    }
    let reduced = if is_far(x) { reduce_far(x) } else { reduce(x) };
    (odd(x, reduced.sin()), reduced.cos())
}
