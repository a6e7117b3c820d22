//! Vectors of plain numbers: norms, and least squares for Anderson mixing.
//!
//! For implicit functions and the sizes of cotangents, which exist in every build: `nalgebra` is optional,
//! and these are few lines.

use palinode_num::Scalar;

/// The coefficients that bring the combination of these columns closest to `target`; columns that depend on
/// those before them get zero.
pub fn least_squares(columns: &[Vec<f64>], target: &[f64]) -> Vec<f64> {
    // Gram-Schmidt, twice, which is enough.
    let mut basis: Vec<Vec<f64>> = Vec::new();
    let mut upper: Vec<Vec<f64>> = Vec::new(); // of each kept column, its coefficients in the basis
    let mut kept = Vec::new();
    for (position, column) in columns.iter().enumerate() {
        let mut rest = column.clone();
        let mut coefficients = vec![0.0; basis.len()];
        for _ in 0..2 {
            for (direction, coefficient) in basis.iter().zip(&mut coefficients) {
                let part = dot(direction, &rest);
                *coefficient += part;
                rest.iter_mut().zip(direction).for_each(|(rest, direction)| *rest -= part * direction);
            }
        }
        let length = norm(&rest);
        if length > 1e-10 * norm(column) {
            rest.iter_mut().for_each(|entry| *entry /= length);
            basis.push(rest);
            coefficients.push(length);
            upper.push(coefficients);
            kept.push(position);
        }
    }
    let mut answer = vec![0.0; columns.len()];
    let mut wanted: Vec<f64> = basis.iter().map(|direction| dot(direction, target)).collect();
    for k in (0..kept.len()).rev() {
        let coefficient = wanted[k] / upper[k][k];
        answer[kept[k]] = coefficient;
        (0..k).for_each(|row| wanted[row] -= coefficient * upper[k][row]);
    }
    answer
}

/// The sum of products.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    f64::dot(a, b)
}

/// The Euclidean norm, without overflow.
pub fn norm(a: &[f64]) -> f64 {
    norm_of(a.iter().copied())
}

/// The same of numbers that are gone through twice only where their squares overflow or vanish. That of
/// finite numbers is finite: at most `f64::MAX`.
pub fn norm_of(numbers: impl Iterator<Item = f64> + Clone) -> f64 {
    let squares: f64 = numbers.clone().map(|a| a * a).sum();
    // Here no square that counts has lost digits.
    if (1e-260..1e300).contains(&squares) {
        return squares.sqrt();
    }
    let largest = largest_of(numbers.clone());
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    let part = numbers.map(|a| (a / largest) * (a / largest)).sum::<f64>().sqrt();
    (largest * part).min(f64::MAX)
}

/// The largest absolute value; NaN if there is one.
pub fn max_norm(a: &[f64]) -> f64 {
    largest_of(a.iter().copied())
}

fn largest_of(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.fold(
        0.0,
        |largest: f64, a| if largest.is_nan() || a.is_nan() { f64::NAN } else { largest.max(a.abs()) },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn least_squares_leaves_what_is_orthogonal(entries in prop::collection::vec(-1.0..1.0f64, 18), target in prop::collection::vec(-1.0..1.0f64, 6)) {
            let mut columns: Vec<Vec<f64>> = entries.chunks(6).map(<[f64]>::to_vec).collect();
            let sum = columns[0].iter().zip(&columns[1]).map(|(a, b)| a + b).collect();
            columns.insert(2, sum); // depends on the first two
            let coefficients = least_squares(&columns, &target);
            prop_assert_eq!(coefficients[2], 0.0);
            let mut rest = target;
            for (column, coefficient) in columns.iter().zip(&coefficients) {
                rest.iter_mut().zip(column).for_each(|(rest, entry)| *rest -= coefficient * entry);
            }
            for column in &columns {
                prop_assert!(dot(column, &rest).abs() < 1e-9 * (1.0 + max_norm(&coefficients)));
            }
        }
    }

    #[test]
    fn norms_keep_nan_and_large_numbers() {
        assert!(max_norm(&[f64::NAN, 1.0]).is_nan() && max_norm(&[1.0, f64::NAN, 2.0]).is_nan());
        assert!((norm(&[3e200, 4e200]) / 5e200 - 1.0).abs() < 1e-15);
        assert_eq!(max_norm(&[-3.0, 2.0]), 3.0);
        assert!((norm(&[3e-200, 4e-200]) / 5e-200 - 1.0).abs() < 1e-15 && norm(&[5e-324]) == 5e-324);
        assert_eq!(norm(&[f64::MAX, f64::MAX]), f64::MAX); // of finite numbers
        assert!(norm(&[1.0, f64::INFINITY]) == f64::INFINITY && norm(&[1e200, f64::NAN]).is_nan());
        assert!(norm(&[]) == 0.0 && norm(&[0.0, -0.0]) == 0.0);
    }
}
