//! The polygamma functions, for any leaf number.
//!
//! Input: a number, an order and how far the asymptotic series must be pushed for its precision.
//! Output: `psi_m(x)`, the derivative of order `m + 1` of `ln|Gamma(x)|`.
//!
//! Method: climb by the recurrence until the argument is large, then the asymptotic series in Bernoulli
//! numbers (Abramowitz and Stegun 6.3.18 and 6.4.11); negative arguments by reflection (6.4.7) or, for high
//! orders, by summing the poles outwards from the nearest one.
//!
//! At a pole: `+0` and `-0` give the one-sided limit; a negative integer gives `+inf` for odd orders (both
//! sides agree) and NaN for even ones (they do not). `-inf` gives NaN.
//!
//! Known limits: near a zero of the function the error is small against the terms that cancel, not against
//! the value. The cost grows linearly with the order, and the relative error about as `order / 2` ulp.

use crate::bernoulli::BERNOULLI;
use crate::scalar::{Constant, Scalar};

/// How far to push the asymptotic series for one precision.
pub(crate) struct Series {
    /// The series is used from here on, plus the order.
    pub(crate) from: f64,
    /// How many Bernoulli numbers it takes.
    pub(crate) terms: usize,
}

/// Truncation error below 2^-58.
pub(crate) const F64_SERIES: Series = Series { from: 12.0, terms: 12 };

/// Truncation error below 2^-112.
pub(crate) const DOUBLE_DOUBLE_SERIES: Series = Series { from: 24.0, terms: 24 };

/// From this order on the reflection polynomial's coefficients would grow large, while the sum over poles
/// converges within a few terms.
const POLE_SUM_FROM_ORDER: u32 = 20;

/// `psi_order(x)`.
pub(crate) fn polygamma<S: Scalar<Bool = bool>>(x: S, order: u32, series: &Series) -> S {
    let zero = S::zero();
    let odd = order % 2 == 1;
    if x.equal(zero) {
        // psi_m(x) ~ (-1)^(m+1) m! / x^(m+1): only the sign of the infinity is left to find.
        let infinity = S::from_f64(f64::INFINITY);
        return if odd { infinity } else { -infinity.copysign(x) };
    }
    if !x.less(zero) {
        // A NaN comes here too and stays one.
        return positive(x, order, series);
    }
    let nearest = x.round();
    if nearest.equal(x) {
        let finite = S::from_f64(f64::MIN).less_eq(x);
        return S::from_f64(if odd && finite { f64::INFINITY } else { f64::NAN });
    }
    let offset = x - nearest;
    if order >= POLE_SUM_FROM_ORDER {
        return pole_sum(offset, -nearest, order);
    }
    let mirrored = positive(S::one() - x, order, series);
    let mirrored = if odd { -mirrored } else { mirrored };
    mirrored - cotangent_derivative(offset, order)
}

/// `psi_order(x)` for `x > 0` (or NaN).
fn positive<S: Scalar<Bool = bool>>(x: S, order: u32, series: &Series) -> S {
    let from = S::from_f64(series.from + f64::from(order));
    let mut steps = 0;
    let mut large = x;
    if x.less(from) {
        let distance = (from - x).ceil();
        steps = distance.peek().expect("a leaf number has a value") as u32;
        large = x + distance;
    }
    if order == 0 {
        // The smallest terms are added first.
        let climbed = (0..steps).rev().fold(S::zero(), |sum, k| sum + (x + integer(k)).recip());
        return digamma_series(large, series) - climbed;
    }
    // psi_m(x) = (-1)^(m+1) m!/x^m * sum, scaled so that neither factor overflows before the product does.
    let mut sum = power(x / large, order) * polygamma_series(large, order, series);
    for k in (0..steps).rev() {
        let pole = x + integer(k);
        sum = sum + power(x / pole, order) / pole;
    }
    if x.equal(S::from_f64(f64::INFINITY)) {
        // The series divided infinities.
        sum = S::zero();
    }
    let magnitude = times_factorial_over_power(sum, order, x);
    if order % 2 == 1 { magnitude } else { -magnitude }
}

fn integer<S: Scalar>(k: u32) -> S {
    S::from_f64(f64::from(k))
}

fn power<S: Scalar>(base: S, order: u32) -> S {
    match i32::try_from(order) {
        Ok(n) => base.powi(n),
        Err(_) => base.powf(integer(order)),
    }
}

fn bernoulli<S: Scalar>(index: usize) -> S {
    let (high, low) = BERNOULLI[index];
    S::from_f64(high) + S::from_f64(low)
}

