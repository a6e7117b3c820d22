//! What a reverse sweep always needs, and how many steps it records at once.
//!
//! Input: an engine at the first state, a budget, a way to get states back. Output: bytes ([`Needs`]), found
//! by recording the first steps once; or a refusal that names the smallest budget that works.
//!
//! Invariant: whether there is a cheaper way to the partials of a step does not depend on the budget, because
//! bits depend on it.

use super::backend::Backend;
use super::engine::Engine;
use super::hashes::Hashes;
use super::plan::{Needs, Way};
use super::setting::{Length, Loss, Setting, When};
use super::stores::Stores;
use super::{Differentiate, Inner, Rollout, Schedule};
use crate::error::Error;
use crate::step::Step;
use core::mem::needs_drop;
use palinode_core::{Budget, Passive, Reals, Snapshot};

/// The most states that are hashed at once.
const HASHES: usize = 1 << 16;
/// The same inside a budget, whose smallest must not depend on itself.
const FEW_HASHES: usize = 1 << 10;

/// The bytes of residuals that a first-level cache is about to hold.
const CACHE: usize = 1 << 15;
/// Partials by forward numbers are written once and read once, in order: a second-level cache is near enough.
const CACHE_FOR_LANES: usize = 1 << 19;
/// The size of the cotangent is seen once for all steps that are recorded at once: in a short loop it is to
/// be seen so often all the same.
const NORMS: u64 = 8;
/// Beyond so many steps, starting a recording costs nothing more.
pub(super) const MOST_AT_ONCE: usize = 64;

/// A sweep that is to be planned: what it starts with, the way to get states back, how long the loop is.
pub(super) struct Task<'t, St: Step, T: Inner> {
    pub(super) setting: Setting<'t>,
    pub(super) way: Way,
    pub(super) length: Length<'t, St, T>,
    /// Whether steps are to be recorded one at a time.
    pub(super) singly: bool,
}

impl<St: Step, T: Inner> Clone for Task<'_, St, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<St: Step, T: Inner> Copy for Task<'_, St, T> {}

impl<St: Step, T: Inner> Task<'_, St, T> {
    /// A refusal, if the budget does not hold these with what is kept at least of so many units.
    fn fits(&self, needs: Needs, units: u64, stores: &Stores<'_, '_>) -> Result<(), Error> {
        needs.with(self.way.least(units)?, stores).within(self.setting.budget)
    }
}

impl<'a, St: Step, How: Differentiate<St>> Rollout<'a, St, How> {
    /// What is always there, found by recording the first steps and the loss once; and how many steps are
    /// recorded at once. A refusal if the budget does not hold it with what is kept at least.
    pub(super) fn needs<T: Inner, B: Backend<St, T>>(
        &self,
        engine: &mut Engine<'_, St, T, B>,
        task: Task<'_, St, T>,
        stores: &Stores<'_, '_>,
        loss: &mut Loss<'_, St, T>,
    ) -> Result<Needs, Error> {
        let Task { setting, way, length, singly } = task;
        let Setting { start, budget, .. } = setting;
        if self.options.verify {
            let most = if budget.is_unlimited() { HASHES } else { FEW_HASHES };
            engine.watch.hashes = Some(Hashes::new(most.min(length.most.saturating_add(2) as usize)));
        }
        let refusal = |needs: Needs, stride: u64| task.fits(needs, length.swept.div_ceil(stride), stores);
        engine.units.stride = 1;
        engine.reserve_inputs();
        engine.warm_up_to_name(setting, length.certain, loss)?;
        engine.plan.planned = engine.heaviest();
        if engine.has_grown_from(start) && !budget.is_unlimited() {
            return engine.needs_of_largest(task, stores, None, loss);
        }
        if length.certain > 0 && !self.options.tape_only {
            let results = setting.results;
            // Whether there is a cheaper way must not depend on the budget, because bits do; so it is looked
            // for even if that is too much.
            let narrow = match engine.narrow(start, results, budget.bytes())? {
                Some(found) => found,
                None => engine.narrow(start, results, usize::MAX)?.unwrap_or_default(),
            };
            if narrow {
                engine.warm_up(start, length.certain, loss)?;
            }
        }
        if let Some(largest) = engine.differing(setting, length)? {
            return engine.needs_of_largest(task, stores, Some(largest), loss);
        }
        // All states have been seen now, if they differ.
        engine.plan.planned = engine.heaviest();
        let mut of_one = engine.needs_of(setting);
        let one = refusal(of_one, 1);
        let at_once = if singly { 1 } else { length.certain };
        let at_once = at_once.min(self.steps_at_once(engine, budget, of_one, way, length.most));
        if at_once <= 1 {
            return one.map(|()| of_one);
        }
        let limit = match &one {
            // The other half is for lists that only several steps at once have, and for snapshots.
            Ok(()) => budget.bytes().saturating_sub(of_one.states) / 2,
            Err(_) => to_name(budget),
        };
        engine.limit(limit);
        // Partials by forward numbers have no limit of their own; so many steps take so many times the bytes.
        let is_too_much = (engine.backend.directions().is_some()
            && of_one.residuals.saturating_mul(at_once as usize) > limit)
            // Neither have the lists of the inputs of these steps.
            || engine.inputs.bytes_each().saturating_mul(at_once as usize) > limit / 2;
        if is_too_much {
            return one.map(|()| of_one);
        }
        engine.units.stride = at_once;
        let warmed_up = engine.warm_up(start, length.certain, loss);
        let is_about_bytes = warmed_up.as_ref().err().is_none_or(Error::is_excess);
        if is_about_bytes && engine.has_grown_from(start) && !budget.is_unlimited() {
            return engine.needs_of_largest(task, stores, None, loss);
        }
        let several = match warmed_up {
            Ok(()) => {
                let needs = engine.needs_of(setting);
                refusal(needs, at_once).map(|()| needs)
            }
            Err(error) if error.is_excess() => Err(error),
            Err(error) => return Err(error),
        };
        match (several, one) {
            (Ok(needs), _) => Ok(needs),
            (Err(_), Ok(())) => {
                let tried = engine.heap_bytes() + start.heap_bytes() + setting.results;
                of_one.least = of_one.least.max(tried);
                engine.units.stride = 1;
                engine.forget_states(start);
                // With the limit that it was found with, so that it takes what it took.
                engine.warm_up_to_name(setting, length.certain, loss)?;
                Ok(of_one)
            }
            (Err(several), Err(one)) => Err(if needed(&several) < needed(&one) { several } else { one }),
        }
    }

