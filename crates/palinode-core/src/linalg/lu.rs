//! The LU factors of an invertible matrix, rows exchanged for size.
//!
//! `P A = L U` with ones on the diagonal of `L`; `P` is constant near `A`. Tangent: with
//! `G = L^-1 P dA U^-1 = L^-1 dL + dU U^-1`, whose first term is strictly lower and whose second is upper
//! triangular, `dL = L lower(G)` and `dU = upper(L^-1 P dA - lower(G) U)`. Cotangent:
//! `A' = P^T L^-T (U' + lower(L^T L' - U' U^T) U^-T)` (de Hoog, Anderssen and Lukas 2011, *Differentiation of
//! matrix functionals using triangular factorization*; written so that nothing is divided by a pivot and
//! multiplied with it again).
//!
//! Saved: `P`, `L` and `U`. Known limit: where two candidate pivots tie, the factors jump; the result follows
//! the pivots taken.

use super::kernel::Kernel;
use super::lifted::{Layout, Lifted, Rule, inner_of};
use super::{LinearAlgebra, Triangle, check, dense};
use crate::error::Error;
use crate::matrix::tangents::Part;
use nalgebra::DMatrix;

/// Factors with `P A = L U`.
#[derive(Clone, Debug)]
pub struct Lu<T> {
    /// Row `i` of `P A` is row `permutation[i]` of `A`.
    pub permutation: Vec<usize>,
    /// Lower triangular, ones on the diagonal.
    pub l: DMatrix<T>,
    /// Upper triangular.
    pub u: DMatrix<T>,
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
    check::finite("lu's matrix", a)?;
    T::lu(a)
}

struct LuRule<S> {
    factors: Lu<S>,
}

pub(super) fn lifted<T: Lifted>(a: &DMatrix<T>) -> Result<Lu<T>, Error> {
    let factors = T::Inner::lu(&inner_of(a))?;
    let permutation = factors.permutation.clone();
    let values = vec![factors.l.clone(), factors.u.clone()];
    let mut results = T::apply(&[a], values, LuRule { factors })?;
    let u = results.swap_remove(1);
    Ok(Lu { permutation, l: results.swap_remove(0), u })
}

impl<S: Kernel> Rule<S> for LuRule<S> {
    const NAME: &'static str = "lu";
    const OUTPUTS: &'static [Layout] = &[Layout::StrictlyLower, Layout::Upper];

    fn tangent(&self, inputs: &[DMatrix<S>]) -> Result<Vec<DMatrix<S>>, Error> {
        let Lu { permutation, l, u } = &self.factors;
        let permuted = DMatrix::from_fn(l.nrows(), l.ncols(), |i, j| inputs[0][(permutation[i], j)]);
        let left = S::solve_triangular(l, Triangle::Lower, false, &permuted)?;
        let g = S::solve_triangular(u, Triangle::Upper, true, &left.transpose())?.transpose();
        let lower = dense::part(&g, Part::StrictlyLower);
        let du = dense::part(&dense::difference(&left, &S::matmul(&lower, u)?), Part::Upper);
        Ok(vec![S::matmul(l, &lower)?, du])
    }

    fn cotangent(&self, outputs: &[DMatrix<S>], _wanted: &[bool]) -> Result<Vec<Option<DMatrix<S>>>, Error> {
        let Lu { permutation, l, u } = &self.factors;
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
        let Lu { permutation, l, u } = &self.factors;
        permutation.capacity() * size_of::<usize>() + dense::bytes::<S>(l.len() + u.len())
    }
}
