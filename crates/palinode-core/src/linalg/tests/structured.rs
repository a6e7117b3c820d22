//! Points at which a derivative is easily lost: singular, defective and repeated. What exists is right, what
//! does not is refused.

use super::operations::{distance, matrix};
use crate::linalg;
use crate::{Dual, DualN, Error, Var, grad, hessian, jvp};
use nalgebra::DMatrix;

#[test]
fn the_determinant_of_a_singular_matrix_has_its_cofactors() {
    let det = |x: &[Var<f64>]| linalg::determinant(&matrix(x)).unwrap();
    // Rank n - 1.
    assert!(distance(&grad(det, &[1.0, 2.0, 2.0, 4.0]).unwrap(), &[4.0, -2.0, -2.0, 1.0]) < 1e-15);
    // Rank n - 2: zero; and so are the second derivatives at lower ranks.
    assert!(distance(&grad(det, &[1.0; 9]).unwrap(), &[0.0; 9]) < 1e-15);
    assert_eq!(grad(det, &[0.0; 9]).unwrap(), [0.0; 9]);
    assert_eq!(grad(det, &[0.0]).unwrap(), [1.0]);
    let det = |x: &[Var<Var<f64>>]| linalg::determinant(&matrix(x)).unwrap();
    assert_eq!(hessian(det, &[0.0; 9]).unwrap(), vec![vec![0.0; 9]; 9]);
    // d2 det / da dd = 1 and d2 det / db dc = -1, everywhere.
    for x in
        [[0.0; 4], [1.0, 2.0, 2.0, 4.0], [1.0, 0.0, 0.0, 0.0], [1.0, 1e-9, 0.0, 1e-9], [3.0, 1.0, 2.0, 5.0]]
    {
        let h = hessian(det, &x).unwrap();
        let exact =
            [[0.0, 0.0, 0.0, 1.0], [0.0, 0.0, -1.0, 0.0], [0.0, -1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]];
        for (row, exact) in h.iter().zip(&exact) {
            assert!(distance(row, exact) < 1e-14, "{x:?}: {h:?}");
        }
    }
    // Third order at zero, where nothing else is left: det(t A) = t^3 det A.
    type Third = Dual<Dual<Dual<f64>>>;
    let a = [2.0, 0.0, 1.0, 1.0, 3.0, 0.0, 0.0, 1.0, 1.0];
    let t = Dual::new(Dual::new(Dual::new(0.0, 1.0), Dual::lift(1.0)), Dual::lift(Dual::lift(1.0)));
    let scaled: Vec<Third> = a.iter().map(|&a| t * a).collect();
    let found = linalg::determinant(&matrix(&scaled)).unwrap().tangent.tangent.tangent;
    assert!((found - 6.0 * linalg::determinant(&matrix(&a)).unwrap()).abs() < 1e-14, "{found}");
    // Scales whose product no number holds.
    let small = grad(|x| linalg::determinant(&matrix(x)).unwrap(), &[1e-200f64, 0.0, 0.0, 1e-200]).unwrap();
    assert!((small[0] / 1e-200 - 1.0).abs() < 1e-14 && (small[3] / 1e-200 - 1.0).abs() < 1e-14, "{small:?}");
}

#[test]
fn random_singular_matrices_of_every_rank() {
    for n in 2..=5 {
        for rank in 0..n {
            let noise = |k: usize| ((k * k + 5 * k + 7 * n + rank) as f64).sin();
            let (left, right) = (
                DMatrix::from_fn(n, rank, |i, j| noise(i + 9 * j)),
                DMatrix::from_fn(rank, n, |i, j| noise(40 + i + 9 * j)),
            );
            let a = left * right;
            let gradient = grad(|x| linalg::determinant(&matrix(x)).unwrap(), a.as_slice()).unwrap();
            for i in 0..n {
                for j in 0..n {
                    let minor = a.clone().remove_row(i).remove_column(j).determinant();
                    let exact = if (i + j) % 2 == 0 { minor } else { -minor };
                    assert!((gradient[i + n * j] - exact).abs() < 1e-12, "{n} {rank}: {gradient:?}");
                }
            }
            // The second derivative by a_00 and a_11 is the minor without both.
            let h = hessian(|x| linalg::determinant(&matrix(x)).unwrap(), a.as_slice()).unwrap();
            let minor = a.clone().remove_rows(0, 2).remove_columns(0, 2);
            let exact = if n == 2 { 1.0 } else { minor.determinant() };
            assert!((h[0][n + 1] - exact).abs() < 1e-12, "{n} {rank}: {} {exact}", h[0][n + 1]);
        }
    }
}

