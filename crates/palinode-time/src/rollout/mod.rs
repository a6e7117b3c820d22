//! Rollouts: a loop of steps, and the gradient of what it reaches, inside a budget.
//!
//! Input: a [`Step`], an initial state, parameters, inputs, a loss. Output: a [`Gradient`] with a
//! [`RolloutReport`].
//!
//! ```text
//! Rollout (this file, check.rs) ──► needs.rs, plan.rs: budget -> schedule and snapshots ──► actions
//! (palinode_core::schedule) │                                  attempts.rs: again, if it took more
//! │ └──► engine/: follows the actions ◄──────────────────────────────────────┘ │   backend.rs, by_tape.rs,
//! by_rule.rs: one step                stores.rs, store/: where snapshots are │   columns.rs: one step, by
//! forward numbers │   flat.rs: states as lists of numbers               hashes.rs: is a step what it was? ▼
//! gradient, report.rs
//! ```
//!
//! Invariant: for one step, state, parameters and loss, every exact schedule, tier and budget gives the same
//! bits.

mod attempts;
mod backend;
mod before;
mod by_rule;
mod by_tape;
mod check;
mod columns;
mod engine;
mod flat;
mod forward;
mod hashes;
mod inputs;
mod needs;
mod nested;
mod plan;
mod report;
mod reverse;
mod reversible;
mod rule_check;
mod setting;
mod sides;
mod stores;
mod taking;
mod while_loop;

pub use nested::{Looped, Repeat};
pub use plan::Schedule;
pub use report::{Closest, RolloutReport, StepDecisions, StopMargin, Truncation};

use crate::error::Error;
use crate::implicit::number::Implicit;
use crate::step::{Step, StepRule};
use crate::store::{Checked, DiskStore};
use backend::Backend;
use by_rule::ByRule;
use by_tape::ByTape;
use palinode_core::{Bits, Budget, Dual, FormatLimits, IntoBudget, Passive, Real, Reals, SnapshotStore, Var};
use setting::When;
use std::fmt::Display;
use std::marker::PhantomData;

#[cfg(not(feature = "nalgebra"))]
use palinode_core::Scalar as Dense;
#[cfg(feature = "nalgebra")]
use palinode_core::linalg::LinearAlgebra as Dense;

/// The number inside recorded numbers: `f64`, or `Dual<f64>` for second derivatives.
pub trait Inner:
    Bits + Real + FormatLimits + Reals<Self> + Send + Sync + Default + Implicit + Display + Dense
{
}
impl<T> Inner for T where
    T: Bits + Real + FormatLimits + Reals<T> + Send + Sync + Default + Implicit + Display + Dense
{
}

/// How the steps of a rollout are differentiated.
pub trait Differentiate<St: Step> {
    /// What does it, over an inner number.
    #[doc(hidden)]
    type By<T: Inner>: Backend<St, T> + Default;
}

/// By recording each step on a dynamic tape.
#[derive(Clone, Copy, Debug)]
pub struct Taped;

impl<St: Step> Differentiate<St> for Taped {
    type By<T: Inner> = ByTape<St, T>;
}

/// By the rule that the step brings along.
#[derive(Clone, Copy, Debug)]
pub struct Ruled;

impl<St: StepRule> Differentiate<St> for Ruled {
    type By<T: Inner> = ByRule<St, T>;
}

/// When a loop stops: a test of its state.
type Until<'a, St> = Box<dyn Fn(&<St as Step>::State<Passive<f64>>) -> bool + 'a>;

/// The length of a loop, as far as it is known.
enum Known<'r, 'a, St: Step> {
    Steps(u64),
    Until(&'r Until<'a, St>),
}

/// What enters at the steps, as given.
enum Given<'a, I> {
    Same(I),
    Each(Vec<I>),
    By(Box<dyn Fn(u64) -> I + 'a>),
}

/// A loop of steps.
///
/// Options that make no sense (a window of 0) or do not go together (a number of steps and a condition) are
/// errors of whatever is asked for then, all of them in one.
///
/// ```
/// use palinode_core::Real;
/// use palinode_macros::step;
/// use palinode_time::Rollout;
///
/// #[step]
/// fn affine<S: Real>(x: &mut S, [a, b]: &[S; 2]) {
///     *x = *a * *x + *b;
/// }
///
/// let run = Rollout::new(affine).steps(1000).budget("16KiB");
/// let gradient = run.value_and_grad(&1.0, &[0.5, 1.0], |x| *x)?;
/// assert_eq!((gradient.value, gradient.params[1]), (2.0, 2.0)); // b / (1 - a), 1 / (1 - a)
/// assert!(gradient.report.peak_bytes <= 16_384);
/// # Ok::<(), palinode_time::Error>(())
/// ```
pub struct Rollout<'a, St: Step, How = Taped> {
    step: St,
    options: Options,
    until: Option<Until<'a, St>>,
    inputs: Option<Given<'a, St::Input<f64>>>,
    memory: Option<StoreMaker<'a>>,
    disk: Option<StoreMaker<'a>>,
    how: PhantomData<How>,
}

