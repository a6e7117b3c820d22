//! Limits on what loops keep for their way back, set or taken away.

use crate::op::{Op, Room};
use crate::program::{Block, Inst, Program};

/// The same program with other limits: `room` says for each loop what its way back may keep, `None` for a log
/// of every round. Values do not change, and gradients neither, bit by bit: only how much is kept and how
/// much is computed again.
///
/// ```
/// use palinode_ir::interp::{Datum, run};
/// use palinode_ir::{Room, pal, transform};
///
/// let source = "param x = 0.3\nvar y = x\nfor k in 0..1000 { y = 3.9 * y * (1 - y) }\nloss y";
/// let program = pal::compile(source).unwrap().program;
/// let few = transform::with_room(&program, &|_| Some(Room::Slots(10)));
/// let gradient = |program| run(&transform::grad(program, &[0]).unwrap(), &[Datum::real(0.3)]);
/// assert_eq!(gradient(&program), gradient(&few));
/// ```
pub fn with_room(program: &Program, room: &dyn Fn(&Inst) -> Option<Room>) -> Program {
    let mut program = program.clone();
    for function in &mut program.functions {
        set(&mut function.body, room);
    }
    program
}

fn set(block: &mut Block, choose: &dyn Fn(&Inst) -> Option<Room>) {
    for inst in &mut block.insts {
        let chosen = choose(inst);
        if let Op::For { room, .. } | Op::While { room } = &mut inst.op {
            *room = chosen;
        }
        inst.blocks.iter_mut().for_each(|block| set(block, choose));
    }
}
