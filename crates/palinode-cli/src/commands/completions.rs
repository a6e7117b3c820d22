//! `palinode completions`: a script that completes commands and options in a shell.

use clap::CommandFactory;
use serde_json::json;

use crate::args::{Cli, CompletionsArgs};
use crate::problem::Failed;
use crate::session::{Plain, Session};

pub(crate) fn run(session: &mut Session, args: &CompletionsArgs) -> Result<(), Failed> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "palinode", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    let json = json!({ "script": script });
    session.answer(&Plain(script, json))
}
