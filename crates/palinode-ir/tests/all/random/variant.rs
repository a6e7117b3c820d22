//! Rows that the rule table has and the language spells otherwise are put into a program, where they mean the
//! same.

use palinode_core::rules::Row;
use palinode_ir::{Block, Elem, Function, Inst, Literal, Op, Program, Span, Type, Value};

/// The program with `trunc` before a conversion to integers, and `select_nonzero` for a choice between two
/// numbers.
pub(crate) fn with_hidden_rows(mut program: Program) -> Program {
    for function in &mut program.functions {
        let mut body = core::mem::take(&mut function.body);
        rewrite(function, &mut body);
        function.body = body;
    }
    program
}

fn rewrite(function: &mut Function, block: &mut Block) {
    for mut inst in core::mem::take(&mut block.insts) {
        inst.blocks.iter_mut().for_each(|inner| rewrite(function, inner));
        let ty = |value: Value| function.ty(value);
        if inst.op == Op::Convert(Elem::Int) && ty(inst.args[0]) == Type::REAL {
            let whole = function.fresh(Type::REAL, None);
            block.insts.push(made(Op::rule(Row::Trunc), &[inst.args[0]], whole));
            inst.args[0] = whole;
        } else if inst.op == Op::Select && inst.args.iter().skip(1).all(|&arg| ty(arg) == Type::REAL) {
            let [one, zero, nonzero] = [(); 3].map(|()| function.fresh(Type::REAL, None));
            block.insts.push(made(Op::Const(Literal::Real(1.0)), &[], one));
            block.insts.push(made(Op::Const(Literal::Real(0.0)), &[], zero));
            block.insts.push(made(Op::Select, &[inst.args[0], one, zero], nonzero));
            inst.op = Op::rule(Row::Select);
            inst.args[0] = nonzero;
        }
        block.insts.push(inst);
    }
}

fn made(op: Op, args: &[Value], result: Value) -> Inst {
    Inst::new(op, args.to_vec(), vec![result], Span::NONE)
}
