//! nalgebra's Cholesky, LU and QR, differentiated unmodified.
//!
//! Every expected gradient is a closed form in plain `f64`. Tolerances: a few hundred operations, each good
//! to 1.1e-16, on matrices with a condition number below 100, give errors below 1e-13 relative to the largest
//! entry; 1e-12 is asked for.

use crate::check::{
    Function, Number, assert_gradient, assert_hessian_product, constant, function, scattered,
};
use nalgebra::{DMatrix, DVector, Matrix5, SMatrix, SVector, UnitQuaternion, Vector3};
use palinode::{decision, grad};

const TOLERANCE: f64 = 1e-12;

/// A symmetric matrix from its lower triangle, by columns.
pub(crate) fn symmetric<T: Number>(lower: &[T]) -> Matrix5<T> {
    let mut next = lower.iter();
    let mut m = Matrix5::from_element(constant(0.0));
    for j in 0..5 {
        for i in j..5 {
            m[(i, j)] = *next.next().unwrap();
            m[(j, i)] = m[(i, j)];
        }
    }
    m
}

/// The gradient by the lower triangle where the gradient by the whole symmetric matrix is `g`.
pub(crate) fn by_lower_triangle(g: &Matrix5<f64>) -> Vec<f64> {
    (0..5).flat_map(|j| (j..5).map(move |i| if i == j { g[(i, i)] } else { g[(i, j)] + g[(j, i)] })).collect()
}

/// The lower triangle of a positive definite matrix.
fn positive_definite() -> Vec<f64> {
    let b = Matrix5::from_column_slice(&scattered(25));
    let a = b * b.transpose() + Matrix5::identity() * 0.5;
    (0..5).flat_map(|j| (j..5).map(move |i| a[(i, j)])).collect()
}

fn general<T: Number>(x: &[T]) -> Matrix5<T> {
    Matrix5::from_column_slice(x)
}

/// A well-conditioned matrix without structure.
fn invertible() -> Vec<f64> {
    (Matrix5::from_column_slice(&scattered(25)) + Matrix5::identity() * 2.0).as_slice().to_vec()
}

function!(LogDetByCholesky: |x: &[T]| {
    let factor = symmetric(x).cholesky().expect("positive definite").unpack();
    factor.diagonal().iter().fold(constant::<T>(0.0), |sum, &d| sum + ln(d)) * constant(2.0)
});

/// `ln` is in two of `Number`'s traits; this names one.
fn ln<T: Number>(x: T) -> T {
    num_traits::Float::ln(x)
}

#[test]
fn cholesky_log_determinant() {
    // d ln det A = tr(A^-1 dA)
    let x = positive_definite();
    let inverse = symmetric(&x).try_inverse().unwrap();
    assert_gradient("cholesky ln det", &LogDetByCholesky, &x, &by_lower_triangle(&inverse), TOLERANCE);

    // d^2 ln det A [V] = -A^-1 V A^-1
    let v = scattered(15);
    let second = -inverse * symmetric(&v) * inverse;
    assert_hessian_product(
        "cholesky ln det",
        &LogDetByCholesky,
        &x,
        &v,
        &by_lower_triangle(&second),
        TOLERANCE,
    );
}

function!(QuadraticByCholesky: |x: &[T]| {
    let b = SVector::<T, 5>::from_iterator(scattered(5).into_iter().map(constant));
    b.dot(&symmetric(x).cholesky().expect("positive definite").solve(&b))
});

#[test]
fn cholesky_solve() {
    // d (b' A^-1 b) = -y' dA y with y = A^-1 b
    let x = positive_definite();
    let y = symmetric(&x).try_inverse().unwrap() * SVector::<f64, 5>::from_vec(scattered(5));
    let expected = by_lower_triangle(&(-y * y.transpose()));
    assert_gradient("cholesky solve", &QuadraticByCholesky, &x, &expected, TOLERANCE);
}

function!(DeterminantByLu: |x: &[T]| { general(x).lu().determinant() });

#[test]
fn lu_determinant() {
    // d det A = det A tr(A^-1 dA)
    let x = invertible();
    let a = general(&x);
    let inverse = a.try_inverse().unwrap();
    let expected = inverse.transpose() * a.determinant();
    assert_gradient("lu det", &DeterminantByLu, &x, expected.as_slice(), TOLERANCE);

    // d^2 det A [V] = det A (tr(A^-1 V) A^-1 - A^-1 V A^-1)'
    let v = scattered(25);
    let change = inverse * general(&v);
    let second = (inverse * change.trace() - change * inverse).transpose() * a.determinant();
    assert_hessian_product("lu det", &DeterminantByLu, &x, &v, second.as_slice(), TOLERANCE);
}

function!(InverseByLu: |x: &[T]| {
    let weights = Matrix5::from_iterator(scattered(50).into_iter().skip(25).map(constant::<T>));
    weights.dot(&general(x).lu().try_inverse().expect("invertible"))
});

