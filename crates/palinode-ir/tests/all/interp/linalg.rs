//! The interpreter: dense linear algebra, its values and the derivatives that come out of it.

use super::ops::{MATRIX, VECTOR};
use crate::interp::program;
use palinode_core::{DoubleDouble, Dual, Jet, Real, Scalar, Var, grad};
use palinode_ir::interp::{Datum, RunErrorKind, run};
use palinode_ir::{Linalg, Op, Program, Type, transform};

fn unary(kind: Linalg) -> Program {
    program(&[MATRIX], |b, v| b.emit_all(Op::Linalg(kind), v))
}

fn solver(kind: Linalg, right: Type) -> Program {
    program(&[MATRIX, right], |b, v| b.emit_all(Op::Linalg(kind), v))
}

/// A matrix without structure, far from singular.
fn sample(rows: usize, columns: usize) -> Vec<f64> {
    let mut a: Vec<f64> =
        (0..rows * columns).map(|k| ((k * k * 7 + k * 3 + 1) % 17) as f64 / 5.0 - 1.5).collect();
    for i in 0..rows.min(columns) {
        a[i * columns + i] += 4.0 + i as f64;
    }
    a
}

fn symmetric(n: usize) -> Vec<f64> {
    let a = sample(n, n);
    (0..n * n).map(|k| (a[k] + a[k % n * n + k / n]) / 2.0).collect()
}

fn positive_definite(n: usize) -> Vec<f64> {
    let a = sample(n, n);
    product(n, n, n, &a, &transposed(n, n, &a))
}

fn product(n: usize, k: usize, m: usize, a: &[f64], b: &[f64]) -> Vec<f64> {
    (0..n * m).map(|at| (0..k).map(|l| a[at / m * k + l] * b[l * m + at % m]).sum()).collect()
}

fn transposed(n: usize, m: usize, a: &[f64]) -> Vec<f64> {
    (0..n * m).map(|at| a[at % n * m + at / n]).collect()
}

fn identity(n: usize) -> Vec<f64> {
    (0..n * n).map(|at| if at / n == at % n { 1.0 } else { 0.0 }).collect()
}

#[track_caller]
fn assert_close(a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{a} is not {b}");
    }
}

fn vector(out: &[Datum<f64>], at: usize) -> &[f64] {
    out[at].as_vector().unwrap()
}

#[test]
fn solvers() {
    for n in [1, 2, 5] {
        let a = sample(n, n);
        let b: Vec<f64> = (0..n).map(|i| i as f64 - 0.5).collect();
        let inputs = [Datum::matrix(n, n, a.clone()), Datum::vector(b.clone())];
        let x = run(&solver(Linalg::Solve { transposed: false }, VECTOR), &inputs).unwrap();
        assert_close(&product(n, n, 1, &a, vector(&x, 0)), &b, 1e-12);
        let x = run(&solver(Linalg::Solve { transposed: true }, VECTOR), &inputs).unwrap();
        assert_close(&product(n, n, 1, &transposed(n, n, &a), vector(&x, 0)), &b, 1e-12);
        for (lower, transpose) in [(true, false), (true, true), (false, false), (false, true)] {
            let kind = Linalg::SolveTriangular { lower, transposed: transpose };
            let x = run(&solver(kind, VECTOR), &inputs).unwrap();
            let keep = |at: usize| if lower { at % n <= at / n } else { at % n >= at / n };
            let t: Vec<f64> = (0..n * n).map(|at| if keep(at) { a[at] } else { 0.0 }).collect();
            let t = if transpose { transposed(n, n, &t) } else { t };
            assert_close(&product(n, n, 1, &t, vector(&x, 0)), &b, 1e-12);
        }
        let right = sample(n, 2);
        let inputs = [Datum::matrix(n, n, a.clone()), Datum::matrix(n, 2, right.clone())];
        let x = run(&solver(Linalg::Solve { transposed: false }, MATRIX), &inputs).unwrap();
        assert_eq!(x[0].shape(), [n, 2]);
        assert_close(&product(n, n, 2, &a, vector(&x, 0)), &right, 1e-12);
        let inverse = run(&unary(Linalg::Inverse), &inputs[..1]).unwrap();
        assert_close(&product(n, n, n, &a, vector(&inverse, 0)), &identity(n), 1e-12);
    }
    // A pivot is needed.
    let inputs = [Datum::matrix(2, 2, vec![0.0, 2.0, 1.0, 0.0]), Datum::vector(vec![2.0, 3.0])];
    let x = run(&solver(Linalg::Solve { transposed: false }, VECTOR), &inputs).unwrap();
    assert_eq!(vector(&x, 0), [3.0, 1.0]);
}

