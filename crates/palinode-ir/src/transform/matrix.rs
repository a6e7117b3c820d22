//! Whole matrices of partials: a loop over directions around tangent code.

use crate::builder::FunctionBuilder;
use crate::checked::verified;
use crate::op::{Axis, FuncId, IntOp, Op};
use crate::passes;
use crate::program::{Function, Program, Value};
use crate::transform::{TransformError, check_wrt, grad, jvp};
use crate::types::Type;

/// A program that gives all partials of all real results: for each real result (outer) and each argument in
/// `wrt` (inner) an array whose first axes are the result's and whose last axes are the argument's. Forward
/// mode, a direction at a time.
///
/// # Errors
/// If an entry of `wrt` is not a real argument.
pub fn jacobian(program: &Program, wrt: &[usize]) -> Result<Program, TransformError> {
    check_wrt(program, wrt)?;
    let types = program.input_types();
    let outs: Vec<usize> = {
        let types = program.output_types();
        (0..types.len()).filter(|&at| types[at].is_real()).collect()
    };
    let mut functions: Vec<Function> = Vec::new();
    let mut entries = Vec::new();
    // One forward program for each argument; its functions are appended to ours.
    for &position in wrt {
        let forward = jvp(program, &[position])?;
        let base = functions.len() as u32;
        entries.push(FuncId(base + forward.entry.0));
        for mut function in forward.functions {
            function.name = format!("{}_{}", function.name, functions.len()).into();
            function.tangent_rule = function.tangent_rule.map(|rule| FuncId(rule.0 + base));
            shift_calls(&mut function.body, base);
            functions.push(function);
        }
    }
    let mut builder = FunctionBuilder::new(&program.main().name);
    let args: Vec<Value> = program
        .main()
        .body
        .params
        .iter()
        .map(|&param| {
            let name = program.main().name_of(param).map_or("argument", |name| name);
            builder.param(name, program.main().ty(param))
        })
        .collect();
    let mut columns = Vec::new();
    for (&position, &entry) in wrt.iter().zip(&entries) {
        let function = &functions[entry.index()];
        builder.declare(entry, function.param_types(), function.result_types());
        let first_tangent = program.output_types().len();
        columns.push(by_argument(
            &mut builder,
            entry,
            &args,
            args[position],
            types[position],
            outs.len(),
            first_tangent,
        ));
    }
    let mut results = Vec::new();
    let mut outputs = Vec::new();
    for (at, &out) in outs.iter().enumerate() {
        for (column, &position) in columns.iter().zip(wrt) {
            results.push(column[at]);
            let main = program.main();
            let name = main.name_of(main.body.params[position]).map_or("argument", |name| name);
            outputs.push(format!("d{}_d{name}", program.outputs[out]).into());
        }
    }
    let (function, mistakes) = builder.finish(&results);
    assert!(mistakes.is_empty(), "a loop over directions is well typed: {mistakes:?}");
    let entry = FuncId(functions.len() as u32);
    functions.push(function);
    let program = Program { functions, entry, outputs };
    Ok(verified(passes::dce(&passes::inline(&program)), "jacobian"))
}

fn shift_calls(block: &mut crate::program::Block, by: u32) {
    for inst in &mut block.insts {
        if let Op::Call(callee) = &mut inst.op {
            callee.0 += by;
        }
        inst.blocks.iter_mut().for_each(|block| shift_calls(block, by));
    }
}

/// The partials of all real results by one argument.
fn by_argument(
    b: &mut FunctionBuilder,
    entry: FuncId,
    args: &[Value],
    argument: Value,
    ty: Type,
    outs: usize,
    first_tangent: usize,
) -> Vec<Value> {
    if ty.is_scalar() {
        let one = b.real(1.0);
        let one = if ty == Type::REAL { one } else { b.convert(ty.elem, one) };
        let results = b.emit_all(Op::Call(entry), &[args, &[one]].concat());
        return results[first_tangent..].to_vec();
    }
    let lengths: Vec<Value> = (0..ty.rank).map(|axis| b.dim(argument, axis)).collect();
    let size = lengths[1..].iter().fold(lengths[0], |size, &length| b.integer(IntOp::Mul, size, length));
    let zero = b.real(0.0);
    let (zero, one) = {
        let one = b.real(1.0);
        if ty.elem == Type::REAL.elem {
            (zero, one)
        } else {
            (b.convert(ty.elem, zero), b.convert(ty.elem, one))
        }
    };
    // A run without a direction tells the shapes of the results.
    let nothing = b.fill(zero, &lengths);
    let shapes = b.emit_all(Op::Call(entry), &[args, &[nothing]].concat());
    let tangents: Vec<Value> = shapes[first_tangent..].to_vec();
    let mut initial = Vec::new();
    let mut shapes = Vec::new();
    for &tangent in &tangents[..outs] {
        let rank = b.ty(tangent).rank;
        let out: Vec<Value> = (0..rank).map(|axis| b.dim(tangent, axis)).collect();
        let zero = if b.ty(tangent).elem == ty.elem {
            zero
        } else {
            let zero = b.real(0.0);
            let elem = b.ty(tangent).elem;
            if elem == Type::REAL.elem { zero } else { b.convert(elem, zero) }
        };
        initial.push(b.fill(zero, &[&out[..], &[size]].concat()));
        shapes.push(out);
    }
    let filled = b.for_loop(size, &initial, |b, k, matrices| {
        let flat = b.fill(zero, &[size]);
        let flat = b.update(flat, &[k], one);
        let direction =
            if lengths.len() == 1 { flat } else { b.emit(Op::Reshape, &[&[flat], &lengths[..]].concat()) };
        let results = b.emit_all(Op::Call(entry), &[args, &[direction]].concat());
        let mut next = Vec::new();
        for (&matrix, &tangent) in matrices.iter().zip(&results[first_tangent..]) {
            let mut axes = vec![Axis::All; usize::from(b.ty(tangent).rank)];
            axes.push(Axis::At);
            next.push(b.emit(Op::Write(axes), &[matrix, tangent, k]));
        }
        next
    });
    filled
        .into_iter()
        .zip(shapes)
        .map(|(matrix, out)| {
            if lengths.len() == 1 {
                return matrix;
            }
            b.emit(Op::Reshape, &[&[matrix], &out[..], &lengths[..]].concat())
        })
        .collect()
}

/// A program that gives the second partials of the first result, a real scalar: forward mode over reverse
/// mode. For each argument in `wrt` (outer) and each (inner) an array whose first axes are the first
/// argument's.
///
/// # Errors
/// If the first result is not a real scalar, or an entry of `wrt` is not a real argument.
pub fn hessian(program: &Program, wrt: &[usize]) -> Result<Program, TransformError> {
    jacobian(&grad(program, wrt)?, wrt)
}
