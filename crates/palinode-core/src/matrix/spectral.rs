//! Orthogonal decompositions over any number: Householder's QR, eigenvectors of symmetric matrices, and
//! Jacobi's methods for these and for singular values (Golub and Van Loan, Matrix Computations, 5.2, 8.5,
//! 8.6; Demmel and Veselic 1992, *Jacobi's method is more accurate than QR*).
//!
//! Plain numbers get the eigenvectors of a symmetric matrix by its tridiagonal form (`tridiagonal.rs`). For
//! singular vectors those of `A' A` are the start: they make the columns of `A V` orthogonal up to rounding
//! in `A' A`, and rotations of pairs of columns remove what is left in about two sweeps. Derivative numbers
//! are swept from the beginning: a rotation that is decided by primals is smooth, a step that stops at a
//! small entry is not.
//!
//! Invariants: convergence and order are judged by primals and are not decisions of the program. Once the
//! primals have converged, derivative numbers get further sweeps: each one at least doubles the order to
//! which the decomposition is right, so [`extra_sweeps`] is the logarithm of how many coefficients the number
//! can have.
//!
//! Vectors of equal (singular) values are any basis of a space and have no derivative. They are turned by an
//! angle that nothing in the matrix explains ([`turn`]): at a basis that stands out, that of the axes for a
//! diagonal matrix, a function that depends on the basis can look as if it did not (`v_00` of a turning basis
//! is stationary there), and its derivative would be zero in place of infinite or an error.
//!
//! Known limit: `O(m n^2)` per sweep without blocking.

use super::sums::combination;
use super::{Matrix, epsilon, primal, product, rotate_columns, tridiagonal};
use core::ops::Range;
use palinode_num::Scalar;

/// `A = Q R`, thin, with a diagonal of `R` that is not negative.
pub fn qr<S: Scalar>(a: &Matrix<S>) -> (Matrix<S>, Matrix<S>) {
    let (m, n) = (a.rows, a.columns);
    // What the squares of a column's entries would overflow or vanish without.
    let scales: Vec<S> = (0..n).map(|j| S::from_f64(column_scale::<S>(a.column(j)))).collect();
    // By rows: inner products of one column with all others are found together.
    let mut work = a.transposed().data;
    for row in work.chunks_mut(n.max(1)) {
        row.iter_mut().zip(&scales).filter(|(_, s)| primal(**s) != 1.0).for_each(|(x, &s)| *x = *x / s);
    }
    let mut along = vec![S::zero(); n];
    let mut reflectors: Vec<(Vec<S>, S)> = Vec::with_capacity(n);
    for k in 0..n {
        let mut v = Vec::with_capacity(m - k);
        v.extend(work[k * n..].iter().skip(k).step_by(n));
        let square = S::dot(&v, &v);
        if primal(square) == 0.0 {
            reflectors.push((Vec::new(), S::zero()));
            continue;
        }
        let norm = square.sqrt();
        v[0] = if primal(v[0]) < 0.0 { v[0] - norm } else { v[0] + norm };
        let scale = S::from_int(2) / S::dot(&v, &v);
        reflect(&v, scale, &mut work[k * n..], k..n, &mut along[k..]);
        reflectors.push((v, scale));
    }
    let mut q = vec![S::zero(); m * n];
    for (k, (v, scale)) in reflectors.into_iter().enumerate().rev() {
        q[k * n + k] = S::one();
        if !v.is_empty() {
            reflect(&v, scale, &mut q[k * n..], k..n, &mut along[k..]);
        }
    }
    let mut r = Matrix::zeros(n, n);
    for i in 0..n {
        let flip = primal(work[i * n + i]) < 0.0;
        for j in i..n {
            let x = if primal(scales[j]) == 1.0 { work[i * n + j] } else { work[i * n + j] * scales[j] };
            r[(i, j)] = if flip { -x } else { x };
        }
        if flip {
            q.iter_mut().skip(i).step_by(n).for_each(|x| *x = -*x);
        }
    }
    (Matrix { rows: n, columns: m, data: q }.transposed(), r)
}

