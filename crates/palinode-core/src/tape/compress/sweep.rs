//! Sweeps over a compressed recording: the safe counterpart of `tape/sweep.rs`, over narrow partials too.
//!
//! Input: a cotangent (or tangent) per node, `N` at a time. Output: the same array, with what the nodes
//! passed on.
//!
//! Invariants: edges lie in the order of the reverse sweep, from the last node to the first; the last edge of
//! a node is marked [`LAST`]. Inputs and outputs of custom operations have no edges.

use super::partials::{Store, Stored, with_partials};
use crate::error::Error;
use crate::tape::arrays::{ArrayTape, Arrays, Scratch};
use crate::tape::custom::CustomNode;
use crate::tape::recorder::{Stop, stops_down, stops_up};
use palinode_num::Scalar;

/// Marks the last edge of a node in its parent word.
pub(super) const LAST: u32 = 1 << 31;

/// See the module's documentation.
pub(super) struct Sweep<S> {
    /// The nodes and the sink.
    pub(super) nodes: u32,
    pub(super) words: Vec<u32>,
    pub(super) partials: Store<S>,
    pub(super) custom: Vec<CustomNode<S>>,
    pub(super) arrays: ArrayTape<S>,
}

/// A reverse walk: from the last node down.
struct Down<'a, P> {
    /// The edges of the nodes below `node`.
    words: &'a [u32],
    partials: &'a [P],
    /// Every node from this one on has been passed.
    node: usize,
}

impl<P> Down<'_, P> {
    /// Goes on down to node `to`: each node on the way adds partial times cotangent to its parents.
    fn down_to<S: Scalar, const N: usize>(&mut self, to: usize, cotangents: &mut [[S; N]])
    where
        P: Stored<S>,
    {
        let mut node = self.node;
        // Of equal length, so that one test covers both.
        let (words, partials) = (self.words, &self.partials[..self.words.len()]);
        let mut edge = 0;
        while node > to {
            node -= 1;
            let received = cotangents[node];
            loop {
                let word = words[edge];
                let target = &mut cotangents[(word & !LAST) as usize];
                *target = S::strong_add(*target, partials[edge].wide(), received);
                edge += 1;
                if word & LAST != 0 {
                    break;
                }
            }
        }
        *self = Down { words: &words[edge..], partials: &partials[edge..], node };
    }
}

impl<S: Scalar> Sweep<S> {
    /// Propagates cotangents from the last node down to the inputs.
    pub(super) fn reverse<const N: usize>(
        &self,
        cotangents: &mut [[S; N]],
        inputs: usize,
    ) -> Result<(), Error> {
        with_partials!(&self.partials, |partials| self.reverse_over(partials, cotangents, inputs))
    }

    fn reverse_over<P: Stored<S>, const N: usize>(
        &self,
        partials: &[P],
        cotangents: &mut [[S; N]],
        inputs: usize,
    ) -> Result<(), Error> {
        let mut walk = Down { words: &self.words, partials, node: self.nodes as usize };
        let arrays = Arrays::new(&self.arrays, self.nodes);
        let mut scratch = Scratch::new();
        for stop in stops_down(&self.arrays, &self.custom) {
            walk.down_to(stop.at() as usize, cotangents);
            match stop {
                Stop::Arrays(step) => arrays.reverse(step, cotangents, &mut scratch),
                Stop::Custom(custom) => {
                    custom.reverse(cotangents)?;
                    walk.node = custom.first_output as usize;
                }
            }
        }
        walk.down_to(inputs + 1, cotangents);
        Ok(())
    }

    /// Propagates tangents from the inputs up to the last node.
    pub(super) fn forward<const N: usize>(
        &self,
        tangents: &mut [[S; N]],
        inputs: usize,
    ) -> Result<(), Error> {
        with_partials!(&self.partials, |partials| self.forward_over(partials, tangents, inputs))
    }

    fn forward_over<P: Stored<S>, const N: usize>(
        &self,
        partials: &[P],
        tangents: &mut [[S; N]],
        inputs: usize,
    ) -> Result<(), Error> {
        let mut edges = self.words.iter().zip(partials).rev().peekable();
        let mut node = inputs + 1;
        let mut up_to = |to: usize, node: &mut usize, tangents: &mut [[S; N]]| {
            while *node < to {
                let mut sum = [S::zero(); N];
                let mut next = edges.next();
                while let Some((&word, partial)) = next {
                    sum = S::strong_add(sum, partial.wide(), tangents[(word & !LAST) as usize]);
                    // A marked edge begins the next node, backwards.
                    next = edges.next_if(|(word, _)| **word & LAST == 0);
                }
                tangents[*node] = sum;
                *node += 1;
            }
        };
        let arrays = Arrays::new(&self.arrays, self.nodes);
        let mut scratch = Scratch::new();
        for stop in stops_up(&self.arrays, &self.custom) {
            match stop {
                Stop::Arrays(step) => {
                    up_to(step.at as usize, &mut node, tangents);
                    arrays.forward(step, tangents, &mut scratch);
                }
                Stop::Custom(custom) => {
                    up_to(custom.first_output as usize, &mut node, tangents);
                    custom.forward(tangents)?;
                    node = custom.end() as usize;
                }
            }
        }
        up_to(self.nodes as usize, &mut node, tangents);
        Ok(())
    }

    /// How many cotangents a sweep needs: one per node, the sink included, and one per cell of an array.
    pub(super) fn cotangents(&self) -> usize {
        self.nodes as usize + self.arrays.cells
    }

    /// The heap bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<u32>()
            + self.partials.bytes()
            + self.arrays.bytes()
            + self.custom.capacity() * size_of::<CustomNode<S>>()
            + self.custom.iter().map(CustomNode::bytes).sum::<usize>()
    }
}
