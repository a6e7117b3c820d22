//! Program -> register code.
//!
//! Every value gets a register; registers are shared only where that saves a move in a loop:
//! - the parameters of a loop's blocks and the loop's results are one register each;
//! - a scalar that a round hands on is computed right into the parameter, if that is not read any more by
//!   then;
//! - a scalar that a branch gives is computed right into the result;
//! - a changed version of an array that dies there stays in its register.
//!
//! Invariant: the input has passed [`crate::verify`].

mod control;
mod stages;

use std::collections::HashMap;
use std::sync::Arc;

use palinode_core::rules;

use super::bookkeeping::Registers;
use super::code::{CallSite, FunctionCode, General, Ins, Kind, Operand, Place, Slot, Target};
use crate::liveness::{BlockMarks, InstMarks};
use crate::op::{Axis, Comparison, IntOp, Literal, Logical, Op, Rule};
use crate::program::{Block, Function, Inst, Program, Value};
use crate::types::{Elem, Span, Type};

/// The code of every function; `mark` says where arrays are used for the last time.
pub(super) fn compile(program: &Program, mark: fn(&Function) -> BlockMarks) -> Vec<FunctionCode> {
    program.functions.iter().map(|function| Lower::function(function, &mark(function))).collect()
}

pub(super) struct Lower<'a> {
    function: &'a Function,
    /// The register of each value, once it has one.
    slots: Vec<Option<Slot>>,
    out: FunctionCode,
    /// A register of each kind to break cycles of moves with.
    spare: [Option<Slot>; 4],
    span: Span,
}

impl<'a> Lower<'a> {
    fn function(function: &'a Function, marks: &BlockMarks) -> FunctionCode {
        let params = &function.body.params;
        let name = |&param: &Value| function.name_of(param).cloned().unwrap_or_else(|| "_".into());
        let out = FunctionCode {
            name: Arc::clone(&function.name),
            registers: Registers::of(function),
            param_types: function.param_types(),
            param_names: params.iter().map(name).collect(),
            ..FunctionCode::default()
        };
        let slots = vec![None; function.values.len()];
        let mut lower = Lower { function, slots, out, spare: [None; 4], span: Span::NONE };
        lower.out.params = params.iter().map(|&param| lower.define(param)).collect();
        lower.constants();
        lower.block(&function.body, marks);
        let results = &function.body.results;
        lower.out.results = lower.operands(results, &marks.results_die);
        lower.emit(Ins::Return);
        debug_assert!(lower.out.registers.covers(lower.out.sizes), "every register is charged for");
        lower.out
    }

    fn constants(&mut self) {
        self.out.first_constants = [self.out.sizes[0], self.out.sizes[1], self.out.sizes[2]];
        let mut found: Vec<(Value, Literal)> = Vec::new();
        self.function.body.for_each_inst(&mut |inst| {
            if let Op::Const(literal) = inst.op {
                found.push((inst.results[0], literal));
            }
        });
        let mut known: HashMap<Literal, Slot> = HashMap::new();
        for (value, literal) in found {
            let slot = match known.get(&literal) {
                Some(&slot) => slot,
                None => {
                    match literal {
                        Literal::Real(_) | Literal::Named(_) => self.out.real_constants.push(literal),
                        Literal::Int(value) => self.out.int_constants.push(value),
                        Literal::Bool(value) => self.out.bool_constants.push(value),
                    }
                    let slot = self.fresh(self.kind(value));
                    known.insert(literal, slot);
                    slot
                }
            };
            self.slots[value.index()] = Some(slot);
        }
    }

    fn ty(&self, value: Value) -> Type {
        self.function.ty(value)
    }

    pub(super) fn kind(&self, value: Value) -> Kind {
        Kind::of(self.ty(value))
    }

    pub(super) fn fresh(&mut self, kind: Kind) -> Slot {
        let size = &mut self.out.sizes[kind as usize];
        *size += 1;
        Slot::try_from(*size - 1).expect("fewer than 2^32 values")
    }

    /// The register of a value that is being defined: the one set aside for it, or a new one.
    fn define(&mut self, value: Value) -> Place {
        let kind = self.kind(value);
        let slot = match self.slots[value.index()] {
            Some(slot) => slot,
            None => {
                let slot = self.fresh(kind);
                self.slots[value.index()] = Some(slot);
                slot
            }
        };
        Place { kind, slot }
    }

    fn slot(&self, value: Value) -> Slot {
        self.slots[value.index()].expect("the verifier: a definition precedes every use")
    }

