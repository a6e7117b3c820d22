//! Loops in the two halves: a loop in each. The known one appends residuals to logs, the linear one reads
//! them by the round's number. A `while` of the known half counts its rounds, and is a `for` in the
//! linear half.

use crate::fast::FastMap;
use crate::op::{IntOp, Op};
use crate::program::{Block, Inst, Value};
use crate::transform::activity::carried;
use crate::transform::residual::Plan;
use crate::transform::split::{Around, Cotangents, KnownHalf, Splitter, Thread};
use crate::types::Type;

/// The cotangents of the reverse sweep through a loop: of the carried values at `with`, then of `captured`
/// ones.
pub(crate) struct WayBack {
    with: Vec<usize>,
    captured: Vec<Value>,
    pub(crate) args: Vec<Value>,
    pub(crate) params: Vec<Value>,
    pub(crate) results: Vec<Value>,
}

/// Whether a loop counts downwards.
pub(crate) fn is_descending(inst: &Inst) -> bool {
    matches!(inst.op, Op::For { descending: true, .. })
}

/// The outside of a linear loop: its operands, parameters and results without the counter.
struct Shell {
    op: Op,
    args: Vec<Value>,
    params: Vec<Value>,
    results: Vec<Value>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Surroundings {
    /// No loop is around it.
    Outermost,
    /// It runs a fixed number of times in each round of a loop that is numbered.
    Regular,
    Irregular,
}

impl Splitter<'_> {
    pub(crate) fn reverse_loop(&mut self, inst: &Inst, cotangents: &mut Cotangents, half: &mut KnownHalf) {
        let way = self.way_back(inst, cotangents);
        let op = Op::For { descending: !is_descending(inst), keep: None };
        let WayBack { args, params, results, .. } = &way;
        let shell = Shell { op, args: args.clone(), params: params.clone(), results: results.clone() };
        self.loop_halves(inst, shell, half, |this| this.round_back(inst, &way));
        self.leave_way_back(inst, way, cotangents);
    }

    /// The cotangents with which the reverse sweep through a loop starts, and names for them in its rounds
    /// and after it.
    pub(crate) fn way_back(&mut self, inst: &Inst, cotangents: &mut Cotangents) -> WayBack {
        let (_, carried, body) = carried(inst);
        let with: Vec<usize> = (0..carried.len()).filter(|&at| self.flows(carried[at])).collect();
        let mut captured = body.captures();
        captured.retain(|&value| self.flows(value));
        let mut args = Vec::new();
        for value in with.iter().map(|&at| inst.results[at]).chain(captured.iter().copied()) {
            args.push(cotangents.remove(&value).unwrap_or_else(|| self.zeros(value)));
        }
        let inner: Vec<Value> = with.iter().map(|&at| carried[at]).chain(captured.iter().copied()).collect();
        let params: Vec<Value> = inner.into_iter().map(|value| self.b.fresh_like(value)).collect();
        let results: Vec<Value> = params.iter().map(|&value| self.b.fresh_like(value)).collect();
        WayBack { with, captured, args, params, results }
    }

    /// Writes the transposed body of a loop to the open block; gives its known half and the cotangents after
    /// the round.
    pub(crate) fn round_back(&mut self, inst: &Inst, way: &WayBack) -> (KnownHalf, Vec<Value>) {
        let (_, carried, body) = carried(inst);
        let WayBack { with, captured, params, .. } = way;
        let (received, accumulators) = params.split_at(with.len());
        let mut cotangents: Cotangents = captured.iter().copied().zip(accumulators.iter().copied()).collect();
        for (&at, &received) in with.iter().zip(received) {
            self.contribute(&mut cotangents, body.results[at], received);
        }
        let known = self.reverse_insts(&body.insts, &mut cotangents);
        let mut results = Vec::new();
        for &at in with {
            results.push(cotangents.remove(&carried[at]).unwrap_or_else(|| self.zeros(carried[at])));
        }
        results.extend(captured.iter().map(|value| cotangents[value]));
        (known, results)
    }

