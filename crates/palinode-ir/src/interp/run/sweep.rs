//! Sweeps: the reverse sweep through a loop that kept nothing but its initial state.
//!
//! Input: the registers of a state and of cotangents, a number of rounds, and how much may be kept. Output:
//! which block runs next, and with which state. A snapshot of an array is a share of it: it costs memory once
//! the loop's body changes the array, and none where the body leaves it alone. Scalars of snapshots have a
//! buffer of their own.
//!
//! Limits in bytes count on states as long as the first. If they turn out longer, the sweep measures them and
//! goes on with fewer snapshots, once: after that none can be too long. The first state is always kept, and
//! one snapshot is enough for the reverse sweep, so that a limit works if the first state fits.

use std::sync::Arc;

use palinode_core::Real;
use palinode_core::dense::norm_of;
use palinode_core::schedule::Action;

use super::{Frame, Machine, Observer};
use crate::interp::bookkeeping::{self, snapshot};
use crate::interp::code::{Kind, Place, SweepSite};
use crate::interp::error::RunErrorKind;
use crate::interp::ledger::Memory;
use crate::interp::store::Store;
use crate::interp::store_rule::{Event, Kept, most_held, snapshots_of, snapshots_of_growing};
use crate::interp::value::Array;
use crate::op::Keep;
use crate::schedule::{Schedule, schedule};
use crate::types::Span;

const OP: &str = "sweep";

/// A round that a sweep has reversed. A sweep of no rounds is reported once, with 0 of them.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundBack {
    /// The loop.
    pub span: Span,
    /// The number of the round, from 0.
    pub round: u64,
    /// How many rounds there are.
    pub rounds: u64,
    /// How many snapshots are kept at once.
    pub snapshots: u64,
    /// The bytes of the initial state.
    pub state_bytes: u64,
    /// The bytes of the largest state that has been kept until now.
    pub largest_bytes: u64,
    /// The most bytes of all states that have been kept at once until now; arrays that they share count for
    /// each.
    pub kept_bytes: u64,
    /// How many rounds have been run forwards until now to get states back; if the sweep turns, for the
    /// values, too.
    pub advanced: u64,
    /// Whether the sweep turns, so that its first run is the one for the values.
    pub turns: bool,
    /// The norms of the cotangents before this round, with their names.
    pub cotangents: Vec<(Option<Arc<str>>, f64)>,
}

/// A sweep on its way.
pub(super) struct Running<R> {
    schedule: Schedule,
    keep: Keep,
    rounds: u64,
    snapshots: u64,
    state_bytes: u64,
    /// How many steps of the schedule have not been reversed: rounds, and the turn.
    left: u64,
    /// How many have been run forwards, without those that were reversed at once.
    advanced: u64,
    /// The bytes of the largest state so far, while states are measured.
    largest: Option<u64>,
    /// The round of the state, and the one up to which it is being advanced.
    at: u64,
    until: u64,
    /// The round that was reversed last, until it is reported.
    reversed: Option<u64>,
    /// The arrays of all snapshots, those of each one after the other.
    arrays: Vec<Array<R>>,
    /// The bytes of each snapshot with arrays, bookkeeping included, and of all; how many there are.
    bytes: Vec<u64>,
    all_bytes: u64,
    held: u64,
    /// The most that they have been, of elements.
    largest_kept: u64,
    most_bytes: u64,
    /// What is charged besides the states.
    beside: u64,
    reals: Option<Store<R>>,
    ints: Option<Store<i64>>,
    bools: Option<Store<bool>>,
}

fn count(state: &[Place], kind: Kind) -> usize {
    state.iter().filter(|place| place.kind == kind).count()
}

/// Places for the scalars of one kind in all snapshots.
fn scalars<T: Copy>(
    snapshots: u64,
    each: usize,
    value: T,
    memory: &Memory,
) -> Result<Option<Store<T>>, RunErrorKind> {
    if snapshots == 0 || each == 0 {
        return Ok(None);
    }
    let all = usize::try_from(snapshots)
        .ok()
        .and_then(|snapshots| snapshots.checked_mul(each))
        .unwrap_or(usize::MAX);
    Store::filled(OP, vec![all], value, memory).map(Some)
}

