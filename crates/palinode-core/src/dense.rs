//! Small dense systems of plain numbers: a factorisation with a condition number, and least squares for Anderson mixing.
//!
//! Input: matrices by columns. Output: solutions of `A x = b` and `A^T x = b`, or that `A` is singular. Rows and columns are scaled by powers of two
//! first, so the condition number speaks of the equations and not of their units.
//!
//! For the linear systems of implicit derivatives, which exist in every build: `nalgebra` is optional, and these are few lines.

/// `P R A C = L U` with row scales `R`, column scales `C` and row exchanges `P`.
#[derive(Clone, Debug)]
pub struct Lu {
    size: usize,
    /// `L` below the diagonal, `U` on and above it; by columns.
    factors: Vec<f64>,
    order: Vec<usize>,
    row_scales: Vec<f64>,
    column_scales: Vec<f64>,
    /// In the 1-norm, of the scaled matrix; estimated from below, most often exact, hardly ever off by more than a factor of three.
    pub condition: f64,
}

impl Lu {
    /// Factors the matrix with these columns, one after the other; the condition number is infinite if it is singular.
    pub fn of(size: usize, mut factors: Vec<f64>) -> Self {
        let (row_scales, column_scales) = scales(size, &factors);
        factors.chunks_mut(size.max(1)).zip(&column_scales).for_each(|(column, scale)| {
            column.iter_mut().zip(&row_scales).for_each(|(entry, row)| *entry *= row * scale);
        });
        let norm = one_norm(size, &factors);
        let mut order: Vec<usize> = (0..size).collect();
        let mut singular = false;
        for k in 0..size {
            let pivot = (k..size)
                .max_by(|&a, &b| factors[k * size + a].abs().total_cmp(&factors[k * size + b].abs()))
                .expect("there is a row k");
            order.swap(k, pivot);
            (0..size).for_each(|column| factors.swap(column * size + k, column * size + pivot));
            let diagonal = factors[k * size + k];
            if diagonal == 0.0 || !diagonal.is_finite() {
                singular = true;
                break;
            }
            let (done, rest) = factors.split_at_mut((k + 1) * size);
            let ratios = &mut done[k * size + k + 1..];
            ratios.iter_mut().for_each(|ratio| *ratio /= diagonal);
            // Column by column, as they lie; most are done with soon where the matrix is narrow.
            for column in rest.chunks_mut(size) {
                let (upper, lower) = column.split_at_mut(k + 1);
                if upper[k] != 0.0 {
                    let top = upper[k];
                    lower.iter_mut().zip(&*ratios).for_each(|(entry, ratio)| *entry -= ratio * top);
                }
            }
        }
        let mut lu = Lu { size, factors, order, row_scales, column_scales, condition: f64::INFINITY };
        if !singular {
            lu.condition = if size == 0 { 1.0 } else { norm * lu.inverse_norm() };
        }
        lu
    }

    /// Whether solutions have no correct digit.
    pub fn is_singular(&self) -> bool {
        self.condition.is_nan() || self.condition * f64::EPSILON * self.size as f64 >= 1.0
    }

    /// `x` of `A x = b`.
    pub fn solve(&self, b: &[f64]) -> Vec<f64> {
        let scaled: Vec<f64> = b.iter().zip(&self.row_scales).map(|(b, scale)| b * scale).collect();
        let mut x = self.scaled_solve(&scaled);
        x.iter_mut().zip(&self.column_scales).for_each(|(x, scale)| *x *= scale);
        x
    }

    /// `x` of `A^T x = b`.
    pub fn solve_transposed(&self, b: &[f64]) -> Vec<f64> {
        let scaled: Vec<f64> = b.iter().zip(&self.column_scales).map(|(b, scale)| b * scale).collect();
        let mut x = self.scaled_solve_transposed(scaled);
        x.iter_mut().zip(&self.row_scales).for_each(|(x, scale)| *x *= scale);
        x
    }

