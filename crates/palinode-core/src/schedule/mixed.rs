//! A slot may hold a snapshot or the residuals of a step, whichever saves more, with their real sizes in
//! bytes.
//!
//! With a budget of `b` bytes, a stretch of `n` steps is either recorded as a whole (if the residuals of all
//! but the last fit into `b`), or its first state is kept, `i` steps are advanced over, the other `n - i` are
//! done with the budget that is left, and the snapshot gives its bytes back for the `i`. The recurrence of
//! Maddison ("step-based checkpointing with mixed slots") also lets a single first step be recorded and kept
//! while the rest is divided. That is never better: keep the state before that step instead, let the other
//! part have the bytes of the residuals and one step more, and no step is run more often. So the plan needs
//! one level for each snapshot, not for each number of bytes.
//!
//! Input: steps, sizes, bytes. Output: actions, cost, and a lower bound. Equal sizes have a closed form
//! (`equal.rs`), optimal whatever the number of steps. Other sizes are exact up to [`Mixed::EXACT_STEPS`]
//! steps by dynamic programming, or off by a few evaluations if that would take more than about a second;
//! longer loops and those with more than 400 snapshots are divided by capacities. The gap to a bound is
//! reported.
//!
//! The bound, where no dynamic program has one: let `cap(q)` be the most steps that can be reversed if none
//! is advanced over more than `q` times. Of any `n` steps, at least `n - cap(q)` are advanced over more than
//! `q` times, so there are at least the sum over `q` of those advances.

use super::divide::{A_SECOND, BOUND, Division};
use super::sweep::{Choice, Held, Plan, PlanBytes, Sweep, actions, stack_bytes, walked};
use super::tally::tally;
use super::{Cost, Sizes, Tier, binomial, equal};
use crate::Error;

/// The actions of a schedule whose budget holds snapshots and residuals.
///
/// The budget is what there is beside the live state and the residuals of one step.
///
/// ```
/// use palinode_core::schedule::{self, Mixed, Sizes, binomial};
///
/// // Places for five things of equal size: 64 evaluations fewer than with five snapshots.
/// assert_eq!(schedule::cost(Mixed::new(100, 5)?).forward, 352);
/// assert_eq!(schedule::cost(binomial(100, 5)?).forward, 416);
///
/// // A state of 24 bytes, residuals of 400 bytes a step, 2000 bytes.
/// let mixed = Mixed::with_sizes(100, Sizes { snapshot: 24, residual: 400 }, 2000)?;
/// assert_eq!((mixed.forward(), mixed.is_exact()), (196, true));
/// # Ok::<(), palinode_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Mixed {
    sweep: Sweep<Blocks>,
    steps: u64,
    cost: Cost,
    bound: u64,
    exact: bool,
}

actions!(Mixed);

impl Mixed {
    /// Up to so many steps a schedule for unequal sizes is optimal, or nearly if that would take more than
    /// about a second: [`is_exact`](Self::is_exact) and [`gap`](Self::gap) tell. One for equal sizes always
    /// is.
    pub const EXACT_STEPS: u64 = 20_000;
    /// A table has at most so many entries.
    const MOST_ENTRIES: usize = 1 << 22;

    /// A schedule with `places` places, if snapshots and residuals are equally large.
    pub fn new(steps: u64, places: u32) -> Result<Mixed, Error> {
        Mixed::with_sizes(steps, Sizes { snapshot: 1, residual: 1 }, places.into())
    }

    /// A schedule with a budget of `bytes` bytes for snapshots and residuals.
    ///
    /// To find the optimum for unequal sizes takes some 50 nanoseconds for each snapshot and step, and a
    /// table of `2 * snapshots * steps` bytes; [`Mixed::near`] takes microseconds and little memory. Equal
    /// sizes take neither.
    pub fn with_sizes(steps: u64, sizes: Sizes, bytes: u64) -> Result<Mixed, Error> {
        Mixed::made(steps, sizes, bytes, Count::Recursion)
    }

