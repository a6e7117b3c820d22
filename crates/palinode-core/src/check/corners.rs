//! Differences where a function need not be smooth: at kinks, at jumps, and close to them.
//!
//! Input: a line through a point at which plain differences did not agree with the exact derivative. Output:
//! a [`Comparison`].
//!
//! Each side is looked at alone, as far as it goes by one path of decisions. Where both sides are of one
//! smooth function, central differences by that path are compared. Otherwise the point is a corner, of a rule
//! (`abs`, `relu`, `max`) or of a decision, perhaps of both at once; then a slope of a side need not be the
//! derivative, which at a corner of a rule is what the rule table says. So the derivative is compared with
//! that of differentiation at the point, and differentiation with differences beside it, where the function
//! is smooth again: what follows from right rules is right.

use super::estimate::{Comparison, Estimate, Line, Sample, Verdict, digits, extrapolate, judge, noise, step};

/// How many steps are tried, each half of the one before: the last is about 1e-11 of `reach`.
const LEVELS: usize = 34;

/// The step at which forward mode stands for the limit at the point: it subtracts nothing, so the step may be
/// tiny (a dozen units in the last place of the point).
const BESIDE: usize = 46;

/// Compares by steps on each side that took the same decisions.
pub(super) fn compare(exact: f64, line: &mut dyn Line, center: Sample, reach: f64, scale: f64) -> Comparison {
    let mut along = |reach: f64| -> Vec<Option<Sample>> {
        (0..LEVELS).map(|level| line.sample(step(reach, level))).collect()
    };
    let (up, down) = (along(reach), along(-reach));
    let (Some(above), Some(below)) = (up[LEVELS - 1], down[LEVELS - 1]) else {
        return Comparison::of(Verdict::Unknown, None);
    };
    let left = Side::of(&down, below.path, -reach);
    let right = Side::of(&up, above.path, reach);
    let is_one_path = above.path == center.path && below.path == center.path;
    let is_apart =
        |(left, right): (Side, Side)| (left.slope - right.slope).abs() > 20.0 * (left.error + right.error);
    let found = match left.zip(right) {
        Some((left, right)) if !is_one_path || is_apart((left, right)) => {
            // Rounding is measured against what is added up here, also where it cancels in the derivative.
            let scale = scale.abs().max(left.slope.abs()).max(right.slope.abs());
            Corner { exact, line, center, left, right, scale, reach }.compared(&down, &up)
        }
        _ if is_one_path => {
            let found = smooth(center, (&down, &up), [left, right], reach);
            let unknown = || Comparison::of(Verdict::Crossed, None);
            found.map_or_else(unknown, |found| Comparison::of(judge(exact, Some(found), scale), Some(found)))
        }
        _ => Comparison::of(Verdict::Crossed, None),
    };
    // Noise may look like a slope, or like a kink: in a chaotic loop differences of large steps come together
    // by accident.
    let is_right = is_one_path
        && found.verdict == Verdict::Disagrees
        && [(&down, -reach), (&up, reach)].into_iter().all(|(samples, reach)| {
            let nearest = step(reach, BESIDE);
            let is_same = line.sample(nearest).is_some_and(|sample| sample.path == center.path);
            let beside = if is_same { line.slope(nearest) } else { None };
            beside.is_some_and(|beside| is_close(beside, exact, scale))
                && follows(line, samples, center.path, reach, scale) == Some(true)
        });
    if !is_right {
        return found;
    }
    let size = scale.abs().max(exact.abs()).max(found.differences.abs());
    let digits = digits((exact - found.differences).abs() / size);
    Comparison { verdict: Verdict::Within { digits: Some(digits) }, ..found }
}

