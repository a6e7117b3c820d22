//! Eigenvalues of a real matrix that need not be symmetric.
//!
//! An eigenvalue `w` that is simple moves by `dw = l^T dA x / l^T x`, where `A x = w x` and `l^T A = w l^T`
//! (Wilkinson 1965, 2.5; Magnus 1985): real and imaginary part by those of `G = l x^T / l^T x`. Tangent:
//! `<G, dA>`; cotangent: `A' = sum re' Re G + im' Im G`. The two vectors solve bordered systems
//! `[[A - w I, b], [c^T, 0]]` with constant `b` and `c`, which are regular where `w` is simple and smooth in
//! `A` and `w`: so derivatives of every order come from those of a solve. A complex system is a real one of
//! twice the size.
//!
//! Eigenvalues that coincide have no derivative one by one (the roots of `w^2 = a_21` at 0), and rounding
//! tells no pair apart that is nearer than its error: `eps |A| / c` where `c = |l^T x| / |l| |x|`, which is
//! small near a defective matrix. Those are refused, by both maps, also where the gap leaves too few digits
//! ([`super::spectrum`]); cotangents that are zero ask for nothing (a zero wins over an infinite derivative,
//! as everywhere: the sum of squares of the eigenvalues of `[[0, 1], [0, 0]]` gets the gradient 0. The trace
//! of `A A` has the right one). Where one eigenvalue coincides with others and has as many vectors (that of
//! the identity), a cotangent `b` that they share passes: all eigenvalues together move with the trace, so it
//! is `b I` and what the others have beyond `b`.
//!
//! Saved: `A` and the eigenvalues. Known limit: `O(n^3)` for each eigenvalue whose derivative is wanted.

use super::dense::value_of;
use super::kernel::Kernel;
use super::lifted::{Lifted, Rule, inner_of};
use super::results::Eigenvalues;
use super::spectrum::{narrowest, negligible};
use super::{LinearAlgebra, check, dense, plain};
use crate::error::Error;
use nalgebra::{DMatrix, DVector};

/// The eigenvalues of a square matrix, as often as they occur.
///
/// Where one coincides with another as far as rounding can tell it has no derivative: forward numbers get an
/// error here, a reverse sweep gives it if that eigenvalue has a cotangent. For a symmetric matrix take
/// [`symmetric_eigenvalues`](super::symmetric_eigenvalues).
///
/// ```
/// use nalgebra::DMatrix;
/// use palinode_core::{grad, linalg};
///
/// // A triangular matrix, at which algorithms stop before they have looked at the entry below: d w / d a_21 = a_12 / (w - w').
/// let a = [1.0, 0.0, 5.0, 3.0];
/// let g: Vec<f64> = grad(|x| linalg::eigenvalues(&DMatrix::from_column_slice(2, 2, x)).unwrap().re[1], &a)?;
/// assert!((g[1] - 2.5).abs() < 1e-14 && (g[3] - 1.0).abs() < 1e-14);
///
/// // A pair: 1 + 2i and 1 - 2i.
/// let w = linalg::eigenvalues(&DMatrix::from_row_slice(2, 2, &[1.0, -2.0, 2.0, 1.0]))?;
/// assert_eq!((w.re[0], w.im[0], w.im[1]), (1.0, 2.0, -2.0));
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn eigenvalues<T: LinearAlgebra>(a: &DMatrix<T>) -> Result<Eigenvalues<T>, Error> {
    check::square("eigenvalues' matrix", a)?;
    T::eigenvalues(a)
}

pub(super) fn plain<S: Kernel>(a: &DMatrix<S>) -> Result<Eigenvalues<S>, Error> {
    let found =
        crate::matrix::eigenvalues(plain::own(a)).ok_or(Error::NoConvergence { what: "eigenvalues" })?;
    let part = |pick: fn(&(S, S)) -> S| DVector::from_iterator(found.len(), found.iter().map(pick));
    Ok(Eigenvalues { re: part(|w| w.0), im: part(|w| w.1) })
}