/// What was said about a rollout, whatever the step.
struct Options {
    steps: Option<u64>,
    at_most: Option<u64>,
    /// The first two ways in which inputs were given, of which there should be one.
    ways_of_inputs: [Option<&'static str>; 2],
    budget: Result<Budget, palinode_core::Error>,
    schedule: Schedule,
    /// How many snapshots the second store may hold, if there is one.
    disk_snapshots: Option<u32>,
    verify: bool,
    clip: Option<f64>,
    window: Option<u64>,
    at_once: Option<u64>,
    tape_only: bool,
}

/// Makes a snapshot store for one run.
type StoreMaker<'a> = Box<dyn Fn() -> Result<Box<dyn SnapshotStore>, palinode_core::SnapshotError> + 'a>;

/// The value of a loss and its gradient, in the shapes of what it is by.
pub struct Gradient<St: Step> {
    /// The value of the loss.
    pub value: f64,
    /// By the initial state; its plain fields are those of the initial state.
    pub initial: St::State<f64>,
    /// By the parameters.
    pub params: St::Params<f64>,
    /// By the inputs: one entry per step, or one in all if the same input entered at every step; none if a
    /// function made them.
    pub inputs: Vec<St::Input<f64>>,
    /// How it went.
    pub report: RolloutReport,
}

impl<St: Step> core::fmt::Debug for Gradient<St>
where
    St::State<f64>: core::fmt::Debug,
    St::Params<f64>: core::fmt::Debug,
{
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Gradient")
            .field("value", &self.value)
            .field("initial", &self.initial)
            .field("params", &self.params)
            .finish_non_exhaustive()
    }
}

/// A direction in which to differentiate: tangents of the initial state and of the parameters.
pub type Direction<'d, St> = (&'d <St as Step>::State<f64>, &'d <St as Step>::Params<f64>);

impl<'a, St: Step> Rollout<'a, St> {
    /// A rollout of this step, of no length yet.
    pub fn new(step: St) -> Self {
        let options = Options {
            steps: None,
            at_most: None,
            ways_of_inputs: [None; 2],
            budget: Ok(Budget::UNLIMITED),
            schedule: Schedule::Best,
            disk_snapshots: None,
            verify: false,
            clip: None,
            window: None,
            at_once: None,
            tape_only: false,
        };
        Rollout { step, options, until: None, inputs: None, memory: None, disk: None, how: PhantomData }
    }

    /// Differentiates by the step's own rule instead of a tape.
    pub fn by_rule(self) -> Rollout<'a, St, Ruled>
    where
        St: StepRule,
    {
        self.differentiated()
    }

    fn differentiated<How: Differentiate<St>>(self) -> Rollout<'a, St, How> {
        let Rollout { step, options, until, inputs, memory, disk, .. } = self;
        Rollout { step, options, until, inputs, memory, disk, how: PhantomData }
    }
}

impl<'a, St: Step, How: Differentiate<St>> Rollout<'a, St, How> {
    /// Takes so many steps.
    #[must_use]
    pub fn steps(mut self, steps: u64) -> Self {
        self.options.steps = Some(steps);
        self
    }

    /// Takes steps until the condition holds; it is tested before each step. No maximum is needed.
    ///
    /// The gradient is that of the number of steps taken; the report says how close the condition came to
    /// another number.
    #[must_use]
    pub fn until(mut self, condition: impl Fn(&St::State<Passive<f64>>) -> bool + 'a) -> Self {
        self.until = Some(Box::new(condition));
        self
    }

    /// Gives up with an error if the condition of [`Rollout::until`] does not hold after so many steps.
    #[must_use]
    pub fn at_most(mut self, steps: u64) -> Self {
        self.options.at_most = Some(steps);
        self
    }

    /// The same input at every step.
    #[must_use]
    pub fn input(self, input: impl Into<St::Input<f64>>) -> Self {
        self.said("one input for all steps (.input)").given(Given::Same(input.into()))
    }

