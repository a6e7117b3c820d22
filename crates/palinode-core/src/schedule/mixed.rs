//! A slot may hold a snapshot or the residuals of a step, whichever saves more, with their real sizes in bytes.
//!
//! With room for `b` bytes, a stretch of `n` steps is either recorded as a whole (if the residuals of all but the last
//! fit into `b`), or its first state is kept, `i` steps are advanced over, the other `n - i` are done with the room that is
//! left, and the snapshot makes room again for the `i`. The recurrence of Maddison ("step-based checkpointing with mixed
//! slots") also lets a single first step be recorded and kept while the rest is divided. That is never better: keep the
//! state before that step instead, let the other part have the room of the residuals and one step more, and no step is
//! run more often. So the plan needs one level for each snapshot, not for each number of bytes.
//!
//! Input: steps, sizes, bytes. Output: actions, cost, and a lower bound. Exact up to [`Mixed::EXACT_STEPS`] steps by
//! dynamic programming; beyond, divided by capacities, with the gap to the bound reported.
//!
//! The bound: let `cap(q)` be the most steps that can be reversed if none is advanced over more than `q` times. Of any `n`
//! steps, at least `n - cap(q)` are advanced over more than `q` times, so there are at least the sum over `q` of those advances.

use super::sweep::{Choice, Held, Plan, PlanBytes, Sweep, actions, stack_bytes, walked};
use super::tally::tally;
use super::{Cost, Sizes, Tier, binomial};
use crate::Error;

