//! The determinant, and the logarithm of its absolute value.
//!
//! `d = det A`. Tangent: `dd = <C, dA>` with the matrix of cofactors `C` (Jacobi). Cotangent: `A' = d' C`.
//! `C` is a polynomial in the entries of `A`, of singular ones too: of rank one if `A` lacks one rank, zero
//! if it lacks more; and so are its own derivatives. `l = ln |det A|`. Tangent: `dl = <A^-T, dA>`. Cotangent:
//! `A' = l' A^-T` (Giles 2008, 2.2.5).
//!
//! Saved: `C`, or the factorisation for the logarithm.
//!
//! `C = d A^-T` where `A` is invertible and nothing more is asked than `C`. Otherwise (derivatives of
//! `d A^-T` divide by what is nearly zero twice and more): `A` is turned by the singular vectors of its
//! primal so that a well-conditioned block `E` stands before a small rest, and with the rest's Schur
//! complement `B`, `C` is made of `E^-1` and the cofactors of `B`. These are found without division
//! (`matrix::expanded`), or in the same way if `B` is large.

use super::kernel::Kernel;
use super::lifted::{Lifted, Rule, inner_of};
use super::results::Svd;
use super::{LinearAlgebra, check, dense, plain};
use crate::error::Error;
use crate::matrix;
use nalgebra::DMatrix;

/// The determinant of a square matrix; 1 for an empty one.
///
/// It has derivatives also where it is zero. For large matrices it overflows long before [`log_determinant`]
/// does.
///
/// ```
/// use nalgebra::DMatrix;
/// use palinode_core::{grad, linalg};
///
/// let g = grad(|x| linalg::determinant(&DMatrix::from_column_slice(2, 2, x)).unwrap(), &[2.0, 0.0, 1.0, 3.0])?;
/// assert_eq!(g, [3.0, -1.0, 0.0, 2.0]);
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn determinant<T: LinearAlgebra>(a: &DMatrix<T>) -> Result<T, Error> {
    check::square("determinant's matrix", a)?;
    T::determinant(a)
}

/// A determinant that neither overflows nor underflows: `sign * exp(ln_abs)`.
#[derive(Clone, Copy, Debug)]
pub struct LogDeterminant<T> {
    /// 1 or -1.
    pub sign: f64,
    /// The logarithm of the absolute value.
    pub ln_abs: T,
}

/// The logarithm of the determinant's absolute value, with its sign.
///
/// An error if the matrix is singular.
///
/// ```
/// use nalgebra::DMatrix;
/// use palinode_core::linalg;
///
/// let det = linalg::log_determinant(&DMatrix::from_row_slice(2, 2, &[0.0, 2.0, 1.0, 0.0]))?;
/// assert_eq!((det.sign, det.ln_abs), (-1.0, 2f64.ln()));
/// # Ok::<(), palinode_core::Error>(())
/// ```
pub fn log_determinant<T: LinearAlgebra>(a: &DMatrix<T>) -> Result<LogDeterminant<T>, Error> {
    check::square("log_determinant's matrix", a)?;
    let (sign, ln_abs) = T::log_determinant_factored(&T::factor("log_determinant", a)?)?;
    Ok(LogDeterminant { sign, ln_abs })
}

struct Determinant<S> {
    cofactors: DMatrix<S>,
}

pub(super) fn lifted<T: Lifted>(a: &DMatrix<T>) -> Result<T, Error> {
    let inner = inner_of(a);
    let determinant = T::Inner::determinant(&inner)?;
    if a.iter().all(|x| x.is_constant()) {
        return Ok(T::constant_of(determinant));
    }
    let rule = Determinant { cofactors: cofactors(&inner, determinant)? };
    let [x] = T::apply(&[a], [DMatrix::repeat(1, 1, determinant)], rule)?;
    Ok(x[0])
}

/// The matrix of cofactors.
fn cofactors<S: Kernel>(a: &DMatrix<S>, determinant: S) -> Result<DMatrix<S>, Error> {
    if S::DEPTH == 0
        && determinant.glance().is_some_and(f64::is_normal)
        && let Ok(factored) = S::factor("determinant", a)
    {
        let inverse_transposed = S::solve_factored(&factored, true, &dense::identity(a.nrows()))?;
        return Ok(dense::scaled(&inverse_transposed, determinant));
    }
    Ok(Expanded::of(a)?.cofactors)
}

/// Singular values below this part of the largest one are left to the rest.
const WELL_CONDITIONED: f64 = 1e-3;
/// Up to this size sums of products in place of divisions lose few digits.
const SMALL: usize = 16;
/// What is smaller than this part of the whole must not be divided by: its derivatives are not small.
const TOO_SMALL: f64 = 1e-6;

/// A determinant and its cofactors, both without a division by anything small.
struct Expanded<S> {
    determinant: S,
    cofactors: DMatrix<S>,
}

impl<S: Kernel> Expanded<S> {
    fn of(a: &DMatrix<S>) -> Result<Expanded<S>, Error> {
        let constants = dense::constants(a);
        let largest = dense::largest(constants.iter());
        if largest == 0.0 || a.is_empty() {
            return Ok(Expanded::without_division(a));
        }
        // A power of two: exact.
        let scale = largest.log2().floor().clamp(-1000.0, 1000.0).exp2();
        let (down, up) = (S::from_f64(scale.recip()), S::from_f64(scale));
        let Expanded { determinant, cofactors } =
            Expanded::of_scaled(&dense::scaled(a, down), &dense::scaled(&constants, down))?;
        let powers = up.powi(a.nrows() as i32 - 1);
        Ok(Expanded { determinant: determinant * powers * up, cofactors: dense::scaled(&cofactors, powers) })
    }

