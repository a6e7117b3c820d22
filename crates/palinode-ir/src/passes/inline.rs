//! Calls -> bodies.
//!
//! A call is replaced by the body of its function unless the function is recursive or has a tangent rule
//! (transforms call the rule instead of looking inside). So that the result does not grow exponentially with
//! the depth of calls (functions that call each other twice, twenty deep), all copies together may take
//! [`GROWTH`] instructions, and as many again as the program has; what goes beyond stays a call, which
//! transforms differentiate as a call. The body of a function that is called in one place only moves there
//! and counts for nothing; one of at most [`TINY`] instructions is always copied. Functions that nothing
//! reaches any more are removed.

use super::copy::Copier;
use crate::checked::verified;
use crate::fast::FastMap;
use crate::op::{FuncId, Op};
use crate::program::{Block, Function, Inst, Program, Value};

/// How many instructions copies of bodies may add to any program.
const GROWTH: usize = 10_000;
/// Bodies of this size are always copied: a call costs as much.
const TINY: usize = 16;

/// Replaces calls by bodies.
pub fn inline(program: &Program) -> Program {
    inlined(program.clone())
}

/// [`inline`] of a program that nobody else needs.
pub(super) fn inlined(program: Program) -> Program {
    let mut program = without_unreachable(program);
    let graph: Vec<Vec<usize>> = program.functions.iter().map(Function::callees).collect();
    let (order, recursive) = components(&graph);
    let mut sites = vec![0_usize; program.functions.len()];
    for function in &program.functions {
        function.body.for_each_inst(&mut |inst| {
            if let Op::Call(callee) = inst.op {
                sites[callee.index()] += 1;
            }
        });
        // The body of a tangent rule must stay where it is, too.
        function.tangent_rule.iter().for_each(|rule| sites[rule.index()] += 1);
    }
    let mut sizes: Vec<usize> = program.functions.iter().map(|function| function.body.size()).collect();
    let mut left = GROWTH + sizes.iter().sum::<usize>();
    let functions = &mut program.functions;
    for caller in order {
        if graph[caller].is_empty() {
            continue;
        }
        let body = core::mem::take(&mut functions[caller].body);
        let mut function = core::mem::replace(&mut functions[caller], Function::new(""));
        let allowed =
            |callee: FuncId| !recursive[callee.index()] && functions[callee.index()].tangent_rule.is_none();
        let mut inliner = Inliner {
            functions,
            function: &mut function,
            sites: &sites,
            sizes: &sizes,
            left: &mut left,
            allowed: &allowed,
            names: FastMap::default(),
        };
        let body = inliner.block(body);
        function.body = body;
        function.renumber();
        sizes[caller] = function.body.size();
        functions[caller] = function;
    }
    verified(without_unreachable(program), "inline")
}

struct Inliner<'a> {
    functions: &'a [Function],
    function: &'a mut Function,
    /// How often each function is called in the source.
    sites: &'a [usize],
    /// The sizes of functions, of those below after their calls were replaced.
    sizes: &'a [usize],
    /// How many instructions copies may still add.
    left: &'a mut usize,
    allowed: &'a dyn Fn(FuncId) -> bool,
    /// What the results of calls are called now.
    names: FastMap<Value, Value>,
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
                && (self.allowed)(callee)
                && self.may_copy(callee)
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

    /// Whether a copy of a function may be made; its instructions are then counted.
    fn may_copy(&mut self, callee: FuncId) -> bool {
        let size = self.sizes[callee.index()];
        if self.sites[callee.index()] == 1 || size <= TINY {
            return true;
        }
        let fits = size <= *self.left;
        if fits {
            *self.left -= size;
        }
        fits
    }

    fn call(&mut self, inst: Inst, callee: FuncId, out: &mut Vec<Inst>) {
        let callee = &self.functions[callee.index()];
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

/// The nodes of a graph so that what they point to comes first, and whether each is on a cycle (Tarjan's
/// algorithm, without recursion).
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
            waiting.extend(program.functions[at].callees());
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
