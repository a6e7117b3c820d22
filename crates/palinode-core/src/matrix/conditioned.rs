//! Systems of plain numbers with a condition number, for the derivatives of implicit functions.
//!
//! Input: a square matrix by columns. Output: solutions of `A x = b` and `A^T x = b`, or that `A` is
//! singular. Rows and columns are scaled by powers of two first, so the condition number speaks of the
//! equations and not of their units.

use super::{Lu, Matrix};
use crate::dense::dot;

/// `P R A C = L U` with row scales `R`, column scales `C` and row exchanges `P`.
#[derive(Clone, Debug)]
pub struct Conditioned {
    /// Of the scaled matrix, unless it has none.
    factors: Option<Lu<f64>>,
    row_scales: Vec<f64>,
    column_scales: Vec<f64>,
    /// In the 1-norm, of the scaled matrix; estimated from below, most often exact, hardly ever off by more
    /// than a factor of three.
    pub condition: f64,
}

impl Conditioned {
    /// Factors a square matrix; the condition number is infinite if it is singular.
    pub fn of(mut a: Matrix<f64>) -> Self {
        let (row_scales, column_scales) = scales(&a);
        a.data.chunks_mut(a.rows.max(1)).zip(&column_scales).for_each(|(column, scale)| {
            column.iter_mut().zip(&row_scales).for_each(|(entry, row)| *entry *= row * scale);
        });
        let (norm, is_finite) = (one_norm(&a), a.data.iter().all(|entry| entry.is_finite()));
        let factors = Lu::new(a).ok().filter(|_| is_finite);
        let mut system = Conditioned { factors, row_scales, column_scales, condition: f64::INFINITY };
        if system.factors.is_some() {
            let empty = system.row_scales.is_empty();
            system.condition = if empty { 1.0 } else { norm * system.inverse_norm() };
        }
        system
    }

    /// Whether solutions have no correct digit.
    pub fn is_singular(&self) -> bool {
        self.condition.is_nan() || self.condition * f64::EPSILON * self.row_scales.len() as f64 >= 1.0
    }

    /// `x` of `A x = b`, or of `A^T x = b`; not numbers if there are no factors.
    pub fn solve(&self, transposed: bool, b: &[f64]) -> Vec<f64> {
        let (mut before, mut after) = (&self.row_scales, &self.column_scales);
        if transposed {
            core::mem::swap(&mut before, &mut after);
        }
        let mut x: Vec<f64> = b.iter().zip(before).map(|(b, scale)| b * scale).collect();
        self.scaled_solve(transposed, &mut x);
        x.iter_mut().zip(after).for_each(|(x, scale)| *x *= scale);
        x
    }

    fn scaled_solve(&self, transposed: bool, x: &mut [f64]) {
        match &self.factors {
            Some(factors) => factors.solve(transposed, x),
            None => x.fill(f64::NAN),
        }
    }

    /// The 1-norm of the inverse of the scaled matrix, by a few solutions (Higham 1988): the largest image of
    /// a unit vector is looked for uphill, and one vector more catches matrices that hide it.
    fn inverse_norm(&self) -> f64 {
        let n = self.row_scales.len();
        let size = |x: &[f64]| x.iter().map(|x| x.abs()).sum::<f64>();
        let mut x = vec![1.0 / n as f64; n];
        let mut largest = 0.0;
        for _ in 0..5 {
            let mut image = x.clone();
            self.scaled_solve(false, &mut image);
            let found = size(&image);
            if found.is_nan() || found <= largest {
                break;
            }
            largest = found;
            let mut slopes: Vec<f64> = image.iter().map(|y| if *y < 0.0 { -1.0 } else { 1.0 }).collect();
            self.scaled_solve(true, &mut slopes);
            let steepest = (0..n).max_by(|&a, &b| slopes[a].abs().total_cmp(&slopes[b].abs())).unwrap_or(0);
            if slopes[steepest].abs() <= dot(&slopes, &x) {
                break;
            }
            x.fill(0.0);
            x[steepest] = 1.0;
        }
        let wave =
            |k: usize| (1.0 + k as f64 / n.max(2) as f64) * if k.is_multiple_of(2) { 1.0 } else { -1.0 };
        let mut wave: Vec<f64> = (0..n).map(wave).collect();
        let given = size(&wave);
        self.scaled_solve(false, &mut wave);
        let other = size(&wave) / given;
        // Not a number counts as infinite.
        if largest >= other {
            largest
        } else if other.is_nan() {
            f64::INFINITY
        } else {
            other
        }
    }
}

