//! Decisions that exist only at the state of one step, and numbers of an outer driver, in rollouts and
//! forward gradients.

use palinode_core::{Dual, DualN, Key, Scalar, Var, decision, jvp};
use palinode_time::{
    Batch, Directions, Error, Number, Perturbed, ReversibleStep, Rollout, Schedule, Step, StepRule,
    forward_gradient,
};

use crate::models::smallest;

/// A speed that falls by 1 a step, and what it adds to `x`: by some rule of the speed and a parameter.
struct Falling(Rule);

#[derive(Clone, Copy, PartialEq)]
enum Rule {
    /// `k v`, which code that skips zeros leaves out.
    Skipped,
    /// The same where `v` is at most 1e-7.
    SkippedSmall,
    /// `k v^2`, likewise: right up to the first derivative.
    SkippedSquare,
    /// `k |v|` by hand.
    Kink,
    /// `k sin(v)/v` by hand.
    Quotient,
    /// `k v` and `k sin(v)/v`, guarded by `is_zero`, to which a zero with a derivative says no.
    AskedSkipped,
    AskedQuotient,
}

fn is_small<S: Number>(v: S) -> bool {
    v * v <= <S as Scalar>::from_f64(1e-14)
}

/// As libraries ask.
fn is_zero<S: Number>(v: S) -> bool {
    #[cfg(feature = "nalgebra")]
    return v.is_zero();
    #[cfg(not(feature = "nalgebra"))]
    return v == <S as Scalar>::zero();
}

impl Step for Falling {
    type State<S: Number> = [S; 2];
    type Params<S: Number> = [S; 1];
    type Input<S: Number> = ();
    fn step<S: Number>(&self, [x, v]: &mut [S; 2], [k]: &[S; 1], _: &()) {
        match self.0 {
            Rule::Skipped if *v == <S as Scalar>::zero() => {}
            Rule::SkippedSmall if is_small(*v) => {}
            Rule::Skipped | Rule::SkippedSmall => *x += *k * *v,
            Rule::SkippedSquare if *v == <S as Scalar>::zero() => {}
            Rule::SkippedSquare => *x += *k * *v * *v,
            Rule::Kink => *x += if *v > <S as Scalar>::zero() { *k * *v } else { -*k * *v },
            Rule::Quotient if *v == <S as Scalar>::zero() => *x += *k,
            Rule::Quotient => *x += *k * Scalar::sin(*v) / *v,
            Rule::AskedSkipped if is_zero(*v) => {}
            Rule::AskedSkipped => *x += *k * *v * *v / *v,
            Rule::AskedQuotient if is_zero(*v) => *x += *k,
            Rule::AskedQuotient => *x += *k * Scalar::sin(*v) / *v,
        }
        *v -= 1.0;
    }
}

/// By the same short cuts.
impl StepRule for Falling {
    fn reverse<S: Number>(
        &self,
        [_, v]: &[S; 2],
        [k]: &[S; 1],
        _: &(),
        [cx, cv]: &mut [S; 2],
        [ck]: &mut [S; 1],
        _: &mut (),
    ) {
        let (slope, value) = match self.0 {
            Rule::Skipped | Rule::SkippedSquare if *v == <S as Scalar>::zero() => return,
            Rule::SkippedSmall if is_small(*v) => return,
            Rule::AskedSkipped if is_zero(*v) => return,
            Rule::Skipped | Rule::SkippedSmall | Rule::AskedSkipped => (*k, *v),
            Rule::SkippedSquare => (*k * *v * 2.0, *v * *v),
            Rule::Kink if *v > <S as Scalar>::zero() => (*k, *v),
            Rule::Kink => (-*k, -*v),
            Rule::Quotient | Rule::AskedQuotient if *v == <S as Scalar>::zero() => {
                (<S as Scalar>::zero(), <S as Scalar>::one())
            }
            Rule::Quotient | Rule::AskedQuotient => {
                let (sin, cos) = (Scalar::sin(*v), Scalar::cos(*v));
                (*k * (cos / *v - sin / (*v * *v)), sin / *v)
            }
        };
        *ck += value * *cx;
        *cv += slope * *cx;
    }
}

impl ReversibleStep for Falling {
    fn step_back<S: Number>(&self, [x, v]: &mut [S; 2], k: &[S; 1], _: &()) {
        *v += 1.0;
        let mut step = [<S as Scalar>::zero(), *v];
        self.step(&mut step, k, &());
        *x -= step[0];
    }
}

const K: f64 = 0.7;

