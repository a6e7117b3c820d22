//! Limits on what loops keep for their reverse sweeps, set or taken away.

use crate::op::{Keep, Op};
use crate::program::{Block, Inst, Program};

/// The same program with other limits: `keep` says for each loop what its reverse sweep may keep, `None` for
/// a log of every round. Values do not change, and gradients neither, bit by bit: only how much is kept and
/// how much is computed again.
///
/// ```
/// use palinode_ir::interp::{Datum, run};
/// use palinode_ir::{Keep, pal, transform};
///
/// let source = "param x = 0.3\nvar y = x\nfor k in 0..1000 { y = 3.9 * y * (1 - y) }\nloss y";
/// let program = pal::compile(source).unwrap().program;
/// let few = transform::keeping(&program, &|_| Some(Keep::Snapshots(10)));
/// let gradient = |program| run(&transform::grad(program, &[0]).unwrap(), &[Datum::real(0.3)]);
/// assert_eq!(gradient(&program), gradient(&few));
/// ```
pub fn keeping(program: &Program, keep: &dyn Fn(&Inst) -> Option<Keep>) -> Program {
    let mut program = program.clone();
    for function in &mut program.functions {
        set(&mut function.body, keep);
    }
    program
}

fn set(block: &mut Block, choose: &dyn Fn(&Inst) -> Option<Keep>) {
    for inst in &mut block.insts {
        let chosen = choose(inst);
        if let Op::For { keep, .. } | Op::While { keep } = &mut inst.op {
            *keep = chosen;
        }
        inst.blocks.iter_mut().for_each(|block| set(block, choose));
    }
}
