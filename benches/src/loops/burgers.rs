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
        let (first, at_first) = (u[0], stencil(u[last], u[0], u[1]));
        let at_last = stencil(u[last - 1], u[last], first);
        blockwise(u, |_, new, u| {
            new.iter_mut().zip(u.windows(3)).for_each(|(new, u)| *new = stencil(u[0], u[1], u[2]));
        });
        (u[0], u[last]) = (at_first, at_last);
    }
}

/// A gather: each cotangent is made of its neighbours', so that the loop is as regular as the step's.
impl StepRule for Burgers {
    #[inline]
    fn reverse<S: Real>(&self, u: &Vec<S>, _: &(), _: &(), of_u: &mut Vec<S>, _: &mut (), _: &mut ()) {
        let last = u.len() - 1;
        let gather = |[u_left, u_right]: [S; 2], [left, here, right]: [S; 3]| {
            here * ((u_right - u_left) * -C + (1.0 - 2.0 * V)) + left * (u_left * -C + V) + right * (u_right * C + V)
        };
        let at_first = gather([u[last], u[1]], [of_u[last], of_u[0], of_u[1]]);
        let at_last = gather([u[last - 1], u[0]], [of_u[last - 1], of_u[last], of_u[0]]);
        blockwise(of_u, |start, new, c| {
            let around = u[start - 1..].windows(3);
            new.iter_mut().zip(c.windows(3)).zip(around).for_each(|((new, c), u)| {
                *new = gather([u[0], u[2]], [c[0], c[1], c[2]]);
            });
        });
        (of_u[0], of_u[last]) = (at_first, at_last);
    }
}

/// Replaces every number but the first and the last by what `fill` makes of the old ones, block by block: the new numbers wait in a buffer until
/// the old ones are not needed any more, so that the inner loop is a plain one. `fill` gets the position of the first new number, room
/// for the new ones, and the old ones from one before to one after.
#[inline(always)]
fn blockwise<S: Real>(u: &mut [S], fill: impl Fn(usize, &mut [S], &[S])) {
    const BLOCK: usize = 256;
    let n = u.len();
    let mut buffer = [S::zero(); BLOCK];
    let mut left = u[0];
    for start in (1..n - 1).step_by(BLOCK) {
        let end = (start + BLOCK).min(n - 1);
        // The number to the left has been replaced already: it is put back for a moment.
        let replaced = core::mem::replace(&mut u[start - 1], left);
        let new = &mut buffer[..end - start];
        fill(start, new, &u[start - 1..=end]);
        u[start - 1] = replaced;
        left = u[end - 1];
        u[start..end].copy_from_slice(new);
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
    let [plain_ns, advanced, tape, rule] = race(
        rounds,
        &mut [
            Box::new(|| {
                u.copy_from_slice(&initial);
                black_box(plain(&mut u, &mut next, steps));
            }),
            Box::new(|| {
                black_box(by_rule.run(&initial, &()).expect("a state"));
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
            format!("by the step's own rule, {:.2} forward sweeps", of_rule.report.sweeps()),
            rule * per_step,
            None,
            "us/step",
        ),
        Line::new(
            format!("through the scalar tape, {:.2} forward sweeps", of_tape.report.sweeps()),
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
