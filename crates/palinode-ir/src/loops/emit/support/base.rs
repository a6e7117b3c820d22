/// Why a run stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A number is infinite or NaN.
    NotFinite,
    /// An index is outside of its array.
    Outside,
    /// An integer is too large for 64 bits, or is divided by zero.
    Overflow,
    /// What the program demands does not hold.
    Failed,
    /// There are no steps left.
    Steps,
}

/// A run that stopped, and where: what it would have given is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// Why.
    pub stop: Stop,
    /// The line of the model.
    pub line: u32,
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let words = match self.stop {
            Stop::NotFinite => "a number is infinite or NaN",
            Stop::Outside => "an index is outside of its array",
            Stop::Overflow => "an integer is too large, or is divided by zero",
            Stop::Failed => "an operation failed",
            Stop::Steps => "there are no steps left",
        };
        write!(f, "line {}: {words}", self.line)
    }
}

impl core::error::Error for Error {}

/// Adds the line of the model.
pub(crate) trait At<T> {
    fn line(self, line: u32) -> Result<T, Error>;
}

impl<T> At<T> for Result<T, Stop> {
    #[inline(always)]
    fn line(self, line: u32) -> Result<T, Error> {
        self.map_err(|stop| Error { stop, line })
    }
}

/// Whether nothing was noted.
#[inline(always)]
pub(crate) fn finite(bad: u64) -> Result<(), Stop> {
    if bad == 0 { Ok(()) } else { Err(Stop::NotFinite) }
}

/// Keeps the compiler from taking several short rows at a time: it would gather and scatter their elements,
/// which takes longer than row by row.
#[inline(always)]
pub(crate) fn row_by_row() {
    core::hint::black_box(());
}

/// Whether all are finite.
pub(crate) fn all_finite(x: &[f64]) -> Result<(), Stop> {
    finite(x.iter().fold(0, |bad, x| bad | bits(x - x)))
}

/// Whether something holds.
#[inline(always)]
pub(crate) fn holds(condition: bool) -> Result<(), Stop> {
    if condition { Ok(()) } else { Err(Stop::Failed) }
}

/// What always fails.
#[inline(always)]
pub(crate) fn never() -> Result<(), Stop> {
    Err(Stop::Failed)
}

/// Whether `0 <= at < length`.
#[inline(always)]
pub(crate) fn within(at: i64, length: i64) -> Result<(), Stop> {
    if 0 <= at && at < length { Ok(()) } else { Err(Stop::Outside) }
}

/// A place in an array, if it is one.
#[inline(always)]
pub(crate) fn inside(at: i64, length: i64) -> Result<i64, Stop> {
    within(at, length).map(|()| at)
}

/// Takes steps.
#[inline(always)]
pub(crate) fn take_steps(left: &mut u64, taken: usize) -> Result<(), Stop> {
    *left = left.checked_sub(taken as u64).ok_or(Stop::Steps)?;
    Ok(())
}

/// Elements from a place on.
#[inline(always)]
pub(crate) fn part<T, const N: usize>(x: &[T], from: usize) -> &[T; N] {
    x[from..].first_chunk().expect("there are so many elements")
}

/// The same, to be changed.
#[inline(always)]
pub(crate) fn part_mut<T, const N: usize>(x: &mut [T], from: usize) -> &mut [T; N] {
    x[from..].first_chunk_mut().expect("there are so many elements")
}

/// A counter as an integer.
#[inline(always)]
pub(crate) fn int(counter: usize) -> i64 {
    counter as i64
}

/// A number of rounds; less than none are none.
#[inline(always)]
pub(crate) fn rounds(number: i64) -> usize {
    number.max(0) as usize
}

/// The nearest real.
#[inline(always)]
pub(crate) fn real(n: i64) -> f64 {
    n as f64
}

/// The integer part.
#[inline(always)]
pub(crate) fn truncate(x: f64) -> Result<i64, Stop> {
    let limit = 9223372036854775808.0;
    if -limit <= x && x < limit { Ok(x as i64) } else { Err(Stop::Overflow) }
}

#[inline(always)]
pub(crate) fn added(a: i64, b: i64) -> Result<i64, Stop> {
    a.checked_add(b).ok_or(Stop::Overflow)
}

#[inline(always)]
pub(crate) fn subtracted(a: i64, b: i64) -> Result<i64, Stop> {
    a.checked_sub(b).ok_or(Stop::Overflow)
}

#[inline(always)]
pub(crate) fn multiplied(a: i64, b: i64) -> Result<i64, Stop> {
    a.checked_mul(b).ok_or(Stop::Overflow)
}

/// The floor of a quotient.
#[inline(always)]
pub(crate) fn quotient(a: i64, b: i64) -> Result<i64, Stop> {
    let whole = a.checked_div(b).ok_or(Stop::Overflow)?;
    let down = a % b != 0 && (a % b < 0) != (b < 0);
    Ok(whole - i64::from(down))
}

