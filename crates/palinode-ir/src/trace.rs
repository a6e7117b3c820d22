//! Generic Rust code -> program, by running it once.
//!
//! Input: a closure over [`Traced`] numbers and a point. Output: a [`Trace`]: the straight-line program of
//! the operations that were done, and a guard for each decision that was taken by a traced value (a
//! comparison, a conversion to a plain number or to text). Running the program at another point checks the
//! guards first and refuses if the code would have gone another way there.
//!
//! Limits: loops are unrolled, because the code ran them; a plain number that was got by [`Real::to_f64`],
//! [`Scalar::peek`] or as text is fixed, and guarded to be the same, the sign of a zero included.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::fmt;
use std::iter::{Product, Sum};
use std::mem::ManuallyDrop;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, RemAssign, Sub, SubAssign};
use std::sync::atomic::{self, AtomicU64};

use palinode_core::rules::Row;
use palinode_core::{Constant, Real, Scalar, functions_by_row};

use crate::builder::FunctionBuilder;
use crate::interp::{Datum, RunError, run};
use crate::op::{Comparison, Literal, Logical, Op, Rule};
use crate::program::{Program, Value};
use crate::transform::{TransformError, results_and_grad};
use crate::types::{Elem, Type};

/// A number that is being traced; see [`trace`].
#[derive(Clone, Copy)]
pub struct Traced {
    value: f64,
    /// `None` for a plain number.
    step: Option<Step>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    scope: u64,
    at: u32,
}

#[derive(Clone, Debug)]
enum Recorded {
    Input(usize),
    Named(Constant),
    Apply(Rule, Vec<Operand>),
}

#[derive(Clone, Copy, Debug)]
enum Operand {
    Step(u32),
    Plain(f64),
}

/// A decision that the code took by traced values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// What was asked, for example `less`.
    pub comparison: &'static str,
    /// The left side when it was traced.
    pub left: f64,
    /// The right side when it was traced.
    pub right: f64,
    /// The answer.
    pub outcome: bool,
}

struct Guard {
    comparison: Comparison,
    left: Operand,
    right: Operand,
    decision: Decision,
}

#[derive(Default)]
struct Recorder {
    steps: Vec<Recorded>,
    guards: Vec<Guard>,
}

thread_local! {
    /// The traces that are being made on this thread, innermost last. There is nothing to drop when a thread
    /// ends, because every trace has been closed by then; so destructors of other thread-locals can still
    /// make traces.
    static OPEN: RefCell<ManuallyDrop<Vec<(u64, Recorder)>>> =
        const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

/// The number of the next trace, on whatever thread: a number of one is never taken for that of another.
static SCOPES: AtomicU64 = AtomicU64::new(0);

/// A program that was made by running code, with what it decided.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Takes an array of inputs; gives each output, then the number of the first decision that would differ
    /// (or -1).
    pub program: Program,
    /// The decisions, in order.
    pub decisions: Vec<Decision>,
    inputs: usize,
    outputs: usize,
}

/// Why a trace cannot be run at a point.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The code would take another way.
    #[error(
        "PAL0280: decision number {number} of the traced code ({decision}) comes out differently for these inputs; trace again there"
    )]
    OtherWay {
        /// Which decision, from 0.
        number: usize,
        /// What it was.
        decision: Decision,
    },
    /// Too few or too many inputs.
    #[error(
        "PAL0101: the point has length {found}, not {expected}; pass {expected} numbers, as when it was traced"
    )]
    Length {
        /// How many the code was traced with.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// The program cannot be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The program cannot be differentiated.
    #[error(transparent)]
    Transform(#[from] TransformError),
}

impl TraceError {
    /// The code under which the book explains it.
    pub fn code(&self) -> &'static str {
        match self {
            TraceError::OtherWay { .. } => "PAL0280",
            TraceError::Length { .. } => "PAL0101",
            TraceError::Run(error) => error.code(),
            TraceError::Transform(error) => error.code(),
        }
    }
}

impl fmt::Display for Decision {
    /// `1 < 2 was true`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let symbol = match self.comparison {
            "less" => "<",
            "less_eq" => "<=",
            _ => "==",
        };
        write!(f, "{} {symbol} {} was {}", self.left, self.right, self.outcome)
    }
}

