//! The innermost part of a product: a tile of the result, kept in registers.
//!
//! Input: for every link of the chains, as many entries of the first factor as the tile has rows, and of the
//! second as it has columns. Output: the chains of the tile, continued.
//!
//! Written as plain arrays, one for each row of the tile, in a task of its own: there the compiler keeps them
//! in vector registers if there are enough. As one array of rows, or among other code, they end up in memory.

use crate::machine::VectorTask;
use crate::scalar::Scalar;

/// Entries of a factor, as many at a time as a tile has rows or columns, for the places of chains.
pub(super) trait Entries<S, const WIDTH: usize>: Copy {
    fn entries(self) -> impl Iterator<Item = [S; WIDTH]>;
}

/// Those of a place lie together, those of the next place so many elements later; for so many places.
#[derive(Clone, Copy)]
pub(super) struct Spaced<'a, S> {
    pub(super) data: &'a [S],
    pub(super) step: usize,
    pub(super) places: usize,
}

impl<S: Scalar, const WIDTH: usize> Entries<S, WIDTH> for Spaced<'_, S> {
    #[inline(always)]
    fn entries(self) -> impl Iterator<Item = [S; WIDTH]> {
        self.data.array_windows().step_by(self.step).take(self.places).copied()
    }
}

/// All lie together.
impl<S: Scalar, const WIDTH: usize> Entries<S, WIDTH> for &[[S; WIDTH]] {
    #[inline(always)]
    fn entries(self) -> impl Iterator<Item = [S; WIDTH]> {
        self.iter().copied()
    }
}

/// Those of all places lie together, for each row or column.
impl<S: Scalar, const WIDTH: usize> Entries<S, WIDTH> for [&[S]; WIDTH] {
    #[inline(always)]
    fn entries(self) -> impl Iterator<Item = [S; WIDTH]> {
        let places = self.first().map_or(0, |line| line.len());
        // All have that length; this tells the compiler.
        let lines: [&[S]; WIDTH] = core::array::from_fn(|line| &self[line][..places]);
        (0..places).map(move |place| core::array::from_fn(|line| lines[line][place]))
    }
}

/// A tile of eight rows for the 32 registers of 64 bytes, of six rows for others.
pub(super) struct Chains<'a, S, A, B, const ROWS: usize, const COLUMNS: usize> {
    pub(super) tile: [&'a mut [S; COLUMNS]; ROWS],
    pub(super) first: A,
    pub(super) second: B,
}

impl<S, A, B, const ROWS: usize, const COLUMNS: usize> VectorTask for Chains<'_, S, A, B, ROWS, COLUMNS>
where
    S: Scalar,
    A: Entries<S, ROWS>,
    B: Entries<S, COLUMNS>,
{
    type Output = ();
    #[inline(always)]
    fn run_with<const BYTES: usize>(self) {
        let Chains { mut tile, first, second } = self;
        macro_rules! rows {
            ($($r:literal $row:ident $place:ident),*) => {
                if let [$($place),*] = tile.as_mut_slice() {
                    $(let mut $row = **$place;)*
                    for (a, b) in first.entries().zip(second.entries()) {
                        $(continue_row(&mut $row, a[$r], &b);)*
                    }
                    $(**$place = $row;)*
                    return;
                }
            };
        }
        match (BYTES, ROWS) {
            (64, 8) => rows!(0 r0 p0, 1 r1 p1, 2 r2 p2, 3 r3 p3, 4 r4 p4, 5 r5 p5, 6 r6 p6, 7 r7 p7),
            (16 | 32, 6) => rows!(0 r0 p0, 1 r1 p1, 2 r2 p2, 3 r3 p3, 4 r4 p4, 5 r5 p5),
            _ => {}
        }
        unreachable!("a tile of {ROWS} rows for registers of {BYTES} bytes")
    }
}

#[inline(always)]
fn continue_row<S: Scalar, const COLUMNS: usize>(row: &mut [S; COLUMNS], a: S, b: &[S; COLUMNS]) {
    for (sum, &b) in row.iter_mut().zip(b) {
        *sum = a.mul_add(b, *sum);
    }
}
