//! Values at run time: arrays that are shared until they are changed, and rounding to single precision.
//!
//! Invariant: an array is changed in place only if nothing else holds it; otherwise it is copied first, and
//! the copy is counted.

use core::any::Any;
use std::rc::Rc;

use palinode_core::{Real, Scalar};

use super::error::{RunErrorKind, Shape};
use super::ledger::Memory;
use super::store::Store;
use super::tensor::{Datum, Tensor};
use crate::types::Elem;

/// An array register.
#[derive(Clone, Debug)]
pub(super) enum Array<R> {
    /// Not in use, or taken.
    Empty,
    Real(Rc<Store<R>>),
    Int(Rc<Store<i64>>),
    Bool(Rc<Store<bool>>),
}

const TYPED: &str = "the verifier: operands have the types that the operation needs";
const PRESENT: &str = "an array is not used after it was taken";

/// What each kind of elements has of its own.
macro_rules! by_kind {
    ($($kind:ident $T:ty: $get:ident $get_mut:ident $from:ident;)*) => {
        impl<R> Array<R> {$(
            #[inline(always)]
            pub(super) fn $get(&self) -> &Store<$T> {
                let Array::$kind(store) = self else { wrong(self) };
                store
            }
        )*}

        impl<R: Copy> Array<R> {$(
            #[inline(always)]
            pub(super) fn $get_mut(
                &mut self,
                op: &'static str,
                memory: &mut Memory,
            ) -> Result<&mut Store<$T>, RunErrorKind> {
                let Array::$kind(store) = self else { wrong(self) };
                unshared(store, op, memory)
            }
        )*}

        impl<R: Copy> Val<R> {$(
            pub(super) fn $get(&self) -> Source<'_, $T> {
                match self {
                    Val::$kind(value) => Source::One(*value),
                    Val::Array(array) => Source::Many(array.$get().data()),
                    _ => unreachable!("{TYPED}"),
                }
            }

            pub(super) fn $from(store: Store<$T>) -> Val<R> {
                Val::Array(Array::$kind(Rc::new(store)))
            }
        )*}
    };
}

by_kind! {
    Real R: reals reals_mut from_reals;
    Int i64: ints ints_mut from_ints;
    Bool bool: bools bools_mut from_bools;
}

/// The same of the elements of an array, whatever they are.
macro_rules! of_any {
    ($array:expr, $store:ident => $body:expr) => {
        match $array {
            Array::Real($store) => $body,
            Array::Int($store) => $body,
            Array::Bool($store) => $body,
            Array::Empty => unreachable!("an array is not used after it was taken"),
        }
    };
}

/// An array of the same kind of elements as another, made of those.
macro_rules! same_kind {
    ($array:expr, $store:ident => $made:expr) => {
        match $array {
            Array::Real($store) => Val::from_reals($made),
            Array::Int($store) => Val::from_ints($made),
            Array::Bool($store) => Val::from_bools($made),
            Array::Empty => unreachable!("an array is not used after it was taken"),
        }
    };
}
pub(super) use same_kind;

impl<R> Array<R> {
    pub(super) fn shape(&self) -> &[usize] {
        of_any!(self, store => &store.shape)
    }
}

impl<R: Copy> Array<R> {
    /// Brings an array in chunks into one buffer. Whoever else holds it keeps the chunks.
    #[inline]
    pub(super) fn flatten(&mut self, op: &'static str, memory: &mut Memory) -> Result<(), RunErrorKind> {
        match self {
            Array::Real(store) if store.in_chunks() => flatten(store, op, memory),
            Array::Int(store) if store.in_chunks() => flatten(store, op, memory),
            Array::Bool(store) if store.in_chunks() => flatten(store, op, memory),
            Array::Real(_) | Array::Int(_) | Array::Bool(_) | Array::Empty => Ok(()),
        }
    }

    /// Makes sure that nothing else holds the array, without counting what that takes as a copy: it is about
    /// to be overwritten.
    pub(super) fn own(&mut self, op: &'static str, memory: &Memory) -> Result<(), RunErrorKind> {
        fn own<T: Copy>(
            store: &mut Rc<Store<T>>,
            op: &'static str,
            memory: &Memory,
        ) -> Result<(), RunErrorKind> {
            if Rc::strong_count(store) != 1 {
                *store = Rc::new(store.copied(op, memory)?);
            }
            Ok(())
        }
        of_any!(self, store => own(store, op, memory))
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

/// The array to change: itself if nothing else holds it, else a copy.
#[inline(always)]
pub(super) fn unshared<'a, T: Copy>(
    store: &'a mut Rc<Store<T>>,
    op: &'static str,
    memory: &mut Memory,
) -> Result<&'a mut Store<T>, RunErrorKind> {
    if Rc::strong_count(store) != 1 {
        copy(store, op, memory)?;
    }
    Ok(Rc::get_mut(store).expect("nothing else holds it"))
}

#[cold]
#[inline(never)]
fn copy<T: Copy>(
    store: &mut Rc<Store<T>>,
    op: &'static str,
    memory: &mut Memory,
) -> Result<(), RunErrorKind> {
    memory.stats.elements_copied += store.len() as u64;
    *store = Rc::new(store.copied(op, memory)?);
    Ok(())
}

