//! Why an update copies its array: what still needs the old one.

use crate::program::{Block, Function, Inst, Value};
use crate::types::Span;

/// What needs an array after something changed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    /// A later instruction uses it.
    Use {
        /// What that does.
        op: &'static str,
        /// Where.
        span: Span,
    },
    /// It comes from outside the loop, and the next round needs it as it was.
    NextRound {
        /// The loop.
        span: Span,
    },
    /// A block or a function gives it as a result.
    Result,
    /// Another value has the same memory: a variable that was copied, an array that was passed on.
    Shared,
}

/// What needs the array that the instruction with this result changes.
pub(super) fn reason(function: &Function, result: Value) -> Because {
    match in_block(&function.body, result) {
        Found::Reason(because) => because,
        Found::Here(_) | Found::No => Because::Shared,
    }
}

/// What a loop starts from, of an array that it carries: its first round changes that one.
fn carried_from(inst: &Inst, inner: &Block, array: Value) -> Option<Value> {
    let at = inner.params.iter().position(|&param| param == array).filter(|_| inst.op.repeats())?;
    // A turn is given everything but the number of rounds.
    let turns = inst.blocks.get(2).is_some_and(|turn| turn == inner);
    inst.args.get(at + usize::from(turns)).copied()
}

enum Found {
    No,
    /// The instruction is in the block; its array has no other use there.
    Here(Value),
    Reason(Because),
}

fn in_block(block: &Block, result: Value) -> Found {
    for (at, inst) in block.insts.iter().enumerate() {
        let array = if inst.results.first() == Some(&result) {
            inst.args.first().copied()
        } else {
            let mut found = None;
            for inner in &inst.blocks {
                match in_block(inner, result) {
                    Found::No => {}
                    Found::Here(array) => {
                        let is_outside = inner.captures().contains(&array);
                        if is_outside && inst.op.repeats() {
                            return Found::Reason(Because::NextRound { span: inst.span });
                        }
                        found = Some(carried_from(inst, inner, array).unwrap_or(array));
                    }
                    reason @ Found::Reason(_) => return reason,
                }
            }
            found
        };
        let Some(array) = array else { continue };
        for later in &block.insts[at + 1..] {
            let mut uses = false;
            later.for_each_use(&mut |value| uses |= value == array);
            if uses {
                return Found::Reason(Because::Use { op: later.op.name(), span: later.span });
            }
        }
        if block.results.contains(&array) {
            return Found::Reason(Because::Result);
        }
        return Found::Here(array);
    }
    Found::No
}
