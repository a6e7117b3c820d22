//! Program -> loop form, for inputs of certain shapes.
//!
//! Input: a verified program, and inputs of which only the lengths and the single integers matter. Output: a
//! [`LoopForm`], or why there is none ([`Refusal`]): arrays whose lengths depend on numbers, recursion.
//!
//! An elementwise operation is not done where it stands. It is a formula ([`value::Def::Map`]) until
//! something needs its elements; then one loop computes them ([`array`]), with all the formulas inside it.
//! Slices, broadcasts and concatenations are other indices, and cost nothing. A formula is computed where it
//! stands if it is used several times and is not cheap, if only a part of it is used (its errors must occur
//! all the same), and before what it reads is changed.
//!
//! | file | does |
//! |---|---|
//! | `value` | what a value of the program is meanwhile |
//! | `scalar` | operations on scalars, ranges of integers |
//! | `array` | formulas -> loops |
//! | `view` | arrays that are others at other indices |
//! | `access` | reading, writing and adding at places; in place where nothing else needs the array |
//! | `control` | loops, branches, calls |
//! | `sweep` | reverse sweeps through loops that keep snapshots |
//! | `log` | vectors that loops push to |
//! | `product` | reductions, products of matrices and vectors |
//!
//! Invariants: a buffer is changed only if nothing else needs what is in it; the rounds of an `Each` do not
//! depend on each other.

mod access;
mod array;
mod control;
mod log;
mod product;
mod scalar;
mod sweep;
mod value;
mod view;

use core::borrow::Borrow;
use std::rc::Rc;

use super::form::{
    Buf, Buffer, DEEPEST, Given, Index, Kind, LoopForm, Operand, Origin, Place, Port, Refusal, Reg, Role,
    Stmt, Taken,
};
use crate::fast::FastMap;
use crate::interp::Datum;
use crate::liveness::{self, BlockMarks, InstMarks};
use crate::op::{Kind as OpKind, Literal, Op};
use crate::passes;
use crate::program::{Block, Function, Inst, Program, Value};
use crate::types::{Elem, Span, Type};
use palinode_core::Scalar;
use value::{Arr, Def, Handle, Single, Val, Whole};

/// How deeply calls may be nested.
const DEPTH: usize = 100;

/// The loop form of a program, for inputs like these.
///
/// # Errors
/// What has no loop form.
pub fn lower<D: Borrow<Datum<f64>>>(
    program: &Program,
    inputs: &[D],
    traps: bool,
) -> Result<LoopForm, Refusal> {
    let mut form = lower_plainly(program, inputs, traps)?;
    super::improve(&mut form);
    Ok(form)
}

/// The same before any [pass](super::improve).
///
/// # Errors
/// As [`lower`].
#[doc(hidden)]
pub fn lower_plainly<D: Borrow<Datum<f64>>>(
    program: &Program,
    inputs: &[D],
    traps: bool,
) -> Result<LoopForm, Refusal> {
    let program = passes::unfuse(program);
    let main = program.main();
    let mut lower = Lower {
        program: &program,
        form: LoopForm {
            name: main.name.clone(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            registers: Vec::new(),
            origins: Vec::new(),
            buffers: Vec::new(),
            body: Vec::new(),
            traps,
            spans: Vec::new(),
        },
        blocks: vec![Vec::new()],
        ranges: Vec::new(),
        saved: FastMap::default(),
        frames: Vec::new(),
        held: Vec::new(),
        span: Span::NONE,
    };
    let mut args = Vec::new();
    for (number, (input, ty)) in inputs.iter().zip(main.param_types()).enumerate() {
        args.push(lower.input(number, input.borrow(), ty));
    }
    let results = lower.function(main, args)?;
    for result in results {
        let port = match result {
            Val::Single(single) => Port::Scalar(lower.operand(&single)),
            result => Port::Array(lower.place_of(&result)?),
        };
        lower.form.outputs.push(port);
    }
    lower.form.body = lower.blocks.pop().expect("the first block");
    if nesting(&lower.form.body) > DEEPEST {
        return lower.refuse("loops that are nested deeply");
    }
    Ok(lower.form)
}

/// A function that is being lowered: its values so far, and how often each is used.
struct Frame<'p> {
    function: &'p Function,
    env: Vec<Option<Val>>,
    uses: Vec<u32>,
    /// Values that do not have memory of their own: formulas and views. Some may be gone.
    pending: Vec<Value>,
    /// Where those of the innermost loop begin. What is outside of a loop is never changed inside of it, and
    /// must not be computed there.
    innermost: usize,
}

