//! States that change their size, steps that take more memory than others: budgets hold all the same.

use crate::models::{bits, smallest};
use palinode_core::{Budget, Real};
use palinode_macros::step;
use palinode_time::{Error, Gradient, Number, PlainInput, Rollout, Schedule, Step};

/// What a budget of 1 byte names is enough, and a byte less names the same.
#[track_caller]
fn names_what_is_enough<St: Step>(run: impl Fn(usize) -> Result<Gradient<St>, Error>) -> usize {
    let enough = smallest(run(1));
    assert_eq!(smallest(run(enough - 1)), enough);
    run(enough).unwrap_or_else(|error| panic!("{enough} bytes are named: {error}"));
    enough
}

/// A list that loses its last number, or gains one, at each step.
struct Resizing(i32);

impl Step for Resizing {
    type State<S: Number> = Vec<S>;
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Number>(&self, list: &mut Vec<S>, k: &S, _: &()) {
        list.iter_mut().for_each(|x| *x *= *k);
        if self.0 > 0 {
            list.push(*k);
        } else {
            list.pop();
        }
    }
}

impl palinode_time::StepRule for Resizing {
    fn reverse<S: Number>(&self, _: &Vec<S>, k: &S, _: &(), of: &mut Vec<S>, _: &mut S, _: &mut ()) {
        of.iter_mut().for_each(|c| *c *= *k);
    }
}

#[test]
fn the_largest_of_growing_states_is_planned_for() {
    let run = |budget: Budget| {
        Rollout::new(Resizing(1)).steps(400).budget(budget).value_and_grad(&vec![1.0], &0.999, |list| list[0])
    };
    let enough = names_what_is_enough(|budget| run(budget.into()));
    let all = bits(&run(Budget::UNLIMITED).unwrap());
    for more in [0, 5_000, 50_000, 500_000] {
        assert_eq!(bits(&run((enough + more).into()).unwrap()), all, "{more}");
    }
}

#[test]
fn a_window_over_a_list_that_shrinks_gives_zeros_in_the_shape_of_the_first() {
    for change in [-1, 1] {
        let run = Rollout::new(Resizing(change)).steps(5).truncate(2);
        let gradient = run.value_and_grad(&vec![1.0; 10], &0.5, |list| list[0]).unwrap();
        assert_eq!(gradient.initial, vec![0.0; 10]);
        assert!(gradient.params != 0.0);
    }
}

#[test]
fn a_rule_for_a_state_that_changes_its_shape_is_refused() {
    for length in [3, 200] {
        let run = Rollout::new(Resizing(1)).steps(5).by_rule();
        let error =
            run.value_and_grad(&vec![1.0; length], &0.5, |list| list[0]).expect_err("the shape changes");
        assert_eq!(error.code(), "PAL0523");
    }
}

/// A list that is a thousand numbers longer after its hundredth step.
#[step(Jump)]
fn jump<S: Number>((list, taken): &mut (Vec<S>, PlainInput<u64>), k: &S) {
    list[0] *= *k;
    taken.0 += 1;
    if taken.0 == 100 {
        list.resize(1000, *k);
    }
}

#[test]
fn a_state_that_grows_late_is_planned_for_by_the_first_refusal() {
    // The first hundred steps need far less.
    names_what_is_enough(|budget| {
        let run = Rollout::new(Jump).steps(400).budget(budget);
        run.value_and_grad(&(vec![1.0], PlainInput(0)), &0.999, |(list, _)| list[0])
    });
}

#[test]
fn a_growing_state_is_given_the_bytes_of_snapshots() {
    let run = |schedule, budget: usize| {
        let run = Rollout::new(Resizing(1)).steps(300).record_at_once(1).schedule(schedule).budget(budget);
        run.value_and_grad(&vec![1.0], &0.999, |list| list[0])
    };
    let mut enough = 0;
    for budget in (20_000..400_000).step_by(20_000) {
        if let Ok(one) = run(Schedule::Binomial { snapshots: 1 }, budget) {
            assert_eq!(bits(&run(Schedule::Best, budget).unwrap()), bits(&one));
            enough += 1;
        }
    }
    assert!((1..19).contains(&enough), "some of these budgets are enough: {enough}");
}

