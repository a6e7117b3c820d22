//! The two number traits.
//!
//! [`Scalar`] is what derivative rules are written in. It has no `bool` and no literals, so that the same
//! rule text also runs on symbols: a comparison gives an abstract [`Scalar::Bool`], a branch is a
//! [`Scalar::select`], and a constant is a name or an integer.
//!
//! [`Real`] is what people write generic code in: real `bool`s, `<`, and `f64` on the right of an operator.

pub(crate) mod order;

use core::fmt::{Debug, Display};
use core::iter::{Product, Sum};
use core::ops::{
    Add, AddAssign, BitAnd, BitOr, Div, DivAssign, Mul, MulAssign, Neg, Not, Rem, RemAssign, Sub, SubAssign,
};

/// What a comparison of two [`Scalar`]s gives: `bool` for numbers, a symbol for symbols.
pub trait Logic: Copy + BitAnd<Output = Self> + BitOr<Output = Self> + Not<Output = Self> {
    /// The truth value, if it is already known.
    fn known(self) -> Option<bool>;
    /// The truth value where there can be only one: of lanes that answer differently, some leave their group
    /// (see [`Lanes`](crate::Lanes)).
    #[inline(always)]
    fn decided(self) -> Option<bool> {
        self.known()
    }
}

impl Logic for bool {
    #[inline(always)]
    fn known(self) -> Option<bool> {
        Some(self)
    }
}

/// The irrational constants that rules mention. Each number type rounds them to its own precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Constant {
    /// The ratio of a circle's circumference to its diameter.
    Pi,
    /// The base of the natural logarithm.
    E,
    /// The natural logarithm of 2.
    Ln2,
    /// The natural logarithm of 10.
    Ln10,
    /// 2 divided by the square root of pi, the slope of `erf` at 0.
    TwoOverSqrtPi,
}

/// How sums and dot products are computed.
///
/// ```
/// use palinode_num::Accumulator;
///
/// let terms = [1.0, 1e100, -1e100];
/// assert_eq!(Accumulator::Naive.sum(&terms), 0.0);
/// assert_eq!(Accumulator::Compensated.sum(&terms), 1.0);
/// assert_eq!(Accumulator::Exact.sum(&terms), 1.0);
///
/// let (a, b) = ([1e30, 1.0, 1e-30], [1e30, 1.0, -1e30]);
/// assert_eq!(Accumulator::Exact.dot(&a, &b), 1e30 * 1e30);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Accumulator {
    /// In the order of [`sums`](crate::sums), every addition rounded.
    #[default]
    Naive,
    /// With the rounding errors summed beside: about twice the digits.
    Compensated,
    /// Rounded once: the nearest number to the real sum, in whatever order.
    Exact,
}

