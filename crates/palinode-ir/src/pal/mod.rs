//! The `.pal` language: source -> program, with diagnostics.
//!
//! | part | input -> output |
//! |---|---|
//! | [`compile`] | source -> [`Model`], or everything that is wrong with it |
//! | [`format`](format()) | source -> the same source, laid out |
//! | [`functions`] | the names of the language's functions |
//! | [`ssa`](ssa()) | source -> each line with the single assignments it became |
//!
//! The language is described in the book, `docs/book/language.md`. Nothing here reads files or knows the
//! terminal.

mod constant;
mod format;
mod lower;
mod names;
mod spelling;
mod ssa;
mod syntax;
mod units;

pub use format::format;
pub use lower::functions;
pub use ssa::{SsaLine, ssa};
pub use units::Unit;

use crate::diagnostic::Diagnostic;
use crate::program::Program;
use crate::types::{Span, Type};
use std::sync::Arc;

/// A compiled source file.
#[derive(Clone, Debug)]
pub struct Model {
    /// The program: the entry takes the arguments in source order and gives the outputs in source order.
    pub program: Program,
    /// What the entry takes.
    pub arguments: Vec<Argument>,
    /// What the entry gives.
    pub outputs: Vec<Output>,
    /// The loops that have a budget, in source order.
    pub budgets: Vec<LoopBudget>,
    /// What was compiled; spans refer to it.
    pub source: String,
    /// What may not be as it was meant.
    pub warnings: Vec<Diagnostic>,
}

/// A `budget` in the header of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopBudget {
    /// How many bytes the snapshots may take that are kept for the reverse sweep.
    pub bytes: u64,
    /// Where it is written: `budget 64KiB`.
    pub span: Span,
    /// The loop; the instructions of the program that are it have this place.
    pub of: Span,
}

/// What a declaration says about an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// `param`: what is differentiated with respect to.
    Param,
    /// `input`: data.
    Input,
}

/// A `param` or an `input`.
#[derive(Clone, Debug)]
pub struct Argument {
    /// Its name.
    pub name: Arc<str>,
    /// Which of the two.
    pub role: Role,
    /// What the entry takes.
    pub ty: Type,
    /// The value if none is given, in the declared unit, as written.
    pub default: Option<Default>,
    /// The declared unit. Given values and the default are in it; the program computes in SI, so multiply by
    /// [`Unit::scale`] (or use [`Unit::to_si`]) before running.
    pub unit: Option<Unit>,
    /// The length along each axis.
    pub lengths: Vec<LengthSpec>,
    /// The declaration.
    pub span: Span,
}

/// A default.
#[derive(Clone, Debug, PartialEq)]
pub enum Default {
    /// A single number.
    Scalar(f64),
    /// An array: its lengths, and its elements with the last axis fastest.
    Array {
        /// The length along each axis.
        shape: Vec<usize>,
        /// The elements.
        data: Vec<f64>,
    },
}

impl Default {
    /// The lengths; none for a single number.
    pub fn shape(&self) -> &[usize] {
        match self {
            Default::Scalar(_) => &[],
            Default::Array { shape, .. } => shape,
        }
    }

    /// The elements.
    pub fn data(&self) -> &[f64] {
        match self {
            Default::Scalar(value) => core::slice::from_ref(value),
            Default::Array { data, .. } => data,
        }
    }
}

/// What a declaration says about a length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LengthSpec {
    /// It is this.
    Known(usize),
    /// It is the same wherever the name stands. The program takes it from the first array that has it, or
    /// from an `input n: int` of that name; that the others agree is checked when the data arrive.
    Named(Arc<str>),
    /// It is whatever the data say.
    Any,
}

/// A `loss` or an `output`.
#[derive(Clone, Debug)]
pub struct Output {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it was declared by `loss`.
    pub is_loss: bool,
    /// Its type.
    pub ty: Type,
    /// Its unit, where it is known.
    pub unit: Option<Unit>,
    /// The declaration.
    pub span: Span,
}

/// Source -> program.
///
/// ```
/// let model = palinode_ir::pal::compile("
///     param x = 3
///     var y = x
///     for i in 0..2 { y *= y }
///     loss z = y + 1
/// ").unwrap();
/// assert_eq!(&*model.arguments[0].name, "x");
/// assert!(model.outputs[0].is_loss);
///
/// let wrong = palinode_ir::pal::compile("loss z = sni(1) + y").unwrap_err();
/// assert_eq!(wrong.len(), 2); // both mistakes at once
/// ```
///
/// # Errors
/// Everything that is wrong with it, in the order of the source.
pub fn compile(source: &str) -> Result<Model, Vec<Diagnostic>> {
    let mut problems = Vec::new();
    let stmts = syntax::parse(source, &mut problems);
    let lowered = lower::lower(&stmts, false, &mut problems);
    tidy(&mut problems);
    match lowered {
        Some(lower::Lowered { program, arguments, outputs }) => {
            let budgets = names::budgets(&stmts);
            Ok(Model { program, arguments, outputs, budgets, source: source.to_string(), warnings: problems })
        }
        None => Err(problems),
    }
}

/// More than this help nobody.
const MAX_PROBLEMS: usize = 100;

/// In the order of the source, each finding once.
fn tidy(problems: &mut Vec<Diagnostic>) {
    problems.sort_by_key(|problem| (problem.span().start, problem.severity, problem.code));
    problems.dedup_by(|b, a| a.code == b.code && a.span() == b.span());
    // With errors about, a warning may be about what they hide.
    if problems.iter().any(Diagnostic::is_error) {
        problems.retain(Diagnostic::is_error);
        problems.truncate(MAX_PROBLEMS);
    }
}