    /// One input for each step. Without a length, as many steps are taken as there are inputs.
    #[must_use]
    pub fn inputs(self, inputs: impl IntoIterator<Item = impl Into<St::Input<f64>>>) -> Self {
        let mut inputs: Vec<St::Input<f64>> = inputs.into_iter().map(Into::into).collect();
        // It counts in the budget with its capacity.
        inputs.shrink_to_fit();
        self.said("one input for each step (.inputs)").given(Given::Each(inputs))
    }

    /// One input for each step, made by a function of the number of steps taken before, from 0, whenever it
    /// is needed: nothing is held for the loop but the inputs of the steps that are recorded at once, so a
    /// loop of any length has a small budget. The function must give the same whenever it is asked, and
    /// inputs of the size of the first. There are no derivatives by such inputs: [`Gradient::inputs`] is
    /// empty.
    ///
    /// ```
    /// # use palinode_core::Real;
    /// # use palinode_macros::step;
    /// # use palinode_time::Rollout;
    /// #[step]
    /// fn pushed<S: Real>(x: &mut S, a: &S, push: &S) {
    ///     *x = *a * *x + *push;
    /// }
    ///
    /// let push = |k| if k % 2 == 0 { 1.0 } else { -1.0 };
    /// let run = Rollout::new(pushed).steps(100_000).inputs_by(push).budget("16KiB");
    /// let gradient = run.value_and_grad(&0.0, &0.5, |x| *x)?;
    /// assert!((gradient.value + 2.0 / 3.0).abs() < 1e-15); // -1 / (1 + a)
    /// assert!((gradient.params - 4.0 / 9.0).abs() < 1e-14); // 1 / (1 + a)^2
    /// # Ok::<(), palinode_time::Error>(())
    /// ```
    #[must_use]
    pub fn inputs_by<I: Into<St::Input<f64>>>(self, make: impl Fn(u64) -> I + 'a) -> Self {
        self.said("inputs made by a function (.inputs_by)")
            .given(Given::By(Box::new(move |step| make(step).into())))
    }

    /// The same input at every step, unless the caller gives others.
    #[cfg(feature = "ir")]
    pub(crate) fn default_input(self, input: St::Input<f64>) -> Self {
        self.given(Given::Same(input))
    }

    fn given(mut self, inputs: Given<'a, St::Input<f64>>) -> Self {
        self.inputs = Some(inputs);
        self
    }

    fn said(mut self, way: &'static str) -> Self {
        match &mut self.options.ways_of_inputs {
            [first @ None, _] => *first = Some(way),
            [Some(first), second] if *first != way => *second = Some(way),
            _ => {}
        }
        self
    }

    /// The bytes that snapshots, states, residuals and cotangents may take together: `"64MiB"`, a number, or
    /// a [`Budget`]. What does not fit is computed again; what cannot fit is refused, with a budget that is
    /// enough: after a few steps if all are one formula, else after each was recorded once to find the
    /// heaviest.
    #[must_use]
    pub fn budget(mut self, budget: impl IntoBudget) -> Self {
        self.options.budget = budget.into_budget();
        self
    }

