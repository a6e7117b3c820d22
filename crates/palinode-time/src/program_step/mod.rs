//! Steps that are programs: `.pal` source, or a [`Program`] built by hand or traced, as the step of a
//! rollout.
//!
//! Input: a program whose outputs are the next values of some of its arguments. Output: a [`Step`] with a
//! [`StepRule`]: the step runs the program on any number, the rule runs its reverse, which is made once, by
//! `palinode_ir::transform::vjp`.
//!
//! ```text
//! source ──► pal::compile ──► Program ──► signature.rs: what is state, parameter, input
//!                               ├──► Code: Step::step          (tape: the interpreter on recorded numbers)
//!                               └──► vjp ──► Code: StepRule    (.by_rule(): no tape at all)
//! ```
//!
//! Invariants: the rule and the step are made of the same program, so they agree; a state keeps its shape; a
//! run that fails leaves the state as it was and makes the rollout end with PAL0534.
//!
//! Limits: a run of the interpreter allocates its arrays, so a step allocates; what it takes is counted in
//! the budget. Numbers are those that the program computes with: SI units.

mod error;
mod signature;
mod values;

pub use error::ProgramStepError;
pub use values::ProgramValues;

use crate::implicit::number::Number;
use crate::rollout::Rollout;
use crate::step::{Notes, Step, StepRule};
use palinode_core::{Reals, points};
use palinode_ir::interp::{Code, Datum, Limits};
use palinode_ir::{Program, pal, passes, transform, verify};
use signature::{Group, Signature};

/// A step that is a program.
///
/// An argument `x` whose next value is an output (`next_x`, or `x`) is state; a `param` is a parameter; any
/// other `input` enters at each step.
///
/// ```
/// use palinode_time::ProgramStep;
///
/// let step = ProgramStep::from_source("
///     input position = 1
///     input velocity = 0
///     param stiffness = 4
///     param friction = 0.1
///     input dt = 0.001
///     let force = -stiffness * position - friction * velocity
///     output next_velocity = velocity + force * dt
///     output next_position = position + next_velocity * dt
/// ")?;
/// let (start, params) = (step.state(&[])?, step.params(&[])?); // the defaults
/// let run = step.rollout().steps(2000).budget("16KiB").by_rule();
/// let gradient = run.value_and_grad(&start, &params, |state| state.real(0) * state.real(0))?;
/// println!("{} by stiffness", gradient.params.real(0));
/// assert!(gradient.report.peak_bytes <= 16_384);
/// # Ok::<(), palinode_time::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ProgramStep {
    signature: Signature,
    step: Code,
    /// Takes the arguments of the step, then a cotangent for each real result; gives a cotangent for each
    /// real argument.
    reverse: Code,
    /// More registers than either code has.
    registers: usize,
    limits: Limits,
    notes: Notes,
}

impl ProgramStep {
    /// A step written in `.pal`.
    ///
    /// # Errors
    /// If the source does not compile (PAL0530), its outputs are not the next values of arguments (PAL0531),
    /// or change their type (PAL0532).
    pub fn from_source(source: &str) -> Result<ProgramStep, ProgramStepError> {
        let model = pal::compile(source).map_err(|problems| {
            let texts: Vec<String> = problems.iter().map(|problem| problem.plain(source)).collect();
            ProgramStepError::Source { diagnostics: texts.concat() }
        })?;
        ProgramStep::from_model(&model)
    }

    /// A step that is compiled already.
    ///
    /// # Errors
    /// As [`ProgramStep::from_source`].
    pub fn from_model(model: &pal::Model) -> Result<ProgramStep, ProgramStepError> {
        ProgramStep::new(&model.program, Signature::of_model(model)?)
    }

