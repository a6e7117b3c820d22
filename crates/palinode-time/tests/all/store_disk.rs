//! Snapshots on disk: planted damage, full and missing disks, what is left behind, and time that is hidden.

use crate::store::Scratch;
use palinode_core::{Snapshot, SnapshotError, SnapshotStore, StoreStats};
use palinode_time::DiskStore;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

fn snapshot(step: u64) -> Snapshot {
    Snapshot::from_words((0..20).map(|i| step * 1000 + i).collect(), vec![step, 3])
}

fn file(store: &DiskStore, slot: u32) -> PathBuf {
    store.directory().expect("something was put").join(format!("slot-{slot}.snapshot"))
}

/// A store with slots 0 to 3, the states before steps 10, 20, 30 and 40, all of them written.
fn filled(directory: &Path) -> DiskStore {
    let mut store = DiskStore::new(directory);
    for slot in 0..4 {
        let step = u64::from(slot + 1) * 10;
        store.put(slot, step, &snapshot(step)).expect("it fits");
    }
    store.flush().expect("it fits");
    store
}

/// Asks for slot 1, with and without prefetching it; the error, after a check that the other slots are as
/// they were.
fn error_of_slot_1(store: &mut DiskStore, others: &[u32]) -> SnapshotError {
    let mut got = Snapshot::new();
    let before = snapshot(7);
    got.copy_from(&before);
    let error = store.get(1, 20, &mut got).expect_err("the damage is noticed");
    assert_eq!(got, before, "nothing is made of a damaged file");
    store.prefetch(1, 20);
    assert_eq!(store.get(1, 20, &mut got).expect_err("it is noticed again"), error);
    assert_eq!(error.step(), 20);
    for &slot in others {
        let step = u64::from(slot + 1) * 10;
        store.get(slot, step, &mut got).expect("the others are as they were");
        assert_eq!(got, snapshot(step));
    }
    error
}

fn damage(how: impl FnOnce(&mut DiskStore, &Path)) -> SnapshotError {
    let scratch = Scratch::new();
    let mut store = filled(&scratch.0);
    how(&mut store, &scratch.0);
    let error = error_of_slot_1(&mut store, &[0, 3]);
    drop(store);
    assert_eq!(scratch.names(), Vec::<String>::new(), "files are removed after an error");
    error
}

fn assert_damaged(error: &SnapshotError, says: &str) {
    let SnapshotError::Damaged { step: 20, how, place } = error else { panic!("not damaged: {error}") };
    assert!(how.contains(says), "{error}");
    assert!(place.contains("slot-1.snapshot"), "{error}");
    assert_eq!(error.code(), "PAL0511");
}

fn set_length(path: &Path, length: u64) {
    fs::OpenOptions::new().write(true).open(path).and_then(|file| file.set_len(length)).expect("a file");
}

/// Waits until a file is removed.
fn gone(is_there: impl Fn() -> bool) {
    let start = Instant::now();
    while is_there() {
        assert!(start.elapsed() < Duration::from_secs(20), "the file stays");
        std::thread::yield_now();
    }
}

#[test]
fn a_file_that_is_cut_short_is_damaged() {
    for length in [0, 1, 63, 64, 65, 239] {
        let error = damage(|store, _| set_length(&file(store, 1), length));
        assert_damaged(&error, &format!("truncated to {length} of 240 bytes"));
    }
}

#[test]
fn a_file_that_is_too_long_is_damaged() {
    let error = damage(|store, _| set_length(&file(store, 1), 241));
    assert_damaged(&error, "241 bytes instead of 240");
}

#[test]
fn every_flipped_bit_is_noticed() {
    let scratch = Scratch::new();
    let mut store = filled(&scratch.0);
    let path = file(&store, 1);
    let good = fs::read(&path).expect("a file");
    let mut got = Snapshot::new();
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &bad).expect("a file");
        let error = store.get(1, 20, &mut got).expect_err("a bit is flipped");
        assert!(matches!(error, SnapshotError::Damaged { step: 20, .. }), "bit {bit}: {error}");
    }
    fs::write(&path, &good).expect("a file");
    store.get(1, 20, &mut got).expect("it is whole again");
    assert_eq!(got, snapshot(20));
}

