//! Structured points and what lies near them: values that coincide or nearly do, pivots that nearly vanish.
//! What is given is right, the rest is refused.
//!
//! The closed forms are those of two by two matrices, or do not need the decomposition. They were found by a
//! search over every operation at sixty matrices, against differences in 75 digits.

use super::operations::{distance, matrix};
use crate::linalg::{self, LinearAlgebra};
use crate::{DoubleDouble, Dual, Error, Scalar, Tape, Var, grad, hessian};
use nalgebra::DMatrix;

/// `x` seeded twice along `v`.
fn twice(x: &[f64], v: &[f64]) -> Vec<Dual<Dual<f64>>> {
    x.iter().zip(v).map(|(&x, &v)| Dual::new(Dual::new(x, v), Dual::lift(v))).collect()
}

/// `U f(S) V^T` with `f(s) = s^power`, whose entry is the matrix's own for the power 1.
fn recomposed<T: LinearAlgebra>(x: &[T], power: i32) -> Result<DMatrix<T>, Error> {
    let svd = linalg::svd(&matrix(x))?;
    let n = svd.u.nrows();
    let scaled = DMatrix::from_fn(n, n, |i, j| svd.u[(i, j)] * Scalar::powi(svd.singular_values[j], power));
    linalg::matmul(&scaled, &svd.v_transposed)
}

/// `V W V^T`: the matrix itself.
fn recomposed_symmetric<T: LinearAlgebra>(x: &[T]) -> Result<DMatrix<T>, Error> {
    let eigen = linalg::symmetric_eigen(&matrix(x))?;
    let n = eigen.vectors.nrows();
    let scaled = DMatrix::from_fn(n, n, |i, j| eigen.vectors[(i, j)] * eigen.values[j]);
    linalg::matmul(&scaled, &eigen.vectors.transpose())
}

fn degenerate<T>(found: Result<T, Error>) -> bool {
    matches!(found, Err(Error::Degenerate { .. }))
}

#[test]
fn the_orthogonal_factor_of_a_singular_matrix_jumps() {
    // At diag(0, 1) the sign of the first entry of U V^T is that of the zero, and the slopes of the next two
    // have it, too. The last is a cosine of 0 either way.
    let last = grad(|x| recomposed(x, 0).unwrap()[3], &[0.0, 0.0, 0.0, 1.0]).unwrap();
    assert_eq!(last, [0.0; 4]);
    for (x, entries) in [([0.0, 0.0, 0.0, 1.0], 0..3), ([1.0, 2.0, 2.0, 4.0], 0..4)] {
        for entry in entries {
            let jump = grad(|x| recomposed(x, 0).unwrap()[entry], &x);
            assert!(matches!(jump, Err(Error::Singular { what: "svd", .. })), "{x:?} {entry}: {jump:?}");
        }
    }
}

#[test]
fn values_that_nearly_coincide() {
    let near = |gap: f64| [1.0, 0.0, 0.0, 0.0, 1.0 + gap, 0.0, 0.0, 0.0, 3.0];
    let v = [0.3, -0.5, 0.2, -0.5, 0.1, 0.7, 0.2, 0.7, -0.4];
    // Entry (0, 1) of the matrix, by way of its decomposition: the first derivative is one, the second zero.
    let of_svd = |gap: f64| grad(|x| recomposed(x, 1).unwrap()[3], &near(gap));
    let of_eigen = |gap: f64| grad(|x| recomposed_symmetric(x).unwrap()[3], &near(gap));
    let (mut first, mut halves) = ([0.0; 9], [0.0; 9]);
    first[3] = 1.0;
    (halves[1], halves[3]) = (0.5, 0.5);
    for gap in [1e-2, 1e-5, 1e-8] {
        assert!(distance(&of_svd(gap).unwrap(), &first) < 1e-6, "{gap}: {:?}", of_svd(gap));
        assert!(distance(&of_eigen(gap).unwrap(), &halves) < 1e-6, "{gap}: {:?}", of_eigen(gap));
    }
    for gap in [1e-11, 1e-12, 1e-13] {
        assert!(degenerate(of_svd(gap)) && degenerate(of_eigen(gap)), "{gap}");
    }
    for gap in [1e-2, 1e-3, 1e-4] {
        let x = twice(&near(gap), &v);
        let second = [recomposed(&x, 1).unwrap()[3], recomposed_symmetric(&x).unwrap()[3]];
        assert!(second.iter().all(|y| y.tangent.tangent.abs() < 1e-6), "{gap}: {second:?}");
    }
    for gap in [1e-6, 1e-8] {
        let x = twice(&near(gap), &v);
        assert!(degenerate(recomposed(&x, 1)) && degenerate(recomposed_symmetric(&x)), "{gap}");
        let mut tape = Tape::new();
        let seeded: Vec<Dual<f64>> = near(gap).iter().zip(&v).map(|(&x, &v)| Dual::new(x, v)).collect();
        let record = tape.record(&seeded, |x| recomposed_symmetric(x).unwrap()[3]);
        let swept = record.and_then(|mut record| record.reverse(&[Dual::lift(1.0)]).map(<[_]>::to_vec));
        assert!(degenerate(swept), "{gap}");
    }
    // The vector of the value that is apart has all its digits.
    let g = grad(
        |x| {
            let v = linalg::symmetric_eigen(&matrix(x)).unwrap().vectors;
            v[(0, 2)] * v[(2, 2)]
        },
        &near(1e-12),
    );
    let mut turned = [0.0; 9];
    (turned[2], turned[6]) = (0.25, 0.25);
    assert!(distance(&g.unwrap(), &turned) < 1e-12);
}

