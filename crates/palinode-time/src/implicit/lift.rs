//! Implicit functions of numbers with derivatives.
//!
//! Input: a problem and its parameters over a number. Output: the solution over that number. Plain numbers
//! solve; a forward number solves with its inner number and then one linear system per tangent; a `Var`
//! solves with its inner number and records one operation, whose rule solves the transposed system when a
//! sweep asks for it.
//!
//! ```text
//! Var<Dual<f64>> ─ solve ─► Dual<f64> ─ solve ─► f64: the method that was chosen
//!       │                       └─ Linear ─────► f64: R_x y = b, products by one recording
//!       └─ reverse ─ Linear^T ───► Dual<f64> ──► f64 and its Linear: second order
//! ```

use super::error::ImplicitError;
use super::linearised::{Linearised, System};
use super::number::{Answered, Derivative, Implicit, Inner, Prepared, Problem, Solved};
use super::problem::{Linear, linearised, system};
use super::report::{LinearReport, SolverReport};
use palinode_core::{CustomRule, Dual, DualN, Error, Passive, Var, custom};
use std::sync::{Arc, Mutex, PoisonError};

impl Derivative<f64> for System {
    fn pull(&mut self, v: &[f64]) -> Answered<f64> {
        let answer = self.solve_transposed(v)?;
        Ok((answer.of_params.iter().map(|cotangent| -cotangent).collect(), Some(answer.report)))
    }

    fn push(&mut self, dp: &[f64]) -> Answered<f64> {
        let b: Vec<f64> = self.at.times(None, Some(dp))?.iter().map(|b| -b).collect();
        let answer = self.solve(&b)?;
        Ok((answer.solution, Some(answer.report)))
    }

    fn heap_bytes(&self) -> usize {
        System::heap_bytes(self)
    }
}

impl Implicit for f64 {
    fn solve<P: Problem>(problem: &Arc<P>, params: &[f64]) -> Solved<f64> {
        problem.solve(params)
    }

    fn prepare<P: Problem>(problem: &Arc<P>, x: &[f64], params: &[f64]) -> Prepared<f64> {
        Ok(Box::new(system(&**problem, x, params)?))
    }
}

/// In double precision, rounded: a solution is worth no more digits than its parameters have.
impl Implicit for f32 {
    fn solve<P: Problem>(problem: &Arc<P>, params: &[f32]) -> Solved<f32> {
        let (x, report) = problem.solve(&wide(params))?;
        Ok((narrow(x), report))
    }

    fn prepare<P: Problem>(problem: &Arc<P>, x: &[f32], params: &[f32]) -> Prepared<f32> {
        Ok(Box::new(Narrow(f64::prepare(problem, &wide(x), &wide(params))?)))
    }
}

fn wide(numbers: &[f32]) -> Vec<f64> {
    numbers.iter().map(|&number| f64::from(number)).collect()
}

fn narrow(numbers: Vec<f64>) -> Vec<f32> {
    numbers.into_iter().map(|number| number as f32).collect()
}

struct Narrow(Box<dyn Derivative<f64>>);

impl Derivative<f32> for Narrow {
    fn pull(&mut self, v: &[f32]) -> Answered<f32> {
        self.0.pull(&wide(v)).map(|(answer, report)| (narrow(answer), report))
    }

    fn push(&mut self, dp: &[f32]) -> Answered<f32> {
        self.0.push(&wide(dp)).map(|(answer, report)| (narrow(answer), report))
    }

    fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }
}

/// The derivative over a number that has derivatives itself: its linear systems are implicit functions of
/// that number.
struct Nested<S, P> {
    problem: Arc<P>,
    at: Linearised<S>,
    x: Vec<S>,
    params: Vec<S>,
}

impl<S: Inner, P: Problem> Nested<S, P> {
    fn prepare(problem: &Arc<P>, x: &[S], params: &[S]) -> Prepared<S> {
        let at = linearised(&**problem, x, params)?;
        Ok(Box::new(Nested { problem: problem.clone(), at, x: x.to_vec(), params: params.to_vec() }))
    }

    fn with_right_side(&self, right: &[S]) -> Vec<S> {
        [&self.x, &self.params, right].concat()
    }
}

impl<S: Inner, P: Problem> Derivative<S> for Nested<S, P> {
    fn pull(&mut self, v: &[S]) -> Answered<S> {
        let transposed = Linear { of: self.problem.clone(), is_transposed: true };
        let (w, report) = S::solve(&Arc::new(transposed), &self.with_right_side(v))?;
        let (_, of_params) = self.at.transposed(&w)?;
        Ok((of_params.into_iter().map(|cotangent| -cotangent).collect(), report.derivative()))
    }

    fn push(&mut self, dp: &[S]) -> Answered<S> {
        let b: Vec<S> = self.at.times(None, Some(dp))?.into_iter().map(|b| -b).collect();
        let linear = Linear { of: self.problem.clone(), is_transposed: false };
        let (y, report) = S::solve(&Arc::new(linear), &self.with_right_side(&b))?;
        Ok((y, report.derivative()))
    }

    fn heap_bytes(&self) -> usize {
        self.at.heap_bytes() + (self.x.capacity() + self.params.capacity()) * size_of::<S>()
    }
}

