//! Sweeps as loops that keep every state.
//!
//! Input: a program with sweeps. Output: the same program, the same bits, where a sweep is two loops: one
//! that appends each state to logs, and one that reads them backwards. So reverse mode needs no transpose of
//! a sweep: what is differentiated backwards twice keeps all states the second time.

use crate::builder::FunctionBuilder;
use crate::fast::FastMap;
use crate::op::{Axis, IntOp, Op};
use crate::program::{Block, Function, Inst, Program, Value};
use crate::transform::activity::{Swept, swept};
use crate::transform::split::read_log;
use crate::transform::zero;
use crate::types::{Elem, Type};

/// Replaces every sweep.
pub(crate) fn unsweep(program: &Program) -> Program {
    let mut program = program.clone();
    for function in &mut program.functions {
        if function.body.count(|inst| matches!(inst.op, Op::Sweep { .. })) > 0 {
            *function = without_sweeps(function);
        }
    }
    program
}

fn without_sweeps(function: &Function) -> Function {
    let mut builder = FunctionBuilder::rewrite(function);
    let mut stands = FastMap::default();
    insts(&mut builder, &function.body.insts, &mut stands);
    let (mut made, mistakes) = builder.finish(&function.body.results);
    assert!(mistakes.is_empty(), "loops with logs are well typed: {mistakes:?}");
    // What a turn gives may be what another one gives.
    let last = |mut value: Value| {
        while let Some(&other) = stands.get(&value) {
            value = other;
        }
        value
    };
    let all: FastMap<Value, Value> = stands.keys().map(|&value| (value, last(value))).collect();
    made.body.substitute(&all);
    made.tangent_rule = function.tangent_rule;
    made.renumber();
    made
}

/// Rewrites instructions; notes what stands for results that are gone.
fn insts(b: &mut FunctionBuilder, list: &[Inst], stands: &mut FastMap<Value, Value>) {
    for inst in list {
        let mut inst = inst.clone();
        for block in &mut inst.blocks {
            b.open_with(block.params.clone());
            insts(b, &block.insts, stands);
            *block = b.close(&block.results);
        }
        b.at(inst.span);
        if matches!(inst.op, Op::Sweep { .. }) { stands.extend(expand(b, &inst)) } else { b.push(inst) }
    }
}

/// The logs of one value of the state: where it begins and its lengths (of an array), and its elements last.
fn log_types(ty: Type) -> Vec<Type> {
    let of = |elem: Elem| Type::array(elem, 1);
    let numbers = if ty.is_scalar() { 0 } else { 1 + usize::from(ty.rank) };
    [vec![of(Elem::Int); numbers], vec![of(ty.elem)]].concat()
}

/// Writes the loops of a sweep; gives what stands for results that are not cotangents.
fn expand(b: &mut FunctionBuilder, inst: &Inst) -> FastMap<Value, Value> {
    let Swept { state, seeds, advance, back, turn } = swept(inst);
    let n = inst.args[0];
    let types: Vec<Type> = state.iter().map(|&value| b.ty(value)).collect();
    let logs: Vec<Type> = types.iter().flat_map(|&ty| log_types(ty)).collect();
    let mut args = [&[n], state].concat();
    for log in &logs {
        let (none, length) = (zero(b, log.elem), b.int(0));
        args.push(b.fill(none, &[length]));
    }
    let given: Vec<Value> = logs.iter().map(|&log| b.fresh(log)).collect();
    b.open_with([&advance.params[..], &given[..]].concat());
    let pushed = push_state(b, &advance.params[1..], &given);
    advance.insts.iter().for_each(|inst| b.push(inst.clone()));
    let block = b.close(&[&advance.results[..], &pushed[..]].concat());
    let results = b.emit_blocks(
        Op::For { descending: false, keep: None },
        &args,
        vec![block],
        &[&types[..], &logs[..]].concat(),
    );

    let (states, cotangents) = back.params[1..].split_at(state.len());
    let mut seeds = seeds.to_vec();
    if let Some(turn) = turn {
        let given = results[..state.len()].iter().chain(&seeds).copied();
        let map: FastMap<Value, Value> = turn.params.iter().copied().zip(given).collect();
        let mut turn: Block = turn.clone();
        turn.substitute(&map);
        turn.insts.into_iter().for_each(|inst| b.push(inst));
        seeds = turn.results;
    }
    let more = seeds.split_off(cotangents.len());
    b.open_with([&back.params[..1], cotangents].concat());
    let found = read_state(b, back.params[0], &types, &results[state.len()..]);
    let map: FastMap<Value, Value> = states.iter().copied().zip(found).collect();
    let mut body: Block = back.clone();
    body.substitute(&map);
    body.insts.into_iter().for_each(|inst| b.push(inst));
    let block = b.close(&body.results);
    b.push(Inst {
        op: Op::For { descending: true, keep: None },
        args: [&[n], &seeds[..]].concat().into(),
        blocks: vec![block],
        results: inst.results[..cotangents.len()].into(),
        span: inst.span,
    });
    inst.results[cotangents.len()..].iter().copied().zip(more).collect()
}

fn push_state(b: &mut FunctionBuilder, state: &[Value], logs: &[Value]) -> Vec<Value> {
    let mut rest = logs;
    let mut pushed = Vec::new();
    for &value in state {
        let ty = b.ty(value);
        let (own, others) = rest.split_at(log_types(ty).len());
        rest = others;
        let mut entries = Vec::new();
        if let Some(elements) = own.last().filter(|_| !ty.is_scalar()) {
            entries.push(b.dim(*elements, 0));
            entries.extend((0..ty.rank).map(|axis| b.dim(value, axis)));
        }
        entries.push(value);
        pushed.extend(own.iter().zip(entries).map(|(&log, entry)| b.emit(Op::Push, &[log, entry])));
    }
    pushed
}

fn read_state(b: &mut FunctionBuilder, round: Value, types: &[Type], logs: &[Value]) -> Vec<Value> {
    let mut rest = logs;
    let mut found = Vec::new();
    for &ty in types {
        let (own, others) = rest.split_at(log_types(ty).len());
        rest = others;
        let (elements, numbers) = own.split_last().expect("a value has a log");
        if ty.is_scalar() {
            found.push(read_log(b, *elements, round));
            continue;
        }
        let numbers: Vec<Value> = numbers.iter().map(|&log| read_log(b, log, round)).collect();
        let (start, lengths) = (numbers[0], &numbers[1..]);
        let size = lengths[1..].iter().fold(lengths[0], |size, &n| b.integer(IntOp::Mul, size, n));
        let step = b.int(1);
        let mut read = b.emit(Op::Read(vec![Axis::Range]), &[*elements, start, size, step]);
        if lengths.len() > 1 {
            read = b.emit(Op::Reshape, &[&[read], lengths].concat());
        }
        found.push(read);
    }
    found
}
