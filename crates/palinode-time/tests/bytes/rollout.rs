//! What rollouts take from the allocator: never more than the budget, whatever the schedule, the tier and the
//! reverse sweep; nothing per step after the first. And the smallest budget that a refusal names is enough,
//! while a byte less is refused.

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

/// The same for a rollout and what is asked of it.
macro_rules! stays_within {
    ($name:expr, $run:expr, hvp($($argument:expr),*)) => {
        stays_within(&format!("{:?}", $name), &|budget| Ok($run.budget(budget).hvp($($argument),*)?.1.report))
    };
    ($name:expr, $run:expr, $gradient:ident($($argument:expr),*)) => {
        stays_within(&format!("{:?}", $name), &|budget| Ok($run.budget(budget).$gradient($($argument),*)?.report))
    };
}

const PARAMS: [f64; 2] = [3.0, 0.2];

/// The energy of a chain, twice differentiable.
fn energy_of_second((x, v): &(Vec<Second>, Vec<Second>)) -> Second {
    x.iter().chain(v).map(|&u| u * u).sum()
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
    let start = start(n);
    let along = (&(vec![0.5; n], vec![-0.25; n]), &[1.0, 0.5]);
    for schedule in SCHEDULES {
        let rollout = || Rollout::new(Chain).input(0.001).steps(steps).schedule(schedule);
        let nested = || Rollout::new(Repeat::new(Chain, 9)).input(0.001).steps(steps / 9).schedule(schedule);
        let report = rollout().value_and_grad(&start, &PARAMS, energy).unwrap().report;
        assert!(report.directions.is_some());
        let name = |what| (schedule, what, n);
        stays_within!(name("forward numbers"), rollout(), value_and_grad(&start, &PARAMS, energy));
        stays_within!(name("tape"), rollout().tape_only(), value_and_grad(&start, &PARAMS, energy));
        stays_within!(name("rule"), rollout().by_rule(), value_and_grad(&start, &PARAMS, energy));
        stays_within!(name("along"), rollout(), value_and_grad_along(&start, &PARAMS, |_, s| energy(s)));
        stays_within!(name("verified"), rollout().verify(), value_and_grad(&start, &PARAMS, energy));
        stays_within!(name("nested"), nested().nested(), value_and_grad(&start, &PARAMS, energy));
        let on_tape = || nested().tape_only().nested();
        stays_within!(name("nested, tape"), on_tape(), value_and_grad(&start, &PARAMS, energy));
        stays_within!(name("second order"), rollout(), hvp(&start, &PARAMS, along, energy_of_second));
    }
}

/// Other reverse sweeps, other stores.
fn forms(n: usize, steps: u64, directory: &std::path::Path) {
    let start = start(n);
    let rollout = || Rollout::new(Chain).input(0.001).steps(steps);
    stays_within!(("undoing", n), rollout(), value_and_grad_by_undoing(&start, &PARAMS, energy));
    stays_within!(("a window", n), rollout().truncate(20), value_and_grad(&start, &PARAMS, energy));
    let cut = || rollout().truncate(1);
    stays_within!(("windows along", n), cut(), value_and_grad_along(&start, &PARAMS, |_, s| energy(s)));
    for files in [1, 7, 500] {
        let on_disk = || rollout().disk(files, directory);
        stays_within!((files, "files on disk", n), on_disk(), value_and_grad(&start, &PARAMS, energy));
    }
    let second = || rollout().second_store(7, || Ok(MemoryStore::new()));
    stays_within!(("a second store in memory", n), second(), value_and_grad(&start, &PARAMS, energy));
    let compressed = || rollout().store(|| CompressedStore::new(MemoryStore::new()));
    stays_within!(("compressed", n), compressed(), value_and_grad(&start, &PARAMS, energy));
    let lossy = || rollout().store(|| LossyStore::f32(MemoryStore::new()).tiny_to_zero());
    stays_within!(("lossy", n), lossy(), value_and_grad(&start, &PARAMS, energy));
    // The inputs themselves are the caller's, and made before.
    let inputs: Vec<f64> = (0..steps).map(|i| i as f64 * 1e-6).collect();
    for schedule in SCHEDULES {
        let run = |budget: usize| {
            let run = Rollout::new(Chain).inputs(inputs.iter().copied()).schedule(schedule).budget(budget);
            let (gradient, peak, _) = measured(|| run.value_and_grad(&start, &PARAMS, energy));
            (gradient.map(|gradient| gradient.report.peak_bytes), peak)
        };
        let (Err(Error::BudgetTooSmall { smallest, .. }), _) = run(1) else { panic!("1 byte is not enough") };
        for budget in [0, 1_000, 100_000].map(|more| smallest.bytes() + more) {
            let (reported, peak) = run(budget);
            let most = peak.max(reported.unwrap_or_else(|error| panic!("{schedule:?}, inputs: {error}")));
            assert!(most <= budget, "{schedule:?}, one input each: {most} of {budget}");
        }
    }
    let until = || Rollout::new(Chain).input(0.001).until(|(_, v)| v[0].abs() > 0.015).at_most(100_000);
    stays_within!(("until", n), until(), value_and_grad(&start, &PARAMS, energy));
    stays_within!(("until, rule", n), until().by_rule(), value_and_grad(&start, &PARAMS, energy));
}

