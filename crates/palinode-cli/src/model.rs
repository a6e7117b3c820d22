//! A model file -> a compiled model, its default data files, and which of its outputs and arguments are
//! meant.

use std::path::Path;

use clap::ValueEnum;
use palinode_ir::pal::{self, Argument, Model, Output, Role};
use palinode_ir::{Program, Type};

use crate::args::Derived;
use crate::assign::{listed, unknown};
use crate::data::Spec;
use crate::files;
use crate::problem::{Exit, Failed, Problem};
use crate::session::Session;
use crate::sources::FileId;

/// A compiled model.
pub(crate) struct Loaded {
    pub(crate) file: FileId,
    pub(crate) model: Model,
    /// The files that `# data:` lines name.
    pub(crate) data: Vec<Spec>,
}

/// Reads and compiles a model; what it warns of goes to the session.
pub(crate) fn load(session: &mut Session, path: &Path) -> Result<Loaded, Failed> {
    let text = files::read(path, "the model")?;
    let name = if path == Path::new("-") { "standard input".to_string() } else { path.display().to_string() };
    let file = session.sources.add(name, text.clone());
    let model = pal::compile(&text).map_err(|found| Failed::from_diagnostics(&found, file))?;
    for warning in &model.warnings {
        session.warn(Problem::from_diagnostic(warning, file));
    }
    Ok(Loaded { file, model, data: default_data(&text, path) })
}

/// `# data: measured.csv` names the file to read if none is given: beside the model, or in a folder above it.
fn default_data(text: &str, model: &Path) -> Vec<Spec> {
    let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix('#'));
    let named = lines.filter_map(|comment| comment.trim_start().strip_prefix("data:"));
    let words = named.map(str::trim).filter(|word| !word.is_empty());
    words.map(|word| nearest(word, model.parent().unwrap_or(Path::new("")))).collect()
}

/// How many folders above the model may hold its data.
const ABOVE: usize = 3;

fn nearest(word: &str, folder: &Path) -> Spec {
    let mut base = folder.to_path_buf();
    for _ in 0..=ABOVE {
        let spec = Spec::parse(word, Some(&base));
        if spec.path.is_file() {
            return spec;
        }
        base.push("..");
    }
    Spec::parse(word, Some(folder))
}

impl Loaded {
    pub(crate) fn arguments(&self) -> &[Argument] {
        &self.model.arguments
    }

    /// The positions of the arguments to differentiate by: those named, or every param.
    pub(crate) fn wrt(&self, names: &[String]) -> Result<Vec<usize>, Failed> {
        let arguments = self.arguments();
        if names.is_empty() {
            let params: Vec<usize> =
                (0..arguments.len()).filter(|&at| arguments[at].role == Role::Param).collect();
            if params.is_empty() {
                let problem = Problem::new(
                    "PAL0292",
                    Exit::Input,
                    "the model has no `param` to differentiate with respect to",
                );
                let reals: Vec<&str> = real_names(arguments);
                return Err(match reals.first() {
                    Some(first) => {
                        problem.help(format!("declare one, or name an input: `--wrt {first}`")).into()
                    }
                    None => problem.help("declare one: `param a = 1`").into(),
                });
            }
            return Ok(params);
        }
        let mut found = Vec::new();
        let mut problems = Vec::new();
        for name in names.iter().map(|name| name.trim()) {
            let Some(at) = arguments.iter().position(|argument| &*argument.name == name) else {
                let problem = unknown(name, "param or input", &real_names(arguments));
                problems.push(problem.note(format!("requested by `--wrt {name}`")));
                continue;
            };
            if !arguments[at].ty.is_real() {
                let message = format!("`{name}` is an integer, which has no derivative");
                let problem = Problem::new("PAL0292", Exit::Usage, message);
                let problem = problem.at(self.file, arguments[at].span.range(), "declared here");
                problems.push(problem.help(format!("the real ones are {}", listed(&real_names(arguments)))));
            } else if !found.contains(&at) {
                found.push(at);
            }
        }
        if problems.is_empty() { Ok(found) } else { Err(Failed(problems)) }
    }

