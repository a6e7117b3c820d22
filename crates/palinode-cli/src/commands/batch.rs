//! `--batch`: a model, or its gradient, for every row of a table.
//!
//! Invariants: the numbers of a row are those that the command gives for it alone; they, and sums over rows,
//! do not depend on the number of threads. A row that goes wrong fails the command, which names the row.
//!
//! Known limits: a gradient for every row has no budget.

use palinode_core::points::{self, Parts};
use palinode_core::{Accumulator, Scalar};
use palinode_ir::interp::{Code, Datum, Limits, RunError};
use palinode_ir::pal::Unit;
use palinode_ir::plan::{self, Target};
use palinode_time::{ProgramBatch, spread};
use serde_json::{Value, json};

use crate::answer::{Json, Text};
use crate::args::{BatchArgs, GradArgs, RunArgs};
use crate::commands::{run_model, run_values, value_alone};
use crate::data::Rows;
use crate::gradient::{NoGradient, Prepared};
use crate::model::Loaded;
use crate::numbers::Look;
use crate::problem::{Exit, Failed, Problem};
use crate::progress::Progress;
use crate::session::{Answer, Session};
use crate::sides::Allowed;
use crate::table::{Cell, HEADING, STRONG, table};
use crate::{execute, explain, inputs, model, numbers, sides, storage, value};

/// So many rows that went wrong are named.
const MOST_FAILED: usize = 5;

/// So many rows are shown to people, unless they ask for all.
const MOST_SHOWN: usize = 20;

/// `palinode run --batch`.
pub(crate) fn run(session: &mut Session, args: &RunArgs) -> Result<(), Failed> {
    let loaded = model::load(session, &args.model.model)?;
    let (first, rows) = bind(session, &loaded, &args.model, &args.batch)?;
    let engine = execute::engine(&args.engine);
    let limits = execute::limits_and_sums(&args.model, &args.sums);
    let (program, limits) = match &args.budget {
        Some(word) => {
            let budget = storage::budget(session, word).map_err(|problem| *problem)?;
            let program = storage::value_within(&loaded.model.program, &first, budget)?;
            (program, Limits { budget, ..limits })
        }
        None => (plan::simplified(&loaded.model.program), limits),
    };
    let code = Code::on(&engine, &program);
    let batch = ProgramBatch::new(&code).limits(limits).parallel();
    let ran = on_threads(&args.batch, || {
        let progress = Progress::start("running", rows.count as u64);
        batch.run(rows.count, |row, inputs: &mut Vec<Datum<f64>>| {
            if inputs.is_empty() {
                inputs.clone_from(&first);
            }
            inputs::set_row(&loaded, &rows, row, inputs);
            progress.advance();
        })
    })?;
    let again = |row: usize| {
        let mut inputs = first.clone();
        inputs::set_row(&loaded, &rows, row, &mut inputs);
        // As one by one: it knows what to say.
        let done = match args.budget {
            Some(_) => run_values(&loaded, &program, &inputs, &limits, &engine),
            None => run_model(&loaded, &inputs, &limits, &engine),
        };
        done.map(|ran| ran.outputs)
    };
    let is_nan = |datum: &Datum<f64>| datum.as_vector().is_some_and(|data| data.iter().any(|x| x.is_nan()));
    let is_fine = |ran: &Result<Vec<Datum<f64>>, RunError>| {
        ran.as_ref().is_ok_and(|outputs| !limits.trap_nonfinite || !outputs.iter().any(is_nan))
    };
    let all = settled(&rows, ran, is_fine, again)?;
    let outputs = &loaded.model.outputs;
    let mut columns = Vec::new();
    for (at, output) in outputs.iter().enumerate() {
        let shape = all[0][at].shape();
        if let Some(row) = all.iter().position(|row| row[at].shape() != shape) {
            let [here, there] = [shape, all[row][at].shape()].map(numbers::shape);
            let message = format!(
                "`{}` has the shape {here} in row 1 and {there} in row {}: there is no table of it",
                output.name,
                row + 1
            );
            let problem = Problem::new("PAL0288", Exit::Run, message);
            return Err(problem.help("make a batch for each shape").into());
        }
        let unit = output.unit.as_ref().map_or(String::new(), |unit| unit.text.to_string());
        columns.extend(elements(&output.name, shape).map(|name| Column { name, unit: unit.clone() }));
    }
    let units: Vec<Option<&Unit>> = outputs.iter().map(|output| output.unit.as_ref()).collect();
    let in_unit = |row: Vec<Datum<f64>>| -> Vec<f64> {
        let each = row.into_iter().zip(&units);
        each.flat_map(|(datum, unit)| as_reals(value::in_unit(datum, *unit))).collect()
    };
    let data = all.into_iter().map(in_unit).collect();
    finish(session, &args.batch, Batch::new(session, &loaded, &rows, columns, data, args.show.look(), None))
}

