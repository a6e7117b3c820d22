//! Implicit functions against closed forms, finite differences and unrolled iterations.

use palinode_core::{Real, Tape, Var, jacobian, jvp, value_and_grad};
use palinode_time::implicit::{
    Equation, ImplicitError, LinearMethod, Solution, Solver, SolverReport, fixed_point, fixed_point_of, root,
    root_of, unrolled,
};
use proptest::prelude::*;
use std::sync::Arc;

/// x = cos(x) + p.
#[derive(Clone, Copy)]
pub(crate) struct Cosine;
impl Equation for Cosine {
    fn eval<S: Real>(&self, x: &[S], p: &[S]) -> Vec<S> {
        vec![x[0].cos() + p[0]]
    }
}

/// x = A x + b, with the entries of A (by rows) and then b as parameters.
#[derive(Clone, Copy)]
pub(crate) struct Affine(pub(crate) usize);
impl Equation for Affine {
    fn eval<S: Real>(&self, x: &[S], p: &[S]) -> Vec<S> {
        let (a, b) = p.split_at(self.0 * self.0);
        (0..self.0).map(|i| (0..self.0).map(|j| a[i * self.0 + j] * x[j]).sum::<S>() + b[i]).collect()
    }
}

/// x_i = p_0 tanh(sum of neighbours) + p_i: a coupled, nonlinear contraction of any size.
#[derive(Clone, Copy)]
pub(crate) struct Ring;
impl Equation for Ring {
    fn eval<S: Real>(&self, x: &[S], p: &[S]) -> Vec<S> {
        let n = x.len();
        (0..n)
            .map(|i| p[0] * (x[(i + 1) % n] - x[(i + n - 1) % n] * 0.5 + x[i] * 0.3).tanh() + p[1 + i])
            .collect()
    }
}

fn methods() -> [Solver; 3] {
    [Solver::picard(), Solver::anderson(4), Solver::newton()]
}

fn both_linear(solver: &Solver) -> [Solver; 2] {
    [LinearMethod::Direct, LinearMethod::Krylov].map(|method| solver.clone().linear(method))
}

#[track_caller]
pub(crate) fn close(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance * (1.0 + expected.abs()), "{found} is not {expected}");
}

#[test]
fn the_cosine_has_its_known_slope() {
    for solver in methods().iter().flat_map(both_linear) {
        for p in [-0.4f64, 0.0, 0.3, 1.0] {
            let (x, g) =
                value_and_grad(|p| fixed_point(Cosine, &[0.5], p, &solver).unwrap().x[0], &[p]).unwrap();
            close(x, x.cos() + p, 1e-11);
            close(g[0], 1.0 / (1.0 + x.sin()), 1e-11);
            let (_, forward) =
                jvp(|p| fixed_point(Cosine, &[0.5], p, &solver).unwrap().x[0], &[p], &[1.0]).unwrap();
            close(forward[0], 1.0 / (1.0 + x.sin()), 1e-11);
        }
    }
}

