//! The product of two matrices.
//!
//! `C = A B`. Tangent: `dC = dA B + A dB`. Cotangent: `<C', dA B> = <C' B^T, dA>` and `<C', A dB> = <A^T C', dB>`,
//! so `A' = C' B^T` and `B' = A^T C'` (Giles 2008, *Collected matrix derivative results*, 2.2.2).
//!
//! Saved: `A` and `B`. If one of them is constant, its cotangent is not computed.

use super::kernel::Kernel;
use super::lifted::{Block, Lifted, Rule, inner_of};
use super::{LinearAlgebra, check, dense};
use crate::error::Error;
use nalgebra::DMatrix;

/// The product `a b`.
///
/// ```
/// use nalgebra::DMatrix;
/// use palinode_core::{grad, linalg};
///
/// let b = DMatrix::from_row_slice(2, 1, &[3.0, 5.0]);
/// let g = grad(|x| {
///     let a = DMatrix::from_row_slice(1, 2, x);
///     linalg::matmul(&a, &b.map(Into::into)).unwrap()[0]
/// }, &[1.0, 2.0])?;
/// assert_eq!(g, [3.0, 5.0]);
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn matmul<T: LinearAlgebra>(a: &DMatrix<T>, b: &DMatrix<T>) -> Result<DMatrix<T>, Error> {
    check::length("each column of matmul's second matrix", a.ncols(), b.nrows())?;
    check::finite("matmul's first matrix", a)?;
    check::finite("matmul's second matrix", b)?;
    T::matmul(a, b)
}

struct Product<S> {
    a: DMatrix<S>,
    b: DMatrix<S>,
}

pub(super) fn lifted<T: Lifted>(a: &DMatrix<T>, b: &DMatrix<T>) -> Result<DMatrix<T>, Error> {
    let rule = Product { a: inner_of(a), b: inner_of(b) };
    let value = Kernel::matmul(&rule.a, &rule.b)?;
    T::apply_for_one(&[a, b], value, rule)
}

impl<S: Kernel> Rule<S> for Product<S> {
    const NAME: &'static str = "matmul";

    fn inputs(&self) -> Vec<Block> {
        vec![Block::full(self.a.nrows(), self.a.ncols()), Block::full(self.b.nrows(), self.b.ncols())]
    }

    fn outputs(&self) -> Vec<Block> {
        vec![Block::full(self.a.nrows(), self.b.ncols())]
    }

    fn tangent(&self, inputs: &[DMatrix<S>]) -> Result<Vec<DMatrix<S>>, Error> {
        let (da, db) = (&inputs[0], &inputs[1]);
        let dc = match (dense::vanishes(da), dense::vanishes(db)) {
            (false, true) => S::matmul(da, &self.b)?,
            (true, _) => S::matmul(&self.a, db)?,
            (false, false) => dense::sum(&S::matmul(da, &self.b)?, &S::matmul(&self.a, db)?),
        };
        Ok(vec![dc])
    }

    fn cotangent(&self, outputs: &[DMatrix<S>], wanted: &[bool]) -> Result<Vec<Option<DMatrix<S>>>, Error> {
        let c = &outputs[0];
        let a = if wanted[0] { Some(S::matmul(c, &self.b.transpose())?) } else { None };
        let b = if wanted[1] { Some(dense::transposed_product(&self.a, c)?) } else { None };
        Ok(vec![a, b])
    }

    fn saved_bytes(&self) -> usize {
        dense::bytes::<S>(self.a.len() + self.b.len())
    }
}
