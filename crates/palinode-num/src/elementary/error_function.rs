//! The error function and its complement.
//!
//! Method: up to 3/4, `erf(x) = x + x p(x^2)`. Beyond, `erfc(x) = e^(-x^2) g(t) / (1 + 2x)`, where `g` is
//! nearly constant and `t = (x - a) / (x + a)` takes the whole ray to a short interval (Shepherd and
//! Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x", 1981). The exponential, the quotient
//! and the square are pairs.

use super::constants::{ERF, ERFC, ERFC_CENTRE, ERFC_MIDDLE};
use super::double::Double;
use super::exponential::reduce_pair;
use super::pair::{Pair, polynomial, product, quotient_by, square};

/// Up to here the series of `erf` is used.
const NEAR: f64 = 0.75;

/// `erf(x) - x` for `|x| <= 3/4`.
#[inline(always)]
fn near<D: Double>(x: D) -> D {
    x * polynomial(x * x, &ERF)
}

/// `erfc` of a number of at least 3/4. Nearly tidy.
#[inline(always)]
fn far<D: Double>(size: D) -> Pair<D> {
    // Beyond 28, where it is below all positive numbers, its value is that at 28.
    let x = size.at_most(28.0).at_least(NEAR);
    let squared = square(x);
    let reduced = reduce_pair(Pair::new(-squared.hi, -squared.lo));
    let exponential = reduced.fraction().tidy();
    let divisor = Pair::quick_sum(x + x, D::of(1.0));
    // One division for two quotients.
    let inverse = D::of(1.0) / ((x + ERFC_MIDDLE) * divisor.hi);
    let t = (x - ERFC_MIDDLE) * (divisor.hi * inverse);
    let g = Pair::quick_sum(D::of(ERFC_CENTRE), polynomial(t, &ERFC));
    let above = product(exponential.hi, g.hi);
    let above = above.plus(exponential.hi * g.lo + exponential.lo * g.hi).tidy();
    let (one, other) = reduced.scales();
    quotient_by(above, divisor, (x + ERFC_MIDDLE) * inverse).tidy().times(one).times(other)
}

#[inline(always)]
pub(super) fn erf<D: Double>(x: D) -> D {
    let size = x.abs();
    let complement = far(size);
    let far = Pair::quick_sum(D::of(1.0), -complement.hi).plus(-complement.lo).value();
    D::select(size.less_eq(D::of(NEAR)), size + near(size), far).with_sign(x.sign())
}

#[inline(always)]
pub(super) fn erfc<D: Double>(x: D) -> D {
    let complement = far(x.abs());
    let left = Pair::quick_sum(D::of(2.0), -complement.hi).plus(-complement.lo).value();
    let far = D::select(x.less(D::of(0.0)), left, complement.value());
    let inner = Pair::quick_sum(D::of(1.0), -x);
    let near = inner.hi + (inner.lo - near(x));
    D::select(x.abs().less_eq(D::of(NEAR)), near, far)
}
