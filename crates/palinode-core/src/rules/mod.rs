//! Derivative rules: each one written once, as data plus one function per partial.
//!
//! Input: argument values. Output: the value and the partials, over any [`Scalar`].
//!
//! A rule is a small `Copy` value that implements [`Unary`], [`Binary`] or [`Ternary`]. The built-in ones are
//! the rows of the table in `table.rs`; people add their own by implementing the same traits, and hand
//! them to [`Differentiable`]. Forward numbers, Taylor jets and the tape all read the same partials,
//! so a forward and a reverse formula cannot disagree.
//!
//! Invariants: a partial is a pure function of the arguments and the result; it is evaluated only if its
//! argument is active (`DualN` evaluates all of them); nothing here knows about tangents, cotangents or
//! tapes.

mod any;
mod row;
mod table;

pub use any::{One, Rule, RuleVisitor, Three, Two};
pub use row::Row;
pub(crate) use row::functions_by_row;
pub use table::*;

use palinode_num::{DoubleDouble, Lanes, Posit, PositWidth, Scalar};

/// Where a function has no derivative, and what a rule answers there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kink {
    /// What happens there.
    pub kind: KinkKind,
    /// One point on the kink, an entry per argument.
    pub at: &'static [f64],
    /// The partials that the rule gives there by convention, an entry per argument.
    pub gives: &'static [f64],
}

/// The ways to have no derivative at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KinkKind {
    /// Continuous, with different one-sided slopes; the rule takes one of the slopes between them.
    Corner,
    /// The value jumps. What depends on the side is a decision of the program; see [`Unary::jump_distance`].
    Jump,
    /// The slope is infinite, or the point is where the domain ends.
    Vertical,
}

/// A set of numbers that an argument may come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// Every real number.
    Reals,
    /// `x > 0`.
    Positive,
    /// `x >= 0`.
    NonNegative,
    /// `x != 0`.
    NonZero,
    /// `-1 <= x <= 1`.
    UnitClosed,
    /// `-1 < x < 1`.
    UnitOpen,
    /// `x >= 1`.
    AtLeastOne,
    /// `x > -1`.
    AboveMinusOne,
    /// Everything but 0, -1, -2, ...: where the gamma function is finite.
    GammaFinite,
}

impl Domain {
    /// Whether `x` belongs to it.
    pub fn contains(self, x: f64) -> bool {
        match self {
            Domain::Reals => !x.is_nan(),
            Domain::Positive => x > 0.0,
            Domain::NonNegative => x >= 0.0,
            Domain::NonZero => x != 0.0 && !x.is_nan(),
            Domain::UnitClosed => (-1.0..=1.0).contains(&x),
            Domain::UnitOpen => -1.0 < x && x < 1.0,
            Domain::AtLeastOne => x >= 1.0,
            Domain::AboveMinusOne => x > -1.0,
            Domain::GammaFinite => x > 0.0 || (x < 0.0 && x != x.trunc()),
        }
    }
}

/// A function of one argument and its derivative.
///
/// ```
/// use palinode_core::{Differentiable, Dual, Scalar, rules::Unary};
///
/// /// The normal density, as a rule of its own.
/// #[derive(Clone, Copy)]
/// struct Gauss;
/// impl Unary for Gauss {
///     const NAME: &'static str = "gauss";
///     fn value<S: Scalar>(self, x: S) -> S { (-(x * x) * S::half()).exp() }
///     fn dx<S: Scalar>(self, x: S, z: S) -> S { -x * z }
/// }
/// let y = Dual::unary(Gauss, Dual::new(1.0_f64, 1.0));
/// assert_eq!(y.tangent, -(-0.5_f64).exp());
/// ```
pub trait Unary: Copy + 'static {
    /// How tables and messages call it.
    const NAME: &'static str;
    /// Where there is no derivative.
    const KINKS: &'static [Kink] = &[];
    /// Whether [`Unary::dx`] looks at `z`. Taylor jets evaluate a partial once if it does not.
    const DX_USES_Z: bool = true;
    /// Whether the value jumps anywhere.
    const JUMPS: bool = false;
    /// The function itself.
    fn value<S: Scalar>(self, x: S) -> S;
    /// Its derivative; `z` is the value.
    fn dx<S: Scalar>(self, x: S, z: S) -> S;
    /// Value and derivative in one go, for rules that can share work between them.
    #[inline(always)]
    fn value_and_dx<S: Scalar>(self, x: S) -> (S, S) {
        let z = self.value(x);
        (z, self.dx(x, z))
    }
    /// How far `x` is from the nearest point where the value jumps; infinite if it jumps nowhere near. What
    /// goes through such a rule is a decision of the program.
    #[inline(always)]
    fn jump_distance(self, _x: f64) -> f64 {
        f64::INFINITY
    }
    /// A number that is the same for arguments without a jump between them, and another beyond it.
    #[inline(always)]
    fn jump_cell(self, _x: f64) -> f64 {
        0.0
    }
}

