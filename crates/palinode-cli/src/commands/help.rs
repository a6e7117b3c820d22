//! `palinode help`: the page of an error code, or the help of a command.

use clap::CommandFactory;
use serde_json::json;

use crate::args::{Cli, HelpArgs};
use crate::assign::closest;
use crate::pages;
use crate::problem::{Exit, Failed, Problem};
use crate::session::Session;
use crate::table::{HEADING, STRONG, styled};

pub(crate) fn run(session: &mut Session, args: &HelpArgs) -> Result<(), Failed> {
    let mut cli = Cli::command();
    let Some(topic) = &args.topic else {
        let all: Vec<String> = pages::PAGES.iter().map(|(_, page)| format!("  {}", title(page))).collect();
        let help = cli.render_help().ansi().to_string();
        let text = format!("{help}\nError codes, explained by `palinode help CODE`:\n{}\n", all.join("\n"));
        let codes: Vec<&str> = pages::PAGES.iter().map(|(code, _)| *code).collect();
        session.answer(&text, json!({ "codes": codes }));
        return Ok(());
    };
    let code = topic.to_ascii_uppercase();
    if let Some(page) = pages::find(&code) {
        session.answer(&painted(page), json!({ "code": code, "page": page }));
        return Ok(());
    }
    cli.build();
    if let Some(command) = cli.find_subcommand_mut(topic) {
        let text = command.render_long_help().ansi().to_string();
        session.answer(&text, json!({ "help": command.render_long_help().to_string() }));
        return Ok(());
    }
    let problem = Problem::new("PAL0296", Exit::Usage, format!("there is no page about `{topic}`"));
    let commands: Vec<&str> = cli.get_subcommands().map(clap::Command::get_name).collect();
    let candidates: Vec<&str> = pages::PAGES.iter().map(|(code, _)| *code).chain(commands).collect();
    let help = match closest(&code, &candidates).or_else(|| closest(topic, &candidates)) {
        Some(other) => format!("did you mean `palinode help {other}`?"),
        None => "`palinode help` lists commands and codes".to_string(),
    };
    Err(problem.help(help).into())
}

/// The first line of a page, without its mark.
fn title(page: &str) -> &str {
    page.lines().next().unwrap_or("").trim_start_matches(['#', ' '])
}

/// A page with its headings and code standing out.
fn painted(page: &str) -> String {
    let mut out = String::new();
    let mut in_code = false;
    for line in page.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
        } else if in_code {
            out.push_str(&format!("    {line}\n"));
        } else if let Some(heading) = line.strip_prefix('#') {
            out.push_str(&styled(STRONG, heading.trim_start_matches(['#', ' '])));
            out.push('\n');
        } else if let Some((word, rest)) = line.strip_prefix("**").and_then(|line| line.split_once("**")) {
            out.push_str(&format!("{}{rest}\n", styled(HEADING, word)));
        } else {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}
