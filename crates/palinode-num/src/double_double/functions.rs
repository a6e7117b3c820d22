//! `Scalar` for double-doubles: special values and domains here, the mathematics in [`crate::wide`].
//!
//! Each function answers for NaN, infinities, zeros and arguments outside its domain as `f64`'s does, hands a
//! finite nonzero argument to its 192-bit twin, and rounds the result once.
//!
//! Where a function is steep or vanishes next to a number (`ln` at 1, `acos` at 1, `lgamma` at 1 and 2), the
//! distance to that number is taken in double-double, where the subtraction is exact, before anything is cut.

use super::{DoubleDouble, constants};
use crate::elementary as plain;
use crate::exact::{ExactDot, ExactSum};
use crate::scalar::{Accumulator, Constant, Scalar};
use crate::special::{self, DOUBLE_DOUBLE_SERIES};
use crate::wide::constants::{LN_2, LN_10};
use crate::wide::{Wide, angle, special as wide_special};

/// Above this `e^x` is infinite, below its negative it is 0, with a wide margin.
const EXP_LIMIT: f64 = 800.0;

/// Beyond this the continued fraction of `erfc` converges faster than the series of `erf`.
const SERIES_OF_ERF_UP_TO: f64 = 6.0;

impl DoubleDouble {
    /// `wide(self)` where the argument is finite and not zero, `plain(hi)` where it is not.
    #[inline]
    fn through(self, plain: fn(f64) -> f64, wide: impl FnOnce(Wide) -> Wide) -> Self {
        if self.is_ordinary() { wide(self.to_wide()).into() } else { plain(self.hi).into() }
    }

    /// `self - 1` to 192 bits, also where `self` is 1 plus something far below.
    fn minus_one(self) -> Wide {
        if (0.5..=2.0).contains(&self.hi) { (self - 1.0).to_wide() } else { self.to_wide() - Wide::ONE }
    }

    /// `1 - |self|` for `|self| <= 1`, likewise.
    fn one_minus_magnitude(self) -> Wide {
        -self.abs_value().minus_one()
    }

    /// `sqrt(1 - self^2)` for `|self| <= 1`.
    fn cathetus(self) -> Wide {
        (self.one_minus_magnitude() * (Wide::ONE + self.abs_value().to_wide())).sqrt()
    }

    /// The logarithm of a positive finite number.
    fn ln_wide(self) -> Wide {
        if (0.5..=2.0).contains(&self.hi) { self.minus_one().ln_1p() } else { self.to_wide().ln() }
    }

    /// What `wide` makes of the natural logarithm, where the argument is positive and finite.
    fn logarithm(self, plain: fn(f64) -> f64, wide: impl FnOnce(Wide) -> Wide) -> Self {
        if self.is_ordinary() && self.hi > 0.0 { wide(self.ln_wide()).into() } else { plain(self.hi).into() }
    }

    /// The angle's sine and cosine; finite arguments only.
    fn sin_cos_wide(self) -> (Wide, Wide) {
        let (quadrant, rest) = angle::reduce(self.hi, self.lo);
        let (sin, cos) = rest.sin_cos_reduced();
        match quadrant {
            0 => (sin, cos),
            1 => (cos, -sin),
            2 => (-sin, -cos),
            _ => (-cos, sin),
        }
    }

    fn is_integer(self) -> bool {
        self.floor() == self
    }

    fn is_odd_integer(self) -> bool {
        self.is_integer() && !(self * 0.5).is_integer()
    }

    /// `self^exponent` by exponential and logarithm; `self` is positive and both are finite and not zero.
    fn positive_power(self, exponent: Self) -> Self {
        let logarithm = exponent.to_wide() * self.ln_wide();
        match logarithm.to_f64() {
            large if large.abs() > EXP_LIMIT => plain::exp(large).into(),
            _ => logarithm.exp().into(),
        }
    }

    /// [`Self::through`] for functions made of exponentials, which have reached their limits far out.
    fn through_limited(self, plain: fn(f64) -> f64, wide: impl FnOnce(Wide) -> Wide) -> Self {
        if self.hi.abs() > EXP_LIMIT { plain(self.hi).into() } else { self.through(plain, wide) }
    }

    /// `erf` of a finite number, given its 192-bit form.
    fn erf_wide(self, x: Wide) -> Wide {
        if self.hi.abs() <= SERIES_OF_ERF_UP_TO {
            return wide_special::erf(x);
        }
        let result = Wide::ONE - wide_special::erfc_far(x.abs());
        if x.negative { -result } else { result }
    }

