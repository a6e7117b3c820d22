//! An imagined sweep: the same schedule as a run follows, snapshots as holders of arrays.
//!
//! A long sweep whose rounds are alike is not walked to its end. A shorter one stands for it, with fewer
//! snapshots; the bytes of the others are charged as long as it lasts. That is exact: the most is live when
//! all snapshots are there, the state besides, and a round is gone through; and whatever the round and the
//! distance between snapshots, each takes the same, because a round makes every array of the state anew or
//! leaves it alone. Where that does not hold (a state whose arrays move on from one place to another, or get
//! longer; cotangents that share memory until many rounds have passed), every round is walked. If that takes
//! too long, arrays that only move are bounded: every state counts with all its arrays, and the short sweep
//! starts with each of them, and each cotangent, in memory of its own. Whatever a round of the long sweep
//! finds shares at least as much, so that it takes no more.

use std::collections::HashMap;
use std::rc::Rc;

use palinode_core::schedule::Action;

use crate::interp::bookkeeping::{self, snapshot};
use crate::interp::store_rule::{Kept, most_held, snapshots_of, snapshots_of_growing};
use crate::liveness::InstMarks;
use crate::op::{FuncId, Keep};
use crate::plan::buffers::mixed;
use crate::plan::known::Thing;
use crate::plan::walk::{Walk, Walked};
use crate::plan::{PlanError, Snapshots, steady};
use crate::program::{Block, Inst, Value};
use crate::schedule::{advances, schedule};
use crate::types::{Elem, Span};
use crate::work;

/// So many snapshots stand for all of a long sweep,
const FEW_SLOTS: u64 = 2;
/// and so many rounds: with them all snapshots are in use while the state is advanced from one that none of
/// them has. A sweep of no more is walked as it is.
const FEW_ROUNDS: u64 = 6;
/// Rounds that are walked to see what one does.
const TRIAL: u64 = 3;

/// What short sweeps have shown, by the sweep and by all that its memory depends on: what a round makes anew,
/// if its rounds are alike.
#[derive(Default)]
pub(super) struct Trials {
    /// What each sweep takes from around it.
    captures: HashMap<(FuncId, Value), Rc<[Value]>>,
    found: HashMap<(FuncId, Value, u64), Option<Anew>>,
}

/// The parts of a sweep.
struct Parts<'p> {
    advance: &'p Block,
    back: &'p Block,
    turn: Option<&'p Block>,
    states: &'p [Value],
    cotangents: &'p [Value],
    /// What the turn gives besides cotangents.
    more: &'p [Value],
    /// Whether the turn gives each array in memory of its own, so that others only share more.
    is_apart: bool,
    /// What is known of the number of a round, if that is forgotten.
    forgotten: Option<Thing>,
}

/// What the rounds of a sweep did.
#[derive(Default)]
struct Rounds {
    /// How much work the last one was, and how many arrays it made: forwards and backwards.
    forwards: (f64, u64),
    backwards: (f64, u64),
    /// The same of the turn.
    turning: (f64, u64),
    /// Whether every round left the state with the same lengths, and whether one moved an array to another
    /// place.
    settled: bool,
    moved: bool,
    /// What the last round made anew, and the most that a state takes.
    each: Option<Anew>,
    all: Anew,
    /// How the cotangents lay in memory after the last round, and whether after the one before, too; only in
    /// a trial.
    is_trial: bool,
    places: Option<steady::Places>,
    alike: bool,
    /// What is charged besides the states, if that has changed.
    beside: u64,
    /// If states became longer than fits into a limit in bytes: how many snapshots there were then, and
    /// the bytes of the largest state.
    grown: Option<(u64, u64)>,
}

/// Arrays that a round makes anew.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Anew {
    arrays: u64,
    bytes: u64,
    /// Whether arrays move on from one place to another, or share memory for a while: then these are all of a
    /// state, of which neighbours share some, and others do not.
    moved: bool,
}

impl Anew {
    fn with(self, bytes: u64) -> Anew {
        Anew { arrays: self.arrays + 1, bytes: self.bytes + bytes, ..self }
    }
}

