//! `palinode memory`: how much memory a model and its gradient need, before they run.

use std::rc::Rc;

use palinode_core::Budget;
use palinode_ir::Program;
use palinode_ir::interp::{Chosen, Code, Datum, Engine, Limits, RunErrorKind};
use palinode_ir::pal::Role;
use palinode_ir::plan::{
    self, Ahead, Asked, FittedGradient, Ladder, PlanError, Prediction, Sides, StateKind, Target, Within,
};
use serde_json::json;

use crate::answer::{Json, Text};
use crate::args::MemoryArgs;
use crate::commands::engine_json;
use crate::ladder::{Also, Planner};
use crate::lifetimes::Arrays;
use crate::model::Loaded;
use crate::numbers::size;
use crate::problem::Failed;
use crate::session::{Answer, Session};
use crate::storage::{self, REAL, budget_json, exact_size};
use crate::table::{Cell, DOUBT, HEADING, STRONG, label, layout, styled};
use crate::traffic::Moved;
use crate::{execute, explain, inputs, model, numbers};

/// Longer runs are not recorded: an event takes 16 bytes, and there are several in a round.
const MOST_STEPS: u64 = 2_000_000;

/// A program and what it takes.
pub(crate) struct Planned {
    pub(crate) program: Program,
    pub(crate) prediction: Prediction,
    /// Why it had to be run to find out, if it had.
    measured: Option<PlanError>,
    /// Who would run it.
    by: Chosen,
}

pub(crate) fn run(session: &mut Session, args: &MemoryArgs) -> Result<(), Failed> {
    let loaded = model::load(session, &args.model.model)?;
    let mut asked = storage::read(session, &loaded, &args.storage)?;
    let target = target(&loaded, args, &asked)?;
    let inputs = inputs::bind(session, &loaded, &args.model.given)?;
    let limits = execute::limits(&args.model);
    asked.engine = execute::engine(&args.engine);
    let of_value =
        target.as_ref().map_or(loaded.model.program.clone(), |(objective, _)| loaded.only(*objective));
    let value = planned(plan::simplified(&of_value), &inputs, &limits, &loaded, &asked.engine)?;
    let mut fitted = None;
    let gradient = match &target {
        None => None,
        Some((_, wrt)) => Some(match asked.budget {
            Some(_) => {
                let of = Target { program: &of_value, wrt, inputs: &inputs };
                asked.beside.sides = if args.model.accept_points { 0 } else { of.bytes_of_sides() };
                let found = Fitted::plan(session, &loaded, &asked, of)?;
                let (program, prediction) =
                    (found.gradient.program.clone(), found.gradient.prediction.clone());
                let within = Limits { budget: found.budget, ..limits };
                let by = Code::on(&asked.engine, &program).prepare(&inputs, &within);
                fitted = Some(found);
                Planned { program, prediction, measured: None, by }
            }
            None => {
                let derived = plan::derived(&of_value, wrt, &asked.storage)
                    .map_err(|error| explain::transform(&error, loaded.file))?;
                planned(derived, &inputs, &limits, &loaded, &asked.engine)?
            }
        }),
    };
    let rows = args.rows;
    let moved = Moved::new(&gradient.as_ref().unwrap_or(&value).program, &inputs);
    session.answer(&Memory {
        session,
        loaded: &loaded,
        target: target.as_ref(),
        value,
        gradient,
        fitted,
        moved,
        rows,
    })
}

/// What `grad` would do within a budget.
struct Fitted {
    budget: Budget,
    gradient: Rc<FittedGradient>,
    /// Whether comparing both sides of a tie does not fit; then which budget is enough, if that is known.
    tie: Option<Option<u64>>,
}

impl Fitted {
    fn plan(session: &Session, loaded: &Loaded, asked: &Asked, of: Target<'_>) -> Result<Fitted, Failed> {
        let ladder = Ladder { asked, of, also: &|_| Some(0) };
        let planner = Planner { ladder, also: Also::NOTHING, loaded, session };
        let Ahead { within, sides, .. } = planner.plan()?;
        let tie = matches!(sides, Sides::TooSmall).then(|| planner.ladder.least().map(|least| least.bytes));
        match within {
            Within::Planned { budget, fitted, .. } => Ok(Fitted { budget, gradient: fitted, tie }),
            Within::Stopping { why, .. } => Err(explain::plan(&why, loaded).into()),
            Within::AnyMemory | Within::Forwards { .. } => {
                unreachable!("it asks for reverse mode within a budget")
            }
        }
    }
}

