//! The polar decomposition: `A = Q P`, `Q` with orthonormal columns, `P` symmetric positive definite.
//!
//! Both are smooth wherever `A` has full column rank, also where singular values coincide. Tangent: with
//! `B = Q^T dA`, the turn `W = Q^T dQ` is antisymmetric and solves `P W + W P = B - B^T`; `dP = B - W P` and
//! `dQ = Q W + (I - Q Q^T) dA P^-1`. Cotangent: with `C = Q^T Q' - sym(P') P` and `H` of
//! `P H + H P = C - C^T`, `A' = Q (sym(P') + H) + (I - Q Q^T) Q' P^-1` (Higham 2008, *Functions of Matrices*,
//! 8.1; the differential of `A = Q P`).
//!
//! Saved: `Q` and `P`.
//!
//! Sylvester's equation with one symmetric positive definite matrix is what the derivatives solve:
//! `P Y + Y P = C`, for an antisymmetric `C`; so is `Y`.
//! Tangent: `P dY + dY P = dC - dP Y - Y dP`. Cotangent: with `Z` of `P Z + Z P = Y'`, `C' = Z` and
//! `P' = -(Z Y^T + Y^T Z)`. Unlike eigenvectors of `P`, the solution is smooth where eigenvalues of `P`
//! coincide, so this is an operation of its own. On plain numbers, in the eigenbasis of `P` each entry is
//! divided by a sum of two eigenvalues; that there is nothing on the diagonal, where the sum is twice one
//! that may be small, is why only antisymmetric matrices go.

use super::kernel::Kernel;
use super::lifted::{Lifted, Rule, inner_of};
use super::results::{Polar, Svd, SymmetricEigen};
use super::spectrum::{antisymmetric, tolerance};
use super::{LinearAlgebra, check, dense};
use crate::error::Error;
use nalgebra::DMatrix;

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
    T::polar(a)
}

pub(super) fn plain<S: Kernel>(a: &DMatrix<S>) -> Result<Polar<S>, Error> {
    let Svd { u, singular_values, v_transposed } = S::svd(a)?;
    let tolerance = tolerance(&singular_values, a.nrows());
    if let Some(pivot) = singular_values.iter().position(|&s| dense::value_of(s) <= tolerance) {
        let value = dense::value_of(singular_values[pivot]);
        return Err(Error::Singular { what: "polar", pivot, value });
    }
    let stretched = dense::columns_scaled(&v_transposed.transpose(), &singular_values);
    Ok(Polar {
        q: S::matmul(&u, &v_transposed)?,
        p: dense::symmetrised(&S::matmul(&stretched, &v_transposed)?),
    })
}

pub(super) fn lifted<T: Lifted>(a: &DMatrix<T>) -> Result<Polar<T>, Error> {
    let factors = T::Inner::polar(&inner_of(a))?;
    let [q, p] = T::apply(&[a], [factors.q.clone(), factors.p.clone()], factors)?;
    Ok(Polar { q, p })
}

impl<S: Kernel> Polar<S> {
    /// `(I - Q Q^T) m P^-1`; nothing if `Q` is square.
    fn outside(&self, m: &DMatrix<S>) -> Result<Option<DMatrix<S>>, Error> {
        let Polar { q, p } = self;
        if q.nrows() == q.ncols() {
            return Ok(None);
        }
        let rest = dense::difference(m, &S::matmul(q, &dense::transposed_product(q, m)?)?);
        let factored = S::factor("polar", p)?;
        Ok(Some(S::solve_factored(&factored, true, &rest.transpose())?.transpose()))
    }
}

impl<S: Kernel> Rule<S> for Polar<S> {
    const NAME: &'static str = "polar";

    fn tangent(&self, inputs: &[DMatrix<S>]) -> Result<Vec<DMatrix<S>>, Error> {
        let Polar { q, p } = self;
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
        let Polar { q, p } = self;
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
        dense::bytes::<S>(self.q.len() + self.p.len())
    }
}

pub(super) fn plain_sylvester<S: Kernel>(p: &DMatrix<S>, c: &DMatrix<S>) -> Result<DMatrix<S>, Error> {
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

pub(super) fn lifted_sylvester<T: Lifted>(p: &DMatrix<T>, c: &DMatrix<T>) -> Result<DMatrix<T>, Error> {
    let inner = inner_of(p);
    let y = T::Inner::solve_sylvester(&inner, &inner_of(c))?;
    let [x] = T::apply(&[p, c], [y.clone()], Sylvester { p: inner, y })?;
    Ok(x)
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
