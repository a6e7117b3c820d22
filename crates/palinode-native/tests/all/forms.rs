//! Loop forms as texts: machine code does what they say, statement by statement, and what a pass makes of
//! them gives the same bits. Damaged ones, too: what passes the verifier is safe to run.

use std::path::Path;

use crate::damage::damaged;
use crate::direct::{self, Ended};
use crate::programs::from_environment;
use crate::random::Random;
use crate::random::programs::{self, Kind as Family};
use crate::support::bits;
use palinode_ir::interp::{Datum, Limits, Tensor};
use palinode_ir::loops::{self, Kind, LoopForm, Operand, PASSES, Port, Role, parse, verify};
use palinode_ir::{passes, transform};
use palinode_native::Native;

const STEPS: u64 = 10_000;

/// More elements than this are not tried.
const LARGEST: u64 = 1 << 16;

/// Inputs of a form; odd ones are infinite, tiny, zeros of both signs.
fn inputs(form: &LoopForm, random: &mut Random, odd: bool) -> Vec<Datum<f64>> {
    let special = [0.0, -0.0, f64::INFINITY, f64::NAN, 1e308, -1e308, 5e-324, 1.0];
    let real = |random: &mut Random| match odd && random.chance(20) {
        true => *random.pick(&special),
        false => random.signed() * 2.0,
    };
    let one = |random: &mut Random, kind: Kind, shape: Vec<usize>| {
        let count = shape.iter().product();
        match kind {
            Kind::Real => Datum::Real(Tensor { shape, data: (0..count).map(|_| real(random)).collect() }),
            Kind::Int => {
                Datum::Int(Tensor { shape, data: (0..count).map(|_| random.below(6) as i64).collect() })
            }
            Kind::Bool => {
                Datum::Bool(Tensor { shape, data: (0..count).map(|_| random.chance(50)).collect() })
            }
        }
    };
    let port = |port: &Port| match port {
        Port::Array(place) => one(random, form.buffers[place.buf.index()].kind, place.shape.clone()),
        Port::Scalar(Operand::Reg(reg)) => one(random, form.registers[reg.index()], Vec::new()),
        Port::Scalar(Operand::Int(n)) => Datum::int(*n),
        Port::Scalar(operand) => unreachable!("{operand} is given by nobody"),
    };
    form.inputs.iter().map(port).collect()
}

/// What a run gives: the bits of every result; nothing if it stops.
type Found = Option<Vec<(Vec<usize>, Vec<u64>)>>;

fn of_outputs(outputs: &[Datum<f64>]) -> Vec<(Vec<usize>, Vec<u64>)> {
    outputs.iter().map(|output| (output.shape().to_vec(), bits(output))).collect()
}

/// A form as machine code, for several runs.
struct Compiled<'a> {
    form: &'a LoopForm,
    native: Native,
}

impl<'a> Compiled<'a> {
    fn new(form: &'a LoopForm) -> Self {
        let native = Native::new(form.clone()).unwrap_or_else(|error| panic!("{}\n{form}", error.0));
        Self { form, native }
    }

    fn run(&self, inputs: &[Datum<f64>]) -> Found {
        let limits = Limits { steps: STEPS, trap_nonfinite: self.form.traps, ..Limits::default() };
        self.native.run(inputs, &limits).ok().map(|(outputs, _)| of_outputs(&outputs))
    }
}

fn directly(form: &LoopForm, inputs: &[Datum<f64>]) -> Result<Found, Ended> {
    match direct::run(form, inputs, STEPS as i64, 1_000_000) {
        Ok((outputs, _)) => Ok(Some(of_outputs(&outputs))),
        Err(Ended::Stopped) => Ok(None),
        Err(other) => Err(other),
    }
}

fn read(text: &str, what: &str) -> LoopForm {
    parse(text).unwrap_or_else(|error| panic!("{what}: {error}"))
}

/// The forms of the text tests, before their passes, and the passes.
fn cases() -> Vec<(String, LoopForm, Vec<String>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../palinode-ir/tests/loops");
    let mut found = Vec::new();
    for (pass, _) in PASSES {
        let text = std::fs::read_to_string(folder.join(format!("{pass}.txt"))).unwrap();
        for case in text.split("=== ").skip(1) {
            let (title, forms) = case.split_once('\n').unwrap();
            let (before, _) = forms.split_once("---\n").unwrap();
            let names = title.rsplit_once(':').unwrap().1.split_whitespace().map(str::to_string).collect();
            found.push((title.to_string(), read(before, title), names));
        }
    }
    found
}

