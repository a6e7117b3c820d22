//! The triangular factors of a matrix: Cholesky's, `LU` and `QR`. Saved are the factors.
//!
//! Of a symmetric positive definite matrix:
//! `A = L L^T`, as a function of the symmetric part `(A + A^T) / 2`: both triangles are read, and a cotangent
//! is spread evenly over an entry and its mirror image. Tangent: `L^-1 dA L^-T = L^-1 dL + (L^-1 dL)^T`, and
//! `L^-1 dL` is lower triangular, so `dL = L F(L^-1 dA L^-T)` where `F` takes the lower triangle with half
//! the diagonal. Cotangent: `F` is its own adjoint on lower triangles, so `A' = sym(L^-T F(L^T L') L^-1)`
//! (Giles 2008, 2.2.6; Murray 2016, *Differentiation of the Cholesky decomposition*).
//!
//! Of an invertible matrix, rows exchanged for size:
//! `P A = L U` with ones on the diagonal of `L`; `P` is constant near `A`. Tangent: with
//! `G = L^-1 P dA U^-1 = L^-1 dL + dU U^-1`, whose first term is strictly lower and whose second is upper
//! triangular, `dL = L lower(G)` and `dU = upper(L^-1 P dA - lower(G) U)`. Cotangent:
//! `A' = P^T L^-T (U' + lower(L^T L' - U' U^T) U^-T)` (de Hoog, Anderssen and Lukas 2011, *Differentiation of
//! matrix functionals using triangular factorization*; written so that nothing is divided by a pivot and
//! multiplied with it again).
//!
//! Known limit: where two candidate pivots tie, the factors jump; the result follows the pivots taken.
//!
//! Of a matrix of full column rank:
//! `A = Q R`, `A` with at least as many rows as columns, `Q^T Q = I`, the diagonal of `R` positive, so the
//! factors are unique. Tangent: with `C = dA R^-1` and `X = Q^T C = Q^T dQ + dR R^-1`, the first term is
//! antisymmetric and the second upper triangular, so `Q^T dQ = W = lower(X) - lower(X)^T`,
//! `dR = Q^T dA - W R` and `dQ = Q W + (C - Q X)`. Cotangent: with `N = Q^T Q' + R R'^T`,
//! `A' = Q (R' + lower(N - N^T) R^-T) + (I - Q Q^T) Q' R^-T` (Walter and Lehmann 2010, *Algorithmic
//! differentiation of linear algebra functions*, with what cancels taken out: nothing is divided by `R` and
//! multiplied with it again, and the last terms of `dQ` and `A'`, which lie outside the columns of `Q`, are
//! left away for square matrices, which have none; so a small pivot of `R` disturbs only what depends on it).

use super::kernel::Kernel;
use super::lifted::{Layout, Lifted, Rule, inner_of};
use super::results::{Lu, Qr, Triangle};
use super::{LinearAlgebra, check, dense};
use crate::error::Error;
use crate::matrix::tangents::{self, Part};
use nalgebra::DMatrix;

/// The lower triangular `L` with a positive diagonal for which `L L^T` is the symmetric part of `a`.
///
/// An error if that is not positive definite.
///
/// ```
/// use nalgebra::DMatrix;
/// use palinode_core::{grad, linalg};
///
/// let g = grad(|x| {
///     let l = linalg::cholesky(&DMatrix::from_column_slice(2, 2, x)).unwrap();
///     l[(1, 0)] // a[(1, 0)] / sqrt(a[(0, 0)]), of which each triangle gives one half
/// }, &[4.0, 2.0, 2.0, 5.0])?;
/// assert_eq!(g, [-0.125, 0.25, 0.25, 0.0]);
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn cholesky<T: LinearAlgebra>(a: &DMatrix<T>) -> Result<DMatrix<T>, Error> {
    check::symmetric("cholesky's matrix", a)?;
    T::cholesky(a)
}

struct Cholesky<S> {
    l: DMatrix<S>,
}

pub(super) fn lifted_cholesky<T: Lifted>(a: &DMatrix<T>) -> Result<DMatrix<T>, Error> {
    let l = T::Inner::cholesky(&inner_of(a))?;
    let [x] = T::apply(&[a], [l.clone()], Cholesky { l })?;
    Ok(x)
}

impl<S: Kernel> Rule<S> for Cholesky<S> {
    const NAME: &'static str = "cholesky";
    const OUTPUTS: &'static [Layout] = &[Layout::Lower];

    fn tangent(&self, inputs: &[DMatrix<S>]) -> Result<Vec<DMatrix<S>>, Error> {
        Ok(vec![tangents::cholesky(&mut dense::Matrices::new(), &inputs[0], &self.l)?])
    }

    fn cotangent(&self, outputs: &[DMatrix<S>], _wanted: &[bool]) -> Result<Vec<Option<DMatrix<S>>>, Error> {
        let solve = |m: &DMatrix<S>| S::solve_triangular(&self.l, Triangle::Lower, true, m);
        let of_factor = dense::transposed_product(&self.l, &outputs[0])?;
        let middle = dense::part(&of_factor, Part::LowerHalf);
        let both = solve(&solve(&middle)?.transpose())?;
        Ok(vec![Some(dense::symmetrised(&both))])
    }

    fn saved_bytes(&self) -> usize {
        dense::bytes::<S>(self.l.len())
    }
}

