//! What can go wrong with a loop, each with a code, the place, the cause and the next step.

use palinode_core::{Budget, SnapshotError};
use thiserror::Error;

/// A mistake or a limit that a caller can do something about. Every code has a page in `docs/book/errors`.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// An error of a tape or of a text.
    #[error(transparent)]
    Core(#[from] palinode_core::Error),
    /// A comparison in a step went as it does at its state only, and so did the derivative.
    #[error("{error}; comparisons are counted from the start of step {step}")]
    OfPoint {
        /// The step, from 0, or the first of several that are differentiated together.
        step: u64,
        /// The comparison.
        error: palinode_core::Error,
    },
    /// A snapshot that could not be kept or did not come back.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The budget does not hold what the schedule keeps at least, besides what is always there.
    #[error(
        "PAL0520: {budget} is not enough: this rollout needs at least {smallest} ({} for states, inputs and cotangents, {} for residuals, {} for \
         snapshots and their schedule); raise the budget to {smallest}, record smaller \
         steps, or give fewer inputs of their own",
        Budget::from(*states).rounded(), Budget::from(*residuals).rounded(), Budget::from(*snapshots).rounded()
    )]
    BudgetTooSmall {
        /// What was allowed.
        budget: Budget,
        /// The smallest budget that works; more, if 16 times the budget (or 16 MiB) did not hold the
        /// residuals of one step.
        smallest: Budget,
        /// Bytes for the live state, parameters and cotangents.
        states: usize,
        /// Bytes for the residuals of as many units of steps as are kept at once.
        residuals: usize,
        /// Bytes for the snapshots that are kept at once, and for the schedule.
        snapshots: usize,
    },
    /// What the schedule keeps at once is more than can be addressed.
    #[error(
        "PAL0504: the {what} that this schedule keeps at once for a loop of this length take more bytes than a machine can address, so no budget is \
         enough; use Schedule::Best or Schedule::Binomial, which keep few snapshots and compute the rest again"
    )]
    BeyondMemory {
        /// "residuals" or "snapshots".
        what: &'static str,
    },
    /// A step took more memory than was planned for.
    #[error(
        "PAL0527: step {step} takes more memory than was planned for: {needed} bytes would be needed in all, and the budget is {budget}; raise it, give the state its final size from \
         the start, or move what the step depends on into its state"
    )]
    OverBudget {
        /// The step.
        step: u64,
        /// The bytes that were needed then, at least.
        needed: usize,
        /// What was allowed.
        budget: Budget,
    },
    /// A step that is said to undo another does not.
    #[error(
        "PAL0537: step_back does not undo step {step}: {}; correct step_back, or keep snapshots (value_and_grad)", how_far(*drift)
    )]
    DoesNotUndo {
        /// The step.
        step: u64,
        /// The largest difference of a number of the state, relative to it; infinite if its shape is another.
        drift: f64,
    },
    /// Undoing all steps did not come back to the initial state.
    #[error(
        "PAL0537: undoing {steps} steps did not restore the first state: {}, so the states in between differ from those of the loop; keep snapshots (value_and_grad), take fewer steps, or compute on an integer lattice",
        how_far(*drift)
    )]
    DriftedTooFar {
        /// How many steps were undone.
        steps: u64,
        /// The largest difference of a number of the state, relative to it; infinite if its shape is another.
        drift: f64,
    },
    /// A state that was computed again differs from what it was the first time.
    #[error(
        "PAL0521: step {step} gave another result when it was run again: it depends on something that is not in its state, parameters or \
         input (a counter, a cache, a clock, a random generator), or a function of .inputs_by does not give the same input each time; move that into the state"
    )]
    Diverged {
        /// The first step that is known to differ.
        step: u64,
    },
    /// The step takes an input and none was given.
    #[error(
        "PAL0522: the step takes an input, and none was passed; pass one with .input(..), a list with .inputs(..), or make them with .inputs_by(..)"
    )]
    NoInput,
    /// There are fewer inputs than steps.
    #[error(
        "PAL0522: there are {inputs} inputs for {steps} steps; give one for each, or one for all with .input(..)"
    )]
    TooFewInputs {
        /// How many inputs there are.
        inputs: usize,
        /// How many steps.
        steps: u64,
    },
    /// A function makes inputs of several sizes.
    #[error(
        "PAL0522: the input that is made for step {step} has another size than the first one; inputs that are made by a function (.inputs_by) have one \
         size, those of a list (.inputs) may differ"
    )]
    InputChanged {
        /// The step.
        step: u64,
    },
    /// A rule cannot carry cotangents over a change of shape.
    #[error(
        "PAL0523: the state has {after} numbers after the step and {before} before it; a step that changes \
         the shape of its state is differentiated by the tape, not by a rule"
    )]
    ShapeChanged {
        /// Before the step.
        before: usize,
        /// After the step.
        after: usize,
    },
    /// Neither a number of steps nor a condition.
    #[error(
        "PAL0524: the rollout has no length; give it one with .steps(n), .until(|state| ..) or .inputs(..)"
    )]
    NoLength,
    /// The condition did not become true.
    #[error(
        "PAL0525: the condition was not met within {limit} steps; check it, or allow more with .at_most(n)"
    )]
    TooLong {
        /// How many steps were allowed.
        limit: u64,
    },
    /// A cotangent became infinite or NaN in the reverse sweep.
    #[error("PAL0526: the cotangent is {value} when the reverse sweep has passed step {step}: {cause}")]
    NonFiniteCotangent {
        /// The step.
        step: u64,
        /// What it is.
        value: f64,
        /// What is known about why.
        cause: &'static str,
    },
    /// The loss is infinite or NaN, and with it the gradient.
    #[error("PAL0526: the loss is {value}: {}", where_not_finite(*step))]
    NonFiniteLoss {
        /// What it is.
        value: f64,
        /// The first step after which the state has a number that is not finite; `None` if there is no such
        /// step.
        step: Option<u64>,
    },
    /// Two things that were asked for do not go together.
    #[error("PAL0529: {what} and {with} exclude each other; leave one of them out")]
    NotTogether {
        /// The one.
        what: &'static str,
        /// The other.
        with: &'static str,
    },
    /// Several options of a rollout are wrong; there are at least two.
    #[error("{}", all_of(.0))]
    Several(Vec<Error>),
    /// A step could not be taken: see [`Notes`](crate::Notes).
    #[error("PAL0534: step {step} failed: {reason}")]
    StepFailed {
        /// The step.
        step: u64,
        /// What it noted.
        reason: String,
    },
    /// A condition that was not true because it compared NaN: it might never be.
    #[error(
        "PAL0535: after {steps} steps the condition compared NaN and did not stop the loop, which might never end; stop at NaN, too \
         (`x.is_nan() || ..`), or find where it comes from"
    )]
    ConditionUndefined {
        /// How many steps had been taken.
        steps: u64,
    },
    /// An error in the inner loop of a nested rollout.
    #[error("in step {inner} of the inner loop of step {step}: {error}")]
    InInnerLoop {
        /// The step of the outer loop.
        step: u64,
        /// The step of the inner loop.
        inner: u64,
        /// What it is.
        error: Box<Error>,
    },
    /// A program that cannot be a step, or values that do not fit it.
    #[cfg(feature = "ir")]
    #[error(transparent)]
    Program(#[from] crate::ProgramStepError),
    /// A rule that comes with a step does not agree with the tape.
    #[error(
        "PAL0528: the rule of the step is wrong: the cotangent of {what} {position} is {by_rule} by the rule and {by_tape} by the tape, \
         after step {step}"
    )]
    WrongRule {
        /// "state", "parameter" or "input".
        what: &'static str,
        /// Which number of it, from 0.
        position: usize,
        /// The step.
        step: u64,
        /// What the rule says.
        by_rule: f64,
        /// What the tape says.
        by_tape: f64,
    },
}