/// `ln x - 1/(2x) - sum B_2k / (2k x^2k)`.
fn digamma_series<S: Scalar<Bool = bool>>(x: S, series: &Series) -> S {
    let inverse = x.recip();
    let square = inverse * inverse;
    let tail = (0..series.terms)
        .rev()
        .fold(S::zero(), |sum, index| (sum + bernoulli::<S>(index) / integer(2 * index as u32 + 2)) * square);
    x.ln() - (tail + inverse * S::half())
}

/// `x^m / m! * |psi_m(x)| = 1/m + 1/(2x) + sum B_2k (2k+m-1)! / ((2k)! m! x^2k)`.
fn polygamma_series<S: Scalar<Bool = bool>>(x: S, order: u32, series: &Series) -> S {
    let inverse = x.recip();
    let square = inverse * inverse;
    let m = integer::<S>(order);
    let mut weight = (m + S::one()) * S::half() * square;
    let mut tail = S::zero();
    for index in 0..series.terms {
        tail = tail + bernoulli::<S>(index) * weight;
        let next = integer::<S>(2 * index as u32 + 2);
        let one = S::one();
        weight = weight * ((next + m) / (next + one) * ((next + m + one) / (next + one + one)) * square);
    }
    m.recip() + (inverse * S::half() + tail)
}

/// `value * order! / x^order` for `x > 0`, in an order of operations that overflows or underflows only if the
/// result does.
fn times_factorial_over_power<S: Scalar<Bool = bool>>(value: S, order: u32, x: S) -> S {
    let (mut value, mut multiplied, mut divided) = (value, 1, 0);
    while multiplied < order || divided < order {
        let large = S::one().less_eq(value);
        if divided < order && (large || multiplied >= order) {
            value = value / x;
            divided += 1;
        } else {
            multiplied += 1;
            value = value * integer(multiplied);
        }
    }
    value
}

/// The derivative of the given order of `pi cot(pi t)` for `0 < |t| <= 1/2`.
fn cotangent_derivative<S: Scalar<Bool = bool>>(t: S, order: u32) -> S {
    let pi = S::constant(Constant::Pi);
    let quarter = S::half() * S::half();
    let cotangent = if quarter.less(t.abs()) {
        // 1/2 - |t| is exact: full relative accuracy where the cotangent vanishes.
        (pi * (S::half() - t.abs())).tan().copysign(t)
    } else {
        (pi * t).tan().recip()
    };
    // With c = cot: d/dt p(c) = -(1 + c^2) p'(c). All coefficients of one polynomial have the same sign, so
    // evaluating it cancels nothing.
    const LENGTH: usize = POLE_SUM_FROM_ORDER as usize + 1;
    let mut coefficients = [S::zero(); LENGTH];
    coefficients[1] = S::one();
    for _ in 0..order {
        let mut next = [S::zero(); LENGTH];
        for degree in 1..LENGTH {
            let slope = -(coefficients[degree] * integer(degree as u32));
            next[degree - 1] = next[degree - 1] + slope;
            if degree + 1 < LENGTH {
                next[degree + 1] = next[degree + 1] + slope;
            }
        }
        coefficients = next;
    }
    let degree = order as usize + 1;
    let value = coefficients[..degree]
        .iter()
        .rev()
        .fold(coefficients[degree], |sum, &coefficient| sum * cotangent + coefficient);
    value * power(pi, order + 1)
}

/// `(-1)^(m+1) m! sum 1/(x+k)^(m+1)` over `k >= 0`, where `x = offset - before` lies between two poles and
/// `before` is how many poles come before the nearest one.
fn pole_sum<S: Scalar<Bool = bool>>(offset: S, before: S, order: u32) -> S {
    /// At order 20 the next pole contributes below 2^-107 of the nearest.
    const NEIGHBOURS: u32 = 18;
    let term = |distance: S| power(offset / distance, order) * (offset / distance);
    let mut sum = S::zero();
    for k in (1..=NEIGHBOURS).rev() {
        sum = sum + term(offset + integer(k));
        if integer::<S>(k).less_eq(before) {
            sum = sum + term(offset - integer(k));
        }
    }
    sum = sum + S::one();
    // The whole is (-1)^(m+1) m!/|offset|^m * sum/|offset|, with the sign of offset^(m+1).
    let magnitude = times_factorial_over_power((sum / offset).abs(), order, offset.abs());
    let signed = if sum.less(S::zero()) { -magnitude } else { magnitude };
    if order % 2 == 1 || offset.less(S::zero()) { signed } else { -signed }
}
