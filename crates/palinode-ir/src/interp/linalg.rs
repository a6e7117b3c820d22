//! Dense linear algebra over any number: solvers, determinants and Cholesky's factor. Orthogonal decompositions are in
//! `spectral`.
//!
//! Input: matrices of reals. Output: what [`Linalg`] says. Derivatives come from running the same algorithm on derivative
//! numbers, so no derivative rule is written here.
//!
//! Invariants: pivots are chosen by primals and are not decisions of the program; inner products go through
//! [`palinode_core::Scalar::dot`], so that a tape records one node for each. Matrices are worked on outside the account of the run; while
//! that goes on, an upper bound of what they take is charged (`workspace`).

use std::cell::Cell;

use palinode_core::Real;

use super::error::RunErrorKind;
use super::ledger::Memory;
use super::settled::{Checked, Refused};
use super::spectral;
use super::store::Store;
use super::value::{Val, mismatch, primal};
use super::workspace::workspace;
use crate::op::{Linalg, Op};

/// A matrix by its rows.
#[derive(Clone)]
pub(super) struct Matrix<R> {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) data: Vec<R>,
}

impl<R: Real> Matrix<R> {
    fn from_store(store: &Store<R>) -> Matrix<R> {
        Matrix { rows: store.shape[0], columns: store.shape[1], data: store.data().to_vec() }
    }

    pub(super) fn identity(n: usize) -> Matrix<R> {
        let mut data = vec![R::zero(); n * n];
        data.iter_mut().step_by(n + 1).for_each(|x| *x = R::one());
        Matrix { rows: n, columns: n, data }
    }

    pub(super) fn row(&self, i: usize) -> &[R] {
        &self.data[i * self.columns..(i + 1) * self.columns]
    }

    pub(super) fn row_mut(&mut self, i: usize) -> &mut [R] {
        &mut self.data[i * self.columns..(i + 1) * self.columns]
    }

