//! Drivers: from a closure and a point to a derivative.
//!
//! Input: a closure over derivative numbers and a point. Output: plain numbers.
//!
//! | driver | the closure sees | how |
//! |---|---|---|
//! | [`grad`], [`value_and_grad`], [`vjp`], [`jacobian`], [`sparse_jacobian`] | `Var<S>` | one recording, then sweeps |
//! | [`jvp`] | `Dual<S>` | forward |
//! | [`hvp`] | `Var<Dual<S>>` | forward over reverse |
//! | [`hessian`], [`sparse_hessian`] | `Var<Var<S>>` | reverse over reverse, one recording |
//! | [`derivatives`] | `Jet<S, K>` | Taylor arithmetic |
//! | [`value_and_grad_batch`], [`in_lanes`] | any of these over [`Lanes`](crate::Lanes) | several samples at once |
//!
//! Invariants: lengths and finiteness are checked and reported by position; nothing is guessed. A driver
//! keeps no state: to reuse memory over many calls, keep a [`Tape`](crate::Tape) and call its methods.

pub(crate) mod colouring;
mod first;
mod groups;
mod second;
mod sparse;
mod together;

/// How many sweeps over a tape run at once where many are needed.
const LANES: usize = 8;

pub use first::{derivatives, grad, jacobian, jvp, value_and_grad, vjp};
pub use groups::{InputGroups, Looked, MOST_GROUPS};
pub use second::{hessian, hvp};
pub use sparse::{Sparse, sparse_hessian, sparse_jacobian};
pub use together::{PerLane, Samples, in_lanes, value_and_grad_batch};
