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

/// What most programs need: `use palinode::prelude::*`.
pub mod prelude {
    pub use palinode_core::{
        Dual, DualN, Error, Jet, Real, Scalar, Tape, Var, derivatives, grad, hessian, hvp, jacobian, jvp,
        sparse_hessian, sparse_jacobian, value_and_grad, vjp,
    };
}
