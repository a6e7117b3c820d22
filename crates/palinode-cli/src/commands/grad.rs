//! `palinode grad`: value and gradient, and how well differences agree.

use palinode_core::check::Verdict;
use palinode_core::points;
use palinode_ir::Span;
use palinode_ir::check::{self, Checked, Checker};
use palinode_ir::interp::{Code, Datum, Limits};
use palinode_ir::pal::{Output, Unit};
use palinode_ir::plan::{
    self, Ahead, Asked, Beside, FittedGradient, Kept, Ladder, Sides, Target, Within, less,
};
use palinode_ir::transform::TransformError;
use serde_json::{Value, json};

use crate::answer::{Json, Text};
use crate::args::{GradArgs, Mode};
use crate::commands::{
    Meaning, Question, batch, engine_json, engine_line, headline, rounds_counter, value_alone,
};
use crate::execute::Cost;
use crate::gradient::{Gradient, gradient, tensor};
use crate::ladder::{Also, Planner};
use crate::model::Loaded;
use crate::numbers::Look;
use crate::problem::{Exit, Failed, Problem};
use crate::progress::Progress;
use crate::session::{Answer, Session};
use crate::stops::{Stop, Stops};
use crate::storage::{REAL, budget_json};
use crate::table::{BAD, Cell, DOUBT, GOOD, headings, styled, table};
use crate::{execute, explain, numbers, sides, storage, value};

/// Where reverse mode exceeds the budget, forward mode is run for so many numbers at most: each takes a run.
const MOST_FORWARDS: usize = 100;

