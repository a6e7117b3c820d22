//! Four loops over scalars: logistic, nchain, lorenz and Rosenbrock.

use super::{Problem, Size};
use crate::num::Num;
use crate::rng::{Draws, uniforms};

/// What problems of nothing but `steps` have in common: so many in each size.
macro_rules! of_steps {
    ($full:literal, $quick:literal, $test:literal) => {
        const UNIT: &'static str = "step";

        fn new(size: Size) -> Self {
            Self { steps: size.pick($full, $quick, $test) }
        }
        fn describe(&self) -> String {
            format!("{} steps", self.steps)
        }
        fn iterations(&self) -> usize {
            self.steps
        }
    };
}

/// `x = r*x*(1-x)`, r = 3, x0 = 0.3, 1e6 times; gradient with respect to x0 and r.
///
/// r = 3 because the cotangent overflows in the chaotic range (3.7).
pub struct Logistic {
    steps: usize,
}

impl Problem for Logistic {
    const NAME: &'static str = "logistic";
    of_steps!(1_000_000, 100_000, 50);
    fn inputs(&self) -> Vec<f64> {
        vec![0.3, 3.0]
    }
    fn eval<T: Num>(&self, p: &[T]) -> T {
        let (mut x, r) = (p[0], p[1]);
        for _ in 0..self.steps {
            x = r * x * x.sub_from(1.0);
        }
        x
    }
}

/// `x = sin(x)*a + b`, (x0, a, b) = (0.5, 1, 0), 1e7 times; gradient with respect to all three.
///
/// With a = 0.9, b = 0.3 the cotangent underflows and tapes that skip zeros look too good.
pub struct Nchain {
    steps: usize,
}

impl Problem for Nchain {
    const NAME: &'static str = "nchain";
    of_steps!(10_000_000, 100_000, 40);
    fn inputs(&self) -> Vec<f64> {
        vec![0.5, 1.0, 0.0]
    }
    fn eval<T: Num>(&self, p: &[T]) -> T {
        let (mut x, a, b) = (p[0], p[1], p[2]);
        for _ in 0..self.steps {
            x = x.sin() * a + b;
        }
        x
    }
    fn smaller(&self) -> Option<Self> {
        (self.steps >= 1_000_000).then_some(Self { steps: self.steps / 10 })
    }
}

/// Explicit Euler on the Lorenz system, dt = 0.001, 1e6 steps from (1,1,1) with (10, 10, 8/3); loss
/// x^2+y^2+z^2 at the end; gradient with respect to the three initial values and the three parameters.
pub struct Lorenz {
    steps: usize,
}

impl Problem for Lorenz {
    const NAME: &'static str = "lorenz";
    of_steps!(1_000_000, 100_000, 200);
    fn inputs(&self) -> Vec<f64> {
        vec![1.0, 1.0, 1.0, 10.0, 10.0, 8.0 / 3.0]
    }
    fn eval<T: Num>(&self, p: &[T]) -> T {
        const DT: f64 = 0.001;
        let (mut x, mut y, mut z) = (p[0], p[1], p[2]);
        let (sigma, rho, beta) = (p[3], p[4], p[5]);
        for _ in 0..self.steps {
            let dx = sigma * (y - x);
            let dy = x * (rho - z) - y;
            let dz = x * y - beta * z;
            x = x + dx.times(DT);
            y = y + dy.times(DT);
            z = z + dz.times(DT);
        }
        x * x + y * y + z * z
    }
}

/// Sum of `100*(x[i+1] - x[i]^2)^2 + (1 - x[i])^2`, n = 1e4.
pub struct Rosenbrock {
    n: usize,
}

impl Problem for Rosenbrock {
    const NAME: &'static str = "rosenbrock";
    const UNIT: &'static str = "term";

    fn new(size: Size) -> Self {
        Self { n: size.pick(10_000, 1_000, 6) }
    }
    fn describe(&self) -> String {
        format!("n = {}", self.n)
    }
    fn inputs(&self) -> Vec<f64> {
        uniforms(&mut Draws::new(1), self.n, -1.5, 1.5)
    }
    fn iterations(&self) -> usize {
        self.n - 1
    }
    fn eval<T: Num>(&self, x: &[T]) -> T {
        T::sum(x.windows(2).map(|w| {
            let valley = w[1] - w[0] * w[0];
            let slope = w[0].sub_from(1.0);
            (valley * valley).times(100.0) + slope * slope
        }))
    }
}
