//! The kernels on plain numbers: [`crate::matrix`]'s algorithms, with its refusals turned into errors.
//! nalgebra's matrices lie by columns as this crate's do, so they are handed over as they are.
//!
//! Input: finite matrices of fitting shapes. Output: factors in this module's conventions: eigenvalues
//! ascending, singular values descending, the diagonal of R not negative, every size down to 0 allowed; of a
//! space whose values coincide, a basis that is nobody's favourite ([`crate::matrix`]).
//!
//! A matrix counts as singular when a pivot is within its own rounding error: the pivot `u_ii` is a
//! difference of terms whose absolute values add up to `(|L| |U|)_ii`, so below `n eps` times that nothing is
//! known of it (Higham, *Accuracy and Stability of Numerical Algorithms*, 9.3). The test does not change when
//! rows or columns are scaled.

use super::dense;
use super::kernel::{Kernel, Made};
use super::results::{Lu, Qr, Svd, SymmetricEigen, Triangle};
use crate::error::Error;
use crate::matrix::tangents::Part;
use crate::matrix::{self, Matrix};
use nalgebra::{DMatrix, DVector};
use palinode_num::products::{MatrixView, add_product};
use palinode_num::{Accumulator, Scalar};
use std::sync::Arc;

/// A copy as this crate's own matrix.
pub(super) fn own<F: Kernel>(a: &DMatrix<F>) -> Matrix<F> {
    Matrix { rows: a.nrows(), columns: a.ncols(), data: a.as_slice().to_vec() }
}

pub(super) fn given_back<F: Kernel>(a: Matrix<F>) -> DMatrix<F> {
    DMatrix::from_vec(a.rows, a.columns, a.data)
}

/// The factors, or the error that names the pivot which says nothing.
fn factored<F: Kernel>(what: &'static str, a: &DMatrix<F>) -> Result<matrix::Lu<F>, Error> {
    let lu = matrix::Lu::new(own(a)).map_err(|pivot| Error::Singular { what, pivot, value: 0.0 })?;
    let (n, factors) = (a.nrows(), &lu.factors);
    for pivot in 0..n {
        let value = value_of(factors[(pivot, pivot)]);
        let term = |k| (value_of(factors[(pivot, k)]) * value_of(factors[(k, pivot)])).abs();
        let summed = (0..pivot).map(term).sum::<f64>() + value.abs();
        if is_noise(value, n as f64 * F::epsilon() * summed) {
            return Err(Error::Singular { what, pivot, value });
        }
    }
    Ok(lu)
}

pub(super) fn factor<F: Kernel>(what: &'static str, a: &DMatrix<F>) -> Result<Arc<matrix::Lu<F>>, Error> {
    factored(what, a).map(Arc::new)
}

/// The product of the pivots; without one it is zero.
pub(super) fn determinant<F: Kernel>(a: &DMatrix<F>) -> Result<F, Error> {
    Ok(matrix::Lu::new(own(a)).map_or(F::zero(), |lu| {
        let sign = F::from_int(if lu.is_odd { -1 } else { 1 });
        lu.pivots().fold(sign, |product, pivot| product * pivot)
    }))
}

pub(super) fn log_determinant<F: Kernel>(lu: &matrix::Lu<F>) -> Result<(f64, F), Error> {
    let sign = if lu.is_odd { -1.0 } else { 1.0 };
    let add = |(sign, sum): (f64, F), pivot: F| (sign * value_of(pivot).signum(), sum + pivot.abs().ln());
    Ok(lu.pivots().fold((sign, F::zero()), add))
}

pub(super) fn solve_factored<F: Kernel>(lu: &matrix::Lu<F>, transposed: bool, b: &DMatrix<F>) -> Made<F> {
    let mut x = b.clone();
    lu.solve(transposed, x.as_mut_slice());
    Ok(x)
}

pub(super) fn inverse<F: Kernel>(a: &DMatrix<F>) -> Result<DMatrix<F>, Error> {
    solve_factored(&factored("inverse", a)?, false, &dense::identity(a.nrows()))
}

