//! What becomes of the cotangent on its way back: how large it is, whether it is finite, clipped or cut.

use super::{Backend, Engine, Error, Inner, Step};

impl<St: Step, T: Inner, B: Backend<St, T>> Engine<'_, St, T, B> {
    /// The square of the norm of the cotangent of the state.
    #[inline]
    pub(in crate::rollout) fn squared_norm(&mut self) -> f64 {
        self.release_cotangent();
        self.cotangents.state.iter().map(|c| c.peek().unwrap_or(f64::NAN).powi(2)).sum()
    }

    /// Notes how large the cotangent of the state before `step` is, and clips it if asked to.
    #[inline]
    pub(super) fn look_at_cotangent(&mut self, step: u64, steps: u64) -> Result<(), Error> {
        // A long list takes long to sum, and a number that is not finite stays so.
        let long = self.cotangents.state.len() > 64;
        if long && self.clip.is_none() && self.cuts.window.is_none() && !self.health.is_due() {
            self.health.skip(steps);
            self.cuts.skip(steps);
            return Ok(());
        }
        let mut squared = self.squared_norm();
        if squared == 0.0 && self.cotangents.state.iter().any(|c| c.peek() != Some(0.0)) {
            squared = f64::MIN_POSITIVE;
        }
        if !squared.is_finite() {
            self.check_finite(step)?;
        }
        self.health.see(step, steps, squared);
        self.cuts.see(squared.sqrt(), steps);
        // Squares overflow and vanish long before numbers do.
        if let Some(most) = self.clip
            && (squared.sqrt() > most || !squared.is_normal())
        {
            let sizes = || self.cotangents.state.iter().map(|c| c.peek().unwrap_or(f64::NAN).abs());
            let largest = sizes().fold(0.0, f64::max);
            let norm = largest * sizes().map(|size| (size / largest).powi(2)).sum::<f64>().sqrt();
            if norm > most {
                let factor = T::from_f64(most / norm);
                self.cotangents.state.iter_mut().for_each(|c| *c *= factor);
                self.health.see_clipping();
            }
        }
        Ok(())
    }

    /// A square may overflow where the number does not.
    #[cold]
    fn check_finite(&self, step: u64) -> Result<(), Error> {
        let bad = self.cotangents.state.iter().map(|c| c.peek().unwrap_or(f64::NAN)).find(|c| !c.is_finite());
        let Some(value) = bad else { return Ok(()) };
        // What comes from a loss that is not finite says nothing about slopes.
        let loss = self.value.peek().unwrap_or(f64::NAN);
        if !loss.is_finite() {
            return Err(Error::NonFiniteLoss { value: loss, step: None });
        }
        let cause = match self.health.verdict() {
            crate::Verdict::Exploding => {
                "it has grown at every step until it overflowed; shorten the loop, clip, or ask for a statistical sensitivity"
            }
            _ => {
                "a step has a vertical slope or an undefined derivative there (sqrt at 0, a division by 0); keep the state off that point"
            }
        };
        Err(Error::NonFiniteCotangent { step, value, cause })
    }

    /// From here on the cotangent is cut: nothing flows back to earlier steps.
    pub(in crate::rollout) fn cut(&mut self) {
        self.release_cotangent();
        self.cotangents.state.iter_mut().for_each(|c| *c = T::zero());
    }

    /// Nothing flows back to the initial state, which has so many numbers.
    pub(in crate::rollout) fn cut_all(&mut self, numbers: usize) {
        self.release_cotangent();
        self.cotangents.state.clear();
        self.cotangents.state.resize(numbers, T::zero());
    }

    /// About how much is missing from the cotangent of the parameters because of the cuts.
    pub(in crate::rollout) fn missing(&self) -> f64 {
        let of_params: f64 =
            self.cotangents.params.iter().map(|c| c.peek().unwrap_or(f64::NAN).powi(2)).sum();
        self.cuts.missing(of_params.sqrt(), self.health.growth_rate())
    }
}

