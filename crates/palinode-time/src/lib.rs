//! Palinode over time: gradients of loops of any length inside a budget.
//!
//! Input: a step, written once over any number, a state and parameters. Output: the gradient of a loss of what the loop reaches, in the
//! bytes that were allowed.
//!
//! | part | holds |
//! |---|---|
//! | [`Step`], [`Number`] | one step of a loop, over any number |
//!
//! Absent from this package: the terminal, derivative formulas, global state.

mod step;

pub use step::{Number, PlainInput, Step};
