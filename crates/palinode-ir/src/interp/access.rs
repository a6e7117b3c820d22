//! Reading, writing and adding at the places that axes name.
//!
//! Input: an array, an [`Axis`] for each of its axes, their operands. Output: the elements, or the changed array.
//! Cost: in proportion to the elements named, whatever the size of the array (once it is not shared).

use std::collections::HashSet;

use palinode_core::Real;

use super::Stats;
use super::error::RunErrorKind;
use super::trap;
use super::value::{Array, Source, Val, mismatch, room, round32};
use crate::op::Axis;

/// The places along one axis, as offsets into the elements.
#[derive(Clone, Debug)]
pub(super) enum Steps {
    /// `first`, `first + step`, ...
    Even { first: usize, count: usize, step: isize },
    /// Any.
    Listed(Vec<usize>),
}

impl Steps {
    fn count(&self) -> usize {
        match self {
            Steps::Even { count, .. } => *count,
            Steps::Listed(offsets) => offsets.len(),
        }
    }
}

/// The distance between neighbours along each axis.
pub(super) fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

/// Calls `f` with the offset of every combination, the last axis running fastest.
pub(super) fn walk<F: FnMut(usize)>(axes: &[Steps], base: usize, f: &mut F) {
    let Some((axis, rest)) = axes.split_first() else { return f(base) };
    match axis {
        Steps::Even { first, count, step } => {
            let mut at = base + first;
            for _ in 0..*count {
                if rest.is_empty() {
                    f(at)
                } else {
                    walk(rest, at, f)
                }
                // Past the last place this may leave the array, even below 0: nothing is read there.
                at = at.wrapping_add_signed(*step);
            }
        }
        Steps::Listed(offsets) => offsets.iter().for_each(|offset| walk(rest, base + offset, f)),
    }
}

fn index(i: i64, axis: usize, length: usize) -> Result<usize, RunErrorKind> {
    match usize::try_from(i) {
        Ok(at) if at < length => Ok(at),
        Ok(_) | Err(_) => Err(RunErrorKind::IndexOutOfRange { index: i, axis, length }),
    }
}

/// What an access reaches.
struct Region {
    steps: Vec<Steps>,
    /// The lengths of the axes that stay.
    shape: Vec<usize>,
}

/// Checks the operands of the axes against the lengths of the array.
fn region<R: Real>(
    op: &'static str,
    axes: &[Axis],
    operands: &[Val<R>],
    shape: &[usize],
    once: bool,
) -> Result<Region, RunErrorKind> {
    let mut rest = operands;
    let mut region = Region { steps: Vec::with_capacity(axes.len()), shape: Vec::with_capacity(axes.len()) };
    for (at, axis) in axes.iter().enumerate() {
        let (mine, others) = rest.split_at(axis.operands());
        rest = others;
        let (length, stride) = (shape[at], shape[at + 1..].iter().product::<usize>());
        let steps = match axis {
            Axis::At => {
                let first = index(mine[0].int(), at, length)? * stride;
                Steps::Even { first, count: 1, step: 0 }
            }
            Axis::All => Steps::Even { first: 0, count: length, step: stride as isize },
            Axis::Range => {
                let (start, count, step) = (mine[0].int(), mine[1].int(), mine[2].int());
                range(op, start, count, step, at, length, stride, once)?
            }
            Axis::List => {
                let listed = &mine[0].array().ints().data;
                let mut seen = HashSet::new();
                let mut offsets = Vec::with_capacity(listed.len());
                for &i in listed {
                    offsets.push(index(i, at, length)? * stride);
                    if once && !seen.insert(i) {
                        return Err(RunErrorKind::DuplicateIndex { index: i, axis: at });
                    }
                }
                Steps::Listed(offsets)
            }
        };
        if axis.stays() {
            region.shape.push(steps.count());
        }
        region.steps.push(steps);
    }
    Ok(region)
}

