//! `palinode tape`: the execution trace, forwards and backwards.
//!
//! The program is run by the interpreter on a traced dynamic tape, so the rows are what really happened:
//! loops unrolled, branches taken. The cotangents come from the rows' own partials, swept backwards.

use palinode_core::{Tape, Var, decision};
use palinode_ir::interp::{Code, Datum, Engine, Limits, RunError};
use palinode_ir::pal::Argument;
use serde_json::{Value, json};

use crate::answer::{Json, Text};
use crate::args::TapeArgs;
use crate::commands::hessian::labels;
use crate::commands::{Meaning, Question, objective_value, rounds_counter, run_model};
use crate::gradient::NoGradient;
use crate::problem::{Exit, Failed, Problem};
use crate::session::{Answer, Session};
use crate::table::{Cell, HEADING, STRONG, layout};
use crate::{execute, explain, numbers, value};

/// Longer runs are not recorded.
const MAX_STEPS: u64 = 1_000_000;

/// An operation that ran.
struct Row {
    op: &'static str,
    /// The name, of an input.
    name: Option<String>,
    /// The rows it reads.
    inputs: Vec<usize>,
    value: f64,
    /// The partial by each input.
    saved: Vec<f64>,
    cotangent: f64,
}

pub(crate) fn run(session: &mut Session, args: &TapeArgs) -> Result<(), Failed> {
    let Question { loaded, objective, wrt, inputs } = Question::read(session, &args.model, &args.derivative)?;
    let limits = execute::limits(&args.model);
    let ran = run_model(&loaded, &inputs, &limits, &Engine::INTERPRETER)?;
    if ran.cost.steps > MAX_STEPS {
        let message =
            format!("the run takes {}, too many for a table", numbers::plural(ran.cost.steps, "step"));
        let help = "make the loops shorter, for example with --set; `palinode grad` has no such limit";
        return Err(Problem::new("PAL0297", Exit::Input, message).help(help).into());
    }
    let names = labels(&loaded, &wrt, &inputs);
    let code = Code::new(&loaded.only(objective));
    let traps = limits;
    let limits = Limits { trap_nonfinite: false, ..limits };
    let recorded = || record(&code, &wrt, &inputs, &limits, &names);
    let recorded = if args.model.accept_points { decision::accept_points(recorded) } else { recorded() };
    let (rows, result) = recorded.map_err(|error| match error {
        NoGradient::Run(error) => explain::run(&error, &loaded).into(),
        error => {
            let mut failed = explain::gradient(error, &loaded);
            // They compare what the tape adds up of all its outputs, which is nobody's derivative.
            failed.0.iter_mut().for_each(|problem| problem.notes.clear());
            failed
        }
    })?;

    let output = &loaded.model.outputs[objective];
    let value = objective_value(&loaded, &ran, objective, &traps)?;
    let counter = rounds_counter(session, &loaded.only(objective));
    let meaning = Meaning::new(&loaded, (&wrt, &inputs), None, (counter, &limits));
    let digits = usize::from(args.digits);
    let shown = if args.rows == 0 { rows.len() } else { args.rows };
    session.answer(&Trace { meaning, name: &output.name, value, rows, result, digits, shown })
}

struct Trace<'a> {
    meaning: Meaning<'a>,
    /// The output that is differentiated, and its value.
    name: &'a str,
    value: f64,
    rows: Vec<Row>,
    /// Which of them is the output, if it depends on the arguments.
    result: Option<usize>,
    digits: usize,
    /// How many rows text shows.
    shown: usize,
}

impl Answer for Trace<'_> {
    fn text(&self, _: &Session) -> Text<'_> {
        let mut text = self.table();
        let is_scaled = |argument: &Argument| argument.unit.as_ref().is_some_and(|unit| unit.scale() != 1.0);
        if self.meaning.loaded.arguments().iter().any(is_scaled) {
            text.push_str("values and cotangents are in SI; `palinode grad` uses the declared units\n");
        }
        text.into()
    }

    fn json(&self, session: &Session) -> Json<'_> {
        let one = |(at, row): (usize, &Row)| {
            json!({
                "index": at,
                "op": row.op,
                "name": row.name,
                "inputs": row.inputs,
                "value": value::number(row.value),
                "partials": row.saved.iter().map(|&x| value::number(x)).collect::<Vec<_>>(),
                "reverse": self.rows.len() - 1 - at,
                "cotangent": value::number(row.cotangent),
            })
        };
        json!({
            "model": session.sources.name_of(self.meaning.loaded.file),
            "output": { "name": self.name, "value": value::number(self.value), "row": self.result },
            "units": "SI",
            "rows": self.rows.iter().enumerate().map(one).collect::<Vec<Value>>(),
        })
        .into()
    }

    fn meaning(&self, session: &Session) -> Option<Value> {
        Some(self.meaning.json(session))
    }
}