/// Entries of a matrix whose absolute row sums are at most 0.9, by rows.
fn contraction(n: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-1.0..1.0f64, n * n).prop_map(move |mut a| {
        a.chunks_mut(n).for_each(|row| {
            let sum: f64 = row.iter().map(|a| a.abs()).sum();
            row.iter_mut().for_each(|a| *a *= 0.9 / sum.max(0.9));
        });
        a
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// dx/db = (I - A)^-1, so (I - A) dx/db = I; dx/dA_ij = x_j (I - A)^-1 e_i.
    #[test]
    fn affine_maps_have_the_inverse_as_derivative(a in contraction(4), b in prop::collection::vec(-1.0..1.0f64, 4)) {
        let params = [a.clone(), b].concat();
        for solver in methods().iter().flat_map(both_linear) {
            let mut x = vec![];
            let j = jacobian(|p| {
                let solution = fixed_point(Affine(4), &[0.0; 4], p, &solver).unwrap();
                x = solution.x.iter().map(|x| x.value()).collect::<Vec<f64>>();
                solution.x
            }, &params).unwrap();
            let inverse = |row: usize, column: usize| j[row][16 + column];
            for row in 0..4 {
                for column in 0..4 {
                    let image: f64 = (0..4).map(|k| (f64::from(row == k) - a[row * 4 + k]) * inverse(k, column)).sum();
                    prop_assert!((image - f64::from(row == column)).abs() < 1e-8);
                    for by in 0..4 {
                        let expected = x[by] * inverse(row, column);
                        prop_assert!((j[row][column * 4 + by] - expected).abs() < 1e-8 * (1.0 + expected.abs()));
                    }
                }
            }
        }
    }

    /// `<u, J v> = <J^T u, v>`, with both sides through the rule on the tape, and J v through duals.
    #[test]
    fn forward_and_reverse_are_adjoint(p in prop::collection::vec(-0.5..0.5f64, 7), u in prop::collection::vec(-1.0..1.0f64, 6), v in prop::collection::vec(-1.0..1.0f64, 7)) {
        for solver in both_linear(&Solver::newton().linear_tolerance(1e-13)) {
            let mut tape = Tape::new();
            let mut record = tape.record(&p, |p| fixed_point(Ring, &[0.0; 6], p, &solver).unwrap().x).unwrap();
            let pushed = record.forward(&v).unwrap();
            let pulled = record.reverse(&u).unwrap();
            let (left, right): (f64, f64) = (dot(&u, &pushed), dot(pulled, &v));
            prop_assert!((left - right).abs() < 1e-12 * (1.0 + left.abs()), "{left} {right}");
            let (_, forward) = jvp(|p| fixed_point(Ring, &[0.0; 6], p, &solver).unwrap().x, &p, &v).unwrap();
            prop_assert!(forward.iter().zip(&pushed).all(|(a, b)| (a - b).abs() < 1e-12 * (1.0 + a.abs())));
        }
    }

    /// The implicit gradient is where unrolled ones go as their iterations grow, and what differences see.
    #[test]
    fn implicit_unrolled_and_differences_agree(p in prop::collection::vec(-0.4..0.4f64, 6)) {
        let loss = |solver: Solver| move |p: &[f64]| -> f64 {
            let x = fixed_point(Ring, &[0.0; 5], p, &solver).unwrap().x;
            x.iter().enumerate().map(|(i, x)| (1.0 + i as f64) * x * x).sum()
        };
        let (value, implicit) = value_and_grad(|p| {
            let x = fixed_point(Ring, &[0.0; 5], p, &Solver::anderson(3)).unwrap().x;
            x.iter().enumerate().map(|(i, x)| *x * *x * (1.0 + i as f64)).sum()
        }, &p).unwrap();
        let start = |p: &[palinode_core::Var<f64>]| vec![p[0] * 0.0; 5];
        let (again, long) = value_and_grad(|p| {
            let x = unrolled(Ring, &start(p), p, &Solver::picard().tolerance(1e-15)).unwrap().x;
            x.iter().enumerate().map(|(i, x)| *x * *x * (1.0 + i as f64)).sum()
        }, &p).unwrap();
        prop_assert!((value - again).abs() < 1e-10);
        let plain = loss(Solver::newton());
        for k in 0..p.len() {
            prop_assert!((implicit[k] - long[k]).abs() < 1e-9 * (1.0 + long[k].abs()), "{} {}", implicit[k], long[k]);
            let shifted = |h: f64| { let mut q = p.clone(); q[k] += h; plain(&q) };
            let difference = (shifted(1e-5) - shifted(-1e-5)) / 2e-5;
            prop_assert!((implicit[k] - difference).abs() < 1e-7 * (1.0 + difference.abs()), "{} {difference}", implicit[k]);
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn an_unrolled_derivative_lags_behind_and_an_implicit_one_does_not() {
    let loose = Solver::picard().tolerance(1e-6);
    let error = |g: f64, x: f64| (g - 1.0 / (1.0 + x.sin())).abs();
    let (x, implicit) =
        value_and_grad(|p| fixed_point(Cosine, &[0.7], p, &loose).unwrap().x[0], &[0.2f64]).unwrap();
    let (y, by_iteration) =
        value_and_grad(|p| unrolled(Cosine, &[p[0] * 0.0 + 0.7], p, &loose).unwrap().x[0], &[0.2f64])
            .unwrap();
    assert!(error(implicit[0], x) < 1e-14); // exact for the point that was found
    assert!(error(by_iteration[0], y) > 1e-8);
    assert!(error(by_iteration[0], y) < 1e-3);
}

/// The gradient of ridge regression: X^T (X w - y) + lambda w = 0.
struct Ridge {
    rows: Vec<[f64; 3]>,
    targets: Vec<f64>,
}
impl Equation for Ridge {
    fn eval<S: Real>(&self, w: &[S], lambda: &[S]) -> Vec<S> {
        let mut r: Vec<S> = w.iter().map(|w| *w * lambda[0]).collect();
        for (row, target) in self.rows.iter().zip(&self.targets) {
            let error = (0..3).map(|k| w[k] * row[k]).sum::<S>() - *target;
            (0..3).for_each(|k| r[k] += error * row[k]);
        }
        r
    }
}

#[test]
fn ridge_weights_move_as_known() {
    let rows: Vec<[f64; 3]> =
        (0..12).map(|i| [1.0, (i as f64 * 0.7).sin(), (i as f64 * 1.3).cos() * 2.0]).collect();
    let targets = (0..12).map(|i| 0.3 * i as f64 - 1.0).collect();
    let ridge = Arc::new(Ridge { rows: rows.clone(), targets });
    let lambda = 0.5;
    for solver in both_linear(&Solver::newton()) {
        let (w, dw) =
            jvp(|l| root(ridge.clone(), &[0.0; 3], l, &solver).unwrap().x, &[lambda], &[1.0]).unwrap();
        // (X^T X + lambda I) dw = -w
        for i in 0..3 {
            let image: f64 =
                (0..3).map(|j| rows.iter().map(|row| row[i] * row[j]).sum::<f64>() * dw[j]).sum();
            close(image + lambda * dw[i], -w[i], 1e-9);
        }
        for k in 0..3 {
            let (_, g) =
                value_and_grad(|l| root(ridge.clone(), &[0.0; 3], l, &solver).unwrap().x[k], &[lambda])
                    .unwrap();
            close(g[0], dw[k], 1e-9);
        }
    }
}

/// Kepler's equation, with eccentricity and mean anomaly.
#[derive(Clone, Copy)]
struct Kepler;
impl Equation for Kepler {
    fn eval<S: Real>(&self, x: &[S], p: &[S]) -> Vec<S> {
        vec![x[0] - p[0] * x[0].sin() - p[1]]
    }
}

/// A function of a solution, its gradient, and the report after the sweep.
fn reported(
    solve: impl Fn(&[Var<f64>]) -> Result<Solution<Var<f64>>, ImplicitError>,
    of: impl Fn(&[Var<f64>]) -> Var<f64>,
    params: &[f64],
) -> (f64, Vec<f64>, SolverReport) {
    let mut report = None;
    let loss = |p: &[Var<f64>]| {
        let solution = solve(p).unwrap();
        report = Some(solution.report);
        of(&solution.x)
    };
    let (value, gradient) = value_and_grad(loss, params).unwrap();
    (value, gradient, report.unwrap())
}

#[test]
fn newton_finds_roots_whose_derivatives_are_known() {
    for (e, m) in [(0.3f64, 1.2f64), (0.9, 0.1), (0.99, 3.0), (0.0, 2.0)] {
        let (x, g, report) = reported(|p| root(Kepler, &[3.0], p, &Solver::newton()), |x| x[0], &[e, m]);
        let down = 1.0 - e * x.cos();
        close(g[0], x.sin() / down, 1e-13);
        close(g[1], 1.0 / down, 1e-13);
        assert!(report.iterations <= 12 && report.residual < 1e-14, "{report}");
        let derivative = report.derivative().expect("a sweep has asked for it");
        assert!(
            derivative.residual <= 1e-10 && derivative.direct && derivative.condition.unwrap() < 1.1,
            "{report}"
        );
    }
    // The k-th root of p.
    for k in [2, 3, 7] {
        let (x, g) = value_and_grad(
            |p| root_of(|x, p| vec![x[0].powi(k) - p[0]], &[2.0], p, &Solver::newton()).unwrap().x[0],
            &[5.0f64],
        )
        .unwrap();
        close(x, 5f64.powf(1.0 / f64::from(k)), 1e-14);
        close(g[0], x / (5.0 * f64::from(k)), 1e-14);
    }
    // A full step would leap away from the root: arctan needs damping from here.
    let solution = root_of(|x, _| vec![x[0].atan()], &[3.0], &[], &Solver::newton()).unwrap();
    close(solution.x[0].value(), 0.0, 1e-12);
}

#[test]
fn closures_over_var_are_taken_as_they_are() {
    let slope = 0.4; // data of the caller, borrowed
    let map = |x: &[Var<f64>], p: &[Var<f64>]| vec![x[1] * slope + p[0], (x[0] * p[1]).sin()];
    let loss = |p: &[Var<f64>]| fixed_point_of(map, &[0.0, 0.0], p, &Solver::anderson(3)).unwrap().x[0];
    let (x, g) = value_and_grad(loss, &[0.2, 0.8]).unwrap();
    let solve = |p: [f64; 2]| {
        let mut x = [0.0, 0.0];
        (0..500).for_each(|_| x = [x[1] * slope + p[0], (x[0] * p[1]).sin()]);
        x[0]
    };
    close(x, solve([0.2, 0.8]), 1e-11);
    close(g[0], (solve([0.2 + 1e-6, 0.8]) - solve([0.2 - 1e-6, 0.8])) / 2e-6, 1e-8);
    close(g[1], (solve([0.2, 0.8 + 1e-6]) - solve([0.2, 0.8 - 1e-6])) / 2e-6, 1e-8);
}

#[test]
fn anderson_needs_fewer_steps_and_converges_where_picard_does_not() {
    let params = |coupling: f64| {
        let mut p = vec![coupling];
        p.extend((0..30).map(|i| 0.1 * (i as f64).sin()));
        p
    };
    let iterations = |solver: &Solver, coupling: f64| {
        fixed_point(Ring, &[0.0; 30], &params(coupling), solver).map(|solution| solution.report.iterations)
    };
    let (picard, anderson) = (Solver::picard(), Solver::anderson(8));
    assert!(iterations(&anderson, 0.55).unwrap() < iterations(&picard, 0.55).unwrap());
    // x = -1.5 x + 1: Picard flies apart, Anderson and Newton do not care, and damping helps.
    let steep =
        |solver: &Solver| fixed_point(Affine(1), &[0.0], &[-1.5, 1.0], solver).map(|solution| solution.x[0]);
    assert!(steep(&picard).is_err());
    close(steep(&anderson).unwrap(), 0.4, 1e-12);
    close(steep(&Solver::newton()).unwrap(), 0.4, 1e-12);
    close(steep(&Solver::picard().damping(0.5)).unwrap(), 0.4, 1e-11);
}

#[test]
fn many_unknowns_are_solved_by_products_without_a_matrix() {
    let n = 400;
    let params: Vec<f64> =
        std::iter::once(0.5).chain((0..n).map(|i| (i as f64 * 0.37).sin() * 0.2)).collect();
    let gradient = |solver: &Solver| {
        let solve = |p: &[Var<f64>]| fixed_point(Ring, &vec![0.0; n], p, solver);
        let (_, g, report) = reported(solve, |x| x.iter().map(|x| *x * *x).sum(), &params);
        (g, report.derivative().unwrap())
    };
    let (by_products, report) = gradient(&Solver::anderson(5));
    assert!(!report.direct && report.products < 100 && report.residual <= 1e-10, "{report}");
    let (by_matrix, report) = gradient(&Solver::anderson(5).linear(LinearMethod::Direct));
    assert!(report.direct && report.products > n, "{report}");
    // Newton by products as well.
    for g in [by_products, gradient(&Solver::newton()).0] {
        g.iter().zip(&by_matrix).for_each(|(a, b)| close(*a, *b, 1e-8));
    }
}

#[test]
fn one_operation_stands_on_the_tape_however_many_iterations_there_were() {
    let mut tape = Tape::new();
    let nodes = |tape: &mut Tape<f64>, start: f64| {
        let mut iterations = 0;
        let record = tape.record(&[0.3], |p| {
            let solution = fixed_point(Cosine, &[start], p, &Solver::picard()).unwrap();
            iterations = solution.report.iterations;
            solution.x
        });
        (record.unwrap().size(), iterations)
    };
    let (near, few) = nodes(&mut tape, 0.9);
    let (far, many) = nodes(&mut tape, 40.0);
    assert!(few < many && near == far, "{few} {many} {near:?} {far:?}");
    assert_eq!(near.nodes, 2);
    assert!(near.bytes > 100); // the recording of the map is counted
}

#[test]
fn nothing_to_solve_and_nothing_to_differentiate_by_are_fine() {
    struct Nothing;
    impl Equation for Nothing {
        fn eval<S: Real>(&self, _: &[S], _: &[S]) -> Vec<S> {
            vec![]
        }
    }
    assert!(fixed_point(Nothing, &[0.0; 0], &[1.0], &Solver::newton()).unwrap().x.is_empty());
    let plain = fixed_point(Cosine, &[0.5], &[0.0], &Solver::newton()).unwrap();
    close(plain.x[0], 0.739_085_133_215_160_6, 1e-15);
    assert_eq!(plain.report.derivative(), None);
    assert!(plain.report.to_string().starts_with("Newton: "), "{}", plain.report);
}

#[test]
fn the_search_decides_nothing() {
    // Only what the equation itself decides counts.
    let (_, seen) = palinode_core::decision::watch(|| {
        value_and_grad(|p| fixed_point(Cosine, &[0.5], p, &Solver::anderson(2)).unwrap().x[0], &[0.0])
            .unwrap()
    });
    assert_eq!(seen.comparisons + seen.conversions, 0);
    let (_, seen) = palinode_core::decision::watch(|| {
        value_and_grad(|p| unrolled(Cosine, &[p[0] * 0.0], p, &Solver::picard()).unwrap().x[0], &[0.0])
            .unwrap()
    });
    assert!(seen.conversions > 0);
}