#[test]
fn vectors_of_equal_eigenvalues_are_refused_entry_by_entry() {
    let two = DMatrix::from_diagonal(&nalgebra::DVector::from_vec(vec![1.0, 1.0, 2.0]));
    for a in [DMatrix::identity(3, 3), two, DMatrix::repeat(3, 3, 0.0)] {
        let run = if a[(2, 2)] == 2.0 { 2 } else { 3 };
        for i in 0..run {
            for j in 0..run {
                let entry =
                    grad(|x| linalg::symmetric_eigen(&matrix(x)).unwrap().vectors[(i, j)], a.as_slice());
                assert!(matches!(entry, Err(Error::Degenerate { .. })), "{a} {i} {j}: {entry:?}");
                // Singular values descend.
                let k = j + 3 - run;
                let entry = grad(|x| linalg::svd(&matrix(x)).unwrap().u[(i, k)], a.as_slice());
                assert!(entry.is_err(), "{a} {i} {j}: {entry:?}");
                let entry = grad(|x| linalg::svd(&matrix(x)).unwrap().v_transposed[(k, i)], a.as_slice());
                assert!(entry.is_err(), "{a} {i} {j}: {entry:?}");
            }
        }
    }
    // U V^T is no function of a matrix that is zero.
    let turn = grad(
        |x| {
            let svd = linalg::svd(&matrix(x)).unwrap();
            linalg::matmul(&svd.u, &svd.v_transposed).unwrap().diagonal().iter().sum()
        },
        &[0.0; 9],
    );
    assert!(turn.is_err(), "{turn:?}");
    // What does not depend on the basis has its derivative: the projection onto the space of the equal ones,
    // moved by what mixes the spaces.
    let projection = grad(
        |x| {
            let v = linalg::symmetric_eigen(&matrix(x)).unwrap().vectors;
            v[(0, 0)] * v[(2, 0)] + v[(0, 1)] * v[(2, 1)]
        },
        &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 2.0],
    )
    .unwrap();
    assert!(
        distance(&projection, &[0.0, 0.0, -0.5, 0.0, 0.0, 0.0, -0.5, 0.0, 0.0]) < 1e-14,
        "{projection:?}"
    );
}

