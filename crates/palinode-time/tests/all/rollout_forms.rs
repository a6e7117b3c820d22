//! Other forms of loops and of their derivatives: conditions, directions, second order, windows, rules,
//! undoing, nesting.

use crate::models::{Affine, CHAOTIC, Heat, Hidden, Leapfrog, Lorenz, SCHEDULES, bits, smallest, squares};
use palinode_core::{Dual, Real, Var};
use palinode_macros::step;
use palinode_time::{
    CompressedStore, Error, Gradient, LossyStore, MemoryStore, Notes, Number, Repeat, Rollout, Schedule,
    Step, Verdict,
};

const START: [f64; 3] = [1.0, 1.0, 1.0];

/// x <- 2 x.
#[step(Doubling)]
fn doubling<S: Number>(x: &mut S) {
    *x *= 2.0;
}

#[test]
fn a_loop_until_a_condition_has_the_derivative_of_its_number_of_steps() {
    // while x < 1 { x = 2 x }: 2^k with k the number of steps.
    for (start, steps) in [(0.3, 2), (0.01, 7), (2.0, 0), (0.5000001, 1), (1e-300, 997)] {
        let run = Rollout::new(Doubling).until(|x| *x >= 1.0);
        let gradient = run.value_and_grad(&start, &(), |x| *x).unwrap();
        assert_eq!(gradient.report.steps, steps, "{start}");
        assert_eq!(gradient.initial, 2_f64.powi(steps as i32), "{start}");
    }
}

#[test]
fn a_condition_close_to_another_number_of_steps_is_flagged() {
    let stop = |start: f64| {
        let run = Rollout::new(Doubling).until(|x| *x >= 1.0);
        run.value_and_grad(&start, &(), |x| *x).unwrap().report.stop.expect("a margin")
    };
    let far = stop(0.3); // 0.6, 1.2
    assert!((far.at_stop - 0.2).abs() < 1e-12 && (far.before_stop - 0.4).abs() < 1e-12, "{far:?}");
    assert!(!far.is_near_a_change());
    assert!(stop(0.25 + 1e-9).is_near_a_change(), "it only just stopped");
    assert!(stop(0.5 - 1e-9).is_near_a_change(), "it nearly stopped a step earlier");
}

#[test]
fn loops_with_a_condition_have_the_bits_of_loops_with_a_number() {
    let by_condition = |budget: usize| {
        let run = Rollout::new(Lorenz).until(|[_, _, z]| *z > 20.0).budget(budget);
        run.value_and_grad(&START, &CHAOTIC, squares)
    };
    let reference = by_condition(usize::MAX).unwrap();
    assert!(reference.report.steps > 100);
    let by_number = Rollout::new(Lorenz).steps(reference.report.steps);
    assert_eq!(bits(&reference), bits(&by_number.value_and_grad(&START, &CHAOTIC, squares).unwrap()));
    let smallest = smallest(by_condition(1));
    for more in [0, 300, 3000, 30_000] {
        let gradient = by_condition(smallest + more).unwrap();
        assert_eq!(bits(&gradient), bits(&reference), "{more}");
        assert!(gradient.report.peak_bytes <= smallest + more);
    }
}

#[test]
fn a_condition_that_never_holds_is_an_error_if_asked_for() {
    let run = Rollout::new(Affine).until(|x| *x > 3.0).at_most(1000);
    let error = run.value_and_grad(&1.0, &[0.5, 1.0], |x| *x).expect_err("it converges to 2");
    assert_eq!(error, Error::TooLong { limit: 1000 });
}

#[test]
fn forward_and_reverse_agree_in_every_direction() {
    let run = Rollout::new(Lorenz).steps(300);
    let start = [1.0, 2.0, 3.0];
    let gradient = run.value_and_grad(&start, &CHAOTIC, squares).unwrap();
    let unit = |k: usize| std::array::from_fn(|i| f64::from(i == k));
    for k in 0..6_usize {
        let [by_state, by_params] = [k, k.wrapping_sub(3)].map(unit);
        let (value, derivative) = run.jvp(&start, &CHAOTIC, (&by_state, &by_params), squares).unwrap();
        assert_eq!(value.to_bits(), gradient.value.to_bits());
        let reverse = if k < 3 { gradient.initial[k] } else { gradient.params[k - 3] };
        assert!((derivative - reverse).abs() <= 1e-11 * reverse.abs(), "{k}: {derivative} and {reverse}");
    }
}

