//! Elementwise operations over arrays. Scalars count for every element; arrays must have the same lengths.

use std::rc::Rc;

use palinode_core::{Real, rules};

use super::Stats;
use super::error::RunErrorKind;
use super::scalar_ops::{compare_ints, compare_reals, integer};
use super::trap;
use super::value::{Array, Source, Val, elements_of, from_int, mismatch, room, stop, to_int};
use crate::op::{Comparison, IntOp, Logical, Rule};
use crate::types::Elem;

/// The lengths that all array operands share.
fn common_lengths<'a, R: Real>(op: &'static str, args: &'a [Val<R>]) -> Result<&'a [usize], RunErrorKind> {
    let mut shapes = args.iter().filter_map(Val::lengths);
    let first = shapes.next().unwrap_or_default();
    match shapes.find(|&other| other != first) {
        None => Ok(first),
        Some(other) => Err(mismatch(op, first, other)),
    }
}

fn common_shape<R: Real>(op: &'static str, args: &[Val<R>]) -> Result<Vec<usize>, RunErrorKind> {
    common_lengths(op, args).map(<[usize]>::to_vec)
}

/// One result per place, until a place fails.
fn collect<T>(
    op: &'static str,
    shape: &[usize],
    stats: &mut Stats,
    mut element: impl FnMut(usize) -> Result<T, RunErrorKind>,
) -> Result<Vec<T>, RunErrorKind> {
    let count = elements_of(op, shape)?;
    let mut data = room(op, shape)?;
    for at in 0..count {
        data.push(element(at)?);
    }
    stats.elements_filled += count as u64;
    Ok(data)
}

/// One result per place of two operands, with a loop for each combination.
fn zip<A: Copy, B: Copy, T>(
    a: Source<'_, A>,
    b: Source<'_, B>,
    data: &mut Vec<T>,
    mut f: impl FnMut(A, B) -> T,
) {
    match (a, b) {
        (Source::Many(a), Source::Many(b)) => data.extend(a.iter().zip(b).map(|(&a, &b)| f(a, b))),
        (Source::Many(a), Source::One(b)) => data.extend(a.iter().map(|&a| f(a, b))),
        (Source::One(a), Source::Many(b)) => data.extend(b.iter().map(|&b| f(a, b))),
        (Source::One(a), Source::One(b)) => data.push(f(a, b)),
    }
}

/// Overwrites elements with a function of themselves and of another operand.
fn overwrite<A: Copy, B: Copy>(data: &mut [A], other: Source<'_, B>, mut f: impl FnMut(A, B) -> A) {
    match other {
        Source::One(b) => data.iter_mut().for_each(|a| *a = f(*a, b)),
        Source::Many(b) => data.iter_mut().zip(b).for_each(|(a, &b)| *a = f(*a, b)),
    }
}

/// The arithmetic rows as closures, so that each gets a loop of its own; the others are looked up for each element.
macro_rules! with_row {
    ($rule:expr, |$f:ident| $body:expr) => {{
        let Rule { row, parameter } = $rule;
        match row {
            rules::Op::Add => {
                let $f = |a: R, b: R| a + b;
                $body
            }
            rules::Op::Subtract => {
                let $f = |a: R, b: R| a - b;
                $body
            }
            rules::Op::Multiply => {
                let $f = |a: R, b: R| a * b;
                $body
            }
            rules::Op::Divide => {
                let $f = |a: R, b: R| a / b;
                $body
            }
            rules::Op::StrongMul => {
                let $f = |a: R, b: R| a.strong_mul(b);
                $body
            }
            _ => {
                let $f = |a: R, b: R| row.value(parameter, &[a, b]);
                $body
            }
        }
    }};
}

/// A row in place, in the memory of an array operand that nothing else holds.
fn map_in_place<R: Real>(rule: Rule, args: &mut [Val<R>]) -> Option<Val<R>> {
    let Rule { row, parameter } = rule;
    let is_free =
        |arg: &Val<R>| matches!(arg, Val::Array(Array::Real(tensor)) if Rc::strong_count(tensor) == 1);
    let at = args.iter().position(is_free).filter(|_| args.len() <= 2)?;
    let Array::Real(mut tensor) = args[at].take_array() else { return None };
    let data = &mut Rc::get_mut(&mut tensor)?.data[..];
    match (at, &*args) {
        (0, [_]) if row == rules::Op::Negate => data.iter_mut().for_each(|x| *x = -*x),
        (0, [_]) => data.iter_mut().for_each(|x| *x = row.value(parameter, &[*x])),
        (0, [_, b]) => with_row!(rule, |f| overwrite(data, b.reals(), f)),
        (_, [a, _]) => with_row!(rule, |f| overwrite(data, a.reals(), |b, a| f(a, b))),
        _ => unreachable!("a row of two arguments at most"),
    }
    Some(Val::Array(Array::Real(tensor)))
}

pub(super) fn map<R: Real>(
    rule: Rule,
    args: &mut [Val<R>],
    trap: bool,
    stats: &mut Stats,
) -> Result<Val<R>, RunErrorKind> {
    let Rule { row, parameter } = rule;
    let name = row.name();
    let count = elements_of(name, common_lengths(name, args)?)?;
    stats.elements_filled += count as u64;
    // A message would name operands that are overwritten by then.
    if !trap && let Some(done) = map_in_place(rule, args) {
        return Ok(done);
    }
    let shape = common_shape(name, args)?;
    let mut data: Vec<R> = room(name, &shape)?;
    match &*args {
        [Val::Array(a)] if row == rules::Op::Negate => data.extend(a.reals().data.iter().map(|&a| -a)),
        [a] => {
            let a = a.reals();
            data.extend((0..count).map(|at| row.value(parameter, &[a.get(at)])));
        }
        [a, b] => with_row!(rule, |f| zip(a.reals(), b.reals(), &mut data, f)),
        [a, b, c] => {
            let (a, b, c) = (a.reals(), b.reals(), c.reals());
            data.extend((0..count).map(|at| row.value(parameter, &[a.get(at), b.get(at), c.get(at)])));
        }
        _ => unreachable!("a row has at most three arguments"),
    }
    if trap {
        for (at, &result) in data.iter().enumerate() {
            let operands: Vec<R> = args.iter().map(|arg| arg.reals().get(at)).collect();
            trap::check_row(row, &operands, result)?;
        }
    }
    Ok(Val::from_reals(shape, data))
}

