//! Systems with a general square matrix, any number of right-hand sides.
//!
//! `X = op(A)^-1 B`, where `op` transposes or does nothing. Tangent: `op(A) X = B` gives
//! `dX = op(A)^-1 (dB - op(dA) X)`. Cotangent: `B' = op(A)^-T X'`, `op(A)' = -B' X^T` (Giles 2008, 2.2.4).
//!
//! Saved: the factorisation `P A = L U`, which both directions solve with, and `X`. The factorisation itself
//! is never differentiated: the derivative of a solve is a solve with the same factors, at every order, so a
//! derivative number's [`Factored`] is its inner number's factors together with the matrix whose derivative
//! is to flow.

use super::kernel::Kernel;
use super::lifted::{Lifted, Rule, inner_of};
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
    check::finite("solve's matrix", a)?;
    check::length("each column of solve's right-hand side", a.nrows(), b.nrows())?;
    check::finite("solve's right-hand side", b)?;
    T::solve_factored(&T::factor("solve", a)?, false, b)
}

/// A matrix of derivative numbers, ready to solve with: `F` is the inner number's own factors.
#[derive(Clone)]
pub struct Factored<T, F> {
    pub(super) matrix: Arc<DMatrix<T>>,
    pub(super) inner: F,
}

pub(super) fn factor<T: Lifted>(what: &'static str, a: &DMatrix<T>) -> Result<T::Factored, Error> {
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

pub(super) fn lifted<T: Lifted>(
    factored: &T::Factored,
    transposed: bool,
    b: &DMatrix<T>,
) -> Result<DMatrix<T>, Error> {
    let x = T::Inner::solve_factored(&factored.inner, transposed, &inner_of(b))?;
    let rule = Solve { factored: factored.inner.clone(), transposed, x: x.clone() };
    T::apply_for_one(&[&factored.matrix, b], x, rule)
}

/// The tangent of the solution of a system with any matrix, triangular ones too, given those of the matrix
/// and the right side.
pub(super) fn tangent<S: Kernel>(
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
pub(super) fn cotangent_of_matrix<S: Kernel>(
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
        Ok(vec![tangent(inputs, self.transposed, &self.x, solve)?])
    }

    fn cotangent(&self, outputs: &[DMatrix<S>], wanted: &[bool]) -> Result<Vec<Option<DMatrix<S>>>, Error> {
        let b = S::solve_factored(&self.factored, !self.transposed, &outputs[0])?;
        Ok(vec![cotangent_of_matrix(&b, self.transposed, &self.x, wanted[0])?, Some(b)])
    }

    fn saved_bytes(&self) -> usize {
        S::factored_bytes(&self.factored) + dense::bytes::<S>(self.x.len())
    }
}
