//! Tokens -> expressions, by binding power. From loose to tight: `or`, `and`, `not`, comparisons (one at a
//! time), `+ -`, `* / // % @`, unary `-`, `^` (to the right), then calls, indices and `'`.

use super::ast::{BinaryOp, Expr, ExprKind, Index, Name, Range, UnaryOp};
use super::lexer::{Kind, Token};
use super::parser::{Failed, KEYWORDS, MAX_DEPTH, Parsed, Parser, RESERVED};
use crate::diagnostic::Diagnostic;
use crate::pal::units::{self, Unit};
use crate::types::Span;

const COMPARISON: u8 = 4;
const UNARY: u8 = 8;

/// The operator and its binding powers to the left and to the right.
fn operator(mark: &str) -> Option<(BinaryOp, u8, u8)> {
    let name = match mark {
        "||" => "or",
        "&&" => "and",
        "**" => "^",
        mark => mark,
    };
    let op = BinaryOp::ALL.into_iter().find(|op| op.name() == name)?;
    let (before, after) = match op {
        BinaryOp::Or => (1, 2),
        BinaryOp::And => (2, 3),
        BinaryOp::Add | BinaryOp::Subtract => (6, 7),
        BinaryOp::Power => (10, 9),
        op if op.is_comparison() => (COMPARISON, 5),
        _ => (7, 8),
    };
    Some((op, before, after))
}

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.binary(0)
    }

    fn node(&mut self, kind: ExprKind, span: Span, below: u16) -> Parsed<Expr> {
        if below > 2 * MAX_DEPTH {
            return self.too_deep(span);
        }
        Ok(Expr { kind, span, depth: below + 1 })
    }

    /// The operator that comes next, also at the start of the next line: no statement starts with one.
    fn next_operator(&mut self) -> Option<(BinaryOp, u8, u8)> {
        let token = if self.brackets > 0 { self.peek() } else { self.peek_beyond_lines() };
        match token.kind {
            Kind::Mark(mark) => operator(mark),
            Kind::Word => operator(self.text(token)),
            _ => None,
        }
    }

    fn eat_operator(&mut self) -> Token {
        self.brackets += 1;
        let token = self.advance();
        // The right side may be on the next line.
        self.peek();
        self.brackets -= 1;
        token
    }

    fn binary(&mut self, least: u8) -> Parsed<Expr> {
        let mut first = self.deeper(Self::prefix)?;
        let mut rest: Vec<(BinaryOp, Expr)> = Vec::new();
        while let Some((op, before, after)) = self.next_operator() {
            if before < least {
                break;
            }
            let token = self.eat_operator();
            if is_foreign(self.text(token)) {
                let word = op.name();
                let problem = Diagnostic::error(
                    "PAL0202",
                    token.span,
                    format!("`{}` is written `{word}`", self.text(token)),
                );
                self.report(problem);
            }
            let right = self.deeper(|this| this.binary(after))?;
            let chained = op.is_comparison() && rest.last().is_some_and(|(op, _)| op.is_comparison());
            if chained {
                let problem = Diagnostic::error("PAL0202", token.span, "comparisons do not chain")
                    .help("write `a < b and b < c`");
                self.report(problem);
                first = self.node(ExprKind::Error, first.span.to(right.span), 0)?;
                rest.clear();
            } else {
                rest.push((op, right));
            }
        }
        let Some((_, last)) = rest.last() else { return Ok(first) };
        let span = first.span.to(last.span);
        let below = rest.iter().map(|(_, operand)| operand.depth).fold(first.depth, u16::max);
        self.node(ExprKind::Chain(Box::new(first), rest), span, below)
    }

    fn unary(&mut self, op: UnaryOp, power: u8) -> Parsed<Expr> {
        let token = self.advance();
        let inner = self.binary(power)?;
        let (span, below) = (token.span.to(inner.span), inner.depth);
        let kind = match (op, &inner.kind) {
            (UnaryOp::Negate, &ExprKind::Int(n)) => ExprKind::Int(-n),
            (UnaryOp::Negate, &ExprKind::Real(x)) => ExprKind::Real(-x),
            _ => ExprKind::Unary(op, Box::new(inner)),
        };
        self.node(kind, span, below)
    }

    fn prefix(&mut self) -> Parsed<Expr> {
        let token = self.peek();
        match token.kind {
            Kind::Mark("-") => self.unary(UnaryOp::Negate, UNARY),
            Kind::Mark("!") => {
                self.report(Diagnostic::error("PAL0202", token.span, "`!` is written `not`"));
                self.unary(UnaryOp::Not, 3)
            }
            Kind::Word if self.is_word("not") => self.unary(UnaryOp::Not, 3),
            Kind::Word if self.is_word("if") => self.choice(),
            _ => {
                let first = self.primary()?;
                self.postfix(first)
            }
        }
    }

    /// `if c then a else b`.
    fn choice(&mut self) -> Parsed<Expr> {
        let start = self.advance().span;
        // Newlines mean nothing up to `else`, which must come.
        self.brackets += 1;
        let parts = self.choice_parts();
        self.brackets -= 1;
        let (condition, yes) = parts?;
        self.brackets += 1;
        self.peek();
        self.brackets -= 1;
        let no = self.expr()?;
        let span = start.to(no.span);
        let below = condition.depth.max(yes.depth).max(no.depth);
        self.node(ExprKind::Choice(Box::new(condition), Box::new(yes), Box::new(no)), span, below)
    }

    fn choice_parts(&mut self) -> Parsed<(Expr, Expr)> {
        let condition = self.condition()?;
        if !self.eat_word("then") {
            return self.unexpected("`then`", Some("a choice reads `if c then a else b`"));
        }
        let yes = self.expr()?;
        if !self.eat_word("else") {
            return self.unexpected("`else`", Some("a choice reads `if c then a else b`"));
        }
        Ok((condition, yes))
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let token = self.peek();
        match token.kind {
            Kind::Int(n) => {
                self.advance();
                self.number(n as f64, ExprKind::Int(n), token)
            }
            Kind::Real(x) => {
                self.advance();
                self.number(x, ExprKind::Real(x), token)
            }
            Kind::Glued { digits } => {
                self.advance();
                let (number, unit) = self.text(token).split_at(digits as usize);
                let problem = glued(number, unit, token.span);
                self.report(problem);
                self.node(ExprKind::Error, token.span, 0)
            }
            Kind::Word => self.word(token),
            Kind::Mark("(") => {
                self.advance();
                self.brackets += 1;
                let mut inner = self.expr()?;
                let end = self.close(")", token)?;
                self.brackets -= 1;
                inner.span = token.span.to(end.span);
                Ok(inner)
            }
            Kind::Mark("[") => {
                self.advance();
                self.brackets += 1;
                let mut items = Vec::new();
                while !self.is_mark("]") {
                    items.push(self.expr()?);
                    if !self.eat_mark(",") {
                        break;
                    }
                }
                let end = self.close("]", token)?;
                self.brackets -= 1;
                let below = items.iter().map(|item| item.depth).max().unwrap_or(0);
                self.node(ExprKind::List(items), token.span.to(end.span), below)
            }
            Kind::Mark("+") if self.previous_text() == "+" => {
                self.unexpected("a value", Some("`x += 1` adds one"))
            }
            Kind::Mark("+") => {
                self.unexpected("a value", Some("a plus sign in front of a value is left out"))
            }
            _ => self.unexpected("a value", None),
        }
    }

    fn number(&mut self, value: f64, plain: ExprKind, token: Token) -> Parsed<Expr> {
        if !self.is_mark("[") {
            return self.node(plain, token.span, 0);
        }
        let unit = self.bracketed_unit()?;
        let end = self.previous_span();
        self.node(ExprKind::Quantity(value, unit), token.span.to(end), 0)
    }

    fn word(&mut self, token: Token) -> Parsed<Expr> {
        let text = self.text(token).to_string();
        match text.as_str() {
            "true" | "false" => {
                self.advance();
                return self.node(ExprKind::Bool(text == "true"), token.span, 0);
            }
            word if RESERVED.contains(&word) => {
                self.name("a value")?;
                return Err(Failed);
            }
            word if KEYWORDS.contains(&word) => return self.unexpected("a value", None),
            _ => {}
        }
        self.advance();
        let name = Name { text: text.as_str().into(), span: token.span };
        if !self.is_mark("(") {
            return self.node(ExprKind::Name(name.text), token.span, 0);
        }
        let open = self.advance();
        self.brackets += 1;
        let mut args = Vec::new();
        while !self.is_mark(")") {
            args.push(self.expr()?);
            if !self.eat_mark(",") {
                break;
            }
        }
        let end = self.close(")", open)?;
        self.brackets -= 1;
        let below = args.iter().map(|arg| arg.depth).max().unwrap_or(0);
        self.node(ExprKind::Call(name, args), token.span.to(end.span), below)
    }

    fn postfix(&mut self, first: Expr) -> Parsed<Expr> {
        let mut expr = first;
        loop {
            if self.is_mark("'") {
                let span = expr.span.to(self.advance().span);
                let below = expr.depth;
                expr = self.node(ExprKind::Transpose(Box::new(expr)), span, below)?;
            } else if self.is_mark("[") {
                let open = self.advance();
                self.brackets += 1;
                let mut indices = Vec::new();
                let mut below = expr.depth;
                while !self.is_mark("]") {
                    let index = self.index()?;
                    below = below.max(depth_of(&index));
                    indices.push(index);
                    if !self.eat_mark(",") {
                        break;
                    }
                }
                let end = self.close("]", open)?;
                self.brackets -= 1;
                let span = expr.span.to(end.span);
                if indices.is_empty() {
                    self.report(
                        Diagnostic::error("PAL0202", open.span.to(end.span), "an index is missing")
                            .help("`a[i]` is an element, `a[..]` the whole axis"),
                    );
                    return Err(Failed);
                }
                expr = self.node(ExprKind::Index(Box::new(expr), indices), span, below)?;
            } else if self.is_mark("(") {
                let message = "only a name can be called";
                let problem = Diagnostic::error("PAL0202", expr.span, message)
                    .help("an element is `a[i]`, a product `a * (b)`");
                self.report(problem);
                return Err(Failed);
            } else {
                return Ok(expr);
            }
        }
    }

    fn index(&mut self) -> Parsed<Index> {
        let start = self.peek().span;
        let lo = if self.is_mark("..") { None } else { Some(self.expr()?) };
        if !self.eat_mark("..") {
            return Ok(Index::At(lo.expect("it does not start with `..`")));
        }
        let open_end = self.is_mark("]") || self.is_mark(",") || self.is_word("by");
        let hi = if open_end { None } else { Some(self.expr()?) };
        let by = if self.eat_word("by") { Some(self.expr()?) } else { None };
        Ok(Index::Range(Range { lo, hi, by, span: start.to(self.previous_span()) }))
    }

    pub(super) fn bracketed_unit(&mut self) -> Parsed<Unit> {
        let open = self.advance();
        let unit = self.unit()?;
        self.close("]", open)?;
        Ok(unit)
    }

    pub(super) fn unit(&mut self) -> Parsed<Unit> {
        let start = self.peek().span;
        let worth = self.unit_product()?;
        let span = start.to(self.previous_span());
        Ok(Unit::new(&self.source[span.range()], worth))
    }

    fn unit_product(&mut self) -> Parsed<(f64, f64)> {
        let (mut n, mut d) = self.unit_factor()?;
        loop {
            let divide = self.is_mark("/");
            if !divide && !self.is_mark("*") && !self.is_mark("·") {
                return Ok((n, d));
            }
            self.advance();
            let (fn_, fd) = self.unit_factor()?;
            (n, d) = if divide { (n * fd, d * fn_) } else { (n * fn_, d * fd) };
        }
    }

    fn unit_factor(&mut self) -> Parsed<(f64, f64)> {
        let token = self.peek();
        let worth = match token.kind {
            Kind::Int(1) => {
                self.advance();
                (1.0, 1.0)
            }
            Kind::Mark("(") => {
                self.advance();
                let inner = self.deeper(Self::unit_product)?;
                self.close(")", token)?;
                inner
            }
            Kind::Word => {
                self.advance();
                let name = self.text(token).to_string();
                units::lookup(&name).unwrap_or_else(|| {
                    self.report(unknown_unit(&name, token.span));
                    (1.0, 1.0)
                })
            }
            _ => return self.unexpected("a unit", Some("a unit reads `m/s^2`, `1/m`, `kg*m`")),
        };
        if !self.eat_mark("^") {
            return Ok(worth);
        }
        let negative = self.eat_mark("-");
        let token = self.peek();
        let Kind::Int(size) = token.kind else {
            return self.unexpected("a whole power", None);
        };
        self.advance();
        let size = i32::try_from(size).unwrap_or(i32::MAX).min(1000);
        Ok(units::power(worth, if negative { -size } else { size }))
    }
}

