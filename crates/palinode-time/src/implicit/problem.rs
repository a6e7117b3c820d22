//! Equations over any number: the user's, and the linear ones that its derivatives satisfy.
//!
//! The derivative of an implicit function is an implicit function again, of a linear equation: `R_x y = b`
//! forward, `R_x^T w = v` in reverse, with the solution, the parameters and the right side as its parameters.
//! So one trait serves all orders: a number with derivatives solves the equation of its inner number, then
//! the linear equation of its inner number.

use super::Equation;
use super::error::ImplicitError;
use super::forward::{Equations, Form, solve};
use super::linearised::{Linearised, System};
use super::number::{Inner, Number, Problem, Solved};
use super::options::{LinearOptions, Solver};
use super::report::SolverReport;
use palinode_core::Dual;
use std::sync::Arc;

/// The user's equation.
pub(super) struct Given<E> {
    pub(super) equation: E,
    pub(super) form: Form,
    pub(super) start: Vec<f64>,
    pub(super) solver: Solver,
}

/// As many numbers as unknowns.
pub(super) fn checked<S>(form: Form, unknowns: usize, value: Vec<S>) -> Result<Vec<S>, ImplicitError> {
    if value.len() == unknowns {
        Ok(value)
    } else {
        Err(ImplicitError::Length { what: form.what(), expected: unknowns, found: value.len() })
    }
}

impl<E: Equation> Problem for Given<E> {
    fn unknowns(&self) -> usize {
        self.start.len()
    }

    fn residual<S: Number>(&self, x: &[S], params: &[S]) -> Result<Vec<S>, ImplicitError> {
        let mut value = checked(self.form, x.len(), self.equation.eval(x, params))?;
        if self.form == Form::FixedPoint {
            value.iter_mut().zip(x).for_each(|(value, x)| *value -= *x);
        }
        Ok(value)
    }

    fn solve(&self, params: &[f64]) -> Solved<f64> {
        struct AtParams<'a, E>(&'a Given<E>, &'a [f64]);
        impl<E: Equation> Equations for AtParams<'_, E> {
            fn evaluate(&self, x: &[f64]) -> Result<Vec<f64>, ImplicitError> {
                checked(self.0.form, x.len(), self.0.equation.eval(x, self.1))
            }
            fn linearise(&self, x: &[f64]) -> Result<Linearised<f64>, ImplicitError> {
                linearised(self.0, x, self.1)
            }
        }
        solve(&AtParams(self, params), self.form, self.start.clone(), &self.solver)
    }

    fn linear(&self) -> &LinearOptions {
        &self.solver.linear
    }

    fn name(&self) -> &'static str {
        self.form.name()
    }
}

/// The recording of a problem at a point.
pub(super) fn linearised<S: Inner, P: Problem>(
    problem: &P,
    x: &[S],
    params: &[S],
) -> Result<Linearised<S>, ImplicitError> {
    Linearised::of(x, params, |x, params| problem.residual(x, params))
}

/// The linear systems of the derivatives of a problem at its solution.
pub(super) fn system<P: Problem>(problem: &P, x: &[f64], params: &[f64]) -> Result<System, ImplicitError> {
    System::trusted(&|x| linearised(problem, x, params), x, problem.linear())
}

/// The solution, the parameters and the right side of a linear equation, from its own parameters.
fn parts<S>(unknowns: usize, params: &[S]) -> (&[S], &[S], &[S]) {
    let (x, rest) = params.split_at(unknowns);
    let (params, right) = rest.split_at(rest.len() - unknowns);
    (x, params, right)
}

fn minus<S: Number>(image: impl IntoIterator<Item = S>, right: &[S]) -> Vec<S> {
    image.into_iter().zip(right).map(|(image, right)| image - *right).collect()
}

/// `R_x(x, p) y = b` with parameters `x, p, b`, or `R_x(x, p)^T w = v` with `x, p, v`.
pub(super) struct Linear<P> {
    pub(super) of: Arc<P>,
    pub(super) is_transposed: bool,
}

impl<P: Problem> Problem for Linear<P> {
    fn unknowns(&self) -> usize {
        self.of.unknowns()
    }

    fn residual<S: Number>(&self, y: &[S], params: &[S]) -> Result<Vec<S>, ImplicitError> {
        let (x, params, right) = parts(y.len(), params);
        if self.is_transposed {
            let (image, _) = linearised(&*self.of, x, params)?.transposed(y)?;
            return Ok(minus(image, right));
        }
        let x: Vec<Dual<S>> = x.iter().zip(y).map(|(&x, &y)| Dual::new(x, y)).collect();
        let params: Vec<Dual<S>> = params.iter().map(|&p| Dual::lift(p)).collect();
        Ok(minus(self.of.residual(&x, &params)?.into_iter().map(|image| image.tangent), right))
    }

    fn solve(&self, params: &[f64]) -> Solved<f64> {
        let (x, params, right) = parts(self.unknowns(), params);
        let mut system = system(&*self.of, x, params)?;
        let answer = if self.is_transposed { system.solve_transposed(right) } else { system.solve(right) }?;
        Ok((answer.solution, SolverReport::of_linear(answer.report)))
    }

    fn linear(&self) -> &LinearOptions {
        self.of.linear()
    }

    fn name(&self) -> &'static str {
        if self.is_transposed { "adjoint" } else { "tangent" }
    }
}
