//! What can go wrong while a program runs: the user's data or program, never our own mistakes.

use std::fmt;
use std::sync::Arc;

use crate::types::{Span, Type};

/// Why a run stopped, and where.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}: {}{kind}", kind.code(), place(function))]
pub struct RunError {
    /// What happened.
    pub kind: RunErrorKind,
    /// The place in the source of the instruction; none for inputs and for programs built by hand.
    pub span: Span,
    /// The function that was running.
    pub function: Arc<str>,
}

fn place(function: &Arc<str>) -> String {
    // The entry needs no mention.
    // Nor does a function that no source has.
    if matches!(&**function, "" | "main") || function.contains('.') {
        String::new()
    } else {
        format!("in `{function}`: ")
    }
}

/// An operation as people write it.
fn spoken(op: &str) -> String {
    match op {
        "iadd" => "the sum".to_string(),
        "isub" => "the difference".to_string(),
        "imul" => "the product".to_string(),
        "idiv" => "the quotient".to_string(),
        "irem" => "the remainder".to_string(),
        "broadcast" => "filling an array".to_string(),
        "reduce_sum" => "`sum`".to_string(),
        "reduce_max" => "`max`".to_string(),
        "reduce_min" => "`min`".to_string(),
        "matmul" | "strong_matmul" => "a matrix product".to_string(),
        "outer" | "strong_outer" => "an outer product".to_string(),
        "inverse" => "`inv`".to_string(),
        "add" => "`+`".to_string(),
        "sub" => "`-`".to_string(),
        "mul" | "strong_mul" => "`*`".to_string(),
        "div" => "`/`".to_string(),
        "push" => "keeping what the reverse needs".to_string(),
        "write" => "a write".to_string(),
        "read" => "a read".to_string(),
        "add_at" => "an update".to_string(),
        "input" => "an input".to_string(),
        op => format!("`{op}`"),
    }
}

/// What shows that a matrix of partials is singular. Zeros stand for one that changes too much within the
/// error of the solution.
fn singular(condition: f64, residual: f64, tolerance: f64) -> String {
    if condition == f64::INFINITY {
        "the matrix of its linear system is singular (condition number inf), or another one within the error of the solution".into()
    } else if residual == 1.0 {
        format!(
            "the matrix of its linear system is singular to working precision (condition number {condition:.1e})"
        )
    } else {
        format!(
            "the matrix of its linear system is nearly singular (condition number {condition:.1e}): a relative residual of {residual:.1e} is left, and {tolerance:.1e} is \
             asked for"
        )
    }
}

fn inputs(count: usize) -> String {
    if count == 1 { "1 input,".to_string() } else { format!("{count} inputs,") }
}

impl RunError {
    /// The code under which the book explains it.
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }
}

/// The lengths of an array, for messages: `[3, 4]`, or `[]` for a scalar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape(pub Vec<usize>);

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl From<&[usize]> for Shape {
    fn from(lengths: &[usize]) -> Shape {
        Shape(lengths.to_vec())
    }
}

