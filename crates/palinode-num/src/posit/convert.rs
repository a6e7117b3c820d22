//! Posits from and to floats, integers, double-doubles and other widths.
//!
//! Every conversion is correctly rounded: to posits as all rounding here, to floats and integers to the
//! nearest, ties to even. An infinity or a NaN becomes NaR, NaR becomes a NaN; NaR and integers out of range
//! are `None`. Widening is exact.

use super::arithmetic::{Whole, sum, whole};
use super::pattern::{Unpacked, narrow};
use super::{Posit, Posit8, Posit16, Posit32, Posit64, PositWidth};
use crate::double_double::DoubleDouble;
use crate::wide;

/// The magnitude and sign of a finite `f64`; `None` is zero.
fn unpacked(v: f64) -> Option<Unpacked> {
    let (fraction, power) = wide::decode(v);
    Unpacked::from_wide(v.is_sign_negative(), power as i32 + 127, u128::from(fraction), false)
}

impl Unpacked {
    /// The nearest `f64`; the scale must be one that a normal `f64` has.
    fn to_f64(self) -> f64 {
        let sign = if self.negative { -1.0 } else { 1.0 };
        let unit = f64::from_bits(((self.scale + 1023 - 63) as u64) << 52);
        sign * self.significand as f64 * unit
    }
}

impl<W: PositWidth> Posit<W> {
    /// The nearest posit; NaR if `v` is infinite or NaN.
    #[must_use]
    pub fn from_f64(v: f64) -> Self {
        if v.is_finite() { Self::nearest_or_zero(unpacked(v)) } else { Self::NAR }
    }

    /// The nearest posit; NaR if `v` is infinite or NaN.
    #[must_use]
    #[inline]
    pub fn from_f32(v: f32) -> Self {
        Self::from_f64(f64::from(v))
    }

    /// The nearest `f64`, which is the number itself up to 32 bits; NaN for NaR.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        match self.unpack() {
            Some(number) => number.to_f64(),
            None if self.is_zero() => 0.0,
            None => f64::NAN,
        }
    }

    /// The nearest `f32`; NaN for NaR. Posits of 64 bits reach beyond it, to infinity and to subnormal
    /// numbers and 0.
    #[must_use]
    pub fn to_f32(self) -> f32 {
        match self.unpack() {
            // 32 bits with the last one jammed fit an f64, so that only the last step rounds.
            Some(number) => {
                let jammed = number.significand >> 32 << 32 | u64::from(number.significand as u32 != 0) << 32;
                Unpacked { significand: jammed, ..number }.to_f64() as f32
            }
            None if self.is_zero() => 0.0,
            None => f32::NAN,
        }
    }

    /// The nearest posit to a double-double, exactly rounded; NaR if it is not finite.
    #[must_use]
    pub fn from_double_double(v: DoubleDouble) -> Self {
        if !v.hi().is_finite() {
            return Self::NAR;
        }
        match (unpacked(v.hi()), unpacked(v.lo())) {
            (Some(hi), Some(lo)) => Self::nearest_or_zero(sum(hi.into(), lo.into())),
            (hi, lo) => Self::nearest_or_zero(hi.or(lo)),
        }
    }

    /// The number itself, whatever its width; NaN for NaR.
    #[must_use]
    pub fn to_double_double(self) -> DoubleDouble {
        let Some(number) = self.unpack() else { return DoubleDouble::from(self.to_f64()) };
        let high = number.significand >> 11 << 11;
        let unit = Unpacked { significand: 1 << 63, ..number }.to_f64() / (1u64 << 63) as f64;
        DoubleDouble::from_sum(high as f64 * unit, (number.significand - high) as f64 * unit)
    }

    /// The nearest posit of another width; wider ones are the same number.
    ///
    /// ```
    /// use palinode_num::{Posit16, Posit64};
    ///
    /// let x: Posit64 = "3.14159265358979".parse()?;
    /// assert_eq!(x.convert::<i16>(), Posit16::from_f64(3.14159265358979));
    /// assert_eq!(Posit64::from(x.convert::<i16>()).to_string(), "3.1416015625");
    /// # Ok::<(), palinode_num::ParsePositError>(())
    /// ```
    #[must_use]
    pub fn convert<V: PositWidth>(self) -> Posit<V> {
        let pattern = self.pattern();
        Posit::from_pattern(if V::BITS < W::BITS { narrow::<V>(pattern) } else { pattern })
    }

    /// The nearest posit to an integer of any primitive type.
    #[must_use]
    pub fn from_integer<T: PositInteger>(n: T) -> Self {
        let (negative, magnitude) = n.sign_and_magnitude();
        Self::nearest_or_zero(Unpacked::from_wide(negative, 127, magnitude, false))
    }

    /// The nearest integer, ties to even; `None` for NaR and for what the type does not hold.
    ///
    /// ```
    /// use palinode_num::Posit32;
    ///
    /// assert_eq!(Posit32::from_f64(-2.5).to_integer(), Some(-2i32));
    /// assert_eq!(Posit32::from_f64(300.0).to_integer::<u8>(), None);
    /// assert_eq!(Posit32::NAR.to_integer::<i64>(), None);
    /// ```
    #[must_use]
    pub fn to_integer<T: PositInteger>(self) -> Option<T> {
        if self.is_nar() {
            return None;
        }
        let Some(number) = self.unpack().and_then(|number| whole(number, Whole::RoundEven)) else {
            return T::from_sign_and_magnitude(false, 0);
        };
        let significand = u128::from(number.significand);
        let magnitude = match number.scale {
            0..=63 => significand >> (63 - number.scale),
            64..=127 => significand << (number.scale - 63),
            _ => return None,
        };
        T::from_sign_and_magnitude(number.negative, magnitude)
    }
}

