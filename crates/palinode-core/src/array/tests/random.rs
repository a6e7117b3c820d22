//! Random programs: every policy gives the same bits, and the model's numbers within a derived bound.
//!
//! `PALINODE_PROGRAMS=100000 cargo test -p palinode-core random_programs` for the long run.

use super::model::{Lists, Model};
use super::programs::{INPUTS, point, run};
use crate::array::Array;
use crate::tape::arrays::WhenOverwritten;
use crate::tape::{Record, Tape};
use crate::{Accumulator, Compression, Dual, Error, Var};

pub(super) fn how_many() -> u64 {
    std::env::var("PALINODE_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(400)
}

/// The cotangents that ask for each output.
const SEEDS: [[f64; 2]; 2] = [[1.0, 0.0], [0.0, 1.0]];

/// Values, then the gradients of both outputs.
type Answer = (Vec<f64>, [Vec<f64>; 2]);

fn answer(mut record: Record<'_, f64>) -> Answer {
    (record.values().to_vec(), SEEDS.map(|seed| record.reverse(&seed).unwrap().to_vec()))
}

/// The program on arrays.
fn recorded(tape: &mut Tape<f64>, seed: u64) -> Result<Record<'_, f64>, Error> {
    tape.record(&point(seed), |x| run::<f64, Array<f64>>(seed, x))
}

fn with_policy(policy: WhenOverwritten) -> Tape<f64> {
    let mut tape = Tape::new();
    tape.set_when_overwritten(policy);
    tape
}

fn bits(answer: &Answer) -> Vec<u64> {
    answer.0.iter().chain(answer.1.iter().flatten()).map(|x| x.to_bits()).collect()
}

fn on_arrays(seed: u64, policy: WhenOverwritten) -> Result<Answer, Error> {
    recorded(&mut with_policy(policy), seed).map(answer)
}

fn compressed(seed: u64, fuse: bool) -> Answer {
    let how = Compression { chains: fuse, blocks: fuse, ..Compression::default() };
    let mut compressed = recorded(&mut Tape::new(), seed).unwrap().compress(&how).unwrap();
    (compressed.values().to_vec(), SEEDS.map(|seed| compressed.reverse(&seed).unwrap().to_vec()))
}

/// Gradients whose cotangents are added up in another way.
fn summed(seed: u64, how: Accumulator) -> [Vec<f64>; 2] {
    answer(recorded(&mut Tape::new().accumulate(how), seed).unwrap()).1
}

/// The gradient over absolute partials, from the model's own tape: what rounding errors are measured by.
fn absolute_gradients(record: &Record<'_, f64>, outputs: [usize; 2]) -> [Vec<f64>; 2] {
    let rows = record.table().rows;
    outputs.map(|output| {
        let mut cotangents = vec![0.0; rows.len() + 1];
        cotangents[output] = 1.0;
        for row in rows.iter().rev() {
            let received: f64 = cotangents[row.index as usize];
            for (&input, partial) in row.inputs.iter().zip(&row.saved) {
                cotangents[input as usize] += partial.abs() * received;
            }
        }
        cotangents[1..=INPUTS].to_vec()
    })
}

/// The model's answer and the bounds on how far another evaluation may be from it.
fn on_model(seed: u64) -> (Answer, [Vec<f64>; 2]) {
    let mut tape = Tape::traced();
    let mut outputs = [0; 2];
    let record = tape
        .record(&point(seed), |x| {
            let results = run::<f64, Model<f64>>(seed, x);
            outputs = results.map(|y| y.node() as usize);
            results
        })
        .unwrap();
    let bounds = absolute_gradients(&record, outputs).map(|gradient| {
        let terms = record.size().edges as f64;
        gradient.iter().map(|size| f64::EPSILON * (8.0 + terms) * size + 1e-300).collect()
    });
    (answer(record), bounds)
}