/// Rows `x - scale (v . x) v`, at these places.
fn reflect<S: Scalar>(v: &[S], scale: S, rows: &mut [S], places: Range<usize>, along: &mut [S]) {
    let width = places.end;
    combination(rows, width, places.clone(), v, along);
    along.iter_mut().for_each(|along| *along = scale * *along);
    for (row, &v) in rows.chunks_mut(width).zip(v) {
        row[places.clone()].iter_mut().zip(&*along).for_each(|(x, &along)| *x = *x - along * v);
    }
}

/// What to divide a column by so that the squares of its entries neither overflow nor vanish: a power of two;
/// 1 if they do not anyway.
fn column_scale<S: Scalar>(column: &[S]) -> f64 {
    let largest = column.iter().map(|&x| primal(x).abs()).fold(0.0, f64::max);
    let margin = epsilon::<S>().powi(2);
    let is_ordinary = (margin..=margin.recip()).contains(&largest) || largest == 0.0;
    if is_ordinary || !largest.is_finite() { 1.0 } else { power_of_two(largest) }
}

/// How often to go on after the primals have converged.
fn extra_sweeps<S: Scalar>() -> u32 {
    if S::DEPTH == 0 {
        return 0;
    }
    let coefficients = size_of::<S>().div_ceil(size_of::<f64>());
    // The sweep that found the primals converged was the first one.
    S::DEPTH.max(coefficients.next_power_of_two().trailing_zeros()) - 1
}

const MOST_SWEEPS: u32 = 60;
/// After so many, a row that is rounding error beside the whole matrix is taken for zero.
const PATIENT_SWEEPS: u32 = 15;

/// Sweeps until `sweep` says that the primals have converged, then for the derivatives. `None` if they never
/// do.
fn sweep_until_converged<S: Scalar>(mut sweep: impl FnMut() -> bool) -> Option<()> {
    (0..MOST_SWEEPS).find(|_| sweep())?;
    for _ in 0..extra_sweeps::<S>() {
        sweep();
    }
    Some(())
}

/// Cosine and sine of the rotation that makes `[[a, b], [b, c]]` diagonal, and its tangent; `difference` is
/// `c - a`.
fn rotation<S: Scalar>(difference: S, b: S) -> Option<(S, S, S)> {
    if b.vanishes() || (primal(b) == 0.0 && primal(difference) == 0.0) {
        return None;
    }
    let twice = b + b;
    let size = Scalar::hypot(difference, twice);
    let t = twice / if primal(difference) < 0.0 { difference - size } else { difference + size };
    let c = Scalar::hypot(t, S::one()).recip();
    Some((c, t * c, t))
}

/// The power of two up to this positive number.
pub(super) fn power_of_two(x: f64) -> f64 {
    2f64.powi((x.log2().floor() as i32).clamp(-1000, 1000))
}

/// The power of two that brings the largest primal near 1; `None` if one is not finite.
pub(super) fn scale_of<S: Scalar>(a: &Matrix<S>) -> Option<f64> {
    let largest = a
        .data
        .iter()
        .map(|&x| primal(x).abs())
        .fold(0.0, |m: f64, x| if x > m || x.is_nan() { x } else { m });
    if largest == 0.0 {
        return Some(1.0);
    }
    largest.is_finite().then(|| power_of_two(largest))
}

/// Ascending eigenvalues of `(A + A') / 2` and their vectors, as columns whose largest component is positive.
pub fn symmetric_eigen<S: Scalar>(mut a: Matrix<S>) -> Option<(Vec<S>, Matrix<S>)> {
    let n = a.rows;
    a.make_symmetric();
    let scale = scale_of(&a)?;
    let (values, vectors) = eigen_in_any_order(a, scale)?;
    if !are_finite(&values) {
        return None;
    }
    let order = sorted(n, |i| values[i]);
    let values: Vec<S> = order.iter().map(|&i| values[i]).collect();
    let mut picked = picked_columns(&vectors, &order);
    let largest = values.iter().map(|&w| primal(w).abs()).fold(0.0, f64::max);
    let near = coincidence(n, epsilon::<S>(), largest);
    for_each_run(&values, near, |run| turn(&mut picked.data, n, run, false));
    for j in 0..n {
        if points_down(picked.column(j)) {
            negate(picked.column_mut(j));
        }
    }
    Some((values, picked))
}

/// Whether no value is beyond the format, as one of large but finite entries may be.
fn are_finite<S: Scalar>(values: &[S]) -> bool {
    values.iter().all(|&value| primal(value).is_finite())
}