#[test]
fn pivots_that_nearly_vanish() {
    let v = [0.3, -0.5, 0.8, 0.1];
    for rest in [1e-8, 1e-12] {
        let x = [1.0, 2.0, 2.0, 4.0 + rest];
        // Of two columns, Q is known by the first alone, and U_11 by the elimination of the smaller pivot.
        let q = |x: &[Var<f64>]| linalg::qr(&matrix(x)).unwrap().q[0];
        let h = 5f64.powf(1.5);
        assert!(distance(&grad(q, &x).unwrap(), &[4.0 / h, -2.0 / h, 0.0, 0.0]) < 1e-12);
        let y = twice(&x, &v);
        let length = Scalar::hypot(y[0], y[1]);
        let qr = linalg::qr(&matrix(&y)).unwrap();
        let cross = (y[0] * y[3] - y[1] * y[2]) / length;
        let eliminated = y[2] - y[0] / y[1] * y[3];
        let lu = linalg::lu(&matrix(&y)).unwrap();
        // The orthogonal factor turns by the angle of (trace, difference of the other two).
        let (sum, difference) = (y[0] + y[3], y[2] - y[1]);
        let sine = difference / Scalar::hypot(sum, difference);
        let polar = linalg::polar(&matrix(&y)).unwrap();
        for (name, found, exact) in [
            ("q", qr.q[0], y[0] / length),
            ("r", qr.r[3], cross),
            ("u", lu.u[3], eliminated),
            ("polar", polar.q[2], sine),
        ] {
            let (found, exact) = (found.tangent.tangent, exact.tangent.tangent);
            assert!((found - exact).abs() < 1e-9, "{name} at {rest}: {found}, not {exact}");
        }
        let g = grad(|x| linalg::polar(&matrix(x)).unwrap().q[2], &x).unwrap();
        assert!(distance(&g, &[0.0, -1.0 / (5.0 + rest), 1.0 / (5.0 + rest), 0.0]) < 1e-12, "{g:?}");
    }
    // The pseudo-inverse of a regular matrix is its inverse, at every order.
    let y = twice(&[1.0, 2.0, 2.0, 4.0 + 1e-8], &v);
    let (ours, exact) = (linalg::pseudo_inverse(&matrix(&y)).unwrap(), linalg::inverse(&matrix(&y)).unwrap());
    assert!((ours[0].tangent.tangent / exact[0].tangent.tangent - 1.0).abs() < 1e-5);
}

