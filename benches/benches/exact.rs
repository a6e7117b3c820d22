//! `cargo bench -p benches --bench exact`: exact sums and dot products against naive ones and other crates,
//! one run, ratios to naive.
//!
//! Naive is a plain scalar loop with one addition after the other, in a function of its own. Every contestant
//! takes its turn in every round and the fastest round counts. Three kinds of data: standard normals, numbers
//! spread over 512 binades, where shortcuts do not help, and subnormals (times normals: products of which
//! two-product loses bits). Lengths from 100 on: what a sum costs once weighs on short lists.
//!
//! Answers are held to big integers (`reference`). The bars hold for 1000 terms and more of every kind; from
//! which length on they are met is said at the end. On normals ours must also be faster than every other
//! crate's exact one. A missed bar, or a wrong answer of ours, makes the run fail. `-- --quick` is for CI:
//! shorter lists, fewer rounds, and times that are missed are only said.

use accurate::dot::{Dot2, OnlineExactDot};
use accurate::sum::{OnlineExactSum, Sum2};
use accurate::traits::{DotWithAccumulator, SumWithAccumulator};
use benches::bars::Held;
use benches::measure::fastest;
use benches::reference;
use benches::rng::{Draws, normals};
use palinode::num::{Accumulator, ExactDot, ExactSum};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::process::ExitCode;
use xsum::{Xsum, XsumLarge, XsumSmall};

/// The bars: at most so many times naive.
const SUM_BAR: f64 = 4.0;
const DOT_BAR: f64 = 8.0;
/// The lengths that they are for: from so many terms on.
const LONG: usize = 1000;
/// What is held to them.
const OURS: &str = "palinode exact";

struct Contestant {
    name: &'static str,
    run: fn(&[f64], &[f64]) -> f64,
    /// Whether it says that its answer is the nearest number.
    exact: bool,
}

impl Contestant {
    fn is_peer(&self) -> bool {
        self.exact && !self.name.starts_with("palinode")
    }
}

