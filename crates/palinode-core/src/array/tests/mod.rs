//! Arrays against their model, policies against each other, and planted bugs.

mod model;
mod programs;
mod random;
