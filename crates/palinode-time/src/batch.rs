//! Gradients of batches: a closure per sample, sums over samples, on one thread or many.
//!
//! Input: parameters, a number of samples, a closure that gives the loss of one sample. Output: the sum of
//! losses and the sum of gradients.
//!
//! Invariants: with [`Accumulator::Exact`] the sums are rounded once, so the bits depend on the samples
//! alone: not on their order, not on the number of threads, not on which thread took which. With the others
//! they do. Of several samples that fail the first is named, whatever the threads do. What is given is
//! finite: a sum that overflows is an error, as a sample that does is. Posits do not overflow: a sum beyond
//! the largest is the largest.
//!
//! Numbers: `f64`, `f32` and posits, whose exact sums are quires.
//!
//! Memory: a tape and a sum per parameter for every piece of the batch that is under way (560 bytes a
//! parameter if exact). With [`Batch::accumulate_within`] a sweep holds a sum for every number of its sample
//! that waits to be swept (1096 bytes each if exact, in `f64`).

use crate::forward_gradient::{Directions, EstimateError, ForwardGradient, Perturbed};
use crate::forward_gradient::{finite_answer, finite_parameters, non_finite, slopes_of};
use core::marker::PhantomData;
use core::ops::Range;
use palinode_core::{
    Accumulate, Accumulator, Compensated, DualN, Error as CoreError, Key, Naive, Summand, Tape, Var,
};

/// How many samples a piece of a batch has at most.
#[cfg(feature = "rayon")]
const PIECE: usize = 1024;

/// A batch of samples, and how to add up over it.
///
/// ```
/// use palinode_core::Accumulator;
/// use palinode_time::Batch;
///
/// let data = [(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)];
/// let sum = Batch::new(data.len()).accumulate(Accumulator::Exact).value_and_grad(&[2.0, 0.0], |p, sample| {
///     let (x, y) = data[sample];
///     (p[0] * x + p[1] - y).powi(2)
/// })?;
/// assert_eq!((sum.value, &sum.gradient[..]), (3.0, &[-6.0, -6.0][..]));
/// assert_eq!(sum.mean().gradient, [-2.0, -2.0]);
/// # Ok::<(), palinode_time::EstimateError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    samples: usize,
    accumulator: Accumulator,
    within: Accumulator,
    parallel: bool,
}

/// The value and the gradient of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchGradient<S = f64> {
    /// The sum of the samples' values.
    pub value: S,
    /// The sum of their gradients.
    pub gradient: Vec<S>,
    /// How many samples there were.
    pub samples: usize,
}

impl<S: Summand> BatchGradient<S> {
    /// The mean in place of the sum.
    pub fn mean(mut self) -> Self {
        let samples = S::from_f64(self.samples.max(1) as f64);
        self.value = self.value / samples;
        self.gradient.iter_mut().for_each(|g| *g = *g / samples);
        self
    }
}

impl Batch {
    /// Samples `0..samples`, added up exactly, on this thread.
    pub fn new(samples: usize) -> Self {
        Batch { samples, accumulator: Accumulator::Exact, within: Accumulator::Naive, parallel: false }
    }

    /// How sums over samples are computed: exact if nothing else is said.
    pub fn accumulate(self, accumulator: Accumulator) -> Self {
        Batch { accumulator, ..self }
    }

    /// How the reverse sweep of a single sample adds up cotangents, as in [`Tape::accumulate`]: naive if
    /// nothing else is said, which is much faster. For samples that use a parameter many times; what is the
    /// same in any order of the samples is so in either case. [`forward_gradient`](Self::forward_gradient)
    /// has no reverse sweep, and does not look at it.
    ///
    /// ```
    /// use palinode_core::{Accumulator, Array};
    /// use palinode_time::Batch;
    ///
    /// let batch = Batch::new(2).accumulate_within(Accumulator::Exact);
    /// let sum = batch.value_and_grad(&[0.0], |p, _| {
    ///     Array::from_vars(p).broadcast(&[3]).dot(&Array::from_values([1e100, 3.0, -1e100]))
    /// })?;
    /// assert_eq!(sum.gradient, [6.0]);
    /// // Terms of an expression of one or two numbers are added one after the other while it is recorded.
    /// let sum = batch.value_and_grad(&[0.0], |p, _| p[0] * 1e100 + p[0] * 3.0 - p[0] * 1e100)?;
    /// assert_eq!(sum.gradient, [0.0]); // not 6
    /// # Ok::<(), palinode_time::EstimateError>(())
    /// ```
    pub fn accumulate_within(self, within: Accumulator) -> Self {
        Batch { within, ..self }
    }

