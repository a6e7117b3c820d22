//! `palinode ir`: the program that a model becomes, before and after passes, beside its source, or as loops.

use palinode_ir::interp::Datum;
use palinode_ir::loops::{self, LoopForm};
use palinode_ir::{Program, pal, passes, plan, text, transform};
use serde_json::{Value, json};

use crate::answer::{Json, Text};
use crate::args::{Derived, IrArgs};
use crate::assign::{closest, listed};
use crate::execute;
use crate::explain;
use crate::inputs;
use crate::model::{self, Loaded};
use crate::problem::{Exit, Failed, Problem};
use crate::session::{Answer, Session};
use crate::table::{HEADING, styled};

/// A program, and what made it.
struct Stage {
    name: String,
    program: Program,
}

pub(crate) fn run(session: &mut Session, args: &IrArgs) -> Result<(), Failed> {
    let loaded = model::load(session, &args.model)?;
    if args.ssa {
        return ssa(session, &loaded);
    }
    if args.loops {
        return loop_form(session, &loaded, args);
    }
    let program = derived(&loaded, args)?;
    let mut stages = vec![Stage { name: "program".to_string(), program }];
    if args.all_passes {
        for (name, pass) in passes::pipeline() {
            apply(&mut stages, name, pass);
        }
    }
    for name in &args.pass {
        let found = passes::ALL.iter().find(|(own, _)| own == name);
        let Some((name, pass)) = found else {
            let names: Vec<&str> = passes::ALL.iter().map(|(own, _)| *own).collect();
            let problem = Problem::new("PAL0296", Exit::Usage, format!("there is no pass `{name}`"));
            return Err(match closest(name, &names) {
                Some(other) => problem.help(format!("did you mean `{other}`?")).into(),
                None => problem.help(format!("there are {}", listed(&names))).into(),
            });
        };
        apply(&mut stages, name, *pass);
    }
    session.answer(&Stages { loaded: &loaded, stages })
}

struct Stages<'a> {
    loaded: &'a Loaded,
    stages: Vec<Stage>,
}

impl Answer for Stages<'_> {
    fn text(&self, _: &Session) -> Text<'_> {
        let only = self.stages.len() == 1;
        let mut out = String::new();
        let mut before: Option<&Program> = None;
        for stage in &self.stages {
            let changed = before.is_none_or(|before| *before != stage.program);
            if !only {
                let size = stage.program.size();
                let change = match before {
                    None => format!("{size} instructions"),
                    Some(_) if !changed => "no change".to_string(),
                    Some(before) => format!("{} -> {size} instructions", before.size()),
                };
                out.push_str(&styled(HEADING, &format!("// {}: {change}", stage.name)));
                out.push('\n');
            }
            if changed {
                out.push_str(&text::print(&stage.program));
                if !only {
                    out.push('\n');
                }
            }
            before = Some(&stage.program);
        }
        out.into()
    }

    fn json(&self, session: &Session) -> Json<'_> {
        let one = |Stage { name, program }: &Stage| json!({ "name": name, "instructions": program.size(), "text": text::print(program) });
        let programs: Vec<Value> = self.stages.iter().map(one).collect();
        json!({ "model": session.sources.name_of(self.loaded.file), "programs": programs }).into()
    }
}

fn apply(stages: &mut Vec<Stage>, name: &str, pass: passes::Pass) {
    let program = pass(&stages.last().expect("there is a first stage").program);
    stages.push(Stage { name: name.to_string(), program });
}

/// The model's program, with the outputs that are asked for.
fn of_output(loaded: &Loaded, args: &IrArgs) -> Result<Program, Failed> {
    Ok(match (args.derivative, args.of.as_deref()) {
        (Derived::Grad | Derived::Hessian, name) => loaded.only(loaded.objective(name)?),
        (_, Some(name)) => loaded.only(loaded.output(name)?),
        (_, None) => loaded.model.program.clone(),
    })
}

/// The same, or a derivative of it.
fn derived(loaded: &Loaded, args: &IrArgs) -> Result<Program, Failed> {
    let full = of_output(loaded, args)?;
    if args.derivative == Derived::Run {
        return Ok(full);
    }
    let wrt = loaded.wrt(&args.wrt)?;
    let program = match args.derivative {
        Derived::Run => Ok(full),
        Derived::Grad => transform::value_and_grad(&full, &wrt),
        Derived::Hessian => transform::hessian(&full, &wrt),
        Derived::Jvp => transform::jvp(&full, &wrt),
        Derived::Vjp => transform::vjp(&full, &wrt),
        Derived::Jacobian => transform::jacobian(&full, &wrt),
    };
    let program = program.map_err(|error| explain::transform(&error, loaded.file))?;
    let raw = args.raw || args.all_passes || !args.pass.is_empty();
    Ok(if raw { program } else { passes::simplify(&program) })
}

