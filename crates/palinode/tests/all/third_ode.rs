//! differential-equations, adaptive solvers of ordinary differential equations, differentiated unmodified.
//!
//! dopri5 with tolerances of 1e-10 gives final states, and their derivatives by parameters, with errors of
//! that order times the growth of errors along the way; 1e-8 is asked for. The gradient is that of what the
//! solver did: the step sizes depend on the parameters and are differentiated too.

use crate::check::{Function, Number, assert_gradient, constant, function};
use differential_equations::prelude::*;
use palinode::{decision, value_and_grad};

struct Logistic<T> {
    k: T,
    m: T,
}

impl<T: Number> ODE<T, [T; 1]> for Logistic<T> {
    fn diff(&self, _t: T, y: &[T; 1], dydt: &mut [T; 1]) {
        dydt[0] = self.k * y[0] * (constant::<T>(1.0) - y[0] / self.m);
    }
}

fn solve<T: Number, const N: usize>(ode: &impl ODE<T, [T; N]>, end: f64, start: [T; N]) -> [T; N] {
    let tolerance = constant::<T>(1e-10);
    let method = ExplicitRungeKutta::dopri5().rtol(tolerance).atol(tolerance);
    let solution = IVP::ode(ode, constant::<T>(0.0), constant::<T>(end), start).method(method).solve();
    *solution.unwrap_or_else(|_| panic!("the solver gave up")).last().unwrap().1
}

// The population at the end by (growth, capacity, start).
function!(Population: |x: &[T]| { solve(&Logistic { k: x[0], m: x[1] }, 3.0, [x[2]])[0] });

#[test]
fn logistic_growth() {
    // y = m / (1 + c e^(-k t)) with c = (m - y0) / y0
    let (k, m, y0, t) = (1.2_f64, 10.0, 0.7, 3.0);
    let decay = (-k * t).exp();
    let c = (m - y0) / y0;
    let d = 1.0 + c * decay;
    let y = m / d;
    let by_c = -m * decay / (d * d);
    let expected = [m * c * t * decay / (d * d), 1.0 / d + by_c / y0, -by_c * m / (y0 * y0)];
    let found = value_and_grad(|x| Population.call(x), &[k, m, y0]).unwrap().0;
    assert!((found - y).abs() < 1e-8);
    assert_gradient("dopri5 logistic", &Population, &[k, m, y0], &expected, 1e-8);
}

struct Oscillator<T> {
    stiffness: T,
    friction: T,
}

impl<T: Number> ODE<T, [T; 2]> for Oscillator<T> {
    fn diff(&self, _t: T, y: &[T; 2], dydt: &mut [T; 2]) {
        dydt[0] = y[1];
        dydt[1] = -(self.stiffness * y[0]) - self.friction * y[1];
    }
}

// The position at the end by (stiffness, friction, first position).
function!(Displacement: |x: &[T]| {
    solve(&Oscillator { stiffness: x[0], friction: x[1] }, 10.0, [x[2], constant(0.0)])[0]
});

#[test]
fn damped_oscillator() {
    // x(t) = x0 e^(-a t) (cos w t + a/w sin w t) with a = friction / 2, w^2 = stiffness - a^2
    let (stiffness, friction, x0, t) = (4.0_f64, 0.3, 1.5, 10.0);
    let a = friction / 2.0;
    let w = (stiffness - a * a).sqrt();
    let (s, c) = (w * t).sin_cos();
    let envelope = x0 * (-a * t).exp();
    let by_w = envelope * (-t * s + a * (t * c / w - s / (w * w)));
    let by_a_alone = envelope * (-t * (c + a / w * s) + s / w);
    let expected = [by_w / (2.0 * w), (by_a_alone - by_w * a / w) / 2.0, envelope / x0 * (c + a / w * s)];
    assert_gradient("dopri5 oscillator", &Displacement, &[stiffness, friction, x0], &expected, 1e-8);
}

#[test]
fn accepting_a_step_is_a_decision() {
    let (_, seen) = decision::watch(|| value_and_grad(|x| Population.call(x), &[1.2, 10.0, 0.7]));
    assert!(seen.comparisons > 100, "{seen:?}");
}