#[allow(clippy::too_many_arguments)] // each is a number of the one range
fn range(
    op: &'static str,
    start: i64,
    count: i64,
    step: i64,
    axis: usize,
    length: usize,
    stride: usize,
    once: bool,
) -> Result<Steps, RunErrorKind> {
    if count < 0 {
        return Err(RunErrorKind::NegativeLength { op, length: count });
    }
    if count == 0 {
        return Ok(Steps::Even { first: 0, count: 0, step: 0 });
    }
    let inside = |i: Option<i64>| i.and_then(|i| usize::try_from(i).ok()).filter(|&i| i < length);
    let last = (count - 1).checked_mul(step).and_then(|reach| reach.checked_add(start));
    let (Some(first), Some(_)) = (inside(Some(start)), inside(last)) else {
        return Err(RunErrorKind::RangeOutOfBounds { start, count, step, axis, length });
    };
    if once && step == 0 && count > 1 {
        return Err(RunErrorKind::DuplicateIndex { index: start, axis });
    }
    // With both ends inside, one place per element at most unless the step is 0.
    Ok(Steps::Even { first: first * stride, count: count as usize, step: step as isize * stride as isize })
}

fn gather<T: Copy>(
    op: &'static str,
    data: &[T],
    region: &Region,
    stats: &mut Stats,
) -> Result<Vec<T>, RunErrorKind> {
    let mut out = room(op, &region.shape)?;
    walk(&region.steps, 0, &mut |at| out.push(data[at]));
    stats.elements_filled += out.len() as u64;
    Ok(out)
}

pub(super) fn read<R: Real>(
    axes: &[Axis],
    args: &[Val<R>],
    stats: &mut Stats,
) -> Result<Val<R>, RunErrorKind> {
    let array = args[0].array();
    let region = region("read", axes, &args[1..], array.shape(), false)?;
    Ok(match array {
        Array::Real(tensor) => {
            let data = gather("read", &tensor.data, &region, stats)?;
            Val::from_reals(region.shape, data)
        }
        Array::Int(tensor) => {
            let data = gather("read", &tensor.data, &region, stats)?;
            Val::from_ints(region.shape, data)
        }
        Array::Bool(tensor) => {
            let data = gather("read", &tensor.data, &region, stats)?;
            Val::from_bools(region.shape, data)
        }
        Array::Empty => unreachable!("an operand is present"),
    })
}

fn check_fits<R: Real>(op: &'static str, region: &Region, x: &Val<R>) -> Result<(), RunErrorKind> {
    match x.lengths() {
        Some(lengths) if lengths != region.shape => Err(mismatch(op, &region.shape, lengths)),
        Some(_) | None => Ok(()),
    }
}

fn scatter<T: Copy>(data: &mut [T], region: &Region, x: Source<'_, T>) {
    let mut next = 0;
    walk(&region.steps, 0, &mut |at| {
        data[at] = x.get(next);
        next += 1;
    });
}

pub(super) fn write<R: Real>(
    axes: &[Axis],
    args: &mut [Val<R>],
    stats: &mut Stats,
) -> Result<Val<R>, RunErrorKind> {
    let mut array = args[0].take_array();
    let region = region("write", axes, &args[2..], array.shape(), true)?;
    let x = &args[1];
    check_fits("write", &region, x)?;
    match &mut array {
        Array::Real(_) => scatter(&mut array.reals_mut(stats).data, &region, x.reals()),
        Array::Int(_) => scatter(&mut array.ints_mut(stats).data, &region, x.ints()),
        Array::Bool(_) => scatter(&mut array.bools_mut(stats).data, &region, x.bools()),
        Array::Empty => unreachable!("an operand is present"),
    }
    Ok(Val::Array(array))
}

pub(super) fn add_at<R: Real>(
    axes: &[Axis],
    args: &mut [Val<R>],
    single: bool,
    trap: bool,
    stats: &mut Stats,
) -> Result<Val<R>, RunErrorKind> {
    let mut array = args[0].take_array();
    let region = region("add_at", axes, &args[2..], array.shape(), false)?;
    check_fits("add_at", &region, &args[1])?;
    let x = args[1].reals();
    let data = &mut array.reals_mut(stats).data;
    let mut next = 0;
    let mut failed = None;
    walk(&region.steps, 0, &mut |at| {
        let (old, more) = (data[at], x.get(next));
        next += 1;
        data[at] = if single { round32(old + more) } else { old + more };
        if trap && failed.is_none() {
            failed = trap::check_named("add_at", &[old, more], data[at]).err();
        }
    });
    match failed {
        Some(kind) => Err(kind),
        None => Ok(Val::Array(array)),
    }
}
