//! Derivatives along a way that a model takes only at these inputs.
//!
//! Input: whether a comparison of the model was suspicious (an exact tie, or a zero beside a tiny threshold) when it ran, and how to get its derivative. Output:
//! nothing, or why that derivative is not the model's.
//!
//! The comparisons are those of the model itself: a derivative has others, such as the conventions at kinks, which are no decisions. What is differentiated by is moved, in
//! place, data are not.
//!
//! Within a budget, what such a look keeps ([`points::kept_bytes`]) is taken off it for the runs to the sides. It is planned before the first run, when nobody knows yet
//! whether there will be a tie.

use std::rc::Rc;

use palinode_core::Budget;
use palinode_core::points::{self, Account, Parts};
use palinode_ir::interp::{Code, Datum, Limits};
use palinode_ir::{Elem, Linalg, Op, Program};

use crate::ahead::Within;
use crate::args::Mode;
use crate::gradient::{NoGradient, entry, gradient};
use crate::storage::Asked;
use crate::{MEMORY, execute};

/// What the runs to the sides may take.
pub(crate) enum Room {
    /// A gradient beside what is kept, and bytes that are left over.
    Within { gradient: Within, left: usize },
    /// Too little.
    TooSmall,
}

impl Room {
    /// Plans the gradients to the sides, beside what is kept; `values` is what the values take.
    pub(crate) fn plan(
        asked: &Asked,
        here: &Within,
        values: Option<u64>,
        (program, wrt, inputs): (&Program, &[usize], &[Datum<f64>]),
    ) -> Room {
        let sides = asked.beside.sides;
        let kept = usize::try_from(sides).unwrap_or(usize::MAX);
        let rest = |budget: Budget| budget.checked_sub(kept).unwrap_or(Budget::from(0));
        let (gradient, left) = match here {
            Within::AnyMemory => return Room::Within { gradient: Within::AnyMemory, left: usize::MAX },
            Within::Stopping { budget, why } => {
                // Nobody knows what the gradient takes: a part of the budget is for logs.
                let rest = rest(*budget);
                let left = rest.bytes() / 16;
                let budget = rest.checked_sub(left).unwrap_or(Budget::from(0));
                let gradient = Within::Stopping { budget, why: why.clone() };
                return Room::Within { gradient, left };
            }
            Within::Forwards { budget, forward, bytes } => {
                let budget = rest(*budget);
                let most = (*bytes).max(values.unwrap_or(0));
                if most > budget.bytes() as u64 {
                    return Room::TooSmall;
                }
                let gradient = Within::Forwards { budget, forward: Rc::clone(forward), bytes: *bytes };
                (gradient, budget.bytes() - most as usize)
            }
            Within::Planned { budget, fitted, code } => {
                let budget = rest(*budget);
                let gradient = if fitted.prediction.heap <= budget.bytes() as u64 {
                    Within::Planned { budget, fitted: Rc::clone(fitted), code: Rc::clone(code) }
                } else {
                    match asked.fit(program, wrt, inputs, budget) {
                        Ok(fitted) => Within::planned(budget, fitted),
                        Err(_) => return Room::TooSmall,
                    }
                };
                let Within::Planned { fitted, .. } = &gradient else { unreachable!("it was just planned") };
                let most = fitted.prediction.heap.max(values.unwrap_or(0));
                if most > budget.bytes() as u64 {
                    return Room::TooSmall;
                }
                (gradient, budget.bytes() - most as usize)
            }
        };
        Room::Within { gradient, left }
    }
}

/// Whether a comparison of the model can be a tie that is looked at from the sides.
fn may_be_needed(program: &Program) -> bool {
    let mut found = false;
    for function in &program.functions {
        function.body.for_each_inst(&mut |inst| {
            let compares = matches!(inst.op, Op::Compare(_))
                && inst.args.iter().any(|&arg| matches!(function.ty(arg).elem, Elem::F64 | Elem::F32));
            found |= compares || matches!(inst.op, Op::Linalg(Linalg::SymmetricEigen | Linalg::Svd));
        });
    }
    found
}

/// What a look to the sides keeps, should a comparison be a tie; nothing if none is looked at.
pub(crate) fn kept(program: &Program, inputs: &[Datum<f64>], wrt: &[usize], accept_points: bool) -> u64 {
    if accept_points || !may_be_needed(program) {
        return 0;
    }
    let point: Vec<f64> = point(inputs, wrt).collect();
    points::kept_bytes(&point, 1) as u64
}

