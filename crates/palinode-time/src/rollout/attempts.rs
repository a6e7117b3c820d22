//! Attempts at a sweep: planned, run, and planned again with what the last one showed.
//!
//! Input: an engine, stores, a way to get states back, what runs a plan. Output: what the attempt gave that
//! went well, with its plan; or an error.
//!
//! There are four reasons for another attempt. A library computes something else with recorded numbers: then
//! steps are advanced by recording. Several steps at once took more than was planned for: then they are
//! recorded one at a time. A step did: then all of them are measured, so that the next plan holds, or names
//! the budget that is enough. And should that not hold: fewer snapshots leave more for everything else.

use super::backend::Backend;
use super::engine::Engine;
use super::needs::Task;
use super::plan::{Actions, Frame, Keeps, Needs, Planned};
use super::setting::{Loss, Setting};
use super::stores::Stores;
use super::{Differentiate, Inner, Rollout};
use crate::error::Error;
use crate::step::Step;
use palinode_core::Budget;

/// An attempt that went well, and what it was planned with.
pub(super) struct Tried<R> {
    pub(super) result: R,
    pub(super) needs: Needs,
    pub(super) keeps: Keeps,
}

impl<R> Tried<R> {
    /// The bytes that it was charged with, by what it kept: as planned, with what its stores hold; and if
    /// recordings grew into what was to spare, what is held.
    pub(super) fn charged(&self, keeps: Keeps, in_stores: usize, held: usize) -> usize {
        let held = held + in_stores + keeps.bytes.following;
        self.needs.with_stored(keeps, in_stores).total().max(held)
    }
}

impl<'a, St: Step, How: Differentiate<St>> Rollout<'a, St, How> {
    /// Plans a sweep and runs it, as often as need be.
    pub(super) fn attempt<'e, 'l, T: Inner, B: Backend<St, T>, R>(
        &self,
        engine: &mut Engine<'e, St, T, B>,
        stores: &mut Stores<'_, '_>,
        task: Task<'_, St, T>,
        loss: &mut Loss<'l, St, T>,
        run: impl Fn(
            &mut Engine<'e, St, T, B>,
            &mut Stores<'_, '_>,
            Actions,
            &mut Loss<'l, St, T>,
        ) -> Result<R, Error>,
    ) -> Result<Tried<R>, Error> {
        let Task { setting: Setting { start, budget, results, .. }, way, length, .. } = task;
        let (mut needs, mut measured) = self.needs_in_all(engine, task, stores, loss)?;
        let mut most = u64::MAX;
        loop {
            let units = length.swept.div_ceil(engine.units.stride);
            let Planned { actions, keeps } =
                Frame { way, budget, needs, stores: &*stores, most }.plan(units)?;
            let around = start.heap_bytes() + results;
            let spare = spare(budget, needs.with(keeps, stores).total());
            // A store of the caller's keeps its own limits.
            let in_memory = needs.in_memory(keeps, stores);
            stores.limit(needs.reals + needs.plain, in_memory.saturating_add(spare / 2));
            engine.make_places(keeps.units(), spare / 2);
            engine.hold_to_sizes(budget);
            let error = match run(engine, stores, actions, loss) {
                Ok(result) => return Ok(Tried { result, needs, keeps }),
                Err(error) => error,
            };
            let records = engine.should_record(&error);
            if !records && !error.is_excess() {
                return Err(error);
            }
            let held = around + stores.heap_bytes() + keeps.bytes.following;
            stores.renew()?;
            if records {
                engine.advance_by_recording_from_now();
            } else if !measured && engine.units.stride > 1 {
                (needs, measured) = self.needs_singly(engine, task, stores, loss)?;
            } else if !measured {
                needs = engine.needs_of_all(task, stores, loss)?;
                measured = true;
            } else if way.chooses() && keeps.snapshots > 1 {
                most = keeps.snapshots / 2;
            } else {
                return Err(engine.exceeding(error, budget, held));
            }
        }
    }
}

/// The bytes of the budget that are not planned for: a part of it, so that no list that grows takes the last
/// of it twice.
fn spare(budget: Budget, planned: usize) -> usize {
    if budget.is_unlimited() { usize::MAX } else { budget.bytes().saturating_sub(planned) }
}
