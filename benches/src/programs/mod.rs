//! Gradients of `.pal` programs by every engine, against the plain Rust function, gradients by hand, and
//! other systems, in one run; for some models values, and gradients within a budget.
//!
//! Input: `benches/models/*.pal` with their defaults, a little apart from each other so that nothing is a
//! special case. Every time is that of a call right after another one, the minimum over rounds in which all
//! of this process take their turn. Systems of other languages run in processes of their own, on one core,
//! right after.

mod ba;
mod bandwidth;
mod by_hand;
mod peers;
mod plain;

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use palinode_ir::interp::{Chosen, Code, Datum, Engine, Limits, Tensor};
use palinode_ir::loops::{self, Traffic};
use palinode_ir::pal::{self, Role};
use palinode_ir::plan::{self, Asked, Target};
use palinode_ir::{passes, transform};
use palinode_native::{When, by_rustc, machine_code};

use palinode::Budget;

use crate::heap;
use crate::loops::timed;
use crate::measure::distance;
use by_hand::Kept;
use plain::Inputs;

/// A gradient by hand, in memory that it keeps.
type ByHand = fn(&Inputs<'_>, &mut Kept) -> Vec<f64>;

/// What of a model is computed.
#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    Gradient,
    /// The same, and once more within [`BUDGET`].
    GradientWithin,
    Values,
}
use Wanted::{Gradient, GradientWithin, Values};

struct Model {
    name: &'static str,
    file: &'static str,
    /// What of its text is replaced by what, for another size.
    size: Option<[&'static str; 2]>,
    wanted: Wanted,
    plain: fn(&Inputs<'_>) -> f64,
    by_hand: Option<ByHand>,
    /// How far differences go, by which its gradient is tested.
    step: f64,
}

impl Model {
    const fn new(name: &'static str, wanted: Wanted, plain: fn(&Inputs<'_>) -> f64) -> Model {
        Model { name, file: name, size: None, wanted, plain, by_hand: None, step: 1e-4 }
    }
    const fn by_hand(self, by_hand: ByHand) -> Model {
        Model { by_hand: Some(by_hand), ..self }
    }
    /// Its loops amplify changes as often as they have rounds.
    const fn amplifying(self) -> Model {
        Model { step: 1e-7, ..self }
    }
    const fn of(self, file: &'static str) -> Model {
        Model { file, ..self }
    }
    const fn sized(self, text: &'static str, by: &'static str) -> Model {
        Model { size: Some([text, by]), ..self }
    }
}

/// What `burgers`, `heat2d` and others are to stay within, too.
const BUDGET: &str = "16MiB";

const MODELS: [Model; 18] = [
    Model::new("burgers", GradientWithin, plain::burgers).by_hand(by_hand::burgers),
    Model::new("burgers_long", GradientWithin, plain::burgers_long)
        .by_hand(by_hand::burgers_long)
        .of("burgers")
        .sized("const steps = 1000", "const steps = 10000"),
    Model::new("heat2d", GradientWithin, plain::heat2d).by_hand(by_hand::heat2d),
    Model::new("lorenz", Gradient, plain::lorenz).by_hand(by_hand::lorenz),
    Model::new("nchain", Gradient, plain::nchain).amplifying(),
    Model::new("logistic", Gradient, plain::logistic).amplifying(),
    Model::new("mlp", Gradient, plain::mlp),
    Model::new("gmm", GradientWithin, plain::gmm),
    Model::new("lstm", GradientWithin, plain::lstm),
    Model::new("gmm_loops", GradientWithin, plain::gmm_loops),
    Model::new("lstm_gradbench", GradientWithin, plain::lstm_gradbench),
    Model::new("inplace", Gradient, plain::inplace),
    Model::new("mlp784", Gradient, plain::mlp),
    Model::new("chain", Gradient, plain::chain),
    Model::new("chain_value", Values, plain::chain).of("chain"),
    Model::new("chain_long", Gradient, plain::chain).of("chain").sized("4096", "1000000"),
    Model::new("chain_long_value", Values, plain::chain).of("chain").sized("4096", "1000000"),
    Model::new("product", Values, plain::product_of_two).sized("64, 64", "1000, 1000"),
];

/// Values and gradients may differ by so much, relative to the largest.
const AGREEMENT: f64 = 1e-9;

/// An engine of ours.
struct Way {
    name: &'static str,
    /// What it says of itself when it runs a program and leaves it to no other.
    says: &'static str,
    engine: fn() -> Engine,
}

impl Way {
    /// What it is called in a line; an engine that leaves the program to another one must not look like
    /// itself.
    fn who(&self, chosen: &Chosen, limits: &Limits) -> String {
        let who = match chosen {
            Chosen::Machine { name: by, .. } if *by != self.says => format!("{}: {by}", self.name),
            Chosen::Machine { .. } | Chosen::Interpreter => self.name.to_string(),
            Chosen::InterpreterBecause(why) => format!("interpreter: {why}"),
        };
        if limits.budget.is_unlimited() { who } else { format!("{who}, {}", limits.budget) }
    }
}

const WAYS: [Way; 3] = [
    Way { name: "interpreter", says: "", engine: || Engine::INTERPRETER },
    Way { name: "Cranelift", says: "machine code", engine: || machine_code(When::Possible) },
    Way { name: "rustc", says: "machine code of rustc", engine: by_rustc },
];

const MIB: f64 = (1 << 20) as f64;

/// What a contestant needed.
struct Figures {
    who: String,
    milliseconds: f64,
    /// The first call, with whatever is compiled for it.
    first: f64,
    /// At its peak, of a first run: of the heap in this process, of a whole process elsewhere.
    mib: f64,
    /// The value, then the gradient if it is wanted, or further values.
    results: Vec<f64>,
}

/// Those who take their turns.
#[derive(Default)]
struct Contest<'a> {
    found: Vec<Figures>,
    calls: Vec<Box<dyn FnMut() + 'a>>,
}

