//! Plans: the memory that a program needs, before it runs.
//!
//! Input: a program and the shapes of its inputs. Output: predicted peak bytes and what is live then
//! ([`predict`]), the lifetime of every array ([`lifetimes`](lifetimes())), a gradient within a budget
//! ([`fit_gradient`]).
//!
//! | file | does |
//! |---|---|
//! | `walk`, `steady` | an imagined run without numbers; loops whose rounds are alike are not walked to their end |
//! | `join` | what follows a branch on data |
//! | `copies` | why an update copies |
//! | `lifetimes` | when each array lives, and where in one arena |
//! | `fit` | a gradient within a budget |
//! | `asked`, `ahead` | how memory is to be used, and all that is planned for that before the first run |
//! | `ladder` | which budgets a refusal names |
//! | `ways`, `forward` | what is tried, one after the other, where memory depends on data or snapshots of loops are watched |
//! | `snapshots` | loops that keep a few snapshots instead of logs |
//! | `narrow` | arrays that wait in fewer bits, if asked for |
//! | `remat` | values that are computed again instead of kept |
//! | `effort` | how long a search may take |
//! | `buffers`, `sizes`, `ints`, `known` | what it keeps books of: bytes, lengths, integers |
//!
//! Invariant: the walk follows the memory model that `interp` states, so that for the same decisions it
//! predicts every allocation. It knows no numbers: what depends on data comes from a recorded run, or makes
//! the prediction a bound, or an error that says so.

mod ahead;
mod asked;
mod buffers;
mod copies;
mod effort;
mod fit;
mod forward;
mod ints;
mod join;
mod known;
mod ladder;
mod lifetimes;
mod narrow;
mod remat;
mod sizes;
mod snapshots;
mod steady;
mod walk;
mod ways;

use std::collections::BTreeMap;

use crate::interp::{Datum, Event};
use crate::op::FuncId;
use crate::program::{Program, Value};
use crate::types::{Elem, Span};
pub use ahead::{Ahead, Sides, Unplanned, Within};
pub use asked::{Asked, Beside, Target, Values, less, simplified, values};
pub use copies::Because;
use effort::Effort;
pub use fit::{FitError, FittedGradient, fit_gradient};
pub use forward::Forward;
pub use ladder::{Ladder, Least, Works, handy};
pub use lifetimes::{Lifetime, Lifetimes, Point, StateKind, lifetimes};
pub use narrow::{narrow_kept, narrowing_error};
pub use remat::{Fitted, rematerialize};
pub use snapshots::SnapshotLoop;
use walk::{Stop, Walk};
pub use ways::{Kept, LoopWay, LoopWays, Way, Ways, counter, derived, least_counted, to_count};

/// Why a plan cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Memory depends on what only a run can tell.
    #[error(
        "PAL0410: {what} depends on data, so the memory is not known before a run; run it with a budget instead, which stops it in time"
    )]
    DependsOnData {
        /// What is not known.
        what: &'static str,
        /// Where.
        span: Span,
    },
    /// The record belongs to another program or to other inputs.
    #[error("PAL0411: the recorded run does not fit the program: {what}")]
    Diverged {
        /// What the walk did not expect.
        what: &'static str,
        /// Where the program was.
        span: Span,
    },
    /// The inputs are not what the program takes.
    #[error("{code}: {message}")]
    Inputs {
        /// The code of the error that a run would give.
        code: &'static str,
        /// Its message.
        message: String,
    },
    /// A loop is to be gone through backwards within fewer bytes than its first state takes.
    #[error(
        "PAL0278: one snapshot of this loop takes {needed} bytes, and its budget is {budget}; allow at least that many"
    )]
    SnapshotOverBudget {
        /// What is allowed.
        budget: u64,
        /// What is needed.
        needed: u64,
        /// The loop.
        span: Span,
    },
    /// The rounds of loops are unlike each other, and a plan would take longer than the run.
    #[error(
        "PAL0414: the rounds of a loop all differ, so a plan would take longer than the run; run it with a budget instead, which stops it in time"
    )]
    TooLong,
    /// Calls are nested deeper than a plan can follow.
    #[error(
        "PAL0413: calls are nested more deeply than {limit}, too deep for a plan; run it with a budget instead, which stops it in time"
    )]
    TooDeep {
        /// The limit.
        limit: usize,
    },
}

impl PlanError {
    /// The code under which the book explains it.
    pub fn code(&self) -> &'static str {
        match self {
            PlanError::DependsOnData { .. } => "PAL0410",
            PlanError::Diverged { .. } => "PAL0411",
            PlanError::Inputs { code, .. } => code,
            PlanError::SnapshotOverBudget { .. } => "PAL0278",
            PlanError::TooDeep { .. } => "PAL0413",
            PlanError::TooLong => "PAL0414",
        }
    }
}

/// How much longer the logs of a loop get in each round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// The loop.
    pub span: Span,
    /// How often it runs.
    pub rounds: u64,
    /// Bytes of residuals in each round.
    pub bytes_per_round: u64,
}

/// What a sweep keeps in snapshots at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshots {
    /// The loop.
    pub span: Span,
    /// Its rounds.
    pub rounds: u64,
    /// How many there are.
    pub count: u64,
    /// The bytes of the numbers of all of them, which have a buffer of their own.
    pub scalar_bytes: u64,
    /// The bytes of the arrays of one of them. Those that a round leaves alone are shared.
    pub array_bytes: u64,
}

impl Snapshots {
    /// The bytes of all of them, if nothing is shared.
    pub fn bytes(&self) -> u64 {
        self.scalar_bytes.saturating_add(self.count.saturating_mul(self.array_bytes))
    }
}