    /// On the threads of rayon's current pool.
    #[cfg(feature = "rayon")]
    pub fn parallel(self) -> Self {
        Batch { parallel: true, ..self }
    }

    /// The value and the gradient, summed over samples: `loss(p, i)` is recorded and swept for each sample
    /// `i`.
    ///
    /// ```
    /// use palinode_core::{Posit16, Scalar};
    /// use palinode_time::Batch;
    ///
    /// assert_eq!(Batch::new(2).value_and_grad(&[1e308], |p, _| p[0]).unwrap_err().code(), "PAL0608");
    /// let largest = Posit16::from_f64(1e30); // posits saturate, and so do their sums
    /// assert_eq!(Batch::new(2).value_and_grad(&[largest], |p, _| p[0])?.value, largest);
    /// # Ok::<(), palinode_time::EstimateError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`palinode_core::value_and_grad`], with the number of the sample (PAL0606); a sum that
    /// overflows (PAL0608; in posits none does).
    pub fn value_and_grad<S: Summand>(
        &self,
        parameters: &[S],
        loss: impl Fn(&[Var<S>], usize) -> Var<S> + Sync,
    ) -> Result<BatchGradient<S>, EstimateError> {
        finite_parameters(parameters)?;
        let piece = |samples: Range<usize>, sums: &mut dyn FnMut(S, &[S])| {
            let mut tape = Tape::new().accumulate(self.within);
            let mut gradient = vec![S::zero(); parameters.len()];
            for sample in samples {
                let value = tape
                    .gradient_into(|p| loss(p, sample), parameters, &mut gradient)
                    .map_err(|error| (sample, error))?;
                sums(value, &gradient);
            }
            Ok(())
        };
        let (value, gradient) = self.add_up(parameters.len(), "derivative by parameter", &piece)?;
        Ok(BatchGradient { value, gradient, samples: self.samples })
    }

