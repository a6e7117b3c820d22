//! Derivatives by central differences, to compare exact ones with.
//!
//! Input: a function of the distance from the point. Output: an [`Estimate`] with its own error, and what looks like a
//! kink or a jump. Differences at steps that halve are extrapolated to step 0 (Richardson's scheme; Ridders 1982 is the
//! same idea with an early stop), and the entry of the table with the smallest error estimate wins, where the rounding of the
//! function values counts as error. Known limit: noise larger than rounding (a loop that stops at a tolerance) is
//! seen only through the scatter of the table.

/// What differences say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimate {
    pub(crate) value: f64,
    /// How far off it may be.
    pub(crate) error: f64,
    /// The slopes on both sides, if they do not come together.
    pub(crate) sides: Option<(f64, f64)>,
}

/// How differences and an exact derivative compare.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// To so many digits.
    Agrees { digits: u32 },
    /// As far as differences can tell, which is fewer digits than usual; none if the derivative vanishes.
    Within { digits: Option<u32> },
    /// The slopes on both sides differ and the derivative lies between them.
    Kink { left: f64, right: f64 },
    /// They do not.
    Disagrees,
    /// Differences could not be taken: the function fails around the point.
    Unknown,
}

/// How many steps are tried, each half of the one before.
const LEVELS: usize = 15;

/// Estimates a derivative at 0 of `f`, a function that may fail; `scale` is how far one may reasonably go. Where that turns out
/// too far, it looks closer.
pub(crate) fn estimate(f: &mut dyn FnMut(f64) -> Option<f64>, scale: f64) -> Option<Estimate> {
    let mut best: Option<Estimate> = None;
    let mut scale = scale;
    for _ in 0..ROUNDS {
        if let Some(found) = from(f, scale)
            && best.is_none_or(|best| is_better(found, best))
        {
            best = Some(found);
        }
        if best.is_some_and(|best| best.error <= 1e-7 * best.value.abs() || best.value == 0.0) {
            break;
        }
        scale *= 0.5_f64.powi(LEVELS as i32 - 2);
    }
    best
}

/// Whether an estimate by smaller steps is to be preferred: it knows better, or it is clear and contradicts the other. What looks smooth from afar may not be: in a chaotic loop
/// differences of large steps come together by accident.
fn is_better(closer: Estimate, farther: Estimate) -> bool {
    let is_clear = closer.error <= 1e-3 * closer.value.abs();
    let apart = (closer.value - farther.value).abs() > 20.0 * (closer.error + farther.error);
    closer.error < farther.error || (is_clear && apart)
}

/// How often it looks closer.
const ROUNDS: usize = 3;

/// With steps from a fifth of `scale` downwards.
fn from(f: &mut dyn FnMut(f64) -> Option<f64>, scale: f64) -> Option<Estimate> {
    let center = f(0.0)?;
    let mut table: Vec<Vec<f64>> = Vec::new();
    // For each row the difference of the slopes on both sides, and the rounding error of a slope.
    let mut bends: Vec<(f64, f64, f64)> = Vec::new();
    let mut best: Option<(f64, f64, usize)> = None;
    let mut step = 0.2 * scale;
    for _ in 0..LEVELS {
        let h = step;
        step /= 2.0;
        let (Some(up), Some(down)) = (f(h), f(-h)) else {
            // A domain ends within reach: start again closer.
            table.clear();
            bends.clear();
            best = None;
            continue;
        };
        let size = up.abs().max(down.abs()).max(center.abs());
        let noise = 4.0 * f64::EPSILON * size / h;
        bends.push(((up - center) / h, (center - down) / h, noise));
        let mut row = vec![(up - down) / (2.0 * h)];
        if let Some(above) = table.last() {
            let mut factor = 1.0;
            for (column, &before) in above.iter().enumerate() {
                factor *= 4.0;
                let left = row[column];
                let entry = left + (left - before) / (factor - 1.0);
                let error = (entry - left).abs().max((entry - before).abs()) + noise;
                if best.is_none_or(|(_, least, _)| error < least) {
                    best = Some((entry, error, table.len()));
                }
                row.push(entry);
            }
        }
        table.push(row);
    }
    let (value, error, row) = best?;
    Some(Estimate { value, error, sides: sides(&bends, row) })
}

