//! What rewriting rules ask about values.

use palinode_core::rules::Row;

use super::rewrite::{Def, Writer};
use crate::op::{Literal, Op};
use crate::program::Value;
use crate::types::Elem;

/// How far definitions are followed.
const MAX_STEPS: usize = 16;

/// The scalar that fills an array; a scalar fills itself.
pub(super) fn filling(w: &Writer<'_>, value: Value) -> Option<Value> {
    if w.ty(value).is_scalar() {
        return Some(value);
    }
    w.args_of(value, &Op::Broadcast(Vec::new())).map(|args| args[0])
}

/// The real number that a value is everywhere.
pub(super) fn real(w: &Writer<'_>, value: Value) -> Option<f64> {
    let scalar = filling(w, value)?;
    // There are no literals of single precision, only literals that were rounded.
    let rounded = w.args_of(scalar, &Op::Convert(Elem::F32)).map(|args| args[0]);
    match w.literal(rounded.unwrap_or(scalar))? {
        Literal::Real(number) if rounded.is_some() => Some(f64::from(number as f32)),
        Literal::Real(number) => Some(number),
        Literal::Named(_) | Literal::Int(_) | Literal::Bool(_) => None,
    }
}

/// The integer that a value is everywhere.
pub(super) fn int(w: &Writer<'_>, value: Value) -> Option<i64> {
    match w.literal(filling(w, value)?)? {
        Literal::Int(number) => Some(number),
        Literal::Real(_) | Literal::Named(_) | Literal::Bool(_) => None,
    }
}

/// The truth value that a value is everywhere.
pub(super) fn truth(w: &Writer<'_>, value: Value) -> Option<bool> {
    match w.literal(filling(w, value)?)? {
        Literal::Bool(holds) => Some(holds),
        Literal::Real(_) | Literal::Named(_) | Literal::Int(_) => None,
    }
}

/// Whether `x + 0` may be replaced by `x`: the only difference is that a zero of `x` keeps its minus sign, so
/// either `x` is never -0, or that zero comes out of a strong product, whose sign is not kept.
pub(super) fn zero_has_no_sign(w: &Writer<'_>, value: Value) -> bool {
    Zeros { w, steps: MAX_STEPS }.never_minus(value)
}

/// Whether a zero of `x` has no sign worth keeping because it comes out of a strong product.
pub(super) fn is_strong(w: &Writer<'_>, value: Value) -> bool {
    Zeros { w, steps: MAX_STEPS }.strong(value)
}

struct Zeros<'a, 'b> {
    w: &'a Writer<'b>,
    /// How many definitions may still be looked at.
    steps: usize,
}

impl Zeros<'_, '_> {
    fn def(&mut self, value: Value) -> Option<Def> {
        self.steps = self.steps.checked_sub(1)?;
        self.w.def(value)
    }

    fn never_minus(&mut self, value: Value) -> bool {
        if let Some(number) = real(self.w, value) {
            return number.to_bits() != (-0.0_f64).to_bits();
        }
        let Some(def) = self.def(value) else {
            return false;
        };
        let (op, args) = &def;
        match op {
            Op::Map(rule) => match rule.row {
                Row::StrongMul | Row::Abs | Row::Exp | Row::Exp2 | Row::Cosh => true,
                // A sum is -0 only if both terms are; a difference only if it is -0 minus +0.
                Row::Add => self.never_minus(args[0]) || self.never_minus(args[1]),
                Row::Subtract => self.never_minus(args[0]) || self.strong(args[1]),
                Row::Negate => self.strong(args[0]),
                _ => false,
            },
            Op::Select => self.never_minus(args[1]) && self.never_minus(args[2]),
            Op::Convert(_) => self.w.ty(args[0]).elem == Elem::Int || self.never_minus(args[0]),
            Op::Broadcast(_) | Op::Reshape | Op::Permute(_) => self.never_minus(args[0]),
            _ => false,
        }
    }

    fn strong(&mut self, value: Value) -> bool {
        let Some(def) = self.def(value) else {
            return false;
        };
        let args = &def.1;
        if let Op::Map(rule) = def.0 {
            return match rule.row {
                Row::StrongMul => true,
                Row::Add | Row::Subtract => self.strong(args[0]) || self.strong(args[1]),
                Row::Negate => self.strong(args[0]),
                _ => false,
            };
        }
        let moves = matches!(def.0, Op::Convert(_) | Op::Broadcast(_) | Op::Reshape | Op::Permute(_));
        moves && self.strong(args[0])
    }
}
