//! Running machine code: inputs, workspace, outputs.

use core::borrow::Borrow;
use core::fmt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use aligned_vec::{AVec, ConstAlign};
use palinode_core::points::Suspicion;
use palinode_core::{Accumulator, decision};
use palinode_ir::interp::{Datum, Limits, Stats};
use palinode_ir::loops::{Kind, LoopForm, Operand, Port, Role, Stmt, Sweep};

use crate::compile::{self, Compiled, Refused};
use crate::runtime::{Context, Grown, datum};
use crate::rustc;

/// Something happened that only the interpreter can explain: it must run the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// A program as machine code, for inputs of certain shapes.
pub struct Native {
    form: LoopForm,
    compiled: Compiled,
    facts: Facts,
    bytes: usize,
    statements: u64,
    /// Workspaces of runs that have ended.
    idle: Mutex<Vec<Workspace>>,
}

impl fmt::Debug for Native {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Native").field("form", &self.form.name).finish_non_exhaustive()
    }
}

/// The facts that decide who runs a program.
#[derive(Clone, Copy, Debug, Default)]
struct Facts {
    /// Whether reals are compared in loops over elements, whose comparisons the interpreter makes in another
    /// order.
    compares_elements: bool,
    /// Whether some operations are done by the interpreter, which takes memory of its own for them.
    has_kernels: bool,
}

impl Facts {
    fn of(stmts: &[Stmt]) -> Facts {
        let mut facts = Facts::default();
        for stmt in stmts {
            match stmt {
                Stmt::Kernel { .. } => facts.has_kernels = true,
                Stmt::Each { body, .. } => {
                    facts.compares_elements |= body.iter().any(|stmt| matches!(stmt, Stmt::Compare { .. }));
                }
                _ => {}
            }
            for block in stmt.blocks() {
                let inner = Facts::of(block);
                facts.compares_elements |= inner.compares_elements;
                facts.has_kernels |= inner.has_kernels;
            }
        }
        facts
    }
}

/// Why no machine code adds up as these limits ask for, if none does.
pub(crate) fn adds_otherwise(limits: &Limits) -> Option<String> {
    (limits.accumulator != Accumulator::Naive).then(|| "machine code adds term by term".into())
}

/// All that a run allocates, except what grows.
fn bytes(form: &LoopForm, workspace: usize) -> usize {
    let outputs = form.outputs.iter().map(|port| {
        size_of::<Datum<f64>>()
            + match port {
                Port::Scalar(_) => 8,
                Port::Array(place) => {
                    let elements = place.elements() * form.buffers[place.buf.index()].kind.bytes();
                    elements + place.shape.len() * size_of::<usize>()
                }
            }
    });
    let lists =
        form.buffers.len() * (size_of::<Vec<u64>>() + 16) + 8 * (form.inputs.len() + form.outputs.len());
    let (depth, schedule) = sweeps(&form.body);
    // A list of sweeps holds at least four, and doubles when it is full.
    let list = if depth == 0 { 0 } else { (2 * depth).max(4) * size_of::<Sweep>() };
    workspace + outputs.sum::<usize>() + lists + 2 * list + depth * schedule
}

/// How deeply sweeps are nested, and the most bytes of a schedule.
fn sweeps(stmts: &[Stmt]) -> (usize, usize) {
    let mut most = (0, 0);
    for stmt in stmts {
        let mut inner = (0, 0);
        for block in stmt.blocks() {
            let (depth, bytes) = sweeps(block);
            inner = (inner.0.max(depth), inner.1.max(bytes));
        }
        if let Stmt::Sweep { room, .. } = stmt {
            inner = (inner.0 + 1, inner.1.max(Sweep::bytes(*room)));
        }
        most = (most.0.max(inner.0), most.1.max(inner.1));
    }
    most
}

fn bytes_of(datum: &Datum<f64>) -> usize {
    match datum {
        Datum::Real(_) | Datum::Int(_) => 8,
        Datum::Bool(_) => 1,
    }
}

