//! Products of matrices, of a matrix and a vector, and of vectors, over any number.
//!
//! Input: matrices as [`MatrixView`]s, in whatever way they lie in memory. Output: products as
//! [`crate::sums`] defines them: chains where the result is a matrix, dot products where it is a vector.
//!
//! Nothing is allocated. Floats go to kernels (`floats.rs`, `sums/lines.rs`), other numbers entry by entry to
//! [`Scalar::chain_over`] and [`Scalar::dot_over`], which are one node on a tape.

mod floats;
#[cfg(test)]
mod tests;
mod tile;

use crate::machine::{InstructionSet, on_this_machine};
use crate::scalar::Scalar;
use crate::scalar::order::{all_finite, is_finite};
use crate::sums::lines::Lines;

/// A matrix in a slice: entry `(i, j)` is at `i * row_step + j * column_step`.
///
/// ```
/// use palinode_num::products::MatrixView;
///
/// let a = MatrixView::by_rows(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2, 3);
/// assert_eq!((a.at(1, 0), a.transposed().at(0, 1)), (4.0, 4.0));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MatrixView<'a, S> {
    data: &'a [S],
    rows: usize,
    columns: usize,
    row_step: usize,
    column_step: usize,
}

impl<'a, S: Copy> MatrixView<'a, S> {
    /// A matrix whose rows lie one after the other.
    ///
    /// # Panics
    /// If there are not as many elements as entries.
    pub fn by_rows(data: &'a [S], rows: usize, columns: usize) -> Self {
        assert_eq!(data.len(), rows * columns, "{} elements for {rows} by {columns}", data.len());
        MatrixView { data, rows, columns, row_step: columns, column_step: 1 }
    }

    /// A matrix whose columns lie one after the other.
    ///
    /// # Panics
    /// If there are not as many elements as entries.
    pub fn by_columns(data: &'a [S], rows: usize, columns: usize) -> Self {
        Self::by_rows(data, columns, rows).transposed()
    }

    /// A matrix with these steps from row to row and from column to column.
    ///
    /// # Panics
    /// If an entry is not in the slice.
    pub fn with_steps(
        data: &'a [S],
        [rows, columns]: [usize; 2],
        [row_step, column_step]: [usize; 2],
    ) -> Self {
        if rows > 0 && columns > 0 {
            let last = (rows - 1) * row_step + (columns - 1) * column_step;
            assert!(last < data.len(), "the last entry is at {last} of {}", data.len());
        }
        MatrixView { data, rows, columns, row_step, column_step }
    }

    /// Rows as columns.
    #[must_use]
    pub fn transposed(self) -> Self {
        MatrixView {
            rows: self.columns,
            columns: self.rows,
            row_step: self.column_step,
            column_step: self.row_step,
            ..self
        }
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// An entry.
    #[inline(always)]
    pub fn at(&self, i: usize, j: usize) -> S {
        self.data[i * self.row_step + j * self.column_step]
    }

    /// The elements of a row, if they lie together.
    #[inline(always)]
    pub fn row(&self, i: usize) -> Option<&'a [S]> {
        match self.columns {
            0 => Some(&[]),
            columns => (self.column_step == 1).then(|| &self.data[i * self.row_step..][..columns]),
        }
    }
}

impl<S: Scalar> MatrixView<'_, S> {
    /// Whether no entry is infinite or NaN. (A glance: what follows from it is a convention of the rules, and
    /// no decision of the program.)
    fn is_finite(&self) -> bool {
        if self.rows == 0 || self.columns == 0 {
            return true;
        }
        let by_rows = if self.column_step <= self.row_step { *self } else { self.transposed() };
        if by_rows.row_step == by_rows.columns && by_rows.column_step == 1 {
            return all_finite(&by_rows.data[..by_rows.rows * by_rows.columns]);
        }
        (0..by_rows.rows).all(|i| match by_rows.row(i) {
            Some(row) => all_finite(row),
            None => (0..by_rows.columns).all(|j| is_finite(by_rows.at(i, j))),
        })
    }
}

