//! Loops over elements of rows, in pairs.

use std::collections::HashMap;

use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::Variable;
use palinode_ir::Comparison;
use palinode_ir::loops::{Index, Kind, Operand, Reg, Stmt, Way};

use crate::arithmetic::condition;
use crate::codegen::{Gen, little, trusted};

/// How many elements are one vector.
const PAIR: i64 = 2;

/// Of so short a body two vectors are computed in a round.
const SHORT: usize = 24;

impl Gen<'_> {
    /// Runs a row in pairs if all its statements can run so; returns whether it did.
    pub(crate) fn pairs(&mut self, counter: Reg, from: i64, to: i64, body: &[Stmt]) -> bool {
        if to - from < 2 * PAIR || !body.iter().all(|stmt| self.is_paired(stmt, counter)) {
            return false;
        }
        let zero = self.builder.ins().f64const(0.0);
        let zero = self.builder.ins().splat(types::F64X2, zero);
        let none = self.builder.ins().bitcast(types::I64X2, little(), zero);
        let bad = self.builder.declare_var(types::I64X2);
        self.builder.def_var(bad, none);
        let vectors = if body.len() <= SHORT { 2 } else { 1 };
        let mut next = from + (to - from) / (vectors * PAIR) * (vectors * PAIR);
        self.counted(counter, from, next, vectors * PAIR, |gen_| {
            (0..vectors).for_each(|vector| gen_.pair(counter, vector * PAIR, body, bad));
        });
        if to - next >= PAIR {
            let first = self.int(next);
            self.set(counter, first);
            self.pair(counter, 0, body, bad);
            next += PAIR;
        }
        let bits = self.builder.use_var(bad);
        for lane in 0..2 {
            let bits = self.builder.ins().extractlane(bits, lane);
            self.note_bits(bits);
        }
        if next < to {
            let last = self.int(next);
            self.set(counter, last);
            self.block(body);
        }
        true
    }

    /// A pair of rounds, so many after that of the counter.
    fn pair(&mut self, counter: Reg, more: i64, body: &[Stmt], bad: Variable) {
        let mut lanes: HashMap<Reg, Value> = HashMap::new();
        for stmt in body {
            self.paired(stmt, counter, more, &mut lanes, bad);
        }
    }

    fn is_real(&self, operand: Operand) -> bool {
        self.kind(operand) == Kind::Real
    }

    fn step(index: &Index, counter: Reg) -> i64 {
        index.terms.iter().find(|term| term.0 == counter).map_or(0, |term| term.1)
    }

    fn is_paired(&self, stmt: &Stmt, counter: Reg) -> bool {
        if self.unproven.contains(stmt) {
            return false;
        }
        match stmt {
            Stmt::Map { rule, .. } => Way::of(*rule) == Way::Arithmetic,
            Stmt::Load { buf, at, .. } => {
                self.form.buffers[buf.index()].kind == Kind::Real && matches!(Self::step(at, counter), 0 | 1)
            }
            Stmt::Store { buf, at, .. } => {
                self.form.buffers[buf.index()].kind == Kind::Real && Self::step(at, counter) == 1
            }
            Stmt::Finite { .. } => true,
            Stmt::Compare { a, b, .. } => self.is_real(*a) && self.is_real(*b),
            Stmt::And { .. } | Stmt::Or { .. } | Stmt::Not { .. } => true,
            Stmt::Select { to, .. } => self.form.registers[to.index()] == Kind::Real,
            Stmt::Move { to, .. } => self.form.registers[to.index()] == Kind::Real,
            _ => false,
        }
    }

    /// An operand for both lanes; truth values are masks.
    fn lanes(&mut self, operand: Operand, lanes: &HashMap<Reg, Value>) -> Value {
        if let Operand::Reg(reg) = operand
            && let Some(&value) = lanes.get(&reg)
        {
            return value;
        }
        let value = self.operand(operand);
        if self.is_real(operand) {
            return self.builder.ins().splat(types::F64X2, value);
        }
        let wide = self.builder.ins().uextend(types::I64, value);
        let mask = self.builder.ins().ineg(wide);
        self.builder.ins().splat(types::I64X2, mask)
    }

    fn paired(
        &mut self,
        stmt: &Stmt,
        counter: Reg,
        more: i64,
        lanes: &mut HashMap<Reg, Value>,
        bad: Variable,
    ) {
        match stmt {
            Stmt::Map { rule, to, args } => {
                let args: Vec<Value> = args.iter().map(|&arg| self.lanes(arg, lanes)).collect();
                let value = self.arithmetic(*rule, &args);
                lanes.insert(*to, value);
            }
            Stmt::Load { to, buf, at } => {
                let step = Self::step(at, counter);
                let (base, offset) = self.address(*buf, at, step * more);
                let value = if step == 0 {
                    let one = self.builder.ins().load(types::F64, trusted(), base, offset);
                    self.builder.ins().splat(types::F64X2, one)
                } else {
                    let flags = trusted_unaligned();
                    self.builder.ins().load(types::F64X2, flags, base, offset)
                };
                lanes.insert(*to, value);
            }
            Stmt::Store { buf, at, from } => {
                let value = self.lanes(*from, lanes);
                let (base, offset) = self.address(*buf, at, more);
                self.builder.ins().store(trusted_unaligned(), value, base, offset);
            }
            Stmt::Finite { a } => {
                let a = self.lanes(*a, lanes);
                let zero = self.builder.ins().fsub(a, a);
                let bits = self.builder.ins().bitcast(types::I64X2, little(), zero);
                self.note_pair(bits, bad);
            }
            Stmt::Compare { op, to, a, b } => {
                let (x, y) = (self.lanes(*a, lanes), self.lanes(*b, lanes));
                self.shown(*op, x, y);
                let value = self.builder.ins().fcmp(condition(*op), x, y);
                lanes.insert(*to, value);
            }
            Stmt::And { to, a, b } => {
                let (x, y) = (self.lanes(*a, lanes), self.lanes(*b, lanes));
                let value = self.builder.ins().band(x, y);
                lanes.insert(*to, value);
            }
            Stmt::Or { to, a, b } => {
                let (x, y) = (self.lanes(*a, lanes), self.lanes(*b, lanes));
                let value = self.builder.ins().bor(x, y);
                lanes.insert(*to, value);
            }
            Stmt::Not { to, a } => {
                let x = self.lanes(*a, lanes);
                let value = self.builder.ins().bnot(x);
                lanes.insert(*to, value);
            }
            Stmt::Select { to, holds, a, b } => {
                let (x, y) = (self.lanes(*a, lanes), self.lanes(*b, lanes));
                let holds = self.lanes(*holds, lanes);
                let value = self.choose(holds, x, y);
                lanes.insert(*to, value);
            }
            Stmt::Move { to, from } => {
                let value = self.lanes(*from, lanes);
                lanes.insert(*to, value);
            }
            other => unreachable!("{other:?} is not done in pairs"),
        }
    }

    /// Shows a pair of comparisons to the hook for decisions, one after the other, if it must see one.
    fn shown(&mut self, op: Comparison, x: Value, y: Value) {
        let suspicious = self.suspicious(x, y);
        let any = self.builder.ins().vany_true(suspicious);
        let (cold, next) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().brif(any, cold, &[], next, &[]);
        self.builder.switch_to_block(cold);
        self.builder.set_cold_block(cold);
        for lane in 0..2 {
            let pair = [x, y].map(|x| self.builder.ins().extractlane(x, lane));
            self.show(op, pair[0], pair[1]);
        }
        self.builder.ins().jump(next, &[]);
        self.builder.switch_to_block(next);
    }

    fn note_pair(&mut self, bits: Value, bad: Variable) {
        let so_far = self.builder.use_var(bad);
        let so_far = self.builder.ins().bor(so_far, bits);
        self.builder.def_var(bad, so_far);
    }
}

fn trusted_unaligned() -> cranelift_codegen::ir::MemFlagsData {
    // Elements are aligned, pairs of them are not.
    cranelift_codegen::ir::MemFlagsData::new().with_notrap()
}
