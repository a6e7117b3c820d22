//! `palinode hessian`: all second derivatives of the loss.

use palinode_core::points::{self, Parts};
use palinode_ir::interp::{Code, Datum, Tensor};
use palinode_ir::pal::Output;
use palinode_ir::plan::Target;
use palinode_ir::{passes, transform};
use serde_json::{Value, json};

use crate::answer::{Json, Text};
use crate::args::HessianArgs;
use crate::commands::{
    Meaning, Question, engine_line, headline, measured, objective_value, rounds_counter, run_model,
};
use crate::execute::{Cost, run_derivative};
use crate::gradient::NoGradient;
use crate::model::Loaded;
use crate::numbers::Look;
use crate::problem::Failed;
use crate::progress::Progress;
use crate::session::{Answer, Session};
use crate::sides::Allowed;
use crate::table::{Cell, HEADING, layout};
use crate::{execute, explain, numbers, sides, value};

/// How many rows and columns are shown unless all are asked for.
const SHOWN: usize = 8;

pub(crate) fn run(session: &mut Session, args: &HessianArgs) -> Result<(), Failed> {
    let Question { loaded, objective, wrt, mut inputs } =
        Question::read(session, &args.model, &args.derivative)?;
    let engine = execute::engine(&args.engine);
    let limits = execute::limits_and_sums(&args.model, &args.sums);
    let model = loaded.only(objective);
    let of = Target { program: &model, wrt: &wrt, inputs: &inputs };
    let (ran, is_suspicious) =
        points::suspicious(of.point(), || run_model(&loaded, &inputs, &limits, &engine));
    let ran = ran?;
    let found = objective_value(&loaded, &ran, objective, &limits)?;

    let program =
        transform::hessian(&model, &wrt).map_err(|error| explain::transform(&error, loaded.file))?;
    let code = Code::on(&engine, &passes::simplify(&program));
    let progress = Progress::start("running once per direction", 1);
    let ran = run_derivative(&code, &inputs, &limits, 0)
        .map_err(|error| explain::gradient(NoGradient::from(error), &loaded))?;
    if is_suspicious && !args.model.accept_points {
        let at = (&mut inputs[..], &wrt[..]);
        let values = Code::on(&engine, &model);
        sides::check(&values, at, Allowed::freely(&limits), (Parts::Along, 2), |inputs, parts| {
            let ran = run_derivative(&code, inputs, &limits, 0)?;
            parts.extend(ran.outputs.iter().filter_map(Datum::as_vector).flatten());
            Ok(())
        })
        .map_err(|error| explain::gradient(error, &loaded))?;
    }
    drop(progress);

    let output = &loaded.model.outputs[objective];
    let unit = output.unit.as_ref();
    let value = unit.map_or(found, |unit| unit.from_si(found));
    let mut blocks: Vec<Tensor<f64>> = Vec::new();
    for (at, block) in ran.outputs.into_iter().enumerate() {
        let Datum::Real(mut block) = block else { unreachable!("a derivative is real") };
        let scale = |at: usize| loaded.arguments()[wrt[at]].unit.as_ref().map_or(1.0, |unit| unit.scale());
        let factor = scale(at / wrt.len()) * scale(at % wrt.len());
        let factor = unit.map_or(factor, |unit| unit.from_si(factor));
        block.data.iter_mut().for_each(|x| *x *= factor);
        blocks.push(block);
    }
    let counter = rounds_counter(session, &model);
    let meaning = Meaning::new(&loaded, (&wrt, &inputs), unit, (counter, &limits));
    session.answer(&Hessian { meaning, output, value, blocks, cost: ran.cost, look: args.show.look() })
}

struct Hessian<'a> {
    meaning: Meaning<'a>,
    output: &'a Output,
    value: f64,
    /// A block for each pair of arguments, row by row.
    blocks: Vec<Tensor<f64>>,
    cost: Cost,
    look: Look,
}

