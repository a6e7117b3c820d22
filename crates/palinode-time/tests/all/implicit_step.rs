//! Steps that solve equations: implicit Euler, in rollouts of every kind.

use crate::models::{SCHEDULES, bits};
use palinode_core::{Dual, Real, Var};
use palinode_time::implicit::{Equation, Implicit, Solver, root};
use palinode_time::{Error, Notes, Number, Rollout, Step};

const DT: f64 = 0.05;

/// `x - before + dt (k x + c x^3) = 0`: the state after a step of implicit Euler for `x' = -k x - c x^3`.
struct After;

impl Equation for After {
    fn eval<S: Real>(&self, x: &[S], p: &[S]) -> Vec<S> {
        let (x, before, k, c) = (x[0], p[0], p[1], p[2]);
        vec![x - before + (k * x + c * x * x * x) * DT]
    }
}

/// A step of it.
#[derive(Default)]
struct Decay(Notes);

impl Step for Decay {
    type State<S: Number> = S;
    type Params<S: Number> = [S; 2];
    type Input<S: Number> = ();
    fn step<S: Real + Implicit>(&self, x: &mut S, [k, c]: &[S; 2], _: &()) {
        match root(After, &[*x], &[*x, *k, *c], &Solver::newton()) {
            Ok(solution) => *x = solution.x[0],
            Err(error) => self.0.fail(error.to_string()),
        }
    }
    fn notes(&self) -> Option<&Notes> {
        Some(&self.0)
    }
}

fn run(steps: u64) -> Rollout<'static, Decay> {
    Rollout::new(Decay::default()).steps(steps)
}

#[test]
fn the_gradient_of_implicit_euler_is_the_closed_form() {
    // Without the cubic term a step divides by 1 + dt k.
    let (start, k, steps) = (1.5, 0.8, 60);
    let gradient = run(steps).value_and_grad(&start, &[k, 0.0], |x| *x).unwrap();
    let factor = 1.0 + DT * k;
    let last = start / factor.powi(60);
    let close = |found: f64, exact: f64| (found - exact).abs() <= 1e-12 * exact.abs();
    assert!(close(gradient.value, last), "{} and {last}", gradient.value);
    assert!(close(gradient.initial, last / start), "{gradient:?}");
    assert!(close(gradient.params[0], -60.0 * DT * last / factor), "{gradient:?}");
    // By c: what each step loses is carried on by the linear part.
    let by_c: f64 = (1..=60).map(|n| -DT * (start / factor.powi(n)).powi(3) / factor.powi(61 - n)).sum();
    assert!(close(gradient.params[1], by_c), "{gradient:?} and {by_c}");
}

#[test]
fn equations_inside_steps_go_through_every_driver() {
    let (start, params) = (1.5, [0.8, 0.6]);
    let reference = run(40).value_and_grad(&start, &params, |x| *x * *x).unwrap();
    for schedule in SCHEDULES {
        let gradient = run(40).schedule(schedule).value_and_grad(&start, &params, |x| *x * *x);
        assert_eq!(bits(&gradient.unwrap()), bits(&reference), "{schedule:?}");
    }
    let value = |k: f64| run(40).run(&start, &[k, 0.6]).unwrap().powi(2);
    let difference = (value(0.8 + 1e-5) - value(0.8 - 1e-5)) / 2e-5;
    assert!((reference.params[0] - difference).abs() < 1e-8 * difference.abs());
    let direction: (&f64, &[f64; 2]) = (&0.3, &[1.0, -0.5]);
    let (_, forward) = run(40).jvp(&start, &params, direction, |x: &Dual<f64>| *x * *x).unwrap();
    let reverse = 0.3 * reference.initial + reference.params[0] - 0.5 * reference.params[1];
    assert!((forward - reverse).abs() < 1e-10 * reverse.abs(), "{forward} and {reverse}");
    let (first, second) = run(40)
        .hvp(&start, &params, direction, |x: &Var<Dual<f64>>| *x * *x)
        .expect("a Hessian-vector product");
    assert!((first.params[0] - reference.params[0]).abs() < 1e-12 * reference.params[0].abs());
    let moved = |h: f64| {
        let params = [params[0] + h, params[1] - 0.5 * h];
        run(40).value_and_grad(&(start + 0.3 * h), &params, |x| *x * *x).unwrap().params[1]
    };
    let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
    assert!(
        (second.params[1] - difference).abs() < 1e-6 * difference.abs(),
        "{} {difference}",
        second.params[1]
    );
}

#[test]
fn an_equation_without_a_solution_ends_the_rollout_at_its_step() {
    /// x^2 + p = 0, p growing from below zero.
    struct Roots;
    impl Equation for Roots {
        fn eval<S: Real>(&self, x: &[S], p: &[S]) -> Vec<S> {
            vec![x[0] * x[0] + p[0]]
        }
    }
    #[derive(Default)]
    struct Rising(Notes);
    impl Step for Rising {
        type State<S: Number> = [S; 2];
        type Params<S: Number> = ();
        type Input<S: Number> = ();
        fn step<S: Real + Implicit>(&self, [p, x]: &mut [S; 2], _: &(), _: &()) {
            *p += 1.0;
            match root(Roots, &[*x], &[*p], &Solver::newton()) {
                Ok(solution) => *x = solution.x[0],
                Err(error) => self.0.fail(error.to_string()),
            }
        }
        fn notes(&self) -> Option<&Notes> {
            Some(&self.0)
        }
    }
    let run = Rollout::new(Rising::default()).steps(10);
    let error = run.value_and_grad(&[-3.5, 2.0], &(), |[_, x]| *x).expect_err("no real root");
    let Error::StepFailed { step, reason } = error else { panic!("{error}") };
    assert!(step == 3 && reason.contains("PAL054"), "{step}: {reason}");
}
