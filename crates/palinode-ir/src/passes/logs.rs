//! Entries of logs that are known.
//!
//! A log that starts empty and to which every round of a `for` pushes one scalar holds at place `k` what
//! round `k` pushed. If that follows from the number of the round and from what the loop does not change, a
//! read of the log becomes the same computation, and the log is not needed; a log of one value is that value.
//! Reverse mode keeps no such log if it knows this; the pass is for programs about whose lengths more became
//! known later, and for programs written by hand.
//!
//! Only integers, truth values and literals are computed again: the reals that reverse mode keeps are cheaper
//! to keep.
//!
//! Reading outside the log was an error, which vanishes; for every other place round `k` has computed the
//! same, so no error is added.

use super::each;
use crate::fast::FastMap;
use crate::op::{Axis, IntOp, Literal, Op, Recompute};
use crate::program::{Block, Function, Inst, Program, Value};
use crate::types::Type;

/// How many instructions are repeated for one read.
const MAX_REPEATED: usize = 8;

/// Computes entries of logs instead of reading them.
pub fn logs(program: &Program) -> Program {
    each(program, "logs", logs_function)
}

pub(super) fn logs_function(function: &mut Function) {
    if !function.has_blocks() || !function.has_arrays() {
        return;
    }
    // Then the values that a loop's body defines are those from its first parameter to its first result.
    function.renumber();
    let mut finder =
        Finder { function, definitions: vec![None; function.values.len()], found: FastMap::default() };
    finder.block(&function.body);
    let found = finder.found;
    if !found.is_empty() {
        function.rewrite(|function, body| Writer { function, found, stands: FastMap::default() }.block(body));
    }
}

/// How an entry is computed from its place.
#[derive(Clone, Debug)]
struct Entry {
    /// What to repeat, in order.
    insts: Vec<Inst>,
    value: Value,
    /// The loop's counter, and the number of rounds if it counts downwards.
    counter: Value,
    down_from: Option<Value>,
}

struct Finder<'a> {
    function: &'a Function,
    /// The instructions without blocks, by their results.
    definitions: Vec<Option<&'a Inst>>,
    /// By the log that is a loop's result.
    found: FastMap<Value, Entry>,
}

impl<'a> Finder<'a> {
    fn block(&mut self, block: &'a Block) {
        for inst in &block.insts {
            inst.blocks.iter().for_each(|block| self.block(block));
            if let Op::For { descending, .. } = inst.op {
                self.look(inst, descending);
            }
            if inst.blocks.is_empty() {
                inst.results.iter().for_each(|result| self.definitions[result.index()] = Some(inst));
            }
        }
    }

    /// Looks for logs among the results of a loop.
    fn look(&mut self, inst: &'a Inst, descending: bool) {
        let body = &inst.blocks[0];
        let Some(end) = inst.results.first().map(|result| result.0) else { return };
        let counter = body.params[0];
        let inside = |value: Value| (counter.0..end).contains(&value.0);
        for (at, &log) in inst.results.iter().enumerate() {
            let Some(push) = self.definitions[body.results[at].index()] else { continue };
            let one = push.op == Op::Push && push.args.len() == 2 && push.args[0] == body.params[at + 1];
            if !one || !self.is_empty(inst.args[at + 1]) || !self.function.ty(push.args[1]).is_scalar() {
                continue;
            }
            let mut insts = Vec::new();
            let value = push.args[1];
            if self.follow(value, counter, &inside, &mut insts) {
                let down_from = descending.then_some(inst.args[0]);
                self.found.insert(log, Entry { insts, value, counter, down_from });
            }
        }
    }

    fn is_empty(&self, log: Value) -> bool {
        let literal = |value: Value| self.definitions[value.index()].map(|inst| &inst.op);
        self.definitions[log.index()].is_some_and(|inst| {
            matches!(inst.op, Op::Broadcast(_)) && literal(inst.args[1]) == Some(&Op::Const(Literal::Int(0)))
        })
    }

