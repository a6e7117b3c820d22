//! The walk that rewriting passes share.
//!
//! Input: a function and [`Rules`]. Output: the function with every instruction replaced, changed or kept as
//! the rules say.
//!
//! The walk is in the order of definition, so when a rule sees an instruction its operands are final, and so
//! are their definitions, which the rule may look at through [`Writer::def`]. Because a definition's operands
//! are visible wherever its result is, a rule may use them.

use crate::op::{Literal, Op};
use crate::program::{Block, Function, Inst, Value, Values};
use crate::types::{Span, Type};
use crate::typing::result_types;

/// What happens to an instruction with blocks before the walk goes into them.
pub(super) enum Enter {
    /// The walk goes in.
    Blocks,
    /// These values stand for its results.
    Replace(Vec<Value>),
    /// It becomes the instructions of this block of it.
    Splice(usize),
}

/// What a pass does with an instruction.
pub(super) trait Rules {
    /// Called before the blocks of an instruction are walked; may change it.
    fn enter(&mut self, _w: &mut Writer<'_>, _inst: &mut Inst) -> Enter {
        Enter::Blocks
    }

    /// The values that stand for the results of `inst`, or `None` to keep it, changed or not. New
    /// instructions go before it by [`Writer::emit`].
    fn apply(&mut self, w: &mut Writer<'_>, inst: &mut Inst) -> Option<Vec<Value>>;
}

/// Rules for integers and truth values alone: what a derivative goes through stays as it is.
pub(super) struct Discrete<R>(pub(super) R);

impl<R: Rules> Rules for Discrete<R> {
    fn apply(&mut self, w: &mut Writer<'_>, inst: &mut Inst) -> Option<Vec<Value>> {
        let applies = inst.blocks.is_empty() && inst.results.iter().all(|&result| !w.ty(result).is_real());
        if applies { self.0.apply(w, inst) } else { None }
    }
}

/// How a value was computed.
pub(super) type Def = (Op, Values);

/// The function that is being written.
pub(super) struct Writer<'a> {
    function: &'a mut Function,
    /// Where in `open` the values are defined that come from instructions without blocks.
    defs: Vec<Option<(u32, u32)>>,
    /// What stands for each value.
    stands: Vec<Value>,
    /// How often each value is used, at least.
    uses: Vec<u32>,
    /// What has been written of the open blocks, outermost first.
    open: Vec<Vec<Inst>>,
    span: Span,
}

/// Applies rules to a function.
pub(super) fn rewrite(function: &mut Function, rules: &mut dyn Rules) {
    let count = function.values.len();
    let mut uses = vec![0; count];
    function.body.for_each_use(&mut |value| uses[value.index()] += 1);
    let body = core::mem::take(&mut function.body);
    let stands = (0..count as u32).map(Value).collect();
    let mut writer =
        Writer { function, defs: vec![None; count], stands, uses, open: Vec::new(), span: Span::NONE };
    let body = writer.block(body, rules);
    function.body = body;
    function.renumber();
}