/// Runs `f` at `point` and keeps what it does as a program.
///
/// ```
/// use palinode_ir::{Program, Real};
///
/// fn f<S: Real>(x: &[S]) -> S {
///     if x[0] > x[1] { x[0] * x[1] } else { x[0].sin() }
/// }
/// let trace = Program::trace(|x| vec![f(x)], &[3.0, 2.0]);
/// assert_eq!(trace.run(&[5.0, 4.0]).unwrap(), [20.0]);
/// assert!(trace.run(&[1.0, 4.0]).is_err()); // that would be the other branch
/// ```
pub fn trace(f: impl FnOnce(&[Traced]) -> Vec<Traced>, point: &[f64]) -> Trace {
    let scope = SCOPES.fetch_add(1, atomic::Ordering::Relaxed);
    OPEN.with_borrow_mut(|open| open.push((scope, Recorder::default())));
    /// Closes the scope also if the code panics.
    struct Close;
    impl Drop for Close {
        fn drop(&mut self) {
            OPEN.with_borrow_mut(|open| {
                open.pop();
                if open.is_empty() {
                    drop(core::mem::take(&mut **open));
                }
            });
        }
    }
    let close = Close;
    let inputs: Vec<Traced> =
        point.iter().enumerate().map(|(at, &value)| record(scope, Recorded::Input(at), value)).collect();
    let outputs = f(&inputs);
    let outputs: Vec<Operand> = outputs.iter().map(|output| output.operand(scope)).collect();
    let recorder = OPEN.with_borrow_mut(|open| core::mem::take(&mut open.last_mut().expect("it is open").1));
    drop(close);
    write(recorder, &outputs, point.len())
}

impl Program {
    /// Runs `f` at `point` and keeps what it does as a program: see [`trace`](fn@trace).
    pub fn trace(f: impl FnOnce(&[Traced]) -> Vec<Traced>, point: &[f64]) -> Trace {
        trace(f, point)
    }
}

impl Trace {
    /// The outputs at another point.
    ///
    /// # Errors
    /// If the code would take another way there, or the point has another length.
    pub fn run(&self, point: &[f64]) -> Result<Vec<f64>, TraceError> {
        let outputs = self.guarded(&self.program, point)?;
        Ok(outputs[..self.outputs].iter().filter_map(Datum::as_real).collect())
    }

    /// The first output and its gradient at another point. `transform::grad` of [`Trace::program`] gives the
    /// gradient without the guard; this refuses to answer where the code would take another way.
    ///
    /// # Errors
    /// If the code would take another way there, the point has another length, or there is no output.
    pub fn value_and_grad(&self, point: &[f64]) -> Result<(f64, Vec<f64>), TraceError> {
        let outputs = self.guarded(&results_and_grad(&self.program, &[0])?, point)?;
        let value = outputs[0].as_real().unwrap_or(f64::NAN);
        let gradient = outputs.last().and_then(Datum::as_vector).unwrap_or_default().to_vec();
        Ok((value, gradient))
    }

    /// Runs a program whose results begin with those of this one, and looks at the guard.
    fn guarded(&self, program: &Program, point: &[f64]) -> Result<Vec<Datum<f64>>, TraceError> {
        if point.len() != self.inputs {
            return Err(TraceError::Length { expected: self.inputs, found: point.len() });
        }
        let outputs = run(program, &[Datum::vector(point.to_vec())])?;
        match outputs[self.outputs].as_int().and_then(|failed| usize::try_from(failed).ok()) {
            Some(number) => Err(TraceError::OtherWay { number, decision: self.decisions[number] }),
            None => Ok(outputs),
        }
    }
}

