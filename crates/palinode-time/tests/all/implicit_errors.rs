//! What has no solution or no derivative says so, with what was reached and what to do.

use crate::implicit::{Affine, Cosine, Ring};
use palinode_core::{Dual, Real, Var, grad, jvp, value_and_grad};
use palinode_time::implicit::{
    Equation, ImplicitError, LinearMethod, Solution, Solver, fixed_point, fixed_point_of, root, root_of,
    unrolled,
};

/// Why a solution has no tangent at p = 0.
fn in_forward_mode(
    solve: impl Fn(&[Dual<f64>]) -> Result<Solution<Dual<f64>>, ImplicitError>,
) -> ImplicitError {
    let mut failure = None;
    let of = |p: &[Dual<f64>]| match solve(p) {
        Ok(solution) => solution.x,
        Err(error) => {
            failure = Some(error);
            vec![]
        }
    };
    let _ = jvp(of, &[0.0], &[1.0]);
    failure.expect("no derivative")
}

/// x = x + p: at p = 0 every x is a fixed point, elsewhere none is.
struct Free;
impl Equation for Free {
    fn eval<S: Real>(&self, x: &[S], p: &[S]) -> Vec<S> {
        vec![x[0] + p[0], x[1] * 0.5 + p[0]]
    }
}

#[test]
fn a_singular_system_is_an_error_and_no_zeros() {
    for method in [LinearMethod::Direct, LinearMethod::Krylov] {
        let solver = Solver::picard().linear(method);
        // The whole solution, in every mode.
        let loss = |p: &[Var<f64>]| fixed_point(Free, &[1.0, 0.0], p, &solver).unwrap().x.into_iter().sum();
        let error = grad(loss, &[0.0]).unwrap_err();
        assert_eq!(error.code(), "PAL0542", "{error}");
        assert!(error.to_string().contains("no adjoint here"), "{error}");
        let failure = in_forward_mode(|p| fixed_point(Free, &[1.0, 0.0], p, &solver));
        assert!(matches!(failure, ImplicitError::NoDerivative { .. }), "{failure:?}");
    }
    // A matrix that is formed sees that the other component is not determined either, although its own
    // equation looks innocent.
    let second = |p: &[Var<f64>]| fixed_point(Free, &[1.0, 0.0], p, &Solver::picard()).unwrap().x[1];
    assert_eq!(grad(second, &[0.0]).unwrap_err().code(), "PAL0542");
}

#[test]
fn a_fold_has_no_derivative() {
    // x^2 = p at p = 0.
    let fold =
        |p: &[Var<f64>]| root_of(|x, p| vec![x[0] * x[0] - p[0]], &[0.0], p, &Solver::newton()).unwrap().x[0];
    assert_eq!(grad(fold, &[0.0]).unwrap_err().code(), "PAL0542");
}

/// (x - 1)^m = -p beside a harmless equation: at p = 0 a fold of order m, near which the linear system looks
/// innocent.
struct Fold(i32);
impl Equation for Fold {
    fn eval<S: Real>(&self, x: &[S], p: &[S]) -> Vec<S> {
        let away = x[0] - 1.0;
        vec![away.powi(self.0) + p[0], x[1] * 3.0 - x[0] * p[0] - 1e3]
    }
}

