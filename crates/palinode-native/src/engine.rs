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

use palinode_ir::interp::{Chosen, Code, Compiler, Datum, Engine, Limits, Machine, Stats};
use palinode_ir::loops::{self, LoopForm};
use palinode_ir::{Kind, Program};

use crate::codegen::Refused;
use crate::machine::{Native, adds_otherwise};
use crate::rustc;

/// When a program is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// If it has a loop form.
    Possible,
    /// If its work is more than that of compiling it, too.
    Worthwhile,
}

/// A program ready to run, by machine code where that pays: [`Code::on`] for [`When::Worthwhile`].
pub fn code(program: &Program) -> Code {
    Code::on(&machine_code(When::Worthwhile), program)
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
    Waiting { form: Box<LoopForm>, work: Work, done: u64 },
    /// Machine code, and how many runs it has stopped without coming to an end again.
    Compiled(Arc<Native>, u32),
    /// The interpreter, and why.
    Never(String),
}

/// About how much work a run is, in statements.
#[derive(Clone, Copy, Debug)]
struct Work {
    /// Of a run.
    run: u64,
    /// Of compiling it.
    compiling: u64,
    /// If that of a run depends on data: after how many steps it is as much as that of compiling.
    trial: Option<u64>,
}

impl Work {
    fn of(form: &LoopForm) -> Work {
        let compiling = OF_PROGRAM.saturating_add(form.statements().saturating_mul(OF_STATEMENT));
        let [short, long] = [0, ROUNDS].map(|rounds| form.work(rounds));
        let each = long.saturating_sub(short) / ROUNDS;
        let trial = (each > 0 && short < compiling).then(|| {
            let [at_least, more] = [0, ROUNDS].map(|rounds| form.steps(rounds));
            let of_round = (more.saturating_sub(at_least) / ROUNDS).max(1);
            at_least.saturating_add(((compiling - short) / each).saturating_mul(of_round)).max(1)
        });
        Work { run: long, compiling, trial }
    }
}

/// What is assumed of loops that end by data.
const ROUNDS: u64 = 1_000;

