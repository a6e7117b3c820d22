//! Sums of products, many at once: what the algorithms of dense linear algebra spend their time with.
//!
//! Input: matrices by lines, one after the other. Output: for every place the inner product of what the lines
//! have there with the same weights.
//!
//! Invariant: each inner product is that of [`Scalar::dot`], to the last bit. On `f64` and `f32`, whose
//! products are added up one after the other, line after line is added to all sums, so that neighbours share
//! an instruction without any sum changing its order; on other numbers each place is a call of `dot`, which
//! is one node on a tape and one rounding of a posit. No instruction that only some processors have (a fused
//! multiplication and addition, say) changes what comes out.

use super::Matrix;
use core::any::TypeId;
use core::ops::Range;
use palinode_num::Scalar;

/// Whether `dot` of this number adds product after product and nothing more: `f64` and `f32`.
pub fn adds_in_order<S: Scalar>() -> bool {
    let own = TypeId::of::<S>();
    own == TypeId::of::<f64>() || own == TypeId::of::<f32>()
}

/// Adds lines times weights, in their order, to every sum.
#[inline(always)]
fn add_lines<S: Scalar, const K: usize>(sums: &mut [S], lines: [&[S]; K], weights: [S; K]) {
    let length = sums.len();
    let lines = lines.map(|line| &line[..length]);
    for (i, sum) in sums.iter_mut().enumerate() {
        for (line, &weight) in lines.iter().zip(&weights) {
            *sum = *sum + line[i] * weight;
        }
    }
}

/// Adds all these lines, of which those places count, to the sums: some at a time, so that a sum is not
/// fetched for each.
fn add_all<S: Scalar>(lines: &[S], width: usize, places: Range<usize>, weights: &[S], sums: &mut [S]) {
    for (at, weights) in weights.chunks(4).enumerate() {
        let line = |k: usize| &lines[(4 * at + k) * width..][places.clone()];
        match *weights {
            [a, b, c, d] => add_lines(sums, [line(0), line(1), line(2), line(3)], [a, b, c, d]),
            _ => weights.iter().enumerate().for_each(|(k, &weight)| add_lines(sums, [line(k)], [weight])),
        }
    }
}

/// Inner products of the weights, one for each line of this width, with what the lines have at each of these
/// places.
pub(super) fn combination<S: Scalar>(
    lines: &[S],
    width: usize,
    places: Range<usize>,
    weights: &[S],
    sums: &mut [S],
) {
    if adds_in_order::<S>() {
        sums.fill(S::zero());
        return add_all(lines, width, places, weights, sums);
    }
    let mut across = Vec::with_capacity(weights.len());
    for (place, sum) in places.zip(sums) {
        across.clear();
        across.extend((0..weights.len()).map(|k| lines[k * width + place]));
        *sum = S::dot(&across, weights);
    }
}

/// Takes the columns of a lower triangle from `x` as far as there are columns, each as often as `x` has it
/// then: solves with them, and leaves the rest of `x` without them. `unit`: the diagonal counts as ones.
pub(super) fn eliminate<S: Scalar>(columns: &[S], unit: bool, x: &mut [S]) {
    let n = x.len();
    let count = columns.len() / n;
    let finished = |k: usize, x: S| if unit { x } else { x / columns[k * n + k] };
    if !adds_in_order::<S>() {
        let mut row = Vec::with_capacity(count);
        for i in 0..n {
            let known = i.min(count);
            if known > 0 {
                row.clear();
                row.extend((0..known).map(|k| columns[k * n + i]));
                x[i] = x[i] - S::dot(&row, &x[..known]);
            }
            if i < count {
                x[i] = finished(i, x[i]);
            }
        }
        return;
    }
    let mut sums = vec![S::zero(); n];
    for start in (0..count).step_by(4) {
        let end = (start + 4).min(count);
        for k in start..end {
            x[k] = finished(k, x[k] - sums[k]);
            add_lines(&mut sums[k + 1..end], [&columns[k * n + k + 1..][..end - k - 1]], [x[k]]);
        }
        add_all(&columns[start * n..], n, end..n, &x[start..end], &mut sums[end..]);
    }
    x[count..].iter_mut().zip(&sums[count..]).for_each(|(x, &known)| *x = *x - known);
}

