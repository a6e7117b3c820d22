//! Sweeps over the arena: walks that carry cotangents down, or tangents up, and can stop and go on at any
//! node.
//!
//! Input: an arena and a cotangent (or tangent) per node, `N` at a time. Output: the same array, with what
//! the nodes passed on. Custom operations run between two parts of one walk, so a walk keeps its place.
//!
//! Invariant: a walk borrows the arena, so the recording cannot change under it.

#![allow(unsafe_code)] // named in ARCHITECTURE.md; `tests.rs` compares with a safe twin

use super::arena::{Arena, FIRST, LEAF, SINK};
use palinode_num::Scalar;

/// A reverse walk: from the last node down.
pub(crate) struct Reverse<'a, S> {
    arena: &'a Arena<S>,
    chunk: usize,
    /// The edges of this chunk that belong to nodes below `node`.
    edges_left: usize,
    /// Every node from this one on has been passed.
    node: u32,
}

impl<'a, S: Scalar> Reverse<'a, S> {
    pub(crate) fn new(arena: &'a Arena<S>) -> Self {
        let chunk = arena.chunk_count().saturating_sub(1);
        let edges_left = if arena.chunk_count() == 0 { 0 } else { arena.chunk(chunk).1.len() };
        Reverse { arena, chunk, edges_left, node: arena.next_node() }
    }

    /// Goes on down to node `to`: each node on the way adds partial times cotangent to its parents.
    pub(crate) fn down_to<const N: usize>(&mut self, cotangents: &mut [[S; N]], to: u32) {
        assert!(cotangents.len() >= self.arena.next_node() as usize && to > SINK);
        let base = cotangents.as_mut_ptr();
        while self.node > to {
            let (first_node, parents, partials) = self.arena.chunk(self.chunk);
            let last = first_node.max(to);
            let (mut node, mut edge) = (self.node, self.edges_left);
            while node > last {
                node -= 1;
                // SAFETY: `node < next_node <= cotangents.len()`.
                let received = unsafe { *base.add(node as usize) };
                loop {
                    edge -= 1;
                    // SAFETY: a chunk holds the edges of its nodes and no others, and the first edge of each
                    // is marked, so the walk over the edges of the nodes down to `last` stays within the
                    // chunk: `edge` starts at most at its length and the marks stop it in time. A parent's
                    // number is below its node's, hence below `next_node`.
                    unsafe {
                        let word = *parents.get_unchecked(edge);
                        let target = base.add((word & !FIRST) as usize);
                        *target = S::strong_add(*target, *partials.get_unchecked(edge), received);
                        if word & FIRST != 0 {
                            break;
                        }
                    }
                }
            }
            (self.node, self.edges_left) = (node, edge);
            if node > to {
                self.chunk -= 1;
                self.edges_left = self.arena.chunk(self.chunk).1.len();
            }
        }
    }
}

/// A forward walk: from the first node up.
pub(crate) struct Forward<'a, S> {
    arena: &'a Arena<S>,
    chunk: usize,
    edge: usize,
    node: u32,
}

impl<'a, S: Scalar> Forward<'a, S> {
    pub(crate) fn new(arena: &'a Arena<S>) -> Self {
        Forward { arena, chunk: 0, edge: 0, node: 1 }
    }

    /// Goes on up to node `to`, not included: each node's tangent becomes the sum over its parents. Leaves
    /// keep theirs.
    pub(crate) fn up_to<const N: usize>(&mut self, tangents: &mut [[S; N]], to: u32) {
        while self.node < to {
            let (_, parents, partials) = self.arena.chunk(self.chunk);
            if self.edge == parents.len() {
                self.chunk += 1;
                self.edge = 0;
                continue;
            }
            let more = parents[self.edge + 1..].iter().take_while(|&&word| word & FIRST == 0).count();
            let edges = self.edge..self.edge + 1 + more;
            self.edge = edges.end;
            if parents[edges.start] != LEAF {
                tangents[self.node as usize] = edges.fold([S::zero(); N], |sum, edge| {
                    S::strong_add(sum, partials[edge], tangents[(parents[edge] & !FIRST) as usize])
                });
            }
            self.node += 1;
        }
    }
}
