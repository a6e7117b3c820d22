//! Orthogonal decompositions over any number: Householder's QR, and Jacobi's methods for symmetric matrices and singular
//! values (Golub and Van Loan, Matrix Computations, 5.2, 8.5, 8.6).
//!
//! Invariants: convergence and order are judged by primals and are not decisions of the program. Once the primals have
//! converged, derivative numbers get further sweeps: each one at least doubles the order to which the decomposition is right,
//! so [`extra_sweeps`] is the logarithm of how many coefficients the number can have.
//!
//! Vectors of equal (singular) values are any basis of a space and have no derivative. They are turned by an angle that nothing in the matrix explains ([`turn`]): at a
//! basis that stands out, that of the axes for a diagonal matrix, a function that depends on the basis can look as if it did not (`v_00` of a turning basis is stationary there), and its derivative would be zero in place of
//! infinite or an error.

use super::{Matrix, positive, primal};
use core::ops::Range;
use palinode_num::{Real, Scalar};

/// `A = Q R`, thin, with a diagonal of `R` that is not negative.
pub fn qr<R: Real>(a: &Matrix<R>) -> (Matrix<R>, Matrix<R>) {
    let (m, n) = (a.rows, a.columns);
    // Columns are rows of the transpose, hence runs of neighbours.
    let mut work = a.transposed();
    let mut reflectors: Vec<(Vec<R>, R)> = Vec::with_capacity(n);
    for k in 0..n {
        let mut v = work.row(k)[k..].to_vec();
        let square = R::dot(&v, &v);
        if primal(square) == 0.0 {
            reflectors.push((Vec::new(), R::zero()));
            continue;
        }
        let norm = square.sqrt();
        v[0] = if primal(v[0]) < 0.0 { v[0] - norm } else { v[0] + norm };
        let scale = R::from_int(2) / R::dot(&v, &v);
        for column in k..n {
            reflect(&v, scale, &mut work.row_mut(column)[k..]);
        }
        reflectors.push((v, scale));
    }
    let mut q = Matrix { rows: n, columns: m, data: vec![R::zero(); n * m] };
    for j in 0..n {
        q[(j, j)] = R::one();
        for (k, (v, scale)) in reflectors.iter().enumerate().rev().filter(|(_, (v, _))| !v.is_empty()) {
            reflect(v, *scale, &mut q.row_mut(j)[k..]);
        }
    }
    let mut r = Matrix { rows: n, columns: n, data: vec![R::zero(); n * n] };
    for i in 0..n {
        let flip = primal(work[(i, i)]) < 0.0;
        for j in i..n {
            r[(i, j)] = if flip { -work[(j, i)] } else { work[(j, i)] };
        }
        if flip {
            q.row_mut(i).iter_mut().for_each(|x| *x = -*x);
        }
    }
    (q.transposed(), r)
}

/// `x - scale (v . x) v`.
fn reflect<R: Real>(v: &[R], scale: R, x: &mut [R]) {
    let along = scale * R::dot(v, x);
    for (x, &v) in x.iter_mut().zip(v) {
        *x -= along * v;
    }
}

/// How far 1 is from the next number, near enough: what is lost of 4/3. (Halving until nothing is added would never end for double-doubles, which hold
/// `1 + 1e-300`.)
pub fn epsilon<S: Scalar>() -> f64 {
    let int = S::from_int;
    primal(int(3) * (int(4) / int(3) - int(1)) - int(1)).abs()
}

/// How often to go on after the primals have converged.
fn extra_sweeps<R: Real>() -> u32 {
    if R::DEPTH == 0 {
        return 0;
    }
    let coefficients = size_of::<R>().div_ceil(size_of::<f64>());
    // The sweep that found the primals converged was the first one.
    R::DEPTH.max(coefficients.next_power_of_two().trailing_zeros()) - 1
}

const MOST_SWEEPS: u32 = 60;
/// After so many, a row that is rounding error beside the whole matrix is taken for zero.
const PATIENT_SWEEPS: u32 = 15;

/// Sweeps until `sweep` says that the primals have converged, then for the derivatives. `None` if they never do.
fn sweep_until_converged<R: Real>(mut sweep: impl FnMut() -> bool) -> Option<()> {
    (0..MOST_SWEEPS).find(|_| sweep())?;
    for _ in 0..extra_sweeps::<R>() {
        sweep();
    }
    Some(())
}

/// Cosine and sine of the rotation that makes `[[a, b], [b, c]]` diagonal, and its tangent; `difference` is `c - a`.
fn rotation<R: Real>(difference: R, b: R) -> Option<(R, R, R)> {
    if b.vanishes() || (primal(b) == 0.0 && primal(difference) == 0.0) {
        return None;
    }
    let twice = b + b;
    let size = Scalar::hypot(difference, twice);
    let t = twice / if primal(difference) < 0.0 { difference - size } else { difference + size };
    let c = Scalar::hypot(t, R::one()).recip();
    Some((c, t * c, t))
}

