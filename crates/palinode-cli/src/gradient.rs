//! A gradient by either mode, in SI.

use palinode_ir::interp::{Code, Datum, Limits, RunError, RunErrorKind, Tensor};
use palinode_ir::plan::{self, Asked, Forward, Kept, Target, Way, Ways, Within};
use palinode_ir::transform::{Storage, TransformError};

use crate::args::Mode;
use crate::execute::{Cost, Unfit, between_runs, run_derivative};
use crate::progress::Progress;

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

/// Why there is none.
pub(crate) enum NoGradient {
    Transform(TransformError),
    Run(RunError),
    /// A derivative is this.
    NotFinite(f64),
    /// There is not enough memory to see whether it goes along a way that the model takes only here.
    TooSmallForSides,
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

/// A gradient.
pub(crate) fn gradient(
    of: Target<'_>,
    limits: &Limits,
    mode: Mode,
    (asked, within): (&Asked, &Within),
) -> Result<Gradient, NoGradient> {
    if !is_reverse(of, mode) {
        return forwards(&Forward::new(of, &asked.engine)?, of, limits);
    }
    match within {
        Within::AnyMemory => {
            let storage = asked.storage.clone();
            let code = Code::on(&asked.engine, &plan::derived(of.program, of.wrt, &storage)?);
            shown_back(&code, of, limits, storage)
        }
        Within::Planned { budget, fitted, code } => {
            let limits = Limits { budget: *budget, ..*limits };
            shown_back(code, of, &limits, asked.storage(fitted.recompute))
        }
        Within::Forwards { budget, forward, .. } => forwards(forward, of, &forward.within(*budget, limits)),
        Within::Stopping { budget, .. } => stopping(asked, of, &Limits { budget: *budget, ..*limits }),
    }
}

/// One way after the other, until one ends before it is stopped.
fn stopping(asked: &Asked, of: Target<'_>, limits: &Limits) -> Result<Gradient, NoGradient> {
    let mut ways = Ways::new(asked, of, limits.budget);
    let mut refused = None;
    while let Some(mut way) = between_runs(|| ways.try_next())? {
        if let Way::Count(code) = way {
            let counted = code.count_rounds(of.inputs, &plan::to_count(limits));
            drop(code);
            let planned = |(rounds, _)| between_runs(|| ways.counted(rounds));
            let Some(planned) = counted.ok().and_then(planned) else { continue };
            way = planned;
        }
        match way {
            Way::Back { code, storage, kept } => match shown_back(&code, of, limits, storage) {
                Err(NoGradient::Run(error)) if ways.goes_on(&kept, &error) => {
                    if matches!(kept, Kept::Planned) {
                        refused = Some(error);
                    }
                }
                done => return Ok(Gradient { kept, ..done? }),
            },
            Way::Forwards(forward) => match forwards(&forward, of, &forward.within(limits.budget, limits)) {
                Err(error) if error.is_over_budget() => {}
                done => return done,
            },
            Way::Count(_) => unreachable!("it was counted"),
        }
    }
    Err(NoGradient::Run(refused.expect("a log is tried first")))
}

/// Derivative code for many inputs of one kind, which may be run on several threads.
pub(crate) enum Prepared {
    Back(Code),
    Forwards(Forward),
}

impl Prepared {
    /// Makes it for inputs like these, in the mode in which [`gradient`] would do it without a budget.
    pub(crate) fn new(of: Target<'_>, mode: Mode, asked: &Asked) -> Result<Prepared, TransformError> {
        if is_reverse(of, mode) {
            let derived = plan::derived(of.program, of.wrt, &asked.storage)?;
            Ok(Prepared::Back(Code::on(&asked.engine, &derived)))
        } else {
            Ok(Prepared::Forwards(Forward::new(of, &asked.engine)?))
        }
    }

    /// The gradient at these inputs, without a word.
    pub(crate) fn run(&self, of: Target<'_>, limits: &Limits) -> Result<Vec<Tensor<f64>>, NoGradient> {
        let found = match self {
            Prepared::Back(code) => back(code, of, limits, Storage::default()),
            Prepared::Forwards(forward) => forwards_with(forward, of, limits, &|| ()),
        };
        found.map(|gradient| gradient.parts)
    }
}

fn is_reverse(of: Target<'_>, mode: Mode) -> bool {
    match mode {
        Mode::Auto => of.numbers() > 1,
        Mode::Forward => false,
        Mode::Reverse => true,
    }
}

fn back(code: &Code, of: Target<'_>, limits: &Limits, storage: Storage) -> Result<Gradient, NoGradient> {
    let ran = run_derivative(code, of.inputs, limits, 1)?;
    let parts = ran.outputs.into_iter().skip(1).map(tensor).collect();
    Ok(Gradient { parts, cost: ran.cost, mode: Mode::Reverse, storage, kept: Kept::Planned })
}

fn shown_back(
    code: &Code,
    of: Target<'_>,
    limits: &Limits,
    storage: Storage,
) -> Result<Gradient, NoGradient> {
    let _progress = Progress::start("running forwards and backwards", 1);
    back(code, of, limits, storage)
}

/// The gradient in forward mode, number by number.
fn forwards(forward: &Forward, of: Target<'_>, limits: &Limits) -> Result<Gradient, NoGradient> {
    let progress = Progress::start("running forwards", of.numbers() as u64);
    forwards_with(forward, of, limits, &|| progress.advance())
}

/// The same; each number is announced.
fn forwards_with(
    forward: &Forward,
    of: Target<'_>,
    limits: &Limits,
    advance: &dyn Fn(),
) -> Result<Gradient, NoGradient> {
    let mut all = Forward::with_tangents(of);
    let mut parts: Vec<Tensor<f64>> = of.wrt.iter().map(|&at| tensor(of.inputs[at].map(|_| 0.0))).collect();
    let mut cost = Cost::default();
    for (at, part) in parts.iter_mut().enumerate() {
        for element in 0..part.data.len() {
            *entry(&mut all[of.inputs.len() + at], element) = 1.0;
            let ran = run_derivative(&forward.code, &all, limits, 1)?;
            *entry(&mut all[of.inputs.len() + at], element) = 0.0;
            part.data[element] = ran.outputs[1].as_real().expect("the tangent of a number is a number");
            cost = cost.then(ran.cost);
            advance();
        }
    }
    cost.charged = cost.charged.saturating_add(usize::try_from(forward.held).unwrap_or(usize::MAX));
    Ok(Gradient { parts, cost, mode: Mode::Forward, storage: Storage::default(), kept: Kept::Planned })
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
