//! Algebraic identities that hold bit by bit.
//!
//! Reals: `x * 1`, `x / 1`, `x - 0`, `x + -0.0` are `x`; `x * -1`, `x / -1` and `-0.0 - x` are `-x`; `-(-x)`
//! is `x`; `x + -y` is `x - y` and `x - -y` is `x + y`; `-x * y` is `-(x * y)`, and `-x / y` and `x / -y`
//! likewise, so that a sum may take the sign; `|-x|` and `||x||` are `|x|`; `powi<1>`. **Not** `x - x` or
//! `0 * x` (infinities and NaN), nor `x + 0` (it turns -0 into 0) unless `x` cannot be -0.
//!
//! Strong products, which only derivative code contains: `t` times 1 is `t`, times -1 is `-t`, times 0 is 0.
//! The sign of a zero that comes out of a strong product is *not kept*: `strong_mul(-2, 0)` is -0 in a run
//! and 0 here, and `t + 0` is `t` if `t` is a strong product, its negative, or a sum or difference with one.
//! This is the only place where simplification changes a bit of a result, and the results differ only in that
//! sign (unless derivative code divides by it, which it does not).
//!
//! Integers: sums of products are collected (`(k + 1) - k` is 1, `3 h - 2 h` is `h`), `k * 1`, `k * 0`, the
//! larger of 0 and a length, and so on. Truth values: the usual ones. Choices: `select` of one thing, of a
//! choice by the same condition, by a negated condition; a branch that only picks scalars is a `select`.
//!
//! Arrays: reads of what was just written, of fills and of `iota`; a write of what is there, or over a write;
//! reshapes of reshapes, permutations of permutations, broadcasts of broadcasts; elementwise operations on
//! fills, which become fills, or use the scalar directly. In all of these the array that is skipped was
//! checked by the instruction that disappears, so errors may vanish but not appear.

mod access;
mod array;
mod integer;
mod scalar;

use super::each;
use super::rewrite::{Enter, Rules, Writer, rewrite};
use crate::op::{Kind, Logical, Op};
use crate::program::{Function, Inst, Program, Value};

/// Applies identities.
pub fn identities(program: &Program) -> Program {
    each(program, "identities", identities_function)
}

pub(super) fn identities_function(function: &mut Function) {
    rewrite(function, &mut Identities);
}

pub(super) struct Identities;

impl Rules for Identities {
    fn enter(&mut self, w: &mut Writer<'_>, inst: &mut Inst) -> Enter {
        if matches!(inst.op, Op::If)
            && let Some(&[condition]) = w.args_of(inst.args[0], &Op::Logical(Logical::Not))
        {
            inst.args[0] = condition;
            inst.blocks.swap(0, 1);
        }
        Enter::Blocks
    }

    fn apply(&mut self, w: &mut Writer<'_>, inst: &mut Inst) -> Option<Vec<Value>> {
        let one = match &inst.op {
            Op::Map(rule) => scalar::real(w, *rule, &inst.args, inst.results[0]),
            Op::Int(op) => integer::int(w, *op, &inst.args, inst.results[0]),
            Op::Compare(op) => scalar::compare(w, *op, &inst.args, inst.results[0]),
            Op::Logical(op) => scalar::logical(w, *op, &inst.args, inst.results[0]),
            Op::Select => scalar::select(w, inst),
            Op::Convert(elem) => scalar::convert(w, *elem, inst.args[0]),
            Op::StopGradient => scalar::stop_gradient(w, inst.args[0]),
            Op::Broadcast(_) => array::broadcast(w, inst),
            Op::Reshape => array::reshape(w, inst),
            Op::Permute(_) => array::permute(w, inst),
            Op::Concat(_) | Op::Push => (inst.args.len() == 1).then(|| inst.args[0]),
            Op::Reduce(kind, axes) => array::reduce(w, *kind, axes, inst.args[0]),
            Op::Read(places) => access::read(w, places, &inst.args),
            Op::Write(_) => access::write(w, inst),
            Op::If => return branch(w, inst),
            Op::Fused => {
                array::fills_of_fused(w, inst);
                None
            }
            _ => None,
        };
        let is_filled = one.is_none() && inst.op.facts().kind == Kind::Elementwise;
        let one = if is_filled { array::fills(w, inst) } else { one };
        one.map(|value| vec![value])
    }
}

/// A branch both sides of which only name values: the same one, or scalars that a `select` can choose
/// between.
fn branch(w: &mut Writer<'_>, inst: &mut Inst) -> Option<Vec<Value>> {
    let condition = inst.args[0];
    let (yes, no) = (&inst.blocks[0].results, &inst.blocks[1].results);
    let simple = |(a, b): (&Value, &Value)| a == b || w.ty(*a).is_scalar();
    let is_empty = inst.blocks.iter().all(|block| block.insts.is_empty());
    if !is_empty || !yes.iter().zip(no).all(simple) {
        // What both sides name was there before.
        for (&result, (&a, &b)) in inst.results.iter().zip(yes.iter().zip(no)) {
            if a == b {
                w.replace(result, a);
            }
        }
        return None;
    }
    let choose = |(&a, &b): (&Value, &Value)| {
        if a == b { a } else { w.emit(Op::Select, vec![condition, a, b]) }
    };
    Some(yes.iter().zip(no).map(choose).collect())
}