#[test]
fn second_order_is_the_derivative_of_the_gradient() {
    let run = || Rollout::new(Lorenz).steps(150);
    let start = [1.0, 2.0, 3.0];
    let direction = ([0.3, -0.2, 0.5], [0.1, 0.4, -0.6]);
    let hvp = |run: Rollout<'static, Lorenz>| {
        let loss = |state: &[Var<Dual<f64>>; 3]| squares(state);
        run.hvp(&start, &CHAOTIC, (&direction.0, &direction.1), loss).unwrap()
    };
    let (gradient, product) = hvp(run());
    let plain = run().value_and_grad(&start, &CHAOTIC, squares).unwrap();
    assert_eq!(bits(&gradient), bits(&plain), "the first order is that of the plain sweep");
    let moved = |h: f64| {
        let start: [f64; 3] = std::array::from_fn(|i| start[i] + h * direction.0[i]);
        let params: [f64; 3] = std::array::from_fn(|i| CHAOTIC[i] + h * direction.1[i]);
        run().value_and_grad(&start, &params, squares).unwrap()
    };
    let (up, down) = (moved(1e-5), moved(-1e-5));
    let numbers = |g: &Gradient<Lorenz>| [g.initial, g.params].concat();
    for ((found, up), down) in numbers(&product).iter().zip(numbers(&up)).zip(numbers(&down)) {
        let difference = (up - down) / 2e-5;
        assert!((found - difference).abs() <= 1e-6 * difference.abs().max(1.0), "{found} and {difference}");
    }
    for snapshots in [1, 3, 20] {
        let (_, other) = hvp(run().schedule(Schedule::Binomial { snapshots }));
        assert_eq!(bits(&other), bits(&product), "{snapshots} snapshots");
    }
}

#[test]
fn short_loops_have_a_verdict_and_conditions_on_plain_numbers_no_margin() {
    let report = |run: Rollout<'_, Affine>| run.value_and_grad(&1.0, &[0.5, 1.0], |x| *x).unwrap().report;
    let counted = report(Rollout::new(Affine).steps(20));
    assert_eq!(counted.health.verdict(), Verdict::Vanishing, "{counted}");
    let stopped = report(Rollout::new(Affine).until(|x| *x > 1.999));
    assert_eq!((stopped.steps, stopped.health.verdict()), (10, Verdict::Vanishing), "{stopped}");
    assert!(stopped.peak_bytes < 20_000, "{stopped}");
    let plain = report(Rollout::new(Affine).until(|x| x.primal() > 1.999));
    assert_eq!(plain.stop.and_then(|stop| stop.smallest()), None);
    assert!(plain.to_string().contains("whose margin is not known"), "{plain}");
    let without = report(Rollout::new(Affine).until(|x| x.primal().is_finite()));
    assert!(!without.stop.unwrap().is_near_a_change(), "{without}");
}

#[test]
fn a_loop_in_a_loop_has_the_bits_of_one_loop() {
    let flat = Rollout::new(Lorenz).steps(30 * 17).value_and_grad(&START, &CHAOTIC, squares).unwrap();
    for (inner, outer) in [(1, 1), (3, 2), (17, 30), (5, 4)] {
        let body = Repeat::new(Lorenz, 17).snapshots(inner);
        let run = Rollout::new(body).steps(30).schedule(Schedule::Binomial { snapshots: outer }).nested();
        let nested = run.value_and_grad(&START, &CHAOTIC, squares).unwrap();
        assert_eq!(bits(&nested), bits(&flat), "{inner} and {outer} snapshots");
    }
}

#[test]
fn a_disk_tier_has_the_same_bits_and_leaves_no_files() {
    let scratch = crate::store::Scratch::new();
    let run = || Rollout::new(Lorenz).steps(500);
    let reference = run().value_and_grad(&START, &CHAOTIC, squares).unwrap();
    let budget = smallest(run().budget(1).value_and_grad(&START, &CHAOTIC, squares)) + 20_000;
    for (files, at_once) in [(1, 1), (7, 1), (30, 1), (5, 8)] {
        let run = run().record_at_once(at_once).disk(files, &scratch.0).budget(budget);
        let gradient = run.value_and_grad(&START, &CHAOTIC, squares).unwrap();
        assert_eq!(bits(&gradient), bits(&reference), "{files} snapshots on disk");
        assert!(gradient.report.peak_bytes <= budget);
    }
    let on_disk = run().record_at_once(1).disk(20, &scratch.0).store(MemoryStore::new).budget(budget - 2_000);
    assert_eq!(bits(&on_disk.value_and_grad(&START, &CHAOTIC, squares).unwrap()), bits(&reference));
    assert_eq!(scratch.names(), Vec::<String>::new(), "no files are left");
}

