//! nalgebra's symmetric eigenvalues and singular values, differentiated unmodified; and what it does where
//! they coincide.
//!
//! Tolerance: as for the other decompositions, times the inverse of the smallest gap between eigenvalues
//! where vectors are involved. An iteration stops when off-diagonals are below epsilon; what it drops is of
//! second order.

use crate::check::{Function, Number, assert_gradient, constant, function, scattered};
use crate::third_nalgebra::{by_lower_triangle, symmetric};
use nalgebra::{DMatrix, Matrix2, Matrix3, Matrix5, SMatrix, SVector, SymmetricEigen};
use palinode::{Dual, Tape, Var, decision, grad};

const TOLERANCE: f64 = 1e-12;

fn weight<T: Number>(i: usize) -> T {
    constant([1.0, -2.0, 0.5, 3.0, 0.7][i])
}

/// The eigenvalues in ascending order, each with its vector.
fn sorted<T: Number>(eigen: SymmetricEigen<T, nalgebra::Const<5>>) -> Vec<(T, SVector<T, 5>)> {
    let mut pairs: Vec<_> =
        (0..5).map(|i| (eigen.eigenvalues[i], eigen.eigenvectors.column(i).into_owned())).collect();
    pairs.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap());
    pairs
}

function!(Eigenvalues: |x: &[T]| {
    let pairs = sorted(symmetric(x).symmetric_eigen());
    pairs.iter().enumerate().fold(constant(0.0), |sum, (i, pair)| sum + weight::<T>(i) * pair.0)
});

#[test]
fn distinct_eigenvalues() {
    // d lambda_i = v_i' dA v_i
    let x = scattered(15);
    let pairs = sorted(symmetric(&x).symmetric_eigen());
    let terms = pairs.iter().enumerate().map(|(i, (_, v))| v * v.transpose() * weight::<f64>(i));
    let expected = by_lower_triangle(&terms.sum::<Matrix5<f64>>());
    assert_gradient("eigenvalues", &Eigenvalues, &x, &expected, TOLERANCE);
}

function!(Eigenvector: |x: &[T]| {
    let pairs = sorted(symmetric(x).symmetric_eigen());
    let along = pairs[1].1.dot(&SVector::from_fn(|i, _| weight(i)));
    along * along
});

#[test]
fn eigenvectors_of_distinct_eigenvalues() {
    // d v_1 = sum over j of v_j (v_j' dA v_1) / (lambda_1 - lambda_j)
    let x = scattered(15);
    let pairs = sorted(symmetric(&x).symmetric_eigen());
    let a = SVector::<f64, 5>::from_fn(|i, _| weight(i));
    let (l1, v1) = pairs[1];
    let others = pairs.iter().enumerate().filter(|(j, _)| *j != 1);
    let terms = others.map(|(_, (l, v))| v * v1.transpose() * (2.0 * v1.dot(&a) * v.dot(&a) / (l1 - l)));
    let expected = by_lower_triangle(&terms.sum::<Matrix5<f64>>());
    assert_gradient("eigenvectors", &Eigenvector, &x, &expected, 1e-11);
}

/// Of a matrix of any shape.
struct SingularValues {
    rows: usize,
}
impl Function for SingularValues {
    fn call<T: Number>(&self, x: &[T]) -> T {
        let values = DMatrix::from_column_slice(self.rows, x.len() / self.rows, x).singular_values();
        values.iter().enumerate().fold(constant(0.0), |sum, (i, &value)| sum + weight::<T>(i) * value)
    }
}

// nalgebra has an algorithm of its own for these.
function!(SingularValues3x3: |x: &[T]| {
    let values = Matrix3::from_column_slice(x).singular_values();
    values.iter().enumerate().fold(constant(0.0), |sum, (i, &value)| sum + weight::<T>(i) * value)
});

#[test]
fn singular_values() {
    for (rows, columns) in [(5, 3), (3, 5), (5, 5), (3, 3)] {
        // d sigma_i = u_i' dA v_i
        let x: Vec<f64> = scattered(40).into_iter().skip(40 - rows * columns).collect();
        let svd = DMatrix::from_column_slice(rows, columns, &x).svd(true, true);
        let (u, v_t) = (svd.u.unwrap(), svd.v_t.unwrap());
        let terms = (0..u.ncols()).map(|i| u.column(i) * v_t.row(i) * weight::<f64>(i));
        let expected: DMatrix<f64> = terms.reduce(|sum, term| sum + term).unwrap();
        let name = format!("singular values {rows}x{columns}");
        assert_gradient(&name, &SingularValues { rows }, &x, expected.as_slice(), TOLERANCE);
        if (rows, columns) == (3, 3) {
            assert_gradient(
                "singular values of a Matrix3",
                &SingularValues3x3,
                &x,
                expected.as_slice(),
                TOLERANCE,
            );
        }
    }
}

