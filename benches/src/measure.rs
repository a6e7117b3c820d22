//! Times and weighs every peer on one problem.
//!
//! Time: rounds in which plain f64 and every peer take their turn, minimum over rounds, one thread. Peers
//! keep what their crate lets them keep between calls, so this is the steady state, after a warm-up call.
//!
//! First: preparing and one gradient in a thread of its own, so that no pool is warm yet: what a program that
//! wants a single gradient pays, page faults and all. Bytes: the heap's peak above what was there before, in
//! the same run. It holds nodes, cotangents and growth slack.

use crate::heap;
use crate::num::Num;
use crate::peer::tally::{self, Counts};
use crate::peer::{self, Gradient, Kind, Peer, Refusal};
use crate::problem::{Problem, Size};
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

/// A tape expected to need more than this is measured on the smaller problem instead.
const MEMORY_CAP: f64 = 6.0 * (1u64 << 30) as f64;
/// Fresh threads tried for the first-gradient time.
const FIRST_TRIES: usize = 3;
/// Rounds: at least the one, at most the other, and in between until this much time is spent. Many short
/// rounds are what makes the minimum repeat on a machine with other work on it.
const MIN_ROUNDS: usize = 5;
const MAX_ROUNDS: usize = 60;
const TIMING: Duration = Duration::from_secs(6);
/// Short evaluations are repeated until a sample takes about this long.
const SAMPLE: Duration = Duration::from_millis(5);
/// Gradients further apart than this, relative to the largest entry, are reported.
const AGREEMENT: f64 = 1e-6;

/// One problem's figures.
pub struct Row {
    /// The problem's name.
    pub problem: &'static str,
    /// Its sizes.
    pub describe: String,
    /// What an iteration is.
    pub unit: &'static str,
    /// Whether these are the published sizes.
    pub full_size: bool,
    /// Iterations of one evaluation.
    pub iterations: usize,
    /// Active operations of one evaluation.
    pub counts: Counts,
    /// Plain f64 nanoseconds per iteration.
    pub plain_ns: f64,
    /// Every peer, in order.
    pub peers: Vec<Measured>,
}

/// One peer on one problem.
pub struct Measured {
    /// The peer's name.
    pub name: &'static str,
    /// How it computes.
    pub kind: Kind,
    /// Its figures, or why there are none.
    pub outcome: Result<Figures, Refusal>,
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Nanoseconds per iteration of one gradient.
    pub ns: f64,
    /// Nanoseconds per iteration of a first gradient, preparation included.
    pub first_ns: f64,
    /// Peak heap bytes per iteration.
    pub bytes: f64,
    /// Allocations of one warm gradient.
    pub allocations: usize,
    /// What the reader must know (measured smaller, gradient differs).
    pub note: String,
}

impl Row {
    /// A peer's figures, where it has some.
    pub fn figures(&self, name: &str) -> Option<&Figures> {
        self.peers.iter().find(|m| m.name == name)?.outcome.as_ref().ok()
    }

    /// Active operations per iteration.
    pub fn operations_per_iteration(&self) -> f64 {
        self.counts.operations as f64 / self.iterations as f64
    }
}

/// Measures every peer on problem `P`.
pub fn run<P: Problem>(size: Size, rounds: Option<usize>) -> Row {
    let problem = P::new(size);
    let smaller = problem.smaller();
    let peers = peer::all::<P>();
    let weights: Vec<Result<Weight, Refusal>> =
        peers.iter().map(|peer| weigh_within_cap(peer, &problem, smaller.as_ref())).collect();

    // A thread per problem, so that what peers pool per thread is given back before the next problem.
    let (plain_ns, times) =
        thread::scope(|s| s.spawn(|| time_all(&problem, smaller.as_ref(), &peers, &weights, rounds)).join())
            .expect("the peers already ran once");

    let reference = weights.iter().flatten().find(|w| !w.reduced).map(|w| w.gradient.clone());
    let peers = peers
        .iter()
        .zip(weights)
        .zip(times)
        .map(|((peer, weight), time)| Measured {
            name: peer.name,
            kind: peer.kind,
            outcome: weight.map(|w| figures(&w, time, reference.as_deref(), smaller.as_ref())),
        })
        .collect();
    Row {
        problem: P::NAME,
        describe: problem.describe(),
        unit: P::UNIT,
        full_size: size == Size::Full,
        iterations: problem.iterations(),
        counts: tally::count(&problem),
        plain_ns,
        peers,
    }
}

/// The shortest time of each contestant, over rounds in which all take their turn and run so many times.
pub fn fastest<C>(contestants: &[C], rounds: usize, repeat: usize, run: impl Fn(&C)) -> Vec<Duration> {
    let mut best = vec![Duration::MAX; contestants.len()];
    for _ in 0..rounds {
        for (contestant, best) in contestants.iter().zip(&mut best) {
            let start = Instant::now();
            (0..repeat).for_each(|_| run(contestant));
            *best = (*best).min(start.elapsed());
        }
    }
    best
}

/// Runs `peer` once on `problem`, for tests and checks.
pub fn gradient_once<P: Problem>(peer: &Peer<P>, problem: &P) -> Result<Vec<f64>, Refusal> {
    (peer.prepare)(problem).map(|mut g| g(&problem.inputs()))
}

/// Largest difference relative to the largest entry.
pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    let scale = a.iter().chain(b).fold(0.0f64, |m, v| m.max(v.abs()));
    let apart = a.iter().zip(b).map(|(x, y)| (x - y).abs());
    // `f64::max` drops a NaN, which must not pass for agreement.
    let worst = apart.fold(0.0f64, |m, v| if v.is_nan() { f64::INFINITY } else { m.max(v) });
    if worst == 0.0 { 0.0 } else { worst / scale }
}

