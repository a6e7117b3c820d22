//! Loops that keep a few of their states, chosen so that a gradient fits into a budget.
//!
//! Input: a program, which loops keep how much, a budget. Output: a gradient in which the loops that keep
//! most keep states instead of logs, each as many as fit.
//!
//! Loops run for their values before their sweeps begin, so that what is between has all memory to itself. At
//! the end `fit` asks for the best of these once more, with sweeps that turn.
//!
//! Tried are the loop that keeps most, the two that keep most, and so on; for each of these first as few
//! states as are worth while ([`MOST_SWEEPS`]), then, loop by loop, as many as fit. Sweeps follow each other,
//! so that they do not compete; one inside another's round does, and gets what the outer one leaves.

use crate::interp::Datum;
use crate::op::{Keep, Op};
use crate::plan::effort::Effort;
use crate::plan::remat::rematerialize_within;
use crate::plan::{Fitted, Growth, Prediction, walked};
use crate::program::{Block, Inst, Program};
use crate::schedule::advances;
use crate::types::Span;

/// How many loops may keep states instead of logs.
const MOST_LOOPS: usize = 4;
/// No loop is run through more often than that, however small the budget.
const MOST_SWEEPS: u64 = 100;

/// A loop that keeps some of its states and computes the others again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotLoop {
    /// The loop.
    pub span: Span,
    /// How often it runs.
    pub rounds: u64,
    /// How many states it keeps at once.
    pub snapshots: u64,
    /// Whether the run for the values places the first of them; otherwise it is a run apart.
    pub turns: bool,
}

impl SnapshotLoop {
    /// How many rounds are run forwards in all: for the values, to get states back, and before each round is
    /// gone through backwards.
    pub fn forward_rounds(&self) -> u64 {
        if self.turns {
            return self.fewest_rounds();
        }
        self.rounds.saturating_mul(2).saturating_add(advances(self.rounds, self.snapshots))
    }

    /// The fewest rounds that any schedule of so many snapshots takes for the values and to reverse the loop:
    /// what is between the two ways is a step behind the last round.
    pub fn fewest_rounds(&self) -> u64 {
        self.rounds.saturating_add(advances(self.rounds.saturating_add(1), self.snapshots))
    }
}

/// A gradient with snapshots.
pub(super) struct Snapshotted {
    pub(super) program: Program,
    pub(super) prediction: Prediction,
    /// How many operations outside of loops are repeated.
    pub(super) repeated: usize,
    pub(super) loops: Vec<SnapshotLoop>,
}

/// The least number of states with which a loop is not run through too often.
fn fewest(rounds: u64) -> u64 {
    let mut snapshots = 1;
    while snapshots < rounds && advances(rounds, snapshots) > rounds.saturating_mul(MOST_SWEEPS) {
        snapshots += 1;
    }
    snapshots
}

/// Whether the sweep of a loop places its first snapshots in the run for the values, wherever there is one.
fn turns(program: &Program, span: Span) -> bool {
    let sweeps = |wanted: bool| {
        program
            .count(|inst| inst.span == span && matches!(inst.op, Op::Sweep { turns, .. } if turns == wanted))
    };
    sweeps(true) > 0 && sweeps(false) == 0
}

/// A search for gradients within `limit` bytes.
pub(super) struct Search<'a, R> {
    pub(super) inputs: &'a [Datum<R>],
    pub(super) real_bytes: usize,
    pub(super) limit: u64,
    pub(super) effort: &'a Effort,
}

