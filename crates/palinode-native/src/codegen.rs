//! Loop form -> machine code.
//!
//! One function for a program. A register is a variable of Cranelift; a buffer is at an offset of the
//! workspace, or at a pointer where buffers are exchanged or grow. Sticky checks (infinities, overflows) are
//! or-ed into one register that is tested at the end; the others leave at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::Type;
use cranelift_codegen::ir::{
    self, AbiParam, Block, InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, Value, types,
};
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module};
use palinode_ir::loops::{
    self, Buf, Given, Index, Kind, Lasts, LoopForm, Matrix, Operand, Place, Port, Reg, Role, Stmt, Taken,
    Unproven,
};

use crate::runtime::{self, Interpreted, Site};

/// Why there is no machine code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

/// Machine code, and what it calls.
pub(crate) struct Compiled {
    /// Keeps the memory of the code.
    pub(crate) code: Option<Code>,
    pub(crate) entry: *const u8,
    pub(crate) sites: Vec<Site>,
    /// The bytes of the workspace.
    pub(crate) workspace: usize,
    /// Whether it stops at suspicious comparisons instead of showing them to the hook for decisions.
    pub(crate) watches: bool,
}

/// Where machine code lies.
pub(crate) enum Code {
    Module(Box<JITModule>),
    /// A library, which is closed at the end.
    Library(#[allow(dead_code)] libloading::Library), // it is there to be dropped
}

// SAFETY: the code is finished, and never changed again; it reads and writes what its arguments point to.
#[allow(unsafe_code)]
unsafe impl Send for Compiled {}
// SAFETY: as above; the module is only dropped.
#[allow(unsafe_code)]
unsafe impl Sync for Compiled {}

impl Drop for Compiled {
    fn drop(&mut self) {
        if let Some(Code::Module(module)) = self.code.take() {
            // SAFETY: whoever runs the code holds this.
            #[allow(unsafe_code)]
            unsafe {
                module.free_memory();
            }
        }
    }
}

/// The alignment of buffers.
const LINE: usize = 64;

/// So many bytes of the stack are there in any thread.
const MOST_OF_STACK: u32 = 1 << 20;

fn isa() -> Result<Arc<dyn TargetIsa>, Refused> {
    let mut flags = settings::builder();
    let set = [
        ("use_colocated_libcalls", "false"),
        ("is_pic", "false"),
        ("opt_level", "speed"),
        ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
        // A frame of many registers may be longer than the guard page behind the stack: each page of it is
        // touched in order.
        ("enable_probestack", "true"),
        ("probestack_strategy", "inline"),
        ("unwind_info", "false"),
    ];
    for (name, value) in set {
        flags.set(name, value).map_err(|error| Refused(format!("Cranelift: {error}")))?;
    }
    let builder = cranelift_native::builder().map_err(|error| Refused(error.to_string()))?;
    builder.finish(settings::Flags::new(flags)).map_err(|error| Refused(format!("Cranelift: {error}")))
}

/// Compiles a loop form.
pub(crate) fn compile(form: &LoopForm) -> Result<Compiled, Refused> {
    let unproven =
        loops::verify(form).map_err(|error| Refused(format!("the loop form is wrong: {error}")))?;
    let refused = |error: &dyn core::fmt::Display| Refused(format!("Cranelift: {error}"));
    let isa = isa()?;
    let mut jit = JITBuilder::with_isa(isa, cranelift_module::default_libcall_names());
    for function in runtime::FUNCTIONS {
        jit.symbol(function.name, function.address());
    }
    let mut module = JITModule::new(jit);
    let pointer = module.target_config().pointer_type();
    let mut signature = module.make_signature();
    // The context, the table of buffers, the scalars that are given, those that are taken.
    signature.params.extend([AbiParam::new(pointer); 4]);
    signature.returns.push(AbiParam::new(types::I64));
    let entry =
        module.declare_function("entry", Linkage::Local, &signature).map_err(|error| refused(&error))?;
    let mut imports = Vec::new();
    for function in runtime::FUNCTIONS {
        let mut signature = module.make_signature();
        for kind in function.params {
            signature.params.push(AbiParam::new(kind.ty(pointer)));
        }
        signature.returns.extend(function.result.map(|kind| AbiParam::new(kind.ty(pointer))));
        let id = module
            .declare_function(function.name, Linkage::Import, &signature)
            .map_err(|error| refused(&error))?;
        imports.push(id);
    }
    let (offsets, workspace) = layout(form);
    let mut context = module.make_context();
    context.func.signature = signature;
    let mut frontend = FunctionBuilderContext::new();
    let sites = {
        let builder = FunctionBuilder::new(&mut context.func, &mut frontend);
        let mut gen_ = Gen::new((form, &unproven), builder, &mut module, &imports, pointer, &offsets);
        gen_.function();
        let Gen { builder, sites, .. } = gen_;
        builder.finalize(module.target_config());
        sites
    };
    module.define_function(entry, &mut context).map_err(|error| refused(&format!("{error:?}")))?;
    let layout = context.compiled_code().and_then(|code| code.buffer.frame_layout());
    let frame = layout.map_or(0, |layout| layout.frame_to_fp_offset);
    if frame > MOST_OF_STACK {
        return Err(Refused(format!("it takes {frame} bytes of the stack")));
    }
    module.clear_context(&mut context);
    module.finalize_definitions().map_err(|error| refused(&error))?;
    let address = module.get_finalized_function(entry);
    let code = Some(Code::Module(Box::new(module)));
    Ok(Compiled { code, entry: address, sites, workspace, watches: false })
}

/// Where each buffer of the workspace begins, and how long that is.
fn layout(form: &LoopForm) -> (Vec<Option<usize>>, usize) {
    let mut at = 0;
    let mut offsets = Vec::with_capacity(form.buffers.len());
    for buffer in &form.buffers {
        offsets.push((buffer.role == Role::Workspace).then_some(at));
        if buffer.role == Role::Workspace {
            let bytes = usize::try_from(buffer.length).unwrap_or(usize::MAX / 16) * buffer.kind.bytes();
            at += bytes.next_multiple_of(LINE);
        }
    }
    (offsets, at)
}

/// What the machine code of a program is made with.
pub(crate) struct Gen<'f> {
    pub(crate) form: &'f LoopForm,
    /// Accesses that are checked.
    pub(crate) unproven: &'f Unproven,
    pub(crate) builder: FunctionBuilder<'f>,
    functions: Vec<ir::FuncRef>,
    pub(crate) pointer: Type,
    /// Of the registers that are in use.
    registers: Vec<Option<Variable>>,
    /// Variables that were those of other registers, by kind.
    free: [Vec<Variable>; 3],
    lasts: Lasts,
    /// Of buffers whose memory is exchanged, and of inputs.
    pointers: Vec<Option<Variable>>,
    offsets: &'f [Option<usize>],
    pub(crate) context: Value,
    table: Value,
    pub(crate) workspace: Value,
    taken: Value,
    /// Whether the hook for decisions sees every comparison.
    pub(crate) shows_all: Value,
    /// Bits that are zero as long as nothing went wrong.
    pub(crate) bad: Variable,
    steps: Variable,
    stop: Block,
    sites: Vec<Site>,
    /// By how many words they have.
    slots: BTreeMap<usize, StackSlot>,
}

