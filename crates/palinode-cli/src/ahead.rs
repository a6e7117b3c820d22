//! What is planned before the first run of a gradient: itself, the values before it, and looks to the sides of a tie.
//!
//! `grad`, `memory` and `loop` plan here and nowhere else, so that they refuse the same budgets, and a budget that one of them names works with `grad`.

use std::rc::Rc;

use palinode_core::Budget;
use palinode_ir::Program;
use palinode_ir::interp::{Code, Datum};
use palinode_ir::plan::{FitError, FittedGradient, PlanError};

use crate::execute;
use crate::gradient::Forward;
use crate::ladder::Ladder;
use crate::model::Loaded;
use crate::problem::{Exit, Problem};
use crate::session::Session;
use crate::sides::Room;
use crate::storage::{Asked, Beside, no_fit, values};

/// How a gradient stays within a budget.
pub(crate) enum Within {
    /// There is none.
    AnyMemory,
    /// A program that takes less. It is made ready before the first run, so that it is held beside the budget.
    Planned { budget: Budget, fitted: Rc<FittedGradient>, code: Rc<Code> },
    /// Forward mode, because reverse mode has no room.
    Forwards { budget: Budget, forward: Rc<Forward>, bytes: u64 },
    /// Memory depends on data: the run is stopped before the first byte beyond.
    Stopping { budget: Budget, why: PlanError },
}

impl Within {
    /// Plans a gradient as asked.
    pub(crate) fn plan(
        asked: &Asked,
        program: &Program,
        wrt: &[usize],
        inputs: &[Datum<f64>],
    ) -> Result<Within, FitError> {
        let Some(budget) = asked.budget else { return Ok(Within::AnyMemory) };
        match asked.fit(program, wrt, inputs, budget) {
            Ok(fitted) => Ok(Within::planned(budget, fitted)),
            // More for the whole model does not help a loop that says what it may keep.
            Err(FitError::Plan(why)) if !matches!(why, PlanError::SnapshotOverBudget { .. }) => {
                Ok(Within::Stopping { budget, why })
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn planned(budget: Budget, fitted: FittedGradient) -> Within {
        let code = Rc::new(Code::new(&fitted.program));
        Within::Planned { budget, fitted: Rc::new(fitted), code }
    }
}

/// All that is planned.
pub(crate) struct Ahead {
    pub(crate) within: Within,
    /// The program of the values.
    pub(crate) values: Program,
    /// What runs to the sides of a tie may take.
    pub(crate) room: Room,
}

impl Ahead {
    /// Plans as the ladder asks; refuses if no plan fits.
    pub(crate) fn plan(session: &Session, loaded: &Loaded, ladder: &Ladder<'_>) -> Result<Ahead, Problem> {
        let &Ladder { asked, program, wrt, inputs, .. } = ladder;
        let within = match Within::plan(asked, program, wrt, inputs) {
            Ok(within) => within,
            Err(FitError::TooSmall { budget, .. }) => match ladder.forwards() {
                Some((forward, bytes)) if bytes <= budget.bytes() as u64 => {
                    Within::Forwards { budget, forward: Rc::new(forward), bytes }
                }
                _ => return Err(ladder.refused(budget, loaded, session)),
            },
            Err(other) => return Err(no_fit(&other, loaded)),
        };
        let Some(budget) = asked.budget else {
            let room = Room::Within { gradient: Within::AnyMemory, left: usize::MAX };
            return Ok(Ahead { within, values: execute::simplified(program), room });
        };
        let Beside { sides, check } = asked.beside;
        // One program of the values beside a look to the sides, too, if that is possible.
        let rooms = [sides.max(check), check].map(|beside| (budget.bytes() as u64).checked_sub(beside));
        let mut found = values(program, inputs, rooms[0].unwrap_or(0));
        let room = Room::plan(asked, &within, found.heap, (program, wrt, inputs));
        let fits = |heap: Option<u64>, room: Option<u64>| {
            room.is_some_and(|room| heap.is_none_or(|heap| heap <= room))
        };
        if !fits(found.heap, rooms[0]) {
            found = values(program, inputs, rooms[1].unwrap_or(0));
        }
        if fits(found.heap, rooms[1]) {
            return Ok(Ahead { within, values: found.program, room });
        }
        Err(match within {
            Within::Stopping { .. } => values_do_not_fit(budget, check),
            _ => ladder.refused(budget, loaded, session),
        })
    }
}

/// The values do not fit, and what the gradient takes depends on data.
fn values_do_not_fit(budget: Budget, check: u64) -> Problem {
    let what = match check {
        0 => "for the values alone",
        _ => "for the values that --check computes, and what it holds beside them",
    };
    Problem::new("PAL0412", Exit::Input, format!("{budget} is not enough {what}"))
        .note("how much the gradient takes depends on data, so it is not known before a run")
        .help("give it more: a run is stopped before the first byte too many; without --budget it says what it took")
}
