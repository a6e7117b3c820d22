//! What literals decide.
//!
//! - Operations on scalar literals become literals: integers (unless they overflow or divide by zero), truth
//!   values, and reals of kind `f64`, computed by the same code that a run on `f64` uses. A real operation
//!   that makes an infinity or a NaN out of finite numbers stays, so that a run can point to it. Named
//!   constants stay.
//! - `select` and `if` with a literal condition become the chosen side; `for` over a literal of at most 0 and
//!   `while false` become their initial values.
//! - A value that a loop hands on unchanged is captured instead of carried.

use palinode_core::rules::Row;

use super::dce::{keep_parts, keep_swept, swept_cotangents};
use super::each;
use super::rewrite::{Enter, Rules, Writer, rewrite};
use crate::interp::scalar_ops::integer;
use crate::op::{Comparison, IntOp, Literal, Logical, Op, Rule};
use crate::program::{Function, Inst, Program, Value};
use crate::types::{Elem, Type};

/// Folds literals.
pub fn fold(program: &Program) -> Program {
    each(program, "fold", fold_function)
}

pub(super) fn fold_function(function: &mut Function) {
    rewrite(function, &mut Fold);
}

pub(super) struct Fold;

impl Rules for Fold {
    fn enter(&mut self, w: &mut Writer<'_>, inst: &mut Inst) -> Enter {
        match inst.op {
            Op::If => match w.literal(inst.args[0]) {
                Some(Literal::Bool(holds)) => Enter::Splice(usize::from(!holds)),
                Some(Literal::Real(_) | Literal::Named(_) | Literal::Int(_)) | None => Enter::Blocks,
            },
            Op::For { .. } => match w.literal(inst.args[0]) {
                Some(Literal::Int(n)) if n <= 0 => Enter::Replace(inst.args[1..].to_vec()),
                _ => unchanged(w, inst, 1),
            },
            Op::While { .. } => unchanged(w, inst, 0),
            Op::Sweep { turns, .. } => match w.literal(inst.args[0]) {
                Some(Literal::Int(n)) if n <= 0 && !turns => {
                    Enter::Replace(inst.args[1 + inst.blocks[0].results.len()..].to_vec())
                }
                _ => unchanged_in_sweep(w, inst),
            },
            _ => Enter::Blocks,
        }
    }

    fn apply(&mut self, w: &mut Writer<'_>, inst: &mut Inst) -> Option<Vec<Value>> {
        let literals = || inst.args.iter().map(|&arg| w.literal(arg)).collect::<Option<Vec<_>>>();
        let scalar = inst.results.first().is_some_and(|&result| w.ty(result).is_scalar());
        let folded = match &inst.op {
            Op::Map(rule) if scalar && w.ty(inst.results[0]) == Type::REAL => real(*rule, &literals()?)?,
            Op::Int(op) if scalar => int(*op, &literals()?)?,
            Op::Compare(op) if scalar => compare(*op, &literals()?)?,
            Op::Logical(op) if scalar => logical(*op, &literals()?)?,
            Op::Convert(elem) if scalar => convert(*elem, &literals()?)?,
            Op::StopGradient => {
                w.literal(inst.args[0])?;
                return Some(inst.args.to_vec());
            }
            Op::Select => {
                let Literal::Bool(holds) = w.literal(inst.args[0])? else { return None };
                let chosen = inst.args[if holds { 1 } else { 2 }];
                // A scalar side of an array's choice stays: it would have to be spread.
                return (w.ty(chosen) == w.ty(inst.results[0])).then(|| vec![chosen]);
            }
            Op::While { .. } => {
                let (head, condition) = (&inst.blocks[0], inst.blocks[0].results[0]);
                let inside = head.insts.iter().find(|inst| inst.results.contains(&condition));
                let never = match inside {
                    Some(inst) => inst.op == Op::Const(Literal::Bool(false)),
                    None => w.literal(condition) == Some(Literal::Bool(false)),
                };
                return never.then(|| inst.args.to_vec());
            }
            _ => return None,
        };
        Some(vec![w.constant(folded)])
    }
}

