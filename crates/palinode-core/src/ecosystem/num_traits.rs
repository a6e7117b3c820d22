//! num-traits: identities, arithmetic, signs and conversions of every derivative number.
//!
//! Input: primitives. Output: constants, and primals as primitives; the latter of an active value is
//! a decision and goes through the hook.
//!
//! Known limits: numbers become primitives by way of `f64`, so a `DoubleDouble` leaves its low part behind;
//! text is read as an `f64`.

use super::FormatLimits;
use ::num_traits::{
    AsPrimitive, Bounded, FromPrimitive, Inv, MulAdd, MulAddAssign, Num, NumCast, One, Pow, Signed,
    ToPrimitive, Zero,
};
use palinode_num::Scalar;

/// Whether the sign bit is set; of an active value a decision, whose margin is the distance to zero.
#[inline]
pub(super) fn is_negative<N: Scalar>(x: N, active: bool) -> bool {
    if active {
        crate::decision::compared_with(x, 0.0, || [true, false]);
    }
    x.is_so(f64::is_sign_negative)
}

macro_rules! conversions {
    (@to $($to:ident -> $target:ident;)*) => {$(
        #[inline]
        fn $to(&self) -> Option<$target> {
            if !self.carries_nothing() {
                crate::decision::converted();
            }
            crate::decision::made_plain(*self, || self.may_matter());
            self.glance()?.$to()
        }
    )*};
    (@from $S:ident $($from:ident($source:ident);)*) => {$(
        #[inline]
        fn $from(n: $source) -> Option<Self> {
            // What the nearest f64 leaves over fits into a wider inner number.
            let nearest = n as f64;
            let rest = (n as i128 - nearest as i128) as f64;
            Some(Self::lift($S::from_f64(nearest) + $S::from_f64(rest)))
        }
    )*};
}

macro_rules! as_primitive {
    ($generics:tt [$Number:ty] each $($primitive:ident)*) => {
        $(as_primitive! { $generics [$Number] $primitive })*
    };
    ([$($generics:tt)*] [$Number:ty] $primitive:ident) => {
        impl<$($generics)*> AsPrimitive<$Number> for $primitive {
            #[inline]
            fn as_(self) -> $Number {
                <$Number>::lift(S::from_f64(self as f64))
            }
        }
        impl<$($generics)*> AsPrimitive<$primitive> for $Number {
            /// Like `as`: saturates, and is 0 for NaN where the target is an integer.
            #[inline]
            fn as_(self) -> $primitive {
                if !self.carries_nothing() {
                    crate::decision::converted();
                }
                crate::decision::made_plain(self, || self.may_matter());
                self.glance().unwrap_or(f64::NAN) as $primitive
            }
        }
    };
}

macro_rules! operations {
    ($generics:tt [$Number:ty] $($Trait:path, $method:ident($($argument:tt)*) => $value:expr;)*) => {
        $(operations! { @one $generics [$Number] [$Trait] $method($($argument)*) => $value })*
    };
    (@one [$($generics:tt)*] [$Number:ty] [$Trait:path] $method:ident($self:ident $(, $x:ident: $X:ty)*) => $value:expr) => {
        impl<$($generics)*> $Trait for $Number {
            type Output = Self;
            #[inline]
            fn $method($self $(, $x: $X)*) -> Self {
                $value
            }
        }
    };
}

