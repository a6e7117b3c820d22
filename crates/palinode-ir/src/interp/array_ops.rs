//! Whole-array operations: shapes and logs.

use std::rc::Rc;

use palinode_core::Real;

use super::error::RunErrorKind;
use super::ledger::Memory;
use super::places::{Steps, strides};
use super::store::{Store, elements_of};
use super::store_rule::is_identity;
use super::value::{Array, Source, Val, length, mismatch, primal, same_kind, unshared};

pub(super) fn iota<R: Real>(args: &[Val<R>], memory: &mut Memory) -> Result<Val<R>, RunErrorKind> {
    let n = length("iota", args[0].int())?;
    let mut made = Store::with_capacity("iota", vec![n], memory)?;
    (0..n as i64).for_each(|i| made.buffer().push(i));
    memory.stats.elements_filled += n as u64;
    Ok(Val::from_ints(made))
}

fn lengths<R: Real>(op: &'static str, args: &[Val<R>]) -> Result<Vec<usize>, RunErrorKind> {
    args.iter().map(|arg| length(op, arg.int())).collect()
}

/// The elements at these steps, in a new array of this shape.
fn pick<T: Copy>(
    op: &'static str,
    store: &Store<T>,
    steps: &[Steps<'_>],
    shape: Vec<usize>,
    memory: &Memory,
) -> Result<Store<T>, RunErrorKind> {
    let mut made = Store::with_capacity(op, shape, memory)?;
    made.buffer().pick(store.data(), steps);
    Ok(made)
}

fn picked<R: Real>(
    op: &'static str,
    array: &Array<R>,
    steps: &[Steps<'_>],
    shape: Vec<usize>,
    memory: &mut Memory,
) -> Result<Val<R>, RunErrorKind> {
    memory.stats.elements_filled += elements_of(op, &shape)? as u64;
    Ok(same_kind!(array, store => pick(op, store, steps, shape, memory)?))
}

pub(super) fn broadcast<R: Real>(
    axes: &[u8],
    args: &[Val<R>],
    memory: &mut Memory,
) -> Result<Val<R>, RunErrorKind> {
    const OP: &str = "broadcast";
    let shape = lengths(OP, &args[1..])?;
    let mut fill = |is_zero: bool| -> Result<(), RunErrorKind> {
        let count = elements_of(OP, &shape)? as u64;
        memory.stats.elements_filled += count;
        memory.stats.elements_zeroed += if is_zero { count } else { 0 };
        Ok(())
    };
    match &args[0] {
        Val::Real(x) => {
            fill(primal(*x) == 0.0)?;
            Ok(Val::from_reals(Store::filled(OP, shape, *x, memory)?))
        }
        Val::Int(x) => {
            fill(*x == 0)?;
            Ok(Val::from_ints(Store::filled(OP, shape, *x, memory)?))
        }
        Val::Bool(x) => {
            fill(false)?;
            Ok(Val::from_bools(Store::filled(OP, shape, *x, memory)?))
        }
        Val::Array(array) => {
            let placed: Vec<usize> = axes.iter().map(|&axis| shape[usize::from(axis)]).collect();
            if placed != array.shape() {
                return Err(mismatch(OP, array.shape(), &placed));
            }
            let own = strides(array.shape());
            let mut steps: Vec<Steps<'_>> =
                shape.iter().map(|&count| Steps::Even { first: 0, count, step: 0 }).collect();
            for (j, &axis) in axes.iter().enumerate() {
                let count = shape[usize::from(axis)];
                steps[usize::from(axis)] = Steps::Even { first: 0, count, step: own[j] as isize };
            }
            picked(OP, array, &steps, shape, memory)
        }
    }
}

/// The lengths of an array changed in place, or in a copy if it is shared.
fn with_shape<T: Copy>(
    mut store: Rc<Store<T>>,
    shape: Vec<usize>,
    memory: &mut Memory,
) -> Result<Rc<Store<T>>, RunErrorKind> {
    unshared(&mut store, "reshape", memory)?.shape = shape;
    Ok(store)
}

pub(super) fn reshape<R: Real>(args: &mut [Val<R>], memory: &mut Memory) -> Result<Val<R>, RunErrorKind> {
    const OP: &str = "reshape";
    let shape = lengths(OP, &args[1..])?;
    let from = args[0].lengths().unwrap_or_default();
    let (before, after) = (from.iter().product::<usize>(), elements_of(OP, &shape)?);
    if before != after {
        return Err(RunErrorKind::BadReshape { from: from.into(), to: shape[..].into() });
    }
    let to_scalar = shape.is_empty();
    Ok(match &args[0] {
        Val::Real(_) | Val::Int(_) | Val::Bool(_) if to_scalar => args[0].clone(),
        Val::Real(x) => Val::from_reals(Store::filled(OP, shape, *x, memory)?),
        Val::Int(x) => Val::from_ints(Store::filled(OP, shape, *x, memory)?),
        Val::Bool(x) => Val::from_bools(Store::filled(OP, shape, *x, memory)?),
        Val::Array(_) => match args[0].take_array() {
            Array::Real(store) if to_scalar => Val::Real(store.data()[0]),
            Array::Int(store) if to_scalar => Val::Int(store.data()[0]),
            Array::Bool(store) if to_scalar => Val::Bool(store.data()[0]),
            Array::Real(store) => Val::Array(Array::Real(with_shape(store, shape, memory)?)),
            Array::Int(store) => Val::Array(Array::Int(with_shape(store, shape, memory)?)),
            Array::Bool(store) => Val::Array(Array::Bool(with_shape(store, shape, memory)?)),
            Array::Empty => unreachable!("an operand is present"),
        },
    })
}

pub(super) fn permute<R: Real>(
    permutation: &[u8],
    args: &mut [Val<R>],
    memory: &mut Memory,
) -> Result<Val<R>, RunErrorKind> {
    if args[0].lengths().is_none() || (is_identity(permutation) && args[0].free().is_some()) {
        return Ok(core::mem::replace(&mut args[0], Val::Int(0)));
    }
    let array = args[0].array();
    let (old, own) = (array.shape(), strides(array.shape()));
    let from = permutation.iter().map(|&axis| usize::from(axis));
    let shape: Vec<usize> = from.clone().map(|axis| old[axis]).collect();
    let steps: Vec<Steps<'_>> =
        from.map(|axis| Steps::Even { first: 0, count: old[axis], step: own[axis] as isize }).collect();
    picked("permute", array, &steps, shape, memory)
}

fn concatenated<T: Copy>(
    parts: &[&Store<T>],
    axis: usize,
    shape: Vec<usize>,
    memory: &Memory,
) -> Result<Store<T>, RunErrorKind> {
    let before: usize = shape[..axis].iter().product();
    let mut made = Store::with_capacity("concat", shape, memory)?;
    for row in 0..before {
        for part in parts {
            let run: usize = part.shape[axis..].iter().product();
            made.buffer().append(&part.data()[row * run..(row + 1) * run]);
        }
    }
    Ok(made)
}

pub(super) fn concat<R: Real>(
    axis: u8,
    args: &[Val<R>],
    memory: &mut Memory,
) -> Result<Val<R>, RunErrorKind> {
    let axis = usize::from(axis);
    let first = args[0].array();
    let mut shape = first.shape().to_vec();
    for arg in &args[1..] {
        let other = arg.array().shape();
        let fits = shape.iter().zip(other).enumerate().all(|(at, (a, b))| at == axis || a == b);
        if !fits {
            return Err(mismatch("concat", first.shape(), other));
        }
        shape[axis] = shape[axis].saturating_add(other[axis]);
    }
    memory.stats.elements_filled += elements_of("concat", &shape)? as u64;
    macro_rules! joined {
        ($elements:ident, $from:ident) => {{
            let parts: Vec<_> = args.iter().map(|arg| arg.array().$elements()).collect();
            Val::$from(concatenated(&parts, axis, shape, memory)?)
        }};
    }
    Ok(match first {
        Array::Real(_) => joined!(reals, from_reals),
        Array::Int(_) => joined!(ints, from_ints),
        Array::Bool(_) => joined!(bools, from_bools),
        Array::Empty => unreachable!("an operand is present"),
    })
}

fn append<T: Copy>(log: &mut Store<T>, x: Source<'_, T>, memory: &Memory) -> Result<(), RunErrorKind> {
    match x {
        Source::One(value) => log.push(value, memory),
        Source::Many(values) => log.append(values, memory),
    }
}

pub(super) fn push_all<R: Real>(args: &mut [Val<R>], memory: &mut Memory) -> Result<Val<R>, RunErrorKind> {
    let mut array = args[0].take_array();
    for x in &args[1..] {
        match &mut array {
            Array::Real(_) => append(array.reals_mut("push", memory)?, x.reals(), memory)?,
            Array::Int(_) => append(array.ints_mut("push", memory)?, x.ints(), memory)?,
            Array::Bool(_) => append(array.bools_mut("push", memory)?, x.bools(), memory)?,
            Array::Empty => unreachable!("an operand is present"),
        }
    }
    Ok(Val::Array(array))
}

pub(super) fn resize<R: Real>(args: &mut [Val<R>], memory: &mut Memory) -> Result<Val<R>, RunErrorKind> {
    const OP: &str = "resize";
    let n = length(OP, args[1].int())?;
    let mut array = args[0].take_array();
    let more = n.saturating_sub(array.shape()[0]) as u64;
    memory.stats.elements_filled += more;
    memory.stats.elements_zeroed += more;
    match &mut array {
        Array::Real(_) => array.reals_mut(OP, memory)?.resize(n, R::zero(), memory)?,
        Array::Int(_) => array.ints_mut(OP, memory)?.resize(n, 0, memory)?,
        Array::Bool(_) => array.bools_mut(OP, memory)?.resize(n, false, memory)?,
        Array::Empty => unreachable!("an operand is present"),
    }
    Ok(Val::Array(array))
}
