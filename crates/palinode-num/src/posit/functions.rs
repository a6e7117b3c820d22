//! `Scalar` and `Real` for posits.
//!
//! What is guaranteed
//!
//! | function | 8, 16, 32 bits | 64 bits |
//! |---|---|---|
//! | `+ - * / %`, `mul_add`, `sqrt`, `recip`, `powi` of -1 to 2, whole numbers | correctly rounded | correctly rounded |
//! | elementary functions, `powi`, `powf`, `hypot`, `atan2`, `erf`, `erfc`, `lgamma` for `x > 0`, `logistic`, `softplus`, constants | correctly rounded (1) | within 0.5 + 2^-40 ulp (2) |
//! | `polygamma`, `lgamma` for `x < 0` | as above, but next to a zero of the function the error is small against the terms that cancel | the same |
//!
//! (1) The result is taken from the `f64` function where everything within 2^-45 of it rounds to
//! the same posit; otherwise, about once in 2^16 calls, from the double-double function, which errs by less
//! than 2^-100. Functions of one argument are tested against mpmath at every argument of 8 and 16 bits, those
//! of two at every pair of 8, all of them at a million arguments of 32 and of 64 bits, half of these next to
//! borders. For 32 bits it would take a true value within 2^-100 of a border to be rounded the other way,
//! which is not expected of transcendental functions in so short a format, but not proved. (2) The
//! double-double function, rounded once. Two microseconds or so each.
//!
//! Invariants: NaR in, NaR out. A pole or an argument outside the domain is NaR. What overflows is the
//! largest number, what underflows the smallest, never 0.
//!
//! In the comparisons of rules (`less`, `less_eq`, `equal`) a NaR is unordered, as a NaN is for floats: rules
//! were written so that it takes no side. `<` and `==` follow the standard.

use super::arithmetic::{Whole, square_root, whole};
use super::{Posit, PositWidth};
use crate::double_double::DoubleDouble;
use crate::scalar::{Accumulator, Constant, Real, Scalar};

/// What functions of `f64` may be off by, relatively: 128 units in the last place, far more than any is.
const MARGIN: f64 = 1.0 / (1u64 << 45) as f64;

/// Below this slope an angle is the slope but for less than 2^-81 of it.
const TINY: f64 = 1.0 / (1u64 << 40) as f64;

/// More than double-double loses of a slope, less than matters anywhere but on a border.
const A_LITTLE: f64 = TINY * TINY / (1u64 << 20) as f64;

/// A function of one argument, at both precisions.
type Both = (fn(f64) -> f64, fn(DoubleDouble) -> DoubleDouble);
/// A function of two arguments, at both precisions.
type BothOfTwo = (fn(f64, f64) -> f64, fn(DoubleDouble, DoubleDouble) -> DoubleDouble);

impl<W: PositWidth> Posit<W> {
    /// The posit nearest to a value of which only this much is known, if all it may be rounds to the same. Up
    /// to 32 bits `f64`s know enough for that.
    #[inline]
    fn surely(near: impl FnOnce() -> f64) -> Option<Self> {
        if W::BITS > 32 {
            return None;
        }
        let near = near();
        if !near.is_finite() || near == 0.0 {
            return None;
        }
        let (below, above) = (Self::from_f64(near - near * MARGIN), Self::from_f64(near + near * MARGIN));
        (below == above).then_some(below)
    }

    /// `f(self)`, where an infinite value is a pole.
    fn through(self, (plain, precise): Both) -> Self {
        if self.is_nar() {
            return self;
        }
        Self::surely(|| plain(self.to_f64()))
            .unwrap_or_else(|| Self::from_double_double(precise(self.to_double_double())))
    }

    /// `f(self)`, where an infinite value is an overflow and a zero an underflow, unless `self` is zero.
    fn growing(self, (plain, precise): Both) -> Self {
        if self.is_nar() {
            return self;
        }
        Self::surely(|| plain(self.to_f64()))
            .unwrap_or_else(|| Self::saturated(precise(self.to_double_double()), self.is_zero()))
    }

