//! nalgebra at structured points (zeros, ones, equal and opposite entries, permutations, low rank): every
//! derivative is right, or refused with the decision that is to blame.
//!
//! Differences of plain numbers say what is right, at points where forward and backward differences
//! agree: elsewhere the function has no derivative. Where plain numbers have a value and a derivative, "not
//! finite" (PAL0103, PAL0104) is no answer: the point is inside the function's domain.
//!
//! Left out are iterations whose steps at such points are decided by rounding, which makes their derivatives
//! large: Schur forms. What is put together again from singular vectors is mostly refused; a few points that
//! were wrong are kept.

use crate::check::{Function, Number, constant};
use nalgebra::{DMatrix, DVector, Matrix3, Quaternion, Rotation3, UnitQuaternion, Vector3};
use palinode::drivers::{hvp, jvp};
use palinode::num::Key;
use palinode::{Error, grad, hessian};

/// Which function of nine numbers.
struct Case(usize);

const CASES: usize = 23;

fn weighted<T: Number>(numbers: impl IntoIterator<Item = T>) -> T {
    let weights = [1.0, -2.0, 0.5, 3.0, 0.7, -0.3, 1.9, 0.4, -1.1];
    numbers.into_iter().zip(weights).fold(constant(0.0), |sum, (x, w)| sum + x * constant(w))
}

fn sorted<T: Number>(numbers: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut numbers: Vec<T> = numbers.into_iter().collect();
    numbers.sort_by(|a, b| a.partial_cmp(b).expect("a number"));
    numbers
}

impl Function for Case {
    fn call<T: Number>(&self, x: &[T]) -> T {
        let a = Matrix3::from_column_slice(x);
        let symmetric = a + a.transpose();
        let v = Vector3::new(x[0], x[1], x[2]);
        let b = Vector3::new(constant(1.0), constant(2.0), constant(3.0));
        let large = || DMatrix::from_column_slice(3, 3, x);
        let of = |a: &Matrix3<T>| weighted(a.iter().copied());
        match self.0 {
            0 => a.determinant(),
            1 => of(&(a + Matrix3::<T>::identity() * constant::<T>(3.5)).try_inverse().expect("invertible")),
            2 => of(&a.pseudo_inverse(constant(1e-9)).expect("a threshold")),
            3 => weighted(a.svd(true, true).solve(&b, constant(1e-9)).expect("vectors").iter().copied()),
            4 => weighted(sorted(symmetric.symmetric_eigenvalues().iter().copied())),
            5 => weighted(sorted(a.singular_values().iter().copied())),
            6 => weighted((Rotation3::from_scaled_axis(v) * b).iter().copied()),
            7 => {
                let q = UnitQuaternion::from_quaternion(Quaternion::new(constant(1.0), x[0], x[1], x[2]));
                weighted(q.scaled_axis().iter().copied())
            }
            8 => weighted(a.qr().r().iter().copied().map(|r| r * r)),
            9 => weighted((symmetric.symmetric_eigen().recompose() * b).iter().copied()),
            10 => a.lu().determinant(),
            11 => large().lu().determinant(),
            12 => weighted(a.lu().solve(&b).expect("invertible").iter().copied()),
            13 => a.full_piv_lu().determinant(),
            14 => weighted(a.full_piv_lu().solve(&b).expect("invertible").iter().copied()),
            15 => of(&a.try_inverse().expect("invertible")),
            16 => a.col_piv_qr().determinant(),
            17 => weighted(a.qr().solve(&b).expect("invertible").iter().copied()),
            18 => {
                let square = a * a.transpose() + Matrix3::<T>::identity() * constant::<T>(0.5);
                of(&square.cholesky().expect("positive definite").l())
            }
            // What is left of a decomposition that is put together again: the matrix.
            19 => {
                let (p, l, u) = a.lu().unpack();
                let mut product = l * u;
                p.inv_permute_rows(&mut product);
                of(&product)
            }
            // Sums of powers of all values: traces.
            20 => symmetric.symmetric_eigenvalues().iter().fold(constant(0.0), |s, &w| s + w * w * w),
            21 => a.singular_values().iter().fold(constant(0.0), |s, &w| s + w * w * w * w),
            // Not one of the generator's: see below.
            23 => weighted((a.svd(true, true).recompose().expect("vectors") * b).iter().copied()),
            _ => {
                let (q, r) = large().qr().unpack();
                weighted((q * r * DVector::from_column_slice(b.as_slice())).iter().copied())
            }
        }
    }
}

/// An entry of a structured point: often a small integer.
fn entry(key: Key, i: u64) -> f64 {
    match key.below(8, 2 * i) {
        0..=2 => 0.0,
        3 | 4 => 1.0,
        5 => -1.0,
        6 => 2.0,
        _ => 2.0 * key.uniform(2 * i + 1) - 1.0,
    }
}

