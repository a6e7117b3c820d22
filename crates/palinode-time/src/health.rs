//! How a cotangent changes in the reverse sweep of a loop: whether it vanishes, explodes or stays.
//!
//! Input: the norm of the cotangent after each reversed step. Output: a growth rate per step, a thinned list
//! of norms for a chart, and a verdict in plain words.
//!
//! Invariant: the memory is fixed, whatever the number of steps: when the list is full, every second norm is
//! dropped and from then on only every second one is kept.
//!
//! The growth rate is the slope of `ln norm` over the steps, by least squares over all norms that were kept
//! at some time. For a long loop of a chaotic system it is an estimate of the largest Lyapunov exponent per
//! step. Norms of zero and those with fewer digits than others (below 2.3e-308) say nothing about it, nor
//! about how far norms are apart.

use core::fmt;

const KEPT: usize = 128;

/// Norms within this factor are alike, whatever their trend.
const ALIKE: f64 = 2.0;
/// Norms without a trend within this factor are steady.
const NEAR: f64 = 10.0;
/// A trend by more than this factor in all explodes or vanishes.
const MUCH: f64 = 1000.0;

/// The norms of a cotangent in a reverse sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Health {
    /// Steps and norms, from the last step to the first; every `stride`-th.
    kept: Vec<(u64, f64)>,
    stride: u64,
    /// How often a norm was seen or skipped, and over how many steps.
    calls: u64,
    count: u64,
    first: f64,
    /// The logarithms of the smallest norm and of the largest.
    smallest: f64,
    largest: f64,
    /// The last step that was seen, with its norm.
    latest: Option<(u64, f64)>,
    vanished_at: Option<u64>,
    not_finite_at: Option<u64>,
    // Sums for the regression of ln norm over the count of reversed steps.
    n: f64,
    mean_x: f64,
    mean_y: f64,
    xx: f64,
    xy: f64,
    /// The last of these counts.
    last_x: f64,
    clipped: u64,
}

/// What became of the norms, over the whole loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They stay within a factor of ten of each other and have no trend, or within a factor of two.
    Steady,
    /// They grow, by no more than a factor of a thousand in all.
    Growing,
    /// They shrink, by no more than a factor of a thousand in all.
    Shrinking,
    /// They grow by more than that: the direction of the gradient is decided by a few steps.
    Exploding,
    /// They shrink by more than that: early steps hardly count.
    Vanishing,
    /// They go up and down by more than a factor of ten, without a trend that would explain it.
    Uneven,
    /// It became exactly zero: what comes before has no influence.
    Vanished,
    /// It became infinite or NaN.
    NotFinite,
    /// There were too few steps to say.
    TooShort,
}

