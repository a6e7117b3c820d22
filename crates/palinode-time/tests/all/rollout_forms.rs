//! Other forms of loops and of their derivatives: conditions, directions, second order, windows, rules,
//! undoing, nesting.

use crate::models::{Affine, Leapfrog, Lorenz};
use crate::rollout::bits;
use palinode_core::{Dual, Real, Var};
use palinode_time::{Error, Number, Repeat, Rollout, Schedule, Step, Verdict};

pub(crate) const CHAOTIC: [f64; 3] = [10.0, 28.0, 8.0 / 3.0];

pub(crate) fn squares<S: Real>([x, y, z]: &[S; 3]) -> S {
    *x * *x + *y * *y + *z * *z
}

/// x <- 2 x.
struct Doubling;

impl Step for Doubling {
    type State<S: Number> = S;
    type Params<S: Number> = ();
    type Input<S: Number> = ();
    fn step<S: Number>(&self, x: &mut S, _: &(), _: &()) {
        *x *= 2.0;
    }
}

#[test]
fn a_loop_until_a_condition_has_the_derivative_of_its_number_of_steps() {
    // while x < 1 { x = 2 x }: 2^k with k the trip count.
    for (start, steps) in [(0.3, 2), (0.01, 7), (2.0, 0), (0.5000001, 1), (1e-300, 997)] {
        let run = Rollout::new(Doubling).until(|x| *x >= 1.0);
        let gradient = run.value_and_grad(&start, &(), |x| *x).expect("a gradient");
        assert_eq!(gradient.report.steps, steps, "{start}");
        assert_eq!(gradient.initial, 2_f64.powi(steps as i32), "{start}");
    }
}

#[test]
fn a_condition_close_to_another_number_of_steps_is_flagged() {
    let stop = |start: f64| {
        let run = Rollout::new(Doubling).until(|x| *x >= 1.0);
        run.value_and_grad(&start, &(), |x| *x).expect("a gradient").report.stop.expect("a margin")
    };
    let far = stop(0.3); // 0.6, 1.2
    assert!((far.at_stop - 0.2).abs() < 1e-12 && (far.before_stop - 0.4).abs() < 1e-12, "{far:?}");
    assert!(!far.is_near_a_change());
    assert!(stop(0.25 + 1e-9).is_near_a_change(), "it only just stopped");
    assert!(stop(0.5 - 1e-9).is_near_a_change(), "it nearly stopped a step earlier");
}

