//! Transcripts: `$ palinode ...` and what must come back.
//!
//! `tests/cases/*.txt` run in `tests/models`, the blocks of the book's pages about the command and about
//! memory in `examples`, those of the README at the root. Standard output comes first, then standard error,
//! then `[exit 3]` unless the exit code is 0. Times, high counts of agreeing digits and what the process
//! holds when a run begins (paths and the environment are in it) are measured and not compared; bytes of
//! runs and steps are.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The folder of this package.
fn package() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The command, without colours and other settings of whoever runs the tests.
pub(crate) fn palinode(folder: &Path, words: &[String]) -> (String, i32) {
    let output = Command::new(env!("CARGO_BIN_EXE_palinode"))
        .args(words)
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .env("PALINODE_CACHE", concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"))
        .env_remove("CLICOLOR_FORCE")
        .stdin(std::process::Stdio::null())
        .output()
        .expect("the binary starts");
    let mut text = String::from_utf8(output.stdout).expect("the command writes UTF-8");
    text.push_str(std::str::from_utf8(&output.stderr).expect("the command writes UTF-8"));
    (text, output.status.code().expect("no signal ends it"))
}

/// The models of the tests.
pub(crate) fn models() -> PathBuf {
    package().join("tests/models")
}

/// The answer to a command line as JSON, and the exit code.
pub(crate) fn json(folder: &Path, line: &[&str]) -> (Value, i32) {
    let words: Vec<String> = line.iter().chain(&["--json"]).map(ToString::to_string).collect();
    let (text, code) = palinode(folder, &words);
    (serde_json::from_str(&text).unwrap_or_else(|error| panic!("{words:?}: {error}\n{text}")), code)
}

/// The same of a line of words about the models.
pub(crate) fn answer(line: &str) -> (Value, i32) {
    json(&models(), &line.split(' ').collect::<Vec<_>>())
}

/// All numbers of a nested array.
pub(crate) fn flat(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(flat).collect(),
        other => vec![other.as_f64().unwrap()],
    }
}

/// The words of a command line; quotes keep blanks.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.trim().chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, ' ') => words.push(String::new()),
            _ => words.last_mut().expect("one is open").push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Takes out what is measured.