    /// `constants` are the primals of `a`.
    fn of_scaled(a: &DMatrix<S>, constants: &DMatrix<S>) -> Result<Expanded<S>, Error> {
        let n = a.nrows();
        let Svd { u, singular_values: s, v_transposed } = S::svd(constants)?;
        let size = |i: usize| s[i].magnitude();
        let r = (0..n).take_while(|&i| size(i) > WELL_CONDITIONED * size(0)).count();
        let k = n - r;
        // Both are rotations or reflections, so their determinants are 1 or -1.
        let sign = (S::determinant(&u)? * S::determinant(&v_transposed)?).signum();
        let turned = dense::transposed_product(&u, &S::matmul(a, &v_transposed.transpose())?)?;
        let block = |i: usize, j: usize, rows: usize, columns: usize| -> DMatrix<S> {
            turned.view((i, j), (rows, columns)).into_owned()
        };
        // [[E, F], [G, H]] = [[I, 0], [left, I]] [[E, 0], [0, B]] [[I, right], [0, I]].
        let (e, f, g, h) = (block(0, 0, r, r), block(0, r, r, k), block(r, 0, k, r), block(r, r, k, k));
        let factored = S::factor("determinant", &e)?;
        let right = S::solve_factored(&factored, false, &f)?;
        let left = S::solve_factored(&factored, true, &g.transpose())?.transpose();
        let rest = dense::difference(&h, &S::matmul(&g, &right)?);
        let rest = match k <= SMALL || dense::largest(dense::constants(&rest).iter()) <= TOO_SMALL {
            true => Expanded::without_division(&rest),
            false => Expanded::of(&rest)?,
        };
        let of_e = S::determinant(&e)?;
        let inverse_transposed = S::solve_factored(&factored, true, &dense::identity(r))?;
        let (first, last) = (
            dense::scaled(&inverse_transposed, of_e * rest.determinant),
            dense::scaled(&rest.cofactors, of_e),
        );
        let above_right = dense::negated(&dense::transposed_product(&left, &last)?);
        let below_left = dense::negated(&S::matmul(&last, &right.transpose())?);
        let above_left = dense::difference(&first, &S::matmul(&above_right, &right.transpose())?);
        let of_turned =
            dense::above(&dense::beside(&above_left, &above_right), &dense::beside(&below_left, &last));
        let cofactors = S::matmul(&S::matmul(&u, &of_turned)?, &v_transposed)?;
        Ok(Expanded {
            determinant: sign * of_e * rest.determinant,
            cofactors: dense::scaled(&cofactors, sign),
        })
    }

    /// Divisions by small integers only.
    fn without_division(a: &DMatrix<S>) -> Expanded<S> {
        let (determinant, cofactors) = matrix::expanded(&plain::own(a));
        Expanded { determinant, cofactors: plain::given_back(cofactors) }
    }
}

impl<S: Kernel> Rule<S> for Determinant<S> {
    const NAME: &'static str = "determinant";

    fn tangent(&self, inputs: &[DMatrix<S>]) -> Result<Vec<DMatrix<S>>, Error> {
        Ok(vec![DMatrix::repeat(1, 1, dense::inner_product(&self.cofactors, &inputs[0]))])
    }

    fn cotangent(&self, outputs: &[DMatrix<S>], _wanted: &[bool]) -> Result<Vec<Option<DMatrix<S>>>, Error> {
        Ok(vec![Some(dense::scaled(&self.cofactors, outputs[0][0]))])
    }

    fn saved_bytes(&self) -> usize {
        dense::bytes::<S>(self.cofactors.len())
    }
}

struct Logarithm<S: Kernel> {
    n: usize,
    factored: S::Factored,
}

pub(super) fn lifted_logarithm<T: Lifted>(factored: &T::Factored) -> Result<(f64, T), Error> {
    let (sign, logarithm) = T::Inner::log_determinant_factored(&factored.inner)?;
    let rule = Logarithm { n: factored.matrix.nrows(), factored: factored.inner.clone() };
    let [x] = T::apply(&[&factored.matrix], [DMatrix::repeat(1, 1, logarithm)], rule)?;
    Ok((sign, x[0]))
}

impl<S: Kernel> Logarithm<S> {
    /// `A^-T`.
    fn gradient(&self) -> Result<DMatrix<S>, Error> {
        S::solve_factored(&self.factored, true, &dense::identity(self.n))
    }
}

impl<S: Kernel> Rule<S> for Logarithm<S> {
    const NAME: &'static str = "log_determinant";

    fn tangent(&self, inputs: &[DMatrix<S>]) -> Result<Vec<DMatrix<S>>, Error> {
        Ok(vec![DMatrix::repeat(1, 1, dense::inner_product(&self.gradient()?, &inputs[0]))])
    }

    fn cotangent(&self, outputs: &[DMatrix<S>], _wanted: &[bool]) -> Result<Vec<Option<DMatrix<S>>>, Error> {
        Ok(vec![Some(dense::scaled(&self.gradient()?, outputs[0][0]))])
    }

    fn saved_bytes(&self) -> usize {
        S::factored_bytes(&self.factored)
    }
}
