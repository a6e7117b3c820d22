//! What a recording writes to: the arena of edges, the custom operations, the steps of arrays, and the trace
//! if one is kept.
//!
//! Input: pushes from `Var`s and arrays. Output: sweeps over everything in order.
//!
//! Invariants: the outputs of a custom operation are leaves of the arena, written together; its rule runs
//! between the nodes after them and the nodes before them. So do the steps of arrays; one that says the same
//! place as the end of a custom operation's outputs came after it.

mod arrays;

use super::arena::{Arena, OpenNode, SINK};
use super::arrays::{ArrayTape, Arrays, Scratch, Step};
use super::custom::CustomNode;
use super::sweep::{Forward, Reverse};
use crate::error::Error;
use palinode_num::Scalar;

/// One recorded operation of a traced tape.
pub(crate) struct Entry<S> {
    pub(crate) node: u32,
    pub(crate) op: &'static str,
    /// The nodes it reads and the partials saved for them; custom operations save something else.
    pub(crate) inputs: Vec<(u32, Option<S>)>,
    pub(crate) value: S,
}

impl<S> Entry<S> {
    pub(crate) fn bytes(&self) -> usize {
        self.inputs.capacity() * size_of::<(u32, Option<S>)>()
    }
}

/// Where a node's value comes from.
pub(crate) enum Source<'a, S> {
    /// The words of its parents, and partials.
    Edges(&'a [u32], &'a [S]),
    /// A custom operation.
    Custom(&'a CustomNode<S>),
}

/// Nodes with the custom operations that they are outputs of; `is_passed` says that one has none any more.
fn with_customs<'a, S: Scalar>(
    nodes: impl Iterator<Item = (u32, &'a [u32], &'a [S])>,
    customs: impl Iterator<Item = &'a CustomNode<S>>,
    is_passed: impl Fn(&CustomNode<S>, u32) -> bool,
) -> impl Iterator<Item = (u32, Source<'a, S>)> {
    let mut customs = customs.peekable();
    nodes.map(move |(node, words, partials)| {
        while customs.next_if(|custom| is_passed(custom, node)).is_some() {}
        match customs.peek() {
            Some(custom) if (custom.first_output..custom.end()).contains(&node) => {
                (node, Source::Custom(custom))
            }
            _ => (node, Source::Edges(words, partials)),
        }
    })
}

/// What a sweep over the nodes stops at, to do something else.
pub(super) enum Stop<'a, S> {
    /// A step of an array.
    Arrays(&'a Step),
    /// A custom operation.
    Custom(&'a CustomNode<S>),
}

impl<S: Scalar> Stop<'_, S> {
    /// The nodes before it, its own outputs included.
    pub(super) fn at(&self) -> u32 {
        match self {
            Stop::Arrays(step) => step.at,
            Stop::Custom(custom) => custom.end(),
        }
    }
}

/// One sequence out of two.
fn merged<'a, S: 'a>(
    steps: impl Iterator<Item = &'a Step>,
    customs: impl Iterator<Item = &'a CustomNode<S>>,
    is_first: impl Fn(&Step, &CustomNode<S>) -> bool,
) -> impl Iterator<Item = Stop<'a, S>> {
    let (mut steps, mut customs) = (steps.peekable(), customs.peekable());
    core::iter::from_fn(move || match customs.peek() {
        Some(custom) => match steps.next_if(|step| is_first(step, custom)) {
            Some(step) => Some(Stop::Arrays(step)),
            None => customs.next().map(Stop::Custom),
        },
        None => steps.next().map(Stop::Arrays),
    })
}

/// What sweeps stop at besides nodes, the last first.
pub(super) fn stops_down<'a, S: Scalar>(
    arrays: &'a ArrayTape<S>,
    customs: &'a [CustomNode<S>],
) -> impl Iterator<Item = Stop<'a, S>> {
    merged(arrays.steps().rev(), customs.iter().rev(), |step, custom| step.at >= custom.end())
}

/// What sweeps stop at besides nodes, the first first.
pub(super) fn stops_up<'a, S: Scalar>(
    arrays: &'a ArrayTape<S>,
    customs: &'a [CustomNode<S>],
) -> impl Iterator<Item = Stop<'a, S>> {
    merged(arrays.steps(), customs.iter(), |step, custom| step.at < custom.end())
}

pub(crate) struct Recorder<S> {
    pub(crate) arena: Arena<S>,
    pub(crate) custom: Vec<CustomNode<S>>,
    pub(crate) arrays: ArrayTape<S>,
    pub(crate) trace: Vec<Entry<S>>,
}

