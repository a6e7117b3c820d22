//! Loops in loops: a step that is itself a loop of steps, with snapshots of its own.
//!
//! Input: an inner step and how often it is taken. Output: a step for an outer rollout. Each outer step is
//! reversed by a binomial sweep over its inner steps, so the memory is that of the outer snapshots plus those
//! of one inner loop.
//!
//! Invariants: the bits are those of one loop over all inner steps; an error names the outer step and the
//! inner one.

use super::backend::{Alike, Backend, Cotangents, Memory, Recording, Unit, records_otherwise};
use super::before::Before;
use super::by_tape::ByTape;
use super::flat::{Flat, refill};
use super::taking::taken_well;
use super::{Differentiate, Inner, Rollout};
use crate::error::Error;
use crate::implicit::number::Number;
use crate::step::{Notes, Step};
use crate::store::MemoryStore;
use palinode_core::schedule::{self, Action};
use palinode_core::{Budget, Passive, Reals, Snapshot, SnapshotStore};

/// A step that takes another step so many times.
///
/// ```
/// # use palinode_core::Real;
/// # use palinode_macros::step;
/// use palinode_time::{Repeat, Rollout};
///
/// #[step]
/// fn halve<S: Real>(x: &mut S) {
///     *x *= 0.5;
/// }
///
/// let run = Rollout::new(Repeat::new(halve, 10)).steps(3).nested();
/// let gradient = run.value_and_grad(&1.0, &(), |x| *x)?;
/// assert_eq!(gradient.initial, 0.5_f64.powi(30));
/// # Ok::<(), palinode_time::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Repeat<St> {
    step: St,
    times: u64,
    snapshots: u32,
}

impl<St> Repeat<St> {
    /// The step, so many times. As many snapshots of the inner loop are kept as make it run at most three
    /// times when its outer step is reversed; it runs once more each time that the outer loop is
    /// advanced over it.
    pub fn new(step: St, times: u64) -> Self {
        let snapshots = schedule::fewest_snapshots_for(times, 3.0).unwrap_or(1);
        Repeat { step, times, snapshots }
    }

    /// Keeps so many snapshots of the inner loop at a time, its first state among them.
    #[must_use]
    pub fn snapshots(mut self, snapshots: u32) -> Self {
        self.snapshots = snapshots.max(1);
        self
    }
}

impl<St: Step> Step for Repeat<St> {
    type State<S: Number> = St::State<S>;
    type Params<S: Number> = St::Params<S>;
    type Input<S: Number> = St::Input<S>;

    fn step<S: Number>(&self, state: &mut St::State<S>, params: &St::Params<S>, input: &St::Input<S>) {
        for inner in 0..self.times {
            self.step.step(state, params, input);
            if let Some(notes) = self.step.notes()
                && notes.has_failed()
            {
                return notes.place(|reason| failed_inside(inner, &reason));
            }
        }
    }

    #[inline(always)]
    fn notes(&self) -> Option<&Notes> {
        self.step.notes()
    }
}

/// What an outer step says of an inner one that failed.
fn failed_inside(inner: u64, reason: &str) -> String {
    format!("step {inner} of the inner loop: {reason}")
}

/// By reversing the inner loop of a [`Repeat`] with snapshots of its own.
#[derive(Clone, Copy, Debug)]
pub struct Looped;

impl<St: Step> Differentiate<Repeat<St>> for Looped {
    type By<T: Inner> = ByInnerLoop<St, T>;
}

impl<'a, St: Step> Rollout<'a, Repeat<St>> {
    /// Reverses each outer step by a sweep over its inner steps, instead of recording all of them at once.
    pub fn nested(self) -> Rollout<'a, Repeat<St>, Looped> {
        self.differentiated()
    }
}

/// See [`Looped`].
pub struct ByInnerLoop<St: Step, T: Inner> {
    before: Before<St::State<Passive<T>>>,
    live: Option<St::State<Passive<T>>>,
    inside: Inside,
    numbers: Flat<T>,
    inner: ByTape<St, T>,
    store: MemoryStore,
    snapshot: Snapshot,
    /// The state from which the inner step after this one was recorded.
    expected: Flat<T>,
    by_recording: bool,
    /// See [`Backend::computes_otherwise`].
    otherwise: bool,
    /// The bytes of the schedule of an inner loop.
    schedule_bytes: usize,
}

