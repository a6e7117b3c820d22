//! What a number must be able to do for dense linear algebra to run on it.
//!
//! Input: matrices that the public functions have checked. Output: matrices of the same number. Plain numbers
//! compute (`plain.rs`); derivative numbers run the same operation on their inner number and add its rule
//! (`lifted.rs`), so every level of nesting keeps one node per operation and never differentiates
//! through an algorithm.
//!
//! The operations are listed once, each with who computes it: the trait and both kinds of implementations
//! (`numbers.rs`) come from that list.
//!
//! Invariants: no method checks shapes or finiteness; a cotangent that is not finite gives a result that is
//! not finite. The trait is not nameable outside this crate, so its methods may change.

use super::results::{Eigenvalues, Found, Lu, MatrixFunction, Polar, Qr, Svd, SymmetricEigen, Triangle};
use crate::error::Error;
use nalgebra::{DMatrix, DVector};
use palinode_num::{Accumulator, Scalar};

/// A matrix, or why there is none.
pub(super) type Made<S> = Result<DMatrix<S>, Error>;

/// The operations: arguments, result (or an error), what computes it on plain numbers and what on derivative
/// numbers. The list is handed to the macro `then`, after what that is given besides.
macro_rules! operations {
    ($then:ident $given:tt) => {
        $then! { $given
            /// The product, with every entry accumulated as asked for.
            fn matmul_with(a: &DMatrix<Self>, b: &DMatrix<Self>, how: Accumulator) -> DMatrix<Self>
                = plain::product, matmul::lifted;
            /// Solves `op(t) x = b` where `op` transposes or does nothing; reads one triangle of `t`.
            fn solve_triangular(t: &DMatrix<Self>, side: Triangle, transposed: bool, b: &DMatrix<Self>)
                -> DMatrix<Self> = plain::solve_triangular, systems::lifted_triangular;
            /// An error if the matrix is singular as far as rounding can tell.
            fn factor(what: &'static str, a: &DMatrix<Self>) -> Self::Factored = plain::factor, systems::lifted_factor;
            /// Solves `op(a) x = b` where `op` transposes or does nothing.
            fn solve_factored(factored: &Self::Factored, transposed: bool, b: &DMatrix<Self>)
                -> DMatrix<Self> = plain::solve_factored, systems::lifted_solve;
            /// The sign of the determinant and the logarithm of its absolute value.
            fn log_determinant_factored(factored: &Self::Factored) -> (f64, Self)
                = plain::log_determinant, determinant::lifted_logarithm;
            fn determinant(a: &DMatrix<Self>) -> Self = plain::determinant, determinant::lifted;
            fn inverse(a: &DMatrix<Self>) -> DMatrix<Self> = plain::inverse, systems::lifted_inverse;
            fn cholesky(a: &DMatrix<Self>) -> DMatrix<Self> = plain::cholesky, factors::lifted_cholesky;
            fn lu(a: &DMatrix<Self>) -> Lu<Self> = plain::lu, factors::lifted_lu;
            fn qr(a: &DMatrix<Self>) -> Qr<Self> = plain::qr, factors::lifted_qr;
            fn symmetric_eigen(a: &DMatrix<Self>) -> SymmetricEigen<Self>
                = plain::symmetric_eigen, symmetric_eigen::lifted;
            fn symmetric_eigenvalues(a: &DMatrix<Self>) -> DVector<Self>
                = plain::symmetric_eigenvalues, symmetric_eigen::lifted_values;
            fn symmetric_eigenpair(a: &DMatrix<Self>, index: usize) -> Found<Self>
                = symmetric_eigen::plain_pair, symmetric_eigen::lifted_pair;
            fn svd(a: &DMatrix<Self>) -> Svd<Self> = plain::svd, svd::lifted;
            fn singular_values(a: &DMatrix<Self>) -> DVector<Self>
                = plain::singular_values, svd::lifted_values;
            fn eigenvalues(a: &DMatrix<Self>) -> Eigenvalues<Self> = eigenvalues::plain, eigenvalues::lifted;
            fn matrix_function(function: MatrixFunction, a: &DMatrix<Self>) -> DMatrix<Self>
                = function::plain, function::lifted;
            fn pseudo_inverse(a: &DMatrix<Self>) -> DMatrix<Self>
                = pseudo_inverse::plain, pseudo_inverse::lifted;
            fn polar(a: &DMatrix<Self>) -> Polar<Self> = polar::plain, polar::lifted;
            /// `Y` of `P Y + Y P = C`, for a symmetric positive definite `P` and the antisymmetric part of
            /// `C`.
            fn solve_sylvester(p: &DMatrix<Self>, c: &DMatrix<Self>) -> DMatrix<Self>
                = polar::plain_sylvester, polar::lifted_sylvester;
        }
    };
}
pub(super) use operations;

macro_rules! declare {
    ([]
        $($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) -> $result:ty = $plain:path, $lifted:path;)*
    ) => {
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
            /// The largest absolute value of any component, tangents included; what depends on a tape counts
            /// with its partials.
            fn magnitude(self) -> f64;

            fn factored_bytes(factored: &Self::Factored) -> usize;
            $(
                $(#[$doc])*
                fn $name($($arg: $ty),*) -> Result<$result, Error>;
            )*
            fn matmul(a: &DMatrix<Self>, b: &DMatrix<Self>) -> Result<DMatrix<Self>, Error> {
                Self::matmul_with(a, b, Accumulator::Naive)
            }
        }
    };
}
operations!(declare []);
