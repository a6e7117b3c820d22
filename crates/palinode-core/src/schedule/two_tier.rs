//! Snapshots in memory and on disk, where a write and a read cost time (H-Revolve; Herrmann & Pallez).
//!
//! A stretch whose first state is live is done in memory alone, by the closed form, or its first state is written to disk,
//! it is divided, and the state is read again for the left part. Inside a stretch that is done in memory nothing goes to
//! disk.
//!
//! Input: steps, slots of each tier, costs of a write and a read in forward steps. Output: actions. Disk slots are freed
//! with their last read. Exact up to [`TwoTier::EXACT_STEPS`] steps if the optimum is found within about a second; else the loop is divided at multiples of a
//! block of steps only, which is exact but for that, and the gap to a bound without any disk costs is reported.

use super::divide::{A_SECOND, Division};
use super::sweep::{Choice, Held, Plan, PlanBytes, Sweep, actions, stack_bytes, walked};
use super::tally::tally;
use super::{Cost, Tier, binomial};
use crate::Error;

/// The actions of [`two_tier`].
#[derive(Clone, Debug)]
pub struct TwoTier {
    sweep: Sweep<Tiers>,
    steps: u64,
    cost: Cost,
    bound: u64,
}

actions!(TwoTier);

/// The best schedule with `ram_slots` snapshots in memory and `disk_slots` on disk, if a write to disk costs as much as
/// `write_cost` forward steps and a read as much as `read_cost`. The first state takes a slot, too, in either tier.
///
/// ```
/// use palinode_core::schedule::two_tier;
///
/// let schedule = two_tier(100, 3, 5, 2.0, 2.0)?;
/// assert_eq!(schedule.total(), 393.0); // forward steps, and two for each write and read
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn two_tier(
    steps: u64,
    ram_slots: u32,
    disk_slots: u32,
    write_cost: f64,
    read_cost: f64,
) -> Result<TwoTier, Error> {
    let (plan, ram, bound) =
        checked(steps, ram_slots, disk_slots, (write_cost, read_cost), (TwoTier::EXACT_STEPS, A_SECOND))?;
    let cost = tally(&plan, steps, |steps, _, stored, choice| plan.known(steps, stored, choice));
    Ok(TwoTier::of(plan, steps, ram, cost, bound))
}

/// [`two_tier`] for those who will follow it and have a budget: divided at no more than `blocks` places (at most 2000 if more would take longer than some
/// tens of milliseconds), and its cost found by walking, which takes as long as following and no memory. Making it takes no more than [`two_tier_bytes`] says.
pub fn two_tier_walked(
    steps: u64,
    ram_slots: u32,
    disk_slots: u32,
    (write_cost, read_cost): (f64, f64),
    blocks: u64,
) -> Result<TwoTier, Error> {
    let (plan, ram, bound) =
        checked(steps, ram_slots, disk_slots, (write_cost, read_cost), (blocks.max(1), A_SECOND / 16))?;
    let cost = walked(&plan, steps, ram as usize + plan.disk as usize);
    Ok(TwoTier::of(plan, steps, ram, cost, bound))
}

/// The heap bytes that [`two_tier_walked`] takes at most.
pub fn two_tier_bytes(steps: u64, ram_slots: u32, disk_slots: u32, blocks: u64) -> PlanBytes {
    let blocks = steps.div_ceil(block_of(steps, blocks));
    let (stride, rows) = (blocks as usize + 1, blocks.min(disk_slots.into()) as usize);
    let table = rows.saturating_mul(stride * size_of::<u16>());
    let ram = steps.saturating_sub(1).min(ram_slots.into());
    let stack = stack_bytes((ram as usize).saturating_add(rows));
    let lists = stride * (2 * size_of::<f64>() + size_of::<u16>()) + Division::bytes_for(blocks as usize);
    PlanBytes { planning: table.saturating_add(lists.max(stack)), following: table.saturating_add(stack) }
}

/// Into so many blocks a loop is divided however long that takes.
const BLOCKS: u64 = 2000;

/// How many steps a block has if there are at most so many.
fn block_of(steps: u64, blocks: u64) -> u64 {
    steps.div_ceil(blocks).max(1)
}

/// The plan, the slots of memory that are of use, and the bound.
fn checked(
    steps: u64,
    ram_slots: u32,
    disk_slots: u32,
    (write_cost, read_cost): (f64, f64),
    (blocks, most_work): (u64, u64),
) -> Result<(Tiers, u32, u64), Error> {
    for (what, value) in [("the cost of a write", write_cost), ("the cost of a read", read_cost)] {
        if !(value >= 0.0 && value.is_finite()) {
            return Err(Error::ScheduleArgument { what, value, must: "be finite and not negative" });
        }
    }
    let ram = binomial::useful(steps, ram_slots)?;
    let bound = binomial::known(steps, u64::from(ram_slots) + u64::from(disk_slots)).forward;
    let plan = |block: u64, most_work: u64| {
        Tiers::new(steps, ram, disk_slots, (write_cost, read_cost), block, most_work)
    };
    let (block, long) = (block_of(steps, blocks), block_of(steps, blocks.min(BLOCKS)));
    let plan = if block < long { plan(block, most_work) } else { None }.or_else(|| plan(long, u64::MAX));
    Ok((plan.expect("no bound of its work"), ram, bound))
}