/// The numbers that is differentiated by.
pub(crate) fn point(inputs: &[Datum<f64>], wrt: &[usize]) -> impl Iterator<Item = f64> {
    wrt.iter().filter_map(|&at| inputs[at].as_vector()).flatten().copied()
}

/// What a look to the sides may take.
pub(crate) struct Allowed<'a> {
    /// Limits of each run.
    pub(crate) limits: &'a Limits,
    /// What may be kept beside it.
    pub(crate) kept: usize,
    /// How much more there is for logs of comparisons.
    pub(crate) left: usize,
}

impl Allowed<'_> {
    /// Without a budget.
    pub(crate) fn freely(limits: &Limits) -> Allowed<'_> {
        Allowed { limits, kept: usize::MAX, left: usize::MAX }
    }
}

/// Looks to the sides for a gradient, as it is planned there, with so many bytes left over.
pub(crate) fn check_gradient(
    values: &Code,
    (program, inputs, wrt): (&Program, &mut [Datum<f64>], &[usize]),
    limits: &Limits,
    mode: Mode,
    (asked, within, left): (&Asked, Within, usize),
) -> Result<(), NoGradient> {
    let numbers: usize = wrt.iter().map(|&at| inputs[at].elements()).sum();
    let kept = usize::try_from(asked.beside.sides).unwrap_or(usize::MAX);
    let budget = match asked.budget {
        Some(budget) => budget.checked_sub(kept.saturating_add(left)).unwrap_or(Budget::from(0)),
        None => limits.budget,
    };
    let beside = Limits { budget, ..*limits };
    let look = match asked.budget {
        Some(_) => Allowed { limits: &beside, kept, left },
        None => Allowed::freely(&beside),
    };
    check(values, (inputs, wrt), look, (Parts::ByInput, 1), |inputs, parts| {
        let found = gradient(program, wrt, inputs, &beside, mode, (asked, &within))?;
        parts.reserve_exact(numbers);
        found.parts.iter().for_each(|part| parts.extend(&part.data));
        Ok(())
    })
}

/// Looks to the sides of the inputs at `wrt`. `values` runs the model, `derivative` adds all numbers of the derivative at some inputs to a list, `of` says what these numbers are, and the highest order.
pub(crate) fn check(
    values: &Code,
    (inputs, wrt): (&mut [Datum<f64>], &[usize]),
    look: Allowed<'_>,
    of: (Parts, usize),
    mut derivative: impl FnMut(&[Datum<f64>], &mut Vec<f64>) -> Result<(), NoGradient>,
) -> Result<(), NoGradient> {
    let before = MEMORY.current_usage();
    let mut point: Vec<f64> = Vec::with_capacity(wrt.iter().map(|&at| inputs[at].elements()).sum());
    point.extend(self::point(inputs, wrt));
    let account = match look.kept {
        usize::MAX => Account::default(),
        _ => Account::for_kept(&point, of.1, look.left),
    };
    let moved = |inputs: &mut [Datum<f64>], point: &[f64]| {
        let mut numbers = point.iter();
        for &at in wrt {
            (0..inputs[at].elements()).zip(&mut numbers).for_each(|(k, &x)| *entry(&mut inputs[at], k) = x);
        }
    };
    // Whether more is kept than was planned for, or a run takes more: other failures of a run beside the point say nothing, so this is remembered.
    let mut is_over = false;
    let found = points::verified_within(&account, &point, of, |point, parts| {
        moved(inputs, point);
        is_over |= MEMORY.current_usage().saturating_sub(before) > look.kept.saturating_add(look.left);
        if is_over {
            return Err(NoGradient::NoRoomForSides);
        }
        let ran = execute::run(values, inputs, look.limits).map_err(NoGradient::Run);
        let ran = ran.and_then(|_| match parts {
            Some(parts) => points::unseen(|| derivative(inputs, parts)),
            None => Ok(()),
        });
        is_over |= ran.as_ref().is_err_and(NoGradient::is_over_budget);
        ran
    });
    moved(inputs, &point);
    match found {
        Err(NoGradient::OfPoint(palinode_core::Error::ByteLimit { .. })) => Err(NoGradient::NoRoomForSides),
        _ if is_over => Err(NoGradient::NoRoomForSides),
        found => found,
    }
}
