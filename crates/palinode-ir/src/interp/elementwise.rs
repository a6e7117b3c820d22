//! Elementwise operations over arrays. Scalars count for every element; arrays must have the same lengths.

use palinode_core::{Real, rules};

use super::Stats;
use super::error::RunErrorKind;
use super::scalar_ops::{compare_ints, compare_reals, integer};
use super::trap;
use super::value::{Array, Source, Val, elements_of, from_int, mismatch, room, stop, to_int};
use crate::op::{Comparison, IntOp, Logical, Rule};
use crate::types::Elem;

/// The lengths that all array operands share.
fn common_shape<R: Real>(op: &'static str, args: &[Val<R>]) -> Result<Vec<usize>, RunErrorKind> {
    let mut shapes = args.iter().filter_map(Val::lengths);
    let first = shapes.next().unwrap_or_default();
    match shapes.find(|&other| other != first) {
        None => Ok(first.to_vec()),
        Some(other) => Err(mismatch(op, first, other)),
    }
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
    mut data: Vec<T>,
    mut f: impl FnMut(A, B) -> T,
) -> Vec<T> {
    match (a, b) {
        (Source::Many(a), Source::Many(b)) => data.extend(a.iter().zip(b).map(|(&a, &b)| f(a, b))),
        (Source::Many(a), Source::One(b)) => data.extend(a.iter().map(|&a| f(a, b))),
        (Source::One(a), Source::Many(b)) => data.extend(b.iter().map(|&b| f(a, b))),
        (Source::One(a), Source::One(b)) => data.push(f(a, b)),
    }
    data
}

pub(super) fn map<R: Real>(
    rule: Rule,
    args: &[Val<R>],
    trap: bool,
    stats: &mut Stats,
) -> Result<Val<R>, RunErrorKind> {
    let name = rule.row.name();
    let shape = common_shape(name, args)?;
    let count = elements_of(name, &shape)?;
    let sources: Vec<Source<'_, R>> = args.iter().map(Val::reals).collect();
    let data = room(name, &shape)?;
    let (row, parameter) = (rule.row, rule.parameter);
    let data = match (row, &sources[..]) {
        (rules::Op::Negate, &[Source::Many(a)]) => {
            let mut data = data;
            data.extend(a.iter().map(|&a| -a));
            data
        }
        (rules::Op::Add, &[a, b]) => zip(a, b, data, |a, b| a + b),
        (rules::Op::Subtract, &[a, b]) => zip(a, b, data, |a, b| a - b),
        (rules::Op::Multiply, &[a, b]) => zip(a, b, data, |a, b| a * b),
        (rules::Op::Divide, &[a, b]) => zip(a, b, data, |a, b| a / b),
        (rules::Op::StrongMul, &[a, b]) => zip(a, b, data, |a, b| a.strong_mul(b)),
        (_, &[a]) => {
            let mut data = data;
            data.extend((0..count).map(|at| row.value(parameter, &[a.get(at)])));
            data
        }
        (_, &[a, b]) => zip(a, b, data, |a, b| row.value(parameter, &[a, b])),
        (_, sources) => {
            let mut data = data;
            let mut operands: Vec<R> = Vec::with_capacity(sources.len());
            for at in 0..count {
                operands.clear();
                operands.extend(sources.iter().map(|source| source.get(at)));
                data.push(row.value(parameter, &operands));
            }
            data
        }
    };
    stats.elements_filled += count as u64;
    if trap {
        for (at, &result) in data.iter().enumerate() {
            let operands: Vec<R> = sources.iter().map(|source| source.get(at)).collect();
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
