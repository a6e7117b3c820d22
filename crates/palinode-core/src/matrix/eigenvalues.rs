//! Eigenvalues of a real matrix that need not be symmetric: Householder's Hessenberg form, then Francis's
//! double QR steps (Golub and Van Loan, *Matrix Computations*, 7.4 and 7.5; the steps follow EISPACK's
//! `hqr`).
//!
//! Input: a square matrix of plain numbers. Output: real and imaginary parts, in the order of real parts; a
//! pair is together, the one with the positive imaginary part first. Eigenvalues whose real parts are equal
//! up to rounding come in the order of imaginary parts, so that those of a skew-symmetric matrix do not
//! change places by chance. Exact for triangular matrices.
//!
//! Known limit: no balancing, so errors are relative to the largest entry.

use super::spectral::scale_of;
use super::{Matrix, epsilon, primal};
use palinode_num::Scalar;

/// Steps for one eigenvalue; two or three are needed.
const MOST_STEPS: usize = 60;
/// After so many, an entry that is small beside the whole matrix is taken for zero.
const PATIENT_STEPS: usize = 25;

/// Real and imaginary parts; `None` if a number is not finite or the steps do not settle.
pub fn eigenvalues<S: Scalar>(mut a: Matrix<S>) -> Option<Vec<(S, S)>> {
    // A power of two is exact; products of entries near 1 neither overflow nor vanish.
    let scale = S::from_f64(scale_of(&a)?);
    a.data.iter_mut().for_each(|x| *x = *x / scale);
    a.reduce();
    let mut found = a.settle()?;
    in_order(&mut found, a.rows as f64 * epsilon::<S>());
    Some(found.into_iter().map(|(re, im)| (re * scale, im * scale)).collect())
}

fn size<S: Scalar>(x: S) -> f64 {
    primal(x).abs()
}

impl<S: Scalar> Matrix<S> {
    /// Zeros below the first subdiagonal, by reflections from both sides.
    fn reduce(&mut self) {
        let n = self.rows;
        for k in 0..n.saturating_sub(2) {
            let mut v: Vec<S> = (k + 1..n).map(|i| self[(i, k)]).collect();
            if v[1..].iter().all(|&x| primal(x) == 0.0) {
                continue;
            }
            // Of a matrix of low rank little more than the rounding error of rounding errors is left after
            // some columns: its squares would vanish.
            let largest = S::from_f64(v.iter().map(|&x| size(x)).fold(0.0, f64::max));
            v.iter_mut().for_each(|x| *x = *x / largest);
            let norm = S::dot(&v, &v).sqrt();
            v[0] = if primal(v[0]) < 0.0 { v[0] - norm } else { v[0] + norm };
            let factor = S::from_int(2) / S::dot(&v, &v);
            for j in k..n {
                let column: Vec<S> = (k + 1..n).map(|i| self[(i, j)]).collect();
                let along = factor * S::dot(&v, &column);
                v.iter().enumerate().for_each(|(i, &v)| self[(k + 1 + i, j)] = column[i] - along * v);
            }
            for i in 0..n {
                let row: Vec<S> = (k + 1..n).map(|j| self[(i, j)]).collect();
                let along = factor * S::dot(&v, &row);
                v.iter().enumerate().for_each(|(j, &v)| self[(i, k + 1 + j)] = row[j] - along * v);
            }
            (k + 2..n).for_each(|i| self[(i, k)] = S::zero());
        }
    }

    /// Where the block that ends at `high` begins: the last row whose subdiagonal entry is rounding error, of
    /// its neighbours or, if they have kept it back for many steps (they may be rounding errors themselves),
    /// of the whole matrix, whose entries are at most about 1 and whose norm is at most about `n`. The
    /// rounding error of that is never waited for.
    fn block_start(&self, high: usize, steps: usize) -> usize {
        let epsilon = epsilon::<S>();
        let is_small = |row: usize| {
            let around = size(self[(row - 1, row - 1)]) + size(self[(row, row)]);
            let whole = self.rows as f64;
            let is_late = around == 0.0 || steps >= PATIENT_STEPS;
            let scale = around.max(if is_late { whole } else { epsilon * whole });
            size(self[(row, row - 1)]) <= epsilon * scale
        };
        (1..=high).rev().find(|&row| is_small(row)).unwrap_or(0)
    }

