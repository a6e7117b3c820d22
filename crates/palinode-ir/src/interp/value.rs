//! Values at run time: arrays that are shared until they are changed, and rounding to single precision.
//!
//! Invariant: an array is changed in place only if nothing else holds it; otherwise it is copied first, and the copy is counted.

use std::rc::Rc;

use palinode_core::{Real, Scalar};

use super::Stats;
use super::error::{RunErrorKind, Shape};
use super::tensor::{Datum, Tensor};

/// An array register.
#[derive(Clone, Debug)]
pub(super) enum Array<R> {
    /// Not in use, or taken.
    Empty,
    Real(Rc<Tensor<R>>),
    Int(Rc<Tensor<i64>>),
    Bool(Rc<Tensor<bool>>),
}

const TYPED: &str = "the verifier: operands have the types that the operation needs";
const PRESENT: &str = "an array is not used after it was taken";

impl<R> Array<R> {
    #[inline(always)]
    pub(super) fn reals(&self) -> &Tensor<R> {
        let Array::Real(tensor) = self else { wrong(self) };
        tensor
    }

    #[inline(always)]
    pub(super) fn ints(&self) -> &Tensor<i64> {
        let Array::Int(tensor) = self else { wrong(self) };
        tensor
    }

    #[inline(always)]
    pub(super) fn bools(&self) -> &Tensor<bool> {
        let Array::Bool(tensor) = self else { wrong(self) };
        tensor
    }

    #[inline(always)]
    pub(super) fn reals_mut(&mut self, stats: &mut Stats) -> &mut Tensor<R>
    where
        R: Clone,
    {
        let Array::Real(tensor) = self else { wrong(self) };
        unshared(tensor, stats)
    }

    #[inline(always)]
    pub(super) fn ints_mut(&mut self, stats: &mut Stats) -> &mut Tensor<i64> {
        let Array::Int(tensor) = self else { wrong(self) };
        unshared(tensor, stats)
    }

    #[inline(always)]
    pub(super) fn bools_mut(&mut self, stats: &mut Stats) -> &mut Tensor<bool> {
        let Array::Bool(tensor) = self else { wrong(self) };
        unshared(tensor, stats)
    }

    pub(super) fn shape(&self) -> &[usize] {
        match self {
            Array::Real(tensor) => &tensor.shape,
            Array::Int(tensor) => &tensor.shape,
            Array::Bool(tensor) => &tensor.shape,
            Array::Empty => wrong(self),
        }
    }
}

#[cold]
#[inline(never)]
fn wrong<R>(array: &Array<R>) -> ! {
    match array {
        Array::Empty => unreachable!("{PRESENT}"),
        Array::Real(_) | Array::Int(_) | Array::Bool(_) => unreachable!("{TYPED}"),
    }
}

/// The tensor to change: itself if nothing else holds it, else a copy.
#[inline(always)]
pub(super) fn unshared<'a, T: Clone>(tensor: &'a mut Rc<Tensor<T>>, stats: &mut Stats) -> &'a mut Tensor<T> {
    if Rc::strong_count(tensor) != 1 {
        copy(tensor, stats);
    }
    Rc::get_mut(tensor).expect("nothing else holds it")
}

#[cold]
#[inline(never)]
fn copy<T: Clone>(tensor: &mut Rc<Tensor<T>>, stats: &mut Stats) {
    stats.elements_copied += tensor.data.len() as u64;
    *tensor = Rc::new((**tensor).clone());
}

/// The tensor itself if nothing else holds it, else a copy.
pub(super) fn owned<T: Clone>(tensor: Rc<Tensor<T>>, stats: &mut Stats) -> Tensor<T> {
    Rc::try_unwrap(tensor).unwrap_or_else(|shared| {
        stats.elements_copied += shared.data.len() as u64;
        (*shared).clone()
    })
}

/// An operand or result of a kernel.
#[derive(Clone, Debug)]
pub(super) enum Val<R> {
    Real(R),
    Int(i64),
    Bool(bool),
    Array(Array<R>),
}

