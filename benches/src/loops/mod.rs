//! Loops inside a budget: problems, measurements and the bars they are held to.
//!
//! Every time is the minimum over rounds in which all contestants take their turn.

pub(crate) mod burgers;
mod disk;
mod long;
mod lorenz;

use crate::problem::Size;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// One line: what, how much, the most it may be.
pub(crate) struct Line {
    pub(crate) what: String,
    pub(crate) found: f64,
    pub(crate) limit: Option<f64>,
    pub(crate) unit: &'static str,
}

impl Line {
    pub(crate) fn new(what: impl Into<String>, found: f64, limit: Option<f64>, unit: &'static str) -> Self {
        Line { what: what.into(), found, limit, unit }
    }
}

/// What there is to measure.
type Part = (&'static str, fn(Size) -> Vec<Line>);
const PARTS: [Part; 5] = [
    ("planning", planning),
    ("lorenz", lorenz::lines),
    ("burgers", burgers::lines),
    ("disk", disk::lines),
    ("long", long::lines),
];

/// The parts asked for, or everything, as text.
pub fn report(size: Size, wanted: &[String]) -> String {
    let mut text = String::from(
        "Loops inside a budget; times are minima over rounds, limits are ratios or figures of this run\n",
    );
    let is_wanted = |title: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == title);
    for (title, lines) in PARTS.into_iter().filter(|(title, _)| is_wanted(title)) {
        let _ = writeln!(text, "\n{title}");
        for Line { what, found, limit, unit } in lines(size) {
            let verdict = match limit {
                None => String::new(),
                Some(limit) if found <= limit => format!("   limit {limit:>7.1}  PASS"),
                Some(limit) => format!("   limit {limit:>7.1}  MISS"),
            };
            let _ = writeln!(text, "  {what:<72} {found:>10.2} {unit:<8}{verdict}");
        }
    }
    text
}

fn planning(size: Size) -> Vec<Line> {
    let rounds = if size == Size::Full { 200 } else { 20 };
    let best = (0..rounds).map(|_| timed(|| palinode::schedule::binomial(1_000_000, 100))).min();
    let ms = best.unwrap_or_default().as_secs_f64() * 1e3;
    vec![Line::new("binomial schedule of 1e6 steps with 100 snapshots", ms, Some(1.0), "ms")]
}

/// How long it takes.
pub(crate) fn timed<R>(run: impl FnOnce() -> R) -> Duration {
    let start = Instant::now();
    std::hint::black_box(run());
    start.elapsed()
}

/// One contestant of a [`race`].
pub(crate) fn turn<'a, R>(mut run: impl FnMut() -> R + 'a) -> Box<dyn FnMut() + 'a> {
    Box::new(move || {
        std::hint::black_box(run());
    })
}

/// The shortest time of each, over rounds in which all take their turn.
pub(crate) fn race<const N: usize>(rounds: usize, contestants: &mut [Box<dyn FnMut() + '_>; N]) -> [f64; N] {
    let mut best = [f64::INFINITY; N];
    for _ in 0..rounds {
        for (best, run) in best.iter_mut().zip(contestants.iter_mut()) {
            *best = best.min(timed(run).as_secs_f64() * 1e9);
        }
    }
    best
}