/// A limit of the bytes of all snapshots.
#[derive(Clone, Copy)]
struct Limit {
    bytes: u64,
    /// The bytes of the first state with its bookkeeping.
    first: u64,
    /// How many arrays a state has.
    arrays: u64,
    /// What is charged besides states at the start.
    charged: u64,
    /// The loop.
    span: Span,
}

fn arrays_of(things: &[Thing]) -> Vec<Thing> {
    things.iter().copied().filter(|thing| matches!(thing, Thing::Array(_))).collect()
}

impl<'p> Walk<'p> {
    pub(super) fn sweep(&mut self, inst: &'p Inst, marks: &InstMarks, keep: Keep) -> Walked {
        let (advance, back, turn) = (&inst.blocks[0], &inst.blocks[1], inst.blocks.get(2));
        let (states, cotangents) = back.params[1..].split_at(advance.results.len());
        let more = &inst.results[cotangents.len()..];
        let is_apart = false;
        let mut parts = Parts { advance, back, turn, states, cotangents, more, is_apart, forgotten: None };
        let n = self.rounds(self.get(inst.args[0]), inst.span)?;
        let things = self.fetch(&inst.args[1..], &marks.dies[1..]);
        self.set_all(&advance.params[1..], &things);
        let begins = turn.map_or(cotangents, |turn| &turn.params[states.len()..]);
        self.set_all(begins, &things[states.len()..]);
        let each = self.state_bytes(&things[..states.len()]);
        let arrays = arrays_of(&things[..states.len()]).len() as u64;
        let needed = each.saturating_add(snapshot(arrays));
        let Kept { steps, snapshots, keep } = snapshots_of(keep, n, turn.is_some(), states.len(), needed)
            .map_err(|budget| PlanError::SnapshotOverBudget { budget, needed, span: inst.span })?;
        let mut beside = bookkeeping::sweep(steps, snapshots, arrays);
        self.state.ledger.reserve(0, beside);
        // Scalars of all snapshots, whatever is walked.
        let scalars = self.scalar_store(&parts, snapshots, inst.span)?;
        let mut found = Snapshots {
            span: inst.span,
            rounds: n,
            count: snapshots,
            scalar_bytes: self.state_bytes(&scalars),
            array_bytes: self.state_bytes(&arrays_of(&things[..states.len()])),
        };
        self.state.snapshots.push(scalars);

        let function = self.program.function(self.function);
        let short = self.events.is_none() && n > FEW_ROUNDS;
        let mut alike = short && steady::sweeps_alike(function, inst, false);
        if short && !alike && self.bounding && steady::sweeps_alike(function, inst, true) {
            parts.forgotten = Some(Thing::UpTo(n as i64 - 1));
            (alike, self.exact, self.forgot) = (true, false, true);
        }
        if alike && self.short_sweep(inst, &parts, marks, n, snapshots)? {
            // Integers of a short sweep are not those of the long one.
            for &value in cotangents.iter().chain(more) {
                if let Thing::Int(_) | Thing::UpTo(_) = self.get(value) {
                    self.set(value, Thing::Int(None));
                }
            }
        } else {
            let limit = match keep {
                Keep::Bytes(bytes) => {
                    Some(Limit { bytes, first: needed, arrays, charged: beside, span: inst.span })
                }
                Keep::Snapshots(_) => None,
            };
            let done = self.whole_sweep(&parts, marks, n, snapshots, limit)?;
            if let Some((snapshots, largest)) = done.grown {
                beside = done.beside;
                let scalars = self.state.snapshots.last().cloned().unwrap_or_default();
                found.count = snapshots;
                found.scalar_bytes = self.state_bytes(&scalars);
                let others = found.scalar_bytes / snapshots.max(1) + snapshot(arrays);
                found.array_bytes = largest.saturating_sub(others);
            }
        }
        let most = self.snapshots.entry(inst.span).or_insert(found);
        if found.bytes() > most.bytes() {
            *most = found;
        }
        let scalars = self.state.snapshots.pop().expect("it was pushed");
        self.drop_all(&scalars);
        self.state.ledger.give_back(0, beside);
        if steps == 0 {
            self.release(&advance.params[1..]);
        }
        let results: Vec<Thing> = cotangents.iter().chain(more).map(|&value| self.get(value)).collect();
        for &value in cotangents.iter().chain(more) {
            self.set(value, Thing::Unset);
        }
        self.define(inst, &results);
        Ok(())
    }