/// Powers of two that bring the largest entry of every row and column near 1 (Ruiz 2001).
fn scales(a: &Matrix<f64>) -> (Vec<f64>, Vec<f64>) {
    let size = a.rows;
    let (mut rows, mut of_columns) = (vec![1.0f64; size], vec![1.0f64; size]);
    // Each round takes the square root of what is out of scale.
    for _ in 0..12 {
        let (mut largest_row, mut largest_column) = (vec![0.0f64; size], vec![0.0f64; size]);
        for (position, entry) in a.data.iter().enumerate() {
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

fn one_norm(a: &Matrix<f64>) -> f64 {
    a.data
        .chunks(a.rows.max(1))
        .map(|column| column.iter().map(|entry| entry.abs()).sum())
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn square(size: usize, data: Vec<f64>) -> Conditioned {
        Conditioned::of(Matrix { rows: size, columns: size, data })
    }

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
            // No entry near zero: next to one, what is large in the wrong units can be scaled away only in
            // part.
            let mut columns: Vec<f64> = entries.iter().map(|entry| entry.signum() * (0.1 + entry.abs())).collect();
            (0..5).for_each(|k| columns[k * 5 + k] += if columns[k * 5 + k] < 0.0 { -5.0 } else { 5.0 });
            // Equations and unknowns in units of their own.
            let (row_unit, column_unit) = (|row| 10f64.powi(3 * row as i32), |column| 10f64.powi(-4 * column as i32));
            for row in 0..5 {
                (0..5).for_each(|column| columns[column * 5 + row] *= row_unit(row) * column_unit(column));
            }
            let lu = square(5, columns.clone());
            prop_assert!(lu.condition < 1e3, "{}", lu.condition);
            for transposed in [false, true] {
                let unit = |k: usize| if transposed { 1.0 / row_unit(k) } else { 1.0 / column_unit(k) };
                let x: Vec<f64> = x.iter().enumerate().map(|(k, x)| x * unit(k)).collect();
                let b = product(5, &columns, &x, transposed);
                let found = lu.solve(transposed, &b);
                for (k, (found, x)) in found.iter().zip(&x).enumerate() {
                    prop_assert!((found - x).abs() < 1e-13 * unit(k), "{found} {x}");
                }
            }
        }
    }

    #[test]
    fn condition_numbers_are_what_the_inverse_says() {
        // Against the inverse itself, of matrices at random: never more, and hardly less.
        let mut random = palinode_num::Draws::new(1);
        for size in [1, 2, 3, 5, 8, 20] {
            for _ in 0..50 {
                let columns: Vec<f64> = (0..size * size).map(|_| random.signed()).collect();
                let lu = square(size, columns.clone());
                let unit = |k: usize| (0..size).map(|i| f64::from(u8::from(i == k))).collect::<Vec<f64>>();
                let mut inverse: Vec<f64> = (0..size).flat_map(unit).collect();
                lu.scaled_solve(false, &mut inverse);
                let scaled: Vec<f64> = columns
                    .iter()
                    .enumerate()
                    .map(|(at, entry)| entry * lu.row_scales[at % size] * lu.column_scales[at / size])
                    .collect();
                let norm = |data| one_norm(&Matrix { rows: size, columns: size, data });
                let exact = norm(scaled) * norm(inverse);
                let part = lu.condition / exact;
                assert!((1.0 / 3.0..1.0 + 1e-10).contains(&part), "{size}: {part}");
            }
        }
        // The second difference of n points: 4 (n + 1)^2 / pi^2 in the 2-norm, half of (n + 1)^2 in the
        // 1-norm.
        let n = 200;
        let entry = |at: usize| match (at / n).abs_diff(at % n) {
            0 => 2.0,
            1 => -1.0,
            _ => 0.0,
        };
        let condition = square(n, (0..n * n).map(entry).collect()).condition;
        assert!((condition / (0.5 * 201.0 * 201.0) - 1.0).abs() < 0.01, "{condition}");
    }

    #[test]
    fn singular_matrices_are_seen() {
        assert!(square(2, vec![1.0, 2.0, 2.0, 4.0]).is_singular());
        assert!(square(2, vec![0.0; 4]).is_singular());
        assert!(square(3, vec![1.0, 4.0, 7.0, 2.0, 5.0, 8.0, 3.0, 6.0, 9.0]).is_singular());
        assert!(square(1, vec![f64::NAN]).is_singular());
        assert!(!square(2, vec![1e-200, 0.0, 0.0, 1e200]).is_singular());
        assert!(!square(0, vec![]).is_singular());
    }
}
