//! Products of matrices of floats, by vector instructions.
//!
//! Input: views, and the result row by row. Output: every chain continued, as [`crate::sums`] defines it.
//!
//! Part of the second factor, [`DEPTH`] rows by a tile's columns, is copied to one contiguous place and stays
//! in the innermost cache, while tiles go down the rows of the first factor (Goto and van de Geijn, "Anatomy
//! of high-performance matrix multiplication", 2008, without their copy of the first factor). A chain is left
//! at the end of a part and continued in the next, so that no bit depends on the size of parts and tiles.

use super::MatrixView;
use super::tile::{Chains, Entries, Spaced};
use crate::machine::{InstructionSet, Task};
use crate::scalar::Scalar;
use crate::scalar::order::zero_wins;
use crate::sums::floats::Dot;

use core::ops::Range;

/// Rows of the second factor that are copied at a time.
const DEPTH: usize = 128;
/// Rows of the first factor that stay in the second cache meanwhile.
const HEIGHT: usize = 256;
/// The columns of the widest tile.
const WIDEST: usize = 24;
/// Columns of the first factor that are gathered at a time, where they do not lie in the order of use.
const GATHERED: usize = 16;

/// `c += a b`, by these instructions.
pub(super) fn add_product<'a, S: Scalar>(
    set: InstructionSet,
    c: &mut [S],
    mut a: MatrixView<'a, S>,
    mut b: MatrixView<'a, S>,
) {
    if a.rows == 1 && b.column_step != 1 {
        // A row has the layout of a column.
        (a, b) = (b.transposed(), a.transposed());
    }
    if c.is_empty() || a.columns == 0 {
        return;
    }
    match set {
        InstructionSet::Avx512 => by_tiles::<S, 8, WIDEST, 16, 8>(set, c, a, b),
        _ => by_tiles::<S, 6, 8, 8, 4>(set, c, a, b),
    }
}

fn by_tiles<S: Scalar, const ROWS: usize, const WIDE: usize, const MIDDLE: usize, const NARROW: usize>(
    set: InstructionSet,
    c: &mut [S],
    a: MatrixView<'_, S>,
    b: MatrixView<'_, S>,
) {
    let (m, k, n) = (a.rows, a.columns, b.columns);
    // To copy what is used a few times, or is in the innermost cache already, would take longer.
    let in_place = b.column_step == 1 && b.row_step > 0 && (m <= 2 * ROWS || k * n <= DEPTH * WIDE);
    // Clearing much memory would take longer than a small product.
    let (mut little, mut some, mut much);
    let room: &mut [S] = match k.min(DEPTH) * n.next_multiple_of(NARROW).min(WIDE) {
        ..=64 => {
            little = [S::zero(); 64];
            &mut little
        }
        65..=512 => {
            some = [S::zero(); 512];
            &mut some
        }
        _ => {
            much = [S::zero(); DEPTH * WIDEST];
            &mut much
        }
    };
    for top in (0..m).step_by(HEIGHT) {
        let rows = top..m.min(top + HEIGHT);
        for from in (0..k).step_by(DEPTH) {
            let places = from..k.min(from + DEPTH);
            let mut left = 0;
            while left < n {
                // The narrowest tile that is wide enough for the rest, or the widest.
                let part = |width: usize| Part {
                    set,
                    a,
                    rows: rows.clone(),
                    places: places.clone(),
                    b,
                    left,
                    width: width.min(n - left),
                };
                left += match n - left {
                    rest if rest > MIDDLE => part(WIDE).down::<ROWS, WIDE>(c, in_place, room),
                    rest if rest > NARROW => part(MIDDLE).down::<ROWS, MIDDLE>(c, in_place, room),
                    _ => part(NARROW).down::<ROWS, NARROW>(c, in_place, room),
                };
            }
        }
    }
}

/// What is computed with one part of the second factor.
struct Part<'a, S> {
    set: InstructionSet,
    a: MatrixView<'a, S>,
    b: MatrixView<'a, S>,
    rows: Range<usize>,
    places: Range<usize>,
    /// The first of the columns, and how many.
    left: usize,
    width: usize,
}

