//! All integration tests of `palinode-core` but one, in one binary (`allocations.rs` needs an allocator of its own).

#[path = "all/budget.rs"]
mod budget;
#[path = "all/check.rs"]
mod check;
#[path = "all/leaf.rs"]
mod leaf;
#[path = "all/reference.rs"]
mod reference;
#[path = "all/rules.rs"]
mod rules;