#[test]
fn a_file_that_is_gone_is_missing() {
    let error = damage(|store, _| fs::remove_file(file(store, 1)).expect("a file"));
    let SnapshotError::Missing { step: 20, place } = &error else { panic!("not missing: {error}") };
    assert!(place.contains("slot-1.snapshot"), "{error}");
}

#[test]
fn swapped_files_are_noticed() {
    let error = damage(|store, directory| {
        let (one, two, aside) = (file(store, 1), file(store, 2), directory.join("aside"));
        fs::rename(&one, &aside).expect("a file");
        fs::rename(&two, &one).expect("a file");
        fs::rename(&aside, &two).expect("a file");
    });
    assert_damaged(&error, "it belongs to step 30 in slot 2");
}

#[test]
fn a_file_of_another_run_is_not_used() {
    let elsewhere = Scratch::new();
    let error = damage(|store, _| {
        let other = filled(&elsewhere.0);
        fs::copy(file(&other, 1), file(store, 1)).expect("a file");
    });
    assert_damaged(&error, "another run");
}

#[test]
fn an_older_file_of_the_same_slot_and_step_is_not_used() {
    let error = damage(|store, _| {
        let path = file(store, 1);
        let old = fs::read(&path).expect("a file");
        store.put(1, 20, &snapshot(21)).expect("it fits");
        store.flush().expect("it fits");
        fs::write(&path, old).expect("a file");
    });
    assert_damaged(&error, "an older one");
}

#[test]
fn a_file_that_cannot_be_read_is_reported() {
    let scratch = Scratch::new();
    let mut store = filled(&scratch.0);
    let path = file(&store, 1);
    fs::remove_file(&path).expect("a file");
    fs::create_dir(&path).expect("a name");
    let error = error_of_slot_1(&mut store, &[0, 2, 3]);
    assert!(matches!(error, SnapshotError::Failed { doing: "read", .. }), "{error}");
    // What cannot be removed is an error of `close`.
    let error = store.close().expect_err("there is a directory in place of a file");
    assert!(matches!(error, SnapshotError::Failed { doing: "removed", .. }), "{error}");
}

#[test]
fn a_directory_that_cannot_be_made_is_reported() {
    let scratch = Scratch::new();
    let not_a_directory = scratch.0.join("file");
    fs::write(&not_a_directory, "mine").expect("a file");
    let mut store = DiskStore::new(&not_a_directory);
    let error = store.put(0, 5, &snapshot(5)).expect_err("that is a file");
    assert!(matches!(error, SnapshotError::Failed { step: 5, doing: "written", .. }), "{error}");
    assert!(error.to_string().contains("file"), "{error}");
    drop(store);
    assert_eq!(fs::read(&not_a_directory).expect("still there"), b"mine");
}

/// A slot whose file is the device that is always full.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_at_the_next_call() {
    let scratch = Scratch::new();
    let mut got = Snapshot::new();
    for next in ["put", "get", "flush", "close"] {
        let mut store = filled(&scratch.0);
        std::os::unix::fs::symlink("/dev/full", file(&store, 4)).expect("a name");
        let state = snapshot(50);
        store.put(4, 50, &state).expect("it is written later");
        assert_eq!(state, snapshot(50), "the caller's data is as it was");
        gone(|| file(&store, 4).is_symlink());
        let error = match next {
            "put" => wait_for(|| store.put(5, 60, &state)),
            "get" => wait_for(|| store.get(0, 10, &mut got)),
            "flush" => store.flush(),
            _ => {
                let error = store.close().expect_err("the disk is full");
                assert!(matches!(error, SnapshotError::NoSpace { step: 50, .. }), "{error}");
                assert_eq!(scratch.names(), Vec::<String>::new());
                continue;
            }
        }
        .expect_err("the disk is full");
        assert!(matches!(error, SnapshotError::NoSpace { step: 50, .. }), "{error}");
        assert_eq!(error.code(), "PAL0512");
        assert_eq!(store.get(4, 50, &mut got).expect_err("it is not there"), error);
        store.get(0, 10, &mut got).expect("the others are there");
        drop(store);
        assert_eq!(scratch.names(), Vec::<String>::new());
    }
}

