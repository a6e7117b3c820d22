//! Angles: the inverse functions of sine, cosine and tangent.
//!
//! Method: `atan(a) = base + atan(t)` with `|t| <= tan(pi / 8)` and a base of 0, `pi / 4` or `pi / 2`;
//! `asin(a)` for `a > 1/2` from the chord, `pi / 2 - 2 asin(sqrt((1 - a) / 2))`. Quotients, roots and bases
//! are pairs, so that the error is little more than that of one rounding.

use super::constants::{ASIN, ATAN, QUARTER_PI_HIGH, QUARTER_PI_LOW, TAN_EIGHTH, TAN_THREE_EIGHTHS};
use super::double::Double;
use super::pair::{Pair, polynomial, quotient, root};

/// A number of eighths of a turn, from 0 to 4, and `atan(t)` for `|t| <= tan(pi / 8)`.
#[inline(always)]
fn eighths_and_atan<D: Double>(eighths: D, t: Pair<D>) -> D {
    let z = t.hi * t.hi;
    let curved = t.hi * z * polynomial(z, &ATAN);
    let sum = Pair::quick_sum(eighths * QUARTER_PI_HIGH, t.hi);
    sum.plus(eighths * QUARTER_PI_LOW + (t.lo + curved)).value()
}

#[inline(always)]
pub(super) fn atan<D: Double>(x: D) -> D {
    let (zero, one) = (D::of(0.0), D::of(1.0));
    // Beyond 2^60 it is pi / 2.
    let size = x.abs().at_most(1152921504606846976.0);
    let in_middle = D::of(TAN_EIGHTH).less(size);
    let is_steep = D::of(TAN_THREE_EIGHTHS).less(size);
    let pick = |flat: Pair<D>, middle: Pair<D>, steep: Pair<D>| {
        Pair::select(is_steep, steep, Pair::select(in_middle, middle, flat))
    };
    let above = pick(Pair::of(size), Pair::sum(size, -one), Pair::of(-one));
    let below = pick(Pair::of(one), Pair::sum(size, one), Pair::of(size));
    let eighths = D::select(is_steep, D::of(2.0), D::select(in_middle, one, zero));
    eighths_and_atan(eighths, quotient(above, below)).with_sign(x.sign())
}

/// The angle of `(x, y)`, as IEEE 754 defines it: the signs of zeros and infinities count.
#[inline(always)]
pub(super) fn atan2<D: Double>(y: D, x: D) -> D {
    const UP_FROM_BELOW_ONE: f64 = f64::from_bits((1023 + 700) << 52);
    const MODERATE: f64 = f64::from_bits((1023 + 500) << 52);
    const UP: f64 = f64::from_bits((1023 + 400) << 52);
    const DOWN: f64 = f64::from_bits((1023 - 200) << 52);
    let (zero, one, infinity) = (D::of(0.0), D::of(1.0), D::of(f64::INFINITY));
    let (width, height) = (x.abs(), y.abs());
    let is_steep = width.less(height);
    let (large, small) = (D::select(is_steep, height, width), D::select(is_steep, width, height));
    // Scaled so that neither a sum overflows nor a remainder underflows where the result does not. One stands
    // for an infinite number, beside which all finite ones are zeros, and for the larger of two zeros.
    let scale = D::select(large.less(D::of(MODERATE)), D::of(UP), D::of(DOWN));
    let scale = D::select(large.less(one), D::of(UP_FROM_BELOW_ONE), scale);
    let is_infinite = large.equal(infinity);
    let small = D::select(is_infinite, D::select(small.equal(infinity), one, zero), small * scale);
    let large = D::select(is_infinite | large.equal(zero), one, large * scale);

    let in_middle = (large * TAN_EIGHTH).less(small);
    let above = Pair::select(in_middle, Pair::sum(small, -large), Pair::of(small));
    let below = Pair::select(in_middle, Pair::quick_sum(large, small), Pair::of(large));
    let t = quotient(above, below);
    // The angle is that many eighths of a turn plus or minus atan(t).
    let is_left = D::from_word(x.sign() | one.to_word()).less(zero);
    let eighths = D::select(in_middle, one, zero);
    let turned = (is_steep & !is_left) | (is_left & !is_steep);
    let from = D::select(is_steep, D::of(2.0), D::select(is_left, D::of(4.0), zero));
    let eighths = D::select(turned, from - eighths, from + eighths);
    let t = Pair::select(turned, Pair::new(-t.hi, -t.lo), t);
    let angle = eighths_and_atan(eighths, t).with_sign(y.sign());
    D::select(x.is_nan() | y.is_nan(), x + y, angle)
}

/// What the inverse sine and cosine of `|x|` are made of: `asin(w)` as `w + rest`, where `w` is `|x|` if that
/// is at most 1/2, and otherwise the chord `sqrt((1 - |x|) / 2)`. NaN if `|x|` is above 1.
#[inline(always)]
fn chord<D: Double>(x: D) -> (D::Mask, Pair<D>) {
    let size = x.abs();
    let is_large = D::of(0.5).less(size);
    let half = (D::of(1.0) - size) * 0.5;
    let z = D::select(is_large, half, size * size);
    let w = Pair::select(is_large, root(Pair::of(half)), Pair::of(size));
    (is_large, w.plus(w.hi * z * polynomial(z, &ASIN)))
}

#[inline(always)]
pub(super) fn asin<D: Double>(x: D) -> D {
    let (is_large, w) = chord(x);
    let right = Pair::quick_sum(D::of(2.0 * QUARTER_PI_HIGH), w.hi * -2.0);
    let large = right.plus(D::of(2.0 * QUARTER_PI_LOW) - w.lo * 2.0).value();
    D::select(is_large, large, w.value()).with_sign(x.sign())
}

#[inline(always)]
pub(super) fn acos<D: Double>(x: D) -> D {
    let (is_large, w) = chord(x);
    let is_negative = x.less(D::of(0.0));
    // Small: pi / 2 - asin(x). Large: twice the chord's angle, or a half turn minus that.
    let pick = |large: f64, small: f64| D::select(is_large, D::of(large), D::of(small));
    let w = w.times(D::select(is_negative, pick(-2.0, 1.0), pick(2.0, -1.0)));
    let base = D::select(is_negative, pick(4.0, 2.0), pick(0.0, 2.0));
    let sum = Pair::quick_sum(base * QUARTER_PI_HIGH, w.hi);
    sum.plus(base * QUARTER_PI_LOW + w.lo).value()
}