    /// Which array it is, if it is one. (Buffers are numbered anew after a branch on data, arrays are not.)
    fn birth_of(&self, thing: Thing) -> Option<u64> {
        thing.id().map(|id| self.ledger().get(id).born)
    }

    fn set_all(&mut self, values: &[Value], things: &[Thing]) {
        values.iter().zip(things).for_each(|(&value, &thing)| self.set(value, thing));
    }

    fn state_bytes(&self, state: &[Thing]) -> u64 {
        let ledger = self.ledger();
        let one = |thing: &Thing| match thing {
            Thing::Array(id) => {
                let buffer = ledger.get(*id);
                let elements = buffer.elements().unwrap_or(buffer.made);
                most_held(buffer.made, elements).saturating_mul(ledger.element_bytes(buffer.elem))
            }
            Thing::Real => ledger.element_bytes(Elem::F64),
            Thing::Int(_) | Thing::UpTo(_) => 8,
            Thing::Unset => 0,
        };
        state.iter().map(one).fold(0, u64::saturating_add)
    }

    /// The buffers for the scalars of so many snapshots.
    fn scalar_store(&mut self, parts: &Parts<'_>, snapshots: u64, span: Span) -> Walked<Vec<Thing>> {
        let function = self.program.function(self.function);
        let mut made = Vec::new();
        for kind in [Elem::F64, Elem::Int, Elem::Bool] {
            let is_kind = |elem: Elem| if elem.is_real() { kind == Elem::F64 } else { elem == kind };
            let types = parts.states.iter().map(|&value| function.ty(value));
            let count = types.filter(|ty| ty.is_scalar() && is_kind(ty.elem)).count() as u64;
            if count > 0 && snapshots > 0 {
                made.push(Thing::Array(self.allocate(
                    kind,
                    vec![Some(snapshots.saturating_mul(count))],
                    span,
                )?));
            }
        }
        Ok(made)
    }

    /// Follows the schedule for `n` rounds.
    fn whole_sweep(
        &mut self,
        parts: &Parts<'p>,
        marks: &InstMarks,
        n: u64,
        snapshots: u64,
        limit: Option<Limit>,
    ) -> Walked<Rounds> {
        let base = self.state.snapshots.len();
        let mut rounds = Rounds { settled: true, is_trial: n == TRIAL, ..Rounds::default() };
        let state = &parts.advance.params[1..];
        let steps = n + u64::from(parts.turn.is_some());
        let (mut actions, mut left) = (schedule(steps, snapshots), steps);
        // The bytes of all snapshots, as far as they are limited.
        let mut all = 0_u64;
        while let Some(action) = actions.next() {
            match action {
                Action::Advance { from, to } => {
                    for step in from..to {
                        self.advance(parts, marks, step, &mut rounds)?;
                    }
                }
                Action::Snapshot { slot, .. } => {
                    let slot = slot.index as usize;
                    let things: Vec<Thing> = state.iter().map(|&value| self.get(value)).collect();
                    if self.state.snapshots.len() <= base + slot {
                        self.state.snapshots.resize(base + slot + 1, Vec::new());
                    }
                    if let Some(limit) = limit {
                        all = all
                            .saturating_add(self.state_bytes(&things))
                            .saturating_add(snapshot(limit.arrays));
                        if all > limit.bytes {
                            all = 0;
                            let grown = self.measure(parts, marks, left, base, limit, &mut rounds)?;
                            actions = schedule(left, grown.0);
                            rounds.grown = Some(grown);
                            continue;
                        }
                    }
                    things.iter().filter_map(|thing| thing.id()).for_each(|id| self.state.ledger.hold(id));
                    self.state.snapshots[base + slot] = things;
                }
                Action::Restore { slot, .. } => self.restore(base + slot.index as usize, state),
                Action::Free { slot } => {
                    let things = core::mem::take(&mut self.state.snapshots[base + slot.index as usize]);
                    if let Some(limit) = limit {
                        let beside = snapshot(limit.arrays);
                        all = all.saturating_sub(self.state_bytes(&things).saturating_add(beside));
                    }
                    self.drop_all(&things);
                }
                Action::Record { .. } => {}
                Action::Reverse { step } => {
                    left = step;
                    match parts.turn.filter(|_| step == n) {
                        Some(turn) => self.turn(turn, parts, marks, &mut rounds)?,
                        None => self.back(parts, marks, step, &mut rounds)?,
                    }
                }
            }
        }
        self.state.snapshots.truncate(base);
        Ok(rounds)
    }

