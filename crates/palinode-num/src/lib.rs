//! The numbers Palinode computes with.
//!
//! Input: nothing. Output: [`Scalar`], the only vocabulary a derivative rule may use; [`Real`], what
//! people write generic code in; and the leaf numbers that implement them.
//!
//! Invariant: this package knows no calculus. There is no derivative, tangent or tape in it.

mod bernoulli;
mod double_double;
mod float;
mod scalar;
mod special;
mod wide;

pub use double_double::{DoubleDouble, ParseDoubleDoubleError};
pub use scalar::{Constant, Logic, Real, Scalar};
