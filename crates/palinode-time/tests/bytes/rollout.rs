//! What rollouts take from the allocator: never more than the budget, whatever the schedule, the tier and the
//! way back; nothing per step after the first. And the smallest budget that a refusal names is enough, while
//! a byte less is refused.

use crate::chain::{Chain, Late, energy, start};
use crate::counting::measured;
use palinode_core::{Dual, Real, Var};
use palinode_macros::step;
use palinode_time::{
    CompressedStore, Error, LossyStore, MemoryStore, PlainInput, Repeat, Rollout, RolloutReport, Schedule,
};

type Second = Var<Dual<f64>>;

/// Budgets from the smallest to more than enough: the allocator never sees more. A byte less than the
/// smallest is refused.
fn stays_within(name: &str, gradient: &dyn Fn(usize) -> Result<RolloutReport, Error>) {
    let refused = |budget| match gradient(budget) {
        Err(Error::BudgetTooSmall { smallest, .. }) => smallest.bytes(),
        other => panic!("{name}: {budget} bytes are not enough: {other:?}"),
    };
    let smallest = refused(1);
    assert_eq!(
        refused(smallest - 1),
        smallest,
        "{name}: what is enough does not depend on what was asked for"
    );
    for more in [0, 1, 700, 50_000, 5_000_000] {
        let budget = smallest + more;
        let (report, peak, _) = measured(|| gradient(budget));
        let report = report.unwrap_or_else(|error| panic!("{name}, {smallest} + {more} bytes: {error}"));
        assert!(peak <= budget, "{name}: {peak} of {budget}, {more} more than the least; {report}");
        assert!(report.peak_bytes <= budget, "{name}: {report}");
        // What is moved while it grows is held twice for a moment, which only the plan counts.
        let least = (peak - peak / 8).saturating_sub(1024);
        assert!(report.peak_bytes >= least, "{name}: {peak} taken, {} reported", report.peak_bytes);
        // A bound that is always kept could be far too high.
        assert!(report.peak_bytes <= 2 * peak + 8192, "{name}: {peak} taken, {} reported", report.peak_bytes);
    }
}

const SCHEDULES: [Schedule; 9] = [
    Schedule::Best,
    Schedule::StoreAll,
    Schedule::Periodic { every: 1 },
    Schedule::Periodic { every: 7 },
    Schedule::Binomial { snapshots: 1 },
    Schedule::Binomial { snapshots: 4 },
    Schedule::Mixed { places: 1 },
    Schedule::Mixed { places: 4 },
    Schedule::Mixed { places: 60 },
];

/// Every schedule, on a chain of this length.
fn schedules(n: usize, steps: u64) {
    let (start, params) = (start(n), [3.0, 0.2]);
    for schedule in SCHEDULES {
        let rollout = || Rollout::new(Chain).input(0.001).steps(steps).schedule(schedule);
        stays_within(&format!("{schedule:?}, forward numbers, {n}"), &|budget| {
            let report = rollout().budget(budget).value_and_grad(&start, &params, energy)?.report;
            assert!(report.directions.is_some());
            Ok(report)
        });
        stays_within(&format!("{schedule:?}, tape, {n}"), &|budget| {
            Ok(rollout().tape_only().budget(budget).value_and_grad(&start, &params, energy)?.report)
        });
        stays_within(&format!("{schedule:?}, rule, {n}"), &|budget| {
            Ok(rollout().by_rule().budget(budget).value_and_grad(&start, &params, energy)?.report)
        });
        stays_within(&format!("{schedule:?}, along the way, {n}"), &|budget| {
            Ok(rollout().budget(budget).value_and_grad_along(&start, &params, |_, s| energy(s))?.report)
        });
        stays_within(&format!("{schedule:?}, verified, {n}"), &|budget| {
            Ok(rollout().verify().budget(budget).value_and_grad(&start, &params, energy)?.report)
        });
        stays_within(&format!("{schedule:?}, nested, {n}"), &|budget| {
            let run = Rollout::new(Repeat::new(Chain, 9)).input(0.001).steps(steps / 9).schedule(schedule);
            Ok(run.nested().budget(budget).value_and_grad(&start, &params, energy)?.report)
        });
        stays_within(&format!("{schedule:?}, nested, tape, {n}"), &|budget| {
            let run = Rollout::new(Repeat::new(Chain, 9)).input(0.001).steps(steps / 9).schedule(schedule);
            Ok(run.tape_only().nested().budget(budget).value_and_grad(&start, &params, energy)?.report)
        });
        stays_within(&format!("{schedule:?}, second order, {n}"), &|budget| {
            let (along, by) = ((vec![0.5; n], vec![-0.25; n]), [1.0, 0.5]);
            let loss = |(x, v): &(Vec<Second>, Vec<Second>)| x.iter().chain(v).map(|&u| u * u).sum();
            Ok(rollout().budget(budget).hvp(&start, &params, (&along, &by), loss)?.1.report)
        });
    }
}

