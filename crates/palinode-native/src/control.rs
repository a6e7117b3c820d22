//! Loops and branches.

use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::condcodes::IntCC;
use palinode_ir::loops::{Operand, Reg, Stmt};

use crate::codegen::Gen;

impl Gen<'_> {
    pub(crate) fn for_loop(
        &mut self,
        counter: Reg,
        rounds: Operand,
        descending: bool,
        counts: bool,
        body: &[Stmt],
    ) {
        let rounds = self.operand(rounds);
        let zero = self.int(0);
        let rounds = self.builder.ins().smax(rounds, zero);
        if counts {
            self.count(rounds);
        }
        let (head, inside, after) =
            (self.builder.create_block(), self.builder.create_block(), self.builder.create_block());
        let first = if descending { self.builder.ins().iadd_imm_s(rounds, -1) } else { zero };
        self.set(counter, first);
        let any = self.builder.ins().icmp_imm_s(IntCC::SignedGreaterThan, rounds, 0);
        self.builder.ins().brif(any, head, &[], after, &[]);
        self.builder.switch_to_block(head);
        // The body comes right after the head; the test is at its end.
        self.builder.ins().jump(inside, &[]);
        self.builder.switch_to_block(inside);
        self.block(body);
        let k = self.get(counter);
        let (next, goes_on) = if descending {
            let next = self.builder.ins().iadd_imm_s(k, -1);
            (next, self.builder.ins().icmp_imm_s(IntCC::SignedGreaterThanOrEqual, next, 0))
        } else {
            let next = self.builder.ins().iadd_imm_s(k, 1);
            (next, self.builder.ins().icmp(IntCC::SignedLessThan, next, rounds))
        };
        self.set(counter, next);
        self.builder.ins().brif(goes_on, head, &[], after, &[]);
        self.builder.switch_to_block(after);
    }

    pub(crate) fn while_loop(&mut self, condition: &[Stmt], holds: Operand, body: &[Stmt]) {
        let (head, inside, after) =
            (self.builder.create_block(), self.builder.create_block(), self.builder.create_block());
        self.builder.ins().jump(head, &[]);
        self.builder.switch_to_block(head);
        self.block(condition);
        let holds = self.operand(holds);
        self.builder.ins().brif(holds, inside, &[], after, &[]);
        self.builder.switch_to_block(inside);
        let one = self.int(1);
        self.count(one);
        self.block(body);
        self.builder.ins().jump(head, &[]);
        self.builder.switch_to_block(after);
    }

    pub(crate) fn branches(&mut self, holds: Operand, then: &[Stmt], other: &[Stmt]) {
        let holds = self.operand(holds);
        let (yes, no, after) =
            (self.builder.create_block(), self.builder.create_block(), self.builder.create_block());
        self.builder.ins().brif(holds, yes, &[], no, &[]);
        for (block, stmts) in [(yes, then), (no, other)] {
            self.builder.switch_to_block(block);
            self.block(stmts);
            self.builder.ins().jump(after, &[]);
        }
        self.builder.switch_to_block(after);
    }

    pub(crate) fn each(&mut self, axes: &[(Reg, i64, i64)], body: &[Stmt]) {
        let Some((&(counter, from, to), rest)) = axes.split_first() else {
            return self.block(body);
        };
        if rest.is_empty() && self.pairs(counter, from, to, body) {
            return;
        }
        if to - from == 1 {
            let first = self.int(from);
            self.set(counter, first);
            return self.each(rest, body);
        }
        self.counted(counter, from, to, 1, |gen_| gen_.each(rest, body));
    }

    /// Runs something for a counter from a number up to another, which is larger.
    pub(crate) fn counted(
        &mut self,
        counter: Reg,
        from: i64,
        to: i64,
        step: i64,
        body: impl FnOnce(&mut Self),
    ) {
        let (inside, after) = (self.builder.create_block(), self.builder.create_block());
        let first = self.int(from);
        self.set(counter, first);
        self.builder.ins().jump(inside, &[]);
        self.builder.switch_to_block(inside);
        body(self);
        let k = self.get(counter);
        let next = self.builder.ins().iadd_imm_s(k, step);
        self.set(counter, next);
        let goes_on = self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, next, to);
        self.builder.ins().brif(goes_on, inside, &[], after, &[]);
        self.builder.switch_to_block(after);
    }
}