    /// The nearest posit, where infinities are overflows and zeros, unless they are true, positive
    /// underflows.
    fn saturated(v: DoubleDouble, zero_is_true: bool) -> Self {
        if v.hi().is_infinite() {
            return if v.hi() > 0.0 { Self::MAX } else { -Self::MAX };
        }
        if v.hi() == 0.0 && !zero_is_true { Self::MIN_POSITIVE } else { Self::from_double_double(v) }
    }

    /// `f(self, other)`, both finite.
    fn through_two(self, other: Self, (plain, precise): BothOfTwo) -> Self {
        if self.is_nar() || other.is_nar() {
            return Self::NAR;
        }
        Self::surely(|| plain(self.to_f64(), other.to_f64())).unwrap_or_else(|| {
            Self::from_double_double(precise(self.to_double_double(), other.to_double_double()))
        })
    }

    fn whole(self, how: Whole) -> Self {
        match self.unpack() {
            Some(number) => Self::nearest_or_zero(whole(number, how)),
            None => self,
        }
    }

    fn is_integer(self) -> bool {
        self.whole(Whole::Trunc) == self
    }

    /// Zero or below, and a whole number: where the gamma function has its poles.
    fn is_pole_of_gamma(self) -> bool {
        self <= Self::ZERO && self.is_integer()
    }

    fn is_odd_integer(self) -> bool {
        self.is_integer()
            && self
                .unpack()
                .is_some_and(|x| (0..64).contains(&x.scale) && x.significand >> (63 - x.scale) & 1 == 1)
    }
}

/// The function of this name for `f64` and for double-doubles.
macro_rules! both {
    ($name:ident) => {
        (<f64 as Scalar>::$name, <DoubleDouble as Scalar>::$name)
    };
}

macro_rules! elementary {
    ($how:ident: $($name:ident)*) => {
        $(fn $name(self) -> Self {
            self.$how(both!($name))
        })*
    };
}

impl<W: PositWidth> Scalar for Posit<W> {
    type Bool = bool;

    fn sum_with(terms: &[Self], how: Accumulator) -> Self {
        how.sum(terms)
    }
    fn dot_with(a: &[Self], b: &[Self], how: Accumulator) -> Self {
        how.dot(a, b)
    }
    fn sum_with_over(count: usize, how: Accumulator, term: impl Fn(usize) -> Self) -> Self {
        how.sum_over(count, term)
    }
    fn dot_with_over(count: usize, how: Accumulator, pair: impl Fn(usize) -> (Self, Self)) -> Self {
        how.dot_over(count, pair)
    }
    #[inline]
    fn from_int(n: i32) -> Self {
        Self::from_integer(n)
    }
    fn constant(name: Constant) -> Self {
        Self::from_double_double(DoubleDouble::constant(name))
    }
    #[inline]
    fn from_f64(v: f64) -> Self {
        Self::from_f64(v)
    }
    #[inline]
    fn glance(self) -> Option<f64> {
        Some(self.to_f64())
    }
    #[inline(always)]
    fn zero() -> Self {
        Self::ZERO
    }
    #[inline(always)]
    fn one() -> Self {
        Self::ONE
    }

    #[inline]
    fn less(self, other: Self) -> bool {
        self < other && !self.is_nar()
    }
    #[inline]
    fn less_eq(self, other: Self) -> bool {
        self <= other && !self.is_nar()
    }
    #[inline]
    fn equal(self, other: Self) -> bool {
        self == other && !self.is_nar()
    }
    #[inline]
    fn select(condition: bool, if_true: Self, if_false: Self) -> Self {
        if condition { if_true } else { if_false }
    }

    #[inline]
    fn strong_mul(self, other: Self) -> Self {
        if self.is_zero() || other.is_zero() { Self::ZERO } else { self * other }
    }
    #[inline]
    fn mul_add(self, factor: Self, addend: Self) -> Self {
        self.fused_mul_add(factor, addend)
    }

