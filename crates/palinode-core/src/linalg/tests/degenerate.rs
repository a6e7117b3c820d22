//! Spectra in which values coincide: forward gives directional derivatives, reverse gives what exists and
//! refuses the rest.

use super::operations::{distance, matrix, slope};
use crate::linalg::{self, LinearAlgebra};
use crate::{Dual, DualN, Error, Tape, Var, grad, hessian, jacobian};
use nalgebra::{DMatrix, DVector};

/// `Q diag(1, 1, 2, 2, 2) Q^T` for a fixed orthogonal `Q`: coincidences that rounding has touched.
fn two_runs() -> DMatrix<f64> {
    let noise = DMatrix::from_fn(5, 5, |i, j| ((3 * i + 7 * j * j + 1) as f64).sin());
    let q = noise.qr().q();
    let w = DMatrix::from_diagonal(&DVector::from_vec(vec![1.0, 1.0, 2.0, 2.0, 2.0]));
    &q * w * q.transpose()
}

type Values<T> = fn(&DMatrix<T>) -> Result<DVector<T>, Error>;

/// Forward tangents of these values are the slopes of a step forwards: one-sided differences with the first
/// error term removed.
fn moves_as_a_step_does(
    a: &DMatrix<f64>,
    da: &DMatrix<f64>,
    forward: Values<Dual<f64>>,
    plain: Values<f64>,
    allowed: f64,
) {
    let forward = forward(&a.zip_map(da, Dual::new)).unwrap().map(|w| w.tangent);
    let at = |t: f64| plain(&(a + da * t)).unwrap();
    let (h, start) = (1e-5, at(0.0));
    let differences = (at(h) - &start) * (2.0 / h) - (at(2.0 * h) - &start) / (2.0 * h);
    assert!(distance(forward.as_slice(), differences.as_slice()) < allowed, "{forward} {differences}");
}

fn is_degenerate(error: Result<impl Sized, Error>, kind: &str) -> bool {
    matches!(error, Err(Error::Degenerate { what, .. }) if what == kind)
}

#[test]
fn forward_eigenvalues_of_a_perturbed_identity() {
    let tangents = |da: DMatrix<f64>| {
        let a = DMatrix::identity(da.nrows(), da.nrows()).zip_map(&da, Dual::new);
        linalg::symmetric_eigenvalues(&a).unwrap().map(|w| w.tangent).as_slice().to_vec()
    };
    assert_eq!(tangents(dmatrix![0.0, 1.0; 1.0, 0.0]), [-1.0, 1.0]);
    assert_eq!(tangents(dmatrix![0.0, -1.0; -1.0, 0.0]), [-1.0, 1.0]);
    // A unit vector with rounded entries, twice.
    let both = tangents(dmatrix![3.0, 0.0; 0.0, 3.0]);
    assert!(distance(&both, &[3.0, 3.0]) <= 8.0 * f64::EPSILON, "{both:?}");
    assert_eq!(tangents(dmatrix![2.0]), [2.0]);
}

#[test]
fn forward_eigenvalues_agree_with_a_step_forwards() {
    let a = two_runs();
    let da = DMatrix::from_fn(5, 5, |i, j| ((i + 2 * j) as f64).cos());
    moves_as_a_step_does(&a, &da, linalg::symmetric_eigenvalues, linalg::symmetric_eigenvalues, 1e-8);
}

#[test]
fn vectors_of_coinciding_eigenvalues_have_no_tangent() {
    let t = Dual::new(0.0, 1.0);
    let one = Dual::lift(1.0);
    assert!(is_degenerate(linalg::symmetric_eigen(&dmatrix![one, t; t, one]), "eigenvalues"));
    assert!(linalg::symmetric_eigen(&dmatrix![one, Dual::lift(0.0); Dual::lift(0.0), one]).is_ok());
    let [x, y] = DualN::variables([0.0, 0.0]);
    let one = DualN::lift(1.0);
    assert!(is_degenerate(linalg::symmetric_eigenvalues(&dmatrix![one + x, y; y, one]), "eigenvalues"));
}