/// Other ways back, other stores.
fn forms(n: usize, steps: u64, directory: &std::path::Path) {
    let (start, params) = (start(n), [3.0, 0.2]);
    let rollout = || Rollout::new(Chain).input(0.001).steps(steps);
    stays_within(&format!("undoing, {n}"), &|budget| {
        Ok(rollout().budget(budget).value_and_grad_by_undoing(&start, &params, energy)?.report)
    });
    stays_within(&format!("a window, {n}"), &|budget| {
        Ok(rollout().truncate(20).budget(budget).value_and_grad(&start, &params, energy)?.report)
    });
    stays_within(&format!("windows along the way, {n}"), &|budget| {
        let run = rollout().truncate(1).budget(budget);
        Ok(run.value_and_grad_along(&start, &params, |_, state| energy(state))?.report)
    });
    for slots in [1, 7, 500] {
        stays_within(&format!("{slots} slots on disk, {n}"), &|budget| {
            let run = rollout().disk(slots, directory).budget(budget);
            Ok(run.value_and_grad(&start, &params, energy)?.report)
        });
    }
    stays_within(&format!("a second store in memory, {n}"), &|budget| {
        let run = rollout().second_store(7, || Ok(MemoryStore::new())).budget(budget);
        Ok(run.value_and_grad(&start, &params, energy)?.report)
    });
    stays_within(&format!("compressed, {n}"), &|budget| {
        let run = rollout().store(|| CompressedStore::new(MemoryStore::new())).budget(budget);
        Ok(run.value_and_grad(&start, &params, energy)?.report)
    });
    stays_within(&format!("lossy, {n}"), &|budget| {
        let run = rollout().store(|| LossyStore::f32(MemoryStore::new()).tiny_to_zero()).budget(budget);
        Ok(run.value_and_grad(&start, &params, energy)?.report)
    });
    for by_rule in [false, true] {
        stays_within(&format!("until, {n}, rule: {by_rule}"), &|budget| {
            let run = Rollout::new(Chain)
                .input(0.001)
                .until(|(_, v)| v[0] > 0.015 || v[0] < -0.015)
                .at_most(100_000)
                .budget(budget);
            Ok(if by_rule {
                run.by_rule().value_and_grad(&start, &params, energy)?.report
            } else {
                run.value_and_grad(&start, &params, energy)?.report
            })
        });
    }
    // The inputs themselves are the caller's, and made before.
    let inputs: Vec<f64> = (0..steps).map(|i| i as f64 * 1e-6).collect();
    for schedule in SCHEDULES {
        let smallest = |budget: usize| {
            let run = Rollout::new(Chain).inputs(inputs.iter().copied()).schedule(schedule).budget(budget);
            let (gradient, peak, _) = measured(|| run.value_and_grad(&start, &params, energy));
            (gradient.map(|gradient| gradient.report.peak_bytes), peak)
        };
        let Err(Error::BudgetTooSmall { smallest: least, .. }) = smallest(1).0 else {
            panic!("1 byte is not enough")
        };
        for more in [0, 1_000, 100_000] {
            let budget = least.bytes() + more;
            let (reported, peak) = smallest(budget);
            let reported = reported.unwrap_or_else(|error| panic!("{schedule:?}, one input each: {error}"));
            assert!(
                peak <= budget && reported <= budget,
                "{schedule:?}, one input each: {peak}, {reported} of {budget}"
            );
        }
    }
}

