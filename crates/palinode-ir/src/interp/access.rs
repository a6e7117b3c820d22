//! Reading, writing and adding at the places that axes name.
//!
//! Input: an array, an [`Axis`] for each of its axes, their operands. Output: the elements, or the changed
//! array. Cost: in proportion to the elements named, whatever the size of the array (once it is not shared).

use core::cell::Cell;

use palinode_core::Real;
use palinode_core::machine::{Task, on_this_machine};

use super::error::RunErrorKind;
use super::ledger::Memory;
use super::places::{Steps, walk};
use super::store::{Buffer, Store};
use super::trap;
use super::value::{Array, Source, Val, mismatch, round32, same_kind};
use super::workspace::SHORT_LIST;
use crate::op::Axis;

fn index(i: i64, axis: usize, length: usize) -> Result<usize, RunErrorKind> {
    match usize::try_from(i) {
        Ok(at) if at < length => Ok(at),
        Ok(_) | Err(_) => Err(RunErrorKind::IndexOutOfRange { index: i, axis, length }),
    }
}

/// What an access reaches.
struct Region<'a> {
    steps: Vec<Steps<'a>>,
    /// The lengths of the axes that stay.
    shape: Vec<usize>,
}

/// An error if a list names an index twice.
fn check_once(indices: &[i64], axis: usize, memory: &Memory) -> Result<(), RunErrorKind> {
    let twice = if indices.len() <= SHORT_LIST {
        indices.iter().enumerate().find(|&(at, index)| indices[..at].contains(index)).map(|(_, &index)| index)
    } else {
        let mut sorted: Buffer<i64> = Buffer::workspace("write", indices.len(), memory)?;
        sorted.append(indices);
        sorted.sort_unstable();
        sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    };
    twice.map_or(Ok(()), |index| Err(RunErrorKind::DuplicateIndex { index, axis }))
}

/// Checks the operands of the axes against the lengths of the array; `once` says that nothing may be named
/// twice.
fn region<'a, R: Real>(
    op: &'static str,
    axes: &[Axis],
    operands: &'a [Val<R>],
    shape: &[usize],
    once: bool,
    memory: &Memory,
) -> Result<Region<'a>, RunErrorKind> {
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
                let indices = mine[0].array().ints().data();
                indices.iter().try_for_each(|&i| self::index(i, at, length).map(drop))?;
                if once {
                    check_once(indices, at, memory)?;
                }
                Steps::Listed { indices, stride }
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
) -> Result<Steps<'static>, RunErrorKind> {
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

/// The elements of a region, in a new array.
fn gather<T: Copy>(
    store: &Store<T>,
    region: Region<'_>,
    memory: &mut Memory,
) -> Result<Store<T>, RunErrorKind> {
    let mut made = Store::with_capacity("read", region.shape, memory)?;
    let buffer = made.buffer();
    memory.stats.elements_filled += buffer.left() as u64;
    if store.in_chunks() {
        let get = |at| store.get(at).expect(INSIDE);
        walk(&region.steps, 0, &mut |row| row.places().for_each(|at| buffer.push(get(at))));
    } else {
        buffer.pick(store.data(), &region.steps);
    }
    Ok(made)
}

const INSIDE: &str = "places have been checked";

/// The element of a region without axes.
fn single<T: Copy>(store: &Store<T>, region: &Region<'_>, memory: &mut Memory) -> T {
    memory.stats.elements_filled += 1;
    let mut found = 0;
    walk(&region.steps, 0, &mut |row| found = row.first);
    store.get(found).expect(INSIDE)
}

pub(super) fn read<R: Real>(
    axes: &[Axis],
    args: &[Val<R>],
    memory: &mut Memory,
) -> Result<Val<R>, RunErrorKind> {
    let array = args[0].array();
    let region = region("read", axes, &args[1..], array.shape(), false, memory)?;
    let is_scalar = region.shape.is_empty();
    Ok(match array {
        Array::Real(store) if is_scalar => Val::Real(single(store, &region, memory)),
        Array::Int(store) if is_scalar => Val::Int(single(store, &region, memory)),
        Array::Bool(store) if is_scalar => Val::Bool(single(store, &region, memory)),
        array => same_kind!(array, store => gather(store, region, memory)?),
    })
}

fn check_fits<R: Real>(op: &'static str, region: &Region<'_>, x: &Val<R>) -> Result<(), RunErrorKind> {
    match x.lengths() {
        Some(lengths) if lengths != region.shape => Err(mismatch(op, &region.shape, lengths)),
        Some(_) | None => Ok(()),
    }
}

