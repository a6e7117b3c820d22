//! Sparse Jacobians and Hessians: find the pattern on the tape, colour it, sweep once per colour, read off
//! the entries.
//!
//! Input: a closure and a point. Output: the entries that can be nonzero, and how many sweeps they took.
//!
//! The pattern comes from the recording itself, so it holds for the path that was taken; it may contain
//! entries that happen to be zero and never misses one.

use super::colouring::{self, Colouring};
use super::{LANES, second};
use crate::error::Error;
use crate::finite;
use crate::points::{Parts, add_parts, group_count, group_of, verified, weight};
use crate::tape::{Outputs, Record, Tape, Var};
use palinode_num::Scalar;

/// A sparse matrix by its entries, in the order of rows and then columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Sparse<S> {
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub columns: usize,
    /// (row, column, value) of every entry that can be nonzero.
    pub entries: Vec<(usize, usize, S)>,
    /// How many sweeps over the tape it took: the number of colours.
    pub sweeps: usize,
}

impl<S: Scalar> Sparse<S> {
    /// The full matrix, a vector per row.
    pub fn to_dense(&self) -> Vec<Vec<S>> {
        let mut dense = vec![vec![S::zero(); self.columns]; self.rows];
        for &(row, column, value) in &self.entries {
            dense[row][column] = value;
        }
        dense
    }
}

/// The Jacobian of a function with many inputs and outputs that depend on few inputs each.
///
/// ```
/// use palinode_core::{Var, sparse_jacobian};
///
/// let differences = |x: &[Var<f64>]| x.windows(2).map(|w| w[1] - w[0]).collect::<Vec<_>>();
/// let j = sparse_jacobian(differences, &[0.0; 1000])?;
/// assert_eq!((j.entries.len(), j.sweeps), (2 * 999, 2));
/// assert_eq!(j.entries[..2], [(0, 0, -1.0), (0, 1, 1.0)]);
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn sparse_jacobian<S: Scalar, O: Outputs<S>>(
    mut f: impl FnMut(&[Var<S>]) -> O,
    x: &[S],
) -> Result<Sparse<S>, Error> {
    finite::inputs(x)?;
    let mut tape = Tape::new();
    verified(x, (Parts::ByInput, 1), |x, parts| {
        let record = tape.record_once(x, &mut f)?;
        finite::outputs(record.values())?;
        let jacobian = record.sparse_jacobian()?;
        add_sums(parts, &jacobian);
        Ok(jacobian)
    })
}

/// The Hessian of a function in which few inputs meet: the gradient is recorded once, and symmetry is used.
///
/// ```
/// use palinode_core::{Var, sparse_hessian};
///
/// let chain = |x: &[Var<Var<f64>>]| x.windows(2).map(|w| (w[1] - w[0] * w[0]).powi(2)).sum();
/// let h = sparse_hessian(chain, &[1.0; 1000])?;
/// assert_eq!((h.entries.len(), h.sweeps), (1000 + 2 * 999, 3));
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn sparse_hessian<S: Scalar>(
    mut f: impl FnMut(&[Var<Var<S>>]) -> Var<Var<S>>,
    x: &[S],
) -> Result<Sparse<S>, Error> {
    finite::inputs(x)?;
    verified(x, (Parts::ByInput, 2), |x, mut parts| {
        second::record_gradient(&mut f, x, |record| {
            let hessian = hessian_of(&record)?;
            add_parts(parts.as_deref_mut(), record.values());
            add_sums(parts, &hessian);
            Ok(hessian)
        })
    })
}

/// The Jacobian of a recorded gradient, by its symmetry.
fn hessian_of<S: Scalar>(record: &Record<'_, S>) -> Result<Sparse<S>, Error> {
    let n = record.input_count();
    let rows = symmetric(record.pattern(), n);
    let Colouring { colour, count } = colouring::star(&rows);
    let compressed = products(count, &colour, |seeds| record.reverse_many(seeds))?;
    // Entry (i, j) stands in row i under colour j, alone unless another column of that colour has an entry in
    // row i; then, by the star property, it is alone in row j under colour i.
    let mut last_with_colour = vec![(usize::MAX, usize::MAX); count];
    let mut entries = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        for &j in row {
            let (seen_row, columns) = &mut last_with_colour[colour[j]];
            (*seen_row, *columns) = if *seen_row == i { (i, *columns + 1) } else { (i, 1) };
        }
        for &j in row {
            let is_alone = last_with_colour[colour[j]].1 == 1;
            let value = if is_alone { compressed[i][colour[j]] } else { compressed[j][colour[i]] };
            entries.push((i, j, value));
        }
    }
    finish(Sparse { rows: n, columns: n, entries, sweeps: count })
}