/// Where the matrix already has zeros that are inputs, Householder steps meet columns of zeros.
#[test]
fn eigenvalues_of_a_diagonal_matrix_whose_zeros_are_inputs() {
    let mut x = vec![0.0; 15];
    for (position, value) in [0, 5, 9, 12, 14].into_iter().zip([1.0, 5.0, 2.0, 4.0, 3.0]) {
        x[position] = value;
    }
    let mut expected = vec![0.0; 15];
    for (position, rank) in [0, 5, 9, 12, 14].into_iter().zip([0, 4, 1, 3, 2]) {
        expected[position] = weight(rank);
    }
    // Second-order numbers see the corner of the Householder norm and are not asked; plain first-order ones
    // must agree.
    let close = |found: f64, expected: f64| (found - expected).abs() < 1e-14;
    let found = palinode::grad(|x| Eigenvalues.call(x), &x).unwrap();
    assert!(found.iter().zip(&expected).all(|(&found, &expected)| close(found, expected)), "{found:?}");
    for (i, &slope) in expected.iter().enumerate() {
        let point: Vec<Dual<f64>> = (0..15).map(|j| Dual::new(x[j], f64::from(u8::from(i == j)))).collect();
        assert!(close(Eigenvalues.call(&point).tangent, slope), "{i}");
    }
}

#[test]
fn singular_values_of_a_diagonal_matrix_whose_zeros_are_inputs() {
    let x = SMatrix::<f64, 4, 4>::from_diagonal(&SVector::<f64, 4>::new(4.0, 3.0, 2.0, 1.0));
    let expected = SMatrix::<f64, 4, 4>::from_diagonal(&SVector::<f64, 4>::from_fn(|i, _| weight(i)));
    let found = palinode::grad(|x| SingularValues { rows: 4 }.call(x), x.as_slice()).unwrap();
    assert!(
        found.iter().zip(&expected).all(|(found, expected)| (found - expected).abs() < 1e-14),
        "{found:?}"
    );
}

/// The eigenvalues of `I + t sigma_x` at `t = 0` move by +1 and -1. nalgebra's algorithm drops `t`, so it
/// says 0 and 0; the decision hook says that this happened on the edge.
#[test]
fn coinciding_eigenvalues_are_reported() {
    let (one, t) = (Dual::lift(1.0_f64), Dual::new(0.0, 1.0));
    let (values, seen) = decision::watch(|| Matrix2::new(one, t, t, one).symmetric_eigen().eigenvalues);
    assert_eq!((values[0].value, values[1].value), (1.0, 1.0));
    let moves_right = values[0].tangent.abs() == 1.0 && values[0].tangent == -values[1].tangent;
    assert!(moves_right || seen.smallest_margin == 0.0, "{values:?} {seen:?}");

    let mut tape = Tape::new();
    let (jacobian, seen) = decision::watch(|| {
        let record = tape
            .record(&[0.0], |x: &[Var<f64>]| {
                let one = Var::lift(1.0);
                let values = Matrix2::new(one, x[0], x[0], one).symmetric_eigen().eigenvalues;
                [values[0], values[1]]
            })
            .unwrap();
        assert_eq!(record.values(), [1.0, 1.0]);
        record.jacobian().unwrap()
    });
    let moves_right = jacobian[0][0].abs() == 1.0 && jacobian[0][0] == -jacobian[1][0];
    assert!(moves_right || seen.smallest_margin == 0.0, "{jacobian:?} {seen:?}");
}

/// A pair that coincides in a matrix without zeros: the decision is at the size of rounding.
#[test]
fn coinciding_eigenvalues_of_a_dense_matrix_are_reported() {
    // Q diag(1, 1, 3) Q' with Q a Householder reflection, moved by a symmetric V.
    let w = nalgebra::Vector3::new(1.0_f64, 2.0, 2.0) / 3.0;
    let q = Matrix3::identity() - w * w.transpose() * 2.0;
    let a = q * Matrix3::from_diagonal(&nalgebra::Vector3::new(1.0, 1.0, 3.0)) * q.transpose();
    let v = Matrix3::new(0.3, 0.7, -0.2, 0.7, -0.5, 0.4, -0.2, 0.4, 0.9);
    let moving = a.zip_map(&v, Dual::new);
    let (_, seen) = decision::watch(|| moving.symmetric_eigenvalues());
    assert!(seen.comparisons > 0 && seen.smallest_margin < 1e-14, "{seen:?}");
    // Symmetric functions are right all the same: the trace, and ln det by Cholesky.
    let log_det = moving.cholesky().unwrap().unpack().diagonal().map(|d| d.ln()).sum() * 2.0;
    assert!((log_det.tangent - (a.try_inverse().unwrap() * v).trace()).abs() < 1e-14);
}

/// A defective eigenvalue 1 beside a simple -1: near the point the eigenvalues come in another order, or
/// become complex on one side. What nalgebra gives here is the derivative of none.
#[test]
fn a_defective_eigenvalue_beside_a_simple_one_is_refused() {
    let columns = [1.0, 1.0, 1.0, 0.0, -1.0, 0.0, 0.0, 0.0, 1.0];
    for i in 0..3 {
        let one = |x: &[Var<f64>]| Matrix3::from_column_slice(x).eigenvalues().expect("real ones")[i];
        assert_eq!(grad(one, &columns).map_err(|error| error.code()), Err("PAL0119"), "{i}");
    }
}
