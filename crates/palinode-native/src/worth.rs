//! Whether machine code by rustc is worth its price, by what was measured (ADR 0052).
//!
//! Input: how much work runs are, and how long the program is. Output: what to ask of rustc. Nothing is
//! measured here: the same program is run by the same engine every time.

/// What is asked of rustc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asked {
    /// Nothing: Cranelift's code is good enough.
    Nothing,
    /// A library that an earlier process has left.
    ALibrary,
    /// To compile, if there is none.
    ToCompile,
}

/// So many seconds its code saves for every statement that is executed, about: the models of the benchmarks
/// save 0 to 5 times as much. (Cranelift's code takes 3 to 30 times as long.)
const SAVED: f64 = 1e-11;

/// Asking the compiler what it is, and for what processor it compiles, takes so many seconds: two processes.
const ASKING: f64 = 0.05;

/// Compiling takes so many seconds, whatever it is,
const COMPILING: f64 = 0.1;
/// and so many more for every statement.
const OF_STATEMENT: f64 = 2e-3;

/// What to ask of rustc for runs of so many executed statements altogether, of a program of so many.
pub fn rustc(work: u64, statements: u64) -> Asked {
    let saved = work as f64 * SAVED;
    if saved < ASKING {
        Asked::Nothing
    } else if saved < ASKING + COMPILING + statements as f64 * OF_STATEMENT {
        Asked::ALibrary
    } else {
        Asked::ToCompile
    }
}
