//! Is a stream of actions a schedule? It is followed without data: where the live state is, what each slot
//! holds, whose residuals are kept.
//!
//! Input: actions, the number of steps, the snapshots that exist. Output: its [`Cost`], or the first
//! [`Mistake`].

use super::cost::{Counter, PerTier};
use super::{Action, Cost, Slot, Tier};
use thiserror::Error;

/// The first action that a driver could not follow, or what is missing at the end.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("PAL0503: not a schedule: action {at}: {what}; report this, or check the stream that was passed")]
pub struct Mistake {
    /// Which action, from 0; the number of actions if something is missing at the end.
    pub at: u64,
    /// What is wrong with it.
    pub what: Wrong,
}

impl Mistake {
    /// The code; `docs/book/errors/PAL0503.md` explains it.
    pub fn code(&self) -> &'static str {
        "PAL0503"
    }
}

/// What can be wrong with an action; the messages say what the fields are.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Wrong {
    /// An advance, a snapshot or a recording names another step than the live state is before.
    #[error("it is for the state before step {asked}, but the live state is that before step {live}")]
    Position { asked: u64, live: u64 },
    /// An advance that goes nowhere or back.
    #[error("it advances from {from} to {to}")]
    Direction { from: u64, to: u64 },
    /// A step beyond the end of the loop.
    #[error("step {step} is not one of the {steps} of the loop")]
    Beyond { step: u64, steps: u64 },
    /// There is no such slot.
    #[error("there is no slot {} in {:?}", .slot.index, .slot.tier)]
    NoSuchSlot { slot: Slot },
    /// A snapshot would overwrite another.
    #[error("slot {} in {:?} is in use: it holds the state before step {holds}", .slot.index, .slot.tier)]
    SlotInUse { slot: Slot, holds: u64 },
    /// A slot is restored from or freed that holds nothing.
    #[error("slot {} in {:?} is empty", .slot.index, .slot.tier)]
    SlotEmpty { slot: Slot },
    /// A slot holds another state than the one asked for.
    #[error("slot {} in {:?} holds the state before step {holds}, not that before {asked}", .slot.index, .slot.tier)]
    OtherState { slot: Slot, holds: u64, asked: u64 },
    /// A step is recorded while its residuals are kept already, or after it was reversed.
    #[error("step {step} is recorded again, although its residuals are kept or were used")]
    RecordedTwice { step: u64 },
    /// A step is reversed out of order.
    #[error("step {asked} is reversed where step {due} is due")]
    Order { asked: u64, due: u64 },
    /// A step is reversed that was reversed before.
    #[error("step {step} is reversed twice")]
    ReversedTwice { step: u64 },
    /// A step is reversed without residuals.
    #[error("step {step} is reversed without having been recorded")]
    NotRecorded { step: u64 },
    /// The stream ends before all steps are reversed.
    #[error("the stream ends, but steps below {below} are not reversed")]
    Unfinished { below: u64 },
    /// The stream ends and a slot is still in use.
    #[error("the stream ends with slot {} in {:?} still in use, for the state before step {holds}", .slot.index, .slot.tier)]
    Leak { slot: Slot, holds: u64 },
}

/// Follows a stream for a loop of `steps` steps, with as many snapshots in each tier as `snapshots` says.
///
/// ```
/// use palinode_core::schedule::{Action, PerTier, Wrong, binomial, check};
///
/// let snapshots = PerTier { memory: 3, disk: 0 };
/// assert_eq!(check(binomial(10, 3)?, 10, snapshots).unwrap().forward, 25);
///
/// // The last action frees slot 0: without it the slot leaks.
/// let actions: Vec<Action> = binomial(10, 3)?.filter(|action| !matches!(action, Action::Free { slot } if slot.index == 0)).collect();
/// assert!(matches!(check(actions, 10, snapshots).unwrap_err().what, Wrong::Leak { holds: 0, .. }));
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn check(
    actions: impl IntoIterator<Item = Action>,
    steps: u64,
    snapshots: PerTier,
) -> Result<Cost, Mistake> {
    let mut follower = Follower {
        steps,
        snapshots,
        live: 0,
        due: steps,
        memory: Vec::new(),
        disk: Vec::new(),
        residuals: Vec::new(),
        counter: Counter::default(),
    };
    let mut at = 0;
    for action in actions {
        follower.follow(action).map_err(|what| Mistake { at, what })?;
        at += 1;
    }
    follower.finish().map_err(|what| Mistake { at, what })
}