impl<'f> Gen<'f> {
    fn new(
        (form, unproven): (&'f LoopForm, &'f Unproven),
        mut builder: FunctionBuilder<'f>,
        module: &mut JITModule,
        imports: &[FuncId],
        pointer: Type,
        offsets: &'f [Option<usize>],
    ) -> Gen<'f> {
        let functions = imports.iter().map(|&id| module.declare_func_in_func(id, builder.func)).collect();
        let entry = builder.create_block();
        builder.append_block_params_for_function_params(entry);
        builder.switch_to_block(entry);
        let params: Vec<Value> = builder.block_params(entry).to_vec();
        let stop = builder.create_block();
        let (bad, steps) = (builder.declare_var(types::I64), builder.declare_var(types::I64));
        let mut gen_ = Gen {
            form,
            unproven,
            functions,
            pointer,
            registers: vec![None; form.registers.len()],
            free: Default::default(),
            lasts: Lasts::of(form),
            pointers: vec![None; form.buffers.len()],
            offsets,
            context: params[0],
            table: params[1],
            workspace: params[0],
            taken: params[3],
            shows_all: params[0],
            bad,
            steps,
            stop,
            sites: Vec::new(),
            slots: BTreeMap::new(),
            builder,
        };
        gen_.begin(params[2]);
        gen_
    }

    fn begin(&mut self, given: Value) {
        let zero = self.int(0);
        self.builder.def_var(self.bad, zero);
        let steps = self.builder.ins().load(types::I64, trusted(), self.context, runtime::STEPS);
        self.builder.def_var(self.steps, steps);
        self.workspace = self.builder.ins().load(self.pointer, trusted(), self.context, runtime::WORKSPACE);
        self.shows_all = self.builder.ins().load(types::I8, trusted(), self.context, runtime::SHOWS_ALL);
        let mut exchanged = vec![false; self.form.buffers.len()];
        find_exchanged(&self.form.body, &mut exchanged);
        for (number, buffer) in self.form.buffers.iter().enumerate() {
            let is_variable = match buffer.role {
                Role::Input(_) => true,
                Role::Workspace => exchanged[number],
                Role::Growing => false,
            };
            if is_variable {
                let variable = self.builder.declare_var(self.pointer);
                let address = match self.offsets[number] {
                    Some(offset) => self.builder.ins().iadd_imm_s(self.workspace, offset as i64),
                    None => self.builder.ins().load(self.pointer, trusted(), self.table, 8 * number as i32),
                };
                self.builder.def_var(variable, address);
                self.pointers[number] = Some(variable);
            }
        }
        for (number, port) in self.form.inputs.iter().enumerate() {
            if let Port::Scalar(Operand::Reg(reg)) = port {
                let at = 8 * number as i32;
                let value =
                    self.builder.ins().load(ty(self.form.registers[reg.index()]), trusted(), given, at);
                self.set(*reg, value);
            }
        }
    }

    fn function(&mut self) {
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
        let steps = self.builder.use_var(self.steps);
        self.builder.ins().store(trusted(), steps, self.context, runtime::STEPS);
        let bad = self.builder.use_var(self.bad);
        self.builder.ins().return_(&[bad]);
        let stop = self.stop;
        self.builder.switch_to_block(stop);
        let one = self.int(1);
        self.builder.ins().return_(&[one]);
        self.builder.seal_all_blocks();
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

    pub(crate) fn get(&mut self, reg: Reg) -> Value {
        let variable = self.variable(reg);
        self.builder.use_var(variable)
    }

    pub(crate) fn register_type(&self, reg: Reg) -> Type {
        ty(self.form.registers[reg.index()])
    }

    pub(crate) fn set(&mut self, reg: Reg, value: Value) {
        let variable = self.variable(reg);
        self.builder.def_var(variable, value);
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

    fn base(&mut self, buf: Buf) -> (Value, i64) {
        let number = buf.index();
        if let Some(variable) = self.pointers[number] {
            return (self.builder.use_var(variable), 0);
        }
        match self.offsets[number] {
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
        let (mut base, offset) = self.base(buf);
        for &(reg, factor) in &index.terms {
            let mut term = self.get(reg);
            term = match factor.wrapping_mul(bytes) {
                1 => term,
                n if n > 0 && n.count_ones() == 1 => {
                    self.builder.ins().ishl_imm_s(term, i64::from(n.trailing_zeros()))
                }
                n => self.builder.ins().imul_imm_s(term, n),
            };
            base = self.builder.ins().iadd(base, term);
        }
        let offset = index.constant.wrapping_add(more).wrapping_mul(bytes).wrapping_add(offset);
        match i32::try_from(offset) {
            Ok(offset) => (base, offset),
            Err(_) => (self.builder.ins().iadd_imm_s(base, offset), 0),
        }
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
        let function = self.functions[which as usize];
        let call = self.builder.ins().call(function, args);
        self.builder.inst_results(call).first().copied()
    }

    /// Leaves unless a truth value holds.
    pub(crate) fn unless(&mut self, holds: Value) {
        let next = self.builder.create_block();
        self.builder.ins().brif(holds, next, &[], self.stop, &[]);
        self.builder.switch_to_block(next);
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
        for stmt in stmts {
            self.stmt(stmt);
            for reg in self.lasts.behind(stmt) {
                let kind = self.form.registers[reg.index()];
                self.free[kind as usize].extend(self.registers[reg.index()].take());
            }
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
            Stmt::Each { axes, body } => self.each(axes, body),
            Stmt::AllFinite { place } => {
                let site = Site::AllFinite { count: place.elements() };
                let pointer = self.pointer_to(place);
                self.site(site, &[pointer], &[]);
            }
            Stmt::Function { rule, place } => {
                let site = Site::function(*rule, place.elements());
                let pointer = self.pointer_to(place);
                self.site(site, &[pointer], &[]);
            }
            Stmt::Reduce { kind, from, to } => {
                let lengths = from.shape[..].try_into().expect("the verifier: three axes");
                let pointer = self.pointer_to(from);
                self.site(Site::Reduce { kind: *kind, lengths }, &[pointer], core::slice::from_ref(to));
            }
            Stmt::Product { strong, a, b, to, adds } => {
                let site = Site::Product { strong: *strong, a: a.into(), b: b.into(), adds: *adds };
                let pointers = [a, b].map(|Matrix { buf, at, .. }| self.pointer_at(*buf, at));
                self.site(site, &pointers, &[Taken::Array(to.clone())]);
            }
            Stmt::Dots { strong, a, x, to } => {
                let site = Site::Dots { strong: *strong, a: a.into() };
                let pointers = [self.pointer_at(a.buf, &a.at), self.pointer_to(x)];
                self.site(site, &pointers, core::slice::from_ref(to));
            }
            Stmt::Kernel { op, single, given, taken } => self.kernel(op, *single, given, taken),
            Stmt::Sweep { counter, rounds, room, state, advance, back } => {
                self.sweep(*counter, *rounds, *room, state, [advance, back]);
            }
            Stmt::Swap { a, b } => {
                let exchanged = |buf: &Buf| self.pointers[buf.index()].expect("it is exchanged");
                let (a, b) = (exchanged(a), exchanged(b));
                let (x, y) = (self.builder.use_var(a), self.builder.use_var(b));
                self.builder.def_var(a, y);
                self.builder.def_var(b, x);
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
                self.builder.switch_to_block(grow);
                self.builder.set_cold_block(grow);
                let done =
                    self.call(runtime::Which::Reserve, &[context, number, length]).expect("whether it could");
                let stop = self.stop;
                self.builder.ins().brif(done, next, &[], stop, &[]);
                self.builder.switch_to_block(next);
            }
        }
    }

    /// Counts steps; too many stop.
    pub(crate) fn count(&mut self, more: Value) {
        let steps = self.builder.use_var(self.steps);
        let left = self.builder.ins().isub(steps, more);
        self.builder.def_var(self.steps, left);
        let holds = self.builder.ins().icmp_imm_s(IntCC::SignedGreaterThanOrEqual, left, 0);
        self.unless(holds);
    }

    fn kernel(&mut self, op: &palinode_ir::Op, single: bool, given: &[Given], taken: &[Taken]) {
        let words: Vec<Value> = given
            .iter()
            .map(|given| match given {
                Given::Scalar(operand) => self.operand(*operand),
                Given::Array(place) => self.pointer_to(place),
            })
            .collect();
        let kinds: Vec<Kind> = given
            .iter()
            .map(|given| match given {
                Given::Scalar(operand) => self.kind(*operand),
                Given::Array(place) => self.form.buffers[place.buf.index()].kind,
            })
            .collect();
        let site = Interpreted::new(op, single, given, &kinds, taken, self.form.traps);
        self.site(Site::Interpreted(Box::new(site)), &words, taken);
    }

    /// So many words of the stack, for what is passed on now: calls that follow have the same ones.
    pub(crate) fn slot(&mut self, words: usize) -> StackSlot {
        let words = words.next_power_of_two();
        let builder = &mut self.builder;
        *self.slots.entry(words).or_insert_with(|| {
            let bytes = 8 * words as u32;
            builder.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 3))
        })
    }

    /// Calls what a site does, on words and addresses; leaves if it fails.
    fn site(&mut self, site: Site, given: &[Value], taken: &[Taken]) {
        // The words, followed by the scalars that are taken.
        let words = given.len() + 2 * taken.len();
        let slot = self.slot(words);
        let scalar = |number: usize| 8 * (given.len() + taken.len() + number) as i32;
        for (number, taken) in taken.iter().enumerate() {
            let address = match taken {
                Taken::Scalar(_) => self.builder.ins().stack_addr(self.pointer, slot, scalar(number)),
                Taken::Array(place) => self.pointer_to(place),
            };
            self.builder.ins().stack_store(self.pointer, address, slot, 8 * (given.len() + number) as i32);
        }
        for (number, &value) in given.iter().enumerate() {
            self.builder.ins().stack_store(self.pointer, value, slot, 8 * number as i32);
        }
        self.sites.push(site);
        let number = self.int(self.sites.len() as i64 - 1);
        let words = self.builder.ins().stack_addr(self.pointer, slot, 0);
        let context = self.context;
        let done = self.call(runtime::Which::Site, &[context, number, words]).expect("whether it could");
        self.unless(done);
        for (number, taken) in taken.iter().enumerate() {
            if let Taken::Scalar(reg) = taken {
                let of = ty(self.form.registers[reg.index()]);
                let value = self.builder.ins().stack_load(self.pointer, of, slot, scalar(number));
                self.set(*reg, value);
            }
        }
    }
}

pub(crate) fn trusted() -> MemFlagsData {
    MemFlagsData::trusted()
}

/// How vectors of one type are seen as another.
pub(crate) fn little() -> MemFlagsData {
    MemFlagsData::new().with_endianness(ir::Endianness::Little)
}

fn ty(kind: Kind) -> Type {
    match kind {
        Kind::Real => types::F64,
        Kind::Int => types::I64,
        Kind::Bool => types::I8,
    }
}

fn find_exchanged(stmts: &[Stmt], found: &mut [bool]) {
    for stmt in stmts {
        if let Stmt::Swap { a, b } = stmt {
            found[a.index()] = true;
            found[b.index()] = true;
        }
        stmt.blocks().into_iter().for_each(|block| find_exchanged(block, found));
    }
}
