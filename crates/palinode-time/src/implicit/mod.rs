//! Fixed points and roots, differentiated by the equation they satisfy.
//!
//! Input: an equation `x = f(x, p)` or `r(x, p) = 0`, written once over any number, a start, parameters.
//! Output: the solution over the number of the parameters, with its derivative, and a report.
//!
//! The iterations leave no trace: by the implicit function theorem `R_x dx = -R_p dp` at the solution, so a
//! derivative costs a recording of the equation there and one linear system, however many iterations it took
//! to get there; two recordings more, which are not kept, tell whether the solution is known well enough. In
//! reverse the system is the transposed one, solved from products with that recording; its true residual is
//! checked, and a derivative that fails the check is an error, never zeros.
//!
//! | file | holds |
//! |---|---|
//! | `options.rs`, `report.rs`, `error.rs` | [`Solver`]; [`SolverReport`]; [`ImplicitError`] |
//! | `forward.rs` | Picard, Anderson and Newton on plain numbers |
//! | `linearised.rs`, `gmres.rs` | an equation recorded at a point; linear systems with it |
//! | `number.rs` | what numbers and equations must be |
//! | `problem.rs`, `lift.rs` | the linear equations of derivatives as equations; numbers with derivatives |
//! | `closure.rs` | closures over `Var<f64>` |
//!
//! Invariants: a solution is a point at which the residual was evaluated and found small; the primal does not
//! depend on the number it is computed with. FormatLimits: the derivative is that of the equation, at the
//! point that was found: an error of the solution is an error of the same order in the derivative; a system
//! that is solved by products sees a singular matrix only where its right side does.

mod closure;
mod error;
mod forward;
mod gmres;
mod lift;
mod linearised;
pub(crate) mod number;
mod options;
mod problem;
mod report;

pub use closure::{fixed_point_of, root_of};
pub use error::ImplicitError;
pub use number::Implicit;
pub use options::{LinearMethod, Solver, SolverMethod};
pub use report::{LinearReport, SolverReport};

use forward::Form;
use number::Number;
use palinode_core::{Real, Scalar, dense};
use problem::{Given, checked};
use std::sync::Arc;

/// A function of unknowns and parameters, over any number: the map of a fixed point, or the residual of a
/// root.
///
/// ```
/// use palinode_core::Real;
/// use palinode_time::implicit::Equation;
///
/// /// Kepler's equation: E - e sin(E) = M, with parameters e and M.
/// #[derive(Clone, Copy)]
/// struct Kepler;
/// impl Equation for Kepler {
///     fn eval<S: Real>(&self, x: &[S], p: &[S]) -> Vec<S> {
///         vec![x[0] - p[0] * x[0].sin() - p[1]]
///     }
/// }
/// ```
///
/// An implementation may ask less of the number than the trait does: `S: Real` is enough for arithmetic and
/// functions, and with `S: Number` and the feature `nalgebra` calls like `x.sin()` would be ambiguous.
/// `S: Real + Implicit` lets an equation contain another one.
///
/// Everything that is differentiated by must come from `params`. What it holds besides (data, sizes) is
/// constant; put what is large into an [`Arc`].
pub trait Equation: Send + Sync + 'static {
    /// As many numbers as there are unknowns.
    fn eval<S: Number>(&self, x: &[S], params: &[S]) -> Vec<S>;
}

impl<E: Equation> Equation for Arc<E> {
    fn eval<S: Number>(&self, x: &[S], params: &[S]) -> Vec<S> {
        (**self).eval(x, params)
    }
}

/// What was found, and how.
#[derive(Clone, Debug)]
pub struct Solution<S> {
    /// The solution; its derivative is that of the equation.
    pub x: Vec<S>,
    /// What it took.
    pub report: SolverReport,
}