#[test]
fn determinants() {
    let det = unary(Linalg::Determinant);
    let of =
        |n: usize, a: &[f64]| run(&det, &[Datum::matrix(n, n, a.to_vec())]).unwrap()[0].as_real().unwrap();
    assert_eq!(of(0, &[]), 1.0);
    assert_eq!(of(2, &[0.0, 2.0, 1.0, 0.0]), -2.0);
    assert_eq!(of(2, &[1.0, 2.0, 2.0, 4.0]), 0.0);
    let a = [2.0, -1.0, 3.0, 0.5, 4.0, 1.0, -2.0, 1.0, 5.0];
    let expected = 2.0 * (20.0 - 1.0) + (2.5 + 2.0) + 3.0 * (0.5 + 8.0);
    assert!((of(3, &a) - expected).abs() < 1e-13 * expected);
    let ln = run(&unary(Linalg::LogDet), &[Datum::matrix(3, 3, a.map(|x| -x).to_vec())]).unwrap();
    assert!((ln[0].as_real().unwrap() - expected.ln()).abs() < 1e-14);
}

#[test]
fn the_determinant_of_a_singular_matrix_has_a_derivative() {
    let det = unary(Linalg::Determinant);
    let cofactors = |a: [f64; 9]| {
        let minor = |i: usize, j: usize| {
            let at = |di: usize, dj: usize| a[(i + di) % 3 * 3 + (j + dj) % 3];
            at(1, 1) * at(2, 2) - at(1, 2) * at(2, 1)
        };
        (0..9).map(|k| minor(k / 3, k % 3)).collect::<Vec<f64>>()
    };
    let f = |x: &[Var<f64>]| run(&det, &[Datum::matrix(3, 3, x.to_vec())]).unwrap()[0].as_real().unwrap();
    for a in [
        [0.0, 1.0, 2.0, 0.0, 3.0, 4.0, 0.0, 5.0, 7.0],
        [1.0, 2.0, 3.0, 2.0, 4.0, 6.0, 1.0, 0.0, 1.0],
        [0.0; 9],
        [1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0],
    ] {
        assert_close(&grad(f, &a).unwrap(), &cofactors(a), 1e-14);
    }
    // Second order: det(t I) = t^2 at t = 0.
    let t: Dual<Dual<f64>> = Dual::new(Dual::new(0.0, 1.0), Dual::new(1.0, 0.0));
    let zero = t - t;
    let d = run(&det, &[Datum::matrix(2, 2, vec![t, zero, zero, t])]).unwrap()[0].as_real().unwrap();
    assert_eq!(d.tangent.tangent, 2.0);
}

