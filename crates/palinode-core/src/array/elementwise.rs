//! Elementwise operations by the rule table, on new memory or in place.
//!
//! Input: a rule, and arrays of one shape or numbers that stand for every element. Output: values, and one
//! entry on the tape if an argument is active, with what its partials look at and nothing else (`probe.rs`).
//!
//! | a partial is | kept |
//! |---|---|
//! | a constant (`+`, `-`, negation) | nothing |
//! | an argument or the result (`*`, `exp`) | that array, without a copy |
//! | computed (`sin`, `/`) | the arrays that it looks at; the partials themselves if they are fewer |
//!
//! In place, what an operation overwrites and still needs is saved: the old memory becomes the residual and
//! the result goes to new memory, or, for a part of an array, its elements are saved.

use super::buffer::Write;
use super::{Array, count_saved, need_at, owned};
use crate::rules::{Binary, One, Ternary, Three, Two, Unary};
use crate::tape::arrays::{
    Argument, Formula, Ingredient, Linear, Need, Operands, Partial, Probe, Reader, Recipe, Residual, Shape,
    WhenOverwritten,
};
use crate::tape::{Stamp, Var};
use core::panic::Location;
use palinode_num::Scalar;
use std::rc::Rc;
use std::sync::Arc;

/// An argument of an elementwise operation: an array, or a number that stands for every element. Made by
/// `into()` from `&Array<S>`, `Var<S>` and `f64`.
#[derive(Clone, Copy)]
pub enum ArrayOperand<'a, S> {
    /// An array of the same shape.
    Array(&'a Array<S>),
    /// A number for every element.
    Number(Var<S>),
}

impl<S: Scalar> core::fmt::Debug for ArrayOperand<'_, S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ArrayOperand::Array(array) => array.fmt(f),
            ArrayOperand::Number(x) => x.fmt(f),
        }
    }
}

impl<'a, S> From<&'a Array<S>> for ArrayOperand<'a, S> {
    fn from(array: &'a Array<S>) -> Self {
        ArrayOperand::Array(array)
    }
}

impl<S> From<Var<S>> for ArrayOperand<'_, S> {
    fn from(x: Var<S>) -> Self {
        ArrayOperand::Number(x)
    }
}

impl<S: Scalar> From<f64> for ArrayOperand<'_, S> {
    fn from(x: f64) -> Self {
        ArrayOperand::Number(Var::lift(S::from_f64(x)))
    }
}

impl<S: Scalar> ArrayOperand<'_, S> {
    #[track_caller]
    pub(super) fn check_shape(&self, what: &str, shape: &[usize]) {
        if let ArrayOperand::Array(array) = self {
            assert!(
                array.shape() == shape,
                "palinode: PAL0101: {what} of shapes {} and {}; give both the same shape, with `.broadcast(..)` where elements \
                 are to be repeated",
                Shape(shape),
                Shape(array.shape())
            );
            array.check_length();
        }
    }

    fn is_active(&self) -> bool {
        match self {
            ArrayOperand::Array(array) => array.is_active(),
            ArrayOperand::Number(x) => x.is_active(),
        }
    }

    fn is_number(&self) -> bool {
        matches!(self, ArrayOperand::Number(_))
    }

    fn keep(&self, need: Need) -> Residual<S> {
        match self {
            ArrayOperand::Array(array) => array.keep(need),
            ArrayOperand::Number(x) => Residual::Number(x.primal()),
        }
    }
}

/// Calls `f` with a reader per operand.
fn with_readers<S: Scalar, R>(operands: &[ArrayOperand<'_, S>], f: impl FnOnce(&[Reader<'_, S>]) -> R) -> R {
    let lent: Vec<_> = operands
        .iter()
        .map(|operand| match operand {
            ArrayOperand::Array(array) => Ok((array.buffer.values(), &array.view)),
            ArrayOperand::Number(x) => Err(x.primal()),
        })
        .collect();
    let readers: Vec<_> = lent
        .iter()
        .map(|lent| match lent {
            Ok((values, view)) => Reader::of(values, view),
            Err(x) => Reader::Same(*x),
        })
        .collect();
    f(&readers)
}

/// What an operation records: its active arguments with their partials, and which operands they look at.
struct Plan<S> {
    arguments: Vec<Argument<S>>,
    /// A bit per operand, the result after the last.
    keeps: u8,
}

