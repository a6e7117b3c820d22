//! The one loop behind every schedule: a stack of snapshots, walked from the last step to the first.
//!
//! Input: a [`Plan`], which says for a stretch of steps either "record all of it" or "keep its first state,
//! advance, and come back". Output: actions. Memory: one entry for each slot, allocated once; nothing is
//! allocated by `next`.
//!
//! Invariant: the snapshots on the stack are sorted by step, the last one is where the next restart begins,
//! and snapshots of a tier are taken and given back in the order of a stack.

use super::{Action, Cost, PerTier, Slot, Tier, cost};

/// How many snapshots of each tier are in use.
pub(super) type Held = PerTier<u32>;

impl Held {
    pub(super) fn with(mut self, tier: Tier) -> Held {
        *self.of(tier) += 1;
        self
    }

    fn without(mut self, tier: Tier) -> Held {
        *self.of(tier) -= 1;
        self
    }
}

/// What to do with a stretch of steps whose first state is live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Record every step of it, then reverse them.
    Record,
    /// Keep the first state in a slot of this tier, advance `left` steps, do the rest, come back for the
    /// first `left`.
    Split { left: u64, tier: Tier },
}

/// How stretches are divided.
pub(super) trait Plan {
    /// What to do with `steps` steps (at least 1) while `held` snapshots are in use by earlier snapshots.
    /// `stored` says where the first state is kept already; that slot is not counted in `held`.
    fn choose(&self, steps: u64, held: Held, stored: Option<Tier>) -> Choice;

    /// Bytes of its tables.
    fn heap_bytes(&self) -> usize {
        0
    }
}

impl<P: Plan> Plan for &P {
    #[inline]
    fn choose(&self, steps: u64, held: Held, stored: Option<Tier>) -> Choice {
        (**self).choose(steps, held, stored)
    }
}

/// The bytes of a stack for so many snapshots.
pub(super) fn stack_bytes(snapshots: usize) -> usize {
    snapshots.saturating_mul(size_of::<Kept>())
}

/// What it takes to make a schedule, and then to follow it: its own bytes, not those of what it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanBytes {
    /// The most heap bytes that are held while it is made.
    pub planning: usize,
    /// The most that are held afterwards.
    pub following: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pub(super) step: u64,
    pub(super) slot: Slot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Arrive,
    Keep,
    Advance,
    Record,
    Reverse,
    Restore,
    Release,
    Done,
}

#[derive(Clone, Debug)]
pub(super) struct Sweep<P> {
    plan: P,
    kept: Vec<Kept>,
    /// Which slot of memory is taken when so many are in use; empty if simply that number.
    order: Box<[u32]>,
    held: Held,
    /// The live state is that before this step.
    at: u64,
    /// Steps from here on are reversed.
    end: u64,
    /// The first step of the stretch whose residuals are kept.
    block: u64,
    choice: Choice,
    phase: Phase,
}

impl<P: Plan> Sweep<P> {
    /// A loop of `steps` steps from its first state, with at most `snapshots` snapshots at once.
    pub(super) fn new(plan: P, steps: u64, snapshots: usize) -> Self {
        Sweep::with(plan, steps, snapshots, Vec::new())
    }

    /// The same as [`Sweep::new`], in the memory of this one.
    pub(super) fn again(self, plan: P, steps: u64, snapshots: usize) -> Self {
        Sweep::with(plan, steps, snapshots, self.kept)
    }

    fn with(plan: P, steps: u64, snapshots: usize, mut kept: Vec<Kept>) -> Self {
        kept.clear();
        kept.reserve_exact(snapshots);
        let phase = if steps == 0 { Phase::Done } else { Phase::Arrive };
        Sweep::at(plan, steps, kept, Box::default(), phase)
    }

    /// Only the reverse sweep: all `steps` steps have been run, and these snapshots in memory are left.
    /// `order` begins with their snapshots and goes on with the free ones.
    pub(super) fn back(plan: P, steps: u64, kept: Vec<Kept>, order: Box<[u32]>) -> Self {
        let phase = if steps == 0 { Phase::Done } else { Phase::Restore };
        Sweep::at(plan, steps, kept, order, phase)
    }