pub(crate) fn run(session: &mut Session, args: &GradArgs) -> Result<(), Failed> {
    if args.batch.batch.is_some() {
        return batch::grad(session, args);
    }
    let Question { loaded, objective, wrt, mut inputs } =
        Question::read(session, &args.model, &args.derivative)?;
    let limits = execute::limits_and_sums(&args.model, &args.sums);
    let mut asked = storage::read(session, &loaded, &args.storage)?;
    asked.engine = execute::engine(&args.engine);
    let mode = if asked.is_about_reverse() { Mode::Reverse } else { args.mode };
    if mode != args.mode && args.mode == Mode::Forward {
        let message = "--budget, --recompute, --store and --narrow apply to reverse mode only";
        let problem = Problem::new("PAL0298", Exit::Usage, message);
        return Err(problem.help("leave out --mode or these options").into());
    }

    let session = &*session;
    let program = loaded.only(objective);
    let of = Target { program: &program, wrt: &wrt, inputs: &inputs };
    let numbers = of.numbers();
    asked.beside = Beside {
        sides: if args.model.accept_points { 0 } else { of.bytes_of_sides() },
        check: if args.check { check::held_bytes(&inputs, &wrt) as u64 } else { 0 },
    };
    asked.may_go_forwards =
        args.mode == Mode::Auto && asked.is_budget_alone() && !args.check && numbers <= MOST_FORWARDS;
    let for_check = |values: u64| Some(check::least_bytes(&program, &wrt, &inputs, values));
    let (also, words): (&dyn Fn(u64) -> Option<u64>, Also) = match args.check {
        true => (
            &for_check,
            Also {
                needed_by: "value, gradient and --check",
                without: "`grad` without --check, which computes values and tangents as well,",
                is_as_planned: true,
            },
        ),
        false => (&|_| Some(0), Also::NOTHING),
    };
    let ladder = Ladder { asked: &asked, of, also };
    let planner = Planner { ladder, also: words, loaded: &loaded, session };
    let Ahead { within, values: of_value, sides: beside } = planner.plan()?;
    // All that is computed after the gradient is made ready before the first run, so that it is held beside
    // the budget.
    let no_forward = |error: TransformError| explain::transform(&error, loaded.file);
    let checker = match args.check {
        true => Some(
            Checker::new(&of_value, &plan::simplified(&program), &wrt, &asked.engine).map_err(no_forward)?,
        ),
        false => None,
    };
    let exact = if asked.is_rounded() { Some(Exact::plan(&asked, of)) } else { None };
    let stops = Stops::new(&program, None);
    let counter = rounds_counter(session, &program);
    let of_value_code = Code::on(&asked.engine, &of_value);
    let limits = Limits { budget: asked.budget.unwrap_or(limits.budget), ..limits };
    let beside_bytes = |bytes: u64| Limits { budget: less(limits.budget, bytes), ..limits };
    let (after, beside_check) = (beside_bytes((numbers * REAL) as u64), beside_bytes(asked.beside.check));
    let (ran, is_suspicious) =
        points::suspicious(of.point(), || value_alone(&loaded, &of_value_code, objective, &inputs, &limits));
    let explained = |failed, of: Target<'_>| match within {
        Within::Stopping { .. } => naming_what_works(failed, &asked, of, &limits),
        _ => failed,
    };
    let (found, forward) = ran.map_err(|failed| explained(failed, of))?;
    if is_suspicious && asked.beside.sides > 0 {
        let Sides::Within { gradient, left } = beside else {
            return Err(planner.too_small_for_sides(limits.budget).into());
        };
        sides::check_gradient(
            &of_value_code,
            (&program, &mut inputs, &wrt),
            &limits,
            mode,
            (&asked, gradient, left),
        )
        .map_err(|error| explain::gradient(error, &loaded))?;
    }
    let of = Target { program: &program, wrt: &wrt, inputs: &inputs };
    let mut found_gradient = gradient(of, &limits, mode, (&asked, &within))
        .map_err(|error| explained(explain::gradient(error, &loaded), of))?;
    let rounding = match exact {
        Some(exact) => Some(exact.rounding(of, &limits, &mut found_gradient, &loaded)?),
        None => None,
    };
    // A loop that goes on for much longer elsewhere is not waited for.
    let steps = limits.steps.min(forward.steps.saturating_mul(20).saturating_add(10_000));
    let around = Limits { steps, ..beside_check };
    let mut checked = checker.map(|checker| {
        let parts = &found_gradient.parts;
        let progress = Progress::start("taking differences", check::comparisons(parts) as u64);
        checker.check(&mut inputs, &around, parts, &mut || progress.advance())
    });
    let stops = stops.run(&inputs, &after);
    // From here on in declared units.
    let of = loaded.model.outputs[objective].unit.as_ref();
    for (part, &at) in wrt.iter().enumerate() {
        let scale = value::derivative_scale(of, loaded.arguments()[at].unit.as_ref());
        found_gradient.parts[part].data.iter_mut().for_each(|x| *x *= scale);
        if let Some(checked) = &mut checked {
            convert(&mut checked.parts[part], scale, of);
        }
    }
    let decisions = checked.as_ref().and_then(|checked| checked.decisions).map(|seen| seen.count());
    session.answer(&Answered {
        meaning: Meaning { decisions, ..Meaning::new(&loaded, (&wrt, &inputs), of, (counter, &after)) },
        stops: &stops,
        output: &loaded.model.outputs[objective],
        value: of.map_or(found, |unit| unit.from_si(found)),
        gradient: &found_gradient,
        forward,
        asked: &asked,
        within: &within,
        rounding,
        checked: checked.as_ref(),
        look: args.show.look(),
    })?;
    match checked {
        Some(checked) if checked.disagrees() => Err(disagreement(session, &checked, rounding)),
        _ => Ok(()),
    }
}

/// A run of which no plan was made was stopped: which budget does, if a run of the values can tell.
fn naming_what_works(mut failed: Failed, asked: &Asked, of: Target<'_>, limits: &Limits) -> Failed {
    if let [problem] = &mut failed.0[..]
        && problem.code == "PAL0275"
        && let Some(least) = plan::least_counted(asked, of, limits)
    {
        let works = storage::to_type(least);
        problem.help = Some(format!(
            "--budget {works} works, with a plan for the rounds that a run of the values takes"
        ));
    }
    failed
}

