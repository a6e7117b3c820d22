//! The problems, each written once over any number.

use palinode_core::{Key, Real};

/// Something to minimise.
pub(crate) trait Problem {
    const NAME: &'static str;
    /// The rate of gradient descent with exact gradients.
    const RATE: f64;
    fn start(&self) -> Vec<f64>;
    fn loss<S: Real>(&self, p: &impl Fn(usize) -> S) -> S;
}

pub(crate) struct Beale;

impl Problem for Beale {
    const NAME: &'static str = "Beale";
    const RATE: f64 = 1e-3;
    fn start(&self) -> Vec<f64> {
        vec![1.0, 1.0]
    }
    fn loss<S: Real>(&self, p: &impl Fn(usize) -> S) -> S {
        let (x, y) = (p(0), p(1));
        let part = |power: i32, level: f64| {
            let miss = x * y.powi(power) - x + level;
            miss * miss
        };
        part(1, 1.5) + part(2, 2.25) + part(3, 2.625)
    }
}

pub(crate) struct Rosenbrock;

impl Problem for Rosenbrock {
    const NAME: &'static str = "Rosenbrock";
    const RATE: f64 = 1e-3;
    fn start(&self) -> Vec<f64> {
        vec![-1.2, 1.0]
    }
    fn loss<S: Real>(&self, p: &impl Fn(usize) -> S) -> S {
        let (x, y) = (p(0), p(1));
        let (away, off) = (-x + 1.0, y - x * x);
        away * away + off * off * 100.0
    }
}

/// 400 points in 20 dimensions, labelled by a noisy plane.
pub(crate) struct LogisticRegression {
    points: Vec<[f64; 20]>,
    sides: Vec<f64>,
}

impl LogisticRegression {
    pub(crate) fn new() -> Self {
        let key = Key::from_seed(2);
        let plane: [f64; 20] = core::array::from_fn(|i| key.split(1).gaussian(i as u64));
        let points: Vec<[f64; 20]> =
            (0..400).map(|sample| core::array::from_fn(|i| key.fold(sample).gaussian(i as u64))).collect();
        let side = |(sample, x): (usize, &[f64; 20])| {
            let score: f64 = x.iter().zip(&plane).map(|(x, w)| x * w).sum();
            (score + 2.0 * key.split(2).gaussian(sample as u64)).signum()
        };
        let sides = points.iter().enumerate().map(side).collect();
        LogisticRegression { points, sides }
    }
}

impl Problem for LogisticRegression {
    const NAME: &'static str = "logistic regression";
    const RATE: f64 = 1.0;
    fn start(&self) -> Vec<f64> {
        vec![0.0; 21]
    }
    fn loss<S: Real>(&self, p: &impl Fn(usize) -> S) -> S {
        let mut total = S::zero();
        for (x, side) in self.points.iter().zip(&self.sides) {
            let score = x.iter().enumerate().fold(p(20), |score, (i, &x)| score + p(i) * x);
            total += (score * -side).softplus();
        }
        total / self.points.len() as f64
    }
}

const WIDTH: usize = 8;

/// Two rings of 150 points, told apart by a network of two hidden layers.
pub(crate) struct Mlp {
    points: Vec<[f64; 2]>,
}

impl Mlp {
    pub(crate) fn new() -> Self {
        let key = Key::from_seed(3);
        let point = |sample: u64| {
            let [angle, noise_x, noise_y, _] = key.gaussians(sample);
            let radius = if sample.is_multiple_of(2) { 0.6 } else { 1.4 };
            let (sine, cosine) = (10.0 * angle).sin_cos();
            [radius * cosine + 0.15 * noise_x, radius * sine + 0.15 * noise_y]
        };
        Mlp { points: (0..150).map(point).collect() }
    }
}

impl Problem for Mlp {
    const NAME: &'static str = "MLP 2-8-8-1";
    const RATE: f64 = 0.5;
    fn start(&self) -> Vec<f64> {
        let n = 3 * WIDTH + WIDTH * (WIDTH + 1) + WIDTH + 1;
        (0..n).map(|i| 0.5 * Key::from_seed(4).gaussian(i as u64)).collect()
    }
    fn loss<S: Real>(&self, p: &impl Fn(usize) -> S) -> S {
        let mut total = S::zero();
        for (sample, x) in self.points.iter().enumerate() {
            let first: [S; WIDTH] =
                core::array::from_fn(|j| (p(3 * j) * x[0] + p(3 * j + 1) * x[1] + p(3 * j + 2)).tanh());
            let second: [S; WIDTH] = core::array::from_fn(|j| {
                let row = 3 * WIDTH + j * (WIDTH + 1);
                dense(p, row, &first).tanh()
            });
            let score = dense(p, 3 * WIDTH + WIDTH * (WIDTH + 1), &second);
            total += if sample.is_multiple_of(2) { score.softplus() } else { (-score).softplus() };
        }
        total / self.points.len() as f64
    }
}

/// A row of weights and its bias, applied.
fn dense<S: Real>(p: &impl Fn(usize) -> S, row: usize, x: &[S; WIDTH]) -> S {
    x.iter().enumerate().fold(p(row + WIDTH), |sum, (i, &x)| sum + p(row + i) * x)
}
