//! A recording on its way to its compressed form.
//!
//! Input: the tape of a finished recording. Output: what matters of it, fused if asked for, then numbered
//! again.
//!
//! Invariant: until [`Draft::finish`], nodes have the numbers of the recording.

use super::CompressedRecord;
use super::graph::{self, Graph, Mark};
use super::partials::{Exact, Partials, Store};
use super::report::{CompressionReport, CompressionStep};
use super::sweep::{LAST, Sweep};
use crate::error::Error;
use crate::tape::arena::SINK;
use crate::tape::arrays::ArrayTape;
use crate::tape::custom::CustomNode;
use crate::tape::filled;
use crate::tape::{Record, Size, Tape};
use palinode_num::Scalar;

/// A way to make a graph smaller.
type Fuse<S> = fn(Graph<S>, &[Mark]) -> Result<Graph<S>, Error>;

/// See the module's documentation.
pub(super) struct Draft<S> {
    pub(super) graph: Graph<S>,
    pub(super) marks: Vec<Mark>,
    /// The custom operations that matter.
    custom: Vec<CustomNode<S>>,
    arrays: ArrayTape<S>,
    /// The inputs that are asked for, in the order asked for.
    inputs: Vec<u32>,
    /// How many inputs the recording has.
    recorded_inputs: usize,
    outputs: Vec<u32>,
    values: Vec<S>,
    report: CompressionReport,
}

impl<S: Scalar> Draft<S> {
    /// What matters of a recording, whose custom operations and arrays are taken away.
    pub(super) fn of(tape: &mut Tape<S>, asked_for: Option<&[usize]>) -> Result<Self, Error> {
        let recorded = Record { tape: &mut *tape }.size();
        let all_inputs = tape.inputs.len();
        let inputs = asked_for_inputs(all_inputs, asked_for)?;
        let (marks, count) = graph::mark(&tape.recorder, all_inputs as u32, &inputs, &tape.outputs)?;
        let graph = graph::copy(&tape.recorder, all_inputs as u32, &marks, &count)?;
        let mut custom = core::mem::take(&mut tape.recorder.custom);
        custom.retain(|custom| {
            custom.first_output < custom.end() && marks[custom.first_output as usize].matters()
        });
        let arrays = tape.recorder.arrays.take();
        let report = CompressionReport {
            steps: vec![CompressionStep { name: "recorded", size: recorded }],
            narrowing: None,
        };
        let (outputs, values) = (tape.outputs.clone(), tape.values.clone());
        let mut draft = Draft {
            graph,
            marks,
            custom,
            arrays,
            inputs,
            recorded_inputs: all_inputs,
            outputs,
            values,
            report,
        };
        draft.report("what matters");
        Ok(draft)
    }

    /// Takes a step towards fewer rows and edges.
    pub(super) fn fused(mut self, name: &'static str, fuse: Fuse<S>) -> Result<Self, Error> {
        self.graph = fuse(self.graph, &self.marks)?;
        self.report(name);
        Ok(self)
    }

    fn report(&mut self, name: &'static str) {
        let (nodes, edges) = (self.nodes(), self.graph.parents.len());
        let size = size(nodes, edges, size_of::<S>(), &self.custom, &self.arrays);
        self.report.steps.push(CompressionStep { name, size });
    }

    fn nodes(&self) -> usize {
        let of_custom: usize = self.custom.iter().map(|c| (c.end() - c.first_output) as usize).sum();
        self.inputs.len() + of_custom + self.graph.nodes.len()
    }