    fn place(&self, value: Value) -> Place {
        Place { kind: self.kind(value), slot: self.slot(value) }
    }

    /// Operands to be fetched in order; of several uses of a dying array, the last one takes it.
    fn operands(&self, values: &[Value], dies: &[bool]) -> Vec<Operand> {
        let one = |(at, &value): (usize, &Value)| Operand {
            place: self.place(value),
            take: self.kind(value) == Kind::Array && dies[at] && !values[at + 1..].contains(&value),
        };
        values.iter().enumerate().map(one).collect()
    }

    pub(super) fn emit(&mut self, ins: Ins) {
        self.out.code.push(ins);
        self.out.spans.push(self.span);
    }

    fn here(&self) -> Target {
        Target::try_from(self.out.code.len()).expect("fewer than 2^32 instructions")
    }

    /// Emits a jump whose target [`Lower::land`] fills in.
    fn emit_open(&mut self, ins: Ins) -> usize {
        self.emit(ins);
        self.out.code.len() - 1
    }

    fn land(&mut self, at: usize) {
        let here = self.here();
        match &mut self.out.code[at] {
            Ins::Jump { to } | Ins::JumpIfNot { to, .. } => *to = here,
            Ins::ForUp { end, .. } | Ins::ForDown { end, .. } | Ins::Fused { end, .. } => *end = here,
            other => unreachable!("{other:?} is no forward jump"),
        }
    }

    fn release(&mut self, values: &[Value]) {
        for &value in values {
            let a = self.slot(value);
            self.emit(Ins::Release { a });
        }
    }

    fn block(&mut self, block: &Block, marks: &BlockMarks) {
        self.release(&marks.release_at_start);
        for (inst, marks) in block.insts.iter().zip(&marks.insts) {
            let outer = core::mem::replace(&mut self.span, inst.span);
            self.inst(inst, marks);
            self.release(&marks.release_after);
            self.span = outer;
        }
    }

    fn inst(&mut self, inst: &Inst, marks: &InstMarks) {
        match &inst.op {
            Op::Const(_) => {}
            Op::For { descending, .. } => self.for_loop(inst, marks, *descending),
            Op::While { .. } => self.while_loop(inst, marks),
            Op::Sweep { keep, .. } => self.sweep(inst, marks, *keep),
            Op::If => self.branches(inst, marks),
            Op::Call(callee) => {
                let operands = self.operands(&inst.args, &marks.dies);
                let results = inst.results.iter().map(|&result| self.define(result)).collect();
                self.out.calls.push(CallSite { callee: callee.0, operands, results });
                self.emit(Ins::Call { site: self.out.calls.len() as u32 - 1 });
            }
            Op::Fused => self.fused(inst, marks),
            op if op.is_elementwise() && inst.args.iter().all(|&arg| self.ty(arg).is_scalar()) => {
                self.scalar(inst);
            }
            Op::Dim(axis) => {
                let (d, a) = (self.define(inst.results[0]).slot, self.slot(inst.args[0]));
                self.emit(Ins::Dim { d, a, axis: u32::from(*axis) });
                self.release_dying(inst, marks);
            }
            Op::Read(axes) => match self.element_read(inst, axes) {
                Some(ins) => {
                    self.emit(ins);
                    self.release_dying(inst, marks);
                }
                None => self.general(inst, marks),
            },
            Op::Write(axes) | Op::AddAt(axes) => {
                if self.is_element_update(inst, axes) {
                    self.element_update(inst, marks);
                } else {
                    self.general(inst, marks);
                }
            }
            Op::Push => {
                if inst.args[1..].iter().all(|&arg| self.ty(arg).is_scalar()) {
                    self.push(inst, marks);
                } else {
                    self.general(inst, marks);
                }
            }
            _ => self.general(inst, marks),
        }
    }

    /// Releases array operands that an instruction has only looked at.
    fn release_dying(&mut self, inst: &Inst, marks: &InstMarks) {
        for operand in self.operands(&inst.args, &marks.dies) {
            if operand.take {
                self.emit(Ins::Release { a: operand.place.slot });
            }
        }
    }