    /// [`Mixed::new`] for those who will follow it and have a budget: the cost is found by walking, which
    /// takes as long as following and no memory. Making it takes no more than [`Mixed::bytes_for`] says.
    pub fn walked(steps: u64, places: u32) -> Result<Mixed, Error> {
        Mixed::made(steps, Sizes { snapshot: 1, residual: 1 }, places.into(), Count::Walk)
    }

    /// The heap bytes that [`Mixed::walked`] takes at most, and the most snapshots and residuals that it
    /// keeps.
    pub fn bytes_for(steps: u64, places: u32) -> (PlanBytes, u64, u64) {
        let levels = match levels(steps, places.into(), Sizes { snapshot: 1, residual: 1 }) {
            // Nothing is recorded twice: no snapshots.
            1 => return (PlanBytes { planning: 64, following: 64 }, 0, steps),
            levels => levels as usize,
        };
        let stack = stack_bytes(levels);
        let bytes = PlanBytes { planning: stack, following: stack };
        (bytes, levels as u64 - 1, (u64::from(places) + 1).min(steps))
    }

    fn made(steps: u64, sizes: Sizes, bytes: u64, count: Count) -> Result<Mixed, Error> {
        let blocks = Blocks::by_formula(steps, sizes, bytes)?;
        let bound = blocks.bound(steps);
        let near = Mixed::of(blocks, steps, bound, count);
        let entries = (near.sweep.plan().levels(steps) as u64).saturating_mul(steps + 1);
        if near.exact || steps > Mixed::EXACT_STEPS || entries > A_SECOND / BOUND {
            return Ok(near);
        }
        let Blocks::Sized { most, .. } = near.sweep.plan() else { unreachable!("equal sizes are exact") };
        let (rule, least) = best_lefts(steps as usize, most);
        Ok(Mixed::of(Blocks::Sized { most: most.clone(), rule }, steps, bound.max(least), count))
    }

    /// As [`with_sizes`](Self::with_sizes), but unequal sizes are divided by capacities whatever the number
    /// of steps: a few percent from the optimum, quickly planned.
    pub fn near(steps: u64, sizes: Sizes, bytes: u64) -> Result<Mixed, Error> {
        let blocks = Blocks::by_formula(steps, sizes, bytes)?;
        let bound = blocks.bound(steps);
        Ok(Mixed::of(blocks, steps, bound, Count::Recursion))
    }

    fn of(blocks: Blocks, steps: u64, bound: u64, count: Count) -> Mixed {
        let cost = match count {
            Count::Recursion => tally(&blocks, steps, |_, _, _, _| None),
            Count::Walk => walked(&blocks, steps, blocks.levels(steps) - 1),
        };
        let exact = matches!(blocks, Blocks::Equal { .. }) || cost.forward == bound;
        let bound = if exact { cost.forward } else { bound };
        Mixed { sweep: blocks.sweep(steps), steps, cost, bound, exact }
    }

    /// What it costs, computed.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Forward evaluations.
    pub fn forward(&self) -> u64 {
        self.cost.forward
    }

    /// No schedule within this budget takes fewer forward evaluations than this.
    pub fn bound(&self) -> u64 {
        self.bound
    }

    /// Forward evaluations by the bound: 1 means optimal, 1.02 that at most 2 % could be saved.
    pub fn gap(&self) -> f64 {
        if self.steps == 0 { 1.0 } else { self.cost.forward as f64 / self.bound as f64 }
    }

    /// Whether no schedule within this budget takes fewer forward evaluations.
    pub fn is_exact(&self) -> bool {
        self.exact
    }
}

/// How the cost of a schedule is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    /// In the time of its kinds of stretches; each takes memory.
    Recursion,
    /// In the time of its actions.
    Walk,
}

