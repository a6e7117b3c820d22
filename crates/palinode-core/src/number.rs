//! What every derivative number has in common, written once: operators, functions, literals, comparisons.
//!
//! Input: a type that implements [`Differentiable`](crate::rules::Differentiable) and a few inherent methods
//! (`lift`, `primal`, `is_active`, `resting`: the same lane by lane, the other way round; `pick`, `show`;
//! `check_use`, `note_asked`; `carries_derivative`: whether leaving its derivative out could change one,
//! which may say yes without need; `MAY_REST`: whether a number that depends on an input can look like a
//! constant; the last four come with `forward_number!`), and the `Scalar` methods that it does better than
//! the default. Output: `Scalar`, `Real`, the operators with numbers, references and `f64` on either side,
//! sums and products of iterators, text, and every function of the rule table as an inherent method.
//!
//! Invariant: there is no derivative formula in this file; each function is the table row of its name.

use crate::rules::{Binary, Differentiable, Ternary, Unary};
use core::fmt::{self, Formatter};
use palinode_num::{Accumulator, Logic, Scalar};

/// Whether operations on a number with so many levels stay out of line. An operation on a `Var<Var<f64>>` is
/// some twenty operations on `Var<f64>`, and inlining all of them everywhere took rustc gigabytes of memory;
/// in debug builds nothing is worth inlining.
const fn stays_out_of_line(depth: u32) -> bool {
    depth > 1 || cfg!(debug_assertions)
}

