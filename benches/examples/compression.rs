//! What compression does to three recordings: nodes, bytes and time of a sweep before and after.
//!
//! `cargo run --release -p benches --example compression` prints the table of the book's page on
//! compression; with `--reports`, what each step did.

use palinode_core::{CompressedRecord, Compression, Error, Key, Partials, Tape, Var};
use std::time::Instant;

type V = Var<f64>;

/// Explicit Euler on the Lorenz system from (1, 1, 1), loss at the end; by initial values and parameters.
fn lorenz(p: &[V]) -> V {
    let (mut x, mut y, mut z) = (p[0], p[1], p[2]);
    for _ in 0..100_000 {
        let (dx, dy, dz) = (p[3] * (y - x), x * (p[4] - z) - y, x * y - p[5] * z);
        (x, y, z) = (x + dx * 0.001, y + dy * 0.001, z + dz * 0.001);
    }
    x * x + y * y + z * z
}

/// Numbers without a pattern in [-1, 1).
fn noise(n: usize) -> Vec<f64> {
    let key = Key::from_seed(1);
    (0..n as u64).map(|at| key.uniform(at) * 2.0 - 1.0).collect()
}

const WIDTH: usize = 14;

/// A long short-term memory with diagonal weights over 256 steps, predicting the next of 14 characters.
fn lstm(p: &[V]) -> V {
    let gate = |x: V| (x.exp() + 1.0).recip();
    let (weights, scale) = p.split_at(8 * WIDTH);
    let (mut hidden, mut cell) = (vec![V::lift(0.0); WIDTH], vec![V::lift(0.0); WIDTH]);
    let mut losses = Vec::new();
    for step in noise(256 * WIDTH).chunks(WIDTH) {
        for i in 0..WIDTH {
            let w = |k: usize| weights[k * WIDTH + i];
            let input = scale[i] * step[i];
            let (forget, admit) = (gate(input * w(0) + w(1)), gate(hidden[i] * w(2) + w(3)));
            let (emit, change) = (gate(input * w(4) + w(5)), (hidden[i] * w(6) + w(7)).tanh());
            cell[i] = cell[i] * forget + admit * change;
            hidden[i] = emit * cell[i].tanh();
        }
        let norm = hidden.iter().map(|h| h.exp()).sum::<V>().ln();
        losses.extend(hidden.iter().zip(step).filter(|(_, s)| **s > 0.0).map(|(&h, _)| norm - h));
    }
    losses.iter().sum::<V>() * (1.0 / losses.len() as f64)
}

const DIMENSIONS: usize = 8;
const COMPONENTS: usize = 10;

/// The log-likelihood of 200 points under a mixture of Gaussians with diagonal precisions.
fn gmm(p: &[V]) -> V {
    let (weights, rest) = p.split_at(COMPONENTS);
    let (means, logs) = rest.split_at(COMPONENTS * DIMENSIONS);
    let of_points = noise(200 * DIMENSIONS).chunks(DIMENSIONS).fold(Vec::new(), |mut of_points, point| {
        let terms: Vec<V> = (0..COMPONENTS)
            .map(|c| {
                let range = c * DIMENSIONS..(c + 1) * DIMENSIONS;
                let squares = means[range.clone()].iter().zip(&logs[range]).zip(point);
                let squares = squares.map(|((&mean, &log), &x)| ((x - mean) * log.exp()).powi(2) * 0.5 - log);
                weights[c] - squares.sum::<V>()
            })
            .collect();
        let largest = terms.iter().map(|t| t.value()).fold(f64::NEG_INFINITY, f64::max);
        of_points.push(terms.iter().map(|&t| (t - largest).exp()).sum::<V>().ln() + largest);
        of_points
    });
    of_points.iter().sum()
}

/// The fastest of some runs, in microseconds.
fn microseconds(mut run: impl FnMut()) -> f64 {
    let time = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64() * 1e6
    };
    (0..30).map(|_| time(&mut run)).fold(f64::INFINITY, f64::min)
}

fn row(name: &str, kind: &str, nodes: usize, edges: usize, bytes: usize, sweep: f64, error: &str) {
    let kib = bytes as f64 / 1024.0;
    println!("| {name:<6} | {kind:<14} | {nodes:>7} | {edges:>7} | {kib:>9.1} | {sweep:>9.1} | {error:>8} |");
}

fn measure(name: &str, inputs: &[f64], f: fn(&[V]) -> V, reports: bool) -> Result<(), Error> {
    let mut tape = Tape::new();
    let mut record = tape.record(inputs, f)?;
    let size = record.size();
    let exact = record.reverse(&[1.0])?.to_vec();
    let sweep = microseconds(|| drop(record.reverse(&[1.0]).map(<[f64]>::len)));
    row(name, "recorded", size.nodes, size.edges, size.bytes, sweep, "");
    for (kind, chains, blocks, partials) in [
        ("what matters", false, false, Partials::Exact),
        ("chains", true, false, Partials::Exact),
        ("chains, f32", true, false, Partials::F32),
        ("chains, bf16", true, false, Partials::Bf16),
        ("chains, blocks", true, true, Partials::Exact),
    ] {
        let how = Compression { chains, blocks, partials, inputs: None };
        let record = tape.record(inputs, f)?;
        let start = Instant::now();
        let mut compressed: CompressedRecord<f64> = record.compress(&how)?;
        let took = start.elapsed().as_secs_f64() * 1e6;
        let sweep = microseconds(|| drop(compressed.reverse(&[1.0]).map(<[f64]>::len)));
        let largest = exact.iter().fold(0.0_f64, |m, g| m.max(g.abs()));
        let found = compressed.reverse(&[1.0])?;
        let apart = found.iter().zip(&exact).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs())) / largest;
        let size = compressed.size();
        row(name, kind, size.nodes, size.edges, size.bytes, sweep, &format!("{apart:.0e}"));
        if reports {
            println!("{}compressed in {took:.0} us", compressed.report());
        }
    }
    Ok(())
}

fn main() -> Result<(), Error> {
    let reports = std::env::args().any(|argument| argument == "--reports");
    println!("| tape   | form           |   nodes |   edges |       KiB |  sweep us | relative error |");
    println!("|---|---|--:|--:|--:|--:|--:|");
    measure("lorenz", &[1.0, 1.0, 1.0, 10.0, 10.0, 8.0 / 3.0], lorenz, reports)?;
    measure("lstm", &noise(9 * WIDTH), lstm, reports)?;
    measure("gmm", &noise(COMPONENTS * (1 + 2 * DIMENSIONS)), gmm, reports)
}
