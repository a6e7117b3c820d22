//! nalgebra at structured points (zeros, ones, equal and opposite entries): every gradient and directional derivative is right or refused.
//!
//! What is right is told by differences of plain numbers, at points where forward and backward differences agree: elsewhere the function has no derivative.

use crate::check::{Function, Number, constant};
use nalgebra::{Matrix3, Quaternion, Rotation3, UnitQuaternion, Vector3};
use palinode::{Key, grad, jvp};

/// Which function of nine numbers.
struct Case(usize);

const CASES: usize = 10;

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
        match self.0 {
            0 => a.determinant(),
            1 => weighted(
                (a + Matrix3::<T>::identity() * constant::<T>(3.5))
                    .try_inverse()
                    .expect("invertible")
                    .iter()
                    .copied(),
            ),
            2 => weighted(a.pseudo_inverse(constant(1e-9)).expect("a threshold").iter().copied()),
            3 => weighted(a.svd(true, true).solve(&b, constant(1e-9)).expect("vectors").iter().copied()),
            4 => weighted(sorted(symmetric.symmetric_eigenvalues().iter().copied())),
            5 => weighted(sorted(a.singular_values().iter().copied())),
            6 => weighted((Rotation3::from_scaled_axis(v) * b).iter().copied()),
            7 => {
                let q = UnitQuaternion::from_quaternion(Quaternion::new(constant(1.0), x[0], x[1], x[2]));
                weighted(q.scaled_axis().iter().copied())
            }
            8 => weighted(a.qr().r().iter().copied().map(|r| r * r)),
            _ => {
                let eigen = symmetric.symmetric_eigen();
                let turned = eigen.recompose() * b;
                weighted(turned.iter().copied())
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

/// The gradient by differences, if the function has one here.
fn differences(case: &Case, x: &[f64]) -> Option<Vec<f64>> {
    let at = |i: usize, h: f64| {
        let mut x = x.to_vec();
        x[i] += h;
        case.call(&x)
    };
    let here = case.call(x);
    (0..x.len())
        .map(|i| {
            let central = |h: f64| (at(i, h) - at(i, -h)) / (2.0 * h);
            let (coarse, fine) = (central(2e-4), central(1e-4));
            let best = (4.0 * fine - coarse) / 3.0;
            let forward = (at(i, 1e-5) - here) / 1e-5;
            let scale = 1.0 + best.abs();
            let smooth = (coarse - fine).abs() < 1e-4 * scale && (forward - best).abs() < 1e-3 * scale;
            smooth.then_some(best)
        })
        .collect()
}

#[test]
fn right_or_refused() {
    let points: u64 = std::env::var("PALINODE_POINTS").ok().and_then(|n| n.parse().ok()).unwrap_or(100);
    let (mut right, mut refused, mut rough) = (0, 0, 0);
    for number in 0..points * CASES as u64 {
        let case = Case(number as usize % CASES);
        let key = Key::from_seed(number);
        let x: Vec<f64> = (0..9).map(|i| entry(key, i)).collect();
        let Ok(Some(expected)) = std::panic::catch_unwind(|| differences(&case, &x)) else {
            rough += 1;
            continue;
        };
        let direction: Vec<f64> = (0..9).map(|i| 0.5 + key.uniform(100 + i)).collect();
        let along: f64 = expected.iter().zip(&direction).map(|(g, v)| g * v).sum();
        let size = 1.0 + expected.iter().fold(0.0_f64, |size, g| size.max(g.abs()));
        let mut judge = |name: &str, found: Result<Vec<f64>, palinode::Error>, expected: &[f64]| match found {
            Ok(found) => {
                let error = found.iter().zip(expected).fold(0.0_f64, |e, (a, b)| e.max((a - b).abs()));
                assert!(
                    error < 1e-3 * size,
                    "{name} of case {} at {x:?}: {found:?}, not {expected:?}",
                    case.0
                );
                right += 1;
            }
            Err(error) => {
                assert!(["PAL0103", "PAL0104", "PAL0119"].contains(&error.code()), "{error}");
                refused += 1;
            }
        };
        judge("grad", grad(|x| case.call(x), &x), &expected);
        judge("jvp", jvp(|x| case.call(x), &x, &direction).map(|answer| answer.1), &[along]);
    }
    println!("{right} right, {refused} refused, {rough} points without a derivative");
    assert!(right > 4 * refused && refused > 0, "{right} right, {refused} refused, {rough} rough");
}