pub(super) fn int<R: Real>(op: IntOp, args: &[Val<R>], stats: &mut Stats) -> Result<Val<R>, RunErrorKind> {
    let shape = common_shape(op.name(), args)?;
    let (a, b) = (args[0].ints(), args[1].ints());
    let data = collect(op.name(), &shape, stats, |at| integer(op, a.get(at), b.get(at)))?;
    Ok(Val::from_ints(shape, data))
}

pub(super) fn compare<R: Real>(
    op: Comparison,
    args: &[Val<R>],
    stats: &mut Stats,
) -> Result<Val<R>, RunErrorKind> {
    let shape = common_shape(op.name(), args)?;
    let are_reals = matches!(&args[0], Val::Real(_) | Val::Array(Array::Real(_)));
    let data = if are_reals {
        let (a, b) = (args[0].reals(), args[1].reals());
        collect(op.name(), &shape, stats, |at| Ok(compare_reals(op, a.get(at), b.get(at))))?
    } else {
        let (a, b) = (args[0].ints(), args[1].ints());
        collect(op.name(), &shape, stats, |at| Ok(compare_ints(op, a.get(at), b.get(at))))?
    };
    Ok(Val::from_bools(shape, data))
}

pub(super) fn logical<R: Real>(
    op: Logical,
    args: &[Val<R>],
    stats: &mut Stats,
) -> Result<Val<R>, RunErrorKind> {
    let shape = common_shape(op.name(), args)?;
    let sources: Vec<Source<'_, bool>> = args.iter().map(Val::bools).collect();
    let data = collect(op.name(), &shape, stats, |at| {
        Ok(match op {
            Logical::And => sources[0].get(at) & sources[1].get(at),
            Logical::Or => sources[0].get(at) | sources[1].get(at),
            Logical::Not => !sources[0].get(at),
        })
    })?;
    Ok(Val::from_bools(shape, data))
}

pub(super) fn select<R: Real>(args: &mut [Val<R>], stats: &mut Stats) -> Result<Val<R>, RunErrorKind> {
    let shape = common_shape("select", args)?;
    if let Val::Bool(condition) = args[0] {
        let chosen = if condition { 1 } else { 2 };
        if matches!(args[chosen], Val::Array(_)) {
            return Ok(Val::Array(args[chosen].take_array()));
        }
    }
    let condition = args[0].bools();
    match args.iter().skip(1).find(|arg| matches!(arg, Val::Array(_))).unwrap_or(&args[1]) {
        Val::Real(_) | Val::Array(Array::Real(_)) => {
            let (a, b) = (args[1].reals(), args[2].reals());
            let pick = |at: usize| Ok(if condition.get(at) { a.get(at) } else { b.get(at) });
            let data = collect("select", &shape, stats, pick)?;
            Ok(Val::from_reals(shape, data))
        }
        Val::Int(_) | Val::Array(Array::Int(_)) => {
            let (a, b) = (args[1].ints(), args[2].ints());
            let pick = |at: usize| Ok(if condition.get(at) { a.get(at) } else { b.get(at) });
            let data = collect("select", &shape, stats, pick)?;
            Ok(Val::from_ints(shape, data))
        }
        Val::Bool(_) | Val::Array(Array::Bool(_) | Array::Empty) => {
            let (a, b) = (args[1].bools(), args[2].bools());
            let pick = |at: usize| Ok(if condition.get(at) { a.get(at) } else { b.get(at) });
            let data = collect("select", &shape, stats, pick)?;
            Ok(Val::from_bools(shape, data))
        }
    }
}

/// Conversion between kinds; rounding to single precision is left to the caller.
pub(super) fn convert<R: Real>(
    to: Elem,
    args: &mut [Val<R>],
    stats: &mut Stats,
) -> Result<Val<R>, RunErrorKind> {
    let shape = common_shape("convert", args)?;
    let is_real = matches!(&args[0], Val::Real(_) | Val::Array(Array::Real(_)));
    match (is_real, to.is_real()) {
        (true, true) | (false, false) => Ok(Val::Array(args[0].take_array())),
        (true, false) => {
            let a = args[0].reals();
            let data = collect("convert", &shape, stats, |at| to_int(a.get(at)))?;
            Ok(Val::from_ints(shape, data))
        }
        (false, true) => {
            let a = args[0].ints();
            let data = collect("convert", &shape, stats, |at| Ok(from_int(a.get(at))))?;
            Ok(Val::from_reals(shape, data))
        }
    }
}

pub(super) fn stop_gradient<R: Real>(args: &mut [Val<R>], stats: &mut Stats) -> Result<Val<R>, RunErrorKind> {
    if let Val::Array(Array::Real(tensor)) = &args[0]
        && !tensor.data.iter().all(|x| x.carries_nothing())
    {
        let data = collect("stop_gradient", &tensor.shape, stats, |at| Ok(stop(tensor.data[at])))?;
        return Ok(Val::from_reals(tensor.shape.clone(), data));
    }
    Ok(Val::Array(args[0].take_array()))
}
