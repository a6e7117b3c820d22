//! nalgebra's own algorithms, unmodified, run on `Dual`: another way to the same tangents.

use super::operations::distance;
use crate::{Dual, linalg};
use nalgebra::DMatrix;

fn matrix(m: usize, n: usize, diagonal: f64) -> DMatrix<Dual<f64>> {
    DMatrix::from_fn(m, n, |i, j| {
        let k = (7 * i * i + 3 * j + i * j) as f64;
        Dual::new(
            0.7 * (k + 0.4).sin() + if i == j { diagonal * (1 + i) as f64 } else { 0.0 },
            (k * 1.7).cos(),
        )
    })
}

fn assert_same(what: &str, ours: &DMatrix<Dual<f64>>, theirs: &DMatrix<Dual<f64>>, tolerance: f64) {
    let values = distance(ours.map(|x| x.value).as_slice(), theirs.map(|x| x.value).as_slice());
    let tangents = distance(ours.map(|x| x.tangent).as_slice(), theirs.map(|x| x.tangent).as_slice());
    assert!(values < 1e-13, "{what}: values {values} apart");
    assert!(tangents < tolerance, "{what}: tangents {tangents} apart");
}

fn column(values: &nalgebra::DVector<Dual<f64>>) -> DMatrix<Dual<f64>> {
    DMatrix::from_column_slice(values.len(), 1, values.as_slice())
}

#[test]
fn direct_methods() {
    for n in 1..=6 {
        let a = matrix(n, n, 1.0);
        let b = matrix(n, 2, 0.0);
        assert_same("matmul", &linalg::matmul(&a, &b).unwrap(), &(&a * &b), 1e-13);
        assert_same("solve", &linalg::solve(&a, &b).unwrap(), &a.clone().lu().solve(&b).unwrap(), 1e-11);
        assert_same("inverse", &linalg::inverse(&a).unwrap(), &a.clone().try_inverse().unwrap(), 1e-11);
        let (ours, theirs) = (linalg::determinant(&a).unwrap(), a.determinant());
        assert_same("determinant", &DMatrix::repeat(1, 1, ours), &DMatrix::repeat(1, 1, theirs), 1e-12);
        let (ours, theirs) = (linalg::lu(&a).unwrap(), a.clone().lu());
        assert_same("l", &ours.l, &theirs.l(), 1e-12);
        assert_same("u", &ours.u, &theirs.u(), 1e-12);
        let square = &a * a.transpose();
        assert_same("cholesky", &linalg::cholesky(&square).unwrap(), &square.cholesky().unwrap().l(), 1e-11);
        for a in [a, matrix(n + 2, n, 1.0)] {
            let (ours, theirs) = (linalg::qr(&a).unwrap(), a.clone().qr());
            assert_same("q", &ours.q, &theirs.q(), 1e-11);
            assert_same("r", &ours.r, &theirs.r(), 1e-11);
        }
    }
}

#[test]
fn iterative_methods() {
    for n in 1..=6 {
        let a = matrix(n, n, 1.0);
        let symmetric = (&a + a.transpose()).map(|x| x * 0.5);
        let theirs = symmetric.clone().symmetric_eigen();
        let mut values = theirs.eigenvalues.clone();
        values.as_mut_slice().sort_by(|x, y| x.value.total_cmp(&y.value));
        let ours = linalg::symmetric_eigen(&symmetric).unwrap();
        assert_same("eigenvalues", &column(&ours.values), &column(&values), 1e-10);

        for a in [matrix(n, n, 1.0), matrix(n + 2, n, 1.0), matrix(n, n + 1, 1.0)] {
            let ours = linalg::svd(&a).unwrap();
            let theirs = a.clone().svd(true, true);
            assert_same(
                "singular values",
                &column(&ours.singular_values),
                &column(&theirs.singular_values),
                1e-10,
            );
        }
    }
}
