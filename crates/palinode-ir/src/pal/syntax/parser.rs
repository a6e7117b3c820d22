//! Tokens -> statements.
//!
//! A statement that cannot be read is reported and skipped up to the end of its line; what it would have
//! defined becomes [`StmtKind::Broken`], so that later uses of the name are not reported as well.

use super::ast::{BinaryOp, Binder, Block, Expr, ExprKind, Name, Stmt, StmtKind};
use super::lexer::{self, Kind, Token};
use crate::diagnostic::Diagnostic;
use crate::types::Span;
use std::sync::Arc;

/// How many brackets, blocks and operators may be inside each other.
pub(crate) const MAX_DEPTH: u16 = 100;

pub(crate) const KEYWORDS: &[&str] = &[
    "param", "input", "const", "let", "var", "alias", "fn", "for", "in", "while", "break", "continue", "if",
    "else", "return", "loss", "output", "and", "or", "not", "true", "false",
];

/// The keywords that only start statements.
pub(super) const STATEMENTS: &[&str] = &[
    "param", "input", "const", "let", "var", "alias", "fn", "for", "while", "break", "continue", "return",
    "loss", "output",
];

/// What other languages call the branch after the first.
const OTHER_ELSE_IF: &[&str] = &["elif", "elsif", "elseif"];

/// Kept for random draws and effects.
pub(crate) const RESERVED: &[&str] =
    &["draw", "sample", "key", "emit", "read", "effect", "observe", "journal"];

/// The statement could not be read; the reason has been reported.
pub(super) struct Failed;

pub(super) type Parsed<T> = Result<T, Failed>;

pub(crate) fn parse(source: &str, problems: &mut Vec<Diagnostic>) -> Vec<Stmt> {
    let mut tokens = lexer::tokens(source, problems);
    tokens.retain(|token| token.kind != Kind::Comment);
    let mut parser = Parser { source, tokens, at: 0, brackets: 0, depth: 0, abandoned: false, problems };
    let mut stmts = Vec::new();
    parser.statements(&mut stmts, None);
    stmts
}

pub(super) struct Parser<'a> {
    pub(super) source: &'a str,
    pub(super) tokens: Vec<Token>,
    pub(super) at: usize,
    /// Inside round or square brackets, where newlines mean nothing.
    pub(super) brackets: usize,
    depth: u16,
    /// Nothing more is read or reported.
    abandoned: bool,
    problems: &'a mut Vec<Diagnostic>,
}