/// What can stop a run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RunErrorKind {
    /// Too few or too many inputs.
    #[error(
        "the program takes {} but {given} were passed; pass one for each parameter of its entry function", inputs(*expected)
    )]
    InputCount {
        /// How many the entry takes.
        expected: usize,
        /// How many there were.
        given: usize,
    },
    /// An input of the wrong kind or rank.
    #[error("input {index} (`{name}`) must be {expected}, but it is {given}; convert it before the run")]
    InputType {
        /// Which one, from 0.
        index: usize,
        /// What the program calls it.
        name: Arc<str>,
        /// The type of the parameter.
        expected: Type,
        /// The type of the input.
        given: Type,
    },
    /// An input whose elements do not fill its shape.
    #[error(
        "input {index} has the shape {shape} but {elements} elements; the shape must account for every element"
    )]
    InputData {
        /// Which one, from 0.
        index: usize,
        /// Its lengths.
        shape: Shape,
        /// How many elements it holds.
        elements: usize,
    },
    /// Operands whose lengths do not fit together.
    #[error(
        "{} got the shapes {left} and {right}, which do not fit together; make their lengths agree",
        spoken(op)
    )]
    ShapeMismatch {
        /// The operation.
        op: &'static str,
        /// The lengths of one operand, or what was expected.
        left: Shape,
        /// The lengths of the other.
        right: Shape,
    },
    /// An index outside an array.
    #[error(
        "index {index} is out of range for axis {axis} of length {length}; indices go from 0 to the length minus 1"
    )]
    IndexOutOfRange {
        /// The index.
        index: i64,
        /// Which axis, from 0.
        axis: usize,
        /// How long it is.
        length: usize,
    },
    /// A length below zero.
    #[error(
        "{} got the length {length}, and a length cannot be negative; look at how it was computed",
        spoken(op)
    )]
    NegativeLength {
        /// The operation.
        op: &'static str,
        /// The length.
        length: i64,
    },
    /// A reshape that loses or invents elements.
    #[error("{from} cannot be reshaped to {to}: the number of elements would change; check the lengths")]
    BadReshape {
        /// The lengths before.
        from: Shape,
        /// The lengths after.
        to: Shape,
    },
    /// A range that leaves its axis.
    #[error(
        "{count} elements from {start} with step {step} do not fit into axis {axis} of length {length}; move or shorten the range"
    )]
    RangeOutOfBounds {
        /// The first index.
        start: i64,
        /// How many.
        count: i64,
        /// The distance between them.
        step: i64,
        /// Which axis, from 0.
        axis: usize,
        /// How long it is.
        length: usize,
    },
    /// A write that names an element twice.
    #[error(
        "a write names index {index} of axis {axis} twice; name each element once, or add instead of writing"
    )]
    DuplicateIndex {
        /// The index.
        index: i64,
        /// Which axis, from 0.
        axis: usize,
    },
    /// A result beyond 64 bits.
    #[error(
        "{} of {left} and {right} leaves the range of 64-bit integers; use reals for such large numbers",
        spoken(op)
    )]
    IntegerOverflow {
        /// The operation.
        op: &'static str,
        /// The first operand.
        left: i64,
        /// The second operand.
        right: i64,
    },
    /// A division of integers by zero.
    #[error("{} of {left} by zero; guard it with a comparison (or use a step other than 0)", spoken(op))]
    IntegerDivisionByZero {
        /// The operation.
        op: &'static str,
        /// The dividend.
        left: i64,
    },
    /// A real operation made an infinity or NaN out of finite numbers, and the limits say to stop there.
    #[error(
        "{operation} gives {result}; keep the operands inside the domain, or run without `trap_nonfinite`"
    )]
    NonFinite {
        /// What was computed, such as `division by zero` or `ln of -1`.
        operation: String,
        /// What came out.
        result: f64,
    },
    /// The largest or smallest of nothing.
    #[error("{} over an axis of length 0 has no answer; check the length first", spoken(op))]
    EmptyReduction {
        /// The operation.
        op: &'static str,
    },
    /// A loop is to be gone through backwards within fewer bytes than its first state takes.
    #[error(
        "one snapshot of this loop takes {needed} bytes, and its budget is {budget}; allow at least that many"
    )]
    SnapshotOverBudget {
        /// What is allowed.
        budget: u64,
        /// What is needed.
        needed: u64,
    },
    /// The search for a fixed point or a root used up its rounds.
    #[error(
        "the search by {method} did not converge: after {rounds} rounds the last change is {change:.3e}, above the tolerance of {bound:.3e}; {advice}"
    )]
    NotSettled {
        /// `picard`, `anderson` or `newton`.
        method: &'static str,
        /// How many rounds there were.
        rounds: i64,
        /// The residual, or Newton's step, at the end.
        change: f64,
        /// What it should have become.
        bound: f64,
        /// What to do.
        advice: &'static str,
    },
    /// The search for a fixed point or a root left the finite numbers.
    #[error(
        "the search by {method} diverged: after {rounds} rounds a number is infinite or NaN; start nearer to the solution, keep the \
         unknown inside its domain, or search `by newton`, which shortens its steps"
    )]
    SearchDiverged {
        /// `picard`, `anderson` or `newton`.
        method: &'static str,
        /// How many rounds there were.
        rounds: i64,
    },
    /// The linear system of an implicit derivative has no solution, or none that can be trusted.
    #[error(
        "the solution of this equation has no derivative here: {}; the equation does not determine the solution at this point (a fold, a free \
         direction): add what determines it, or move off that point",
        singular(*condition, *residual, *tolerance)
    )]
    NoDerivative {
        /// Of the scaled matrix of partials; infinite if it is singular.
        condition: f64,
        /// What was reached; 1 if nothing was tried.
        residual: f64,
        /// What is asked for.
        tolerance: f64,
    },
    /// Newton met a matrix that it cannot divide by.
    #[error(
        "Newton's method met a matrix of partials that it cannot invert: {}; start elsewhere, remove redundant \
         equations, or search `by anderson`",
        singular(*condition, *residual, *tolerance)
    )]
    SingularStep {
        /// Of the scaled matrix; infinite if it is singular.
        condition: f64,
        /// What was reached; 1 if nothing was tried.
        residual: f64,
        /// What is asked for.
        tolerance: f64,
    },
    /// A partial derivative of an equation is infinite or NaN at its solution.
    #[error(
        "the equation has no finite derivative at its solution (a partial is {value}): it has a vertical slope there (sqrt at 0, a division by \
         0); write it another way, or move off that point"
    )]
    EquationNotSmooth {
        /// The partial.
        value: f64,
    },
    /// More steps than allowed.
    #[error(
        "stopped after {limit} loop rounds and calls; a loop may be endless, or `Limits::steps` is too low"
    )]
    StepLimit {
        /// The limit.
        limit: u64,
    },
    /// Calls nested deeper than allowed.
    #[error(
        "calls are nested more deeply than {limit}; a recursion may not end, or `Limits::depth` is too low"
    )]
    DepthLimit {
        /// The limit.
        limit: u32,
    },
    /// A matrix without an inverse.
    #[error(
        "{}: the matrix is singular, its rows depend on each other (seen in column {column}); drop one, or add to the diagonal",
        spoken(op)
    )]
    Singular {
        /// The operation.
        op: &'static str,
        /// Where elimination found no pivot, from 0.
        column: usize,
    },
    /// A matrix without a Cholesky factor.
    #[error(
        "{}: the matrix is not positive definite (row {row}); look for NaN, check that it is a covariance, or add to its diagonal",
        spoken(op)
    )]
    NotPositiveDefinite {
        /// The operation.
        op: &'static str,
        /// The first row that fails, from 0.
        row: usize,
    },
    /// A matrix that should be symmetric and is not.
    #[error(
        "{}: the matrix is not symmetric: entry ({row}, {column}) is {value:?}, its mirror image {mirrored:?}; check how it was built, or pass (A + A') / 2",
        spoken(op)
    )]
    NotSymmetric {
        /// The operation.
        op: &'static str,
        /// The row, from 0.
        row: usize,
        /// The column, from 0.
        column: usize,
        /// What is there.
        value: f64,
        /// What is on the other side of the diagonal.
        mirrored: f64,
    },
    /// A real that is no 64-bit integer even after truncation.
    #[error(
        "{value:?} cannot become an integer; check the operation before it, perhaps a division by a small number"
    )]
    NotAnInteger {
        /// The number.
        value: f64,
    },
    /// A matrix of the wrong shape.
    #[error(
        "{} needs {needs}, but got the shape {shape}; transpose it, reshape it or take a part",
        spoken(op)
    )]
    MatrixShape {
        /// The operation.
        op: &'static str,
        /// What it needs, such as `a square matrix`.
        needs: &'static str,
        /// What it got.
        shape: Shape,
    },
    /// An array that does not fit into memory.
    #[error(
        "{} asks for an array of shape {shape}, which does not fit into memory; check the lengths",
        spoken(op)
    )]
    TooLarge {
        /// The operation.
        op: &'static str,
        /// The lengths.
        shape: Shape,
    },
    /// More memory than the budget allows; nothing was allocated.
    #[error(
        "{} needs {needed} bytes, but {live} of the {budget} bytes of the budget are in use; raise it, shorten loops that keep values \
         for the reverse, or work on smaller arrays",
        spoken(op)
    )]
    OverBudget {
        /// The budget.
        budget: usize,
        /// How many bytes arrays took at that moment.
        live: usize,
        /// How many more were asked for.
        needed: usize,
        /// The operation.
        op: &'static str,
    },
    /// Numbers that carry derivatives cannot be kept in fewer bits.
    #[error(
        "{} was given numbers that carry derivatives, which it would lose; run the program that keeps residuals exactly",
        spoken(op)
    )]
    CarriesDerivative {
        /// The operation.
        op: &'static str,
    },
    /// An iteration inside a decomposition did not settle.
    #[error(
        "{} did not converge; check the matrix for infinities and NaN, or scale it if its entries are huge",
        spoken(op)
    )]
    NoConvergence {
        /// The operation.
        op: &'static str,
    },
}

