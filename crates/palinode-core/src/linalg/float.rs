//! The kernels on plain numbers: nalgebra's, with its panics and endless loops turned into errors.
//!
//! Input: finite matrices of fitting shapes. Output: factors in this module's conventions: eigenvalues ascending,
//! singular values descending, the diagonal of R not negative, every size down to 0 allowed.
//!
//! A matrix counts as singular when a pivot is within its own rounding error: the pivot `u_ii` is a difference of
//! terms whose absolute values add up to `(|L| |U|)_ii`, so below `n eps` times that nothing is known of it
//! (Higham, *Accuracy and Stability of Numerical Algorithms*, 9.3). The test does not change when rows or columns are scaled.

use super::kernel::Kernel;
use super::{Lu, Qr, Svd, SymmetricEigen, Triangle, dense, float_svd};
use crate::error::Error;
use nalgebra::{DMatrix, DVector, RealField};
use palinode_num::{Accumulator, Scalar};
use std::sync::Arc;

/// How many sweeps an iterative decomposition may take per row; it needs two or three.
const SWEEPS_PER_ROW: usize = 100;

/// `P A = L U`, both triangles apart, so that transposed systems can be solved with nalgebra's kernels too.
pub struct FloatFactored<F> {
    /// Row `i` of `P A` is row `permutation[i]` of `A`.
    permutation: Vec<usize>,
    permutation_is_odd: bool,
    l: DMatrix<F>,
    u: DMatrix<F>,
}

macro_rules! float_kernel {
    ($F:ty) => {
        impl Kernel for $F {
            type Factored = Arc<FloatFactored<$F>>;

            fn epsilon() -> f64 {
                f64::from(<$F>::EPSILON)
            }
            fn magnitude(self) -> f64 {
                f64::from(self.abs())
            }
            fn matmul_with(
                a: &DMatrix<Self>,
                b: &DMatrix<Self>,
                how: Accumulator,
            ) -> Result<DMatrix<Self>, Error> {
                Ok(match how {
                    Accumulator::Naive => a * b,
                    Accumulator::Compensated | Accumulator::Exact => dense::product_of_dots(a, b, how),
                })
            }
            fn solve_triangular(
                t: &DMatrix<Self>,
                triangle: Triangle,
                transposed: bool,
                b: &DMatrix<Self>,
            ) -> Result<DMatrix<Self>, Error> {
                Ok(solve_triangular(t, triangle, transposed, b))
            }
            fn factor(what: &'static str, a: &DMatrix<Self>) -> Result<Self::Factored, Error> {
                let factored = factor(a);
                factored.refuse_singular(what)?;
                Ok(Arc::new(factored))
            }
            fn factored_bytes(factored: &Self::Factored) -> usize {
                size_of::<FloatFactored<$F>>()
                    + factored.permutation.capacity() * size_of::<usize>()
                    + dense::bytes::<$F>(factored.l.len() + factored.u.len())
            }
            fn solve_factored(
                factored: &Self::Factored,
                transposed: bool,
                b: &DMatrix<Self>,
            ) -> Result<DMatrix<Self>, Error> {
                Ok(factored.solve(transposed, b))
            }
            fn log_determinant_factored(factored: &Self::Factored) -> Result<(f64, Self), Error> {
                Ok(factored.log_determinant())
            }
            fn determinant(a: &DMatrix<Self>) -> Result<Self, Error> {
                Ok(factor(a).determinant())
            }
            fn inverse(a: &DMatrix<Self>) -> Result<DMatrix<Self>, Error> {
                Ok(Self::factor("inverse", a)?.solve(false, &dense::identity(a.nrows())))
            }
            fn cholesky(a: &DMatrix<Self>) -> Result<DMatrix<Self>, Error> {
                let cholesky = nalgebra::Cholesky::new(dense::symmetrised(a));
                Ok(cholesky.ok_or(Error::NotPositiveDefinite { what: "cholesky" })?.unpack())
            }
            fn lu(a: &DMatrix<Self>) -> Result<Lu<Self>, Error> {
                let factored = factor(a);
                factored.refuse_singular("lu")?;
                Ok(Lu { permutation: factored.permutation, l: factored.l, u: factored.u })
            }
            fn qr(a: &DMatrix<Self>) -> Result<Qr<Self>, Error> {
                qr(a)
            }
            fn symmetric_eigen(a: &DMatrix<Self>) -> Result<SymmetricEigen<Self>, Error> {
                symmetric_eigen(a)
            }
            fn symmetric_eigenvalues(a: &DMatrix<Self>) -> Result<DVector<Self>, Error> {
                Ok(symmetric_eigen(a)?.values)
            }
            fn svd(a: &DMatrix<Self>) -> Result<Svd<Self>, Error> {
                float_svd::svd(a)
            }
            fn singular_values(a: &DMatrix<Self>) -> Result<DVector<Self>, Error> {
                Ok(float_svd::svd(a)?.singular_values)
            }
        }
    };
}
float_kernel!(f32);
float_kernel!(f64);