#[test]
fn compressed_snapshots_have_the_same_bits_and_lossy_ones_say_how_far_off_they_are() {
    let run =
        || Rollout::new(Lorenz).steps(3000).record_at_once(1).schedule(Schedule::Binomial { snapshots: 10 });
    let exact = run().value_and_grad(&START, &CHAOTIC, squares).unwrap();
    let compressed = run().store(|| CompressedStore::new(MemoryStore::new()));
    let compressed = compressed.value_and_grad(&START, &CHAOTIC, squares).unwrap();
    assert_eq!(bits(&compressed), bits(&exact));
    for (lossy, least, most) in [
        (run().store(|| LossyStore::f32(MemoryStore::new())), 1e-10, 1e-4),
        (run().store(|| LossyStore::bf16(MemoryStore::new())), 1e-6, 0.5),
    ] {
        let gradient = lossy.value_and_grad(&START, &CHAOTIC, squares).unwrap();
        let estimate = gradient.report.lossy.expect("it is reported");
        let off = (0..3).map(|i| (gradient.initial[i] - exact.initial[i]).abs()).fold(0.0, f64::max)
            / exact.initial.iter().fold(0.0, |largest: f64, c| largest.max(c.abs()));
        assert!(estimate > least && estimate < most, "{estimate:e} was estimated");
        assert!(
            estimate / off > 0.01 && estimate / off < 100.0,
            "{estimate:e} was estimated, {off:e} is true"
        );
        assert!(gradient.report.to_string().contains("not the exact gradient"));
    }
}

/// What crosses is a parameter, a multiple of it, and something that depends on both.
#[step(Multiples)]
fn multiples<S: Number>(state: &mut [S; 3], p: &S) {
    let [x, y, z] = *state;
    *state = [*p, *p * 0.7, z * 0.9 + x * y];
}

/// The same number in three multiples.
#[step(Thrice)]
fn thrice<S: Real>(state: &mut [S; 3], p: &S) {
    let b = (state[0] * state[1] + state[2]).sin() * *p;
    *state = [b, b * 0.5, b * 0.3];
}

#[test]
fn multiples_of_one_number_have_the_same_bits_however_many_steps_go_on_a_tape() {
    let start = [1.1, -0.4, 0.2];
    let of_multiples = |at_once| {
        let run = Rollout::new(Multiples).steps(5).record_at_once(at_once);
        bits(&run.value_and_grad(&start, &0.3, |s| s[2]).unwrap())
    };
    let of_thrice = |at_once| {
        let run = Rollout::new(Thrice).steps(40).record_at_once(at_once);
        bits(&run.value_and_grad(&start, &0.9, |s| s[0] * 1.1 + s[1] * 1.3 + s[2] * 1.7).unwrap())
    };
    for at_once in 2..=41 {
        assert_eq!(of_multiples(at_once), of_multiples(1), "{at_once}");
        assert_eq!(of_thrice(at_once), of_thrice(1), "{at_once}");
    }
}

#[test]
fn clipping_does_not_depend_on_the_schedule_and_survives_huge_cotangents() {
    let clipped = |run: Rollout<'static, Affine>| {
        let gradient = run.clip(2.0).value_and_grad(&1.0, &[1.1, 0.0], |x| *x).unwrap();
        assert!(gradient.initial == 2.0 && gradient.report.health.clipped() > 0);
        assert!(gradient.report.to_string().contains("not the exact gradient"));
        bits(&gradient)
    };
    let reference = clipped(Rollout::new(Affine).steps(50));
    for schedule in [Schedule::Periodic { every: 1 }, Schedule::Binomial { snapshots: 3 }] {
        assert_eq!(clipped(Rollout::new(Affine).steps(50).schedule(schedule)), reference, "{schedule:?}");
    }
    let huge = Rollout::new(Affine).steps(1).clip(1.0).value_and_grad(&1.0, &[1e200, 0.0], |x| *x);
    assert_eq!(huge.unwrap().initial, 1.0);
}

#[test]
fn a_loss_along_the_way_is_asked_from_the_first_step_on() {
    let data = [0.5, 0.25, 0.125];
    let run = |steps| Rollout::new(Affine).steps(steps);
    let loss = |t: u64, x: &Var<f64>| *x - data[t as usize - 1];
    let gradient = run(3).value_and_grad_along(&1.0, &[0.5, 0.0], loss).unwrap();
    assert_eq!((gradient.value, gradient.initial), (0.0, 0.875));
    let nothing = run(0).value_and_grad_along(&1.0, &[0.5, 0.0], loss).unwrap();
    assert_eq!((nothing.value, nothing.initial, nothing.params), (0.0, 0.0, [0.0, 0.0]));
}

#[test]
fn inputs_give_the_length() {
    let run = Rollout::new(Heat).inputs([0.1, 0.2, 0.3]);
    let gradient = run.value_and_grad(&vec![0.0; 5], &0.1, |u| u[1]).unwrap();
    assert_eq!((gradient.report.steps, gradient.inputs.len()), (3, 3));
}

