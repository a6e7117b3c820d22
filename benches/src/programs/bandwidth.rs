//! How many bytes a second this machine moves on one core: what loops that wait for memory are limited by.

use std::hint::black_box;
use std::time::Instant;

/// Names of arrays by where they stay, and the bytes of three of them together.
const PLACES: [(&str, usize); 3] =
    [("the first cache", 24 << 10), ("the second cache", 512 << 10), ("memory", 192 << 20)];

/// `a = b + s c`, so often that it takes a while: two arrays are read, one is written. Gigabytes a second.
fn triad(bytes: usize) -> f64 {
    let n = bytes / 3 / size_of::<f64>();
    let (mut a, b, c) = (vec![0.0; n], vec![1.0; n], vec![2.0; n]);
    let repeats = (32 << 20) / bytes.min(32 << 20);
    let mut best = f64::INFINITY;
    for round in 0..10 {
        let s = black_box(f64::from(round));
        let start = Instant::now();
        for _ in 0..repeats {
            a.iter_mut().zip(&b).zip(&c).for_each(|((a, b), c)| *a = b + s * c);
            black_box(&mut a);
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    (repeats * 3 * n * size_of::<f64>()) as f64 / best / 1e9
}

/// Each place and its gigabytes a second.
pub(super) fn measured() -> [(&'static str, f64); 3] {
    PLACES.map(|(name, bytes)| (name, triad(bytes)))
}