impl<R: Real> Machine<'_, R> {
    /// The bytes of a state, each array for itself, with the room that arrays may have which grew.
    fn state_bytes(&self, frame: &Frame, state: &[Place]) -> u64 {
        let one = |place: &Place| match place.kind {
            Kind::Real => size_of::<R>(),
            Kind::Int => size_of::<i64>(),
            Kind::Bool => size_of::<bool>(),
            Kind::Array => {
                let array = &self.arrays[frame.bases[3] + place.slot as usize];
                let (made, size) = match array {
                    Array::Real(store) => (store.made(), size_of::<R>()),
                    Array::Int(store) => (store.made(), size_of::<i64>()),
                    Array::Bool(store) => (store.made(), size_of::<bool>()),
                    Array::Empty => (0, 0),
                };
                let elements: usize = if size == 0 { 0 } else { array.shape().iter().product() };
                (most_held(made as u64, elements as u64) as usize).saturating_mul(size)
            }
        };
        state.iter().map(|place| one(place) as u64).sum()
    }

    #[inline(never)]
    pub(super) fn sweep_start(&mut self, frame: &Frame, site: usize) -> Result<(), RunErrorKind> {
        let site = &self.functions[frame.function].sweeps[site];
        let rounds = u64::try_from(self.ints[frame.bases[1] + site.rounds as usize]).unwrap_or(0);
        self.memory.ledger.note(Event::Rounds(rounds));
        let each = self.state_bytes(frame, &site.state);
        let state = &site.state;
        let arrays = count(state, Kind::Array);
        let needed = each.saturating_add(snapshot(arrays as u64));
        let Kept { steps, snapshots, keep } =
            snapshots_of(site.keep, rounds, site.turn.is_some(), state.len(), needed)
                .map_err(|budget| RunErrorKind::SnapshotOverBudget { budget, needed })?;
        let memory = &self.memory;
        let beside = bookkeeping::sweep(steps, snapshots, arrays as u64);
        memory.ledger.charge_beside(beside, OP)?;
        // More states than there can be memory for are an error, not the end of the process.
        let most = usize::try_from(beside).unwrap_or(usize::MAX);
        if Vec::<u8>::new().try_reserve_exact(most).is_err() {
            return Err(RunErrorKind::TooLarge { op: OP, shape: [most].as_slice().into() });
        }
        let [arrays, bytes] = [snapshots as usize * arrays, snapshots as usize * arrays.min(1)];
        self.sweeps.push(Box::new(Running {
            schedule: schedule(steps, snapshots),
            keep,
            rounds,
            snapshots,
            state_bytes: each,
            left: steps,
            advanced: 0,
            largest: None,
            at: 0,
            until: 0,
            reversed: None,
            arrays: vec![Array::Empty; arrays],
            bytes: vec![0; bytes],
            all_bytes: 0,
            held: 0,
            largest_kept: 0,
            most_bytes: 0,
            beside,
            reals: scalars(snapshots, count(state, Kind::Real), R::zero(), memory)?,
            ints: scalars(snapshots, count(state, Kind::Int), 0, memory)?,
            bools: scalars(snapshots, count(state, Kind::Bool), false, memory)?,
        }));
        if steps == 0 {
            for place in state.iter().filter(|place| place.kind == Kind::Array) {
                self.arrays[frame.bases[3] + place.slot as usize] = Array::Empty;
            }
        }
        Ok(())
    }

    /// Where the program goes on.
    #[inline(never)]
    pub(super) fn sweep_next(
        &mut self,
        frame: &Frame,
        site: usize,
        observer: &mut dyn Observer,
    ) -> Result<usize, RunErrorKind> {
        let site = &self.functions[frame.function].sweeps[site];
        let counter = frame.bases[1] + site.counter as usize;
        let mut running = self.sweeps.pop().expect("a sweep that runs was started");
        if let Some(round) = running.reversed.take().filter(|_| observer.watches()) {
            observer.back(&self.round_back(frame, site, round, &running));
        }
        let next = loop {
            if let Some(largest) = running.largest {
                running.largest = Some(largest.max(self.state_bytes(frame, &site.state)));
            }
            if running.at < running.until {
                self.ints[counter] = running.at as i64;
                running.at += 1;
                running.advanced += 1;
                break site.advance;
            }
            if let Some(largest) = running.largest.take() {
                self.plan_again(frame, site, largest, &mut running)?;
            }
            match running.schedule.next() {
                None => {
                    if running.rounds == 0 && observer.watches() {
                        observer.back(&self.round_back(frame, site, 0, &running));
                    }
                    self.memory.ledger.credit_beside(running.beside);
                    return Ok(site.end as usize);
                }
                Some(Action::Advance { from, to }) => (running.at, running.until) = (from, to),
                Some(Action::Snapshot { slot, .. }) => {
                    if !self.snapshot(frame, site, slot.index as usize, &mut running) {
                        // States have become longer: with all but the first given up, how long?
                        self.restore(frame, site, 0, &running);
                        let first = count(&site.state, Kind::Array);
                        running.arrays[first..].fill(Array::Empty);
                        (running.at, running.until) = (0, running.left - 1);
                        running.largest = Some(0);
                    }
                }
                Some(Action::Restore { slot, .. }) => {
                    self.restore(frame, site, slot.index as usize, &running);
                }
                Some(Action::Free { slot }) => {
                    let slot = slot.index as usize;
                    if let Some(bytes) = running.bytes.get_mut(slot) {
                        running.held -= u64::from(*bytes > 0);
                        running.all_bytes -= core::mem::take(bytes);
                        let each = count(&site.state, Kind::Array);
                        running.arrays[slot * each..][..each].fill(Array::Empty);
                    }
                }
                // The round is run and reversed in one block.
                Some(Action::Record { .. }) => {}
                Some(Action::Reverse { step }) => {
                    running.left = step;
                    if step == running.rounds {
                        break site.turn.expect("only a turn is a step more than there are rounds");
                    }
                    self.ints[counter] = step as i64;
                    running.reversed = Some(step);
                    break site.back;
                }
            }
        };
        self.sweeps.push(running);
        Ok(next as usize)
    }

    /// Restores the first state, and starts again with as many snapshots as fit if each is as large as this.
    fn plan_again(
        &mut self,
        frame: &Frame,
        site: &SweepSite,
        largest: u64,
        running: &mut Running<R>,
    ) -> Result<(), RunErrorKind> {
        let Keep::Bytes(bytes) = running.keep else {
            unreachable!("only bytes are too few for longer states")
        };
        self.restore(frame, site, 0, running);
        (running.all_bytes, running.held, running.largest_kept, running.most_bytes) = (0, 0, 0, 0);
        let (state, memory) = (&site.state, &self.memory);
        let arrays = count(state, Kind::Array);
        let beside = snapshot(arrays as u64);
        let snapshots =
            snapshots_of_growing(bytes, running.state_bytes + beside, largest + beside).min(running.left);
        running.snapshots = snapshots;
        running.schedule = schedule(running.left, snapshots);
        (running.arrays, running.bytes) = (Vec::new(), Vec::new());
        (running.reals, running.ints, running.bools) = (None, None, None);
        memory.ledger.credit_beside(running.beside);
        running.beside = bookkeeping::sweep(running.left, snapshots, arrays as u64);
        memory.ledger.charge_beside(running.beside, OP)?;
        (running.arrays, running.bytes) =
            (vec![Array::Empty; snapshots as usize * arrays], vec![0; snapshots as usize]);
        running.reals = scalars(snapshots, count(state, Kind::Real), R::zero(), memory)?;
        running.ints = scalars(snapshots, count(state, Kind::Int), 0, memory)?;
        running.bools = scalars(snapshots, count(state, Kind::Bool), false, memory)?;
        Ok(())
    }

    /// Keeps the state; false, and nothing done, if all that are kept would be over the limit.
    fn snapshot(&self, frame: &Frame, site: &SweepSite, slot: usize, running: &mut Running<R>) -> bool {
        let arrays = count(&site.state, Kind::Array);
        if arrays > 0 {
            let (each, beside) = (self.state_bytes(frame, &site.state), snapshot(arrays as u64));
            running.held += u64::from(running.bytes[slot] == 0);
            running.all_bytes = running.all_bytes - running.bytes[slot] + each + beside;
            running.bytes[slot] = each + beside;
            if matches!(running.keep, Keep::Bytes(bytes) if running.all_bytes > bytes) {
                return false;
            }
            running.largest_kept = running.largest_kept.max(each);
            running.most_bytes = running.most_bytes.max(running.all_bytes - running.held * beside);
        } else {
            // States of numbers are alike, and have all their room from the start.
            running.largest_kept = running.state_bytes;
            running.most_bytes = running.snapshots.saturating_mul(running.state_bytes);
        }
        let [mut reals, mut ints, mut bools] =
            [Kind::Real, Kind::Int, Kind::Bool].map(|kind| slot * count(&site.state, kind));
        let mut at = slot * arrays;
        for place in &site.state {
            let from = frame.bases[place.kind as usize] + place.slot as usize;
            match place.kind {
                Kind::Real => put(&mut running.reals, &mut reals, self.reals[from]),
                Kind::Int => put(&mut running.ints, &mut ints, self.ints[from]),
                Kind::Bool => put(&mut running.bools, &mut bools, self.bools[from]),
                Kind::Array => {
                    running.arrays[at] = self.arrays[from].clone();
                    at += 1;
                }
            }
        }
        true
    }

    fn restore(&mut self, frame: &Frame, site: &SweepSite, slot: usize, running: &Running<R>) {
        let mut arrays = running.arrays[slot * count(&site.state, Kind::Array)..].iter();
        let [mut reals, mut ints, mut bools] =
            [Kind::Real, Kind::Int, Kind::Bool].map(|kind| slot * count(&site.state, kind));
        for place in &site.state {
            let to = frame.bases[place.kind as usize] + place.slot as usize;
            match place.kind {
                Kind::Real => self.reals[to] = taken(&running.reals, &mut reals),
                Kind::Int => self.ints[to] = taken(&running.ints, &mut ints),
                Kind::Bool => self.bools[to] = taken(&running.bools, &mut bools),
                Kind::Array => self.arrays[to] = arrays.next().expect("a snapshot has every array").clone(),
            }
        }
    }

    fn round_back(&self, frame: &Frame, site: &SweepSite, round: u64, running: &Running<R>) -> RoundBack {
        let one = |(place, name): &(Place, Option<Arc<str>>)| {
            let at = frame.bases[place.kind as usize] + place.slot as usize;
            let norm = match place.kind {
                Kind::Real => self.reals[at].to_f64().abs(),
                Kind::Int | Kind::Bool => 0.0,
                Kind::Array => match &self.arrays[at] {
                    Array::Real(store) => norm_of(store.chunks().flatten().map(|value| value.to_f64())),
                    Array::Int(_) | Array::Bool(_) | Array::Empty => 0.0,
                },
            };
            (name.clone(), norm)
        };
        RoundBack {
            span: site.span,
            round,
            rounds: running.rounds,
            snapshots: running.snapshots,
            state_bytes: running.state_bytes,
            largest_bytes: running.largest_kept,
            kept_bytes: running.most_bytes,
            advanced: running.advanced,
            turns: site.turn.is_some(),
            cotangents: site.cotangents.iter().map(one).collect(),
        }
    }
}

const KEPT: &str = "a snapshot has a place for every scalar";

fn put<T: Copy>(store: &mut Option<Store<T>>, at: &mut usize, value: T) {
    store.as_mut().expect(KEPT).data_mut()[*at] = value;
    *at += 1;
}

fn taken<T: Copy>(store: &Option<Store<T>>, at: &mut usize) -> T {
    *at += 1;
    store.as_ref().expect(KEPT).data()[*at - 1]
}
