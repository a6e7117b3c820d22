//! Why programs were not run, differentiated or planned as asked: errors of the libraries -> problems, with
//! places in the model.

use palinode_core::Error;
use palinode_ir::interp::{RunError, RunErrorKind};
use palinode_ir::plan::{FitError, PlanError};
use palinode_ir::transform::TransformError;
use palinode_ir::{Function, Span};

use crate::gradient::NoGradient;
use crate::model::Loaded;
use crate::problem::{Exit, Failed, Problem};
use crate::reserve::MEMORY;
use crate::sources::FileId;
use crate::{numbers, storage};

/// The function of the model that a place is in, which may have been put into others to run; none for the
/// model itself.
fn function_of(place: Span, loaded: &Loaded) -> Option<&str> {
    let program = &loaded.model.program;
    let holds = |function: &&Function| {
        let mut found = false;
        function.body.for_each_inst(&mut |inst| found |= inst.span == place);
        found
    };
    let mut holders = program.functions.iter().filter(holds);
    let function = holders.next().filter(|_| !place.is_none())?;
    // Functions with a point in their name are not the user's.
    let is_own = !std::ptr::eq(function, program.main()) && !function.name.contains('.');
    is_own.then_some(&*function.name)
}

/// What stopped a run.
pub(crate) fn run(error: &RunError, loaded: &Loaded) -> Problem {
    let file = loaded.file;
    if let RunErrorKind::SnapshotOverBudget { budget, needed } = error.kind {
        return loop_budget(budget, needed, error.span, Exit::Run, loaded);
    }
    let text = error.kind.to_string();
    // The interpreter says what happened and, after the last semicolon, what to do.
    let (message, help) = match text.rsplit_once("; ") {
        Some((message, help)) => (message.to_string(), Some(help.to_string())),
        None => (text, None),
    };
    let (message, help) = match &error.kind {
        RunErrorKind::NonFinite { operation, result } => (
            format!("{operation} gives {}", numbers::plain(*result)),
            Some("keep the operands inside the domain, or allow it with --allow-nonfinite".to_string()),
        ),
        RunErrorKind::StepLimit { limit } => (
            format!("stopped after {} loop rounds and calls", numbers::count(*limit)),
            Some(
                "if the loop does end, allow more with --max-rounds; otherwise look at its condition"
                    .to_string(),
            ),
        ),
        RunErrorKind::OverBudget { budget, live, needed, .. } => {
            let needed = live.saturating_add(*needed);
            let given = numbers::bytes(*budget);
            // To the byte: a rounded number may be below what is needed.
            let needs = format!("{} bytes", numbers::count(needed as u64));
            (
                format!("{given} is not enough: the run needs {needs} here, and perhaps more later"),
                Some(
                    "no plan could be made for this run, so the smallest budget is not known: double it until it runs; `palinode memory` shows what needs it"
                        .to_string(),
                ),
            )
        }
        RunErrorKind::DepthLimit { limit } => (
            format!("calls are nested more deeply than {}", numbers::count(u64::from(*limit))),
            Some("a recursion may not end; look at the condition that stops it".to_string()),
        ),
        _ => (message, help),
    };
    let mut problem = Problem::new(error.code(), Exit::Run, message).maybe_help(help);
    if !error.span.is_none() {
        let words = match error.kind {
            RunErrorKind::StepLimit { .. } => "it was here when it was stopped",
            _ => "",
        };
        problem = problem.at(file, error.span.range(), words);
    }
    match function_of(error.span, loaded) {
        Some(name) => problem.note(format!("it happened in the function `{name}`")),
        None => problem,
    }
}

/// A snapshot of a loop does not fit into what its header allows.
fn loop_budget(budget: u64, needed: u64, of: Span, exit: Exit, loaded: &Loaded) -> Problem {
    let (has, needs) = (numbers::size(budget), storage::exact_size(needed));
    let message = format!("{has} is not enough for this loop: one snapshot takes {needs}");
    let problem = Problem::new("PAL0278", exit, message);
    let least = storage::to_type(needed);
    match loaded.model.budgets.iter().find(|written| written.of == of) {
        Some(written) => problem
            .at(loaded.file, written.span.range(), "the budget of this loop, which --budget does not change")
            .help(format!(
                "write `budget {least}`, which keeps one snapshot, or more; with more, less is recomputed"
            )),
        None if of.is_none() => problem.help(format!("allow at least {least}")),
        None => problem.at(loaded.file, of.range(), "").help(format!("allow at least {least}")),
    }
}

/// Why a program cannot be differentiated as asked.
pub(crate) fn transform(error: &TransformError, file: FileId) -> Problem {
    let (code, span) = match error {
        TransformError::NoSuchArgument { .. } => ("PAL0270", Span::NONE),
        TransformError::NotReal { .. } => ("PAL0271", Span::NONE),
        TransformError::NotScalar { .. } => ("PAL0272", Span::NONE),
        TransformError::NotLinear { span, .. } => ("PAL0273", *span),
        _ => ("PAL0299", Span::NONE),
    };
    let text = error.to_string();
    let message = text.strip_prefix(&format!("{code}: ")).unwrap_or(&text);
    let problem = Problem::new(code, Exit::Input, message);
    if span.is_none() { problem } else { problem.at(file, span.range(), "") }
}

