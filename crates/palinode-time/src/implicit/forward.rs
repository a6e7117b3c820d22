//! Finding the solution, in plain numbers: Picard, Anderson, Newton.
//!
//! Input: the equation at fixed parameters, a start, limits. Output: a point at which the residual was
//! evaluated and found small, or an error that says how near it came.
//!
//! Papers: Anderson (1965), as in Walker and Ni (2011); Newton with the sufficient decrease of Armijo.

use super::error::{ImplicitError, evidence};
use super::linearised::{Linearised, System, difference};
use super::options::{Solver, SolverMethod};
use super::report::SolverReport;
use palinode_core::dense::{least_squares, max_norm, norm};
use std::collections::VecDeque;

/// What the equation says: `x = f(x, p)` or `r(x, p) = 0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    FixedPoint,
    Root,
}

impl Form {
    /// How the user's function is called in messages.
    pub(super) fn what(self) -> &'static str {
        match self {
            Form::FixedPoint => "map",
            Form::Root => "residual",
        }
    }

    /// `f(x) - x` or `r(x)`, from what the user's function gave.
    fn residual(self, x: &[f64], value: Vec<f64>) -> Vec<f64> {
        match self {
            Form::FixedPoint => difference(&value, x),
            Form::Root => value,
        }
    }

    /// How the operation is called in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Form::FixedPoint => "fixed_point",
            Form::Root => "root",
        }
    }
}

/// The equation at fixed parameters.
pub(super) trait Equations {
    /// `f(x)` or `r(x)`; as many numbers as unknowns.
    fn evaluate(&self, x: &[f64]) -> Result<Vec<f64>, ImplicitError>;
    /// The recording of `f(x) - x` or `r(x)`.
    fn linearise(&self, x: &[f64]) -> Result<Linearised<f64>, ImplicitError>;
}

/// A search on its way.
struct Search<'a> {
    equations: &'a dyn Equations,
    form: Form,
    solver: &'a Solver,
    method: &'static str,
    x: Vec<f64>,
    iterations: usize,
    evaluations: usize,
    smallest: f64,
}

/// What a plain iteration finds where it is.
enum Round {
    /// The residual is small enough.
    Solved(f64),
    /// `f(x)` or `r(x)`, and where it goes from here.
    Goes { value: Vec<f64>, step: Vec<f64> },
}

pub(super) fn solve(
    equations: &dyn Equations,
    form: Form,
    start: Vec<f64>,
    solver: &Solver,
) -> Result<(Vec<f64>, SolverReport), ImplicitError> {
    solver.check()?;
    let method = match solver.method {
        SolverMethod::Picard => "Picard",
        SolverMethod::Anderson { .. } => "Anderson",
        SolverMethod::Newton => "Newton",
    };
    let mut search = Search {
        equations,
        form,
        solver,
        method,
        x: start,
        iterations: 0,
        evaluations: 0,
        smallest: f64::INFINITY,
    };
    let residual = match solver.method {
        SolverMethod::Picard => search.picard()?,
        SolverMethod::Anderson { memory } => search.anderson(memory)?,
        SolverMethod::Newton => search.newton()?,
    };
    let report = SolverReport::new(method, search.iterations, search.evaluations, residual);
    Ok((search.x, report))
}

