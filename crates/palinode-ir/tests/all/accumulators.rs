//! Programs whose reductions and products of matrices are added up as asked for.

use crate::pal::compile;
use palinode_core::{Accumulator, Dual, Key, Posit32, Real, Tape, Var};
use palinode_ir::interp::{Code, Datum, Limits, Tensor};
use palinode_ir::{passes, transform};
use std::collections::BTreeSet;

fn limits(accumulator: Accumulator) -> Limits {
    Limits { accumulator, ..Limits::default() }
}

fn matrix<R: Real>(rows: usize, data: &[R]) -> Datum<R> {
    Datum::Real(Tensor { shape: vec![rows, data.len() / rows], data: data.to_vec() })
}

#[test]
fn sums_and_products_are_added_up_as_asked_for() {
    let source =
        "param x: [3]\ninput one: [3]\noutput s = sum(x)\noutput m = mean(x)\noutput d = dot(x, one)";
    let code = Code::new(&compile(source).program);
    let x = [3.0, 1e100, -1e100];
    let with = |how| -> Vec<f64> {
        let inputs = [Datum::vector(x.to_vec()), Datum::vector(vec![1.0; 3])];
        code.run(&inputs, &limits(how)).unwrap().iter().map(|y| y.as_real().unwrap()).collect()
    };
    assert_eq!(with(Accumulator::Naive), [0.0, 0.0, 0.0]);
    assert_eq!(with(Accumulator::Compensated), [3.0, 1.0, 3.0]);
    assert_eq!(with(Accumulator::Exact), [3.0, 1.0, 3.0]);

    // The number decides what exact means: tangents too, quires for posits, one entry of a tape.
    let duals = [(3.0, 2.0), (1e100, 1e50), (-1e100, -1e50)].map(|(x, dx)| Dual::new(x, dx));
    let inputs = [Datum::vector(duals.to_vec()), Datum::vector(vec![Dual::lift(1.0); 3])];
    let found = code.run(&inputs, &limits(Accumulator::Exact)).unwrap();
    let [sum, _, dot] = [0, 1, 2].map(|i| found[i].as_real().unwrap());
    assert_eq!([sum.value, sum.tangent, dot.value, dot.tangent], [3.0, 2.0, 3.0, 2.0]);

    let posits = [1e8, 0.25, -1e8].map(Posit32::from_f64);
    let inputs = [Datum::vector(posits.to_vec()), Datum::vector(vec![Posit32::ONE; 3])];
    let found = code.run(&inputs, &limits(Accumulator::Exact)).unwrap();
    assert_eq!(found[2].as_real(), Some(Posit32::from_f64(0.25)));

    let mut tape = Tape::new();
    let mut record = tape
        .record(&x, |x: &[Var<f64>]| {
            let inputs = [Datum::vector(x.to_vec()), Datum::vector(vec![Var::lift(1.0); 3])];
            code.run(&inputs, &limits(Accumulator::Exact)).unwrap()[2].as_real().unwrap()
        })
        .unwrap();
    assert_eq!(record.values(), [3.0]);
    assert_eq!(record.reverse(&[1.0]).unwrap(), [1.0; 3]);
}

const REGRESSION: &str = "
param w: [features]
input x: [samples, features]
input y: [samples]
let miss = matmul(x, w) - y
loss e = dot(miss, miss) + 0.1 * sum(miss)
";

/// How many bit patterns loss and gradient have over orders of the samples.
fn patterns(how: Accumulator) -> usize {
    let program = compile(REGRESSION).program;
    let gradient = transform::grad(&program, &[0]).unwrap();
    let codes = [gradient.clone(), passes::simplify(&gradient)].map(|program| Code::new(&program));
    let samples = 120;
    let mut seen = BTreeSet::new();
    for stride in [1, 7, 11, 13, 17, 19] {
        let sample = |i: usize| {
            let i = i * stride % samples;
            Key::from_seed(9).gaussians(i as u64).map(|x| x * 2f64.powi((i % 13) as i32 * 4 - 24))
        };
        let rows: Vec<f64> = (0..samples).flat_map(|i| sample(i)[..3].to_vec()).collect();
        let targets: Vec<f64> = (0..samples).map(|i| sample(i)[3]).collect();
        let inputs = [Datum::vector(vec![0.3, -0.2, 0.7]), matrix(samples, &rows), Datum::vector(targets)];
        for code in &codes {
            let outputs = code.run(&inputs, &limits(how)).unwrap();
            let bits = outputs.iter().filter_map(Datum::as_vector).flatten().map(|x| x.to_bits());
            seen.insert(bits.collect::<Vec<u64>>());
        }
    }
    seen.len()
}

#[test]
fn the_gradient_of_a_program_does_not_depend_on_the_order_of_samples_if_sums_are_exact() {
    assert_eq!(patterns(Accumulator::Exact), 1);
    assert!(patterns(Accumulator::Naive) > 1, "the check could not fail");
}

/// The cotangent of a number that is broadcast over an array is a sum.
#[test]
fn cotangents_of_broadcast_numbers_are_added_up_as_asked_for() {
    let gradient =
        transform::grad(&compile("param b\ninput x: [3]\nloss e = sum(b * x)").program, &[0]).unwrap();
    let inputs = [Datum::real(2.0), Datum::vector(vec![3.0, 1e100, -1e100])];
    for program in [gradient.clone(), passes::simplify(&gradient)] {
        let slope = |how| Code::new(&program).run(&inputs, &limits(how)).unwrap().last().unwrap().as_real();
        assert_eq!(slope(Accumulator::Naive), Some(0.0));
        assert_eq!(slope(Accumulator::Exact), Some(3.0));
    }
}

/// In reverse code a zero wins over what is infinite, however sums are computed.
#[test]
fn zeros_win_in_every_way_of_adding_up() {
    let source = "param w: [2]\ninput x: [2, 2]\nlet y = matmul(x, w)\nloss e = y[1]";
    let gradient = transform::grad(&compile(source).program, &[0]).unwrap();
    let inputs = [Datum::vector(vec![1.0, 1.0]), matrix(2, &[f64::INFINITY, 2.0, 3.0, 4.0])];
    for how in [Accumulator::Naive, Accumulator::Compensated, Accumulator::Exact] {
        let found = Code::new(&gradient).run(&inputs, &limits(how)).unwrap();
        let gradient = found.last().unwrap().as_vector().unwrap();
        assert_eq!(gradient, [3.0, 4.0], "{how:?}");
    }
}
