//! All integration tests of `palinode-core`, in one binary. Its allocator is that of `allocations.rs`.

// Indices name arguments, lanes and outputs here; iterators would hide which.
#![allow(clippy::needless_range_loop)]

mod accumulators;
mod allocations;
mod arrays;
mod arrays_agree;
mod bounded;
mod budget;
mod bytes;
mod check;
mod drivers;
mod found;
mod jets;
mod lanes;
mod laws;
mod leaf;
mod planted;
mod programs;
mod reference;
mod rules;
mod schedule;
mod schedule_check;
mod schedule_optimal;
mod strong_zero;
mod sums;
mod support;
mod tape;
