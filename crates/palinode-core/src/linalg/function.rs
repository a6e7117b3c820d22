//! Functions of square matrices: the exponential and the principal square root.
//!
//! `X = f(A)`. The derivative in a direction is a block of the function of a larger matrix:
//! `f([[A, E], [0, A]]) = [[f(A), L(A, E)], [0, f(A)]]` (Mathias 1996; Higham 2008, *Functions of Matrices*,
//! 3.2). Tangent: `L(A, dA)`. Cotangent: `L(A^T, X')`, its adjoint. Nothing is divided by differences of
//! eigenvalues, so repeated and defective ones are as good as others, at every order.
//!
//! On plain numbers. Exponential: `A` is halved until its norm is at most 1/2, then a diagonal Padé
//! approximant of the order that the number's rounding error asks for, then squared back (Golub and Van Loan,
//! 11.3.1). Square root: Denman and Beavers's iteration in product form, scaled by determinants (Cheng,
//! Higham, Kenney and Laub 2001).
//!
//! Saved: `A`. Known limit: a derivative costs eight times the function.

use super::dense::value_of;
use super::kernel::Kernel;
use super::lifted::{Lifted, Rule, inner_of};
use super::results::{Eigenvalues, MatrixFunction};
use super::{LinearAlgebra, check, dense};
use crate::error::Error;
use nalgebra::DMatrix;

/// The exponential of a square matrix: `I + A + A^2 / 2 + ...`.
///
/// ```
/// use nalgebra::DMatrix;
/// use palinode_core::{grad, linalg};
///
/// // At zero it is I + A.
/// let g: Vec<f64> = grad(|x| linalg::exponential(&DMatrix::from_column_slice(2, 2, x)).unwrap()[(0, 1)], &[0.0; 4])?;
/// assert_eq!(g, [0.0, 0.0, 1.0, 0.0]);
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn exponential<T: LinearAlgebra>(a: &DMatrix<T>) -> Result<DMatrix<T>, Error> {
    check::square("exponential's matrix", a)?;
    let result = T::matrix_function(MatrixFunction::Exponential, a)?;
    check::finite("exponential's result", &result)?;
    Ok(result)
}

/// The principal square root: the matrix with `X X = A` whose eigenvalues have positive real parts.
///
/// An error if `A` is singular or an eigenvalue is negative: there is no such root, or it has no derivative.
///
/// ```
/// use nalgebra::DMatrix;
/// use palinode_core::{grad, linalg};
///
/// let g: Vec<f64> = grad(|x| linalg::square_root(&DMatrix::from_column_slice(2, 2, x)).unwrap()[(0, 1)], &[4.0, 0.0, 0.0, 1.0])?;
/// assert!((g[2] - 1.0 / 3.0).abs() < 1e-15); // 1 / (sqrt 4 + sqrt 1)
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn square_root<T: LinearAlgebra>(a: &DMatrix<T>) -> Result<DMatrix<T>, Error> {
    check::square("square_root's matrix", a)?;
    T::matrix_function(MatrixFunction::SquareRoot, a)
}

impl MatrixFunction {
    fn of_blocks(self) -> MatrixFunction {
        match self {
            MatrixFunction::Exponential => MatrixFunction::Exponential,
            MatrixFunction::SquareRoot | MatrixFunction::SquareRootOfBlocks => {
                MatrixFunction::SquareRootOfBlocks
            }
        }
    }
}

pub(super) fn plain<S: Kernel>(function: MatrixFunction, a: &DMatrix<S>) -> Result<DMatrix<S>, Error> {
    match function {
        MatrixFunction::Exponential => plain_exponential(a),
        MatrixFunction::SquareRoot => {
            refuse_negative_eigenvalues(a)?;
            plain_square_root(a)
        }
        MatrixFunction::SquareRootOfBlocks => plain_square_root(a),
    }
}

/// The largest sum of absolute values of a row.
fn norm<S: Kernel>(a: &DMatrix<S>) -> f64 {
    a.row_iter().map(|row| row.iter().map(|x| x.magnitude()).sum()).fold(0.0, f64::max)
}

fn plain_exponential<S: Kernel>(a: &DMatrix<S>) -> Result<DMatrix<S>, Error> {
    let norm = norm(a);
    let squarings = if norm > 0.5 { (norm.log2().floor() + 2.0).min(2000.0) as i32 } else { 0 };
    let halved = dense::scaled(a, S::half().powi(squarings));
    let n = a.nrows();
    // exp(x) = p(x) / p(-x) with p_k = (2q - k)! q! / ((2q)! k! (q - k)!) x^k, up to (q!)^2 / ((2q)! (2q +
    // 1)!) x^(2q + 1).
    let order = pade_order(S::epsilon());
    let (mut numerator, mut denominator) = (dense::identity::<S>(n), dense::identity::<S>(n));
    let (mut power, mut coefficient) = (dense::identity::<S>(n), S::one());
    for k in 1..=order {
        coefficient = coefficient * S::from_int(order - k + 1) / S::from_int(k * (2 * order - k + 1));
        power = S::matmul(&power, &halved)?;
        let term = dense::scaled(&power, coefficient);
        numerator = dense::sum(&numerator, &term);
        denominator =
            if k % 2 == 0 { dense::sum(&denominator, &term) } else { dense::difference(&denominator, &term) };
    }
    let mut x = S::solve_factored(&S::factor("exponential", &denominator)?, false, &numerator)?;
    for _ in 0..squarings {
        x = S::matmul(&x, &x)?;
    }
    Ok(x)
}

