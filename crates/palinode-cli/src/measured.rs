//! Plans of gradients whose loops end when something has converged: a run of the values counts the rounds.
//!
//! Input: a program, of which no plan can be made before a run. Output: how many rounds its `while` loops take with these inputs, and with that a gradient within a budget, or the smallest budget for one.
//! That plan is for these very inputs: beside them a loop may take another number of rounds.

use palinode_core::{Budget, points};
use palinode_ir::interp::{Code, Datum, Limits};
use palinode_ir::plan::FittedGradient;
use palinode_ir::transform::Rounds;
use palinode_ir::{Op, Program};

use crate::execute::between_runs;
use crate::storage::Asked;
use crate::{execute, sides};

/// To say which budget does, a run of the values may take so much more than a budget that is too small for it.
const TO_SAY: usize = 64 << 20;

/// The rounds that a run of the values took, and the bytes of that run.
struct Counted {
    rounds: Vec<Rounds>,
    heap: u64,
}

/// Nothing if loops of functions that are called decide, or if the run does not fit.
fn counted(program: &Program, inputs: &[Datum<f64>], limits: &Limits) -> Option<Counted> {
    let values = between_runs(|| execute::simplified(program));
    let mut is_called = false;
    for (at, function) in values.functions.iter().enumerate() {
        function.body.for_each_inst(&mut |inst| {
            is_called |= at != values.entry.index() && matches!(inst.op, Op::While { .. });
        });
    }
    if is_called {
        return None;
    }
    let code = between_runs(|| Code::new(&values));
    let limits = Limits { trap_nonfinite: false, ..*limits };
    let (rounds, stats) = code.count_rounds(inputs, &limits).ok()?;
    Some(Counted { rounds, heap: stats.heap_bytes as u64 })
}

/// A gradient within the budget of `limits`, if that is possible.
pub(crate) fn fit(
    asked: &Asked,
    (program, wrt, inputs): (&Program, &[usize], &[Datum<f64>]),
    limits: &Limits,
) -> Option<FittedGradient> {
    let asked = asked.with_rounds(counted(program, inputs, limits)?.rounds);
    between_runs(|| asked.fit(program, wrt, inputs, limits.budget)).ok()
}

/// A budget that does, if that can be said: not where a comparison is a tie, which is looked at from the sides.
pub(crate) fn least(
    asked: &Asked,
    (program, wrt, inputs): (&Program, &[usize], &[Datum<f64>]),
    limits: &Limits,
) -> Option<u64> {
    let budget = if limits.budget.bytes() < TO_SAY { Budget::from(TO_SAY) } else { limits.budget };
    let (counted, is_suspicious) = points::suspicious(sides::point(inputs, wrt), || {
        counted(program, inputs, &Limits { budget, ..*limits })
    });
    let Counted { rounds, heap } = counted?;
    if is_suspicious && asked.beside.sides > 0 {
        return None;
    }
    let least = asked.with_rounds(rounds).smallest(program, wrt, inputs).ok()?.prediction.heap;
    // What `--check` holds beside the values counts, too.
    let of_values = heap.saturating_add(asked.beside.check);
    Some(least.max(of_values))
}
