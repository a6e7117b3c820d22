//! Places: elements and parts of arrays, and views of them, as index maps on their base.

use super::value::{Val, VarId};
use crate::op::Axis;

#[derive(Clone)]
pub(super) enum Base {
    Variable(VarId),
    /// A value without a name.
    Temporary(Val),
}

/// What a place takes along one axis of its base.
#[derive(Clone)]
pub(super) enum Along {
    At(Val),
    Range { start: Val, len: Val, step: Val },
    All,
    List(Val),
}

impl Along {
    pub(super) fn stays(&self) -> bool {
        !matches!(self, Along::At(_))
    }
}

#[derive(Clone)]
pub(super) struct Place {
    pub(super) base: Base,
    /// One for each axis of the base.
    pub(super) along: Vec<Along>,
    /// Axis `j` of the place is the axis number `order[j]` of those that stay.
    pub(super) order: Vec<u8>,
}

impl Place {
    pub(super) fn whole(base: Base, rank: u8) -> Place {
        Place { base, along: vec![Along::All; usize::from(rank)], order: (0..rank).collect() }
    }

    /// The variable that it is a place of.
    pub(super) fn variable(&self) -> Option<VarId> {
        match self.base {
            Base::Variable(id) => Some(id),
            Base::Temporary(_) => None,
        }
    }

    pub(super) fn rank(&self) -> u8 {
        self.order.len() as u8
    }

    /// Whether it is all of its base, in order.
    pub(super) fn is_whole(&self) -> bool {
        self.along.iter().all(|along| matches!(along, Along::All)) && self.in_order()
    }

    pub(super) fn in_order(&self) -> bool {
        self.order.iter().enumerate().all(|(at, &axis)| usize::from(axis) == at)
    }

    /// The axis of the base behind axis `j` of the place.
    pub(super) fn base_axis(&self, j: usize) -> usize {
        let stays = self.along.iter().enumerate().filter(|(_, along)| along.stays());
        stays.map(|(axis, _)| axis).nth(usize::from(self.order[j])).expect("the axis stays")
    }

    /// The axes and operands of an access.
    pub(super) fn access(&self) -> (Vec<Axis>, Vec<&Val>) {
        let mut operands = Vec::new();
        let axes = self.along.iter().map(|along| match along {
            Along::At(index) => {
                operands.push(index);
                Axis::At
            }
            Along::Range { start, len, step } => {
                operands.extend([start, len, step]);
                Axis::Range
            }
            Along::All => Axis::All,
            Along::List(list) => {
                operands.push(list);
                Axis::List
            }
        });
        (axes.collect(), operands)
    }
}
