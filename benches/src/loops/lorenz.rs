//! The Lorenz system: 1e4 steps, 10 snapshots.

use super::{Line, race, turn};
use crate::heap;
use crate::problem::Size;
use echidna::checkpoint::grad_checkpointed;
use palinode::prelude::*;
use palinode::time::{Number, Rollout, Schedule, Step};
use std::hint::black_box;

const SNAPSHOTS: u32 = 10;
const START: [f64; 3] = [1.0, 1.0, 1.0];
const PARAMS: [f64; 3] = [10.0, 10.0, 8.0 / 3.0];

pub(super) struct Lorenz;

impl Step for Lorenz {
    type State<S: Number> = [S; 3];
    type Params<S: Number> = [S; 3];
    type Input<S: Number> = ();
    #[inline]
    fn step<S: Real>(&self, state: &mut [S; 3], params: &[S; 3], _: &()) {
        euler(state, params);
    }
}

#[inline(always)]
fn euler<S: Real>([x, y, z]: &mut [S; 3], [sigma, rho, beta]: &[S; 3]) {
    let (dx, dy, dz) = (*sigma * (*y - *x), *x * (*rho - *z) - *y, *x * *y - *beta * *z);
    *x += dx * 0.001;
    *y += dy * 0.001;
    *z += dz * 0.001;
}

fn loss<S: Real>([x, y, z]: &[S; 3]) -> S {
    *x * *x + *y * *y + *z * *z
}

#[inline(never)]
fn plain(steps: u64) -> f64 {
    let (mut state, params) = (black_box(START), black_box(PARAMS));
    (0..steps).for_each(|_| euler(&mut state, &params));
    loss(&state)
}

/// The same gradient by echidna: parameters ride along in the state, because it differentiates by that alone.
fn by_echidna(steps: usize) -> Vec<f64> {
    let step = |s: &[echidna::BReverse<f64>]| {
        let (x, y, z, sigma, rho, beta) = (s[0], s[1], s[2], s[3], s[4], s[5]);
        let (dx, dy, dz) = (sigma * (y - x), x * (rho - z) - y, x * y - beta * z);
        vec![x + dx * 0.001, y + dy * 0.001, z + dz * 0.001, sigma, rho, beta]
    };
    let loss = |s: &[echidna::BReverse<f64>]| s[0] * s[0] + s[1] * s[1] + s[2] * s[2];
    let start: Vec<f64> = START.iter().chain(&PARAMS).copied().collect();
    grad_checkpointed(step, loss, &start, steps, SNAPSHOTS as usize)
}

pub(super) fn lines(size: Size) -> Vec<Line> {
    let (steps, rounds) = if size == Size::Full { (10_000_u64, 30) } else { (1_000, 3) };
    let n = steps as f64;
    let rollout = || Rollout::new(Lorenz).steps(steps).schedule(Schedule::Binomial { snapshots: SNAPSHOTS });
    let (run, on_tape) = (rollout(), rollout().tape_only());
    let gradient = run.value_and_grad(&START, &PARAMS, loss).expect("a gradient");

    let mut whole = Tape::new();
    let inputs: Vec<f64> = START.iter().chain(&PARAMS).copied().collect();
    let record = |tape: &mut Tape<f64>| {
        let mut record = tape
            .record(&inputs, |v| {
                let (mut state, params) = ([v[0], v[1], v[2]], [v[3], v[4], v[5]]);
                (0..steps).for_each(|_| euler(&mut state, &params));
                loss(&state)
            })
            .expect("a recording");
        record.reverse(&[1.0]).expect("a sweep").to_vec()
    };
    let by_tape = record(&mut whole);
    let by_peer = by_echidna(steps as usize);
    for i in 0..6 {
        let ours = if i < 3 { gradient.initial[i] } else { gradient.params[i - 3] };
        assert!((ours - by_tape[i]).abs() <= 1e-8 * by_tape[i].abs(), "{ours} and {}", by_tape[i]);
        assert!((ours - by_peer[i]).abs() <= 1e-8 * by_peer[i].abs(), "{ours} and {}", by_peer[i]);
    }

    // One step at a time on a warm tape, without a driver: what recording and sweeping themselves take.
    let mut small = Tape::new();
    let bare = |tape: &mut Tape<f64>| {
        let mut totals = [0.0; 6];
        for _ in 0..steps {
            let mut record = tape
                .record(&inputs, |v| {
                    let (mut state, params) = ([v[0], v[1], v[2]], [v[3], v[4], v[5]]);
                    euler(&mut state, &params);
                    state
                })
                .expect("a recording");
            record.reverse_onto(&[1.0, 0.5, 0.25], &mut totals).expect("a sweep");
        }
        black_box(totals);
    };
    let [plain_ns, ours, taped, stored, alone, echidna] = race(
        rounds,
        &mut [
            turn(|| plain(steps)),
            turn(|| run.value_and_grad(&START, &PARAMS, loss).expect("a gradient")),
            turn(|| on_tape.value_and_grad(&START, &PARAMS, loss).expect("a gradient")),
            turn(|| record(&mut whole)),
            turn(|| bare(&mut small)),
            turn(|| by_echidna(steps as usize)),
        ],
    );
    let evaluations = gradient.report.forward as f64;
    let advanced = evaluations - n;
    // What recording, sweeping and stepping take without a driver is in the tape that stores all, and in the
    // plain loop.
    let overhead = (taped - stored - advanced * plain_ns / n) / evaluations;
    let calls = heap::calls();
    black_box(run.value_and_grad(&START, &PARAMS, loss).expect("a gradient"));
    let allocations = (heap::calls() - calls) as f64;
    let calls = heap::calls();
    let half = Rollout::new(Lorenz).steps(steps / 2).schedule(Schedule::Binomial { snapshots: SNAPSHOTS });
    black_box(half.value_and_grad(&START, &PARAMS, loss).expect("a gradient"));
    let for_half = (heap::calls() - calls) as f64;
    let per_step = |what: &str, ns: f64| Line::new(what, ns / n, None, "ns/step");
    let sweeps = gradient.report.sweeps();
    vec![
        per_step(&format!("plain f64, {steps} steps"), plain_ns),
        per_step(&format!("rollout, {SNAPSHOTS} snapshots, {sweeps:.2} forward sweeps"), ours),
        per_step("the same with every step on the tape", taped),
        per_step("the same tape storing all", stored),
        per_step("one step at a time on a warm tape, without a driver", alone),
        per_step("echidna grad_checkpointed, as many snapshots", echidna),
        Line::new("rollout on the tape / storing all", taped / stored, Some(2.0), "x"),
        Line::new("echidna / rollout", echidna / ours, None, "x"),
        Line::new("echidna / rollout on the tape", echidna / taped, None, "x"),
        Line::new("20 x rollout / echidna", 20.0 * ours / echidna, Some(1.0), ""),
        Line::new("driver, per evaluation of a step", overhead, Some(10.0), "ns"),
        Line::new("allocations of the second half of the steps", allocations - for_half, Some(0.0), ""),
    ]
}
