//! Powers, roots and lengths.
//!
//! Method of powers: `x^y = e^(y ln x)`, where the logarithm has 66 bits. `x = 2^k (1 + r) / c`, where each
//! of 64 pieces of the fractions has its factor `c`, so that `|r|` is below 2^-6 and exact in a pair; then
//! `ln x = k ln 2 - ln c + ln(1 + r)`, with the second from a table and the third from a short polynomial
//! (Tang, "Table-driven implementation of the logarithm function in IEEE floating-point arithmetic", 1990).
//! Cube roots are a first guess that is improved once and corrected by its exact error. Lengths are roots of
//! sums of squares; both are pairs.

use super::constants::{
    CBRT_2, FACTORS, INVERSE_CBRT, INVERSE_CBRT_2, LN_2_HIGH, LN_2_LOW, LN_OF_FACTORS, LN_OF_POWER,
};
use super::double::{Double, power_of_two, rounded};
use super::exponential::{LARGEST, LEAST, reduce_pair};
use super::logarithm::{Decomposed, decompose, decompose_any};
use super::pair::{Pair, polynomial, product, root, square};

/// `ln x` to 66 bits. Nearly tidy.
#[inline(always)]
fn long_ln<D: Double>(Decomposed { k, fraction, piece }: Decomposed<D>) -> Pair<D> {
    let factor = D::element(&FACTORS, piece);
    let high = fraction.high();
    // Both products and the difference are exact.
    let r = Pair::quick_sum(high * factor - 1.0, (fraction - high) * factor);
    let squared = square(r.hi);
    let cube = r.hi * squared.value();
    let constant = Pair::quick_sum(k * LN_2_HIGH, D::element(&LN_OF_FACTORS, piece));
    let line = Pair::quick_sum(constant.hi, r.hi);
    let sum = Pair::quick_sum(line.hi, squared.hi * -0.5);
    let below = (constant.lo + k * LN_2_LOW) + (line.lo + (r.lo - r.lo * r.hi));
    sum.plus((below - squared.lo * 0.5) + cube * polynomial(r.hi, &LN_OF_POWER))
}

/// Whether a number that is not negative is an integer; infinity counts as one.
#[inline(always)]
fn is_integer<D: Double>(x: D) -> D::Mask {
    const FROM_HERE_ON: f64 = 4503599627370496.0; // 2^52
    D::of(FROM_HERE_ON).less_eq(x) | ((x + FROM_HERE_ON) - FROM_HERE_ON).equal(x)
}

/// Whether `x^y` may not be normal, or `x` is not positive and normal.
#[inline(always)]
pub(super) fn is_no_plain_power<D: Double>(x: D, y: D) -> D::Mask {
    let Decomposed { k, .. } = decompose(x);
    let is_plain = D::of(f64::MIN_POSITIVE).less_eq(x) & x.less(D::of(f64::INFINITY));
    // The logarithm to base 2 is below |k| + 1/2.
    !(is_plain & (y.abs() * (k.abs() + 0.5)).less(D::of(1020.0)))
}

/// `y ln x`. Nearly tidy.
#[inline(always)]
fn logarithm_of_power<D: Double>(x: Decomposed<D>, y: D) -> Pair<D> {
    let ln = long_ln(x);
    product(y, ln.hi).plus(y * ln.lo)
}

#[inline(always)]
pub(super) fn powf<D: Double>(x: D, y: D) -> D {
    let reduced = reduce_pair(logarithm_of_power(decompose(x), y));
    reduced.moved(reduced.fraction().value())
}

