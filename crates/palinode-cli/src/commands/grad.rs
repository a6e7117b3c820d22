//! `palinode grad`: value and gradient, and how well differences agree.

use palinode_ir::interp::{Code, Datum, Limits, RunErrorKind, Tensor};
use palinode_ir::pal::{Argument, Role};
use palinode_ir::{Program, plan};
use serde_json::{Value, json};

use crate::args::{GradArgs, Mode};
use crate::checking::{self, Checked};
use crate::commands::memory::budget_json;
use crate::commands::{finite, headline, objective_value, run_model};
use crate::differences::Verdict;
use crate::execute::Cost;
use crate::gradient::{Gradient, NoGradient, gradient};
use crate::model::Loaded;
use crate::numbers::Look;
use crate::problem::{Exit, Failed, Problem};
use crate::session::Session;
use crate::stops::Stop;
use crate::storage::{Asked, Within};
use crate::table::{BAD, Cell, DOUBT, GOOD, HEADING, layout, styled};
use crate::{execute, inputs, model, numbers, stops, storage, value};

pub(crate) fn run(session: &mut Session, args: &GradArgs) -> Result<(), Failed> {
    let loaded = model::load(session, &args.model.model)?;
    let objective = loaded.objective(args.derivative.of.as_deref(), "--of")?;
    let wrt = loaded.wrt(&args.derivative.wrt)?;
    let inputs = inputs::bind(session, &loaded, &args.model)?;
    let limits = execute::limits_and_sums(&args.model, &args.sums);
    let asked = storage::read(session, &loaded, &args.storage)?;
    let mode = if asked.is_about_reverse() { Mode::Reverse } else { args.mode };
    if mode != args.mode && args.mode == Mode::Forward {
        let message =
            "--budget, --recompute and --store are about the way back, which forward mode does not go";
        let problem = Problem::new("PAL0298", Exit::Usage, message);
        return Err(problem.help("leave out --mode, or leave out these").into());
    }

    let program = loaded.only(objective);
    let within = Within::plan(session, &loaded, &asked, &program, &wrt, &inputs)?;
    let (found, forward) = match asked.budget {
        None => {
            let ran = run_model(&loaded, &inputs, &limits)?;
            (objective_value(&loaded, &ran, objective, &limits)?, ran.cost)
        }
        // Other outputs may take more than the budget.
        Some(budget) => value_alone(&loaded, &program, objective, &inputs, &Limits { budget, ..limits })?,
    };
    let found_gradient = gradient(&program, &wrt, &inputs, &limits, mode, (&asked, &within))
        .map_err(|error| no_gradient(error, &loaded))?;
    let rounding = match asked.is_rounded() {
        true => Some(rounding(&program, &wrt, &inputs, &limits, &asked, &found_gradient, &loaded)?),
        false => None,
    };
    let mut checked =
        args.check.then(|| checking::check(&program, &wrt, &inputs, &limits, &found_gradient.parts));
    if let Some(checked) = &mut checked {
        let of = loaded.model.outputs[objective].unit.as_ref();
        for (part, &at) in checked.parts.iter_mut().zip(&wrt) {
            part.scale(value::derivative_scale(of, loaded.arguments()[at].unit.as_ref()));
        }
    }

    let stops = stops::stops(&program, &inputs, &limits, None);
    let answer = Answer {
        loaded: &loaded,
        stops: &stops,
        objective,
        wrt: &wrt,
        inputs: &inputs,
        value: found,
        gradient: &found_gradient,
        forward,
        asked: &asked,
        within: &within,
        rounding,
        checked: checked.as_ref(),
    };
    let (text, fields) = (answer.text(args.show.look(), session), answer.json(session));
    session.answer(&text, fields);
    match checked {
        Some(checked) if checked.disagrees() => Err(disagreement(session, &checked, rounding)),
        _ => Ok(()),
    }
}

