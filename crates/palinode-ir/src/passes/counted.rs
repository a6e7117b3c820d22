//! What a loop changes by the same amount in every round, from the number of the round.
//!
//! A log to which every round of a `for` pushes the same number of elements has, at the start of a round, as
//! many as before the loop plus that number for each round that is over. Its `dim` becomes this sum, which
//! needs no version of the log. An integer to which every round adds the same amount is no longer carried. So
//! positions in logs, which reverse mode asks for in every round, are computed from counters instead of being
//! kept in logs of their own.
//!
//! Inner loops count, too: such a loop adds its number of rounds times what one of them adds, if that is the
//! same in every round of the enclosing loop.
//!
//! Other lengths that are needed are taken where their arrays are made, as in [`super::dims`].
//!
//! No error is added: every intermediate sum and product is at most the length or integer that it leads to
//! (or, for an integer that changes by one, the counter). Lengths are taken to be below 2^60, as in
//! [`super::hoist`]: addresses have fewer bits.

use super::each;
use super::shape::{Len, Shapes};
use crate::fast::{FastMap, FastSet};
use crate::op::{IntOp, Literal, Op};
use crate::program::{Block, Function, Inst, Program, Value};
use crate::types::{Span, Type};

/// Replaces what loops carry by what their counters say.
pub fn counted(program: &Program) -> Program {
    each(program, "counted", counted_function)
}

pub(super) fn counted_function(function: &mut Function) {
    if !function.has_blocks() {
        return;
    }
    // Then the values that a loop's body defines are those from its first parameter to its first result.
    function.renumber();
    let shapes = Shapes::of(function);
    let mut finder = Finder {
        function,
        shapes: &shapes,
        definitions: vec![None; function.values.len()],
        formulas: FastMap::default(),
        asked: Vec::new(),
    };
    finder.block(&function.body);
    let found = finder.found();
    if found.is_empty() {
        return;
    }
    let lens = found.values().flat_map(Formula::lens);
    let needed = lens.filter_map(|len| match len {
        Len::Axis(array, axis) if axis > 0 || !found.contains_key(&array) => Some((array, axis)),
        Len::Axis(..) | Len::Literal(_) | Len::Value(_) => None,
    });
    let needed: FastSet<(Value, u8)> = needed.collect();
    function.rewrite(|function, body| {
        Writer { function, found, needed, stands: FastMap::default(), lengths: FastMap::default() }
            .block(body);
    });
}

/// A factor of what a round adds.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Factor {
    Len(Len),
    /// The rounds of an inner loop: its operand.
    Rounds(Value),
}

/// A product of integers that are at least 0; without factors it is 1.
type Amount = Vec<Factor>;

/// How far a loop has come.
#[derive(Clone, Copy, Debug)]
enum Over {
    /// So many rounds are over: the counter, and the number of rounds if it counts downwards.
    Some { counter: Value, down_from: Option<Value> },
    /// All of so many rounds.
    All(Value),
}

/// An integer, or the length of a log: a start, and amounts for each round that is over.
#[derive(Clone, Debug)]
struct Formula {
    start: Len,
    over: Over,
    amounts: Vec<Amount>,
    /// An integer that decreases by one in each round instead.
    falls: bool,
}

impl Formula {
    fn lens(&self) -> impl Iterator<Item = Len> {
        let factors = self.amounts.iter().flatten().filter_map(|factor| match *factor {
            Factor::Len(len) => Some(len),
            Factor::Rounds(_) => None,
        });
        factors.chain([self.start])
    }
}

struct Finder<'a> {
    function: &'a Function,
    shapes: &'a Shapes,
    /// What defines a value, with its position among the results.
    definitions: Vec<Option<(&'a Inst, usize)>>,
    /// By parameter or result of a loop.
    formulas: FastMap<Value, Formula>,
    /// The arrays whose `dim` is taken.
    asked: Vec<Value>,
}

impl<'a> Finder<'a> {
    fn block(&mut self, block: &'a Block) {
        for inst in &block.insts {
            inst.blocks.iter().for_each(|block| self.block(block));
            for (at, &result) in inst.results.iter().enumerate() {
                self.definitions[result.index()] = Some((inst, at));
            }
            match inst.op {
                Op::Dim(_) => self.ask(self.shapes.len(inst.args[0], 0)),
                Op::For { descending, .. } => self.count(inst, descending),
                _ => {}
            }
        }
    }

    fn ask(&mut self, len: Len) {
        if let Len::Axis(array, _) = len {
            self.asked.push(array);
        }
    }

