//! Ways to a gradient whose memory depends on data, and ways through loops that keep snapshots: from the
//! least work to the least memory, until one is within the budget.
//!
//! Of gradients, first those with the least work: loops keep a log, of less and less. Then a plan with the
//! rounds that a run of the values counts, which is for these very inputs: beside them a loop may take
//! another number of rounds. Where there is none, loops keep snapshots in a part of the budget. At last
//! forward mode, which keeps nothing, if it may take its time.

use std::rc::Rc;

use palinode_core::{Budget, points};

use crate::interp::{Code, Limits, RunError, RunErrorKind};
use crate::op::{Keep, Op};
use crate::passes;
use crate::plan::ahead::Within;
use crate::plan::asked::{Asked, REAL, Target, simplified};
use crate::plan::forward::Forward;
use crate::plan::{FittedGradient, narrow_kept, predict};
use crate::program::{Inst, Program};
use crate::transform::{self, Recompute, Rounds, Storage, TransformError, value_and_grad_stored};
use crate::types::Span;

/// Value and gradient in reverse mode, simplified.
///
/// # Errors
/// If the program has no gradient by these arguments.
pub fn derived(program: &Program, wrt: &[usize], storage: &Storage) -> Result<Program, TransformError> {
    Ok(narrow_kept(&passes::simplify(&value_and_grad_stored(program, wrt, storage)?), storage))
}

/// What loops kept.
#[derive(Clone, Debug)]
pub enum Kept {
    /// What was planned, or what was asked for.
    Planned,
    /// Snapshots, in so many bytes.
    Snapshots(usize),
    /// As planned when a run of the values had counted their rounds.
    Counted(Rc<FittedGradient>),
}

/// A way to a gradient.
pub enum Way {
    /// In reverse mode.
    Back {
        /// Value and gradient.
        code: Code,
        /// What loops compute again.
        storage: Storage,
        /// What they keep.
        kept: Kept,
    },
    /// None yet: the rounds of a run of the values are to be counted, for [`Ways::counted`].
    Count(Code),
    /// In forward mode.
    Forwards(Forward),
}

/// The parts of a budget that snapshots may take; what else there is takes the rest.
const PARTS: [usize; 4] = [2, 4, 16, 64];

/// The ways to a gradient within a budget.
pub struct Ways<'a> {
    asked: &'a Asked,
    of: Target<'a>,
    budget: Budget,
    next: Next,
}

#[derive(Clone, Copy, PartialEq)]
enum Next {
    Level(usize),
    Count,
    Part(usize),
    Forwards,
    Nothing,
}

impl<'a> Ways<'a> {
    /// All that may be tried.
    pub fn new(asked: &'a Asked, of: Target<'a>, budget: Budget) -> Ways<'a> {
        Ways { asked, of, budget, next: Next::Level(0) }
    }

    /// The next one.
    ///
    /// # Errors
    /// If there is no gradient.
    pub fn try_next(&mut self) -> Result<Option<Way>, TransformError> {
        let levels = self.asked.levels();
        let back = |program: &Program, level: Recompute, kept: Kept| {
            // Nobody knows whether snapshots fit beside what is between the two ways.
            let storage = Storage { two_runs: true, ..self.asked.storage(level) };
            let code = Code::on(&self.asked.engine, &derived(program, self.of.wrt, &storage)?);
            Ok(Some(Way::Back { code, storage, kept }))
        };
        match self.next {
            Next::Level(at) => {
                self.next = if at + 1 < levels.len() { Next::Level(at + 1) } else { Next::Count };
                back(self.of.program, levels[at], Kept::Planned)
            }
            Next::Count => {
                self.next = Next::Part(0);
                match counter(self.of.program) {
                    Some(code) => Ok(Some(Way::Count(code))),
                    None => self.try_next(),
                }
            }
            Next::Part(at) => {
                self.next = if at + 1 < PARTS.len() { Next::Part(at + 1) } else { Next::Forwards };
                let bytes = self.budget.bytes() / PARTS[at];
                let limit = |inst: &Inst| inst.op.keep().or(Some(Keep::Bytes(bytes as u64)));
                let limited = transform::keeping(self.of.program, &limit);
                back(&limited, levels[levels.len() - 1], Kept::Snapshots(bytes))
            }
            Next::Forwards if self.asked.may_go_forwards => {
                self.next = Next::Nothing;
                Ok(Some(Way::Forwards(Forward::new(self.of, &self.asked.engine)?)))
            }
            Next::Forwards | Next::Nothing => Ok(None),
        }
    }

    /// The way with these rounds, which is the last if there is one.
    pub fn counted(&mut self, rounds: Vec<Rounds>) -> Option<Way> {
        let fitted = self.asked.with_rounds(rounds).fit(self.of, self.budget).ok()?;
        self.next = Next::Nothing;
        let code = Code::on(&self.asked.engine, &fitted.program);
        let storage = self.asked.storage(fitted.recompute);
        Some(Way::Back { code, storage, kept: Kept::Counted(Rc::new(fitted)) })
    }

    /// Whether another way may do where this one, which keeps that, was stopped.
    pub fn goes_on(&self, kept: &Kept, error: &RunError) -> bool {
        match (kept, &error.kind) {
            (Kept::Counted(_), _) => false,
            (_, RunErrorKind::OverBudget { .. }) => true,
            // A part of the budget was too small for a snapshot, not the budget of a loop that the source
            // names.
            (Kept::Snapshots(_), RunErrorKind::SnapshotOverBudget { .. }) => {
                !has_own_budget(self.of.program, error.span)
            }
            _ => false,
        }
    }
}