    /// A step that is a program: an argument that an output is the next value of is state, those named here
    /// are parameters, and what is left enters at each step.
    ///
    /// # Errors
    /// If the program is not valid (PAL0530), or as [`ProgramStep::from_source`].
    pub fn from_program(program: &Program, params: &[&str]) -> Result<ProgramStep, ProgramStepError> {
        verify(program).map_err(|invalid| ProgramStepError::Program { reason: invalid.to_string() })?;
        ProgramStep::new(program, Signature::of_program(program, params)?)
    }

    fn new(program: &Program, signature: Signature) -> Result<ProgramStep, ProgramStepError> {
        let real = |(at, argument): (usize, &signature::Argument)| argument.ty.is_real().then_some(at);
        let wrt: Vec<usize> = signature.arguments.iter().enumerate().filter_map(real).collect();
        let mut reverse = transform::vjp(program, &wrt)
            .map_err(|error| ProgramStepError::Program { reason: error.to_string() })?;
        // The rule is asked for cotangents only.
        let results = program.outputs.len();
        let entry = reverse.entry.index();
        reverse.functions[entry].body.results.drain(..results);
        reverse.outputs.drain(..results);
        let reverse = passes::simplify(&reverse);
        let step = passes::simplify(&passes::inline(program));
        let values = |program: &Program| program.functions.iter().map(|f| f.values.len()).sum::<usize>();
        Ok(ProgramStep {
            signature,
            registers: values(&step).max(values(&reverse)),
            step: Code::new(&step),
            reverse: Code::new(&reverse),
            limits: Limits::default(),
            notes: Notes::default(),
        })
    }

    /// When a single run of the program gives up.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The names of the state, in order.
    pub fn state_names(&self) -> Vec<&str> {
        self.names(Group::State)
    }

    /// The names of the parameters, in order.
    pub fn param_names(&self) -> Vec<&str> {
        self.names(Group::Params)
    }

    /// The names of what enters at each step, in order.
    pub fn input_names(&self) -> Vec<&str> {
        self.names(Group::Input)
    }

    fn names(&self, group: Group) -> Vec<&str> {
        self.signature.members(group).map(|argument| &*argument.name).collect()
    }

    /// A state: these values, and the defaults of the source for the rest. Numbers are in SI units.
    ///
    /// # Errors
    /// If a name is unknown, a value is missing or does not fit (PAL0533).
    pub fn state(&self, given: &[(&str, Datum<f64>)]) -> Result<ProgramValues<f64>, ProgramStepError> {
        self.signature.values(Group::State, given)
    }

    /// Parameters: these values, and the defaults of the source for the rest. Numbers are in SI units.
    ///
    /// # Errors
    /// As [`ProgramStep::state`].
    pub fn params(&self, given: &[(&str, Datum<f64>)]) -> Result<ProgramValues<f64>, ProgramStepError> {
        self.signature.values(Group::Params, given)
    }

    /// What enters at a step: these values, and the defaults of the source for the rest. Numbers are in SI
    /// units.
    ///
    /// # Errors
    /// As [`ProgramStep::state`].
    pub fn input(&self, given: &[(&str, Datum<f64>)]) -> Result<ProgramValues<f64>, ProgramStepError> {
        self.signature.values(Group::Input, given)
    }

