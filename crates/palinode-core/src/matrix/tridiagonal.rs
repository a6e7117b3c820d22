//! Eigenvalues and vectors of a symmetric matrix of plain numbers: Householder's tridiagonal form, then
//! implicit QL steps (Golub and Van Loan, *Matrix Computations*, 8.3; the steps follow EISPACK's `tql2`).
//!
//! Input: a symmetric matrix whose largest entry is near 1. Output: eigenvalues in any order and their
//! vectors as columns, or nothing if the steps do not settle. Exact for diagonal matrices. Errors are
//! relative to the largest entry.

use super::sums::combination;
use super::{Matrix, epsilon, primal, rotate_columns};
use palinode_num::Scalar;

/// Steps for one eigenvalue; two are needed.
const MOST_STEPS: usize = 60;
/// After so many, an entry that is small beside the whole matrix is taken for zero.
const PATIENT_STEPS: usize = 20;

pub(super) fn eigen<S: Scalar>(mut a: Matrix<S>) -> Option<(Vec<S>, Matrix<S>)> {
    let mut vectors = Matrix::identity(a.rows);
    let (mut diagonal, mut beside) = reduce(&mut a, &mut vectors);
    settle(&mut diagonal, &mut beside, &mut vectors)?;
    let finite = |x: &[S]| x.iter().all(|&x| primal(x).is_finite());
    (finite(&diagonal) && finite(&vectors.data)).then_some((diagonal, vectors))
}

/// Makes the matrix tridiagonal by reflections from both sides, which the vectors are multiplied with; its
/// diagonal, and what is beside it, with a zero at the end.
fn reduce<S: Scalar>(a: &mut Matrix<S>, vectors: &mut Matrix<S>) -> (Vec<S>, Vec<S>) {
    let n = a.rows;
    let mut beside = vec![S::zero(); n];
    let mut image = vec![S::zero(); n];
    for k in 0..n.saturating_sub(1) {
        let mut v = a.column(k)[k + 1..].to_vec();
        beside[k] = v[0];
        let largest = v.iter().map(|&x| primal(x).abs()).fold(0.0, f64::max);
        if v[1..].iter().all(|&x| primal(x) == 0.0) {
            continue;
        }
        // Of a matrix of low rank little more than rounding error may be left: its squares would vanish.
        let largest = S::from_f64(largest);
        v.iter_mut().for_each(|x| *x = *x / largest);
        let norm = S::dot(&v, &v).sqrt();
        let norm = if primal(v[0]) < 0.0 { -norm } else { norm };
        beside[k] = -norm * largest;
        v[0] = v[0] + norm;
        let factor = S::from_int(2) / S::dot(&v, &v);
        // A <- A - v w' - w v', with w = p - (p . v) factor / 2 v and p = factor A v.
        let w = &mut image[k + 1..];
        combination(&a.data[(k + 1) * n..], n, k + 1..n, &v, w);
        w.iter_mut().for_each(|x| *x = factor * *x);
        let along = factor * S::half() * S::dot(w, &v);
        w.iter_mut().zip(&v).for_each(|(w, &v)| *w = *w - along * v);
        for (j, column) in a.data[(k + 1) * n..].chunks_mut(n).enumerate() {
            let (vj, wj) = (v[j], w[j]);
            for ((x, &vi), &wi) in column[k + 1..].iter_mut().zip(&v).zip(&*w) {
                *x = *x - (vi * wj + wi * vj);
            }
        }
        combination(&vectors.data[(k + 1) * n..], n, 0..n, &v, &mut image);
        for (column, &v) in vectors.data[(k + 1) * n..].chunks_mut(n).zip(&v) {
            let by = factor * v;
            column.iter_mut().zip(&image).for_each(|(x, &along)| *x = *x - along * by);
        }
    }
    ((0..n).map(|i| a[(i, i)]).collect(), beside)
}

/// Rotates until nothing is left beside the diagonal.
fn settle<S: Scalar>(d: &mut [S], e: &mut [S], vectors: &mut Matrix<S>) -> Option<()> {
    let n = d.len();
    let epsilon = epsilon::<S>();
    let size = |x: S| primal(x).abs();
    let whole = d.iter().chain(e.iter()).map(|&x| size(x)).fold(0.0, f64::max);
    for low in 0..n {
        for steps in 0.. {
            let is_small = |m: &usize| {
                let around = size(d[*m]) + size(d[m + 1]);
                let scale = if steps >= PATIENT_STEPS { whole } else { around };
                size(e[*m]) <= epsilon * scale
            };
            let high = (low..n - 1).find(is_small).unwrap_or(n - 1);
            if high == low {
                break;
            }
            if steps == MOST_STEPS {
                return None;
            }
            // The shift is the eigenvalue of the first two by two block that is nearer to its corner.
            let mut g = (d[low + 1] - d[low]) / (e[low] + e[low]);
            let r = g.hypot(S::one());
            let signed = if primal(g) < 0.0 { -r } else { r };
            g = d[high] - d[low] + e[low] / (g + signed);
            let (mut s, mut c, mut p) = (S::one(), S::one(), S::zero());
            let mut is_whole = true;
            for i in (low..high).rev() {
                let (f, b) = (s * e[i], c * e[i]);
                let r = f.hypot(g);
                e[i + 1] = r;
                if primal(r) == 0.0 {
                    d[i + 1] = d[i + 1] - p;
                    e[high] = S::zero();
                    is_whole = false;
                    break;
                }
                (s, c) = (f / r, g / r);
                g = d[i + 1] - p;
                let r = (d[i] - g) * s + (c + c) * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
                rotate_columns(&mut vectors.data, n, (i, i + 1), c, s);
            }
            if is_whole {
                d[low] = d[low] - p;
                e[low] = g;
                e[high] = S::zero();
            }
        }
    }
    Some(())
}
