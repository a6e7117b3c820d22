//! Loops to differentiate, each with what makes it hard; and what tests ask of them.

use palinode_core::{Real, Snapshot, SnapshotError, SnapshotStore};
use palinode_macros::{Reals, step};
use palinode_time::{Error, Gradient, Number, ReversibleStep, Schedule, Step, StepRule};
use std::cell::Cell;

/// The bits of everything that a gradient holds.
pub(crate) fn bits<St: Step>(gradient: &Gradient<St>) -> Vec<u64> {
    let mut bits = vec![gradient.value.to_bits()];
    bits.extend(Snapshot::of(&gradient.initial).reals());
    bits.extend(Snapshot::of(&gradient.params).reals());
    gradient.inputs.iter().for_each(|input| bits.extend(Snapshot::of(input).reals()));
    bits
}

/// The bytes that the refusal of a budget of one byte names as enough.
#[track_caller]
pub(crate) fn smallest<St: Step>(refused: Result<Gradient<St>, Error>) -> usize {
    match refused {
        Err(Error::BudgetTooSmall { smallest, .. }) => smallest.bytes(),
        Err(error) => panic!("{error}"),
        Ok(gradient) => panic!("1 byte cannot be enough: {}", gradient.report),
    }
}

/// Every kind.
pub(crate) const SCHEDULES: [Schedule; 6] = [
    Schedule::Best,
    Schedule::StoreAll,
    Schedule::Periodic { every: 4 },
    Schedule::Binomial { snapshots: 1 },
    Schedule::Binomial { snapshots: 3 },
    Schedule::Mixed { places: 3 },
];

pub(crate) const CHAOTIC: [f64; 3] = [10.0, 28.0, 8.0 / 3.0];

pub(crate) fn squares<S: Real>([x, y, z]: &[S; 3]) -> S {
    *x * *x + *y * *y + *z * *z
}

/// A list of numbers without a pattern.
pub(crate) fn wave(n: usize) -> Vec<f64> {
    (0..n).map(|i| (i as f64 * 0.7).sin()).collect()
}

/// Explicit Euler of the Lorenz system: chaotic at the usual parameters.
#[step(Lorenz)]
pub(crate) fn lorenz<S: Real>([x, y, z]: &mut [S; 3], [sigma, rho, beta]: &[S; 3]) {
    let dt = 0.001;
    let (dx, dy, dz) = ((*y - *x) * *sigma, *x * (*rho - *z) - *y, *x * *y - *beta * *z);
    *x += dx * dt;
    *y += dy * dt;
    *z += dz * dt;
}

/// The heat equation on a rod, updated in place, with a source that enters at each step.
#[step(Heat)]
pub(crate) fn heat<S: Real>(u: &mut Vec<S>, conductivity: &S, source: &S) {
    let mut left = u[0];
    for i in 1..u.len() - 1 {
        let here = u[i];
        u[i] = here + *conductivity * (left - here * 2.0 + u[i + 1]);
        left = here;
    }
    u[1] += *source;
}

/// A recurrent network: weights, a bias, tanh, two inputs.
#[step(Rnn)]
pub(crate) fn rnn<S: Real>(h: &mut Vec<S>, (weights, bias): &(Vec<S>, Vec<S>), x: &[S; 2]) {
    let n = h.len();
    let old = h.clone();
    for i in 0..n {
        let sum: S = (0..n).map(|j| weights[i * n + j] * old[j]).sum();
        h[i] = (sum + bias[i] + x[i % 2]).tanh();
    }
}

/// x <- a x + b: everything is known in closed form.
#[step(Affine)]
pub(crate) fn affine<S: Real>(x: &mut S, [a, b]: &[S; 2]) {
    *x = *a * *x + *b;
}

impl StepRule for Affine {
    fn reverse<S: Real>(
        &self,
        before: &S,
        [a, _]: &[S; 2],
        _: &(),
        of_state: &mut S,
        [of_a, of_b]: &mut [S; 2],
        _: &mut (),
    ) {
        *of_a += *before * *of_state;
        *of_b += *of_state;
        *of_state = *a * *of_state;
    }
}

/// A product of 16 x 16 matrices by nalgebra, which computes otherwise with `f64` than with any wrapper.
#[cfg(feature = "nalgebra")]
pub(crate) struct Product;

