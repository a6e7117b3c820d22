//! Gradients whose reverse sweep through loops is watched.
//!
//! Input: a program, its loops, and how much may be kept. Output: the value, and of each loop how its reverse
//! sweep went.
//!
//! Invariant: with a budget, no run takes more. Of several ways to keep snapshots the first one that stays
//! within it is shown; if there is none, the budget that the refusal names is enough for one, and works with
//! `palinode grad`, too.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use palinode_core::Budget;
use palinode_core::dense::norm_of;
use palinode_ir::interp::{Chosen, Code, Datum, Limits, RoundBack, RunErrorKind, Stats};
use palinode_ir::plan::{self, LoopWay, LoopWays, Within};
use palinode_ir::{Block, Function, Op, Program, Span};
use palinode_time::Health;

use crate::args::Mode;
use crate::execute::Cost;
use crate::explain;
use crate::gradient::{NoGradient, gradient};
use crate::model::Loaded;
use crate::problem::{Exit, Failed, Problem};

/// A loop of the model that no other loop is around.
pub(super) struct Outermost {
    pub(super) span: Span,
    pub(super) is_while: bool,
    /// The names of what it carries.
    carried: Vec<Arc<str>>,
}

/// What was seen of one in the reverse sweep.
pub(super) struct Seen {
    pub(super) rounds: u64,
    pub(super) snapshots: u64,
    /// The bytes of the first snapshot, of the largest, and the most of all that were kept at once.
    pub(super) state_bytes: u64,
    pub(super) largest_bytes: u64,
    kept_bytes: u64,
    /// How many rounds were run forwards from snapshots; if the sweep turns, for the value, too.
    advanced: u64,
    /// Whether the run for the value placed the first snapshots.
    pub(super) turns: bool,
    /// Snapshots got longer after some rounds had been reversed, so that fewer were kept from then on.
    pub(super) is_replanned: bool,
    pub(super) health: Health,
    /// How often it was reversed.
    pub(super) times: u64,
}

impl Seen {
    /// The bytes of all snapshots at once: they are set aside from the start, unless snapshots get longer.
    pub(super) fn bytes(&self) -> u64 {
        match self.largest_bytes > self.state_bytes {
            true => self.kept_bytes,
            false => self.snapshots.saturating_mul(self.state_bytes),
        }
    }

    /// How many rounds were run forwards in all: for the value, from snapshots, and before each round was
    /// reversed.
    pub(super) fn forward_rounds(&self) -> u64 {
        let apart = if self.turns { 0 } else { self.rounds };
        self.rounds.saturating_add(apart).saturating_add(self.advanced)
    }
}

/// A gradient whose reverse sweep was watched.
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
    pub(super) ways: LoopWays<'a>,
    pub(super) loops: &'a [Outermost],
}

/// The loops of the main function that no other loop is around; one of a function that is called several
/// times is listed once.
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
    /// Differentiates through the loops, within the budget if there is one, and keeps `snapshots` of each
    /// outermost loop if that is said. `refused` says which budgets do.
    pub(super) fn watch(
        &self,
        within: &Within,
        snapshots: Option<u64>,
        limits: &Limits,
        loaded: &Loaded,
        refused: &dyn Fn(Budget) -> Problem,
    ) -> Result<Watched, Failed> {
        let budget = within.budget();
        // An infinity in the reverse sweep is shown, not a reason to stop.
        let watching = Limits {
            trap_nonfinite: false,
            budget: budget.unwrap_or(limits.budget),
            steps: u64::MAX,
            ..*limits
        };
        for way in self.ways.ways(within, snapshots) {
            match self.go(way, &watching) {
                Err(NoGradient::Run(error)) if budget.is_some() && is_over_budget(&error.kind) => {}
                done => return done.map_err(|error| explain::gradient(error, loaded)),
            }
        }
        let budget = budget.expect("without a budget, the only way is the answer");
        if let Within::Planned { .. } = within {
            return Err(refused(budget).into());
        }
        // `grad` says best why nothing fits.
        gradient(self.ways.of, limits, Mode::Reverse, (self.ways.asked, within))
            .map_err(|error| explain::gradient(error, loaded))?;
        let message =
            format!("{budget} is enough for a log of every round, but not for snapshots of the loops");
        Err(Problem::new("PAL0412", Exit::Input, message)
            .help("use a larger budget, or none and --snapshots")
            .into())
    }

    fn go(&self, way: LoopWay, limits: &Limits) -> Result<Watched, NoGradient> {
        let has_logs = way.planned.is_some();
        let derived = match way.planned {
            Some(planned) => planned,
            None => plan::derived(&way.program, self.ways.of.wrt, &way.storage)?,
        };
        let (code, loops) = (Code::new(&derived), self.loops);
        drop(derived);
        let mut seen: BTreeMap<Span, Seen> = BTreeMap::new();
        let started = Instant::now();
        let (outputs, stats) = code
            .run_watched(self.ways.of.inputs, limits, &mut |round| {
                let Some(of) = loops.iter().find(|of| of.span == round.span) else { return };
                let entry = seen.entry(round.span).or_insert_with(|| Seen {
                    rounds: round.rounds,
                    snapshots: round.snapshots,
                    state_bytes: round.state_bytes,
                    largest_bytes: 0,
                    kept_bytes: 0,
                    advanced: 0,
                    turns: round.turns,
                    is_replanned: false,
                    health: Health::new(),
                    times: 0,
                });
                entry.times += u64::from(round.round + 1 >= round.rounds);
                if entry.times == 1 && round.rounds > 0 {
                    entry.is_replanned |= entry.snapshots != round.snapshots;
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
            by: Chosen::Interpreter,
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