/// Several errors in one text.
fn all_of(mistakes: &[Error]) -> String {
    mistakes.iter().map(Error::to_string).collect::<Vec<_>>().join("; and ")
}

/// How far from where it was a state came back.
fn how_far(drift: f64) -> String {
    if drift.is_finite() {
        format!("a number of the state differs by {drift:.1e} of its size after undoing")
    } else {
        "the state has another shape, other integers or words, or a NaN after undoing".into()
    }
}

/// Where to look for the cause of a loss that is not finite.
fn where_not_finite(step: Option<u64>) -> String {
    match step {
        Some(step) => {
            format!(
                "step {step} is the first that leaves a number in the state that is not finite; check that step"
            )
        }
        None => "no step made the state infinite or NaN, so check the loss and the first state".into(),
    }
}

impl Error {
    /// The code, such as `PAL0520`, of several errors the first; `docs/book/errors/PAL0520.md` explains it.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Core(error) | Error::OfPoint { error, .. } => error.code(),
            Error::Snapshot(error) => error.code(),
            Error::BudgetTooSmall { .. } => "PAL0520",
            Error::BeyondMemory { .. } => "PAL0504",
            Error::Diverged { .. } => "PAL0521",
            Error::NoInput | Error::TooFewInputs { .. } | Error::InputChanged { .. } => "PAL0522",
            Error::ShapeChanged { .. } => "PAL0523",
            Error::NoLength => "PAL0524",
            Error::TooLong { .. } => "PAL0525",
            Error::NonFiniteCotangent { .. } | Error::NonFiniteLoss { .. } => "PAL0526",
            Error::OverBudget { .. } => "PAL0527",
            Error::WrongRule { .. } => "PAL0528",
            Error::NotTogether { .. } => "PAL0529",
            Error::DoesNotUndo { .. } | Error::DriftedTooFar { .. } => "PAL0537",
            // Of the first: the text has all.
            Error::Several(mistakes) => mistakes.first().map_or("PAL0529", Error::code),
            Error::StepFailed { .. } => "PAL0534",
            Error::ConditionUndefined { .. } => "PAL0535",
            Error::InInnerLoop { error, .. } => error.code(),
            #[cfg(feature = "ir")]
            Error::Program(error) => error.code(),
        }
    }

    /// An error of steps counted from 0, as one of steps counted from `first`.
    pub(crate) fn counted_from(mut self, first: u64) -> Error {
        if let Error::StepFailed { step, .. }
        | Error::InInnerLoop { step, .. }
        | Error::OfPoint { step, .. } = &mut self
        {
            *step += first;
        }
        self
    }

    /// Whether a step computed something else when it was run again.
    pub(crate) fn is_divergence(&self) -> bool {
        match self {
            Error::Diverged { .. } => true,
            Error::InInnerLoop { error, .. } => error.is_divergence(),
            _ => false,
        }
    }

    /// Whether something took more bytes than were planned for it.
    pub(crate) fn is_excess(&self) -> bool {
        match self {
            Error::OverBudget { .. } | Error::Core(palinode_core::Error::ByteLimit { .. }) => true,
            // Inner loops keep their snapshots in memory.
            Error::InInnerLoop { error, .. } => {
                error.is_excess() || matches!(**error, Error::Snapshot(SnapshotError::NoSpace { .. }))
            }
            _ => false,
        }
    }
}