fn write(recorder: Recorder, outputs: &[Operand], inputs_given: usize) -> Trace {
    let mut b = FunctionBuilder::new("main");
    let inputs = b.param("x", Type::array(Elem::F64, 1));
    let mut values: Vec<Value> = Vec::new();
    let operand = |b: &mut FunctionBuilder, values: &[Value], operand: Operand| match operand {
        Operand::Step(at) => values[at as usize],
        Operand::Plain(value) => b.real(value),
    };
    for step in &recorder.steps {
        let value = match step {
            Recorded::Input(at) => {
                let at = b.int(*at as i64);
                b.index(inputs, &[at])
            }
            Recorded::Named(name) => b.literal(Literal::Named(*name)),
            Recorded::Apply(rule, args) => {
                let args: Vec<Value> = args.iter().map(|&arg| operand(&mut b, &values, arg)).collect();
                b.map(*rule, &args)
            }
        };
        values.push(value);
    }
    let mut results: Vec<Value> = outputs.iter().map(|&output| operand(&mut b, &values, output)).collect();
    // The first decision that differs: looked for from the last one to the first.
    let mut failed = b.int(-1);
    for (number, guard) in recorder.guards.iter().enumerate().rev() {
        let (left, right) = (operand(&mut b, &values, guard.left), operand(&mut b, &values, guard.right));
        let mut differs = b.compare(guard.comparison, left, right);
        if guard.decision.outcome {
            differs = b.emit(Op::Logical(Logical::Not), &[differs]);
        }
        let number = b.int(number as i64);
        failed = b.select(differs, number, failed);
    }
    results.push(failed);
    let names: Vec<String> = (0..outputs.len()).map(|at| format!("y{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).chain(["first_other_decision"]).collect();
    let program = b.finish_program(&results, &names).expect("a trace is a valid program");
    let decisions = recorder.guards.into_iter().map(|guard| guard.decision).collect();
    Trace { program, decisions, inputs: inputs_given, outputs: outputs.len() }
}

/// Runs `f` with the recorder of a trace that is being made on this thread.
fn with_recorder<R>(scope: u64, f: impl FnOnce(&mut Recorder) -> R) -> R {
    OPEN.with_borrow_mut(|open| {
        let recorder = open.iter_mut().find(|(open, _)| *open == scope).map(|(_, recorder)| recorder);
        f(recorder.expect("a traced number is used outside the trace that it belongs to"))
    })
}

fn record(scope: u64, step: Recorded, value: f64) -> Traced {
    with_recorder(scope, |recorder| {
        let at = u32::try_from(recorder.steps.len()).expect("fewer than 2^32 steps");
        recorder.steps.push(step);
        Traced { value, step: Some(Step { scope, at }) }
    })
}

impl Traced {
    fn plain(value: f64) -> Traced {
        Traced { value, step: None }
    }

    fn operand(self, scope: u64) -> Operand {
        match self.step {
            Some(step) if step.scope == scope => Operand::Step(step.at),
            Some(_) => panic!("a traced number is used in a trace that it does not belong to"),
            None => Operand::Plain(self.value),
        }
    }

    fn apply(row: Row, parameter: i32, args: &[Traced]) -> Traced {
        let values: Vec<f64> = args.iter().map(|arg| arg.value).collect();
        let value = row.value(parameter, &values);
        let Some(scope) = args.iter().find_map(|arg| arg.step).map(|step| step.scope) else {
            return Traced::plain(value);
        };
        let args = args.iter().map(|arg| arg.operand(scope)).collect();
        record(scope, Recorded::Apply(Rule { row, parameter }, args), value)
    }

    fn compare(comparison: Comparison, left: Traced, right: Traced) -> bool {
        let outcome = comparison.holds(left.value, right.value);
        if let Some(scope) = left.step.or(right.step).map(|step| step.scope) {
            let decision =
                Decision { comparison: comparison.name(), left: left.value, right: right.value, outcome };
            let guard =
                Guard { comparison, left: left.operand(scope), right: right.operand(scope), decision };
            with_recorder(scope, |recorder| recorder.guards.push(guard));
        }
        outcome
    }

    /// The plain number. What is computed from it cannot follow: it must be the same again.
    fn fixed(self) -> f64 {
        if self.value.is_nan() {
            // NaN is not equal to itself, and nothing else is not.
            Traced::compare(Comparison::Equal, self, self);
            return self.value;
        }
        Traced::compare(Comparison::Equal, self, Traced::plain(self.value));
        if self.value == 0.0 && self.step.is_some() {
            // Zeros of both signs are equal, and as text or under a division they are not the same.
            let sign = Traced::apply(Row::Copysign, 0, &[Traced::plain(1.0), self]);
            Traced::compare(Comparison::Less, sign, Traced::plain(0.0));
        }
        self.value
    }
}

impl fmt::Display for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.fixed(), f)
    }
}

impl fmt::Debug for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Traced").field(&self.fixed()).finish()
    }
}

impl PartialEq for Traced {
    fn eq(&self, other: &Traced) -> bool {
        Traced::compare(Comparison::Equal, *self, *other)
    }
}

impl PartialEq<f64> for Traced {
    fn eq(&self, other: &f64) -> bool {
        *self == Traced::plain(*other)
    }
}

impl PartialOrd for Traced {
    fn partial_cmp(&self, other: &Traced) -> Option<Ordering> {
        if self.lt(other) {
            Some(Ordering::Less)
        } else if other.lt(self) {
            Some(Ordering::Greater)
        } else {
            (self == other).then_some(Ordering::Equal)
        }
    }
    fn lt(&self, other: &Traced) -> bool {
        Traced::compare(Comparison::Less, *self, *other)
    }
    fn le(&self, other: &Traced) -> bool {
        Traced::compare(Comparison::LessEq, *self, *other)
    }
    fn gt(&self, other: &Traced) -> bool {
        other.lt(self)
    }
    fn ge(&self, other: &Traced) -> bool {
        other.le(self)
    }
}