    /// Collects what computes a value, if it may be repeated.
    fn follow(
        &self,
        value: Value,
        counter: Value,
        inside: &dyn Fn(Value) -> bool,
        insts: &mut Vec<Inst>,
    ) -> bool {
        let is_there =
            value == counter || !inside(value) || insts.iter().any(|inst| inst.results[0] == value);
        if is_there {
            return true;
        }
        let Some(inst) = self.definitions[value.index()] else { return false };
        let ty = self.function.ty(value);
        let may = matches!(inst.op, Op::Const(_))
            || (!ty.is_real() && ty.is_scalar() && inst.op.facts().again == Some(Recompute::Nothing));
        // The length of an array version that something consumes may not be taken later.
        let on_scalars = inst.args.iter().all(|&arg| self.function.ty(arg).is_scalar());
        if !may || !on_scalars || insts.len() >= MAX_REPEATED {
            return false;
        }
        if !inst.args.iter().all(|&arg| self.follow(arg, counter, inside, insts)) {
            return false;
        }
        insts.push(inst.clone());
        insts.len() <= MAX_REPEATED
    }
}

struct Writer<'a> {
    function: &'a mut Function,
    found: FastMap<Value, Entry>,
    /// What stands for what was read.
    stands: FastMap<Value, Value>,
}

impl Writer<'_> {
    fn resolve(&self, values: &mut [Value]) {
        values.iter_mut().for_each(|value| *value = *self.stands.get(value).unwrap_or(value));
    }

    fn block(&mut self, block: &mut Block) {
        let mut out = Vec::with_capacity(block.insts.len());
        for mut inst in core::mem::take(&mut block.insts) {
            self.resolve(&mut inst.args);
            inst.blocks.iter_mut().for_each(|block| self.block(block));
            let entry = match &inst.op {
                Op::Read(places) if places[..] == [Axis::At] => self.found.get(&inst.args[0]).cloned(),
                _ => None,
            };
            match entry {
                Some(entry) => {
                    let value = self.repeat(entry, &inst, &mut out);
                    self.stands.insert(inst.results[0], value);
                }
                None => out.push(inst),
            }
        }
        block.insts = out;
        self.resolve(&mut block.results);
    }

    fn emit(&mut self, op: Op, args: Vec<Value>, ty: Type, like: &Inst, out: &mut Vec<Inst>) -> Value {
        let result = self.function.fresh(ty, None);
        out.push(Inst::new(op, args, vec![result], like.span));
        result
    }

    /// Computes the entry that `read` reads.
    fn repeat(&mut self, entry: Entry, read: &Inst, out: &mut Vec<Inst>) -> Value {
        let mut place = read.args[1];
        let is_counted = entry.value == entry.counter || !entry.insts.is_empty();
        if let Some(mut rounds) = entry.down_from.filter(|_| is_counted) {
            self.resolve(core::slice::from_mut(&mut rounds));
            let one = self.emit(Op::Const(Literal::Int(1)), Vec::new(), Type::INT, read, out);
            let last = self.emit(Op::Int(IntOp::Sub), vec![rounds, one], Type::INT, read, out);
            place = self.emit(Op::Int(IntOp::Sub), vec![last, place], Type::INT, read, out);
        }
        // A value from outside the loop may have been read from a log, too.
        let mut here: FastMap<Value, Value> = FastMap::from_iter([(entry.counter, place)]);
        let find = |here: &FastMap<Value, Value>, this: &Self, value: Value| {
            *here.get(&value).or_else(|| this.stands.get(&value)).unwrap_or(&value)
        };
        for inst in entry.insts {
            let args = inst.args.iter().map(|&arg| find(&here, self, arg)).collect();
            let ty = self.function.ty(inst.results[0]);
            let result = self.emit(inst.op, args, ty, read, out);
            here.insert(inst.results[0], result);
        }
        find(&here, self, entry.value)
    }
}