/// Every number of the state is pushed by one of a list, which an integer chooses.
#[step(Listed)]
fn listed<S: Real>(x: &mut Vec<S>, a: &S, (push, at): &(Vec<S>, PlainInput<u64>)) {
    let push = push[at.0 as usize % push.len()];
    x.iter_mut().for_each(|x| *x = (*x * *a + push).sin());
}

/// Inputs that a function makes: they take no memory but those of one unit, however long the loop is.
fn inputs_by_a_function(n: usize, steps: u64) {
    let (start, params) = (start(n), [3.0, 0.2]);
    let push = |step: u64| 0.001 + step as f64 * 1e-7;
    for schedule in SCHEDULES {
        let rollout = || Rollout::new(Chain).inputs_by(push).steps(steps).schedule(schedule);
        stays_within(&format!("{schedule:?}, inputs by a function, {n}"), &|budget| {
            let gradient = rollout().budget(budget).value_and_grad(&start, &params, energy)?;
            assert!(gradient.inputs.is_empty() && gradient.report.directions.is_some());
            Ok(gradient.report)
        });
        stays_within(&format!("{schedule:?}, inputs by a function, tape, {n}"), &|budget| {
            Ok(rollout().tape_only().budget(budget).value_and_grad(&start, &params, energy)?.report)
        });
        stays_within(&format!("{schedule:?}, inputs by a function, rule, {n}"), &|budget| {
            Ok(rollout().by_rule().budget(budget).value_and_grad(&start, &params, energy)?.report)
        });
        stays_within(&format!("{schedule:?}, inputs by a function, second order, {n}"), &|budget| {
            let (along, by) = ((vec![0.5; n], vec![-0.25; n]), [1.0, 0.5]);
            let loss = |(x, v): &(Vec<Second>, Vec<Second>)| x.iter().chain(v).map(|&u| u * u).sum();
            Ok(rollout().budget(budget).hvp(&start, &params, (&along, &by), loss)?.1.report)
        });
        // What the function gives is counted, too, as long as it is looked at.
        let list = |step: u64| (vec![0.01; 40], PlainInput(step));
        stays_within(&format!("{schedule:?}, lists by a function, {n}"), &|budget| {
            let run = Rollout::new(Listed).inputs_by(list).steps(steps).schedule(schedule).budget(budget);
            Ok(run.value_and_grad(&start.0, &0.9, |x| x[0])?.report)
        });
    }
    stays_within(&format!("until, inputs by a function, {n}"), &|budget| {
        let run = Rollout::new(Chain).inputs_by(push).until(|(_, v)| v[0] > 0.015 || v[0] < -0.015);
        Ok(run.at_most(100_000).budget(budget).value_and_grad(&start, &params, energy)?.report)
    });
    stays_within(&format!("undoing, inputs by a function, {n}"), &|budget| {
        let run = Rollout::new(Chain).inputs_by(push).steps(steps).budget(budget);
        Ok(run.value_and_grad_by_undoing(&start, &params, energy)?.report)
    });
    let least = |steps: u64| {
        let run = Rollout::new(Chain).inputs_by(push).steps(steps).budget(1);
        match run.value_and_grad(&start, &params, energy) {
            Err(Error::BudgetTooSmall { smallest, .. }) => smallest.bytes(),
            other => panic!("one byte is not enough: {other:?}"),
        }
    };
    assert_eq!(least(1_000), least(1_000_000_000), "a longer loop has the same least budget");
}

/// A state that is one number longer after each step.
#[step(Growing)]
fn growing<S: Real>(x: &mut Vec<S>, a: &S) {
    let last = x[x.len() - 1];
    x.push((last * *a).sin());
}

