//! Stopping at the first infinity or NaN that finite numbers give, for [`super::Limits::trap_nonfinite`].

use palinode_core::machine::{Task, on_this_machine};
use palinode_core::{Real, rules};
use smallvec::SmallVec;

use super::error::RunErrorKind;
use super::value::{Source, primal};

/// Whether there is no infinity or NaN among them, which costs next to nothing for plain numbers. Which one
/// stops a run is asked only if there is.
pub(super) fn all_finite<R: Real>(numbers: &[R]) -> bool {
    if R::IS_FLOAT { on_this_machine(AllFinite(numbers)) } else { numbers.iter().all(|x| x.is_finite()) }
}

struct AllFinite<'a, R>(&'a [R]);

impl<R: Real> Task for AllFinite<'_, R> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        // No early end, so that it is a loop of vectors.
        self.0.iter().fold(true, |all, x| all & x.is_finite())
    }
}

/// An error if finite operands gave a result that is not.
#[inline(never)]
pub(super) fn check_row<R: Real>(row: rules::Row, operands: &[R], result: R) -> Result<(), RunErrorKind> {
    if result.is_finite() || !operands.iter().all(|x| x.is_finite()) {
        return Ok(());
    }
    let values: Vec<f64> = operands.iter().map(|&x| primal(x)).collect();
    let divides = matches!(row, rules::Row::Divide | rules::Row::Remainder | rules::Row::Recip);
    let operation = if divides && values.last() == Some(&0.0) {
        "division by zero".to_string()
    } else {
        let list: Vec<String> = values.iter().map(|&value| number(value)).collect();
        format!("{} of {}", spoken(row), list.join(" and "))
    };
    Err(RunErrorKind::NonFinite { operation, result: primal(result) })
}

/// The same for a run of plain numbers: the first error among them.
pub(super) fn check_run(
    row: rules::Row,
    operands: &[Source<'_, f64>],
    results: &[f64],
) -> Result<(), RunErrorKind> {
    if all_finite(results) {
        return Ok(());
    }
    results.iter().enumerate().try_for_each(|(at, &result)| {
        let operands: SmallVec<[f64; 3]> = operands.iter().map(|operand| operand.get(at)).collect();
        check_row(row, &operands, result)
    })
}

/// The same for an operation without operands to name.
#[inline(never)]
pub(super) fn check_named<R: Real>(name: &str, operands: &[R], result: R) -> Result<(), RunErrorKind> {
    if result.is_finite() || !operands.iter().all(|x| x.is_finite()) {
        return Ok(());
    }
    let list: Vec<String> = operands.iter().take(4).map(|&x| number(primal(x))).collect();
    let more = if operands.len() > 4 { " and more" } else { "" };
    let operation = format!("{name} of {}{more}", list.join(" and "));
    Err(RunErrorKind::NonFinite { operation, result: primal(result) })
}

/// A row as people call it: what it is named in programs is none of their concern.
fn spoken(row: rules::Row) -> &'static str {
    match row.name() {
        "add" => "the sum",
        "sub" => "the difference",
        "mul" | "strong_mul" => "the product",
        "div" => "the quotient",
        "rem" => "the remainder",
        name => name,
    }
}

fn number(value: f64) -> String {
    if value != 0.0 && !(1e-4..1e16).contains(&value.abs()) {
        format!("{value:e}")
    } else {
        format!("{value}")
    }
}
