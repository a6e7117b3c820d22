//! [`Lanes`] as a [`Scalar`] and a [`Real`].
//!
//! Invariant: whatever is computed in a lane is what `f64` computes, by the same functions; where `f64` takes
//! a short cut that changes the sign of a zero, so does each lane.

use super::{Lanes, Mask, group};
use crate::elementary::{Function, FunctionOfTwo, Operand};
use crate::machine::{Task, on_this_machine};
use crate::operators::operators_with_f64;
use crate::scalar::{Accumulator, Constant, Logic, Real, Scalar};
use core::cmp::Ordering;
use core::fmt::{self, Display, Formatter, LowerExp};
use core::ops::{Add, Div, Mul, Neg, Rem, Sub};

macro_rules! operators {
    ($($Operator:ident $operator:ident)*) => {$(
        impl<const N: usize> $Operator for Lanes<N> {
            type Output = Self;
            #[inline(always)]
            fn $operator(self, other: Self) -> Self {
                self.zip(other, f64::$operator)
            }
        }
    )*};
}
operators! { Add add Sub sub Mul mul Div div Rem rem }
operators_with_f64! { [const N: usize] Lanes<N> }

impl<const N: usize> Neg for Lanes<N> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        self.map(f64::neg)
    }
}

/// A function that lanes have from `f64`.
macro_rules! each {
    ($($name:ident($($arg:ident: $Arg:ty),*))*) => {$(
        #[inline(always)]
        fn $name(self $(, $arg: $Arg)*) -> Self {
            self.map(|x| Scalar::$name(x $(, $arg)*))
        }
    )*};
}

macro_rules! each_of_two {
    ($($name:ident)*) => {$(
        #[inline(always)]
        fn $name(self, other: Self) -> Self {
            self.zip(other, Scalar::$name)
        }
    )*};
}

/// An elementary function, of all lanes at once.
macro_rules! elementary {
    ($($name:ident $Function:ident)*) => {$(
        #[inline]
        fn $name(mut self) -> Self {
            Function::$Function.in_place(&mut self.0);
            self
        }
    )*};
}

macro_rules! elementary_of_two {
    ($($name:ident $Function:ident)*) => {$(
        #[inline]
        fn $name(self, other: Self) -> Self {
            let mut values = [0.0; N];
            FunctionOfTwo::$Function.of_slices(Operand::Each(&self.0), Operand::Each(&other.0), &mut values);
            Lanes(values)
        }
    )*};
}

/// Fused multiplications and additions of lanes. (Only in a task are they instructions.)
struct MultiplyAdd<'a, const N: usize>(&'a [f64; N], &'a [f64; N], &'a [f64; N]);

impl<const N: usize> Task for MultiplyAdd<'_, N> {
    type Output = [f64; N];
    #[inline(always)]
    fn run(self) -> [f64; N] {
        core::array::from_fn(|lane| self.0[lane].mul_add(self.1[lane], self.2[lane]))
    }
}

struct Chain<const N: usize, P> {
    start: Lanes<N>,
    count: usize,
    pair: P,
}

impl<const N: usize, P: Fn(usize) -> (Lanes<N>, Lanes<N>)> Task for Chain<N, P> {
    type Output = Lanes<N>;
    #[inline(always)]
    fn run(self) -> Lanes<N> {
        let mut sum = self.start;
        for place in 0..self.count {
            let (a, b) = (self.pair)(place);
            sum = Lanes(MultiplyAdd(&a.0, &b.0, &sum.0).run());
        }
        sum
    }
}

// What follows is what `f64` does with branches, written without, so that loops over lanes become vectors.
// (One branch for all lanes, with a cold call, is slower: lanes that such a call might take stay in memory.)

/// Whether a plain product with it is a strong one.
#[inline(always)]
fn is_tame(factor: f64) -> bool {
    (factor != 0.0) & (factor.abs() < f64::INFINITY)
}

#[inline(always)]
fn strong(a: f64, b: f64) -> f64 {
    let product = a * b;
    if product.is_nan() & ((a == 0.0) | (b == 0.0)) { 0.0 } else { product }
}

#[inline(always)]
fn scaled(p: f64, a: f64) -> f64 {
    if is_tame(p) { p * a } else { strong(p, a) + 0.0 }
}

