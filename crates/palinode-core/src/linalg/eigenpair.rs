//! One eigenvalue of a symmetric matrix, with its vector.
//!
//! `A v = w v`, `|v| = 1`, as a function of the symmetric part. Where `w` coincides with no other eigenvalue
//! both are smooth, whatever the others do: with `B = [[A - w I, v], [v^T, 0]]`, which is regular there,
//! `B [dv; -dw] = [-dA v; 0]`. Cotangent: with `[y; .] = B^-1 [v'; -w']`, `A' = -sym(y v^T)` (Magnus 1985).
//! No other vector is asked for, so derivatives of every order come from those of a solve.
//!
//! Where it does coincide, both maps refuse; a cotangent of zero asks for nothing. Saved: `A`, `w` and `v`.

use super::kernel::Kernel;
use super::lifted::{Lifted, Rule, inner_of};
use super::spectrum::{Clusters, tolerance};
use super::{LinearAlgebra, check, dense};
use crate::error::Error;
use nalgebra::{DMatrix, DVector};

/// One eigenvalue and its vector.
#[derive(Clone, Debug)]
pub struct Eigenpair<T> {
    /// The eigenvalue.
    pub value: T,
    /// Its vector, of length 1.
    pub vector: DVector<T>,
}

/// The eigenvalue with this place in ascending order, and its vector, of the symmetric part of `a`.
///
/// It has derivatives of every order, forward and in reverse, unless it coincides with another eigenvalue;
/// that others coincide does not matter, as it does for [`symmetric_eigen`](super::symmetric_eigen()) of
/// forward numbers.
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
    check::square(WHAT, a)?;
    if index >= a.nrows() {
        let (rows, columns) = a.shape();
        return Err(Error::Shape { what: WHAT, rows, columns, must: "have more rows than the index" });
    }
    check::finite(WHAT, a)?;
    check::symmetric(WHAT, a)?;
    Ok(T::symmetric_eigenpair(a, index)?.pair)
}

/// A pair, and whether it coincides with another one.
#[derive(Clone)]
pub struct Found<S> {
    pub(super) pair: Eigenpair<S>,
    /// Why it has no derivative, if it has none.
    pub(super) coincides: Option<Error>,
}

pub(super) fn plain<S: Kernel>(a: &DMatrix<S>, index: usize) -> Result<Found<S>, Error> {
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

pub(super) fn lifted<T: Lifted>(a: &DMatrix<T>, index: usize) -> Result<Found<T>, Error> {
    let inner = dense::symmetrised(&inner_of(a));
    let Found { pair, coincides } = T::Inner::symmetric_eigenpair(&inner, index)?;
    let column = DMatrix::from_column_slice(a.nrows(), 1, pair.vector.as_slice());
    let values = vec![DMatrix::repeat(1, 1, pair.value), column];
    let rule = PairRule { a: inner, pair, coincides: coincides.clone() };
    let results = T::apply(&[a], values, rule)?;
    let pair = Eigenpair { value: results[0][0], vector: dense::as_vector(&results[1]) };
    Ok(Found { pair, coincides })
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
        let vector = DMatrix::from_column_slice(n, 1, self.pair.vector.as_slice());
        let moved = S::matmul(&dense::symmetrised(&inputs[0]), &vector)?;
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