    /// The eigenvalues, from the last to the first.
    fn settle(&mut self) -> Option<Vec<(S, S)>> {
        let mut found = Vec::with_capacity(self.rows);
        let (mut end, mut steps, mut shifted) = (self.rows, 0, S::zero());
        while end > 0 {
            let high = end - 1;
            let low = self.block_start(high, steps);
            if low == high {
                found.push((self[(high, high)] + shifted, S::zero()));
                (end, steps) = (end - 1, 0);
                continue;
            }
            if low + 1 == high {
                found.extend(self.pair(high, shifted));
                (end, steps) = (end - 2, 0);
                continue;
            }
            if steps == MOST_STEPS {
                return None;
            }
            steps += 1;
            let (mut x, mut y) = (self[(high, high)], self[(high - 1, high - 1)]);
            let mut product = self[(high, high - 1)] * self[(high - 1, high)];
            if steps % 10 == 0 {
                // A shift of another kind, against cycles.
                shifted = shifted + x;
                (0..=high).for_each(|i| self[(i, i)] = self[(i, i)] - x);
                let s = self[(high, high - 1)].abs() + self[(high - 1, high - 2)].abs();
                (x, y) = (s * S::from_f64(0.75), s * S::from_f64(0.75));
                product = s * s * S::from_f64(-0.4375);
            }
            self.double_step(low, high, x, y, product);
        }
        found.iter().all(|&(re, im)| primal(re).is_finite() && primal(im).is_finite()).then_some(found)
    }

    /// The eigenvalues of the two by two block that ends at `high`.
    fn pair(&self, high: usize, shifted: S) -> [(S, S); 2] {
        let product = self[(high, high - 1)] * self[(high - 1, high)];
        let p = (self[(high - 1, high - 1)] - self[(high, high)]) * S::half();
        let q = p * p + product;
        let root = q.abs().sqrt();
        let x = self[(high, high)] + shifted;
        if primal(q) < 0.0 {
            return [(x + p, root), (x + p, -root)];
        }
        let z = if primal(p) < 0.0 { p - root } else { p + root };
        let other = if primal(z) == 0.0 { x } else { x - product / z };
        [(x + z, S::zero()), (other, S::zero())]
    }

