//! Building functions by hand: one of the three ways to make a program, and what the other two use.
//!
//! Input: operations and operands. Output: a verified [`Program`]. A mistake does not stop the building: it
//! is kept, the operation gives a value of a plausible type, and [`ProgramBuilder::finish`] reports all
//! mistakes at once.

use std::collections::HashMap;
use std::sync::Arc;

use palinode_core::rules;

use crate::op::{Axis, Comparison, FuncId, IntOp, Literal, Op, Reduction, Rule};
use crate::program::{Block, Function, Inst, Program, Value};
use crate::types::{Elem, Span, Type};
use crate::typing::result_types;
use crate::verify::{Invalid, verify};

/// Builds one function.
///
/// ```
/// use palinode_ir::{FunctionBuilder, Program, Type};
///
/// let mut b = FunctionBuilder::new("main");
/// let x = b.param("x", Type::REAL);
/// let n = b.int(3);
/// let powers = b.for_loop(n, &[x], |b, _k, state| vec![b.mul(state[0], state[0])]);
/// let program: Program = b.finish_program(&powers, &["y"]).unwrap();
/// assert_eq!(program.main().body.insts.len(), 2);
/// ```
#[derive(Debug)]
pub struct FunctionBuilder {
    function: Function,
    /// The open blocks, innermost last.
    open: Vec<Block>,
    /// Where the instructions to come are from.
    span: Span,
    mistakes: Vec<String>,
    /// The types of the functions that may be called.
    signatures: HashMap<FuncId, (Vec<Type>, Vec<Type>)>,
}

impl FunctionBuilder {
    /// A function without parameters yet.
    pub fn new(name: &str) -> FunctionBuilder {
        FunctionBuilder {
            function: Function::new(name),
            open: vec![Block::default()],
            span: Span::NONE,
            mistakes: Vec::new(),
            signatures: HashMap::new(),
        }
    }

    /// Goes on where `function` stops: its values stay, its body is opened again.
    pub fn resume(mut function: Function) -> FunctionBuilder {
        let body = core::mem::take(&mut function.body);
        let mut builder = FunctionBuilder::new("");
        builder.function = function;
        builder.open = vec![body];
        builder
    }

    /// A builder with the values of `function` and an empty body: for rewriting it.
    pub(crate) fn rewrite(function: &Function) -> FunctionBuilder {
        let mut builder = FunctionBuilder::new(&function.name);
        builder.function.values = function.values.clone();
        builder.function.tangent_rule = None;
        builder.open[0].params = function.body.params.clone();
        builder
    }

    /// Adds a parameter of the function that exists already.
    pub(crate) fn adopt_param(&mut self, value: Value) {
        self.open[0].params.push(value);
    }

    /// Says that `callee` takes and gives these types, so that it can be called.
    pub fn declare(&mut self, callee: FuncId, params: Vec<Type>, results: Vec<Type>) {
        self.signatures.insert(callee, (params, results));
    }

    /// The place in the source that the next instructions come from.
    pub fn at(&mut self, span: Span) {
        self.span = span;
    }

    /// The place set by [`FunctionBuilder::at`].
    pub fn span(&self) -> Span {
        self.span
    }

    /// Another argument of the function.
    pub fn param(&mut self, name: &str, ty: Type) -> Value {
        let value = self.function.fresh(ty, Some(name.into()));
        self.open[0].params.push(value);
        value
    }

    /// The type of a value.
    pub fn ty(&self, value: Value) -> Type {
        // A value of another builder is reported by the verifier.
        self.function.values.get(value.index()).map_or(Type::REAL, |info| info.ty)
    }

    /// The name of a value.
    pub fn name_of(&self, value: Value) -> Option<Arc<str>> {
        self.function.name_of(value).cloned()
    }