    /// Numbers what is left again.
    pub(super) fn finish(mut self, partials: Partials) -> Result<CompressedRecord<S>, Error> {
        let nodes = self.nodes() as u32 + 1;
        let numbers = self.numbers()?;
        drop(self.marks);
        let number = |node: u32| numbers[node as usize];
        self.outputs.iter_mut().for_each(|node| *node = number(*node));
        self.custom.iter_mut().for_each(|custom| custom.renumber(number));
        if !self.arrays.is_empty() {
            let next = next_numbers(&numbers, self.recorded_inputs, self.inputs.len() as u32)?;
            self.arrays.renumber(number, |at| next[at as usize]);
        }
        let mut words = self.graph.parents;
        words.iter_mut().for_each(|parent| *parent = number(*parent));
        self.graph.ends.iter().for_each(|&end| words[end - 1] |= LAST);
        words.shrink_to_fit();
        drop(numbers);
        let mut exact: Vec<Exact<S>> = self.graph.partials.into_iter().map(Exact).collect();
        exact.shrink_to_fit();
        let partials_of = Store::Exact(exact);
        let mut compressed = CompressedRecord {
            inputs: self.inputs.len(),
            outputs: self.outputs,
            values: self.values,
            sweep: Sweep { nodes, words, partials: partials_of, custom: self.custom, arrays: self.arrays },
            cotangents: Vec::new(),
            gradient: Vec::new(),
            report: self.report,
        };
        if partials != Partials::Exact {
            compressed.narrow(partials)?;
            let sweep = &compressed.sweep;
            let (edges, width) = (sweep.words.len(), sweep.partials.width());
            let size = size(nodes as usize - 1, edges, width, &sweep.custom, &sweep.arrays);
            compressed.report.steps.push(CompressionStep { name: partials.name(), size });
        }
        Ok(compressed)
    }

    /// The new number of each node of the recording: the sink's for what is gone, then the inputs in the
    /// order asked for, then everything else in the order recorded.
    fn numbers(&self) -> Result<Vec<u32>, Error> {
        let mut numbers = filled(self.marks.len(), SINK)?;
        for (number, &input) in (1..).zip(&self.inputs) {
            numbers[input as usize] = number;
        }
        let mut next = self.inputs.len() as u32 + 1;
        let mut give = |node: u32| {
            numbers[node as usize] = next;
            next += 1;
        };
        let mut rows = self.graph.nodes.iter().copied().rev().peekable();
        for custom in &self.custom {
            while let Some(node) = rows.next_if(|&node| node < custom.first_output) {
                give(node);
            }
            (custom.first_output..custom.end()).for_each(&mut give);
        }
        rows.for_each(give);
        Ok(numbers)
    }
}

/// For each place between nodes of the recording the number that the next node has now, at one place more
/// than there are nodes.
fn next_numbers(numbers: &[u32], recorded_inputs: usize, inputs: u32) -> Result<Vec<u32>, Error> {
    let mut next = filled(numbers.len() + 1, 0)?;
    let mut number = inputs + 1;
    for node in recorded_inputs + 1..numbers.len() {
        next[node] = number;
        number = number.max(numbers[node] + 1);
    }
    next[numbers.len()] = number;
    Ok(next)
}

fn size<S: Scalar>(
    nodes: usize,
    edges: usize,
    width: usize,
    custom: &[CustomNode<S>],
    arrays: &ArrayTape<S>,
) -> Size {
    let saved = custom.iter().map(CustomNode::bytes).sum::<usize>() + arrays.needed_bytes();
    Size { nodes, edges, bytes: edges * (width + size_of::<u32>()) + nodes * size_of::<S>() + saved }
}

/// The nodes of the inputs that are asked for, in that order; all if none are named.
fn asked_for_inputs(all: usize, inputs: Option<&[usize]>) -> Result<Vec<u32>, Error> {
    let Some(inputs) = inputs else { return Ok((1..=all as u32).collect()) };
    let mut seen = vec![false; all];
    for &input in inputs {
        if input >= all {
            return Err(Error::NoSuchInput { input, inputs: all });
        }
        if core::mem::replace(&mut seen[input], true) {
            return Err(Error::InputTwice { input });
        }
    }
    Ok(inputs.iter().map(|&input| input as u32 + 1).collect())
}
