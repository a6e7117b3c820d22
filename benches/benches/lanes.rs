//! `cargo bench -p benches --bench lanes`: gradients of eight samples in the lanes of one number, against one
//! by one.
//!
//! A sample is a point at which a problem's gradient is taken: eight points near the problem's own. Both ways
//! take their turn in every round and keep their memory (but for points in lanes, and answers), and the
//! fastest round counts. The largest entry that is picked by comparison on one number is picked by `max` on
//! lanes, so that samples are not split by it; answers agree up to that. A missed bar makes the run fail;
//! with `-- --quick` sizes are small and it is only said.

use benches::bars::Held;
use benches::measure::{distance, fastest};
use benches::problem::{Logistic, Mlp, Problem, Size};
use palinode::drivers::in_lanes;
use palinode::num::Lanes;
use palinode::prelude::{Tape, Var};
use std::cell::RefCell;
use std::hint::black_box;
use std::process::ExitCode;

/// At most so much of the time of one by one.
const BAR: f64 = 0.5;
const LANES: usize = 8;

fn points(at: &[f64]) -> Vec<Vec<f64>> {
    let factor = |sample: usize, i: usize| 1.0 - 1e-3 * ((sample * 7 + i * 3) % 11) as f64;
    (0..LANES).map(|sample| at.iter().enumerate().map(|(i, x)| x * factor(sample, i)).collect()).collect()
}

fn race<P: Problem>(size: Size, rounds: usize, held: &mut Held) {
    let problem = P::new(size);
    let points = points(&problem.inputs());
    let single = RefCell::new(Tape::<f64>::new());
    let one_by_one = || -> Vec<Vec<f64>> {
        let mut tape = single.borrow_mut();
        let gradient = |x: &Vec<f64>| tape.value_and_grad(|v| problem.eval(v), x).expect("it is finite").1;
        points.iter().map(gradient).collect()
    };
    let wide = RefCell::new(Tape::<Lanes<LANES>>::new());
    let gradient = RefCell::new(vec![Lanes::splat(0.0); points[0].len()]);
    let together = || -> Vec<Vec<f64>> {
        let answers = in_lanes(LANES, |samples| {
            let mut tape = wide.borrow_mut();
            let eval = |v: &[Var<Lanes<LANES>>]| problem.eval(v);
            let space = &mut gradient.borrow_mut();
            tape.gradient_into(eval, &samples.points(&points), space).map(|_| &gradient)
        });
        answers.into_iter().map(|answer| answer.expect("it is finite")).collect()
    };
    let apart = one_by_one().iter().zip(together()).map(|(a, b)| distance(a, &b)).fold(0.0, f64::max);
    held.right(P::NAME, apart < 1e-12);
    type Gradients<'a> = &'a dyn Fn() -> Vec<Vec<f64>>;
    let both: [(&str, Gradients<'_>); 2] = [("one by one", &one_by_one), ("Lanes<8>", &together)];
    let best = fastest(&both, rounds, 1, |(_, run)| {
        black_box(run());
    });
    let ns = best.iter().map(|best| best.as_secs_f64() * 1e9 / (LANES * problem.iterations()) as f64);
    let ns: Vec<f64> = ns.collect();
    println!("\n{} ({}), ns per {} and sample", P::NAME, problem.describe(), P::UNIT);
    for ((name, _), ns) in both.iter().zip(&ns) {
        println!("    {name:<12}{ns:>9.2}");
    }
    held.time(&format!("{} in lanes over one by one", P::NAME), BAR, "x", ns[1] / ns[0]);
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let quick = args.iter().any(|arg| arg == "--quick");
    if args.iter().any(|arg| arg != "--quick" && arg != "lanes") {
        return ExitCode::SUCCESS;
    }
    let (size, rounds) = if quick { (Size::Quick, 5) } else { (Size::Full, 30) };
    let mut held = Held::new(quick);
    race::<Logistic>(size, rounds, &mut held);
    race::<Mlp>(size, rounds, &mut held);
    held.exit()
}
