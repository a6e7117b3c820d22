//! A gradient within a budget.
//!
//! Input: a program, what to differentiate by, the shapes of its inputs, a budget. Output: the program of
//! value and gradient that does the least work among those that fit, or a refusal that names the smallest
//! budget that works. Tried are, in this order: keeping everything; computing more and more again in loops
//! (`transform::Storage`); for each of these, computing values again outside of them (`remat`); and loops
//! that keep a few snapshots instead of something in each round (`snapshots`). These run for their values
//! first; then the best of them is tried with sweeps that turn.

use palinode_core::Budget;

use crate::interp::Datum;
use crate::op::Op;
use crate::passes;
use crate::plan::effort::Effort;
use crate::plan::remat::{rematerialize_from, rematerialize_within};
use crate::plan::snapshots::{Search, SnapshotLoop, Snapshotted};
use crate::plan::{Fitted, PlanError, Prediction, narrow_kept, predict};
use crate::program::Program;
use crate::transform::{Recompute, Storage, TransformError, value_and_grad_stored};

/// Overheads up to this are not worth a further search.
const LITTLE: f64 = 1.1;

/// All effort of a search, and some more for a look at sweeps that turn.
const WITH_TURNS: f64 = 1.25;

/// Whether a sweep places its first snapshots in the run for the values.
fn turns(found: &Snapshotted) -> bool {
    found.program.count(|inst| matches!(inst.op, Op::Sweep { turns: true, .. })) > 0
}

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
    pub loops: Vec<SnapshotLoop>,
    /// Its work as a multiple of the work when everything is kept.
    pub overhead: f64,
    /// Whether that is so in every run; otherwise it depends on data, on which way branches go.
    pub is_overhead_exact: bool,
    /// What keeping everything would take.
    pub store_all: Budget,
}

impl FittedGradient {
    /// Whether nothing is computed again that costs more than keeping it.
    pub fn keeps_everything(&self) -> bool {
        self.recompute <= Recompute::default() && self.repeated == 0 && self.loops.is_empty()
    }
}

/// Value and gradient of the first result within a budget, with the least work; the bits do not depend on the
/// budget, unless `storage` asks for fewer bits.
///
/// # Errors
/// If there is no gradient, if its memory depends on data, or if the budget is too small: then the error
/// names the smallest that works.
pub fn fit_gradient<R>(
    program: &Program,
    wrt: &[usize],
    inputs: &[Datum<R>],
    real_bytes: usize,
    storage: &Storage,
    budget: Budget,
) -> Result<FittedGradient, FitError> {
    Searched { program, wrt, inputs, real_bytes, storage, is_stored: false }.within(budget)
}

/// A gradient that is searched for.
pub(super) struct Searched<'a, R> {
    pub(super) program: &'a Program,
    pub(super) wrt: &'a [usize],
    pub(super) inputs: &'a [Datum<R>],
    pub(super) real_bytes: usize,
    pub(super) storage: &'a Storage,
    /// Whether loops compute again exactly what `storage` says; then only outside of them something may be
    /// computed again to save memory.
    pub(super) is_stored: bool,
}

