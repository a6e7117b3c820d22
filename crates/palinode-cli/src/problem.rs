//! What went wrong, as data: a code, a message, places in files, and the next step.
//!
//! Input: findings of the front end, the interpreter, the transforms and the command itself. Output: [`Problem`]s, which
//! `render.rs` shows. Nothing here writes anything.

use std::ops::Range;

use palinode_ir::interp::{RunError, RunErrorKind};
use palinode_ir::transform::TransformError;
use palinode_ir::{Diagnostic, Function, Severity, Span};

use crate::model::Loaded;
use crate::sources::FileId;
use crate::storage;

/// The function of the model that a place is in, which may have been put into others to run; none for the model itself.
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

/// With which code the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// The model, or what it was given, is wrong.
    Input = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The model went wrong while it ran.
    Run = 3,
    /// `--check` found a gradient and differences that disagree.
    Check = 4,
    /// The answer could not be written.
    Output = 5,
    /// A mistake of Palinode.
    Bug = 101,
}

/// A place in a file, with a few words.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    pub(crate) file: FileId,
    pub(crate) range: Range<usize>,
    pub(crate) words: String,
}

/// One thing that is wrong.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) code: &'static str,
    pub(crate) severity: Severity,
    pub(crate) exit: Exit,
    pub(crate) message: String,
    /// The first is the place itself, the others explain it.
    pub(crate) labels: Vec<Label>,
    pub(crate) notes: Vec<String>,
    pub(crate) help: Option<String>,
}

/// Why a command stopped. Nothing is said if the answer that was given says it all.
#[derive(Clone, Debug)]
pub(crate) struct Failed(pub(crate) Vec<Problem>);

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Failed {
        Failed(vec![problem])
    }
}

impl Failed {
    /// The code with which the process ends.
    pub(crate) fn exit(&self) -> Exit {
        let errors = self.0.iter().filter(|problem| problem.severity == Severity::Error);
        errors.map(|problem| problem.exit).max().unwrap_or(Exit::Check)
    }
}

impl Problem {
    /// An error without a place.
    pub(crate) fn new(code: &'static str, exit: Exit, message: impl Into<String>) -> Problem {
        Problem {
            code,
            severity: Severity::Error,
            exit,
            message: message.into(),
            labels: Vec::new(),
            notes: Vec::new(),
            help: None,
        }
    }

    /// What may not be as it was meant, but is no error.
    #[must_use]
    pub(crate) fn only_warning(self) -> Problem {
        Problem { severity: Severity::Warning, ..self }
    }

    /// Adds a place.
    #[must_use]
    pub(crate) fn at(mut self, file: FileId, range: Range<usize>, words: impl Into<String>) -> Problem {
        self.labels.push(Label { file, range, words: words.into() });
        self
    }

    /// Adds a cause.
    #[must_use]
    pub(crate) fn note(mut self, note: impl Into<String>) -> Problem {
        self.notes.push(note.into());
        self
    }

    /// Says what to do.
    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }

    /// Says what to do, if there is anything to say.
    #[must_use]
    pub(crate) fn maybe_help(mut self, help: Option<String>) -> Problem {
        self.help = help.or(self.help);
        self
    }

    /// A finding of the front end.
    pub(crate) fn from_diagnostic(diagnostic: &Diagnostic, file: FileId) -> Problem {
        let label =
            |(span, words): &(Span, String)| Label { file, range: span.range(), words: words.clone() };
        Problem {
            code: diagnostic.code,
            severity: diagnostic.severity,
            exit: Exit::Input,
            message: diagnostic.message.clone(),
            labels: diagnostic.labels.iter().filter(|(span, _)| !span.is_none()).map(label).collect(),
            notes: diagnostic.notes.clone(),
            help: diagnostic.help.clone(),
        }
    }

    /// What stopped a run.
    pub(crate) fn from_run(error: &RunError, loaded: &Loaded) -> Problem {
        let file = loaded.file;
        if let RunErrorKind::SnapshotOverBudget { budget, needed } = error.kind {
            return Problem::over_loop_budget(budget, needed, error.span, Exit::Run, loaded);
        }
        let text = error.kind.to_string();
        // The interpreter says what happened and, after the last semicolon, what to do.
        let (message, help) = match text.rsplit_once("; ") {
            Some((message, help)) => (message.to_string(), Some(help.to_string())),
            None => (text, None),
        };
        let (message, help) = match &error.kind {
            RunErrorKind::NonFinite { operation, result } => (
                format!("{operation} gives {}", crate::numbers::plain(*result)),
                Some(
                    "keep the operands inside the domain, or let it pass with --allow-nonfinite".to_string(),
                ),
            ),
            RunErrorKind::StepLimit { limit } => (
                format!("gave up after {} loop rounds and calls", crate::numbers::count(*limit)),
                Some(
                    "if the loop does end, allow more with --steps; otherwise look at its condition"
                        .to_string(),
                ),
            ),
            RunErrorKind::OverBudget { budget, live, needed, .. } => {
                let needed = live.saturating_add(*needed);
                let given = crate::numbers::bytes(*budget);
                // To the byte: a rounded number may be below what is needed.
                let needs = format!("{} bytes", crate::numbers::count(needed as u64));
                (
                    format!("{given} is not enough: the run needs {needs} here, and perhaps more later"),
                    Some(
                        "no plan could be made of this run, so that nobody knows how much is enough: double it until it runs; `palinode memory` shows what takes it"
                            .to_string(),
                    ),
                )
            }
            RunErrorKind::DepthLimit { limit } => (
                format!("calls are nested deeper than {}", crate::numbers::count(u64::from(*limit))),
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

    /// A state of a loop does not fit into what its header allows.
    pub(crate) fn over_loop_budget(
        budget: u64,
        needed: u64,
        of: Span,
        exit: Exit,
        loaded: &Loaded,
    ) -> Problem {
        let (has, needs) = (storage::size(budget), storage::exact_size(needed));
        let message = format!("{has} is not enough for this loop: a state that it keeps takes {needs}");
        let problem = Problem::new("PAL0278", exit, message);
        let least = storage::to_type(needed);
        match loaded.model.budgets.iter().find(|written| written.of == of) {
            Some(written) => problem
                .at(loaded.file, written.span.range(), "the budget of this loop, which --budget does not change")
                .help(format!("write `budget {least}`, which keeps one state, or more; with more, less is computed again")),
            None if of.is_none() => problem.help(format!("allow at least {least}")),
            None => problem.at(loaded.file, of.range(), "").help(format!("allow at least {least}")),
        }
    }

    /// Why a program cannot be differentiated as asked.
    pub(crate) fn from_transform(error: &TransformError, file: FileId) -> Problem {
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
}