/// Programs of derivatives of determinants, where there is no inverse: cofactors, and cofactors of what is
/// left without a row and a column.
#[test]
fn programs_of_determinants_have_derivatives_at_singular_matrices() {
    /// The determinant without these rows and columns, by definition.
    fn minor(n: usize, a: &[f64], rows: &[usize], columns: &[usize]) -> f64 {
        let left = |gone: &[usize]| -> Vec<usize> { (0..n).filter(|i| !gone.contains(i)).collect() };
        let (rows, columns) = (left(rows), left(columns));
        fn expanded(n: usize, a: &[f64], rows: &[usize], columns: &[usize]) -> f64 {
            let Some((&first, rest)) = rows.split_first() else { return 1.0 };
            let term = |at: usize| {
                let others: Vec<usize> = columns.iter().copied().filter(|&c| c != columns[at]).collect();
                let sign = if at.is_multiple_of(2) { 1.0 } else { -1.0 };
                sign * a[first * n + columns[at]] * expanded(n, a, rest, &others)
            };
            (0..columns.len()).map(term).sum()
        }
        expanded(n, a, &rows, &columns)
    }
    let signed = |places: usize, x: f64| if places.is_multiple_of(2) { x } else { -x };
    let det = unary(Linalg::Determinant);
    let gradient = transform::grad(&det, &[0]).unwrap();
    let hessian = transform::hessian(&det, &[0]).unwrap();
    let cofactors = unary(Linalg::Cofactors);
    let rank = |n: usize, r: usize| {
        let (a, b) = (sample(n, r), sample(r, n));
        product(n, r, n, &a, &b)
    };
    let mut matrices = vec![(2, vec![1.0; 4]), (1, vec![0.0]), (3, vec![0.0; 9]), (4, sample(4, 4))];
    matrices.extend([(4, rank(4, 3)), (4, rank(4, 2)), (4, rank(4, 1)), (5, rank(5, 4)), (3, identity(3))]);
    for (n, a) in matrices {
        let input = [Datum::matrix(n, n, a.clone())];
        let scale = a.iter().fold(1.0, |largest: f64, x| largest.max(x.abs())).powi(n as i32 - 1);
        let expected: Vec<f64> = (0..n * n)
            .map(|at| (at / n, at % n))
            .map(|(i, j)| signed(i + j, minor(n, &a, &[i], &[j])) / scale)
            .collect();
        for program in [&gradient, &cofactors] {
            let found = run(program, &input).unwrap();
            let found: Vec<f64> = vector(&found, 0).iter().map(|x| x / scale).collect();
            assert_close(&found, &expected, 1e-13);
        }
        // By the entries (i, j) and (k, l): the minor without both rows and columns.
        let second = |at: usize| {
            let (i, j, k, l) = (at / n / n / n, at / n / n % n, at / n % n, at % n);
            if i == k || j == l {
                return 0.0;
            }
            let crossed = usize::from((i < k) != (j < l));
            signed(i + j + k + l + crossed, minor(n, &a, &[i, k], &[j, l])) / scale
        };
        let expected: Vec<f64> = (0..n * n * n * n).map(second).collect();
        let found = run(&hessian, &input).unwrap();
        let found: Vec<f64> = vector(&found, 0).iter().map(|x| x / scale).collect();
        assert_close(&found, &expected, 1e-12);
    }
    // Large: by the inverse. ln det has the same gradient but for the factor.
    let (n, a) = (20, sample(20, 20));
    let input = [Datum::matrix(n, n, a)];
    let log = transform::grad(&unary(Linalg::LogDet), &[0]).unwrap();
    let (found, by) = (run(&gradient, &input).unwrap(), run(&det, &input).unwrap()[0].as_real().unwrap());
    let found: Vec<f64> = vector(&found, 0).iter().map(|x| x / by).collect();
    assert_close(&found, vector(&run(&log, &input).unwrap(), 0), 1e-12);
    // The logarithm's second derivative, too: H(ln d) = H(d) / d - g g' / d^2.
    let second = transform::hessian(&unary(Linalg::LogDet), &[0]).unwrap();
    let (h, l) = (run(&hessian, &input).unwrap(), run(&second, &input).unwrap());
    let from_det: Vec<f64> = vector(&h, 0)
        .iter()
        .enumerate()
        .map(|(at, x)| x / by - found[at / (n * n)] * found[at % (n * n)])
        .collect();
    assert_close(&from_det, vector(&l, 0), 1e-11);
}

