//! How fast sums, dot products and products of matrices are on this computer:
//! `cargo run --release -p benches --example kernels`. `kernels.py` beside it asks numpy the same.

use palinode_num::Scalar;
use palinode_num::machine::InstructionSet;
use palinode_num::products::{MatrixView, add_product, times_vector};
use palinode_num::sums::sum_axis;
use std::hint::black_box;
use std::time::Instant;

/// The seconds of the fastest of many calls.
fn fastest(mut call: impl FnMut()) -> f64 {
    call();
    let start = Instant::now();
    call();
    let calls = ((2e-3 / start.elapsed().as_secs_f64().max(1e-8)) as usize).clamp(1, 100_000);
    let seconds = (0..40).map(|_| {
        let start = Instant::now();
        (0..calls).for_each(|_| call());
        start.elapsed().as_secs_f64() / calls as f64
    });
    seconds.fold(f64::MAX, f64::min)
}

fn numbers(count: usize) -> Vec<f64> {
    (0..count).map(|i| ((i * 7919) % 1000) as f64 / 997.0 - 0.5).collect()
}

fn main() {
    println!("{:?}", InstructionSet::best());
    println!("ns per element:");
    for n in [3, 16, 100, 1000, 1_000_000] {
        let (a, b, mut sums) = (numbers(n), numbers(n), vec![0.0; n.div_ceil(100)]);
        let mut out = 0.0;
        let per_element = |seconds: f64| seconds * 1e9 / n as f64;
        let sum = per_element(fastest(|| out += f64::sum_of(black_box(&a))));
        let dot = per_element(fastest(|| out += f64::dot(black_box(&a), black_box(&b))));
        print!("  {n}: sum {sum:.3}, dot product {dot:.3}");
        black_box(out);
        if n.is_multiple_of(100) {
            let lines =
                per_element(fastest(|| sum_axis(black_box(&a), [1, 100, n / 100], black_box(&mut sums))));
            print!(", over 100 lines {lines:.3}");
        }
        println!();
    }
    println!("GFlop/s (ns) of products, the factors by rows or by columns:");
    let squares = [3, 6, 8, 10, 12, 15, 16, 23, 32, 64, 100, 128, 256, 1000].map(|n| [n; 3]);
    let others = [[1024, 64, 128], [64, 1024, 128], [1, 256, 256], [256, 1, 256], [1024, 10, 10]];
    for [m, k, n] in squares.into_iter().chain(others) {
        let (a, b, mut c) = (numbers(m * k), numbers(k * n), vec![0.0; m * n]);
        print!("  {m} by {k} by {n}:");
        for (a_by_rows, b_by_rows) in [(true, true), (false, true), (true, false), (false, false)] {
            let view = |data, rows, columns, by_rows| match by_rows {
                true => MatrixView::by_rows(data, rows, columns),
                false => MatrixView::by_columns(data, rows, columns),
            };
            let (a, b) = (view(&a, m, k, a_by_rows), view(&b, k, n, b_by_rows));
            let seconds = fastest(|| {
                c.fill(0.0);
                add_product(black_box(&mut c), black_box(a), black_box(b), false);
            });
            print!("  {:.1} ({:.0})", 2e-9 * (m * k * n) as f64 / seconds, seconds * 1e9);
        }
        println!();
    }
    println!("of a matrix, by rows or by columns, and a vector:");
    for n in [3, 8, 16, 64, 256, 1000] {
        let (a, x, mut y) = (numbers(n * n), numbers(n), vec![0.0; n]);
        print!("  {n} by {n}:");
        for a in [MatrixView::by_rows(&a, n, n), MatrixView::by_columns(&a, n, n)] {
            let seconds = fastest(|| times_vector(black_box(&mut y), black_box(a), black_box(&x), false));
            print!("  {:.1} ({:.0})", 2e-9 * (n * n) as f64 / seconds, seconds * 1e9);
        }
        println!();
    }
}
