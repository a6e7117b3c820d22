//! Source text -> tokens -> syntax tree.

pub(crate) mod ast;
mod expr;
pub(crate) mod lexer;
mod parser;

pub(crate) use parser::{MAX_RANK, parse};
