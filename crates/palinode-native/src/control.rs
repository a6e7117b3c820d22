//! Loops and branches.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use palinode_ir::loops::{Index, Kept, Operand, Reg, Stmt};

use crate::codegen::{Gen, trusted};
use crate::runtime::{self, Which};

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
        self.enter(inside);
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
        self.builder.seal_block(head);
        self.enter(after);
    }

    pub(crate) fn while_loop(&mut self, condition: &[Stmt], holds: Operand, body: &[Stmt]) {
        let (head, inside, after) =
            (self.builder.create_block(), self.builder.create_block(), self.builder.create_block());
        self.builder.ins().jump(head, &[]);
        self.builder.switch_to_block(head);
        self.block(condition);
        let holds = self.operand(holds);
        self.builder.ins().brif(holds, inside, &[], after, &[]);
        self.enter(inside);
        let one = self.int(1);
        self.count(one);
        self.block(body);
        self.builder.ins().jump(head, &[]);
        self.builder.seal_block(head);
        self.enter(after);
    }

    /// A reverse sweep: asks for what is next, and does that.
    pub(crate) fn sweep(
        &mut self,
        counter: Reg,
        rounds: Operand,
        room: u64,
        state: &[Kept],
        [advance, back]: [&[Stmt]; 2],
        turn: Option<&[Stmt]>,
    ) {
        let rounds = self.operand(rounds);
        let room = self.int(room as i64);
        let turns = self.int(i64::from(turn.is_some()));
        let context = self.context;
        self.call(Which::SweepBegin, &[context, rounds, room, turns]);
        let slot = self.slot(2);
        let head = self.builder.create_block();
        self.builder.ins().jump(head, &[]);
        self.builder.switch_to_block(head);
        let about = self.builder.ins().stack_addr(self.pointer, slot, 0);
        let code = self.call(Which::SweepNext, &[context, about]).expect("what is next");
        let first = self.builder.ins().load(types::I64, trusted(), about, 0);
        let second = self.builder.ins().load(types::I64, trusted(), about, 8);
        let is = |gen_: &mut Self, which: i64, code: Value| {
            let (yes, no) = (gen_.builder.create_block(), gen_.builder.create_block());
            let holds = gen_.builder.ins().icmp_imm_s(IntCC::Equal, code, which);
            gen_.builder.ins().brif(holds, yes, &[], no, &[]);
            gen_.builder.switch_to_block(yes);
            no
        };
        // Rounds backwards are most frequent, then rounds forwards.
        let next = is(self, runtime::BACK, code);
        let one = self.int(1);
        self.count(one);
        self.set(counter, first);
        self.block(back);
        self.builder.ins().jump(head, &[]);
        self.builder.switch_to_block(next);
        let next = is(self, runtime::ADVANCE, code);
        let rounds = self.builder.ins().isub(second, first);
        self.count(rounds);
        self.set(counter, first);
        let round = self.builder.create_block();
        self.builder.ins().jump(round, &[]);
        self.builder.switch_to_block(round);
        self.block(advance);
        let k = self.get(counter);
        let k = self.builder.ins().iadd_imm_s(k, 1);
        self.set(counter, k);
        let goes_on = self.builder.ins().icmp(IntCC::SignedLessThan, k, second);
        self.builder.ins().brif(goes_on, round, &[], head, &[]);
        self.builder.switch_to_block(next);
        if let Some(turn) = turn {
            let next = is(self, runtime::TURN, code);
            let one = self.int(1);
            self.count(one);
            self.block(turn);
            self.builder.ins().jump(head, &[]);
            self.builder.switch_to_block(next);
        }
        for (which, keeps) in [(runtime::KEEP, true), (runtime::RESTORE, false)] {
            let next = is(self, which, code);
            state.iter().for_each(|kept| self.snapshot(*kept, first, keeps));
            self.builder.ins().jump(head, &[]);
            self.builder.switch_to_block(next);
        }
    }

    /// Keeps a part of a state as the snapshot with a number, or restores it.
    fn snapshot(&mut self, kept: Kept, number: Value, keeps: bool) {
        let zero = Index::constant(0);
        let bytes =
            |gen_: &Self, buf: palinode_ir::loops::Buf| gen_.form.buffers[buf.index()].kind.bytes() as i64;
        match kept {
            Kept::Scalar { reg, snapshots } => {
                let home = self.pointer_at(snapshots, &zero);
                let bytes = bytes(self, snapshots);
                let offset = self.builder.ins().imul_imm_s(number, bytes);
                let at = self.builder.ins().iadd(home, offset);
                if keeps {
                    let value = self.get(reg);
                    self.builder.ins().store(trusted(), value, at, 0);
                } else {
                    let of = self.register_type(reg);
                    let value = self.builder.ins().load(of, trusted(), at, 0);
                    self.set(reg, value);
                }
            }
            Kept::Array { buf, count, snapshots } => {
                let bytes = count as i64 * bytes(self, snapshots);
                let state = self.pointer_at(buf, &zero);
                let home = self.pointer_at(snapshots, &zero);
                let offset = self.builder.ins().imul_imm_s(number, bytes);
                let at = self.builder.ins().iadd(home, offset);
                let bytes = self.int(bytes);
                let (to, from) = if keeps { (at, state) } else { (state, at) };
                self.call(Which::Copy, &[to, from, bytes]);
            }
        }
    }

    pub(crate) fn branches(&mut self, holds: Operand, then: &[Stmt], other: &[Stmt]) {
        let holds = self.operand(holds);
        let (yes, no, after) =
            (self.builder.create_block(), self.builder.create_block(), self.builder.create_block());
        self.builder.ins().brif(holds, yes, &[], no, &[]);
        for (block, stmts) in [(yes, then), (no, other)] {
            self.enter(block);
            self.block(stmts);
            self.builder.ins().jump(after, &[]);
        }
        self.enter(after);
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
        self.builder.seal_block(inside);
        self.enter(after);
    }
}
