//! The engine: machine code where there is some and it pays, the interpreter elsewhere.
//!
//! Input: programs, and inputs as they come. Output: an [`Engine`] for
//! [`Code::on`](palinode_ir::interp::Code::on). A program is compiled once for inputs of the same shapes,
//! with the same single integers. By default that is done when the work of its runs, this one included, is
//! more than that of compiling it: a short program that is run once is interpreted, one that is run often is
//! compiled soon.
//!
//! Invariant: who runs a program changes no bit of what it gives, and no error.

use core::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use palinode_core::Accumulator;
use palinode_ir::interp::{Chosen, Compiler, Datum, Engine, Limits, Machine, Stats};
use palinode_ir::loops::{self, LoopForm};
use palinode_ir::{Kind, Program};

use crate::codegen::Refused;
use crate::machine::Native;
use crate::rustc;

/// When a program is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// If it has a loop form.
    Possible,
    /// If its work is more than that of compiling it, too.
    Worthwhile,
}

/// Machine code by Cranelift.
pub fn machine_code(when: When) -> Engine {
    Engine::new(Compiles { when, by_rustc: false })
}

/// Machine code by rustc wherever there is text of the loop form, and by Cranelift elsewhere, or where there
/// is no rustc.
pub fn by_rustc() -> Engine {
    Engine::new(Compiles { when: When::Possible, by_rustc: rustc::is_there() })
}

#[derive(Clone, Copy, Debug)]
struct Compiles {
    when: When,
    by_rustc: bool,
}

impl Compiler for Compiles {
    fn machine(&self, program: &Program) -> Arc<dyn Machine> {
        Arc::new(OfProgram { program: program.clone(), how: *self, made: Mutex::default() })
    }
}

impl Compiles {
    /// Machine code of a form.
    fn compile(self, form: &LoopForm) -> Result<Native, Refused> {
        let by_rustc = if self.by_rustc { Native::by_rustc(form.clone()).ok() } else { None };
        by_rustc.map_or_else(|| Native::new(form.clone()), Ok)
    }
}

/// Compiling a statement takes about as long as interpreting so many.
const OF_STATEMENT: u64 = 100;
/// And compiling anything at all as long as so many.
const OF_PROGRAM: u64 = 10_000;

/// For so many kinds of inputs a program is compiled at the same time.
const KINDS: usize = 8;

/// Runs that were stopped in vain, after which a program is left to the interpreter.
const VAIN: u32 = 3;

struct OfProgram {
    program: Program,
    how: Compiles,
    /// Latest last.
    made: Mutex<Vec<Arc<ForInputs>>>,
}

impl fmt::Debug for OfProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MachineCode").field("program", &self.program.main().name).finish_non_exhaustive()
    }
}

/// What is known of inputs when a loop form is made.
#[derive(Debug, PartialEq)]
enum Known {
    Array(Vec<usize>),
    Int(i64),
    Other,
}

impl Known {
    fn of(input: &Datum<f64>) -> Known {
        match input {
            Datum::Int(tensor) if tensor.shape.is_empty() => Known::Int(tensor.data[0]),
            input if input.shape().is_empty() => Known::Other,
            input => Known::Array(input.shape().to_vec()),
        }
    }

    fn fits(&self, input: &Datum<f64>) -> bool {
        match self {
            Known::Array(shape) => !shape.is_empty() && shape == input.shape(),
            Known::Int(n) => input.as_int() == Some(*n),
            Known::Other => input.shape().is_empty() && input.as_int().is_none(),
        }
    }
}

/// A program for inputs of which the same is known.
#[derive(Debug)]
struct ForInputs {
    known: Vec<Known>,
    traps: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// The loop form, the work of a run, and of those that were interpreted.
    Waiting { form: Box<LoopForm>, work: u64, done: u64 },
    /// Machine code, and how many runs it has stopped without coming to an end again.
    Compiled(Arc<Native>, u32),
    /// The interpreter, and why.
    Never(String),
}

