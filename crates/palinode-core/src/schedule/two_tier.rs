//! Snapshots in memory and on disk, where a write and a read cost time (H-Revolve; Herrmann & Pallez).
//!
//! A stretch whose first state is live is done in memory alone, by the closed form, or its first state is
//! written to disk, it is divided, and the state is read again for the left part. Inside a stretch that is
//! done in memory nothing goes to disk.
//!
//! Input: steps, snapshots of each tier, costs of a write and a read in forward steps. Output: actions. Disk
//! snapshots are freed with their last read. Exact up to [`TwoTier::EXACT_STEPS`] steps, or off by a few
//! steps if that would take more than about a second, with the gap to a bound. Longer loops, and those with
//! more than 400 snapshots on disk, are divided at multiples of a block of steps only; the bound is then that
//! of any number of snapshots on disk, or (beyond a million steps, and in rollouts) of a disk that costs
//! nothing.

use super::divide::{A_SECOND, BOUND, Division};
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
    least: Total,
}

actions!(TwoTier);

/// The best schedule with `ram_snapshots` snapshots in memory and `disk_snapshots` on disk, if a write to
/// disk costs as much as `write_cost` forward steps and a read as much as `read_cost`. The first state takes
/// a slot, too, in either tier.
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
    ram_snapshots: u32,
    disk_snapshots: u32,
    write_cost: f64,
    read_cost: f64,
) -> Result<TwoTier, Error> {
    let most = Most { blocks: TwoTier::EXACT_STEPS, work: A_SECOND };
    let (plan, ram, mut total) =
        checked(steps, ram_snapshots, disk_snapshots, (write_cost, read_cost), most)?;
    if plan.block > 1 && steps <= MOST_BOUNDED {
        total.bound = total.bound.max(bound_of_any(steps, ram, (write_cost, read_cost)));
    }
    let cost = tally(&plan, steps, |steps, _, stored, choice| plan.known(steps, stored, choice));
    Ok(TwoTier::of(plan, steps, ram, cost, total))
}

/// [`two_tier`] for those who will follow it and have a budget: divided at no more than `blocks` places
/// (fewer, but not below 2000, if that would take longer than some tens of milliseconds), and its cost found
/// by walking, which takes as long as following and no memory. Making it takes no more than
/// [`two_tier_bytes`] says.
pub fn two_tier_walked(
    steps: u64,
    ram_snapshots: u32,
    disk_snapshots: u32,
    (write_cost, read_cost): (f64, f64),
    blocks: u64,
) -> Result<TwoTier, Error> {
    let most = Most { blocks, work: QUICKLY };
    let (plan, ram, total) = checked(steps, ram_snapshots, disk_snapshots, (write_cost, read_cost), most)?;
    let cost = walked(&plan, steps, ram as usize + plan.disk as usize);
    Ok(TwoTier::of(plan, steps, ram, cost, total))
}

/// The heap bytes that [`two_tier_walked`] takes at most.
pub fn two_tier_bytes(steps: u64, ram_snapshots: u32, disk_snapshots: u32, blocks: u64) -> PlanBytes {
    let blocks = steps.div_ceil(Most { blocks, work: QUICKLY }.block(steps, disk_snapshots));
    let (stride, rows) = (blocks as usize + 1, blocks.min(disk_snapshots.into()) as usize);
    let table = rows.saturating_mul(stride * size_of::<u16>());
    let ram = steps.saturating_sub(1).min(ram_snapshots.into());
    let stack = stack_bytes((ram as usize).saturating_add(rows));
    let lists = stride * (3 * size_of::<f64>() + size_of::<u16>()) + Division::bytes_for(blocks as usize);
    PlanBytes { planning: table.saturating_add(lists.max(stack)), following: table.saturating_add(stack) }
}

/// Some tens of milliseconds.
const QUICKLY: u64 = A_SECOND / 8;

/// At how many places a loop is divided at most, and how much is looked at.
#[derive(Clone, Copy)]
struct Most {
    blocks: u64,
    work: u64,
}

impl Most {
    /// So many blocks do not take long, however many snapshots there are.
    const FEW: u64 = 2000;

    /// How many steps a block has.
    fn block(self, steps: u64, disk_snapshots: u32) -> u64 {
        let in_time =
            (self.work / BOUND).checked_div(disk_snapshots.into()).unwrap_or(u64::MAX).max(Most::FEW);
        steps.div_ceil(self.blocks.min(in_time).max(1)).max(1)
    }
}

/// What no schedule takes less than, and whether the one that was found takes that.
#[derive(Clone, Copy, Debug)]
struct Total {
    bound: f64,
    is_least: bool,
}

/// Of what all costs are whole numbers, if the disk's are fractions that people write; 0 if not.
fn unit(write: f64, read: f64) -> f64 {
    let is_whole = |cost: f64| (cost - cost.round()).abs() < 1e-9;
    let parts = (1..=100).map(f64::from).find(|parts| is_whole(write * parts) && is_whole(read * parts));
    parts.map_or(0.0, |parts| 1.0 / parts)
}

/// Of loops up to so long [`bound_of_any`] takes no more than a tenth of a second.
const MOST_BOUNDED: u64 = 1 << 20;

