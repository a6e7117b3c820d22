//! The operations of a program.
//!
//! An operation is data: what it computes, without its operands. Real elementwise operations are the rows of
//! the rule table ([`Op::Map`]); everything else here is linear in its real operands, moves elements, or concerns
//! integers, truth values and control. There is no `_ =>` on [`Op`]: a new operation is found by the compiler.

use palinode_core::Constant;
use palinode_core::rules;

use crate::types::Elem;

/// A row of the rule table, with the whole number that `powi` and `polygamma` need (0 for the others).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// The row.
    pub row: rules::Row,
    /// The power of `powi`, the order of `polygamma`.
    pub parameter: i32,
}

impl Rule {
    /// Whether the row has a whole-number parameter.
    pub fn is_parametric(self) -> bool {
        matches!(self.row, rules::Row::Powi | rules::Row::Polygamma)
    }
}

impl From<rules::Row> for Rule {
    fn from(row: rules::Row) -> Rule {
        Rule { row, parameter: 0 }
    }
}

/// A value written in the program.
#[derive(Clone, Copy, Debug)]
pub enum Literal {
    /// A real number, by its `f64`.
    Real(f64),
    /// A real number by name, which every number type rounds to its own precision.
    Named(Constant),
    /// An integer.
    Int(i64),
    /// A truth value.
    Bool(bool),
}

impl Literal {
    /// The same literal, bit by bit.
    pub fn same(self, other: Literal) -> bool {
        match (self, other) {
            (Literal::Real(a), Literal::Real(b)) => a.to_bits() == b.to_bits(),
            (Literal::Named(a), Literal::Named(b)) => a == b,
            (Literal::Int(a), Literal::Int(b)) => a == b,
            (Literal::Bool(a), Literal::Bool(b)) => a == b,
            (Literal::Real(_) | Literal::Named(_) | Literal::Int(_) | Literal::Bool(_), _) => false,
        }
    }
}

impl PartialEq for Literal {
    fn eq(&self, other: &Literal) -> bool {
        self.same(*other)
    }
}

impl Eq for Literal {}

impl core::hash::Hash for Literal {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        core::mem::discriminant(self).hash(state);
        match self {
            Literal::Real(value) => value.to_bits().hash(state),
            Literal::Named(name) => name.hash(state),
            Literal::Int(value) => value.hash(state),
            Literal::Bool(value) => value.hash(state),
        }
    }
}

/// Integer arithmetic, elementwise. It wraps nowhere: an overflow is an error when the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntOp {
    /// `a + b`.
    Add,
    /// `a - b`.
    Sub,
    /// `a * b`.
    Mul,
    /// The floor of `a / b`.
    Div,
    /// What is left of `a` after [`IntOp::Div`]; it has the sign of `b`.
    Rem,
    /// The smaller.
    Min,
    /// The larger.
    Max,
}

impl IntOp {
    /// Every operation.
    pub const ALL: [IntOp; 7] =
        [IntOp::Add, IntOp::Sub, IntOp::Mul, IntOp::Div, IntOp::Rem, IntOp::Min, IntOp::Max];

    /// How the text form calls it.
    pub fn name(self) -> &'static str {
        match self {
            IntOp::Add => "iadd",
            IntOp::Sub => "isub",
            IntOp::Mul => "imul",
            IntOp::Div => "idiv",
            IntOp::Rem => "irem",
            IntOp::Min => "imin",
            IntOp::Max => "imax",
        }
    }
}

/// Comparison of two reals or two integers, elementwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `a < b`.
    Less,
    /// `a <= b`.
    LessEq,
    /// `a == b`.
    Equal,
}

impl Comparison {
    /// Every comparison.
    pub const ALL: [Comparison; 3] = [Comparison::Less, Comparison::LessEq, Comparison::Equal];

    /// How the text form calls it.
    pub fn name(self) -> &'static str {
        match self {
            Comparison::Less => "less",
            Comparison::LessEq => "less_eq",
            Comparison::Equal => "equal",
        }
    }
}

/// Operations on truth values, elementwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Logical {
    /// Both.
    And,
    /// At least one.
    Or,
    /// The opposite (one operand).
    Not,
}

impl Logical {
    /// Every operation.
    pub const ALL: [Logical; 3] = [Logical::And, Logical::Or, Logical::Not];

