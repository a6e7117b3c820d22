//! Small matrix arithmetic that the rules share, for any number.
//!
//! Input -> output: matrices of one number type to new ones. Entry-wise work is done with the number's own
//! operations; products and triangular solves go through [`Kernel`], so that on a tape each stays one node.
//! There is no derivative in this file.

use super::kernel::{Kernel, Made};
use super::results::Triangle;
use crate::error::Error;
use crate::matrix::tangents::{Algebra, Part};
use core::marker::PhantomData;
use nalgebra::{DMatrix, DVector};
use palinode_num::{Accumulator, Scalar};

/// Matrices of one number, for the formulas of tangents.
pub(super) struct Matrices<S>(PhantomData<S>);

impl<S> Matrices<S> {
    pub(super) fn new() -> Self {
        Matrices(PhantomData)
    }
}

impl<S: Kernel> Algebra for Matrices<S> {
    type Matrix = DMatrix<S>;
    type Error = Error;

    fn product(&mut self, a: &DMatrix<S>, a_transposed: bool, b: &DMatrix<S>, b_transposed: bool) -> Made<S> {
        match (a_transposed, b_transposed) {
            (false, false) => S::matmul(a, b),
            (true, false) => S::matmul(&a.transpose(), b),
            (false, true) => S::matmul(a, &b.transpose()),
            (true, true) => Ok(S::matmul(b, a)?.transpose()),
        }
    }
    fn solve_triangular(&mut self, t: &DMatrix<S>, lower: bool, transposed: bool, b: &DMatrix<S>) -> Made<S> {
        let triangle = if lower { Triangle::Lower } else { Triangle::Upper };
        S::solve_triangular(t, triangle, transposed, b)
    }
    fn transposed(&mut self, a: &DMatrix<S>) -> DMatrix<S> {
        a.transpose()
    }
    fn sum(&mut self, a: &DMatrix<S>, b: &DMatrix<S>) -> DMatrix<S> {
        sum(a, b)
    }
    fn difference(&mut self, a: &DMatrix<S>, b: &DMatrix<S>) -> DMatrix<S> {
        difference(a, b)
    }
    fn negated(&mut self, a: &DMatrix<S>) -> DMatrix<S> {
        negated(a)
    }
    fn symmetric(&mut self, a: &DMatrix<S>) -> DMatrix<S> {
        symmetrised(a)
    }
    fn antisymmetric(&mut self, a: &DMatrix<S>) -> DMatrix<S> {
        scaled(&difference(a, &a.transpose()), S::half())
    }
    fn part(&mut self, a: &DMatrix<S>, wanted: Part, _like: &DMatrix<S>) -> DMatrix<S> {
        part(a, wanted)
    }
    fn spans_all(&self, basis: &DMatrix<S>) -> bool {
        basis.nrows() == basis.ncols()
    }
}

/// `n` by `n`, ones on the diagonal.
pub(super) fn identity<S: Kernel>(n: usize) -> DMatrix<S> {
    DMatrix::from_fn(n, n, |i, j| if i == j { S::one() } else { S::zero() })
}

/// The entries of one column on the diagonal, zero elsewhere.
pub(super) fn diagonal<S: Kernel>(column: &DMatrix<S>) -> DMatrix<S> {
    let n = column.nrows();
    DMatrix::from_fn(n, n, |i, j| if i == j { column[i] } else { S::zero() })
}

/// The primal as a plain number. Not a decision: there is one formula, whatever it is.
pub(super) fn value_of<S: Scalar>(x: S) -> f64 {
    x.glance().unwrap_or(f64::NAN)
}

/// The primals, without derivatives.
pub(super) fn constants<S: Kernel>(a: &DMatrix<S>) -> DMatrix<S> {
    a.map(|x| S::from_f64(value_of(x)))
}

/// Whether every entry is zero in every component.
pub(super) fn vanishes<S: Kernel>(a: &DMatrix<S>) -> bool {
    a.iter().all(|x| x.vanishes())
}

pub(super) fn sum<S: Kernel>(a: &DMatrix<S>, b: &DMatrix<S>) -> DMatrix<S> {
    a.zip_map(b, |x, y| x + y)
}

pub(super) fn difference<S: Kernel>(a: &DMatrix<S>, b: &DMatrix<S>) -> DMatrix<S> {
    a.zip_map(b, |x, y| x - y)
}

