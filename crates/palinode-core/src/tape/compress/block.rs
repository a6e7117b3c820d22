//! Preaccumulation of blocks: stretches of a recording through which little flows.
//!
//! Input: a [`Graph`]. Output: a graph with fewer rows and edges, whose sweeps give the same up to rounding.
//!
//! A block is a run of rows. Of its nodes only those matter to the rest that something above reads: its
//! outlets. Where there are few, each gets a row with its derivatives by what lies below the block and by
//! lower outlets, found by a sweep over the block; the other rows go. That is done where it makes fewer
//! edges: a simulation with three numbers of state and three parameters needs 18 edges a block, however many
//! steps the block has. Blocks of blocks follow, until little is gained.
//!
//! Linear: a pass looks at each edge at most once per outlet, and passes get shorter. Memory: 9 bytes per
//! node of the recording besides two graphs.
//!
//! Invariants: as in `fuse.rs`, a block stays as it is if a product would lose digits or a sum would not be
//! finite. Pinned nodes are outlets.

use super::fuse::{List, WORTHWHILE, product, sum};
use super::graph::{Graph, Mark};
use crate::error::Error;
use crate::tape::filled;
use palinode_num::Scalar;

/// The rows of a block.
const ROWS: usize = 64;

/// With more outlets a block is left as it is: looking at it would cost more than it gives.
const MOST_OUTLETS: usize = 8;

/// See the module's documentation.
pub(super) fn fuse_blocks<S: Scalar>(mut graph: Graph<S>, marks: &[Mark]) -> Result<Graph<S>, Error> {
    let mut pass = Pass {
        row_of: filled(marks.len(), u32::MAX)?,
        needed: filled(marks.len(), false)?,
        list: List { edges: Vec::new(), place: filled(marks.len(), 0)? },
        sums: vec![None; ROWS],
        marks,
    };
    loop {
        let edges = graph.parents.len();
        graph = pass.over(&graph)?;
        if (edges - graph.parents.len()) * WORTHWHILE <= edges {
            return Ok(graph);
        }
    }
}

struct Pass<'a, S> {
    row_of: Vec<u32>,
    /// Whether a row that is kept points to the node.
    needed: Vec<bool>,
    list: List<S>,
    /// The derivative of the outlet at hand by each row of the block.
    sums: Vec<Option<S>>,
    marks: &'a [Mark],
}

impl<S: Scalar> Pass<'_, S> {
    fn over(&mut self, graph: &Graph<S>) -> Result<Graph<S>, Error> {
        self.row_of.fill(u32::MAX);
        for (row, &node) in (0..).zip(&graph.nodes) {
            self.row_of[node as usize] = row;
        }
        self.needed.fill(false);
        let rows = graph.nodes.len();
        let mut kept = Graph::with_capacity(rows, graph.parents.len())?;
        for first in (0..rows).step_by(ROWS) {
            let block = first..rows.min(first + ROWS);
            let before = (kept.nodes.len(), kept.parents.len());
            if self.fused(graph, block.clone(), &mut kept).is_none() {
                kept.truncate(before.0, before.1);
                self.copied(graph, block, &mut kept);
            }
            for &parent in &kept.parents[before.1..] {
                self.needed[parent as usize] = true;
            }
        }
        Ok(kept)
    }

    fn is_outlet(&self, node: u32) -> bool {
        self.needed[node as usize] || self.marks[node as usize].has(Mark::PINNED)
    }

    /// Keeps the rows of a block as they are, without those that nothing needs any more.
    fn copied(&mut self, graph: &Graph<S>, block: core::ops::Range<usize>, kept: &mut Graph<S>) {
        for row in block {
            if self.is_outlet(graph.nodes[row]) {
                for edge in graph.edges_of(row) {
                    self.needed[graph.parents[edge] as usize] = true;
                    kept.push_edge(graph.parents[edge], graph.partials[edge]);
                }
                kept.end_row(graph.nodes[row]);
            }
        }
    }

    /// Keeps a row per outlet; none if there are too many, or that makes no fewer edges, or digits would be
    /// lost.
    fn fused(&mut self, graph: &Graph<S>, block: core::ops::Range<usize>, kept: &mut Graph<S>) -> Option<()> {
        let outlets = block.clone().filter(|&row| self.is_outlet(graph.nodes[row])).count();
        if outlets > MOST_OUTLETS || outlets == block.len() {
            return None;
        }
        let most = kept.parents.len() + graph.edges_of(block.end - 1).end - graph.edges_of(block.start).start;
        for row in block.clone() {
            if !self.is_outlet(graph.nodes[row]) {
                continue;
            }
            self.derivatives(graph, row, block.clone())?;
            if self.list.edges.is_empty() || kept.parents.len() + self.list.edges.len() >= most {
                return None;
            }
            for &(parent, partial) in &self.list.edges {
                kept.push_edge(parent, partial);
            }
            kept.end_row(graph.nodes[row]);
        }
        Some(())
    }

    /// The derivatives of one outlet by what lies below the block and by lower outlets, into `list`.
    fn derivatives(&mut self, graph: &Graph<S>, outlet: usize, block: core::ops::Range<usize>) -> Option<()> {
        self.list.edges.clear();
        self.sums.fill(None);
        for row in outlet..block.end {
            let factor = self.sums[row - block.start];
            if row != outlet {
                match factor {
                    Some(factor) if self.is_outlet(graph.nodes[row]) => {
                        self.list.add(graph.nodes[row], factor);
                        continue;
                    }
                    Some(factor) if !factor.vanishes() => {}
                    Some(_) | None => continue,
                }
            }
            for edge in graph.edges_of(row) {
                let (parent, partial) = (graph.parents[edge], graph.partials[edge]);
                let partial = match factor {
                    Some(factor) => product(factor, partial)?,
                    None => partial,
                };
                let parent_row = self.row_of[parent as usize] as usize;
                if block.contains(&parent_row) {
                    let place = &mut self.sums[parent_row - block.start];
                    *place = Some(match *place {
                        Some(so_far) => sum(so_far, partial)?,
                        None => partial,
                    });
                } else {
                    self.list.add(parent, partial);
                }
            }
        }
        Some(())
    }
}
