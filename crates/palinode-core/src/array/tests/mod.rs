//! Arrays against their model, policies against each other, and planted bugs.

mod directed;
mod model;
pub(crate) mod planted;
mod programs;
mod random;
