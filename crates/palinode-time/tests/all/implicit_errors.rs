//! What has no solution or no derivative says so, with what was reached and what to do.

use crate::implicit::{Affine, Cosine, Ring};
use palinode_core::{Real, grad, jvp, value_and_grad};
use palinode_time::implicit::{
    Equation, ImplicitError, LinearMethod, Solver, fixed_point, fixed_point_of, root, root_of, unrolled,
};

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
        let loss = |p: &[palinode_core::Var<f64>]| {
            fixed_point(Free, &[1.0, 0.0], p, &solver).unwrap().x.into_iter().sum()
        };
        let error = grad(loss, &[0.0]).unwrap_err();
        assert_eq!(error.code(), "PAL0542", "{error}");
        assert!(error.to_string().contains("no adjoint here"), "{error}");
        let mut failure = None;
        let _ = jvp(
            |p| match fixed_point(Free, &[1.0, 0.0], p, &solver) {
                Ok(solution) => solution.x,
                Err(error) => {
                    failure = Some(error);
                    vec![]
                }
            },
            &[0.0],
            &[1.0],
        );
        assert!(matches!(failure, Some(ImplicitError::NoDerivative { .. })), "{failure:?}");
    }
    // A matrix that is formed sees that the other component is not determined either, although its own equation looks innocent.
    let second =
        |p: &[palinode_core::Var<f64>]| fixed_point(Free, &[1.0, 0.0], p, &Solver::picard()).unwrap().x[1];
    assert_eq!(grad(second, &[0.0]).unwrap_err().code(), "PAL0542");
}

#[test]
fn a_fold_has_no_derivative() {
    // x^2 = p at p = 0.
    let fold = |p: &[palinode_core::Var<f64>]| {
        root_of(|x, p| vec![x[0] * x[0] - p[0]], &[0.0], p, &Solver::newton()).unwrap().x[0]
    };
    assert_eq!(grad(fold, &[0.0]).unwrap_err().code(), "PAL0542");
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

    let error = unrolled(&Affine(1), &[0.0], &[-1.0, 2.0], &Solver::picard().iterations(50)).unwrap_err();
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
        assert_eq!(unrolled(&Cosine, &[0.0], &[0.0], &wrong).unwrap_err().code(), "PAL0545");
    }
}

#[test]
fn a_vertical_slope_at_the_solution_is_named() {
    // x = sqrt(p): no derivative at p = 0.
    let loss = |p: &[palinode_core::Var<f64>]| {
        fixed_point_of(|x, p| vec![x[0] * 0.5 + p[0].sqrt()], &[0.0], p, &Solver::picard()).unwrap().x[0]
    };
    let error = grad(loss, &[0.0]).unwrap_err();
    assert_eq!(error.code(), "PAL0546", "{error}");
}

#[test]
fn too_few_products_are_an_error_and_not_a_rough_answer() {
    let params: Vec<f64> = std::iter::once(0.9).chain((0..40).map(|i| (i as f64).cos() * 0.1)).collect();
    let loss = |solver: Solver| {
        move |p: &[palinode_core::Var<f64>]| fixed_point(Ring, &[0.0; 40], p, &solver).unwrap().x[3]
    };
    let solver = Solver::anderson(5).tolerance(1e-9).linear(LinearMethod::Krylov);
    assert!(value_and_grad(loss(solver.clone()), &params).is_ok());
    let error = value_and_grad(loss(solver.krylov(3, 3)), &params).unwrap_err();
    assert_eq!(error.code(), "PAL0542", "{error}");
    assert!(error.to_string().contains("condition number unknown"), "{error}");
}

#[test]
#[should_panic(expected = "tape")]
fn a_captured_variable_of_the_outer_tape_is_refused() {
    let _ = grad(
        |p| {
            let outside = p[0];
            fixed_point_of(|x, _| vec![x[0] * 0.5 + outside], &[0.0], p, &Solver::picard()).unwrap().x[0]
        },
        &[1.0],
    );
}
