//! Systems with a square matrix, general or triangular, any number of right-hand sides; inverses.
//!
//! `X = op(A)^-1 B`, where `op` transposes or does nothing. Tangent: `op(A) X = B` gives
//! `dX = op(A)^-1 (dB - op(dA) X)`. Cotangent: `B' = op(A)^-T X'`, `op(A)' = -B' X^T` (Giles 2008, 2.2.4), of
//! a triangular matrix on the triangle that is read: the other one is neither read nor given a cotangent. The
//! inverse `X = A^-1`: `dX = -X dA X`, `A' = -X^T X' X^T` (Giles 2008, 2.2.3).
//!
//! Saved: the factorisation `P A = L U`, which both directions solve with, or the triangular matrix, and `X`;
//! of an inverse `X` alone. The factorisation itself is never differentiated: the derivative of a solve is a
//! solve with the same factors, at every order, so a derivative number's [`Factored`] is its inner number's
//! factors together with the matrix whose derivative is to flow.

use super::kernel::{Kernel, Made};
use super::lifted::{Layout, Lifted, Rule, inner_of};
use super::results::{Factored, Triangle};
use super::{LinearAlgebra, check, dense};
use crate::error::Error;
use crate::matrix::tangents;
use nalgebra::DMatrix;
use std::sync::Arc;

/// Solves `a x = b` for a square `a` and any number of right-hand sides, the columns of `b`.
///
/// An error if `a` is singular as far as rounding can tell.
///
/// ```
/// use nalgebra::DMatrix;
/// use palinode_core::{Var, grad, linalg};
///
/// let a = DMatrix::from_row_slice(2, 2, &[2.0, 0.0, 0.0, 4.0]);
/// let b = DMatrix::from_column_slice(2, 1, &[2.0, 8.0]);
/// assert_eq!(linalg::solve(&a, &b)?.as_slice(), [1.0, 2.0]);
///
/// let g = grad(|x| {
///     let a = DMatrix::from_column_slice(2, 2, x);
///     linalg::solve(&a, &b.map(Var::lift)).unwrap()[1]
/// }, a.as_slice())?;
/// assert_eq!(g, [0.0, -0.25, 0.0, -0.5]);
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn solve<T: LinearAlgebra>(a: &DMatrix<T>, b: &DMatrix<T>) -> Result<DMatrix<T>, Error> {
    check::square("solve's matrix", a)?;
    check::length("each column of solve's right-hand side", a.nrows(), b.nrows())?;
    check::finite("solve's right-hand side", b)?;
    T::solve_factored(&T::factor("solve", a)?, false, b)
}

pub(super) fn lifted_factor<T: Lifted>(what: &'static str, a: &DMatrix<T>) -> Result<T::Factored, Error> {
    let inner = T::Inner::factor(what, &inner_of(a))?;
    Ok(Factored { matrix: Arc::new(a.clone()), inner })
}

pub(super) fn factored_bytes<T: Lifted>(factored: &T::Factored) -> usize {
    size_of::<DMatrix<T>>()
        + dense::bytes::<T>(factored.matrix.len())
        + T::Inner::factored_bytes(&factored.inner)
}

struct Solve<S: Kernel> {
    factored: S::Factored,
    transposed: bool,
    x: DMatrix<S>,
}

pub(super) fn lifted_solve<T: Lifted>(factored: &T::Factored, transposed: bool, b: &DMatrix<T>) -> Made<T> {
    let x = T::Inner::solve_factored(&factored.inner, transposed, &inner_of(b))?;
    let rule = Solve { factored: factored.inner.clone(), transposed, x: x.clone() };
    let [x] = T::apply(&[&factored.matrix, b], [x], rule)?;
    Ok(x)
}

/// The tangent of the solution of a system with any matrix, triangular ones too, given those of the matrix
/// and the right side.
fn solution_tangent<S: Kernel>(
    inputs: &[DMatrix<S>],
    transposed: bool,
    x: &DMatrix<S>,
    solve: impl Fn(&DMatrix<S>) -> Result<DMatrix<S>, Error>,
) -> Result<DMatrix<S>, Error> {
    let da = Some(&inputs[0]).filter(|da| !dense::vanishes(da));
    let given = (da, Some(&inputs[1]));
    tangents::solve(&mut dense::Matrices::new(), given, transposed, x, |_, m| solve(m))
}

/// The cotangent of the matrix, given that of the right side.
fn cotangent_of_matrix<S: Kernel>(
    b: &DMatrix<S>,
    transposed: bool,
    x: &DMatrix<S>,
    wanted: bool,
) -> Result<Option<DMatrix<S>>, Error> {
    Ok(match (wanted, transposed) {
        (false, _) => None,
        (true, false) => Some(dense::negated(&S::matmul(b, &x.transpose())?)),
        (true, true) => Some(dense::negated(&S::matmul(x, &b.transpose())?)),
    })
}

impl<S: Kernel> Rule<S> for Solve<S> {
    const NAME: &'static str = "solve";

    fn tangent(&self, inputs: &[DMatrix<S>]) -> Result<Vec<DMatrix<S>>, Error> {
        let solve = |m: &DMatrix<S>| S::solve_factored(&self.factored, self.transposed, m);
        Ok(vec![solution_tangent(inputs, self.transposed, &self.x, solve)?])
    }

    fn cotangent(&self, outputs: &[DMatrix<S>], wanted: &[bool]) -> Result<Vec<Option<DMatrix<S>>>, Error> {
        let b = S::solve_factored(&self.factored, !self.transposed, &outputs[0])?;
        Ok(vec![cotangent_of_matrix(&b, self.transposed, &self.x, wanted[0])?, Some(b)])
    }

    fn saved_bytes(&self) -> usize {
        S::factored_bytes(&self.factored) + dense::bytes::<S>(self.x.len())
    }
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

pub(super) fn lifted_triangular<T: Lifted>(
    t: &DMatrix<T>,
    triangle: Triangle,
    transposed: bool,
    b: &DMatrix<T>,
) -> Result<DMatrix<T>, Error> {
    let inner = inner_of(t);
    let x = Kernel::solve_triangular(&inner, triangle, transposed, &inner_of(b))?;
    let rule = TriangularSolve { t: inner, triangle, transposed, x: x.clone() };
    let [x] = T::apply(&[t, b], [x], rule)?;
    Ok(x)
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
        Ok(vec![solution_tangent(inputs, self.transposed, &self.x, solve)?])
    }

    fn cotangent(&self, outputs: &[DMatrix<S>], wanted: &[bool]) -> Result<Vec<Option<DMatrix<S>>>, Error> {
        let b = S::solve_triangular(&self.t, self.triangle, !self.transposed, &outputs[0])?;
        Ok(vec![cotangent_of_matrix(&b, self.transposed, &self.x, wanted[0])?, Some(b)])
    }

    fn saved_bytes(&self) -> usize {
        dense::bytes::<S>(self.t.len() + self.x.len())
    }
}

/// The inverse of a square matrix. To solve systems, [`solve`] is cheaper and more accurate.
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
    T::inverse(a)
}

struct Inverse<S> {
    x: DMatrix<S>,
}

pub(super) fn lifted_inverse<T: Lifted>(a: &DMatrix<T>) -> Result<DMatrix<T>, Error> {
    let x = T::Inner::inverse(&inner_of(a))?;
    let [x] = T::apply(&[a], [x.clone()], Inverse { x })?;
    Ok(x)
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