struct Lower<'p> {
    program: &'p Program,
    form: LoopForm,
    /// The statements of the blocks that are being written, outermost first.
    blocks: Vec<Vec<Stmt>>,
    /// What is known of integers in registers.
    ranges: Vec<(i64, i64)>,
    /// How many copies of handles are kept aside, for another branch or round. They do not need the memory
    /// here.
    saved: FastMap<*const Handle, usize>,
    frames: Vec<Frame<'p>>,
    /// Memory that the statements of the instruction at hand use.
    held: Vec<Rc<Handle>>,
    span: Span,
}

const ANY: (i64, i64) = (i64::MIN, i64::MAX);

impl<'p> Lower<'p> {
    fn refuse<T>(&self, what: impl Into<String>) -> Result<T, Refusal> {
        Err(Refusal { what: what.into(), span: self.span })
    }

    fn emit(&mut self, stmt: Stmt) {
        self.blocks.last_mut().expect("a block is being written").push(stmt);
    }

    fn emit_all(&mut self, stmts: Vec<Stmt>) {
        self.blocks.last_mut().expect("a block is being written").extend(stmts);
    }

    /// The statements that `write` emits, in a block of their own.
    fn in_block<E>(&mut self, write: impl FnOnce(&mut Self) -> Result<(), E>) -> Result<Vec<Stmt>, E> {
        let depth = self.blocks.len();
        self.blocks.push(Vec::new());
        let written = write(self);
        let stmts = self.blocks.drain(depth..).next().expect("just pushed");
        written.map(|()| stmts)
    }

    fn register(&mut self, kind: Kind) -> Reg {
        self.form.registers.push(kind);
        self.form.origins.push(Origin { name: None, span: self.span });
        self.ranges.push(ANY);
        Reg(u32::try_from(self.form.registers.len() - 1).expect("fewer than 2^32 registers"))
    }

    /// A register for an integer in this range, both ends included.
    fn counter(&mut self, least: i64, most: i64) -> Reg {
        let reg = self.register(Kind::Int);
        self.ranges[reg.index()] = (least, most);
        reg
    }

    fn buffer(
        &mut self,
        kind: Kind,
        length: usize,
        role: Role,
        name: Option<std::sync::Arc<str>>,
    ) -> Rc<Handle> {
        self.form.buffers.push(Buffer { kind, length: length as u64, role, name });
        let buf = Buf(u32::try_from(self.form.buffers.len() - 1).expect("fewer than 2^32 buffers"));
        Rc::new(Handle { buf })
    }

    /// Memory of the workspace for a new array; which arrays share memory is decided later.
    fn allocate(&mut self, kind: Kind, length: usize) -> Rc<Handle> {
        self.buffer(kind, length, Role::Workspace, None)
    }

    fn is_workspace(&self, handle: &Handle) -> bool {
        self.form.buffers[handle.buf.index()].role == Role::Workspace
    }

    /// Whether nothing else needs the memory.
    fn is_unique(&self, handle: &Rc<Handle>) -> bool {
        self.needs(handle) == 1
    }

    /// How many need the memory.
    fn needs(&self, handle: &Rc<Handle>) -> usize {
        let saved = self.saved.get(&Rc::as_ptr(handle)).copied().unwrap_or(0);
        Rc::strong_count(handle) - saved
    }