#[test]
fn loops_with_a_condition_have_the_bits_of_loops_with_a_number() {
    let start = [1.0, 1.0, 1.0];
    let by_number = |steps| Rollout::new(Lorenz).steps(steps).value_and_grad(&start, &CHAOTIC, squares);
    let by_condition = |budget: usize| {
        let run = Rollout::new(Lorenz).until(|[_, _, z]| *z > 20.0).budget(budget);
        run.value_and_grad(&start, &CHAOTIC, squares)
    };
    let reference = by_condition(usize::MAX).expect("a gradient");
    assert!(reference.report.steps > 100);
    assert_eq!(bits(&reference), bits(&by_number(reference.report.steps).expect("a gradient")));
    let Err(Error::BudgetTooSmall { smallest, .. }) = by_condition(1) else { panic!("1 byte is not enough") };
    for more in [0, 300, 3000, 30_000] {
        let gradient = by_condition(smallest.bytes() + more).expect("a gradient");
        assert_eq!(bits(&gradient), bits(&reference), "{more}");
        assert!(gradient.report.peak_bytes <= smallest.bytes() + more);
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
    let gradient = run.value_and_grad(&start, &CHAOTIC, squares).expect("a gradient");
    for k in 0..6 {
        let mut direction = ([0.0; 3], [0.0; 3]);
        if k < 3 {
            direction.0[k] = 1.0
        } else {
            direction.1[k - 3] = 1.0
        }
        let (value, derivative) =
            run.jvp(&start, &CHAOTIC, (&direction.0, &direction.1), squares).expect("a derivative");
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
        run.hvp(&start, &CHAOTIC, (&direction.0, &direction.1), loss).expect("a product")
    };
    let (gradient, product) = hvp(run());
    let plain = run().value_and_grad(&start, &CHAOTIC, squares).expect("a gradient");
    assert_eq!(bits(&gradient), bits(&plain), "the first order is that of the plain sweep");
    let moved = |h: f64| {
        let start: [f64; 3] = std::array::from_fn(|i| start[i] + h * direction.0[i]);
        let params: [f64; 3] = std::array::from_fn(|i| CHAOTIC[i] + h * direction.1[i]);
        run().value_and_grad(&start, &params, squares).expect("a gradient")
    };
    let (up, down) = (moved(1e-5), moved(-1e-5));
    for i in 0..3 {
        for (found, up, down) in [
            (product.initial[i], up.initial[i], down.initial[i]),
            (product.params[i], up.params[i], down.params[i]),
        ] {
            let difference = (up - down) / 2e-5;
            assert!(
                (found - difference).abs() <= 1e-6 * difference.abs().max(1.0),
                "{found} and {difference}"
            );
        }
    }
    for snapshots in [1, 3, 20] {
        let (_, other) = hvp(run().schedule(Schedule::Binomial { snapshots }));
        assert_eq!(bits(&other), bits(&product), "{snapshots} snapshots");
    }
}

#[test]
fn short_loops_have_a_verdict_and_conditions_on_plain_numbers_no_margin() {
    let run = Rollout::new(Affine).steps(20);
    let report = run.value_and_grad(&1.0, &[0.5, 1.0], |x| *x).expect("a gradient").report;
    assert_eq!(report.health.verdict(), Verdict::Vanishing, "{report}");
    let run = Rollout::new(Affine).until(|x| *x > 1.999);
    let report = run.value_and_grad(&1.0, &[0.5, 1.0], |x| *x).expect("a gradient").report;
    assert_eq!((report.steps, report.health.verdict()), (10, Verdict::Vanishing), "{report}");
    assert!(report.peak_bytes < 20_000, "{report}");
    let run = Rollout::new(Affine).until(|x| x.primal() > 1.999);
    let report = run.value_and_grad(&1.0, &[0.5, 1.0], |x| *x).expect("a gradient").report;
    assert_eq!(report.stop.and_then(|stop| stop.smallest()), None);
    assert!(report.to_string().contains("whose margin is not known"), "{report}");
}

#[test]
fn a_loop_in_a_loop_has_the_bits_of_one_loop() {
    let start = [1.0, 1.0, 1.0];
    let flat =
        Rollout::new(Lorenz).steps(30 * 17).value_and_grad(&start, &CHAOTIC, squares).expect("a gradient");
    for (inner, outer) in [(1, 1), (3, 2), (17, 30), (5, 4)] {
        let body = Repeat::new(Lorenz, 17).snapshots(inner);
        let run = Rollout::new(body).steps(30).schedule(Schedule::Binomial { snapshots: outer }).nested();
        let nested = run.value_and_grad(&start, &CHAOTIC, squares).expect("a gradient");
        assert_eq!(bits(&nested), bits(&flat), "{inner} and {outer} snapshots");
    }
}

#[test]
fn a_disk_tier_has_the_same_bits_and_leaves_no_files() {
    let scratch = crate::store::Scratch::new();
    let start = [1.0, 1.0, 1.0];
    let reference =
        Rollout::new(Lorenz).steps(500).value_and_grad(&start, &CHAOTIC, squares).expect("a gradient");
    let Err(Error::BudgetTooSmall { smallest, .. }) =
        Rollout::new(Lorenz).steps(500).budget(1).value_and_grad(&start, &CHAOTIC, squares)
    else {
        panic!("1 byte is not enough")
    };
    for (slots, at_once) in [(1, 1), (7, 1), (30, 1), (5, 8)] {
        let run = Rollout::new(Lorenz).steps(500).record_at_once(at_once).disk(slots, &scratch.0);
        let run = run.budget(smallest.bytes() + 20_000);
        let gradient = run.value_and_grad(&start, &CHAOTIC, squares).expect("a gradient");
        assert_eq!(bits(&gradient), bits(&reference), "{slots} slots on disk");
        assert!(gradient.report.peak_bytes <= smallest.bytes() + 20_000);
    }
    let on_disk = Rollout::new(Lorenz).steps(500).record_at_once(1).disk(20, &scratch.0);
    let gradient = on_disk.store(palinode_time::MemoryStore::new).budget(smallest.bytes() + 18_000);
    let gradient = gradient.value_and_grad(&start, &CHAOTIC, squares).expect("a gradient");
    assert_eq!(bits(&gradient), bits(&reference));
    assert_eq!(scratch.names(), Vec::<String>::new(), "no files are left");
}

#[test]
fn compressed_snapshots_have_the_same_bits_and_lossy_ones_say_how_far_off_they_are() {
    use palinode_time::{CompressedStore, LossyStore, MemoryStore};
    let start = [1.0, 1.0, 1.0];
    let run =
        || Rollout::new(Lorenz).steps(3000).record_at_once(1).schedule(Schedule::Binomial { snapshots: 10 });
    let exact = run().value_and_grad(&start, &CHAOTIC, squares).expect("a gradient");
    let compressed = run().store(|| CompressedStore::new(MemoryStore::new()));
    let compressed = compressed.value_and_grad(&start, &CHAOTIC, squares).expect("a gradient");
    assert_eq!(bits(&compressed), bits(&exact));
    for (lossy, least, most) in [
        (run().store(|| LossyStore::f32(MemoryStore::new())), 1e-10, 1e-4),
        (run().store(|| LossyStore::bf16(MemoryStore::new())), 1e-6, 0.5),
    ] {
        let gradient = lossy.value_and_grad(&start, &CHAOTIC, squares).expect("a gradient");
        let told = gradient.report.lossy.expect("it is reported");
        let off = (0..3).map(|i| (gradient.initial[i] - exact.initial[i]).abs()).fold(0.0, f64::max)
            / exact.initial.iter().fold(0.0, |largest: f64, c| largest.max(c.abs()));
        assert!(told > least && told < most, "{told:e} was told");
        assert!(told / off > 0.01 && told / off < 100.0, "{told:e} was told, {off:e} is true");
        assert!(gradient.report.to_string().contains("not the exact gradient"));
    }
}

/// What crosses is a parameter, a multiple of it, and something that depends on both.
struct Multiples;

impl Step for Multiples {
    type State<S: Number> = [S; 3];
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Number>(&self, state: &mut [S; 3], p: &S, _: &()) {
        let [x, y, z] = *state;
        *state = [*p, *p * 0.7, z * 0.9 + x * y];
    }
}

/// The same number in three multiples.
struct Thrice;

impl Step for Thrice {
    type State<S: Number> = [S; 3];
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Real>(&self, state: &mut [S; 3], p: &S, _: &()) {
        let b = (state[0] * state[1] + state[2]).sin() * *p;
        *state = [b, b * 0.5, b * 0.3];
    }
}

#[test]
fn multiples_of_one_number_have_the_same_bits_however_many_steps_go_on_a_tape() {
    let start = [1.1, -0.4, 0.2];
    let of_multiples = |at_once| {
        let run = Rollout::new(Multiples).steps(5).record_at_once(at_once);
        bits(&run.value_and_grad(&start, &0.3, |s| s[2]).expect("a gradient"))
    };
    let of_thrice = |at_once| {
        let run = Rollout::new(Thrice).steps(40).record_at_once(at_once);
        bits(&run.value_and_grad(&start, &0.9, |s| s[0] * 1.1 + s[1] * 1.3 + s[2] * 1.7).expect("a gradient"))
    };
    for at_once in 2..=41 {
        assert_eq!(of_multiples(at_once), of_multiples(1), "{at_once}");
        assert_eq!(of_thrice(at_once), of_thrice(1), "{at_once}");
    }
}

#[test]
fn clipping_does_not_depend_on_the_schedule_and_survives_huge_cotangents() {
    let clipped = |run: Rollout<'static, Affine>| {
        bits(&run.clip(2.0).value_and_grad(&1.0, &[1.1, 0.0], |x| *x).expect("a gradient"))
    };
    let reference = clipped(Rollout::new(Affine).steps(50));
    for schedule in [Schedule::Periodic { every: 1 }, Schedule::Binomial { snapshots: 3 }] {
        assert_eq!(clipped(Rollout::new(Affine).steps(50).schedule(schedule)), reference, "{schedule:?}");
    }
    let huge = Rollout::new(Affine).steps(1).clip(1.0).value_and_grad(&1.0, &[1e200, 0.0], |x| *x);
    assert_eq!(huge.expect("a gradient").initial, 1.0);
}