struct Follower {
    steps: u64,
    snapshots: PerTier,
    /// The live state is that before this step.
    live: u64,
    /// Steps from here on are reversed.
    due: u64,
    memory: Vec<Option<u64>>,
    disk: Vec<Option<u64>>,
    /// Sorted, so that the one that is due is the last.
    residuals: Vec<u64>,
    counter: Counter,
}

impl Follower {
    fn follow(&mut self, action: Action) -> Result<(), Wrong> {
        match action {
            Action::Advance { from, to } => {
                self.at(from)?;
                if from >= to {
                    return Err(Wrong::Direction { from, to });
                }
                self.inside(to - 1)?;
                self.live = to;
            }
            Action::Snapshot { step, slot } => {
                self.at(step)?;
                let place = self.slot(slot)?;
                if let Some(holds) = *place {
                    return Err(Wrong::SlotInUse { slot, holds });
                }
                *place = Some(step);
            }
            Action::Restore { step: asked, slot } => {
                let holds = self.slot(slot)?.ok_or(Wrong::SlotEmpty { slot })?;
                if holds != asked {
                    return Err(Wrong::OtherState { slot, holds, asked });
                }
                self.live = asked;
            }
            Action::Free { slot } => {
                self.slot(slot)?.take().ok_or(Wrong::SlotEmpty { slot })?;
            }
            Action::Record { step } => {
                self.at(step)?;
                self.inside(step)?;
                match self.residuals.binary_search(&step) {
                    Err(place) if step < self.due => self.residuals.insert(place, step),
                    _ => return Err(Wrong::RecordedTwice { step }),
                }
                self.live = step + 1;
            }
            Action::Reverse { step } => {
                self.inside(step)?;
                if step >= self.due {
                    return Err(Wrong::ReversedTwice { step });
                }
                if step + 1 != self.due {
                    return Err(Wrong::Order { asked: step, due: self.due - 1 });
                }
                self.residuals.pop_if(|last| *last == step).ok_or(Wrong::NotRecorded { step })?;
                self.due = step;
            }
        }
        self.counter.count(action);
        Ok(())
    }

    fn finish(&self) -> Result<Cost, Wrong> {
        if self.due > 0 {
            return Err(Wrong::Unfinished { below: self.due });
        }
        for (tier, held) in [(Tier::Memory, &self.memory), (Tier::Disk, &self.disk)] {
            if let Some((index, holds)) = (0..).zip(held).find_map(|(index, held)| Some((index, (*held)?))) {
                return Err(Wrong::Leak { slot: Slot { tier, index }, holds });
            }
        }
        Ok(self.counter.cost())
    }

    fn at(&self, asked: u64) -> Result<(), Wrong> {
        if self.live == asked { Ok(()) } else { Err(Wrong::Position { asked, live: self.live }) }
    }

    fn inside(&self, step: u64) -> Result<(), Wrong> {
        if step < self.steps { Ok(()) } else { Err(Wrong::Beyond { step, steps: self.steps }) }
    }

    fn slot(&mut self, slot: Slot) -> Result<&mut Option<u64>, Wrong> {
        if u64::from(slot.index) >= *self.snapshots.of(slot.tier) {
            return Err(Wrong::NoSuchSlot { slot });
        }
        let held = match slot.tier {
            Tier::Memory => &mut self.memory,
            Tier::Disk => &mut self.disk,
        };
        let index = slot.index as usize;
        if held.len() <= index {
            held.resize(index + 1, None);
        }
        Ok(&mut held[index])
    }
}
