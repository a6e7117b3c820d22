//! The oracles' closed forms: d det = det tr(A^-1 dA), d A^-1 = -A^-1 dA A^-1, d ln det = tr(A^-1 dA); and
//! factors that multiply back to the matrix.

use super::operations::{distance, matrix};
use crate::linalg::{self, Triangle};
use crate::{Dual, grad};
use nalgebra::DMatrix;

fn hilbert(n: usize) -> DMatrix<f64> {
    DMatrix::from_fn(n, n, |i, j| 1.0 / (1 + i + j) as f64)
}

fn matrices() -> Vec<DMatrix<f64>> {
    vec![
        dmatrix![-2.5],
        dmatrix![0.0, 2.0; 3.0, 1.0],
        dmatrix![1.0, 2.0, 0.5; -1.0, 0.25, 3.0; 2.0, 1.0, 1.0],
        dmatrix![0.0, 0.0, 1.0, 2.0; 4.0, 0.0, 0.0, 1.0; 0.0, 3.0, 0.0, 0.0; 1.0, 0.0, 5.0, 0.5],
    ]
}

#[test]
fn determinant_inverse_and_logarithm() {
    for a in matrices() {
        let n = a.nrows();
        let inverse = a.clone().try_inverse().unwrap();
        let det = a.determinant();
        let expected: Vec<f64> = (inverse.transpose() * det).as_slice().to_vec();
        let gradient = grad(|x| linalg::determinant(&matrix(x)).unwrap(), a.as_slice()).unwrap();
        assert!(distance(&gradient, &expected) < 1e-14, "{gradient:?} {expected:?}");

        let gradient = grad(|x| linalg::log_determinant(&matrix(x)).unwrap().ln_abs, a.as_slice()).unwrap();
        assert!(distance(&gradient, inverse.transpose().as_slice()) < 1e-14);
        let found = linalg::log_determinant(&a).unwrap();
        assert!((found.sign * found.ln_abs.exp() - det).abs() < 1e-14 * det.abs());

        let da = DMatrix::from_fn(n, n, |i, j| (1 + i) as f64 - 0.7 * j as f64);
        let dual = linalg::inverse(&a.zip_map(&da, Dual::new)).unwrap();
        let expected = -(&inverse * &da * &inverse);
        assert!(distance(dual.map(|x| x.tangent).as_slice(), expected.as_slice()) < 1e-14);
        let dual = linalg::determinant(&a.zip_map(&da, Dual::new)).unwrap();
        assert!((dual.tangent - det * (&inverse * &da).trace()).abs() < 1e-13 * det.abs());
    }
}

#[test]
fn ill_conditioned_matrices_stay_as_accurate_as_their_condition_allows() {
    // Condition numbers 1.5e4, 1.5e7, 1.5e10.
    for (n, condition) in [(4, 1.6e4), (6, 1.5e7), (8, 1.6e10)] {
        let a = hilbert(n);
        // d ln det / dA is the inverse of the Hilbert matrix, whose entries are integers known exactly.
        let binomial = |n: usize, k: usize| (0..k).fold(1.0, |b, i| b * (n - i) as f64 / (i + 1) as f64);
        let exact = DMatrix::from_fn(n, n, |i, j| {
            let sign = if (i + j) % 2 == 0 { 1.0 } else { -1.0 };
            let (p, q) = (binomial(n + i, n - j - 1), binomial(n + j, n - i - 1));
            sign * (i + j + 1) as f64 * p * q * binomial(i + j, i).powi(2)
        });
        let gradient = grad(|x| linalg::log_determinant(&matrix(x)).unwrap().ln_abs, a.as_slice()).unwrap();
        let error = distance(&gradient, exact.as_slice());
        assert!(error < condition * f64::EPSILON, "n = {n}: {error}");

        // The same through the Cholesky factor: ln det = 2 sum ln L_ii.
        let through_cholesky = grad(
            |x| {
                let l = linalg::cholesky(&matrix(x)).unwrap();
                (0..n).map(|i| 2.0 * l[(i, i)].ln()).sum()
            },
            a.as_slice(),
        )
        .unwrap();
        let error = distance(&through_cholesky, exact.as_slice());
        assert!(error < condition * f64::EPSILON, "n = {n}: {error}");
    }
}