impl Health {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Health { kept: Vec::with_capacity(KEPT), ..Health::default() }
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        let mut kept = core::mem::take(&mut self.kept);
        kept.clear();
        *self = Health { kept, ..Health::default() };
    }

    /// Notes the norm of the cotangent of the state before `step`, after it was carried over so many steps;
    /// that of finite numbers is finite ([`norm_of`](palinode_core::dense::norm_of)). The logarithm is taken
    /// of few.
    #[inline]
    pub fn see(&mut self, step: u64, steps: u64, norm: f64) {
        self.count += steps;
        if self.is_due() {
            self.keep(step, norm);
        }
        self.calls += 1;
        self.latest = Some((step, norm));
        if !norm.is_finite() {
            self.not_finite_at.get_or_insert(step);
        }
        if norm != 0.0 {
            self.vanished_at = None;
        } else if self.vanished_at.is_none() {
            self.vanished_at = Some(step);
        }
    }

    /// Whether the next norm will be kept: one that is not need not be computed.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.calls.is_multiple_of(self.stride)
    }

    /// The cotangent was carried over so many steps, and its norm was not computed.
    #[inline]
    pub fn skip(&mut self, steps: u64) {
        self.count += steps;
        self.calls += 1;
    }

    #[inline(never)]
    fn keep(&mut self, step: u64, norm: f64) {
        if self.kept.len() == KEPT {
            let mut position = 0;
            self.kept.retain(|_| {
                position += 1;
                position % 2 == 1
            });
            self.stride *= 2;
            if !self.calls.is_multiple_of(self.stride) {
                return;
            }
        }
        if self.kept.is_empty() {
            self.first = norm;
        }
        self.kept.push((step, norm));
        if norm.is_normal() {
            let (x, y) = (self.count as f64, norm.ln());
            self.last_x = x;
            self.smallest = self.smallest.min(y);
            self.largest = self.largest.max(y);
            self.n += 1.0;
            let (dx, dy) = (x - self.mean_x, y - self.mean_y);
            self.mean_x += dx / self.n;
            self.mean_y += dy / self.n;
            self.xx += dx * (x - self.mean_x);
            self.xy += dx * (y - self.mean_y);
        }
    }

    /// Notes that a cotangent was made smaller because it was above the limit that was asked for.
    pub fn see_clipping(&mut self) {
        self.clipped += 1;
    }

    /// Steps and norms, from the last step to the first, thinned to about a hundred.
    pub fn norms(&self) -> &[(u64, f64)] {
        &self.kept
    }

    /// How many norms there were from one of these to the next.
    pub fn stride(&self) -> u64 {
        self.stride
    }

    /// The norm that was seen last, with its step.
    pub fn latest(&self) -> Option<(u64, f64)> {
        self.latest
    }

    /// The step at which it became exactly zero, if it stayed so.
    pub fn vanished_at(&self) -> Option<u64> {
        self.vanished_at
    }

    /// The step at which it became infinite or NaN.
    pub fn not_finite_at(&self) -> Option<u64> {
        self.not_finite_at
    }

    /// How many steps were reversed.
    pub fn steps(&self) -> u64 {
        self.count
    }

    /// How often a cotangent was clipped.
    pub fn clipped(&self) -> u64 {
        self.clipped
    }

    /// By how much `ln norm` grows per reversed step; `None` for fewer than two.
    pub fn growth_rate(&self) -> Option<f64> {
        (self.n >= 2.0 && self.xx > 0.0).then(|| self.xy / self.xx)
    }

    /// What that means over the whole loop.
    pub fn verdict(&self) -> Verdict {
        if self.not_finite_at.is_some() {
            Verdict::NotFinite
        } else if self.vanished_at.is_some() {
            Verdict::Vanished
        } else {
            self.trend()
        }
    }

    /// The same of the norms that are neither zero nor infinite, whether or not there were others.
    pub fn trend(&self) -> Verdict {
        let Some(rate) = self.growth_rate() else { return Verdict::TooShort };
        // From the end of the loop on, where no norm was seen.
        let (total, spread) = (rate * self.last_x, self.largest - self.smallest);
        // A trend explains most of how far they are apart.
        let is_trend = spread > ALIKE.ln() && total.abs() >= spread / 2.0;
        match is_trend {
            true if total > MUCH.ln() => Verdict::Exploding,
            true if total < -MUCH.ln() => Verdict::Vanishing,
            true if total > 0.0 => Verdict::Growing,
            true => Verdict::Shrinking,
            false if spread <= NEAR.ln() => Verdict::Steady,
            false => Verdict::Uneven,
        }
    }

    /// The smallest and the largest norm of those that are neither zero nor infinite.
    pub fn range(&self) -> Option<(f64, f64)> {
        (self.n > 0.0).then(|| (self.smallest.exp(), self.largest.exp()))
    }

    /// The heap bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.kept.capacity() * size_of::<(u64, f64)>()
    }
}