/// A number, as derivative rules see it.
///
/// Values follow `f64`: `max` ignores a NaN, `signum(+0)` is 1, `round` goes away from zero at one half.
/// Comparisons named here (`less`, `equal`, ...) are for rules and are never counted as decisions of the
/// program; `<` and `==` on [`Real`] are.
pub trait Scalar:
    Copy
    + Debug
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Rem<Output = Self>
    + Neg<Output = Self>
{
    /// What a comparison gives.
    type Bool: Logic;

    /// How many levels of derivatives the number carries: 0 for plain numbers, 2 for a `Var<Dual<f64>>`.
    const DEPTH: u32 = 0;
    /// Whether it is a float of the machine, so that loops over slices are worth vector instructions.
    #[doc(hidden)]
    const IS_FLOAT: bool = false;
    /// How many samples it is a number of; see [`Lanes`](crate::Lanes).
    #[doc(hidden)]
    const LANES: usize = 1;

    /// The integer `n`; rounded if the type cannot hold it.
    fn from_int(n: i32) -> Self;
    /// A named constant, rounded to this type.
    fn constant(name: Constant) -> Self;
    /// Data: the nearest number to `v`. Rules use [`Scalar::from_int`] and [`Scalar::constant`] instead.
    fn from_f64(v: f64) -> Self;
    /// The primal as an `f64` for messages, margins and tables; `None` for a symbol. What is decided by it is
    /// not seen as a decision; that something was looked at is.
    #[inline(always)]
    fn peek(self) -> Option<f64> {
        self.glance()
    }
    /// The same where nothing is decided by it: for margins that the rules keep themselves.
    #[doc(hidden)]
    fn glance(self) -> Option<f64>;
    /// The same of one lane.
    #[doc(hidden)]
    #[inline(always)]
    fn glance_at(self, lane: usize) -> Option<f64> {
        debug_assert_eq!(lane, 0);
        self.glance()
    }
    /// Whether this holds for the primal; lanes for which it does not hold as for most leave their group.
    #[doc(hidden)]
    #[inline(always)]
    fn is_so(self, test: impl Fn(f64) -> bool) -> bool {
        self.glance().is_some_and(test)
    }

    /// Zero.
    #[inline(always)]
    fn zero() -> Self {
        Self::from_int(0)
    }
    /// One.
    #[inline(always)]
    fn one() -> Self {
        Self::from_int(1)
    }
    /// One half, exactly.
    #[inline(always)]
    fn half() -> Self {
        Self::from_int(1) / Self::from_int(2)
    }

    /// `self < other`.
    fn less(self, other: Self) -> Self::Bool;
    /// `self <= other`.
    fn less_eq(self, other: Self) -> Self::Bool;
    /// `self == other`.
    fn equal(self, other: Self) -> Self::Bool;
    /// `if_true` where the condition holds, else `if_false`.
    fn select(condition: Self::Bool, if_true: Self, if_false: Self) -> Self;

    /// [`Scalar::select`] that evaluates only the side it needs, where the condition is known.
    #[inline(always)]
    fn branch(
        condition: Self::Bool,
        if_true: impl FnOnce() -> Self,
        if_false: impl FnOnce() -> Self,
    ) -> Self {
        match condition.known() {
            Some(true) => if_true(),
            Some(false) => if_false(),
            None => Self::select(condition, if_true(), if_false()),
        }
    }

    /// Whether this is zero in every component, so that leaving it out of a sum changes nothing.
    /// A zero that still depends on something does not vanish.
    #[inline(always)]
    fn vanishes(self) -> bool {
        self.equal(Self::zero()).decided() == Some(true)
    }
    /// [`vanishes`](Self::vanishes), lane by lane.
    #[doc(hidden)]
    #[inline(always)]
    fn vanishing(self) -> Self::Bool {
        self.equal(Self::zero())
    }
    /// Whether it vanishes in all lanes: a short cut that decides nothing.
    #[doc(hidden)]
    #[inline(always)]
    fn vanishes_everywhere(self) -> bool {
        if const { Self::LANES == 1 } { self.vanishes() } else { self.vanishing().known() == Some(true) }
    }
    /// `if_so` where it vanishes, else `if_not`, lane by lane.
    #[doc(hidden)]
    #[inline(always)]
    fn where_it_vanishes(self, if_so: impl FnOnce() -> Self, if_not: impl FnOnce() -> Self) -> Self {
        if const { Self::LANES > 1 } {
            Self::branch(self.vanishing(), if_so, if_not)
        } else if self.vanishes() {
            if_so()
        } else {
            if_not()
        }
    }
    /// A tangent through a rule with this partial: zero if it vanishes, else their strong product.
    #[doc(hidden)]
    #[inline(always)]
    fn carried(self, partial: Self) -> Self {
        self.where_it_vanishes(Self::zero, || self.strong_mul(partial))
    }
    /// `sum`, with what a tangent contributes to it through a rule with this partial: nothing if it vanishes.
    #[doc(hidden)]
    #[inline(always)]
    fn carried_onto(self, partial: Self, sum: Self) -> Self {
        self.where_it_vanishes(|| sum, || sum + self.strong_mul(partial))
    }

    /// Whether it carries no derivative at any level.
    #[inline(always)]
    fn carries_nothing(self) -> bool {
        true
    }

    /// The product in which a zero factor wins over everything: `0 * inf` and `0 * NaN` are 0.
    ///
    /// Derivative propagation multiplies tangents and cotangents by partials with this product, so that a
    /// branch which contributes nothing cannot poison a gradient.
    fn strong_mul(self, other: Self) -> Self;

    /// Two strong products, `a * p` and `b * q`, with one test for both.
    #[inline(always)]
    fn strong_mul_pair(a: Self, p: Self, b: Self, q: Self) -> (Self, Self) {
        (a.strong_mul(p), b.strong_mul(q))
    }
    /// `sum + self * a`, with a strong product and without touching terms that vanish.
    #[inline(always)]
    fn strong_add_to(self, a: Self, sum: Self) -> Self {
        if self.vanishes() || a.vanishes() {
            sum
        } else if sum.vanishes() {
            self.strong_mul(a)
        } else {
            sum + self.strong_mul(a)
        }
    }
    /// `p * a` for every lane: how a rule of one argument moves many directions at once.
    #[inline(always)]
    fn strong_scale<const N: usize>(p: Self, a: [Self; N]) -> [Self; N] {
        a.map(|a| p.strong_mul(a))
    }
    /// `p * a + q * b` for every lane: how a rule of two arguments does.
    #[inline(always)]
    fn strong_combine<const N: usize>(p: Self, a: [Self; N], q: Self, b: [Self; N]) -> [Self; N] {
        core::array::from_fn(|i| q.strong_add_to(b[i], p.strong_mul(a[i])))
    }
    /// [`strong_combine`](Self::strong_combine) where `pq` is the product `p * q`, which may tell about both
    /// factors: how the product rule does.
    #[inline(always)]
    fn strong_combine_of_product<const N: usize>(
        _pq: Self,
        p: Self,
        a: [Self; N],
        q: Self,
        b: [Self; N],
    ) -> [Self; N] {
        Self::strong_combine(p, a, q, b)
    }
    /// `sum + p * a` for every lane: how a sweep accumulates.
    #[inline(always)]
    fn strong_add<const N: usize>(sum: [Self; N], p: Self, a: [Self; N]) -> [Self; N] {
        core::array::from_fn(|i| p.strong_add_to(a[i], sum[i]))
    }

    /// `1 / self`.
    #[inline(always)]
    fn recip(self) -> Self {
        Self::one() / self
    }
    /// `self * factor + addend`, with one rounding where the type can.
    fn mul_add(self, factor: Self, addend: Self) -> Self;

    /// Absolute value.
    fn abs(self) -> Self;
    /// 1 with the sign of `self` (the sign bit decides at zero); NaN for NaN.
    fn signum(self) -> Self;
    /// The magnitude of `self` with the sign of `sign`.
    fn copysign(self, sign: Self) -> Self;
    /// The smaller of the two; a NaN is ignored.
    fn min(self, other: Self) -> Self;
    /// The larger of the two; a NaN is ignored.
    fn max(self, other: Self) -> Self;
    /// `self` held between `low` and `high`. Unlike `f64::clamp` it does not panic when `low > high`: `high`
    /// wins.
    #[inline(always)]
    fn clamp(self, low: Self, high: Self) -> Self {
        let at_least_low = Self::select(self.less(low), low, self);
        Self::select(high.less(at_least_low), high, at_least_low)
    }
    /// The largest integer not above `self`.
    fn floor(self) -> Self;
    /// The smallest integer not below `self`.
    fn ceil(self) -> Self;
    /// The nearest integer, halves away from zero.
    fn round(self) -> Self;
    /// The integer part.
    fn trunc(self) -> Self;
    /// `self - self.trunc()`.
    #[inline(always)]
    fn fract(self) -> Self {
        self - self.trunc()
    }

    /// `self` to an integer power.
    fn powi(self, n: i32) -> Self;
    /// `self` to a real power.
    fn powf(self, exponent: Self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Cube root.
    fn cbrt(self) -> Self;
    /// `sqrt(self^2 + other^2)` without overflow on the way.
    fn hypot(self, other: Self) -> Self;

    /// `e^self`.
    fn exp(self) -> Self;
    /// `2^self`.
    fn exp2(self) -> Self;
    /// `e^self - 1`, accurate near 0.
    fn exp_m1(self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// `ln(1 + self)`, accurate near 0.
    fn ln_1p(self) -> Self;
    /// Logarithm to base 2.
    fn log2(self) -> Self;
    /// Logarithm to base 10.
    fn log10(self) -> Self;

    /// Sine.
    fn sin(self) -> Self;
    /// Cosine.
    fn cos(self) -> Self;
    /// Tangent.
    fn tan(self) -> Self;
    /// Arc sine.
    fn asin(self) -> Self;
    /// Arc cosine.
    fn acos(self) -> Self;
    /// Arc tangent.
    fn atan(self) -> Self;
    /// The angle of the point `(x, self)`: `self` is y.
    fn atan2(self, x: Self) -> Self;
    /// Hyperbolic sine.
    fn sinh(self) -> Self;
    /// Hyperbolic cosine.
    fn cosh(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// Inverse hyperbolic sine.
    fn asinh(self) -> Self;
    /// Inverse hyperbolic cosine.
    fn acosh(self) -> Self;
    /// Inverse hyperbolic tangent.
    fn atanh(self) -> Self;

    /// The error function.
    fn erf(self) -> Self;
    /// `1 - erf(self)`, accurate for large arguments.
    fn erfc(self) -> Self;
    /// The logarithm of the absolute value of the gamma function.
    fn lgamma(self) -> Self;
    /// The polygamma function of the given order: order 0 is digamma, the derivative of [`Scalar::lgamma`].
    fn polygamma(self, order: u32) -> Self;

    /// `1 / (1 + e^-self)`, without overflow.
    #[inline]
    fn logistic(self) -> Self {
        let e = (-self.abs()).exp();
        let small_side = e / (Self::one() + e);
        Self::select(self.less(Self::zero()), small_side, (Self::one() + e).recip())
    }
    /// `ln(1 + e^self)`, without overflow.
    #[inline]
    fn softplus(self) -> Self {
        (-self.abs()).exp().ln_1p() + self.relu()
    }
    /// `max(self, 0)`; a NaN stays NaN.
    #[inline(always)]
    fn relu(self) -> Self {
        Self::select(self.less(Self::zero()), Self::zero(), self)
    }

    /// The sum of many numbers in the order of [`sums`](crate::sums). A tape records it as one node.
    #[inline]
    fn sum_of(terms: &[Self]) -> Self {
        Self::sum_over(terms.len(), |place| terms[place])
    }
    /// [`sum_of`](Self::sum_of) of the terms at the places 0 to `count`. A term must be there already,
    /// because it may be asked for several times, and while a tape is written to.
    #[inline]
    fn sum_over(count: usize, term: impl Fn(usize) -> Self) -> Self {
        order::sum_over(count, term)
    }
    /// The dot product of two slices of one length: the sum of their products. A tape records it as one node.
    ///
    /// ```
    /// use palinode_num::Scalar;
    ///
    /// let (a, b) = ([0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8]);
    /// let products: [f64; 4] = std::array::from_fn(|i| a[i] * b[i]);
    /// assert_eq!(f64::dot(&a, &b), f64::sum_of(&products));
    /// ```
    ///
    /// # Panics
    /// If the lengths differ.
    #[inline]
    fn dot(a: &[Self], b: &[Self]) -> Self {
        assert_eq!(a.len(), b.len(), "dot: the slices have {} and {} elements", a.len(), b.len());
        Self::dot_over(a.len(), |place| (a[place], b[place]))
    }
    /// [`dot`](Self::dot) of the pairs at the places 0 to `count`, which must be there already.
    #[inline]
    fn dot_over(count: usize, pair: impl Fn(usize) -> (Self, Self)) -> Self {
        Self::sum_over(count, |place| {
            let (a, b) = pair(place);
            a * b
        })
    }
    /// [`dot_over`](Self::dot_over) of strong products: a zero factor wins over everything, as in
    /// [`strong_mul`](Self::strong_mul), in its place of the order.
    #[inline]
    fn strong_dot_over(count: usize, pair: impl Fn(usize) -> (Self, Self)) -> Self {
        order::strong_dot_over(count, pair)
    }
    /// An entry of a product of matrices: `c = a * b + c` with one rounding each, where the type can, from
    /// `start` over the pairs at the places 0 to `count`, which must be there already. A tape records it as
    /// one node.
    #[inline]
    fn chain_over(start: Self, count: usize, pair: impl Fn(usize) -> (Self, Self)) -> Self {
        (0..count).fold(start, |sum, place| {
            let (a, b) = pair(place);
            a.mul_add(b, sum)
        })
    }
    /// [`chain_over`](Self::chain_over) without the products in which a zero wins over infinity or NaN.
    #[inline]
    fn strong_chain_over(start: Self, count: usize, pair: impl Fn(usize) -> (Self, Self)) -> Self {
        order::strong_chain_over(start, count, pair)
    }
    /// [`sum_of`](Self::sum_of), accumulated as asked for. A number with derivatives accumulates its value
    /// and every tangent that way. Numbers that only write down what is computed (symbols) have no sum to
    /// choose.
    ///
    /// ```
    /// use palinode_num::{Accumulator, Scalar};
    ///
    /// assert_eq!(f64::sum_with(&[1.0, 1e100, -1e100], Accumulator::Naive), 0.0);
    /// assert_eq!(f64::sum_with(&[1.0, 1e100, -1e100], Accumulator::Exact), 1.0);
    /// ```
    #[inline]
    fn sum_with(terms: &[Self], how: Accumulator) -> Self {
        let _ = how;
        Self::sum_of(terms)
    }
    /// [`dot`](Self::dot), accumulated as asked for; see [`sum_with`](Self::sum_with).
    ///
    /// # Panics
    /// If the lengths differ.
    #[inline]
    fn dot_with(a: &[Self], b: &[Self], how: Accumulator) -> Self {
        let _ = how;
        Self::dot(a, b)
    }
    /// [`dot_with`](Self::dot_with) of strong products: a zero factor wins over everything, as in
    /// [`strong_mul`](Self::strong_mul), also a zero that carries derivatives. Infinities and NaNs that are
    /// left count as the accumulator says.
    ///
    /// ```
    /// use palinode_num::{Accumulator, Scalar};
    ///
    /// let (a, b) = ([0.0, f64::INFINITY, 1e200, 1e200], [f64::NAN, 1.0, 1e200, -1e200]);
    /// assert!(f64::strong_dot_with(&a, &b, Accumulator::Naive).is_nan()); // 1e400 overflows on the way
    /// assert_eq!(f64::strong_dot_with(&a, &b, Accumulator::Exact), f64::INFINITY);
    /// ```
    ///
    /// # Panics
    /// If the lengths differ.
    fn strong_dot_with(a: &[Self], b: &[Self], how: Accumulator) -> Self {
        assert_eq!(a.len(), b.len(), "dot: the slices have {} and {} elements", a.len(), b.len());
        // Glances: that zeros win is a convention of the rules, and no decision of the program.
        if order::all_finite(a) && order::all_finite(b) {
            return Self::dot_with(a, b, how);
        }
        Self::strong_dot_with_over(a.len(), how, |place| (a[place], b[place]))
    }
    /// [`sum_with`](Self::sum_with) of the terms at the places 0 to `count`, which must be there already.
    fn sum_with_over(count: usize, how: Accumulator, term: impl Fn(usize) -> Self) -> Self {
        match how {
            Accumulator::Naive => Self::sum_over(count, term),
            _ => Self::sum_with(&(0..count).map(term).collect::<Vec<Self>>(), how),
        }
    }
    /// [`dot_with`](Self::dot_with) of the pairs at the places 0 to `count`, which must be there already.
    fn dot_with_over(count: usize, how: Accumulator, pair: impl Fn(usize) -> (Self, Self)) -> Self {
        if how == Accumulator::Naive {
            return Self::dot_over(count, pair);
        }
        let (a, b): (Vec<Self>, Vec<Self>) = (0..count).map(pair).unzip();
        Self::dot_with(&a, &b, how)
    }
    /// [`strong_dot_with`](Self::strong_dot_with) of the pairs at the places 0 to `count`, which must be
    /// there already.
    fn strong_dot_with_over(count: usize, how: Accumulator, pair: impl Fn(usize) -> (Self, Self)) -> Self {
        order::strong_dot_with_over(count, how, pair)
    }

    /// `offset` plus the sum of `coefficients[i] * x[i]`, with constant coefficients. A tape records it as
    /// one node.
    ///
    /// # Panics
    /// If the lengths differ.
    #[inline]
    fn affine(offset: Self, coefficients: &[f64], x: &[Self]) -> Self {
        let (n, m) = (coefficients.len(), x.len());
        assert_eq!(n, m, "affine: {n} coefficients for {m} numbers");
        offset + Self::sum_over(n, |place| Self::from_f64(coefficients[place]) * x[place])
    }

    /// Sine and cosine of the same angle; one evaluation where the type can share it.
    #[inline(always)]
    fn sin_cos(self) -> (Self, Self) {
        (self.sin(), self.cos())
    }
}

/// A number to write ordinary generic code in.
///
/// ```
/// use palinode_num::Real;
///
/// fn logistic_map<S: Real>(r: S, x: S) -> S {
///     if x > 1.0 { x * 0.5 } else { r * x * (-x + 1.0) }
/// }
/// assert_eq!(logistic_map(3.0, 0.5), 0.75);
/// ```
///
/// `f32` is a [`Scalar`] but not a `Real`, because Rust does not let us add `f32 + f64`; generic code runs
/// in single precision on `Var<f32>` and `Dual<f32>`.
pub trait Real:
    Scalar
    + Display
    + PartialEq
    + PartialOrd
    + PartialEq<f64>
    + PartialOrd<f64>
    + Add<f64, Output = Self>
    + Sub<f64, Output = Self>
    + Mul<f64, Output = Self>
    + Div<f64, Output = Self>
    + Rem<f64, Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + RemAssign
    + AddAssign<f64>
    + SubAssign<f64>
    + MulAssign<f64>
    + DivAssign<f64>
    + RemAssign<f64>
    + Sum
    + for<'a> Sum<&'a Self>
    + Product
    + for<'a> Product<&'a Self>
{
    /// The primal as an `f64`. Of an active value this is a decision: what is computed from it has no
    /// derivative.
    fn to_f64(self) -> f64;
    /// Whether the primal is NaN.
    #[inline]
    fn is_nan(self) -> bool {
        self.peek().is_some_and(f64::is_nan)
    }
    /// Whether the primal is neither infinite nor NaN.
    #[inline]
    fn is_finite(self) -> bool {
        self.peek().is_some_and(f64::is_finite)
    }
}