    fn input(&mut self, number: usize, input: &Datum<f64>, ty: Type) -> Val {
        let kind = Kind::of(ty.elem);
        if !ty.is_scalar() {
            let handle = self.buffer(kind, input.elements(), Role::Input(number), None);
            let place = Place::first(handle.buf, input.shape().to_vec());
            self.form.inputs.push(Port::Array(place));
            return Val::Array(Arr::whole(ty.elem, input.shape().into(), handle));
        }
        if let Some(n) = input.as_int() {
            self.form.inputs.push(Port::Scalar(Operand::Int(n)));
            return Val::Single(Single::Whole(Whole::known(n)));
        }
        let reg = self.register(kind);
        self.form.inputs.push(Port::Scalar(Operand::Reg(reg)));
        Val::Single(self.single(reg))
    }

    /// What a register holds, as a value.
    fn single(&self, reg: Reg) -> Single {
        match self.form.registers[reg.index()] {
            Kind::Real => Single::Real(Operand::Reg(reg)),
            Kind::Bool => Single::Truth(Operand::Reg(reg)),
            Kind::Int => {
                let (least, most) = self.ranges[reg.index()];
                Single::Whole(Whole { index: Index::reg(reg), least, most })
            }
        }
    }

    /// The body of a function with these arguments, here.
    fn function(&mut self, function: &'p Function, args: Vec<Val>) -> Result<Vec<Val>, Refusal> {
        if self.frames.len() >= DEPTH {
            return self.refuse("a deep nest of calls");
        }
        let mut uses = vec![0; function.values.len()];
        function.body.for_each_use(&mut |value| uses[value.index()] += 1);
        // A use of the length alone computes nothing.
        function.body.for_each_inst(&mut |inst| {
            if let Op::Dim(_) = inst.op {
                uses[inst.args[0].index()] -= 1;
            }
        });
        let marks = liveness::mark(function);
        let env = vec![None; function.values.len()];
        self.frames.push(Frame { function, env, uses, pending: Vec::new(), innermost: 0 });
        for (&param, arg) in function.body.params.iter().zip(args) {
            self.define(param, arg)?;
        }
        self.insts(&function.body, &marks)?;
        let results = self.operands(&function.body.results, &marks.results_die);
        self.frames.pop();
        Ok(results)
    }

