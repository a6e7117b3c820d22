//! The numbers Palinode computes with.
//!
//! Input: nothing. Output: [`Scalar`], the only vocabulary a derivative rule may use; [`Real`], what people
//! write generic code in; the leaf numbers that implement them; ways to add many of them up
//! ([`Accumulator`]); and random numbers as a function of a [`Key`].
//!
//! Invariant: this package knows no calculus. There is no derivative, tangent or tape in it.

mod accumulate;
mod bernoulli;
mod bytes;
mod decimal;
mod double_double;
pub mod elementary;
mod error_free;
mod exact;
mod float;
mod key;
pub mod lanes;
pub mod machine;
mod operators;
mod posit;
pub mod products;
mod quire;
mod scalar;
mod special;
pub mod sums;
mod wide;

pub use accumulate::{Accumulate, AccumulateProducts, Compensated, Naive, Summand};
pub use bytes::SumBytesError;
pub use double_double::{DoubleDouble, ParseDoubleDoubleError};
pub use exact::{Exact, ExactDot, ExactSum};
pub use key::{Draws, Key};
pub use lanes::{Lanes, Mask};
pub use posit::{ParsePositError, Posit, Posit8, Posit16, Posit32, Posit64, PositInteger, PositWidth};
pub use quire::{Quire, Quire8, Quire16, Quire32, Quire64};
pub use scalar::{Accumulator, Constant, Logic, Real, Scalar};
