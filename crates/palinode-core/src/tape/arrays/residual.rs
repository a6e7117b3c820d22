//! Values that a reverse rule needs, and who owns them.
//!
//! Input: memory of an array. Output: the same memory, kept alive by the tape without a copy, for as long as
//! a sweep may ask for it.
//!
//! Memory that is kept is not changed any more. Its array either gets it back (nobody kept it after all), or
//! copies it before the next write, or, under [`WhenOverwritten::Recompute`], takes it away and leaves behind
//! how to compute it again.
//!
//! Invariant: [`Kept::values`] gives the same numbers at every time, bit by bit.

use super::formula::{Formula, Reader};
use super::policy::WhenOverwritten;
use super::view::View;
use crate::tape::Stamp;
use core::panic::Location;
use palinode_num::Scalar;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

/// The operation that needs memory to stay as it is.
#[derive(Clone, Copy)]
pub(crate) struct Need {
    pub(crate) by: &'static str,
    pub(crate) at: &'static Location<'static>,
    pub(crate) policy: WhenOverwritten,
    pub(crate) stamp: Stamp,
}

/// Memory that arrays and rules share.
pub(crate) struct Kept<S> {
    state: Mutex<State<S>>,
    /// The first rule that needs it; none if only copies of an array share it.
    need: OnceLock<Need>,
}

enum State<S> {
    Values(Arc<Vec<S>>, Option<Recipe<S>>),
    /// The memory was returned to its array.
    Again(Again<S>),
}

/// How an array was computed, as long as its arguments are still there.
pub(crate) struct Recipe<S> {
    pub(crate) formula: Arc<dyn Formula<S>>,
    pub(crate) arguments: Vec<Ingredient<S>>,
}

pub(crate) enum Ingredient<S> {
    Number(S),
    Values(Weak<Kept<S>>, View),
}

/// A recipe whose arguments are kept.
struct Again<S> {
    formula: Arc<dyn Formula<S>>,
    arguments: Vec<Residual<S>>,
}

impl<S: Scalar> Kept<S> {
    pub(crate) fn new(values: Arc<Vec<S>>, recipe: Option<Recipe<S>>) -> Arc<Kept<S>> {
        Arc::new(Kept { state: Mutex::new(State::Values(values, recipe)), need: OnceLock::new() })
    }

