//! Logarithms, and what is made of them.
//!
//! Method: `x = 2^k (1 + f)` with `1 + f` between about the roots of 1/2 and 2; `ln(1 + f) = f - f^2/2 + s
//! (f^2/2 + R)` with `s = f / (2 + f)` and `R` a polynomial in `s^2`, as in fdlibm, but with `f^2` to 79 bits
//! and sums whose errors are kept, so that the error is little more than that of one rounding.
//!
//! The inverse hyperbolic functions and softplus are logarithms of `1 + f` where `f` is a pair.

use super::constants::{
    LEAST_FRACTION, LN, LN_2_HIGH, LN_2_LOW, LOG2_E_HALF, LOG2_E_REST, LOG10_2_HIGH, LOG10_2_LOW,
    LOG10_E_HALF, LOG10_E_REST,
};
use super::double::{Double, EXPONENT_AT, ONE, Word};
use super::exponential::{LEAST, reduce};
use super::pair::{Pair, polynomial, quotient, root, square, times_constant};

/// `2^k fraction`, where the fraction lies between about the roots of 1/2 and 2.
pub(super) struct Decomposed<D: Double> {
    pub(super) k: D,
    pub(super) fraction: D,
    /// Which of 64 pieces of all fractions it lies in, in the low bits.
    pub(super) piece: D::Word,
}

/// For a positive, finite, normal number.
#[inline(always)]
pub(super) fn decompose<D: Double>(x: D) -> Decomposed<D> {
    const UP: u64 = ONE - LEAST_FRACTION.to_bits();
    const MANTISSA: u64 = (1 << EXPONENT_AT) - 1;
    /// The last places of this number are those of integers.
    const TWO_52: f64 = 4503599627370496.0;
    let moved = x.to_word() + D::Word::of(UP);
    let biased = D::from_word(moved.down(EXPONENT_AT) | D::Word::of(TWO_52.to_bits()));
    let fraction = (moved & D::Word::of(MANTISSA)) + D::Word::of(LEAST_FRACTION.to_bits());
    let fraction = D::from_word(fraction);
    Decomposed { k: biased - (TWO_52 + 1023.0), fraction, piece: moved.down(EXPONENT_AT - 6) }
}

/// For any positive, finite number.
#[inline(always)]
pub(super) fn decompose_any<D: Double>(x: D) -> Decomposed<D> {
    const UP: f64 = 18014398509481984.0; // 2^54
    let is_tiny = x.less(D::of(f64::MIN_POSITIVE));
    let of_normal = decompose(D::select(is_tiny, x * UP, x));
    Decomposed { k: D::select(is_tiny, of_normal.k - 54.0, of_normal.k), ..of_normal }
}

/// `ln(1 + f)` of a tidy pair, where `1 + f` lies between the roots of 1/2 and 2. Not tidy.
#[inline(always)]
fn ln_of_pair<D: Double>(f: Pair<D>) -> Pair<D> {
    // f.lo / (1 + f.hi), roughly.
    let s = f.hi / (f.hi + 2.0);
    let below = f.lo * (D::of(1.0) - (s + s) * (D::of(1.0) - s));
    ln_of_fraction(f.hi).plus(below)
}

/// `ln(1 + f)`, likewise.
#[inline(always)]
fn ln_of_fraction<D: Double>(f: D) -> Pair<D> {
    let s = f / (f + 2.0);
    let z = s * s;
    let squared = square(f);
    let (half, half_rest) = (squared.hi * 0.5, squared.lo * 0.5);
    let curved = s * ((half + half_rest) + z * polynomial(z, &LN));
    Pair::quick_sum(f, -half).plus(curved - half_rest)
}

/// The sum with `k ln 2`. Not tidy.
#[inline(always)]
fn plus_twos<D: Double>(k: D, logarithm: Pair<D>) -> Pair<D> {
    Pair::quick_sum(k * LN_2_HIGH, logarithm.hi).plus(logarithm.lo + k * LN_2_LOW)
}

/// `ln(1 + f) + more ln 2` of a pair from -1 to 2^1023, tidy or nearly so.
#[inline(always)]
fn ln_1p_of<D: Double>(f: Pair<D>, more: D) -> Pair<D> {
    let sum = Pair::sum(D::of(1.0), f.hi);
    let Decomposed { k, fraction, .. } = decompose(sum.hi);
    // Beyond 2^60 the low part is below everything, and 2^-k may not be a number.
    let inverse_power = D::from_word(fraction.to_word() - sum.hi.to_word() + D::Word::of(ONE));
    let low = (sum.lo + f.lo) * inverse_power;
    let low = D::select(k.less(D::of(60.0)), low, D::of(0.0));
    plus_twos(k + more, ln_of_pair(Pair::quick_sum(fraction - 1.0, low)))
}

/// The logarithm of any number, given the one that holds for positive finite numbers.
#[inline(always)]
fn everywhere<D: Double>(x: D, logarithm: impl FnOnce(Decomposed<D>) -> D) -> D {
    let zero = D::of(0.0);
    let positive = D::select(x.less(D::of(f64::INFINITY)), logarithm(decompose_any(x)), x);
    let not_negative = D::select(x.equal(zero), D::of(f64::NEG_INFINITY), positive);
    D::select(x.less(zero), D::of(f64::NAN), not_negative)
}