    /// How the text form calls it.
    pub fn name(self) -> &'static str {
        match self {
            Logical::And => "and",
            Logical::Or => "or",
            Logical::Not => "not",
        }
    }
}

/// How a reduction combines elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// The sum, in the order of the elements; of nothing it is 0.
    Sum,
    /// The largest; of nothing it is an error.
    Max,
    /// The smallest; of nothing it is an error.
    Min,
}

impl Reduction {
    /// Every reduction.
    pub const ALL: [Reduction; 3] = [Reduction::Sum, Reduction::Max, Reduction::Min];

    /// How the text form calls it.
    pub fn name(self) -> &'static str {
        match self {
            Reduction::Sum => "reduce_sum",
            Reduction::Max => "reduce_max",
            Reduction::Min => "reduce_min",
        }
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
    /// `(A, b)`: the same for the matrix `A` of an equation's partials. An `A` that is singular to working precision, and an `x` whose residual is not small, stop the run.
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

impl Linalg {
    /// Every operation.
    pub const ALL: [Linalg; 18] = [
        Linalg::Solve { transposed: false },
        Linalg::Solve { transposed: true },
        Linalg::SolveChecked { transposed: false, step: false },
        Linalg::SolveChecked { transposed: true, step: false },
        Linalg::SolveChecked { transposed: false, step: true },
        Linalg::SolveChecked { transposed: true, step: true },
        Linalg::SolveTriangular { lower: true, transposed: false },
        Linalg::SolveTriangular { lower: true, transposed: true },
        Linalg::SolveTriangular { lower: false, transposed: false },
        Linalg::SolveTriangular { lower: false, transposed: true },
        Linalg::Inverse,
        Linalg::Determinant,
        Linalg::Cofactors,
        Linalg::LogDet,
        Linalg::Cholesky,
        Linalg::Qr,
        Linalg::SymmetricEigen,
        Linalg::Svd,
    ];

    /// How the text form calls it.
    pub fn name(self) -> &'static str {
        match self {
            Linalg::Solve { transposed: false } => "solve",
            Linalg::Solve { transposed: true } => "solve_t",
            Linalg::SolveChecked { transposed: false, step: false } => "solve_checked",
            Linalg::SolveChecked { transposed: true, step: false } => "solve_checked_t",
            Linalg::SolveChecked { transposed: false, step: true } => "solve_step",
            Linalg::SolveChecked { transposed: true, step: true } => "solve_step_t",
            Linalg::SolveTriangular { lower: true, transposed: false } => "solve_lower",
            Linalg::SolveTriangular { lower: true, transposed: true } => "solve_lower_t",
            Linalg::SolveTriangular { lower: false, transposed: false } => "solve_upper",
            Linalg::SolveTriangular { lower: false, transposed: true } => "solve_upper_t",
            Linalg::Inverse => "inverse",
            Linalg::Determinant => "det",
            Linalg::Cofactors => "cofactors",
            Linalg::LogDet => "logdet",
            Linalg::Cholesky => "cholesky",
            Linalg::Qr => "qr",
            Linalg::SymmetricEigen => "eigh",
            Linalg::Svd => "svd",
        }
    }
}

/// A format of fewer bits, in which reals are kept where that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Narrow {
    /// Single precision: 32 bits, of which 24 count.
    F32,
    /// The upper half of single precision: 16 bits, of which 8 count.
    Bf16,
}

impl Narrow {
    /// Every format.
    pub const ALL: [Narrow; 2] = [Narrow::F32, Narrow::Bf16];

    /// How many numbers fit into a 64-bit word.
    pub fn per_word(self) -> usize {
        match self {
            Narrow::F32 => 2,
            Narrow::Bf16 => 4,
        }
    }

    /// As a word.
    pub fn name(self) -> &'static str {
        match self {
            Narrow::F32 => "f32",
            Narrow::Bf16 => "bf16",
        }
    }
}

/// How the solution of an equation is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Search {
    /// `x <- f(x)`.
    Picard,
    /// The last steps, combined so that they would have been smallest (Anderson 1965).
    Anderson,
    /// A linear system for each step, which is shortened until the residual falls.
    Newton,
}

impl Search {
    /// Every search.
    pub const ALL: [Search; 3] = [Search::Picard, Search::Anderson, Search::Newton];

    /// As a word of the `.pal` language.
    pub fn name(self) -> &'static str {
        match self {
            Search::Picard => "picard",
            Search::Anderson => "anderson",
            Search::Newton => "newton",
        }
    }
}

