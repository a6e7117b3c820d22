//! The reference interpreter: it runs a program on any number.
//!
//! Input: a verified [`Program`] and a [`Datum`] for each parameter of its entry. Output: a [`Datum`] for
//! each result, or a [`RunError`] that names the instruction. The number decides what a run means: on `f64`
//! it evaluates, on `Dual<f64>` it also moves a tangent, on `Var<f64>` it writes a tape, on a posit or a
//! double-double it computes in that precision.
//!
//! | file | does |
//! |---|---|
//! | `tensor`, `error` | what goes in, comes out, goes wrong |
//! | `code`, `compile` | program -> register code |
//! | `run` | register code -> results |
//! | `machine` | other ways to run a program |
//! | `general`, `elementwise`, `access`, `array_ops`, `reduce`, `products`, `linalg` | kernels over whole arrays |
//! | `strips`, `rows` | fused operations, and rows of the rule table, on runs of plain numbers |
//! | `value`, `scalar_ops`, `trap` | what they share |
//! | `store_rule`, `workspace`, `bookkeeping` | what memory a run takes: the rules, also for the planner |
//! | `places` | the places that axes name |
//! | `store`, `ledger` | elements in buffers and chunks; the account of their bytes |
//!
//! Invariants: a run changes nothing but its own arrays; an array is updated in place whenever its last use
//! is the update; comparisons and truncations of active numbers go through [`Real`] and are counted as
//! decisions there, pivoting and other choices inside kernels are not; a run does not use the native stack
//! for calls. Results of kind `f32` are rounded after every operation; a reduction, a product or a
//! decomposition is one operation. Every byte of an array is counted, and none beyond [`Limits::budget`] is
//! taken; how much memory a run takes depends on lengths, numbers of rounds and branches, never on other
//! numbers.

mod access;
mod array_ops;
pub(crate) mod bookkeeping;
mod code;
mod compile;
mod elementwise;
mod error;
mod general;
mod ledger;
mod linalg;
mod machine;
mod narrowed;
mod places;
mod products;
mod reduce;
mod rows;
mod run;
pub(crate) mod scalar_ops;
mod settled;
mod store;
pub(crate) mod store_rule;
mod strips;
mod tensor;
mod trap;
mod value;
pub(crate) mod workspace;

use std::sync::Arc;

use palinode_core::{Accumulator, Budget, Real, decision};

pub use run::RoundBack;
pub(crate) use run::check_inputs;

pub use error::{RunError, RunErrorKind, Shape};
pub use machine::{Chosen, Compiler, Engine, Machine};
pub use store_rule::Event;
pub use tensor::{Datum, Tensor};

use crate::fast::FastMap;
use crate::liveness::{self, BlockMarks};
use crate::op::Reduction;
use crate::program::{Function, Program};
use crate::types::Span;
use ledger::Record;

/// The bytes of counting at one place, with what a table leaves free.
const COUNTED: usize = 128;

/// When to give up, and how to add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many rounds of loops and calls there may be.
    pub steps: u64,
    /// How deep calls may be nested.
    pub depth: u32,
    /// Stop at the first real operation that makes an infinity or NaN out of finite numbers.
    pub trap_nonfinite: bool,
    /// How many bytes the run may take at once: arrays, what describes them, registers, and the copies in
    /// which results are handed over. The run stops before the first byte beyond.
    pub budget: Budget,
    /// How the sums of reductions and of products of matrices (dot products among them) are computed, in
    /// derivatives, too; naively in the order of [`palinode_core::sums`]. What a program adds up itself, in a
    /// loop, it adds one after the other. Numbers with derivatives are taken apart for that in memory that
    /// the budget does not see; plain numbers are not.
    pub accumulator: Accumulator,
}

impl Default for Limits {
    /// A thousand million steps, ten thousand nested calls, infinities and NaN as IEEE 754 has them, all the
    /// memory there is, naive sums.
    fn default() -> Limits {
        Limits {
            steps: 1_000_000_000,
            depth: 10_000,
            trap_nonfinite: false,
            budget: Budget::UNLIMITED,
            accumulator: Accumulator::Naive,
        }
    }
}