    fn frame(&self) -> &Frame<'p> {
        self.frames.last().expect("a function is being lowered")
    }

    fn frame_mut(&mut self) -> &mut Frame<'p> {
        self.frames.last_mut().expect("a function is being lowered")
    }

    fn ty(&self, value: Value) -> Type {
        self.frame().function.ty(value)
    }

    /// A value; its last use removes it.
    fn fetch(&mut self, value: Value, dies: bool) -> Val {
        let val = &mut self.frame_mut().env[value.index()];
        let found = if dies { val.take() } else { val.clone() };
        found.expect("a definition precedes every use")
    }

    /// Operands in order; if one that dies is used several times, the last use removes it.
    fn operands(&mut self, values: &[Value], dies: &[bool]) -> Vec<Val> {
        let one = |at: usize| dies[at] && !values[at + 1..].contains(&values[at]);
        let ends: Vec<bool> = (0..values.len()).map(one).collect();
        values
            .iter()
            .zip(ends)
            .map(|(&value, ends)| {
                // Scalars are not marked, and stay.
                let ends = ends && !self.ty(value).is_scalar();
                self.fetch(value, ends)
            })
            .collect()
    }

    /// Sets a value. A formula is computed now if waiting would compute it again and again.
    fn define(&mut self, value: Value, val: Val) -> Result<(), Refusal> {
        self.baptise(value, &val);
        let val = match val {
            Val::Array(array) if array.is_computed() => {
                let uses = self.frame().uses[value.index()];
                if uses == 1 || (uses > 1 && array.cost() <= array::CHEAP) {
                    Val::Array(array)
                } else {
                    let name = self.frame().function.name_of(value).cloned();
                    Val::Array(self.stored(array, name)?)
                }
            }
            val => val,
        };
        if let Val::Array(Arr { def, .. }) = &val
            && !matches!(def, Def::Filled(_) | Def::Iota)
        {
            self.frame_mut().pending.push(value);
        }
        self.frame_mut().env[value.index()] = Some(val);
        Ok(())
    }

    /// What holds a value is called as the source calls it, if it has no name yet.
    fn baptise(&mut self, value: Value, val: &Val) {
        let Some(name) = self.frame().function.name_of(value).cloned() else { return };
        let named = match val {
            Val::Single(Single::Real(Operand::Reg(reg)) | Single::Truth(Operand::Reg(reg))) => {
                &mut self.form.origins[reg.index()].name
            }
            Val::Single(Single::Whole(Whole { index: Index { constant: 0, terms }, .. })) => {
                match terms[..] {
                    [(reg, 1)] => &mut self.form.origins[reg.index()].name,
                    _ => return,
                }
            }
            // A part of an array has a name of its own.
            Val::Array(Arr { def: Def::Stored { handle, first, .. }, shape, .. }) => {
                let buffer = &mut self.form.buffers[handle.buf.index()];
                let is_whole =
                    first.known() == Some(0) && shape.iter().product::<usize>() as u64 == buffer.length;
                if !is_whole {
                    return;
                }
                &mut buffer.name
            }
            Val::Single(_) | Val::Array(_) | Val::Log(_) => return,
        };
        named.get_or_insert(name);
    }

    fn forget(&mut self, values: &[Value]) {
        for &value in values {
            self.frame_mut().env[value.index()] = None;
        }
    }

    fn insts(&mut self, block: &'p Block, marks: &BlockMarks) -> Result<(), Refusal> {
        self.forget(&marks.release_at_start);
        for (inst, marks) in block.insts.iter().zip(&marks.insts) {
            let outer = core::mem::replace(&mut self.span, inst.span);
            self.inst(inst, marks)?;
            self.held.clear();
            self.forget(&marks.release_after);
            self.span = outer;
        }
        Ok(())
    }

    fn inst(&mut self, inst: &'p Inst, marks: &InstMarks) -> Result<(), Refusal> {
        match &inst.op {
            Op::For { descending, .. } => return self.for_loop(inst, marks, *descending),
            Op::While { .. } => return self.while_loop(inst, marks),
            Op::If => return self.branches(inst, marks),
            Op::Call(callee) => {
                let args = self.operands(&inst.args, &marks.dies);
                for arg in &args {
                    // A function knows nothing of what its caller still needs of the memory.
                    if let Val::Array(array) = arg
                        && let Some(handle) = self.owned(array)
                    {
                        let buf = handle.buf;
                        drop(handle);
                        self.settle(buf)?;
                    }
                }
                self.emit(Stmt::Step);
                let program = self.program;
                let results = self.function(program.function(*callee), args)?;
                return self.define_all(inst, results);
            }
            Op::Sweep { keep, .. } => return self.sweep(inst, marks, *keep),
            _ => {}
        }
        if !matches!(inst.op.facts().kind, OpKind::Elementwise | OpKind::Literal | OpKind::Measures) {
            self.keep_what_is_stored(inst, marks)?;
        }
        let args = self.operands(&inst.args, &marks.dies);
        let ty = self.ty(inst.results[0]);
        let result = match &inst.op {
            Op::Const(literal) => Some(Val::Single(constant(*literal))),
            op if op.facts().kind == OpKind::Elementwise => Some(self.elementwise(op, ty, args)?),
            Op::Dim(axis) => Some(match &args[0] {
                Val::Array(array) => {
                    Val::Single(Single::Whole(Whole::known(array.shape[usize::from(*axis)] as i64)))
                }
                Val::Log(log) => Val::Single(Single::Whole(log.length.clone())),
                Val::Single(_) => unreachable!("typing: the length of an array"),
            }),
            Op::Iota => self
                .lengths(&args)?
                .map(|shape| Val::Array(Arr { elem: Elem::Int, shape: shape.into(), def: Def::Iota })),
            Op::Broadcast(axes) => match self.lengths(&args[1..])? {
                Some(shape) => self.broadcast(axes, args, &shape)?,
                None => None,
            },
            Op::Reshape => match self.lengths(&args[1..])? {
                Some(shape) => self.reshape(args, &shape)?,
                None => None,
            },
            Op::Permute(axes) => Some(self.permute(axes, args)?),
            Op::Concat(axis) => self.concat(usize::from(*axis), args)?,
            Op::Read(places) => self.read(places, args)?,
            Op::Write(places) => self.update(places, args, ty, false)?,
            Op::AddAt(places) => self.update(places, args, ty, true)?,
            Op::Push => Some(self.push(args)?),
            Op::Reduce(kind, axes) => self.reduce(*kind, axes, ty, args)?,
            Op::MatMul { a_transposed, b_transposed, strong } => {
                self.matmul([*a_transposed, *b_transposed], *strong, ty, args)?
            }
            Op::AddOuter { strong } => self.add_outer(*strong, ty, args)?,
            Op::Outer { strong } => Some(self.outer(*strong, ty, args)?),
            op => return self.kernel(op, inst, args),
        };
        match result {
            Some(result) => self.define(inst.results[0], result),
            None => self.stopped(inst),
        }
    }

    /// Formulas whose elements an instruction needs in memory are computed once, if others use them, too.
    fn keep_what_is_stored(&mut self, inst: &Inst, marks: &InstMarks) -> Result<(), Refusal> {
        let count = match inst.op {
            Op::Concat(_) => 0,
            // What is written may stay a formula.
            Op::Write(_) | Op::AddAt(_) => 1,
            _ => inst.args.len(),
        };
        for (&value, _) in inst.args.iter().zip(&marks.dies).take(count).filter(|(_, dies)| !**dies) {
            if let Some(Val::Array(array)) = &self.frame().env[value.index()]
                && array.is_computed()
            {
                let name = self.frame().function.name_of(value).cloned();
                self.compute(value, name)?;
            }
        }
        Ok(())
    }

    /// Computes the formula or view that a value is, into memory of its own.
    fn compute(&mut self, value: Value, name: Option<std::sync::Arc<str>>) -> Result<(), Refusal> {
        let Some(Val::Array(array)) = self.frame_mut().env[value.index()].take() else {
            unreachable!("an array")
        };
        let stored = self.copied(array, name)?;
        self.frame_mut().env[value.index()] = Some(Val::Array(stored));
        Ok(())
    }

    fn define_all(&mut self, inst: &Inst, results: Vec<Val>) -> Result<(), Refusal> {
        inst.results.iter().zip(results).try_for_each(|(&value, result)| self.define(value, result))
    }

    /// What is left of an instruction that is known to fail: the run stops here, and what it would have given
    /// is never looked at.
    fn stopped(&mut self, inst: &Inst) -> Result<(), Refusal> {
        self.emit(Stmt::Stop);
        if inst.results.iter().any(|&result| !self.ty(result).is_scalar()) {
            // Nothing is known of its lengths.
            return self.refuse("an operation on arrays that always fails");
        }
        for &result in &inst.results {
            let nothing = Single::nothing(Kind::of(self.ty(result).elem));
            self.define(result, Val::Single(nothing))?;
        }
        Ok(())
    }

    /// Lengths, which must be known; `None` if one is negative.
    fn lengths(&mut self, args: &[Val]) -> Result<Option<Vec<usize>>, Refusal> {
        let mut lengths = Vec::new();
        for arg in args {
            let Val::Single(Single::Whole(n)) = arg else { unreachable!("typing: lengths are integers") };
            let Some(n) = n.index.known() else {
                return self.refuse("an array whose length depends on numbers");
            };
            let Ok(n) = usize::try_from(n) else { return Ok(None) };
            lengths.push(n);
        }
        // What does not fit into memory is for the interpreter to refuse.
        let elements = lengths.iter().try_fold(1usize, |all, &n| all.checked_mul(n));
        match elements {
            Some(elements) if elements < 1 << 40 => Ok(Some(lengths)),
            _ => Ok(None),
        }
    }

    /// An operation that a kernel does.
    fn kernel(&mut self, op: &Op, inst: &Inst, args: Vec<Val>) -> Result<(), Refusal> {
        let mut given = Vec::new();
        for arg in &args {
            given.push(match arg {
                Val::Single(single) => Given::Scalar(self.operand(single)),
                array => Given::Array(self.place_of(array)?),
            });
        }
        let Some(shapes) = self.result_shapes(op, &args)? else { return self.stopped(inst) };
        let (mut taken, mut results) = (Vec::new(), Vec::new());
        for (shape, &result) in shapes.into_iter().zip(&inst.results) {
            let ty = self.ty(result);
            if ty.is_scalar() {
                let reg = self.register(Kind::of(ty.elem));
                taken.push(Taken::Scalar(reg));
                results.push(Val::Single(self.single(reg)));
            } else {
                let handle = self.allocate(Kind::of(ty.elem), shape.iter().product());
                taken.push(Taken::Array(Place::first(handle.buf, shape.clone())));
                results.push(Val::Array(Arr::whole(ty.elem, shape.into(), handle)));
            }
        }
        let single = op.facts().computes && self.ty(inst.results[0]).elem == Elem::F32;
        // What a kernel computes is checked as a whole: it is one operation.
        self.emit(Stmt::Kernel { op: op.clone(), single, given, taken });
        drop(args);
        self.define_all(inst, results)
    }

    /// The lengths of the results of an operation, which must be known; `None` if it is certain to fail.
    fn result_shapes(&mut self, op: &Op, args: &[Val]) -> Result<Option<Vec<Vec<usize>>>, Refusal> {
        use crate::op::{Length, Lengths, lengths};
        let shape = |arg: &Val| -> Vec<usize> {
            match arg {
                Val::Array(array) => array.shape.to_vec(),
                Val::Log(log) => vec![log.length.index.known().unwrap_or(0) as usize],
                Val::Single(_) => Vec::new(),
            }
        };
        let shapes: Vec<Vec<usize>> = args.iter().map(shape).collect();
        let ranks: Vec<u8> = shapes.iter().map(|shape| shape.len() as u8).collect();
        let found = match lengths(op, &ranks) {
            Lengths::Alike => vec![shapes[0].clone()],
            Lengths::Inside => return self.refuse(format!("`{}`", op.name())),
            Lengths::Each(results) => {
                let mut found = Vec::new();
                for lengths in results {
                    let mut result = Vec::new();
                    for length in lengths {
                        result.push(match length {
                            Length::Of(operand, axis) => shapes[operand][usize::from(axis)],
                            Length::Least => shapes[0][0].min(shapes[0][1]),
                            Length::Words(narrow) => {
                                shapes[0].iter().product::<usize>().div_ceil(narrow.per_word())
                            }
                            Length::Int(operand) => match self.lengths(&args[operand..=operand])? {
                                Some(n) => n[0],
                                None => return Ok(None),
                            },
                            Length::Sum(_) | Length::Elements => {
                                return self.refuse(format!("`{}`", op.name()));
                            }
                        });
                    }
                    found.push(result);
                }
                found
            }
        };
        Ok(Some(found))
    }
}

/// A loop over `0..rounds` whose rounds are no steps of the program.
fn plain_for(counter: Reg, rounds: i64, body: Vec<Stmt>) -> Stmt {
    Stmt::For { counter, rounds: Operand::Int(rounds), descending: false, counts: false, body }
}

fn constant(literal: Literal) -> Single {
    match literal {
        Literal::Real(value) => Single::Real(Operand::Real(value)),
        Literal::Named(name) => Single::Real(Operand::Real(f64::constant(name))),
        Literal::Int(n) => Single::Whole(Whole::known(n)),
        Literal::Bool(value) => Single::Truth(Operand::Bool(value)),
    }
}

/// How deep blocks nest.
fn nesting(stmts: &[Stmt]) -> usize {
    let inner = |stmt: &Stmt| stmt.blocks().into_iter().map(|block| 1 + nesting(block)).max().unwrap_or(0);
    stmts.iter().map(inner).max().unwrap_or(0)
}