/// A step whose residuals are many times its state.
#[step(Long)]
fn long<S: Real>(state: &mut [S; 3], p: &S) {
    for _ in 0..400_000 {
        let [x, y, z] = *state;
        *state = [(y * z).sin() * *p, (z * x).cos(), (x + y).sin()];
    }
}

#[test]
fn what_is_enough_is_named_without_recording_all_of_it() {
    let run = Rollout::new(Long).steps(3).budget("1KiB");
    let smallest = smallest(run.value_and_grad(&[0.5; 3], &0.9, |x| x[0]));
    assert!(smallest > 16 << 20, "{smallest}: more than what it was allowed to record");
}

/// A list that is a hundred times longer after its first step; every step takes the sine of each number.
#[step(Leap)]
fn leap<S: Real>(list: &mut Vec<S>, k: &S) {
    list.resize(1000, *k);
    list.iter_mut().for_each(|x| *x = (*x * *k).sin());
}

#[test]
fn what_is_named_is_enough_for_a_state_that_leaps_and_stays() {
    names_what_is_enough(|budget| {
        Rollout::new(Leap).steps(50).budget(budget).value_and_grad(&vec![1.0; 10], &0.999, |list| list[0])
    });
}

#[test]
fn a_loop_of_no_steps_keeps_its_budget() {
    for until in [false, true] {
        let run = |budget: usize| {
            let run = Rollout::new(Leap).budget(budget);
            let run = if until { run.until(|_| true) } else { run.steps(0) };
            run.value_and_grad(&vec![1.0; 50], &0.5, |list| list.iter().map(|&x| x * x).sum())
        };
        let gradient = run(names_what_is_enough(run)).unwrap();
        assert_eq!((gradient.value, gradient.initial[7]), (50.0, 2.0));
    }
}

/// A list that grows after a hundred steps, and is shortened again by the reverse sweep.
#[step(PushAndPop)]
fn push_and_pop<S: Number>((list, taken): &mut (Vec<S>, PlainInput<u64>), k: &S) {
    list[0] *= *k;
    taken.0 += 1;
    if taken.0 > 100 {
        list.push(*k);
    }
}

impl palinode_time::ReversibleStep for PushAndPop {
    fn step_back<S: Number>(&self, (list, taken): &mut (Vec<S>, PlainInput<u64>), k: &S, _: &()) {
        if taken.0 > 100 {
            list.pop();
        }
        taken.0 -= 1;
        list[0] /= *k;
    }
}

#[test]
fn undoing_plans_for_growing_states_too() {
    let run = |budget: usize| {
        let run = Rollout::new(PushAndPop).steps(200).budget(budget);
        run.value_and_grad_by_undoing(&(vec![1.0], PlainInput(0)), &0.999, |(list, _)| list[0])
    };
    let (all, within) = (run(usize::MAX).unwrap(), run(1_000_000).unwrap());
    assert_eq!((all.value, all.params), (within.value, within.params));
    names_what_is_enough(run);
}

/// A list twice as long after each step.
#[step(Double)]
fn double<S: Number>(list: &mut Vec<S>, k: &S) {
    list.resize(2 * list.len(), *k);
}

#[test]
fn a_state_that_grows_without_end_is_stopped() {
    let run = || Rollout::new(Double).budget("1KiB");
    for run in [run().until(|list| list.len() > 1 << 40), run().steps(40)] {
        let error = run.value_and_grad(&vec![1.0], &0.5, |list| list[0]).expect_err("more than there is");
        assert_eq!(error.code(), "PAL0527", "{error}");
    }
}

#[test]
fn a_store_of_the_callers_that_is_full_says_so_itself() {
    let run = Rollout::new(Leap)
        .steps(20)
        .store(|| palinode_time::MemoryStore::within(100.into()))
        .schedule(Schedule::Binomial { snapshots: 4 });
    let error = run.value_and_grad(&vec![1.0; 10], &0.5, |list| list[0]).expect_err("too little");
    assert_eq!(error.code(), "PAL0512", "{error}");
}
