//! A block once more, with values of its own.

use crate::fast::FastMap;
use crate::program::{Block, Function, Inst, Value, ValueInfo};

/// Copies blocks into a function. Values that the copied text defines are new; others are what the map says,
/// or themselves.
pub(super) struct Copier<'a> {
    /// Where the copy goes.
    pub(super) into: &'a mut Function,
    /// The table of values of where it comes from; `None` if that is the same function.
    pub(super) from: Option<&'a [ValueInfo]>,
    /// What values are called in the copy.
    pub(super) map: FastMap<Value, Value>,
}

impl Copier<'_> {
    /// What a value is called in the copy.
    pub(super) fn value(&self, value: Value) -> Value {
        self.map.get(&value).copied().unwrap_or(value)
    }

    fn values<C: FromIterator<Value>>(&self, values: &[Value]) -> C {
        values.iter().map(|&value| self.value(value)).collect()
    }

    fn define<C: FromIterator<Value>>(&mut self, values: &[Value]) -> C {
        let define = |&value: &Value| {
            let info = self.from.unwrap_or(&self.into.values)[value.index()].clone();
            let copy = self.into.fresh(info.ty, info.name);
            self.map.insert(value, copy);
            copy
        };
        values.iter().map(define).collect()
    }

    /// Instructions, in order, after `out`.
    pub(super) fn insts(&mut self, insts: &[Inst], out: &mut Vec<Inst>) {
        for inst in insts {
            let args = self.values(&inst.args);
            let blocks = inst.blocks.iter().map(|block| self.block(block)).collect();
            let results = self.define(&inst.results);
            out.push(Inst { op: inst.op.clone(), args, blocks, results, span: inst.span });
        }
    }

    fn block(&mut self, block: &Block) -> Block {
        let params = self.define(&block.params);
        let mut insts = Vec::with_capacity(block.insts.len());
        self.insts(&block.insts, &mut insts);
        Block { params, insts, results: self.values(&block.results) }
    }
}
