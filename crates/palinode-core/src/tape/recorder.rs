//! What a recording writes to: the arena of edges, the custom operations, and the trace if one is kept.
//!
//! Input: pushes from `Var`s. Output: sweeps over everything in order.
//!
//! Invariant: the outputs of a custom operation are leaves of the arena, written together; its rule runs
//! between the nodes after them and the nodes before them.

use super::arena::Arena;
use super::custom::CustomNode;
use super::sweep::{Forward, Reverse};
use super::trace::Entry;
use crate::error::Error;
use palinode_num::Scalar;

/// Where a node's value comes from.
pub(crate) enum Source<'a, S> {
    /// Parents and partials.
    Edges(&'a [u32], &'a [S]),
    /// A custom operation.
    Custom(&'a CustomNode<S>),
}

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
        let mut walk = Reverse::new(&self.arena);
        for custom in self.custom.iter().rev() {
            walk.down_to(cotangents, custom.end());
            custom.reverse(cotangents)?;
        }
        walk.down_to(cotangents, to);
        Ok(())
    }

    /// Propagates tangents from the inputs up to the last node.
    pub(crate) fn forward<const N: usize>(&self, tangents: &mut [[S; N]]) -> Result<(), Error> {
        let mut walk = Forward::new(&self.arena);
        for custom in &self.custom {
            walk.up_to(tangents, custom.end());
            custom.forward(tangents)?;
        }
        walk.up_to(tangents, self.arena.next_node());
        Ok(())
    }

    /// Shows every node in order: its number, and its edges or the custom operation that it is an output of.
    pub(crate) fn for_each_node(&self, mut see: impl FnMut(u32, Source<'_, S>)) {
        let mut customs = self.custom.iter().peekable();
        self.arena.for_each_node(|node, parents, partials| {
            while customs.next_if(|custom| custom.end() <= node).is_some() {}
            match customs.peek() {
                Some(custom) if custom.first_output() <= node => see(node, Source::Custom(custom)),
                _ => see(node, Source::Edges(parents, partials)),
            }
        });
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