pub(super) fn lu<F: Kernel>(a: &DMatrix<F>) -> Result<Lu<F>, Error> {
    let matrix::Lu { factors, from, .. } = factored("lu", a)?;
    let both = given_back(factors);
    let l = dense::sum(&dense::part(&both, Part::StrictlyLower), &dense::identity(a.nrows()));
    Ok(Lu { permutation: from, l, u: dense::part(&both, Part::Upper) })
}

pub(super) fn product<F: Kernel>(a: &DMatrix<F>, b: &DMatrix<F>, how: Accumulator) -> Made<F> {
    Ok(match how {
        Accumulator::Naive => {
            let mut product = DMatrix::from_element(a.nrows(), b.ncols(), F::zero());
            // Columns after columns are the rows of the transpose.
            let [a, b] = [a, b].map(|m| MatrixView::by_rows(m.as_slice(), m.ncols(), m.nrows()));
            add_product(product.as_mut_slice(), b, a, false);
            product
        }
        Accumulator::Compensated | Accumulator::Exact => dense::product_of_dots(a, b, how),
    })
}

pub(super) fn solve_triangular<F: Kernel>(
    t: &DMatrix<F>,
    triangle: Triangle,
    transposed: bool,
    b: &DMatrix<F>,
) -> Result<DMatrix<F>, Error> {
    let t = if transposed { own(t).transposed() } else { own(t) };
    let mut x = b.clone();
    let lower = matches!(triangle, Triangle::Lower) != transposed;
    matrix::substitute(&t, lower, false, x.as_mut_slice());
    Ok(x)
}

pub(super) fn cholesky<F: Kernel>(a: &DMatrix<F>) -> Result<DMatrix<F>, Error> {
    let refused = |_| Error::NotPositiveDefinite { what: "cholesky" };
    matrix::cholesky(own(a)).map(given_back).map_err(refused)
}

pub(super) fn symmetric_eigen<F: Kernel>(a: &DMatrix<F>) -> Result<SymmetricEigen<F>, Error> {
    let found = matrix::symmetric_eigen(own(a));
    let (values, vectors) = found.ok_or(Error::NoConvergence { what: "symmetric_eigen" })?;
    Ok(SymmetricEigen { values: DVector::from_vec(values), vectors: given_back(vectors) })
}

pub(super) fn symmetric_eigenvalues<F: Kernel>(a: &DMatrix<F>) -> Result<DVector<F>, Error> {
    Ok(symmetric_eigen(a)?.values)
}

pub(super) fn svd<F: Kernel>(a: &DMatrix<F>) -> Result<Svd<F>, Error> {
    let (u, s, v) = matrix::svd(&own(a)).ok_or(Error::NoConvergence { what: "svd" })?;
    let v_transposed = given_back(v.transposed());
    Ok(Svd { u: given_back(u), singular_values: DVector::from_vec(s), v_transposed })
}

pub(super) fn singular_values<F: Kernel>(a: &DMatrix<F>) -> Result<DVector<F>, Error> {
    Ok(svd(a)?.singular_values)
}

/// An error if a diagonal entry of R is rounding error.
pub(super) fn qr<F: Kernel>(a: &DMatrix<F>) -> Result<Qr<F>, Error> {
    let (q, r) = matrix::qr(&own(a));
    for pivot in 0..r.columns {
        let value = value_of(r[(pivot, pivot)]);
        let column = dense::largest(r.column(pivot));
        if is_noise(value, q.rows as f64 * F::epsilon() * column) {
            return Err(Error::Singular { what: "qr", pivot, value });
        }
    }
    Ok(Qr { q: given_back(q), r: given_back(r) })
}

/// Whether a pivot is within its rounding error; also if either overflowed on the way.
fn is_noise(pivot: f64, rounding_error: f64) -> bool {
    pivot.abs() <= rounding_error || !pivot.is_finite() || rounding_error.is_nan()
}

pub(super) fn value_of<F: Scalar>(x: F) -> f64 {
    x.peek().unwrap_or(f64::NAN)
}