fn solve_triangular<F: RealField>(
    t: &DMatrix<F>,
    triangle: Triangle,
    transposed: bool,
    b: &DMatrix<F>,
) -> DMatrix<F> {
    match (triangle, transposed) {
        (Triangle::Lower, false) => t.solve_lower_triangular_unchecked(b),
        (Triangle::Lower, true) => t.tr_solve_lower_triangular_unchecked(b),
        (Triangle::Upper, false) => t.solve_upper_triangular_unchecked(b),
        (Triangle::Upper, true) => t.tr_solve_upper_triangular_unchecked(b),
    }
}

fn factor<F: Kernel + RealField>(a: &DMatrix<F>) -> FloatFactored<F> {
    let (swaps, l, u) = nalgebra::LU::new(a.clone()).unpack();
    let mut rows = DVector::from_fn(a.nrows(), |i, _| i);
    swaps.permute_rows(&mut rows);
    FloatFactored { permutation: rows.data.into(), permutation_is_odd: swaps.len() % 2 == 1, l, u }
}

impl<F: Kernel + RealField> FloatFactored<F> {
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

    fn solve(&self, transposed: bool, b: &DMatrix<F>) -> DMatrix<F> {
        let (n, columns) = b.shape();
        if transposed {
            // A^T = U^T L^T P.
            let y = solve_triangular(&self.u, Triangle::Upper, true, b);
            let y = solve_triangular(&self.l, Triangle::Lower, true, &y);
            let mut x = y.clone();
            for (i, &row) in self.permutation.iter().enumerate() {
                x.row_mut(row).copy_from(&y.row(i));
            }
            return x;
        }
        let permuted = DMatrix::from_fn(n, columns, |i, j| b[(self.permutation[i], j)]);
        let y = solve_triangular(&self.l, Triangle::Lower, false, &permuted);
        solve_triangular(&self.u, Triangle::Upper, false, &y)
    }

    fn determinant(&self) -> F {
        let sign = F::from_int(if self.permutation_is_odd { -1 } else { 1 });
        self.u.diagonal().iter().fold(sign, |product, &pivot| product * pivot)
    }

    fn log_determinant(&self) -> (f64, F) {
        let mut sign = if self.permutation_is_odd { -1.0 } else { 1.0 };
        let mut logarithm = <F as Scalar>::zero();
        for &pivot in self.u.diagonal().iter() {
            sign *= value_of(pivot).signum();
            logarithm += Scalar::ln(Scalar::abs(pivot));
        }
        (sign, logarithm)
    }
}

fn qr<F: Kernel + RealField>(a: &DMatrix<F>) -> Result<Qr<F>, Error> {
    let scales = DVector::from_fn(a.ncols(), |j, _| column_scale(a, j));
    let qr = nalgebra::QR::new(DMatrix::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)] / scales[j]));
    let (q, r) = (qr.q(), dense::columns_scaled(&qr.r(), &scales));
    for pivot in 0..r.ncols() {
        let value = value_of(r[(pivot, pivot)]);
        let column = dense::largest(r.column(pivot).iter());
        if is_noise(value, a.nrows() as f64 * F::epsilon() * column) {
            return Err(Error::Singular { what: "qr", pivot, value });
        }
    }
    Ok(Qr { q, r })
}

/// What to divide a column by so that the squares of its entries neither overflow nor vanish; 1 if they do not anyway.
fn column_scale<F: Kernel + RealField>(a: &DMatrix<F>, column: usize) -> F {
    let largest = dense::largest(a.column(column).iter());
    let margin = F::epsilon().powi(2);
    let is_ordinary = (margin..=margin.recip()).contains(&largest) || largest == 0.0;
    Scalar::from_f64(if is_ordinary { 1.0 } else { largest })
}

fn symmetric_eigen<F: Kernel + RealField>(a: &DMatrix<F>) -> Result<SymmetricEigen<F>, Error> {
    let n = a.nrows();
    if n == 0 {
        return Ok(SymmetricEigen { values: DVector::from_vec(vec![]), vectors: a.clone() });
    }
    let no_convergence = Error::NoConvergence { what: "symmetric_eigen" };
    let sweeps = SWEEPS_PER_ROW * n;
    let eigen = nalgebra::SymmetricEigen::try_new(dense::symmetrised(a), F::default_epsilon(), sweeps)
        .ok_or_else(|| no_convergence.clone())?;
    let values = &eigen.eigenvalues;
    if !all_finite(values.iter()) || !all_finite(eigen.eigenvectors.iter()) {
        return Err(no_convergence);
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| value_of(values[i]).total_cmp(&value_of(values[j])));
    Ok(SymmetricEigen {
        values: DVector::from_fn(n, |i, _| values[order[i]]),
        vectors: DMatrix::from_fn(n, n, |i, j| eigen.eigenvectors[(i, order[j])]),
    })
}

/// Whether a pivot is within its rounding error; also if either overflowed on the way.
fn is_noise(pivot: f64, rounding_error: f64) -> bool {
    pivot.abs() <= rounding_error || !pivot.is_finite() || rounding_error.is_nan()
}

fn value_of<F: Scalar>(x: F) -> f64 {
    x.peek().unwrap_or(f64::NAN)
}

fn all_finite<'a, F: Scalar>(entries: impl IntoIterator<Item = &'a F>) -> bool {
    entries.into_iter().all(|&x| value_of(x).is_finite())
}
