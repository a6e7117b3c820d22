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
//! have them ([`symmetric_eigenpair`] gives those of one that does not).
//!
//! One pair alone:
//! `A v = w v`, `|v| = 1`, as a function of the symmetric part. Where `w` coincides with no other eigenvalue
//! both are smooth, whatever the others do: with `B = [[A - w I, v], [v^T, 0]]`, which is regular there,
//! `B [dv; -dw] = [-dA v; 0]`. Cotangent: with `[y; .] = B^-1 [v'; -w']`, `A' = -sym(y v^T)` (Magnus 1985).
//! No other vector is asked for, so derivatives of every order come from those of a solve.
//!
//! Where it does coincide, both maps refuse; a cotangent of zero asks for nothing. Saved: `A`, `w` and `v`.

use super::kernel::Kernel;
use super::lifted::{Lifted, Rule, inner_of};
use super::results::{Eigenpair, Found, SymmetricEigen};
use super::spectrum::{Clusters, antisymmetric, divided, is_multiple_of_identity, tolerance};
use super::{LinearAlgebra, check, dense};
use crate::error::Error;
use crate::matrix::tangents;
use nalgebra::{DMatrix, DVector};

/// The eigenvalues and eigenvectors of the symmetric part of `a`.
///
/// If eigenvalues coincide, a reverse sweep gives an error unless its cotangents treat them alike; forward
/// numbers get the error here, because the vectors have no tangent then: see [`symmetric_eigenvalues`], and
/// [`symmetric_eigenpair`] for one that coincides with no other.
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
    let rule = EigenRule::of::<T>(a, true)?;
    let SymmetricEigen { values, vectors } = rule.eigen.clone();
    let [values, vectors] = T::apply(&[a], [dense::as_column(&values), vectors], rule)?;
    Ok(SymmetricEigen { values: dense::as_vector(&values), vectors })
}

pub(super) fn lifted_values<T: Lifted>(a: &DMatrix<T>) -> Result<DVector<T>, Error> {
    let rule = EigenRule::of::<T>(a, false)?;
    let [values] = T::apply(&[a], [dense::as_column(&rule.eigen.values)], rule)?;
    Ok(dense::as_vector(&values))
}

impl<S: Kernel> EigenRule<S> {
    fn of<T: Lifted<Inner = S>>(a: &DMatrix<T>, with_vectors: bool) -> Result<Self, Error> {
        let eigen = S::symmetric_eigen(&inner_of(a))?;
        Ok(EigenRule { eigen, with_vectors, one_direction: T::ONE_DIRECTION })
    }

    fn clusters(&self) -> Clusters {
        let values = &self.eigen.values;
        Clusters::of("eigenvalues", values, tolerance(values, values.len()))
    }

