//! Identities of integers. What stands for a result never overflows where the original does not.

use smallvec::{SmallVec, smallvec};

use crate::op::{IntOp, Literal, Op};
use crate::passes::facts::int as int_of;
use crate::passes::rewrite::Writer;
use crate::program::{Value, Values};
use crate::types::Type;

/// How many definitions are looked up for one question.
const MAX_STEPS: usize = 24;
/// How many terms a sum of products may have, and factors a term.
const MAX_TERMS: usize = 8;
const MAX_FACTORS: usize = 3;

/// A literal that is at most the value, whatever the run; lengths are at least 0.
fn at_least(w: &Writer<'_>, value: Value, steps: &mut usize) -> Option<i64> {
    if let Some(number) = int_of(w, value) {
        return Some(number);
    }
    *steps = steps.checked_sub(1)?;
    let (op, args) = w.def(value)?;
    match op {
        Op::Dim(_) => Some(0),
        Op::Int(op) => {
            let bounds = (at_least(w, args[0], steps), at_least(w, args[1], steps));
            match (op, bounds) {
                (IntOp::Add, (Some(a), Some(b))) => a.checked_add(b),
                (IntOp::Mul, (Some(a), Some(b))) if a >= 0 && b >= 0 => a.checked_mul(b),
                (IntOp::Mul, _) => (args[0] == args[1]).then_some(0),
                (IntOp::Min, (Some(a), Some(b))) => Some(a.min(b)),
                (IntOp::Max, (Some(a), Some(b))) => Some(a.max(b)),
                (IntOp::Max, (a, b)) => a.or(b),
                (IntOp::Add | IntOp::Sub | IntOp::Min | IntOp::Div | IntOp::Rem, _) => None,
            }
        }
        _ => None,
    }
}

/// The larger of a literal and something that is certainly larger.
fn bounded(w: &Writer<'_>, op: IntOp, args: &[Value]) -> Option<Value> {
    if op != IntOp::Max {
        return None;
    }
    [(args[0], args[1]), (args[1], args[0])]
        .into_iter()
        .find(|&(x, other)| {
            int_of(w, other).is_some_and(|least| at_least(w, x, &mut { MAX_STEPS }) >= Some(least))
        })
        .map(|(x, _)| x)
}

/// A sum of products of values, each with a factor that is not 0; the product of nothing is 1. Ordered, each
/// product once.
type Sum = SmallVec<[(Values, i64); 2]>;

fn atom(value: Value) -> Sum {
    smallvec![(smallvec![value], 1)]
}

fn add_term(sum: &mut Sum, factors: Values, times: i64) -> Option<()> {
    match sum.binary_search_by(|(other, _)| other.cmp(&factors)) {
        Ok(at) => {
            sum[at].1 = sum[at].1.checked_add(times)?;
            if sum[at].1 == 0 {
                sum.remove(at);
            }
        }
        Err(at) => {
            if times != 0 {
                sum.insert(at, (factors, times));
            }
        }
    }
    (sum.len() <= MAX_TERMS).then_some(())
}

fn combined(op: IntOp, a: &Sum, b: &Sum) -> Option<Sum> {
    let mut all = Sum::new();
    match op {
        IntOp::Add | IntOp::Sub => {
            all.clone_from(a);
            for (factors, times) in b {
                let times = if op == IntOp::Sub { times.checked_neg()? } else { *times };
                add_term(&mut all, factors.clone(), times)?;
            }
        }
        IntOp::Mul => {
            for (left, m) in a {
                for (right, n) in b {
                    let mut factors: Values = left.iter().chain(right).copied().collect();
                    factors.sort_unstable();
                    if factors.len() > MAX_FACTORS {
                        return None;
                    }
                    add_term(&mut all, factors, m.checked_mul(*n)?)?;
                }
            }
        }
        IntOp::Div | IntOp::Rem | IntOp::Min | IntOp::Max => return None,
    }
    Some(all)
}

/// A value as a sum of products of values about which no more is known.
fn sum_of(w: &Writer<'_>, value: Value, steps: &mut usize) -> Sum {
    if let Some(number) = int_of(w, value) {
        return if number == 0 { Sum::new() } else { smallvec![(Values::new(), number)] };
    }
    let Some(left) = steps.checked_sub(1) else { return atom(value) };
    *steps = left;
    match w.def(value) {
        Some((Op::Int(op @ (IntOp::Add | IntOp::Sub | IntOp::Mul)), args)) if args.len() == 2 => {
            let (a, b) = (sum_of(w, args[0], steps), sum_of(w, args[1], steps));
            combined(op, &a, &b).unwrap_or_else(|| atom(value))
        }
        _ => atom(value),
    }
}

