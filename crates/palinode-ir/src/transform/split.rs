//! The heart of reverse mode: a program that is linear in some of its values, cut into a known half and a linear half.
//!
//! Input: a function `J` (usually tangent code) and the arguments in which it is linear. Output: the *known half*, which is
//! `J` without its linear values and which also keeps residuals; and the *linear half*, forwards as it was or transposed. A loop
//! of `J` becomes a loop in each half. Transposition is accumulating: cotangents of captured values are carried through the
//! transposed loops and updated, never returned and added.
//!
//! Residuals. The linear half is written first, using known values as if they were in scope. Then each loop body is asked
//! which of its own known values the linear body used. What is cheap is computed again; the rest is appended, once per
//! iteration, to a log (one for each such value), which is threaded through the enclosing loops of the known half and read by
//! position in the linear half. A branch gives such values as further results instead. The position is the iteration's
//! number; in an inner loop, counted over all rounds: by multiplication where the inner trip count never changes, else from an
//! offset that the outer loop keeps.
//!
//! Invariants: known values keep their numbers; the linear half never changes a log; a residual is never an array that is
//! consumed, unless the linear half needs all its elements.

use std::collections::{HashMap, HashSet};

use crate::builder::FunctionBuilder;
use crate::op::{Axis, FuncId, IntOp, Op};
use crate::program::{Block, Function, Inst, Value};
use crate::transform::activity::{active, carried, useful};
use crate::transform::residual::Plan;
use crate::transform::shape::{Root, Shapes};
use crate::transform::tangent::{Differentiator, zero};
use crate::types::{Elem, Span, Type};

/// Current cotangents of linear values.
pub(crate) type Cotangents = HashMap<Value, Value>;

/// A log on its way through the known half: what an instruction takes and gives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thread {
    pub(crate) ty: Type,
    pub(crate) log_in: Value,
    pub(crate) log_out: Value,
    /// The whole log, as the linear half reads it.
    pub(crate) whole: Value,
}

/// The known half of a block: its instructions, in reverse while they are collected, and the logs that pass through.
#[derive(Default)]
pub(crate) struct KnownHalf {
    pub(crate) insts: Vec<Inst>,
    pub(crate) threads: Vec<Thread>,
}

/// What surrounds the block that is being split.
pub(crate) enum Around {
    Loop {
        /// The number of the iteration counted over all rounds of the outer loops, in the linear half.
        flat: Value,
        /// Whether `flat` can be computed without an offset that was kept.
        regular: bool,
    },
    Branch,
}

/// Cuts one function.
pub(crate) struct Splitter<'a> {
    pub(crate) b: FunctionBuilder,
    /// Every value that depends on the linear arguments.
    pub(crate) linear: HashSet<Value>,
    /// Every value on which the linear results depend.
    pub(crate) useful: HashSet<Value>,
    /// A known value of the same shape as a linear one.
    twins: HashMap<Value, Value>,
    pub(crate) shapes: Shapes,
    lengths: HashMap<(Value, u8), Value>,
    /// Known instructions to put right after the definition of a value.
    after: HashMap<Value, Vec<Inst>>,
    /// The block that defines a known value, and how many loops are around it.
    pub(crate) owner: HashMap<Value, u32>,
    pub(crate) depth: HashMap<Value, usize>,
    /// Arrays that something overwrites.
    pub(crate) consumed: HashSet<Value>,
    blocks: u32,
    pub(crate) block: u32,
    pub(crate) around: Vec<Around>,
    pub(crate) shared: &'a mut Versions,
    /// The first place where the function turns out not to be linear.
    pub(crate) not_linear: Option<(Span, String)>,
}

/// Transposed and known versions of functions that are called.
pub(crate) struct Versions {
    pub(crate) differentiator: Differentiator,
    transposed: HashMap<(FuncId, Vec<bool>), FuncId>,
    known: HashMap<(FuncId, Vec<bool>), FuncId>,
    pub(crate) not_linear: Option<(Span, String)>,
}

impl Versions {
    pub(crate) fn new(differentiator: Differentiator) -> Versions {
        Versions { differentiator, transposed: HashMap::new(), known: HashMap::new(), not_linear: None }
    }

    fn reserve(&mut self, base: &str, suffix: &str) -> FuncId {
        let functions = &mut self.differentiator.functions;
        let id = FuncId(functions.len() as u32);
        functions.push(Function::new(&format!("{base}_{suffix}_{}", id.0)));
        id
    }

    fn get(&self, id: FuncId) -> Function {
        self.differentiator.functions[id.index()].clone()
    }