/// Both sides take the decisions of the point and have one slope: the best estimate of it.
fn smooth(
    center: Sample,
    (down, up): (&[Option<Sample>], &[Option<Sample>]),
    sides: [Option<Side>; 2],
    reach: f64,
) -> Option<Estimate> {
    let same = |side: &[Option<Sample>], level: usize| {
        side[level].filter(|sample| sample.path == center.path).map(|sample| sample.value)
    };
    let central: Vec<_> = (0..LEVELS)
        .map(|level| {
            let (up, down) = (same(up, level)?, same(down, level)?);
            let h = step(reach, level);
            Some(((up - down) / (2.0 * h), noise([up, down, center.value], h)))
        })
        .collect();
    let central = extrapolate(&central, 4.0).map(|(value, error, _)| Estimate { value, error, sides: None });
    let sides = sides.into_iter().flatten().map(|side| side.found());
    central.into_iter().chain(sides).min_by(|a, b| a.error.total_cmp(&b.error))
}

/// The function on one side of the point, as far as it goes by one path of decisions.
#[derive(Clone, Copy, Debug)]
struct Side {
    path: u64,
    slope: f64,
    error: f64,
    /// Its value at the point, continued from this side, and how far off that may be.
    limit: f64,
    limit_error: f64,
}

impl Side {
    /// From samples at steps that halve, which begin at a fifth of `reach` (negative to the left). The value
    /// at the point itself is not used: it may belong to the other side.
    fn of(samples: &[Option<Sample>], path: u64, reach: f64) -> Option<Side> {
        let same =
            |level: usize| samples[level].filter(|sample| sample.path == path).map(|sample| sample.value);
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
        Some(Side { path, slope, error, limit: value - slope * nearest, limit_error })
    }

    fn found(&self) -> Estimate {
        Estimate { value: self.slope, error: self.error, sides: None }
    }

    fn agrees(&self, exact: f64, scale: f64) -> bool {
        matches!(judge(exact, Some(self.found()), scale), Verdict::Agrees { .. } | Verdict::Within { .. })
    }
}

/// A point at which two sides meet that are not one smooth function.
struct Corner<'a> {
    exact: f64,
    line: &'a mut dyn Line,
    center: Sample,
    left: Side,
    right: Side,
    scale: f64,
    reach: f64,
}