/// The exact gradient, which a rounded one is compared with.
struct Exact {
    asked: Asked,
    /// None if none fits beside the rounded one into the budget.
    within: Option<Within>,
}

impl Exact {
    fn plan(asked: &Asked, of: Target<'_>) -> Exact {
        let asked = asked.exact((of.numbers() * REAL) as u64);
        let within = Within::plan(&asked, of).ok();
        Exact { asked, within }
    }

    /// How far a gradient is from the exact one, as a part of its largest entry; NaN if there is none.
    fn rounding(
        self,
        of: Target<'_>,
        limits: &Limits,
        found: &mut Gradient,
        loaded: &Loaded,
    ) -> Result<f64, Failed> {
        let Exact { asked, within: Some(within) } = self else { return Ok(f64::NAN) };
        let limits = Limits { budget: asked.budget.unwrap_or(limits.budget), ..*limits };
        let exact = match gradient(of, &limits, Mode::Reverse, (&asked, &within)) {
            Err(error) if error.is_over_budget() => return Ok(f64::NAN),
            done => done.map_err(|error| explain::gradient(error, loaded))?,
        };
        let data = |gradient: &mut Gradient| {
            std::mem::take(&mut gradient.parts).into_iter().map(Datum::Real).collect::<Vec<_>>()
        };
        let (exact, rounded) = (data(&mut { exact }), data(found));
        let error = plan::narrowing_error(&exact, &rounded);
        found.parts = rounded.into_iter().map(tensor).collect();
        Ok(error)
    }
}

/// The answer has been given; what is left is the exit code, and for people a word about it.
fn disagreement(session: &Session, checked: &Checked, rounding: Option<f64>) -> Failed {
    let problem = Problem::new("PAL0294", Exit::Check, "the gradient and the differences disagree");
    let mut problem = match rounding.filter(|error| *error > 0.0) {
        Some(_) => problem
            .note("the gradient was rounded, because arrays were kept in fewer bits as --narrow says")
            .help("check without --narrow; the answer says by how much they round"),
        None => problem
            .note("that is as it should be with `stop_gradient`, and may be in a loop with a loose tolerance")
            .note("at a kink the slope is a choice; kinks that cancel, as in `relu(x) - relu(-x)` at 0, leave a wrong one")
            .help("otherwise a rule of Palinode is wrong: please report it with the model"),
    };
    if checked.decisions.is_some_and(|seen| seen.count() > 0) {
        problem = problem
            .note("the gradient follows the decisions that were taken; moving the arguments may change them");
    }
    if !checked.forward_fits {
        problem = problem.note("only differences were used, which rounding may mislead: forward mode does not fit into the budget");
    }
    if session.json { Failed(Vec::new()) } else { problem.into() }
}

struct Answered<'a> {
    meaning: Meaning<'a>,
    stops: &'a [Stop],
    output: &'a Output,
    value: f64,
    gradient: &'a Gradient,
    forward: Cost,
    asked: &'a Asked,
    within: &'a Within,
    /// How far the gradient is from the exact one, if arrays were kept in fewer bits.
    rounding: Option<f64>,
    checked: Option<&'a Checked>,
    look: Look,
}

