//! What cannot be read: what is reported, and where reading goes on.

use super::ast::Name;
use super::lexer::{Kind, Token};
use super::parser::{Failed, Parsed, Parser, STATEMENTS};
use crate::diagnostic::Diagnostic;

impl Parser<'_> {
    pub(super) fn describe(&self, token: Token) -> String {
        match token.kind {
            Kind::Newline => "the end of the line".into(),
            Kind::End => "the end of the file".into(),
            _ => format!("`{}`", self.text(token)),
        }
    }

    pub(super) fn unexpected<T>(&mut self, expected: &str, help: Option<&str>) -> Parsed<T> {
        let token = self.peek();
        if let Some(open) = self.unclosed(token) {
            return self.not_closed(open, token);
        }
        let message = format!("expected {expected}, found {}", self.describe(token));
        let mut problem = Diagnostic::error("PAL0202", token.span, message);
        problem.help = help.map(str::to_string);
        self.report(problem);
        Err(Failed)
    }

    pub(super) fn expect(&mut self, mark: &'static str, help: Option<&str>) -> Parsed<Token> {
        if self.is_mark(mark) {
            return Ok(self.advance());
        }
        self.unexpected(&format!("`{mark}`"), help)
    }

    /// The bracket that closes `open`.
    pub(super) fn close(&mut self, mark: &'static str, open: Token) -> Parsed<Token> {
        if self.is_mark(mark) {
            return Ok(self.advance());
        }
        let token = self.peek();
        self.not_closed(open, token)
    }

    fn not_closed<T>(&mut self, open: Token, found: Token) -> Parsed<T> {
        let opened = self.text(open).to_string();
        let mark = match opened.as_str() {
            "(" => ")",
            "[" => "]",
            _ => "}",
        };
        let message = format!("`{opened}` is not closed: expected `{mark}`, found {}", self.describe(found));
        let mut problem = Diagnostic::error("PAL0203", found.span, message).and(open.span, "opened here");
        problem.help = match (opened.as_str(), found.kind) {
            ("[", Kind::Mark(":")) => Some("a part of an array is `a[1..3]`"),
            ("[", Kind::Mark(";")) => Some("the rows of a matrix are lists: `[[1, 2], [3, 4]]`"),
            ("[" | "(", Kind::Int(_) | Kind::Real(_) | Kind::Word) if !self.starts_statement(found) => {
                Some("a comma is missing")
            }
            _ => None,
        }
        .map(str::to_string);
        self.report(problem);
        Err(Failed)
    }

    fn starts_statement(&self, token: Token) -> bool {
        token.kind == Kind::End || (token.kind == Kind::Word && STATEMENTS.contains(&self.text(token)))
    }

    /// The bracket that is still open where a new statement starts or the file ends.
    fn unclosed(&self, token: Token) -> Option<Token> {
        let starts =
            token.kind == Kind::End || (token.kind == Kind::Word && STATEMENTS.contains(&self.text(token)));
        if self.brackets == 0 || !starts {
            return None;
        }
        let mut closed = 0_usize;
        for &before in self.tokens[..self.at].iter().rev() {
            match before.kind {
                Kind::Mark(")" | "]") => closed += 1,
                Kind::Mark("(" | "[") if closed == 0 => return Some(before),
                Kind::Mark("(" | "[") => closed -= 1,
                Kind::Mark("{" | "}") => return None,
                _ => {}
            }
        }
        None
    }

    /// Skips the rest of a line that could not be read. A block on the way is read for its own mistakes.
    pub(super) fn recover(&mut self) {
        self.brackets = 0;
        if self.at > 0 && self.tokens[self.at - 1].kind == Kind::Newline {
            return;
        }
        loop {
            match self.peek().kind {
                Kind::Newline | Kind::End | Kind::Mark("}") => return,
                Kind::Mark("{") => {
                    let _ = self.block();
                }
                _ => self.at += 1,
            }
        }
    }

    /// The names that the broken statement at `start` would have defined.
    pub(super) fn defined_by(&self, start: usize) -> Vec<Name> {
        let word = |at: usize| {
            let token = *self.tokens.get(at)?;
            (token.kind == Kind::Word).then(|| (self.text(token), token.span))
        };
        let Some((keyword, _)) = word(start) else { return Vec::new() };
        if !["param", "input", "const", "let", "var", "alias", "fn", "loss", "output"].contains(&keyword) {
            return Vec::new();
        }
        let mut names = Vec::new();
        let mut at = start + 1;
        while let Some((text, span)) = word(at) {
            names.push(Name { text: text.into(), span });
            match self.tokens.get(at + 1).map(|token| token.kind) {
                Some(Kind::Mark(",")) => at += 2,
                _ => break,
            }
        }
        names
    }
}