/// Continues the chain of every entry of `c`, which lie row by row, with the products of `a` and `b`:
/// `c += a b`. In a strong product a zero wins over infinity and NaN.
///
/// ```
/// use palinode_num::products::{MatrixView, add_product};
///
/// let (a, b) = (MatrixView::by_rows(&[1.0, 2.0], 1, 2), MatrixView::by_rows(&[3.0, 4.0], 2, 1));
/// let mut c = [5.0];
/// add_product(&mut c, a, b, false);
/// assert_eq!(c, [16.0]);
/// ```
///
/// # Panics
/// If the sizes do not fit.
pub fn add_product<S: Scalar>(c: &mut [S], a: MatrixView<'_, S>, b: MatrixView<'_, S>, strong: bool) {
    let (m, k, n) = (a.rows, a.columns, b.columns);
    assert_eq!(k, b.rows, "a product of {m} by {k} and {} by {n}", b.rows);
    assert_eq!(c.len(), m * n, "{} elements for {m} by {n}", c.len());
    if !S::IS_FLOAT {
        let entries = c.iter_mut().zip((0..m).flat_map(|i| (0..n).map(move |j| (i, j))));
        for (c, (i, j)) in entries {
            let pair = |l: usize| (a.at(i, l), b.at(l, j));
            *c = if strong { S::strong_chain_over(*c, k, pair) } else { S::chain_over(*c, k, pair) };
        }
    } else if strong && !(a.is_finite() && b.is_finite()) {
        on_this_machine(floats::Strong { c, a, b });
    } else {
        floats::add_product(InstructionSet::best(), c, a, b);
    }
}

/// The product of a matrix and a vector: a dot product for every row.
///
/// ```
/// use palinode_num::products::{MatrixView, times_vector};
///
/// let mut y = [0.0; 2];
/// times_vector(&mut y, MatrixView::by_rows(&[1.0, 2.0, 3.0, 4.0], 2, 2), &[1.0, 10.0], false);
/// assert_eq!(y, [21.0, 43.0]);
/// ```
///
/// # Panics
/// If the sizes do not fit.
pub fn times_vector<S: Scalar>(y: &mut [S], a: MatrixView<'_, S>, x: &[S], strong: bool) {
    let (m, k) = (a.rows, a.columns);
    assert_eq!(k, x.len(), "a product of {m} by {k} and {} elements", x.len());
    assert_eq!(y.len(), m, "{} elements for {m} rows", y.len());
    if k == 0 {
        return y.fill(S::zero());
    }
    let plain = !strong || S::IS_FLOAT && a.is_finite() && all_finite(x);
    if S::IS_FLOAT && plain && a.column_step == 1 {
        on_this_machine(floats::DotOfRows { y, a, x });
    } else if S::IS_FLOAT && plain && a.row_step == 1 {
        let (step, weights) = (a.column_step, Some(x));
        on_this_machine(Lines { data: a.data, step, count: k, weights, sums: y });
    } else {
        for (i, y) in y.iter_mut().enumerate() {
            let pair = |l: usize| (a.at(i, l), x[l]);
            *y = if strong { S::strong_dot_over(k, pair) } else { S::dot_over(k, pair) };
        }
    }
}

/// The products of every element of `x` with every element of `y`, row by row.
///
/// # Panics
/// If the sizes do not fit.
pub fn outer<S: Scalar>(c: &mut [S], x: &[S], y: &[S], strong: bool) {
    let (m, n) = (x.len(), y.len());
    assert_eq!(c.len(), m * n, "{} elements for {m} by {n}", c.len());
    let of_finite = S::IS_FLOAT && strong && all_finite(y);
    for (row, &x) in c.chunks_mut(n.max(1)).zip(x) {
        if strong && !(of_finite && is_finite(x)) {
            row.iter_mut().zip(y).for_each(|(c, &y)| *c = x.strong_mul(y));
        } else {
            row.iter_mut().zip(y).for_each(|(c, &y)| *c = x * y);
        }
    }
}
