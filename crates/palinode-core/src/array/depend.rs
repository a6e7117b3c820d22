//! Which nodes and slots something depends on, from the recording alone.
//!
//! Input: marks on nodes and slots. Output: marks on what they were computed from, one step further back.
//!
//! Invariant: it may mark too much (a partial that happens to be zero), never too little.

use super::steps::{ArrayTape, Home, Kind, Region, Step, Whole};
use crate::tape::SINK;
use palinode_num::Scalar;

/// Goes backwards over one step: `marks` has an entry per node, then one per slot.
pub(crate) fn mark<S: Scalar>(tape: &ArrayTape<S>, nodes: usize, step: &Step, marks: &mut [bool]) {
    let place = |region: &Region| match region.home {
        Home::Nodes => 0,
        Home::Storage(storage) => nodes + tape.start_of(storage),
    };
    let slot = |step: &Step| nodes + tape.start_of(step.storage) + step.slot as usize;
    match step.kind {
        Kind::Get => {
            let marked = marks[step.node as usize];
            marks[slot(step)] |= marked;
        }
        Kind::Set => {
            let marked = core::mem::replace(&mut marks[slot(step)], false);
            marks[step.node as usize] |= marked && step.node != SINK;
        }
        Kind::Add => {
            let marked = marks[slot(step)];
            marks[step.node as usize] |= marked;
        }
        Kind::Whole => {
            let whole = &tape.whole[step.storage as usize];
            let (output, replaces) = match whole {
                Whole::Linear(linear) => (&linear.output, linear.replaces),
                Whole::Product(product) => (&product.output, product.replaces),
            };
            let base = place(output);
            let marked: Vec<bool> = output.places.walk().map(|place| marks[base + place]).collect();
            if replaces && output.home != Home::Nodes {
                output.places.walk().for_each(|place| marks[base + place] = false);
            }
            match whole {
                Whole::Linear(linear) => {
                    for argument in &linear.arguments {
                        let base = place(&argument.region);
                        for (place, &marked) in argument.region.places.walk().zip(&marked) {
                            marks[base + place] |= marked;
                        }
                    }
                }
                Whole::Product(product) => {
                    for (region, needed) in product.needed(&marked) {
                        let base = place(region);
                        for (place, needed) in region.places.walk().zip(needed) {
                            marks[base + place] |= needed;
                        }
                    }
                }
            }
        }
    }
}
