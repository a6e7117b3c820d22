//! Dense linear algebra over any number, in one implementation: solvers, determinants and Cholesky's factor. Orthogonal decompositions are
//! in `spectral.rs`, eigenvalues of matrices that are not symmetric in `eigenvalues.rs`.
//!
//! Input: matrices by rows, of any [`Real`]. Output: factors, values, or where the algorithm found that there are none. Derivatives come from running the same
//! algorithm on derivative numbers, so no derivative rule is written here. Programs compute with it (`palinode-ir`), and so does
//! `linalg` on double-doubles and posits; on `f64` it takes nalgebra's kernels.
//!
//! Invariants: pivots are chosen by primals and are not decisions of the program; inner products go through [`Scalar::dot`], so that a tape
//! records one node for each and posits sum in a quire. [`cholesky`] and [`symmetric_eigen`] are functions of `(A + A') / 2`.
//!
//! Absent: errors with codes, checks of shapes and finiteness; those are the callers'.

mod eigenvalues;
mod spectral;

pub use eigenvalues::eigenvalues;
pub use spectral::{coincide, epsilon, qr, svd, symmetric_eigen};
#[cfg(feature = "nalgebra")]
pub(crate) use spectral::{coincidence, for_each_run, turn, turn_singular_vectors};

use palinode_num::{Real, Scalar};

/// How far entries of a matrix that should be symmetric may be from their mirror images, relative to the largest entry. Far above rounding and the steps
/// of differences in single entries, far below what a forgotten triangle makes.
pub const MOST_ASYMMETRY: f64 = 1e-4;

/// The primal, for pivots and tests of convergence.
pub(crate) fn primal<R: Scalar>(x: R) -> f64 {
    x.peek().unwrap_or(f64::NAN)
}

/// The first entry above the diagonal that differs from its mirror image by more than [`MOST_ASYMMETRY`] of the largest entry. Numbers that are not finite are
/// for others to refuse.
pub fn asymmetry(n: usize, entry: impl Fn(usize, usize) -> f64) -> Option<(usize, usize)> {
    let places = || (0..n).flat_map(|i| (0..n).map(move |j| (i, j)));
    let largest = places().map(|(i, j)| entry(i, j).abs()).fold(0.0, f64::max);
    places().find(|&(i, j)| i < j && (entry(i, j) - entry(j, i)).abs() > MOST_ASYMMETRY * largest)
}

/// A matrix by its rows.
#[derive(Clone)]
pub struct Matrix<R> {
    /// How many.
    pub rows: usize,
    /// How many.
    pub columns: usize,
    /// Row by row.
    pub data: Vec<R>,
}

impl<R: Real> Matrix<R> {
    /// Ones on the diagonal.
    pub fn identity(n: usize) -> Matrix<R> {
        let mut data = vec![R::zero(); n * n];
        data.iter_mut().step_by(n + 1).for_each(|x| *x = R::one());
        Matrix { rows: n, columns: n, data }
    }

    /// One row.
    pub fn row(&self, i: usize) -> &[R] {
        &self.data[i * self.columns..(i + 1) * self.columns]
    }

    /// One row, to write to.
    pub fn row_mut(&mut self, i: usize) -> &mut [R] {
        &mut self.data[i * self.columns..(i + 1) * self.columns]
    }

    /// Rows as columns.
    pub fn transposed(&self) -> Matrix<R> {
        // Collecting such an iterator would grow by doubling, and take more than is charged.
        let mut data = Vec::with_capacity(self.data.len());
        (0..self.columns).for_each(|j| data.extend((0..self.rows).map(|i| self.data[i * self.columns + j])));
        Matrix { rows: self.columns, columns: self.rows, data }
    }

    fn swap_rows(&mut self, i: usize, j: usize) {
        for column in 0..self.columns {
            self.data.swap(i * self.columns + column, j * self.columns + column);
        }
    }

    /// Puts `(A + A') / 2` in its place, without a copy; the bits of a symmetric matrix stay.
    fn make_symmetric(&mut self) {
        for i in 0..self.rows {
            for j in i + 1..self.columns {
                // Halved first, so that nothing overflows.
                let mean = self[(i, j)] * R::half() + self[(j, i)] * R::half();
                (self[(i, j)], self[(j, i)]) = (mean, mean);
            }
        }
    }

    /// How many rows and columns.
    pub fn shape(&self) -> [usize; 2] {
        [self.rows, self.columns]
    }
}

impl<R> core::ops::Index<(usize, usize)> for Matrix<R> {
    type Output = R;
    fn index(&self, (i, j): (usize, usize)) -> &R {
        &self.data[i * self.columns + j]
    }
}

