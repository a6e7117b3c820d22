//! Eigenvalues and eigenvectors of a symmetric matrix.
//!
//! `A = V diag(w) V^T`, `w` ascending, `V^T V = I`, as a function of the symmetric part `(A + A^T) / 2`: both
//! triangles are read, and a cotangent is spread evenly over an entry and its mirror image. With
//! `P = V^T dA V` and `F_ij = 1 / (w_j - w_i)` off the diagonal, zero on it: tangent `dw = diag(P)`,
//! `dV = V (F o P)`; cotangent `A' = V (diag(w') + sym(F o V^T V')) V^T` (Giles 2008, 3.1; Walter and Lehmann
//! 2010).
//!
//! Where eigenvalues coincide, `V` is any basis of their space:
//! - forward in one direction (`Dual`), the eigenvalues move by the eigenvalues of that space's block of `P`,
//!   ascending, for a step forwards (degenerate perturbation theory). The vectors' tangents depend on second
//!   derivatives of `A`: refused.
//! - in reverse, cotangents that do not depend on the basis pass (equal ones for the eigenvalues of a run,
//!   none that turns its vectors into each other); everything else has no gradient and is refused.
//! - forward over a tape or in many directions at once the derivative must be linear: refused, unless the run
//!   moves as one.
//!
//! Saved: `w` and `V`. Known limits: the largest component of each vector is positive, so its sign changes
//! where two are equal; second derivatives where eigenvalues coincide are refused, also of functions that
//! have them ([`super::eigenpair`] gives those of one that does not).

use super::kernel::Kernel;
use super::lifted::{Lifted, Rule, inner_of};
use super::spectrum::{Clusters, antisymmetric, is_multiple_of_identity, tolerance};
use super::{LinearAlgebra, check, dense};
use crate::error::Error;
use crate::matrix::tangents;
use nalgebra::{DMatrix, DVector};

/// Factors with `A = V diag(w) V^T`.
#[derive(Clone, Debug)]
pub struct SymmetricEigen<T> {
    /// The eigenvalues, ascending.
    pub values: DVector<T>,
    /// The eigenvectors, a column each, in the order of the values.
    pub vectors: DMatrix<T>,
}

/// The eigenvalues and eigenvectors of the symmetric part of `a`.
///
/// If eigenvalues coincide, a reverse sweep gives an error unless its cotangents treat them alike; forward
/// numbers get the error here, because the vectors have no tangent then: see [`symmetric_eigenvalues`], and
/// [`symmetric_eigenpair`](super::symmetric_eigenpair) for one that coincides with no other.
///
/// ```
/// use nalgebra::DMatrix;
/// use palinode_core::{grad, linalg};
///
/// let g = grad(|x| {
///     linalg::symmetric_eigen(&DMatrix::from_column_slice(2, 2, x)).unwrap().values[1]
/// }, &[1.0, 0.0, 0.0, 3.0])?;
/// assert_eq!(g, [0.0, 0.0, 0.0, 1.0]);
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn symmetric_eigen<T: LinearAlgebra>(a: &DMatrix<T>) -> Result<SymmetricEigen<T>, Error> {
    check::square("symmetric_eigen's matrix", a)?;
    check::finite("symmetric_eigen's matrix", a)?;
    check::symmetric("symmetric_eigen's matrix", a)?;
    T::symmetric_eigen(a)
}

/// The eigenvalues of the symmetric part of `a`, ascending.
///
/// Forward in one direction they have derivatives also where they coincide:
///
/// ```
/// use nalgebra::DMatrix;
/// use palinode_core::{Dual, linalg};
///
/// let (one, t) = (Dual::lift(1.0), Dual::new(0.0, 1.0));
/// let w = linalg::symmetric_eigenvalues(&DMatrix::from_row_slice(2, 2, &[one, t, t, one]))?;
/// assert_eq!((w[0].tangent, w[1].tangent), (-1.0, 1.0));
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn symmetric_eigenvalues<T: LinearAlgebra>(a: &DMatrix<T>) -> Result<DVector<T>, Error> {
    check::square("symmetric_eigenvalues' matrix", a)?;
    check::finite("symmetric_eigenvalues' matrix", a)?;
    check::symmetric("symmetric_eigenvalues' matrix", a)?;
    T::symmetric_eigenvalues(a)
}

struct EigenRule<S> {
    eigen: SymmetricEigen<S>,
    /// Whether the vectors are results, or only the values.
    with_vectors: bool,
    one_direction: bool,
}

pub(super) fn lifted<T: Lifted>(a: &DMatrix<T>) -> Result<SymmetricEigen<T>, Error> {
    let mut results = evaluate(a, true)?;
    let vectors = results.swap_remove(1);
    Ok(SymmetricEigen { values: dense::as_vector(&results[0]), vectors })
}

