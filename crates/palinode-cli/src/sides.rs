//! Derivatives along a way that a model takes only at these inputs.
//!
//! Input: whether a comparison of the model was suspicious (an exact tie, or a zero beside a tiny threshold)
//! when it ran, and how to get its derivative. Output: nothing, or why that derivative is not the model's.
//!
//! The comparisons are those of the model itself: a derivative has others, such as the conventions at kinks,
//! which are no decisions. What is differentiated by is moved, in place, data are not.
//!
//! Within a budget, what such a comparison keeps ([`points::kept_bytes`]) is taken off it for the runs on
//! both sides.

use palinode_core::points::{self, Account, Parts};
use palinode_ir::Program;
use palinode_ir::interp::{Code, Datum, Limits};
use palinode_ir::plan::{Asked, Target, Within, less};

use crate::args::Mode;
use crate::execute;
use crate::gradient::{NoGradient, entry, gradient};
use crate::reserve::MEMORY;

/// What a comparison of both sides may take.
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

/// Compares both sides for a gradient, as it is planned there, with so many bytes left over.
pub(crate) fn check_gradient(
    values: &Code,
    (program, inputs, wrt): (&Program, &mut [Datum<f64>], &[usize]),
    limits: &Limits,
    mode: Mode,
    (asked, within, left): (&Asked, Within, usize),
) -> Result<(), NoGradient> {
    let kept = usize::try_from(asked.beside.sides).unwrap_or(usize::MAX);
    let budget = match asked.budget {
        Some(budget) => less(budget, kept.saturating_add(left) as u64),
        None => limits.budget,
    };
    let beside = Limits { budget, ..*limits };
    let look = match asked.budget {
        Some(_) => Allowed { limits: &beside, kept, left },
        None => Allowed::freely(&beside),
    };
    check(values, (inputs, wrt), look, (Parts::ByInput, 1), |inputs, parts| {
        let of = Target { program, wrt, inputs };
        let found = gradient(of, &beside, mode, (asked, &within))?;
        parts.reserve_exact(of.numbers());
        found.parts.iter().for_each(|part| parts.extend(&part.data));
        Ok(())
    })
}

/// Compares both sides of the inputs at `wrt`. `values` runs the model, `derivative` adds all numbers of the
/// derivative at some inputs to a list, `of` says what these numbers are, and the highest order.
pub(crate) fn check(
    values: &Code,
    (inputs, wrt): (&mut [Datum<f64>], &[usize]),
    look: Allowed<'_>,
    of: (Parts, usize),
    mut derivative: impl FnMut(&[Datum<f64>], &mut Vec<f64>) -> Result<(), NoGradient>,
) -> Result<(), NoGradient> {
    let before = MEMORY.current_usage();
    let mut point: Vec<f64> = Vec::with_capacity(wrt.iter().map(|&at| inputs[at].elements()).sum());
    point.extend(wrt.iter().filter_map(|&at| inputs[at].as_vector()).flatten());
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
    // Whether more is kept than was planned for, or a run takes more: other failures of a run near the point
    // say nothing, so this is remembered.
    let mut is_over = false;
    let found = points::verified_within(&account, &point, of, |point, parts| {
        moved(inputs, point);
        is_over |= MEMORY.current_usage().saturating_sub(before) > look.kept.saturating_add(look.left);
        if is_over {
            return Err(NoGradient::TooSmallForSides);
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
        Err(NoGradient::OfPoint(palinode_core::Error::ByteLimit { .. })) => Err(NoGradient::TooSmallForSides),
        _ if is_over => Err(NoGradient::TooSmallForSides),
        found => found,
    }
}
