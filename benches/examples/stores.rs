//! The tables of the book's page on snapshot stores.
//!
//! `cargo run --release -p benches --example stores [DIRECTORY]`

use palinode_core::{Key, Snapshot, SnapshotError, SnapshotStore};
use palinode_time::{CompressedStore, DiskStore, LossyStore, MemoryStore};
use std::f64::consts::TAU;
use std::hint::{black_box, spin_loop};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Diffusion of two waves on a ring.
fn heat(n: usize, steps: usize) -> Vec<f64> {
    let wave = |x: f64| (TAU * x).sin() + 0.3 * (31.0 * x).cos() + 1.5;
    let mut field: Vec<f64> = (0..n).map(|i| wave(i as f64 / n as f64)).collect();
    for _ in 0..steps {
        let old = field.clone();
        for i in 0..n {
            field[i] = old[i] + 0.2 * (old[(i + 1) % n] - 2.0 * old[i] + old[(i + n - 1) % n]);
        }
    }
    field
}

/// Diffusion of a bump on a square.
fn heat_2d(n: usize, steps: usize) -> Vec<f64> {
    let at = |i: usize| i as f64 / n as f64;
    let bump = |x: f64, y: f64| (-40.0 * (x * x + y * y)).exp();
    let mut field: Vec<f64> = (0..n * n).map(|k| bump(at(k % n) - 0.5, at(k / n) - 0.4)).collect();
    for _ in 0..steps {
        let old = field.clone();
        for k in (1..n - 1).flat_map(|j| (1..n - 1).map(move |i| j * n + i)) {
            field[k] = old[k] + 0.2 * (old[k + 1] + old[k - 1] + old[k + n] + old[k - n] - 4.0 * old[k]);
        }
    }
    field
}

/// Burgers' equation on a ring.
fn burgers(n: usize, steps: usize) -> Vec<f64> {
    let mut field: Vec<f64> = (0..n).map(|i| (TAU * i as f64 / n as f64).sin()).collect();
    for _ in 0..steps {
        let old = field.clone();
        for i in 0..n {
            let (left, right) = (old[(i + n - 1) % n], old[(i + 1) % n]);
            field[i] = old[i] - 0.1 * old[i] * (right - left) + 0.04 * (right - 2.0 * old[i] + left);
        }
    }
    field
}

fn noise(n: usize) -> Vec<f64> {
    (0..n as u64).map(|at| Key::from_seed(1).uniform(at)).collect()
}

/// The shortest of some times.
fn best(mut f: impl FnMut()) -> Duration {
    let time = |_| {
        let start = Instant::now();
        f();
        start.elapsed()
    };
    (0..20).map(time).min().expect("there are some")
}

fn compression() -> Result<(), SnapshotError> {
    println!("| field | numbers | times smaller | put MB/s | get MB/s |\n|---|--:|--:|--:|--:|");
    let fields = [
        ("heat, 1D", heat(512, 200)),
        ("heat, 1D", heat(4096, 200)),
        ("heat, 1D", heat(65536, 200)),
        ("heat, 2D", heat_2d(256, 200)),
        ("Burgers", burgers(4096, 1000)),
        ("Burgers", burgers(65536, 1000)),
        ("noise", noise(65536)),
    ];
    for (name, field) in fields {
        let mut store = CompressedStore::new(MemoryStore::new());
        let (state, mut got) = (Snapshot::of(&field), Snapshot::new());
        store.put(0, 0, &state)?;
        store.get(0, 0, &mut got)?;
        assert_eq!(got, state);
        let megabytes = |time: Duration| state.bytes() as f64 / 1e6 / time.as_secs_f64();
        let put = best(|| store.put(0, 0, &state).expect("it fits"));
        let get = best(|| store.get(0, 0, &mut got).expect("it is there"));
        let ratio = store.ratio().unwrap_or(1.0);
        println!("| {name} | {} | {ratio:.2} | {:.0} | {:.0} |", field.len(), megabytes(put), megabytes(get));
    }
    Ok(())
}

fn memory() -> Result<(), SnapshotError> {
    println!("\n| store | numbers | put ns | get ns | bytes a slot |\n|---|--:|--:|--:|--:|");
    let stores: [(&str, Box<dyn SnapshotStore>); 4] = [
        ("memory", Box::new(MemoryStore::new())),
        ("lossy f32", Box::new(LossyStore::f32(MemoryStore::new()))),
        ("lossy bf16", Box::new(LossyStore::bf16(MemoryStore::new()))),
        ("compressed", Box::new(CompressedStore::new(MemoryStore::new()))),
    ];
    for (name, mut store) in stores {
        for (numbers, slots) in [(3, 1000), (1000, 100)] {
            let (state, mut got) = (Snapshot::of(&vec![1.5; numbers]), Snapshot::new());
            let mut puts = || (0..slots).for_each(|slot| store.put(slot, 0, &state).expect("it fits"));
            puts();
            let put = best(puts);
            let get = best(|| {
                (0..slots).for_each(|slot| store.get(slot, 0, black_box(&mut got)).expect("it is there"))
            });
            let each = |time: Duration| time.as_nanos() as f64 / f64::from(slots);
            let bytes = store.heap_bytes_for(slots as usize, numbers, 1) as f64 / f64::from(slots);
            println!("| {name} | {numbers} | {:.0} | {:.0} | {bytes:.0} |", each(put), each(get));
        }
    }
    Ok(())
}

/// Ten states of 4 MB forwards and backwards, with steps that take three times as long as a write and a read.
fn disk(directory: PathBuf) -> Result<(), SnapshotError> {
    println!("\n| disk | step ms | reading and writing ms | waited ms | hidden |\n|---|--:|--:|--:|--:|");
    let state = Snapshot::of(&noise(500_000));
    let mut got = Snapshot::new();
    for (name, steps_take) in [("no steps", 0), ("steps", 3)] {
        let mut store = DiskStore::new(&directory);
        let start = Instant::now();
        store.put(0, 0, &state)?;
        store.flush()?;
        store.get(0, 0, &mut got)?;
        let step = start.elapsed() * steps_take;
        let compute = || {
            let start = Instant::now();
            while start.elapsed() < step {
                spin_loop();
            }
        };
        let before = store.stats();
        for n in 0..10 {
            store.put(n, u64::from(n), &state)?;
            compute();
        }
        store.prefetch(9, 9);
        compute();
        for n in (0..10).rev() {
            store.get(n, u64::from(n), &mut got)?;
            if n > 0 {
                store.prefetch(n - 1, u64::from(n - 1));
            }
            compute();
        }
        let after = store.stats();
        let (io, waited) = (after.io_time - before.io_time, after.waited - before.waited);
        let ms = |time: Duration| 1e3 * time.as_secs_f64();
        let hidden = (100.0 - 100.0 * ms(waited) / ms(io)).max(0.0);
        println!("| {name} | {:.1} | {:.1} | {:.1} | {hidden:.0} % |", ms(step), ms(io), ms(waited));
    }
    Ok(())
}

fn main() -> Result<(), SnapshotError> {
    let directory = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    compression()?;
    memory()?;
    disk(directory)
}