fn rollout(rule: Rule, steps: u64) -> Rollout<'static, Falling> {
    Rollout::new(Falling(rule)).steps(steps)
}

fn is_of_step(error: &Error, at: u64) {
    assert_eq!(error.code(), "PAL0119", "{error}");
    let Error::OfPoint { step, .. } = error else { panic!("{error}") };
    assert_eq!(*step, at, "{error}");
    assert!(error.to_string().contains(&format!("step {at}")), "{error}");
}

/// A loss whose path exists at zero only, in reverse and forward.
fn is_refused_as_a_loss(of_var: fn(&[Var<f64>; 2]) -> Var<f64>, of_dual: fn(&[Dual<f64>; 2]) -> Dual<f64>) {
    let run = rollout(Rule::Kink, 0);
    assert_eq!(run.value_and_grad(&[0.0, 1.0], &[K], of_var).unwrap_err().code(), "PAL0119");
    let forward = run.jvp(&[0.0, 1.0], &[K], (&[1.0, 0.0], &[0.0]), of_dual);
    assert_eq!(forward.unwrap_err().code(), "PAL0119");
}

#[test]
fn a_step_whose_path_exists_at_its_state_only_is_refused_by_every_reverse_sweep() {
    let loss = |[x, _]: &[Var<f64>; 2]| *x * 2.0;
    // From 3.5 the speed is never zero: x = k sum of (v - i).
    let right = rollout(Rule::Skipped, 8).value_and_grad(&[0.0, 3.5], &[K], loss).unwrap();
    assert!((right.initial[1] - 2.0 * 8.0 * K).abs() < 1e-14);
    // From 3 it is, at step 3, whatever is kept and however many steps are recorded at once.
    let plain = || rollout(Rule::Skipped, 8);
    for run in [
        plain(),
        plain().schedule(Schedule::Binomial { snapshots: 2 }),
        plain().budget(64 << 10),
        plain().record_at_once(1),
    ] {
        is_of_step(&run.value_and_grad(&[0.0, 3.0], &[K], loss).unwrap_err(), 3);
    }
    let error = plain().record_at_once(4).value_and_grad(&[0.0, 3.0], &[K], loss).unwrap_err();
    is_of_step(&error, 0);
    let direction = (&[0.0, 1.0], &[0.0]);
    let forward = plain().jvp(&[0.0, 3.0], &[K], direction, |[x, _]| *x * 2.0);
    is_of_step(&forward.unwrap_err(), 3);
    // Accepted, it is as it was: the term of that step is missing.
    let accepted = decision::accept_points(|| plain().value_and_grad(&[0.0, 3.0], &[K], loss)).unwrap();
    assert!((accepted.initial[1] - 2.0 * 7.0 * K).abs() < 1e-14);
}

/// Something small next to a tiny threshold is looked at where the numbers of a step are small, by every way:
/// the speed is 1e-9 at step 3, and at no other.
#[test]
fn small_comparisons_of_small_states_are_refused_by_every_way() {
    let loss = |[x, _]: &[Var<f64>; 2]| *x * 2.0;
    let (start, at_zero) = ([0.0, 3.0 + 1e-9], [0.0, 3.0]);
    for start in [start, at_zero] {
        let run = || rollout(Rule::SkippedSmall, 8);
        is_of_step(&run().value_and_grad(&start, &[K], loss).unwrap_err(), 3);
        is_of_step(&run().by_rule().value_and_grad(&start, &[K], loss).unwrap_err(), 3);
        let forward = run().jvp(&start, &[K], (&[0.0, 1.0], &[0.0]), |[x, _]| *x * 2.0);
        is_of_step(&forward.unwrap_err(), 3);
        // In the loss of the last state alone.
        let forward = rollout(Rule::Quotient, 3)
            .jvp(&start, &[K], (&[0.0, 1.0], &[0.0]), |[x, v]| if is_small(*v) { *x } else { *x + *v * 3.0 });
        assert_eq!(forward.unwrap_err().code(), "PAL0119");
    }
    // The first step is from a small state.
    let run = rollout(Rule::SkippedSmall, 2);
    is_of_step(&run.jvp(&[0.0, 1e-9], &[K], (&[0.0, 1.0], &[0.0]), |[x, _]| *x).unwrap_err(), 0);
    is_of_step(&run.by_rule().value_and_grad(&[0.0, 1e-9], &[K], loss).unwrap_err(), 0);
}

