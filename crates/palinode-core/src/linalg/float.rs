//! The decompositions of `f32` and `f64`: nalgebra's, with its panics and endless loops turned into errors.
//!
//! Input: finite matrices of fitting shapes. Output: factors in the conventions of `plain.rs`.

use super::kernel::Kernel;
use super::plain::{PlainFactored, all_finite, value_of};
use super::spectrum::tolerance;
use super::{Qr, Svd, SymmetricEigen, Triangle, dense, float_svd};
use crate::error::Error;
use crate::matrix;
use nalgebra::{DMatrix, DVector, RealField};
use palinode_num::Scalar;

/// How many sweeps an iterative decomposition may take per row; it needs two or three.
const SWEEPS_PER_ROW: usize = 100;

pub(super) fn product<F: RealField + Copy>(a: &DMatrix<F>, b: &DMatrix<F>) -> DMatrix<F> {
    a * b
}

pub(super) fn solve_triangular<F: RealField>(
    t: &DMatrix<F>,
    triangle: Triangle,
    transposed: bool,
    b: &DMatrix<F>,
) -> DMatrix<F> {
    match (triangle, transposed) {
        (Triangle::Lower, false) => t.solve_lower_triangular_unchecked(b),
        (Triangle::Lower, true) => t.tr_solve_lower_triangular_unchecked(b),
        (Triangle::Upper, false) => t.solve_upper_triangular_unchecked(b),
        (Triangle::Upper, true) => t.tr_solve_upper_triangular_unchecked(b),
    }
}

/// Always there: what is singular is seen by its pivots.
pub(super) fn factor<F: Kernel + RealField>(a: &DMatrix<F>) -> Result<PlainFactored<F>, usize> {
    let (swaps, l, u) = nalgebra::LU::new(a.clone()).unpack();
    let mut rows = DVector::from_fn(a.nrows(), |i, _| i);
    swaps.permute_rows(&mut rows);
    Ok(PlainFactored { permutation: rows.data.into(), permutation_is_odd: swaps.len() % 2 == 1, l, u })
}

pub(super) fn cholesky<F: Kernel + RealField>(a: &DMatrix<F>) -> Option<DMatrix<F>> {
    Some(nalgebra::Cholesky::new(dense::symmetrised(a))?.unpack())
}

pub(super) fn qr<F: Kernel + RealField>(a: &DMatrix<F>) -> Qr<F> {
    let scales = DVector::from_fn(a.ncols(), |j, _| column_scale(a, j));
    let qr = nalgebra::QR::new(DMatrix::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)] / scales[j]));
    Qr { q: qr.q(), r: dense::columns_scaled(&qr.r(), &scales) }
}

/// What to divide a column by so that the squares of its entries neither overflow nor vanish; 1 if they do not anyway.
fn column_scale<F: Kernel + RealField>(a: &DMatrix<F>, column: usize) -> F {
    let largest = dense::largest(a.column(column).iter());
    let margin = F::epsilon().powi(2);
    let is_ordinary = (margin..=margin.recip()).contains(&largest) || largest == 0.0;
    Scalar::from_f64(if is_ordinary { 1.0 } else { largest })
}

pub(super) fn svd<F: Kernel + RealField>(a: &DMatrix<F>) -> Result<Svd<F>, Error> {
    let Svd { mut u, singular_values, v_transposed } = float_svd::svd(a)?;
    let (rows, columns) = a.shape();
    let mut v = v_transposed.transpose();
    let (of_u, of_v) = ((u.as_mut_slice(), rows), (v.as_mut_slice(), columns));
    matrix::turn_singular_vectors(singular_values.as_slice(), of_u, of_v, F::epsilon());
    Ok(Svd { u, singular_values, v_transposed: v.transpose() })
}

pub(super) fn symmetric_eigen<F: Kernel + RealField>(a: &DMatrix<F>) -> Result<SymmetricEigen<F>, Error> {
    let SymmetricEigen { values, mut vectors } = ascending_eigen(a)?;
    let n = values.len();
    matrix::for_each_run(values.as_slice(), tolerance(&values, n), |run| {
        matrix::turn(vectors.as_mut_slice(), n, run, false);
    });
    Ok(SymmetricEigen { values, vectors })
}

/// Without a choice of basis where values coincide.
pub(super) fn ascending_eigen<F: Kernel + RealField>(a: &DMatrix<F>) -> Result<SymmetricEigen<F>, Error> {
    let n = a.nrows();
    if n == 0 {
        return Ok(SymmetricEigen { values: DVector::from_vec(vec![]), vectors: a.clone() });
    }
    let no_convergence = Error::NoConvergence { what: "symmetric_eigen" };
    let sweeps = SWEEPS_PER_ROW * n;
    let eigen = nalgebra::SymmetricEigen::try_new(dense::symmetrised(a), F::default_epsilon(), sweeps)
        .ok_or_else(|| no_convergence.clone())?;
    let values = &eigen.eigenvalues;
    if !all_finite(values.iter()) || !all_finite(eigen.eigenvectors.iter()) {
        return Err(no_convergence);
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| value_of(values[i]).total_cmp(&value_of(values[j])));
    Ok(SymmetricEigen {
        values: DVector::from_fn(n, |i, _| values[order[i]]),
        vectors: DMatrix::from_fn(n, n, |i, j| eigen.eigenvectors[(i, order[j])]),
    })
}