/// A primitive integer.
pub trait PositInteger: Copy {
    /// Whether it is negative, and how large it is.
    fn sign_and_magnitude(self) -> (bool, u128);
    /// The integer, if the type holds it.
    fn from_sign_and_magnitude(negative: bool, magnitude: u128) -> Option<Self>;
}

macro_rules! integers {
    (signed: $($signed:ident)*; unsigned: $($unsigned:ident)*) => {
        $(impl PositInteger for $signed {
            #[inline]
            fn sign_and_magnitude(self) -> (bool, u128) {
                (self < 0, self.unsigned_abs() as u128)
            }
            #[inline]
            fn from_sign_and_magnitude(negative: bool, magnitude: u128) -> Option<Self> {
                let reach = $signed::MAX as u128 + u128::from(negative);
                // The cast keeps the low bits, so the magnitude of the smallest integer becomes that integer.
                let low = magnitude as Self;
                (magnitude <= reach).then(|| if negative { low.wrapping_neg() } else { low })
            }
        })*
        $(impl PositInteger for $unsigned {
            #[inline]
            fn sign_and_magnitude(self) -> (bool, u128) {
                (false, self as u128)
            }
            #[inline]
            fn from_sign_and_magnitude(negative: bool, magnitude: u128) -> Option<Self> {
                if negative && magnitude != 0 { None } else { Self::try_from(magnitude).ok() }
            }
        })*
    };
}
integers!(signed: i8 i16 i32 i64 i128 isize; unsigned: u8 u16 u32 u64 u128 usize);

macro_rules! widening {
    ($($narrow:ident -> $($wide:ident)*;)*) => {$($(
        impl From<$narrow> for $wide {
            /// The same number.
            #[inline]
            fn from(number: $narrow) -> Self {
                number.convert()
            }
        }
    )*)*};
}
widening! {
    Posit8 -> Posit16 Posit32 Posit64;
    Posit16 -> Posit32 Posit64;
    Posit32 -> Posit64;
}