/// Carried values of a loop whose next value is the old one, or the initial one, are that all the time.
fn unchanged(w: &mut Writer<'_>, inst: &mut Inst, first: usize) -> Enter {
    let body = inst.blocks.last().expect("a loop has a body");
    let mut next = body.results.clone();
    // Values from outside may have been replaced; the block's own are untouched so far.
    w.resolve(&mut next);
    let kept: Vec<bool> = (0..inst.results.len())
        .map(|at| next[at] != body.params[at + first] && next[at] != inst.args[at + first])
        .collect();
    if kept.iter().all(|&kept| kept) {
        return Enter::Blocks;
    }
    for at in (0..kept.len()).filter(|&at| !kept[at]) {
        let initial = inst.args[at + first];
        for block in &inst.blocks {
            w.replace(block.params[at + first], initial);
        }
        w.replace(inst.results[at], initial);
    }
    keep_parts(inst, &kept);
    Enter::Blocks
}

/// The same for the state and the cotangents of a sweep.
fn unchanged_in_sweep(w: &mut Writer<'_>, inst: &mut Inst) -> Enter {
    let (advance, back) = (&inst.blocks[0], &inst.blocks[1]);
    let state = advance.results.len();
    let mut next = [&advance.results[..], &back.results[..]].concat();
    w.resolve(&mut next);
    let own = |at: usize| if at < state { advance.params[1 + at] } else { back.params[1 + at] };
    // Where cotangents are what a turn gives, that is not known here.
    let turn = inst.blocks.get(2);
    let may_stay = |at: usize| at < state || turn.is_none();
    let kept: Vec<bool> = (0..next.len())
        .map(|at| !may_stay(at) || (next[at] != own(at) && next[at] != inst.args[1 + at]))
        .collect();
    if kept.iter().all(|&kept| kept) {
        return Enter::Blocks;
    }
    for at in (0..kept.len()).filter(|&at| !kept[at]) {
        let initial = inst.args[1 + at];
        w.replace(back.params[1 + at], initial);
        match at.checked_sub(state) {
            None => {
                w.replace(advance.params[1 + at], initial);
                if let Some(turn) = turn {
                    w.replace(turn.params[at], initial);
                }
            }
            Some(at) => w.replace(inst.results[at], initial),
        }
    }
    let given = turn.map_or(0, |turn| turn.params.len() - state);
    let more = inst.results.len() - swept_cotangents(inst);
    keep_swept(inst, &kept, &vec![true; given], &vec![true; more]);
    Enter::Blocks
}

fn real(rule: Rule, args: &[Literal]) -> Option<Literal> {
    let mut numbers = Vec::with_capacity(args.len());
    for arg in args {
        match arg {
            Literal::Real(number) => numbers.push(*number),
            Literal::Named(_) | Literal::Int(_) | Literal::Bool(_) => return None,
        }
    }
    // Polygamma of a silly order takes long; the run may do it.
    if rule.row == Row::Polygamma && !(0..=16).contains(&rule.parameter) {
        return None;
    }
    let value = rule.row.value(rule.parameter, &numbers);
    let finite = value.is_finite() || !numbers.iter().all(|number| number.is_finite());
    finite.then_some(Literal::Real(value))
}

fn int(op: IntOp, args: &[Literal]) -> Option<Literal> {
    match args {
        [Literal::Int(a), Literal::Int(b)] => integer(op, *a, *b).ok().map(Literal::Int),
        _ => None,
    }
}

fn compare(op: Comparison, args: &[Literal]) -> Option<Literal> {
    let holds = match args {
        [Literal::Int(a), Literal::Int(b)] => op.holds(a, b),
        [Literal::Real(a), Literal::Real(b)] => op.holds(a, b),
        _ => return None,
    };
    Some(Literal::Bool(holds))
}

fn logical(op: Logical, args: &[Literal]) -> Option<Literal> {
    let holds = match (op, args) {
        (Logical::And, [Literal::Bool(a), Literal::Bool(b)]) => *a && *b,
        (Logical::Or, [Literal::Bool(a), Literal::Bool(b)]) => *a || *b,
        (Logical::Not, [Literal::Bool(a)]) => !a,
        (Logical::And | Logical::Or | Logical::Not, _) => return None,
    };
    Some(Literal::Bool(holds))
}

fn convert(to: Elem, args: &[Literal]) -> Option<Literal> {
    match (to, args) {
        (Elem::F64, [Literal::Int(number)]) => Some(Literal::Real(*number as f64)),
        // The bounds are whole numbers that an `f64` holds exactly.
        (Elem::Int, [Literal::Real(number)])
            if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(number) =>
        {
            Some(Literal::Int(number.trunc() as i64))
        }
        // There are no literals of single precision.
        (Elem::F64 | Elem::F32 | Elem::Int | Elem::Bool, _) => None,
    }
}