impl TwoTier {
    /// Up to so many steps the schedule is optimal, if it is found within about a second (always up to 2000 steps). Only many slots on disk
    /// beside one or two in memory take longer; [`is_exact`](Self::is_exact) tells.
    pub const EXACT_STEPS: u64 = 20_000;

    fn of(plan: Tiers, steps: u64, ram: u32, cost: Cost, bound: u64) -> TwoTier {
        let slots = ram as usize + plan.disk as usize;
        TwoTier { sweep: Sweep::new(plan, steps, slots), steps, cost, bound }
    }

    /// What it costs, computed.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Forward steps, and what writes and reads of the disk cost.
    pub fn total(&self) -> f64 {
        let Tiers { write, read, .. } = self.sweep.plan();
        self.cost.with_disk(*write, *read)
    }

    /// No schedule with so many slots takes less: forward evaluations if the disk cost nothing.
    pub fn bound(&self) -> u64 {
        self.bound
    }

    /// The total by the bound, 1 if it is optimal: 1.3 means that at most 30 % could be saved.
    pub fn gap(&self) -> f64 {
        if self.steps == 0 || self.is_exact() { 1.0 } else { self.total() / self.bound as f64 }
    }

    /// Whether it is optimal.
    pub fn is_exact(&self) -> bool {
        self.sweep.plan().block == 1
    }
}

#[derive(Clone, Debug)]
struct Tiers {
    ram: u32,
    /// Disk slots that are of use.
    disk: u32,
    write: f64,
    read: f64,
    /// Steps are divided at multiples of this.
    block: u64,
    /// For `m` disk slots and `k` blocks, at `(m - 1) * stride + k`: how many blocks to advance over from a state on disk
    /// (0: do it in memory), and [`TO_DISK`] if a live state is worth writing.
    lefts: Vec<u16>,
    stride: usize,
}

const TO_DISK: u16 = 1 << 15;

impl Plan for Tiers {
    #[inline]
    fn choose(&self, steps: u64, held: Held, stored: Option<Tier>) -> Choice {
        let left = match stored {
            Some(Tier::Memory) => 0,
            _ if held.memory > 0 => 0,
            _ => self.left(steps, self.disk - held.disk, stored.is_some()),
        };
        match left {
            0 if steps == 1 => Choice::Record,
            0 => Choice::Split {
                left: binomial::split(steps, u64::from(self.ram - held.memory)),
                tier: Tier::Memory,
            },
            left => Choice::Split { left, tier: Tier::Disk },
        }
    }
}

impl Tiers {
    /// How far to advance from a state on disk, or one that is worth writing there; 0 if memory does.
    fn left(&self, steps: u64, free: u32, stored: bool) -> u64 {
        if free == 0 {
            return 0;
        }
        let blocks = steps.div_ceil(self.block) as usize;
        let entry = self.lefts[(free as usize - 1) * self.stride + blocks];
        if stored || entry & TO_DISK != 0 { u64::from(entry & !TO_DISK) * self.block } else { 0 }
    }

    /// A stretch that is done in memory alone.
    fn known(&self, steps: u64, stored: Option<Tier>, choice: Choice) -> Option<Cost> {
        let begins =
            stored != Some(Tier::Memory) && matches!(choice, Choice::Split { tier: Tier::Memory, .. });
        begins.then(|| binomial::known(steps, self.ram.into()))
    }

    /// `None` if more than `most_work` would have to be looked at.
    fn new(
        steps: u64,
        ram: u32,
        disk: u32,
        (write, read): (f64, f64),
        block: u64,
        most_work: u64,
    ) -> Option<Tiers> {
        let blocks = steps.div_ceil(block) as usize;
        let stride = blocks + 1;
        let in_memory: Vec<f64> =
            (0..=blocks as u64).map(|k| binomial::known(k * block, ram.into()).forward as f64).collect();
        // A part of one step is never worth a slot.
        let least_right = if block == 1 { 2 } else { 1 };
        // There is no more than one state to keep for each block; all at once, so that nothing is held twice.
        let disk = disk.min(blocks as u32);
        let mut lefts = Vec::new();
        lefts.reserve_exact(disk as usize * stride);
        let mut row = vec![0; stride];
        let mut used = 0;
        // From a live state, with as many disk slots as rows.
        let mut live = in_memory.clone();
        let mut division = Division::new(blocks);
        while used < disk {
            row.fill(0);
            division.begin(&live);
            let mut changed = false;
            for k in 1..=blocks {
                let (best, left) = division.best(k, least_right);
                if best < in_memory[k] {
                    row[k] = left as u16;
                }
                let on_disk = best.min(in_memory[k]);
                // From a state on disk: to advance over it, to read the state, and to come back.
                division.push((k as u64 * block) as f64 + read + on_disk);
                let written = write + on_disk;
                let now = if written < in_memory[k] { written } else { in_memory[k] };
                if written < in_memory[k] {
                    row[k] |= TO_DISK;
                }
                changed |= now != live[k];
                live[k] = now;
            }
            if division.work() > most_work {
                return None;
            }
            if !changed {
                break; // a further slot would change nothing
            }
            lefts.extend_from_slice(&row);
            used += 1;
        }
        Some(Tiers { ram, disk: used, write, read, block, lefts, stride })
    }

    fn heap_bytes(&self) -> usize {
        self.lefts.capacity() * size_of::<u16>()
    }
}