struct EigenvaluesRule<S> {
    a: DMatrix<S>,
    values: Eigenvalues<S>,
}

pub(super) fn lifted<T: Lifted>(a: &DMatrix<T>) -> Result<Eigenvalues<T>, Error> {
    let inner = inner_of(a);
    let values = T::Inner::eigenvalues(&inner)?;
    let columns = [&values.re, &values.im].map(dense::as_column);
    let [re, im] = T::apply(&[a], columns, EigenvaluesRule { a: inner, values })?;
    Ok(Eigenvalues { re: dense::as_vector(&re), im: dense::as_vector(&im) })
}

/// A complex column, real part above imaginary part; of a real system there is no imaginary part.
struct Parts<S> {
    re: Vec<S>,
    im: Vec<S>,
}

impl<S: Kernel> Parts<S> {
    fn from_stacked(stacked: &DMatrix<S>, n: usize, complex: bool) -> Parts<S> {
        let entries = stacked.as_slice();
        let im = if complex { entries[n + 1..2 * n + 1].to_vec() } else { vec![S::zero(); n] };
        Parts { re: entries[..n].to_vec(), im }
    }

    fn length(&self) -> f64 {
        self.re.iter().chain(&self.im).map(|&x| value_of(x).powi(2)).sum::<f64>().sqrt()
    }

    /// The conjugate with length `length`, as constants.
    fn constant_conjugate(&self, length: f64) -> Parts<S> {
        let factor = length / self.length();
        let constants = |x: &[S], factor: f64| x.iter().map(|&x| S::from_f64(value_of(x) * factor)).collect();
        Parts { re: constants(&self.re, factor), im: constants(&self.im, -factor) }
    }

    /// Real and imaginary part of the sum of products, nothing conjugated.
    fn dot(&self, other: &Parts<S>) -> (S, S) {
        let (a, b) = (self, other);
        (S::dot(&a.re, &b.re) - S::dot(&a.im, &b.im), S::dot(&a.re, &b.im) + S::dot(&a.im, &b.re))
    }
}

impl<S: Kernel> EigenvaluesRule<S> {
    fn is_complex(&self, i: usize) -> bool {
        self.values.im[i].glance() != Some(0.0)
    }

    /// The right and left eigenvectors, from the system that is bordered by `b` and `c`.
    fn vectors(
        &self,
        a: &DMatrix<S>,
        (re, im): (S, S),
        complex: bool,
        (b, c): (&Parts<S>, &Parts<S>),
    ) -> Result<(Parts<S>, Parts<S>), Error> {
        let n = a.nrows();
        let real = |i: usize, j: usize| match (i < n, j < n) {
            (true, true) if i == j => a[(i, j)] - re,
            (true, true) => a[(i, j)],
            (true, false) => b.re[i],
            (false, true) => c.re[j],
            (false, false) => S::zero(),
        };
        let imaginary = |i: usize, j: usize| match (i < n, j < n) {
            (true, true) if i == j => -im,
            (true, false) => b.im[i],
            (false, true) => c.im[j],
            _ => S::zero(),
        };
        let (half, size) = (n + 1, if complex { 2 * n + 2 } else { n + 1 });
        let system = DMatrix::from_fn(size, size, |i, j| match (i < half, j < half) {
            (true, true) => real(i, j),
            (false, false) => real(i - half, j - half),
            (true, false) => -imaginary(i, j - half),
            (false, true) => imaginary(i - half, j),
        });
        let unit = DMatrix::from_fn(size, 1, |i, _| if i == n { S::one() } else { S::zero() });
        let factored = S::factor("eigenvalues", &system)?;
        let right = S::solve_factored(&factored, false, &unit)?;
        // The transpose of the real system is the conjugate transpose of the complex one.
        let left = S::solve_factored(&factored, true, &unit)?;
        let mut left = Parts::from_stacked(&left, n, complex);
        left.im.iter_mut().for_each(|x| *x = -*x);
        Ok((Parts::from_stacked(&right, n, complex), left))
    }