    /// A refusal that the first steps led to, unless all are alike, becomes what all steps lead to.
    pub(super) fn needs_in_all<T: Inner, B: Backend<St, T>>(
        &self,
        engine: &mut Engine<'_, St, T, B>,
        task: Task<'_, St, T>,
        stores: &Stores<'_, '_>,
        loss: &mut Loss<'_, St, T>,
    ) -> Result<(Needs, bool), Error> {
        match self.needs(engine, task, stores, loss) {
            Err(refusal @ Error::BudgetTooSmall { .. }) if task.length.certain > 0 => {
                if engine.is_uniform(task.setting.start)? {
                    return Err(refusal);
                }
                let (planned, at_once) = (engine.plan.planned, engine.units.stride);
                engine.measure_steps(task, &|_| true, loss)?;
                // Steps that differ a little make units of several that differ much.
                if at_once > 1 && !engine.has_steps_alike() {
                    return self.needs_singly(engine, task, stores, loss);
                }
                // It is right if no step is heavier than those that it was found with.
                if planned.holds_for(&engine.heaviest()) {
                    return Err(refusal);
                }
                Ok((engine.needs_as_measured(task, stores)?, true))
            }
            needs => Ok((needs?, false)),
        }
    }

    /// The same as if nothing had been tried, for steps that are recorded one at a time.
    pub(super) fn needs_singly<T: Inner, B: Backend<St, T>>(
        &self,
        engine: &mut Engine<'_, St, T, B>,
        task: Task<'_, St, T>,
        stores: &Stores<'_, '_>,
        loss: &mut Loss<'_, St, T>,
    ) -> Result<(Needs, bool), Error> {
        engine.forget_states(task.setting.start);
        engine.forget_loss();
        self.needs_in_all(engine, Task { singly: true, ..task }, stores, loss)
    }