/// The `x` with `x = f(x, p)`, on any number.
///
/// The start may be plain or active; its derivative is not used.
///
/// ```
/// use palinode_core::{Real, hessian, jvp, value_and_grad};
/// use palinode_time::implicit::{Equation, Implicit, Solver, fixed_point};
///
/// #[derive(Clone, Copy)]
/// struct Cosine;
/// impl Equation for Cosine {
///     fn eval<S: Real>(&self, x: &[S], p: &[S]) -> Vec<S> {
///         vec![x[0].cos() + p[0]]
///     }
/// }
/// fn solution<S: Real + Implicit>(p: &[S]) -> S {
///     fixed_point(Cosine, &[0.5], p, &Solver::picard()).unwrap().x[0]
/// }
///
/// let (x, g) = value_and_grad(solution, &[0.0f64])?;
/// let slope = 1.0 / (1.0 + x.sin());
/// assert!((g[0] - slope).abs() < 1e-12);
/// // Forward, and second order.
/// assert!((jvp(|p| solution(p), &[0.0f64], &[1.0])?.1[0] - slope).abs() < 1e-12);
/// assert!((hessian(solution, &[0.0f64])?[0][0] + x.cos() * slope.powi(3)).abs() < 1e-12);
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn fixed_point<S: Real + Implicit, E: Equation>(
    map: E,
    start: &[impl Scalar],
    params: &[S],
    solver: &Solver,
) -> Result<Solution<S>, ImplicitError> {
    solution(map, Form::FixedPoint, start, params, solver)
}

/// The `x` with `r(x, p) = 0`, on any number. Picard and Anderson take it as the fixed point of
/// `x - r(x, p)`.
///
/// ```
/// use palinode_core::{Real, value_and_grad};
/// use palinode_time::implicit::{Equation, Solver, root};
///
/// struct SquareRoot;
/// impl Equation for SquareRoot {
///     fn eval<S: Real>(&self, x: &[S], p: &[S]) -> Vec<S> {
///         vec![x[0] * x[0] - p[0]]
///     }
/// }
/// let (x, g) = value_and_grad(|p| root(SquareRoot, &[1.0], p, &Solver::newton()).unwrap().x[0], &[9.0f64])?;
/// assert!((x - 3.0).abs() < 1e-15 && (g[0] - 1.0 / 6.0).abs() < 1e-15);
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn root<S: Real + Implicit, E: Equation>(
    residual: E,
    start: &[impl Scalar],
    params: &[S],
    solver: &Solver,
) -> Result<Solution<S>, ImplicitError> {
    solution(residual, Form::Root, start, params, solver)
}

fn solution<S: Real + Implicit, E: Equation>(
    equation: E,
    form: Form,
    start: &[impl Scalar],
    params: &[S],
    solver: &Solver,
) -> Result<Solution<S>, ImplicitError> {
    let problem = Given { equation, form, start: plain(start), solver: solver.clone() };
    let (x, report) = S::solve(&Arc::new(problem), params)?;
    Ok(Solution { x, report })
}

/// The same fixed point with every iteration differentiated: `x <- f(x, p)` on the number itself, from the
/// start with its derivative, until its primal has converged.
///
/// For comparison, and for where the iteration is what is meant. Memory grows with the iterations, and the
/// derivative lags behind: when the primal has converged, it may need as many iterations again. When to stop
/// depends on the parameters, so it counts as a decision. The method of the solver is not used.
pub fn unrolled<S: Number, E: Equation>(
    map: E,
    start: &[S],
    params: &[S],
    solver: &Solver,
) -> Result<Solution<S>, ImplicitError> {
    solver.check()?;
    let mut x = start.to_vec();
    for iteration in 0.. {
        let next = checked(Form::FixedPoint, x.len(), map.eval(&x, params))?;
        let steps: Vec<f64> = next.iter().zip(&x).map(|(next, x)| next.to_f64() - x.to_f64()).collect();
        let values: Vec<f64> = plain(&x);
        let (residual, scale) = (dense::max_norm(&steps), 1.0 + dense::max_norm(&values));
        x = next;
        if residual <= solver.tolerance * scale {
            return Ok(Solution {
                x,
                report: SolverReport::new("unrolled Picard", iteration + 1, iteration + 1, residual),
            });
        }
        if iteration == solver.iterations || !residual.is_finite() {
            return Err(ImplicitError::NotConverged {
                method: "unrolled Picard",
                iterations: iteration,
                residual: residual / scale,
                smallest: residual / scale,
                tolerance: solver.tolerance,
                advice: "the map may not be a contraction here; allow more iterations, or differentiate implicitly",
            });
        }
    }
    unreachable!("the loop returns")
}

/// The primals, which are no decision: the solution does not depend on where the search started.
fn plain(numbers: &[impl Scalar]) -> Vec<f64> {
    numbers.iter().map(|number| number.glance().unwrap_or(f64::NAN)).collect()
}
