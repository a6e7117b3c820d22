//! Arithmetic: rows of the rule table, comparisons, checked integers.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{self, Type};
use cranelift_codegen::ir::{InstBuilder, Value};
use palinode_core::rules::Row;
use palinode_ir::loops::{Kind, Operand, Reg, Way};
use palinode_ir::{Comparison, IntOp, Rule};

use crate::codegen::{Gen, little};
use crate::runtime;

impl Gen<'_> {
    /// A row of the rule table.
    pub(crate) fn map(&mut self, rule: Rule, args: &[Value]) -> Value {
        if Way::of(rule) == Way::Arithmetic {
            return self.arithmetic(rule, args);
        }
        let zero = self.builder.ins().f64const(0.0);
        let row = self.builder.ins().iconst(types::I32, runtime::number(rule.row));
        let parameter = self.builder.ins().iconst(types::I32, i64::from(rule.parameter));
        let at = |n: usize| args.get(n).copied().unwrap_or(zero);
        let (a, b, c) = (at(0), at(1), at(2));
        self.call(runtime::Which::Map, &[row, parameter, a, b, c]).expect("a real")
    }

    /// Rows that are a few instructions, on doubles and on pairs of them.
    pub(crate) fn arithmetic(&mut self, rule: Rule, args: &[Value]) -> Value {
        let a = args[0];
        let of = self.builder.func.dfg.value_type(a);
        let one = |gen_: &mut Self| {
            let one = gen_.builder.ins().f64const(1.0);
            gen_.wide(one, of)
        };
        match rule.row {
            Row::Add => self.builder.ins().fadd(a, args[1]),
            Row::Subtract => self.builder.ins().fsub(a, args[1]),
            Row::Multiply => self.builder.ins().fmul(a, args[1]),
            Row::Divide => self.builder.ins().fdiv(a, args[1]),
            Row::Negate => self.sign(a, false),
            Row::Abs => self.sign(a, true),
            Row::Sqrt => self.builder.ins().sqrt(a),
            Row::Recip => {
                let one = one(self);
                self.builder.ins().fdiv(one, a)
            }
            Row::StrongMul => {
                // A zero factor wins over infinity and NaN.
                let b = args[1];
                let product = self.builder.ins().fmul(a, b);
                let zero = self.builder.ins().f64const(0.0);
                let zero = self.wide(zero, of);
                let nan = self.builder.ins().fcmp(FloatCC::Unordered, product, product);
                let (x, y) = (
                    self.builder.ins().fcmp(FloatCC::Equal, a, zero),
                    self.builder.ins().fcmp(FloatCC::Equal, b, zero),
                );
                let any = self.builder.ins().bor(x, y);
                let wins = self.builder.ins().band(nan, any);
                self.choose(wins, zero, product)
            }
            Row::Relu => {
                let zero = self.builder.ins().f64const(0.0);
                let zero = self.wide(zero, of);
                let below = self.builder.ins().fcmp(FloatCC::LessThan, a, zero);
                self.choose(below, zero, a)
            }
            Row::Powi => match rule.parameter {
                0 => one(self),
                1 => a,
                2 => self.builder.ins().fmul(a, a),
                3 => {
                    let square = self.builder.ins().fmul(a, a);
                    self.builder.ins().fmul(square, a)
                }
                _ => {
                    let one = one(self);
                    self.builder.ins().fdiv(one, a)
                }
            },
            row => unreachable!("`{}` is a function", row.name()),
        }
    }

    /// A number with the other sign, or with none. Of pairs by a mask that stays in a register: Cranelift
    /// would make one each time.
    fn sign(&mut self, a: Value, absolute: bool) -> Value {
        let of = self.builder.func.dfg.value_type(a);
        if !of.is_vector() {
            return if absolute { self.builder.ins().fabs(a) } else { self.builder.ins().fneg(a) };
        }
        let mask = self.int(if absolute { i64::MAX } else { i64::MIN });
        let mask = self.builder.ins().splat(types::I64X2, mask);
        let bits = self.builder.ins().bitcast(types::I64X2, little(), a);
        let bits =
            if absolute { self.builder.ins().band(bits, mask) } else { self.builder.ins().bxor(bits, mask) };
        self.builder.ins().bitcast(of, little(), bits)
    }

    /// A double, or a pair of copies of it.
    pub(crate) fn wide(&mut self, value: Value, of: Type) -> Value {
        if of.is_vector() { self.builder.ins().splat(of, value) } else { value }
    }

    /// A choice by the result of a comparison, on doubles and on pairs.
    pub(crate) fn choose(&mut self, holds: Value, a: Value, b: Value) -> Value {
        let of = self.builder.func.dfg.value_type(a);
        if !of.is_vector() {
            return self.builder.ins().select(holds, a, b);
        }
        let mask = self.builder.ins().bitcast(of, little(), holds);
        self.builder.ins().bitselect(mask, a, b)
    }

    pub(crate) fn compare(&mut self, op: Comparison, a: Operand, b: Operand) -> Value {
        let is_real = self.kind(a) == Kind::Real;
        let (x, y) = (self.operand(a), self.operand(b));
        if !is_real {
            let condition = match op {
                Comparison::Less => IntCC::SignedLessThan,
                Comparison::LessEq => IntCC::SignedLessThanOrEqual,
                Comparison::Equal => IntCC::Equal,
            };
            return self.builder.ins().icmp(condition, x, y);
        }
        let suspicious = self.suspicious(x, y);
        let (cold, next) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().brif(suspicious, cold, &[], next, &[]);
        self.enter(cold);
        self.builder.set_cold_block(cold);
        self.show(op, x, y);
        self.builder.ins().jump(next, &[]);
        self.enter(next);
        self.builder.ins().fcmp(condition(op), x, y)
    }

    /// Shows a comparison to the hook for decisions, which may end the run.
    pub(crate) fn show(&mut self, op: Comparison, x: Value, y: Value) {
        let is_equality = self.builder.ins().iconst(types::I32, i64::from(op == Comparison::Equal));
        let goes_on = self.call(runtime::Which::Compared, &[x, y, is_equality]).expect("whether it goes on");
        self.unless(goes_on);
    }

    /// Whether the hook for decisions must see a comparison: it may be suspicious, or all are asked for.
    pub(crate) fn suspicious(&mut self, x: Value, y: Value) -> Value {
        let of = self.builder.func.dfg.value_type(x);
        let (a, b) = (self.sign(x, true), self.sign(y, true));
        let most = self.builder.ins().fmax(a, b);
        let tiny = self.builder.ins().f64const(runtime::TINY);
        let infinity = self.builder.ins().f64const(f64::INFINITY);
        let (tiny, infinity) = (self.wide(tiny, of), self.wide(infinity, of));
        let same = self.builder.ins().fcmp(FloatCC::Equal, x, y);
        let nan = self.builder.ins().fcmp(FloatCC::Unordered, x, y);
        let tie = self.builder.ins().bor(same, nan);
        let small = self.builder.ins().fcmp(FloatCC::LessThanOrEqual, most, tiny);
        let large = self.builder.ins().fcmp(FloatCC::Equal, most, infinity);
        let any = self.builder.ins().bor(tie, small);
        let any = self.builder.ins().bor(any, large);
        if of.is_vector() { any } else { self.builder.ins().bor(any, self.shows_all) }
    }

    /// Checked integer arithmetic; what goes wrong is noted, and gives any number.
    pub(crate) fn integer(&mut self, op: IntOp, a: Value, b: Value) -> Value {
        match op {
            IntOp::Add => {
                let (value, over) = self.builder.ins().sadd_overflow(a, b);
                self.note(over);
                value
            }
            IntOp::Sub => {
                let (value, over) = self.builder.ins().ssub_overflow(a, b);
                self.note(over);
                value
            }
            IntOp::Mul => {
                let (value, over) = self.builder.ins().smul_overflow(a, b);
                self.note(over);
                value
            }
            IntOp::Div => self.divided(a, b, true),
            IntOp::Rem => self.divided(a, b, false),
            IntOp::Min => self.builder.ins().smin(a, b),
            IntOp::Max => self.builder.ins().smax(a, b),
        }
    }

    /// The floor of a quotient, or the remainder.
    fn divided(&mut self, a: Value, b: Value, quotient: bool) -> Value {
        let zero = self.builder.ins().icmp_imm_s(IntCC::Equal, b, 0);
        self.note(zero);
        let minus = self.builder.ins().icmp_imm_s(IntCC::Equal, b, -1);
        let least = self.builder.ins().icmp_imm_s(IntCC::Equal, a, i64::MIN);
        let over = self.builder.ins().band(minus, least);
        if quotient {
            self.note(over);
        }
        // Division by 1 instead, which traps nowhere and leaves nothing.
        let one = self.int(1);
        let odd = self.builder.ins().bor(zero, over);
        let by = self.builder.ins().select(odd, one, b);
        let (q, r) = (self.builder.ins().sdiv(a, by), self.builder.ins().srem(a, by));
        let rest = self.builder.ins().icmp_imm_s(IntCC::NotEqual, r, 0);
        let signs = self.builder.ins().bxor(r, by);
        let differ = self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, signs, 0);
        let down = self.builder.ins().band(rest, differ);
        if quotient {
            let less = self.builder.ins().iadd_imm_s(q, -1);
            self.builder.ins().select(down, less, q)
        } else {
            let more = self.builder.ins().iadd(r, by);
            self.builder.ins().select(down, more, r)
        }
    }

    pub(crate) fn truncate(&mut self, to: Reg, a: Operand) {
        let a = self.operand(a);
        let whole = self.builder.ins().trunc(a);
        let (low, high) = (
            self.builder.ins().f64const(-9_223_372_036_854_775_808.0),
            self.builder.ins().f64const(9_223_372_036_854_775_808.0),
        );
        let (above, below) = (
            self.builder.ins().fcmp(FloatCC::GreaterThanOrEqual, whole, low),
            self.builder.ins().fcmp(FloatCC::LessThan, whole, high),
        );
        let inside = self.builder.ins().band(above, below);
        let outside = self.builder.ins().bxor_imm_s(inside, 1);
        self.note(outside);
        let value = self.builder.ins().fcvt_to_sint_sat(types::I64, whole);
        self.set(to, value);
    }
}

pub(crate) fn condition(op: Comparison) -> FloatCC {
    match op {
        Comparison::Less => FloatCC::LessThan,
        Comparison::LessEq => FloatCC::LessThanOrEqual,
        Comparison::Equal => FloatCC::Equal,
    }
}
