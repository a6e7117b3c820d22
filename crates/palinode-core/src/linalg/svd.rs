//! The thin singular value decomposition.
//!
//! `A = U diag(s) V^T`, `s` descending and not negative, `k = min(m, n)` columns in `U` and `V`. With
//! `P = U^T dA V`, its symmetric part `Y` and its antisymmetric part `Z`: tangent `ds = diag(P)`, and off the
//! diagonal `(U^T dU)_ij = Y_ij / (s_j - s_i) + Z_ij / (s_j + s_i)`,
//! `(V^T dV)_ij = Y_ij / (s_j - s_i) - Z_ij / (s_j + s_i)`, to which `(I - U U^T) dA V S^-1` is added in `dU`
//! if `m > k`, and `(I - V V^T) dA^T U S^-1` in `dV` if `n > k`. Cotangent: the adjoint of each term; with
//! `x = U^T U' - U'^T U` and `y = V^T V' - V'^T V`,
//! `P'_ij = ((x + y)_ij / (s_j - s_i) + (x - y)_ij / (s_j + s_i)) / 2` (Townsend 2016, *Differentiating the
//! singular value decomposition*, with `s_j^2 - s_i^2` split into its factors, which shows what stays defined
//! where singular values coincide).
//!
//! Where they coincide, or are zero (there `s` is an absolute value):
//! - forward in one direction (`Dual`), a run of equal values moves by the eigenvalues of its block of `Y`,
//!   zeros by the singular values of `dA` between the null spaces, descending. The vectors' tangents are
//!   refused.
//! - in reverse, cotangents that do not depend on the basis pass (equal ones for a run, `x + y = 0` inside
//!   it, such as those of `U V^T`; none for zeros), the rest is refused. Where a value passes through zero
//!   one of its two vectors turns round, so what is made of it and of vectors of the other side (`U V^T`
//!   again) jumps: refused, though it may be even in each.
//! - forward over a tape or in many directions at once the derivative must be linear: refused, unless the run
//!   moves as one.
//!
//! Saved: `U`, `s`, `V^T`. Known limits: the largest component of each left vector is positive, so signs
//! change where two are equal; second derivatives where singular values coincide are refused, also of
//! functions that have them.

use super::kernel::Kernel;
use super::lifted::{Lifted, Rule, inner_of};
use super::results::Svd;
use super::spectrum::{
    Clusters, antisymmetric, divided, is_lost, is_multiple_of_identity, narrowest, negligible, tolerance,
};
use super::{LinearAlgebra, check, dense};
use crate::error::Error;
use crate::matrix::tangents::{self, Divisors};
use nalgebra::{DMatrix, DVector};

/// The thin singular value decomposition of any matrix.
///
/// If singular values coincide or are zero, a reverse sweep gives an error unless its cotangents allow for
/// it; forward numbers get the error here, because the vectors have no tangent then: see [`singular_values`].
///
/// ```
/// use nalgebra::DMatrix;
/// use palinode_core::{grad, linalg};
///
/// let g = grad(|x| {
///     linalg::svd(&DMatrix::from_column_slice(2, 2, x)).unwrap().singular_values[0]
/// }, &[1.0, 0.0, 0.0, -3.0])?;
/// assert_eq!(g, [0.0, 0.0, 0.0, -1.0]);
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn svd<T: LinearAlgebra>(a: &DMatrix<T>) -> Result<Svd<T>, Error> {
    check::finite("svd's matrix", a)?;
    T::svd(a)
}

/// The singular values of any matrix, descending. Forward in one direction they have derivatives also where
/// they coincide or vanish.
///
/// ```
/// use nalgebra::DMatrix;
/// use palinode_core::{Dual, linalg};
///
/// let s = linalg::singular_values(&DMatrix::from_row_slice(1, 1, &[Dual::new(0.0, -2.0)]))?;
/// assert_eq!(s[0].tangent, 2.0); // |x| for a step forwards
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn singular_values<T: LinearAlgebra>(a: &DMatrix<T>) -> Result<DVector<T>, Error> {
    check::finite("singular_values' matrix", a)?;
    T::singular_values(a)
}

struct SvdRule<S> {
    svd: Svd<S>,
    /// Whether the vectors are results, or only the values.
    with_vectors: bool,
    one_direction: bool,
}