/// Eigenvalues and vectors of a symmetric matrix that has entries up to about `scale`.
fn eigen_in_any_order<S: Scalar>(mut a: Matrix<S>, scale: f64) -> Option<(Vec<S>, Matrix<S>)> {
    if S::DEPTH > 0 {
        return by_rotations(a, scale);
    }
    let by = S::from_f64(scale);
    a.data.iter_mut().for_each(|x| *x = *x / by);
    match tridiagonal::eigen(a.clone()) {
        Some((values, vectors)) => Some((values.into_iter().map(|w| w * by).collect(), vectors)),
        None => {
            let (values, vectors) = by_rotations(a, 1.0)?;
            Some((values.into_iter().map(|w| w * by).collect(), vectors))
        }
    }
}

/// Jacobi's method.
fn by_rotations<S: Scalar>(mut a: Matrix<S>, scale: f64) -> Option<(Vec<S>, Matrix<S>)> {
    let n = a.rows;
    let epsilon = epsilon::<S>();
    let mut vectors: Matrix<S> = Matrix::identity(n);
    sweep_until_converged::<S>(|| {
        let square = |x: S| (primal(x) / scale).powi(2);
        let total: f64 = a.data.iter().map(|&x| square(x)).sum();
        let outside: f64 =
            (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).map(|place| square(a[place])).sum();
        if outside <= epsilon * epsilon * total && S::DEPTH == 0 {
            return true;
        }
        for p in 0..n {
            for q in p + 1..n {
                let off = a[(p, q)];
                let Some((c, s, t)) = rotation(a[(q, q)] - a[(p, p)], off) else { continue };
                for k in (0..n).filter(|&k| k != p && k != q) {
                    let (x, y) = (a[(k, p)], a[(k, q)]);
                    let (x, y) = (c * x - s * y, s * x + c * y);
                    (a[(k, p)], a[(k, q)]) = (x, y);
                    (a[(p, k)], a[(q, k)]) = (x, y);
                }
                a[(p, p)] = a[(p, p)] - t * off;
                a[(q, q)] = a[(q, q)] + t * off;
                (a[(p, q)], a[(q, p)]) = (S::zero(), S::zero());
                rotate_columns(&mut vectors.data, n, (p, q), c, s);
            }
        }
        outside <= epsilon * epsilon * total
    })?;
    Some(((0..n).map(|i| a[(i, i)]).collect(), vectors))
}

/// Which comes first, second and so on; digits beyond those of an `f64` count.
fn sorted<S: Scalar>(n: usize, key: impl Fn(usize) -> S) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| {
        let beyond = || primal(key(i) - key(j)).total_cmp(&0.0);
        primal(key(i)).total_cmp(&primal(key(j))).then_with(beyond)
    });
    order
}

fn picked_columns<S: Scalar>(m: &Matrix<S>, order: &[usize]) -> Matrix<S> {
    let mut data = Vec::with_capacity(order.len() * m.rows);
    order.iter().for_each(|&j| data.extend_from_slice(m.column(j)));
    Matrix { rows: m.rows, columns: order.len(), data }
}

/// How far apart values may be and still coincide: a small multiple of what a backward stable algorithm for a
/// matrix of this size may be off by.
pub(crate) fn coincidence(size: usize, epsilon: f64, largest: f64) -> f64 {
    16.0 * size as f64 * epsilon * largest
}

/// Calls `each` with every run of two or more neighbours that are no further apart than `tolerance`.
pub(crate) fn for_each_run<S: Scalar>(values: &[S], tolerance: f64, mut each: impl FnMut(Range<usize>)) {
    // Differences are taken in the number itself: it may have more digits than an `f64`.
    let apart = |i: usize| primal(values[i] - values[i - 1]).abs();
    let mut start = 0;
    for end in 1..=values.len() {
        if end == values.len() || apart(end).is_nan() || apart(end) > tolerance {
            if end - start > 1 {
                each(start..end);
            }
            start = end;
        }
    }
}

