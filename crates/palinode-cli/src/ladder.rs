//! Budgets that are too small, in words: what needs more, and which budgets work.

use palinode_core::Budget;
use palinode_ir::plan::{Ahead, FittedGradient, Ladder, Least, Unplanned};

use crate::explain;
use crate::model::Loaded;
use crate::numbers::size;
use crate::problem::{Exit, Problem};
use crate::session::Session;
use crate::storage::{amount, at_peak, compact, exact_size, price, to_type};

/// What a command does within the budget besides values, gradient and the comparison of both sides.
#[derive(Clone, Copy)]
pub(crate) struct Also {
    /// What needs more than value and gradient, if it does: "... need at least".
    pub(crate) needed_by: &'static str,
    /// Who needs less then: "... needs 3 KiB less".
    pub(crate) without: &'static str,
    /// Whether the command runs the gradient as it is planned, so that its work is known.
    pub(crate) is_as_planned: bool,
}

impl Also {
    pub(crate) const NOTHING: Also = Also { needed_by: "", without: "", is_as_planned: true };
}

/// Plans and refusals of one command.
pub(crate) struct Planner<'a> {
    pub(crate) ladder: Ladder<'a>,
    pub(crate) also: Also,
    pub(crate) loaded: &'a Loaded,
    pub(crate) session: &'a Session,
}

impl Planner<'_> {
    /// Plans what is asked; refuses if no plan fits.
    pub(crate) fn plan(&self) -> Result<Ahead, Problem> {
        let Ladder { asked, of, .. } = self.ladder;
        Ahead::plan(asked, of).map_err(|error| match error {
            Unplanned::NoGradient(error) => explain::fit(&error, self.loaded),
            Unplanned::TooSmall(budget) => self.too_small(budget),
            Unplanned::TooSmallForValues(budget) => {
                let what = match asked.beside.check {
                    0 => "for the values alone",
                    _ => "for the values that --check computes, and what it holds beside them",
                };
                not_enough(budget, what)
                    .note("how much the gradient takes depends on data, so it is not known before a run")
                    .help("raise it: a run stops before it exceeds the budget; without --budget the answer says how much it took")
            }
        })
    }

    /// A budget that is too small, and which are not.
    pub(crate) fn too_small(&self, budget: Budget) -> Problem {
        let Some(least) = self.ladder.least() else {
            return not_enough(budget, "for value and gradient")
                .help("raise the budget; `palinode memory` shows what needs it");
        };
        let needs = exact_size(least.forwards.unwrap_or(least.bytes));
        let what = if least.also > 0 { self.also.needed_by } else { "value and gradient" };
        let message = format!("{budget} is not enough: {what} need at least {needs}");
        let mut problem = Problem::new("PAL0412", Exit::Input, message);
        // Nothing has been run, so nobody knows whether a comparison will be a tie.
        if least.sides > 0 {
            problem = problem.note(format!(
                "{} of it are for comparing both sides of a tie, should there be one; --accept-points does without",
                size(least.sides)
            ));
        }
        if least.also > 0 {
            problem = problem.note(format!("{} needs {} less", self.also.without, size(least.also)));
        }
        let FittedGradient { program, prediction, .. } = &least.fitted;
        if least.is_for_gradient
            && least.forwards.is_none()
            && let Some(words) = at_peak(program, prediction, self.loaded, self.session)
        {
            problem = problem.note(words);
        }
        let works = self.what_works(&least);
        problem.help(match least.forwards {
            Some(bytes) => format!("--budget {} works in forward mode; {works}", to_type(bytes)),
            None => works,
        })
    }

    /// A comparison was a tie, and the budget is too small to compare both sides.
    pub(crate) fn too_small_for_sides(&self, budget: Budget) -> Problem {
        let what = "a comparison of the model is a tie, and";
        let Some(least) = self.ladder.least() else {
            let message = format!("{budget} is not enough: {what} comparing both sides does not fit");
            return Problem::new("PAL0412", Exit::Input, message)
                .help("raise the budget; --accept-points accepts the derivative as it is");
        };
        let needs = exact_size(least.bytes);
        let message = format!("{budget} is not enough: {what} comparing both sides needs at least {needs}");
        let works = to_type(least.bytes);
        Problem::new("PAL0412", Exit::Input, message)
            .help(format!("--budget {works} works; --accept-points accepts the derivative as it is"))
    }

    /// Budgets that do, and what they cost.
    fn what_works(&self, least: &Least) -> String {
        let works = format!("--budget {} works", to_type(least.bytes));
        if least.also > 0 || !self.also.is_as_planned {
            return works;
        }
        // What fits into the least fits into a little more.
        let mut words = vec![format!("{works} {}", price(&least.fitted))];
        let work = amount(least.fitted.overhead);
        let above = self.ladder.above(least, &|fitted| amount(fitted.overhead) != work);
        words.extend(above.iter().map(|one| match one.is_all {
            true => format!("{} keeps everything", compact(one.budget)),
            false => format!("{} {}", compact(one.budget), price(&one.fitted)),
        }));
        words.join("; ")
    }
}

fn not_enough(budget: Budget, what: &str) -> Problem {
    Problem::new("PAL0412", Exit::Input, format!("{budget} is not enough {what}"))
}