/// Until the thread's failure is reported.
#[cfg(target_os = "linux")]
fn wait_for(mut call: impl FnMut() -> Result<(), SnapshotError>) -> Result<(), SnapshotError> {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(20) {
        call()?;
    }
    Ok(())
}

/// A small disk of its own, where the system lets users have one.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_becomes_full_loses_nothing() {
    let scratch = Scratch::new();
    let test = std::env::current_exe().expect("a test has a name");
    let mount = format!(
        "mount -t tmpfs -o size=512k none {0} && exec {1} --exact store_disk::on_a_small_disk --ignored --nocapture",
        scratch.0.display(),
        test.display()
    );
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &mount])
        .env("PALINODE_TEST_DIRECTORY", &scratch.0)
        .output();
    let text = output.map(|output| {
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    });
    match text {
        Ok(text) if text.contains("running 1 test") => assert!(text.contains("1 passed"), "{text}"),
        other => println!("no disk could be made, /dev/full must do: {other:?}"),
    }
}

#[test]
#[ignore = "part of another test, which gives it a disk"]
fn on_a_small_disk() {
    let Some(directory) = std::env::var_os("PALINODE_TEST_DIRECTORY") else { return };
    let directory = PathBuf::from(directory);
    let mut store = DiskStore::new(&directory);
    let states: Vec<Snapshot> = (0..20).map(|step| Snapshot::of(&vec![f64::from(step); 8000])).collect();
    let put = |store: &mut DiskStore, slot: u32| store.put(slot, u64::from(slot), &states[slot as usize]);
    let mut failed = None;
    for slot in 0..20 {
        if let Err(error) = put(&mut store, slot).and_then(|()| store.flush()) {
            failed = Some((slot, error));
            break;
        }
    }
    let (slot, error) = failed.expect("20 times 64 KB do not fit into 512 KiB");
    assert!(matches!(error, SnapshotError::NoSpace { .. }), "{error}");
    assert_eq!(error.step(), u64::from(slot));
    assert!(slot >= 4, "some did fit");
    let mut got = Snapshot::new();
    for before in 0..slot {
        store.get(before, u64::from(before), &mut got).expect("what was written is there");
        assert_eq!(got, states[before as usize]);
    }
    // A slot that is freed makes room.
    store.free(0);
    put(&mut store, slot).and_then(|()| store.flush()).expect("it fits again");
    store.get(slot, u64::from(slot), &mut got).expect("it is there");
    assert_eq!(got, states[slot as usize]);
    drop(store);
    assert_eq!(fs::read_dir(&directory).expect("a directory").count(), 0);
}

#[test]
fn files_are_removed_after_a_panic() {
    let scratch = Scratch::new();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let mut store = filled(&scratch.0);
        store.put(7, 70, &snapshot(70)).expect("it fits");
        assert_eq!(scratch.names().len(), 1);
        panic!("planted");
    }));
    assert!(panicked.is_err());
    assert_eq!(scratch.names(), Vec::<String>::new());
}

#[test]
fn a_freed_slot_has_no_file() {
    let scratch = Scratch::new();
    let mut store = filled(&scratch.0);
    let path = file(&store, 2);
    assert!(path.exists());
    store.free(2);
    gone(|| path.exists());
    let error = store.get(2, 30, &mut Snapshot::new()).expect_err("it was freed");
    assert!(matches!(error, SnapshotError::Missing { step: 30, .. }));
}

#[test]
fn runs_beside_each_other_do_not_touch() {
    let scratch = Scratch::new();
    let mut stores: Vec<DiskStore> = (0..3).map(|_| DiskStore::new(&scratch.0)).collect();
    for (run, store) in stores.iter_mut().enumerate() {
        store.put(0, 10, &snapshot(run as u64)).expect("it fits");
    }
    assert_eq!(scratch.names().len(), 3, "the living are left alone");
    let mut got = Snapshot::new();
    for (run, store) in stores.iter_mut().enumerate() {
        store.get(0, 10, &mut got).expect("it is there");
        assert_eq!(got, snapshot(run as u64));
    }
}

