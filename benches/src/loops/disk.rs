//! A disk tier: how much of reading and writing goes by while the loop computes.

use super::{Line, timed};
use crate::problem::Size;
use palinode::prelude::*;
use palinode::time::{Error, Number, Rollout, Step, StepRule};

/// u <- u + k sin u for many numbers: a millisecond a step, half a megabyte a state.
struct Pendulums;

impl Step for Pendulums {
    type State<S: Number> = Vec<S>;
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Real>(&self, u: &mut Vec<S>, k: &S, _: &()) {
        u.iter_mut().for_each(|u| *u += *k * u.sin());
    }
}

impl StepRule for Pendulums {
    fn reverse<S: Real>(&self, u: &Vec<S>, k: &S, _: &(), of_u: &mut Vec<S>, of_k: &mut S, _: &mut ()) {
        for (u, c) in u.iter().zip(of_u) {
            let (sin, cos) = u.sin_cos();
            *of_k += *c * sin;
            *c += *c * *k * cos;
        }
    }
}

pub(super) fn lines(size: Size) -> Vec<Line> {
    let (points, steps) = if size == Size::Full { (65_536, 100) } else { (16_384, 30) };
    let field: Vec<f64> = (0..points).map(|i| (i as f64 * 1e-3).sin()).collect();
    let scratch = std::env::temp_dir().join(format!("palinode-bench-{}", std::process::id()));
    let run = || Rollout::new(Pendulums).steps(steps).by_rule();
    let loss = |u: &Vec<Var<f64>>| u.iter().sum::<Var<f64>>();
    run().check_rule(&field[..8].to_vec(), &0.01, 2).expect("a right rule");
    let in_memory = timed(|| run().value_and_grad(&field, &0.01, loss).expect("a gradient")).as_secs_f64();
    // What is always there, and a few snapshots in memory.
    let Err(Error::BudgetTooSmall { smallest, .. }) = run().budget(1).value_and_grad(&field, &0.01, loss)
    else {
        unreachable!("1 byte is not enough")
    };
    let budget = smallest.bytes() + 12 * points * size_of::<f64>();
    let mut gradient = None;
    let on_disk = timed(|| {
        gradient = run().disk(40, &scratch).budget(budget).value_and_grad(&field, &0.01, loss).ok();
    });
    std::fs::remove_dir(&scratch).ok();
    let report = gradient.expect("a gradient").report;
    let hidden = report.io.and_then(|io| io.hidden()).unwrap_or(0.0);
    vec![
        Line::new(format!("{steps} steps of {points} numbers in memory"), in_memory * 1e3, None, "ms"),
        Line::new(
            format!(
                "{} snapshots in memory, {} on disk, {:.2} sweeps",
                report.snapshots,
                report.second_snapshots,
                report.sweeps()
            ),
            on_disk.as_secs_f64() * 1e3,
            None,
            "ms",
        ),
        Line::new("part of reading and writing that was waited for", (1.0 - hidden) * 100.0, Some(10.0), "%"),
    ]
}
