//! Machine code for programs.
//!
//! Input: a [`LoopForm`](palinode_ir::loops::LoopForm). Output: [`Native`], which runs it on `f64`.
//! Where the form stops (an index outside, an infinity, a suspicious comparison), the run gives
//! [`Stopped`], and the interpreter runs the program again: it says what happened and where.
//!
//! | file | does |
//! |---|---|
//! | `engine` | decides who runs a program, and keeps what was compiled |
//! | `codegen` | loop form -> machine code, by Cranelift |
//! | `arithmetic`, `control` | its parts for numbers, and for loops and branches |
//! | `vector` | loops over elements, two at a time |
//! | `rustc` | loop form -> Rust -> a library that is kept and loaded |
//! | `runtime` | what machine code calls: functions, kernels, memory that grows |
//! | `machine` | the workspace, and the call of the machine code |
//!
//! Invariants: the results have the bits that the interpreter computes. Machine code reads and writes only
//! inside of its buffers: the loop form's verifier holds every index to that.
//!
//! Absent: source text, files, the terminal.

mod arithmetic;
mod codegen;
mod control;
mod engine;
mod machine;
mod runtime;
mod rustc;
mod vector;

pub use codegen::Refused;
pub use engine::{When, by_rustc, code, machine_code};
pub use machine::{Native, Stopped};
