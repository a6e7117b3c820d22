//! Which nodes and cells something depends on, from the recording alone.
//!
//! Input: marks on nodes and cells. Output: marks on what they were computed from, one step further back.
//!
//! Invariant: it may mark too much (a partial that happens to be zero), never too little.

use super::layout::Home;
use super::steps::{ArrayTape, Kind, Step, Whole};
use crate::tape::arena::SINK;
use palinode_num::Scalar;

/// Goes backwards over one step: `marks` has an entry per node, then one per cell.
pub(crate) fn mark<S: Scalar>(tape: &ArrayTape<S>, nodes: usize, step: &Step, marks: &mut [bool]) {
    let layout = tape.layout(nodes);
    let cell = |step: &Step| layout.cell(step.storage, step.cell);
    match step.kind {
        Kind::Get => {
            let marked = marks[step.node as usize];
            marks[cell(step)] |= marked;
        }
        Kind::Set => {
            let marked = core::mem::replace(&mut marks[cell(step)], false);
            marks[step.node as usize] |= marked && step.node != SINK;
        }
        Kind::Add => {
            let marked = marks[cell(step)];
            marks[step.node as usize] |= marked;
        }
        Kind::Whole => {
            let whole = &tape.whole[step.storage as usize];
            let (output, replaces) = whole.output();
            let marked: Vec<bool> = layout.places(output).map(|place| marks[place]).collect();
            if replaces && output.home != Home::Nodes {
                layout.places(output).for_each(|place| marks[place] = false);
            }
            match whole {
                Whole::Linear(linear) => {
                    for argument in &linear.arguments {
                        for (place, &marked) in layout.places(&argument.region).zip(&marked) {
                            marks[place] |= marked;
                        }
                    }
                }
                Whole::Product(product) => {
                    for (region, needed) in product.needed(&marked) {
                        for (place, needed) in layout.places(region).zip(needed) {
                            marks[place] |= needed;
                        }
                    }
                }
            }
        }
    }
}
