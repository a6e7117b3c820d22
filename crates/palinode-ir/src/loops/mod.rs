//! The loop form: programs as loops over buffers, from which machine code and source text are made.
//!
//! Input: a program and the shapes of its inputs. Output: a [`LoopForm`], which `palinode-native` compiles.
//! It computes the same bits as the interpreter; where the interpreter would stop with an error, it stops,
//! too, and does not say why.
//!
//! | file | does |
//! |---|---|
//! | `form` | what a loop form is |
//! | `lower` | program -> loop form |
//! | `passes` | loop form -> a better one |
//! | `verify` | holds a loop form to its invariants |
//! | `one` | a program of one operation, for kernels |
//! | `print` | loop form -> text |
//! | `parse` | text -> loop form |
//! | `cursor` | a line of text, from left to right |
//! | `names` | the words of the text |
//! | `emit` | loop form -> source text in Rust and C |
//! | `pieces` | runs of statements that are compiled as functions of their own |
//! | `scope` | after which statement a register is needed no more |
//! | `sweep` | what a sweep does next |
//! | `traffic` | what loops compute and move |
//! | `work` | about how much work a run is |
//!
//! Absent: machine code, and whatever knows a machine.

mod cursor;
pub mod emit;
mod form;
mod lower;
mod names;
mod one;
mod parse;
mod passes;
mod pieces;
mod print;
mod scope;
mod sweep;
mod traffic;
mod verify;
mod work;

pub use form::{
    Buf, Buffer, Given, Index, Kept, Kind, LoopForm, Matrix, Operand, Origin, Place, Port, Refusal, Reg,
    Role, Stmt, Taken, Way,
};
pub use lower::{lower, lower_plainly};
pub use one::{kernel_types, one_operation};
pub use parse::parse;
pub use passes::{PASSES, improve};
pub use pieces::{Around, Piece, Pieces};
pub use scope::{Lasts, given_to};
pub use sweep::{Sweep, SweepStep};
pub use traffic::{LoopTraffic, Traffic};
pub use verify::{Unproven, verify};
