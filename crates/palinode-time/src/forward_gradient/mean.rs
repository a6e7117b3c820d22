//! The mean of many forward gradients, with a standard error for every entry.

use super::error::EstimateError;
use super::{Directions, Perturbed, forward_gradient_in};
use palinode_core::{DualN, Key, Summand};

/// An unbiased estimate of a gradient, entry by entry, and how far to trust it.
#[derive(Clone, Debug, PartialEq)]
pub struct GradientEstimate<S = f64> {
    /// The value of the closure, the mean over rounds.
    pub value: S,
    /// The estimate: its expectation is the gradient, but for `rounding_bias` and what the closure rounds.
    pub gradient: Vec<S>,
    /// The standard error of each entry, from how the rounds scatter; infinite for an entry that no direction
    /// reached, about which nothing is known.
    pub standard_error: Vec<f64>,
    /// How many rounds there were.
    pub rounds: usize,
    /// How many directions in all.
    pub directions: usize,
    /// How far the expectation of an entry may be from that of the gradient, relative to it, because `S`
    /// rounds directions: more rounds do not reduce it. See [`Directions::rounding_bias`].
    pub rounding_bias: f64,
}

/// The mean of `rounds` forward gradients of `K` directions each. Round `r` uses `key.fold(r)`.
///
/// ```
/// use palinode_core::Key;
/// use palinode_time::{Directions, estimate_gradient};
///
/// let (key, p) = (Key::from_seed(1), [3.0, 4.0]);
/// let estimate = estimate_gradient::<4>(&p, Directions::Gaussian, key, 250, |p| p.get(0) * p.get(1))?;
/// for (i, exact) in [4.0, 3.0].into_iter().enumerate() {
///     assert!((estimate.gradient[i] - exact).abs() < 4.0 * estimate.standard_error[i]);
/// }
/// # Ok::<(), palinode_time::EstimateError>(())
/// ```
///
/// # Errors
/// Fewer than two rounds (PAL0607), and those of [`forward_gradient`](super::forward_gradient()).
pub fn estimate_gradient<const K: usize>(
    parameters: &[f64],
    directions: Directions<'_>,
    key: Key,
    rounds: usize,
    f: impl FnMut(&Perturbed<'_, '_, K>) -> DualN<f64, K>,
) -> Result<GradientEstimate, EstimateError> {
    estimate_gradient_in(parameters, directions, key, rounds, f)
}

/// [`estimate_gradient`] in another number: `f32` or posits. Means over rounds are kept in `f64` and rounded
/// at the end: what a narrow number loses in one round must not add up over all of them.
///
/// # Errors
/// Those of [`estimate_gradient`].
pub fn estimate_gradient_in<const K: usize, S: Summand>(
    parameters: &[S],
    directions: Directions<'_>,
    key: Key,
    rounds: usize,
    mut f: impl FnMut(&Perturbed<'_, '_, K, S>) -> DualN<S, K>,
) -> Result<GradientEstimate<S>, EstimateError> {
    if rounds < 2 {
        return Err(EstimateError::TooFewRounds { rounds });
    }
    let n = parameters.len();
    let wide = |x: S| x.peek().unwrap_or(f64::NAN);
    // Welford's updates of mean and scatter.
    let (mut value, mut gradient, mut scatter) = (0.0, vec![0.0; n], vec![0.0; n]);
    let mut reached = vec![false; n];
    for round in 0..rounds {
        let one = forward_gradient_in(parameters, directions, key.fold(round as u64), &mut f)?;
        let share = 1.0 / (round + 1) as f64;
        value += (wide(one.value()) - value) * share;
        for (i, (mean, scatter)) in gradient.iter_mut().zip(&mut scatter).enumerate() {
            let entry = wide(one.entry(i));
            reached[i] = reached[i] || one.draw().reaches(i);
            let apart = entry - *mean;
            *mean += apart * share;
            *scatter += apart * (entry - *mean);
        }
    }
    let of_mean = 1.0 / (rounds as f64 * (rounds - 1) as f64);
    Ok(GradientEstimate {
        value: S::from_f64(value),
        gradient: gradient.into_iter().map(S::from_f64).collect(),
        standard_error: scatter
            .into_iter()
            .zip(reached)
            .map(|(s, reached)| if reached { (s * of_mean).sqrt() } else { f64::INFINITY })
            .collect(),
        rounds,
        directions: rounds * K,
        rounding_bias: directions.rounding_bias::<S>(n),
    })
}