/// A matrix with some structure, by columns.
fn point(key: Key) -> Vec<f64> {
    let (shift, sign) = (key.below(6, 50), 1.0 - 2.0 * key.below(2, 51) as f64);
    let permuted = |row: u64, column: u64| match shift {
        0..=2 => row == (column + shift) % 3,
        _ => row == (2 * column + shift) % 3,
    };
    let each = |f: &dyn Fn(u64, u64) -> f64| (0..9).map(|i| f(i % 3, i / 3)).collect();
    match key.below(8, 52) {
        0 => each(&|row, column| if permuted(row, column) { sign } else { 0.0 }),
        1 => each(&|row, column| if permuted(row, column) { entry(key, column) } else { 0.0 }),
        2 => each(&|_, _| entry(key, 0)),
        3 => each(&|row, column| entry(key, row) * entry(key, 3 + column)),
        4 => each(&|row, column| if row <= column { entry(key, row + 3 * column) } else { 0.0 }),
        _ => each(&|row, column| entry(key, row + 3 * column)),
    }
}

/// The gradient by differences, if the function has one here.
fn differences(case: &Case, x: &[f64]) -> Option<Vec<f64>> {
    let at = |i: usize, h: f64| {
        let mut x = x.to_vec();
        x[i] += h;
        case.call(&x)
    };
    let here = case.call(x);
    let gradient: Vec<f64> = (0..x.len())
        .map(|i| {
            let central = |h: f64| (at(i, h) - at(i, -h)) / (2.0 * h);
            let (coarse, fine) = (central(2e-4), central(1e-4));
            let best = (4.0 * fine - coarse) / 3.0;
            let forward = (at(i, 1e-5) - here) / 1e-5;
            let scale = 1.0 + best.abs();
            let smooth = (coarse - fine).abs() < 1e-4 * scale && (forward - best).abs() < 1e-3 * scale;
            smooth.then_some(best)
        })
        .collect::<Option<_>>()?;
    // Between the axes, too: signs that nalgebra chooses may change there.
    let is_linear = |seed: u64| {
        let way: Vec<f64> =
            (0..x.len() as u64).map(|i| 2.0 * Key::from_seed(seed).uniform(i) - 1.0).collect();
        let slope: f64 = gradient.iter().zip(&way).map(|(g, v)| g * v).sum();
        [1e-5, -1e-5].iter().all(|h| {
            let moved: Vec<f64> = x.iter().zip(&way).map(|(x, v)| x + h * v).collect();
            ((case.call(&moved) - here) / h - slope).abs() < 1e-3 * (1.0 + slope.abs())
        })
    };
    (1..=16).all(is_linear).then_some(gradient)
}

/// The Hessian times a direction, by differences, if the function has one here: in pairs of steps of several
/// sizes.
fn second_differences(case: &Case, x: &[f64], direction: &[f64]) -> Option<Vec<f64>> {
    let at = |i: usize, h: f64, t: f64| {
        let mut x: Vec<f64> = x.iter().zip(direction).map(|(x, v)| x + t * v).collect();
        x[i] += h;
        case.call(&x)
    };
    (0..x.len())
        .map(|i| {
            let mixed =
                |h: f64, t: f64| (at(i, h, t) - at(i, -h, t) - at(i, h, -t) + at(i, -h, -t)) / (4.0 * h * t);
            let (coarse, fine, other) = (mixed(2e-3, 2e-3), mixed(1e-3, 1e-3), mixed(1e-3, 3e-3));
            let best = (4.0 * fine - coarse) / 3.0;
            let smooth = |a: f64| (a - best).abs() < 1e-3 * (1.0 + best.abs());
            (smooth(coarse) && smooth(fine) && smooth(other)).then_some(best)
        })
        .collect()
}

#[derive(Debug, Default)]
struct Tally {
    right: usize,
    refused: usize,
    rough: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn judge(&mut self, what: &str, found: Result<Vec<f64>, Error>, expected: &[f64], tolerance: f64) {
        match found {
            Ok(found) => {
                let error = found.iter().zip(expected).fold(0.0_f64, |e, (a, b)| e.max((a - b).abs()));
                match error < tolerance {
                    true => self.right += 1,
                    false => self.wrong.push(format!("{what}: {found:?}, not {expected:?}")),
                }
            }
            Err(error) if error.code() == "PAL0119" => self.refused += 1,
            Err(error) => self.wrong.push(format!("{what}: {error}")),
        }
    }
}