    fn set(&mut self, id: FuncId, mut function: Function) {
        let slot = &mut self.differentiator.functions[id.index()];
        function.name = slot.name.clone();
        *slot = function;
    }

    /// The function without the arguments marked as linear and without what depends on them.
    pub(crate) fn known_version(&mut self, callee: FuncId, linear: &[bool]) -> FuncId {
        let key = (callee, linear.to_vec());
        if let Some(&made) = self.known.get(&key) {
            return made;
        }
        let function = self.get(callee);
        let id = self.reserve(&function.name, "known");
        self.known.insert(key, id);
        let mut splitter = Splitter::new(&function, linear, HashMap::new(), self);
        let mut body = splitter.strip_block(&function.body);
        body.params.retain(|param| !splitter.linear.contains(param));
        let (mut function, _) = splitter.b.finish(&[]);
        function.body = body;
        self.set(id, function);
        id
    }

    /// The function of the known arguments, the cotangents of the linear results and the accumulators of the linear arguments,
    /// which gives the accumulators. It runs the known half again: a call keeps no residuals.
    pub(crate) fn transposed_version(&mut self, callee: FuncId, linear: &[bool]) -> FuncId {
        let key = (callee, linear.to_vec());
        if let Some(&made) = self.transposed.get(&key) {
            return made;
        }
        let function = self.get(callee);
        let id = self.reserve(&function.name, "transposed");
        self.transposed.insert(key, id);
        let twins = self.differentiator.pairs.get(&callee).cloned().unwrap_or_default();
        let mut splitter = Splitter::new(&function, linear, twins, self);
        let results: Vec<Value> = function.body.results.clone();
        let seeds: Vec<(Value, Value)> = results
            .iter()
            .filter(|&result| splitter.linear.contains(result))
            .map(|&result| (result, splitter.b.fresh_like(result)))
            .collect();
        let args: Vec<Value> =
            function.body.params.iter().copied().filter(|param| splitter.linear.contains(param)).collect();
        let accumulators: Vec<(Value, Value)> =
            args.iter().map(|&arg| (arg, splitter.b.fresh_like(arg))).collect();
        let (insts, found) = splitter.transpose(&function, &seeds, &args, &accumulators);
        let mut params: Vec<Value> =
            function.body.params.iter().copied().filter(|param| !splitter.linear.contains(param)).collect();
        params.extend(seeds.iter().chain(&accumulators).map(|&(_, value)| value));
        let problem = splitter.not_linear.take();
        let (mut function, mistakes) = splitter.b.finish(&[]);
        assert!(mistakes.is_empty(), "transposed code is well typed: {mistakes:?}");
        function.body = Block { params, insts, results: found };
        self.set(id, function);
        self.not_linear = self.not_linear.take().or(problem);
        id
    }
}

