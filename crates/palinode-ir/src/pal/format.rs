//! Source -> the same source, laid out.
//!
//! Works on tokens, so comments and the choice of lines stay: what changes is indentation, the space between
//! tokens, the column of comments at the ends of lines, and runs of empty lines. Laying out twice changes
//! nothing more.

use super::syntax::ast::BinaryOp;
use super::syntax::lexer::{self, Kind, Token};
use super::syntax::{KEYWORDS, parse};
use crate::diagnostic::Diagnostic;

const INDENT: usize = 4;

/// Lays a source out.
///
/// ```
/// let tidy = palinode_ir::pal::format("for i in 0 .. n{\nx+=a[ i ]*2 # twice\n}").unwrap();
/// assert_eq!(tidy, "for i in 0..n {\n    x += a[i] * 2  # twice\n}\n");
/// ```
///
/// # Errors
/// What keeps it from being read. Names and types are not looked at.
pub fn format(source: &str) -> Result<String, Vec<Diagnostic>> {
    let mut problems = Vec::new();
    parse(source, &mut problems);
    super::tidy(&mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    let tokens = lexer::tokens(source, &mut problems);
    let mut layout =
        Layout { source, lines: Vec::new(), braces: Vec::new(), brackets: Vec::new(), goes_on: false };
    for line in tokens.split(|token| matches!(token.kind, Kind::Newline | Kind::End)) {
        layout.line(line);
    }
    Ok(layout.text())
}

struct Line {
    code: String,
    comment: String,
}

struct Layout<'a> {
    source: &'a str,
    lines: Vec<Line>,
    /// The lines that opened the braces which are still open; all of one line indent once.
    braces: Vec<usize>,
    /// The same for round and square brackets.
    brackets: Vec<usize>,
    /// Whether the line before ends in the middle of an expression.
    goes_on: bool,
}

fn is_operator(text: &str) -> bool {
    text == "·" || BinaryOp::ALL.iter().any(|op| op.name() == text)
}

fn is_assignment(text: &str) -> bool {
    matches!(text, "=" | "+=" | "-=" | "*=" | "/=")
}

/// Whether a word cannot be the end of a value.
fn is_keyword(text: &str) -> bool {
    KEYWORDS.contains(&text) && !matches!(text, "true" | "false") || matches!(text, "then" | "by")
}

/// What the tokens before one on a line say about it.
#[derive(Clone, Copy, Default)]
struct Context {
    /// In what follows a colon: units are written without spaces.
    annotation: bool,
    /// In the brackets after a number.
    unit: bool,
    /// Brackets opened since the annotation started.
    depth: usize,
}

