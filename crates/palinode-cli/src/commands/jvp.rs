//! `palinode jvp`: how every output moves when the arguments move along a direction.

use palinode_core::points::{self, Parts};
use palinode_ir::interp::{Code, Datum};
use palinode_ir::pal::{Output, Role};
use palinode_ir::plan::Target;
use palinode_ir::{passes, transform};
use serde_json::{Value, json};

use crate::answer::{Json, Text};
use crate::args::JvpArgs;
use crate::assign::{self, Numbers, unknown};
use crate::commands::{Meaning, engine_line, headline, measured, output_json, rounds_counter, run_model};
use crate::execute::{Cost, run_derivative};
use crate::gradient::NoGradient;
use crate::model::Loaded;
use crate::numbers::Look;
use crate::problem::{Exit, Failed, Problem};
use crate::progress::Progress;
use crate::session::{Answer, Session};
use crate::sides::Allowed;
use crate::table::{Cell, STRONG, headings, layout};
use crate::{execute, explain, inputs, model, numbers, sides, value};

/// An argument and how it moves, in the declared unit.
struct Move {
    at: usize,
    numbers: Numbers,
}

/// An output, its value and its derivative, if it is real.
type Row<'a> = (&'a Output, Datum<f64>, Option<Datum<f64>>);

pub(crate) fn run(session: &mut Session, args: &JvpArgs) -> Result<(), Failed> {
    let loaded = model::load(session, &args.model.model)?;
    let inputs = inputs::bind(session, &loaded, &args.model.given)?;
    let moves = directions(session, &loaded, args, &inputs)?;
    let engine = execute::engine(&args.engine);
    let limits = execute::limits_and_sums(&args.model, &args.sums);
    let wrt: Vec<usize> = moves.iter().map(|one| one.at).collect();
    let of = Target { program: &loaded.model.program, wrt: &wrt, inputs: &inputs };
    let (ran, is_suspicious) =
        points::suspicious(of.point(), || run_model(&loaded, &inputs, &limits, &engine));
    ran?;

    let program = transform::jvp(&loaded.model.program, &wrt)
        .map_err(|error| explain::transform(&error, loaded.file))?;
    let mut all = inputs.clone();
    let tangent = |one: &Move| inputs::datum(&loaded.arguments()[one.at], one.numbers.clone());
    all.extend(moves.iter().map(tangent));
    let code = Code::on(&engine, &passes::simplify(&program));
    let progress = Progress::start("running forwards", 1);
    let ran = run_derivative(&code, &all, &limits, loaded.model.outputs.len())
        .map_err(|error| explain::gradient(NoGradient::from(error), &loaded))?;
    if is_suspicious && !args.model.accept_points {
        let (mut moving, rest) = (inputs.clone(), &all[inputs.len()..]);
        let values = Code::on(&engine, &loaded.model.program);
        let at = (&mut moving[..], &wrt[..]);
        sides::check(&values, at, Allowed::freely(&limits), (Parts::Along, 1), |moved, parts| {
            let ran = run_derivative(&code, &[moved, rest].concat(), &limits, loaded.model.outputs.len())?;
            let tangents = ran.outputs.iter().skip(loaded.model.outputs.len());
            parts.extend(tangents.filter_map(Datum::as_vector).flatten());
            Ok(())
        })
        .map_err(|error| explain::gradient(error, &loaded))?;
    }
    drop(progress);

    // Values and derivatives in the units of the outputs, side by side.
    let outputs = &loaded.model.outputs;
    let mut given = ran.outputs.into_iter();
    let values: Vec<Datum<f64>> = given.by_ref().take(outputs.len()).collect();
    let rows: Vec<Row<'_>> = outputs
        .iter()
        .zip(values)
        .map(|(output, datum)| {
            let unit = output.unit.as_ref();
            let tangent = if output.ty.is_real() { given.next() } else { None };
            (output, value::in_unit(datum, unit), tangent.map(|tangent| value::in_unit(tangent, unit)))
        })
        .collect();
    let counter = rounds_counter(session, &loaded.model.program);
    let meaning = Meaning::new(&loaded, (&wrt, &inputs), None, (counter, &limits));
    session.answer(&Tangents { meaning, moves, rows, cost: ran.cost, look: args.show.look() })
}

struct Tangents<'a> {
    meaning: Meaning<'a>,
    moves: Vec<Move>,
    rows: Vec<Row<'a>>,
    cost: Cost,
    look: Look,
}

