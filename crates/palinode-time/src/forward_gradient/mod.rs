//! Forward gradients: unbiased estimates of a gradient from directional derivatives, without a tape.
//!
//! Input: parameters, random directions and a closure that reads parameters through [`Perturbed`]. Output: a
//! [`ForwardGradient`]: the value, one slope per direction, and from these every entry of the estimate, made
//! when it is asked for.
//!
//! For a random direction v with E[v v^T] = I, the slope (g . v) times v is an unbiased estimate of the
//! gradient g (Baydin, Pearlmutter, Syme, Wood and Torr, "Gradients without backpropagation", 2022). One pass
//! of the closure gives the slopes of all `K` directions.
//!
//! | file | holds |
//! |---|---|
//! | `directions.rs` | [`Directions`]: the families, their laws, and [`Draw`]: entries made from a key |
//! | `perturbed.rs` | [`Perturbed`]: parameters that are duals while they are read |
//! | `mean.rs` | [`estimate_gradient`]: the mean of many, with a standard error per entry |
//! | `descent.rs` | [`ForwardDescent`]: training in place |
//!
//! Invariants: nothing here allocates but what returns a `Vec`; memory beyond the parameters does not depend
//! on their number, nor on how long the closure computes. Directions are made again from their key each time,
//! never stored. Same key, same bits.
//!
//! In numbers of fewer bits than `f64` entries of directions are rounded, and an estimate is unbiased but for
//! that: [`Directions::rounding_bias`] is zero for signs, which are the choice there. And every operation of
//! the closure rounds, as always.
//!
//! Known limits: the error grows with the number of parameters (the laws stand at [`Directions`]); it is no
//! replacement for reverse mode where its tape fits.

mod descent;
mod directions;
mod error;
mod mean;
mod perturbed;

pub use descent::{ForwardDescent, Progress};
pub use directions::{Directions, Draw, OwnDirection};
pub use error::EstimateError;
pub(crate) use error::{finite_answer, finite_parameters, non_finite};
pub use mean::{GradientEstimate, estimate_gradient, estimate_gradient_in};
pub use perturbed::Perturbed;

use palinode_core::{
    AccumulateProducts, Accumulator, Compensated, DualN, Error as CoreError, Key, Naive, Seeded, Summand,
    points,
};

/// An unbiased estimate of a gradient: a value and slopes, from which its entries are made again on request.
///
/// It holds no entries and does not borrow the parameters, so an update in place needs no memory:
///
/// ```
/// use palinode_core::Key;
/// use palinode_time::{Directions, forward_gradient};
///
/// let mut p = vec![1.0; 1000];
/// let loss = |p: &palinode_time::Perturbed<4>| (0..p.len()).map(|i| p.get(i) * p.get(i)).sum();
/// let estimate = forward_gradient::<4>(&p, Directions::Rademacher, Key::from_seed(1), loss)?;
/// assert_eq!(estimate.value(), 1000.0);
/// estimate.add_to(&mut p, -1e-4);
/// # Ok::<(), palinode_time::EstimateError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ForwardGradient<'a, const K: usize, S = f64> {
    value: S,
    slopes: [S; K],
    draw: Draw<'a, K>,
    /// A guess of the gradient, and the slopes of what it misses.
    control: Option<(&'a [S], [S; K])>,
}

/// A forward gradient: runs `f` once, on parameters that move in `K` random directions at the same time.
///
/// ```
/// use palinode_core::Key;
/// use palinode_time::{Directions, forward_gradient};
///
/// // As many orthonormal directions as parameters: the estimate is the gradient.
/// let key = Key::from_seed(3);
/// let estimate =
///     forward_gradient::<2>(&[2.0, 5.0], Directions::CoordinateFrame, key, |p| p.get(0) * p.get(1))?;
/// let g = estimate.gradient();
/// assert!((g[0] - 5.0).abs() < 1e-14 && (g[1] - 2.0).abs() < 1e-14);
/// assert_eq!(estimate.standard_error(), 0.0);
/// # Ok::<(), palinode_time::EstimateError>(())
/// ```
///
/// # Errors
/// Parameters, the value or a slope that are infinite or NaN (PAL0102 to PAL0104); a frame with more
/// directions than parameters (PAL0605).
pub fn forward_gradient<'a, const K: usize>(
    parameters: &[f64],
    directions: Directions<'a>,
    key: Key,
    f: impl FnMut(&Perturbed<'_, 'a, K>) -> DualN<f64, K>,
) -> Result<ForwardGradient<'a, K>, EstimateError> {
    forward_gradient_in(parameters, directions, key, f)
}

