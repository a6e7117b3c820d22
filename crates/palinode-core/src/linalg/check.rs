//! What every operation asks of its arguments: shapes that fit and finite entries.
//!
//! Input: matrices as the caller passed them. Output: nothing, or an error that names what, where and why.
//! Only the public functions check; rules call the kernels directly, because a cotangent may be anything.

pub(super) use crate::error::same_length as length;

use crate::error::Error;
use nalgebra::{DMatrix, Dim, Matrix, RawStorage};
use palinode_num::Scalar;

/// An error unless it is square and finite.
pub(super) fn square<T: Scalar>(what: &'static str, matrix: &DMatrix<T>) -> Result<(), Error> {
    shape(what, matrix, matrix.is_square(), "be square")
}

/// An error unless it is finite and there are no more columns than rows.
pub(super) fn tall<T: Scalar>(what: &'static str, matrix: &DMatrix<T>) -> Result<(), Error> {
    shape(what, matrix, matrix.nrows() >= matrix.ncols(), "have at least as many rows as columns")
}

fn shape<T: Scalar>(what: &'static str, a: &DMatrix<T>, fits: bool, must: &'static str) -> Result<(), Error> {
    let (rows, columns) = a.shape();
    if fits { finite(what, a) } else { Err(Error::Shape { what, rows, columns, must }) }
}

/// An error unless it is square and finite, which names the first pair of entries that should be equal and
/// are not, by far.
pub(super) fn symmetric<T: Scalar>(what: &'static str, matrix: &DMatrix<T>) -> Result<(), Error> {
    square(what, matrix)?;
    // A check, not a decision.
    let entry = |i: usize, j: usize| matrix[(i, j)].glance().unwrap_or(f64::NAN);
    match crate::matrix::asymmetry(matrix.nrows(), entry) {
        Some((row, column)) => {
            let (value, mirrored) = (entry(row, column), entry(column, row));
            Err(Error::NotSymmetric { what, row, column, value, mirrored })
        }
        None => Ok(()),
    }
}

/// An error that names the first entry of a matrix which is infinite or NaN.
pub(super) fn finite<T: Scalar, R: Dim, C: Dim>(
    what: &'static str,
    matrix: &Matrix<T, R, C, impl RawStorage<T, R, C>>,
) -> Result<(), Error> {
    for (at, x) in matrix.iter().enumerate() {
        // A check, not a decision: there is one formula for all that pass it.
        if let Some(value) = x.glance().filter(|value| !value.is_finite()) {
            let (row, column) = (at % matrix.nrows(), at / matrix.nrows());
            return Err(Error::NonFiniteEntry { what, row, column, value });
        }
    }
    Ok(())
}
