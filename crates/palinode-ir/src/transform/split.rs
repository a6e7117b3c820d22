//! The heart of reverse mode: a program that is linear in some of its values, cut into a known half and a
//! linear half.
//!
//! Input: a function `J` (usually tangent code) and the arguments in which it is linear. Output: the *known
//! half*, which is `J` without its linear values and which also keeps residuals; and the *linear half*,
//! forwards as it was or transposed. A loop of `J` becomes a loop in each half. Transposition is
//! accumulating: cotangents of captured values are carried through the transposed loops and updated, never
//! returned and added.
//!
//! Residuals. The linear half is written first, using known values as if they were in scope. Then each loop
//! body is asked which of its own known values the linear body used. What is cheap is computed again; the
//! rest is appended, once per round, to a log (one for each such value), which is threaded through the
//! enclosing loops of the known half and read by position in the linear half. A branch gives such values as
//! further results instead. The position is the round's number; in an inner loop, counted over all rounds: by
//! multiplication where the inner number of rounds never changes, else from an offset that the outer loop
//! keeps.
//!
//! Invariants: known values keep their numbers; the linear half never changes a log; a residual is never an
//! array that is consumed, unless the linear half needs all its elements.

use crate::builder::FunctionBuilder;
use crate::fast::{FastMap, FastSet, Marks, Table};
use crate::op::{Axis, FuncId, Kind, Op, Recompute};
use crate::passes::shape::Shapes;
use crate::program::{Block, Function, Inst, Value, Values};
use crate::transform::activity::{active, useful};
use crate::transform::storage::Storage;
use crate::transform::tangent::Differentiator;
use crate::transform::zero;
use crate::types::{Elem, Span, Type};

/// Current cotangents of linear values.
pub(crate) type Cotangents = FastMap<Value, Value>;

/// A log on its way through the known half: what an instruction takes and gives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thread {
    pub(crate) ty: Type,
    pub(crate) log_in: Value,
    pub(crate) log_out: Value,
    /// The whole log, as the linear half reads it.
    pub(crate) whole: Value,
}

/// The known half of a block: its instructions, in reverse while they are collected, and the logs that pass
/// through.
#[derive(Default)]
pub(crate) struct KnownHalf {
    pub(crate) insts: Vec<Inst>,
    pub(crate) threads: Vec<Thread>,
}

/// What surrounds the block that is being split.
pub(crate) enum Around {
    Loop {
        /// The number of the round counted over all rounds of the outer loops, in the linear half.
        flat: Value,
        /// Whether `flat` can be computed without an offset that was kept.
        regular: bool,
    },
    Branch,
}

/// Transposed and known versions of functions that are called.
pub(crate) struct Versions {
    pub(crate) differentiator: Differentiator,
    pub(crate) transposed: FastMap<(FuncId, Vec<bool>), FuncId>,
    pub(crate) known: FastMap<(FuncId, Vec<bool>), FuncId>,
    pub(crate) not_linear: Option<(Span, String)>,
    pub(crate) storage: Storage,
}

impl Versions {
    pub(crate) fn new(differentiator: Differentiator, storage: Storage) -> Versions {
        let (transposed, known) = (FastMap::default(), FastMap::default());
        Versions { differentiator, transposed, known, not_linear: None, storage }
    }
}