/// A list of lists, the last of which grows to five before the next begins; the lists shrink again after a
/// while.
#[step(Waves)]
fn waves<S: Real>((lists, left): &mut (Vec<Vec<S>>, PlainInput<u64>), a: &S) {
    left.0 -= 1;
    let last = lists.last().and_then(|list| list.last()).copied().unwrap_or(*a);
    if left.0 < 20 {
        lists.pop();
    }
    match lists.last_mut() {
        Some(list) if list.len() < 5 => list.push((last * *a).sin()),
        Some(_) | None => lists.push(vec![(last * *a).cos()]),
    }
}

/// A queue that is as long after each step as before it, though not meanwhile.
#[step(Queue)]
fn queue<S: Real>(queue: &mut std::collections::VecDeque<S>, a: &S) {
    let (first, last) = (queue[0], queue[queue.len() - 1]);
    queue.push_back((first * *a + last).sin());
    queue.pop_front();
}

/// States that grow from the first steps on: the largest one is planned for.
fn states_that_grow(directory: &std::path::Path) {
    let squares = |x: &Vec<Var<f64>>| x.iter().map(|&x| x * x).sum::<Var<f64>>();
    let start = vec![0.5];
    for schedule in SCHEDULES {
        let rollout = || Rollout::new(Growing).steps(80).schedule(schedule);
        stays_within(&format!("{schedule:?}, a state that grows"), &|budget| {
            Ok(rollout().budget(budget).value_and_grad(&start, &0.9, squares)?.report)
        });
        stays_within(&format!("{schedule:?}, a state that grows, along"), &|budget| {
            Ok(rollout().budget(budget).value_and_grad_along(&start, &0.9, |_, x| x[x.len() - 1])?.report)
        });
        stays_within(&format!("{schedule:?}, a state that grows, verified"), &|budget| {
            Ok(rollout().verify().budget(budget).value_and_grad(&start, &0.9, squares)?.report)
        });
        stays_within(&format!("{schedule:?}, a state that grows, nested"), &|budget| {
            let run = Rollout::new(Repeat::new(Growing, 9)).steps(15).schedule(schedule);
            Ok(run.nested().budget(budget).value_and_grad(&start, &0.9, squares)?.report)
        });
        stays_within(&format!("{schedule:?}, a state that grows, second order"), &|budget| {
            let loss = |x: &Vec<Second>| x.iter().map(|&x| x * x).sum();
            Ok(rollout().budget(budget).hvp(&start, &0.9, (&vec![1.0], &0.5), loss)?.1.report)
        });
        stays_within(&format!("{schedule:?}, lists that come and go"), &|budget| {
            let run = Rollout::new(Waves).steps(120).schedule(schedule).budget(budget);
            let start = (vec![vec![0.5]], PlainInput(120));
            let last = |(lists, _): &(Vec<Vec<Var<f64>>>, _)| lists.iter().flatten().copied().sum();
            Ok(run.value_and_grad(&start, &0.9, last)?.report)
        });
        stays_within(&format!("{schedule:?}, a queue"), &|budget| {
            let run = Rollout::new(Queue).steps(50).schedule(schedule).budget(budget);
            Ok(run.value_and_grad(&(0..30).map(f64::from).collect(), &0.9, |queue| queue[7])?.report)
        });
    }
    stays_within("a state that grows, until", &|budget| {
        let run = Rollout::new(Growing).until(|x| x.len() > 80).budget(budget);
        Ok(run.value_and_grad(&start, &0.9, squares)?.report)
    });
    stays_within("a state that grows, a window", &|budget| {
        let run = Rollout::new(Growing).steps(80).truncate(20).budget(budget);
        Ok(run.value_and_grad(&start, &0.9, squares)?.report)
    });
    stays_within("a state that grows, compressed", &|budget| {
        let run = Rollout::new(Growing).steps(80).store(|| CompressedStore::new(MemoryStore::new()));
        Ok(run.budget(budget).value_and_grad(&start, &0.9, squares)?.report)
    });
    stays_within("a state that grows, on disk", &|budget| {
        let run = Rollout::new(Growing).steps(80).disk(7, directory).budget(budget);
        Ok(run.value_and_grad(&start, &0.9, squares)?.report)
    });
}

