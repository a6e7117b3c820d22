//! Burgers' equation: 1000 points, 1e4 steps, 16 MiB.

use super::{Line, race, turn};
use crate::heap;
use crate::problem::Size;
use palinode::prelude::*;
use palinode::snapshot::{Reals, Sink, Source};
use palinode::time::{Number, Rollout, Step, StepRule};
use std::f64::consts::PI;

const C: f64 = 0.1;
const V: f64 = 0.2;
const BUDGET: &str = "16MiB";

pub(super) struct Burgers;

/// `u_i - c u_i (u_{i+1} - u_{i-1}) + v (u_{i+1} - 2 u_i + u_{i-1})`.
#[inline(always)]
fn stencil<S: Real>(left: S, here: S, right: S) -> S {
    here - here * (right - left) * C + (right - here * 2.0 + left) * V
}

/// A field, and memory for the next one, which is no part of the state.
pub(super) struct Field<S> {
    u: Vec<S>,
    next: Vec<S>,
}

impl<S: Real> Field<S> {
    fn new(u: Vec<S>) -> Self {
        Field { next: u.clone(), u }
    }

    /// Each number becomes a function of itself and its neighbours; periodic.
    #[inline(always)]
    fn update(&mut self, new: impl Fn(usize, [S; 3]) -> S, fill: impl Fn(&mut [S], &[S])) {
        let Field { u, next } = self;
        let last = u.len() - 1;
        next[0] = new(0, [u[last], u[0], u[1]]);
        fill(&mut next[1..last], u);
        next[last] = new(last, [u[last - 1], u[last], u[0]]);
        core::mem::swap(u, next);
    }
}

impl<S: Real + Reals<S>> Reals<S> for Field<S> {
    fn save(&self, to: &mut impl Sink<S>) {
        self.u.save(to);
    }
    fn load(from: &mut impl Source<S>) -> Self {
        Field::new(Vec::load(from))
    }
    fn reload(&mut self, from: &mut impl Source<S>) {
        self.u.reload(from);
    }
    fn heap_bytes(&self) -> usize {
        self.u.heap_bytes() + self.next.heap_bytes()
    }
}

impl Step for Burgers {
    type State<S: Number> = Field<S>;
    type Params<S: Number> = ();
    type Input<S: Number> = ();
    #[inline]
    fn step<S: Real>(&self, field: &mut Field<S>, _: &(), _: &()) {
        let at = |_: usize, [left, here, right]: [S; 3]| stencil(left, here, right);
        field.update(at, |new, u| {
            new.iter_mut().zip(u.windows(3)).for_each(|(new, u)| *new = stencil(u[0], u[1], u[2]));
        });
    }
}

/// The cotangent of a point, of its own and its neighbours'.
#[inline(always)]
pub(crate) fn gather<S: Real>([u_left, u_right]: [S; 2], [left, here, right]: [S; 3]) -> S {
    here * ((u_right - u_left) * -C + (1.0 - 2.0 * V)) + left * (u_left * -C + V) + right * (u_right * C + V)
}

/// A gather: each cotangent is made of its neighbours', so that the loop is as regular as the step's.
impl StepRule for Burgers {
    #[inline]
    fn reverse<S: Real>(
        &self,
        before: &Field<S>,
        _: &(),
        _: &(),
        field: &mut Field<S>,
        _: &mut (),
        _: &mut (),
    ) {
        let u = &before.u[..];
        let n = u.len();
        let at = |i: usize, c: [S; 3]| gather([u[(i + n - 1) % n], u[(i + 1) % n]], c);
        field.update(at, |new, c| {
            let around = u.windows(3).zip(c.windows(3));
            new.iter_mut()
                .zip(around)
                .for_each(|(new, (u, c))| *new = gather([u[0], u[2]], [c[0], c[1], c[2]]));
        });
    }
}

pub(crate) fn start(n: usize) -> Vec<f64> {
    let at = |i: usize| i as f64 / n as f64;
    (0..n).map(|i| 1.0 + (2.0 * PI * at(i)).sin() / 2.0 + (6.0 * PI * at(i)).cos() / 4.0).collect()
}

/// One step, from one buffer to the other.
#[inline(always)]
pub(crate) fn advance(u: &[f64], next: &mut [f64]) {
    let n = u.len();
    next[0] = stencil(u[n - 1], u[0], u[1]);
    for (new, w) in next[1..n - 1].iter_mut().zip(u.windows(3)) {
        *new = stencil(w[0], w[1], w[2]);
    }
    next[n - 1] = stencil(u[n - 2], u[n - 1], u[0]);
}

/// The plain loop as one would write it for speed: two buffers that take turns.
#[inline(never)]
pub(crate) fn plain(u: &mut Vec<f64>, next: &mut Vec<f64>, steps: u64) -> f64 {
    for _ in 0..steps {
        advance(u, next);
        std::mem::swap(u, next);
    }
    u.iter().map(|u| u * u).sum()
}

pub(super) fn lines(size: Size) -> Vec<Line> {
    let (n, steps, rounds) = if size == Size::Full { (1000, 10_000_u64, 10) } else { (1000, 300, 1) };
    let initial = Field::new(start(n));
    let loss = |field: &Field<Var<f64>>| field.u.iter().map(|&u| u * u).sum::<Var<f64>>();
    let by_tape = Rollout::new(Burgers).steps(steps).budget(BUDGET);
    let on_tape = Rollout::new(Burgers).steps(steps).budget(BUDGET).tape_only();
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
    let scale = of_tape.initial.u.iter().fold(0.0_f64, |largest, c| largest.max(c.abs()));
    for (tape, rule) in of_tape.initial.u.iter().zip(&of_rule.initial.u) {
        assert!((tape - rule).abs() <= 1e-9 * scale, "{tape} and {rule}");
    }

    let (mut u, mut next) = (initial.u.clone(), initial.u.clone());
    let [plain_ns, advanced, ours, tape, rule] = race(
        rounds,
        &mut [
            turn(|| {
                u.copy_from_slice(&initial.u);
                plain(&mut u, &mut next, steps)
            }),
            turn(|| by_rule.run(&initial, &()).expect("a state")),
            turn(|| by_tape.value_and_grad(&initial, &(), loss).expect("a gradient")),
            turn(|| on_tape.value_and_grad(&initial, &(), loss).expect("a gradient")),
            turn(|| by_rule.value_and_grad(&initial, &(), loss).expect("a gradient")),
        ],
    );
    let per_step = |what: String, ns: f64| Line::new(what, ns * 1e-3 / steps as f64, None, "us/step");
    let sweeps = [&of_rule, &of_tape].map(|found| format!("{:.2} forward sweeps", found.report.sweeps()));
    vec![
        per_step(format!("plain f64, {n} points, {steps} steps"), plain_ns),
        per_step("the same as the driver advances it".into(), advanced),
        per_step(format!("by the step's own rule, {}", sweeps[0]), rule),
        per_step(format!("without a rule, {}", sweeps[1]), ours),
        per_step("without a rule, every step on the scalar tape".into(), tape),
        Line::new("rule / plain", rule / plain_ns, (size == Size::Full).then_some(6.0), "x"),
        Line::new("without a rule / plain", ours / plain_ns, (size == Size::Full).then_some(60.0), "x"),
        Line::new("every step on the scalar tape / plain", tape / plain_ns, None, "x"),
        Line::new("peak heap by the rule", rule_peak, Some(16.0), "MiB"),
        Line::new("peak heap without a rule", tape_peak, Some(16.0), "MiB"),
    ]
}
