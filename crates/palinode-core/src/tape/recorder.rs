//! What a recording writes to: the arena of edges, the custom operations, and the trace if one is kept.
//!
//! Input: pushes from `Var`s. Output: sweeps over everything in order.
//!
//! Invariant: the outputs of a custom operation are leaves of the arena, written together; its rule runs
//! between the nodes after them and the nodes before them.

use super::arena::Arena;
use super::custom::CustomNode;
use super::trace::Entry;
use crate::error::Error;
use palinode_num::Scalar;

pub(crate) struct Recorder<S> {
    pub(crate) arena: Arena<S>,
    pub(crate) custom: Vec<CustomNode<S>>,
    pub(crate) trace: Vec<Entry<S>>,
}

impl<S: Scalar> Recorder<S> {
    pub(crate) fn new(node_limit: u32, byte_limit: usize) -> Self {
        Recorder { arena: Arena::new(node_limit, byte_limit), custom: Vec::new(), trace: Vec::new() }
    }

    pub(crate) fn clear(&mut self) {
        self.arena.clear();
        self.custom.clear();
        self.trace.clear();
    }

    /// Propagates cotangents from the last node down to node `to`.
    pub(crate) fn reverse<const N: usize>(&self, cotangents: &mut [[S; N]], to: u32) -> Result<(), Error> {
        let mut above = self.arena.next_node();
        for custom in self.custom.iter().rev() {
            self.arena.reverse(cotangents, above, custom.end());
            custom.reverse(cotangents)?;
            above = custom.end();
        }
        self.arena.reverse(cotangents, above, to);
        Ok(())
    }

    /// Propagates tangents from node `from` up to the last node.
    pub(crate) fn forward<const N: usize>(&self, tangents: &mut [[S; N]], from: u32) -> Result<(), Error> {
        let mut below = from;
        for custom in &self.custom {
            self.arena.forward(tangents, below, custom.end());
            custom.forward(tangents)?;
            below = custom.end();
        }
        self.arena.forward(tangents, below, self.arena.next_node());
        Ok(())
    }

    /// The heap bytes held.
    pub(crate) fn bytes(&self) -> usize {
        let saved: usize = self.custom.iter().map(CustomNode::bytes).sum();
        let traced: usize = self.trace.iter().map(Entry::bytes).sum();
        self.arena.bytes()
            + self.custom.capacity() * size_of::<CustomNode<S>>()
            + saved
            + self.trace.capacity() * size_of::<Entry<S>>()
            + traced
    }
}