/// Whether the source says what a loop may keep.
fn has_own_budget(program: &Program, of: Span) -> bool {
    program.count(|inst| inst.span == of && inst.op.keep().is_some()) > 0
}

/// The values, to count the rounds of their loops; nothing if loops of functions that are called decide.
pub fn counter(program: &Program) -> Option<Code> {
    let values = simplified(program);
    let mut is_called = false;
    for (at, function) in values.functions.iter().enumerate() {
        function.body.for_each_inst(&mut |inst| {
            is_called |= at != values.entry.index() && matches!(inst.op, Op::While { .. });
        });
    }
    (!is_called).then(|| Code::new(&values))
}

/// Limits of a run that counts rounds: what infinities mean is not for it to say.
pub fn to_count(limits: &Limits) -> Limits {
    Limits { trap_nonfinite: false, ..*limits }
}

/// To say which budget works, a run of the values may take so much more than a budget that is too small for
/// it.
const TO_SAY: usize = 64 << 20;

/// A budget that works with the rounds that a run of the values counts, if that can be said: not where a
/// comparison is a tie, which is looked at from both sides.
pub fn least_counted(asked: &Asked, of: Target<'_>, limits: &Limits) -> Option<u64> {
    let budget = if limits.budget.bytes() < TO_SAY { Budget::from(TO_SAY) } else { limits.budget };
    let limits = to_count(&Limits { budget, ..*limits });
    let code = counter(of.program)?;
    let (counted, is_suspicious) =
        points::suspicious(of.point(), || code.count_rounds(of.inputs, &limits).ok());
    let (rounds, stats) = counted?;
    if is_suspicious && asked.beside.sides > 0 {
        return None;
    }
    let least = asked.with_rounds(rounds).smallest(of).ok()?.prediction.heap;
    // What a check holds beside the values counts, too.
    Some(least.max((stats.heap_bytes as u64).saturating_add(asked.beside.check)))
}

/// How many snapshots of a loop are kept where nothing is said.
const SNAPSHOTS: u64 = 10;

/// A reverse sweep through loops that keep snapshots.
pub struct LoopWay {
    /// The program with what its loops keep.
    pub program: Program,
    /// What loops compute again.
    pub storage: Storage,
    /// Its gradient, if that is known already; its loops may keep logs.
    pub planned: Option<Program>,
}

/// The reverse sweeps through loops of which snapshots are kept, so that they can be watched.
pub struct LoopWays<'a> {
    /// What is asked.
    pub asked: &'a Asked,
    /// Of what.
    pub of: Target<'a>,
    /// The places of the loops.
    pub loops: &'a [Span],
}