#[test]
fn only_what_is_abandoned_and_ours_is_removed() {
    let scratch = Scratch::new();
    let mark = "palinode snapshots 1\n";
    let make = |name: &str, files: &[(&str, &str)]| {
        fs::create_dir(scratch.0.join(name)).expect("a name");
        for (file, text) in files {
            fs::write(scratch.0.join(name).join(file), text).expect("a name");
        }
    };
    make("palinode-run-1-a", &[("owner", mark), ("slot-0.snapshot", "x"), ("slot-17.snapshot", "y")]);
    make("palinode-run-1-b", &[("owner", mark), ("slot-0.snapshot", "x"), ("mine.txt", "precious")]);
    make("palinode-run-1-c", &[("slot-0.snapshot", "no owner")]);
    make("palinode-run-1-d", &[("owner", "someone else"), ("slot-0.snapshot", "x")]);
    make("other", &[("owner", mark), ("slot-0.snapshot", "x")]);
    fs::write(scratch.0.join("palinode-run-file"), "a file").expect("a name");
    drop(filled(&scratch.0));
    let mut names = scratch.names();
    names.sort();
    let left = ["other", "palinode-run-1-b", "palinode-run-1-c", "palinode-run-1-d", "palinode-run-file"];
    assert_eq!(names, left);
    let b = scratch.0.join("palinode-run-1-b");
    assert!(b.join("mine.txt").exists() && !b.join("slot-0.snapshot").exists());
    assert!(scratch.0.join("other/slot-0.snapshot").exists());
    assert!(scratch.0.join("palinode-run-1-d/slot-0.snapshot").exists());
}

/// Computes for about so long.
fn compute(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// With steps that take longer than reading and writing, at least 90 % of its time is hidden: with files of 4
/// MB in the system's cache, and with small ones on a slow device. The machine may be busy with other tests,
/// so each has five attempts.
#[test]
fn reading_and_writing_is_hidden_behind_steps() {
    for (numbers, device, step) in [(500_000, 0, 12), (10_000, 8, 12)] {
        let (device, step) = (Duration::from_millis(device), Duration::from_millis(step));
        let hidden = |_| {
            let stats = sweep_with_steps(numbers, device, step);
            println!("{:.1} % hidden: {stats:?}", 100.0 * stats.hidden().expect("it read and wrote"));
            stats.hidden().filter(|&hidden| hidden >= 0.9)
        };
        assert!((0..5).find_map(hidden).is_some(), "{numbers} numbers");
    }
}

fn sweep_with_steps(numbers: usize, device: Duration, step: Duration) -> StoreStats {
    let scratch = Scratch::new();
    let state = Snapshot::of(&vec![0.7; numbers]);
    let mut got = Snapshot::new();
    let mut store = DiskStore::new(&scratch.0).slowed(device);
    for n in 0..10 {
        store.put(n, u64::from(n), &state).expect("it fits");
        compute(step);
    }
    store.prefetch(9, 9);
    compute(step);
    for n in (0..10).rev() {
        store.get(n, u64::from(n), &mut got).expect("it is there");
        assert_eq!(got, state);
        if n > 0 {
            store.prefetch(n - 1, u64::from(n - 1));
        }
        compute(step);
    }
    let stats = store.stats();
    let bytes = 10 * (8 * numbers as u64 + 72);
    assert_eq!((stats.written, stats.read), (bytes, bytes));
    assert!(stats.io_time >= 20 * device);
    stats
}

/// Without steps to hide behind, and without prefetching, nothing is hidden, and the account says so.
#[test]
fn what_is_not_hidden_is_reported() {
    let scratch = Scratch::new();
    let mut store = DiskStore::new(&scratch.0).slowed(Duration::from_millis(5));
    assert_eq!(store.stats().hidden(), None);
    for n in 0..8 {
        store.put(n, u64::from(n), &snapshot(u64::from(n))).expect("it fits");
    }
    for n in (0..8).rev() {
        store.get(n, u64::from(n), &mut Snapshot::new()).expect("it is there");
    }
    let stats = store.stats();
    assert!(stats.hidden().expect("it read and wrote") < 0.2, "{stats:?}");
}
