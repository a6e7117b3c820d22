//! Forward gradients against reverse mode: loss over time and over memory, on four problems.
//!
//! ```text
//! cargo run --release -p benches --example forward_gradients                    prints, and writes target/forward_gradients.svg
//! cargo run --release -p benches --example forward_gradients -- 0.2 plot.svg    0.2 seconds for each run, another file
//! ```
//!
//! Both methods train from the same start by plain gradient descent for the same time. Forward gradients take
//! a rate that is smaller by 1 + their relative error, which is what the noise allows. The plot has a row for
//! each problem: loss over seconds, and over the most heap bytes so far, parameters included.

mod plot;
mod problems;

use palinode_core::{Key, Tape};
use palinode_time::{Directions, ForwardDescent, Perturbed};
use peak_alloc::PeakAlloc;
use plot::{Curve, Point, Row};
use problems::{Beale, LogisticRegression, Mlp, Problem, Rosenbrock};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Directions of a forward gradient.
const K: usize = 8;
/// Points of a curve, spread evenly over the logarithm of time.
const POINTS: i32 = 120;

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let seconds = args.next().and_then(|s| s.parse().ok()).unwrap_or(2.0);
    let path = args.next().unwrap_or_else(|| "target/forward_gradients.svg".to_owned());
    let time = Duration::from_secs_f64(seconds);
    println!("{seconds} s each; loss at the end, steps, and the most heap bytes beyond the parameters\n");
    println!("{:<22}{:>6}  {:<22}{:>12}{:>10}{:>12}", "", "n", "", "loss", "steps", "bytes");
    let rows = [
        compare(&Beale, time),
        compare(&Rosenbrock, time),
        compare(&LogisticRegression::new(), time),
        compare(&Mlp::new(), time),
    ];
    std::fs::write(&path, plot::draw(&rows))?;
    println!("\nwrote {path}");
    Ok(())
}

/// What a training run left behind.
struct Run {
    curve: Curve,
    steps: u64,
    bytes: usize,
}

fn compare<P: Problem>(problem: &P, time: Duration) -> Row {
    let n = problem.start().len();
    let runs = [reverse(problem, time), forward(problem, time)];
    for run in &runs {
        let loss = run.curve.points[run.curve.points.len() - 1].loss;
        println!(
            "{:<22}{n:>6}  {:<22}{loss:>12.3e}{:>10}{:>12}",
            P::NAME,
            run.curve.name,
            run.steps,
            run.bytes
        );
    }
    Row { title: format!("{}, {n} parameters", P::NAME), curves: runs.map(|run| run.curve).into() }
}

fn reverse<P: Problem>(problem: &P, time: Duration) -> Run {
    let mut p = problem.start();
    watched("reverse mode", p.len(), time, |clock| {
        let (mut tape, mut gradient) = (Tape::new(), vec![0.0; p.len()]);
        loop {
            let loss = tape.gradient_into(|p| problem.loss(&|i| p[i]), &p, &mut gradient);
            let go_on = clock.tick(loss.expect("the losses are smooth"));
            p.iter_mut().zip(&gradient).for_each(|(p, g)| *p -= P::RATE * g);
            if !go_on {
                return;
            }
        }
    })
}

fn forward<P: Problem>(problem: &P, time: Duration) -> Run {
    let mut p = problem.start();
    // Two parameters do not need eight directions.
    match p.len() {
        0..8 => descend::<P, 1>(problem, &mut p, Directions::Rademacher, time),
        8.. => descend::<P, K>(problem, &mut p, Directions::Rademacher, time),
    }
}

fn descend<P: Problem, const K: usize>(
    problem: &P,
    p: &mut [f64],
    directions: Directions<'_>,
    time: Duration,
) -> Run {
    let error = directions.relative_error(p.len(), K).expect("a family with a law");
    let descent = ForwardDescent::new(Key::from_seed(1))
        .directions(directions)
        .rate(P::RATE / (1.0 + error))
        .steps(u64::MAX);
    let name = if K == 1 { "forward, 1 direction" } else { "forward, 8 directions" };
    watched(name, p.len(), time, |clock| {
        let loss = |p: &Perturbed<'_, '_, K>, _: u64| problem.loss(&|i| p.get(i));
        descent.watch::<K>(p, loss, |progress, _| clock.tick(progress.value)).expect("the losses are smooth");
    })
}

/// Notes loss and memory at moments that are even on a logarithmic axis.
struct Clock {
    start: Instant,
    end: Duration,
    next: Duration,
    steps: u64,
    points: Vec<Point>,
    /// The bytes of everything that is not the run's, and of its parameters.
    others: usize,
    parameters: usize,
}

impl Clock {
    /// Whether there is time left.
    fn tick(&mut self, loss: f64) -> bool {
        self.steps += 1;
        let now = self.start.elapsed();
        if now >= self.next || now >= self.end {
            let bytes = (self.parameters + ALLOCATOR.peak_usage() - self.others) as f64;
            self.points.push(Point { seconds: now.as_secs_f64(), bytes, loss });
            let factor = 1e5f64.powf(1.0 / f64::from(POINTS));
            self.next = Duration::max(self.next, now).mul_f64(factor);
        }
        now < self.end
    }
}

/// Runs, with its curve, steps and bytes.
fn watched(name: &'static str, parameters: usize, time: Duration, run: impl FnOnce(&mut Clock)) -> Run {
    let points = Vec::with_capacity(2 * POINTS as usize);
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    let mut clock = Clock {
        start: Instant::now(),
        end: time,
        next: time.div_f64(1e5),
        steps: 0,
        points,
        others: before,
        parameters: parameters * size_of::<f64>(),
    };
    clock.start = Instant::now();
    run(&mut clock);
    let bytes = ALLOCATOR.peak_usage() - before;
    Run { curve: Curve { name, points: clock.points }, steps: clock.steps, bytes }
}
