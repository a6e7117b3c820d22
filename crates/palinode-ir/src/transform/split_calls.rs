//! Calls in the two halves, and the versions of functions that they need.
//!
//! A function that is called is cut like the entry, but its halves do not share residuals: the transposed
//! version runs the known half again. So a call needs no log, and recursion no stack of residuals.

use crate::fast::FastMap;
use crate::op::{FuncId, Op};
use crate::program::{Block, Function, Inst, Value};
use crate::transform::split::{Cotangents, KnownHalf, Splitter, Versions};

impl Versions {
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
        let reserved = &mut self.differentiator.functions[id.index()];
        function.name = reserved.name.clone();
        *reserved = function;
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
        let mut splitter = Splitter::new(&function, linear, FastMap::default(), self);
        let mut body = splitter.strip_block(&function.body);
        body.params.retain(|param| !splitter.linear.contains(param));
        let (mut function, _) = splitter.b.finish(&[]);
        function.body = body;
        self.set(id, function);
        id
    }

    /// The function of the known arguments, the cotangents of the linear results and the accumulators of the
    /// linear arguments, which gives the accumulators. It runs the known half again: a call keeps no
    /// residuals.
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

impl Splitter<'_> {
    pub(crate) fn reverse_call(
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
}