/// As IEEE 754 defines it: `x^0` and `1^y` are 1 even for NaN, and the signs of zeros and infinities count.
#[inline(always)]
pub(super) fn powf_of_any<D: Double>(x: D, y: D) -> D {
    /// Larger exponents overflow or underflow like this one.
    const LARGEST_EXPONENT: f64 = 73786976294838206464.0; // 2^66
    let (zero, one, infinity) = (D::of(0.0), D::of(1.0), D::of(f64::INFINITY));
    let (size, exponent_size) = (x.abs(), y.abs());

    let exponent = y.at_most(LARGEST_EXPONENT).at_least(-LARGEST_EXPONENT);
    let logarithm = logarithm_of_power(decompose_any(size), exponent).tidy();
    let limited = logarithm.hi.at_most(LARGEST).at_least(LEAST);
    let rest = D::select(limited.equal(logarithm.hi), logarithm.lo, zero);
    let reduced = reduce_pair(Pair::new(limited, rest));
    let magnitude = reduced.scaled(reduced.fraction().value());

    let grows = y.less(zero);
    let at_zero = D::select(grows, infinity, zero);
    let at_infinity = D::select(grows, zero, infinity);
    let magnitude = D::select(size.equal(zero), at_zero, magnitude);
    let magnitude = D::select(size.equal(infinity), at_infinity, magnitude);

    let is_whole = is_integer(exponent_size);
    let is_odd = is_whole & !is_integer(exponent_size * 0.5);
    let sign = D::select(is_odd, D::from_word(x.sign()), zero).to_word();
    let signed = magnitude.with_sign(sign);
    let below_zero = x.less(zero) & D::of(f64::NEG_INFINITY).less(x);
    let real = D::select(below_zero & !is_whole, D::of(f64::NAN), signed);
    let with_nan = D::select(x.is_nan() | y.is_nan(), x + y, real);
    D::select(x.equal(one) | y.equal(zero), one, with_nan)
}

#[inline(always)]
pub(super) fn cbrt<D: Double>(x: D) -> D {
    let zero = D::of(0.0);
    let size = x.abs();
    let Decomposed { k, fraction, .. } = decompose_any(size);
    // size = 8^third a, and a = 2^j fraction with j from -1 to 1.
    let (third, word) = rounded(k * (1.0 / 3.0));
    let j = k - third * 3.0;
    let by_j = |below: f64, at: f64, above: f64| {
        D::select(j.less(zero), D::of(below), D::select(zero.less(j), D::of(above), D::of(at)))
    };
    let a = fraction * by_j(0.5, 1.0, 2.0);
    let guess = polynomial(fraction, &INVERSE_CBRT) * by_j(CBRT_2, 1.0, INVERSE_CBRT_2);
    // (1 - e)^(-1/3) = 1 + e/3 + 2 e^2 / 9 + 14 e^3 / 81 + ...
    let e = D::of(1.0) - a * (guess * guess * guess);
    let inverse = guess + guess * (e * polynomial(e, &[1.0 / 3.0, 2.0 / 9.0, 14.0 / 81.0]));
    let slope = inverse * inverse;
    let t = a * slope;
    let squared = square(t);
    let cube = product(t, squared.hi);
    let rest = (a - cube.hi) - (cube.lo + t * squared.lo);
    let root = (t + rest * (slope * (1.0 / 3.0))) * power_of_two::<D>(word);
    let is_plain = zero.less(size) & size.less(D::of(f64::INFINITY));
    D::select(is_plain, root.with_sign(x.sign()), x)
}

#[inline(always)]
pub(super) fn hypot<D: Double>(x: D, y: D) -> D {
    const LARGE: f64 = f64::from_bits((1023 + 500) << 52);
    const SMALL: f64 = f64::from_bits((1023 - 400) << 52);
    const UP: f64 = f64::from_bits((1023 + 600) << 52);
    const DOWN: f64 = f64::from_bits((1023 - 600) << 52);
    let infinity = D::of(f64::INFINITY);
    let (x, y) = (x.abs(), y.abs());
    let is_less = x.less(y);
    let (large, small) = (D::select(is_less, y, x), D::select(is_less, x, y));
    let by_size = |if_small: f64, if_large: f64| {
        let otherwise = D::select(D::of(LARGE).less(large), D::of(if_large), D::of(1.0));
        D::select(large.less(D::of(SMALL)), D::of(if_small), otherwise)
    };
    let scale = by_size(UP, DOWN);
    let (a, b) = (square(large * scale), square(small * scale));
    let sum = Pair::quick_sum(a.hi, b.hi).plus(a.lo + b.lo).tidy();
    let length = root(sum).value() * by_size(DOWN, UP);
    D::select(x.equal(infinity) | y.equal(infinity), infinity, length)
}
