//! `f32` and `f64` as [`Scalar`]s, and `f64` as a [`Real`].
//!
//! Input -> output: what is exact or rounded once (`sqrt`, `floor`, `mul_add`, ...) is the standard
//! library's; the elementary functions are [`crate::elementary`], `polygamma` is [`crate::special`], and
//! `lgamma` comes from `libm`, which is Rust throughout.
//!
//! Invariants: same bits for same bits, on every machine. So nothing here calls the platform's mathematical
//! library, and `powi` avoids `f64::powi`, whose rounding may differ between constant folding and run time.
//! Lanes (the tangents of `DualN`) are combined by fused multiply-add in builds whose target has it, so their
//! last bits depend on the target features.
//!
//! Known limits: `lgamma` is accurate relative to 1, not to itself, next to its zeros at negative arguments.
//! `f32` takes functions through `f64` and rounds once more.

use crate::elementary;
use crate::scalar::{Accumulator, Constant, Real, Scalar};
use crate::special::{self, F64_SERIES};
use crate::sums::floats;

/// The rare part of `strong_mul`, kept out of line so that the common path stays a multiplication and a test.
///
/// Rare parts are `extern "C"` because such functions do not unwind. One instance is shared between crates,
/// so that the compiler may not see the body; a call that might unwind made it keep what loops carry in
/// memory, and chains of products took twice as long as soon as another crate had used them too.
#[cold]
#[inline(never)]
extern "C" fn zero_wins<S: Scalar<Bool = bool>>(a: S, b: S, product: S) -> S {
    let zero = S::zero();
    if a.equal(zero) || b.equal(zero) { zero } else { product }
}

/// The rare part of `strong_mul_pair`.
#[cold]
#[inline(never)]
#[allow(improper_ctypes_definitions)] // a pair, and never called from C
extern "C" fn zeros_win<S: Scalar>(a: S, p: S, b: S, q: S) -> (S, S) {
    (a.strong_mul(p), b.strong_mul(q))
}

/// Strong products lane by lane.
#[cold]
#[inline(never)]
extern "C" fn cold_combine<S: Scalar, const N: usize>(
    p: S,
    a: &[S; N],
    q: S,
    b: &[S; N],
    lanes: &mut [S; N],
) {
    *lanes = core::array::from_fn(|i| p.strong_mul(a[i]) + q.strong_mul(b[i]));
}

/// Calls it with copies and copies what it returns. Without the copies the common path would keep its lanes
/// in memory too: up to twice as slow on chains of products.
#[inline(always)]
fn rare_combine<S: Scalar, const N: usize>(p: S, a: [S; N], q: S, b: [S; N]) -> [S; N] {
    let (a, b, mut lanes) = (a, b, [S::zero(); N]);
    cold_combine::<S, N>(p, &a, q, &b, &mut lanes);
    core::array::from_fn(|i| lanes[i])
}

/// `p * a + q * b`, with one rounding less where that is an instruction.
///
/// Besides being shorter, it keeps the two products apart: LLVM may swap the terms of a sum, and swaps those
/// of some lanes in order to pack lanes and primals into one vector, which costs more in shuffles than it
/// saves.
#[inline(always)]
fn sum_of_products<S: Scalar>(p: S, a: S, q: S, b: S) -> S {
    if cfg!(target_feature = "fma") { q.mul_add(b, p * a) } else { p * a + q * b }
}

/// One test for all lanes, so that the products before it stay vectorised.
#[inline(always)]
fn any_nan<S: Scalar<Bool = bool>, const N: usize>(lanes: &[S; N]) -> bool {
    lanes.iter().fold(false, |found, &lane| found | !lane.equal(lane))
}

/// Products up to the cube; beyond, the power, which errs less than its products do.
fn powi_f64(x: f64, n: i32) -> f64 {
    match n {
        0 => 1.0,
        1 => x,
        2 => x * x,
        3 => x * x * x,
        -1 => 1.0 / x,
        _ => elementary::powf(x, f64::from(n)),
    }
}

macro_rules! standard_functions {
    ($($name:ident)*) => {
        $(#[inline(always)]
        fn $name(self) -> Self {
            Self::$name(self)
        })*
    };
}

macro_rules! standard_functions_of_two {
    ($($name:ident)*) => {
        $(#[inline(always)]
        fn $name(self, other: Self) -> Self {
            Self::$name(self, other)
        })*
    };
}

macro_rules! elementary_functions {
    ($($name:ident)*) => {
        $(#[inline]
        fn $name(self) -> Self {
            elementary::$name(f64::from(self)) as Self
        })*
    };
}

macro_rules! elementary_functions_of_two {
    ($($name:ident)*) => {
        $(#[inline]
        fn $name(self, other: Self) -> Self {
            elementary::$name(f64::from(self), f64::from(other)) as Self
        })*
    };
}

