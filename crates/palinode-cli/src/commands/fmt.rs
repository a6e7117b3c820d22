//! `palinode fmt`: formats model files.

use std::path::Path;

use palinode_ir::pal;
use serde_json::json;

use crate::answer::{Json, Text};
use crate::args::FmtArgs;
use crate::files;
use crate::problem::{Exit, Failed, Problem};
use crate::session::{Answer, Session};

pub(crate) fn run(session: &mut Session, args: &FmtArgs) -> Result<(), Failed> {
    let files = Failed::all(args.files.iter().map(|path| one(session, path, args)))?;
    session.answer(&Formatted { files, check: args.check, write: args.write })
}

struct Formatted {
    files: Vec<File>,
    check: bool,
    write: bool,
}

struct File {
    name: String,
    text: String,
    is_changed: bool,
}

/// A file as it should be; it is checked or written as the arguments say.
fn one(session: &mut Session, path: &Path, args: &FmtArgs) -> Result<File, Failed> {
    let before = files::read(path, "the model")?;
    let name = path.display().to_string();
    let file = session.sources.add(name.clone(), before.clone());
    let text = pal::format(&before).map_err(|found| Failed::from_diagnostics(&found, file))?;
    let is_changed = before != text;
    if args.check && is_changed {
        let line = before.lines().zip(text.lines()).take_while(|(a, b)| a == b).count() + 1;
        let problem = Problem::new("PAL0295", Exit::Input, format!("{name} is not formatted (line {line})"));
        return Err(problem.help(format!("palinode fmt --write {name}")).into());
    }
    if args.write && is_changed && name != "-" {
        files::write(path, &text)?;
    }
    Ok(File { name, text, is_changed })
}

impl Answer for Formatted {
    fn text(&self, _: &Session) -> Text<'_> {
        let one = |file: &File| match file.is_changed && self.write {
            true if file.name != "-" => format!("{}: formatted\n", file.name),
            false if self.check || self.write => String::new(),
            _ => file.text.clone(),
        };
        self.files.iter().map(one).collect::<String>().into()
    }

    fn json(&self, _: &Session) -> Json<'_> {
        let one = |file: &File| json!({ "file": file.name, "changed": file.is_changed, "text": file.text });
        json!({ "files": self.files.iter().map(one).collect::<Vec<_>>() }).into()
    }
}
