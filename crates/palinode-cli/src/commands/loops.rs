//! `palinode loop`: how the reverse sweep goes through a model's loops: which snapshots are kept, how often
//! rounds are recomputed, and how the cotangent grows.

mod watch;

use palinode_core::points;
use palinode_core::schedule::binomial;
use palinode_ir::interp::{Code, Limits};
use palinode_ir::pal::Output;
use palinode_ir::plan::{self, Ahead, Ladder, LoopWays, Sides, SnapshotLoop, Target, Within};
use palinode_ir::{Span, passes, transform};
use palinode_time::Verdict;
use serde_json::{Value, json};

use crate::answer::{Json, Text};
use crate::args::{LoopArgs, Mode};
use crate::commands::{Meaning, Question, headline, rounds_counter, value_alone};
use crate::gradient::NoGradient;
use crate::ladder::{Also, Planner};
use crate::numbers::size;
use crate::picture::picture;
use crate::problem::{Exit, Failed, Problem};
use crate::session::{Answer, Session};
use crate::stops::{Stop, Stops};
use crate::storage::{self, REAL, sweeps};
use crate::table::{Cell, DOUBT, GOOD, HEADING, STRONG, layout, styled};
use crate::{execute, explain, health, numbers, sides, value};
use watch::{Looked, Outermost, Seen, Watched, outermost};

/// Longer loops have no picture: it would have to follow every round.
const MOST_DRAWN: u64 = 5_000_000;

pub(crate) fn run(session: &mut Session, args: &LoopArgs) -> Result<(), Failed> {
    let Question { loaded, objective, wrt, inputs } = Question::read(session, &args.model, &args.derivative)?;
    let limits = execute::limits(&args.model);
    let mut asked = storage::read(session, &loaded, &args.storage)?;
    let model = loaded.only(objective);
    let program = passes::inline(&model);
    let loops = outermost(&program);
    if loops.is_empty() {
        let problem = Problem::new("PAL0279", Exit::Input, "the model has no loop");
        return Err(problem.help("`palinode memory` shows what the rest takes").into());
    }
    let session = &*session;
    let of = Target { program: &model, wrt: &wrt, inputs: &inputs };
    asked.beside.sides = if args.model.accept_points { 0 } else { of.bytes_of_sides() };
    // As `grad` plans it, so that both refuse the same budgets.
    let spans: Vec<Span> = loops.iter().map(|of| of.span).collect();
    let ways = LoopWays { asked: &asked, of: Target { program: &program, ..of }, loops: &spans };
    let looked_at = Looked { ways, loops: &loops };
    let of_snapshots = |_| looked_at.ways.least();
    let also = Also {
        needed_by: "value, gradient and snapshots of the loops",
        without: "`grad`, which may not need snapshots,",
        // Loops for which `grad` has a log keep snapshots here.
        is_as_planned: false,
    };
    let ladder = Ladder { asked: &asked, of, also: &of_snapshots };
    let planner = Planner { ladder, also, loaded: &loaded, session };
    let Ahead { within, values, sides: beside } = planner.plan()?;
    let within_limits = Limits { budget: asked.budget.unwrap_or(limits.budget), ..limits };
    // As `grad` does first: what is wrong with the model is found where it is written.
    let values = Code::new(&values);
    let mut moved = inputs.clone();
    let (ran, is_suspicious) =
        points::suspicious(of.point(), || value_alone(&loaded, &values, objective, &inputs, &within_limits));
    ran?;
    // And as `grad`: a derivative that is valid at these inputs only says nothing about the model.
    if is_suspicious && asked.beside.sides > 0 {
        let Sides::Within { gradient, left } = beside else {
            return Err(planner.too_small_for_sides(within_limits.budget).into());
        };
        let at = (&model, &mut moved[..], &wrt[..]);
        let looked =
            sides::check_gradient(&values, at, &within_limits, Mode::Reverse, (&asked, gradient, left));
        // Other failures of the reverse sweep are shown.
        if let Err(error @ (NoGradient::OfPoint(_) | NoGradient::TooSmallForSides)) = looked {
            return Err(explain::gradient(error, &loaded));
        }
    }
    drop((values, moved));
    let refused = |budget| planner.too_small(budget);
    let watched = looked_at.watch(&within, args.snapshots, &limits, &loaded, &refused)?;
    if watched.seen.is_empty() {
        let message = "no derivative goes through a loop of the model";
        return Err(Problem::new("PAL0279", Exit::Input, message)
            .note("no loop lies between what is differentiated and the loss, or those that do never run")
            .help("choose others with --of and --wrt")
            .into());
    }
    let stops = Stops::new(&watched.program, Some(&wrt)).run(&inputs, &within_limits);
    // What a log of every round takes, if that is known.
    let logs =
        transform::value_and_grad_stored(&transform::keeping(&program, &|_| None), &wrt, &asked.storage)
            .ok()
            .and_then(|derived| plan::predict(&passes::simplify(&derived), &inputs, REAL).ok());
    let output = &loaded.model.outputs[objective];
    let counter = rounds_counter(session, &model);
    let meaning = Meaning::new(&loaded, (&wrt, &inputs), output.unit.as_ref(), (counter, &within_limits));
    session.answer(&Loops { session, meaning, output, loops: &loops, within: &within, watched, stops, logs })
}

