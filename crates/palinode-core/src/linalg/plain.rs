//! The kernels on plain numbers: [`crate::matrix`]'s algorithms, with its refusals turned into errors. nalgebra's matrices lie by columns as this crate's do, so they are handed over as they are.
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
use super::{dense, eigenvalues, function, polar, pseudo_inverse, sylvester};
use crate::error::Error;
use crate::matrix::{self, Matrix};
use nalgebra::{DMatrix, DVector};
use palinode_num::{Accumulator, DoubleDouble, Posit, PositWidth, Scalar};
use std::sync::Arc;

/// A copy as this crate's own matrix.
fn own<F: Kernel>(a: &DMatrix<F>) -> Matrix<F> {
    Matrix { rows: a.nrows(), columns: a.ncols(), data: a.as_slice().to_vec() }
}

fn given_back<F: Kernel>(a: Matrix<F>) -> DMatrix<F> {
    DMatrix::from_vec(a.rows, a.columns, a.data)
}

/// The factors, or the error that names the pivot which says nothing.
fn factored<F: Kernel>(what: &'static str, a: &DMatrix<F>) -> Result<matrix::Lu<F>, Error> {
    let lu = matrix::Lu::new(own(a)).map_err(|pivot| Error::Singular { what, pivot, value: 0.0 })?;
    let (n, factors) = (a.nrows(), &lu.factors);
    for pivot in 0..n {
        let value = value_of(factors[(pivot, pivot)]);
        let term = |k| (value_of(factors[(pivot, k)]) * value_of(factors[(k, pivot)])).abs();
        let summed = (0..pivot).map(term).sum::<f64>() + value.abs();
        if is_noise(value, n as f64 * F::epsilon() * summed) {
            return Err(Error::Singular { what, pivot, value });
        }
    }
    Ok(lu)
}

/// The product of the pivots; without one it is zero.
fn determinant<F: Kernel>(a: &DMatrix<F>) -> F {
    matrix::Lu::new(own(a)).map_or(F::zero(), |lu| {
        let sign = F::from_int(if lu.is_odd { -1 } else { 1 });
        lu.pivots().fold(sign, |product, pivot| product * pivot)
    })
}

fn solved<F: Kernel>(lu: &matrix::Lu<F>, transposed: bool, b: &DMatrix<F>) -> DMatrix<F> {
    let mut x = b.clone();
    lu.solve(transposed, x.as_mut_slice());
    x
}

fn both_triangles<F: Kernel>(lu: matrix::Lu<F>) -> Lu<F> {
    let (n, factors) = (lu.factors.rows, &lu.factors);
    let mut l = dense::identity(n);
    (0..n).for_each(|j| (j + 1..n).for_each(|i| l[(i, j)] = factors[(i, j)]));
    let u = DMatrix::from_fn(n, n, |i, j| if i <= j { factors[(i, j)] } else { F::zero() });
    Lu { permutation: lu.from, l, u }
}

macro_rules! plain_kernel {
    ([$($generics:tt)*] $F:ty) => {
        impl<$($generics)*> Kernel for $F {
            type Factored = Arc<matrix::Lu<$F>>;

            fn epsilon() -> f64 {
                matrix::epsilon::<$F>()
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
                    Accumulator::Naive => given_back(matrix::product(&own(a), &own(b))),
                    Accumulator::Compensated | Accumulator::Exact => dense::product_of_dots(a, b, how),
                })
            }
            fn solve_triangular(
                t: &DMatrix<Self>,
                triangle: Triangle,
                transposed: bool,
                b: &DMatrix<Self>,
            ) -> Result<DMatrix<Self>, Error> {
                let t = if transposed { own(t).transposed() } else { own(t) };
                let mut x = b.clone();
                let lower = matches!(triangle, Triangle::Lower) != transposed;
                matrix::substitute(&t, lower, false, x.as_mut_slice());
                Ok(x)
            }
            fn factor(what: &'static str, a: &DMatrix<Self>) -> Result<Self::Factored, Error> {
                factored(what, a).map(Arc::new)
            }
            fn factored_bytes(factored: &Self::Factored) -> usize {
                size_of::<matrix::Lu<$F>>()
                    + factored.from.capacity() * size_of::<usize>()
                    + dense::bytes::<$F>(factored.factors.data.capacity())
            }
            fn solve_factored(
                factored: &Self::Factored,
                transposed: bool,
                b: &DMatrix<Self>,
            ) -> Result<DMatrix<Self>, Error> {
                Ok(solved(factored, transposed, b))
            }
            fn log_determinant_factored(factored: &Self::Factored) -> Result<(f64, Self), Error> {
                let mut sign = if factored.is_odd { -1.0 } else { 1.0 };
                let mut logarithm: Self = Scalar::zero();
                for pivot in factored.pivots() {
                    sign *= value_of(pivot).signum();
                    logarithm = logarithm + Scalar::ln(Scalar::abs(pivot));
                }
                Ok((sign, logarithm))
            }
            fn determinant(a: &DMatrix<Self>) -> Result<Self, Error> {
                Ok(determinant(a))
            }
            fn inverse(a: &DMatrix<Self>) -> Result<DMatrix<Self>, Error> {
                Ok(solved(&factored("inverse", a)?, false, &dense::identity(a.nrows())))
            }
            fn cholesky(a: &DMatrix<Self>) -> Result<DMatrix<Self>, Error> {
                let refused = |_| Error::NotPositiveDefinite { what: "cholesky" };
                matrix::cholesky(own(a)).map(given_back).map_err(refused)
            }
            fn lu(a: &DMatrix<Self>) -> Result<Lu<Self>, Error> {
                factored("lu", a).map(both_triangles)
            }
            fn qr(a: &DMatrix<Self>) -> Result<Qr<Self>, Error> {
                let (q, r) = matrix::qr(&own(a));
                refuse_dependent_columns(Qr { q: given_back(q), r: given_back(r) })
            }
            fn symmetric_eigen(a: &DMatrix<Self>) -> Result<SymmetricEigen<Self>, Error> {
                let found = matrix::symmetric_eigen(own(a));
                let (values, vectors) = found.ok_or(Error::NoConvergence { what: "symmetric_eigen" })?;
                Ok(SymmetricEigen { values: DVector::from_vec(values), vectors: given_back(vectors) })
            }
            fn symmetric_eigenvalues(a: &DMatrix<Self>) -> Result<DVector<Self>, Error> {
                Ok(Self::symmetric_eigen(a)?.values)
            }
            fn symmetric_eigenpair(a: &DMatrix<Self>, index: usize) -> Result<Found<Self>, Error> {
                eigenpair::plain(a, index)
            }
            fn svd(a: &DMatrix<Self>) -> Result<Svd<Self>, Error> {
                let (u, s, v) = matrix::svd(&own(a)).ok_or(Error::NoConvergence { what: "svd" })?;
                let v_transposed = given_back(v.transposed());
                Ok(Svd { u: given_back(u), singular_values: DVector::from_vec(s), v_transposed })
            }
            fn singular_values(a: &DMatrix<Self>) -> Result<DVector<Self>, Error> {
                Ok(Self::svd(a)?.singular_values)
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
plain_kernel!([] f32);
plain_kernel!([] f64);
plain_kernel!([] DoubleDouble);
plain_kernel!([W: PositWidth] Posit<W>);

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

fn value_of<F: Scalar>(x: F) -> f64 {
    x.peek().unwrap_or(f64::NAN)
}