/// What is differentiated by what; nothing if the model offers nothing and nothing was asked for.
fn target(loaded: &Loaded, args: &MemoryArgs, asked: &Asked) -> Result<Option<(usize, Vec<usize>)>, Failed> {
    let names = &args.derivative;
    let found =
        loaded.objective(names.of.as_deref()).and_then(|objective| Ok((objective, loaded.wrt(&names.wrt)?)));
    let is_optional = names.of.is_none() && names.wrt.is_empty() && !asked.is_about_reverse();
    match found {
        Err(_) if is_optional => Ok(None),
        found => found.map(Some),
    }
}

/// Predicts a program; where its memory depends on data, it is run once.
fn planned(
    program: Program,
    inputs: &[Datum<f64>],
    limits: &Limits,
    loaded: &Loaded,
    engine: &Engine,
) -> Result<Planned, Failed> {
    let by = Code::on(engine, &program).prepare(inputs, limits);
    let (prediction, measured) = match plan::predict(&program, inputs, REAL) {
        Ok(prediction) => (prediction, None),
        Err(error) => (recorded(&program, inputs, limits, loaded, &error)?, Some(error)),
    };
    Ok(Planned { program, prediction, measured, by })
}

fn recorded(
    program: &Program,
    inputs: &[Datum<f64>],
    limits: &Limits,
    loaded: &Loaded,
    error: &PlanError,
) -> Result<Prediction, Failed> {
    // What infinities mean is for `run` and `grad` to say; here they take as many bytes as other numbers.
    let limits = Limits { trap_nonfinite: false, steps: limits.steps.min(MOST_STEPS), ..*limits };
    let (_, _, events) = match Code::new(program).run_recorded(inputs, &limits) {
        Err(stopped) if matches!(stopped.kind, RunErrorKind::StepLimit { limit: MOST_STEPS }) => {
            let rounds = numbers::count(MOST_STEPS);
            let note =
                format!("a run to find out takes more than {rounds} rounds and calls, too many to record");
            return Err(explain::plan(error, loaded).note(note).into());
        }
        run => run.map_err(|error| explain::run(&error, loaded))?,
    };
    plan::predict_recorded(program, inputs, REAL, &events).map_err(|_| explain::plan(error, loaded).into())
}

struct Memory<'a> {
    session: &'a Session,
    loaded: &'a Loaded,
    target: Option<&'a (usize, Vec<usize>)>,
    value: Planned,
    gradient: Option<Planned>,
    fitted: Option<Fitted>,
    moved: Moved,
    /// How many arrays text shows.
    rows: usize,
}

