//! One file per command: arguments -> an answer, or why there is none.

pub(crate) mod check;
pub(crate) mod fmt;
pub(crate) mod grad;
pub(crate) mod help;
pub(crate) mod hessian;
pub(crate) mod ir;
pub(crate) mod jvp;
pub(crate) mod run;
pub(crate) mod tape;

use palinode_ir::interp::{Code, Datum, Limits};

use crate::args::ShowArgs;
use crate::execute::{self, Cost, Ran};
use crate::model::Loaded;
use crate::numbers::{self, Look};
use crate::problem::{Failed, Problem};
use crate::progress::Progress;
use crate::table::{STRONG, styled};

impl ShowArgs {
    pub(crate) fn look(&self) -> Look {
        Look { digits: usize::from(self.digits), full: self.full }
    }
}

/// Runs the model itself, every output, so that what is wrong with it is found where it is written.
pub(crate) fn run_model(loaded: &Loaded, inputs: &[Datum<f64>], limits: &Limits) -> Result<Ran, Failed> {
    let code = Code::new(&loaded.model.program);
    let _progress = Progress::start("running", 1);
    execute::run(&code, inputs, limits).map_err(|error| Problem::from_run(&error, loaded.file).into())
}

/// `2,000 steps in 0.31 ms`.
pub(crate) fn effort(cost: Cost) -> String {
    let steps =
        if cost.steps == 0 { String::new() } else { format!("{} in ", numbers::plural(cost.steps, "step")) };
    format!("{steps}{}", numbers::time(cost.seconds))
}

/// A result and, to the right, what it took.
pub(crate) fn headline(result: &str, cost: Cost) -> String {
    let gap = " ".repeat(48_usize.saturating_sub(result.chars().count()).max(3));
    format!("{}{gap}{}\n", styled(STRONG, result), effort(cost))
}
