//! Inputs that a function makes: the same bits as from a list, whatever drives the loop; no derivatives by
//! them; one size.

use crate::models::{SCHEDULES, bits};
use palinode_core::{Dual, Real, Var};
use palinode_macros::step;
use palinode_time::{Error, Gradient, PlainInput, Repeat, ReversibleStep, Rollout, Schedule, Step, StepRule};
use std::cell::Cell;
use std::fmt::Debug;

/// x <- a x + push, v <- v + b pull x.
#[step(Driven)]
fn driven<S: Real>([x, v]: &mut [S; 2], [a, b]: &[S; 2], [push, pull]: &[S; 2]) {
    *x = *a * *x + *push;
    *v += *b * *pull * *x;
}

impl StepRule for Driven {
    fn reverse<S: Real>(
        &self,
        [x, _]: &[S; 2],
        [a, b]: &[S; 2],
        [push, pull]: &[S; 2],
        [of_x, of_v]: &mut [S; 2],
        [of_a, of_b]: &mut [S; 2],
        [of_push, of_pull]: &mut [S; 2],
    ) {
        let after = *a * *x + *push;
        *of_b += *of_v * *pull * after;
        *of_pull += *of_v * *b * after;
        let of_after = *of_x + *of_v * *b * *pull;
        *of_a += of_after * *x;
        *of_push += of_after;
        *of_x = of_after * *a;
    }
}

impl ReversibleStep for Driven {
    fn step_back<S: Real>(&self, [x, v]: &mut [S; 2], [a, b]: &[S; 2], [push, pull]: &[S; 2]) {
        *v -= *b * *pull * *x;
        *x = (*x - *push) / *a;
    }
}

/// A list of numbers and one that is no number: x <- sin(x + w[k % 3] a), if the second says so.
#[step(Listed)]
fn listed<S: Real>(x: &mut Vec<S>, a: &S, (w, at): &(Vec<S>, PlainInput<u64>)) {
    let i = at.0 as usize % x.len();
    x[i] = (x[i] + w[at.0 as usize % w.len()] * *a).sin();
}

fn pair(step: u64) -> [f64; 2] {
    [(step as f64 * 0.7).sin() * 0.1, (step as f64).cos()]
}

fn list(step: u64) -> (Vec<f64>, PlainInput<u64>) {
    ((0..3).map(|i| (step as f64 + f64::from(i)).cos()).collect(), PlainInput(step * 5))
}

fn loss([x, v]: &[Var<f64>; 2]) -> Var<f64> {
    *x * *x + *v
}

/// The bits without those of the inputs, of which there are as many as said.
fn without_inputs<St: Step>(mut gradient: Gradient<St>, inputs: usize) -> Vec<u64> {
    assert_eq!(gradient.inputs.len(), inputs);
    gradient.inputs.clear();
    bits(&gradient)
}