    /// Real and imaginary part of `G`: how eigenvalue `i` moves with each entry.
    fn gradient(&self, i: usize) -> Result<(DMatrix<S>, DMatrix<S>), Error> {
        let n = self.a.nrows();
        let complex = self.is_complex(i);
        let value = (self.values.re[i], self.values.im[i]);
        let size = dense::largest(dense::constants(&self.a).iter());
        let size = if size == 0.0 { 1.0 } else { size };
        // First with a border that is as good as any, then with the vectors themselves, the best one there
        // is.
        let some = |shift: f64| -> Parts<S> {
            let entry = |k: usize, more: f64| size * (0.7 + 0.3 * (shift + 2.3 * k as f64 + more).sin());
            let column = |more: f64| (0..n).map(|k| S::from_f64(entry(k, more))).collect();
            Parts { re: column(0.0), im: if complex { column(1.1) } else { vec![S::zero(); n] } }
        };
        let fixed = (S::from_f64(value_of(value.0)), S::from_f64(value_of(value.1)));
        let no_vectors = |_| self.coinciding(i, self.nearest(i).0);
        let (x, l) = self
            .vectors(&dense::constants(&self.a), fixed, complex, (&some(0.4), &some(1.9)))
            .map_err(no_vectors)?;
        let border = (&l.constant_conjugate(size), &x.constant_conjugate(size));
        let (x, l) = self.vectors(&self.a, value, complex, border).map_err(no_vectors)?;
        let (re, im) = l.dot(&x);
        let angle = value_of(re).hypot(value_of(im)) / (x.length() * l.length());
        let (nearest, gap) = self.nearest(i);
        let error = 16.0 * n as f64 * S::epsilon() * size * n as f64 / angle;
        let error = error.max(narrowest::<S>() * size / angle);
        if gap.is_nan() || error.is_nan() || gap <= error {
            return Err(self.coinciding(i, nearest));
        }
        let square = re * re + im * im;
        let (re, im) = (re / square, -im / square);
        let product = |i: usize, j: usize| {
            (l.re[i] * x.re[j] - l.im[i] * x.im[j], l.re[i] * x.im[j] + l.im[i] * x.re[j])
        };
        let part = |imaginary: bool| {
            DMatrix::from_fn(n, n, |i, j| {
                let (u, v) = product(i, j);
                if imaginary { u * im + v * re } else { u * re - v * im }
            })
        };
        Ok((part(false), part(true)))
    }

    /// How far two eigenvalues are apart.
    fn distance(&self, i: usize, j: usize) -> f64 {
        let part = |x: &DVector<S>| value_of(x[i] - x[j]);
        part(&self.values.re).hypot(part(&self.values.im))
    }

    /// Which other eigenvalue is nearest, and how far it is.
    fn nearest(&self, i: usize) -> (usize, f64) {
        let others = (0..self.values.re.len()).filter(|&j| j != i).map(|j| (j, self.distance(i, j)));
        others.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((i, f64::INFINITY))
    }

    fn coinciding(&self, i: usize, j: usize) -> Error {
        let (re, im) = (value_of(self.values.re[i]), value_of(self.values.im[i]));
        Error::EigenvaluesCoincide { first: i.min(j), second: i.max(j), re, im }
    }

    /// Eigenvalues that are not the second of a pair.
    fn firsts(&self) -> impl Iterator<Item = usize> {
        (0..self.values.re.len()).filter(|&i| self.values.im[i].glance().is_none_or(|im| im >= 0.0))
    }

    /// The other one of a pair.
    fn partner(&self, i: usize) -> Option<usize> {
        let same = |j: &usize| {
            let value = |x: S| x.glance();
            value(self.values.re[*j]) == value(self.values.re[i])
                && value(self.values.im[*j]) == value(-self.values.im[i])
        };
        if self.is_complex(i) { (0..self.values.re.len()).find(same) } else { None }
    }

