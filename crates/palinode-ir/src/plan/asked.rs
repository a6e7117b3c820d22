//! What is asked of a gradient's memory, and the programs that give it: everything that a plan is made from.

use palinode_core::{Budget, points};

use crate::interp::{Datum, Engine};
use crate::op::{Linalg, Op};
use crate::passes;
use crate::plan::fit::Searched;
use crate::plan::{FitError, FittedGradient, rematerialize};
use crate::program::Program;
use crate::transform::{Choice, Recompute, Rounds, Storage};

/// The bytes of a number that is computed with.
pub(super) const REAL: usize = size_of::<f64>();

/// The gradient of the only result of a program, by the arguments at `wrt`.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The program.
    pub program: &'a Program,
    /// The positions of the arguments.
    pub wrt: &'a [usize],
    /// All arguments.
    pub inputs: &'a [Datum<f64>],
}

impl Target<'_> {
    /// The numbers to differentiate by.
    pub fn point(&self) -> impl Iterator<Item = f64> {
        self.wrt.iter().filter_map(|&at| self.inputs[at].as_vector()).flatten().copied()
    }

    /// How many numbers these are.
    pub fn numbers(&self) -> usize {
        self.wrt.iter().map(|&at| self.inputs[at].elements()).sum()
    }

    /// What a look at both sides of a tie keeps, should a comparison be one; nothing if none can be.
    pub fn bytes_of_sides(&self) -> u64 {
        let mut may_tie = false;
        for function in &self.program.functions {
            function.body.for_each_inst(&mut |inst| {
                let compares = matches!(inst.op, Op::Compare(_)) && function.ty(inst.args[0]).is_real();
                may_tie |= compares || matches!(inst.op, Op::Linalg(Linalg::SymmetricEigen | Linalg::Svd));
            });
        }
        if !may_tie {
            return 0;
        }
        let point: Vec<f64> = self.point().collect();
        points::kept_bytes(&point, 1) as u64
    }
}

/// What is asked of a gradient's memory.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// How many bytes it may take.
    pub budget: Option<Budget>,
    /// What is kept, and how.
    pub storage: Storage,
    /// Whether loops compute again what `storage` says, and nothing else; otherwise a budget decides it.
    pub is_fixed: bool,
    /// Whether forward mode may be taken where reverse mode takes more than the budget.
    pub may_go_forwards: bool,
    /// What else the budget is for.
    pub beside: Beside,
    /// Who runs the programs.
    pub engine: Engine,
}

/// Bytes that are there while something else is computed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside {
    /// Beside values and gradient, should a comparison be a tie: what a look at both sides keeps.
    pub sides: u64,
    /// Beside values: what a check by differences holds, the gradient among it.
    pub check: u64,
}

impl Asked {
    /// Whether anything is asked that concerns only the reverse sweep.
    pub fn is_about_reverse(&self) -> bool {
        self.budget.is_some() || self.is_fixed || !self.storage.choices.is_empty()
    }

    /// Whether all that is asked is a budget: how it is kept is free.
    pub fn is_budget_alone(&self) -> bool {
        self.budget.is_some() && !self.is_fixed && self.storage.choices.is_empty()
    }

    /// Whether some arrays are kept in fewer bits, so that the gradient is rounded.
    pub fn is_rounded(&self) -> bool {
        self.storage.choices.values().any(|choice| matches!(choice, Choice::Narrow(_)))
    }

    /// The same, but kept exactly; with a budget beside so many bytes that are there already.
    #[must_use]
    pub fn exact(&self, beside: u64) -> Asked {
        let mut storage = self.storage.clone();
        storage.choices.retain(|_, choice| !matches!(choice, Choice::Narrow(_)));
        let less = |budget: Budget| match budget.is_unlimited() {
            true => budget,
            false => Budget::from(budget.bytes().saturating_sub(beside as usize)),
        };
        let is_fixed = self.is_fixed || self.budget.is_none();
        let (budget, engine) = (self.budget.map(less), self.engine.clone());
        Asked { budget, storage, is_fixed, engine, ..Asked::default() }
    }

    /// The same, for inputs with which loops go round so often.
    #[must_use]
    pub fn with_rounds(&self, rounds: Vec<Rounds>) -> Asked {
        let mut asked = self.clone();
        asked.storage.rounds = rounds;
        asked
    }

    /// What is kept where loops compute so much again.
    pub fn storage(&self, recompute: Recompute) -> Storage {
        Storage { recompute, ..self.storage.clone() }
    }

    /// What loops may compute again, from least to most.
    pub fn levels(&self) -> &[Recompute] {
        if self.is_fixed { core::slice::from_ref(&self.storage.recompute) } else { &Recompute::ALL }
    }

    fn search<'a>(&'a self, of: Target<'a>) -> Searched<'a, f64> {
        let (storage, is_stored) = (&self.storage, self.is_fixed);
        let Target { program, wrt, inputs } = of;
        Searched { program, wrt, inputs, real_bytes: REAL, storage, is_stored }
    }

    /// Value and gradient with the least memory: `prediction.heap` bytes are the smallest budget.
    ///
    /// # Errors
    /// If there is no gradient, or if its memory depends on data.
    pub fn smallest(&self, of: Target<'_>) -> Result<FittedGradient, FitError> {
        self.search(of).search(0)
    }

    /// Value and gradient within a budget.
    ///
    /// # Errors
    /// As [`fit_gradient`](crate::plan::fit_gradient).
    pub fn fit(&self, of: Target<'_>, budget: Budget) -> Result<FittedGradient, FitError> {
        self.search(of).within(budget)
    }
}

/// A program as it is run for its values: small functions do not cost a call. Whoever runs values runs them
/// so, so that all count the same steps.
pub fn simplified(program: &Program) -> Program {
    passes::simplify(&passes::inline(program))
}

/// A program of values within a budget.
#[derive(Clone, Debug)]
pub struct Values {
    /// The program.
    pub program: Program,
    /// What it takes, if that is known.
    pub heap: Option<u64>,
}

/// The values of a program with at most so many bytes, if memory is known beforehand and that is possible;
/// otherwise with as few as possible, or, where memory depends on data, as they are: such a run is stopped in
/// time.
pub fn values(program: &Program, inputs: &[Datum<f64>], bytes: u64) -> Values {
    let program = simplified(program);
    match rematerialize(&program, inputs, REAL, bytes) {
        Ok(fitted) => Values { program: fitted.program, heap: Some(fitted.prediction.heap) },
        Err(_) => Values { program, heap: None },
    }
}

/// What is left of a budget beside so many bytes.
pub fn less(budget: Budget, bytes: u64) -> Budget {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    budget.checked_sub(bytes).unwrap_or(Budget::from(0))
}
