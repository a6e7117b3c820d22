//! Palinode: exact gradients of programs with memory and state, in stable Rust.
//!
//! This is the package to depend on. It holds no logic: it names what the others make. What most programs
//! need is in [`prelude`], and the rest in modules by what it is about.
//!
//! ```
//! use palinode::prelude::*;
//!
//! // Any closure, any control flow: the tape follows what runs.
//! let (y, g) = value_and_grad(|x| {
//!     let mut state = x[0];
//!     while state < 100.0 {
//!         state = state * x[1] + 1.0;
//!     }
//!     state
//! }, &[2.0, 3.0])?;
//! assert_eq!((y, g), (202.0, vec![81.0, 250.0]));
//! # Ok::<(), palinode::Error>(())
//! ```

pub use palinode_core::{
    Array, Budget, Dual, Error, Real, Scalar, Tape, Var, check, check_gradient, decision, dense, grad,
    hessian, jacobian, matrix, rules, schedule, value_and_grad,
};
/// Programs: pure single assignment with structured loops, the `.pal` language, transforms, an interpreter.
#[cfg(feature = "ir")]
pub use palinode_ir as ir;
#[cfg(feature = "time")]
pub use palinode_macros::step;
/// Loops: rollouts inside a budget, snapshot stores, implicit functions; batches and estimators.
#[cfg(feature = "time")]
pub use palinode_time as time;

/// What macros write paths to.
#[doc(hidden)]
pub use palinode_core as __core;
#[cfg(feature = "nalgebra")]
pub use palinode_core::linalg;

/// Numbers without derivatives: double-doubles, posits and quires, ways to add up, random keys.
pub mod num {
    pub use palinode_core::FormatLimits;
    pub use palinode_num::*;
}

/// From a closure and a point to a derivative.
pub mod drivers {
    pub use palinode_core::{
        InputGroups, Looked, MOST_GROUPS, Sparse, check_gradient, derivatives, grad, hessian, hvp, jacobian,
        jvp, sparse_hessian, sparse_jacobian, value_and_grad, vjp,
    };
}

/// Numbers that carry their derivatives along: one direction, many, many orders, none.
pub mod forward {
    pub use palinode_core::{Dual, DualN, Jet, Lanes, Operand, Passive};
}

/// The dynamic tape: recordings, their sweeps, tables and compressed forms; operations with rules of their
/// own.
pub mod tape {
    pub use palinode_core::{
        Boundary, CompressedRecord, Compression, CompressionReport, CompressionStep, CustomRule, MAX_NODES,
        Narrowing, Outputs, Partials, Record, Size, Table, TableRow, Tape, Var, custom,
    };
}

/// Arrays on the tape: in place, with views.
pub mod array {
    pub use palinode_core::{Array, ArrayCounts, ArrayOperand, Position, WhenOverwritten};
}

/// Values with numbers inside as words, where such words are kept, and derives for values of your own.
pub mod snapshot {
    pub use palinode_core::{
        Bits, Plain, Reals, Sink, Snapshot, SnapshotError, SnapshotStore, SnapshotWords, Source, StoreStats,
    };
    #[cfg(feature = "time")]
    pub use palinode_macros::{Plain, Reals};
}

/// How many bytes something may take, as text and back.
pub mod budget {
    pub use palinode_core::{Budget, BudgetMistake, IntoBudget};
}

/// What most programs need: `use palinode::prelude::*`.
///
/// Errors are not in it: there is one of tapes, [`Error`], and one of loops, `palinode::time::Error`, which
/// holds the other, and whoever imports all of `palinode::time` means that one.
pub mod prelude {
    pub use palinode_core::{
        Array, Budget, Dual, DualN, Jet, Real, Scalar, Tape, Var, check_gradient, derivatives, grad, hessian,
        hvp, jacobian, jvp, sparse_hessian, sparse_jacobian, value_and_grad, vjp,
    };
    #[cfg(feature = "time")]
    pub use palinode_macros::{Plain, Reals, step};
    #[cfg(feature = "time")]
    pub use palinode_time::{Gradient, Number, Rollout, Step};
}

/// The README and the book: their code blocks run as doctests. `build.rs` lists those that have any.
#[cfg(doctest)]
mod documents {
    include!(concat!(env!("OUT_DIR"), "/documents.rs"));
}
