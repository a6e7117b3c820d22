//! Random well-typed programs, of two kinds: `.pal` sources, made as trees, printed and shrunk; and programs
//! built directly.
//!
//! | file | does |
//! |---|---|
//! | `source` | a source as a tree, and its text |
//! | `generate` | a number -> a tree |
//! | `shrink` | a tree that fails -> a small tree that fails |
//! | `variant` | operations in a program that no source spells out |
//! | `coverage` | which operations carried a derivative, in how many programs |
//! | `programs` | a number -> a program, full of what passes look for |

pub(crate) mod coverage;
pub(crate) mod generate;
pub(crate) mod programs;
pub(crate) mod shrink;
pub(crate) mod source;
pub(crate) mod variant;

pub(crate) use palinode_core::Draws as Random;