    /// Takes over the cotangents that the reverse sweep through a loop gives.
    pub(crate) fn leave_way_back(&mut self, inst: &Inst, way: WayBack, cotangents: &mut Cotangents) {
        let (init, ..) = carried(inst);
        let WayBack { with, captured, results, .. } = way;
        // A captured value may also be an initial value, so its accumulator comes first.
        cotangents.extend(captured.into_iter().zip(results[with.len()..].iter().copied()));
        for (&at, &result) in with.iter().zip(&results) {
            self.contribute(cotangents, init[at], result);
        }
    }

    pub(crate) fn forward_loop(&mut self, inst: &Inst, half: &mut KnownHalf) {
        let (init, params, body) = carried(inst);
        let with: Vec<usize> = (0..params.len()).filter(|&at| self.flows(params[at])).collect();
        let pick = |values: &[Value]| -> Vec<Value> { with.iter().map(|&at| values[at]).collect() };
        let op = Op::For { descending: is_descending(inst), keep: None };
        let shell = Shell { op, args: pick(init), params: pick(params), results: pick(&inst.results) };
        self.loop_halves(inst, shell, half, |this| (this.forward_insts(&body.insts), pick(&body.results)));
    }

    /// Splits a loop. `write` writes the linear half of its body to the open block and gives its results.
    fn loop_halves(
        &mut self,
        inst: &Inst,
        shell: Shell,
        half: &mut KnownHalf,
        write: impl FnOnce(&mut Self) -> (KnownHalf, Vec<Value>),
    ) {
        let (_, _, body) = carried(inst);
        let surroundings = self.surroundings(inst);
        let regular = surroundings != Surroundings::Irregular;
        let flat = self.b.fresh(Type::INT);
        self.around.push(Around::Loop { flat, regular });
        let outer = self.enter(body);
        let id = self.block;
        let k = self.b.fresh(Type::INT);
        self.b.open_with([&[k], &shell.params[..]].concat());
        let (mut known, results) = write(self);
        let mut linear = self.b.close(&results);

        let round = match inst.op {
            Op::For { .. } => Some((body.params[0], k)),
            _ => None,
        };
        let mut plan = Plan::make(self, id, &known.insts, round, &linear);
        let own = plan.keep(self, flat, regular, &mut known);
        plan.recompute(self, own.available, &mut linear);
        self.around.pop();
        self.block = outer;

        let rounds = match inst.op {
            Op::For { .. } => inst.args[0],
            _ => {
                let rounds = self.b.fresh(Type::INT);
                self.own(rounds);
                rounds
            }
        };
        let mut before = Vec::new();
        self.define_flat(inst, surroundings, flat, k, rounds, &own.threads, &mut linear, &mut before);
        let args = [&[rounds], &shell.args[..]].concat();
        self.b.push(Inst {
            op: shell.op,
            args: args.into(),
            blocks: vec![linear],
            results: shell.results.into(),
            span: inst.span,
        });
        self.known_loop(inst, known, own.threads, rounds, before, half);
    }

    /// Gives `flat`, the number of the round in the logs, its meaning at the head of the linear body.
    #[allow(clippy::too_many_arguments)]
    fn define_flat(
        &mut self,
        inst: &Inst,
        surroundings: Surroundings,
        flat: Value,
        k: Value,
        rounds: Value,
        threads: &[Thread],
        linear: &mut Block,
        before: &mut Vec<Inst>,
    ) {
        let mut is_used = false;
        linear.for_each_use(&mut |value| is_used |= value == flat);
        if !is_used {
            return;
        }
        // What is needed before the linear loop goes to the open block, which is the one around it.
        let offset = match surroundings {
            Surroundings::Outermost => None,
            Surroundings::Regular => {
                let Some(Around::Loop { flat: outer, .. }) = self.around.last() else {
                    unreachable!("a regular loop is inside another")
                };
                let outer = *outer;
                let none = self.b.int(0);
                let rounds = self.b.integer(IntOp::Max, rounds, none);
                Some(self.b.integer(IntOp::Mul, outer, rounds))
            }
            Surroundings::Irregular => {
                let log = threads.first().expect("only a log is read by position").log_in;
                let offset = self.b.fresh(Type::INT);
                self.own(offset);
                before.push(Inst::new(Op::Dim(0), vec![log], vec![offset], inst.span));
                Some(offset)
            }
        };
        self.b.open_with(Vec::new());
        let mut round = k;
        if is_descending(inst) {
            let one = self.b.int(1);
            let last = self.b.integer(IntOp::Sub, rounds, one);
            round = self.b.integer(IntOp::Sub, last, k);
        }
        if let Some(offset) = offset {
            round = self.b.integer(IntOp::Add, offset, round);
        }
        let mut head = self.b.close(&[]).insts;
        linear.substitute(&FastMap::from_iter([(flat, round)]));
        head.append(&mut linear.insts);
        linear.insts = head;
    }