/// Works out the partials of an operation on these operands. The first operand's region may be left out,
/// where its partial is one and its cotangents stay where they are.
fn plan<S: Scalar>(
    formula: &Arc<dyn Formula<S>>,
    operands: &[ArrayOperand<'_, S>],
    result: Option<&[S]>,
    shape: &[usize],
    leave_out_first: bool,
) -> Plan<S> {
    let arrays = operands.iter().enumerate().filter(|(_, operand)| !operand.is_number());
    let arrays = arrays.fold(1u8 << operands.len(), |mask, (k, _)| mask | 1 << k);
    let active: Vec<(usize, Probe)> = operands
        .iter()
        .enumerate()
        .filter(|(k, operand)| operand.is_active() && !(leave_out_first && *k == 0))
        .map(|(k, _)| (k, formula.partial_of(k)))
        .filter(|(_, probe)| *probe != Probe::Integer(0))
        .collect();
    let mask_of = |computed: bool| {
        let of_kind = active.iter().filter(|(_, p)| matches!(p, Probe::Computed(_)) == computed);
        of_kind.fold(0u8, |mask, (_, probe)| mask | probe.mask())
    };
    // What is kept for partials that are arguments as they are is there anyway.
    let only_for_computing = (mask_of(true) & !mask_of(false) & arrays).count_ones() as usize;
    let computed = active.iter().filter(|(_, p)| matches!(p, Probe::Computed(mask) if mask & arrays != 0));
    let save_partials = only_for_computing > computed.count();
    let evaluate = |which: usize| {
        with_readers(operands, |readers| {
            let mut readers = readers.to_vec();
            readers.push(result.map_or(Reader::Same(S::zero()), Reader::Run));
            formula.partials(which, &readers)
        })
    };
    let mut plan = Plan { arguments: Vec::new(), keeps: 0 };
    for (which, probe) in active {
        let Some(region) = operands[which].region(shape) else { continue };
        let partial = match probe {
            Probe::Integer(1) => Partial::One,
            Probe::Integer(n) => Partial::Constant(S::from_int(n)),
            Probe::Argument(k) => Partial::Operand(k as usize),
            Probe::Computed(mask) if mask & arrays == 0 => {
                // Numbers only: one partial for all elements.
                let number = |operand: &ArrayOperand<'_, S>| match operand {
                    ArrayOperand::Number(x) => Reader::Same(x.primal()),
                    ArrayOperand::Array(_) => Reader::Same(S::zero()),
                };
                let numbers: Vec<_> = operands.iter().map(number).chain([Reader::Same(S::zero())]).collect();
                Partial::Constant(formula.partials(which, &numbers)[0])
            }
            Probe::Computed(_) if save_partials => Partial::Saved(evaluate(which)),
            Probe::Computed(_) => Partial::Computed(which),
        };
        if matches!(partial, Partial::Operand(_) | Partial::Computed(_)) {
            plan.keeps |= probe.mask();
        }
        plan.arguments.push(Argument { region, partial });
    }
    plan
}

