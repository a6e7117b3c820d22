//! What goes into a run and comes out: dense arrays of reals, integers or truth values.
//!
//! Invariant of every tensor that a run gives back: as many elements as the product of its lengths.

use crate::types::{Elem, Type};
use palinode_core::Scalar;

/// A dense array in row-major order: the last index runs fastest. A scalar has the shape `[]` and one
/// element.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor<T> {
    /// The length along each axis.
    pub shape: Vec<usize>,
    /// The elements.
    pub data: Vec<T>,
}

impl<T> Tensor<T> {
    /// A scalar.
    pub fn scalar(value: T) -> Tensor<T> {
        Tensor { shape: Vec::new(), data: vec![value] }
    }

    /// An array with one axis.
    pub fn vector(data: Vec<T>) -> Tensor<T> {
        Tensor { shape: vec![data.len()], data }
    }

    /// A matrix of `rows` times `columns` elements.
    ///
    /// # Panics
    /// If the number of elements is another.
    pub fn matrix(rows: usize, columns: usize, data: Vec<T>) -> Tensor<T> {
        let elements = rows.checked_mul(columns);
        assert_eq!(elements, Some(data.len()), "a {rows} by {columns} matrix of {} elements", data.len());
        Tensor { shape: vec![rows, columns], data }
    }

    /// How many axes there are.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    pub(super) fn is_consistent(&self) -> bool {
        super::store::counted(&self.shape) == Some(self.data.len())
    }
}

/// An input or output of a program.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum<R> {
    /// Real numbers.
    Real(Tensor<R>),
    /// Integers.
    Int(Tensor<i64>),
    /// Truth values.
    Bool(Tensor<bool>),
}

impl<R> Datum<R> {
    /// A real scalar.
    pub fn real(value: R) -> Datum<R> {
        Datum::Real(Tensor::scalar(value))
    }

    /// An integer.
    pub fn int(value: i64) -> Datum<R> {
        Datum::Int(Tensor::scalar(value))
    }

    /// A truth value.
    pub fn bool(value: bool) -> Datum<R> {
        Datum::Bool(Tensor::scalar(value))
    }

    /// Real numbers along one axis.
    pub fn vector(values: Vec<R>) -> Datum<R> {
        Datum::Real(Tensor::vector(values))
    }

    /// Real numbers in rows and columns.
    ///
    /// # Panics
    /// If there are not `rows * columns` of them.
    pub fn matrix(rows: usize, columns: usize, values: Vec<R>) -> Datum<R> {
        Datum::Real(Tensor::matrix(rows, columns, values))
    }

    /// Integers along one axis.
    pub fn ints(values: Vec<i64>) -> Datum<R> {
        Datum::Int(Tensor::vector(values))
    }

    /// Truth values along one axis.
    pub fn bools(values: Vec<bool>) -> Datum<R> {
        Datum::Bool(Tensor::vector(values))
    }

    /// The number, of a real scalar.
    pub fn as_real(&self) -> Option<R>
    where
        R: Copy,
    {
        match self {
            Datum::Real(Tensor { shape, data }) if shape.is_empty() => data.first().copied(),
            Datum::Real(_) | Datum::Int(_) | Datum::Bool(_) => None,
        }
    }

    /// The elements of real numbers of any shape.
    pub fn as_vector(&self) -> Option<&[R]> {
        match self {
            Datum::Real(tensor) => Some(&tensor.data),
            Datum::Int(_) | Datum::Bool(_) => None,
        }
    }

    /// The integer, of a scalar.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Datum::Int(Tensor { shape, data }) if shape.is_empty() => data.first().copied(),
            Datum::Real(_) | Datum::Int(_) | Datum::Bool(_) => None,
        }
    }

    /// The elements of integers of any shape.
    pub fn as_ints(&self) -> Option<&[i64]> {
        match self {
            Datum::Int(tensor) => Some(&tensor.data),
            Datum::Real(_) | Datum::Bool(_) => None,
        }
    }

    /// The truth value, of a scalar.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Datum::Bool(Tensor { shape, data }) if shape.is_empty() => data.first().copied(),
            Datum::Real(_) | Datum::Int(_) | Datum::Bool(_) => None,
        }
    }

    /// The elements of truth values of any shape.
    pub fn as_bools(&self) -> Option<&[bool]> {
        match self {
            Datum::Bool(tensor) => Some(&tensor.data),
            Datum::Real(_) | Datum::Int(_) => None,
        }
    }

    /// The length along each axis.
    pub fn shape(&self) -> &[usize] {
        match self {
            Datum::Real(tensor) => &tensor.shape,
            Datum::Int(tensor) => &tensor.shape,
            Datum::Bool(tensor) => &tensor.shape,
        }
    }

    /// How many elements there are.
    pub fn elements(&self) -> usize {
        match self {
            Datum::Real(tensor) => tensor.data.len(),
            Datum::Int(tensor) => tensor.data.len(),
            Datum::Bool(tensor) => tensor.data.len(),
        }
    }

    /// Its type; reals count as [`Elem::F64`], and fit parameters of either kind of reals.
    pub fn ty(&self) -> Type {
        let elem = match self {
            Datum::Real(_) => Elem::F64,
            Datum::Int(_) => Elem::Int,
            Datum::Bool(_) => Elem::Bool,
        };
        Type::array(elem, u8::try_from(self.shape().len()).unwrap_or(u8::MAX))
    }

    /// The same shape and integers with other numbers for the reals, which are visited in order.
    pub fn map<S>(&self, number: impl FnMut(R) -> S) -> Datum<S>
    where
        R: Copy,
    {
        match self {
            Datum::Real(Tensor { shape, data }) => {
                Datum::Real(Tensor { shape: shape.clone(), data: data.iter().copied().map(number).collect() })
            }
            Datum::Int(tensor) => Datum::Int(tensor.clone()),
            Datum::Bool(tensor) => Datum::Bool(tensor.clone()),
        }
    }
}

impl Datum<f64> {
    /// The same data as constants of another number.
    pub fn lift<R: Scalar>(&self) -> Datum<R> {
        self.map(R::from_f64)
    }
}
