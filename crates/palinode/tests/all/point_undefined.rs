//! Points at which a zero with a derivative says that it is none, as it should, and the code that asked
//! divides by it: the function has a value there, so what comes out is a derivative or the decision that is
//! to blame (PAL0119), never "keep the inputs inside the function's domain" (PAL0103).

use crate::points::refused;
use nalgebra::{DMatrix, Matrix2, Matrix3};
use num_traits::Zero;
use palinode::drivers::{derivatives, hvp, jvp, sparse_hessian, sparse_jacobian, vjp};
use palinode::forward::Jet;
use palinode::{Dual, Error, Tape, Var, decision, grad, hessian, jacobian};

/// A determinant by LU decomposition; its derivative is the matrix of cofactors.
macro_rules! determinant {
    () => {
        |x: &[_]| DMatrix::from_row_slice(2, 2, x).lu().determinant()
    };
}

fn is_named(what: &str, found: Result<Vec<f64>, Error>) {
    let error = found.expect_err(what);
    assert!(matches!(error, Error::OfPoint { left: 0.0, right: 0.0, .. }), "{what}: {error}");
    assert!(error.code() == "PAL0119" && error.to_string().contains("linalg"), "{what}: {error}");
}

#[test]
fn a_zero_pivot_is_named_by_every_driver() {
    let x = [0.0, 1.0, 0.0, 3.0];
    let v = [0.3, 1.3, 2.3, 3.3];
    is_named("grad", grad(determinant!(), &x));
    is_named("vjp", vjp(determinant!(), &x, &[1.0]).map(|answer| answer.1));
    is_named("jvp", jvp(determinant!(), &x, &v).map(|answer| answer.1));
    is_named("jacobian", jacobian(determinant!(), &x).map(|rows| rows.concat()));
    is_named("sparse_jacobian", sparse_jacobian(determinant!(), &x).map(|j| j.to_dense().concat()));
    is_named("record", Tape::new().record(&x, determinant!()).map(|_| Vec::new()));
    is_named("hvp", hvp(determinant!(), &x, &v).map(|answer| answer.2));
    is_named("hessian", hessian(determinant!(), &x).map(|rows| rows.concat()));
    is_named("sparse_hessian", sparse_hessian(determinant!(), &x).map(|h| h.to_dense().concat()));
    // What the message proposes: the operation, a point beside, or what the short cut gives.
    let by_operation =
        |x: &[Var<f64>]| palinode::linalg::determinant(&DMatrix::from_row_slice(2, 2, x)).unwrap();
    for (found, expected) in grad(by_operation, &x).unwrap().iter().zip([3.0_f64, 0.0, -1.0, 0.0]) {
        assert!((found - expected).abs() < 1e-15, "{found} {expected}");
    }
    let beside = grad(determinant!(), &[1e-6, 1.0, 0.0, 3.0]).unwrap();
    for (found, expected) in beside.iter().zip([3.0_f64, 0.0, -1.0, 1e-6]) {
        assert!((found - expected).abs() < 1e-9, "{beside:?}");
    }
    assert_eq!(decision::accept_points(|| grad(determinant!(), &x)).unwrap(), [3.0, 0.0, 0.0, 0.0]);
    // A driver inside another one.
    let outer = jvp(
        |t| {
            let x = [t[0] - 2.0, t[0] - 1.0, t[0] - 2.0, t[0] + 1.0];
            let inner = grad(determinant!(), &x);
            assert_eq!(inner.map_err(|error| error.code()).err(), (t[0] == 2.0).then_some("PAL0119"));
            t[0]
        },
        &[2.0],
        &[1.0],
    );
    assert_eq!(outer.unwrap().1, [1.0]);
}

/// Where the way of plain numbers has the right derivative, it is given.
#[test]
fn what_plain_numbers_get_right_is_right() {
    assert_eq!(grad(determinant!(), &[0.0; 4]).unwrap(), [0.0; 4]);
    assert_eq!(jvp(determinant!(), &[0.0; 4], &[1.0; 4]).unwrap(), (vec![0.0], vec![0.0]));
    assert_eq!(Tape::new().record(&[0.0; 4], determinant!()).unwrap().reverse(&[1.0]).unwrap(), [0.0; 4]);
    assert!(hessian(determinant!(), &[0.0; 4]).is_err());
    // sin(x)/x with a guard by `is_zero`.
    let sinc = |x: &[Var<f64>]| if x[0].is_zero() { Var::lift(1.0) } else { x[0].sin() / x[0] };
    assert_eq!(grad(sinc, &[0.0]).unwrap(), [0.0]);
    let (answer, seen) = decision::watch(|| grad(sinc, &[0.0]));
    assert_eq!((answer.unwrap(), seen.comparisons), (vec![0.0], 1));
}