    fn at(plan: P, end: u64, kept: Vec<Kept>, order: Box<[u32]>, phase: Phase) -> Self {
        let held = Held { memory: kept.len() as u32, disk: 0 };
        Sweep { plan, kept, order, held, at: 0, end, block: 0, choice: Choice::Record, phase }
    }

    pub(super) fn plan(&self) -> &P {
        &self.plan
    }

    /// Bytes of the stack and the plan.
    pub(super) fn heap_bytes(&self) -> usize {
        let stack = self.kept.capacity() * size_of::<Kept>() + self.order.len() * size_of::<u32>();
        stack + self.plan.heap_bytes()
    }

    #[inline]
    pub(super) fn next(&mut self) -> Option<Action> {
        let action = match self.phase {
            Phase::Arrive => {
                self.choice = self.plan.choose(self.end - self.at, self.held, None);
                match self.choice {
                    Choice::Record => self.record_block(),
                    Choice::Split { tier, .. } => self.keep(tier),
                }
            }
            Phase::Keep => match self.choice {
                Choice::Record => self.record_block(),
                Choice::Split { tier, .. } => self.keep(tier),
            },
            Phase::Advance => {
                let Choice::Split { left, .. } = self.choice else { unreachable!("only a split advances") };
                let from = self.at;
                self.at += left;
                self.phase = Phase::Arrive;
                Action::Advance { from, to: self.at }
            }
            Phase::Record => self.record(),
            Phase::Reverse => {
                self.end -= 1;
                if self.end == self.block {
                    self.phase = if self.kept.is_empty() { Phase::Done } else { Phase::Restore };
                }
                Action::Reverse { step: self.end }
            }
            Phase::Restore => {
                let Kept { step, slot } = *self.kept.last().expect("a snapshot to come back to");
                self.at = step;
                let held = self.held.without(slot.tier);
                self.choice = self.plan.choose(self.end - step, held, Some(slot.tier));
                let stays = matches!(self.choice, Choice::Split { tier, .. } if tier == slot.tier);
                self.phase = if stays { Phase::Advance } else { Phase::Release };
                Action::Restore { step, slot }
            }
            Phase::Release => {
                let Kept { slot, .. } = self.kept.pop().expect("the snapshot just restored");
                self.held = self.held.without(slot.tier);
                self.phase = Phase::Keep;
                Action::Free { slot }
            }
            Phase::Done => return None,
        };
        Some(action)
    }

    #[inline]
    fn keep(&mut self, tier: Tier) -> Action {
        let used = *self.held.of(tier);
        let index = match (tier, self.order.get(used as usize)) {
            (Tier::Memory, Some(&index)) => index,
            _ => used,
        };
        let kept = Kept { step: self.at, slot: Slot { tier, index } };
        self.kept.push(kept);
        self.held = self.held.with(tier);
        self.phase = Phase::Advance;
        Action::Snapshot { step: kept.step, slot: kept.slot }
    }

    #[inline]
    fn record_block(&mut self) -> Action {
        self.block = self.at;
        self.record()
    }

    #[inline]
    fn record(&mut self) -> Action {
        let step = self.at;
        self.at += 1;
        self.phase = if self.at == self.end { Phase::Reverse } else { Phase::Record };
        Action::Record { step }
    }
}

/// What following a plan costs, found by walking it: as many actions as a few times its steps, and no memory
/// but the stack.
pub(super) fn walked<P: Plan>(plan: &P, steps: u64, snapshots: usize) -> Cost {
    let mut sweep = Sweep::new(plan, steps, snapshots);
    cost(core::iter::from_fn(|| sweep.next()))
}

/// Makes a named type with a `sweep` inside an iterator of actions.
macro_rules! actions {
    ($($name:ident),*) => {$(
        impl Iterator for $name {
            type Item = $crate::schedule::Action;
            #[inline]
            fn next(&mut self) -> Option<Self::Item> {
                self.sweep.next()
            }
        }
        impl core::iter::FusedIterator for $name {}
        impl $name {
            /// Bytes that the schedule itself holds: its stack and its tables.
            pub fn heap_bytes(&self) -> usize {
                self.sweep.heap_bytes()
            }
        }
    )*};
}
pub(super) use actions;