    /// `ln Gamma` of a positive finite number.
    fn ln_gamma_wide(self) -> Wide {
        /// So close to a zero its Taylor series has converged, and Stirling's would cancel too much.
        const CLOSE: i64 = -60;
        let close = |distance: Wide| distance.is_zero() || distance.exponent < CLOSE;
        let from_one = self.minus_one();
        if close(from_one) {
            return wide_special::ln_gamma_next_to_one(from_one);
        }
        let from_two = (self - 2.0).to_wide();
        if close(from_two) {
            // Gamma(2 + t) = (1 + t) Gamma(1 + t).
            return wide_special::ln_gamma_next_to_one(from_two) + from_two.ln_1p();
        }
        wide_special::ln_gamma(self.to_wide())
    }
}

impl Scalar for DoubleDouble {
    type Bool = bool;

    fn sum_with(terms: &[Self], how: Accumulator) -> Self {
        Self::sum_with_over(terms.len(), how, |place| terms[place])
    }
    fn dot_with(a: &[Self], b: &[Self], how: Accumulator) -> Self {
        assert_eq!(a.len(), b.len(), "dot: the slices have {} and {} elements", a.len(), b.len());
        Self::dot_with_over(a.len(), how, |place| (a[place], b[place]))
    }
    /// Compensated sums are the exact ones: nothing cheaper has more digits than a double-double.
    fn sum_with_over(count: usize, how: Accumulator, term: impl Fn(usize) -> Self) -> Self {
        if how == Accumulator::Naive {
            return Self::sum_over(count, term);
        }
        let mut sum = ExactSum::new();
        (0..count).map(term).flat_map(|x| [x.hi, x.lo]).for_each(|part| sum.add(part));
        let hi = sum.to_f64();
        sum.add(-hi);
        Self::from_sum(hi, if hi.is_finite() { sum.to_f64() } else { 0.0 })
    }
    fn dot_with_over(count: usize, how: Accumulator, pair: impl Fn(usize) -> (Self, Self)) -> Self {
        if how == Accumulator::Naive {
            return Self::dot_over(count, pair);
        }
        let mut sum = ExactDot::new();
        for (x, y) in (0..count).map(pair) {
            sum.add_product(x.hi, y.hi);
            for (p, q) in [(x.hi, y.lo), (x.lo, y.hi), (x.lo, y.lo)] {
                // An infinity has no low part; it must not become NaN by a zero.
                if p != 0.0 && q != 0.0 {
                    sum.add_product(p, q);
                }
            }
        }
        let hi = sum.to_f64();
        sum.add(-hi);
        Self::from_sum(hi, if hi.is_finite() { sum.to_f64() } else { 0.0 })
    }
    #[inline]
    fn from_int(n: i32) -> Self {
        n.into()
    }
    #[inline]
    fn constant(name: Constant) -> Self {
        let (hi, lo) = match name {
            Constant::Pi => constants::PI,
            Constant::E => constants::E,
            Constant::Ln2 => constants::LN_2,
            Constant::Ln10 => constants::LN_10,
            Constant::TwoOverSqrtPi => constants::TWO_OVER_SQRT_PI,
        };
        Self { hi, lo }
    }
    #[inline]
    fn from_f64(v: f64) -> Self {
        v.into()
    }
    #[inline]
    fn glance(self) -> Option<f64> {
        Some(self.hi)
    }

    #[inline]
    fn less(self, other: Self) -> bool {
        self < other
    }
    #[inline]
    fn less_eq(self, other: Self) -> bool {
        self <= other
    }
    #[inline]
    fn equal(self, other: Self) -> bool {
        self == other
    }
    #[inline]
    fn select(condition: bool, if_true: Self, if_false: Self) -> Self {
        if condition { if_true } else { if_false }
    }

    #[inline]
    fn strong_mul(self, other: Self) -> Self {
        if self.hi == 0.0 || other.hi == 0.0 {
            let product = self.hi * other.hi;
            return Self::from(if product.is_nan() { 0.0 } else { product });
        }
        self * other
    }
    #[inline]
    fn mul_add(self, factor: Self, addend: Self) -> Self {
        self * factor + addend
    }