    fn state(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The rule that needs it, if one does.
    pub(crate) fn need(&self) -> Option<&Need> {
        self.need.get()
    }

    /// Notes who needs it; the heap bytes that are kept from now on, none if somebody needed it before.
    pub(crate) fn needed_by(&self, need: Need) -> usize {
        match (self.need.set(need), &*self.state()) {
            (Ok(()), State::Values(values, _)) => kept_bytes::<S>(values.capacity()),
            _ => 0,
        }
    }

    /// The numbers: as they are, or computed again.
    pub(crate) fn values(&self) -> Arc<Vec<S>> {
        let (formula, arguments) = match &*self.state() {
            State::Values(values, _) => return values.clone(),
            State::Again(again) => (again.formula.clone(), again.arguments.clone()),
        };
        let lent: Vec<Lent<'_, S>> = arguments.iter().map(Residual::lend).collect();
        let readers: Vec<Reader<'_, S>> = lent.iter().map(Lent::reader).collect();
        Arc::new(formula.values(&readers))
    }

    /// Gives the memory up in favour of its recipe: the heap bytes that are kept for it instead, none of them
    /// if others keep its arguments anyway. Nothing happens if an argument is gone, or there is no recipe.
    pub(crate) fn give_up(&self, need: Need) -> Option<usize> {
        let mut state = self.state();
        let State::Values(_, Some(recipe)) = &*state else { return None };
        let there = |argument: &Ingredient<S>| match argument {
            Ingredient::Number(x) => Some(Residual::Number(*x)),
            Ingredient::Values(kept, view) => {
                kept.upgrade().map(|kept| Residual::Values { kept, view: view.clone() })
            }
        };
        let arguments = recipe.arguments.iter().map(there).collect::<Option<Vec<_>>>()?;
        let need = Need { by: recipe.formula.name(), ..need };
        let newly_kept = arguments.iter().map(|argument| match argument {
            Residual::Values { kept, .. } => kept.needed_by(need),
            Residual::Absent | Residual::Number(_) => 0,
        });
        let newly_kept = newly_kept.sum();
        *state = State::Again(Again { formula: recipe.formula.clone(), arguments });
        Some(newly_kept)
    }

    fn bytes(&self, seen: &mut HashSet<*const ()>) -> usize {
        let mut bytes = arc_bytes::<Kept<S>>();
        match &*self.state() {
            State::Values(values, recipe) => {
                bytes = kept_bytes::<S>(values.capacity());
                if let Some(recipe) = recipe {
                    bytes += recipe.arguments.capacity() * size_of::<Ingredient<S>>()
                        + formula_bytes(&recipe.formula, seen);
                    for argument in &recipe.arguments {
                        if let Ingredient::Values(kept, view) = argument {
                            // What is gone leaves its place in memory to those who may still ask for it.
                            let gone = kept.strong_count() == 0 && seen.insert(kept.as_ptr().cast());
                            bytes += view.bytes() + if gone { arc_bytes::<Kept<S>>() } else { 0 };
                        }
                    }
                }
            }
            State::Again(again) => {
                bytes += again.arguments.capacity() * size_of::<Residual<S>>()
                    + formula_bytes(&again.formula, seen);
                bytes += again.arguments.iter().map(|argument| argument.bytes(seen)).sum::<usize>();
            }
        }
        bytes
    }
}

#[cfg(test)]
impl<S: Copy> Kept<S> {
    /// What a missing copy does to it.
    pub(crate) fn overwrite(&self, written: &[S]) {
        if let State::Values(values, _) = &mut *self.state.lock().unwrap() {
            let mut memory = values.to_vec();
            memory.iter_mut().zip(written).for_each(|(cell, &written)| *cell = written);
            *values = Arc::new(memory);
        }
    }
}

/// The heap bytes of an `Arc`: two counters and what it holds.
const fn arc_bytes<T>() -> usize {
    2 * size_of::<usize>() + size_of::<T>()
}

/// The heap bytes of so many kept numbers.
pub(crate) const fn kept_bytes<S>(capacity: usize) -> usize {
    arc_bytes::<Kept<S>>() + arc_bytes::<Vec<S>>() + capacity * size_of::<S>()
}

/// The heap bytes of a rule, the first time that it is seen.
pub(crate) fn formula_bytes<S>(formula: &Arc<dyn Formula<S>>, seen: &mut HashSet<*const ()>) -> usize {
    let counters = 2 * size_of::<usize>();
    // A rule without data is known by the counters before it, which are its own.
    if seen.insert(Arc::as_ptr(formula).cast()) { counters + size_of_val(&**formula) } else { 0 }
}

/// One argument or the result of an operation, as far as its partials need it.
#[derive(Clone)]
pub(crate) enum Residual<S> {
    /// No partial looks at it.
    Absent,
    Number(S),
    Values {
        kept: Arc<Kept<S>>,
        view: View,
    },
}

impl<S: Scalar> Residual<S> {
    /// The heap bytes that are its own, not those that it shares.
    pub(crate) fn own_bytes(&self) -> usize {
        match self {
            Residual::Absent | Residual::Number(_) => 0,
            Residual::Values { view, .. } => view.bytes(),
        }
    }

    pub(crate) fn lend(&self) -> Lent<'_, S> {
        match self {
            Residual::Absent => Lent::Number(S::zero()),
            Residual::Number(x) => Lent::Number(*x),
            Residual::Values { kept, view } => Lent::Values(kept.values(), view),
        }
    }

    /// Heap bytes that have not been seen yet.
    pub(crate) fn bytes(&self, seen: &mut HashSet<*const ()>) -> usize {
        match self {
            Residual::Absent | Residual::Number(_) => 0,
            Residual::Values { kept, view } => {
                let new = seen.insert(Arc::as_ptr(kept).cast());
                view.bytes() + if new { kept.bytes(seen) } else { 0 }
            }
        }
    }
}

/// A residual, ready to be read.
pub(crate) enum Lent<'a, S> {
    Number(S),
    Values(Arc<Vec<S>>, &'a View),
}

impl<S: Scalar> Lent<'_, S> {
    pub(crate) fn reader(&self) -> Reader<'_, S> {
        match self {
            Lent::Number(x) => Reader::Same(*x),
            Lent::Values(values, view) => Reader::of(values, view),
        }
    }
}
