//! Running machine code: inputs, workspace, outputs.

use std::sync::Mutex;

use aligned_vec::{AVec, ConstAlign};
use palinode_ir::interp::{Datum, Limits};
use palinode_ir::loops::{Kind, LoopForm, Operand, Port, Role, Sweep};

use crate::codegen::{self, Compiled, Refused};
use crate::runtime::{Context, datum};

/// Something happened that only the interpreter explains: it is to run the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// A program as machine code, for inputs of certain shapes.
pub struct Native {
    form: LoopForm,
    compiled: Compiled,
    /// Workspaces of runs that have ended.
    idle: Mutex<Vec<Workspace>>,
}

type Memory = AVec<u64, ConstAlign<64>>;

/// What a run needs; kept for the next one.
struct Workspace {
    memory: Memory,
    growing: Vec<Vec<u64>>,
    sweeps: Vec<Sweep>,
    room: Vec<i64>,
    table: Vec<*mut u8>,
    given: Vec<u64>,
    taken: Vec<u64>,
}

// SAFETY: the pointers are set anew by every run, which has the workspace for itself.
#[allow(unsafe_code)]
unsafe impl Send for Workspace {}

impl Native {
    /// Compiles a loop form.
    ///
    /// # Errors
    /// What Cranelift cannot do.
    pub fn new(form: LoopForm) -> Result<Native, Refused> {
        let compiled = codegen::compile(&form)?;
        Ok(Native { form, compiled, idle: Mutex::default() })
    }

    /// The bytes of the workspace, without what grows.
    pub fn workspace_bytes(&self) -> usize {
        self.compiled.workspace
    }

    /// Runs it on inputs of the shapes, and with the single integers, that it was made for; gives the results
    /// and the number of steps.
    ///
    /// # Errors
    /// That the interpreter must say what happens.
    ///
    /// # Panics
    /// If the inputs have other shapes.
    pub fn run(&self, inputs: &[Datum<f64>], limits: &Limits) -> Result<(Vec<Datum<f64>>, u64), Stopped> {
        self.check(inputs);
        let left = limits.budget.checked_sub(self.compiled.workspace).ok_or(Stopped)?.bytes();
        let idle = self.idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop();
        let mut workspace = match idle {
            Some(workspace) => workspace,
            None => self.workspace()?,
        };
        for (number, buffer) in self.form.buffers.iter().enumerate() {
            workspace.table[number] = match buffer.role {
                Role::Input(input) => match &inputs[input] {
                    Datum::Real(tensor) => tensor.data.as_ptr().cast_mut().cast(),
                    Datum::Int(tensor) => tensor.data.as_ptr().cast_mut().cast(),
                    Datum::Bool(tensor) => tensor.data.as_ptr().cast_mut().cast(),
                },
                Role::Workspace => core::ptr::null_mut(),
                Role::Growing => workspace.growing[number].as_mut_ptr().cast(),
            };
        }
        for (word, input) in workspace.given.iter_mut().zip(inputs) {
            *word = match input {
                Datum::Real(tensor) if tensor.shape.is_empty() => tensor.data[0].to_bits(),
                Datum::Int(tensor) if tensor.shape.is_empty() => tensor.data[0] as u64,
                Datum::Bool(tensor) if tensor.shape.is_empty() => u64::from(tensor.data[0]),
                Datum::Real(_) | Datum::Int(_) | Datum::Bool(_) => 0,
            };
        }
        let steps = i64::try_from(limits.steps).unwrap_or(i64::MAX);
        // A run that was stopped may have left some.
        workspace.sweeps.clear();
        let mut context = Context {
            workspace: workspace.memory.as_mut_ptr().cast(),
            steps,
            room: workspace.room.as_mut_ptr(),
            table: workspace.table.as_mut_ptr(),
            sites: self.compiled.sites.as_ptr(),
            growing: &raw mut workspace.growing,
            left,
            sweeps: &raw mut workspace.sweeps,
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
        let steps = steps - context.steps;
        let outputs = if bad == 0 { Some(self.outputs(&workspace)) } else { None };
        self.idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(workspace);
        outputs.map(|outputs| (outputs, steps as u64)).ok_or(Stopped)
    }

    fn check(&self, inputs: &[Datum<f64>]) {
        assert_eq!(inputs.len(), self.form.inputs.len(), "as many inputs as the loop form was made for");
        for (port, input) in self.form.inputs.iter().zip(inputs) {
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
            room: vec![0; buffers],
            table: vec![core::ptr::null_mut(); buffers],
            given: vec![0; self.form.inputs.len()],
            taken: vec![0; self.form.outputs.len()],
        })
    }

    fn outputs(&self, workspace: &Workspace) -> Vec<Datum<f64>> {
        let one = |(port, &word): (&Port, &u64)| match port {
            Port::Scalar(operand) => {
                let kind = match operand {
                    Operand::Reg(reg) => self.form.registers[reg.index()],
                    Operand::Real(_) => Kind::Real,
                    Operand::Int(_) => Kind::Int,
                    Operand::Bool(_) => Kind::Bool,
                };
                // SAFETY: the word is the scalar.
                #[allow(unsafe_code)]
                unsafe {
                    datum(kind, word, None)
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
