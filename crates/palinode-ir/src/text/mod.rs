//! The text form of a program: what `palinode ir` shows, what tests are written in.
//!
//! | part | input -> output |
//! |---|---|
//! | [`print()`] | program -> text |
//! | [`parse()`] | text -> verified program, or every mistake with its place |
//!
//! ```text
//! entry fn main(x.0: f64, n.1: int) -> (f64) outputs (y) {
//!   y.5 = for k.2 in n.1 (y.3: f64 = x.0) {
//!     v4 = mul y.3, y.3
//!     yield v4
//!   }
//!   yield y.5
//! }
//! ```
//!
//! A value is `v4`, or `name.4` if the source named it; numbers follow the order of definition. Inside a
//! name, letters, digits, `_` and inner `.` stand for themselves and everything else is written `\{20}` (a
//! code point in hexadecimal). A parser's bonus for text written by hand: any other word is a name too (`y =
//! mul x, x`), and `//` starts a comment.
//!
//! Invariants: `print(parse(print(p))) == print(p)`, whatever the numbers of `p`'s values; spans are not part
//! of the text; neither function panics, also not `print` on a program that is not valid.

mod lex;
mod name;
mod operation;
mod parse;
mod print;

use std::fmt;

pub(crate) use name::{decode, encode, is_plain};
pub use parse::parse;
pub(crate) use print::literal_text;
pub use print::print;

use crate::op::{Literal, Op};

/// The literal that a text is.
pub(crate) fn literal(text: &str) -> Result<Literal, String> {
    let (tokens, errors) = lex::lex(text);
    if let Some(error) = errors.first() {
        return Err(error.message.clone());
    }
    let mut rest = tokens.iter().map(|token| token.kind);
    let literal = operation::literal(&mut || rest.next().unwrap_or(lex::Kind::End))?;
    match rest.next() {
        None | Some(lex::Kind::End) => Ok(literal),
        Some(_) => Err(format!("`{text}` is more than a literal")),
    }
}

/// The operation of a name, if that is all there is to say of it.
pub(crate) fn plain_operation(name: &str) -> Option<Op> {
    let found = operation::operation(name)?;
    matches!(found.form, operation::Form::Plain).then_some(found.op)
}

/// A mistake in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line, from 1; 0 if the mistake belongs to the program as a whole.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// What is wrong; a sentence without a full stop.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            return f.write_str(&self.message);
        }
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseError {}