#[test]
fn reverse_refuses_one_of_several_and_gives_symmetric_functions() {
    for a in [DMatrix::identity(3, 3), two_runs(), DMatrix::repeat(4, 4, 0.0)] {
        let x = a.as_slice();
        let n = a.nrows();
        for i in [0, n - 1] {
            let one = grad(|x| linalg::symmetric_eigen(&matrix(x)).unwrap().values[i], x);
            assert!(is_degenerate(one, "eigenvalues"));
            let one = grad(|x| linalg::symmetric_eigenvalues(&matrix(x)).unwrap()[i], x);
            assert!(is_degenerate(one, "eigenvalues"));
        }
        let vector = grad(|x| linalg::symmetric_eigen(&matrix(x)).unwrap().vectors[(1, 0)], x);
        assert!(is_degenerate(vector, "eigenvalues"));

        let trace = grad(|x| linalg::symmetric_eigen(&matrix(x)).unwrap().values.iter().sum(), x).unwrap();
        assert!(distance(&trace, DMatrix::<f64>::identity(n, n).as_slice()) < 1e-14);
        let squares =
            grad(|x| linalg::symmetric_eigenvalues(&matrix(x)).unwrap().iter().map(|&w| w * w * w).sum(), x)
                .unwrap();
        assert!(distance(&squares, (&a * &a * 3.0).as_slice()) < 1e-13);
    }
}

#[test]
fn a_run_that_is_not_asked_for_does_not_disturb() {
    // The largest eigenvalue is single although the other two coincide.
    let a = dmatrix![2.0, 1.0, 1.0; 1.0, 2.0, 1.0; 1.0, 1.0, 2.0];
    let g = grad(|x| linalg::symmetric_eigenvalues(&matrix(x)).unwrap()[2], a.as_slice()).unwrap();
    assert!(distance(&g, &[1.0 / 3.0; 9]) < 1e-14);
    let vector = grad(
        |x| {
            let v = linalg::symmetric_eigen(&matrix(x)).unwrap().vectors;
            v[(0, 2)] * v[(1, 2)]
        },
        a.as_slice(),
    )
    .unwrap();
    // d v = (3 - A)^+ dA v with the pseudoinverse (I - v v^T) / 3 where v = 1 / sqrt(3).
    let projector = DMatrix::<f64>::identity(3, 3) - DMatrix::repeat(3, 3, 1.0 / 3.0);
    let expected = DMatrix::from_fn(3, 3, |i, j| {
        let one = |i: usize| (projector[(0, i)] + projector[(1, i)]) / 9.0;
        (one(i) + one(j)) / 2.0
    });
    assert!(distance(&vector, expected.as_slice()) < 1e-14, "{vector:?} {expected}");
}

#[test]
fn sweeps_that_must_be_linear_refuse_what_is_not() {
    let x = [1.0, 0.0, 0.0, 1.0];
    let f = |x: &[Var<f64>]| linalg::symmetric_eigenvalues(&matrix(x)).unwrap().as_slice().to_vec();
    assert!(is_degenerate(jacobian(f, &x), "eigenvalues"));
    let mut tape = Tape::new();
    let record = tape.record(&x, f).unwrap();
    assert!(is_degenerate(record.forward(&[1.0, 0.0, 0.0, 0.0]), "eigenvalues"));
    assert_eq!(record.forward(&[2.0, 0.0, 0.0, 2.0]).unwrap(), [2.0, 2.0]);
}

#[test]
fn second_derivatives_at_coinciding_eigenvalues_are_refused_or_right() {
    let x = [1.0, 0.0, 0.0, 1.0];
    let trace = hessian(|x| linalg::symmetric_eigenvalues(&matrix(x)).unwrap().iter().sum(), &x);
    assert_eq!(trace.unwrap(), vec![vec![0.0; 4]; 4]);
    let squares =
        hessian(|x| linalg::symmetric_eigenvalues(&matrix(x)).unwrap().iter().map(|&w| w * w).sum(), &x);
    assert!(is_degenerate(squares, "eigenvalues"));
    // Weights that are equal but could move apart: their mixed derivatives do not exist.
    let weighted = hessian(
        |x| {
            let w = linalg::symmetric_eigenvalues(&matrix(&x[..4])).unwrap();
            w[0] * x[4] + w[1] * x[5]
        },
        &[1.0, 0.0, 0.0, 1.0, 2.0, 2.0],
    );
    assert!(is_degenerate(weighted, "eigenvalues"));
}

