//! An equation, recorded once at a point, as a linear map: products with its Jacobian and the transpose, and
//! linear systems with them.
//!
//! Input: the point `(x, p)` and the residual `R` over `Var`s. Output: products with `R_x`, `R_p` and their
//! transposes by sweeps over that one recording; solutions of `R_x y = b` and `R_x^T w = v` for plain
//! numbers.
//!
//! Invariants: nothing is recorded again for a linear system; its residual is computed from its answer by a
//! sweep, and an answer that fails it is an error. A derivative is given only if the matrix is about the same
//! within the error of the solution, for which the equation is recorded twice more and forgotten
//! ([`System::trusted`]).

use super::error::ImplicitError;
use super::gmres::gmres;
use super::number::Inner;
use super::options::LinearOptions;
use super::report::LinearReport;
use palinode_core::dense::{max_norm, norm};
use palinode_core::matrix::{Conditioned, Matrix};
use palinode_core::{Record, Tape, Var};

/// How many columns of a matrix one forward sweep gives.
const LANES: usize = 8;

/// The recording of a residual at a point.
pub(super) struct Linearised<S> {
    tape: Tape<S>,
    pub(super) unknowns: usize,
    /// The residual at the point.
    pub(super) values: Vec<S>,
}

impl<S: Inner> Linearised<S> {
    pub(super) fn of(
        x: &[S],
        params: &[S],
        mut residual: impl FnMut(&[Var<S>], &[Var<S>]) -> Result<Vec<Var<S>>, ImplicitError>,
    ) -> Result<Self, ImplicitError> {
        let mut tape = Tape::new();
        let mut failure = None;
        let inputs = [x, params].concat();
        let record = tape.record(&inputs, |inputs| {
            let (x, params) = inputs.split_at(x.len());
            // It may run several times, the last time at the point.
            failure = None;
            residual(x, params).unwrap_or_else(|error| {
                failure = Some(error);
                Vec::new()
            })
        })?;
        let values = record.values().to_vec();
        match failure {
            Some(error) => Err(error),
            None => Ok(Linearised { tape, unknowns: x.len(), values }),
        }
    }

    fn record(&mut self) -> Record<'_, S> {
        self.tape.recorded().expect("it was recorded when this was made")
    }

    /// `R_x^T w` and `R_p^T w`, in one sweep.
    pub(super) fn transposed(&mut self, w: &[S]) -> Result<(Vec<S>, Vec<S>), ImplicitError> {
        let unknowns = self.unknowns;
        let mut record = self.record();
        let both = record.reverse(w)?;
        let (of_x, of_params) = both.split_at(unknowns);
        Ok((of_x.to_vec(), of_params.to_vec()))
    }

    /// `R_x dx + R_p dp`; what is missing is zero.
    pub(super) fn times(&mut self, dx: Option<&[S]>, dp: Option<&[S]>) -> Result<Vec<S>, ImplicitError> {
        let unknowns = self.unknowns;
        let record = self.record();
        let mut tangents = vec![S::zero(); record.input_count()];
        if let Some(dx) = dx {
            tangents[..unknowns].copy_from_slice(dx);
        }
        if let Some(dp) = dp {
            tangents[unknowns..].copy_from_slice(dp);
        }
        Ok(record.forward(&tangents)?)
    }

    /// The heap bytes of the recording.
    pub(super) fn heap_bytes(&self) -> usize {
        self.tape.heap_bytes() + self.values.capacity() * size_of::<S>()
    }
}

impl Linearised<f64> {
    /// `R_x` by columns.
    fn matrix(&mut self) -> Result<Vec<f64>, ImplicitError> {
        let unknowns = self.unknowns;
        let record = self.record();
        let mut columns = vec![0.0; unknowns * unknowns];
        for first in (0..unknowns).step_by(LANES) {
            let mut tangents = vec![[0.0; LANES]; record.input_count()];
            let lanes = LANES.min(unknowns - first);
            (0..lanes).for_each(|lane| tangents[first + lane][lane] = 1.0);
            for (row, tangents) in record.forward_many(&tangents)?.iter().enumerate() {
                (0..lanes).for_each(|lane| columns[(first + lane) * unknowns + row] = tangents[lane]);
            }
        }
        Ok(columns)
    }
}

/// Linear systems with the matrix `R_x` of a recording.
pub(super) struct System {
    pub(super) at: Linearised<f64>,
    /// If it is solved directly.
    factors: Option<Conditioned>,
    options: LinearOptions,
    /// Why a derivative by it would not be one.
    doubt: Option<Doubt>,
}

/// The point is a solution up to this error, over which the matrix changes by this part.
#[derive(Clone, Copy)]
struct Doubt {
    error: f64,
    change: f64,
}

impl Doubt {
    /// With more than this no digit of the derivative is certain. At a fold of any order it is 1/2 or more.
    const MOST: f64 = 0.1;
}