#[test]
fn inputs_by_a_function_have_the_bits_of_a_list() {
    let (start, params) = ([0.3, -0.2], [0.9, 0.4]);
    let listed = || Rollout::new(Driven).inputs((0..200).map(pair));
    let made = || Rollout::new(Driven).steps(200).inputs_by(pair);
    // The same of both.
    let same =
        |what: &dyn Debug, gradient: &dyn Fn(Rollout<'static, Driven>) -> Result<Gradient<Driven>, Error>| {
            let (list, found) = (gradient(listed()).unwrap(), gradient(made()).unwrap());
            assert_eq!(without_inputs(found, 0), without_inputs(list, 200), "{what:?}");
        };
    for schedule in SCHEDULES {
        for at_once in [1, 5, 64] {
            let set = |run: Rollout<'static, Driven>| run.schedule(schedule).record_at_once(at_once);
            same(&(schedule, at_once), &|run| set(run).value_and_grad(&start, &params, loss));
            same(&(schedule, at_once, "verified"), &|run| {
                set(run).verify().value_and_grad(&start, &params, loss)
            });
        }
        same(&(schedule, "tape"), &|run| {
            run.tape_only().schedule(schedule).value_and_grad(&start, &params, loss)
        });
        same(&(schedule, "rule"), &|run| {
            run.by_rule().schedule(schedule).value_and_grad(&start, &params, loss)
        });
    }
    let along = |steps: u64, state: &[Var<f64>; 2]| loss(state) * steps as f64;
    same(&"along the way", &|run| run.value_and_grad_along(&start, &params, along));
    same(&"undoing", &|run| run.value_and_grad_by_undoing(&start, &params, loss));
    let direction = (&[1.0, 0.5], &[0.25, -1.0]);
    let second = |[x, v]: &[Var<Dual<f64>>; 2]| *x * *x + *v;
    same(&"first of second order", &|run| Ok(run.hvp(&start, &params, direction, second)?.0));
    same(&"second order", &|run| Ok(run.hvp(&start, &params, direction, second)?.1));
    made().check_rule(&start, &params, 20).expect("a rule that is right");
    assert_eq!(made().run(&start, &params), listed().run(&start, &params));
    let of_duals = |[x, v]: &[Dual<f64>; 2]| *x * *x + *v;
    let list = listed().jvp(&start, &params, direction, of_duals);
    assert_eq!(made().jvp(&start, &params, direction, of_duals), list);
    // A condition, and a loop in a loop.
    let until = |run: Rollout<'static, Driven>| {
        run.until(|[_, v]| v.abs() > 0.3).value_and_grad(&start, &params, loss).unwrap()
    };
    let (found, list) = (until(Rollout::new(Driven).inputs_by(pair)), until(listed()));
    assert!(found.report.steps > 3);
    let steps = list.report.steps as usize;
    assert_eq!(without_inputs(found, 0), without_inputs(list, steps), "until");
    let nested =
        |run: Rollout<'static, Repeat<Driven>>| run.nested().value_and_grad(&start, &params, loss).unwrap();
    let found = nested(Rollout::new(Repeat::new(Driven, 4)).steps(50).inputs_by(pair));
    let list = nested(Rollout::new(Repeat::new(Driven, 4)).inputs((0..50).map(pair)));
    assert_eq!(without_inputs(found, 0), without_inputs(list, 50), "nested");
}

#[test]
fn inputs_with_lists_and_integers_are_made_too() {
    let start = vec![0.1, 0.2, 0.3, 0.4];
    for schedule in SCHEDULES {
        let list = Rollout::new(Listed).inputs((0..90).map(list)).schedule(schedule);
        let made = Rollout::new(Listed).steps(90).inputs_by(self::list).schedule(schedule);
        let list = list.value_and_grad(&start, &0.7, |x| x[0] * x[3]).unwrap();
        let made = made.value_and_grad(&start, &0.7, |x| x[0] * x[3]).unwrap();
        assert_eq!(without_inputs(made, 0), without_inputs(list, 90), "{schedule:?}");
    }
}

#[test]
fn a_function_that_makes_no_sense_is_refused() {
    let (start, params) = ([0.3, -0.2], [0.9, 0.4]);
    assert_eq!(Rollout::new(Driven).inputs_by(pair).run(&start, &params), Err(Error::NoLength));
    let error = Rollout::new(Driven).input([0.0; 2]).inputs_by(pair).steps(3).run(&start, &params);
    assert_eq!(error.expect_err("two ways").code(), "PAL0529");
    // Another size at step 30.
    let uneven = |step: u64| (vec![0.5; if step == 30 { 4 } else { 3 }], PlainInput(step));
    for budget in ["1MiB", "unlimited"] {
        let run = Rollout::new(Listed).steps(90).inputs_by(uneven).budget(budget);
        let error = run.value_and_grad(&vec![0.1; 4], &0.7, |x| x[0]).expect_err("another size");
        assert_eq!(error, Error::InputChanged { step: 30 });
        assert_eq!(error.code(), "PAL0522");
    }
    // Another value each time.
    let calls = Cell::new(0_u64);
    let changing = |_: u64| {
        calls.set(calls.get() + 1);
        [calls.get() as f64 * 1e-3, 1.0]
    };
    let run =
        Rollout::new(Driven).steps(40).inputs_by(changing).schedule(Schedule::Binomial { snapshots: 2 });
    let error = run.verify().value_and_grad(&start, &params, loss).expect_err("other inputs");
    assert!(matches!(error, Error::Diverged { .. }), "{error}");
}
