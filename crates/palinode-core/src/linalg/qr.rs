//! The thin QR factors of a matrix of full column rank.
//!
//! `A = Q R`, `A` with at least as many rows as columns, `Q^T Q = I`, the diagonal of `R` positive, so the factors are unique.
//! Tangent: with `C = dA R^-1` and `X = Q^T C = Q^T dQ + dR R^-1`, the first term is antisymmetric and the second
//! upper triangular, so `Q^T dQ = W = lower(X) - lower(X)^T`, `dR = (X - W) R` and `dQ = C - Q (X - W)`. Cotangent: with
//! `M = R R'^T - Q'^T Q` and `copy(M)` its lower triangle mirrored up, `A' = (Q' + Q copy(M)) R^-T`
//! (Walter and Lehmann 2010, *Algorithmic differentiation of linear algebra functions*).
//!
//! Saved: `Q` and `R`.

use super::kernel::Kernel;
use super::lifted::{Block, Layout, Lifted, Rule, inner_of};
use super::{LinearAlgebra, Triangle, check, dense};
use crate::error::Error;
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

/// The lower triangle, mirrored to the upper one.
fn lower_mirrored<S: Kernel>(m: &DMatrix<S>) -> DMatrix<S> {
    DMatrix::from_fn(m.nrows(), m.ncols(), |i, j| m[(i.max(j), i.min(j))])
}

impl<S: Kernel> QrRule<S> {
    /// `m R^-1`, or `m R^-T`.
    fn divide_by_r(&self, m: &DMatrix<S>, transposed: bool) -> Result<DMatrix<S>, Error> {
        let r = &self.factors.r;
        Ok(S::solve_triangular(r, Triangle::Upper, !transposed, &m.transpose())?.transpose())
    }
}

impl<S: Kernel> Rule<S> for QrRule<S> {
    const NAME: &'static str = "qr";

    fn inputs(&self) -> Vec<Block> {
        vec![Block::full(self.factors.q.nrows(), self.factors.q.ncols())]
    }

    fn outputs(&self) -> Vec<Block> {
        let (rows, columns) = self.factors.q.shape();
        vec![Block::full(rows, columns), Block { rows: columns, columns, layout: Layout::Upper }]
    }

    fn tangent(&self, inputs: &[DMatrix<S>]) -> Result<Vec<DMatrix<S>>, Error> {
        let Qr { q, r } = &self.factors;
        let c = self.divide_by_r(&inputs[0], false)?;
        let x = dense::transposed_product(q, &c)?;
        let lower = dense::strictly_lower(&x);
        // X - W = upper(X) + lower(X)^T.
        let triangle = dense::sum(&dense::upper(&x), &lower.transpose());
        let dq = dense::difference(&c, &S::matmul(q, &triangle)?);
        Ok(vec![dq, S::matmul(&triangle, r)?])
    }

    fn cotangent(&self, outputs: &[DMatrix<S>], _wanted: &[bool]) -> Result<Vec<Option<DMatrix<S>>>, Error> {
        let Qr { q, r } = &self.factors;
        let (q_cotangent, r_cotangent) = (&outputs[0], &outputs[1]);
        let m = dense::difference(
            &S::matmul(r, &r_cotangent.transpose())?,
            &dense::transposed_product(q_cotangent, q)?,
        );
        let sum = dense::sum(q_cotangent, &S::matmul(q, &lower_mirrored(&m))?);
        Ok(vec![Some(self.divide_by_r(&sum, true)?)])
    }

    fn saved_bytes(&self) -> usize {
        dense::bytes::<S>(self.factors.q.len() + self.factors.r.len())
    }
}