pub(super) fn lifted_values<T: Lifted>(a: &DMatrix<T>) -> Result<DVector<T>, Error> {
    Ok(dense::as_vector(&evaluate(a, false)?[0]))
}

fn evaluate<T: Lifted>(a: &DMatrix<T>, with_vectors: bool) -> Result<Vec<DMatrix<T>>, Error> {
    let eigen = T::Inner::symmetric_eigen(&inner_of(a))?;
    let mut values = vec![DMatrix::from_column_slice(a.nrows(), 1, eigen.values.as_slice())];
    if with_vectors {
        values.push(eigen.vectors.clone());
    }
    T::apply(&[a], values, EigenRule { eigen, with_vectors, one_direction: T::ONE_DIRECTION })
}

impl<S: Kernel> EigenRule<S> {
    fn clusters(&self) -> Clusters {
        let values = &self.eigen.values;
        Clusters::of("eigenvalues", values, tolerance(values, values.len()))
    }

    /// `F o m`, zero between eigenvalues that coincide.
    fn divided_by_gaps(&self, clusters: &Clusters, m: &DMatrix<S>) -> DMatrix<S> {
        let w = &self.eigen.values;
        DMatrix::from_fn(m.nrows(), m.ncols(), |i, j| match clusters.together(i, j) {
            true => S::zero(),
            false => m[(i, j)] / (w[j] - w[i]),
        })
    }

    /// How the eigenvalues of one run move, given `V^T dA V`.
    fn run_tangent(&self, p: &DMatrix<S>, clusters: &Clusters, run: usize) -> Result<Vec<S>, Error> {
        let run = &clusters.runs()[run];
        let block = p.view((run.start, run.start), (run.len(), run.len())).into_owned();
        if run.len() == 1 || is_multiple_of_identity(&block, dense::largest(p.iter())) {
            return Ok(block.diagonal().as_slice().to_vec());
        }
        if !self.one_direction {
            return Err(clusters.error(run.start, run.start + 1));
        }
        Ok(S::symmetric_eigenvalues(&block)?.as_slice().to_vec())
    }
}

impl<S: Kernel> Rule<S> for EigenRule<S> {
    const NAME: &'static str = "symmetric_eigen";

    fn tangent(&self, inputs: &[DMatrix<S>]) -> Result<Vec<DMatrix<S>>, Error> {
        let v = &self.eigen.vectors;
        let clusters = self.clusters();
        if self.with_vectors {
            clusters.refuse_near::<S>()?;
        }
        let w = &mut dense::Matrices::new();
        let p = tangents::symmetric_eigen(w, &inputs[0], v)?;
        let mut tangents = Vec::with_capacity(p.nrows());
        for run in 0..clusters.runs().len() {
            tangents.extend(self.run_tangent(&p, &clusters, run)?);
        }
        let mut results = vec![DMatrix::from_vec(p.nrows(), 1, tangents)];
        if self.with_vectors {
            let over_gaps = |_: &mut _, p: &DMatrix<S>| self.divided_by_gaps(&clusters, p);
            results.push(tangents::eigenvectors(w, v, &p, over_gaps)?);
        }
        Ok(results)
    }

    fn cotangent(&self, outputs: &[DMatrix<S>], _wanted: &[bool]) -> Result<Vec<Option<DMatrix<S>>>, Error> {
        let v = &self.eigen.vectors;
        let clusters = self.clusters();
        clusters.refuse_unequal(&outputs[0])?;
        let mut middle = dense::diagonal(&outputs[0]);
        let is_turned = self.with_vectors && !dense::vanishes(&outputs[1]);
        if is_turned {
            let turning = dense::transposed_product(v, &outputs[1])?;
            clusters.refuse_turning(&antisymmetric(&turning), dense::largest(outputs[1].iter()))?;
            middle = dense::sum(&middle, &dense::symmetrised(&self.divided_by_gaps(&clusters, &turning)));
        }
        let a = S::matmul(&S::matmul(v, &middle)?, &v.transpose())?;
        if is_turned {
            let scale = |i: usize| dense::largest(outputs[1].column(i).iter());
            let both = |i: usize, j: usize| scale(i).max(scale(j));
            clusters.refuse_lost::<S>(both, |x, y| x - y, dense::largest(a.iter()))?;
        }
        Ok(vec![Some(dense::symmetrised(&a))])
    }

    fn saved_bytes(&self) -> usize {
        dense::bytes::<S>(self.eigen.values.len() + self.eigen.vectors.len())
    }
}
