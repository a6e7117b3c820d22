//! Double-doubles and posits: the same operations, with the digits that the number has.

use super::operations::{ALL, noise};
use crate::linalg::{self, LinearAlgebra};
use crate::{DoubleDouble, Dual, Posit32, Scalar, Var};
use nalgebra::DMatrix;

/// `1 / (i + j + 1)`, of condition 1e7 at size 6: an `f64` solves with nine digits left.
fn hilbert<T: LinearAlgebra>(n: usize) -> DMatrix<T> {
    DMatrix::from_fn(n, n, |i, j| <T as Scalar>::one() / <T as Scalar>::from_int((i + j + 1) as i32))
}

fn largest(m: &DMatrix<DoubleDouble>) -> f64 {
    m.iter().map(|x| x.glance().unwrap().abs()).fold(0.0, f64::max)
}

#[test]
fn a_double_double_solves_factors_and_decomposes_to_thirty_digits() {
    let n = 6;
    let a = hilbert::<DoubleDouble>(n);
    let inverse = linalg::inverse(&a).unwrap();
    // The inverse of Hilbert's matrix has integer entries, up to 4e6; the condition is 1.5e7.
    let exact = |x: &DoubleDouble| (*x - x.round()).glance().unwrap().abs();
    let off = inverse.iter().map(exact).fold(0.0, f64::max);
    assert!(inverse[(0, 0)].round() == DoubleDouble::from_int(36) && off < 1e-18, "{off:e}");
    let b = DMatrix::from_fn(n, 1, |i, _| DoubleDouble::from_int(i as i32 - 2));
    let x = linalg::solve(&a, &b).unwrap();
    assert!(largest(&(linalg::matmul(&a, &x).unwrap() - &b)) < 1e-26);
    let l = linalg::cholesky(&a).unwrap();
    assert!(largest(&(linalg::matmul(&l, &l.transpose()).unwrap() - &a)) < 1e-31);
    let eigen = linalg::symmetric_eigen(&a).unwrap();
    let scaled = DMatrix::from_fn(n, n, |i, j| eigen.vectors[(i, j)] * eigen.values[j]);
    assert!(largest(&(linalg::matmul(&scaled, &eigen.vectors.transpose()).unwrap() - &a)) < 1e-29);
    let svd = linalg::svd(&a).unwrap();
    let scaled = DMatrix::from_fn(n, n, |i, j| svd.u[(i, j)] * svd.singular_values[j]);
    assert!(largest(&(linalg::matmul(&scaled, &svd.v_transposed).unwrap() - &a)) < 1e-29);
    let w = linalg::eigenvalues(&a).unwrap();
    for i in 0..n {
        assert!((w.re[i] - eigen.values[i]).glance().unwrap().abs() < 1e-29);
    }
    let qr = linalg::qr(&a).unwrap();
    assert!(largest(&(linalg::matmul(&qr.q, &qr.r).unwrap() - &a)) < 1e-30);
}

/// Every operation on a number and on derivatives over it, against `f64`.
fn agrees<S: LinearAlgebra + crate::Differentiable>(allowed: f64)
where
    Dual<S>: LinearAlgebra,
    Var<S>: LinearAlgebra,
{
    for operation in ALL {
        let shape = (3, 3);
        let [noise, direction] = noise();
        let (x, v) = (operation.point(shape, &noise), operation.direction(shape, &direction));
        let gap = operation.smallest_gap(shape, &x);
        let exact = operation
            .run(shape, &x.iter().zip(&v).map(|(&x, &v)| Dual::new(x, v)).collect::<Vec<_>>())
            .unwrap();
        let seeded: Vec<Dual<S>> = x
            .iter()
            .zip(&v)
            .map(|(&x, &v)| Dual::new(<S as Scalar>::from_f64(x), <S as Scalar>::from_f64(v)))
            .collect();
        let found = operation.run(shape, &seeded).unwrap();
        let size = exact.iter().fold(1.0, |a: f64, y| a.max(y.value.abs()).max(y.tangent.abs()));
        for (y, exact) in found.iter().zip(&exact) {
            let value = |x: S| x.glance().unwrap();
            let off = (value(y.value) - exact.value).abs().max((value(y.tangent) - exact.tangent).abs());
            assert!(off < allowed * size / gap.powi(2), "{operation:?}: {off:e} {exact:?}");
        }
    }
}

#[test]
fn every_operation_runs_on_double_doubles_and_posits() {
    agrees::<DoubleDouble>(1e-13);
    agrees::<Posit32>(1e-6);
    #[cfg(long)]
    agrees::<crate::Posit64>(1e-13);
}

#[test]
fn gradients_over_double_doubles() {
    // d ln det A / d A = A^-T, to thirty digits.
    let a = hilbert::<DoubleDouble>(3);
    let f = |x: &[Var<DoubleDouble>]| {
        linalg::log_determinant(&DMatrix::from_column_slice(3, 3, x)).unwrap().ln_abs
    };
    let g = crate::grad(f, a.as_slice()).unwrap();
    let inverse = [9, -36, 30, -36, 192, -180, 30, -180, 180];
    for (g, exact) in g.iter().zip(inverse) {
        assert!((*g - DoubleDouble::from_int(exact)).glance().unwrap().abs() < 1e-26);
    }
}
