//! What rollouts take from the allocator: never more than the budget, nothing per step after the first.
//!
//! Without a harness, because all threads are counted, and the harness's own allocates when it likes.

use palinode_core::{Real, Var};
use palinode_time::{Error, Number, Rollout, Schedule, Step, StepRule};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};

static LIVE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);

struct Counting;

#[allow(unsafe_code)] // a global allocator cannot be had without it
// SAFETY: every call is handed to the system allocator with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        let live = LIVE.fetch_add(layout.size() as isize, Ordering::Relaxed) + layout.size() as isize;
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The result, the most bytes above the start, and the calls of the allocator.
fn measured<R>(run: impl FnOnce() -> R) -> (R, usize, usize) {
    let (live, calls) = (LIVE.load(Ordering::Relaxed), CALLS.load(Ordering::Relaxed));
    PEAK.store(live, Ordering::Relaxed);
    let result = run();
    (result, (PEAK.load(Ordering::Relaxed) - live) as usize, CALLS.load(Ordering::Relaxed) - calls)
}

/// A chain of coupled oscillators, updated in place.
struct Chain;

impl Step for Chain {
    type State<S: Number> = (Vec<S>, Vec<S>);
    type Params<S: Number> = [S; 2];
    type Input<S: Number> = S;
    fn step<S: Real>(&self, (x, v): &mut (Vec<S>, Vec<S>), [k, damping]: &[S; 2], push: &S) {
        for i in 0..x.len() {
            let left = if i == 0 { S::zero() } else { x[i - 1] };
            let right = if i + 1 == x.len() { S::zero() } else { x[i + 1] };
            v[i] = v[i] + (*k * (left - x[i] * 2.0 + right) - *damping * v[i]) * 0.01;
        }
        v[0] += *push;
        x.iter_mut().zip(v.iter()).for_each(|(x, v)| *x += *v * 0.01);
    }
}

impl StepRule for Chain {
    fn reverse<S: Real>(
        &self,
        (x, v): &(Vec<S>, Vec<S>),
        [k, damping]: &[S; 2],
        _: &S,
        (of_x, of_v): &mut (Vec<S>, Vec<S>),
        [of_k, of_damping]: &mut [S; 2],
        of_push: &mut S,
    ) {
        let n = x.len();
        of_v.iter_mut().zip(of_x.iter()).for_each(|(v, x)| *v += *x * 0.01);
        *of_push += of_v[0];
        for i in (0..n).rev() {
            let c = of_v[i] * 0.01;
            let left = if i == 0 { S::zero() } else { x[i - 1] };
            let right = if i + 1 == n { S::zero() } else { x[i + 1] };
            *of_k += c * (left - x[i] * 2.0 + right);
            *of_damping -= c * v[i];
            if i > 0 {
                of_x[i - 1] += c * *k;
            }
            if i + 1 < n {
                of_x[i + 1] += c * *k;
            }
            of_x[i] -= c * *k * 2.0;
            of_v[i] -= c * *damping;
        }
    }
}

fn energy((x, v): &(Vec<Var<f64>>, Vec<Var<f64>>)) -> Var<f64> {
    x.iter().chain(v).map(|&u| u * u).sum()
}

fn start(n: usize) -> (Vec<f64>, Vec<f64>) {
    ((0..n).map(|i| (i as f64).sin()).collect(), vec![0.0; n])
}

/// Budgets from the smallest to more than enough: the allocator never sees more.
fn stays_within(name: &str, gradient: &dyn Fn(usize) -> Result<palinode_time::Report, Error>) {
    let Err(Error::BudgetTooSmall { smallest, .. }) = gradient(1) else {
        panic!("{name}: 1 byte is not enough")
    };
    for more in [0, 1, 50, 500, 5_000, 50_000, 500_000, 5_000_000] {
        let budget = smallest.bytes() + more;
        let (report, peak, _) = measured(|| gradient(budget).expect("a gradient"));
        assert!(peak <= budget, "{name}: {peak} of {budget}; {report}");
        assert!(report.peak_bytes <= budget, "{name}: {report}");
    }
}

fn main() {
    let params = [3.0, 0.2];
    // The smallest budget takes steps by the square of their number.
    for (n, steps) in [(1, 300), (3, 300), (40, 100), (300, 40)] {
        let start = start(n);
        let rollout = || Rollout::new(Chain).input(0.001).steps(steps);
        stays_within("forward numbers", &|budget| {
            let report = rollout().budget(budget).value_and_grad(&start, &params, energy)?.report;
            assert!(report.directions.is_some());
            Ok(report)
        });
        stays_within("tape", &|budget| {
            Ok(rollout().tape_only().budget(budget).value_and_grad(&start, &params, energy)?.report)
        });
        stays_within("rule", &|budget| {
            Ok(rollout().by_rule().budget(budget).value_and_grad(&start, &params, energy)?.report)
        });
        stays_within("along the way", &|budget| {
            Ok(rollout().budget(budget).value_and_grad_along(&start, &params, |_, s| energy(s))?.report)
        });
        stays_within("until", &|budget| {
            let run = Rollout::new(Chain)
                .input(0.001)
                .until(|(_, v)| v[0] > 0.015 || v[0] < -0.015)
                .at_most(100_000);
            Ok(run.budget(budget).value_and_grad(&start, &params, energy)?.report)
        });
        stays_within("one input for each step", &|budget| {
            let run = Rollout::new(Chain).inputs((0..steps).map(|i| i as f64 * 1e-6)).steps(steps);
            // The inputs themselves are the caller's.
            let (run, _, _) = measured(|| run.budget(budget));
            Ok(run.value_and_grad(&start, &params, energy)?.report)
        });
    }

    // Twice the steps, as many calls of the allocator.
    let start = start(40);
    for schedule in [Schedule::Binomial { snapshots: 10 }, Schedule::Periodic { every: 1 }] {
        let calls = |steps: u64| {
            let run = Rollout::new(Chain).input(0.001).steps(steps).schedule(schedule);
            measured(|| run.value_and_grad(&start, &params, energy).expect("a gradient")).2
        };
        calls(200);
        // Enough steps to take all snapshots even if many are recorded at once.
        let (some, more) = (calls(2000), calls(4000));
        let snapshots = if schedule == (Schedule::Periodic { every: 1 }) { 2000 } else { 0 };
        assert!(more <= some + snapshots, "{schedule:?}: {some} calls for 2000 steps, {more} for 4000");
    }
    let by_rule = |steps: u64| {
        let run = Rollout::new(Chain)
            .input(0.001)
            .steps(steps)
            .by_rule()
            .schedule(Schedule::Binomial { snapshots: 10 });
        measured(|| run.value_and_grad(&start, &params, energy).expect("a gradient")).2
    };
    assert_eq!(by_rule(400), by_rule(800));
}
