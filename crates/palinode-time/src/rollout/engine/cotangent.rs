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
        if long && self.clip.is_none() && self.window.is_none() && !self.health.is_due() {
            self.health.skip(steps);
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
        self.norms += squared.sqrt() * steps as f64;
        if let Some(most) = self.clip
            && squared > most * most
        {
            // Squares overflow long before numbers do.
            let sizes = || self.cotangents.state.iter().map(|c| c.peek().unwrap_or(f64::NAN).abs());
            let largest = sizes().fold(0.0, f64::max);
            let norm = largest * sizes().map(|size| (size / largest).powi(2)).sum::<f64>().sqrt();
            let factor = T::from_f64(most / norm);
            self.cotangents.state.iter_mut().for_each(|c| *c *= factor);
            self.health.see_clipping();
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

    /// Notes what is about to be cut, and over how many steps it would have been carried.
    pub(in crate::rollout) fn note_cut(&mut self, norm: f64, steps: u64) {
        self.cuts += 1;
        // The last few hundred tell the rest.
        if self.cut_off.len() < 256 {
            self.cut_off.push((norm, steps));
        }
    }

    /// About how much is missing from the cotangent of the parameters because of the cuts: as much per norm of a cotangent as in
    /// the windows, while what was cut goes on to grow or shrink as it did there.
    pub(in crate::rollout) fn missing(&self) -> f64 {
        let of_params: f64 =
            self.cotangents.params.iter().map(|c| c.peek().unwrap_or(f64::NAN).powi(2)).sum();
        let gain = of_params.sqrt() / self.norms;
        let rate = self.health.growth_rate().unwrap_or(0.0);
        let series = |steps: u64| {
            // The sum of exp(rate j) over j = 0 .. steps - 1.
            if rate.abs() < 1e-12 { steps as f64 } else { (rate * steps as f64).exp_m1() / rate.exp_m1() }
        };
        let seen: f64 = self.cut_off.iter().map(|&(norm, steps)| norm * series(steps)).sum();
        let all = self.cuts as f64 / self.cut_off.len().max(1) as f64;
        gain * seen * all
    }
}
