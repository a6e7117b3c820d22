//! What a rollout tells about itself, in one line for people and as numbers for programs.

use crate::health::Health;
use core::fmt;
use palinode_core::{Budget, StoreStats};

/// How a gradient of a rollout was computed, and what to think of it.
#[derive(Clone, Debug)]
pub struct RolloutReport {
    /// The steps of the loop.
    pub steps: u64,
    /// Evaluations of a step, recorded ones included. Of nested loops those of outer steps: an inner loop is
    /// run more often.
    pub forward: u64,
    /// The fewest evaluations that a schedule with as many snapshots can do with.
    pub optimum: u64,
    /// The most snapshots in memory at once.
    pub snapshots: u64,
    /// The most snapshots in the second store at once.
    pub second_snapshots: u64,
    /// The heap bytes that were charged: what was planned for besides snapshots, and what the stores held
    /// when the sweep was over. What stores gave back before is not counted here (no budget is exceeded by
    /// it); where states or recordings were planned to be larger than they were, it is more than an allocator
    /// sees.
    pub peak_bytes: usize,
    /// What was allowed.
    pub budget: Budget,
    /// The cotangent in the reverse sweep.
    pub health: Health,
    /// What steps decided by numbers that the gradient goes through.
    pub decisions: StepDecisions,
    /// For a loop with a condition: how close it came to another number of steps.
    pub stop: Option<StopMargin>,
    /// For a truncated sweep: what was left out.
    pub truncation: Option<Truncation>,
    /// For reversible steps: the largest difference of a number, relative to it (or to a millionth of the
    /// largest), between the initial state and what undoing all steps came back to.
    pub drift: Option<f64>,
    /// Whether steps were advanced by recording them, because a library computes something else with recorded
    /// numbers.
    pub advanced_by_recording: bool,
    /// For steps whose numbers each depend on few numbers before: in how many directions at once their
    /// partials were found by forward numbers. `None` if every step was recorded, or went by its own rule.
    pub directions: Option<usize>,
    /// For lossy snapshots: how far the derivative in the gradient's own direction is from the exact one,
    /// relative to it.
    pub lossy: Option<f64>,
    /// What reading and writing the second store took, and how much of that was waited for.
    pub io: Option<StoreStats>,
}

/// What the steps of a loop decided by numbers that a derivative goes through: the gradient is right only
/// while these decisions stay as they were.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepDecisions {
    /// Comparisons, roundings and conversions in all steps, each step counted once.
    pub count: u64,
    /// The decision that came closest to going the other way; `None` if there was none, or none whose margin
    /// is known.
    pub closest: Option<Closest>,
}

/// The decision with the smallest margin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Closest {
    /// The distance between the two sides of the comparison, or of a number to where its rounding jumps.
    pub margin: f64,
    /// It was taken in this step
    pub first_step: u64,
    /// or a later one, up to this: steps that are recorded at once are watched at once. Where rounding
    /// decides, the step is looked for, and both are the same.
    pub last_step: u64,
    /// The margin is no more than the rounding errors of so many steps: the decision says nothing about the
    /// function, and the gradient may be that of another branch.
    pub at_rounding: bool,
}

impl Closest {
    /// Whether rounding errors of so many steps, in a state whose largest number is this, may add up to a
    /// margin.
    pub(super) fn is_at_rounding(margin: f64, steps: u64, largest: f64) -> bool {
        margin <= (steps as f64 + 16.0) * f64::EPSILON * largest
    }
}

/// How close the condition of a loop came to stopping it one step earlier or later.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StopMargin {
    /// The smallest distance between the two sides of a comparison when it stopped.
    pub at_stop: f64,
    /// The same one step earlier, when it went on; infinite if there was none.
    pub before_stop: f64,
}

impl StopMargin {
    /// The smaller of both: how far the numbers that were compared are from those that would have made
    /// another number of steps. `None` if no numbers were compared, or only as `f64` (`to_f64`), which nobody
    /// sees.
    pub fn smallest(&self) -> Option<f64> {
        let smallest = self.at_stop.min(self.before_stop);
        smallest.is_finite().then_some(smallest)
    }

    /// Whether a change of a thousandth of a step would have changed the number of steps. The gradient is
    /// then right only on this side.
    pub fn is_near_a_change(&self) -> bool {
        let whole = self.at_stop + self.before_stop;
        // Without a comparison of numbers there is no margin.
        whole.is_finite() && (self.at_stop <= whole * 1e-3 || self.before_stop <= whole * 1e-3)
    }
}