    /// The 1-norm of the inverse of the scaled matrix, by a few solutions (Higham 1988): the largest image of a unit vector is looked for uphill, and
    /// one vector more catches matrices that hide it.
    fn inverse_norm(&self) -> f64 {
        let n = self.size;
        let size = |x: &[f64]| x.iter().map(|x| x.abs()).sum::<f64>();
        let mut x = vec![1.0 / n as f64; n];
        let mut largest = 0.0;
        for _ in 0..5 {
            let image = self.scaled_solve(&x);
            let found = size(&image);
            if found.is_nan() || found <= largest {
                break;
            }
            largest = found;
            let signs: Vec<f64> = image.iter().map(|y| if *y < 0.0 { -1.0 } else { 1.0 }).collect();
            let slopes = self.scaled_solve_transposed(signs);
            let steepest = (0..n).max_by(|&a, &b| slopes[a].abs().total_cmp(&slopes[b].abs())).unwrap_or(0);
            if slopes[steepest].abs() <= dot(&slopes, &x) {
                break;
            }
            x.fill(0.0);
            x[steepest] = 1.0;
        }
        let wave =
            |k: usize| (1.0 + k as f64 / n.max(2) as f64) * if k.is_multiple_of(2) { 1.0 } else { -1.0 };
        let wave: Vec<f64> = (0..n).map(wave).collect();
        let other = size(&self.scaled_solve(&wave)) / size(&wave);
        // Not a number counts as infinite.
        if largest >= other {
            largest
        } else if other.is_nan() {
            f64::INFINITY
        } else {
            other
        }
    }

    fn scaled_solve_transposed(&self, mut y: Vec<f64>) -> Vec<f64> {
        let n = self.size;
        for k in 0..n {
            let known: f64 = (0..k).map(|j| self.factors[k * n + j] * y[j]).sum();
            y[k] = (y[k] - known) / self.factors[k * n + k];
        }
        for k in (0..n).rev() {
            let known: f64 = (k + 1..n).map(|j| self.factors[k * n + j] * y[j]).sum();
            y[k] -= known;
        }
        let mut x = vec![0.0; n];
        self.order.iter().zip(y).for_each(|(&row, y)| x[row] = y);
        x
    }

    fn scaled_solve(&self, b: &[f64]) -> Vec<f64> {
        let n = self.size;
        let mut x: Vec<f64> = self.order.iter().map(|&row| b[row]).collect();
        for k in 0..n {
            for row in k + 1..n {
                x[row] -= self.factors[k * n + row] * x[k];
            }
        }
        for k in (0..n).rev() {
            x[k] /= self.factors[k * n + k];
            for row in 0..k {
                x[row] -= self.factors[k * n + row] * x[k];
            }
        }
        x
    }
}

/// Powers of two that bring the largest entry of every row and column near 1 (Ruiz 2001).
fn scales(size: usize, columns: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let (mut rows, mut of_columns) = (vec![1.0f64; size], vec![1.0f64; size]);
    // Each round takes the square root of what is out of scale.
    for _ in 0..12 {
        let (mut largest_row, mut largest_column) = (vec![0.0f64; size], vec![0.0f64; size]);
        for (position, entry) in columns.iter().enumerate() {
            let (column, row) = (position / size, position % size);
            let scaled = (entry * rows[row] * of_columns[column]).abs();
            largest_row[row] = largest_row[row].max(scaled);
            largest_column[column] = largest_column[column].max(scaled);
        }
        let scale = |scales: &mut [f64], largest: &[f64]| {
            scales
                .iter_mut()
                .zip(largest)
                .filter(|(_, largest)| largest.is_normal())
                .for_each(|(scale, largest)| *scale = (*scale / largest.sqrt()).clamp(1e-150, 1e150));
        };
        scale(&mut rows, &largest_row);
        scale(&mut of_columns, &largest_column);
    }
    let power = |scales: Vec<f64>| scales.into_iter().map(|scale| scale.log2().round().exp2()).collect();
    (power(rows), power(of_columns))
}

fn one_norm(size: usize, columns: &[f64]) -> f64 {
    columns.chunks(size.max(1)).map(|column| column.iter().map(|entry| entry.abs()).sum()).fold(0.0, f64::max)
}

/// The coefficients that bring the combination of these columns closest to `target`; columns that depend on those before them get zero.
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
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The Euclidean norm, without overflow.
pub fn norm(a: &[f64]) -> f64 {
    norm_of(a.iter().copied())
}