    /// `F o m`, zero between eigenvalues that coincide.
    fn divided_by_gaps(&self, clusters: &Clusters, m: &DMatrix<S>) -> DMatrix<S> {
        divided(m, &self.eigen.values, S::sub, |i, j| clusters.together(i, j))
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

/// The eigenvalue with this place in ascending order, and its vector, of the symmetric part of `a`.
///
/// It has derivatives of every order, forward and in reverse, unless it coincides with another eigenvalue;
/// that others coincide does not matter, as it does for [`symmetric_eigen`] of forward numbers.
///
/// ```
/// use nalgebra::{DMatrix, DVector};
/// use palinode_core::{Dual, linalg};
///
/// // diag(2, 2, 5), whose upper right corner moves: the vector of 5 turns by 1 / (5 - 2).
/// let mut a = DMatrix::from_diagonal(&DVector::from_vec(vec![2.0, 2.0, 5.0])).map(Dual::lift);
/// (a[(0, 2)].tangent, a[(2, 0)].tangent) = (1.0, 1.0);
/// let top = linalg::symmetric_eigenpair(&a, 2)?;
/// let turn: f64 = top.vector[0].tangent / top.vector[2].value;
/// assert!((turn - 1.0 / 3.0).abs() < 1e-15);
/// assert_eq!(linalg::symmetric_eigenpair(&a, 0).unwrap_err().code(), "PAL0110");
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn symmetric_eigenpair<T: LinearAlgebra>(a: &DMatrix<T>, index: usize) -> Result<Eigenpair<T>, Error> {
    const WHAT: &str = "symmetric_eigenpair's matrix";
    check::symmetric(WHAT, a)?;
    if index >= a.nrows() {
        let (rows, columns) = a.shape();
        return Err(Error::Shape { what: WHAT, rows, columns, must: "have more rows than the index" });
    }
    Ok(T::symmetric_eigenpair(a, index)?.pair)
}

pub(super) fn plain_pair<S: Kernel>(a: &DMatrix<S>, index: usize) -> Result<Found<S>, Error> {
    let eigen = S::symmetric_eigen(a)?;
    let clusters = Clusters::of("eigenvalues", &eigen.values, tolerance(&eigen.values, a.nrows()));
    let other = (0..a.nrows()).find(|&i| i != index && clusters.together(i, index));
    let vector = eigen.vectors.column(index).into_owned();
    Ok(Found {
        pair: Eigenpair { value: eigen.values[index], vector },
        coincides: other.map(|other| clusters.error(index.min(other), index.max(other))),
    })
}

struct PairRule<S> {
    a: DMatrix<S>,
    pair: Eigenpair<S>,
    coincides: Option<Error>,
}

pub(super) fn lifted_pair<T: Lifted>(a: &DMatrix<T>, index: usize) -> Result<Found<T>, Error> {
    let inner = dense::symmetrised(&inner_of(a));
    let Found { pair, coincides } = T::Inner::symmetric_eigenpair(&inner, index)?;
    let values = [DMatrix::repeat(1, 1, pair.value), dense::as_column(&pair.vector)];
    let rule = PairRule { a: inner, pair, coincides: coincides.clone() };
    let [value, vector] = T::apply(&[a], values, rule)?;
    Ok(Found { pair: Eigenpair { value: value[0], vector: dense::as_vector(&vector) }, coincides })
}

impl<S: Kernel> PairRule<S> {
    /// What the border is multiplied by, so that it is of the size of the matrix: a power of two.
    fn border(&self) -> S {
        let size = dense::largest(dense::constants(&self.a).iter());
        S::from_f64(if size.is_normal() { size.log2().floor().exp2() } else { 1.0 })
    }

    /// `B^-1 [above; below]`, with the border multiplied as above.
    fn solve(&self, above: &DMatrix<S>, below: S) -> Result<DMatrix<S>, Error> {
        if let Some(error) = &self.coincides {
            return Err(error.clone());
        }
        let (n, border) = (self.a.nrows(), self.border());
        let Eigenpair { value, vector } = &self.pair;
        let system = DMatrix::from_fn(n + 1, n + 1, |i, j| match (i < n, j < n) {
            (true, true) if i == j => self.a[(i, i)] - *value,
            (true, true) => self.a[(i, j)],
            (true, false) => vector[i] * border,
            (false, true) => vector[j] * border,
            (false, false) => S::zero(),
        });
        let right = DMatrix::from_fn(n + 1, 1, |i, _| if i < n { above[i] } else { below });
        S::solve_factored(&S::factor("symmetric_eigenpair", &system)?, false, &right)
    }
}

impl<S: Kernel> Rule<S> for PairRule<S> {
    const NAME: &'static str = "symmetric_eigenpair";

    fn tangent(&self, inputs: &[DMatrix<S>]) -> Result<Vec<DMatrix<S>>, Error> {
        let n = self.a.nrows();
        let moved = S::matmul(&dense::symmetrised(&inputs[0]), &dense::as_column(&self.pair.vector))?;
        let solution = self.solve(&dense::negated(&moved), S::zero())?;
        Ok(vec![
            DMatrix::repeat(1, 1, -solution[n] * self.border()),
            DMatrix::from_column_slice(n, 1, &solution.as_slice()[..n]),
        ])
    }

    fn cotangent(&self, outputs: &[DMatrix<S>], _wanted: &[bool]) -> Result<Vec<Option<DMatrix<S>>>, Error> {
        let n = self.a.nrows();
        if outputs.iter().all(dense::vanishes) {
            return Ok(vec![Some(DMatrix::repeat(n, n, S::zero()))]);
        }
        let solution = self.solve(&outputs[1], -outputs[0][0] * self.border())?;
        let y = DMatrix::from_column_slice(n, 1, &solution.as_slice()[..n]);
        let row = DMatrix::from_row_slice(1, n, self.pair.vector.as_slice());
        Ok(vec![Some(dense::negated(&dense::symmetrised(&S::matmul(&y, &row)?)))])
    }

    fn saved_bytes(&self) -> usize {
        dense::bytes::<S>(self.a.len() + self.pair.vector.len() + 1)
    }
}