impl<'a> Layout<'a> {
    fn of(&self, token: Token) -> &'a str {
        &self.source[token.span.range()]
    }

    fn line(&mut self, tokens: &[Token]) {
        let (code, comment) = match tokens.split_last() {
            Some((last, code)) if last.kind == Kind::Comment => (code, comment_text(self.of(*last))),
            _ => (tokens, String::new()),
        };
        let code = match code.iter().rposition(|token| token.kind != Kind::Mark(";")) {
            Some(last) => &code[..=last],
            None => &[],
        };
        let leading =
            code.iter().take_while(|token| matches!(token.kind, Kind::Mark("}" | ")" | "]"))).count();
        let closes = |mark: &str| code[..leading].iter().filter(|token| self.of(**token) == mark).count();
        let still = |open: &[usize], closed: usize| {
            let mut lines = open[..open.len().saturating_sub(closed)].to_vec();
            lines.dedup();
            lines.len()
        };
        let braces = still(&self.braces, closes("}"));
        let brackets = still(&self.brackets, closes(")") + closes("]"));
        let starts_with_operator = code.first().is_some_and(|first| is_operator(self.of(*first)));
        let hangs = self.brackets.is_empty() && !code.is_empty() && (self.goes_on || starts_with_operator);
        let level = braces + brackets + usize::from(hangs);

        let text = self.spaced(code);
        if text.is_empty() && comment.is_empty() {
            let after_nothing =
                self.lines.last().is_none_or(|line| line.code.is_empty() && line.comment.is_empty());
            if !after_nothing {
                self.lines.push(Line { code: String::new(), comment });
            }
            return;
        }
        let indent = " ".repeat(INDENT * level);
        if text.is_empty() {
            self.lines.push(Line { code: String::new(), comment: format!("{indent}{comment}") });
        } else {
            self.lines.push(Line { code: format!("{indent}{text}"), comment });
        }
        let number = self.lines.len();
        for token in code {
            match token.kind {
                Kind::Mark("{") => self.braces.push(number),
                Kind::Mark("}") => drop(self.braces.pop()),
                Kind::Mark("(" | "[") => self.brackets.push(number),
                Kind::Mark(")" | "]") => drop(self.brackets.pop()),
                _ => {}
            }
        }
        if let Some(last) = code.last() {
            let last = self.of(*last);
            self.goes_on = is_operator(last)
                || is_assignment(last)
                || matches!(last, "," | "(" | "[" | "then" | "else" | "not");
        }
    }

    fn spaced(&self, tokens: &[Token]) -> String {
        let mut out = String::new();
        let mut context = Context::default();
        for (at, &token) in tokens.iter().enumerate() {
            let text = self.of(token);
            let before = at.checked_sub(1).map(|at| tokens[at]);
            if context.annotation && context.depth == 0 && matches!(text, "=" | "{" | "," | ")") {
                context = Context::default();
            }
            if let Some(before) = before {
                let unary = self.is_unary(&tokens[..at - 1], before);
                if self.space(before, token, unary, context) {
                    out.push(' ');
                }
            }
            out.push_str(text);
            match text {
                ":" | "->" => context = Context { annotation: true, ..Context::default() },
                "[" if before.is_some_and(|before| matches!(before.kind, Kind::Int(_) | Kind::Real(_))) => {
                    context.unit = true;
                    context.depth += 1;
                }
                "[" | "(" => context.depth += 1,
                "]" | ")" => {
                    context.depth = context.depth.saturating_sub(1);
                    context.unit = false;
                }
                _ => {}
            }
        }
        out
    }

    /// Whether `token`, after these, is a sign and not a difference.
    fn is_unary(&self, before: &[Token], token: Token) -> bool {
        if self.of(token) != "-" {
            return false;
        }
        match before.last() {
            // No statement starts with a sign: on a line of its own it is a difference, unless the line
            // before wants a value.
            None => self.goes_on,
            Some(last) => {
                let text = self.of(*last);
                let value = match last.kind {
                    Kind::Word => !is_keyword(text),
                    Kind::Int(_) | Kind::Real(_) => true,
                    _ => matches!(text, ")" | "]" | "'"),
                };
                !value
            }
        }
    }

    fn space(&self, before: Token, token: Token, before_is_unary: bool, context: Context) -> bool {
        let (left, right) = (self.of(before), self.of(token));
        let number = |token: Token| matches!(token.kind, Kind::Int(_) | Kind::Real(_));
        if before.kind == Kind::Comment || token.kind == Kind::Comment {
            return true;
        }
        if matches!(left, "(" | "[") || matches!(right, ")" | "]" | "," | ";" | ":" | "'") {
            return false;
        }
        if right == ".." {
            // `1.` and `..` must not run together; after a comma there is a space anyway.
            return left == "," || left.ends_with('.') && number(before);
        }
        if matches!(left, "{" | "}" | "," | ";" | ":" | "->") || matches!(right, "{" | "}" | "->") {
            return true;
        }
        if left == ".." || before_is_unary || left == "!" {
            return false;
        }
        if (context.annotation || context.unit) && (is_operator(left) || is_operator(right)) {
            return false;
        }
        if left == "^" || right == "^" {
            return false;
        }
        if right == "(" {
            return !(before.kind == Kind::Word && !is_keyword(left) || matches!(left, ")" | "]"));
        }
        if right == "[" {
            let indexes = before.kind == Kind::Word && !is_keyword(left) || matches!(left, ")" | "]" | "'");
            let after_type = context.annotation && matches!(left, "int" | "real" | "bool" | "]");
            return !indexes || after_type;
        }
        true
    }

    fn text(mut self) -> String {
        while self.lines.last().is_some_and(|line| line.code.is_empty() && line.comment.is_empty()) {
            self.lines.pop();
        }
        let mut out = String::new();
        let mut at = 0;
        while at < self.lines.len() {
            // Lines of code that follow each other at one level have their comments in one column.
            let level = self.lines[at].indent();
            let run = self.lines[at..]
                .iter()
                .take_while(|line| !line.code.is_empty() && line.indent() == level)
                .count();
            let run = run.max(1);
            let commented = self.lines[at..at + run].iter().filter(|line| !line.comment.is_empty());
            let column = commented.map(Line::width).max().unwrap_or(0) + 2;
            for line in &self.lines[at..at + run] {
                out.push_str(&line.code);
                if !line.code.is_empty() && !line.comment.is_empty() {
                    out.push_str(&" ".repeat(column - line.width()));
                }
                out.push_str(&line.comment);
                out.push('\n');
            }
            at += run;
        }
        out
    }
}

impl Line {
    fn width(&self) -> usize {
        self.code.chars().count()
    }

    fn indent(&self) -> usize {
        self.code.len() - self.code.trim_start().len()
    }
}

/// A comment with a space after its sign.
fn comment_text(text: &str) -> String {
    let text = text.trim_end();
    match text.strip_prefix('#') {
        Some(rest) if rest.starts_with(char::is_alphanumeric) => format!("# {rest}"),
        _ => text.to_string(),
    }
}
