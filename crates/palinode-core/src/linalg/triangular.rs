//! Systems with a triangular matrix.
//!
//! `X = op(T)^-1 B`, where `op` transposes or does nothing. Tangent: `op(T) X = B` gives
//! `dX = op(T)^-1 (dB - op(dT) X)`. Cotangent: `B' = op(T)^-T X'`, `op(T)' = -B' X^T` on the triangle that is
//! read (Giles 2008, 2.2.4, restricted to a triangle).
//!
//! Saved: `T` and `X`. The other triangle of `T` is neither read nor given a cotangent.

use super::kernel::Kernel;
use super::lifted::{Layout, Lifted, Rule, inner_of};
use super::{LinearAlgebra, check, dense, solve};
use crate::error::Error;
use nalgebra::DMatrix;

/// Which triangle of a matrix is read; the other counts as zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Triangle {
    /// On and below the diagonal.
    Lower,
    /// On and above the diagonal.
    Upper,
}

/// Solves `t x = b` for a triangular `t` and any number of right-hand sides, the columns of `b`.
///
/// An error if an entry of the diagonal is zero.
///
/// ```
/// use nalgebra::DMatrix;
/// use palinode_core::linalg::{Triangle, solve_triangular};
///
/// let t = DMatrix::from_row_slice(2, 2, &[2.0, 0.0, 1.0, 4.0]);
/// let x = solve_triangular(&t, Triangle::Lower, &DMatrix::from_column_slice(2, 1, &[2.0, 9.0]))?;
/// assert_eq!(x.as_slice(), [1.0, 2.0]);
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn solve_triangular<T: LinearAlgebra>(
    t: &DMatrix<T>,
    triangle: Triangle,
    b: &DMatrix<T>,
) -> Result<DMatrix<T>, Error> {
    check::square("solve_triangular's matrix", t)?;
    check::finite("solve_triangular's matrix", t)?;
    check::length("each column of solve_triangular's right-hand side", t.nrows(), b.nrows())?;
    check::finite("solve_triangular's right-hand side", b)?;
    let zero = (0..t.nrows()).find(|&i| t[(i, i)].peek() == Some(0.0));
    match zero {
        Some(pivot) => Err(Error::Singular { what: "solve_triangular", pivot, value: 0.0 }),
        None => T::solve_triangular(t, triangle, false, b),
    }
}

struct TriangularSolve<S> {
    t: DMatrix<S>,
    triangle: Triangle,
    transposed: bool,
    x: DMatrix<S>,
}

pub(super) fn lifted<T: Lifted>(
    t: &DMatrix<T>,
    triangle: Triangle,
    transposed: bool,
    b: &DMatrix<T>,
) -> Result<DMatrix<T>, Error> {
    let inner = inner_of(t);
    let x = Kernel::solve_triangular(&inner, triangle, transposed, &inner_of(b))?;
    let rule = TriangularSolve { t: inner, triangle, transposed, x: x.clone() };
    T::apply_for_one(&[t, b], x, rule)
}

impl<S: Kernel> Rule<S> for TriangularSolve<S> {
    const NAME: &'static str = "solve_triangular";

    fn first_input(&self) -> Layout {
        match self.triangle {
            Triangle::Lower => Layout::Lower,
            Triangle::Upper => Layout::Upper,
        }
    }

    fn tangent(&self, inputs: &[DMatrix<S>]) -> Result<Vec<DMatrix<S>>, Error> {
        let solve = |m: &DMatrix<S>| S::solve_triangular(&self.t, self.triangle, self.transposed, m);
        Ok(vec![solve::tangent(inputs, self.transposed, &self.x, solve)?])
    }

    fn cotangent(&self, outputs: &[DMatrix<S>], wanted: &[bool]) -> Result<Vec<Option<DMatrix<S>>>, Error> {
        let b = S::solve_triangular(&self.t, self.triangle, !self.transposed, &outputs[0])?;
        Ok(vec![solve::cotangent_of_matrix(&b, self.transposed, &self.x, wanted[0])?, Some(b)])
    }

    fn saved_bytes(&self) -> usize {
        dense::bytes::<S>(self.t.len() + self.x.len())
    }
}
