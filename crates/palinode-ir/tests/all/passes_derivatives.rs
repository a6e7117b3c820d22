//! The passes on derivative code: of random `.pal` programs, first and second order.
//!
//! `PALINODE_PROGRAMS` says how many.

use palinode_ir::interp::{Code, Datum, Limits, Stats};
use palinode_ir::text::print;
use palinode_ir::{Program, passes, transform};

use crate::agree::{Transforms, check_with};
use crate::passes_random::{all, same};
use crate::random::generate::source;
use crate::random_programs::{Case, compiled, from_environment};

fn cases() -> impl Iterator<Item = (u64, Case)> {
    let (first, count) = (from_environment("PALINODE_SEED", 0), from_environment("PALINODE_PROGRAMS", 12));
    (first..first + count).filter_map(|seed| Some((seed, compiled(&source(seed)).ok()?)))
}

fn run(program: &Program, inputs: &[Datum<f64>]) -> Option<(Vec<Datum<f64>>, Stats)> {
    let limits = Limits { steps: 10_000_000, ..Limits::default() };
    Code::new(program).run_with_stats(inputs, &limits).ok()
}

/// Derivative programs and inputs for them: tangents or cotangents are all one.
fn derivatives(case: &Case) -> Vec<(&'static str, Program, Vec<Datum<f64>>)> {
    let one = |datum: &Datum<f64>| datum.map(|_| 1.0);
    let inputs = &case.inputs;
    let seeds: Vec<_> = case.wrt.iter().map(|&at| one(&inputs[at])).collect();
    let Some((outputs, _)) = run(&case.program, inputs) else { return Vec::new() };
    let cotangents = outputs.iter().filter(|datum| matches!(datum, Datum::Real(_))).map(one);
    let jvp = transform::jvp(&case.program, &case.wrt).expect("jvp");
    let vjp = transform::vjp(&case.program, &case.wrt).expect("vjp");
    let twice = transform::jvp(&vjp, &case.wrt).expect("jvp of vjp");
    let reverse: Vec<_> = inputs.iter().cloned().chain(cotangents).collect();
    let forward = [&inputs[..], &seeds].concat();
    let both = [&reverse[..], &seeds].concat();
    vec![("jvp", jvp, forward), ("vjp", vjp, reverse), ("jvp of vjp", twice, both)]
}

#[test]
fn every_pass_keeps_derivatives() {
    let mut sizes = (0, 0);
    let mut costs = (0, 0);
    let mut worse = Vec::new();
    for (seed, case) in cases() {
        for (what, program, inputs) in derivatives(&case) {
            let Some((before, cost)) = run(&program, &inputs) else { continue };
            for (name, pass) in all() {
                let result = pass(&program);
                let Some((after, cost_after)) = run(&result, &inputs) else {
                    panic!(
                        "{name} of {what}, seed {seed}: an error\n{}\nbecame\n{}",
                        print(&program),
                        print(&result)
                    )
                };
                let good =
                    before.len() == after.len() && before.iter().zip(&after).all(|(a, b)| same(a, b, true));
                assert!(
                    good,
                    "{name} of {what}, seed {seed}: {before:?} became {after:?}\n{}\nbecame\n{}",
                    print(&program),
                    print(&result)
                );
                if name == "simplify" {
                    sizes = (sizes.0 + program.size(), sizes.1 + result.size());
                    let total = |stats: Stats| stats.elements_copied + stats.elements_filled;
                    costs = (costs.0 + total(cost), costs.1 + total(cost_after));
                    if cost_after.elements_copied > cost.elements_copied {
                        worse.push((what, seed, cost.elements_copied, cost_after.elements_copied));
                    }
                }
            }
        }
    }
    println!("simplify: {} instructions became {}, {} elements {}", sizes.0, sizes.1, costs.0, costs.1);
    println!("more copies: {worse:?}");
    assert!(sizes.1 < sizes.0 && costs.1 < costs.0);
}

/// Derivatives of simplified programs, simplified, obey the laws of derivatives.
#[test]
fn simplification_and_differentiation_go_together() {
    let transforms = Transforms {
        jvp: |program, wrt| passes::simplify(&transform::jvp(&passes::simplify(program), wrt).expect("jvp")),
        vjp: |program, wrt| passes::simplify(&transform::vjp(&passes::simplify(program), wrt).expect("vjp")),
    };
    for (seed, case) in cases() {
        if let Err(failure) = check_with(&transforms, &case.program, &case.inputs, &case.wrt, true) {
            panic!("seed {seed}: {failure}\n{}", print(&case.program));
        }
    }
}
