//! One file per command: arguments -> an answer, or why there is none.

pub(crate) mod batch;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod emit;
pub(crate) mod fmt;
pub(crate) mod grad;
pub(crate) mod help;
pub(crate) mod hessian;
pub(crate) mod ir;
pub(crate) mod jvp;
pub(crate) mod loops;
pub(crate) mod memory;
pub(crate) mod run;
pub(crate) mod tape;

use palinode_ir::interp::{Chosen, Code, Datum, Engine, Limits, RunError, RunErrorKind};
use palinode_ir::pal::{Argument, Output, Unit};
use palinode_ir::transform::Rounds;
use palinode_ir::{Op, Program, plan};
use serde_json::{Value, json};

use crate::answer::Json;
use crate::args::{DerivativeArgs, ModelArgs, ShowArgs};
use crate::execute::{self, Cost, Ran};
use crate::explain;
use crate::model::Loaded;
use crate::numbers::{self, Look};
use crate::problem::{Exit, Failed, Problem};
use crate::progress::Progress;
use crate::session::Session;
use crate::table::{STRONG, styled};
use crate::{inputs, model, storage, value};

impl ShowArgs {
    pub(crate) fn look(&self) -> Look {
        Look { digits: usize::from(self.digits), full: self.full }
    }
}

/// Runs the model itself, every output. It is simplified as derivatives are, so that steps are counted alike.
pub(crate) fn run_model(
    loaded: &Loaded,
    inputs: &[Datum<f64>],
    limits: &Limits,
    engine: &Engine,
) -> Result<Ran, Failed> {
    let program = &loaded.model.program;
    match run_program(&plan::simplified(program), inputs, limits, engine) {
        // What was simplified may have lost its place; the model as it is written says where. A limit has no
        // place that matters, and a second run would take as long.
        Err(error) if !is_limit(&error.kind) => {
            run_values(loaded, program, inputs, limits, &Engine::INTERPRETER)
        }
        done => values(loaded, done, limits),
    }
}

/// Whether a run was stopped for what it takes, not for what it does.
fn is_limit(kind: &RunErrorKind) -> bool {
    matches!(
        kind,
        RunErrorKind::StepLimit { .. }
            | RunErrorKind::DepthLimit { .. }
            | RunErrorKind::OverBudget { .. }
            | RunErrorKind::TooLarge { .. }
    )
}

/// Runs a program that gives every output of the model.
pub(crate) fn run_values(
    loaded: &Loaded,
    program: &Program,
    inputs: &[Datum<f64>],
    limits: &Limits,
    engine: &Engine,
) -> Result<Ran, Failed> {
    values(loaded, run_program(program, inputs, limits, engine), limits)
}

fn run_program(
    program: &Program,
    inputs: &[Datum<f64>],
    limits: &Limits,
    engine: &Engine,
) -> Result<Ran, RunError> {
    let code = Code::on(engine, program);
    let _progress = Progress::start("running", 1);
    execute::run(&code, inputs, limits)
}

fn values(loaded: &Loaded, ran: Result<Ran, RunError>, limits: &Limits) -> Result<Ran, Failed> {
    let ran = ran.map_err(|error| explain::run(&error, loaded))?;
    // The run stops where finite numbers give an infinity or NaN. An `inf` of the model is no mistake by
    // itself, but NaN is no result.
    if limits.trap_nonfinite {
        let is_nan =
            |datum: &Datum<f64>| datum.as_vector().is_some_and(|data| data.iter().any(|x| x.is_nan()));
        let broken = (0..ran.outputs.len()).filter(|&at| is_nan(&ran.outputs[at]));
        let problems: Vec<Problem> = broken.map(|at| not_finite(loaded, at, f64::NAN)).collect();
        if !problems.is_empty() {
            return Err(Failed(problems));
        }
    }
    Ok(ran)
}