/// How many states of a loop its way back may keep at once. A loop that has such a limit keeps no residuals of its rounds: reverse mode makes an [`Op::Sweep`] of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Room {
    /// So many, the initial one included; 0 counts as 1.
    Slots(u64),
    /// As many as fit into so many bytes; if not even one does, the run stops.
    Bytes(u64),
}

/// The number of a function of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FuncId(pub u32);

impl FuncId {
    /// As an index into [`crate::Program::functions`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An operation. Operands are listed in the order in which an instruction holds them.
///
/// *Elementwise* operations take scalars and arrays of one rank; scalars are used with every element, and arrays
/// must have the same lengths when the program runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// A literal; no operands.
    Const(Literal),
    /// A row of the rule table, elementwise, on reals of one kind.
    Map(Rule),
    /// Integer arithmetic, elementwise.
    Int(IntOp),
    /// `(a, b)`: a comparison, elementwise; gives truth values.
    Compare(Comparison),
    /// Logic, elementwise.
    Logical(Logical),
    /// `(condition, a, b)`: elementwise choice between two of one kind.
    Select,
    /// Elementwise conversion to another kind. Real to integer truncates and is a decision; real to `f32` rounds.
    Convert(Elem),
    /// The operand, as a constant for differentiation.
    StopGradient,
    /// `(x, change, bound, rounds)`: the vector `x` that a search found, if it is finite and the last change, or the residual, of the search is at most the bound; otherwise the run
    /// stops. Transforms take no derivative through it: a solution has that of its equation. Numbers that carry derivatives keep
    /// those of the search.
    Settled(Search),

    /// The length of an array along an axis.
    Dim(u8),
    /// `n`: the integers `0..n`.
    Iota,
    /// `(x, lengths...)`: `x` repeated. Axis `j` of `x` becomes axis `axes[j]` of the result, which has as many axes
    /// as there are lengths; `axes` ascends. A scalar `x` fills an array.
    Broadcast(Vec<u8>),
    /// `(x, lengths...)`: the same elements in the same order, of another shape.
    Reshape,
    /// Axis `permutation[j]` of the operand becomes axis `j` of the result.
    Permute(Vec<u8>),
    /// Arrays one after another along an axis.
    Concat(u8),
    /// A reduction over these axes (ascending), which disappear.
    Reduce(Reduction, Vec<u8>),

    /// `(a, operands of the axes...)`: the elements that the axes name; a scalar if no axis stays.
    Read(Vec<Axis>),
    /// `(a, x, operands of the axes...)`: `a` with `x` in these places. A scalar `x` goes to all of them.
    Write(Vec<Axis>),
    /// `(a, x, operands of the axes...)`: `a` with `x` added in these places.
    AddAt(Vec<Axis>),
    /// `(log, x...)`: a rank-1 array with the elements of scalars and arrays appended in order.
    Push,
    /// `(log, n)`: a rank-1 array cut, or extended with zeros, to length `n`.
    Resize,

    /// `x`, an array of reals: its elements in order in a narrower format, several to an integer. Carries no derivative: only what reverse mode
    /// keeps is packed, and a program that packs is not differentiated again.
    Pack(Narrow),
    /// `(words, n)`: the first `n` reals of what was packed, as a vector.
    Unpack(Narrow),

    /// `(a, b)`: the matrix product of ranks 1 or 2, as in linear algebra; flags transpose rank-2 operands first.
    MatMul {
        /// Use the transpose of the first operand.
        a_transposed: bool,
        /// Use the transpose of the second operand.
        b_transposed: bool,
        /// A zero times anything is zero: for derivative code, see [`palinode_core::Scalar::strong_mul`].
        strong: bool,
    },
    /// `(x, y)`, rank 1 each: the matrix of all products.
    Outer {
        /// A zero times anything is zero.
        strong: bool,
    },
    /// Dense linear algebra.
    Linalg(Linalg),

