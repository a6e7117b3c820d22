//! Expressions whose value is known before anything runs: defaults, and what they may be built from.

use super::Default;
use super::syntax::ast::{BinaryOp, Expr, ExprKind, UnaryOp};
use super::units::Unit;
use crate::diagnostic::Diagnostic;
use palinode_core::rules;
use std::collections::HashMap;
use std::sync::Arc;

/// The most elements that a default may have.
const MAX_ELEMENTS: usize = 1_000_000;

/// The value of an expression, in SI.
pub(crate) fn evaluate(expr: &Expr, constants: &HashMap<Arc<str>, &Expr>) -> Result<Default, Diagnostic> {
    Evaluator { constants, fuel: 10_000 }.expr(expr)
}

/// The unit of a number with a unit, possibly negative or in a list.
pub(crate) fn unit_of(expr: &Expr) -> Option<&Unit> {
    match &expr.kind {
        ExprKind::Quantity(_, unit) => Some(unit),
        ExprKind::Unary(UnaryOp::Negate, inner) => unit_of(inner),
        ExprKind::List(items) => items.first().and_then(unit_of),
        _ => None,
    }
}

struct Evaluator<'a> {
    constants: &'a HashMap<Arc<str>, &'a Expr>,
    /// Constants that refer to each other in a ring end here.
    fuel: u32,
}

fn refuse(expr: &Expr, what: &str) -> Diagnostic {
    Diagnostic::error("PAL0220", expr.span, format!("{what} is not known before the program runs"))
        .help("a default is a number, a list of numbers, `zeros(n)`, `ones(n)`, `fill(x, n)`, or arithmetic on these")
}