    /// One double step on the block from `low` to `high`, with the shifts whose sum is `x + y` and whose
    /// product is `x y - product`.
    fn double_step(&mut self, low: usize, high: usize, x: S, y: S, product: S) {
        let epsilon = epsilon::<S>();
        let mut m = high - 2;
        let (mut p, mut q, mut r);
        loop {
            let z = self[(m, m)];
            let (a, b) = (x - z, y - z);
            p = (a * b - product) / self[(m + 1, m)] + self[(m, m + 1)];
            q = self[(m + 1, m + 1)] - z - a - b;
            r = self[(m + 2, m + 1)];
            let s = p.abs() + q.abs() + r.abs();
            (p, q, r) = (p / s, q / s, r / s);
            if m == low {
                break;
            }
            let around = size(self[(m - 1, m - 1)]) + size(z) + size(self[(m + 1, m + 1)]);
            if size(self[(m, m - 1)]) * (size(q) + size(r)) <= epsilon * size(p) * around {
                break;
            }
            m -= 1;
        }
        for i in m + 2..=high {
            self[(i, i - 2)] = S::zero();
            if i > m + 2 {
                self[(i, i - 3)] = S::zero();
            }
        }
        for k in m..high {
            let three = k + 1 != high;
            let mut length = S::one();
            if k != m {
                (p, q) = (self[(k, k - 1)], self[(k + 1, k - 1)]);
                r = if three { self[(k + 2, k - 1)] } else { S::zero() };
                length = p.abs() + q.abs() + r.abs();
                if primal(length) == 0.0 {
                    continue;
                }
                (p, q, r) = (p / length, q / length, r / length);
            }
            let root = (p * p + q * q + r * r).sqrt();
            let s = if primal(p) < 0.0 { -root } else { root };
            if primal(s) == 0.0 {
                continue;
            }
            if k != m {
                self[(k, k - 1)] = -s * length;
            } else if low != m {
                self[(k, k - 1)] = -self[(k, k - 1)];
            }
            p = p + s;
            let (x, y, z) = (p / s, q / s, r / s);
            (q, r) = (q / p, r / p);
            for j in k..=high {
                let mut along = self[(k, j)] + q * self[(k + 1, j)];
                if three {
                    along = along + r * self[(k + 2, j)];
                    self[(k + 2, j)] = self[(k + 2, j)] - along * z;
                }
                self[(k, j)] = self[(k, j)] - along * x;
                self[(k + 1, j)] = self[(k + 1, j)] - along * y;
            }
            for i in low..=high.min(k + 3) {
                let mut along = x * self[(i, k)] + y * self[(i, k + 1)];
                if three {
                    along = along + z * self[(i, k + 2)];
                    self[(i, k + 2)] = self[(i, k + 2)] - along * r;
                }
                self[(i, k)] = self[(i, k)] - along;
                self[(i, k + 1)] = self[(i, k + 1)] - along * q;
            }
        }
    }
}

