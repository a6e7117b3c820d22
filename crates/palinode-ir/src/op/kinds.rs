//! The parts that operations are told apart by: which integer arithmetic, which comparison, which
//! decomposition.

use crate::named::named;

named! {
    /// Integer arithmetic, elementwise. It wraps nowhere: an overflow is an error when the program runs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum IntOp {
        /// `a + b`.
        Add = "iadd",
        /// `a - b`.
        Sub = "isub",
        /// `a * b`.
        Mul = "imul",
        /// The floor of `a / b`.
        Div = "idiv",
        /// What is left of `a` after [`IntOp::Div`]; it has the sign of `b`.
        Rem = "irem",
        /// The smaller.
        Min = "imin",
        /// The larger.
        Max = "imax",
    }
}

named! {
    /// Comparison of two reals or two integers, elementwise.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Comparison {
        /// `a < b`.
        Less = "less",
        /// `a <= b`.
        LessEq = "less_eq",
        /// `a == b`.
        Equal = "equal",
    }
}

impl Comparison {
    /// Whether it holds.
    #[inline(always)]
    pub(crate) fn holds<T: PartialOrd>(self, a: T, b: T) -> bool {
        match self {
            Comparison::Less => a < b,
            Comparison::LessEq => a <= b,
            Comparison::Equal => a == b,
        }
    }
}

named! {
    /// Operations on truth values, elementwise.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Logical {
        /// Both.
        And = "and",
        /// At least one.
        Or = "or",
        /// The opposite (one operand).
        Not = "not",
    }
}

named! {
    /// How a reduction combines elements.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Reduction {
        /// The sum, in the order of the elements; of nothing it is 0.
        Sum = "reduce_sum",
        /// The largest; of nothing it is an error.
        Max = "reduce_max",
        /// The smallest; of nothing it is an error.
        Min = "reduce_min",
    }
}

/// What an access takes along one axis of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    /// One element; one operand, the index. The axis disappears.
    At,
    /// Every `step`-th element from `start`; three operands: start, length, step.
    Range,
    /// The whole axis; no operand.
    All,
    /// The elements that a rank-1 integer array lists; one operand. A write must not list one twice.
    List,
}

impl Axis {
    /// How many operands it takes.
    pub fn operands(self) -> usize {
        match self {
            Axis::At | Axis::List => 1,
            Axis::Range => 3,
            Axis::All => 0,
        }
    }

    /// Whether the axis stays in the result.
    pub fn stays(self) -> bool {
        match self {
            Axis::Range | Axis::All | Axis::List => true,
            Axis::At => false,
        }
    }
}

/// A dense decomposition or solver. Matrices have rank 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Linalg {
    /// `(A, b)`: `x` with `A x = b`; `b` has rank 1 or 2. `transposed` solves with the transpose of `A`.
    Solve {
        /// With the transpose of `A`.
        transposed: bool,
    },
    /// `(A, b)`: the same for the matrix `A` of an equation's partials. An `A` that is singular to working
    /// precision, and an `x` whose residual is not small, stop the run.
    SolveChecked {
        /// With the transpose of `A`.
        transposed: bool,
        /// It is a step of Newton's method, not a derivative: for what is said if it fails.
        step: bool,
    },
    /// `(T, b)`: the same as [`Linalg::Solve`] for a triangular `T`, of which only one triangle is read.
    SolveTriangular {
        /// The lower triangle is read.
        lower: bool,
        /// With the transpose of `T`.
        transposed: bool,
    },
    /// `A`: the inverse.
    Inverse,
    /// `A`: the determinant.
    Determinant,
    /// `A`: the matrix of cofactors, which are the partials of the determinant, of singular matrices too.
    Cofactors,
    /// `A`: the logarithm of the absolute value of the determinant.
    LogDet,
    /// `A`, symmetric positive definite: lower triangular `L` with `L L' = A`. The lower triangle is read.
    Cholesky,
    /// `A` with at least as many rows as columns: `(Q, R)`, thin, with a positive diagonal of `R`.
    Qr,
    /// `A`, symmetric (the lower triangle is read): `(w, V)` with ascending `w` and `A V = V diag(w)`.
    SymmetricEigen,
    /// `A`: `(U, s, V)`, thin, with descending `s` and `A = U diag(s) V'`.
    Svd,
}

named! {
    pub Linalg:
    Solve { transposed: false } = "solve",
    Solve { transposed: true } = "solve_t",
    SolveChecked { transposed: false, step: false } = "solve_checked",
    SolveChecked { transposed: true, step: false } = "solve_checked_t",
    SolveChecked { transposed: false, step: true } = "solve_step",
    SolveChecked { transposed: true, step: true } = "solve_step_t",
    SolveTriangular { lower: true, transposed: false } = "solve_lower",
    SolveTriangular { lower: true, transposed: true } = "solve_lower_t",
    SolveTriangular { lower: false, transposed: false } = "solve_upper",
    SolveTriangular { lower: false, transposed: true } = "solve_upper_t",
    Inverse = "inverse",
    Determinant = "det",
    Cofactors = "cofactors",
    LogDet = "logdet",
    Cholesky = "cholesky",
    Qr = "qr",
    SymmetricEigen = "eigh",
    Svd = "svd",
}

named! {
    /// A format of fewer bits, in which reals are kept where that was asked for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Narrow {
        /// Single precision: 32 bits, of which 24 count.
        F32 = "f32",
        /// The upper half of single precision: 16 bits, of which 8 count.
        Bf16 = "bf16",
    }
}

impl Narrow {
    /// How many numbers fit into a 64-bit word.
    pub fn per_word(self) -> usize {
        match self {
            Narrow::F32 => 2,
            Narrow::Bf16 => 4,
        }
    }
}

named! {
    /// How the solution of an equation is searched.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Search {
        /// `x <- f(x)`.
        Picard = "picard",
        /// The last steps, combined so that they would have been smallest (Anderson 1965).
        Anderson = "anderson",
        /// A linear system for each step, which is shortened until the residual falls.
        Newton = "newton",
    }
}
