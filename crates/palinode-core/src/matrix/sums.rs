//! Sums of products, many at once: what the algorithms of dense linear algebra spend their time with.
//!
//! Input: matrices by lines, one after the other. Output: for every place the inner product of what the lines
//! have there with the same weights.
//!
//! Invariant: each inner product is that of [`Scalar::chain_over`] from zero, to the last bit. On floats line
//! after line is added to all sums, so that neighbours share an instruction; on other numbers each place is
//! one call, which is one node on a tape.

use super::Matrix;
use core::ops::Range;
use palinode_num::Scalar;
use palinode_num::machine::{Task, on_this_machine};
use palinode_num::products::{MatrixView, add_product};

/// Adds lines times weights, in their order, to every sum.
#[inline(always)]
fn add_lines<S: Scalar, const K: usize>(sums: &mut [S], lines: [&[S]; K], weights: [S; K]) {
    let length = sums.len();
    let lines = lines.map(|line| &line[..length]);
    for (i, sum) in sums.iter_mut().enumerate() {
        for (line, &weight) in lines.iter().zip(&weights) {
            *sum = line[i].mul_add(weight, *sum);
        }
    }
}

/// Adds all these lines, of which those places count, to the sums: some at a time, so that a sum is not
/// fetched for each.
#[inline(always)]
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
    if S::IS_FLOAT {
        return on_this_machine(Combination { lines, width, places, weights, sums });
    }
    for (place, sum) in places.zip(sums) {
        *sum = S::chain_over(S::zero(), weights.len(), |k| (lines[k * width + place], weights[k]));
    }
}

struct Combination<'a, S> {
    lines: &'a [S],
    width: usize,
    places: Range<usize>,
    weights: &'a [S],
    sums: &'a mut [S],
}

impl<S: Scalar> Task for Combination<'_, S> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        self.sums.fill(S::zero());
        add_all(self.lines, self.width, self.places, self.weights, self.sums);
    }
}

/// Columns of a triangle, to be taken from what lies in `x`.
struct Elimination<'a, S> {
    columns: &'a [S],
    /// The diagonal counts as ones.
    unit: bool,
    x: &'a mut [S],
}

/// Takes the columns of a lower triangle from `x` as far as there are columns, each as often as `x` has it
/// then: solves with them, and leaves the rest of `x` without them. `unit`: the diagonal counts as ones.
pub(super) fn eliminate<S: Scalar>(columns: &[S], unit: bool, x: &mut [S]) {
    if S::IS_FLOAT {
        return on_this_machine(Downwards(Elimination { columns, unit, x }));
    }
    let n = x.len();
    let count = columns.len() / n;
    for i in 0..n {
        let known = i.min(count);
        if known > 0 {
            x[i] = x[i] - S::chain_over(S::zero(), known, |k| (columns[k * n + i], x[k]));
        }
        if i < count && !unit {
            x[i] = x[i] / columns[i * n + i];
        }
    }
}

/// Solves with an upper triangle, from the last unknown to the first, whose term is taken off first.
pub(super) fn eliminate_upwards<S: Scalar>(columns: &[S], unit: bool, x: &mut [S]) {
    if S::IS_FLOAT {
        return on_this_machine(Upwards(Elimination { columns, unit, x }));
    }
    let n = x.len();
    for i in (0..n).rev() {
        let known = n - 1 - i;
        if known > 0 {
            let of_unknown = |k: usize| (columns[k * n + i], x[k]);
            x[i] = x[i] - S::chain_over(S::zero(), known, |place| of_unknown(n - 1 - place));
        }
        if !unit {
            x[i] = x[i] / columns[i * n + i];
        }
    }
}

struct Downwards<'a, S>(Elimination<'a, S>);

impl<S: Scalar> Task for Downwards<'_, S> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Elimination { columns, unit, x } = self.0;
        let n = x.len();
        let count = columns.len() / n;
        let mut sums = vec![S::zero(); n];
        for start in (0..count).step_by(4) {
            let end = (start + 4).min(count);
            for k in start..end {
                let left = x[k] - sums[k];
                x[k] = if unit { left } else { left / columns[k * n + k] };
                add_lines(&mut sums[k + 1..end], [&columns[k * n + k + 1..][..end - k - 1]], [x[k]]);
            }
            add_all(&columns[start * n..], n, end..n, &x[start..end], &mut sums[end..]);
        }
        x[count..].iter_mut().zip(&sums[count..]).for_each(|(x, &known)| *x = *x - known);
    }
}

struct Upwards<'a, S>(Elimination<'a, S>);

impl<S: Scalar> Task for Upwards<'_, S> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Elimination { columns, unit, x } = self.0;
        let n = x.len();
        let mut sums = vec![S::zero(); n];
        for end in (1..=n).rev().step_by(4) {
            let start = end.saturating_sub(4);
            for k in (start..end).rev() {
                let left = x[k] - sums[k];
                x[k] = if unit { left } else { left / columns[k * n + k] };
                add_lines(&mut sums[start..k], [&columns[k * n + start..][..k - start]], [x[k]]);
            }
            let line = |k: usize| &columns[k * n..][..start];
            if let [a, b, c, d] = x[start..end] {
                let lines = [line(start + 3), line(start + 2), line(start + 1), line(start)];
                add_lines(&mut sums[..start], lines, [d, c, b, a]);
            }
        }
    }
}

/// The product of two matrices.
pub fn product<S: Scalar>(a: MatrixView<'_, S>, b: MatrixView<'_, S>) -> Matrix<S> {
    let mut c = Matrix::zeros(a.rows(), b.columns());
    // Columns after columns are the rows of the transpose, and C' = B' A'.
    add_product(&mut c.data, b.transposed(), a.transposed(), false);
    c
}
