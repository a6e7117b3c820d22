//! Dead values, carried values, branches' results, parameters and functions.
//!
//! Nothing in a program has an effect but its results, so what no result depends on goes, together with the
//! run error that it might have raised. A carried value of a loop lives only if its result is needed, or it
//! feeds one that lives or the loop's condition; a loop none of whose carried values lives goes as a whole,
//! also if it would never end. A parameter that a function does not use goes from it and from its calls,
//! unless the function is the entry, has a tangent rule or is one.
//!
//! Marking walks from the results to the definitions, each value once; then the rest is swept.

use super::inline::without_unreachable;
use crate::checked::verified;
use crate::op::{FuncId, Op};
use crate::program::{Block, Function, Inst, Program, Value};

/// Removes what no result depends on.
pub fn dce(program: &Program) -> Program {
    without_dead(program.clone())
}

/// [`dce`] of a program that nobody else needs.
pub(crate) fn without_dead(mut program: Program) -> Program {
    program.functions.iter_mut().for_each(dce_function);
    verified(without_unneeded(program), "dce")
}

/// Removes unused parameters and functions that nothing calls.
pub(super) fn without_unneeded(program: Program) -> Program {
    without_unreachable(without_unused_params(program))
}

/// What defines a value.
#[derive(Clone, Copy)]
enum Definition<'a> {
    /// A parameter of the function.
    Param,
    /// A result of an instruction without blocks, or the counter of a loop.
    Of(&'a Inst),
    /// Number `at` of what a loop, branch or fused operation gives or carries.
    Part(&'a Inst, usize),
    /// What the turn of a sweep is given as operand `at`.
    Given(&'a Inst, usize),
    /// Result `at` of a sweep, which is no cotangent: only its turn gives it.
    More(&'a Inst, usize),
}

/// The number of the block of a sweep that runs between its two ways.
const TURN: usize = 2;

struct Marker<'a> {
    definitions: Vec<Definition<'a>>,
    live: Vec<bool>,
    waiting: Vec<Value>,
}

impl<'a> Marker<'a> {
    fn index(&mut self, block: &'a Block) {
        for inst in &block.insts {
            let first = usize::from(matches!(inst.op, Op::For { .. } | Op::Sweep { .. }));
            let (state, cotangents) = (swept_state(inst), swept_cotangents(inst));
            for (number, inner) in inst.blocks.iter().enumerate() {
                let turns = number == TURN && matches!(inst.op, Op::Sweep { .. });
                for (at, param) in inner.params.iter().enumerate() {
                    self.definitions[param.index()] = match at {
                        _ if turns && at < state => Definition::Part(inst, at),
                        _ if turns => Definition::Given(inst, 1 + at),
                        _ if at < first => Definition::Of(inst),
                        _ => Definition::Part(inst, at - first),
                    };
                }
                self.index(inner);
            }
            for (at, result) in inst.results.iter().enumerate() {
                self.definitions[result.index()] = match inst.blocks.is_empty() {
                    true => Definition::Of(inst),
                    false if matches!(inst.op, Op::Sweep { .. }) && at >= cotangents => {
                        Definition::More(inst, at)
                    }
                    false => Definition::Part(inst, at + state),
                };
            }
        }
    }

    fn mark(&mut self, value: Value) {
        if !core::mem::replace(&mut self.live[value.index()], true) {
            self.waiting.push(value);
        }
    }

    fn run(&mut self) {
        while let Some(value) = self.waiting.pop() {
            match self.definitions[value.index()] {
                Definition::Param => {}
                // A counter alone keeps nothing: the loop it belongs to lives by what needs the counter.
                Definition::Of(inst) if !inst.blocks.is_empty() => {}
                Definition::Of(inst) => inst.args.iter().for_each(|&arg| self.mark(arg)),
                Definition::Part(inst, at) => self.part(inst, at),
                Definition::Given(inst, at) => self.mark(inst.args[at]),
                Definition::More(inst, at) => {
                    self.mark(inst.args[0]);
                    self.mark(inst.blocks[TURN].results[at]);
                }
            }
        }
    }

    /// Something that has blocks needs its part number `at`.
    fn part(&mut self, inst: &Inst, at: usize) {
        match inst.op {
            Op::For { .. } => {
                self.mark(inst.args[0]);
                self.mark(inst.args[at + 1]);
                self.mark(inst.results[at]);
                self.mark(inst.blocks[0].results[at]);
            }
            Op::While { .. } => {
                self.mark(inst.args[at]);
                self.mark(inst.results[at]);
                self.mark(inst.blocks[0].results[0]);
                self.mark(inst.blocks[1].results[at]);
            }
            // Its parts are those of its state, then its cotangents.
            Op::Sweep { .. } => {
                let (advance, back) = (&inst.blocks[0], &inst.blocks[1]);
                self.mark(inst.args[0]);
                self.mark(back.params[at + 1]);
                let turn = inst.blocks.get(TURN);
                match at.checked_sub(swept_state(inst)) {
                    None => {
                        self.mark(inst.args[at + 1]);
                        self.mark(advance.params[at + 1]);
                        self.mark(advance.results[at]);
                        if let Some(turn) = turn {
                            self.mark(turn.params[at]);
                        }
                    }
                    Some(cotangent) => {
                        self.mark(inst.results[cotangent]);
                        self.mark(back.results[cotangent]);
                        match turn {
                            Some(turn) => self.mark(turn.results[cotangent]),
                            None => self.mark(inst.args[at + 1]),
                        }
                    }
                }
            }
            Op::If => {
                self.mark(inst.args[0]);
                inst.blocks.iter().for_each(|block| self.mark(block.results[at]));
            }
            Op::Fused => self.fused(inst),
            _ => unreachable!("`{}` has no blocks", inst.op.name()),
        }
    }

    /// Fused operations are made by the last pass and kept whole: a dead part inside costs little.
    fn fused(&mut self, inst: &Inst) {
        inst.args.iter().for_each(|&arg| self.mark(arg));
        let block = &inst.blocks[0];
        block.params.iter().for_each(|&param| self.live[param.index()] = true);
        inst.results.iter().for_each(|&result| self.live[result.index()] = true);
        block.results.iter().for_each(|&result| self.mark(result));
    }
}

/// Which values the results of a function depend on.
pub(crate) fn live(function: &Function) -> Vec<bool> {
    let count = function.values.len();
    let mut marker =
        Marker { definitions: vec![Definition::Param; count], live: vec![false; count], waiting: Vec::new() };
    marker.index(&function.body);
    function.body.results.iter().for_each(|&result| marker.mark(result));
    marker.run();
    marker.live
}

/// Removes what no result of the function depends on.
pub(super) fn dce_function(function: &mut Function) {
    let live = live(function);
    sweep(&mut function.body, &live);
    // What builders and sweeps leave over is half the memory of a long program.
    function.body.insts.shrink_to_fit();
    function.renumber();
}

fn sweep(block: &mut Block, live: &[bool]) {
    block.insts.retain(|inst| inst.results.iter().any(|result| live[result.index()]));
    for inst in &mut block.insts {
        if matches!(inst.op, Op::Sweep { .. }) {
            let is_live = |value: &Value| live[value.index()];
            let kept: Vec<bool> = inst.blocks[1].params[1..].iter().map(is_live).collect();
            let given = inst.blocks.get(TURN).map_or(&[][..], |turn| &turn.params[swept_state(inst)..]);
            let given: Vec<bool> = given.iter().map(is_live).collect();
            let more: Vec<bool> = inst.results[swept_cotangents(inst)..].iter().map(is_live).collect();
            keep_swept(inst, &kept, &given, &more);
        }
        if matches!(inst.op, Op::For { .. } | Op::While { .. } | Op::If) {
            let kept: Vec<bool> = inst.results.iter().map(|result| live[result.index()]).collect();
            if !kept.iter().all(|&kept| kept) {
                keep_parts(inst, &kept);
            }
        }
        inst.blocks.iter_mut().for_each(|block| sweep(block, live));
    }
}

/// Keeps only these carried values of a loop, or results of a branch.
pub(super) fn keep_parts(inst: &mut Inst, kept: &[bool]) {
    retain(&mut inst.results, 0, kept);
    let own = usize::from(matches!(inst.op, Op::For { .. }));
    if matches!(inst.op, Op::For { .. } | Op::While { .. }) {
        retain(&mut inst.args, own, kept);
        inst.blocks.iter_mut().for_each(|block| retain(&mut block.params, own, kept));
    }
    // The first block of a `while` gives its condition, which is no part.
    let first = usize::from(matches!(inst.op, Op::While { .. }));
    inst.blocks[first..].iter_mut().for_each(|block| retain(&mut block.results, 0, kept));
}

/// How many values the state of a sweep has; 0 for everything else.
pub(super) fn swept_state(inst: &Inst) -> usize {
    if matches!(inst.op, Op::Sweep { .. }) { inst.blocks[0].results.len() } else { 0 }
}

/// How many cotangents a sweep has; 0 for everything else.
pub(super) fn swept_cotangents(inst: &Inst) -> usize {
    if matches!(inst.op, Op::Sweep { .. }) { inst.blocks[1].results.len() } else { 0 }
}

/// Keeps only these parts of a sweep: of its state, then of its cotangents; of what its turn is given; and of
/// what else it gives.
pub(super) fn keep_swept(inst: &mut Inst, kept: &[bool], given: &[bool], more: &[bool]) {
    let state = swept_state(inst);
    let gives = [&kept[state..], more].concat();
    retain(&mut inst.results, 0, &gives);
    let (ways, turn) = inst.blocks.split_at_mut(TURN);
    match turn {
        [turn] => {
            let takes = [&kept[..state], given].concat();
            retain(&mut inst.args, 1, &takes);
            retain(&mut turn.params, 0, &takes);
            retain(&mut turn.results, 0, &gives);
        }
        _ => retain(&mut inst.args, 1, kept),
    }
    let [advance, back] = ways else { unreachable!("a sweep has two ways") };
    retain(&mut advance.params, 1, &kept[..state]);
    retain(&mut advance.results, 0, &kept[..state]);
    retain(&mut back.params, 1, kept);
    retain(&mut back.results, 0, &kept[state..]);
}

fn without_unused_params(mut program: Program) -> Program {
    let mut fixed = vec![false; program.functions.len()];
    fixed[program.entry.index()] = true;
    for (at, function) in program.functions.iter().enumerate() {
        if let Some(rule) = function.tangent_rule {
            fixed[at] = true;
            fixed[rule.index()] = true;
        }
    }
    let kept: Vec<Vec<bool>> = program
        .functions
        .iter()
        .zip(fixed)
        .map(|(function, fixed)| {
            let mut used = vec![fixed; function.values.len()];
            function.body.for_each_use(&mut |value| used[value.index()] = true);
            function.body.params.iter().map(|param| used[param.index()]).collect()
        })
        .collect();
    if kept.iter().flatten().all(|&kept| kept) {
        return program;
    }
    for (function, own) in program.functions.iter_mut().zip(&kept) {
        retain(&mut function.body.params, 0, own);
        shorten_calls(&mut function.body, &kept);
        function.renumber();
    }
    program
}

/// Keeps the first values, and of the others those that are marked.
fn retain<C>(values: &mut C, first: usize, kept: &[bool])
where
    C: AsRef<[Value]> + FromIterator<Value>,
{
    let all = values.as_ref();
    let rest = all[first..].iter().zip(kept).filter(|(_, kept)| **kept).map(|(value, _)| value);
    *values = all[..first].iter().chain(rest).copied().collect();
}

fn shorten_calls(block: &mut Block, kept: &[Vec<bool>]) {
    for inst in &mut block.insts {
        if let Op::Call(FuncId(callee)) = inst.op {
            retain(&mut inst.args, 0, &kept[callee as usize]);
        }
        inst.blocks.iter_mut().for_each(|block| shorten_calls(block, kept));
    }
}
