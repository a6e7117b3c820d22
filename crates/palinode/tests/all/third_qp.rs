//! clarabel, an interior-point solver of convex programs, differentiated unmodified: every iteration is on
//! the tape.
//!
//! The solution of `min x'Px/2 + q'x` subject to `a'x = b` and bounds is differentiated by `q`, `b` and a
//! bound, and compared with the solution of its optimality conditions. The solver stops at gaps of 1e-8, so
//! the gradient is good to about the root of that where a bound is active; 1e-6 is asked for.

use crate::check::{Function, Number, assert_gradient, constant, function};
use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus, ZeroConeT};

// `x_0 + 2 x_1 - x_2` at the solution, by (`q_0`, `q_1`, `q_2`, `b`, upper bound of `x_1`).
function!(Solution: |x: &[T]| {
    let [zero, one] = [0.0, 1.0].map(constant::<T>);
    let hessian = CscMatrix::new(
        3,
        3,
        vec![0, 1, 3, 5],
        vec![0, 0, 1, 1, 2],
        [4.0, 1.0, 3.0, 0.5, 2.0].map(constant::<T>).to_vec(),
    );
    // The sum of x is b, and x_1 is at most its bound.
    let rows = CscMatrix::from(&[[one, one, one], [zero, one, zero]]);
    let settings = DefaultSettings { verbose: false, ..DefaultSettings::default() };
    let cones = [ZeroConeT(1), NonnegativeConeT(1)];
    let mut solver = DefaultSolver::new(&hessian, &x[..3], &rows, &x[3..], &cones, settings).unwrap();
    solver.solve();
    assert_eq!(solver.solution.status, SolverStatus::Solved);
    let s = &solver.solution.x;
    s[0] + constant::<T>(2.0) * s[1] - s[2]
});

/// The gradient from the optimality conditions with this set of active rows: `K [x; y] = [-q; b]`.
fn expected(bound_is_active: bool) -> Vec<f64> {
    let n = if bound_is_active { 5 } else { 4 };
    let k = [
        [4.0, 1.0, 0.0, 1.0, 0.0],
        [1.0, 3.0, 0.5, 1.0, 1.0],
        [0.0, 0.5, 2.0, 1.0, 0.0],
        [1.0, 1.0, 1.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0, 0.0],
    ];
    let k = nalgebra::DMatrix::from_fn(n, n, |i, j| k[i][j]);
    let objective = nalgebra::DVector::from_fn(n, |i, _| [1.0, 2.0, -1.0, 0.0, 0.0][i]);
    let y = k.lu().solve(&objective).unwrap();
    (0..5)
        .map(|i| {
            if i < 3 {
                -y[i]
            } else if i < n {
                y[i]
            } else {
                0.0
            }
        })
        .collect()
}

#[test]
fn a_quadratic_program_with_a_bound() {
    let free = [1.0, -1.0, 0.5, 1.0, 2.0];
    assert_gradient("clarabel, bound not active", &Solution, &free, &expected(false), 1e-6);
    let tight = [1.0, -1.0, 0.5, 1.0, 0.2];
    assert_gradient("clarabel, bound active", &Solution, &tight, &expected(true), 1e-6);
}
