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
        WhatExists = "docs/book/what-exists.md";
        FirstGradients = "docs/book/first-gradients.md";
        Tapes = "docs/book/tapes.md";
        Arrays = "docs/book/arrays.md";
        TapeCompression = "docs/book/tape-compression.md";
        Nesting = "docs/book/nesting.md";
        Decisions = "docs/book/decisions.md";
        CustomRules = "docs/book/custom-rules.md";
        Posits = "docs/book/posits.md";
        ThirdPartyCrates = "docs/book/third-party-crates.md";
        LinearAlgebra = "docs/book/linear-algebra.md";
        ExactSums = "docs/book/exact-sums.md";
        ForwardGradients = "docs/book/forward-gradients.md";
        Programs = "docs/book/programs.md";
        Language = "docs/book/language.md";
        Schedules = "docs/book/schedules.md";
        Implicit = "docs/book/implicit.md";
        Pal0540 = "docs/book/errors/PAL0540.md";
        Pal0542 = "docs/book/errors/PAL0542.md";
        Pal0547 = "docs/book/errors/PAL0547.md";
        Pal0548 = "docs/book/errors/PAL0548.md";
        SnapshotStores = "docs/book/snapshot-stores.md";
        Pal0101 = "docs/book/errors/PAL0101.md";
        Pal0102 = "docs/book/errors/PAL0102.md";
        Pal0103 = "docs/book/errors/PAL0103.md";
        Pal0104 = "docs/book/errors/PAL0104.md";
        Pal0105 = "docs/book/errors/PAL0105.md";
        Pal0106 = "docs/book/errors/PAL0106.md";
        Pal0107 = "docs/book/errors/PAL0107.md";
        Pal0108 = "docs/book/errors/PAL0108.md";
        Pal0109 = "docs/book/errors/PAL0109.md";
        Pal0110 = "docs/book/errors/PAL0110.md";
        Pal0111 = "docs/book/errors/PAL0111.md";
        Pal0112 = "docs/book/errors/PAL0112.md";
        Pal0113 = "docs/book/errors/PAL0113.md";
        Pal0114 = "docs/book/errors/PAL0114.md";
        Pal0122 = "docs/book/errors/PAL0122.md";
        Pal0123 = "docs/book/errors/PAL0123.md";
        Pal0124 = "docs/book/errors/PAL0124.md";
        Pal0125 = "docs/book/errors/PAL0125.md";
        Pal0126 = "docs/book/errors/PAL0126.md";
        Pal0115 = "docs/book/errors/PAL0115.md";
        Pal0119 = "docs/book/errors/PAL0119.md";
        Pal0120 = "docs/book/errors/PAL0120.md";
        Pal0520 = "docs/book/errors/PAL0520.md";
        Pal0521 = "docs/book/errors/PAL0521.md";
        Rollouts = "docs/book/rollouts.md";
        Pal0240 = "docs/book/errors/PAL0240.md";
        Pal0250 = "docs/book/errors/PAL0250.md";
        Pal0251 = "docs/book/errors/PAL0251.md";
        Pal0252 = "docs/book/errors/PAL0252.md";
        Pal0253 = "docs/book/errors/PAL0253.md";
        Pal0254 = "docs/book/errors/PAL0254.md";
        Pal0255 = "docs/book/errors/PAL0255.md";
        Pal0256 = "docs/book/errors/PAL0256.md";
        Pal0257 = "docs/book/errors/PAL0257.md";
        Pal0258 = "docs/book/errors/PAL0258.md";
        Pal0259 = "docs/book/errors/PAL0259.md";
        Pal0260 = "docs/book/errors/PAL0260.md";
        Pal0261 = "docs/book/errors/PAL0261.md";
        Pal0262 = "docs/book/errors/PAL0262.md";
        Pal0263 = "docs/book/errors/PAL0263.md";
        Pal0264 = "docs/book/errors/PAL0264.md";
        Pal0265 = "docs/book/errors/PAL0265.md";
        Pal0266 = "docs/book/errors/PAL0266.md";
        Pal0267 = "docs/book/errors/PAL0267.md";
        Pal0268 = "docs/book/errors/PAL0268.md";
        Pal0269 = "docs/book/errors/PAL0269.md";
        Pal0270 = "docs/book/errors/PAL0270.md";
        Pal0271 = "docs/book/errors/PAL0271.md";
        Pal0272 = "docs/book/errors/PAL0272.md";
        Pal0273 = "docs/book/errors/PAL0273.md";
        Pal0274 = "docs/book/errors/PAL0274.md";
        Pal0280 = "docs/book/errors/PAL0280.md";
        Pal0301 = "docs/book/errors/PAL0301.md";
        Pal0501 = "docs/book/errors/PAL0501.md";
        Pal0502 = "docs/book/errors/PAL0502.md";
        Pal0503 = "docs/book/errors/PAL0503.md";
        Pal0504 = "docs/book/errors/PAL0504.md";
        Pal0601 = "docs/book/errors/PAL0601.md";
        Pal0605 = "docs/book/errors/PAL0605.md";
        Pal0606 = "docs/book/errors/PAL0606.md";
        Pal0607 = "docs/book/errors/PAL0607.md";
        Pal0608 = "docs/book/errors/PAL0608.md";
    }
}
