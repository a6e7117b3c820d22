//! Operators on values: integers stay integers where they can, and become real where reals are.

use super::body::Body;
use super::value::{Known, Val, describe, describe_rank};
use crate::diagnostic::Diagnostic;
use crate::interp::scalar_ops::integer;
use crate::op::{Comparison, IntOp, Logical, Op, Rule};
use crate::pal::syntax::ast::{BinaryOp, UnaryOp};
use crate::program::Value;
use crate::types::{Elem, Span};
use palinode_core::rules;

impl Body<'_, '_> {
    /// Integer arithmetic; what is known is computed here.
    pub(super) fn int(&mut self, op: IntOp, a: &Val, b: &Val) -> Val {
        if let (Some(x), Some(y)) = (a.known_int(), b.known_int())
            && let Ok(z) = integer(op, x, y)
        {
            return Val::int(z);
        }
        let neutral = match (op, a.known_int(), b.known_int()) {
            (IntOp::Add, Some(0), _) | (IntOp::Mul, Some(1), _) => Some(b),
            (IntOp::Add | IntOp::Sub, _, Some(0)) | (IntOp::Mul | IntOp::Div, _, Some(1)) => Some(a),
            _ => None,
        };
        if let Some(same) = neutral
            && same.ty.rank == a.ty.rank.max(b.ty.rank)
        {
            return same.clone();
        }
        let offset = match (op, a.as_offset(), b.as_offset()) {
            (IntOp::Sub, Some((x, c)), Some((y, d))) if x == y && a.known.is_none() && b.known.is_none() => {
                if let Some(difference) = c.checked_sub(d) {
                    return Val::int(difference);
                }
                None
            }
            (IntOp::Add, Some((x, c)), _) if b.known_int().is_some() => sum(x, c, b.known_int()),
            (IntOp::Add, _, Some((y, d))) if a.known_int().is_some() => sum(y, d, a.known_int()),
            (IntOp::Sub, Some((x, c)), _) => sum(x, c, b.known_int().and_then(i64::checked_neg)),
            _ => None,
        };
        let lens = common_lens(a, b);
        let result = self.emit(Op::Int(op), &[a, b]).with_lens(lens);
        Val { offset, ..result }
    }

    /// A row of the rule table on real values of fitting ranks.
    pub(super) fn rule(&mut self, rule: impl Into<Rule>, args: &[&Val]) -> Val {
        let args: Vec<Val> = args.iter().map(|arg| self.realized(arg)).collect();
        let lens = args.iter().find(|arg| arg.ty.rank > 0).map(|arg| arg.lens.clone()).unwrap_or_default();
        let args: Vec<&Val> = args.iter().collect();
        self.emit(Op::Map(rule.into()), &args).with_lens(lens)
    }

    /// Checks that operands can be combined element by element.
    pub(super) fn spread(&mut self, what: &str, a: &Val, b: &Val, spans: (Span, Span)) -> Option<()> {
        if a.ty.rank != b.ty.rank && a.ty.rank != 0 && b.ty.rank != 0 {
            let message = format!(
                "`{what}` works element by element: {} and {} do not match",
                describe_rank(a.ty.rank),
                describe_rank(b.ty.rank)
            );
            let problem = Diagnostic::error("PAL0210", spans.0, message)
                .saying(describe(a.ty))
                .and(spans.1, describe(b.ty))
                .help("broadcast the smaller one: `broadcast(v, n, m)` repeats rows, `repeat_columns(v, m)` columns");
            return self.error(problem);
        }
        for (axis, pair) in a.lens.iter().zip(&b.lens).enumerate() {
            if let (Some(x), Some(y)) = pair
                && x != y
            {
                let message =
                    format!("`{what}` works element by element: lengths {x} and {y} along axis {axis}");
                let problem = Diagnostic::error("PAL0211", spans.0, message)
                    .saying(format!("length {x}"))
                    .and(spans.1, format!("length {y}"));
                return self.error(problem);
            }
        }
        Some(())
    }

    fn no_truth(&mut self, what: &str, val: &Val, span: Span) -> Option<()> {
        if val.ty.elem != Elem::Bool {
            return Some(());
        }
        let problem =
            Diagnostic::error("PAL0209", span, format!("`{what}` needs numbers, not {}", describe(val.ty)))
                .help("`select(c, 1, 0)` makes a number of a truth value");
        self.error(problem)
    }

