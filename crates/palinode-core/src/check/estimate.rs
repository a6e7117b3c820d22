//! Derivatives by differences, and how they compare with exact ones.
//!
//! Input: values of a function at steps that halve. Output: an [`Estimate`] of its slope, or a [`Verdict`]
//! about a derivative. Differences are extrapolated to step 0 (Richardson's scheme; Ridders 1982 is the same
//! idea with an early stop), and the entry of the table with the smallest error estimate wins, where the
//! rounding of the function values counts as error. Known limit: noise larger than rounding (a loop that
//! stops at a tolerance) is seen only through the scatter of the table.

/// A value of a function, and a fingerprint of the decisions on the way to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The value.
    pub value: f64,
    /// [`Decisions::path`](crate::decision::Decisions::path).
    pub path: u64,
}

/// A function of the distance from a point.
pub trait Line {
    /// Its value; none where it fails.
    fn sample(&mut self, distance: f64) -> Option<Sample>;

    /// Its slope as differentiation gives it; none where that fails.
    fn slope(&mut self, distance: f64) -> Option<f64>;
}

/// How differences and an exact derivative compare.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// To so many digits.
    Agrees {
        /// How many.
        digits: u32,
    },
    /// As far as differences can tell, which is fewer digits than usual.
    Within {
        /// How many; none if the derivative vanishes.
        digits: Option<u32>,
    },
    /// They cannot tell: the slopes to the left and to the right differ, and the derivative lies between
    /// them.
    Kink {
        /// The slope to the left.
        left: f64,
        /// The slope to the right.
        right: f64,
    },
    /// They cannot tell: the values to the left and to the right differ; the derivative is the slope on its
    /// side, unless there is a kink at the same point.
    Jump {
        /// The value to the left.
        left: f64,
        /// The value to the right.
        right: f64,
        /// Whether there is a kink at the same point.
        has_kink: bool,
    },
    /// They cannot tell: every step, however small, takes other decisions than the point, and the slopes
    /// there are not the derivative.
    Crossed,
    /// They cannot tell: the function fails around the point.
    Unknown,
    /// They do not agree.
    Disagrees,
}

/// What a comparison found.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    /// How it came out.
    pub verdict: Verdict,
    /// What differences give; NaN if there is nothing.
    pub differences: f64,
    /// How far off that may be.
    pub error: f64,
    /// The slope over larger steps, which change decisions, if it is clear and another.
    pub across: Option<f64>,
}

/// What differences say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    pub(super) value: f64,
    /// How far off it may be.
    pub(super) error: f64,
    /// The slopes on both sides, if they do not come together.
    pub(super) sides: Option<(f64, f64)>,
}

impl Estimate {
    pub(super) fn is_clear(&self) -> bool {
        self.error <= 1e-3 * self.value.abs()
    }
}

impl Comparison {
    pub(super) fn of(verdict: Verdict, found: Option<Estimate>) -> Comparison {
        let (differences, error) = found.map_or((f64::NAN, f64::NAN), |found| (found.value, found.error));
        Comparison { verdict, differences, error, across: None }
    }
}

/// How many steps are tried, each half of the one before.
const LEVELS: usize = 15;

/// Estimates a derivative at 0 of `f`, a function that may fail; `reach` is how far one may reasonably go.
/// Where that turns out too far, it looks closer.
pub(super) fn estimate(f: &mut dyn FnMut(f64) -> Option<f64>, reach: f64) -> Option<Estimate> {
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

/// Whether an estimate by smaller steps is to be preferred: it knows better, or it is clear and contradicts
/// the other. What looks smooth from afar may not be: in a chaotic loop differences of large steps come
/// together by accident.
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
pub(super) fn step(reach: f64, level: usize) -> f64 {
    0.2 * reach * 0.5_f64.powi(level as i32)
}

/// The rounding error of a difference of such values by a step.
pub(super) fn noise(values: [f64; 3], h: f64) -> f64 {
    let size = values.iter().fold(0.0_f64, |size, value| size.max(value.abs()));
    4.0 * f64::EPSILON * size / h
}

/// Slopes with their rounding errors, at steps that halve -> the slope at step 0, its error, and the row that
/// gave it. The error of a slope is a series in the step whose terms shrink by powers of `ratio` when the
/// step halves. A gap starts the table anew.
pub(super) fn extrapolate(slopes: &[Option<(f64, f64)>], ratio: f64) -> Option<(f64, f64, usize)> {
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
pub(super) fn judge(exact: f64, estimate: Option<Estimate>, scale: f64) -> Verdict {
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
    // At a kink with equal weights the differences hit the middle, and so may the derivative: that is no
    // agreement.
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
pub(super) fn digits(relative: f64) -> u32 {
    if relative <= 1e-15 { 15 } else { (-relative.log10()).floor().clamp(0.0, 15.0) as u32 }
}