impl<S: Scalar> Part<'_, S> {
    /// Continues the chains of these rows and columns; says how many columns.
    fn down<const ROWS: usize, const COLUMNS: usize>(
        &self,
        c: &mut [S],
        in_place: bool,
        room: &mut [S],
    ) -> usize {
        let b = self.b;
        let end = (self.places.end - 1) * b.row_step + self.left + COLUMNS;
        if in_place && end <= b.data.len() {
            // Columns beside the part take part in the computation, but are not kept.
            let data = &b.data[self.places.start * b.row_step + self.left..];
            self.with::<_, ROWS, COLUMNS>(c, |start| Spaced {
                data: &data[start * b.row_step..],
                step: b.row_step,
                places: self.places.len() - start,
            });
        } else {
            let copy = &mut room.as_chunks_mut::<COLUMNS>().0[..self.places.len()];
            self.copy(copy);
            let copy = &*copy;
            self.with::<_, ROWS, COLUMNS>(c, |start| &copy[start..]);
        }
        self.width
    }

    /// Copies the part to one contiguous place. What is beside it in the copy does not matter.
    fn copy<const COLUMNS: usize>(&self, copy: &mut [[S; COLUMNS]]) {
        let (b, from, left, width) = (self.b, self.places.start, self.left, self.width);
        let copy = &mut copy[..self.places.len()];
        if b.column_step == 1 {
            for (l, copy) in copy.iter_mut().enumerate() {
                let row = &b.data[(from + l) * b.row_step + left..];
                match row.first_chunk() {
                    Some(row) => *copy = *row,
                    None => copy.iter_mut().zip(row).for_each(|(copy, &b)| *copy = b),
                }
            }
        } else if b.row_step == 1 {
            for j in 0..width {
                let column = &b.data[(left + j) * b.column_step + from..][..copy.len()];
                copy.iter_mut().zip(column).for_each(|(copy, &b)| copy[j] = b);
            }
        } else {
            for (l, copy) in copy.iter_mut().enumerate() {
                copy[..width].iter_mut().enumerate().for_each(|(j, copy)| *copy = b.at(from + l, left + j));
            }
        }
    }

    /// Tile after tile, with the part of the second factor from one of its places on.
    fn with<B, const ROWS: usize, const COLUMNS: usize>(
        &self,
        c: &mut [S],
        second: impl Fn(usize) -> B + Copy,
    ) where
        B: Entries<S, COLUMNS>,
    {
        let n = self.b.columns;
        for i in self.rows.clone().step_by(ROWS) {
            let height = ROWS.min(self.rows.end - i);
            let mut rows = c[i * n..].chunks_mut(n).map(|row| &mut row[self.left..][..self.width]);
            if height == ROWS && self.width == COLUMNS {
                let whole = |_| rows.next().and_then(|row| row.first_chunk_mut()).expect("a whole tile");
                self.chains::<_, ROWS, COLUMNS>(i, height, core::array::from_fn(whole), second);
                continue;
            }
            let mut tile = [[S::zero(); COLUMNS]; ROWS];
            for (tile, row) in tile.iter_mut().zip(rows.take(height)) {
                tile.iter_mut().zip(row).for_each(|(tile, c)| *tile = *c);
            }
            self.chains(i, height, tile.each_mut(), second);
            let rows = c[i * n..].chunks_mut(n).map(|row| &mut row[self.left..][..self.width]);
            for (tile, row) in tile.iter().zip(rows.take(height)) {
                row.iter_mut().zip(tile).for_each(|(c, &tile)| *c = tile);
            }
        }
    }

    /// Continues the chains of a tile with `height` rows from `i` on.
    fn chains<B, const ROWS: usize, const COLUMNS: usize>(
        &self,
        i: usize,
        height: usize,
        mut tile: [&mut [S; COLUMNS]; ROWS],
        second: impl Fn(usize) -> B,
    ) where
        B: Entries<S, COLUMNS>,
    {
        let (a, from, places) = (self.a, self.places.start, self.places.len());
        // Missing rows repeat the last one, and are not kept.
        let row = |r: usize| i + r.min(height - 1);
        let columns_end = (self.places.end - 1) * a.column_step + i + ROWS;
        if a.column_step == 1 {
            let first: [&[S]; ROWS] =
                core::array::from_fn(|r| &a.data[row(r) * a.row_step + from..][..places]);
            self.set.run(Chains { tile, first, second: second(0) });
        } else if a.row_step == 1 && a.column_step > 0 && columns_end <= a.data.len() {
            let first = Spaced { data: &a.data[from * a.column_step + i..], step: a.column_step, places };
            self.set.run(Chains { tile, first, second: second(0) });
        } else {
            for start in (0..places).step_by(GATHERED) {
                let places = GATHERED.min(places - start);
                let mut gathered = [[S::zero(); ROWS]; GATHERED];
                for (l, column) in gathered[..places].iter_mut().enumerate() {
                    *column = core::array::from_fn(|r| a.at(row(r), from + start + l));
                }
                let first = Spaced { data: gathered.as_flattened(), step: ROWS, places };
                let tile = tile.each_mut().map(|row| &mut **row);
                self.set.run(Chains { tile, first, second: second(start) });
            }
        }
    }
}

/// `c += a b` without the products in which a zero wins.
pub(super) struct Strong<'a, S> {
    pub(super) c: &'a mut [S],
    pub(super) a: MatrixView<'a, S>,
    pub(super) b: MatrixView<'a, S>,
}

impl<S: Scalar> Task for Strong<'_, S> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Strong { c, a, b } = self;
        for i in 0..a.rows {
            let c = &mut c[i * b.columns..][..b.columns];
            for l in 0..a.columns {
                let x = a.at(i, l);
                for (j, c) in c.iter_mut().enumerate() {
                    let y = b.at(l, j);
                    let sum = x.mul_add(y, *c);
                    *c = if zero_wins(x, y) { *c } else { sum };
                }
            }
        }
    }
}

/// The dot product of every row and a vector; the rows lie together.
pub(super) struct DotOfRows<'a, S> {
    pub(super) y: &'a mut [S],
    pub(super) a: MatrixView<'a, S>,
    pub(super) x: &'a [S],
}

impl<S: Scalar> Task for DotOfRows<'_, S> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let DotOfRows { y, a, x } = self;
        for (i, y) in y.iter_mut().enumerate() {
            *y = Dot(&a.data[i * a.row_step..][..a.columns], x).run();
        }
    }
}