/// Solves with an upper triangle, from the last unknown to the first.
pub(super) fn eliminate_upwards<S: Scalar>(columns: &[S], unit: bool, x: &mut [S]) {
    let n = x.len();
    let finished = |k: usize, x: S| if unit { x } else { x / columns[k * n + k] };
    if !adds_in_order::<S>() {
        let (mut row, mut known) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for i in (0..n).rev() {
            if !known.is_empty() {
                row.clear();
                row.extend((i + 1..n).rev().map(|k| columns[k * n + i]));
                x[i] = x[i] - S::dot(&row, &known);
            }
            x[i] = finished(i, x[i]);
            known.push(x[i]);
        }
        return;
    }
    let mut sums = vec![S::zero(); n];
    for end in (1..=n).rev().step_by(4) {
        let start = end.saturating_sub(4);
        for k in (start..end).rev() {
            x[k] = finished(k, x[k] - sums[k]);
            add_lines(&mut sums[start..k], [&columns[k * n + start..][..k - start]], [x[k]]);
        }
        let line = |k: usize| &columns[k * n..][..start];
        if let [a, b, c, d] = x[start..end] {
            let lines = [line(start + 3), line(start + 2), line(start + 1), line(start)];
            add_lines(&mut sums[..start], lines, [d, c, b, a]);
        }
    }
}

/// The inner products of two columns with themselves and with each other.
pub(super) fn squares_and_product<S: Scalar>(x: &[S], y: &[S]) -> (S, S, S) {
    if !adds_in_order::<S>() {
        return (S::dot(x, x), S::dot(y, y), S::dot(x, y));
    }
    let none = S::zero();
    x.iter().zip(y).fold((none, none, none), |(a, b, c), (&x, &y)| (a + x * x, b + y * y, c + x * y))
}

/// Rows and columns that are computed together: as many sums as fit into the registers of any processor.
pub(crate) const ROWS: usize = 8;
const COLUMNS: usize = 2;

/// The product of two matrices.
pub fn product<S: Scalar<Bool = bool>>(a: &Matrix<S>, b: &Matrix<S>) -> Matrix<S> {
    let mut c = Matrix::zeros(a.rows, b.columns);
    product_of_columns([a.rows, a.columns, b.columns], &a.data, &b.data, &mut c.data);
    c
}

/// The product of an `m` by `k` and a `k` by `n` matrix, all by columns.
pub(crate) fn product_of_columns<S: Scalar>([m, k, n]: [usize; 3], a: &[S], b: &[S], c: &mut [S]) {
    if m * k * n == 0 {
        return;
    }
    if !adds_in_order::<S>() || n < COLUMNS {
        for (weights, sums) in b.chunks(k).zip(c.chunks_mut(m)) {
            combination(a, m, 0..m, weights, sums);
        }
        return;
    }
    // Some rows of the first factor at a time, so that they lie together: they are gone through for all
    // columns of the second.
    let mut rows = vec![[S::zero(); ROWS]; k];
    for i in (0..m).step_by(ROWS) {
        let height = ROWS.min(m - i);
        for (rows, column) in rows.iter_mut().zip(a.chunks(m)) {
            rows[..height].copy_from_slice(&column[i..i + height]);
        }
        for j in (0..n).step_by(COLUMNS) {
            let columns: [&[S]; COLUMNS] = core::array::from_fn(|s| &b[(j + s).min(n - 1) * k..][..k]);
            for (s, sums) in tile(&rows, columns).iter().take(n - j).enumerate() {
                c[(j + s) * m + i..][..height].copy_from_slice(&sums[..height]);
            }
        }
    }
}

/// The sums of some rows and columns, by columns.
#[inline(always)]
fn tile<S: Scalar>(rows: &[[S; ROWS]], columns: [&[S]; COLUMNS]) -> [[S; ROWS]; COLUMNS] {
    let columns = columns.map(|column| &column[..rows.len()]);
    let mut sums = [[S::zero(); ROWS]; COLUMNS];
    for (l, row) in rows.iter().enumerate() {
        for (sums, column) in sums.iter_mut().zip(&columns) {
            let weight = column[l];
            for (sum, &x) in sums.iter_mut().zip(row) {
                *sum = *sum + x * weight;
            }
        }
    }
    sums
}