/// `palinode grad --batch`.
pub(crate) fn grad(session: &mut Session, args: &GradArgs) -> Result<(), Failed> {
    let loaded = model::load(session, &args.model.model)?;
    let objective = loaded.objective(args.derivative.of.as_deref())?;
    let wrt = loaded.wrt(&args.derivative.wrt)?;
    let (first, rows) = bind(session, &loaded, &args.model, &args.batch)?;
    let mut asked = storage::read(session, &loaded, &args.storage)?;
    if asked.budget.is_some() {
        let message = "a gradient for every row has no budget";
        let problem = Problem::new("PAL0298", Exit::Usage, message);
        return Err(problem.help("leave out --budget or --batch; --recompute keeps less").into());
    }
    asked.engine = execute::engine(&args.engine);
    let limits = execute::limits_and_sums(&args.model, &args.sums);
    let program = loaded.only(objective);
    let values = Code::on(&asked.engine, &plan::simplified(&program));
    let of_first = Target { program: &program, wrt: &wrt, inputs: &first };
    let mode = if asked.is_about_reverse() { crate::args::Mode::Reverse } else { args.mode };
    let prepared = Prepared::new(of_first, mode, &asked);
    let prepared = prepared.map_err(|error| explain::transform(&error, loaded.file))?;
    let looks = !args.model.accept_points;

    let one = |inputs: &mut Vec<Datum<f64>>| -> Result<Vec<f64>, NotThis> {
        let point: Vec<f64> = Target { program: &program, wrt: &wrt, inputs }.point().collect();
        let (ran, is_suspicious) =
            points::suspicious(point, || execute::run(&values, inputs, &limits).map_err(|_| NotThis::Value));
        let value = ran?.outputs[0].as_real().ok_or(NotThis::Value)?;
        if limits.trap_nonfinite && !value.is_finite() {
            return Err(NotThis::Value);
        }
        if is_suspicious && looks {
            let look = Allowed::freely(&limits);
            sides::check(&values, (inputs, &wrt), look, (Parts::ByInput, 1), |inputs, parts| {
                let of = Target { program: &program, wrt: &wrt, inputs };
                prepared.run(of, &limits).map(|found| found.iter().for_each(|part| parts.extend(&part.data)))
            })
            .map_err(NotThis::Gradient)?;
        }
        let of = Target { program: &program, wrt: &wrt, inputs };
        let found = prepared.run(of, &limits).map_err(NotThis::Gradient)?;
        Ok([value].into_iter().chain(found.into_iter().flat_map(|part| part.data)).collect())
    };
    let ran = on_threads(&args.batch, || {
        let progress = Progress::start("running forwards and backwards", rows.count as u64);
        let threads = rayon::current_num_threads();
        spread(
            rows.count,
            threads,
            || first.clone(),
            |inputs: &mut Vec<Datum<f64>>, row| {
                inputs::set_row(&loaded, &rows, row, inputs);
                let done = one(inputs);
                progress.advance();
                done
            },
        )
    })?;
    let again = |row: usize| {
        let mut inputs = first.clone();
        inputs::set_row(&loaded, &rows, row, &mut inputs);
        match one(&mut inputs) {
            Ok(found) => Ok(found),
            Err(NotThis::Gradient(error)) => Err(explain::gradient(error, &loaded)),
            Err(NotThis::Value) => match value_alone(&loaded, &values, objective, &inputs, &limits) {
                Err(failed) => Err(failed),
                Ok(_) => one(&mut inputs).map_err(|_| unreachable!("its value is a number")),
            },
        }
    };
    let mut data = settled(&rows, ran, Result::is_ok, again)?;
    // From here on in declared units.
    let output = &loaded.model.outputs[objective];
    let of = output.unit.as_ref();
    let unit = of.map_or(String::new(), |unit| unit.text.to_string());
    let mut columns = vec![Column { name: output.name.to_string(), unit }];
    let mut scales = Vec::new();
    for &at in &wrt {
        let argument = &loaded.arguments()[at];
        let by = argument.unit.as_ref();
        let unit = value::derivative_unit(of, by);
        let names: Vec<String> = elements(&argument.name, first[at].shape()).collect();
        scales.extend(names.iter().map(|_| value::derivative_scale(of, by)));
        let column =
            |name: String| Column { name: format!("d {} / d {name}", output.name), unit: unit.clone() };
        columns.extend(names.into_iter().map(column));
    }
    for row in &mut data {
        row[0] = of.map_or(row[0], |unit| unit.from_si(row[0]));
        row[1..].iter_mut().zip(&scales).for_each(|(x, scale)| *x *= scale);
    }
    let fixed = loaded.arguments().iter().enumerate().filter(|(at, _)| !wrt.contains(at));
    let fixed: Vec<&str> = fixed.map(|(_, argument)| &*argument.name).collect();
    let meaning = json!({
        "unit": value::unit(of),
        "held_fixed": { "inputs": fixed, "decisions": null, "rounds": null },
    });
    let look = args.show.look();
    finish(session, &args.batch, Batch::new(session, &loaded, &rows, columns, data, look, Some(meaning)))
}

