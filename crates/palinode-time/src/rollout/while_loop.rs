//! Reverse sweeps of loops that stop by a condition: snapshots are thinned while the loop runs, because
//! nobody knows its length.

use super::backend::Backend;
use super::engine::{Engine, Swept};
use super::needs::{MOST_AT_ONCE, Task, refuse_beyond_naming};
use super::plan::{Actions, Way};
use super::setting::{Length, Loss, Setting};
use super::stores::Stores;
use super::taking::judged;
use super::{Differentiate, Rollout, StopMargin, Until};
use crate::error::Error;
use crate::step::Step;
use palinode_core::schedule::{self, Online};
use palinode_core::{Passive, Reals};

/// A loop that has run until its condition held, and back.
struct Gone {
    steps: u64,
    cost: schedule::Cost,
    /// How close it was to another number of steps.
    stop: StopMargin,
    /// The bytes of the schedule.
    bookkeeping: usize,
}

impl<St: Step, How: Differentiate<St>> Rollout<'_, St, How> {
    pub(super) fn sweep_until<'e, B: Backend<St, f64>>(
        &self,
        mut engine: Engine<'e, St, f64, B>,
        mut stores: Stores<'_, '_>,
        setting: Setting<'_>,
        condition: &Until<'_, St>,
        loss: &mut Loss<'_, St, f64>,
    ) -> Result<Swept<'e, St, f64, B>, Error> {
        if self.options.window.is_some() {
            return Err(Error::NotTogether { what: "a window (.truncate)", with: "a condition (.until)" });
        }
        if self.disk.is_some() || self.options.schedule != super::Schedule::Best {
            return Err(Error::NotTogether {
                what: "a schedule or a second store",
                with: "a condition (.until)",
            });
        }
        let Setting { start, budget, .. } = setting;
        // As many steps are recorded at once as can be taken for certain.
        let mut certain = 0;
        engine.restart(start, 0)?;
        while certain < MOST_AT_ONCE as u64
            && !judged(condition, &engine.live, certain)?.0
            && self.may_take(engine.inputs.count(), certain).is_ok()
        {
            engine.advance(certain, certain + 1)?;
            refuse_beyond_naming(engine.live.heap_bytes(), start.heap_bytes(), certain, budget)?;
            certain += 1;
        }
        let inputs = engine.inputs.count();
        let goes_on = |state: &St::State<Passive<f64>>, taken| {
            if judged(condition, state, taken)?.0 {
                return Ok(false);
            }
            self.may_take(inputs, taken).map(|()| true)
        };
        let longest = if certain < MOST_AT_ONCE as u64 { certain } else { u64::MAX };
        let length = Length { certain, most: longest, swept: u64::MAX, goes_on: &goes_on };
        engine.trusts_snapshots = !setting.is_lossy;
        let run = |engine: &mut Engine<'e, St, f64, B>,
                   stores: &mut Stores<'_, '_>,
                   actions: Actions,
                   loss: &mut Loss<'_, St, f64>| {
            let Actions::Online { snapshots } = actions else {
                unreachable!("a loop of unknown length is planned as such")
            };
            self.go_until(engine, setting, snapshots, condition, stores, loss)
        };
        let task = Task { setting, way: Way::Online, length, singly: false };
        let tried = self.attempt(&mut engine, &mut stores, task, loss, run)?;
        let Gone { steps, cost, stop, bookkeeping } = tried.result;
        let taken = u32::try_from(cost.peak_snapshots.memory).unwrap_or(u32::MAX);
        let held = engine.heap_bytes() + start.heap_bytes() + setting.results;
        let peak_bytes = tried.charged(tried.keeps.followed_in(bookkeeping), stores.heap_bytes(), held);
        let mut report = self.report(&mut engine, setting, steps, peak_bytes);
        // A loop that is found to stop was advanced to its end before its last step is recorded: one
        // evaluation more.
        let units = steps.div_ceil(engine.units.stride);
        report.optimum = steps + schedule::binomial_cost(units, taken.max(1))?.advanced * engine.units.stride;
        report.snapshots = cost.peak_snapshots.memory;
        report.stop = Some(stop);
        Ok(Swept { engine, report })
    }

    /// Runs until the condition holds, then reverses the loop.
    fn go_until<B: Backend<St, f64>>(
        &self,
        engine: &mut Engine<'_, St, f64, B>,
        setting: Setting<'_>,
        snapshots: u32,
        condition: &Until<'_, St>,
        stores: &mut Stores<'_, '_>,
        loss: &mut Loss<'_, St, f64>,
    ) -> Result<Gone, Error> {
        engine.restart(setting.start, 0)?;
        if self.options.verify {
            let mut taken = 0;
            while !judged(condition, &engine.live, taken)?.0 {
                self.may_take(engine.inputs.count(), taken)?;
                engine.steps = taken + 1;
                engine.advance(taken, taken + 1)?;
                taken += 1;
            }
            engine.back_to(setting.start, taken);
        }
        let mut online = Online::new(snapshots)?;
        let (mut taken, mut before_stop) = (0, f64::INFINITY);
        let at_stop = loop {
            let (holds, margin) = judged(condition, &engine.live, taken)?;
            if holds {
                break margin;
            }
            before_stop = margin;
            self.may_take(engine.inputs.count(), taken)?;
            engine.steps = taken + 1;
            if taken.is_multiple_of(engine.units.stride) {
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
        let there = online.heap_bytes();
        let back = online.reverse();
        let bookkeeping = there.max(back.heap_bytes());
        engine.follow(back, stores, loss)?;
        Ok(Gone { steps: taken, cost, stop: StopMargin { at_stop, before_stop }, bookkeeping })
    }
}