fn steady(text: &str) -> String {
    // Whether a code of another package has its page yet is not our concern.
    let lines = text.lines().filter(|line| !line.contains("= see: palinode help ")).map(|line| {
        let mut words: Vec<String> = line.split(' ').map(str::to_string).collect();
        for at in 0..words.len() {
            let number = |word: &str| word.replace([',', ';'], "").parse::<f64>().is_ok();
            let unit = words.get(at + 1).map_or("", |next| next.trim_end_matches([',', ';']));
            let measured = match unit {
                "µs" | "ms" | "s" => true,
                // What the process holds when a run begins.
                "B" | "KiB" => {
                    words.get(at + 2).is_some_and(|word| word == "in")
                        && words.get(at + 3).is_some_and(|word| word == "addition")
                }
                "digits" => words[at].parse::<u32>().is_ok_and(|digits| digits >= 6),
                _ => matches!(
                    at.checked_sub(1).map_or("", |before| words[before].as_str()),
                    "\"seconds\":"
                        | "\"total_seconds\":"
                        | "\"compile_seconds\":"
                        | "\"error\":"
                        | "\"differences\":"
                        | "\"held_bytes\":"
                ),
            };
            if measured && number(&words[at]) {
                words[at] = "_".to_string();
                if let Some(next) = words.get_mut(at + 1).filter(|next| !next.starts_with('d')) {
                    *next = "_".to_string();
                }
            }
            if at > 0
                && words[at - 1] == "\"digits\":"
                && words[at].trim_end_matches(',').parse::<u32>().is_ok_and(|n| n >= 6)
            {
                words[at] = "_,".to_string();
            }
        }
        words.join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Runs the commands of a text, in which what they print follows each; gives the text as it should be.
fn replay(lines: &[&str], folder: &Path) -> String {
    let mut out = String::new();
    let mut at = 0;
    while at < lines.len() {
        let Some(command) = lines[at].strip_prefix("$ palinode") else {
            out.push_str(lines[at]);
            out.push('\n');
            at += 1;
            continue;
        };
        let end = (at + 1..lines.len()).find(|&k| lines[k].starts_with("$ ")).unwrap_or(lines.len());
        let expected = lines[at + 1..end].join("\n");
        let (text, code) = palinode(folder, &words(command));
        let exit = if code == 0 { String::new() } else { format!("[exit {code}]\n") };
        let found = format!("{}\n{exit}", text.trim_end());
        let same = steady(expected.trim_end()) == steady(found.trim_end());
        out.push_str(lines[at]);
        out.push('\n');
        out.push_str(if same { expected.trim_end() } else { found.trim_end() });
        out.push_str("\n\n");
        at = end;
    }
    out.trim_end().to_string() + "\n"
}

/// Compares a file with what it should be, or writes it.
fn settle(path: &Path, before: &str, after: &str) -> Result<(), String> {
    if before == after {
        return Ok(());
    }
    if std::env::var_os("PALINODE_BLESS").is_some() {
        fs::write(path, after).expect("the transcript can be written");
        return Ok(());
    }
    let differs = before.lines().zip(after.lines()).position(|(a, b)| a != b).unwrap_or(0);
    let show =
        |text: &str| text.lines().skip(differs.saturating_sub(3)).take(30).collect::<Vec<_>>().join("\n");
    Err(format!(
        "{} line {} (PALINODE_BLESS=1 accepts it)\nexpected:\n{}\nfound:\n{}\n",
        path.display(),
        differs + 1,
        show(before),
        show(after)
    ))
}

#[test]
fn cases() {
    let mut failures = Vec::new();
    let mut paths: Vec<PathBuf> = fs::read_dir(package().join("tests/cases"))
        .expect("it is there")
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        let before = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = before.lines().collect();
        let after = replay(&lines, &package().join("tests/models"));
        failures.extend(settle(&path, &before, &after).err());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The blocks of the README and of the book's pages that show commands.
#[test]
fn the_book_shows_what_happens() {
    let root = package().join("../..");
    for (page, folder) in
        [("docs/book/command.md", "examples"), ("docs/book/memory.md", "examples"), ("README.md", "")]
    {
        let (path, folder) = (root.join(page), root.join(folder));
        let before = fs::read_to_string(&path).unwrap();
        let mut after = String::new();
        let mut lines = before.lines();
        while let Some(line) = lines.next() {
            after.push_str(line);
            after.push('\n');
            if line != "```text" {
                continue;
            }
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            let shown = block.first().is_some_and(|first| first.starts_with("$ palinode"));
            let text = if shown { replay(&block, &folder) } else { block.join("\n") + "\n" };
            after.push_str(&text);
            after.push_str("```\n");
        }
        settle(&path, &before, &after).unwrap_or_else(|failure| panic!("{failure}"));
    }
}

/// Every command has an example in the book.
#[test]
fn the_book_shows_every_command() {
    let (help, _) = palinode(&package(), &["--help".to_string()]);
    let book = fs::read_to_string(package().join("../../docs/book/command.md")).unwrap();
    let names = help.split("Commands:\n").nth(1).unwrap().lines().take_while(|line| line.starts_with("  "));
    let missing: Vec<&str> = names
        .filter_map(|line| line[2..].split(' ').next().filter(|name| !name.is_empty()))
        .filter(|name| !book.contains(&format!("palinode {name}")))
        .collect();
    assert!(missing.is_empty() && help.contains("  grad "), "command.md does not show {missing:?}");
}

/// The codes in a text, each after one of these words.
fn codes(text: &str, before: &str) -> BTreeSet<String> {
    let word = format!("{before}PAL0");
    text.split(&word).skip(1).filter_map(|rest| rest.get(..3)).map(|rest| format!("PAL0{rest}")).collect()
}

/// Every code that a package uses or mentions has a page in the book, every page a code, and both lists of
/// pages have them all.
#[test]
fn codes_and_pages_are_the_same() {
    let (crates, book) = (package().join(".."), package().join("../../docs/book"));
    let (mut used, mut mentioned) = (BTreeSet::new(), BTreeSet::new());
    let mut folders: Vec<PathBuf> =
        fs::read_dir(crates).unwrap().map(|package| package.unwrap().path().join("src")).collect();
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                let source = fs::read_to_string(&path).unwrap();
                used.extend(codes(&source, "\""));
                mentioned.extend(codes(&source, ""));
            }
        }
    }
    let read = |name: &str| fs::read_to_string(book.join(name)).unwrap();
    let files = fs::read_dir(book.join("errors")).unwrap().map(|file| file.unwrap().file_name());
    let pages: BTreeSet<String> =
        files.flat_map(|name| codes(&format!("/{}", name.to_str().unwrap()), "/")).collect();
    assert_eq!(used, pages, "codes in the sources, and pages");
    assert_eq!(mentioned, pages, "codes that comments mention, too, and pages");
    assert_eq!(codes(&read("SUMMARY.md"), "errors/"), pages, "SUMMARY.md, and pages");
    assert_eq!(codes(&read("errors/README.md"), "]("), pages, "errors/README.md, and pages");
}

/// Nothing here is a terminal.
#[test]
fn colours_only_where_they_belong() {
    let escapes = |words: &[&str]| {
        let run = Command::new(env!("CARGO_BIN_EXE_palinode"))
            .args(words)
            .current_dir(package().join("tests/models"))
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR_FORCE")
            .output()
            .expect("the binary starts");
        [run.stdout, run.stderr].concat().contains(&0x1b)
    };
    for words in [&["grad", "drag.pal", "--check"][..], &["grad", "div.pal"], &["help", "PAL0290"], &["help"]]
    {
        assert!(!escapes(words), "{words:?}");
    }
    assert!(escapes(&["grad", "drag.pal", "--check", "--color", "always"]));
    assert!(escapes(&["grad", "div.pal", "--color", "always"]));
    assert!(!escapes(&["grad", "div.pal", "--color", "never"]));
}
