//! Second and third order, forward lanes, single precision, and implicit functions inside loops and other
//! implicit functions.

use crate::implicit::{Affine, Cosine, Ring, close};
use palinode_core::{Dual, DualN, Passive, Real, Tape, Var, grad, hessian, hvp};
use palinode_time::implicit::{Equation, Implicit, LinearMethod, Solver, fixed_point, root};

fn cosine<S: Real + Implicit>(p: &[S]) -> S {
    fixed_point(Cosine, &[0.5], p, &Solver::newton()).unwrap().x[0]
}

/// The first three derivatives of the fixed point of cos(x) + p, by hand.
fn known(p: f64) -> [f64; 3] {
    let x = cosine(&[p]);
    let (s, c) = x.sin_cos();
    let first = 1.0 / (1.0 + s);
    let second = -c * first.powi(3);
    let third = s * first.powi(4) - 3.0 * c * second * first.powi(2);
    [first, second, third]
}

#[test]
fn second_and_third_order_in_every_pairing_of_modes() {
    let p = 0.3;
    let [first, second, third] = known(p);
    let forward = cosine(&[Dual::new(Dual::new(p, 1.0), Dual::new(1.0, 0.0))]);
    close(forward.tangent.value, first, 1e-13);
    close(forward.tangent.tangent, second, 1e-13);
    close(hessian(cosine, &[p]).unwrap()[0][0], second, 1e-13);
    close(hvp(cosine, &[p], &[1.0]).unwrap().2[0], second, 1e-13);
    // A dual over a tape.
    close(
        grad(|p: &[Var<f64>]| cosine(&[Dual::new(p[0], Var::lift(1.0))]).tangent, &[p]).unwrap()[0],
        second,
        1e-13,
    );
    // Third: a dual over a tape over a tape's gradient.
    let slope = |p: Dual<f64>| hvp(cosine, &[p], &[Dual::lift(1.0)]).unwrap().2[0];
    close(slope(Dual::new(p, 1.0)).tangent, third, 1e-12);
}

#[test]
fn the_hessian_of_a_system_is_symmetric_and_what_differences_see() {
    let p = [0.4, 0.1, -0.2, 0.3];
    for method in [LinearMethod::Direct, LinearMethod::Krylov] {
        let solver = Solver::newton().linear(method).linear_tolerance(1e-13);
        fn loss<S: Real + Implicit>(p: &[S], solver: &Solver) -> S {
            let x = fixed_point(Ring, &[0.0; 3], p, solver).unwrap().x;
            x[0] * x[1] + x[2].sin() * x[0]
        }
        let h = hessian(|p| loss(p, &solver), &p).unwrap();
        let v = [0.3, -0.7, 0.2, 0.5];
        let (_, _, product) = hvp(|p| loss(p, &solver), &p, &v).unwrap();
        for i in 0..4 {
            close(product[i], (0..4).map(|j| h[i][j] * v[j]).sum(), 1e-10);
            let shifted = |t: f64| {
                let mut q = p;
                q[i] += t;
                grad(|p| loss(p, &solver), &q).unwrap()
            };
            let (up, down) = (shifted(1e-5), shifted(-1e-5));
            for j in 0..4 {
                close(h[i][j], h[j][i], 1e-10);
                close(h[i][j], (up[j] - down[j]) / 2e-5, 1e-7);
            }
        }
    }
}

#[test]
fn lanes_single_precision_and_passive_numbers() {
    let p = [0.5, 0.2, -0.1];
    let lanes: Vec<DualN<f64, 3>> =
        (0..3).map(|i| DualN::new(p[i], core::array::from_fn(|lane| f64::from(lane == i)))).collect();
    let x = fixed_point(Ring, &[0.0; 2], &lanes, &Solver::newton()).unwrap().x;
    for k in 0..2 {
        let g = grad(|p| fixed_point(Ring, &[0.0; 2], p, &Solver::newton()).unwrap().x[k], &p).unwrap();
        (0..3).for_each(|lane| close(x[k].tangents[lane], g[lane], 1e-12));
    }
    let g = grad(|p: &[Var<f32>]| cosine(p), &[0.3]).unwrap();
    close(f64::from(g[0]), known(0.3)[0], 1e-6);
    // Bit for bit the primal of the others.
    let passive: f64 = cosine(&[Passive::new(0.3)]).primal();
    assert_eq!(passive.to_bits(), cosine(&[0.3f64]).to_bits());
    assert_eq!(passive.to_bits(), cosine(&[Dual::new(0.3f64, 1.0)]).value.to_bits());
    let mut tape = Tape::new();
    assert_eq!(passive.to_bits(), tape.record(&[0.3f64], cosine).unwrap().values()[0].to_bits());
}

