//! Why a program is not a step, or values do not fit it.

use palinode_ir::Type;
use thiserror::Error;

/// A mistake in a program that is to be a step, or in what is given to it. Every code has a page in
/// `docs/book/errors`.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProgramStepError {
    /// The source does not compile.
    #[error(
        "PAL0530: the source of the step does not compile; correct what the compiler names:\n{diagnostics}"
    )]
    Source {
        /// Everything that the compiler found, as text.
        diagnostics: String,
    },
    /// The program was built by hand and is not valid, or has no derivative.
    #[error("PAL0530: the program cannot be a step: {reason}")]
    Program {
        /// What is wrong, with a code of its own.
        reason: String,
    },
    /// No argument has a next value.
    #[error(
        "PAL0531: the program has no state: none of its outputs is the next value of an argument; name the output `next_x` for an argument `x`"
    )]
    NoState,
    /// An output that is not the next value of an argument.
    #[error(
        "PAL0531: the output `{output}` is not the next value of an argument, and a step may only output its next state; name it `next_x` for \
         an argument `x`, or leave it out"
    )]
    NotAState {
        /// Its name.
        output: String,
    },
    /// Two outputs are the next value of the same argument.
    #[error(
        "PAL0531: the outputs `{first}` and `{second}` are both the next value of `{state}`; leave one out"
    )]
    TwoNextValues {
        /// The argument.
        state: String,
        /// One output.
        first: String,
        /// The other.
        second: String,
    },
    /// An argument that cannot be told apart, or that does not exist.
    #[error("PAL0531: {reason}")]
    Arguments {
        /// What is wrong and what to do.
        reason: String,
    },
    /// The next value of an argument has another type than the argument.
    #[error(
        "PAL0532: `{state}` is {before} before the step and {after} after it; a state keeps its kind and its number of axes"
    )]
    StateType {
        /// The argument.
        state: String,
        /// Its type.
        before: Type,
        /// The type of its next value.
        after: Type,
    },
    /// A value was given that the program does not take there.
    #[error("PAL0533: `{name}` is not {a_group} of the program; it has {}", list(names))]
    UnknownName {
        /// What was given.
        name: String,
        /// "a state", "a parameter" or "an input".
        a_group: &'static str,
        /// What there is.
        names: Vec<String>,
    },
    /// A value is missing and has no default.
    #[error("PAL0533: `{name}` has no default and no value; pass one")]
    Missing {
        /// Its name.
        name: String,
    },
    /// A value does not fit its declaration.
    #[error("PAL0533: `{name}` {reason}")]
    Misfit {
        /// Its name.
        name: String,
        /// What is wrong, and what it must be.
        reason: String,
    },
}

impl ProgramStepError {
    /// The code, such as `PAL0531`; `docs/book/errors/PAL0531.md` explains it.
    pub fn code(&self) -> &'static str {
        match self {
            ProgramStepError::Source { .. } | ProgramStepError::Program { .. } => "PAL0530",
            ProgramStepError::NoState
            | ProgramStepError::NotAState { .. }
            | ProgramStepError::TwoNextValues { .. }
            | ProgramStepError::Arguments { .. } => "PAL0531",
            ProgramStepError::StateType { .. } => "PAL0532",
            ProgramStepError::UnknownName { .. }
            | ProgramStepError::Missing { .. }
            | ProgramStepError::Misfit { .. } => "PAL0533",
        }
    }
}

/// "`x`, `y`", or "none".
fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_string();
    }
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
