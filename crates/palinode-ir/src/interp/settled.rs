//! Whether a search has found what it looked for, and linear systems whose answers are checked.
//!
//! Input: the vector that a search ended at and how it ended; the matrix and right side of an equation's
//! partials. Output: the vector; a solution of the system whose residual was computed from it. What fails is
//! an error that says how near it came, never a number.

use palinode_core::Real;
use palinode_core::dense::norm;
use palinode_core::matrix::{Conditioned, Lu, Matrix};

use super::error::RunErrorKind;
use super::ledger::Memory;
use super::store::Store;
use super::value::{Val, primal};
use crate::op::Search;

/// The largest residual of a linear system, as a part of its right side.
const TOLERANCE: f64 = 1e-10;
/// And in units of the last bit of the number, whichever is larger: posits of 32 bits have none at 1e-10.
const UNITS: f64 = 64.0;
/// But never so much that zero would do for an answer: posits of 8 bits tell too little.
const LOOSEST: f64 = 1.0 / 16.0;
/// How often an answer is corrected by its residual, as matrices of high condition need it.
const CORRECTIONS: usize = 3;

/// `(x, change, bound, rounds)` -> `x`; `over` says that nothing else holds it.
pub(super) fn settled<R: Real>(
    search: Search,
    args: &mut [Val<R>],
    over: bool,
    memory: &mut Memory,
) -> Result<Val<R>, RunErrorKind> {
    let (Val::Real(change), Val::Real(bound)) = (&args[1], &args[2]) else {
        unreachable!("the verifier: a change and a bound are reals")
    };
    let (change, bound, rounds) = (primal(*change), primal(*bound), args[3].int());
    let method = search.name();
    let x = args[0].array().reals();
    if !change.is_finite() || x.data().iter().any(|x| !x.is_finite()) {
        return Err(RunErrorKind::SearchDiverged { method, rounds });
    }
    if change > bound || bound.is_nan() {
        let advice = match search {
            Search::Picard => {
                "the map may not bring points closer together here: search `by anderson` or `by newton`, or allow more `rounds`"
            }
            Search::Anderson => "search `by newton`, start nearer to the solution, or allow more `rounds`",
            Search::Newton => "start nearer to the solution, or ask for less with `tolerance`",
        };
        return Err(RunErrorKind::NotSettled { method, rounds, change, bound, advice });
    }
    if over {
        return Ok(Val::Array(args[0].take_array()));
    }
    let data = x.data();
    let copy = Store::from_slice(Search::name(search), vec![data.len()], data, memory)?;
    memory.stats.elements_filled += copy.len() as u64;
    Ok(Val::from_reals(copy))
}

/// A square system that answers with what was checked, or not at all.
pub(super) struct Checked<R> {
    matrix: Matrix<R>,
    factors: Lu<R>,
    condition: f64,
    step: bool,
}

/// Why a system has no answer.
#[derive(Clone)]
pub(super) enum Refused {
    /// To be said now.
    Because(RunErrorKind),
    /// A step that is no number; the search says so.
    NotFinite,
}

impl<R: Real> Checked<R> {
    /// Factors the matrix, or says that it is singular or not finite.
    pub(super) fn new(matrix: Matrix<R>, step: bool) -> Result<Checked<R>, Refused> {
        let data: Vec<f64> = matrix.data.iter().map(|&x| primal(x)).collect();
        if let Some(&value) = data.iter().find(|entry| !entry.is_finite()) {
            return Err(not_finite(value, step));
        }
        let plain = Conditioned::of(Matrix { rows: matrix.rows, columns: matrix.columns, data });
        let singular = |condition: f64| Refused::Because(no_answer::<R>(step, condition, 1.0));
        if plain.is_singular() {
            return Err(singular(plain.condition));
        }
        let factors = Lu::new(matrix.clone()).map_err(|_| singular(f64::INFINITY))?;
        Ok(Checked { matrix, factors, condition: plain.condition, step })
    }