const SUMS: [Contestant; 8] = [
    Contestant { name: "naive", run: |a, _| naive_sum(a), exact: false },
    Contestant { name: "palinode compensated", run: |a, _| Accumulator::Compensated.sum(a), exact: false },
    Contestant { name: OURS, run: |a, _| Accumulator::Exact.sum(a), exact: true },
    Contestant { name: "palinode exact, one by one", run: |a, _| one_by_one(a), exact: true },
    Contestant { name: "xsum small", run: |a, _| by_xsum(XsumSmall::new(), a), exact: true },
    Contestant { name: "xsum large", run: |a, _| by_xsum(XsumLarge::new(), a), exact: true },
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

/// `xsum` has no dot product.
const DOTS: [Contestant; 6] = [
    Contestant { name: "naive", run: naive_dot, exact: false },
    Contestant { name: "palinode compensated", run: |a, b| Accumulator::Compensated.dot(a, b), exact: false },
    Contestant { name: OURS, run: |a, b| Accumulator::Exact.dot(a, b), exact: true },
    Contestant { name: "palinode exact, one by one", run: products_one_by_one, exact: true },
    Contestant {
        // It loses bits of products that underflow.
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
    let mut sum = 0.0;
    for &x in a {
        sum += x;
    }
    sum
}

#[inline(never)]
fn naive_dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sum = 0.0;
    for (&x, &y) in a.iter().zip(b) {
        sum += x * y;
    }
    sum
}

fn one_by_one(a: &[f64]) -> f64 {
    a.iter().copied().collect::<ExactSum>().to_f64()
}

fn products_one_by_one(a: &[f64], b: &[f64]) -> f64 {
    let mut dot = ExactDot::new();
    a.iter().zip(b).for_each(|(&a, &b)| dot.add_product(a, b));
    dot.to_f64()
}

fn by_xsum(mut sum: impl Xsum, a: &[f64]) -> f64 {
    sum.add_list(a);
    sum.sum()
}

/// Nanoseconds per term of every contestant: the fastest of interleaved rounds.
fn measure(contestants: &[Contestant], a: &[f64], b: &[f64], rounds: usize) -> Vec<f64> {
    // Short lists are repeated until a sample can be timed.
    let repeat = (100_000 / a.len()).max(1);
    let best = fastest(contestants, rounds, repeat, |contestant| {
        black_box((contestant.run)(black_box(a), black_box(b)));
    });
    best.iter().map(|t| t.as_secs_f64() * 1e9 / (repeat * a.len()) as f64).collect()
}

struct Data {
    name: &'static str,
    a: Vec<f64>,
    b: Vec<f64>,
    /// Whether ours must be faster than the other crates on it.
    ordinary: bool,
}

fn data(n: usize) -> [Data; 3] {
    let mut random = Draws::new(1);
    let (a, b) = (normals(&mut random, n, 1.0), normals(&mut random, n, 1.0));
    let normals = normals(&mut random, n, 1.0);
    // 512 binades, so that no product leaves the range.
    let mut wide = || f64::from_bits(random.u64() & !(1 << 62) | 1 << 61) * 2f64.powi(250);
    let (c, d) = ((0..n).map(|_| wide()).collect(), (0..n).map(|_| wide()).collect());
    let subnormals = (0..n).map(|_| f64::from_bits(random.u64() & (1 << 63 | ((1 << 52) - 1)))).collect();
    [
        Data { name: "normals", a, b, ordinary: true },
        Data { name: "numbers over 512 binades", a: c, b: d, ordinary: false },
        Data { name: "subnormals", a: subnormals, b: normals, ordinary: false },
    ]
}

/// A sum or a dot product: who takes part, the bar, and the right answer.
struct Event {
    name: &'static str,
    contestants: &'static [Contestant],
    bar: f64,
    answer: fn(&[f64], &[f64]) -> f64,
}

const EVENTS: [Event; 2] = [
    Event { name: "sum", contestants: &SUMS, bar: SUM_BAR, answer: |a, _| reference::sum(a) },
    Event { name: "dot", contestants: &DOTS, bar: DOT_BAR, answer: reference::dot },
];

/// Measures, prints and judges one event on one kind of data. The answer is our ratio to naive.
fn compete(event: &Event, data: &Data, rounds: usize, held: &mut Held) -> f64 {
    let (n, Data { name: kind, a, b, ordinary }) = (data.a.len(), data);
    println!("\n{} of {n} {kind}", event.name);
    let times = measure(event.contestants, a, b, rounds);
    let expected = (event.answer)(a, b);
    let (mut ours, mut best_peer) = (f64::NAN, ("", f64::INFINITY));
    for (contestant, &ns) in event.contestants.iter().zip(&times) {
        let right = !contestant.exact || (contestant.run)(a, b) == expected;
        let note = if right { "" } else { "   WRONG ANSWER" };
        println!("    {:<28}{ns:>8.2} ns{:>8.2} x{note}", contestant.name, ns / times[0]);
        // Another crate's mistake is worth knowing, ours is a failure.
        held.right(contestant.name, right || contestant.is_peer());
        if contestant.name == OURS {
            ours = ns;
        } else if contestant.is_peer() && ns < best_peer.1 {
            best_peer = (contestant.name, ns);
        }
    }
    let (ratio, against) = (ours / times[0], ours / best_peer.1);
    println!("    ours over {}: {against:.2} x", best_peer.0);
    if n >= LONG {
        held.time(&format!("an exact {} of {n} {kind} over a naive one", event.name), event.bar, "x", ratio);
        if *ordinary {
            held.time(&format!("the same over the best other crate, {}", best_peer.0), 1.0, "x", against);
        }
    }
    ratio
}

fn main() -> ExitCode {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let (lengths, rounds) = if quick {
        (&[100, LONG, 10_000][..], 15)
    } else {
        (&[100, LONG, 10_000, 1_000_000, 10_000_000][..], 25)
    };
    let fused = if cfg!(target_feature = "fma") { "fma" } else { "no fma" };
    println!("ns per term and ratio to naive; one thread, {fused}, fastest of {rounds} rounds");
    let mut held = Held::new(quick);
    // Our ratios, by kind of data and event.
    let mut ratios: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for &n in lengths {
        for data in data(n) {
            for event in &EVENTS {
                let ratio = compete(event, &data, rounds, &mut held);
                ratios.entry((event.name, data.name)).or_default().push(ratio);
            }
        }
    }
    println!("\nfrom how many terms on the bar is met, of {lengths:?}");
    for ((event, kind), ratios) in &ratios {
        let bar = if *event == "sum" { SUM_BAR } else { DOT_BAR };
        let first = ratios.iter().rposition(|&ratio| ratio > bar).map_or(0, |missed| missed + 1);
        let from = lengths.get(first).map_or("none".to_owned(), usize::to_string);
        let all: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
        println!("    {event} of {kind:<26}{from:>10}   ({} x; bar {bar} x)", all.join(", "));
    }
    held.exit()
}