    /// As [`FunctionBuilder::name`], with a text that others may have too.
    pub(crate) fn share_name(&mut self, value: Value, name: &Arc<str>) {
        let own = &mut self.function.values[value.index()].name;
        if own.is_none() {
            *own = Some(Arc::clone(name));
        }
    }

    /// Gives a value a name, unless it has one.
    pub fn name(&mut self, value: Value, name: &str) {
        let own = &mut self.function.values[value.index()].name;
        if own.is_none() {
            *own = Some(name.into());
        }
    }

    /// A value that an instruction will define.
    pub fn fresh(&mut self, ty: Type) -> Value {
        self.function.fresh(ty, None)
    }

    /// A value like `value`, with the same type and name, that an instruction will define.
    pub fn fresh_like(&mut self, value: Value) -> Value {
        let info = self.function.values[value.index()].clone();
        self.function.fresh(info.ty, info.name)
    }

    /// Appends an instruction as it is.
    pub fn push(&mut self, inst: Inst) {
        self.open.last_mut().expect("a block is open").insts.push(inst);
    }

    fn mistake(&mut self, what: String) {
        self.mistakes.push(what);
    }

    /// Applies an operation without blocks that has several results.
    pub fn emit_all(&mut self, op: Op, args: &[Value]) -> Vec<Value> {
        let types: Vec<Type> = args.iter().map(|&arg| self.ty(arg)).collect();
        let found = match &op {
            Op::Call(callee) => match self.signatures.get(callee) {
                Some((params, results)) if *params == types => Ok(results.clone()),
                Some((params, results)) => {
                    let mistake = format!("function {} takes {params:?}, not {types:?}", callee.0);
                    self.mistakes.push(mistake);
                    Ok(results.clone())
                }
                None => Err(format!("function {} is not declared", callee.0)),
            },
            _ => result_types(&op, &types),
        };
        let results = found.unwrap_or_else(|mistake| {
            self.mistake(mistake);
            vec![types.first().copied().unwrap_or(Type::REAL)]
        });
        let results: Vec<Value> = results.into_iter().map(|ty| self.fresh(ty)).collect();
        let span = self.span;
        self.push(Inst::new(op, args.to_vec(), results.clone(), span));
        results
    }

    /// Applies an operation without blocks that has one result.
    pub fn emit(&mut self, op: Op, args: &[Value]) -> Value {
        self.emit_all(op, args)[0]
    }

    /// Opens a block with parameters of these types. Instructions go there until [`FunctionBuilder::close`].
    pub fn open(&mut self, params: &[Type]) -> Vec<Value> {
        let params: Vec<Value> = params.iter().map(|&ty| self.fresh(ty)).collect();
        self.open.push(Block { params: params.clone(), ..Block::default() });
        params
    }

    /// Opens a block whose parameters exist already.
    pub(crate) fn open_with(&mut self, params: Vec<Value>) {
        self.open.push(Block { params, ..Block::default() });
    }

    /// A closed block as a function of its parameters and of what it reads besides, which is given too.
    pub(crate) fn outlined(&self, name: &str, block: Block) -> (Function, Vec<Value>) {
        let read = block.captures();
        let mut function = Function::new(name);
        function.values = self.function.values.clone();
        function.body = Block { params: [&block.params[..], &read].concat(), ..block };
        function.renumber();
        (function, read)
    }

    /// Closes the innermost block.
    pub fn close(&mut self, results: &[Value]) -> Block {
        assert!(self.open.len() > 1, "the function's own block is closed by finish");
        let mut block = self.open.pop().expect("a block is open");
        block.results = results.to_vec();
        block
    }

    /// Applies an operation with blocks; its results have these types.
    pub fn emit_blocks(
        &mut self,
        op: Op,
        args: &[Value],
        blocks: Vec<Block>,
        results: &[Type],
    ) -> Vec<Value> {
        let results: Vec<Value> = results.iter().map(|&ty| self.fresh(ty)).collect();
        let span = self.span;
        self.push(Inst { op, args: args.into(), blocks, results: results.as_slice().into(), span });
        results
    }

