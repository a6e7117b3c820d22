//! Loop form -> instructions of Cranelift.
//!
//! A register is a variable of Cranelift; a buffer is at an offset of the workspace, or at a pointer where
//! buffers are exchanged or grow. Sticky checks (infinities, overflows) are or-ed into one register that is
//! tested at the end; the others leave at once.
//!
//! A long program is several functions. What several of them use is in the workspace: the first function,
//! which has little more than calls and loops around them, keeps it there; a piece loads it before the first
//! statement that needs it, and stores it after each that sets it. Of a short program longer loops over
//! elements are functions (`outline`).

use std::collections::BTreeMap;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::Type;
use cranelift_codegen::ir::{self, Block, FuncRef, InstBuilder, MemFlagsData, StackSlot, Value, types};
use cranelift_frontend::{FunctionBuilder, Variable};
use palinode_ir::loops::{
    Buf, Index, Kind, LoopForm, Operand, Piece, Place, Port, Reg, Role, Stmt, Unproven,
};

use crate::addresses::{Addresses, Sum};
use crate::runtime::{self, Call};
use crate::whole::{Outlined, Whole};

/// What of a program a function is.
#[derive(Clone, Copy)]
pub(crate) enum Part<'f> {
    /// The one that is called first.
    First,
    Piece(&'f Piece<'f>),
    Loop(&'f Stmt, &'f Outlined),
}

/// What a function of a program is made with.
pub(crate) struct Gen<'f> {
    pub(crate) form: &'f LoopForm,
    /// Accesses that are checked.
    pub(crate) unproven: &'f Unproven,
    pub(crate) whole: &'f Whole<'f>,
    part: Part<'f>,
    pub(crate) builder: FunctionBuilder<'f>,
    /// What the runtime has, and the functions of pieces or loops.
    imports: Vec<FuncRef>,
    callees: Vec<FuncRef>,
    pub(crate) pointer: Type,
    /// Of the registers that are in use.
    registers: Vec<Option<Variable>>,
    /// Variables that were those of other registers, by kind.
    free: [Vec<Variable>; 3],
    /// Of buffers whose memory is exchanged, and of inputs.
    pointers: Vec<Option<Variable>>,
    pub(crate) context: Value,
    table: Value,
    pub(crate) workspace: Value,
    taken: Value,
    /// Whether the hook for decisions sees every comparison.
    pub(crate) shows_all: Value,
    /// Bits that are zero as long as nothing went wrong.
    pub(crate) bad: Variable,
    /// The steps that are left; in the context if the pieces count, too.
    steps: Option<Variable>,
    stop: Block,
    /// Sums of a base and terms that were computed in the block where this function is now.
    addresses: Addresses,
    /// Calls of kernels.
    pub(crate) calls: &'f mut Vec<Call>,
    /// How many of the last of them are still to be made.
    pub(crate) waiting: usize,
    /// By how many words they have.
    pub(crate) slots: BTreeMap<usize, StackSlot>,
}

