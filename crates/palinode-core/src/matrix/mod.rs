//! Dense linear algebra over any number, in one implementation: solvers, determinants and Cholesky's factor.
//! What all of them add up is in `sums.rs`, orthogonal decompositions in `spectral.rs` and `tridiagonal.rs`,
//! eigenvalues of matrices that are not symmetric in `eigenvalues.rs`, systems of plain numbers with a
//! condition number in `conditioned.rs`.
//!
//! Input: matrices by columns, of any number. Output: factors, values, or where the algorithm found that
//! there are none. Derivatives come from running the same algorithm on derivative numbers, so no derivative
//! rule is written here. Programs compute with it (`palinode-ir`), so does `linalg` on plain numbers (feature
//! `nalgebra`, whose kernels are not called), arrays on the tape for their products, and implicit functions.
//!
//! Invariants: pivots are chosen by primals and are not decisions of the program; inner products are chains
//! ([`Scalar::chain_over`]) where many are computed at once, and [`Scalar::dot`] where it is one, so that a
//! tape records one node for each. No bit depends on the processor. [`cholesky`] and [`symmetric_eigen`] are
//! functions of `(A + A') / 2`.
//!
//! Absent: errors with codes, checks of shapes and finiteness; those are the callers'.

mod conditioned;
mod eigenvalues;
mod spectral;
mod sums;
pub mod tangents;
mod tridiagonal;

pub use conditioned::Conditioned;
pub use eigenvalues::eigenvalues;
pub use spectral::{coincide, qr, svd, symmetric_eigen};
#[cfg(feature = "nalgebra")]
pub(crate) use spectral::{coincidence, for_each_run};
pub use sums::product;

use palinode_num::Scalar;
use palinode_num::products::MatrixView;
use sums::{combination, eliminate, eliminate_upwards};

/// How far entries of a matrix that should be symmetric may be from their mirror images, relative to the
/// largest entry. Far above rounding and the steps of differences in single entries, far below what a
/// forgotten triangle makes.
pub const MOST_ASYMMETRY: f64 = 1e-4;

/// The primal, for pivots and tests of convergence.
pub(crate) fn primal<R: Scalar>(x: R) -> f64 {
    x.peek().unwrap_or(f64::NAN)
}

/// How far 1 is from the next number, near enough: what is lost of 4/3. (Halving until nothing is added would
/// never end for double-doubles, which hold `1 + 1e-300`.)
pub fn epsilon<S: Scalar>() -> f64 {
    let int = S::from_int;
    primal(int(3) * (int(4) / int(3) - int(1)) - int(1)).abs()
}

/// The first entry above the diagonal that differs from its mirror image by more than [`MOST_ASYMMETRY`] of
/// the largest entry. Numbers that are not finite are for others to refuse.
pub fn asymmetry(n: usize, entry: impl Fn(usize, usize) -> f64) -> Option<(usize, usize)> {
    let places = || (0..n).flat_map(|i| (0..n).map(move |j| (i, j)));
    let largest = places().map(|(i, j)| entry(i, j).abs()).fold(0.0, f64::max);
    places().find(|&(i, j)| i < j && (entry(i, j) - entry(j, i)).abs() > MOST_ASYMMETRY * largest)
}

/// A matrix by its columns.
#[derive(Clone, Debug)]
pub struct Matrix<S> {
    /// How many.
    pub rows: usize,
    /// How many.
    pub columns: usize,
    /// Column by column.
    pub data: Vec<S>,
}

impl<S: Scalar> Matrix<S> {
    /// Nothing but zeros.
    pub fn zeros(rows: usize, columns: usize) -> Matrix<S> {
        Matrix { rows, columns, data: vec![S::zero(); rows * columns] }
    }

    /// Ones on the diagonal.
    pub fn identity(n: usize) -> Matrix<S> {
        let mut identity = Matrix::zeros(n, n);
        identity.data.iter_mut().step_by(n + 1).for_each(|x| *x = S::one());
        identity
    }