/// Where a cotangent is cut on its way back, and what is known of what that leaves out.
#[derive(Default)]
pub(in crate::rollout) struct Cuts {
    /// After how many steps, counted from the end, it is cut each time.
    pub(in crate::rollout) window: Option<u64>,
    /// How often it was.
    pub(in crate::rollout) count: u64,
    /// What was cut: norm, and the steps before the cut.
    cut_off: Vec<(f64, u64)>,
    /// The sum of the norms of the cotangents that steps were given.
    norms: f64,
    /// The steps since the last of them.
    skipped: u64,
    /// The sums of the norms with which windows began and ended.
    first_norms: f64,
    last_norms: f64,
    goes_on: bool,
}

/// What is cut off that often tells the rest.
const MOST: u64 = 256;

impl Cuts {
    /// For a loop of so many steps that is cut after as many each time, from the end.
    pub(in crate::rollout) fn after_each(window: Option<u64>, steps: u64) -> Self {
        let cuts = window.map_or(1, |window| (steps / window.max(1)).clamp(1, MOST));
        Cuts { window, cut_off: Vec::with_capacity(cuts as usize), ..Cuts::default() }
    }

    /// Forgets what was cut and keeps the memory.
    pub(super) fn clear(&mut self) {
        let mut cut_off = core::mem::take(&mut self.cut_off);
        cut_off.clear();
        *self = Cuts { window: self.window, cut_off, ..Cuts::default() };
    }

    /// Notes the norm of a cotangent that was carried over so many steps, and takes those that were skipped for like it.
    #[inline]
    fn see(&mut self, norm: f64, steps: u64) {
        self.norms += norm * (core::mem::take(&mut self.skipped) + steps) as f64;
        if !core::mem::replace(&mut self.goes_on, true) {
            self.first_norms += norm;
        }
    }

    /// A cotangent was carried over so many steps, and its norm was not computed.
    #[inline]
    fn skip(&mut self, steps: u64) {
        self.skipped += steps;
    }

    /// Notes what is about to be cut, and over how many steps it would have been carried.
    pub(in crate::rollout) fn note(&mut self, norm: f64, steps: u64) {
        self.count += 1;
        self.norms += norm * core::mem::take(&mut self.skipped) as f64;
        self.last_norms += norm;
        self.goes_on = false;
        if self.cut_off.len() < self.cut_off.capacity() {
            self.cut_off.push((norm, steps));
        }
    }

    /// About how much is missing from a cotangent of the parameters of this norm: as much per norm of a cotangent of the state as in the windows, while what was
    /// cut goes on to grow or shrink as it did there.
    fn missing(&self, of_params: f64, rate: Option<f64>) -> f64 {
        // No cotangent of a state, none that was cut.
        if self.norms == 0.0 {
            return 0.0;
        }
        let rate = match self.window {
            // A single step does not tell.
            Some(1) => 0.0,
            // The norms rise to what the losses of a window give together, whether or not a single one fades.
            Some(window) => {
                let last = self.last_norms / self.count as f64;
                let first = self.first_norms / (self.count + 1) as f64;
                let sum = last / first;
                // Windows that begin without a loss do not tell either.
                if sum.is_finite() { rate_of_sum(sum, window) } else { 0.0 }
            }
            None => rate.unwrap_or(0.0),
        };
        let seen: f64 = self.cut_off.iter().map(|&(norm, steps)| norm * series(rate, steps)).sum();
        let all = self.count as f64 / self.cut_off.len().max(1) as f64;
        of_params / self.norms * seen * all
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.cut_off.capacity() * size_of::<(f64, u64)>()
    }
}

/// The sum of `exp(rate j)` over so many `j`, from 0.
fn series(rate: f64, terms: u64) -> f64 {
    if rate.abs() < 1e-12 { terms as f64 } else { (rate * terms as f64).exp_m1() / rate.exp_m1() }
}

/// The rate for which that sum is this: how fast a cotangent grows or fades of which as much is added at each step.
fn rate_of_sum(sum: f64, terms: u64) -> f64 {
    let (mut low, mut high) = (-40.0, 700.0 / terms as f64);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if series(middle, terms) < sum { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}