    fn restore(&mut self, kept: usize, state: &[Value]) {
        let things = self.state.snapshots[kept].clone();
        things.iter().filter_map(|thing| thing.id()).for_each(|id| self.state.ledger.hold(id));
        self.set_all(state, &things);
    }

    /// Gives up all snapshots but the first, runs the rounds that are left for the size of the largest state,
    /// and restarts from the first one: how many snapshots fit, and that size.
    fn measure(
        &mut self,
        parts: &Parts<'p>,
        marks: &InstMarks,
        left: u64,
        base: usize,
        limit: Limit,
        rounds: &mut Rounds,
    ) -> Walked<(u64, u64)> {
        let state = &parts.advance.params[1..];
        self.release(state);
        self.restore(base, state);
        for things in self.state.snapshots.split_off(base + 1) {
            self.drop_all(&things);
        }
        let mut largest = limit.first;
        for step in 0..left - 1 {
            self.advance(parts, marks, step, rounds)?;
            let things: Vec<Thing> = state.iter().map(|&value| self.get(value)).collect();
            largest = largest.max(self.state_bytes(&things).saturating_add(snapshot(limit.arrays)));
        }
        self.release(state);
        self.restore(base, state);
        for things in self.state.snapshots.split_off(base - 1) {
            self.drop_all(&things);
        }
        let snapshots = snapshots_of_growing(limit.bytes, limit.first, largest).min(left);
        rounds.beside = bookkeeping::sweep(left, snapshots, limit.arrays);
        self.state.ledger.give_back(0, limit.charged);
        self.state.ledger.reserve(0, rounds.beside);
        let scalars = self.scalar_store(parts, snapshots, limit.span)?;
        self.state.snapshots.push(scalars);
        Ok((snapshots, largest))
    }

    fn advance(&mut self, parts: &Parts<'p>, marks: &InstMarks, step: u64, rounds: &mut Rounds) -> Walked {
        self.spend(1)?;
        let (block, marks) = (parts.advance, &marks.blocks[0]);
        let state = &block.params[1..];
        self.set(block.params[0], parts.forgotten.unwrap_or(Thing::Int(Some(step as i64))));
        let before: Vec<Thing> = state.iter().map(|&value| self.get(value)).collect();
        let lengths: Vec<_> = before.iter().map(|thing| thing.shape(self.ledger())).collect();
        let before: Vec<Option<u64>> = before.iter().map(|thing| self.birth_of(*thing)).collect();
        let (work, allocations) = (self.ledger().work, self.ledger().allocations);
        self.state.ledger.work += work::ROUND;
        self.block(block, marks)?;
        let next = self.fetch(&block.results, &marks.results_die);
        self.set_all(state, &next);
        let ledger = self.ledger();
        rounds.forwards = (ledger.work - work, ledger.allocations - allocations);
        let (mut each, mut all) = (Anew::default(), Anew::default());
        for (at, thing) in next.iter().enumerate() {
            let Thing::Array(id) = thing else { continue };
            let buffer = ledger.get(*id);
            // A buffer that something else holds was there before and will be there in every round.
            let is_this = |old: &Option<u64>| *old == Some(buffer.born);
            let stays = is_this(&before[at]) && ledger.holders(*id) > 1;
            let moved = before.iter().enumerate().any(|(other, old)| other != at && is_this(old))
                || next.iter().filter(|other| *other == thing).count() > 1;
            let known = buffer.shape.iter().all(Option::is_some);
            rounds.moved |= moved;
            rounds.settled &= known && buffer.shape == lengths[at] && !buffer.in_chunks();
            all = all.with(buffer.bytes);
            each = if stays { each } else { each.with(buffer.bytes) };
        }
        // What is there before the first round may be arranged otherwise than what rounds leave.
        rounds.moved |= rounds.each.is_some_and(|before| before != each);
        rounds.each = Some(each);
        rounds.all = Anew { arrays: all.arrays, bytes: all.bytes.max(rounds.all.bytes), moved: false };
        Ok(())
    }