    /// How many steps are recorded on one tape.
    fn steps_at_once<T: Inner, B: Backend<St, T>>(
        &self,
        engine: &mut Engine<'_, St, T, B>,
        budget: Budget,
        needs: Needs,
        way: Way,
        most: u64,
    ) -> u64 {
        let in_steps = matches!(self.options.schedule, Schedule::Periodic { .. } | Schedule::Mixed { .. });
        if !B::RECORDS
            || engine.loss.when == When::Each
            || in_steps
            || way == Way::Undoing
            || self.options.window.is_some()
            || self.options.clip.is_some()
            // The step that differs is to be named, not the unit.
            || self.options.verify
        {
            return 1;
        }
        if let Some(at_once) = self.options.at_once {
            return at_once;
        }
        let left = budget.bytes().saturating_sub(needs.states + needs.residuals);
        // Snapshots need most of what is left. Where they are not chosen by the budget, neither is this, so
        // that a refusal names a budget that is enough.
        let cache = if engine.backend.directions().is_some() { CACHE_FOR_LANES } else { CACHE };
        let bytes = if way.chooses() { cache.min(left / 8) } else { cache };
        let steps = (bytes / engine.backend.needed_bytes().max(1)).min(MOST_AT_ONCE) as u64;
        steps.min(most / NORMS).max(1)
    }
}

impl<St: Step, T: Inner, B: Backend<St, T>> Engine<'_, St, T, B> {
    /// The same as [`Rollout::needs`] for a loop whose steps differ: every step is recorded once. Steps are
    /// then recorded one at a time.
    pub(super) fn needs_of_all(
        &mut self,
        task: Task<'_, St, T>,
        stores: &Stores<'_, '_>,
        loss: &mut Loss<'_, St, T>,
    ) -> Result<Needs, Error> {
        self.measure_steps(task, &|_| true, loss)?;
        self.needs_as_measured(task, stores)
    }

    /// Takes every step once, and records those for which `records` holds.
    fn measure_steps(
        &mut self,
        Task { setting, length, .. }: Task<'_, St, T>,
        records: &dyn Fn(u64) -> bool,
        loss: &mut Loss<'_, St, T>,
    ) -> Result<(), Error> {
        let Setting { start, budget, .. } = setting;
        self.units.stride = 1;
        self.units.offset = 0;
        self.forget_recordings();
        self.forget_states(start);
        // What it took before depends on the limit that it had then.
        self.forget_loss();
        self.limit(to_name(budget));
        let others = self.heap_bytes() + start.heap_bytes() - self.live.heap_bytes();
        let goes_on = |state: &St::State<Passive<T>>, taken: u64| {
            refuse_beyond_naming(state.heap_bytes(), others, taken, budget)?;
            (length.goes_on)(state, taken)
        };
        self.measure(start, &goes_on, records, loss).map_err(|error| beyond_naming(budget, error))
    }

    /// What is always there, of an engine that has measured all steps.
    fn needs_as_measured(&mut self, task: Task<'_, St, T>, stores: &Stores<'_, '_>) -> Result<Needs, Error> {
        if self.has_grown_from(task.setting.start) {
            self.plan_for_growth();
        }
        let mut needs = self.needs_of(task.setting);
        needs.states += self.moved_by_recording();
        task.fits(needs, task.length.swept, stores)?;
        Ok(needs)
    }

    /// The same for a loop whose states or inputs differ in size: what is always there is found by recording
    /// the steps where they are largest, which are found by running the loop, unless they are given. Steps
    /// are recorded one at a time.
    fn needs_of_largest(
        &mut self,
        task: Task<'_, St, T>,
        stores: &Stores<'_, '_>,
        largest: Option<Largest>,
        loss: &mut Loss<'_, St, T>,
    ) -> Result<Needs, Error> {
        self.units.stride = 1;
        self.units.offset = 0;
        self.forget_recordings();
        self.limit(to_name(task.setting.budget));
        let largest = match largest {
            Some(largest) => largest,
            None => self.largest_of_all(task.setting, task.length)?,
        };
        self.measure_steps(task, &|step| largest.has(step), loss)?;
        if self.has_grown_from(task.setting.start) {
            self.plan_for_growth();
        }
        self.plan.planned = self.heaviest();
        let needs = self.needs_of(task.setting);
        task.fits(needs, task.length.swept, stores)?;
        Ok(needs)
    }

    /// Records the first step once. A tape near its limit takes fewer bytes than it would, so the limit is
    /// one and the same for all budgets that are too small, and what is named for one is enough for another.
    fn warm_up_to_name(
        &mut self,
        Setting { start, budget, .. }: Setting<'_>,
        steps: u64,
        loss: &mut Loss<'_, St, T>,
    ) -> Result<(), Error> {
        self.limit(to_name(budget));
        self.warm_up(start, steps, loss).map_err(|error| beyond_naming(budget, error))
    }

    /// The steps at which states that grow, or inputs that differ in size, are largest, where there is a
    /// budget. The loop is run to its end if it has to be.
    fn differing(
        &mut self,
        setting: Setting<'_>,
        length: Length<'_, St, T>,
    ) -> Result<Option<Largest>, Error> {
        if setting.budget.is_unlimited() || length.certain == 0 {
            return Ok(None);
        }
        // What has no destructor has no heap, and a state without words no size that could change.
        let may_change = needs_drop::<St::State<Passive<T>>>() && !setting.start.plain().is_empty();
        let inputs_differ = self.inputs.differ_in_size();
        if !inputs_differ && (!may_change || self.is_uniform(setting.start)?) {
            return Ok(None);
        }
        let largest = self.largest_of_all(setting, length)?;
        Ok((inputs_differ || self.has_grown_from(setting.start)).then_some(largest))
    }

    /// Runs the loop without keeping anything.
    fn largest_of_all(
        &mut self,
        Setting { start, budget, .. }: Setting<'_>,
        length: Length<'_, St, T>,
    ) -> Result<Largest, Error> {
        self.restart(start, length.certain)?;
        self.hold_to_sizes(Budget::UNLIMITED);
        let mut before = Snapshot::lengths(&self.live);
        let (mut largest, mut taken) = (Largest::default(), 0);
        let others = self.heap_bytes() + start.heap_bytes() - self.live.heap_bytes();
        while (length.goes_on)(&self.live, taken)? {
            self.advance(taken, taken + 1)?;
            self.see_sizes();
            let after = Snapshot::lengths(&self.live);
            largest.see(taken, before, after, self.inputs.lengths(taken));
            before = after;
            refuse_beyond_naming(self.live.heap_bytes(), others, taken, budget)?;
            taken += 1;
        }
        Ok(largest)
    }

    /// What the engine holds now that it has recorded.
    pub(super) fn needs_of(&self, setting: Setting<'_>) -> Needs {
        let Setting { start, results, afterwards, .. } = setting;
        let residuals = self.residual_bytes();
        let held = self.heap_bytes() + start.heap_bytes() + results;
        Needs {
            states: (held + self.not_held_now() + self.slack() + self.growth_bytes())
                .saturating_sub(residuals),
            residuals: self.planned_residual_bytes(),
            afterwards,
            reals: self.plan.largest.reals,
            plain: self.plan.largest.plain,
            varies: self.plan.varies,
            least: self.plan.held_to_look.max(held + self.moved_bytes()),
        }
    }
}