pub(super) fn lifted<T: Lifted>(a: &DMatrix<T>) -> Result<Svd<T>, Error> {
    let rule = SvdRule::of::<T>(a, true)?;
    let Svd { u, singular_values, v_transposed } = rule.svd.clone();
    let [s, u, v_transposed] = T::apply(&[a], [dense::as_column(&singular_values), u, v_transposed], rule)?;
    Ok(Svd { u, singular_values: dense::as_vector(&s), v_transposed })
}

pub(super) fn lifted_values<T: Lifted>(a: &DMatrix<T>) -> Result<DVector<T>, Error> {
    let rule = SvdRule::of::<T>(a, false)?;
    let [s] = T::apply(&[a], [dense::as_column(&rule.svd.singular_values)], rule)?;
    Ok(dense::as_vector(&s))
}

/// The part of `m` that is orthogonal to the orthonormal columns of `basis`: `m - basis basis^T m`.
fn off_basis<S: Kernel>(basis: &DMatrix<S>, m: &DMatrix<S>) -> Result<DMatrix<S>, Error> {
    Ok(dense::difference(m, &S::matmul(basis, &dense::transposed_product(basis, m)?)?))
}

impl<S: Kernel> SvdRule<S> {
    fn of<T: Lifted<Inner = S>>(a: &DMatrix<T>, with_vectors: bool) -> Result<Self, Error> {
        Ok(SvdRule { svd: S::svd(&inner_of(a))?, with_vectors, one_direction: T::ONE_DIRECTION })
    }

    fn shape(&self) -> (usize, usize) {
        (self.svd.u.nrows(), self.svd.v_transposed.ncols())
    }

    /// Which singular values coincide, and from which on they are zero.
    fn clusters(&self) -> (Clusters, usize) {
        let s = &self.svd.singular_values;
        let tolerance = tolerance(s, self.shape().0.max(self.shape().1));
        let is_zero = |x: &S| x.peek().is_some_and(|x| x <= tolerance);
        let rank = s.iter().position(is_zero).unwrap_or(s.len());
        (Clusters::of("singular values", s, tolerance), rank)
    }

    /// That singular value `i` is zero, where its derivative was asked for.
    fn zero_error(&self, i: usize) -> Error {
        let value = self.svd.singular_values[i].peek().unwrap_or(f64::NAN);
        Error::Singular { what: "svd", pivot: i, value }
    }

    /// How the singular values of one run move, given `dA` and `P`.
    fn run_tangent(
        &self,
        da: &DMatrix<S>,
        p: &DMatrix<S>,
        clusters: &Clusters,
        run: usize,
        rank: usize,
    ) -> Result<Vec<S>, Error> {
        let run = clusters.runs()[run].clone();
        let is_zero = run.start >= rank;
        let motion = if is_zero {
            self.motion_of_zeros(da, rank)?
        } else {
            dense::symmetrised(&p.view((run.start, run.start), (run.len(), run.len())).into_owned())
        };
        let scale = dense::largest(da.iter());
        if is_zero && dense::largest(motion.iter()) <= negligible::<S>(scale) {
            return Ok(vec![S::zero(); run.len()]);
        }
        if !is_zero && (run.len() == 1 || is_multiple_of_identity(&motion, scale)) {
            return Ok(motion.diagonal().as_slice().to_vec());
        }
        match (self.one_direction, is_zero) {
            (true, true) => Ok(S::singular_values(&motion)?.as_slice().to_vec()),
            (true, false) => Ok(S::symmetric_eigenvalues(&motion)?.iter().rev().copied().collect()),
            (false, true) => Err(self.zero_error(run.start)),
            (false, false) => Err(clusters.error(run.start, run.start + 1)),
        }
    }

    /// `dA` between the null spaces of `A^T` and `A`; the larger one is left in its surrounding space.
    fn motion_of_zeros(&self, da: &DMatrix<S>, rank: usize) -> Result<DMatrix<S>, Error> {
        let Svd { u, v_transposed, .. } = &self.svd;
        let (m, n) = self.shape();
        let zeros = self.svd.singular_values.len() - rank;
        let v = v_transposed.transpose();
        let (tall, wide_side, narrow_side) =
            if m >= n { (da.clone(), u, &v) } else { (da.transpose(), &v, u) };
        let null_space = narrow_side.columns(rank, zeros).into_owned();
        off_basis(&wide_side.columns(0, rank).into_owned(), &S::matmul(&tall, &null_space)?)
    }

