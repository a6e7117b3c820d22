//! How close `while` loops came to another number of rounds.
//!
//! Input: a program. Output: the same program with two more results for each `while` of its entry that no
//! other loop or branch is around and that goes on as long as comparisons of reals hold: by how much they
//! held before the last round, and by how much one of them failed at the end. A gradient is that of the
//! number of rounds that was run; near a change of that number it may jump.

use palinode_core::rules::Row;

use crate::checked::verified;
use crate::fast::FastMap;
use crate::op::{Comparison, Literal, Logical, Op};
use crate::program::{Block, Function, Inst, Program, Value};
use crate::types::{Span, Type};

/// Where the margins of a loop are among the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Margins {
    /// The loop.
    pub span: Span,
    /// The result that says by how much the condition held before the last round, as a part of the larger
    /// side of the comparison; infinite if there was no round.
    pub last: usize,
    /// The result that says the same of the condition that ended the loop: it is not positive.
    pub stop: usize,
}

/// The program with the margins of its loops as further results.
///
/// ```
/// use palinode_ir::interp::{Datum, run};
/// use palinode_ir::{pal, transform};
///
/// let model = pal::compile("param x0 = 0.1249\nvar x = x0\nwhile x < 1 { x = 2 * x }\nloss x").unwrap();
/// let (program, found) = transform::with_margins(&model.program);
/// let results = run(&program, &[Datum::real(0.1249)]).unwrap();
/// // It took four rounds, and 0.9992 is close to 1: almost three had been enough.
/// assert!((results[found[0].last].as_real().unwrap() - 0.0008).abs() < 1e-12);
/// assert!((results[found[0].stop].as_real().unwrap() + 0.49959967974379505).abs() < 1e-12);
/// ```
pub fn with_margins(program: &Program) -> (Program, Vec<Margins>) {
    let mut program = program.clone();
    let entry = program.entry.index();
    let function = &mut program.functions[entry];
    let mut body = core::mem::take(&mut function.body);
    let mut found = Vec::new();
    let mut out = Vec::with_capacity(body.insts.len());
    for inst in core::mem::take(&mut body.insts) {
        let is_while = matches!(inst.op, Op::While { .. });
        let compared = if is_while { comparisons(function, &inst.blocks[0]) } else { Vec::new() };
        if compared.is_empty() {
            out.push(inst);
            continue;
        }
        let span = inst.span;
        let (last, stop) = measured(function, inst, &compared, &mut out);
        found.push(Margins { span, last: body.results.len(), stop: body.results.len() + 1 });
        body.results.extend([last, stop]);
        program.outputs.extend(["last_margin".into(), "stop_margin".into()]);
    }
    body.insts = out;
    program.functions[entry].body = body;
    program.functions[entry].renumber();
    (verified(program, "with_margins"), found)
}

/// The pairs of real numbers of which the first must be smaller for a condition to hold.
fn comparisons(function: &Function, head: &Block) -> Vec<(Value, Value)> {
    let mut waiting = head.results.clone();
    let mut found = Vec::new();
    while let Some(value) = waiting.pop() {
        let Some(inst) = head.insts.iter().find(|inst| inst.results.contains(&value)) else { continue };
        if matches!(inst.op, Op::Logical(Logical::And)) {
            waiting.extend(&inst.args);
        } else if matches!(inst.op, Op::Compare(Comparison::Less | Comparison::LessEq))
            && function.ty(inst.args[0]) == Type::REAL
        {
            found.push((inst.args[0], inst.args[1]));
        }
    }
    found
}

/// Writes the loop with its last margin carried, and what measures the end.
fn measured(
    function: &mut Function,
    mut inst: Inst,
    compared: &[(Value, Value)],
    out: &mut Vec<Inst>,
) -> (Value, Value) {
    let real = |function: &mut Function| function.fresh(Type::REAL, None);
    let head = inst.blocks[0].clone();
    let none = real(function);
    out.push(Inst::new(Op::Const(Literal::Real(f64::INFINITY)), Vec::new(), vec![none], inst.span));
    inst.args.push(none);
    let unused = real(function);
    inst.blocks[0].params.push(unused);
    let mut insts = Vec::new();
    let now = margin(function, &head, &inst.blocks[1].params, compared, inst.span, &mut insts);
    insts.append(&mut inst.blocks[1].insts);
    let before = real(function);
    inst.blocks[1].insts = insts;
    inst.blocks[1].params.push(before);
    inst.blocks[1].results.push(now);
    let values = inst.results.clone();
    let last = real(function);
    inst.results.push(last);
    let span = inst.span;
    out.push(inst);
    let stop = margin(function, &head, &values, compared, span, out);
    (last, stop)
}

/// Evaluates a condition for these values, and by how much it holds: the smallest `(b - a) / max(|a|, |b|)`.
fn margin(
    function: &mut Function,
    head: &Block,
    values: &[Value],
    compared: &[(Value, Value)],
    span: Span,
    out: &mut Vec<Inst>,
) -> Value {
    let mut map: FastMap<Value, Value> = head.params.iter().copied().zip(values.iter().copied()).collect();
    let mut defined = Vec::new();
    head.for_each_definition(&mut |value| defined.push(value));
    for value in defined {
        map.entry(value).or_insert_with(|| function.fresh(function.ty(value), None));
    }
    let mut copy = head.clone();
    copy.rename(&|value| *map.get(&value).unwrap_or(&value));
    out.append(&mut copy.insts);
    let at = |value: Value| *map.get(&value).unwrap_or(&value);
    let mut emit = |function: &mut Function, row: Row, args: &[Value]| {
        let result = function.fresh(Type::REAL, None);
        out.push(Inst::new(Op::rule(row), args.to_vec(), vec![result], span));
        result
    };
    let mut smallest: Option<Value> = None;
    for &(a, b) in compared {
        let (a, b) = (at(a), at(b));
        let difference = emit(function, Row::Subtract, &[b, a]);
        let sizes = [a, b].map(|side| emit(function, Row::Abs, &[side]));
        let size = emit(function, Row::Max, &sizes);
        let part = emit(function, Row::Divide, &[difference, size]);
        smallest = Some(match smallest {
            None => part,
            Some(other) => emit(function, Row::Min, &[other, part]),
        });
    }
    smallest.expect("something is compared")
}