    /// The forward gradient of the sum over samples: the same `K` directions for every sample, and slopes
    /// summed. How a sample adds up is its closure's affair: [`accumulate_within`](Self::accumulate_within)
    /// is for reverse sweeps.
    ///
    /// # Errors
    /// Those of [`forward_gradient`](crate::forward_gradient), with the number of the sample (PAL0606); a sum
    /// that overflows (PAL0608; in posits none does).
    pub fn forward_gradient<'a, const K: usize>(
        &self,
        parameters: &[f64],
        directions: Directions<'a>,
        key: Key,
        loss: impl Fn(&Perturbed<'_, 'a, K>, usize) -> DualN<f64, K> + Sync,
    ) -> Result<ForwardGradient<'a, K>, EstimateError> {
        self.forward_gradient_in(parameters, directions, key, loss)
    }

    /// [`forward_gradient`](Self::forward_gradient) in another number.
    ///
    /// # Errors
    /// Those of [`forward_gradient`](Self::forward_gradient).
    pub fn forward_gradient_in<'a, const K: usize, S: Summand>(
        &self,
        parameters: &[S],
        directions: Directions<'a>,
        key: Key,
        loss: impl Fn(&Perturbed<'_, 'a, K, S>, usize) -> DualN<S, K> + Sync,
    ) -> Result<ForwardGradient<'a, K, S>, EstimateError> {
        finite_parameters(parameters)?;
        let draw = directions.draw::<K>(key, parameters.len())?;
        let piece = |samples: Range<usize>, sums: &mut dyn FnMut(S, &[S])| {
            // A draw remembers its last block, so each piece has its own; the same key makes the same
            // directions.
            let draw = directions.draw::<K>(key, parameters.len()).expect("it was drawn before");
            for sample in samples {
                let answer =
                    slopes_of(parameters, &draw, |p| loss(p, sample)).map_err(|error| (sample, error))?;
                finite_answer(answer.value, &answer.tangents.0).map_err(|error| (sample, error))?;
                sums(answer.value, &answer.tangents.0);
            }
            Ok(())
        };
        let (value, slopes) = self.add_up(K, "derivative in direction", &piece)?;
        let slopes = core::array::from_fn(|lane| slopes[lane]);
        ForwardGradient::new(value, slopes, draw)
    }

    /// Sums over all samples: of a value and of `width` more numbers called `name`, which `piece` gives
    /// sample by sample.
    fn add_up<S: Summand>(
        &self,
        width: usize,
        name: &str,
        piece: &Piece<'_, S>,
    ) -> Result<(S, Vec<S>), EstimateError> {
        let (value, rest) = match self.accumulator {
            Accumulator::Naive => self.add_up_by::<S, Naive<S>>(width, piece),
            Accumulator::Compensated => self.add_up_by::<S, Compensated<S>>(width, piece),
            Accumulator::Exact => self.add_up_by::<S, S::ExactSum>(width, piece),
        }?;
        let overflow = |what, sum| Err(EstimateError::SumNotFinite { what, sum, samples: self.samples });
        if let Some((_, sum)) = non_finite(&[value]) {
            return overflow("value".to_owned(), sum);
        }
        match non_finite(&rest) {
            Some((number, sum)) => overflow(format!("{name} {number}"), sum),
            None => Ok((value, rest)),
        }
    }

    fn add_up_by<S: Summand, A: Accumulate<S>>(
        &self,
        width: usize,
        piece: &Piece<'_, S>,
    ) -> Result<(S, Vec<S>), EstimateError> {
        let sums: Sums<S, A> = match self.parallel {
            #[cfg(feature = "rayon")]
            true => self.in_parallel(width, piece),
            _ => Sums::of(0..self.samples, width, piece),
        };
        if let Some((sample, error)) = sums.failure {
            return Err(EstimateError::Sample { sample, error });
        }
        Ok((sums.value.total(), sums.rest.iter().map(A::total).collect()))
    }

    #[cfg(feature = "rayon")]
    fn in_parallel<S: Summand, A: Accumulate<S>>(&self, width: usize, piece: &Piece<'_, S>) -> Sums<S, A> {
        use rayon::iter::{IntoParallelIterator, ParallelIterator};
        // Several pieces for each thread, so that a slow one does not hold up the rest.
        let length = (self.samples / (8 * rayon::current_num_threads())).clamp(1, PIECE);
        (0..self.samples.div_ceil(length))
            .into_par_iter()
            .fold(
                || Sums::zero(width),
                |mut sums: Sums<S, A>, i| {
                    sums.add(i * length..self.samples.min((i + 1) * length), piece);
                    sums
                },
            )
            .reduce(|| Sums::zero(width), Sums::merge)
    }
}

/// Goes through some samples and hands their values and other numbers over; stops at the first that fails.
type Piece<'a, S> = dyn Fn(Range<usize>, &mut dyn FnMut(S, &[S])) -> Result<(), Failure> + Sync + 'a;

/// A sample and what is wrong with it.
type Failure = (usize, CoreError);

/// Sums of numbers `S`, each by an `A`.
struct Sums<S, A> {
    value: A,
    rest: Vec<A>,
    failure: Option<Failure>,
    numbers: PhantomData<S>,
}

impl<S: Summand, A: Accumulate<S>> Sums<S, A> {
    fn zero(width: usize) -> Self {
        Sums { value: A::default(), rest: vec![A::default(); width], failure: None, numbers: PhantomData }
    }

    fn of(samples: Range<usize>, width: usize, piece: &Piece<'_, S>) -> Self {
        let mut sums = Self::zero(width);
        sums.add(samples, piece);
        sums
    }

    fn add(&mut self, samples: Range<usize>, piece: &Piece<'_, S>) {
        let Sums { value, rest, .. } = self;
        let failure = piece(samples, &mut |new_value, new_rest| {
            value.add(new_value);
            rest.iter_mut().zip(new_rest).for_each(|(sum, &x)| sum.add(x));
        });
        self.failure = first(self.failure.take(), failure.err());
    }

    #[cfg(feature = "rayon")]
    fn merge(mut self, other: Self) -> Self {
        self.value.merge(&other.value);
        self.rest.iter_mut().zip(&other.rest).for_each(|(sum, more)| sum.merge(more));
        self.failure = first(self.failure, other.failure);
        self
    }
}

/// The failure with the smaller number.
fn first(a: Option<Failure>, b: Option<Failure>) -> Option<Failure> {
    [a, b].into_iter().flatten().min_by_key(|(sample, _)| *sample)
}
