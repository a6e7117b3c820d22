//! Loops in loops: a step that is itself a loop of steps, with snapshots of its own.
//!
//! Input: an inner step and how often it is taken. Output: a step for an outer rollout. Each outer step is reversed by a binomial sweep
//! over its inner steps, so the memory is that of the outer snapshots plus those of one inner loop.
//!
//! Invariant: the bits are those of one loop over all inner steps.

use super::backend::{Backend, ByTape, Cotangents, Fixed, Flat, exchange};
use super::flat::refill;
use super::{Differentiate, Inner, Rollout};
use crate::error::Error;
use crate::step::{Notes, Number, Step};
use crate::store::MemoryStore;
use palinode_core::schedule::{self, Action};
use palinode_core::{Budget, Passive, Reals, Snapshot, SnapshotStore};

/// A step that takes another step so many times.
///
/// ```
/// use palinode_time::{Number, Repeat, Rollout, Step};
///
/// struct Halve;
/// impl Step for Halve {
///     type State<S: Number> = S;
///     type Params<S: Number> = ();
///     type Input<S: Number> = ();
///     fn step<S: Number>(&self, x: &mut S, _: &(), _: &()) {
///         *x = *x * 0.5;
///     }
/// }
///
/// let run = Rollout::new(Repeat::new(Halve, 10)).steps(3).nested();
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
    /// The step, so many times. As many snapshots of the inner loop are kept as make it run at most three times in all.
    pub fn new(step: St, times: u64) -> Self {
        let snapshots = schedule::smallest_slots_for(times, 3.0).unwrap_or(1);
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
        (0..self.times).for_each(|_| self.step.step(state, params, input));
    }

    #[inline(always)]
    fn notes(&self) -> Option<&Notes> {
        self.step.notes()
    }
}

/// By reversing the inner loop of a [`Repeat`] with snapshots of its own.
#[derive(Clone, Copy, Debug)]
pub struct Nested;

impl<St: Step> Differentiate<Repeat<St>> for Nested {
    type By<T: Inner> = ByInnerLoop<St, T>;
}

impl<'a, St: Step> Rollout<'a, Repeat<St>> {
    /// Reverses each outer step by a sweep over its inner steps, instead of recording all of them at once.
    pub fn nested(self) -> Rollout<'a, Repeat<St>, Nested> {
        self.differentiated()
    }
}

/// See [`Nested`].
pub struct ByInnerLoop<St: Step, T: Inner> {
    before: Vec<Option<St::State<Passive<T>>>>,
    live: Option<St::State<Passive<T>>>,
    numbers: Flat<T>,
    inner: ByTape<St, T>,
    store: MemoryStore,
    snapshot: Snapshot,
}

impl<St: Step, T: Inner> Default for ByInnerLoop<St, T> {
    fn default() -> Self {
        ByInnerLoop {
            before: Vec::new(),
            live: None,
            numbers: Flat::default(),
            inner: ByTape::default(),
            store: MemoryStore::new(),
            snapshot: Snapshot::new(),
        }
    }
}

impl<St: Step, T: Inner> Backend<Repeat<St>, T> for ByInnerLoop<St, T> {
    const RECORDS: bool = false;

    fn record(
        &mut self,
        kept: usize,
        _fixed: &Fixed<'_, Repeat<St>, T>,
        before: &mut St::State<Passive<T>>,
        _inputs: &[St::Input<Passive<T>>],
        _steps: u64,
        _expected: Option<&Flat<T>>,
    ) -> Result<bool, Error> {
        exchange(&mut self.before, kept, before, &mut self.numbers);
        Ok(true)
    }

    fn after(
        &mut self,
        kept: usize,
        fixed: &Fixed<'_, Repeat<St>, T>,
        inputs: &[St::Input<Passive<T>>],
        _steps: u64,
        state: &mut St::State<Passive<T>>,
    ) {
        self.numbers.clear();
        self.before[kept].iter().for_each(|before| before.save(&mut self.numbers));
        state.reload(&mut self.numbers.read(Passive::lift));
        fixed.step.step(state, fixed.params, &inputs[0]);
    }

    fn reverse(
        &mut self,
        kept: usize,
        fixed: &Fixed<'_, Repeat<St>, T>,
        inputs: &[St::Input<Passive<T>>],
        _steps: u64,
        cotangents: &mut Cotangents<T>,
    ) -> Result<(), Error> {
        let ByInnerLoop { before, live, numbers, inner, store, snapshot } = self;
        let before = before[kept].as_ref().expect("a step is recorded before it is reversed");
        numbers.clear();
        before.save(numbers);
        let live = refill(live, &mut numbers.read(Passive::lift));
        let Repeat { step: body, times, snapshots } = fixed.step;
        let fixed = Fixed { step: body, params: fixed.params };
        // Inner steps end in the bits from which the next one was recorded, or the step depends on something hidden.
        let mut expected: Option<Flat<T>> = None;
        for action in schedule::binomial(*times, *snapshots)? {
            match action {
                Action::Advance { from, to } => {
                    (from..to).for_each(|_| body.step(live, fixed.params, &inputs[0]))
                }
                Action::Snapshot { step, slot } => {
                    snapshot.take(live);
                    store.put(slot.index, step, snapshot)?;
                }
                Action::Restore { step, slot } => {
                    store.get(slot.index, step, snapshot)?;
                    snapshot.restore(live);
                }
                Action::Record { step } => {
                    if !inner.record(0, &fixed, live, inputs, 1, expected.as_ref())? {
                        return Err(Error::Diverged { step });
                    }
                    let expected = expected.get_or_insert_default();
                    expected.clear();
                    live.save(expected);
                }
                Action::Reverse { .. } => inner.reverse(0, &fixed, inputs, 1, cotangents)?,
                Action::Free { slot } => store.free(slot.index),
            }
        }
        Ok(())
    }

    fn heap_bytes(&self) -> usize {
        let states = self.before.iter().flatten().chain(&self.live).map(Reals::heap_bytes).sum::<usize>();
        let lists = self.before.capacity() * size_of::<Option<St::State<Passive<T>>>>();
        states
            + lists
            + self.numbers.heap_bytes()
            + self.inner.heap_bytes()
            + self.store.heap_bytes()
            + self.snapshot.heap_bytes()
    }

    fn limit(&mut self, budget: Budget) {
        self.inner.limit(budget);
    }

    fn narrow(
        &mut self,
        fixed: &Fixed<'_, Repeat<St>, T>,
        first: &mut St::State<Passive<T>>,
        inputs: &[St::Input<Passive<T>>],
        spare: usize,
    ) -> Result<Option<(bool, usize)>, Error> {
        if fixed.step.times == 0 {
            return Ok(Some((false, 0)));
        }
        let fixed = Fixed { step: &fixed.step.step, params: fixed.params };
        self.inner.narrow(&fixed, first, inputs, spare)
    }

    fn directions(&self) -> Option<usize> {
        self.inner.directions()
    }

    fn residual_bytes(&mut self) -> usize {
        self.inner.residual_bytes() + self.store.heap_bytes()
    }

    fn needed_bytes(&mut self) -> usize {
        self.residual_bytes()
    }
}
