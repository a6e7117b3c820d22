//! Exact sums and dot products of floats: one rounding, at the end, whatever the order.
//!
//! Input: `f64`s or `f32`s, in any order, over any number of accumulators that are merged in any grouping.
//! Output: the float nearest to the real sum, ties to even, with gradual underflow and overflow to infinity
//! as for a single operation. So the bits depend only on which numbers were added.
//!
//! | file | holds |
//! |---|---|
//! | `digits.rs` | the long fixed-point number |
//! | `float.rs` | floats taken apart and put together; infinities and NaN |
//! | `block.rs` | the fast path over slices |
//! | `accumulator.rs` | [`ExactSum`], [`ExactDot`] |
//!
//! Infinities and NaN: the rule stands at [`ExactSum`].
//!
//! Known limits: at most 2^60 terms.

mod accumulator;
mod block;
mod digits;
mod float;

pub use accumulator::{Exact, ExactDot, ExactSum};
