//! How one step is differentiated: by the tape, by the user's own rule, or, if the step is itself a loop, by
//! going through that loop.
//!
//! Input: a state before a step. Output: residuals of the step, then cotangents before it from those after
//! it.
//!
//! Invariants: cotangents of parameters and inputs go on from the running totals, in the order in which one
//! recording of everything would add them, so that the bits do not depend on the schedule; after the first
//! step nothing is allocated unless a state has grown.

use super::Inner;
use super::flat::{Flat, is_same};
use super::taking::taken_well;
use crate::error::Error;
use crate::step::Step;
use palinode_core::points::Suspicion;
use palinode_core::{Budget, Passive, Reals};

/// Steps that are differentiated together.
pub struct Unit<'u, St: Step, T: Inner> {
    /// Tells them from others whose residuals are held at the same time.
    pub(super) kept: usize,
    pub(super) step: &'u St,
    pub(super) params: &'u St::Params<Passive<T>>,
    /// One for each step, or one for all.
    pub(super) inputs: &'u [St::Input<Passive<T>>],
    pub(super) steps: u64,
}

/// The running cotangents.
#[derive(Default)]
pub struct Cotangents<T> {
    /// Of the state after the step, then before it.
    pub(super) state: Vec<T>,
    /// Of the parameters, summed over the steps so far.
    pub(super) params: Vec<T>,
    /// Of the input of this step.
    pub(super) input: Vec<T>,
}

impl<T> Cotangents<T> {
    pub(super) fn heap_bytes(&self) -> usize {
        (self.state.capacity() + self.params.capacity() + self.input.capacity()) * size_of::<T>()
    }
}

/// The memory of a way to differentiate a step.
pub trait Memory {
    /// The heap bytes held.
    fn heap_bytes(&self) -> usize;

    /// The heap bytes of the copy of the state that it takes recorded steps with.
    fn heap_of_state(&self) -> usize {
        0
    }

    /// The bytes of lists of states that are held twice for a moment, where that is not seen from outside.
    fn moved_bytes(&self) -> usize {
        0
    }

    /// The bytes that one recording may take at most; more is an error. Without effect on steps whose memory
    /// is the user's.
    fn limit(&mut self, _budget: Budget) {}

    /// The most bytes that looking at both sides of a decision took.
    fn looked_bytes(&self) -> usize {
        0
    }

    /// What a recording takes, where that may differ from one to the next.
    fn recording(&self) -> Recording {
        Recording::default()
    }

    /// Each recording may take so many bytes more than what was planned for.
    fn limit_growth(&mut self, _spare: usize) {}

    /// The residuals of so many units will be kept at the same time.
    fn reserve(&mut self, _places: usize);

    /// Gives all memory back.
    fn forget(&mut self);

    /// The bytes that one more unit takes as long as its residuals are kept.
    fn residual_bytes(&self) -> usize;

    /// The bytes that the steps recorded last need of these.
    fn needed_bytes(&mut self) -> usize;
}

/// The bytes of a recording, each part with a limit of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recording {
    /// Of the tape.
    pub(super) tape: usize,
    /// Of the snapshots inside a step.
    pub(super) store: usize,
}

impl Recording {
    pub(super) fn bytes(&self) -> usize {
        self.tape + self.store
    }

    /// The largest recording that is still what was planned for with this one: plans, limits and refusals go
    /// by it.
    pub(super) fn planned(&self) -> Recording {
        let slack = if self.tape == 0 { 0 } else { slack_of(self.tape) };
        Recording { tape: self.tape + slack, ..*self }
    }

    /// The bytes by which that is larger.
    pub(super) fn slack(&self) -> usize {
        self.planned().bytes() - self.bytes()
    }

    pub(super) fn fits(&self, other: &Recording) -> bool {
        self.tape <= other.tape && self.store <= other.store
    }
}

/// A way to differentiate a step.
pub trait Backend<St: Step, T: Inner>: Memory {
    /// Takes these steps from `before` and keeps their residuals. Says whether the state after them has the
    /// bits of `expected`, if given. What `before` holds afterwards does not matter. Errors count steps from
    /// the first of these.
    fn record(
        &mut self,
        unit: &Unit<'_, St, T>,
        before: &mut St::State<Passive<T>>,
        expected: Option<&Flat<T>>,
    ) -> Result<bool, Error>;

