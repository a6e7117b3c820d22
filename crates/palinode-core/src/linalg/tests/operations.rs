//! The operations as functions from numbers to numbers, so that one test runs on all of them.

use crate::linalg::{self, LinearAlgebra, Triangle};
use crate::{Error, Scalar};
use nalgebra::DMatrix;

macro_rules! operations {
    ($($name:ident)*) => {
        /// An operation with the size of its matrix. Symmetric operations get all `n * n` entries, of pairs
        /// the top one is asked for.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub(super) enum Operation {
            $($name),*
        }
        use Operation::*;

        pub(super) const ALL: [Operation; [$($name),*].len()] = [$($name),*];
    };
}
operations! {
    Matmul Solve SolveLower SolveUpper Inverse Determinant LogDeterminant Cholesky Lu Qr SymmetricEigen
    SymmetricEigenvalues Eigenpair Svd SingularValues Eigenvalues Exponential SquareRoot PseudoInverse Polar
}

/// How many columns a right-hand side or a second factor has.
pub(super) const COLUMNS: usize = 2;

impl Operation {
    /// The shapes that this operation is tried on, for size `n`.
    pub(super) fn shapes(self, n: usize) -> Vec<(usize, usize)> {
        match self {
            Matmul | Svd | SingularValues | PseudoInverse => vec![(n, n), (n + 2, n), (n, n + 1)],
            Qr | Polar => vec![(n, n), (n + 2, n)],
            _ => vec![(n, n)],
        }
    }

    /// How many numbers it reads.
    pub(super) fn inputs(self, (m, n): (usize, usize)) -> usize {
        let second = match self {
            Matmul | Solve | SolveLower | SolveUpper => n * COLUMNS,
            _ => 0,
        };
        m * n + second
    }

    /// These numbers as a direction; symmetric operations refuse what is far from symmetric, so they move
    /// along symmetric matrices.
    pub(super) fn direction(self, (m, n): (usize, usize), noise: &[f64]) -> Vec<f64> {
        let x = noise[..self.inputs((m, n))].to_vec();
        match self {
            Cholesky | SymmetricEigen | SymmetricEigenvalues | Eigenpair => {
                (0..n * n).map(|k| (x[k] + x[k % n * n + k / n]) / 2.0).collect()
            }
            _ => x,
        }
    }

    /// A well-conditioned point near these numbers, which are between -1 and 1.
    pub(super) fn point(self, (m, n): (usize, usize), noise: &[f64]) -> Vec<f64> {
        let mut x = self.direction((m, n), noise);
        for i in 0..m.min(n) {
            let diagonal = match self {
                Matmul | Exponential => 0.0,
                SquareRoot => 1.5 * n as f64,
                Eigenvalues => 1.5 * i as f64,
                PseudoInverse | Polar => 1.0 + i as f64,
                Solve | Inverse | Determinant | LogDeterminant | Lu => 0.5,
                Svd | SingularValues | SymmetricEigen | SymmetricEigenvalues | Eigenpair | Qr => {
                    2.0 * i as f64
                }
                SolveLower | SolveUpper => 3.0,
                Cholesky => 1.5 * n as f64,
            };
            x[i + i * m] += diagonal;
        }
        x
    }

    pub(super) fn run<T: LinearAlgebra>(self, (m, n): (usize, usize), x: &[T]) -> Result<Vec<T>, Error> {
        let a = DMatrix::from_column_slice(m, n, &x[..m * n]);
        let second = || DMatrix::from_column_slice(n, COLUMNS, &x[m * n..]);
        let numbers = |matrix: DMatrix<T>| matrix.as_slice().to_vec();
        Ok(match self {
            Matmul => numbers(linalg::matmul(&a, &second())?),
            Solve => numbers(linalg::solve(&a, &second())?),
            SolveLower => numbers(linalg::solve_triangular(&a, Triangle::Lower, &second())?),
            SolveUpper => numbers(linalg::solve_triangular(&a, Triangle::Upper, &second())?),
            Inverse => numbers(linalg::inverse(&a)?),
            Determinant => vec![linalg::determinant(&a)?],
            LogDeterminant => vec![linalg::log_determinant(&a)?.ln_abs],
            Cholesky => numbers(linalg::cholesky(&a)?),
            Lu => linalg::lu(&a).map(|lu| [numbers(lu.l), numbers(lu.u)].concat())?,
            Qr => linalg::qr(&a).map(|qr| [numbers(qr.q), numbers(qr.r)].concat())?,
            SymmetricEigen => {
                let eigen = linalg::symmetric_eigen(&a)?;
                let signs = column_signs(&eigen.vectors);
                let vectors = with_column_signs(&eigen.vectors, &signs);
                [eigen.values.as_slice().to_vec(), numbers(vectors)].concat()
            }
            SymmetricEigenvalues => linalg::symmetric_eigenvalues(&a)?.as_slice().to_vec(),
            Eigenpair if n == 0 => vec![],
            Eigenpair => {
                let pair = linalg::symmetric_eigenpair(&a, n - 1)?;
                let vector = DMatrix::from_column_slice(n, 1, pair.vector.as_slice());
                let vector = with_column_signs(&vector, &column_signs(&vector));
                [vec![pair.value], numbers(vector)].concat()
            }
            Svd => {
                let svd = linalg::svd(&a)?;
                let signs = column_signs(&svd.u);
                let u = with_column_signs(&svd.u, &signs);
                let v = with_column_signs(&svd.v_transposed.transpose(), &signs);
                [numbers(u), svd.singular_values.as_slice().to_vec(), numbers(v)].concat()
            }
            SingularValues => linalg::singular_values(&a)?.as_slice().to_vec(),
            Eigenvalues => linalg::eigenvalues(&a).map(|w| [w.re.as_slice(), w.im.as_slice()].concat())?,
            Exponential => numbers(linalg::exponential(&a)?),
            SquareRoot => numbers(linalg::square_root(&a)?),
            PseudoInverse => numbers(linalg::pseudo_inverse(&a)?),
            Polar => linalg::polar(&a).map(|polar| [numbers(polar.q), numbers(polar.p)].concat())?,
        })
    }

