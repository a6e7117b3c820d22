//! Which budgets a refusal may name: from the smallest that works to one that keeps everything.

use palinode_core::Budget;

use crate::plan::FittedGradient;
use crate::plan::asked::{Asked, Beside, Target, values};

/// Which budgets work. Only what was planned, for all that is done within the budget, is named.
pub struct Ladder<'a> {
    /// What is asked.
    pub asked: &'a Asked,
    /// Of what.
    pub of: Target<'a>,
    /// The smallest budget for what is done besides values, gradient and looks at both sides, given what the
    /// values take; none if nobody knows.
    pub also: &'a dyn Fn(u64) -> Option<u64>,
}

/// The smallest budget, and of what it is made.
pub struct Least {
    /// The budget.
    pub bytes: u64,
    /// So much less would do without looks at both sides.
    pub sides: u64,
    /// So much less would do without what is done besides.
    pub also: u64,
    /// Whether it is the gradient that needs it.
    pub is_for_gradient: bool,
    /// The gradient.
    pub fitted: FittedGradient,
    /// A smaller one that works in forward mode, if that may be taken.
    pub forwards: Option<u64>,
}

/// A budget that is easy to type and works.
pub struct Works {
    /// The budget.
    pub budget: Budget,
    /// The gradient within it.
    pub fitted: FittedGradient,
    /// Whether it is the one that keeps everything.
    pub is_all: bool,
}

impl Ladder<'_> {
    /// A plan of the gradient within so many bytes, beside a look at both sides.
    fn plan(&self, bytes: u64) -> Option<FittedGradient> {
        let bytes = usize::try_from(bytes.checked_sub(self.asked.beside.sides)?).unwrap_or(usize::MAX);
        self.asked.fit(self.of, Budget::from(bytes)).ok()
    }

    /// The smallest budget for all that is done; none if it cannot be planned.
    pub fn least(&self) -> Option<Least> {
        let fitted = self.asked.smallest(self.of).ok()?;
        let smallest = fitted.prediction.heap;
        let of_values = values(self.of.program, self.of.inputs, 0).heap?;
        let Beside { sides, .. } = self.asked.beside;
        let both = smallest.max(of_values);
        let (with_sides, also) = (both.saturating_add(sides), (self.also)(of_values)?);
        let bytes = with_sides.max(also);
        // With more bytes less may be computed again.
        let fitted = if bytes - sides > smallest { self.plan(bytes)? } else { fitted };
        let forwards = self.asked.forwards(self.of);
        let forwards = forwards.map(|(_, heap)| heap.max(of_values).saturating_add(sides));
        let (sides, also) = (bytes - both.max(also), bytes - with_sides);
        Some(Least {
            bytes,
            sides,
            also,
            is_for_gradient: also == 0 && smallest >= of_values,
            fitted,
            forwards: forwards.filter(|&forwards| forwards < bytes),
        })
    }

    /// Budgets above the smallest, with less work: one in the middle, and one that keeps everything.
    /// `differs` says whether the work of one is worth telling from that of the smallest.
    pub fn above(&self, least: &Least, differs: &dyn Fn(&FittedGradient) -> bool) -> Vec<Works> {
        let most = (least.fitted.store_all.bytes() as u64).saturating_add(self.asked.beside.sides);
        let least = handy(least.bytes);
        let most = handy(most).max(least);
        let between = handy((least.bytes() as f64 * most.bytes() as f64).sqrt() as u64);
        let plan = |budget: Budget, is_all: bool| {
            Some(Works { budget, fitted: self.plan(budget.bytes() as u64)?, is_all })
        };
        let is_between = between > least && between < most;
        let middle = if is_between { plan(between, false) } else { None };
        let all = if most > least { plan(most, true) } else { None };
        let middle = middle.filter(|one| differs(&one.fitted));
        middle.into_iter().chain(all.filter(|one| one.fitted.keeps_everything())).collect()
    }
}

/// A budget of at least so many bytes that is easy to read and to type.
pub fn handy(bytes: u64) -> Budget {
    let units = [1 << 40, 1 << 30, 1 << 20, 1 << 10];
    // The largest unit of which it is at least ten.
    let step = match units.into_iter().find(|unit| bytes >= 10 * unit) {
        None => 1,
        Some(unit) if bytes < 100 * unit => unit / 4,
        Some(unit) => unit,
    };
    Budget::from(usize::try_from(bytes.div_ceil(step).saturating_mul(step)).unwrap_or(usize::MAX))
}