#[inline(always)]
fn combined(is_tame: bool, p: f64, a: f64, q: f64, b: f64) -> f64 {
    let tame = if cfg!(target_feature = "fma") { q.mul_add(b, p * a) } else { p * a + q * b };
    if is_tame { tame } else { strong(p, a) + strong(q, b) }
}

#[inline(always)]
fn added(p: f64, a: f64, sum: f64) -> f64 {
    let product = strong(p, a);
    let with = if sum == 0.0 { product } else { sum + product };
    if (p == 0.0) | (a == 0.0) { sum } else { with }
}

impl<const N: usize> Scalar for Lanes<N> {
    type Bool = Mask<N>;
    const LANES: usize = N;

    #[inline(always)]
    fn from_int(n: i32) -> Self {
        Self::splat(f64::from(n))
    }
    #[inline(always)]
    fn constant(name: Constant) -> Self {
        Self::splat(f64::constant(name))
    }
    #[inline(always)]
    fn from_f64(v: f64) -> Self {
        Self::splat(v)
    }
    /// One plain number for all lanes: those with another one leave their group.
    #[inline(always)]
    fn glance(self) -> Option<f64> {
        Some(group::common(&self.0))
    }
    #[inline(always)]
    fn glance_at(self, lane: usize) -> Option<f64> {
        Some(self.0[lane])
    }
    #[inline(always)]
    fn is_so(self, test: impl Fn(f64) -> bool) -> bool {
        group::decide(&self.0.map(test))
    }

    #[inline(always)]
    fn less(self, other: Self) -> Mask<N> {
        self.ask(other, |a, b| a < b)
    }
    #[inline(always)]
    fn less_eq(self, other: Self) -> Mask<N> {
        self.ask(other, |a, b| a <= b)
    }
    #[inline(always)]
    fn equal(self, other: Self) -> Mask<N> {
        self.ask(other, |a, b| a == b)
    }
    #[inline(always)]
    fn select(condition: Mask<N>, if_true: Self, if_false: Self) -> Self {
        Lanes(core::array::from_fn(|lane| if condition.0[lane] { if_true.0[lane] } else { if_false.0[lane] }))
    }

    #[inline(always)]
    fn strong_mul(self, other: Self) -> Self {
        self.zip(other, strong)
    }
    #[inline(always)]
    fn strong_add_to(self, a: Self, sum: Self) -> Self {
        Lanes(core::array::from_fn(|lane| added(self.0[lane], a.0[lane], sum.0[lane])))
    }
    #[inline(always)]
    fn strong_scale<const K: usize>(p: Self, a: [Self; K]) -> [Self; K] {
        a.map(|a| p.zip(a, scaled))
    }
    #[inline(always)]
    fn strong_combine<const K: usize>(p: Self, a: [Self; K], q: Self, b: [Self; K]) -> [Self; K] {
        let are_tame = p.ask(q, |p, q| is_tame(p) & is_tame(q));
        core::array::from_fn(|i| {
            Self::from_fn(|l| combined(are_tame.0[l], p.0[l], a[i].0[l], q.0[l], b[i].0[l]))
        })
    }
    #[inline(always)]
    fn strong_combine_of_product<const K: usize>(
        pq: Self,
        p: Self,
        a: [Self; K],
        q: Self,
        b: [Self; K],
    ) -> [Self; K] {
        core::array::from_fn(|i| {
            Self::from_fn(|l| combined(is_tame(pq.0[l]), p.0[l], a[i].0[l], q.0[l], b[i].0[l]))
        })
    }
    #[inline(always)]
    fn strong_add<const K: usize>(sum: [Self; K], p: Self, a: [Self; K]) -> [Self; K] {
        core::array::from_fn(|i| sum[i] + p.zip(a[i], strong))
    }
    #[inline]
    fn mul_add(self, factor: Self, addend: Self) -> Self {
        Lanes(on_this_machine(MultiplyAdd(&self.0, &factor.0, &addend.0)))
    }