    fn types(&self, values: &[Value]) -> Vec<Type> {
        values.iter().map(|&value| self.ty(value)).collect()
    }

    /// `body(k, state)` for `k` in `0..n`, from `initial`; gives the last state.
    pub fn for_loop(
        &mut self,
        n: Value,
        initial: &[Value],
        body: impl FnOnce(&mut Self, Value, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let types = self.types(initial);
        let params = self.open(&[&[Type::INT], &types[..]].concat());
        let next = body(self, params[0], &params[1..]);
        let block = self.close(&next);
        let args = [&[n], initial].concat();
        self.emit_blocks(Op::For { descending: false, keep: None }, &args, vec![block], &types)
    }

    /// `body(state)` while `condition(state)`, from `initial`; gives the last state.
    pub fn while_loop(
        &mut self,
        initial: &[Value],
        condition: impl FnOnce(&mut Self, &[Value]) -> Value,
        body: impl FnOnce(&mut Self, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let types = self.types(initial);
        let params = self.open(&types);
        let holds = condition(self, &params);
        let head = self.close(&[holds]);
        let params = self.open(&types);
        let next = body(self, &params);
        let block = self.close(&next);
        self.emit_blocks(Op::While { keep: None }, initial, vec![head, block], &types)
    }

    /// The results of `then` if `condition` holds, else of `otherwise`.
    pub fn if_else(
        &mut self,
        condition: Value,
        then: impl FnOnce(&mut Self) -> Vec<Value>,
        otherwise: impl FnOnce(&mut Self) -> Vec<Value>,
    ) -> Vec<Value> {
        self.open(&[]);
        let yes = then(self);
        let types = self.types(&yes);
        let yes = self.close(&yes);
        self.open(&[]);
        let no = otherwise(self);
        let no = self.close(&no);
        self.emit_blocks(Op::If, &[condition], vec![yes, no], &types)
    }

    /// A literal.
    pub fn literal(&mut self, literal: Literal) -> Value {
        self.emit(Op::Const(literal), &[])
    }
    /// A real literal.
    pub fn real(&mut self, value: f64) -> Value {
        self.literal(Literal::Real(value))
    }
    /// An integer literal.
    pub fn int(&mut self, value: i64) -> Value {
        self.literal(Literal::Int(value))
    }
    /// A truth value.
    pub fn bool(&mut self, value: bool) -> Value {
        self.literal(Literal::Bool(value))
    }
    /// A row of the rule table.
    pub fn map(&mut self, rule: impl Into<Rule>, args: &[Value]) -> Value {
        self.emit(Op::Map(rule.into()), args)
    }
    /// `a + b`.
    pub fn add(&mut self, a: Value, b: Value) -> Value {
        self.map(rules::Row::Add, &[a, b])
    }
    /// `a - b`.
    pub fn sub(&mut self, a: Value, b: Value) -> Value {
        self.map(rules::Row::Subtract, &[a, b])
    }
    /// `a * b`.
    pub fn mul(&mut self, a: Value, b: Value) -> Value {
        self.map(rules::Row::Multiply, &[a, b])
    }
    /// `a / b`.
    pub fn div(&mut self, a: Value, b: Value) -> Value {
        self.map(rules::Row::Divide, &[a, b])
    }
    /// `-a`.
    pub fn neg(&mut self, a: Value) -> Value {
        self.map(rules::Row::Negate, &[a])
    }
    /// Integer arithmetic.
    pub fn integer(&mut self, op: IntOp, a: Value, b: Value) -> Value {
        self.emit(Op::Int(op), &[a, b])
    }
    /// A comparison.
    pub fn compare(&mut self, op: Comparison, a: Value, b: Value) -> Value {
        self.emit(Op::Compare(op), &[a, b])
    }
    /// `a` where `condition` holds, else `b`.
    pub fn select(&mut self, condition: Value, a: Value, b: Value) -> Value {
        self.emit(Op::Select, &[condition, a, b])
    }
    /// Conversion to another kind of element.
    pub fn convert(&mut self, elem: Elem, a: Value) -> Value {
        self.emit(Op::Convert(elem), &[a])
    }
    /// The length along an axis.
    pub fn dim(&mut self, a: Value, axis: u8) -> Value {
        self.emit(Op::Dim(axis), &[a])
    }
    /// An array of these lengths, full of the scalar `x`.
    pub fn fill(&mut self, x: Value, lengths: &[Value]) -> Value {
        if lengths.is_empty() {
            return x;
        }
        self.emit(Op::Broadcast(Vec::new()), &[&[x], lengths].concat())
    }
    /// The element at these indices.
    pub fn index(&mut self, a: Value, indices: &[Value]) -> Value {
        self.emit(Op::Read(vec![Axis::At; indices.len()]), &[&[a], indices].concat())
    }
    /// `a` with `x` at these indices.
    pub fn update(&mut self, a: Value, indices: &[Value], x: Value) -> Value {
        self.emit(Op::Write(vec![Axis::At; indices.len()]), &[&[a, x], indices].concat())
    }
    /// The sum of all elements.
    pub fn sum(&mut self, a: Value) -> Value {
        let axes = (0..self.ty(a).rank).collect();
        self.emit(Op::Reduce(Reduction::Sum, axes), &[a])
    }

    /// The function as it was built, and the mistakes made on the way.
    pub fn finish(mut self, results: &[Value]) -> (Function, Vec<String>) {
        if self.open.len() != 1 {
            self.mistake(format!("{} blocks are still open", self.open.len() - 1));
        }
        let mut body = self.open.swap_remove(0);
        body.results = results.to_vec();
        self.function.body = body;
        (self.function, self.mistakes)
    }

    /// A program of this one function.
    ///
    /// # Errors
    /// Every mistake that was made while building, or what the verifier found.
    pub fn finish_program(self, results: &[Value], outputs: &[&str]) -> Result<Program, Invalid> {
        let mut builder = ProgramBuilder::new();
        let id = builder.reserve();
        builder.define(id, self.finish(results));
        builder.finish(id, outputs)
    }
}

/// Puts functions together.
#[derive(Debug, Default)]
pub struct ProgramBuilder {
    functions: Vec<Option<Function>>,
    mistakes: Vec<String>,
}

impl ProgramBuilder {
    /// Without functions.
    pub fn new() -> ProgramBuilder {
        ProgramBuilder::default()
    }

    /// A number for a function that will be defined, so that others can call it.
    pub fn reserve(&mut self) -> FuncId {
        self.functions.push(None);
        FuncId((self.functions.len() - 1) as u32)
    }

    /// Defines a function, as [`FunctionBuilder::finish`] gives it.
    pub fn define(&mut self, id: FuncId, (function, mistakes): (Function, Vec<String>)) {
        self.mistakes.extend(mistakes.into_iter().map(|what| format!("in `{}`: {what}", function.name)));
        self.functions[id.index()] = Some(function);
    }

    /// The program that starts at `entry`, verified.
    ///
    /// # Errors
    /// Every mistake that was made while building, or what the verifier found.
    pub fn finish(mut self, entry: FuncId, outputs: &[&str]) -> Result<Program, Invalid> {
        for (at, function) in self.functions.iter().enumerate() {
            if function.is_none() {
                self.mistakes.push(format!("function {at} is not defined"));
            }
        }
        if !self.mistakes.is_empty() {
            return Err(Invalid { problems: self.mistakes });
        }
        let mut functions: Vec<Function> = self.functions.into_iter().flatten().collect();
        functions.iter_mut().for_each(Function::renumber);
        let program =
            Program { functions, entry, outputs: outputs.iter().map(|&name| Arc::from(name)).collect() };
        verify(&program)?;
        Ok(program)
    }
}