/// Sorts by real parts; runs whose real parts are no further apart than `tolerance` of the largest
/// eigenvalue, by imaginary parts.
fn in_order<S: Scalar>(found: &mut [(S, S)], tolerance: f64) {
    let largest = found.iter().map(|&(re, im)| primal(re).hypot(primal(im))).fold(0.0, f64::max);
    // The difference is taken in the number itself: it may have more digits than an `f64`.
    found.sort_by(|a, b| {
        let beyond = || primal(a.0 - b.0).total_cmp(&0.0);
        primal(a.0).total_cmp(&primal(b.0)).then_with(beyond)
    });
    let by_imaginary = |a: &(S, S), b: &(S, S)| {
        size(a.1).total_cmp(&size(b.1)).then_with(|| primal(b.1).total_cmp(&primal(a.1)))
    };
    let mut start = 0;
    for end in 1..=found.len() {
        let apart = end == found.len() || primal(found[end].0 - found[end - 1].0) > tolerance * largest;
        if apart {
            let run = &mut found[start..end];
            if run.iter().any(|&(_, im)| primal(im) != 0.0) {
                run.sort_by(by_imaginary);
            }
            start = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palinode_num::{DoubleDouble, Posit32};

    /// Of a matrix by its rows.
    fn eigenvalues<S: Scalar>(n: usize, rows: &[S]) -> Option<Vec<(S, S)>> {
        super::eigenvalues(Matrix { rows: n, columns: n, data: rows.to_vec() }.transposed())
    }

    /// Sums of the eigenvalues and of their squares are the traces of the matrix and of its square.
    fn has_these_traces(n: usize, a: &[f64], allowed: f64) {
        let w = eigenvalues(n, a).unwrap_or_else(|| panic!("no convergence: {a:?}"));
        assert_eq!(w.len(), n);
        let trace: f64 = (0..n).map(|i| a[i * n + i]).sum();
        let of_square: f64 = (0..n * n).map(|k| a[k] * a[k % n * n + k / n]).sum();
        let size = a.iter().fold(0.0, |m: f64, x| m.max(x.abs())) * n as f64;
        let first = w.iter().map(|w| w.0).sum::<f64>() - trace;
        let second = w.iter().map(|w| w.0 * w.0 - w.1 * w.1).sum::<f64>() - of_square;
        assert!(
            first.abs() <= allowed * size && second.abs() <= allowed * size * size,
            "{a:?}: {first} {second}"
        );
        assert!(w.windows(2).all(|w| w[0].0 <= w[1].0 + allowed * size), "{w:?}");
        let im: f64 = w.iter().map(|w| w.1).sum();
        assert_eq!(im, 0.0, "pairs");
    }

    #[test]
    fn random_and_awkward_matrices() {
        let mut random = palinode_num::Draws::new(7);
        for n in (1..=12).chain([40, 75]) {
            for kind in 0..6 {
                let a: Vec<f64> = (0..n * n)
                    .map(|k| {
                        let (i, j) = (k / n, k % n);
                        match kind {
                            0 => random.signed(),
                            1 => f64::from(u8::from((i + 1) % n == j)), // a cycle: steps without a special shift stand still
                            2 if i <= j => random.signed().round() * 3.0,
                            2 => 0.0,
                            3 => f64::from(u8::from(random.signed() > 0.6)), // zeros and ones
                            4 => 1.0,
                            _ => random.signed() * 10f64.powi(-(i as i32 % 5)), // rows of many sizes
                        }
                    })
                    .collect();
                has_these_traces(n, &a, 1e-13);
                let scaled: Vec<f64> = a.iter().map(|x| x * 1e-200).collect();
                let (w, small) = (eigenvalues(n, &a).unwrap(), eigenvalues(n, &scaled).unwrap());
                if kind < 2 {
                    let off = w.iter().zip(&small).map(|(w, s)| (w.0 - s.0 * 1e200).hypot(w.1 - s.1 * 1e200));
                    assert!(off.fold(0.0, f64::max) < 1e-9, "{a:?}");
                }
            }
        }
        assert_eq!(eigenvalues(0, &[] as &[f64]), Some(vec![]));
        assert_eq!(eigenvalues(1, &[f64::NAN]), None);
        assert_eq!(eigenvalues(2, &[f64::MAX, 0.0, 0.0, f64::MAX]).unwrap()[1].0, f64::MAX);
    }

    #[test]
    fn known_ones() {
        // Roots of unity: in order of real parts, the positive imaginary part first.
        let w =
            eigenvalues(4, &[0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0])
                .unwrap();
        for (found, exact) in w.iter().zip([(-1.0, 0.0), (0.0, 1.0), (0.0, -1.0), (1.0, 0.0)]) {
            assert!((found.0 - exact.0).hypot(found.1 - exact.1) < 1e-15, "{w:?}");
        }
        // A skew-symmetric matrix: real parts are rounding, and do not decide the order.
        let w = eigenvalues(
            4,
            &[0.0, -3.0, 0.5, 0.0, 3.0, 0.0, 0.0, 0.25, -0.5, 0.0, 0.0, -1.0, 0.0, -0.25, 1.0, 0.0],
        )
        .unwrap();
        assert!(w[0].1 > 0.0 && w[1].1 == -w[0].1 && w[2].1 > w[0].1 && w[3].1 == -w[2].1, "{w:?}");
        // A triangle has its diagonal, exactly.
        let w = eigenvalues(3, &[3.0, 1.0, 2.0, 0.0, -1.0, 5.0, 0.0, 0.0, 0.5]).unwrap();
        assert_eq!(w.iter().map(|w| w.0).collect::<Vec<_>>(), [-1.0, 0.5, 3.0]);
        // The companion of (x - 1)(x - 2)(x - 3), with the digits that the number has.
        let companion = [6.0, -11.0, 6.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
        for (k, w) in eigenvalues(3, &companion.map(DoubleDouble::from_f64)).unwrap().iter().enumerate() {
            assert!(primal(w.0 - DoubleDouble::from_int(k as i32 + 1)).abs() < 1e-28, "{w:?}");
        }
        for (k, w) in eigenvalues(3, &companion.map(Posit32::from_f64)).unwrap().iter().enumerate() {
            assert!((primal(w.0) - (k as f64 + 1.0)).abs() < 1e-5, "{w:?}");
        }
    }
}
