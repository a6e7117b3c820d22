//! The gradient of a loop of a million steps: time and memory per iteration.

use std::time::Instant;

use palinode_ir::interp::{Code, Datum, Limits};
use palinode_ir::{text, transform};

const LOGISTIC: &str = "entry fn main(x.0: f64, r.1: f64, n.2: int) -> (f64) outputs (y) {
  v8 = const 1.0
  x.3 = for k.4 in n.2 (x.5: f64 = x.0) {
    v6 = mul r.1, x.5
    v7 = sub v8, x.5
    v9 = mul v6, v7
    yield v9
  }
  yield x.3
}";

fn main() {
    let program = text::parse(LOGISTIC).expect("it parses");
    let gradient = transform::value_and_grad(&program, &[0, 1]).expect("it has a gradient");
    println!("{}", text::print(&gradient));
    let n = 1_000_000;
    let inputs = [Datum::real(0.3), Datum::real(3.7), Datum::int(n)];
    for (what, program) in [("value", &program), ("value and gradient", &gradient)] {
        let code = Code::new(program);
        let mut best = f64::INFINITY;
        for _ in 0..10 {
            let start = Instant::now();
            let result = code.run(&inputs, &Limits::default()).expect("it runs");
            best = best.min(start.elapsed().as_secs_f64());
            std::hint::black_box(result);
        }
        println!("{what}: {:.1} ns per iteration", best * 1e9 / n as f64);
    }
}
