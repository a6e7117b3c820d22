//! What can go wrong with estimates, each with a code, the cause and the next step.

use palinode_core::{Error as CoreError, Scalar};
use thiserror::Error;

/// A mistake or a limit that a caller can do something about. Every code has a page in `docs/book/errors`.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum EstimateError {
    /// An error of the tape or of the numbers.
    #[error(transparent)]
    Core(#[from] CoreError),
    /// A frame cannot have more orthonormal directions than there are parameters.
    #[error(
        "PAL0605: {directions} orthonormal directions need at least as many parameters, and there {are} {parameters}; \
         take fewer directions, or independent ones (Directions::Rademacher)",
        are = if *parameters == 1 { "is" } else { "are" }
    )]
    FrameTooLarge {
        /// How many directions were asked for.
        directions: usize,
        /// How many parameters there are.
        parameters: usize,
    },
    /// One sample of a batch failed.
    #[error("PAL0606: sample {sample} of the batch: {error}")]
    Sample {
        /// Which sample, from 0: the first that fails.
        sample: usize,
        /// What is wrong with it.
        error: CoreError,
    },
    /// Every sample of a batch is finite, and a sum over them is not.
    #[error(
        "PAL0608: summed over the {samples} samples of the batch, the {what} is {sum}, though every sample is finite: \
         a sum overflows; scale the loss, or add up exactly if only partial sums overflow (Accumulator::Exact)"
    )]
    SumNotFinite {
        /// What is summed, such as "derivative by parameter 3", counted from 0.
        what: String,
        /// The sum.
        sum: f64,
        /// How many samples there are.
        samples: usize,
    },
    /// A standard error needs at least two rounds.
    #[error(
        "PAL0607: a standard error needs at least 2 rounds, not {rounds}; ask for more rounds, or use forward_gradient"
    )]
    TooFewRounds {
        /// How many rounds were asked for.
        rounds: usize,
    },
}

impl EstimateError {
    /// The code, such as `PAL0605`; `docs/book/errors/PAL0605.md` explains it.
    pub fn code(&self) -> &'static str {
        match self {
            EstimateError::Core(error) => error.code(),
            EstimateError::FrameTooLarge { .. } => "PAL0605",
            EstimateError::Sample { .. } => "PAL0606",
            EstimateError::TooFewRounds { .. } => "PAL0607",
            EstimateError::SumNotFinite { .. } => "PAL0608",
        }
    }
}

/// The first number that is infinite or NaN, and its place.
pub(crate) fn non_finite<S: Scalar>(numbers: &[S]) -> Option<(usize, f64)> {
    let values = numbers.iter().map(|x| x.peek().unwrap_or(0.0));
    values.enumerate().find(|(_, value)| !value.is_finite())
}

pub(crate) fn finite_parameters<S: Scalar>(parameters: &[S]) -> Result<(), CoreError> {
    non_finite(parameters)
        .map_or(Ok(()), |(position, value)| Err(CoreError::NonFiniteInput { what: "input", position, value }))
}

pub(crate) fn finite_answer<S: Scalar>(value: S, slopes: &[S]) -> Result<(), CoreError> {
    if let Some((position, value)) = non_finite(&[value]) {
        return Err(CoreError::NonFiniteOutput { position, value });
    }
    non_finite(slopes).map_or(Ok(()), |(position, value)| {
        Err(CoreError::NonFiniteDerivativeOf { what: "derivative in direction", position, value })
    })
}

pub(crate) fn same_length(what: &'static str, expected: usize, found: usize) -> Result<(), CoreError> {
    if expected == found { Ok(()) } else { Err(CoreError::Length { what, expected, found }) }
}