impl<S: Scalar> Recorder<S> {
    pub(crate) fn new(node_limit: u32, byte_limit: usize) -> Self {
        Recorder {
            arena: Arena::new(node_limit, byte_limit),
            custom: Vec::new(),
            arrays: ArrayTape::new(),
            trace: Vec::new(),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.arena.clear();
        self.custom.clear();
        self.trace.clear();
        self.arrays.clear();
        self.arena.set_aside(self.arrays.list_bytes());
    }

    /// Gives all memory back that a recording could use again.
    pub(crate) fn release(&mut self) {
        self.arena.release();
        self.arrays.release();
    }

    /// How many cotangents a sweep needs: one per node, the sink included, and one per cell of an array.
    pub(crate) fn cotangents(&self) -> usize {
        self.arena.next_node() as usize + self.arrays.cells
    }

    /// The bytes that a sweep needs for a while, besides cotangents: for an operation on whole arrays or a
    /// custom one.
    pub(crate) fn scratch_bytes(&self) -> usize {
        let of_custom = self.custom.iter().map(CustomNode::scratch_bytes).max().unwrap_or(0);
        of_custom.max(self.arrays.scratch)
    }

    /// Takes a node back that has few edges and is still the last; see [`Arena::take_back`]. Not if something
    /// has been recorded after it that is no node: the place of that among the nodes would be lost.
    pub(crate) fn take_back(&mut self, node: OpenNode, zero: S) -> Option<[(u32, S); 2]> {
        let next = self.arena.next_node();
        let is_followed = self.arrays.steps().next_back().is_some_and(|step| step.at >= next)
            || self.custom.last().is_some_and(|custom| custom.end() >= next);
        if is_followed { None } else { self.arena.take_back(node, zero) }
    }

    /// A leaf for a number that an operation on whole arrays makes.
    pub(crate) fn push_leaf(&mut self, op: &'static str, value: S, zero: S, traced: bool) -> u32 {
        let node = self.arena.push([SINK], [zero]);
        if traced {
            self.trace_leaf(op, node, value);
        }
        node
    }

    /// Notes a leaf on a traced tape.
    pub(crate) fn trace_leaf(&mut self, op: &'static str, node: u32, value: S) {
        self.trace.push(Entry { node, op, inputs: Vec::new(), value });
    }

    /// Propagates cotangents from the last node down to node `to`.
    pub(crate) fn reverse<const N: usize>(&self, cotangents: &mut [[S; N]], to: u32) -> Result<(), Error> {
        let mut walk = Reverse::new(&self.arena);
        let arrays = Arrays::new(&self.arrays, self.arena.next_node());
        let mut scratch = Scratch::new();
        for stop in stops_down(&self.arrays, &self.custom) {
            walk.down_to(cotangents, stop.at());
            match stop {
                Stop::Arrays(step) => arrays.reverse(step, cotangents, &mut scratch),
                Stop::Custom(custom) => custom.reverse(cotangents)?,
            }
        }
        walk.down_to(cotangents, to);
        Ok(())
    }

    /// Propagates tangents from the inputs up to the last node.
    pub(crate) fn forward<const N: usize>(&self, tangents: &mut [[S; N]]) -> Result<(), Error> {
        let mut walk = Forward::new(&self.arena);
        let arrays = Arrays::new(&self.arrays, self.arena.next_node());
        let mut scratch = Scratch::new();
        for stop in stops_up(&self.arrays, &self.custom) {
            walk.up_to(tangents, stop.at());
            match stop {
                Stop::Arrays(step) => arrays.forward(step, tangents, &mut scratch),
                Stop::Custom(custom) => custom.forward(tangents)?,
            }
        }
        walk.up_to(tangents, self.arena.next_node());
        Ok(())
    }

    /// Every node in order: its number, and its edges or the custom operation that it is an output of.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (u32, Source<'_, S>)> {
        with_customs(self.arena.nodes(), self.custom.iter(), |custom, node| custom.end() <= node)
    }

    /// The same from the last node.
    pub(crate) fn nodes_down(&self) -> impl Iterator<Item = (u32, Source<'_, S>)> {
        let customs = self.custom.iter().rev();
        with_customs(self.arena.nodes_down(), customs, |custom, node| custom.first_output > node)
    }

    /// The heap bytes held.
    pub(crate) fn bytes(&self) -> usize {
        let saved: usize = self.custom.iter().map(CustomNode::bytes).sum();
        let traced: usize = self.trace.iter().map(Entry::bytes).sum();
        self.arena.bytes()
            + self.custom.capacity() * size_of::<CustomNode<S>>()
            + saved
            + self.arrays.bytes()
            + self.trace.capacity() * size_of::<Entry<S>>()
            + traced
    }
}
