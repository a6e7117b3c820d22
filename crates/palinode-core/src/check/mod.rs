//! Gradients against differences.
//!
//! Input: a function and a point, or a [`Line`] through one: values by the distance from it, each with the
//! path of decisions by which it was computed, and the slope that differentiation gives there. Output: a
//! [`Comparison`] for each derivative.
//!
//! | file | |
//! |---|---|
//! | `mod.rs` | [`check_gradient`] of closures, [`compare`] for whatever can be run along a line |
//! | `estimate.rs` | slopes by differences, and verdicts |
//! | `corners.rs` | a closer look at kinks, jumps and what is close to them |
//!
//! A derivative follows the decisions that were taken, so a step that changes one says nothing about it.
//! First all steps are taken, central: what agrees across decisions agrees. Otherwise `corners.rs` looks
//! closer, at each side alone.

mod corners;
mod estimate;
#[cfg(test)]
mod tests;

use core::fmt;

pub use estimate::{Comparison, Line, Sample, Verdict};

use crate::decision;
use crate::error::Error;
use crate::points::unseen;
use crate::tape::{Tape, Var};
use estimate::{estimate, judge};

/// What [`check_gradient`] found.
#[derive(Clone, Debug)]
pub struct CheckedGradient {
    /// The value of the function.
    pub value: f64,
    /// Its gradient.
    pub gradient: Vec<f64>,
    /// How differences compare, input by input.
    pub inputs: Vec<Comparison>,
}

impl CheckedGradient {
    /// The first input for which differences say that the derivative is wrong.
    pub fn disagreement(&self) -> Option<usize> {
        self.inputs.iter().position(|one| one.verdict == Verdict::Disagrees)
    }
}

/// A line for each input.
impl fmt::Display for CheckedGradient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (gradient, one)) in self.gradient.iter().zip(&self.inputs).enumerate() {
            let Comparison { verdict, differences, .. } = one;
            writeln!(f, "input {at}: {gradient:?}, differences {differences:?}: {verdict:?}")?;
        }
        Ok(())
    }
}

/// Computes a gradient, and compares every entry of it with differences: for functions with [rules of their
/// own](crate::custom), with values held fixed, or with foreign code inside. It takes some dozens of runs of
/// `f` for each input.
///
/// ```
/// use palinode_core::{check_gradient, check::Verdict, Var};
///
/// let found = check_gradient(|x| x[0].exp() * x[1].abs(), &[1.0, 0.0])?;
/// assert!(matches!(found.inputs[0].verdict, Verdict::Within { digits: None })); // both vanish
/// assert!(matches!(found.inputs[1].verdict, Verdict::Kink { .. })); // which slope is right is a convention
/// assert_eq!(found.disagreement(), None);
///
/// // What is held fixed is missing in the gradient, not in the differences.
/// let wrong = check_gradient(|x| x[0] * Var::lift(x[0].value()), &[3.0])?;
/// assert_eq!(wrong.disagreement(), Some(0), "{wrong}");
/// # Ok::<(), palinode_core::Error>(())
/// ```
///
/// # Errors
/// If there is no gradient; that it is wrong is no error, see [`CheckedGradient::disagreement`].
pub fn check_gradient(
    mut f: impl FnMut(&[Var<f64>]) -> Var<f64>,
    x: &[f64],
) -> Result<CheckedGradient, Error> {
    let mut tape = Tape::new();
    let (value, gradient) = tape.value_and_grad(&mut f, x)?;
    let mut point = x.to_vec();
    let mut along = |at: usize| {
        let reach = if x[at] == 0.0 { 1.0 } else { x[at].abs() };
        let mut line = Along { f: &mut f, tape: &mut tape, point: &mut point, at, x: x[at] };
        let found = unseen(|| compare(gradient[at], &mut line, reach, 0.0));
        point[at] = x[at];
        found
    };
    let inputs = (0..x.len()).map(&mut along).collect();
    Ok(CheckedGradient { value, gradient, inputs })
}

/// A closure, by the distance of one input from `x`.
struct Along<'a, F> {
    f: &'a mut F,
    tape: &'a mut Tape<f64>,
    point: &'a mut [f64],
    at: usize,
    x: f64,
}

impl<F: FnMut(&[Var<f64>]) -> Var<f64>> Line for Along<'_, F> {
    fn sample(&mut self, distance: f64) -> Option<Sample> {
        self.point[self.at] = self.x + distance;
        let (record, seen) = decision::watch(|| self.tape.record_once(self.point, &mut *self.f));
        let value = record.ok()?.values()[0];
        Some(Sample { value, path: seen.path }).filter(|_| value.is_finite())
    }

    fn slope(&mut self, distance: f64) -> Option<f64> {
        self.point[self.at] = self.x + distance;
        let mut record = self.tape.record_once(self.point, &mut *self.f).ok()?;
        Some(record.reverse(&[1.0]).ok()?[self.at]).filter(|slope| slope.is_finite())
    }
}

/// Compares an exact derivative at distance 0 of a line; `reach` is how far one may reasonably go, `scale`
/// the size of the largest derivative of its kind: digits are counted against it, where it is larger than the
/// derivative itself.
pub fn compare(exact: f64, line: &mut dyn Line, reach: f64, scale: f64) -> Comparison {
    let Some(center) = line.sample(0.0) else { return Comparison::of(Verdict::Unknown, None) };
    let mut crossed = false;
    let found = estimate(
        &mut |h| {
            let sample = line.sample(h)?;
            crossed |= sample.path != center.path;
            Some(sample.value)
        },
        reach,
    );
    let first = Comparison::of(judge(exact, found, scale), found);
    match first.verdict {
        Verdict::Agrees { .. } | Verdict::Within { digits: None } => first,
        Verdict::Within { .. } | Verdict::Unknown if !crossed => first,
        _ => {
            let closer = corners::compare(exact, line, center, reach, scale);
            let closer = match (closer.verdict, first.verdict) {
                // Some digits across decisions are more than nothing.
                (Verdict::Crossed | Verdict::Unknown, Verdict::Within { .. }) => first,
                (Verdict::Unknown, _) if !crossed => first,
                _ => closer,
            };
            let is_other = first.verdict == Verdict::Disagrees && found.is_some_and(|found| found.is_clear());
            Comparison { across: found.filter(|_| is_other && crossed).map(|found| found.value), ..closer }
        }
    }
}