/// The value without its gradient, and what it takes. Other outputs are not computed: they may take more.
pub(crate) fn value_alone(
    loaded: &Loaded,
    code: &Code,
    objective: usize,
    inputs: &[Datum<f64>],
    limits: &Limits,
) -> Result<(f64, Cost), Failed> {
    let _progress = Progress::start("running", 1);
    let ran = execute::run(code, inputs, limits).map_err(|error| explain::run(&error, loaded))?;
    let value = ran.outputs[0].as_real().expect("the objective is a real number");
    Ok((finite(loaded, objective, value, limits)?, ran.cost))
}

/// The value of what is differentiated; an infinite one has no derivative.
pub(crate) fn objective_value(
    loaded: &Loaded,
    ran: &Ran,
    objective: usize,
    limits: &Limits,
) -> Result<f64, Failed> {
    let value = ran.outputs[objective].as_real().expect("the objective is a real number");
    finite(loaded, objective, value, limits)
}

/// The value of an output, which has no derivative if it is infinite.
fn finite(loaded: &Loaded, objective: usize, value: f64, limits: &Limits) -> Result<f64, Failed> {
    if limits.trap_nonfinite && !value.is_finite() {
        return Err(not_finite(loaded, objective, value).into());
    }
    Ok(value)
}

fn not_finite(loaded: &Loaded, output: usize, value: f64) -> Problem {
    let output = &loaded.model.outputs[output];
    let is = if output.ty.is_scalar() { "is" } else { "has an entry that is" };
    let message = format!("the output `{}` {is} {}", output.name, numbers::plain(value));
    Problem::new("PAL0260", Exit::Run, message)
        .at(loaded.file, output.span.range(), "")
        .note("no operation on finite numbers made it: the model contains or was given an infinity or NaN")
        .help("use large finite numbers instead, or allow it with --allow-nonfinite")
}

/// The values, to count the rounds of loops that end by data; nothing if nobody asks, or if there are none.
pub(crate) fn rounds_counter(session: &Session, program: &Program) -> Option<Code> {
    let mut has_while = false;
    for function in &program.functions {
        function.body.for_each_inst(&mut |inst| has_while |= matches!(inst.op, Op::While { .. }));
    }
    if session.json && has_while { plan::counter(program) } else { None }
}

/// What is differentiated, with respect to what, and at which inputs.
pub(crate) struct Question {
    pub(crate) loaded: Loaded,
    pub(crate) objective: usize,
    pub(crate) wrt: Vec<usize>,
    pub(crate) inputs: Vec<Datum<f64>>,
}

impl Question {
    pub(crate) fn read(
        session: &mut Session,
        model: &ModelArgs,
        derivative: &DerivativeArgs,
    ) -> Result<Question, Failed> {
        let loaded = model::load(session, &model.model)?;
        let objective = loaded.objective(derivative.of.as_deref())?;
        let wrt = loaded.wrt(&derivative.wrt)?;
        let inputs = inputs::bind(session, &loaded, &model.given)?;
        Ok(Question { loaded, objective, wrt, inputs })
    }
}

/// What a derivative means: the unit of its value, and what it takes as given.
pub(crate) struct Meaning<'a> {
    pub(crate) loaded: &'a Loaded,
    pub(crate) unit: Option<&'a Unit>,
    pub(crate) wrt: &'a [usize],
    pub(crate) inputs: &'a [Datum<f64>],
    pub(crate) decisions: Option<u64>,
    /// From [`rounds_counter`].
    pub(crate) counter: Option<Code>,
    pub(crate) limits: &'a Limits,
}

impl<'a> Meaning<'a> {
    /// Of a derivative whose decisions were not counted.
    pub(crate) fn new(
        loaded: &'a Loaded,
        (wrt, inputs): (&'a [usize], &'a [Datum<f64>]),
        unit: Option<&'a Unit>,
        (counter, limits): (Option<Code>, &'a Limits),
    ) -> Meaning<'a> {
        Meaning { loaded, unit, wrt, inputs, decisions: None, counter, limits }
    }