/// How many snapshots there can be at once, and one: the levels of a table. 1 if everything can be recorded.
fn levels(steps: u64, bytes: u64, sizes: Sizes) -> u64 {
    let last = steps.saturating_sub(1);
    if bytes.checked_div(sizes.residual).unwrap_or(u64::MAX).saturating_add(1) >= steps {
        return 1;
    }
    bytes.checked_div(sizes.snapshot).unwrap_or(u64::MAX).min(last) + 1
}

/// No more rows than this are needed for so many levels: capacities are at least those of snapshots alone.
fn rows(steps: u64, levels: u64) -> usize {
    if levels < 2 || steps < 2 { 1 } else { binomial::repetitions(steps, levels - 1).0 as usize + 1 }
}

/// How a stretch is divided, given how many snapshots are held.
#[derive(Clone, Debug)]
enum Blocks {
    /// So many places of one size: by the closed form.
    Equal { places: u64 },
    /// `most[a]`: the most steps that can be recorded as a whole while `a` snapshots are held. It falls with
    /// `a`.
    Sized { most: Box<[u64]>, rule: Rule },
}

#[derive(Clone, Debug)]
enum Rule {
    /// `lefts[a * stride + n]`: how far to advance, so that there is no better schedule.
    Table { lefts: Box<[u16]>, stride: usize },
    /// `cap[q * most.len() + a]`: the most steps if none is advanced over more than `q` times.
    Capacity { cap: Vec<u64> },
}

impl Plan for Blocks {
    #[inline]
    fn choose(&self, steps: u64, held: Held, _: Option<Tier>) -> Choice {
        let level = held.memory as usize;
        let left = match self {
            Blocks::Equal { places } => match places - u64::from(held.memory) {
                free if steps <= free + 1 => return Choice::Record,
                free => equal::split(steps, free),
            },
            Blocks::Sized { most, .. } if steps <= most[level] => return Choice::Record,
            Blocks::Sized { most, rule } => match rule {
                Rule::Table { lefts, stride } => lefts[level * stride + steps as usize].into(),
                Rule::Capacity { cap } => left_by_capacity(most, cap, steps, level),
            },
        };
        Choice::Split { left, tier: Tier::Memory }
    }

    fn heap_bytes(&self) -> usize {
        let Blocks::Sized { most, rule } = self else { return 0 };
        let rule = match rule {
            Rule::Table { lefts, .. } => size_of_val::<[u16]>(lefts),
            Rule::Capacity { cap } => cap.capacity() * size_of::<u64>(),
        };
        rule + size_of_val::<[u64]>(most)
    }
}

impl Blocks {
    /// Without a dynamic program: for equal sizes the best, for others near it.
    fn by_formula(steps: u64, sizes: Sizes, bytes: u64) -> Result<Blocks, Error> {
        let last = steps.saturating_sub(1);
        let snapshots = bytes.checked_div(sizes.snapshot).unwrap_or(u64::MAX).min(last);
        let most = |held: u64| {
            let left = bytes - held * sizes.snapshot;
            left.checked_div(sizes.residual).unwrap_or(u64::MAX).saturating_add(1)
        };
        if snapshots == 0 && most(0) < steps {
            let smallest = sizes.snapshot.min(last.saturating_mul(sizes.residual));
            return Err(Error::ScheduleBudget { bytes, smallest });
        }
        // If everything can be recorded, no snapshot is of use.
        let levels = levels(steps, bytes, sizes);
        let too_large = || Error::PlanTooLarge { steps, what: "a mixed schedule" };
        if levels > Mixed::MOST_ENTRIES as u64 {
            return Err(too_large());
        }
        if sizes.snapshot == sizes.residual && sizes.snapshot > 0 {
            // What counts the cost of a schedule, and what walks it, takes as long as it has repetitions.
            if rows(steps, levels) as u64 * levels > Mixed::MOST_ENTRIES as u64 {
                return Err(too_large());
            }
            return Ok(Blocks::Equal { places: if levels == 1 { steps } else { bytes / sizes.snapshot } });
        }
        let most: Box<[u64]> = (0..levels).map(most).collect();
        let mut cap = Vec::new();
        // All at once, so that nothing is held twice.
        cap.reserve_exact(most.len().saturating_mul(rows(steps, levels)).min(Mixed::MOST_ENTRIES));
        cap.extend_from_slice(&most);
        while cap[cap.len() - most.len()] < steps {
            if cap.len() + most.len() > Mixed::MOST_ENTRIES {
                return Err(too_large());
            }
            let mut column = most.clone();
            let before = &cap[cap.len() - most.len()..];
            for level in (0..most.len() - 1).rev() {
                column[level] = before[level].saturating_add(column[level + 1]);
            }
            cap.extend_from_slice(&column);
        }
        Ok(Blocks::Sized { most, rule: Rule::Capacity { cap } })
    }