impl<R> core::ops::IndexMut<(usize, usize)> for Matrix<R> {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut R {
        &mut self.data[i * self.columns + j]
    }
}

/// The number with the sign of its primal taken off.
pub fn positive<R: Real>(x: R) -> R {
    if primal(x) < 0.0 { -x } else { x }
}

/// Solves with one triangle of a matrix; `unit` says that its diagonal counts as ones.
pub fn substitute<R: Real>(t: &Matrix<R>, lower: bool, unit: bool, x: &mut [R]) {
    let n = x.len();
    for step in 0..n {
        let i = if lower { step } else { n - 1 - step };
        let known = if lower { 0..i } else { i + 1..n };
        let rest = if known.is_empty() { x[i] } else { x[i] - R::dot(&t.row(i)[known.clone()], &x[known]) };
        x[i] = if unit { rest } else { rest / t[(i, i)] };
    }
}

/// `P A = L U`: both factors in one matrix, the diagonal of `L` being ones.
pub struct Lu<R> {
    /// `L` below the diagonal, `U` on and above it.
    pub factors: Matrix<R>,
    /// Row `i` of the factors came from this row of the matrix.
    pub from: Vec<usize>,
}

impl<R: Real> Lu<R> {
    /// The factors, or the first column without a pivot.
    pub fn new(mut a: Matrix<R>) -> Result<Lu<R>, usize> {
        let n = a.rows;
        let mut from: Vec<usize> = (0..n).collect();
        let mut column: Vec<R> = vec![R::zero(); n];
        for j in 0..n {
            for i in 0..n {
                let known = i.min(j);
                column[i] = a[(i, j)];
                if known > 0 {
                    column[i] = column[i] - R::dot(&a.row(i)[..known], &column[..known]);
                }
            }
            let size = |i: usize| primal(column[i]).abs();
            let pivot = (j + 1..n).fold(j, |best, i| if size(i) > size(best) { i } else { best });
            if size(pivot) == 0.0 {
                return Err(j);
            }
            column.swap(j, pivot);
            from.swap(j, pivot);
            a.swap_rows(j, pivot);
            for i in 0..n {
                a[(i, j)] = if i > j { column[i] / column[j] } else { column[i] };
            }
        }
        Ok(Lu { factors: a, from })
    }

    /// Puts `x` of `A x = b` in place of `b`.
    pub fn solve(&self, x: &mut [R]) {
        let b = x.to_vec();
        for (x, &from) in x.iter_mut().zip(&self.from) {
            *x = b[from];
        }
        substitute(&self.factors, true, true, x);
        substitute(&self.factors, false, false, x);
    }

    /// Puts `x` of `A' x = b` in place of `b`.
    pub fn solve_transposed(&self, x: &mut [R]) {
        let factors = self.factors.transposed();
        substitute(&factors, true, false, x);
        substitute(&factors, false, true, x);
        let y = x.to_vec();
        for (&y, &from) in y.iter().zip(&self.from) {
            x[from] = y;
        }
    }
}

/// Elimination with complete pivoting, as far as there are pivots: the rows and columns of the matrix in another order are `L U`, with ones on the diagonal of `L`.
struct Eliminated<R> {
    /// `L` below the diagonal; `U` above it, but in the last rows and columns the rest, whose primals are zeros.
    factors: Matrix<R>,
    /// How many pivots there are.
    pivots: usize,
    /// Row `i` of the factors came from row `rows[i]` of the matrix; columns alike.
    rows: Vec<usize>,
    columns: Vec<usize>,
    /// The product of the pivots, with the sign of the order.
    product: R,
}

fn eliminated<R: Real>(mut a: Matrix<R>) -> Eliminated<R> {
    let n = a.rows;
    let (mut rows, mut columns): (Vec<usize>, Vec<usize>) = ((0..n).collect(), (0..n).collect());
    let (mut product, mut pivots) = (R::one(), n);
    for k in 0..n {
        let size = |&(i, j): &(usize, usize)| primal(a[(i, j)]).abs();
        let places = (k..n).flat_map(|i| (k..n).map(move |j| (i, j)));
        let best = places.fold((k, k), |best, place| if size(&place) > size(&best) { place } else { best });
        if size(&best) == 0.0 {
            pivots = k;
            break;
        }
        a.swap_rows(k, best.0);
        rows.swap(k, best.0);
        for i in 0..n {
            a.data.swap(i * n + k, i * n + best.1);
        }
        columns.swap(k, best.1);
        if (best.0 != k) != (best.1 != k) {
            product = -product;
        }
        let pivot = a[(k, k)];
        product *= pivot;
        for i in k + 1..n {
            let factor = a[(i, k)] / pivot;
            for j in k + 1..n {
                let change = factor * a[(k, j)];
                a[(i, j)] -= change;
            }
            a[(i, k)] = factor;
        }
    }
    Eliminated { factors: a, pivots, rows, columns, product }
}