/// y' = -k y^3 by implicit Euler: y - y0 + h k y^3 = 0, with parameters y0 and k.
#[derive(Clone, Copy)]
struct Euler(f64);
impl Equation for Euler {
    fn eval<S: Real>(&self, y: &[S], p: &[S]) -> Vec<S> {
        vec![y[0] - p[0] + p[1] * y[0].powi(3) * self.0]
    }
}

fn decayed<S: Real + Implicit>(k: S, steps: usize) -> S {
    (0..steps).fold(S::one(), |y, _| root(Euler(0.01), &[y], &[y, k], &Solver::newton()).unwrap().x[0])
}

#[test]
fn a_loop_may_solve_an_equation_in_every_round() {
    // y(t) = 1 / sqrt(1 + 2 k t), dy/dk = -t y^3, up to the error of the method.
    let (k, steps) = (1.5, 100);
    let y = decayed(k, steps);
    close(y, 1.0 / (1.0f64 + 2.0 * k).sqrt(), 1e-2);
    let g = grad(|k| decayed(k[0], steps), &[k]).unwrap()[0];
    close(g, -y.powi(3), 1e-2);
    close(g, (decayed(k + 1e-5, steps) - decayed(k - 1e-5, steps)) / 2e-5, 1e-9);
    close(decayed(Dual::new(k, 1.0), steps).tangent, g, 1e-12);
    let second = hvp(|k| decayed(k[0], steps), &[k], &[1.0]).unwrap().2[0];
    let slope = |k: f64| decayed(Dual::new(k, 1.0), steps).tangent;
    close(second, (slope(k + 1e-5) - slope(k - 1e-5)) / 2e-5, 1e-8);
}

/// The outer map has an inner fixed point in it: x = 0.3 cosine(p x) + p.
#[derive(Clone, Copy)]
struct Outer;
impl Equation for Outer {
    fn eval<S: Real + Implicit>(&self, x: &[S], p: &[S]) -> Vec<S> {
        vec![cosine(&[p[0] * x[0]]) * 0.3 + p[0]]
    }
}

#[test]
fn implicit_functions_nest() {
    let value = |p: f64| fixed_point(Outer, &[0.5], &[p], &Solver::picard()).unwrap().x[0];
    let g = grad(|p| fixed_point(Outer, &[0.5], p, &Solver::picard()).unwrap().x[0], &[0.4]).unwrap()[0];
    close(g, (value(0.4 + 1e-5) - value(0.4 - 1e-5)) / 2e-5, 1e-8);
    // By hand: x' = 0.3 c'(p x) (x + p x') + 1.
    let x = value(0.4);
    let slope = 0.3 * known(0.4 * x)[0];
    close(g, (slope * x + 1.0) / (1.0 - slope * 0.4), 1e-11);
}

#[test]
fn a_linear_system_has_the_second_derivatives_of_its_inverse() {
    // x = a x + b: x = b / (1 - a); d2x/da2 = 2 b / (1 - a)^3, d2x/dadb = 1 / (1 - a)^2, d2x/db2 = 0.
    let h = hessian(|p| fixed_point(Affine(1), &[0.0], p, &Solver::newton()).unwrap().x[0], &[0.25f64, 1.5])
        .unwrap();
    close(h[0][0], 2.0 * 1.5 / 0.75f64.powi(3), 1e-13);
    close(h[0][1], 1.0 / 0.75f64.powi(2), 1e-13);
    close(h[1][0], h[0][1], 1e-15);
    close(h[1][1], 0.0, 1e-14);
}
