//! Functions, and what follows a colon: kinds of elements, lengths and units.

use super::ast::{Annotation, Expr, ExprKind, Function, Length, Scalar, StmtKind};
use super::lexer::Kind;
use super::parser::{Failed, KEYWORDS, MAX_RANK, Parsed, Parser};
use crate::diagnostic::Diagnostic;
use crate::pal::units::Unit;
use std::sync::Arc;

impl Parser<'_> {
    pub(super) fn function(&mut self) -> Parsed<StmtKind> {
        let name = self.name("the name of the function")?;
        let open = self.expect("(", Some("a function reads `fn f(x, y) { return x * y }`"))?;
        self.brackets += 1;
        let mut params = Vec::new();
        while !self.is_mark(")") {
            let param = self.name("the name of a parameter")?;
            params.push((param, self.optional_annotation()?));
            if !self.eat_mark(",") {
                break;
            }
        }
        self.close(")", open)?;
        self.brackets -= 1;
        let returns = if self.eat_mark("->") {
            let mut types = vec![self.annotation()?];
            while self.eat_mark(",") {
                types.push(self.annotation()?);
            }
            Some(types)
        } else {
            None
        };
        let body = self.block()?;
        Ok(StmtKind::Function(Arc::new(Function { name, params, returns, body })))
    }

    pub(super) fn optional_annotation(&mut self) -> Parsed<Option<Annotation>> {
        if self.eat_mark(":") { self.annotation().map(Some) } else { Ok(None) }
    }

    /// `int`, `[n, 3]`, `m/s`, or these one after another.
    fn annotation(&mut self) -> Parsed<Annotation> {
        let start = self.peek();
        let mut found = Annotation { elem: None, shape: None, unit: None, span: start.span };
        let scalars = [("real", Scalar::Real), ("int", Scalar::Int), ("bool", Scalar::Bool)];
        for (word, scalar) in scalars {
            if found.elem.is_none() && self.eat_word(word) {
                found.elem = Some((scalar, start.span));
            }
        }
        if self.is_mark("[") && !self.bracket_holds_unit() {
            found.shape = Some(self.shape()?);
        }
        let token = self.peek();
        let a_unit = matches!(token.kind, Kind::Word | Kind::Int(_) | Kind::Mark("[" | "("));
        if a_unit && !(token.kind == Kind::Word && KEYWORDS.contains(&self.text(token))) {
            found.unit = Some(if self.is_mark("[") { self.bracketed_unit()? } else { self.unit()? });
        }
        if found.elem.is_none() && found.shape.is_none() && found.unit.is_none() {
            let help = "`: m/s` is a unit, `: [n, 3]` an array, `: int` an integer";
            return self.unexpected("a unit or a type", Some(help));
        }
        found.span = start.span.to(self.previous_span());
        Ok(found)
    }

    /// Whether the bracket that comes next can only be a unit: `[m/s]`.
    fn bracket_holds_unit(&self) -> bool {
        self.ahead()
            .iter()
            .take_while(|token| !matches!(token.kind, Kind::Mark("]") | Kind::Newline | Kind::End))
            .any(|token| matches!(token.kind, Kind::Mark("/" | "^" | "*" | "·")))
    }

    fn shape(&mut self) -> Parsed<Vec<Length>> {
        let open = self.advance();
        self.brackets += 1;
        let mut lengths = Vec::new();
        while !self.is_mark("]") {
            let token = self.peek();
            match token.kind {
                Kind::Int(n) => {
                    self.advance();
                    lengths.push(Length::Known(n, token.span));
                }
                Kind::Mark("..") => {
                    self.advance();
                    lengths.push(Length::Any);
                }
                Kind::Word if self.text(token) == "_" => {
                    self.advance();
                    lengths.push(Length::Any);
                }
                _ => lengths.push(Length::Named(self.name("a length: a number, a name or `_`")?)),
            }
            if !self.eat_mark(",") {
                break;
            }
        }
        if lengths.is_empty() || lengths.len() > usize::from(MAX_RANK) {
            let message = format!("an array has 1 to {MAX_RANK} axes");
            let span = open.span.to(self.peek().span);
            self.report(
                Diagnostic::error("PAL0210", span, message).help("`[n]` is a vector, `[n, m]` a matrix"),
            );
            return Err(Failed);
        }
        self.close("]", open)?;
        self.brackets -= 1;
        Ok(lengths)
    }

    /// A unit in the annotation belongs to a number that is written there.
    pub(super) fn with_unit(
        &mut self,
        annotation: Option<Annotation>,
        value: Expr,
    ) -> Parsed<(Option<Annotation>, Expr)> {
        let Some(mut annotation) = annotation else { return Ok((None, value)) };
        let Some(unit) = annotation.unit.take() else { return Ok((Some(annotation), value)) };
        let rest = (annotation.elem.is_some() || annotation.shape.is_some()).then_some(annotation.clone());
        match with_unit_of(&unit, &value) {
            Some(value) => Ok((rest, value)),
            None => {
                let message = "the unit of a computed value is not declared";
                let help = "leave the unit out, or write it after the numbers, `20 [m/s]`";
                self.report(Diagnostic::error("PAL0202", annotation.span, message).help(help));
                Err(Failed)
            }
        }
    }
}

fn with_unit_of(unit: &Unit, value: &Expr) -> Option<Expr> {
    let kind = match &value.kind {
        &ExprKind::Int(n) => ExprKind::Quantity(n as f64, unit.clone()),
        &ExprKind::Real(x) => ExprKind::Quantity(x, unit.clone()),
        ExprKind::Unary(op, inner) => ExprKind::Unary(*op, Box::new(with_unit_of(unit, inner)?)),
        ExprKind::List(items) => {
            ExprKind::List(items.iter().map(|item| with_unit_of(unit, item)).collect::<Option<_>>()?)
        }
        _ => return None,
    };
    Some(Expr { kind, ..value.clone() })
}