impl<R: Real> Eliminated<R> {
    /// What no pivot was found in.
    fn rest(&self) -> Matrix<R> {
        let left = self.factors.rows - self.pivots;
        let mut data = Vec::with_capacity(left * left);
        (self.pivots..self.factors.rows).for_each(|i| data.extend(&self.factors.row(i)[self.pivots..]));
        Matrix { rows: left, columns: left, data }
    }
}

/// The determinant by elimination with complete pivoting. A singular matrix has one, and a derivative: where no pivot is
/// left, the rest of the matrix is expanded without divisions.
pub fn determinant<R: Real>(a: Matrix<R>) -> R {
    let done = eliminated(a);
    if done.pivots == done.factors.rows { done.product } else { done.product * expanded(&done.rest()).0 }
}

/// The matrix of cofactors, of singular matrices too: what a determinant changes by when an entry does.
///
/// Cofactors of products are products of cofactors. With `L`, the pivots' rows `V` of `U` above an identity, and the rest `B`, the matrix is `L diag(1, B) V` up to order, so that they are
/// `L^-T diag(det B, cofactors of B) V^-T` times the product of the pivots.
pub fn cofactors<R: Real>(a: Matrix<R>) -> Matrix<R> {
    let n = a.rows;
    let mut done = eliminated(a);
    let (of_rest, inner) = expanded(&done.rest());
    let r = done.pivots;
    for i in r..n {
        for j in r..n {
            done.factors[(i, j)] = if i == j { R::one() } else { R::zero() };
        }
    }
    let mut by_columns = Matrix { rows: n, columns: n, data: vec![R::zero(); n * n] };
    for i in 0..n {
        match i.checked_sub(r) {
            None => by_columns[(i, i)] = of_rest,
            Some(row) => by_columns.row_mut(i)[r..].copy_from_slice(inner.row(row)),
        }
        substitute(&done.factors, false, false, by_columns.row_mut(i));
    }
    let mut by_columns = by_columns.transposed();
    let lower = done.factors.transposed();
    let mut all = Matrix { rows: n, columns: n, data: vec![R::zero(); n * n] };
    for j in 0..n {
        substitute(&lower, false, true, by_columns.row_mut(j));
        for i in 0..n {
            all[(done.rows[i], done.columns[j])] = done.product * by_columns[(j, i)];
        }
    }
    all
}

/// A determinant and its cofactors by the characteristic polynomial (Faddeev and LeVerrier): divisions by small integers only.
fn expanded<R: Real>(a: &Matrix<R>) -> (R, Matrix<R>) {
    let n = a.rows;
    if n == 0 {
        return (R::one(), Matrix::identity(0));
    }
    // By columns, as both factors of a product are read along rows then.
    let mut adjugate = Matrix::identity(n);
    let times = |adjugate: &Matrix<R>| {
        let mut product = Matrix::identity(n);
        for j in 0..n {
            for i in 0..n {
                product[(j, i)] = R::dot(a.row(i), adjugate.row(j));
            }
        }
        product
    };
    let trace = |m: &Matrix<R>| (1..n).fold(m[(0, 0)], |sum, i| sum + m[(i, i)]);
    for k in 1..n {
        let mut product = times(&adjugate);
        let coefficient = trace(&product) / R::from_int(k as i32);
        (0..n).for_each(|i| product[(i, i)] -= coefficient);
        adjugate = product;
    }
    let sign = R::from_int(if n.is_multiple_of(2) { -1 } else { 1 });
    let determinant = sign * trace(&times(&adjugate)) / R::from_int(n as i32);
    // By columns, an adjugate is a matrix of cofactors.
    adjugate.data.iter_mut().for_each(|x| *x = sign * *x);
    (determinant, adjugate)
}

/// The lower factor of `(A + A') / 2`, or the first row that shows that there is none.
pub fn cholesky<R: Real>(mut a: Matrix<R>) -> Result<Matrix<R>, usize> {
    let n = a.rows;
    a.make_symmetric();
    let mut l = Matrix { rows: n, columns: n, data: vec![R::zero(); n * n] };
    for i in 0..n {
        for j in 0..=i {
            let known = R::dot(&l.row(i)[..j], &l.row(j)[..j]);
            let rest = if j == 0 { a[(i, j)] } else { a[(i, j)] - known };
            if i > j {
                l[(i, j)] = rest / l[(j, j)];
            } else if primal(rest) > 0.0 {
                l[(i, i)] = rest.sqrt();
            } else {
                return Err(i);
            }
        }
    }
    Ok(l)
}