/// The loops over buffers that machine code is made of.
fn loop_form(session: &mut Session, loaded: &Loaded, args: &IrArgs) -> Result<(), Failed> {
    let inputs = inputs::bind(session, loaded, &args.given)?;
    let program = match args.derivative {
        Derived::Run => plan::simplified(&derived(loaded, args)?),
        _ => derived(loaded, args)?,
    };
    let inputs = with_directions(inputs, loaded, args)?;
    let form = loops::lower(&program, &inputs, !args.given.allow_nonfinite).map_err(|refusal| {
        let message = format!("there is no loop form: {} has none", refusal.what);
        let problem = Problem::new("PAL0302", Exit::Input, message);
        let problem = match refusal.span.is_none() {
            true => problem,
            false => problem.at(loaded.file, refusal.span.range(), ""),
        };
        problem.help("the interpreter runs it: `run`, `grad` and the others need no loop form")
    })?;
    session.answer(&Loops { loaded, form })
}

/// The inputs, and what a derivative takes besides: its tangents or cotangents, of which only lengths count.
fn with_directions(
    mut inputs: Vec<Datum<f64>>,
    loaded: &Loaded,
    args: &IrArgs,
) -> Result<Vec<Datum<f64>>, Failed> {
    match args.derivative {
        Derived::Run | Derived::Grad | Derived::Jacobian | Derived::Hessian => {}
        Derived::Jvp => {
            let tangents: Vec<Datum<f64>> =
                loaded.wrt(&args.wrt)?.into_iter().map(|at| inputs[at].clone()).collect();
            inputs.extend(tangents);
        }
        Derived::Vjp => {
            let outputs = execute::shapes(&of_output(loaded, args)?, &inputs)
                .map_err(|error| explain::run(&error, loaded))?;
            inputs.extend(outputs.into_iter().filter(|output| matches!(output, Datum::Real(_))));
        }
    }
    Ok(inputs)
}

struct Loops<'a> {
    loaded: &'a Loaded,
    form: LoopForm,
}

impl Answer for Loops<'_> {
    fn text(&self, _: &Session) -> Text<'_> {
        self.form.to_string().into()
    }

    fn json(&self, session: &Session) -> Json<'_> {
        json!({
            "model": session.sources.name_of(self.loaded.file),
            "statements": self.form.statements(),
            "text": self.form.to_string(),
        })
        .into()
    }
}

/// Lines of source up to this width have their assignments beside them, longer ones below.
const WIDE: usize = 72;

/// The source beside its single assignments.
fn ssa(session: &mut Session, loaded: &Loaded) -> Result<(), Failed> {
    let lines =
        pal::ssa(&loaded.model.source).map_err(|found| Failed::from_diagnostics(&found, loaded.file))?;
    session.answer(&Ssa { loaded, lines })
}

struct Ssa<'a> {
    loaded: &'a Loaded,
    lines: Vec<pal::SsaLine>,
}

impl Answer for Ssa<'_> {
    fn text(&self, _: &Session) -> Text<'_> {
        // Comments and other long lines that became nothing do not push the second column away.
        let chars = |line: &pal::SsaLine| line.source.chars().count();
        let assigned = self.lines.iter().filter(|line| !line.assignments.is_empty());
        let width = assigned.map(chars).max().unwrap_or(0).min(WIDE);
        let bar = styled(HEADING, "|");
        let mut out = String::new();
        for line in &self.lines {
            let mut assignments = line.assignments.iter();
            let mut row = format!("  {}", line.source);
            if chars(line) <= width {
                let padding = " ".repeat(width - chars(line));
                row = format!("{row}{padding}  {bar}  {}", assignments.next().map_or("", String::as_str));
            }
            out.push_str(row.trim_end());
            out.push('\n');
            for assignment in assignments {
                out.push_str(&format!("  {}  {bar}  {assignment}\n", " ".repeat(width)));
            }
        }
        out.into()
    }

    fn json(&self, session: &Session) -> Json<'_> {
        let one = |line: &pal::SsaLine| json!({ "line": line.number, "source": line.source, "assignments": line.assignments });
        let lines: Vec<Value> = self.lines.iter().map(one).collect();
        json!({ "model": session.sources.name_of(self.loaded.file), "lines": lines }).into()
    }
}