type Memory = AVec<u64, ConstAlign<64>>;

/// What a run needs; kept for the next one.
#[derive(Debug)]
struct Workspace {
    memory: Memory,
    growing: Vec<Vec<u64>>,
    sweeps: Vec<Sweep>,
    ended: Vec<Sweep>,
    capacities: Vec<i64>,
    table: Vec<*mut u8>,
    given: Vec<u64>,
    taken: Vec<u64>,
}

// SAFETY: the pointers are set anew by every run, which has the workspace for itself.
#[allow(unsafe_code)]
unsafe impl Send for Workspace {}

impl Workspace {
    /// Gives back what grew in earlier runs.
    fn forget_growth(&mut self) {
        self.growing.iter_mut().for_each(|memory| *memory = Vec::new());
        self.capacities.fill(0);
    }
}

impl Native {
    /// Compiles a loop form.
    ///
    /// # Errors
    /// What Cranelift cannot do.
    pub fn new(form: LoopForm) -> Result<Native, Refused> {
        Native::in_pieces(form, compile::MOST)
    }

    /// The same with functions of at most so many statements: so that short programs can tell what becomes of
    /// long ones.
    ///
    /// # Errors
    /// As [`new`](Native::new).
    pub fn in_pieces(form: LoopForm, most: u64) -> Result<Native, Refused> {
        let compiled = compile::compile(&form, most)?;
        Ok(Native::of(form, compiled))
    }

    /// Compiles a loop form by rustc, or finds it compiled in a folder.
    ///
    /// # Errors
    /// If there is no rustc, or no text of the form, or the folder is not for this user alone to write to.
    pub fn by_rustc_in(form: LoopForm, folder: &Path) -> Result<Native, Refused> {
        let compiled = rustc::compile(&form, folder)?;
        Ok(Native::of(form, compiled))
    }

    /// The same if it is there.
    pub(crate) fn kept_by_rustc_in(form: LoopForm, folder: &Path) -> Option<Native> {
        let compiled = rustc::kept(&form, folder)?;
        Some(Native::of(form, compiled))
    }

    pub(crate) fn form(&self) -> &LoopForm {
        &self.form
    }

    /// How many statements it has.
    pub(crate) fn statements(&self) -> u64 {
        self.statements
    }

    /// Whether an earlier process has made it.
    pub(crate) fn was_there(&self) -> bool {
        self.compiled.was_there
    }

    /// Whether rustc has made it.
    pub fn is_by_rustc(&self) -> bool {
        self.compiled.suspects
    }

    /// Whether comparisons are to be shown one by one to whoever looks for decisions, and it does not.
    pub(crate) fn hides_comparisons(&self) -> bool {
        match self.compiled.suspects {
            true => decision::are_shown_one_by_one(),
            false => self.facts.compares_elements && decision::is_logged(),
        }
    }

    fn of(form: LoopForm, compiled: Compiled) -> Native {
        let facts = Facts::of(&form.body);
        let bytes = bytes(&form, compiled.workspace);
        // Made here, so that no run has to.
        let idle = Mutex::new(Vec::with_capacity(1));
        let statements = form.statements();
        Native { form, compiled, facts, bytes, statements, idle }
    }

