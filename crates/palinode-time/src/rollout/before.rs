//! The states before units that are not recorded but gone through again: by a rule, or because the step is
//! itself a loop.

use super::Inner;
use super::flat::Flat;
use palinode_core::{Passive, Reals};

/// A state for each unit that is kept at the same time.
pub(super) struct Before<R> {
    states: Vec<Option<R>>,
}

impl<R> Default for Before<R> {
    fn default() -> Self {
        Before { states: Vec::new() }
    }
}

impl<R> Before<R> {
    pub(super) fn reserve(&mut self, places: usize) {
        self.states.reserve_exact(places.saturating_sub(self.states.len()));
    }

    pub(super) fn get(&self, kept: usize) -> Option<&R> {
        self.states[kept].as_ref()
    }

    pub(super) fn heap_bytes<T: Inner>(&self) -> usize
    where
        R: Reals<Passive<T>>,
    {
        self.states.iter().flatten().map(Reals::heap_bytes).sum::<usize>()
            + self.states.capacity() * size_of::<Option<R>>()
    }

    /// The bytes that one more unit takes.
    pub(super) fn bytes_of_one<T: Inner>(&self) -> usize
    where
        R: Reals<Passive<T>>,
    {
        size_of::<Option<R>>() + self.states.first().and_then(Option::as_ref).map_or(0, Reals::heap_bytes)
    }

    /// Keeps a state, in exchange for the memory of the state that was there.
    pub(super) fn keep<T: Inner>(&mut self, kept: usize, state: &mut R, numbers: &mut Flat<T>)
    where
        R: Reals<Passive<T>>,
    {
        while self.states.len() <= kept {
            self.states.push(None);
        }
        match &mut self.states[kept] {
            Some(slot) => core::mem::swap(slot, state),
            empty => {
                numbers.clear();
                state.save(numbers);
                *empty = Some(R::load(&mut numbers.read(Passive::lift)));
            }
        }
    }

    /// The state becomes the one that was kept.
    pub(super) fn give_back<T: Inner>(&self, kept: usize, state: &mut R, numbers: &mut Flat<T>)
    where
        R: Reals<Passive<T>>,
    {
        numbers.clear();
        self.states[kept].iter().for_each(|before| before.save(numbers));
        state.reload(&mut numbers.read(Passive::lift));
    }
}
