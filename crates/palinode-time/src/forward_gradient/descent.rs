//! Training by forward gradients, in place.
//!
//! Input: parameters and a loss. Output: better parameters. Step `t` draws from `key.fold(t)`, so a run can
//! be stopped and taken up again anywhere with the same bits.

use super::error::EstimateError;
use super::{Directions, Perturbed, forward_gradient_in};
use palinode_core::{DualN, Key, Summand};

/// Stochastic gradient descent along forward gradients: no tape, no gradient in memory, updates in place.
///
/// ```
/// use palinode_core::Key;
/// use palinode_time::{Directions, ForwardDescent};
///
/// let mut p = vec![0.0; 50];
/// let descent = ForwardDescent::new(Key::from_seed(1)).directions(Directions::Rademacher).rate(0.01).steps(2000);
/// let last = descent.run::<4>(&mut p, |p, _step| (0..p.len()).map(|i| (p.get(i) - 1.0).powi(2)).sum())?;
/// assert!(last.value < 1e-9, "{}", last.value);
/// # Ok::<(), palinode_time::EstimateError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ForwardDescent<'a> {
    directions: Directions<'a>,
    key: Key,
    rate: f64,
    decay: f64,
    first: u64,
    steps: u64,
}

/// A step that was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress<S = f64> {
    /// Its number, from 0.
    pub step: u64,
    /// The loss before it.
    pub value: S,
    /// The standard error of the gradient estimate, as a vector.
    pub standard_error: f64,
}

impl<'a> ForwardDescent<'a> {
    /// A thousand steps along Rademacher directions at rate 0.01.
    pub fn new(key: Key) -> Self {
        let directions = Directions::Rademacher;
        ForwardDescent { directions, key, rate: 0.01, decay: 0.0, first: 0, steps: 1000 }
    }

    /// Along these directions.
    pub fn directions(self, directions: Directions<'a>) -> Self {
        ForwardDescent { directions, ..self }
    }

    /// How far a step goes: this times the estimate.
    pub fn rate(self, rate: f64) -> Self {
        ForwardDescent { rate, ..self }
    }

    /// Makes the rate `rate / (1 + decay * step)`.
    pub fn decay(self, decay: f64) -> Self {
        ForwardDescent { decay, ..self }
    }

    /// How many steps.
    pub fn steps(self, steps: u64) -> Self {
        ForwardDescent { steps, ..self }
    }

    /// The number of the first step: to take up a run where it was stopped.
    pub fn starting_at(self, first: u64) -> Self {
        ForwardDescent { first, ..self }
    }

    /// Trains; what the last step saw.
    ///
    /// # Errors
    /// Those of [`forward_gradient`](super::forward_gradient); the parameters are then those of the step that
    /// failed.
    pub fn run<const K: usize>(
        &self,
        parameters: &mut [f64],
        loss: impl FnMut(&Perturbed<'_, 'a, K>, u64) -> DualN<f64, K>,
    ) -> Result<Progress, EstimateError> {
        self.watch(parameters, loss, |_, _| true)
    }

    /// Trains while `go_on` says so; it sees every step after its update.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn watch<const K: usize>(
        &self,
        parameters: &mut [f64],
        loss: impl FnMut(&Perturbed<'_, 'a, K>, u64) -> DualN<f64, K>,
        go_on: impl FnMut(Progress, &[f64]) -> bool,
    ) -> Result<Progress, EstimateError> {
        self.watch_in(parameters, loss, go_on)
    }

    /// [`watch`](Self::watch) in another number: `f32` or posits. An update that is smaller than the last bit
    /// of a parameter is lost, so narrow numbers need a rate that is not small.
    ///
    /// ```
    /// use palinode_core::{Key, Posit32};
    /// use palinode_time::{Directions, ForwardDescent};
    ///
    /// let mut p = vec![Posit32::ZERO; 8];
    /// let descent = ForwardDescent::new(Key::from_seed(1)).rate(0.04).steps(500);
    /// let loss = |p: &palinode_time::Perturbed<2, Posit32>, _| (0..p.len()).map(|i| (p.get(i) - 1.0).powi(2)).sum();
    /// let last = descent.watch_in::<2, Posit32>(&mut p, loss, |_, _| true)?;
    /// assert!(last.value < 1e-9, "{}", last.value);
    /// # Ok::<(), palinode_time::EstimateError>(())
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn watch_in<const K: usize, S: Summand>(
        &self,
        parameters: &mut [S],
        mut loss: impl FnMut(&Perturbed<'_, 'a, K, S>, u64) -> DualN<S, K>,
        mut go_on: impl FnMut(Progress<S>, &[S]) -> bool,
    ) -> Result<Progress<S>, EstimateError> {
        let unseen = S::from_f64(f64::NAN);
        let mut last = Progress { step: self.first, value: unseen, standard_error: f64::NAN };
        for step in self.first..self.first.saturating_add(self.steps) {
            let estimate =
                forward_gradient_in(parameters, self.directions, self.key.fold(step), |p| loss(p, step))?;
            estimate.add_to(parameters, S::from_f64(-self.rate / (1.0 + self.decay * step as f64)));
            last = Progress { step, value: estimate.value(), standard_error: estimate.standard_error() };
            if !go_on(last, parameters) {
                break;
            }
        }
        Ok(last)
    }
}
