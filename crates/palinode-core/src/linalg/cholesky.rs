//! The Cholesky factor of a symmetric positive definite matrix.
//!
//! `A = L L^T`, as a function of the symmetric part `(A + A^T) / 2`: both triangles are read, and a cotangent
//! is spread evenly over an entry and its mirror image. Tangent: `L^-1 dA L^-T = L^-1 dL + (L^-1 dL)^T`, and
//! `L^-1 dL` is lower triangular, so `dL = L F(L^-1 dA L^-T)` where `F` takes the lower triangle with half
//! the diagonal. Cotangent: `F` is its own adjoint on lower triangles, so `A' = sym(L^-T F(L^T L') L^-1)`
//! (Giles 2008, 2.2.6; Murray 2016, *Differentiation of the Cholesky decomposition*).
//!
//! Saved: `L`.

use super::kernel::Kernel;
use super::lifted::{Layout, Lifted, Rule, inner_of};
use super::{LinearAlgebra, Triangle, check, dense};
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
    check::square("cholesky's matrix", a)?;
    check::finite("cholesky's matrix", a)?;
    check::symmetric("cholesky's matrix", a)?;
    T::cholesky(a)
}

struct Cholesky<S> {
    l: DMatrix<S>,
}

pub(super) fn lifted<T: Lifted>(a: &DMatrix<T>) -> Result<DMatrix<T>, Error> {
    let l = T::Inner::cholesky(&inner_of(a))?;
    T::apply_for_one(&[a], l.clone(), Cholesky { l })
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
