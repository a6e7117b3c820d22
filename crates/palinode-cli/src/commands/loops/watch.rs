//! Gradients whose way back through loops is looked at.
//!
//! Input: a program, its loops, and how much may be kept. Output: the value, and of each loop how its way back went.
//!
//! Invariant: with a budget, no run takes more. Of several ways to keep states the first one that stays within it is shown; if there is none, the budget that the refusal names has room for one, and works
//! with `palinode grad`, too.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use palinode_core::Budget;
use palinode_core::dense::norm_of;
use palinode_ir::interp::{Code, Datum, Limits, RoundBack, RunErrorKind, Stats};
use palinode_ir::transform::{Recompute, Storage, TransformError};
use palinode_ir::{Block, Function, Inst, Op, Program, Room, Span, passes, plan, transform};
use palinode_time::Health;

use crate::ahead::Within;
use crate::args::Mode;
use crate::commands::grad::no_gradient;
use crate::execute::Cost;
use crate::gradient::{NoGradient, gradient};
use crate::model::Loaded;
use crate::problem::{Exit, Failed, Problem};
use crate::storage::{Asked, REAL};

/// States to keep where nothing is said.
const STATES: u64 = 10;

/// A loop of the model that no other loop is around.
pub(super) struct Outermost {
    pub(super) span: Span,
    pub(super) is_while: bool,
    /// The names of what it carries.
    carried: Vec<Arc<str>>,
}

/// What was seen of one on the way back.
pub(super) struct Seen {
    pub(super) rounds: u64,
    pub(super) slots: u64,
    /// The bytes of the first state, of the largest that was kept, and the most of all that were kept at once.
    pub(super) state_bytes: u64,
    pub(super) largest_bytes: u64,
    kept_bytes: u64,
    /// How many rounds were run forwards to get states back.
    advanced: u64,
    /// States got longer after some rounds had been gone back through, so that fewer were kept from then on.
    pub(super) is_replanned: bool,
    pub(super) health: Health,
    /// How often its way back was gone.
    pub(super) times: u64,
}

impl Seen {
    /// What the states take that are kept at once: there is room for all from the start, unless they get longer.
    pub(super) fn bytes(&self) -> u64 {
        match self.largest_bytes > self.state_bytes {
            true => self.kept_bytes,
            false => self.slots.saturating_mul(self.state_bytes),
        }
    }

    /// How many rounds were run forwards in all: for the value, to get states back, and before each round was gone through backwards.
    pub(super) fn forward_rounds(&self) -> u64 {
        self.rounds.saturating_mul(2).saturating_add(self.advanced)
    }
}

/// A gradient whose way back was looked at.
pub(super) struct Watched {
    pub(super) value: f64,
    /// Whether the gradient is.
    pub(super) is_finite: bool,
    pub(super) cost: Cost,
    pub(super) stats: Stats,
    /// By the place of the loop.
    pub(super) seen: BTreeMap<Span, Seen>,
    /// The model with what its loops keep.
    pub(super) program: Program,
    /// Whether loops may have kept a log of every round, which is not seen.
    pub(super) has_logs: bool,
}

/// What is to be looked at.
pub(super) struct Looked<'a> {
    pub(super) program: &'a Program,
    pub(super) wrt: &'a [usize],
    pub(super) inputs: &'a [Datum<f64>],
    pub(super) asked: &'a Asked,
    pub(super) loops: &'a [Outermost],
}

/// A way to go back.
struct Way {
    /// The model with what its loops keep.
    program: Program,
    storage: Storage,
    /// Its gradient, if that is known already; it may keep logs.
    derived: Option<Program>,
}

/// The loops of the main function that no other loop is around; one of a function that is called several times is listed once.
pub(super) fn outermost(program: &Program) -> Vec<Outermost> {
    let mut found = Vec::new();
    find_outermost(program.main(), &program.main().body, &mut found);
    found
}

fn find_outermost(function: &Function, block: &Block, found: &mut Vec<Outermost>) {
    for inst in &block.insts {
        if inst.op.repeats() {
            let is_while = matches!(inst.op, Op::While { .. });
            let params = &inst.blocks[0].params[usize::from(!is_while)..];
            let carried = params.iter().filter_map(|&param| function.name_of(param).cloned()).collect();
            if !found.iter().any(|of: &Outermost| of.span == inst.span) {
                found.push(Outermost { span: inst.span, is_while, carried });
            }
        } else {
            inst.blocks.iter().for_each(|inner| find_outermost(function, inner, found));
        }
    }
}

