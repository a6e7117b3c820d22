//! The kernels on plain numbers, as far as they do not depend on who computes: nalgebra for `f32` and `f64` ([`float`]), this crate's own algorithms for double-doubles
//! and posits ([`general`]).
//!
//! Input: finite matrices of fitting shapes. Output: factors in this module's conventions: eigenvalues ascending, singular values descending, the diagonal of R not
//! negative, every size down to 0 allowed; of a space whose values coincide, a basis that is nobody's favourite ([`crate::matrix`]).
//!
//! A matrix counts as singular when a pivot is within its own rounding error: the pivot `u_ii` is a difference of
//! terms whose absolute values add up to `(|L| |U|)_ii`, so below `n eps` times that nothing is known of it
//! (Higham, *Accuracy and Stability of Numerical Algorithms*, 9.3). The test does not change when rows or columns are scaled.

use super::eigenpair::{self, Found};
use super::function::MatrixFunction;
use super::kernel::Kernel;
use super::{Eigenvalues, Lu, Polar, Qr, Svd, SymmetricEigen, Triangle};
use super::{dense, eigenvalues, float, function, general, polar, pseudo_inverse, sylvester};
use crate::error::Error;
use nalgebra::{DMatrix, DVector};
use palinode_num::{Accumulator, DoubleDouble, Posit, PositWidth, Scalar};
use std::sync::Arc;

/// `P A = L U`, both triangles apart, so that transposed systems can be solved with the triangular kernels too.
pub struct PlainFactored<F> {
    /// Row `i` of `P A` is row `permutation[i]` of `A`.
    pub(super) permutation: Vec<usize>,
    pub(super) permutation_is_odd: bool,
    pub(super) l: DMatrix<F>,
    pub(super) u: DMatrix<F>,
}

macro_rules! plain_kernel {
    ([$($generics:tt)*] $F:ty, $by:ident) => {
        impl<$($generics)*> Kernel for $F {
            type Factored = Arc<PlainFactored<$F>>;

            fn epsilon() -> f64 {
                crate::matrix::epsilon::<$F>()
            }
            fn magnitude(self) -> f64 {
                value_of(self).abs()
            }
            fn matmul_with(
                a: &DMatrix<Self>,
                b: &DMatrix<Self>,
                how: Accumulator,
            ) -> Result<DMatrix<Self>, Error> {
                Ok(match how {
                    Accumulator::Naive => $by::product(a, b),
                    Accumulator::Compensated | Accumulator::Exact => dense::product_of_dots(a, b, how),
                })
            }
            fn solve_triangular(
                t: &DMatrix<Self>,
                triangle: Triangle,
                transposed: bool,
                b: &DMatrix<Self>,
            ) -> Result<DMatrix<Self>, Error> {
                Ok($by::solve_triangular(t, triangle, transposed, b))
            }
            fn factor(what: &'static str, a: &DMatrix<Self>) -> Result<Self::Factored, Error> {
                let factored = $by::factor(a).map_err(|pivot| Error::Singular { what, pivot, value: 0.0 })?;
                factored.refuse_singular(what)?;
                Ok(Arc::new(factored))
            }
            fn factored_bytes(factored: &Self::Factored) -> usize {
                size_of::<PlainFactored<$F>>()
                    + factored.permutation.capacity() * size_of::<usize>()
                    + dense::bytes::<$F>(factored.l.len() + factored.u.len())
            }
            fn solve_factored(
                factored: &Self::Factored,
                transposed: bool,
                b: &DMatrix<Self>,
            ) -> Result<DMatrix<Self>, Error> {
                factored.solve(transposed, b)
            }
            fn log_determinant_factored(factored: &Self::Factored) -> Result<(f64, Self), Error> {
                Ok(factored.log_determinant())
            }
            fn determinant(a: &DMatrix<Self>) -> Result<Self, Error> {
                // Without a pivot it is zero.
                Ok($by::factor(a).map_or(Scalar::zero(), |factored| factored.determinant()))
            }
            fn inverse(a: &DMatrix<Self>) -> Result<DMatrix<Self>, Error> {
                Self::factor("inverse", a)?.solve(false, &dense::identity(a.nrows()))
            }
            fn cholesky(a: &DMatrix<Self>) -> Result<DMatrix<Self>, Error> {
                $by::cholesky(a).ok_or(Error::NotPositiveDefinite { what: "cholesky" })
            }
            fn lu(a: &DMatrix<Self>) -> Result<Lu<Self>, Error> {
                let singular = |pivot| Error::Singular { what: "lu", pivot, value: 0.0 };
                let factored = $by::factor(a).map_err(singular)?;
                factored.refuse_singular("lu")?;
                Ok(Lu { permutation: factored.permutation, l: factored.l, u: factored.u })
            }
            fn qr(a: &DMatrix<Self>) -> Result<Qr<Self>, Error> {
                refuse_dependent_columns($by::qr(a))
            }
            fn symmetric_eigen(a: &DMatrix<Self>) -> Result<SymmetricEigen<Self>, Error> {
                $by::symmetric_eigen(a)
            }
            fn symmetric_eigenvalues(a: &DMatrix<Self>) -> Result<DVector<Self>, Error> {
                Ok($by::symmetric_eigen(a)?.values)
            }
            fn symmetric_eigenpair(a: &DMatrix<Self>, index: usize) -> Result<Found<Self>, Error> {
                eigenpair::plain(a, index)
            }
            fn svd(a: &DMatrix<Self>) -> Result<Svd<Self>, Error> {
                $by::svd(a)
            }
            fn singular_values(a: &DMatrix<Self>) -> Result<DVector<Self>, Error> {
                Ok($by::svd(a)?.singular_values)
            }
            fn eigenvalues(a: &DMatrix<Self>) -> Result<Eigenvalues<Self>, Error> {
                eigenvalues::plain(a)
            }
            fn matrix_function(function: MatrixFunction, a: &DMatrix<Self>) -> Result<DMatrix<Self>, Error> {
                function::plain(function, a)
            }
            fn pseudo_inverse(a: &DMatrix<Self>) -> Result<DMatrix<Self>, Error> {
                pseudo_inverse::plain(a)
            }
            fn polar(a: &DMatrix<Self>) -> Result<Polar<Self>, Error> {
                polar::plain(a)
            }
            fn solve_sylvester(p: &DMatrix<Self>, c: &DMatrix<Self>) -> Result<DMatrix<Self>, Error> {
                sylvester::plain(p, c)
            }
        }
    };
}
plain_kernel!([] f32, float);
plain_kernel!([] f64, float);
plain_kernel!([] DoubleDouble, general);
plain_kernel!([W: PositWidth] Posit<W>, general);

