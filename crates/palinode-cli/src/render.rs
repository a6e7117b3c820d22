//! Problems -> text for a terminal, or JSON.

use std::io::Write;

use codespan_reporting::diagnostic::{self, LabelStyle};
use codespan_reporting::term::termcolor::Ansi;
use codespan_reporting::term::{self, Config, Styles, StylesWriter};
use palinode_ir::Severity;
use serde_json::{Value, json};

use crate::pages;
use crate::problem::Problem;
use crate::sources::Sources;

/// Problems as text with colours; whoever writes it takes them out where they do not belong.
pub(crate) fn text(problems: &[Problem], sources: &Sources) -> String {
    let config = Config { start_context_lines: 2, ..Config::default() };
    let mut out = Ansi::new(Vec::new());
    for (at, problem) in problems.iter().enumerate() {
        let last_of_its_code = problems[at + 1..].iter().all(|later| later.code != problem.code);
        let shown = diagnostic(problem, sources, last_of_its_code);
        let styles = Styles::default();
        let mut writer = StylesWriter::new(&mut out, &styles);
        if term::emit_to_write_style(&mut writer, &config, sources, &shown).is_err() {
            // Never lose a message because of how it is shown.
            let _ = writeln!(out, "error[{}]: {}", problem.code, problem.message);
        }
    }
    let text = String::from_utf8_lossy(&out.into_inner()).into_owned();
    // An empty line between problems, none after the last.
    if text.ends_with("\n\n") { text[..text.len() - 1].to_string() } else { text }
}

fn diagnostic(problem: &Problem, sources: &Sources, see: bool) -> diagnostic::Diagnostic<usize> {
    let severity = match problem.severity {
        Severity::Error => diagnostic::Severity::Error,
        Severity::Warning => diagnostic::Severity::Warning,
    };
    let labels = problem.labels.iter().enumerate().map(|(at, label)| {
        let style = if at == 0 { LabelStyle::Primary } else { LabelStyle::Secondary };
        let range = sources.clamp(label.file, label.range.clone());
        diagnostic::Label::new(style, label.file, range).with_message(&label.words)
    });
    let mut notes = problem.notes.clone();
    notes.extend(problem.help.iter().map(|help| format!("help: {help}")));
    if see && pages::find(problem.code).is_some() {
        notes.push(format!("see: palinode help {}", problem.code));
    }
    diagnostic::Diagnostic::new(severity)
        .with_code(problem.code)
        .with_message(&problem.message)
        .with_labels(labels.collect())
        .with_notes(notes)
}

/// Problems as JSON; `docs/book/json.md` describes it.
pub(crate) fn json(problems: &[Problem], sources: &Sources) -> Value {
    let label = |label: &crate::problem::Label| {
        let range = sources.clamp(label.file, label.range.clone());
        let (line, column) = sources.place(label.file, range.start);
        let (end_line, end_column) = sources.place(label.file, range.end);
        json!({
            "file": sources.name_of(label.file),
            "line": line,
            "column": column,
            "end_line": end_line,
            "end_column": end_column,
            "text": label.words,
        })
    };
    let one = |problem: &Problem| {
        json!({
            "code": problem.code,
            "severity": problem.severity.name(),
            "message": problem.message,
            "labels": problem.labels.iter().map(label).collect::<Vec<_>>(),
            "notes": problem.notes,
            "help": problem.help,
        })
    };
    Value::Array(problems.iter().map(one).collect())
}