    /// How near two eigenvalues or singular values, or a singular value and zero, come: derivatives grow with
    /// the inverse. Also small where the test itself is about to take a vector for its negative.
    pub(super) fn smallest_gap(self, (m, n): (usize, usize), x: &[f64]) -> f64 {
        let a = DMatrix::from_column_slice(m, n, &x[..m * n]);
        let gaps = |values: Vec<f64>| values.windows(2).map(|w| (w[0] - w[1]).abs()).fold(1.0, f64::min);
        let clearness = |vectors| column_sums(vectors).into_iter().fold(1.0, |a: f64, sum| a.min(sum.abs()));
        match self {
            SymmetricEigen | SymmetricEigenvalues | Eigenpair => {
                let eigen = linalg::symmetric_eigen(&a).unwrap();
                gaps(eigen.values.as_slice().to_vec()).min(clearness(&eigen.vectors))
            }
            Svd | SingularValues => {
                let svd = linalg::svd(&a).unwrap();
                let mut values = svd.singular_values.as_slice().to_vec();
                values.push(0.0);
                gaps(values).min(clearness(&svd.u))
            }
            Qr => linalg::qr(&a).map_or(0.0, |qr| qr.r.diagonal().min()),
            // Where a second candidate for a pivot is as large, the factors jump.
            Lu => linalg::lu(&a).map_or(0.0, |lu| {
                let largest = lu.l.map_with_location(|i, j, x| if i > j { x } else { 0.0 }).amax();
                (1.0 - largest).min(lu.u.diagonal().amin())
            }),
            Solve | Inverse | LogDeterminant | Determinant | PseudoInverse | Polar => {
                linalg::singular_values(&a).unwrap().min()
            }
            // Also where two are about to change places in their order.
            Eigenvalues => linalg::eigenvalues(&a).map_or(0.0, |w| {
                let pairs = (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
                let is_pair = |i: usize, j: usize| w.re[i] == w.re[j] && w.im[i] == -w.im[j];
                let gap = |(i, j): (usize, usize)| match is_pair(i, j) {
                    true => 2.0 * w.im[i].abs(),
                    false => (w.re[i] - w.re[j])
                        .abs()
                        .min((w.re[i] - w.re[j]).hypot(w.im[i].abs() - w.im[j].abs())),
                };
                // Squared, as near to a defective matrix vectors are nearly parallel.
                pairs.map(gap).fold(1.0, f64::min).powi(2)
            }),
            _ => 1.0,
        }
    }
}

/// A combination of each column's entries; its sign tells a vector from its negative.
fn column_sums<T: Scalar>(a: &DMatrix<T>) -> Vec<f64> {
    let weighted = |(i, x): (usize, &T)| (1.0 + 0.37 * i as f64) * x.peek().unwrap();
    (0..a.ncols()).map(|j| a.column(j).iter().enumerate().map(weighted).sum()).collect()
}

/// 1 or -1 for each column; constant near a point.
fn column_signs<T: Scalar>(a: &DMatrix<T>) -> Vec<i32> {
    column_sums(a).into_iter().map(|sum| if sum < 0.0 { -1 } else { 1 }).collect()
}

fn with_column_signs<T: LinearAlgebra>(a: &DMatrix<T>, signs: &[i32]) -> DMatrix<T> {
    DMatrix::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)] * <T as Scalar>::from_int(signs[j]))
}

/// A square matrix by its columns.
pub(super) fn matrix<T: Copy + PartialEq + core::fmt::Debug + 'static>(x: &[T]) -> DMatrix<T> {
    let n = x.len().isqrt();
    DMatrix::from_column_slice(n, n, x)
}

/// Numbers without rhyme or reason for what asks for some, and others.
pub(super) fn noise() -> [Vec<f64>; 2] {
    let wave = |i: i32| (1.1 + f64::from(i * i + 3 * i)).sin() * 0.8;
    [(0..40).map(wave).collect(), (0..40).map(|i| f64::from(7 * i + 1).cos()).collect()]
}

/// `sum x_i y_i`.
pub(super) fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// The largest difference, relative to the largest entry where that is above 1.
pub(super) fn distance(x: &[f64], y: &[f64]) -> f64 {
    assert_eq!(x.len(), y.len());
    let scale = x.iter().chain(y).fold(1.0, |a: f64, b| a.max(b.abs()));
    x.iter().zip(y).fold(0.0, |a: f64, (x, y)| if (x - y).is_nan() { f64::NAN } else { a.max((x - y).abs()) })
        / scale
}

/// The derivative at 0 of a curve, by central differences of order 6.
pub(super) fn slope(h: f64, f: impl Fn(f64) -> Vec<f64>) -> Vec<f64> {
    let weights = [(1.0, 3.0 / 4.0), (2.0, -3.0 / 20.0), (3.0, 1.0 / 60.0)];
    let mut sum = vec![0.0; f(0.0).len()];
    for (k, w) in weights {
        for (s, (up, down)) in sum.iter_mut().zip(f(k * h).into_iter().zip(f(-k * h))) {
            *s += w * (up - down) / h;
        }
    }
    sum
}
