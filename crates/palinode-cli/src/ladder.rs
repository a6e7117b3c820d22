//! Which budgets a refusal may name: from the least that does to what keeps everything.

use palinode_core::Budget;
use palinode_ir::Program;
use palinode_ir::interp::Datum;
use palinode_ir::plan::FittedGradient;

use crate::storage::{Asked, Beside, amount, compact, handy, price, values};

/// Which budgets do. Only what was planned, for all that the command computes, is named.
pub(crate) struct Ladder<'a> {
    pub(crate) asked: &'a Asked,
    pub(crate) program: &'a Program,
    pub(crate) wrt: &'a [usize],
    pub(crate) inputs: &'a [Datum<f64>],
}

impl Ladder<'_> {
    /// A plan within so many bytes, which are enough for the values.
    fn plan(&self, bytes: u64) -> Option<FittedGradient> {
        let room = usize::try_from(bytes.checked_sub(self.asked.beside.sides)?).unwrap_or(usize::MAX);
        self.asked.fit(self.program, self.wrt, self.inputs, Budget::from(room)).ok()
    }

    /// The smallest budget, given that of the gradient alone.
    pub(crate) fn least(&self, gradient: u64) -> Option<(u64, FittedGradient)> {
        let Beside { sides, check } = self.asked.beside;
        let of_values =
            values(self.program, self.inputs, 0).heap.unwrap_or(0).saturating_add(sides.max(check));
        let least = gradient.saturating_add(sides).max(of_values);
        Some((least, self.plan(least)?))
    }

    /// Budgets that do, and what they cost.
    pub(crate) fn what_works(&self, least: u64, smallest: &FittedGradient) -> String {
        let most = (smallest.store_all.bytes() as u64).saturating_add(self.asked.beside.sides);
        let least = handy(least);
        let most = handy(most).max(least);
        let between = handy((least.bytes() as f64 * most.bytes() as f64).sqrt() as u64);
        // What fits into the least fits into a little more.
        let mut words = vec![format!("--budget {} works {}", compact(least), price(smallest))];
        if between > least
            && between < most
            && let Some(fitted) = self.plan(between.bytes() as u64)
            && amount(fitted.overhead) != amount(smallest.overhead)
        {
            words.push(format!("{} {}", compact(between), price(&fitted)));
        }
        if most > least && self.plan(most.bytes() as u64).is_some_and(|fitted| fitted.overhead < 1.005) {
            words.push(format!("{} keeps everything", compact(most)));
        }
        words.join("; ")
    }
}