/// Why a row has no gradient: its value fails, or the gradient does.
enum NotThis {
    Value,
    Gradient(NoGradient),
}

fn bind(
    session: &mut Session,
    loaded: &Loaded,
    model: &crate::args::ModelArgs,
    batch: &BatchArgs,
) -> Result<(Vec<Datum<f64>>, Rows), Failed> {
    let path = batch.batch.as_deref().expect("it was asked for");
    inputs::bind_batch(session, loaded, &model.given, path)
}

/// Does it in a pool of so many threads.
fn on_threads<R: Send>(batch: &BatchArgs, f: impl FnOnce() -> R + Send) -> Result<R, Failed> {
    let threads = batch.threads.map_or(0, |n| usize::try_from(n).unwrap_or(usize::MAX).clamp(1, 1024));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| {
        Problem::new("PAL0298", Exit::Usage, format!("no threads can be started: {error}"))
            .help("give a smaller number, `--threads 1`")
    })?;
    Ok(pool.install(f))
}

/// What all rows gave; those that went wrong are run once more, one by one, to say why.
fn settled<T, E>(
    rows: &Rows,
    ran: Vec<Result<T, E>>,
    is_fine: impl Fn(&Result<T, E>) -> bool,
    again: impl Fn(usize) -> Result<T, Failed>,
) -> Result<Vec<T>, Failed> {
    let (mut all, mut problems, mut more) = (Vec::with_capacity(ran.len()), Vec::new(), 0_u64);
    for (row, ran) in ran.into_iter().enumerate() {
        let done = match ran {
            ran if !is_fine(&ran) && problems.len() >= MOST_FAILED => {
                more += 1;
                continue;
            }
            ran if !is_fine(&ran) => again(row),
            Ok(done) => Ok(done),
            Err(_) => unreachable!("what failed is not fine"),
        };
        match done {
            Ok(done) => all.push(done),
            Err(Failed(found)) => {
                let place = format!("in row {} of {}", row + 1, rows.file);
                problems.extend(found.into_iter().map(|problem| problem.note(place.clone())));
            }
        }
    }
    if more > 0
        && let Some(last) = problems.pop()
    {
        problems.push(last.note(format!("and in {} more", numbers::plural(more, "row"))));
    }
    if problems.is_empty() { Ok(all) } else { Err(Failed(problems)) }
}

/// The names of the elements of an array of this shape: `w`, or `w[0]`, `w[1]`, ...
fn elements<'a>(name: &'a str, shape: &'a [usize]) -> impl Iterator<Item = String> + 'a {
    (0..shape.iter().product()).map(move |element: usize| {
        let mut rest = element;
        let mut index: Vec<String> = Vec::new();
        for &length in shape.iter().rev() {
            index.insert(0, (rest % length).to_string());
            rest /= length;
        }
        if index.is_empty() { name.to_string() } else { format!("{name}[{}]", index.join(",")) }
    })
}

/// Numbers of any kind.
fn as_reals(datum: Datum<f64>) -> Vec<f64> {
    match datum {
        Datum::Real(tensor) => tensor.data,
        Datum::Int(tensor) => tensor.data.into_iter().map(|n| n as f64).collect(),
        Datum::Bool(tensor) => tensor.data.into_iter().map(|holds| f64::from(u8::from(holds))).collect(),
    }
}

#[derive(Debug)]
struct Column {
    name: String,
    unit: String,
}

/// A table: a row for each of the batch, or their sum.
struct Batch {
    model: String,
    file: String,
    /// How many rows the batch has.
    count: usize,
    columns: Vec<Column>,
    data: Vec<f64>,
    shape: [usize; 2],
    sum: Option<Accumulator>,
    look: Look,
    seconds: f64,
    meaning: Option<Value>,
}

