//! Sums, maxima and minima along axes.
//!
//! Input: an array of real numbers and axes. Output: an array without them, or a number. Naive sums have the
//! order of [`palinode_core::sums`], the elements of several axes counted as they lie. The largest of numbers
//! is the first one that none exceeds; NaN counts only if there is nothing else. Numbers with derivatives
//! that tie for it share its derivative (decision 0009).

use palinode_core::machine::{Task, on_this_machine};
use palinode_core::sums::sum_axis;
use palinode_core::{Accumulator, Logic, Real, Scalar};

use super::error::RunErrorKind;
use super::ledger::Memory;
use super::places::strides;
use super::store::{Store, elements_of};
use super::value::Val;
use crate::op::Reduction;

pub(super) fn reduce<R: Real>(
    kind: Reduction,
    axes: &[u8],
    args: &[Val<R>],
    how: Accumulator,
    memory: &mut Memory,
) -> Result<Val<R>, RunErrorKind> {
    let Val::Array(array) = &args[0] else { return Ok(args[0].clone()) };
    let name = kind.name();
    let (lengths, data) = (array.shape(), array.reals().data());
    let is_reduced = |axis: usize| axes.contains(&(axis as u8));
    let shape: Vec<usize> =
        (0..lengths.len()).filter(|&axis| !is_reduced(axis)).map(|axis| lengths[axis]).collect();
    let lanes = elements_of(name, &shape)?;
    let per_lane: usize = axes.iter().map(|&axis| lengths[usize::from(axis)]).product();
    if per_lane == 0 && lanes > 0 && kind != Reduction::Sum {
        return Err(RunErrorKind::EmptyReduction { op: name });
    }
    memory.stats.elements_filled += lanes as u64;
    if shape.is_empty() {
        return Ok(Val::Real(of_run(kind, data, how)));
    }
    let mut made = Store::filled(name, shape, R::zero(), memory)?;
    let results = made.data_mut();
    if results.is_empty() {
        return Ok(Val::from_reals(made));
    }
    if let Some(lengths) = neighbours(axes, lengths) {
        along(kind, data, lengths, how, results);
        return Ok(Val::from_reals(made));
    }
    let own = strides(lengths);
    let (lane, kept): (Vec<_>, Vec<_>) = (0..lengths.len()).partition(|&axis| is_reduced(axis));
    // Element `k` of several axes, counted as they lie.
    let offset = |axes: &[usize], k: usize| {
        let place =
            |(left, offset), &axis: &usize| (left / lengths[axis], offset + left % lengths[axis] * own[axis]);
        axes.iter().rev().fold((k, 0), place).1
    };
    for (at, result) in results.iter_mut().enumerate() {
        let first = offset(&kept, at);
        *result = combined(kind, per_lane, how, |k| data[first + offset(&lane, k)]);
    }
    Ok(Val::from_reals(made))
}

/// Reduces the middle one of three axes; there is a result, and for a maximum or minimum the axis is not
/// empty.
pub(super) fn along<R: Real>(
    kind: Reduction,
    data: &[R],
    [outer, length, inner]: [usize; 3],
    how: Accumulator,
    results: &mut [R],
) {
    let better = |kind| move |x: R, best: R| if kind == Reduction::Max { best < x } else { x < best };
    match kind {
        Reduction::Sum if how == Accumulator::Naive => sum_axis(data, [outer, length, inner], results),
        _ if inner == 1 => {
            for (number, result) in results.iter_mut().enumerate() {
                *result = of_run(kind, &data[number * length..][..length], how);
            }
        }
        Reduction::Max | Reduction::Min if R::IS_FLOAT => {
            for (data, best) in data.chunks(length * inner).zip(results.chunks_mut(inner)) {
                on_this_machine(ExtremeOfLines { data, best, is_better: better(kind) });
            }
        }
        _ => {
            for (at, result) in results.iter_mut().enumerate() {
                let first = at / inner * length * inner + at % inner;
                *result = combined(kind, length, how, |k| data[first + k * inner]);
            }
        }
    }
}

/// How many elements there are before, along and after the axes, if these are neighbours.
fn neighbours(axes: &[u8], lengths: &[usize]) -> Option<[usize; 3]> {
    let first = usize::from(*axes.first()?);
    let after = first + axes.len();
    let are_neighbours = axes.iter().zip(first..).all(|(&axis, expected)| usize::from(axis) == expected);
    let product = |lengths: &[usize]| lengths.iter().product();
    are_neighbours.then(|| [&lengths[..first], &lengths[first..after], &lengths[after..]].map(product))
}