/// The value without its gradient, and what it takes.
fn value_alone(
    loaded: &Loaded,
    program: &Program,
    objective: usize,
    inputs: &[Datum<f64>],
    limits: &Limits,
) -> Result<(f64, Cost), Failed> {
    let program = storage::value_within(program, inputs, limits.budget)?;
    let ran = execute::run(&Code::new(&program), inputs, limits)
        .map_err(|error| Problem::from_run(&error, loaded))?;
    let value = ran.outputs[0].as_real().expect("the objective is a real number");
    Ok((finite(loaded, objective, value, limits)?, ran.cost))
}

/// How far a gradient is from the exact one, as a part of its largest entry.
fn rounding(
    program: &Program,
    wrt: &[usize],
    inputs: &[Datum<f64>],
    limits: &Limits,
    asked: &Asked,
    found: &Gradient,
    loaded: &Loaded,
) -> Result<f64, Failed> {
    let exact = gradient(program, wrt, inputs, limits, Mode::Reverse, (&asked.exact(), &Within::AnyMemory))
        .map_err(|error| no_gradient(error, loaded))?;
    let data = |gradient: &Gradient| gradient.parts.iter().cloned().map(Datum::Real).collect::<Vec<_>>();
    Ok(plan::narrowing_error(&data(&exact), &data(found)))
}

/// The answer has been given; what is left is the exit code, and for people a word about it.
fn disagreement(session: &Session, checked: &Checked, rounding: Option<f64>) -> Failed {
    let problem = Problem::new("PAL0294", Exit::Check, "the gradient and the differences disagree");
    let mut problem = match rounding.filter(|error| *error > 0.0) {
        Some(_) => problem
            .note("the gradient was rounded, because arrays were kept in fewer bits as --store says")
            .help("check without `f32` and `bf16` in --store; the answer says by how much they round"),
        None => problem
            .note("that is as it should be with `stop_gradient`, and may be near a jump or in a loop with a loose tolerance")
            .help("otherwise a rule of Palinode is wrong: please report it with the model"),
    };
    if checked.decisions.count() > 0 {
        problem = problem
            .note("the gradient follows the decisions that were taken; moving the arguments may change them");
    }
    if session.json { Failed(Vec::new()) } else { problem.into() }
}

/// Why there is no gradient although the model ran.
pub(crate) fn no_gradient(error: NoGradient, loaded: &Loaded) -> Failed {
    match error {
        NoGradient::Transform(error) => Problem::from_transform(&error, loaded.file).into(),
        NoGradient::Run(error) => {
            let mut problem = Problem::from_run(&error, loaded);
            if matches!(error.kind, RunErrorKind::NonFinite { .. }) {
                problem.code = "PAL0293";
                problem.message = format!("the model runs, but its derivative does not: {}", problem.message);
                problem.help = Some(
                    "the function has no finite slope here; move the inputs away, or see it with --allow-nonfinite"
                        .to_string(),
                );
            }
            problem.into()
        }
        NoGradient::NotFinite(x) => {
            let message = format!("the model runs, but a derivative is {}", numbers::plain(x));
            Problem::new("PAL0293", Exit::Run, message)
                .note("no operation on finite numbers made it: the model contains or was given an infinity or NaN")
                .help("use large finite numbers instead, or see it with --allow-nonfinite")
                .into()
        }
    }
}

struct Answer<'a> {
    loaded: &'a Loaded,
    stops: &'a [Stop],
    objective: usize,
    wrt: &'a [usize],
    inputs: &'a [Datum<f64>],
    value: f64,
    gradient: &'a Gradient,
    forward: Cost,
    asked: &'a Asked,
    within: &'a Within,
    /// How far the gradient is from the exact one, if arrays were kept in fewer bits.
    rounding: Option<f64>,
    checked: Option<&'a Checked>,
}

