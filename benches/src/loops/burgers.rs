//! Burgers' equation: 1000 points, 1e4 steps, 16 MiB.

use super::{Line, Size, race};
use crate::heap;
use palinode::prelude::*;
use palinode::time::{Number, Rollout, Step, StepRule};
use std::f64::consts::PI;
use std::hint::black_box;

const C: f64 = 0.1;
const V: f64 = 0.2;
const BUDGET: &str = "16MiB";

pub(super) struct Burgers;

/// `u_i - c u_i (u_{i+1} - u_{i-1}) + v (u_{i+1} - 2 u_i + u_{i-1})`.
#[inline(always)]
fn stencil<S: Real>(left: S, here: S, right: S) -> S {
    here - here * (right - left) * C + (right - here * 2.0 + left) * V
}

impl Step for Burgers {
    type State<S: Number> = Vec<S>;
    type Params<S: Number> = ();
    type Input<S: Number> = ();
    #[inline]
    fn step<S: Real>(&self, u: &mut Vec<S>, _: &(), _: &()) {
        let last = u.len() - 1;
        let (first, mut left) = (u[0], u[last]);
        for i in 0..last {
            let here = u[i];
            u[i] = stencil(left, here, u[i + 1]);
            left = here;
        }
        u[last] = stencil(left, u[last], first);
    }
}

/// A gather: each cotangent is made of its neighbours', so that the loop is as regular as the step's.
impl StepRule for Burgers {
    #[inline]
    fn reverse<S: Real>(&self, u: &Vec<S>, _: &(), _: &(), of_u: &mut Vec<S>, _: &mut (), _: &mut ()) {
        let last = u.len() - 1;
        let gather =
            |(u_left, c_left): (S, S), (left, right): (S, S), c_here: S, (u_right, c_right): (S, S)| {
                c_here * ((right - left) * -C + (1.0 - 2.0 * V))
                    + c_left * (u_left * -C + V)
                    + c_right * (u_right * C + V)
            };
        let (first, mut left) = (of_u[0], of_u[last]);
        let here = of_u[0];
        of_u[0] = gather((u[last], left), (u[last], u[1]), here, (u[1], of_u[1]));
        left = here;
        let (before, of_u_slice) = (&u[..=last], &mut of_u[..=last]);
        for i in 1..last {
            let here = of_u_slice[i];
            of_u_slice[i] = gather(
                (before[i - 1], left),
                (before[i - 1], before[i + 1]),
                here,
                (before[i + 1], of_u_slice[i + 1]),
            );
            left = here;
        }
        of_u[last] = gather((u[last - 1], left), (u[last - 1], u[0]), of_u[last], (u[0], first));
    }
}

fn start(n: usize) -> Vec<f64> {
    let at = |i: usize| i as f64 / n as f64;
    (0..n).map(|i| 1.0 + (2.0 * PI * at(i)).sin() / 2.0 + (6.0 * PI * at(i)).cos() / 4.0).collect()
}

/// The plain loop as one would write it for speed: two buffers that take turns.
#[inline(never)]
fn plain(u: &mut Vec<f64>, next: &mut Vec<f64>, steps: u64) -> f64 {
    let n = u.len();
    for _ in 0..steps {
        next[0] = stencil(u[n - 1], u[0], u[1]);
        for (new, w) in next[1..n - 1].iter_mut().zip(u.windows(3)) {
            *new = stencil(w[0], w[1], w[2]);
        }
        next[n - 1] = stencil(u[n - 2], u[n - 1], u[0]);
        std::mem::swap(u, next);
    }
    u.iter().map(|u| u * u).sum()
}

pub(super) fn lines(size: Size) -> Vec<Line> {
    let (n, steps, rounds) = if size == Size::Full { (1000, 10_000_u64, 4) } else { (1000, 300, 1) };
    let initial = start(n);
    let loss = |u: &Vec<Var<f64>>| u.iter().map(|&u| u * u).sum::<Var<f64>>();
    let by_tape = Rollout::new(Burgers).steps(steps).budget(BUDGET);
    let by_rule = Rollout::new(Burgers).steps(steps).budget(BUDGET).by_rule();
    by_rule.check_rule(&initial, &(), 3).expect("a right rule");

    let measured = |run: &mut dyn FnMut() -> palinode::time::Gradient<Burgers>| {
        let before = heap::live();
        heap::reset_peak();
        let gradient = run();
        (gradient, (heap::peak() - before) as f64 / (1 << 20) as f64)
    };
    let (of_tape, tape_peak) =
        measured(&mut || by_tape.value_and_grad(&initial, &(), loss).expect("a gradient"));
    let (of_rule, rule_peak) =
        measured(&mut || by_rule.value_and_grad(&initial, &(), loss).expect("a gradient"));
    let scale = of_tape.initial.iter().fold(0.0_f64, |largest, c| largest.max(c.abs()));
    for (tape, rule) in of_tape.initial.iter().zip(&of_rule.initial) {
        assert!((tape - rule).abs() <= 1e-9 * scale, "{tape} and {rule}");
    }

    let (mut u, mut next) = (initial.clone(), initial.clone());
    let [plain_ns, tape, rule] = race(
        rounds,
        &mut [
            Box::new(|| {
                u.copy_from_slice(&initial);
                black_box(plain(&mut u, &mut next, steps));
            }),
            Box::new(|| {
                black_box(by_tape.value_and_grad(&initial, &(), loss).expect("a gradient"));
            }),
            Box::new(|| {
                black_box(by_rule.value_and_grad(&initial, &(), loss).expect("a gradient"));
            }),
        ],
    );
    let per_step = 1e-3 / steps as f64;
    vec![
        Line::new(format!("plain f64, {n} points, {steps} steps"), plain_ns * per_step, None, "us/step"),
        Line::new(
            format!("by the step's own rule, {}", of_rule.report.sweeps()),
            rule * per_step,
            None,
            "us/step",
        ),
        Line::new(
            format!("through the scalar tape, {}", of_tape.report.sweeps()),
            tape * per_step,
            None,
            "us/step",
        ),
        Line::new("rule / plain", rule / plain_ns, (size == Size::Full).then_some(6.0), "x"),
        Line::new("scalar tape / plain", tape / plain_ns, (size == Size::Full).then_some(60.0), "x"),
        Line::new("peak heap by the rule", rule_peak, Some(16.0), "MiB"),
        Line::new("peak heap through the tape", tape_peak, Some(16.0), "MiB"),
    ]
}