    fn general(&mut self, inst: &Inst, marks: &InstMarks) {
        let operands = self.operands(&inst.args, &marks.dies);
        if let Some(changed) = inst.op.consumes() {
            self.keep_register(inst, changed, &operands);
        }
        let results = inst.results.iter().map(|&result| self.define(result)).collect();
        let single = inst.op.facts().computes && self.ty(inst.results[0]).elem == Elem::F32;
        self.out.generals.push(General { op: inst.op.clone(), operands, results, single });
        self.emit(Ins::General { site: self.out.generals.len() as u32 - 1 });
    }

    /// Lets the changed version of a dying array stay in its register.
    fn keep_register(&mut self, inst: &Inst, changed: usize, operands: &[Operand]) {
        let result = inst.results[0].index();
        if operands[changed].take && self.slots[result].is_none() {
            self.slots[result] = Some(operands[changed].place.slot);
        }
    }

    /// Brings the array that is about to be changed into the register of the result.
    fn changed_array(&mut self, inst: &Inst, marks: &InstMarks) -> Slot {
        let operands = self.operands(&inst.args, &marks.dies);
        self.keep_register(inst, 0, &operands);
        let (d, a) = (self.define(inst.results[0]).slot, operands[0].place.slot);
        if d != a {
            self.emit(if operands[0].take { Ins::TakeArray { d, a } } else { Ins::ShareArray { d, a } });
        }
        d
    }

    fn all_at(axes: &[Axis]) -> bool {
        axes.iter().all(|axis| matches!(axis, Axis::At))
    }

    fn element_read(&mut self, inst: &Inst, axes: &[Axis]) -> Option<Ins> {
        if !Self::all_at(axes) || !matches!(axes.len(), 1 | 2) {
            return None;
        }
        let (a, i) = (self.slot(inst.args[0]), self.slot(inst.args[1]));
        let j = inst.args.get(2).map(|&j| self.slot(j));
        let elem = self.ty(inst.args[0]).elem;
        if elem == Elem::Bool && j.is_some() {
            return None;
        }
        let d = self.define(inst.results[0]).slot;
        Some(match (elem, j) {
            (Elem::F64 | Elem::F32, None) => Ins::ReadReal1 { d, a, i },
            (Elem::F64 | Elem::F32, Some(j)) => Ins::ReadReal2 { d, a, i, j },
            (Elem::Int, None) => Ins::ReadInt1 { d, a, i },
            (Elem::Int, Some(j)) => Ins::ReadInt2 { d, a, i, j },
            (Elem::Bool, _) => Ins::ReadBool1 { d, a, i },
        })
    }

    fn is_element_update(&self, inst: &Inst, axes: &[Axis]) -> bool {
        let elem = self.ty(inst.args[0]).elem;
        let rounds = matches!(inst.op, Op::AddAt(_)) && elem == Elem::F32;
        let fits = axes.len() == 1 || (axes.len() == 2 && elem != Elem::Bool);
        Self::all_at(axes) && fits && !rounds
    }

    fn element_update(&mut self, inst: &Inst, marks: &InstMarks) {
        let a = self.changed_array(inst, marks);
        let (x, i) = (self.slot(inst.args[1]), self.slot(inst.args[2]));
        let j = inst.args.get(3).map(|&j| self.slot(j));
        let elem = self.ty(inst.args[0]).elem;
        let adds = matches!(inst.op, Op::AddAt(_));
        self.emit(match (elem, j) {
            (Elem::F64 | Elem::F32, None) if adds => Ins::AddAt1 { a, i, x },
            (Elem::F64 | Elem::F32, Some(j)) if adds => Ins::AddAt2 { a, i, j, x },
            (Elem::F64 | Elem::F32, None) => Ins::WriteReal1 { a, i, x },
            (Elem::F64 | Elem::F32, Some(j)) => Ins::WriteReal2 { a, i, j, x },
            (Elem::Int, None) => Ins::WriteInt1 { a, i, x },
            (Elem::Int, Some(j)) => Ins::WriteInt2 { a, i, j, x },
            (Elem::Bool, _) => Ins::WriteBool1 { a, i, x },
        });
    }

    fn push(&mut self, inst: &Inst, marks: &InstMarks) {
        let a = self.changed_array(inst, marks);
        let elem = self.ty(inst.args[0]).elem;
        let slots: Vec<Slot> = inst.args[1..].iter().map(|&arg| self.slot(arg)).collect();
        match (elem, &slots[..]) {
            (Elem::F64 | Elem::F32, &[x]) => self.emit(Ins::PushReal { a, x }),
            (Elem::F64 | Elem::F32, _) => {
                let list = self.out.lists.len() as u32;
                self.out.lists.extend(&slots);
                self.emit(Ins::PushReals { a, list, count: slots.len() as u32 });
            }
            (Elem::Int, _) => slots.iter().for_each(|&x| self.emit(Ins::PushInt { a, x })),
            (Elem::Bool, _) => slots.iter().for_each(|&x| self.emit(Ins::PushBool { a, x })),
        }
    }