/// What the floor of a quotient leaves.
#[inline(always)]
pub(crate) fn rest(a: i64, b: i64) -> Result<i64, Stop> {
    if b == 0 {
        return Err(Stop::Overflow);
    }
    let left = a.wrapping_rem(b);
    Ok(if left != 0 && (left < 0) != (b < 0) { left + b } else { left })
}

/// The floor of a quotient by a positive number.
#[inline(always)]
pub(crate) fn quotient_by(a: i64, b: i64) -> i64 {
    a.div_euclid(b)
}

/// What it leaves.
#[inline(always)]
pub(crate) fn rest_by(a: i64, b: i64) -> i64 {
    a.rem_euclid(b)
}

#[inline(always)]
pub(crate) fn least(a: i64, b: i64) -> i64 {
    if b < a { b } else { a }
}

#[inline(always)]
pub(crate) fn most(a: i64, b: i64) -> i64 {
    if a < b { b } else { a }
}

/// The bits of a number: all zero for the difference of a finite number and itself.
#[inline(always)]
pub(crate) fn bits(x: f64) -> u64 {
    x.to_bits()
}

#[inline(always)]
pub(crate) fn round32(x: f64) -> f64 {
    f64::from(x as f32)
}

#[inline(always)]
pub(crate) fn abs(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & !(1 << 63))
}

/// The magnitude of one number with the sign of another.
#[inline(always)]
pub(crate) fn copysign(x: f64, y: f64) -> f64 {
    f64::from_bits(abs(x).to_bits() | y.to_bits() & 1 << 63)
}

#[inline(always)]
pub(crate) fn signum(x: f64) -> f64 {
    if x.is_nan() { x } else { copysign(1.0, x) }
}

#[inline(always)]
pub(crate) fn square(x: f64) -> f64 {
    x * x
}

#[inline(always)]
pub(crate) fn cube(x: f64) -> f64 {
    x * x * x
}

#[inline(always)]
pub(crate) fn relu(x: f64) -> f64 {
    if x < 0.0 { 0.0 } else { x }
}

/// The smaller one; the other one if one is NaN.
#[inline(always)]
pub(crate) fn min(x: f64, y: f64) -> f64 {
    if y < x || x.is_nan() { y } else { x }
}

/// The larger one; the other one if one is NaN.
#[inline(always)]
pub(crate) fn max(x: f64, y: f64) -> f64 {
    if x < y || x.is_nan() { y } else { x }
}

#[inline(always)]
pub(crate) fn clamp(x: f64, low: f64, high: f64) -> f64 {
    let x = if x < low { low } else { x };
    if high < x { high } else { x }
}

/// `y` where `x` is not zero, else `z`.
#[inline(always)]
pub(crate) fn select_nonzero(x: f64, y: f64, z: f64) -> f64 {
    if x == 0.0 { z } else { y }
}

/// The product in which a zero wins over infinity and NaN.
#[inline(always)]
pub(crate) fn strong_mul(x: f64, y: f64) -> f64 {
    let product = x * y;
    if product.is_nan() { strong_mul_of_nan(x, y) } else { product }
}

/// The same where the plain product is NaN.
#[cold]
#[inline(never)]
fn strong_mul_of_nan(x: f64, y: f64) -> f64 {
    if x == 0.0 || y == 0.0 { 0.0 } else { x * y }
}

/// The same without a branch, for loops over elements.
#[inline(always)]
pub(crate) fn strong_mul_by_choice(x: f64, y: f64) -> f64 {
    let product = x * y;
    if product.is_nan() & ((x == 0.0) | (y == 0.0)) { 0.0 } else { product }
}

/// Towards zero.
#[inline(always)]
pub(crate) fn trunc(x: f64) -> f64 {
    // From 2^52 on all numbers are whole.
    if abs(x) < 4503599627370496.0 { copysign(x as i64 as f64, x) } else { x }
}

/// Down.
#[inline(always)]
pub(crate) fn floor(x: f64) -> f64 {
    let whole = trunc(x);
    if x < whole { whole - 1.0 } else { whole }
}

/// Up.
#[inline(always)]
pub(crate) fn ceil(x: f64) -> f64 {
    let whole = trunc(x);
    if whole < x { copysign(whole + 1.0, x) } else { whole }
}

/// To the nearest, away from zero in the middle.
#[inline(always)]
pub(crate) fn round(x: f64) -> f64 {
    let whole = trunc(x);
    if abs(x - whole) >= 0.5 { whole + copysign(1.0, x) } else { whole }
}

#[inline(always)]
pub(crate) fn fract(x: f64) -> f64 {
    x - trunc(x)
}

/// What is left of `x` after a whole number of `y`s, with the sign of `x`.
#[inline(always)]
pub(crate) fn rem(x: f64, y: f64) -> f64 {
    x % y
}

/// The square root, rounded correctly.
#[inline(always)]
pub(crate) fn sqrt(x: f64) -> f64 {
    #[cfg(feature = "std")]
    {
        x.sqrt()
    }
    #[cfg(all(not(feature = "std"), target_arch = "x86_64"))]
    {
        use core::arch::x86_64::{_mm_cvtsd_f64, _mm_set_sd, _mm_sqrt_sd};
        // SAFETY: every x86-64 has these instructions.
        #[allow(unsafe_code)]
        unsafe {
            let x = _mm_set_sd(x);
            _mm_cvtsd_f64(_mm_sqrt_sd(x, x))
        }
    }
    #[cfg(all(not(feature = "std"), not(target_arch = "x86_64")))]
    {
        sqrt_by_integers(x)
    }
}