/// The order at which the approximant's error at 1/2 is below a quarter of the rounding error.
fn pade_order(epsilon: f64) -> i32 {
    let mut error = 1.0;
    (1..30)
        .find(|&q| {
            // From (q - 1) to q, at x = 1/2.
            let q = f64::from(q);
            error *= q * q * 0.25 / (2.0 * q * (2.0 * q - 1.0) * (2.0 * q) * (2.0 * q + 1.0));
            error < epsilon / 4.0
        })
        .unwrap_or(30)
}

/// An error if an eigenvalue lies on the negative half of the real axis as far as rounding can tell.
fn refuse_negative_eigenvalues<S: Kernel>(a: &DMatrix<S>) -> Result<(), Error> {
    let Eigenvalues { re, im } = S::eigenvalues(a)?;
    let allowed = 16.0 * a.nrows() as f64 * S::epsilon() * norm(a);
    match (0..re.len()).find(|&i| value_of(re[i]) < 0.0 && value_of(im[i]).abs() <= allowed) {
        Some(i) => Err(Error::NoPrincipalRoot { eigenvalue: value_of(re[i]) }),
        None => Ok(()),
    }
}

/// Iterations that a square root may take; about eight are needed.
const MOST_ITERATIONS: usize = 100;

fn plain_square_root<S: Kernel>(a: &DMatrix<S>) -> Result<DMatrix<S>, Error> {
    let n = a.nrows();
    let identity = dense::identity::<S>(n);
    let mut m = a.clone();
    let mut x = a.clone();
    let mut before = f64::INFINITY;
    for _ in 0..MOST_ITERATIONS {
        let factored = S::factor("square_root", &m)?;
        let inverse = S::solve_factored(&factored, false, &identity)?;
        let distance = norm(&dense::difference(&m, &identity));
        // Near the end scaling would only disturb.
        let scale = match distance < 0.1 || n == 0 {
            true => S::one(),
            false => {
                let (_, logarithm) = S::log_determinant_factored(&factored)?;
                (-logarithm / S::from_int(2 * n as i32)).exp()
            }
        };
        let (squared, reciprocal) = (scale * scale, (scale * scale).recip());
        let inverse = dense::scaled(&inverse, reciprocal);
        x = dense::scaled(&S::matmul(&x, &dense::sum(&identity, &inverse))?, S::half() * scale);
        let mean = dense::scaled(&dense::sum(&dense::scaled(&m, squared), &inverse), S::half());
        m = dense::scaled(&dense::sum(&identity, &mean), S::half());
        // The distance squares until rounding stops it.
        if distance <= n as f64 * S::epsilon() || (distance < 1e-3 && distance >= before) {
            return Ok(x);
        }
        before = distance;
    }
    Err(Error::NoConvergence { what: "square_root" })
}

struct FunctionRule<S> {
    function: MatrixFunction,
    a: DMatrix<S>,
}

pub(super) fn lifted<T: Lifted>(function: MatrixFunction, a: &DMatrix<T>) -> Result<DMatrix<T>, Error> {
    let inner = inner_of(a);
    let x = T::Inner::matrix_function(function, &inner)?;
    let [x] = T::apply(&[a], [x], FunctionRule { function, a: inner })?;
    Ok(x)
}

impl<S: Kernel> FunctionRule<S> {
    /// `L(a, e)`.
    fn in_direction(&self, a: &DMatrix<S>, e: &DMatrix<S>) -> Result<DMatrix<S>, Error> {
        let n = a.nrows();
        // It is linear in `e`, which is brought to the size of `a` first: a function of the whole should not
        // be about `e` alone.
        let (large, own) = (dense::largest(e.iter()), dense::largest(a.iter()));
        let ratio = if own > 0.0 && own.is_finite() { large / own } else { large };
        let scale = if ratio.is_normal() { ratio.log2().floor().clamp(-1000.0, 1000.0).exp2() } else { 1.0 };
        let (down, up) = (S::from_f64(scale.recip()), S::from_f64(scale));
        let blocks = DMatrix::from_fn(2 * n, 2 * n, |i, j| match (i < n, j < n) {
            (true, true) => a[(i, j)],
            (true, false) => e[(i, j - n)] * down,
            (false, true) => S::zero(),
            (false, false) => a[(i - n, j - n)],
        });
        let result = S::matrix_function(self.function.of_blocks(), &blocks)?;
        Ok(DMatrix::from_fn(n, n, |i, j| result[(i, j + n)] * up))
    }
}

impl<S: Kernel> Rule<S> for FunctionRule<S> {
    const NAME: &'static str = "matrix_function";

    fn tangent(&self, inputs: &[DMatrix<S>]) -> Result<Vec<DMatrix<S>>, Error> {
        Ok(vec![self.in_direction(&self.a, &inputs[0])?])
    }

    fn cotangent(&self, outputs: &[DMatrix<S>], _wanted: &[bool]) -> Result<Vec<Option<DMatrix<S>>>, Error> {
        Ok(vec![Some(self.in_direction(&self.a.transpose(), &outputs[0])?)])
    }

    fn saved_bytes(&self) -> usize {
        dense::bytes::<S>(self.a.len())
    }
}
