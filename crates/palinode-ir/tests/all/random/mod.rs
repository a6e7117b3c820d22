//! Random well-typed `.pal` programs: made, printed, shrunk.
//!
//! | file | does |
//! |---|---|
//! | `source` | a program as a tree, and its text |
//! | `generate` | a number -> a tree |
//! | `shrink` | a tree that fails -> a small tree that fails |
//! | `variant` | operations in a program that no source spells out |
//! | `coverage` | which operations carried a derivative, in how many programs |

pub(crate) mod coverage;
pub(crate) mod generate;
pub(crate) mod shrink;
pub(crate) mod source;
pub(crate) mod variant;