impl<St: Step, T: Inner> Default for ByInnerLoop<St, T> {
    fn default() -> Self {
        ByInnerLoop {
            before: Before::default(),
            live: None,
            inside: Inside::default(),
            numbers: Flat::default(),
            inner: ByTape::default(),
            store: MemoryStore::new(),
            snapshot: Snapshot::new(),
            expected: Flat::default(),
            by_recording: false,
            otherwise: false,
            schedule_bytes: 0,
        }
    }
}

/// The heap bytes of states inside outer steps and of the inner tape's copies of them: neither end of an
/// outer step need be as large.
#[derive(Default)]
struct Inside {
    /// The most of both.
    both: usize,
    /// The most of one of them.
    one: usize,
    /// The least and the most of states.
    states: Option<(usize, usize)>,
}

impl Inside {
    fn see(&mut self, state: usize, copy: usize) {
        self.both = self.both.max(state + copy);
        self.one = self.one.max(state).max(copy);
        let (least, most) = self.states.unwrap_or((state, state));
        self.states = Some((least.min(state), most.max(state)));
    }

    /// Where states change, the lists of one are still held while those of the next are made.
    fn moved(&self) -> usize {
        let change = self.states.is_some_and(|(least, most)| least < most);
        if change { self.one } else { 0 }
    }
}

/// Takes these inner steps of one outer step; by recording them, if that is asked for.
fn take<St: Step, T: Inner>(
    range: core::ops::Range<u64>,
    unit: &Unit<'_, St, T>,
    by_recording: bool,
    state: &mut St::State<Passive<T>>,
    tape: &mut ByTape<St, T>,
    seen: &mut Inside,
) -> Result<(), Error> {
    for inner in range {
        let taken = if by_recording {
            tape.record(unit, state, None).and_then(|alike| match alike {
                true => tape.after(unit, state),
                false => Err(Error::Diverged { step: 0 }),
            })
        } else {
            unit.step.step(state, unit.params, &unit.inputs[0]);
            Ok(())
        };
        taken.and_then(|()| taken_well(unit.step, 0)).map_err(|error| inside(inner, error))?;
        seen.see(state.heap_bytes(), tape.heap_of_state());
    }
    Ok(())
}

/// One inner step of an outer one.
fn inner_of<'u, St: Step, T: Inner>(unit: &Unit<'u, Repeat<St>, T>) -> Unit<'u, St, T> {
    let &Unit { step: Repeat { step, .. }, params, inputs, .. } = unit;
    Unit { kept: 0, step, params, inputs, steps: 1 }
}

/// An error of an inner step; the outer one is counted from 0.
fn inside(inner: u64, error: Error) -> Error {
    match error {
        Error::StepFailed { reason, .. } => {
            Error::StepFailed { step: 0, reason: failed_inside(inner, &reason) }
        }
        error => Error::InInnerLoop { step: 0, inner, error: Box::new(error) },
    }
}

impl<St: Step, T: Inner> Memory for ByInnerLoop<St, T> {
    fn heap_bytes(&self) -> usize {
        self.before.heap_bytes()
            + self.heap_of_state()
            + self.numbers.heap_bytes()
            + (self.inner.heap_bytes() - self.inner.heap_of_state())
            + self.store.heap_bytes()
            + self.snapshot.heap_bytes()
            + self.expected.heap_bytes()
            + self.schedule_bytes
    }

    fn heap_of_state(&self) -> usize {
        // There may be such a state again at any time.
        let now = self.live.as_ref().map_or(0, Reals::heap_bytes) + self.inner.heap_of_state();
        now.max(self.inside.both)
    }

    fn moved_bytes(&self) -> usize {
        self.inside.moved()
    }

    fn limit(&mut self, budget: Budget) {
        self.inner.limit(budget);
    }

    fn recording(&self) -> Recording {
        Recording { store: self.store.heap_bytes(), ..self.inner.recording() }
    }

    fn looked_bytes(&self) -> usize {
        self.inner.looked_bytes()
    }

    fn limit_growth(&mut self, spare: usize) {
        self.inner.limit_growth(spare / 2);
        self.store.set_limit(self.recording().planned().store.saturating_add(spare / 2).into());
    }

    fn reserve(&mut self, places: usize) {
        self.before.reserve(places);
        self.inner.reserve(1);
    }

    fn forget(&mut self) {
        let mut inner = core::mem::take(&mut self.inner);
        inner.forget();
        *self = ByInnerLoop { inner, by_recording: self.by_recording, ..ByInnerLoop::default() };
    }

    fn residual_bytes(&self) -> usize {
        self.before.bytes_of_one()
    }

    fn needed_bytes(&mut self) -> usize {
        self.residual_bytes()
    }
}

