//! The singular value decomposition on plain numbers: nalgebra's symmetric eigenvectors, polished by one-sided Jacobi rotations.
//!
//! Input: any finite matrix. Output: thin factors, singular values descending.
//!
//! nalgebra 0.35 has an SVD, but it returns wrong factors without saying so for about one rank-deficient matrix in
//! thirteen, and for some of full rank (its issue 1172); its symmetric eigensolver passed the same trial. So: the eigenvectors `V` of `A^T A`
//! make the columns of `A V` orthogonal up to rounding in `A^T A`, and rotations of pairs of columns remove what is left
//! (Hestenes 1958; Demmel and Veselic 1992, *Jacobi's method is more accurate than QR*), in about two sweeps.
//!
//! Known limit: `O(m n^2)` per sweep without blocking.

use super::kernel::Kernel;
use super::{Svd, dense, float};
use crate::error::Error;
use nalgebra::{DMatrix, DVector, RealField};
use palinode_num::Scalar;

/// How many sweeps over all pairs of columns are tried; two or three are needed.
const SWEEPS: usize = 40;

pub(super) fn svd<F: Kernel + RealField>(a: &DMatrix<F>) -> Result<Svd<F>, Error> {
    if a.nrows() < a.ncols() {
        let Svd { u, singular_values, v_transposed } = svd(&a.transpose())?;
        return Ok(Svd { u: v_transposed.transpose(), singular_values, v_transposed: u.transpose() });
    }
    let no_convergence = Error::NoConvergence { what: "svd" };
    let largest = a.amax();
    let scale = if Scalar::peek(largest) == Some(0.0) { <F as Scalar>::one() } else { largest };
    let scaled = a.map(|x| x / scale);
    let mut v = float::ascending_eigen(&(scaled.transpose() * &scaled))?.vectors;
    let mut w = scaled * &v;
    let mut sweeps = 0;
    while rotate_all_pairs(&mut w, &mut v) {
        sweeps += 1;
        if sweeps == SWEEPS {
            return Err(no_convergence);
        }
    }
    let lengths: Vec<F> = (0..w.ncols()).map(|j| length(&w, j)).collect();
    if !lengths.iter().all(|&length| (length * scale).magnitude().is_finite()) {
        return Err(no_convergence);
    }
    let mut order: Vec<usize> = (0..w.ncols()).collect();
    order.sort_by(|&i, &j| lengths[j].magnitude().total_cmp(&lengths[i].magnitude()));
    let mut u = DMatrix::from_fn(w.nrows(), w.ncols(), |i, j| w[(i, order[j])]);
    for (j, &from) in order.iter().enumerate() {
        make_unit(&mut u, j, lengths[from]);
    }
    Ok(Svd {
        u,
        singular_values: DVector::from_fn(order.len(), |j, _| lengths[order[j]] * scale),
        v_transposed: DMatrix::from_fn(v.ncols(), v.nrows(), |i, j| v[(j, order[i])]),
    })
}

/// Makes each pair of columns of `w` orthogonal, and turns `v` alike; whether there was anything to do.
fn rotate_all_pairs<F: Kernel + RealField>(w: &mut DMatrix<F>, v: &mut DMatrix<F>) -> bool {
    let threshold = w.nrows() as f64 * F::epsilon();
    let mut rotated = false;
    for p in 0..w.ncols() {
        for q in p + 1..w.ncols() {
            let (alpha, beta) = (w.column(p).norm_squared(), w.column(q).norm_squared());
            let gamma = w.column(p).dot(&w.column(q));
            let orthogonal = threshold * alpha.magnitude().sqrt() * beta.magnitude().sqrt();
            let shorter = if alpha < beta { alpha } else { beta };
            if gamma.magnitude() <= orthogonal || shorter.magnitude() <= too_short::<F>().powi(2) {
                continue;
            }
            rotated = true;
            let zeta = (beta - alpha) / (gamma + gamma);
            let one = <F as Scalar>::one();
            let root = Scalar::hypot(one, zeta);
            let tangent = Scalar::copysign(one, zeta) / (Scalar::abs(zeta) + root);
            let cosine = Scalar::recip(Scalar::hypot(one, tangent));
            rotate(w, p, q, cosine, cosine * tangent);
            rotate(v, p, q, cosine, cosine * tangent);
        }
    }
    rotated
}

fn rotate<F: Scalar>(m: &mut DMatrix<F>, p: usize, q: usize, cosine: F, sine: F) {
    for i in 0..m.nrows() {
        let (x, y) = (m[(i, p)], m[(i, q)]);
        m[(i, p)] = cosine * x - sine * y;
        m[(i, q)] = sine * x + cosine * y;
    }
}

/// Up to this length, squares of a column's entries lose their digits, next to entries of size 1 in the matrix.
fn too_short<F: Kernel>() -> f64 {
    F::epsilon().powi(2)
}

/// The length of a column, without squares that vanish.
fn length<F: Kernel + RealField>(m: &DMatrix<F>, column: usize) -> F {
    let column = m.column(column);
    let largest = column.amax();
    if Scalar::peek(largest) == Some(0.0) { largest } else { largest * column.map(|x| x / largest).norm() }
}

/// Divides a column by its length, or, where that is too small for the column to say a direction that is orthogonal to the columns before,
/// finds one that is.
fn make_unit<F: Kernel + RealField>(u: &mut DMatrix<F>, column: usize, length: F) {
    if length.magnitude() > too_short::<F>() {
        u.column_mut(column).iter_mut().for_each(|x| *x /= length);
        return;
    }
    let own_direction = dense::largest(u.column(column).iter());
    if own_direction > 0.0 {
        let scale: F = Scalar::from_f64(own_direction);
        u.column_mut(column).iter_mut().for_each(|x| *x /= scale);
    }
    let axes = (0..u.nrows()).map(|axis| DVector::from_fn(u.nrows(), |i, _| F::from_int((i == axis) as i32)));
    // Some axis has at least this much outside of any space that is not the whole.
    let enough = 0.5 / (u.nrows() as f64).sqrt();
    let candidates: Vec<DVector<F>> = core::iter::once(u.column(column).into_owned()).chain(axes).collect();
    for mut candidate in candidates {
        let start = length_of(&candidate);
        for _ in 0..2 {
            for before in 0..column {
                let overlap = u.column(before).dot(&candidate);
                candidate.axpy(-overlap, &u.column(before), <F as Scalar>::one());
            }
        }
        let rest = length_of(&candidate);
        if start > 0.0 && rest > enough * start {
            u.set_column(column, &candidate.map(|x| x / Scalar::from_f64(rest)));
            return;
        }
    }
}

fn length_of<F: Kernel + RealField>(vector: &DVector<F>) -> f64 {
    vector.norm().magnitude()
}
