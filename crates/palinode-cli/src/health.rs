//! How a gradient fares on its way back through a loop.
//!
//! Input: the size of the cotangent of the loop's state before each round. Output: by how much it grows in a round, a verdict in plain words, and a line to look at.

use crate::numbers;

/// A gradient that changes by less than this factor over the whole loop is steady.
const STEADY: f64 = 1000.0;
/// Differences of less than a factor of two are drawn level.
const LEVEL: f64 = core::f64::consts::LN_2;
/// The columns of a line.
pub(crate) const WIDTH: usize = 60;

/// The sizes of a cotangent, by rounds in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health {
    /// The size before each round; not seen is NaN.
    norms: Vec<f64>,
}

/// What becomes of a gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Steady,
    Exploding,
    Vanishing,
    /// It is exactly zero up to this round.
    Gone {
        round: usize,
    },
    /// It is infinite or NaN up to this round.
    Broken {
        round: usize,
    },
    TooShort,
}

impl Verdict {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Verdict::Steady => "steady",
            Verdict::Exploding => "exploding",
            Verdict::Vanishing => "vanishing",
            Verdict::Gone { .. } => "gone",
            Verdict::Broken { .. } => "not finite",
            Verdict::TooShort => "too short",
        }
    }
}

impl Health {
    pub(crate) fn new(rounds: usize) -> Health {
        Health { norms: vec![f64::NAN; rounds] }
    }

    pub(crate) fn see(&mut self, round: usize, norm: f64) {
        if let Some(place) = self.norms.get_mut(round) {
            *place = norm;
        }
    }

    pub(crate) fn norms(&self) -> &[f64] {
        &self.norms
    }

    /// By how much the logarithm of the size grows with each round back, by least squares. In a long loop of a chaotic system this is near its largest Lyapunov
    /// exponent, per round.
    pub(crate) fn growth(&self) -> Option<f64> {
        let points: Vec<(f64, f64)> = self
            .norms
            .iter()
            .rev()
            .enumerate()
            .filter(|(_, norm)| norm.is_finite() && **norm > 0.0)
            .map(|(back, norm)| (back as f64, norm.ln()))
            .collect();
        if points.len() < 2 {
            return None;
        }
        let count = points.len() as f64;
        let x = points.iter().map(|point| point.0).sum::<f64>() / count;
        let y = points.iter().map(|point| point.1).sum::<f64>() / count;
        let xy: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
        let xx: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
        Some(xy / xx)
    }

    pub(crate) fn verdict(&self) -> Verdict {
        if let Some(round) = self.norms.iter().rposition(|norm| !norm.is_finite()) {
            return Verdict::Broken { round };
        }
        if let Some(round) = self.norms.iter().rposition(|norm| *norm == 0.0) {
            return Verdict::Gone { round };
        }
        let Some(growth) = self.growth() else { return Verdict::TooShort };
        let total = growth * self.norms.len() as f64;
        if total > STEADY.ln() {
            Verdict::Exploding
        } else if total < -STEADY.ln() {
            Verdict::Vanishing
        } else {
            Verdict::Steady
        }
    }

    /// The verdict in words.
    pub(crate) fn words(&self) -> String {
        let growth = self.growth().unwrap_or(0.0);
        let percent = numbers::short(growth.exp_m1().abs() * 100.0, 3);
        match self.verdict() {
            Verdict::Steady => {
                format!("steady: going back through a round changes it by {percent} % on average")
            }
            Verdict::Exploding => format!(
                "exploding: it grows by {percent} % with each round back, so that the first rounds decide the gradient; a shorter loop, or an average over many \
                 runs, says more"
            ),
            Verdict::Vanishing => format!(
                "vanishing: it shrinks by {percent} % with each round back; what happened more than {} rounds before the end counts for less than a \
                 millionth",
                numbers::count((1e6_f64.ln() / -growth).ceil() as u64)
            ),
            Verdict::Gone { round } => format!(
                "gone: it is exactly zero before round {}, so nothing before that has an influence",
                numbers::count(round as u64)
            ),
            Verdict::Broken { round } => {
                format!("not finite: before round {} it is infinite or NaN", numbers::count(round as u64))
            }
            Verdict::TooShort => "too few rounds to say".to_string(),
        }
    }

    /// The sizes over time, on a logarithmic scale: the largest of each column.
    pub(crate) fn line(&self) -> String {
        const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let rounds = self.norms.len();
        let columns = rounds.min(WIDTH);
        let column = |at: usize| {
            let part = &self.norms[at * rounds / columns..((at + 1) * rounds).div_ceil(columns)];
            part.iter().copied().filter(|norm| norm.is_finite()).fold(0.0, f64::max)
        };
        let all: Vec<f64> = (0..columns).map(column).collect();
        let logs = all.iter().filter(|norm| **norm > 0.0).map(|norm| norm.ln());
        let (low, high) = logs.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
        all.iter()
            .map(|norm| match (norm.ln() - low) / (high - low).max(LEVEL) {
                _ if *norm <= 0.0 => ' ',
                part => STEPS[((part * 7.0).round() as usize).min(7)],
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(norm: impl Fn(f64) -> f64, rounds: usize) -> Health {
        let mut health = Health::new(rounds);
        (0..rounds).rev().for_each(|round| health.see(round, norm((rounds - 1 - round) as f64)));
        health
    }

    #[test]
    fn growth_is_found_and_judged() {
        let health = of(|back| 3.0 * (0.01 * back).exp(), 1000);
        assert!((health.growth().unwrap() - 0.01).abs() < 1e-12);
        assert_eq!(health.verdict(), Verdict::Exploding);
        assert_eq!(of(|back| 0.9_f64.powf(back), 100).verdict(), Verdict::Vanishing);
        assert!(of(|back| 0.9_f64.powf(back), 100).words().contains("10 % with each round back"));
        assert!(of(|back| 0.9_f64.powf(back), 100).words().contains("132 rounds"));
        assert_eq!(of(|back| 1.0 + 0.1 * back.sin(), 100).verdict(), Verdict::Steady);
        assert_eq!(
            of(|back| if back < 60.0 { 1.0 } else { 0.0 }, 100).verdict(),
            Verdict::Gone { round: 39 }
        );
        assert_eq!(of(|back| 1.0 / (60.0 - back), 100).verdict(), Verdict::Broken { round: 39 });
        assert_eq!(of(|_| 1.0, 1).verdict(), Verdict::TooShort);
    }

    #[test]
    fn the_line_is_as_long_as_the_loop_up_to_a_width() {
        assert_eq!(of(|back| 2.0_f64.powf(back), 8).line(), "█▇▆▅▄▃▂▁");
        assert_eq!(of(|_| 5.0, 3).line(), "▁▁▁");
        assert_eq!(of(|back| 1.0 + back, 1000).line().chars().count(), WIDTH);
        assert_eq!(Health::new(0).line(), "");
    }
}
