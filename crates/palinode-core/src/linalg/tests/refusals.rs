//! Every mistake is a typed error that names what and where; nothing panics.

use super::operations::ALL;
use crate::linalg::{self, LinearAlgebra, Triangle};
use crate::{Dual, Error, Var};
use nalgebra::DMatrix;

fn refused<T: LinearAlgebra>(a: &DMatrix<f64>, code: &str, f: impl Fn(&DMatrix<T>) -> Option<Error>) {
    let error = f(&a.map(T::from_f64)).unwrap_or_else(|| panic!("accepted, where {code} was expected"));
    assert_eq!(error.code(), code, "{error}");
}

macro_rules! refused_on_every_number {
    ($a:expr, $code:literal, $($operation:ident)*) => {
        $(refused_on_every_number!($a, $code, |m| linalg::$operation(m));)*
    };
    ($a:expr, $code:literal, |$m:ident| $f:expr) => {
        let a = $a;
        refused::<f64>(&a, $code, |$m| $f.err());
        refused::<Dual<f64>>(&a, $code, |$m| $f.err());
        refused::<Var<f64>>(&a, $code, |$m| $f.err());
        refused::<Var<Dual<f64>>>(&a, $code, |$m| $f.err());
    };
}

#[test]
fn singular() {
    for a in [
        dmatrix![0.0],
        dmatrix![1.0, 2.0; 2.0, 4.0],
        dmatrix![1.0, 2.0, 3.0; 4.0, 5.0, 6.0; 7.0, 8.0, 9.0],
        DMatrix::repeat(3, 3, 0.0),
        DMatrix::repeat(3, 3, 1e-200),
    ] {
        refused_on_every_number!(a.clone(), "PAL0111", |m| linalg::solve(m, m));
        refused_on_every_number!(a.clone(), "PAL0111", inverse log_determinant lu qr polar);
        assert!(linalg::determinant(&a).unwrap().abs() < 1e-14);
    }
    let zero_on_the_diagonal = dmatrix![1.0, 2.0; 3.0, 0.0];
    let upper = Triangle::Upper;
    refused_on_every_number!(zero_on_the_diagonal, "PAL0111", |m| linalg::solve_triangular(m, upper, m));
    let message = linalg::solve(&dmatrix![1.0, 2.0; 2.0, 4.0], &dmatrix![1.0; 1.0]).unwrap_err().to_string();
    assert_eq!(
        message,
        "PAL0111: solve: the matrix is singular (pivot 1 is 0); remove redundant rows or columns, or regularise"
    );
}

#[test]
fn scale_alone_makes_no_matrix_singular() {
    for a in [
        dmatrix![1.0, 0.0; 0.0, 1e-200],
        dmatrix![1.0, 1e20; 0.0, 1.0],
        dmatrix![1e-150, 2e-150; 3e-150, 1e-150],
        dmatrix![1e150, 2e150; 3.0, 1.0],
    ] {
        assert!(linalg::inverse(&a).is_ok(), "{a}");
    }
    assert!(linalg::qr(&dmatrix![1.0, 1e-200; 1.0, -1e-200]).is_ok());
}

#[test]
fn not_positive_definite() {
    for a in [dmatrix![0.0], dmatrix![-1.0], dmatrix![1.0, 2.0; 2.0, 1.0], dmatrix![0.0, 0.0; 0.0, 0.0]] {
        refused_on_every_number!(a, "PAL0112", |m| linalg::cholesky(m));
    }
}

#[test]
fn not_symmetric() {
    for a in [dmatrix![4.0, 1.0; 0.0, 3.0], dmatrix![4.0, 1.001; 1.0, 3.0], dmatrix![4.0, -1.0; 1.0, 3.0]] {
        refused_on_every_number!(a.clone(), "PAL0125", cholesky symmetric_eigen symmetric_eigenvalues);
    }
    let message = linalg::cholesky(&dmatrix![4.0, 1.0; 0.0, 3.0]).unwrap_err().to_string();
    assert!(
        message.starts_with(
            "PAL0125: cholesky's matrix is not symmetric: entry (0, 1) is 1, its mirror image 0; "
        ),
        "{message}"
    );
    // A ten-thousandth of the largest entry is what a step of differences may be, and what rounding never is.
    assert!(linalg::cholesky(&dmatrix![4.0, 1.0003; 1.0, 3.0]).is_ok());
}