/// At most so many parts of a sparse matrix, unless it has more columns.
const MOST_PARTS: usize = 1 << 20;

/// Weighted sums of each column over groups of rows to the parts: the pattern may be another one near the
/// point.
fn add_sums<S: Scalar>(parts: Option<&mut Vec<f64>>, matrix: &Sparse<S>) {
    if let Some(parts) = parts {
        let start = parts.len();
        let groups = group_count(matrix.rows).min(MOST_PARTS / matrix.columns.max(1)).max(1);
        parts.resize(start + groups * matrix.columns, 0.0);
        for &(row, column, value) in &matrix.entries {
            let part = group_of(row, matrix.rows, groups) * matrix.columns + column;
            parts[start + part] += weight(row) * value.glance().unwrap_or(f64::NAN);
        }
    }
}

impl<S: Scalar> Record<'_, S> {
    /// The Jacobian of this recording by its pattern: forward sweeps over groups of columns or reverse sweeps
    /// over groups of rows, whichever are fewer; always in reverse if the tape adds up by sums
    /// ([`Tape::accumulate`]).
    pub fn sparse_jacobian(&self) -> Result<Sparse<S>, Error> {
        let (rows, columns) = (self.output_count(), self.input_count());
        let pattern = self.pattern();
        let transposed = colouring::transposed(&pattern, columns);
        let by_columns = colouring::columns(&pattern, &transposed);
        let by_rows = colouring::columns(&transposed, &pattern);
        let all = || pattern.iter().enumerate().flat_map(|(i, row)| row.iter().map(move |&j| (i, j)));
        let (entries, sweeps) = if by_columns.count < by_rows.count && !self.adds_up_by_sums() {
            let Colouring { colour, count } = by_columns;
            let compressed = products(count, &colour, |seeds| self.forward_many(seeds))?;
            (all().map(|(i, j)| (i, j, compressed[i][colour[j]])).collect(), count)
        } else {
            let Colouring { colour, count } = by_rows;
            let compressed = products(count, &colour, |seeds| self.reverse_many(seeds))?;
            (all().map(|(i, j)| (i, j, compressed[j][colour[i]])).collect(), count)
        };
        finish(Sparse { rows, columns, entries, sweeps })
    }
}

fn finish<S: Scalar>(matrix: Sparse<S>) -> Result<Sparse<S>, Error> {
    matrix.entries.iter().try_for_each(|&(output, input, value)| finite::entry(output, input, value))?;
    Ok(matrix)
}

/// The products of a matrix with the sums of unit vectors of each colour: for each row of the result, a value
/// per colour.
fn products<S: Scalar>(
    colours: usize,
    colour: &[usize],
    multiply: impl Fn(&[[S; LANES]]) -> Result<Vec<[S; LANES]>, Error>,
) -> Result<Vec<Vec<S>>, Error> {
    let mut compressed: Vec<Vec<S>> = Vec::new();
    for start in (0..colours).step_by(LANES) {
        let mut seeds = vec![[S::zero(); LANES]; colour.len()];
        for (seed, &c) in seeds.iter_mut().zip(colour) {
            if (start..start + LANES).contains(&c) {
                seed[c - start] = S::one();
            }
        }
        let block = multiply(&seeds)?;
        compressed.resize(block.len(), Vec::new());
        for (row, lanes) in compressed.iter_mut().zip(block) {
            row.extend_from_slice(&lanes[..LANES.min(colours - start)]);
        }
    }
    Ok(compressed)
}

/// The pattern of a Hessian, made symmetric: an entry may have been found on one side only.
fn symmetric(mut rows: Vec<Vec<usize>>, n: usize) -> Vec<Vec<usize>> {
    let transposed = colouring::transposed(&rows, n);
    for (row, mirrored) in rows.iter_mut().zip(transposed) {
        row.extend(mirrored);
        row.sort_unstable();
        row.dedup();
    }
    rows
}
