//! One program over many inputs, on one thread or many.
//!
//! Input: a program's code, a number of samples, and a closure that writes the inputs of one. Output: what
//! each run gives, in the order of the samples, or their sums.
//!
//! Invariants: an answer depends on its sample alone, and sums are added up in the order of samples that
//! `palinode_core::sums` defines (or exactly), so nothing depends on the number of threads. With
//! [`Limits::budget`] all runs that are under way together stay within it: threads share it in equal parts,
//! and what does not fit into a part runs by itself when the others are done. A thread writes its inputs over
//! those before.
//!
//! Known limits: what runs hand over is kept for all samples until the last is done, also for a sum, and is
//! not in the budget.

use core::sync::atomic::{AtomicUsize, Ordering};
use palinode_core::{Accumulator, Budget, Scalar};
use palinode_ir::interp::{Code, Datum, Limits, RunError, RunErrorKind, Stats, Tensor};

/// Runs `work` for samples `0..samples` on so many threads of rayon's current pool (one without the feature
/// `rayon`), each with a state of its own, and gives the answers in the order of samples.
pub fn spread<W, T: Send>(
    samples: usize,
    threads: usize,
    state: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, usize) -> T + Sync,
) -> Vec<T> {
    /// Samples that a thread takes at a time: they may differ in length, and there may be few.
    const BLOCK: usize = 8;
    let next = AtomicUsize::new(0);
    let some = |_: usize| -> Vec<(usize, Vec<T>)> {
        let (mut state, mut done) = (state(), Vec::new());
        loop {
            let from = next.fetch_add(BLOCK, Ordering::Relaxed);
            if from >= samples {
                return done;
            }
            let block = from..samples.min(from + BLOCK);
            done.push((from, block.map(|sample| work(&mut state, sample)).collect()));
        }
    };
    let mut blocks = on_threads(threads.clamp(1, samples.div_ceil(BLOCK).max(1)), &some);
    blocks.sort_unstable_by_key(|&(from, _)| from);
    blocks.into_iter().flat_map(|(_, answers)| answers).collect()
}

#[cfg(feature = "rayon")]
fn on_threads<T: Send>(threads: usize, some: &(impl Fn(usize) -> Vec<T> + Sync)) -> Vec<T> {
    use rayon::iter::{IntoParallelIterator, ParallelIterator};
    if threads == 1 { some(0) } else { (0..threads).into_par_iter().flat_map_iter(some).collect() }
}

#[cfg(not(feature = "rayon"))]
fn on_threads<T>(_: usize, some: &impl Fn(usize) -> Vec<T>) -> Vec<T> {
    some(0)
}

/// A program that is run for many samples.
///
/// ```
/// use palinode_core::Accumulator;
/// use palinode_ir::interp::{Code, Datum};
/// use palinode_ir::{FunctionBuilder, Type};
/// use palinode_time::ProgramBatch;
///
/// let mut b = FunctionBuilder::new("square");
/// let x = b.param("x", Type::REAL);
/// let square = b.mul(x, x);
/// let code = Code::new(&b.finish_program(&[square], &["y"]).unwrap());
///
/// let batch = ProgramBatch::new(&code);
/// let set = |sample: usize, inputs: &mut Vec<Datum<f64>>| {
///     inputs.clear();
///     inputs.push(Datum::real(sample as f64));
/// };
/// let squares = batch.run(4, set);
/// assert_eq!(squares[3].as_ref().unwrap()[0].as_real(), Some(9.0));
/// let sum = batch.sum(4, set, Accumulator::Exact).unwrap();
/// assert_eq!(sum[0].as_real(), Some(14.0));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ProgramBatch<'a> {
    code: &'a Code,
    limits: Limits,
    parallel: bool,
}

/// There is no sum over a batch.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SampleError {
    /// A run failed.
    #[error("sample {sample}: {error}")]
    Run {
        /// The first sample that failed.
        sample: usize,
        /// Why.
        error: RunError,
    },
    /// A result cannot be added to that of the first sample.
    #[error("sample {sample}: result {result} is no array of reals of one shape, so there is no sum")]
    NoSum {
        /// The first sample with such a result.
        sample: usize,
        /// The number of the result.
        result: usize,
    },
}

impl SampleError {
    /// The code of its page in the book.
    pub fn code(&self) -> &'static str {
        match self {
            SampleError::Run { error, .. } => error.code(),
            SampleError::NoSum { .. } => "PAL0252",
        }
    }
}

impl<'a> ProgramBatch<'a> {
    /// On this thread, with the limits that runs have by default.
    pub fn new(code: &'a Code) -> Self {
        ProgramBatch { code, limits: Limits::default(), parallel: false }
    }

    /// Limits of each run; the budget is that of all runs that are under way at once.
    pub fn limits(self, limits: Limits) -> Self {
        ProgramBatch { limits, ..self }
    }