impl Corner<'_> {
    fn compared(&mut self, down: &[Option<Sample>], up: &[Option<Sample>]) -> Comparison {
        let verdict = self.verdict(down, up);
        Comparison::of(verdict, Some(self.nearer()))
    }

    fn verdict(&mut self, down: &[Option<Sample>], up: &[Option<Sample>]) -> Verdict {
        let (left, right, exact) = (self.left, self.right, self.exact);
        let agrees = [left, right].map(|side| side.agrees(exact, self.scale));
        let kink = Verdict::Kink { left: left.slope, right: right.slope };
        let jumps = (left.limit - right.limit).abs() > left.limit_error + right.limit_error;
        let jump = |has_kink: bool| Verdict::Jump { left: left.limit, right: right.limit, has_kink };
        if !jumps && agrees == [true, true] {
            return judge(exact, Some(left.found()), self.scale);
        }
        let slack = 20.0 * (left.error + right.error) + 1e-6 * left.slope.abs().max(right.slope.abs());
        let is_between =
            exact >= left.slope.min(right.slope) - slack && exact <= left.slope.max(right.slope) + slack;
        let Some(here) = self.line.slope(0.0) else {
            // Nothing but differences to go by.
            return match jumps {
                false if is_between => kink,
                true if agrees.contains(&true) => jump(false),
                _ => Verdict::Crossed,
            };
        };
        // Several rules that choose at once need not choose a number between the slopes.
        if !is_close(here, exact, self.scale) {
            return Verdict::Disagrees;
        }
        let own = self.own(here, jumps);
        // Where nobody knows whose decisions the point took, one side that is right is enough.
        let is_open = own == [false, false];
        let samples = [(down, left.path, -self.reach), (up, right.path, self.reach)];
        let mut follow = Vec::new();
        for (at, (samples, path, reach)) in samples.into_iter().enumerate() {
            if is_open || own[at] {
                follow.push(follows(self.line, samples, path, reach, self.scale));
            }
        }
        let (good, bad) = (|one: &Option<bool>| *one == Some(true), |one: &Option<bool>| *one == Some(false));
        let is_right = if is_open { follow.iter().any(good) } else { follow.iter().all(good) };
        let is_wrong = if is_open { follow.iter().all(bad) } else { follow.iter().any(bad) };
        match (is_wrong, is_right) {
            (true, _) => Verdict::Disagrees,
            (_, false) => Verdict::Crossed,
            _ if jumps => jump(!(0..2).any(|at| (is_open || own[at]) && agrees[at])),
            _ if (left.slope - right.slope).abs() > slack => kink,
            // The function goes on with one slope, and the derivative is another: that of a way taken only
            // here, or of kinks that cancel.
            _ if self.is_continuous() => Verdict::Disagrees,
            _ => Verdict::Crossed,
        }
    }

    /// Whose decisions the point took, of the left and of the right: by their path, or else by its value, or
    /// else by its derivative.
    fn own(&mut self, here: f64, jumps: bool) -> [bool; 2] {
        let sides = [self.left, self.right];
        let by_path = sides.map(|side| side.path == self.center.path);
        if by_path != [false, false] {
            return by_path;
        }
        let by_value = sides.map(|side| jumps && (self.center.value - side.limit).abs() <= side.limit_error);
        if by_value != [false, false] {
            return by_value;
        }
        let beside = [-self.reach, self.reach].map(|reach| self.line.slope(step(reach, LEVELS - 1)));
        beside.map(|beside| beside.is_some_and(|beside| is_close(beside, here, self.scale)))
    }

    fn is_continuous(&self) -> bool {
        [self.left, self.right].iter().all(|side| (self.center.value - side.limit).abs() <= side.limit_error)
    }

    /// What differences give on the side that is nearer to the derivative.
    fn nearer(&self) -> Estimate {
        let distance = |side: &Side| (side.slope - self.exact).abs();
        if distance(&self.left) < distance(&self.right) { self.left.found() } else { self.right.found() }
    }
}

/// Whether forward mode gives the slope of the function on a side: by the trapezoidal rule its average
/// between two samples is their difference quotient. Two steps in a row must agree; none if rounding hides
/// it.
fn follows(
    line: &mut dyn Line,
    samples: &[Option<Sample>],
    path: u64,
    reach: f64,
    scale: f64,
) -> Option<bool> {
    let mut before: Option<(f64, f64)> = None;
    let (mut seen, mut good) = (None, 0);
    // A slope that vanishes at the point is measured against what it was at some larger steps: against itself
    // the rule stays as far off as it was.
    let mut sizes = [scale.abs(); 10];
    for (level, sample) in samples.iter().enumerate() {
        let h = step(reach, level);
        let now = sample
            .filter(|sample| sample.path == path)
            .and_then(|sample| Some((sample.value, line.slope(h)?)));
        if let (Some((far, far_slope)), Some((near, near_slope))) = (before, now) {
            let (quotient, average): (f64, f64) = ((far - near) / h, 0.5 * (far_slope + near_slope));
            sizes[level % sizes.len()] = quotient.abs().max(average.abs());
            let size = sizes.iter().fold(scale.abs(), |size, one| size.max(*one));
            let rounding = 20.0 * noise([far, near, near], h.abs());
            if rounding <= 1e-4 * size {
                let is_good = (quotient - average).abs() <= rounding + 1e-4 * size;
                good = if is_good { good + 1 } else { 0 };
                seen = Some(good >= 2);
                if good >= 2 {
                    break;
                }
            } else if quotient == average {
                // Nothing at all, exactly.
                seen = seen.or(Some(true));
            }
        }
        before = now;
    }
    seen
}

/// Whether two derivatives are the same but for rounding.
fn is_close(a: f64, b: f64, scale: f64) -> bool {
    (a - b).abs() <= 1e-5 * a.abs().max(b.abs()).max(scale.abs())
}
