//! How a gradient fares on its way back through a loop, in words and as a line to look at. What is known of it is `palinode_time::Health`.

use palinode_time::{Health, Verdict};

use crate::numbers;

/// Differences of less than a factor of two are drawn level.
const LEVEL: f64 = core::f64::consts::LN_2;
/// A cotangent that changes by more than this factor in all explodes or vanishes.
const MUCH: f64 = 1000.0;
/// The columns of a line.
pub(crate) const WIDTH: u64 = 60;

/// Sizes are known by their squares: larger ones are too large to measure, and may be finite.
pub(crate) const LARGEST: &str = "1e154";
/// Smaller ones look like zero.
const SMALLEST: &str = "2e-162";

/// A size as a number, as far as it was measured.
pub(crate) fn size(norm: f64) -> String {
    if norm == f64::INFINITY { format!(">{LARGEST}") } else { numbers::short(norm, 3) }
}

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

/// The verdict in words: with the round before which the size was first beyond [`LARGEST`], and whether the gradient is finite.
pub(crate) fn words(health: &Health, beyond_at: Option<u64>, is_finite: bool) -> String {
    let growth = health.growth_rate().unwrap_or(0.0);
    let percent = numbers::short(growth.exp_m1().abs() * 100.0, 3);
    let round = |at: Option<u64>| numbers::count(at.unwrap_or(0));
    let grows = if growth > 0.0 {
        format!("exploding: it grows by {percent} % with each round back")
    } else {
        "exploding".to_string()
    };
    let words = match (trend(health), beyond_at) {
        (Verdict::NotFinite, None) => {
            format!("not finite: before round {} it is infinite or NaN", round(health.not_finite_at()))
        }
        (Verdict::NotFinite, beyond) => format!(
            "{grows}; before round {} it is beyond {LARGEST}, before round {} infinite or NaN",
            round(beyond),
            round(health.not_finite_at())
        ),
        (Verdict::Vanished, None) => format!(
            "gone: it is zero, or below {SMALLEST}, before round {}, so nothing before that has an influence",
            round(health.vanished_at())
        ),
        // Whatever the trend of what could be measured.
        (_, Some(beyond)) => {
            let gradient = if is_finite { "the gradient is finite" } else { "the gradient is not finite" };
            format!("{grows}; before round {} it is beyond {LARGEST}; {gradient}", numbers::count(beyond))
        }
        (Verdict::Steady, None) => {
            let factor = (growth.abs() * health.steps() as f64).exp();
            let way = if growth > 0.0 { "grows" } else { "shrinks" };
            match factor {
                _ if factor < 1.005 => "steady: it keeps its size".to_string(),
                _ => format!(
                    "steady: it {way} by a factor of {} in all, {percent} % with each round back",
                    numbers::short(factor, 3)
                ),
            }
        }
        (Verdict::Exploding, None) => format!(
            "{grows}, so that the first rounds decide the gradient; a shorter loop, or an average over many runs, says more"
        ),
        (Verdict::Vanishing, None) => format!(
            "vanishing: it shrinks by {percent} % with each round back; what happened more than {} rounds before the end counts for less than a \
             millionth",
            numbers::count((1e6_f64.ln() / -growth).ceil() as u64)
        ),
        (Verdict::TooShort, None) => "too few rounds to say".to_string(),
    };
    let words = match health.vanished_at() {
        Some(0) => {
            format!("{words}; it is zero before the first round: what the loop starts from has no influence")
        }
        _ => words,
    };
    // What was measured is the cotangent of the state; that of a parameter may be infinite all the same.
    let is_said = beyond_at.is_some() || health.not_finite_at().is_some();
    if is_finite || is_said {
        words
    } else {
        format!("{words}; but the gradient is not finite: `palinode grad` says where it arises")
    }
}

/// The verdict; of what becomes zero before the first round only, which a start of zeros or a first round that overwrites it does, that of the rounds before.
pub(crate) fn trend(health: &Health) -> Verdict {
    match (health.verdict(), health.vanished_at(), health.growth_rate()) {
        (Verdict::Vanished, Some(0), None) => Verdict::TooShort,
        (Verdict::Vanished, Some(0), Some(rate)) => {
            let total = rate * health.steps() as f64;
            match total.abs() < MUCH.ln() {
                true => Verdict::Steady,
                false if total > 0.0 => Verdict::Exploding,
                false => Verdict::Vanishing,
            }
        }
        (verdict, ..) => verdict,
    }
}

/// The sizes over time, on a logarithmic scale: the largest of each column.
pub(crate) fn line(health: &Health) -> String {
    const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let rounds = health.steps();
    let columns = rounds.min(WIDTH);
    let mut all = vec![0.0_f64; columns as usize];
    for &(round, norm) in health.norms().iter().filter(|(_, norm)| !norm.is_nan()) {
        let column = &mut all[(round * columns / rounds) as usize];
        *column = column.max(norm);
    }
    let logs = all.iter().filter(|norm| **norm > 0.0 && norm.is_finite()).map(|norm| norm.ln());
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

    fn words(health: &Health) -> String {
        super::words(health, None, true)
    }

    #[test]
    fn what_grew_is_said_to_have_grown() {
        let mut health = of(|back| 1e10_f64.powf(back), 15);
        health.see(0, 1, f64::INFINITY);
        assert!(health.verdict() == Verdict::Exploding && size(health.latest().unwrap().1) == ">1e154");
        let finite = super::words(&health, Some(0), true);
        assert!(finite.starts_with("exploding: it grows by ") && finite.ends_with("the gradient is finite"));
        assert!(super::words(&health, Some(0), false).ends_with("the gradient is not finite"));
        health.see_not_finite(0, 1);
        let broken = super::words(&health, Some(0), false);
        assert!(broken.starts_with("exploding") && broken.contains("infinite or NaN"), "{broken}");
    }

    #[test]
    fn verdicts_are_told_in_words() {
        let broken = super::words(&of(|_| 0.0, 20), None, false);
        assert!(broken.starts_with("gone") && broken.contains("but the gradient is not finite"), "{broken}");
        assert!(words(&of(|back| 0.9_f64.powf(back), 100)).contains("10 % with each round back"));
        assert!(words(&of(|back| 0.9_f64.powf(back), 100)).contains("132 rounds"));
        assert!(words(&of(|back| 3.0 * (0.01 * back).exp(), 1000)).starts_with("exploding: it grows by 1.0"));
        assert!(words(&of(|back| 1.0 + 0.1 * back.sin(), 100)).starts_with("steady"));
        assert!(words(&of(|back| 2.0_f64.powf(back), 3)).contains("a factor of 8 in all, 100 % with each"));
        assert!(words(&of(|_| 7.0, 30)).ends_with("keeps its size"));
        let overwritten = words(&of(|back| 29.0 - back, 30));
        assert!(overwritten.starts_with("steady: it shrinks") && overwritten.contains("no influence"));
        let from_zeros = of(|back| if back < 29.0 { 0.4_f64.powf(back) } else { 0.0 }, 30);
        assert!(words(&from_zeros).starts_with("vanishing: it shrinks by 60 % with each round back"));
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