/// Why there is no gradient as asked, if not for want of bytes.
pub(crate) fn fit(error: &FitError, loaded: &Loaded) -> Problem {
    match error {
        FitError::Transform(error) => transform(error, loaded.file),
        FitError::Plan(error) => plan(error, loaded),
        other => Problem::new(other.code(), Exit::Input, other.to_string()),
    }
}

/// Why memory is not known beforehand.
pub(crate) fn plan(error: &PlanError, loaded: &Loaded) -> Problem {
    if let &PlanError::SnapshotOverBudget { budget, needed, span } = error {
        return loop_budget(budget, needed, span, Exit::Input, loaded);
    }
    let (message, span, help) = match error {
        PlanError::DependsOnData { what, span } => (
            format!("{what} depends on data, so the memory is not known before a run"),
            *span,
            "`palinode grad --budget` stops such a run in time",
        ),
        PlanError::TooDeep { .. } => (
            sentence(&error.to_string()).to_string(),
            Span::NONE,
            "write the recursion as a loop; `palinode grad --budget` stops such a run in time",
        ),
        other => (
            sentence(&other.to_string()).to_string(),
            Span::NONE,
            "`palinode grad --budget` stops such a run in time",
        ),
    };
    let problem = Problem::new(error.code(), Exit::Input, message).help(help);
    if span.is_none() { problem } else { problem.at(loaded.file, span.range(), "") }
}

/// What an error says happened: between its code and what to do.
fn sentence(text: &str) -> &str {
    let text = text.split_once(": ").map_or(text, |(_, rest)| rest);
    text.split_once("; ").map_or(text, |(first, _)| first)
}

/// Why there is no gradient although the model ran.
pub(crate) fn gradient(error: NoGradient, loaded: &Loaded) -> Failed {
    match error {
        NoGradient::Transform(error) => transform(&error, loaded.file).into(),
        NoGradient::Run(error) => {
            let mut problem = run(&error, loaded);
            if matches!(error.kind, RunErrorKind::NonFinite { .. }) {
                problem.code = "PAL0293";
                problem.message = format!("the model runs, but its derivative does not: {}", problem.message);
                problem.help = Some(
                    "the function has no finite slope here; move the inputs away, or see it with --allow-nonfinite"
                        .to_string(),
                );
            }
            if matches!(error.kind, RunErrorKind::TooLarge { .. }) {
                // Half of what there was leaves memory for the rest of the machine.
                let half = storage::to_type(MEMORY.peak_usage() as u64 / 2);
                problem.help =
                    Some(format!("keep less and recompute it, `--budget {half}`; or check the lengths"));
            }
            problem.into()
        }
        NoGradient::NotFinite(x) => {
            let message = format!("the model runs, but a derivative is {}", numbers::plain(x));
            Problem::new("PAL0293", Exit::Run, message)
                .note("no operation on finite numbers made it: the model contains or was given an infinity or NaN")
                .help("use large finite numbers instead, or see it with --allow-nonfinite")
                .into()
        }
        NoGradient::OfPoint(Error::OfPointAlone { decision, left, right }) => {
            let message = format!(
                "the derivative may be valid at these inputs only, because of comparison {decision} of the model ({left:?} with {right:?}); it cannot be computed near them"
            );
            Problem::new("PAL0119", Exit::Run, message)
                .help("move the inputs a little; --accept-points accepts it as it is")
                .into()
        }
        NoGradient::OfPoint(Error::OfPoint { decision, left, right, part, here, sides }) => {
            let coincide = left.is_nan() && right.is_nan();
            let (message, help) = if coincide {
                (
                    "the derivative is valid at these inputs only: eigenvalues or singular values coincide here, but not near them".to_string(),
                    "use what does not depend on their order and on single vectors (sums over all values, `v @ diag(f(w)) @ v'`), or move the inputs a little; --accept-points accepts it as it is",
                )
            } else {
                (
                    format!(
                        "the derivative is valid at these inputs only: comparison {decision} of the model, {left:?} with {right:?}, comes out differently near them"
                    ),
                    "write the model without that shortcut, or move the inputs a little; --accept-points accepts it as it is",
                )
            };
            let [below, above] = sides.map(|side| numbers::short(side, 6));
            let here = numbers::short(here, 6);
            Problem::new("PAL0119", Exit::Run, message)
                .note(format!(
                    "entry {} of the derivative is {here} here, and {below} and {above} on the two sides",
                    part + 1
                ))
                .help(help)
                .into()
        }
        NoGradient::TooSmallForSides => {
            let message =
                "a comparison of the model is a tie, and the budget is too small to compare both sides";
            let help = "raise the budget; --accept-points accepts the derivative as it is";
            Problem::new("PAL0412", Exit::Run, message).help(help).into()
        }
        NoGradient::OfPoint(error) => Problem::new(error.code(), Exit::Run, error.to_string()).into(),
    }
}