    /// The arguments that it is taken with respect to.
    pub(crate) fn moved(&self) -> impl Iterator<Item = &Argument> {
        self.wrt.iter().map(|&at| &self.loaded.arguments()[at])
    }

    pub(crate) fn json(&self, session: &Session) -> Value {
        let fixed = self.loaded.arguments().iter().enumerate().filter(|(at, _)| !self.wrt.contains(at));
        let line = |span| storage::line(session, self.loaded, span);
        let rounds = match &self.counter {
            None => Some(Vec::new()),
            Some(code) => {
                code.count_rounds(self.inputs, &plan::to_count(self.limits)).ok().map(|(all, _)| all)
            }
        };
        let one = |one: &Rounds| json!({ "line": line(one.span), "least": one.least, "most": one.most });
        json!({
            "unit": value::unit(self.unit),
            "held_fixed": {
                "inputs": fixed.map(|(_, argument)| &*argument.name).collect::<Vec<_>>(),
                "decisions": self.decisions,
                "rounds": rounds.map(|rounds| rounds.iter().map(one).collect::<Vec<_>>()),
            },
        })
    }
}

/// An output as JSON, with its value in its unit.
pub(crate) fn output_json<'a>(output: &'a Output, datum: &'a Datum<f64>) -> Json<'a> {
    Json::fields([
        ("name", json!(&*output.name).into()),
        ("loss", json!(output.is_loss).into()),
        ("shape", json!(datum.shape()).into()),
        ("value", value::datum(datum, None)),
        ("unit", value::unit(output.unit.as_ref()).into()),
    ])
}

/// `2,000 steps in 0.31 ms, 1.2 ms in all`: the run alone, and with reading, planning and compiling.
pub(crate) fn effort(cost: &Cost, session: &Session) -> String {
    let steps =
        if cost.steps == 0 { String::new() } else { format!("{} in ", numbers::plural(cost.steps, "step")) };
    format!("{steps}{}, {} in all", numbers::time(cost.seconds), numbers::time(session.seconds()))
}

/// Who ran it, as a line; nothing if it is the interpreter that was asked for.
pub(crate) fn engine_line(by: &Chosen) -> String {
    match by {
        Chosen::Machine { name, seconds, .. } if *seconds > 0.0 => {
            format!("engine   {name}, compiled in {}\n", numbers::time(*seconds))
        }
        Chosen::Machine { name, .. } => format!("engine   {name}\n"),
        Chosen::Interpreter => String::new(),
        Chosen::InterpreterBecause(why) => format!("engine   the interpreter, because {why}\n"),
    }
}

/// The same for programs.
pub(crate) fn engine_json(by: &Chosen) -> Value {
    match by {
        Chosen::Machine { name, seconds, bytes, grows } => {
            json!({ "by": name, "compile_seconds": seconds, "bytes": bytes, "grows": grows })
        }
        Chosen::Interpreter => json!({ "by": "interpreter", "why": null }),
        Chosen::InterpreterBecause(why) => json!({ "by": "interpreter", "why": why }),
    }
}

/// What it took, for programs.
pub(crate) fn measured(cost: &Cost, session: &Session, memory: Value) -> Json<'static> {
    let (seconds, total) = (cost.seconds, session.seconds());
    let engine = engine_json(&cost.by);
    json!({
        "steps": cost.steps,
        "seconds": seconds,
        "total_seconds": total,
        "engine": engine,
        "memory": memory,
    })
    .into()
}

/// A result and, to the right, what it took.
pub(crate) fn headline(result: &str, cost: &Cost, session: &Session) -> String {
    let gap = " ".repeat(48_usize.saturating_sub(result.chars().count()).max(3));
    format!("{}{gap}{}\n", styled(STRONG, result), effort(cost, session))
}