/// Cuts one function.
pub(crate) struct Splitter<'a> {
    pub(crate) b: FunctionBuilder,
    /// Every value that depends on the linear arguments.
    pub(crate) linear: Marks,
    /// Every value on which the linear results depend.
    pub(crate) useful: Marks,
    /// A known value of the same shape as a linear one.
    pub(crate) twins: FastMap<Value, Value>,
    pub(crate) shapes: Shapes,
    pub(crate) lengths: FastMap<(Value, u8), Value>,
    /// Known instructions to put right after the definition of a value.
    pub(crate) after: FastMap<Value, Vec<Inst>>,
    /// Integers in `after` that the linear half can compute, too.
    pub(crate) measures: FastMap<Value, Inst>,
    /// What defines a linear array, blocks left out, or a known concatenation.
    pub(crate) definitions: FastMap<Value, Inst>,
    /// The block that defines a known value.
    pub(crate) owner: Table<u32>,
    /// In how many loops a known value can change: those around it, or for integers those around what it is
    /// made from.
    pub(crate) depth: Table<u32>,
    /// Arrays that something overwrites.
    pub(crate) consumed: FastSet<Value>,
    blocks: u32,
    pub(crate) block: u32,
    pub(crate) around: Vec<Around>,
    pub(crate) shared: &'a mut Versions,
    /// The first place where the function turns out not to be linear.
    pub(crate) not_linear: Option<(Span, String)>,
}

