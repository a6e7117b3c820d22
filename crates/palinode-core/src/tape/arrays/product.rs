//! Products of matrices, and their cotangents.
//!
//! `C = A B`. Cotangents: `A' = C' B^T`, `B' = A^T C'`; see `linalg/matmul.rs` for where they come from.
//!
//! Input: matrices as rows after rows. Output: the same. Entries are what `palinode_num::sums` says: chains
//! where the result is a matrix, dot products where it is a vector; products that are compensated or exact
//! are dot products, entry by entry. In a sweep a zero wins over infinities and NaN, as everywhere on the
//! tape.

use super::layout::{Layout, Region, accumulate};
use super::residual::Residual;
use crate::tape::Sums;
use palinode_num::products::{MatrixView, add_product, outer, times_vector};
use palinode_num::{AccumulateProducts, Accumulator, Scalar};
use std::borrow::Cow;
use std::collections::HashSet;

/// What is multiplied.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    /// Rows of the first.
    pub(crate) m: usize,
    /// Columns of the first, rows of the second.
    pub(crate) k: usize,
    /// Columns of the second.
    pub(crate) n: usize,
    /// Whether a factor is a vector, and so the result.
    pub(crate) of_vector: bool,
}

impl Sizes {
    /// Those of a product with the same kind of factors.
    fn with(self, m: usize, k: usize, n: usize) -> Self {
        Sizes { m, k, n, ..self }
    }
}

/// A recorded product.
pub(crate) struct Product<S> {
    pub(crate) size: Sizes,
    pub(crate) output: Region,
    /// The active factors.
    pub(crate) regions: [Option<Region>; 2],
    /// A factor whose other one is active.
    pub(crate) kept: [Residual<S>; 2],
    /// How the entries of every product are added up: of the values, the cotangents and the tangents.
    pub(crate) how: Accumulator,
}

/// A matrix by its rows, or one by its columns.
#[derive(Clone, Copy)]
pub(crate) enum Factor<'a, S> {
    ByRows(&'a [S]),
    ByColumns(&'a [S]),
}

impl<'a, S: Scalar> Factor<'a, S> {
    fn view(self, rows: usize, columns: usize) -> MatrixView<'a, S> {
        match self {
            Factor::ByRows(data) => MatrixView::by_rows(data, rows, columns),
            Factor::ByColumns(data) => MatrixView::by_columns(data, rows, columns),
        }
    }

    /// The elements, if it is a vector.
    fn elements(self) -> &'a [S] {
        let (Factor::ByRows(data) | Factor::ByColumns(data)) = self;
        data
    }

    /// Row after row.
    fn rows(self, rows: usize, columns: usize) -> Cow<'a, [S]> {
        match self {
            Factor::ByRows(data) => Cow::Borrowed(data),
            Factor::ByColumns(data) => Cow::Owned(transposed(columns, rows, data)),
        }
    }

    fn transposed(self) -> Self {
        match self {
            Factor::ByRows(data) => Factor::ByColumns(data),
            Factor::ByColumns(data) => Factor::ByRows(data),
        }
    }
}

/// `a b`, or the same where zeros win over what is not finite.
pub(crate) fn product<S: Scalar>(
    Sizes { m, k, n, of_vector }: Sizes,
    a: Factor<'_, S>,
    b: Factor<'_, S>,
    strong: bool,
    how: Accumulator,
) -> Vec<S> {
    if how != Accumulator::Naive {
        let dot = if strong { S::strong_dot_with } else { S::dot_with };
        let (rows, columns) = (a.rows(m, k), b.transposed().rows(n, k));
        let entry = |i: usize, j: usize| dot(&rows[i * k..(i + 1) * k], &columns[j * k..(j + 1) * k], how);
        return pairs(m, n).map(|(i, j)| entry(i, j)).collect();
    }
    let mut c = vec![S::zero(); m * n];
    if !of_vector {
        add_product(&mut c, a.view(m, k), b.view(k, n), strong);
    } else if n == 1 {
        times_vector(&mut c, a.view(m, k), b.elements(), strong);
    } else if m == 1 {
        times_vector(&mut c, b.view(k, n).transposed(), a.elements(), strong);
    } else {
        assert_eq!(k, 1, "what is left of products with vectors are products of two");
        outer(&mut c, a.elements(), b.elements(), strong);
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
        let Sizes { m, k, n, .. } = self.size;
        lent.reader().iter().take(if which == 0 { m * k } else { k * n }).collect()
    }

    pub(super) fn reverse<const N: usize>(
        &self,
        layout: Layout<'_>,
        received: &[[S; N]],
        cotangents: &mut [[S; N]],
    ) {
        use Factor::{ByColumns, ByRows};
        let Sizes { m, k, n, .. } = self.size;
        // Each factor's cotangent needs the other factor, transposed.
        let second = self.regions[0].is_some().then(|| self.factor(1));
        let first = self.regions[1].is_some().then(|| self.factor(0));
        for lane in 0..N {
            let c: Vec<S> = received.iter().map(|cotangent| cotangent[lane]).collect();
            let times = |size, a, b| product(size, a, b, true, self.how);
            let a = second.as_ref().map(|b| times(self.size.with(m, n, k), ByRows(&c), ByColumns(b)));
            let b = first.as_ref().map(|a| times(self.size.with(k, m, n), ByColumns(a), ByRows(&c)));
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
        let Sizes { m, k, n, .. } = self.size;
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
                    let term = |a: &[S], b: &[S]| {
                        product(self.size, Factor::ByRows(a), Factor::ByRows(b), true, self.how)
                    };
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
        let Sizes { m, k, n, .. } = self.size;
        let (a, mut below) = (self.factor(0), self.factor(1));
        let row = |x: &[S], i: usize| x[i * k..(i + 1) * k].to_vec();
        let beside: Vec<S> = (0..m).flat_map(|i| [row(da, i), row(&a, i)]).flatten().collect();
        below.extend_from_slice(db);
        let size = self.size.with(m, 2 * k, n);
        product(size, Factor::ByRows(&beside), Factor::ByRows(&below), true, self.how)
    }

    /// For each active factor, which of its elements the marked elements of the result depend on.
    pub(super) fn needed(&self, marked: &[bool]) -> Vec<(&Region, Vec<bool>)> {
        let Sizes { m, k, n, .. } = self.size;
        let row = |i: usize| marked[i * n..(i + 1) * n].contains(&true);
        let column = |j: usize| (0..m).any(|i| marked[i * n + j]);
        let first = || (0..m).flat_map(|i| core::iter::repeat_n(row(i), k)).collect();
        let second = || core::iter::repeat_n((0..n).map(column), k).flatten().collect();
        let mut needed: Vec<(&Region, Vec<bool>)> = Vec::new();
        needed.extend(self.regions[0].as_ref().map(|region| (region, first())));
        needed.extend(self.regions[1].as_ref().map(|region| (region, second())));
        needed
    }

    /// How many numbers a sweep needs for a while: both factors, and cotangents or tangents of all three; for
    /// products entry by entry rows and columns of what is multiplied, too.
    pub(crate) fn scratch(&self) -> usize {
        let Sizes { m, k, n, .. } = self.size;
        let by_entry = if self.how == Accumulator::Naive { 0 } else { m * n + 3 * (m * k + k * n) };
        2 * (m * n + m * k + k * n) + by_entry
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
