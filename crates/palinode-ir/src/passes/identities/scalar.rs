//! Identities of elementwise operations. Operands may be arrays; what stands for a result has the result's
//! type.

use smallvec::smallvec;

use palinode_core::rules::Row;

use crate::op::{Comparison, Literal, Logical, Op, Rule};
use crate::passes::facts::{is_strong, real as real_of, truth, zero_has_no_sign};
use crate::passes::rewrite::Writer;
use crate::program::{Inst, Value};
use crate::types::{Elem, Type};

fn is_plus_zero(number: Option<f64>) -> bool {
    number.is_some_and(|number| number.to_bits() == 0)
}

fn is_minus_zero(number: Option<f64>) -> bool {
    number.is_some_and(|number| number.to_bits() == (-0.0_f64).to_bits())
}

fn negated(w: &mut Writer<'_>, x: Value) -> Value {
    w.emit(Op::rule(Row::Negate), vec![x])
}

pub(super) fn real(w: &mut Writer<'_>, rule: Rule, args: &[Value], result: Value) -> Option<Value> {
    let ty = w.ty(result);
    let fits = |w: &Writer<'_>, x: Value| w.ty(x) == ty;
    let is_row = |w: &Writer<'_>, x: Value, row: Row| w.args_of(x, &Op::rule(row)).map(|args| args[0]);
    match rule.row {
        Row::Negate => is_row(w, args[0], Row::Negate),
        Row::Abs => {
            if let Some(inner) = is_row(w, args[0], Row::Negate) {
                return Some(w.emit(Op::rule(Row::Abs), vec![inner]));
            }
            is_row(w, args[0], Row::Abs).map(|_| args[0])
        }
        Row::Powi if rule.parameter == 1 => Some(args[0]),
        Row::Add => {
            for (x, other) in [(args[0], args[1]), (args[1], args[0])] {
                if let Some(inner) = is_row(w, other, Row::Negate) {
                    return Some(w.emit(Op::rule(Row::Subtract), vec![x, inner]));
                }
            }
            for (x, other) in [(args[0], args[1]), (args[1], args[0])] {
                let number = real_of(w, other);
                let exact = is_minus_zero(number) || (is_plus_zero(number) && zero_has_no_sign(w, x));
                if fits(w, x) && exact {
                    return Some(x);
                }
            }
            None
        }
        Row::Subtract => {
            if let Some(inner) = is_row(w, args[1], Row::Negate) {
                return Some(w.emit(Op::rule(Row::Add), vec![args[0], inner]));
            }
            let (first, second) = (real_of(w, args[0]), real_of(w, args[1]));
            let exact = is_plus_zero(second) || (is_minus_zero(second) && zero_has_no_sign(w, args[0]));
            if fits(w, args[0]) && exact {
                return Some(args[0]);
            }
            let exact = is_minus_zero(first) || (is_plus_zero(first) && is_strong(w, args[1]));
            (fits(w, args[1]) && exact).then(|| negated(w, args[1]))
        }
        Row::Multiply | Row::StrongMul => {
            for (x, other) in [(args[0], args[1]), (args[1], args[0])] {
                let number = real_of(w, other);
                if number == Some(1.0) && fits(w, x) {
                    return Some(x);
                }
                if number == Some(-1.0) && fits(w, x) {
                    return Some(negated(w, x));
                }
                if rule.row == Row::StrongMul && number == Some(0.0) {
                    return Some(zero(w, ty, other, x));
                }
            }
            negated_later(w, rule, args)
        }
        Row::Divide => match real_of(w, args[1]) {
            Some(1.0) if fits(w, args[0]) => Some(args[0]),
            Some(-1.0) if fits(w, args[0]) => Some(negated(w, args[0])),
            Some(_) | None => negated_later(w, rule, args),
        },
        Row::Select => {
            let chosen = if real_of(w, args[0])? == 0.0 { args[2] } else { args[1] };
            fits(w, chosen).then_some(chosen)
        }
        _ => None,
    }
}

/// A product or quotient of an operand that is negated is negated instead: sums take the sign.
fn negated_later(w: &mut Writer<'_>, rule: Rule, args: &[Value]) -> Option<Value> {
    let inner = |at: usize| w.args_of(args[at], &Op::rule(Row::Negate)).map(|inner| inner[0]);
    let (first, second) = (inner(0), inner(1));
    if first.is_none() && second.is_none() {
        return None;
    }
    let args = vec![first.unwrap_or(args[0]), second.unwrap_or(args[1])];
    let product = w.emit(Op::Map(rule), args);
    Some(if first.is_some() && second.is_some() { product } else { negated(w, product) })
}