    /// The position of the output to differentiate: the one named by `--of`, the loss, or the only real
    /// number.
    pub(crate) fn objective(&self, name: Option<&str>) -> Result<usize, Failed> {
        let outputs = &self.model.outputs;
        let is_scalar = |output: &Output| output.ty.is_real() && output.ty.is_scalar();
        let scalars: Vec<usize> = (0..outputs.len()).filter(|&at| is_scalar(&outputs[at])).collect();
        let names: Vec<&str> = scalars.iter().map(|&at| &*outputs[at].name).collect();
        if let Some(name) = name {
            let Some(at) = outputs.iter().position(|output| &*output.name == name) else {
                return Err(no_output(name, &names).into());
            };
            if !is_scalar(&outputs[at]) {
                let message = format!(
                    "`{name}` is {}, but a gradient needs a single real number",
                    described(outputs[at].ty)
                );
                let problem = Problem::new("PAL0291", Exit::Usage, message);
                let problem = problem.at(self.file, outputs[at].span.range(), "declared here");
                return Err(problem.help("sum it in the model, or use `palinode jvp`").into());
            }
            return Ok(at);
        }
        let losses: Vec<usize> = scalars.iter().copied().filter(|&at| outputs[at].is_loss).collect();
        match (losses.as_slice(), scalars.as_slice()) {
            ([only], _) | ([], [only]) => Ok(*only),
            ([], []) => {
                let problem =
                    Problem::new("PAL0291", Exit::Input, "the model has no real number to differentiate");
                let problem = match outputs.first() {
                    Some(output) => {
                        let words = format!("`{}` is {}", output.name, described(output.ty));
                        problem.at(self.file, output.span.range(), words)
                    }
                    None => problem,
                };
                Err(problem.help("add `loss name = ...` with a single real number").into())
            }
            (several, _) => {
                let several = if several.is_empty() { &scalars } else { several };
                let what = if several.len() == losses.len() { "losses" } else { "outputs and no loss" };
                let message = format!("the model has {} {what}: which one do you mean?", several.len());
                let mut problem = Problem::new("PAL0291", Exit::Usage, message);
                for &at in several {
                    problem = problem.at(self.file, outputs[at].span.range(), "");
                }
                Err(problem.help(format!("choose one with `--of {}`", outputs[several[0]].name)).into())
            }
        }
    }

    /// The position of an output, whatever its type.
    pub(crate) fn output(&self, name: &str) -> Result<usize, Failed> {
        let names: Vec<&str> = self.model.outputs.iter().map(|output| &*output.name).collect();
        let found = names.iter().position(|own| *own == name);
        found.ok_or_else(|| no_output(name, &names).into())
    }

    /// The program with a single output.
    pub(crate) fn only(&self, output: usize) -> Program {
        only(&self.model.program, output)
    }
}

/// A program with one of its outputs.
pub(crate) fn only(program: &Program, output: usize) -> Program {
    let mut program = program.clone();
    let entry = program.entry.index();
    let body = &mut program.functions[entry].body;
    body.results = vec![body.results[output]];
    program.outputs = vec![program.outputs[output].clone()];
    program
}

/// There is no such output; `--of` once named derivatives, too.
fn no_output(name: &str, names: &[&str]) -> Problem {
    let problem = unknown(name, "output", names).note(format!("requested by `--of {name}`"));
    match Derived::from_str(name, false) {
        Ok(_) => problem.help(format!("`palinode ir --derivative {name}` shows a derivative as a program")),
        Err(_) => problem,
    }
}

fn real_names(arguments: &[Argument]) -> Vec<&str> {
    arguments.iter().filter(|argument| argument.ty.is_real()).map(|argument| &*argument.name).collect()
}

/// `a real number`, `an array of integers with 2 axes`.
pub(crate) fn described(ty: Type) -> String {
    use palinode_ir::Elem;
    let (one, many) = match ty.elem {
        Elem::F64 | Elem::F32 => ("a real number", "reals"),
        Elem::Int => ("an integer", "integers"),
        Elem::Bool => ("a truth value", "truth values"),
    };
    match ty.rank {
        0 => one.to_string(),
        1 => format!("an array of {many} with 1 axis"),
        rank => format!("an array of {many} with {rank} axes"),
    }
}