impl Parser<'_> {
    fn skip_newlines(&mut self) {
        while self.tokens[self.at].kind == Kind::Newline {
            self.at += 1;
        }
    }

    /// The token to read next.
    pub(super) fn peek(&mut self) -> Token {
        if self.brackets > 0 {
            self.skip_newlines();
        }
        self.tokens[self.at]
    }

    /// The next token that is not a newline, wherever it is.
    pub(super) fn peek_beyond_lines(&self) -> Token {
        *self.tokens[self.at..].iter().find(|token| token.kind != Kind::Newline).expect("there is an end")
    }

    pub(super) fn advance(&mut self) -> Token {
        let token = self.peek();
        if token.kind != Kind::End {
            self.at += 1;
        }
        token
    }

    /// The tokens still to read.
    pub(super) fn ahead(&self) -> &[Token] {
        &self.tokens[self.at..]
    }

    /// Where the token just read is.
    pub(super) fn previous_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    /// The token just read.
    pub(super) fn previous_text(&self) -> &str {
        &self.source[self.previous_span().range()]
    }

    pub(super) fn text(&self, token: Token) -> &str {
        &self.source[token.span.range()]
    }

    pub(super) fn report(&mut self, problem: Diagnostic) {
        if !self.abandoned {
            self.problems.push(problem);
        }
    }

    /// Reports that something is too deep and stops reading: what follows could not be told apart.
    pub(super) fn too_deep<T>(&mut self, span: Span) -> Parsed<T> {
        let message = format!("more than {MAX_DEPTH} brackets, blocks or operators inside each other");
        let help = "give parts of it names with `let`, or move them into a function";
        self.report(Diagnostic::error("PAL0204", span, message).help(help));
        self.abandoned = true;
        self.at = self.tokens.len() - 1;
        Err(Failed)
    }

    pub(super) fn is_mark(&mut self, mark: &str) -> bool {
        matches!(self.peek().kind, Kind::Mark(found) if found == mark)
    }

    pub(super) fn is_word(&mut self, word: &str) -> bool {
        let token = self.peek();
        token.kind == Kind::Word && self.text(token) == word
    }

    pub(super) fn eat_mark(&mut self, mark: &str) -> bool {
        let found = self.is_mark(mark);
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }

    /// Goes one level down, unless that is too deep.
    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_DEPTH {
            let span = self.peek().span;
            return self.too_deep(span);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// A name that is being defined.
    pub(super) fn name(&mut self, what: &str) -> Parsed<Name> {
        let token = self.peek();
        if token.kind != Kind::Word {
            return self.unexpected(what, None);
        }
        let text: Arc<str> = self.text(token).into();
        if RESERVED.contains(&&*text) {
            self.report(reserved(token.span, &text));
            return Err(Failed);
        }
        if KEYWORDS.contains(&&*text) {
            let problem = Diagnostic::error(
                "PAL0202",
                token.span,
                format!("`{text}` is a keyword and cannot be a name"),
            )
            .help(format!("choose another name, for example `{text}_`"));
            self.report(problem);
            return Err(Failed);
        }
        self.advance();
        Ok(Name { text, span: token.span })
    }

    /// Statements up to the end of the file, or the brace that closes `open`.
    fn statements(&mut self, stmts: &mut Vec<Stmt>, open: Option<Token>) {
        loop {
            while matches!(self.peek().kind, Kind::Newline | Kind::Mark(";")) {
                self.advance();
            }
            let token = self.peek();
            match token.kind {
                Kind::End => return,
                Kind::Mark("}") if open.is_some() => return,
                Kind::Mark("}") => {
                    let problem =
                        Diagnostic::error("PAL0202", token.span, "`}` closes nothing").help("remove it");
                    self.report(problem);
                    self.advance();
                    continue;
                }
                _ => {}
            }
            let start = self.at;
            match self.statement() {
                Ok(kind) => {
                    let end = self.tokens[self.at.saturating_sub(1).max(start)].span;
                    stmts.push(Stmt { kind, span: token.span.to(end) });
                    if self.statement_ends().is_err() {
                        self.recover();
                    }
                }
                Err(Failed) => {
                    let names = self.defined_by(start);
                    self.brackets = 0;
                    if self.at == start {
                        self.at += 1;
                    }
                    self.recover();
                    stmts.push(Stmt { kind: StmtKind::Broken(names), span: token.span });
                }
            }
        }
    }

    fn statement_ends(&mut self) -> Parsed<()> {
        match self.peek().kind {
            Kind::Newline | Kind::End | Kind::Mark(";" | "}") => Ok(()),
            // A block ends its statement.
            _ if self.tokens[self.at.saturating_sub(1)].kind == Kind::Mark("}") => Ok(()),
            _ => {
                let token = self.peek();
                let help = match self.text(token) {
                    "if" | "?" => "a choice reads `if c then a else b`",
                    "=" => "`==` compares",
                    "(" | "[" | "{" => "a product needs its sign, `a * b`",
                    _ => "put each statement on its own line, or `;` between two",
                };
                self.unexpected("the end of the statement", Some(help))
            }
        }
    }

    pub(super) fn block(&mut self) -> Parsed<Block> {
        let help = match self.peek().kind {
            Kind::Mark("=") => "a function has a block: `fn f(x) { return x * x }`",
            Kind::Mark(":") => "a block stands in braces, `{ ... }`; a range is `0..n`",
            _ => "a block stands in braces, `{ ... }`",
        };
        let open = self.expect("{", Some(help))?;
        self.deeper(|this| {
            let outer = core::mem::take(&mut this.brackets);
            let mut stmts = Vec::new();
            this.statements(&mut stmts, Some(open));
            let closed = this.close("}", open);
            this.brackets = outer;
            closed.map(|_| Block { stmts })
        })
    }

    fn statement(&mut self) -> Parsed<StmtKind> {
        let token = self.peek();
        if token.kind == Kind::Word {
            let word = self.text(token).to_string();
            if RESERVED.contains(&word.as_str()) {
                self.report(reserved(token.span, &word));
                return Err(Failed);
            }
            if let Some(form) = self.equation_ahead() {
                return self.equation(form);
            }
            let keyword = KEYWORDS.iter().find(|keyword| **keyword == word);
            if let Some(&keyword) = keyword
                && !matches!(keyword, "not" | "true" | "false")
            {
                self.advance();
                return self.keyword(keyword, token);
            }
        }
        self.assignment()
    }

    fn keyword(&mut self, keyword: &str, token: Token) -> Parsed<StmtKind> {
        match keyword {
            "param" | "input" => {
                let name = self.name("a name")?;
                let annotation = self.optional_annotation()?;
                let default = if self.eat_mark("=") { Some(self.expr()?) } else { None };
                Ok(StmtKind::Argument { is_param: keyword == "param", name, annotation, default })
            }
            "const" => {
                let name = self.name("a name")?;
                let annotation = self.optional_annotation()?;
                self.expect("=", Some("a constant has a value, `const g = 9.81`"))?;
                let value = self.expr()?;
                let value = self.with_unit(annotation, value)?.1;
                Ok(StmtKind::Const { name, value })
            }
            "let" | "var" => {
                let binder = if keyword == "let" { Binder::Let } else { Binder::Var };
                let mut names = vec![self.name("a name")?];
                while self.eat_mark(",") {
                    names.push(self.name("a name")?);
                }
                let annotation = self.optional_annotation()?;
                let help = format!("a `{keyword}` needs a value, `{keyword} {} = 0.0`", names[0].text);
                self.expect("=", Some(&help))?;
                let mut values = self.expr_list()?;
                let mut annotation = annotation;
                if values.len() == 1 {
                    let value = values.remove(0);
                    let (rest, value) = self.with_unit(annotation, value)?;
                    annotation = rest;
                    values.push(value);
                }
                Ok(StmtKind::Bind { binder, names, annotation, values })
            }
            "alias" => {
                let name = self.name("a name")?;
                self.expect("=", Some("`alias tail = a[3..6]` makes a second name for part of an array"))?;
                Ok(StmtKind::Alias { name, target: self.expr()? })
            }
            "fn" => self.function(),
            "for" => self.for_loop(),
            "while" => {
                let condition = self.condition()?;
                let budget = self.loop_budget(&[])?;
                Ok(StmtKind::While { condition, budget, body: self.block()? })
            }
            "if" => self.branches(),
            "break" => Ok(StmtKind::Break),
            "continue" => Ok(StmtKind::Continue),
            "return" => {
                if self.statement_is_over() {
                    return Ok(StmtKind::Return(Vec::new()));
                }
                Ok(StmtKind::Return(self.expr_list()?))
            }
            "loss" | "output" => {
                if self.is_mark("=") {
                    let message = format!("the {keyword} needs a name");
                    let help = format!("write `{keyword} name = ...`");
                    self.report(Diagnostic::error("PAL0202", token.span, message).help(help));
                    return Err(Failed);
                }
                let name = self.name("a name")?;
                let value = if self.eat_mark("=") { Some(self.expr()?) } else { None };
                Ok(StmtKind::Output { is_loss: keyword == "loss", name, value })
            }
            other => {
                let message = format!("a statement cannot start with `{other}`");
                self.report(Diagnostic::error("PAL0202", token.span, message));
                Err(Failed)
            }
        }
    }

    fn statement_is_over(&mut self) -> bool {
        matches!(self.peek().kind, Kind::Newline | Kind::End | Kind::Mark(";" | "}"))
    }

    fn assignment(&mut self) -> Parsed<StmtKind> {
        let targets = self.expr_list()?;
        let token = self.peek();
        let op = match token.kind {
            Kind::Mark("=") => None,
            Kind::Mark("+=") => Some(BinaryOp::Add),
            Kind::Mark("-=") => Some(BinaryOp::Subtract),
            Kind::Mark("*=") => Some(BinaryOp::Multiply),
            Kind::Mark("/=") => Some(BinaryOp::Divide),
            _ if targets.len() == 1 && self.statement_is_over() => {
                return Ok(StmtKind::Value(targets.into_iter().next().expect("there is one")));
            }
            _ => {
                let help = match &targets[0].kind {
                    ExprKind::Name(name) if matches!(&**name, "def" | "function" | "func") => {
                        Some("a function reads `fn f(x) { return x * x }`")
                    }
                    ExprKind::Name(_) if token.kind == Kind::Word => {
                        Some("a statement is an assignment or starts with a keyword")
                    }
                    _ if token.kind == Kind::Mark(":=") => Some("assign with `=`"),
                    _ => None,
                };
                return self.unexpected("`=`", help);
            }
        };
        self.advance();
        let values = self.expr_list()?;
        if let (Some(op), true) = (op, targets.len() > 1 || values.len() > 1) {
            let message = format!("`{}=` changes one place by one value", op.name());
            self.report(
                Diagnostic::error("PAL0202", token.span, message).help("write one statement for each"),
            );
            return Err(Failed);
        }
        Ok(StmtKind::Assign { targets, op, values })
    }

    fn expr_list(&mut self) -> Parsed<Vec<Expr>> {
        let mut list = vec![self.expr()?];
        while self.eat_mark(",") {
            list.push(self.expr()?);
        }
        Ok(list)
    }

    /// What a branch or a loop asks.
    pub(super) fn condition(&mut self) -> Parsed<Expr> {
        let mut condition = self.expr()?;
        if self.is_mark("=") {
            let span = self.peek().span;
            let problem = Diagnostic::error("PAL0202", span, "`=` assigns, which is a statement of its own");
            self.report(problem.help("to compare, write `==`"));
            while self.eat_mark("=") {
                self.expr()?;
            }
            condition.kind = ExprKind::Error;
        }
        Ok(condition)
    }

    /// Whether the word after the next newlines is a variable that is assigned to.
    fn assigned_beyond_lines(&self) -> bool {
        let tokens = self.tokens[self.at..].iter().skip_while(|token| token.kind == Kind::Newline);
        let after = tokens.skip(1).map(|token| token.kind).next();
        matches!(after, Some(Kind::Mark("=" | "+=" | "-=" | "*=" | "/=" | "[" | ",")))
    }

    fn branches(&mut self) -> Parsed<StmtKind> {
        let condition = self.condition()?;
        if self.is_word("then") {
            return self.unexpected(
                "`{`",
                Some("`if c then a else b` is a value; a statement has its blocks in braces"),
            );
        }
        let mut arms = vec![(condition, self.block()?)];
        loop {
            let next = self.peek_beyond_lines();
            let word = if next.kind == Kind::Word { self.text(next) } else { "" };
            if OTHER_ELSE_IF.contains(&word) && !self.assigned_beyond_lines() {
                let message = format!("`{word}` is written `else if`");
                self.report(Diagnostic::error("PAL0202", next.span, message));
                self.skip_newlines();
                self.advance();
            } else if word == "else" {
                self.skip_newlines();
                self.advance();
                if !self.eat_word("if") {
                    return Ok(StmtKind::If { arms, otherwise: Some(self.block()?) });
                }
            } else {
                return Ok(StmtKind::If { arms, otherwise: None });
            }
            let condition = self.condition()?;
            arms.push((condition, self.block()?));
            if arms.len() > usize::from(MAX_DEPTH) {
                return self.too_deep(next.span);
            }
        }
    }
}

/// The most axes that an array may have.
pub(crate) const MAX_RANK: u8 = 8;

fn reserved(span: Span, word: &str) -> Diagnostic {
    Diagnostic::error("PAL0218", span, format!("`{word}` is reserved"))
        .note("it is reserved for random draws and effects, which the language does not have yet")
        .help(format!("choose another name, for example `{word}_`"))
}
