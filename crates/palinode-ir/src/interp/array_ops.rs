//! Whole-array operations: shapes, reductions, logs and products.

use std::borrow::Cow;

use palinode_core::{Real, Scalar};

use super::Stats;
use super::access::{Steps, strides, walk};
use super::error::RunErrorKind;
use super::tensor::Tensor;
use super::value::{Array, Source, Val, elements_of, filled, length, mismatch, room, unshared};
use crate::op::Reduction;

pub(super) fn iota<R: Real>(args: &[Val<R>], stats: &mut Stats) -> Result<Val<R>, RunErrorKind> {
    let n = length("iota", args[0].int())?;
    let mut data = room("iota", &[n])?;
    data.extend(0..n as i64);
    stats.elements_filled += n as u64;
    Ok(Val::from_ints(vec![n], data))
}

fn lengths<R: Real>(op: &'static str, args: &[Val<R>]) -> Result<Vec<usize>, RunErrorKind> {
    args.iter().map(|arg| length(op, arg.int())).collect()
}

/// The elements at these steps, in a new array.
fn pick<T: Copy>(
    op: &'static str,
    data: &[T],
    steps: &[Steps],
    shape: &[usize],
) -> Result<Vec<T>, RunErrorKind> {
    let mut out = room(op, shape)?;
    walk(steps, 0, &mut |at| out.push(data[at]));
    Ok(out)
}

/// A new array of this shape from elements of an old one.
fn picked<R: Real>(
    op: &'static str,
    array: &Array<R>,
    steps: &[Steps],
    shape: Vec<usize>,
    stats: &mut Stats,
) -> Result<Val<R>, RunErrorKind> {
    stats.elements_filled += elements_of(op, &shape)? as u64;
    Ok(match array {
        Array::Real(tensor) => {
            let data = pick(op, &tensor.data, steps, &shape)?;
            Val::from_reals(shape, data)
        }
        Array::Int(tensor) => {
            let data = pick(op, &tensor.data, steps, &shape)?;
            Val::from_ints(shape, data)
        }
        Array::Bool(tensor) => {
            let data = pick(op, &tensor.data, steps, &shape)?;
            Val::from_bools(shape, data)
        }
        Array::Empty => unreachable!("an operand is present"),
    })
}

pub(super) fn broadcast<R: Real>(
    axes: &[u8],
    args: &[Val<R>],
    stats: &mut Stats,
) -> Result<Val<R>, RunErrorKind> {
    const OP: &str = "broadcast";
    let shape = lengths(OP, &args[1..])?;
    let fill = |stats: &mut Stats| -> Result<(), RunErrorKind> {
        stats.elements_filled += elements_of(OP, &shape)? as u64;
        Ok(())
    };
    match &args[0] {
        Val::Real(x) => {
            fill(stats)?;
            let data = filled(OP, &shape, *x)?;
            Ok(Val::from_reals(shape, data))
        }
        Val::Int(x) => {
            fill(stats)?;
            let data = filled(OP, &shape, *x)?;
            Ok(Val::from_ints(shape, data))
        }
        Val::Bool(x) => {
            fill(stats)?;
            let data = filled(OP, &shape, *x)?;
            Ok(Val::from_bools(shape, data))
        }
        Val::Array(array) => {
            let placed: Vec<usize> = axes.iter().map(|&axis| shape[usize::from(axis)]).collect();
            if placed != array.shape() {
                return Err(mismatch(OP, array.shape(), &placed));
            }
            let own = strides(array.shape());
            let mut steps: Vec<Steps> =
                shape.iter().map(|&count| Steps::Even { first: 0, count, step: 0 }).collect();
            for (j, &axis) in axes.iter().enumerate() {
                let count = shape[usize::from(axis)];
                steps[usize::from(axis)] = Steps::Even { first: 0, count, step: own[j] as isize };
            }
            picked(OP, array, &steps, shape, stats)
        }
    }
}

/// The lengths of a tensor changed in place, or in a copy if it is shared.
fn with_shape<T: Clone>(
    mut tensor: std::rc::Rc<Tensor<T>>,
    shape: Vec<usize>,
    stats: &mut Stats,
) -> std::rc::Rc<Tensor<T>> {
    unshared(&mut tensor, stats).shape = shape;
    tensor
}

