//! The program: functions of blocks of instructions in single assignment, with structured loops.
//!
//! A [`Function`] owns a table of its values; everything else refers to them by [`Value`]. A [`Block`] is a
//! list of instructions with parameters and results; loops and branches are instructions that hold blocks. A
//! block sees the values of the blocks around it (it *captures* them). There are no jumps and no mutable
//! cells.
//!
//! Invariants are established by [`crate::verify`]; nothing else in the package checks them again.

use crate::fast::{FastSet, Numbers};
use crate::op::{FuncId, Op};
use crate::types::{Span, Type};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

pub use crate::types::Value;

/// A few values. Up to four are in place: nearly every instruction has fewer operands, and a long program has
/// millions.
pub type Values = SmallVec<[Value; 4]>;

/// What is known of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueInfo {
    /// Its type.
    pub ty: Type,
    /// How the source calls it.
    pub name: Option<Arc<str>>,
}

/// One operation applied to operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inst {
    /// What is done.
    pub op: Op,
    /// The operands, in the order that [`Op`] documents.
    pub args: Values,
    /// The blocks of loops, branches and fused operations.
    pub blocks: Vec<Block>,
    /// What it defines.
    pub results: Values,
    /// The place in the source that asked for it.
    pub span: Span,
}

/// A list of instructions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// What it is given each time it runs.
    pub params: Vec<Value>,
    /// What it does, in order.
    pub insts: Vec<Inst>,
    /// What it gives back.
    pub results: Vec<Value>,
}

/// A function: a block whose parameters are the arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name, unique in the program.
    pub name: Arc<str>,
    /// Every value of the function and of the blocks inside it.
    pub values: Vec<ValueInfo>,
    /// What it does.
    pub body: Block,
    /// A derivative given by hand: a function of the arguments followed by a tangent for each real argument,
    /// which gives a tangent for each real result. Transforms call it instead of looking inside.
    pub tangent_rule: Option<FuncId>,
}

/// A program: functions, of which one is the entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The functions, numbered by [`FuncId`].
    pub functions: Vec<Function>,
    /// Where it starts.
    pub entry: FuncId,
    /// The names of the entry's results, for people.
    pub outputs: Vec<Arc<str>>,
}

impl Program {
    /// The function where it starts.
    pub fn main(&self) -> &Function {
        &self.functions[self.entry.index()]
    }

    /// A function by its number.
    pub fn function(&self, id: FuncId) -> &Function {
        &self.functions[id.index()]
    }

    /// A function by its name.
    pub fn find(&self, name: &str) -> Option<FuncId> {
        self.functions.iter().position(|f| &*f.name == name).map(|at| FuncId(at as u32))
    }

    /// A name that no function has yet, starting with `base`.
    pub fn fresh_name(&self, base: &str) -> Arc<str> {
        if self.find(base).is_none() {
            return base.into();
        }
        (2..)
            .map(|n| format!("{base}_{n}"))
            .find(|name| self.find(name).is_none())
            .expect("some is free")
            .into()
    }

    /// The types of the entry's arguments.
    pub fn input_types(&self) -> Vec<Type> {
        self.main().param_types()
    }

    /// The types of the entry's results.
    pub fn output_types(&self) -> Vec<Type> {
        self.main().result_types()
    }

    /// How many instructions are like this.
    pub fn count(&self, is: impl Fn(&Inst) -> bool) -> usize {
        self.functions.iter().map(|function| function.body.count(&is)).sum()
    }

    /// How many instructions there are in all.
    pub fn size(&self) -> usize {
        self.functions.iter().map(|f| f.body.size()).sum()
    }
}

impl Function {
    /// A function that does nothing yet.
    pub fn new(name: &str) -> Function {
        Function { name: name.into(), values: Vec::new(), body: Block::default(), tangent_rule: None }
    }

    /// The functions that it calls, each once.
    pub(crate) fn callees(&self) -> Vec<usize> {
        let mut found = Vec::new();
        self.body.for_each_inst(&mut |inst| {
            if let Op::Call(callee) = inst.op {
                found.push(callee.index());
            }
        });
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The type of a value.
    pub fn ty(&self, value: Value) -> Type {
        self.values[value.index()].ty
    }

    /// The name of a value.
    pub fn name_of(&self, value: Value) -> Option<&Arc<str>> {
        self.values[value.index()].name.as_ref()
    }

    /// A new value, not yet defined by anything.
    pub fn fresh(&mut self, ty: Type, name: Option<Arc<str>>) -> Value {
        let value = Value(u32::try_from(self.values.len()).expect("fewer than 2^32 values"));
        self.values.push(ValueInfo { ty, name });
        value
    }

    /// Whether there are loops, branches or fused operations.
    pub(crate) fn has_blocks(&self) -> bool {
        self.body.insts.iter().any(|inst| !inst.blocks.is_empty())
    }

    /// Whether a value is an array.
    pub(crate) fn has_arrays(&self) -> bool {
        self.values.iter().any(|info| !info.ty.is_scalar())
    }

    /// The types of the arguments.
    pub fn param_types(&self) -> Vec<Type> {
        self.body.params.iter().map(|&v| self.ty(v)).collect()
    }

    /// The types of the results.
    pub fn result_types(&self) -> Vec<Type> {
        self.body.results.iter().map(|&v| self.ty(v)).collect()
    }

    /// A number that is the same for the same instructions on the same arguments, and most likely another for
    /// others. Names and places do not count.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = Numbers::default();
        // All other types follow.
        self.param_types().hash(&mut hasher);
        self.body.hash_into(&mut hasher);
        hasher.finish()
    }