    /// The known half of a loop: its known carried values and the logs.
    pub(crate) fn known_loop(
        &mut self,
        inst: &Inst,
        known: KnownHalf,
        own: Vec<Thread>,
        rounds: Value,
        before: Vec<Inst>,
        half: &mut KnownHalf,
    ) {
        let (init, params, body) = carried(inst);
        let keep: Vec<usize> = (0..params.len()).filter(|&at| !self.linear.contains(&params[at])).collect();
        let pick = |values: &[Value]| -> Vec<Value> { keep.iter().map(|&at| values[at]).collect() };
        let (mut args, mut inner, mut results) = (pick(init), pick(params), pick(&inst.results));
        let mut next = pick(&body.results);
        let inner_threads = known.threads.clone();
        let mut insts = self.assemble(known, &body.params);
        let mut threads = Vec::new();
        let pushes = insts.iter().filter(|inst| inst.op == Op::Push);
        let pushed: FastMap<Value, Value> = pushes.map(|push| (push.args[0], push.results[0])).collect();
        for thread in own {
            // Its own logs: the parameter is what the push at the end of the body reads.
            let log_out = self.thread_out(thread.whole, thread.ty);
            args.push(thread.log_in);
            inner.push(thread.log_out);
            next.push(pushed[&thread.log_out]);
            results.push(log_out);
            threads.push(Thread { log_out, ..thread });
        }
        for thread in inner_threads {
            let (log_in, log_out) = (self.b.fresh(thread.ty), self.thread_out(thread.whole, thread.ty));
            args.push(log_in);
            inner.push(thread.log_in);
            next.push(thread.log_out);
            results.push(log_out);
            threads.push(Thread { log_in, log_out, ..thread });
        }
        let known = if matches!(inst.op, Op::While { .. }) {
            // Counting the rounds.
            self.b.open_with(Vec::new());
            let (start, one) = (self.b.int(0), self.b.int(1));
            let constants = self.b.close(&[]).insts;
            let (count, counted) = (self.b.fresh(Type::INT), self.b.fresh(Type::INT));
            insts.push(Inst::new(Op::Int(IntOp::Add), vec![count, one], vec![counted], inst.span));
            args.push(start);
            inner.push(count);
            next.push(counted);
            results.push(rounds);
            let head = &inst.blocks[0];
            let mut head_params: Vec<Value> = keep.iter().map(|&at| head.params[at]).collect();
            for &value in &inner[keep.len()..] {
                head_params.push(self.b.fresh_like(value));
            }
            let head = Block { params: head_params, ..head.clone() };
            let block = Block { params: inner, insts, results: next };
            let blocks = vec![head, block];
            let known = Inst {
                op: inst.op.clone(),
                args: args.into(),
                blocks,
                results: results.into(),
                span: inst.span,
            };
            half.insts.push(known);
            half.insts.extend(before);
            half.insts.extend(constants.into_iter().rev());
            None
        } else {
            let block = Block { params: [&[body.params[0]], &inner[..]].concat(), insts, results: next };
            let args = [&[inst.args[0]], &args[..]].concat();
            half.insts.extend((!results.is_empty()).then_some(Inst {
                op: inst.op.clone(),
                args: args.into(),
                blocks: vec![block],
                results: results.into(),
                span: inst.span,
            }));
            Some(before)
        };
        half.insts.extend(known.into_iter().flatten());
        self.start_threads(threads, half);
    }

    /// How a loop's rounds can be numbered over all rounds of the loops around it.
    fn surroundings(&self, inst: &Inst) -> Surroundings {
        if self.loops_around() == 0 {
            return Surroundings::Outermost;
        }
        let fixed = matches!(inst.op, Op::For { .. }) && self.depth.get(&inst.args[0]) == Some(&0);
        match self.around.last() {
            Some(Around::Loop { regular: true, .. }) if fixed => Surroundings::Regular,
            _ => Surroundings::Irregular,
        }
    }
}
