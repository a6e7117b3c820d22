//! Loops that keep no residuals: the known half runs the loop as it is, the linear half is a sweep.
//!
//! Input: a loop with a limit of how much its reverse sweep may keep. Output: the loop itself, which counts
//! its rounds if it is a `while`; and an [`Op::Sweep`] from the initial known values, whose `advance` is the
//! known body, and whose `back` is the known body followed by the transposed linear body. What the transposed
//! body needs of the known one is in scope there, so nothing is logged; loops inside the body have logs of
//! their own that last for one round.
//!
//! Invariant: cotangents are added up in the order of the loop that keeps residuals, by the same operations,
//! so the bits are the same.

use crate::fast::FastMap;
use crate::op::{IntOp, Keep, Op};
use crate::program::{Block, Inst, Value};
use crate::transform::activity::carried;
use crate::transform::split::{Cotangents, KnownHalf, Splitter};
use crate::transform::split_loops::is_descending;
use crate::types::Type;

impl Splitter<'_> {
    pub(crate) fn reverse_swept_loop(
        &mut self,
        inst: &Inst,
        keep: Keep,
        cotangents: &mut Cotangents,
        half: &mut KnownHalf,
    ) {
        let (init, params, body) = carried(inst);
        let way = self.way_back(inst, cotangents);
        let known: Vec<usize> = (0..params.len()).filter(|&at| !self.linear.contains(&params[at])).collect();
        let pick = |values: &[Value]| -> Vec<Value> { known.iter().map(|&at| values[at]).collect() };

        // Within a round nothing is around it: logs begin and end there.
        let around = core::mem::take(&mut self.around);
        let outer = self.enter(body);
        self.b.open_with(Vec::new());
        let (round, results) = self.round_back(inst, &way);
        let linear = self.b.close(&results);
        let mut insts = self.assemble(round, &body.params);
        insts.extend(linear.insts);
        self.block = outer;
        self.around = around;

        let rounds = match inst.op {
            Op::For { .. } => inst.args[0],
            _ => {
                let rounds = self.b.fresh(Type::INT);
                self.own(rounds);
                rounds
            }
        };
        let state = pick(params);
        let back = Block { params: [&state[..], &way.params[..]].concat(), insts, results: linear.results };
        let back = self.counted(inst, rounds, back);
        let advance = Block { params: state, results: pick(&body.results), ..self.strip_block(body) };
        let advance = self.counted(inst, rounds, advance);
        let advance = self.renewed(&advance);
        let args = [&[rounds], &pick(init)[..], &way.args[..]].concat();
        let results = way.results.clone();
        self.b.push(Inst {
            op: Op::Sweep { keep, turns: false },
            args: args.into(),
            blocks: vec![advance, back],
            results: results.into(),
            span: inst.span,
        });
        self.leave_way_back(inst, way, cotangents);

        // The loop itself. Its values keep their numbers in `back`, so here they get new ones.
        let mut stripped = self.strip_block(body).insts;
        stripped.reverse();
        let at = half.insts.len();
        let known = KnownHalf { insts: stripped, threads: Vec::new() };
        self.known_loop(inst, known, Vec::new(), rounds, Vec::new(), half);
        if half.insts.len() > at {
            let blocks = core::mem::take(&mut half.insts[at].blocks);
            half.insts[at].blocks = blocks.iter().map(|block| self.renewed(block)).collect();
        }
    }

    /// A block of a sweep that is given the number of the round first: the loop's counter follows from it.
    fn counted(&mut self, inst: &Inst, rounds: Value, mut block: Block) -> Block {
        let round = self.b.fresh(Type::INT);
        let mut first = round;
        if let Op::For { .. } = inst.op {
            let counter = inst.blocks[0].params[0];
            if is_descending(inst) {
                self.b.open_with(Vec::new());
                let one = self.b.int(1);
                let last = self.b.integer(IntOp::Sub, rounds, one);
                let mut head = self.b.close(&[]).insts;
                head.push(Inst::new(Op::Int(IntOp::Sub), vec![last, round], vec![counter], inst.span));
                head.append(&mut block.insts);
                block.insts = head;
            } else {
                first = counter;
            }
        }
        block.params.insert(0, first);
        block
    }

    /// The same block, with values of its own.
    fn renewed(&mut self, block: &Block) -> Block {
        let mut defined = Vec::new();
        block.for_each_definition(&mut |value| defined.push(value));
        let fresh: FastMap<Value, Value> =
            defined.into_iter().map(|value| (value, self.b.fresh_like(value))).collect();
        let mut block = block.clone();
        block.rename(&|value| *fresh.get(&value).unwrap_or(&value));
        block
    }
}