#[test]
fn a_fold_that_is_approached_has_no_derivative_either() {
    // x^2 = -p at p = 0: Newton halves the distance and stops at 1e-12, where the slope is 5e11.
    let square =
        |p: &[Var<f64>]| root_of(|x, p| vec![x[0] * x[0] + p[0]], &[1.0], p, &Solver::newton()).unwrap().x[0];
    let error = grad(square, &[0.0]).unwrap_err();
    assert_eq!(error.code(), "PAL0542");
    assert!(error.to_string().contains("changes by 50 %"), "{error}");

    for order in [2, 3, 4, 7] {
        for linear in [LinearMethod::Direct, LinearMethod::Krylov] {
            for tolerance in [1e-6, 1e-9, 1e-12] {
                let solver = Solver::newton().tolerance(tolerance).linear(linear);
                let solve = |p: &[Var<f64>]| {
                    root(Fold(order), &[1.5, 300.0], p, &solver.clone().iterations(1000)).unwrap().x[0]
                };
                let error = grad(solve, &[0.0]).unwrap_err();
                assert_eq!(error.code(), "PAL0542", "order {order}, {linear:?}, {tolerance}: {error}");
            }
        }
    }
    // Picard creeps towards it: x <- x - x^2.
    let creeping = Solver::picard().tolerance(1e-6);
    let creep = |p: &[Var<f64>]| {
        fixed_point_of(|x, p| vec![x[0] - x[0] * x[0] - p[0]], &[0.5], p, &creeping).unwrap().x[0]
    };
    assert_eq!(grad(creep, &[0.0]).unwrap_err().code(), "PAL0542");
    // Rounding makes the residual vanish near it: (x - 1)^2 = -p, multiplied out.
    for start in [0.3, 0.7, 1.5, 2.0, 3.0, 7.0, 1.0 + 1e-9] {
        let (mut found, solver) = (false, Solver::newton());
        let square = |p: &[Var<f64>]| {
            let solution = root_of(|x, p| vec![x[0] * x[0] - x[0] * 2.0 + 1.0 + p[0]], &[start], p, &solver);
            found = solution.is_ok();
            solution.map_or(p[0], |solution| solution.x[0])
        };
        let answer = grad(square, &[0.0]);
        assert!(found, "{start}");
        assert_eq!(answer.expect_err("no derivative").code(), "PAL0542", "{start}");
    }
    // In forward mode.
    let failure = in_forward_mode(|p| root(Fold(2), &[1.5, 300.0], p, &Solver::newton()));
    let ImplicitError::Undetermined { which: "derivative", error, change } = failure else {
        panic!("{failure:?}")
    };
    assert!(error < 1e-5 && change >= 0.5, "{error} {change}");
}

#[test]
fn near_a_fold_the_derivative_is_right_or_refused() {
    // x^2 = p at smaller and smaller p: 1 / (2 sqrt(p)), as long as the tolerance tells the root from the
    // fold.
    let (mut given, mut refused) = (0, 0);
    for exponent in 0..30 {
        let p = 0.1f64.powi(exponent);
        let solver = Solver::newton();
        let square =
            |p: &[Var<f64>]| root_of(|x, p| vec![x[0] * x[0] - p[0]], &[1.5], p, &solver).unwrap().x[0];
        match grad(square, &[p]) {
            Ok(g) => {
                given += 1;
                let exact = 0.5 / p.sqrt();
                // A matrix that is wrong by 10 % has an inverse that is wrong by 1 / 0.9 - 1.
                assert!((g[0] - exact).abs() <= 0.112 * exact, "{p}: {} and {exact}", g[0]);
            }
            Err(error) => {
                refused += 1;
                assert_eq!(error.code(), "PAL0542");
            }
        }
    }
    assert!(given > 20 && refused > 3, "{given} {refused}");
}

#[test]
fn an_equation_that_ends_beyond_its_solution_has_a_derivative_there() {
    // x = (x + p) / 2, from below; from just beyond on there is no equation.
    for linear in [LinearMethod::Direct, LinearMethod::Krylov] {
        for end in [1.0 - 1e-12, 1.0 + 1e-9] {
            let solver = Solver::picard().tolerance(1e-6).linear(linear);
            let map = |x: &[Var<f64>], p: &[Var<f64>]| {
                if x[0].primal() < end { vec![(x[0] + p[0]) * 0.5] } else { vec![] }
            };
            let solve = |p: &[Var<f64>]| fixed_point_of(map, &[0.0], p, &solver).unwrap().x[0];
            let g = grad(solve, &[1.0]).expect("a derivative");
            assert!((g[0] - 1.0).abs() < 1e-12, "{linear:?}, {end}: {g:?}");
        }
    }
    // An inner equation, y^2 = 1 + 1e-9 - x, that has no solution there.
    struct Inner;
    impl Equation for Inner {
        fn eval<S: Real>(&self, y: &[S], x: &[S]) -> Vec<S> {
            vec![y[0] * y[0] + x[0] - (1.0 + 1e-9)]
        }
    }
    let outer = |x: &[Var<f64>], p: &[Var<f64>]| match root(Inner, &[1.0], &x[..1], &Solver::newton()) {
        Ok(y) => vec![x[0] - p[0] + y.x[0] * 1e-9],
        Err(_) => vec![],
    };
    let solve = |p: &[Var<f64>]| root_of(outer, &[0.5], p, &Solver::newton()).unwrap().x[0];
    let g = grad(solve, &[1.0]).expect("a derivative");
    assert!((g[0] - 1.0).abs() < 1e-3, "{g:?}");
}

