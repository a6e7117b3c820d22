//! Steps that depend on something hidden: whatever the reverse sweep and the schedule, the answer is an
//! error, or value and gradient belong to one and the same loop.
//!
//! Every step multiplies by something, so value = first state * derivative by it, whatever is hidden in the
//! factors. Where a step that was run again computed something else, that breaks.

use crate::models::SCHEDULES;
use palinode_core::{Dual, Real, Var};
use palinode_macros::step;
use palinode_time::{
    Error, Gradient, Number, PlainInput, Repeat, ReversibleStep, Rollout, RolloutReport, Schedule, Step,
    StepRule,
};
use std::cell::Cell;

/// What is hidden in a step: how often it was asked, and what comes of that.
#[derive(Clone, Debug)]
struct Hidden {
    calls: Cell<u64>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Another number each time.
    Counts,
    /// Another number once and for all after so many calls, such as by a cache or a file.
    SwitchesAfter(u64),
    /// Another number at this call only.
    DiffersAt(u64),
}

impl Hidden {
    fn new(kind: Kind) -> Self {
        Hidden { calls: Cell::new(0), kind }
    }

    fn factor(&self) -> f64 {
        let call = self.calls.replace(self.calls.get() + 1);
        match self.kind {
            Kind::Counts => 1.0 + 1e-4 * call as f64,
            Kind::SwitchesAfter(at) => 1.0 + if call >= at { 1e-3 } else { 0.0 },
            Kind::DiffersAt(at) => 1.0 + if call == at { 1e-3 } else { 0.0 },
        }
    }
}

/// x <- a x, times what is hidden; a counter in the state, or not.
impl Step for Hidden {
    type State<S: Number> = S;
    type Params<S: Number> = S;
    type Input<S: Number> = PlainInput<f64>;
    fn step<S: Real>(&self, x: &mut S, a: &S, input: &PlainInput<f64>) {
        *x = *x * *a * self.factor() * input.0;
    }
}

impl StepRule for Hidden {
    fn reverse<S: Real>(
        &self,
        x: &S,
        a: &S,
        input: &PlainInput<f64>,
        of_x: &mut S,
        of_a: &mut S,
        _: &mut PlainInput<f64>,
    ) {
        let factor = self.factor() * input.0;
        *of_a += *of_x * *x * factor;
        *of_x = *of_x * *a * factor;
    }
}

const START: f64 = 1.5;

/// An error about hidden state, or numbers that belong together.
fn is_found_or_one_loop(
    what: &dyn core::fmt::Debug,
    result: Result<(f64, f64, RolloutReport), Error>,
) -> bool {
    match result {
        Err(error) => {
            assert_eq!(error.code(), "PAL0521", "{what:?}: {error}");
            true
        }
        Ok((value, initial, report)) => {
            assert!(
                (value - START * initial).abs() < 1e-12 * value.abs(),
                "{what:?}: the derivative is {initial} of a loop with {}, and the value {value}: {report}",
                initial * START
            );
            assert!(!report.advanced_by_recording, "{what:?}: no library is in it: {report}");
            false
        }
    }
}

fn parts<St: Step<State<f64> = f64>>(gradient: Gradient<St>) -> (f64, f64, RolloutReport) {
    (gradient.value, gradient.initial, gradient.report)
}

/// All kinds, with switches at any time.
fn kinds() -> impl Iterator<Item = Kind> {
    let at = (0..40).chain((40..1200).step_by(37));
    core::iter::once(Kind::Counts).chain(at.flat_map(|at| [Kind::SwitchesAfter(at), Kind::DiffersAt(at)]))
}

#[test]
fn a_nested_loop_finds_it_as_a_flat_one_does() {
    let mut found = 0;
    for kind in kinds() {
        for schedule in SCHEDULES {
            for (times, steps) in [(1, 12), (3, 6), (7, 5)] {
                for tape_only in [false, true] {
                    let run = Rollout::new(Repeat::new(Hidden::new(kind), times)).input(1.0).steps(steps);
                    let run = run.schedule(schedule);
                    let run = if tape_only { run.tape_only() } else { run };
                    let gradient = run.nested().value_and_grad(&START, &0.9, |x| *x);
                    let what = (kind, schedule, times, steps, tape_only);
                    found += u64::from(is_found_or_one_loop(&what, gradient.map(parts)));
                }
            }
        }
    }
    assert!(found > 500, "{found}");
}

