//! Steps of arrays as rows of a tape's table.
//!
//! Input: the rows of the nodes, and the steps. Output: the same rows, with what they have to do with arrays,
//! and rows for the steps that are no nodes, in the order of recording.

use super::TableRow;
use crate::tape::arrays::{ArrayTape, Home, Kind, Places, Region, Step, Walk, Whole};
use palinode_num::Scalar;
use std::collections::HashMap;

/// `a2[0..4]`, `a2[3]`, or `a2[0 4 8 ..]` for the first of many; nothing for nodes, which are among the
/// inputs.
fn region_name(region: &Region) -> Option<String> {
    let Home::Storage(storage) = region.home else { return None };
    let cells = match &region.places {
        Places::View(view) => match view.walk() {
            Walk::Run(range) if range.len() == 1 => range.start.to_string(),
            Walk::Run(range) => format!("{}..{}", range.start, range.end),
            walk => first_few(walk),
        },
        Places::List(_) => first_few(region.places.walk()),
    };
    Some(format!("a{storage}[{cells}]"))
}

fn first_few(mut walk: Walk<'_>) -> String {
    let mut cells: Vec<String> = walk.by_ref().take(3).map(|cell| cell.to_string()).collect();
    if walk.next().is_some() {
        cells.push("..".to_string());
    }
    cells.join(" ")
}

/// The nodes of a region, each once.
fn nodes_of(region: &Region) -> Vec<u32> {
    if region.home != Home::Nodes {
        return Vec::new();
    }
    let mut nodes: Vec<u32> = region.places.walk().map(|node| node as u32).collect();
    nodes.dedup();
    nodes
}

fn whole_row<S: Scalar>(whole: &Whole<S>) -> (TableRow, Vec<u32>) {
    let (output, replaces) = whole.output();
    let from: Vec<String> = whole.arguments().filter_map(region_name).collect();
    let array = match region_name(output) {
        Some(to) => format!("{to} {} {}", if replaces { "<-" } else { "+<-" }, from.join(" ")),
        None => from.join(" "),
    };
    let inputs = whole.arguments().flat_map(nodes_of).collect();
    let array = Some(array.trim_end().to_string());
    let row = TableRow { index: 0, op: whole.name(), inputs, output: None, saved: vec![], array };
    (row, nodes_of(output))
}

/// Puts the steps between the rows of the nodes.
pub(super) fn with_steps<S: Scalar>(tape: &ArrayTape<S>, mut rows: Vec<TableRow>) -> Vec<TableRow> {
    let row_of: HashMap<u32, usize> = rows.iter().enumerate().map(|(k, row)| (row.index, k)).collect();
    let element = |step: &Step| Some(format!("a{}[{}]", step.storage, step.cell));
    let mut between: Vec<(u32, TableRow)> = Vec::new();
    for step in tape.steps() {
        let written = |op| TableRow {
            index: 0,
            op,
            inputs: if step.node == crate::tape::SINK { vec![] } else { vec![step.node] },
            output: None,
            saved: vec![],
            array: element(step),
        };
        match step.kind {
            Kind::Get => {
                if let Some(&row) = row_of.get(&step.node) {
                    rows[row].op = "get";
                    rows[row].array = element(step);
                }
            }
            Kind::Set => between.push((step.at, written("set"))),
            Kind::Add => between.push((step.at, written("add_at"))),
            Kind::Whole => {
                let (row, nodes) = whole_row(&tape.whole[step.storage as usize]);
                for node in &nodes {
                    if let Some(&k) = row_of.get(node) {
                        rows[k].op = row.op;
                        rows[k].array.clone_from(&row.array);
                    }
                }
                if nodes.is_empty() {
                    between.push((step.at, row));
                }
            }
        }
    }
    let mut merged = Vec::with_capacity(rows.len() + between.len());
    let mut between = between.into_iter().peekable();
    for row in rows {
        while let Some((_, step)) = between.next_if(|(at, _)| *at <= row.index) {
            merged.push(step);
        }
        merged.push(row);
    }
    merged.extend(between.map(|(_, row)| row));
    merged
}
