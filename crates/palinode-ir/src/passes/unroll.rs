//! Short loops of known length, written out.
//!
//! A `for` over a literal becomes as many copies of its body if there are at most [`MAX_COUNT`] rounds and
//! the copies have at most [`MAX_SIZE`] instructions in all. So the size of a program does not grow with the
//! length of its long loops. Inner loops come first.

use super::copy::Copier;
use super::each;
use super::rewrite::{Rules, Writer, rewrite};
use crate::fast::FastMap;
use crate::op::{Literal, Op};
use crate::program::{Function, Inst, Program, Value};

/// How many rounds are written out at most.
const MAX_COUNT: i64 = 4;
/// How many instructions the copies may have in all.
const MAX_SIZE: usize = 48;

/// Writes out short loops.
pub fn unroll(program: &Program) -> Program {
    each(program, "unroll", unroll_function)
}

pub(super) fn unroll_function(function: &mut Function) {
    if !function.has_blocks() {
        return;
    }
    rewrite(function, &mut Unroll);
}

struct Unroll;

impl Rules for Unroll {
    fn apply(&mut self, w: &mut Writer<'_>, inst: &mut Inst) -> Option<Vec<Value>> {
        let Op::For { descending, keep: None } = inst.op else { return None };
        let Some(Literal::Int(count)) = w.literal(inst.args[0]) else { return None };
        let body = &inst.blocks[0];
        let short = (1..=MAX_COUNT).contains(&count) && count as usize * body.size() <= MAX_SIZE;
        if !short {
            return None;
        }
        let mut carried = inst.args[1..].to_vec();
        for round in 0..count {
            let k = if descending { count - 1 - round } else { round };
            let k = w.constant(Literal::Int(k));
            let values = [&[k], &carried[..]].concat();
            let map: FastMap<Value, Value> = body.params.iter().copied().zip(values).collect();
            let (function, out) = w.raw();
            let mut copier = Copier { into: function, from: None, map };
            copier.insts(&body.insts, out);
            carried = body.results.iter().map(|&result| copier.value(result)).collect();
            w.catch_up();
        }
        Some(carried)
    }
}
