//! The engine: machine code where there is some and it pays, the interpreter elsewhere.
//!
//! Input: programs, and inputs as they come. Output: an [`Engine`] for
//! [`Code::on`](palinode_ir::interp::Code::on). A program is compiled once for inputs of the same shapes,
//! with the same single integers. By default that is done when the work of its runs, this one included, is
//! more than that of compiling it: a short program that is run once is interpreted, one that is run often is
//! compiled soon. [`automatic`] weighs machine code by rustc in the same way: a library that is there costs
//! next to nothing, and compiling one is for programs that run for seconds, in one run or in many.
//!
//! Invariant: who runs a program changes no bit of what it gives, and no error.

use core::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use palinode_ir::interp::{Chosen, Code, Compiler, Datum, Engine, Limits, Machine, Stats};
use palinode_ir::loops::{self, LoopForm};
use palinode_ir::{Kind, Program};

use crate::machine::{Native, adds_otherwise};
use crate::rustc;
use crate::worth::{self, Asked};

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
    Engine::new(Compiles { when, rustc: When::Possible, folder: None })
}

/// Machine code by rustc wherever there is text of the loop form, and by Cranelift elsewhere, or where there
/// is no rustc.
pub fn by_rustc() -> Engine {
    by_rustc_in(rustc::folder())
}

/// The same with a folder for libraries.
pub fn by_rustc_in(folder: Option<PathBuf>) -> Engine {
    Engine::new(Compiles { when: When::Possible, rustc: When::Possible, folder })
}

/// Who does it in the shortest time, compiling included: the interpreter, machine code by Cranelift, or by
/// rustc if it is installed and there is a folder for libraries.
pub fn automatic() -> Engine {
    automatic_in(rustc::folder())
}

/// The same with a folder for libraries.
pub fn automatic_in(folder: Option<PathBuf>) -> Engine {
    Engine::new(Compiles { when: When::Worthwhile, rustc: When::Worthwhile, folder })
}

#[derive(Clone, Debug)]
struct Compiles {
    when: When,
    /// When rustc does it.
    rustc: When,
    /// The folder for libraries; if there is none, rustc never does.
    folder: Option<PathBuf>,
}

impl Compiler for Compiles {
    fn machine(&self, program: &Program) -> Arc<dyn Machine> {
        Arc::new(OfProgram { program: program.clone(), how: self.clone(), made: Mutex::default() })
    }
}

impl Compiles {
    /// What to ask of rustc for so much work with a program of so many statements, and where libraries are.
    fn asks(&self, work: u64, statements: u64) -> (Asked, Option<&Path>) {
        let asked = match (&self.folder, self.rustc) {
            (None, _) => Asked::Nothing,
            (Some(_), When::Possible) => Asked::ToCompile,
            (Some(_), When::Worthwhile) => worth::rustc(work, statements),
        };
        (asked, self.folder.as_deref())
    }

    /// Machine code of a form by rustc, if that is asked for and there is some.
    fn by_rustc(form: &LoopForm, (asked, folder): (Asked, Option<&Path>)) -> Option<Native> {
        let folder = folder?;
        match asked {
            Asked::Nothing => None,
            Asked::ALibrary => Native::kept_by_rustc_in(form.clone(), folder),
            Asked::ToCompile => Native::by_rustc_in(form.clone(), folder).ok(),
        }
    }
}

/// Compiling a statement takes about as long as interpreting so many: 6 to 19 microseconds, lowering
/// included, for gradients of the examples, against 2 to 5 nanoseconds in loops, 20 to 50 outside of them.
const OF_STATEMENT: u64 = 2_500;
/// And compiling anything at all as long as so many: 70 microseconds.
const OF_PROGRAM: u64 = 20_000;

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
    /// Machine code that shows comparisons one by one, where the other does not.
    showing: OnceLock<Option<Arc<Native>>>,
}

#[derive(Debug)]
enum State {
    /// The loop form, the work of a run, and of those that were interpreted.
    Waiting {
        form: Box<LoopForm>,
        work: Work,
        done: u64,
    },
    Compiled(Made),
    /// The interpreter, and why.
    Never(String),
}

/// Machine code.
#[derive(Debug)]
struct Made {
    native: Arc<Native>,
    /// How many runs it has stopped without coming to an end again.
    vain: u32,
    work: Work,
    /// The work of all runs so far.
    done: u64,
    /// What rustc has been asked for.
    asked: Asked,
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
    /// Of a run with no rounds of loops that end by data, how many steps that is, and of every further step.
    least: (u64, u64),
    of_step: f64,
}

impl Work {
    fn of(form: &LoopForm) -> Work {
        let compiling = OF_PROGRAM.saturating_add(form.statements().saturating_mul(OF_STATEMENT));
        let [short, long] = [0, ROUNDS].map(|rounds| form.work(rounds));
        let each = long.saturating_sub(short) / ROUNDS;
        let [at_least, more] = [0, ROUNDS].map(|rounds| form.steps(rounds));
        let of_round = (more.saturating_sub(at_least) / ROUNDS).max(1);
        let trial = (each > 0 && short < compiling)
            .then(|| at_least.saturating_add(((compiling - short) / each).saturating_mul(of_round)).max(1));
        let of_step = each as f64 / of_round as f64;
        Work { run: long, compiling, trial, least: (short, at_least), of_step }
    }