/// What a run has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Elements copied because an array was changed while something else still needed the old version.
    pub elements_copied: u64,
    /// Elements copied from the chunks of a log into one buffer, for an operation that needs one.
    pub elements_flattened: u64,
    /// Elements that whole-array operations made: fills, slices, elementwise results and so on. Updates of
    /// single elements and of slices do not count.
    pub elements_filled: u64,
    /// Those among them that are zeros by themselves: `zeros`, and what a `resize` appends.
    pub elements_zeroed: u64,
    /// Elements of arrays that were added to elements of arrays: whole arrays and slices, not single
    /// elements.
    pub elements_added: u64,
    /// Rounds of loops and calls.
    pub steps: u64,
    /// Instructions of the interpreter; counted by [`Code::run_recorded`] only.
    pub instructions: u64,
    /// Buffers that were allocated.
    pub allocations: u64,
    /// The most bytes that arrays took at once, inputs and results included.
    pub peak_bytes: usize,
    /// The bytes of the arrays that the run ends with: its results.
    pub result_bytes: usize,
    /// The most bytes that the run took at once in all, which is what a budget is about: arrays and all that
    /// is needed besides them.
    pub heap_bytes: usize,
    /// Whether a [`Machine`] did it. It counts steps and bytes, and nothing else.
    pub by_machine: bool,
}

/// A program ready to run, by the interpreter: [`Code::new`].
pub fn code(program: &Program) -> Code {
    Code::new(program)
}

/// What a run gives, and what it took.
type Done<R> = (Vec<Datum<R>>, Stats);

/// A program ready to run, any number of times and on any number type.
///
/// ```
/// use palinode_core::Dual;
/// use palinode_ir::interp::{Code, Datum, Limits};
/// use palinode_ir::{FunctionBuilder, Type};
///
/// let mut b = FunctionBuilder::new("cube");
/// let x = b.param("x", Type::REAL);
/// let square = b.mul(x, x);
/// let cube = b.mul(square, x);
/// let code = Code::new(&b.finish_program(&[cube], &["y"]).unwrap());
///
/// let y = code.run(&[Datum::real(2.0)], &Limits::default()).unwrap();
/// assert_eq!(y[0].as_real(), Some(8.0));
/// let y = code.run(&[Datum::real(Dual::new(2.0, 1.0))], &Limits::default()).unwrap();
/// assert_eq!(y[0].as_real().unwrap().tangent, 12.0);
/// ```
#[derive(Clone, Debug)]
pub struct Code {
    functions: Arc<[code::FunctionCode]>,
    entry: usize,
    machine: Option<Arc<dyn Machine>>,
}

impl Code {
    /// Compiles a program, which must have passed [`crate::verify`](crate::verify()).
    pub fn new(program: &Program) -> Code {
        Code::marked(program, liveness::mark)
    }

    /// Compiles a program so that nothing is updated in place and nothing is released early: every update
    /// copies its array. Slow, large, and the reference: it gives the same bits as [`Code::new`].
    pub fn always_copying(program: &Program) -> Code {
        Code::marked(program, liveness::mark_nothing)
    }

    /// Compiles a program with other marks of last uses, so that a test can plant bugs into them.
    #[doc(hidden)]
    pub fn marked(program: &Program, mark: fn(&Function) -> BlockMarks) -> Code {
        let functions = compile::compile(program, mark).into();
        Code { functions, entry: program.entry.index(), machine: None }
    }

    /// Compiles a program so that [`Code::run`] and [`Code::run_with_stats`] on `f64` are done by a machine
    /// of this engine, where it has one.
    pub fn on(engine: &Engine, program: &Program) -> Code {
        Code { machine: engine.machine(program), ..Code::new(program) }
    }

    /// Makes a machine ready for inputs like these, and says who will run them.
    pub fn prepare(&self, inputs: &[Datum<f64>], limits: &Limits) -> Chosen {
        match (&self.machine, machine::plain(inputs)) {
            (Some(machine), Some(plain)) if self.fits(inputs) => {
                // Nobody is to see the comparisons of a trial.
                decision::or_forgotten(|| {
                    let _ = self.trial(&**machine, &plain, inputs, limits);
                    None::<()>
                });
                machine.prepare(&plain, limits)
            }
            _ => Chosen::Interpreter,
        }
    }