#[test]
fn a_loop_nested_twice_and_one_along_find_it() {
    for kind in kinds() {
        let inner = Repeat::new(Hidden::new(kind), 3);
        let run = Rollout::new(Repeat::new(inner, 2)).input(1.0).steps(5).nested();
        let gradient = run.value_and_grad(&START, &0.9, |x| *x);
        is_found_or_one_loop(&("twice", kind), gradient.map(parts));
        let run = Rollout::new(Repeat::new(Hidden::new(kind), 3)).input(1.0).steps(5).nested();
        let gradient = run.value_and_grad_along(&START, &0.9, |_, x| *x);
        is_found_or_one_loop(&("along", kind), gradient.map(parts));
        let run = Rollout::new(Repeat::new(Hidden::new(kind), 3)).input(1.0).until(|x| *x < 0.5).nested();
        let gradient = run.value_and_grad(&START, &0.9, |x| *x);
        is_found_or_one_loop(&("until", kind), gradient.map(parts));
        let run = Rollout::new(Repeat::new(Hidden::new(kind), 3)).input(1.0).steps(5).nested();
        let product = run.hvp(&START, &0.9, (&1.0, &0.0), |x: &Var<Dual<f64>>| *x);
        is_found_or_one_loop(&("second order", kind), product.map(|(gradient, _)| parts(gradient)));
    }
}

#[test]
fn a_flat_loop_does_not_take_it_for_a_library() {
    let mut found = 0;
    for kind in kinds() {
        for schedule in SCHEDULES {
            // Fewer and more steps than go on one tape.
            for (steps, at_once) in [(20, None), (20, Some(1)), (70, Some(1)), (200, None), (600, Some(64))] {
                for tape_only in [false, true] {
                    let run = Rollout::new(Hidden::new(kind)).input(1.0).steps(steps).schedule(schedule);
                    let run = if tape_only { run.tape_only() } else { run };
                    let run = if let Some(at_once) = at_once { run.record_at_once(at_once) } else { run };
                    let gradient = run.value_and_grad(&START, &0.99, |x| *x);
                    let what = (kind, schedule, steps, at_once, tape_only);
                    found += u64::from(is_found_or_one_loop(&what, gradient.map(parts)));
                }
            }
        }
    }
    assert!(found > 500, "{found}");
}

#[test]
fn a_function_that_makes_other_inputs_each_time_is_found() {
    for kind in kinds() {
        for schedule in SCHEDULES {
            for tape_only in [false, true] {
                let hidden = Hidden::new(kind);
                let run = Rollout::new(Hidden::new(Kind::DiffersAt(u64::MAX)));
                let run = run.inputs_by(|_| hidden.factor()).steps(30).schedule(schedule);
                let run = if tape_only { run.tape_only() } else { run };
                let gradient = run.value_and_grad(&START, &0.9, |x| *x);
                is_found_or_one_loop(&("flat", kind, schedule, tape_only), gradient.map(parts));
                let hidden = Hidden::new(kind);
                let inner = Repeat::new(Hidden::new(Kind::DiffersAt(u64::MAX)), 2);
                let run = Rollout::new(inner).inputs_by(|_| hidden.factor()).steps(10).schedule(schedule);
                let gradient = run.nested().value_and_grad(&START, &0.9, |x| *x);
                is_found_or_one_loop(&("nested", kind, schedule), gradient.map(parts));
            }
        }
    }
}