#[test]
fn a_system_of_high_condition_is_no_fold() {
    // A Hilbert matrix: linear, so its solution determines its derivative however ill conditioned it is.
    struct Hilbert;
    impl Equation for Hilbert {
        fn eval<S: Real>(&self, x: &[S], p: &[S]) -> Vec<S> {
            let row =
                |i: usize| (0..6).map(|j| x[j] / (i + j + 1) as f64).fold(-p[i], |sum, term| sum + term);
            (0..6).map(row).collect()
        }
    }
    for linear in [LinearMethod::Direct, LinearMethod::Krylov] {
        let solver = Solver::newton().tolerance(1e-9).linear(linear).linear_tolerance(1e-8);
        let g: Vec<f64> = grad(|p| root(Hilbert, &[0.0; 6], p, &solver).unwrap().x[0], &[1.0; 6]).unwrap();
        // The first row of the inverse.
        assert!((g[0] - 36.0).abs() < 1e-3 && (g[1] + 630.0).abs() < 1e-2, "{linear:?}: {g:?}");
    }
}

#[test]
fn iterations_that_run_out_tell_how_near_they_came() {
    // x = 2 - x swings between 0 and 2.
    let error = fixed_point(Affine(1), &[0.0], &[-1.0, 2.0], &Solver::picard().iterations(50)).unwrap_err();
    let ImplicitError::NotConverged { method: "Picard", iterations: 50, residual, smallest, .. } = error
    else {
        panic!("{error}");
    };
    assert!(residual > 0.5 && smallest <= residual);
    let text = error.to_string();
    assert!(
        text.starts_with("PAL0540: Picard did not converge") && text.contains("use Anderson or Newton"),
        "{text}"
    );

    // No root at all: Newton stops in the valley of x^2 + 1.
    let error = root_of(|x, _| vec![x[0] * x[0] + 1.0], &[3.0], &[], &Solver::newton()).unwrap_err();
    assert!(["PAL0540", "PAL0543"].contains(&error.code()), "{error}");

    let error = fixed_point(Ring, &[0.0; 8], &[0.9; 9], &Solver::anderson(2).iterations(2)).unwrap_err();
    assert!(
        matches!(error, ImplicitError::NotConverged { method: "Anderson", iterations: 2, .. }),
        "{error}"
    );

    let error = unrolled(Affine(1), &[0.0], &[-1.0, 2.0], &Solver::picard().iterations(50)).unwrap_err();
    assert_eq!(error.code(), "PAL0540");
}

#[test]
fn a_search_that_leaves_the_numbers_says_when() {
    let error = fixed_point(Affine(1), &[1.0], &[-1e30, 0.0], &Solver::picard()).unwrap_err();
    let ImplicitError::Diverged { method: "Picard", iteration, component: 0, value } = error else {
        panic!("{error}")
    };
    assert!(iteration > 5 && value.is_infinite());
    let error = fixed_point_of(|x, _| vec![x[0].sqrt() - 1.0], &[0.5], &[], &Solver::picard()).unwrap_err();
    assert_eq!(error.code(), "PAL0541", "{error}");
    let error = fixed_point(Cosine, &[f64::NAN], &[0.0], &Solver::newton()).unwrap_err();
    assert_eq!(error.code(), "PAL0541", "{error}");
}

#[test]
fn newton_names_a_matrix_that_it_cannot_use() {
    let error = root_of(|x, _| vec![x[0] + x[1] - 1.0, x[0] + x[1] - 2.0], &[0.0; 2], &[], &Solver::newton())
        .unwrap_err();
    assert_eq!(error.code(), "PAL0543", "{error}");
}

