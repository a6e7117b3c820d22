//! The pseudo-inverse of Moore and Penrose.
//!
//! `X = A^+`. Where the rank does not change, the tangent is
//! `dX = -X dA X + X X^T dA^T (I - A X) + (I - X A) dA^T X^T X`, and the cotangent
//! `A' = -X^T X' X^T + (I - A X) X'^T X X^T + X^T X X'^T (I - X A)` (Golub and Pereyra 1973). Where it
//! changes, `X` jumps: near a matrix of rank `r < min(m, n)` lie matrices of larger rank with arbitrarily
//! large pseudo-inverses.
//! - forward, a direction that keeps the rank has a derivative: `(I - A X) dA (I - X A) = 0`, in every
//!   component of the number. Others are refused.
//! - in reverse there is a gradient by all entries only if the rank is full; else it is refused.
//!
//! Saved: `A` and `X`.

use super::kernel::Kernel;
use super::lifted::{Lifted, Rule, inner_of};
use super::results::Svd;
use super::spectrum::{negligible, tolerance};
use super::{LinearAlgebra, check, dense};
use crate::error::Error;
use nalgebra::{DMatrix, DVector};

/// The pseudo-inverse: of all `x` that bring `a x` closest to `b`, the shortest is `pseudo_inverse(a) b`.
///
/// Singular values within rounding of zero count as zero. If the rank is not full, a derivative exists only
/// in directions that keep it: forward numbers get it or an error, a reverse sweep gives the error.
///
/// ```
/// use nalgebra::DMatrix;
/// use palinode_core::{grad, linalg};
///
/// // Of a column: x' / |x|^2, at (1, 0).
/// let g: Vec<f64> = grad(|x| linalg::pseudo_inverse(&DMatrix::from_column_slice(2, 1, x)).unwrap()[1], &[1.0, 0.0])?;
/// assert!(g[0].abs() < 1e-15 && (g[1] - 1.0).abs() < 1e-15);
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn pseudo_inverse<T: LinearAlgebra>(a: &DMatrix<T>) -> Result<DMatrix<T>, Error> {
    check::finite("pseudo_inverse's matrix", a)?;
    T::pseudo_inverse(a)
}

/// How many singular values are not zero as far as rounding can tell.
fn rank_of<S: Kernel>((m, n): (usize, usize), singular_values: &DVector<S>) -> usize {
    let tolerance = tolerance(singular_values, m.max(n));
    singular_values.iter().filter(|s| s.glance().is_some_and(|s| s > tolerance)).count()
}

pub(super) fn plain<S: Kernel>(a: &DMatrix<S>) -> Result<DMatrix<S>, Error> {
    let Svd { u, singular_values: s, v_transposed } = S::svd(a)?;
    let rank = rank_of(a.shape(), &s);
    let reciprocals = DVector::from_fn(s.len(), |i, _| if i < rank { s[i].recip() } else { S::zero() });
    S::matmul(&dense::columns_scaled(&v_transposed.transpose(), &reciprocals), &u.transpose())
}

struct PseudoInverse<S> {
    a: DMatrix<S>,
    x: DMatrix<S>,
    /// The rank, if it is not full.
    deficient: Option<usize>,
}

pub(super) fn lifted<T: Lifted>(a: &DMatrix<T>) -> Result<DMatrix<T>, Error> {
    let inner = inner_of(a);
    let x = T::Inner::pseudo_inverse(&inner)?;
    let rank = rank_of(a.shape(), &T::Inner::singular_values(&dense::constants(&inner))?);
    let deficient = (rank < a.nrows().min(a.ncols())).then_some(rank);
    let [x] = T::apply(&[a], [x.clone()], PseudoInverse { a: inner, x, deficient })?;
    Ok(x)
}

impl<S: Kernel> PseudoInverse<S> {
    /// `I - A X` and `I - X A`: onto what `A` does not reach, and onto what it loses. Nothing if the rank is
    /// that of all rows, or all columns: rounding errors would be multiplied with squares of the condition.
    fn outside(&self) -> Result<(DMatrix<S>, DMatrix<S>), Error> {
        let (m, n) = self.a.shape();
        let rank = self.deficient.unwrap_or(m.min(n));
        let minus = |a: &DMatrix<S>, b: &DMatrix<S>| match a.nrows() == rank {
            true => Ok(DMatrix::repeat(rank, rank, S::zero())),
            false => Ok(dense::difference(&dense::identity(a.nrows()), &S::matmul(a, b)?)),
        };
        Ok((minus(&self.a, &self.x)?, minus(&self.x, &self.a)?))
    }

    fn rank_changes(&self, rank: usize) -> Error {
        Error::RankChanges { rank, full: self.a.nrows().min(self.a.ncols()) }
    }
}

impl<S: Kernel> Rule<S> for PseudoInverse<S> {
    const NAME: &'static str = "pseudo_inverse";

    fn tangent(&self, inputs: &[DMatrix<S>]) -> Result<Vec<DMatrix<S>>, Error> {
        let (da, x) = (&inputs[0], &self.x);
        let (unreached, lost) = self.outside()?;
        if let Some(rank) = self.deficient {
            let growth = S::matmul(&S::matmul(&unreached, da)?, &lost)?;
            if dense::largest(growth.iter()) > negligible::<S>(dense::largest(da.iter())) {
                return Err(self.rank_changes(rank));
            }
        }
        let (x_transposed, da_transposed) = (x.transpose(), da.transpose());
        let inside = S::matmul(&S::matmul(x, da)?, x)?;
        let left = S::matmul(&S::matmul(&S::matmul(x, &x_transposed)?, &da_transposed)?, &unreached)?;
        let right = S::matmul(&S::matmul(&S::matmul(&lost, &da_transposed)?, &x_transposed)?, x)?;
        Ok(vec![dense::difference(&dense::sum(&left, &right), &inside)])
    }

    fn cotangent(&self, outputs: &[DMatrix<S>], _wanted: &[bool]) -> Result<Vec<Option<DMatrix<S>>>, Error> {
        if let Some(rank) = self.deficient.filter(|_| !dense::vanishes(&outputs[0])) {
            return Err(self.rank_changes(rank));
        }
        let (x, x_transposed, transposed) = (&self.x, self.x.transpose(), outputs[0].transpose());
        let (unreached, lost) = self.outside()?;
        let inside = S::matmul(&S::matmul(&x_transposed, &outputs[0])?, &x_transposed)?;
        let left = S::matmul(&S::matmul(&S::matmul(&unreached, &transposed)?, x)?, &x_transposed)?;
        let right = S::matmul(&S::matmul(&S::matmul(&x_transposed, x)?, &transposed)?, &lost)?;
        Ok(vec![Some(dense::difference(&dense::sum(&left, &right), &inside))])
    }

    fn saved_bytes(&self) -> usize {
        dense::bytes::<S>(self.a.len() + self.x.len())
    }
}