#[test]
fn cholesky_and_qr() {
    for n in [1, 3, 6] {
        let a = positive_definite(n);
        let l = run(&unary(Linalg::Cholesky), &[Datum::matrix(n, n, a.clone())]).unwrap();
        let l = vector(&l, 0);
        assert!((0..n * n).all(|at| at % n <= at / n || l[at] == 0.0));
        assert_close(&product(n, n, n, l, &transposed(n, n, l)), &a, 1e-13);
        let m = n + 2;
        let a: Vec<f64> = sample(m, n).iter().map(|x| -x).collect();
        let out = run(&unary(Linalg::Qr), &[Datum::matrix(m, n, a.clone())]).unwrap();
        let (q, r) = (vector(&out, 0), vector(&out, 1));
        assert!((0..n).all(|i| r[i * n + i] > 0.0));
        assert!((0..n * n).all(|at| at % n >= at / n || r[at] == 0.0));
        assert_close(&product(m, n, n, q, r), &a, 1e-13);
        assert_close(&product(n, m, n, &transposed(m, n, q), q), &identity(n), 1e-13);
    }
}

#[test]
fn eigenvalues_and_singular_values() {
    for n in [1, 2, 5, 8] {
        let a = symmetric(n);
        let out = run(&unary(Linalg::SymmetricEigen), &[Datum::matrix(n, n, a.clone())]).unwrap();
        let (w, v) = (vector(&out, 0), vector(&out, 1));
        assert!(w.windows(2).all(|pair| pair[0] <= pair[1]));
        let scaled: Vec<f64> = (0..n * n).map(|at| v[at] * w[at % n]).collect();
        assert_close(&product(n, n, n, &a, v), &scaled, 1e-13);
        assert_close(&product(n, n, n, &transposed(n, n, v), v), &identity(n), 1e-13);
        for (rows, columns) in [(n + 3, n), (n, n), (n, n + 2)] {
            let a = sample(rows, columns);
            let k = rows.min(columns);
            let out = run(&unary(Linalg::Svd), &[Datum::matrix(rows, columns, a.clone())]).unwrap();
            let (u, s, v) = (vector(&out, 0), vector(&out, 1), vector(&out, 2));
            assert_eq!((out[0].shape(), out[2].shape()), (&[rows, k][..], &[columns, k][..]));
            assert!(s.windows(2).all(|pair| pair[0] >= pair[1]) && s[k - 1] >= 0.0);
            let us: Vec<f64> = (0..rows * k).map(|at| u[at] * s[at % k]).collect();
            assert_close(&product(rows, k, columns, &us, &transposed(columns, k, v)), &a, 1e-12);
            assert_close(&product(k, rows, k, &transposed(rows, k, u), u), &identity(k), 1e-12);
            assert_close(&product(k, columns, k, &transposed(columns, k, v), v), &identity(k), 1e-12);
        }
    }
    // Rank 1 and rank 0: the vectors are completed.
    for a in [vec![1.0, 2.0, 2.0, 4.0, 0.0, 0.0], vec![0.0; 6]] {
        let out = run(&unary(Linalg::Svd), &[Datum::matrix(3, 2, a.clone())]).unwrap();
        let (u, s, v) = (vector(&out, 0), vector(&out, 1), vector(&out, 2));
        assert_close(&product(2, 3, 2, &transposed(3, 2, u), u), &identity(2), 1e-12);
        let us: Vec<f64> = (0..6).map(|at| u[at] * s[at % 2]).collect();
        assert_close(&product(3, 2, 2, &us, &transposed(2, 2, v)), &a, 1e-12);
    }
    // Huge and tiny matrices.
    for scale in [1e200, 1e-200] {
        let a: Vec<f64> = symmetric(3).iter().map(|x| x * scale).collect();
        let w = run(&unary(Linalg::SymmetricEigen), &[Datum::matrix(3, 3, a.clone())]).unwrap();
        let s = run(&unary(Linalg::Svd), &[Datum::matrix(3, 3, a)]).unwrap();
        let mut sizes: Vec<f64> = vector(&w, 0).iter().map(|x| x.abs() / scale).collect();
        sizes.sort_by(|a, b| b.total_cmp(a));
        let s: Vec<f64> = vector(&s, 1).iter().map(|x| x / scale).collect();
        assert_close(&s, &sizes, 1e-13);
    }
}