struct Weight {
    bytes_per_iteration: f64,
    first_ns: f64,
    gradient: Vec<f64>,
    /// On the smaller problem.
    reduced: bool,
}

struct Time {
    ns: f64,
    allocations: usize,
}

fn figures<P: Problem>(
    w: &Weight,
    t: Option<Time>,
    reference: Option<&[f64]>,
    smaller: Option<&P>,
) -> Figures {
    let t = t.expect("every weighed peer is timed");
    let mut note = String::new();
    if let (true, Some(p)) = (w.reduced, smaller) {
        note = format!("measured at {}", p.describe());
    } else if let Some(reference) = reference {
        let apart = distance(&w.gradient, reference);
        if apart > AGREEMENT {
            note = format!("GRADIENT DIFFERS by {apart:.1e}");
        }
    }
    let (bytes, first_ns) = (w.bytes_per_iteration, w.first_ns);
    Figures { ns: t.ns, first_ns, bytes, allocations: t.allocations, note }
}

fn weigh_within_cap<P: Problem>(peer: &Peer<P>, full: &P, smaller: Option<&P>) -> Result<Weight, Refusal> {
    if let Some(small) = smaller {
        let mut w = weigh(peer, small)?;
        if w.bytes_per_iteration * full.iterations() as f64 > MEMORY_CAP {
            w.reduced = true;
            return Ok(w);
        }
    }
    let mut w = weigh(peer, full)?;
    for _ in 1..FIRST_TRIES {
        w.first_ns = w.first_ns.min(weigh(peer, full)?.first_ns);
    }
    Ok(w)
}

fn weigh<P: Problem>(peer: &Peer<P>, problem: &P) -> Result<Weight, Refusal> {
    let x = problem.inputs();
    let per_iteration = 1.0 / problem.iterations() as f64;
    let in_fresh_thread = || {
        let before = heap::live();
        let start = Instant::now();
        let mut run = (peer.prepare)(problem)?;
        // What preparing needed for a moment (an optimiser's tables) is not the tape's.
        heap::reset_peak();
        let gradient = run(&x);
        let first_ns = start.elapsed().as_secs_f64() * 1e9 * per_iteration;
        let bytes = heap::peak().saturating_sub(before);
        Ok(Weight { bytes_per_iteration: bytes as f64 * per_iteration, first_ns, gradient, reduced: false })
    };
    thread::scope(|s| s.spawn(in_fresh_thread).join()).unwrap_or_else(|_| Err("panicked".to_owned()))
}

/// A peer ready to be timed.
struct Contestant<'a> {
    run: Gradient<'a>,
    x: Vec<f64>,
    iterations: usize,
    repeat: usize,
    allocations: usize,
    best: Duration,
}

impl Contestant<'_> {
    fn sample(&mut self) -> Duration {
        let start = Instant::now();
        for _ in 0..self.repeat {
            black_box((self.run)(black_box(&self.x)));
        }
        start.elapsed() / self.repeat as u32
    }

    /// Two warm-up calls: the first fills pools, the second tells the steady cost.
    fn warm_up(&mut self) {
        self.sample();
        let calls = heap::calls();
        let once = self.sample();
        self.allocations = heap::calls() - calls;
        self.repeat = repeats(once);
    }

    fn ns(&self) -> f64 {
        self.best.as_secs_f64() * 1e9 / self.iterations as f64
    }
}

fn repeats(once: Duration) -> usize {
    (SAMPLE.as_nanos() / once.as_nanos().max(1)).clamp(1, 100_000) as usize
}

fn time_all<P: Problem>(
    full: &P,
    smaller: Option<&P>,
    peers: &[Peer<P>],
    weights: &[Result<Weight, Refusal>],
    rounds: Option<usize>,
) -> (f64, Vec<Option<Time>>) {
    // Plain f64 is one contestant more; its "gradient" is empty (no allocation).
    let plain = Contestant {
        run: Box::new(|x| {
            black_box(evaluate::<P, f64>(full, x));
            Vec::new()
        }),
        x: full.inputs(),
        iterations: full.iterations(),
        repeat: 1,
        allocations: 0,
        best: Duration::MAX,
    };
    let mut contestants = vec![Some(plain)];
    contestants.extend(peers.iter().zip(weights).map(|(peer, weight)| {
        let reduced = weight.as_ref().ok()?.reduced;
        let problem = if reduced { smaller? } else { full };
        let run = (peer.prepare)(problem).ok()?;
        let (x, iterations) = (problem.inputs(), problem.iterations());
        Some(Contestant { run, x, iterations, repeat: 1, allocations: 0, best: Duration::MAX })
    }));

    contestants.iter_mut().flatten().for_each(Contestant::warm_up);
    let start = Instant::now();
    let enough = |done: usize| match rounds {
        Some(rounds) => done >= rounds,
        None => done >= MIN_ROUNDS && (start.elapsed() > TIMING || done >= MAX_ROUNDS),
    };
    for round in 0.. {
        if enough(round) {
            break;
        }
        for c in contestants.iter_mut().flatten() {
            c.best = c.best.min(c.sample());
        }
    }
    let mut times =
        contestants.iter().map(|c| c.as_ref().map(|c| Time { ns: c.ns(), allocations: c.allocations }));
    let plain_ns = times.next().flatten().expect("plain f64 always runs").ns;
    (plain_ns, times.collect())
}

/// A function of its own, so that plain f64 is compiled as a user's function is, not merged with the timing
/// loop.
#[inline(never)]
fn evaluate<P: Problem, T: Num>(p: &P, x: &[T]) -> T {
    p.eval(x)
}