/// Refusals name what is enough, so what is too much for the budget is recorded all the same, up to this
/// limit.
fn to_name(budget: Budget) -> usize {
    budget.bytes().max(1 << 20).saturating_mul(16)
}

/// The first steps at which something is larger than anywhere else: the state before the step, that after it,
/// its input, what the step is recorded from, or all of that; numbers and words apart, because they are in
/// lists of their own.
#[derive(Default)]
struct Largest([(u64, usize); 9]);

impl Largest {
    fn see(&mut self, step: u64, before: (usize, usize), after: (usize, usize), input: (usize, usize)) {
        let from = (before.0 + input.0, before.1 + input.1);
        let all = from.0 + from.1 + after.0 + after.1;
        let sizes = [before.0, before.1, after.0, after.1, input.0, input.1, from.0, from.1, all];
        for ((at, largest), size) in self.0.iter_mut().zip(sizes) {
            if size > *largest {
                (*at, *largest) = (step, size);
            }
        }
    }

    fn has(&self, step: u64) -> bool {
        self.0.iter().any(|&(at, _)| at == step)
    }
}

/// An error if the bytes of the live state make more than what refusals are named for, with so many besides.
pub(super) fn refuse_beyond_naming(
    live: usize,
    others: usize,
    step: u64,
    budget: Budget,
) -> Result<(), Error> {
    let needed = others + live;
    if needed > to_name(budget) { Err(Error::OverBudget { step, needed, budget }) } else { Ok(()) }
}

/// The refusal of a step whose residuals are more than what is recorded to name what is enough.
fn beyond_naming(budget: Budget, error: Error) -> Error {
    match error {
        Error::Core(palinode_core::Error::ByteLimit { needed, .. }) => Error::BudgetTooSmall {
            budget,
            smallest: needed.into(),
            states: 0,
            residuals: needed,
            snapshots: 0,
        },
        Error::InInnerLoop { error, .. } if error.is_excess() => beyond_naming(budget, *error),
        error => error,
    }
}

/// The bytes that a refusal names.
fn needed(refusal: &Error) -> usize {
    match refusal {
        Error::BudgetTooSmall { smallest, .. } => smallest.bytes(),
        _ => usize::MAX,
    }
}
