//! A program of one operation, with which machine code leaves an operation on whole arrays to the
//! interpreter.

use std::sync::Arc;

use crate::op::Op;
use crate::program::{Block, Function, Inst, Program};
use crate::types::{Span, Type};
use crate::typing;

/// The program that applies an operation to its arguments.
///
/// # Panics
/// If the operation does not take arguments of these types.
pub fn one_operation(op: &Op, args: &[Type]) -> Program {
    let mut function = Function::new("kernel");
    let params: Vec<_> = args.iter().map(|&ty| function.fresh(ty, None)).collect();
    let types = typing::result_types(op, args).expect("an operation on arguments of its types");
    let results: Vec<_> = types.into_iter().map(|ty| function.fresh(ty, None)).collect();
    let inst = Inst::new(op.clone(), params.clone(), results.clone(), Span::NONE);
    let outputs = results.iter().map(|_| Arc::from("result")).collect();
    function.body = Block { params, insts: vec![inst], results };
    Program { functions: vec![function], entry: crate::op::FuncId(0), outputs }
}