/// A function of two arguments and its partials.
pub trait Binary: Copy + 'static {
    /// How tables and messages call it.
    const NAME: &'static str;
    /// Where there is no derivative.
    const KINKS: &'static [Kink] = &[];
    /// Whether [`Binary::dx`] looks at `z`.
    const DX_USES_Z: bool = true;
    /// Whether [`Binary::dy`] looks at `z`.
    const DY_USES_Z: bool = true;
    /// Whether the value jumps anywhere.
    const JUMPS: bool = false;
    /// The function itself.
    fn value<S: Scalar>(self, x: S, y: S) -> S;
    /// The partial by the first argument; `z` is the value.
    fn dx<S: Scalar>(self, x: S, y: S, z: S) -> S;
    /// The partial by the second argument.
    fn dy<S: Scalar>(self, x: S, y: S, z: S) -> S;
    /// How far the arguments are from where the value jumps; see [`Unary::jump_distance`].
    #[inline(always)]
    fn jump_distance(self, _x: f64, _y: f64) -> f64 {
        f64::INFINITY
    }
    /// Between which jumps the arguments lie; see [`Unary::jump_cell`].
    #[inline(always)]
    fn jump_cell(self, _x: f64, _y: f64) -> f64 {
        0.0
    }
}

/// A function of three arguments and its partials.
pub trait Ternary: Copy + 'static {
    /// How tables and messages call it.
    const NAME: &'static str;
    /// Where there is no derivative.
    const KINKS: &'static [Kink] = &[];
    /// The function itself.
    fn value<S: Scalar>(self, x: S, y: S, w: S) -> S;
    /// The partial by the first argument; `z` is the value.
    fn dx<S: Scalar>(self, x: S, y: S, w: S, z: S) -> S;
    /// The partial by the second argument.
    fn dy<S: Scalar>(self, x: S, y: S, w: S, z: S) -> S;
    /// The partial by the third argument.
    fn dw<S: Scalar>(self, x: S, y: S, w: S, z: S) -> S;
}

/// A rule of two arguments whose second one is a constant: `x * 2.0` has one argument and one partial.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RightConstant<R>(pub(crate) R, pub(crate) f64);

impl<R: Binary> Unary for RightConstant<R> {
    const NAME: &'static str = R::NAME;
    const KINKS: &'static [Kink] = R::KINKS;
    const DX_USES_Z: bool = R::DX_USES_Z;
    const JUMPS: bool = R::JUMPS;
    #[inline(always)]
    fn jump_distance(self, x: f64) -> f64 {
        self.0.jump_distance(x, self.1)
    }
    #[inline(always)]
    fn jump_cell(self, x: f64) -> f64 {
        self.0.jump_cell(x, self.1)
    }
    #[inline(always)]
    fn value<S: Scalar>(self, x: S) -> S {
        self.0.value(x, S::from_f64(self.1))
    }
    #[inline(always)]
    fn dx<S: Scalar>(self, x: S, z: S) -> S {
        self.0.dx(x, S::from_f64(self.1), z)
    }
}

/// A rule of two arguments whose first one is a constant, as in `2.0 * x`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeftConstant<R>(pub(crate) f64, pub(crate) R);

impl<R: Binary> Unary for LeftConstant<R> {
    const NAME: &'static str = R::NAME;
    const KINKS: &'static [Kink] = R::KINKS;
    const DX_USES_Z: bool = R::DY_USES_Z;
    const JUMPS: bool = R::JUMPS;
    #[inline(always)]
    fn jump_distance(self, y: f64) -> f64 {
        self.1.jump_distance(self.0, y)
    }
    #[inline(always)]
    fn jump_cell(self, y: f64) -> f64 {
        self.1.jump_cell(self.0, y)
    }
    #[inline(always)]
    fn value<S: Scalar>(self, y: S) -> S {
        self.1.value(S::from_f64(self.0), y)
    }
    #[inline(always)]
    fn dx<S: Scalar>(self, y: S, z: S) -> S {
        self.1.dy(S::from_f64(self.0), y, z)
    }
}

/// A number that rules can be applied to: plain numbers just evaluate them, as it is done here; derivative
/// numbers also propagate.
pub trait Differentiable: Scalar {
    /// Applies a rule of one argument.
    #[inline(always)]
    fn unary<R: Unary>(rule: R, x: Self) -> Self {
        rule.value(x)
    }
    /// Applies a rule of two arguments.
    #[inline(always)]
    fn binary<R: Binary>(rule: R, x: Self, y: Self) -> Self {
        rule.value(x, y)
    }
    /// Applies a rule of three arguments.
    #[inline(always)]
    fn ternary<R: Ternary>(rule: R, x: Self, y: Self, w: Self) -> Self {
        rule.value(x, y, w)
    }
    /// `x * y`. Power series multiply by convolution; everything else by the table.
    #[inline(always)]
    fn product(x: Self, y: Self) -> Self {
        Self::binary(Multiply {}, x, y)
    }
    /// `x / y`. Power series divide by a recurrence; everything else by the table.
    #[inline(always)]
    fn quotient(x: Self, y: Self) -> Self {
        Self::binary(Divide {}, x, y)
    }
}

impl Differentiable for f32 {}
impl Differentiable for f64 {}
impl<const N: usize> Differentiable for Lanes<N> {}
impl Differentiable for DoubleDouble {}
impl<W: PositWidth> Differentiable for Posit<W> {}
