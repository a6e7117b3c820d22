//! The law of `agree`, in 106 bits: tells a wrong derivative from rounding.
//!
//! A chaotic loop can pass derivatives of 1e10 on the way to one of 1: then duals and reverse mode, which
//! cancel in different places, differ by more than any tolerance that would still find mistakes. In
//! double-doubles they must agree.

use palinode_core::{DoubleDouble, Dual, Real, Scalar};
use palinode_ir::Program;
use palinode_ir::interp::Datum;

use crate::agree::{Failure, Tolerance, Transforms, compare, flat, run_on};
use crate::random::Random;

type Wide = DoubleDouble;

fn wide<R: Real>(inputs: &[Datum<f64>], mut make: impl FnMut(usize, f64) -> R) -> Vec<Datum<R>> {
    inputs.iter().enumerate().map(|(at, datum)| datum.map(|value| make(at, value))).collect()
}

fn rounded(values: &[Wide]) -> Vec<f64> {
    values.iter().map(|value| value.to_f64()).collect()
}

/// Compares the cotangents of `vjp` with duals, and second derivatives with `vjp` on duals.
pub(crate) fn agree_precisely(
    transforms: &Transforms,
    program: &Program,
    inputs: &[Datum<f64>],
    wrt: &[usize],
) -> Result<(), Failure> {
    let tolerance = Tolerance { relative: 1e-9 };
    let plain = wide(inputs, |_, value| Wide::from_f64(value));
    let values = run_on(program, &plain, "the program itself")?;
    let mut sequence = Random::new(12_345);
    let directions: Vec<Datum<Wide>> =
        wrt.iter().map(|&at| inputs[at].map(|_| Wide::from_f64(sequence.signed()))).collect();
    let seeds: Vec<Datum<Wide>> = values
        .iter()
        .filter(|datum| datum.as_vector().is_some())
        .map(|datum| datum.map(|_| Wide::from_f64(sequence.signed())))
        .collect();
    let (direction, seed) = (flat(&directions), flat(&seeds));

    // First order.
    let mut by_duals = Vec::new();
    for chosen in 0..direction.len() {
        let mut number = 0;
        let duals = wide(inputs, |at, value| {
            let is_active = wrt.contains(&at);
            number += usize::from(is_active);
            Dual::new(Wide::from_f64(value), Wide::from_f64(f64::from(is_active && number - 1 == chosen)))
        });
        let moved = flat(&run_on(program, &duals, "duals")?);
        by_duals.push(moved.iter().zip(&seed).map(|(dual, &seed)| dual.tangent * seed).sum::<Wide>());
    }
    let vjp = (transforms.vjp)(program, wrt);
    let pulled = run_on(&vjp, &[&plain[..], &seeds].concat(), "vjp")?;
    let cotangents = flat(&pulled[values.len()..]);
    compare("the cotangents of vjp", &rounded(&cotangents), &rounded(&by_duals), &tolerance)?;

    // Second order: the derivative of the cotangents along the direction.
    let mut number = 0;
    let duals = wide(inputs, |at, value| {
        let is_active = wrt.contains(&at);
        number += usize::from(is_active);
        let tangent = if is_active { direction[number - 1] } else { Wide::from_f64(0.0) };
        Dual::new(Wide::from_f64(value), tangent)
    });
    let constants: Vec<Datum<Dual<Wide>>> =
        seeds.iter().map(|datum| datum.map(|value| Dual::new(value, Wide::from_f64(0.0)))).collect();
    let moved = run_on(&vjp, &[duals, constants].concat(), "vjp on duals")?;
    let expected: Vec<Wide> = flat(&moved[values.len()..]).iter().map(|dual| dual.tangent).collect();
    let forward = (transforms.jvp)(&vjp, wrt);
    let moved = run_on(&forward, &[&plain[..], &seeds, &directions].concat(), "jvp of vjp")?;
    let found = flat(&moved[pulled.len()..]);
    compare("jvp of vjp", &rounded(&found[flat(&values).len()..]), &rounded(&expected), &tolerance)?;
    let back = (transforms.vjp)(&vjp, wrt);
    let zeros: Vec<Datum<Wide>> = seeds.iter().map(|seed| seed.map(|_| Wide::from_f64(0.0))).collect();
    let moved = run_on(&back, &[&plain[..], &seeds, &zeros, &directions].concat(), "vjp of vjp")?;
    compare("vjp of vjp", &rounded(&flat(&moved[pulled.len()..])), &rounded(&expected), &tolerance)
}
