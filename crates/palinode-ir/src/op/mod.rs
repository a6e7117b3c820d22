//! The operations of a program.
//!
//! An operation is data: what it computes, without its operands. Real elementwise operations are the rows of
//! the rule table ([`Op::Map`]); everything else here is linear in its real operands, moves elements, or
//! concerns integers, truth values and control.
//!
//! `facts.rs` is the table of operations: their names and what everybody else asks about them. `lengths.rs`
//! says how long their results are, `kinds.rs` holds the parts that tell operations apart. `_ =>` on [`Op`]
//! stands only where it means "nothing special", which is right for every operation, or where it panics.

mod facts;
mod kinds;
mod lengths;

pub use facts::{Facts, Kind, Linear, Recompute};
pub use kinds::{Axis, Comparison, IntOp, Linalg, Logical, Narrow, Reduction, Search};
pub(crate) use lengths::{Length, Lengths, lengths, reached};

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

/// How many snapshots of a loop its reverse sweep may keep at once. A loop that has such a limit keeps no
/// residuals of its rounds: reverse mode makes an [`Op::Sweep`] of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keep {
    /// So many, the initial one included; 0 counts as 1.
    Snapshots(u64),
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
/// *Elementwise* operations take scalars and arrays of one rank; scalars are used with every element, and
/// arrays must have the same lengths when the program runs.
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
    /// Elementwise conversion to another kind. Real to integer truncates and is a decision; real to `f32`
    /// rounds.
    Convert(Elem),
    /// The operand, as a constant for differentiation.
    StopGradient,
    /// `(x, change, bound, rounds)`: the vector `x` that a search found, if it is finite and the last change,
    /// or the residual, of the search is at most the bound; otherwise the run stops. Transforms take no
    /// derivative through it: a solution has that of its equation. Numbers that carry derivatives keep those
    /// of the search.
    Settled(Search),

    /// The length of an array along an axis.
    Dim(u8),
    /// `n`: the integers `0..n`.
    Iota,
    /// `(x, lengths...)`: `x` repeated. Axis `j` of `x` becomes axis `axes[j]` of the result, which has as
    /// many axes as there are lengths; `axes` ascends. A scalar `x` fills an array.
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

    /// `x`, an array of reals: its elements in order in a narrower format, several to an integer. Carries no
    /// derivative: only what reverse mode keeps is packed, and a program that packs is not differentiated
    /// again.
    Pack(Narrow),
    /// `(words, n)`: the first `n` reals of what was packed, as a vector.
    Unpack(Narrow),

    /// `(a, b)`: the matrix product of ranks 1 or 2, as in linear algebra; flags transpose rank-2 operands
    /// first.
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
    /// `(c, x, y)`: the matrix `c` with the outer product of two vectors added, or, of two matrices, that of
    /// every row of `x` and the same row of `y`, from the first to the last. Each entry is one chain of fused
    /// multiply-adds that goes on from what is in `c`, so that many products at once are those one by one.
    AddOuter {
        /// A zero times anything is zero.
        strong: bool,
    },
    /// Dense linear algebra.
    Linalg(Linalg),

    /// `(n, initial values...)` and one block `(k, carried values...)`: runs it for `k` in `0..n` and carries
    /// its results to the next round. A negative `n` counts as 0.
    For {
        /// `k` runs from `n - 1` down to 0.
        descending: bool,
        /// How much its reverse sweep may keep; nothing is said by default. It means nothing for the values.
        keep: Option<Keep>,
    },
    /// `(initial values...)` and two blocks `(carried values...)`: while the first gives true, the second
    /// makes the next values.
    While {
        /// As of [`Op::For`].
        keep: Option<Keep>,
    },
    /// `(n, initial state..., initial cotangents...)` and two blocks, `advance (k, state...)` and
    /// `back (k, state..., cotangents...)`: reverses a loop of which nothing was kept. With `x` the state,
    /// `x[k + 1] = advance(k, x[k])`; then `c = back(k, x[k], c)` for `k` from `n - 1` down to 0. Gives the
    /// last `c`. How often a state is computed again depends on `keep`; the result does not. A
    /// negative `n` counts as 0.
    ///
    /// One that `turns` finds its cotangents when it has run forwards: `(n, initial state..., given...)`
    /// and a third block `turn (state..., given...)`, which runs once, with `x[n]`, and gives the initial
    /// cotangents and more. It gives the last `c`, then what more there is.
    Sweep {
        /// How many snapshots are kept at once.
        keep: Keep,
        /// Whether there is a `turn`.
        turns: bool,
    },
    /// `(condition)` and two blocks without parameters: the results of the first if it holds, else of the
    /// second.
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

    /// How much the reverse sweep through a loop may keep, if that is limited.
    pub fn keep(&self) -> Option<Keep> {
        if let Op::For { keep, .. } | Op::While { keep } = self { *keep } else { None }
    }
}