    #[inline]
    fn abs(self) -> Self {
        self.abs_value()
    }
    #[inline]
    fn signum(self) -> Self {
        self.hi.signum().into()
    }
    #[inline]
    fn copysign(self, sign: Self) -> Self {
        if self.hi.is_sign_negative() == sign.hi.is_sign_negative() { self } else { -self }
    }
    #[inline]
    fn min(self, other: Self) -> Self {
        if self < other || other.hi.is_nan() { self } else { other }
    }
    #[inline]
    fn max(self, other: Self) -> Self {
        if self > other || other.hi.is_nan() { self } else { other }
    }
    fn floor(self) -> Self {
        let hi = self.hi.floor();
        if hi == self.hi && hi != 0.0 { Self::normalised(hi, self.lo.floor()) } else { hi.into() }
    }
    fn ceil(self) -> Self {
        -(-self).floor()
    }
    fn round(self) -> Self {
        let whole = self.trunc();
        let rest = self - whole;
        if rest.abs_value() < Self::half() { whole } else { whole + self.signum() }
    }
    fn trunc(self) -> Self {
        if self.hi.is_sign_negative() { self.ceil() } else { self.floor() }
    }

    fn powi(self, n: i32) -> Self {
        if n == 0 {
            return Self::one();
        }
        if !self.is_ordinary() {
            return plain::powf(self.hi, n.into()).into();
        }
        let magnitude = self.to_wide().power(n.unsigned_abs());
        if n < 0 { magnitude.recip().into() } else { magnitude.into() }
    }
    fn powf(self, exponent: Self) -> Self {
        let one = Self::one();
        if exponent.hi == 0.0 || self == one {
            return one;
        }
        if exponent.hi.is_nan() {
            return exponent;
        }
        let size = self.abs_value();
        if exponent.hi.is_infinite() && self.is_ordinary() {
            // `hi` alone cannot tell whether the base is above or below 1.
            let grows = (size > one) == (exponent.hi > 0.0);
            return if size == one {
                one
            } else if grows {
                f64::INFINITY.into()
            } else {
                Self::zero()
            };
        }
        if self.is_ordinary() && self.hi < 0.0 && exponent.hi.is_finite() && !exponent.is_integer() {
            return f64::NAN.into();
        }
        let magnitude = if self.is_ordinary() && exponent.is_ordinary() {
            size.positive_power(exponent)
        } else {
            plain::powf(size.hi, exponent.hi).into()
        };
        let negative = self.hi.is_sign_negative() && exponent.hi.is_finite() && exponent.is_odd_integer();
        if negative { -magnitude } else { magnitude }
    }
    #[inline]
    fn sqrt(self) -> Self {
        self.square_root()
    }
    fn cbrt(self) -> Self {
        self.through(plain::cbrt, Wide::cbrt)
    }
    fn hypot(self, other: Self) -> Self {
        if !self.hi.is_finite() || !other.hi.is_finite() {
            return plain::hypot(self.hi, other.hi).into();
        }
        (self.to_wide().square() + other.to_wide().square()).sqrt().into()
    }

    fn exp(self) -> Self {
        self.through_limited(plain::exp, Wide::exp)
    }
    fn exp2(self) -> Self {
        /// Overflow or underflow is certain from here on.
        const LIMIT: f64 = 1200.0;
        if self.hi.abs() > LIMIT || self.hi.is_nan() {
            return plain::exp2(self.hi).into();
        }
        // Splitting off the integer keeps powers of two exact.
        let whole = self.round();
        let fraction = (self - whole).to_wide() * LN_2;
        fraction.exp().scaled(whole.hi as i64).into()
    }
    fn exp_m1(self) -> Self {
        self.through_limited(plain::exp_m1, Wide::exp_m1)
    }
    fn ln(self) -> Self {
        self.logarithm(plain::ln, |ln| ln)
    }
    fn ln_1p(self) -> Self {
        if self.hi <= -0.5 {
            return (self + 1.0).ln();
        }
        self.through(plain::ln_1p, Wide::ln_1p)
    }
    fn log2(self) -> Self {
        self.logarithm(plain::log2, |ln| ln.over(LN_2))
    }
    fn log10(self) -> Self {
        self.logarithm(plain::log10, |ln| ln.over(LN_10))
    }

