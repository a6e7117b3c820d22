//! `cargo bench -p benches --bench quire [-- --quick]`: exact dot products of posits, ours and the other
//! crates', in one run.
//!
//! Time: nanoseconds per multiply-add of dot products of 100, 1000 and 4096 terms, the rounding at their end
//! included; the minimum over rounds in which everyone takes a turn, one thread. Two kinds of data: factors
//! between 2^-8 and 2^8, as in a network, and uniformly random encodings, which are mostly of such a size but
//! reach both ends of the range.
//!
//! Also counted: single products whose rounding out of the quire is not the rounded product.
//!
//! Bars, for every length: at most 10 ns, and below both other crates. A missed one, or a wrong rounding of
//! ours, makes the run fail; with `--quick` times that are missed are only said.

use benches::bars::Held;
use benches::measure::fastest;
use benches::rng::Draws;
use palinode::num::{Posit32, PositWidth, Quire, Quire32};
use std::hint::black_box;
use std::process::ExitCode;

/// Lengths: what is done once for a dot product weighs on short ones.
const TERMS: [usize; 3] = [100, 1000, 4096];
/// How many multiply-adds are timed together, at least.
const TIMED: usize = 8 * 4096;
/// Nanoseconds per multiply-add.
const BAR: f64 = 10.0;

/// A dot product of all terms, as the bits of the result.
type Dot<'a> = Box<dyn Fn() -> u64 + 'a>;

/// The other crates.
const OTHERS: [&str; 2] = ["fast-posit p32", "softposit P32"];

struct Data {
    a: Vec<Posit32>,
    b: Vec<Posit32>,
}

impl Data {
    fn new(terms: usize, number: fn(&mut Draws) -> Posit32) -> Self {
        let mut rng = Draws::new(31);
        let a = (0..terms).map(|_| number(&mut rng)).collect();
        Self { a, b: (0..terms).map(|_| number(&mut rng)).collect() }
    }

    fn pairs<T>(&self, convert: impl Fn(Posit32) -> T) -> Vec<(T, T)> {
        self.a.iter().zip(&self.b).map(|(&x, &y)| (convert(x), convert(y))).collect()
    }
}

fn like_a_network(rng: &mut Draws) -> Posit32 {
    let size = (16.0 * rng.uniform() - 8.0).exp2();
    Posit32::from_f64(if rng.uniform() < 0.5 { -size } else { size })
}

fn any_encoding(rng: &mut Draws) -> Posit32 {
    let x = Posit32::from_bits(rng.u64() as i32);
    if x.is_nar() { Posit32::ONE } else { x }
}

fn in_width<W: PositWidth>(data: &Data) -> Dot<'static> {
    let (a, b): (Vec<_>, Vec<_>) = data.pairs(Posit32::convert::<W>).into_iter().unzip();
    Box::new(move || Quire::dot(black_box(&a), black_box(&b)).to_f64().to_bits())
}

fn contestants(data: &Data) -> Vec<(&'static str, Dot<'_>)> {
    let fast = data.pairs(|x| fast_posit::p32::from_bits(x.to_bits()));
    let soft = data.pairs(|x| softposit::P32::from_bits(x.to_bits() as u32));
    let naive = data.pairs(Posit32::to_f64);
    vec![
        (
            "palinode posit32",
            Box::new(|| Quire32::dot(black_box(&data.a), black_box(&data.b)).to_bits() as u64),
        ),
        (
            "  one by one",
            Box::new(|| {
                let mut quire = Quire32::new();
                black_box(&data.a)
                    .iter()
                    .zip(black_box(&data.b))
                    .for_each(|(&x, &y)| quire.add_product(x, y));
                quire.to_posit().to_bits() as u64
            }),
        ),
        (
            OTHERS[0],
            Box::new(move || {
                let mut quire = fast_posit::q32::ZERO;
                black_box(&fast).iter().for_each(|&(x, y)| quire.add_prod(x, y));
                <fast_posit::p32 as fast_posit::RoundFrom<_>>::round_from(&quire).to_bits() as u64
            }),
        ),
        (
            OTHERS[1],
            Box::new(move || {
                let mut quire = softposit::Q32::init();
                black_box(&soft).iter().for_each(|&(x, y)| quire += (x, y));
                u64::from(quire.to_posit().to_bits())
            }),
        ),
        ("palinode posit16", in_width::<i16>(data)),
        ("palinode posit64", in_width::<i64>(data)),
        ("naive f64", Box::new(move || black_box(&naive).iter().map(|(x, y)| x * y).sum::<f64>().to_bits())),
    ]
}

