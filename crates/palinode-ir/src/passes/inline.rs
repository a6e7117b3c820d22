//! Calls -> bodies.
//!
//! A call is replaced by the body of its function unless the function is recursive, has a tangent rule (transforms call the rule
//! instead of looking inside), or would make the caller larger than [`MAX_SIZE`] instructions (functions that call each other
//! twice, ten deep, would otherwise fill the memory). Functions that nothing reaches any more are removed.

use std::collections::HashMap;

use super::copy::Copier;
use crate::op::{FuncId, Op};
use crate::program::{Block, Function, Inst, Program, Value};
use crate::verify::verified;

/// The size up to which a function may grow.
const MAX_SIZE: usize = 100_000;

/// Replaces calls by bodies.
pub fn inline(program: &Program) -> Program {
    let graph: Vec<Vec<usize>> = program.functions.iter().map(callees).collect();
    let (order, recursive) = components(&graph);
    let mut functions = program.functions.clone();
    for caller in order {
        let body = core::mem::take(&mut functions[caller].body);
        let mut function = core::mem::replace(&mut functions[caller], Function::new(""));
        let inlinable =
            |callee: FuncId| !recursive[callee.index()] && functions[callee.index()].tangent_rule.is_none();
        let size = body.size();
        let names = HashMap::new();
        let mut inliner =
            Inliner { functions: &functions, function: &mut function, size, inlinable: &inlinable, names };
        let body = inliner.block(body);
        function.body = body;
        function.renumber();
        functions[caller] = function;
    }
    let program = Program { functions, entry: program.entry, outputs: program.outputs.clone() };
    verified(without_unreachable(program), "inline")
}

struct Inliner<'a> {
    functions: &'a [Function],
    function: &'a mut Function,
    size: usize,
    inlinable: &'a dyn Fn(FuncId) -> bool,
    /// What the results of calls are called now.
    names: HashMap<Value, Value>,
}

impl Inliner<'_> {
    fn rename(&self, values: &mut [Value]) {
        values.iter_mut().for_each(|value| *value = self.names.get(value).copied().unwrap_or(*value));
    }

    fn block(&mut self, mut block: Block) -> Block {
        let mut out = Vec::with_capacity(block.insts.len());
        for mut inst in core::mem::take(&mut block.insts) {
            self.rename(&mut inst.args);
            if let Op::Call(callee) = inst.op
                && (self.inlinable)(callee)
            {
                self.call(inst, callee, &mut out);
                continue;
            }
            inst.blocks = inst.blocks.into_iter().map(|block| self.block(block)).collect();
            out.push(inst);
        }
        block.insts = out;
        self.rename(&mut block.results);
        block
    }

    fn call(&mut self, inst: Inst, callee: FuncId, out: &mut Vec<Inst>) {
        let callee = &self.functions[callee.index()];
        let size = callee.body.size();
        if self.size + size > MAX_SIZE {
            out.push(inst);
            return;
        }
        self.size += size;
        let map = callee.body.params.iter().copied().zip(inst.args.iter().copied()).collect();
        let mut copier = Copier { into: self.function, from: Some(&callee.values), map };
        copier.insts(&callee.body.insts, out);
        let results: Vec<Value> = callee.body.results.iter().map(|&result| copier.value(result)).collect();
        for (&result, value) in inst.results.iter().zip(results) {
            // The caller's name for the result says more than none.
            if self.function.name_of(value).is_none() {
                self.function.values[value.index()].name = self.function.name_of(result).cloned();
            }
            self.names.insert(result, value);
        }
    }
}

/// The functions that a function calls, each once.
fn callees(function: &Function) -> Vec<usize> {
    let mut found = Vec::new();
    function.body.for_each_inst(&mut |inst| {
        if let Op::Call(callee) = inst.op {
            found.push(callee.index());
        }
    });
    found.sort_unstable();
    found.dedup();
    found
}

/// The nodes of a graph so that what they point to comes first, and whether each is on a cycle (Tarjan's algorithm,
/// without recursion).
fn components(graph: &[Vec<usize>]) -> (Vec<usize>, Vec<bool>) {
    const NEW: usize = usize::MAX;
    let count = graph.len();
    let (mut order, mut cyclic) = (Vec::with_capacity(count), vec![false; count]);
    let (mut number, mut low, mut pending) = (vec![NEW; count], vec![0; count], vec![false; count]);
    let mut stack = Vec::new();
    let mut next = 0;
    for root in 0..count {
        if number[root] != NEW {
            continue;
        }
        let mut path = vec![(root, 0)];
        while let Some(&mut (node, ref mut edge)) = path.last_mut() {
            if *edge == 0 {
                (number[node], low[node], pending[node]) = (next, next, true);
                next += 1;
                stack.push(node);
            }
            if let Some(&target) = graph[node].get(*edge) {
                *edge += 1;
                cyclic[node] |= target == node;
                if number[target] == NEW {
                    path.push((target, 0));
                } else if pending[target] {
                    low[node] = low[node].min(number[target]);
                }
                continue;
            }
            path.pop();
            if let Some(&(parent, _)) = path.last() {
                low[parent] = low[parent].min(low[node]);
            }
            if low[node] == number[node] {
                let start = stack.iter().rposition(|&other| other == node).unwrap_or(0);
                let component = stack.split_off(start);
                for &member in &component {
                    pending[member] = false;
                    cyclic[member] |= component.len() > 1;
                }
                order.extend(component);
            }
        }
    }
    (order, cyclic)
}

/// Removes the functions that the entry reaches neither by calls nor by tangent rules.
pub(super) fn without_unreachable(mut program: Program) -> Program {
    let mut reached = vec![false; program.functions.len()];
    let mut waiting = vec![program.entry.index()];
    while let Some(at) = waiting.pop() {
        if !core::mem::replace(&mut reached[at], true) {
            waiting.extend(callees(&program.functions[at]));
            waiting.extend(program.functions[at].tangent_rule.map(FuncId::index));
        }
    }
    if reached.iter().all(|&reached| reached) {
        return program;
    }
    let mut number = 0;
    let new: Vec<FuncId> = reached
        .iter()
        .map(|&reached| {
            number += u32::from(reached);
            FuncId(number.saturating_sub(1))
        })
        .collect();
    let mut at = 0;
    program.functions.retain(|_| {
        at += 1;
        reached[at - 1]
    });
    for function in &mut program.functions {
        function.tangent_rule = function.tangent_rule.map(|rule| new[rule.index()]);
        retarget(&mut function.body, &new);
    }
    program.entry = new[program.entry.index()];
    program
}

fn retarget(block: &mut Block, new: &[FuncId]) {
    for inst in &mut block.insts {
        if let Op::Call(callee) = &mut inst.op {
            *callee = new[callee.index()];
        }
        inst.blocks.iter_mut().for_each(|block| retarget(block, new));
    }
}