macro_rules! impl_scalar {
    ($float:ident, $bits:ident) => {
        /// Below [`TAME`] exactly if the factor is neither zero, nor infinite, nor NaN, so that a plain
        /// product with it is a strong one: without the sign, the bits of such numbers lie strictly between
        /// those of 0 and infinity.
        #[inline(always)]
        fn wildness(factor: $float) -> $bits {
            (factor.to_bits() << 1).wrapping_sub(1)
        }
        const TAME: $bits = ($float::INFINITY.to_bits() << 1) - 1;

        impl Scalar for $float {
            type Bool = bool;
            const IS_FLOAT: bool = true;

            #[inline]
            fn sum_of(terms: &[Self]) -> Self {
                floats::sum(terms)
            }
            #[inline]
            fn dot(a: &[Self], b: &[Self]) -> Self {
                assert_eq!(a.len(), b.len(), "dot: the slices have {} and {} elements", a.len(), b.len());
                floats::dot(a, b)
            }
            #[inline]
            fn chain_over(start: Self, count: usize, pair: impl Fn(usize) -> (Self, Self)) -> Self {
                floats::chain(start, count, pair)
            }

            #[inline(always)]
            fn from_int(n: i32) -> Self {
                n as Self
            }
            #[inline(always)]
            fn constant(name: Constant) -> Self {
                use core::$float::consts;
                match name {
                    Constant::Pi => consts::PI,
                    Constant::E => consts::E,
                    Constant::Ln2 => consts::LN_2,
                    Constant::Ln10 => consts::LN_10,
                    Constant::TwoOverSqrtPi => consts::FRAC_2_SQRT_PI,
                }
            }
            #[inline(always)]
            fn from_f64(v: f64) -> Self {
                v as Self
            }
            #[inline]
            fn sum_with(terms: &[Self], how: Accumulator) -> Self {
                how.sum(terms)
            }
            #[inline]
            fn dot_with(a: &[Self], b: &[Self], how: Accumulator) -> Self {
                how.dot(a, b)
            }
            fn sum_with_over(count: usize, how: Accumulator, term: impl Fn(usize) -> Self) -> Self {
                how.sum_over(count, term)
            }
            fn dot_with_over(count: usize, how: Accumulator, pair: impl Fn(usize) -> (Self, Self)) -> Self {
                how.dot_over(count, pair)
            }
            #[inline(always)]
            fn glance(self) -> Option<f64> {
                Some(f64::from(self))
            }

            #[inline(always)]
            fn less(self, other: Self) -> bool {
                self < other
            }
            #[inline(always)]
            fn less_eq(self, other: Self) -> bool {
                self <= other
            }
            #[inline(always)]
            fn equal(self, other: Self) -> bool {
                self == other
            }
            #[inline(always)]
            fn select(condition: bool, if_true: Self, if_false: Self) -> Self {
                if condition { if_true } else { if_false }
            }

            #[inline(always)]
            fn strong_mul(self, other: Self) -> Self {
                let product = self * other;
                if product.is_nan() { zero_wins(self, other, product) } else { product }
            }
            #[inline(always)]
            fn strong_mul_pair(a: Self, p: Self, b: Self, q: Self) -> (Self, Self) {
                let (x, y) = (a * p, b * q);
                if x.is_nan() | y.is_nan() { zeros_win(a, p, b, q) } else { (x, y) }
            }
            #[inline(always)]
            fn strong_combine<const N: usize>(p: Self, a: [Self; N], q: Self, b: [Self; N]) -> [Self; N] {
                if wildness(p).max(wildness(q)) < TAME {
                    return core::array::from_fn(|i| sum_of_products(p, a[i], q, b[i]));
                }
                rare_combine(p, a, q, b)
            }
            #[inline(always)]
            fn strong_combine_of_product<const N: usize>(
                pq: Self,
                p: Self,
                a: [Self; N],
                q: Self,
                b: [Self; N],
            ) -> [Self; N] {
                // If the product is tame, so are both factors.
                if wildness(pq) < TAME {
                    return core::array::from_fn(|i| sum_of_products(p, a[i], q, b[i]));
                }
                rare_combine(p, a, q, b)
            }
            #[inline(always)]
            fn strong_add<const N: usize>(sum: [Self; N], p: Self, a: [Self; N]) -> [Self; N] {
                let lanes: [Self; N] = core::array::from_fn(|i| sum[i] + p * a[i]);
                if any_nan(&lanes) {
                    return core::array::from_fn(|i| sum[i] + p.strong_mul(a[i]));
                }
                lanes
            }
            #[inline(always)]
            fn strong_scale<const N: usize>(p: Self, a: [Self; N]) -> [Self; N] {
                if wildness(p) < TAME {
                    return core::array::from_fn(|i| p * a[i]);
                }
                rare_combine(p, a, Self::zero(), [Self::zero(); N])
            }
            #[inline(always)]
            fn mul_add(self, factor: Self, addend: Self) -> Self {
                Self::mul_add(self, factor, addend)
            }

            standard_functions! { recip abs signum floor ceil round trunc fract sqrt }
            standard_functions_of_two! { copysign min max }
            elementary_functions! {
                cbrt exp exp2 exp_m1 ln ln_1p log2 log10
                sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh
                erf erfc logistic softplus
            }
            elementary_functions_of_two! { powf hypot atan2 }

            #[inline]
            fn lgamma(self) -> Self {
                libm::lgamma(f64::from(self)) as Self
            }
            #[inline]
            fn powi(self, n: i32) -> Self {
                powi_f64(f64::from(self), n) as Self
            }
            #[inline]
            fn polygamma(self, order: u32) -> Self {
                special::polygamma(f64::from(self), order, &F64_SERIES) as Self
            }
            #[inline]
            fn sin_cos(self) -> (Self, Self) {
                let (sine, cosine) = elementary::sin_cos(f64::from(self));
                (sine as Self, cosine as Self)
            }
        }
    };
}

mod single {
    use super::*;
    impl_scalar!(f32, u32);
}
mod double {
    use super::*;
    impl_scalar!(f64, u64);
}

impl Real for f64 {
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
}