pub(super) fn reshape<R: Real>(args: &mut [Val<R>], stats: &mut Stats) -> Result<Val<R>, RunErrorKind> {
    let shape = lengths("reshape", &args[1..])?;
    let from = args[0].lengths().unwrap_or_default();
    let (before, after) = (from.iter().product::<usize>(), elements_of("reshape", &shape)?);
    if before != after {
        return Err(RunErrorKind::BadReshape { from: from.into(), to: shape[..].into() });
    }
    Ok(match &args[0] {
        Val::Real(x) => Val::from_reals(shape, vec![*x]),
        Val::Int(x) => Val::from_ints(shape, vec![*x]),
        Val::Bool(x) => Val::from_bools(shape, vec![*x]),
        Val::Array(_) => match args[0].take_array() {
            Array::Real(tensor) if shape.is_empty() => Val::Real(tensor.data[0]),
            Array::Int(tensor) if shape.is_empty() => Val::Int(tensor.data[0]),
            Array::Bool(tensor) if shape.is_empty() => Val::Bool(tensor.data[0]),
            Array::Real(tensor) => Val::Array(Array::Real(with_shape(tensor, shape, stats))),
            Array::Int(tensor) => Val::Array(Array::Int(with_shape(tensor, shape, stats))),
            Array::Bool(tensor) => Val::Array(Array::Bool(with_shape(tensor, shape, stats))),
            Array::Empty => unreachable!("an operand is present"),
        },
    })
}

pub(super) fn permute<R: Real>(
    permutation: &[u8],
    args: &mut [Val<R>],
    stats: &mut Stats,
) -> Result<Val<R>, RunErrorKind> {
    if permutation.windows(2).all(|pair| pair[0] < pair[1]) {
        return Ok(core::mem::replace(&mut args[0], Val::Int(0)));
    }
    let array = args[0].array();
    let (old, own) = (array.shape(), strides(array.shape()));
    let from = permutation.iter().map(|&axis| usize::from(axis));
    let shape: Vec<usize> = from.clone().map(|axis| old[axis]).collect();
    let steps: Vec<Steps> =
        from.map(|axis| Steps::Even { first: 0, count: old[axis], step: own[axis] as isize }).collect();
    picked("permute", array, &steps, shape, stats)
}

fn concatenated<T: Copy>(parts: &[&Tensor<T>], axis: usize, shape: &[usize]) -> Result<Vec<T>, RunErrorKind> {
    let mut out = room("concat", shape)?;
    let before: usize = shape[..axis].iter().product();
    for row in 0..before {
        for part in parts {
            let run: usize = part.shape[axis..].iter().product();
            out.extend_from_slice(&part.data[row * run..(row + 1) * run]);
        }
    }
    Ok(out)
}

pub(super) fn concat<R: Real>(axis: u8, args: &[Val<R>], stats: &mut Stats) -> Result<Val<R>, RunErrorKind> {
    let axis = usize::from(axis);
    let first = args[0].array();
    let mut shape = first.shape().to_vec();
    for arg in &args[1..] {
        let other = arg.array().shape();
        let fits = shape.iter().zip(other).enumerate().all(|(at, (a, b))| at == axis || a == b);
        if !fits {
            return Err(mismatch("concat", first.shape(), other));
        }
        shape[axis] += other[axis];
    }
    stats.elements_filled += elements_of("concat", &shape)? as u64;
    Ok(match first {
        Array::Real(_) => {
            let parts: Vec<&Tensor<R>> = args.iter().map(|arg| arg.array().reals()).collect();
            let data = concatenated(&parts, axis, &shape)?;
            Val::from_reals(shape, data)
        }
        Array::Int(_) => {
            let parts: Vec<&Tensor<i64>> = args.iter().map(|arg| arg.array().ints()).collect();
            let data = concatenated(&parts, axis, &shape)?;
            Val::from_ints(shape, data)
        }
        Array::Bool(_) => {
            let parts: Vec<&Tensor<bool>> = args.iter().map(|arg| arg.array().bools()).collect();
            let data = concatenated(&parts, axis, &shape)?;
            Val::from_bools(shape, data)
        }
        Array::Empty => unreachable!("an operand is present"),
    })
}