#[test]
fn lengths_and_limits_are_checked() {
    struct Two;
    impl Equation for Two {
        fn eval<S: Real>(&self, x: &[S], _: &[S]) -> Vec<S> {
            vec![x[0]; 2]
        }
    }
    for solver in [Solver::picard(), Solver::newton()] {
        let error = root(Two, &[0.0], &[1.0], &solver).unwrap_err();
        assert_eq!(error, ImplicitError::Length { what: "residual", expected: 1, found: 2 });
    }
    for wrong in [
        Solver::picard().tolerance(0.0),
        Solver::picard().tolerance(f64::NAN),
        Solver::picard().damping(1.5),
        Solver::newton().linear_tolerance(-1.0),
        Solver::newton().krylov(0, 10),
    ] {
        assert_eq!(fixed_point(Cosine, &[0.0], &[0.0], &wrong).unwrap_err().code(), "PAL0545");
        assert_eq!(unrolled(Cosine, &[0.0], &[0.0], &wrong).unwrap_err().code(), "PAL0545");
    }
}

#[test]
fn a_vertical_slope_at_the_solution_is_named() {
    // x = sqrt(p): no derivative at p = 0.
    let loss = |p: &[Var<f64>]| {
        fixed_point_of(|x, p| vec![x[0] * 0.5 + p[0].sqrt()], &[0.0], p, &Solver::picard()).unwrap().x[0]
    };
    let error = grad(loss, &[0.0]).unwrap_err();
    assert_eq!(error.code(), "PAL0546", "{error}");
}

#[test]
fn too_few_products_are_an_error_and_not_a_rough_answer() {
    let params: Vec<f64> = std::iter::once(0.9).chain((0..40).map(|i| (i as f64).cos() * 0.1)).collect();
    let loss = |solver: Solver| move |p: &[Var<f64>]| fixed_point(Ring, &[0.0; 40], p, &solver).unwrap().x[3];
    let solver = Solver::anderson(5).tolerance(1e-9).linear(LinearMethod::Krylov);
    assert!(value_and_grad(loss(solver.clone()), &params).is_ok());
    let error = value_and_grad(loss(solver.krylov(3, 3)), &params).unwrap_err();
    assert_eq!(error.code(), "PAL0548", "{error}");
    assert!(error.to_string().contains("the adjoint was not solved"), "{error}");
}

#[test]
fn a_captured_number_is_to_be_passed() {
    for solver in [Solver::picard(), Solver::anderson(3), Solver::newton()] {
        for is_root in [false, true] {
            let mut failure = None;
            let _ = grad(
                |p| {
                    let outside = p[0];
                    let function = |x: &[Var<f64>], _: &[Var<f64>]| vec![x[0] * 0.5 + outside];
                    let solution = if is_root {
                        root_of(function, &[0.0], p, &solver)
                    } else {
                        fixed_point_of(function, &[0.0], p, &solver)
                    };
                    failure = solution.err();
                    p[0]
                },
                &[1.0],
            );
            let error = failure.expect("a number from outside");
            assert!(matches!(error, ImplicitError::Captured { .. }) && error.code() == "PAL0547", "{error}");
            assert!(error.to_string().contains("pass it in `p`"), "{error}");
        }
        // A constant may be captured, and so may a value.
        let g = grad(
            |p| {
                let (constant, value) = (Var::lift(0.25), p[0].primal());
                let map = move |x: &[Var<f64>], p: &[Var<f64>]| vec![(x[0] * constant + p[0]) * value * 0.5];
                fixed_point_of(map, &[0.0], p, &solver).unwrap().x[0]
            },
            &[1.0],
        );
        // x = (x / 4 + p) v / 2 at v = 1: dx/dp = (1 / 2) / (1 - 1 / 8).
        assert!((g.unwrap()[0] - 4.0 / 7.0).abs() < 1e-11);
    }
}

#[test]
fn newton_that_diverges_is_not_advised_to_be_newton() {
    // exp(-x) has no root, and the search runs to infinity, where it vanishes.
    let error = root_of(|x, _| vec![(-x[0]).exp()], &[700.0], &[], &Solver::newton()).unwrap_err();
    let error = [error, fixed_point(Cosine, &[f64::NAN], &[0.0], &Solver::newton()).unwrap_err()];
    for error in error {
        assert!(!error.to_string().contains("use Newton"), "{error}");
    }
    // Where the start is at fault, no method helps.
    let error = fixed_point(Cosine, &[f64::INFINITY], &[0.0], &Solver::picard()).unwrap_err();
    assert!(error.code() == "PAL0541" && error.to_string().contains("the start"), "{error}");
    let error = fixed_point(Affine(1), &[1.0], &[-1e30, 0.0], &Solver::picard()).unwrap_err();
    assert!(error.to_string().contains("use Newton"), "{error}");
}

