//! One step of a loop, written once over any number.
//!
//! Input: a state, parameters and what enters at this step. Output: the state, changed in place. The driver
//! chooses the number: a [`Passive`](palinode_core::Passive) to advance, a [`Var`](palinode_core::Var) to
//! record, a [`Dual`](palinode_core::Dual) for sensitivities.

use crate::implicit::number::Number;
use palinode_core::{Plain, Reals, Sink, Source};
use std::cell::{Cell, RefCell};

/// One step of a loop: a pure function of state, parameters and input that changes the state in place.
///
/// The attribute `#[step]` on a generic function writes this; here it is by hand:
///
/// ```
/// use palinode_core::Real;
/// use palinode_time::{Number, Step};
///
/// struct Damped;
/// impl Step for Damped {
///     type State<S: Number> = [S; 2]; // position, velocity
///     type Params<S: Number> = S; // damping
///     type Input<S: Number> = ();
///     fn step<S: Real>(&self, [x, v]: &mut [S; 2], damping: &S, _: &()) {
///         *v += (-*x - *damping * *v) * 0.01;
///         *x += *v * 0.01;
///     }
/// }
/// ```
///
/// The trait gives a `S: Number`; an implementation may ask for less, and `S: Real` is what to write: with
/// the feature `nalgebra`, calls like `x.sin()` on a `Number` are ambiguous.
///
/// A step must compute the same from the same arguments each time: it is run again when its state is needed
/// again. Random keys, counters and caches belong into the state.
pub trait Step {
    /// What changes from step to step.
    type State<S: Number>: Reals<S>;
    /// What stays the same and is differentiated by.
    type Params<S: Number>: Reals<S>;
    /// What enters at one step; `()` if nothing does.
    type Input<S: Number>: Reals<S>;

    /// Takes one step.
    fn step<S: Number>(&self, state: &mut Self::State<S>, params: &Self::Params<S>, input: &Self::Input<S>);

    /// What the step notes for the rollout. A step that cannot fail and takes no memory to speak of has
    /// nothing to note.
    #[inline(always)]
    fn notes(&self) -> Option<&Notes> {
        None
    }
}

/// What a step notes for the rollout that takes it: why it could not be taken, and the memory that it took.
///
/// ```
/// use palinode_time::{Error, Notes, Number, Rollout, Step};
///
/// #[derive(Default)]
/// struct Halve(Notes);
/// impl Step for Halve {
///     type State<S: Number> = S;
///     type Params<S: Number> = ();
///     type Input<S: Number> = ();
///     fn step<S: Number>(&self, x: &mut S, _: &(), _: &()) {
///         if *x < 0.1 {
///             return self.0.fail("too small to halve");
///         }
///         *x = *x * 0.5;
///     }
///     fn notes(&self) -> Option<&Notes> {
///         Some(&self.0)
///     }
/// }
///
/// let failed = Rollout::new(Halve::default()).steps(10).value_and_grad(&1.0, &(), |x| *x).unwrap_err();
/// assert_eq!(failed, Error::StepFailed { step: 4, reason: "too small to halve".into() });
/// ```
#[derive(Clone, Debug, Default)]
pub struct Notes {
    failure: RefCell<Option<String>>,
    bytes: Cell<usize>,
}

impl Notes {
    /// The step could not be taken, and left its state alone. The rollout ends with this reason, or with that
    /// of the first failure.
    pub fn fail(&self, reason: impl Into<String>) {
        self.failure.borrow_mut().get_or_insert_with(|| reason.into());
    }

    /// Says more about where a step failed.
    pub(crate) fn place(&self, say: impl FnOnce(String) -> String) {
        let mut failure = self.failure.borrow_mut();
        *failure = failure.take().map(say);
    }

    /// Whether a step has failed and nobody has asked why.
    pub fn has_failed(&self) -> bool {
        self.failure.borrow().is_some()
    }

    /// A step or its rule took so many heap bytes while it ran, beyond its arguments. The largest number
    /// counts in the budget.
    pub fn took(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().max(bytes));
    }

    /// The most bytes that were noted.
    pub fn bytes(&self) -> usize {
        self.bytes.get()
    }

    /// Forgets what an earlier rollout left.
    pub(crate) fn clear(&self) {
        self.failure.take();
        self.bytes.set(0);
    }

    pub(crate) fn take_failure(&self) -> Option<String> {
        self.failure.take()
    }
}

/// An argument of a step that holds nothing to differentiate by: a step size, an index, a table of constants.
///
/// `#[step]` makes one of every argument whose type does not name the number:
/// `dt: f64` as the third argument gives `type Input<S> = PlainInput<f64>`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlainInput<P>(pub P);

impl<P> From<P> for PlainInput<P> {
    fn from(value: P) -> Self {
        PlainInput(value)
    }
}

impl<S, P: Plain> Reals<S> for PlainInput<P> {
    #[inline]
    fn save(&self, to: &mut impl Sink<S>) {
        self.0.save(&mut |word| to.word(word));
    }
    #[inline]
    fn load(from: &mut impl Source<S>) -> Self {
        PlainInput(P::load(&mut || from.word()))
    }
    #[inline]
    fn reload(&mut self, from: &mut impl Source<S>) {
        self.0.reload(&mut || from.word());
    }
    fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }
}

/// A step that knows its own reverse, for where a hand-written one is faster than a tape: a stencil, a
/// solver.
///
/// ```
/// use palinode_time::{Number, StepRule};
///
/// #[palinode_macros::step(Decay)]
/// fn decay<S: Number>(x: &mut Vec<S>, k: &S) {
///     x.iter_mut().for_each(|x| *x -= *k * *x);
/// }
/// impl StepRule for Decay {
///     fn reverse<S: Number>(&self, before: &Vec<S>, k: &S, _: &(), state: &mut Vec<S>, params: &mut S, _: &mut ()) {
///         for (x, c) in before.iter().zip(state) {
///             *params -= *x * *c;
///             *c -= *k * *c;
///         }
///     }
/// }
/// ```
///
/// A rule is checked against the tape by `Rollout::check_rule`.
pub trait StepRule: Step {
    /// Carries cotangents back over one step. `before` is the state before the step. `of_state` holds the
    /// cotangent of the state after it and must become that of the state before it; to `of_params` and
    /// `of_input` this step's part is *added*.
    ///
    /// The state before and the state after must have the same shape.
    fn reverse<S: Number>(
        &self,
        before: &Self::State<S>,
        params: &Self::Params<S>,
        input: &Self::Input<S>,
        of_state: &mut Self::State<S>,
        of_params: &mut Self::Params<S>,
        of_input: &mut Self::Input<S>,
    );
}

/// A step that can be undone, so that a reverse sweep needs no snapshots.
///
/// In floating point an inverse undoes only up to rounding; what that comes to is measured and reported. On
/// integers (a leapfrog on a lattice) it is exact.
pub trait ReversibleStep: Step {
    /// Undoes [`Step::step`]: the state after a step becomes the state before it.
    fn step_back<S: Number>(
        &self,
        state: &mut Self::State<S>,
        params: &Self::Params<S>,
        input: &Self::Input<S>,
    );
}