impl Looked<'_> {
    /// The smallest budget in which one of the ways that are always tried keeps states; none if nobody knows.
    pub(super) fn least(&self) -> Option<u64> {
        let heap = |way: Way| Some(plan::predict(&self.derived(&way).ok()?, self.inputs, REAL).ok()?.heap);
        self.small_ways().into_iter().filter_map(heap).min()
    }

    /// Goes back through the loops, within the budget if there is one, and keeps `states` of each outermost loop if that is said. `refused` says which budgets do.
    pub(super) fn watch(
        &self,
        within: &Within,
        states: Option<u64>,
        limits: &Limits,
        loaded: &Loaded,
        refused: &dyn Fn(Budget) -> Problem,
    ) -> Result<Watched, Failed> {
        let budget = match within {
            Within::AnyMemory => None,
            Within::Planned { budget, .. }
            | Within::Stopping { budget, .. }
            | Within::Forwards { budget, .. } => Some(*budget),
        };
        // An infinity on the way back is shown, not a reason to stop.
        let watching = Limits {
            trap_nonfinite: false,
            budget: budget.unwrap_or(limits.budget),
            steps: u64::MAX,
            ..*limits
        };
        for way in self.ways(within, states) {
            match self.go(way, &watching) {
                Err(NoGradient::Run(error)) if budget.is_some() && is_over_budget(&error.kind) => {}
                done => return done.map_err(|error| no_gradient(error, loaded)),
            }
        }
        let budget = budget.expect("without a budget, the only way is the answer");
        if let Within::Planned { .. } = within {
            return Err(refused(budget).into());
        }
        // `grad` says best why nothing fits.
        gradient(self.program, self.wrt, self.inputs, limits, Mode::Reverse, (self.asked, within))
            .map_err(|error| no_gradient(error, loaded))?;
        let message = format!("{budget} is enough for a log of every round, but not for states of the loops");
        Err(Problem::new("PAL0412", Exit::Input, message)
            .help("give a larger budget, or none, and choose how many states are kept with --states")
            .into())
    }

    fn is_outermost(&self, inst: &Inst) -> bool {
        self.loops.iter().any(|of| of.span == inst.span)
    }

    fn storage(&self, recompute: Recompute) -> Storage {
        Storage { recompute, ..self.asked.storage.clone() }
    }

    /// What loops compute again at most.
    fn most_again(&self) -> Storage {
        self.storage(*self.asked.levels().last().expect("there is a level"))
    }

    fn way(&self, storage: Storage, room: &dyn Fn(&Inst) -> Option<Room>) -> Way {
        Way { program: transform::with_room(self.program, room), storage, derived: None }
    }

    /// Ways that keep few states, whatever the budget: of the outermost loops, and then of all.
    fn small_ways(&self) -> Vec<Way> {
        let states = |inst: &Inst, states| inst.op.room().or(Some(Room::Slots(states)));
        let mut ways: Vec<Way> = [STATES, 3, 1]
            .into_iter()
            .map(|slots| {
                let of_outermost = |inst: &Inst| match self.is_outermost(inst) {
                    true => states(inst, slots),
                    false => inst.op.room(),
                };
                self.way(self.most_again(), &of_outermost)
            })
            .collect();
        ways.push(self.way(self.most_again(), &|inst| states(inst, 1)));
        ways
    }

    /// Ways to keep states, from the least work to the least memory.
    fn ways(&self, within: &Within, states: Option<u64>) -> Vec<Way> {
        let is_outermost = |inst: &Inst| self.is_outermost(inst);
        match within {
            Within::AnyMemory => {
                // The command line counts for more than the model.
                let said = states.map(Room::Slots);
                let room = |inst: &Inst| match is_outermost(inst) {
                    true => said.or(inst.op.room()).or(Some(Room::Slots(STATES))),
                    false => inst.op.room(),
                };
                vec![self.way(self.asked.storage.clone(), &room)]
            }
            Within::Planned { fitted, .. } => {
                let planned = |inst: &Inst| {
                    let chosen = fitted.checkpoints.iter().find(|checkpoint| checkpoint.span == inst.span);
                    inst.op.room().or(chosen.map(|checkpoint| Room::Slots(checkpoint.slots)))
                };
                let or_states = |states: u64| {
                    move |inst: &Inst| planned(inst).or(is_outermost(inst).then_some(Room::Slots(states)))
                };
                let outer = |inst: &Inst| match is_outermost(inst) {
                    true => or_states(STATES)(inst),
                    false => inst.op.room(),
                };
                let mut ways = vec![self.way(self.asked.storage.clone(), &outer)];
                for states in [STATES, 3, 1] {
                    ways.push(self.way(self.storage(fitted.recompute), &or_states(states)));
                }
                ways.extend(self.small_ways());
                // What was planned does fit, but loops for which it has a log are not seen.
                if !fitted.checkpoints.is_empty() {
                    let derived = Some(fitted.program.clone());
                    ways.push(Way { derived, ..self.way(self.storage(fitted.recompute), &planned) });
                }
                ways
            }
            Within::Stopping { budget, .. } | Within::Forwards { budget, .. } => {
                let part = |part: usize| Some(Room::Bytes((budget.bytes() / part) as u64));
                let outer = |inst: &Inst| inst.op.room().or(part(2).filter(|_| is_outermost(inst)));
                let mut ways = vec![self.way(self.asked.storage.clone(), &outer)];
                for size in [2, 4, 16, 64] {
                    ways.push(self.way(self.most_again(), &|inst| inst.op.room().or(part(size))));
                }
                ways
            }
        }
    }

    /// The gradient of a way for which it is not known already.
    fn derived(&self, way: &Way) -> Result<Program, TransformError> {
        let derived = transform::value_and_grad_stored(&way.program, self.wrt, &way.storage)?;
        Ok(plan::narrow_kept(&passes::simplify(&derived), &way.storage))
    }

    fn go(&self, way: Way, limits: &Limits) -> Result<Watched, NoGradient> {
        let has_logs = way.derived.is_some();
        let derived = match &way.derived {
            Some(derived) => derived.clone(),
            None => self.derived(&way)?,
        };
        let (code, loops) = (Code::new(&derived), self.loops);
        drop(derived);
        let mut seen: BTreeMap<Span, Seen> = BTreeMap::new();
        let started = Instant::now();
        let (outputs, stats) = code
            .run_watched(self.inputs, limits, &mut |round| {
                let Some(of) = loops.iter().find(|of| of.span == round.span) else { return };
                let entry = seen.entry(round.span).or_insert_with(|| Seen {
                    rounds: round.rounds,
                    slots: round.slots,
                    state_bytes: round.state_bytes,
                    largest_bytes: 0,
                    kept_bytes: 0,
                    advanced: 0,
                    is_replanned: false,
                    health: Health::new(),
                    times: 0,
                });
                entry.times += u64::from(round.round + 1 >= round.rounds);
                if entry.times == 1 && round.rounds > 0 {
                    entry.is_replanned |= entry.slots != round.slots;
                    entry.largest_bytes = round.largest_bytes;
                    entry.kept_bytes = entry.kept_bytes.max(round.kept_bytes);
                    entry.advanced = round.advanced;
                    entry.health.see(round.round, 1, norm(round, of));
                }
            })
            .map_err(NoGradient::Run)?;
        let cost = Cost {
            steps: stats.steps,
            seconds: started.elapsed().as_secs_f64(),
            peak: 0,
            arrays: stats.peak_bytes,
            held: 0,
            charged: stats.heap_bytes,
        };
        let value = outputs[0].as_real().expect("the objective is a real number");
        let gradient = outputs[1..].iter().filter_map(Datum::as_vector).flatten();
        let is_finite = gradient.into_iter().all(|x| x.is_finite());
        Ok(Watched { is_finite, value, cost, stats, seen, program: way.program, has_logs })
    }
}

fn is_over_budget(kind: &RunErrorKind) -> bool {
    matches!(kind, RunErrorKind::OverBudget { .. } | RunErrorKind::SnapshotOverBudget { .. })
}

/// The size of the cotangent of what the loop carries; what it adds up for captured values does not count.
fn norm(round: &RoundBack, of: &Outermost) -> f64 {
    let is_carried = |name: &Option<Arc<str>>| {
        name.as_ref()
            .and_then(|name| name.strip_prefix('d'))
            .is_some_and(|name| of.carried.iter().any(|own| **own == *name))
    };
    let of_state = || round.cotangents.iter().filter(|(name, _)| is_carried(name));
    match of_state().next() {
        Some(_) => norm_of(of_state().map(|(_, norm)| *norm)),
        None => norm_of(round.cotangents.iter().map(|(_, norm)| *norm)),
    }
}
