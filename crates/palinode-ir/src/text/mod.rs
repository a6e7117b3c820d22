//! The text form of a program.

mod print;

pub use print::print;