    /// Of a run that took so many steps.
    fn of_run(&self, steps: u64) -> u64 {
        let (work, at_least) = self.least;
        work.saturating_add((steps.saturating_sub(at_least) as f64 * self.of_step) as u64)
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
        let state = Mutex::new(self.begun(inputs, traps));
        let new = Arc::new(ForInputs { known, traps, state, showing: OnceLock::new() });
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
        match &mut *state {
            State::Compiled(by_now) if by_now.vain < VAIN => {
                let native = Arc::clone(&by_now.native);
                let asks = self.how.asks(by_now.done.saturating_add(by_now.work.run), native.statements());
                if asks.0 <= by_now.asked || native.is_by_rustc() {
                    return Ok((native, 0.0));
                }
                by_now.asked = asks.0;
                // Others go on with what there is.
                drop(state);
                return Ok(self.faster(made, native, asks));
            }
            State::Compiled(..) => return Err(format!("machine code stopped {VAIN} times in a row")),
            State::Never(why) => return Err(why.clone()),
            State::Waiting { .. } => {}
        }
        let State::Waiting { form, work, done } = &*state else { unreachable!("looked at") };
        if self.how.when == When::Worthwhile && done.saturating_add(work.run) < work.compiling {
            return Err("compiling takes longer than running".into());
        }
        let started = Instant::now();
        let asks = self.how.asks(done.saturating_add(work.run), form.statements());
        let compiled = match Compiles::by_rustc(form, asks) {
            Some(native) => Ok(native),
            None => Native::new((**form).clone()),
        };
        let (next, result) = match compiled {
            Ok(native) => {
                let native = Arc::new(native);
                let (work, done, asked) = (*work, *done, asks.0);
                let now = Made { native: Arc::clone(&native), vain: 0, work, done, asked };
                let seconds = taken(&native, started);
                (State::Compiled(now), Ok((native, seconds)))
            }
            Err(refused) => (State::Never(refused.0.clone()), Err(refused.0)),
        };
        *state = next;
        result
    }

    /// Machine code by rustc if it gives some, else what there is, and how long that took.
    fn faster(
        &self,
        made: &ForInputs,
        native: Arc<Native>,
        asks: (Asked, Option<&Path>),
    ) -> (Arc<Native>, f64) {
        let started = Instant::now();
        let Some(faster) = Compiles::by_rustc(native.form(), asks).map(Arc::new) else {
            return (native, 0.0);
        };
        let mut state = made.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Compiled(by_now) = &mut *state {
            by_now.native = Arc::clone(&faster);
        }
        // It shows comparisons one by one.
        let _ = made.showing.set(Some(native));
        let seconds = taken(&faster, started);
        (faster, seconds)
    }

    /// The machine code for a run within these limits: that of rustc does not show comparisons one by one, if
    /// that is asked for. Within a budget nothing is made.
    fn that_shows(&self, made: &ForInputs, native: Arc<Native>, limits: &Limits) -> Arc<Native> {
        if !native.is_by_rustc() || !native.hides_comparisons() {
            return native;
        }
        let showing = match limits.budget.is_unlimited() {
            true => made.showing.get_or_init(|| Native::new(native.form().clone()).ok().map(Arc::new)),
            false => made.showing.get().unwrap_or(&None),
        };
        showing.clone().unwrap_or(native)
    }
}

impl ForInputs {
    fn fits(&self, inputs: &[&Datum<f64>], traps: bool) -> bool {
        self.traps == traps && self.known.iter().zip(inputs).all(|(known, input)| known.fits(input))
    }

    /// The machine code, if it is there and worth a run.
    fn compiled(&self) -> Option<Arc<Native>> {
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Compiled(made) if made.vain < VAIN => Some(Arc::clone(&made.native)),
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

    /// Machine code has run, for so many steps, or was stopped.
    fn ran(&self, steps: Option<u64>) {
        if let State::Compiled(made) = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            made.vain = if steps.is_some() { 0 } else { made.vain + 1 };
            if let Some(steps) = steps {
                // The next run is taken to be like this one.
                made.work.run = made.work.of_run(steps);
                made.done = made.done.saturating_add(made.work.run);
            }
        }
    }
}

/// How long it took to make machine code, in seconds; 0 if it was there.
fn taken(native: &Native, started: Instant) -> f64 {
    if native.was_there() { 0.0 } else { started.elapsed().as_secs_f64() }
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
            Ok((native, seconds)) => {
                let native = self.that_shows(&made, native, limits);
                let (bytes, grows) = (native.bytes(), native.grows());
                match native.refuses(limits) {
                    Some(why) => Chosen::InterpreterBecause(why),
                    None => Chosen::Machine { name: native.name(), seconds, bytes, grows },
                }
            }
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
        let native = self.that_shows(&made, native, limits);
        // What is left to the interpreter from the start was not stopped in vain.
        if native.refuses(limits).is_some() {
            return None;
        }
        let ran = native.run(inputs, limits).ok();
        made.ran(ran.as_ref().map(|(_, stats)| stats.steps));
        ran
    }
}
