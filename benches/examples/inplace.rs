//! 100 000 updates of single elements of arrays of 1000 to 100 000: what they cost does not depend on the
//! length of the array.
//!
//! `cargo run --release -p benches --example inplace`. Counts (elements copied, brought into one
//! buffer, zero-filled, added as whole arrays, instructions) must be the same for every length, forwards and
//! backwards; what is done once per run, whatever the number of updates, is shown apart. Times are ratios to
//! those of the shortest array: at most 1.3 with places confined to 1000 elements, at most 3 spread over all
//! of it (caches).

use std::time::Instant;

use palinode_core::{Key, grad};
use palinode_ir::interp::{Code, Datum, Limits, Stats};
use palinode_ir::{Program, pal, passes, transform};

const SOURCE: &str = include_str!("../../examples/inplace.pal");
const UPDATES: usize = 100_000;
const LENGTHS: [usize; 3] = [1_000, 10_000, 100_000];

/// An array of `length` and updates of places among its first `reach`.
fn inputs(length: usize, reach: usize, updates: usize) -> Vec<Datum<f64>> {
    let key = Key::from_seed(1);
    let start = (0..length as u64).map(|at| 0.5 + key.uniform(at)).collect();
    let places = |which: u64| {
        let place = |at: u64| key.split(which).below(reach as u64, at) as i64;
        Datum::ints((0..updates as u64).map(place).collect())
    };
    vec![Datum::vector(start), places(1), places(2)]
}

/// What a run does besides computing single elements.
#[derive(Debug, PartialEq)]
struct Counts {
    copied: u64,
    flattened: u64,
    zeroed: u64,
    added: u64,
    filled: u64,
    instructions: u64,
}

fn counts(stats: &Stats) -> Counts {
    Counts {
        copied: stats.elements_copied,
        flattened: stats.elements_flattened,
        zeroed: stats.elements_zeroed,
        added: stats.elements_added,
        filled: stats.elements_filled,
        instructions: stats.instructions,
    }
}

impl Counts {
    fn less(&self, other: &Counts) -> Counts {
        Counts {
            copied: self.copied - other.copied,
            flattened: self.flattened - other.flattened,
            zeroed: self.zeroed - other.zeroed,
            added: self.added - other.added,
            filled: self.filled - other.filled,
            instructions: self.instructions - other.instructions,
        }
    }
}

fn stats(program: &Program, inputs: &[Datum<f64>]) -> Stats {
    Code::new(program).run_recorded(inputs, &Limits::default()).expect("it runs").1
}

/// The best of some runs each, in turn, in nanoseconds per update.
fn times(program: &Program, all: &[Vec<Datum<f64>>]) -> Vec<f64> {
    let code = Code::new(program);
    let mut best = vec![f64::INFINITY; all.len()];
    for _ in 0..15 {
        for (inputs, best) in all.iter().zip(&mut best) {
            let start = Instant::now();
            std::hint::black_box(code.run(inputs, &Limits::default()).expect("it runs"));
            *best = best.min(start.elapsed().as_secs_f64() * 1e9 / UPDATES as f64);
        }
    }
    best
}

/// The same in Rust, on the tape.
fn tape_gradient(inputs: &[Datum<f64>]) -> Vec<f64> {
    let (i, j) = (inputs[1].as_ints().expect("integers"), inputs[2].as_ints().expect("integers"));
    let f = |start: &[palinode_core::Var<f64>]| {
        let mut a = start.to_vec();
        for (&i, &j) in i.iter().zip(j) {
            let (i, j) = (i as usize, j as usize);
            a[i] = a[i].sin() * a[j].cos() + a[i] / 2.0;
        }
        a.into_iter().sum::<palinode_core::Var<f64>>()
    };
    grad(f, inputs[0].as_vector().expect("reals")).expect("it has a gradient")
}

fn main() {
    let model = pal::compile(SOURCE).expect("it compiles");
    let value = passes::simplify(&model.program);
    let gradient = transform::value_and_grad(&model.program, &[0]).expect("it has a gradient");
    let gradient = passes::simplify(&gradient);
    for length in LENGTHS {
        let inputs = inputs(length, length, UPDATES);
        let found = Code::new(&gradient).run(&inputs, &Limits::default()).expect("it runs");
        let found = found[1].as_vector().expect("a gradient").to_vec();
        let largest = |x: &[f64]| x.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        let expected = tape_gradient(&inputs);
        let off: Vec<f64> = found.iter().zip(&expected).map(|(a, b)| a - b).collect();
        assert!(largest(&off) <= 1e-12 * largest(&expected), "the tape has another gradient");
    }
    println!("the gradients are those of the dynamic tape");
    let mut slow = false;
    for (name, program) in [("value", &value), ("value and gradient", &gradient)] {
        let mut first = None;
        for length in LENGTHS {
            let once = counts(&stats(program, &inputs(length, length, 0)));
            let all = counts(&stats(program, &inputs(length, length, UPDATES)));
            let by_updates = all.less(&once);
            println!("{name}, {length} elements: once {once:?}; by {UPDATES} updates {by_updates:?}");
            assert_eq!(by_updates.copied, 0, "an array is copied");
            assert_eq!(*first.get_or_insert(all.less(&once)), by_updates, "the length of the array matters");
        }
        for (places, most) in [("confined to 1000 places", 1.3), ("spread over the array", 3.0)] {
            let spread = most > 2.0;
            let inputs: Vec<_> =
                LENGTHS.map(|length| inputs(length, if spread { length } else { 1000 }, UPDATES)).into();
            let found = times(program, &inputs);
            let ratio = found[2] / found[0];
            slow |= ratio > most;
            let met = if ratio <= most { "met" } else { "missed" };
            println!(
                "{name}, {places}: {:.1}, {:.1}, {:.1} ns per update; ratio {ratio:.2}, at most {most}: {met}",
                found[0], found[1], found[2]
            );
        }
    }
    // Time depends on what else the machine does, so it is only reported.
    println!("{}", if slow { "some ratio was missed" } else { "all ratios met" });
}
