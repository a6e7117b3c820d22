//! Dense linear algebra: each operation one node on a tape, with its decomposition saved for the sweeps.
//!
//! Input: [`DMatrix`](nalgebra::DMatrix)es of any number: `f64`, [`DoubleDouble`](crate::DoubleDouble),
//! [`Posit`](crate::Posit)s, and [`Dual`](crate::Dual), [`DualN`](crate::DualN) and [`Var`](crate::Var) over
//! these, nested too (not [`Jet`](crate::Jet)). Output: matrices of the same number, or an
//! [`Error`](crate::Error) that names what is wrong. The arithmetic is this crate's own ([`crate::matrix`]),
//! nalgebra's are the matrices; a derivative is a rule on whole matrices, never a differentiated algorithm.
//!
//! ```text
//! function of the operation's file ── checks ──► Kernel (kernel.rs) ── plain numbers ──► matrix/ (plain.rs)
//!                                                      │ Dual, DualN, Var
//!                                                      ▼
//!                    inner number's kernel, then the file's Rule: tangent and cotangent map (lifted.rs)
//! ```
//!
//! | function | of | result |
//! |---|---|---|
//! | [`matmul`], [`matmul_with`] | any two that fit | product |
//! | [`solve`], [`inverse`], [`lu`] | square, invertible | solution, inverse, factors |
//! | [`determinant`], [`log_determinant`] | square | number |
//! | [`solve_triangular`] | one triangle | solution |
//! | [`cholesky`] | symmetric part, positive definite | lower factor |
//! | [`qr`] | full column rank, `m >= n` | thin factors, diagonal of `R` positive |
//! | [`symmetric_eigen`], [`symmetric_eigenvalues`] | symmetric part | values ascending, vectors |
//! | [`symmetric_eigenpair`] | symmetric part; the eigenvalue is simple | one value, its vector |
//! | [`svd`], [`singular_values`] | any | thin factors, values descending |
//! | [`eigenvalues()`] | square | real and imaginary parts |
//! | [`exponential`], [`square_root`] | square; without negative eigenvalues | matrix |
//! | [`pseudo_inverse()`] | any; derivative where the rank is full or kept | matrix |
//! | [`polar()`] | full column rank, `m >= n` | orthogonal and symmetric factor |
//! | [`rotation_from_scaled_axis`], [`quaternion_from_scaled_axis`] and back | vector of space | rotation |
//!
//! Conventions. *Symmetric operations* are functions of `(A + A^T) / 2`: every entry counts, so a finite
//! difference in any single entry agrees with the gradient; a matrix that is further from symmetric than a
//! ten-thousandth of its largest entry is an error. *Sizes* down to zero are allowed. *Coinciding eigenvalues
//! or singular values*: see [`symmetric_eigen()`] and [`svd()`]; what has no derivative is a typed error from
//! the sweep, never a number.
//!
//! Invariants: nothing here is counted as a decision of the program (pivoting and sorting do not change what
//! is computed); a rule's two maps are adjoint to each other, which the tests check for each. Papers: in each
//! operation's file. Known limits: real numbers only, no batches, no blocking; `O(n^3)` everywhere.
//!
//! Code generic over [`LinearAlgebra`] runs on all of these numbers:
//!
//! ```
//! use nalgebra::DMatrix;
//! use palinode_core::linalg::{self, LinearAlgebra, Triangle};
//! use palinode_core::{Error, grad, hessian};
//!
//! /// Twice the negative log density of a Gaussian, up to a constant.
//! fn deviance<T: LinearAlgebra>(covariance: &DMatrix<T>, x: &DMatrix<T>) -> Result<T, Error> {
//!     let l = linalg::cholesky(covariance)?;
//!     let z = linalg::solve_triangular(&l, Triangle::Lower, x)?;
//!     Ok(linalg::matmul(&z.transpose(), &z)?[0] + linalg::log_determinant(covariance)?.ln_abs)
//! }
//!
//! let two = DMatrix::from_element(1, 1, 2.0);
//! assert!((deviance(&two, &two)? - 2.0 - 2f64.ln()).abs() < 1e-15);
//! let number = |x| DMatrix::from_element(1, 1, x);
//! let g = grad(|p| deviance(&number(p[0]), &number(p[1])).unwrap(), &[2.0f64, 2.0])?;
//! assert!((g[0] + 0.5).abs() < 1e-15 && (g[1] - 2.0).abs() < 1e-15);
//! let number = |x| DMatrix::from_element(1, 1, x);
//! let h = hessian(|p| deviance(&number(p[0]), &number(p[1])).unwrap(), &[2.0f64, 2.0])?;
//! assert!((h[0][0] - 0.75).abs() < 1e-15);
//! # Ok::<(), Error>(())
//! ```

mod check;
mod dense;
mod determinant;
mod eigenvalues;
mod factors;
mod function;
mod kernel;
mod lifted;
mod matmul;
mod numbers;
mod plain;
mod polar;
mod pseudo_inverse;
mod results;
mod rotation;
mod spectrum;
mod svd;
mod symmetric_eigen;
mod systems;
#[cfg(test)]
mod tests;

pub use determinant::{LogDeterminant, determinant, log_determinant};
pub use eigenvalues::eigenvalues;
pub use factors::{cholesky, lu, qr};
pub use function::{exponential, square_root};
pub use matmul::{matmul, matmul_with};
pub use polar::polar;
pub use pseudo_inverse::pseudo_inverse;
pub use results::{Eigenpair, Eigenvalues, Lu, Polar, Qr, Svd, SymmetricEigen, Triangle};
pub use rotation::{
    quaternion_from_scaled_axis, rotation_from_scaled_axis, scaled_axis_of_quaternion,
    scaled_axis_of_rotation,
};
pub use svd::{singular_values, svd};
pub use symmetric_eigen::{symmetric_eigen, symmetric_eigenpair, symmetric_eigenvalues};
pub use systems::{inverse, solve, solve_triangular};

/// A number that dense linear algebra runs on: `f64`, [`DoubleDouble`](crate::DoubleDouble),
/// [`Posit`](crate::Posit), and [`Dual`](crate::Dual), [`DualN`](crate::DualN) and [`Var`](crate::Var) over
/// these, `f32` or each other. A [`Jet`](crate::Jet) does not go, and the compiler says so: for higher
/// derivatives nest the others.
///
/// ```compile_fail,E0277
/// use nalgebra::DMatrix;
/// use palinode_core::{Jet, linalg};
///
/// let _ = linalg::inverse(&DMatrix::from_element(1, 1, Jet::<f64, 3>::variable(2.0)));
/// ```
///
/// The operations are functions of this module. The trait cannot be implemented elsewhere.
pub trait LinearAlgebra: palinode_num::Real + kernel::Kernel {}

impl<T: palinode_num::Real + kernel::Kernel> LinearAlgebra for T {}

/// What the inner number of a [`LinearAlgebra`] number is: one of them, or `f32`.
///
/// For bounds on the inner number of a `Dual` or a `Var`. The trait cannot be implemented elsewhere.
pub trait InnerNumber: kernel::Kernel {}

impl<T: kernel::Kernel> InnerNumber for T {}
