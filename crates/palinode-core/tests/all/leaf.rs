//! The number types that rules are tested on, and how far a result is from the truth in each.

use palinode_core::{Differentiable, DoubleDouble, Scalar};

/// A plain number type under test.
pub(crate) trait Leaf: Scalar<Bool = bool> + Differentiable + PartialOrd {
    const NAME: &'static str;
    /// One ulp of 1. A correctly rounded result is within half of this, relatively.
    const EPSILON: f64;
    /// The smallest positive number: what rounding to the subnormal grid may cost, absolutely.
    const SMALLEST: f64;
    const LARGEST: f64;
    fn wide(self) -> DoubleDouble;
    fn bits(self) -> [u64; 2];
    fn holds(fits_f32: bool) -> bool {
        let _ = fits_f32;
        true
    }
}

impl Leaf for f32 {
    const NAME: &'static str = "f32";
    const EPSILON: f64 = f32::EPSILON as f64;
    const SMALLEST: f64 = 1.401_298_464_324_817e-45;
    const LARGEST: f64 = f32::MAX as f64;
    fn wide(self) -> DoubleDouble {
        DoubleDouble::from(f64::from(self))
    }
    fn bits(self) -> [u64; 2] {
        [u64::from(self.to_bits()), 0]
    }
    fn holds(fits_f32: bool) -> bool {
        fits_f32
    }
}

impl Leaf for f64 {
    const NAME: &'static str = "f64";
    const EPSILON: f64 = f64::EPSILON;
    const SMALLEST: f64 = 5e-324;
    const LARGEST: f64 = f64::MAX;
    fn wide(self) -> DoubleDouble {
        DoubleDouble::from(self)
    }
    fn bits(self) -> [u64; 2] {
        [self.to_bits(), 0]
    }
}

impl Leaf for DoubleDouble {
    const NAME: &'static str = "double-double";
    /// 2^-104: two of the 106 bits are left for rounding, as `palinode-num` states.
    const EPSILON: f64 = f64::EPSILON * f64::EPSILON;
    const SMALLEST: f64 = 5e-324;
    const LARGEST: f64 = f64::MAX;
    fn wide(self) -> DoubleDouble {
        self
    }
    fn bits(self) -> [u64; 2] {
        // The sign of a low part that is zero says nothing.
        [self.hi().to_bits(), (self.lo() + 0.0).to_bits()]
    }
}

/// The error of `found` in ulp of `size`, which is at least the magnitude of `expected`; infinite if it is not even
/// in the right place. An absolute error of `floor` is forgiven: it is what underflow costs.
pub(crate) fn ulps<S: Leaf>(found: S, expected: DoubleDouble, size: f64, floor: f64) -> f64 {
    let found = found.wide();
    let target = expected.hi();
    if found.hi().is_nan() {
        return f64::INFINITY;
    }
    if target.abs() > S::LARGEST {
        let overflowed = found.hi().abs() >= S::LARGEST && (found.hi() > 0.0) == (target > 0.0);
        return if overflowed { 0.0 } else { f64::INFINITY };
    }
    if found.hi().is_infinite() {
        // What rounds beyond the largest number from within a few ulp of it has overflowed rightly.
        let close =
            target.abs() > S::LARGEST * (1.0 - 4.0 * S::EPSILON) && (found.hi() > 0.0) == (target > 0.0);
        return if close { 0.0 } else { f64::INFINITY };
    }
    let error = (found - expected).abs().hi();
    if error <= floor { 0.0 } else { error / size / S::EPSILON }
}

/// Equal in every bit, or both NaN.
pub(crate) fn same_bits<S: Leaf>(a: S, b: S) -> bool {
    a.bits() == b.bits() || (a.wide().hi().is_nan() && b.wide().hi().is_nan())
}