/// A zero with a derivative says that it is none, and the step divides by it. Plain numbers go another way:
/// their short cut is refused, or right.
#[test]
fn zeros_that_are_asked_for_are_refused_or_right_by_every_way() {
    let loss = |[x, _]: &[Var<f64>; 2]| *x * 2.0;
    let direction = (&[0.0, 1.0], &[0.0]);
    let plain = || rollout(Rule::AskedSkipped, 8);
    for run in [plain(), plain().schedule(Schedule::Binomial { snapshots: 2 }), plain().record_at_once(1)] {
        is_of_step(&run.value_and_grad(&[0.0, 3.0], &[K], loss).unwrap_err(), 3);
    }
    is_of_step(&plain().by_rule().value_and_grad(&[0.0, 3.0], &[K], loss).unwrap_err(), 3);
    is_of_step(&plain().jvp(&[0.0, 3.0], &[K], direction, |[x, _]| *x).unwrap_err(), 3);
    is_of_step(&plain().hvp(&[0.0, 3.0], &[K], direction, |[x, _]| *x).unwrap_err(), 3);
    let accepted = decision::accept_points(|| plain().value_and_grad(&[0.0, 3.0], &[K], loss)).unwrap();
    assert!((accepted.initial[1] - 2.0 * 7.0 * K).abs() < 1e-14);
    let accepted = decision::accept_points(|| plain().jvp(&[0.0, 3.0], &[K], direction, |[x, _]| *x));
    assert!((accepted.unwrap().1 - 7.0 * K).abs() < 1e-14);
    // sin(v)/v has the slope 0 at 0, and the short cut has it, too.
    let (asked, by_hand) = (rollout(Rule::AskedQuotient, 8), rollout(Rule::Quotient, 8));
    let of = |run: &Rollout<'static, Falling>| {
        let gradient = run.value_and_grad(&[0.0, 3.0], &[K], loss).unwrap();
        let forward = run.jvp(&[0.0, 3.0], &[K], direction, |[x, _]| *x).unwrap();
        (gradient.value, gradient.initial, gradient.params, forward)
    };
    assert_eq!(of(&asked), of(&by_hand));
    // Of the loss.
    fn guarded<S: Number>([x, _]: &[S; 2]) -> S {
        if is_zero(*x) { *x * 0.0 } else { *x * *x / *x }
    }
    is_refused_as_a_loss(guarded, guarded);
    let guarded =
        |p: &Perturbed<2>| if is_zero(p.get(0)) { p.get(0) * 0.0 } else { p.get(0) * p.get(0) / p.get(0) };
    let error = forward_gradient::<2>(&[0.0, 1.0], Directions::CoordinateFrame, Key::from_seed(5), guarded);
    assert_eq!(error.unwrap_err().code(), "PAL0119");
}

/// Steps with a rule, steps that are undone, and programs with their own reverse.
#[test]
fn rules_whose_path_exists_at_one_state_only_are_refused() {
    let loss = |[x, _]: &[Var<f64>; 2]| *x * 2.0;
    let plain = || rollout(Rule::Skipped, 8).by_rule();
    let right = plain().value_and_grad(&[0.0, 3.5], &[K], loss).unwrap();
    assert!((right.initial[1] - 2.0 * 8.0 * K).abs() < 1e-14);
    for run in [plain(), plain().schedule(Schedule::Binomial { snapshots: 2 }), plain().budget(64 << 10)] {
        is_of_step(&run.value_and_grad(&[0.0, 3.0], &[K], loss).unwrap_err(), 3);
        let along = run.value_and_grad_along(&[0.0, 3.0], &[K], |_, state| loss(state));
        is_of_step(&along.unwrap_err(), 3);
    }
    is_of_step(&plain().value_and_grad_by_undoing(&[0.0, 3.0], &[K], loss).unwrap_err(), 3);
    let by_tape = rollout(Rule::Skipped, 8).value_and_grad_by_undoing(&[0.0, 3.0], &[K], loss);
    is_of_step(&by_tape.unwrap_err(), 3);
    // The first derivative of the square is right there, the second is not.
    let square = rollout(Rule::SkippedSquare, 8).by_rule();
    let first = square.value_and_grad(&[0.0, 3.0], &[K], loss).unwrap();
    let expected: f64 = (0..8).map(|i| 4.0 * K * (3.0 - f64::from(i))).sum();
    assert!((first.initial[1] - expected).abs() < 1e-13);
    let second = square.hvp(&[0.0, 3.0], &[K], (&[0.0, 1.0], &[0.0]), |[x, _]| *x);
    is_of_step(&second.unwrap_err(), 3);
    // A kink and a quotient by hand are as they are by the tape, whose budgets hold them.
    for rule in [Rule::Kink, Rule::Quotient] {
        let by_tape = rollout(rule, 8).value_and_grad(&[0.0, 3.0], &[K], loss).unwrap();
        let run = || rollout(rule, 8).by_rule();
        let smallest = smallest(run().budget(1).value_and_grad(&[0.0, 3.0], &[K], loss));
        let by_rule = run().budget(smallest).value_and_grad(&[0.0, 3.0], &[K], loss).unwrap();
        for (a, b) in [
            (by_rule.initial[1], by_tape.initial[1]),
            (by_rule.params[0], by_tape.params[0]),
            (by_rule.value, by_tape.value),
        ] {
            assert!((a - b).abs() < 1e-13, "{a} {b}");
        }
    }
    let accepted = decision::accept_points(|| plain().value_and_grad(&[0.0, 3.0], &[K], loss)).unwrap();
    assert!((accepted.initial[1] - 2.0 * 7.0 * K).abs() < 1e-14);
}

