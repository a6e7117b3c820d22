//! What numbers must be: to go through steps, to solve equations, and to be inside such numbers.
//!
//! These traits are about each other: a number solves equations, which are evaluated in any number.

use super::error::ImplicitError;
use super::options::LinearOptions;
use super::report::{LinearReport, SolverReport};
use palinode_core::{FormatLimits, Real, Reals, Scalar};
use std::fmt::Display;
use std::sync::Arc;

/// What nalgebra asks of numbers that go through it, with the feature `nalgebra`.
#[cfg(feature = "nalgebra")]
pub trait Dense: nalgebra::RealField + palinode_core::linalg::LinearAlgebra {}
#[cfg(feature = "nalgebra")]
impl<S: nalgebra::RealField + palinode_core::linalg::LinearAlgebra> Dense for S {}
/// What nalgebra asks of numbers that go through it: nothing without the feature `nalgebra`.
#[cfg(not(feature = "nalgebra"))]
pub trait Dense {}
#[cfg(not(feature = "nalgebra"))]
impl<S> Dense for S {}

/// What a number must be to go through a [`Step`](crate::Step): a [`Real`] that other crates' generic code
/// accepts too.
///
/// Write steps over `S: Real`, which asks for less and is allowed: with the feature `nalgebra`, `S: Number`
/// is nalgebra's `RealField`, too, so that `x.sin()` would be ambiguous. Over `S: Real + Implicit` where a
/// step solves equations ([`root`](super::root)), over `S: Number` where it calls nalgebra.
pub trait Number: Real + FormatLimits + Reals<Self> + Send + Sync + Implicit + Dense {}
impl<S: Real + FormatLimits + Reals<S> + Send + Sync + Implicit + Dense> Number for S {}

/// A number that implicit functions run on: `f64`, `f32`, and `Dual`, `DualN`, `Passive` and `Var` over these
/// or each other.
pub trait Implicit: Scalar<Bool = bool> {
    /// The solution at these parameters.
    #[doc(hidden)]
    fn solve<P: Problem>(problem: &Arc<P>, params: &[Self]) -> Solved<Self>;
    /// The derivative of the solution, ready for sweeps.
    #[doc(hidden)]
    fn prepare<P: Problem>(problem: &Arc<P>, x: &[Self], params: &[Self]) -> Prepared<Self>;
}

pub(super) type Solved<S> = Result<(Vec<S>, SolverReport), ImplicitError>;
pub(super) type Prepared<S> = Result<Box<dyn Derivative<S>>, ImplicitError>;

#[cfg(not(feature = "nalgebra"))]
use palinode_core::Scalar as InnerDense;
#[cfg(feature = "nalgebra")]
use palinode_core::linalg::InnerNumber as InnerDense;

/// What the inner number of a [`Number`] must be.
pub trait Inner: Implicit + PartialOrd + Display + FormatLimits + Send + Sync + InnerDense {}
impl<S: Implicit + PartialOrd + Display + FormatLimits + Send + Sync + InnerDense> Inner for S {}

pub(super) type Answered<S> = Result<(Vec<S>, Option<LinearReport>), ImplicitError>;

/// The derivative of a solution by its parameters.
pub trait Derivative<S>: Send {
    /// `J^T v`.
    fn pull(&mut self, v: &[S]) -> Answered<S>;
    /// `J dp`.
    fn push(&mut self, dp: &[S]) -> Answered<S>;
    /// The heap bytes held.
    fn heap_bytes(&self) -> usize;
}

/// An equation `R(x, p) = 0` that is solved in plain numbers and evaluated in any.
pub trait Problem: Send + Sync + 'static {
    /// How many unknowns and equations there are.
    fn unknowns(&self) -> usize;
    /// Zero at the solution.
    fn residual<S: Number>(&self, x: &[S], params: &[S]) -> Result<Vec<S>, ImplicitError>;
    /// The solution.
    fn solve(&self, params: &[f64]) -> Solved<f64>;
    /// How the linear systems of its derivatives are solved.
    fn linear(&self) -> &LinearOptions;
    /// How the operation is called in tables.
    fn name(&self) -> &'static str;
}