    /// How many snapshots there can be at once, and one.
    fn levels(&self, steps: u64) -> usize {
        match self {
            // If everything can be recorded, no snapshot is of use.
            Blocks::Equal { places } if places + 1 >= steps => 1,
            Blocks::Equal { places } => *places as usize + 1,
            Blocks::Sized { most, .. } => most.len(),
        }
    }

    /// No schedule takes fewer evaluations, as far as capacities tell.
    fn bound(&self, steps: u64) -> u64 {
        let Blocks::Sized { most, rule: Rule::Capacity { cap } } = self else { return steps };
        let beyond = cap.iter().step_by(most.len()).map(|&cap| steps.saturating_sub(cap));
        beyond.fold(steps, u64::saturating_add)
    }

    fn sweep(self, steps: u64) -> Sweep<Blocks> {
        let places = self.levels(steps) - 1;
        Sweep::new(self, steps, places)
    }
}

/// As far as possible within the range in which no step is repeated more often than needed: the stretch that
/// is done with the larger budget is the longer one.
fn left_by_capacity(most: &[u64], cap: &[u64], steps: u64, level: usize) -> u64 {
    let levels = most.len();
    let repeats = cap.iter().skip(level).step_by(levels).take_while(|&&cap| cap < steps).count();
    let cap = |repeats: usize, level: usize| cap[repeats * levels + level];
    let least = if repeats >= 2 { cap(repeats - 2, level) } else { 1 };
    let least = least.max(steps.saturating_sub(cap(repeats, level + 1)));
    cap(repeats - 1, level).min(steps.saturating_sub(cap(repeats - 1, level + 1))).max(least)
}

/// The dynamic program: for every level and length, the best place to come back to; and the fewest
/// evaluations that there can be.
fn best_lefts(steps: usize, most: &[u64]) -> (Rule, u64) {
    let stride = steps + 1;
    let mut lefts = vec![0_u16; most.len() * stride];
    let mut division = Division::new(steps, 1.0, A_SECOND);
    // With all snapshots held, what is longer than can be recorded cannot be done.
    let mut costs = vec![f64::INFINITY; stride];
    let mut bounds = costs.clone();
    for (level, &most) in most.iter().enumerate().rev() {
        division.begin(&costs, &bounds, 1);
        costs.fill(f64::INFINITY);
        costs[0] = 0.0;
        // Each snapshot held has at least a step to its left.
        for n in 1..=steps - level {
            if n as u64 <= most {
                (costs[n], bounds[n]) = (n as f64, n as f64);
            } else {
                let best = division.best(n, 0);
                if best.left == 0 {
                    break; // nor can what is longer
                }
                (costs[n], bounds[n]) = (best.cost, best.bound);
                lefts[level * stride + n] = best.left as u16;
            }
            division.push(n as f64 + costs[n], n as f64 + bounds[n]);
        }
    }
    (Rule::Table { lefts: lefts.into(), stride }, bounds[steps] as u64)
}