    /// What a trial run gives, if there is to be one and it comes to its end.
    fn trial<R: Real>(
        &self,
        machine: &dyn Machine,
        plain: &[&Datum<f64>],
        inputs: &[Datum<R>],
        limits: &Limits,
    ) -> Option<Result<Done<R>, RunError>> {
        let steps = machine.trial(plain, limits)?;
        let short = Limits { steps: limits.steps.min(steps), ..*limits };
        let ran = decision::or_forgotten(|| match self.interpreted(inputs, &short) {
            Err(error)
                if error.kind == (RunErrorKind::StepLimit { limit: steps }) && steps < limits.steps =>
            {
                None
            }
            done => Some(done),
        });
        let taken = ran.as_ref().map(|ran| ran.as_ref().map_or(0, |(_, stats)| stats.steps));
        machine.tried(plain, limits, taken);
        ran
    }

    fn interpreted<R: Real>(&self, inputs: &[Datum<R>], limits: &Limits) -> Result<Done<R>, RunError> {
        self.follow::<R, false>(inputs, limits, Record::Nothing, &mut run::Nobody)
            .map(|(outputs, stats, _)| (outputs, stats))
    }

    /// Whether inputs are what the program takes; if not, the interpreter says why.
    fn fits<R>(&self, inputs: &[Datum<R>]) -> bool {
        let main = &self.functions[self.entry];
        check_inputs(&main.param_types, &|index| main.param_names[index].clone(), inputs).is_ok()
    }

    /// What a machine gives, if there is one that does it, or the trial of one.
    fn by_machine<R: Real>(&self, inputs: &[Datum<R>], limits: &Limits) -> Option<Result<Done<R>, RunError>> {
        let machine = self.machine.as_ref()?;
        let plain = machine::plain(inputs)?;
        if !self.fits(inputs) {
            return None;
        }
        if let Some(done) = self.trial(&**machine, &plain, inputs, limits) {
            return Some(done);
        }
        let ran = decision::or_forgotten(|| machine.run(&plain, limits));
        ran.map(|(outputs, stats)| Ok((machine::same(outputs), stats)))
    }

    /// Runs it.
    ///
    /// # Errors
    /// Inputs that do not fit, what the program does wrong, or a limit.
    pub fn run<R: Real>(&self, inputs: &[Datum<R>], limits: &Limits) -> Result<Vec<Datum<R>>, RunError> {
        match self.by_machine(inputs, limits) {
            Some(ran) => ran.map(|(outputs, _)| outputs),
            None => self.run_observed(inputs, limits, &mut |_| {}),
        }
    }

    /// Every way to run it.
    fn follow<R: Real, const RECORDED: bool>(
        &self,
        inputs: &[Datum<R>],
        limits: &Limits,
        record: Record,
        observer: &mut dyn run::Observer,
    ) -> Result<run::Ran<R>, RunError> {
        run::run::<R, RECORDED>(&self.functions, self.entry, inputs, limits, record, observer)
    }

    /// Runs it and calls `observer` with the number of steps so far, every 65536 of them.
    ///
    /// # Errors
    /// As [`Code::run`].
    pub fn run_observed<R: Real>(
        &self,
        inputs: &[Datum<R>],
        limits: &Limits,
        observer: &mut dyn FnMut(u64),
    ) -> Result<Vec<Datum<R>>, RunError> {
        self.follow::<R, false>(inputs, limits, Record::Nothing, &mut run::Steps(observer))
            .map(|(outputs, ..)| outputs)
    }

    /// Runs it and calls `observer` with every round that a sweep has reversed, last rounds first.
    ///
    /// # Errors
    /// As [`Code::run`].
    pub fn run_watched<R: Real>(
        &self,
        inputs: &[Datum<R>],
        limits: &Limits,
        observer: &mut dyn FnMut(&RoundBack),
    ) -> Result<(Vec<Datum<R>>, Stats), RunError> {
        self.follow::<R, false>(inputs, limits, Record::Nothing, &mut run::RoundsBack(observer))
            .map(|(outputs, stats, _)| (outputs, stats))
    }

    /// Runs it and counts what it costs.
    ///
    /// # Errors
    /// As [`Code::run`].
    pub fn run_with_stats<R: Real>(
        &self,
        inputs: &[Datum<R>],
        limits: &Limits,
    ) -> Result<(Vec<Datum<R>>, Stats), RunError> {
        self.by_machine(inputs, limits).unwrap_or_else(|| self.interpreted(inputs, limits))
    }

