//! Preaccumulation on the finished recording: nodes are eliminated into the nodes that use them.
//!
//! Input: a [`Graph`]. Output: a graph with fewer rows, and no more edges, whose sweeps give the same up to
//! rounding.
//!
//! A node with one use, or with one edge, is replaced by its edges, scaled by the partial of the use
//! (Griewank and Walther, *Evaluating Derivatives*, ch. 10: vertex elimination). With `p` edges and `u` uses
//! that makes `p u` edges of `p + u`, so with `p` or `u` 1 there is one edge and one node less each time.
//! Edges of a row to the same parent become one.
//!
//! Linear: a row is looked into once if it has one use; if it has one edge, once per use, because chains of
//! such rows are shortened before. Memory: 5 bytes per node of the recording besides the two graphs.
//!
//! Invariants: a product that is infinite, NaN or so small that it loses digits is not made: its node stays.
//! So fusing never makes infinity or zero where a sweep would not.

use super::graph::{Graph, Mark};
use crate::error::Error;
use crate::tape::filled;
use palinode_num::Scalar;

/// Products below are not made. Where `f32` becomes subnormal, for every number: what is smaller is rare.
const SMALLEST: f64 = f32::MIN_POSITIVE as f64;

/// No row.
const NONE: u32 = u32::MAX;

/// Another round is made if the last one found one row in so many.
pub(super) const WORTHWHILE: usize = 16;

/// See the module's documentation.
pub(super) fn fuse<S: Scalar>(mut graph: Graph<S>, marks: &[Mark]) -> Result<Graph<S>, Error> {
    let mut work = Work { row_of: filled(marks.len(), NONE)?, uses: filled(marks.len(), 0)? };
    let mut list = List { edges: Vec::new(), place: filled(marks.len(), 0)? };
    loop {
        let rows = graph.nodes.len();
        work.find_rows(&graph);
        shorten(&mut graph, &work, marks);
        work.count_uses(&graph);
        graph = eliminate(&graph, &mut work, &mut list, marks)?;
        if (rows - graph.nodes.len()) * WORTHWHILE <= rows {
            return Ok(graph);
        }
    }
}

/// What is looked up by node.
struct Work {
    /// The node's row; [`NONE`] if it has none.
    row_of: Vec<u32>,
    /// How often the node is used, up to 2, and whether it is [`NEEDED`].
    uses: Vec<u8>,
}

/// A row that is kept points to the node.
const NEEDED: u8 = 4;

impl Work {
    fn find_rows<S: Scalar>(&mut self, graph: &Graph<S>) {
        self.row_of.fill(NONE);
        for (row, &node) in (0..).zip(&graph.nodes) {
            self.row_of[node as usize] = row;
        }
    }

    fn count_uses<S: Scalar>(&mut self, graph: &Graph<S>) {
        self.uses.fill(0);
        for &parent in &graph.parents {
            let uses = &mut self.uses[parent as usize];
            *uses = 2.min(*uses + 1);
        }
    }

    /// The row of a node that may be eliminated.
    #[inline]
    fn row(&self, node: u32, marks: &[Mark]) -> Option<usize> {
        let row = self.row_of[node as usize];
        (row != NONE && !marks[node as usize].has(Mark::PINNED)).then_some(row as usize)
    }
}

/// The product, unless digits would be lost.
pub(super) fn product<S: Scalar>(a: S, b: S) -> Option<S> {
    let product = a.strong_mul(b);
    let size = product.peek()?.abs();
    (SMALLEST..f64::INFINITY).contains(&size).then_some(product)
}

/// The sum, unless it is infinite or NaN.
pub(super) fn sum<S: Scalar>(a: S, b: S) -> Option<S> {
    let sum = a + b;
    sum.peek()?.is_finite().then_some(sum)
}

/// Lets every row with one edge point past other such rows, from the first node up, so that none leads to
/// another.
fn shorten<S: Scalar>(graph: &mut Graph<S>, work: &Work, marks: &[Mark]) {
    for row in (0..graph.nodes.len()).rev() {
        let edges = graph.edges_of(row);
        if edges.len() != 1 {
            continue;
        }
        let Some(parent_row) = work.row(graph.parents[edges.start], marks) else { continue };
        let beyond = graph.edges_of(parent_row);
        if beyond.len() == 1
            && let Some(partial) = product(graph.partials[edges.start], graph.partials[beyond.start])
        {
            graph.parents[edges.start] = graph.parents[beyond.start];
            graph.partials[edges.start] = partial;
        }
    }
}

/// Edges that are still to be added to a row.
struct Part<S> {
    edges: core::ops::Range<usize>,
    /// The product of the partials that lead to them.
    factor: Option<S>,
    /// Whether a node with several uses lies between: what it leads to is then used by all of them.
    shared: bool,
}

/// A row that is being put together.
pub(super) struct List<S> {
    pub(super) edges: Vec<(u32, S)>,
    /// For each node its place in `edges`, if the edge there is to this node; anything otherwise, so it is
    /// never cleared.
    pub(super) place: Vec<u32>,
}

impl<S: Scalar> List<S> {
    pub(super) fn add(&mut self, parent: u32, partial: S) {
        let place = self.place[parent as usize] as usize;
        if let Some(edge) = self.edges.get_mut(place)
            && edge.0 == parent
            && let Some(sum) = sum(edge.1, partial)
        {
            edge.1 = sum;
            return;
        }
        self.place[parent as usize] = self.edges.len() as u32;
        self.edges.push((parent, partial));
    }
}

/// Eliminates what can be, from the last node down. A row is kept if it is pinned or a row that was kept
/// points to it.
fn eliminate<S: Scalar>(
    graph: &Graph<S>,
    work: &mut Work,
    list: &mut List<S>,
    marks: &[Mark],
) -> Result<Graph<S>, Error> {
    let mut ahead: Vec<Part<S>> = Vec::new();
    let mut kept = Graph::with_capacity(graph.nodes.len(), graph.parents.len())?;
    for (row, &node) in graph.nodes.iter().enumerate() {
        if work.uses[node as usize] & NEEDED == 0 && !marks[node as usize].has(Mark::PINNED) {
            continue;
        }
        list.edges.clear();
        ahead.push(Part { edges: graph.edges_of(row), factor: None, shared: false });
        while let Some(part) = ahead.last_mut() {
            let Some(edge) = part.edges.next() else {
                ahead.pop();
                continue;
            };
            let (factor, shared) = (part.factor, part.shared);
            let (parent, partial) = (graph.parents[edge], graph.partials[edge]);
            // The products of this row were tested before it was entered.
            let partial = factor.map_or(partial, |factor| factor.strong_mul(partial));
            if let Some(parent_row) = work.row(parent, marks) {
                let beyond = graph.edges_of(parent_row);
                let used_once = work.uses[parent as usize] & !NEEDED == 1;
                let fits = beyond.len() == 1 || used_once && !shared;
                if fits && graph.partials[beyond.clone()].iter().all(|&p| product(partial, p).is_some()) {
                    ahead.push(Part { edges: beyond, factor: Some(partial), shared: shared || !used_once });
                    continue;
                }
            }
            list.add(parent, partial);
        }
        for &(parent, partial) in &list.edges {
            work.uses[parent as usize] |= NEEDED;
            kept.push_edge(parent, partial);
        }
        kept.end_row(node);
    }
    Ok(kept)
}