/// What a truncated sweep left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Truncation {
    /// Over how many steps cotangents were carried.
    pub window: u64,
    /// How often a cotangent was cut.
    pub cuts: u64,
    /// The largest norm of a cotangent that was cut. What it would have become on its way is not known.
    pub largest_cut: f64,
    /// With [`Rollout::verify`](crate::Rollout::verify): the exact derivative in the direction of this
    /// gradient (by initial state and parameters), as a part of what this gradient says it is, by a forward
    /// sweep. 1 if nothing is missing in that direction; 3 if two thirds are; negative if a step along the
    /// gradient does the opposite of what it promises. What is missing in all has at least the norm of the
    /// gradient times the distance of this to 1. `None` if it was not asked for, or if the gradient is zero.
    pub exact_part: Option<f64>,
}

impl RolloutReport {
    /// Forward sweeps: evaluations per step of the loop.
    pub fn sweeps(&self) -> f64 {
        if self.steps == 0 { 0.0 } else { self.forward as f64 / self.steps as f64 }
    }
}

/// `1,000,000` for 1000000.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Nothing if nothing was decided.
impl fmt::Display for StepDecisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.count == 0 {
            return Ok(());
        }
        let decisions = if self.count == 1 { "decision" } else { "decisions" };
        write!(f, " · {} {decisions} in steps", grouped(self.count))?;
        let Some(Closest { margin, first_step, last_step, at_rounding }) = self.closest else {
            return f.write_str(", of unknown margins");
        };
        write!(f, ", the closest by {margin:.1e} in step {}", grouped(first_step))?;
        if last_step > first_step {
            write!(f, " to {}", grouped(last_step))?;
        }
        if at_rounding {
            f.write_str(": rounding decides it, so the gradient may be that of another branch; move off that point, or make the step smooth there")?;
        }
        Ok(())
    }
}

impl fmt::Display for RolloutReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = if self.steps == 1 { "step" } else { "steps" };
        write!(f, "{} {steps}", grouped(self.steps))?;
        if self.steps > 0 {
            let optimum = self.optimum as f64 / self.steps as f64;
            write!(f, " · {:.2} forward sweeps (optimum {optimum:.2})", self.sweeps())?;
        }
        write!(f, " · peak {}", Budget::from(self.peak_bytes).rounded())?;
        if !self.budget.is_unlimited() {
            write!(f, " of {}", self.budget)?;
        }
        if self.second_snapshots > 0 {
            write!(f, " · {} snapshots in the second store", grouped(self.second_snapshots))?;
        }
        write!(f, " · {}", self.health)?;
        write!(f, "{}", self.decisions)?;
        if let Some(stop) = self.stop {
            match stop.smallest() {
                Some(margin) => write!(f, " · stopped with a margin of {margin:.1e}")?,
                None => f.write_str(" · stopped by something whose margin is not known")?,
            }
            if stop.is_near_a_change() {
                f.write_str(" (close to another number of steps: the gradient holds on this side only)")?;
            }
        }
        if let Some(hidden) = self.io.and_then(|io| io.hidden()) {
            write!(f, " · I/O hidden {:.0} %", hidden * 100.0)?;
        }
        if let Some(truncation) = self.truncation {
            let Truncation { window, cuts, largest_cut, exact_part } = truncation;
            let times = if cuts == 1 { "once" } else { &format!("{} times", grouped(cuts)) };
            write!(
                f,
                " · cut {times} after {} steps, cotangents of norms up to {largest_cut:.1e}, so this is not the exact gradient",
                grouped(window)
            )?;
            match exact_part {
                Some(part) => write!(
                    f,
                    ": along the gradient, the exact derivative is {part:.3e} times what it predicts"
                )?,
                None => {
                    f.write_str(" (.verify() compares it with the exact derivative along the gradient)")?
                }
            }
        }
        if let Some(drift) = self.drift {
            write!(f, " · undoing the steps drifted by {drift:.1e}")?;
        }
        if self.advanced_by_recording {
            f.write_str(" · advanced by recording, because a library computes otherwise with plain numbers")?;
        }
        if let Some(error) = self.lossy {
            write!(
                f,
                " · lossy snapshots: error {error:.1e} along the gradient, so this is not the exact gradient"
            )?;
        }
        Ok(())
    }
}
