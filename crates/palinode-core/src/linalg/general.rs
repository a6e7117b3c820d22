//! The decompositions of double-doubles and posits, by [`crate::matrix`]: nalgebra's kernels want traits that these numbers do not have.
//!
//! Input and output as in `float.rs`, whose twin this is. Only conversions between nalgebra's matrices, by columns, and matrices by rows.

use super::kernel::Kernel;
use super::plain::PlainFactored;
use super::{Qr, Svd, SymmetricEigen, Triangle, dense};
use crate::error::Error;
use crate::matrix::{self, Matrix};
use nalgebra::{DMatrix, DVector};
use palinode_num::{Accumulator, Real};

/// Rows of the transpose are columns, which is how nalgebra keeps them.
fn by_rows<R: Real>(a: &DMatrix<R>) -> Matrix<R> {
    Matrix { rows: a.nrows(), columns: a.ncols(), data: a.transpose().as_slice().to_vec() }
}

fn by_columns<R: Real>(a: &Matrix<R>) -> DMatrix<R> {
    DMatrix::from_row_slice(a.rows, a.columns, &a.data)
}

pub(super) fn product<R: Real + Kernel>(a: &DMatrix<R>, b: &DMatrix<R>) -> DMatrix<R> {
    dense::product_of_dots(a, b, Accumulator::Naive)
}

pub(super) fn solve_triangular<R: Real>(
    t: &DMatrix<R>,
    triangle: Triangle,
    transposed: bool,
    b: &DMatrix<R>,
) -> DMatrix<R> {
    let t = if transposed { by_rows(&t.transpose()) } else { by_rows(t) };
    let lower = matches!(triangle, Triangle::Lower) != transposed;
    let mut x = b.clone();
    for mut column in x.column_iter_mut() {
        matrix::substitute(&t, lower, false, column.as_mut_slice());
    }
    x
}

pub(super) fn factor<R: Real>(a: &DMatrix<R>) -> Result<PlainFactored<R>, usize> {
    let matrix::Lu { factors, from } = matrix::Lu::new(by_rows(a))?;
    let n = a.nrows();
    let l = DMatrix::from_fn(n, n, |i, j| match i.cmp(&j) {
        core::cmp::Ordering::Greater => factors[(i, j)],
        core::cmp::Ordering::Equal => R::one(),
        core::cmp::Ordering::Less => R::zero(),
    });
    let u = DMatrix::from_fn(n, n, |i, j| if i <= j { factors[(i, j)] } else { R::zero() });
    let inversions = (0..n).flat_map(|i| (i..n).map(move |j| (i, j))).filter(|&(i, j)| from[i] > from[j]);
    Ok(PlainFactored { permutation_is_odd: inversions.count() % 2 == 1, permutation: from, l, u })
}

pub(super) fn cholesky<R: Real>(a: &DMatrix<R>) -> Option<DMatrix<R>> {
    matrix::cholesky(by_rows(a)).ok().map(|l| by_columns(&l))
}

pub(super) fn qr<R: Real>(a: &DMatrix<R>) -> Qr<R> {
    let (q, r) = matrix::qr(&by_rows(a));
    Qr { q: by_columns(&q), r: by_columns(&r) }
}

pub(super) fn symmetric_eigen<R: Real>(a: &DMatrix<R>) -> Result<SymmetricEigen<R>, Error> {
    let (values, vectors) =
        matrix::symmetric_eigen(by_rows(a)).ok_or(Error::NoConvergence { what: "symmetric_eigen" })?;
    Ok(SymmetricEigen { values: DVector::from_vec(values), vectors: by_columns(&vectors) })
}

pub(super) fn svd<R: Real>(a: &DMatrix<R>) -> Result<Svd<R>, Error> {
    let (u, s, v) = matrix::svd(&by_rows(a)).ok_or(Error::NoConvergence { what: "svd" })?;
    Ok(Svd {
        u: by_columns(&u),
        singular_values: DVector::from_vec(s),
        v_transposed: by_columns(&v).transpose(),
    })
}