impl<'a> Contest<'a> {
    /// One more: what it is called is asked after a first call, and so are its results.
    fn enter<R>(&mut self, mut call: impl FnMut() -> R + 'a, named: impl FnOnce(R) -> (String, Vec<f64>)) {
        let (result, first, mib) = first(&mut call);
        let (who, results) = named(result);
        self.found.push(Figures { who, milliseconds: f64::INFINITY, first, mib, results });
        self.calls.push(Box::new(move || drop(black_box(call()))));
    }

    /// A program by one of our engines.
    fn enter_way(
        &mut self,
        way: &Way,
        program: &palinode_ir::Program,
        inputs: &'a [Datum<f64>],
        limits: Limits,
    ) {
        let code = Code::on(&(way.engine)(), program);
        // Within a budget nothing is compiled, so that is done before.
        let begin = Instant::now();
        let who = way.who(&code.prepare(inputs, &limits), &limits);
        let compiling = begin.elapsed().as_secs_f64() * 1e3;
        let run = move || code.run(black_box(inputs), &limits).expect("a run");
        self.enter(run, |outputs| (who, flat(&outputs)));
        self.found.last_mut().expect("it has entered").first += compiling;
    }

    /// Rounds in which all take their turn, for so long at most. A turn is two calls, of which the second is
    /// timed: the first brings its own memory back into the caches, as a system in a process of its own has
    /// it.
    fn race(self, rounds: usize) -> Vec<Figures> {
        const MOST: Duration = Duration::from_secs(4);
        let Contest { mut found, mut calls } = self;
        let begin = Instant::now();
        for round in 0..rounds {
            if round >= 3 && begin.elapsed() > MOST {
                break;
            }
            for (call, figures) in calls.iter_mut().zip(found.iter_mut()) {
                call();
                figures.milliseconds = figures.milliseconds.min(timed(call).as_secs_f64() * 1e3);
            }
        }
        found
    }
}

/// The inputs of a model, and which of them are params.
fn inputs_of(model: &pal::Model) -> (Vec<Datum<f64>>, Vec<usize>) {
    let one = |argument: &pal::Argument| {
        let default = argument.default.as_ref().expect("a default");
        let (shape, data) = (default.shape().to_vec(), default.data().to_vec());
        let data = data.into_iter().enumerate().map(|(i, x)| x + 1e-3 * (i as f64).sin()).collect();
        Datum::Real(Tensor { shape, data })
    };
    let is_param = |at: &usize| model.arguments[*at].role == Role::Param;
    let inputs = model.arguments.iter().map(one).collect::<Vec<_>>();
    (inputs, (0..model.arguments.len()).filter(is_param).collect())
}

fn flat(data: &[Datum<f64>]) -> Vec<f64> {
    let one = |datum: &Datum<f64>| match datum {
        Datum::Real(tensor) => tensor.data.clone(),
        _ => unreachable!("gradients are real"),
    };
    data.iter().flat_map(one).collect()
}

/// Calls it once, watching the clock and the heap.
fn first<R>(call: impl FnOnce() -> R) -> (R, f64, f64) {
    let before = heap::live();
    heap::reset_peak();
    let start = Instant::now();
    let result = call();
    let time = start.elapsed().as_secs_f64() * 1e3;
    (result, time, heap::peak().saturating_sub(before) as f64 / MIB)
}