#[test]
fn a_loss_along_the_way_is_asked_from_the_first_step_on() {
    let data = [0.5, 0.25, 0.125];
    let run = |steps| Rollout::new(Affine).steps(steps);
    let loss = |t: u64, x: &Var<f64>| *x - data[t as usize - 1];
    let gradient = run(3).value_and_grad_along(&1.0, &[0.5, 0.0], loss).expect("a gradient");
    assert_eq!((gradient.value, gradient.initial), (0.0, 0.875));
    let nothing = run(0).value_and_grad_along(&1.0, &[0.5, 0.0], loss).expect("a gradient");
    assert_eq!((nothing.value, nothing.initial, nothing.params), (0.0, 0.0, [0.0, 0.0]));
}

#[test]
fn inputs_give_the_length_and_conditions_without_numbers_have_no_margin() {
    use crate::models::Heat;
    let run = Rollout::new(Heat).inputs([0.1, 0.2, 0.3]);
    let gradient = run.value_and_grad(&vec![0.0; 5], &0.1, |u| u[1]).expect("a gradient");
    assert_eq!((gradient.report.steps, gradient.inputs.len()), (3, 3));
    let run = Rollout::new(Affine).until(|x| x.primal().is_finite());
    let stop =
        run.value_and_grad(&1.0, &[0.5, 1.0], |x| *x).expect("a gradient").report.stop.expect("a margin");
    assert!(!stop.is_near_a_change(), "{stop:?}");
}