    /// An elementwise operation whose operands are all scalars.
    fn scalar(&mut self, inst: &Inst) {
        let slots: Vec<Slot> = inst.args.iter().map(|&arg| self.slot(arg)).collect();
        let of = self.ty(inst.args[0]).elem;
        let at = |n: usize| slots.get(n).copied().unwrap_or(0);
        let (a, b, c) = (at(0), at(1), at(2));
        let result = inst.results[0];
        let Place { kind, slot: d } = self.define(result);
        let single = self.ty(result).elem == Elem::F32;
        match &inst.op {
            Op::Map(rule) => {
                self.emit(map(*rule, d, a, b, c));
                if single {
                    self.emit(Ins::Round32 { d, a: d });
                }
            }
            Op::Int(op) => self.emit(match op {
                IntOp::Add => Ins::IntAdd { d, a, b },
                IntOp::Sub => Ins::IntSub { d, a, b },
                IntOp::Mul => Ins::IntMul { d, a, b },
                IntOp::Div | IntOp::Rem | IntOp::Min | IntOp::Max => Ins::IntOther { op: *op, d, a, b },
            }),
            Op::Compare(op) => self.emit(match (op, of.is_real()) {
                (Comparison::Less, true) => Ins::LessReal { d, a, b },
                (Comparison::LessEq, true) => Ins::LessEqReal { d, a, b },
                (Comparison::Equal, true) => Ins::EqualReal { d, a, b },
                (Comparison::Less, false) => Ins::LessInt { d, a, b },
                (Comparison::LessEq, false) => Ins::LessEqInt { d, a, b },
                (Comparison::Equal, false) => Ins::EqualInt { d, a, b },
            }),
            Op::Logical(op) => self.emit(match op {
                Logical::And => Ins::And { d, a, b },
                Logical::Or => Ins::Or { d, a, b },
                Logical::Not => Ins::Not { d, a },
            }),
            Op::Select => self.emit(match kind {
                Kind::Real => Ins::SelectReal { d, c: a, a: b, b: c },
                Kind::Int => Ins::SelectInt { d, c: a, a: b, b: c },
                Kind::Bool | Kind::Array => Ins::SelectBool { d, c: a, a: b, b: c },
            }),
            Op::Convert(to) => match (of.is_real(), to) {
                (true, Elem::F32) if of != Elem::F32 => self.emit(Ins::Round32 { d, a }),
                (true, Elem::F64 | Elem::F32) => self.emit(Ins::MoveReal { d, a }),
                (true, Elem::Int | Elem::Bool) => self.emit(Ins::RealToInt { d, a }),
                (false, Elem::F64) => self.emit(Ins::IntToReal { d, a }),
                (false, Elem::F32) => {
                    self.emit(Ins::IntToReal { d, a });
                    self.emit(Ins::Round32 { d, a: d });
                }
                (false, Elem::Int | Elem::Bool) => self.emit(Ins::MoveInt { d, a }),
            },
            Op::StopGradient => self.emit(match kind {
                Kind::Real => Ins::Stop { d, a },
                Kind::Int => Ins::MoveInt { d, a },
                Kind::Bool | Kind::Array => Ins::MoveBool { d, a },
            }),
            other => unreachable!("`{}` is not elementwise", other.name()),
        }
    }
}

/// The instruction of a row of the rule table: its own, or one that looks the row up.
fn map(rule: Rule, d: Slot, a: Slot, b: Slot, c: Slot) -> Ins {
    let Rule { row, parameter } = rule;
    match row {
        rules::Row::Add => Ins::Add { d, a, b },
        rules::Row::Subtract => Ins::Sub { d, a, b },
        rules::Row::Multiply => Ins::Mul { d, a, b },
        rules::Row::Divide => Ins::Div { d, a, b },
        rules::Row::StrongMul => Ins::StrongMul { d, a, b },
        rules::Row::Negate => Ins::Neg { d, a },
        _ => match row.arity() {
            1 => Ins::Map1 { row, d, a, parameter },
            2 => Ins::Map2 { row, d, a, b },
            _ => Ins::Map3 { row, d, a, b, c },
        },
    }
}