/// Records the equation at a point. An object, so that there is one copy of what is done with it.
pub(super) type Recording<'a> = dyn Fn(&[f64]) -> Result<Linearised<f64>, ImplicitError> + 'a;

/// The answer of a linear system.
pub(super) struct Answer {
    /// What solves it.
    pub(super) solution: Vec<f64>,
    /// `R_p^T` times it, for a transposed system.
    pub(super) of_params: Vec<f64>,
    pub(super) report: LinearReport,
}

impl System {
    pub(super) fn new(mut at: Linearised<f64>, options: &LinearOptions) -> Result<Self, ImplicitError> {
        let unknowns = at.unknowns;
        let factors = if options.is_direct(unknowns) { Some(factored(&mut at)?) } else { None };
        Ok(System { at, factors, options: options.clone(), doubt: None })
    }

    /// Products did not solve a system: the matrix is factored, if that may be.
    fn factor_after_all(&mut self) -> Result<bool, ImplicitError> {
        let may_be = self.options.is_direct_after_all(self.at.unknowns);
        if may_be {
            self.factors = Some(factored(&mut self.at)?);
        }
        Ok(may_be)
    }

    /// The systems of a derivative at the solution `x`, with a doubt if it is not known well enough for one.
    ///
    /// Newton's step `s` from there estimates its error, whichever way it was found; rounding errors of the
    /// residual count, because near a fold it may vanish by them. Is it near a solution that the equation
    /// determines, then `R_x` is about the same at `x + s` (the condition of Kantorovich's theorem); at a
    /// fold it is not, however small the step, which goes a part of the way to where `R_x` is singular. No
    /// residual and no condition number at `x` alone shows that: those of `x^2 = 0` at `1e-12` are perfect.
    pub(super) fn trusted(
        record: &Recording<'_>,
        x: &[f64],
        options: &LinearOptions,
    ) -> Result<Self, ImplicitError> {
        let mut system = System::new(record(x)?, options)?;
        let rounding = system.rounding_at(record, x)?;
        system.doubt = system.doubt_at(record, x, &rounding)?;
        Ok(system)
    }

    /// About the rounding errors of the residual that matter: those of the terms that bend, which are as
    /// large as `R_xx[x, x]`, however they cancel. What is linear has the same derivative everywhere.
    fn rounding_at(&mut self, record: &Recording<'_>, x: &[f64]) -> Result<Vec<f64>, ImplicitError> {
        const PART: f64 = 1.0 / (1 << 20) as f64;
        let none = vec![0.0; x.len()];
        // Without a matrix that is scaled they would drown what is smaller in other equations.
        if self.factors.is_none() {
            return Ok(none);
        }
        let near: Vec<f64> = x.iter().map(|x| x + PART * x).collect();
        // An equation that ends or fails between here and there says nothing about here.
        let Ok(there) = record(&near).and_then(|mut near| near.times(Some(x), None)) else { return Ok(none) };
        let here = self.at.times(Some(x), None)?;
        let bent = difference(&there, &here).into_iter().map(|bent| bent * (f64::EPSILON / PART));
        let rounding: Vec<f64> = bent.collect();
        Ok(if rounding.iter().all(|error| error.is_finite()) { rounding } else { none })
    }

    fn doubt_at(
        &mut self,
        record: &Recording<'_>,
        x: &[f64],
        rounding: &[f64],
    ) -> Result<Option<Doubt>, ImplicitError> {
        // Of either sign: away from zero, so that they do not cancel.
        let worst = |(r, error): (&f64, &f64)| -(r + error.abs().copysign(*r));
        let minus: Vec<f64> = self.at.values.iter().zip(rounding).map(worst).collect();
        // A system that cannot be solved says so when it is asked for a derivative.
        let Some(step) = self.unchecked(&minus)? else { return Ok(None) };
        let moved: Vec<f64> = x.iter().zip(&step).map(|(x, step)| x + step).collect();
        if moved == x {
            return Ok(None);
        }
        let moved = record(&moved).and_then(|mut moved| moved.times(Some(&step), None));
        // An equation that ends or fails between here and there says nothing about here.
        let Ok(there) = moved else { return Ok(None) };
        let here = self.at.times(Some(&step), None)?;
        let difference = difference(&there, &here);
        // Not finite where it ends there without an error.
        let Some(change) = self.unchecked(&difference)? else { return Ok(None) };
        let doubt = Doubt { error: max_norm(&step), change: norm(&change) / norm(&step) };
        Ok((doubt.change > Doubt::MOST).then_some(doubt))
    }

