//! `palinode completions`: a script that completes commands and options in a shell.

use clap::CommandFactory;
use serde_json::json;

use crate::args::{Cli, CompletionsArgs};
use crate::problem::Failed;
use crate::session::Session;

pub(crate) fn run(session: &mut Session, args: &CompletionsArgs) -> Result<(), Failed> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "palinode", &mut script);
    let script = String::from_utf8_lossy(&script);
    session.answer(|| script.to_string(), || json!({ "script": script }).into())
}
