//! The inverse of a matrix.
//!
//! `X = A^-1`. Tangent: `A X = I` gives `dX = -X dA X`. Cotangent: `A' = -X^T X' X^T` (Giles 2008, 2.2.3).
//!
//! Saved: `X` alone; the factors that made it are not needed again.

use super::kernel::Kernel;
use super::lifted::{Lifted, Rule, inner_of};
use super::{LinearAlgebra, check, dense};
use crate::error::Error;
use crate::matrix::tangents;
use nalgebra::DMatrix;

/// The inverse of a square matrix. To solve systems, [`super::solve`] is cheaper and more accurate.
///
/// An error if `a` is singular as far as rounding can tell.
///
/// ```
/// use nalgebra::DMatrix;
/// use palinode_core::{Dual, linalg};
///
/// let a = DMatrix::from_row_slice(1, 1, &[Dual::new(4.0, 1.0)]);
/// let x = linalg::inverse(&a)?[0];
/// assert_eq!((x.value, x.tangent), (0.25, -0.0625));
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn inverse<T: LinearAlgebra>(a: &DMatrix<T>) -> Result<DMatrix<T>, Error> {
    check::square("inverse's matrix", a)?;
    check::finite("inverse's matrix", a)?;
    T::inverse(a)
}

struct Inverse<S> {
    x: DMatrix<S>,
}

pub(super) fn lifted<T: Lifted>(a: &DMatrix<T>) -> Result<DMatrix<T>, Error> {
    let x = T::Inner::inverse(&inner_of(a))?;
    T::apply_for_one(&[a], x.clone(), Inverse { x })
}

impl<S: Kernel> Rule<S> for Inverse<S> {
    const NAME: &'static str = "inverse";

    fn tangent(&self, inputs: &[DMatrix<S>]) -> Result<Vec<DMatrix<S>>, Error> {
        Ok(vec![tangents::inverse(&mut dense::Matrices::new(), &inputs[0], &self.x)?])
    }

    fn cotangent(&self, outputs: &[DMatrix<S>], _wanted: &[bool]) -> Result<Vec<Option<DMatrix<S>>>, Error> {
        let transposed = self.x.transpose();
        let a = S::matmul(&S::matmul(&transposed, &outputs[0])?, &transposed)?;
        Ok(vec![Some(dense::negated(&a))])
    }

    fn saved_bytes(&self) -> usize {
        dense::bytes::<S>(self.x.len())
    }
}
