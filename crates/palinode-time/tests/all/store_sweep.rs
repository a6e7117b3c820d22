//! Gradients with snapshots from a store: the smallest driver there can be, on the Lorenz system, with its own adjoint.
//!
//! Used to hold stores to the bits of a sweep that keeps everything, and lossy ones to the known errors.

use palinode_core::{Snapshot, SnapshotError, SnapshotStore};
use palinode_time::{Compressed, DiskStore, Lossy, MemoryStore};

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
        &mut Compressed::new(MemoryStore::new()),
        &mut Compressed::new(DiskStore::new(&scratch.0)),
    ];
    for store in stores {
        for snapshots in [1, 7, 10, 333] {
            let gradient = gradient(store, START, 1000, snapshots, |_, _| ()).expect("nothing is in the way");
            assert_eq!(gradient.map(f64::to_bits), exact, "{snapshots} snapshots");
        }
    }
}

/// Ten snapshots, end times 1, 10 and 20: relative errors of the order of 1e-6, 1e-6, 1e-5 as f32, and 1e-2, 4e-2, 0.25 as bf16. The geometric
/// mean over two initial states that are often taken; others differ by a factor of a hundred.
#[test]
fn lossy_snapshots_have_the_known_errors() {
    let error = |store: &mut dyn SnapshotStore, start, steps| {
        let exact = exact(start, steps);
        let lossy = gradient(store, start, steps, 10, |_, _| ()).expect("in range");
        let norm = |v: [f64; 3]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
        norm(std::array::from_fn(|i| lossy[i] - exact[i])) / norm(exact)
    };
    for (steps, single, brain) in [(100, 1e-6, 1e-2), (1000, 1e-6, 4e-2), (2000, 1e-5, 0.25)] {
        let mean = |store: &mut dyn SnapshotStore| {
            (error(store, START, steps) * error(store, [0.0, 1.0, 1.05], steps)).sqrt()
        };
        let f32 = mean(&mut Lossy::f32(MemoryStore::new()));
        let bf16 = mean(&mut Lossy::bf16(MemoryStore::new()));
        println!("{steps} steps: f32 {f32:.1e}, bf16 {bf16:.1e}");
        assert!((single / 10.0..single * 10.0).contains(&f32), "{steps} steps as f32: {f32:e}");
        assert!((brain / 10.0..brain * 10.0).contains(&bf16), "{steps} steps as bf16: {bf16:e}");
    }
}