impl Answer<'_> {
    fn output(&self) -> &palinode_ir::pal::Output {
        &self.loaded.model.outputs[self.objective]
    }

    fn argument(&self, part: usize) -> &Argument {
        &self.loaded.arguments()[self.wrt[part]]
    }

    /// A part of the gradient per declared unit.
    fn scaled(&self, part: usize) -> Tensor<f64> {
        let scale = value::derivative_scale(self.output().unit.as_ref(), self.argument(part).unit.as_ref());
        let mut tensor = self.gradient.parts[part].clone();
        tensor.data.iter_mut().for_each(|x| *x *= scale);
        tensor
    }

    fn value(&self) -> f64 {
        self.output().unit.as_ref().map_or(self.value, |unit| unit.from_si(self.value))
    }

    fn text(&self, look: Look, session: &Session) -> String {
        let output = self.output();
        let unit = output.unit.as_ref().map_or(String::new(), |unit| format!(" {}", unit.text));
        let shown = format!("{} = {}{unit}", output.name, numbers::short(self.value(), look.digits));
        let mut out = headline(&shown, self.gradient.cost);
        out.push('\n');
        let mut rows = vec![vec![
            Cell::new("with respect to").style(HEADING),
            Cell::new("gradient").style(HEADING),
            Cell::new("unit").style(HEADING),
            Cell::new("check by central differences").style(HEADING),
        ]];
        for part in 0..self.wrt.len() {
            let tensor = self.scaled(part);
            let argument = self.argument(part);
            let unit = value::derivative_unit(output.unit.as_ref(), argument.unit.as_ref());
            let check =
                self.checked.map_or(Cell::default(), |checked| verdict_cell(&checked.parts[part], look));
            rows.push(vec![
                Cell::new(&*argument.name),
                Cell::new(numbers::reals(&tensor.shape, &tensor.data, look)),
                Cell::new(unit),
                check,
            ]);
        }
        out.push_str(&layout(&rows, "   "));
        out.push('\n');
        if let Some(checked) = self.checked
            && checked.decisions.count() > 0
        {
            out.push_str(&decisions_line(checked, look));
        }
        for stop in self.stops {
            if let Some(words) = stop.flag(storage::line(session, self.loaded, stop.span)) {
                out.push_str(&format!("rounds   {}\n", styled(DOUBT, &words)));
            }
        }
        out.push_str(&self.memory_line(session));
        if let Some(error) = self.rounding {
            let error = numbers::short(error, 2);
            out.push_str(&format!(
                "rounded  off by {error} of its largest entry, because arrays were kept in fewer bits\n"
            ));
        }
        out
    }

    fn memory_line(&self, session: &Session) -> String {
        let arrays = numbers::bytes(self.gradient.cost.arrays);
        match self.within {
            Within::AnyMemory => {}
            Within::Planned { budget, fitted } => {
                let work = storage::against_all(fitted.overhead, fitted.store_all);
                let line = |span| storage::line(session, self.loaded, span);
                let how = storage::kept_by(fitted, &line).join("\n         ");
                return format!(
                    "memory   peak {arrays} of arrays, within {budget}; {work}\n         {how}\n"
                );
            }
            Within::Stopping { budget } => {
                let how = match self.gradient.states {
                    None => storage::chosen(&self.loaded.model.program, self.gradient.storage.recompute, 0),
                    Some(bytes) => {
                        format!("each loop keeps as many states as fit into {}", numbers::bytes(bytes))
                    }
                };
                return format!(
                    "memory   peak {arrays} of arrays, within {budget}; it is not known before a run, so more would have stopped it\n         {how}\n"
                );
            }
        }
        let (peak, forward) = (self.gradient.cost.peak, self.forward.peak);
        let mode = match self.gradient.mode {
            Mode::Reverse => "forwards and backwards",
            Mode::Forward | Mode::Auto => "forwards with tangents",
        };
        let mut line = format!(
            "memory   peak {} {mode}, {} for the value alone",
            numbers::bytes(peak),
            numbers::bytes(forward)
        );
        let extra = peak.saturating_sub(forward);
        if self.gradient.mode == Mode::Reverse && self.forward.steps >= 100 {
            line.push_str(&format!("; {:.1} bytes more a step", extra as f64 / self.forward.steps as f64));
        }
        line.push('\n');
        line
    }

    fn json(&self, session: &Session) -> Value {
        let output = self.output();
        let parts = (0..self.wrt.len()).map(|part| {
            let argument = self.argument(part);
            let tensor = self.scaled(part);
            let at = value::in_unit(self.inputs[self.wrt[part]].clone(), argument.unit.as_ref());
            let mut fields = json!({
                "name": &*argument.name,
                "role": if argument.role == Role::Param { "param" } else { "input" },
                "unit": value::unit(argument.unit.as_ref()),
                "at": value::datum(&at),
                "shape": tensor.shape,
                "gradient": value::reals(&tensor),
            });
            if let Some(checked) = self.checked {
                fields["check"] = checked.parts[part].json();
            }
            fields
        });
        let mut all = json!({
            "model": session.sources.name_of(self.loaded.file),
            "output": {
                "name": &*output.name,
                "value": value::number(self.value()),
                "unit": value::unit(output.unit.as_ref()),
            },
            "mode": if self.gradient.mode == Mode::Reverse { "reverse" } else { "forward" },
            "gradient": parts.collect::<Vec<_>>(),
            "steps": self.gradient.cost.steps,
            "seconds": self.gradient.cost.seconds,
            "memory": {
                "peak_bytes": self.gradient.cost.peak,
                "value_peak_bytes": self.forward.peak,
                "arrays_peak_bytes": self.gradient.cost.arrays,
                "charged_bytes": self.gradient.cost.charged,
            },
        });
        if self.asked.is_about_reverse() {
            all["memory"]["recompute"] = json!(storage::word(self.gradient.storage.recompute));
        }
        if let Some(error) = self.rounding {
            all["memory"]["narrowing_error"] = value::number(error);
        }
        match self.within {
            Within::AnyMemory => {}
            Within::Planned { budget, fitted } => {
                let line = |span| storage::line(session, self.loaded, span);
                all["budget"] = budget_json(*budget, fitted, &line);
            }
            Within::Stopping { budget } => all["budget"] = json!({ "budget_bytes": budget.bytes() }),
        }
        if !self.stops.is_empty() {
            let line = |stop: &Stop| storage::line(session, self.loaded, stop.span);
            let name = |at: usize| self.loaded.arguments()[at].name.to_string();
            all["stops"] = self.stops.iter().map(|stop| stop.json(line(stop), &name)).collect();
        }
        if let Some(checked) = self.checked {
            all["decisions"] = json!({
                "count": checked.decisions.count(),
                "smallest_margin": Some(checked.decisions.smallest_margin).filter(|margin| margin.is_finite()),
            });
        }
        all
    }
}