#[track_caller]
fn joined<S: Scalar>(name: &str, shape: &[usize], operands: &[ArrayOperand<'_, S>]) -> Stamp {
    let stamp = operands.iter().fold(Stamp::NONE, |stamp, operand| stamp.join(operand.stamp()));
    stamp.check();
    operands.iter().for_each(|operand| operand.check_shape(name, shape));
    stamp
}

/// The rule on these operands, in new memory. At least one operand is an array.
#[track_caller]
fn apply<S: Scalar>(
    formula: Arc<dyn Formula<S>>,
    shape: &[usize],
    operands: &[ArrayOperand<'_, S>],
) -> Array<S> {
    let at = Location::caller();
    let stamp = joined(formula.name(), shape, operands);
    let values = with_readers(operands, |readers| formula.values(readers));
    if !operands.iter().any(ArrayOperand::is_active) {
        return Array::constant_of(values, shape);
    }
    with_readers(operands, |readers| formula.report_jumps(readers));
    let Plan { arguments, keeps } = plan(&formula, operands, Some(&values), shape, false);
    let result = Array::active_of(values, shape, stamp);
    let need = need_at::<S>(formula.name(), at, stamp);
    if need.policy == WhenOverwritten::Recompute {
        result.buffer.set_recipe(recipe(&formula, operands));
    }
    let mut kept = keep(operands, keeps, need);
    kept.push(result.keep_if(keeps & 1 << operands.len() != 0, need));
    let (name, output) = (formula.name(), result.output());
    let operands = (keeps != 0).then(|| Box::new(Operands { formula, values: kept }));
    result.record(stamp, Linear { name, output, replaces: true, arguments, operands });
    result
}

fn recipe<S: Scalar>(formula: &Arc<dyn Formula<S>>, operands: &[ArrayOperand<'_, S>]) -> Recipe<S> {
    let ingredient = |operand: &ArrayOperand<'_, S>| match operand {
        ArrayOperand::Number(x) => Ingredient::Number(x.primal()),
        ArrayOperand::Array(array) => {
            Ingredient::Values(Arc::downgrade(&array.buffer.kept()), array.view.clone())
        }
    };
    Recipe { formula: formula.clone(), arguments: operands.iter().map(ingredient).collect() }
}

/// The rule on the target and these operands, written over the target.
#[track_caller]
fn apply_in_place<S: Scalar>(
    formula: Arc<dyn Formula<S>>,
    target: &mut Array<S>,
    others: &[ArrayOperand<'_, S>],
) {
    let write = Write { by: formula.name(), at: Location::caller() };
    target.check_writable();
    target.check_length();
    // The target as it was, to be read like any other operand.
    let before = target.view();
    let mut operands = vec![ArrayOperand::Array(&before)];
    operands.extend_from_slice(others);
    let stamp = joined(formula.name(), target.shape(), &operands);
    if !operands.iter().any(ArrayOperand::is_active) {
        update(&*formula, target, &operands, write);
        return;
    }
    with_readers(&operands, |readers| formula.report_jumps(readers));
    target.begin_write();
    // `x += y`: the cotangents of x stay where they are.
    let accumulates = formula.partial_of(0) == Probe::Integer(1) && target.buffer.accumulates();
    let needs_old_or_new = looks_at(&formula, &operands) & (1 | 1 << operands.len()) != 0;
    let need = need_at::<S>(write.by, write.at, stamp);
    let (arguments, kept) = if needs_old_or_new {
        let values = with_readers(&operands, |readers| formula.values(readers));
        let plan = plan(&formula, &operands, Some(&values), target.shape(), accumulates);
        #[cfg(test)]
        if super::tests::planted::Bug::KeptTooLate.is_planted() {
            target.buffer.activate(stamp);
            target.replace(values.clone(), write);
        }
        // Operands may be views of the target, so they are kept before it is written to.
        let mut kept = keep(&operands, plan.keeps, need);
        if plan.keeps & 1 != 0 && target.is_whole() {
            count_saved::<S>(stamp, target.len());
        }
        target.buffer.activate(stamp);
        kept.push(overwrite(target, values, plan.keeps & 1 << operands.len() != 0, need, write));
        (plan.arguments, (plan.keeps != 0).then_some(kept))
    } else {
        let plan = plan(&formula, &operands, None, target.shape(), accumulates);
        let mut kept = keep(&operands, plan.keeps, need);
        kept.push(Residual::Absent);
        target.buffer.activate(stamp);
        update(&*formula, target, &operands, write);
        (plan.arguments, (plan.keeps != 0).then_some(kept))
    };
    if accumulates && arguments.is_empty() {
        return;
    }
    let (name, output) = (formula.name(), target.output());
    let operands = kept.map(|values| Box::new(Operands { formula, values }));
    target.record(stamp, Linear { name, output, replaces: !accumulates, arguments, operands });
}

/// What the partials by the active operands look at.
fn looks_at<S: Scalar>(formula: &Arc<dyn Formula<S>>, operands: &[ArrayOperand<'_, S>]) -> u8 {
    let active = operands.iter().enumerate().filter(|(_, operand)| operand.is_active());
    active.fold(0, |mask, (k, _)| mask | formula.partial_of(k).mask())
}

/// The operands that partials look at.
fn keep<S: Scalar>(operands: &[ArrayOperand<'_, S>], keeps: u8, need: Need) -> Vec<Residual<S>> {
    let mut kept = Vec::with_capacity(operands.len() + 1);
    kept.extend(operands.iter().enumerate().map(|(k, operand)| match keeps & 1 << k {
        0 => Residual::Absent,
        _ => operand.keep(need),
    }));
    kept
}

/// Writes new values, and keeps them if they are needed.
fn overwrite<S: Scalar>(
    target: &Array<S>,
    values: Vec<S>,
    needed: bool,
    need: Need,
    write: Write,
) -> Residual<S> {
    if !needed || target.is_whole() {
        target.replace(values, write);
        return target.keep_if(needed, need);
    }
    count_saved::<S>(need.stamp, values.len());
    target.replace(values.clone(), write);
    owned(values, target.shape(), need)
}

/// Computes in the target's own memory where that is allowed, else in new memory.
fn update<S: Scalar>(
    formula: &dyn Formula<S>,
    target: &Array<S>,
    operands: &[ArrayOperand<'_, S>],
    write: Write,
) {
    let shares = |operand: &ArrayOperand<'_, S>| match operand {
        ArrayOperand::Array(array) => Rc::ptr_eq(&array.buffer, &target.buffer),
        ArrayOperand::Number(_) => false,
    };
    let others = &operands[1..];
    if target.buffer.owns_memory() && !others.iter().any(shares) {
        target.buffer.prepare_write(write);
        let mut memory = target.buffer.memory();
        with_readers(others, |others| formula.update(&mut memory, target.view.walk(), others));
        return;
    }
    let values = with_readers(operands, |readers| formula.values(readers));
    target.replace(values, write);
}

impl<S: Scalar> Array<S> {
    /// A rule of one argument on every element.
    ///
    /// ```
    /// use palinode_core::{Array, grad, rules::Sin};
    ///
    /// let g = grad(|x| Array::from_vars(x).map(Sin {}).sum(), &[0.0, 1.0])?;
    /// assert_eq!(g, [1.0, 1f64.cos()]);
    /// # Ok::<(), palinode_core::Error>(())
    /// ```
    #[track_caller]
    pub fn map<R: Unary + Send + Sync>(&self, rule: R) -> Array<S> {
        apply(Arc::new(One(rule)), self.shape(), &[self.into()])
    }

    /// A rule of one argument on every element, in place.
    #[track_caller]
    pub fn map_in_place<R: Unary + Send + Sync>(&mut self, rule: R) {
        apply_in_place(Arc::new(One(rule)), self, &[]);
    }

    /// A rule of two arguments on every element and another array's, or a number.
    ///
    /// # Panics
    /// If the shapes differ, or the two belong to different tapes.
    #[track_caller]
    pub fn zip_with<'a, R: Binary + Send + Sync>(
        &self,
        rule: R,
        other: impl Into<ArrayOperand<'a, S>>,
    ) -> Array<S> {
        apply(Arc::new(Two(rule)), self.shape(), &[self.into(), other.into()])
    }

    /// A rule of two arguments on every element and another array's, or a number, in place. The other one is
    /// read first, so the two may overlap.
    ///
    /// # Panics
    /// As [`Array::zip_with`], and if this is a broadcast view.
    #[track_caller]
    pub fn zip_with_in_place<'a, R: Binary + Send + Sync>(
        &mut self,
        rule: R,
        other: impl Into<ArrayOperand<'a, S>>,
    ) {
        apply_in_place(Arc::new(Two(rule)), self, &[other.into()]);
    }

    /// A rule of three arguments on every element and two other arrays' or numbers.
    ///
    /// # Panics
    /// As [`Array::zip_with`].
    #[track_caller]
    pub fn zip_with_two<'a, 'b, R: Ternary + Send + Sync>(
        &self,
        rule: R,
        second: impl Into<ArrayOperand<'a, S>>,
        third: impl Into<ArrayOperand<'b, S>>,
    ) -> Array<S> {
        apply(Arc::new(Three(rule)), self.shape(), &[self.into(), second.into(), third.into()])
    }

    /// A rule of two arguments with a number on the left.
    #[track_caller]
    pub(super) fn with_left<R: Binary + Send + Sync>(&self, rule: R, left: Var<S>) -> Array<S> {
        apply(Arc::new(Two(rule)), self.shape(), &[left.into(), self.into()])
    }
}
