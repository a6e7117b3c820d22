//! Loop invariants, out of the loop.
//!
//! An instruction of a loop's body moves before the loop if nothing it uses changes there, and
//!
//! - its results are scalars. Arrays stay: outside they would live as long as the loop, beside everything
//!   else in it, and one that the body consumes would have to be copied in every round;
//! - it is cheap and cannot fail, because the loop may run no round at all: literals, lengths, scalar
//!   arithmetic that is defined for all reals and does not grow exponentially (so that a run which stops at
//!   the first infinity does not stop here), integer arithmetic that cannot overflow, comparisons, logic,
//!   choices;
//! - or else the loop surely starts: everything in the condition of a `while` runs at least once, and so does
//!   the body of a `for` over a positive literal. There, reads, reductions, divisions and the rest may move
//!   too: an error would have been raised in the first round. Not out of branches: they may not be taken.
//!
//! Inner loops come first, so an invariant of several loops leaves them all.

use palinode_core::rules::{Domain, Row};

use super::each;
use crate::interp::scalar_ops::integer;
use crate::op::{IntOp, Literal, Op, Rule};
use crate::program::{Block, Function, Inst, Program, Value};
use crate::types::Elem;

/// Moves loop invariants.
pub fn hoist(program: &Program) -> Program {
    each(program, "hoist", hoist_function)
}

pub(super) fn hoist_function(function: &mut Function) {
    if !function.has_blocks() {
        return;
    }
    let count = function.values.len();
    function.rewrite(|function, body| {
        let (depth, ranges, divisors) = (vec![0; count], vec![ANY; count], vec![false; count]);
        Hoist { function, depth, ranges, divisors }.block(body, 0);
    });
}

/// The integers from the first to the second.
type Range = (i64, i64);
const ANY: Range = (i64::MIN, i64::MAX);
/// No array has more elements: addresses have fewer bits.
const MAX_LENGTH: i64 = 1 << 60;

struct Hoist<'a> {
    function: &'a Function,
    /// How deep the block that defines each value is.
    depth: Vec<usize>,
    /// Bounds of integer scalars.
    ranges: Vec<Range>,
    /// Real literals that are safe to divide by.
    divisors: Vec<bool>,
}

impl Hoist<'_> {
    fn block(&mut self, block: &mut Block, depth: usize) {
        self.define(&block.params, depth);
        let mut out: Vec<Inst> = Vec::with_capacity(block.insts.len());
        for mut inst in core::mem::take(&mut block.insts) {
            let count = self.count(&inst);
            for (at, inner) in inst.blocks.iter_mut().enumerate() {
                // The turn of a sweep is given no number of a round, and runs once.
                let turns = at == 2;
                if matches!(inst.op, Op::For { .. } | Op::Sweep { .. }) && !turns {
                    self.ranges[inner.params[0].index()] = (0, count.1.saturating_sub(1).max(0));
                }
                self.block(inner, depth + 1);
                if inst.op.repeats() {
                    let starts = turns || count.0 > 0 || (at == 0 && matches!(inst.op, Op::While { .. }));
                    self.leave(inner, depth, starts, &mut out);
                }
            }
            self.define(&inst.results, depth);
            self.bound(&inst);
            out.push(inst);
        }
        block.insts = out;
    }

    fn define(&mut self, values: &[Value], depth: usize) {
        values.iter().for_each(|value| self.depth[value.index()] = depth);
    }

    /// The bounds of the number of rounds of a `for` or a `sweep`; `(0, ...)` for everything else.
    fn count(&self, inst: &Inst) -> Range {
        if matches!(inst.op, Op::For { .. } | Op::Sweep { .. }) {
            self.ranges[inst.args[0].index()]
        } else {
            (0, 0)
        }
    }

    /// Moves what can leave `block`, which is one deeper than `depth`, to `out`.
    fn leave(&mut self, block: &mut Block, depth: usize, starts: bool, out: &mut Vec<Inst>) {
        let mut kept = Vec::with_capacity(block.insts.len());
        for inst in core::mem::take(&mut block.insts) {
            let invariant = inst.args.iter().all(|arg| self.depth[arg.index()] <= depth);
            let scalars = inst.results.iter().all(|&result| self.function.ty(result).is_scalar());
            // Calls may run long, or for ever.
            let may_fail = starts && !matches!(inst.op, Op::Call(_));
            if invariant && scalars && inst.blocks.is_empty() && (may_fail || self.is_safe(&inst)) {
                self.define(&inst.results, depth);
                out.push(inst);
            } else {
                kept.push(inst);
            }
        }
        block.insts = kept;
    }

    /// Whether an instruction with scalar results is cheap and cannot fail.
    fn is_safe(&self, inst: &Inst) -> bool {
        if !matches!(inst.op, Op::Dim(_)) && !inst.args.iter().all(|&arg| self.function.ty(arg).is_scalar()) {
            return false;
        }
        match &inst.op {
            Op::Map(rule) => self.is_tame(*rule, &inst.args),
            Op::Int(op) => self.range_of(*op, &inst.args).is_some(),
            // A real need not have an integer.
            Op::Convert(Elem::Int) => self.function.ty(inst.args[0]).elem == Elem::Int,
            op => !op.facts().may_fail,
        }
    }

    /// Whether a row is defined for these operands, whatever they are, and gives nothing huge for moderate
    /// ones.
    fn is_tame(&self, rule: Rule, args: &[Value]) -> bool {
        match rule.row {
            Row::Exp | Row::Exp2 | Row::ExpM1 | Row::Sinh | Row::Cosh => false,
            Row::Divide => self.divisors[args[1].index()],
            Row::Powi => (0..=8).contains(&rule.parameter),
            row => row.domains().iter().all(|&domain| domain == Domain::Reals),
        }
    }

    /// The bounds of an integer operation; `None` if it may overflow or divide by zero.
    fn range_of(&self, op: IntOp, args: &[Value]) -> Option<Range> {
        let ((a, b), (c, d)) = (self.ranges[args[0].index()], self.ranges[args[1].index()]);
        if matches!(op, IntOp::Div | IntOp::Rem) && c <= 0 {
            return None;
        }
        if op == IntOp::Rem {
            return Some((0, d - 1));
        }
        // All others take their extremes at the corners.
        let corners = [(a, c), (a, d), (b, c), (b, d)].map(|(x, y)| integer(op, x, y).ok());
        let corners: Vec<i64> = corners.into_iter().collect::<Option<_>>()?;
        Some((*corners.iter().min()?, *corners.iter().max()?))
    }

    fn bound(&mut self, inst: &Inst) {
        let range = match inst.op {
            Op::Const(Literal::Int(number)) => (number, number),
            Op::Const(Literal::Real(number)) => {
                self.divisors[inst.results[0].index()] = (1e-100..1e100).contains(&number.abs());
                return;
            }
            Op::Dim(_) => (0, MAX_LENGTH),
            Op::Int(op) => self.range_of(op, &inst.args).unwrap_or(ANY),
            _ => return,
        };
        self.ranges[inst.results[0].index()] = range;
    }
}
