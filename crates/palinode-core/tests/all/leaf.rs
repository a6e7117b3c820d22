//! The number types that rules are tested on, and how far a result is from the truth in each.

use palinode_core::{Differentiable, DoubleDouble, Posit, PositWidth, Scalar};

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
    /// Whether the arguments of the reference do not fit, so that results are held to double-double at
    /// rounded ones.
    const ROUNDS_ARGUMENTS: bool = false;
    /// Whether tapes are also nested, in each other and in duals. That is the same code for every number and
    /// takes longest to compile, so only one number does it, unless asked with `--cfg long`.
    const NESTED_TAPES: bool = cfg!(long);
    /// One ulp of numbers as large as `reach`, or as small as its reciprocal, relatively; `None` where too
    /// few bits are left for a rounding to be a small error.
    fn epsilon_at(reach: f64) -> Option<f64> {
        let _ = reach;
        Some(Self::EPSILON)
    }
    /// How far the exact result may be, absolutely, if the number knows; else `budget.rs` counts roundings.
    fn bound(self) -> Option<f64> {
        None
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
    const NESTED_TAPES: bool = true;
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

impl<W: PositWidth> Leaf for Posit<W> {
    const NAME: &'static str = match W::BITS {
        8 => "posit8",
        16 => "posit16",
        32 => "posit32",
        _ => "posit64",
    };
    const EPSILON: f64 = 1.0 / (1u64 << (W::BITS - 5)) as f64;
    /// The second smallest: what underflows is rounded up to one of the two.
    const SMALLEST: f64 = 16.0 / Self::LARGEST;
    const LARGEST: f64 = {
        // 2^(4 BITS - 8)
        let (mut power, mut left) = (1.0, 4 * W::BITS - 8);
        while left > 0 {
            power *= 2.0;
            left -= 1;
        }
        power
    };
    const ROUNDS_ARGUMENTS: bool = true;
    const NESTED_TAPES: bool = cfg!(long) && W::BITS == 32;
    fn wide(self) -> DoubleDouble {
        self.to_double_double()
    }
    fn bits(self) -> [u64; 2] {
        [self.to_bits().to_pattern(), 0]
    }
    fn epsilon_at(reach: f64) -> Option<f64> {
        // So many bits of fraction make a rounding a small error. Eight bits never have them: see `Bounded`.
        let fewest = 6;
        // Every factor of 16 makes the regime one bit longer, and the fraction one bit shorter.
        let bits = W::BITS as i32 - 5 - (reach.log2() / 4.0).floor() as i32;
        (bits >= fewest).then(|| f64::from(-bits).exp2())
    }
}

/// The error of `found` in ulp of `size`, which is at least the magnitude of `expected`; infinite if it is
/// not even in the right place. An absolute error of `floor` is forgiven: it is what underflow costs.
/// `epsilon` is one ulp, relatively.
pub(crate) fn ulps<S: Leaf>(found: S, expected: DoubleDouble, size: f64, floor: f64, epsilon: f64) -> f64 {
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
    if error <= floor { 0.0 } else { error / size / epsilon }
}

/// Equal in every bit, or both NaN.
pub(crate) fn same_bits<S: Leaf>(a: S, b: S) -> bool {
    a.bits() == b.bits() || (a.wide().hi().is_nan() && b.wide().hi().is_nan())
}