impl<F: Kernel> PlainFactored<F> {
    fn refuse_singular(&self, what: &'static str) -> Result<(), Error> {
        let n = self.u.nrows();
        for pivot in 0..n {
            let value = value_of(self.u[(pivot, pivot)]);
            let term = |k| (value_of(self.l[(pivot, k)]) * value_of(self.u[(k, pivot)])).abs();
            let summed: f64 = (0..=pivot).map(term).sum();
            if is_noise(value, n as f64 * F::epsilon() * summed) {
                return Err(Error::Singular { what, pivot, value });
            }
        }
        Ok(())
    }

    fn solve(&self, transposed: bool, b: &DMatrix<F>) -> Result<DMatrix<F>, Error> {
        let (n, columns) = b.shape();
        if transposed {
            // A^T = U^T L^T P.
            let y = F::solve_triangular(&self.u, Triangle::Upper, true, b)?;
            let y = F::solve_triangular(&self.l, Triangle::Lower, true, &y)?;
            let mut x = y.clone();
            for (i, &row) in self.permutation.iter().enumerate() {
                x.row_mut(row).copy_from(&y.row(i));
            }
            return Ok(x);
        }
        let permuted = DMatrix::from_fn(n, columns, |i, j| b[(self.permutation[i], j)]);
        let y = F::solve_triangular(&self.l, Triangle::Lower, false, &permuted)?;
        F::solve_triangular(&self.u, Triangle::Upper, false, &y)
    }

    fn determinant(&self) -> F {
        let sign = F::from_int(if self.permutation_is_odd { -1 } else { 1 });
        self.u.diagonal().iter().fold(sign, |product, &pivot| product * pivot)
    }

    fn log_determinant(&self) -> (f64, F) {
        let mut sign = if self.permutation_is_odd { -1.0 } else { 1.0 };
        let mut logarithm = F::zero();
        for &pivot in self.u.diagonal().iter() {
            sign *= value_of(pivot).signum();
            logarithm = logarithm + pivot.abs().ln();
        }
        (sign, logarithm)
    }
}

/// An error if a diagonal entry of R is rounding error.
fn refuse_dependent_columns<F: Kernel>(qr: Qr<F>) -> Result<Qr<F>, Error> {
    for pivot in 0..qr.r.ncols() {
        let value = value_of(qr.r[(pivot, pivot)]);
        let column = dense::largest(qr.r.column(pivot).iter());
        if is_noise(value, qr.q.nrows() as f64 * F::epsilon() * column) {
            return Err(Error::Singular { what: "qr", pivot, value });
        }
    }
    Ok(qr)
}

/// Whether a pivot is within its rounding error; also if either overflowed on the way.
fn is_noise(pivot: f64, rounding_error: f64) -> bool {
    pivot.abs() <= rounding_error || !pivot.is_finite() || rounding_error.is_nan()
}

pub(super) fn value_of<F: Scalar>(x: F) -> f64 {
    x.peek().unwrap_or(f64::NAN)
}

pub(super) fn all_finite<'a, F: Scalar>(entries: impl IntoIterator<Item = &'a F>) -> bool {
    entries.into_iter().all(|&x| value_of(x).is_finite())
}