/// The actions of a schedule whose room holds snapshots and residuals.
///
/// The room is what there is beside the live state and the residuals of one step.
///
/// ```
/// use palinode_core::schedule::{self, Mixed, Sizes, binomial};
///
/// // Room for five things of equal size: 64 evaluations fewer than with five snapshots.
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
    /// Up to so many steps the schedule is optimal.
    pub const EXACT_STEPS: u64 = 2000;
    /// A table has at most so many entries.
    const MOST_ENTRIES: usize = 1 << 22;

    /// A schedule with room for `slots` things, if snapshots and residuals are equally large.
    pub fn new(steps: u64, slots: u32) -> Result<Mixed, Error> {
        Mixed::with_sizes(steps, Sizes { snapshot: 1, residual: 1 }, slots.into())
    }

    /// A schedule with room for `bytes` bytes of snapshots and residuals.
    ///
    /// To find the optimum takes `snapshots * steps^2 / 2` additions (30 ms for 64 snapshots and 2000 steps) and a table of
    /// `2 * snapshots * steps` bytes; [`Mixed::near`] takes microseconds and little memory.
    pub fn with_sizes(steps: u64, sizes: Sizes, bytes: u64) -> Result<Mixed, Error> {
        Mixed::made(steps, sizes, bytes, Count::Recursion)
    }

    /// [`Mixed::new`] for those who will follow it and have a budget: the cost is found by walking, which takes as long as following and no memory.
    /// Making it takes no more than [`Mixed::bytes_for`] says.
    pub fn walked(steps: u64, slots: u32) -> Result<Mixed, Error> {
        Mixed::made(steps, Sizes { snapshot: 1, residual: 1 }, slots.into(), Count::Walk)
    }

    /// The heap bytes that [`Mixed::walked`] takes at most, and the most snapshots and residuals that it keeps.
    pub fn bytes_for(steps: u64, slots: u32) -> (PlanBytes, u64, u64) {
        let levels = match levels(steps, slots.into(), Sizes { snapshot: 1, residual: 1 }) {
            // Nothing is recorded twice: no snapshots.
            1 => return (PlanBytes { planning: 64, following: 64 }, 0, steps),
            levels => levels as usize,
        };
        let columns = levels.saturating_mul(size_of::<u64>());
        let near = columns.saturating_mul(rows(steps, levels as u64) + 3);
        let stack = stack_bytes(levels);
        let (planning, following) = if steps > Mixed::EXACT_STEPS {
            (near, near)
        } else {
            let row = steps as usize + 1;
            let table = 2 * levels * row + columns;
            (near.max(table + 3 * size_of::<u32>() * row), table.max(near))
        };
        let bytes = PlanBytes { planning: planning + stack, following: following + stack };
        (bytes, levels as u64 - 1, (u64::from(slots) + 1).min(steps))
    }

    fn made(steps: u64, sizes: Sizes, bytes: u64, count: Count) -> Result<Mixed, Error> {
        let blocks = Blocks::by_capacity(steps, sizes, bytes)?;
        let bound = blocks.bound(steps);
        let near = Mixed::of(blocks, steps, bound, false, count);
        if near.exact || steps > Mixed::EXACT_STEPS {
            return Ok(near);
        }
        let most = near.sweep.plan().most.clone();
        drop(near);
        let blocks = Blocks { rule: exact_lefts(steps as usize, &most), most };
        Ok(Mixed::of(blocks, steps, bound, true, count))
    }

    /// As [`with_sizes`](Self::with_sizes), but divided by capacities whatever the number of steps: a few percent from
    /// the optimum, quickly planned.
    pub fn near(steps: u64, sizes: Sizes, bytes: u64) -> Result<Mixed, Error> {
        let blocks = Blocks::by_capacity(steps, sizes, bytes)?;
        let bound = blocks.bound(steps);
        Ok(Mixed::of(blocks, steps, bound, false, Count::Recursion))
    }

    fn of(blocks: Blocks, steps: u64, bound: u64, exact: bool, count: Count) -> Mixed {
        let cost = match count {
            Count::Recursion => tally(&blocks, steps, |_, _, _, _| None),
            Count::Walk => walked(&blocks, steps, blocks.most.len() - 1),
        };
        let exact = exact || cost.forward == bound;
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

    /// No schedule within this room takes fewer forward evaluations than this.
    pub fn bound(&self) -> u64 {
        self.bound
    }

    /// Forward evaluations by the bound: 1 means optimal, 1.02 that at most 2 % could be saved.
    pub fn gap(&self) -> f64 {
        if self.steps == 0 { 1.0 } else { self.cost.forward as f64 / self.bound as f64 }
    }

    /// Whether no schedule within this room takes fewer forward evaluations.
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
struct Blocks {
    /// `most[a]`: the most steps that can be recorded as a whole while `a` snapshots are held. It falls with `a`.
    most: Box<[u64]>,
    rule: Rule,
}

#[derive(Clone, Debug)]
enum Rule {
    /// `lefts[a * stride + n]`: how far to advance.
    Table { lefts: Box<[u16]>, stride: usize },
    /// `cap[q * most.len() + a]`: the most steps if none is advanced over more than `q` times.
    Capacity { cap: Vec<u64> },
}

impl Plan for Blocks {
    #[inline]
    fn choose(&self, steps: u64, held: Held, _: Option<Tier>) -> Choice {
        let level = held.memory as usize;
        if steps <= self.most[level] {
            return Choice::Record;
        }
        let left = match &self.rule {
            Rule::Table { lefts, stride } => lefts[level * stride + steps as usize].into(),
            Rule::Capacity { cap } => self.left_by_capacity(cap, steps, level),
        };
        Choice::Split { left, tier: Tier::Memory }
    }
}

impl Blocks {
    fn by_capacity(steps: u64, sizes: Sizes, bytes: u64) -> Result<Blocks, Error> {
        let last = steps.saturating_sub(1);
        let snapshots = bytes.checked_div(sizes.snapshot).unwrap_or(u64::MAX).min(last);
        let most = |held: u64| {
            let room = bytes - held * sizes.snapshot;
            room.checked_div(sizes.residual).unwrap_or(u64::MAX).saturating_add(1)
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
        Ok(Blocks { most, rule: Rule::Capacity { cap } })
    }

    fn bound(&self, steps: u64) -> u64 {
        let Rule::Capacity { cap } = &self.rule else { unreachable!("the bound is made of capacities") };
        let beyond = cap.iter().step_by(self.most.len()).map(|&cap| steps.saturating_sub(cap));
        beyond.fold(steps, u64::saturating_add)
    }

    /// As far as possible within the range in which no step is repeated more often than needed: the stretch that is done
    /// with more room is the longer one.
    fn left_by_capacity(&self, cap: &[u64], steps: u64, level: usize) -> u64 {
        let levels = self.most.len();
        let repeats = cap.iter().skip(level).step_by(levels).take_while(|&&cap| cap < steps).count();
        let cap = |repeats: usize, level: usize| cap[repeats * levels + level];
        let least = if repeats >= 2 { cap(repeats - 2, level) } else { 1 };
        let least = least.max(steps.saturating_sub(cap(repeats, level + 1)));
        cap(repeats - 1, level).min(steps.saturating_sub(cap(repeats - 1, level + 1))).max(least)
    }

    fn sweep(self, steps: u64) -> Sweep<Blocks> {
        let slots = self.most.len() - 1;
        Sweep::new(self, steps, slots)
    }

    fn heap_bytes(&self) -> usize {
        let rule = match &self.rule {
            Rule::Table { lefts, .. } => size_of_val::<[u16]>(lefts),
            Rule::Capacity { cap } => cap.capacity() * size_of::<u64>(),
        };
        rule + size_of_val::<[u64]>(&self.most)
    }
}

/// The dynamic program: for every level and length, the best place to come back to.
fn exact_lefts(steps: usize, most: &[u64]) -> Rule {
    const NEVER: u32 = u32::MAX / 4;
    let stride = steps + 1;
    let mut lefts = vec![0_u16; most.len() * stride];
    // The cost of the level above at `steps - x`, so that both rows are read in the same direction.
    let mut above = vec![NEVER; stride];
    let mut costs = vec![0_u32; stride];
    // What the left part costs: to advance over it, and to come back.
    let mut back = vec![0_u32; stride];
    for (level, &most) in most.iter().enumerate().rev() {
        // Each snapshot held has at least a step to its left.
        for n in 1..=steps - level {
            costs[n] = n as u32;
            if n as u64 > most {
                let (back, rest) = (&back[1..n], &above[steps - n + 1..steps]);
                let best = back.iter().zip(rest).map(|(back, rest)| back + rest).min().unwrap_or(NEVER);
                if best < NEVER {
                    let place = back.iter().zip(rest).position(|(back, rest)| back + rest == best);
                    lefts[level * stride + n] = place.map_or(0, |place| place as u16 + 1);
                }
                costs[n] = best.min(NEVER);
            }
            back[n] = n as u32 + costs[n];
        }
        for n in 0..=steps {
            above[steps - n] = costs[n];
        }
    }
    Rule::Table { lefts: lefts.into(), stride }
}
