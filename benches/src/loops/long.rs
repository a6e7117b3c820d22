//! A long loop of a small system, in less than a mebibyte.

use super::{Line, timed};
use crate::heap;
use crate::problem::Size;
use palinode::prelude::*;
use palinode::time::{Number, Rollout, Step};

/// A linear system of three numbers whose product of steps is known: rotation in a plane with decay, and
/// decay alone.
struct Spiral;

impl Step for Spiral {
    type State<S: Number> = [S; 3];
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    #[inline]
    fn step<S: Real>(&self, [x, y, z]: &mut [S; 3], b: &S, _: &()) {
        let (c, s) = (0.999_999_5, 0.001);
        let (new_x, new_y) = (*x * c - *y * s, *x * s + *y * c);
        (*x, *y) = (new_x, new_y);
        *z = *z * DECAY + *b;
    }
}

const DECAY: f64 = 0.999_999_9;

pub(super) fn lines(size: Size) -> Vec<Line> {
    let steps: u64 = if size == Size::Full { 10_000_000 } else { 100_000 };
    let run = Rollout::new(Spiral).steps(steps).budget("1MiB");
    let before = heap::live();
    heap::reset_peak();
    let mut gradient = None;
    let time =
        timed(|| gradient = run.value_and_grad(&[1.0, 0.5, 0.0], &0.25, |[x, y, z]| *x + *y + *z).ok());
    let peak = (heap::peak() - before) as f64 / (1 << 20) as f64;
    let gradient = gradient.expect("a gradient");
    // dz_T/db = (1 - a^T)/(1 - a).
    let power = (DECAY.ln() * steps as f64).exp();
    let exact = (1.0 - power) / (1.0 - DECAY);
    vec![
        Line::new(
            format!("{steps} steps of 3 numbers, {:.2} forward sweeps", gradient.report.sweeps()),
            time.as_secs_f64() * 1e9 / steps as f64,
            None,
            "ns/step",
        ),
        Line::new("peak heap", peak, Some(1.0), "MiB"),
        Line::new(
            "relative error of dz/db against the closed form, in 1e-9",
            (gradient.params / exact - 1.0).abs() * 1e9,
            Some(1.0),
            "",
        ),
    ]
}
