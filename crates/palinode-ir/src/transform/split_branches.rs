//! Branches in the two halves: a branch in each, by the same condition. What the linear branch needs of the
//! known one becomes a further result of the known one; the side not taken gives something that is never
//! looked at.

use crate::fast::FastSet;
use crate::op::Op;
use crate::program::{Block, Inst, Value};
use crate::transform::residual::Plan;
use crate::transform::split::{Around, Cotangents, KnownHalf, Splitter, Thread};

impl Splitter<'_> {
    pub(crate) fn reverse_branch(&mut self, inst: &Inst, cotangents: &mut Cotangents, half: &mut KnownHalf) {
        let mut captured: Vec<Value> = inst.blocks.iter().flat_map(Block::captures).collect();
        captured.retain(|&value| self.flows(value));
        let mut seen = FastSet::default();
        captured.retain(|&value| seen.insert(value));
        let received: Vec<Option<Value>> =
            inst.results.iter().map(|result| cotangents.remove(result)).collect();
        let accumulators: Vec<Value> = captured
            .iter()
            .map(|&value| cotangents.remove(&value).unwrap_or_else(|| self.zeros(value)))
            .collect();
        let results: Vec<Value> = captured.iter().map(|&value| self.b.fresh_like(value)).collect();
        self.branch_halves(inst, results.clone(), half, |this, block| {
            let mut inner: Cotangents = captured.iter().copied().zip(accumulators.iter().copied()).collect();
            for (&given, received) in block.results.iter().zip(&received) {
                if let Some(received) = received {
                    this.contribute(&mut inner, given, *received);
                }
            }
            let known = this.reverse_insts(&block.insts, &mut inner);
            (known, captured.iter().map(|value| inner[value]).collect())
        });
        cotangents.extend(captured.into_iter().zip(results));
    }

    pub(crate) fn forward_branch(&mut self, inst: &Inst, half: &mut KnownHalf) {
        let with: Vec<usize> = (0..inst.results.len()).filter(|&at| self.flows(inst.results[at])).collect();
        let results = with.iter().map(|&at| inst.results[at]).collect();
        self.branch_halves(inst, results, half, |this, block| {
            let known = this.forward_insts(&block.insts);
            (known, with.iter().map(|&at| block.results[at]).collect())
        });
    }

    /// Splits a branch. `write` writes the linear half of a block to the open block and gives its results.
    fn branch_halves(
        &mut self,
        inst: &Inst,
        linear_results: Vec<Value>,
        half: &mut KnownHalf,
        write: impl Fn(&mut Self, &Block) -> (KnownHalf, Vec<Value>),
    ) {
        let outer = self.block;
        let mut sides = Vec::new();
        let mut linear_blocks = Vec::new();
        for block in &inst.blocks {
            self.enter(block);
            let id = self.block;
            self.around.push(Around::Branch);
            self.b.open_with(Vec::new());
            let (known, results) = write(self, block);
            let mut linear = self.b.close(&results);
            let plan = Plan::make(self, id, &known.insts, None, &linear);
            self.around.pop();
            self.block = outer;
            let mut exports = Vec::new();
            for &value in &plan.stored {
                let out = self.b.fresh_like(value);
                self.own(out);
                exports.push((value, out));
            }
            plan.recompute(self, exports.iter().copied().collect(), &mut linear);
            linear_blocks.push(linear);
            sides.push((block, known, exports));
        }
        self.b.push(Inst {
            op: Op::If,
            args: inst.args.clone(),
            blocks: linear_blocks,
            results: linear_results.into(),
            span: inst.span,
        });

        // The known half: own results, exports of either side, logs of either side.
        let keep: Vec<usize> =
            (0..inst.results.len()).filter(|&at| !self.linear.contains(&inst.results[at])).collect();
        let mut results: Vec<Value> = keep.iter().map(|&at| inst.results[at]).collect();
        let mut given: [Vec<Value>; 2] =
            [0, 1].map(|side| keep.iter().map(|&at| inst.blocks[side].results[at]).collect());
        let mut padding: [Vec<Inst>; 2] = [Vec::new(), Vec::new()];
        let mut threads = Vec::new();
        for (side, (_, known, exports)) in sides.iter().enumerate() {
            for &(value, out) in exports {
                results.push(out);
                given[side].push(value);
                let dummy = self.dummy(self.b.ty(value), &mut padding[1 - side]);
                given[1 - side].push(dummy);
            }
            for thread in &known.threads {
                let log_out = self.thread_out(thread.whole, thread.ty);
                results.push(log_out);
                given[side].push(thread.log_out);
                given[1 - side].push(thread.log_in);
                threads.push(Thread { log_out, ..*thread });
            }
        }
        let mut blocks = Vec::new();
        for (((block, known, _), padding), results) in sides.into_iter().zip(padding).zip(given) {
            let mut insts = self.assemble(known, &block.params);
            insts.extend(padding);
            blocks.push(Block { params: Vec::new(), insts, results });
        }
        if !results.is_empty() {
            half.insts.push(Inst {
                op: Op::If,
                args: inst.args.clone(),
                blocks,
                results: results.into(),
                span: inst.span,
            });
            self.start_threads(threads, half);
        }
    }
}