    /// Finds the formulas of a loop after those of its body.
    fn count(&mut self, inst: &Inst, descending: bool) {
        let (rounds, body) = (inst.args[0], &inst.blocks[0]);
        let counter = body.params[0];
        // Defined in the body.
        let Some(end) = inst.results.first().map(|result| result.0) else { return };
        let inside = |value: Value| (counter.0..end).contains(&value.0);
        let now = Over::Some { counter, down_from: descending.then_some(rounds) };
        for (at, &result) in inst.results.iter().enumerate() {
            let (init, param, next) = (inst.args[at + 1], body.params[at + 1], body.results[at]);
            let ty = self.function.ty(param);
            let found = if ty == Type::INT {
                self.steps(next, param, &inside).and_then(|found| self.safe(init, found))
            } else if ty.rank == 1 && self.shapes.len(param, 0) == Len::Axis(param, 0) {
                self.growth(next, param, &inside).map(|amounts| (self.shapes.len(init, 0), amounts, false))
            } else {
                None
            };
            let Some((start, amounts, falls)) = found else { continue };
            let formula = Formula { start, over: now, amounts, falls };
            self.formulas.insert(result, Formula { over: Over::All(rounds), ..formula.clone() });
            self.formulas.insert(param, formula);
        }
    }

    fn definition(&self, value: Value) -> Option<(&'a Inst, usize)> {
        self.definitions[value.index()]
    }

    /// What a loop adds to `init`, which it carries as this result: each amount times the number of rounds.
    fn of_inner(&self, result: Value) -> Option<Vec<Amount>> {
        let Formula { over: Over::All(rounds), amounts, falls: false, .. } = self.formulas.get(&result)?
        else {
            return None;
        };
        let all = |amount: &Amount| [&[Factor::Rounds(*rounds)], &amount[..]].concat();
        Some(amounts.iter().map(all).collect())
    }

    fn is_fixed(&self, amount: &Amount, inside: &dyn Fn(Value) -> bool) -> bool {
        amount.iter().all(|factor| match *factor {
            Factor::Len(Len::Literal(_)) => true,
            Factor::Len(Len::Value(value) | Len::Axis(value, _)) | Factor::Rounds(value) => !inside(value),
        })
    }

    /// How many elements a round adds to a log that it is given as `param`.
    fn growth(&self, next: Value, param: Value, inside: &dyn Fn(Value) -> bool) -> Option<Vec<Amount>> {
        let (mut log, mut found) = (next, Vec::new());
        while log != param {
            let (inst, at) = self.definition(log)?;
            match inst.op {
                Op::Push => found.extend(inst.args[1..].iter().map(|&pushed| self.size(pushed))),
                Op::Concat(0) => found.extend(inst.args[1..].iter().map(|&part| self.size(part))),
                Op::Write(_) | Op::AddAt(_) => {}
                Op::For { .. } => {
                    found.extend(self.of_inner(log)?);
                    log = inst.args[at + 1];
                    continue;
                }
                _ => return None,
            }
            log = inst.args[0];
        }
        found.iter().all(|amount| self.is_fixed(amount, inside)).then_some(found)
    }

    fn size(&self, value: Value) -> Amount {
        let rank = self.function.ty(value).rank;
        (0..rank).map(|axis| Factor::Len(self.shapes.len(value, axis))).collect()
    }

    /// What a round adds to an integer that it is given as `param`, and whether it subtracts one instead.
    fn steps(
        &self,
        next: Value,
        param: Value,
        inside: &dyn Fn(Value) -> bool,
    ) -> Option<(Vec<Amount>, bool)> {
        let (mut now, mut found) = (next, Vec::new());
        while now != param {
            let (inst, at) = self.definition(now)?;
            let amount = |value: Value| vec![Factor::Len(self.shapes.int(value))];
            match inst.op {
                Op::Int(IntOp::Add) => {
                    let (a, b) = (inst.args[0], inst.args[1]);
                    let (rest, added) = if self.is_fixed(&amount(b), inside) { (a, b) } else { (b, a) };
                    found.push(amount(added));
                    now = rest;
                }
                Op::Int(IntOp::Sub) => {
                    let one = self.shapes.int(inst.args[1]) == Len::Literal(1);
                    let alone = now == next && inst.args[0] == param;
                    return (one && alone).then(|| (vec![Vec::new()], true));
                }
                Op::For { .. } => {
                    found.extend(self.of_inner(now)?);
                    now = inst.args[at + 1];
                }
                _ => return None,
            }
        }
        found.iter().all(|amount| self.is_fixed(amount, inside)).then_some((found, false))
    }

    /// A start and amounts whose sums cannot overflow if the integer itself does not.
    fn safe(&self, init: Value, found: (Vec<Amount>, bool)) -> Option<(Len, Vec<Amount>, bool)> {
        let (amounts, falls) = found;
        let start = self.shapes.int(init);
        let by_one = match &amounts[..] {
            [amount] => amount.iter().all(|factor| *factor == Factor::Len(Len::Literal(1))),
            _ => false,
        };
        let positive = |len: Len| match len {
            Len::Literal(number) => number >= 0,
            Len::Axis(..) => true,
            Len::Value(_) => false,
        };
        let all_positive = amounts.iter().flatten().all(|factor| match *factor {
            Factor::Len(len) => positive(len),
            Factor::Rounds(_) => true,
        });
        (by_one || (all_positive && positive(start))).then_some((start, amounts, falls))
    }

