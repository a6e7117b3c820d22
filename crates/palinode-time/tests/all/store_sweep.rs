//! Gradients of the Lorenz system with snapshots in every store: exact ones are held to the bits of a sweep
//! that keeps everything, lossy ones to what rollouts with them report.

use crate::store::Scratch;
use palinode_core::{Real, SnapshotStore, Var};
use palinode_macros::step;
use palinode_time::{CompressedStore, DiskStore, LossyStore, MemoryStore, Rollout, Schedule};

/// A step of Heun's method.
#[step(Heun)]
fn heun<S: Real>(u: &mut [S; 3]) {
    const DT: f64 = 0.01;
    let slope = |[x, y, z]: [S; 3]| [(y - x) * 10.0, x * (-z + 28.0) - y, x * y - z * (8.0 / 3.0)];
    let along = |u: [S; 3], h: f64, k: [S; 3]| [u[0] + k[0] * h, u[1] + k[1] * h, u[2] + k[2] * h];
    let k1 = slope(*u);
    let k2 = slope(along(*u, DT, k1));
    *u = along(along(*u, DT / 2.0, k1), DT / 2.0, k2);
}

fn sum([x, y, z]: &[Var<f64>; 3]) -> Var<f64> {
    *x + *y + *z
}

/// The gradient of x + y + z after a thousand steps by the initial state, with a snapshot every so many.
pub(crate) fn gradient<S: SnapshotStore + 'static>(every: u64, make: impl Fn() -> S) -> [u64; 3] {
    let run = Rollout::new(Heun).steps(1000).schedule(Schedule::Periodic { every }).store(make);
    run.value_and_grad(&[1.0, 1.0, 1.0], &(), sum).unwrap().initial.map(f64::to_bits)
}

#[test]
fn exact_stores_give_the_bits_of_keeping_everything() {
    let scratch = Scratch::new();
    let run = Rollout::new(Heun).steps(1000).schedule(Schedule::StoreAll);
    let exact = run.value_and_grad(&[1.0, 1.0, 1.0], &(), sum).unwrap().initial.map(f64::to_bits);
    for every in [1000, 143, 100, 4] {
        assert_eq!(gradient(every, MemoryStore::new), exact, "{every}");
        assert_eq!(gradient(every, || DiskStore::new(&scratch.0)), exact, "{every}");
        assert_eq!(gradient(every, || CompressedStore::new(MemoryStore::new())), exact, "{every}");
        assert_eq!(gradient(every, || CompressedStore::new(DiskStore::new(&scratch.0))), exact, "{every}");
    }
}

/// What a rollout with ten lossy snapshots reports, and how far its gradient is from the exact one.
fn reported_and_true(narrow: bool, start: [f64; 3], steps: u64) -> (f64, f64) {
    let run = || {
        let every = steps.div_ceil(10);
        Rollout::new(Heun).steps(steps).schedule(Schedule::Periodic { every })
    };
    let exact = run().value_and_grad(&start, &(), sum).unwrap().initial;
    let lossy = if narrow {
        run().store(|| LossyStore::bf16(MemoryStore::new()))
    } else {
        run().store(|| LossyStore::f32(MemoryStore::new()))
    };
    let lossy = lossy.value_and_grad(&start, &(), sum).unwrap();
    let norm = |v: [f64; 3]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let off = norm(std::array::from_fn(|i| lossy.initial[i] - exact[i])) / norm(exact);
    (lossy.report.lossy.expect("it is reported"), off)
}

/// Rollouts of the Lorenz system with ten lossy snapshots, from sixteen initial states: the table in the
/// book. In a chaotic system the error depends on the initial state by orders of magnitude, so the table has
/// medians and the worst.
#[test]
fn lossy_snapshots_have_the_errors_of_the_book_and_report_them() {
    let starts: Vec<[f64; 3]> = (0..16)
        .map(f64::from)
        .map(|i| [8.0 * (i * 1.7).sin(), 9.0 * (i * 2.3).cos(), 25.0 + 8.0 * (i * 0.9).sin()])
        .collect();
    for (steps, single, brain) in [(100, 1e-7, 1e-2), (1000, 1e-6, 1e-1), (2000, 1e-5, 1.0)] {
        for (narrow, typical) in [(false, single), (true, brain)] {
            let mut found: Vec<(f64, f64)> =
                starts.iter().map(|&start| reported_and_true(narrow, start, steps)).collect();
            // A forward sweep reports the error in one direction; over all starts it is of the size of the
            // error.
            let ratio = found.iter().map(|(reported, off)| (reported / off).ln()).sum::<f64>() / 16.0;
            assert!(
                ratio.exp() > 0.05 && ratio.exp() < 20.0,
                "{steps} steps: what is reported is {} times what is true",
                ratio.exp()
            );
            found.sort_by(|a, b| a.1.total_cmp(&b.1));
            let (median, worst) = (found[8].1, found[15].1);
            println!(
                "{steps} steps, bf16: {narrow}: median {median:.1e}, worst {worst:.1e}, reported {:.2} times",
                ratio.exp()
            );
            assert!(
                median > typical / 10.0 && median < typical * 10.0,
                "{steps} steps, bf16: {narrow}: {median:e}"
            );
        }
    }
}
