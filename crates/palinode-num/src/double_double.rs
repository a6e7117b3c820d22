//! [`DoubleDouble`]: about 106 bits as an unevaluated sum of two `f64`s.
//!
//! Input -> output: `f64`s, integers or decimal text in; a [`Scalar`] and [`Real`] whose every function is
//! accurate to about 2^-104 relative, wherever the result is a normal number, out.
//!
//! Invariants: `hi` is the `f64` nearest to the number; `lo` is 0 where `hi` is zero, infinite or NaN. Hence
//! each number has one representation, and comparing the pair compares the numbers. Overflow gives an
//! infinity, never NaN. Signed zeros, infinities and NaN follow `f64`.
//!
//! Papers: Dekker (1971) for the arithmetic. Functions beyond arithmetic are evaluated on 192-bit integers
//! (the private module `wide`) and rounded once, because correctness matters more here than speed.
//!
//! Known limits: below about 1e-292 the low part is subnormal or gone and the precision falls towards that of
//! `f64`. `mul_add` rounds the product before it adds. Next to a zero of `polygamma`, or of `lgamma` at a
//! negative argument, the error is small against the terms that cancel, not against the value.

mod arithmetic;
mod constants;
mod functions;
mod text;

pub use text::ParseDoubleDoubleError;

use crate::scalar::Real;
use crate::wide::Wide;

/// A number of about 106 bits (32 decimal digits), the sum of two `f64`s.
///
/// ```
/// use palinode_num::{DoubleDouble, Scalar};
///
/// let root = DoubleDouble::from(2).sqrt();
/// assert_eq!(format!("{root:.30}"), "1.414213562373095048801688724210");
/// let tenth: DoubleDouble = "0.1".parse()?;
/// assert!((tenth * 10.0 - 1.0).abs() < DoubleDouble::from(1e-31));
/// # Ok::<(), palinode_num::ParseDoubleDoubleError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct DoubleDouble {
    hi: f64,
    lo: f64,
}

impl DoubleDouble {
    /// The sum of two `f64`s, exactly wherever it fits the format.
    #[must_use]
    pub fn from_sum(a: f64, b: f64) -> Self {
        Self::from(a) + Self::from(b)
    }

    /// The nearest `f64`.
    #[must_use]
    #[inline]
    pub fn hi(self) -> f64 {
        self.hi
    }

    /// What the nearest `f64` leaves over.
    #[must_use]
    #[inline]
    pub fn lo(self) -> f64 {
        self.lo
    }

    /// A pair whose parts overlap at most slightly, with `|hi| >= |lo|`.
    #[inline]
    fn normalised(hi: f64, lo: f64) -> Self {
        let (hi, lo) = crate::error_free::quick_two_sum(hi, lo);
        if hi.is_finite() { Self { hi, lo } } else { Self::from(hi) }
    }

    /// The number cut to 192 bits; it must be finite.
    fn to_wide(self) -> Wide {
        Wide::from_f64(self.hi) + Wide::from_f64(self.lo)
    }
}

impl From<Wide> for DoubleDouble {
    fn from(wide: Wide) -> Self {
        let (hi, lo) = wide.to_pair();
        Self::normalised(hi, lo)
    }
}

impl From<f64> for DoubleDouble {
    #[inline]
    fn from(hi: f64) -> Self {
        Self { hi, lo: 0.0 }
    }
}

impl From<i32> for DoubleDouble {
    #[inline]
    fn from(n: i32) -> Self {
        Self::from(f64::from(n))
    }
}

impl From<DoubleDouble> for f64 {
    #[inline]
    fn from(number: DoubleDouble) -> Self {
        number.hi
    }
}

impl Real for DoubleDouble {
    #[inline]
    fn to_f64(self) -> f64 {
        self.hi
    }
}