    /// Puts the solution in place of the right side.
    pub(super) fn solve(&self, transposed: bool, x: &mut [R]) -> Result<(), Refused> {
        let right = x.to_vec();
        if let Some(value) = right.iter().map(|&b| primal(b)).find(|b| !b.is_finite()) {
            return Err(not_finite(value, self.step));
        }
        self.factors.solve(transposed, x);
        let size = norm(&right.iter().map(|&b| primal(b)).collect::<Vec<f64>>());
        for round in 0.. {
            let mut rest = right.clone();
            for (i, rest) in rest.iter_mut().enumerate() {
                let row: Vec<R> =
                    (0..x.len()).map(|j| self.matrix[if transposed { (j, i) } else { (i, j) }]).collect();
                *rest -= R::dot(&row, x);
            }
            let residual = norm(&rest.iter().map(|&r| primal(r)).collect::<Vec<f64>>());
            if residual <= TOLERANCE * size {
                return Ok(());
            }
            if round == CORRECTIONS && residual <= tolerance::<R>() * size {
                return Ok(());
            }
            if round == CORRECTIONS || !residual.is_finite() {
                return Err(Refused::Because(no_answer::<R>(self.step, self.condition, residual / size)));
            }
            self.factors.solve(transposed, &mut rest);
            x.iter_mut().zip(&rest).for_each(|(x, &more)| *x += more);
        }
        unreachable!("the loop returns")
    }
}

/// What a residual may be in this number, relative to the right side.
fn tolerance<R: Real>() -> f64 {
    (UNITS * last_bit::<R>()).clamp(TOLERANCE, LOOSEST)
}

/// What is the last bit of 1 in this number, or in `f64`.
fn last_bit<R: Real>() -> f64 {
    let bits = (1..53).take_while(|&k| primal(R::from_f64(1.0 + f64::from(-k).exp2())) != 1.0);
    f64::from(-bits.last().unwrap_or(0)).exp2()
}

fn not_finite(value: f64, step: bool) -> Refused {
    if step { Refused::NotFinite } else { Refused::Because(RunErrorKind::EquationNotSmooth { value }) }
}

fn no_answer<R: Real>(step: bool, condition: f64, residual: f64) -> RunErrorKind {
    let tolerance = tolerance::<R>();
    if step {
        RunErrorKind::SingularStep { condition, residual, tolerance }
    } else {
        RunErrorKind::NoDerivative { condition, residual, tolerance }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palinode_core::{Posit, PositWidth};

    /// How many of some regular systems are answered in numbers of few bits. Those that are leave a residual
    /// of a sixteenth at most, but for the rounding of the residual itself.
    fn answered<W: PositWidth>() -> usize {
        let entry = |pattern: u32, k: u32| {
            f64::from(pattern.wrapping_mul(2_654_435_761).rotate_left(5 * k) % 31) / 8.0 - 2.0
        };
        let is_answered = |&pattern: &u32| {
            let system: Vec<Posit<W>> = (0..6).map(|k| Posit::from_f64(entry(pattern, k))).collect();
            let exact: Vec<f64> = system.iter().map(|&x| primal(x)).collect();
            let (matrix, right) = exact.split_at(4);
            assert!((matrix[0] * matrix[3] - matrix[1] * matrix[2]).abs() > 0.5);
            let checked = Checked::new(
                Matrix { rows: 2, columns: 2, data: vec![system[0], system[2], system[1], system[3]] },
                false,
            );
            let mut x = system[4..].to_vec();
            if checked.and_then(|checked| checked.solve(false, &mut x)).is_err() {
                return false;
            }
            let x: Vec<f64> = x.into_iter().map(primal).collect();
            let rest = [0, 1].map(|i| right[i] - matrix[2 * i] * x[0] - matrix[2 * i + 1] * x[1]);
            // The residual that was looked at has three roundings of numbers up to 4 |x|.
            let rounding = 1.5 * last_bit::<Posit<W>>() * 4.0 * norm(&x);
            assert!(norm(&rest) <= LOOSEST * norm(right) + rounding, "{matrix:?} {right:?} {x:?}");
            true
        };
        let regular = |&pattern: &u32| {
            let [a, b, c, d] = [0, 1, 2, 3].map(|k| primal(Posit::<W>::from_f64(entry(pattern, k))));
            (a * d - b * c).abs() > 0.5
        };
        (0..u32::MAX).filter(regular).take(300).filter(is_answered).count()
    }

    #[test]
    fn numbers_of_few_bits_refuse_what_they_cannot_tell() {
        // Eight bits fail at some; were everything below 64 units of their last bit an answer, they would
        // fail at none.
        let (in_8_bits, in_16_bits) = (answered::<i8>(), answered::<i16>());
        assert!((100..260).contains(&in_8_bits) && in_16_bits == 300, "{in_8_bits} {in_16_bits}");
        assert!(tolerance::<Posit<i8>>() < 1.0 && tolerance::<f64>() == TOLERANCE);
    }
}
