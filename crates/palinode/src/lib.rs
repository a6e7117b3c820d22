//! Palinode: exact gradients of programs with memory and state, in stable Rust.
//!
//! This is the package to depend on. It holds no logic: it names what the others make.
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

pub use palinode_core::*;
/// Programs: pure single assignment with structured loops, the `.pal` language, transforms, an interpreter.
#[cfg(feature = "ir")]
pub use palinode_ir as ir;
/// Derives for values with numbers inside, and `#[step]`.
#[cfg(feature = "time")]
pub use palinode_macros::{Plain, Reals, step};
/// Loops: rollouts inside a budget, snapshot stores, implicit functions; batches and estimators.
#[cfg(feature = "time")]
pub use palinode_time as time;

/// What most programs need: `use palinode::prelude::*`.
///
/// Errors are not in it: there is one of tapes, [`Error`], and one of loops, `palinode::time::Error`, which holds the other, and
/// whoever imports all of `palinode::time` means that one.
pub mod prelude {
    pub use palinode_core::{
        Array, Budget, Dual, DualN, Jet, Real, Scalar, Tape, Var, derivatives, grad, hessian, hvp, jacobian,
        jvp, sparse_hessian, sparse_jacobian, value_and_grad, vjp,
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
