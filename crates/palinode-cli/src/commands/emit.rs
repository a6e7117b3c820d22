//! `palinode emit`: a model and its gradient as source text, to read, to vendor and to compile.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use palinode_ir::interp::Datum;
use palinode_ir::loops::{self, LoopForm, Refusal, emit};
use palinode_ir::{Program, Span, passes, transform};
use serde_json::{Value, json};

use crate::answer::{Json, Text};
use crate::args::EmitArgs;
use crate::assign::listed;
use crate::model::Loaded;
use crate::problem::{Exit, Failed, Problem};
use crate::session::{Answer, Session};
use crate::{explain, inputs, model};

pub(crate) fn run(session: &mut Session, args: &EmitArgs) -> Result<(), Failed> {
    let loaded = model::load(session, &args.model.model)?;
    let inputs = inputs::bind(session, &loaded, &args.model.given)?;
    let traps = !args.model.given.allow_nonfinite;
    let value = passes::simplify(&passes::inline(&loaded.model.program));
    let mut made = vec![Made {
        name: "value",
        about: format!("The outputs of `{}`.", name_of(&args.model.model)),
        form: form(&value, &inputs, traps).map_err(|refusal| refused(&loaded, "the model", &refusal))?,
        program: value,
    }];
    match gradient(&loaded, args, &inputs, traps)? {
        Ok(gradient) => made.extend(gradient),
        Err(refusal) => session.warn(Problem {
            severity: palinode_ir::Severity::Warning,
            ..refused(&loaded, "the gradient", &refusal)
        }),
    }
    let source = session.sources.text(loaded.file).to_string();
    let line_of = |span: Span| {
        let before = source.get(..span.start as usize)?;
        u32::try_from(before.matches('\n').count() + 1).ok()
    };
    let options = emit::Options { counts: false, line_of: &line_of };
    let names: Vec<Arc<str>> = loaded.arguments().iter().map(|argument| argument.name.clone()).collect();
    let tasks: Vec<emit::Task<'_>> = made
        .iter()
        .map(|made| emit::Task {
            name: made.name,
            about: made.about.clone(),
            form: &made.form,
            inputs: names.clone(),
            outputs: made.program.outputs.clone(),
        })
        .collect();
    let name = crate_name(&name_of(&args.model.model));
    let files = if args.c { emit::c(&name, &tasks, &options) } else { emit::rust(&name, &tasks, &options) };
    if let Some(out) = &args.out {
        for file in &files {
            write(&out.join(&file.path), &file.text)?;
        }
    }
    let folder = args.out.as_ref().map(|out| out.display().to_string());
    session.answer(&Emitted { loaded: &loaded, files, folder })
}

/// A program that becomes a function.
struct Made {
    name: &'static str,
    about: String,
    program: Program,
    form: LoopForm,
}

fn form(program: &Program, inputs: &[Datum<f64>], traps: bool) -> Result<LoopForm, Refusal> {
    let form = loops::lower(program, inputs, traps)?;
    emit::supported(&form)?;
    Ok(form)
}

/// The gradient, or why it has no text; nothing if nothing was asked for and there is none.
fn gradient(
    loaded: &Loaded,
    args: &EmitArgs,
    inputs: &[Datum<f64>],
    traps: bool,
) -> Result<Result<Option<Made>, Refusal>, Failed> {
    let asked = args.of.is_some() || !args.wrt.is_empty();
    let wrt = match loaded.wrt(&args.wrt) {
        Err(_) if !asked => return Ok(Ok(None)),
        wrt => wrt?,
    };
    let objective = match loaded.objective(args.of.as_deref()) {
        Err(_) if !asked => return Ok(Ok(None)),
        objective => objective?,
    };
    let program = transform::value_and_grad(&loaded.only(objective), &wrt)
        .map_err(|error| explain::transform(&error, loaded.file))?;
    let program = passes::simplify(&program);
    let by: Vec<&str> = wrt.iter().map(|&at| &*loaded.arguments()[at].name).collect();
    let of = &loaded.model.outputs[objective].name;
    let about = format!(
        "`{of}` of `{}`, and its gradient with respect to {}.",
        name_of(&args.model.model),
        listed(&by)
    );
    let name = "value_and_grad";
    Ok(form(&program, inputs, traps).map(|form| Some(Made { name, about, program, form })))
}

fn refused(loaded: &Loaded, what: &str, refusal: &Refusal) -> Problem {
    let message = format!("{what} cannot be emitted: there is no text for {}", refusal.what);
    let problem = Problem::new("PAL0611", Exit::Input, message);
    let problem =
        if refusal.span.is_none() { problem } else { problem.at(loaded.file, refusal.span.range(), "here") };
    problem.help("`palinode run` and `palinode grad` compute it")
}

/// The name of a model's file, without what it ends with.
fn name_of(path: &Path) -> String {
    match path.file_stem() {
        Some(stem) if path != Path::new("-") => stem.to_string_lossy().into_owned(),
        _ => "model".into(),
    }
}

/// A name for a crate and for functions.
fn crate_name(name: &str) -> String {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    if plain.starts_with(|c: char| c.is_ascii_alphabetic()) { plain } else { format!("model_{plain}") }
}

fn write(path: &Path, text: &str) -> Result<(), Failed> {
    let folder = path.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(folder).and_then(|()| fs::write(path, text)).map_err(|error| {
        let message = format!("{} cannot be written", path.display());
        Problem::new("PAL0281", Exit::Input, message).note(error.to_string()).into()
    })
}

struct Emitted<'a> {
    loaded: &'a Loaded,
    files: Vec<emit::File>,
    folder: Option<String>,
}

impl Answer for Emitted<'_> {
    fn text(&self, _: &Session) -> Text<'_> {
        let mut out = String::new();
        for file in &self.files {
            if let Some(folder) = &self.folder {
                let lines = file.text.lines().count();
                out.push_str(&format!("wrote {folder}/{} ({lines} lines)\n", file.path));
            } else if let Some(at) = file.functions {
                // What is around them is much the same for all models.
                let gap = if out.is_empty() { "" } else { "\n" };
                out.push_str(&format!("{gap}// {}\n{}", file.path, &file.text[at..]));
            }
        }
        out.into()
    }

    fn json(&self, session: &Session) -> Json<'_> {
        let one = |file: &emit::File| json!({ "path": file.path, "text": file.text });
        let files: Vec<Value> = self.files.iter().map(one).collect();
        json!({ "model": session.sources.name_of(self.loaded.file), "folder": self.folder, "files": files })
            .into()
    }
}
