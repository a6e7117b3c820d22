//! What it took: iterations, residuals, and what became of the derivative's linear system.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// How a solution was found, and, once it has been differentiated, how well that system was solved.
///
/// Clones share what becomes known later: keep one outside of a differentiated closure to read
/// [`SolverReport::derivative`] after the sweep.
#[derive(Clone, Debug)]
pub struct SolverReport {
    /// "Picard", "Anderson" or "Newton".
    pub method: &'static str,
    /// Steps taken.
    pub iterations: usize,
    /// How often the equation was evaluated, recordings for Newton's matrix included.
    pub evaluations: usize,
    /// `max |f(x) - x|` or `max |r(x)|` at the solution, as evaluated there.
    pub residual: f64,
    derivative: Arc<Mutex<Option<LinearReport>>>,
}

/// How the linear system of a derivative was solved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearReport {
    /// Whether a matrix was factored; otherwise GMRES ran.
    pub direct: bool,
    /// Sweeps over the recorded equation.
    pub products: usize,
    /// The norm of what is left of the system, relative to its right side: computed from the answer, not by
    /// the solver's own account.
    pub residual: f64,
    /// The condition number of the scaled matrix, if there was a matrix.
    pub condition: Option<f64>,
}

impl SolverReport {
    pub(super) fn new(method: &'static str, iterations: usize, evaluations: usize, residual: f64) -> Self {
        SolverReport { method, iterations, evaluations, residual, derivative: Arc::default() }
    }

    /// Of a problem that is itself a linear system.
    pub(super) fn of_linear(derivative: LinearReport) -> Self {
        let report = SolverReport::new("linear", 0, 1, derivative.residual);
        report.set_derivative(derivative);
        report
    }

    /// The last linear system that was solved to differentiate this solution; `None` before.
    pub fn derivative(&self) -> Option<LinearReport> {
        *self.derivative.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_derivative(&self, report: LinearReport) {
        *self.derivative.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }
}

impl fmt::Display for SolverReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SolverReport { method, iterations, evaluations, residual, .. } = self;
        write!(f, "{method}: {iterations} iterations, {evaluations} evaluations, residual {residual:.1e}")?;
        match self.derivative() {
            Some(derivative) => write!(f, "; derivative: {derivative}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for LinearReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.direct { "direct" } else { "GMRES" };
        write!(f, "{how}, {} products, residual {:.1e}", self.products, self.residual)?;
        match self.condition {
            Some(condition) => write!(f, ", condition {condition:.1e}"),
            None => Ok(()),
        }
    }
}