impl OfProgram {
    /// What has been made for inputs like these.
    fn found(&self, inputs: &[&Datum<f64>], traps: bool) -> Option<Arc<ForInputs>> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.iter().find(|made| made.fits(inputs, traps)).cloned()
    }

    /// What there is for inputs like these; from now on, if there was nothing.
    fn for_inputs(&self, inputs: &[&Datum<f64>], traps: bool) -> Arc<ForInputs> {
        if let Some(found) = self.found(inputs, traps) {
            return found;
        }
        let known = inputs.iter().map(|input| Known::of(input)).collect();
        let new = Arc::new(ForInputs { known, traps, state: Mutex::new(self.begun(inputs, traps)) });
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have made it meanwhile.
        if let Some(found) = made.iter().find(|made| made.fits(inputs, traps)) {
            return Arc::clone(found);
        }
        if made.len() >= KINDS {
            made.remove(0);
        }
        made.push(Arc::clone(&new));
        new
    }

    fn begun(&self, inputs: &[&Datum<f64>], traps: bool) -> State {
        if self.how.when == When::Worthwhile
            && !repeats(&self.program)
            && inputs.iter().all(|x| x.elements() < 100)
        {
            return State::Never("there is no loop: compiling takes longer".into());
        }
        match loops::lower(&self.program, inputs, traps) {
            Ok(form) => State::Waiting { work: Work::of(&form), form: Box::new(form), done: 0 },
            Err(refusal) => State::Never(format!("{} has no loop form", refusal.what)),
        }
    }

    /// The machine code, if it is there or is to be made now, and how long that took.
    fn native(&self, made: &ForInputs) -> Result<(Arc<Native>, f64), String> {
        let mut state = made.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &*state {
            State::Compiled(native, vain) if *vain < VAIN => return Ok((Arc::clone(native), 0.0)),
            State::Compiled(..) => return Err(format!("machine code stopped {VAIN} times in a row")),
            State::Never(why) => return Err(why.clone()),
            State::Waiting { .. } => {}
        }
        let State::Waiting { form, work, done } = &*state else { unreachable!("looked at") };
        if self.how.when == When::Worthwhile && done.saturating_add(work.run) < work.compiling {
            return Err("compiling takes longer than running".into());
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
    fn fits(&self, inputs: &[&Datum<f64>], traps: bool) -> bool {
        self.traps == traps && self.known.iter().zip(inputs).all(|(known, input)| known.fits(input))
    }

    /// The machine code, if it is there and worth a run.
    fn compiled(&self) -> Option<Arc<Native>> {
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Compiled(native, vain) if *vain < VAIN => Some(Arc::clone(native)),
            State::Compiled(..) | State::Waiting { .. } | State::Never(_) => None,
        }
    }

    /// The interpreter does a run.
    fn interpreted(&self) {
        if let State::Waiting { work, done, .. } =
            &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner)
        {
            *done = done.saturating_add(work.run);
        }
    }

    /// After how many steps a run of the interpreter has taken as long as compiling.
    fn trial(&self) -> Option<u64> {
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Waiting { work, done, .. } => work.trial.filter(|_| *done < work.compiling),
            State::Compiled(..) | State::Never(_) => None,
        }
    }

    /// A trial has come to its end after so many steps, or was stopped: then compiling is worth it.
    fn tried(&self, steps: Option<u64>) {
        if let State::Waiting { work, done, .. } =
            &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner)
        {
            let taken = match (steps, work.trial) {
                (Some(steps), Some(most)) => {
                    (work.compiling as f64 * (steps as f64 / most as f64)).min(work.compiling as f64) as u64
                }
                _ => work.compiling,
            };
            // The next run is taken to be like this one.
            work.run = taken;
            *done = done.saturating_add(taken);
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
        if let Some(why) = adds_otherwise(limits) {
            return Chosen::InterpreterBecause(why);
        }
        let made = self.for_inputs(inputs, limits.trap_nonfinite);
        match self.native(&made) {
            Ok((native, seconds)) => match native.refuses(limits) {
                Some(why) => Chosen::InterpreterBecause(why),
                None => {
                    let (bytes, grows) = (native.bytes(), native.grows());
                    Chosen::Machine { name: native.name(), seconds, bytes, grows }
                }
            },
            Err(why) => Chosen::InterpreterBecause(why),
        }
    }

    fn trial(&self, inputs: &[&Datum<f64>], limits: &Limits) -> Option<u64> {
        // Within a budget, memory is for the run alone.
        if self.how.when == When::Possible
            || !limits.budget.is_unlimited()
            || adds_otherwise(limits).is_some()
        {
            return None;
        }
        self.for_inputs(inputs, limits.trap_nonfinite).trial()
    }

    fn tried(&self, inputs: &[&Datum<f64>], limits: &Limits, steps: Option<u64>) {
        self.for_inputs(inputs, limits.trap_nonfinite).tried(steps);
    }

    fn run(&self, inputs: &[&Datum<f64>], limits: &Limits) -> Option<(Vec<Datum<f64>>, Stats)> {
        if adds_otherwise(limits).is_some() {
            return None;
        }
        let (made, native) = if limits.budget.is_unlimited() {
            let made = self.for_inputs(inputs, limits.trap_nonfinite);
            let native = self.native(&made).ok();
            (made, native.map(|(native, _)| native))
        } else {
            let made = self.found(inputs, limits.trap_nonfinite)?;
            let native = made.compiled();
            (made, native)
        };
        let Some(native) = native else {
            made.interpreted();
            return None;
        };
        // What is left to the interpreter from the start was not stopped in vain.
        if native.refuses(limits).is_some() {
            return None;
        }
        let ran = native.run(inputs, limits).ok();
        made.ran(ran.is_some());
        ran
    }
}
