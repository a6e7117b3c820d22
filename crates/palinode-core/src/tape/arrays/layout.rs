//! Where cells are: storages of cotangents after the nodes, and regions of them.
//!
//! Input: where each storage begins. Output: places in a sweep's memory, which has an entry per node, then
//! one per cell.

use super::view::{Places, View};
use palinode_num::Scalar;

/// Where something lives: among the nodes, or in a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    Nodes,
    Storage(u32),
}

/// Some nodes or cells, in order.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    pub(crate) home: Home,
    pub(crate) places: Places,
}

impl Region {
    /// All cells of a storage.
    pub(crate) fn all_of(storage: u32, shape: &[usize]) -> Region {
        Region { home: Home::Storage(storage), places: Places::View(View::whole(shape)) }
    }
}

/// Where the storages of a finished recording lie.
#[derive(Clone, Copy)]
pub(crate) struct Layout<'a> {
    /// Where each storage begins among the cells.
    pub(super) storages: &'a [usize],
    /// Cells come after the nodes.
    pub(super) nodes: usize,
}

impl Layout<'_> {
    #[inline]
    pub(super) fn cell(self, storage: u32, cell: u32) -> usize {
        self.nodes + self.storages[storage as usize] + cell as usize
    }

    /// A region's places in a sweep's memory, in order.
    pub(super) fn places(self, region: &Region) -> impl Iterator<Item = usize> {
        let base = match region.home {
            Home::Nodes => 0,
            Home::Storage(storage) => self.cell(storage, 0),
        };
        region.places.walk().map(move |place| base + place)
    }
}

/// Adds what is moved unchanged. Into zero it goes bit by bit.
#[inline]
pub(crate) fn accumulate<S: Scalar, const N: usize>(target: &mut [S; N], moved: [S; N]) {
    for (target, moved) in target.iter_mut().zip(moved) {
        let sum = *target;
        *target = sum.where_it_vanishes(|| moved, || moved.where_it_vanishes(|| sum, || sum + moved));
    }
}
