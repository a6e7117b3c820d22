//! Program -> program that also computes tangents (forward mode).
//!
//! Input: a program and the arguments to differentiate by. Output: the same program with a tangent argument
//! for each of these, and a tangent result for each real result. A loop stays one loop and carries tangents
//! beside its values.
//!
//! Tangent code is linear in the tangents: sums, products `strong_mul(tangent, known)`, and operations that
//! move elements. Tangents have the shape of their primal, so scalars are spread explicitly. This is what
//! transposition builds on.
//!
//! Functions that are called (recursive ones, or with a tangent rule) get a differentiated version each.

use std::sync::Arc;

use palinode_core::rules::Row;

use crate::builder::FunctionBuilder;
use crate::fast::{FastMap, Marks, Table};
use crate::op::{Comparison, FuncId, Literal, Op, Reduction, Rule};
use crate::passes::cse;
use crate::program::{Block, Function, Inst, Value};
use crate::transform::activity::{Swept, active, carried, swept};
use crate::transform::symbol::{Partial, partial};
use crate::transform::{tangent_name, zero, zeros_like};
use crate::types::Elem;

/// A function that also computes tangents.
pub(crate) struct Tangents {
    /// Values of the original function keep their numbers.
    pub(crate) function: Function,
    /// The tangent arguments, in the order of the arguments.
    pub(crate) params: Vec<Value>,
    /// For each result its tangent, if it has one.
    pub(crate) results: Vec<Option<Value>>,
    /// The primal of each tangent that is an array: it has the same shape.
    pub(crate) primal: FastMap<Value, Value>,
}

/// Differentiates functions of a program and keeps the new versions.
pub(crate) struct Differentiator {
    /// The program's functions, and new ones as they are made.
    pub(crate) functions: Vec<Function>,
    /// New versions by the original and the arguments that have tangents.
    versions: FastMap<(FuncId, Vec<bool>), FuncId>,
    /// For a new version: the primal of each tangent.
    pub(crate) pairs: FastMap<FuncId, FastMap<Value, Value>>,
}

impl Differentiator {
    pub(crate) fn new(functions: Vec<Function>) -> Differentiator {
        Differentiator { functions, versions: FastMap::default(), pairs: FastMap::default() }
    }

    /// `function` with tangents for the arguments at `wrt`.
    pub(crate) fn tangents(&mut self, function: &Function, wrt: &[usize]) -> Tangents {
        let seeds: Vec<Value> = wrt.iter().map(|&at| function.body.params[at]).collect();
        let mut writer = Writer {
            builder: FunctionBuilder::rewrite(function),
            active: active(&self.functions, function, &seeds),
            tangent: Table::default(),
            primal: FastMap::default(),
            names: FastMap::default(),
            shared: self,
        };
        let mut params = Vec::new();
        for &seed in &seeds {
            let tangent = writer.fresh_tangent(seed);
            writer.builder.adopt_param(tangent);
            params.push(tangent);
        }
        writer.insts(&function.body.insts);
        let results =
            function.body.results.iter().map(|result| writer.tangent.get(result).copied()).collect();
        let (primal, builder) = (writer.primal, writer.builder);
        let (function, mistakes) = builder.finish(&function.body.results);
        assert!(mistakes.is_empty(), "tangent code is well typed: {mistakes:?}");
        Tangents { function, params, results, primal }
    }

    /// The version of `callee` with tangents for some arguments: it gives its results, then a tangent for
    /// each real one.
    pub(crate) fn version(&mut self, callee: FuncId, wrt: &[bool]) -> FuncId {
        if let Some(&made) = self.versions.get(&(callee, wrt.to_vec())) {
            return made;
        }
        let original = self.functions[callee.index()].clone();
        let id = FuncId(self.functions.len() as u32);
        // The name is taken before the body is written, so that recursion finds it.
        let mut placeholder = Function::new(&format!("{}_tangent_{}", original.name, id.0));
        let name = placeholder.name.clone();
        placeholder.values = original.values.clone();
        self.functions.push(placeholder);
        self.versions.insert((callee, wrt.to_vec()), id);
        let positions: Vec<usize> = (0..wrt.len()).filter(|&at| wrt[at]).collect();
        let Tangents { mut function, params, results, primal } = self.tangents(&original, &positions);
        function.name = name;
        let mut builder = FunctionBuilder::resume(function);
        let mut all = original.body.results.clone();
        for (&result, tangent) in original.body.results.iter().zip(results) {
            if original.ty(result).is_real() {
                all.push(tangent.unwrap_or_else(|| zeros_like(&mut builder, result)));
            }
        }
        let (mut function, _) = builder.finish(&all);
        let mut pairs = primal;
        self.share_known(&mut function, &params, &mut pairs);
        self.pairs.insert(id, pairs);
        self.functions[id.index()] = function;
        id
    }

