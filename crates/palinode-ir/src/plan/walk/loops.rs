//! Imagined loops: the rounds that have to be walked, and a jump over those that are like them.
//!
//! A `for` is walked for some rounds. If these are alike and must go on so (`steady.rs`), the walk jumps to
//! the last one. If they are not, and the walk is a bounding one, the loop forgets the number of its round:
//! from there on it is any number up to the last, so that what depends on it is bounded and the rounds are
//! alike. A loop of which only the most rounds are known is one in which every round may be left out: a
//! branch around each.

use std::collections::BTreeMap;

use super::{Stop, Walk, Walked};
use crate::interp::Event;
use crate::liveness::InstMarks;
use crate::op::FuncId;
use crate::plan::buffers::mixed;
use crate::plan::known::{Ints, Thing};
use crate::plan::{Copied, Growth, PlanError, join, steady};
use crate::program::{Block, Inst, Value};
use crate::types::Span;
use crate::work;

/// A loop of fewer rounds is walked as it is.
const FEW_ROUNDS: u64 = 8;
/// In so many rounds a loop shows whether its rounds are alike.
const TRIES: u64 = 8;
/// A loop of more rounds is not walked only to know an integer after it.
const FAR: u64 = 100_000;

/// How often a loop runs.
#[derive(Clone, Copy, Debug)]
struct Rounds {
    rounds: u64,
    /// Whether it may run less often.
    at_most: bool,
}

/// What had been counted before a round.
struct Counts {
    work: f64,
    allocations: u64,
    copies: BTreeMap<(FuncId, Value), Copied>,
}

impl<'p> Walk<'p> {
    /// How often a loop runs, which must be known.
    pub(super) fn rounds(&mut self, thing: Thing, span: Span) -> Walked<u64> {
        let known = thing.int().map(|n| u64::try_from(n).unwrap_or(0));
        match &mut self.events {
            None => {
                let what = "the number of rounds of a loop";
                Ok(known.ok_or(PlanError::DependsOnData { what, span })?)
            }
            Some(events) => match events.next() {
                Some(&Event::Rounds(n)) if known.is_none_or(|known| known == n) => Ok(n),
                _ => Err(PlanError::Diverged { span, what: "another number of rounds" }.into()),
            },
        }
    }

    /// How often a loop runs, or at most.
    fn rounds_or_bound(&mut self, thing: Thing, span: Span) -> Walked<Rounds> {
        match thing {
            Thing::UpTo(most) if self.events.is_none() => {
                self.exact = false;
                Ok(Rounds { rounds: u64::try_from(most).unwrap_or(0), at_most: true })
            }
            thing => Ok(Rounds { rounds: self.rounds(thing, span)?, at_most: false }),
        }
    }

    pub(super) fn for_loop(&mut self, inst: &'p Inst, marks: &InstMarks, descending: bool) -> Walked {
        let Rounds { rounds: n, at_most } = self.rounds_or_bound(self.get(inst.args[0]), inst.span)?;
        let body = &inst.blocks[0];
        let mut carried = self.fetch(&inst.args[1..], &marks.dies[1..]);
        let may_jump = self.events.is_none() && n >= FEW_ROUNDS;
        // From which round on their numbers are forgotten.
        let mut forgets_from = u64::MAX;
        let mut before: Option<steady::Round> = None;
        // The sizes of this loop's arrays are part of those of the round of a loop around it.
        let (outer, mut all) = (self.ledger().trace, n);
        let mut round = 0;
        while round < n {
            self.spend(1)?;
            if round == TRIES && may_jump && self.bounding && round + TRIES < n {
                (forgets_from, before) = (round, None);
                (self.exact, self.forgot) = (false, true);
            }
            let forgot = round >= forgets_from;
            let k = if descending { n - 1 - round } else { round };
            let most = if descending { n - 1 - forgets_from.min(n - 1) } else { n - 1 };
            let counter = if forgot { Thing::UpTo(most as i64) } else { Thing::Int(Some(k as i64)) };
            self.set(body.params[0], counter);
            let shapes = steady::measured(&carried, self.ledger());
            let tried = round - if forgot { forgets_from } else { 0 };
            let tries = may_jump && tried < TRIES;
            let before_round = Counts {
                work: self.ledger().work,
                allocations: self.ledger().allocations,
                copies: if tries { self.copies.clone() } else { BTreeMap::new() },
            };
            self.state.ledger.trace = 0;
            self.state.ledger.work += work::ROUND;
            self.round(body, marks, &mut carried, at_most)?;
            let this = steady::Round::new(&shapes, &carried, self.ledger());
            round += 1;
            let alike = tries && tried >= 2 && round < n - 1 && before.as_ref() == Some(&this);
            let courses = if alike { self.courses(body, &this, &carried, n, forgot) } else { None };
            all = mixed(all, self.ledger().trace);
            if let Some(courses) = courses {
                let registers = self.state.frames.last().expect("a function is running");
                let adds = |at: usize| {
                    // What comes from around the loop is the same in every round.
                    let around = body.captures();
                    let constant = |value: Value| {
                        around.contains(&value).then(|| registers[value.index()].int()).flatten()
                    };
                    steady::most_added(body, body.results[at], body.params[at + 1], &constant)
                };
                let ledger = &mut self.state.ledger;
                this.jump(n - 1 - round, &mut carried, &courses, &adds, ledger);
                self.note_growth(inst.span, n, this.growth(&carried, self.ledger()));
                self.stop_at_peak()?;
                self.count_again(before_round, n - 1 - round);
                round = n - 1;
                before = None;
            } else {
                before = Some(this);
            }
        }
        self.state.ledger.trace = mixed(outer, all);
        self.define(inst, &carried);
        Ok(())
    }

