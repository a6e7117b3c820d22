//! All integration tests of `palinode-time` but those that need an allocator or a process of their own, in
//! one binary.

// Indices name numbers of a state here; iterators would hide which.
#![allow(clippy::needless_range_loop)]

mod batch;
mod forward_gradient;
mod implicit;
mod implicit_errors;
mod implicit_orders;
mod implicit_step;
mod macros;
mod models;
#[cfg(all(feature = "ir", feature = "rayon"))]
mod program_batch;
#[cfg(feature = "ir")]
mod program_step;
mod rollout;
mod rollout_forms;
mod rollout_hidden;
mod rollout_hostile;
mod rollout_inputs;
mod rollout_narrow;
mod rollout_reports;
mod rollout_sizes;
mod rollout_trouble;
mod rollout_ways;
mod sides;
mod store;
mod store_disk;
mod store_killed;
mod store_sweep;
