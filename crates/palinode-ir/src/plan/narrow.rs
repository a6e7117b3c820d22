//! Arrays that wait for the reverse sweep, in fewer bits.
//!
//! Input: the program of a value and its gradient, and the variables to narrow. Output: a program in which
//! such an array, once it is not used forwards any more, is packed, and unpacked where it is first used
//! backwards. (What loops keep round by round is narrowed when the gradient is made: `transform::Storage`.)
//! The gradient is then rounded: [`narrowing_error`] measures by how much.

use std::collections::HashMap;

use crate::builder::FunctionBuilder;
use crate::interp::Datum;
use crate::op::{IntOp, Narrow, Op};
use crate::program::{Block, Function, Inst, Program, Value};
use crate::transform::Storage;

/// The first instruction of a body on which its first result does not depend, nor any after it.
pub(super) fn turn(body: &Block) -> usize {
    let mut needed: std::collections::HashSet<Value> = body.results.first().copied().into_iter().collect();
    let mut turn = 0;
    for (at, inst) in body.insts.iter().enumerate().rev() {
        if inst.results.iter().any(|result| needed.contains(result)) {
            turn = turn.max(at + 1);
            inst.for_each_use(&mut |value| {
                needed.insert(value);
            });
        }
    }
    turn
}

/// Packs arrays between their last use forwards and their first use backwards, as `storage` says. Arrays of
/// loops, branches and functions stay as they are.
#[must_use]
pub fn narrow_kept(program: &Program, storage: &Storage) -> Program {
    let mut program = program.clone();
    let entry = program.entry.index();
    let main = &program.functions[entry];
    let turn = turn(&main.body);
    let found: Vec<Waiting> = waiting(main, turn, storage);
    if found.is_empty() {
        return program;
    }
    let main = program.functions[entry].clone();
    program.functions[entry] = rewritten(main, &found);
    program.functions[entry].renumber();
    program
}

/// An array that waits.
struct Waiting {
    array: Value,
    narrow: Narrow,
    /// The last instruction forwards that uses or makes it.
    last: usize,
    /// The first one backwards.
    first: usize,
}

fn waiting(main: &Function, turn: usize, storage: &Storage) -> Vec<Waiting> {
    let body = &main.body;
    let mut uses: HashMap<Value, Vec<usize>> = HashMap::new();
    for (at, inst) in body.insts.iter().enumerate() {
        inst.for_each_use(&mut |value| uses.entry(value).or_default().push(at));
    }
    let made = body.insts[..turn].iter().enumerate();
    let made = made.flat_map(|(at, inst)| inst.results.iter().map(move |&result| (at, result)));
    made.filter_map(|(at, array)| {
        let narrow = storage.narrow_for(main.name_of(array).map(|name| &**name), main.ty(array))?;
        let uses = uses.get(&array)?;
        let last = uses.iter().copied().filter(|&user| user < turn).max().unwrap_or(at);
        let first = uses.iter().copied().filter(|&user| user >= turn).min()?;
        (!body.results.contains(&array)).then_some(Waiting { array, narrow, last, first })
    })
    .collect()
}

fn rewritten(main: Function, found: &[Waiting]) -> Function {
    let body = main.body.clone();
    let mut builder = FunctionBuilder::resume(main);
    let mut before: HashMap<usize, Vec<Inst>> = HashMap::new();
    let mut after: HashMap<usize, Vec<Inst>> = HashMap::new();
    let mut renamed: Vec<(usize, Value, Value)> = Vec::new();
    for Waiting { array, narrow, last, first } in found {
        let rank = builder.ty(*array).rank;
        builder.open_with(Vec::new());
        let lengths: Vec<Value> = (0..rank).map(|axis| builder.emit(Op::Dim(axis), &[*array])).collect();
        let count =
            lengths[1..].iter().fold(lengths[0], |count, &length| builder.integer(IntOp::Mul, count, length));
        let words = builder.emit(Op::Pack(*narrow), &[*array]);
        after.entry(*last).or_default().extend(builder.close(&[]).insts);
        builder.open_with(Vec::new());
        let mut again = builder.emit(Op::Unpack(*narrow), &[words, count]);
        if rank > 1 {
            again = builder.emit(Op::Reshape, &[&[again], &lengths[..]].concat());
        }
        before.entry(*first).or_default().extend(builder.close(&[]).insts);
        renamed.push((*first, *array, again));
    }
    let (mut main, _) = builder.finish(&[]);
    let mut insts = Vec::new();
    let mut replaced: HashMap<Value, Value> = HashMap::new();
    for (at, mut inst) in body.insts.into_iter().enumerate() {
        insts.extend(before.remove(&at).unwrap_or_default());
        replaced.extend(renamed.iter().filter(|(first, ..)| *first == at).map(|&(_, old, new)| (old, new)));
        inst.args.iter_mut().for_each(|arg| *arg = *replaced.get(arg).unwrap_or(arg));
        inst.blocks.iter_mut().for_each(|block| block.substitute(&replaced));
        insts.push(inst);
        insts.extend(after.remove(&at).unwrap_or_default());
    }
    main.body = Block { params: body.params, insts, results: body.results };
    main
}

/// The largest difference between two gradients, as a part of the largest entry of the exact one.
pub fn narrowing_error(exact: &[Datum<f64>], narrowed: &[Datum<f64>]) -> f64 {
    let flat = |data: &[Datum<f64>]| -> Vec<f64> {
        data.iter().filter_map(Datum::as_vector).flatten().copied().collect()
    };
    let (exact, narrowed) = (flat(exact), flat(narrowed));
    let largest = exact.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    let apart = exact.iter().zip(&narrowed).fold(0.0_f64, |most, (a, b)| most.max((a - b).abs()));
    if apart == 0.0 { 0.0 } else { apart / largest }
}
