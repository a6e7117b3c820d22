//! Who may take over the memory of an array.
//!
//! A run updates an array in place if nothing else needs it later. Passes that move or share instructions ask here, so that they
//! do not make a copy necessary.

use crate::op::Op;
use crate::program::{Function, Inst, Value};

/// The arrays whose memory an instruction may take over: what it consumes, reshapes, carries through a loop or gives to a function, and what a
/// branch so takes from outside. What a loop's body takes from outside it has to copy anyway, because the next round needs it again.
pub(super) fn taken(function: &Function, inst: &Inst) -> Vec<Value> {
    let mut found = Vec::new();
    collect(function, inst, &mut found);
    found
}

fn collect(function: &Function, inst: &Inst, found: &mut Vec<Value>) {
    let args = if let Some(at) = inst.op.consumes() {
        &inst.args[at..=at]
    } else if matches!(inst.op, Op::Reshape) {
        &inst.args[..1]
    } else if passes_on(inst) {
        &inst.args[..]
    } else {
        &[]
    };
    found.extend(args.iter().copied().filter(|&arg| !function.ty(arg).is_scalar()));
    if matches!(inst.op, Op::If) {
        for block in &inst.blocks {
            block.insts.iter().for_each(|inst| collect(function, inst, found));
            found.extend(block.results.iter().copied().filter(|&result| !function.ty(result).is_scalar()));
        }
    }
}

/// Whether an instruction hands its operands to blocks or a function as values of their own.
fn passes_on(inst: &Inst) -> bool {
    matches!(inst.op, Op::For { .. } | Op::While { .. } | Op::Sweep { .. } | Op::Call(_))
}
