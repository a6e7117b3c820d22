//! A program of one operation, with which machine code leaves an operation on whole arrays to the
//! interpreter.

use std::sync::Arc;

use super::form::{Given, Kind};
use crate::op::Op;
use crate::program::{Block, Function, Inst, Program};
use crate::types::{Elem, Span, Type};
use crate::typing;

/// Whether a kernel does an operation: one that no other statement is for, and that takes values only.
fn is_kernel(op: &Op) -> bool {
    match op {
        Op::Linalg(_) | Op::Settled(_) | Op::Pack(_) | Op::Unpack(_) | Op::Resize => true,
        // What has no kernel is refused, whatever it is.
        _ => false,
    }
}

/// The types of what a kernel is given and gives.
///
/// # Errors
/// That it is no kernel for these operands.
pub fn kernel_types(
    op: &Op,
    single: bool,
    given: &[Given],
    kinds: &[Kind],
) -> Result<(Vec<Type>, Vec<Type>), String> {
    if !is_kernel(op) {
        return Err(format!("`{}` is no kernel", op.name()));
    }
    let mut types = Vec::with_capacity(given.len());
    for (given, kind) in given.iter().zip(kinds) {
        let elem = match kind {
            Kind::Real if single => Elem::F32,
            Kind::Real => Elem::F64,
            Kind::Int => Elem::Int,
            Kind::Bool => Elem::Bool,
        };
        let rank = match given {
            Given::Scalar(_) => 0,
            Given::Array(place) => place.shape.len(),
        };
        let rank = u8::try_from(rank).map_err(|_| "a kernel does not fit into memory".to_string())?;
        types.push(Type::array(elem, rank));
    }
    let results = typing::result_types(op, &types).map_err(|mismatch| format!("a kernel: {mismatch}"))?;
    Ok((types, results))
}

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
