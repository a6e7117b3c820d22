//! Reverse sweeps of loops that stop by a condition: snapshots are thinned while the loop runs, because nobody knows its length.

use super::backend::Backend;
use super::engine::{Advance, Engine, Loss, Stores};
use super::plan;
use super::reverse::{MOST_AT_ONCE, Swept};
use super::{Differentiate, Rollout, StopMargin, Until};
use crate::error::Error;
use crate::step::Step;
use palinode_core::schedule::{self, Online};
use palinode_core::{Budget, Snapshot, SnapshotStore, decision};

/// Bytes of the bookkeeping of [`Online`], per snapshot, with room for a list that doubles.
const BOOKKEEPING: usize = 160;

impl<St: Step, How: Differentiate<St>> Rollout<'_, St, How> {
    pub(super) fn sweep_until<'e, B: Backend<St, f64>>(
        &self,
        mut engine: Engine<'e, St, f64, B>,
        start: &Snapshot,
        condition: &Until<'_, St>,
        budget: Budget,
        loss: &mut Loss<'_, St, f64>,
    ) -> Result<Swept<'e, St, f64, B>, Error> {
        if self.window.is_some() {
            return Err(Error::NotTogether { what: "a window (.truncate)", with: "a condition (.until)" });
        }
        if self.disk.is_some() || self.schedule != super::Schedule::Best {
            return Err(Error::NotTogether {
                what: "a schedule or a second store",
                with: "a condition (.until)",
            });
        }
        // As many steps are recorded at once as can be taken for certain.
        let mut certain = 0;
        engine.restart(start, 0)?;
        while certain < MOST_AT_ONCE as u64
            && !condition(&engine.live)
            && self.may_take(&engine.inputs, certain).is_ok()
        {
            engine.advance(certain, certain + 1)?;
            certain += 1;
        }
        let needs = self.needs(&mut engine, start, (certain, u64::MAX), (budget, BOOKKEEPING), loss)?;
        let limit = budget.bytes().saturating_sub(needs.states + needs.residuals);
        let (mut memory, _) = self.stores(limit)?;
        let slots = plan::slots_within(budget, needs, memory.as_ref(), BOOKKEEPING, u64::MAX)?;
        let mut stores = Stores { limit, memory: memory.as_mut() as &mut dyn SnapshotStore, disk: None };
        engine.trusts_snapshots = !stores.memory.is_lossy();
        if !budget.is_unlimited() {
            let kept = stores.memory.heap_bytes_for(slots as usize, needs.reals, needs.plain);
            engine.limit_growth(stores.limit.saturating_sub(kept + slots as usize * BOOKKEEPING));
        }
        let mut go = |engine: &mut Engine<'e, St, f64, B>, stores: &mut Stores<'_>| {
            engine.restart(start, 0)?;
            let mut online = Online::new(slots)?;
            let (mut taken, mut before_stop) = (0, f64::INFINITY);
            let at_stop = loop {
                let (stops, seen) = decision::watch(|| condition(&engine.live));
                if stops {
                    break seen.smallest_margin;
                }
                before_stop = seen.smallest_margin;
                self.may_take(&engine.inputs, taken)?;
                engine.set_steps(taken + 1);
                if taken.is_multiple_of(engine.stride) {
                    for action in online.before_step() {
                        engine.act(action, stores, loss)?;
                    }
                }
                engine.advance(taken, taken + 1)?;
                taken += 1;
            };
            let cost = online.cost();
            engine.all_inputs(taken);
            if taken == 0 {
                engine.no_steps(loss)?;
            }
            engine.follow(online.reverse(), stores, loss)?;
            Ok::<_, Error>((taken, cost, StopMargin { at_stop, before_stop }))
        };
        let (steps, cost, stop) = match go(&mut engine, &mut stores) {
            Err(Error::Diverged { .. }) if B::RECORDS && engine.advance_by == Advance::Passively => {
                engine.advance_by = Advance::ByRecording;
                go(&mut engine, &mut stores)?
            }
            other => other?,
        };
        let bookkeeping = BOOKKEEPING * cost.peak_slots.memory as usize;
        let peak_bytes =
            engine.heap_bytes() + stores.heap_bytes() + bookkeeping + start.heap_bytes() + needs.results;
        let mut report = self.report(&mut engine, steps, budget, peak_bytes);
        let snapshots = u32::try_from(cost.peak_slots.memory).unwrap_or(u32::MAX).max(1);
        // A loop that is found to stop was advanced to its end before its last step is recorded: one evaluation more.
        let units = steps.div_ceil(engine.stride);
        report.optimum = steps + schedule::binomial_cost(units, snapshots)?.advanced * engine.stride;
        report.snapshots = cost.peak_slots.memory;
        report.stop = Some(stop);
        Ok(Swept { engine, report })
    }
}
