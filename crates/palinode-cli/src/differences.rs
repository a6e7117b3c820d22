//! Derivatives by differences, to compare exact ones with.
//!
//! Input: a [`Line`] through the point: values by the distance from it, each with the path of decisions by which it was computed, and what forward mode says of the slope there. Output: a [`Comparison`].
//! Differences at steps that halve are extrapolated to step 0 (Richardson's scheme; Ridders 1982 is the same idea with an early stop), and the entry of the table with the
//! smallest error estimate wins, where the rounding of the function values counts as error.
//!
//! A derivative follows the decisions that were taken, so a step that changes one says nothing about it. First all steps are taken, central: what agrees across decisions agrees.
//! Otherwise `corners.rs` looks closer, at each side alone. Known limit: noise larger than rounding (a loop that stops at a tolerance) is seen only through
//! the scatter of the table.

use crate::corners;

/// A value of the function, and a fingerprint of the decisions on the way to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) value: f64,
    pub(crate) path: u64,
}

/// A function of the distance from a point.
pub(crate) trait Line {
    /// Its value; none where it fails.
    fn sample(&mut self, distance: f64) -> Option<Sample>;

    /// Its slope as forward mode computes it; none where that fails.
    fn slope(&mut self, distance: f64) -> Option<f64>;
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
    /// The values on both sides differ; the derivative is the slope on its side, unless there is a kink at the same point.
    Jump { left: f64, right: f64, has_kink: bool },
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
pub(crate) struct Estimate {
    pub(crate) value: f64,
    /// How far off it may be.
    pub(crate) error: f64,
    /// The slopes on both sides, if they do not come together.
    pub(crate) sides: Option<(f64, f64)>,
}

impl Estimate {
    fn is_clear(&self) -> bool {
        self.error <= 1e-3 * self.value.abs()
    }
}

/// Compares an exact derivative at distance 0 of a line; `reach` is how far one may reasonably go, `scale` the size of the largest derivative of its kind.
pub(crate) fn compare(exact: f64, line: &mut dyn Line, reach: f64, scale: f64) -> Comparison {
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

impl Comparison {
    pub(crate) fn of(verdict: Verdict, found: Option<Estimate>) -> Comparison {
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
pub(crate) fn step(reach: f64, level: usize) -> f64 {
    0.2 * reach * 0.5_f64.powi(level as i32)
}

/// The rounding error of a difference of such values by a step.
pub(crate) fn noise(values: [f64; 3], h: f64) -> f64 {
    let size = values.iter().fold(0.0_f64, |size, value| size.max(value.abs()));
    4.0 * f64::EPSILON * size / h
}

/// Slopes with their rounding errors, at steps that halve -> the slope at step 0, its error, and the row that gave it. The error of a slope is a series in the step whose terms shrink by powers of `ratio`
/// when the step halves. A gap starts the table anew.
pub(crate) fn extrapolate(slopes: &[Option<(f64, f64)>], ratio: f64) -> Option<(f64, f64, usize)> {
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

/// Compares an exact derivative with an estimate; `scale` is the size of the largest derivative of its kind.
pub(crate) fn judge(exact: f64, estimate: Option<Estimate>, scale: f64) -> Verdict {
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
pub(crate) fn digits(relative: f64) -> u32 {
    if relative <= 1e-15 { 15 } else { (-relative.log10()).floor().clamp(0.0, 15.0) as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function with its path of decisions, and its slope.
    struct By<F, D>(F, D);

    impl<F: Fn(f64) -> (f64, u64), D: Fn(f64) -> Option<f64>> Line for By<F, D> {
        fn sample(&mut self, distance: f64) -> Option<Sample> {
            let (value, path) = self.0(distance);
            Some(Sample { value, path }).filter(|_| value.is_finite())
        }

        fn slope(&mut self, distance: f64) -> Option<f64> {
            self.1(distance)
        }
    }

    /// Without decisions, and by differences alone.
    fn at(f: impl Fn(f64) -> f64, x: f64, exact: f64) -> Verdict {
        along(|x| (f(x), 0), x, exact).verdict
    }

    /// With a path of decisions.
    fn along(f: impl Fn(f64) -> (f64, u64), x: f64, exact: f64) -> Comparison {
        let reach = if x == 0.0 { 1.0 } else { x.abs() };
        compare(exact, &mut By(|h| f(x + h), |_| None), reach, 0.0)
    }

    /// A function and its slope on a side of 0.
    type Part = (fn(f64) -> f64, fn(f64) -> f64);

    /// At 0, where the right side begins and a decision is made.
    fn two(left: Part, right: Part, exact: f64) -> Verdict {
        let side = |x: f64| if x < 0.0 { left } else { right };
        let value = |x: f64| (side(x).0(x), u64::from(x < 0.0));
        compare(exact, &mut By(value, |x| Some(side(x).1(x))), 1.0, 0.0).verdict
    }

    #[test]
    fn jumps_and_kinks_at_decisions_are_told_apart() {
        let parabola: Part = (|x| x * x + 3.0 * x, |x| 2.0 * x + 3.0);
        let sine: Part = (f64::sin, f64::cos);
        let higher: Part = (|x| x.sin() + 1.0, f64::cos);
        assert!(
            matches!(two(parabola, higher, 1.0), Verdict::Jump { left, right, has_kink: false } if left.abs() < 1e-9 && (right - 1.0).abs() < 1e-9)
        );
        assert!(
            matches!(two(parabola, sine, 1.0), Verdict::Kink { left, right } if (left - 3.0).abs() < 1e-6 && (right - 1.0).abs() < 1e-6)
        );
        let cubic: Part = (|x| x - x * x * x, |x| 1.0 - 3.0 * x * x);
        assert!(matches!(two(sine, cubic, 1.0), Verdict::Agrees { .. }));
        assert!(matches!(two((|x| x + 1e-7, |_| 1.0), (|x| x, |_| 1.0), 1.0), Verdict::Jump { .. }));
        assert!(matches!(two((|_| 2.0, |_| 0.0), (|_| 5.0, |_| 0.0), 0.0), Verdict::Jump { .. }));
        // The point took the decisions of the right side.
        assert_eq!(two(parabola, higher, 3.0), Verdict::Disagrees);
        assert_eq!(two(parabola, sine, 3.0), Verdict::Disagrees);
        assert_eq!(two(parabola, sine, 5.0), Verdict::Disagrees);
    }

    /// A function, its slope, and its derivative at 0 by the conventions of the rule table (0 for `relu` and `abs`): with kinks of rules, jumps, and both.
    type Bent = (fn(f64) -> (f64, u64), fn(f64) -> f64);

    fn relu(x: f64) -> f64 {
        x.max(0.0)
    }

    fn step_up(x: f64) -> f64 {
        if x > 0.0 { 1.0 } else { 0.0 }
    }

    /// The sign, 0 at 0.
    fn side(x: f64) -> f64 {
        if x == 0.0 { 0.0 } else { x.signum() }
    }

    /// The path of `x < 0` and of `x > 0`, which is neither at 0.
    fn tie(x: f64) -> u64 {
        (side(x) + 1.0) as u64
    }

    const BENT: &[Bent] = &[
        // Kinks of rules; the slopes to the sides still change.
        (|x| (3.0 * relu(x) + x.cos(), 0), |x| 3.0 * step_up(x) - x.sin()),
        (|x| (3.0 * relu(x) - x.cos() + x, 0), |x| 3.0 * step_up(x) + x.sin() + 1.0),
        (|x| (x.abs() + (2.0 * x).exp(), 0), |x| side(x) + 2.0 * (2.0 * x).exp()),
        // One that is small beside the slope.
        (|x| (1e5 * x + 3.0 * relu(x), 0), |x| 1e5 + 3.0 * step_up(x)),
        // Kinks of rules and a decision elsewhere within reach.
        (|x| (x.abs() + x.exp() + (x + 0.9).floor(), (x + 0.9).floor() as u64), |x| side(x) + x.exp()),
        // A kink and a jump at one point.
        (|x| (relu(x) + x.floor() + x * x, (x.floor() + 9.0) as u64), |x| step_up(x) + 2.0 * x),
        (|x| (x.sin() - 2.0 * relu(x) + x.floor(), (x.floor() + 9.0) as u64), |x| x.cos() - 2.0 * step_up(x)),
        (|x| (x.abs() + 5.0 * step_up(x), tie(x)), side),
        (|x| (x.abs() + step_up(x) * (10.0 * x + 5.0), tie(x)), |x| side(x) + 10.0 * step_up(x)),
        // A slope that vanishes on its side like a cube.
        (
            |x| if x < 0.0 { (2.0 + x, 1) } else { ((x * x).cos(), 2) },
            |x| if x < 0.0 { 1.0 } else { -2.0 * x * (x * x).sin() },
        ),
        // A kink of a rule and one of a decision: 0 lies outside of the slopes 3 and 7, and is right.
        (|x| (10.0 * step_up(x) * x - 3.0 * x.abs(), tie(x)), |x| 10.0 * step_up(x) - 3.0 * side(x)),
    ];

    #[test]
    fn at_corners_right_derivatives_are_not_called_wrong_nor_wrong_ones_right() {
        for (at, &(f, slope)) in BENT.iter().enumerate() {
            let exact = slope(0.0);
            let right = compare(exact, &mut By(f, |x| Some(slope(x))), 1.0, 0.0);
            assert!(matches!(right.verdict, Verdict::Kink { .. } | Verdict::Jump { .. }), "{at}: {right:?}");
            for by in [0.01, -0.01, 1.0, -2.0] {
                // A gradient that is off, one of rules that are off by a factor, and one of rules that lack a term.
                let more = by * slope(0.1).abs().max(slope(-0.1).abs());
                let off = compare(exact + more, &mut By(f, |x| Some(slope(x))), 1.0, 0.0);
                let factor =
                    compare((1.0 + by) * exact, &mut By(f, |x| Some((1.0 + by) * slope(x))), 1.0, 0.0);
                let term = compare(exact + more, &mut By(f, |x| Some(more + slope(x))), 1.0, 0.0);
                // A factor of nothing is no mistake at the point.
                let factor = if exact == 0.0 && at == BENT.len() - 2 { off } else { factor };
                let found = [off, factor, term].map(|wrong| wrong.verdict);
                assert_eq!(found, [Verdict::Disagrees; 3], "{at} {by}");
            }
        }
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
                let mut g = By(f, |_| None);
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
        let mut line = By(|h| (logistic(3.7 + h), 0), |h| Some(tangent(3.7 + h).1));
        let right = compare(exact, &mut line, 3.7, 0.0);
        // The rounding of the loop itself looks like a kink of half a per cent.
        assert!(!matches!(right.verdict, Verdict::Disagrees | Verdict::Unknown), "{right:?}");
        assert_eq!(compare(0.99 * exact, &mut line, 3.7, 0.0).verdict, Verdict::Disagrees);
    }

    #[test]
    fn a_wrong_derivative_disagrees() {
        assert_eq!(at(f64::sin, 0.7, -0.7_f64.cos()), Verdict::Disagrees);
        assert_eq!(at(f64::sin, 0.7, 1.000_1 * 0.7_f64.cos()), Verdict::Disagrees);
        assert_eq!(at(|x| x * x, 0.0, 0.01), Verdict::Disagrees);
        assert_eq!(at(|x| x * x + 1e6, 1.0, 2.1), Verdict::Disagrees);
        // By differences alone nobody knows which number several rules choose at a kink.
        assert_eq!(at(f64::abs, 0.0, 1.5), Verdict::Crossed);
        let mut line = By(|h: f64| (h.abs(), 0), |h: f64| Some(if h == 0.0 { 0.0 } else { h.signum() }));
        assert_eq!(compare(1.5, &mut line, 1.0, 0.0).verdict, Verdict::Disagrees);
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
        assert!(matches!(at(|x| (x - 1.0).abs() + x * x, 1.01, 3.02), Verdict::Agrees { .. }));
    }
}