impl Memory<'_> {
    fn main(&self) -> &Planned {
        self.gradient.as_ref().unwrap_or(&self.value)
    }

    fn line(&self, span: palinode_ir::Span) -> Option<usize> {
        storage::line(self.session, self.loaded, span)
    }

    fn arrays(&self) -> Arrays {
        let kind = |role: Role| match role {
            Role::Param => StateKind::Persistent,
            Role::Input => StateKind::External,
        };
        let kinds: Vec<StateKind> =
            self.loaded.arguments().iter().map(|argument| kind(argument.role)).collect();
        let main = self.main();
        Arrays::new(&main.program, &main.prediction, &kinds, self.gradient.is_some())
    }

    /// `31.6 KiB = 320 B + 16 B x 2,000 rounds (line 14)`, and how well that is known.
    fn peak(&self, what: &str, planned: &Planned) -> Vec<Cell<'_>> {
        let found = &planned.prediction;
        let at_most = if found.exact || planned.measured.is_some() { "" } else { "at most " };
        let known = match &planned.measured {
            Some(PlanError::DependsOnData { what, span }) => {
                let line = self.line(*span).map_or(String::new(), |line| format!(" (line {line})"));
                Cell::new(format!("measured: {what}{line} depends on data")).style(DOUBT)
            }
            Some(_) => Cell::new("measured").style(DOUBT),
            None if found.exact => Cell::new("exact").style(HEADING),
            None if found.is_quick => {
                Cell::new("a bound: rounds differ, and following each would take longer than a run")
                    .style(DOUBT)
            }
            None => Cell::new("a bound: branches depend on data").style(DOUBT),
        };
        let peak = format!("{at_most}{}{}", size(found.peak), self.formula(found));
        vec![Cell::new(what), Cell::new(peak), known]
    }

    /// The peak by the rounds of loops.
    fn formula(&self, found: &Prediction) -> String {
        // What an inner loop keeps is part of what the outer one keeps in each round.
        let outermost = found.growth.iter().filter(|growth| {
            growth.bytes_per_round > 0
                && !found.growth.iter().any(|other| {
                    other.span != growth.span
                        && other.span.start <= growth.span.start
                        && growth.span.end <= other.span.end
                })
        });
        let mut words = Vec::new();
        let mut growing = 0;
        for growth in outermost {
            growing += growth.bytes_per_round * growth.rounds;
            let line = self.line(growth.span).map_or(String::new(), |line| format!(" (line {line})"));
            let rounds = numbers::plural(growth.rounds, "round");
            words.push(format!("{} x {rounds}{line}", size(growth.bytes_per_round)));
        }
        match found.peak.checked_sub(growing) {
            _ if words.is_empty() => String::new(),
            Some(base) => format!(" = {} + {}", size(base), words.join(" + ")),
            // Not all of it is there at once.
            None => format!(", growing by {}", words.join(" and ")),
        }
    }

    /// What loops with a budget keep as snapshots: no variable of the program, so no row of the table.
    fn snapshots(&self) -> String {
        let mut out = String::new();
        for (at, kept) in self.main().prediction.snapshots.iter().filter(|kept| kept.count > 0).enumerate() {
            let line = self.line(kept.span).map_or("a loop".to_string(), |line| format!("line {line}"));
            let label = if at == 0 { label("kept") } else { " ".repeat(9) };
            let mut parts = Vec::new();
            if kept.scalar_bytes > 0 {
                parts.push(format!("{} of numbers in one buffer", size(kept.scalar_bytes)));
            }
            if kept.array_bytes > 0 {
                parts.push(format!(
                    "arrays of {} each, shared where a round does not change them",
                    size(kept.array_bytes)
                ));
            }
            out.push_str(&format!(
                "{label}{line} keeps {} for {}: {}\n",
                numbers::plural(kept.count, "snapshot"),
                numbers::plural(kept.rounds, "round"),
                parts.join(", ")
            ));
        }
        if !out.is_empty() {
            out.push('\n');
        }
        out
    }

    /// Who would run it, and what machine code takes instead; nothing if it is the interpreter, which the
    /// peaks are those of.
    fn engines(&self) -> String {
        let parts = [("value", Some(&self.value)), ("value and gradient", self.gradient.as_ref())];
        let reported = |(what, planned): (&str, Option<&Planned>)| match &planned?.by {
            Chosen::Machine { name, bytes, grows, .. } => {
                let at_least = if *grows { "at least " } else { "" };
                Some(format!("{what}: {name}, which takes {at_least}{} in all", size(*bytes as u64)))
            }
            Chosen::Interpreter => None,
            Chosen::InterpreterBecause(why) => Some(format!("{what}: the interpreter, because {why}")),
        };
        if let Some(gradient) = &self.gradient
            && let Chosen::InterpreterBecause(why) = &gradient.by
            && gradient.by == self.value.by
        {
            return format!("\n{}the interpreter, because {why}\n", label("engine"));
        }
        let lines: Vec<String> = parts.into_iter().filter_map(reported).collect();
        if lines.is_empty() {
            return String::new();
        }
        format!("\n{}{}\n", label("engine"), lines.join(&format!("\n{:9}", "")))
    }

    fn copies(&self) -> String {
        let copies = &self.main().prediction.copies;
        if copies.is_empty() {
            return format!("{}no array is copied\n", label("copies"));
        }
        let mut out = String::new();
        for (at, copied) in copies.iter().enumerate() {
            let line = self.line(copied.span).map_or("somewhere".to_string(), |line| format!("line {line}"));
            let times = match copied.times {
                1 => String::new(),
                n => format!(" {} times", numbers::count(n)),
            };
            let elements = numbers::plural(copied.elements / copied.times.max(1), "element");
            let label = if at == 0 { label("copies") } else { " ".repeat(9) };
            out.push_str(&format!(
                "{label}{line}{} copies {elements}{times}, because {}\n",
                self.snippet(copied.span),
                self.because(copied.because)
            ));
        }
        out
    }

    fn because(&self, because: plan::Because) -> String {
        let line = |span| self.line(span).map_or(String::new(), |line| format!(" in line {line}"));
        match because {
            plan::Because::Use { op, span } => format!("`{op}`{} still needs the old array", line(span)),
            plan::Because::NextRound { span } => {
                format!("the next round of the loop{} needs the old array", line(span))
            }
            plan::Because::Result => "the old array is a result too".to_string(),
            plan::Because::Shared => "another variable holds the old array".to_string(),
        }
    }

    /// The text of a place, if it is short: ``: `a[i] = x` ``.
    fn snippet(&self, span: palinode_ir::Span) -> String {
        let text = self.session.sources.text(self.loaded.file).get(span.range()).unwrap_or("");
        let short = !span.is_none() && !text.is_empty() && text.len() <= 60 && !text.contains('\n');
        if short { format!(": `{text}`") } else { String::new() }
    }
}

