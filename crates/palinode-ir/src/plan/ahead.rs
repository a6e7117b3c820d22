//! What is planned before the first run of a gradient: itself, the values before it, and looks at both sides
//! of a tie.
//!
//! Whoever computes gradients within a budget plans here and nowhere else, so that all refuse the same
//! budgets, and a budget that one refusal names works everywhere.

use std::rc::Rc;

use palinode_core::Budget;

use crate::interp::Code;
use crate::plan::asked::{Asked, Beside, Target, less, simplified, values};
use crate::plan::forward::Forward;
use crate::plan::{FitError, FittedGradient, PlanError};
use crate::program::Program;

/// How a gradient stays within a budget.
#[derive(Clone)]
pub enum Within {
    /// There is none.
    AnyMemory,
    /// A program that takes less.
    Planned {
        /// The budget.
        budget: Budget,
        /// What was chosen.
        fitted: Rc<FittedGradient>,
        /// Made ready before the first run, so that it is held beside the budget.
        code: Rc<Code>,
    },
    /// Forward mode, because reverse mode takes more.
    Forwards {
        /// The budget.
        budget: Budget,
        /// Made ready.
        forward: Rc<Forward>,
        /// What it takes.
        bytes: u64,
    },
    /// Memory depends on data: the run is stopped before the first byte beyond.
    Stopping {
        /// The budget.
        budget: Budget,
        /// On what it depends.
        why: PlanError,
    },
}

impl Within {
    /// Plans a gradient as asked.
    ///
    /// # Errors
    /// If there is no gradient, or none within the budget.
    pub fn plan(asked: &Asked, of: Target<'_>) -> Result<Within, FitError> {
        let Some(budget) = asked.budget else { return Ok(Within::AnyMemory) };
        match asked.fit(of, budget) {
            Ok(fitted) => Ok(Within::planned(budget, fitted, asked)),
            // More for the whole program does not help a loop that says what it may keep.
            Err(FitError::Plan(why)) if !matches!(why, PlanError::SnapshotOverBudget { .. }) => {
                Ok(Within::Stopping { budget, why })
            }
            Err(error) => Err(error),
        }
    }

    fn planned(budget: Budget, fitted: FittedGradient, asked: &Asked) -> Within {
        let code = Rc::new(Code::on(&asked.engine, &fitted.program));
        Within::Planned { budget, fitted: Rc::new(fitted), code }
    }

    /// The budget, if there is one.
    pub fn budget(&self) -> Option<Budget> {
        match self {
            Within::AnyMemory => None,
            Within::Planned { budget, .. }
            | Within::Forwards { budget, .. }
            | Within::Stopping { budget, .. } => Some(*budget),
        }
    }
}

/// What gradients on both sides of a tie may take.
pub enum Sides {
    /// A gradient beside what is kept, and bytes that are left over.
    Within {
        /// The gradient.
        gradient: Within,
        /// The bytes.
        left: usize,
    },
    /// Too little.
    TooSmall,
}

impl Sides {
    const ANY: Sides = Sides::Within { gradient: Within::AnyMemory, left: usize::MAX };

    /// Plans the gradients on both sides, beside what is kept; `values` is what the values take.
    fn plan(asked: &Asked, here: &Within, values: Option<u64>, of: Target<'_>) -> Sides {
        let Some(budget) = here.budget() else { return Sides::ANY };
        let budget = less(budget, asked.beside.sides);
        let (gradient, bytes) = match here {
            Within::AnyMemory => return Sides::ANY,
            Within::Stopping { why, .. } => {
                // Nobody knows what the gradient takes: a part of the budget is for logs.
                let left = budget.bytes() / 16;
                let gradient = Within::Stopping { budget: less(budget, left as u64), why: why.clone() };
                return Sides::Within { gradient, left };
            }
            Within::Forwards { forward, bytes, .. } => {
                (Within::Forwards { budget, forward: Rc::clone(forward), bytes: *bytes }, *bytes)
            }
            Within::Planned { fitted, code, .. } if fitted.prediction.heap <= budget.bytes() as u64 => {
                let gradient = Within::Planned { budget, fitted: Rc::clone(fitted), code: Rc::clone(code) };
                (gradient, fitted.prediction.heap)
            }
            Within::Planned { .. } => match asked.fit(of, budget) {
                Ok(fitted) => {
                    let heap = fitted.prediction.heap;
                    (Within::planned(budget, fitted, asked), heap)
                }
                Err(_) => return Sides::TooSmall,
            },
        };
        match (budget.bytes() as u64).checked_sub(bytes.max(values.unwrap_or(0))) {
            Some(left) => Sides::Within { gradient, left: left as usize },
            None => Sides::TooSmall,
        }
    }
}

/// All that is planned.
pub struct Ahead {
    /// The gradient.
    pub within: Within,
    /// The program of the values.
    pub values: Program,
    /// What runs on both sides of a tie may take.
    pub sides: Sides,
}

/// Why nothing could be planned.
pub enum Unplanned {
    /// There is no gradient, or its loops say themselves what they may keep.
    NoGradient(FitError),
    /// The budget is too small for value and gradient.
    TooSmall(Budget),
    /// It is too small for the values alone, and nobody knows what the gradient takes.
    TooSmallForValues(Budget),
}

impl Ahead {
    /// Plans as asked.
    ///
    /// # Errors
    /// If no plan fits; [`Ladder`](crate::plan::Ladder) knows which budgets do.
    pub fn plan(asked: &Asked, of: Target<'_>) -> Result<Ahead, Unplanned> {
        let within = match Within::plan(asked, of) {
            Ok(within) => within,
            Err(FitError::TooSmall { budget, .. }) => match asked.forwards(of) {
                Some((forward, bytes)) if bytes <= budget.bytes() as u64 => {
                    Within::Forwards { budget, forward: Rc::new(forward), bytes }
                }
                _ => return Err(Unplanned::TooSmall(budget)),
            },
            Err(other) => return Err(Unplanned::NoGradient(other)),
        };
        let Some(budget) = asked.budget else {
            return Ok(Ahead { within, values: simplified(of.program), sides: Sides::ANY });
        };
        let Beside { sides, check } = asked.beside;
        // One program of the values beside a look at both sides, too, if that is possible.
        let budgets = [sides.max(check), check].map(|beside| (budget.bytes() as u64).checked_sub(beside));
        let mut found = values(of.program, of.inputs, budgets[0].unwrap_or(0));
        let sides = Sides::plan(asked, &within, found.heap, of);
        let fits = |heap: Option<u64>, budget: Option<u64>| {
            budget.is_some_and(|budget| heap.is_none_or(|heap| heap <= budget))
        };
        if !fits(found.heap, budgets[0]) {
            found = values(of.program, of.inputs, budgets[1].unwrap_or(0));
        }
        if fits(found.heap, budgets[1]) {
            return Ok(Ahead { within, values: found.program, sides });
        }
        Err(match within {
            Within::Stopping { .. } => Unplanned::TooSmallForValues(budget),
            _ => Unplanned::TooSmall(budget),
        })
    }
}

impl Asked {
    /// Forward mode and the bytes for it, if it may be taken and these are known.
    pub(super) fn forwards(&self, of: Target<'_>) -> Option<(Forward, u64)> {
        self.may_go_forwards.then(|| Forward::planned(of, &self.engine)).flatten()
    }
}