/// Changes every element of a region by a function of it and of the element that goes there: neighbours by
/// `many`, the others by `one`.
#[inline(always)]
fn change<T: Copy>(
    store: &mut Store<T>,
    region: &Region<'_>,
    x: Source<'_, T>,
    mut many: impl FnMut(&mut [T], Source<'_, T>),
    mut one: impl FnMut(&mut T, T),
) {
    let mut next = 0;
    if store.in_chunks() {
        walk(&region.steps, 0, &mut |row| {
            for at in row.places() {
                one(store.get_mut(at).expect(INSIDE), x.get(next));
                next += 1;
            }
        });
        return;
    }
    let data = store.data_mut();
    walk(&region.steps, 0, &mut |row| {
        match row.neighbours() {
            Some(places) => {
                let x = match x {
                    Source::One(x) => Source::One(x),
                    Source::Many(x) => Source::Many(&x[next..next + row.count]),
                };
                many(&mut data[places], x);
            }
            None => row.places().zip(next..).for_each(|(at, next)| one(&mut data[at], x.get(next))),
        }
        next += row.count;
    });
}

fn scatter<T: Copy>(store: &mut Store<T>, region: &Region<'_>, x: Source<'_, T>) {
    let all = |places: &mut [T], x: Source<'_, T>| match x {
        Source::One(x) => places.fill(x),
        Source::Many(x) => places.copy_from_slice(x),
    };
    change(store, region, x, all, |place, x| *place = x);
}

pub(super) fn write<R: Real>(
    axes: &[Axis],
    args: &mut [Val<R>],
    memory: &mut Memory,
) -> Result<Val<R>, RunErrorKind> {
    const OP: &str = "write";
    let mut array = args[0].take_array();
    let region = region(OP, axes, &args[2..], array.shape(), true, memory)?;
    let x = &args[1];
    check_fits(OP, &region, x)?;
    match &mut array {
        Array::Real(_) => scatter(array.reals_mut(OP, memory)?, &region, x.reals()),
        Array::Int(_) => scatter(array.ints_mut(OP, memory)?, &region, x.ints()),
        Array::Bool(_) => scatter(array.bools_mut(OP, memory)?, &region, x.bools()),
        Array::Empty => unreachable!("an operand is present"),
    }
    Ok(Val::Array(array))
}

pub(super) fn add_at<R: Real>(
    axes: &[Axis],
    args: &mut [Val<R>],
    single: bool,
    trap: bool,
    memory: &mut Memory,
) -> Result<Val<R>, RunErrorKind> {
    const OP: &str = "add_at";
    let mut array = args[0].take_array();
    let region = region(OP, axes, &args[2..], array.shape(), false, memory)?;
    check_fits(OP, &region, &args[1])?;
    if !region.shape.is_empty() {
        memory.stats.elements_added += region.shape.iter().product::<usize>() as u64;
    }
    let failed = Cell::new(None);
    let one = |place: &mut R, more: R| {
        let old = *place;
        *place = if single { round32(old + more) } else { old + more };
        if trap && !place.is_finite() {
            let earlier = failed.take();
            failed.set(earlier.or_else(|| trap::check_named(OP, &[old, more], *place).err()));
        }
    };
    let many = |places: &mut [R], more: Source<'_, R>| {
        let is_plain = R::IS_FLOAT && !single && (!trap || on_this_machine(AreFinite(places, more)));
        if is_plain {
            on_this_machine(AddTo(places, more));
        } else {
            places.iter_mut().enumerate().for_each(|(at, place)| one(place, more.get(at)));
        }
    };
    change(array.reals_mut(OP, memory)?, &region, args[1].reals(), many, one);
    match failed.into_inner() {
        Some(kind) => Err(kind),
        None => Ok(Val::Array(array)),
    }
}

/// Numbers that are added to others.
struct AddTo<'a, R>(&'a mut [R], Source<'a, R>);

impl<R: Real> Task for AddTo<'_, R> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        match self.1 {
            Source::One(more) => self.0.iter_mut().for_each(|place| *place += more),
            Source::Many(more) => {
                self.0.iter_mut().zip(more).for_each(|(place, &more)| *place += more);
            }
        }
    }
}

/// Whether all these sums are finite.
struct AreFinite<'a, R>(&'a [R], Source<'a, R>);

impl<R: Real> Task for AreFinite<'_, R> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        let places = self.0.iter();
        match self.1 {
            Source::One(more) => places.fold(true, |all, &place| all & (place + more).is_finite()),
            Source::Many(more) => {
                places.zip(more).fold(true, |all, (&place, &more)| all & (place + more).is_finite())
            }
        }
    }
}