    /// A rollout of this step, with the defaults of its inputs at every step if they have some. Where they
    /// have none, give them with [`Rollout::input`] or [`Rollout::inputs`].
    pub fn rollout(self) -> Rollout<'static, ProgramStep> {
        let input = self.input(&[]);
        let run = Rollout::new(self);
        match input {
            Ok(input) => run.default_input(input),
            Err(_) => run,
        }
    }

    /// Runs a code and notes what it took and how it failed.
    fn run<S: Number>(&self, code: &Code, arguments: Vec<Datum<S>>) -> Result<Vec<Datum<S>>, String> {
        let (results, stats) =
            code.run_with_stats(&arguments, &self.limits).map_err(|error| error.to_string())?;
        // Results are copied out while the run still holds them.
        let outside = ProgramValues::new(arguments).heap_bytes() + results.capacity() * size_of::<Datum<S>>();
        let registers = 2 * self.registers * size_of::<S>().max(size_of::<Datum<S>>());
        self.notes.took(stats.peak_bytes + stats.result_bytes + outside + registers);
        Ok(results)
    }

    /// Does it, unless something has failed before, and notes a failure.
    fn attempt(&self, run: impl FnOnce() -> Result<(), String>) {
        if !self.notes.has_failed()
            && let Err(reason) = run()
        {
            self.notes.fail(reason);
        }
    }

    fn try_step<S: Number>(
        &self,
        state: &mut ProgramValues<S>,
        params: &ProgramValues<S>,
        input: &ProgramValues<S>,
    ) -> Result<(), String> {
        let results = self.run(&self.step, self.signature.arranged(state, params, input)?)?;
        let of_result = &self.signature.state_of_result;
        for (&position, next) in of_result.iter().zip(&results) {
            let (before, after) = (state[position].shape(), next.shape());
            if before != after {
                let name = self.state_names()[position].to_string();
                return Err(format!(
                    "the shape of `{name}` is {before:?} before the step and {after:?} after it; a state of a program keeps its shape"
                ));
            }
        }
        for (&position, next) in of_result.iter().zip(results) {
            state.data_mut()[position] = next;
        }
        Ok(())
    }

    fn try_reverse<S: Number>(
        &self,
        before: (&ProgramValues<S>, &ProgramValues<S>, &ProgramValues<S>),
        of_state: &mut ProgramValues<S>,
        of_params: &mut ProgramValues<S>,
        of_input: &mut ProgramValues<S>,
    ) -> Result<(), String> {
        let mut arguments = self.signature.arranged(before.0, before.1, before.2)?;
        let seeds = self.signature.state_of_result.iter().map(|&position| &of_state[position]);
        arguments.extend(seeds.filter(|seed| matches!(seed, Datum::Real(_))).cloned());
        // The comparisons of a derivative are conventions at kinks; those of the program are its decisions.
        let cotangents = points::unseen(|| self.run(&self.reverse, arguments))?;
        let real = self.signature.arguments.iter().filter(|argument| argument.ty.is_real());
        for (argument, cotangent) in real.zip(cotangents) {
            match argument.group {
                Group::State => of_state.data_mut()[argument.position] = cotangent,
                Group::Params => add(&mut of_params.data_mut()[argument.position], &cotangent),
                Group::Input => add(&mut of_input.data_mut()[argument.position], &cotangent),
            }
        }
        Ok(())
    }
}

/// Adds reals to reals of the same shape.
fn add<S: Number>(total: &mut Datum<S>, part: &Datum<S>) {
    if let (Datum::Real(total), Datum::Real(part)) = (total, part) {
        total.data.iter_mut().zip(&part.data).for_each(|(total, &part)| *total += part);
    }
}

/// Runs the program. A run that fails leaves the state as it was and is noted; a rollout then ends with
/// PAL0534.
impl Step for ProgramStep {
    type State<S: Number> = ProgramValues<S>;
    type Params<S: Number> = ProgramValues<S>;
    type Input<S: Number> = ProgramValues<S>;

    fn step<S: Number>(
        &self,
        state: &mut ProgramValues<S>,
        params: &ProgramValues<S>,
        input: &ProgramValues<S>,
    ) {
        self.attempt(|| self.try_step(state, params, input));
    }

    fn notes(&self) -> Option<&Notes> {
        Some(&self.notes)
    }
}

/// Runs the reverse of the program.
impl StepRule for ProgramStep {
    fn reverse<S: Number>(
        &self,
        before: &ProgramValues<S>,
        params: &ProgramValues<S>,
        input: &ProgramValues<S>,
        of_state: &mut ProgramValues<S>,
        of_params: &mut ProgramValues<S>,
        of_input: &mut ProgramValues<S>,
    ) {
        self.attempt(|| self.try_reverse((before, params, input), of_state, of_params, of_input));
    }
}