    /// One column.
    pub fn column(&self, j: usize) -> &[S] {
        &self.data[j * self.rows..(j + 1) * self.rows]
    }

    /// One column, to write to.
    pub fn column_mut(&mut self, j: usize) -> &mut [S] {
        &mut self.data[j * self.rows..(j + 1) * self.rows]
    }

    /// Its entries, for products.
    pub fn view(&self) -> MatrixView<'_, S> {
        MatrixView::by_columns(&self.data, self.rows, self.columns)
    }

    /// Rows as columns.
    pub fn transposed(&self) -> Matrix<S> {
        // Collecting such an iterator would grow by doubling, and take more than is charged.
        let mut data = Vec::with_capacity(self.data.len());
        (0..self.rows).for_each(|i| data.extend(self.data.iter().skip(i).step_by(self.rows)));
        Matrix { rows: self.columns, columns: self.rows, data }
    }

    fn swap_rows(&mut self, i: usize, j: usize) {
        if i != j {
            self.data.chunks_mut(self.rows).for_each(|column| column.swap(i, j));
        }
    }

    /// Puts `(A + A') / 2` in its place, without a copy; the bits of a symmetric matrix stay.
    fn make_symmetric(&mut self) {
        for i in 0..self.rows {
            for j in i + 1..self.columns {
                // Halved first, so that nothing overflows.
                let mean = self[(i, j)] * S::half() + self[(j, i)] * S::half();
                (self[(i, j)], self[(j, i)]) = (mean, mean);
            }
        }
    }
}

impl<S> core::ops::Index<(usize, usize)> for Matrix<S> {
    type Output = S;
    fn index(&self, (i, j): (usize, usize)) -> &S {
        &self.data[j * self.rows + i]
    }
}

impl<S> core::ops::IndexMut<(usize, usize)> for Matrix<S> {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut S {
        &mut self.data[j * self.rows + i]
    }
}