    /// `(n, initial values...)` and one block `(k, carried values...)`: runs it for `k` in `0..n` and carries its
    /// results to the next round. A negative `n` counts as 0.
    For {
        /// `k` runs from `n - 1` down to 0.
        descending: bool,
        /// How much its way back may keep; nothing is said by default. It means nothing for the values.
        room: Option<Room>,
    },
    /// `(initial values...)` and two blocks `(carried values...)`: while the first gives true, the second makes
    /// the next values.
    While {
        /// As of [`Op::For`].
        room: Option<Room>,
    },
    /// `(n, initial state..., initial cotangents...)` and two blocks, `advance (k, state...)` and `back (k, state..., cotangents...)`: the way back
    /// through a loop of which nothing was kept. With `x` the state, `x[k + 1] = advance(k, x[k])`; then `c = back(k, x[k], c)` for `k` from `n - 1`
    /// down to 0. Gives the last `c`. How often a state is computed again depends on `room`; the result does not. A negative `n` counts as 0.
    Sweep {
        /// How many states are kept at once.
        room: Room,
    },
    /// `(condition)` and two blocks without parameters: the results of the first if it holds, else of the second.
    If,
    /// Calls a function.
    Call(FuncId),
    /// `(operands...)` and one block over scalars: elementwise operations done in one go.
    Fused,
}

impl Op {
    /// A row of the rule table.
    pub fn rule(row: rules::Row) -> Op {
        Op::Map(row.into())
    }

    /// Addition of reals.
    pub fn add() -> Op {
        Op::rule(rules::Row::Add)
    }

    /// How the text form calls it.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Const(_) => "const",
            Op::Map(rule) => rule.row.name(),
            Op::Int(op) => op.name(),
            Op::Compare(op) => op.name(),
            Op::Logical(op) => op.name(),
            Op::Select => "select",
            Op::Convert(_) => "convert",
            Op::StopGradient => "stop_gradient",
            Op::Dim(_) => "dim",
            Op::Iota => "iota",
            Op::Settled(Search::Picard) => "settled_picard",
            Op::Settled(Search::Anderson) => "settled_anderson",
            Op::Settled(Search::Newton) => "settled_newton",
            Op::Broadcast(_) => "broadcast",
            Op::Reshape => "reshape",
            Op::Permute(_) => "permute",
            Op::Concat(_) => "concat",
            Op::Reduce(kind, _) => kind.name(),
            Op::Read(_) => "read",
            Op::Write(_) => "write",
            Op::AddAt(_) => "add_at",
            Op::Push => "push",
            Op::Resize => "resize",
            Op::Pack(Narrow::F32) => "pack_f32",
            Op::Pack(Narrow::Bf16) => "pack_bf16",
            Op::Unpack(Narrow::F32) => "unpack_f32",
            Op::Unpack(Narrow::Bf16) => "unpack_bf16",
            Op::MatMul { strong: false, .. } => "matmul",
            Op::MatMul { strong: true, .. } => "strong_matmul",
            Op::Outer { strong: false } => "outer",
            Op::Outer { strong: true } => "strong_outer",
            Op::Linalg(op) => op.name(),
            Op::For { .. } => "for",
            Op::While { .. } => "while",
            Op::Sweep { .. } => "sweep",
            Op::If => "if",
            Op::Call(_) => "call",
            Op::Fused => "fused",
        }
    }

    /// How much the way back through a loop may keep, if that is limited.
    pub fn room(&self) -> Option<Room> {
        if let Op::For { room, .. } | Op::While { room } = self { *room } else { None }
    }

    /// Whether its blocks run any number of times.
    pub fn repeats(&self) -> bool {
        matches!(self, Op::For { .. } | Op::While { .. } | Op::Sweep { .. })
    }

    /// The operand that is *consumed*: the result is a changed version of it, in the same memory if nothing else needs it.
    pub fn consumes(&self) -> Option<usize> {
        match self {
            Op::Write(_) | Op::AddAt(_) | Op::Push | Op::Resize => Some(0),
            Op::Const(_)
            | Op::Map(_)
            | Op::Int(_)
            | Op::Compare(_)
            | Op::Logical(_)
            | Op::Select
            | Op::Convert(_)
            | Op::StopGradient
            | Op::Settled(_)
            | Op::Dim(_)
            | Op::Iota
            | Op::Broadcast(_)
            | Op::Reshape
            | Op::Permute(_)
            | Op::Concat(_)
            | Op::Reduce(..)
            | Op::Read(_)
            | Op::Pack(_)
            | Op::Unpack(_)
            | Op::MatMul { .. }
            | Op::Outer { .. }
            | Op::Linalg(_)
            | Op::For { .. }
            | Op::While { .. }
            | Op::Sweep { .. }
            | Op::If
            | Op::Call(_)
            | Op::Fused => None,
        }
    }
}
