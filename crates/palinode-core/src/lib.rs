//! Palinode's calculus: one rule table, forward numbers, the dynamic tape, and drivers.
//!
//! Input: ordinary Rust code, generic or over [`Var`]. Output: exact derivatives.
//!
//! | part | holds |
//! |---|---|
//! | [`rules`] | every derivative, written once |
//! | [`Dual`], [`DualN`], [`Jet`] | forward numbers: one direction, many, many orders |
//! | [`Passive`] | computes like an active number, without a derivative |
//! | [`Var`], [`Tape`], [`Record`] | the dynamic tape and its sweeps |
//! | [`Array`] | arrays on the tape: in place, with views |
//! | [`grad`], [`jacobian`], [`hessian`], ... | from a closure and a point to a derivative |
//! | [`check_gradient`] | a gradient against differences |
//! | [`decision`] | what a program decided by active values |
//! | [`Reals`], [`Snapshot`], [`SnapshotStore`] | values with numbers inside, as words, and where such words are kept |
//! | [`schedule`] | which states of a loop to keep so that it can be reversed in little memory |
//! | [`dense`] | vectors of plain numbers: norms, least squares |
//! | [`matrix`] | dense linear algebra over any number: what programs compute with, and `linalg` beyond `f64` |
//! | [`Budget`] | how many bytes something may take |
//!
//! Absent from this package: programs, files, the terminal, clocks, randomness.

mod accumulated;
mod array;
mod budget;
pub mod check;
mod confusion;
pub mod decision;
pub mod dense;
mod drivers;
mod dual;
mod dual_n;
mod ecosystem;
mod error;
mod finite;
mod into_budget;
mod jet;
#[cfg(feature = "nalgebra")]
pub mod linalg;
pub mod matrix;
mod number;
mod passive;
#[doc(hidden)]
pub mod points;
mod reals;
pub mod rules;
pub mod schedule;
mod snapshot;
mod tape;

pub use array::{Array, ArrayOperand, Position};
pub use budget::{Budget, BudgetMistake};
pub use check::check_gradient;
#[doc(hidden)]
pub use confusion::Seeded;
pub use drivers::{
    InputGroups, Looked, MOST_GROUPS, PerLane, Samples, Sparse, derivatives, grad, hessian, hvp, in_lanes,
    jacobian, jvp, sparse_hessian, sparse_jacobian, value_and_grad, value_and_grad_batch, vjp,
};
pub use dual::Dual;
pub use dual_n::{DualN, Tangents};
pub use ecosystem::FormatLimits;
pub use error::Error;
pub use into_budget::IntoBudget;
pub use jet::Jet;
pub use number::Operand;
pub use palinode_num::*;
pub use passive::Passive;
pub use reals::{Bits, Plain, Reals, Sink, Source};
pub use rules::Differentiable;
pub use snapshot::{Snapshot, SnapshotError, SnapshotStore, SnapshotWords, StoreStats};
pub use tape::arrays::{ArrayCounts, WhenOverwritten};
pub use tape::{
    Boundary, CompressedRecord, Compression, CompressionReport, CompressionStep, CustomRule, MAX_NODES,
    Narrowing, Outputs, Partials, Record, Size, Table, TableRow, Tape, Var, custom, custom_rule,
};