impl LoopWays<'_> {
    fn is_watched(&self, inst: &Inst) -> bool {
        self.loops.contains(&inst.span)
    }

    fn way(&self, storage: Storage, limit: &dyn Fn(&Inst) -> Option<Keep>) -> LoopWay {
        LoopWay { program: transform::keeping(self.of.program, limit), storage, planned: None }
    }

    /// What loops compute again at most.
    fn most_again(&self) -> Storage {
        self.asked.storage(*self.asked.levels().last().expect("there is a level"))
    }

    /// The smallest budget in which one of the ways that are always tried keeps snapshots; none if nobody
    /// knows.
    pub fn least(&self) -> Option<u64> {
        let heap = |way: LoopWay| {
            let derived = derived(&way.program, self.of.wrt, &way.storage).ok()?;
            Some(predict(&derived, self.of.inputs, REAL).ok()?.heap)
        };
        self.small().into_iter().filter_map(heap).min()
    }

    /// What takes the least memory.
    fn least_storage(&self) -> Storage {
        Storage { two_runs: true, ..self.most_again() }
    }

    /// Ways that keep few snapshots, whatever the budget: of the watched loops, and then of all.
    fn small(&self) -> Vec<LoopWay> {
        let of_watched = |snapshots: u64| {
            let limit =
                |inst: &Inst| inst.op.keep().or(self.is_watched(inst).then_some(Keep::Snapshots(snapshots)));
            self.way(self.least_storage(), &limit)
        };
        let mut ways = [SNAPSHOTS, 3, 1].map(of_watched).into_iter().collect::<Vec<_>>();
        ways.push(self.way(self.least_storage(), &|inst| inst.op.keep().or(Some(Keep::Snapshots(1)))));
        ways
    }

    /// Ways to keep snapshots, from the least work to the least memory; `said` is how many, if that is said.
    pub fn ways(&self, within: &Within, said: Option<u64>) -> Vec<LoopWay> {
        let is_watched = |inst: &Inst| self.is_watched(inst);
        match within {
            Within::AnyMemory => {
                // What is said counts for more than the program.
                let said = said.map(Keep::Snapshots);
                let limit = |inst: &Inst| match is_watched(inst) {
                    true => said.or(inst.op.keep()).or(Some(Keep::Snapshots(SNAPSHOTS))),
                    false => inst.op.keep(),
                };
                vec![self.way(self.asked.storage.clone(), &limit)]
            }
            Within::Planned { fitted, .. } => {
                let planned = |inst: &Inst| {
                    let chosen = fitted.loops.iter().find(|one| one.span == inst.span);
                    inst.op.keep().or(chosen.map(|one| Keep::Snapshots(one.snapshots)))
                };
                let or_snapshots = |snapshots: u64| {
                    move |inst: &Inst| {
                        planned(inst).or(is_watched(inst).then_some(Keep::Snapshots(snapshots)))
                    }
                };
                let outer = |inst: &Inst| match is_watched(inst) {
                    true => or_snapshots(SNAPSHOTS)(inst),
                    false => inst.op.keep(),
                };
                let storage = || self.asked.storage(fitted.recompute);
                let mut ways = vec![self.way(self.asked.storage.clone(), &outer)];
                ways.extend([SNAPSHOTS, 3, 1].map(|n| self.way(storage(), &or_snapshots(n))));
                ways.extend(self.small());
                // What was planned does fit, but loops for which it has a log are not seen.
                if !fitted.loops.is_empty() {
                    let program = Some(fitted.program.clone());
                    ways.push(LoopWay { planned: program, ..self.way(storage(), &planned) });
                }
                ways
            }
            Within::Stopping { budget, .. } | Within::Forwards { budget, .. } => {
                let part = |part: usize| Some(Keep::Bytes((budget.bytes() / part) as u64));
                let outer = |inst: &Inst| inst.op.keep().or(part(2).filter(|_| is_watched(inst)));
                let mut ways = vec![self.way(self.asked.storage.clone(), &outer)];
                ways.extend(
                    PARTS.map(|size| self.way(self.least_storage(), &|inst| inst.op.keep().or(part(size)))),
                );
                ways
            }
        }
    }
}
