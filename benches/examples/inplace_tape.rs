//! The benchmark `inplace` on the tape: 1e5 updates of single elements of an array of M.
//!
//! `cargo run --release -p benches --example inplace_tape`
//!
//! Prints the time of one update, recorded and swept, and the ratio to the smallest M. What is O(M) and no
//! update (the inputs, the sum, the cotangents) is measured without updates and taken off. Then two other
//! ways for comparison: a list of `Var`s, and a copy before every write.

use palinode_core::{Array, Key, Tape, Var, WhenOverwritten};
use std::time::Instant;

const UPDATES: usize = 100_000;
const ROUNDS: usize = 15;

/// Something that updates elements and adds them up.
type Program = fn(&[Var<f64>], &[(usize, usize)]) -> Var<f64>;

/// Positions to write and to read, below `reach`.
fn positions(n: usize, reach: usize) -> Vec<(usize, usize)> {
    let key = Key::from_seed(12345);
    let place = |at: usize| key.below(reach as u64, at as u64) as usize;
    (0..n).map(|at| (place(2 * at), place(2 * at + 1))).collect()
}

fn on_array(x: &[Var<f64>], updates: &[(usize, usize)]) -> Var<f64> {
    let mut a = Array::from_vars(x);
    for &(i, j) in updates {
        let x = a.get(i);
        a.set(i, x.sin() * a.get(j).cos() + x / 2.0);
    }
    a.sum()
}

fn on_list(x: &[Var<f64>], updates: &[(usize, usize)]) -> Var<f64> {
    let mut a = x.to_vec();
    for &(i, j) in updates {
        a[i] = a[i].sin() * a[j].cos() + a[i] / 2.0;
    }
    a.iter().sum()
}

/// The shortest of several gradients, in nanoseconds per update; the time without updates is taken off.
fn per_update(m: usize, updates: &[(usize, usize)], policy: WhenOverwritten, f: Program) -> f64 {
    let start: Vec<f64> = positions(m, 1 << 20).iter().map(|p| 0.5 + p.0 as f64 / (1 << 20) as f64).collect();
    let mut tape = Tape::new();
    tape.set_when_overwritten(policy);
    let mut shortest = |updates: &[(usize, usize)]| {
        let once = |_| {
            let begin = Instant::now();
            let mut record = tape.record(&start, |x| f(x, updates)).unwrap();
            std::hint::black_box(record.reverse(&[1.0]).unwrap());
            begin.elapsed().as_secs_f64()
        };
        (0..ROUNDS).map(once).fold(f64::INFINITY, f64::min)
    };
    let with = shortest(updates);
    (with - shortest(&[])) / updates.len() as f64 * 1e9
}

fn main() {
    println!("ns per update, recorded and swept            M = 1e3      1e4      1e5   ratio");
    for (name, confined, f) in [
        ("array, positions below 1,000", true, on_array as Program),
        ("array, positions over all of M", false, on_array),
        ("list of numbers, below 1,000", true, on_list),
        ("list of numbers, over all of M", false, on_list),
    ] {
        let times = [1_000, 10_000, 100_000].map(|m| {
            let updates = positions(UPDATES, if confined { 1_000 } else { m });
            per_update(m, &updates, WhenOverwritten::Copy, f)
        });
        let ratio = times[2].max(times[1]) / times[0];
        println!("{name:<40} {:>12.1} {:>8.1} {:>8.1} {ratio:>7.2}", times[0], times[1], times[2]);
    }
    let copied = per_update(1_000, &positions(1_000, 1_000), WhenOverwritten::AlwaysCopy, on_array);
    println!("{:<40} {copied:>12.1}   (1,000 updates)", "array, copied before every write");
}
