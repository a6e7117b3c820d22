//! Derivatives by differences, to compare exact ones with.
//!
//! Input: a function of the distance from the point, which says with each value by which path of decisions it was computed. Output: a [`Comparison`].
//! Differences at steps that halve are extrapolated to step 0 (Richardson's scheme; Ridders 1982 is the same idea with an early stop), and the entry of the table with the
//! smallest error estimate wins, where the rounding of the function values counts as error.
//!
//! A derivative follows the decisions that were taken, so a step that changes one says nothing about it. First all steps are taken, central: what agrees across decisions agrees.
//! Otherwise only those count that took the decisions of the point; and where the nearest steps on one side take others, the point lies on a decision: then both sides are looked at alone,
//! and what is found is a jump, a kink, or nothing that could be compared. Known limit: noise larger than rounding (a loop that stops at a tolerance) is seen only through
//! the scatter of the table.

/// A value of the function, and a fingerprint of the decisions on the way to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) value: f64,
    pub(crate) path: u64,
}

/// A function of the distance; none where it fails.
pub(crate) type Function<'a> = dyn FnMut(f64) -> Option<Sample> + 'a;

/// How differences and an exact derivative compare.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// To so many digits.
    Agrees { digits: u32 },
    /// As far as differences can tell, which is fewer digits than usual; none if the derivative vanishes.
    Within { digits: Option<u32> },
    /// The slopes on both sides differ and the derivative lies between them.
    Kink { left: f64, right: f64 },
    /// The values on both sides differ; the derivative is the slope of one of them.
    Jump { left: f64, right: f64 },
    /// Every step, however small, takes other decisions than the point, and the slopes there are not the derivative.
    Crossed,
    /// They do not.
    Disagrees,
    /// Differences could not be taken: the function fails around the point.
    Unknown,
}

/// What a comparison found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comparison {
    pub(crate) verdict: Verdict,
    /// What differences give, and how far off that may be; NaN if there is nothing.
    pub(crate) differences: f64,
    pub(crate) error: f64,
    /// The slope over larger steps, which change decisions, if it is clear and another.
    pub(crate) across: Option<f64>,
}

/// What differences say.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    value: f64,
    /// How far off it may be.
    error: f64,
    /// The slopes on both sides, if they do not come together.
    sides: Option<(f64, f64)>,
}

impl Estimate {
    fn is_clear(&self) -> bool {
        self.error <= 1e-3 * self.value.abs()
    }
}

/// Compares an exact derivative at 0 of `f`; `reach` is how far one may reasonably go, `scale` the size of the largest derivative of its kind.
pub(crate) fn compare(exact: f64, f: &mut Function<'_>, reach: f64, scale: f64) -> Comparison {
    let Some(center) = f(0.0) else { return Comparison::of(Verdict::Unknown, None) };
    let mut crossed = false;
    let found = estimate(
        &mut |h| {
            let sample = f(h)?;
            crossed |= sample.path != center.path;
            Some(sample.value)
        },
        reach,
    );
    let first = Comparison::of(judge(exact, found, scale), found);
    match first.verdict {
        Verdict::Agrees { .. } | Verdict::Within { digits: None } => first,
        _ if !crossed => first,
        _ => {
            let closer = between_decisions(exact, f, center, reach, scale);
            let closer = match (closer.verdict, first.verdict) {
                // Some digits across decisions are more than nothing.
                (Verdict::Crossed | Verdict::Unknown, Verdict::Within { .. }) => first,
                _ => closer,
            };
            let is_other = first.verdict == Verdict::Disagrees && found.is_some_and(|found| found.is_clear());
            Comparison { across: found.filter(|_| is_other).map(|found| found.value), ..closer }
        }
    }
}

impl Comparison {
    fn of(verdict: Verdict, found: Option<Estimate>) -> Comparison {
        let (differences, error) = found.map_or((f64::NAN, f64::NAN), |found| (found.value, found.error));
        Comparison { verdict, differences, error, across: None }
    }
}

/// How many steps are tried, each half of the one before.
const LEVELS: usize = 15;

/// Estimates a derivative at 0 of `f`, a function that may fail; `reach` is how far one may reasonably go. Where that turns out
/// too far, it looks closer.
fn estimate(f: &mut dyn FnMut(f64) -> Option<f64>, reach: f64) -> Option<Estimate> {
    let mut best: Option<Estimate> = None;
    let mut reach = reach;
    for _ in 0..ROUNDS {
        if let Some(found) = from(f, reach)
            && best.is_none_or(|best| is_better(found, best))
        {
            best = Some(found);
        }
        if best.is_some_and(|best| best.error <= 1e-7 * best.value.abs() || best.value == 0.0) {
            break;
        }
        reach *= 0.5_f64.powi(LEVELS as i32 - 2);
    }
    best
}