/// The LU factors of an invertible matrix, with partial pivoting.
///
/// An error if the matrix is singular as far as rounding can tell.
///
/// ```
/// use nalgebra::DMatrix;
/// use palinode_core::linalg;
///
/// let lu = linalg::lu(&DMatrix::from_row_slice(2, 2, &[1.0, 2.0, 4.0, 4.0]))?;
/// assert_eq!(lu.permutation, [1, 0]);
/// assert_eq!((lu.l[(1, 0)], lu.u[(1, 1)]), (0.25, 1.0));
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn lu<T: LinearAlgebra>(a: &DMatrix<T>) -> Result<Lu<T>, Error> {
    check::square("lu's matrix", a)?;
    T::lu(a)
}

pub(super) fn lifted_lu<T: Lifted>(a: &DMatrix<T>) -> Result<Lu<T>, Error> {
    let factors = T::Inner::lu(&inner_of(a))?;
    let permutation = factors.permutation.clone();
    let [l, u] = T::apply(&[a], [factors.l.clone(), factors.u.clone()], factors)?;
    Ok(Lu { permutation, l, u })
}

impl<S: Kernel> Rule<S> for Lu<S> {
    const NAME: &'static str = "lu";
    const OUTPUTS: &'static [Layout] = &[Layout::StrictlyLower, Layout::Upper];

    fn tangent(&self, inputs: &[DMatrix<S>]) -> Result<Vec<DMatrix<S>>, Error> {
        let Lu { permutation, l, u } = self;
        let permuted = DMatrix::from_fn(l.nrows(), l.ncols(), |i, j| inputs[0][(permutation[i], j)]);
        let left = S::solve_triangular(l, Triangle::Lower, false, &permuted)?;
        let g = S::solve_triangular(u, Triangle::Upper, true, &left.transpose())?.transpose();
        let lower = dense::part(&g, Part::StrictlyLower);
        let du = dense::part(&dense::difference(&left, &S::matmul(&lower, u)?), Part::Upper);
        Ok(vec![S::matmul(l, &lower)?, du])
    }

    fn cotangent(&self, outputs: &[DMatrix<S>], _wanted: &[bool]) -> Result<Vec<Option<DMatrix<S>>>, Error> {
        let Lu { permutation, l, u } = self;
        let of_u = S::matmul(&outputs[1], &u.transpose())?;
        let lower = dense::difference(&dense::transposed_product(l, &outputs[0])?, &of_u);
        let lower = dense::part(&lower, Part::StrictlyLower).transpose();
        let right = S::solve_triangular(u, Triangle::Upper, false, &lower)?.transpose();
        let permuted = S::solve_triangular(l, Triangle::Lower, true, &dense::sum(&outputs[1], &right))?;
        let mut a = permuted.clone();
        for (i, &row) in permutation.iter().enumerate() {
            a.row_mut(row).copy_from(&permuted.row(i));
        }
        Ok(vec![Some(a)])
    }

    fn saved_bytes(&self) -> usize {
        let Lu { permutation, l, u } = self;
        permutation.capacity() * size_of::<usize>() + dense::bytes::<S>(l.len() + u.len())
    }
}

/// The thin QR factors of a matrix with at least as many rows as columns.
///
/// An error if there are fewer rows, or a column depends on those before it as far as rounding can tell.
///
/// ```
/// use nalgebra::DMatrix;
/// use palinode_core::{grad, linalg};
///
/// let g = grad(|x| linalg::qr(&DMatrix::from_column_slice(2, 1, x)).unwrap().r[0], &[3.0f64, 4.0])?;
/// assert!((g[0] - 0.6).abs() < 1e-15 && (g[1] - 0.8).abs() < 1e-15); // of the length of the column
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn qr<T: LinearAlgebra>(a: &DMatrix<T>) -> Result<Qr<T>, Error> {
    check::tall("qr's matrix", a)?;
    T::qr(a)
}

pub(super) fn lifted_qr<T: Lifted>(a: &DMatrix<T>) -> Result<Qr<T>, Error> {
    let factors = T::Inner::qr(&inner_of(a))?;
    let [q, r] = T::apply(&[a], [factors.q.clone(), factors.r.clone()], factors)?;
    Ok(Qr { q, r })
}

impl<S: Kernel> Rule<S> for Qr<S> {
    const NAME: &'static str = "qr";
    const OUTPUTS: &'static [Layout] = &[Layout::Full, Layout::Upper];

    fn tangent(&self, inputs: &[DMatrix<S>]) -> Result<Vec<DMatrix<S>>, Error> {
        Ok(tangents::qr(&mut dense::Matrices::new(), &inputs[0], &self.q, &self.r)?.into())
    }

    fn cotangent(&self, outputs: &[DMatrix<S>], _wanted: &[bool]) -> Result<Vec<Option<DMatrix<S>>>, Error> {
        let Qr { q, r } = self;
        let (q_cotangent, r_cotangent) = (&outputs[0], &outputs[1]);
        // `m R^-T`.
        let over_transpose = |m: &DMatrix<S>| -> Result<DMatrix<S>, Error> {
            Ok(S::solve_triangular(r, Triangle::Upper, false, &m.transpose())?.transpose())
        };
        let of_q = dense::transposed_product(q, q_cotangent)?;
        let both = dense::sum(&of_q, &S::matmul(r, &r_cotangent.transpose())?);
        let turning = dense::part(&dense::difference(&both, &both.transpose()), Part::StrictlyLower);
        let inside = dense::sum(r_cotangent, &over_transpose(&turning)?);
        let mut a = S::matmul(q, &inside)?;
        if q.nrows() > q.ncols() {
            let outside = dense::difference(q_cotangent, &S::matmul(q, &of_q)?);
            a = dense::sum(&a, &over_transpose(&outside)?);
        }
        Ok(vec![Some(a)])
    }

    fn saved_bytes(&self) -> usize {
        dense::bytes::<S>(self.q.len() + self.r.len())
    }
}