    /// The formulas that are needed: those of integers, and of lengths that are read.
    fn found(mut self) -> FastMap<Value, Formula> {
        let mut needed: FastSet<Value> = FastSet::default();
        let ints = self.formulas.keys().copied().filter(|&value| self.function.ty(value) == Type::INT);
        let mut waiting: Vec<Value> = ints.chain(core::mem::take(&mut self.asked)).collect();
        while let Some(value) = waiting.pop() {
            let Some(formula) = self.formulas.get(&value).filter(|_| needed.insert(value)) else { continue };
            for len in formula.lens() {
                if let Len::Axis(array, 0) = len {
                    waiting.push(array);
                }
            }
        }
        self.formulas.retain(|value, _| needed.contains(value));
        self.formulas
    }
}

struct Writer<'a> {
    function: &'a mut Function,
    found: FastMap<Value, Formula>,
    /// Lengths to take where their arrays are made.
    needed: FastSet<(Value, u8)>,
    /// What stands for an integer.
    stands: FastMap<Value, Value>,
    /// Lengths that are available.
    lengths: FastMap<(Value, u8), Value>,
}

impl Writer<'_> {
    fn block(&mut self, block: &mut Block) {
        let mut out = Vec::with_capacity(block.insts.len());
        for &param in &block.params {
            self.define(param, Span::NONE, &mut out);
        }
        for mut inst in core::mem::take(&mut block.insts) {
            self.resolve(&mut inst.args);
            inst.blocks.iter_mut().for_each(|block| self.block(block));
            let length = match inst.op {
                Op::Dim(axis) => self.lengths.get(&(inst.args[0], axis)).copied(),
                _ => None,
            };
            if let Some(length) = length {
                self.stands.insert(inst.results[0], length);
                continue;
            }
            let (results, span) = (inst.results.clone(), inst.span);
            out.push(inst);
            results.iter().for_each(|&result| self.define(result, span, &mut out));
        }
        block.insts = out;
        self.resolve(&mut block.results);
    }

    fn resolve(&self, values: &mut [Value]) {
        values.iter_mut().for_each(|value| *value = self.stand(*value));
    }

    fn stand(&self, value: Value) -> Value {
        *self.stands.get(&value).unwrap_or(&value)
    }

    fn emit(&mut self, op: Op, args: Vec<Value>, span: Span, out: &mut Vec<Inst>) -> Value {
        let result = self.function.fresh(Type::INT, None);
        out.push(Inst::new(op, args, vec![result], span));
        result
    }

    fn literal(&mut self, number: i64, span: Span, out: &mut Vec<Inst>) -> Value {
        self.emit(Op::Const(Literal::Int(number)), Vec::new(), span, out)
    }

    fn len(&mut self, len: Len, span: Span, out: &mut Vec<Inst>) -> Value {
        match len {
            Len::Literal(number) => self.literal(number, span, out),
            Len::Value(value) => self.stand(value),
            Len::Axis(array, axis) => self.lengths[&(array, axis)],
        }
    }

    /// A number of rounds; a negative operand means none.
    fn at_least_none(&mut self, rounds: Value, span: Span, out: &mut Vec<Inst>) -> Value {
        let none = self.literal(0, span, out);
        let rounds = self.stand(rounds);
        self.emit(Op::Int(IntOp::Max), vec![rounds, none], span, out)
    }

    /// Computes what has a formula and is defined from here on, and lengths that are needed later.
    fn define(&mut self, value: Value, span: Span, out: &mut Vec<Inst>) {
        for axis in 0..self.function.ty(value).rank {
            if self.needed.remove(&(value, axis)) {
                let length = self.emit(Op::Dim(axis), vec![value], span, out);
                self.lengths.insert((value, axis), length);
            }
        }
        let Some(Formula { start, over, amounts, falls }) = self.found.remove(&value) else { return };
        let int = |op| Op::Int(op);
        let rounds = match over {
            Over::Some { counter, down_from: None } => counter,
            Over::Some { counter, down_from: Some(rounds) } => {
                let (one, rounds) = (self.literal(1, span, out), self.stand(rounds));
                let last = self.emit(int(IntOp::Sub), vec![rounds, one], span, out);
                self.emit(int(IntOp::Sub), vec![last, counter], span, out)
            }
            Over::All(rounds) => self.at_least_none(rounds, span, out),
        };
        let mut sum = self.len(start, span, out);
        for amount in amounts {
            let mut product = rounds;
            for factor in amount {
                let factor = match factor {
                    Factor::Len(len) => self.len(len, span, out),
                    Factor::Rounds(rounds) => self.at_least_none(rounds, span, out),
                };
                product = self.emit(int(IntOp::Mul), vec![product, factor], span, out);
            }
            let op = if falls { IntOp::Sub } else { IntOp::Add };
            sum = self.emit(int(op), vec![sum, product], span, out);
        }
        if self.function.ty(value).is_scalar() {
            self.stands.insert(value, sum);
        } else {
            self.lengths.insert((value, 0), sum);
        }
    }
}
