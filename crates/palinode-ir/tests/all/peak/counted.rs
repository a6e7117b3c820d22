//! [`Counted`]: an `f64` that counts what is done with it, so that a run tells how much it computed.
//!
//! The weights are those that plans state ("in additions"): 1 for sums, products and the like, 5 for
//! quotients and square roots, 20 for other functions.

use core::cmp::Ordering;
use core::iter::{Product, Sum};
use core::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, RemAssign, Sub, SubAssign};
use std::cell::Cell;

use palinode_core::{Constant, Real, Scalar};

thread_local! {
    static WORK: Cell<u64> = const { Cell::new(0) };
}

#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) struct Counted(pub(crate) f64);

/// How much was computed while `f` ran.
pub(crate) fn work_of<T>(f: impl FnOnce() -> T) -> (T, u64) {
    WORK.set(0);
    let result = f();
    (result, WORK.get())
}

fn counted(work: u64, value: f64) -> Counted {
    WORK.set(WORK.get() + work);
    Counted(value)
}

macro_rules! operators {
    ($($Trait:ident $op:ident $Assign:ident $assign:ident $work:literal;)*) => {
        $(impl $Trait for Counted {
            type Output = Counted;
            fn $op(self, other: Counted) -> Counted {
                counted($work, self.0.$op(other.0))
            }
        }
        impl $Trait<f64> for Counted {
            type Output = Counted;
            fn $op(self, other: f64) -> Counted {
                counted($work, self.0.$op(other))
            }
        }
        impl $Assign for Counted {
            fn $assign(&mut self, other: Counted) {
                *self = self.$op(other);
            }
        }
        impl $Assign<f64> for Counted {
            fn $assign(&mut self, other: f64) {
                *self = self.$op(other);
            }
        })*
    };
}
operators! {
    Add add AddAssign add_assign 1;
    Sub sub SubAssign sub_assign 1;
    Mul mul MulAssign mul_assign 1;
    Div div DivAssign div_assign 5;
    Rem rem RemAssign rem_assign 20;
}

impl Neg for Counted {
    type Output = Counted;
    fn neg(self) -> Counted {
        counted(1, -self.0)
    }
}

impl PartialEq<f64> for Counted {
    fn eq(&self, other: &f64) -> bool {
        self.0 == *other
    }
}

impl PartialOrd<f64> for Counted {
    fn partial_cmp(&self, other: &f64) -> Option<Ordering> {
        self.0.partial_cmp(other)
    }
}

impl core::fmt::Display for Counted {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

impl Sum for Counted {
    fn sum<I: Iterator<Item = Counted>>(all: I) -> Counted {
        all.fold(Counted(0.0), |sum, x| sum + x)
    }
}

impl<'a> Sum<&'a Counted> for Counted {
    fn sum<I: Iterator<Item = &'a Counted>>(all: I) -> Counted {
        all.copied().sum()
    }
}

impl Product for Counted {
    fn product<I: Iterator<Item = Counted>>(all: I) -> Counted {
        all.fold(Counted(1.0), |product, x| product * x)
    }
}

impl<'a> Product<&'a Counted> for Counted {
    fn product<I: Iterator<Item = &'a Counted>>(all: I) -> Counted {
        all.copied().product()
    }
}

impl Real for Counted {
    fn to_f64(self) -> f64 {
        self.0
    }
}

macro_rules! scalar {
    (one [$($one:ident $one_work:literal)*] two [$($two:ident $two_work:literal)*]) => {
        impl Scalar for Counted {
            type Bool = bool;
            fn from_int(n: i32) -> Self {
                Counted(f64::from(n))
            }
            fn constant(name: Constant) -> Self {
                Counted(<f64 as Scalar>::constant(name))
            }
            fn from_f64(v: f64) -> Self {
                Counted(v)
            }
            fn glance(self) -> Option<f64> {
                Some(self.0)
            }
            fn less(self, other: Self) -> bool {
                self.0 < other.0
            }
            fn less_eq(self, other: Self) -> bool {
                self.0 <= other.0
            }
            fn equal(self, other: Self) -> bool {
                self.0 == other.0
            }
            fn select(condition: bool, if_true: Self, if_false: Self) -> Self {
                if condition { if_true } else { if_false }
            }
            fn mul_add(self, factor: Self, addend: Self) -> Self {
                counted(2, Scalar::mul_add(self.0, factor.0, addend.0))
            }
            fn powi(self, n: i32) -> Self {
                counted(20, self.0.powi(n))
            }
            fn polygamma(self, order: u32) -> Self {
                counted(20, Scalar::polygamma(self.0, order))
            }
            $(fn $one(self) -> Self {
                counted($one_work, Scalar::$one(self.0))
            })*
            $(fn $two(self, other: Self) -> Self {
                counted($two_work, Scalar::$two(self.0, other.0))
            })*
        }
    };
}
scalar! {
    one [abs 1 signum 2 floor 2 ceil 2 round 2 trunc 2 sqrt 5 cbrt 20 exp 20 exp2 20 exp_m1 20 ln 20 ln_1p 20 log2 20 log10 20
        sin 20 cos 20 tan 20 asin 20 acos 20 atan 20 sinh 20 cosh 20 tanh 20 asinh 20 acosh 20 atanh 20 erf 20 erfc 20 lgamma 20]
    two [strong_mul 2 copysign 2 min 1 max 1 powf 20 hypot 20 atan2 20]
}