/// A model's program, its inputs, which of them are params, and the program that is wanted.
struct Prepared {
    model: pal::Model,
    inputs: Vec<Datum<f64>>,
    params: Vec<usize>,
    wanted: palinode_ir::Program,
}

fn source(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models").join(file).with_extension("pal");
    std::fs::read_to_string(path).expect("the model's file")
}

fn compiled(name: &str, source: &str) -> pal::Model {
    pal::compile(source).unwrap_or_else(|found| panic!("{name}: {found:?}"))
}

fn prepared(model: &Model) -> Prepared {
    let mut source = source(model.file);
    if let Some([text, by]) = model.size {
        assert!(source.contains(text), "{}: there is no `{text}`", model.name);
        source = source.replace(text, by);
    }
    let compiled = compiled(model.name, &source);
    let (inputs, params) = inputs_of(&compiled);
    let (wanted, params) = match model.wanted {
        Values => (plan::simplified(&compiled.program), Vec::new()),
        Gradient | GradientWithin => {
            let gradient = transform::value_and_grad(&compiled.program, &params).expect("a gradient");
            (passes::simplify(&gradient), params)
        }
    };
    Prepared { wanted, model: compiled, inputs, params }
}

/// For each model, how far machine code's value is from the plain function's, and its gradient from the
/// plain function's differences, along a direction that is like no other.
pub fn distances() -> Vec<(&'static str, f64, f64)> {
    let models = MODELS.iter().filter(|model| model.wanted != Values && model.size.is_none());
    models.map(|model| (model.name, distances_of(model))).map(|(name, [a, b])| (name, a, b)).collect()
}

/// As the command runs them: infinities stop.
fn limits() -> Limits {
    Limits { trap_nonfinite: true, ..Limits::default() }
}

