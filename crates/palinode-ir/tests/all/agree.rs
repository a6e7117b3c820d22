//! The law that every transform is held to: a program's derivatives agree, however they are made.
//!
//! For one program at one point: the value; `jvp` against duals; `vjp` against duals and the dynamic tape;
//! `linearize` against `jvp`; `jvp` and `vjp` of `vjp` against nested duals. Directions and cotangents come
//! from a fixed sequence.
//!
//! Duals are the oracle: they share the rule table with the transforms but nothing else (no activity, no
//! residuals, no transposition). Finite differences are the oracle where the table itself could be wrong; the
//! table's own tests do that.

use crate::agree_precisely::agree_precisely;
use crate::random::Random;
use palinode_core::{Dual, Real, Tape, Var};
use palinode_ir::interp::{Code, Datum, Limits};
use palinode_ir::{Program, passes, transform};

pub(crate) type Failure = String;

fn limits() -> Limits {
    Limits { steps: 20_000_000, ..Limits::default() }
}

pub(crate) fn run_on<R: Real>(
    program: &Program,
    inputs: &[Datum<R>],
    what: &str,
) -> Result<Vec<Datum<R>>, Failure> {
    Code::new(program)
        .run(inputs, &limits())
        .map_err(|error| format!("{what}: {error}\n{}", palinode_ir::text::print(program)))
}

/// The elements of all real data, one after another.
pub(crate) fn flat<R: Real>(data: &[Datum<R>]) -> Vec<R> {
    data.iter().filter_map(Datum::as_vector).flatten().copied().collect()
}

/// `inputs` with those at `wrt` lifted by `make(element, its number)`.
fn lifted<R: Real>(inputs: &[Datum<f64>], wrt: &[usize], make: impl Fn(f64, usize) -> R) -> Vec<Datum<R>> {
    let mut number = 0;
    let mut data: Vec<Option<Datum<R>>> = inputs.iter().map(|datum| Some(datum.lift())).collect();
    for &at in wrt {
        data[at] = Some(inputs[at].map(|value| {
            number += 1;
            make(value, number - 1)
        }));
    }
    data.into_iter().flatten().collect()
}

/// A datum of the shape of `like` with elements from `next`.
fn filled(like: &Datum<f64>, next: &mut dyn FnMut() -> f64) -> Datum<f64> {
    like.map(|_| next())
}

pub(crate) struct Tolerance {
    /// Relative to the largest entry of what is compared.
    pub(crate) relative: f64,
}

pub(crate) fn compare(
    what: &str,
    found: &[f64],
    expected: &[f64],
    tolerance: &Tolerance,
) -> Result<(), Failure> {
    if found.len() != expected.len() {
        return Err(format!("{what}: {} numbers instead of {}", found.len(), expected.len()));
    }
    let scale = expected.iter().chain(found).filter(|x| x.is_finite()).fold(1.0_f64, |m, x| m.max(x.abs()));
    for (at, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let same = found == expected || (found.is_nan() && expected.is_nan());
        let close = (found - expected).abs() <= tolerance.relative * scale;
        if !same && !close {
            return Err(format!("{what}, number {at}: {found} instead of {expected}"));
        }
    }
    Ok(())
}

/// Whether derivatives up to this size are worth comparing.
fn tame(values: &[f64]) -> bool {
    values.iter().all(|x| x.is_finite() && x.abs() < 1e8)
}

/// What was compared.
#[derive(Default)]
pub(crate) struct Covered {
    pub(crate) first_order: bool,
    pub(crate) second_order: bool,
    /// Only in more than double precision.
    pub(crate) rounding: bool,
    /// The program, and those made from it that ran.
    pub(crate) programs: Vec<Program>,
}

/// The transforms under test; tests of the tests put spoilt ones here.
pub(crate) struct Transforms {
    pub(crate) jvp: fn(&Program, &[usize]) -> Program,
    pub(crate) vjp: fn(&Program, &[usize]) -> Program,
}

impl Default for Transforms {
    fn default() -> Transforms {
        Transforms {
            jvp: |program, wrt| transform::jvp(program, wrt).expect("jvp"),
            vjp: |program, wrt| transform::vjp(program, wrt).expect("vjp"),
        }
    }
}

/// Compares all ways to differentiate `program` by the arguments at `wrt`.
pub(crate) fn check(program: &Program, inputs: &[Datum<f64>], wrt: &[usize]) -> Result<Covered, Failure> {
    let transforms = Transforms::default();
    check_with(&transforms, program, inputs, wrt, true).or_else(|failure| {
        // Rounding, not a mistake, if more bits agree.
        let is_derivative = DERIVATIVES.iter().any(|what| failure.starts_with(what));
        match is_derivative.then(|| agree_precisely(&transforms, program, inputs, wrt)) {
            Some(Ok(())) => Ok(Covered { first_order: true, rounding: true, ..Covered::default() }),
            _ => Err(failure),
        }
    })
}

/// The comparisons that rounding can spoil.
const DERIVATIVES: [&str; 7] = [
    "the tangents of jvp",
    "the tangents of linearize",
    "the cotangents of vjp",
    "vjp of the simplified",
    "the tape",
    "jvp of vjp",
    "vjp of vjp",
];