#[inline(always)]
pub(super) fn ln<D: Double>(x: D) -> D {
    everywhere(x, |Decomposed { k, fraction, .. }| plus_twos(k, ln_of_fraction(fraction - 1.0)).value())
}

#[inline(always)]
pub(super) fn log2<D: Double>(x: D) -> D {
    everywhere(x, |Decomposed { k, fraction, .. }| {
        let natural = ln_of_fraction(fraction - 1.0).tidy();
        let binary = times_constant(natural.hi, LOG2_E_HALF, LOG2_E_REST);
        let below = natural.lo * LOG2_E_HALF;
        Pair::quick_sum(k, binary.hi).plus(binary.lo + below).value()
    })
}

#[inline(always)]
pub(super) fn log10<D: Double>(x: D) -> D {
    everywhere(x, |Decomposed { k, fraction, .. }| {
        let natural = ln_of_fraction(fraction - 1.0).tidy();
        let decimal = times_constant(natural.hi, LOG10_E_HALF, LOG10_E_REST);
        let below = natural.lo * LOG10_E_HALF + k * LOG10_2_LOW;
        Pair::quick_sum(k * LOG10_2_HIGH, decimal.hi).plus(decimal.lo + below).value()
    })
}

#[inline(always)]
pub(super) fn ln_1p<D: Double>(x: D) -> D {
    let inside = ln_1p_of(Pair::of(x), D::of(0.0)).value().with_sign(x.sign());
    // NaN below -1, as the logarithm of a negative number; infinity and NaN stay what they are.
    let upper = D::select(x.less(D::of(f64::INFINITY)), inside, x);
    let closed = D::select(x.equal(D::of(-1.0)), D::of(f64::NEG_INFINITY), upper);
    D::select(x.less(D::of(-1.0)), D::of(f64::NAN), closed)
}

/// Beyond this `1 + x^2` is `x^2`, and `x^2 + 2x` is `x^2`.
const FAR: f64 = 268435456.0; // 2^28

/// `ln(1 + x + x^2 / (1 + sqrt(1 + x^2)))`.
#[inline(always)]
pub(super) fn asinh<D: Double>(x: D) -> D {
    let (zero, one) = (D::of(0.0), D::of(1.0));
    let size = x.abs();
    let is_far = D::of(FAR).less(size);
    let near = size.at_most(FAR);
    let squared = square(near);
    let sum = Pair::sum(one, squared.hi);
    let root = (sum.hi + (sum.lo + squared.lo)).sqrt();
    let curved = (squared.hi + squared.lo) / (root + 1.0);
    let f = Pair::select(is_far, Pair::of(size - 1.0), Pair::quick_sum(near, curved));
    let result = ln_1p_of(f, D::select(is_far, one, zero)).value();
    D::select(size.less(D::of(f64::INFINITY)), result.with_sign(x.sign()), x)
}

/// With `t = x - 1`: `ln(1 + t + sqrt(t^2 + 2t))`.
#[inline(always)]
pub(super) fn acosh<D: Double>(x: D) -> D {
    let is_far = D::of(FAR).less(x);
    let t = x.at_most(FAR) - 1.0;
    let squared = square(t);
    let sum = Pair::sum(squared.hi, t + t);
    let root = root(sum.plus(squared.lo).tidy());
    let near = Pair::quick_sum(root.hi, t).plus(root.lo);
    let f = Pair::select(is_far, Pair::of(x - 1.0), near);
    let result = ln_1p_of(f, D::select(is_far, D::of(1.0), D::of(0.0))).value();
    let upper = D::select(x.less(D::of(f64::INFINITY)), result, x);
    D::select(x.less(D::of(1.0)), D::of(f64::NAN), upper)
}

/// `ln(1 + 2x / (1 - x)) / 2`.
#[inline(always)]
pub(super) fn atanh<D: Double>(x: D) -> D {
    let size = x.abs();
    let f = quotient(Pair::of(size + size), Pair::quick_sum(D::of(1.0), -size));
    let inside = (ln_1p_of(f, D::of(0.0)).value() * 0.5).with_sign(x.sign());
    let one = D::of(1.0);
    let end = D::select(size.equal(one), D::of(f64::INFINITY).with_sign(x.sign()), D::of(f64::NAN));
    D::select(size.less(one), inside, end)
}

/// `max(x, 0) + ln(1 + e^-|x|)`.
#[inline(always)]
pub(super) fn softplus<D: Double>(x: D) -> D {
    let (zero, one) = (D::of(0.0), D::of(1.0));
    let reduced = reduce((-x.abs()).at_least(LEAST));
    let (scale, other) = reduced.scales();
    let e = reduced.fraction().tidy().times(scale).times(other);
    // 1 + e = 2 (1 + (e - 1) / 2) if it is above the root of 2.
    let is_large = D::of(core::f64::consts::SQRT_2 - 1.0).less(e.hi);
    let less = Pair::quick_sum(-one, e.hi).plus(e.lo).times(D::of(0.5));
    let f = Pair::select(is_large, less.tidy(), e);
    let logarithm = plus_twos(D::select(is_large, one, zero), ln_of_pair(f));
    let sum = Pair::sum(D::select(x.less(zero), zero, x), logarithm.hi);
    // Beyond, the sum is x; so are infinity and NaN.
    D::select(x.less(D::of(40.0)), sum.plus(logarithm.lo).value(), x)
}