/// What is wrong with one program, if something is.
pub(super) fn check(seed: u64) -> Result<(), String> {
    let copied = on_arrays(seed, WhenOverwritten::Copy).map_err(|error| format!("{seed}: {error}"))?;
    for policy in [WhenOverwritten::AlwaysCopy, WhenOverwritten::Recompute] {
        let other = on_arrays(seed, policy).map_err(|error| format!("{seed}: {error}"))?;
        if bits(&copied) != bits(&other) {
            return Err(format!("program {seed}: {copied:?} in place and {other:?} with {policy:?}"));
        }
    }
    match on_arrays(seed, WhenOverwritten::Forbid) {
        Ok(other) if bits(&copied) != bits(&other) => {
            return Err(format!("program {seed}: {copied:?} in place and {other:?} with Forbid"));
        }
        Ok(_) | Err(Error::Overwritten { .. }) => {}
        Err(error) => return Err(format!("program {seed}: {error}")),
    }
    let plain = compressed(seed, false);
    if bits(&copied) != bits(&plain) {
        return Err(format!("program {seed}: {copied:?} recorded and {plain:?} compressed"));
    }
    let fused = compressed(seed, true);
    let [compensated, exact] = [Accumulator::Compensated, Accumulator::Exact].map(|how| summed(seed, how));
    let (model, bounds) = on_model(seed);
    for (output, bounds) in bounds.iter().enumerate() {
        if (copied.0[output] - model.0[output]).abs() > 1e-9 * (1.0 + model.0[output].abs()) {
            return Err(format!("program {seed}: value {:?}, not {:?}", copied.0, model.0));
        }
        for (input, &bound) in bounds.iter().enumerate() {
            let (found, expected) = (copied.1[output][input], model.1[output][input]);
            if (fused.1[output][input] - found).abs() > bound {
                return Err(format!("program {seed}: {copied:?} recorded and {fused:?} fused"));
            }
            for summed in [&compensated, &exact] {
                let summed_here = summed[output][input];
                if (summed_here - expected).abs() > bound || summed_here.is_nan() != expected.is_nan() {
                    return Err(format!("program {seed}: {:?} naive and {summed:?} otherwise", copied.1));
                }
            }
            if (found - expected).abs() > bound {
                return Err(format!(
                    "program {seed}: d output {output} / d input {input} is {found}, not {expected} (bound {bound})"
                ));
            }
        }
    }
    Ok(())
}

#[test]
fn random_programs_agree() {
    let wrong: Vec<String> = (0..how_many()).filter_map(|seed| check(seed).err()).collect();
    assert!(wrong.is_empty(), "{} programs: {}", wrong.len(), wrong[..wrong.len().min(5)].join("\n"));
}

/// They must do what they are for: copy, recompute, refuse, save, and stay in place.
#[test]
fn random_programs_meet_every_policy() {
    let (mut copies, mut recomputed, mut refused, mut in_place, mut saved) = (0, 0, 0, 0, 0);
    for seed in 0..400 {
        let counts = |policy| recorded(&mut with_policy(policy), seed).map(|record| record.array_counts());
        let copied = counts(WhenOverwritten::Copy).unwrap();
        copies += usize::from(copied.copies > 0);
        in_place += usize::from(copied.copies == 0 && copied.elements > 0);
        saved += usize::from(copied.saved > 0);
        recomputed += usize::from(counts(WhenOverwritten::Recompute).unwrap().recomputed > 0);
        let forbidden = counts(WhenOverwritten::Forbid);
        assert!(forbidden.is_ok() || copied.copies > 0, "program {seed} is refused without a copy to make");
        refused += usize::from(forbidden.is_err());
        let always = counts(WhenOverwritten::AlwaysCopy).unwrap();
        assert!(always.copied >= copied.copied, "program {seed}");
    }
    assert!(
        copies > 40 && recomputed > 10 && refused > 40 && in_place > 40 && saved > 40,
        "{copies} {recomputed} {refused} {in_place} {saved}"
    );
}

#[test]
fn forward_and_reverse_are_adjoint() {
    for seed in 0..300 {
        let mut tape = Tape::new();
        let mut record = recorded(&mut tape, seed).unwrap();
        let direction: Vec<f64> = (0..INPUTS).map(|k| 0.3 + 0.1 * k as f64).collect();
        let along = record.forward(&direction).unwrap();
        let pattern = record.pattern();
        let both = record.reverse_many(&SEEDS).unwrap();
        for (output, along) in along.iter().enumerate() {
            let gradient = record.reverse(&SEEDS[output]).unwrap().to_vec();
            let terms: Vec<f64> = gradient.iter().zip(&direction).map(|(g, d)| g * d).collect();
            let size: f64 = terms.iter().map(|term| term.abs()).sum();
            assert!((along - terms.iter().sum::<f64>()).abs() <= 1e-9 * (size + 1.0), "program {seed}");
            for (input, &g) in gradient.iter().enumerate() {
                assert!(g == 0.0 || pattern[output].contains(&input), "program {seed} misses input {input}");
                assert_eq!(both[input][output].to_bits(), g.to_bits(), "program {seed}");
            }
        }
    }
}

#[test]
fn second_order_agrees() {
    fn hessian_times<A: Lists<Dual<f64>>>(seed: u64) -> Vec<Dual<f64>> {
        let x: Vec<Dual<f64>> = point(seed).iter().map(|&x| Dual::new(x, 0.5)).collect();
        let mut tape = Tape::new();
        let mut record = tape.record(&x, |x: &[Var<Dual<f64>>]| run::<_, A>(seed, x)).unwrap();
        record.reverse(&[Dual::lift(1.0), Dual::lift(0.0)]).unwrap().to_vec()
    }
    for seed in 0..200 {
        let (found, expected) = (hessian_times::<Array<_>>(seed), hessian_times::<Model<_>>(seed));
        let size = expected.iter().fold(1.0, |size: f64, x| size.max(x.tangent.abs()));
        for (found, expected) in found.iter().zip(&expected) {
            assert!(
                (found.tangent - expected.tangent).abs() <= 1e-8 * size,
                "program {seed}: {found:?} {expected:?}"
            );
        }
    }
}