#[cfg(feature = "ir")]
#[test]
fn programs_with_their_own_reverse_are_looked_at() {
    use palinode_ir::interp::Datum;
    use palinode_time::{ProgramStep, ProgramValues};
    let of = |term: &str, v: f64| {
        let source = format!(
            "param k = 0.7\ninput x = 0\ninput v = 3\n{term}\noutput next_x = x + f\noutput next_v = v - 1\n"
        );
        let step = ProgramStep::from_source(&source).unwrap_or_else(|error| panic!("{error}"));
        let state = step.state(&[("v", Datum::real(v))]).unwrap();
        let params = step.params(&[]).unwrap();
        let loss = |state: &ProgramValues<Var<f64>>| state[0].as_vector().unwrap()[0] * 2.0;
        let gradient = step.rollout().steps(8).by_rule().value_and_grad(&state, &params, loss);
        gradient.map(|gradient| gradient.initial[1].as_vector().unwrap()[0])
    };
    let skipped = "var f = 0.0\nif v != 0 { f = k * v }";
    assert!((of(skipped, 3.5).unwrap() - 2.0 * 8.0 * K).abs() < 1e-13);
    is_of_step(&of(skipped, 3.0).unwrap_err(), 3);
    // Its reverse decides at kinks by the conventions of the rule table: 3 steps upwards, one at the kink, 4
    // downwards.
    let kinks = of("let f = k * abs(v)", 3.0).unwrap();
    assert!((kinks - 2.0 * K * (3.0 + 0.0 - 4.0)).abs() < 1e-13, "{kinks}");
}

#[test]
fn second_derivatives_are_verified_too() {
    let direction = (&[0.0, 1.0], &[0.0]);
    let run = rollout(Rule::SkippedSquare, 8);
    // x = k sum of (v - i)^2: the first derivative by v is right, the second misses 2 k.
    let first = run.value_and_grad(&[0.0, 3.0], &[K], |[x, _]| *x).unwrap();
    let expected: f64 = (0..8).map(|i| 2.0 * K * (3.0 - f64::from(i))).sum();
    assert!((first.initial[1] - expected).abs() < 1e-13);
    let forward = run.jvp(&[0.0, 3.0], &[K], direction, |[x, _]| *x).unwrap();
    assert!((forward.1 - expected).abs() < 1e-13);
    is_of_step(&run.hvp(&[0.0, 3.0], &[K], direction, |[x, _]| *x).unwrap_err(), 3);
    let elsewhere = run.hvp(&[0.0, 3.5], &[K], direction, |[x, _]| *x).unwrap().1;
    assert!((elsewhere.initial[1] - 16.0 * K).abs() < 1e-13);
}

