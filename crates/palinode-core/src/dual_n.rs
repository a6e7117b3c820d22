//! Forward mode in `N` directions at once: a primal with `N` tangents, which share every partial.
//!
//! Input: a primal and `N` tangents. Output: the same computation with all of them. The tangents are a
//! plain array, so the compiler turns a rule into vector instructions.

use crate::number::{Show, derivative_number, forward_number, show_parts};
use crate::rules::{Binary, Differentiable, Multiply, Ternary, Unary};
use core::fmt::{self, Formatter};
use palinode_num::Scalar;

/// A number and its derivatives in `N` directions.
///
/// ```
/// use palinode_core::DualN;
///
/// let [x, y] = DualN::variables([3.0, 4.0]);
/// let r = x.hypot(y);
/// assert_eq!(r.value, 5.0);
/// assert_eq!(r.tangents, [0.6, 0.8]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DualN<S, const N: usize> {
    /// The primal.
    pub value: S,
    /// The derivatives of the primal, one per direction; reads like an array.
    pub tangents: Tangents<S, N>,
}

/// An array of tangents that stands apart from the primal.
///
/// Without the alignment the compiler packs the primal and an odd number of tangents into one vector
/// register; the next primal then waits for all tangents, which made long chains 40 % slower.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(align(16))]
pub struct Tangents<S, const N: usize>(pub [S; N]);

impl<S, const N: usize> core::ops::Deref for Tangents<S, N> {
    type Target = [S; N];
    #[inline(always)]
    fn deref(&self) -> &[S; N] {
        &self.0
    }
}

impl<S, const N: usize> core::ops::DerefMut for Tangents<S, N> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [S; N] {
        &mut self.0
    }
}

impl<S, const N: usize> IntoIterator for Tangents<S, N> {
    type Item = S;
    type IntoIter = core::array::IntoIter<S, N>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<S: PartialEq, const N: usize> PartialEq<[S; N]> for Tangents<S, N> {
    fn eq(&self, other: &[S; N]) -> bool {
        self.0 == *other
    }
}

impl<S: Scalar, const N: usize> DualN<S, N> {
    /// A number with its tangents.
    #[inline(always)]
    pub fn new(value: S, tangents: [S; N]) -> Self {
        DualN { value, tangents: Tangents(tangents) }
    }
    /// A constant of this level: its tangents are zero.
    #[inline(always)]
    pub fn lift(value: S) -> Self {
        DualN { value, tangents: Tangents([S::zero(); N]) }
    }
    /// `N` independent variables: number `i` moves in direction `i`.
    pub fn variables(values: [S; N]) -> [Self; N] {
        core::array::from_fn(|i| {
            let mut x = Self::lift(values[i]);
            x.tangents[i] = S::one();
            x
        })
    }
    /// The primal.
    #[inline(always)]
    pub fn primal(self) -> S {
        self.value
    }
    /// Whether any tangent can be anything but zero.
    #[inline(always)]
    pub fn is_active(self) -> bool {
        self.tangents.iter().any(|t| !t.vanishes())
    }
    /// The same of any sample: nothing is decided by it.
    #[inline(always)]
    fn moves(self) -> bool {
        self.tangents.iter().any(|t| !t.vanishes_everywhere())
    }
    #[inline(always)]
    fn resting(self) -> S::Bool {
        let none = S::zero().equal(S::zero());
        self.tangents.iter().fold(none, |rest, tangent| rest & tangent.vanishing())
    }
    #[inline(always)]
    fn pick(condition: S::Bool, a: Self, b: Self) -> Self {
        DualN {
            value: S::select(condition, a.value, b.value),
            tangents: Tangents(core::array::from_fn(|i| S::select(condition, a.tangents[i], b.tangents[i]))),
        }
    }
    fn show(&self, f: &mut Formatter<'_>, show: Show<S>) -> fmt::Result {
        show_parts(f, show, &self.value, &self.tangents.0, |f, i| write!(f, "ε{i}"))
    }
}

impl<S: Scalar, const N: usize> Differentiable for DualN<S, N> {
    #[inline(always)]
    fn unary<R: Unary>(rule: R, x: Self) -> Self {
        if x.moves() {
            crate::decision::rounded_by(rule, x);
        }
        let (z, dz) = rule.value_and_dx(x.value);
        DualN { value: z, tangents: Tangents(S::strong_scale(dz, x.tangents.0)) }
    }

    #[inline(always)]
    fn binary<R: Binary>(rule: R, x: Self, y: Self) -> Self {
        let z = rule.value(x.value, y.value);
        if x.moves() || y.moves() {
            crate::decision::rounded_by_two(rule, x, y);
        }
        let (dx, dy) = (rule.dx(x.value, y.value, z), rule.dy(x.value, y.value, z));
        DualN { value: z, tangents: Tangents(S::strong_combine(dx, x.tangents.0, dy, y.tangents.0)) }
    }

    /// The row of the table; only that a product's partials are its factors is used to test them both at
    /// once.
    #[inline(always)]
    fn product(x: Self, y: Self) -> Self {
        let z = Multiply {}.value(x.value, y.value);
        let (dx, dy) = (Multiply {}.dx(x.value, y.value, z), Multiply {}.dy(x.value, y.value, z));
        DualN {
            value: z,
            tangents: Tangents(S::strong_combine_of_product(z, dx, x.tangents.0, dy, y.tangents.0)),
        }
    }

    #[inline(always)]
    fn ternary<R: Ternary>(rule: R, x: Self, y: Self, w: Self) -> Self {
        let z = rule.value(x.value, y.value, w.value);
        let dx = rule.dx(x.value, y.value, w.value, z);
        let dy = rule.dy(x.value, y.value, w.value, z);
        let dw = rule.dw(x.value, y.value, w.value, z);
        let first = S::strong_combine(dx, x.tangents.0, dy, y.tangents.0);
        DualN { value: z, tangents: Tangents(S::strong_combine(S::one(), first, dw, w.tangents.0)) }
    }
}

derivative_number! { [S: Scalar, const N: usize] DualN<S, N>, scalar {
    fn chain_over(start: Self, count: usize, pair: impl Fn(usize) -> (Self, Self)) -> Self {
        let primals = |(a, b): (Self, Self)| (a.value, b.value);
        let value = S::chain_over(start.value, count, |place| primals(pair(place)));
        let add = |sum: Self, (a, b)| sum + a * b;
        let tangents = (0..count).map(pair).fold(start, add).tangents;
        DualN { value, tangents }
    }
} }
forward_number! { [S: Scalar, const N: usize] DualN<S, N> }
