//! Products of matrices, and their cotangents.
//!
//! `C = A B`. Cotangents: `A' = C' B^T`, `B' = A^T C'`; see `linalg/matmul.rs` for where they come from.
//!
//! Input: matrices as rows after rows. Output: the same. The arithmetic on `f64` and `f32` is that of
//! [`crate::matrix`], on other numbers a plain loop; products that are compensated or exact are dot products,
//! entry by entry. In a sweep a zero wins over infinities and NaN, as everywhere on the tape; numbers that
//! are not finite therefore take the plain loop.

use super::layout::{Layout, Region, accumulate};
use super::residual::Residual;
use crate::matrix::{TOGETHER, adds_in_order, product_of_columns};
use crate::tape::Sums;
use palinode_num::{AccumulateProducts, Accumulator, Scalar};
use std::collections::HashSet;

/// A recorded product.
pub(crate) struct Product<S> {
    /// Rows of the first, columns of the first, columns of the second.
    pub(crate) size: [usize; 3],
    pub(crate) output: Region,
    /// The active factors.
    pub(crate) regions: [Option<Region>; 2],
    /// A factor whose other one is active.
    pub(crate) kept: [Residual<S>; 2],
    /// How the entries of every product are added up: of the values, the cotangents and the tangents.
    pub(crate) how: Accumulator,
}

/// `a b`, or the same where zeros win over what is not finite.
pub(crate) fn product<S: Scalar>(
    [m, k, n]: [usize; 3],
    a: &[S],
    b: &[S],
    strong: bool,
    how: Accumulator,
) -> Vec<S> {
    if how != Accumulator::Naive {
        let dot = if strong { S::strong_dot_with } else { S::dot_with };
        let columns = transposed(k, n, b);
        let entry = |i: usize, j: usize| dot(&a[i * k..(i + 1) * k], &columns[j * k..(j + 1) * k], how);
        return pairs(m, n).map(|(i, j)| entry(i, j)).collect();
    }
    let mut c = vec![S::zero(); m * n];
    let is_finite = |x: &S| x.glance().is_some_and(f64::is_finite);
    if adds_in_order::<S>() && (!strong || a.iter().chain(b).all(is_finite)) {
        // Rows after rows is the transpose of columns after columns, and C^T = B^T A^T.
        product_of_columns([n, k, m], b, a, &mut c);
        return c;
    }
    for i in 0..m {
        for l in 0..k {
            let x = a[i * k + l];
            for j in 0..n {
                let (c, y) = (&mut c[i * n + j], b[l * n + j]);
                *c = if strong { x.strong_add_to(y, *c) } else { *c + x * y };
            }
        }
    }
    c
}

/// All pairs of a row and a column, row by row.
fn pairs(rows: usize, columns: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rows).flat_map(move |i| (0..columns).map(move |j| (i, j)))
}

fn transposed<S: Scalar>(rows: usize, columns: usize, a: &[S]) -> Vec<S> {
    (0..columns).flat_map(|j| (0..rows).map(move |i| a[i * columns + j])).collect()
}

impl<S: Scalar> Product<S> {
    /// A kept factor, rows after rows.
    fn factor(&self, which: usize) -> Vec<S> {
        let lent = self.kept[which].lend();
        let [m, k, n] = self.size;
        lent.reader().iter().take(if which == 0 { m * k } else { k * n }).collect()
    }

    pub(super) fn reverse<const N: usize>(
        &self,
        layout: Layout<'_>,
        received: &[[S; N]],
        cotangents: &mut [[S; N]],
    ) {
        let [m, k, n] = self.size;
        // Each factor's cotangent needs the other factor, transposed.
        let b_transposed = self.regions[0].is_some().then(|| transposed(k, n, &self.factor(1)));
        let a_transposed = self.regions[1].is_some().then(|| transposed(m, k, &self.factor(0)));
        for lane in 0..N {
            let c: Vec<S> = received.iter().map(|cotangent| cotangent[lane]).collect();
            let a = b_transposed.as_ref().map(|b| product([m, n, k], &c, b, true, self.how));
            let b = a_transposed.as_ref().map(|a| product([k, m, n], a, &c, true, self.how));
            for (region, contribution) in self.regions.iter().zip([a, b]) {
                let (Some(region), Some(contribution)) = (region, contribution) else { continue };
                for (place, x) in layout.places(region).zip(contribution) {
                    accumulate(core::array::from_mut(&mut cotangents[place][lane]), [x]);
                }
            }
        }
    }