/// The slopes on both sides, if they stay apart while the step shrinks.
fn sides(bends: &[(f64, f64, f64)], row: usize) -> Option<(f64, f64)> {
    // Look at the smallest step whose slopes are still clear of rounding, and at one eight times as large.
    let clear = |at: &usize| {
        let (right, left, noise) = bends[*at];
        (right - left).abs() > 100.0 * noise
    };
    let near = (0..bends.len()).rev().find(clear)?.max(row.min(bends.len() - 1));
    let far = near.checked_sub(3)?;
    let bend = |at: usize| bends[at].0 - bends[at].1;
    let stays = bend(near).abs() > 0.4 * bend(far).abs();
    let matters = bend(near).abs() > 1e-4 * bends[near].0.abs().max(bends[near].1.abs());
    (stays && matters && clear(&near)).then_some((bends[near].1, bends[near].0))
}

/// Compares an exact derivative with an estimate; `scale` is the size of the largest derivative of its kind.
pub(crate) fn compare(exact: f64, estimate: Option<Estimate>, scale: f64) -> Verdict {
    let Some(Estimate { value, error, sides }) = estimate else { return Verdict::Unknown };
    if !exact.is_finite() {
        return Verdict::Disagrees;
    }
    let distance = (exact - value).abs();
    let scale = scale.abs().max(exact.abs()).max(value.abs());
    let digits = if scale == 0.0 { None } else { Some(digits(distance / scale)) };
    let kink = sides.and_then(|(left, right)| {
        let slack = 1e-6 * left.abs().max(right.abs()) + error;
        let between = exact >= left.min(right) - slack && exact <= left.max(right) + slack;
        between.then_some(Verdict::Kink { left, right })
    });
    // At a kink with equal weights the differences hit the middle, and so may the derivative: that is no agreement.
    let plain = sides.is_some_and(|(left, right)| (right - left).abs() > 1e-3 * left.abs().max(right.abs()));
    match (digits, kink) {
        (Some(digits), _) if digits >= 5 && exact != 0.0 && !plain => Verdict::Agrees { digits },
        (_, Some(kink)) => kink,
        (None, None) => Verdict::Within { digits: None },
        (Some(_), None) if exact == 0.0 && distance <= 20.0 * error => Verdict::Within { digits: None },
        (Some(_), None) if exact.abs() <= error && distance <= error => Verdict::Within { digits: None },
        (Some(digits), None) if digits >= 5 => Verdict::Agrees { digits },
        (Some(digits), None) if distance <= 20.0 * error => Verdict::Within { digits: Some(digits) },
        (Some(_), None) => Verdict::Disagrees,
    }
}