/// Whether an estimate by smaller steps is to be preferred: it knows better, or it is clear and contradicts the other. What looks smooth from afar may not be: in a chaotic loop
/// differences of large steps come together by accident.
fn is_better(closer: Estimate, farther: Estimate) -> bool {
    let apart = (closer.value - farther.value).abs() > 20.0 * (closer.error + farther.error);
    closer.error < farther.error || (closer.is_clear() && apart)
}

/// How often it looks closer.
const ROUNDS: usize = 3;

/// With steps from a fifth of `reach` downwards.
fn from(f: &mut dyn FnMut(f64) -> Option<f64>, reach: f64) -> Option<Estimate> {
    let center = f(0.0)?;
    let mut slopes = Vec::new();
    // For each row the slopes on both sides, and the rounding error of a slope.
    let mut bends: Vec<(f64, f64, f64)> = Vec::new();
    for level in 0..LEVELS {
        let h = step(reach, level);
        let (Some(up), Some(down)) = (f(h), f(-h)) else {
            // A domain ends within reach: start again closer.
            slopes.clear();
            bends.clear();
            continue;
        };
        let noise = noise([up, down, center], h);
        bends.push(((up - center) / h, (center - down) / h, noise));
        slopes.push(Some(((up - down) / (2.0 * h), noise)));
    }
    let (value, error, row) = extrapolate(&slopes, 4.0)?;
    Some(Estimate { value, error, sides: sides(&bends, row) })
}

/// The steps, from a fifth of `reach` downwards.
fn step(reach: f64, level: usize) -> f64 {
    0.2 * reach * 0.5_f64.powi(level as i32)
}

/// The rounding error of a difference of such values by a step.
fn noise(values: [f64; 3], h: f64) -> f64 {
    let size = values.iter().fold(0.0_f64, |size, value| size.max(value.abs()));
    4.0 * f64::EPSILON * size / h
}