pub(crate) fn check_with(
    transforms: &Transforms,
    program: &Program,
    inputs: &[Datum<f64>],
    wrt: &[usize],
    second_order: bool,
) -> Result<Covered, Failure> {
    let mut covered = Covered::default();
    let tolerance = Tolerance { relative: 1e-9 };
    let values = run_on(program, inputs, "the program itself")?;
    let primal = flat(&values);
    let mut sequence = Random::new(12_345);
    let mut next = || sequence.signed();
    let directions: Vec<Datum<f64>> = wrt.iter().map(|&at| filled(&inputs[at], &mut next)).collect();
    let seeds: Vec<Datum<f64>> = values
        .iter()
        .filter(|datum| datum.as_vector().is_some())
        .map(|datum| filled(datum, &mut next))
        .collect();
    let (direction, seed) = (flat(&directions), flat(&seeds));
    let size = direction.len();

    // Forward mode.
    let duals = lifted(inputs, wrt, |value, at| Dual::new(value, direction[at]));
    let by_dual: Vec<f64> =
        flat(&run_on(program, &duals, "duals")?).iter().map(|dual| dual.tangent).collect();
    if !tame(&primal) || !tame(&by_dual) {
        return Ok(covered);
    }
    let jvp = (transforms.jvp)(program, wrt);
    let moved = run_on(&jvp, &[inputs, &directions].concat(), "jvp")?;
    let (again, tangents) = moved.split_at(values.len());
    compare("the values of jvp", &flat(again), &primal, &Tolerance { relative: 0.0 })?;
    compare("the tangents of jvp", &flat(tangents), &by_dual, &tolerance)?;

    // Linearised.
    let cut = transform::linearize(program, wrt).map_err(|error| error.to_string())?;
    let kept = run_on(&cut.primal, inputs, "the primal part")?;
    let (again, residuals) = kept.split_at(values.len());
    compare("the values of linearize", &flat(again), &primal, &Tolerance { relative: 0.0 })?;
    let tangents = run_on(&cut.linear, &[residuals, &directions].concat(), "the linear part")?;
    compare("the tangents of linearize", &flat(&tangents), &by_dual, &tolerance)?;

    // Reverse mode, against a dual for each input and against the tape.
    let mut by_duals = Vec::new();
    for input in 0..size {
        let duals = lifted(inputs, wrt, |value, at| Dual::new(value, f64::from(at == input)));
        let tangents = flat(&run_on(program, &duals, "duals")?);
        by_duals.push(tangents.iter().zip(&seed).map(|(dual, seed)| dual.tangent * seed).sum::<f64>());
    }
    let vjp = (transforms.vjp)(program, wrt);
    let pulled = run_on(&vjp, &[inputs, &seeds].concat(), "vjp")?;
    let (again, cotangents) = pulled.split_at(values.len());
    compare("the values of vjp", &flat(again), &primal, &Tolerance { relative: 0.0 })?;
    compare("the cotangents of vjp", &flat(cotangents), &by_duals, &tolerance)?;
    // Simplified, it gives the same numbers.
    let simple = run_on(&passes::simplify(&vjp), &[inputs, &seeds].concat(), "simplified vjp")?;
    compare("simplified vjp", &flat(&simple), &flat(&pulled), &Tolerance { relative: 0.0 })?;
    // What simplification makes can be differentiated in turn.
    let simplified = passes::simplify(program);
    let of_simple =
        run_on(&(transforms.vjp)(&simplified, wrt), &[inputs, &seeds].concat(), "vjp of the simplified")?;
    compare("vjp of the simplified", &flat(&of_simple[values.len()..]), &by_duals, &tolerance)?;
    let mut tape = Tape::<f64>::new();
    let point: Vec<f64> =
        wrt.iter().flat_map(|&at| inputs[at].as_vector().unwrap_or_default().to_vec()).collect();
    let mut failure = None;
    let record = tape.record(&point, |vars: &[Var<f64>]| {
        let data = lifted(inputs, wrt, |_, at| vars[at]);
        match run_on(program, &data, "the tape") {
            Ok(outputs) => flat(&outputs),
            Err(error) => {
                failure = Some(error);
                vec![Var::lift(0.0); seed.len()]
            }
        }
    });
    let mut record = record.map_err(|error| error.to_string())?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    let by_tape = record.reverse(&seed).map_err(|error| error.to_string())?.to_vec();
    compare("the tape", &by_tape, &by_duals, &tolerance)?;
    covered.first_order = true;
    covered.programs.extend([program.clone(), simplified, vjp.clone()]);
    if !second_order {
        return Ok(covered);
    }

    // Second order: the derivative of the cotangents along the direction.
    let mut by_nested = Vec::new();
    for input in 0..size {
        let duals = lifted(inputs, wrt, |value, at| {
            let inner = Dual::new(value, f64::from(at == input));
            Dual::new(inner, Dual::new(direction[at], 0.0))
        });
        let tangents = flat(&run_on(program, &duals, "nested duals")?);
        by_nested
            .push(tangents.iter().zip(&seed).map(|(dual, seed)| dual.tangent.tangent * seed).sum::<f64>());
    }
    if !tame(&by_nested) {
        return Ok(covered);
    }
    let forward = (transforms.jvp)(&vjp, wrt);
    let moved = run_on(&forward, &[inputs, &seeds, &directions].concat(), "jvp of vjp")?;
    let tangents = flat(&moved[pulled.len()..]);
    compare("jvp of vjp", &tangents[primal.len()..], &by_nested, &tolerance)?;
    // Transposing twice: the cotangent along the direction, pulled back.
    let back = (transforms.vjp)(&vjp, wrt);
    let zeros: Vec<Datum<f64>> = seeds.iter().map(|seed| seed.map(|_| 0.0)).collect();
    let moved = run_on(&back, &[inputs, &seeds, &zeros, &directions].concat(), "vjp of vjp")?;
    compare("vjp of vjp", &flat(&moved[pulled.len()..]), &by_nested, &tolerance)?;
    covered.second_order = true;
    covered.programs.push(back);
    Ok(covered)
}
