//! Loops to differentiate, each with what makes it hard.

use palinode_core::{Real, Reals, Sink, Source};
use palinode_time::{Number, ReversibleStep, Step, StepRule};

/// Explicit Euler of the Lorenz system: chaotic at the usual parameters.
pub(crate) struct Lorenz;

impl Step for Lorenz {
    type State<S: Number> = [S; 3];
    type Params<S: Number> = [S; 3];
    type Input<S: Number> = ();
    fn step<S: Real>(&self, [x, y, z]: &mut [S; 3], [sigma, rho, beta]: &[S; 3], _: &()) {
        let dt = 0.001;
        let (dx, dy, dz) = ((*y - *x) * *sigma, *x * (*rho - *z) - *y, *x * *y - *beta * *z);
        *x += dx * dt;
        *y += dy * dt;
        *z += dz * dt;
    }
}

/// The heat equation on a rod, updated in place, with a source that enters at each step.
pub(crate) struct Heat;

impl Step for Heat {
    type State<S: Number> = Vec<S>;
    type Params<S: Number> = S;
    type Input<S: Number> = S;
    fn step<S: Real>(&self, u: &mut Vec<S>, conductivity: &S, source: &S) {
        let mut left = u[0];
        for i in 1..u.len() - 1 {
            let here = u[i];
            u[i] = here + *conductivity * (left - here * 2.0 + u[i + 1]);
            left = here;
        }
        u[1] += *source;
    }
}

/// A recurrent network: weights, a bias, tanh, two inputs.
pub(crate) struct Rnn;

impl Step for Rnn {
    type State<S: Number> = Vec<S>;
    type Params<S: Number> = (Vec<S>, Vec<S>);
    type Input<S: Number> = [S; 2];
    fn step<S: Real>(&self, h: &mut Vec<S>, (weights, bias): &(Vec<S>, Vec<S>), x: &[S; 2]) {
        let n = h.len();
        let old = h.clone();
        for i in 0..n {
            let sum: S = (0..n).map(|j| weights[i * n + j] * old[j]).sum();
            h[i] = (sum + bias[i] + x[i % 2]).tanh();
        }
    }
}

/// x <- a x + b: everything is known in closed form.
pub(crate) struct Affine;

impl Step for Affine {
    type State<S: Number> = S;
    type Params<S: Number> = [S; 2];
    type Input<S: Number> = ();
    fn step<S: Real>(&self, x: &mut S, [a, b]: &[S; 2], _: &()) {
        *x = *a * *x + *b;
    }
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
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape<S> {
    List(Vec<S>, u32),
    Sum { total: S, left: u32 },
}

impl<S: Reals<S>> Reals<S> for Shape<S> {
    fn save(&self, to: &mut impl Sink<S>) {
        match self {
            Shape::List(items, left) => {
                to.word(0);
                items.save(to);
                to.word(u64::from(*left));
            }
            Shape::Sum { total, left } => {
                to.word(1);
                total.save(to);
                to.word(u64::from(*left));
            }
        }
    }
    fn load(from: &mut impl Source<S>) -> Self {
        if from.word() == 0 {
            let items = Vec::load(from);
            Shape::List(items, from.word() as u32)
        } else {
            let total = S::load(from);
            Shape::Sum { total, left: from.word() as u32 }
        }
    }
    fn heap_bytes(&self) -> usize {
        match self {
            Shape::List(items, _) => items.heap_bytes(),
            Shape::Sum { .. } => 0,
        }
    }
}

pub(crate) struct Changing;

impl Step for Changing {
    type State<S: Number> = Shape<S>;
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Real>(&self, shape: &mut Shape<S>, k: &S, _: &()) {
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
}

/// Leapfrog of a harmonic oscillator: undoing drifts by rounding.
pub(crate) struct Leapfrog;

impl Step for Leapfrog {
    type State<S: Number> = [S; 2];
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Real>(&self, [x, v]: &mut [S; 2], k: &S, _: &()) {
        *v -= *k * *x * 0.005;
        *x += *v * 0.01;
        *v -= *k * *x * 0.005;
    }
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
