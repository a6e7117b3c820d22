//! Sylvester's equation with one symmetric positive definite matrix: `P Y + Y P = C`, for an antisymmetric
//! `C`; so is `Y`. It is what the derivatives of [`super::polar()`] solve.
//!
//! Tangent: `P dY + dY P = dC - dP Y - Y dP`. Cotangent: with `Z` of `P Z + Z P = Y'`, `C' = Z` and
//! `P' = -(Z Y^T + Y^T Z)`. Unlike eigenvectors of `P`, the solution is smooth where eigenvalues of `P`
//! coincide, so this is an operation of its own. On plain numbers, in the eigenbasis of `P` each entry is
//! divided by a sum of two eigenvalues; that there is nothing on the diagonal, where the sum is twice one
//! that may be small, is why only antisymmetric matrices go.
//!
//! Saved: `P` and `Y`.

use super::kernel::Kernel;
use super::lifted::{Lifted, Rule, inner_of};
use super::{SymmetricEigen, dense};
use crate::error::Error;
use nalgebra::DMatrix;

pub(super) fn plain<S: Kernel>(p: &DMatrix<S>, c: &DMatrix<S>) -> Result<DMatrix<S>, Error> {
    let SymmetricEigen { values, vectors } = S::symmetric_eigen(p)?;
    let inside = dense::transposed_product(&vectors, &S::matmul(c, &vectors)?)?;
    let divided = DMatrix::from_fn(c.nrows(), c.ncols(), |i, j| match i == j {
        true => S::zero(),
        false => (inside[(i, j)] - inside[(j, i)]) * S::half() / (values[i] + values[j]),
    });
    S::matmul(&S::matmul(&vectors, &divided)?, &vectors.transpose())
}

struct Sylvester<S> {
    p: DMatrix<S>,
    y: DMatrix<S>,
}

pub(super) fn lifted<T: Lifted>(p: &DMatrix<T>, c: &DMatrix<T>) -> Result<DMatrix<T>, Error> {
    let inner = inner_of(p);
    let y = T::Inner::solve_sylvester(&inner, &inner_of(c))?;
    T::apply_for_one(&[p, c], y.clone(), Sylvester { p: inner, y })
}

impl<S: Kernel> Rule<S> for Sylvester<S> {
    const NAME: &'static str = "solve_sylvester";

    fn tangent(&self, inputs: &[DMatrix<S>]) -> Result<Vec<DMatrix<S>>, Error> {
        let (dp, dc) = (&inputs[0], &inputs[1]);
        let moved = dense::sum(&S::matmul(dp, &self.y)?, &S::matmul(&self.y, dp)?);
        Ok(vec![S::solve_sylvester(&self.p, &dense::difference(dc, &moved))?])
    }

    fn cotangent(&self, outputs: &[DMatrix<S>], wanted: &[bool]) -> Result<Vec<Option<DMatrix<S>>>, Error> {
        let z = S::solve_sylvester(&self.p, &outputs[0])?;
        let transposed = self.y.transpose();
        let p = match wanted[0] {
            true => {
                let both = dense::sum(&S::matmul(&z, &transposed)?, &S::matmul(&transposed, &z)?);
                Some(dense::negated(&both))
            }
            false => None,
        };
        Ok(vec![p, Some(z)])
    }

    fn saved_bytes(&self) -> usize {
        dense::bytes::<S>(self.p.len() + self.y.len())
    }
}
