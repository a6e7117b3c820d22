//! The part of a recording that matters, as rows of edges that can be looked up by node.
//!
//! Input: a finished recording, its outputs and the inputs that are asked for. Output: a [`Graph`].
//!
//! A node matters if an output can be reached from it and it depends on an input that is asked for, both
//! across partials that are not zero. The cotangent of any other node is zero, or goes to nothing that is
//! asked for; and adding zero changes no bit of a cotangent, because none is ever minus zero. So a sweep over
//! the graph gives the bits of a sweep over the recording.
//!
//! What arrays refer to always matters: that none of it is left out is safe, if not the least.
//!
//! Invariants: rows are in descending order of nodes, and the edges of a row go from the last recorded to the
//! first: the order in which a reverse sweep meets them. Every row has an edge: that of a number read from an
//! array goes to the sink. Inputs and outputs of custom operations have no row. Node numbers are those of the
//! recording.

use crate::error::Error;
use crate::tape::arena::{FIRST, LEAF, SINK};
use crate::tape::arrays::Reference;
use crate::tape::filled;
use crate::tape::recorder::{Recorder, Source};
use palinode_num::Scalar;

/// What is known of a node.
#[derive(Clone, Copy, Default)]
pub(super) struct Mark(u8);

impl Mark {
    /// It depends on an input that is asked for.
    pub(super) const ACTIVE: u8 = 1;
    /// An output can be reached from it.
    pub(super) const LIVE: u8 = 2;
    /// Something besides edges refers to it: it is an input, an output, or belongs to a custom operation or
    /// an array.
    pub(super) const PINNED: u8 = 4;

    pub(super) fn has(self, what: u8) -> bool {
        self.0 & what == what
    }
    pub(super) fn set(&mut self, what: u8) {
        self.0 |= what;
    }
    /// Whether it matters.
    pub(super) fn matters(self) -> bool {
        self.has(Mark::ACTIVE | Mark::LIVE)
    }
}

/// See the module's documentation.
pub(super) struct Graph<S> {
    /// The node of each row.
    pub(super) nodes: Vec<u32>,
    /// Where the edges of each row end; they begin where those of the row before end.
    pub(super) ends: Vec<usize>,
    pub(super) parents: Vec<u32>,
    pub(super) partials: Vec<S>,
}

impl<S: Scalar> Graph<S> {
    /// An empty graph with the capacity for so many rows and edges.
    pub(super) fn with_capacity(rows: usize, edges: usize) -> Result<Self, Error> {
        let bytes = Self::bytes_of(rows, edges);
        let no_memory = |_| Error::OutOfMemory { bytes };
        let mut graph =
            Graph { nodes: Vec::new(), ends: Vec::new(), parents: Vec::new(), partials: Vec::new() };
        graph.nodes.try_reserve_exact(rows).map_err(no_memory)?;
        graph.ends.try_reserve_exact(rows).map_err(no_memory)?;
        graph.parents.try_reserve_exact(edges).map_err(no_memory)?;
        graph.partials.try_reserve_exact(edges).map_err(no_memory)?;
        Ok(graph)
    }

    /// The heap bytes of so many rows and edges.
    pub(super) fn bytes_of(rows: usize, edges: usize) -> usize {
        rows * (size_of::<u32>() + size_of::<usize>()) + edges * (size_of::<u32>() + size_of::<S>())
    }

    pub(super) fn edges_of(&self, row: usize) -> core::ops::Range<usize> {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        start..self.ends[row]
    }

    pub(super) fn push_edge(&mut self, parent: u32, partial: S) {
        self.parents.push(parent);
        self.partials.push(partial);
    }

    /// Forgets all but so many rows and edges.
    pub(super) fn truncate(&mut self, rows: usize, edges: usize) {
        self.nodes.truncate(rows);
        self.ends.truncate(rows);
        self.parents.truncate(edges);
        self.partials.truncate(edges);
    }

    /// Ends the row of this node.
    pub(super) fn end_row(&mut self, node: u32) {
        self.nodes.push(node);
        self.ends.push(self.parents.len());
    }
}

/// How many rows and edges matter.
pub(super) struct Count {
    pub(super) rows: usize,
    pub(super) edges: usize,
}