#[test]
fn kinks_and_quotients_by_hand_are_not_refused() {
    for rule in [Rule::Kink, Rule::Quotient] {
        let run = rollout(rule, 8);
        let gradient = run.value_and_grad(&[0.0, 3.0], &[K], |[x, _]| *x).unwrap();
        let slope = |v: f64| match rule {
            Rule::Kink if v > 0.0 => K,
            Rule::Kink => -K,
            _ if v == 0.0 => 0.0,
            _ => K * (v.cos() / v - v.sin() / (v * v)),
        };
        let expected: f64 = (0..8).map(|i| slope(3.0 - f64::from(i))).sum();
        assert!((gradient.initial[1] - expected).abs() < 1e-13, "{}", gradient.initial[1]);
        let forward = run.jvp(&[0.0, 3.0], &[K], (&[0.0, 1.0], &[0.0]), |[x, _]| *x).unwrap();
        assert!((forward.1 - expected).abs() < 1e-13);
        // sin(v)/v has the second derivative -1/3 at 0; its short cut has none.
        let second = run.hvp(&[0.0, 3.0], &[K], (&[0.0, 1.0], &[0.0]), |[x, _]| *x);
        match rule {
            Rule::Kink => assert_eq!(second.unwrap().1.initial, [0.0, 0.0]),
            _ => is_of_step(&second.unwrap_err(), 3),
        }
    }
    // Of the loss, too.
    fn short<S: Number>([x, _]: &[S; 2]) -> S {
        if *x == <S as Scalar>::zero() { *x * 0.0 } else { *x * 3.0 }
    }
    is_refused_as_a_loss(short, short);
}

/// Looking again is seen by nobody.
#[test]
fn decisions_are_counted_once() {
    let run = rollout(Rule::Kink, 8);
    let forward = || run.jvp(&[0.0, 3.0], &[K], (&[0.0, 1.0], &[0.0]), |[x, _]| *x).unwrap();
    assert_eq!(decision::watch(forward).1.comparisons, 8);
}

#[test]
fn numbers_of_an_outer_driver_in_a_loss_are_refused() {
    let run = rollout(Rule::Quotient, 4);
    let (start, params, direction) = ([0.3, 2.5], [K], (&[1.0, 0.0], &[0.0]));
    jvp(
        |z| {
            let error = run.jvp(&start, &params, direction, |[x, _]| *x * z[0]).unwrap_err();
            assert_eq!(error.code(), "PAL0120", "{error}");
            let error = run.jvp(&start, &params, direction, |[x, _]| (*x - 0.3) * z[0]).unwrap_err();
            assert_eq!(error.code(), "PAL0120", "{error}");
            let error = run.hvp(&start, &params, direction, |[x, _]| *x * *x * Var::lift(z[0])).unwrap_err();
            assert_eq!(error.code(), "PAL0120", "{error}");
            // As a constant it may be used.
            assert_eq!(run.jvp(&start, &params, direction, |[x, _]| *x * z[0].value).unwrap().1, 2.0);
            assert_eq!(
                run.hvp(&start, &params, direction, |[x, _]| *x * *x * z[0].value).unwrap().1.initial[0],
                4.0
            );
            z[0]
        },
        &[2.0],
        &[1.0],
    )
    .unwrap();
}

#[test]
fn forward_gradients_inside_one_another() {
    let key = Key::from_seed(5);
    let outer = forward_gradient::<2>(&[2.0, 3.0], Directions::CoordinateFrame, key, |p| {
        let captured = p.get(0);
        for x in [1.5, 0.0] {
            let inner = |q: &Perturbed<2>| q.get(0) * captured + q.get(1);
            let error =
                forward_gradient::<2>(&[x, 1.0], Directions::CoordinateFrame, key, inner).unwrap_err();
            assert_eq!(error.code(), "PAL0120", "{error}");
            let inner = |q: &Perturbed<2>, _| q.get(0) * captured + q.get(1);
            let batch =
                Batch::new(3).forward_gradient::<2>(&[x, 1.0], Directions::CoordinateFrame, key, inner);
            assert_eq!(batch.unwrap_err().code(), "PAL0606");
        }
        let apart = |q: &Perturbed<2>| q.get(0) * captured.value + q.get(1);
        let g =
            forward_gradient::<2>(&[0.0, 1.0], Directions::CoordinateFrame, key, apart).unwrap().gradient();
        assert!((g[0] - 2.0).abs() < 1e-14 && (g[1] - 1.0).abs() < 1e-14);
        captured * p.get(1)
    });
    let g = outer.unwrap().gradient();
    assert!((g[0] - 3.0).abs() < 1e-14 && (g[1] - 2.0).abs() < 1e-14);
}

#[test]
fn a_forward_gradient_of_a_path_of_a_point_is_refused() {
    let skips = |p: &Perturbed<2>| {
        let (x, y) = (p.get(0), p.get(1));
        if x == DualN::lift(0.0) { y * 0.0 } else { x * y }
    };
    let key = Key::from_seed(5);
    let error = forward_gradient::<2>(&[0.0, 3.0], Directions::CoordinateFrame, key, skips).unwrap_err();
    assert_eq!(error.code(), "PAL0119");
    assert!(forward_gradient::<2>(&[1e-9, 3.0], Directions::CoordinateFrame, key, skips).is_ok());
}