impl<R> Search<'_, R> {
    /// What it finds: gradients that fit, and others as small as they can be. `gradient` differentiates and
    /// simplifies a program; `growth` are the loops that keep something.
    ///
    /// # Errors
    /// Those of `gradient`.
    pub(super) fn run<E>(
        &self,
        program: &Program,
        growth: &[Growth],
        gradient: &dyn Fn(&Program) -> Result<Program, E>,
    ) -> Result<Vec<Snapshotted>, E> {
        let mut loops: Vec<&Growth> = growth.iter().filter(|growth| growth.rounds > 1).collect();
        loops.sort_by_key(|growth| core::cmp::Reverse(growth.rounds.saturating_mul(growth.bytes_per_round)));
        let mut found = Vec::new();
        for count in 1..=loops.len().min(MOST_LOOPS) {
            if self.effort.is_over() {
                break;
            }
            let chosen = loops[..count].iter().map(|growth| (growth.span, growth.rounds)).collect();
            found.extend(self.with_snapshots(program, chosen, gradient)?);
        }
        Ok(found)
    }

    /// The gradient in which these loops, with so many rounds, keep states; nothing if there is no plan of
    /// it.
    ///
    /// # Errors
    /// Those of `gradient`.
    pub(super) fn with_snapshots<E>(
        &self,
        program: &Program,
        loops: Vec<(Span, u64)>,
        gradient: &dyn Fn(&Program) -> Result<Program, E>,
    ) -> Result<Option<Snapshotted>, E> {
        let one = |(span, rounds)| SnapshotLoop { span, rounds, snapshots: fewest(rounds), turns: false };
        let mut chosen: Vec<SnapshotLoop> = loops.into_iter().map(one).collect();
        let marked = crate::transform::keeping(program, &|inst| {
            // What the source says stays.
            inst.op.keep().or_else(|| snapshots_of(&chosen, inst).map(Keep::Snapshots))
        });
        let made = gradient(&marked)?;
        // A plan that cannot be made (states that get longer, for too many rounds) is no reason to give up
        // the others.
        let fitted = rematerialize_within(&made, self.inputs, self.real_bytes, self.limit, self.effort);
        let Ok(Fitted { program: mut made, mut prediction, repeated, .. }) = fitted else { return Ok(None) };
        if prediction.heap <= self.limit {
            for at in 0..chosen.len() {
                prediction = self.most_snapshots(&mut made, &mut chosen, at, prediction);
            }
            set_snapshots(&mut made, &chosen);
        }
        for one in &mut chosen {
            one.turns = turns(&made, one.span);
        }
        Ok(Some(Snapshotted { program: made, prediction, repeated, loops: chosen }))
    }

    /// Gives a loop as many states as fit. The peak rises with their number, mostly by the same for each:
    /// that is where the next guess comes from.
    fn most_snapshots(
        &self,
        made: &mut Program,
        chosen: &mut [SnapshotLoop],
        at: usize,
        mut fits: Prediction,
    ) -> Prediction {
        let (mut low, mut high) = (chosen[at].snapshots, chosen[at].rounds + 1);
        let span = chosen[at].span;
        // The peak where it did not fit.
        let mut above: Option<u64> = None;
        let mut guesses = 0;
        while low + 1 < high && !self.effort.is_over() {
            let free = self.limit - fits.heap;
            let each = match above {
                Some(above) => (above.saturating_sub(fits.heap) / (high - low)).max(1),
                None => fits
                    .snapshots
                    .iter()
                    .find(|kept| kept.span == span)
                    .map_or(1, |kept| (kept.bytes() / kept.count.max(1)).max(1)),
            };
            // Where guesses do not get on, halves do.
            guesses += 1;
            let guess =
                if guesses % 3 == 0 { low + (high - low) / 2 } else { low.saturating_add(free / each) };
            let guess = guess.clamp(low + 1, high - 1);
            chosen[at].snapshots = guess;
            set_snapshots(made, chosen);
            match walked(made, self.inputs, self.real_bytes, None, self.effort) {
                Ok((_, tried)) if tried.heap <= self.limit => (low, fits) = (guess, tried),
                Ok((_, tried)) => (high, above) = (guess, Some(tried.heap)),
                Err(_) => (high, above) = (guess, None),
            }
        }
        chosen[at].snapshots = low;
        fits
    }
}

fn snapshots_of(chosen: &[SnapshotLoop], inst: &Inst) -> Option<u64> {
    chosen.iter().find(|one| one.span == inst.span).map(|one| one.snapshots)
}

/// Changes how many states the sweeps of these loops keep.
fn set_snapshots(program: &mut Program, chosen: &[SnapshotLoop]) {
    fn set(block: &mut Block, chosen: &[SnapshotLoop]) {
        for inst in &mut block.insts {
            let snapshots = snapshots_of(chosen, inst);
            if let (Op::Sweep { keep: Keep::Snapshots(now), .. }, Some(snapshots)) = (&mut inst.op, snapshots)
            {
                *now = snapshots;
            }
            inst.blocks.iter_mut().for_each(|block| set(block, chosen));
        }
    }
    for function in &mut program.functions {
        set(&mut function.body, chosen);
    }
}