    fn sin(self) -> Self {
        self.through(plain::sin, |_| self.sin_cos_wide().0)
    }
    fn cos(self) -> Self {
        self.through(plain::cos, |_| self.sin_cos_wide().1)
    }
    fn tan(self) -> Self {
        self.through(plain::tan, |_| {
            let (sin, cos) = self.sin_cos_wide();
            sin.over(cos)
        })
    }
    fn asin(self) -> Self {
        if self.abs_value() > Self::one() {
            return f64::NAN.into();
        }
        self.through(plain::asin, |x| x.atan2(self.cathetus()))
    }
    fn acos(self) -> Self {
        if self.abs_value() > Self::one() || self.hi.is_nan() {
            return f64::NAN.into();
        }
        self.cathetus().atan2(self.to_wide()).into()
    }
    fn atan(self) -> Self {
        if self.hi.is_infinite() {
            return (Self::constant(Constant::Pi) * 0.5).copysign(self);
        }
        self.through(plain::atan, |x| x.atan2(Wide::ONE))
    }
    fn atan2(self, x: Self) -> Self {
        if self.is_ordinary() && x.is_ordinary() {
            return self.to_wide().atan2(x.to_wide()).into();
        }
        // The answer is 0 or a multiple of pi/4: take which one from f64 and the constant from here.
        let eighths = (plain::atan2(self.hi, x.hi) / core::f64::consts::FRAC_PI_4).round();
        if eighths == 0.0 {
            return plain::atan2(self.hi, x.hi).into();
        }
        Self::constant(Constant::Pi) * (eighths * 0.25)
    }
    fn sinh(self) -> Self {
        self.through_limited(plain::sinh, |x| {
            // With m = e^|x| - 1: (m + m/(m+1)) / 2 keeps small results accurate.
            let m = x.abs().exp_m1();
            let result = (m + m.over(m + Wide::ONE)).scaled(-1);
            if x.negative { -result } else { result }
        })
    }
    fn cosh(self) -> Self {
        self.through_limited(plain::cosh, |x| {
            let e = x.exp();
            (e + e.recip()).scaled(-1)
        })
    }
    fn tanh(self) -> Self {
        self.through_limited(plain::tanh, |x| {
            let m = x.scaled(1).exp_m1();
            m.over(m + Wide::ONE.scaled(1))
        })
    }
    fn asinh(self) -> Self {
        self.through(plain::asinh, |x| {
            let size = x.abs();
            let square = size.square();
            let over = square.over(Wide::ONE + (Wide::ONE + square).sqrt());
            let result = (size + over).ln_1p();
            if x.negative { -result } else { result }
        })
    }
    fn acosh(self) -> Self {
        if self < Self::one() {
            return f64::NAN.into();
        }
        self.through(plain::acosh, |_| {
            let t = self.minus_one();
            (t + (t * (t + Wide::ONE.scaled(1))).sqrt()).ln_1p()
        })
    }
    fn atanh(self) -> Self {
        if self.abs_value() >= Self::one() {
            let limit = if self.abs_value() == Self::one() { f64::INFINITY } else { f64::NAN };
            return Self::from(limit).copysign(self);
        }
        self.through(plain::atanh, |x| {
            let ratio = x.abs().scaled(1).over(self.one_minus_magnitude());
            let result = ratio.ln_1p().scaled(-1);
            if x.negative { -result } else { result }
        })
    }

    fn erf(self) -> Self {
        /// From here on `1 - erf` is below 2^-250.
        const SATURATED: f64 = 13.0;
        if self.hi.abs() > SATURATED {
            return self.signum();
        }
        self.through(plain::erf, |x| self.erf_wide(x))
    }
    fn erfc(self) -> Self {
        /// From here on the result underflows, or is 2.
        const SATURATED: f64 = 30.0;
        if self.hi.abs() > SATURATED || !self.is_ordinary() {
            return plain::erfc(self.hi).into();
        }
        let x = self.to_wide();
        if self.hi < SERIES_OF_ERF_UP_TO {
            return (Wide::ONE - self.erf_wide(x)).into();
        }
        wide_special::erfc_far(x).into()
    }
    fn lgamma(self) -> Self {
        /// `x ln x` overflows from here on.
        const OVERFLOWS: f64 = 1e306;
        if !self.is_ordinary() || self.hi > OVERFLOWS {
            return libm::lgamma(self.hi).into();
        }
        if self.hi < 0.0 {
            let offset = self - self.round();
            if offset.hi == 0.0 {
                return f64::INFINITY.into();
            }
            let mirrored = Wide::ONE - self.to_wide();
            return wide_special::ln_gamma_reflected(mirrored, offset.to_wide()).into();
        }
        self.ln_gamma_wide().into()
    }
    fn polygamma(self, order: u32) -> Self {
        special::polygamma(self, order, &DOUBLE_DOUBLE_SERIES)
    }
    fn sin_cos(self) -> (Self, Self) {
        if !self.is_ordinary() {
            return (self.sin(), self.cos());
        }
        let (sin, cos) = self.sin_cos_wide();
        (sin.into(), cos.into())
    }
}