pub(super) fn reduce<R: Real>(
    kind: Reduction,
    axes: &[u8],
    args: &[Val<R>],
    stats: &mut Stats,
) -> Result<Val<R>, RunErrorKind> {
    let Val::Array(array) = &args[0] else { return Ok(args[0].clone()) };
    let tensor = array.reals();
    let own = strides(&tensor.shape);
    let steps = |reduced: bool| -> (Vec<usize>, Vec<Steps>) {
        (0..tensor.shape.len())
            .filter(|&axis| axes.contains(&(axis as u8)) == reduced)
            .map(|axis| {
                let count = tensor.shape[axis];
                (count, Steps::Even { first: 0, count, step: own[axis] as isize })
            })
            .unzip()
    };
    let ((lane_shape, lane), (shape, kept)) = (steps(true), steps(false));
    let (per_lane, lanes) = (lane_shape.iter().product::<usize>(), elements_of(kind.name(), &shape)?);
    if per_lane == 0 && lanes > 0 && kind != Reduction::Sum {
        return Err(RunErrorKind::EmptyReduction { op: kind.name() });
    }
    let mut out: Vec<R> = room(kind.name(), &shape)?;
    // The reduced axes are the last ones: every lane is a run of neighbours.
    let is_run = axes.iter().rev().enumerate().all(|(back, &axis)| usize::from(axis) + 1 + back == own.len());
    if is_run {
        out.extend((0..lanes).map(|at| combine(kind, &tensor.data[at * per_lane..(at + 1) * per_lane])));
    } else {
        let mut gathered: Vec<R> = Vec::with_capacity(per_lane);
        walk(&kept, 0, &mut |base| {
            gathered.clear();
            walk(&lane, base, &mut |at| gathered.push(tensor.data[at]));
            out.push(combine(kind, &gathered));
        });
    }
    stats.elements_filled += lanes as u64;
    Ok(Val::from_reals(shape, out))
}

fn combine<R: Real>(kind: Reduction, lane: &[R]) -> R {
    match (kind, lane) {
        (Reduction::Sum, lane) => R::sum_of(lane),
        (Reduction::Max, [first, rest @ ..]) => {
            shared(lane, rest.iter().fold(*first, |best, &x| Scalar::max(best, x)))
        }
        (Reduction::Min, [first, rest @ ..]) => {
            shared(lane, rest.iter().fold(*first, |best, &x| Scalar::min(best, x)))
        }
        (Reduction::Max | Reduction::Min, []) => unreachable!("an empty lane has been refused"),
    }
}

/// The best of a lane, with its derivative shared equally by the elements that tie for it (decision 0009).
fn shared<R: Real>(lane: &[R], best: R) -> R {
    let tied: Vec<R> = lane.iter().copied().filter(|x| x.peek() == best.peek()).collect();
    if tied.len() < 2 || tied.iter().all(|x| x.carries_nothing()) {
        return best;
    }
    // The differences are 0, so the value stays what it is, bit by bit.
    let differences: Vec<R> = tied.iter().map(|&x| x - tied[0]).collect();
    tied[0] + R::sum_of(&differences) / tied.len() as f64
}

fn append<T: Copy>(log: &mut Tensor<T>, x: Source<'_, T>) -> Result<(), RunErrorKind> {
    match x {
        Source::One(value) => push(log, value),
        Source::Many(values) => {
            make_room(&mut log.data, values.len())?;
            log.data.extend_from_slice(values);
            log.shape[0] = log.data.len();
            Ok(())
        }
    }
}

/// Appends one element to a log.
#[inline(always)]
pub(super) fn push<T>(log: &mut Tensor<T>, value: T) -> Result<(), RunErrorKind> {
    if log.data.len() == log.data.capacity() {
        make_room(&mut log.data, 1)?;
    }
    log.data.push(value);
    log.shape[0] += 1;
    Ok(())
}

/// Room for more, growing by a quarter once a log is long: amortised O(1), and at most a quarter too much.
#[cold]
#[inline(never)]
pub(super) fn make_room<T>(data: &mut Vec<T>, more: usize) -> Result<(), RunErrorKind> {
    const LONG: usize = 1 << 16;
    let growth = if data.len() < LONG { data.len().max(16) } else { data.len() / 4 };
    if data.capacity() - data.len() < more && data.try_reserve_exact(more.max(growth)).is_err() {
        let shape = [data.len() + more.max(growth)][..].into();
        return Err(RunErrorKind::TooLarge { op: "push", shape });
    }
    Ok(())
}