impl Answer for Answered<'_> {
    fn text(&self, session: &Session) -> Text<'_> {
        let (output, look) = (self.output, self.look);
        let unit = output.unit.as_ref().map_or(String::new(), |unit| format!(" {}", unit.text));
        let shown = format!("{} = {}{unit}", output.name, numbers::short(self.value, look.digits));
        let head = headline(&shown, &self.gradient.cost, session);
        let mut rows = vec![headings("with respect to|gradient|unit|check by differences")];
        for (part, argument) in self.meaning.moved().enumerate() {
            let tensor = &self.gradient.parts[part];
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
        let mut out = String::from("\n");
        if let Some(checked) = self.checked {
            out.push_str(&decisions_line(checked, look));
        }
        for stop in self.stops {
            if let Some(words) = stop.flag(self.line(session, stop.span)) {
                out.push_str(&format!("rounds   {}\n", styled(DOUBT, &words)));
            }
        }
        out.push_str(&self.memory_line(session));
        out.push_str(&engine_line(&self.gradient.cost.by));
        if let Some(error) = self.rounding {
            let by = match error.is_nan() {
                true => "error unknown: the exact gradient does not fit into the budget".to_string(),
                false => format!("error {} of its largest entry", numbers::short(error, 2)),
            };
            out.push_str(&format!("rounded  {by}, because arrays were kept in fewer bits\n"));
        }
        Text::from(head).then("\n").then(table(rows, "   ")).then(out)
    }

    fn json(&self, session: &Session) -> Json<'_> {
        let parts = self.meaning.moved().enumerate().map(|(part, argument)| {
            let unit = argument.unit.as_ref();
            let tensor = &self.gradient.parts[part];
            let fields = Json::fields([
                ("name", json!(&*argument.name).into()),
                ("role", json!(value::role(argument)).into()),
                ("unit", value::unit(unit).into()),
                ("at", value::datum(&self.meaning.inputs[self.meaning.wrt[part]], unit)),
                ("shape", json!(tensor.shape).into()),
                ("gradient", value::reals(tensor)),
            ]);
            match self.checked {
                Some(checked) => fields.and(json!({ "check": check_json(&checked.parts[part]) }).into()),
                None => fields,
            }
        });
        let head = json!({
            "model": session.sources.name_of(self.meaning.loaded.file),
            "output": value::output(self.output, self.value),
            "mode": if self.gradient.mode == Mode::Reverse { "reverse" } else { "forward" },
        });
        let head = Json::from(head).and(Json::fields([("gradient", Json::List(parts.collect()))]));
        head.and(self.costs(session).into())
    }

    fn meaning(&self, session: &Session) -> Option<Value> {
        Some(self.meaning.json(session))
    }
}

