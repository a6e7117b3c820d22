//! The laws, for every operation, shape and random matrix: reverse is the adjoint of forward, forward over a
//! tape is forward, and both are what finite differences see.

use super::operations::{ALL, Operation, distance, dot, slope};
use crate::{Dual, DualN, Tape, Var, jvp};
use proptest::prelude::*;

/// More numbers than any operation of size 6 reads or makes.
const NUMBERS: usize = 160;

fn check(operation: Operation, shape: (usize, usize), noise: &[f64], direction: &[f64], weights: &[f64]) {
    let x = operation.point(shape, noise);
    let gap = operation.smallest_gap(shape, &x);
    if gap < 0.02 {
        return; // derivatives grow with 1 / gap, and finite differences see nothing there
    }
    let v = &operation.direction(shape, direction)[..];
    let value = operation.run(shape, &x).unwrap();
    let u = &weights[..value.len()];
    let place = || format!("{operation:?} {shape:?} gap {gap}");

    let (forward_value, forward) = jvp(|x: &[Dual<f64>]| operation.run(shape, x).unwrap(), &x, v).unwrap();
    assert_eq!(value, forward_value, "{}", place());

    let lanes: Vec<DualN<f64, 2>> = x.iter().zip(v).map(|(&x, &v)| DualN::new(x, [v, -2.0 * v])).collect();
    let results = operation.run(shape, &lanes).unwrap();
    let first: Vec<f64> = results.iter().map(|y| y.tangents[0]).collect();
    let second: Vec<f64> = results.iter().map(|y| -0.5 * y.tangents[1]).collect();
    assert_eq!((&first, &second), (&forward, &forward), "{}", place());

    let mut tape = Tape::new();
    let mut record = tape.record(&x, |x: &[Var<f64>]| operation.run(shape, x).unwrap()).unwrap();
    assert_eq!(record.values(), value, "{}", place());
    assert!(distance(&record.forward(v).unwrap(), &forward) < 1e-13, "{}", place());
    let cotangents = record.reverse(u).unwrap();
    let (left, right) = (dot(u, &forward), dot(cotangents, v));
    let scale = 1.0 + forward.iter().chain(cotangents).fold(0.0, |a: f64, b| a.max(b.abs()));
    assert!((left - right).abs() < 1e-13 * scale / gap, "{}: {left} {right}", place());

    let at = |t: f64| {
        let moved: Vec<f64> = x.iter().zip(v).map(|(x, v)| x + t * v).collect();
        operation.run(shape, &moved).unwrap()
    };
    // The error of the differences grows with a power of the step, which a wide gap must not make long.
    let narrow = gap.min(1.0);
    let differences = slope(1e-3 * narrow, at);
    let error = distance(&differences, &forward);
    assert!(error < 1e-9 / narrow, "{}: differences are {error} off", place());
}

fn numbers() -> impl Strategy<Value = Vec<f64>> {
    proptest::collection::vec(-1.0..1.0f64, NUMBERS)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reverse_is_the_adjoint_of_forward_which_is_what_differences_see(
        n in 1usize..=6, noise in numbers(), direction in numbers(), weights in numbers(),
    ) {
        for operation in ALL {
            for shape in operation.shapes(n) {
                check(operation, shape, &noise, &direction, &weights);
            }
        }
    }
}