impl<'f> Gen<'f> {
    pub(crate) fn new(
        whole: &'f Whole<'f>,
        part: Part<'f>,
        mut builder: FunctionBuilder<'f>,
        [imports, callees]: [Vec<FuncRef>; 2],
        pointer: Type,
        calls: &'f mut Vec<Call>,
    ) -> Gen<'f> {
        let entry = builder.create_block();
        builder.append_block_params_for_function_params(entry);
        builder.switch_to_block(entry);
        builder.seal_block(entry);
        let params: Vec<Value> = builder.block_params(entry).to_vec();
        let stop = builder.create_block();
        let bad = builder.declare_var(types::I64);
        let form = whole.form;
        let mut gen_ = Gen {
            form,
            unproven: whole.unproven,
            whole,
            part,
            imports,
            callees,
            pointer,
            registers: vec![None; form.registers.len()],
            free: Default::default(),
            pointers: vec![None; form.buffers.len()],
            context: params[0],
            table: params[0],
            workspace: params[0],
            taken: params[0],
            shows_all: params[0],
            bad,
            steps: None,
            stop,
            addresses: Addresses::default(),
            calls,
            waiting: 0,
            slots: BTreeMap::new(),
            builder,
        };
        let zero = gen_.int(0);
        gen_.builder.def_var(bad, zero);
        match part {
            Part::First | Part::Piece(_) => gen_.begin(&params),
            Part::Loop(_, outlined) => gen_.begin_loop(outlined, &params),
        }
        gen_
    }

    /// Whether this function is the first one, and calls pieces.
    fn calls_pieces(&self) -> bool {
        matches!(self.part, Part::First) && !self.whole.pieces.pieces.is_empty()
    }

    fn begin(&mut self, params: &[Value]) {
        let given = params[2];
        (self.table, self.taken) = (params[1], params[3]);
        if !self.calls_pieces() {
            let steps = self.builder.declare_var(types::I64);
            let left = self.builder.ins().load(types::I64, trusted(), self.context, runtime::STEPS);
            self.builder.def_var(steps, left);
            self.steps = Some(steps);
        }
        self.workspace = self.builder.ins().load(self.pointer, trusted(), self.context, runtime::WORKSPACE);
        self.load_shows_all();
        if let Part::Piece(piece) = self.part {
            return piece.buffers.iter().for_each(|buf| self.point_at(buf.index()));
        }
        (0..self.form.buffers.len()).for_each(|number| self.point_at(number));
        for (number, port) in self.form.inputs.iter().enumerate() {
            if let Port::Scalar(Operand::Reg(reg)) = port {
                let at = 8 * number as i32;
                let value =
                    self.builder.ins().load(ty(self.form.registers[reg.index()]), trusted(), given, at);
                self.set(*reg, value);
            }
        }
    }

    /// Asks whether the hook for decisions sees every comparison of this run.
    pub(crate) fn load_shows_all(&mut self) {
        self.shows_all = self.builder.ins().load(types::I8, trusted(), self.context, runtime::SHOWS_ALL);
    }

    /// Finds the address of a buffer, if it is known to this run only.
    fn point_at(&mut self, number: usize) {
        let is_exchanged = self.whole.exchanged[number];
        let address = match (self.form.buffers[number].role, self.whole.offsets[number]) {
            (Role::Input(_), _) => {
                self.builder.ins().load(self.pointer, trusted(), self.table, 8 * number as i32)
            }
            (Role::Workspace, Some(offset)) if is_exchanged && matches!(self.part, Part::First) => {
                self.builder.ins().iadd_imm_s(self.workspace, offset as i64)
            }
            (Role::Workspace, _) if is_exchanged => self.pointer_in_memory(number),
            _ => return,
        };
        if is_exchanged && self.calls_pieces() {
            return self.keep_pointer(number, address);
        }
        self.point(Buf(number as u32), address);
    }

    /// The address of a buffer is in a register.
    pub(crate) fn point(&mut self, buf: Buf, address: Value) {
        let variable = self.builder.declare_var(self.pointer);
        self.builder.def_var(variable, address);
        self.pointers[buf.index()] = Some(variable);
    }

    fn pointer_in_memory(&mut self, number: usize) -> Value {
        let (base, offset) = self.in_workspace(self.whole.pointers + 8 * number);
        self.builder.ins().load(self.pointer, trusted(), base, offset)
    }

    fn keep_pointer(&mut self, number: usize, address: Value) {
        let (base, offset) = self.in_workspace(self.whole.pointers + 8 * number);
        self.builder.ins().store(trusted(), address, base, offset);
    }

    fn set_pointer(&mut self, buf: Buf, address: Value) {
        match self.pointers[buf.index()] {
            Some(variable) => self.builder.def_var(variable, address),
            None => self.keep_pointer(buf.index(), address),
        }
    }

    /// A place in the workspace, as a base and an offset.
    fn in_workspace(&mut self, at: usize) -> (Value, i32) {
        match i32::try_from(at) {
            Ok(offset) => (self.workspace, offset),
            Err(_) => (self.builder.ins().iadd_imm_s(self.workspace, at as i64), 0),
        }
    }

    /// Makes the function.
    pub(crate) fn function(mut self) -> FunctionBuilder<'f> {
        match self.part {
            Part::First => self.first(),
            Part::Piece(piece) => self.statements_of(piece),
            Part::Loop(stmt, _) => self.whole_loop(stmt),
        }
        let bad = self.builder.use_var(self.bad);
        self.builder.ins().return_(&[bad]);
        self.builder.switch_to_block(self.stop);
        let one = self.int(1);
        self.builder.ins().return_(&[one]);
        self.builder.seal_all_blocks();
        self.builder
    }

    fn first(&mut self) {
        let form = self.form;
        self.block(&form.body);
        for (number, port) in form.outputs.iter().enumerate() {
            let value = match port {
                Port::Scalar(operand) => self.operand(*operand),
                // Its memory may have been exchanged.
                Port::Array(place) => self.pointer_to(place),
            };
            self.builder.ins().store(trusted(), value, self.taken, 8 * number as i32);
        }
        self.leave_steps();
    }

    fn leave_steps(&mut self) {
        if let Some(steps) = self.steps {
            let steps = self.builder.use_var(steps);
            self.builder.ins().store(trusted(), steps, self.context, runtime::STEPS);
        }
    }

    fn statements_of(&mut self, piece: &Piece<'_>) {
        for (stmt, around) in piece.stmts.iter().zip(&piece.around) {
            // What waits uses no register.
            if self.waits(stmt) {
                continue;
            }
            self.call_kernels();
            for &reg in &around.needs {
                let value = self.kept(reg);
                self.set(reg, value);
            }
            self.stmt(stmt);
            for &reg in &around.leaves {
                let value = self.get(reg);
                self.keep(reg, value);
            }
            for buf in &around.exchanges {
                let (address, _) = self.base(*buf);
                self.keep_pointer(buf.index(), address);
            }
            self.release(stmt);
        }
        self.call_kernels();
        self.leave_steps();
    }

    /// Puts what is in a register where other functions find it.
    fn keep(&mut self, reg: Reg, value: Value) {
        let home = self.whole.pieces.home(reg).expect("it is used by several functions");
        let (base, offset) = self.in_workspace(self.whole.homes + 8 * home);
        self.builder.ins().store(trusted(), value, base, offset);
    }

    /// The function of a loop.
    pub(crate) fn callee(&self, number: usize) -> FuncRef {
        self.callees[number]
    }

    /// Calls a piece; leaves if it did.
    fn call_piece(&mut self, number: usize) {
        let args = [self.context, self.table, self.table, self.taken];
        let call = self.builder.ins().call(self.callees[number], &args);
        let bad = self.builder.inst_results(call)[0];
        let good = self.builder.ins().icmp_imm_s(IntCC::Equal, bad, 0);
        self.unless(good);
    }

    pub(crate) fn int(&mut self, n: i64) -> Value {
        self.builder.ins().iconst(types::I64, n)
    }

    /// The variable of a register. Cranelift keeps a table of all blocks for each variable, so those of
    /// registers that are needed no more are taken again.
    fn variable(&mut self, reg: Reg) -> Variable {
        let kind = self.form.registers[reg.index()];
        let (builder, free) = (&mut self.builder, &mut self.free[kind as usize]);
        *self.registers[reg.index()]
            .get_or_insert_with(|| free.pop().unwrap_or_else(|| builder.declare_var(ty(kind))))
    }

    /// Whether a register is in memory all the time.
    fn is_in_memory(&self, reg: Reg) -> bool {
        self.calls_pieces() && self.whole.pieces.home(reg).is_some()
    }

    pub(crate) fn get(&mut self, reg: Reg) -> Value {
        if self.is_in_memory(reg) {
            return self.kept(reg);
        }
        let variable = self.variable(reg);
        self.builder.use_var(variable)
    }

    pub(crate) fn register_type(&self, reg: Reg) -> Type {
        ty(self.form.registers[reg.index()])
    }

    pub(crate) fn set(&mut self, reg: Reg, value: Value) {
        self.addresses.forget(reg);
        if self.is_in_memory(reg) {
            return self.keep(reg, value);
        }
        let variable = self.variable(reg);
        self.builder.def_var(variable, value);
    }

    fn kept(&mut self, reg: Reg) -> Value {
        let home = self.whole.pieces.home(reg).expect("it is used by several functions");
        let (base, offset) = self.in_workspace(self.whole.homes + 8 * home);
        let of = self.register_type(reg);
        self.builder.ins().load(of, trusted(), base, offset)
    }

    pub(crate) fn operand(&mut self, operand: Operand) -> Value {
        match operand {
            Operand::Reg(reg) => self.get(reg),
            Operand::Real(value) => self.builder.ins().f64const(value),
            Operand::Int(n) => self.int(n),
            Operand::Bool(value) => self.builder.ins().iconst(types::I8, i64::from(value)),
        }
    }

    pub(crate) fn kind(&self, operand: Operand) -> Kind {
        self.form.kind(operand)
    }

    pub(crate) fn index(&mut self, index: &Index) -> Value {
        let mut sum = None;
        for &(reg, factor) in &index.terms {
            let mut term = self.get(reg);
            if factor != 1 {
                term = self.builder.ins().imul_imm_s(term, factor);
            }
            sum = Some(match sum {
                None => term,
                Some(sum) => self.builder.ins().iadd(sum, term),
            });
        }
        match sum {
            None => self.int(index.constant),
            Some(sum) if index.constant == 0 => sum,
            Some(sum) => self.builder.ins().iadd_imm_s(sum, index.constant),
        }
    }

    /// The address of a buffer that does not stay at a place of the workspace.
    pub(crate) fn start_of(&mut self, buf: Buf) -> Value {
        self.base(buf).0
    }

    fn base(&mut self, buf: Buf) -> (Value, i64) {
        let number = buf.index();
        if let Some(variable) = self.pointers[number] {
            return (self.builder.use_var(variable), 0);
        }
        if self.whole.exchanged[number] {
            return (self.pointer_in_memory(number), 0);
        }
        match self.whole.offsets[number] {
            Some(offset) => (self.workspace, offset as i64),
            None => {
                let flags = MemFlagsData::trusted();
                (self.builder.ins().load(self.pointer, flags, self.table, 8 * number as i32), 0)
            }
        }
    }

    /// The address of the element `more` places after an index, as a base and an offset.
    pub(crate) fn address(&mut self, buf: Buf, index: &Index, more: i64) -> (Value, i32) {
        let bytes = self.form.buffers[buf.index()].kind.bytes() as i64;
        let (base, offset) = self.base(buf);
        let base = if index.terms.is_empty() { base } else { self.sum(base, &index.terms, bytes) };
        let offset = index.constant.wrapping_add(more).wrapping_mul(bytes).wrapping_add(offset);
        match i32::try_from(offset) {
            Ok(offset) => (base, offset),
            Err(_) => (self.builder.ins().iadd_imm_s(base, offset), 0),
        }
    }

    /// A base, and terms times the bytes of an element.
    fn sum(&mut self, base: Value, terms: &[(Reg, i64)], bytes: i64) -> Value {
        let block = self.builder.current_block();
        if let Some(sum) = self.addresses.find(block, base, terms, bytes) {
            return sum;
        }
        let mut sum = base;
        for &(reg, factor) in terms {
            let mut term = self.get(reg);
            term = match factor.wrapping_mul(bytes) {
                1 => term,
                n if n > 0 && n.count_ones() == 1 => {
                    self.builder.ins().ishl_imm_s(term, i64::from(n.trailing_zeros()))
                }
                n => self.builder.ins().imul_imm_s(term, n),
            };
            sum = self.builder.ins().iadd(sum, term);
        }
        self.addresses.learn(Sum { base, terms: terms.to_vec(), bytes, value: sum });
        sum
    }

    /// Leaves if an access that is not proven is outside of its buffer.
    fn check(&mut self, stmt: &Stmt, buf: Buf, at: &Index) {
        if !self.unproven.contains(stmt) {
            return;
        }
        let at = self.index(at);
        let length = match self.form.buffers[buf.index()].role {
            Role::Growing => {
                let capacities =
                    self.builder.ins().load(self.pointer, trusted(), self.context, runtime::CAPACITIES);
                self.builder.ins().load(types::I64, trusted(), capacities, 8 * buf.index() as i32)
            }
            Role::Workspace | Role::Input(_) => self.int(self.form.buffers[buf.index()].length as i64),
        };
        let inside = self.builder.ins().icmp(IntCC::UnsignedLessThan, at, length);
        self.unless(inside);
    }

    fn pointer_to(&mut self, place: &Place) -> Value {
        self.pointer_at(place.buf, &place.at)
    }

    pub(crate) fn pointer_at(&mut self, buf: Buf, at: &Index) -> Value {
        let (base, offset) = self.address(buf, at, 0);
        if offset == 0 { base } else { self.builder.ins().iadd_imm_s(base, i64::from(offset)) }
    }

    pub(crate) fn call(&mut self, which: runtime::Which, args: &[Value]) -> Option<Value> {
        let function = self.imports[which as usize];
        let call = self.builder.ins().call(function, args);
        self.builder.inst_results(call).first().copied()
    }

    /// Goes on in a block to which all jumps have been made.
    pub(crate) fn enter(&mut self, block: Block) {
        self.builder.switch_to_block(block);
        self.builder.seal_block(block);
    }

    /// Leaves unless a truth value holds.
    pub(crate) fn unless(&mut self, holds: Value) {
        let next = self.builder.create_block();
        self.builder.ins().brif(holds, next, &[], self.stop, &[]);
        self.addresses.goes_on(self.builder.current_block(), next);
        self.enter(next);
    }

    pub(crate) fn note_bits(&mut self, bits: Value) {
        let bad = self.builder.use_var(self.bad);
        let bad = self.builder.ins().bor(bad, bits);
        self.builder.def_var(self.bad, bad);
    }

    /// Notes that something went wrong if a truth value holds.
    pub(crate) fn note(&mut self, is_wrong: Value) {
        let bits = self.builder.ins().uextend(types::I64, is_wrong);
        self.note_bits(bits);
    }

    pub(crate) fn block(&mut self, stmts: &[Stmt]) {
        let mut at = 0;
        while let Some(stmt) = stmts.get(at) {
            let piece = if self.calls_pieces() { self.whole.pieces.beginning(stmt) } else { None };
            if let Some(number) = piece {
                self.call_kernels();
                self.call_piece(number);
                at += self.whole.pieces.pieces[number].stmts.len();
                continue;
            }
            if !self.waits(stmt) {
                self.call_kernels();
                self.stmt(stmt);
            }
            self.release(stmt);
            at += 1;
        }
        self.call_kernels();
    }

    /// Leaves the variables of registers that are needed no more to others.
    fn release(&mut self, stmt: &Stmt) {
        for reg in self.whole.lasts.behind(stmt) {
            let kind = self.form.registers[reg.index()];
            self.free[kind as usize].extend(self.registers[reg.index()].take());
        }
    }

    pub(crate) fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Move { to, from } => {
                let value = self.operand(*from);
                self.set(*to, value);
            }
            Stmt::Map { rule, to, args } => {
                let values: Vec<Value> = args.iter().map(|&arg| self.operand(arg)).collect();
                let value = self.map(*rule, &values);
                self.set(*to, value);
            }
            Stmt::Round32 { to, a } => {
                let a = self.operand(*a);
                let short = self.builder.ins().fdemote(types::F32, a);
                let value = self.builder.ins().fpromote(types::F64, short);
                self.set(*to, value);
            }
            Stmt::Int { op, to, a, b } => {
                let (a, b) = (self.operand(*a), self.operand(*b));
                let value = self.integer(*op, a, b);
                self.set(*to, value);
            }
            Stmt::Index { to, index } => {
                let value = self.index(index);
                self.set(*to, value);
            }
            Stmt::Compare { op, to, a, b } => {
                let value = self.compare(*op, *a, *b);
                self.set(*to, value);
            }
            Stmt::And { to, a, b } => {
                let (a, b) = (self.operand(*a), self.operand(*b));
                let value = self.builder.ins().band(a, b);
                self.set(*to, value);
            }
            Stmt::Or { to, a, b } => {
                let (a, b) = (self.operand(*a), self.operand(*b));
                let value = self.builder.ins().bor(a, b);
                self.set(*to, value);
            }
            Stmt::Not { to, a } => {
                let a = self.operand(*a);
                let value = self.builder.ins().bxor_imm_s(a, 1);
                self.set(*to, value);
            }
            Stmt::Select { to, holds, a, b } => {
                let (holds, a, b) = (self.operand(*holds), self.operand(*a), self.operand(*b));
                let value = self.builder.ins().select(holds, a, b);
                self.set(*to, value);
            }
            Stmt::Truncate { to, a } => self.truncate(*to, *a),
            Stmt::Convert { to, a } => {
                let a = self.operand(*a);
                let value = self.call(runtime::Which::FromInt, &[a]).expect("a real");
                self.set(*to, value);
            }
            Stmt::Load { to, buf, at } => {
                self.check(stmt, *buf, at);
                let kind = self.form.buffers[buf.index()].kind;
                let (base, offset) = self.address(*buf, at, 0);
                let value = self.builder.ins().load(ty(kind), trusted(), base, offset);
                self.set(*to, value);
            }
            Stmt::Store { buf, at, from } => {
                self.check(stmt, *buf, at);
                let value = self.operand(*from);
                let (base, offset) = self.address(*buf, at, 0);
                self.builder.ins().store(trusted(), value, base, offset);
            }
            Stmt::Finite { a } => {
                let a = self.operand(*a);
                let zero = self.builder.ins().fsub(a, a);
                let bits = self.builder.ins().bitcast(types::I64, MemFlagsData::new(), zero);
                self.note_bits(bits);
            }
            Stmt::Within { a, length } => {
                let (a, length) = (self.operand(*a), self.operand(*length));
                let holds = self.builder.ins().icmp(IntCC::UnsignedLessThan, a, length);
                self.unless(holds);
            }
            Stmt::Holds { a } => {
                let a = self.operand(*a);
                self.unless(a);
            }
            Stmt::Stop => {
                let stop = self.stop;
                self.builder.ins().jump(stop, &[]);
                // What follows is never reached.
                let next = self.builder.create_block();
                self.builder.switch_to_block(next);
            }
            Stmt::Step => {
                let one = self.int(1);
                self.count(one);
            }
            Stmt::For { counter, rounds, descending, counts, body } => {
                self.for_loop(*counter, *rounds, *descending, *counts, body);
            }
            Stmt::While { condition, holds, body } => self.while_loop(condition, *holds, body),
            Stmt::If { holds, then, other } => self.branches(*holds, then, other),
            Stmt::Each { axes, body } => match self.whole.outlined.get(&core::ptr::from_ref(stmt)) {
                Some(outlined) => self.call_loop(outlined),
                None => self.each(axes, body),
            },
            Stmt::AllFinite { .. }
            | Stmt::Function { .. }
            | Stmt::Reduce { .. }
            | Stmt::Product { .. }
            | Stmt::Dots { .. }
            | Stmt::Kernel { .. } => self.call_kernel(stmt),
            Stmt::Sweep { counter, rounds, room, state, advance, turn, back } => {
                self.sweep(*counter, *rounds, *room, state, [advance, back], turn.as_deref());
            }
            Stmt::Swap { a, b } => {
                let ((x, _), (y, _)) = (self.base(*a), self.base(*b));
                self.set_pointer(*a, y);
                self.set_pointer(*b, x);
            }
            Stmt::Reserve { buf, length } => {
                let number = self.int(buf.index() as i64);
                let length = self.index(length);
                let context = self.context;
                // Most of the time there is room.
                let capacities =
                    self.builder.ins().load(self.pointer, trusted(), context, runtime::CAPACITIES);
                let room = self.builder.ins().load(types::I64, trusted(), capacities, 8 * buf.index() as i32);
                let (grow, next) = (self.builder.create_block(), self.builder.create_block());
                let fits = self.builder.ins().icmp(IntCC::SignedLessThanOrEqual, length, room);
                self.builder.ins().brif(fits, next, &[], grow, &[]);
                self.enter(grow);
                self.builder.set_cold_block(grow);
                let done =
                    self.call(runtime::Which::Reserve, &[context, number, length]).expect("whether it could");
                let stop = self.stop;
                self.builder.ins().brif(done, next, &[], stop, &[]);
                self.enter(next);
            }
        }
    }

    /// Counts steps; too many stop.
    pub(crate) fn count(&mut self, more: Value) {
        let steps = match self.steps {
            Some(steps) => self.builder.use_var(steps),
            None => self.builder.ins().load(types::I64, trusted(), self.context, runtime::STEPS),
        };
        let left = self.builder.ins().isub(steps, more);
        match self.steps {
            Some(steps) => self.builder.def_var(steps, left),
            None => {
                self.builder.ins().store(trusted(), left, self.context, runtime::STEPS);
            }
        }
        let holds = self.builder.ins().icmp_imm_s(IntCC::SignedGreaterThanOrEqual, left, 0);
        self.unless(holds);
    }
}

pub(crate) fn trusted() -> MemFlagsData {
    MemFlagsData::trusted()
}

/// How vectors of one type are seen as another.
pub(crate) fn little() -> MemFlagsData {
    MemFlagsData::new().with_endianness(ir::Endianness::Little)
}

pub(crate) fn ty(kind: Kind) -> Type {
    match kind {
        Kind::Real => types::F64,
        Kind::Int => types::I64,
        Kind::Bool => types::I8,
    }
}
