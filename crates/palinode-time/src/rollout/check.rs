//! Whether the options of a rollout make sense, and go together.
//!
//! Input: a rollout as it was built. Output: nothing, or every mistake in it. Asked before the first step of
//! anything that a rollout does, because a builder has no way to say no.
//!
//! Limit: what only some reverse sweeps refuse (a window with a condition, a lossy store with verification)
//! is refused there.

use super::{Given, Options, Rollout, Schedule};
use crate::error::Error;
use crate::step::Step;
use palinode_core::Error::ScheduleArgument;

impl<St: Step, How> Rollout<'_, St, How> {
    /// The mistakes in the options: one as it is, several together.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.options.check(self.until.is_some(), matches!(self.inputs, Some(Given::Each(_))))
    }
}

impl Options {
    /// The same, for a loop that stops by a condition or does not, and has a list of inputs or has none.
    fn check(&self, stops: bool, lists_inputs: bool) -> Result<(), Error> {
        let mut mistakes = Vec::new();
        let mut not_together = |both: bool, what, with| {
            if both {
                mistakes.push(Error::NotTogether { what, with });
            }
        };
        let counts = self.steps.is_some();
        not_together(counts && stops, "a number of steps (.steps)", "a condition (.until)");
        not_together(
            self.at_most.is_some() && (counts || lists_inputs) && !stops,
            "a limit (.at_most)",
            "a loop without a condition (.until)",
        );
        if let [Some(first), Some(second)] = self.ways_of_inputs {
            not_together(true, first, second);
        }
        not_together(
            self.disk_snapshots.is_some() && self.schedule != Schedule::Best,
            "a second store (.disk, .second_store)",
            "a schedule of your own (.schedule)",
        );
        let (what, count) = match self.schedule {
            Schedule::Best | Schedule::StoreAll => ("", 1),
            Schedule::Periodic { every } => ("the period (Schedule::Periodic)", every),
            Schedule::Binomial { snapshots } => {
                ("the number of snapshots (Schedule::Binomial)", snapshots.into())
            }
            Schedule::Mixed { places } => ("the number of places (Schedule::Mixed)", places.into()),
        };
        let counted = [
            (what, Some(count)),
            ("the window (.truncate)", self.window),
            ("the number of steps on one tape (.record_at_once)", self.at_once),
            (
                "the number of snapshots in the second store (.disk, .second_store)",
                self.disk_snapshots.map(u64::from),
            ),
        ];
        for (what, _) in counted.into_iter().filter(|&(_, count)| count == Some(0)) {
            mistakes.push(ScheduleArgument { what, value: 0.0, must: "be at least 1" }.into());
        }
        if let Some(norm) = self.clip.filter(|norm| norm.is_nan() || *norm <= 0.0) {
            let what = "the norm to clip at (.clip)";
            mistakes.push(ScheduleArgument { what, value: norm, must: "be above 0" }.into());
        }
        if let Err(error) = &self.budget {
            mistakes.push(error.clone().into());
        }
        match mistakes.len() {
            0 => Ok(()),
            1 => Err(mistakes.remove(0)),
            _ => Err(Error::Several(mistakes)),
        }
    }
}