impl<St: Step, T: Inner> Backend<Repeat<St>, T> for ByInnerLoop<St, T> {
    const RECORDS: bool = false;
    const LOOKS_BACK: bool = true;

    fn record(
        &mut self,
        unit: &Unit<'_, Repeat<St>, T>,
        before: &mut St::State<Passive<T>>,
        _expected: Option<&Flat<T>>,
    ) -> Result<bool, Error> {
        self.before.keep(unit.kept, before, &mut self.numbers);
        Ok(true)
    }

    fn after(
        &mut self,
        unit: &Unit<'_, Repeat<St>, T>,
        state: &mut St::State<Passive<T>>,
    ) -> Result<(), Error> {
        self.before.give_back(unit.kept, state, &mut self.numbers);
        let ByInnerLoop { inner, inside, by_recording, .. } = self;
        take(0..unit.step.times, &inner_of(unit), *by_recording, state, inner, inside)
    }

    fn reverse(
        &mut self,
        outer: &Unit<'_, Repeat<St>, T>,
        ends_in: Option<&Flat<T>>,
        cotangents: &mut Cotangents<T>,
    ) -> Result<(), Error> {
        let ByInnerLoop {
            before,
            live,
            inside: seen,
            numbers,
            inner,
            store,
            snapshot,
            expected,
            by_recording,
            otherwise,
            ..
        } = self;
        let before = before.get(outer.kept).expect("a step is recorded before it is reversed");
        numbers.clear();
        before.save(numbers);
        let live = refill(live, &mut numbers.read(Passive::lift));
        let Repeat { times, snapshots, .. } = outer.step;
        let unit = &inner_of(outer);
        let actions = schedule::binomial(*times, *snapshots)?;
        // States inside an outer step may be of any size, and of another in the next one.
        store.keep_apart(u64::from(*snapshots).min(*times) as usize);
        self.schedule_bytes = actions.heap_bytes();
        // Inner steps end in the bits from which the next one was recorded, and the last in what the outer
        // loop went on with, or the step depends on something hidden.
        let mut is_known = false;
        for action in actions {
            match action {
                Action::Advance { from, to } => take(from..to, unit, *by_recording, live, inner, seen)?,
                Action::Snapshot { step, slot } => {
                    snapshot.take(live);
                    store.put(slot.index, step, snapshot).map_err(|error| inside(step, error.into()))?;
                }
                Action::Restore { step, slot } => {
                    store.get(slot.index, step, snapshot).map_err(|error| inside(step, error.into()))?;
                    Snapshot::restore_kept(step, (snapshot.reals(), snapshot.plain()), live)
                        .map_err(|error| inside(step, error.into()))?;
                }
                Action::Record { step } => {
                    let known = if is_known { Some(&*expected) } else { ends_in };
                    match inner.record(unit, live, known) {
                        Ok(true) => {}
                        Ok(false) => {
                            // Whatever else it was, it was not a library if steps are recorded anyway.
                            *otherwise = !*by_recording && {
                                numbers.clear();
                                live.save(numbers);
                                unit.step.step(live, unit.params, &unit.inputs[0]);
                                expected.clear();
                                live.save(expected);
                                let states = (&*numbers, &*expected);
                                let alike = records_otherwise(inner, unit, states, live);
                                alike.map_err(|error| inside(step, error))? == Alike::ByKind
                            };
                            return Err(inside(step, Error::Diverged { step }));
                        }
                        Err(error) => return Err(inside(step, error)),
                    }
                    seen.see(live.heap_bytes(), inner.heap_of_state());
                    expected.clear();
                    live.save(expected);
                    is_known = true;
                }
                Action::Reverse { step } => {
                    inner.reverse(unit, None, cotangents).map_err(|error| inside(step, error))?;
                }
                Action::Free { slot } => store.free(slot.index),
            }
        }
        Ok(())
    }

    fn state_before(&self, kept: usize) -> Option<&St::State<Passive<T>>> {
        self.before.get(kept)
    }

    fn computes_otherwise(&self) -> bool {
        self.otherwise
    }

    fn narrow(
        &mut self,
        unit: &Unit<'_, Repeat<St>, T>,
        first: &mut St::State<Passive<T>>,
        spare: usize,
    ) -> Result<Option<(bool, usize)>, Error> {
        if unit.step.times == 0 {
            return Ok(Some((false, 0)));
        }
        self.inner.narrow(&inner_of(unit), first, spare)
    }

    fn directions(&self) -> Option<usize> {
        self.inner.directions()
    }

    fn advance_by_recording(&mut self) {
        self.by_recording = true;
    }
}