#[test]
fn passes_change_no_bit() {
    let random = &mut Random::new(11);
    for (title, before, names) in cases() {
        let mut after = before.clone();
        for (name, pass) in PASSES {
            if names.iter().any(|one| one == name) {
                pass(&mut after);
            }
        }
        let mut improved = before.clone();
        loops::improve(&mut improved);
        let compiled = [("before", &before), ("after", &after), ("all", &improved)]
            .map(|(what, form)| (what, Compiled::new(form)));
        for round in 0..20 {
            let inputs = inputs(&before, random, round % 2 == 1);
            let expected = directly(&before, &inputs).unwrap_or_else(|ended| panic!("{title}: {ended:?}"));
            for (what, by_machine) in &compiled {
                let form = by_machine.form;
                assert_eq!(by_machine.run(&inputs), expected, "{title}: {what}\n{form}{inputs:?}");
            }
        }
    }
}

/// Forms of random programs and of their gradients.
fn of_random_programs(count: u64) -> Vec<LoopForm> {
    let mut found = Vec::new();
    for seed in 0..count {
        for kind in [Family::Any, Family::Strong, Family::Walked] {
            let program = programs::program(seed, 3 + (seed % 12) as usize, kind);
            let inputs = programs::inputs(&mut Random::new(seed));
            let wrt: Vec<usize> =
                (0..inputs.len()).filter(|&at| matches!(inputs[at], Datum::Real(_))).collect();
            let mut all = vec![passes::simplify(&passes::inline(&program))];
            all.extend(transform::value_and_grad(&program, &wrt).ok().map(|grad| passes::simplify(&grad)));
            for program in all {
                found.extend(loops::lower_plainly(&program, &inputs, seed % 2 == 0));
                found.extend(loops::lower(&program, &inputs, seed % 2 == 1));
            }
        }
    }
    found
}

/// `PALINODE_FORMS=1000000` is the long run.
#[test]
fn damaged_forms_are_refused_or_do_what_they_say() {
    let count = from_environment("PALINODE_FORMS", 2_000);
    let mut texts: Vec<String> = cases().iter().map(|(_, form, _)| form.to_string()).collect();
    texts.extend(of_random_programs(6).iter().map(LoopForm::to_string));
    let random = &mut Random::new(from_environment("PALINODE_SEED", 5));
    let (mut refused, mut stopped, mut ran, mut long) = (0, 0, 0, 0);
    for _ in 0..count {
        let text = damaged(&texts[random.below(texts.len())], random);
        let Ok(form) = parse(&text) else { continue };
        let is_large = |length: u64| length > LARGEST;
        if form.buffers.iter().any(|buffer| buffer.role == Role::Workspace && is_large(buffer.length)) {
            // Machine code may be made, but there is no need to run it.
            drop(Native::new(form));
            continue;
        }
        if verify(&form).is_err() {
            assert!(Native::new(form).is_err(), "{text}");
            refused += 1;
            continue;
        }
        if form.buffers.iter().any(|buffer| is_large(buffer.length)) {
            continue;
        }
        let given = form.inputs.iter().all(|port| match port {
            Port::Scalar(Operand::Reg(reg)) => form.registers[reg.index()] != Kind::Int,
            Port::Scalar(operand) => matches!(operand, Operand::Int(_)),
            Port::Array(_) => true,
        });
        if !given {
            continue;
        }
        let inputs = inputs(&form, random, ran % 3 == 0);
        let expected = match directly(&form, &inputs) {
            Ok(expected) => expected,
            Err(Ended::Long) => {
                long += 1;
                continue;
            }
            Err(Ended::Refused(error)) => panic!("{error}"),
            Err(Ended::Stopped) => unreachable!("that is a result"),
        };
        match expected {
            Some(_) => ran += 1,
            None => stopped += 1,
        }
        assert_eq!(Compiled::new(&form).run(&inputs), expected, "{form}{inputs:?}");
    }
    println!("{refused} refused, {stopped} stopped, {ran} ran, {long} took too long");
    assert!(refused > count / 20 && ran > count / 20, "{refused} refused, {ran} ran");
}