    /// Which snapshots are kept. The default is the best for the budget.
    #[must_use]
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.options.schedule = schedule;
        self
    }

    /// Keeps snapshots that are meant for memory in a store of one's own, such as a compressing or a lossy
    /// one. Nothing is kept there by [`Schedule::StoreAll`], [`Rollout::run`] and [`Rollout::jvp`], which
    /// need no snapshots.
    #[must_use]
    pub fn store<S: SnapshotStore + 'static>(mut self, make: impl Fn() -> S + 'a) -> Self {
        self.memory = Some(Box::new(move || Ok(Box::new(Checked::new(make())))));
        self
    }

    /// Keeps up to `snapshots` snapshots in a second store that is large and slow, such as one on disk.
    #[must_use]
    pub fn second_store<S: SnapshotStore + 'static>(
        mut self,
        snapshots: u32,
        make: impl Fn() -> Result<S, palinode_core::SnapshotError> + 'a,
    ) -> Self {
        self.disk = Some(Box::new(move || Ok(Box::new(Checked::new(make()?)))));
        self.options.disk_snapshots = Some(snapshots);
        self
    }

    /// Keeps up to `snapshots` snapshots in files in this directory, written and fetched on another thread;
    /// see [`DiskStore`].
    #[must_use]
    pub fn disk(mut self, snapshots: u32, directory: impl Into<std::path::PathBuf>) -> Self {
        let directory = directory.into();
        self.disk = Some(Box::new(move || Ok(Box::new(DiskStore::new(&directory)))));
        self.options.disk_snapshots = Some(snapshots);
        self
    }

    /// Runs the loop once more beforehand, hashes its states and compares them when they are computed again:
    /// of a step that depends on something hidden, the first time that it computes something else is named.
    /// Steps are then recorded one at a time. With [`Rollout::truncate`] also a forward sweep finds the exact
    /// derivative in the direction of the gradient, and the report tells how far off that is. Without effect
    /// on [`Rollout::run`] and [`Rollout::jvp`], which compute no state twice to compare it.
    #[must_use]
    pub fn verify(mut self) -> Self {
        self.options.verify = true;
        self
    }

    /// Scales the cotangent of the state down to this norm whenever it is larger. The result is then not the
    /// exact gradient; the report counts how often it happened. Without effect on [`Rollout::run`] and
    /// [`Rollout::jvp`], which have no cotangents.
    #[must_use]
    pub fn clip(mut self, norm: f64) -> Self {
        self.options.clip = Some(norm);
        self
    }

    /// Carries cotangents back over at most so many steps: the last ones for a loss of the last state; for a
    /// loss along the way the loop is cut into windows of this length, counted from its end. The result is
    /// biased: by how much depends on what cotangents would have become beyond their window, which nobody has
    /// seen. With [`Rollout::verify`] the report compares it with the exact derivative along the gradient.
    /// Without effect on [`Rollout::run`] and [`Rollout::jvp`], which have no cotangents.
    #[must_use]
    pub fn truncate(mut self, window: u64) -> Self {
        self.options.window = Some(window);
        self
    }

    /// Records so many steps on one tape; schedules then count in such units. The default is as many as fit a
    /// processor's cache, because starting a recording costs as much as a small step does.
    ///
    /// With [`Rollout::until`] it is at most 64. Steps are recorded one at a time, whatever is said here, for
    /// losses along the way, [`Schedule::Periodic`] and [`Schedule::Mixed`], which count in steps, with
    /// [`Rollout::truncate`], [`Rollout::clip`] and [`Rollout::verify`], by undoing, and for states that grow
    /// inside a budget; a step with a rule records nothing.
    #[must_use]
    pub fn record_at_once(mut self, steps: u64) -> Self {
        self.options.at_once = Some(steps);
        self
    }

    /// Records every step on the tape. Otherwise a step whose numbers each depend on few numbers before is
    /// recorded once, and from then on its partials are found by forward numbers, a few at a time, which is
    /// faster.
    #[must_use]
    pub fn tape_only(mut self) -> Self {
        self.options.tape_only = true;
        self
    }

    /// The last state, without derivatives.
    pub fn run(&self, initial: &St::State<f64>, params: &St::Params<f64>) -> Result<St::State<f64>, Error> {
        self.check()?;
        self.run_plain(initial, params)
    }

    /// The loss of the last state and its gradient.
    pub fn value_and_grad(
        &self,
        initial: &St::State<f64>,
        params: &St::Params<f64>,
        loss: impl Fn(&St::State<Var<f64>>) -> Var<f64>,
    ) -> Result<Gradient<St>, Error> {
        self.gradient(initial, params, When::Last, &mut |_, state| loss(state))
    }

    /// The sum of a loss over the states after each step, and its gradient. The loss also receives the
    /// number of steps taken so far, from 1.
    pub fn value_and_grad_along(
        &self,
        initial: &St::State<f64>,
        params: &St::Params<f64>,
        loss: impl Fn(u64, &St::State<Var<f64>>) -> Var<f64>,
    ) -> Result<Gradient<St>, Error> {
        self.gradient(initial, params, When::Each, &mut |step, state| loss(step, state))
    }

    /// The gradient of the loss of the last state, and the product of its Hessian with a direction, forward
    /// over reverse with snapshots.
    pub fn hvp(
        &self,
        initial: &St::State<f64>,
        params: &St::Params<f64>,
        direction: Direction<'_, St>,
        loss: impl Fn(&St::State<Var<Dual<f64>>>) -> Var<Dual<f64>>,
    ) -> Result<(Gradient<St>, Gradient<St>), Error> {
        self.check()?;
        self.second_order(initial, params, direction, &mut |_, state| loss(state))
            .map_err(|error| self.located(error, initial, params))
    }

    /// The loss of the last state and its derivative in a direction, streaming: nothing is kept from step to
    /// step.
    pub fn jvp(
        &self,
        initial: &St::State<f64>,
        params: &St::Params<f64>,
        direction: Direction<'_, St>,
        loss: impl Fn(&St::State<Dual<f64>>) -> Dual<f64>,
    ) -> Result<(f64, f64), Error> {
        self.check()?;
        self.forward(initial, params, direction, loss).map_err(|error| self.located(error, initial, params))
    }
}
