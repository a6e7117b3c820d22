//! One run of the command: where texts are kept, and how results and problems leave.

use std::io::Write;

use serde_json::{Map, Value, json};

use crate::problem::{Exit, Failed, Problem};
use crate::render;
use crate::sources::Sources;

/// The version of the JSON that the command writes; see `docs/book/json.md`.
pub(crate) const SCHEMA: u32 = 1;

/// What every command needs.
pub(crate) struct Session {
    pub(crate) sources: Sources,
    pub(crate) json: bool,
    /// The subcommand, for JSON.
    command: &'static str,
    warnings: Vec<Problem>,
}

impl Session {
    pub(crate) fn new(command: &'static str, json: bool) -> Session {
        Session { sources: Sources::default(), json, command, warnings: Vec::new() }
    }

    /// Something that may not be as it was meant.
    pub(crate) fn warn(&mut self, warning: Problem) {
        self.warnings.push(warning);
    }

    /// Gives the answer: `text` for people, or `fields` for programs.
    pub(crate) fn answer(&mut self, text: &str, fields: Value) {
        if self.json {
            let mut all = self.head();
            if !self.warnings.is_empty() {
                all.insert("warnings".into(), render::json(&self.warnings, &self.sources));
            }
            if let Value::Object(fields) = fields {
                all.extend(fields);
            }
            to_stdout(&format!("{}\n", pretty(&Value::Object(all))));
        } else {
            self.show_warnings();
            to_stdout(text);
        }
    }

    /// Shows what went wrong and gives the code to end with.
    pub(crate) fn fail(&mut self, failed: &Failed) -> Exit {
        let exit = failed.exit();
        if failed.0.is_empty() {
            return exit;
        }
        if self.json {
            let mut all = self.head();
            let problems: Vec<Problem> = self.warnings.iter().chain(&failed.0).cloned().collect();
            all.insert("errors".into(), render::json(&problems, &self.sources));
            all.insert("exit".into(), json!(exit as i32));
            to_stdout(&format!("{}\n", pretty(&Value::Object(all))));
        } else {
            self.show_warnings();
            to_stderr(&render::text(&failed.0, &self.sources));
        }
        exit
    }

    fn show_warnings(&mut self) {
        let warnings = std::mem::take(&mut self.warnings);
        to_stderr(&render::text(&warnings, &self.sources));
    }

    fn head(&self) -> Map<String, Value> {
        let mut all = Map::new();
        all.insert("schema".into(), json!(SCHEMA));
        all.insert("command".into(), json!(self.command));
        all
    }
}

/// Indented, but with arrays of numbers on one line.
fn pretty(value: &Value) -> String {
    fn flat(value: &Value) -> bool {
        match value {
            Value::Array(items) => items.iter().all(|item| !item.is_object() && flat(item)),
            Value::Object(_) => false,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        }
    }
    fn put(out: &mut String, value: &Value, depth: usize) {
        let (inner, outer) = ("  ".repeat(depth + 1), "  ".repeat(depth));
        match value {
            Value::Array(items) if !flat(value) => {
                out.push_str("[\n");
                for (at, item) in items.iter().enumerate() {
                    out.push_str(&inner);
                    put(out, item, depth + 1);
                    out.push_str(if at + 1 < items.len() { ",\n" } else { "\n" });
                }
                out.push_str(&outer);
                out.push(']');
            }
            Value::Object(fields) if !fields.is_empty() => {
                out.push_str("{\n");
                for (at, (name, item)) in fields.iter().enumerate() {
                    out.push_str(&inner);
                    out.push_str(&Value::String(name.clone()).to_string());
                    out.push_str(": ");
                    put(out, item, depth + 1);
                    out.push_str(if at + 1 < fields.len() { ",\n" } else { "\n" });
                }
                out.push_str(&outer);
                out.push('}');
            }
            _ => out.push_str(&value.to_string()),
        }
    }
    let mut out = String::new();
    put(&mut out, value, 0);
    out
}

/// Writes to standard output; colours only on a terminal. A reader that has gone away is not an error.
pub(crate) fn to_stdout(text: &str) {
    let mut out = anstream::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Writes to standard error; colours only on a terminal.
pub(crate) fn to_stderr(text: &str) {
    let mut out = anstream::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_numbers_together() {
        let value = json!({"a": [[1.0, 2.0], [3.0, 4.0]], "b": [{"c": null}], "d": {}});
        let text = pretty(&value);
        assert_eq!(
            text,
            "{\n  \"a\": [[1.0,2.0],[3.0,4.0]],\n  \"b\": [\n    {\n      \"c\": null\n    }\n  ],\n  \"d\": {}\n}"
        );
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