#[test]
fn general_eigenvalues_that_coincide_as_a_whole() {
    let values = |x: &[Var<f64>]| linalg::eigenvalues(&matrix(x)).unwrap();
    let cofactors = |x: &[f64]| grad(|x| linalg::determinant(&matrix(x)).unwrap(), x).unwrap();
    for x in [
        [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        [2.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 5.0],
        [2.0, 0.0, 3.0, 0.0, 2.0, 1.0, 0.0, 0.0, 5.0],
    ] {
        let trace = grad(|x| values(x).re.iter().sum(), &x).unwrap();
        assert!(distance(&trace, DMatrix::<f64>::identity(3, 3).as_slice()) < 1e-13, "{x:?}: {trace:?}");
        let product = grad(|x| values(x).re.iter().fold(Var::lift(1.0), |p, &w| p * w), &x).unwrap();
        assert!(distance(&product, &cofactors(&x)) < 1e-12, "{x:?}: {product:?}");
        assert!(grad(|x| values(x).re[0], &x).is_err());
        // Where they part, they may do so as a pair.
        assert!(grad(|x| values(x).im[0], &x).is_err());
    }
    // With fewer vectors than values even a sum of squares moves otherwise than its terms say.
    for x in [&[1.0, 0.0, 1.0, 1.0][..], &[0.0, 0.0, 1.0, 0.0]] {
        assert!(grad(|x| values(x).re.iter().map(|&w| w * w + w).sum(), x).is_err(), "{x:?}");
        assert!(grad(|x| values(x).im[1], x).is_err());
    }
}

#[test]
fn one_eigenvalue_beside_others_that_coincide() {
    // diag(2, 2, 5), moved by V: 5 + t V_22 + t^2 (V_02^2 + V_12^2) / 3 + ..., and the vector turns by (V_02,
    // V_12, 0) / 3.
    let x = [2.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 5.0];
    let v = [0.3, -0.5, 0.2, -0.5, 0.1, 0.7, 0.2, 0.7, -0.4];
    let top = linalg::symmetric_eigenpair(&matrix(&twice(&x, &v)), 2).unwrap();
    assert!((top.value.value.tangent + 0.4).abs() < 1e-15);
    assert!((top.value.tangent.tangent - 2.0 * (0.04 + 0.49) / 3.0).abs() < 1e-14);
    let sign = top.vector[2].value.value;
    assert!((top.vector[1].value.tangent * sign - 0.7 / 3.0).abs() < 1e-15);
    let h = hessian(|x| linalg::symmetric_eigenpair(&matrix(x), 2).unwrap().value, &x).unwrap();
    let curvature: f64 =
        (0..9).flat_map(|i| (0..9).map(move |j| (i, j))).map(|(i, j)| v[i] * h[i][j] * v[j]).sum();
    assert!((curvature - 2.0 * (0.04 + 0.49) / 3.0).abs() < 1e-14, "{curvature}");
    // The others are refused, forward and by a sweep that asks for them.
    assert!(degenerate(linalg::symmetric_eigenpair(&matrix(&twice(&x, &v)), 1)));
    assert!(degenerate(grad(|x| linalg::symmetric_eigenpair(&matrix(x), 0).unwrap().value, &x)));
    let unused = grad(|x| linalg::symmetric_eigenpair(&matrix(x), 0).unwrap().value * 0.0 + x[0], &x);
    assert_eq!(unused.unwrap()[0], 1.0);
    let beyond = linalg::symmetric_eigenpair(&matrix(&x), 3).unwrap_err().to_string();
    assert!(
        beyond.starts_with("PAL0101: symmetric_eigenpair's matrix is 3 by 3; it must have more rows"),
        "{beyond}"
    );
}

/// What is left of the third column is rounding error, in whose direction nothing converges.
#[test]
fn singular_values_of_a_skew_matrix_in_double_double() {
    let skew = [0.0, 3.0, -1.0, -3.0, 0.0, 2.0, 1.0, -2.0, 0.0].map(DoubleDouble::from_f64);
    let svd = linalg::svd(&matrix(&skew)).unwrap();
    let root = DoubleDouble::from_f64(14.0).sqrt();
    for (s, exact) in svd.singular_values.iter().zip([root, root, DoubleDouble::from_f64(0.0)]) {
        assert!((*s - exact).glance().unwrap().abs() < 1e-29);
    }
    let product = linalg::matmul(&svd.u.transpose(), &svd.u).unwrap();
    for i in 0..3 {
        for j in 0..3 {
            let exact = DoubleDouble::from_int(i32::from(i == j));
            assert!((product[(i, j)] - exact).glance().unwrap().abs() < 1e-29, "{i} {j}");
        }
    }
}
