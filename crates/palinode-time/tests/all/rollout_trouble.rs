//! Loops that go wrong: each error names the step at which to look.

use crate::models::{Hidden, SCHEDULES};
use palinode_core::{Budget, Real};
use palinode_macros::step;
use palinode_time::{
    Error, MemoryStore, Number, PlainInput, ReversibleStep, Rollout, Schedule, Step, StepRule,
};
use std::cell::Cell;
use std::fmt::Debug;

/// One step, `at`, depends on how often steps were taken.
struct Once {
    calls: Cell<u64>,
    at: u64,
}

fn once<'a>(at: u64) -> Rollout<'a, Once> {
    Rollout::new(Once { calls: Cell::new(0), at })
}

impl Step for Once {
    type State<S: Number> = (S, PlainInput<u64>);
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Real>(&self, (x, taken): &mut (S, PlainInput<u64>), a: &S, _: &()) {
        self.calls.set(self.calls.get() + 1);
        *x = x.sin() * *a + 0.3;
        if taken.0 == self.at {
            *x += 1e-3 * self.calls.get() as f64;
        }
        taken.0 += 1;
    }
}

#[test]
fn verification_names_the_first_step_that_differs() {
    let start = (1.0, PlainInput(0));
    for at in [0, 1, 37, 150, 198, 199] {
        let diverges = |run: Rollout<'_, Once>, how: &dyn Debug| {
            let error = run.verify().value_and_grad(&start, &0.9, |(x, _)| *x).expect_err("hidden state");
            assert_eq!(error, Error::Diverged { step: at }, "{how:?}");
        };
        for budget in ["32KiB", "1MiB", "unlimited"] {
            diverges(once(at).steps(200).budget(budget), &budget);
            diverges(once(at).until(|(_, taken)| taken.0 == 200).budget(budget), &(budget, "until"));
        }
        for schedule in SCHEDULES {
            diverges(once(at).steps(200).schedule(schedule), &schedule);
        }
    }
    for steps in [1, 2, 3, 10, 64, 65, 1000] {
        let run = Rollout::new(Hidden::default()).steps(steps).verify();
        let error = run.value_and_grad(&1.0, &0.9, |x| *x).expect_err("hidden state");
        assert_eq!(error, Error::Diverged { step: 0 }, "{steps} steps");
    }
}

/// More steps than are hashed one by one in a budget: a difference is found all the same, and named within
/// the steps between two hashes.
#[test]
fn verification_misses_nothing_in_a_long_loop() {
    let start = (1.0, PlainInput(0));
    for at in [0, 1, 2999, 9990, 9997, 9998, 9999] {
        for until in [false, true] {
            let run = once(at).budget("64KiB").verify();
            let run = if until { run.until(|(_, taken)| taken.0 == 10_000) } else { run.steps(10_000) };
            let error = run.value_and_grad(&start, &0.9, |(x, _)| *x).expect_err("hidden state");
            assert!(
                matches!(error, Error::Diverged { step } if (at..at + 16).contains(&step)),
                "{at}: {error}"
            );
        }
    }
}

#[test]
fn verification_takes_one_forward_sweep_more_and_says_so() {
    let start = (1.0, PlainInput(0));
    let run = || once(u64::MAX).steps(200).record_at_once(1).schedule(Schedule::Binomial { snapshots: 5 });
    let plain = run().value_and_grad(&start, &0.9, |(x, _)| *x).unwrap().report;
    let verified = run().verify().value_and_grad(&start, &0.9, |(x, _)| *x).unwrap().report;
    assert_eq!(verified.forward, plain.forward + 200);
    assert_eq!(verified.optimum, plain.optimum);
}

/// x <- a x^2: beyond all numbers after a few steps.
#[step(Squared)]
fn squared<S: Real>(x: &mut S, a: &S) {
    *x = *x * *x * *a;
}

