//! What an engine does for each action of a schedule.
//!
//! Input: actions, stores, a loss. Output: the engine's state and cotangents as they are when all actions
//! have been followed.
//!
//! Invariant: a slow store learns what it will be asked for some actions ahead,
//! so it reads while steps are taken.

use super::{AHEAD, Backend, Engine, Error, Inner, Live, Loss, Step, Stores, outgrown};
use palinode_core::schedule::{Action, Slot, Tier};
use palinode_core::{Snapshot, SnapshotError};
use std::collections::VecDeque;

impl<St: Step, T: Inner, B: Backend<St, T>> Engine<'_, St, T, B> {
    /// Follows the actions.
    pub(in crate::rollout) fn follow(
        &mut self,
        actions: impl Iterator<Item = Action>,
        stores: &mut Stores<'_, '_>,
        loss: &mut Loss<'_, St, T>,
    ) -> Result<(), Error> {
        if stores.disk.is_none() {
            for action in actions {
                self.act(action, stores, loss)?;
            }
            return Ok(());
        }
        // A slow store learns some actions ahead what it will be asked for.
        let mut actions = actions;
        let mut ahead = VecDeque::with_capacity(AHEAD);
        loop {
            while ahead.len() < AHEAD
                && let Some(action) = actions.next()
            {
                if let Action::Restore { step, slot } = action
                    && slot.tier == Tier::Disk
                {
                    stores.of(slot).prefetch(slot.index, self.first(step));
                }
                ahead.push_back(action);
            }
            let Some(action) = ahead.pop_front() else { return Ok(()) };
            self.act(action, stores, loss)?;
        }
    }

    #[inline]
    pub(in crate::rollout) fn act(
        &mut self,
        action: Action,
        stores: &mut Stores<'_, '_>,
        loss: &mut Loss<'_, St, T>,
    ) -> Result<(), Error> {
        match action {
            Action::Advance { from, to } => self.advance(self.first(from), self.first(to)),
            Action::Snapshot { step, slot } => self.keep(self.first(step), slot, stores),
            Action::Restore { step, slot } => {
                let step = self.first(step);
                let store = stores.of(slot);
                match store.view(slot.index, step) {
                    Some(words) => Snapshot::restore_kept(step, words, &mut self.live)?,
                    None => {
                        store.get(slot.index, step, &mut self.snapshot)?;
                        let words = (self.snapshot.reals(), self.snapshot.plain());
                        Snapshot::restore_kept(step, words, &mut self.live)?;
                    }
                }
                self.at = Live::Before(step);
                Ok(())
            }
            Action::Free { slot } => {
                stores.of(slot).free(slot.index);
                Ok(())
            }
            Action::Record { step } => self.record(self.first(step)),
            Action::Reverse { step } => self.reverse(self.first(step), loss),
        }
    }

    fn keep(&mut self, step: u64, slot: Slot, stores: &mut Stores<'_, '_>) -> Result<(), Error> {
        self.settle()?;
        self.check_sizes(step)?;
        debug_assert_eq!(self.at, Live::Before(step));
        let lengths = Snapshot::lengths(&self.live);
        if !stores.is_ours(slot) {
            self.check_lengths(step, lengths)?;
        }
        let store = stores.of(slot);
        let kept = match store.put_with(slot.index, step, lengths, &mut |words| words.fill(&self.live)) {
            Ok(true) => return Ok(()),
            Ok(false) => {
                self.snapshot.take(&self.live);
                store.put(slot.index, step, &self.snapshot)
            }
            Err(error) => Err(error),
        };
        match kept {
            // The store in memory has the rest of the budget, and refuses what would take it beyond.
            Err(SnapshotError::NoSpace { .. }) if slot.tier == Tier::Memory && stores.has_the_budget() => {
                Err(outgrown(step))
            }
            other => Ok(other?),
        }
    }
}