/// A weighted sum of everything that an operation gives.
fn weigh<R: Real>(outputs: &[Datum<R>]) -> R {
    let all = outputs.iter().flat_map(|d| d.as_vector().unwrap().iter().copied());
    all.enumerate().fold(R::zero(), |sum, (k, x)| sum + x * ((k % 5) as f64 * 0.75 - 1.0))
}

#[test]
fn derivatives_agree_with_differences() {
    let cases: Vec<(Linalg, usize, usize, Vec<f64>)> = vec![
        (Linalg::Inverse, 3, 3, sample(3, 3)),
        (Linalg::Determinant, 4, 4, sample(4, 4)),
        (Linalg::Cofactors, 4, 4, sample(4, 4)),
        (Linalg::LogDet, 4, 4, sample(4, 4)),
        (Linalg::Cholesky, 3, 3, positive_definite(3)),
        (Linalg::Qr, 4, 3, sample(4, 3)),
        (Linalg::SymmetricEigen, 4, 4, symmetric(4)),
        (Linalg::Svd, 4, 3, sample(4, 3)),
        (Linalg::Svd, 2, 3, sample(2, 3)),
    ];
    for (kind, n, m, a) in cases {
        let p = unary(kind);
        let value = |a: &[f64]| weigh(&run(&p, &[Datum::matrix(n, m, a.to_vec())]).unwrap());
        let by_tape =
            grad(|x: &[Var<f64>]| weigh(&run(&p, &[Datum::matrix(n, m, x.to_vec())]).unwrap()), &a).unwrap();
        for k in 0..n * m {
            let mut up = a.clone();
            let mut down = a.clone();
            up[k] += 1e-6;
            down[k] -= 1e-6;
            let difference = (value(&up) - value(&down)) / 2e-6;
            assert!((by_tape[k] - difference).abs() < 1e-6 * (1.0 + difference.abs()), "{kind:?} by {k}");
            let seeded = a.iter().enumerate().map(|(at, &x)| Dual::new(x, if at == k { 1.0 } else { 0.0 }));
            let forward = weigh(&run(&p, &[Datum::matrix(n, m, seeded.collect())]).unwrap()).tangent;
            assert!((by_tape[k] - forward).abs() < 1e-10 * (1.0 + forward.abs()), "{kind:?} by {k}");
        }
    }
}

#[test]
fn higher_orders_of_an_eigenvalue() {
    // [[0, t], [t, 1]]: w = (1 - sqrt(1 + 4 t^2)) / 2 and its Taylor series at t = 0.3.
    let p = unary(Linalg::SymmetricEigen);
    let t: Jet<f64, 8> = Jet::variable(0.3);
    let constant = |x: f64| t * 0.0 + x;
    let w = run(&p, &[Datum::matrix(2, 2, vec![constant(0.0), t, t, constant(1.0)])]).unwrap();
    let w = w[0].as_vector().unwrap()[0];
    let direct = ((t * t * 4.0 + 1.0).sqrt() - 1.0) * -0.5;
    for k in 0..8 {
        assert!(
            (w.coefficient(k) - direct.coefficient(k)).abs() < 1e-9 * (1.0 + direct.coefficient(k).abs()),
            "{k}"
        );
    }
}

