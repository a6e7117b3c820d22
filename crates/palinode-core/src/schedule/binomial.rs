//! The fewest forward evaluations with `s` snapshots (Griewank & Walther, Algorithm 799, "revolve"), in
//! closed form.
//!
//! With `s` snapshots, the first state among them, and no step advanced over more than `r` times,
//! `beta(s, r) = C(s + r, s)` steps can be reversed. With the least such `r`, the fewest advances for `n`
//! steps are `r n - C(s + r, r - 1)`.
//!
//! Input: numbers of steps and snapshots. Output: actions, costs, the snapshots that a factor needs. Memory:
//! O(snapshots). No intermediate overflows: binomial coefficients are kept below twice the steps they are
//! compared with, or saturate.

use super::sweep::{Choice, Held, Plan, Sweep, actions, stack_bytes};
use super::{Cost, PerTier, Tier};
use crate::Error;

/// The actions of [`binomial`].
#[derive(Clone, Debug)]
pub struct Binomial {
    sweep: Sweep<Snapshots>,
}

/// Divides by the closed form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Snapshots(pub(super) u32);

impl Plan for Snapshots {
    #[inline]
    fn choose(&self, steps: u64, held: Held, _: Option<Tier>) -> Choice {
        if steps == 1 {
            return Choice::Record;
        }
        Choice::Split { left: split(steps, u64::from(self.0 - held.memory)), tier: Tier::Memory }
    }
}

actions!(Binomial);

/// The optimal schedule with at most `snapshots` snapshots in memory, the first state among them, and one
/// step's residuals. Among the schedules with the fewest evaluations it is one with the fewest snapshots
/// taken.
///
/// ```
/// use palinode_core::schedule::{self, Action, binomial};
///
/// let forward = schedule::cost(binomial(1000, 10)?).forward;
/// assert_eq!(forward, 4636); // 4.6 evaluations a step, 10 snapshots
///
/// // Planning is lazy: the first actions of a long loop are there at once.
/// assert!(matches!(binomial(1_000_000_000_000, 100)?.nth(1), Some(Action::Advance { from: 0, .. })));
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn binomial(steps: u64, snapshots: u32) -> Result<Binomial, Error> {
    let snapshots = useful(steps, snapshots)?;
    Ok(Binomial { sweep: Sweep::new(Snapshots(snapshots), steps, snapshots as usize) })
}

impl Binomial {
    /// The same as [`binomial`], in the memory of this schedule: for loops that are swept through often.
    ///
    /// # Errors
    /// As [`binomial`].
    pub fn again(self, steps: u64, snapshots: u32) -> Result<Binomial, Error> {
        let snapshots = useful(steps, snapshots)?;
        Ok(Binomial { sweep: self.sweep.again(Snapshots(snapshots), steps, snapshots as usize) })
    }
}

/// What [`binomial`] costs, by formulas.
pub fn binomial_cost(steps: u64, snapshots: u32) -> Result<Cost, Error> {
    let snapshots = useful(steps, snapshots)?;
    Ok(known(steps, u64::from(snapshots)))
}

/// The heap bytes that [`binomial`] holds for so many snapshots at most.
pub fn binomial_bytes(snapshots: u32) -> usize {
    stack_bytes(snapshots as usize)
}

/// The fewest snapshots with which [`binomial`] takes at most `factor` forward evaluations a step; none if
/// `factor` is below what snapshots before every step take.
///
/// ```
/// use palinode_core::schedule::{binomial_cost, fewest_snapshots_for};
///
/// let snapshots = fewest_snapshots_for(1000, 4.0).unwrap();
/// assert_eq!(snapshots, 16);
/// assert!(binomial_cost(1000, snapshots)?.forward <= 4000 && binomial_cost(1000, snapshots - 1)?.forward > 4000);
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn fewest_snapshots_for(steps: u64, factor: f64) -> Option<u32> {
    let fits = |snapshots: u64| known(steps, snapshots).forward as f64 <= factor * steps as f64;
    if steps <= 1 {
        return (factor >= 1.0).then_some(0);
    }
    let most = (steps - 1).min(u64::from(u32::MAX));
    fits(most).then(|| least(1, most, fits) as u32)
}