impl Answer for Hessian<'_> {
    fn text(&self, session: &Session) -> Text<'_> {
        let Meaning { loaded, wrt, inputs, .. } = self.meaning;
        let shown = format!("{} = {}", self.output.name, numbers::short(self.value, self.look.digits));
        let head = headline(&shown, &self.cost, session);
        let sizes: Vec<usize> = wrt.iter().map(|&at| inputs[at].elements()).collect();
        let matrix = assemble(&self.blocks, &sizes);
        let matrix = matrix_text(&labels(loaded, wrt, inputs), &matrix, self.look);
        format!("{head}\n{matrix}\n{}", engine_line(&self.cost.by)).into()
    }

    fn json(&self, session: &Session) -> Json<'_> {
        let names: Vec<&str> = self.meaning.moved().map(|one| &*one.name).collect();
        let units: Vec<Value> = self.meaning.moved().map(|one| value::unit(one.unit.as_ref())).collect();
        let n = names.len();
        let block = |(at, block)| {
            Json::fields([
                ("row", json!(names[at / n]).into()),
                ("column", json!(names[at % n]).into()),
                ("value", value::reals(block)),
            ])
        };
        Json::fields([
            ("model", json!(session.sources.name_of(self.meaning.loaded.file)).into()),
            ("output", value::output(self.output, self.value).into()),
            ("wrt", json!(names).into()),
            ("units", json!(units).into()),
            ("hessian", Json::List(self.blocks.iter().enumerate().map(block).collect())),
        ])
        .and(measured(&self.cost, session, json!({ "peak_bytes": self.cost.peak })))
    }

    fn meaning(&self, session: &Session) -> Option<Value> {
        Some(self.meaning.json(session))
    }
}

/// The name of each row: `a`, `w[0]`, `w[1]`, `m[0,1]`.
pub(crate) fn labels(loaded: &Loaded, wrt: &[usize], inputs: &[Datum<f64>]) -> Vec<String> {
    let label = |at: usize, element: usize| {
        let (name, shape) = (&loaded.arguments()[at].name, inputs[at].shape());
        let after = |axis: usize| shape[axis + 1..].iter().product::<usize>();
        let index = |axis: usize| (element / after(axis) % shape[axis]).to_string();
        let indices: Vec<String> = (0..shape.len()).map(index).collect();
        if shape.is_empty() { name.to_string() } else { format!("{name}[{}]", indices.join(",")) }
    };
    wrt.iter().flat_map(|&at| (0..inputs[at].elements()).map(move |element| label(at, element))).collect()
}

/// Blocks, row by row -> one matrix.
fn assemble(blocks: &[Tensor<f64>], sizes: &[usize]) -> Vec<Vec<f64>> {
    let line = |blocks: &[Tensor<f64>], row: usize| {
        let parts = blocks.iter().zip(sizes).map(|(block, &width)| &block.data[row * width..][..width]);
        parts.collect::<Vec<_>>().concat()
    };
    let heights = blocks.chunks(sizes.len()).zip(sizes);
    heights.flat_map(|(blocks, &height)| (0..height).map(move |row| line(blocks, row))).collect()
}

fn matrix_text(labels: &[String], matrix: &[Vec<f64>], look: Look) -> String {
    let shown = if look.full { labels.len() } else { labels.len().min(SHOWN) };
    let heading = |text: &str| Cell::new(text).style(HEADING).right();
    let mut rows = vec![vec![Cell::new("")]];
    rows[0].extend(labels[..shown].iter().map(|label| heading(label)));
    for (label, line) in labels.iter().zip(matrix).take(shown) {
        let mut row = vec![Cell::new(&**label).style(HEADING)];
        row.extend(line[..shown].iter().map(|&x| Cell::new(numbers::short(x, look.digits)).right()));
        rows.push(row);
    }
    let mut out = layout(rows, "   ");
    if shown < labels.len() {
        out.push_str(&format!("  ... {} rows and columns in all; --full shows them\n", labels.len()));
    }
    out
}