    /// Runs it, counts what it costs, and writes down everything that its memory depends on: how often loops
    /// went round, which way branches went, how long new arrays were. Slower, and an event takes 16 bytes.
    ///
    /// # Errors
    /// As [`Code::run`].
    #[allow(clippy::type_complexity)] // what `run_with_stats` gives, and the events
    pub fn run_recorded<R: Real>(
        &self,
        inputs: &[Datum<R>],
        limits: &Limits,
    ) -> Result<(Vec<Datum<R>>, Stats, Vec<Event>), RunError> {
        let record = Record::Events(Vec::new());
        let ran = self.follow::<R, true>(inputs, limits, record, &mut run::Nobody)?;
        let (outputs, stats, Record::Events(events)) = ran else { unreachable!("events were asked for") };
        Ok((outputs, stats, events))
    }

    /// Runs it and counts how often each `while` of the function that is run went round: the fewest and the
    /// most rounds, by the place of the loop. What it counts with is within the budget, too.
    ///
    /// # Errors
    /// As [`Code::run`].
    pub fn count_rounds<R: Real>(
        &self,
        inputs: &[Datum<R>],
        limits: &Limits,
    ) -> Result<(Vec<Rounds>, Stats), RunError> {
        let is_decision = |ins: &&code::Ins| matches!(ins, code::Ins::JumpIfNot { .. });
        let decisions: usize =
            self.functions.iter().map(|function| function.code.iter().filter(is_decision).count()).sum();
        let counted = FastMap::with_capacity_and_hasher(decisions, Default::default());
        let besides = COUNTED * decisions;
        let budget = limits.budget.checked_sub(besides).unwrap_or(Budget::from(0));
        let (limits, record) = (Limits { budget, ..*limits }, Record::Rounds(Box::new(counted)));
        let ran = self.follow::<R, true>(inputs, &limits, record, &mut run::Nobody)?;
        let (_, stats, Record::Rounds(counted)) = ran else { unreachable!("rounds were asked for") };
        let mut rounds: Vec<Rounds> = Vec::new();
        for &(at, span) in &self.functions[self.entry].whiles {
            // Where the run did not come, any number is right.
            let counted = counted.get(&(self.entry, at)).map(|counted| (counted.least, counted.most));
            let (least, most) = counted.unwrap_or((0, 0));
            let of_loop = Rounds { span, least, most };
            // A function that was inlined at several places has its loops in each.
            match rounds.iter_mut().find(|other| other.span == span) {
                Some(other) => {
                    (other.least, other.most) =
                        (other.least.min(of_loop.least), other.most.max(of_loop.most));
                }
                None => rounds.push(of_loop),
            }
        }
        Ok((rounds, Stats { heap_bytes: stats.heap_bytes + besides, ..stats }))
    }

    /// Whether it looks for fixed points or roots: on the way there, numbers that are not finite are no
    /// reason to stop.
    pub fn searches(&self) -> bool {
        let mut sites = self.functions.iter().flat_map(|function| &function.generals);
        sites.any(|site| matches!(site.op, crate::op::Op::Settled(_)))
    }
}

/// How often a `while` went round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// The loop.
    pub span: Span,
    /// The fewest rounds.
    pub least: u64,
    /// The most.
    pub most: u64,
}

// Code is run by several threads at once.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Code>();
};

/// The nearest real of an integer, as a run converts it.
#[doc(hidden)]
pub fn real_of(n: i64) -> f64 {
    value::from_int(n)
}

/// Reduces the middle one of three axes of elements that lie one after another, as a run does.
///
/// # Panics
/// If there are not as many elements or results, or nothing of which something is largest or smallest.
#[doc(hidden)]
pub fn reduce_axis(kind: Reduction, data: &[f64], lengths: [usize; 3], results: &mut [f64]) {
    let [outer, length, inner] = lengths;
    assert_eq!(data.len(), outer * length * inner, "as many elements as the lengths say");
    assert_eq!(results.len(), outer * inner, "as many results as the lengths say");
    assert!(length > 0 || kind == Reduction::Sum, "there is a largest and a smallest of something only");
    if !results.is_empty() {
        reduce::along(kind, data, lengths, Accumulator::Naive, results);
    }
}

/// Compiles a program and runs it once, with the default limits.
///
/// # Errors
/// As [`Code::run`].
pub fn run<R: Real>(program: &Program, inputs: &[Datum<R>]) -> Result<Vec<Datum<R>>, RunError> {
    Code::new(program).run(inputs, &Limits::default())
}