impl Writer<'_> {
    /// The type of a value.
    pub(super) fn ty(&self, value: Value) -> Type {
        self.function.ty(value)
    }

    /// How a value was computed, if by an instruction without blocks.
    pub(super) fn def(&self, value: Value) -> Option<Def> {
        self.defined(value).map(|inst| (inst.op.clone(), inst.args.clone()))
    }

    /// The operands of a value that was computed by this operation.
    pub(super) fn args_of(&self, value: Value, op: &Op) -> Option<&[Value]> {
        self.defined(value).filter(|inst| inst.op == *op).map(|inst| &inst.args[..])
    }

    /// The literal that a value is.
    pub(super) fn literal(&self, value: Value) -> Option<Literal> {
        if let Op::Const(literal) = self.defined(value)?.op { Some(literal) } else { None }
    }

    fn defined(&self, value: Value) -> Option<&Inst> {
        let (depth, at) = self.defs[value.index()]?;
        // Its block may be closed, and another one open in its place.
        let inst = self.open.get(depth as usize)?.get(at as usize)?;
        (inst.results[..] == [value]).then_some(inst)
    }

    fn out(&mut self) -> &mut Vec<Inst> {
        self.open.last_mut().expect("a block is open")
    }

    /// The place of the next instruction.
    fn next_place(&self) -> (u32, u32) {
        let depth = self.open.len() - 1;
        (depth as u32, self.open[depth].len() as u32)
    }

    /// Whether nothing else uses the value that an instruction uses once.
    pub(super) fn is_single_use(&self, value: Value) -> bool {
        self.uses[value.index()] <= 1
    }

    /// A new instruction before the current one.
    ///
    /// # Panics
    /// If the operands do not fit: a rule is wrong.
    pub(super) fn emit(&mut self, op: Op, args: Vec<Value>) -> Value {
        let types: Vec<Type> = args.iter().map(|&arg| self.ty(arg)).collect();
        let types =
            result_types(&op, &types).unwrap_or_else(|mismatch| panic!("a rewrite is wrong: {mismatch}"));
        let result = self.function.fresh(types[0], None);
        self.defs.push(Some(self.next_place()));
        self.stands.push(result);
        self.uses.push(1);
        args.iter().for_each(|arg| self.uses[arg.index()] += 1);
        let inst = Inst::new(op, args, &[result][..], self.span);
        self.out().push(inst);
        result
    }

    /// A literal before the current instruction.
    pub(super) fn constant(&mut self, literal: Literal) -> Value {
        self.emit(Op::Const(literal), Vec::new())
    }

    /// Gives a value the name of another, unless it has one.
    pub(super) fn name(&mut self, value: Value, like: Value) {
        if self.function.name_of(value).is_none() {
            self.function.values[value.index()].name = self.function.name_of(like).cloned();
        }
    }

    /// The function and the instructions before the current one, to add to; [`Writer::catch_up`] must follow.
    pub(super) fn raw(&mut self) -> (&mut Function, &mut Vec<Inst>) {
        (self.function, self.open.last_mut().expect("a block is open"))
    }

    /// Takes note of values that were added by [`Writer::raw`]; how they were computed stays unknown for this
    /// walk.
    pub(super) fn catch_up(&mut self) {
        let count = self.function.values.len();
        self.defs.resize(count, None);
        self.uses.resize(count, 1);
        self.stands.extend((self.stands.len() as u32..count as u32).map(Value));
    }

    /// From now on `value` stands for `result`.
    pub(super) fn replace(&mut self, result: Value, value: Value) {
        self.stands[result.index()] = value;
        self.uses[value.index()] += self.uses[result.index()];
        self.name(value, result);
    }

    /// What stands for these values.
    pub(super) fn resolve(&self, values: &mut [Value]) {
        values.iter_mut().for_each(|value| *value = self.stands[value.index()]);
    }

    fn block(&mut self, mut block: Block, rules: &mut dyn Rules) -> Block {
        self.open.push(Vec::with_capacity(block.insts.len()));
        for inst in block.insts {
            self.inst(inst, rules);
        }
        block.insts = self.open.pop().expect("it was pushed above");
        self.resolve(&mut block.results);
        block
    }

    fn inst(&mut self, mut inst: Inst, rules: &mut dyn Rules) {
        self.resolve(&mut inst.args);
        self.span = inst.span;
        if !inst.blocks.is_empty() {
            match rules.enter(self, &mut inst) {
                Enter::Blocks => {}
                Enter::Replace(values) => return self.replace_all(&inst, &values),
                Enter::Splice(which) => {
                    let mut chosen = inst.blocks.swap_remove(which);
                    for inner in core::mem::take(&mut chosen.insts) {
                        self.inst(inner, rules);
                    }
                    self.resolve(&mut chosen.results);
                    return self.replace_all(&inst, &chosen.results);
                }
            }
            let blocks = core::mem::take(&mut inst.blocks);
            inst.blocks = blocks.into_iter().map(|block| self.block(block, rules)).collect();
            self.span = inst.span;
        }
        if let Some(values) = rules.apply(self, &mut inst) {
            return self.replace_all(&inst, &values);
        }
        if inst.blocks.is_empty() && inst.results.len() == 1 {
            self.defs[inst.results[0].index()] = Some(self.next_place());
        }
        self.out().push(inst);
    }

    fn replace_all(&mut self, inst: &Inst, values: &[Value]) {
        for (&result, &value) in inst.results.iter().zip(values) {
            self.replace(result, value);
        }
    }
}