#[test]
fn a_rule_whose_step_differs_each_time_is_found() {
    for schedule in SCHEDULES {
        for steps in [2, 3, 20, 300] {
            let run = Rollout::new(Hidden::new(Kind::Counts)).input(1.0).steps(steps).schedule(schedule);
            let error = run.by_rule().value_and_grad(&START, &0.9, |x| *x).map(parts).expect_err("hidden");
            assert_eq!(error.code(), "PAL0521", "{schedule:?}, {steps}: {error}");
            let hidden = Hidden::new(Kind::Counts);
            let run = Rollout::new(Hidden::new(Kind::DiffersAt(u64::MAX))).inputs_by(|_| hidden.factor());
            let run = run.steps(steps).schedule(schedule).by_rule();
            let error = run.value_and_grad(&START, &0.9, |x| *x).map(parts).expect_err("hidden");
            assert_eq!(error.code(), "PAL0521", "inputs, {schedule:?}, {steps}: {error}");
        }
    }
}

impl ReversibleStep for Hidden {
    fn step_back<S: Real>(&self, x: &mut S, a: &S, input: &PlainInput<f64>) {
        *x = *x / *a / (self.factor() * input.0);
    }
}

#[test]
fn undoing_finds_it_or_reports_a_drift_as_large() {
    for kind in kinds() {
        let run = Rollout::new(Hidden::new(kind)).input(1.0).steps(30);
        match run.value_and_grad_by_undoing(&START, &0.9, |x| *x) {
            Err(error) => assert!(["PAL0521", "PAL0537"].contains(&error.code()), "{kind:?}: {error}"),
            Ok(Gradient { value, initial, report, .. }) => {
                let off = (value - START * initial).abs() / value;
                let drift = report.drift.expect("it is measured");
                assert!(off <= 2.0 * drift + 1e-12, "{kind:?}: off by {off:e}, and a drift of {drift:e}");
            }
        }
    }
    let run = Rollout::new(Hidden::new(Kind::Counts)).input(1.0).steps(30);
    assert_eq!(
        run.value_and_grad_by_undoing(&START, &0.9, |x| *x).map(parts).expect_err("hidden state"),
        Error::Diverged { step: 0 }
    );
}

#[test]
fn a_loss_that_hides_something_gives_the_gradient_of_the_value_it_gave() {
    for kind in kinds() {
        let hidden = Hidden::new(kind);
        let run = Rollout::new(Hidden::new(Kind::DiffersAt(u64::MAX))).input(1.0).steps(10);
        let gradient = run.value_and_grad(&START, &0.9, |x| *x * hidden.factor());
        assert!(!is_found_or_one_loop(&kind, gradient.map(parts)), "a loss is not run again");
        let along = run.value_and_grad_along(&START, &0.9, |_, x| *x * hidden.factor());
        assert!(!is_found_or_one_loop(&kind, along.map(parts)), "a loss is not run again");
    }
}

/// A step that computes otherwise with recorded numbers, as libraries do: that is found to be so, and the
/// bits are those of recording.
#[step(Otherwise)]
fn otherwise<S: Real>(x: &mut S, a: &S, input: f64) {
    let third = if core::any::type_name::<S>().contains("Var") { *x / 3.0 } else { *x * (1.0 / 3.0) };
    *x = (third * *a + input).sin();
}

#[test]
fn a_library_that_computes_otherwise_is_still_told_apart_from_it() {
    let run = || Rollout::new(Otherwise).input(0.3).steps(60).tape_only();
    let all = run().schedule(Schedule::StoreAll).value_and_grad(&START, &0.9, |x| *x).unwrap();
    for schedule in SCHEDULES {
        let flat = run().schedule(schedule).value_and_grad(&START, &0.9, |x| *x).unwrap();
        let nested = Rollout::new(Repeat::new(Otherwise, 5)).input(0.3).steps(12).tape_only();
        let nested = nested.schedule(schedule).nested().value_and_grad(&START, &0.9, |x| *x).unwrap();
        for initial in [flat.initial, nested.initial] {
            assert_eq!(initial.to_bits(), all.initial.to_bits(), "{schedule:?}");
        }
        assert_eq!(nested.value.to_bits(), all.value.to_bits(), "{schedule:?}");
    }
}