/// Slopes with their rounding errors, at steps that halve -> the slope at step 0, its error, and the row that gave it. The error of a slope is a series in the step whose terms shrink by powers of `ratio`
/// when the step halves. A gap starts the table anew.
fn extrapolate(slopes: &[Option<(f64, f64)>], ratio: f64) -> Option<(f64, f64, usize)> {
    let mut best: Option<(f64, f64, usize)> = None;
    let mut above: Vec<f64> = Vec::new();
    for (at, slope) in slopes.iter().enumerate() {
        let Some((slope, noise)) = *slope else {
            above.clear();
            continue;
        };
        let mut row = vec![slope];
        let mut factor = 1.0;
        for (column, &before) in above.iter().enumerate() {
            factor *= ratio;
            let left = row[column];
            let entry = left + (left - before) / (factor - 1.0);
            let error = (entry - left).abs().max((entry - before).abs()) + noise;
            if best.is_none_or(|(_, least, _)| error < least) {
                best = Some((entry, error, at));
            }
            row.push(entry);
        }
        above = row;
    }
    best
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

/// How many steps are tried where only those count that change no decision: the last is about 1e-11 of `reach`.
const CLOSE_LEVELS: usize = 34;

/// Compares by steps that took the decisions of the point; if there are none on a side, by what is on both sides.
fn between_decisions(exact: f64, f: &mut Function<'_>, center: Sample, reach: f64, scale: f64) -> Comparison {
    let mut along = |sign: f64| -> Vec<Option<Sample>> {
        (0..CLOSE_LEVELS).map(|level| f(sign * step(reach, level))).collect()
    };
    let (up, down) = (along(1.0), along(-1.0));
    let (Some(above), Some(below)) = (up[CLOSE_LEVELS - 1], down[CLOSE_LEVELS - 1]) else {
        return Comparison::of(Verdict::Unknown, None);
    };
    if above.path == center.path && below.path == center.path {
        let same = |side: &[Option<Sample>], level: usize| {
            side[level].filter(|sample| sample.path == center.path).map(|sample| sample.value)
        };
        let central: Vec<_> = (0..CLOSE_LEVELS)
            .map(|level| {
                let (up, down) = (same(&up, level)?, same(&down, level)?);
                let h = step(reach, level);
                Some(((up - down) / (2.0 * h), noise([up, down, center.value], h)))
            })
            .collect();
        let central = extrapolate(&central, 4.0);
        let sides = [one_side(&up, center.path, reach), one_side(&down, center.path, -reach)];
        let sides = sides.into_iter().flatten().map(|side| (side.slope, side.error));
        let all = central.map(|(value, error, _)| (value, error)).into_iter().chain(sides);
        let best = all.min_by(|a, b| a.1.total_cmp(&b.1));
        let found = best.map(|(value, error)| Estimate { value, error, sides: None });
        return match found {
            Some(_) => Comparison::of(judge(exact, found, scale), found),
            None => Comparison::of(Verdict::Crossed, None),
        };
    }
    let sides = (one_side(&down, below.path, -reach), one_side(&up, above.path, reach));
    let (Some(left), Some(right)) = sides else { return Comparison::of(Verdict::Crossed, None) };
    on_a_decision(exact, center, (left, below.path), (right, above.path), scale)
}

/// The function on one side of the point, as far as it goes by one path of decisions.
#[derive(Clone, Copy, Debug)]
struct Side {
    slope: f64,
    error: f64,
    /// Its value at the point, continued from this side, and how far off that may be.
    limit: f64,
    limit_error: f64,
}

/// From samples at steps that halve, which begin at a fifth of `reach` (negative to the left). The value at the point itself is not used: it may belong to the other side.
fn one_side(samples: &[Option<Sample>], path: u64, reach: f64) -> Option<Side> {
    let same = |level: usize| samples[level].filter(|sample| sample.path == path).map(|sample| sample.value);
    let slopes: Vec<_> = (1..samples.len())
        .map(|level| {
            let (far, near) = (same(level - 1)?, same(level)?);
            let h = step(reach, level);
            Some(((far - near) / h, noise([far, near, near], h.abs())))
        })
        .collect();
    let (slope, error, _) = extrapolate(&slopes, 2.0)?;
    let nearest = step(reach, samples.len() - 1);
    let value = same(samples.len() - 1)?;
    let limit_error = 16.0 * f64::EPSILON * value.abs() + (slope.abs() + error) * nearest.abs();
    Some(Side { slope, error, limit: value - slope * nearest, limit_error })
}

/// The point lies on a decision: what is there, and whether the derivative is that of a side.
fn on_a_decision(
    exact: f64,
    center: Sample,
    (left, left_path): (Side, u64),
    (right, right_path): (Side, u64),
    scale: f64,
) -> Comparison {
    let judged = |side: &Side| {
        let found = Estimate { value: side.slope, error: side.error, sides: None };
        (judge(exact, Some(found), scale), found)
    };
    let ((by_left, left_found), (by_right, right_found)) = (judged(&left), judged(&right));
    let agrees = |verdict: Verdict| matches!(verdict, Verdict::Agrees { .. } | Verdict::Within { .. });
    let jumps = (left.limit - right.limit).abs() > left.limit_error + right.limit_error;
    // Whose decisions the point took, if it took those of a side, or else whose value it has: then that side is what is differentiated.
    let has_value = |side: &Side| jumps && (center.value - side.limit).abs() <= side.limit_error;
    let (own, found) = if center.path == right_path || (center.path != left_path && has_value(&right)) {
        (Some(by_right), right_found)
    } else if center.path == left_path || has_value(&left) {
        (Some(by_left), left_found)
    } else if agrees(by_right) {
        (None, right_found)
    } else {
        (None, left_found)
    };
    let slack = left.error + right.error;
    let (low, high) = (left.slope.min(right.slope) - slack, left.slope.max(right.slope) + slack);
    let fits = match own {
        Some(own) => agrees(own),
        None => agrees(by_left) || agrees(by_right),
    };
    let verdict = match (jumps, fits) {
        (true, true) => Verdict::Jump { left: left.limit, right: right.limit },
        (false, _) if agrees(by_left) && agrees(by_right) => by_left,
        (false, true) => Verdict::Kink { left: left.slope, right: right.slope },
        // A rule with a corner there gives what lies between.
        (false, false) if exact > low && exact < high => {
            Verdict::Kink { left: left.slope, right: right.slope }
        }
        (_, false) if own.is_some() => Verdict::Disagrees,
        (_, false) => Verdict::Crossed,
    };
    Comparison::of(verdict, Some(found))
}

/// Compares an exact derivative with an estimate; `scale` is the size of the largest derivative of its kind.
fn judge(exact: f64, estimate: Option<Estimate>, scale: f64) -> Verdict {
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

    /// Without decisions.
    fn at(f: impl Fn(f64) -> f64, x: f64, exact: f64) -> Verdict {
        along(|x| (f(x), 0), x, exact).verdict
    }

    /// With a path of decisions.
    fn along(f: impl Fn(f64) -> (f64, u64), x: f64, exact: f64) -> Comparison {
        let reach = if x == 0.0 { 1.0 } else { x.abs() };
        let mut g = |h: f64| {
            let (value, path) = f(x + h);
            Some(Sample { value, path }).filter(|_| value.is_finite())
        };
        compare(exact, &mut g, reach, 0.0)
    }

    /// The slopes on both sides of a decision at 0, of a function with these values there.
    fn two(left: impl Fn(f64) -> f64, right: impl Fn(f64) -> f64, x: f64, exact: f64) -> Verdict {
        along(|x| if x < 0.0 { (left(x), 1) } else { (right(x), 2) }, x, exact).verdict
    }

    #[test]
    fn jumps_and_kinks_at_decisions_are_told_apart() {
        let parabola = |x: f64| x * x + 3.0 * x;
        assert!(
            matches!(two(parabola, |x| x.sin() + 1.0, 0.0, 1.0), Verdict::Jump { left, right } if left.abs() < 1e-9 && (right - 1.0).abs() < 1e-9)
        );
        assert!(
            matches!(two(parabola, |x| x.sin(), 0.0, 1.0), Verdict::Kink { left, right } if (left - 3.0).abs() < 1e-6 && (right - 1.0).abs() < 1e-6)
        );
        assert!(matches!(two(f64::sin, |x| x - x * x * x, 0.0, 1.0), Verdict::Agrees { .. }));
        assert!(matches!(two(|x| x + 1e-7, |x| x, 0.0, 1.0), Verdict::Jump { .. }));
        assert!(matches!(two(|_| 2.0, |_| 5.0, 0.0, 0.0), Verdict::Jump { .. }));
        // The point took the decisions of the right side.
        assert_eq!(two(parabola, |x| x.sin() + 1.0, 0.0, 3.0), Verdict::Disagrees);
        assert_eq!(two(parabola, |x| x.sin(), 0.0, 5.0), Verdict::Disagrees);
    }

    #[test]
    fn steps_across_decisions_do_not_count() {
        for distance in [0.3, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10] {
            for sign in [1.0, -1.0] {
                let x: f64 = sign * distance;
                let exact = if sign > 0.0 { x.cos() } else { 2.0 * x + 3.0 };
                // The reach is 1, not the distance.
                let f = |t: f64| {
                    if x + t < 0.0 { ((x + t) * (x + t + 3.0), 1) } else { ((x + t).sin() + 1.0, 2) }
                };
                let mut g = |h: f64| {
                    let (value, path) = f(h);
                    Some(Sample { value, path })
                };
                let found = compare(exact, &mut g, 1.0, 0.0);
                assert!(
                    matches!(found.verdict, Verdict::Agrees { .. } | Verdict::Within { .. }),
                    "{x}: {found:?}"
                );
                let wrong = compare(1.01 * exact, &mut g, 1.0, 0.0);
                assert_eq!(wrong.verdict, Verdict::Disagrees, "{x}: {wrong:?}");
            }
        }
    }

    #[test]
    fn what_holds_only_at_the_point_cannot_be_checked() {
        let f = |x: f64| if x == 0.0 { (0.0, 1) } else { (x.sin(), 2) };
        assert_eq!(along(f, 0.0, 0.0).verdict, Verdict::Crossed);
        assert!(matches!(along(f, 0.0, 1.0).verdict, Verdict::Agrees { .. }));
    }

    #[test]
    fn a_slope_across_decisions_is_told() {
        // A search by halving: between decisions it is constant, across them it is the square root.
        let halving = |a: f64| {
            let (mut low, mut high, mut path) = (0.0, 4.0, 1_u64);
            for _ in 0..40 {
                let middle = 0.5 * (low + high);
                let below = middle * middle < a;
                path = 2 * path + u64::from(below);
                if below { low = middle } else { high = middle }
            }
            (low, path)
        };
        let found = along(halving, 2.0, 0.0);
        assert!(!matches!(found.verdict, Verdict::Disagrees), "{found:?}");
        assert!((found.across.unwrap() - 0.5 / 2.0_f64.sqrt()).abs() < 1e-3, "{found:?}");
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
