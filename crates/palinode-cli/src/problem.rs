//! What went wrong, as data: a code, a message, places in files, and the next step.
//!
//! Input: findings of the front end, the interpreter, the transforms and the command itself. Output:
//! [`Problem`]s, which `render.rs` shows. Nothing here writes anything.

use std::ops::Range;

use palinode_ir::{Diagnostic, Severity, Span};

use crate::sources::FileId;

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
    /// All results, or all problems.
    pub(crate) fn all<T>(results: impl Iterator<Item = Result<T, Failed>>) -> Result<Vec<T>, Failed> {
        let (mut all, mut problems) = (Vec::new(), Vec::new());
        for result in results {
            match result {
                Ok(one) => all.push(one),
                Err(Failed(more)) => problems.extend(more),
            }
        }
        if problems.is_empty() { Ok(all) } else { Err(Failed(problems)) }
    }

    /// Findings of the front end.
    pub(crate) fn from_diagnostics(found: &[Diagnostic], file: FileId) -> Failed {
        Failed(found.iter().map(|one| Problem::from_diagnostic(one, file)).collect())
    }

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
}
