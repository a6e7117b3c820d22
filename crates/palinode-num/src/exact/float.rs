//! The parts of floats: integer significands going in, rounding coming out, and what has no place on the real
//! line.

use super::digits::{Digits, Format};

/// The smallest subnormal: all numbers are multiples of it, products of its square.
pub(super) const UNIT: i32 = -1074;

const F64: Format = Format { precision: 53, lowest: UNIT, infinity: f64::INFINITY.to_bits() };
const F32: Format = Format { precision: 24, lowest: -149, infinity: f32::INFINITY.to_bits() as u64 };

/// A finite number as `integer * 2^position` times the smallest subnormal, negated if `sign` is -1.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    pub(super) integer: u64,
    pub(super) position: usize,
    pub(super) sign: i64,
}

impl Parts {
    /// `None` for infinities and NaN.
    #[inline(always)]
    pub(super) fn of(x: f64) -> Option<Self> {
        let bits = x.to_bits();
        let exponent = bits >> 52 & 0x7ff;
        if exponent == 0x7ff {
            return None;
        }
        let normal = u64::from(exponent != 0);
        Some(Parts {
            integer: bits & ((1 << 52) - 1) | normal << 52,
            position: (exponent - normal) as usize,
            sign: bits as i64 >> 63,
        })
    }
}

/// What has been added beside finite numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Beyond {
    up: bool,
    down: bool,
    nan: bool,
}

impl Beyond {
    #[cold]
    #[inline(never)]
    pub(super) fn add(&mut self, x: f64) {
        self.up |= x == f64::INFINITY;
        self.down |= x == f64::NEG_INFINITY;
        self.nan |= x.is_nan();
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.up |= other.up;
        self.down |= other.down;
        self.nan |= other.nan;
    }

    /// As a byte; see `bytes.rs`.
    pub(super) fn to_byte(self) -> u8 {
        u8::from(self.up) | u8::from(self.down) << 1 | u8::from(self.nan) << 2
    }

    pub(super) fn from_byte(byte: u8) -> Self {
        Beyond { up: byte & 1 != 0, down: byte & 2 != 0, nan: byte & 4 != 0 }
    }

    pub(super) fn negate(&mut self) {
        core::mem::swap(&mut self.up, &mut self.down);
    }

    /// The sum, if finite numbers do not decide it.
    fn sum(self) -> Option<f64> {
        match (self.nan, self.up, self.down) {
            (false, false, false) => None,
            (false, true, false) => Some(f64::INFINITY),
            (false, false, true) => Some(f64::NEG_INFINITY),
            (true, _, _) | (false, true, true) => Some(f64::NAN),
        }
    }
}

/// The nearest `f64`; an exact zero is +0.
pub(super) fn round_to_f64<const N: usize>(digits: &Digits<N>, unit: i32, beyond: Beyond) -> f64 {
    beyond.sum().unwrap_or_else(|| {
        let (negative, bits) = digits.round(unit, &F64);
        let size = f64::from_bits(bits);
        if negative { -size } else { size }
    })
}

/// The nearest `f32`, rounded once.
pub(super) fn round_to_f32<const N: usize>(digits: &Digits<N>, unit: i32, beyond: Beyond) -> f32 {
    beyond.sum().map(|sum| sum as f32).unwrap_or_else(|| {
        let (negative, bits) = digits.round(unit, &F32);
        let size = f32::from_bits(bits as u32);
        if negative { -size } else { size }
    })
}