struct Loops<'a> {
    session: &'a Session,
    meaning: Meaning<'a>,
    output: &'a Output,
    loops: &'a [Outermost],
    within: &'a Within,
    watched: Watched,
    stops: Vec<Stop>,
    /// What a log of every round takes, if that is known.
    logs: Option<plan::Prediction>,
}

impl Loops<'_> {
    fn line(&self, span: Span) -> Option<usize> {
        storage::line(self.session, self.meaning.loaded, span)
    }

    fn place(&self, span: Span) -> String {
        self.line(span).map_or("somewhere".to_string(), |line| format!("line {line}"))
    }

    /// As the loop is written: a `for` that is left by `break` runs as a `while`.
    fn kind(&self, of: &Outermost) -> &'static str {
        let written = self.meaning.loaded.model.source.get(of.span.range()).unwrap_or_default();
        if of.is_while && !written.starts_with("for") { "while" } else { "for" }
    }

    fn value(&self) -> f64 {
        self.output.unit.as_ref().map_or(self.watched.value, |unit| unit.from_si(self.watched.value))
    }

    /// The loop, if it kept so many snapshots.
    fn kept(&self, of: &Outermost, seen: &Seen, snapshots: u64) -> SnapshotLoop {
        SnapshotLoop { span: of.span, rounds: seen.rounds, snapshots, turns: seen.turns }
    }

    fn one(&self, of: &Outermost, seen: &Seen) -> String {
        let kind = self.kind(of);
        let rounds = numbers::plural(seen.rounds, "round");
        if seen.rounds == 0 {
            let head = format!("{}: {kind}, {rounds}", self.place(of.span));
            let words = "the loop was not entered, so nothing is kept for it";
            let head = styled(STRONG, &head);
            return format!("{head}\n\n{}{words}\n{}", label("schedule"), self.stop_words(of));
        }
        let longer = match seen.largest_bytes {
            largest if largest > seen.state_bytes => format!(" at first, {} at most", size(largest)),
            _ => String::new(),
        };
        let head = format!(
            "{}: {kind}, {rounds}, a state of {}{longer}",
            self.place(of.span),
            size(seen.state_bytes)
        );
        let mut out = format!("{}\n\n", styled(STRONG, &head));
        // What is between the two ways is a step behind the last round.
        let steps = seen.rounds + u64::from(seen.turns);
        let actions = binomial(steps, u32::try_from(seen.snapshots).unwrap_or(u32::MAX));
        if let (Ok(actions), true) = (actions, seen.rounds <= MOST_DRAWN && !seen.is_replanned) {
            let (lines, more) = picture(steps, actions, seen.turns);
            for line in &lines {
                out.push_str(&format!("  {line}\n"));
            }
            let more = match more {
                0 => String::new(),
                more => format!("; {} not shown", numbers::plural(more, "shorter run")),
            };
            let turn = if seen.turns { "◆ end of the loop   " } else { "" };
            let legend = format!("● snapshot   ─ run forwards   {turn}◀ round reversed   ░ reversed before");
            out.push_str(&format!("  {}{more}\n\n", styled(HEADING, &legend)));
        }
        if seen.snapshots == 0 {
            let words = match seen.rounds {
                1 => "a single round is reversed from its start, so no snapshot is kept",
                _ => "rounds do not depend on each other, so no snapshot is kept",
            };
            out.push_str(&format!(
                "{}{words}\n{}{}",
                label("schedule"),
                self.health(seen),
                self.stop_words(of)
            ));
            return out;
        }
        let kept = self.kept(of, seen, seen.snapshots);
        out.push_str(&format!(
            "{}{} for {}, {}: {} forward sweeps (at best {})\n",
            label("schedule"),
            numbers::plural(seen.snapshots, "snapshot"),
            numbers::plural(seen.rounds, "round"),
            size(seen.bytes()),
            sweeps(seen.forward_rounds(), seen.rounds),
            sweeps(kept.fewest_rounds(), seen.rounds)
        ));
        if seen.forward_rounds() > kept.forward_rounds() {
            let words = "snapshots get longer: some rounds were run once more to find out how long";
            out.push_str(&format!("{:10}{words}\n", ""));
        }
        out.push_str(&self.others(of, seen));
        out.push_str(&self.health(seen));
        out.push_str(&self.stop_words(of));
        out
    }

    /// How close a `while` came to another number of rounds.
    fn stop_words(&self, of: &Outermost) -> String {
        let Some(stop) = self.stop(of.span) else { return String::new() };
        let flag =
            stop.flag(None).map_or(String::new(), |words| format!("{:10}{}\n", "", styled(DOUBT, &words)));
        format!("{}{}\n{flag}", label("stop"), stop.words(&|at| self.name(at)))
    }

    fn stop(&self, span: Span) -> Option<&Stop> {
        self.stops.iter().find(|stop| stop.span == span)
    }

    fn name(&self, argument: usize) -> String {
        self.meaning.loaded.arguments()[argument].name.to_string()
    }

    /// What other numbers of snapshots would cost.
    fn others(&self, of: &Outermost, seen: &Seen) -> String {
        let mut snapshots = 3;
        let mut words = Vec::new();
        while snapshots < seen.rounds && words.len() < 5 {
            if snapshots != seen.snapshots {
                let other = self.kept(of, seen, snapshots);
                words.push(format!(
                    "{} snapshots ({}) {}",
                    numbers::count(snapshots),
                    size(snapshots.saturating_mul(seen.largest_bytes.max(seen.state_bytes))),
                    sweeps(other.forward_rounds(), seen.rounds)
                ));
            }
            snapshots = if words.len() % 2 == 1 { snapshots * 10 / 3 } else { snapshots * 3 };
        }
        if words.is_empty() { String::new() } else { format!("{:10}{}\n", "", words.join(", ")) }
    }

    fn health(&self, seen: &Seen) -> String {
        let norms = seen.health.norms();
        let (Some((_, first)), Some((_, last))) = (seen.health.latest(), norms.first()) else {
            return String::new();
        };
        let style = match health::trend(&seen.health) {
            Verdict::Steady | Verdict::Growing | Verdict::Shrinking | Verdict::TooShort => GOOD,
            Verdict::Exploding | Verdict::Vanishing | Verdict::Uneven => DOUBT,
            Verdict::Vanished | Verdict::NotFinite => DOUBT,
        };
        let again = match seen.times {
            1 => String::new(),
            times => {
                format!("; the loop is run {} times, this is the last", numbers::count(times))
            }
        };
        let rows = vec![vec![
            Cell::new(numbers::short(first, 3)),
            Cell::new(health::line(&seen.health)),
            Cell::new(numbers::short(*last, 3)),
        ]];
        format!(
            "{}size from the first round to the last (logarithmic)\n{}{:10}{}{again}\n",
            label("cotangent"),
            layout(rows, "  ").replacen("  ", &" ".repeat(10), 1),
            "",
            styled(style, &health::words(&seen.health, self.watched.is_finite))
        )
    }
}