fn distances_of(model: &Model) -> [f64; 2] {
    let Prepared { inputs, params, wanted, .. } = prepared(model);
    let code = Code::on(&machine_code(When::Possible), &wanted);
    let results = flat(&code.run(&inputs, &limits()).expect("a gradient"));
    let direction = |i: usize| (1.7 * i as f64 + 0.3).cos();
    let slope: f64 = results[1..].iter().enumerate().map(|(i, g)| g * direction(i)).sum();
    let at = |shift: f64| {
        let mut moved = inputs.clone();
        let mut i = 0;
        for &param in &params {
            let Datum::Real(tensor) = &mut moved[param] else { unreachable!("params are real") };
            for x in &mut tensor.data {
                *x += shift * direction(i);
                i += 1;
            }
        }
        (model.plain)(&Inputs(&moved))
    };
    let h = model.step;
    let differences = (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
    let value = distance(&results[..1], &[(model.plain)(&Inputs(&inputs))]);
    [value, distance(&[slope], &[differences])]
}

/// How far machine code's product of matrices is from the plain one, for sizes that no block divides.
pub fn distance_of_product() -> f64 {
    let model = MODELS.iter().find(|model| model.name == "product").expect("the product");
    let text = source(model.file).replacen("64, 64", "131, 301", 1).replacen("64, 64", "301, 47", 1);
    let model = compiled(model.name, &text);
    let (inputs, _) = inputs_of(&model);
    let code = Code::on(&machine_code(When::Possible), &model.program);
    distance(&flat(&code.run(&inputs, &limits()).expect("a product")), &plain::products(&Inputs(&inputs)))
}

/// How far errors and entries of the Jacobian of bundle adjustment are from those of the plain function and
/// of its differences, by machine code and by numbers with tangents.
pub use ba::distances as distances_of_ba;

/// The lines of one model: the plain function first. And what its program moves.
fn measured(model: &Model, rounds: usize, python: Option<&Path>) -> (Vec<Figures>, Traffic) {
    let Prepared { model: compiled, inputs, params, wanted } = prepared(model);
    let (limits, mut kept) = (limits(), Kept::default());
    let mut contest = Contest::default();
    contest.enter(|| (model.plain)(&Inputs(black_box(&inputs))), |value| ("plain value".into(), vec![value]));
    let value = contest.found[0].results[0];
    if let Some(by_hand) = model.by_hand {
        let (inputs, kept) = (&inputs, &mut kept);
        let call = move || by_hand(&Inputs(black_box(inputs)), kept);
        contest.enter(call, |gradient| ("gradient by hand".into(), [vec![value], gradient].concat()));
    }
    for way in &WAYS {
        contest.enter_way(way, &wanted, &inputs, limits);
    }
    if model.wanted == GradientWithin {
        let budget: Budget = BUDGET.parse().expect("a budget");
        let of = Target { program: &compiled.program, wrt: &params, inputs: &inputs };
        let fitted = Asked::default().fit(of, budget).expect("a gradient within the budget");
        for way in &WAYS[1..] {
            contest.enter_way(way, &fitted.program, &inputs, Limits { budget, ..limits });
            let mib = contest.found.last().expect("it has entered").mib;
            assert!(mib * MIB <= budget.bytes() as f64, "{}: {mib} MiB within {BUDGET}", model.name);
        }
    }
    let mut found = contest.race(rounds);
    if let Some(python) = python {
        let named = compiled.arguments.iter().map(|argument| &*argument.name);
        let named: Vec<(&str, &Datum<f64>)> = named.zip(&inputs).collect();
        found.extend(peers::all(python, model.name, &named, &params));
    }
    let form = loops::lower(&wanted, &inputs, limits.trap_nonfinite).expect("a loop form");
    (found, form.traffic().1.traffic)
}

/// Whether values and gradients are those of our interpreter.
fn note(figures: &Figures, ours: &Figures) -> String {
    let (found, ours) = (&figures.results, &ours.results);
    let value = distance(&found[..1], &ours[..1]);
    let gradient = match found.len() {
        1 => 0.0,
        n if n == ours.len() => distance(&found[1..], &ours[1..]),
        _ => f64::INFINITY,
    };
    if value <= AGREEMENT && gradient <= AGREEMENT {
        return String::new();
    }
    format!("  DIFFERS: value by {value:.1e}, gradient by {gradient:.1e}")
}

/// Bytes and flops of the program, and how fast machine code moves them.
fn moves(traffic: Traffic, lines: &[Figures]) -> String {
    let mib = traffic.bytes() as f64 / MIB;
    let machine = lines.iter().find(|line| line.who == WAYS[1].name).expect("machine code runs");
    let speed = traffic.bytes() as f64 / machine.milliseconds / 1e6;
    let intensity = traffic.intensity(1.0).unwrap_or(f64::INFINITY);
    format!(
        "the program moves {mib:.2} MiB, {intensity:.2} flops and functions per byte; {} moves {speed:.1} GB/s",
        machine.who
    )
}

/// The models asked for, or all, measured and printed as they come; whether all agree.
pub fn report(quick: bool, wanted: &[String]) -> bool {
    let names = || MODELS.iter().map(|model| model.name).chain([ba::NAME]);
    let is_wanted = |name: &&str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    if !names().any(|name| is_wanted(&name)) {
        // Names of the other benches' rows.
        println!("none of these models: {:?}", names().collect::<Vec<_>>());
        return true;
    }
    let python = peers::python();
    match &python {
        Some(_) if quick => println!("Other systems are left out of quick runs."),
        Some(python) => println!("Other systems by {}.", python.display()),
        None => println!("No other systems: `benches/peers/setup` installs them."),
    }
    for (place, speed) in bandwidth::measured() {
        println!("This machine moves {speed:.0} GB/s to and from {place}, by one core.");
    }
    println!("{:16} {:20} {:>10} {:>9} {:>10} {:>9}", "model", "by", "ms", "x plain", "first ms", "peak MiB");
    let mut all_agree = true;
    let rounds = if quick { 1 } else { 200 };
    let python = python.as_deref().filter(|_| !quick);
    for name in names().filter(is_wanted) {
        let (lines, moved) = match MODELS.iter().find(|model| model.name == name) {
            Some(model) => measured(model, rounds, python),
            None => ba::measured(rounds, python),
        };
        all_agree &= print(name, &lines);
        println!("{:16} {}", "", moves(moved, &lines));
    }
    all_agree
}

/// The lines of a model; whether they agree.
fn print(name: &str, lines: &[Figures]) -> bool {
    let plain = lines[0].milliseconds;
    let ours = lines.iter().find(|line| line.who == WAYS[0].name).expect("the interpreter runs");
    let mut text = String::new();
    let mut all_agree = true;
    for line in lines {
        let note = note(line, ours);
        all_agree &= note.is_empty();
        let Figures { who, milliseconds, first, mib, .. } = line;
        let ratio = milliseconds / plain;
        let _ =
            writeln!(text, "{name:16} {who:20} {milliseconds:10.4} {ratio:9.2} {first:10.3} {mib:9.2}{note}");
    }
    print!("{text}");
    all_agree
}
