//! A snapshot every `k` steps; each block of `k` is recorded as a whole in the reverse sweep.
//!
//! Two forward evaluations a step, `n / k` snapshots and the residuals of `k` steps: the classic way, good if
//! memory grows with the square root of `n` (`k` near `sqrt(n * snapshot / residual)`).

use super::sweep::{Choice, Held, Plan, Sweep, actions};
use super::{Cost, PerTier, Tier};
use crate::Error;

/// The actions of [`periodic`].
#[derive(Clone, Debug)]
pub struct Periodic {
    sweep: Sweep<Every>,
}

#[derive(Clone, Copy, Debug)]
struct Every(u64);

impl Plan for Every {
    #[inline]
    fn choose(&self, steps: u64, _: Held, _: Option<Tier>) -> Choice {
        if steps <= self.0 { Choice::Record } else { Choice::Split { left: self.0, tier: Tier::Memory } }
    }
}

actions!(Periodic);

/// A snapshot before every `every`-th step but those of the last block, which is recorded at once.
pub fn periodic(steps: u64, every: u64) -> Result<Periodic, Error> {
    let snapshots = snapshots(steps, every)?;
    Ok(Periodic { sweep: Sweep::new(Every(every), steps, snapshots as usize) })
}

/// What [`periodic`] costs.
pub fn periodic_cost(steps: u64, every: u64) -> Result<Cost, Error> {
    let blocks_before = u64::from(snapshots(steps, every)?);
    let advanced = blocks_before * every;
    Ok(Cost {
        forward: steps.saturating_add(advanced),
        advanced,
        recorded: steps,
        writes: PerTier { memory: blocks_before, disk: 0 },
        reads: PerTier { memory: blocks_before, disk: 0 },
        peak_snapshots: PerTier { memory: blocks_before, disk: 0 },
        peak_residuals: steps.min(every),
    })
}

fn snapshots(steps: u64, every: u64) -> Result<u32, Error> {
    if every == 0 {
        return Err(Error::ScheduleArgument { what: "the period", value: 0.0, must: "be at least 1" });
    }
    let snapshots = steps.div_ceil(every).saturating_sub(1);
    u32::try_from(snapshots).map_err(|_| Error::PlanTooLarge { steps, what: "a snapshot for each period" })
}
