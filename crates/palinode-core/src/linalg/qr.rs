//! The thin QR factors of a matrix of full column rank.
//!
//! `A = Q R`, `A` with at least as many rows as columns, `Q^T Q = I`, the diagonal of `R` positive, so the
//! factors are unique. Tangent: with `C = dA R^-1` and `X = Q^T C = Q^T dQ + dR R^-1`, the first term is
//! antisymmetric and the second upper triangular, so `Q^T dQ = W = lower(X) - lower(X)^T`,
//! `dR = Q^T dA - W R` and `dQ = Q W + (C - Q X)`. Cotangent: with `N = Q^T Q' + R R'^T`,
//! `A' = Q (R' + lower(N - N^T) R^-T) + (I - Q Q^T) Q' R^-T` (Walter and Lehmann 2010, *Algorithmic
//! differentiation of linear algebra functions*, with what cancels taken out: nothing is divided by `R` and
//! multiplied with it again, and the last terms of `dQ` and `A'`, which lie outside the columns of `Q`, are
//! left away for square matrices, which have none; so a small pivot of `R` disturbs only what depends on it).
//!
//! Saved: `Q` and `R`.

use super::kernel::Kernel;
use super::lifted::{Layout, Lifted, Rule, inner_of};
use super::{LinearAlgebra, Triangle, check, dense};
use crate::error::Error;
use crate::matrix::tangents::{self, Part};
use nalgebra::DMatrix;

/// Factors with `A = Q R`.
#[derive(Clone, Debug)]
pub struct Qr<T> {
    /// As many orthonormal columns as `A` has columns.
    pub q: DMatrix<T>,
    /// Upper triangular with a positive diagonal.
    pub r: DMatrix<T>,
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
    check::finite("qr's matrix", a)?;
    T::qr(a)
}

struct QrRule<S> {
    factors: Qr<S>,
}

pub(super) fn lifted<T: Lifted>(a: &DMatrix<T>) -> Result<Qr<T>, Error> {
    let factors = T::Inner::qr(&inner_of(a))?;
    let values = vec![factors.q.clone(), factors.r.clone()];
    let mut results = T::apply(&[a], values, QrRule { factors })?;
    let r = results.swap_remove(1);
    Ok(Qr { q: results.swap_remove(0), r })
}

impl<S: Kernel> QrRule<S> {
    /// `m R^-T`.
    fn divide_by_transpose(&self, m: &DMatrix<S>) -> Result<DMatrix<S>, Error> {
        let r = &self.factors.r;
        Ok(S::solve_triangular(r, Triangle::Upper, false, &m.transpose())?.transpose())
    }
}

impl<S: Kernel> Rule<S> for QrRule<S> {
    const NAME: &'static str = "qr";
    const OUTPUTS: &'static [Layout] = &[Layout::Full, Layout::Upper];

    fn tangent(&self, inputs: &[DMatrix<S>]) -> Result<Vec<DMatrix<S>>, Error> {
        let Qr { q, r } = &self.factors;
        Ok(tangents::qr(&mut dense::Matrices::new(), &inputs[0], q, r)?.into())
    }

    fn cotangent(&self, outputs: &[DMatrix<S>], _wanted: &[bool]) -> Result<Vec<Option<DMatrix<S>>>, Error> {
        let Qr { q, r } = &self.factors;
        let (q_cotangent, r_cotangent) = (&outputs[0], &outputs[1]);
        let of_q = dense::transposed_product(q, q_cotangent)?;
        let both = dense::sum(&of_q, &S::matmul(r, &r_cotangent.transpose())?);
        let turning = dense::part(&dense::difference(&both, &both.transpose()), Part::StrictlyLower);
        let inside = dense::sum(r_cotangent, &self.divide_by_transpose(&turning)?);
        let mut a = S::matmul(q, &inside)?;
        if q.nrows() > q.ncols() {
            let outside = dense::difference(q_cotangent, &S::matmul(q, &of_q)?);
            a = dense::sum(&a, &self.divide_by_transpose(&outside)?);
        }
        Ok(vec![Some(a)])
    }

    fn saved_bytes(&self) -> usize {
        dense::bytes::<S>(self.factors.q.len() + self.factors.r.len())
    }
}