#[test]
fn right_or_refused() {
    let points: u64 = std::env::var("PALINODE_POINTS").ok().and_then(|n| n.parse().ok()).unwrap_or(10);
    let (mut first, mut second) = (Tally::default(), Tally::default());
    for number in 0..points * CASES as u64 {
        let case = Case(number as usize % CASES);
        let key = Key::from_seed(number);
        let x = point(key);
        let what = |driver: &str| format!("{driver} of case {} at {x:?}", case.0);
        let direction: Vec<f64> = (0..9).map(|i| 0.5 + key.uniform(100 + i)).collect();
        let along = |row: &Vec<f64>| row.iter().zip(&direction).map(|(g, v)| g * v).sum::<f64>();
        let size = |expected: &[f64]| 1.0 + expected.iter().fold(0.0_f64, |size, g| size.max(g.abs()));
        let Ok(Some(expected)) = std::panic::catch_unwind(|| differences(&case, &x)) else {
            first.rough += 1;
            continue;
        };
        let tolerance = 1e-3 * size(&expected);
        first.judge(&what("grad"), grad(|x| case.call(x), &x), &expected, tolerance);
        let forward = jvp(|x| case.call(x), &x, &direction).map(|answer| answer.1);
        first.judge(&what("jvp"), forward, &[along(&expected)], tolerance);
        // Second derivatives are slow where they are looked at: of some points.
        if !(number / CASES as u64).is_multiple_of(8) {
            continue;
        }
        let Ok(Some(expected)) = std::panic::catch_unwind(|| second_differences(&case, &x, &direction))
        else {
            second.rough += 1;
            continue;
        };
        let tolerance = 1e-2 * size(&expected);
        let product = hvp(|x| case.call(x), &x, &direction).map(|answer| answer.2);
        second.judge(&what("hvp"), product, &expected, tolerance);
        let whole = hessian(|x| case.call(x), &x).map(|rows| rows.iter().map(along).collect());
        second.judge(&what("hessian"), whole, &expected, tolerance);
    }
    println!("first derivatives: {first:?}; second: {second:?}");
    for Tally { right, refused, wrong, .. } in [first, second] {
        assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
        assert!(right > refused && refused > 0, "{right} right, {refused} refused");
    }
}

/// Found by 300 points: a single side of sixteen, taken from far away for a comparison that only seemed to be
/// the same one, left 12 open; 238.0 lay within, and was accepted. The direction is that of the generator;
/// `x = A^-1 b` has the derivative `-A^-1 dA x`.
#[test]
fn a_vague_side_acquits_nothing() {
    let x = [0.0, 0.0, 1.0, 0.8982587174752348, 1.0, 0.0, 1.0, 1.0, 0.0];
    let direction = [
        0.8519246773087698,
        1.478871806651303,
        1.2787305786951437,
        1.0135101951049785,
        1.44056542401169,
        1.0484924052530418,
        1.44814267447662,
        0.9106007245002775,
        1.0769121573062859,
    ];
    let a = Matrix3::from_column_slice(&x);
    let inverse = a.try_inverse().expect("invertible");
    let solution = inverse * Vector3::new(1.0, 2.0, 3.0);
    let change: Vector3<f64> = -inverse * Matrix3::from_column_slice(&direction) * solution;
    let expected = weighted(change.iter().copied());
    assert!((expected - 241.3206).abs() < 1e-3, "{expected}");
    let refused = jvp(|x| Case(3).call(x), &x, &direction).map(|answer| answer.1);
    assert_eq!(refused.expect_err("of the point").code(), "PAL0119");
    // By the decomposition that has no such comparison it is right.
    let (_, found) = jvp(|x| Case(12).call(x), &x, &direction).expect("solved by LU");
    assert!((found[0] - expected).abs() < 1e-9 * expected, "{found:?}, not {expected}");
}

/// Of 300 matrices that are put together again these were wrong: matrices of low rank, which are of low rank
/// near the point as well if their entries are moved evenly.
#[test]
fn low_rank_put_together_again_is_right_or_refused() {
    let mut tally = Tally::default();
    for round in [21, 103, 111, 138, 221, 228, 270, 1975] {
        let key = Key::from_seed(23 * round + 23);
        let x = point(key);
        let direction: Vec<f64> = (0..9).map(|i| 0.5 + key.uniform(100 + i)).collect();
        // The function is `w A b`.
        let b = [1.0, 2.0, 3.0];
        let expected: f64 =
            (0..3).map(|c| b[c] * weighted(direction[3 * c..3 * c + 3].iter().copied())).sum();
        let found = jvp(|x| Case(23).call(x), &x, &direction).map(|answer| answer.1);
        tally.judge(&format!("jvp at {x:?}"), found, &[expected], 1e-6 * (1.0 + expected.abs()));
    }
    assert!(tally.wrong.is_empty(), "{}", tally.wrong.join("\n"));
}
