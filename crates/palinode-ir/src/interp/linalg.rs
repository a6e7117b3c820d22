//! Dense linear algebra over any number, by the algorithms of [`palinode_core::matrix`].
//!
//! Input: matrices of reals. Output: what [`Linalg`] says, or why not. Derivatives come from running the same
//! algorithm on derivative numbers, so no derivative rule is written here.
//!
//! Invariant: matrices are worked on outside the account of the run; while that goes on, an upper bound of
//! what they take is charged (`workspace`).

use std::cell::Cell;

use palinode_core::Real;
use palinode_core::decision;
use palinode_core::matrix::{self, Lu, Matrix, positive, substitute};

use super::error::RunErrorKind;
use super::ledger::Memory;
use super::settled::{Checked, Refused};
use super::store::Store;
use super::value::{Val, mismatch, primal};
use super::workspace::workspace;
use crate::op::{Linalg, Op};

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
    let _charged = memory.workspace(bytes, op)?;
    let a = from_store(given);
    let vector = |x: &[R]| Store::from_slice(op, vec![x.len()], x, memory).map(Val::from_reals);
    // Arrays lie by rows.
    let array = |m: Matrix<R>| {
        Store::from_slice(op, vec![m.rows, m.columns], &m.transposed().data, memory).map(Val::from_reals)
    };
    match kind {
        Linalg::Solve { transposed } => {
            let lu = Lu::new(a).map_err(|column| RunErrorKind::Singular { op, column })?;
            out.push(for_right_sides(op, rows, &args[1], memory, |x| lu.solve(transposed, x))?);
        }
        Linalg::SolveChecked { transposed, step } => {
            let refused = Cell::new(None);
            let system = Checked::new(a, step);
            let solved = for_right_sides(op, rows, &args[1], memory, |x| {
                for x in x.chunks_mut(rows.max(1)) {
                    let answer = system
                        .as_ref()
                        .map_err(|refusal| refusal.clone())
                        .and_then(|system| system.solve(transposed, x));
                    if let Err(refusal) = answer {
                        x.fill(R::from_f64(f64::NAN));
                        refused.set(Some(refusal));
                    }
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
            out.push(for_right_sides(op, rows, &args[1], memory, |x| substitute(&t, lower, false, x))?);
        }
        Linalg::Inverse => {
            let lu = Lu::new(a).map_err(|column| RunErrorKind::Singular { op, column })?;
            let mut inverse = Matrix::identity(rows);
            lu.solve(false, &mut inverse.data);
            out.push(array(inverse)?);
        }
        Linalg::Determinant => out.push(Val::Real(matrix::determinant(a))),
        Linalg::Cofactors => out.push(array(matrix::cofactors(a))?),
        Linalg::LogDet => {
            let lu = Lu::new(a).map_err(|column| RunErrorKind::Singular { op, column })?;
            let terms: Vec<R> = lu.pivots().map(|pivot| positive(pivot).ln()).collect();
            out.push(Val::Real(R::sum_of(&terms)));
        }
        Linalg::Cholesky => {
            refuse_asymmetry(op, &a)?;
            let l = matrix::cholesky(a).map_err(|row| RunErrorKind::NotPositiveDefinite { op, row })?;
            out.push(array(l)?);
        }
        Linalg::Qr => {
            let (q, r) = matrix::qr(&a);
            out.extend([array(q)?, array(r)?]);
        }
        Linalg::SymmetricEigen => {
            refuse_asymmetry(op, &a)?;
            let (w, v) = matrix::symmetric_eigen(a).ok_or(RunErrorKind::NoConvergence { op })?;
            note_coincidence(&w, rows);
            out.extend([vector(&w)?, array(v)?]);
        }
        Linalg::Svd => {
            let (u, s, v) = matrix::svd(&a).ok_or(RunErrorKind::NoConvergence { op })?;
            note_coincidence(&s, rows.max(columns));
            out.extend([array(u)?, vector(&s)?, array(v)?]);
        }
    }
    memory.stats.elements_filled += out.iter().map(|value| value.lengths().map_or(1, count)).sum::<u64>();
    Ok(())
}

/// Values that coincide are a tie: the vectors are arbitrary, and a zero factor hides that their derivatives
/// are infinite. So derivatives are looked at from both sides.
fn note_coincidence<R: Real>(values: &[R], size: usize) {
    decision::coincided(matrix::coincide(values, size));
}

/// Arrays lie by rows, matrices by columns.
fn from_store<R: Real>(store: &Store<R>) -> Matrix<R> {
    let (rows, columns) = (store.shape[0], store.shape[1]);
    let mut data = Vec::with_capacity(rows * columns);
    (0..columns).for_each(|j| data.extend(store.data().iter().skip(j).step_by(columns)));
    Matrix { rows, columns, data }
}

/// An error if the matrix of an operation on symmetric ones is none.
fn refuse_asymmetry<R: Real>(op: &'static str, a: &Matrix<R>) -> Result<(), RunErrorKind> {
    let entry = |i: usize, j: usize| primal(a[(i, j)]);
    match matrix::asymmetry(a.rows, entry) {
        Some((row, column)) => {
            let (value, mirrored) = (entry(row, column), entry(column, row));
            Err(RunErrorKind::NotSymmetric { op, row, column, value, mirrored })
        }
        None => Ok(()),
    }
}

fn count(lengths: &[usize]) -> u64 {
    lengths.iter().product::<usize>() as u64
}

/// Solves for the columns of a right side of rank 1 or 2, one after the other in what is solved.
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
    let mut x = from_store(b);
    solve(&mut x.data);
    Ok(Val::from_reals(Store::from_slice(op, vec![x.rows, x.columns], &x.transposed().data, memory)?))
}
