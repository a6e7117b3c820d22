//! Source text -> tokens with their places.
//!
//! Newlines and comments are tokens: the parser drops those inside brackets, the formatter keeps all. A
//! character that means nothing is reported and skipped, so one slip does not hide the others.

use crate::diagnostic::Diagnostic;
use crate::types::Span;

/// What a token is; its text is in the source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A name or a keyword.
    Word,
    Int(i64),
    Real(f64),
    /// A number with a word right after it: `64KiB` after the word `budget`, a mistake elsewhere.
    Glued {
        /// The length of the number.
        digits: u32,
    },
    /// An operator or a bracket, by its text.
    Mark(&'static str),
    Newline,
    Comment,
    End,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

/// Longest first, so that the first that fits is the right one.
const MARKS: &[&str] = &[
    "..", "**", ":=", "+=", "-=", "*=", "/=", "==", "!=", "<=", ">=", "//", "->", "&&", "||", "+", "-", "*",
    "/", "%", "^", "@", "<", ">", "=", "(", ")", "[", "]", "{", "}", ",", ":", ";", "'", "?", "!", "·",
];

pub(crate) fn tokens(source: &str, problems: &mut Vec<Diagnostic>) -> Vec<Token> {
    let mut lexer = Lexer { source, at: 0, tokens: Vec::new(), problems };
    while lexer.at < source.len() {
        lexer.next();
    }
    lexer.push(Kind::End, source.len());
    lexer.tokens
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    tokens: Vec<Token>,
    problems: &'a mut Vec<Diagnostic>,
}

fn starts_word(c: char) -> bool {
    c.is_alphabetic() || c == '_' || c == '°'
}

fn continues_word(c: char) -> bool {
    // Subscripts may be part of a name, superscripts are not: `x²` is a power.
    c.is_alphabetic() || c.is_ascii_digit() || c == '_' || ('₀'..='₉').contains(&c)
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.source[self.at..]
    }

    fn push(&mut self, kind: Kind, end: usize) {
        self.tokens.push(Token { kind, span: Span::new(self.at, end) });
        self.at = end;
    }

    fn next(&mut self) {
        let rest = self.rest();
        let first = rest.chars().next().expect("not at the end");
        let digit_after_point = rest.starts_with('.') && rest[1..].starts_with(|c: char| c.is_ascii_digit());
        if first == '\n' {
            self.push(Kind::Newline, self.at + 1);
        } else if first.is_whitespace() || first == '\u{feff}' {
            self.at += first.len_utf8();
        } else if first == '#' {
            let end = rest.find('\n').unwrap_or(rest.len());
            self.push(Kind::Comment, self.at + end);
        } else if first.is_ascii_digit() || digit_after_point {
            self.number();
        } else if starts_word(first) {
            let end = rest.char_indices().find(|&(at, c)| at > 0 && !continues_word(c));
            let end = end.map_or(rest.len(), |(at, _)| at);
            self.push(Kind::Word, self.at + end);
        } else if let Some(mark) = MARKS.iter().find(|mark| rest.starts_with(**mark)) {
            self.push(Kind::Mark(mark), self.at + mark.len());
        } else {
            self.stray(first);
        }
    }

    /// Reports a run of characters that mean nothing once; where it is plain what was meant, goes on with
    /// that.
    fn stray(&mut self, first: char) {
        let rest = self.rest();
        let mut end = rest.find(|c: char| c != first).unwrap_or(rest.len());
        if first == '"' {
            let line = rest.find('\n').unwrap_or(rest.len());
            end = rest[1..line].find('"').map_or(line, |at| at + 2);
        }
        let span = Span::new(self.at, self.at + end);
        let mut problem =
            Diagnostic::error("PAL0201", span, format!("`{}` means nothing here", first.escape_debug()));
        problem.help = match first {
            '×' | '⋅' | '∗' => Some("multiply with `*`".into()),
            '−' | '–' => Some("subtract with `-`".into()),
            '÷' => Some("divide with `/`".into()),
            '²' => Some("write `^2`".into()),
            '³' => Some("write `^3`".into()),
            '"' => Some("the language has no strings; a comment starts with `#`".into()),
            '|' => Some("the size of a number is `abs(x)`, of a vector `norm(x)`".into()),
            '.' => Some("functions are called `sum(a)`, not `a.sum()`".into()),
            '$' | '&' | '~' | '`' | '\\' => Some("remove it".into()),
            _ => None,
        };
        self.problems.push(problem);
        match first {
            '×' | '⋅' | '∗' => self.push(Kind::Mark("*"), self.at + end),
            '−' | '–' => self.push(Kind::Mark("-"), self.at + end),
            '÷' => self.push(Kind::Mark("/"), self.at + end),
            '"' => self.push(Kind::Int(0), self.at + end),
            _ => self.at += end,
        }
    }

    fn number(&mut self) {
        let bytes = self.source.as_bytes();
        let digits = |mut at: usize| {
            while at < bytes.len() && (bytes[at].is_ascii_digit() || bytes[at] == b'_') {
                at += 1;
            }
            at
        };
        let is = |at: usize, test: fn(u8) -> bool| bytes.get(at).copied().is_some_and(test);
        let mut end = digits(self.at);
        let mut whole = true;
        // `0..n` is a range; `1.5` and `1.` are numbers.
        if is(end, |b| b == b'.') && !is(end + 1, |b| b == b'.') {
            whole = false;
            end = digits(end + 1);
        }
        if is(end, |b| matches!(b, b'e' | b'E')) {
            let sign = usize::from(is(end + 1, |b| matches!(b, b'+' | b'-')));
            if is(end + 1 + sign, |b| b.is_ascii_digit()) {
                whole = false;
                end = digits(end + 1 + sign);
            }
        }
        let span = Span::new(self.at, end);
        let text: String = self.source[self.at..end].chars().filter(|&c| c != '_').collect();
        let word = self.source[end..].find(|c| !continues_word(c)).unwrap_or(self.source.len() - end);
        if word > 0 {
            let digits = (end - self.at) as u32;
            self.push(Kind::Glued { digits }, end + word);
            return;
        }
        let kind = if whole {
            text.parse().map(Kind::Int).unwrap_or_else(|_| {
                let help = "write it as a real number, for example `1e20`";
                let message = "an integer is at most 9223372036854775807";
                self.problems.push(Diagnostic::error("PAL0201", span, message).help(help));
                Kind::Int(0)
            })
        } else {
            let value: f64 = text.parse().unwrap_or(f64::INFINITY);
            if value.is_infinite() {
                let message = "the number is too large: the largest is about 1.8e308";
                self.problems.push(Diagnostic::error("PAL0201", span, message));
            }
            Kind::Real(value)
        };
        self.push(kind, end);
    }
}