/// The number of digits that a relative distance leaves.
fn digits(relative: f64) -> u32 {
    if relative <= 1e-15 { 15 } else { (-relative.log10()).floor().clamp(0.0, 15.0) as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(f: impl Fn(f64) -> f64, x: f64, exact: f64) -> Verdict {
        let scale = if x == 0.0 { 1.0 } else { x.abs() };
        let mut g = |h: f64| Some(f(x + h)).filter(|y| y.is_finite());
        compare(exact, estimate(&mut g, scale), 0.0)
    }

    #[test]
    fn smooth_functions_agree_to_many_digits() {
        let good = |verdict: Verdict| matches!(verdict, Verdict::Agrees { digits } if digits >= 9);
        assert!(good(at(f64::sin, 0.7, 0.7_f64.cos())));
        assert!(good(at(f64::exp, 3.0, 3.0_f64.exp())));
        assert!(good(at(|x| x.powi(5), 1e3, 5e12)));
        assert!(good(at(|x| 1.0 / x, 1e-3, -1e6)));
        assert!(good(at(|x| (40.0 * x).sin(), 1.0, 40.0 * 40.0_f64.cos())));
        assert!(good(at(|x| x.ln(), 1e-8, 1e8)));
    }

    #[test]
    fn domains_may_end_close_by() {
        assert!(matches!(at(|x| (1.0 - x).sqrt(), 0.999, -0.5 / 0.001_f64.sqrt()), Verdict::Agrees { .. }));
        assert_eq!(at(|x| if x == 1.0 { 1.0 } else { f64::NAN }, 1.0, 0.0), Verdict::Unknown);
        let narrow = |x: f64| if x.abs() < 1e-7 { 3.0 * x } else { f64::NAN };
        assert!(matches!(at(narrow, 0.0, 3.0), Verdict::Agrees { .. }));
        assert!(matches!(at(|x| (1e5 * x).sin(), 0.0, 1e5), Verdict::Agrees { .. }));
    }

    #[test]
    fn chaos_is_looked_at_closely() {
        // -90680.82 by the tangent of the loop in high precision.
        let logistic = |a: f64| (0..50).fold(0.3, |x, _| a * x * (1.0 - x));
        let tangent = |a: f64| {
            (0..50).fold((0.3, 0.0), |(x, d): (f64, f64), _| {
                (a * x * (1.0 - x), x * (1.0 - x) + a * (1.0 - 2.0 * x) * d)
            })
        };
        let exact = tangent(3.7).1;
        assert!((exact + 90_680.82).abs() < 0.1, "{exact}");
        let verdict = at(logistic, 3.7, exact);
        // The rounding of the loop itself looks like a kink of half a per cent.
        assert!(!matches!(verdict, Verdict::Disagrees | Verdict::Unknown), "{verdict:?}");
        assert_eq!(at(logistic, 3.7, 0.99 * exact), Verdict::Disagrees);
    }

    #[test]
    fn a_wrong_derivative_disagrees() {
        assert_eq!(at(f64::sin, 0.7, -0.7_f64.cos()), Verdict::Disagrees);
        assert_eq!(at(f64::sin, 0.7, 1.000_1 * 0.7_f64.cos()), Verdict::Disagrees);
        assert_eq!(at(|x| x * x, 0.0, 0.01), Verdict::Disagrees);
        assert_eq!(at(|x| x * x + 1e6, 1.0, 2.1), Verdict::Disagrees);
        assert_eq!(at(f64::abs, 0.0, 1.5), Verdict::Disagrees);
        assert_eq!(at(f64::sin, 0.7, f64::NAN), Verdict::Disagrees);
    }

    #[test]
    fn zero_derivatives_agree() {
        assert!(matches!(at(|_| 3.0, 2.0, 0.0), Verdict::Within { digits: None }));
        assert!(matches!(at(|x| (x - 2.0).powi(2) + 7.0, 2.0, 0.0), Verdict::Within { digits: None }));
        assert!(matches!(at(|_| 3.0, 2.0, 1e-300), Verdict::Within { digits: None }));
    }

    #[test]
    fn kinks_are_seen() {
        assert!(matches!(at(f64::abs, 0.0, 0.0), Verdict::Kink { .. }), "{:?}", at(f64::abs, 0.0, 0.0));
        assert!(matches!(at(|x| x.max(2.0 * x), 0.0, 1.0), Verdict::Kink { .. }));
        assert!(matches!(at(|x| (x - 1.0).abs() + x * x, 1.0, 3.0), Verdict::Kink { .. }));
        assert!(matches!(at(|x| (x - 1.0).abs() + x * x, 1.0, 2.0), Verdict::Kink { .. }));
        assert!(matches!(at(|x| x.floor() + x, 1.0, 1.0), Verdict::Kink { .. }));
        assert!(matches!(at(|x| (x - 1.0).abs() + x * x, 1.01, 3.02), Verdict::Agrees { .. }));
    }
}
