//! A gradient within a budget whose memory depends on data: ways that take less and less, until one ends before it is stopped.
//!
//! First those with the least work: loops keep a log, of less and less. Then a plan with the rounds that a run of the values counts (`measured.rs`); where there is none, loops keep states in
//! a part of the budget. At last forward mode, which keeps nothing, if it may take its time.

use std::rc::Rc;

use palinode_ir::interp::{Code, Datum, Limits, RunErrorKind};
use palinode_ir::transform::{self, Recompute};
use palinode_ir::{Program, Room, Span};

use crate::execute::between_runs;
use crate::gradient::{Forward, Gradient, Kept, NoGradient, by_reverse, derived};
use crate::measured;
use crate::storage::Asked;

/// A gradient that is to be had.
pub(crate) struct Stopping<'a> {
    pub(crate) asked: &'a Asked,
    pub(crate) program: &'a Program,
    pub(crate) wrt: &'a [usize],
    pub(crate) inputs: &'a [Datum<f64>],
    /// With the budget.
    pub(crate) limits: &'a Limits,
}

impl Stopping<'_> {
    pub(crate) fn run(&self) -> Result<Gradient, NoGradient> {
        let &Stopping { asked, program, wrt, inputs, limits } = self;
        let levels = asked.levels();
        let mut refused = None;
        for &level in levels {
            match self.with(program, level, Kept::Planned) {
                Err(error) if error.is_over_budget() => refused = Some(error),
                done => return done,
            }
        }
        let refused = refused.expect("there is a level");
        if let Some(fitted) = measured::fit(asked, (program, wrt, inputs), limits) {
            let code = between_runs(|| Code::new(&fitted.program));
            let found = by_reverse(&code, inputs, limits, asked.storage(fitted.recompute))?;
            return Ok(Gradient { kept: Kept::Counted(Rc::new(fitted)), ..found });
        }
        let least = *levels.last().expect("there is a level");
        // What else there is takes the rest.
        for part in [2, 4, 16, 64] {
            let bytes = limits.budget.bytes() / part;
            match self.with(&limited(program, bytes), least, Kept::States(bytes)) {
                Err(error) if error.is_over_budget() || self.has_no_room_for_a_state(&error) => {}
                done => return done,
            }
        }
        if asked.may_go_forwards {
            let forward = between_runs(|| Forward::new(program, wrt, inputs))?;
            match forward.run(inputs, wrt, &forward.within(limits.budget, limits)) {
                Err(error) if error.is_over_budget() => {}
                done => return done,
            }
        }
        Err(refused)
    }

    fn with(&self, program: &Program, level: Recompute, kept: Kept) -> Result<Gradient, NoGradient> {
        let storage = self.asked.storage(level);
        let code = between_runs(|| derived(program, self.wrt, &storage))?;
        let found = by_reverse(&code, self.inputs, self.limits, storage)?;
        Ok(Gradient { kept, ..found })
    }

    /// Whether a part of the budget, not the budget of a loop that the source names, was too small for a state.
    fn has_no_room_for_a_state(&self, error: &NoGradient) -> bool {
        matches!(error, NoGradient::Run(error)
            if matches!(error.kind, RunErrorKind::SnapshotOverBudget { .. }) && !has_own_budget(self.program, error.span))
    }
}

/// Whether the source says what a loop may keep.
fn has_own_budget(program: &Program, of: Span) -> bool {
    let mut found = false;
    for function in &program.functions {
        function.body.for_each_inst(&mut |inst| found |= inst.span == of && inst.op.room().is_some());
    }
    found
}

/// The same program, whose loops keep states in so many bytes unless the source says otherwise.
fn limited(program: &Program, bytes: usize) -> Program {
    transform::with_room(program, &|inst| inst.op.room().or(Some(Room::Bytes(bytes as u64))))
}
