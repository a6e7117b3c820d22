//! Closures over `Var<f64>`, where no generic function is at hand.
//!
//! Input: a closure of `(x, p)`. Output: the solution on the tape of the parameters. First derivatives only:
//! a closure over one number cannot be evaluated on another.

use super::error::ImplicitError;
use super::forward::{Equations, Form, solve};
use super::lift::record;
use super::linearised::{Linearised, System};
use super::options::{Solver, SolverMethod};
use super::problem::checked;
use super::{Solution, plain};
use palinode_core::{Scalar, Var};

/// [`fixed_point`](super::fixed_point) of a closure over `Var<f64>`, for first derivatives in reverse.
///
/// The closure must take everything that is differentiated by from `p`: a `Var` that it captures is an error
/// ([`ImplicitError::Captured`]).
///
/// ```
/// use palinode_core::value_and_grad;
/// use palinode_time::implicit::{Solver, fixed_point_of};
///
/// let (x, g) = value_and_grad(|p| {
///     fixed_point_of(|x, p| vec![x[0].cos() + p[0]], &[0.5], p, &Solver::picard()).unwrap().x[0]
/// }, &[0.0f64])?;
/// assert!((g[0] - 1.0 / (1.0 + x.sin())).abs() < 1e-12);
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn fixed_point_of(
    map: impl Fn(&[Var<f64>], &[Var<f64>]) -> Vec<Var<f64>>,
    start: &[impl Scalar],
    params: &[Var<f64>],
    solver: &Solver,
) -> Result<Solution<Var<f64>>, ImplicitError> {
    OnTape { function: map, form: Form::FixedPoint, params }.solution(plain(start), solver)
}

/// [`root`](super::root) of a closure over `Var<f64>`, for first derivatives in reverse. See
/// [`fixed_point_of`].
pub fn root_of(
    residual: impl Fn(&[Var<f64>], &[Var<f64>]) -> Vec<Var<f64>>,
    start: &[impl Scalar],
    params: &[Var<f64>],
    solver: &Solver,
) -> Result<Solution<Var<f64>>, ImplicitError> {
    OnTape { function: residual, form: Form::Root, params }.solution(plain(start), solver)
}

struct OnTape<'a, F> {
    function: F,
    form: Form,
    params: &'a [Var<f64>],
}

impl<F: Fn(&[Var<f64>], &[Var<f64>]) -> Vec<Var<f64>>> OnTape<'_, F> {
    fn solution(&self, start: Vec<f64>, solver: &Solver) -> Result<Solution<Var<f64>>, ImplicitError> {
        // Newton records first, where a captured number would be refused by a panic about tapes.
        let is_newton = solver.method == SolverMethod::Newton;
        if is_newton {
            solver.check()?;
            self.evaluate(&start)?;
        }
        let (x, mut report) = solve(self, self.form, start, solver)?;
        report.evaluations += usize::from(is_newton);
        let system = System::trusted(&|x| self.linearise(x), &x, &solver.linear)?;
        let x = record(self.params, &x, self.form.name(), Box::new(system), &report);
        Ok(Solution { x, report })
    }

    fn params(&self) -> impl Iterator<Item = f64> {
        self.params.iter().map(|p| p.primal())
    }
}

impl<F: Fn(&[Var<f64>], &[Var<f64>]) -> Vec<Var<f64>>> Equations for OnTape<'_, F> {
    fn evaluate(&self, x: &[f64]) -> Result<Vec<f64>, ImplicitError> {
        let constants: Vec<Var<f64>> = x.iter().map(|&x| Var::lift(x)).collect();
        let params: Vec<Var<f64>> = self.params().map(Var::lift).collect();
        let value = checked(self.form, x.len(), (self.function)(&constants, &params))?;
        // Constants give constants.
        if value.iter().any(|value| value.is_active()) {
            return Err(ImplicitError::Captured { what: self.form.what() });
        }
        Ok(value.into_iter().map(Var::primal).collect())
    }

    fn linearise(&self, x: &[f64]) -> Result<Linearised<f64>, ImplicitError> {
        let params: Vec<f64> = self.params().collect();
        Linearised::of(x, &params, |x, params| {
            let mut value = checked(self.form, x.len(), (self.function)(x, params))?;
            if self.form == Form::FixedPoint {
                value.iter_mut().zip(x).for_each(|(value, x)| *value -= *x);
            }
            Ok(value)
        })
    }
}