pub(super) fn push_all<R: Real>(args: &mut [Val<R>], stats: &mut Stats) -> Result<Val<R>, RunErrorKind> {
    let mut array = args[0].take_array();
    for x in &args[1..] {
        match &mut array {
            Array::Real(_) => append(array.reals_mut(stats), x.reals())?,
            Array::Int(_) => append(array.ints_mut(stats), x.ints())?,
            Array::Bool(_) => append(array.bools_mut(stats), x.bools())?,
            Array::Empty => unreachable!("an operand is present"),
        }
    }
    Ok(Val::Array(array))
}

fn cut<T: Clone>(log: &mut Tensor<T>, n: usize, zero: T, stats: &mut Stats) -> Result<(), RunErrorKind> {
    let more = n.saturating_sub(log.data.len());
    if log.data.try_reserve_exact(more).is_err() {
        return Err(RunErrorKind::TooLarge { op: "resize", shape: [n][..].into() });
    }
    stats.elements_filled += more as u64;
    log.data.resize(n, zero);
    log.shape[0] = n;
    Ok(())
}

pub(super) fn resize<R: Real>(args: &mut [Val<R>], stats: &mut Stats) -> Result<Val<R>, RunErrorKind> {
    let n = length("resize", args[1].int())?;
    let mut array = args[0].take_array();
    match &mut array {
        Array::Real(_) => cut(array.reals_mut(stats), n, R::zero(), stats)?,
        Array::Int(_) => cut(array.ints_mut(stats), n, 0, stats)?,
        Array::Bool(_) => cut(array.bools_mut(stats), n, false, stats)?,
        Array::Empty => unreachable!("an operand is present"),
    }
    Ok(Val::Array(array))
}

/// A factor as a matrix: how many rows, how many columns, and the elements row by row.
fn rows<R: Real>(tensor: &Tensor<R>, transposed: bool) -> (usize, usize, Cow<'_, [R]>) {
    match tensor.shape[..] {
        [n] => (1, n, Cow::Borrowed(&tensor.data)),
        [n, m] if transposed => {
            let column = |j: usize| (0..n).map(move |i| tensor.data[i * m + j]);
            (m, n, (0..m).flat_map(column).collect())
        }
        [n, m] => (n, m, Cow::Borrowed(&tensor.data)),
        _ => unreachable!("the verifier: factors have rank 1 or 2"),
    }
}

pub(super) fn matmul<R: Real>(
    a_transposed: bool,
    b_transposed: bool,
    strong: bool,
    args: &[Val<R>],
    stats: &mut Stats,
) -> Result<Val<R>, RunErrorKind> {
    let (a, b) = (args[0].array().reals(), args[1].array().reals());
    let (n, inner, left) = rows(a, a_transposed);
    // The columns of the second factor are the rows of its transpose: inner products of runs.
    let (m, other, right) = rows(b, !b_transposed && b.rank() == 2);
    if inner != other {
        return Err(mismatch("matmul", &a.shape, &b.shape));
    }
    let mut shape = Vec::new();
    if a.rank() == 2 {
        shape.push(n);
    }
    if b.rank() == 2 {
        shape.push(m);
    }
    let mut out: Vec<R> = room("matmul", &[n, m])?;
    for i in 0..n {
        let row = &left[i * inner..(i + 1) * inner];
        let column = |j: usize| &right[j * inner..(j + 1) * inner];
        if strong {
            out.extend((0..m).map(|j| strong_dot(row, column(j))));
        } else {
            out.extend((0..m).map(|j| R::dot(row, column(j))));
        }
    }
    stats.elements_filled += out.len() as u64;
    Ok(Val::from_reals(shape, out))
}

/// The inner product in which a zero times anything is zero: the plain one if everything is finite.
fn strong_dot<R: Real>(a: &[R], b: &[R]) -> R {
    if a.iter().chain(b).all(|x| x.is_finite()) {
        return R::dot(a, b);
    }
    a.iter().zip(b).fold(R::zero(), |sum, (&a, &b)| a.strong_add_to(b, sum))
}

pub(super) fn outer<R: Real>(
    strong: bool,
    args: &[Val<R>],
    stats: &mut Stats,
) -> Result<Val<R>, RunErrorKind> {
    let (x, y) = (&args[0].array().reals().data, &args[1].array().reals().data);
    let shape = vec![x.len(), y.len()];
    let mut out: Vec<R> = room("outer", &shape)?;
    for &x in x {
        if strong {
            out.extend(y.iter().map(|&y| x.strong_mul(y)));
        } else {
            out.extend(y.iter().map(|&y| x * y));
        }
    }
    stats.elements_filled += out.len() as u64;
    Ok(Val::from_reals(shape, out))
}
