//! Which budgets a refusal may name: from the least that does to what keeps everything.

use palinode_core::Budget;
use palinode_ir::Program;
use palinode_ir::interp::Datum;
use palinode_ir::plan::FittedGradient;

use crate::gradient::Forward;
use crate::model::Loaded;
use crate::problem::{Exit, Problem};
use crate::session::Session;
use crate::storage::{
    Asked, Beside, amount, at_peak, compact, exact_size, handy, price, size, to_type, values,
};

/// Which budgets do. Only what was planned, for all that the command does, is named.
pub(crate) struct Ladder<'a> {
    pub(crate) asked: &'a Asked,
    pub(crate) program: &'a Program,
    pub(crate) wrt: &'a [usize],
    pub(crate) inputs: &'a [Datum<f64>],
    pub(crate) also: Also<'a>,
}

/// What a command does within the budget besides values, gradient and looks to the sides.
#[derive(Clone, Copy)]
pub(crate) struct Also<'a> {
    /// The smallest budget for it, given what the values take; none if nobody knows.
    pub(crate) bytes: &'a dyn Fn(u64) -> Option<u64>,
    /// What needs that, where it is more than value and gradient need: "... need at least".
    pub(crate) needed_by: &'static str,
    /// Who needs less then: "... needs 3 KiB less".
    pub(crate) without: &'static str,
    /// Whether the command runs the gradient as it is planned, so that its work is known.
    pub(crate) is_as_planned: bool,
}

impl Also<'_> {
    pub(crate) const NOTHING: Also<'static> =
        Also { bytes: &|_| Some(0), needed_by: "", without: "", is_as_planned: true };
}

/// The smallest budget, and of what it is made.
pub(crate) struct Least {
    pub(crate) bytes: u64,
    /// So much less would do without looks to the sides, and without what the command does besides.
    sides: u64,
    also: u64,
    /// Whether it is the gradient that needs it.
    is_for_gradient: bool,
    fitted: FittedGradient,
}

impl Ladder<'_> {
    /// A plan of the gradient within so many bytes, beside a look to the sides.
    fn plan(&self, bytes: u64) -> Option<FittedGradient> {
        let room = usize::try_from(bytes.checked_sub(self.asked.beside.sides)?).unwrap_or(usize::MAX);
        self.asked.fit(self.program, self.wrt, self.inputs, Budget::from(room)).ok()
    }

    /// The smallest budget for all that the command does; none if it cannot be planned.
    pub(crate) fn least(&self) -> Option<Least> {
        let fitted = self.asked.smallest(self.program, self.wrt, self.inputs).ok()?;
        let smallest = fitted.prediction.heap;
        let of_values = values(self.program, self.inputs, 0).heap?;
        let Beside { sides, .. } = self.asked.beside;
        let both = smallest.max(of_values);
        let (with_sides, also) = (both.saturating_add(sides), (self.also.bytes)(of_values)?);
        let bytes = with_sides.max(also);
        // With more bytes less may be computed again.
        let fitted = if bytes - sides > smallest { self.plan(bytes)? } else { fitted };
        let (sides, also) = (bytes - both.max(also), bytes - with_sides);
        Some(Least { bytes, sides, also, is_for_gradient: also == 0 && smallest >= of_values, fitted })
    }

    /// Forward mode and the bytes for it, if it may be taken and these are known.
    pub(crate) fn forwards(&self) -> Option<(Forward, u64)> {
        let may = self.asked.may_go_forwards;
        may.then(|| Forward::planned(self.program, self.wrt, self.inputs)).flatten()
    }

    /// The smallest budget for forward mode, if that may be taken and is less than this.
    fn least_forwards(&self, below: u64) -> Option<u64> {
        let (_, bytes) = self.forwards()?;
        let of_values = values(self.program, self.inputs, 0).heap?;
        let least = bytes.max(of_values).saturating_add(self.asked.beside.sides);
        (least < below).then_some(least)
    }

    /// A budget that is too small, and which are not.
    pub(crate) fn refused(&self, budget: Budget, loaded: &Loaded, session: &Session) -> Problem {
        let Some(least) = self.least() else {
            let message = format!("{budget} is not enough for value and gradient");
            return Problem::new("PAL0412", Exit::Input, message)
                .help("give it more; `palinode memory` shows what takes it");
        };
        let forwards = self.least_forwards(least.bytes);
        let needs = exact_size(forwards.unwrap_or(least.bytes));
        let what = if least.also > 0 { self.also.needed_by } else { "value and gradient" };
        let message = format!("{budget} is not enough: {what} need at least {needs}");
        let mut problem = Problem::new("PAL0412", Exit::Input, message);
        // Nothing has been run, so nobody knows whether a comparison will be a tie.
        if least.sides > 0 {
            problem = problem.note(format!(
                "{} of it are for a look to the sides, should a comparison be a tie; --accept-points does without",
                size(least.sides)
            ));
        }
        if least.also > 0 {
            problem = problem.note(format!("{} needs {} less", self.also.without, size(least.also)));
        }
        if least.is_for_gradient
            && forwards.is_none()
            && let Some(words) = at_peak(&least.fitted.program, &least.fitted.prediction, loaded, session)
        {
            problem = problem.note(words);
        }
        let works = self.what_works(&least);
        problem.help(match forwards {
            Some(bytes) => format!("--budget {} works in forward mode; {works}", to_type(bytes)),
            None => works,
        })
    }

    /// A comparison was a tie, and there is no room to look to its sides.
    pub(crate) fn no_room_for_sides(&self, budget: Budget) -> Problem {
        let what = "a comparison of the model is a tie, and";
        let Some(least) = self.least() else {
            let message = format!("{budget} is not enough: {what} there is no room to look to its sides");
            return Problem::new("PAL0412", Exit::Input, message)
                .help("give it more; --accept-points takes the derivative as it is");
        };
        let needs = exact_size(least.bytes);
        let message = format!("{budget} is not enough: {what} to look to its sides needs at least {needs}");
        let works = to_type(least.bytes);
        Problem::new("PAL0412", Exit::Input, message)
            .help(format!("--budget {works} works; --accept-points takes the derivative as it is"))
    }

    /// Budgets that do, and what they cost.
    fn what_works(&self, least: &Least) -> String {
        if least.also > 0 || !self.also.is_as_planned {
            return format!("--budget {} works", to_type(least.bytes));
        }
        let smallest = &least.fitted;
        let most = (smallest.store_all.bytes() as u64).saturating_add(self.asked.beside.sides);
        let least = handy(least.bytes);
        let most = handy(most).max(least);
        let between = handy((least.bytes() as f64 * most.bytes() as f64).sqrt() as u64);
        // What fits into the least fits into a little more.
        let mut words = vec![format!("--budget {} works {}", compact(least), price(smallest))];
        if between > least
            && between < most
            && let Some(fitted) = self.plan(between.bytes() as u64)
            && amount(fitted.overhead) != amount(smallest.overhead)
        {
            words.push(format!("{} {}", compact(between), price(&fitted)));
        }
        if most > least && self.plan(most.bytes() as u64).is_some_and(|fitted| fitted.keeps_everything()) {
            words.push(format!("{} keeps everything", compact(most)));
        }
        words.join("; ")
    }
}