/// What `--check` says about one argument.
fn verdict_cell(part: &checking::Part, look: Look) -> Cell {
    let of = if part.tested < part.elements {
        format!(" ({} of {} entries and a direction)", part.tested, numbers::count(part.elements as u64))
    } else {
        String::new()
    };
    let number = |x: f64| numbers::short(x, look.digits);
    match part.verdict {
        Verdict::Agrees { digits } => {
            Cell::new(format!("agrees to {}{of}", numbers::plural(u64::from(digits), "digit"))).style(GOOD)
        }
        Verdict::Within { digits: None } => Cell::new(format!("agrees: both vanish{of}")).style(GOOD),
        Verdict::Within { digits: Some(digits) } => {
            let digits = numbers::plural(u64::from(digits), "digit");
            Cell::new(format!("agrees as far as differences can tell, {digits}{of}")).style(DOUBT)
        }
        Verdict::Kink { left, right } => {
            let words =
                format!("kink nearby? slope {} to the left, {} to the right", number(left), number(right));
            Cell::new(words).style(DOUBT)
        }
        Verdict::Disagrees => {
            let place = part
                .place
                .filter(|_| part.elements > 1)
                .map_or(String::new(), |at| format!(" for entry {at}"));
            Cell::new(format!("DISAGREES: differences give {}{place}", number(part.differences))).style(BAD)
        }
        Verdict::Unknown => Cell::new("no differences: the model fails around this point").style(DOUBT),
    }
}

fn decisions_line(checked: &Checked, look: Look) -> String {
    let count = checked.decisions.count();
    let margin = checked.decisions.smallest_margin;
    let words = if count == 1 { "decision depends" } else { "decisions depend" };
    let nearest = if margin.is_finite() {
        format!("; the closest would turn at a distance of {}", numbers::short(margin, look.digits.min(3)))
    } else {
        String::new()
    };
    format!("meaning  {} {words} on what is differentiated{nearest}\n", numbers::count(count))
}