    /// The cotangent of `A`, each eigenvalue for itself.
    fn pulled(&self, outputs: &[DMatrix<S>]) -> Result<DMatrix<S>, Error> {
        let n = self.a.nrows();
        let mut a = DMatrix::repeat(n, n, S::zero());
        for i in self.firsts() {
            let (re, im) = match self.partner(i) {
                Some(j) => (outputs[0][i] + outputs[0][j], outputs[1][i] - outputs[1][j]),
                None => (outputs[0][i], outputs[1][i]),
            };
            if re.vanishes() && im.vanishes() {
                continue;
            }
            let (of_re, of_im) = self.gradient(i)?;
            a = dense::sum(&a, &dense::sum(&dense::scaled(&of_re, re), &dense::scaled(&of_im, im)));
        }
        Ok(a)
    }

    /// The eigenvalues that coincide with the `i`-th and the cotangent that they share, if they are real and
    /// have as many vectors as they are.
    fn shared(&self, i: usize, outputs: &[DMatrix<S>]) -> Result<Option<(Vec<usize>, S)>, Error> {
        let n = self.a.nrows();
        let constants = dense::constants(&self.a);
        let near = 16.0 * n as f64 * S::epsilon() * n as f64 * dense::largest(constants.iter());
        let run: Vec<usize> = (0..n).filter(|&j| self.distance(i, j) <= near).collect();
        let w = S::from_f64(value_of(self.values.re[i]));
        let shifted =
            DMatrix::from_fn(n, n, |i, j| if i == j { constants[(i, i)] - w } else { constants[(i, j)] });
        let vectors = S::singular_values(&shifted)?.iter().filter(|&&s| value_of(s) <= near).count();
        let allowed = negligible::<S>(dense::largest(outputs[0].iter().chain(outputs[1].iter())));
        let is_shared = run.iter().all(|&j| {
            (outputs[0][j] - outputs[0][i]).magnitude() <= allowed && outputs[1][j].magnitude() <= allowed
        });
        let is_shared = is_shared && vectors == run.len() && !self.is_complex(i);
        Ok(is_shared.then(|| (run, outputs[0][i])))
    }
}

impl<S: Kernel> Rule<S> for EigenvaluesRule<S> {
    const NAME: &'static str = "eigenvalues";

    fn tangent(&self, inputs: &[DMatrix<S>]) -> Result<Vec<DMatrix<S>>, Error> {
        let n = self.a.nrows();
        let mut moved = vec![DMatrix::repeat(n, 1, S::zero()); 2];
        for i in self.firsts() {
            let (re, im) = self.gradient(i)?;
            moved[0][i] = dense::inner_product(&re, &inputs[0]);
            if let Some(j) = self.partner(i) {
                moved[1][i] = dense::inner_product(&im, &inputs[0]);
                (moved[0][j], moved[1][j]) = (moved[0][i], -moved[1][i]);
            }
        }
        Ok(moved)
    }

    fn cotangent(&self, outputs: &[DMatrix<S>], _wanted: &[bool]) -> Result<Vec<Option<DMatrix<S>>>, Error> {
        let n = self.a.nrows();
        let error = match self.pulled(outputs) {
            Ok(a) => return Ok(vec![Some(a)]),
            Err(error) => error,
        };
        let Error::EigenvaluesCoincide { first, .. } = error else { return Err(error) };
        let Some((run, shared)) = self.shared(first, outputs)? else { return Err(error) };
        let mut beyond = [outputs[0].map(|x| x - shared), outputs[1].clone()];
        run.iter().for_each(|&i| (beyond[0][i], beyond[1][i]) = (S::zero(), S::zero()));
        let of_all = dense::scaled(&dense::identity(n), shared);
        Ok(vec![Some(dense::sum(&of_all, &self.pulled(&beyond)?))])
    }
    fn saved_bytes(&self) -> usize {
        dense::bytes::<S>(self.a.len() + 2 * self.values.re.len())
    }
}