    /// What it is called, as in `by machine code`.
    pub fn name(&self) -> &'static str {
        if self.is_by_rustc() { "machine code of rustc" } else { "machine code" }
    }

    /// The bytes of a run, results included, without what grows: the smallest budget.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it has arrays that grow with the data.
    pub fn grows(&self) -> bool {
        self.form.buffers.iter().any(|buffer| buffer.role == Role::Growing)
    }

    /// Why a run within these limits is left to the interpreter from the start, if it is.
    pub fn refuses(&self, limits: &Limits) -> Option<String> {
        if let Some(why) = adds_otherwise(limits) {
            return Some(why);
        }
        if limits.trap_nonfinite && !self.form.traps {
            return Some("this machine code does not look for infinities".into());
        }
        if self.hides_comparisons() {
            return Some("it shows comparisons in their order".into());
        }
        if limits.budget.is_unlimited() {
            return None;
        }
        if self.facts.has_kernels {
            return Some("the bytes of some operations are known only to it".into());
        }
        let is_too_much = limits.budget.checked_sub(self.bytes).is_none();
        is_too_much.then(|| format!("machine code takes {} bytes", self.bytes))
    }

    /// Runs it on inputs of the shapes, and with the single integers, that it was made for; returns the
    /// results, and how many steps and bytes they took.
    ///
    /// # Errors
    /// If the interpreter must say what happened, or must run the program itself: for another accumulator, a
    /// budget that is too small for the workspace, decisions that must be seen in their order.
    ///
    /// # Panics
    /// If the inputs have other shapes.
    pub fn run<D: Borrow<Datum<f64>>>(
        &self,
        inputs: &[D],
        limits: &Limits,
    ) -> Result<(Vec<Datum<f64>>, Stats), Stopped> {
        self.check(inputs);
        if self.refuses(limits).is_some() {
            return Err(Stopped);
        }
        let shows_all = decision::is_logged();
        let left = limits.budget.checked_sub(self.bytes).ok_or(Stopped)?.bytes();
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut workspace = match idle {
            Some(workspace) => workspace,
            None => self.workspace()?,
        };
        if !limits.budget.is_unlimited() {
            workspace.forget_growth();
        }
        let held = workspace.growing.iter().map(|memory| 8 * memory.len()).sum();
        self.give(&mut workspace, inputs);
        let steps = i64::try_from(limits.steps).unwrap_or(i64::MAX);
        // A run that was stopped may have left some.
        workspace.ended.append(&mut workspace.sweeps);
        let mut context = Context {
            workspace: workspace.memory.as_mut_ptr().cast(),
            steps,
            suspicions: 0,
            shows_all,
            capacities: workspace.capacities.as_mut_ptr(),
            table: workspace.table.as_mut_ptr(),
            calls: self.compiled.calls.as_ptr(),
            growing: &raw mut workspace.growing,
            left,
            grown: Grown { now: held, most: held },
            sweeps: &raw mut workspace.sweeps,
            ended: &raw mut workspace.ended,
        };
        // SAFETY: the code was made for these inputs, and this is the memory that its layout asks for; it has
        // passed the verifier, so it stays inside.
        #[allow(unsafe_code)]
        let bad = unsafe {
            let entry: extern "C" fn(*mut Context, *const *mut u8, *const u64, *mut u64) -> i64 =
                core::mem::transmute(self.compiled.entry);
            entry(
                &raw mut context,
                workspace.table.as_ptr(),
                workspace.given.as_ptr(),
                workspace.taken.as_mut_ptr(),
            )
        };
        let (steps, grown) = (steps - context.steps, context.grown.most);
        let outputs = if bad == 0 { Some(self.outputs(&workspace)) } else { None };
        // A workspace that is kept would not count towards the next budget.
        if limits.budget.is_unlimited() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(workspace);
        }
        let outputs = outputs.ok_or(Stopped)?;
        match context.suspicions {
            0 => {}
            1 => decision::compared_many(Suspicion::Small),
            _ => decision::compared_many(Suspicion::Exact),
        }
        let results = outputs.iter().map(|output| output.elements() * bytes_of(output)).sum::<usize>();
        let stats = Stats {
            steps: steps as u64,
            peak_bytes: self.compiled.workspace + grown + results,
            result_bytes: results,
            heap_bytes: self.bytes + grown,
            by_machine: true,
            ..Stats::default()
        };
        Ok((outputs, stats))
    }

    /// Sets what the machine code is given.
    fn give<D: Borrow<Datum<f64>>>(&self, workspace: &mut Workspace, inputs: &[D]) {
        for (number, buffer) in self.form.buffers.iter().enumerate() {
            workspace.table[number] = match buffer.role {
                Role::Input(input) => match inputs[input].borrow() {
                    Datum::Real(tensor) => tensor.data.as_ptr().cast_mut().cast(),
                    Datum::Int(tensor) => tensor.data.as_ptr().cast_mut().cast(),
                    Datum::Bool(tensor) => tensor.data.as_ptr().cast_mut().cast(),
                },
                Role::Workspace => core::ptr::null_mut(),
                Role::Growing => workspace.growing[number].as_mut_ptr().cast(),
            };
        }
        for (word, input) in workspace.given.iter_mut().zip(inputs) {
            *word = match input.borrow() {
                Datum::Real(tensor) if tensor.shape.is_empty() => tensor.data[0].to_bits(),
                Datum::Int(tensor) if tensor.shape.is_empty() => tensor.data[0] as u64,
                Datum::Bool(tensor) if tensor.shape.is_empty() => u64::from(tensor.data[0]),
                Datum::Real(_) | Datum::Int(_) | Datum::Bool(_) => 0,
            };
        }
    }

    fn check<D: Borrow<Datum<f64>>>(&self, inputs: &[D]) {
        assert_eq!(inputs.len(), self.form.inputs.len(), "as many inputs as the loop form was made for");
        for (port, input) in self.form.inputs.iter().zip(inputs) {
            let input = input.borrow();
            match port {
                Port::Array(place) => {
                    assert_eq!(
                        place.shape,
                        input.shape(),
                        "inputs of the shapes that the loop form was made for"
                    );
                    assert_eq!(
                        input.elements(),
                        place.shape.iter().product(),
                        "as many elements as the shape says"
                    );
                    let kind = match input {
                        Datum::Real(_) => Kind::Real,
                        Datum::Int(_) => Kind::Int,
                        Datum::Bool(_) => Kind::Bool,
                    };
                    assert_eq!(kind, self.form.buffers[place.buf.index()].kind, "elements of the same kind");
                }
                Port::Scalar(operand) => {
                    let fits = match (operand, input) {
                        (Operand::Int(n), input) => input.as_int() == Some(*n),
                        (Operand::Reg(reg), Datum::Real(_)) => self.form.registers[reg.index()] == Kind::Real,
                        (Operand::Reg(reg), Datum::Bool(_)) => self.form.registers[reg.index()] == Kind::Bool,
                        _ => false,
                    };
                    assert!(
                        fits && input.shape().is_empty(),
                        "inputs of the kinds that the loop form was made for"
                    );
                }
            }
        }
    }

    fn workspace(&self) -> Result<Workspace, Stopped> {
        let words = self.compiled.workspace.div_ceil(8);
        let mut memory: Memory = AVec::new(64);
        memory.try_reserve_exact(words).map_err(|_| Stopped)?;
        memory.resize(words, 0);
        let buffers = self.form.buffers.len();
        Ok(Workspace {
            memory,
            growing: vec![Vec::new(); buffers],
            sweeps: Vec::new(),
            ended: Vec::new(),
            capacities: vec![0; buffers],
            table: vec![core::ptr::null_mut(); buffers],
            given: vec![0; self.form.inputs.len()],
            taken: vec![0; self.form.outputs.len()],
        })
    }

    fn outputs(&self, workspace: &Workspace) -> Vec<Datum<f64>> {
        let one = |(port, &word): (&Port, &u64)| match port {
            Port::Scalar(operand) => {
                // SAFETY: the word is the scalar.
                #[allow(unsafe_code)]
                unsafe {
                    datum(self.form.kind(*operand), word, None)
                }
            }
            Port::Array(place) => {
                let kind = self.form.buffers[place.buf.index()].kind;
                // SAFETY: machine code left the address of so many elements of a buffer.
                #[allow(unsafe_code)]
                unsafe {
                    datum(kind, word, Some(&place.shape))
                }
            }
        };
        self.form.outputs.iter().zip(&workspace.taken).map(one).collect()
    }
}