/// What no schedule takes less than, however many snapshots there are on disk: what is to the right of a
/// division has as many as the whole.
fn bound_of_any(steps: u64, ram: u32, (write, read): (f64, f64)) -> f64 {
    let mut division = Division::new(steps as usize, unit(write, read), 0);
    division.begin(&[], &[], 2);
    let mut live = 0.0;
    for n in 1..=steps as usize {
        let in_memory = binomial::known(n as u64, ram.into()).forward as f64;
        let on_disk = division.bound(n).min(in_memory);
        division.push(n as f64 + read + on_disk, n as f64 + read + on_disk);
        live = in_memory.min(write + on_disk);
        division.push_right(n, live);
    }
    live
}

/// The plan, the snapshots of memory that are of use, and the bound.
fn checked(
    steps: u64,
    ram_snapshots: u32,
    disk_snapshots: u32,
    (write_cost, read_cost): (f64, f64),
    most: Most,
) -> Result<(Tiers, u32, Total), Error> {
    for (what, value) in [("the cost of a write", write_cost), ("the cost of a read", read_cost)] {
        if !(value >= 0.0 && value.is_finite()) {
            return Err(Error::ScheduleArgument { what, value, must: "be finite and not negative" });
        }
    }
    let ram = binomial::useful(steps, ram_snapshots)?;
    let block = most.block(steps, disk_snapshots);
    let (plan, total) = Tiers::new(steps, ram, disk_snapshots, (write_cost, read_cost), block, most.work);
    if block == 1 {
        return Ok((plan, ram, total));
    }
    // Other places are not looked at: what is known is how many forward evaluations it takes if the disk
    // costs nothing.
    let free = binomial::known(steps, u64::from(ram_snapshots) + u64::from(disk_snapshots)).forward;
    Ok((plan, ram, Total { bound: free as f64, is_least: false }))
}

impl TwoTier {
    /// Up to so many steps the schedule is optimal, or nearly if that would take more than about a second:
    /// [`is_exact`](Self::is_exact) and [`gap`](Self::gap) tell. Longer loops are divided at so many places
    /// at most.
    pub const EXACT_STEPS: u64 = 20_000;

    fn of(plan: Tiers, steps: u64, ram: u32, cost: Cost, least: Total) -> TwoTier {
        let total = cost.with_disk(plan.write, plan.read);
        let least = if least.is_least { Total { bound: total, ..least } } else { least };
        let snapshots = ram as usize + plan.disk as usize;
        TwoTier { sweep: Sweep::new(plan, steps, snapshots), steps, cost, least }
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

    /// No schedule with so many snapshots has a lower [`total`](Self::total).
    pub fn bound(&self) -> f64 {
        self.least.bound
    }

    /// The total by the bound, 1 if it is optimal: 1.01 means that at most 1 % could be saved.
    pub fn gap(&self) -> f64 {
        if self.steps == 0 { 1.0 } else { self.total() / self.least.bound }
    }

    /// Whether it is optimal.
    pub fn is_exact(&self) -> bool {
        self.least.is_least
    }
}

#[derive(Clone, Debug)]
struct Tiers {
    ram: u32,
    /// Disk snapshots that are of use.
    disk: u32,
    write: f64,
    read: f64,
    /// Steps are divided at multiples of this.
    block: u64,
    /// For `m` disk snapshots and `k` blocks, at `(m - 1) * stride + k`: how many blocks to advance over from
    /// a state on disk (0: do it in memory), and [`TO_DISK`] if a live state is worth writing.
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

    fn heap_bytes(&self) -> usize {
        self.lefts.capacity() * size_of::<u16>()
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

    /// The best plan, or nearly if that would take too long, and what no plan with these blocks is below.
    fn new(
        steps: u64,
        ram: u32,
        disk: u32,
        (write, read): (f64, f64),
        block: u64,
        most_work: u64,
    ) -> (Tiers, Total) {
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
        let mut row = vec![0_u16; stride];
        let mut used = 0;
        // From a live state, with as many disk snapshots as rows; and what that does not cost less than.
        let (mut live, mut bounds) = (in_memory.clone(), in_memory.clone());
        let mut division = Division::new(blocks, unit(write, read), most_work);
        while used < disk {
            division.begin(&live, &bounds, least_right);
            let mut changed = false;
            for k in 1..=blocks {
                // With one slot less it was divided there: so that no slot makes it worse.
                let best = division.best(k, usize::from(row[k] & !TO_DISK));
                let (on_disk, bound) = (best.cost.min(in_memory[k]), best.bound.min(in_memory[k]));
                row[k] = if best.cost < in_memory[k] { best.left as u16 } else { 0 };
                // From a state on disk: to advance over it, to read the state, and to come back.
                let there = (k as u64 * block) as f64 + read;
                division.push(there + on_disk, there + bound);
                if write + on_disk < in_memory[k] {
                    row[k] |= TO_DISK;
                }
                let now = ((write + on_disk).min(in_memory[k]), (write + bound).min(in_memory[k]));
                changed |= now != (live[k], bounds[k]);
                (live[k], bounds[k]) = now;
            }
            if !changed {
                break; // a further slot would change nothing
            }
            lefts.extend_from_slice(&row);
            used += 1;
        }
        let total = Total { bound: bounds[blocks], is_least: bounds[blocks] == live[blocks] };
        (Tiers { ram, disk: used, write, read, block, lefts, stride }, total)
    }
}
