//! Other reverse sweeps than with every step on a tape: windows, clipping, rules, undoing.

use crate::models::{Affine, CHAOTIC, Lattice, Leapfrog, Lorenz, SCHEDULES, affine, bits, squares};
use palinode_core::{Passive, Real, Var};
use palinode_macros::step;
use palinode_time::{
    Error, Number, ReversibleStep, Rollout, RolloutReport, Schedule, Step, StepRule, Verdict,
};

#[test]
fn a_window_carries_cotangents_no_further() {
    // A contraction: dx_N/db sums over the steps of the window.
    let exact = Rollout::new(Affine).steps(400).value_and_grad(&1.0, &[0.9, 0.5], |x| *x).unwrap();
    for window in [10, 40, 100] {
        let run = Rollout::new(Affine).steps(400).truncate(window);
        let cut = run.value_and_grad(&1.0, &[0.9, 0.5], |x| *x).unwrap();
        let by_b = (1.0 - 0.9_f64.powi(window as i32)) / 0.1;
        assert!((cut.params[1] - by_b).abs() < 1e-10, "{} and {by_b}", cut.params[1]);
        let truncation = cut.report.truncation.expect("it was cut");
        assert!((truncation.largest_cut / 0.9_f64.powi(window as i32) - 1.0).abs() < 1e-10);
        assert_eq!((truncation.cuts, truncation.exact_part, cut.initial), (1, None, 0.0));
        assert!(cut.report.forward <= 400 + window);
    }
    let whole = Rollout::new(Affine).steps(400).truncate(400).value_and_grad(&1.0, &[0.9, 0.5], |x| *x);
    let whole = whole.unwrap();
    assert_eq!(bits(&whole), bits(&exact));
    assert_eq!(whole.report.truncation, None);
}

#[test]
fn windows_along_the_way_cut_each_loss() {
    let loss = |_: u64, x: &Var<f64>| *x;
    let run = Rollout::new(Affine).steps(100);
    let cut = run.truncate(10).value_and_grad_along(&1.0, &[0.9, 0.5], loss).unwrap();
    // By hand: within a window of 10 steps, dx_t/db sums over the steps since the window's start.
    let by_b: f64 = (0..10).flat_map(|_| (1..=10).map(|k| (1.0 - 0.9_f64.powi(k)) / 0.1)).sum();
    assert!((cut.params[1] - by_b).abs() < 1e-10, "{} and {by_b}", cut.params[1]);
    assert_eq!(cut.report.truncation.expect("it was cut").cuts, 9);
}

#[test]
fn clipping_never_enlarges_and_takes_numbers_whose_squares_do_not_exist() {
    let clipped = |norm: f64, slope: f64| {
        let run = Rollout::new(Affine).steps(1).clip(norm);
        let gradient = run.value_and_grad(&1.0, &[slope, 0.0], |x| *x).unwrap();
        (gradient.initial, gradient.report.health.clipped())
    };
    for norm in [1e-160, 1e-170, 1.0, 1e200] {
        assert_eq!(clipped(norm, 1e-200), (1e-200, 0), "{norm:e}");
    }
    assert_eq!(clipped(1e-160, 0.0), (0.0, 0));
    for (norm, slope) in [(1e-200, 1e-170), (1e-160, 1e-158), (1e200, 1e250)] {
        let (found, times) = clipped(norm, slope);
        assert!((found / norm - 1.0).abs() < 1e-15 && times == 1, "{norm:e}, {slope:e}: {found:e}");
    }
}

