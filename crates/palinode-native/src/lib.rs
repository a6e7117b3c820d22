//! Machine code for programs.
//!
//! Input: a [`LoopForm`](palinode_ir::loops::LoopForm). Output: [`Native`], which runs it on `f64`.
//! Where the form stops (an index outside, an infinity), the run gives [`Stopped`], and the interpreter runs
//! the program again: it says what happened and where.
//!
//! | file | does |
//! |---|---|
//! | `engine` | decides who runs a program, and keeps what was compiled |
//! | `compile` | loop form -> machine code, by Cranelift |
//! | `codegen` | statements -> Cranelift's instructions |
//! | `arithmetic`, `control`, `kernels`, `addresses` | its parts for numbers, for loops and branches, for calls, and for places |
//! | `outline` | loops over elements as functions of their own |
//! | `whole` | what a program's functions have in common |
//! | `vector` | loops over elements, in pairs |
//! | `rustc` | loop form -> Rust -> a library that is kept and loaded |
//! | `runtime` | what machine code calls: functions, kernels, memory that grows |
//! | `worth` | whether rustc is worth its price |
//! | `machine` | the workspace, and the call of the machine code |
//!
//! Invariants: the results have the bits that the interpreter computes. Machine code reads and writes only
//! inside of its buffers: the loop form's verifier holds every index to that.
//!
//! Absent: source text, files, the terminal.

mod addresses;
mod arithmetic;
mod codegen;
mod compile;
mod control;
mod engine;
mod kernels;
mod machine;
mod outline;
mod runtime;
mod rustc;
mod vector;
mod whole;
#[doc(hidden)]
pub mod worth;

pub use compile::Refused;
pub use engine::{When, automatic, automatic_in, by_rustc, by_rustc_in, code, machine_code};
pub use machine::{Native, Stopped};
