//! What a tape keeps of arrays, and how sweeps pass it.
//!
//! Input: pushes from [`Array`](crate::Array)s, by way of the tape's recorder. Output: sweeps between the
//! nodes of the arena.
//!
//! | file | holds |
//! |---|---|
//! | `steps.rs` | the steps of a recording, in order |
//! | `product.rs` | a recorded product of matrices |
//! | `layout.rs`, `view.rs` | where cells are |
//! | `residual.rs` | values kept for the reverse sweep; `policy.rs`: what happens when they are overwritten |
//! | `formula.rs`, `probe.rs` | a row of the rule table over arrays, and what its partials need |
//! | `sweep.rs` | reverse and forward |
//! | `depend.rs`, `renumber.rs` | which input reaches which output; other numbers for nodes |

mod depend;
mod formula;
mod layout;
mod policy;
mod probe;
mod product;
mod renumber;
mod residual;
mod steps;
mod sweep;
mod view;

pub use policy::WhenOverwritten;
pub use steps::ArrayCounts;

pub(crate) use depend::mark;
pub(crate) use formula::*;
pub(crate) use layout::{Home, Region};
pub(crate) use probe::Probe;
pub(crate) use product::{Factor, Product, Sizes, product};
pub(crate) use renumber::Reference;
pub(crate) use residual::{Ingredient, Kept, Need, Recipe, Residual, kept_bytes};
pub(crate) use steps::{Argument, ArrayTape, Kind, Linear, Operands, Partial, Step, Whole};
pub(crate) use sweep::{Arrays, Scratch};
pub(crate) use view::{Places, Shape, View, Walk, check_elements};
