//! How long a round of a loop takes, printed. Run it with
//! `cargo test -p palinode-ir-tests --release -- --ignored --nocapture speed`.

use std::time::Instant;

use crate::pal::compile;
use palinode_core::{Dual, Var, grad};
use palinode_ir::interp::{Code, Datum, Limits};
use palinode_ir::{Program, transform};

const ROUNDS: i64 = 1_000_000;

/// Prints the best of five, in nanoseconds per round.
fn per_round(what: &str, mut run: impl FnMut()) {
    let time = |_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    };
    let best = (0..5).map(time).fold(f64::INFINITY, f64::min);
    println!("{what:<58} {:>8.1} ns per round", best * 1e9 / ROUNDS as f64);
}

fn timed(what: &str, program: &Program, inputs: &[Datum<f64>]) {
    let (code, inputs) = (Code::new(program), [inputs, &[Datum::int(ROUNDS)]].concat());
    per_round(what, || drop(code.run(&inputs, &Limits::default()).unwrap()));
}

#[test]
#[ignore = "prints times; run it in release"]
fn speed() {
    // A cycle of two: the derivatives stay finite.
    let logistic =
        compile("param r\nparam x0\ninput n: int\nvar x = x0\nfor k in 0..n { x = r * x * (1 - x) }\nloss x")
            .program;
    let (r, x) = (3.2, 0.3);
    timed("logistic map, f64", &logistic, &[r, x].map(Datum::real));
    let code = Code::new(&logistic);
    let dual = [Datum::real(Dual::new(r, 1.0)), Datum::real(Dual::new(x, 0.0)), Datum::int(ROUNDS)];
    per_round("logistic map, Dual<f64>", || drop(code.run(&dual, &Limits::default()).unwrap()));
    let on_tape = |v: &[Var<f64>]| {
        let inputs = [Datum::real(v[0]), Datum::real(v[1]), Datum::int(ROUNDS)];
        code.run(&inputs, &Limits::default()).unwrap()[0].as_real().unwrap()
    };
    per_round("logistic map, Var<f64>, with the reverse sweep", || drop(grad(on_tape, &[r, x]).unwrap()));
    let gradient = transform::value_and_grad(&logistic, &[0, 1]).unwrap();
    timed("logistic map, value and gradient, f64", &gradient, &[r, x].map(Datum::real));
    let vector = |length: usize, x: f64| Datum::vector(vec![x; length]);
    let arrays = [
        (
            "array: read, compare, branch, update, f64",
            "param a: [m]\ninput n: int\nvar b = a\nfor k in 0..n {\n let i = k % m\n if b[i] > 2 { b[i] = 2 } else { b[i] += 1 }\n}\noutput b",
            vec![vector(1000, 0.0)],
        ),
        (
            "two elementwise operations over 4 elements, f64",
            "param a: [4]\nparam c: [4]\ninput n: int\nvar b = a\nfor k in 0..n { b = (b + c) * c }\noutput b",
            vec![vector(4, 0.0), vector(4, 0.5)],
        ),
        (
            "read and write a row of 4 elements, f64",
            "param a: [m, 4]\ninput n: int\nvar b = a\nfor k in 0..n {\n let row = b[k % m, ..]\n b[k % m, ..] = row\n}\noutput b",
            vec![Datum::matrix(100, 4, vec![0.0; 400])],
        ),
        (
            "a call of a small function, f64",
            "param x\ninput n: int\nfn half(x) { return 0.5 * x }\nvar y = x\nfor k in 0..n { y = half(y) }\noutput y",
            vec![Datum::real(0.5)],
        ),
    ];
    for (what, source, inputs) in arrays {
        timed(what, &compile(source).program, &inputs);
    }
}
