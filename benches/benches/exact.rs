//! `cargo bench -p benches --bench exact`: exact sums and dot products against naive ones and other crates, one run, ratios to naive.
//!
//! Naive is a scalar loop with one addition after the other, in a function of its own. Every contestant takes its turn in every round and
//! the fastest round counts. Two kinds of data: standard normals, and numbers spread over 512 binades, where shortcuts do not help.
//! A missed bar, or another answer of ours, makes the run fail. `-- --quick` is for CI: shorter lists, fewer rounds, and times that are
//! missed are only said.

use accurate::dot::{Dot2, OnlineExactDot};
use accurate::sum::{OnlineExactSum, Sum2};
use accurate::traits::{DotWithAccumulator, SumWithAccumulator};
use benches::bars::Held;
use benches::rng::SplitMix;
use palinode::{Accumulate, AccumulateProducts, Accumulator, ExactDot, ExactSum, Naive};
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use xsum::{Xsum, XsumLarge};

/// The bars: at most so many times naive, on normals.
const SUM_BAR: f64 = 4.0;
const DOT_BAR: f64 = 8.0;

struct Contestant {
    name: &'static str,
    run: fn(&[f64], &[f64]) -> f64,
    /// Whether the answer must be the nearest number.
    exact: bool,
}

const SUMS: [Contestant; 7] = [
    Contestant { name: "naive", run: |a, _| naive_sum(a), exact: false },
    Contestant { name: "palinode compensated", run: |a, _| Accumulator::Compensated.sum(a), exact: false },
    Contestant { name: "palinode exact", run: |a, _| Accumulator::Exact.sum(a), exact: true },
    Contestant { name: "palinode exact, one by one", run: |a, _| one_by_one(a), exact: true },
    Contestant { name: "xsum large", run: |a, _| xsum_large(a), exact: true },
    Contestant {
        name: "accurate exact",
        run: |a, _| a.iter().copied().sum_with_accumulator::<OnlineExactSum<f64>>(),
        exact: true,
    },
    Contestant {
        name: "accurate Sum2",
        run: |a, _| a.iter().copied().sum_with_accumulator::<Sum2<f64>>(),
        exact: false,
    },
];

const DOTS: [Contestant; 6] = [
    Contestant { name: "naive", run: naive_dot, exact: false },
    Contestant { name: "palinode compensated", run: |a, b| Accumulator::Compensated.dot(a, b), exact: false },
    Contestant { name: "palinode exact", run: |a, b| Accumulator::Exact.dot(a, b), exact: true },
    Contestant { name: "palinode exact, one by one", run: products_one_by_one, exact: true },
    Contestant {
        // It loses products that underflow, so it is held to the answer on normals only.
        name: "accurate exact",
        run: |a, b| {
            let pairs = a.iter().copied().zip(b.iter().copied());
            pairs.dot_with_accumulator::<OnlineExactDot<f64>>()
        },
        exact: true,
    },
    Contestant {
        name: "accurate Dot2",
        run: |a, b| a.iter().copied().zip(b.iter().copied()).dot_with_accumulator::<Dot2<f64>>(),
        exact: false,
    },
];

#[inline(never)]
fn naive_sum(a: &[f64]) -> f64 {
    let mut sum = Naive::default();
    sum.add_slice(a);
    sum.total()
}

#[inline(never)]
fn naive_dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sum = Naive::default();
    sum.add_products(a, b);
    sum.total()
}

fn one_by_one(a: &[f64]) -> f64 {
    a.iter().copied().collect::<ExactSum>().to_f64()
}

fn products_one_by_one(a: &[f64], b: &[f64]) -> f64 {
    let mut dot = ExactDot::new();
    a.iter().zip(b).for_each(|(&a, &b)| dot.add_product(a, b));
    dot.to_f64()
}

fn xsum_large(a: &[f64]) -> f64 {
    let mut sum = XsumLarge::new();
    sum.add_list(a);
    sum.sum()
}

/// Nanoseconds per term of every contestant: the fastest of interleaved rounds.
fn measure(contestants: &[Contestant], a: &[f64], b: &[f64], rounds: usize) -> Vec<f64> {
    let mut best = vec![Duration::MAX; contestants.len()];
    // Short lists are repeated until a sample can be timed.
    let repeat = (100_000 / a.len()).max(1);
    for _ in 0..rounds {
        for (contestant, best) in contestants.iter().zip(&mut best) {
            let start = Instant::now();
            for _ in 0..repeat {
                black_box((contestant.run)(black_box(a), black_box(b)));
            }
            *best = (*best).min(start.elapsed());
        }
    }
    best.iter().map(|t| t.as_secs_f64() * 1e9 / (repeat * a.len()) as f64).collect()
}

struct Data {
    name: &'static str,
    a: Vec<f64>,
    b: Vec<f64>,
    /// Whether the bars are for it.
    ordinary: bool,
}

fn data(n: usize) -> [Data; 2] {
    let mut random = SplitMix::new(1);
    let (a, b) = (random.normals(n, 1.0), random.normals(n, 1.0));
    // 512 binades, so that no product leaves the range.
    let mut wide = || f64::from_bits(random.next_u64() & !(1 << 62) | 1 << 61) * 2f64.powi(250);
    let (c, d) = ((0..n).map(|_| wide()).collect(), (0..n).map(|_| wide()).collect());
    [
        Data { name: "normals", a, b, ordinary: true },
        Data { name: "numbers over 512 binades", a: c, b: d, ordinary: false },
    ]
}

fn main() -> ExitCode {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let (lengths, rounds) =
        if quick { (&[10_000][..], 15) } else { (&[100, 10_000, 1_000_000, 10_000_000][..], 25) };
    let fused = if cfg!(target_feature = "fma") { "fma" } else { "no fma" };
    println!("ns per term and ratio to naive; one thread, {fused}, fastest of {rounds} rounds");
    let mut held = Held::new(quick);
    for &n in lengths {
        for Data { name, a, b, ordinary } in data(n) {
            for (what, contestants, bar) in [("sum", &SUMS[..], SUM_BAR), ("dot", &DOTS[..], DOT_BAR)] {
                println!("\n{what} of {n} {name}");
                let times = measure(contestants, &a, &b, rounds);
                let expected =
                    if what == "sum" { Accumulator::Exact.sum(&a) } else { Accumulator::Exact.dot(&a, &b) };
                for (contestant, &ns) in contestants.iter().zip(&times) {
                    let right = !contestant.exact || (contestant.run)(&a, &b) == expected;
                    let note = if right { "" } else { "   OTHER ANSWER" };
                    let ratio = ns / times[0];
                    println!("    {:<28}{ns:>8.2} ns{ratio:>8.2} x{note}", contestant.name);
                    // Another crate's mistake is worth knowing, ours is a failure.
                    held.right(contestant.name, right || !contestant.name.starts_with("palinode"));
                    if ordinary && n >= 10_000 && contestant.name == "palinode exact" {
                        held.time(&format!("an exact {what} over a naive one"), bar, "x", ratio);
                    }
                }
            }
        }
    }
    held.exit()
}
