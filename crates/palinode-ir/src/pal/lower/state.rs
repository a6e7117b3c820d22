//! What every variable is at the point that has been reached, which can be undone.
//!
//! A block of a loop or a branch starts from the state before it and is undone at its end. To keep a copy of
//! the whole state for each block would take time proportional to the variables of the whole source; so what
//! a block changes is written down, and only that is put back.

use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

use super::value::{Held, VarId};

/// What every variable is.
#[derive(Default)]
pub(super) struct State {
    held: Vec<Held>,
    /// What was there before each change, while somebody wants to come back.
    undo: Vec<(VarId, Held)>,
    marks: usize,
}

/// A point to come back to; every one must be, the last one first.
#[must_use]
pub(super) struct Mark(usize);

impl State {
    /// Another variable.
    pub(super) fn push(&mut self, held: Held) {
        if self.marks > 0 {
            self.undo.push((self.held.len(), Held::Unset));
        }
        self.held.push(held);
    }

    /// A point to come back to.
    pub(super) fn mark(&mut self) -> Mark {
        self.marks += 1;
        Mark(self.undo.len())
    }

    /// Makes everything what it was; variables that are new since are unset. Gives what had become of those
    /// that were changed.
    pub(super) fn rewind(&mut self, mark: Mark) -> BTreeMap<VarId, Held> {
        self.marks -= 1;
        let mut after = BTreeMap::new();
        for (id, old) in self.undo.drain(mark.0..).rev() {
            let new = core::mem::replace(&mut self.held[id], old);
            // The last change comes first.
            after.entry(id).or_insert(new);
        }
        after
    }
}

impl Index<VarId> for State {
    type Output = Held;
    fn index(&self, id: VarId) -> &Held {
        &self.held[id]
    }
}

impl IndexMut<VarId> for State {
    fn index_mut(&mut self, id: VarId) -> &mut Held {
        if self.marks > 0 {
            self.undo.push((id, self.held[id].clone()));
        }
        &mut self.held[id]
    }
}
