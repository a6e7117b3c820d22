//! Neighbouring loops of one length, run as one.
//!
//! ```text
//! for i { y[i] = sin(x[i]) }  for i { z[i] = y[i] * 2 }   ->   for i { y[i] = sin(x[i]); z[i] = y[i] * 2 }
//! ```
//!
//! The second loop may take part in the rounds of the first if
//!
//! 1. both run over the same number of rounds, in the same direction;
//! 2. all it uses of the first loop's results is element `k` (its counter) of arrays which the first changes,
//!    in round `k`, only at `k` along the same axis: after round `k` of the first, these elements are final.
//!    Anything else (another index, a carried value that starts from a result, a result as a whole) forbids
//!    it;
//! 3. what stands between the loops can go before both (it does not depend on the first) or after both (the
//!    second does not depend on it), without coming later than an instruction that consumes an array it
//!    reads;
//! 4. the second does not carry on an array that the first needs: it would have to be copied.
//!
//! Loops whose bodies have more than [`MAX_SIZE`] instructions together stay apart. Loops that have nothing
//! to do with each other stay apart: nothing is gained. If nothing else needs `y` as a whole, it disappears
//! afterwards.

use super::each;
use super::memory::taken;
use crate::fast::{FastMap, FastSet};
use crate::op::{Axis, Op};
use crate::program::{Block, Function, Inst, Program, Value};

/// How many earlier loops of the block are tried.
const LOOK_BACK: usize = 4;

/// How large the body of a fused loop may become: to look at ever larger loops again and again would take
/// quadratic time.
const MAX_SIZE: usize = 400;

/// Fuses loops.
pub fn fuse_loops(program: &Program) -> Program {
    each(program, "fuse_loops", fuse_loops_function)
}

pub(super) fn fuse_loops_function(function: &mut Function) {
    if !function.has_blocks() {
        return;
    }
    function.rewrite(|function, body| fuse_block(function, body));
}

fn fuse_block(function: &Function, block: &mut Block) {
    let mut out: Vec<Inst> = Vec::with_capacity(block.insts.len());
    for mut inst in core::mem::take(&mut block.insts) {
        inst.blocks.iter_mut().for_each(|block| fuse_block(function, block));
        out.push(inst);
        while fuse_last(function, &mut out) {}
    }
    block.insts = out;
}

/// Fuses the last instruction with an earlier one, if both are loops and it is allowed.
fn fuse_last(function: &Function, insts: &mut Vec<Inst>) -> bool {
    let Some(second) = insts.last().filter(|inst| matches!(inst.op, Op::For { .. })) else {
        return false;
    };
    let candidates: Vec<usize> = (0..insts.len() - 1)
        .rev()
        .filter(|&at| insts[at].op == second.op)
        .take(LOOK_BACK)
        .filter(|&at| insts[at].args[0] == second.args[0])
        .collect();
    for first in candidates {
        if let Some(later) = plan(function, insts, first) {
            let second = insts.pop().expect("the last one");
            let between = insts.split_off(first + 1);
            let first = insts.pop().expect("the first one");
            let (after, before): (Vec<_>, Vec<_>) =
                between.into_iter().zip(later).partition(|(_, later)| *later);
            insts.extend(before.into_iter().map(|(inst, _)| inst));
            insts.push(join(first, second));
            insts.extend(after.into_iter().map(|(inst, _)| inst));
            // Only a loop at the end is looked at again.
            return matches!(insts.last(), Some(inst) if matches!(inst.op, Op::For { .. }));
        }
    }
    false
}

fn uses(inst: &Inst) -> FastSet<Value> {
    let mut found = FastSet::default();
    inst.for_each_use(&mut |value| {
        found.insert(value);
    });
    found
}

/// Whether the loop at `first` and the last instruction can be one; if so, which instructions between them go
/// after it.
fn plan(function: &Function, insts: &[Inst], first: usize) -> Option<Vec<bool>> {
    let (one, two) = (&insts[first], insts.last()?);
    if one.blocks[0].size() + two.blocks[0].size() > MAX_SIZE {
        return None;
    }
    let results: FastSet<Value> = one.results.iter().copied().collect();
    let two_uses = uses(two);
    // Something must be gained, and nothing carried may start from the first loop.
    if !two_uses.iter().any(|value| results.contains(value))
        || two.args.iter().any(|arg| results.contains(arg))
    {
        return None;
    }
    let one_uses = uses(one);
    // What the second loop could have taken over once the first is done with it would have to be copied.
    if taken(function, two).iter().any(|version| one_uses.contains(version)) {
        return None;
    }
    let mut depends = results.clone();
    let mut later = Vec::new();
    for inst in &insts[first + 1..insts.len() - 1] {
        let inst_uses = uses(inst);
        let is_later = inst_uses.iter().any(|value| depends.contains(value));
        later.push(is_later);
        let clash = if is_later {
            depends.extend(&inst.results);
            taken(function, two).iter().any(|version| inst_uses.contains(version))
        } else {
            taken(function, inst).iter().any(|version| one_uses.contains(version))
        };
        if clash {
            return None;
        }
    }
    if two_uses.iter().any(|value| depends.contains(value) && !results.contains(value)) {
        return None;
    }
    let finals = Finals::of(one);
    let mut allowed = true;
    check_reads(&two.blocks[0], two.blocks[0].params[0], &finals, &mut allowed);
    allowed.then_some(later)
}

