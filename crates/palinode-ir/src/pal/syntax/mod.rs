//! Source text -> tokens -> syntax tree.

pub(crate) mod ast;
mod declaration;
mod equation;
mod expr;
pub(crate) mod lexer;
mod loops;
mod parser;
mod recover;

pub(crate) use parser::{KEYWORDS, MAX_RANK, parse};
