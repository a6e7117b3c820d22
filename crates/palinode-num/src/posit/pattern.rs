//! Encoding <-> sign, scale and significand, and the one place where posits are rounded.
//!
//! Patterns are encodings aligned at the sign bit of 64 bits: `s r...r e e f...f 0...0`. All widths share the
//! number of exponent bits, so a pattern means the same number whatever width it came from.
//!
//! Rounding is to the nearest *encoding*, ties to the even one. Where a number has no bit of fraction left
//! this is not the nearest number: between 2^52 and 2^56 in 16 bits the border is 2^54, the number whose
//! encoding continues with a single 1.

use super::PositWidth;

/// A real number that is not zero: `(-1)^negative * significand * 2^(scale - 63)` with the top bit of the
/// significand set, and a little more (less than one unit of the significand) where `more` says so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unpacked {
    pub(crate) negative: bool,
    pub(crate) scale: i32,
    pub(crate) significand: u64,
    pub(crate) more: bool,
}

impl Unpacked {
    /// What a pattern means; it must be neither that of zero nor that of NaR.
    #[inline(always)]
    pub(crate) fn of(pattern: u64) -> Self {
        let negative = (pattern as i64) < 0;
        let magnitude = if negative { pattern.wrapping_neg() } else { pattern };
        let body = magnitude << 1;
        // All ones if the regime is a run of ones. The run ends within the body, whose last bit is 0.
        let ones = (body as i64 >> 63) as u64;
        let run = (body ^ ones).leading_zeros();
        let regime = -(run as i32) ^ ones as i32;
        let rest = body << run << 1;
        Self {
            negative,
            scale: 4 * regime + (rest >> 62) as i32,
            significand: 1 << 63 | rest << 2 >> 1,
            more: false,
        }
    }

    /// The number `mantissa * 2^(scale - 127)`, and a little more; `None` if the mantissa is zero.
    #[inline(always)]
    pub(crate) fn from_wide(negative: bool, scale: i32, mantissa: u128, more: bool) -> Option<Self> {
        if mantissa == 0 {
            return None;
        }
        let shift = mantissa.leading_zeros();
        let aligned = mantissa << shift;
        Some(Self {
            negative,
            scale: scale - shift as i32,
            significand: (aligned >> 64) as u64,
            more: more || aligned as u64 != 0,
        })
    }

    /// The pattern of the nearest posit of this width.
    #[inline(always)]
    pub(crate) fn pack<W: PositWidth>(self) -> u64 {
        let unit = 1u64 << (64 - W::BITS);
        let largest_scale = 4 * W::BITS as i32 - 8;
        let magnitude = if self.scale >= largest_scale {
            u64::MAX >> 1 & unit.wrapping_neg()
        } else if self.scale < -largest_scale {
            unit
        } else if W::BITS <= 32 {
            self.pack_narrow(W::BITS)
        } else {
            self.pack_wide()
        };
        if self.negative { magnitude.wrapping_neg() } else { magnitude }
    }

    /// `(regime bits on top, how often to repeat the first, exponent)`.
    #[inline(always)]
    fn regime(self) -> (u64, u32, u64) {
        let regime = self.scale >> 2;
        let (top, repeat) = if regime >= 0 { (0b10, regime) } else { (0b01, -regime - 1) };
        (top, repeat as u32, (self.scale & 3) as u64)
    }

    /// Up to 32 bits, of which at most 27 are fraction: 30 bits of it, the last one jammed, decide.
    #[inline(always)]
    fn pack_narrow(self, bits: u32) -> u64 {
        let (top, repeat, exponent) = self.regime();
        let rest = self.significand << 31 != 0 || self.more;
        let fraction = self.significand << 1 >> 34 | u64::from(rest);
        let body = top << 62 | exponent << 60 | fraction << 30;
        // The shift repeats the top bit: ones for large numbers, zeros for small ones.
        let encoding = ((body as i64) >> repeat) as u64 >> 1;
        let kept = encoding >> (64 - bits);
        let dropped = encoding << bits;
        let half = 1 << 63;
        let up = dropped > half || dropped == half && kept & 1 == 1;
        (kept + u64::from(up)) << (64 - bits)
    }

    /// 64 bits, of which at most 59 are fraction: 62 bits of it, the last one jammed, decide.
    #[inline(always)]
    fn pack_wide(self) -> u64 {
        let (top, repeat, exponent) = self.regime();
        let rest = self.significand & 1 == 1 || self.more;
        let fraction = self.significand << 1 >> 2 | u64::from(rest);
        let body = u128::from(top << 2 | exponent) << 124 | u128::from(fraction) << 62;
        let encoding = ((body as i128) >> repeat) as u128 >> 1;
        let (kept, dropped) = ((encoding >> 64) as u64, encoding as u64);
        let half = 1 << 63;
        let up = dropped > half || dropped == half && kept & 1 == 1;
        kept + u64::from(up)
    }
}

/// The pattern of the nearest posit of this width, from any pattern.
#[inline]
pub(super) fn narrow<W: PositWidth>(pattern: u64) -> u64 {
    if pattern << 1 == 0 { pattern } else { Unpacked::of(pattern).pack::<W>() }
}