/// States that grow later: a gradient within the budget, or an error.
fn states_that_grow_later() {
    for until in [false, true] {
        let (mut fits, mut grown) = (0, 0);
        for budget in (8_000..200_000).step_by(2_500) {
            let run = Rollout::new(Late).budget(budget);
            let run = if until { run.until(|(_, taken)| taken.0 == 250) } else { run.steps(250) };
            let start = (vec![0.5], PlainInput(0));
            let sum = |(x, _): &(Vec<Var<f64>>, _)| x.iter().copied().sum();
            let (gradient, peak, _) = measured(|| run.value_and_grad(&start, &0.9, sum));
            match gradient {
                Ok(gradient) => {
                    assert!(peak <= budget, "until: {until}: {peak} of {budget}; {}", gradient.report);
                    fits += 1;
                }
                Err(Error::BudgetTooSmall { .. }) => {}
                Err(error) => {
                    assert_eq!(error.code(), "PAL0527", "{error}");
                    grown += 1;
                }
            }
        }
        assert!(fits > 0, "until: {until}: some of these budgets are enough: {fits}, {grown}");
    }
}

/// A long loop of unknown length: its bookkeeping does not grow with it.
fn long_loops() {
    stays_within("a long loop until", &|budget| {
        // A small budget takes steps by the square of their number.
        let steps = if budget < 20_000 { 300 } else { 200_000 };
        let run = Rollout::new(Countdown).until(|(_, _, left)| left.0 == 0).budget(budget);
        Ok(run.value_and_grad(&(0.5, 1.0, PlainInput(steps)), &0.999, |(x, _, _)| *x)?.report)
    });
}

/// A loop that knows when it ends, and tells nobody.
#[step(Countdown)]
fn countdown<S: Real>((x, y, left): &mut (S, S, PlainInput<u64>), k: &S) {
    *x = *x * *k + *y * 0.001;
    *y *= *k;
    left.0 -= 1;
}

pub(crate) fn run() {
    let directory = std::env::temp_dir().join(format!("palinode-rollout-bytes-{}", std::process::id()));
    states_that_grow(&directory);
    states_that_grow_later();
    // The smallest budget takes steps by the square of their number.
    for (n, steps) in [(1, 120), (3, 80), (40, 30), (120, 12)] {
        schedules(n, steps);
        forms(n, steps, &directory);
    }
    inputs_by_a_function(1, 150);
    inputs_by_a_function(40, 40);
    long_loops();
    let _ = std::fs::remove_dir_all(&directory);

    // Twice the steps, as many calls of the allocator.
    let (start, params) = (start(40), [3.0, 0.2]);
    for schedule in [Schedule::Binomial { snapshots: 10 }, Schedule::Periodic { every: 1 }] {
        let calls = |steps: u64| {
            let run = Rollout::new(Chain).input(0.001).steps(steps).schedule(schedule);
            measured(|| run.value_and_grad(&start, &params, energy).unwrap()).2
        };
        let by_function = |steps: u64| {
            let run =
                Rollout::new(Chain).inputs_by(|step| step as f64 * 1e-6).steps(steps).schedule(schedule);
            measured(|| run.value_and_grad(&start, &params, energy).unwrap()).2
        };
        calls(200);
        // Enough steps to take all snapshots even if many are recorded at once.
        let (some, more) = (calls(2000), calls(4000));
        let snapshots = if schedule == (Schedule::Periodic { every: 1 }) { 2000 } else { 0 };
        assert!(more <= some + snapshots, "{schedule:?}: {some} calls for 2000 steps, {more} for 4000");
        let (some, more) = (by_function(2000), by_function(4000));
        assert!(more <= some + snapshots, "{schedule:?}, inputs by a function: {some} calls, {more}");
    }
    let by_rule = |steps: u64| {
        let run = Rollout::new(Chain)
            .input(0.001)
            .steps(steps)
            .by_rule()
            .schedule(Schedule::Binomial { snapshots: 10 });
        measured(|| run.value_and_grad(&start, &params, energy).unwrap()).2
    };
    assert_eq!(by_rule(400), by_rule(800));
    println!("rollouts stay within their budgets");
}