/// Copies that an update makes because something else still needs the old array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The function and the new array.
    pub value: (FuncId, Value),
    /// The update.
    pub span: Span,
    /// What still needs the old array.
    pub because: Because,
    /// How often it copies.
    pub times: u64,
    /// How many elements in all.
    pub elements: u64,
}

/// An array that is live at the peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveArray {
    /// The function and the value it holds; nothing for an input that no value names yet.
    pub value: Option<(FuncId, Value)>,
    /// What its elements are.
    pub elem: Elem,
    /// Its bytes, with the room that a log has left.
    pub bytes: u64,
}

/// What a run will need.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The bytes of a real number for which it was made.
    pub real_bytes: usize,
    /// The most bytes of arrays that are live at once.
    pub peak: u64,
    /// The most bytes in all, which is what a budget is about: arrays, what describes them, registers,
    /// snapshots, the copies of results.
    pub heap: u64,
    /// Whether a run takes exactly that; otherwise it is a bound, and a run may take less: branches depend on
    /// data, or [`Prediction::is_quick`].
    pub exact: bool,
    /// Whether rounds of loops that are unlike each other were taken for alike, because to follow each of
    /// them would take longer than the run.
    pub is_quick: bool,
    /// How many arrays it makes.
    pub allocations: u64,
    /// About how much it computes, in additions; for comparisons between programs.
    pub work: f64,
    /// The instruction at which the peak is reached, by its first result; nothing while inputs are read or
    /// results given.
    pub peak_at: Option<(FuncId, Value)>,
    /// What is live at the peak, oldest first; the latest may have no value yet.
    pub live: Vec<LiveArray>,
    /// The most elements that each array has.
    pub elements: BTreeMap<(FuncId, Value), u64>,
    /// The lengths of each array when it has the most elements, where all are known.
    pub shapes: BTreeMap<(FuncId, Value), Vec<u64>>,
    /// Loops that keep something in each round.
    pub growth: Vec<Growth>,
    /// Loops that keep some snapshots and compute the other states again; of one that runs several times, the
    /// most.
    pub snapshots: Vec<Snapshots>,
    /// Updates that copy.
    pub copies: Vec<Copied>,
}

/// Predicts the memory of a run with inputs of these shapes, on numbers of `real_bytes` bytes (8 for `f64`).
///
/// # Errors
/// If a length, a number of rounds or the depth of a recursion depends on data, or if the inputs are not what
/// the program takes.
pub fn predict<R>(
    program: &Program,
    inputs: &[Datum<R>],
    real_bytes: usize,
) -> Result<Prediction, PlanError> {
    predicted(program, inputs, real_bytes, None, &Effort::unlimited())
}

/// Predicts the memory of a run that makes the same decisions as a recorded one.
///
/// # Errors
/// If the record is not one of this program.
pub fn predict_recorded<R>(
    program: &Program,
    inputs: &[Datum<R>],
    real_bytes: usize,
    events: &[Event],
) -> Result<Prediction, PlanError> {
    predicted(program, inputs, real_bytes, Some(events), &Effort::unlimited())
}

fn predicted<R>(
    program: &Program,
    inputs: &[Datum<R>],
    real_bytes: usize,
    events: Option<&[Event]>,
    effort: &Effort,
) -> Result<Prediction, PlanError> {
    let (walk, mut prediction) = walked(program, inputs, real_bytes, events, effort)?;
    // Once more, up to the peak, to see what is live there.
    let mut again = walk.again_to_the_peak();
    let ended = again.run(inputs);
    effort.spend(again.effort);
    done(ended)?;
    prediction.peak_at = again.running;
    let live = again.ledger().survivors().into_iter();
    prediction.live = live
        .map(|buffer| LiveArray { value: buffer.value, elem: buffer.elem, bytes: buffer.bytes })
        .collect();
    Ok(prediction)
}

/// Walks once: everything but what is live at the peak. Exactly, or, where that would take longer than the
/// run, for a bound.
fn walked<'p, R>(
    program: &'p Program,
    inputs: &[Datum<R>],
    real_bytes: usize,
    events: Option<&'p [Event]>,
    effort: &Effort,
) -> Result<(Walk<'p>, Prediction), PlanError> {
    let mut walk = Walk::new(program, real_bytes, events).dividing(effort.of_a_walk());
    let mut ended = walk.run(inputs);
    effort.spend(walk.effort);
    if matches!(ended, Err(Stop::TooLong)) {
        walk = walk.walked_again().bounding();
        ended = walk.run(inputs);
        effort.spend(walk.effort);
    }
    done(ended)?;
    let prediction = Prediction {
        real_bytes,
        peak: walk.ledger().peak,
        heap: walk.ledger().heap,
        exact: walk.exact,
        is_quick: walk.forgot,
        allocations: walk.ledger().allocations,
        work: walk.ledger().work,
        peak_at: None,
        live: Vec::new(),
        elements: walk.most.clone(),
        shapes: walk.shapes.clone(),
        growth: walk.growth.values().copied().collect(),
        snapshots: walk.snapshots.values().copied().collect(),
        copies: walk.copies.values().copied().collect(),
    };
    Ok((walk, prediction))
}

fn done(walked: Result<(), Stop>) -> Result<(), PlanError> {
    match walked {
        Err(Stop::Problem(problem)) => Err(problem),
        Err(Stop::TooLong) => Err(PlanError::TooLong),
        Ok(()) | Err(Stop::Reached) => Ok(()),
    }
}