macro_rules! num_traits {
    ([$($generics:tt)*] $Number:ty) => {
        impl<$($generics)*> Zero for $Number {
            #[inline(always)]
            fn zero() -> Self {
                Self::lift(S::zero())
            }
            /// True only if the number vanishes in every component: value and derivatives.
            ///
            /// A zero that carries a derivative is not zero, because an algorithm that skips zeros would
            /// skip its derivative too. A `Var` that is zero carries one unless every path on its tape to an
            /// input crosses a partial of zero.
            #[inline]
            fn is_zero(&self) -> bool {
                self.is_exactly(S::zero())
            }
        }

        impl<$($generics)*> One for $Number {
            #[inline(always)]
            fn one() -> Self {
                Self::lift(S::one())
            }
            /// True only if this is the constant one: an algorithm that skips a factor of one would skip its
            /// derivative too.
            #[inline]
            fn is_one(&self) -> bool {
                self.is_exactly(S::one())
            }
        }

        impl<$($generics)*> Num for $Number {
            type FromStrRadixErr = ::num_traits::ParseFloatError;
            fn from_str_radix(text: &str, radix: u32) -> Result<Self, Self::FromStrRadixErr> {
                <f64 as Num>::from_str_radix(text, radix).map(|value| Self::lift(S::from_f64(value)))
            }
        }

        impl<$($generics)*> Bounded for $Number {
            #[inline(always)]
            fn min_value() -> Self {
                Self::lift(-S::largest())
            }
            #[inline(always)]
            fn max_value() -> Self {
                Self::lift(S::largest())
            }
        }

        impl<$($generics)*> Signed for $Number {
            #[inline]
            fn abs(&self) -> Self {
                <$Number>::abs(*self)
            }
            #[inline]
            fn abs_sub(&self, other: &Self) -> Self {
                (*self - *other).relu()
            }
            #[inline]
            fn signum(&self) -> Self {
                <$Number>::signum(*self)
            }
            #[inline]
            fn is_positive(&self) -> bool {
                !is_negative(*self, self.is_active())
            }
            #[inline]
            fn is_negative(&self) -> bool {
                is_negative(*self, self.is_active())
            }
        }

        impl<$($generics)*> MulAddAssign for $Number {
            #[inline]
            fn mul_add_assign(&mut self, a: Self, b: Self) {
                *self = <$Number>::mul_add(*self, a, b);
            }
        }

        operations! { [$($generics)*] [$Number]
            Inv, inv(self) => self.recip();
            MulAdd, mul_add(self, a: Self, b: Self) => <$Number>::mul_add(self, a, b);
            Pow<Self>, pow(self, exponent: Self) => self.powf(exponent);
            Pow<f64>, pow(self, exponent: f64) => self.powf(Self::lift(S::from_f64(exponent)));
            Pow<i32>, pow(self, exponent: i32) => self.powi(exponent);
        }

        /// Of an active value each of these is a decision: what is computed from the answer has no
        /// derivative.
        impl<$($generics)*> ToPrimitive for $Number {
            conversions! { @to
                to_i8 -> i8; to_i16 -> i16; to_i32 -> i32; to_i64 -> i64; to_i128 -> i128; to_isize -> isize;
                to_u8 -> u8; to_u16 -> u16; to_u32 -> u32; to_u64 -> u64; to_u128 -> u128; to_usize -> usize;
                to_f32 -> f32; to_f64 -> f64;
            }
        }

        /// Constants.
        impl<$($generics)*> FromPrimitive for $Number {
            conversions! { @from S
                from_i64(i64); from_u64(u64); from_isize(isize); from_usize(usize);
            }
            #[inline]
            fn from_i128(n: i128) -> Option<Self> {
                Some(Self::lift(S::from_f64(n as f64)))
            }
            #[inline]
            fn from_u128(n: u128) -> Option<Self> {
                Some(Self::lift(S::from_f64(n as f64)))
            }
            #[inline]
            fn from_f32(n: f32) -> Option<Self> {
                Some(Self::lift(S::from_f64(n.into())))
            }
            #[inline]
            fn from_f64(n: f64) -> Option<Self> {
                Some(Self::lift(S::from_f64(n)))
            }
        }

        impl<$($generics)*> NumCast for $Number {
            /// A constant, also where `n` is itself a derivative number: then its conversion is a decision.
            #[inline]
            fn from<T: ToPrimitive>(n: T) -> Option<Self> {
                Some(Self::lift(S::from_f64(n.to_f64()?)))
            }
        }

        as_primitive! { [$($generics)*] [$Number] each
            f32 f64 i8 i16 i32 i64 isize u8 u16 u32 u64 usize
        }
    };
}
super::for_each_number! { num_traits! { FormatLimits } }
