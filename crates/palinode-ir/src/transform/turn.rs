//! Loops that keep snapshots, and their sweeps, in one: the sweep places its first snapshots in the run for
//! the values, and turns where that ends.
//!
//! Input: a program in which a `for` with a limit is followed by its sweep. Output: the same program, the
//! same bits, where what lies between them and needs the results of the loop is the turn of the sweep.
//! What does not need them stays before it.
//!
//! Invariant: a loop and a sweep belong together if the body of the one is, instruction by instruction, what
//! the other advances by, from the same state and for as many rounds. Nobody's word is taken for it.
//!
//! Not done
//! - for a `while`, whose rounds are known when it has run;
//! - if the two are in different blocks (branches on either way; loops that keep logs around them);
//! - if snapshots would have to hold arrays that only the way forwards needs, or if advancing would become
//!   half as much work again for the sake of numbers that only the way forwards needs (a sum of losses).

use crate::fast::{FastMap, FastSet};
use crate::op::{IntOp, Kind, Literal, Op};
use crate::passes::dce;
use crate::program::{Block, Function, Inst, Program, Value};

/// Joins loops and their sweeps where that is possible and pays.
pub(crate) fn turned(program: &mut Program) {
    for function in &mut program.functions {
        if function.body.count(|inst| matches!(inst.op, Op::Sweep { turns: false, .. })) == 0 {
            continue;
        }
        let live = dce::live(function);
        function.rewrite(|function, body| in_block(function, &live, body));
    }
}

fn in_block(function: &mut Function, live: &[bool], block: &mut Block) {
    for inst in &mut block.insts {
        inst.blocks.iter_mut().for_each(|inner| in_block(function, live, inner));
    }
    let mut at = 0;
    while at < block.insts.len() {
        let found = (0..at).rev().find(|&first| pays(function, live, &block.insts[first], &block.insts[at]));
        at = match found.and_then(|first| join(function, block, first, at)) {
            Some(next) => next,
            None => at + 1,
        };
    }
}

/// Whether the second instruction is the sweep of the first one, and joining them pays.
fn pays(function: &Function, live: &[bool], one: &Inst, sweep: &Inst) -> bool {
    let (&Op::For { keep: Some(of_loop), descending }, &Op::Sweep { keep, turns: false }) =
        (&one.op, &sweep.op)
    else {
        return false;
    };
    let (advance, body) = (&sweep.blocks[0], &one.blocks[0]);
    let state = advance.results.len();
    if of_loop != keep || one.args.len() != 1 + state || one.args[..] != sweep.args[..=state] {
        return false;
    }
    let is_live = |value: &Value| live.get(value.index()).is_some_and(|&live| live);
    if !one.results.iter().any(is_live) {
        return false;
    }
    let mut compared = Compared { live, both: FastMap::default(), work: 0, only_forwards: 0 };
    if !compared.rounds(one, body, advance, descending) {
        return false;
    }
    // What is carried only for what comes after the loop.
    let swept = sweep.blocks[1].params[1..].iter();
    let mut beside =
        body.params[1..].iter().zip(swept).filter(|(ours, theirs)| is_live(ours) && !is_live(theirs));
    beside.all(|(&ours, _)| function.ty(ours).is_scalar()) && 2 * compared.only_forwards <= compared.work
}

/// Compares the body of a loop with what its sweep advances by.
struct Compared<'a> {
    live: &'a [bool],
    /// What is called otherwise in the sweep.
    both: FastMap<Value, Value>,
    /// How many instructions the sweep needs, and how many besides them only the loop does.
    work: usize,
    only_forwards: usize,
}

impl Compared<'_> {
    fn rounds(&mut self, one: &Inst, body: &Block, advance: &Block, descending: bool) -> bool {
        let (round, mut insts) = (advance.params[0], &advance.insts[..]);
        let mut counter = round;
        if descending {
            // It counts from the last round down.
            let [unit, last, down, rest @ ..] = insts else { return false };
            let counts = unit.op == Op::Const(Literal::Int(1))
                && last.op == Op::Int(IntOp::Sub)
                && down.op == Op::Int(IntOp::Sub)
                && last.args[..] == [one.args[0], unit.results[0]]
                && down.args[..] == [last.results[0], round];
            if !counts {
                return false;
            }
            (counter, insts) = (down.results[0], rest);
        }
        let params = [&[counter], &advance.params[1..]].concat();
        self.blocks((&body.params, &body.insts, &body.results), (&params, insts, &advance.results))
    }

    fn blocks(
        &mut self,
        (params, insts, results): (&[Value], &[Inst], &[Value]),
        (other_params, other_insts, other_results): (&[Value], &[Inst], &[Value]),
    ) -> bool {
        self.define(params, other_params)
            && insts.len() == other_insts.len()
            && insts.iter().zip(other_insts).all(|(one, other)| self.insts(one, other))
            && self.are_same(results, other_results)
    }

    fn insts(&mut self, one: &Inst, other: &Inst) -> bool {
        let needs =
            |inst: &Inst| inst.results.iter().any(|result| self.live.get(result.index()) == Some(&true));
        let (forwards, back) = (needs(one), needs(other));
        self.work += usize::from(back);
        self.only_forwards += usize::from(forwards && !back);
        one.op == other.op
            && self.are_same(&one.args, &other.args)
            && one.blocks.len() == other.blocks.len()
            && one.blocks.iter().zip(&other.blocks).all(|(one, other)| {
                self.blocks(
                    (&one.params, &one.insts, &one.results),
                    (&other.params, &other.insts, &other.results),
                )
            })
            && self.define(&one.results, &other.results)
    }

    fn define(&mut self, ours: &[Value], theirs: &[Value]) -> bool {
        self.both.extend(ours.iter().copied().zip(theirs.iter().copied()));
        ours.len() == theirs.len()
    }

    fn are_same(&self, ours: &[Value], theirs: &[Value]) -> bool {
        let named = |value: &Value| self.both.get(value).copied().unwrap_or(*value);
        ours.len() == theirs.len() && ours.iter().map(named).eq(theirs.iter().copied())
    }
}

