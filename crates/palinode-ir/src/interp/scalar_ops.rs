//! Operations on single integers and comparisons, shared by registers and arrays.

use palinode_core::{Real, decision};

use super::error::RunErrorKind;
use crate::op::{Comparison, IntOp};

/// A comparison of reals; of active values it is a decision.
#[inline(always)]
pub(crate) fn compare_reals<R: Real>(op: Comparison, a: R, b: R) -> bool {
    // Derivative numbers tell the hook themselves.
    if const { R::DEPTH == 0 } {
        decision::compared_plainly(a.glance(), b.glance(), op == Comparison::Equal);
    }
    op.holds(a, b)
}

/// Integer arithmetic that wraps nowhere; division rounds down.
#[inline]
pub(crate) fn integer(op: IntOp, a: i64, b: i64) -> Result<i64, RunErrorKind> {
    if b == 0 && matches!(op, IntOp::Div | IntOp::Rem) {
        return Err(RunErrorKind::IntegerDivisionByZero { op: op.name(), left: a });
    }
    let result = match op {
        IntOp::Add => a.checked_add(b),
        IntOp::Sub => a.checked_sub(b),
        IntOp::Mul => a.checked_mul(b),
        IntOp::Div => a.checked_div(b).map(|q| if a % b != 0 && (a < 0) != (b < 0) { q - 1 } else { q }),
        // The remainder of the smallest integer by -1 is 0, though the quotient overflows.
        IntOp::Rem => {
            let rest = a.wrapping_rem(b);
            Some(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
        }
        IntOp::Min => Some(a.min(b)),
        IntOp::Max => Some(a.max(b)),
    };
    result.ok_or_else(|| overflow(op, a, b))
}

#[cold]
pub(crate) fn overflow(op: IntOp, left: i64, right: i64) -> RunErrorKind {
    RunErrorKind::IntegerOverflow { op: op.name(), left, right }
}