impl<R> Searched<'_, R> {
    pub(super) fn within(&self, budget: Budget) -> Result<FittedGradient, FitError> {
        let limit = budget.bytes() as u64;
        let found = self.search(limit)?;
        if found.prediction.heap > limit {
            return Err(FitError::TooSmall { budget, smallest: bytes(found.prediction.heap) });
        }
        Ok(found)
    }

    /// The least work within a limit; the least memory if nothing is.
    pub(super) fn search(&self, limit: u64) -> Result<FittedGradient, FitError> {
        let &Searched { program, wrt, inputs, real_bytes, storage, is_stored } = self;
        // A search starts with the gradient that runs without a budget: what that computes again costs less
        // than keeping it.
        let from = if is_stored { Recompute::Nothing } else { Recompute::default() };
        let levels = match is_stored {
            true => core::slice::from_ref(&storage.recompute),
            false => &Recompute::ALL[from as usize..],
        };
        // With loops that run for their values first, as little as possible is there at once.
        let gradient_in = |two_runs, program: &Program, recompute| -> Result<Program, FitError> {
            let storage = Storage { recompute, two_runs, ..storage.clone() };
            Ok(narrow_kept(&passes::simplify(&value_and_grad_stored(program, wrt, &storage)?), &storage))
        };
        let gradient_of = |program: &Program, recompute| gradient_in(true, program, recompute);
        let gradient = |recompute| gradient_of(program, recompute);
        // What the work is compared with.
        let kept = gradient(from)?;
        let all = predict(&kept, inputs, real_bytes)?;
        let effort = Effort::for_a_run(all.work);
        // What is computed again is chosen for loops only.
        let has_loops = program.count(|inst| inst.op.repeats()) > 0;
        // Something is left for loops that keep states.
        effort.limit_to(0.5);
        let all_of = (all.work, all.heap, all.exact);
        let mut tried = Tried { limit, all: all_of, best: None, smallest: None, swept: None };
        for (at, &recompute) in levels.iter().enumerate() {
            if at > 0 && (tried.is_good() || effort.is_over() || !has_loops) {
                break;
            }
            let fitted = if recompute == from {
                rematerialize_from(&kept, all.clone(), inputs, real_bytes, limit, &effort)?
            } else {
                let made = gradient(recompute)?;
                effort.spend_making(made.size());
                rematerialize_within(&made, inputs, real_bytes, limit, &effort)?
            };
            let Fitted { program, prediction, repeated, .. } = fitted;
            tried.note(recompute, Snapshotted { program, prediction, repeated, loops: Vec::new() });
        }
        // Loops with snapshots compute whole rounds again: that is worth a look if the others do not fit,
        // or do much again.
        effort.limit_to(1.0);
        if !is_stored && !tried.is_good() {
            for &recompute in levels {
                if effort.is_over() {
                    break;
                }
                let made = |program: &Program| -> Result<Program, FitError> {
                    let made = gradient_of(program, recompute)?;
                    effort.spend_making(made.size());
                    Ok(made)
                };
                let search = Search { inputs, real_bytes, limit, effort: &effort };
                let found = search.run(program, &all.growth, &made)?;
                found.into_iter().for_each(|found| tried.note(recompute, found));
            }
        }
        // Loops that keep snapshots may do with one run less.
        effort.limit_to(WITH_TURNS);
        if let Some(Swept { recompute, loops, .. }) = tried.swept.take() {
            let made = |program: &Program| -> Result<Program, FitError> {
                let made = gradient_in(false, program, recompute)?;
                effort.spend_making(made.size());
                Ok(made)
            };
            let search = Search { inputs, real_bytes, limit, effort: &effort };
            let loops = loops.iter().map(|one| (one.span, one.rounds)).collect();
            if let Some(found) = search.with_snapshots(program, loops, &made)?.filter(turns) {
                tried.note(recompute, found);
            }
        }
        let Tried { best, smallest, .. } = tried;
        // What is live at the peak is worth a walk only now. It may be longer than those of the search, and
        // know more: also of the smallest one, which then may fit.
        let mut found = best.or(smallest).expect("something was tried");
        let closer = predict(&found.program, inputs, real_bytes)?;
        if closer.heap <= found.prediction.heap {
            found.prediction = closer;
        }
        Ok(found)
    }
}

/// What a search has found. Every limit goes through the same candidates in the same order until one fits, so
/// that all limits above the smallest peak work.
struct Tried {
    limit: u64,
    /// The work and the bytes of what keeps everything, and whether these are exact.
    all: (f64, u64, bool),
    /// With the least work among those that fit.
    best: Option<FittedGradient>,
    /// With the smallest peak.
    smallest: Option<FittedGradient>,
    /// The best of those whose loops keep snapshots.
    swept: Option<Swept>,
}

/// Something that was tried, with sweeps.
struct Swept {
    recompute: Recompute,
    loops: Vec<SnapshotLoop>,
    /// 0 and its work if it fits, else 1 and its bytes.
    rank: (u8, f64),
}

impl Tried {
    /// Whether a further search is not worth while.
    fn is_good(&self) -> bool {
        self.best.as_ref().is_some_and(|best| best.overhead <= LITTLE)
    }

    fn note(&mut self, recompute: Recompute, found: Snapshotted) {
        let Snapshotted { program, prediction, repeated, loops } = found;
        let overhead = prediction.work / self.all.0.max(1.0);
        let (fits, heap) = (prediction.heap <= self.limit, prediction.heap);
        let is_exact = self.all.2 && prediction.exact;
        let mut found = FittedGradient {
            program,
            prediction,
            recompute,
            repeated,
            loops,
            overhead,
            is_overhead_exact: is_exact,
            store_all: bytes(self.all.1),
        };
        found.is_overhead_exact |= found.keeps_everything();
        let sweeps = found.program.count(|inst| matches!(inst.op, Op::Sweep { turns: false, .. }));
        let rank = if fits { (0, overhead) } else { (1, heap as f64) };
        if sweeps > 0 && self.swept.as_ref().is_none_or(|swept| rank < swept.rank) {
            self.swept = Some(Swept { recompute, loops: found.loops.clone(), rank });
        }
        if fits && self.best.as_ref().is_none_or(|best| overhead < best.overhead) {
            self.best = Some(found);
        } else if self.smallest.as_ref().is_none_or(|smallest| heap < smallest.prediction.heap) {
            self.smallest = Some(found);
        }
    }
}

fn bytes(count: u64) -> Budget {
    Budget::from(usize::try_from(count).unwrap_or(usize::MAX))
}