impl Evaluator<'_> {
    fn expr(&mut self, expr: &Expr) -> Result<Default, Diagnostic> {
        match &expr.kind {
            &ExprKind::Int(n) => Ok(Default::Scalar(n as f64)),
            &ExprKind::Real(x) => Ok(Default::Scalar(x)),
            ExprKind::Quantity(x, unit) => Ok(Default::Scalar(unit.to_si(*x))),
            ExprKind::Name(name) => self.name(expr, name),
            ExprKind::List(items) => self.list(expr, items),
            ExprKind::Unary(UnaryOp::Negate, inner) => Ok(map(self.expr(inner)?, |x| -x)),
            ExprKind::Chain(first, rest) => {
                let first = self.expr(first)?;
                rest.iter().try_fold(first, |left, (op, right)| self.binary(expr, *op, left, right))
            }
            ExprKind::Call(name, args) => self.call(expr, &name.text, args),
            ExprKind::Error => Ok(Default::Scalar(0.0)),
            ExprKind::Bool(_)
            | ExprKind::Unary(UnaryOp::Not, _)
            | ExprKind::Index(..)
            | ExprKind::Transpose(_)
            | ExprKind::Choice(..) => Err(refuse(expr, "this")),
        }
    }

    fn name(&mut self, expr: &Expr, name: &Arc<str>) -> Result<Default, Diagnostic> {
        if let Some(value) = self.constants.get(name) {
            self.fuel = self.fuel.saturating_sub(1);
            if self.fuel == 0 {
                return Err(refuse(expr, &format!("`{name}`")));
            }
            // Rings of constants are cut by the depth of the fuel that is left.
            self.fuel /= 2;
            return self.expr(value);
        }
        match &**name {
            "pi" => Ok(Default::Scalar(core::f64::consts::PI)),
            "inf" => Ok(Default::Scalar(f64::INFINITY)),
            _ => Err(refuse(expr, &format!("`{name}`"))),
        }
    }

    fn list(&mut self, expr: &Expr, items: &[Expr]) -> Result<Default, Diagnostic> {
        let mut shape: Option<Vec<usize>> = None;
        let mut data = Vec::new();
        for item in items {
            let value = self.expr(item)?;
            match &shape {
                Some(first) if first != value.shape() => return Err(uneven(expr, item)),
                _ => shape = Some(value.shape().to_vec()),
            }
            data.extend_from_slice(value.data());
        }
        let mut shape = shape.unwrap_or_default();
        shape.insert(0, items.len());
        Ok(Default::Array { shape, data })
    }

    fn binary(&mut self, expr: &Expr, op: BinaryOp, a: Default, b: &Expr) -> Result<Default, Diagnostic> {
        let combine: fn(f64, f64) -> f64 = match op {
            BinaryOp::Add => |a, b| a + b,
            BinaryOp::Subtract => |a, b| a - b,
            BinaryOp::Multiply => |a, b| a * b,
            BinaryOp::Divide => |a, b| a / b,
            BinaryOp::FloorDivide => |a, b| (a / b).floor(),
            BinaryOp::Power => f64::powf,
            _ => return Err(refuse(expr, "this")),
        };
        match (a, self.expr(b)?) {
            (Default::Scalar(a), Default::Scalar(b)) => Ok(Default::Scalar(combine(a, b))),
            (Default::Scalar(a), b) => Ok(map(b, |b| combine(a, b))),
            (a, Default::Scalar(b)) => Ok(map(a, |a| combine(a, b))),
            (Default::Array { shape, data }, Default::Array { shape: other, data: with })
                if shape == other =>
            {
                let data = data.iter().zip(&with).map(|(&a, &b)| combine(a, b)).collect();
                Ok(Default::Array { shape, data })
            }
            _ => Err(uneven(expr, b)),
        }
    }

    fn call(&mut self, expr: &Expr, name: &str, args: &[Expr]) -> Result<Default, Diagnostic> {
        let mut values = args.iter().map(|arg| self.expr(arg)).collect::<Result<Vec<_>, _>>()?;
        match name {
            "zeros" => self.filled(expr, 0.0, &values),
            "ones" => self.filled(expr, 1.0, &values),
            "fill" if !values.is_empty() => match values[0] {
                Default::Scalar(x) => self.filled(expr, x, &values[1..]),
                Default::Array { .. } => Err(refuse(expr, "this")),
            },
            "range" if values.len() == 1 => {
                let Default::Array { shape, mut data } = self.filled(expr, 0.0, &values)? else {
                    return Err(refuse(expr, "this"));
                };
                data.iter_mut().enumerate().for_each(|(at, x)| *x = at as f64);
                Ok(Default::Array { shape, data })
            }
            "linspace" if values.len() == 3 => {
                let (&[a], &[b]) = (values[0].data(), values[1].data()) else {
                    return Err(refuse(expr, "this"));
                };
                let Default::Array { shape, mut data } = self.filled(expr, 0.0, &values[2..])? else {
                    return Err(refuse(expr, "this"));
                };
                let last = data.len().saturating_sub(1).max(1) as f64;
                data.iter_mut().enumerate().for_each(|(at, x)| *x = a + (b - a) * (at as f64 / last));
                Ok(Default::Array { shape, data })
            }
            _ if values.len() == 1 => {
                let name = super::spelling::rule_alias(name).unwrap_or(name);
                match rules::Row::named(name) {
                    Some(row)
                        if row.arity() == 1 && !matches!(row, rules::Row::Powi | rules::Row::Polygamma) =>
                    {
                        Ok(map(values.remove(0), |x| row.value(0, &[x])))
                    }
                    _ => Err(refuse(expr, "this")),
                }
            }
            _ => Err(refuse(expr, "this")),
        }
    }

    fn filled(&mut self, expr: &Expr, x: f64, lengths: &[Default]) -> Result<Default, Diagnostic> {
        let mut shape = Vec::new();
        let mut size = 1_usize;
        for length in lengths {
            let n = match length {
                Default::Scalar(n) if *n >= 0.0 && *n == n.trunc() && *n <= MAX_ELEMENTS as f64 => {
                    *n as usize
                }
                _ => return Err(refuse(expr, "a length that is not a whole number up to 1,000,000")),
            };
            size = size.saturating_mul(n);
            shape.push(n);
        }
        if shape.is_empty() || size > MAX_ELEMENTS {
            return Err(refuse(expr, "an array of no axes or more than 1,000,000 elements"));
        }
        Ok(Default::Array { shape, data: vec![x; size] })
    }
}

fn uneven(expr: &Expr, item: &Expr) -> Diagnostic {
    Diagnostic::error("PAL0211", item.span, "this part has another shape than the ones before it")
        .and(expr.span, "in this list")
}

fn map(value: Default, f: impl Fn(f64) -> f64) -> Default {
    match value {
        Default::Scalar(x) => Default::Scalar(f(x)),
        Default::Array { shape, mut data } => {
            data.iter_mut().for_each(|x| *x = f(*x));
            Default::Array { shape, data }
        }
    }
}