#[test]
fn what_does_not_go_together_is_refused() {
    let error =
        Rollout::new(Affine).until(|x| *x > 1.5).truncate(3).value_and_grad(&1.0, &[0.5, 1.0], |x| *x);
    assert_eq!(error.expect_err("a window and a condition").code(), "PAL0529");
    let undone = Rollout::new(Leapfrog).steps(10).truncate(3);
    let error =
        undone.value_and_grad_by_undoing(&[1.0, 0.0], &1.0, |[x, _]| *x).expect_err("a window and undoing");
    assert_eq!(error.code(), "PAL0529");
    let undone = Rollout::new(Leapfrog).steps(10).schedule(Schedule::StoreAll);
    let error =
        undone.value_and_grad_by_undoing(&[1.0, 0.0], &1.0, |[x, _]| *x).expect_err("snapshots and undoing");
    assert_eq!(error.code(), "PAL0529");
}

/// x <- x + sqrt(p).
struct Root;

impl Step for Root {
    type State<S: Number> = S;
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Real>(&self, x: &mut S, p: &S, _: &()) {
        *x += p.sqrt();
    }
}

#[test]
fn a_parameter_without_a_derivative_is_told() {
    let error = Rollout::new(Root).steps(3).value_and_grad(&1.0, &0.0, |x| *x).expect_err("a vertical slope");
    assert_eq!(error.code(), "PAL0104");
}

