//! The benchmark behind `cargo bench -p benches`: every peer, every problem, one table, one run.
//!
//! `problem` holds the functions, written once over `num::Num`; `peer` holds one file per derivative crate;
//! `measure` times and weighs them; `table` and `bars` print. To add a peer: write its file and add one line
//! to `peer::all`.

pub mod args;
pub mod bars;
pub mod heap;
pub mod loops;
pub mod measure;
pub mod num;
pub mod peer;
pub mod problem;
pub mod programs;
pub mod reference;
pub mod rng;
pub mod table;