    /// In tangent code, what does not depend on the tangent arguments `params` is computed once: a partial
    /// often repeats what its operation, or another one, has computed, and reverse mode should not keep both.
    /// What is linear stays as it is, so that cotangents are added in the same order. Variables of different
    /// names stay apart: each may have its own [`crate::transform::Choice`].
    pub(crate) fn share_known(
        &self,
        function: &mut Function,
        params: &[Value],
        primal: &mut FastMap<Value, Value>,
    ) {
        let linear = active(&self.functions, function, params);
        let stands = cse::share(function, &|function, known, other| {
            let names = (function.name_of(known), function.name_of(other));
            let are_apart = matches!(names, (Some(a), Some(b)) if a != b);
            !are_apart && !linear.contains(&other)
        });
        primal.values_mut().for_each(|value| *value = stands[value.index()]);
    }
}

struct Writer<'a> {
    builder: FunctionBuilder,
    active: Marks,
    tangent: Table<Value>,
    primal: FastMap<Value, Value>,
    /// What the tangents of a name are called.
    names: FastMap<Arc<str>, Arc<str>>,
    shared: &'a mut Differentiator,
}

impl Writer<'_> {
    fn is_active(&self, value: Value) -> bool {
        self.active.contains(&value)
    }

    fn name_tangent(&mut self, tangent: Value, primal: Value) {
        self.share_name(tangent, primal);
        if self.builder.ty(primal).rank > 0 {
            self.primal.insert(tangent, primal);
        }
        self.tangent.insert(primal, tangent);
    }

    /// Names a tangent after its primal, unless it has a name. All versions of a variable share one text.
    fn share_name(&mut self, tangent: Value, primal: Value) {
        if let Some(name) = self.builder.name_of(primal) {
            let of_tangent = self.names.entry(name).or_insert_with_key(|name| tangent_name(name));
            self.builder.share_name(tangent, of_tangent);
        }
    }

    fn fresh_tangent(&mut self, primal: Value) -> Value {
        let ty = self.builder.ty(primal);
        let tangent = self.builder.fresh(ty);
        self.name_tangent(tangent, primal);
        tangent
    }

    /// The tangent of a value, as zeros if it has none.
    fn tangent_or_zeros(&mut self, value: Value) -> Value {
        match self.tangent.get(&value) {
            Some(&tangent) => tangent,
            None => zeros_like(&mut self.builder, value),
        }
    }

    /// The tangent of a value, as a scalar zero if it has none.
    fn tangent_or_zero(&mut self, value: Value) -> Value {
        match self.tangent.get(&value) {
            Some(&tangent) => tangent,
            None => {
                let elem = self.builder.ty(value).elem;
                zero(&mut self.builder, elem)
            }
        }
    }

    /// A scalar tangent repeated to the shape of `like`.
    fn spread(&mut self, tangent: Value, like: Value) -> Value {
        let (from, to) = (self.builder.ty(tangent), self.builder.ty(like));
        if from.rank == to.rank {
            return tangent;
        }
        let lengths: Vec<Value> = (0..to.rank).map(|axis| self.builder.dim(like, axis)).collect();
        self.builder.fill(tangent, &lengths)
    }

    fn scale(&mut self, tangent: Value, by: Value) -> Value {
        self.builder.map(Row::StrongMul, &[tangent, by])
    }

    fn sum(&mut self, terms: Vec<Value>) -> Option<Value> {
        terms.into_iter().reduce(|a, b| self.builder.add(a, b))
    }

    fn insts(&mut self, insts: &[Inst]) {
        for inst in insts {
            self.builder.at(inst.span);
            let concerned = inst.results.iter().any(|&result| self.is_active(result));
            match &inst.op {
                // A call with tangents replaces the call.
                Op::For { .. } if concerned => self.for_loop(inst),
                Op::While { .. } if concerned => self.while_loop(inst),
                Op::Sweep { .. } if concerned => self.sweep(inst),
                Op::If if concerned => self.branch(inst),
                Op::Call(callee) if concerned => self.call(inst, *callee),
                Op::Fused if concerned => unreachable!("fused operations are taken apart first"),
                _ => {
                    self.builder.push(inst.clone());
                    if concerned {
                        self.plain(inst);
                    }
                }
            }
        }
    }

    /// Sets the tangent of the only result.
    fn result(&mut self, inst: &Inst, tangent: Option<Value>) {
        let result = inst.results[0];
        let tangent = match tangent {
            // One tangent may belong to several values; each pair gets its own entry for the shape.
            Some(tangent) => tangent,
            None => zeros_like(&mut self.builder, result),
        };
        self.tangent.insert(result, tangent);
        if self.builder.ty(result).rank > 0 {
            self.primal.entry(tangent).or_insert(result);
        }
        self.share_name(tangent, result);
    }

    fn plain(&mut self, inst: &Inst) {
        let args = &inst.args;
        let tangent = match &inst.op {
            Op::Map(rule) => self.map(*rule, inst),
            Op::Select => {
                let mut side = |at: usize| {
                    let tangent = self.tangent_or_zero(args[at]);
                    if self.tangent.contains_key(&args[at]) {
                        self.spread(tangent, inst.results[0])
                    } else {
                        tangent
                    }
                };
                let (a, b) = (side(1), side(2));
                Some(self.builder.select(args[0], a, b))
            }
            Op::Convert(_)
            | Op::Broadcast(_)
            | Op::Reshape
            | Op::Permute(_)
            | Op::Reduce(Reduction::Sum, _)
            | Op::Read(_)
            | Op::Resize => {
                let mut moved = args.clone();
                moved[0] = self.tangent[&args[0]];
                Some(self.builder.emit(inst.op.clone(), &moved))
            }
            Op::Concat(_) => {
                let parts: Vec<Value> = args.iter().map(|&arg| self.tangent_or_zeros(arg)).collect();
                Some(self.builder.emit(inst.op.clone(), &parts))
            }
            Op::Reduce(Reduction::Max | Reduction::Min, axes) => Some(self.extreme(inst, axes)),
            Op::Write(_) => {
                let mut moved = args.clone();
                moved[0] = self.tangent_or_zeros(args[0]);
                moved[1] = self.tangent_or_zero(args[1]);
                Some(self.builder.emit(inst.op.clone(), &moved))
            }
            Op::AddAt(_) => {
                let base = self.tangent_or_zeros(args[0]);
                Some(match self.tangent.get(&args[1]) {
                    None => base,
                    Some(&added) => {
                        let mut moved = args.clone();
                        moved[0] = base;
                        moved[1] = added;
                        self.builder.emit(inst.op.clone(), &moved)
                    }
                })
            }
            Op::Push => {
                let moved: Vec<Value> = args.iter().map(|&arg| self.tangent_or_zeros(arg)).collect();
                Some(self.builder.emit(Op::Push, &moved))
            }
            Op::MatMul { .. } | Op::Outer { .. } => {
                let op = match inst.op {
                    Op::MatMul { a_transposed, b_transposed, .. } => {
                        Op::MatMul { a_transposed, b_transposed, strong: true }
                    }
                    _ => Op::Outer { strong: true },
                };
                let mut terms = Vec::new();
                for at in 0..2 {
                    if let Some(&tangent) = self.tangent.get(&args[at]) {
                        let mut moved = args.clone();
                        moved[at] = tangent;
                        terms.push(self.builder.emit(op.clone(), &moved));
                    }
                }
                self.sum(terms)
            }
            Op::AddOuter { .. } => {
                let op = Op::AddOuter { strong: true };
                let mut total = self.tangent_or_zeros(args[0]);
                for at in 1..3 {
                    if let Some(&tangent) = self.tangent.get(&args[at]) {
                        let mut moved = args.clone();
                        (moved[0], moved[at]) = (total, tangent);
                        total = self.builder.emit(op.clone(), &moved);
                    }
                }
                Some(total)
            }
            Op::Linalg(kind) => {
                let tangents: Vec<Option<Value>> =
                    args.iter().map(|arg| self.tangent.get(arg).copied()).collect();
                let found = super::linalg::tangents(&mut self.builder, *kind, args, &tangents, &inst.results);
                for (&result, tangent) in inst.results.iter().zip(found) {
                    self.name_tangent(tangent, result);
                }
                return;
            }
            Op::Const(_)
            | Op::Int(_)
            | Op::Compare(_)
            | Op::Logical(_)
            | Op::StopGradient
            | Op::Settled(_)
            | Op::Dim(_)
            | Op::Iota
            | Op::Pack(_)
            | Op::Unpack(_)
            | Op::For { .. }
            | Op::While { .. }
            | Op::Sweep { .. }
            | Op::If
            | Op::Call(_)
            | Op::Fused => unreachable!("`{}` has no tangent of this kind", inst.op.name()),
        };
        self.result(inst, tangent);
    }

    fn map(&mut self, rule: Rule, inst: &Inst) -> Option<Value> {
        let mut terms = Vec::new();
        for (which, &arg) in inst.args.iter().enumerate() {
            let Some(&tangent) = self.tangent.get(&arg) else { continue };
            let by = partial(&mut self.builder, rule, which, &inst.args, inst.results[0]);
            if by == Partial::Zero {
                continue;
            }
            let tangent = self.spread(tangent, inst.results[0]);
            terms.push(match by {
                Partial::Zero | Partial::One => tangent,
                Partial::MinusOne => self.builder.neg(tangent),
                Partial::Value(by) => self.scale(tangent, by),
            });
        }
        self.sum(terms)
    }

    /// The tangent of the largest or smallest element: the mean over the elements that tie.
    fn extreme(&mut self, inst: &Inst, axes: &[u8]) -> Value {
        let (a, found) = (inst.args[0], inst.results[0]);
        let ty = self.builder.ty(a);
        let staying: Vec<u8> = (0..ty.rank).filter(|axis| !axes.contains(axis)).collect();
        let lengths: Vec<Value> = (0..ty.rank).map(|axis| self.builder.dim(a, axis)).collect();
        let spread = self.builder.emit(Op::Broadcast(staying), &[&[found], &lengths[..]].concat());
        let chosen = self.builder.compare(Comparison::Equal, a, spread);
        let (yes, no) = (self.one(ty.elem), zero(&mut self.builder, ty.elem));
        let weight = self.builder.select(chosen, yes, no);
        let sum = Op::Reduce(Reduction::Sum, axes.to_vec());
        let count = self.builder.emit(sum.clone(), &[weight]);
        let share = self.builder.map(Row::Recip, &[count]);
        let tangent = self.tangent[&a];
        let weighted = self.scale(tangent, weight);
        let total = self.builder.emit(sum, &[weighted]);
        self.scale(total, share)
    }

    fn one(&mut self, elem: Elem) -> Value {
        let one = self.builder.literal(Literal::Real(1.0));
        if elem == Elem::F32 { self.builder.convert(Elem::F32, one) } else { one }
    }

    /// The positions of carried values that have tangents.
    fn carried_tangents(&self, inst: &Inst) -> Vec<usize> {
        let (_, params, _) = carried(inst);
        (0..params.len()).filter(|&at| self.is_active(params[at])).collect()
    }

    /// A loop block with tangents as further parameters and results.
    fn loop_block(&mut self, block: &Block, skip: usize, with: &[usize], is_body: bool) -> Block {
        let mut params = block.params.clone();
        for &at in with {
            let param = block.params[skip + at];
            let tangent = self.fresh_tangent(param);
            params.push(tangent);
        }
        self.builder.open_with(params);
        if is_body {
            self.insts(&block.insts);
        } else {
            block.insts.iter().for_each(|inst| self.builder.push(inst.clone()));
        }
        let mut results = block.results.clone();
        if is_body {
            for &at in with {
                results.push(self.tangent_or_zeros(block.results[at]));
            }
        }
        self.builder.close(&results)
    }

    fn finish_loop(&mut self, inst: &Inst, with: &[usize], skip: usize, blocks: Vec<Block>) {
        let mut args = inst.args.clone();
        // The initial tangents are computed before the loop, so they go into the enclosing block.
        for &at in with {
            args.push(self.tangent_or_zeros(inst.args[skip + at]));
        }
        let mut results = inst.results.clone();
        for &at in with {
            let result = inst.results[at];
            let tangent = self.fresh_tangent(result);
            results.push(tangent);
        }
        self.builder.push(Inst { op: inst.op.clone(), args, blocks, results, span: inst.span });
    }

    fn for_loop(&mut self, inst: &Inst) {
        let with = self.carried_tangents(inst);
        let block = self.loop_block(&inst.blocks[0], 1, &with, true);
        self.builder.at(inst.span);
        self.finish_loop(inst, &with, 1, vec![block]);
    }

    fn while_loop(&mut self, inst: &Inst) {
        let with = self.carried_tangents(inst);
        let head = self.loop_block(&inst.blocks[0], 0, &with, false);
        let body = self.loop_block(&inst.blocks[1], 0, &with, true);
        self.builder.at(inst.span);
        self.finish_loop(inst, &with, 0, vec![head, body]);
    }

    /// A sweep over a state and cotangents with tangents beside them.
    fn sweep(&mut self, inst: &Inst) {
        let Swept { state, seeds, advance, back, turn } = swept(inst);
        let active = |this: &Self, params: &[Value]| -> Vec<usize> {
            (0..params.len()).filter(|&at| this.is_active(params[at])).collect()
        };
        let (states, cotangents) = back.params[1..].split_at(state.len());
        let (moving, turning) = (active(self, states), active(self, cotangents));
        let new_advance = self.loop_block(advance, 1, &moving, true);
        let tangents = |this: &mut Self, of: &[Value], at: &[usize]| -> Vec<Value> {
            at.iter().map(|&at| this.fresh_tangent(of[at])).collect()
        };
        let of_states = tangents(self, states, &moving);
        let of_cotangents = tangents(self, cotangents, &turning);
        let all = [&back.params[..1], states, &of_states, cotangents, &of_cotangents].concat();
        self.builder.open_with(all);
        self.insts(&back.insts);
        let mut results = back.results.clone();
        for &at in &turning {
            results.push(self.tangent_or_zeros(back.results[at]));
        }
        let new_back = self.builder.close(&results);
        let mut blocks = vec![new_advance, new_back];
        // What is behind the state: cotangents, or what the turn is given.
        let mut others = turning.clone();
        let (found, more) = inst.results.split_at(cotangents.len());
        let mut results = [found, &tangents(self, found, &turning), more].concat();
        if let Some(turn) = turn {
            let (states, given) = turn.params.split_at(state.len());
            let (ends, rests) = turn.results.split_at(cotangents.len());
            others = active(self, given);
            let of_states = tangents(self, states, &moving);
            let of_given = tangents(self, given, &others);
            self.builder.open_with([states, &of_states, given, &of_given].concat());
            self.insts(&turn.insts);
            let mut gives = ends.to_vec();
            for &at in &turning {
                gives.push(self.tangent_or_zeros(ends[at]));
            }
            gives.extend(rests);
            let besides = active(self, more);
            for &at in &besides {
                gives.push(self.tangent_or_zeros(rests[at]));
            }
            blocks.push(self.builder.close(&gives));
            results.extend(tangents(self, more, &besides));
        }
        self.builder.at(inst.span);
        let mut args = [&inst.args[..1], state].concat();
        for &at in &moving {
            args.push(self.tangent_or_zeros(state[at]));
        }
        args.extend(seeds);
        for &at in &others {
            args.push(self.tangent_or_zeros(seeds[at]));
        }
        let (op, results) = (inst.op.clone(), results.into());
        self.builder.push(Inst { op, args: args.into(), blocks, results, span: inst.span });
    }

    fn branch(&mut self, inst: &Inst) {
        let with: Vec<usize> =
            (0..inst.results.len()).filter(|&at| self.is_active(inst.results[at])).collect();
        let mut blocks = Vec::new();
        for block in &inst.blocks {
            self.builder.open_with(Vec::new());
            self.insts(&block.insts);
            let mut results = block.results.clone();
            for &at in &with {
                results.push(self.tangent_or_zeros(block.results[at]));
            }
            blocks.push(self.builder.close(&results));
        }
        let mut results = inst.results.clone();
        for &at in &with {
            let tangent = self.fresh_tangent(inst.results[at]);
            results.push(tangent);
        }
        let inst = Inst { op: Op::If, args: inst.args.clone(), blocks, results, span: inst.span };
        self.builder.push(inst);
    }

    fn call(&mut self, inst: &Inst, callee: FuncId) {
        let original = self.shared.functions[callee.index()].clone();
        let real: Vec<Value> =
            inst.results.iter().copied().filter(|&result| self.builder.ty(result).is_real()).collect();
        let mut args = inst.args.clone();
        if let Some(rule) = original.tangent_rule {
            self.builder.push(inst.clone());
            for &arg in &inst.args {
                if self.builder.ty(arg).is_real() {
                    args.push(self.tangent_or_zeros(arg));
                }
            }
            let tangents: Vec<Value> = real.iter().map(|&result| self.fresh_tangent(result)).collect();
            self.builder.push(Inst::new(Op::Call(rule), args, tangents, inst.span));
            return;
        }
        let wrt: Vec<bool> = inst.args.iter().map(|arg| self.tangent.contains_key(arg)).collect();
        args.extend(inst.args.iter().filter_map(|arg| self.tangent.get(arg).copied()));
        let version = self.shared.version(callee, &wrt);
        let mut results = inst.results.clone();
        results.extend(real.iter().map(|&result| self.fresh_tangent(result)));
        self.builder.push(Inst::new(Op::Call(version), args, results, inst.span));
    }
}