/// Sums and products whose terms cancel: `3 h - 2 h` is `h`, `(k + 1) h - k h` too. Only what takes at most
/// one operation is written: its value is the result, so it does not overflow.
fn collected(w: &mut Writer<'_>, op: IntOp, args: &[Value]) -> Option<Value> {
    let mut steps = MAX_STEPS;
    let (a, b) = (sum_of(w, args[0], &mut steps), sum_of(w, args[1], &mut steps));
    let sum = combined(op, &a, &b)?;
    let constant = |w: &mut Writer<'_>, number| w.constant(Literal::Int(number));
    let differs = |op_now: IntOp, x: Value, y: Option<i64>| {
        let same = op == op_now && args[0] == x && (y.is_some() && int_of(w, args[1]) == y);
        !same
    };
    match &sum[..] {
        [] => Some(constant(w, 0)),
        [(factors, number)] if factors.is_empty() => Some(constant(w, *number)),
        [(factors, 1)] if factors.len() == 1 => Some(factors[0]),
        [(factors, times)] if factors.len() == 1 => {
            let x = factors[0];
            // `x * c` and `c * x` stay as they are.
            let there = op == IntOp::Mul && args.contains(&x) && *times != -1;
            if there || *times == -1 {
                return None;
            }
            let times = constant(w, *times);
            Some(w.emit(Op::Int(IntOp::Mul), vec![x, times]))
        }
        [(factors, 1)] if factors.len() == 2 => {
            let there = op == IntOp::Mul && args.contains(&factors[0]) && args.contains(&factors[1]);
            (!there).then(|| w.emit(Op::Int(IntOp::Mul), factors.to_vec()))
        }
        [(none, number), (factors, 1)] if none.is_empty() && factors.len() == 1 => {
            let (op_now, offset) = if *number < 0 && *number != i64::MIN {
                (IntOp::Sub, -number)
            } else {
                (IntOp::Add, *number)
            };
            differs(op_now, factors[0], Some(offset)).then(|| plus_literal(w, factors[0], *number))
        }
        _ => None,
    }
}

/// A value as something plus a literal.
fn with_offset(w: &Writer<'_>, value: Value) -> (Value, i64) {
    let (base, offset) = if let Some(args) = w.args_of(value, &Op::Int(IntOp::Add)) {
        (args[0], int_of(w, args[1]))
    } else if let Some(args) = w.args_of(value, &Op::Int(IntOp::Sub)) {
        (args[0], int_of(w, args[1]).and_then(i64::checked_neg))
    } else {
        return (value, 0);
    };
    match offset {
        Some(offset) if w.ty(base) == w.ty(value) => (base, offset),
        Some(_) | None => (value, 0),
    }
}

fn plus_literal(w: &mut Writer<'_>, base: Value, offset: i64) -> Value {
    // `i64::MIN` cannot be negated.
    let (op, offset) =
        if offset < 0 && offset != i64::MIN { (IntOp::Sub, -offset) } else { (IntOp::Add, offset) };
    let literal = w.constant(Literal::Int(offset));
    w.emit(Op::Int(op), vec![base, literal])
}

pub(super) fn int(w: &mut Writer<'_>, op: IntOp, args: &[Value], result: Value) -> Option<Value> {
    let ty = w.ty(result);
    if ty.is_scalar()
        && let Some(simple) = bounded(w, op, args).or_else(|| collected(w, op, args))
    {
        return Some(simple);
    }
    let (a, b) = (args[0], args[1]);
    let (left, right) = (int_of(w, a), int_of(w, b));
    let fits = |w: &Writer<'_>, x: Value| w.ty(x) == ty;
    let literal = |w: &mut Writer<'_>, number: i64| ty.is_scalar().then(|| w.constant(Literal::Int(number)));
    match op {
        IntOp::Add => {
            if left == Some(0) && fits(w, b) {
                return Some(b);
            }
            // Literals go to the right, where they are collected.
            if left.is_some() && right.is_none() && fits(w, b) {
                return Some(w.emit(Op::Int(IntOp::Add), vec![b, a]));
            }
            offset_by(w, a, right?, ty)
        }
        IntOp::Sub => {
            if let Some(right) = right {
                return offset_by(w, a, right.checked_neg()?, ty);
            }
            let ((x, c), (y, d)) = (with_offset(w, a), with_offset(w, b));
            if x == y {
                return literal(w, c.checked_sub(d)?);
            }
            // (x + y) - y, (x + y) - x.
            let sum = w.args_of(a, &Op::Int(IntOp::Add)).map(<[Value]>::to_vec)?;
            let rest = if sum[1] == b {
                sum[0]
            } else if sum[0] == b {
                sum[1]
            } else {
                return None;
            };
            fits(w, rest).then_some(rest)
        }
        IntOp::Mul => {
            for (x, number) in [(a, right), (b, left)] {
                match number {
                    Some(1) if fits(w, x) => return Some(x),
                    Some(0) => return literal(w, 0),
                    Some(_) | None => {}
                }
            }
            None
        }
        IntOp::Div => (right == Some(1) && fits(w, a)).then_some(a),
        IntOp::Rem => {
            if right == Some(1) {
                literal(w, 0)
            } else {
                None
            }
        }
        IntOp::Min | IntOp::Max => (a == b).then_some(a),
    }
}

/// `a + number`, with the literals inside `a` collected.
fn offset_by(w: &mut Writer<'_>, a: Value, number: i64, ty: Type) -> Option<Value> {
    if w.ty(a) != ty {
        return None;
    }
    if number == 0 {
        return Some(a);
    }
    let (base, offset) = with_offset(w, a);
    if base == a {
        return None;
    }
    let sum = offset.checked_add(number)?;
    Some(if sum == 0 { base } else { plus_literal(w, base, sum) })
}