/// Nothing seen, no memory taken.
impl Default for Health {
    fn default() -> Self {
        Health {
            kept: Vec::new(),
            stride: 1,
            calls: 0,
            count: 0,
            first: f64::NAN,
            smallest: f64::INFINITY,
            largest: f64::NEG_INFINITY,
            latest: None,
            vanished_at: None,
            not_finite_at: None,
            n: 0.0,
            mean_x: 0.0,
            mean_y: 0.0,
            xx: 0.0,
            xy: 0.0,
            last_x: 0.0,
            clipped: 0,
        }
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.growth_rate().unwrap_or(0.0);
        let percent = rate.exp_m1().abs() * 100.0;
        let (first, last) = (self.first, self.latest.map_or(f64::NAN, |(_, norm)| norm));
        match self.verdict() {
            Verdict::Steady => write!(f, "cotangent norm steady ({first:.3e} to {last:.3e})")?,
            Verdict::Growing => {
                write!(f, "cotangent norm grows by {percent:.3} % a step ({first:.1e} to {last:.1e})")?
            }
            Verdict::Shrinking => {
                write!(f, "cotangent norm shrinks by {percent:.3} % a step ({first:.1e} to {last:.1e})")?
            }
            Verdict::Exploding => write!(
                f,
                "cotangent norm grows by {percent:.3} % a step ({first:.1e} to {last:.1e}): exploding, a few early steps dominate the gradient; shorten the \
                 loop, cut it into windows, or clip"
            )?,
            Verdict::Vanishing => write!(
                f,
                "cotangent norm shrinks by {percent:.3} % a step ({first:.1e} to {last:.1e}): vanishing, early steps hardly matter; if all shrink alike, a window \
                 of {} steps sees all but a millionth",
                (1e6_f64.ln() / -rate).ceil()
            )?,
            Verdict::Uneven => {
                let (smallest, largest) = self.range().unwrap_or((f64::NAN, f64::NAN));
                write!(f, "cotangent norm varies between {smallest:.1e} and {largest:.1e}")?
            }
            Verdict::Vanished => write!(
                f,
                "cotangent is exactly zero from step {} back: earlier steps do not influence the loss",
                self.vanished_at.unwrap_or(0)
            )?,
            Verdict::NotFinite => {
                write!(f, "cotangent is infinite or NaN from step {} back", self.not_finite_at.unwrap_or(0))?
            }
            Verdict::TooShort => write!(f, "too few steps to judge the cotangent's growth")?,
        }
        if self.clipped > 0 {
            write!(f, "; clipped {} times, so this is not the exact gradient", self.clipped)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palinode_core::dense::norm_of;

    fn of(norm: impl Fn(u64) -> f64, steps: u64) -> Health {
        let mut health = Health::new();
        (0..steps).for_each(|k| health.see(steps - 1 - k, 1, norm_of([norm(k)].into_iter())));
        health
    }

    #[test]
    fn growth_rates_are_found_whatever_the_length() {
        for steps in [10, 127, 128, 129, 1000, 100_000] {
            let health = of(|k| 3.0 * (0.001 * k as f64).exp(), steps);
            let rate = health.growth_rate().expect("enough steps");
            assert!((rate - 0.001).abs() < 1e-12, "{steps}: {rate}");
            assert!(health.norms().len() <= KEPT && health.norms().len() >= steps.min(64) as usize);
            assert_eq!(health.norms()[0].0, steps - 1);
            assert_eq!(health.steps(), steps);
        }
    }

    /// Squares of norms beyond 1e+-154 overflow or vanish; logarithms do not.
    #[test]
    fn growth_rates_are_found_whatever_the_size() {
        for (factor, steps) in
            [(0.5_f64, 1000), (2.0, 1000), (0.1, 300), (1e10, 30), (0.5, 5000), (0.9, 100_000)]
        {
            let mut norm = 1.0;
            let mut health = Health::new();
            for k in 0..steps {
                health.see(steps - 1 - k, 1, norm_of([norm, -norm].into_iter()));
                norm *= factor; // 0.9 times the smallest number is that number: it never becomes zero
            }
            let rate = health.growth_rate().expect("enough steps");
            assert!((rate - factor.ln()).abs() < 1e-6 * factor.ln().abs(), "{factor}: {rate}");
            let trend = if factor > 1.0 { Verdict::Exploding } else { Verdict::Vanishing };
            assert_eq!(health.trend(), trend, "{factor}, {steps}");
        }
    }

    #[test]
    fn verdicts() {
        let power = |factor: f64| move |k: u64| factor.powi(k as i32);
        assert_eq!(of(|_| 1.0, 100).verdict(), Verdict::Steady);
        assert_eq!(of(power(1.1), 100).verdict(), Verdict::Exploding);
        assert_eq!(of(power(0.9), 100).verdict(), Verdict::Vanishing);
        // Short loops: a growth by two at each step is not steady, though it has no time to explode.
        for steps in [3, 4, 7, 9] {
            assert_eq!(of(power(2.0), steps).verdict(), Verdict::Growing, "{steps}");
            assert_eq!(of(power(0.5), steps).verdict(), Verdict::Shrinking, "{steps}");
        }
        assert_eq!(of(power(2.0), 10).verdict(), Verdict::Exploding); // 1024 times as large
        assert_eq!(of(power(2.0), 2).verdict(), Verdict::Steady); // within a factor of two
        assert_eq!(of(power(1e4), 2).verdict(), Verdict::Exploding);
        // Near 1, it is the length that counts.
        assert_eq!(of(power(1.0001), 5000).verdict(), Verdict::Steady); // 1.65
        assert_eq!(of(power(1.0001), 50_000).verdict(), Verdict::Growing); // 148
        assert_eq!(of(power(0.9999), 100_000).verdict(), Verdict::Vanishing); // 4.5e-5
        // Up and down.
        assert_eq!(of(|k| 1.0 + 0.5 * (k as f64).sin(), 1000).verdict(), Verdict::Steady);
        assert_eq!(of(|k| (10.0 * (0.3 * k as f64).sin()).exp(), 1000).verdict(), Verdict::Uneven);
        assert_eq!(of(|k| if k == 50 { 1e9 } else { 1.0 }, 100).verdict(), Verdict::Uneven);
        assert_eq!(of(|k| if k % 2 == 0 { 0.0 } else { 1.0 }, 100).verdict(), Verdict::Steady); // a loss at every second step
        assert_eq!(of(|k| (0.02 * k as f64 + (k as f64).sin()).exp(), 1000).verdict(), Verdict::Exploding);
        assert_eq!(of(|k| if k < 50 { 1.0 } else { 0.0 }, 100).verdict(), Verdict::Vanished);
        assert_eq!(of(|_| 0.0, 100).verdict(), Verdict::Vanished);
        assert_eq!(of(|_| 1.0, 1).verdict(), Verdict::TooShort);
        let mut broken = of(|_| 1.0, 100);
        broken.see(70, 1, f64::MAX);
        assert_ne!(broken.verdict(), Verdict::NotFinite);
        broken.see(69, 1, f64::INFINITY);
        broken.see(68, 1, f64::NAN);
        assert_eq!((broken.verdict(), broken.not_finite_at()), (Verdict::NotFinite, Some(69)));
        assert_eq!(of(|k| 2.0 + k as f64, 1000).latest(), Some((0, 1001.0)));
        let text = of(power(0.9), 100).to_string();
        assert!(text.contains("10.000 % a step") && text.contains("of 132 steps"), "{text}");
        let text = of(power(2.0), 7).to_string();
        assert_eq!(text, "cotangent norm grows by 100.000 % a step (1.0e0 to 6.4e1)");
        let text = of(|k| if k == 50 { 1e9 } else { 1.0 }, 100).to_string();
        assert_eq!(text, "cotangent norm varies between 1.0e0 and 1.0e9");
    }

    #[test]
    fn memory_is_fixed() {
        let (short, long) = (of(|_| 1.0, 10), of(|_| 1.0, 1_000_000));
        assert_eq!(short.heap_bytes(), long.heap_bytes());
    }
}