#[test]
fn what_does_not_go_together_is_refused() {
    let window = Rollout::new(Affine).until(|x| *x > 1.5).truncate(3);
    assert_eq!(window.value_and_grad(&1.0, &[0.5, 1.0], |x| *x).unwrap_err().code(), "PAL0529");
    let run = || Rollout::new(Leapfrog).steps(100);
    let undone = |run: Rollout<'_, Leapfrog>| run.value_and_grad_by_undoing(&[1.0, 0.25], &1.3, |[x, _]| *x);
    for with in [run().truncate(3), run().schedule(Schedule::StoreAll)] {
        assert_eq!(undone(with).unwrap_err().code(), "PAL0529");
    }
    assert!(undone(run().verify()).is_ok());
    let lossy = Rollout::new(Lorenz).steps(150).store(|| LossyStore::f32(MemoryStore::new())).verify();
    let error = lossy.value_and_grad(&START, &CHAOTIC, squares).expect_err("other states come back");
    assert_eq!(error.code(), "PAL0529");
}

/// x <- x + sqrt(p).
#[step(Root)]
fn root<S: Real>(x: &mut S, p: &S) {
    *x += p.sqrt();
}

#[test]
fn a_parameter_without_a_derivative_is_reported() {
    let error = Rollout::new(Root).steps(3).value_and_grad(&1.0, &0.0, |x| *x).expect_err("a vertical slope");
    assert_eq!(error.code(), "PAL0104");
}

/// x <- sqrt(x - 1): NaN after a few steps.
#[step(Falling)]
fn falling<S: Real>(x: &mut S) {
    *x = (*x - 1.0).sqrt();
}

#[test]
fn a_condition_that_compares_nan_ends_with_an_error() {
    // 10, 3, 1.41, 0.64, NaN.
    let ends = |error: Error| assert_eq!(error, Error::ConditionUndefined { steps: 4 });
    let compares = || Rollout::new(Falling).until(|x| *x < 0.5);
    ends(compares().value_and_grad(&10.0, &(), |x| *x).expect_err("it would never end"));
    ends(compares().run(&10.0, &()).expect_err("it would never end"));
    ends(compares().jvp(&10.0, &(), (&1.0, &()), |x| *x).expect_err("it would never end"));
    let converts = Rollout::new(Falling).until(|x| x.to_f64() < 0.5);
    ends(converts.run(&10.0, &()).expect_err("it would never end"));
    // A condition that holds at NaN ends the loop.
    let stops = Rollout::new(Falling).until(|x| x.is_nan() || *x < 0.5);
    assert!(stops.run(&10.0, &()).unwrap().is_nan());
    let stops = Rollout::new(Falling).until(|x| {
        let goes_on = *x > 0.5;
        !goes_on
    });
    assert_eq!(stops.value_and_grad(&10.0, &(), |x| *x).expect_err("NaN is no loss").code(), "PAL0526");
}

#[test]
fn verification_agrees_with_every_schedule() {
    let run = || Rollout::new(Lorenz).steps(150);
    let reference = bits(&run().value_and_grad(&START, &CHAOTIC, squares).unwrap());
    for schedule in SCHEDULES {
        let verified = run().schedule(schedule).verify().value_and_grad(&START, &CHAOTIC, squares);
        assert_eq!(bits(&verified.unwrap()), reference, "{schedule:?}");
    }
}

/// Fails once its number is below a limit.
#[derive(Default)]
struct Failing(Notes);

impl Step for Failing {
    type State<S: Number> = S;
    type Params<S: Number> = ();
    type Input<S: Number> = ();
    fn step<S: Number>(&self, x: &mut S, _: &(), _: &()) {
        if *x < 0.1 {
            return self.0.fail("too small");
        }
        *x *= 0.8;
    }
    fn notes(&self) -> Option<&Notes> {
        Some(&self.0)
    }
}

#[test]
fn errors_of_inner_loops_name_both_steps() {
    // 0.8^11 < 0.1: the twelfth step fails, which is step 1 of the inner loop of step 2.
    let failed = Error::StepFailed { step: 2, reason: "step 1 of the inner loop: too small".into() };
    let run = || Rollout::new(Repeat::new(Failing::default(), 5)).steps(4);
    assert_eq!(run().run(&1.0, &()).expect_err("it fails"), failed);
    assert_eq!(run().nested().value_and_grad(&1.0, &(), |x| *x).expect_err("it fails"), failed);
    assert_eq!(run().value_and_grad(&1.0, &(), |x| *x).expect_err("it fails"), failed);
    let hidden = Rollout::new(Repeat::new(Hidden::default(), 6).snapshots(2)).steps(3).nested();
    let error = hidden.value_and_grad(&1.0, &1.0, |x| *x).expect_err("hidden state");
    let Error::InInnerLoop { step, inner, .. } = error else { panic!("{error}") };
    assert_eq!((step, error.code()), (0, "PAL0521"), "found in the warm-up");
    assert!(inner < 6 && error.to_string().contains("of the inner loop of step 0: PAL0521"), "{error}");
}
