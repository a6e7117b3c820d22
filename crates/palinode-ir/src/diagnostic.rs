//! What is wrong with a source text, and where: data that a command, an editor or a test renders.
//!
//! Nothing here knows the terminal. [`Diagnostic::plain`] is a rendering without colour, for tests and logs.

use crate::types::Span;
use std::fmt::Write;

/// How serious it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// There is no program.
    Error,
    /// There is a program, but it may not be what was meant.
    Warning,
}

impl Severity {
    /// As it is shown.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// One finding about a source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The code, `PAL0205`; the book has a page for each.
    pub code: &'static str,
    /// How serious it is.
    pub severity: Severity,
    /// What is wrong; a sentence without a full stop, lower case.
    pub message: String,
    /// Where, with a few words each; the first is the place itself, the others explain it.
    pub labels: Vec<(Span, String)>,
    /// The cause, or what else is worth knowing.
    pub notes: Vec<String>,
    /// What to do.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            severity: Severity::Error,
            message: message.into(),
            labels: vec![(span, String::new())],
            notes: Vec::new(),
            help: None,
        }
    }

    /// A warning at a place.
    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, span, message) }
    }

    /// Words at the place itself.
    #[must_use]
    pub fn saying(mut self, words: impl Into<String>) -> Diagnostic {
        self.labels[0].1 = words.into();
        self
    }

    /// Another place.
    #[must_use]
    pub fn and(mut self, span: Span, words: impl Into<String>) -> Diagnostic {
        self.labels.push((span, words.into()));
        self
    }

    /// The cause.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }

    /// What to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// The place itself.
    pub fn span(&self) -> Span {
        self.labels.first().map_or(Span::NONE, |label| label.0)
    }

    /// Whether there is no program because of it.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// As text without colours: the message, each place with its line underlined, notes and help.
    pub fn plain(&self, source: &str) -> String {
        let mut out = format!("{}[{}]: {}\n", self.severity.name(), self.code, self.message);
        for (span, words) in &self.labels {
            let place = Place::of(source, *span);
            let _ = writeln!(out, "{:>4} | {}", place.line, place.text);
            let marks = format!("     | {}{} {words}", " ".repeat(place.before), "^".repeat(place.width));
            let _ = writeln!(out, "{}", marks.trim_end());
        }
        for note in &self.notes {
            let _ = writeln!(out, "   = {note}");
        }
        if let Some(help) = &self.help {
            let _ = writeln!(out, "   help: {help}");
        }
        out
    }
}

/// A span as people count: lines and columns from 1, in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// The whole line, tabs as single spaces.
    pub text: String,
    /// How many characters come before it on the line.
    pub before: usize,
    /// How many characters of the line it covers; at least 1.
    pub width: usize,
}

impl Place {
    /// Where a span of `source` starts. A span beyond the end is taken as the end.
    pub fn of(source: &str, span: Span) -> Place {
        let floor = |at: usize| {
            let mut at = at.min(source.len());
            while !source.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let (start, end) = (floor(span.start as usize), floor(span.end as usize));
        let line_start = source[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = source[start..].find('\n').map_or(source.len(), |at| start + at);
        let before = source[line_start..start].chars().count();
        let width = source[start..end.clamp(start, line_end)].chars().count().max(1);
        let line = source[..start].matches('\n').count() + 1;
        let text = source[line_start..line_end].trim_end_matches('\r').replace('\t', " ");
        Place { line, column: before + 1, text, before, width }
    }
}
