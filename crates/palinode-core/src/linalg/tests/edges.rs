//! Sizes 0 and 1, no right-hand sides, constants among active matrices.

use super::operations::{ALL, Operation, distance};
use crate::linalg::{self, LinearAlgebra};
use crate::{Dual, Tape, Var, grad, jvp, value_and_grad};
use nalgebra::DMatrix;

#[test]
fn empty_matrices() {
    for operation in ALL {
        let plain = operation.run::<f64>((0, 0), &[]).unwrap();
        let (forward, _) = jvp(|x: &[Dual<f64>]| operation.run((0, 0), x).unwrap(), &[], &[]).unwrap();
        let mut tape = Tape::new();
        let record = tape.record(&[], |x: &[Var<f64>]| operation.run((0, 0), x).unwrap()).unwrap();
        assert_eq!((record.values(), forward.as_slice()), (&plain[..], &plain[..]));
        let expected: &[f64] = match operation {
            Operation::Determinant => &[1.0],
            Operation::LogDeterminant => &[0.0],
            _ => &[],
        };
        assert_eq!(plain, expected, "{operation:?}");
    }
    let tall = DMatrix::from_vec(3, 0, Vec::<Dual<f64>>::new());
    assert_eq!(linalg::qr(&tall).unwrap().q.shape(), (3, 0));
    assert_eq!(linalg::svd(&tall).unwrap().u.shape(), (3, 0));
    let product = linalg::matmul(&tall, &tall.transpose()).unwrap();
    assert!(product.shape() == (3, 3) && product.iter().all(|x| x.value == 0.0));
}

#[test]
fn no_right_hand_sides() {
    let mut tape = Tape::new();
    let mut record = tape
        .record(&[2.0, 0.0, 1.0, 3.0], |x| {
            let a = DMatrix::from_column_slice(2, 2, x);
            let solution = linalg::solve(&a, &DMatrix::from_vec(2, 0, vec![])).unwrap();
            assert_eq!(solution.shape(), (2, 0));
            linalg::determinant(&a).unwrap()
        })
        .unwrap();
    assert_eq!(record.reverse(&[1.0]).unwrap(), [3.0, -1.0, 0.0, 2.0]);
}

#[test]
fn one_by_one() {
    let at = |f: fn(&DMatrix<Var<f64>>) -> Var<f64>, x: f64| grad(|x| f(&dmatrix![x[0]]), &[x]).unwrap()[0];
    assert_eq!(at(|a| linalg::inverse(a).unwrap()[0], 4.0), -0.0625);
    assert_eq!(at(|a| linalg::determinant(a).unwrap(), 4.0), 1.0);
    assert_eq!(at(|a| linalg::log_determinant(a).unwrap().ln_abs, -4.0), -0.25);
    assert_eq!(at(|a| linalg::cholesky(a).unwrap()[0], 4.0), 0.25);
    assert_eq!(at(|a| linalg::lu(a).unwrap().u[0], 4.0), 1.0);
    assert_eq!(at(|a| linalg::qr(a).unwrap().r[0], -4.0), -1.0);
    assert_eq!(at(|a| linalg::symmetric_eigen(a).unwrap().values[0], -4.0), 1.0);
    assert_eq!(at(|a| linalg::svd(a).unwrap().singular_values[0], -4.0), -1.0);
    assert_eq!(at(|a| linalg::symmetric_eigen(a).unwrap().vectors[0], -4.0), 0.0);
}

#[test]
fn constants_are_no_inputs() {
    let constant = dmatrix![1.0, 2.0; 3.0, 5.0].map(Var::lift);
    let mut tape = Tape::new();
    let record = tape
        .record(&[1.0, 2.0], |x| {
            let b = DMatrix::from_column_slice(2, 1, x);
            let x = linalg::solve(&constant, &b).unwrap();
            linalg::matmul(&constant, &x).unwrap().as_slice().to_vec()
        })
        .unwrap();
    let jacobian = record.jacobian().unwrap();
    for (i, row) in jacobian.iter().enumerate() {
        for (j, slope) in row.iter().enumerate() {
            assert!((slope - f64::from(u8::from(i == j))).abs() < 1e-14);
        }
    }
    // Two inputs, two results of solve, two of matmul.
    assert_eq!(record.size().nodes, 6);
    assert_eq!(linalg::determinant(&DMatrix::repeat(2, 2, Var::lift(1.0))).unwrap().value(), 0.0);
}

#[test]
fn an_operation_is_one_entry_of_the_table() {
    let mut tape = Tape::traced();
    let record = tape
        .record(&[4.0, 1.0, 1.0, 3.0], |x| {
            linalg::cholesky(&DMatrix::from_column_slice(2, 2, x)).unwrap()[(1, 1)]
        })
        .unwrap();
    // Four inputs and the three entries of the triangle.
    assert_eq!(record.size().nodes, 7);
    assert!(record.table().to_string().contains("cholesky"));
}

#[test]
fn single_precision_inside() {
    fn weighed<T: LinearAlgebra>(operation: Operation, x: &[T]) -> T {
        let results = operation.run((2, 2), x).unwrap();
        results.into_iter().enumerate().map(|(i, y)| y * (i + 1) as f64).sum()
    }
    let x = [4.0f32, 1.0, 1.0, 3.0];
    let plain = [4.0f64, 1.0, 1.0, 3.0];
    for operation in ALL.into_iter().filter(|operation| operation.inputs((2, 2)) == 4) {
        let single = value_and_grad(|x: &[Var<f32>]| weighed(operation, x), &x).unwrap();
        let double = value_and_grad(|x: &[Var<f64>]| weighed(operation, x), &plain).unwrap();
        assert!((double.0 - weighed(operation, &plain)).abs() < 1e-13);
        assert!((f64::from(single.0) - double.0).abs() < 1e-5 * (1.0 + double.0.abs()), "{operation:?}");
        let widened: Vec<f64> = single.1.iter().map(|&x| f64::from(x)).collect();
        assert!(distance(&widened, &double.1) < 1e-5, "{operation:?} {widened:?} {:?}", double.1);
    }
}