/// x <- sqrt(x - 1): NaN after a few steps.
struct Falling;

impl Step for Falling {
    type State<S: Number> = S;
    type Params<S: Number> = ();
    type Input<S: Number> = ();
    fn step<S: Real>(&self, x: &mut S, _: &(), _: &()) {
        *x = (*x - 1.0).sqrt();
    }
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
    assert!(stops.run(&10.0, &()).expect("a state").is_nan());
    let stops = Rollout::new(Falling).until(|x| {
        let goes_on = *x > 0.5;
        !goes_on
    });
    assert_eq!(stops.value_and_grad(&10.0, &(), |x| *x).expect_err("NaN is no loss").code(), "PAL0526");
}

/// A step with hidden state: a counter outside of what is kept.
struct Hidden(std::cell::Cell<u64>);

impl Step for Hidden {
    type State<S: Number> = S;
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Number>(&self, x: &mut S, p: &S, _: &()) {
        self.0.set(self.0.get() + 1);
        *x = *x * 0.5 + *p * (self.0.get() as f64);
    }
}

#[test]
fn hidden_state_is_found_by_schedules_that_record_blocks() {
    for schedule in
        [Schedule::Mixed { places: 4 }, Schedule::Mixed { places: 1 }, Schedule::Periodic { every: 7 }]
    {
        for verify in [false, true] {
            let run = Rollout::new(Hidden(0.into())).steps(40).schedule(schedule);
            let run = if verify { run.verify() } else { run };
            let error = run.value_and_grad(&1.0, &1.0, |x| *x).expect_err("hidden state");
            assert!(matches!(error, Error::Diverged { .. }), "{schedule:?}, {verify}: {error}");
        }
    }
    // What is not computed twice does not differ, unless it is verified.
    let run = || Rollout::new(Hidden(0.into())).steps(40).schedule(Schedule::StoreAll);
    assert!(run().value_and_grad(&1.0, &1.0, |x| *x).is_ok());
    let error = run().verify().value_and_grad(&1.0, &1.0, |x| *x).expect_err("hidden state");
    assert_eq!(error, Error::Diverged { step: 0 });
}

#[test]
fn verification_agrees_with_every_schedule_and_refuses_what_is_not_exact() {
    let start = [1.0, 1.0, 1.0];
    let run = || Rollout::new(Lorenz).steps(150);
    let reference = bits(&run().value_and_grad(&start, &CHAOTIC, squares).expect("a gradient"));
    for schedule in [Schedule::Mixed { places: 4 }, Schedule::Periodic { every: 7 }, Schedule::StoreAll] {
        let verified = run().schedule(schedule).verify().value_and_grad(&start, &CHAOTIC, squares);
        assert_eq!(bits(&verified.expect("a gradient")), reference, "{schedule:?}");
    }
    let lossy = run().store(|| palinode_time::LossyStore::f32(palinode_time::MemoryStore::new())).verify();
    let error = lossy.value_and_grad(&start, &CHAOTIC, squares).expect_err("other states come back");
    assert_eq!(error.code(), "PAL0529");
    let undone = Rollout::new(Leapfrog).steps(100).verify();
    assert!(undone.value_and_grad_by_undoing(&[1.0, 0.25], &1.3, |[x, _]| *x).is_ok());
}

/// Fails once its number is below a limit.
#[derive(Default)]
struct Failing(palinode_time::Notes);

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
    fn notes(&self) -> Option<&palinode_time::Notes> {
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
    let hidden = Rollout::new(Repeat::new(Hidden(0.into()), 6).snapshots(2)).steps(3).nested();
    let error = hidden.value_and_grad(&1.0, &1.0, |x| *x).expect_err("hidden state");
    let Error::InInnerLoop { step, inner, .. } = error else { panic!("{error}") };
    assert_eq!((step, error.code()), (0, "PAL0521"), "found in the warm-up");
    assert!(inner < 6 && error.to_string().contains("of the inner loop of step 0: PAL0521"), "{error}");
}
