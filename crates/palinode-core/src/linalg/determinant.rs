//! The determinant, and the logarithm of its absolute value.
//!
//! `d = det A`. Tangent: `dd = d tr(A^-1 dA) = <d A^-T, dA>` (Jacobi). Cotangent: `A' = d' d A^-T`.
//! `l = ln |det A|`. Tangent: `dl = <A^-T, dA>`. Cotangent: `A' = l' A^-T` (Giles 2008, 2.2.5).
//!
//! Saved: the factorisation, and `d`.
//!
//! Known limit: the determinant of a singular matrix is 0 and has a derivative, the cofactors, but it is not found
//! through `A^-1`: an active singular matrix is refused, a constant one is not.

use super::kernel::Kernel;
use super::lifted::{Block, Lifted, Rule, inner_of};
use super::{LinearAlgebra, check, dense};
use crate::error::Error;
use nalgebra::DMatrix;

/// The determinant of a square matrix; 1 for an empty one.
///
/// An error if the matrix is singular and its derivative is asked for. For large matrices it overflows long before
/// [`log_determinant`] does.
///
/// ```
/// use nalgebra::DMatrix;
/// use palinode_core::{grad, linalg};
///
/// let g = grad(|x| linalg::determinant(&DMatrix::from_column_slice(2, 2, x)).unwrap(), &[2.0, 0.0, 1.0, 3.0])?;
/// assert_eq!(g, [3.0, -1.0, 0.0, 2.0]);
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn determinant<T: LinearAlgebra>(a: &DMatrix<T>) -> Result<T, Error> {
    check::square("determinant's matrix", a)?;
    check::finite("determinant's matrix", a)?;
    T::determinant(a)
}

/// A determinant that neither overflows nor underflows: `sign * exp(ln_abs)`.
#[derive(Clone, Copy, Debug)]
pub struct LogDeterminant<T> {
    /// 1 or -1.
    pub sign: f64,
    /// The logarithm of the absolute value.
    pub ln_abs: T,
}

/// The logarithm of the determinant's absolute value, with its sign.
///
/// An error if the matrix is singular.
///
/// ```
/// use nalgebra::DMatrix;
/// use palinode_core::linalg;
///
/// let det = linalg::log_determinant(&DMatrix::from_row_slice(2, 2, &[0.0, 2.0, 1.0, 0.0]))?;
/// assert_eq!((det.sign, det.ln_abs), (-1.0, 2f64.ln()));
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn log_determinant<T: LinearAlgebra>(a: &DMatrix<T>) -> Result<LogDeterminant<T>, Error> {
    check::square("log_determinant's matrix", a)?;
    check::finite("log_determinant's matrix", a)?;
    let (sign, ln_abs) = T::log_determinant_factored(&T::factor("log_determinant", a)?)?;
    Ok(LogDeterminant { sign, ln_abs })
}

struct Determinant<S: Kernel> {
    n: usize,
    factored: S::Factored,
    /// The determinant, or `None` if its logarithm is what is differentiated.
    determinant: Option<S>,
}

pub(super) fn lifted<T: Lifted>(a: &DMatrix<T>) -> Result<T, Error> {
    let inner = inner_of(a);
    let determinant = T::Inner::determinant(&inner)?;
    if a.iter().all(|x| x.is_constant()) {
        return Ok(T::constant_of(determinant));
    }
    let factored = T::Inner::factor("determinant", &inner)?;
    let rule = Determinant { n: a.nrows(), factored, determinant: Some(determinant) };
    Ok(T::apply_for_one(&[a], DMatrix::repeat(1, 1, determinant), rule)?[0])
}

pub(super) fn lifted_logarithm<T: Lifted>(factored: &T::Factored) -> Result<(f64, T), Error> {
    let (sign, logarithm) = T::Inner::log_determinant_factored(&factored.inner)?;
    let n = factored.matrix.nrows();
    let rule = Determinant { n, factored: factored.inner.clone(), determinant: None };
    Ok((sign, T::apply_for_one(&[&factored.matrix], DMatrix::repeat(1, 1, logarithm), rule)?[0]))
}

impl<S: Kernel> Determinant<S> {
    /// `A^-T`, times the determinant if that is the result.
    fn gradient(&self) -> Result<DMatrix<S>, Error> {
        let inverse_transposed = S::solve_factored(&self.factored, true, &dense::identity(self.n))?;
        Ok(match self.determinant {
            Some(determinant) => dense::scaled(&inverse_transposed, determinant),
            None => inverse_transposed,
        })
    }
}

impl<S: Kernel> Rule<S> for Determinant<S> {
    const NAME: &'static str = "determinant";

    fn inputs(&self) -> Vec<Block> {
        vec![Block::full(self.n, self.n)]
    }

    fn outputs(&self) -> Vec<Block> {
        vec![Block::full(1, 1)]
    }

    fn tangent(&self, inputs: &[DMatrix<S>]) -> Result<Vec<DMatrix<S>>, Error> {
        Ok(vec![DMatrix::repeat(1, 1, dense::inner_product(&self.gradient()?, &inputs[0]))])
    }

    fn cotangent(&self, outputs: &[DMatrix<S>], _wanted: &[bool]) -> Result<Vec<Option<DMatrix<S>>>, Error> {
        Ok(vec![Some(dense::scaled(&self.gradient()?, outputs[0][0]))])
    }

    fn saved_bytes(&self) -> usize {
        S::factored_bytes(&self.factored)
    }
}