impl Search<'_> {
    fn picard(&mut self) -> Result<f64, ImplicitError> {
        loop {
            let (value, step) = match self.look("the map may not be a contraction here: damp it, or use Anderson or Newton; or allow more iterations")? {
                Round::Solved(residual) => return Ok(residual),
                Round::Goes { value, step } => (value, step),
            };
            let part = self.solver.damping;
            if part == 1.0 && self.form == Form::FixedPoint {
                self.x = value; // not x + (f - x), which rounds
            } else {
                self.x.iter_mut().zip(&step).for_each(|(x, step)| *x += part * step);
            }
        }
    }

    fn anderson(&mut self, memory: usize) -> Result<f64, ImplicitError> {
        let part = self.solver.damping;
        // Differences of points and of steps, the latest last.
        let (mut points, mut steps): (VecDeque<Vec<f64>>, VecDeque<Vec<f64>>) = Default::default();
        let mut last: Option<(Vec<f64>, Vec<f64>)> = None;
        loop {
            let step = match self
                .look("remember more steps, damp it, use Newton, or start nearer to the solution")?
            {
                Round::Solved(residual) => return Ok(residual),
                Round::Goes { step, .. } => step,
            };
            if let Some((last_x, last_step)) = last.take() {
                points.push_back(difference(&self.x, &last_x));
                steps.push_back(difference(&step, &last_step));
            }
            while steps.len() > memory {
                points.pop_front();
                steps.pop_front();
            }
            // The newest first: where columns depend on one another, the older ones are left out.
            let newest: Vec<Vec<f64>> = steps.iter().rev().cloned().collect();
            let weights = least_squares(&newest, &step);
            let mut next: Vec<f64> = self.x.iter().zip(&step).map(|(x, step)| x + part * step).collect();
            for ((weight, point), step) in weights.iter().zip(points.iter().rev()).zip(&newest) {
                for (next, (point, step)) in next.iter_mut().zip(point.iter().zip(step)) {
                    *next -= weight * (point + part * step);
                }
            }
            last = Some((std::mem::replace(&mut self.x, next), step));
        }
    }

    fn newton(&mut self) -> Result<f64, ImplicitError> {
        const ADVICE: &str = "start nearer to the solution, or ask for less";
        loop {
            self.check_finite(&self.x.clone())?;
            self.evaluations += 1;
            let at = self.equations.linearise(&self.x)?;
            let residual = at.values.clone();
            self.check_finite(&residual)?;
            let size = max_norm(&residual);
            if size == 0.0 {
                return Ok(size);
            }
            let iteration = self.iterations;
            let singular = |error| match error {
                ImplicitError::NoDerivative { condition, residual, tolerance, products, .. } => {
                    let evidence = evidence(condition, residual, tolerance, products);
                    ImplicitError::SingularJacobian { iteration, residual: size, evidence }
                }
                ImplicitError::LinearNotConverged { residual, tolerance, products, unknowns, .. } => {
                    let which = "Newton step";
                    ImplicitError::LinearNotConverged { which, residual, tolerance, products, unknowns }
                }
                other => other,
            };
            let minus: Vec<f64> = residual.iter().map(|r| -r).collect();
            let step = System::new(at, &self.solver.linear)?.solve(&minus).map_err(singular)?.solution;
            // The step estimates the error, whatever the scale of the residual. It is taken if that does not
            // make things worse.
            let error = max_norm(&step);
            let is_last = self.is_small(error);
            if !is_last {
                self.count(error, ADVICE)?;
            }
            let before = norm(&residual);
            let mut part = 1.0;
            loop {
                let x: Vec<f64> = self.x.iter().zip(&step).map(|(x, step)| x + part * step).collect();
                self.evaluations += 1;
                let value = self.equations.evaluate(&x)?;
                let there = self.form.residual(&x, value);
                let after = norm(&there);
                if is_last {
                    if after <= before {
                        self.x = x;
                        self.iterations += 1;
                        return Ok(max_norm(&there));
                    }
                    return Ok(size);
                }
                if after <= (1.0 - 1e-4 * part) * before {
                    self.x = x;
                    break;
                }
                part *= 0.5;
                if part < 1e-10 {
                    let advice = "no part of Newton's step brings the residual down: it may have a minimum that is no root, or rounding keeps it from falling; \
                                  start elsewhere, or ask for less";
                    return Err(self.failure(error, advice));
                }
            }
        }
    }

    /// Evaluates here, and counts the iteration that is to be taken unless this is the solution.
    fn look(&mut self, advice: &'static str) -> Result<Round, ImplicitError> {
        self.evaluations += 1;
        let value = self.equations.evaluate(&self.x)?;
        self.check_finite(&value)?;
        let step = self.step(&value);
        let residual = max_norm(&step);
        if self.is_small(residual) {
            return Ok(Round::Solved(residual));
        }
        self.count(residual, advice)?;
        Ok(Round::Goes { value, step })
    }

    /// Where a plain iteration goes from here: `f(x) - x`, or `-r(x)`.
    fn step(&self, value: &[f64]) -> Vec<f64> {
        match self.form {
            Form::FixedPoint => difference(value, &self.x),
            Form::Root => value.iter().map(|value| -value).collect(),
        }
    }

    fn scale(&self) -> f64 {
        1.0 + max_norm(&self.x)
    }

    fn is_small(&self, residual: f64) -> bool {
        residual <= self.solver.tolerance * self.scale()
    }

    /// Counts an iteration that is about to be taken; an error if it may not be.
    fn count(&mut self, residual: f64, advice: &'static str) -> Result<(), ImplicitError> {
        self.smallest = self.smallest.min(residual / self.scale());
        if self.iterations == self.solver.iterations {
            return Err(self.failure(residual, advice));
        }
        self.iterations += 1;
        Ok(())
    }

    fn failure(&self, residual: f64, advice: &'static str) -> ImplicitError {
        ImplicitError::NotConverged {
            method: self.method,
            iterations: self.iterations,
            residual: residual / self.scale(),
            smallest: self.smallest,
            tolerance: self.solver.tolerance,
            advice,
        }
    }

    fn check_finite(&self, numbers: &[f64]) -> Result<(), ImplicitError> {
        match numbers.iter().enumerate().find(|(_, number)| !number.is_finite()) {
            None => Ok(()),
            Some((component, &value)) => Err(ImplicitError::Diverged {
                method: self.method,
                iteration: self.iterations,
                component,
                value,
            }),
        }
    }
}