#[test]
fn lu_inverse() {
    // d A^-1 = -A^-1 dA A^-1, so d tr(W' A^-1) has the gradient -A^-T W A^-T.
    let x = invertible();
    let inverse = general(&x).try_inverse().unwrap().transpose();
    let weights = Matrix5::from_iterator(scattered(50).into_iter().skip(25));
    let expected = -inverse * weights * inverse;
    assert_gradient("lu inverse", &InverseByLu, &x, expected.as_slice(), TOLERANCE);
}

function!(LeastSquaresByQr: |x: &[T]| {
    let a = SMatrix::<T, 7, 4>::from_column_slice(x);
    let b = SVector::<T, 7>::from_iterator(scattered(7).into_iter().map(constant));
    let c = SVector::<T, 4>::from_iterator(scattered(4).into_iter().map(constant));
    let qr = a.qr();
    c.dot(&qr.r().solve_upper_triangular(&(qr.q().transpose() * b)).expect("full rank"))
});

#[test]
fn qr_least_squares() {
    // x = argmin |A x - b|, r = b - A x, w = (A'A)^-1 c: d (c'x) = w' (dA' r - A' dA x)
    let x: Vec<f64> = scattered(60).into_iter().skip(32).collect();
    let a = SMatrix::<f64, 7, 4>::from_column_slice(&x);
    let b = SVector::<f64, 7>::from_vec(scattered(7));
    let normal = (a.transpose() * a).try_inverse().unwrap();
    let solution = normal * a.transpose() * b;
    let w = normal * SVector::<f64, 4>::from_vec(scattered(4));
    let expected = (b - a * solution) * w.transpose() - a * w * solution.transpose();
    // The closed form goes through A'A, so it has the square of the condition number in its own error.
    assert_gradient("qr least squares", &LeastSquaresByQr, &x, expected.as_slice(), 1e-11);
}

function!(LogDetByQr: |x: &[T]| {
    // Dynamic sizes take other paths through nalgebra.
    let r = DMatrix::from_column_slice(5, 5, x).qr().r();
    r.diagonal().iter().fold(constant::<T>(0.0), |sum, &d| sum + ln(num_traits::Float::abs(d)))
});

#[test]
fn qr_log_determinant_of_a_dynamic_matrix() {
    let x = invertible();
    let expected = general(&x).try_inverse().unwrap().transpose();
    assert_gradient("qr ln det", &LogDetByQr, &x, expected.as_slice(), TOLERANCE);
}

function!(DynamicProduct: |x: &[T]| {
    let a = DMatrix::from_column_slice(6, 6, &x[..36]);
    let v = DVector::from_column_slice(&x[36..]);
    v.dot(&(&a * (&a * &v)))
});

#[test]
fn dynamic_matrix_products() {
    // d (v' A A v) = tr(dA' (v (A v)' + (A' v) v')) + dv' (A A v + A' A' v)
    let x = scattered(42);
    let a = DMatrix::from_column_slice(6, 6, &x[..36]);
    let v = DVector::from_column_slice(&x[36..]);
    let by_a = &v * (&a * &v).transpose() + a.transpose() * &v * v.transpose();
    let by_v = &a * &a * &v + a.transpose() * a.transpose() * &v;
    let expected: Vec<f64> = by_a.iter().chain(by_v.iter()).copied().collect();
    assert_gradient("dynamic products", &DynamicProduct, &x, &expected, TOLERANCE);
}

function!(Rotated: |x: &[T]| {
    let rotation = UnitQuaternion::from_scaled_axis(Vector3::new(x[0], x[1], x[2]));
    (rotation * Vector3::new(constant(1.0), constant(2.0), constant(3.0))).x
});

#[test]
fn a_rotation_by_a_quaternion() {
    // About one axis, where the closed form is short: x cos a - y sin a, and its slope by the angle.
    let angle: f64 = 0.8;
    let (s, c) = angle.sin_cos();
    // By the other two components: the axis tilts. R(w) = I + s/a [w] + (1-c)/a^2 [w]^2, first row, at w =
    // (0, 0, a).
    let by_x = (1.0 - c) / angle * 3.0;
    let by_y = s / angle * 3.0;
    let expected = [by_x, by_y, -s - 2.0 * c];
    assert_gradient("quaternion", &Rotated, &[0.0, 0.0, angle], &expected, TOLERANCE);
}

/// A rotation by the zero vector is a constant to nalgebra, and by no vector beside it: refused, and seen by
/// the hook where it is accepted.
#[test]
fn a_rotation_by_nothing_is_refused() {
    let refused = grad(|x| Rotated.call(x), &[0.0; 3]).unwrap_err();
    assert_eq!(refused.code(), "PAL0119");
    let accepted = || decision::accept_points(|| grad(|x| Rotated.call(x), &[0.0; 3])).unwrap();
    let (gradient, seen) = decision::watch(accepted);
    // w x (1, 2, 3) has the first component 3 w_y - 2 w_z.
    assert_ne!(gradient, [0.0, 3.0, -2.0]);
    assert!(seen.smallest_margin < 1e-30, "{gradient:?} {seen:?}");
}