    /// The `y` of `R_x y = b`, if there is one; its residual is not looked at.
    fn unchecked(&mut self, b: &[f64]) -> Result<Option<Vec<f64>>, ImplicitError> {
        if b.iter().any(|b| !b.is_finite()) {
            return Ok(None);
        }
        let (y, is_solved) = match &self.factors {
            Some(lu) => (lu.solve(false, b), !lu.is_singular()),
            None => {
                let at = &mut self.at;
                // Not roughly: what is small in the right side may be what is large in the answer.
                let tolerance = self.options.tolerance;
                let (directions, products) = self.options.directions_and_products(at.unknowns);
                let image = |y: &[f64]| at.times(Some(y), None);
                let reached = gmres(image, b, tolerance, directions, products)?;
                if reached.residual > tolerance && self.factor_after_all()? {
                    return self.unchecked(b);
                }
                (reached.x, reached.residual <= tolerance)
            }
        };
        Ok((is_solved && y.iter().all(|y| y.is_finite())).then_some(y))
    }

    /// `y` of `R_x y = b`.
    pub(super) fn solve(&mut self, b: &[f64]) -> Result<Answer, ImplicitError> {
        self.answer(b, "derivative", false, |at, y| Ok((at.times(Some(y), None)?, Vec::new())))
    }

    /// `w` of `R_x^T w = v`.
    pub(super) fn solve_transposed(&mut self, v: &[f64]) -> Result<Answer, ImplicitError> {
        self.answer(v, "adjoint", true, Linearised::transposed)
    }

    /// `product` gives the image under the matrix, and what else its sweep knows. The last product is of the
    /// answer: it checks it.
    fn answer(
        &mut self,
        right: &[f64],
        which: &'static str,
        transposed: bool,
        product: impl Fn(&mut Linearised<f64>, &[f64]) -> Result<(Vec<f64>, Vec<f64>), ImplicitError>,
    ) -> Result<Answer, ImplicitError> {
        right.iter().try_for_each(|&entry| finite(entry))?;
        if let Some(Doubt { error, change }) = self.doubt {
            return Err(ImplicitError::Undetermined { which, error, change });
        }
        let unknowns = self.at.unknowns;
        let tolerance = self.options.tolerance;
        let (mut products, mut is_exhausted, mut by_products) = (0, false, None);
        if self.factors.is_none() {
            let image = |x: &[f64]| product(&mut self.at, x).map(|(image, _)| image);
            // Half of the tolerance, so that the check below does not fail by rounding.
            let (directions, most) = self.options.directions_and_products(unknowns);
            let reached = gmres(image, right, 0.5 * tolerance, directions, most)?;
            (products, is_exhausted) = (reached.products, reached.is_exhausted);
            if reached.residual <= tolerance || !self.factor_after_all()? {
                by_products = Some(reached.x);
            }
        }
        let condition = self.factors.as_ref().map(|lu| lu.condition);
        let no_derivative = |residual: f64, products: usize| {
            Err(ImplicitError::NoDerivative { which, condition, residual, tolerance, products })
        };
        let mut solution = match (by_products, &self.factors) {
            (Some(solution), _) => solution,
            (None, Some(lu)) if lu.is_singular() => return no_derivative(1.0, products + unknowns),
            (None, Some(lu)) => {
                products += unknowns;
                lu.solve(transposed, right)
            }
            (None, None) => unreachable!("without factors, products came to something"),
        };
        let size = norm(right);
        for round in 0.. {
            let (image, of_params) = product(&mut self.at, &solution)?;
            products += 1;
            image.iter().chain(&of_params).try_for_each(|&entry| finite(entry))?;
            let rest = difference(right, &image);
            let residual = if size == 0.0 { 0.0 } else { norm(&rest) / size };
            if residual <= tolerance {
                let report = LinearReport { direct: self.factors.is_some(), products, residual, condition };
                return Ok(Answer { solution, of_params, report });
            }
            match &self.factors {
                // A matrix of high condition needs its answer corrected.
                Some(lu) if round < 3 => {
                    solution
                        .iter_mut()
                        .zip(lu.solve(transposed, &rest))
                        .for_each(|(entry, more)| *entry += more);
                }
                Some(_) => return no_derivative(residual, products),
                None if is_exhausted => return no_derivative(residual, products),
                None => {
                    return Err(ImplicitError::LinearNotConverged {
                        which,
                        residual,
                        tolerance,
                        products,
                        unknowns,
                    });
                }
            }
        }
        unreachable!("the loop returns")
    }

    /// The heap bytes held.
    pub(super) fn heap_bytes(&self) -> usize {
        let unknowns = self.at.unknowns;
        let factors =
            self.factors.as_ref().map_or(0, |_| (unknowns * unknowns + 3 * unknowns) * size_of::<f64>());
        self.at.heap_bytes() + factors
    }
}

fn finite(value: f64) -> Result<(), ImplicitError> {
    if value.is_finite() { Ok(()) } else { Err(ImplicitError::NotSmooth { value }) }
}

fn factored(at: &mut Linearised<f64>) -> Result<Conditioned, ImplicitError> {
    let matrix = at.matrix()?;
    matrix.iter().try_for_each(|&entry| finite(entry))?;
    let (rows, columns) = (at.unknowns, at.unknowns);
    Ok(Conditioned::of(Matrix { rows, columns, data: matrix }))
}

pub(super) fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}
