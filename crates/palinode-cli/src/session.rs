//! One run of the command: where texts are kept, and how results and problems leave.
//!
//! Invariant: an answer that could not be written is a failure. Only a reader that has gone away is none: it
//! has what it wanted.

use std::cell::Cell;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::time::Instant;

use serde_json::{Value, json};

use crate::answer::{Json, Text};
use crate::closed;
use crate::problem::{Exit, Failed, Problem};
use crate::render;
use crate::sources::Sources;

/// The version of the JSON that the command writes; see `docs/book/json.md`.
pub(crate) const SCHEMA: u32 = 2;

/// What a command found. Text and JSON are made of the same values, and only what is asked for is made.
pub(crate) trait Answer {
    /// For people.
    fn text(&self, session: &Session) -> Text<'_>;

    /// For programs: an object.
    fn json(&self, session: &Session) -> Json<'_>;

    /// What a derivative means, for programs: the `unit` of its value, and what was `held_fixed`.
    fn meaning(&self, _session: &Session) -> Option<Value> {
        None
    }
}

/// An answer that was text from the start.
pub(crate) struct Plain(pub(crate) String, pub(crate) Value);

impl Answer for Plain {
    fn text(&self, _: &Session) -> Text<'_> {
        self.0.as_str().into()
    }

    fn json(&self, _: &Session) -> Json<'_> {
        self.1.clone().into()
    }
}

/// What every command needs.
pub(crate) struct Session {
    pub(crate) sources: Sources,
    pub(crate) json: bool,
    /// The subcommand, for JSON.
    command: &'static str,
    warnings: Vec<Problem>,
    /// Whether people have seen the warnings.
    is_warned: Cell<bool>,
    started: Instant,
}

impl Session {
    pub(crate) fn new(command: &'static str, json: bool) -> Session {
        let (warnings, is_warned) = (Vec::new(), Cell::new(false));
        Session { sources: Sources::default(), json, command, warnings, is_warned, started: Instant::now() }
    }

    /// Something that may not be as it was meant.
    pub(crate) fn warn(&mut self, warning: Problem) {
        self.warnings.push(warning);
    }

    /// How long it has been at work: reading, compiling and planning included.
    pub(crate) fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Gives an answer, as text or as JSON.
    pub(crate) fn answer(&self, answer: &impl Answer) -> Result<(), Failed> {
        let done = if self.json {
            let mut head = self.head();
            if let Some(Value::Object(meaning)) = answer.meaning(self) {
                head["meaning"] = json!("pathwise");
                meaning.into_iter().for_each(|(name, value)| head[&name] = value);
            }
            write_json(head, answer.json(self))
        } else {
            self.show_warnings();
            let text = answer.text(self);
            to_stdout(|out| text.write(out))
        };
        done.map_err(|error| unwritten(&error).into())
    }

    /// Shows what went wrong and gives the code to end with.
    pub(crate) fn fail(&self, failed: &Failed) -> Exit {
        let exit = failed.exit();
        if failed.0.is_empty() {
            return exit;
        }
        if self.json && exit != Exit::Output {
            let errors = render::json(&failed.0, &self.sources);
            if let Err(error) =
                write_json(self.head(), json!({ "errors": errors, "exit": exit as i32 }).into())
            {
                to_stderr(&render::text(&[unwritten(&error)], &self.sources));
            }
        } else {
            self.show_warnings();
            to_stderr(&render::text(&failed.0, &self.sources));
        }
        exit
    }

    fn show_warnings(&self) {
        if !self.is_warned.replace(true) {
            to_stderr(&render::text(&self.warnings, &self.sources));
        }
    }

    fn head(&self) -> Value {
        let mut all = json!({
            "schema": SCHEMA,
            "command": self.command,
            "meaning": null,
            "unit": null,
            "standard_error": null,
            "held_fixed": null,
        });
        if !self.warnings.is_empty() {
            all["warnings"] = render::json(&self.warnings, &self.sources);
        }
        all
    }
}

fn unwritten(error: &io::Error) -> Problem {
    Problem::new("PAL0609", Exit::Output, "the answer cannot be written to standard output")
        .note(error.to_string())
        .help("free some space, or send it elsewhere: what was written is incomplete")
}

/// Writes the fields of both as one object.
fn write_json(head: Value, fields: Json<'_>) -> io::Result<()> {
    let all = Json::from(head).and(fields);
    to_stdout(|out| all.write(out).and_then(|()| out.write_all(b"\n")))
}

/// Writes to standard output; colours only on a terminal. What was closed from the start takes nothing,
/// though Rust would not say so.
fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    if closed::OUTPUT.is_closed() {
        return Err(io::Error::other("it is closed"));
    }
    let mut out = BufWriter::new(anstream::stdout().lock());
    let done = write(&mut out).and_then(|()| out.flush());
    // What is left in the buffer must not be tried again.
    let _ = out.into_parts();
    unless_gone(done)
}

/// A reader that has gone away is not an error.
fn unless_gone(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

/// Writes to standard error; colours only on a terminal. There is nobody to tell that it failed.
pub(crate) fn to_stderr(text: &str) {
    let mut out = anstream::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