/// Whether two neighbours among these eigenvalues or singular values of a matrix of this size coincide, up to
/// rounding. Their vectors are arbitrary then, and a derivative through them may be lost although what is
/// made of them has one.
pub fn coincide<S: Scalar>(values: &[S], size: usize) -> bool {
    let largest = values.iter().map(|&value| primal(value).abs()).fold(0.0, f64::max);
    let mut found = false;
    for_each_run(values, coincidence(size, epsilon::<S>(), largest), |_| found = true);
    found
}

/// Rotates each pair of these vectors, which lie one after another, by the angle of the triangle 3, 4, 5.
fn turn<S: Scalar>(vectors: &mut [S], length: usize, run: Range<usize>, backwards: bool) {
    let (cosine, sine) = (S::from_int(4) / S::from_int(5), S::from_int(3) / S::from_int(5));
    let sine = if backwards { -sine } else { sine };
    for q in run.clone() {
        for p in run.start..q {
            rotate_columns(vectors, length, (p, q), cosine, sine);
        }
    }
}

/// Turns the vectors of singular values that coincide, given with their lengths: both sides alike, but those
/// of zeros, which have nothing to do with each other, apart.
fn turn_singular_vectors<S: Scalar>(
    values: &[S],
    (u, rows): (&mut [S], usize),
    (v, columns): (&mut [S], usize),
    epsilon: f64,
) {
    let largest = values.iter().map(|&s| primal(s).abs()).fold(0.0, f64::max);
    let tolerance = coincidence(rows.max(columns), epsilon, largest);
    for_each_run(values, tolerance, |run| {
        let zero = primal(values[run.start]).abs() <= tolerance;
        turn(u, rows, run.clone(), false);
        turn(v, columns, run, zero);
    });
}

fn negate<S: Scalar>(x: &mut [S]) {
    x.iter_mut().for_each(|x| *x = -*x);
}

/// Whether the largest component is negative; the first one of those that are equal up to rounding counts.
fn points_down<S: Scalar>(x: &[S]) -> bool {
    let largest = x.iter().map(|&x| primal(x).abs()).fold(0.0, f64::max);
    let first = x.iter().map(|&x| primal(x)).find(|x| x.abs() >= largest * (1.0 - 1e-9));
    first.is_some_and(|x| x < 0.0)
}

/// `A = U diag(s) V'`, thin, with descending `s`; the largest component of each column of `U` is positive.
pub fn svd<S: Scalar>(a: &Matrix<S>) -> Option<(Matrix<S>, Vec<S>, Matrix<S>)> {
    let wide = a.rows < a.columns;
    // Of a wide matrix the transpose is decomposed.
    let (mut u, s, mut v) = columns_made_orthogonal(if wide { a.transposed() } else { a.clone() })?;
    if !are_finite(&s) {
        return None;
    }
    if wide {
        core::mem::swap(&mut u, &mut v);
    }
    for j in 0..s.len() {
        if points_down(u.column(j)) {
            negate(u.column_mut(j));
            negate(v.column_mut(j));
        }
    }
    Some((u, s, v))
}

/// Up to this length, squares of a column's entries lose their digits, next to entries of size 1 in the
/// matrix.
fn too_short<S: Scalar>() -> f64 {
    if S::DEPTH == 0 { epsilon::<S>().powi(2) } else { 0.0 }
}