#[test]
fn factors_multiply_back() {
    for a in matrices() {
        let n = a.nrows();
        let lu = linalg::lu(&a).unwrap();
        let permuted = DMatrix::from_fn(n, n, |i, j| a[(lu.permutation[i], j)]);
        assert!((&lu.l * &lu.u - permuted).amax() < 1e-14);

        let tall = DMatrix::from_fn(n + 2, n, |i, j| if i < n { a[(i, j)] } else { (i * j) as f64 - 0.5 });
        let qr = linalg::qr(&tall).unwrap();
        assert!((&qr.q * &qr.r - &tall).amax() < 1e-14);
        assert!((qr.q.transpose() * &qr.q - DMatrix::identity(n, n)).amax() < 1e-14);
        assert!(qr.r.diagonal().min() > 0.0);

        for m in [tall.clone(), tall.transpose(), a.clone()] {
            let svd = linalg::svd(&m).unwrap();
            let s = DMatrix::from_diagonal(&svd.singular_values);
            assert!((&svd.u * s * &svd.v_transposed - &m).amax() < 1e-14);
            assert!(svd.singular_values.as_slice().is_sorted_by(|x, y| x >= y));
        }

        let symmetric = (&a + a.transpose()) / 2.0;
        let eigen = linalg::symmetric_eigen(&symmetric).unwrap();
        let w = DMatrix::from_diagonal(&eigen.values);
        assert!((&eigen.vectors * w * eigen.vectors.transpose() - symmetric).amax() < 1e-14);
        assert!(eigen.values.as_slice().is_sorted());

        let square = &a * a.transpose();
        let l = linalg::cholesky(&square).unwrap();
        assert!((&l * l.transpose() - &square).amax() < 1e-13);
        let b = DMatrix::from_fn(n, 3, |i, j| i as f64 - j as f64);
        let z = linalg::solve_triangular(&l, Triangle::Lower, &b).unwrap();
        assert!((&l * z - b).amax() < 1e-13);
    }
}

#[test]
fn the_symmetric_operations_read_both_triangles_evenly() {
    let lopsided = dmatrix![4.0, 2.0001220703125; 1.9998779296875, 5.0]; // 2 + 2^-13 and 2 - 2^-13
    let even = dmatrix![4.0, 2.0; 2.0, 5.0];
    assert_eq!(linalg::cholesky(&lopsided).unwrap(), linalg::cholesky(&even).unwrap());
    assert_eq!(
        linalg::symmetric_eigenvalues(&lopsided).unwrap(),
        linalg::symmetric_eigenvalues(&even).unwrap()
    );
}

#[test]
fn differences_in_single_entries_are_the_gradient() {
    let a = dmatrix![4.0, 1.0, 0.5; 1.0, 3.0, -0.75; 0.5, -0.75, 2.0];
    let l = |x: &[f64]| linalg::cholesky(&matrix(x)).unwrap()[(2, 1)];
    let w = |x: &[f64]| linalg::symmetric_eigenvalues(&matrix(x)).unwrap()[1];
    let by_l = grad(|x| linalg::cholesky(&matrix(x)).unwrap()[(2, 1)], a.as_slice());
    let by_w = grad(|x| linalg::symmetric_eigenvalues(&matrix(x)).unwrap()[1], a.as_slice());
    for (f, g) in [(&l as &dyn Fn(&[f64]) -> f64, by_l.unwrap()), (&w, by_w.unwrap())] {
        for k in 0..9 {
            let moved = |t: f64| {
                let mut x = a.as_slice().to_vec();
                x[k] += t;
                f(&x)
            };
            let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!((difference - g[k]).abs() < 1e-9, "{k}: {difference} {}", g[k]);
        }
    }
}

/// Rank deficient, repeated, graded, bidiagonal and integer matrices: what nalgebra's own SVD gets wrong
/// without saying so.
#[test]
fn singular_values_of_awkward_matrices() {
    let mut random = palinode_num::Draws::new(12345);
    for round in 0..1200 {
        let (kind, n) = (round % 6, 1 + round / 6 % 6);
        let m = n + round / 36 % 4;
        let mut noise = |m: usize, n: usize| DMatrix::from_fn(m, n, |_, _| random.signed());
        let a = match kind {
            0 => noise(m, n),
            1 => noise(m, n.div_ceil(2)) * noise(n.div_ceil(2), n),
            2 => noise(m, n).map(|x| (2.5 * x).trunc()),
            3 => noise(m, n).qr().q() * noise(n, n).qr().q(),
            4 => {
                let mut graded = noise(m, n);
                graded.column_iter_mut().enumerate().for_each(|(j, mut c)| c *= 10f64.powi(-60 * j as i32));
                graded
            }
            _ => noise(m, n)
                .map_with_location(|i, j, x| if i == j || i + 1 == j { (2.5 * x).trunc() } else { 0.0 }),
        };
        for a in [a.transpose(), a] {
            let linalg::Svd { u, singular_values, v_transposed } = linalg::svd(&a).unwrap();
            let k = singular_values.len();
            let tolerance = 30.0 * f64::EPSILON;
            let product = &u * DMatrix::from_diagonal(&singular_values) * &v_transposed;
            assert!((product - &a).amax() <= tolerance * a.amax(), "{a}");
            assert!((u.transpose() * &u - DMatrix::identity(k, k)).amax() < tolerance, "{a} {u}");
            assert!(
                (&v_transposed * v_transposed.transpose() - DMatrix::identity(k, k)).amax() < tolerance,
                "{a}"
            );
            assert!(singular_values.as_slice().is_sorted_by(|x, y| x >= y) && singular_values.min() >= 0.0);
        }
    }
}
