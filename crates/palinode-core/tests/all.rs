//! All integration tests of `palinode-core` but one, in one binary (`allocations.rs` needs an allocator of its own).

// Indices name arguments, lanes and outputs here; iterators would hide which.
#![allow(clippy::needless_range_loop)]

#[path = "all/accumulators.rs"]
mod accumulators;
#[path = "all/arrays.rs"]
mod arrays;
#[path = "all/arrays_agree.rs"]
mod arrays_agree;
#[path = "all/bounded.rs"]
mod bounded;
#[path = "all/budget.rs"]
mod budget;
#[path = "all/bytes.rs"]
mod bytes;
#[path = "all/check.rs"]
mod check;
#[path = "all/drivers.rs"]
mod drivers;
#[path = "all/found.rs"]
mod found;
#[path = "all/jets.rs"]
mod jets;
#[path = "all/laws.rs"]
mod laws;
#[path = "all/leaf.rs"]
mod leaf;
#[path = "all/planted.rs"]
mod planted;
#[path = "all/programs.rs"]
mod programs;
#[path = "all/reference.rs"]
mod reference;
#[path = "all/rules.rs"]
mod rules;
#[path = "all/schedule.rs"]
mod schedule;
#[path = "all/schedule_check.rs"]
mod schedule_check;
#[path = "all/schedule_optimal.rs"]
mod schedule_optimal;
#[path = "all/strong_zero.rs"]
mod strong_zero;
#[path = "all/tape.rs"]
mod tape;