/// For each result of a loop the axes along which round `k` changes only element `k`.
struct Finals {
    axes: FastMap<Value, u64>,
}

impl Finals {
    fn of(one: &Inst) -> Finals {
        let body = &one.blocks[0];
        let mut changes =
            Changes { makers: FastMap::default(), counter: body.params[0], branches: FastMap::default() };
        changes.index(body);
        let axes = one
            .results
            .iter()
            .enumerate()
            .map(|(at, &result)| (result, changes.axes(body.results[at], body.params[at + 1])));
        Finals { axes: axes.collect() }
    }
}

struct Changes<'a> {
    /// What makes each value inside, and as which of its results.
    makers: FastMap<Value, (&'a Inst, usize)>,
    counter: Value,
    /// What is known of results of branches, by result and base: branches after branches would otherwise be
    /// followed many times.
    branches: FastMap<(Value, Value), u64>,
}

impl<'a> Changes<'a> {
    fn index(&mut self, block: &'a Block) {
        for inst in &block.insts {
            for (at, &result) in inst.results.iter().enumerate() {
                self.makers.insert(result, (inst, at));
            }
            inst.blocks.iter().for_each(|block| self.index(block));
        }
    }

    /// The axes (as bits) along which `value` differs from `base` only at the counter; none if it is not
    /// known to be a version of it.
    fn axes(&mut self, value: Value, base: Value) -> u64 {
        let (mut value, mut axes) = (value, u64::MAX);
        // Versions form chains; only branches and inner loops recurse, no deeper than blocks nest.
        while value != base && axes != 0 {
            let Some(&(inst, at)) = self.makers.get(&value) else { return 0 };
            match &inst.op {
                Op::Write(places) | Op::AddAt(places) => {
                    axes &= axes_at(places, &inst.args[2..], self.counter);
                    value = inst.args[0];
                }
                Op::For { .. } => {
                    let body = &inst.blocks[0];
                    axes &= self.axes(body.results[at], body.params[at + 1]);
                    value = inst.args[at + 1];
                }
                Op::While { .. } => {
                    let body = &inst.blocks[1];
                    axes &= self.axes(body.results[at], body.params[at]);
                    value = inst.args[at];
                }
                Op::If => {
                    // Both sides must be versions of `base` itself: the chain ends here.
                    if let Some(known) = self.branches.get(&(value, base)) {
                        return axes & known;
                    }
                    let (yes, no) = (inst.blocks[0].results[at], inst.blocks[1].results[at]);
                    let both = self.axes(yes, base) & self.axes(no, base);
                    self.branches.insert((value, base), both);
                    return axes & both;
                }
                _ => return 0,
            }
        }
        axes
    }
}

/// The axes (as bits) along which an access takes the element at `index`.
fn axes_at(places: &[Axis], mut operands: &[Value], index: Value) -> u64 {
    let mut axes = 0;
    for (place, axis) in places.iter().zip(0..64) {
        let (mine, rest) = operands.split_at(place.operands());
        operands = rest;
        if *place == Axis::At && mine[0] == index {
            axes |= 1 << axis;
        }
    }
    axes
}

/// Whether the block uses the first loop's results only as rule 2 says.
fn check_reads(block: &Block, counter: Value, finals: &Finals, allowed: &mut bool) {
    let is_result = |value: &Value| finals.axes.contains_key(value);
    for inst in &block.insts {
        if let (Op::Read(places), Some(axes)) =
            (&inst.op, inst.args.first().and_then(|array| finals.axes.get(array)))
        {
            *allowed &= axes & axes_at(places, &inst.args[1..], counter) != 0;
            *allowed &= !inst.args[1..].iter().any(is_result);
        } else {
            *allowed &= !inst.args.iter().any(is_result);
        }
        inst.blocks.iter().for_each(|block| check_reads(block, counter, finals, allowed));
    }
    *allowed &= !block.results.iter().any(is_result);
}

/// One loop that does both.
fn join(mut one: Inst, mut two: Inst) -> Inst {
    let (mut second, first) = (two.blocks.remove(0), &mut one.blocks[0]);
    let mut map: FastMap<Value, Value> =
        one.results.iter().copied().zip(first.results.iter().copied()).collect();
    map.insert(second.params[0], first.params[0]);
    second.substitute(&map);
    first.params.extend(second.params.drain(1..));
    first.insts.append(&mut second.insts);
    first.results.append(&mut second.results);
    one.args.extend(two.args.drain(1..));
    one.results.append(&mut two.results);
    one
}
