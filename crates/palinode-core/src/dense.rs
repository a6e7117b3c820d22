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
    /// In the 1-norm, of the scaled matrix.
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
            for row in k + 1..size {
                let ratio = factors[k * size + row] / diagonal;
                factors[k * size + row] = ratio;
                for column in k + 1..size {
                    factors[column * size + row] -= ratio * factors[column * size + k];
                }
            }
        }
        let mut lu = Lu { size, factors, order, row_scales, column_scales, condition: f64::INFINITY };
        if !singular {
            let mut inverse = Vec::with_capacity(size * size);
            for k in 0..size {
                let mut unit = vec![0.0; size];
                unit[k] = 1.0;
                inverse.extend(lu.scaled_solve(&unit));
            }
            lu.condition = if size == 0 { 1.0 } else { norm * one_norm(size, &inverse) };
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
        let n = self.size;
        let mut y: Vec<f64> = b.iter().zip(&self.column_scales).map(|(b, scale)| b * scale).collect();
        for k in 0..n {
            let known: f64 = (0..k).map(|j| self.factors[k * n + j] * y[j]).sum();
            y[k] = (y[k] - known) / self.factors[k * n + k];
        }
        for k in (0..n).rev() {
            let known: f64 = (k + 1..n).map(|j| self.factors[k * n + j] * y[j]).sum();
            y[k] -= known;
        }
        let mut x = vec![0.0; n];
        self.order.iter().zip(y).for_each(|(&row, y)| x[row] = y * self.row_scales[row]);
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
    let largest = max_norm(a);
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    largest * a.iter().map(|a| (a / largest) * (a / largest)).sum::<f64>().sqrt()
}

/// The largest absolute value; NaN if there is one.
pub fn max_norm(a: &[f64]) -> f64 {
    a.iter().fold(
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
    }
}
