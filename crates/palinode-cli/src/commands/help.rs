//! `palinode help`: the page of an error code, or the help of a command.

use clap::CommandFactory;
use serde_json::json;

use crate::args::{Cli, HelpArgs};
use crate::assign::closest;
use crate::pages;
use crate::problem::{Exit, Failed, Problem};
use crate::session::{Plain, Session};
use crate::table::{HEADING, STRONG, styled};

pub(crate) fn run(session: &mut Session, args: &HelpArgs) -> Result<(), Failed> {
    let mut cli = Cli::command();
    let Some(topic) = &args.topic else {
        let all: Vec<String> = pages::PAGES.iter().map(|(_, page)| format!("  {}", title(page))).collect();
        let help = cli.render_help().ansi().to_string();
        let text = format!("{help}\nError codes, explained by `palinode help CODE`:\n{}\n", all.join("\n"));
        let codes: Vec<&str> = pages::PAGES.iter().map(|(code, _)| *code).collect();
        return session.answer(&Plain(text, json!({ "codes": codes })));
    };
    let code = topic.to_ascii_uppercase();
    if let Some(page) = pages::find(&code) {
        return session.answer(&Plain(painted(page), json!({ "code": code, "page": page })));
    }
    cli.build();
    if let Some(command) = cli.find_subcommand_mut(topic) {
        let help = command.render_long_help();
        return session.answer(&Plain(help.ansi().to_string(), json!({ "help": help.to_string() })));
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
            out.push_str(&format!("{}{}\n", styled(HEADING, word), without_links(rest)));
        } else {
            out.push_str(&without_links(line));
            out.push('\n');
        }
    }
    out
}

/// `[text](target)` -> `text`, except in code: a terminal follows no relative links.
fn without_links(line: &str) -> String {
    let mut out = String::new();
    for (at, part) in line.split('`').enumerate() {
        if at > 0 {
            out.push('`');
        }
        if at % 2 == 1 {
            out.push_str(part);
            continue;
        }
        let mut rest = part;
        while let Some((text, before, after)) = link(rest) {
            out.push_str(before);
            out.push_str(text);
            rest = after;
        }
        out.push_str(rest);
    }
    out
}

/// The first link of a text: its own text, what is before it, what is after it.
fn link(text: &str) -> Option<(&str, &str, &str)> {
    let middle = text.find("](")?;
    let open = text[..middle].rfind('[')?;
    let close = middle + text[middle..].find(')')?;
    Some((&text[open + 1..middle], &text[..open], &text[close + 1..]))
}

#[cfg(test)]
mod tests {
    use super::without_links;

    #[test]
    fn links_become_their_text() {
        let line = "See [the list](../language.md#units), or [PAL0107](PAL0107.md): `a[0](b)`, a](b";
        assert_eq!(without_links(line), "See the list, or PAL0107: `a[0](b)`, a](b");
    }
}