/// `3m`.
fn glued(number: &str, unit: &str, span: Span) -> Diagnostic {
    Diagnostic::error("PAL0201", span, format!("`{number}{unit}` is not a number")).help(format!(
        "a unit goes in brackets, `{number} [{unit}]`; a product needs its sign, `{number} * {unit}`"
    ))
}

fn unknown_unit(name: &str, span: Span) -> Diagnostic {
    let mut problem = Diagnostic::error("PAL0219", span, format!("`{name}` is not a unit"));
    problem.help = match name {
        "degC" | "celsius" | "Celsius" => Some("use kelvin: units with an offset do not multiply".into()),
        _ => units::suggestion(name).map(|unit| format!("did you mean `{unit}`?")),
    };
    if problem.help.is_none() {
        problem.notes.push(
            "known are the SI units with prefixes, and min h day deg rad bar atm eV L percent ...".into(),
        );
    }
    problem
}

/// Operators of other languages.
fn is_foreign(text: &str) -> bool {
    matches!(text, "&&" | "||" | "**")
}

fn depth_of(index: &Index) -> u16 {
    match index {
        Index::At(expr) => expr.depth,
        Index::Range(range) => {
            [&range.lo, &range.hi, &range.by].into_iter().flatten().map(|expr| expr.depth).max().unwrap_or(0)
        }
    }
}
