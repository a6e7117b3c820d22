//! Products of arrays: of matrices, of vectors and of both.
//!
//! Input: arrays of rank 1 and 2. Output: an array or a number, whose entries are what
//! [`palinode_core::sums`] says: chains if the result has rank 2, dot products otherwise. Compensated and
//! exact ones are dot products of a row and a column.

use palinode_core::products::{self, MatrixView, add_product, times_vector};
use palinode_core::{Accumulator, Real};

use super::error::RunErrorKind;
use super::ledger::Memory;
use super::store::{Store, elements_of};
use super::trap::all_finite;
use super::value::{Val, mismatch, primal};

/// A factor as a matrix; a vector is one row.
fn view<R: Real>(store: &Store<R>, transposed: bool) -> MatrixView<'_, R> {
    match store.shape[..] {
        [n] => MatrixView::by_rows(store.data(), 1, n),
        [n, m] if transposed => MatrixView::by_columns(store.data(), m, n),
        [n, m] => MatrixView::by_rows(store.data(), n, m),
        _ => unreachable!("the verifier: factors have rank 1 or 2"),
    }
}

pub(super) fn matmul<R: Real>(
    transposed: [bool; 2],
    strong: bool,
    args: &[Val<R>],
    how: Accumulator,
    memory: &mut Memory,
) -> Result<Val<R>, RunErrorKind> {
    const OP: &str = "matmul";
    let (a, b) = (args[0].array().reals(), args[1].array().reals());
    let ranks = [a.rank(), b.rank()];
    let rows = view(a, transposed[0]);
    // Of a vector on the right the only column.
    let columns = match ranks[1] {
        1 => view(b, false),
        _ => view(b, !transposed[1]),
    };
    let (n, m, inner) = (rows.rows(), columns.rows(), rows.columns());
    if inner != columns.columns() {
        return Err(mismatch(OP, &a.shape, &b.shape));
    }
    let mut shape = Vec::new();
    if ranks[0] == 2 {
        shape.push(n);
    }
    if ranks[1] == 2 {
        shape.push(m);
    }
    memory.stats.elements_filled += elements_of(OP, &shape)? as u64;
    if shape.is_empty() {
        let (a, b) = (a.data(), b.data());
        return Ok(Val::Real(if strong { R::strong_dot_with(a, b, how) } else { R::dot_with(a, b, how) }));
    }
    let mut made = Store::filled(OP, shape, R::zero(), memory)?;
    let c = made.data_mut();
    match (how, ranks) {
        (Accumulator::Naive, [2, 2]) => add_product(c, rows, columns.transposed(), strong),
        (Accumulator::Naive, [2, _]) => times_vector(c, rows, b.data(), strong),
        (Accumulator::Naive, _) => times_vector(c, columns, a.data(), strong),
        _ => {
            for (at, c) in c.iter_mut().enumerate() {
                let (i, j) = (at / m, at % m);
                *c = match (rows.row(i), columns.row(j)) {
                    (Some(a), Some(b)) if strong => R::strong_dot_with(a, b, how),
                    (Some(a), Some(b)) => R::dot_with(a, b, how),
                    _ => {
                        let pair = |k: usize| (rows.at(i, k), columns.at(j, k));
                        if strong {
                            R::strong_dot_with_over(inner, how, pair)
                        } else {
                            R::dot_with_over(inner, how, pair)
                        }
                    }
                };
            }
        }
    }
    Ok(Val::from_reals(made))
}

pub(super) fn outer<R: Real>(
    strong: bool,
    args: &[Val<R>],
    memory: &mut Memory,
) -> Result<Val<R>, RunErrorKind> {
    const OP: &str = "outer";
    let (x, y) = (args[0].array().reals().data(), args[1].array().reals().data());
    let mut made = Store::filled(OP, vec![x.len(), y.len()], R::zero(), memory)?;
    products::outer(made.data_mut(), x, y, strong);
    memory.stats.elements_filled += made.len() as u64;
    Ok(Val::from_reals(made))
}

/// Adds the outer product of two vectors, or of the rows of two matrices, to a matrix, where it is.
pub(super) fn add_outer<R: Real>(
    strong: bool,
    args: &mut [Val<R>],
    trap: bool,
    memory: &mut Memory,
) -> Result<Val<R>, RunErrorKind> {
    const OP: &str = "add_outer";
    let mut array = args[0].take_array();
    let (x, y) = (args[1].array().reals(), args[2].array().reals());
    let rows = |store: &Store<R>| if store.rank() == 2 { store.shape[0] } else { 1 };
    let (k, m, n) = (rows(x), x.shape[x.rank() - 1], y.shape[y.rank() - 1]);
    if rows(y) != k {
        return Err(mismatch(OP, &x.shape, &y.shape));
    }
    if *array.shape() != [m, n] {
        return Err(mismatch(OP, array.shape(), &[m, n]));
    }
    let is_checked = trap && all_finite(array.reals().data()) && all_finite(x.data()) && all_finite(y.data());
    memory.stats.elements_added += (m * n) as u64;
    let c = array.reals_mut(OP, memory)?.data_mut();
    let (x, y) = (MatrixView::by_columns(x.data(), m, k), MatrixView::by_rows(y.data(), k, n));
    add_product(c, x, y, strong);
    if is_checked
        && !all_finite(c)
        && let Some(result) = c.iter().find(|c| !c.is_finite())
    {
        let operation = format!("{OP} of finite elements");
        return Err(RunErrorKind::NonFinite { operation, result: primal(*result) });
    }
    Ok(Val::Array(array))
}
