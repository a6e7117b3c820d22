//! How the cotangent grows or shrinks through a loop, in words and as a line to look at. What is known of it
//! is `palinode_time::Health`.

use palinode_time::{Health, Verdict};

use crate::chart::STEPS;
use crate::numbers;

/// Differences of less than a factor of two are drawn level.
const LEVEL: f64 = core::f64::consts::LN_2;
/// The columns of a line.
pub(crate) const WIDTH: u64 = 60;

/// A verdict as a word.
pub(crate) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Steady => "steady",
        Verdict::Growing => "growing",
        Verdict::Shrinking => "shrinking",
        Verdict::Uneven => "uneven",
        Verdict::Exploding => "exploding",
        Verdict::Vanishing => "vanishing",
        Verdict::Vanished => "gone",
        Verdict::NotFinite => "not finite",
        Verdict::TooShort => "too short",
    }
}

/// The verdict in words, and whether the gradient is finite.
pub(crate) fn words(health: &Health, is_finite: bool) -> String {
    let growth = health.growth_rate().unwrap_or(0.0);
    let percent = numbers::short(growth.exp_m1().abs() * 100.0, 3);
    let factor = || numbers::short((growth.abs() * health.steps() as f64).exp(), 3);
    let round = |at: Option<u64>| numbers::count(at.unwrap_or(0));
    let words = match trend(health) {
        Verdict::NotFinite if health.trend() == Verdict::Exploding => format!(
            "exploding: it grows by {percent} % with each reversed round; before round {} it is infinite or NaN",
            round(health.not_finite_at())
        ),
        Verdict::NotFinite => {
            format!("not finite: before round {} it is infinite or NaN", round(health.not_finite_at()))
        }
        Verdict::Vanished => format!(
            "gone: it is zero before round {}, so earlier rounds have no influence",
            round(health.vanished_at())
        ),
        Verdict::Steady if growth.abs() * health.steps() as f64 <= 0.005 => {
            "steady: it keeps its size".into()
        }
        Verdict::Steady => {
            let way = if growth > 0.0 { "grows" } else { "shrinks" };
            format!(
                "steady: it {way} by a factor of {} in all, {percent} % with each reversed round",
                factor()
            )
        }
        Verdict::Growing => {
            format!("growing: by a factor of {} in all, {percent} % with each reversed round", factor())
        }
        Verdict::Shrinking => {
            format!("shrinking: by a factor of {} in all, {percent} % with each reversed round", factor())
        }
        Verdict::Uneven => {
            let (smallest, largest) = health.range().unwrap_or((f64::NAN, f64::NAN));
            let [smallest, largest] = [smallest, largest].map(|size| numbers::short(size, 3));
            format!("uneven: it varies between {smallest} and {largest}")
        }
        Verdict::Exploding => format!(
            "exploding: it grows by {percent} % with each reversed round, so the first rounds dominate the gradient; shorten the loop, or average over many runs"
        ),
        Verdict::Vanishing => {
            let count = (1e6_f64.ln() / -growth).ceil() as u64;
            format!(
                "vanishing: it shrinks by {percent} % with each reversed round; what happened more than {} {} before the end counts for less than a \
                 millionth",
                numbers::count(count),
                if count == 1 { "round" } else { "rounds" }
            )
        }
        Verdict::TooShort => "too few rounds to say".to_string(),
    };
    let words = match health.vanished_at() {
        Some(0) => {
            format!("{words}; it is zero before the first round: what the loop starts from has no influence")
        }
        _ => words,
    };
    // What was measured is the cotangent of the state; that of a parameter may be infinite all the same.
    if is_finite || health.not_finite_at().is_some() {
        words
    } else {
        format!("{words}; but the gradient is not finite: `palinode grad` says where it arises")
    }
}

/// The verdict; of what becomes zero before the first round only, which a start of zeros or a first round
/// that overwrites it does, that of the rounds before.
pub(crate) fn trend(health: &Health) -> Verdict {
    match (health.verdict(), health.vanished_at()) {
        (Verdict::Vanished, Some(0)) => health.trend(),
        (verdict, _) => verdict,
    }
}

/// The sizes over time, on a logarithmic scale: the largest of each column.
pub(crate) fn line(health: &Health) -> String {
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
            health.see(round, 1, norm((rounds - 1 - round) as f64));
        }
        health
    }

    fn words(health: &Health) -> String {
        super::words(health, true)
    }

    #[test]
    fn what_grew_is_said_to_have_grown() {
        let mut health = of(|back| 1e10_f64.powf(back), 30);
        assert!(
            words(&health).starts_with("exploding: it grows by 1e12 % with each reversed round"),
            "{}",
            words(&health)
        );
        health.see(0, 1, f64::NAN);
        let broken = super::words(&health, false);
        assert!(broken.starts_with("exploding") && broken.contains("infinite or NaN"), "{broken}");
    }

    #[test]
    fn verdicts_are_put_into_words() {
        let broken = super::words(&of(|_| 0.0, 20), false);
        assert!(broken.starts_with("gone") && broken.contains("but the gradient is not finite"), "{broken}");
        assert!(words(&of(|back| 0.9_f64.powf(back), 100)).contains("10 % with each reversed round"));
        assert!(words(&of(|back| 0.9_f64.powf(back), 100)).contains("132 rounds"));
        assert!(words(&of(|back| 3.0 * (0.01 * back).exp(), 1000)).starts_with("exploding: it grows by 1.0"));
        assert!(words(&of(|back| 1.0 + 0.1 * back.sin(), 100)).starts_with("steady"));
        let short = words(&of(|back| 2.0_f64.powf(back), 7));
        assert_eq!(short, "growing: by a factor of 128 in all, 100 % with each reversed round");
        let swings = words(&of(|back| (7.0 * back.sin()).exp(), 100));
        assert!(swings.starts_with("uneven: it varies between 0.0009"), "{swings}");
        assert!(words(&of(|_| 7.0, 30)).ends_with("keeps its size"));
        let overwritten = words(&of(|back| 29.0 - back, 30));
        assert!(overwritten.starts_with("shrinking: by a factor") && overwritten.contains("no influence"));
        let from_zeros = of(|back| if back < 29.0 { 0.4_f64.powf(back) } else { 0.0 }, 30);
        assert!(words(&from_zeros).starts_with("vanishing: it shrinks by 60 % with each reversed round"));
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