/// The tangent of the solution at `(x, p)` for the tangents `dp` of the parameters.
fn tangent<S: Inner, P: Problem>(
    problem: &Arc<P>,
    x: &[S],
    params: &[S],
    dp: &[S],
    report: &SolverReport,
) -> Result<Vec<S>, ImplicitError> {
    let moving: Vec<Dual<S>> = params.iter().zip(dp).map(|(&p, &dp)| Dual::new(p, dp)).collect();
    let images = problem.residual(&primals(x, Dual::lift), &moving)?;
    let right = images.into_iter().map(|image| -image.tangent);
    let all: Vec<S> = x.iter().chain(params).copied().chain(right).collect();
    let linear = Linear { of: problem.clone(), is_transposed: false };
    let (dx, linear) = S::solve(&Arc::new(linear), &all)?;
    if let Some(linear) = linear.derivative() {
        report.set_derivative(linear);
    }
    Ok(dx)
}

fn primals<N: Copy, S>(numbers: &[N], primal: fn(N) -> S) -> Vec<S> {
    numbers.iter().map(|&number| primal(number)).collect()
}

impl<S: Inner> Implicit for Dual<S> {
    fn solve<P: Problem>(problem: &Arc<P>, params: &[Self]) -> Solved<Self> {
        let inner = primals(params, Dual::primal);
        let (x, report) = S::solve(problem, &inner)?;
        if !params.iter().any(|p| p.is_active()) {
            return Ok((primals(&x, Dual::lift), report));
        }
        let dp = primals(params, |p| p.tangent);
        let dx = tangent(problem, &x, &inner, &dp, &report)?;
        Ok((x.into_iter().zip(dx).map(|(x, dx)| Dual::new(x, dx)).collect(), report))
    }

    fn prepare<P: Problem>(problem: &Arc<P>, x: &[Self], params: &[Self]) -> Prepared<Self> {
        Nested::prepare(problem, x, params)
    }
}

impl<S: Inner, const N: usize> Implicit for DualN<S, N> {
    fn solve<P: Problem>(problem: &Arc<P>, params: &[Self]) -> Solved<Self> {
        let inner = primals(params, DualN::primal);
        let (x, report) = S::solve(problem, &inner)?;
        let mut lifted: Vec<Self> = primals(&x, DualN::lift);
        for lane in 0..N {
            let dp: Vec<S> = params.iter().map(|p| p.tangents[lane]).collect();
            if dp.iter().any(|dp| !dp.vanishes()) {
                let dx = tangent(problem, &x, &inner, &dp, &report)?;
                lifted.iter_mut().zip(dx).for_each(|(x, dx)| x.tangents[lane] = dx);
            }
        }
        Ok((lifted, report))
    }

    fn prepare<P: Problem>(problem: &Arc<P>, x: &[Self], params: &[Self]) -> Prepared<Self> {
        Nested::prepare(problem, x, params)
    }
}

impl<S: Inner> Implicit for Passive<S> {
    fn solve<P: Problem>(problem: &Arc<P>, params: &[Self]) -> Solved<Self> {
        let (x, report) = S::solve(problem, &primals(params, Passive::primal))?;
        Ok((primals(&x, Passive::lift), report))
    }

    fn prepare<P: Problem>(problem: &Arc<P>, x: &[Self], params: &[Self]) -> Prepared<Self> {
        Nested::prepare(problem, x, params)
    }
}

impl<S: Inner> Implicit for Var<S> {
    fn solve<P: Problem>(problem: &Arc<P>, params: &[Self]) -> Solved<Self> {
        let inner = primals(params, Var::primal);
        let (x, report) = S::solve(problem, &inner)?;
        if !params.iter().any(|p| p.is_active()) {
            return Ok((primals(&x, Var::lift), report));
        }
        let derivative = S::prepare(problem, &x, &inner)?;
        let x = record(params, &x, problem.name(), derivative, &report);
        Ok((x, report))
    }

    fn prepare<P: Problem>(problem: &Arc<P>, x: &[Self], params: &[Self]) -> Prepared<Self> {
        Nested::prepare(problem, x, params)
    }
}

/// Puts the solution on the tape of its parameters, as one operation.
pub(super) fn record<S: Inner>(
    params: &[Var<S>],
    x: &[S],
    name: &'static str,
    derivative: Box<dyn Derivative<S>>,
    report: &SolverReport,
) -> Vec<Var<S>> {
    let saved_bytes = derivative.heap_bytes();
    custom(params, x, Rule { derivative: Mutex::new(derivative), name, saved_bytes, report: report.clone() })
}

/// One solution on a tape.
struct Rule<S> {
    /// A sweep needs its memory for itself.
    derivative: Mutex<Box<dyn Derivative<S>>>,
    name: &'static str,
    saved_bytes: usize,
    report: SolverReport,
}

impl<S> Rule<S> {
    fn done<T>(&self, (answer, linear): (T, Option<LinearReport>)) -> T {
        if let Some(linear) = linear {
            self.report.set_derivative(linear);
        }
        answer
    }
}

impl<S: Inner> CustomRule<S> for Rule<S> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn reverse(&self, outputs: &[S], inputs: &mut [S]) -> Result<(), Error> {
        let mut derivative = self.derivative.lock().unwrap_or_else(PoisonError::into_inner);
        let contributions = self.done(derivative.pull(outputs)?);
        inputs.iter_mut().zip(contributions).for_each(|(input, contribution)| *input = *input + contribution);
        Ok(())
    }

    fn forward(&self, inputs: &[S], outputs: &mut [S]) -> Result<(), Error> {
        let mut derivative = self.derivative.lock().unwrap_or_else(PoisonError::into_inner);
        outputs.copy_from_slice(&self.done(derivative.push(inputs)?));
        Ok(())
    }

    fn saved_bytes(&self) -> usize {
        self.saved_bytes
    }
}