    /// One round of a `for`; one that may be left out leaves what either way leaves.
    fn round(
        &mut self,
        body: &'p Block,
        marks: &InstMarks,
        carried: &mut Vec<Thing>,
        may_be_left_out: bool,
    ) -> Walked {
        let params = &body.params[1..];
        for (&param, &thing) in params.iter().zip(&*carried) {
            self.set(param, thing);
        }
        let without = if may_be_left_out { Some(self.copied_state()?) } else { None };
        self.block(body, &marks.blocks[0])?;
        *carried = self.fetch(&body.results, &marks.blocks[0].results_die);
        if let Some(without) = without {
            for (&param, &thing) in params.iter().zip(&*carried) {
                self.set(param, thing);
            }
            self.state = join::joined(&without, &self.state);
            *carried = params.iter().map(|&param| self.get(param)).collect();
            params.iter().for_each(|&param| self.set(param, Thing::Unset));
            self.stop_at_peak()?;
        }
        Ok(())
    }

    /// How what a loop carries goes on after a round like the one before, if the text says that it does.
    fn courses(
        &self,
        body: &Block,
        this: &steady::Round,
        carried: &[Thing],
        n: u64,
        forgot: bool,
    ) -> Option<Vec<steady::Course>> {
        let constant = |value: Value| match self.get(value) {
            Thing::Array(id) => self.ledger().get(id).ints.as_ref().is_some_and(Ints::is_constant),
            Thing::Unset | Thing::Real | Thing::Int(_) | Thing::UpTo(_) => false,
        };
        let function = self.program.function(self.function);
        let courses = steady::courses(function, body, &this.changes, &constant, forgot)?;
        // Integers of which the last rounds say nothing are had by walking on, if that is not too far.
        let may_forget = n > FAR || self.bounding;
        (may_forget || !steady::forgets(carried, &courses, self.ledger())).then_some(courses)
    }

    /// Counts what a round cost so many times more.
    fn count_again(&mut self, before: Counts, rounds: u64) {
        let ledger = &mut self.state.ledger;
        ledger.work += (ledger.work - before.work) * rounds as f64;
        ledger.allocations += (ledger.allocations - before.allocations) * rounds;
        for (key, copied) in &mut self.copies {
            let (times, elements) = before.copies.get(key).map_or((0, 0), |old| (old.times, old.elements));
            copied.times += (copied.times - times) * rounds;
            copied.elements += (copied.elements - elements) * rounds;
        }
    }

    fn note_growth(&mut self, span: Span, rounds: u64, bytes: u64) {
        let entry = self.growth.entry(span).or_insert(Growth { span, rounds, bytes_per_round: bytes });
        entry.rounds = entry.rounds.max(rounds);
        entry.bytes_per_round = entry.bytes_per_round.max(bytes);
    }

    pub(super) fn while_loop(&mut self, inst: &'p Inst, marks: &InstMarks) -> Walked {
        let (head, body) = (&inst.blocks[0], &inst.blocks[1]);
        let mut carried = self.fetch(&inst.args, &marks.dies);
        loop {
            self.spend(1)?;
            self.state.ledger.work += work::ROUND;
            for (&param, &thing) in head.params.iter().zip(&carried) {
                self.set(param, thing);
            }
            self.block(head, &marks.blocks[0])?;
            let known = self.get(head.results[0]).int();
            // The body works on what the condition has looked at, and perhaps brought into one buffer.
            for (&param, thing) in head.params.iter().zip(&mut carried) {
                *thing = self.get(param);
                self.set(param, Thing::Unset);
            }
            let what = "the number of rounds of a loop";
            let problem = PlanError::DependsOnData { what, span: inst.span };
            if !self.decision(known, inst.span)?.ok_or(Stop::Problem(problem))? {
                break;
            }
            for (&param, &thing) in body.params.iter().zip(&carried) {
                self.set(param, thing);
            }
            self.block(body, &marks.blocks[1])?;
            carried = self.fetch(&body.results, &marks.blocks[1].results_die);
        }
        self.define(inst, &carried);
        Ok(())
    }
}