#[test]
fn coinciding_singular_values() {
    let a = two_runs();
    let x = a.as_slice();
    let one = grad(|x| linalg::svd(&matrix(x)).unwrap().singular_values[0], x);
    assert!(is_degenerate(one, "singular values"));
    let vector = grad(|x| linalg::svd(&matrix(x)).unwrap().u[(0, 0)], x);
    assert!(is_degenerate(vector, "singular values"));
    // The sum, whose gradient is U V^T: the identity, since the matrix is positive definite.
    let sum = grad(|x| linalg::singular_values(&matrix(x)).unwrap().iter().sum(), x).unwrap();
    assert!(distance(&sum, DMatrix::<f64>::identity(5, 5).as_slice()) < 1e-13);

    // The rotation U V^T does not depend on the basis of a run. At the identity its derivative is the
    // antisymmetric part.
    let polar = grad(
        |x| {
            let svd = linalg::svd(&matrix(x)).unwrap();
            linalg::matmul(&svd.u, &svd.v_transposed).unwrap()[(0, 1)]
        },
        &[1.0, 0.0, 0.0, 1.0],
    )
    .unwrap();
    assert!(distance(&polar, &[0.0, -0.5, 0.5, 0.0]) < 1e-15, "{polar:?}");

    let da = DMatrix::from_fn(5, 5, |i, j| ((i + 2 * j) as f64).cos());
    moves_as_a_step_does(&a, &da, linalg::singular_values, linalg::singular_values, 1e-8);
}

#[test]
fn zero_singular_values() {
    // Rank 1, in all three shapes.
    for (m, n) in [(3, 3), (4, 2), (2, 4)] {
        let a = DMatrix::from_fn(m, n, |i, j| (i + 1) as f64 * (j as f64 - 0.5));
        let matrix = |x: &[Var<f64>]| DMatrix::from_column_slice(m, n, x);
        let last = m.min(n) - 1;
        let small = grad(|x| linalg::singular_values(&matrix(x)).unwrap()[last], a.as_slice());
        assert!(small.is_err());
        // On the longer side the vectors that belong to zero are any that fill the space up.
        let vector = |x: &[Var<f64>]| {
            let svd = linalg::svd(&matrix(x)).unwrap();
            if m >= n { svd.u[(2, last)] } else { svd.v_transposed[(last, 2)] }
        };
        assert!(grad(vector, a.as_slice()).is_err(), "{m} x {n}");
        // On a shorter side of 2, the one vector that is left has a derivative.
        if m == 2 {
            fn product<T: LinearAlgebra>(a: &DMatrix<T>) -> T {
                let u = linalg::svd(a).unwrap().u;
                u[(0, 1)] * u[(1, 1)]
            }
            let gradient = grad(|x| product(&matrix(x)), a.as_slice()).unwrap();
            for i in 0..a.len() {
                let moved = |t: f64| {
                    let mut x = a.as_slice().to_vec();
                    x[i] += t;
                    vec![product(&DMatrix::from_column_slice(m, n, &x))]
                };
                let difference = slope(1e-3, moved)[0];
                assert!((difference - gradient[i]).abs() < 1e-10, "{difference} {gradient:?}");
            }
        }
        // The only one that is not zero is the length of the matrix.
        let large = grad(|x| linalg::svd(&matrix(x)).unwrap().singular_values[0], a.as_slice()).unwrap();
        assert!(distance(&large, (&a / a.norm()).as_slice()) < 1e-14);

        let da = DMatrix::from_fn(m, n, |i, j| ((i + 2 * j * j) as f64).cos());
        moves_as_a_step_does(&a, &da, linalg::singular_values, linalg::singular_values, 1e-7);
    }
}
