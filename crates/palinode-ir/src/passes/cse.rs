//! Common subexpressions.
//!
//! An instruction without blocks that repeats an earlier one (the same operation on the same operands; the
//! order of the operands of sums and products does not matter) is replaced by it. The earlier one must be in
//! the same block or one around it. Calls count too: functions are pure.
//!
//! An array that may be consumed (updated, carried by a loop, given to a function, yielded) is not shared:
//! two updates of one version would force a copy, which costs as much as computing it again and keeps it
//! alive for longer.

use std::hash::{Hash, Hasher};

use super::each;
use super::memory::taken;
use crate::fast::{FastMap, Numbers};
use crate::op::Op;
use crate::program::{Block, Function, Inst, Program, Value};

/// Shares common subexpressions.
pub fn cse(program: &Program) -> Program {
    each(program, "cse", cse_function)
}

pub(super) fn cse_function(function: &mut Function) {
    share(function, &|_, _, _| true);
    function.renumber();
}

/// Shares what `accepts` says, by the first results of an instruction and of the later one that it may stand
/// for; gives what stands for each value. Values keep their numbers.
pub(crate) fn share(function: &mut Function, accepts: &Accepts<'_>) -> Vec<Value> {
    let mut sharing = Sharing {
        consumed: may_be_consumed(function),
        accepts,
        open: Vec::new(),
        known: FastMap::default(),
        stands: (0..function.values.len() as u32).map(Value).collect(),
    };
    let mut body = core::mem::take(&mut function.body);
    sharing.block(function, &mut body);
    function.body = body;
    sharing.stands
}

/// The arrays whose memory a later version may take over.
fn may_be_consumed(function: &Function) -> Vec<bool> {
    let mut consumed = vec![false; function.values.len()];
    let mut yielded = |block: &Block| {
        block.results.iter().for_each(|result| consumed[result.index()] |= !function.ty(*result).is_scalar());
    };
    yielded(&function.body);
    function.body.for_each_inst(&mut |inst| inst.blocks.iter().for_each(&mut yielded));
    function.body.for_each_inst(&mut |inst| {
        taken(function, inst).into_iter().for_each(|version| consumed[version.index()] = true);
    });
    consumed
}

type Accepts<'a> = dyn Fn(&Function, Value, Value) -> bool + 'a;

struct Sharing<'a> {
    consumed: Vec<bool>,
    accepts: &'a Accepts<'a>,
    /// What stays of the open blocks, outermost first.
    open: Vec<Vec<Inst>>,
    /// Where in `open` something has been computed, by [`key`]. Of two things with one key only the first can
    /// be shared.
    known: FastMap<u64, (u32, u32)>,
    stands: Vec<Value>,
}

impl Sharing<'_> {
    fn resolve(&self, values: &mut [Value]) {
        values.iter_mut().for_each(|value| *value = self.stands[value.index()]);
    }

    fn block(&mut self, function: &mut Function, block: &mut Block) {
        let depth = self.open.len();
        let mut own = Vec::new();
        let insts = core::mem::take(&mut block.insts);
        self.open.push(Vec::with_capacity(insts.len()));
        for mut inst in insts {
            self.resolve(&mut inst.args);
            inst.blocks.iter_mut().for_each(|block| self.block(function, block));
            let shared =
                inst.blocks.is_empty() && !inst.results.iter().any(|result| self.consumed[result.index()]);
            if shared {
                let key = key(&inst);
                match self.known.get(&key) {
                    None => {
                        self.known.insert(key, (depth as u32, self.open[depth].len() as u32));
                        own.push(key);
                    }
                    Some(&(depth, at)) => {
                        let known = &self.open[depth as usize][at as usize];
                        let accepts = || (self.accepts)(function, known.results[0], inst.results[0]);
                        if is_same(known, &inst) && accepts() {
                            for (&result, &value) in inst.results.iter().zip(&known.results) {
                                self.stands[result.index()] = value;
                                share_name(function, value, result, &inst.op);
                            }
                            continue;
                        }
                    }
                }
            }
            self.open[depth].push(inst);
        }
        block.insts = self.open.pop().expect("it was pushed above");
        self.resolve(&mut block.results);
        // What the outermost block knows is forgotten with the table.
        if depth > 0 {
            for key in own {
                self.known.remove(&key);
            }
        }
    }
}

/// Whether two instructions compute the same.
fn is_same(a: &Inst, b: &Inst) -> bool {
    let swapped = || matches!((&a.args[..], &b.args[..]), ([p, q], [r, s]) if p == s && q == r);
    a.op == b.op && (a.args == b.args || a.op.facts().commutes && swapped())
}

/// The name of a value that now also stands for `other`.
fn share_name(function: &mut Function, value: Value, other: Value, op: &Op) {
    let other = function.name_of(other).cloned();
    let name = &mut function.values[value.index()].name;
    if matches!(op, Op::Const(_)) {
        // A literal that serves several is none of them.
        if *name != other {
            *name = None;
        }
    } else if name.is_none() {
        *name = other;
    }
}

/// A hash of the operation and its operands; those of a commutative operation in either order have the same.
fn key(inst: &Inst) -> u64 {
    let mut hasher = Numbers::default();
    inst.op.hash(&mut hasher);
    match inst.args[..] {
        [a, b] if inst.op.facts().commutes => [a.min(b), a.max(b)].hash(&mut hasher),
        _ => inst.args.hash(&mut hasher),
    }
    hasher.finish()
}