    /// On the threads of rayon's current pool.
    #[cfg(feature = "rayon")]
    pub fn parallel(self) -> Self {
        ProgramBatch { parallel: true, ..self }
    }

    /// What the program gives for each sample, in their order. `set` writes the inputs of a sample, over
    /// those of another one.
    pub fn run(
        &self,
        samples: usize,
        set: impl Fn(usize, &mut Vec<Datum<f64>>) + Sync,
    ) -> Vec<Result<Vec<Datum<f64>>, RunError>> {
        self.run_with_stats(samples, set).into_iter().map(|ran| ran.map(|(outputs, _)| outputs)).collect()
    }

    /// The same, with what each run took.
    #[allow(clippy::type_complexity)] // what `Code::run_with_stats` gives, per sample
    pub fn run_with_stats(
        &self,
        samples: usize,
        set: impl Fn(usize, &mut Vec<Datum<f64>>) + Sync,
    ) -> Vec<Result<(Vec<Datum<f64>>, Stats), RunError>> {
        let one = |inputs: &mut Vec<Datum<f64>>, sample: usize, limits: &Limits| {
            set(sample, inputs);
            self.code.run_with_stats(inputs, limits)
        };
        let budget = self.limits.budget;
        if budget.is_unlimited() || !self.parallel {
            return spread(samples, self.threads(), Vec::new, |inputs, i| one(inputs, i, &self.limits));
        }
        // How many fit beside each other, the first one tells.
        let (mut inputs, mut answers) = (Vec::new(), Vec::new());
        answers.extend((samples > 0).then(|| one(&mut inputs, 0, &self.limits)));
        let of_one = answers.iter().flatten().map(|(_, stats)| stats.heap_bytes).max();
        let fitting = of_one.map_or(1, |bytes| budget.bytes() / bytes.max(1));
        let threads = self.threads().min(fitting).max(1);
        let share = Limits { budget: Budget::from(budget.bytes() / threads), ..self.limits };
        let rest =
            spread(samples.saturating_sub(1), threads, Vec::new, |inputs, i| one(inputs, i + 1, &share));
        answers.extend(rest);
        for (sample, answer) in answers.iter_mut().enumerate() {
            if matches!(answer, Err(RunError { kind: RunErrorKind::OverBudget { .. }, .. })) && threads > 1 {
                *answer = one(&mut inputs, sample, &self.limits);
            }
        }
        answers
    }

    fn threads(&self) -> usize {
        #[cfg(feature = "rayon")]
        if self.parallel {
            return rayon::current_num_threads();
        }
        1
    }

    /// The sums of what the program gives, number by number over samples.
    ///
    /// # Errors The first sample that fails, or whose results cannot be added to those of the first one: no
    /// reals, or of another shape.
    pub fn sum(
        &self,
        samples: usize,
        set: impl Fn(usize, &mut Vec<Datum<f64>>) + Sync,
        how: Accumulator,
    ) -> Result<Vec<Datum<f64>>, SampleError> {
        let mut all = Vec::with_capacity(samples);
        for (sample, answer) in self.run(samples, set).into_iter().enumerate() {
            let outputs = answer.map_err(|error| SampleError::Run { sample, error })?;
            let fits = |(result, output): (usize, &Datum<f64>)| {
                let first: &Vec<Datum<f64>> = all.first().unwrap_or(&outputs);
                output.ty().is_real() && output.shape() == first[result].shape()
            };
            if let Some(result) = outputs.iter().enumerate().position(|one| !fits(one)) {
                return Err(SampleError::NoSum { sample, result });
            }
            all.push(outputs);
        }
        Ok(sums(&all, how))
    }
}

/// Sums over samples, number by number, of results that are reals and of one shape.
fn sums(all: &[Vec<Datum<f64>>], how: Accumulator) -> Vec<Datum<f64>> {
    let numbers = |datum: &Datum<f64>| match datum {
        Datum::Real(tensor) => tensor.clone(),
        Datum::Int(_) | Datum::Bool(_) => unreachable!("only reals are added"),
    };
    let number = |sample: usize, result: usize, at: usize| match &all[sample][result] {
        Datum::Real(tensor) => tensor.data[at],
        Datum::Int(_) | Datum::Bool(_) => unreachable!("only reals are added"),
    };
    let sum = |(result, one): (usize, &Datum<f64>)| {
        let Tensor { shape, mut data } = numbers(one);
        for (at, sum) in data.iter_mut().enumerate() {
            *sum = f64::sum_with_over(all.len(), how, |sample| number(sample, result, at));
        }
        Datum::Real(Tensor { shape, data })
    };
    all.first().map_or(Vec::new(), |first| first.iter().enumerate().map(sum).collect())
}
