//! What becomes of the cotangent in a reverse sweep: how large it is, whether it is finite, clipped or cut.

use super::{Backend, Engine, Error, Inner, Step};
use palinode_core::dense::norm_of;

impl<St: Step, T: Inner, B: Backend<St, T>> Engine<'_, St, T, B> {
    /// The norm of the cotangent of the state; finite if its numbers are.
    #[inline]
    pub(in crate::rollout) fn cotangent_norm(&mut self) -> f64 {
        self.release_cotangent();
        norm(&self.cotangents.state)
    }

    /// Notes how large the cotangent of the state before `step` is, and clips it if asked to.
    #[inline]
    pub(super) fn look_at_cotangent(&mut self, step: u64, steps: u64) -> Result<(), Error> {
        // A long list takes long to sum, and a number that is not finite stays so.
        let long = self.cotangents.state.len() > 64;
        if long && self.clip.is_none() && !self.watch.health.is_due() {
            self.watch.health.skip(steps);
            return Ok(());
        }
        let norm = self.cotangent_norm();
        if !norm.is_finite() {
            return Err(self.not_finite(step));
        }
        self.watch.health.see(step, steps, norm);
        if let Some(most) = self.clip
            && norm > most
        {
            scale(&mut self.cotangents.state, T::from_f64(most / norm));
            self.watch.health.see_clipping();
        }
        Ok(())
    }

    /// Why a cotangent is not finite.
    #[cold]
    fn not_finite(&self, step: u64) -> Error {
        let value = first_not_finite(&self.cotangents.state);
        // What comes from a loss that is not finite says nothing about slopes.
        let loss = self.loss.value.peek().unwrap_or(f64::NAN);
        if !loss.is_finite() {
            return Error::NonFiniteLoss { value: loss, step: None };
        }
        let cause = match self.watch.health.verdict() {
            crate::Verdict::Exploding => {
                "it has grown until it overflowed; shorten the loop, cut it into windows (.truncate), or clip (.clip)"
            }
            _ => {
                "a step has a vertical slope or an undefined derivative there (sqrt at 0, a division by 0); keep the state off that point"
            }
        };
        Error::NonFiniteCotangent { step, value, cause }
    }

    /// Nothing flows back to the initial state, which has so many numbers.
    pub(in crate::rollout) fn cut_all(&mut self, numbers: usize) {
        self.release_cotangent();
        self.cotangents.state.clear();
        self.cotangents.state.resize(numbers, T::zero());
    }
}

// Functions of the list alone, so that there is one of each for all steps.

#[inline]
fn norm<T: Inner>(list: &[T]) -> f64 {
    norm_of(list.iter().map(|c| c.peek().unwrap_or(f64::NAN)))
}

fn scale<T: Inner>(list: &mut [T], factor: T) {
    list.iter_mut().for_each(|c| *c *= factor);
}

fn first_not_finite<T: Inner>(list: &[T]) -> f64 {
    let numbers = list.iter().map(|c| c.peek().unwrap_or(f64::NAN));
    numbers.into_iter().find(|c| !c.is_finite()).unwrap_or(f64::NAN)
}

/// Where a cotangent is cut in a reverse sweep, and what was cut.
#[derive(Default)]
pub(in crate::rollout) struct Cuts {
    /// After how many steps, counted from the end, it is cut each time.
    pub(in crate::rollout) window: Option<u64>,
    /// How often it was.
    pub(in crate::rollout) count: u64,
    /// The largest norm of what was.
    pub(in crate::rollout) largest: f64,
}

impl Cuts {
    pub(in crate::rollout) fn after_each(window: Option<u64>) -> Self {
        Cuts { window, ..Cuts::default() }
    }

    /// Forgets what was cut.
    pub(super) fn clear(&mut self) {
        *self = Cuts::after_each(self.window);
    }

    /// Notes what is about to be cut.
    pub(in crate::rollout) fn note(&mut self, norm: f64) {
        self.count += 1;
        self.largest = self.largest.max(norm);
    }
}