    /// Rewrites the body, with the function at hand, and numbers the values anew.
    pub(crate) fn rewrite(&mut self, f: impl FnOnce(&mut Function, &mut Block)) {
        let mut body = core::mem::take(&mut self.body);
        f(self, &mut body);
        self.body = body;
        self.renumber();
    }

    /// Numbers the values anew in the order of their definition and forgets those that nothing defines.
    pub fn renumber(&mut self) {
        const NONE: Value = Value(u32::MAX);
        let mut map = vec![NONE; self.values.len()];
        let mut order = Vec::with_capacity(self.values.len());
        self.body.for_each_definition(&mut |value| {
            map[value.index()] = Value(order.len() as u32);
            order.push(value);
        });
        let in_order = order.iter().enumerate().all(|(at, value)| value.index() == at);
        if in_order && order.len() == self.values.len() {
            return;
        }
        self.values = order.iter().map(|v| self.values[v.index()].clone()).collect();
        self.body.rename(&|value| {
            let new = map[value.index()];
            assert!(new != NONE, "v{} is used and never defined", value.0);
            new
        });
    }
}

impl Block {
    fn hash_into(&self, hasher: &mut Numbers) {
        self.params.hash(hasher);
        self.insts.len().hash(hasher);
        for inst in &self.insts {
            inst.op.hash(hasher);
            inst.args.hash(hasher);
            inst.blocks.iter().for_each(|block| block.hash_into(hasher));
            inst.results.hash(hasher);
        }
        self.results.hash(hasher);
    }

    /// How many instructions there are, those of inner blocks included.
    pub fn size(&self) -> usize {
        self.insts.iter().map(|inst| 1 + inst.blocks.iter().map(Block::size).sum::<usize>()).sum()
    }

    /// Calls `f` with every value that is defined here or inside, in order.
    pub fn for_each_definition(&self, f: &mut (impl FnMut(Value) + ?Sized)) {
        self.params.iter().copied().for_each(&mut *f);
        for inst in &self.insts {
            for block in &inst.blocks {
                block.for_each_definition(f);
            }
            inst.results.iter().copied().for_each(&mut *f);
        }
    }

    /// Calls `f` with every use of a value here or inside, in order.
    pub fn for_each_use(&self, f: &mut (impl FnMut(Value) + ?Sized)) {
        for inst in &self.insts {
            inst.for_each_use(f);
        }
        self.results.iter().copied().for_each(&mut *f);
    }

    /// How many instructions here and inside are like this.
    pub fn count(&self, is: impl Fn(&Inst) -> bool) -> usize {
        let mut found = 0;
        self.for_each_inst(&mut |inst| found += usize::from(is(inst)));
        found
    }

    /// Calls `f` with every instruction here and inside, outer ones first.
    pub fn for_each_inst(&self, f: &mut (impl FnMut(&Inst) + ?Sized)) {
        for inst in &self.insts {
            f(inst);
            for block in &inst.blocks {
                block.for_each_inst(f);
            }
        }
    }

    /// The values used here or inside that are defined outside, in the order of first use.
    pub fn captures(&self) -> Vec<Value> {
        let mut defined = FastSet::default();
        self.for_each_definition(&mut |value| {
            defined.insert(value);
        });
        let mut seen = FastSet::default();
        let mut captured = Vec::new();
        self.for_each_use(&mut |value| {
            if !defined.contains(&value) && seen.insert(value) {
                captured.push(value);
            }
        });
        captured
    }

    /// Replaces every value, used or defined, here and inside.
    pub fn rename(&mut self, map: &impl Fn(Value) -> Value) {
        let all = |values: &mut [Value]| values.iter_mut().for_each(|value| *value = map(*value));
        all(&mut self.params);
        for inst in &mut self.insts {
            all(&mut inst.args);
            for block in &mut inst.blocks {
                block.rename(map);
            }
            all(&mut inst.results);
        }
        all(&mut self.results);
    }

    /// Replaces uses of the map's keys by its values, here and inside.
    pub fn substitute<S: BuildHasher>(&mut self, map: &HashMap<Value, Value, S>) {
        if map.is_empty() {
            return;
        }
        let all = |values: &mut [Value]| {
            values.iter_mut().for_each(|value| *value = map.get(value).copied().unwrap_or(*value));
        };
        for inst in &mut self.insts {
            all(&mut inst.args);
            inst.blocks.iter_mut().for_each(|block| block.substitute(map));
        }
        all(&mut self.results);
    }
}

impl Inst {
    /// An instruction without blocks.
    pub fn new(op: Op, args: impl Into<Values>, results: impl Into<Values>, span: Span) -> Inst {
        Inst { op, args: args.into(), blocks: Vec::new(), results: results.into(), span }
    }

    /// Calls `f` with every value that it uses, its blocks' uses included.
    pub fn for_each_use(&self, f: &mut (impl FnMut(Value) + ?Sized)) {
        self.args.iter().copied().for_each(&mut *f);
        self.blocks.iter().for_each(|block| block.for_each_use(f));
    }
}

// Programs go between threads: what runs them in parallel shares one.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Program>();
};
