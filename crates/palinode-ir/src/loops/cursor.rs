//! A line of text, from left to right.

use crate::text::{ParseError, is_plain};

pub(super) type Parsed<T> = Result<T, ParseError>;

/// What is left of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'t> {
    whole: &'t str,
    at: usize,
    line: usize,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(whole: &'t str, line: usize) -> Cursor<'t> {
        Cursor { whole, at: 0, line }
    }

    /// What is left, without spaces before it.
    fn rest(&self) -> &'t str {
        self.whole[self.at..].trim_start()
    }

    /// Goes on behind so many bytes of what is left.
    fn take(&mut self, bytes: usize) -> &'t str {
        let taken = &self.rest()[..bytes];
        self.at = self.whole.len() - self.rest().len() + bytes;
        taken
    }

    /// That something is wrong here.
    pub(super) fn mistake(&self, message: impl Into<String>) -> ParseError {
        let before = self.whole.len() - self.rest().len();
        let column = self.whole[..before].chars().count() + 1;
        ParseError { line: self.line, column, message: message.into() }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest().is_empty()
    }

    pub(super) fn end(&self) -> Parsed<()> {
        if self.is_at_end() { Ok(()) } else { Err(self.mistake("the line should end here")) }
    }

    pub(super) fn is_at(&self, mark: &str) -> bool {
        self.rest().starts_with(mark)
    }

    pub(super) fn eat(&mut self, mark: &str) -> bool {
        let found = self.is_at(mark);
        if found {
            self.take(mark.len());
        }
        found
    }

    pub(super) fn expect(&mut self, mark: &str) -> Parsed<()> {
        let is_word = mark.starts_with(char::is_alphabetic);
        let found = if is_word { self.eat_word(mark) } else { self.eat(mark) };
        if found { Ok(()) } else { Err(self.mistake(format!("expected `{mark}`"))) }
    }

    fn next_word(&self) -> &'t str {
        let rest = self.rest();
        let mut end = 0;
        while let Some(c) = rest[end..].chars().next() {
            match c {
                c if is_plain(c) => end += c.len_utf8(),
                '\\' => match rest[end..].find('}') {
                    Some(length) => end += length + 1,
                    None => break,
                },
                _ => break,
            }
        }
        &rest[..end]
    }

    /// Letters, digits, `_`, `.`, and escapes in names; may be nothing.
    pub(super) fn word(&mut self) -> &'t str {
        let length = self.next_word().len();
        self.take(length)
    }

    /// This word, as a whole.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.next_word() == word;
        if found {
            self.take(word.len());
        }
        found
    }

    /// Whatever may be in a literal; may be nothing.
    pub(super) fn number_word(&mut self) -> &'t str {
        let rest = self.rest();
        let is_in = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | ':');
        let length = rest.find(|c| !is_in(c)).unwrap_or(rest.len());
        self.take(length)
    }

    /// Digits.
    pub(super) fn number<N: std::str::FromStr>(&mut self) -> Parsed<N> {
        let rest = self.rest();
        let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let wrong = if length == 0 { "expected a number" } else { "the number is too large" };
        let number = rest[..length].parse().map_err(|_| self.mistake(wrong))?;
        self.take(length);
        Ok(number)
    }

    /// The number of `r12` behind its letter.
    pub(super) fn numbered(&mut self, letter: char) -> Option<u32> {
        let word = self.next_word();
        let digits = word.strip_prefix(letter)?;
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = if is_number { digits.parse().ok() } else { None }?;
        self.take(word.len());
        Some(number)
    }

    /// Items with commas between them, up to a mark or, if that is nothing, the end of the line.
    pub(super) fn separated<T>(
        &mut self,
        end: &str,
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        let is_over = |line: &Self| if end.is_empty() { line.is_at_end() } else { line.is_at(end) };
        while !is_over(self) {
            if !items.is_empty() {
                self.expect(",")?;
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// The same between two marks.
    pub(super) fn list<T>(
        &mut self,
        begin: &str,
        end: &str,
        item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        self.expect(begin)?;
        let items = self.separated(end, item)?;
        self.expect(end)?;
        Ok(items)
    }
}
