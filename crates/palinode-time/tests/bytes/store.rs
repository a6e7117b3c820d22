//! What stores take from the allocator: as much as they say, never more than they said, nothing after the
//! first round.

use crate::counting::{CALLS, LIVE, PEAK};
use palinode_core::{Budget, Key, Snapshot, SnapshotStore};
use palinode_time::{CompressedStore, DiskStore, LossyStore, MemoryStore};
use std::sync::atomic::Ordering;

/// Live bytes above the start, and the most there were.
struct Meter(isize);

impl Meter {
    fn start() -> Self {
        let live = LIVE.load(Ordering::Relaxed);
        PEAK.store(live, Ordering::Relaxed);
        Meter(live)
    }
    fn live(&self) -> usize {
        (LIVE.load(Ordering::Relaxed) - self.0) as usize
    }
    fn peak(&self) -> usize {
        (PEAK.load(Ordering::Relaxed) - self.0) as usize
    }
}

fn calls<R>(f: impl FnOnce() -> R) -> usize {
    let before = CALLS.load(Ordering::Relaxed);
    f();
    CALLS.load(Ordering::Relaxed) - before
}

/// States of one size, smooth and rough ones by turns so that their compressed sizes differ.
fn states(reals: usize, plain: usize) -> Vec<Snapshot> {
    let rough = |i: usize| Key::from_seed(1).u64(i as u64);
    let number = |n: usize, i: usize| match n {
        0 => 1.0,
        1 => (0.01 * i as f64).sin(),
        2 => 1.0 + rough(i) as f64 / 1e19,
        // A few out of the range of f32.
        _ if i % 32 == 5 => 1e-300,
        _ => i as f64,
    };
    let words = |n| (0..reals).map(|i| number(n, i).to_bits()).collect();
    (0..4).map(|n| Snapshot::from_words(words(n), (0..plain).map(rough).collect())).collect()
}

/// Puts to and gets from all slots. The snapshot has its room.
fn round(store: &mut impl SnapshotStore, slots: usize, states: &[Snapshot], got: &mut Snapshot) {
    for slot in 0..slots {
        store.put(slot as u32, slot as u64, &states[slot * 7 / 4 % states.len()]).expect("it fits");
    }
    for slot in (0..slots).rev() {
        store.prefetch((slot as u32).saturating_sub(1), (slot as u64).saturating_sub(1));
        store.get(slot as u32, slot as u64, got).expect("it was put");
    }
}

const SIZES: [(usize, usize, usize); 9] = [
    (1, 3, 0),
    (10, 3, 0),
    (1000, 3, 1),
    (20_000, 3, 0),
    (100, 100, 2),
    (30, 255, 0),
    (30, 1000, 1),
    (12, 9000, 0),
    (5, 0, 20),
];

/// Exact to so many bytes; no allocation in the second round if asked for.
fn hold<S: SnapshotStore>(name: &str, slack: usize, again: bool, make: impl Fn() -> S) {
    for (slots, reals, plain) in SIZES {
        if slots > 2000 && name.contains("disk") {
            continue; // so many files are slow to make, and nothing else
        }
        let states = states(reals, plain);
        let mut got = Snapshot::new();
        got.copy_from(&states[0]);
        let what = format!("{name}, {slots} slots of {reals} + {plain}");
        let meter = Meter::start();
        let mut store = make();
        let most = store.heap_bytes_for(slots, reals, plain);
        round(&mut store, slots, &states, &mut got);
        store.flush().expect("it fits");
        let (live, said) = (meter.live(), store.heap_bytes());
        assert!(live <= said && said <= live + slack, "{what}: {live} bytes are held, {said} said");
        assert!(meter.peak() <= most, "{what}: {} bytes at the peak, at most {most} announced", meter.peak());
        if again {
            let calls = calls(|| round(&mut store, slots, &states, &mut got));
            assert_eq!(calls, 0, "{what}: allocations of the second round");
        }
        drop(store);
        // A thread that waited for another keeps a few bytes for the next time.
        assert!(meter.live() <= slack.min(256), "{what}: {} bytes are left", meter.live());
    }
}

pub(crate) fn run() {
    hold("memory", 0, true, MemoryStore::new);
    hold("compressed memory", 0, true, || CompressedStore::new(MemoryStore::new()));
    hold("lossy memory", 0, true, || LossyStore::f32(MemoryStore::new()).tiny_to_zero());
    hold("narrower memory", 0, true, || LossyStore::bf16(MemoryStore::new()));
    let directory = std::env::temp_dir().join(format!("palinode-bytes-{}", std::process::id()));
    hold("disk", 4096, false, || DiskStore::new(&directory));
    hold("compressed disk", 4096, false, || CompressedStore::new(DiskStore::new(&directory)));
    std::fs::remove_dir(&directory).expect("nothing is left in it");

    tight_bounds();
    changing_sizes();
    budgets();
    println!("stores hold what they say");
}

/// Plans are made with bounds, so these must not be far above.
fn tight_bounds() {
    for (slots, reals, plain) in SIZES {
        let words = (slots * (reals + plain + 2) * 8) as f64;
        let most = MemoryStore::new().heap_bytes_for(slots, reals, plain);
        assert!((most as f64) < 1.05 * words + 4096.0, "{slots} slots of {reals}: {most} bytes for {words}");
        let lossy = LossyStore::f32(MemoryStore::new()).heap_bytes_for(slots, reals, plain);
        let half = (slots * (reals * 5 / 8 + plain + 6) * 8) as f64;
        let tables = (slots * 60 + 36_000 + 8 * reals) as f64;
        assert!((lossy as f64) < half + tables, "{slots} slots of {reals}: {lossy} bytes for {half}");
    }
}

/// Snapshots that grow and shrink.
fn changing_sizes() {
    let sizes = [3, 3, 3, 4, 2, 700, 1, 50, 3, 1000, 0, 3];
    let states: Vec<Snapshot> = sizes.iter().map(|&n| Snapshot::of(&vec![0.5; n])).collect();
    let mut got = Snapshot::of(&vec![0.0; 1000]);
    let meter = Meter::start();
    let mut store = MemoryStore::new();
    for turn in 0..3 {
        for (slot, state) in states.iter().cycle().take(100).enumerate() {
            store.put(slot as u32, 5, state).expect("it fits");
            assert_eq!(meter.live(), store.heap_bytes(), "round {turn}, slot {slot}");
        }
        for (slot, state) in states.iter().cycle().take(100).enumerate() {
            store.get(slot as u32, 5, &mut got).expect("it was put");
            assert_eq!(&got, state);
        }
        if turn > 0 {
            assert_eq!(meter.peak(), meter.live(), "no more than in the first round");
        }
    }
}

/// A store within a budget never takes a byte more, whatever sizes come.
fn budgets() {
    let states: Vec<Snapshot> = (0..60).map(|n| Snapshot::of(&vec![0.5; n * n])).collect();
    for budget in [100, 1000, 5000, 40_000, 200_000, 1_000_000] {
        let meter = Meter::start();
        let mut store = MemoryStore::within(Budget::from(budget));
        let mut refused = 0;
        for slot in 0..300 {
            if let Err(error) = store.put(slot, 5, &states[slot as usize * 17 % 60]) {
                assert_eq!(error.code(), "PAL0512");
                refused += 1;
            }
            assert_eq!(meter.live() - store.heap_bytes(), 0);
        }
        assert!(refused > 0 && (refused < 300 || budget < 5000), "{budget}: {refused} refused");
        assert!(meter.peak() <= budget + 256, "the text of an error is all that may be beyond");
    }
}