impl RunErrorKind {
    /// The code under which the book explains it.
    pub fn code(&self) -> &'static str {
        match self {
            RunErrorKind::InputCount { .. } => "PAL0250",
            RunErrorKind::InputType { .. } | RunErrorKind::InputData { .. } => "PAL0251",
            RunErrorKind::ShapeMismatch { .. } => "PAL0252",
            RunErrorKind::IndexOutOfRange { .. } => "PAL0253",
            RunErrorKind::NegativeLength { .. } => "PAL0254",
            RunErrorKind::BadReshape { .. } => "PAL0255",
            RunErrorKind::RangeOutOfBounds { .. } => "PAL0256",
            RunErrorKind::DuplicateIndex { .. } => "PAL0257",
            RunErrorKind::IntegerOverflow { .. } => "PAL0258",
            RunErrorKind::IntegerDivisionByZero { .. } => "PAL0259",
            RunErrorKind::NonFinite { .. } => "PAL0260",
            RunErrorKind::EmptyReduction { .. } => "PAL0261",
            RunErrorKind::StepLimit { .. } => "PAL0262",
            RunErrorKind::DepthLimit { .. } => "PAL0263",
            RunErrorKind::Singular { .. } => "PAL0264",
            RunErrorKind::NotPositiveDefinite { .. } => "PAL0265",
            RunErrorKind::NotSymmetric { .. } => "PAL0301",
            RunErrorKind::NotAnInteger { .. } => "PAL0266",
            RunErrorKind::MatrixShape { .. } => "PAL0267",
            RunErrorKind::TooLarge { .. } => "PAL0268",
            RunErrorKind::NoConvergence { .. } => "PAL0269",
            RunErrorKind::OverBudget { .. } => "PAL0275",
            RunErrorKind::SnapshotOverBudget { .. } => "PAL0278",
            RunErrorKind::CarriesDerivative { .. } => "PAL0276",
            RunErrorKind::NotSettled { .. } => "PAL0540",
            RunErrorKind::SearchDiverged { .. } => "PAL0541",
            RunErrorKind::NoDerivative { .. } => "PAL0542",
            RunErrorKind::SingularStep { .. } => "PAL0543",
            RunErrorKind::EquationNotSmooth { .. } => "PAL0546",
        }
    }
}
