//! A gradient by either mode, in SI.

use std::rc::Rc;

use palinode_core::Budget;
use palinode_ir::interp::{Code, Datum, Limits, RunError, RunErrorKind, Tensor};
use palinode_ir::plan::FittedGradient;
use palinode_ir::transform::{self, Storage, TransformError};
use palinode_ir::{Program, passes, plan};

use crate::ahead::Within;
use crate::args::Mode;
use crate::execute::{Cost, Unfit, run_derivative};
use crate::progress::Progress;
use crate::stopping::Stopping;
use crate::storage::{Asked, REAL};

/// A gradient.
pub(crate) struct Gradient {
    /// For each argument, in the order of `wrt`.
    pub(crate) parts: Vec<Tensor<f64>>,
    pub(crate) cost: Cost,
    /// Forward or reverse.
    pub(crate) mode: Mode,
    /// What loops computed again.
    pub(crate) storage: Storage,
    pub(crate) kept: Kept,
}

/// What loops kept.
pub(crate) enum Kept {
    /// What was planned, or what `storage` says.
    Planned,
    /// States, in so many bytes.
    States(usize),
    /// As planned when a run of the values had counted their rounds.
    Counted(Rc<FittedGradient>),
}

/// Why there is none.
pub(crate) enum NoGradient {
    Transform(TransformError),
    Run(RunError),
    /// A derivative is this.
    NotFinite(f64),
    /// There is not enough memory to see whether it goes along a way that the model takes only here.
    NoRoomForSides,
    /// It goes along a way that the model takes only here.
    OfPoint(palinode_core::Error),
}

impl NoGradient {
    /// Whether a run was stopped because of its budget.
    pub(crate) fn is_over_budget(&self) -> bool {
        matches!(self, NoGradient::Run(error) if matches!(error.kind, RunErrorKind::OverBudget { .. }))
    }
}

impl From<palinode_core::Error> for NoGradient {
    fn from(error: palinode_core::Error) -> NoGradient {
        NoGradient::OfPoint(error)
    }
}

impl From<TransformError> for NoGradient {
    fn from(error: TransformError) -> NoGradient {
        NoGradient::Transform(error)
    }
}

impl From<Unfit> for NoGradient {
    fn from(error: Unfit) -> NoGradient {
        match error {
            Unfit::Run(error) => NoGradient::Run(error),
            Unfit::Result(x) => NoGradient::NotFinite(x),
        }
    }
}

/// The gradient of the only result of `program` by the arguments at `wrt`.
pub(crate) fn gradient(
    program: &Program,
    wrt: &[usize],
    inputs: &[Datum<f64>],
    limits: &Limits,
    mode: Mode,
    (asked, within): (&Asked, &Within),
) -> Result<Gradient, NoGradient> {
    let numbers: usize = wrt.iter().map(|&at| inputs[at].elements()).sum();
    let reverse = match mode {
        Mode::Auto => numbers > 1,
        Mode::Forward => false,
        Mode::Reverse => true,
    };
    if !reverse {
        return Forward::new(program, wrt, inputs)?.run(inputs, wrt, limits);
    }
    match within {
        Within::AnyMemory => {
            let storage = asked.storage.clone();
            by_reverse(&derived(program, wrt, &storage)?, inputs, limits, storage)
        }
        Within::Planned { budget, fitted, code } => {
            let limits = Limits { budget: *budget, ..*limits };
            by_reverse(code, inputs, &limits, asked.storage(fitted.recompute))
        }
        Within::Forwards { budget, forward, .. } => {
            forward.run(inputs, wrt, &forward.within(*budget, limits))
        }
        Within::Stopping { budget, .. } => {
            let limits = Limits { budget: *budget, ..*limits };
            Stopping { asked, program, wrt, inputs, limits: &limits }.run()
        }
    }
}

/// Value and gradient in reverse mode, made ready.
pub(crate) fn derived(program: &Program, wrt: &[usize], storage: &Storage) -> Result<Code, TransformError> {
    let derived = passes::simplify(&transform::value_and_grad_stored(program, wrt, storage)?);
    Ok(Code::new(&plan::narrow_kept(&derived, storage)))
}

pub(crate) fn by_reverse(
    code: &Code,
    inputs: &[Datum<f64>],
    limits: &Limits,
    storage: Storage,
) -> Result<Gradient, NoGradient> {
    let _progress = Progress::start("running forwards and backwards", 1);
    let ran = run_derivative(code, inputs, limits, 1)?;
    let parts = ran.outputs.into_iter().skip(1).map(tensor).collect();
    Ok(Gradient { parts, cost: ran.cost, mode: Mode::Reverse, storage, kept: Kept::Planned })
}