/// Runs the program on a tape; gives the rows and which of them is the result, if any is. A way that is taken
/// only at these inputs is refused, as `palinode grad` does.
fn record(
    code: &Code,
    wrt: &[usize],
    inputs: &[Datum<f64>],
    limits: &Limits,
    names: &[String],
) -> Result<(Vec<Row>, Option<usize>), NoGradient> {
    let point: Vec<f64> =
        wrt.iter().flat_map(|&at| inputs[at].as_vector().unwrap_or_default().to_vec()).collect();
    // What the first run came to: others may be near the point.
    let mut first: Option<Result<(), RunError>> = None;
    let mut tape = Tape::traced();
    let recorded = tape.record(&point, |variables: &[Var<f64>]| {
        let mut given: Vec<Datum<Var<f64>>> = inputs.iter().map(Datum::lift).collect();
        let mut rest = variables;
        for &at in wrt {
            let (own, after) = rest.split_at(inputs[at].elements());
            rest = after;
            let mut next = own.iter();
            given[at] = inputs[at].map(|_| *next.next().expect("a variable per element"));
        }
        match code.run(&given, limits) {
            // One more operation marks the result: its row names it, and is left out again.
            Ok(outputs) => {
                first.get_or_insert(Ok(()));
                vec![outputs[0].as_real().expect("the objective is a real number").sin()]
            }
            Err(error) => {
                first.get_or_insert(Err(error));
                Vec::new()
            }
        }
    });
    if let Some(Err(error)) = first {
        return Err(NoGradient::Run(error));
    }
    let record = recorded?;
    let mut table = record.table().rows;
    let depends = record.pattern().first().is_some_and(|inputs| !inputs.is_empty());
    let mark = if depends { table.pop() } else { None };
    let result = mark.and_then(|mark| mark.inputs.first().map(|&node| node as usize - 1));
    let mut rows: Vec<Row> = table
        .into_iter()
        .enumerate()
        .map(|(at, row)| Row {
            op: row.op,
            name: names.get(at).filter(|_| row.op == "input").cloned(),
            // The tape counts from 1.
            inputs: row.inputs.iter().map(|&node| node as usize - 1).collect(),
            value: row.output.unwrap_or(f64::NAN),
            saved: row.saved,
            cotangent: 0.0,
        })
        .collect();
    if let Some(result) = result {
        sweep(&mut rows, result);
    }
    Ok((rows, result))
}

/// Fills the cotangents in, from the result back.
fn sweep(rows: &mut [Row], result: usize) {
    rows[result].cotangent = 1.0;
    for at in (0..=result).rev() {
        let cotangent = rows[at].cotangent;
        // A zero cotangent stays zero whatever the partial: as everywhere in Palinode.
        if cotangent == 0.0 {
            continue;
        }
        for k in 0..rows[at].inputs.len() {
            let (input, partial) = (rows[at].inputs[k], rows[at].saved.get(k).copied().unwrap_or(f64::NAN));
            if partial != 0.0 {
                rows[input].cotangent += cotangent * partial;
            }
        }
    }
}

impl Trace<'_> {
    /// The rows, from both ends if there are too many.
    fn table(&self) -> String {
        let &Trace { ref rows, name, value, result, digits, shown, .. } = self;
        let head = |text: &str| Cell::new(text).style(HEADING);
        let mut lines = vec![vec![
            head("#").right(),
            head("op"),
            head("inputs"),
            head("value").right(),
            head("saved"),
            head("|"),
            head("reverse").right(),
            head("cotangent"),
        ]];
        let number = |x: f64| numbers::short(x, digits);
        let line = |at: usize| {
            let row = &rows[at];
            let inputs: Vec<String> = row.inputs.iter().map(usize::to_string).collect();
            let saved: Vec<String> = row.saved.iter().map(|&x| number(x)).collect();
            let cotangent = match &row.name {
                Some(name) => format!("d{name} = {}", number(row.cotangent)),
                None => number(row.cotangent),
            };
            let op = Cell::new(row.op);
            vec![
                Cell::new(at.to_string()).right(),
                if Some(at) == result { op.style(STRONG) } else { op },
                Cell::new(row.name.clone().unwrap_or_else(|| inputs.join(" "))),
                Cell::new(number(row.value)).right(),
                Cell::new(saved.join(" ")),
                head("|"),
                Cell::new((rows.len() - 1 - at).to_string()).right(),
                Cell::new(cotangent),
            ]
        };
        let (first, last) =
            if rows.len() <= shown { (rows.len(), 0) } else { (shown - shown / 2, shown / 2) };
        lines.extend((0..first).map(line));
        if last > 0 {
            let hidden = numbers::plural((rows.len() - first - last) as u64, "more row");
            lines.push(vec![Cell::new(""), Cell::new(format!("... {hidden}")).loose()]);
            lines.extend((rows.len() - last..rows.len()).map(line));
        }
        let mut out = layout(lines, "  ");
        match result {
            Some(at) => out.push_str(&format!("\n{name} = {} is row {at}\n", number(value))),
            None => out.push_str(&format!("\n{name} = {} does not depend on the inputs\n", number(value))),
        }
        out
    }
}
