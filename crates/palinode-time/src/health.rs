//! How a gradient fares on its way back through a loop: whether it vanishes, explodes or stays.
//!
//! Input: the norm of the cotangent after each reversed step. Output: a growth rate per step, a thinned list of norms for a chart, and a
//! verdict in plain words.
//!
//! Invariant: the memory is fixed, whatever the number of steps: when the list is full, every second norm is dropped and from then on
//! only every second one is kept.
//!
//! The growth rate is the slope of `ln norm` over the steps, by least squares over all norms that were kept at some time. For a long loop
//! of a chaotic system it is an estimate of the largest Lyapunov exponent per step.

use core::fmt;

const KEPT: usize = 128;

/// The norms of a cotangent on its way back.
#[derive(Clone, Debug, PartialEq)]
pub struct Health {
    /// Steps and norms, from the last step to the first; every `stride`-th.
    kept: Vec<(u64, f64)>,
    stride: u64,
    /// How often a norm was told, and over how many steps.
    told: u64,
    count: u64,
    first: f64,
    last: f64,
    smallest: f64,
    largest: f64,
    /// The last step that was told, with its norm.
    latest: Option<(u64, f64)>,
    vanished_at: Option<u64>,
    not_finite_at: Option<u64>,
    // Sums for the regression of ln norm over the count of reversed steps.
    n: f64,
    mean_x: f64,
    mean_y: f64,
    xx: f64,
    xy: f64,
    clipped: u64,
}

/// Nothing seen, no memory taken.
impl Default for Health {
    fn default() -> Self {
        Health::empty()
    }
}