fn measure(data: &Data, title: &str, rounds: usize, held: &mut Held) {
    let (all, terms) = (contestants(data), data.a.len());
    let repeat = TIMED.div_ceil(terms);
    let best = fastest(&all, rounds, repeat, |(_, dot)| {
        black_box(dot());
    });
    let ns = best.iter().map(|best| best.as_secs_f64() * 1e9 / (repeat * terms) as f64);
    let times: Vec<(&str, f64)> = all.iter().map(|(name, _)| *name).zip(ns).collect();
    let ours = times[0].1;
    println!("\nquire multiply-add, {terms} {title}\n{:<18}{:>8}{:>16}", "", "ns", "over posit32");
    for (name, ns) in &times {
        println!("{name:<18}{ns:>8.2}{:>16.2}", ns / ours);
    }
    held.time("posit32 multiply-add", BAR, "ns", ours);
    for (other, ns) in times.iter().filter(|(name, _)| OTHERS.contains(name)) {
        held.time(&format!("posit32 multiply-add against {other}"), *ns, "ns", ours);
    }
}

/// How many products come out of the quire rounded another way than the product itself.
fn count_wrong_roundings(data: &Data, held: &mut Held) {
    let (mut ours, mut fast, mut soft, mut tried) = (0, 0, 0, 0);
    for shift in 0..16 {
        for (&x, &y) in data.a.iter().zip(data.b.iter().cycle().skip(shift)) {
            let expected = (x * y).to_bits();
            tried += 1;
            let mut quire = Quire32::new();
            quire.add_product(x, y);
            ours += usize::from(quire.to_posit().to_bits() != expected);
            let mut quire = fast_posit::q32::ZERO;
            quire.add_prod(fast_posit::p32::from_bits(x.to_bits()), fast_posit::p32::from_bits(y.to_bits()));
            let rounded: fast_posit::p32 = fast_posit::RoundFrom::round_from(&quire);
            fast += usize::from(rounded.to_bits() != expected);
            let mut quire = softposit::Q32::init();
            quire += (
                softposit::P32::from_bits(x.to_bits() as u32),
                softposit::P32::from_bits(y.to_bits() as u32),
            );
            soft += usize::from(quire.to_posit().to_bits() as i32 != expected);
        }
    }
    println!(
        "\nwrong roundings of {tried} single products: palinode {ours}, fast-posit {fast}, softposit {soft}"
    );
    held.right("a rounding of a single product", ours == 0);
}

fn main() -> ExitCode {
    // Rows and rounds of the table are for the other bench; a run for some of its rows is not for this one.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let quick = args.iter().any(|arg| arg == "--quick");
    if args.iter().any(|arg| arg != "--quick" && arg != "quire") {
        return ExitCode::SUCCESS;
    }
    let rounds = if quick { 30 } else { 400 };
    let mut held = Held::new(quick);
    for terms in TERMS {
        measure(&Data::new(terms, like_a_network), "factors between 2^-8 and 2^8", rounds, &mut held);
        measure(&Data::new(terms, any_encoding), "random encodings", rounds, &mut held);
    }
    count_wrong_roundings(&Data::new(4096, any_encoding), &mut held);
    held.exit()
}
