//! Every store, and every store in every other, gives back what was put.

use palinode_core::{Budget, Key, Snapshot, SnapshotError, SnapshotStore, SnapshotWords};
use palinode_time::{CompressedStore, DiskStore, LossyStore, MemoryStore};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// So many random cases, or as many as `PROPTEST_CASES` says.
fn cases(usually: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(usually)
}

/// A directory of a test's own, removed at its end with what is left in it.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("palinode-test-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary directory can be made");
        Scratch(path)
    }

    /// The names of what is in it.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("it can be read");
        entries.map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into()).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Every exact store, and every two-deep stack of them.
fn exact_stores(directory: &Path) -> Vec<(&'static str, Box<dyn SnapshotStore>)> {
    let disk = || DiskStore::new(directory);
    vec![
        ("memory", Box::new(MemoryStore::new())),
        ("disk", Box::new(disk())),
        ("compressed memory", Box::new(CompressedStore::new(MemoryStore::new()))),
        ("compressed disk", Box::new(CompressedStore::new(disk()))),
        ("compressed twice", Box::new(CompressedStore::new(CompressedStore::new(MemoryStore::new())))),
    ]
}

/// The same with numbers rounded to `f32` on the way. In `Compressed<Lossy>` nothing is left to round: the
/// words are no numbers any more.
fn lossy_stores(directory: &Path) -> Vec<(&'static str, Box<dyn SnapshotStore>, bool)> {
    let disk = || DiskStore::new(directory);
    vec![
        ("lossy memory", Box::new(LossyStore::f32(MemoryStore::new())), true),
        ("lossy disk", Box::new(LossyStore::f32(disk())), true),
        (
            "lossy compressed memory",
            Box::new(LossyStore::f32(CompressedStore::new(MemoryStore::new()))),
            true,
        ),
        ("lossy compressed disk", Box::new(LossyStore::f32(CompressedStore::new(disk()))), true),
        ("lossy twice", Box::new(LossyStore::f32(LossyStore::bf16(MemoryStore::new()))), true),
        ("compressed lossy", Box::new(CompressedStore::new(LossyStore::bf16(MemoryStore::new()))), false),
    ]
}

#[derive(Clone, Debug)]
enum Action {
    Put { slot: u32, step: u64, snapshot: Snapshot },
    Get { slot: u32 },
    Prefetch { slot: u32 },
    Free { slot: u32 },
    Flush,
}

/// Words as numbers have them: smooth, equal, or anything.
fn words(most: usize) -> impl Strategy<Value = Vec<u64>> {
    let smooth = (0..most, any::<f64>())
        .prop_map(|(n, shift)| (0..n).map(|i| (0.01 * i as f64 + shift).sin().to_bits()).collect());
    let equal = (0..most, any::<u64>()).prop_map(|(n, word)| vec![word; n]);
    prop_oneof![smooth, equal, prop::collection::vec(any::<u64>(), 0..most)]
}

fn actions(numbers: impl Strategy<Value = Vec<u64>> + 'static) -> impl Strategy<Value = Vec<Action>> {
    let snapshot = (numbers, words(9)).prop_map(|(reals, plain)| Snapshot::from_words(reals, plain));
    let slot = 0..40_u32;
    let action = prop_oneof![
        5 => (slot.clone(), 0..9_u64, snapshot).prop_map(|(slot, step, snapshot)| Action::Put { slot, step, snapshot }),
        5 => slot.clone().prop_map(|slot| Action::Get { slot }),
        3 => slot.clone().prop_map(|slot| Action::Prefetch { slot }),
        2 => slot.prop_map(|slot| Action::Free { slot }),
        1 => Just(Action::Flush),
    ];
    prop::collection::vec(action, 1..60)
}

/// By a copy, or before every other step without one where the store can do that.
fn put(
    store: &mut dyn SnapshotStore,
    slot: u32,
    step: u64,
    snapshot: &Snapshot,
) -> Result<(), SnapshotError> {
    let (reals, plain) = (snapshot.reals(), snapshot.plain());
    let mut fill = |words: SnapshotWords<'_>| {
        words.reals.copy_from_slice(reals);
        words.plain.copy_from_slice(plain);
    };
    if step.is_multiple_of(2) && store.put_with(slot, step, (reals.len(), plain.len()), &mut fill)? {
        return Ok(());
    }
    store.put(slot, step, snapshot)
}

