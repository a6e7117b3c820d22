//! A gradient within a budget.
//!
//! Input: a program, what to differentiate by, the shapes of its inputs, a budget. Output: the program of value and gradient that does the least work among
//! those that fit, or a refusal that names the smallest budget that works. Tried are, in this order: keeping everything; computing more and
//! more again in loops (`transform::Storage`); for each of these, computing values again outside of them (`remat`); and loops that keep
//! a few states instead of something in each round (`checkpoint`).

use palinode_core::Budget;

use crate::interp::Datum;
use crate::passes;
use crate::plan::checkpoint::{Checkpoint, Checkpointed, Search};
use crate::plan::effort::Effort;
use crate::plan::remat::rematerialize_within;
use crate::plan::{PlanError, Prediction, narrow_kept, predict};
use crate::program::Program;
use crate::transform::{Recompute, Storage, TransformError, value_and_grad_stored};

/// Overheads up to this are not worth a further search.
const LITTLE: f64 = 1.1;

/// Why there is no gradient within the budget.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// There is no gradient at all.
    #[error(transparent)]
    Transform(#[from] TransformError),
    /// The memory is not known before a run.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The budget is too small.
    #[error("PAL0412: {budget} is not enough: value and gradient need at least {smallest}")]
    TooSmall {
        /// What was given.
        budget: Budget,
        /// What would do.
        smallest: Budget,
    },
}

impl FitError {
    /// The code under which the book explains it.
    pub fn code(&self) -> &'static str {
        match self {
            FitError::Transform(error) => error.code(),
            FitError::Plan(error) => error.code(),
            FitError::TooSmall { .. } => "PAL0412",
        }
    }
}

/// Value and gradient within a budget.
#[derive(Clone, Debug)]
pub struct FittedGradient {
    /// The program of [`value_and_grad_stored`], simplified.
    pub program: Program,
    /// What it needs.
    pub prediction: Prediction,
    /// What loops compute again.
    pub recompute: Recompute,
    /// How many operations outside of loops are repeated.
    pub repeated: usize,
    /// The loops that keep some of their states instead of something in each round.
    pub checkpoints: Vec<Checkpoint>,
    /// Its work as a multiple of the work when everything is kept.
    pub overhead: f64,
    /// What keeping everything would take.
    pub store_all: Budget,
}

/// Value and gradient of the first result within a budget, with the least work; the bits do not depend on the budget, unless `storage` asks for
/// fewer bits.
///
/// # Errors
/// If there is no gradient, if its memory depends on data, or if the budget is too small: then the error names the smallest that works.
pub fn fit_gradient<R>(
    program: &Program,
    wrt: &[usize],
    inputs: &[Datum<R>],
    real_bytes: usize,
    storage: &Storage,
    budget: Budget,
) -> Result<FittedGradient, FitError> {
    fit_levels(program, wrt, inputs, real_bytes, storage, &Recompute::ALL, true, budget)
}

/// As [`fit_gradient`], but loops compute again exactly what `storage` says; only outside of them something may be computed again to save memory.
///
/// # Errors
/// As [`fit_gradient`].
pub fn fit_stored_gradient<R>(
    program: &Program,
    wrt: &[usize],
    inputs: &[Datum<R>],
    real_bytes: usize,
    storage: &Storage,
    budget: Budget,
) -> Result<FittedGradient, FitError> {
    fit_levels(program, wrt, inputs, real_bytes, storage, &[storage.recompute], false, budget)
}

#[allow(clippy::too_many_arguments)]
fn fit_levels<R>(
    program: &Program,
    wrt: &[usize],
    inputs: &[Datum<R>],
    real_bytes: usize,
    storage: &Storage,
    levels: &[Recompute],
    may_keep_states: bool,
    budget: Budget,
) -> Result<FittedGradient, FitError> {
    let limit = budget.bytes() as u64;
    let gradient_of = |program: &Program, recompute| -> Result<Program, FitError> {
        let storage = Storage { recompute, ..storage.clone() };
        Ok(narrow_kept(&passes::simplify(&value_and_grad_stored(program, wrt, &storage)?), &storage))
    };
    let gradient = |recompute| gradient_of(program, recompute);
    // What the work is compared with.
    let kept = gradient(Recompute::Nothing)?;
    let all = predict(&kept, inputs, real_bytes)?;
    let effort = Effort::for_a_run(all.work);
    // Something is left for loops that keep states.
    effort.limit_to(0.5);
    let mut best: Option<FittedGradient> = None;
    let mut smallest = u64::MAX;
    for &recompute in levels {
        let made = if recompute == Recompute::Nothing { kept.clone() } else { gradient(recompute)? };
        let fitted = rematerialize_within(&made, inputs, real_bytes, limit, &effort)?;
        smallest = smallest.min(fitted.prediction.heap);
        let overhead = fitted.prediction.work / all.work.max(1.0);
        if fitted.prediction.heap <= limit && best.as_ref().is_none_or(|best| overhead < best.overhead) {
            best = Some(FittedGradient {
                program: fitted.program,
                prediction: fitted.prediction,
                recompute,
                repeated: fitted.repeated,
                checkpoints: Vec::new(),
                overhead,
                store_all: bytes(all.heap),
            });
        }
    }
    // Loops with checkpoints compute whole rounds again: that is worth a look if the others do not fit, or do much again.
    effort.limit_to(1.0);
    if may_keep_states && best.as_ref().is_none_or(|best| best.overhead > LITTLE) {
        for &recompute in levels {
            if effort.is_over() {
                break;
            }
            let made = |program: &Program| gradient_of(program, recompute);
            let search = Search { inputs, real_bytes, limit, effort: &effort };
            let found = search.run(program, &all.growth, &made)?;
            smallest = smallest.min(found.smallest);
            for Checkpointed { program, prediction, repeated, loops } in found.fitting {
                let overhead = prediction.work / all.work.max(1.0);
                if best.as_ref().is_none_or(|best| overhead < best.overhead) {
                    best = Some(FittedGradient {
                        program,
                        prediction,
                        recompute,
                        repeated,
                        checkpoints: loops,
                        overhead,
                        store_all: bytes(all.heap),
                    });
                }
            }
        }
    }
    let mut best = best.ok_or(FitError::TooSmall { budget, smallest: bytes(smallest) })?;
    // What is live at the peak is worth a walk only now.
    best.prediction = predict(&best.program, inputs, real_bytes)?;
    Ok(best)
}

fn bytes(count: u64) -> Budget {
    Budget::from(usize::try_from(count).unwrap_or(usize::MAX))
}