/// Rotates two columns of a matrix; `p < q`.
fn rotate_columns<S: Scalar>(m: &mut [S], rows: usize, (p, q): (usize, usize), c: S, s: S) {
    let (before, after) = m.split_at_mut(q * rows);
    for (x, y) in before[p * rows..][..rows].iter_mut().zip(&mut after[..rows]) {
        (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
    }
}

/// The number with the sign of its primal taken off.
pub fn positive<S: Scalar>(x: S) -> S {
    if primal(x) < 0.0 { -x } else { x }
}

/// Solves with one triangle of a matrix, for all columns that lie in `x`; `unit` says that its diagonal
/// counts as ones.
pub fn substitute<S: Scalar>(t: &Matrix<S>, lower: bool, unit: bool, x: &mut [S]) {
    for x in x.chunks_mut(t.rows.max(1)) {
        if lower { eliminate(&t.data, unit, x) } else { eliminate_upwards(&t.data, unit, x) }
    }
}

/// `P A = L U`: both factors in one matrix, the diagonal of `L` being ones.
#[derive(Clone, Debug)]
pub struct Lu<S> {
    /// `L` below the diagonal, `U` on and above it.
    pub factors: Matrix<S>,
    /// Row `i` of the factors came from this row of the matrix.
    pub from: Vec<usize>,
    /// Whether `P` has the determinant -1.
    pub is_odd: bool,
}

impl<S: Scalar> Lu<S> {
    /// The factors, or the first column without a pivot.
    pub fn new(mut a: Matrix<S>) -> Result<Lu<S>, usize> {
        let n = a.rows;
        let (mut from, mut is_odd): (Vec<usize>, bool) = ((0..n).collect(), false);
        for j in 0..n {
            let (done, rest) = a.data.split_at_mut(j * n);
            let column = &mut rest[..n];
            eliminate(done, true, column);
            let size = |i: usize| primal(column[i]).abs();
            let pivot = (j + 1..n).fold(j, |best, i| if size(i) > size(best) { i } else { best });
            if size(pivot) == 0.0 {
                return Err(j);
            }
            a.swap_rows(j, pivot);
            from.swap(j, pivot);
            is_odd ^= j != pivot;
            let column = &mut a.column_mut(j)[j..];
            let diagonal = column[0];
            column[1..].iter_mut().for_each(|x| *x = *x / diagonal);
        }
        Ok(Lu { factors: a, from, is_odd })
    }

    /// Puts `x` of `A x = b`, or of `A' x = b`, in place of `b`, for all columns that lie there.
    pub fn solve(&self, transposed: bool, columns: &mut [S]) {
        let n = self.factors.rows;
        if columns.is_empty() {
            return;
        }
        let mut moved = Vec::with_capacity(n);
        let mut reorder = |columns: &mut [S], place: fn(usize, usize) -> (usize, usize)| {
            for x in columns.chunks_mut(n) {
                moved.clear();
                moved.extend_from_slice(x);
                for (i, &from) in self.from.iter().enumerate() {
                    let (to, from) = place(i, from);
                    x[to] = moved[from];
                }
            }
        };
        if transposed {
            let factors = self.factors.transposed();
            substitute(&factors, true, false, columns);
            substitute(&factors, false, true, columns);
            reorder(columns, |i, from| (from, i));
        } else {
            reorder(columns, |i, from| (i, from));
            substitute(&self.factors, true, true, columns);
            substitute(&self.factors, false, false, columns);
        }
    }

    /// What the pivots are.
    pub fn pivots(&self) -> impl Iterator<Item = S> {
        self.factors.data.iter().copied().step_by(self.factors.rows + 1)
    }
}

/// Elimination with complete pivoting, as far as there are pivots: the columns and rows of the matrix in
/// another order are `U' L'`, with ones on the diagonal of `L`.
struct Eliminated<S> {
    /// `L'` above the diagonal; `U'` below it, but in the last rows and columns the rest, whose primals are
    /// zeros.
    factors: Matrix<S>,
    /// How many pivots there are.
    pivots: usize,
    /// Row `i` of the factors came from row `rows[i]` of the matrix; columns alike.
    rows: Vec<usize>,
    columns: Vec<usize>,
    /// The product of the pivots, with the sign of the order.
    product: S,
}

fn eliminated<S: Scalar>(mut a: Matrix<S>) -> Eliminated<S> {
    let n = a.rows;
    let (mut rows, mut columns): (Vec<usize>, Vec<usize>) = ((0..n).collect(), (0..n).collect());
    let (mut product, mut pivots) = (S::one(), n);
    for k in 0..n {
        let size = |&(i, j): &(usize, usize)| primal(a[(i, j)]).abs();
        let places = (k..n).flat_map(|j| (k..n).map(move |i| (i, j)));
        let best = places.fold((k, k), |best, place| if size(&place) > size(&best) { place } else { best });
        if size(&best) == 0.0 {
            pivots = k;
            break;
        }
        a.swap_rows(k, best.0);
        rows.swap(k, best.0);
        (0..n).for_each(|i| a.data.swap(k * n + i, best.1 * n + i));
        columns.swap(k, best.1);
        if (best.0 != k) != (best.1 != k) {
            product = -product;
        }
        let pivot = a[(k, k)];
        product = product * pivot;
        for j in k + 1..n {
            let factor = a[(k, j)] / pivot;
            for i in k + 1..n {
                a[(i, j)] = a[(i, j)] - factor * a[(i, k)];
            }
            a[(k, j)] = factor;
        }
    }
    Eliminated { factors: a, pivots, rows, columns, product }
}

impl<S: Scalar> Eliminated<S> {
    /// What no pivot was found in.
    fn rest(&self) -> Matrix<S> {
        let left = self.factors.rows - self.pivots;
        let mut data = Vec::with_capacity(left * left);
        (self.pivots..self.factors.rows).for_each(|j| data.extend(&self.factors.column(j)[self.pivots..]));
        Matrix { rows: left, columns: left, data }
    }
}

/// The determinant by elimination with complete pivoting. A singular matrix has one, and a derivative: where
/// no pivot is left, the rest of the matrix is expanded without divisions.
pub fn determinant<S: Scalar>(a: Matrix<S>) -> S {
    let done = eliminated(a);
    if done.pivots == done.factors.rows { done.product } else { done.product * expanded(&done.rest()).0 }
}

/// The matrix of cofactors, of singular matrices too: what a determinant changes by when an entry does.
///
/// Cofactors of products are products of cofactors. With `L`, the pivots' rows `V` of `U` above an identity,
/// and the rest `B`, the transpose is `L diag(1, B) V` up to order, so that its cofactors are `L^-T diag(det
/// B, cofactors of B) V^-T` times the product of the pivots.
pub fn cofactors<S: Scalar>(a: Matrix<S>) -> Matrix<S> {
    let n = a.rows;
    let mut done = eliminated(a);
    let (of_rest, inner) = expanded(&done.rest());
    let r = done.pivots;
    for j in r..n {
        for i in r..n {
            done.factors[(i, j)] = if i == j { S::one() } else { S::zero() };
        }
    }
    let upper = done.factors.transposed();
    let mut middle = Matrix::zeros(n, n);
    for j in 0..n {
        match j.checked_sub(r) {
            None => middle[(j, j)] = of_rest,
            Some(column) => middle.column_mut(j)[r..].copy_from_slice(inner.column(column)),
        }
    }
    substitute(&upper, false, false, &mut middle.data);
    let mut middle = middle.transposed();
    substitute(&done.factors, false, true, &mut middle.data);
    let mut all = Matrix::zeros(n, n);
    for j in 0..n {
        for i in 0..n {
            all[(done.rows[i], done.columns[j])] = done.product * middle[(j, i)];
        }
    }
    all
}

/// A determinant and its cofactors by the characteristic polynomial (Faddeev and LeVerrier): divisions by
/// small integers only.
pub(crate) fn expanded<S: Scalar>(a: &Matrix<S>) -> (S, Matrix<S>) {
    let n = a.rows;
    if n == 0 {
        return (S::one(), Matrix::identity(0));
    }
    // Of the transpose, so that both factors of a product are read along columns.
    let mut adjugate = Matrix::identity(n);
    let times = |adjugate: &Matrix<S>| product(a.view().transposed(), adjugate.view());
    let trace = |m: &Matrix<S>| (1..n).fold(m[(0, 0)], |sum, i| sum + m[(i, i)]);
    for k in 1..n {
        let mut product = times(&adjugate);
        let coefficient = trace(&product) / S::from_int(k as i32);
        (0..n).for_each(|i| product[(i, i)] = product[(i, i)] - coefficient);
        adjugate = product;
    }
    let sign = S::from_int(if n.is_multiple_of(2) { -1 } else { 1 });
    let determinant = sign * trace(&times(&adjugate)) / S::from_int(n as i32);
    // The adjugate of a transpose is the matrix of cofactors.
    adjugate.data.iter_mut().for_each(|x| *x = sign * *x);
    (determinant, adjugate)
}

/// The lower factor of `(A + A') / 2`, or the first row that shows that there is none.
pub fn cholesky<S: Scalar>(mut a: Matrix<S>) -> Result<Matrix<S>, usize> {
    let n = a.rows;
    a.make_symmetric();
    let mut sums = vec![S::zero(); n];
    let mut weights = Vec::with_capacity(n);
    for j in 0..n {
        let (done, rest) = a.data.split_at_mut(j * n);
        let (above, column) = rest[..n].split_at_mut(j);
        above.fill(S::zero());
        if j > 0 {
            weights.clear();
            weights.extend(done.iter().skip(j).step_by(n));
            combination(done, n, j..n, &weights, &mut sums[j..]);
            column.iter_mut().zip(&sums[j..]).for_each(|(x, &known)| *x = *x - known);
        }
        // Not a number is none, either.
        if primal(column[0]).partial_cmp(&0.0) != Some(core::cmp::Ordering::Greater) {
            return Err(j);
        }
        let diagonal = column[0].sqrt();
        column[0] = diagonal;
        column[1..].iter_mut().for_each(|x| *x = *x / diagonal);
    }
    Ok(a)
}
