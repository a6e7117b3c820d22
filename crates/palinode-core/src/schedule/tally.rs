//! The cost of a plan by recursion over its stretches: each different stretch is counted once, so a loop of a
//! billion steps costs as many evaluations as it has kinds of stretches.

use super::sweep::{Choice, Held, Plan};
use super::{Cost, PerTier, Tier};
use std::collections::HashMap;

/// What a sweep over `steps` steps will cost. `known` may give the cost of a stretch by a formula, given the
/// choice for it; its peaks count from nothing.
pub(super) fn tally<P: Plan>(
    plan: &P,
    steps: u64,
    known: impl Fn(u64, Held, Option<Tier>, Choice) -> Option<Cost>,
) -> Cost {
    let whole = (steps, Held::default(), None);
    if steps == 0 {
        return Cost::default();
    }
    let mut costs: HashMap<(u64, Held, Option<Tier>), Cost> = HashMap::new();
    // An own stack: stretches may be nested as deep as a step is repeated.
    let mut open = vec![whole];
    while let Some(&stretch) = open.last() {
        if costs.contains_key(&stretch) {
            open.pop();
            continue;
        }
        let (steps, held, stored) = stretch;
        let choice = plan.choose(steps, held, stored);
        let cost = match (known(steps, held, stored, choice), choice) {
            (Some(known), _) => Cost { peak_snapshots: known.peak_snapshots.plus(in_use(held)), ..known },
            (None, Choice::Record) => Cost {
                forward: steps,
                recorded: steps,
                peak_snapshots: in_use(held),
                peak_residuals: steps,
                ..Cost::default()
            },
            (None, Choice::Split { left, tier }) => {
                let right = (steps - left, held.with(tier), None);
                let back = (left, held, Some(tier));
                let (Some(right_cost), Some(back_cost)) = (costs.get(&right), costs.get(&back)) else {
                    open.extend([right, back]);
                    continue;
                };
                let mut one =
                    Cost { advanced: left, peak_snapshots: in_use(held.with(tier)), ..Cost::default() };
                *one.reads.of(tier) = 1;
                *one.writes.of(tier) = u64::from(stored != Some(tier));
                both(one, both(*right_cost, *back_cost))
            }
        };
        costs.insert(stretch, cost);
        open.pop();
    }
    costs[&whole]
}

fn in_use(held: Held) -> PerTier {
    PerTier { memory: held.memory.into(), disk: held.disk.into() }
}

/// One after the other.
fn both(first: Cost, second: Cost) -> Cost {
    let (advanced, recorded) =
        (first.advanced.saturating_add(second.advanced), first.recorded.saturating_add(second.recorded));
    Cost {
        forward: advanced.saturating_add(recorded),
        advanced,
        recorded,
        writes: first.writes.plus(second.writes),
        reads: first.reads.plus(second.reads),
        peak_snapshots: first.peak_snapshots.max(second.peak_snapshots),
        peak_residuals: first.peak_residuals.max(second.peak_residuals),
    }
}
