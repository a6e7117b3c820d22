//! The arithmetic the problems are written in: `Num`.
//!
//! Each problem is written once, generic over `Num`, so every peer differentiates the same expression in the
//! same order. The trait is deliberately small and belongs to the benchmark: no peer's own trait is
//! privileged.
//!
//! Operations with an `f64` constant are methods, not operators, because a peer's type and `f64` are both
//! foreign here (`impl Add<f64> for adr` is not ours to write). A peer overrides a default wherever it has a
//! cheaper form.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// A number a problem can be evaluated in: plain `f64`, or some peer's active type.
pub trait Num:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + 'static
{
    /// True where `sum`, `dot` and `dot_const` are single nodes. Problems then use their row forms; otherwise
    /// they use the column forms, which plain `f64` vectorises.
    const NARY: bool = false;

    /// A constant (inactive) value.
    fn cst(c: f64) -> Self;

    /// `self + c`.
    #[inline]
    fn plus(self, c: f64) -> Self {
        self + Self::cst(c)
    }
    /// `self - c`.
    #[inline]
    fn minus(self, c: f64) -> Self {
        self - Self::cst(c)
    }
    /// `self * c`.
    #[inline]
    fn times(self, c: f64) -> Self {
        self * Self::cst(c)
    }
    /// `c - self`.
    #[inline]
    fn sub_from(self, c: f64) -> Self {
        Self::cst(c) - self
    }
    /// `1 / self`.
    #[inline]
    fn recip(self) -> Self {
        Self::cst(1.0) / self
    }

    /// Sine.
    fn sin(self) -> Self;
    /// Natural exponential.
    fn exp(self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// `max(self, 0)`, as an operation of the peer (so that a replayed tape stays right on the other side).
    fn relu(self) -> Self;

    /// The larger of two values *by comparison*: it returns one of its arguments and records nothing.
    fn pick_max(self, other: Self) -> Self;

    /// Sum of at least one term.
    #[inline]
    fn sum(mut terms: impl Iterator<Item = Self>) -> Self {
        let Some(first) = terms.next() else { return Self::cst(0.0) };
        terms.fold(first, |acc, t| acc + t)
    }
    /// Sum of products of active pairs.
    #[inline]
    fn dot(pairs: impl Iterator<Item = (Self, Self)>) -> Self {
        Self::sum(pairs.map(|(a, b)| a * b))
    }
    /// Sum of products of an active value and a constant.
    #[inline]
    fn dot_const(pairs: impl Iterator<Item = (Self, f64)>) -> Self {
        Self::sum(pairs.map(|(a, c)| a.times(c)))
    }
}

/// Functions of one argument in an `impl Num`, each made of its name by a macro of the peer.
#[macro_export]
macro_rules! functions {
    ($self:ident, $make:ident: $($name:ident)*) => {
        $(#[inline]
        fn $name($self) -> Self {
            $make!($self, $name)
        })*
    };
}

/// Operations with constants in an `impl Num` of a number that has operators for them.
#[macro_export]
macro_rules! operators_with_constants {
    () => {
        #[inline]
        fn plus(self, c: f64) -> Self {
            self + c
        }
        #[inline]
        fn minus(self, c: f64) -> Self {
            self - c
        }
        #[inline]
        fn times(self, c: f64) -> Self {
            self * c
        }
    };
}

macro_rules! of_f64 {
    ($x:expr, $name:ident) => {
        f64::$name($x)
    };
}

impl Num for f64 {
    functions!(self, of_f64: sin exp ln tanh sqrt);
    #[inline]
    fn cst(c: f64) -> Self {
        c
    }
    #[inline]
    fn relu(self) -> Self {
        self.max(0.0)
    }
    #[inline]
    fn pick_max(self, other: Self) -> Self {
        if other > self { other } else { self }
    }
}

/// `ln(sum(exp(x)))`, shifted by the largest entry so that it cannot overflow.
///
/// The shift is picked by comparison: its derivative cancels exactly in theory, but it is active, as in
/// ADBench.
#[inline]
pub fn log_sum_exp<T: Num>(x: &[T]) -> T {
    let shift = x.iter().skip(1).fold(x[0], |m, &v| m.pick_max(v));
    T::sum(x.iter().map(|&v| (v - shift).exp())).ln() + shift
}