/// [`forward_gradient`] in another number: `f32`, or posits, whose exact inner products are quires. Take
/// signs, [`Directions::Rademacher`]: entries of other directions are rounded to that number, which biases
/// the estimate ([`Directions::rounding_bias`]).
///
/// ```
/// use palinode_core::Key;
/// use palinode_time::{Directions, forward_gradient_in};
///
/// let (p, key) = ([2.0_f32, 5.0], Key::from_seed(3));
/// let estimate = forward_gradient_in::<2, f32>(&p, Directions::HadamardFrame, key, |p| p.get(0) * p.get(1))?;
/// assert_eq!(estimate.gradient(), [5.0_f32, 2.0]);
/// # Ok::<(), palinode_time::EstimateError>(())
/// ```
///
/// # Errors
/// Those of [`forward_gradient`].
pub fn forward_gradient_in<'a, const K: usize, S: Summand>(
    parameters: &[S],
    directions: Directions<'a>,
    key: Key,
    f: impl FnMut(&Perturbed<'_, 'a, K, S>) -> DualN<S, K>,
) -> Result<ForwardGradient<'a, K, S>, EstimateError> {
    error::finite_parameters(parameters)?;
    let draw = directions.draw(key, parameters.len())?;
    let answer = slopes_of(parameters, &draw, f)?;
    ForwardGradient::new(answer.value, answer.tangents.0, draw)
}

/// The value and the slopes of a function: not of a path that exists only here, and by its own directions
/// only.
pub(crate) fn slopes_of<'a, const K: usize, S: Summand>(
    parameters: &[S],
    draw: &Draw<'a, K>,
    mut f: impl FnMut(&Perturbed<'_, 'a, K, S>) -> DualN<S, K>,
) -> Result<DualN<S, K>, CoreError> {
    let seeded = Seeded::<DualN<S, K>>::new();
    seeded.check("forward_gradient", parameters, |x| {
        let mut parts = Vec::new();
        points::add_parts(Some(&mut parts), &f(&Perturbed::at_rest(x)).tangents.0);
        parts
    })?;
    points::verified(parameters, (points::Parts::Along, 1), |x, parts| {
        let answer = f(&Perturbed::new(x, draw));
        points::note(|| error::finite_answer(answer.value, &answer.tangents.0).is_ok());
        points::add_parts(parts, &answer.tangents.0);
        Ok(answer)
    })
}

impl<'a, const K: usize, S: Summand> ForwardGradient<'a, K, S> {
    pub(crate) fn new(value: S, slopes: [S; K], draw: Draw<'a, K>) -> Result<Self, EstimateError> {
        error::finite_answer(value, &slopes)?;
        Ok(ForwardGradient { value, slopes, draw, control: None })
    }

    /// The value of the closure.
    pub fn value(&self) -> S {
        self.value
    }

    /// The directional derivatives, one per direction.
    pub fn slopes(&self) -> [S; K] {
        self.slopes
    }