/// Finds out which nodes matter.
pub(super) fn mark<S: Scalar>(
    recorder: &Recorder<S>,
    inputs: u32,
    asked_for: &[u32],
    outputs: &[u32],
) -> Result<(Vec<Mark>, Count), Error> {
    let nodes = recorder.arena.next_node() as usize;
    let mut marks = filled(nodes, Mark::default())?;
    for &input in asked_for {
        marks[input as usize].set(Mark::ACTIVE | Mark::LIVE | Mark::PINNED);
    }
    recorder.arrays.for_each_node(|node, how| match how {
        Reference::Writes => marks[node as usize].set(Mark::ACTIVE | Mark::LIVE | Mark::PINNED),
        Reference::Reads => marks[node as usize].set(Mark::LIVE | Mark::PINNED),
    });
    mark_active(recorder, inputs, &mut marks);
    for &output in outputs {
        marks[output as usize].set(Mark::LIVE | Mark::PINNED);
    }
    let count = mark_live(recorder, inputs, &mut marks);
    Ok((marks, count))
}

/// Upwards: what depends on the inputs that are marked so.
fn mark_active<S: Scalar>(recorder: &Recorder<S>, inputs: u32, marks: &mut [Mark]) {
    for (node, source) in recorder.nodes().skip(inputs as usize) {
        let is_active = |node: u32| marks[node as usize].has(Mark::ACTIVE);
        let active = match source {
            Source::Custom(custom) if custom.first_output < node => is_active(custom.first_output),
            Source::Custom(custom) => custom.inputs.iter().any(|&input| is_active(input)),
            Source::Edges(words, partials) => {
                words.iter().zip(partials).any(|(word, partial)| is_active_edge(marks, *word, *partial))
            }
        };
        if active {
            marks[node as usize].set(Mark::ACTIVE);
        }
    }
}

/// Downwards: what the outputs need.
fn mark_live<S: Scalar>(recorder: &Recorder<S>, inputs: u32, marks: &mut [Mark]) -> Count {
    let mut count = Count { rows: 0, edges: 0 };
    for (node, source) in recorder.nodes_down().take_while(|&(node, _)| node > inputs) {
        let (words, partials) = match source {
            Source::Edges(words, partials) => (words, partials),
            Source::Custom(custom) => {
                let outputs = custom.first_output as usize..custom.end() as usize;
                // At the last output everything that reads one has been passed. Outputs stay together.
                if node + 1 == custom.end() && marks[outputs.clone()].iter().any(|mark| mark.matters()) {
                    marks[outputs].iter_mut().for_each(|mark| mark.set(Mark::LIVE | Mark::PINNED));
                    for &input in &custom.inputs {
                        marks[input as usize].set(Mark::LIVE | Mark::PINNED);
                    }
                }
                continue;
            }
        };
        let mark = marks[node as usize];
        let is_leaf = words == [LEAF];
        // Whatever computes values outside the arena must be known here, or its derivatives would be lost
        // without a word. The sum of an empty array is computed from nothing.
        let from_nowhere = is_leaf && mark.has(Mark::LIVE) && !mark.matters();
        assert!(!from_nowhere || !recorder.arrays.is_empty(), "palinode: node {node} comes from nowhere");
        if !mark.matters() {
            continue;
        }
        count.rows += 1;
        count.edges += usize::from(is_leaf);
        for (&word, &partial) in words.iter().zip(partials) {
            if is_active_edge(marks, word, partial) {
                count.edges += 1;
                marks[(word & !FIRST) as usize].set(Mark::LIVE);
            }
        }
    }
    count
}

fn is_active_edge<S: Scalar>(marks: &[Mark], word: u32, partial: S) -> bool {
    marks[(word & !FIRST) as usize].has(Mark::ACTIVE) && !partial.vanishes()
}

/// Copies what matters.
pub(super) fn copy<S: Scalar>(
    recorder: &Recorder<S>,
    inputs: u32,
    marks: &[Mark],
    count: &Count,
) -> Result<Graph<S>, Error> {
    let mut graph = Graph::with_capacity(count.rows, count.edges)?;
    for (node, source) in recorder.nodes_down().take_while(|&(node, _)| node > inputs) {
        let Source::Edges(words, partials) = source else { continue };
        if !marks[node as usize].matters() {
            continue;
        }
        for (&word, &partial) in words.iter().zip(partials).rev() {
            if is_active_edge(marks, word, partial) {
                graph.push_edge(word & !FIRST, partial);
            }
        }
        if *words == [LEAF] {
            graph.push_edge(SINK, S::zero());
        }
        graph.end_row(node);
    }
    Ok(graph)
}