/// Elements to go through: the same for every place, or one for each.
#[derive(Clone, Copy)]
pub(super) enum Source<'a, T> {
    One(T),
    Many(&'a [T]),
}

impl<T: Copy> Source<'_, T> {
    #[inline(always)]
    pub(super) fn get(&self, at: usize) -> T {
        match self {
            Source::One(value) => *value,
            Source::Many(values) => values[at],
        }
    }
}

impl<R: Copy> Val<R> {
    /// The lengths of an array; `None` for a scalar.
    pub(super) fn lengths(&self) -> Option<&[usize]> {
        match self {
            Val::Real(_) | Val::Int(_) | Val::Bool(_) => None,
            Val::Array(array) => Some(array.shape()),
        }
    }

    pub(super) fn reals(&self) -> Source<'_, R> {
        match self {
            Val::Real(value) => Source::One(*value),
            Val::Array(array) => Source::Many(&array.reals().data),
            Val::Int(_) | Val::Bool(_) => unreachable!("{TYPED}"),
        }
    }

    pub(super) fn ints(&self) -> Source<'_, i64> {
        match self {
            Val::Int(value) => Source::One(*value),
            Val::Array(array) => Source::Many(&array.ints().data),
            Val::Real(_) | Val::Bool(_) => unreachable!("{TYPED}"),
        }
    }

    pub(super) fn bools(&self) -> Source<'_, bool> {
        match self {
            Val::Bool(value) => Source::One(*value),
            Val::Array(array) => Source::Many(&array.bools().data),
            Val::Real(_) | Val::Int(_) => unreachable!("{TYPED}"),
        }
    }

    pub(super) fn int(&self) -> i64 {
        let Val::Int(value) = self else { unreachable!("{TYPED}") };
        *value
    }

    pub(super) fn array(&self) -> &Array<R> {
        let Val::Array(array) = self else { unreachable!("{TYPED}") };
        array
    }

    /// Takes the array out.
    pub(super) fn take_array(&mut self) -> Array<R> {
        let Val::Array(array) = self else { unreachable!("{TYPED}") };
        core::mem::replace(array, Array::Empty)
    }

    /// Reals, of rank 0 or more.
    pub(super) fn from_reals(shape: Vec<usize>, data: Vec<R>) -> Val<R> {
        if shape.is_empty() {
            Val::Real(data[0])
        } else {
            Val::Array(Array::Real(Rc::new(Tensor { shape, data })))
        }
    }

    pub(super) fn from_ints(shape: Vec<usize>, data: Vec<i64>) -> Val<R> {
        if shape.is_empty() {
            Val::Int(data[0])
        } else {
            Val::Array(Array::Int(Rc::new(Tensor { shape, data })))
        }
    }

    pub(super) fn from_bools(shape: Vec<usize>, data: Vec<bool>) -> Val<R> {
        if shape.is_empty() {
            Val::Bool(data[0])
        } else {
            Val::Array(Array::Bool(Rc::new(Tensor { shape, data })))
        }
    }

    /// An input, without looking at its type.
    pub(super) fn from_datum(datum: &Datum<R>) -> Val<R> {
        match datum.clone() {
            Datum::Real(tensor) => Val::from_reals(tensor.shape, tensor.data),
            Datum::Int(tensor) => Val::from_ints(tensor.shape, tensor.data),
            Datum::Bool(tensor) => Val::from_bools(tensor.shape, tensor.data),
        }
    }

    /// As an output.
    pub(super) fn into_datum(self, stats: &mut Stats) -> Datum<R> {
        match self {
            Val::Real(value) => Datum::real(value),
            Val::Int(value) => Datum::int(value),
            Val::Bool(value) => Datum::bool(value),
            Val::Array(Array::Real(tensor)) => Datum::Real(owned(tensor, stats)),
            Val::Array(Array::Int(tensor)) => Datum::Int(owned(tensor, stats)),
            Val::Array(Array::Bool(tensor)) => Datum::Bool(owned(tensor, stats)),
            Val::Array(Array::Empty) => unreachable!("{PRESENT}"),
        }
    }
}

