//! Exact arithmetic on unpacked numbers: what operators and conversions round once.
//!
//! Input -> output: numbers that are not zero in, the exact result out, with `more` set where bits below the
//! 64 of the significand were cut; `None` is zero.
//!
//! Significands that come from posits have at most 60 bits, so that their products leave the last 8 bits of
//! 128 free: sums of products are exact where they cancel.

use super::pattern::Unpacked;

/// `(-1)^negative * significand * 2^(scale - 127)`, the top bit of the significand set.
#[derive(Clone, Copy)]
pub(super) struct Term {
    negative: bool,
    scale: i32,
    significand: u128,
}

impl From<Unpacked> for Term {
    #[inline(always)]
    fn from(number: Unpacked) -> Self {
        let Unpacked { negative, scale, significand, .. } = number;
        Self { negative, scale, significand: u128::from(significand) << 64 }
    }
}

/// The exact product.
#[inline(always)]
pub(super) fn product(a: Unpacked, b: Unpacked) -> Term {
    let full = u128::from(a.significand) * u128::from(b.significand);
    let missing = full.leading_zeros();
    Term {
        negative: a.negative != b.negative,
        scale: a.scale + b.scale + 1 - missing as i32,
        significand: full << missing,
    }
}

impl Term {
    #[inline(always)]
    pub(super) fn unpacked(self) -> Option<Unpacked> {
        Unpacked::from_wide(self.negative, self.scale, self.significand, false)
    }
}

/// The sum of two terms whose last bit is free.
#[inline(always)]
pub(super) fn sum(a: Term, b: Term) -> Option<Unpacked> {
    let (large, small) = if (a.scale, a.significand) >= (b.scale, b.significand) { (a, b) } else { (b, a) };
    // One bit of room on top for the carry.
    let high = large.significand >> 1;
    let distance = (large.scale - small.scale) as u32 + 1;
    let (low, lost) = if distance < 128 {
        (small.significand >> distance, small.significand << (128 - distance) != 0)
    } else {
        (0, true)
    };
    // If bits are lost there is no cancellation to bring them back. Less a little is one less and a little
    // more.
    let total = if large.negative == small.negative { high + low } else { high - low - u128::from(lost) };
    Unpacked::from_wide(large.negative, large.scale + 1, total, lost)
}

/// The quotient; `narrow` promises significands of at most 32 bits.
#[inline(always)]
pub(super) fn quotient(a: Unpacked, b: Unpacked, narrow: bool) -> Unpacked {
    let negative = a.negative != b.negative;
    let scale = a.scale - b.scale;
    // Both significands have their top bit set, so that the quotient has as many bits as they have, or one
    // less.
    let (wide, rest) = if narrow {
        let (n, d) = (a.significand >> 32 << 31, b.significand >> 32);
        (u128::from(n / d) << 96, n % d != 0)
    } else {
        let (n, d) = (u128::from(a.significand) << 63, u128::from(b.significand));
        ((n / d) << 64, n % d != 0)
    };
    Unpacked::from_wide(negative, scale, wide, rest).expect("a quotient of significands is not zero")
}

/// The remainder of the truncated division, exactly, with the sign of `a`.
pub(super) fn remainder(a: Unpacked, b: Unpacked) -> Option<Unpacked> {
    if (a.scale, a.significand) < (b.scale, b.significand) {
        return Some(a);
    }
    let divisor = u128::from(b.significand);
    let mut rest = u128::from(a.significand) % divisor;
    let mut left = (a.scale - b.scale) as u32;
    while left > 0 {
        let step = left.min(64);
        rest = (rest << step) % divisor;
        left -= step;
    }
    Unpacked::from_wide(a.negative, b.scale, rest << 64, false)
}

/// The square root of a positive number; `narrow` promises a significand of at most 32 bits.
#[inline]
pub(super) fn square_root(a: Unpacked, narrow: bool) -> Unpacked {
    let odd = (a.scale & 1) as u32;
    let (root, more) = if narrow {
        let square = a.significand >> 32 << 31 << odd;
        let root = square.isqrt();
        (root << 32, root * root != square)
    } else {
        let square = u128::from(a.significand) << (63 + odd);
        let root = square.isqrt();
        (root as u64, root * root != square)
    };
    Unpacked { negative: false, scale: a.scale >> 1, significand: root, more }
}

/// How to leave a fraction behind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Whole {
    Floor,
    Ceil,
    /// Halves away from zero.
    Round,
    /// Halves to even.
    RoundEven,
    Trunc,
}

/// The integer next to a number.
pub(super) fn whole(a: Unpacked, how: Whole) -> Option<Unpacked> {
    if a.scale >= 63 {
        return Some(a);
    }
    // The significand in units of 1, and what is below them, aligned at the top.
    let (units, fraction) = match a.scale {
        0.. => (a.significand >> (63 - a.scale), a.significand << (a.scale + 1)),
        -1 => (0, a.significand),
        _ => (0, 1),
    };
    const HALF: u64 = 1 << 63;
    let up = match how {
        Whole::Floor => a.negative && fraction != 0,
        Whole::Ceil => !a.negative && fraction != 0,
        Whole::Round => fraction >= HALF,
        Whole::RoundEven => fraction > HALF || fraction == HALF && units & 1 == 1,
        Whole::Trunc => false,
    };
    let units = units + u64::from(up);
    Unpacked::from_wide(a.negative, 127, u128::from(units), false)
}
