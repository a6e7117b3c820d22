//! The tape as a table: index, operation, inputs, output, saved values.
//!
//! Input: a recording. Output: text. A traced tape ([`Tape::traced`](crate::Tape::traced)) has a row per
//! operation, with its value; any other tape has a row per node, because operations in between were merged
//! while recording.

mod arrays;

use super::arena::{FIRST, LEAF};
use super::recorder::{Recorder, Source};
use arrays::with_steps;
use core::fmt;
use palinode_num::Scalar;

/// One row of a [`Table`].
#[derive(Clone, Debug, PartialEq)]
pub struct TableRow {
    /// The node's number; inputs come first, from 1. 0 for a step on an array, which is no node.
    pub index: u32,
    /// The operation, `input`, or `node` for merged operations.
    pub op: &'static str,
    /// The numbers of the nodes it reads.
    pub inputs: Vec<u32>,
    /// The value, on a traced tape.
    pub output: Option<f64>,
    /// What is kept for the reverse sweep: a partial per input.
    pub saved: Vec<f64>,
    /// The arrays that it reads or writes, each with a number and the cells: `a2[0..4] <- a0[0..4] a1[0..4]`.
    pub array: Option<String>,
}

/// A recording as a table; `Display` prints it.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The rows, in the order of recording.
    pub rows: Vec<TableRow>,
}

impl Table {
    pub(crate) fn of<S: Scalar>(recorder: &Recorder<S>) -> Table {
        let shown = |value: S| value.peek().unwrap_or(f64::NAN);
        if !recorder.trace.is_empty() {
            let rows = recorder.trace.iter().map(|entry| TableRow {
                index: entry.node,
                op: entry.op,
                inputs: entry.inputs.iter().map(|&(node, _)| node).collect(),
                output: Some(shown(entry.value)),
                saved: entry.inputs.iter().filter_map(|&(_, partial)| partial.map(shown)).collect(),
                array: None,
            });
            return Table { rows: with_steps(&recorder.arrays, rows.collect()) };
        }
        let rows = recorder.nodes().map(|(index, source)| {
            let (op, inputs, saved) = match source {
                Source::Custom(custom) => (custom.name(), custom.inputs.clone(), vec![]),
                Source::Edges(&[LEAF], _) => ("input", vec![], vec![]),
                Source::Edges(words, partials) => {
                    let parents = words.iter().map(|word| word & !FIRST).collect();
                    ("node", parents, partials.iter().map(|&p| shown(p)).collect())
                }
            };
            TableRow { index, op, inputs, output: None, saved, array: None }
        });
        Table { rows: with_steps(&recorder.arrays, rows.collect()) }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |items: Vec<String>| items.join(" ");
        let cells = self.rows.iter().map(|row| {
            [
                if row.index == 0 { String::new() } else { row.index.to_string() },
                row.op.to_string(),
                list(row.inputs.iter().map(u32::to_string).collect()),
                row.output.map_or(String::new(), |value| format!("{value:.6}")),
                list(row.saved.iter().map(|value| format!("{value:.6}")).collect()),
                row.array.clone().unwrap_or_default(),
            ]
        });
        let has_arrays = self.rows.iter().any(|row| row.array.is_some());
        let header = ["#", "op", "inputs", "output", "saved", if has_arrays { "array" } else { "" }];
        let lines: Vec<[String; 6]> = core::iter::once(header.map(String::from)).chain(cells).collect();
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let [index, op, inputs, output, saved] = [0, 1, 2, 3, 4].map(width);
        for line in &lines {
            let row = format!(
                "{:>index$}  {:<op$}  {:<inputs$}  {:>output$}  {:<saved$}  {}",
                line[0], line[1], line[2], line[3], line[4], line[5]
            );
            writeln!(f, "{}", row.trim_end())?;
        }
        Ok(())
    }
}
