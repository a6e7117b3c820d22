//! What is known of integers and truth values: lengths, numbers of rounds and conditions follow from it.
//!
//! Truth values are 0 and 1. `None` is a value that depends on data; of some of these a bound is known.

use crate::interp::scalar_ops::integer;
use crate::op::{IntOp, Literal, Logical, Op};
use crate::plan::known::Thing;
use crate::types::Type;

/// What an operation makes of bounds: where it grows with its operands, a bound.
fn bounded(op: IntOp, a: Thing, b: Thing) -> Thing {
    let grows = match op {
        IntOp::Add | IntOp::Mul | IntOp::Min | IntOp::Max => true,
        IntOp::Div => b.int().is_some_and(|divisor| divisor > 0),
        IntOp::Sub | IntOp::Rem => false,
    };
    let most = match (a.most(), b.most()) {
        (Some(a), Some(b)) if grows && a >= 0 && b >= 0 => integer(op, a, b).ok(),
        _ => None,
    };
    most.map_or(Thing::Int(None), Thing::UpTo)
}

/// The result of an operation on scalars.
pub(super) fn scalar(op: &Op, args: &[Thing], result: Type) -> Thing {
    if result.is_real() {
        return Thing::Real;
    }
    let int = |at: usize| args[at].int();
    let both = || int(0).zip(int(1));
    Thing::Int(match op {
        Op::Const(Literal::Int(n)) => Some(*n),
        Op::Const(Literal::Bool(b)) => Some(i64::from(*b)),
        Op::Int(op) => match both() {
            Some((a, b)) => integer(*op, a, b).ok(),
            None => return bounded(*op, args[0], args[1]),
        },
        Op::Compare(_) if matches!(args[0], Thing::Real) => None,
        Op::Compare(op) => both().map(|(a, b)| i64::from(op.holds(a, b))),
        Op::Logical(Logical::Not) => int(0).map(|a| 1 - a),
        // One side may decide.
        Op::Logical(Logical::And) => match (int(0), int(1)) {
            (Some(0), _) | (_, Some(0)) => Some(0),
            (a, b) => a.and(b),
        },
        Op::Logical(Logical::Or) => match (int(0), int(1)) {
            (Some(1), _) | (_, Some(1)) => Some(1),
            (a, b) => a.and(b),
        },
        Op::Select => match int(0) {
            Some(0) => int(2),
            Some(_) => int(1),
            None => None,
        },
        Op::Convert(_) | Op::StopGradient => int(0),
        Op::Const(Literal::Real(_) | Literal::Named(_)) | Op::Map(_) => None,
        // It depends on data, as far as is known here.
        _ => None,
    })
}