impl Batch {
    fn new(
        session: &Session,
        loaded: &Loaded,
        rows: &Rows,
        columns: Vec<Column>,
        data: Vec<Vec<f64>>,
        look: Look,
        meaning: Option<Value>,
    ) -> Batch {
        Batch {
            model: session.sources.name_of(loaded.file).to_string(),
            file: rows.file.clone(),
            count: rows.count,
            shape: [rows.count, columns.len()],
            columns,
            data: data.concat(),
            sum: None,
            look,
            seconds: session.seconds(),
            meaning,
        }
    }

    /// The rows added up, in their order.
    fn summed(self, how: Accumulator) -> Batch {
        let [rows, columns] = self.shape;
        let sum = |column| f64::sum_with_over(rows, how, |row| self.data[row * columns + column]);
        let data = (0..columns).map(sum).collect();
        Batch { data, shape: [1, columns], sum: Some(how), ..self }
    }

    fn row(&self, row: usize) -> &[f64] {
        &self.data[row * self.shape[1]..(row + 1) * self.shape[1]]
    }

    fn csv(&self) -> String {
        let quoted = |name: &str| match name.contains([',', '"']) {
            true => format!("\"{}\"", name.replace('"', "\"\"")),
            false => name.to_string(),
        };
        let line = |cells: Vec<String>| cells.join(",") + "\n";
        let mut out = line(self.columns.iter().map(|column| quoted(&column.name)).collect());
        for row in 0..self.shape[0] {
            out.push_str(&line(self.row(row).iter().map(|&x| numbers::plain(x)).collect()));
        }
        out
    }
}

fn finish(session: &Session, args: &BatchArgs, batch: Batch) -> Result<(), Failed> {
    let batch = match args.sum {
        Some(how) => batch.summed(how),
        None => batch,
    };
    if args.csv { session.answer(&Csv(batch)) } else { session.answer(&batch) }
}

impl Answer for Batch {
    fn text(&self, _: &Session) -> Text<'_> {
        let shown = if self.look.full { self.shape[0] } else { self.shape[0].min(MOST_SHOWN) };
        let heading = |words: &str| Cell::new(words.to_string()).style(HEADING).right();
        let head = |of: fn(&Column) -> &str| {
            [heading("")]
                .into_iter()
                .chain(self.columns.iter().map(move |column| heading(of(column))))
                .collect()
        };
        let mut lines: Vec<Vec<Cell<'_>>> = vec![head(|column| &column.name)];
        lines[0][0] = heading(if self.sum.is_some() { "" } else { "row" });
        if self.columns.iter().any(|column| !column.unit.is_empty()) {
            lines.push(head(|column| &column.unit));
        }
        for row in 0..shown {
            let name = if self.sum.is_some() { "sum".to_string() } else { numbers::count(row as u64 + 1) };
            let number = |&x: &f64| Cell::new(numbers::short(x, self.look.digits)).right();
            let cells = self.row(row).iter().map(number);
            lines.push([Cell::new(name).style(STRONG).right()].into_iter().chain(cells).collect());
        }
        let rest = match self.shape[0] - shown {
            0 => String::new(),
            more => format!(
                "  and {} more: --full shows them, --csv and --json have all\n",
                numbers::plural(more as u64, "row")
            ),
        };
        let rows = numbers::plural(self.count as u64, "row");
        let time = numbers::time(self.seconds);
        table(lines, "   ").then(rest).then(format!("\n{rows} of {}, {time} in all\n", self.file))
    }

    fn json(&self, _: &Session) -> Json<'_> {
        let columns = self.columns.iter().map(|column| {
            let unit = Some(&column.unit).filter(|unit| !unit.is_empty());
            Json::from(json!({ "name": column.name, "unit": unit }))
        });
        let sum = self.sum.map(|how| json!(format!("{how:?}").to_lowercase()));
        let batch = json!({ "file": self.file, "rows": self.count, "sum": sum.unwrap_or(Value::Null) });
        Json::fields([
            ("model", json!(self.model).into()),
            ("batch", batch.into()),
            ("columns", Json::List(columns.collect())),
            (
                "rows",
                Json::Array { shape: &self.shape, element: Box::new(|at| value::number(self.data[at])) },
            ),
            ("total_seconds", json!(self.seconds).into()),
        ])
    }

    fn meaning(&self, _: &Session) -> Option<Value> {
        self.meaning.clone()
    }
}

/// The same as CSV.
struct Csv(Batch);

impl Answer for Csv {
    fn text(&self, _: &Session) -> Text<'_> {
        self.0.csv().into()
    }

    fn json(&self, session: &Session) -> Json<'_> {
        self.0.json(session)
    }
}