impl OfProgram {
    /// What there is for inputs like these.
    fn for_inputs(&self, inputs: &[&Datum<f64>], traps: bool) -> Arc<ForInputs> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |made: &Arc<ForInputs>| {
            made.traps == traps && made.known.iter().zip(inputs).all(|(known, input)| known.fits(input))
        };
        if let Some(at) = made.iter().position(fits) {
            return Arc::clone(&made[at]);
        }
        if made.len() >= KINDS {
            made.remove(0);
        }
        let known = inputs.iter().map(|input| Known::of(input)).collect();
        let new = Arc::new(ForInputs { known, traps, state: Mutex::new(self.begun(inputs, traps)) });
        made.push(Arc::clone(&new));
        new
    }

    fn begun(&self, inputs: &[&Datum<f64>], traps: bool) -> State {
        if self.how.when == When::Worthwhile
            && !repeats(&self.program)
            && inputs.iter().all(|x| x.elements() < 100)
        {
            return State::Never("it is run once through, and has no loop".into());
        }
        match loops::lower(&self.program, inputs, traps) {
            Ok(form) => State::Waiting { work: form.work(), form: Box::new(form), done: 0 },
            Err(refusal) => State::Never(format!("{} has no loop form", refusal.what)),
        }
    }

    /// The machine code, if it is there or is to be made now, and how long that took.
    fn native(&self, made: &ForInputs) -> Result<(Arc<Native>, f64), String> {
        let mut state = made.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &*state {
            State::Compiled(native, vain) if *vain < VAIN => return Ok((Arc::clone(native), 0.0)),
            State::Compiled(..) => return Err("runs by machine code were stopped before".into()),
            State::Never(why) => return Err(why.clone()),
            State::Waiting { .. } => {}
        }
        let State::Waiting { form, work, done } = &*state else { unreachable!("looked at") };
        let compiling = OF_PROGRAM.saturating_add(form.statements().saturating_mul(OF_STATEMENT));
        if self.how.when == When::Worthwhile && done.saturating_add(*work) < compiling {
            return Err("it is less work than to compile it".into());
        }
        let started = Instant::now();
        let compiled = self.how.compile(form);
        let (next, result) = match compiled {
            Ok(native) => {
                let native = Arc::new(native);
                (State::Compiled(Arc::clone(&native), 0), Ok((native, started.elapsed().as_secs_f64())))
            }
            Err(refused) => (State::Never(refused.0.clone()), Err(refused.0)),
        };
        *state = next;
        result
    }
}

impl ForInputs {
    /// The interpreter does a run.
    fn interpreted(&self) {
        if let State::Waiting { work, done, .. } =
            &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner)
        {
            *done = done.saturating_add(*work);
        }
    }

    /// Machine code has run.
    fn ran(&self, came_to_its_end: bool) {
        if let State::Compiled(_, vain) = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            *vain = if came_to_its_end { 0 } else { *vain + 1 };
        }
    }
}

/// Whether a program has loops, or calls.
fn repeats(program: &Program) -> bool {
    program.count(|inst| !inst.blocks.is_empty() || inst.op.facts().kind == Kind::Calls) > 0
}

impl Machine for OfProgram {
    fn prepare(&self, inputs: &[&Datum<f64>], limits: &Limits) -> Chosen {
        if limits.accumulator != Accumulator::Naive {
            return Chosen::InterpreterBecause("it alone adds so".into());
        }
        let made = self.for_inputs(inputs, limits.trap_nonfinite);
        match self.native(&made) {
            Ok((native, _)) if limits.budget.checked_sub(native.bytes()).is_none() => {
                Chosen::InterpreterBecause(format!("machine code takes {} bytes", native.bytes()))
            }
            Ok((native, seconds)) => Chosen::Machine { name: native.name(), seconds },
            Err(why) => Chosen::InterpreterBecause(why),
        }
    }

    fn run(&self, inputs: &[&Datum<f64>], limits: &Limits) -> Option<(Vec<Datum<f64>>, Stats)> {
        if limits.accumulator != Accumulator::Naive {
            return None;
        }
        let made = self.for_inputs(inputs, limits.trap_nonfinite);
        let Ok((native, _)) = self.native(&made) else {
            made.interpreted();
            return None;
        };
        let ran = native.run(inputs, limits).ok();
        made.ran(ran.is_some());
        ran
    }
}