    #[inline]
    fn abs(self) -> Self {
        if self < Self::ZERO { -self } else { self }
    }
    #[inline]
    fn signum(self) -> Self {
        if self.is_nar() {
            self
        } else if self < Self::ZERO {
            -Self::ONE
        } else {
            Self::ONE
        }
    }
    #[inline]
    fn copysign(self, sign: Self) -> Self {
        if sign.is_nar() {
            return sign;
        }
        let size = self.abs();
        if sign < Self::ZERO { -size } else { size }
    }
    #[inline]
    fn min(self, other: Self) -> Self {
        self.min(other)
    }
    #[inline]
    fn max(self, other: Self) -> Self {
        self.max(other)
    }
    #[inline]
    fn clamp(self, low: Self, high: Self) -> Self {
        self.clamp(low, high)
    }
    fn floor(self) -> Self {
        self.whole(Whole::Floor)
    }
    fn ceil(self) -> Self {
        self.whole(Whole::Ceil)
    }
    fn round(self) -> Self {
        self.whole(Whole::Round)
    }
    fn trunc(self) -> Self {
        self.whole(Whole::Trunc)
    }

    fn powi(self, n: i32) -> Self {
        match n {
            _ if self.is_nar() => self,
            0 => Self::ONE,
            1 => self,
            2 => self * self,
            -1 => Self::ONE / self,
            _ if self.is_zero() => {
                if n > 0 {
                    self
                } else {
                    Self::NAR
                }
            }
            _ => {
                let size = self.abs();
                let magnitude = Self::surely(|| Scalar::powi(size.to_f64(), n))
                    .unwrap_or_else(|| Self::saturated(size.to_double_double().powi(n), false));
                if self.is_negative() && n % 2 != 0 { -magnitude } else { magnitude }
            }
        }
    }
    fn powf(self, exponent: Self) -> Self {
        if self.is_nar() || exponent.is_nar() {
            return Self::NAR;
        }
        if exponent.is_zero() {
            return Self::ONE;
        }
        if self.is_zero() {
            return if exponent.is_negative() { Self::NAR } else { self };
        }
        if self.is_negative() && !exponent.is_integer() {
            return Self::NAR;
        }
        let size = self.abs();
        let magnitude =
            Self::surely(|| Scalar::powf(size.to_f64(), exponent.to_f64())).unwrap_or_else(|| {
                Self::saturated(size.to_double_double().powf(exponent.to_double_double()), false)
            });
        if self.is_negative() && exponent.is_odd_integer() { -magnitude } else { magnitude }
    }
    fn sqrt(self) -> Self {
        match self.unpack() {
            None => self,
            Some(number) if number.negative => Self::NAR,
            Some(number) => Self::nearest(square_root(number, W::BITS <= 32)),
        }
    }
    fn hypot(self, other: Self) -> Self {
        self.through_two(other, both!(hypot))
    }
    fn atan2(self, x: Self) -> Self {
        if x > Self::ZERO {
            let slope = self.to_double_double() / x.to_double_double();
            if slope.hi().abs() < TINY {
                // Below the slope by a third of its cube, which double-double would not see where the slope
                // is on a border.
                return Self::from_double_double(slope - slope * A_LITTLE);
            }
        }
        self.through_two(x, both!(atan2))
    }

    elementary! { through:
        cbrt ln ln_1p log2 log10 sin cos tan asin acos atan tanh asinh acosh atanh erf
    }
    elementary! { growing: exp exp2 exp_m1 sinh cosh erfc logistic softplus }

    fn lgamma(self) -> Self {
        if self.is_nar() || self.is_pole_of_gamma() {
            return Self::NAR;
        }
        // Next to its zeros the platform's function is accurate against 1, not against itself.
        Self::from_double_double(self.to_double_double().lgamma())
    }
    fn polygamma(self, order: u32) -> Self {
        if self.is_nar() || self.is_pole_of_gamma() {
            return Self::NAR;
        }
        let value = self.to_double_double().polygamma(order);
        let underflows = !self.is_negative() && order > 0 && value.hi() == 0.0;
        // For positive arguments even orders are negative.
        match underflows {
            true if order.is_multiple_of(2) => -Self::MIN_POSITIVE,
            true => Self::MIN_POSITIVE,
            false => Self::saturated(value, true),
        }
    }
}

impl<W: PositWidth> Real for Posit<W> {
    #[inline]
    fn to_f64(self) -> f64 {
        self.to_f64()
    }
    #[inline]
    fn is_nan(self) -> bool {
        self.is_nar()
    }
    #[inline]
    fn is_finite(self) -> bool {
        !self.is_nar()
    }
}