fn rotate<R: Real>(c: R, s: R, x: &mut R, y: &mut R) {
    (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
}

/// Rotates two rows of a matrix.
fn rotate_rows<R: Real>(m: &mut Matrix<R>, p: usize, q: usize, c: R, s: R) {
    for k in 0..m.columns {
        let (mut x, mut y) = (m[(p, k)], m[(q, k)]);
        rotate(c, s, &mut x, &mut y);
        (m[(p, k)], m[(q, k)]) = (x, y);
    }
}

/// The power of two that brings the largest primal near 1; `None` if one is not finite.
fn scale_of<R: Real>(a: &Matrix<R>) -> Option<f64> {
    let largest = a
        .data
        .iter()
        .map(|&x| primal(x).abs())
        .fold(0.0, |m: f64, x| if x > m || x.is_nan() { x } else { m });
    if largest == 0.0 {
        return Some(1.0);
    }
    largest.is_finite().then(|| 2f64.powi((largest.log2().floor() as i32).clamp(-1000, 1000)))
}

/// Ascending eigenvalues of `(A + A') / 2` and their vectors, as columns whose largest component is positive.
pub fn symmetric_eigen<R: Real>(mut a: Matrix<R>) -> Option<(Vec<R>, Matrix<R>)> {
    let n = a.rows;
    a.make_symmetric();
    let scale = scale_of(&a)?;
    let epsilon = epsilon::<R>();
    // Vectors are rows until the end.
    let mut vectors: Matrix<R> = Matrix::identity(n);
    sweep_until_converged::<R>(|| {
        let square = |x: R| (primal(x) / scale).powi(2);
        let total: f64 = a.data.iter().map(|&x| square(x)).sum();
        let outside: f64 =
            (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).map(|place| square(a[place])).sum();
        if outside <= epsilon * epsilon * total && R::DEPTH == 0 {
            return true;
        }
        for p in 0..n {
            for q in p + 1..n {
                let off = a[(p, q)];
                let Some((c, s, t)) = rotation(a[(q, q)] - a[(p, p)], off) else { continue };
                for k in (0..n).filter(|&k| k != p && k != q) {
                    let (mut x, mut y) = (a[(k, p)], a[(k, q)]);
                    rotate(c, s, &mut x, &mut y);
                    (a[(k, p)], a[(k, q)]) = (x, y);
                    (a[(p, k)], a[(q, k)]) = (x, y);
                }
                a[(p, p)] -= t * off;
                a[(q, q)] += t * off;
                (a[(p, q)], a[(q, p)]) = (R::zero(), R::zero());
                rotate_rows(&mut vectors, p, q, c, s);
            }
        }
        outside <= epsilon * epsilon * total
    })?;
    let order = sorted(n, |i| a[(i, i)]);
    let values: Vec<R> = order.iter().map(|&i| a[(i, i)]).collect();
    let mut picked = picked_rows(&vectors, &order);
    let largest = values.iter().map(|&w| primal(w).abs()).fold(0.0, f64::max);
    for_each_run(&values, coincidence(n, epsilon, largest), |run| turn(&mut picked.data, n, run, false));
    for i in 0..n {
        if points_down(picked.row(i)) {
            negate(picked.row_mut(i));
        }
    }
    Some((values, picked.transposed()))
}

/// Which comes first, second and so on; digits beyond those of an `f64` count.
fn sorted<R: Real>(n: usize, key: impl Fn(usize) -> R) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| {
        let beyond = || primal(key(i) - key(j)).total_cmp(&0.0);
        primal(key(i)).total_cmp(&primal(key(j))).then_with(beyond)
    });
    order
}

fn picked_rows<R: Real>(m: &Matrix<R>, order: &[usize]) -> Matrix<R> {
    let mut data = Vec::with_capacity(order.len() * m.columns);
    order.iter().for_each(|&i| data.extend_from_slice(m.row(i)));
    Matrix { rows: order.len(), columns: m.columns, data }
}

/// How far apart values may be and still coincide: a small multiple of what a backward stable algorithm for a matrix of this size may be off by.
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

/// Whether two neighbours among these eigenvalues or singular values of a matrix of this size coincide, up to rounding. Their vectors are arbitrary then, and a derivative through
/// them may be lost although what is made of them has one.
pub fn coincide<S: Scalar>(values: &[S], size: usize) -> bool {
    let largest = values.iter().map(|&value| primal(value).abs()).fold(0.0, f64::max);
    let mut found = false;
    for_each_run(values, coincidence(size, epsilon::<S>(), largest), |_| found = true);
    found
}

/// Rotates each pair of these vectors, which lie one after another, by the angle of the triangle 3, 4, 5.
pub(crate) fn turn<S: Scalar>(vectors: &mut [S], length: usize, run: Range<usize>, backwards: bool) {
    let (cosine, sine) = (S::from_int(4) / S::from_int(5), S::from_int(3) / S::from_int(5));
    let sine = if backwards { -sine } else { sine };
    for q in run.clone() {
        for p in run.start..q {
            for i in 0..length {
                let (x, y) = (vectors[p * length + i], vectors[q * length + i]);
                vectors[p * length + i] = cosine * x - sine * y;
                vectors[q * length + i] = sine * x + cosine * y;
            }
        }
    }
}