#[test]
fn eigenvalues_that_coincide_are_refused_and_others_are_not() {
    let is_refused = |x: &[f64], i: usize| {
        let one = grad(|x| linalg::eigenvalues(&matrix(x)).unwrap().re[i], x);
        let forward = linalg::eigenvalues(&matrix(x).map(|x| Dual::new(x, 1.0)));
        matches!(one, Err(Error::EigenvaluesCoincide { .. }))
            && matches!(forward, Err(Error::EigenvaluesCoincide { .. }))
    };
    for x in [
        &[1.0, 0.0, 0.0, 1.0][..], // twice
        &[1.0, 0.0, 1.0, 1.0],     // defective
        &[0.0; 9],                 //
        &[3.0, -1.0, 1.0, 1.0],    // defective, in no special form
        &[5.0, 4.0, 2.0, 1.0, 0.0, 1.0, -1.0, -1.0, -1.0, -1.0, 3.0, 0.0, 1.0, 1.0, -1.0, 2.0], // a block of size 2 among others
    ] {
        let w = linalg::eigenvalues(&matrix(x)).unwrap();
        let gap = |i: usize, j: usize| (w.re[i] - w.re[j]).hypot(w.im[i] - w.im[j]);
        let n = w.re.len();
        let one = (0..n).find(|&i| (0..n).any(|j| i != j && gap(i, j) < 1e-5)).unwrap();
        assert!(is_refused(x, one), "{x:?} {one}");
    }
    // Values alone are given, and eigenvalues apart from the pair have derivatives.
    assert_eq!(linalg::eigenvalues(&matrix(&[1.0, 0.0, 1.0, 1.0])).unwrap().re.as_slice(), [1.0, 1.0]);
    let a = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 3.0];
    let g = grad(|x| linalg::eigenvalues(&matrix(x)).unwrap().re[2], &a).unwrap();
    assert!(distance(&g, &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]) < 1e-15, "{g:?}");
    // Apart enough, they have derivatives: by a_21, 1 / gap.
    let g =
        grad(|x| linalg::eigenvalues(&matrix(x)).unwrap().re[1], &[1.0f64, 0.0, 1.0, 1.0 + 1e-4]).unwrap();
    assert!((g[1] / 1e4 - 1.0).abs() < 1e-7, "{g:?}");
    let message = linalg::eigenvalues(&matrix(&[1.0, 0.0, 1.0, 1.0]).map(|x| Dual::new(x, 1.0)))
        .unwrap_err()
        .to_string();
    assert!(
        message.starts_with("PAL0122: eigenvalues 0 and 1 coincide as far as rounding can tell (1 +0i)"),
        "{message}"
    );
}

#[test]
fn the_pseudo_inverse_where_the_rank_is_not_full() {
    let flat = [1.0, 2.0, 2.0, 4.0];
    let refused = grad(|x| linalg::pseudo_inverse(&matrix(x)).unwrap()[0], &flat);
    assert_eq!(refused.unwrap_err().code(), "PAL0123");
    assert_eq!(
        grad(|x| linalg::pseudo_inverse(&matrix(x)).unwrap()[0], &[0.0; 4]).unwrap_err().code(),
        "PAL0123"
    );
    // A direction that keeps the rank: A -> (1 + t) A, whose pseudo-inverse is A^+ / (1 + t).
    let pseudo = linalg::pseudo_inverse(&matrix(&flat)).unwrap();
    let (_, kept) =
        jvp(|x: &[Dual<f64>]| linalg::pseudo_inverse(&matrix(x)).unwrap().as_slice().to_vec(), &flat, &flat)
            .unwrap();
    assert!(distance(&kept, (-&pseudo).as_slice()) < 1e-14);
    // And one that does not, in one direction and as one lane of two.
    let grown = matrix(&flat).zip_map(&matrix(&[1.0, 0.0, 0.0, 0.0]), Dual::new);
    assert_eq!(linalg::pseudo_inverse(&grown).unwrap_err().code(), "PAL0123");
    let lanes = matrix(&flat).zip_map(&matrix(&[1.0, 0.0, 0.0, 0.0]), |x, v| DualN::new(x, [x, v]));
    assert_eq!(linalg::pseudo_inverse(&lanes).unwrap_err().code(), "PAL0123");
    // Second order along outer products: A(t) = u(t) v^T keeps the rank, A^+ = v u^T / |u|^2 |v|^2.
    let t: Dual<Dual<f64>> = Dual::new(Dual::new(0.5, 1.0), Dual::lift(1.0));
    let u = [t * 0.0 + 1.0, t];
    let a = DMatrix::from_fn(2, 2, |i, j| u[i] * [1.0, 3.0][j]);
    let x = linalg::pseudo_inverse(&a).unwrap();
    let exact = u[1] * 3.0 / ((t * t + 1.0) * 10.0);
    assert!((x[(1, 1)].tangent.tangent - exact.tangent.tangent).abs() < 1e-14);
    assert!((x[(1, 1)].value.tangent - exact.value.tangent).abs() < 1e-14);
}
