//! What a number must be able to do for dense linear algebra to run on it.
//!
//! Input: matrices that the public functions have checked. Output: matrices of the same number. Plain numbers
//! compute ([`super::plain`]); derivative numbers run the same operation on their inner number and add its
//! rule ([`super::lifted`]), so every level of nesting keeps one node per operation and never differentiates through an algorithm.
//!
//! Invariants: no method checks shapes or finiteness; a cotangent that is not finite gives a result that is not
//! finite. The trait is not nameable outside this crate, so its methods may change.

use super::eigenpair::Found;
use super::function::MatrixFunction;
use super::{Eigenvalues, Lu, Polar, Qr, Svd, SymmetricEigen, Triangle};
use crate::error::Error;
use nalgebra::{DMatrix, DVector};
use palinode_num::{Accumulator, Scalar};

/// See the module's documentation.
#[diagnostic::on_unimplemented(
    message = "dense linear algebra does not run on `{Self}`",
    note = "it runs on `f64`, `DoubleDouble`, posits, and `Dual`, `DualN` and `Var` over these, `f32` or each other",
    note = "a `Jet` does not go: for higher derivatives nest `Dual`s, or differentiate `Var`s over `Dual`s"
)]
pub trait Kernel: Scalar<Bool = bool> + PartialOrd + Send + Sync {
    /// An invertible matrix, ready to solve with. Clones share it.
    type Factored: Clone + Send + Sync + 'static;

    /// The distance from 1 to the next number, of the innermost type.
    fn epsilon() -> f64;
    /// The largest absolute value of any component, tangents included; what depends on a tape counts with
    /// its partials.
    fn magnitude(self) -> f64;

    /// The product, with every entry accumulated as asked for.
    fn matmul_with(a: &DMatrix<Self>, b: &DMatrix<Self>, how: Accumulator) -> Result<DMatrix<Self>, Error>;
    fn matmul(a: &DMatrix<Self>, b: &DMatrix<Self>) -> Result<DMatrix<Self>, Error> {
        Self::matmul_with(a, b, Accumulator::Naive)
    }
    /// Solves `op(t) x = b` where `op` transposes or does nothing; reads one triangle of `t`.
    fn solve_triangular(
        t: &DMatrix<Self>,
        triangle: Triangle,
        transposed: bool,
        b: &DMatrix<Self>,
    ) -> Result<DMatrix<Self>, Error>;

    /// An error if the matrix is singular as far as rounding can tell.
    fn factor(what: &'static str, a: &DMatrix<Self>) -> Result<Self::Factored, Error>;
    fn factored_bytes(factored: &Self::Factored) -> usize;
    /// Solves `op(a) x = b` where `op` transposes or does nothing.
    fn solve_factored(
        factored: &Self::Factored,
        transposed: bool,
        b: &DMatrix<Self>,
    ) -> Result<DMatrix<Self>, Error>;
    /// The sign of the determinant and the logarithm of its absolute value.
    fn log_determinant_factored(factored: &Self::Factored) -> Result<(f64, Self), Error>;

    fn determinant(a: &DMatrix<Self>) -> Result<Self, Error>;
    fn inverse(a: &DMatrix<Self>) -> Result<DMatrix<Self>, Error>;
    fn cholesky(a: &DMatrix<Self>) -> Result<DMatrix<Self>, Error>;
    fn lu(a: &DMatrix<Self>) -> Result<Lu<Self>, Error>;
    fn qr(a: &DMatrix<Self>) -> Result<Qr<Self>, Error>;
    fn symmetric_eigen(a: &DMatrix<Self>) -> Result<SymmetricEigen<Self>, Error>;
    fn symmetric_eigenvalues(a: &DMatrix<Self>) -> Result<DVector<Self>, Error>;
    fn symmetric_eigenpair(a: &DMatrix<Self>, index: usize) -> Result<Found<Self>, Error>;
    fn svd(a: &DMatrix<Self>) -> Result<Svd<Self>, Error>;
    fn singular_values(a: &DMatrix<Self>) -> Result<DVector<Self>, Error>;
    fn eigenvalues(a: &DMatrix<Self>) -> Result<Eigenvalues<Self>, Error>;
    fn matrix_function(function: MatrixFunction, a: &DMatrix<Self>) -> Result<DMatrix<Self>, Error>;
    fn pseudo_inverse(a: &DMatrix<Self>) -> Result<DMatrix<Self>, Error>;
    fn polar(a: &DMatrix<Self>) -> Result<Polar<Self>, Error>;
    /// `Y` of `P Y + Y P = C`, for a symmetric positive definite `P` and the antisymmetric part of `C`.
    fn solve_sylvester(p: &DMatrix<Self>, c: &DMatrix<Self>) -> Result<DMatrix<Self>, Error>;
}