/// A way to apply something to a number: inlined if the number is shallow, else out of line.
macro_rules! applied {
    ($(#[$doc:meta])* $name:ident / $outlined:ident<$($R:ident: $Rule:ident)?>($($arg:ident: $Arg:ident),*)) => {
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<N: Differentiable $(, $R: $Rule)?>($($arg: $Arg),*) -> N {
            if const { stays_out_of_line(N::DEPTH) } { $outlined($($arg),*) } else { N::$name($($arg),*) }
        }

        #[inline(never)]
        fn $outlined<N: Differentiable $(, $R: $Rule)?>($($arg: $Arg),*) -> N {
            N::$name($($arg),*)
        }
    };
}

applied! { unary / unary_outlined<R: Unary>(rule: R, x: N) }
applied! { binary / binary_outlined<R: Binary>(rule: R, x: N, y: N) }
applied! { ternary / ternary_outlined<R: Ternary>(rule: R, x: N, y: N, w: N) }
applied! { product / product_outlined<>(x: N, y: N) }
applied! { quotient / quotient_outlined<>(x: N, y: N) }

/// What a function of the number `N` takes as its second and third argument: another `N`, or a literal.
///
/// ```
/// use palinode_core::Dual;
///
/// let x = Dual::new(3.0, 1.0);
/// assert_eq!(x.max(0.0).tangent, 1.0);
/// assert_eq!(x.clamp(0.0, x * 0.5).tangent, 0.5);
/// ```
pub trait Operand<N>: Copy {
    /// As a number of the same type.
    fn operand(self) -> N;
    /// `rule(x, self)`.
    fn second_argument<R: Binary>(self, rule: R, x: N) -> N;
}

/// A derivative number that can be added up in other than the naive way.
pub(crate) trait Accumulated: Copy {
    fn accumulated_sum(terms: &[Self], how: Accumulator) -> Self;
    fn accumulated_dot(a: &[Self], b: &[Self], how: Accumulator) -> Self;
}

/// How two numbers compare, without the hook for decisions.
pub(crate) fn ordering<N: Scalar>(a: N, b: N) -> Option<core::cmp::Ordering> {
    use core::cmp::Ordering;
    let holds = |condition: N::Bool| condition.decided() == Some(true);
    if holds(a.less(b)) {
        Some(Ordering::Less)
    } else if holds(b.less(a)) {
        Some(Ordering::Greater)
    } else {
        holds(a.equal(b)).then_some(Ordering::Equal)
    }
}

/// How a number compares with an `f64` that is infinite or NaN: as floats do. Posits have no such number to
/// compare with.
#[cold]
pub(crate) fn ordering_beyond<N: Scalar>(a: N, b: f64) -> Option<core::cmp::Ordering> {
    if const { N::LANES > 1 } {
        let b = N::from_f64(b);
        crate::decision::compared(a, b, || [true, false]);
        return ordering(a, b);
    }
    if !a.carries_nothing() {
        crate::decision::compared_with(a, b, || [true, false]);
    }
    crate::decision::uncounted(|| a.peek())?.partial_cmp(&b)
}

/// Implements a derivative number; see the module's documentation.
macro_rules! derivative_number {
    ([$($generics:tt)*] $Number:ty $(, scalar { $($scalar_methods:tt)* })?) => {
        crate::rules::rule_table! { derivative_number! { [$($generics)*] [$Number] { $($($scalar_methods)*)? } } }

        // No `From<S>`: rustc would advise `.into()` where a closure returns `x.value()` instead of `x`, and
        // the derivative would be gone. A constant is made by `lift` or `from_f64`.

        impl<$($generics)*> Default for $Number {
            fn default() -> Self {
                Self::lift(S::zero())
            }
        }

        impl<$($generics)*> PartialEq for $Number
        where
            S: PartialEq,
        {
            #[inline(always)]
            fn eq(&self, other: &Self) -> bool {
                self.check_use(*other);
                if self.is_active() || other.is_active() {
                    // Counted here, once: the inner levels compare without the hook.
                    let active = || [self.is_active(), other.is_active()];
                    crate::decision::equated(*self, *other, active);
                    return crate::number::ordering(*self, *other) == Some(core::cmp::Ordering::Equal);
                }
                crate::decision::equated_at_rest(Self::MAY_REST, *self, *other);
                self.primal() == other.primal()
            }
        }

        impl<$($generics)*> PartialOrd for $Number
        where
            S: PartialOrd,
        {
            #[inline(always)]
            fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
                self.check_use(*other);
                if self.is_active() || other.is_active() {
                    let active = || [self.is_active(), other.is_active()];
                    crate::decision::compared(*self, *other, active);
                    return crate::number::ordering(*self, *other);
                }
                crate::decision::compared_at_rest(Self::MAY_REST, *self, *other);
                self.primal().partial_cmp(&other.primal())
            }
        }

        impl<$($generics)*> PartialEq<f64> for $Number
        where
            S: PartialEq,
        {
            #[inline(always)]
            fn eq(&self, other: &f64) -> bool {
                if !other.is_finite() {
                    self.check_use(*self);
                    let ordering = crate::number::ordering_beyond(*self, *other);
                    return ordering == Some(core::cmp::Ordering::Equal);
                }
                *self == Self::lift(S::from_f64(*other))
            }
        }

        impl<$($generics)*> PartialOrd<f64> for $Number
        where
            S: PartialOrd,
        {
            #[inline(always)]
            fn partial_cmp(&self, other: &f64) -> Option<core::cmp::Ordering> {
                if !other.is_finite() {
                    self.check_use(*self);
                    return crate::number::ordering_beyond(*self, *other);
                }
                self.partial_cmp(&Self::lift(S::from_f64(*other)))
            }
        }

        impl<$($generics)*> PartialEq<$Number> for f64
        where
            S: PartialEq,
        {
            #[inline(always)]
            fn eq(&self, other: &$Number) -> bool {
                *other == *self
            }
        }

        impl<$($generics)*> PartialOrd<$Number> for f64
        where
            S: PartialOrd,
        {
            #[inline(always)]
            fn partial_cmp(&self, other: &$Number) -> Option<core::cmp::Ordering> {
                other.partial_cmp(self).map(core::cmp::Ordering::reverse)
            }
        }

        impl<$($generics)*> crate::number::Operand<$Number> for $Number {
            #[inline(always)]
            fn operand(self) -> $Number {
                self
            }
            #[inline(always)]
            fn second_argument<R: crate::rules::Binary>(self, rule: R, x: $Number) -> $Number {
                crate::number::binary(rule, x, self)
            }
        }

        impl<$($generics)*> crate::number::Operand<$Number> for f64 {
            #[inline(always)]
            fn operand(self) -> $Number {
                <$Number>::lift(S::from_f64(self))
            }
            #[inline(always)]
            fn second_argument<R: crate::rules::Binary>(self, rule: R, x: $Number) -> $Number {
                crate::number::unary(crate::rules::RightConstant(rule, self), x)
            }
        }

        // What num-traits has under the same name: as inherent methods they are not ambiguous where both are
        // imported.
        impl<$($generics)*> $Number {
            /// Zero, a constant.
            #[inline(always)]
            pub fn zero() -> Self {
                Self::lift(S::zero())
            }
            /// One, a constant.
            #[inline(always)]
            pub fn one() -> Self {
                Self::lift(S::one())
            }
            /// A constant: the nearest number to `v`.
            #[inline(always)]
            pub fn from_f64(v: f64) -> Self {
                Self::lift(S::from_f64(v))
            }
            /// The primal as an `f64`, NaN for a symbol. Of an active value this is a decision: what is
            /// computed from it has no derivative.
            #[inline]
            pub fn to_f64(self) -> f64 {
                self.check_use(self);
                if !self.carries_nothing() {
                    crate::decision::converted_to(self.glance().unwrap_or(0.0));
                }
                crate::decision::made_plain(self, || self.may_matter());
                // Not by a glance: the number inside may be one that guards what is done with it.
                crate::decision::uncounted(|| self.primal().peek()).unwrap_or(f64::NAN)
            }
            /// Whether it is the constant `of`, with no derivative. The hook sees this answer, not whether
            /// the primals are equal.
            #[inline]
            pub(crate) fn is_exactly(&self, of: S) -> bool
            where
                S: PartialEq,
            {
                let vanishes = || (self.primal() - of).vanishes();
                if !self.is_active() {
                    return *self == Self::lift(of) && (vanishes() || crate::decision::admits());
                }
                self.check_use(*self);
                let ties = crate::number::ordering(*self, Self::lift(of)) == Some(core::cmp::Ordering::Equal);
                let answer = ties && ((vanishes() && !self.carries_derivative()) || crate::decision::admits());
                crate::decision::is_same(*self, Self::lift(of), answer)
            }
            /// Whether a derivative may depend on what is decided by this number.
            #[inline]
            pub(crate) fn may_matter(self) -> bool {
                Self::MAY_REST || !self.carries_nothing()
            }
            /// What kind of number the primal is; the hook learns whether that may exist only at this point.
            #[inline]
            pub(crate) fn kind_of<R>(self, kind: impl FnOnce(f64) -> R) -> Option<R> {
                crate::decision::classified(self, || self.may_matter());
                self.peek().map(kind)
            }
            /// Whether the primal is of this kind.
            #[inline]
            pub(crate) fn is_of_kind(self, kind: impl Fn(f64) -> bool) -> bool {
                if const { Self::LANES == 1 } {
                    return self.kind_of(kind) == Some(true);
                }
                crate::decision::classified(self, || self.may_matter());
                self.is_so(kind)
            }
            /// Whether the primal is NaN.
            #[inline]
            pub fn is_nan(self) -> bool {
                self.is_of_kind(f64::is_nan)
            }
            /// Whether the primal is neither infinite nor NaN.
            #[inline]
            pub fn is_finite(self) -> bool {
                self.is_of_kind(f64::is_finite)
            }
            /// Sine and cosine of the same angle.
            #[inline]
            pub fn sin_cos(self) -> (Self, Self) {
                Scalar::sin_cos(self)
            }
        }

        impl<$($generics)*> core::iter::Product for $Number {
            fn product<I: Iterator<Item = Self>>(factors: I) -> Self {
                factors.reduce(|a, b| a * b).unwrap_or_else(Self::one)
            }
        }

        impl<'a, $($generics)*> core::iter::Product<&'a $Number> for $Number {
            fn product<I: Iterator<Item = &'a $Number>>(factors: I) -> Self {
                factors.copied().product()
            }
        }

        impl<'a, $($generics)*> core::iter::Sum<&'a $Number> for $Number {
            #[inline]
            fn sum<I: Iterator<Item = &'a $Number>>(terms: I) -> Self {
                terms.copied().sum()
            }
        }

        crate::number::shown! { [$($generics)*] $Number, Display }
        crate::number::shown! { [$($generics)*] $Number, LowerExp }

        impl<$($generics)*> palinode_num::Real for $Number
        where
            S: Scalar + PartialOrd + core::fmt::Display,
        {
            #[inline]
            fn to_f64(self) -> f64 {
                <$Number>::to_f64(self)
            }
            #[inline]
            fn is_nan(self) -> bool {
                <$Number>::is_nan(self)
            }
            #[inline]
            fn is_finite(self) -> bool {
                <$Number>::is_finite(self)
            }
        }
    };

    ({ [$($generics:tt)*] [$Number:ty] { $($scalar_methods:tt)* } }
     operators1 { $($operators1:tt)* }
     operators2 { $($operators2:tt)* }
     functions1 { $($(#[$doc1:meta])* $F1:ident : $f1:ident($x1:ident in $X1:ident) -> $z1:ident { $($body1:tt)* })* }
     parametric1 { $($(#[$docp:meta])* $P:ident { $p:ident : $pt:ty } : $fp:ident($xp:ident in $Xp:ident) -> $zp:ident { $($bodyp:tt)* })* }
     functions2 { $($(#[$doc2:meta])* $F2:ident : $f2:ident($x2:ident in $X2:ident, $y2:ident in $Y2:ident) -> $z2:ident { $($body2:tt)* })* }
     structural2 { $($structural2:tt)* }
     functions3 { $($(#[$doc3:meta])* $F3:ident : $f3:ident($x3:ident in $X3:ident, $y3:ident in $Y3:ident, $w3:ident in $W3:ident) -> $z3:ident { $($body3:tt)* })* }
     structural3 { $($structural3:tt)* }
    ) => {
        // As inherent methods, so that they are found without an import and win over other traits' methods.
        impl<$($generics)*> $Number {
            $($(#[$doc1])*
            #[inline]
            pub fn $f1(self) -> Self {
                crate::number::unary(crate::rules::$F1 {}, self)
            })*
            $($(#[$docp])*
            #[inline]
            pub fn $fp(self, $p: $pt) -> Self {
                crate::number::unary(crate::rules::$P { $p }, self)
            })*
            $($(#[$doc2])*
            #[inline]
            pub fn $f2(self, $y2: impl crate::number::Operand<Self>) -> Self {
                $y2.second_argument(crate::rules::$F2 {}, self)
            })*
            $($(#[$doc3])*
            #[inline]
            pub fn $f3(
                self,
                $y3: impl crate::number::Operand<Self>,
                $w3: impl crate::number::Operand<Self>,
            ) -> Self {
                crate::number::ternary(crate::rules::$F3 {}, self, $y3.operand(), $w3.operand())
            })*
        }

        impl<$($generics)*> Scalar for $Number {
            type Bool = <S as Scalar>::Bool;
            const DEPTH: u32 = <S as Scalar>::DEPTH + 1;
            const LANES: usize = <S as Scalar>::LANES;
            #[inline(always)]
            fn from_int(n: i32) -> Self {
                Self::lift(S::from_int(n))
            }
            #[inline(always)]
            fn constant(name: palinode_num::Constant) -> Self {
                Self::lift(S::constant(name))
            }
            #[inline(always)]
            fn from_f64(v: f64) -> Self {
                Self::lift(S::from_f64(v))
            }
            #[inline(always)]
            fn peek(self) -> Option<f64> {
                self.check_use(self);
                crate::decision::looked(|| !self.carries_nothing());
                // Counted here, once.
                crate::decision::uncounted(|| self.primal().peek())
            }
            #[inline(always)]
            fn glance(self) -> Option<f64> {
                self.primal().glance()
            }
            #[inline(always)]
            fn glance_at(self, lane: usize) -> Option<f64> {
                self.primal().glance_at(lane)
            }
            #[inline(always)]
            fn is_so(self, test: impl Fn(f64) -> bool) -> bool {
                self.primal().is_so(test)
            }
            #[inline(always)]
            fn vanishing(self) -> Self::Bool {
                self.resting() & self.primal().vanishing()
            }
            #[inline(always)]
            fn carries_nothing(self) -> bool {
                self.note_asked();
                !self.is_active() && self.primal().carries_nothing()
            }
            fn sum_with(terms: &[Self], how: palinode_num::Accumulator) -> Self {
                match how {
                    palinode_num::Accumulator::Naive => Self::sum_of(terms),
                    _ => crate::number::Accumulated::accumulated_sum(terms, how),
                }
            }
            fn dot_with(a: &[Self], b: &[Self], how: palinode_num::Accumulator) -> Self {
                match how {
                    palinode_num::Accumulator::Naive => Self::dot(a, b),
                    _ => crate::number::Accumulated::accumulated_dot(a, b, how),
                }
            }
            #[inline(always)]
            fn vanishes(self) -> bool {
                self.note_asked();
                !self.is_active() && self.primal().vanishes()
            }
            #[inline(always)]
            fn less(self, other: Self) -> Self::Bool {
                crate::decision::looked(|| self.is_active() || other.is_active());
                self.primal().less(other.primal())
            }
            #[inline(always)]
            fn less_eq(self, other: Self) -> Self::Bool {
                crate::decision::looked(|| self.is_active() || other.is_active());
                self.primal().less_eq(other.primal())
            }
            #[inline(always)]
            fn equal(self, other: Self) -> Self::Bool {
                crate::decision::looked(|| self.is_active() || other.is_active());
                self.primal().equal(other.primal())
            }
            #[inline(always)]
            fn select(condition: Self::Bool, if_true: Self, if_false: Self) -> Self {
                Self::pick(condition, if_true, if_false)
            }
            #[inline(always)]
            fn strong_mul(self, other: Self) -> Self {
                if const { Self::LANES > 1 } {
                    let product = || crate::number::binary(crate::rules::StrongMul {}, self, other);
                    return Self::branch(self.vanishing() | other.vanishing(), Self::zero, product);
                }
                if self.vanishes() || other.vanishes() {
                    Self::lift(S::zero())
                } else {
                    crate::number::binary(crate::rules::StrongMul {}, self, other)
                }
            }
            $($scalar_methods)*
            $(#[inline(always)]
            fn $f1(self) -> Self {
                <$Number>::$f1(self)
            })*
            $(#[inline(always)]
            fn $fp(self, $p: $pt) -> Self {
                <$Number>::$fp(self, $p)
            })*
            $(#[inline(always)]
            fn $f2(self, $y2: Self) -> Self {
                <$Number>::$f2(self, $y2)
            })*
            $(#[inline(always)]
            fn $f3(self, $y3: Self, $w3: Self) -> Self {
                <$Number>::$f3(self, $y3, $w3)
            })*
        }

        impl<$($generics)*> core::ops::Neg for $Number {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                crate::number::unary(crate::rules::Negate {}, self)
            }
        }

        impl<$($generics)*> core::ops::Neg for &$Number {
            type Output = $Number;
            #[inline(always)]
            fn neg(self) -> $Number {
                -*self
            }
        }

        crate::number::operators! { [$($generics)*] [$Number] Add add Add AddAssign add_assign |x, y| crate::number::binary(crate::rules::Add {}, x, y) }
        crate::number::operators! { [$($generics)*] [$Number] Sub sub Subtract SubAssign sub_assign |x, y| crate::number::binary(crate::rules::Subtract {}, x, y) }
        crate::number::operators! { [$($generics)*] [$Number] Mul mul Multiply MulAssign mul_assign |x, y| crate::number::product(x, y) }
        crate::number::operators! { [$($generics)*] [$Number] Div div Divide DivAssign div_assign |x, y| crate::number::quotient(x, y) }
        crate::number::operators! { [$($generics)*] [$Number] Rem rem Remainder RemAssign rem_assign |x, y| crate::number::binary(crate::rules::Remainder {}, x, y) }
    };
}

/// What all forward numbers answer alike; a `Var` has its own sum, which makes one node.
macro_rules! forward_number {
    ([$($generics:tt)*] $Number:ty) => {
        impl<$($generics)*> $Number {
            /// `x * x` at 0 has no tangent, and depends on `x` all the same.
            const MAY_REST: bool = true;
            /// Forward numbers may be used anywhere.
            #[inline(always)]
            fn check_use(self, _other: Self) {}
            #[inline(always)]
            fn note_asked(self) {}
            #[inline]
            fn carries_derivative(self) -> bool {
                self.is_active()
            }
        }

        impl<$($generics)*> core::iter::Sum for $Number {
            fn sum<I: Iterator<Item = Self>>(terms: I) -> Self {
                // Of no terms it is minus zero, the zero that changes no bit of what it is added to, as for
                // plain numbers.
                terms.reduce(|a, b| a + b).unwrap_or_else(|| -Self::default())
            }
        }
    };
}

/// A number as text, for people (`{}`) and for solvers that print their progress as `{:e}`.
macro_rules! shown {
    ([$($g:tt)*] $Number:ty, $Trait:ident) => {
        impl<$($g)*> core::fmt::$Trait for $Number
        where
            S: core::fmt::$Trait,
        {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                crate::decision::looked(|| self.is_active());
                self.show(f, core::fmt::$Trait::fmt)
            }
        }
    };
}

/// How one part of a number is written.
pub(crate) type Show<S> = fn(&S, &mut Formatter<'_>) -> fmt::Result;

/// Writes a primal and derivatives. Each gets the whole format, so that `{:.2}` rounds each of them, and what
/// `mark` writes for its number, from 1.
pub(crate) fn show_parts<S>(
    f: &mut Formatter<'_>,
    show: Show<S>,
    primal: &S,
    derivatives: &[S],
    mark: fn(&mut Formatter<'_>, usize) -> fmt::Result,
) -> fmt::Result {
    show(primal, f)?;
    for (i, derivative) in (1..).zip(derivatives) {
        f.write_str(" + ")?;
        show(derivative, f)?;
        mark(f, i)?;
    }
    Ok(())
}

/// One operator in all its forms: by value and by reference, with `f64` on either side, assigning.
macro_rules! operators {
    ([$($g:tt)*] [$Number:ty] $Trait:ident $method:ident $Rule:ident $Assign:ident $assign:ident
     |$x:ident, $y:ident| $result:expr) => {
        impl<$($g)*> core::ops::$Trait for $Number {
            type Output = $Number;
            #[inline(always)]
            fn $method(self, other: Self) -> $Number {
                let ($x, $y) = (self, other);
                $result
            }
        }
        impl<$($g)*> core::ops::$Trait<f64> for $Number {
            type Output = $Number;
            #[inline(always)]
            fn $method(self, other: f64) -> $Number {
                let rule = crate::rules::RightConstant(crate::rules::$Rule {}, other);
                crate::number::unary(rule, self)
            }
        }
        impl<$($g)*> core::ops::$Trait<$Number> for f64 {
            type Output = $Number;
            #[inline(always)]
            fn $method(self, other: $Number) -> $Number {
                let rule = crate::rules::LeftConstant(self, crate::rules::$Rule {});
                crate::number::unary(rule, other)
            }
        }
        crate::number::operators! { @by_reference [$($g)*] [$Number] [$Number] [$Number] $Trait $method }
        crate::number::operators! { @by_reference [$($g)*] [$Number] [f64] [$Number] $Trait $method }
        crate::number::operators! { @by_reference [$($g)*] [f64] [$Number] [$Number] $Trait $method }
        crate::number::operators! { @assigning [$($g)*] [$Number] [$Number] $Trait $method $Assign $assign }
        crate::number::operators! { @assigning [$($g)*] [$Number] [f64] $Trait $method $Assign $assign }
    };
    (@assigning [$($g:tt)*] [$Number:ty] [$Right:ty] $Trait:ident $method:ident $Assign:ident $assign:ident) => {
        impl<$($g)*> core::ops::$Assign<$Right> for $Number {
            #[inline(always)]
            fn $assign(&mut self, other: $Right) {
                *self = core::ops::$Trait::$method(*self, other);
            }
        }
        impl<$($g)*> core::ops::$Assign<&$Right> for $Number {
            #[inline(always)]
            fn $assign(&mut self, other: &$Right) {
                *self = core::ops::$Trait::$method(*self, *other);
            }
        }
    };
    (@by_reference [$($g:tt)*] [$Left:ty] [$Right:ty] [$Output:ty] $Trait:ident $method:ident) => {
        impl<$($g)*> core::ops::$Trait<&$Right> for $Left {
            type Output = $Output;
            #[inline(always)]
            fn $method(self, other: &$Right) -> $Output {
                core::ops::$Trait::$method(self, *other)
            }
        }
        impl<$($g)*> core::ops::$Trait<$Right> for &$Left {
            type Output = $Output;
            #[inline(always)]
            fn $method(self, other: $Right) -> $Output {
                core::ops::$Trait::$method(*self, other)
            }
        }
        impl<$($g)*> core::ops::$Trait<&$Right> for &$Left {
            type Output = $Output;
            #[inline(always)]
            fn $method(self, other: &$Right) -> $Output {
                core::ops::$Trait::$method(*self, *other)
            }
        }
    };
}

pub(crate) use {derivative_number, forward_number, operators, shown};
