//! States that change their size, steps that take more memory than others: budgets hold all the same.

use crate::rollout::bits;
use palinode_core::{Budget, Real};
use palinode_time::{Error, Number, PlainInput, Rollout, Schedule, Step};

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
fn a_window_over_a_list_that_shrinks_gives_zeros_in_the_shape_of_the_first() {
    for change in [-1, 1] {
        let run = Rollout::new(Resizing(change)).steps(5).truncate(2);
        let gradient = run.value_and_grad(&vec![1.0; 10], &0.5, |list| list[0]).expect("a gradient");
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

#[test]
fn the_largest_of_growing_states_is_planned_for() {
    let run = |budget: Budget| Rollout::new(Resizing(1)).steps(400).budget(budget);
    let run = |budget| run(budget).value_and_grad(&vec![1.0], &0.999, |list| list[0]);
    let Err(Error::BudgetTooSmall { smallest, .. }) = run(1.into()) else { panic!("1 byte is not enough") };
    let too_small = run((smallest.bytes() - 1).into()).expect_err("a byte too few");
    assert!(
        matches!(too_small, Error::BudgetTooSmall { smallest: same, .. } if same == smallest),
        "{too_small}"
    );
    let all = run(Budget::UNLIMITED).expect("a gradient");
    for more in [0, 5_000, 50_000, 500_000] {
        let gradient =
            run((smallest.bytes() + more).into()).unwrap_or_else(|error| panic!("{more}: {error}"));
        assert_eq!(bits(&gradient), bits(&all), "{more}");
    }
}

/// A list that is a thousand numbers longer after its hundredth step.
struct Jump;

impl Step for Jump {
    type State<S: Number> = (Vec<S>, PlainInput<u64>);
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Number>(&self, (list, taken): &mut (Vec<S>, PlainInput<u64>), k: &S, _: &()) {
        list[0] *= *k;
        taken.0 += 1;
        if taken.0 == 100 {
            list.resize(1000, *k);
        }
    }
}

#[test]
fn a_state_that_grows_late_is_planned_for_by_the_first_refusal() {
    let run = |budget: usize| Rollout::new(Jump).steps(400).budget(budget);
    let run = |budget| run(budget).value_and_grad(&(vec![1.0], PlainInput(0)), &0.999, |(list, _)| list[0]);
    let Err(Error::BudgetTooSmall { smallest, .. }) = run(1) else { panic!("1 byte is not enough") };
    run(smallest.bytes()).expect("what is named is enough, though the first hundred steps need far less");
    let less = run(smallest.bytes() - 1).expect_err("a byte too few");
    assert!(matches!(less, Error::BudgetTooSmall { smallest: same, .. } if same == smallest), "{less}");
}

#[test]
fn a_growing_state_is_given_the_room_of_snapshots() {
    let run = |schedule, budget: usize| {
        let run = Rollout::new(Resizing(1)).steps(300).record_at_once(1).schedule(schedule).budget(budget);
        run.value_and_grad(&vec![1.0], &0.999, |list| list[0])
    };
    let mut enough = 0;
    for budget in (20_000..400_000).step_by(20_000) {
        let one = run(Schedule::Binomial { snapshots: 1 }, budget);
        let best = run(Schedule::Best, budget);
        if let Ok(one) = one {
            let best =
                best.unwrap_or_else(|error| panic!("{budget} bytes are enough for one snapshot: {error}"));
            assert_eq!(bits(&best), bits(&one));
            enough += 1;
        }
    }
    assert!((1..19).contains(&enough), "some of these budgets are enough: {enough}");
}

/// A step whose residuals are many times its state.
struct Long;

impl Step for Long {
    type State<S: Number> = [S; 3];
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Real>(&self, state: &mut [S; 3], p: &S, _: &()) {
        for _ in 0..400_000 {
            let [x, y, z] = *state;
            *state = [(y * z).sin() * *p, (z * x).cos(), (x + y).sin()];
        }
    }
}

#[test]
fn what_is_enough_is_named_without_recording_all_of_it() {
    let run = Rollout::new(Long).steps(3).budget("1KiB");
    let Err(Error::BudgetTooSmall { smallest, .. }) = run.value_and_grad(&[0.5; 3], &0.9, |x| x[0]) else {
        panic!("a step takes some 40 MB")
    };
    assert!(smallest.bytes() > 16 << 20, "{smallest}: more than what it was allowed to record");
}

/// A list that is a hundred times longer after its first step; every step takes the sine of each number.
struct Leap;

impl Step for Leap {
    type State<S: Number> = Vec<S>;
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Real>(&self, list: &mut Vec<S>, k: &S, _: &()) {
        list.resize(1000, *k);
        list.iter_mut().for_each(|x| *x = (*x * *k).sin());
    }
}

#[test]
fn what_is_named_is_enough_for_a_state_that_leaps_and_stays() {
    let run = |budget: usize| Rollout::new(Leap).steps(50).budget(budget);
    let run = |budget| run(budget).value_and_grad(&vec![1.0; 10], &0.999, |list| list[0]);
    let Err(Error::BudgetTooSmall { smallest, .. }) = run(1) else { panic!("1 byte is not enough") };
    run(smallest.bytes()).expect("what is named is enough");
}

#[test]
fn a_loop_of_no_steps_keeps_its_budget() {
    for until in [false, true] {
        let run = |budget: usize| {
            let run = Rollout::new(Leap).budget(budget);
            let run = if until { run.until(|_| true) } else { run.steps(0) };
            run.value_and_grad(&vec![1.0; 50], &0.5, |list| list.iter().map(|&x| x * x).sum())
        };
        let Err(Error::BudgetTooSmall { smallest, .. }) = run(1) else { panic!("1 byte is not enough") };
        let gradient = run(smallest.bytes()).expect("what is named is enough");
        assert_eq!((gradient.value, gradient.initial[7]), (50.0, 2.0));
    }
}

/// A list that grows after a hundred steps, and is shortened again on the way back.
struct PushAndPop;

impl Step for PushAndPop {
    type State<S: Number> = (Vec<S>, PlainInput<u64>);
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Number>(&self, (list, taken): &mut (Vec<S>, PlainInput<u64>), k: &S, _: &()) {
        list[0] *= *k;
        taken.0 += 1;
        if taken.0 > 100 {
            list.push(*k);
        }
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
    let run = |budget: Budget| {
        let run = Rollout::new(PushAndPop).steps(200).budget(budget);
        run.value_and_grad_by_undoing(&(vec![1.0], PlainInput(0)), &0.999, |(list, _)| list[0])
    };
    let all = run(Budget::UNLIMITED).expect("a gradient");
    let within = run(1_000_000.into()).expect("a megabyte is plenty");
    assert_eq!((all.value, all.params), (within.value, within.params));
    let Err(Error::BudgetTooSmall { smallest, .. }) = run(1.into()) else { panic!("1 byte is not enough") };
    run(smallest).expect("what is named is enough");
}

/// A list twice as long after each step.
struct Double;

impl Step for Double {
    type State<S: Number> = Vec<S>;
    type Params<S: Number> = S;
    type Input<S: Number> = ();
    fn step<S: Number>(&self, list: &mut Vec<S>, k: &S, _: &()) {
        list.resize(2 * list.len(), *k);
    }
}

#[test]
fn a_state_that_grows_without_end_is_stopped() {
    let run = Rollout::new(Double).until(|list| list.len() > 1 << 40).budget("1KiB");
    let error = run.value_and_grad(&vec![1.0], &0.5, |list| list[0]).expect_err("more than there is");
    assert_eq!(error.code(), "PAL0527", "{error}");
    let error =
        Rollout::new(Double).steps(40).budget("1KiB").value_and_grad(&vec![1.0], &0.5, |list| list[0]);
    assert_eq!(error.expect_err("more than there is").code(), "PAL0527");
}

#[test]
fn a_store_of_the_callers_that_is_full_says_so_itself() {
    let run = Rollout::new(Leap)
        .steps(20)
        .store(|| palinode_time::MemoryStore::within(100.into()))
        .schedule(Schedule::Binomial { snapshots: 4 });
    let error = run.value_and_grad(&vec![1.0; 10], &0.5, |list| list[0]).expect_err("no room");
    assert_eq!(error.code(), "PAL0512", "{error}");
}