/// The same without an instruction for it.
pub(crate) fn sqrt_by_integers(x: f64) -> f64 {
    if x == 0.0 || x.is_nan() || x == f64::INFINITY {
        return x;
    }
    if x < 0.0 {
        return f64::NAN;
    }
    let (mut mantissa, mut exponent) = parts(x);
    if exponent % 2 != 0 {
        (mantissa, exponent) = (mantissa << 1, exponent - 1);
    }
    // 54 bits of the root: the last one is that of one half, and it is never exactly that.
    let root = ((u128::from(mantissa) << 54).isqrt() + 1) >> 1;
    assembled(root as u64, (exponent - 54) / 2 + 1)
}

/// `x y + z`, rounded once.
#[inline(always)]
pub(crate) fn mul_add(x: f64, y: f64, z: f64) -> f64 {
    #[cfg(feature = "std")]
    {
        x.mul_add(y, z)
    }
    #[cfg(all(not(feature = "std"), target_arch = "x86_64", target_feature = "fma"))]
    {
        use core::arch::x86_64::{_mm_cvtsd_f64, _mm_fmadd_sd, _mm_set_sd};
        // SAFETY: this is compiled for processors that have it.
        #[allow(unsafe_code)]
        unsafe {
            _mm_cvtsd_f64(_mm_fmadd_sd(_mm_set_sd(x), _mm_set_sd(y), _mm_set_sd(z)))
        }
    }
    #[cfg(all(not(feature = "std"), not(all(target_arch = "x86_64", target_feature = "fma"))))]
    {
        mul_add_by_integers(x, y, z)
    }
}

/// The same without an instruction for it.
pub(crate) fn mul_add_by_integers(x: f64, y: f64, z: f64) -> f64 {
    if !x.is_finite() || !y.is_finite() || x == 0.0 || y == 0.0 {
        return x * y + z;
    }
    if !z.is_finite() {
        return z;
    }
    if z == 0.0 {
        return x * y;
    }
    let ((a, e), (b, f), (c, g)) = (parts(abs(x)), parts(abs(y)), parts(abs(z)));
    // The highest bit of both terms is bit 125; then there is room for their sum, and for bits below.
    let up = |n: u128, exponent: i32| {
        let by = n.leading_zeros() as i32 - 2;
        (n << by, exponent - by)
    };
    let product = up(u128::from(a) * u128::from(b), e + f);
    let addend = up(u128::from(c), g);
    let (product_sign, addend_sign) = ((x < 0.0) != (y < 0.0), z < 0.0);
    let is_larger = (product.1, product.0) > (addend.1, addend.0);
    let (large, small, sign) =
        if is_larger { (product, addend, product_sign) } else { (addend, product, addend_sign) };
    // What is shifted out is kept as one bit.
    let distance = (large.1 - small.1) as u32;
    let moved = match distance {
        0 => small.0,
        1..=127 => small.0 >> distance | u128::from(small.0 << (128 - distance) != 0),
        _ => 1,
    };
    let sum = if product_sign == addend_sign { large.0 + moved } else { large.0 - moved };
    if sum == 0 {
        return 0.0;
    }
    // Rounded to 53 bits, or to the last place of the smallest numbers.
    let drop = (75 - sum.leading_zeros() as i32).max(-1074 - large.1);
    let rounded = match drop {
        ..=0 => (sum << -drop) as u64,
        1..=127 => {
            let (kept, dropped, half) = (sum >> drop, sum & ((1 << drop) - 1), 1 << (drop - 1));
            let up = dropped > half || dropped == half && kept % 2 == 1;
            (kept + u128::from(up)) as u64
        }
        _ => 0,
    };
    let size = assembled(rounded, large.1 + drop);
    if sign { -size } else { size }
}

/// A positive finite number as `mantissa * 2^exponent`, where the mantissa has 53 bits.
fn parts(x: f64) -> (u64, i32) {
    let (bits, exponent) = (x.to_bits() & ((1 << 52) - 1), (x.to_bits() >> 52) as i32);
    if exponent == 0 {
        let up = bits.leading_zeros() as i32 - 11;
        return (bits << up, -1074 - up);
    }
    (bits | 1 << 52, exponent - 1075)
}

/// `mantissa * 2^exponent`, where the mantissa has 53 bits, or fewer and the exponent is -1074.
fn assembled(mantissa: u64, exponent: i32) -> f64 {
    if mantissa < 1 << 52 {
        return f64::from_bits(mantissa);
    }
    let biased = exponent + 1075;
    if biased >= 2047 {
        return f64::INFINITY;
    }
    // A mantissa that was rounded up to 2^53 adds one to the exponent.
    f64::from_bits(((biased as u64) << 52) + (mantissa - (1 << 52)))
}