#[test]
fn a_loss_that_is_not_finite_is_reported_with_the_step_that_made_it_so() {
    // 10^(2^k) after k steps: 10^256 after 8, and too large after 9, which are steps 0 to 8.
    for budget in ["16KiB", "64KiB", "unlimited"] {
        let run = Rollout::new(Squared).steps(100).budget(budget);
        let expected = Error::NonFiniteLoss { value: f64::INFINITY, step: Some(8) };
        assert_eq!(run.value_and_grad(&10.0, &1.0, |x| *x).expect_err("too large"), expected, "{budget}");
        let along = run.value_and_grad_along(&10.0, &1.0, |_, x| *x).expect_err("too large");
        assert_eq!(along, expected, "{budget}, along");
    }
    let forward = Rollout::new(Squared).steps(100).jvp(&10.0, &1.0, (&1.0, &0.0), |x| *x);
    assert_eq!(forward, Err(Error::NonFiniteLoss { value: f64::INFINITY, step: Some(8) }));
    // The loop is all right, the loss is not.
    let run = Rollout::new(Squared).steps(3);
    let error =
        run.value_and_grad(&0.5, &1.0, |x| (*x - 1.0).ln()).expect_err("the logarithm of a negative number");
    assert!(matches!(error, Error::NonFiniteLoss { value, step: None } if value.is_nan()), "{error}");
    assert!(error.code() == "PAL0526" && error.to_string().contains("check the loss"), "{error}");
}

/// x <- p x.
#[step(Multiplied)]
fn multiplied<S: Real>(x: &mut S, p: &S, _: u64) {
    *x *= *p;
}

impl ReversibleStep for Multiplied {
    fn step_back<S: Real>(&self, x: &mut S, p: &S, _: &PlainInput<u64>) {
        *x /= *p;
    }
}

impl StepRule for Multiplied {
    fn reverse<S: Real>(
        &self,
        x: &S,
        p: &S,
        _: &PlainInput<u64>,
        of_x: &mut S,
        of_p: &mut S,
        _: &mut PlainInput<u64>,
    ) {
        *of_p += *of_x * *x;
        *of_x *= *p;
    }
}

/// What a rollout refuses, whatever is asked of it.
fn refused<'a>(make: impl Fn(Rollout<'a, Multiplied>) -> Rollout<'a, Multiplied>) -> Error {
    let run = make(Rollout::new(Multiplied).input(0));
    let first = run.value_and_grad(&1.0, &0.9, |x| *x).expect_err("options that make no sense");
    let others = [
        run.value_and_grad_along(&1.0, &0.9, |_, x| *x).err(),
        run.value_and_grad_by_undoing(&1.0, &0.9, |x| *x).err(),
        run.hvp(&1.0, &0.9, (&1.0, &0.0), |x| *x).err(),
        run.jvp(&1.0, &0.9, (&1.0, &0.0), |x| *x).err(),
        run.run(&1.0, &0.9).err(),
        run.check_rule(&1.0, &0.9, 3).err(),
        make(Rollout::new(Multiplied).input(0)).by_rule().run(&1.0, &0.9).err(),
    ];
    for other in others {
        // As text, because NaN is not equal to itself.
        assert_eq!(other.expect("the same refusal").to_string(), first.to_string());
    }
    first
}

#[test]
fn a_length_is_given_in_one_way() {
    let both = Error::NotTogether { what: "a number of steps (.steps)", with: "a condition (.until)" };
    assert_eq!(refused(|run| run.steps(5).until(|x| *x < 0.5)), both);
    assert_eq!(refused(|run| run.until(|x| *x < 0.5).steps(5)), both);
    let limit =
        Error::NotTogether { what: "a limit (.at_most)", with: "a loop without a condition (.until)" };
    for (steps, most) in [(10, 3), (3, 10)] {
        assert_eq!(refused(|run| run.steps(steps).at_most(most)), limit);
        assert_eq!(refused(|run| run.at_most(most).steps(steps)), limit);
    }
    let listed = Rollout::new(Multiplied).inputs([0; 4]).at_most(3);
    assert_eq!(listed.run(&1.0, &0.9), Err(limit));
    // The last of the same option counts, and a limit alone is no length.
    let run = || Rollout::new(Multiplied).input(0);
    assert_eq!(run().steps(3).steps(1).run(&1.0, &0.5), Ok(0.5));
    assert_eq!(run().at_most(3).run(&1.0, &0.5), Err(Error::NoLength));
}