impl Answer for Memory<'_> {
    fn text(&self, _: &Session) -> Text<'_> {
        let of = match self.target {
            Some((objective, _)) => &*self.loaded.model.outputs[*objective].name,
            None => "all outputs",
        };
        let mut out = format!("{}\n", styled(STRONG, &format!("{of}: peak bytes of arrays")));
        let mut peaks = vec![self.peak("value", &self.value)];
        peaks.extend(self.gradient.as_ref().map(|gradient| self.peak("value and gradient", gradient)));
        out.push_str(&layout(peaks, "   "));
        if let Some(Fitted { budget, gradient, tie }) = &self.fitted {
            let work = storage::against_all(gradient);
            out.push_str(&format!("\n{}{budget} is kept with {work}\n", label("budget")));
            let mut lines = storage::kept_by(gradient, &|span| self.line(span));
            lines.extend(tie.map(|least| {
                let more =
                    least.map_or("more".to_string(), |least| format!("at least {}", exact_size(least)));
                format!("if a comparison is a tie, `grad` needs {more} (or --accept-points)")
            }));
            for line in lines {
                out.push_str(&format!("{:9}{line}\n", ""));
            }
        }
        out.push_str(&self.engines());
        let arrays = self.arrays();
        let place = |span| self.line(span);
        out.push('\n');
        out.push_str(&arrays.table(self.rows, &place));
        out.push_str(&self.snapshots());
        out.push_str(&arrays.chart(self.rows, &place));
        out.push_str(&self.moved.table(&place));
        out.push_str(&self.copies());
        out.into()
    }

    fn json(&self, session: &Session) -> Json<'_> {
        let part = |planned: &Planned| {
            let found = &planned.prediction;
            let growth = |growth: &plan::Growth| {
                json!({
                    "line": self.line(growth.span),
                    "rounds": growth.rounds,
                    "bytes_per_round": growth.bytes_per_round,
                })
            };
            let snapshots = |kept: &plan::Snapshots| {
                json!({
                    "line": self.line(kept.span),
                    "rounds": kept.rounds,
                    "snapshots": kept.count,
                    "number_bytes": kept.scalar_bytes,
                    "array_bytes_each": kept.array_bytes,
                })
            };
            let copied = |copied: &plan::Copied| {
                json!({
                    "line": self.line(copied.span),
                    "times": copied.times,
                    "elements": copied.elements,
                    "because": self.because(copied.because),
                })
            };
            json!({
                "peak_bytes": found.peak,
                "charged_bytes": found.heap,
                "engine": engine_json(&planned.by),
                "known": match &planned.measured {
                    Some(_) => "measured",
                    None if found.exact => "exact",
                    None => "bound",
                },
                "allocations": found.allocations,
                "growth": found.growth.iter().map(growth).collect::<Vec<_>>(),
                "loops": found.snapshots.iter().map(snapshots).collect::<Vec<_>>(),
                "copies": found.copies.iter().map(copied).collect::<Vec<_>>(),
            })
        };
        let arrays = self.arrays();
        let mut all = json!({
            "model": session.sources.name_of(self.loaded.file),
            "output": self.target.map(|(objective, _)| &*self.loaded.model.outputs[*objective].name),
            "wrt": self.target.map(|(_, wrt)| {
                wrt.iter().map(|&at| &*self.loaded.arguments()[at].name).collect::<Vec<_>>()
            }),
            "value": part(&self.value),
            "gradient": self.gradient.as_ref().map(part),
            "arena_bytes": arrays.arena(),
            "arrays": arrays.json(&|span| self.line(span)),
            "moves": self.moved.json(&|span| self.line(span)),
        });
        if let Some(Fitted { budget, gradient, tie }) = &self.fitted {
            all["budget"] = budget_json(*budget, gradient, &|span| self.line(span));
            if let Some(least) = tie {
                all["budget"]["tie_bytes"] = json!(least);
            }
        }
        all.into()
    }
}