    fn back(&mut self, parts: &Parts<'p>, marks: &InstMarks, step: u64, rounds: &mut Rounds) -> Walked {
        self.spend(1)?;
        let (block, marks) = (parts.back, &marks.blocks[1]);
        self.set(block.params[0], parts.forgotten.unwrap_or(Thing::Int(Some(step as i64))));
        for (&ours, &theirs) in parts.advance.params[1..].iter().zip(parts.states) {
            let thing = self.get(ours);
            self.set(ours, Thing::Unset);
            self.set(theirs, thing);
        }
        let (work, allocations) = (self.ledger().work, self.ledger().allocations);
        self.state.ledger.work += work::ROUND;
        self.block(block, marks)?;
        let next = self.fetch(&block.results, &marks.results_die);
        self.set_all(parts.cotangents, &next);
        let ledger = self.ledger();
        rounds.backwards = (ledger.work - work, ledger.allocations - allocations);
        if rounds.is_trial {
            let places = Some(steady::places(&next, ledger));
            rounds.alike = rounds.places == places;
            rounds.places = places;
        }
        Ok(())
    }

    fn turn(&mut self, turn: &'p Block, parts: &Parts<'p>, marks: &InstMarks, rounds: &mut Rounds) -> Walked {
        self.spend(1)?;
        let marks = &marks.blocks[2];
        for (&ours, &theirs) in parts.advance.params[1..].iter().zip(&turn.params) {
            let thing = self.get(ours);
            self.set(ours, Thing::Unset);
            self.set(theirs, thing);
        }
        let (work, allocations) = (self.ledger().work, self.ledger().allocations);
        self.state.ledger.work += work::ROUND;
        self.block(turn, marks)?;
        let found = self.fetch(&turn.results, &marks.results_die);
        self.set_all(parts.cotangents, &found);
        self.set_all(parts.more, &found[parts.cotangents.len()..]);
        if parts.is_apart {
            self.set_apart(parts.cotangents)?;
        }
        let ledger = self.ledger();
        rounds.turning = (ledger.work - work, ledger.allocations - allocations);
        Ok(())
    }

    /// Walks a shorter sweep instead; false, and nothing done, if that shows that its rounds are not alike.
    fn short_sweep(
        &mut self,
        inst: &'p Inst,
        parts: &Parts<'p>,
        marks: &InstMarks,
        n: u64,
        snapshots: u64,
    ) -> Walked<bool> {
        let Some(each) = self.trial(inst, parts, marks)? else { return Ok(false) };
        // At most one snapshot for each round but the last is of use. With fewer, there is a state between
        // two of them that none of them has.
        let turns = u64::from(parts.turn.is_some());
        let useful = snapshots.min(n + turns - 1);
        let few = useful.min(FEW_SLOTS);
        let steps = if useful == n + turns - 1 { few + 1 } else { FEW_ROUNDS };
        // None of the few counts if it may share arrays with its neighbours that others do not.
        let more = if each.moved { useful } else { useful - few };
        if each.moved {
            (self.exact, self.forgot) = (false, true);
            self.set_apart(&parts.advance.params[1..])?;
            if parts.turn.is_none() {
                self.set_apart(parts.cotangents)?;
            }
        }
        let parts = &Parts { is_apart: each.moved, ..*parts };
        let others = more.saturating_mul(each.bytes);
        let described = more.saturating_mul(each.arrays).saturating_mul(bookkeeping::ARRAY);
        self.state.ledger.reserve(others, described);
        self.stop_at_peak()?;
        let (work, allocations) = (self.ledger().work, self.ledger().allocations);
        let done = self.whole_sweep(parts, marks, steps - turns, few, None)?;
        self.state.ledger.give_back(others, described);
        // What the long one does instead; few snapshots may have made the short one go forwards more often.
        let (forwards, backwards) = (done.forwards, done.backwards);
        let (there, back) = (advances(n + turns, snapshots), n);
        let ledger = &mut self.state.ledger;
        ledger.work = work + forwards.0 * there as f64 + backwards.0 * back as f64 + done.turning.0;
        let made = forwards.1.saturating_mul(there).saturating_add(backwards.1.saturating_mul(back));
        let made = made.saturating_add(done.turning.1);
        ledger.allocations = allocations.saturating_add(made);
        debug_assert!(done.settled, "what three rounds show holds for more");
        Ok(true)
    }