/// The second difference of n points, with fixed ends: its condition number is about n^2 / 2.
struct Laplacian;
impl Equation for Laplacian {
    fn eval<S: Real>(&self, x: &[S], p: &[S]) -> Vec<S> {
        let at = |k: usize| if k == 0 || k > x.len() { S::zero() } else { x[k - 1] };
        (1..=x.len()).map(|k| at(k) * 2.0 - at(k - 1) - at(k + 1) - p[0]).collect()
    }
}

#[test]
fn a_regular_matrix_that_products_do_not_solve_is_not_called_singular() {
    // u'' = -p: the middle of n points is p ((n + 1) / 2)^2 / 2.
    let slope = |n: usize, solver: &Solver| {
        let middle = |p: &[Var<f64>]| match root(Laplacian, &vec![0.0; n], p, solver) {
            Ok(solution) => solution.x[n / 2],
            Err(error) => panic!("{error}"),
        };
        grad(middle, &[1.0]).map(|g| g[0] / ((n + 1) as f64).powi(2) * 8.0)
    };
    // By the default, whether the matrix is factored at once or after products did not get there.
    for n in [101, 301] {
        let part = slope(n, &Solver::newton()).expect("a derivative");
        assert!((part - 1.0).abs() < 1e-8, "{n}: {part}");
    }
    // By products alone it is said what they came to, and what helps; and it does help.
    let few = Solver::newton().linear(LinearMethod::Krylov).krylov(100, 20);
    let error = root(Laplacian, &[0.0; 201], &[1.0], &few).unwrap_err();
    let ImplicitError::LinearNotConverged {
        which: "Newton step",
        residual,
        products: 20..=120,
        unknowns: 201,
        ..
    } = error
    else {
        panic!("{error}")
    };
    assert!(residual > 1e-10 && error.code() == "PAL0548", "{error}");
    assert!(
        error.to_string().contains("LinearMethod::Direct, 201 x 201")
            && error.to_string().contains(".krylov")
    );
    for helps in [
        Solver::newton().linear(LinearMethod::Direct),
        Solver::newton().linear(LinearMethod::Krylov).krylov(1000, 201),
    ] {
        let part = slope(201, &helps).expect("a derivative");
        assert!((part - 1.0).abs() < 1e-8, "{part}");
    }
}

#[test]
fn a_singular_matrix_is_called_so_with_evidence() {
    let of = |linear: LinearMethod| {
        let solver = Solver::picard().linear(linear);
        let loss = |p: &[Var<f64>]| fixed_point(Free, &[1.0, 0.0], p, &solver).unwrap().x.into_iter().sum();
        grad(loss, &[0.0]).unwrap_err().to_string()
    };
    let direct = of(LinearMethod::Direct);
    assert!(direct.contains("singular to working precision (condition number inf)"), "{direct}");
    let products = of(LinearMethod::Krylov);
    assert!(
        products.contains("the matrix of its linear system is singular: after all directions that"),
        "{products}"
    );
    // Nearly singular: the condition number is named.
    struct Near(f64);
    impl Equation for Near {
        fn eval<S: Real>(&self, x: &[S], p: &[S]) -> Vec<S> {
            vec![x[0] + x[1] - p[0], x[0] + x[1] * (1.0 + self.0) - p[0] * 2.0]
        }
    }
    let error = root(Near(3e-16), &[0.0; 2], &[1.0], &Solver::newton()).unwrap_err();
    assert_eq!(error.code(), "PAL0543");
    let text = error.to_string();
    let number =
        text.split("condition number ").nth(1).and_then(|rest| rest.split(')').next()).expect("it is named");
    // |A| |A^-1| = 2 * 2 / 2.2e-16, the distance having been rounded to one unit.
    assert!((number.parse::<f64>().expect("a number") / 1.8e16 - 1.0).abs() < 0.2, "{text}");
}
