//! The `palinode` command: arguments, files, exit codes. What it computes is in the other packages.
//!
//! | file | does |
//! |---|---|
//! | `args` | the command line and its help |
//! | `commands/*` | one command each |
//! | `model`, `inputs`, `assign`, `data/*`, `files` | where the program and its inputs come from |
//! | `execute`, `gradient`, `progress` | running and measuring |
//! | `storage`, `ladder` | how memory is to be used, and what `palinode_ir::plan` decided, in words |
//! | `sides` | derivatives on both sides of a tie, within the budget |
//! | `health`, `stops` | how the cotangent grows or shrinks through a loop; how close loops came to another number of rounds |
//! | `numbers`, `table`, `value`, `answer`, `lifetimes`, `chart`, `picture`, `traffic` | results as text and as JSON |
//! | `problem`, `explain`, `sources`, `render`, `session`, `pages` | what went wrong, and how it is said |
//! | `closed`, `reserve` | whether there is anybody to say it to; memory to say it with |
//!
//! Absent from this package: calculus, knowledge of what a program means, and any choice of what to keep.

mod answer;
mod args;
mod assign;
#[cfg(test)]
mod budget_law;
mod chart;
mod closed;
mod commands;
mod data;
mod execute;
mod explain;
mod files;
mod gradient;
mod health;
mod inputs;
mod ladder;
mod lifetimes;
mod model;
mod numbers;
mod pages;
mod picture;
mod problem;
mod progress;
mod render;
mod reserve;
mod session;
mod sides;
mod sources;
mod stops;
mod storage;
mod table;
mod traffic;
mod value;

use std::process::ExitCode;
use std::sync::Mutex;

use clap::Parser;
use serde_json::json;

use args::{Cli, Color, Command};
use problem::{Exit, Failed, Problem};
use reserve::MEMORY;
use session::{Plain, Session};

fn main() -> ExitCode {
    MEMORY.keep_reserves();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&renamed(error)),
    };
    match cli.color {
        Color::Auto => {}
        Color::Always => anstream::ColorChoice::Always.write_global(),
        Color::Never => anstream::ColorChoice::Never.write_global(),
    }
    let (command, json) = (name(&cli.command), cli.json);
    std::panic::set_hook(Box::new(|panic| {
        *PANICKED_AT.lock().expect("nothing panics here") = panic.location().map(ToString::to_string);
    }));
    // Deeply nested models need more stack than a main thread has.
    let work = std::thread::Builder::new().stack_size(STACK).spawn(move || {
        let mut session = Session::new(command, json);
        dispatch(&mut session, &cli.command).map_err(|failed| session.fail(&failed))
    });
    match work.map(std::thread::JoinHandle::join) {
        Ok(Ok(Ok(()))) => ExitCode::SUCCESS,
        Ok(Ok(Err(exit))) => ExitCode::from(exit as u8),
        Ok(Err(panic)) => ExitCode::from(Session::new(command, json).fail(&bug(&*panic)) as u8),
        Err(error) => {
            let problem = Problem::new("PAL0299", Exit::Bug, format!("no thread could be started: {error}"));
            ExitCode::from(Session::new(command, json).fail(&problem.into()) as u8)
        }
    }
}

/// Where in the source of Palinode it panicked.
static PANICKED_AT: Mutex<Option<String>> = Mutex::new(None);

/// The stack of the thread that does the work; only what is used becomes memory.
const STACK: usize = 256 << 20;

/// A panic is a bug of ours, and is reported as one.
fn bug(panic: &(dyn std::any::Any + Send)) -> Failed {
    let words = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    let place = PANICKED_AT.lock().ok().and_then(|place| place.clone()).unwrap_or_default();
    Problem::new("PAL0299", Exit::Bug, "this is a bug in Palinode")
        .note(words.unwrap_or("it said nothing"))
        .note(format!("at {place}"))
        .help("please report it with the model and the command line")
        .into()
}

/// The commands: the name, the variant of the command line, the module that runs it.
macro_rules! commands {
    ($($name:literal: $variant:ident => $module:ident;)*) => {
        const COMMANDS: &[&str] = &[$($name),*];

        fn name(command: &Command) -> &'static str {
            match command {
                $(Command::$variant(_) => $name,)*
            }
        }

        fn dispatch(session: &mut Session, command: &Command) -> Result<(), Failed> {
            match command {
                $(Command::$variant(args) => commands::$module::run(session, args),)*
            }
        }
    };
}

commands! {
    "run": Run => run;
    "grad": Grad => grad;
    "jvp": Jvp => jvp;
    "hessian": Hessian => hessian;
    "memory": Memory => memory;
    "loop": Loop => loops;
    "tape": Tape => tape;
    "ir": Ir => ir;
    "emit": Emit => emit;
    "fmt": Fmt => fmt;
    "check": Check => check;
    "help": Help => help;
    "completions": Completions => completions;
}

/// Options that were renamed, and what they are called now.
const RENAMED: &[(&str, &str)] =
    &[("--steps", "--max-rounds"), ("--output", "--of"), ("--states", "--snapshots")];

/// Says how an option is called that is known by an old name.
fn renamed(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue};
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return error };
    if let Some((_, new)) = RENAMED.iter().find(|(old, _)| word == old) {
        let words = format!("it is called `{new}` now").into();
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Usage);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![words]));
    }
    error
}

/// A mistake of the command line for programs: its first paragraph, the advice, and how it should read.
fn usage_problem(error: &clap::Error) -> Problem {
    use clap::error::ErrorKind;
    if matches!(
        error.kind(),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        let problem = Problem::new("PAL0298", Exit::Usage, "a command is missing");
        return problem.help("`palinode help` lists the commands");
    }
    let text = error.render().to_string();
    let mut paragraphs = text.trim().split("\n\n").map(|paragraph| {
        let words: Vec<&str> = paragraph.split_whitespace().collect();
        words.join(" ")
    });
    let message = paragraphs.next().unwrap_or_default();
    let mut problem = Problem::new("PAL0298", Exit::Usage, message.trim_start_matches("error: "));
    for paragraph in paragraphs {
        if let Some(tip) = paragraph.strip_prefix("tip: ") {
            problem = problem.help(tip);
        } else if let Some(usage) = paragraph.strip_prefix("Usage: ") {
            problem = problem.note(format!("usage: {usage}"));
        }
    }
    problem
}

/// What the command line parser has to say: help, the version, or a mistake.
fn usage(error: &clap::Error) -> ExitCode {
    let wants_json = std::env::args_os().any(|word| word == "--json");
    if !error.use_stderr() {
        let text = error.render().ansi().to_string();
        let session = Session::new("palinode", false);
        return match session.answer(&Plain(text, json!({}))) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failed) => ExitCode::from(session.fail(&failed) as u8),
        };
    }
    if wants_json {
        let known = |word: std::ffi::OsString| COMMANDS.iter().find(|name| word == ***name);
        let command = std::env::args_os().skip(1).find_map(known);
        let failed = Failed::from(usage_problem(error));
        return ExitCode::from(Session::new(command.unwrap_or(&"palinode"), true).fail(&failed) as u8);
    }
    let _ = error.print();
    ExitCode::from(Exit::Usage as u8)
}
