//! `palinode fmt`: lays model files out.

use std::path::Path;

use palinode_ir::pal;
use serde_json::json;

use crate::args::FmtArgs;
use crate::files;
use crate::problem::{Exit, Failed, Problem};
use crate::session::Session;

pub(crate) fn run(session: &mut Session, args: &FmtArgs) -> Result<(), Failed> {
    let mut text = String::new();
    let mut fields = Vec::new();
    let mut problems = Vec::new();
    for path in &args.files {
        match one(session, path) {
            Ok((before, after)) => {
                let changed = before != after;
                let name = path.display().to_string();
                if args.check && changed {
                    let line = first_difference(&before, &after);
                    let message = format!("{name} is not laid out (line {line})");
                    let problem = Problem::new("PAL0295", Exit::Input, message);
                    problems.push(problem.help(format!("palinode fmt --write {name}")));
                } else if args.write && changed {
                    if path == Path::new("-") {
                        text.push_str(&after);
                    } else if let Err(Failed(more)) = files::write(path, &after) {
                        problems.extend(more);
                    } else {
                        text.push_str(&format!("{name}: laid out\n"));
                    }
                } else if !args.check && !args.write {
                    text.push_str(&after);
                }
                fields.push(json!({ "file": name, "changed": changed, "text": after }));
            }
            Err(Failed(more)) => problems.extend(more),
        }
    }
    if !problems.is_empty() {
        return Err(Failed(problems));
    }
    session.answer(|| text, || json!({ "files": fields }).into())
}

/// The text of a file, and how it should be.
fn one(session: &mut Session, path: &Path) -> Result<(String, String), Failed> {
    let before = files::read(path, "the model")?;
    let file = session.sources.add(path.display().to_string(), before.clone());
    match pal::format(&before) {
        Ok(after) => Ok((before, after)),
        Err(found) => Err(Failed(found.iter().map(|one| Problem::from_diagnostic(one, file)).collect())),
    }
}

/// The number of the first line that differs.
fn first_difference(before: &str, after: &str) -> usize {
    before.lines().zip(after.lines()).take_while(|(a, b)| a == b).count() + 1
}