impl<'a> Splitter<'a> {
    /// Prepares to cut `function`, which is linear in the arguments that are marked.
    pub(crate) fn new(
        function: &Function,
        linear: &[bool],
        twins: FastMap<Value, Value>,
        shared: &'a mut Versions,
    ) -> Splitter<'a> {
        let params = function.body.params.iter().zip(linear);
        let seeds: Vec<Value> = params.filter(|(_, linear)| **linear).map(|(&param, _)| param).collect();
        let linear = active(&shared.differentiator.functions, function, &seeds);
        let results: Vec<Value> =
            function.body.results.iter().copied().filter(|result| linear.contains(result)).collect();
        let (mut consumed, mut definitions) = (FastSet::default(), FastMap::default());
        function.body.for_each_inst(&mut |inst| {
            let is_concatenation = matches!(inst.op, Op::Concat(_));
            let is_array = |result: &&Value| {
                function.ty(**result).rank > 0 && (is_concatenation || linear.contains(result))
            };
            for &result in inst.results.iter().filter(is_array) {
                let Inst { op, args, results, span, .. } = inst;
                definitions.insert(result, Inst::new(op.clone(), args.clone(), results.clone(), *span));
            }
            if let Some(at) = inst.op.consumes() {
                consumed.insert(inst.args[at]);
            }
            if matches!(inst.op.facts().kind, Kind::Repeats(_) | Kind::Calls) {
                consumed.extend(&inst.args);
            }
        });
        let mut builder = FunctionBuilder::rewrite(function);
        // The linear half is collected in an open block of its own.
        builder.open_with(Vec::new());
        Splitter {
            b: builder,
            useful: useful(function, &results),
            linear,
            twins,
            shapes: Shapes::of(function),
            lengths: FastMap::default(),
            after: FastMap::default(),
            measures: FastMap::default(),
            definitions,
            owner: Table::default(),
            depth: Table::default(),
            consumed,
            blocks: 0,
            block: 0,
            around: Vec::new(),
            shared,
            not_linear: None,
        }
    }

    /// The whole function: its known half followed by its transposed linear half, from cotangents of results
    /// to those of the linear arguments `args`. `seeds` and `accumulators` pair linear results and arguments
    /// with cotangents that are there from the start.
    pub(crate) fn transpose(
        &mut self,
        function: &Function,
        seeds: &[(Value, Value)],
        args: &[Value],
        accumulators: &[(Value, Value)],
    ) -> (Vec<Inst>, Vec<Value>) {
        for &(argument, accumulator) in accumulators {
            self.twins.entry(argument).or_insert(accumulator);
        }
        self.enter(&function.body);
        let mut cotangents: Cotangents = accumulators.iter().copied().collect();
        for &(result, seed) in seeds {
            self.contribute(&mut cotangents, result, seed);
        }
        let known = self.reverse_insts(&function.body.insts, &mut cotangents);
        let found = args
            .iter()
            .map(|argument| cotangents.get(argument).copied().unwrap_or_else(|| self.zeros(*argument)))
            .collect();
        let mut insts = self.assemble(known, &function.body.params);
        insts.extend(self.b.close(&[]).insts);
        (insts, found)
    }

    /// The two halves of the whole function, the linear one forwards. It gives the tangent of each of
    /// `results`, which are known values with their tangents; zeros where there is none.
    pub(crate) fn forward(
        &mut self,
        function: &Function,
        results: &[(Value, Option<Value>)],
    ) -> (Vec<Inst>, Block) {
        self.enter(&function.body);
        let known = self.forward_insts(&function.body.insts);
        let mut tangents = Vec::new();
        for &(known, tangent) in results {
            tangents.push(tangent.unwrap_or_else(|| self.zeros(known)));
        }
        let known = self.assemble(known, &function.body.params);
        (known, self.b.close(&tangents))
    }

    pub(crate) fn flows(&self, value: Value) -> bool {
        self.linear.contains(&value) && self.useful.contains(&value)
    }

    pub(crate) fn loops_around(&self) -> u32 {
        self.around.iter().filter(|around| matches!(around, Around::Loop { .. })).count() as u32
    }

    /// Notes a known value of the block at hand.
    pub(crate) fn own(&mut self, value: Value) {
        self.owner.insert(value, self.block);
        self.depth.insert(value, self.loops_around());
    }

    /// Makes `block` the block at hand; gives the former one.
    pub(crate) fn enter(&mut self, block: &Block) -> u32 {
        let outer = self.block;
        self.blocks += 1;
        self.block = self.blocks;
        let defined = block.params.iter().chain(block.insts.iter().flat_map(|inst| &inst.results));
        for &value in defined {
            if !self.linear.contains(&value) {
                self.own(value);
            }
        }
        for inst in &block.insts {
            if let Some(depth) = self.depth_of_integer(inst) {
                self.depth.insert(inst.results[0], depth);
            }
        }
        outer
    }

    /// In how many loops the result of integer arithmetic can change.
    pub(crate) fn depth_of_integer(&self, inst: &Inst) -> Option<u32> {
        let is_whole = inst.op.facts().again == Some(Recompute::Nothing)
            && inst.results.iter().all(|&result| self.b.ty(result) == Type::INT);
        if !is_whole {
            return None;
        }
        inst.args
            .iter()
            .map(|arg| self.depth.get(arg).copied())
            .try_fold(0, |most, depth| Some(most.max(depth?)))
    }

    /// Puts the collected known instructions in order, with what belongs after certain values.
    pub(crate) fn assemble(&mut self, half: KnownHalf, params: &[Value]) -> Vec<Inst> {
        let mut insts = Vec::with_capacity(half.insts.len());
        let define = |this: &mut Self, values: &[Value], insts: &mut Vec<Inst>| {
            for value in values {
                insts.extend(this.after.remove(value).unwrap_or_default());
            }
        };
        define(self, params, &mut insts);
        for inst in half.insts.into_iter().rev() {
            let results = inst.results.clone();
            insts.push(inst);
            if !self.after.is_empty() {
                define(self, &results, &mut insts);
            }
        }
        insts
    }

    pub(crate) fn elem(&self, value: Value) -> Elem {
        self.b.ty(value).elem
    }

    /// A scalar zero of the kind of `value`.
    pub(crate) fn zero_like(&mut self, value: Value) -> Value {
        let elem = self.elem(value);
        zero(&mut self.b, elem)
    }

    /// Adds to the cotangent of a linear value; cotangents of other values are not wanted.
    pub(crate) fn contribute(&mut self, cotangents: &mut Cotangents, value: Value, cotangent: Value) {
        if !self.flows(value) {
            return;
        }
        let cotangent = if self.b.ty(value).rank == 0 && self.b.ty(cotangent).rank > 0 {
            self.b.sum(cotangent)
        } else {
            cotangent
        };
        let total = match cotangents.get(&value) {
            None => cotangent,
            Some(&so_far) => self.b.add(so_far, cotangent),
        };
        cotangents.insert(value, total);
    }

    /// Splits instructions; the linear half goes, transposed, to the builder's open block.
    pub(crate) fn reverse_insts(&mut self, insts: &[Inst], cotangents: &mut Cotangents) -> KnownHalf {
        let mut half = KnownHalf::default();
        for inst in insts.iter().rev() {
            self.b.at(inst.span);
            let wanted =
                inst.results.iter().any(|result| self.flows(*result) && cotangents.contains_key(result));
            match &inst.op {
                Op::For { keep: Some(keep), .. } | Op::While { keep: Some(keep) } if wanted => {
                    self.reverse_swept_loop(inst, *keep, cotangents, &mut half);
                }
                Op::For { .. } | Op::While { .. } if wanted => self.reverse_loop(inst, cotangents, &mut half),
                Op::If if wanted => self.reverse_branch(inst, cotangents, &mut half),
                Op::Call(callee) if wanted => self.reverse_call(inst, *callee, cotangents, &mut half),
                _ => {
                    half.insts.extend(self.strip(inst));
                    if wanted {
                        self.transpose_plain(inst, cotangents);
                    }
                }
            }
        }
        half
    }

    /// Splits instructions; the linear half goes, as it is, to the builder's open block.
    pub(crate) fn forward_insts(&mut self, insts: &[Inst]) -> KnownHalf {
        let mut pieces = Vec::new();
        for inst in insts {
            self.b.at(inst.span);
            let mut half = KnownHalf::default();
            let wanted = inst.results.iter().any(|&result| self.flows(result));
            match &inst.op {
                Op::For { .. } | Op::While { .. } if wanted => self.forward_loop(inst, &mut half),
                Op::If if wanted => self.forward_branch(inst, &mut half),
                // A call that has tangents computes its values again.
                Op::Call(_) if wanted => {
                    half.insts.extend(self.strip(inst));
                    let again = |this: &mut Self, &result: &Value| {
                        if this.linear.contains(&result) { result } else { this.b.fresh_like(result) }
                    };
                    let results = inst.results.iter().map(|result| again(self, result)).collect();
                    self.b.push(Inst { results, ..inst.clone() });
                }
                _ => {
                    half.insts.extend(self.strip(inst));
                    if wanted {
                        self.b.push(inst.clone());
                    }
                }
            }
            pieces.push(half);
        }
        let mut all = KnownHalf::default();
        for piece in pieces.into_iter().rev() {
            all.insts.extend(piece.insts);
            all.threads.extend(piece.threads);
        }
        all
    }

    /// The known part of an instruction, if it has one.
    pub(crate) fn strip(&mut self, inst: &Inst) -> Option<Inst> {
        // A call may take linear values and give none, as where a function only rounds what it takes; so may
        // what is inside of a block.
        let takes_linear = match inst.op {
            Op::Call(_) => inst.args.iter().any(|arg| self.linear.contains(arg)),
            _ => !inst.blocks.is_empty(),
        };
        if !takes_linear && !inst.results.iter().any(|result| self.linear.contains(result)) {
            return Some(inst.clone());
        }
        let keep = |this: &Self, values: &[Value], by: &[Value]| -> Vec<Value> {
            let pairs = values.iter().zip(by);
            pairs.filter(|(_, by)| !this.linear.contains(by)).map(|(&value, _)| value).collect()
        };
        let stripped = match &inst.op {
            Op::For { .. } => {
                let body = &inst.blocks[0];
                let mut args = vec![inst.args[0]];
                args.extend(keep(self, &inst.args[1..], &body.params[1..]));
                let mut block = self.strip_block(body);
                block.params = keep(self, &body.params, &body.params);
                block.results = keep(self, &body.results, &body.params[1..]);
                let results = keep(self, &inst.results, &body.params[1..]);
                Inst {
                    op: inst.op.clone(),
                    args: args.into(),
                    blocks: vec![block],
                    results: results.into(),
                    span: inst.span,
                }
            }
            Op::While { .. } => {
                let (head, body) = (&inst.blocks[0], &inst.blocks[1]);
                let mut new_head = head.clone();
                new_head.params = keep(self, &head.params, &body.params);
                let mut block = self.strip_block(body);
                block.params = keep(self, &body.params, &body.params);
                block.results = keep(self, &body.results, &body.params);
                let args = keep(self, &inst.args, &body.params);
                let results = keep(self, &inst.results, &body.params);
                let blocks = vec![new_head, block];
                Inst {
                    op: inst.op.clone(),
                    args: args.into(),
                    blocks,
                    results: results.into(),
                    span: inst.span,
                }
            }
            Op::If => {
                let results = keep(self, &inst.results, &inst.results);
                let blocks = inst.blocks.iter().map(|block| {
                    let mut stripped = self.strip_block(block);
                    stripped.results = keep(self, &block.results, &inst.results);
                    stripped
                });
                let blocks = blocks.collect();
                Inst { op: Op::If, args: inst.args.clone(), blocks, results: results.into(), span: inst.span }
            }
            Op::Call(callee) => {
                let linear: Vec<bool> = inst.args.iter().map(|arg| self.linear.contains(arg)).collect();
                let args = keep(self, &inst.args, &inst.args);
                let results = keep(self, &inst.results, &inst.results);
                if results.is_empty() {
                    return None;
                }
                let known = self.shared.known_version(*callee, &linear);
                Inst::new(Op::Call(known), args, results, inst.span)
            }
            _ => return None,
        };
        (inst.results.is_empty() || !stripped.results.is_empty()).then_some(stripped)
    }

    /// The known part of a block; parameters and results as they were.
    pub(crate) fn strip_block(&mut self, block: &Block) -> Block {
        let insts = block.insts.iter().filter_map(|inst| self.strip(inst)).collect();
        let linear = &self.linear;
        let results = block.results.iter().copied().filter(|result| !linear.contains(result)).collect();
        Block { params: block.params.clone(), insts, results }
    }

    /// The value of a log after an instruction: the whole log if nothing is around.
    pub(crate) fn thread_out(&mut self, whole: Value, ty: Type) -> Value {
        if self.around.is_empty() { whole } else { self.b.fresh(ty) }
    }

    /// Logs that come out of an instruction: they begin here at the outermost level, else further out.
    pub(crate) fn start_threads(&mut self, threads: Vec<Thread>, half: &mut KnownHalf) {
        if !self.around.is_empty() {
            half.threads.extend(threads);
            return;
        }
        for thread in threads {
            let mut insts = Vec::new();
            self.empty(thread.ty, thread.log_in, &mut insts);
            half.insts.extend(insts.into_iter().rev());
        }
    }

    /// Instructions that define `value` as an empty array.
    fn empty(&mut self, ty: Type, value: Value, insts: &mut Vec<Inst>) {
        self.b.open_with(Vec::new());
        let (zero, none) = (zero(&mut self.b, ty.elem), self.b.int(0));
        insts.extend(self.b.close(&[]).insts);
        let args: Values = core::iter::once(zero).chain((0..ty.rank).map(|_| none)).collect();
        insts.push(Inst::new(Op::Broadcast(Vec::new()), args, vec![value], Span::NONE));
    }

    /// A value of this type that is never looked at.
    pub(crate) fn dummy(&mut self, ty: Type, insts: &mut Vec<Inst>) -> Value {
        if ty.rank > 0 {
            let value = self.b.fresh(ty);
            self.empty(ty, value, insts);
            return value;
        }
        self.b.open_with(Vec::new());
        let value = zero(&mut self.b, ty.elem);
        insts.extend(self.b.close(&[]).insts);
        value
    }
}

/// Reads an element of a log.
pub(crate) fn read_log(b: &mut FunctionBuilder, log: Value, at: Value) -> Value {
    b.emit(Op::Read(vec![Axis::At]), &[log, at])
}