/// Every number of the state is pushed by one of a list, which an integer chooses.
#[step(Listed)]
fn listed<S: Real>(x: &mut Vec<S>, a: &S, (push, at): &(Vec<S>, PlainInput<u64>)) {
    let push = push[at.0 as usize % push.len()];
    x.iter_mut().for_each(|x| *x = (*x * *a + push).sin());
}

/// Inputs that a function makes: they take no memory but those of one unit, however long the loop is.
fn inputs_by_a_function(n: usize, steps: u64) {
    let start = start(n);
    let along = (&(vec![0.5; n], vec![-0.25; n]), &[1.0, 0.5]);
    let push = |step: u64| 0.001 + step as f64 * 1e-7;
    for schedule in SCHEDULES {
        let rollout = || Rollout::new(Chain).inputs_by(push).steps(steps).schedule(schedule);
        let gradient = rollout().value_and_grad(&start, &PARAMS, energy).unwrap();
        assert!(gradient.inputs.is_empty() && gradient.report.directions.is_some());
        let name = |what| (schedule, "inputs by a function", what, n);
        stays_within!(name("forward numbers"), rollout(), value_and_grad(&start, &PARAMS, energy));
        stays_within!(name("tape"), rollout().tape_only(), value_and_grad(&start, &PARAMS, energy));
        stays_within!(name("rule"), rollout().by_rule(), value_and_grad(&start, &PARAMS, energy));
        stays_within!(name("second order"), rollout(), hvp(&start, &PARAMS, along, energy_of_second));
        // What the function gives is counted, too, as long as it is looked at.
        let list = |step: u64| (vec![0.01; 40], PlainInput(step));
        let lists = || Rollout::new(Listed).inputs_by(list).steps(steps).schedule(schedule);
        stays_within!(name("lists"), lists(), value_and_grad(&start.0, &0.9, |x| x[0]));
    }
    let until = || Rollout::new(Chain).inputs_by(push).until(|(_, v)| v[0].abs() > 0.015).at_most(100_000);
    stays_within!(("until, inputs by a function", n), until(), value_and_grad(&start, &PARAMS, energy));
    let rollout = || Rollout::new(Chain).inputs_by(push).steps(steps);
    let name = ("undoing, inputs by a function", n);
    stays_within!(name, rollout(), value_and_grad_by_undoing(&start, &PARAMS, energy));
    let least = |steps: u64| {
        let run = Rollout::new(Chain).inputs_by(push).steps(steps).budget(1);
        match run.value_and_grad(&start, &PARAMS, energy) {
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
    let second = |x: &Vec<Second>| x.iter().map(|&x| x * x).sum();
    let start = vec![0.5];
    for schedule in SCHEDULES {
        let rollout = || Rollout::new(Growing).steps(80).schedule(schedule);
        let name = |what| (schedule, "a state that grows", what);
        stays_within!(name(""), rollout(), value_and_grad(&start, &0.9, squares));
        stays_within!(name("along"), rollout(), value_and_grad_along(&start, &0.9, |_, x| x[x.len() - 1]));
        stays_within!(name("verified"), rollout().verify(), value_and_grad(&start, &0.9, squares));
        let nested = || Rollout::new(Repeat::new(Growing, 9)).steps(15).schedule(schedule).nested();
        stays_within!(name("nested"), nested(), value_and_grad(&start, &0.9, squares));
        stays_within!(name("second order"), rollout(), hvp(&start, &0.9, (&vec![1.0], &0.5), second));
        let waves = || Rollout::new(Waves).steps(120).schedule(schedule);
        let of_lists = |(lists, _): &(Vec<Vec<Var<f64>>>, _)| lists.iter().flatten().copied().sum();
        let lists = (vec![vec![0.5]], PlainInput(120));
        stays_within!((schedule, "lists come and go"), waves(), value_and_grad(&lists, &0.9, of_lists));
        let queue = || Rollout::new(Queue).steps(50).schedule(schedule);
        let of_queue = (0..30).map(f64::from).collect();
        stays_within!((schedule, "a queue"), queue(), value_and_grad(&of_queue, &0.9, |queue| queue[7]));
    }
    let rollout = || Rollout::new(Growing).steps(80);
    let until = || Rollout::new(Growing).until(|x| x.len() > 80);
    stays_within!("a state that grows, until", until(), value_and_grad(&start, &0.9, squares));
    stays_within!(
        "a state that grows, a window",
        rollout().truncate(20),
        value_and_grad(&start, &0.9, squares)
    );
    let compressed = || rollout().store(|| CompressedStore::new(MemoryStore::new()));
    stays_within!("a state that grows, compressed", compressed(), value_and_grad(&start, &0.9, squares));
    stays_within!(
        "a state that grows, on disk",
        rollout().disk(7, directory),
        value_and_grad(&start, &0.9, squares)
    );
}

/// States that grow later: a gradient within the budget, or an error.
fn states_that_grow_later() {
    for until in [false, true] {
        let mut fits = 0;
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
                Err(error) => assert_eq!(error.code(), "PAL0527", "{error}"),
            }
        }
        assert!(fits > 0, "until: {until}: some of these budgets are enough");
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
    let start = start(40);
    for schedule in [Schedule::Binomial { snapshots: 10 }, Schedule::Periodic { every: 1 }] {
        let run = |steps: u64| Rollout::new(Chain).steps(steps).schedule(schedule);
        let calls =
            |run: Rollout<'_, Chain>| measured(|| run.value_and_grad(&start, &PARAMS, energy).unwrap()).2;
        let same = |steps| calls(run(steps).input(0.001));
        let by_function = |steps| calls(run(steps).inputs_by(|step| step as f64 * 1e-6));
        same(200);
        // Enough steps to take all snapshots even if many are recorded at once.
        let snapshots = if schedule == (Schedule::Periodic { every: 1 }) { 2000 } else { 0 };
        for (some, more) in [(same(2000), same(4000)), (by_function(2000), by_function(4000))] {
            assert!(more <= some + snapshots, "{schedule:?}: {some} calls for 2000 steps, {more} for 4000");
        }
    }
    let by_rule = |steps: u64| {
        let run =
            Rollout::new(Chain).input(0.001).steps(steps).schedule(Schedule::Binomial { snapshots: 10 });
        measured(|| run.by_rule().value_and_grad(&start, &PARAMS, energy).unwrap()).2
    };
    assert_eq!(by_rule(400), by_rule(800));
    println!("rollouts stay within their budgets");
}