impl Answered<'_> {
    fn line(&self, session: &Session, span: Span) -> Option<usize> {
        storage::line(session, self.meaning.loaded, span)
    }

    /// What was planned, before the first run or with the rounds that one counted.
    fn fitted(&self) -> Option<&FittedGradient> {
        match (self.within, &self.gradient.kept) {
            (Within::Planned { fitted, .. }, _) | (_, Kept::Counted(fitted)) => Some(fitted),
            _ => None,
        }
    }

    fn memory_line(&self, session: &Session) -> String {
        let Gradient { cost, kept, parts, storage, mode } = self.gradient;
        if let Some(budget) = self.within.budget() {
            let how = match (self.within, kept) {
                (Within::Planned { fitted, .. }, _) => storage::against_all(fitted),
                _ if *mode == Mode::Forward => {
                    let numbers: usize = parts.iter().map(|part| part.data.len()).sum();
                    format!("in forward mode, {} of the model", numbers::plural(numbers as u64, "run"))
                }
                (_, Kept::Counted(_)) => {
                    "planned with the rounds that a run of the values counted".to_string()
                }
                _ => {
                    let stopped = "a run beyond the budget would have been stopped";
                    format!("the memory depends on data; {stopped}")
                }
            };
            let mut lines = match (self.fitted(), kept) {
                (Some(fitted), _) => storage::kept_by(fitted, &|span| self.line(session, span)),
                _ if *mode == Mode::Forward => vec!["reverse mode needs more".to_string()],
                (_, Kept::Snapshots(bytes)) => {
                    vec![format!("each loop keeps as many snapshots as fit into {}", numbers::bytes(*bytes))]
                }
                _ => vec![storage::chosen(&self.meaning.loaded.model.program, storage.recompute, 0)],
            };
            let held = execute::held(cost);
            lines.push(match self.within {
                Within::Stopping { .. } => storage::held_making(held),
                _ => storage::held(held),
            });
            let peak = storage::within_budget(cost.charged, cost.arrays);
            return format!(
                "memory   {peak}, within {budget}; {how}\n         {}\n",
                lines.join("\n         ")
            );
        }
        let (extra, steps) = (cost.peak.saturating_sub(self.forward.peak), self.forward.steps);
        let (way, more) = match mode {
            Mode::Reverse if steps >= 100 => {
                ("forwards and backwards", format!("; {:.1} bytes more a step", extra as f64 / steps as f64))
            }
            Mode::Reverse => ("forwards and backwards", String::new()),
            Mode::Forward | Mode::Auto => ("forwards with tangents", String::new()),
        };
        let [peak, alone] = [cost.peak, self.forward.peak].map(numbers::bytes);
        format!("memory   peak {peak} {way}, {alone} for the value alone{more}\n")
    }

    /// The fields after the gradient.
    fn costs(&self, session: &Session) -> Value {
        let mut all = json!({
            "steps": self.gradient.cost.steps,
            "seconds": self.gradient.cost.seconds,
            "total_seconds": session.seconds(),
            "engine": engine_json(&self.gradient.cost.by),
            "memory": {
                "peak_bytes": self.gradient.cost.peak,
                "value_peak_bytes": self.forward.peak,
                "arrays_peak_bytes": self.gradient.cost.arrays,
                "charged_bytes": self.gradient.cost.charged,
            },
        });
        if self.asked.is_about_reverse() && self.gradient.mode == Mode::Reverse {
            all["memory"]["recompute"] = json!(storage::word(self.gradient.storage.recompute));
        }
        if let Some(error) = self.rounding {
            all["memory"]["narrowing_error"] =
                if error.is_nan() { Value::Null } else { value::number(error) };
        }
        if self.asked.budget.is_some() {
            all["memory"]["held_bytes"] = json!(execute::held(&self.gradient.cost));
        }
        if let Some(budget) = self.within.budget() {
            all["budget"] = match self.fitted() {
                Some(fitted) => budget_json(budget, fitted, &|span| self.line(session, span)),
                None => json!({ "budget_bytes": budget.bytes() }),
            };
        }
        if !self.stops.is_empty() {
            let line = |stop: &Stop| self.line(session, stop.span);
            let name = |at: usize| self.meaning.loaded.arguments()[at].name.to_string();
            all["stops"] = self.stops.iter().map(|stop| stop.json(line(stop), &name)).collect();
        }
        if let Some(checked) = self.checked {
            all["forward_mode_fits"] = json!(checked.forward_fits);
            all["decisions"] = checked.decisions.map_or(Value::Null, |seen| {
                json!({
                    "count": seen.count(),
                    "smallest_margin": Some(seen.smallest_margin).filter(|margin| margin.is_finite()),
                })
            });
        }
        all
    }
}