#[cfg(feature = "nalgebra")]
impl Step for Product {
    type State<S: Number> = nalgebra::DMatrix<S>;
    type Params<S: Number> = nalgebra::DMatrix<S>;
    type Input<S: Number> = ();
    fn step<S: Number>(&self, x: &mut nalgebra::DMatrix<S>, a: &nalgebra::DMatrix<S>, _: &()) {
        *x = a * &*x;
    }
}

/// A list that grows and shrinks, and an enum: the shape of the state changes from step to step.
#[derive(Clone, Debug, PartialEq, Reals)]
pub(crate) enum Shape<S> {
    List(Vec<S>, u32),
    Sum { total: S, left: u32 },
}

#[step(Changing)]
pub(crate) fn changing<S: Real>(shape: &mut Shape<S>, k: &S) {
    *shape = match shape {
        Shape::List(items, left) if *left == 0 => {
            let total: S = items.iter().copied().sum();
            Shape::Sum { total: (total * *k).sin(), left: 3 }
        }
        Shape::List(items, left) => {
            let mut items = items.clone();
            let last = items[items.len() - 1];
            items.push(last * *k + 0.1);
            if *left % 3 == 0 {
                items.remove(0);
            }
            Shape::List(items, *left - 1)
        }
        Shape::Sum { total, left: 0 } => Shape::List(vec![*total, *total * *k], 4),
        Shape::Sum { total, left } => Shape::Sum { total: *total + *k * 0.5, left: *left - 1 },
    };
}

/// Leapfrog of a harmonic oscillator: undoing drifts by rounding.
#[step(Leapfrog)]
pub(crate) fn leapfrog<S: Real>([x, v]: &mut [S; 2], k: &S) {
    *v -= *k * *x * 0.005;
    *x += *v * 0.01;
    *v -= *k * *x * 0.005;
}

impl ReversibleStep for Leapfrog {
    fn step_back<S: Real>(&self, [x, v]: &mut [S; 2], k: &S, _: &()) {
        *v += *k * *x * 0.005;
        *x -= *v * 0.01;
        *v += *k * *x * 0.005;
    }
}

/// The same on an integer lattice: positions and velocities are multiples of 2^-40, every update is a rounded
/// multiple, so undoing is exact.
pub(crate) struct Lattice;

const GRID: f64 = 1.0 / (1_u64 << 40) as f64;

/// The nearest multiple of the grid, with the derivative of the number itself: what is rounded away is no
/// part of the model.
fn on_grid<S: Real>(x: S) -> S {
    let rounded = (x.peek().unwrap_or(f64::NAN) / GRID).round() * GRID;
    x + (rounded - x.peek().unwrap_or(f64::NAN))
}

impl Step for Lattice {
    type State<S: Number> = [S; 2];
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Real>(&self, [x, v]: &mut [S; 2], k: &S, _: &()) {
        *v -= on_grid(*k * *x * 0.005);
        *x += on_grid(*v * 0.01);
        *v -= on_grid(*k * *x * 0.005);
    }
}

impl ReversibleStep for Lattice {
    fn step_back<S: Real>(&self, [x, v]: &mut [S; 2], k: &S, _: &()) {
        *v += on_grid(*k * *x * 0.005);
        *x -= on_grid(*v * 0.01);
        *v += on_grid(*k * *x * 0.005);
    }
}

/// A step with hidden state: a counter outside of what is kept.
#[derive(Default)]
pub(crate) struct Hidden(Cell<u64>);

impl Step for Hidden {
    type State<S: Number> = S;
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Number>(&self, x: &mut S, p: &S, _: &()) {
        self.0.set(self.0.get() + 1);
        *x = *x * 0.5 + *p * (self.0.get() as f64);
    }
}

/// A store around another, in whose hands snapshots change that it gives back: numbers and words, by step.
pub(crate) struct Altering<S, F>(pub(crate) S, pub(crate) F);

impl<S: SnapshotStore, F: Fn(u64, &mut Vec<u64>, &mut Vec<u64>)> SnapshotStore for Altering<S, F> {
    fn put(&mut self, slot: u32, step: u64, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.0.put(slot, step, snapshot)
    }
    fn get(&mut self, slot: u32, step: u64, into: &mut Snapshot) -> Result<(), SnapshotError> {
        self.0.get(slot, step, into)?;
        let (reals, plain) = into.words_mut();
        self.1(step, reals, plain);
        Ok(())
    }
    fn free(&mut self, slot: u32) {
        self.0.free(slot);
    }
    fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }
    fn heap_bytes_for(&self, slots: usize, reals: usize, plain: usize) -> usize {
        self.0.heap_bytes_for(slots, reals, plain)
    }
}