    /// The largest singular value, as a plain number.
    fn size(&self) -> f64 {
        self.svd.singular_values.iter().next().and_then(|s| s.peek()).unwrap_or(0.0)
    }

    /// The first singular value that is zero, or so near to it that tangents of vectors which are divided by
    /// it have lost their digits. Those of a square matrix are divided by sums of two, and the last of them
    /// alone is no such sum.
    fn first_narrow(&self, rank: usize) -> Option<usize> {
        let s = &self.svd.singular_values;
        let (m, n) = self.shape();
        let divisor = |i: usize| {
            let own = s[i].peek().unwrap_or(f64::NAN);
            if m == n && i > 0 { own + s[i - 1].peek().unwrap_or(f64::NAN) } else { own }
        };
        let limit = narrowest::<S>() * self.size();
        (0..s.len()).find(|&i| i >= rank || divisor(i) < limit)
    }

    /// An error if the rounding error of a cotangent, divided by a gap, a sum or a singular value, counts in
    /// the result.
    fn refuse_lost(
        &self,
        clusters: &Clusters,
        (u_cotangent, v_cotangent): (&DMatrix<S>, &DMatrix<S>),
        a: &DMatrix<S>,
    ) -> Result<(), Error> {
        let scale =
            |i: usize| dense::largest(u_cotangent.column(i).iter().chain(v_cotangent.column(i).iter()));
        let both = |i: usize, j: usize| scale(i).max(scale(j));
        let found = dense::largest(a.iter());
        clusters.refuse_lost::<S>(both, |x, y| x - y, found)?;
        clusters.refuse_lost::<S>(both, |x, y| x + y, found)?;
        let (m, n) = self.shape();
        let s = &self.svd.singular_values;
        let is_lost = |&i: &usize| {
            let own = s[i].peek().unwrap_or(f64::NAN);
            m != n && is_lost::<S>(scale(i), own, self.size(), found)
        };
        let rank = self.clusters().1;
        (0..rank).find(is_lost).map_or(Ok(()), |i| Err(self.zero_error(i)))
    }

    /// An error if a vector of a singular value that is zero has a cotangent outside the basis: it is divided
    /// by zero.
    fn refuse_zero_columns(&self, outside: &DMatrix<S>, rank: usize, scale: f64) -> Result<(), Error> {
        let has_weight = |&i: &usize| dense::largest(outside.column(i).iter()) > negligible::<S>(scale);
        (rank..outside.ncols()).find(has_weight).map_or(Ok(()), |i| Err(self.zero_error(i)))
    }
}

/// What the tangents and cotangents of vectors are divided by, with zeros for what does not move or must not
/// be asked: between values that coincide, and between zeros.
struct DivisorsOf<'a, S> {
    s: &'a DVector<S>,
    clusters: &'a Clusters,
    rank: usize,
}

impl<S: Kernel> Divisors<dense::Matrices<S>> for DivisorsOf<'_, S> {
    fn over_gaps(&self, _: &mut dense::Matrices<S>, m: &DMatrix<S>) -> DMatrix<S> {
        divided(m, self.s, S::sub, |i, j| self.clusters.together(i, j))
    }
    fn over_sums(&self, _: &mut dense::Matrices<S>, m: &DMatrix<S>) -> DMatrix<S> {
        divided(m, self.s, S::add, |i, j| i == j || i.min(j) >= self.rank)
    }
    fn over_values(&self, _: &mut dense::Matrices<S>, m: &DMatrix<S>, _like: &DMatrix<S>) -> DMatrix<S> {
        let reciprocal = |i: usize, _| if i < self.rank { self.s[i].recip() } else { S::zero() };
        dense::columns_scaled(m, &DVector::from_fn(self.s.len(), reciprocal))
    }
}

impl<S: Kernel> Rule<S> for SvdRule<S> {
    const NAME: &'static str = "svd";