impl PartialOrd<f64> for Traced {
    fn partial_cmp(&self, other: &f64) -> Option<Ordering> {
        self.partial_cmp(&Traced::plain(*other))
    }
    fn lt(&self, other: &f64) -> bool {
        self.lt(&Traced::plain(*other))
    }
    fn le(&self, other: &f64) -> bool {
        self.le(&Traced::plain(*other))
    }
    fn gt(&self, other: &f64) -> bool {
        self.gt(&Traced::plain(*other))
    }
    fn ge(&self, other: &f64) -> bool {
        self.ge(&Traced::plain(*other))
    }
}

macro_rules! operators {
    ($($Trait:ident $method:ident $Assign:ident $assign:ident $row:ident;)*) => {$(
        impl $Trait for Traced {
            type Output = Traced;
            fn $method(self, other: Traced) -> Traced {
                Traced::apply(Row::$row, 0, &[self, other])
            }
        }
        impl $Trait<f64> for Traced {
            type Output = Traced;
            fn $method(self, other: f64) -> Traced {
                Traced::apply(Row::$row, 0, &[self, Traced::plain(other)])
            }
        }
        impl $Trait<Traced> for f64 {
            type Output = Traced;
            fn $method(self, other: Traced) -> Traced {
                Traced::apply(Row::$row, 0, &[Traced::plain(self), other])
            }
        }
        impl $Assign for Traced {
            fn $assign(&mut self, other: Traced) {
                *self = (*self).$method(other);
            }
        }
        impl $Assign<f64> for Traced {
            fn $assign(&mut self, other: f64) {
                *self = (*self).$method(other);
            }
        }
    )*};
}
operators! {
    Add add AddAssign add_assign Add;
    Sub sub SubAssign sub_assign Subtract;
    Mul mul MulAssign mul_assign Multiply;
    Div div DivAssign div_assign Divide;
    Rem rem RemAssign rem_assign Remainder;
}

impl Neg for Traced {
    type Output = Traced;
    fn neg(self) -> Traced {
        Traced::apply(Row::Negate, 0, &[self])
    }
}

macro_rules! folds {
    ($($Trait:ident $method:ident $start:literal $op:tt;)*) => {$(
        impl $Trait for Traced {
            fn $method<I: Iterator<Item = Traced>>(items: I) -> Traced {
                items.fold(Traced::plain($start), |total, item| total $op item)
            }
        }
        impl<'a> $Trait<&'a Traced> for Traced {
            fn $method<I: Iterator<Item = &'a Traced>>(items: I) -> Traced {
                items.fold(Traced::plain($start), |total, item| total $op *item)
            }
        }
    )*};
}
folds! { Sum sum 0.0 +; Product product 1.0 *; }

impl Real for Traced {
    fn to_f64(self) -> f64 {
        self.fixed()
    }
    fn is_nan(self) -> bool {
        !Traced::compare(Comparison::Equal, self, self)
    }
    fn is_finite(self) -> bool {
        // In whatever number the program will run: only finite ones leave nothing of themselves.
        #[allow(clippy::eq_op)]
        let nothing = self - self;
        Traced::compare(Comparison::Equal, nothing, Traced::plain(0.0))
    }
}

impl Scalar for Traced {
    type Bool = bool;

    fn from_int(n: i32) -> Self {
        Traced::plain(f64::from(n))
    }
    fn constant(name: Constant) -> Self {
        let value = <f64 as Scalar>::constant(name);
        let scope = OPEN.with_borrow(|open| open.last().map(|(scope, _)| *scope));
        scope.map_or(Traced::plain(value), |scope| record(scope, Recorded::Named(name), value))
    }
    fn from_f64(v: f64) -> Self {
        Traced::plain(v)
    }
    fn peek(self) -> Option<f64> {
        Some(self.fixed())
    }
    fn glance(self) -> Option<f64> {
        Some(self.value)
    }
    fn less(self, other: Self) -> bool {
        self < other
    }
    fn less_eq(self, other: Self) -> bool {
        self <= other
    }
    fn equal(self, other: Self) -> bool {
        self == other
    }
    fn select(condition: bool, if_true: Self, if_false: Self) -> Self {
        if condition { if_true } else { if_false }
    }
    functions_by_row!();
}
