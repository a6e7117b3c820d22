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
pub use palinode_ir as ir;

/// What most programs need: `use palinode::prelude::*`.
pub mod prelude {
    pub use palinode_core::{
        Dual, DualN, Error, Jet, Real, Scalar, Tape, Var, derivatives, grad, hessian, hvp, jacobian, jvp,
        sparse_hessian, sparse_jacobian, value_and_grad, vjp,
    };
}

/// The README and the book: their code blocks run as doctests.
#[cfg(doctest)]
mod documents {
    macro_rules! documents {
        ($($name:ident = $path:literal;)*) => {$(
            #[doc = include_str!(concat!("../../../", $path))]
            struct $name;
        )*};
    }
    documents! {
        Readme = "README.md";
        FirstGradients = "docs/book/first-gradients.md";
        Tapes = "docs/book/tapes.md";
        Nesting = "docs/book/nesting.md";
        Decisions = "docs/book/decisions.md";
        CustomRules = "docs/book/custom-rules.md";
        ThirdPartyCrates = "docs/book/third-party-crates.md";
        LinearAlgebra = "docs/book/linear-algebra.md";
        Programs = "docs/book/programs.md";
        Pal0101 = "docs/book/errors/PAL0101.md";
        Pal0102 = "docs/book/errors/PAL0102.md";
        Pal0103 = "docs/book/errors/PAL0103.md";
        Pal0104 = "docs/book/errors/PAL0104.md";
        Pal0105 = "docs/book/errors/PAL0105.md";
        Pal0106 = "docs/book/errors/PAL0106.md";
        Pal0107 = "docs/book/errors/PAL0107.md";
        Pal0110 = "docs/book/errors/PAL0110.md";
        Pal0111 = "docs/book/errors/PAL0111.md";
        Pal0112 = "docs/book/errors/PAL0112.md";
        Pal0113 = "docs/book/errors/PAL0113.md";
        Pal0114 = "docs/book/errors/PAL0114.md";
    }
}