    fn tangent(&self, inputs: &[DMatrix<S>]) -> Result<Vec<DMatrix<S>>, Error> {
        let Svd { u, v_transposed, singular_values } = &self.svd;
        let da = &inputs[0];
        let v = v_transposed.transpose();
        let (clusters, rank) = self.clusters();
        if self.with_vectors {
            clusters.refuse_near::<S>()?;
            if let Some(zero) = self.first_narrow(rank) {
                return Err(self.zero_error(zero));
            }
        }
        let w = &mut dense::Matrices::new();
        let found = tangents::svd(w, da, u, &v)?;
        let p = &found[1];
        let mut tangents = Vec::with_capacity(singular_values.len());
        for run in 0..clusters.runs().len() {
            tangents.extend(self.run_tangent(da, p, &clusters, run, rank)?);
        }
        let mut results = vec![DMatrix::from_vec(tangents.len(), 1, tangents)];
        if self.with_vectors {
            let by = DivisorsOf { s: singular_values, clusters: &clusters, rank };
            let [du, dv] = tangents::singular_vectors(w, da, (u, &v), &found, &by)?;
            results.extend([du, dv.transpose()]);
        }
        Ok(results)
    }

    fn cotangent(&self, outputs: &[DMatrix<S>], _wanted: &[bool]) -> Result<Vec<Option<DMatrix<S>>>, Error> {
        let Svd { u, v_transposed, singular_values } = &self.svd;
        let ((m, n), k) = (self.shape(), singular_values.len());
        let (clusters, rank) = self.clusters();
        clusters.refuse_unequal(&outputs[0])?;
        let allowed = negligible::<S>(dense::largest(outputs[0].iter()));
        if let Some(i) = (rank..k).find(|&i| outputs[0][i].magnitude() > allowed) {
            return Err(self.zero_error(i));
        }
        let mut p = dense::diagonal(&outputs[0]);
        if !self.with_vectors {
            return Ok(vec![Some(S::matmul(&S::matmul(u, &p)?, v_transposed)?)]);
        }
        let v = v_transposed.transpose();
        let (u_cotangent, v_cotangent) = (&outputs[1], &outputs[2].transpose());
        let scale = dense::largest(u_cotangent.iter().chain(v_cotangent.iter()));
        let x = antisymmetric(&dense::transposed_product(u, u_cotangent)?);
        let y = antisymmetric(&dense::transposed_product(&v, v_cotangent)?);
        let (sum, difference) = (dense::sum(&x, &y), dense::difference(&x, &y));
        clusters.refuse_turning(&sum, scale)?;
        let zeros = difference.view((rank, rank), (k - rank, k - rank));
        if dense::largest(zeros.iter()) > negligible::<S>(scale) {
            return Err(clusters.error(rank, rank + 1));
        }
        // The vector of a zero on one side is a branch that goes on, but not beside vectors of the other
        // side.
        let has_weight =
            |m: &DMatrix<S>, i: usize| dense::largest(m.column(i).iter()) > negligible::<S>(scale);
        let of_both = !dense::vanishes(u_cotangent) && !dense::vanishes(v_cotangent);
        let jumps = |&i: &usize| of_both && (has_weight(u_cotangent, i) || has_weight(v_cotangent, i));
        if let Some(i) = (rank..k).find(jumps) {
            return Err(self.zero_error(i));
        }
        let (w, by) =
            (&mut dense::Matrices::new(), DivisorsOf { s: singular_values, clusters: &clusters, rank });
        let turned = dense::sum(&by.over_gaps(w, &sum), &by.over_sums(w, &difference));
        p = dense::sum(&p, &dense::scaled(&turned, S::half()));

        // A' = (U P' + (I - U U^T) U' S^-1) V^T + U ((I - V V^T) V' S^-1)^T.
        let mut left = S::matmul(u, &p)?;
        if m > k {
            let outside = off_basis(u, u_cotangent)?;
            self.refuse_zero_columns(&outside, rank, scale)?;
            left = dense::sum(&left, &by.over_values(w, &outside, u));
        }
        let mut a = S::matmul(&left, v_transposed)?;
        if n > k {
            let outside = off_basis(&v, v_cotangent)?;
            self.refuse_zero_columns(&outside, rank, scale)?;
            let right = by.over_values(w, &outside, &v);
            a = dense::sum(&a, &S::matmul(u, &right.transpose())?);
        }
        self.refuse_lost(&clusters, (u_cotangent, v_cotangent), &a)?;
        Ok(vec![Some(a)])
    }

    fn saved_bytes(&self) -> usize {
        let Svd { u, singular_values, v_transposed } = &self.svd;
        dense::bytes::<S>(u.len() + singular_values.len() + v_transposed.len())
    }
}