impl Answer for Tangents<'_> {
    fn text(&self, session: &Session) -> Text<'_> {
        let words = |datum: &Datum<f64>| numbers::datum(datum, self.look).into_words();
        let mut rows = vec![headings("output|value|derivative|unit")];
        rows.extend(self.rows.iter().map(|(output, datum, tangent)| {
            vec![
                Cell::new(&*output.name).style(STRONG),
                Cell::new(words(datum)),
                Cell::new(tangent.as_ref().map_or("none".to_string(), words)),
                Cell::new(output.unit.as_ref().map_or("", |unit| &*unit.text)),
            ]
        }));
        let shown = self.meaning.moved().zip(&self.moves).map(|(argument, Move { numbers, .. })| {
            let numbers = numbers::reals(&numbers.shape, &numbers.data, self.look).into_words();
            format!("{} = {numbers}", argument.name)
        });
        let shown = shown.collect::<Vec<_>>().join(", ");
        let head = headline(&format!("along {shown}"), &self.cost, session);
        format!("{head}\n{}\n{}", layout(rows, "   "), engine_line(&self.cost.by)).into()
    }

    fn json(&self, session: &Session) -> Json<'_> {
        let direction = self.meaning.moved().zip(&self.moves).map(|(argument, one)| {
            let Numbers { shape, data } = &one.numbers;
            let numbers = Json::Array { shape, element: Box::new(|at| value::number(data[at])) };
            Json::fields([("name", json!(&*argument.name).into()), ("direction", numbers)])
        });
        let outputs = self.rows.iter().map(|(output, datum, tangent)| {
            let derivative = tangent.as_ref().map_or(Value::Null.into(), |one| value::datum(one, None));
            output_json(output, datum).and(Json::fields([("derivative", derivative)]))
        });
        Json::fields([
            ("model", json!(session.sources.name_of(self.meaning.loaded.file)).into()),
            ("direction", Json::List(direction.collect())),
            ("outputs", Json::List(outputs.collect())),
        ])
        .and(measured(&self.cost, session, json!({ "peak_bytes": self.cost.peak })))
    }

    fn meaning(&self, session: &Session) -> Option<Value> {
        Some(self.meaning.json(session))
    }
}

/// What `--direction` says; a single param moves by 1 if it says nothing.
fn directions(
    session: &mut Session,
    loaded: &Loaded,
    args: &JvpArgs,
    inputs: &[Datum<f64>],
) -> Result<Vec<Move>, Failed> {
    let arguments = loaded.arguments();
    let real: Vec<&str> = arguments.iter().filter(|one| one.ty.is_real()).map(|one| &*one.name).collect();
    if args.direction.is_empty() {
        let params: Vec<usize> =
            (0..arguments.len()).filter(|&at| arguments[at].role == Role::Param).collect();
        if let [at] = params[..]
            && inputs[at].elements() == 1
        {
            let numbers = Numbers { shape: inputs[at].shape().to_vec(), data: vec![1.0] };
            return Ok(vec![Move { at, numbers }]);
        }
        let problem = Problem::new("PAL0290", Exit::Usage, "no --direction was given");
        let moving = arguments.iter().find(|one| one.ty.is_real() && one.role == Role::Param);
        let example = moving.map(|one| &*one.name).or(real.first().copied()).unwrap_or("a");
        return Err(problem
            .help(format!("say in which direction the arguments move: `--direction {example}=1`"))
            .into());
    }
    let mut moves: Vec<Move> = Vec::new();
    let mut problems = Vec::new();
    for one in
        assign::parse(session, "--direction", &args.direction, &real, args.model.given.allow_nonfinite)?
    {
        let Some(at) = arguments.iter().position(|argument| *argument.name == *one.name) else {
            problems.push(unknown(&one.name, "param or input", &real).at(one.file, one.name_range, ""));
            continue;
        };
        if !arguments[at].ty.is_real() {
            let message = format!("`{}` is an integer, which has no derivative", one.name);
            let problem = Problem::new("PAL0292", Exit::Usage, message).at(one.file, one.name_range, "");
            problems.push(problem.help(format!("the real ones are {}", assign::listed(&real))));
            continue;
        }
        let shape = inputs[at].shape();
        let mut numbers = one.value;
        if numbers.shape.is_empty() {
            numbers = Numbers { shape: shape.to_vec(), data: vec![numbers.data[0]; inputs[at].elements()] };
        }
        if numbers.shape != shape {
            let (is, must) = (numbers::described(&numbers.shape), numbers::described(shape));
            let message = format!("the direction of `{}` is {is}, but `{}` is {must}", one.name, one.name);
            let problem = Problem::new("PAL0283", Exit::Usage, message).at(one.file, one.value_range, "");
            problems.push(problem.help("give it the same shape, or one number for all entries"));
            continue;
        }
        moves.retain(|earlier| earlier.at != at);
        moves.push(Move { at, numbers });
    }
    if problems.is_empty() { Ok(moves) } else { Err(Failed(problems)) }
}
