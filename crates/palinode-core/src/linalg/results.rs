//! What operations give, where it is more than one matrix or number; and what goes between kernels.

use crate::error::Error;
use nalgebra::{DMatrix, DVector};
use std::sync::Arc;

/// Which triangle of a matrix is read; the other counts as zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Triangle {
    /// On and below the diagonal.
    Lower,
    /// On and above the diagonal.
    Upper,
}

/// Factors with `P A = L U`.
#[derive(Clone, Debug)]
pub struct Lu<T> {
    /// Row `i` of `P A` is row `permutation[i]` of `A`.
    pub permutation: Vec<usize>,
    /// Lower triangular, ones on the diagonal.
    pub l: DMatrix<T>,
    /// Upper triangular.
    pub u: DMatrix<T>,
}

/// Factors with `A = Q R`.
#[derive(Clone, Debug)]
pub struct Qr<T> {
    /// As many orthonormal columns as `A` has columns.
    pub q: DMatrix<T>,
    /// Upper triangular with a positive diagonal.
    pub r: DMatrix<T>,
}

/// Factors with `A = Q P`.
#[derive(Clone, Debug)]
pub struct Polar<T> {
    /// Orthonormal columns: of a square matrix a rotation, or a reflection if the determinant is negative.
    pub q: DMatrix<T>,
    /// Symmetric positive definite: the stretch.
    pub p: DMatrix<T>,
}

/// Factors with `A = V diag(w) V^T`.
#[derive(Clone, Debug)]
pub struct SymmetricEigen<T> {
    /// The eigenvalues, ascending.
    pub values: DVector<T>,
    /// The eigenvectors, a column each, in the order of the values.
    pub vectors: DMatrix<T>,
}

/// One eigenvalue and its vector.
#[derive(Clone, Debug)]
pub struct Eigenpair<T> {
    /// The eigenvalue.
    pub value: T,
    /// Its vector, of length 1.
    pub vector: DVector<T>,
}

/// Factors with `A = U diag(s) V^T`.
#[derive(Clone, Debug)]
pub struct Svd<T> {
    /// The left singular vectors, a column each.
    pub u: DMatrix<T>,
    /// The singular values, descending, not negative.
    pub singular_values: DVector<T>,
    /// The right singular vectors, a row each.
    pub v_transposed: DMatrix<T>,
}

/// Eigenvalues `re + i im`.
#[derive(Clone, Debug)]
pub struct Eigenvalues<T> {
    /// The real parts, ascending.
    pub re: DVector<T>,
    /// The imaginary parts: zero for a real eigenvalue; of a pair the positive one comes first.
    pub im: DVector<T>,
}

/// A pair, and whether it coincides with another one.
#[derive(Clone)]
pub struct Found<S> {
    pub(super) pair: Eigenpair<S>,
    /// Why it has no derivative, if it has none.
    pub(super) coincides: Option<Error>,
}

/// Which function.
#[derive(Clone, Copy, Debug)]
pub enum MatrixFunction {
    /// The exponential.
    Exponential,
    /// The principal square root of a matrix that may have none.
    SquareRoot,
    /// That of `[[A, E], [0, A]]` where `A` has one: the eigenvalues of the whole are those of `A` twice,
    /// which rounding tears apart.
    SquareRootOfBlocks,
}

/// A matrix of derivative numbers, ready to solve with: `F` is the inner number's own factors.
#[derive(Clone)]
pub struct Factored<T, F> {
    pub(super) matrix: Arc<DMatrix<T>>,
    pub(super) inner: F,
}