/// The same of numbers that are gone through twice only where their squares overflow or vanish. That of finite numbers is finite: at most `f64::MAX`.
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

    fn product(size: usize, columns: &[f64], x: &[f64], transposed: bool) -> Vec<f64> {
        (0..size)
            .map(|row| {
                let entry = |column: usize| {
                    if transposed { columns[row * size + column] } else { columns[column * size + row] }
                };
                (0..size).map(|column| entry(column) * x[column]).sum()
            })
            .collect()
    }

    proptest! {
        #[test]
        fn solutions_solve(entries in prop::collection::vec(-1.0..1.0f64, 25), x in prop::collection::vec(-1.0..1.0f64, 5)) {
            // No entry near zero: next to one, what is large in the wrong units can be scaled away only in part.
            let mut columns: Vec<f64> = entries.iter().map(|entry| entry.signum() * (0.1 + entry.abs())).collect();
            (0..5).for_each(|k| columns[k * 5 + k] += if columns[k * 5 + k] < 0.0 { -5.0 } else { 5.0 });
            // Equations and unknowns in units of their own.
            let (row_unit, column_unit) = (|row| 10f64.powi(3 * row as i32), |column| 10f64.powi(-4 * column as i32));
            for row in 0..5 {
                (0..5).for_each(|column| columns[column * 5 + row] *= row_unit(row) * column_unit(column));
            }
            let lu = Lu::of(5, columns.clone());
            prop_assert!(lu.condition < 1e3, "{}", lu.condition);
            for transposed in [false, true] {
                let unit = |k: usize| if transposed { 1.0 / row_unit(k) } else { 1.0 / column_unit(k) };
                let x: Vec<f64> = x.iter().enumerate().map(|(k, x)| x * unit(k)).collect();
                let b = product(5, &columns, &x, transposed);
                let found = if transposed { lu.solve_transposed(&b) } else { lu.solve(&b) };
                for (k, (found, x)) in found.iter().zip(&x).enumerate() {
                    prop_assert!((found - x).abs() < 1e-13 * unit(k), "{found} {x}");
                }
            }
        }

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
    fn condition_numbers_are_what_the_inverse_says() {
        // Against the inverse itself, of matrices at random: never more, and hardly less.
        let mut random = crate::random::Random::new(1);
        for size in [1, 2, 3, 5, 8, 20] {
            for _ in 0..50 {
                let columns: Vec<f64> = (0..size * size).map(|_| random.signed()).collect();
                let lu = Lu::of(size, columns.clone());
                let unit = |k: usize| (0..size).map(|i| f64::from(u8::from(i == k))).collect::<Vec<f64>>();
                let inverse: Vec<f64> = (0..size).flat_map(|k| lu.scaled_solve(&unit(k))).collect();
                let scaled: Vec<f64> = columns
                    .iter()
                    .enumerate()
                    .map(|(at, entry)| entry * lu.row_scales[at % size] * lu.column_scales[at / size])
                    .collect();
                let exact = one_norm(size, &scaled) * one_norm(size, &inverse);
                let part = lu.condition / exact;
                assert!((1.0 / 3.0..1.0 + 1e-10).contains(&part), "{size}: {part}");
            }
        }
        // The second difference of n points: 4 (n + 1)^2 / pi^2 in the 2-norm, half of (n + 1)^2 in the 1-norm.
        let n = 200;
        let entry = |at: usize| match (at / n).abs_diff(at % n) {
            0 => 2.0,
            1 => -1.0,
            _ => 0.0,
        };
        let condition = Lu::of(n, (0..n * n).map(entry).collect()).condition;
        assert!((condition / (0.5 * 201.0 * 201.0) - 1.0).abs() < 0.01, "{condition}");
    }

    #[test]
    fn singular_matrices_are_seen() {
        assert!(Lu::of(2, vec![1.0, 2.0, 2.0, 4.0]).is_singular());
        assert!(Lu::of(2, vec![0.0; 4]).is_singular());
        assert!(Lu::of(3, vec![1.0, 4.0, 7.0, 2.0, 5.0, 8.0, 3.0, 6.0, 9.0]).is_singular());
        assert!(Lu::of(1, vec![f64::NAN]).is_singular());
        assert!(!Lu::of(2, vec![1e-200, 0.0, 0.0, 1e200]).is_singular());
        assert!(!Lu::of(0, vec![]).is_singular());
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
