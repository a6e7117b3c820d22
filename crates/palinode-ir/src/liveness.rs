//! Where each array is used for the last time.
//!
//! Input: a function. Output: for every operand and block result whether the array is needed afterwards, and
//! where arrays that nothing uses any more are to be released. Scalars are not tracked: copying them costs
//! nothing.
//!
//! Invariants, on which O(1) updates rest:
//! - on every path an array is either taken at its last use or released, exactly once;
//! - what a loop captures is needed in its next round: it is released after the loop, never inside;
//! - what one branch of an `if` uses last is released at the start of the other.
//!
//! The module is public but hidden, because `tests/all/planted_liveness.rs` spoils its marks.

use std::collections::HashSet;

use crate::op::{Kind, Op};
use crate::program::{Block, Function, Inst, Value};

/// What the lowering must know of a block.
#[derive(Debug, Default)]
pub struct BlockMarks {
    /// Arrays that are not needed on this path.
    pub release_at_start: Vec<Value>,
    /// For each instruction.
    pub insts: Vec<InstMarks>,
    /// For each block result: not needed afterwards under its own name.
    pub results_die: Vec<bool>,
}

/// What the lowering must know of an instruction.
#[derive(Debug, Default)]
pub struct InstMarks {
    /// For each operand: not needed afterwards.
    pub dies: Vec<bool>,
    /// Arrays to release after it: unused results, and captures of a loop that nothing else needs.
    pub release_after: Vec<Value>,
    /// For each block.
    pub blocks: Vec<BlockMarks>,
}

type Live = HashSet<Value>;

/// Marks a whole function.
pub fn mark(function: &Function) -> BlockMarks {
    let mut live = Live::new();
    let pass = Pass { function };
    let mut marks = pass.block(&function.body, &mut live);
    pass.release_unused_params(&function.body.params, &live, &mut marks);
    marks
}

/// Marks as if every array were needed to the end: nothing is taken or released, so every update copies. The
/// reference for what [`mark`] allows.
pub(crate) fn mark_nothing(function: &Function) -> BlockMarks {
    needed_to_the_end(&function.body)
}

fn needed_to_the_end(block: &Block) -> BlockMarks {
    let inst = |inst: &Inst| InstMarks {
        dies: vec![false; inst.args.len()],
        release_after: Vec::new(),
        blocks: inst.blocks.iter().map(needed_to_the_end).collect(),
    };
    BlockMarks {
        release_at_start: Vec::new(),
        insts: block.insts.iter().map(inst).collect(),
        results_die: vec![false; block.results.len()],
    }
}

struct Pass<'a> {
    function: &'a Function,
}

impl Pass<'_> {
    fn is_array(&self, value: Value) -> bool {
        !self.function.ty(value).is_scalar()
    }

    fn arrays<'v>(&'v self, values: &'v [Value]) -> impl Iterator<Item = Value> + 'v {
        values.iter().copied().filter(|&value| self.is_array(value))
    }

    fn release_unused_params(&self, params: &[Value], live: &Live, marks: &mut BlockMarks) {
        marks.release_at_start.extend(self.arrays(params).filter(|param| !live.contains(param)));
    }

    /// `live` is what is needed after the block, and becomes what is needed before it.
    fn block(&self, block: &Block, live: &mut Live) -> BlockMarks {
        let results_die = self.dying(&block.results, live);
        live.extend(self.arrays(&block.results));
        let mut insts: Vec<InstMarks> = block.insts.iter().rev().map(|inst| self.inst(inst, live)).collect();
        insts.reverse();
        BlockMarks { release_at_start: Vec::new(), insts, results_die }
    }

    fn dying(&self, values: &[Value], live: &Live) -> Vec<bool> {
        values.iter().map(|value| !live.contains(value)).collect()
    }

    fn inst(&self, inst: &Inst, live: &mut Live) -> InstMarks {
        let mut release_after: Vec<Value> =
            self.arrays(&inst.results).filter(|result| !live.contains(result)).collect();
        for result in &inst.results {
            live.remove(result);
        }
        let (dies, blocks) = match inst.op.facts().kind {
            Kind::Repeats(_) => self.repeated(inst, live, &mut release_after),
            Kind::Branches => (vec![false; inst.args.len()], self.branches(inst, live)),
            Kind::Literal
            | Kind::Elementwise
            | Kind::Measures
            | Kind::Reads
            | Kind::Makes
            | Kind::Reshapes
            | Kind::Updates
            | Kind::Fuses
            | Kind::Calls => (self.dying(&inst.args, live), Vec::new()),
        };
        live.extend(self.arrays(&inst.args));
        InstMarks { dies, release_after, blocks }
    }

    fn repeated(
        &self,
        inst: &Inst,
        live: &mut Live,
        release_after: &mut Vec<Value>,
    ) -> (Vec<bool>, Vec<BlockMarks>) {
        let captured: HashSet<Value> =
            inst.blocks.iter().flat_map(Block::captures).filter(|&value| self.is_array(value)).collect();
        let mut unneeded: Vec<Value> =
            captured.iter().copied().filter(|value| !live.contains(value)).collect();
        unneeded.sort_unstable();
        release_after.extend(unneeded);
        live.extend(&captured);
        let dies = self.dying(&inst.args, live);
        if matches!(inst.op, Op::Sweep { .. }) {
            return (dies, inst.blocks.iter().map(|block| self.round(block, live)).collect());
        }
        let (body, heads) = inst.blocks.split_last().expect("a loop has a body");
        let mut blocks: Vec<BlockMarks> = Vec::new();
        for head in heads {
            // The body works on what the condition has looked at.
            let mut after = live.clone();
            after.extend(self.arrays(&head.params));
            blocks.push(self.block(head, &mut after));
        }
        blocks.push(self.round(body, live));
        (dies, blocks)
    }

    /// A block that is given all its parameters anew whenever it runs.
    fn round(&self, block: &Block, live: &Live) -> BlockMarks {
        let mut round = live.clone();
        let mut marks = self.block(block, &mut round);
        self.release_unused_params(&block.params, &round, &mut marks);
        marks
    }

    fn branches(&self, inst: &Inst, live: &mut Live) -> Vec<BlockMarks> {
        let mut before: Vec<Live> = Vec::new();
        let mut blocks: Vec<BlockMarks> = Vec::new();
        for block in &inst.blocks {
            let mut needed = live.clone();
            blocks.push(self.block(block, &mut needed));
            before.push(needed);
        }
        for needed in &before {
            live.extend(needed);
        }
        for (needed, marks) in before.iter().zip(&mut blocks) {
            let mut unneeded: Vec<Value> = live.difference(needed).copied().collect();
            unneeded.sort_unstable();
            marks.release_at_start = unneeded;
        }
        blocks
    }
}