    /// The directions.
    pub fn draw(&self) -> &Draw<'a, K> {
        &self.draw
    }

    /// Entry `i` of the estimate.
    #[inline]
    pub fn entry(&self, i: usize) -> S {
        match &self.control {
            None => self.along(i, &self.slopes),
            Some((guess, missed)) => guess[i] + self.along(i, missed),
        }
    }

    /// Entry `i` of the mean of the directions, times their slopes.
    #[inline]
    fn along(&self, i: usize, slopes: &[S; K]) -> S {
        let terms = self.draw.at(i).into_iter().zip(slopes);
        let sum = terms.fold(S::zero(), |sum, (v, &slope)| sum + S::from_f64(v) * slope);
        sum / S::from_int(K as i32)
    }

    /// Adds the estimate, times `factor`, to `target`: with `-rate` a step of gradient descent, in place.
    ///
    /// # Panics
    /// If `target` has another length than the parameters.
    pub fn add_to(&self, target: &mut [S], factor: S) {
        assert_eq!(target.len(), self.draw.len(), "the estimate has {} entries", self.draw.len());
        target.iter_mut().enumerate().for_each(|(i, x)| *x = *x + factor * self.entry(i));
    }

    /// How far the expectation of an entry may be from that of the gradient, relative to it, because `S`
    /// rounds directions; see [`Directions::rounding_bias`].
    pub fn rounding_bias(&self) -> f64 {
        self.draw.directions().rounding_bias::<S>(self.draw.len())
    }

    /// All entries.
    pub fn gradient(&self) -> Vec<S> {
        (0..self.draw.len()).map(|i| self.entry(i)).collect()
    }

    /// Estimates the difference to a guess of the gradient and adds the guess: still unbiased, with the error
    /// of `g - guess` in place of that of `g`. A running mean of earlier estimates is such a guess. It must
    /// not depend on this draw.
    ///
    /// The inner products of guess and directions are accumulated as asked for.
    ///
    /// # Errors
    /// If the guess has another length than the parameters (PAL0101), if a number of it is infinite or NaN
    /// (PAL0102), or if its inner product with a direction is (PAL0104).
    pub fn with_guess(mut self, guess: &'a [S], how: Accumulator) -> Result<Self, EstimateError> {
        error::same_length("the guess", self.draw.len(), guess.len())?;
        if let Some((position, value)) = error::non_finite(guess) {
            return Err(palinode_core::Error::NonFiniteInput { what: "guess", position, value }.into());
        }
        let along = match how {
            Accumulator::Naive => self.inner_products::<Naive<S>>(guess),
            Accumulator::Compensated => self.inner_products::<Compensated<S>>(guess),
            Accumulator::Exact => self.inner_products::<S::ExactDot>(guess),
        };
        let missed = core::array::from_fn(|lane| self.slopes[lane] - along[lane]);
        error::finite_answer(self.value, &missed)?;
        self.control = Some((guess, missed));
        Ok(self)
    }

    fn inner_products<A: AccumulateProducts<S>>(&self, x: &[S]) -> [S; K] {
        let mut sums: [A; K] = core::array::from_fn(|_| A::default());
        for (i, &x) in x.iter().enumerate() {
            for (sum, v) in sums.iter_mut().zip(self.draw.at(i)) {
                sum.add_product(x, S::from_f64(v));
            }
        }
        sums.map(|sum| sum.total())
    }

    /// The standard error of the estimate as a vector: the root of an unbiased estimate of its expected
    /// squared distance to the gradient, from the slopes and the law of the directions. For your own
    /// directions, whose law is not known, it is the squared length of the estimate less the mean square of
    /// the slopes, which are the squared lengths of estimate and gradient on average: right also if the
    /// directions of one draw depend on each other. Infinite if your own directions are all zero, which says
    /// nothing about the gradient.
    pub fn standard_error(&self) -> f64 {
        let is_own = matches!(self.draw.directions(), Directions::Own(_));
        if is_own && self.draw.len() > 0 && !(0..self.draw.len()).any(|i| self.draw.reaches(i)) {
            return f64::INFINITY;
        }
        let slopes = self.control.as_ref().map_or(&self.slopes, |(_, missed)| missed);
        let square = |x: S| x.peek().unwrap_or(f64::NAN).powi(2);
        let mean = slopes.iter().map(|&slope| square(slope)).sum::<f64>() / K as f64;
        let squared = match self.draw.directions().relative_error(self.draw.len(), K) {
            // The mean square of a slope is the squared norm of the gradient.
            Some(law) => law * mean,
            None => (0..self.draw.len()).map(|i| square(self.along(i, slopes))).sum::<f64>() - mean,
        };
        squared.max(0.0).sqrt()
    }
}

/// What the estimate is and how far to trust it.
impl<const K: usize, S: Summand + core::fmt::Display> core::fmt::Display for ForwardGradient<'_, K, S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (value, parameters, family) = (self.value, self.draw.len(), self.draw.directions().name());
        let plural = if K == 1 { "" } else { "s" };
        // What f64 loses goes without saying: directions are made in it.
        let bias = Some(self.rounding_bias()).filter(|&bias| bias > 4.0 * f64::EPSILON);
        let unbiased = if bias.is_none() { "unbiased " } else { "" };
        write!(
            f,
            "value {value}; {unbiased}estimate of the gradient by {parameters} parameters from {K} {family} direction{plural}, \
             standard error {:.3e}",
            self.standard_error(),
        )?;
        match bias {
            Some(bias) => {
                write!(f, "; directions are rounded, which biases an entry by at most {bias:.1e} of it")
            }
            None => Ok(()),
        }
    }
}