/// Does all of it, and compares with a map of what was put.
fn follow(
    name: &str,
    store: &mut dyn SnapshotStore,
    actions: &[Action],
    expected: impl Fn(&Snapshot) -> Snapshot,
) {
    let mut model = BTreeMap::new();
    let mut got = Snapshot::from_words(vec![7; 3], vec![8]);
    let last = (0..40).map(|slot| Action::Get { slot });
    for action in actions.iter().cloned().chain(last) {
        match action {
            Action::Put { slot, step, snapshot } => {
                put(store, slot, step, &snapshot).unwrap_or_else(|error| panic!("{name}: {error}"));
                model.insert(slot, (step, expected(&snapshot)));
            }
            Action::Get { slot } => match model.get(&slot) {
                Some((step, snapshot)) => {
                    store.get(slot, *step, &mut got).unwrap_or_else(|error| panic!("{name}: {error}"));
                    assert_eq!(&got, snapshot, "{name}, slot {slot}");
                    let error = store.get(slot, step + 1, &mut got).expect_err("that step is not there");
                    assert!(matches!(error, SnapshotError::Missing { .. }), "{name}: {error}");
                    assert_eq!(error.step(), step + 1);
                }
                None => {
                    let error = store.get(slot, 3, &mut got).expect_err("the slot is empty");
                    assert!(matches!(error, SnapshotError::Missing { step: 3, .. }), "{name}: {error}");
                }
            },
            Action::Prefetch { slot } => store.prefetch(slot, model.get(&slot).map_or(5, |&(step, _)| step)),
            Action::Free { slot } => {
                store.free(slot);
                model.remove(&slot);
            }
            Action::Flush => store.flush().unwrap_or_else(|error| panic!("{name}: {error}")),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(48), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_exact_store_gives_back_every_bit(actions in actions(words(300))) {
        let scratch = Scratch::new();
        for (name, mut store) in exact_stores(&scratch.0) {
            prop_assert!(!store.is_lossy());
            follow(name, &mut store, &actions, Snapshot::clone);
        }
        prop_assert!(scratch.names().is_empty());
    }

    #[test]
    fn every_lossy_store_gives_back_the_nearest_f32(
        actions in actions(prop::collection::vec((-1e30..1e30).prop_map(f64::to_bits), 0..300)),
    ) {
        let scratch = Scratch::new();
        let rounded = |snapshot: &Snapshot| {
            let nearest = |&word: &u64| f64::from(f64::from_bits(word) as f32).to_bits();
            Snapshot::from_words(snapshot.reals().iter().map(nearest).collect(), snapshot.plain().to_vec())
        };
        for (name, mut store, rounds) in lossy_stores(&scratch.0) {
            prop_assert!(store.is_lossy());
            follow(name, &mut store, &actions, |snapshot| if rounds { rounded(snapshot) } else { snapshot.clone() });
        }
    }

    #[test]
    fn compression_gives_back_blocks_of_any_length(
        reals in prop_oneof![0..10_usize, 4090..4100_usize, 8185..8200_usize],
        plain in prop_oneof![0..10_usize, 4090..4100_usize],
        seed in any::<u64>(),
        noise in 0..64_u32,
    ) {
        // A ramp with so many random bits below.
        let word = |i: usize| {
            let random = Key::from_seed(seed).u64(i as u64) >> noise;
            ((i as u64) << 40).wrapping_add(seed).wrapping_add(random)
        };
        let snapshot = Snapshot::from_words((0..reals).map(word).collect(), (0..plain).map(word).collect());
        let mut store = CompressedStore::new(MemoryStore::new());
        store.put(0, 1, &snapshot)?;
        let mut got = Snapshot::new();
        store.get(0, 1, &mut got)?;
        prop_assert_eq!(&got, &snapshot);
        // Never more than a word for each block and two in all.
        let most = snapshot.bytes() + 8 * (2 + (reals + plain).div_ceil(4096));
        if snapshot.bytes() > 0 {
            prop_assert!(snapshot.bytes() as f64 / store.ratio().unwrap() <= most as f64 + 0.5);
        }
    }
}

/// A smooth field of two waves, after some steps of diffusion.
fn field(n: usize) -> Vec<f64> {
    let wave = |i: usize| (6.3 * i as f64 / n as f64).sin() + 0.3 * (31.0 * i as f64 / n as f64).cos() + 1.5;
    let mut field: Vec<f64> = (0..n).map(wave).collect();
    for _ in 0..50 {
        let old = field.clone();
        for i in 1..n - 1 {
            field[i] = old[i] + 0.2 * (old[i + 1] - 2.0 * old[i] + old[i - 1]);
        }
    }
    field
}

#[test]
fn smooth_fields_become_smaller_and_noise_does_not_grow() {
    let ratio = |words: Vec<u64>| {
        let mut store = CompressedStore::new(MemoryStore::new());
        store.put(0, 0, &Snapshot::from_words(words, vec![])).expect("there is memory");
        store.ratio().expect("something was put")
    };
    let bits = |numbers: Vec<f64>| numbers.into_iter().map(f64::to_bits).collect::<Vec<_>>();
    for (n, least) in [(512, 1.5), (4096, 3.0), (65536, 6.0)] {
        let ratio = ratio(bits(field(n)));
        println!("{n} points: {ratio:.2}");
        assert!(ratio > least, "{n} points: {ratio}");
    }
    assert!(ratio(vec![0; 10_000]) > 150.0);
    let key = Key::from_seed(1);
    assert!(ratio((0..10_000).map(|at| key.u64(at)).collect()) > 0.999);
}

#[test]
fn a_value_fills_the_words_that_it_says_it_needs() {
    let value = (vec![[1.0, -0.0], [3.0, f64::NAN]], Some(2.5));
    let taken = Snapshot::of(&value);
    assert_eq!(Snapshot::lengths(&value), (taken.reals().len(), taken.plain().len()));
    let mut store = MemoryStore::new();
    let kept = store.put_with(3, 8, Snapshot::lengths(&value), &mut |words| words.fill(&value));
    assert!(kept.expect("it fits"), "memory keeps words as they are");
    let mut got = Snapshot::new();
    store.get(3, 8, &mut got).expect("what was written");
    assert_eq!(got, taken);
}

#[test]
fn a_value_that_does_not_fill_its_words_is_noticed_and_not_kept() {
    let mut store = MemoryStore::new();
    store.put(0, 4, &Snapshot::of(&[1.0, 2.0, 3.0])).expect("it fits");
    let too_short = AssertUnwindSafe(|| store.put_with(0, 4, (3, 0), &mut |words| words.fill(&[1.0, 2.0])));
    let panic = catch_unwind(too_short).expect_err("two numbers do not fill the words of three");
    let said = panic.downcast_ref::<String>().expect("a message");
    assert!(said.contains("the same words each time"), "{said}");
    assert_eq!(store.get(0, 4, &mut Snapshot::new()).unwrap_err().code(), "PAL0510");
}

#[test]
fn memory_refuses_what_is_beyond_its_budget_and_keeps_what_it_has() {
    let mut store = MemoryStore::within(Budget::from(8192));
    let small = Snapshot::of(&vec![1.0; 100]);
    store.put(0, 0, &small).expect("it fits");
    let held = store.heap_bytes();
    let error = store.put(1, 5, &Snapshot::of(&vec![2.0; 1000])).expect_err("it does not fit");
    assert!(matches!(error, SnapshotError::NoSpace { step: 5, .. }), "{error}");
    assert!(error.to_string().contains("a budget of 8 KiB"), "{error}");
    assert!(store.heap_bytes() <= 8192 && held <= 8192);
    let mut got = Snapshot::new();
    store.get(0, 0, &mut got).expect("it is still there");
    assert_eq!(got, small);
}

#[test]
fn numbers_out_of_range_are_kept_exactly_or_refused() {
    let round_trip = |store: &mut dyn SnapshotStore, state: &[f64]| -> Result<Vec<f64>, SnapshotError> {
        store.put(0, 4, &Snapshot::of(&state.to_vec()))?;
        let mut got = Snapshot::new();
        store.get(0, 4, &mut got)?;
        Ok(got.loaded::<f64, Vec<f64>>())
    };
    let specials =
        [1e39, -1e300, 1e-39, f64::MIN_POSITIVE, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, f64::NAN];
    let mut state = specials.to_vec();
    state.resize(200, 1.0 + f64::EPSILON);
    // 3.4e38 is an f32, but rounds to infinity in bf16.
    state[9] = f64::from(f32::MAX);
    for store in [
        &mut LossyStore::f32(MemoryStore::new()) as &mut dyn SnapshotStore,
        &mut LossyStore::bf16(MemoryStore::new()),
    ] {
        let got = round_trip(store, &state).expect("four or five of 200 may be out of range");
        for (at, (got, was)) in got.iter().zip(&state).enumerate() {
            let is_rounded = at > 9;
            let same = got.to_bits() == was.to_bits() || got.is_nan() && was.is_nan();
            assert!(if is_rounded { *got == 1.0 } else { same }, "{at}: {was} became {got}");
        }
    }
    let tail: Vec<f64> = (0..64).map(|i| (-f64::from(i * i)).exp()).collect();
    let error =
        round_trip(&mut LossyStore::bf16(MemoryStore::new()), &tail).expect_err("most of it is below f32");
    assert_eq!((error.code(), error.step()), ("PAL0514", 4));
    assert!(
        error.to_string().contains("18 of its 64 numbers are out of range, first number 10 (3.7"),
        "{error}"
    );
    let flushed =
        round_trip(&mut LossyStore::f32(MemoryStore::new()).tiny_to_zero(), &tail).expect("tiny is zero now");
    assert_eq!((flushed[9], flushed[10]), (f64::from(tail[9] as f32), 0.0));
    // The words of f32 are not those of f64.
    let singles = Snapshot::of(&vec![1.0_f32; 8]);
    assert_eq!(
        LossyStore::f32(MemoryStore::new()).put(0, 0, &singles).expect_err("not f64").code(),
        "PAL0514"
    );
}

#[test]
fn bf16_is_the_nearest_and_even() {
    let mut store = LossyStore::bf16(MemoryStore::new());
    let cases = [
        (1.0, 1.0),
        (1.0 + 1.0 / 256.0, 1.0),              // a tie: to even
        (1.0 + 3.0 / 256.0, 1.0 + 1.0 / 64.0), // a tie: to even, upwards
        (1.0 + 1.1 / 256.0, 1.0 + 1.0 / 128.0),
        (-3.999, -4.0),
    ];
    for (was, nearest) in cases {
        store.put(0, 0, &Snapshot::of(&was)).expect("in range");
        let mut got = Snapshot::new();
        store.get(0, 0, &mut got).expect("it was put");
        assert_eq!(got.loaded::<f64, f64>(), nearest, "{was}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(256), failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever comes back from inside, a store around it gives a snapshot or an error with the step.
    #[test]
    fn what_cannot_be_unpacked_is_damaged(
        words in prop_oneof![words(50), prop::collection::vec(prop_oneof![0..300_u64, any::<u64>()], 0..50)],
    ) {
        let broken = || {
            let mut store = MemoryStore::new();
            store.put(0, 9, &Snapshot::from_words(vec![], words.clone())).map(|()| store).unwrap()
        };
        let mut got = Snapshot::new();
        let results = [
            CompressedStore::new(broken()).get(0, 9, &mut got),
            LossyStore::f32(broken()).get(0, 9, &mut got),
            LossyStore::bf16(broken()).get(0, 9, &mut got),
        ];
        for error in results.into_iter().filter_map(Result::err) {
            prop_assert!(matches!(error, SnapshotError::Damaged { step: 9, .. }), "{error}");
        }
    }

    /// The same for words that were packed and then changed in one place.
    #[test]
    fn what_was_changed_inside_does_no_harm(state in words(5000), at in any::<prop::sample::Index>(), bit in 0..64_u32) {
        let mut store = CompressedStore::new(MemoryStore::new());
        store.put(0, 9, &Snapshot::from_words(state, vec![1]))?;
        let mut words = store.store().view(0, 9).unwrap().1.to_vec();
        let at = at.index(words.len());
        words[at] ^= 1 << bit;
        let mut changed = MemoryStore::new();
        changed.put(0, 9, &Snapshot::from_words(vec![], words))?;
        let mut store = CompressedStore::new(changed);
        if let Err(error) = store.get(0, 9, &mut Snapshot::new()) {
            prop_assert!(matches!(error, SnapshotError::Damaged { step: 9, .. }), "{error}");
        }
    }
}
