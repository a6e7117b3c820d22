//! The product of two matrices.
//!
//! `C = A B`. Tangent: `dC = dA B + A dB`. Cotangent: `<C', dA B> = <C' B^T, dA>` and
//! `<C', A dB> = <A^T C', dB>`, so `A' = C' B^T` and `B' = A^T C'` (Giles 2008, *Collected matrix derivative
//! results*, 2.2.2).
//!
//! Saved: `A` and `B`. If one of them is constant, its cotangent is not computed.

use super::kernel::{Kernel, Made};
use super::lifted::{Lifted, Rule, inner_of};
use super::{LinearAlgebra, check, dense};
use crate::error::Error;
use nalgebra::DMatrix;
use palinode_num::Accumulator;

/// The product `a b`.
///
/// ```
/// use nalgebra::DMatrix;
/// use palinode_core::{Var, grad, linalg};
///
/// let b = DMatrix::from_row_slice(2, 1, &[3.0, 5.0]);
/// let g = grad(|x| {
///     let a = DMatrix::from_row_slice(1, 2, x);
///     linalg::matmul(&a, &b.map(Var::lift)).unwrap()[0]
/// }, &[1.0, 2.0])?;
/// assert_eq!(g, [3.0, 5.0]);
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn matmul<T: LinearAlgebra>(a: &DMatrix<T>, b: &DMatrix<T>) -> Result<DMatrix<T>, Error> {
    matmul_with(a, b, Accumulator::Naive)
}

/// The product `a b`, with every entry accumulated as asked for; so are the entries of the tangent and of
/// both cotangents.
///
/// ```
/// use nalgebra::DMatrix;
/// use palinode_core::{Accumulator, Dual, linalg};
///
/// let a = DMatrix::from_row_slice(1, 3, &[1.0, 1e100, -1e100]).map(|x| Dual::new(x, 0.0));
/// let b = DMatrix::from_element(3, 1, Dual::new(1.0, 1.0));
/// let c = linalg::matmul_with(&a, &b, Accumulator::Exact)?[0];
/// assert_eq!((c.value, c.tangent), (1.0, 1.0));
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn matmul_with<T: LinearAlgebra>(
    a: &DMatrix<T>,
    b: &DMatrix<T>,
    how: Accumulator,
) -> Result<DMatrix<T>, Error> {
    check::length("each column of matmul's second matrix", a.ncols(), b.nrows())?;
    check::finite("matmul's first matrix", a)?;
    check::finite("matmul's second matrix", b)?;
    T::matmul_with(a, b, how)
}

struct Product<S> {
    a: DMatrix<S>,
    b: DMatrix<S>,
    how: Accumulator,
}

pub(super) fn lifted<T: Lifted>(a: &DMatrix<T>, b: &DMatrix<T>, how: Accumulator) -> Made<T> {
    let rule = Product { a: inner_of(a), b: inner_of(b), how };
    let value = Kernel::matmul_with(&rule.a, &rule.b, how)?;
    let [x] = T::apply(&[a, b], [value], rule)?;
    Ok(x)
}

impl<S: Kernel> Rule<S> for Product<S> {
    const NAME: &'static str = "matmul";

    fn tangent(&self, inputs: &[DMatrix<S>]) -> Result<Vec<DMatrix<S>>, Error> {
        let (da, db) = (&inputs[0], &inputs[1]);
        let dc = match (dense::vanishes(da), dense::vanishes(db)) {
            (false, true) => S::matmul_with(da, &self.b, self.how)?,
            (true, _) => S::matmul_with(&self.a, db, self.how)?,
            (false, false) if self.how == Accumulator::Naive => {
                dense::sum(&S::matmul(da, &self.b)?, &S::matmul(&self.a, db)?)
            }
            // One sum per entry, not two that are rounded before they are added.
            (false, false) => {
                S::matmul_with(&dense::beside(da, &self.a), &dense::above(&self.b, db), self.how)?
            }
        };
        Ok(vec![dc])
    }

    fn cotangent(&self, outputs: &[DMatrix<S>], wanted: &[bool]) -> Result<Vec<Option<DMatrix<S>>>, Error> {
        let c = &outputs[0];
        let a = if wanted[0] { Some(S::matmul_with(c, &self.b.transpose(), self.how)?) } else { None };
        let b = if wanted[1] { Some(S::matmul_with(&self.a.transpose(), c, self.how)?) } else { None };
        Ok(vec![a, b])
    }

    fn saved_bytes(&self) -> usize {
        dense::bytes::<S>(self.a.len() + self.b.len())
    }
}