/// The larger eigenvalue of [[3, x], [x, 1]] is `2 + sqrt(1 + x^2)`: at 0 it has the derivatives 1, 0 and -3
/// of order 2, 3 and 4.
#[test]
fn second_derivatives_of_an_eigenvalue() {
    macro_rules! larger {
        ($x:expr) => {{
            let number = |v: f64| num_traits::FromPrimitive::from_f64(v).unwrap();
            Matrix2::new(number(3.0), $x, $x, number(1.0)).symmetric_eigenvalues().max()
        }};
    }
    is_named("hessian", hessian(|x| larger!(x[0]), &[0.0]).map(|h| h.concat()));
    is_named("hvp", hvp(|x| larger!(x[0]), &[0.0], &[2.0]).map(|answer| answer.2));
    is_named("derivatives", derivatives::<f64, 2>(|x: Jet<f64, 2>| larger!(x), 0.0));
    let sparse = sparse_hessian(|x| larger!(x[0]), &[0.0]).map(|h| h.to_dense().concat());
    refused("sparse_hessian", sparse, &[1.0], 1e-9);
    let four = derivatives::<f64, 4>(|x| larger!(x), 0.0);
    refused("four derivatives", four, &[3.0, 0.0, 1.0, 0.0, -3.0], 1e-6);
    let inner = |x: &[Dual<f64>]| jvp(|y: &[Dual<Dual<f64>>]| larger!(y[0]), x, &[Dual::lift(1.0)]);
    let nested = jvp(|x| inner(x).map_or(vec![Dual::lift(f64::NAN)], |answer| answer.1), &[0.0], &[1.0]);
    assert!(nested.is_err() || nested.is_ok_and(|answer| (answer.1[0] - 1.0).abs() < 1e-9));
}

/// Closures that panic at numbers which are none, or never end.
#[test]
fn panics_and_endless_loops_on_the_way_are_no_end() {
    let smallest = |x: &[Var<Var<f64>>]| {
        let values = Matrix3::from_row_slice(x).symmetric_eigenvalues();
        let mut values: Vec<_> = values.iter().copied().collect();
        values.sort_by(|a, b| a.partial_cmp(b).expect("a number (this message is expected)"));
        values[0]
    };
    let diagonal = [-3.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 2.0];
    // The second derivative by the entry below the diagonal, which is the one that nalgebra reads: 2 / (w -
    // w').
    let found = hessian(smallest, &diagonal).map(|h| vec![h[3][3], h[6][6]]);
    assert!(refused("sorted", found, &[-0.5, -0.4], 1e-9));
    let waits = |x: &[Var<f64>]| {
        let mut step = if x[0].is_zero() { Var::lift(0.0) } else { (x[0] + x[0] * x[0]) / x[0] };
        #[allow(clippy::neg_cmp_op_on_partial_ord)] // NaN is what it is about
        while !(step < 1e-3) {
            step *= 0.5;
        }
        step + x[0] * 3.0
    };
    is_named("a loop that waits for NaN", grad(waits, &[0.0]));
}

/// If what plain numbers do is no number either, the comparison is named if it is to blame, and only then.
#[test]
fn undefined_at_a_point() {
    let of_point = |x: &[Var<f64>]| if x[0] == 0.0 { x[0].sqrt() } else { 3.0 * x[0] };
    let error = grad(of_point, &[0.0]).unwrap_err();
    assert_eq!(error, Error::UndefinedAtPoint { decision: 1, left: 0.0, right: 0.0 });
    assert!(error.code() == "PAL0119" && error.to_string().contains("move the point"), "{error}");
    assert_eq!(grad(of_point, &[1e-9]).unwrap(), [3.0]);
    // A vertical slope from both sides, and the end of a domain, whatever is compared there.
    let vertical = |x: &[Var<f64>]| if x[0] == 0.0 { x[0] * 2.0 + x[0].cbrt() } else { x[0].cbrt() };
    assert_eq!(grad(vertical, &[0.0]).unwrap_err().code(), "PAL0104");
    let domain = |x: &[Var<f64>]| if x[0] == 0.0 { x[0].ln() } else { x[0].ln() * 2.0 };
    assert_eq!(grad(domain, &[0.0]).unwrap_err().code(), "PAL0103");
}
