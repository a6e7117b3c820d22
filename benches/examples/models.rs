//! Times of models by the interpreter, of one call with infinities trapped, as the command runs them:
//!
//! ```sh
//! cargo run --release -p benches --example models -- benches/models/*.pal
//! ```
//!
//! The gradient is that with respect to all params. `PALINODE_ROUNDS=5` runs each so often and no more, to
//! count instructions with.

use std::hint::black_box;
use std::time::{Duration, Instant};

use palinode_ir::interp::{Code, Datum, Limits, Tensor};
use palinode_ir::pal::{self, Role};
use palinode_ir::{Program, passes, transform};

/// The shortest time of a call in milliseconds: of so many, or of at least ten and a second.
fn best(rounds: Option<u32>, mut call: impl FnMut()) -> f64 {
    let (begin, mut best) = (Instant::now(), f64::INFINITY);
    let mut calls = 0;
    while rounds.map_or(calls < 10 || begin.elapsed() < Duration::from_secs(1), |rounds| calls < rounds) {
        let start = Instant::now();
        call();
        best = best.min(start.elapsed().as_secs_f64());
        calls += 1;
    }
    best * 1e3
}

/// The inputs that a model's defaults are, a little apart so that nothing is a special case.
fn defaults(model: &pal::Model) -> Vec<Datum<f64>> {
    let one = |argument: &pal::Argument| {
        let default = argument.default.as_ref().expect("a default");
        let apart = |(i, x): (usize, &f64)| x + 1e-3 * (i as f64).sin();
        let data = default.data().iter().enumerate().map(apart).collect();
        Datum::Real(Tensor { shape: default.shape().to_vec(), data })
    };
    model.arguments.iter().map(one).collect()
}

fn main() {
    let rounds = std::env::var("PALINODE_ROUNDS").ok().map(|rounds| rounds.parse().expect("a number"));
    let limits = Limits { trap_nonfinite: true, ..Limits::default() };
    let measured = |program: &Program, inputs: &[Datum<f64>]| {
        let code = Code::new(program);
        best(rounds, || {
            black_box(code.run(inputs, &limits).expect("it runs"));
        })
    };
    println!("milliseconds          value  gradient");
    for path in std::env::args().skip(1) {
        let name = std::path::Path::new(&path).file_stem().expect("a file").to_string_lossy().into_owned();
        let model = pal::compile(&std::fs::read_to_string(&path).expect("a model")).expect("a model");
        let inputs = defaults(&model);
        let params: Vec<usize> =
            (0..inputs.len()).filter(|&at| model.arguments[at].role == Role::Param).collect();
        let value = measured(&passes::simplify(&passes::inline(&model.program)), &inputs);
        // A model of several numbers has none.
        let gradient = transform::value_and_grad(&model.program, &params).ok();
        let gradient = gradient
            .map_or("-".into(), |gradient| format!("{:.3}", measured(&passes::simplify(&gradient), &inputs)));
        println!("{name:16} {value:10.3}{gradient:>10}");
    }
}