/// One-sided Jacobi on the columns of `w`: `(u, s, v)` with `w = u diag(s) v'`.
fn columns_made_orthogonal<S: Scalar>(mut w: Matrix<S>) -> Option<(Matrix<S>, Vec<S>, Matrix<S>)> {
    let (m, n) = (w.rows, w.columns);
    // A power of two: exact, and squares neither overflow nor underflow.
    let scale = S::from_f64(scale_of(&w)?);
    w.data.iter_mut().for_each(|x| *x = *x / scale);
    let mut v: Matrix<S> = Matrix::identity(n);
    if S::DEPTH == 0 && n > 1 {
        let squares = product(w.view().transposed(), w.view());
        if let Some((_, vectors)) = tridiagonal::eigen(squares) {
            v = more_orthogonal(vectors);
            w = product(w.view(), v.view());
        }
    }
    let tolerance = epsilon::<S>() * (m as f64).max(8.0);
    let shortest = too_short::<S>().powi(2);
    let mut sweeps = 0;
    sweep_until_converged::<S>(|| {
        let mut converged = true;
        sweeps += 1;
        if sweeps == PATIENT_SWEEPS && S::DEPTH == 0 {
            // What is left of a dependent column is rounding error, which no rotation makes orthogonal.
            let noise = n as f64 * tolerance;
            for column in w.data.chunks_mut(m.max(1)) {
                if column.iter().all(|&x| primal(x).abs() <= noise) {
                    column.fill(S::zero());
                }
            }
        }
        for p in 0..n {
            for q in p + 1..n {
                let (x, y) = (w.column(p), w.column(q));
                let (a, b, off) = (S::dot(x, x), S::dot(y, y), S::dot(x, y));
                let is_small = primal(off).abs() <= tolerance * primal(a).sqrt() * primal(b).sqrt()
                    || primal(a).min(primal(b)) <= shortest && S::DEPTH == 0;
                converged &= is_small;
                if is_small && S::DEPTH == 0 {
                    continue;
                }
                let Some((c, s, _)) = rotation(b - a, off) else { continue };
                rotate_columns(&mut w.data, m, (p, q), c, s);
                rotate_columns(&mut v.data, n, (p, q), c, s);
            }
        }
        converged
    })?;
    let lengths: Vec<S> = (0..n).map(|j| length(w.column(j))).collect();
    let order = sorted(n, |i| -lengths[i]);
    let (mut u, mut v) = (picked_columns(&w, &order), picked_columns(&v, &order));
    let s: Vec<S> = order.iter().map(|&i| lengths[i] * scale).collect();
    for (j, &i) in order.iter().enumerate() {
        make_unit(&mut u, j, lengths[i]);
    }
    turn_singular_vectors(&s, (&mut u.data, m), (&mut v.data, n), epsilon::<S>());
    s.iter().all(|&s| primal(s).is_finite()).then_some((u, s, v))
}

/// `V (3 I - V' V) / 2`: what the columns of `V` lack of being orthonormal, squared (a step of Newton and
/// Schulz).
fn more_orthogonal<S: Scalar>(v: Matrix<S>) -> Matrix<S> {
    let mut by = product(v.view().transposed(), v.view());
    by.data.iter_mut().for_each(|x| *x = -*x * S::half());
    by.data.iter_mut().step_by(v.columns + 1).for_each(|x| *x = *x + S::from_int(3) * S::half());
    product(v.view(), by.view())
}

/// The length of a column, without squares that vanish.
fn length<S: Scalar>(column: &[S]) -> S {
    let largest = column.iter().map(|&x| primal(x).abs()).fold(0.0, f64::max);
    if largest == 0.0 {
        return S::zero();
    }
    if largest > epsilon::<S>().powi(2) {
        return S::dot(column, column).sqrt();
    }
    let scale = S::from_f64(power_of_two(largest));
    let scaled: Vec<S> = column.iter().map(|&x| x / scale).collect();
    S::dot(&scaled, &scaled).sqrt() * scale
}

/// Divides a column by its length, or, where that is too small for the column to say a direction that is
/// orthogonal to the columns before, finds one that is.
fn make_unit<S: Scalar>(u: &mut Matrix<S>, at: usize, own: S) {
    if primal(own) > too_short::<S>() {
        u.column_mut(at).iter_mut().for_each(|x| *x = *x / own);
        return;
    }
    let m = u.rows;
    // Some axis has at least this much outside of any space that is not the whole.
    let enough = 0.5 / (m as f64).sqrt();
    let mut candidate = u.column(at).to_vec();
    let scale = candidate.iter().map(|&x| primal(x).abs()).fold(0.0, f64::max);
    if scale > 0.0 {
        let scale = S::from_f64(scale);
        candidate.iter_mut().for_each(|x| *x = *x / scale);
    }
    for axis in 0..=m {
        let start = primal(length(&candidate));
        // Twice is enough.
        for _ in 0..2 {
            for before in u.data.chunks(m).take(at) {
                let along = S::dot(before, &candidate);
                candidate.iter_mut().zip(before).for_each(|(x, &u)| *x = *x - along * u);
            }
        }
        let rest = length(&candidate);
        if start > 0.0 && primal(rest) > enough * start {
            u.column_mut(at).iter_mut().zip(&candidate).for_each(|(u, &x)| *u = x / rest);
            return;
        }
        if axis < m {
            candidate.fill(S::zero());
            candidate[axis] = S::one();
        }
    }
}
