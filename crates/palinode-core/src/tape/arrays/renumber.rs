//! The nodes that arrays refer to, for what gives nodes other numbers.
//!
//! Input: the arrays of a finished recording. Output: the nodes they read and write; then the same steps with
//! other numbers.
//!
//! Invariant: nodes that were written together need not stay next to each other: a run of them becomes a
//! list.

use super::layout::{Home, Region};
use super::steps::{ArrayTape, Kind};
use super::view::Places;
use crate::tape::arena::SINK;
use palinode_num::Scalar;

/// What a step does with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    /// The step computes the node.
    Writes,
    /// The step is computed from the node.
    Reads,
}

impl<S: Scalar> ArrayTape<S> {
    /// Shows every node that a step refers to; never the sink.
    pub(crate) fn for_each_node(&self, mut see: impl FnMut(u32, Reference)) {
        let mut see = |node: u32, how| {
            if node != SINK {
                see(node, how);
            }
        };
        for step in self.steps() {
            match step.kind {
                Kind::Get => see(step.node, Reference::Writes),
                Kind::Set | Kind::Add => see(step.node, Reference::Reads),
                Kind::Whole => {}
            }
        }
        let mut see_region = |region: &Region, how| {
            if region.home == Home::Nodes {
                region.places.walk().for_each(|node| see(node as u32, how));
            }
        };
        for whole in &self.whole {
            see_region(whole.output().0, Reference::Writes);
            whole.arguments().for_each(|region| see_region(region, Reference::Reads));
        }
    }

    /// Gives nodes other numbers; `at` says which number the next node has at a place between nodes.
    pub(crate) fn renumber(&mut self, number: impl Fn(u32) -> u32, at: impl Fn(u32) -> u32) {
        self.for_each_step_mut(|step| {
            step.at = at(step.at);
            step.node = number(step.node);
        });
        let renumber = |region: &mut Region| {
            if region.home == Home::Nodes {
                let numbers = region.places.walk().map(|node| number(node as u32));
                region.places = Places::List(numbers.collect());
            }
        };
        self.whole.iter_mut().for_each(|whole| whole.for_each_region_mut(renumber));
    }
}