/// What a growth rate means for a gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its size does not change by more than a factor of a thousand.
    Steady,
    /// It grows so fast that its direction is decided by a few steps.
    Exploding,
    /// It shrinks so fast that early steps hardly count.
    Vanishing,
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
        Health { kept: Vec::with_capacity(KEPT), ..Health::empty() }
    }

    fn empty() -> Self {
        Health {
            kept: Vec::new(),
            stride: 1,
            told: 0,
            count: 0,
            first: f64::NAN,
            last: f64::NAN,
            smallest: f64::INFINITY,
            largest: 0.0,
            latest: None,
            vanished_at: None,
            not_finite_at: None,
            n: 0.0,
            mean_x: 0.0,
            mean_y: 0.0,
            xx: 0.0,
            xy: 0.0,
            clipped: 0,
        }
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        let mut kept = core::mem::take(&mut self.kept);
        kept.clear();
        *self = Health { kept, ..Health::empty() };
    }

    /// Notes the square of the norm of the cotangent of the state before `step`, after it was carried over so many steps. The logarithm is
    /// taken of few.
    #[inline]
    pub fn see(&mut self, step: u64, steps: u64, squared_norm: f64) {
        self.count += steps;
        if self.is_due() {
            self.keep(step, squared_norm.sqrt());
        }
        self.told += 1;
        self.latest = Some((step, squared_norm));
        if squared_norm != 0.0 {
            self.vanished_at = None;
        } else if self.vanished_at.is_none() {
            self.vanished_at = Some(step);
        }
    }

    /// Notes that the cotangent of the state before `step` is infinite or NaN. (The square of a finite norm may be infinite; that is not meant.)
    pub fn see_not_finite(&mut self, step: u64, steps: u64) {
        self.see(step, steps, f64::NAN);
        self.not_finite_at.get_or_insert(step);
    }

    /// Whether the next norm will be kept: one that is not need not be computed.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.told.is_multiple_of(self.stride)
    }

    /// The cotangent was carried over so many steps, and its norm was not computed.
    #[inline]
    pub fn skip(&mut self, steps: u64) {
        self.count += steps;
        self.told += 1;
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
            if !self.told.is_multiple_of(self.stride) {
                return;
            }
        }
        if self.kept.is_empty() {
            self.first = norm;
        }
        self.kept.push((step, norm));
        self.last = norm;
        self.smallest = self.smallest.min(norm);
        self.largest = self.largest.max(norm);
        if norm > 0.0 && norm.is_finite() {
            let (x, y) = (self.count as f64, norm.ln());
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

    /// How often a norm was told between two of these.
    pub fn stride(&self) -> u64 {
        self.stride
    }

    /// The norm that was told last, with its step.
    pub fn latest(&self) -> Option<(u64, f64)> {
        self.latest.map(|(step, squared)| (step, squared.sqrt()))
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
            return Verdict::NotFinite;
        }
        if self.vanished_at.is_some() {
            return Verdict::Vanished;
        }
        let Some(rate) = self.growth_rate() else { return Verdict::TooShort };
        let total = rate * self.count as f64;
        if total > 1000_f64.ln() {
            Verdict::Exploding
        } else if total < -(1000_f64.ln()) {
            Verdict::Vanishing
        } else {
            Verdict::Steady
        }
    }

    /// The heap bytes held.
    pub fn heap_bytes(&self) -> usize {
        self.kept.capacity() * size_of::<(u64, f64)>()
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.growth_rate().unwrap_or(0.0);
        match self.verdict() {
            Verdict::Steady => write!(f, "cotangent norm steady ({:.3e} to {:.3e})", self.first, self.last)?,
            Verdict::Exploding => write!(
                f,
                "cotangent norm grows by {:.3} % a step ({:.1e} to {:.1e}): exploding, a few early steps decide the gradient; shorten the \
                 loop, clip, or ask for a statistical sensitivity",
                rate.exp_m1() * 100.0,
                self.first,
                self.last
            )?,
            Verdict::Vanishing => write!(
                f,
                "cotangent norm shrinks by {:.3} % a step ({:.1e} to {:.1e}): vanishing, early steps hardly count; a window of {} steps would \
                 see all but a millionth",
                -rate.exp_m1() * 100.0,
                self.first,
                self.last,
                (1e6_f64.ln() / -rate).ceil()
            )?,
            Verdict::Vanished => write!(
                f,
                "cotangent is exactly zero from step {} back: what comes before has no influence on the loss",
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

    fn of(norm: impl Fn(u64) -> f64, steps: u64) -> Health {
        let mut health = Health::new();
        (0..steps).for_each(|k| health.see(steps - 1 - k, 1, norm(k).powi(2)));
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

    #[test]
    fn verdicts() {
        assert_eq!(of(|_| 1.0, 100).verdict(), Verdict::Steady);
        assert_eq!(of(|k| 1.1_f64.powi(k as i32), 100).verdict(), Verdict::Exploding);
        assert_eq!(of(|k| 0.9_f64.powi(k as i32), 100).verdict(), Verdict::Vanishing);
        assert_eq!(of(|k| if k < 50 { 1.0 } else { 0.0 }, 100).verdict(), Verdict::Vanished);
        assert_eq!(of(|_| 1.0, 1).verdict(), Verdict::TooShort);
        let mut broken = of(|_| 1.0, 100);
        broken.see(70, 1, f64::INFINITY); // of a finite cotangent
        assert_eq!(broken.verdict(), Verdict::Steady);
        broken.see_not_finite(69, 1);
        broken.see_not_finite(68, 1);
        assert_eq!((broken.verdict(), broken.not_finite_at()), (Verdict::NotFinite, Some(69)));
        assert_eq!(of(|k| 2.0 + k as f64, 1000).latest(), Some((0, 1001.0)));
        let text = of(|k| 0.9_f64.powi(k as i32), 100).to_string();
        assert!(text.contains("10.000 % a step") && text.contains("window of 132 steps"), "{text}");
    }

    #[test]
    fn memory_is_fixed() {
        let (short, long) = (of(|_| 1.0, 10), of(|_| 1.0, 1_000_000));
        assert_eq!(short.heap_bytes(), long.heap_bytes());
    }
}
