//! Gradients with snapshots from a store: the smallest driver there can be, on the Lorenz system, with its
//! own adjoint.
//!
//! Used to hold stores to the bits of a sweep that keeps everything. Lossy ones are held to what rollouts
//! with them report.

use palinode_core::{Real, Snapshot, SnapshotError, SnapshotStore, Var};
use palinode_time::{CompressedStore, DiskStore, LossyStore, MemoryStore, Number, Rollout, Schedule, Step};

use crate::store::Scratch;

const DT: f64 = 0.01;

fn slope([x, y, z]: [f64; 3]) -> [f64; 3] {
    [10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z]
}

/// The transposed Jacobian of the slope, times a cotangent.
fn slope_back([x, y, z]: [f64; 3], [a, b, c]: [f64; 3]) -> [f64; 3] {
    [-10.0 * a + (28.0 - z) * b + y * c, 10.0 * a - b + x * c, -x * b - 8.0 / 3.0 * c]
}

fn along(u: [f64; 3], h: f64, k: [f64; 3]) -> [f64; 3] {
    [u[0] + h * k[0], u[1] + h * k[1], u[2] + h * k[2]]
}

/// A step of Heun's method.
pub(crate) fn step(u: [f64; 3]) -> [f64; 3] {
    let k1 = slope(u);
    let k2 = slope(along(u, DT, k1));
    along(along(u, DT / 2.0, k1), DT / 2.0, k2)
}

fn step_back(u: [f64; 3], c: [f64; 3]) -> [f64; 3] {
    let k1 = slope(u);
    let half = c.map(|c| DT / 2.0 * c);
    let through_k2 = slope_back(along(u, DT, k1), half);
    let through_k1 = slope_back(u, along(half, DT, through_k2));
    along(along(c, 1.0, through_k2), 1.0, through_k1)
}

/// The gradient of x + y + z after so many steps by the initial state, with so many snapshots in the store.
pub(crate) fn gradient(
    store: &mut dyn SnapshotStore,
    start: [f64; 3],
    steps: u64,
    snapshots: u64,
    mut at: impl FnMut(&str, u64),
) -> Result<[f64; 3], SnapshotError> {
    let stretch = steps.div_ceil(snapshots);
    let mut kept = Snapshot::new();
    let mut u = start;
    for n in 0..steps {
        if n % stretch == 0 {
            kept.take(&u);
            store.put((n / stretch) as u32, n, &kept)?;
            at("put", n);
        }
        u = step(u);
    }
    let mut c = [1.0; 3];
    let mut states = Vec::new();
    for slot in (0..steps.div_ceil(stretch)).rev() {
        let first = slot * stretch;
        store.get(slot as u32, first, &mut kept)?;
        at("get", first);
        if slot > 0 {
            store.prefetch(slot as u32 - 1, first - stretch);
        }
        kept.restore(&mut u);
        states.clear();
        for _ in first..(first + stretch).min(steps) {
            states.push(u);
            u = step(u);
        }
        c = states.iter().rev().fold(c, |c, &u| step_back(u, c));
        store.free(slot as u32);
    }
    Ok(c)
}

pub(crate) const START: [f64; 3] = [1.0, 1.0, 1.0];

fn exact(start: [f64; 3], steps: u64) -> [f64; 3] {
    gradient(&mut MemoryStore::new(), start, steps, steps, |_, _| ()).expect("memory holds")
}

#[test]
fn the_adjoint_is_right() {
    let difference = |i: usize| {
        let end = |h: f64| {
            let mut u = START;
            u[i] += h;
            (0..100).for_each(|_| u = step(u));
            u.iter().sum::<f64>()
        };
        (end(1e-6) - end(-1e-6)) / 2e-6
    };
    let gradient = exact(START, 100);
    for i in 0..3 {
        assert!((gradient[i] - difference(i)).abs() < 1e-6 * gradient[i].abs().max(1.0), "{i}");
    }
}

