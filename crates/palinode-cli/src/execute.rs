//! Running a program and measuring it: steps, time, and peaks of memory.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use palinode_ir::Program;
use palinode_ir::interp::{Chosen, Code, Datum, Engine, Limits, RunError, RunErrorKind};
use palinode_native::{When, automatic, by_rustc, machine_code};

use crate::args::{EngineArgs, EngineWord, ModelArgs, SumArgs};
use crate::reserve::MEMORY;

/// A run that came to its end.
pub(crate) struct Ran {
    pub(crate) outputs: Vec<Datum<f64>>,
    pub(crate) cost: Cost,
}

/// What it took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) steps: u64,
    pub(crate) seconds: f64,
    /// The most heap bytes at once, beyond what was there before.
    pub(crate) peak: usize,
    /// The most bytes of arrays at once.
    pub(crate) arrays: usize,
    /// What the heap held before: the model, its data, the program and its plan.
    pub(crate) held: usize,
    /// The most bytes that count against a budget: arrays and all else that a run takes.
    pub(crate) charged: usize,
    /// Who ran it, and how long it took to compile it.
    pub(crate) by: Chosen,
}

impl Cost {
    /// One after the other.
    pub(crate) fn then(self, next: Cost) -> Cost {
        Cost {
            steps: self.steps + next.steps,
            seconds: self.seconds + next.seconds,
            peak: self.peak.max(next.peak),
            arrays: self.arrays.max(next.arrays),
            held: self.held.max(next.held),
            charged: self.charged.max(next.charged),
            by: match (self.by, next.by) {
                (Chosen::Machine { seconds, .. }, Chosen::Machine { name, seconds: more, bytes, grows }) => {
                    Chosen::Machine { name, seconds: seconds + more, bytes, grows }
                }
                (_, last) => last,
            },
        }
    }
}

/// When to give up, as the command line says. The steps are those of the model itself: derivative code is run
/// when the model has come to its end, and ends as well.
pub(crate) fn limits(args: &ModelArgs) -> Limits {
    Limits { steps: args.max_rounds, trap_nonfinite: !args.given.allow_nonfinite, ..Limits::default() }
}

/// Who runs programs.
pub(crate) fn engine(args: &EngineArgs) -> Engine {
    match args.engine {
        EngineWord::Auto => automatic(),
        EngineWord::Interpret => Engine::INTERPRETER,
        EngineWord::Jit => machine_code(When::Possible),
        EngineWord::Rustc => by_rustc(),
    }
}

/// The same, and how to add up.
pub(crate) fn limits_and_sums(model: &ModelArgs, sums: &SumArgs) -> Limits {
    Limits { accumulator: sums.accumulate, ..limits(model) }
}

/// What a program gives, infinities or not: for the shapes of it.
pub(crate) fn shapes(program: &Program, inputs: &[Datum<f64>]) -> Result<Vec<Datum<f64>>, RunError> {
    Code::new(program).run(inputs, &Limits { trap_nonfinite: false, ..Limits::default() })
}

/// Runs it. A search for a fixed point or a root may leave a domain and come back: only what comes out must
/// be finite then.
pub(crate) fn run(code: &Code, inputs: &[Datum<f64>], limits: &Limits) -> Result<Ran, RunError> {
    match run_once(code, inputs, limits) {
        Err(error) if matches!(error.kind, RunErrorKind::NonFinite { .. }) && code.searches() => {
            let ran = run_once(code, inputs, &Limits { trap_nonfinite: false, ..*limits })?;
            let finite = ran.outputs.iter().filter_map(Datum::as_vector).flatten().all(|x| x.is_finite());
            if finite { Ok(ran) } else { Err(error) }
        }
        done => done,
    }
}

fn run_once(code: &Code, inputs: &[Datum<f64>], limits: &Limits) -> Result<Ran, RunError> {
    let by = between_runs(|| code.prepare(inputs, limits));
    highest_of_runs();
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let started = Instant::now();
    let (outputs, stats) = code.run_with_stats(inputs, limits)?;
    let seconds = started.elapsed().as_secs_f64();
    let peak = MEMORY.peak_usage().saturating_sub(before);
    let (arrays, charged) = (stats.peak_bytes, stats.heap_bytes);
    let by = match by {
        Chosen::Machine { name, .. } if !stats.by_machine => {
            Chosen::InterpreterBecause(format!("{name} met something that only it judges"))
        }
        by => by,
    };
    let cost = Cost { steps: stats.steps, seconds, peak, arrays, held: before, charged, by };
    Ok(Ran { outputs, cost })
}

/// The most heap bytes while something was made between runs.
static MOST_MADE: AtomicUsize = AtomicUsize::new(0);

/// Makes a program between runs. What that takes is no part of a run: it is [`held`] beside the budget.
pub(crate) fn between_runs<T>(make: impl FnOnce() -> T) -> T {
    highest_of_runs();
    MEMORY.reset_peak_usage();
    let made = make();
    MOST_MADE.fetch_max(MEMORY.peak_usage(), Ordering::Relaxed);
    made
}

/// What the heap held beside a budget: before the run, or while a program was made between runs.
pub(crate) fn held(cost: &Cost) -> usize {
    cost.held.max(MOST_MADE.load(Ordering::Relaxed))
}

/// The most heap bytes of the process at once since the first run began; 0 before.
pub(crate) fn highest_of_runs() -> usize {
    static HIGHEST: AtomicUsize = AtomicUsize::new(0);
    static HAS_RUN: AtomicBool = AtomicBool::new(false);
    if HAS_RUN.swap(true, Ordering::Relaxed) {
        HIGHEST.fetch_max(MEMORY.peak_usage(), Ordering::Relaxed);
    }
    HIGHEST.load(Ordering::Relaxed)
}

/// Runs derivative code of a program that itself runs without a stop; its first `values` results are no
/// derivatives. Infinities on ways that do not matter in the end are no reason to stop: only if they reach a
/// derivative, the place where they arose is the error. Those that arise nowhere, because the model contains
/// them, have no place.
pub(crate) fn run_derivative(
    code: &Code,
    inputs: &[Datum<f64>],
    limits: &Limits,
    values: usize,
) -> Result<Ran, Unfit> {
    let limits = &Limits { steps: u64::MAX, ..*limits };
    let (ran, stopped) = match run(code, inputs, limits) {
        Err(error) if matches!(error.kind, RunErrorKind::NonFinite { .. }) => {
            (run(code, inputs, &Limits { trap_nonfinite: false, ..*limits })?, Some(error))
        }
        done => (done?, None),
    };
    let derivatives = ran.outputs.iter().skip(values).filter_map(Datum::as_vector).flatten();
    let Some(&bad) = derivatives.into_iter().find(|x| !x.is_finite()) else { return Ok(ran) };
    match stopped {
        Some(error) => Err(Unfit::Run(error)),
        None if limits.trap_nonfinite => Err(Unfit::Result(bad)),
        None => Ok(ran),
    }
}

/// Why derivative code gives no result.
pub(crate) enum Unfit {
    /// It stopped there.
    Run(RunError),
    /// A derivative is this.
    Result(f64),
}

impl From<RunError> for Unfit {
    fn from(error: RunError) -> Unfit {
        Unfit::Run(error)
    }
}
