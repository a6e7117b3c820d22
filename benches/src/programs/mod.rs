//! Gradients of `.pal` programs by every engine, against the plain Rust function, gradients by hand, and
//! other systems, in one run.
//!
//! Input: `benches/models/*.pal` with their defaults, a little apart from each other so that nothing is a
//! special case. Every time is that of a call right after another one, the minimum over rounds in which all
//! of this process take their turn. Systems of other languages run in processes of their own, on one core,
//! right after.

mod bandwidth;
mod by_hand;
mod peers;
mod plain;

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use palinode_ir::interp::{Chosen, Code, Datum, Engine, Limits, Tensor};
use palinode_ir::loops::{self, LoopTraffic};
use palinode_ir::pal::{self, Role};
use palinode_ir::{passes, transform};
use palinode_native::{When, by_rustc, machine_code};

use crate::heap;
use crate::loops::timed;
use crate::measure::distance;
use by_hand::Kept;
use plain::Inputs;

/// A gradient by hand, in memory that it keeps.
type ByHand = fn(&Inputs<'_>, &mut Kept) -> Vec<f64>;

struct Model {
    name: &'static str,
    plain: fn(&Inputs<'_>) -> f64,
    by_hand: Option<ByHand>,
    /// How far differences go, by which its gradient is tested.
    step: f64,
}

/// Of most models, and of those whose loops amplify changes as often as they have rounds.
const STEP: f64 = 1e-4;
const SHORT_STEP: f64 = 1e-7;

const MODELS: [Model; 12] = [
    Model { name: "burgers", plain: plain::burgers, by_hand: Some(by_hand::burgers), step: STEP },
    Model { name: "heat2d", plain: plain::heat2d, by_hand: Some(by_hand::heat2d), step: STEP },
    Model { name: "lorenz", plain: plain::lorenz, by_hand: Some(by_hand::lorenz), step: STEP },
    Model { name: "nchain", plain: plain::nchain, by_hand: None, step: SHORT_STEP },
    Model { name: "logistic", plain: plain::logistic, by_hand: None, step: SHORT_STEP },
    Model { name: "mlp", plain: plain::mlp, by_hand: None, step: STEP },
    Model { name: "gmm", plain: plain::gmm, by_hand: None, step: STEP },
    Model { name: "lstm", plain: plain::lstm, by_hand: None, step: STEP },
    Model { name: "gmm_loops", plain: plain::gmm_loops, by_hand: None, step: STEP },
    Model { name: "lstm_gradbench", plain: plain::lstm_gradbench, by_hand: None, step: STEP },
    Model { name: "inplace", plain: plain::inplace, by_hand: None, step: STEP },
    Model { name: "mlp784", plain: plain::mlp, by_hand: None, step: STEP },
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

const WAYS: [Way; 3] = [
    Way { name: "interpreter", says: "", engine: || Engine::INTERPRETER },
    Way { name: "Cranelift", says: "machine code", engine: || machine_code(When::Possible) },
    Way { name: "rustc", says: "machine code of rustc", engine: by_rustc },
];

/// What a contestant needed.
struct Figures {
    who: String,
    milliseconds: f64,
    /// The first call, with whatever is compiled in it.
    first: f64,
    /// At its peak, of a first call: of the heap in this process, of a whole process elsewhere.
    mib: f64,
    gradient: Vec<f64>,
    value: f64,
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
    (result, time, heap::peak().saturating_sub(before) as f64 / (1 << 20) as f64)
}

/// A model's program, its inputs, which of them are params, and its gradient.
struct Prepared {
    model: pal::Model,
    inputs: Vec<Datum<f64>>,
    params: Vec<usize>,
    gradient: palinode_ir::Program,
}

fn prepared(name: &str) -> Prepared {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models").join(name).with_extension("pal");
    let source = std::fs::read_to_string(path).expect("the model's file");
    let model = pal::compile(&source).unwrap_or_else(|found| panic!("{name}: {found:?}"));
    let (inputs, params) = inputs_of(&model);
    let gradient = transform::value_and_grad(&model.program, &params).expect("a gradient");
    Prepared { gradient: passes::simplify(&gradient), model, inputs, params }
}

/// For each model, how far machine code's value is from the plain function's, and its gradient from the
/// plain function's differences, along a direction that is like no other.
pub fn distances() -> Vec<(&'static str, f64, f64)> {
    MODELS.iter().map(|model| (model.name, distances_of(model))).map(|(name, [a, b])| (name, a, b)).collect()
}

fn distances_of(model: &Model) -> [f64; 2] {
    let Prepared { inputs, params, gradient, .. } = prepared(model.name);
    let limits = Limits { trap_nonfinite: true, ..Limits::default() };
    let code = Code::on(&machine_code(When::Possible), &gradient);
    let outputs = code.run(&inputs, &limits).expect("a gradient");
    let direction = |i: usize| (1.7 * i as f64 + 0.3).cos();
    let slope: f64 = flat(&outputs[1..]).iter().enumerate().map(|(i, g)| g * direction(i)).sum();
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
    let value = distance(&flat(&outputs[..1]), &[(model.plain)(&Inputs(&inputs))]);
    [value, distance(&[slope], &[differences])]
}

/// The lines of one model: the plain function first. And what its gradient moves.
fn measured(model: &Model, rounds: usize, python: Option<&Path>) -> (Vec<Figures>, LoopTraffic) {
    let Prepared { model: compiled, inputs, params, gradient } = prepared(model.name);
    // As the command runs them: infinities stop.
    let limits = Limits { trap_nonfinite: true, ..Limits::default() };

    let mut kept = Kept::default();
    let mut found = Vec::new();
    let mut calls: Vec<Box<dyn FnMut() + '_>> = Vec::new();
    let (value, time, mib) = first(|| (model.plain)(&Inputs(&inputs)));
    let who = "plain value".to_string();
    found.push(Figures { who, milliseconds: f64::INFINITY, first: time, mib, gradient: Vec::new(), value });
    calls.push(Box::new(|| {
        black_box((model.plain)(&Inputs(black_box(&inputs))));
    }));
    if let Some(by_hand) = model.by_hand {
        let (gradient, time, mib) = first(|| by_hand(&Inputs(&inputs), &mut kept));
        let who = "gradient by hand".to_string();
        found.push(Figures { who, milliseconds: f64::INFINITY, first: time, mib, gradient, value });
        let (inputs, kept) = (&inputs, &mut kept);
        calls.push(Box::new(move || drop(black_box(by_hand(&Inputs(black_box(inputs)), kept)))));
    }
    for Way { name, says, engine } in WAYS {
        let code = Code::on(&engine(), &gradient);
        let (outputs, time, mib) = first(|| code.run(&inputs, &limits).expect("a gradient"));
        let (value, gradient) = (flat(&outputs[..1])[0], flat(&outputs[1..]));
        // An engine that leaves the program to another one must not look like itself.
        let who = match code.prepare(&inputs, &limits) {
            Chosen::Machine { name: by, .. } if by != says => format!("{name}: {by}"),
            Chosen::Machine { .. } | Chosen::Interpreter => name.to_string(),
            Chosen::InterpreterBecause(why) => format!("interpreter: {why}"),
        };
        found.push(Figures { who, milliseconds: f64::INFINITY, first: time, mib, gradient, value });
        let (inputs, limits) = (&inputs, &limits);
        calls.push(Box::new(move || drop(black_box(code.run(black_box(inputs), limits)))));
    }
    race(rounds, &mut calls, &mut found);
    drop(calls);
    if let Some(python) = python {
        let named = compiled.arguments.iter().map(|argument| &*argument.name);
        let named: Vec<(&str, &Datum<f64>)> = named.zip(&inputs).collect();
        found.extend(peers::all(python, model.name, &named, &params));
    }
    let form = loops::lower(&gradient, &inputs, limits.trap_nonfinite).expect("a loop form");
    (found, form.traffic().1)
}

/// Rounds in which all take their turn, for so long at most. A turn is two calls, of which the second is
/// timed: the first brings its own memory back into the caches, as a system in a process of its own has it.
fn race(rounds: usize, calls: &mut [Box<dyn FnMut() + '_>], found: &mut [Figures]) {
    const MOST: Duration = Duration::from_secs(4);
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
}

/// Whether values and gradients are those of our interpreter.
fn note(figures: &Figures, ours: &Figures) -> String {
    let value = distance(&[figures.value], &[ours.value]);
    let gradient = match figures.gradient.len() {
        0 => 0.0,
        n if n == ours.gradient.len() => distance(&figures.gradient, &ours.gradient),
        _ => f64::INFINITY,
    };
    if value <= AGREEMENT && gradient <= AGREEMENT {
        return String::new();
    }
    format!("  DIFFERS: value by {value:.1e}, gradient by {gradient:.1e}")
}

/// Bytes and flops of the gradient, and how fast machine code moves them.
fn moves(LoopTraffic { traffic, .. }: &LoopTraffic, lines: &[Figures]) -> String {
    let mib = traffic.bytes() as f64 / (1 << 20) as f64;
    let machine = lines.iter().find(|line| line.who == WAYS[1].name).expect("machine code runs");
    let speed = traffic.bytes() as f64 / machine.milliseconds / 1e6;
    let intensity = traffic.intensity(1.0).unwrap_or(f64::INFINITY);
    format!(
        "the gradient moves {mib:.2} MiB, {intensity:.2} flops and functions per byte; {} moves {speed:.1} GB/s",
        machine.who
    )
}

/// The models asked for, or all, measured and printed as they come; whether all agree.
pub fn report(quick: bool, wanted: &[String]) -> bool {
    let is_wanted = |model: &&Model| wanted.is_empty() || wanted.iter().any(|name| name == model.name);
    if !MODELS.iter().any(|model| is_wanted(&model)) {
        // Names of the other benches' rows.
        println!("none of these models: {:?}", MODELS.map(|model| model.name));
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
    println!("{:12} {:20} {:>10} {:>9} {:>10} {:>9}", "model", "by", "ms", "x plain", "first ms", "peak MiB");
    let mut all_agree = true;
    for model in MODELS.iter().filter(is_wanted) {
        let rounds = if quick { 1 } else { 200 };
        let (lines, moved) = measured(model, rounds, python.as_deref().filter(|_| !quick));
        let plain = lines[0].milliseconds;
        let ours = lines.iter().find(|line| line.who == WAYS[0].name).expect("the interpreter runs");
        let mut text = String::new();
        for line in &lines {
            let note = note(line, ours);
            all_agree &= note.is_empty();
            let Figures { who, milliseconds, first, mib, .. } = line;
            let ratio = milliseconds / plain;
            let _ = writeln!(
                text,
                "{:12} {who:20} {milliseconds:10.4} {ratio:9.2} {first:10.3} {mib:9.2}{note}",
                model.name
            );
        }
        print!("{text}");
        println!("{:12} {}", "", moves(&moved, &lines));
    }
    all_agree
}
