//! A gradient by either mode, in SI.

use palinode_ir::interp::{Code, Datum, Limits, RunError, RunErrorKind, Tensor};
use palinode_ir::transform::{self, Storage, TransformError};
use palinode_ir::{Program, Room, Span, passes, plan};

use crate::ahead::Within;
use crate::args::Mode;
use crate::execute::{Cost, Unfit, between_runs, run_derivative};
use crate::progress::Progress;
use crate::storage::Asked;

/// A gradient.
pub(crate) struct Gradient {
    /// For each argument, in the order of `wrt`.
    pub(crate) parts: Vec<Tensor<f64>>,
    pub(crate) cost: Cost,
    /// Forward or reverse.
    pub(crate) mode: Mode,
    /// What loops computed again.
    pub(crate) storage: Storage,
    /// If loops kept states instead: how many bytes of them.
    pub(crate) states: Option<usize>,
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
        return by_forward(program, wrt, inputs, limits, numbers);
    }
    let storage = |recompute| Storage { recompute, ..asked.storage.clone() };
    let derived_from = |program: &Program, storage: &Storage| -> Result<Program, NoGradient> {
        let derived = passes::simplify(&transform::value_and_grad_stored(program, wrt, storage)?);
        Ok(plan::narrow_kept(&derived, storage))
    };
    let derived = |storage: &Storage| derived_from(program, storage);
    match within {
        Within::AnyMemory => {
            let storage = asked.storage.clone();
            by_reverse(&Code::new(&derived(&storage)?), inputs, limits, storage)
        }
        Within::Planned { budget, fitted, code } => {
            let limits = Limits { budget: *budget, ..*limits };
            by_reverse(code, inputs, &limits, storage(fitted.recompute))
        }
        // Nobody knows beforehand what fits: with least work first.
        Within::Stopping { budget, .. } => {
            let limits = Limits { budget: *budget, ..*limits };
            let levels = asked.levels().iter().map(|&level| (level, None));
            let least = *asked.levels().last().expect("there is a level");
            // Then loops keep states in a part of the budget: what else there is takes the rest.
            let parts = [2, 4, 16, 64].map(|part| (least, Some(budget.bytes() / part)));
            let mut refused = None;
            for (level, states) in levels.chain(parts) {
                let storage = storage(level);
                let code = between_runs(|| {
                    let made = match states {
                        None => derived(&storage),
                        Some(bytes) => derived_from(&limited(program, bytes), &storage),
                    };
                    made.map(|made| Code::new(&made))
                })?;
                match by_reverse(&code, inputs, &limits, storage) {
                    Err(NoGradient::Run(error)) if matches!(error.kind, RunErrorKind::OverBudget { .. }) => {
                        refused = Some(error);
                    }
                    // A part of the budget, not the budget itself, was too small for a state.
                    Err(NoGradient::Run(error))
                        if states.is_some()
                            && matches!(error.kind, RunErrorKind::SnapshotOverBudget { .. })
                            && !has_own_budget(program, error.span) => {}
                    done => return done.map(|gradient| Gradient { states, ..gradient }),
                }
            }
            Err(NoGradient::Run(refused.expect("what keeps everything did not fit")))
        }
    }
}

/// Whether the source says what a loop may keep.
fn has_own_budget(program: &Program, of: Span) -> bool {
    let mut found = false;
    for function in &program.functions {
        function.body.for_each_inst(&mut |inst| found |= inst.span == of && inst.op.room().is_some());
    }
    found
}

/// The same program, whose loops keep states in so many bytes unless the source says otherwise.
fn limited(program: &Program, bytes: usize) -> Program {
    transform::with_room(program, &|inst| inst.op.room().or(Some(Room::Bytes(bytes as u64))))
}

fn by_reverse(
    code: &Code,
    inputs: &[Datum<f64>],
    limits: &Limits,
    storage: Storage,
) -> Result<Gradient, NoGradient> {
    let _progress = Progress::start("running forwards and backwards", 1);
    let ran = run_derivative(code, inputs, limits, 1)?;
    let parts = ran.outputs.into_iter().skip(1).map(tensor).collect();
    Ok(Gradient { parts, cost: ran.cost, mode: Mode::Reverse, storage, states: None })
}

fn by_forward(
    program: &Program,
    wrt: &[usize],
    inputs: &[Datum<f64>],
    limits: &Limits,
    numbers: usize,
) -> Result<Gradient, NoGradient> {
    let derived = passes::simplify(&transform::jvp(program, wrt)?);
    let code = Code::new(&derived);
    let mut all: Vec<Datum<f64>> = inputs.to_vec();
    all.extend(wrt.iter().map(|&at| inputs[at].map(|_| 0.0)));
    let mut parts: Vec<Tensor<f64>> = wrt.iter().map(|&at| tensor(inputs[at].map(|_| 0.0))).collect();
    let mut cost = Cost::default();
    let progress = Progress::start("running forwards", numbers as u64);
    for (at, part) in parts.iter_mut().enumerate() {
        for element in 0..part.data.len() {
            *entry(&mut all[inputs.len() + at], element) = 1.0;
            let ran = run_derivative(&code, &all, limits, 1)?;
            *entry(&mut all[inputs.len() + at], element) = 0.0;
            part.data[element] = ran.outputs[1].as_real().expect("the tangent of a number is a number");
            cost = cost.then(ran.cost);
            progress.advance();
        }
    }
    Ok(Gradient { parts, cost, mode: Mode::Forward, storage: Storage::default(), states: None })
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
