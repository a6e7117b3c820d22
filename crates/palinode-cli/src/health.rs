//! How a gradient fares on its way back through a loop, in words and as a line to look at. What is known of it is `palinode_time::Health`.

use palinode_time::{Health, Verdict};

use crate::numbers;

/// Differences of less than a factor of two are drawn level.
const LEVEL: f64 = core::f64::consts::LN_2;
/// The columns of a line.
pub(crate) const WIDTH: u64 = 60;

/// A verdict as a word.
pub(crate) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Steady => "steady",
        Verdict::Exploding => "exploding",
        Verdict::Vanishing => "vanishing",
        Verdict::Vanished => "gone",
        Verdict::NotFinite => "not finite",
        Verdict::TooShort => "too short",
    }
}

/// The verdict in words.
pub(crate) fn words(health: &Health) -> String {
    let growth = health.growth_rate().unwrap_or(0.0);
    let percent = numbers::short(growth.exp_m1().abs() * 100.0, 3);
    let round = |at: Option<u64>| numbers::count(at.unwrap_or(0));
    match health.verdict() {
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
        Verdict::Vanished => format!(
            "gone: it is exactly zero before round {}, so nothing before that has an influence",
            round(health.vanished_at())
        ),
        Verdict::NotFinite => {
            format!("not finite: before round {} it is infinite or NaN", round(health.not_finite_at()))
        }
        Verdict::TooShort => "too few rounds to say".to_string(),
    }
}

/// The sizes over time, on a logarithmic scale: the largest of each column.
pub(crate) fn line(health: &Health) -> String {
    const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let rounds = health.steps();
    let columns = rounds.min(WIDTH);
    let mut all = vec![0.0_f64; columns as usize];
    for &(round, norm) in health.norms().iter().filter(|(_, norm)| norm.is_finite()) {
        let column = &mut all[(round * columns / rounds) as usize];
        *column = column.max(norm);
    }
    let logs = all.iter().filter(|norm| **norm > 0.0).map(|norm| norm.ln());
    let (low, high) = logs.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
    all.iter()
        .map(|norm| match (norm.ln() - low) / (high - low).max(LEVEL) {
            _ if *norm <= 0.0 => ' ',
            part => STEPS[((part * 7.0).round() as usize).min(7)],
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(norm: impl Fn(f64) -> f64, rounds: u64) -> Health {
        let mut health = Health::new();
        for round in (0..rounds).rev() {
            let norm = norm((rounds - 1 - round) as f64);
            if norm.is_finite() {
                health.see(round, 1, norm * norm);
            } else {
                health.see_not_finite(round, 1);
            }
        }
        health
    }

    #[test]
    fn verdicts_are_told_in_words() {
        assert!(words(&of(|back| 0.9_f64.powf(back), 100)).contains("10 % with each round back"));
        assert!(words(&of(|back| 0.9_f64.powf(back), 100)).contains("132 rounds"));
        assert!(words(&of(|back| 3.0 * (0.01 * back).exp(), 1000)).starts_with("exploding: it grows by 1.0"));
        assert!(words(&of(|back| 1.0 + 0.1 * back.sin(), 100)).starts_with("steady"));
        assert!(words(&of(|back| if back < 60.0 { 1.0 } else { 0.0 }, 100)).contains("before round 39"));
        assert!(words(&of(|back| 1.0 / (60.0 - back), 100)).contains("before round 39 it is infinite"));
        assert_eq!(words(&of(|_| 1.0, 1)), "too few rounds to say");
    }

    #[test]
    fn the_line_is_as_long_as_the_loop_up_to_a_width() {
        assert_eq!(line(&of(|back| 2.0_f64.powf(back), 8)), "█▇▆▅▄▃▂▁");
        assert_eq!(line(&of(|_| 5.0, 3)), "▁▁▁");
        for rounds in [61, 127, 128, 129, 1000, 12_345] {
            let line = line(&of(|back| 1.0 + back, rounds));
            assert_eq!(line.chars().count() as u64, WIDTH);
            assert!(!line.contains(' '), "no column is without a norm: {rounds} rounds, {line}");
        }
        assert_eq!(line(&Health::new()), "");
    }
}