    /// Gives each of these arrays memory of its own.
    fn set_apart(&mut self, values: &[Value]) -> Walked {
        for &value in values {
            if let Thing::Array(id) = self.get(value)
                && !self.ledger().is_held_once(id)
            {
                let apart = self.state.ledger.set_apart(id);
                self.set(value, Thing::Array(apart));
                self.stop_at_peak()?;
            }
        }
        Ok(())
    }

    /// What a round makes anew, if every round leaves the state with the same lengths and, unless a bound is
    /// enough, each array in its place; all of a state, if only a bound is found.
    fn trial(&mut self, inst: &Inst, parts: &Parts<'p>, marks: &InstMarks) -> Walked<Option<Anew>> {
        let key = self.memory_depends_on(inst);
        if let Some(&known) = key.as_ref().and_then(|key| self.trials.found.get(key)) {
            return Ok(known);
        }
        let state = self.copied_state()?;
        let before = (state, self.copies.clone(), self.most.clone(), self.shapes.clone());
        let notes = (self.growth.clone(), self.snapshots.clone());
        let stop_at = self.stop_at.take();
        let trial = self.whole_sweep(parts, marks, TRIAL, 1, None)?;
        (self.state, self.copies, self.most, self.shapes) = before;
        (self.growth, self.snapshots) = notes;
        self.stop_at = stop_at;
        let moved = trial.moved || !trial.alike;
        let each = if moved { trial.all } else { trial.each.unwrap_or_default() };
        let found = (trial.settled && (!moved || self.bounding)).then_some(Anew { moved, ..each });
        if let Some(key) = key {
            self.trials.found.insert(key, found);
        }
        Ok(found)
    }

    /// What the memory of a sweep depends on: it, and the lengths, integers and holders of what it takes and
    /// captures, summed up. Nothing if that is long.
    fn memory_depends_on(&mut self, inst: &Inst) -> Option<(FuncId, Value, u64)> {
        let (function, result) = (self.function, *inst.results.first()?);
        let captures = self.trials.captures.entry((function, result)).or_insert_with(|| {
            let mut all: Vec<Value> = inst.blocks.iter().flat_map(Block::captures).collect();
            all.sort_unstable();
            all.dedup();
            all.into()
        });
        let captures = Rc::clone(captures);
        // What is not there yet says nothing.
        let given = inst.blocks.get(2).map_or(&inst.blocks[1].params[1..], |turn| &turn.params[..]);
        let params = inst.blocks[0].params[1..].iter().chain(given);
        let (mut sum, mut seen) = (0, HashMap::new());
        for (at, &value) in captures.iter().chain(params).enumerate() {
            sum = match self.get(value) {
                Thing::Unset => mixed(sum, 1),
                Thing::Real => mixed(sum, 2),
                Thing::Int(None) => mixed(sum, 3),
                Thing::Int(Some(value)) => mixed(mixed(sum, 4), value as u64),
                Thing::UpTo(most) => mixed(mixed(sum, 5), most as u64),
                Thing::Array(id) => {
                    let buffer = self.ledger().get(id);
                    if buffer.ints.as_ref().is_some_and(|ints| !ints.is_constant()) {
                        return None;
                    }
                    let first = buffer.ints.as_ref().map(|ints| ints.get(0));
                    let entry = match first {
                        None => 0,
                        Some(Thing::UpTo(most)) => mixed(1, most as u64),
                        Some(other) => mixed(2, other.int().unwrap_or(-1) as u64),
                    };
                    let flags = u64::from(buffer.at_most)
                        + 2 * u64::from(buffer.uneven)
                        + 4 * u64::from(buffer.loose);
                    let with = *seen.entry(id).or_insert(at) as u64;
                    let shape = buffer.shape.iter().map(|length| length.map_or(u64::MAX, |length| length));
                    let facts = [with, u64::from(self.ledger().holders(id)), buffer.made, flags, entry];
                    facts.into_iter().chain(shape).fold(mixed(sum, 6), mixed)
                }
            };
        }
        Some((function, result, sum))
    }
}
