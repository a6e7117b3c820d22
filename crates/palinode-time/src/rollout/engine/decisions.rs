//! What steps decide by numbers that a derivative goes through: comparisons, roundings, conversions.
//!
//! Each step is watched once in a sweep: when it is recorded, or, if it is not recorded by running it, when
//! it is first taken. Several steps are watched together, so that the closest decision is known to be in one
//! of them; the caller looks for which, where that matters.

use super::{Backend, Engine, Error, Inner, Step};
use crate::rollout::flat::for_each_number;
use crate::rollout::report::Closest;
use crate::rollout::taking::{begin, taken_well};
use palinode_core::Snapshot;
use palinode_core::decision::{self, Decisions};
use palinode_core::points::{self, Suspicion};

impl<St: Step, T: Inner, B: Backend<St, T>> Engine<'_, St, T, B> {
    /// Does what takes these steps, and watches it if that is not done elsewhere and they have not been
    /// watched before.
    #[inline(always)]
    pub(super) fn watching(
        &mut self,
        from: u64,
        to: u64,
        take: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if B::RECORDS || to <= self.watch.watched {
            return take(self);
        }
        let ((taken, seen), suspicion) = points::suspicion_of(|| decision::watch(|| take(self)));
        self.watch.watched = to;
        if suspicion != Suspicion::None {
            self.backend.look_from_now(suspicion);
        }
        if seen.count() > 0 {
            self.decided(from, to, seen);
        }
        taken
    }

    /// Finds the step of the closest decision, if rounding decided it in one of several: when a sweep is
    /// over, the loop is run again up to there, in the memory that there is.
    pub(in crate::rollout) fn locate_closest(&mut self, initial: &Snapshot) {
        let Engine { step: body, params, inputs, live, watch, .. } = self;
        let Some(closest) = &mut watch.decisions.closest else { return };
        let (from, to) = (closest.first_step, closest.last_step + 1);
        if !closest.at_rounding || to - from == 1 {
            return;
        }
        begin(*body);
        initial.restore(live);
        let mut smallest = f64::INFINITY;
        for at in 0..to {
            let Ok(input) = inputs.at(at) else { return };
            let ((), seen) = decision::watch(|| body.step(live, params, input));
            if taken_well(*body, at).is_err() {
                return;
            }
            if at >= from && seen.smallest_margin < smallest {
                smallest = seen.smallest_margin;
                (closest.first_step, closest.last_step) = (at, at);
            }
        }
    }

    /// Notes what these steps decided.
    #[cold]
    pub(super) fn decided(&mut self, from: u64, to: u64, seen: Decisions) {
        self.watch.decisions.count += seen.count();
        let margin = seen.smallest_margin;
        if margin.is_finite() && self.watch.decisions.closest.is_none_or(|closest| margin < closest.margin) {
            let mut largest: f64 = 0.0;
            for_each_number(&self.live, |number| {
                let size = number.primal().peek().unwrap_or(0.0).abs();
                largest = if size.is_finite() { largest.max(size) } else { largest };
            });
            let at_rounding = Closest::is_at_rounding(margin, to, largest);
            self.watch.decisions.closest =
                Some(Closest { margin, first_step: from, last_step: to - 1, at_rounding });
        }
    }
}