/// `cholesky` and `eigh` are functions of `(A + A') / 2`, like those of `linalg`: their gradients are
/// symmetric, by every transform and on the tape.
#[test]
fn symmetric_matrices_have_symmetric_gradients() {
    let source =
        |lines: &str| palinode_ir::pal::compile(&format!("param a: [n, n]\n{lines}\n")).ok().unwrap().program;
    // l_10 = a_10 / sqrt(a_00), of which each triangle gives one half; and the larger eigenvalue, by the
    // square of its vector.
    let l = source("let l = cholesky(a)\nloss y = l[1, 0]");
    let w = source("let w, v = eigh(a)\nloss y = w[1]");
    let a = [4.0, 2.0, 2.0, 5.0];
    let root = 17f64.sqrt();
    let (x, y) = (0.5 - 0.5 / root, 0.5 + 0.5 / root); // of (1, (1 + sqrt 17) / 4), squared and scaled
    for (program, exact) in [(l, [-0.125, 0.25, 0.25, 0.0]), (w, [x, 2.0 / root, 2.0 / root, y])] {
        let input = [Datum::matrix(2, 2, a.to_vec())];
        let by_transform = run(&palinode_ir::transform::grad(&program, &[0]).unwrap(), &input).unwrap();
        let by_transform = by_transform.last().unwrap().as_vector().unwrap().to_vec();
        let on_tape =
            |x: &[Var<f64>]| run(&program, &[Datum::matrix(2, 2, x.to_vec())]).unwrap()[0].as_real().unwrap();
        let by_tape = grad(on_tape, &a).unwrap();
        for k in 0..4 {
            assert!((by_transform[k] - exact[k]).abs() < 1e-14, "{by_transform:?} {exact:?}");
            assert!((by_tape[k] - exact[k]).abs() < 1e-14, "{by_tape:?} {exact:?}");
        }
    }
}

#[test]
fn what_is_not_symmetric_is_refused() {
    for kind in [Linalg::Cholesky, Linalg::SymmetricEigen] {
        let fails = |a: Vec<f64>| run(&unary(kind), &[Datum::matrix(2, 2, a)]).unwrap_err();
        let error = fails(vec![4.0, 0.0, 2.0, 5.0]);
        assert_eq!(error.code(), "PAL0301");
        let RunErrorKind::NotSymmetric { row, column, value, mirrored, .. } = error.kind else {
            panic!("{error}")
        };
        assert_eq!((row, column, value, mirrored), (0, 1, 0.0, 2.0));
        assert_eq!(fails(vec![4.0, 2.001, 2.0, 5.0]).code(), "PAL0301");
        // A ten-thousandth of the largest entry is allowed, and the mean is taken.
        let lopsided = Datum::matrix(2, 2, vec![4.0, 2.0 + 2f64.powi(-13), 2.0 - 2f64.powi(-13), 5.0]);
        let even = Datum::matrix(2, 2, vec![4.0, 2.0, 2.0, 5.0]);
        let numbers = |input: Datum<f64>| {
            let results = run(&unary(kind), &[input]).unwrap();
            results.iter().flat_map(|y| y.as_vector().unwrap().to_vec()).collect::<Vec<f64>>()
        };
        assert_eq!(numbers(lopsided), numbers(even));
    }
}

/// At the identity an entry of a vector is stationary in the basis of the axes, which nothing but chance
/// chooses: no derivative may come out as zero.
#[test]
fn vectors_of_equal_eigenvalues_have_no_derivative() {
    for source in ["let w, v = eigh(a)\nloss y = v[0, 0]", "let u, s, v = svd(a)\nloss y = u[0, 0]"] {
        let program =
            palinode_ir::pal::compile(&format!("param a: [n, n]\n{source}\n")).ok().unwrap().program;
        let gradient = palinode_ir::transform::grad(&program, &[0]).unwrap();
        for a in [[1.0, 0.0, 0.0, 1.0], [0.0; 4]] {
            let found = run(&gradient, &[Datum::matrix(2, 2, a.to_vec())]).unwrap();
            let found = found.last().unwrap().as_vector().unwrap().to_vec();
            assert!(found.iter().any(|x| !x.is_finite()), "{source} at {a:?}: {found:?}");
        }
    }
}

/// At equal singular values the vectors of both sides turn together, and what does not depend on their basis
/// has its derivative: along a rotation, `U V'` of a multiple of the identity turns with the matrix.
#[test]
fn vectors_of_equal_singular_values_turn_together() {
    let source = "param t\nlet u, s, v = svd([[2, -t], [t, 2]])\nlet q = u @ v'\nloss y = q[1, 0] + sum(s)\n";
    let program = palinode_ir::pal::compile(source).ok().unwrap().program;
    let jvp = palinode_ir::transform::jvp(&program, &[0]).unwrap();
    let found = run(&jvp, &[Datum::real(0.0), Datum::real(1.0)]).unwrap();
    let tangent = found.last().unwrap().as_real().unwrap();
    // The tangent of the angle is t / 2; the singular values, 2 sqrt(1 + t^2 / 4), are stationary.
    assert!((tangent - 0.5).abs() < 1e-15, "{tangent}");
}