    pub(super) fn transposed(&self) -> Matrix<R> {
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

    fn shape(&self) -> [usize; 2] {
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

/// Applies the operation and appends its results.
pub(super) fn apply<R: Real>(
    kind: Linalg,
    args: &[Val<R>],
    out: &mut Vec<Val<R>>,
    memory: &mut Memory,
) -> Result<(), RunErrorKind> {
    let op = kind.name();
    let given = args[0].array().reals();
    let (rows, columns) = (given.shape[0], given.shape[1]);
    let needs = match kind {
        Linalg::Qr if rows < columns => Some("at least as many rows as columns"),
        Linalg::Qr | Linalg::Svd => None,
        _ if rows != columns => Some("a square matrix"),
        _ => None,
    };
    if let Some(needs) = needs {
        return Err(RunErrorKind::MatrixShape { op, needs, shape: given.shape[..].into() });
    }
    let shapes: Vec<&[usize]> = args.iter().filter_map(Val::lengths).collect();
    let bytes = workspace(&Op::Linalg(kind), &shapes, size_of::<R>());
    let _room = memory.workspace(bytes, op)?;
    let a = Matrix::from_store(given);
    let vector = |x: &[R]| Store::from_slice(op, vec![x.len()], x, memory).map(Val::from_reals);
    let matrix =
        |m: &Matrix<R>| Store::from_slice(op, m.shape().to_vec(), &m.data, memory).map(Val::from_reals);
    match kind {
        Linalg::Solve { transposed } => {
            let lu = Lu::new(a).map_err(|column| RunErrorKind::Singular { op, column })?;
            out.push(for_right_sides(op, lu.factors.rows, &args[1], memory, |x| {
                if transposed { lu.solve_transposed(x) } else { lu.solve(x) }
            })?);
        }
        Linalg::SolveChecked { transposed, step } => {
            let refused = Cell::new(None);
            let system = Checked::new(a, step);
            let solved = for_right_sides(op, rows, &args[1], memory, |x| {
                let answer = system
                    .as_ref()
                    .map_err(|refusal| refusal.clone())
                    .and_then(|system| system.solve(transposed, x));
                if let Err(refusal) = answer {
                    x.fill(R::from_f64(f64::NAN));
                    refused.set(Some(refusal));
                }
            })?;
            if let Some(Refused::Because(kind)) = refused.take() {
                return Err(kind);
            }
            out.push(solved);
        }
        Linalg::SolveTriangular { lower, transposed } => {
            if let Some(column) = (0..a.rows).find(|&i| primal(a[(i, i)]) == 0.0) {
                return Err(RunErrorKind::Singular { op, column });
            }
            let (t, lower) = if transposed { (a.transposed(), !lower) } else { (a, lower) };
            out.push(for_right_sides(op, t.rows, &args[1], memory, |x| substitute(&t, lower, false, x))?);
        }
        Linalg::Inverse => {
            let lu = Lu::new(a).map_err(|column| RunErrorKind::Singular { op, column })?;
            let mut columns = Matrix::identity(lu.factors.rows);
            for j in 0..columns.rows {
                lu.solve(columns.row_mut(j));
            }
            out.push(matrix(&columns.transposed())?);
        }
        Linalg::Determinant => out.push(Val::Real(determinant(a))),
        Linalg::LogDet => {
            let lu = Lu::new(a).map_err(|column| RunErrorKind::Singular { op, column })?;
            let n = lu.factors.rows;
            let terms: Vec<R> = (0..n).map(|i| positive(lu.factors[(i, i)]).ln()).collect();
            out.push(Val::Real(R::sum_of(&terms)));
        }
        Linalg::Cholesky => {
            let l = cholesky(&a).map_err(|row| RunErrorKind::NotPositiveDefinite { op, row })?;
            out.push(matrix(&l)?);
        }
        Linalg::Qr => {
            let (q, r) = spectral::qr(&a);
            out.extend([matrix(&q)?, matrix(&r)?]);
        }
        Linalg::SymmetricEigen => {
            let (w, v) = spectral::symmetric_eigen(&a).ok_or(RunErrorKind::NoConvergence { op })?;
            out.extend([vector(&w)?, matrix(&v)?]);
        }
        Linalg::Svd => {
            let (u, s, v) = spectral::svd(&a).ok_or(RunErrorKind::NoConvergence { op })?;
            out.extend([matrix(&u)?, vector(&s)?, matrix(&v)?]);
        }
    }
    memory.stats.elements_filled += out.iter().map(|value| value.lengths().map_or(1, count)).sum::<u64>();
    Ok(())
}

fn count(lengths: &[usize]) -> u64 {
    lengths.iter().product::<usize>() as u64
}

/// The number with the sign of its primal taken off.
pub(super) fn positive<R: Real>(x: R) -> R {
    if primal(x) < 0.0 { -x } else { x }
}

/// Solves for every column of a right side of rank 1 or 2.
fn for_right_sides<R: Real>(
    op: &'static str,
    n: usize,
    b: &Val<R>,
    memory: &Memory,
    solve: impl Fn(&mut [R]),
) -> Result<Val<R>, RunErrorKind> {
    let b = b.array().reals();
    if b.shape[0] != n {
        return Err(mismatch(op, &[n, n], &b.shape));
    }
    if b.rank() == 1 {
        let mut x = Store::from_slice(op, vec![n], b.data(), memory)?;
        solve(x.data_mut());
        return Ok(Val::from_reals(x));
    }
    let mut columns = Matrix::from_store(b).transposed();
    for j in 0..columns.rows {
        solve(columns.row_mut(j));
    }
    let x = columns.transposed();
    Ok(Val::from_reals(Store::from_slice(op, vec![x.rows, x.columns], &x.data, memory)?))
}

/// Solves with one triangle of a matrix; `unit` says that its diagonal counts as ones.
fn substitute<R: Real>(t: &Matrix<R>, lower: bool, unit: bool, x: &mut [R]) {
    let n = x.len();
    for step in 0..n {
        let i = if lower { step } else { n - 1 - step };
        let known = if lower { 0..i } else { i + 1..n };
        let rest = if known.is_empty() { x[i] } else { x[i] - R::dot(&t.row(i)[known.clone()], &x[known]) };
        x[i] = if unit { rest } else { rest / t[(i, i)] };
    }
}

/// `P A = L U`: both factors in one matrix, the diagonal of `L` being ones.
pub(super) struct Lu<R> {
    factors: Matrix<R>,
    /// Row `i` of the factors came from this row of the matrix.
    from: Vec<usize>,
}

impl<R: Real> Lu<R> {
    /// The factors, or the first column without a pivot.
    pub(super) fn new(mut a: Matrix<R>) -> Result<Lu<R>, usize> {
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

    pub(super) fn solve(&self, x: &mut [R]) {
        let b = x.to_vec();
        for (x, &from) in x.iter_mut().zip(&self.from) {
            *x = b[from];
        }
        substitute(&self.factors, true, true, x);
        substitute(&self.factors, false, false, x);
    }

    pub(super) fn solve_transposed(&self, x: &mut [R]) {
        let factors = self.factors.transposed();
        substitute(&factors, true, false, x);
        substitute(&factors, false, true, x);
        let y = x.to_vec();
        for (&y, &from) in y.iter().zip(&self.from) {
            x[from] = y;
        }
    }
}

/// The determinant by elimination with complete pivoting. A singular matrix has one, and a derivative: where no pivot is
/// left, the rest of the matrix is expanded without divisions.
fn determinant<R: Real>(mut a: Matrix<R>) -> R {
    let n = a.rows;
    let mut product = R::one();
    for k in 0..n {
        let size = |&(i, j): &(usize, usize)| primal(a[(i, j)]).abs();
        let places = (k..n).flat_map(|i| (k..n).map(move |j| (i, j)));
        let best = places.fold((k, k), |best, place| if size(&place) > size(&best) { place } else { best });
        if size(&best) == 0.0 {
            let rest: Vec<Vec<R>> = (k..n).map(|i| a.row(i)[k..].to_vec()).collect();
            return product * division_free(&rest);
        }
        a.swap_rows(k, best.0);
        for i in 0..n {
            a.data.swap(i * n + k, i * n + best.1);
        }
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
        }
    }
    product
}

/// Bird's algorithm (2011): a determinant by `n - 1` matrix products.
fn division_free<R: Real>(a: &[Vec<R>]) -> R {
    let n = a.len();
    let mut f: Vec<Vec<R>> = a.to_vec();
    for _ in 1..n {
        // Below the diagonal 0, on it minus the sum of the diagonal further down.
        let mut below = R::zero();
        for i in (0..n).rev() {
            let own = f[i][i];
            f[i][..i].fill(R::zero());
            f[i][i] = -below;
            below += own;
        }
        let product = |row: &Vec<R>| -> Vec<R> {
            let column = |j: usize| -> Vec<R> { a.iter().map(|row| row[j]).collect() };
            (0..n).map(|j| R::dot(row, &column(j))).collect()
        };
        f = f.iter().map(product).collect();
    }
    if n % 2 == 1 { f[0][0] } else { -f[0][0] }
}

/// The lower factor, or the first row that shows that there is none.
fn cholesky<R: Real>(a: &Matrix<R>) -> Result<Matrix<R>, usize> {
    let n = a.rows;
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