#[test]
fn inputs_and_stores_are_given_in_one_way() {
    let error = refused(|run| run.inputs([1, 2]));
    assert_eq!(error.code(), "PAL0529");
    assert!(error.to_string().contains("(.input)") && error.to_string().contains("(.inputs)"), "{error}");
    let error = refused(|run| {
        run.steps(10).disk(3, std::env::temp_dir()).schedule(Schedule::Binomial { snapshots: 2 })
    });
    assert!(error.code() == "PAL0529" && error.to_string().contains("(.disk"), "{error}");
}

#[test]
fn numbers_that_make_no_sense_are_named() {
    for (schedule, what) in [
        (Schedule::Binomial { snapshots: 0 }, "Schedule::Binomial"),
        (Schedule::Mixed { places: 0 }, "Schedule::Mixed"),
        (Schedule::Periodic { every: 0 }, "Schedule::Periodic"),
    ] {
        for steps in [0, 1, 10] {
            let error = refused(|run| run.steps(steps).schedule(schedule));
            assert_eq!(error.code(), "PAL0501");
            let text = error.to_string();
            assert!(text.contains(what) && text.contains("is 0; it must be at least 1"), "{text}");
        }
    }
    let window = refused(|run| run.steps(10).truncate(0)).to_string();
    assert_eq!(window, "PAL0501: the window (.truncate) is 0; it must be at least 1");
    assert_eq!(refused(|run| run.steps(10).record_at_once(0)).code(), "PAL0501");
    let files = refused(|run| run.steps(10).disk(0, std::env::temp_dir())).to_string();
    let expected = "PAL0501: the number of snapshots in the second store (.disk, .second_store) is 0; it must be at least 1";
    assert_eq!(files, expected);
    assert_eq!(
        refused(|run| run.steps(10).second_store(0, || Ok(MemoryStore::within(Budget::UNLIMITED)))).code(),
        "PAL0501"
    );
    for norm in [0.0, -0.0, -1.0, f64::NEG_INFINITY, f64::NAN] {
        let error = refused(|run| run.steps(10).clip(norm));
        let expected = format!("PAL0501: the norm to clip at (.clip) is {norm}; it must be above 0");
        assert_eq!(error.to_string(), expected);
    }
    assert_eq!(refused(|run| run.steps(10).budget("64 apples")).code(), "PAL0108");
}

#[test]
fn a_rule_is_checked_as_far_as_the_loop_goes() {
    let run = Rollout::new(Multiplied).inputs([0; 10]);
    run.check_rule(&1.0, &0.9, 100).expect("a rule that is right");
    run.check_rule(&1.0, &0.9, 3).expect("a rule that is right");
    let counted = Rollout::new(Multiplied).input(0).steps(10);
    counted.check_rule(&1.0, &0.9, 100).expect("a rule that is right");
}

#[test]
fn several_mistakes_are_reported_at_once() {
    let error = refused(|run| run.steps(10).at_most(3).truncate(0).clip(f64::NAN));
    let Error::Several(mistakes) = &error else { panic!("{error}") };
    assert_eq!(mistakes.iter().map(Error::code).collect::<Vec<_>>(), ["PAL0529", "PAL0501", "PAL0501"]);
    assert_eq!(error.code(), "PAL0529");
    for part in ["(.at_most)", "(.truncate)", "(.clip)"] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn residuals_beyond_all_memory_are_reported_as_such() {
    for budget in ["1MiB", "unlimited"] {
        let run = Rollout::new(Multiplied).input(0).steps(u64::MAX).schedule(Schedule::StoreAll);
        let error = run.budget(budget).value_and_grad(&1.0, &0.9, |x| *x).expect_err("too much");
        assert_eq!(error, Error::BeyondMemory { what: "residuals" }, "{budget}");
        assert!(error.code() == "PAL0504" && !error.to_string().contains("unlimited"), "{error}");
    }
}

#[test]
fn a_direction_that_is_not_finite_is_reported() {
    let run = || Rollout::new(Squared).steps(3);
    let jvp = run().jvp(&0.5, &1.0, (&f64::NAN, &0.0), |x| *x).expect_err("no direction");
    let hvp = run().hvp(&0.5, &1.0, (&0.0, &f64::INFINITY), |x| *x).expect_err("no direction");
    assert_eq!((jvp.code(), hvp.code()), ("PAL0102", "PAL0102"), "{jvp}; {hvp}");
}
