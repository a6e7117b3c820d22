//! What every operation asks of its arguments: shapes that fit and finite entries.
//!
//! Input: matrices as the caller passed them. Output: nothing, or an error that names what, where and why.
//! Only the public functions check; rules call the kernels directly, because a cotangent may be anything.

pub(super) use crate::error::same_length as length;

use crate::error::Error;
use nalgebra::DMatrix;
use palinode_num::Scalar;

/// An error that states the shape, unless it is square.
pub(super) fn square<T>(what: &'static str, matrix: &DMatrix<T>) -> Result<(), Error> {
    let (rows, columns) = (matrix.nrows(), matrix.ncols());
    if rows == columns { Ok(()) } else { Err(Error::Shape { what, rows, columns, must: "be square" }) }
}

/// An error that states the shape, if there are more columns than rows.
pub(super) fn tall<T>(what: &'static str, matrix: &DMatrix<T>) -> Result<(), Error> {
    let (rows, columns) = (matrix.nrows(), matrix.ncols());
    if rows >= columns {
        return Ok(());
    }
    Err(Error::Shape { what, rows, columns, must: "have at least as many rows as columns" })
}

/// An error that names the first pair of entries which should be equal and are not, by far.
pub(super) fn symmetric<T: Scalar>(what: &'static str, matrix: &DMatrix<T>) -> Result<(), Error> {
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
pub(super) fn finite<T: Scalar>(what: &'static str, matrix: &DMatrix<T>) -> Result<(), Error> {
    for column in 0..matrix.ncols() {
        for row in 0..matrix.nrows() {
            // A check, not a decision: there is one formula for all that pass it.
            if let Some(value) = matrix[(row, column)].glance().filter(|value| !value.is_finite()) {
                return Err(Error::NonFiniteEntry { what, row, column, value });
            }
        }
    }
    Ok(())
}