impl<R: Real> Val<R> {
    /// Rounds every real to single precision.
    pub(super) fn round32(&mut self, stats: &mut Stats) {
        match self {
            Val::Real(value) => *value = round32(*value),
            Val::Array(array @ Array::Real(_)) => {
                array.reals_mut(stats).data.iter_mut().for_each(|value| *value = round32(*value));
            }
            Val::Int(_) | Val::Bool(_) | Val::Array(_) => {}
        }
    }
}

/// The primal, without deciding anything by it.
#[inline(always)]
pub(super) fn primal<R: Scalar>(x: R) -> f64 {
    x.peek().unwrap_or(f64::NAN)
}

/// The number with its primal rounded to single precision; derivatives pass unchanged.
///
/// Known limit: a derivative number over more than double precision keeps the bits of its primal below `f64`.
pub(super) fn round32<R: Real>(x: R) -> R {
    let exact = primal(x);
    #[allow(clippy::cast_possible_truncation)] // rounding is the purpose
    let rounded = f64::from(exact as f32);
    if x.carries_nothing() {
        R::from_f64(rounded)
    } else if rounded == exact || exact.is_nan() {
        x
    } else if rounded == 0.0 && exact < 0.0 {
        // x + (0 - x) would lose the sign of the zero.
        -(-x + exact)
    } else {
        // The difference of a number and its rounding needs no more bits than the number: both steps are exact.
        x + (rounded - exact)
    }
}

/// The number as a constant; exact for numbers that carry nothing.
#[inline]
pub(super) fn stop<R: Real>(x: R) -> R {
    if x.carries_nothing() { x } else { R::from_f64(primal(x)) }
}

/// The nearest number to an integer.
#[inline]
pub(super) fn from_int<R: Real>(n: i64) -> R {
    const EXACT: u64 = 1 << 53;
    if n.unsigned_abs() <= EXACT {
        R::from_f64(n as f64)
    } else {
        // Two halves that are exact, so that numbers of more bits than f64 get them all.
        let high = (n >> 32) << 32;
        R::from_f64(high as f64) + (n - high) as f64
    }
}

/// The integer part of a real. Of an active value this is a decision.
#[inline]
pub(super) fn to_int<R: Real>(x: R) -> Result<i64, RunErrorKind> {
    let value = x.to_f64().trunc();
    // 2^63 is a double, 2^63 - 1 is not.
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value) {
        Ok(value as i64)
    } else {
        Err(RunErrorKind::NotAnInteger { value: x.to_f64() })
    }
}

/// How many elements an array of this shape has, if it can exist.
pub(super) fn elements_of(op: &'static str, shape: &[usize]) -> Result<usize, RunErrorKind> {
    let product = shape.iter().try_fold(1usize, |product, &length| product.checked_mul(length));
    product.ok_or_else(|| RunErrorKind::TooLarge { op, shape: shape.into() })
}

/// Room for an array of this shape.
pub(super) fn room<T>(op: &'static str, shape: &[usize]) -> Result<Vec<T>, RunErrorKind> {
    let mut data = Vec::new();
    match data.try_reserve_exact(elements_of(op, shape)?) {
        Ok(()) => Ok(data),
        Err(_) => Err(RunErrorKind::TooLarge { op, shape: shape.into() }),
    }
}

/// An array of this shape, full of one element.
pub(super) fn filled<T: Clone>(op: &'static str, shape: &[usize], value: T) -> Result<Vec<T>, RunErrorKind> {
    let mut data = room(op, shape)?;
    data.resize(elements_of(op, shape)?, value);
    Ok(data)
}

/// A length of the program as one of ours.
pub(super) fn length(op: &'static str, n: i64) -> Result<usize, RunErrorKind> {
    usize::try_from(n).map_err(|_| RunErrorKind::NegativeLength { op, length: n })
}

pub(super) fn mismatch(op: &'static str, left: &[usize], right: &[usize]) -> RunErrorKind {
    RunErrorKind::ShapeMismatch { op, left: Shape::from(left), right: Shape::from(right) }
}