    /// The state becomes that after the recorded steps. Whether a step notes a failure here is for the caller
    /// to ask.
    fn after(&mut self, unit: &Unit<'_, St, T>, state: &mut St::State<Passive<T>>) -> Result<(), Error>;

    /// Carries the cotangents back over the recorded steps. They end in these bits, if known: one that runs
    /// them again looks whether they do.
    fn reverse(
        &mut self,
        unit: &Unit<'_, St, T>,
        expected: Option<&Flat<T>>,
        cotangents: &mut Cotangents<T>,
    ) -> Result<(), Error>;

    /// The state before a recorded unit, where that is what it keeps.
    fn state_before(&self, _kept: usize) -> Option<&St::State<Passive<T>>> {
        None
    }

    /// Whether a step that diverged was seen to compute something else with recorded numbers than with
    /// passive ones, and each the same every time.
    fn computes_otherwise(&self) -> bool {
        false
    }

    /// The list becomes the cotangent of the state, where the backend has kept it in another form since the
    /// last [`reverse`](Self::reverse). From then on the list is what counts, until the next.
    fn release_cotangent(&mut self, _state: &mut Vec<T>) {}

    /// Looks for a cheaper way to the partials of a step; from then on it is taken, if there is one. That way
    /// is one for all steps, whose inputs have the words of this one and as many numbers. Tells whether there
    /// is one and how many bytes looking took, or `None` if that would be more than `spare`.
    fn narrow(
        &mut self,
        _unit: &Unit<'_, St, T>,
        _first: &mut St::State<Passive<T>>,
        _spare: usize,
    ) -> Result<Option<(bool, usize)>, Error> {
        Ok(Some((false, 0)))
    }

    /// In how many directions at once partials are found, since [`narrow`](Self::narrow) found a way.
    fn directions(&self) -> Option<usize> {
        None
    }

    /// Steps decided by something so suspicious: where steps are not looked at from both sides while they are
    /// recorded, those to which it matters are from now on.
    fn look_from_now(&mut self, _suspicion: Suspicion) {}

    /// Where it advances by itself, it does so by recording from now on.
    fn advance_by_recording(&mut self) {}

    /// Whether several steps can be recorded at once, and a step can be recorded only by running it with
    /// recorded numbers, so that its bits need not be those of the step that advances.
    const RECORDS: bool;

    /// Whether [`reverse`](Self::reverse) runs the steps again and looks where they end.
    const LOOKS_BACK: bool;
}

/// Whether a step that diverged computes something else with recorded numbers than with passive ones, and the
/// same each time with these. Otherwise it depends on something hidden. It is given the state before it, that
/// after it with passive numbers, and a state to use.
pub(super) fn records_otherwise<St: Step, T: Inner, B: Backend<St, T>>(
    backend: &mut B,
    unit: &Unit<'_, St, T>,
    (before, after): (&Flat<T>, &Flat<T>),
    state: &mut St::State<Passive<T>>,
) -> Result<Alike, Error> {
    state.reload(&mut before.read(Passive::lift));
    unit.step.step(state, unit.params, &unit.inputs[0]);
    taken_well(unit.step, 0)?;
    if !is_same(state, after) {
        return Ok(Alike::Never);
    }
    state.reload(&mut before.read(Passive::lift));
    let alike = backend.record(unit, state, Some(after))?;
    Ok(if alike { Alike::Always } else { Alike::ByKind })
}

/// Where a step ends that is taken several times from the same state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alike {
    /// In the same bits, however it is taken.
    Always,
    /// In the same bits with passive numbers, in others with recorded ones.
    ByKind,
    /// In others each time.
    Never,
}

/// How much larger than this recording another of the same code may well be: where a number is zero or a
/// branch is taken, less is recorded.
pub(super) fn slack_of(bytes: usize) -> usize {
    bytes / 32 + 64
}
