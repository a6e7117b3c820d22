//! Text -> words and marks with their places.

use super::ParseError;
use super::name::is_plain;

/// A piece of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    /// A keyword, a name, a number.
    Word(&'a str),
    /// A single character.
    Mark(char),
    /// `->`.
    Arrow,
    /// After the last piece.
    End,
}

/// A piece and where it starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind<'a>,
    pub(super) line: usize,
    pub(super) column: usize,
}

/// All pieces, with an [`Kind::End`] last, and what is no piece.
pub(super) fn lex(text: &str) -> (Vec<Token<'_>>, Vec<ParseError>) {
    let (mut tokens, mut errors) = (Vec::new(), Vec::new());
    let (mut at, mut line) = (0, 1);
    // The last place whose column is known, and that column, which counts characters.
    let mut column_at = (0, 1);
    while let Some(c) = text[at..].chars().next() {
        if c == '\n' {
            line += 1;
            at += 1;
            column_at = (at, 1);
            continue;
        }
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        if text[at..].starts_with("//") {
            at += text[at..].find('\n').unwrap_or(text.len() - at);
            continue;
        }
        column_at = (at, column_at.1 + text[column_at.0..at].chars().count());
        let column = column_at.1;
        let (kind, length) = piece(&text[at..], c);
        match kind {
            Ok(kind) => tokens.push(Token { kind, line, column }),
            Err(message) => errors.push(ParseError { line, column, message }),
        }
        at += length;
    }
    let column = column_at.1 + text[column_at.0..].chars().count();
    tokens.push(Token { kind: Kind::End, line, column });
    (tokens, errors)
}

/// The piece at the start of `text`, whose first character is `first`, and its length in bytes (at least 1).
fn piece(text: &str, first: char) -> (Result<Kind<'_>, String>, usize) {
    if text.starts_with("->") {
        return (Ok(Kind::Arrow), 2);
    }
    let signed = first == '-' && text[1..].starts_with(|c: char| c.is_ascii_alphanumeric());
    if signed || first == '\\' || is_plain(first) {
        return word(text, usize::from(signed));
    }
    match first {
        '(' | ')' | '{' | '}' | '[' | ']' | '<' | '>' | ',' | ':' | '=' | '+' | '@' | '\'' => {
            (Ok(Kind::Mark(first)), 1)
        }
        _ => (Err(format!("{first:?} has no place here")), first.len_utf8()),
    }
}

fn word(text: &str, start: usize) -> (Result<Kind<'_>, String>, usize) {
    let is_number = text[start..].starts_with(|c: char| c.is_ascii_digit());
    let mut end = start;
    while let Some(c) = text[end..].chars().next() {
        if is_plain(c) {
            end += c.len_utf8();
        } else if c == '\\' {
            let after = text[end + 1..].strip_prefix('{').and_then(|rest| rest.find('}'));
            match after {
                Some(length) if length <= 8 => end += length + 3,
                _ => return (Err("an escape in a name looks like `\\{20}`".to_string()), end + 1),
            }
        } else if (c == '-' || c == '+') && is_number && text[..end].ends_with(['e', 'E']) {
            end += 1;
        } else {
            break;
        }
    }
    (Ok(Kind::Word(&text[..end])), end)
}