#[test]
fn every_reverse_sweep_tells_how_close_a_condition_came() {
    let run = || Rollout::new(Affine).until(|x: &Passive<f64>| *x > 1.9);
    let stop = |report: &RolloutReport| report.stop.expect("it stopped by a condition");
    let first = stop(&run().value_and_grad(&1.0, &[0.5, 1.0], |x| *x).unwrap().report);
    let direction: (&f64, &[f64; 2]) = (&1.0, &[0.0, 0.0]);
    let (gradient, product) = run().hvp(&1.0, &[0.5, 1.0], direction, |x| *x).unwrap();
    assert!(first.smallest().expect("a margin") > 0.0);
    assert_eq!((stop(&gradient.report), stop(&product.report)), (first, first));
    // The steps are counted first, so a window goes with a condition here.
    let (window, _) = run().truncate(2).hvp(&1.0, &[0.5, 1.0], direction, |x| *x).unwrap();
    assert_eq!((stop(&window.report), window.initial), (first, 0.0));
    let at_once = Rollout::new(Affine).until(|x| *x > 0.5).hvp(&1.0, &[0.5, 1.0], direction, |x| *x);
    let margin = stop(&at_once.unwrap().0.report);
    assert_eq!((margin.at_stop, margin.before_stop), (0.5, f64::INFINITY));
    let swings = || Rollout::new(Leapfrog).until(|[x, _]| *x < 0.5);
    let kept = swings().value_and_grad(&[1.0, 0.0], &1.3, |[x, _]| *x).unwrap();
    let undone = swings().value_and_grad_by_undoing(&[1.0, 0.0], &1.3, |[x, _]| *x).unwrap();
    assert_eq!(stop(&undone.report), stop(&kept.report));
}

#[test]
fn a_chaotic_cotangent_grows_by_the_lyapunov_exponent() {
    // The largest Lyapunov exponent of the Lorenz system is 0.906; per step of 0.001.
    let run = Rollout::new(Lorenz).steps(40_000).schedule(Schedule::Binomial { snapshots: 200 });
    let health = run.value_and_grad(&[1.0, 1.0, 20.0], &CHAOTIC, squares).unwrap().report.health;
    let exponent = health.growth_rate().expect("enough steps") * 1000.0;
    assert!((exponent - 0.906).abs() < 0.15, "{exponent}");
    assert_eq!(health.verdict(), Verdict::Exploding);
}

#[test]
fn a_rule_gives_what_the_tape_gives_and_is_checked() {
    let run = || Rollout::new(Affine).steps(200);
    run().check_rule(&1.5, &[0.97, 0.3], 10).expect("a right rule");
    let by_tape = run().value_and_grad(&1.5, &[0.97, 0.3], |x| *x).unwrap();
    let by_rule =
        |schedule| run().by_rule().schedule(schedule).value_and_grad(&1.5, &[0.97, 0.3], |x| *x).unwrap();
    let reference = by_rule(Schedule::Best);
    for i in 0..2 {
        assert!((reference.params[i] - by_tape.params[i]).abs() < 1e-12 * by_tape.params[i].abs());
    }
    for schedule in SCHEDULES {
        assert_eq!(bits(&by_rule(schedule)), bits(&reference), "{schedule:?}");
    }
}

/// The rule of [`Affine`] with a planted mistake.
#[step(Planted)]
fn planted<S: Number>(x: &mut S, params: &[S; 2]) {
    affine(x, params);
}

impl StepRule for Planted {
    fn reverse<S: Number>(
        &self,
        before: &S,
        [a, _]: &[S; 2],
        _: &(),
        of_state: &mut S,
        [of_a, of_b]: &mut [S; 2],
        _: &mut (),
    ) {
        *of_a += *before * *of_state;
        *of_b -= *of_state;
        *of_state = *a * *of_state;
    }
}

#[test]
fn a_wrong_rule_is_named() {
    let error = Rollout::new(Planted).check_rule(&1.5, &[0.97, 0.3], 3).expect_err("a flipped sign");
    assert!(matches!(error, Error::WrongRule { what: "parameter", position: 1, step: 0, .. }), "{error}");
}