/// Turns the vectors of singular values that coincide, given with their lengths: both sides alike, but those of zeros, which have nothing to do with each other, apart.
pub(crate) fn turn_singular_vectors<S: Scalar>(
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

fn negate<R: Real>(x: &mut [R]) {
    x.iter_mut().for_each(|x| *x = -*x);
}

/// Whether the largest component is negative; the first one of those that are equal up to rounding counts.
fn points_down<R: Real>(x: &[R]) -> bool {
    let largest = x.iter().map(|&x| primal(x).abs()).fold(0.0, f64::max);
    let first = x.iter().map(|&x| primal(x)).find(|x| x.abs() >= largest * (1.0 - 1e-9));
    first.is_some_and(|x| x < 0.0)
}

/// `A = U diag(s) V'`, thin, with descending `s`; the largest component of each column of `U` is positive.
pub fn svd<R: Real>(a: &Matrix<R>) -> Option<(Matrix<R>, Vec<R>, Matrix<R>)> {
    let wide = a.rows < a.columns;
    // Rows of these are columns of the decomposition. Of a wide matrix the transpose is decomposed.
    let (mut u, s, mut v) = columns_made_orthogonal(if wide { a.clone() } else { a.transposed() })?;
    if wide {
        core::mem::swap(&mut u, &mut v);
    }
    for i in 0..s.len() {
        if points_down(u.row(i)) {
            negate(u.row_mut(i));
            negate(v.row_mut(i));
        }
    }
    Some((u.transposed(), s, v.transposed()))
}

/// One-sided Jacobi on the rows of `w`: `(u, s, v)` with `w = v' diag(s) u`.
fn columns_made_orthogonal<R: Real>(mut w: Matrix<R>) -> Option<(Matrix<R>, Vec<R>, Matrix<R>)> {
    let n = w.rows;
    let scale = scale_of(&w)?;
    // A power of two: exact, and squares neither overflow nor underflow.
    w.data.iter_mut().for_each(|x| *x /= scale);
    let tolerance = 8.0 * epsilon::<R>();
    let mut v: Matrix<R> = Matrix::identity(n);
    let mut sweeps = 0;
    sweep_until_converged::<R>(|| {
        let mut converged = true;
        sweeps += 1;
        if sweeps == PATIENT_SWEEPS && R::DEPTH == 0 {
            // What is left of a dependent row is rounding error, which no rotation makes orthogonal.
            let noise = n as f64 * tolerance;
            for i in 0..n {
                let row = w.row_mut(i);
                if row.iter().all(|&x| primal(x).abs() <= noise) {
                    row.fill(R::zero());
                }
            }
        }
        for p in 0..n {
            for q in p + 1..n {
                let (a, b) = (R::dot(w.row(p), w.row(p)), R::dot(w.row(q), w.row(q)));
                let off = R::dot(w.row(p), w.row(q));
                let is_small = primal(off).abs() <= tolerance * primal(a).sqrt() * primal(b).sqrt();
                converged &= is_small;
                if is_small && R::DEPTH == 0 {
                    continue;
                }
                let Some((c, s, _)) = rotation(b - a, off) else { continue };
                rotate_rows(&mut w, p, q, c, s);
                rotate_rows(&mut v, p, q, c, s);
            }
        }
        converged
    })?;
    let squares: Vec<R> = (0..n).map(|i| R::dot(w.row(i), w.row(i))).collect();
    let order = sorted(n, |i| -squares[i]);
    let (mut u, mut v) = (picked_rows(&w, &order), picked_rows(&v, &order));
    let mut s: Vec<R> = Vec::with_capacity(n);
    for (at, &i) in order.iter().enumerate() {
        if primal(squares[i]) > 0.0 {
            let norm = squares[i].sqrt();
            u.row_mut(at).iter_mut().for_each(|x| *x /= norm);
            s.push(norm * scale);
        } else {
            complete(&mut u, at);
            s.push(R::zero());
        }
    }
    turn_singular_vectors(&s, (&mut u.data, w.columns), (&mut v.data, n), epsilon::<R>());
    Some((u, s, v))
}

/// Replaces a row by a unit vector that is orthogonal to the rows before it.
fn complete<R: Real>(u: &mut Matrix<R>, at: usize) {
    let m = u.columns;
    let project = |axis: usize| -> Vec<R> {
        let mut x = vec![R::zero(); m];
        x[axis] = R::one();
        // Twice is enough.
        for _ in 0..2 {
            for i in 0..at {
                let along = R::dot(u.row(i), &x);
                x.iter_mut().zip(u.row(i)).for_each(|(x, &u)| *x -= along * u);
            }
        }
        x
    };
    let square = |x: &[R]| x.iter().map(|&x| primal(x).powi(2)).sum::<f64>();
    let best = (0..m).map(project).max_by(|x, y| square(x).total_cmp(&square(y)));
    let x = best.expect("a matrix with rows to complete has columns");
    let norm = positive(R::dot(&x, &x)).sqrt();
    u.row_mut(at).iter_mut().zip(x).for_each(|(u, x)| *u = x / norm);
}
