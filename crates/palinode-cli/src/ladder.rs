//! Which budgets a refusal may name: from the least that does to what keeps everything.

use palinode_core::Budget;
use palinode_ir::Program;
use palinode_ir::interp::Datum;
use palinode_ir::plan::FittedGradient;

use crate::storage::{Asked, Beside, amount, compact, handy, least_of_value, price};

/// Which budgets do. Only what was planned, for all that the command computes, is named.
pub(crate) struct Ladder<'a> {
    pub(crate) asked: &'a Asked,
    pub(crate) program: &'a Program,
    pub(crate) wrt: &'a [usize],
    pub(crate) inputs: &'a [Datum<f64>],
    pub(crate) beside: Beside,
}

impl Ladder<'_> {
    /// What the value takes at least, beside what is there meanwhile; 0 if it is not known, or not computed.
    fn of_value(&self) -> u64 {
        let Some(beside) = self.beside.value else { return 0 };
        least_of_value(self.program, self.inputs).map_or(0, |(_, least)| least.saturating_add(beside))
    }

    /// A plan within so many bytes, which are enough for the value.
    fn plan(&self, bytes: u64) -> Option<FittedGradient> {
        let room = usize::try_from(bytes.checked_sub(self.beside.gradient)?).unwrap_or(usize::MAX);
        self.asked.fit(self.program, self.wrt, self.inputs, Budget::from(room)).ok()
    }

    /// The smallest budget, given that of the gradient alone.
    pub(crate) fn least(&self, gradient: u64) -> Option<(u64, FittedGradient)> {
        let least = gradient.saturating_add(self.beside.gradient).max(self.of_value());
        Some((least, self.plan(least)?))
    }

    /// Budgets that do, and what they cost.
    pub(crate) fn what_works(&self, least: u64, smallest: &FittedGradient) -> String {
        let least = handy(least);
        let most = handy((smallest.store_all.bytes() as u64).saturating_add(self.beside.gradient)).max(least);
        let between = handy((least.bytes() as f64 * most.bytes() as f64).sqrt() as u64);
        // What fits into the least fits into a little more.
        let mut words = vec![format!("{} works {}", compact(least), price(smallest))];
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
        format!("--budget {}", words.join("; "))
    }
}
