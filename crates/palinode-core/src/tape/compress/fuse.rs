//! Preaccumulation on the finished recording: nodes are eliminated into the nodes that use them.
//!
//! Input: a [`Graph`]. Output: a graph with fewer rows, and no more edges, whose sweeps give the same up to rounding.
//!
//! A node with one use, or with one edge, is replaced by its edges, scaled by the partial of the use (Griewank and Walther,
//! *Evaluating Derivatives*, ch. 10: vertex elimination). With `p` edges and `u` uses that makes `p u` edges of `p + u`, so
//! with `p` or `u` 1 there is one edge and one node less each time. Edges of a row to the same parent become one.
//!
//! Linear: a row is looked into once if it has one use; if it has one edge, once per use, because chains of such rows are
//! shortened before. Memory: 5 bytes per node of the recording besides the two graphs.
//!
//! Invariants: a product that is infinite, NaN or so small that it loses digits is not made: its node stays. So fusing never
//! makes infinity or zero where a sweep would not.

use super::graph::{Graph, Mark};
use crate::error::Error;
use palinode_num::Scalar;

/// Products below are not made. Where `f32` becomes subnormal, for every number: what is smaller is rare.
const SMALLEST: f64 = f32::MIN_POSITIVE as f64;

/// No row.
const NONE: u32 = u32::MAX;

/// Eliminates rows until a round finds none, at most so many times.
const ROUNDS: usize = 4;

/// See the module's documentation.
pub(super) fn fuse<S: Scalar>(mut graph: Graph<S>, marks: &[Mark]) -> Result<Graph<S>, Error> {
    for _ in 0..ROUNDS {
        let rows = graph.nodes.len();
        shorten(&mut graph, marks)?;
        graph = eliminate(&graph, marks)?;
        if graph.nodes.len() == rows {
            break;
        }
    }
    Ok(graph)
}

/// The product, unless digits would be lost.
fn product<S: Scalar>(a: S, b: S) -> Option<S> {
    let product = a.strong_mul(b);
    let size = product.peek()?.abs();
    (SMALLEST..f64::INFINITY).contains(&size).then_some(product)
}

/// The sum, unless it is infinite or NaN.
fn sum<S: Scalar>(a: S, b: S) -> Option<S> {
    let sum = a + b;
    sum.peek()?.is_finite().then_some(sum)
}

/// A list with an entry for each node of a recording.
pub(super) fn per_node<T: Copy>(count: usize, value: T) -> Result<Vec<T>, Error> {
    let mut list = Vec::new();
    list.try_reserve_exact(count).map_err(|_| Error::OutOfMemory { bytes: count * size_of::<T>() })?;
    list.resize(count, value);
    Ok(list)
}

fn rows_by_node<S: Scalar>(graph: &Graph<S>, nodes: usize) -> Result<Vec<u32>, Error> {
    let mut row_of = per_node(nodes, NONE)?;
    for (row, &node) in (0..).zip(&graph.nodes) {
        row_of[node as usize] = row;
    }
    Ok(row_of)
}

/// Lets every row with one edge point past other such rows, from the first node up, so that none leads to another.
fn shorten<S: Scalar>(graph: &mut Graph<S>, marks: &[Mark]) -> Result<(), Error> {
    let row_of = rows_by_node(graph, marks.len())?;
    for row in (0..graph.nodes.len()).rev() {
        let edges = graph.edges_of(row);
        if edges.len() != 1 {
            continue;
        }
        let parent = graph.parents[edges.start];
        let parent_row = row_of[parent as usize];
        if parent_row == NONE || marks[parent as usize].has(Mark::PINNED) {
            continue;
        }
        let beyond = graph.edges_of(parent_row as usize);
        if beyond.len() == 1
            && let Some(partial) = product(graph.partials[edges.start], graph.partials[beyond.start])
        {
            graph.parents[edges.start] = graph.parents[beyond.start];
            graph.partials[edges.start] = partial;
        }
    }
    Ok(())
}

/// A row that is being put together.
struct List<S> {
    edges: Vec<(u32, S)>,
    /// For each node its place in `edges`, if the edge there is to this node; anything otherwise, so it is never cleared.
    place: Vec<u32>,
}

impl<S: Scalar> List<S> {
    fn add(&mut self, parent: u32, partial: S) {
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

/// Eliminates what can be, from the last node down. A row is kept if it is pinned or a row that was kept points to it.
fn eliminate<S: Scalar>(graph: &Graph<S>, marks: &[Mark]) -> Result<Graph<S>, Error> {
    const NEEDED: u8 = 4;
    let row_of = rows_by_node(graph, marks.len())?;
    // How often a node is used, up to 2, and whether it is needed.
    let mut uses = per_node(marks.len(), 0_u8)?;
    for &parent in &graph.parents {
        let uses = &mut uses[parent as usize];
        *uses = 2.min(*uses + 1);
    }
    let mut list = List { edges: Vec::new(), place: per_node(marks.len(), 0_u32)? };
    let mut ahead: Vec<(core::ops::Range<usize>, Option<S>)> = Vec::new();
    let mut kept = Graph::with_room(graph.nodes.len(), graph.parents.len())?;
    for (row, &node) in graph.nodes.iter().enumerate() {
        if uses[node as usize] & NEEDED == 0 && !marks[node as usize].has(Mark::PINNED) {
            continue;
        }
        list.edges.clear();
        ahead.push((graph.edges_of(row), None));
        while let Some((mut edges, factor)) = ahead.pop() {
            let Some(edge) = edges.next() else { continue };
            ahead.push((edges, factor));
            let (parent, partial) = (graph.parents[edge], graph.partials[edge]);
            // The products of this row were tested before it was entered.
            let partial = factor.map_or(partial, |factor| factor.strong_mul(partial));
            let parent_row = row_of[parent as usize];
            if parent_row != NONE && !marks[parent as usize].has(Mark::PINNED) {
                let beyond = graph.edges_of(parent_row as usize);
                let fits = beyond.len() == 1 || uses[parent as usize] & !NEEDED == 1;
                if fits && graph.partials[beyond.clone()].iter().all(|&p| product(partial, p).is_some()) {
                    ahead.push((beyond, Some(partial)));
                    continue;
                }
            }
            list.add(parent, partial);
        }
        for &(parent, partial) in &list.edges {
            uses[parent as usize] |= NEEDED;
            kept.push_edge(parent, partial);
        }
        kept.end_row(node);
    }
    Ok(kept)
}
