//! The name of an operation -> the operation and how its operands are written.

use palinode_core::{Constant, rules};

use super::lex::Kind;
use crate::op::{Axis, Literal, Op, Reduction, Rule};
use crate::types::Elem;

/// What follows a name.
pub(super) enum Form {
    /// `a, b`.
    Plain,
    /// A literal.
    Const,
    /// `<3> a`.
    Number(rules::Row),
    /// `<0> a, b`.
    Axis(fn(u8) -> Op),
    /// `<0,1> a, b`.
    Axes(fn(Vec<u8>) -> Op),
    /// `<f32> a`.
    Elem,
    /// `a[places]`.
    Read(fn(Vec<Axis>) -> Op),
    /// `a[places], x`.
    Update(fn(Vec<Axis>) -> Op),
    /// `a', b`.
    MatMul,
    /// `name(a, b)`.
    Call,
    /// `k in n (...) {...}`.
    For,
    /// `(...) {...} do (...) {...}`.
    While,
    /// `snapshots 3 k in n (...) {...} back k (...) (...) {...}`.
    Sweep,
    /// `c {...} else {...}`.
    If,
    /// `(...) {...}`.
    Fused,
}

/// An operation whose attributes are still to come.
pub(super) struct Operation {
    /// The operation, with attributes that mean nothing.
    pub(super) op: Op,
    pub(super) form: Form,
}

/// The operation of this name.
pub(super) fn operation(name: &str) -> Option<Operation> {
    thread_local! {
        static BY_NAME: std::collections::HashMap<&'static str, Op> =
            Op::all().into_iter().map(|op| (op.name(), op)).collect();
    }
    let op = BY_NAME.with(|by_name| by_name.get(name).cloned())?;
    let form = form(&op);
    Some(Operation { op, form })
}

/// How an operation is written.
pub(super) fn form(op: &Op) -> Form {
    match op {
        Op::Const(_) => Form::Const,
        Op::Map(rule) if rule.is_parametric() => Form::Number(rule.row),
        Op::Convert(_) => Form::Elem,
        Op::Dim(_) => Form::Axis(Op::Dim),
        Op::Concat(_) => Form::Axis(Op::Concat),
        Op::Broadcast(_) => Form::Axes(Op::Broadcast),
        Op::Permute(_) => Form::Axes(Op::Permute),
        Op::Reduce(Reduction::Sum, _) => Form::Axes(|axes| Op::Reduce(Reduction::Sum, axes)),
        Op::Reduce(Reduction::Max, _) => Form::Axes(|axes| Op::Reduce(Reduction::Max, axes)),
        Op::Reduce(Reduction::Min, _) => Form::Axes(|axes| Op::Reduce(Reduction::Min, axes)),
        Op::Read(_) => Form::Read(Op::Read),
        Op::Write(_) => Form::Update(Op::Write),
        Op::AddAt(_) => Form::Update(Op::AddAt),
        Op::MatMul { .. } => Form::MatMul,
        Op::Call(_) => Form::Call,
        Op::For { .. } => Form::For,
        Op::While { .. } => Form::While,
        Op::Sweep { .. } => Form::Sweep,
        Op::If => Form::If,
        Op::Fused => Form::Fused,
        Op::Map(_)
        | Op::Int(_)
        | Op::Compare(_)
        | Op::Logical(_)
        | Op::Select
        | Op::StopGradient
        | Op::Settled(_)
        | Op::Iota
        | Op::Reshape
        | Op::Push
        | Op::Resize
        | Op::Pack(_)
        | Op::Unpack(_)
        | Op::Outer { .. }
        | Op::AddOuter { .. }
        | Op::Linalg(_) => Form::Plain,
    }
}

impl Operation {
    /// The operation with what stands between `<` and `>`.
    pub(super) fn with(&self, attributes: &[&str]) -> Option<Op> {
        let one = || if let &[only] = attributes { Some(only) } else { None };
        match self.form {
            Form::Number(row) => Some(Op::Map(Rule { row, parameter: one()?.parse().ok()? })),
            Form::Axis(make) => Some(make(one()?.parse().ok()?)),
            Form::Axes(make) if attributes.len() <= 255 => {
                attributes.iter().map(|axis| axis.parse().ok()).collect::<Option<_>>().map(make)
            }
            Form::Elem => {
                let name = one()?;
                Elem::ALL.into_iter().find(|elem| elem.name() == name).map(Op::Convert)
            }
            _ => None,
        }
    }
}

/// The constants that have a name in the text form.
const CONSTANTS: [(Constant, &str); 5] = [
    (Constant::Pi, "pi"),
    (Constant::E, "e"),
    (Constant::Ln2, "ln2"),
    (Constant::Ln10, "ln10"),
    (Constant::TwoOverSqrtPi, "two_over_sqrt_pi"),
];

/// How the text form calls a named constant.
pub(super) fn constant_name(constant: Constant) -> &'static str {
    CONSTANTS.iter().find(|(other, _)| *other == constant).map_or("unknown", |(_, name)| name)
}

/// The literal that the next pieces of the text stand for.
pub(super) fn literal<'a>(next: &mut dyn FnMut() -> Kind<'a>) -> Result<Literal, String> {
    let Kind::Word(word) = next() else {
        return Err("expected a literal: `2.5`, `3i`, `true`, `pi`".to_string());
    };
    if let Some(&(constant, _)) = CONSTANTS.iter().find(|(_, name)| *name == word) {
        return Ok(Literal::Named(constant));
    }
    let no_literal =
        || format!("`{word}` is not a literal: `2.5` is real, `3i` an integer, `true` a truth value");
    match word {
        "true" => return Ok(Literal::Bool(true)),
        "false" => return Ok(Literal::Bool(false)),
        "inf" => return Ok(Literal::Real(f64::INFINITY)),
        "-inf" => return Ok(Literal::Real(f64::NEG_INFINITY)),
        "nan" => {
            let bits = match (next(), next()) {
                (Kind::Mark(':'), Kind::Word(bits)) => u64::from_str_radix(bits, 16).ok(),
                _ => None,
            };
            return match bits.map(f64::from_bits) {
                Some(value) if value.is_nan() => Ok(Literal::Real(value)),
                _ => Err("a NaN is written with its bits: `nan:7ff8000000000000`".to_string()),
            };
        }
        _ => {}
    }
    if let Some(digits) = word.strip_suffix('i') {
        return digits.parse().map(Literal::Int).map_err(|_| no_literal());
    }
    let is_real = word.contains(['.', 'e']) && word.contains(|c: char| c.is_ascii_digit());
    match word.parse() {
        Ok(value) if is_real => Ok(Literal::Real(value)),
        _ => Err(no_literal()),
    }
}