/// A zero of type `ty`, where `zero` is one everywhere and `other` is the other factor; at least one has the
/// result's shape.
fn zero(w: &mut Writer<'_>, ty: Type, zero: Value, other: Value) -> Value {
    let is_plus = is_plus_zero(real_of(w, zero));
    if w.ty(zero) == ty && is_plus {
        return zero;
    }
    let mut scalar = w.constant(Literal::Real(0.0));
    if ty.elem == Elem::F32 {
        scalar = w.emit(Op::Convert(Elem::F32), vec![scalar]);
    }
    if ty.is_scalar() {
        return scalar;
    }
    let array = if w.ty(other) == ty { other } else { zero };
    let lengths: Vec<Value> = (0..ty.rank).map(|axis| w.emit(Op::Dim(axis), vec![array])).collect();
    w.emit(Op::Broadcast(Vec::new()), [&[scalar], &lengths[..]].concat())
}

pub(super) fn compare(w: &mut Writer<'_>, op: Comparison, args: &[Value], result: Value) -> Option<Value> {
    // A NaN is not equal to itself: only integers.
    let known = args[0] == args[1] && w.ty(args[0]) == Type::INT && w.ty(result).is_scalar();
    let holds = match op {
        Comparison::Less => false,
        Comparison::LessEq | Comparison::Equal => true,
    };
    known.then(|| w.constant(Literal::Bool(holds)))
}

pub(super) fn logical(w: &mut Writer<'_>, op: Logical, args: &[Value], result: Value) -> Option<Value> {
    let ty = w.ty(result);
    match op {
        Logical::Not => w.args_of(args[0], &Op::Logical(Logical::Not)).map(|inner| inner[0]),
        Logical::And | Logical::Or => {
            let neutral = op == Logical::And;
            for (x, other) in [(args[0], args[1]), (args[1], args[0])] {
                let known = truth(w, other);
                if w.ty(x) == ty && (x == other || known == Some(neutral)) {
                    return Some(x);
                }
                if w.ty(other) == ty && known == Some(!neutral) {
                    return Some(other);
                }
            }
            None
        }
    }
}

pub(super) fn select(w: &mut Writer<'_>, inst: &mut Inst) -> Option<Value> {
    let ty = w.ty(inst.results[0]);
    if let Some(&[condition]) = w.args_of(inst.args[0], &Op::Logical(Logical::Not)) {
        inst.args = smallvec![condition, inst.args[2], inst.args[1]];
    }
    // A choice by the same condition inside a choice is decided.
    for (side, inner) in [(1, 1), (2, 2)] {
        if let Some(nested) = w.args_of(inst.args[side], &Op::Select)
            && nested[0] == inst.args[0]
        {
            inst.args[side] = nested[inner];
        }
    }
    let (condition, a, b) = (inst.args[0], inst.args[1], inst.args[2]);
    if let Some(holds) = truth(w, condition) {
        let chosen = if holds { a } else { b };
        if w.ty(chosen) == ty {
            return Some(chosen);
        }
    }
    if a == b && w.ty(a) == ty {
        return Some(a);
    }
    if ty.elem == Elem::Bool && w.ty(condition) == ty {
        return match (truth(w, a), truth(w, b)) {
            (Some(true), Some(false)) => Some(condition),
            (Some(false), Some(true)) => Some(w.emit(Op::Logical(Logical::Not), vec![condition])),
            (Some(_) | None, Some(_) | None) => None,
        };
    }
    None
}

pub(super) fn convert(w: &mut Writer<'_>, elem: Elem, x: Value) -> Option<Value> {
    if w.ty(x).elem == elem {
        return Some(x);
    }
    // Single precision there and back.
    let inner = w.args_of(x, &Op::Convert(Elem::F64)).map(|inner| inner[0])?;
    (elem == Elem::F32 && w.ty(inner).elem == Elem::F32).then_some(inner)
}

pub(super) fn stop_gradient(w: &mut Writer<'_>, x: Value) -> Option<Value> {
    let stopped = !w.ty(x).is_real() || w.args_of(x, &Op::StopGradient).is_some();
    stopped.then_some(x)
}