pub(super) fn negated<S: Kernel>(a: &DMatrix<S>) -> DMatrix<S> {
    a.map(|x| -x)
}

/// `factor * a`.
pub(super) fn scaled<S: Kernel>(a: &DMatrix<S>, factor: S) -> DMatrix<S> {
    a.map(|x| x * factor)
}

/// `(a + a^T) / 2`; each term is halved first, so that nothing overflows.
pub(super) fn symmetrised<S: Kernel>(a: &DMatrix<S>) -> DMatrix<S> {
    let half = S::half();
    DMatrix::from_fn(a.nrows(), a.ncols(), |i, j| match i == j {
        true => a[(i, i)],
        false => a[(i, j)] * half + a[(j, i)] * half,
    })
}

/// One part of a square matrix, zero elsewhere.
pub(super) fn part<S: Kernel>(a: &DMatrix<S>, part: Part) -> DMatrix<S> {
    DMatrix::from_fn(a.nrows(), a.ncols(), |i, j| match part {
        Part::LowerHalf if i == j => a[(i, j)] * S::half(),
        Part::Lower | Part::LowerHalf if i >= j => a[(i, j)],
        Part::StrictlyLower if i > j => a[(i, j)],
        Part::Upper if i <= j => a[(i, j)],
        Part::Lower | Part::LowerHalf | Part::StrictlyLower | Part::Upper => S::zero(),
    })
}

/// `a` with column `j` multiplied by `factors[j]`: `a diag(factors)`.
pub(super) fn columns_scaled<S: Kernel>(a: &DMatrix<S>, factors: &DVector<S>) -> DMatrix<S> {
    DMatrix::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)] * factors[j])
}

/// `a^T b`.
pub(super) fn transposed_product<S: Kernel>(a: &DMatrix<S>, b: &DMatrix<S>) -> Result<DMatrix<S>, Error> {
    S::matmul(&a.transpose(), b)
}

/// `a b` as dot products of rows and columns, each accumulated as asked for.
pub(super) fn product_of_dots<S: Kernel>(a: &DMatrix<S>, b: &DMatrix<S>, how: Accumulator) -> DMatrix<S> {
    // Matrices lie column by column, so the rows of `a` are the columns of its transpose.
    let (rows, inner) = (a.transpose(), a.ncols());
    let line = |j: usize| j * inner..(j + 1) * inner;
    DMatrix::from_fn(a.nrows(), b.ncols(), |i, j| {
        S::dot_with(&rows.as_slice()[line(i)], &b.as_slice()[line(j)], how)
    })
}

/// `[a b]`.
pub(super) fn beside<S: Kernel>(a: &DMatrix<S>, b: &DMatrix<S>) -> DMatrix<S> {
    let n = a.ncols();
    DMatrix::from_fn(a.nrows(), n + b.ncols(), |i, j| if j < n { a[(i, j)] } else { b[(i, j - n)] })
}

/// `a` above `b`.
pub(super) fn above<S: Kernel>(a: &DMatrix<S>, b: &DMatrix<S>) -> DMatrix<S> {
    let n = a.nrows();
    DMatrix::from_fn(n + b.nrows(), a.ncols(), |i, j| if i < n { a[(i, j)] } else { b[(i - n, j)] })
}

/// The sum of the products of corresponding entries.
pub(super) fn inner_product<S: Kernel>(a: &DMatrix<S>, b: &DMatrix<S>) -> S {
    S::dot(a.as_slice(), b.as_slice())
}

/// The largest [`Kernel::magnitude`] of the entries; zero if there are none.
pub(super) fn largest<'a, S: Kernel>(entries: impl IntoIterator<Item = &'a S>) -> f64 {
    entries.into_iter().fold(0.0, |largest, x| largest.max(x.magnitude()))
}

/// A matrix of one column as a vector.
pub(super) fn as_vector<S: Kernel>(column: &DMatrix<S>) -> DVector<S> {
    DVector::from_column_slice(column.as_slice())
}

/// A vector as a matrix of one column.
pub(super) fn as_column<S: Kernel>(vector: &DVector<S>) -> DMatrix<S> {
    DMatrix::from_column_slice(vector.len(), 1, vector.as_slice())
}

/// The heap bytes of matrices with so many entries in all.
pub(super) fn bytes<S>(entries: usize) -> usize {
    entries * size_of::<S>()
}
