//! Who may take over the memory of an array.
//!
//! A run updates an array in place if nothing else needs it later. Passes that move or share instructions ask
//! here, so that they do not make a copy necessary.

use crate::op::Kind;
use crate::program::{Function, Inst, Value};

/// The arrays whose memory an instruction may take over: what it consumes, reshapes, carries through a loop
/// or gives to a function, and what a branch so takes from outside. What a loop's body takes from outside it
/// has to copy anyway, because the next round needs it again.
pub(super) fn taken(function: &Function, inst: &Inst) -> Vec<Value> {
    let mut found = Vec::new();
    collect(function, inst, &mut found);
    found
}

fn collect(function: &Function, inst: &Inst, found: &mut Vec<Value>) {
    let is_array = |value: &Value| !function.ty(*value).is_scalar();
    let args = match inst.op.facts().kind {
        Kind::Updates | Kind::Reshapes => &inst.args[..1],
        // Blocks and functions are handed them as values of their own.
        Kind::Repeats(_) | Kind::Calls => &inst.args[..],
        Kind::Branches => {
            for block in &inst.blocks {
                block.insts.iter().for_each(|inst| collect(function, inst, found));
                found.extend(block.results.iter().copied().filter(is_array));
            }
            &[]
        }
        Kind::Literal | Kind::Elementwise | Kind::Fuses | Kind::Measures | Kind::Reads | Kind::Makes => &[],
    };
    found.extend(args.iter().copied().filter(is_array));
}