#[test]
fn exact_stores_give_the_bits_of_keeping_everything() {
    let scratch = Scratch::new();
    let exact = exact(START, 1000).map(f64::to_bits);
    let stores: [&mut dyn SnapshotStore; 4] = [
        &mut MemoryStore::new(),
        &mut DiskStore::new(&scratch.0),
        &mut CompressedStore::new(MemoryStore::new()),
        &mut CompressedStore::new(DiskStore::new(&scratch.0)),
    ];
    for store in stores {
        for snapshots in [1, 7, 10, 333] {
            let gradient = gradient(store, START, 1000, snapshots, |_, _| ()).expect("nothing is in the way");
            assert_eq!(gradient.map(f64::to_bits), exact, "{snapshots} snapshots");
        }
    }
}

/// The same step for rollouts.
struct Heun;

impl Step for Heun {
    type State<S: Number> = [S; 3];
    type Params<S: Number> = ();
    type Input<S: Number> = ();
    fn step<S: Real>(&self, u: &mut [S; 3], _: &(), _: &()) {
        let slope = |[x, y, z]: [S; 3]| [(y - x) * 10.0, x * (-z + 28.0) - y, x * y - z * (8.0 / 3.0)];
        let along = |u: [S; 3], h: f64, k: [S; 3]| [u[0] + k[0] * h, u[1] + k[1] * h, u[2] + k[2] * h];
        let k1 = slope(*u);
        let k2 = slope(along(*u, DT, k1));
        *u = along(along(*u, DT / 2.0, k1), DT / 2.0, k2);
    }
}

/// What a rollout with ten lossy snapshots reports, and how far its gradient is from the exact one.
fn told_and_true(narrow: bool, start: [f64; 3], steps: u64) -> (f64, f64) {
    let run = || {
        let every = steps.div_ceil(10);
        Rollout::new(Heun).steps(steps).schedule(Schedule::Periodic { every })
    };
    let sum = |[x, y, z]: &[Var<f64>; 3]| *x + *y + *z;
    let exact = run().value_and_grad(&start, &(), sum).expect("a gradient").initial;
    let lossy = if narrow {
        run().store(|| LossyStore::bf16(MemoryStore::new()))
    } else {
        run().store(|| LossyStore::f32(MemoryStore::new()))
    };
    let lossy = lossy.value_and_grad(&start, &(), sum).expect("a gradient");
    let norm = |v: [f64; 3]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let off = norm(std::array::from_fn(|i| lossy.initial[i] - exact[i])) / norm(exact);
    (lossy.report.lossy.expect("it is reported"), off)
}

/// Rollouts of the Lorenz system with ten lossy snapshots, from sixteen initial states: the table in the
/// book. In a chaotic system the error depends on the initial state by orders of magnitude, so the table has
/// medians and the worst.
#[test]
fn lossy_snapshots_have_the_errors_of_the_book_and_tell_them() {
    let starts: Vec<[f64; 3]> = (0..16)
        .map(f64::from)
        .map(|i| [8.0 * (i * 1.7).sin(), 9.0 * (i * 2.3).cos(), 25.0 + 8.0 * (i * 0.9).sin()])
        .collect();
    for (steps, single, brain) in [(100, 1e-7, 1e-2), (1000, 1e-6, 1e-1), (2000, 1e-5, 1.0)] {
        for (narrow, typical) in [(false, single), (true, brain)] {
            let mut found: Vec<(f64, f64)> =
                starts.iter().map(|&start| told_and_true(narrow, start, steps)).collect();
            // A forward sweep tells the error in one direction; over all starts it is of the size of the
            // error.
            let ratio = found.iter().map(|(told, off)| (told / off).ln()).sum::<f64>() / 16.0;
            assert!(
                ratio.exp() > 0.05 && ratio.exp() < 20.0,
                "{steps} steps: told is {} times what is true",
                ratio.exp()
            );
            found.sort_by(|a, b| a.1.total_cmp(&b.1));
            let (median, worst) = (found[8].1, found[15].1);
            println!(
                "{steps} steps, bf16: {narrow}: median {median:.1e}, worst {worst:.1e}, told {:.2} times",
                ratio.exp()
            );
            assert!(
                median > typical / 10.0 && median < typical * 10.0,
                "{steps} steps, bf16: {narrow}: {median:e}"
            );
        }
    }
}
