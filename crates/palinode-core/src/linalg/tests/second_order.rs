//! Second derivatives by nesting: reverse over reverse, forward over reverse and forward over forward agree
//! with each other and with finite differences of the gradient.

use super::operations::{ALL, Operation, distance, dot, noise, slope};
use crate::linalg::LinearAlgebra;
use crate::{Dual, Error, Scalar, Tape, grad, hessian, hvp};

/// A scalar function of the operation's results that is not linear in them.
fn objective<T: LinearAlgebra>(operation: Operation, shape: (usize, usize), x: &[T]) -> T {
    let results = operation.run(shape, x).unwrap();
    let mut sum = <T as Scalar>::zero();
    for (i, &y) in results.iter().enumerate() {
        let weight = ((i + 1) as f64).sin();
        sum = sum + y * weight + y * y * (0.5 - weight);
    }
    sum
}

#[test]
fn every_operation_differentiates_twice() -> Result<(), Error> {
    for n in 1..=3 {
        for operation in ALL {
            for shape in operation.shapes(n) {
                let [noise, direction] = noise();
                let (x, v) = (operation.point(shape, &noise), operation.direction(shape, &direction));
                let gap = operation.smallest_gap(shape, &x);
                assert!(gap > 0.02, "{operation:?} {shape:?}: {gap}");
                let place = format!("{operation:?} {shape:?} gap {gap}");

                let (_, gradient, forward_over_reverse) = hvp(|x| objective(operation, shape, x), &x, &v)?;
                assert!(distance(&gradient, &grad(|x| objective(operation, shape, x), &x)?) < 1e-12 / gap);

                let full = hessian(|x| objective(operation, shape, x), &x)?;
                let times_v: Vec<f64> = full.iter().map(|row| dot(row, &v)).collect();
                assert!(distance(&times_v, &forward_over_reverse) < 1e-12 / gap.powi(3), "{place}");
                let mirrored = |i: usize, j: usize| (full[i][j] - full[j][i]).abs();
                let asymmetry = (0..x.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
                let asymmetry = asymmetry.fold(0.0, |largest: f64, (i, j)| largest.max(mirrored(i, j)));
                assert!(asymmetry < 1e-11 / gap.powi(3), "{place}: {asymmetry}");

                let twice: Vec<Dual<Dual<f64>>> =
                    x.iter().zip(&v).map(|(&x, &v)| Dual::new(Dual::new(x, v), Dual::lift(v))).collect();
                let curvature = objective(operation, shape, &twice).tangent.tangent;
                let expected = dot(&times_v, &v);
                let scale = 1.0 + expected.abs();
                assert!((curvature - expected).abs() < 1e-12 * scale / gap.powi(3), "{place}");

                let mut tape = Tape::new();
                let differences = {
                    let at = |t: f64| {
                        let moved: Vec<f64> = x.iter().zip(&v).map(|(x, v)| x + t * v).collect();
                        grad(|x| objective(operation, shape, x), &moved).unwrap()
                    };
                    slope(1e-3 * gap, at)
                };
                let error = distance(&differences, &times_v);
                assert!(error < 1e-8 / gap.powi(2), "{place}: differences are {error} off");
                // The same tape twice gives the same bits.
                let mut again = || {
                    let f = |x: &[crate::Var<f64>]| objective(operation, shape, x);
                    tape.value_and_grad(f, &x).unwrap()
                };
                assert_eq!(again(), again());
            }
        }
    }
    Ok(())
}