#[test]
fn what_has_no_root() {
    for a in [
        dmatrix![-1.0],
        dmatrix![1.0, 0.0; 0.0, -2.0],
        dmatrix![-2.0, 0.0; 0.0, -2.0],
        dmatrix![-1.0, 5.0; 0.0, 3.0],
    ] {
        refused_on_every_number!(a.clone(), "PAL0124", |m| linalg::square_root(m));
    }
    for a in [dmatrix![0.0], dmatrix![1.0, 1.0; 1.0, 1.0], DMatrix::repeat(3, 3, 0.0)] {
        let code = linalg::square_root(&a).unwrap_err().code();
        assert!(code == "PAL0111" || code == "PAL0124", "{code}");
    }
    // A rotation by a right angle has one, though its eigenvalues are imaginary.
    let root = linalg::square_root(&dmatrix![0.0, -1.0; 1.0, 0.0]).unwrap();
    assert!((root - dmatrix![1.0, -1.0; 1.0, 1.0] / 2f64.sqrt()).amax() < 1e-15);
}

#[test]
fn shapes() {
    let wide = || DMatrix::repeat(2, 3, 1.0);
    refused_on_every_number!(wide(), "PAL0101", |m| linalg::matmul(m, m));
    refused_on_every_number!(wide(), "PAL0101", |m| linalg::solve(m, m));
    refused_on_every_number!(wide(), "PAL0101", |m| linalg::solve_triangular(m, Triangle::Lower, m));
    refused_on_every_number!(
        wide(), "PAL0101", inverse determinant log_determinant cholesky lu qr symmetric_eigen
        symmetric_eigenvalues eigenvalues exponential square_root polar
    );
    let square = DMatrix::identity(2, 2);
    let message = linalg::solve(&square, &DMatrix::repeat(3, 1, 1.0)).unwrap_err().to_string();
    assert_eq!(message, "PAL0101: each column of solve's right-hand side has length 3, not 2; pass 2");
    let message = linalg::cholesky(&wide()).unwrap_err().to_string();
    assert_eq!(message, "PAL0101: cholesky's matrix is 2 by 3; it must be square");
    let message = linalg::qr(&wide()).unwrap_err().to_string();
    assert_eq!(message, "PAL0101: qr's matrix is 2 by 3; it must have at least as many rows as columns");
}

#[test]
fn entries_that_are_not_finite() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for operation in ALL {
            for shape in operation.shapes(2) {
                let mut x = operation.point(shape, &[0.5; 40]);
                let last = x.len() - 1;
                x[last] = bad;
                let plain = operation.run(shape, &x).unwrap_err();
                let var =
                    operation.run(shape, &x.iter().map(|&x| Var::lift(x)).collect::<Vec<_>>()).unwrap_err();
                assert_eq!((plain.code(), var.code()), ("PAL0114", "PAL0114"), "{operation:?}");
            }
        }
    }
    let message = linalg::cholesky(&dmatrix![1.0, f64::NAN; 0.0, 1.0]).unwrap_err().to_string();
    assert!(message.starts_with("PAL0114: entry (0, 1) of cholesky's matrix is NaN; "), "{message}");
}

#[test]
fn extreme_but_finite_entries_do_not_panic() {
    for scale in [f64::MAX, f64::MAX / 4.0, f64::MIN_POSITIVE, 5e-324] {
        let noise: Vec<f64> = (0..40).map(|i| ((i * i) as f64).sin()).collect();
        for operation in ALL {
            for shape in operation.shapes(3) {
                let x: Vec<f64> = noise[..operation.inputs(shape)].iter().map(|x| x * scale).collect();
                let _ = operation.run(shape, &x);
                let _ = operation.run(shape, &x.iter().map(|&x| Dual::new(x, 1.0)).collect::<Vec<_>>());
            }
        }
    }
}