/// The least number from `low` on for which something holds that holds from there up to `high`.
pub(super) fn least(mut low: u64, mut high: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// At most one snapshot for each step but the last is of use, and one is needed if there are two steps.
pub(super) fn useful(steps: u64, snapshots: u32) -> Result<u32, Error> {
    let most = steps.saturating_sub(1);
    if most > 0 {
        at_least_one(snapshots)?;
    }
    Ok(u64::from(snapshots).min(most) as u32)
}

pub(super) fn at_least_one(snapshots: u32) -> Result<(), Error> {
    let none = Error::ScheduleArgument { what: "the number of snapshots", value: 0.0, must: "be at least 1" };
    if snapshots == 0 { Err(none) } else { Ok(()) }
}

/// The cost of a loop with at least one slot, or of at most one step.
pub(super) fn known(steps: u64, snapshots: u64) -> Cost {
    let advanced = advances(steps, snapshots);
    Cost {
        forward: advanced.saturating_add(steps),
        advanced,
        recorded: steps,
        writes: PerTier { memory: writes(steps, snapshots), disk: 0 },
        reads: PerTier { memory: steps.saturating_sub(1), disk: 0 },
        peak_snapshots: PerTier { memory: peak(steps, snapshots), disk: 0 },
        peak_residuals: steps.min(1),
    }
}

/// The fewest advances: `r n - C(s + r, r - 1)`.
pub(super) fn advances(steps: u64, snapshots: u64) -> u64 {
    if steps <= 1 {
        return 0;
    }
    let (r, before) = repetitions(steps, snapshots);
    // C(s + r, r - 1) = beta(s, r - 1) (s + r) / (s + 1)
    match (r.checked_mul(steps), before.checked_mul(snapshots + r)) {
        (Some(product), Some(over)) => product - over / (snapshots + 1),
        _ => {
            let product = u128::from(r) * u128::from(steps);
            let over = u128::from(before) * u128::from(snapshots + r) / u128::from(snapshots + 1);
            u64::try_from(product - over).unwrap_or(u64::MAX)
        }
    }
}

/// Snapshots taken, the first state's among them: `max(beta(s - 1, r - 1), n - beta(s, r - 1))`.
pub(super) fn writes(steps: u64, snapshots: u64) -> u64 {
    if steps <= 1 {
        return 0;
    }
    let (r, before) = repetitions(steps, snapshots);
    mul_div(before, snapshots, snapshots + r - 1).max(steps - before)
}

/// Snapshots in use at once. As long as some are free, each stretch of three steps or more takes one.
fn peak(steps: u64, snapshots: u64) -> u64 {
    snapshots.min(steps.saturating_sub(1))
}

/// How far to advance from a snapshot over the next `steps` steps (at least 2) with `snapshots` snapshots,
/// that of the snapshot among them: within the optimal range, where the fewest snapshots are taken.
pub(super) fn split(steps: u64, snapshots: u64) -> u64 {
    if steps <= snapshots + 1 {
        return 1;
    }
    if snapshots == 1 {
        return steps - 1;
    }
    // Without a division where `r` is 2 or 3, which is most often.
    if snapshots < 1 << 20 {
        let two = (snapshots + 1) * (snapshots + 2) / 2;
        if steps <= two {
            return steps.saturating_sub(2 * snapshots - 1).clamp(1, snapshots + 1);
        }
        if steps <= two * (snapshots + 3) / 3 {
            return steps.saturating_sub(snapshots * snapshots).clamp(snapshots + 1, two);
        }
    }
    let (r, before) = repetitions(steps, snapshots);
    let least = mul_div(before, r - 1, snapshots + r - 1); // beta(s, r - 2)
    let right = mul_div(before, snapshots, snapshots + r - 1); // beta(s - 1, r - 1)
    let extra = mul_div(right, snapshots - 1, snapshots + r - 2); // beta(s - 2, r - 1)
    steps.saturating_sub(right + extra).clamp(least, before)
}

/// The least `r` with `beta(s, r) >= n`, for `n >= 2` and `s >= 1`, and `beta(s, r - 1)`, which is below `n`.
pub(super) fn repetitions(steps: u64, snapshots: u64) -> (u64, u64) {
    match snapshots {
        1 => (steps - 1, steps - 1),
        2 => {
            // beta(2, r) = (r + 1) (r + 2) / 2; the root is right but for rounding.
            let beta = |r: u64| u128::from(r + 1) * u128::from(r + 2) / 2;
            let mut r = ((steps as f64 * 2.0).sqrt() as u64).saturating_sub(1).max(1);
            while beta(r) < u128::from(steps) {
                r += 1;
            }
            while r > 1 && beta(r - 1) >= u128::from(steps) {
                r -= 1;
            }
            (r, beta(r - 1) as u64)
        }
        _ => {
            let (mut r, mut before, mut beta) = (1, 1, snapshots + 1);
            while beta < steps {
                r += 1;
                before = beta;
                beta = mul_div(beta, snapshots + r, r);
            }
            (r, before)
        }
    }
}

/// `a b / c`, at most `u64::MAX`, for products that `c` divides.
pub(super) fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product / c,
        None => u64::try_from(u128::from(a) * u128::from(b) / u128::from(c)).unwrap_or(u64::MAX),
    }
}