#[test]
fn undoing_drifts_in_floats_and_not_on_a_lattice() {
    const STEPS: u64 = 100_000;
    let loss = |[x, v]: &[Var<f64>; 2]| *x * *x + *v;
    let start = [1.0, 0.25];
    let floats = Rollout::new(Leapfrog).steps(STEPS).value_and_grad_by_undoing(&start, &1.3, loss).unwrap();
    let drift = floats.report.drift.expect("it is measured");
    assert!(drift > 0.0 && drift < 1e-10, "{drift}");
    let reference = Rollout::new(Leapfrog).steps(STEPS).value_and_grad(&start, &1.3, loss).unwrap();
    assert!((floats.params - reference.params).abs() <= 1e-9 * reference.params.abs());
    let lattice = Rollout::new(Lattice).steps(STEPS).value_and_grad_by_undoing(&start, &1.3, loss).unwrap();
    assert_eq!((lattice.report.drift, lattice.report.snapshots), (Some(0.0), 0));
    let kept = Rollout::new(Lattice).steps(STEPS).value_and_grad(&start, &1.3, loss).unwrap();
    assert_eq!(bits(&lattice), bits(&kept), "the states came back bit for bit");
}

/// A leapfrog whose step back has a sign wrong, or forgets a part that matters only later.
struct WrongBack {
    sign: f64,
    late: bool,
}

impl Step for WrongBack {
    type State<S: Number> = [S; 2];
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Real>(&self, [x, v]: &mut [S; 2], k: &S, _: &()) {
        *v -= *k * *x * 0.01;
        *x += *v * 0.01;
        if self.late && *x < 0.0 {
            *v *= 0.99;
        }
    }
}

impl ReversibleStep for WrongBack {
    fn step_back<S: Real>(&self, [x, v]: &mut [S; 2], k: &S, _: &()) {
        *x -= *v * 0.01;
        *v += *k * *x * 0.01 * self.sign;
    }
}

#[test]
fn a_step_back_that_does_not_undo_is_reported() {
    let undo = |sign, late| {
        let run = Rollout::new(WrongBack { sign, late }).steps(2000);
        run.value_and_grad_by_undoing(&[1.0, 0.25], &1.3, |[x, v]| *x * *x + *v)
    };
    assert!(undo(1.0, false).unwrap().report.drift.is_some_and(|drift| drift < 1e-10));
    let first = undo(-1.0, false).expect_err("a wrong sign");
    assert!(matches!(first, Error::DoesNotUndo { step: 0, drift } if drift > 0.01), "{first}");
    let later = undo(1.0, true).expect_err("a part forgotten");
    assert!(matches!(later, Error::DoesNotUndo { step, drift } if step > 0 && drift > 0.005), "{later}");
    // So little each time that only the sum of all shows.
    let run = Rollout::new(Mistake::Imprecise).steps(2000);
    let slowly = run.value_and_grad_by_undoing(&[1.0, 1.0], &1.0, |[_, x]| *x).expect_err("it adds up");
    assert!(matches!(slowly, Error::DriftedTooFar { steps: 2000, drift } if drift > 0.01), "{slowly}");
    assert_eq!((first.code(), later.code(), slowly.code()), ("PAL0537", "PAL0537", "PAL0537"));
}

/// What its step back makes of the second number: forgets it, makes it NaN, or gets it wrong by a little.
#[derive(Clone, Copy)]
enum Mistake {
    Forgets,
    DividesByZero,
    Imprecise,
}

impl Step for Mistake {
    type State<S: Number> = [S; 2];
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Real>(&self, [t, x]: &mut [S; 2], a: &S, _: &()) {
        *t += 1.0;
        *x *= *a;
    }
}

impl ReversibleStep for Mistake {
    fn step_back<S: Real>(&self, [t, x]: &mut [S; 2], a: &S, _: &()) {
        *t -= 1.0;
        match self {
            Mistake::Forgets => {}
            Mistake::DividesByZero => *x = *x * f64::INFINITY * (*a * 0.0),
            Mistake::Imprecise => *x /= *a * (1.0 + 8e-6),
        }
    }
}

#[test]
fn a_small_number_or_none_is_not_overlooked_by_undoing() {
    for mistake in [Mistake::Forgets, Mistake::DividesByZero] {
        let run = Rollout::new(mistake).steps(30);
        let error = run.value_and_grad_by_undoing(&[1e6, 1.0], &0.9, |[_, x]| *x).expect_err("not undone");
        assert!(matches!(error, Error::DoesNotUndo { step: 0, .. }), "{error}");
    }
}