    fn only_truth(&mut self, what: &str, val: &Val, span: Span) -> Option<()> {
        if val.ty.elem == Elem::Bool {
            return Some(());
        }
        let problem = Diagnostic::error(
            "PAL0209",
            span,
            format!("`{what}` needs truth values, not {}", describe(val.ty)),
        )
        .help("compare first, for example `x > 0`");
        self.error(problem)
    }

    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        a: &Val,
        b: &Val,
        spans: (Span, Span),
        span: Span,
    ) -> Option<Val> {
        let what = op.name();
        self.b.at(span);
        match op {
            BinaryOp::And | BinaryOp::Or => {
                self.only_truth(what, a, spans.0)?;
                self.only_truth(what, b, spans.1)?;
                self.spread(what, a, b, spans)?;
                let kind = if op == BinaryOp::And { Logical::And } else { Logical::Or };
                return Some(self.emit(Op::Logical(kind), &[a, b]).with_lens(common_lens(a, b)));
            }
            BinaryOp::MatMul => return self.matmul(a, b, spans, span),
            BinaryOp::Equal | BinaryOp::NotEqual if a.ty.elem == Elem::Bool && b.ty.elem == Elem::Bool => {
                self.spread(what, a, b, spans)?;
                let lens = common_lens(a, b);
                let opposite = self.emit(Op::Logical(Logical::Not), &[b]).with_lens(b.lens.clone());
                let (x, y) = if op == BinaryOp::Equal { (b, &opposite) } else { (&opposite, b) };
                return Some(self.emit(Op::Select, &[a, x, y]).with_lens(lens));
            }
            _ => {}
        }
        self.no_truth(what, a, spans.0)?;
        self.no_truth(what, b, spans.1)?;
        self.spread(what, a, b, spans)?;
        if op.is_comparison() {
            return Some(self.comparison(op, a, b));
        }
        let integers = a.ty.elem == Elem::Int && b.ty.elem == Elem::Int;
        Some(match op {
            BinaryOp::Add if integers => self.int(IntOp::Add, a, b),
            BinaryOp::Subtract if integers => self.int(IntOp::Sub, a, b),
            BinaryOp::Multiply if integers => self.int(IntOp::Mul, a, b),
            BinaryOp::FloorDivide if integers => self.int(IntOp::Div, a, b),
            BinaryOp::Remainder if integers => self.int(IntOp::Rem, a, b),
            BinaryOp::Add => self.rule(rules::Row::Add, &[a, b]),
            BinaryOp::Subtract => self.rule(rules::Row::Subtract, &[a, b]),
            BinaryOp::Multiply => self.rule(rules::Row::Multiply, &[a, b]),
            BinaryOp::Divide => self.rule(rules::Row::Divide, &[a, b]),
            BinaryOp::FloorDivide => {
                let quotient = self.rule(rules::Row::Divide, &[a, b]);
                self.rule(rules::Row::Floor, &[&quotient])
            }
            BinaryOp::Remainder => self.remainder(a, b),
            BinaryOp::Power => self.power(a, b),
            _ => return None,
        })
    }

    /// The remainder with the sign of the divisor, as for integers.
    fn remainder(&mut self, a: &Val, b: &Val) -> Val {
        let (a, b) = (self.realized(a), self.realized(b));
        let rest = self.rule(rules::Row::Remainder, &[&a, &b]);
        let product = self.rule(rules::Row::Multiply, &[&rest, &b]);
        let lens = product.lens.clone();
        let wrong =
            self.emit(Op::Compare(Comparison::Less), &[&product, &Val::real(0.0)]).with_lens(lens.clone());
        let shift = self.emit(Op::Select, &[&wrong, &b, &Val::real(0.0)]).with_lens(lens);
        self.rule(rules::Row::Add, &[&rest, &shift])
    }

    pub(super) fn power(&mut self, a: &Val, b: &Val) -> Val {
        let exponent = b.known_int();
        match (a.ty.elem, exponent) {
            (Elem::Int, Some(n)) if (0..=64).contains(&n) => self.integer_power(a, n),
            (_, Some(n)) if i32::try_from(n).is_ok() => {
                let rule = Rule { row: rules::Row::Powi, parameter: n as i32 };
                self.rule(rule, &[a])
            }
            _ => self.rule(rules::Row::Powf, &[a, b]),
        }
    }

    /// By squaring.
    fn integer_power(&mut self, a: &Val, n: i64) -> Val {
        if n == 0 {
            return match a.ty.rank {
                0 => Val::int(1),
                _ => {
                    let zero = self.emit(Op::Int(IntOp::Mul), &[a, &Val::int(0)]);
                    self.int(IntOp::Add, &zero, &Val::int(1))
                }
            };
        }
        let (mut square, mut rest) = (a.clone(), n);
        let mut result: Option<Val> = None;
        loop {
            if rest & 1 == 1 {
                result = Some(match result {
                    None => square.clone(),
                    Some(so_far) => self.int(IntOp::Mul, &so_far, &square),
                });
            }
            rest >>= 1;
            if rest == 0 {
                return result.expect("n is at least 1");
            }
            square = self.int(IntOp::Mul, &square.clone(), &square);
        }
    }

    fn comparison(&mut self, op: BinaryOp, a: &Val, b: &Val) -> Val {
        let integers = a.ty.elem == Elem::Int && b.ty.elem == Elem::Int;
        let (a, b) = if integers { (a.clone(), b.clone()) } else { (self.realized(a), self.realized(b)) };
        let lens = common_lens(&a, &b);
        let (kind, x, y) = match op {
            BinaryOp::Less => (Comparison::Less, &a, &b),
            BinaryOp::Greater => (Comparison::Less, &b, &a),
            BinaryOp::LessEq => (Comparison::LessEq, &a, &b),
            BinaryOp::GreaterEq => (Comparison::LessEq, &b, &a),
            _ => (Comparison::Equal, &a, &b),
        };
        let result = self.emit(Op::Compare(kind), &[x, y]).with_lens(lens.clone());
        if op == BinaryOp::NotEqual {
            return self.emit(Op::Logical(Logical::Not), &[&result]).with_lens(lens);
        }
        result
    }

    pub(super) fn unary(&mut self, op: UnaryOp, val: &Val, inner: Span, span: Span) -> Option<Val> {
        self.b.at(span);
        match op {
            UnaryOp::Not => {
                self.only_truth("not", val, inner)?;
                Some(self.emit(Op::Logical(Logical::Not), &[val]).with_lens(val.lens.clone()))
            }
            UnaryOp::Negate => {
                self.no_truth("-", val, inner)?;
                Some(match val.known {
                    Some(Known::Real(x)) => Val::real(-x),
                    _ if val.ty.elem == Elem::Int => self.int(IntOp::Sub, &Val::int(0), val),
                    _ => self.rule(rules::Row::Negate, &[val]),
                })
            }
        }
    }

    pub(super) fn matmul(&mut self, a: &Val, b: &Val, spans: (Span, Span), span: Span) -> Option<Val> {
        self.b.at(span);
        for (val, place) in [(a, spans.0), (b, spans.1)] {
            self.no_truth("@", val, place)?;
            if !matches!(val.ty.rank, 1 | 2) {
                let message = format!("`@` multiplies matrices and vectors, not {}", describe(val.ty));
                return self.error(
                    Diagnostic::error("PAL0210", place, message).help("multiply by a number with `*`"),
                );
            }
        }
        let inner = (a.lens[usize::from(a.ty.rank) - 1], b.lens[0]);
        if let (Some(x), Some(y)) = inner
            && x != y
        {
            let problem =
                Diagnostic::error("PAL0211", spans.0, format!("the inner lengths of `@` are {x} and {y}"))
                    .saying(format!("{x} columns"))
                    .and(spans.1, format!("{y} rows"));
            return self.error(problem);
        }
        let (a, b) = (self.realized(a), self.realized(b));
        let mut lens = a.lens[..a.lens.len() - 1].to_vec();
        lens.extend_from_slice(&b.lens[1..]);
        let op = Op::MatMul { a_transposed: false, b_transposed: false, strong: false };
        Some(self.emit(op, &[&a, &b]).with_lens(lens))
    }
}

fn sum(value: Value, a: i64, b: Option<i64>) -> Option<(Value, i64)> {
    Some((value, a.checked_add(b?)?))
}

/// The lengths of two operands that are combined element by element.
pub(super) fn common_lens(a: &Val, b: &Val) -> Vec<Option<i64>> {
    match (a.ty.rank, b.ty.rank) {
        (_, 0) => a.lens.clone(),
        (0, _) => b.lens.clone(),
        _ => a.lens.iter().zip(&b.lens).map(|(a, b)| a.or(*b)).collect(),
    }
}
