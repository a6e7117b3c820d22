//! Loops that go wrong: each is told so, with the step at which to look.

use palinode_core::Real;
use palinode_time::{Error, Number, PlainInput, Rollout, Schedule, Step};
use std::cell::Cell;

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

/// Every step depends on it, and nothing else.
struct Always(Cell<u64>);

impl Step for Always {
    type State<S: Number> = S;
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Real>(&self, x: &mut S, a: &S, _: &()) {
        self.0.set(self.0.get() + 1);
        *x = x.sin() * *a * (1.0 + 1e-3 * self.0.get() as f64);
    }
}

#[test]
fn verification_names_the_first_step_that_differs() {
    let start = (1.0, PlainInput(0));
    for at in [0, 1, 37, 150, 198, 199] {
        for budget in ["32KiB", "1MiB", "unlimited"] {
            let run = once(at).steps(200).budget(budget).verify();
            let error = run.value_and_grad(&start, &0.9, |(x, _)| *x).expect_err("hidden state");
            assert_eq!(error, Error::Diverged { step: at }, "{budget}");
            let run = once(at).until(|(_, taken)| taken.0 == 200).budget(budget).verify();
            let error = run.value_and_grad(&start, &0.9, |(x, _)| *x).expect_err("hidden state");
            assert_eq!(error, Error::Diverged { step: at }, "{budget}, until");
        }
        for schedule in [Schedule::StoreAll, Schedule::Periodic { every: 7 }, Schedule::Mixed { slots: 3 }] {
            let run = once(at).steps(200).schedule(schedule).verify();
            let error = run.value_and_grad(&start, &0.9, |(x, _)| *x).expect_err("hidden state");
            assert_eq!(error, Error::Diverged { step: at }, "{schedule:?}");
        }
    }
    for steps in [1, 2, 3, 10, 64, 65, 1000] {
        let run = Rollout::new(Always(Cell::new(0))).steps(steps).verify();
        let error = run.value_and_grad(&1.0, &0.9, |x| *x).expect_err("hidden state");
        assert_eq!(error, Error::Diverged { step: 0 }, "{steps} steps");
    }
}

/// More steps than are hashed one by one in a budget: a difference is found all the same, and named within the steps between two hashes.
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
    let plain = run().value_and_grad(&start, &0.9, |(x, _)| *x).expect("a gradient").report;
    let verified = run().verify().value_and_grad(&start, &0.9, |(x, _)| *x).expect("a gradient").report;
    assert_eq!(verified.forward, plain.forward + 200);
    assert_eq!(verified.optimum, plain.optimum);
}

/// x <- a x^2: beyond all numbers after a few steps.
struct Squared;

impl Step for Squared {
    type State<S: Number> = S;
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Real>(&self, x: &mut S, a: &S, _: &()) {
        *x = *x * *x * *a;
    }
}

#[test]
fn a_loss_that_is_not_finite_is_told_with_the_step_that_made_it_so() {
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
    assert!(error.code() == "PAL0526" && error.to_string().contains("look at the loss"), "{error}");
}
