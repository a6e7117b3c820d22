//! The polar decomposition: `A = Q P`, `Q` with orthonormal columns, `P` symmetric positive definite.
//!
//! Both are smooth wherever `A` has full column rank, also where singular values coincide. Tangent: with
//! `B = Q^T dA`, the turn `W = Q^T dQ` is antisymmetric and solves `P W + W P = B - B^T`; `dP = B - W P` and
//! `dQ = Q W + (I - Q Q^T) dA P^-1`. Cotangent: with `C = Q^T Q' - sym(P') P` and `H` of
//! `P H + H P = C - C^T`, `A' = Q (sym(P') + H) + (I - Q Q^T) Q' P^-1` (Higham 2008, *Functions of Matrices*,
//! 8.1; the differential of `A = Q P`).
//!
//! Saved: `Q` and `P`.

use super::kernel::Kernel;
use super::lifted::{Lifted, Rule, inner_of};
use super::spectrum::{antisymmetric, tolerance};
use super::{LinearAlgebra, Svd, check, dense};
use crate::error::Error;
use nalgebra::DMatrix;

/// Factors with `A = Q P`.
#[derive(Clone, Debug)]
pub struct Polar<T> {
    /// Orthonormal columns: of a square matrix a rotation, or a reflection if the determinant is negative.
    pub q: DMatrix<T>,
    /// Symmetric positive definite: the stretch.
    pub p: DMatrix<T>,
}

/// The polar decomposition of a matrix with at least as many rows as columns.
///
/// An error if the columns depend on each other as far as rounding can tell: `Q` jumps there.
///
/// ```
/// use nalgebra::DMatrix;
/// use palinode_core::{grad, linalg};
///
/// // A rotation by t, stretched: Q is [[cos t, -sin t], [sin t, cos t]] whatever the stretch.
/// let g: Vec<f64> = grad(|x| {
///     let (s, c) = x[0].sin_cos();
///     let a = DMatrix::from_row_slice(2, 2, &[c * 3.0, -s * 3.0, s * 3.0, c * 3.0]);
///     linalg::polar(&a).unwrap().q[(1, 0)]
/// }, &[0.0])?;
/// assert!((g[0] - 1.0).abs() < 1e-14);
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn polar<T: LinearAlgebra>(a: &DMatrix<T>) -> Result<Polar<T>, Error> {
    check::tall("polar's matrix", a)?;
    check::finite("polar's matrix", a)?;
    T::polar(a)
}

pub(super) fn plain<S: Kernel>(a: &DMatrix<S>) -> Result<Polar<S>, Error> {
    let Svd { u, singular_values, v_transposed } = S::svd(a)?;
    let tolerance = tolerance(&singular_values, a.nrows());
    let value = |x: &S| x.glance().unwrap_or(f64::NAN);
    if let Some(pivot) = singular_values.iter().position(|s| value(s) <= tolerance) {
        return Err(Error::Singular { what: "polar", pivot, value: value(&singular_values[pivot]) });
    }
    let stretched = dense::columns_scaled(&v_transposed.transpose(), &singular_values);
    Ok(Polar {
        q: S::matmul(&u, &v_transposed)?,
        p: dense::symmetrised(&S::matmul(&stretched, &v_transposed)?),
    })
}

struct PolarRule<S> {
    factors: Polar<S>,
}

pub(super) fn lifted<T: Lifted>(a: &DMatrix<T>) -> Result<Polar<T>, Error> {
    let factors = T::Inner::polar(&inner_of(a))?;
    let values = vec![factors.q.clone(), factors.p.clone()];
    let mut results = T::apply(&[a], values, PolarRule { factors })?;
    let p = results.swap_remove(1);
    Ok(Polar { q: results.swap_remove(0), p })
}

impl<S: Kernel> PolarRule<S> {
    /// `(I - Q Q^T) m P^-1`; nothing if `Q` is square.
    fn outside(&self, m: &DMatrix<S>) -> Result<Option<DMatrix<S>>, Error> {
        let Polar { q, p } = &self.factors;
        if q.nrows() == q.ncols() {
            return Ok(None);
        }
        let rest = dense::difference(m, &S::matmul(q, &dense::transposed_product(q, m)?)?);
        let factored = S::factor("polar", p)?;
        Ok(Some(S::solve_factored(&factored, true, &rest.transpose())?.transpose()))
    }
}

impl<S: Kernel> Rule<S> for PolarRule<S> {
    const NAME: &'static str = "polar";

    fn tangent(&self, inputs: &[DMatrix<S>]) -> Result<Vec<DMatrix<S>>, Error> {
        let Polar { q, p } = &self.factors;
        let b = dense::transposed_product(q, &inputs[0])?;
        let turn = S::solve_sylvester(p, &antisymmetric(&b))?;
        let dp = dense::symmetrised(&dense::difference(&b, &S::matmul(&turn, p)?));
        let mut dq = S::matmul(q, &turn)?;
        if let Some(outside) = self.outside(&inputs[0])? {
            dq = dense::sum(&dq, &outside);
        }
        Ok(vec![dq, dp])
    }

    fn cotangent(&self, outputs: &[DMatrix<S>], _wanted: &[bool]) -> Result<Vec<Option<DMatrix<S>>>, Error> {
        let Polar { q, p } = &self.factors;
        let p_cotangent = dense::symmetrised(&outputs[1]);
        let of_turn =
            dense::difference(&dense::transposed_product(q, &outputs[0])?, &S::matmul(&p_cotangent, p)?);
        let h = S::solve_sylvester(p, &antisymmetric(&of_turn))?;
        let mut a = S::matmul(q, &dense::sum(&p_cotangent, &h))?;
        if let Some(outside) = self.outside(&outputs[0])? {
            a = dense::sum(&a, &outside);
        }
        Ok(vec![Some(a)])
    }

    fn saved_bytes(&self) -> usize {
        dense::bytes::<S>(self.factors.q.len() + self.factors.p.len())
    }
}