#[cold]
#[inline(never)]
fn flatten<T: Copy>(
    store: &mut Rc<Store<T>>,
    op: &'static str,
    memory: &mut Memory,
) -> Result<(), RunErrorKind> {
    memory.stats.elements_flattened += store.len() as u64;
    *store = Rc::new(store.copied(op, memory)?);
    Ok(())
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
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'a, T> {
    One(T),
    Many(&'a [T]),
}

/// A value as one of the type that it has: what runs on any number asks whether that is `f64`.
pub(super) fn known<A: 'static, B: 'static>(value: &mut A) -> Option<&mut B> {
    (value as &mut dyn Any).downcast_mut()
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

    /// The kind of its elements, as which both kinds of reals are one.
    pub(super) fn elem(&self) -> Elem {
        match self {
            Val::Real(_) | Val::Array(Array::Real(_)) => Elem::F64,
            Val::Int(_) | Val::Array(Array::Int(_)) => Elem::Int,
            Val::Bool(_) | Val::Array(Array::Bool(_)) => Elem::Bool,
            Val::Array(Array::Empty) => unreachable!("{PRESENT}"),
        }
    }

    /// The kind of an array that nothing else holds.
    pub(super) fn free(&self) -> Option<Elem> {
        let is_free = match self {
            Val::Array(Array::Empty) | Val::Real(_) | Val::Int(_) | Val::Bool(_) => false,
            Val::Array(array) => of_any!(array, store => Rc::strong_count(store) == 1),
        };
        is_free.then(|| self.elem())
    }

    /// An input, copied into memory of the run, without looking at its type.
    pub(super) fn from_datum(datum: &Datum<R>, memory: &Memory) -> Result<Val<R>, RunErrorKind> {
        const OP: &str = "input";
        Ok(match datum {
            Datum::Real(Tensor { shape, data }) if shape.is_empty() => Val::Real(data[0]),
            Datum::Int(Tensor { shape, data }) if shape.is_empty() => Val::Int(data[0]),
            Datum::Bool(Tensor { shape, data }) if shape.is_empty() => Val::Bool(data[0]),
            Datum::Real(Tensor { shape, data }) => {
                Val::from_reals(Store::from_slice(OP, shape.clone(), data, memory)?)
            }
            Datum::Int(Tensor { shape, data }) => {
                Val::from_ints(Store::from_slice(OP, shape.clone(), data, memory)?)
            }
            Datum::Bool(Tensor { shape, data }) => {
                Val::from_bools(Store::from_slice(OP, shape.clone(), data, memory)?)
            }
        })
    }

    /// The bytes of its elements.
    pub(super) fn bytes(&self) -> u64 {
        (match self {
            Val::Real(_) => size_of::<R>(),
            Val::Int(_) => size_of::<i64>(),
            Val::Bool(_) => size_of::<bool>(),
            Val::Array(Array::Real(store)) => store.len() * size_of::<R>(),
            Val::Array(Array::Int(store)) => store.len() * size_of::<i64>(),
            Val::Array(Array::Bool(store)) => store.len() * size_of::<bool>(),
            Val::Array(Array::Empty) => 0,
        }) as u64
    }

    /// An output, copied into memory of the caller.
    pub(super) fn into_datum(self) -> Datum<R> {
        fn tensor<T: Copy>(store: &Store<T>) -> Tensor<T> {
            let mut data = Vec::with_capacity(store.len());
            store.chunks().for_each(|chunk| data.extend_from_slice(chunk));
            Tensor { shape: store.shape.clone(), data }
        }
        match self {
            Val::Real(value) => Datum::real(value),
            Val::Int(value) => Datum::int(value),
            Val::Bool(value) => Datum::bool(value),
            Val::Array(Array::Real(store)) => Datum::Real(tensor(&store)),
            Val::Array(Array::Int(store)) => Datum::Int(tensor(&store)),
            Val::Array(Array::Bool(store)) => Datum::Bool(tensor(&store)),
            Val::Array(Array::Empty) => unreachable!("{PRESENT}"),
        }
    }
}

impl<R: Real> Val<R> {
    /// Rounds every real to single precision.
    pub(super) fn round32(&mut self, op: &'static str, memory: &mut Memory) -> Result<(), RunErrorKind> {
        match self {
            Val::Real(value) => *value = round32(*value),
            Val::Array(array @ Array::Real(_)) => {
                let data = array.reals_mut(op, memory)?.data_mut();
                data.iter_mut().for_each(|value| *value = round32(*value));
            }
            Val::Int(_) | Val::Bool(_) | Val::Array(_) => {}
        }
        Ok(())
    }
}

/// The primal, without a decision of the program's by it.
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
        // The difference of a number and its rounding needs no more bits than the number: both steps are
        // exact.
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

/// A length of the program as one of ours.
pub(super) fn length(op: &'static str, n: i64) -> Result<usize, RunErrorKind> {
    usize::try_from(n).map_err(|_| RunErrorKind::NegativeLength { op, length: n })
}

pub(super) fn mismatch(op: &'static str, left: &[usize], right: &[usize]) -> RunErrorKind {
    RunErrorKind::ShapeMismatch { op, left: Shape::from(left), right: Shape::from(right) }
}