    #[inline(always)]
    fn recip(self) -> Self {
        self.map(f64::recip)
    }
    each! {
        abs() signum() floor() ceil() round() trunc() fract() sqrt()
        lgamma() polygamma(order: u32)
    }
    each_of_two! { copysign min max }
    elementary! {
        cbrt Cbrt exp Exp exp2 Exp2 exp_m1 ExpM1 ln Ln ln_1p Ln1p log2 Log2 log10 Log10
        sin Sin cos Cos tan Tan asin Asin acos Acos atan Atan
        sinh Sinh cosh Cosh tanh Tanh asinh Asinh acosh Acosh atanh Atanh
        erf Erf erfc Erfc logistic Logistic softplus Softplus
    }
    elementary_of_two! { powf Powf hypot Hypot atan2 Atan2 }

    fn powi(self, n: i32) -> Self {
        match n {
            -1..=3 => self.map(|x| Scalar::powi(x, n)),
            _ => self.powf(Self::from_int(n)),
        }
    }

    #[inline]
    fn chain_over(start: Self, count: usize, pair: impl Fn(usize) -> (Self, Self)) -> Self {
        on_this_machine(Chain { start, count, pair })
    }
    fn sum_with(terms: &[Self], how: Accumulator) -> Self {
        Self::sum_with_over(terms.len(), how, |place| terms[place])
    }
    fn dot_with(a: &[Self], b: &[Self], how: Accumulator) -> Self {
        assert_eq!(a.len(), b.len(), "dot: the slices have {} and {} elements", a.len(), b.len());
        Self::dot_with_over(a.len(), how, |place| (a[place], b[place]))
    }
    fn sum_with_over(count: usize, how: Accumulator, term: impl Fn(usize) -> Self) -> Self {
        if how == Accumulator::Naive {
            return Self::sum_over(count, term);
        }
        Self::from_fn(|lane| how.sum_over(count, |place| term(place).0[lane]))
    }
    fn dot_with_over(count: usize, how: Accumulator, pair: impl Fn(usize) -> (Self, Self)) -> Self {
        if how == Accumulator::Naive {
            return Self::dot_over(count, pair);
        }
        let of_lane = |(a, b): (Self, Self), lane: usize| (a.0[lane], b.0[lane]);
        Self::from_fn(|lane| how.dot_over(count, |place| of_lane(pair(place), lane)))
    }
}

impl<const N: usize> PartialEq for Lanes<N> {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.equal(*other).decided() == Some(true)
    }
}

impl<const N: usize> PartialOrd for Lanes<N> {
    #[inline(always)]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let holds = |mask: Mask<N>| mask.decided() == Some(true);
        if holds(self.less(*other)) {
            Some(Ordering::Less)
        } else if holds(other.less(*self)) {
            Some(Ordering::Greater)
        } else {
            holds(self.equal(*other)).then_some(Ordering::Equal)
        }
    }
    #[inline(always)]
    fn lt(&self, other: &Self) -> bool {
        self.less(*other).decided() == Some(true)
    }
    #[inline(always)]
    fn le(&self, other: &Self) -> bool {
        self.less_eq(*other).decided() == Some(true)
    }
    #[inline(always)]
    fn gt(&self, other: &Self) -> bool {
        other.less(*self).decided() == Some(true)
    }
    #[inline(always)]
    fn ge(&self, other: &Self) -> bool {
        other.less_eq(*self).decided() == Some(true)
    }
}

impl<const N: usize> Real for Lanes<N> {
    #[inline]
    fn to_f64(self) -> f64 {
        group::common(&self.0)
    }
    #[inline]
    fn is_nan(self) -> bool {
        self.is_so(f64::is_nan)
    }
    #[inline]
    fn is_finite(self) -> bool {
        self.is_so(f64::is_finite)
    }
}

impl<const N: usize> Default for Lanes<N> {
    fn default() -> Self {
        Self::splat(0.0)
    }
}

/// All lanes, as a list.
macro_rules! shown {
    ($($Trait:ident)*) => {$(
        impl<const N: usize> $Trait for Lanes<N> {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("[")?;
                for (lane, number) in self.0.iter().enumerate() {
                    f.write_str(if lane > 0 { ", " } else { "" })?;
                    $Trait::fmt(number, f)?;
                }
                f.write_str("]")
            }
        }
    )*};
}
shown! { Display LowerExp }
