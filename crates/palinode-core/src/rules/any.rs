//! Rules of any number of arguments, for what treats them alike.
//!
//! Input: a rule of one, two or three arguments, wrapped in [`One`], [`Two`] or [`Three`]. Output: the same
//! rule over lists of arguments.

use super::{Binary, Differentiable, Kink, Ternary, Unary};
use palinode_num::Scalar;

/// A rule over lists of arguments, which must have as many as the rule takes.
pub trait Rule: Copy + 'static {
    /// How tables and messages call it.
    const NAME: &'static str;
    /// Where there is no derivative.
    const KINKS: &'static [Kink];
    /// Of each argument, whether its partial says that it looks at the value.
    const USES_Z: &'static [bool];
    /// The function itself.
    fn value<S: Scalar>(self, args: &[S]) -> S;
    /// The partial by argument number `which`; `z` is the value.
    fn partial<S: Scalar>(self, which: usize, args: &[S], z: S) -> S;
    /// The value and the partial by the first argument, in one go where the rule can share work.
    #[inline]
    fn value_and_dx<S: Scalar>(self, args: &[S]) -> (S, S) {
        let z = self.value(args);
        (z, self.partial(0, args, z))
    }
    /// Applies it to numbers that propagate derivatives.
    fn apply<D: Differentiable>(self, args: &[D]) -> D;
}

/// What to do with a rule whose type is known only inside; see [`Row::visit`](super::Row::visit).
pub trait RuleVisitor {
    /// What comes back.
    type Output;
    /// Here is the rule.
    fn visit<R: Rule>(self, rule: R) -> Self::Output;
}

/// A rule of one argument.
#[derive(Clone, Copy, Debug)]
pub struct One<R>(pub R);

impl<R: Unary> Rule for One<R> {
    const NAME: &'static str = R::NAME;
    const KINKS: &'static [Kink] = R::KINKS;
    const USES_Z: &'static [bool] = &[R::DX_USES_Z];
    #[inline(always)]
    fn value<S: Scalar>(self, args: &[S]) -> S {
        self.0.value(args[0])
    }
    #[inline]
    fn partial<S: Scalar>(self, _: usize, args: &[S], z: S) -> S {
        self.0.dx(args[0], z)
    }
    #[inline]
    fn value_and_dx<S: Scalar>(self, args: &[S]) -> (S, S) {
        self.0.value_and_dx(args[0])
    }
    #[inline]
    fn apply<D: Differentiable>(self, args: &[D]) -> D {
        D::unary(self.0, args[0])
    }
}

/// A rule of two arguments.
#[derive(Clone, Copy, Debug)]
pub struct Two<R>(pub R);

impl<R: Binary> Rule for Two<R> {
    const NAME: &'static str = R::NAME;
    const KINKS: &'static [Kink] = R::KINKS;
    const USES_Z: &'static [bool] = &[R::DX_USES_Z, R::DY_USES_Z];
    #[inline(always)]
    fn value<S: Scalar>(self, args: &[S]) -> S {
        self.0.value(args[0], args[1])
    }
    #[inline]
    fn partial<S: Scalar>(self, which: usize, args: &[S], z: S) -> S {
        if which == 0 { self.0.dx(args[0], args[1], z) } else { self.0.dy(args[0], args[1], z) }
    }
    #[inline]
    fn apply<D: Differentiable>(self, args: &[D]) -> D {
        D::binary(self.0, args[0], args[1])
    }
}

/// A rule of three arguments.
#[derive(Clone, Copy, Debug)]
pub struct Three<R>(pub R);

impl<R: Ternary> Rule for Three<R> {
    const NAME: &'static str = R::NAME;
    const KINKS: &'static [Kink] = R::KINKS;
    const USES_Z: &'static [bool] = &[false; 3];
    #[inline(always)]
    fn value<S: Scalar>(self, args: &[S]) -> S {
        self.0.value(args[0], args[1], args[2])
    }
    #[inline]
    fn partial<S: Scalar>(self, which: usize, args: &[S], z: S) -> S {
        match which {
            0 => self.0.dx(args[0], args[1], args[2], z),
            1 => self.0.dy(args[0], args[1], args[2], z),
            _ => self.0.dw(args[0], args[1], args[2], z),
        }
    }
    #[inline]
    fn apply<D: Differentiable>(self, args: &[D]) -> D {
        D::ternary(self.0, args[0], args[1], args[2])
    }
}