/// The arrays that an instruction may change.
fn changes(inst: &Inst) -> &[Value] {
    match inst.op.facts().kind {
        Kind::Updates => &inst.args[..1],
        Kind::Repeats(_) | Kind::Calls => &inst.args,
        Kind::Literal | Kind::Elementwise | Kind::Measures | Kind::Reads | Kind::Makes => &[],
        Kind::Reshapes | Kind::Branches | Kind::Fuses => &[],
    }
}

/// What only the turn uses is done there, and what is known of it is known there; but not loops and calls,
/// which have all memory to themselves before the sweep.
fn sink(block: &Block, first: usize, last: usize, turns: &mut [bool]) {
    let (mut needed, mut changed) = (FastSet::default(), FastSet::default());
    let sweep = &block.insts[last];
    needed.extend(sweep.args[..=sweep.blocks[0].results.len()].iter().copied());
    needed.extend(sweep.blocks.iter().flat_map(Block::captures));
    needed.extend(block.results.iter().copied());
    let note = |inst: &Inst, needed: &mut FastSet<Value>| {
        inst.for_each_use(&mut |value| {
            needed.insert(value);
        });
    };
    block.insts[last + 1..].iter().for_each(|inst| note(inst, &mut needed));
    for (inst, turns) in block.insts[first..last].iter().zip(turns).skip(1).rev() {
        if *turns {
            continue;
        }
        let stays = inst.op.repeats()
            || inst.op.facts().kind == Kind::Calls
            || inst.results.iter().any(|result| needed.contains(result))
            || inst.args.iter().any(|arg| changed.contains(arg));
        if stays {
            note(inst, &mut needed);
            changed.extend(changes(inst).iter().copied());
        } else {
            *turns = true;
        }
    }
}

/// Makes one of the loop at `first` and its sweep at `last`; gives the place after it. None, and nothing
/// done, if reversed rounds need what depends on the results of the loop otherwise than by its cotangents.
fn join(function: &mut Function, block: &mut Block, first: usize, last: usize) -> Option<usize> {
    // What depends on the results of the loop, and what changes arrays that such an instruction looks at
    // before.
    let mut dependent: FastSet<Value> = block.insts[first].results.iter().copied().collect();
    let mut looked_at: FastSet<Value> = FastSet::default();
    let mut turns = vec![false; last - first];
    for (inst, turns) in block.insts[first..last].iter().zip(&mut turns).skip(1) {
        let mut uses = FastSet::default();
        inst.for_each_use(&mut |value| {
            uses.insert(value);
        });
        let is_array = |value: &&Value| !function.ty(**value).is_scalar();
        *turns = uses.iter().any(|value| dependent.contains(value))
            || changes(inst).iter().filter(is_array).any(|value| looked_at.contains(value));
        if *turns {
            dependent.extend(&inst.results);
            looked_at.extend(uses);
        }
    }
    let ways = &block.insts[last].blocks;
    if ways.iter().flat_map(Block::captures).any(|value| dependent.contains(&value)) {
        return None;
    }

    sink(block, first, last, &mut turns);

    let mut rest = block.insts.split_off(first);
    let after = rest.split_off(last - first + 1);
    let mut sweep = rest.pop().expect("the sweep");
    let state = sweep.blocks[0].results.len();
    let seeds = sweep.args[1 + state..].to_vec();
    let mut params = Vec::new();
    let mut turn = Block::default();
    for (at, (inst, turns)) in rest.into_iter().zip(turns).enumerate() {
        match (at, turns) {
            (0, _) => params = inst.results.to_vec(),
            (_, true) => turn.insts.push(inst),
            (_, false) => block.insts.push(inst),
        }
    }
    // What is needed later.
    let mut later: Vec<Value> = Vec::new();
    let mut note = |value: Value| {
        if dependent.contains(&value) && !later.contains(&value) {
            later.push(value);
        }
    };
    after.iter().for_each(|inst| inst.for_each_use(&mut note));
    block.results.iter().copied().for_each(&mut note);
    turn.results = [&seeds[..], &later].concat();
    // Arrays from around it are handed to the turn, so that it may change them.
    turn.params = params;
    let mut given = turn.captures();
    given.retain(|&value| !function.ty(value).is_scalar());
    let like = |function: &mut Function, value: Value| {
        let (ty, name) = (function.ty(value), function.name_of(value).cloned());
        function.fresh(ty, name)
    };
    let inner: Vec<Value> = given.iter().map(|&value| like(function, value)).collect();
    let names: FastMap<Value, Value> = given.iter().copied().zip(inner.iter().copied()).collect();
    turn.substitute(&names);
    turn.params.extend(inner);

    let more: Vec<Value> = later.iter().map(|&value| like(function, value)).collect();
    let names: FastMap<Value, Value> = later.into_iter().zip(more.iter().copied()).collect();
    let Op::Sweep { turns, .. } = &mut sweep.op else { unreachable!("it is a sweep") };
    *turns = true;
    sweep.args = [&sweep.args[..=state], &given].concat().into();
    sweep.results = [&sweep.results[..], &more].concat().into();
    sweep.blocks.push(turn);
    block.insts.push(sweep);
    let next = block.insts.len();
    let mut tail = Block { insts: after, results: core::mem::take(&mut block.results), ..Block::default() };
    tail.substitute(&names);
    block.insts.append(&mut tail.insts);
    block.results = tail.results;
    Some(next)
}