#[test]
fn decompositions_of_double_doubles_have_their_digits() {
    // An epsilon that was found by halving had none for numbers that hold 1 + 1e-300, and nothing converged.
    let a: Vec<DoubleDouble> = symmetric(4).into_iter().map(DoubleDouble::from_f64).collect();
    let results = run(&unary(Linalg::SymmetricEigen), &[Datum::matrix(4, 4, a.clone())]).unwrap();
    let (w, v) = (results[0].as_vector().unwrap(), results[1].as_vector().unwrap());
    for i in 0..4 {
        for j in 0..4 {
            let back: DoubleDouble = (0..4).map(|k| v[4 * i + k] * w[k] * v[4 * j + k]).sum();
            assert!((back - a[4 * i + j]).glance().unwrap().abs() < 1e-29);
        }
    }
    let results = run(&unary(Linalg::Svd), &[Datum::matrix(4, 4, a.clone())]).unwrap();
    let part = |k: usize| results[k].as_vector().unwrap();
    let back: DoubleDouble = (0..4).map(|k| part(0)[k] * part(1)[k] * part(2)[4 + k]).sum();
    assert!((back - a[1]).glance().unwrap().abs() < 1e-29);
}

#[test]
fn what_cannot_be_decomposed() {
    let fails = |p: &Program, inputs: &[Datum<f64>]| run(p, inputs).unwrap_err().kind;
    let singular = Datum::matrix(2, 2, vec![1.0, 2.0, 2.0, 4.0]);
    let right = Datum::vector(vec![1.0, 2.0]);
    let solve = solver(Linalg::Solve { transposed: false }, VECTOR);
    assert_eq!(
        fails(&solve, &[singular.clone(), right.clone()]),
        RunErrorKind::Singular { op: "solve", column: 1 }
    );
    assert_eq!(fails(&unary(Linalg::Inverse), std::slice::from_ref(&singular)).code(), "PAL0264");
    assert_eq!(fails(&unary(Linalg::LogDet), std::slice::from_ref(&singular)).code(), "PAL0264");
    let triangular = solver(Linalg::SolveTriangular { lower: true, transposed: false }, VECTOR);
    let zero = Datum::matrix(2, 2, vec![1.0, 0.0, 2.0, 0.0]);
    assert_eq!(fails(&triangular, &[zero, right.clone()]).code(), "PAL0264");
    let indefinite = Datum::matrix(2, 2, vec![1.0, 2.0, 2.0, 1.0]);
    assert_eq!(
        fails(&unary(Linalg::Cholesky), &[indefinite]),
        RunErrorKind::NotPositiveDefinite { op: "cholesky", row: 1 }
    );
    assert_eq!(fails(&unary(Linalg::Determinant), &[Datum::matrix(1, 2, vec![1.0, 2.0])]).code(), "PAL0267");
    assert_eq!(fails(&unary(Linalg::Qr), &[Datum::matrix(1, 2, vec![1.0, 2.0])]).code(), "PAL0267");
    // One value of the last is 2e308.
    for entries in [vec![1.0, f64::NAN, f64::NAN, 4.0], vec![1e308; 4]] {
        let matrix = [Datum::matrix(2, 2, entries)];
        assert_eq!(fails(&unary(Linalg::SymmetricEigen), &matrix).code(), "PAL0269");
        assert_eq!(fails(&unary(Linalg::Svd), &matrix).code(), "PAL0269");
    }
    assert_eq!(fails(&solve, &[singular, Datum::vector(vec![1.0])]).code(), "PAL0264");
    let regular = Datum::matrix(2, 2, vec![1.0, 2.0, 2.0, 5.0]);
    assert_eq!(fails(&solve, &[regular, Datum::vector(vec![1.0])]).code(), "PAL0252");
}