/// What `--check` says about one argument.
fn verdict_cell(part: &check::Part, look: Look) -> Cell<'static> {
    let of = if part.tested < part.elements {
        format!(" ({} of {} entries and a direction)", part.tested, numbers::count(part.elements as u64))
    } else {
        String::new()
    };
    let number = |x: f64| numbers::short(x, look.digits);
    // Right between decisions and another across them: a search by halving, say.
    let (of, good) = match part.found.across {
        Some(slope) => (format!("{of}; across decisions the slope is {}", number(slope)), DOUBT),
        None => (of, GOOD),
    };
    let (words, style) = match part.found.verdict {
        Verdict::Agrees { digits } => {
            (format!("agrees to {}{of}", numbers::plural(u64::from(digits), "digit")), good)
        }
        Verdict::Within { digits: None } => (format!("agrees: both vanish{of}"), good),
        Verdict::Within { digits: Some(digits) } => {
            let digits = numbers::plural(u64::from(digits), "digit");
            (format!("agrees as far as differences can tell, {digits}{of}"), DOUBT)
        }
        Verdict::Kink { left, right } => {
            let (left, right) = (number(left), number(right));
            (format!("kink nearby? slope {left} to the left, {right} to the right"), DOUBT)
        }
        Verdict::Jump { left, right, has_kink } => {
            let (what, gradient) = match has_kink {
                true => ("jump and kink", "what the rule table says"),
                false => ("jump", "the slope on its side"),
            };
            let sides = format!("{} to the left, {} to the right", number(left), number(right));
            (format!("{what} here: the value is {sides}; the gradient is {gradient}"), DOUBT)
        }
        Verdict::Crossed => {
            (format!("not checked: every step, however small, changes a decision{of}"), DOUBT)
        }
        Verdict::Disagrees => {
            let place = part.place.filter(|_| part.elements > 1);
            let place = place.map_or(String::new(), |at| format!(" for entry {at}"));
            (format!("DISAGREES: differences give {}{place}", number(part.found.differences)), BAD)
        }
        Verdict::Unknown => ("no differences: the model fails around this point".to_string(), DOUBT),
    };
    Cell::new(words).style(style)
}

fn decisions_line(checked: &Checked, look: Look) -> String {
    let forward = match checked.forward_fits {
        true => "",
        false => {
            "check    without forward mode, which does not fit into the budget: where a slope jumps, differences alone may mislead\n"
        }
    };
    let Some(seen) = checked.decisions else {
        return format!("meaning  decisions were not counted: that does not fit into the budget\n{forward}");
    };
    let (count, margin) = (seen.count(), seen.smallest_margin);
    if count == 0 {
        return forward.to_string();
    }
    let words = if count == 1 { "decision depends" } else { "decisions depend" };
    let nearest = if margin.is_finite() {
        format!("; the closest changes at a distance of {}", numbers::short(margin, look.digits.min(3)))
    } else {
        String::new()
    };
    format!("meaning  {} {words} on what is differentiated{nearest}\n{forward}", numbers::count(count))
}

/// A comparison in other units: slopes by a factor, values in the unit of what is differentiated.
fn convert(part: &mut check::Part, factor: f64, of: Option<&Unit>) {
    let found = &mut part.found;
    found.differences *= factor;
    found.error *= factor.abs();
    found.across = found.across.map(|slope| slope * factor);
    match &mut found.verdict {
        Verdict::Kink { left, right } => {
            *left *= factor;
            *right *= factor;
        }
        Verdict::Jump { left, right, .. } => {
            *left = of.map_or(*left, |unit| unit.from_si(*left));
            *right = of.map_or(*right, |unit| unit.from_si(*right));
        }
        _ => {}
    }
}

fn check_json(part: &check::Part) -> Value {
    let found = &part.found;
    let (status, digits) = match found.verdict {
        Verdict::Agrees { digits } => ("agrees", Some(digits)),
        Verdict::Within { digits } => ("within", digits),
        Verdict::Kink { .. } => ("kink", None),
        Verdict::Jump { .. } => ("jump", None),
        Verdict::Crossed => ("crossed", None),
        Verdict::Disagrees => ("disagrees", None),
        Verdict::Unknown => ("unknown", None),
    };
    let mut fields = json!({ "status": status, "digits": digits });
    if !found.differences.is_nan() {
        fields["differences"] = value::number(found.differences);
        fields["error"] = value::number(found.error);
    }
    if let Verdict::Kink { left, right } | Verdict::Jump { left, right, .. } = found.verdict {
        fields["left"] = value::number(left);
        fields["right"] = value::number(right);
    }
    if let Some(slope) = found.across {
        fields["across"] = value::number(slope);
    }
    if let Some(at) = part.place.filter(|_| part.elements > 1) {
        fields["entry"] = json!(at);
    }
    fields["tested"] = json!(part.tested);
    fields
}
