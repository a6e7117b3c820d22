//! All integration tests of `palinode-time` but those that need an allocator or a process of their own, in one binary.

// Indices name numbers of a state here; iterators would hide which.
#![allow(clippy::needless_range_loop)]

#[path = "all/batch.rs"]
mod batch;
#[path = "all/forward_gradient.rs"]
mod forward_gradient;
#[path = "all/implicit.rs"]
mod implicit;
#[path = "all/implicit_errors.rs"]
mod implicit_errors;
#[path = "all/implicit_orders.rs"]
mod implicit_orders;
#[path = "all/implicit_step.rs"]
mod implicit_step;
#[path = "all/models.rs"]
mod models;
#[cfg(feature = "ir")]
#[path = "all/program_step.rs"]
mod program_step;
#[path = "all/rollout.rs"]
mod rollout;
#[path = "all/rollout_forms.rs"]
mod rollout_forms;
#[path = "all/rollout_hidden.rs"]
mod rollout_hidden;
#[path = "all/rollout_hostile.rs"]
mod rollout_hostile;
#[path = "all/rollout_inputs.rs"]
mod rollout_inputs;
#[path = "all/rollout_narrow.rs"]
mod rollout_narrow;
#[path = "all/rollout_reports.rs"]
mod rollout_reports;
#[path = "all/rollout_sizes.rs"]
mod rollout_sizes;
#[path = "all/rollout_trouble.rs"]
mod rollout_trouble;
#[path = "all/rollout_ways.rs"]
mod rollout_ways;
#[path = "all/sides.rs"]
mod sides;
#[path = "all/store.rs"]
mod store;
#[path = "all/store_disk.rs"]
mod store_disk;
#[path = "all/store_killed.rs"]
mod store_killed;
#[path = "all/store_sweep.rs"]
mod store_sweep;
