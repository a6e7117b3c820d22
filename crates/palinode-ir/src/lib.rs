//! Palinode's programs: pure single assignment with structured loops, and what can be done with them.
//!
//! | part | input -> output |
//! |---|---|
//! | [`FunctionBuilder`], [`ProgramBuilder`] | operations -> program |
//! | [`verify`](verify()) | program -> what is wrong with it |
//! | [`text`] | program <-> text |
//! | [`interp`] | program, inputs -> outputs |
//! | [`trace`](mod@trace) | generic Rust code, run once -> program |
//! | [`transform`] | program -> its derivatives, as programs |
//! | [`passes`] | program -> a simpler one that gives the same |
//! | [`check`] | program, inputs, gradient -> how differences compare with it |
//! | [`loops`] | program, shapes of its inputs -> loops over buffers, for machine code |
//! | [`plan`] | program, shapes of its inputs -> the memory that it will need |
//!
//! Absent from this package: clocks, files, the terminal, machine code.

mod builder;
pub mod check;
mod checked;
mod diagnostic;
mod fast;
mod implicit;
pub mod interp;
#[doc(hidden)]
pub mod liveness;
pub mod loops;
mod named;
mod op;
pub mod pal;
pub mod passes;
pub mod plan;
mod program;
mod schedule;
pub mod text;
pub mod trace;
pub mod transform;
mod types;
pub mod typing;
mod verify;
mod work;

pub use builder::{FunctionBuilder, ProgramBuilder};
pub use diagnostic::{Diagnostic, Place, Severity};
pub use op::{
    Axis, Comparison, Facts, FuncId, IntOp, Keep, Kind, Linalg, Linear, Literal, Logical, Narrow, Op,
    Reduction, Rule, Search,
};
pub use palinode_core::{Real, Scalar};
pub use program::{Block, Function, Inst, Program, Value, ValueInfo, Values};
pub use trace::{Trace, Traced};
pub use types::{Elem, Span, Type};
pub use verify::{Invalid, verify};