/// The gradient in forward mode, number by number.
pub(crate) struct Forward {
    code: Code,
    /// What is there beside each run: the inputs again, with tangents, and the gradient.
    held: u64,
}

impl Forward {
    /// The bytes of what describes an array of data: its place in a list, its lengths, and what the allocator rounds up.
    const DESCRIBED: usize = 128;

    pub(crate) fn new(
        program: &Program,
        wrt: &[usize],
        inputs: &[Datum<f64>],
    ) -> Result<Forward, TransformError> {
        Ok(Forward::of(&Self::derived(program, wrt)?, wrt, inputs))
    }

    /// The same, and the bytes for all of it, if that is known beforehand.
    pub(crate) fn planned(program: &Program, wrt: &[usize], inputs: &[Datum<f64>]) -> Option<(Forward, u64)> {
        let derived = Self::derived(program, wrt).ok()?;
        let forward = Forward::of(&derived, wrt, inputs);
        let found = plan::predict(&derived, &Self::with_tangents(inputs, wrt), REAL).ok()?;
        let bytes = found.heap.saturating_add(forward.held);
        Some((forward, bytes))
    }

    fn derived(program: &Program, wrt: &[usize]) -> Result<Program, TransformError> {
        Ok(passes::simplify(&transform::jvp(program, wrt)?))
    }

    fn of(derived: &Program, wrt: &[usize], inputs: &[Datum<f64>]) -> Forward {
        let twice = wrt.iter().chain(wrt).map(|&at| &inputs[at]);
        let bytes = |datum: &Datum<f64>| Self::DESCRIBED + datum.elements() * REAL;
        let held = inputs.iter().chain(twice).map(bytes).sum::<usize>() as u64;
        Forward { code: Code::new(derived), held }
    }

    /// Limits of each run within a budget for all of it.
    pub(crate) fn within(&self, budget: Budget, limits: &Limits) -> Limits {
        let held = usize::try_from(self.held).unwrap_or(usize::MAX);
        Limits { budget: budget.checked_sub(held).unwrap_or(Budget::from(0)), ..*limits }
    }

    /// The inputs, then tangents of those at `wrt`, which are zero.
    fn with_tangents(inputs: &[Datum<f64>], wrt: &[usize]) -> Vec<Datum<f64>> {
        let mut all = Vec::with_capacity(inputs.len() + wrt.len());
        all.extend_from_slice(inputs);
        all.extend(wrt.iter().map(|&at| inputs[at].map(|_| 0.0)));
        all
    }

    pub(crate) fn run(
        &self,
        inputs: &[Datum<f64>],
        wrt: &[usize],
        limits: &Limits,
    ) -> Result<Gradient, NoGradient> {
        let mut all = Self::with_tangents(inputs, wrt);
        let mut parts: Vec<Tensor<f64>> = wrt.iter().map(|&at| tensor(inputs[at].map(|_| 0.0))).collect();
        let mut cost = Cost::default();
        let numbers: usize = parts.iter().map(|part| part.data.len()).sum();
        let progress = Progress::start("running forwards", numbers as u64);
        for (at, part) in parts.iter_mut().enumerate() {
            for element in 0..part.data.len() {
                *entry(&mut all[inputs.len() + at], element) = 1.0;
                let ran = run_derivative(&self.code, &all, limits, 1)?;
                *entry(&mut all[inputs.len() + at], element) = 0.0;
                part.data[element] = ran.outputs[1].as_real().expect("the tangent of a number is a number");
                cost = cost.then(ran.cost);
                progress.advance();
            }
        }
        cost.charged = cost.charged.saturating_add(usize::try_from(self.held).unwrap_or(usize::MAX));
        Ok(Gradient { parts, cost, mode: Mode::Forward, storage: Storage::default(), kept: Kept::Planned })
    }
}

/// The numbers of a derivative.
pub(crate) fn tensor(datum: Datum<f64>) -> Tensor<f64> {
    match datum {
        Datum::Real(tensor) => tensor,
        Datum::Int(_) | Datum::Bool(_) => unreachable!("a derivative is real"),
    }
}

/// An element of real data.
pub(crate) fn entry(datum: &mut Datum<f64>, element: usize) -> &mut f64 {
    match datum {
        Datum::Real(tensor) => &mut tensor.data[element],
        Datum::Int(_) | Datum::Bool(_) => unreachable!("only reals are moved"),
    }
}