impl<'a> Splitter<'a> {
    /// Prepares to cut `function`, which is linear in the arguments that are marked.
    pub(crate) fn new(
        function: &Function,
        linear: &[bool],
        twins: HashMap<Value, Value>,
        shared: &'a mut Versions,
    ) -> Splitter<'a> {
        let params = function.body.params.iter().zip(linear);
        let seeds: Vec<Value> = params.filter(|(_, linear)| **linear).map(|(&param, _)| param).collect();
        let linear = active(&shared.differentiator.functions, function, &seeds);
        let results: Vec<Value> =
            function.body.results.iter().copied().filter(|result| linear.contains(result)).collect();
        let mut consumed = HashSet::new();
        function.body.for_each_inst(&mut |inst| {
            if let Some(at) = inst.op.consumes() {
                consumed.insert(inst.args[at]);
            }
            if matches!(inst.op, Op::For { .. } | Op::While | Op::Call(_)) {
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
            lengths: HashMap::new(),
            after: HashMap::new(),
            owner: HashMap::new(),
            depth: HashMap::new(),
            consumed,
            blocks: 0,
            block: 0,
            around: Vec::new(),
            shared,
            not_linear: None,
        }
    }

    /// The whole function: its known half followed by its transposed linear half, from cotangents of results to
    /// those of the linear arguments `args`. `seeds` and `accumulators` pair linear results and arguments with
    /// cotangents that are there from the start.
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

    /// The two halves of the whole function, the linear one forwards. It gives the tangent of each of `results`, which are
    /// known values with their tangents; zeros where there is none.
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

    pub(crate) fn loops_around(&self) -> usize {
        self.around.iter().filter(|around| matches!(around, Around::Loop { .. })).count()
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
        outer
    }

    /// Puts the collected known instructions in order, with what belongs after certain values.
    pub(crate) fn assemble(&mut self, half: KnownHalf, params: &[Value]) -> Vec<Inst> {
        let mut insts = Vec::new();
        let define = |this: &mut Self, values: &[Value], insts: &mut Vec<Inst>| {
            for value in values {
                insts.extend(this.after.remove(value).unwrap_or_default());
            }
        };
        define(self, params, &mut insts);
        for inst in half.insts.into_iter().rev() {
            let results = inst.results.clone();
            insts.push(inst);
            define(self, &results, &mut insts);
        }
        insts
    }

    /// The length of a known array along an axis, computed where the array is defined.
    pub(crate) fn length(&mut self, array: Value, axis: u8) -> Value {
        let array = match self.shapes.root(array) {
            Root::Lengths(lengths) => return lengths[usize::from(axis)],
            Root::Array(array) => array,
        };
        if let Some(&length) = self.lengths.get(&(array, axis)) {
            return length;
        }
        let length = self.b.fresh(Type::INT);
        self.lengths.insert((array, axis), length);
        if let (Some(&owner), Some(&depth)) = (self.owner.get(&array), self.depth.get(&array)) {
            self.owner.insert(length, owner);
            self.depth.insert(length, depth);
            let inst = Inst::new(Op::Dim(axis), vec![array], vec![length], Span::NONE);
            self.after.entry(array).or_default().push(inst);
        } else {
            // An accumulator: it belongs to the linear half and is there from the start.
            self.lengths.remove(&(array, axis));
            return self.b.dim(array, axis);
        }
        length
    }

    /// The lengths of a linear array.
    pub(crate) fn lengths_of(&mut self, value: Value) -> Vec<Value> {
        let rank = self.b.ty(value).rank;
        if rank == 0 {
            return Vec::new();
        }
        let twin = self.twin(value);
        (0..rank).map(|axis| self.length(twin, axis)).collect()
    }

    /// A known array of the shape of a linear one, or one whose lengths are known.
    fn twin(&self, value: Value) -> Value {
        let known = |value: Value| match self.twins.get(&value) {
            Some(&twin) => Some(twin),
            None => (!self.linear.contains(&value)).then_some(value),
        };
        self.shapes.alike(value, &known).unwrap_or(value)
    }

    /// Zeros of the shape of a linear value.
    pub(crate) fn zeros(&mut self, value: Value) -> Value {
        let lengths = self.lengths_of(value);
        let zero = self.zero_like(value);
        self.b.fill(zero, &lengths)
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
                Op::For { .. } | Op::While if wanted => self.reverse_loop(inst, cotangents, &mut half),
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
                Op::For { .. } | Op::While if wanted => self.forward_loop(inst, &mut half),
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
        if !inst.results.iter().any(|result| self.linear.contains(result)) {
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
                Inst { op: inst.op.clone(), args, blocks: vec![block], results, span: inst.span }
            }
            Op::While => {
                let (head, body) = (&inst.blocks[0], &inst.blocks[1]);
                let mut new_head = head.clone();
                new_head.params = keep(self, &head.params, &body.params);
                let mut block = self.strip_block(body);
                block.params = keep(self, &body.params, &body.params);
                block.results = keep(self, &body.results, &body.params);
                let args = keep(self, &inst.args, &body.params);
                let results = keep(self, &inst.results, &body.params);
                Inst { op: Op::While, args, blocks: vec![new_head, block], results, span: inst.span }
            }
            Op::If => {
                let results = keep(self, &inst.results, &inst.results);
                let blocks = inst.blocks.iter().map(|block| {
                    let mut stripped = self.strip_block(block);
                    stripped.results = keep(self, &block.results, &inst.results);
                    stripped
                });
                let blocks = blocks.collect();
                Inst { op: Op::If, args: inst.args.clone(), blocks, results, span: inst.span }
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
        (!stripped.results.is_empty()).then_some(stripped)
    }

    /// The known part of a block; parameters and results as they were.
    pub(crate) fn strip_block(&mut self, block: &Block) -> Block {
        let insts = block.insts.iter().filter_map(|inst| self.strip(inst)).collect();
        let linear = &self.linear;
        let results = block.results.iter().copied().filter(|result| !linear.contains(result)).collect();
        Block { params: block.params.clone(), insts, results }
    }

    fn reverse_call(
        &mut self,
        inst: &Inst,
        callee: FuncId,
        cotangents: &mut Cotangents,
        half: &mut KnownHalf,
    ) {
        half.insts.extend(self.strip(inst));
        let linear: Vec<bool> = inst.args.iter().map(|arg| self.linear.contains(arg)).collect();
        let version = self.shared.transposed_version(callee, &linear);
        let mut args: Vec<Value> =
            inst.args.iter().copied().filter(|arg| !self.linear.contains(arg)).collect();
        for &result in &inst.results {
            if self.linear.contains(&result) {
                args.push(cotangents.remove(&result).unwrap_or_else(|| self.zeros(result)));
            }
        }
        let targets: Vec<Value> = inst.args.iter().copied().filter(|arg| self.linear.contains(arg)).collect();
        for &target in &targets {
            args.push(cotangents.remove(&target).unwrap_or_else(|| self.zeros(target)));
        }
        let results: Vec<Value> = targets.iter().map(|&target| self.b.fresh_like(target)).collect();
        self.b.push(Inst::new(Op::Call(version), args, results.clone(), inst.span));
        for (&target, &result) in targets.iter().zip(&results) {
            self.contribute(cotangents, target, result);
        }
    }

    fn reverse_branch(&mut self, inst: &Inst, cotangents: &mut Cotangents, half: &mut KnownHalf) {
        let mut captured: Vec<Value> = inst.blocks.iter().flat_map(Block::captures).collect();
        captured.retain(|&value| self.flows(value));
        let mut seen = HashSet::new();
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

    fn forward_branch(&mut self, inst: &Inst, half: &mut KnownHalf) {
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
            results: linear_results,
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
            half.insts.push(Inst { op: Op::If, args: inst.args.clone(), blocks, results, span: inst.span });
            self.start_threads(threads, half);
        }
    }

    /// The value of a log after an instruction: the whole log if nothing is around.
    fn thread_out(&mut self, whole: Value, ty: Type) -> Value {
        if self.around.is_empty() { whole } else { self.b.fresh(ty) }
    }

    /// Logs that come out of an instruction: they begin here at the outermost level, else further out.
    fn start_threads(&mut self, threads: Vec<Thread>, half: &mut KnownHalf) {
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
        let args = core::iter::once(zero).chain((0..ty.rank).map(|_| none)).collect();
        insts.push(Inst::new(Op::Broadcast(Vec::new()), args, vec![value], Span::NONE));
    }

    /// A value of this type that is never looked at.
    fn dummy(&mut self, ty: Type, insts: &mut Vec<Inst>) -> Value {
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

    fn reverse_loop(&mut self, inst: &Inst, cotangents: &mut Cotangents, half: &mut KnownHalf) {
        let (init, params, body) = carried(inst);
        let with: Vec<usize> = (0..params.len()).filter(|&at| self.flows(params[at])).collect();
        let mut captured = body.captures();
        captured.retain(|&value| self.flows(value));
        let mut args = Vec::new();
        for value in with.iter().map(|&at| inst.results[at]).chain(captured.iter().copied()) {
            args.push(cotangents.remove(&value).unwrap_or_else(|| self.zeros(value)));
        }
        let inner: Vec<Value> = with.iter().map(|&at| params[at]).chain(captured.iter().copied()).collect();
        let inner: Vec<Value> = inner.into_iter().map(|value| self.b.fresh_like(value)).collect();
        let results: Vec<Value> = inner.iter().map(|&value| self.b.fresh_like(value)).collect();
        let op = Op::For { descending: inst.op != (Op::For { descending: true }) };
        let shell = Shell { op, args, params: inner.clone(), results: results.clone() };
        self.loop_halves(inst, shell, half, |this| {
            let (received, accumulators) = inner.split_at(with.len());
            let mut cotangents: Cotangents =
                captured.iter().copied().zip(accumulators.iter().copied()).collect();
            for (&at, &received) in with.iter().zip(received) {
                this.contribute(&mut cotangents, body.results[at], received);
            }
            let known = this.reverse_insts(&body.insts, &mut cotangents);
            let mut results = Vec::new();
            for &at in &with {
                results.push(cotangents.remove(&params[at]).unwrap_or_else(|| this.zeros(params[at])));
            }
            results.extend(captured.iter().map(|value| cotangents[value]));
            (known, results)
        });
        // A captured value may also be an initial value, so its accumulator comes first.
        cotangents.extend(captured.into_iter().zip(results[with.len()..].iter().copied()));
        for (&at, &result) in with.iter().zip(&results) {
            self.contribute(cotangents, init[at], result);
        }
    }

    fn forward_loop(&mut self, inst: &Inst, half: &mut KnownHalf) {
        let (init, params, body) = carried(inst);
        let with: Vec<usize> = (0..params.len()).filter(|&at| self.flows(params[at])).collect();
        let pick = |values: &[Value]| -> Vec<Value> { with.iter().map(|&at| values[at]).collect() };
        let op = Op::For { descending: inst.op == (Op::For { descending: true }) };
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

        let trips = match inst.op {
            Op::For { .. } => inst.args[0],
            _ => {
                let trips = self.b.fresh(Type::INT);
                self.own(trips);
                trips
            }
        };
        let mut before = Vec::new();
        self.define_flat(inst, surroundings, flat, k, trips, &own.threads, &mut linear, &mut before);
        let args = [&[trips], &shell.args[..]].concat();
        self.b.push(Inst {
            op: shell.op,
            args,
            blocks: vec![linear],
            results: shell.results,
            span: inst.span,
        });
        self.known_loop(inst, known, own.threads, trips, before, half);
    }

    /// Gives `flat`, the number of the iteration in the logs, its meaning at the head of the linear body.
    #[allow(clippy::too_many_arguments)]
    fn define_flat(
        &mut self,
        inst: &Inst,
        surroundings: Surroundings,
        flat: Value,
        k: Value,
        trips: Value,
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
                let trips = self.b.integer(IntOp::Max, trips, none);
                Some(self.b.integer(IntOp::Mul, outer, trips))
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
        if inst.op == (Op::For { descending: true }) {
            let one = self.b.int(1);
            let last = self.b.integer(IntOp::Sub, trips, one);
            round = self.b.integer(IntOp::Sub, last, k);
        }
        if let Some(offset) = offset {
            round = self.b.integer(IntOp::Add, offset, round);
        }
        let mut head = self.b.close(&[]).insts;
        linear.substitute(&HashMap::from([(flat, round)]));
        head.append(&mut linear.insts);
        linear.insts = head;
    }

    /// The known half of a loop: its known carried values and the logs.
    fn known_loop(
        &mut self,
        inst: &Inst,
        known: KnownHalf,
        own: Vec<Thread>,
        trips: Value,
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
        for thread in own {
            // Its own logs: the parameter is what the push at the end of the body reads.
            let log_out = self.thread_out(thread.whole, thread.ty);
            args.push(thread.log_in);
            inner.push(thread.log_out);
            next.push(insts_result(&insts, thread.log_out));
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
        let known = if inst.op == Op::While {
            // Counting the rounds.
            self.b.open_with(Vec::new());
            let (start, one) = (self.b.int(0), self.b.int(1));
            let constants = self.b.close(&[]).insts;
            let (count, counted) = (self.b.fresh(Type::INT), self.b.fresh(Type::INT));
            insts.push(Inst::new(Op::Int(IntOp::Add), vec![count, one], vec![counted], inst.span));
            args.push(start);
            inner.push(count);
            next.push(counted);
            results.push(trips);
            let head = &inst.blocks[0];
            let mut head_params: Vec<Value> = keep.iter().map(|&at| head.params[at]).collect();
            for &value in &inner[keep.len()..] {
                head_params.push(self.b.fresh_like(value));
            }
            let head = Block { params: head_params, ..head.clone() };
            let block = Block { params: inner, insts, results: next };
            let known = Inst { op: Op::While, args, blocks: vec![head, block], results, span: inst.span };
            half.insts.push(known);
            half.insts.extend(before);
            half.insts.extend(constants.into_iter().rev());
            None
        } else {
            let block = Block { params: [&[body.params[0]], &inner[..]].concat(), insts, results: next };
            let args = [&[inst.args[0]], &args[..]].concat();
            half.insts.extend((!results.is_empty()).then_some(Inst {
                op: inst.op.clone(),
                args,
                blocks: vec![block],
                results,
                span: inst.span,
            }));
            Some(before)
        };
        half.insts.extend(known.into_iter().flatten());
        self.start_threads(threads, half);
    }

    /// How a loop's iterations can be numbered over all rounds of the loops around it.
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
    /// It runs a fixed number of times in each iteration of a loop that is numbered.
    Regular,
    Irregular,
}

/// The result of the push onto `log`.
fn insts_result(insts: &[Inst], log: Value) -> Value {
    let push = insts.iter().rev().find(|inst| inst.op == Op::Push && inst.args[0] == log);
    push.expect("an own log is pushed to").results[0]
}

/// Reads an element of a log.
pub(crate) fn read_log(b: &mut FunctionBuilder, log: Value, at: Value) -> Value {
    b.emit(Op::Read(vec![Axis::At]), &[log, at])
}