impl Answer for Loops<'_> {
    fn text(&self, session: &Session) -> Text<'_> {
        let output = self.output;
        let unit = output.unit.as_ref().map_or(String::new(), |unit| format!(" {}", unit.text));
        let mut out = headline(
            &format!("{} = {}{unit}", output.name, numbers::short(self.value(), 7)),
            &self.watched.cost,
            session,
        );
        for of in self.loops {
            out.push('\n');
            match self.watched.seen.get(&of.span) {
                Some(seen) => out.push_str(&self.one(of, seen)),
                None => {
                    let logs = if self.watched.has_logs { ", or it keeps a log of every round" } else { "" };
                    let head = format!("{}: no derivative goes through this loop{logs}", self.place(of.span));
                    out.push_str(&format!("{}\n", styled(STRONG, &head)));
                }
            }
        }
        let (arrays, charged) = (self.watched.stats.peak_bytes, self.watched.stats.heap_bytes);
        let kept = match &self.logs {
            Some(logs) => format!(", {} with a log of every round", size(logs.peak)),
            None => String::new(),
        };
        let peak = match self.within.budget() {
            None => format!("peak {} of arrays", size(arrays as u64)),
            Some(budget) => format!("{}, within {budget}", storage::within_budget(charged, arrays)),
        };
        out.push_str(&format!("\n{}{peak}{kept}\n", label("memory")));
        out.into()
    }

    fn json(&self, session: &Session) -> Json<'_> {
        let one = |of: &Outermost| {
            let kind = self.kind(of);
            let Some(seen) = self.watched.seen.get(&of.span) else {
                let differentiated = if self.watched.has_logs { Value::Null } else { json!(false) };
                return json!({ "line": self.line(of.span), "kind": kind, "differentiated": differentiated });
            };
            let kept = self.kept(of, seen, seen.snapshots);
            // From the first round to the last.
            let norms = seen.health.norms().iter().rev().map(|&(_, norm)| value::number(norm));
            json!({
                "line": self.line(of.span),
                "kind": kind,
                "differentiated": true,
                "times": seen.times,
                "rounds": seen.rounds,
                "state_bytes": seen.state_bytes,
                "largest_state_bytes": seen.largest_bytes.max(seen.state_bytes),
                "snapshots": seen.snapshots,
                "kept_bytes": seen.bytes(),
                "forward_rounds": seen.forward_rounds(),
                "fewest_rounds": kept.fewest_rounds(),
                "stop": self.stop(of.span).map(|stop| stop.json(self.line(of.span), &|at| self.name(at))),
                "health": {
                    "verdict": health::word(health::trend(&seen.health)),
                    "growth_per_round": seen.health.growth_rate().map(value::number),
                    "norms": norms.collect::<Vec<_>>(),
                    "rounds_between_norms": seen.health.stride(),
                    "not_finite_at": seen.health.not_finite_at(),
                },
            })
        };
        json!({
            "model": session.sources.name_of(self.meaning.loaded.file),
            "output": value::output(self.output, self.value()),
            "gradient_is_finite": self.watched.is_finite,
            "loops": self.loops.iter().map(one).collect::<Vec<_>>(),
            "steps": self.watched.stats.steps,
            "seconds": self.watched.cost.seconds,
            "total_seconds": session.seconds(),
            "memory": {
                "arrays_peak_bytes": self.watched.stats.peak_bytes,
                "charged_bytes": self.watched.stats.heap_bytes,
                "logs_peak_bytes": self.logs.as_ref().map(|logs| logs.peak),
            },
        })
        .into()
    }

    fn meaning(&self, session: &Session) -> Option<Value> {
        Some(self.meaning.json(session))
    }
}

/// The word before a line.
fn label(word: &str) -> String {
    styled(HEADING, &format!("{word:<10}"))
}
