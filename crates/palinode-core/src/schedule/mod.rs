//! Schedules of snapshots: which states of a loop to keep, and when to run which steps again, so that the
//! loop can be reversed within a memory limit.
//!
//! Input: numbers (steps, snapshots, bytes, costs). Output: a stream of [`Action`]s that any driver can
//! follow, and its [`Cost`], computed. No data, no files: a schedule does not know what a state is.
//!
//! | method | keeps | forward evaluations |
//! |---|---|---|
//! | [`store_all`] | the residuals of every step | `n` |
//! | [`periodic`] | a snapshot every `k` steps, the residuals of `k` steps | below `2 n` |
//! | [`binomial`] | `s` snapshots, one step's residuals | the fewest possible |
//! | [`Mixed`] | snapshots or residuals, by their sizes | the fewest possible for equal sizes, for others up to 20000 steps, or the gap |
//! | [`two_tier`] | snapshots in memory and on disk | the least total with the time of the disk up to 20000 steps, or the gap |
//! | [`Online`] | `s` snapshots of a loop whose length is unknown | at most 1.08 times the fewest (s >= 3) |
//! | [`nested`] | snapshots for each loop of a nest | the best division of a total |
//!
//! [`choose`] finds the method and its parameters for a number of bytes, [`check()`] tells whether a stream
//! is a schedule.
//!
//! Every stream is made by one loop (`sweep.rs`): methods differ only in how they divide a stretch of steps.
//! How evaluations are counted: every run of a step counts, recorded or not. The schedules for a known length
//! record the last step when they first reach it; after an [`Online`] sweep the loop has run to its end, so
//! all steps are run once more at least.

mod action;
mod betas;
mod binomial;
mod check;
mod choose;
mod cost;
mod divide;
mod equal;
mod hull;
mod mixed;
mod nested;
mod online;
mod periodic;
mod store_all;
mod sweep;
mod tally;
mod two_tier;

pub use action::{Action, Slot, Tier};
pub use binomial::{Binomial, binomial, binomial_bytes, binomial_cost, fewest_snapshots_for};
pub use check::{Mistake, Wrong, check};
pub use choose::{Chosen, ChosenActions, Method, choose};
pub use cost::{Cost, PerTier, Sizes, cost, peak_bytes};
pub use mixed::Mixed;
pub use nested::{Level, Nested, nested};
pub use online::{Due, Online, OnlineReverse, online_cost};
pub use periodic::{Periodic, periodic, periodic_cost};
pub use store_all::{StoreAll, store_all, store_all_cost};
pub use sweep::PlanBytes;
pub use two_tier::{TwoTier, two_tier, two_tier_bytes, two_tier_walked};