/// What becomes of a run of elements.
fn of_run<R: Real>(kind: Reduction, lane: &[R], how: Accumulator) -> R {
    match kind {
        Reduction::Sum => R::sum_with(lane, how),
        Reduction::Max if R::IS_FLOAT => on_this_machine(Extreme { lane, is_better: |x, best| best < x }),
        Reduction::Min if R::IS_FLOAT => on_this_machine(Extreme { lane, is_better: |x, best| x < best }),
        Reduction::Max | Reduction::Min => combined(kind, lane.len(), how, |k| lane[k]),
    }
}

/// What becomes of a lane, by the places of its elements; for a maximum or minimum there is one.
fn combined<R: Real>(kind: Reduction, count: usize, how: Accumulator, lane: impl Fn(usize) -> R) -> R {
    let rest = || (1..count).map(&lane);
    match kind {
        Reduction::Sum => R::sum_with_over(count, how, lane),
        Reduction::Max if R::IS_FLOAT => first_best(lane(0), rest(), |x, best| best < x),
        Reduction::Min if R::IS_FLOAT => first_best(lane(0), rest(), |x, best| x < best),
        Reduction::Max => shared(count, &lane, rest().fold(lane(0), |best, x| Scalar::max(best, x))),
        Reduction::Min => shared(count, &lane, rest().fold(lane(0), |best, x| Scalar::min(best, x))),
    }
}

/// The first float that none is better than.
fn first_best<R: Real>(first: R, rest: impl Iterator<Item = R>, is_better: impl Fn(R, R) -> bool) -> R {
    rest.fold(first, |best, x| if is_better(x, best) || best.is_nan() { x } else { best })
}

/// The best that lines of floats have at each place: the first one that none is better than.
struct ExtremeOfLines<'a, R, F> {
    data: &'a [R],
    best: &'a mut [R],
    is_better: F,
}

impl<R: Real, F: Fn(R, R) -> bool> Task for ExtremeOfLines<'_, R, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let ExtremeOfLines { data, best, is_better } = self;
        let (first, rest) = data.split_at(best.len());
        best.copy_from_slice(first);
        for line in rest.chunks_exact(best.len()) {
            for (best, &x) in best.iter_mut().zip(line) {
                let is_nan = best.equal(*best).decided() == Some(false);
                *best = if is_better(x, *best) | is_nan { x } else { *best };
            }
        }
    }
}

/// The best of a lane of floats, which has an element: the first one that none is better than. NaN is better
/// than nothing, and nothing else.
struct Extreme<'a, R, F> {
    lane: &'a [R],
    is_better: F,
}

/// Comparisons under way.
const TOGETHER: usize = 32;

impl<R: Real, F: Fn(R, R) -> bool> Task for Extreme<'_, R, F> {
    type Output = R;
    #[inline(always)]
    fn run(self) -> R {
        let Extreme { lane, is_better } = self;
        // Any number, so that NaN is never the best so far.
        let Some(&some) = lane.iter().find(|x| !x.is_nan()) else { return lane[0] };
        let better = |best: R, x: R| if is_better(x, best) { x } else { best };
        let (rows, rest) = lane.as_chunks::<TOGETHER>();
        let mut best = [some; TOGETHER];
        for row in rows {
            for (best, &x) in best.iter_mut().zip(row) {
                *best = better(*best, x);
            }
        }
        let best = best.iter().chain(rest).fold(some, |best, &x| better(best, x));
        // Zeros of both signs are equal.
        if best == R::zero() { lane.iter().copied().find(|&x| x == best).unwrap_or(best) } else { best }
    }
}

/// The best of a lane, with its derivative shared equally by the elements that tie for it (decision 0009).
fn shared<R: Real>(count: usize, lane: &impl Fn(usize) -> R, best: R) -> R {
    let tied = || (0..count).map(lane).filter(|x| x.peek() == best.peek());
    let ties = tied().count();
    if ties < 2 || tied().all(|x| x.carries_nothing()) {
        return best;
    }
    // The differences are zeros, the first of them +0, and so is their mean: subtracted, it changes no bit of
    // the value. Infinities have no differences, but are their own mean. All are added by groups, so that
    // nothing is allocated.
    let first = tied().next().expect("there are two");
    let is_finite = first.glance().is_some_and(f64::is_finite);
    let mut shares = tied().map(|x| if is_finite { first - x } else { x });
    let mut total: Option<R> = None;
    loop {
        let mut group = [R::zero(); 16];
        let mut size = 0;
        while size < group.len()
            && let Some(share) = shares.next()
        {
            group[size] = share;
            size += 1;
        }
        if size == 0 {
            break;
        }
        let sum = R::sum_of(&group[..size]);
        total = Some(total.map_or(sum, |total| total + sum));
    }
    let mean = total.expect("there are two") / ties as f64;
    if is_finite { first - mean } else { mean }
}