    /// The cotangents of both factors, product by product into the sums that they are.
    pub(super) fn reverse_summed<A: AccumulateProducts<S>>(
        &self,
        layout: Layout<'_>,
        received: &[S],
        sums: &mut Sums<S, A>,
    ) {
        let [m, k, n] = self.size;
        if let Some(region) = &self.regions[0] {
            let b = self.factor(1);
            for (place, (i, l)) in layout.places(region).zip(pairs(m, k)) {
                (0..n).for_each(|j| sums.add_product(place, received[i * n + j], b[l * n + j]));
            }
        }
        if let Some(region) = &self.regions[1] {
            let a = self.factor(0);
            for (place, (l, j)) in layout.places(region).zip(pairs(k, n)) {
                (0..m).for_each(|i| sums.add_product(place, a[i * k + l], received[i * n + j]));
            }
        }
    }

    pub(super) fn forward<const N: usize>(
        &self,
        layout: Layout<'_>,
        tangents: &[[S; N]],
        sent: &mut [[S; N]],
    ) {
        for lane in 0..N {
            let tangent = |region: &Region| -> Vec<S> {
                layout.places(region).map(|place| tangents[place][lane]).collect()
            };
            let terms: Vec<Vec<S>> = match &self.regions {
                [Some(a), Some(b)] if self.how != Accumulator::Naive => {
                    vec![self.forward_both(&tangent(a), &tangent(b))]
                }
                [a, b] => {
                    let term = |a: &[S], b: &[S]| product(self.size, a, b, true, self.how);
                    let by_a = a.as_ref().map(|a| term(&tangent(a), &self.factor(1)));
                    let by_b = b.as_ref().map(|b| term(&self.factor(0), &tangent(b)));
                    [by_a, by_b].into_iter().flatten().collect()
                }
            };
            for term in terms {
                for (sent, x) in sent.iter_mut().zip(term) {
                    accumulate(core::array::from_mut(&mut sent[lane]), [x]);
                }
            }
        }
    }

    /// `da b + a db` with entries that are single sums: the product of `[da a]` and `b` above `db`.
    fn forward_both(&self, da: &[S], db: &[S]) -> Vec<S> {
        let [m, k, n] = self.size;
        let (a, mut below) = (self.factor(0), self.factor(1));
        let row = |x: &[S], i: usize| x[i * k..(i + 1) * k].to_vec();
        let beside: Vec<S> = (0..m).flat_map(|i| [row(da, i), row(&a, i)]).flatten().collect();
        below.extend_from_slice(db);
        product([m, 2 * k, n], &beside, &below, true, self.how)
    }

    /// For each active factor, which of its elements the marked elements of the result depend on.
    pub(super) fn needed(&self, marked: &[bool]) -> Vec<(&Region, Vec<bool>)> {
        let [m, k, n] = self.size;
        let row = |i: usize| marked[i * n..(i + 1) * n].contains(&true);
        let column = |j: usize| (0..m).any(|i| marked[i * n + j]);
        let first = || (0..m).flat_map(|i| core::iter::repeat_n(row(i), k)).collect();
        let second = || core::iter::repeat_n((0..n).map(column), k).flatten().collect();
        let mut needed: Vec<(&Region, Vec<bool>)> = Vec::new();
        needed.extend(self.regions[0].as_ref().map(|region| (region, first())));
        needed.extend(self.regions[1].as_ref().map(|region| (region, second())));
        needed
    }

    /// How many numbers a sweep needs for a while: both factors and their transposes, cotangents of all
    /// three, the rows that are multiplied together; for products entry by entry the columns of each second
    /// factor, too.
    pub(crate) fn scratch(&self) -> usize {
        let [m, k, n] = self.size;
        let columns = if self.how == Accumulator::Naive { 0 } else { m * n + 2 * (m * k + k * n) };
        2 * m * n + 3 * (m * k + k * n) + columns + TOGETHER * m.max(k).max(n)
    }

    pub(crate) fn bytes(&self, mut seen: Option<&mut HashSet<*const ()>>) -> usize {
        let residuals = self.kept.iter().map(|residual| match &mut seen {
            Some(seen) => residual.bytes(seen),
            None => residual.own_bytes(),
        });
        self.output.places.bytes()
            + self.regions.iter().flatten().map(|region| region.places.bytes()).sum::<usize>()
            + residuals.sum::<usize>()
    }
}
