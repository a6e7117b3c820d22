//! A gradient in forward mode, number by number: it keeps nothing for the reverse sweep.

use palinode_core::Budget;

use crate::interp::{Code, Datum, Engine, Limits};
use crate::passes;
use crate::plan::asked::{REAL, Target, less};
use crate::plan::predict;
use crate::program::Program;
use crate::transform::{TransformError, jvp};

/// A gradient in forward mode, made ready.
pub struct Forward {
    /// Values and tangents, of the inputs and then of tangents for those that are differentiated by.
    pub code: Code,
    /// What is there beside each run: the inputs again, with tangents, and the gradient.
    pub held: u64,
}

impl Forward {
    /// The bytes of what describes an array of data: its place in a list, its lengths, and what the allocator
    /// rounds up.
    const DESCRIBED: usize = 128;

    /// Makes it ready.
    ///
    /// # Errors
    /// If the program has no derivative by these arguments.
    pub fn new(of: Target<'_>, engine: &Engine) -> Result<Forward, TransformError> {
        Ok(Forward::of(&derived(of)?, of, engine))
    }

    /// The same, and the bytes for all of it, if that is known beforehand.
    pub fn planned(of: Target<'_>, engine: &Engine) -> Option<(Forward, u64)> {
        let derived = derived(of).ok()?;
        let forward = Forward::of(&derived, of, engine);
        let found = predict(&derived, &Self::with_tangents(of), REAL).ok()?;
        let bytes = found.heap.saturating_add(forward.held);
        Some((forward, bytes))
    }

    fn of(derived: &Program, of: Target<'_>, engine: &Engine) -> Forward {
        let twice = of.wrt.iter().chain(of.wrt).map(|&at| &of.inputs[at]);
        let bytes = |datum: &Datum<f64>| Self::DESCRIBED + datum.elements() * REAL;
        let held = of.inputs.iter().chain(twice).map(bytes).sum::<usize>() as u64;
        Forward { code: Code::on(engine, derived), held }
    }

    /// Limits of each run within a budget for all of it.
    pub fn within(&self, budget: Budget, limits: &Limits) -> Limits {
        Limits { budget: less(budget, self.held), ..*limits }
    }

    /// The inputs, then tangents of those that are differentiated by, which are zero.
    pub fn with_tangents(of: Target<'_>) -> Vec<Datum<f64>> {
        let mut all = Vec::with_capacity(of.inputs.len() + of.wrt.len());
        all.extend_from_slice(of.inputs);
        all.extend(of.wrt.iter().map(|&at| of.inputs[at].map(|_| 0.0)));
        all
    }
}

fn derived(of: Target<'_>) -> Result<Program, TransformError> {
    Ok(passes::simplify(&jvp(of.program, of.wrt)?))
}
